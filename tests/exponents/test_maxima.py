"""The larger and the smaller of independent quantities: rotations, powers, points, and masses."""

import numpy as np
import pytest
from scipy.special import erf
from sympy import S

from hermitex.exponents.channels import channel
from hermitex.exponents.labels.families import Member
from hermitex.exponents.labels.moments import Moments
from hermitex.exponents.laws.density import normal, push
from hermitex.exponents.laws.linearised import second
from hermitex.exponents.laws.maxima import largest_of, smallest_of
from hermitex.exponents.laws.polar import degree
from hermitex.exponents.leap import leap
from hermitex.exponents.thresholds import weak_recovery_several
from hermitex.symbolic.parsing import parse
from hermitex.symbols import normals, z


def threshold(text):
    g = parse(text)
    rows = np.eye(len(normals(g)), dtype=int).tolist()
    return float(weak_recovery_several(g, channel(), normals(g), stages=[{"order": 2, "directions": rows}]).alpha_c)


def modulus(i):
    return push(normal(i), abs(z), z, drop=[(i,)])


def test_two_moduli_are_a_rotated_sum():
    """max(|z1|, |z2|) = (|z1 + z2| + |z1 - z2|)/2: the alpha_c of |z1| + |z2|, 1.06798754037524 [Troiani et al. 2024]."""
    assert threshold("Max(abs(z1), abs(z2))") == pytest.approx(1.06798754037524, rel=1e-12)


def test_powers_of_moduli():
    assert threshold("Max(z1**2, z2**2, z3**2)") == pytest.approx(threshold("Max(abs(z1), abs(z2), abs(z3))"), rel=1e-11)
    assert threshold("Min(z1**2, z2**2)") == pytest.approx(threshold("Min(abs(z1), abs(z2))"), rel=1e-11)


@pytest.mark.parametrize("count", [2, 3])
def test_moduli_by_hand(count):
    """Given max |z_i| = y one modulus is y, the others lie below: E[z_i^2 - 1|y] = (y^2 - 1)/K - (K - 1)/K 2 y phi(y)/P(y)."""
    x, w = np.polynomial.legendre.leggauss(80)
    y, w = 4.5 * (1 + x), 4.5 * w
    phi, mass = np.exp(-y * y / 2) / np.sqrt(2 * np.pi), erf(y / np.sqrt(2))
    density = 2 * count * phi * mass ** (count - 1)
    mean = (y * y - 1) / count - (count - 1) / count * 2 * y * phi / mass
    # G is that times the identity, by permutations and flips.
    name = ", ".join(f"abs(z{i + 1})" for i in range(count))
    assert threshold(f"Max({name})") == pytest.approx(1 / float(np.sum(w * density * mean**2)), rel=1e-11)


def test_masses():
    """E[1] = 1 and E[z_i^2 - 1] = 0 for both extremes."""
    for law in (largest_of(modulus(0), modulus(1)), smallest_of(modulus(0), modulus(1))):
        assert second(law).error < 1e-11


def test_a_wrong_side_shows_in_the_masses():
    one, two = largest_of(modulus(0), modulus(1)), smallest_of(modulus(0), modulus(1))
    mixed = type(one)(one.indices, lambda y: one.density(y) / 2 + two.density(y) / 4, one.lo, one.hi, one.knots)
    assert second(mixed).error > 0.1


@pytest.mark.parametrize(("text", "expected"), [
    ("Max(abs(z1), abs(z2))", 1), ("Min(z1**2, z2*z1)", 2), ("abs(z1)*abs(z2) + Max(z1, z2)", None),
    ("abs(z1*z2)/sqrt(z1**2 + z2**2)", 1), ("z1 + z2**2", None), ("Max(z1, 1)", None),
])
def test_degrees(text, expected):
    g = parse(text)
    assert degree(g, normals(g)) == expected


@pytest.mark.slow
def test_leap_of_an_extremum_by_its_degree():
    """E[g (sum z_i^2 - r)] = E[g] > 0 for g of degree one: order 2, all directions at once, no integral taken."""
    g = parse("Max(abs(z1), abs(z2), abs(z3))")
    found = leap(g, normals(g)).staircase
    assert [(s["order"], s["directions"].rows) for s in found.stages] == [(2, 3)]
    assert any("by Stein" in c.how or "rises with its modulus" in c.how for c in found.certificates)


def test_no_degree_no_claim():
    """A target of both signs: E[g] may be zero, and nothing is claimed from the degree."""
    g = parse("z1**2 - z2**2")
    assert Moments(Member("y", g), normals(g))._homogeneous({(2, 0): S.One, (0, 2): S.One}, ("c", 2, "")) is None
