"""f(z1) + f(z2) given the sum: level sets of f(m + d) + f(m - d) on a line, for terms with any slopes, kinks and steps."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import ndtr

import hermitex as hx
from hermitex.exponents.laws.two_terms import TwoTerms
from hermitex.symbolic.parsing import parse
from hermitex.symbols import z


def last_stage(text):
    return hx.exponents(text).weak_recovery["stages"][-1]["alpha_c"]


@pytest.mark.slow
def test_two_sines_are_one_cosine():
    """sin z1 + sin z2 = 2 sin(u/sqrt2) cos(v/sqrt2): given u, the label of one variable v."""
    assert float(last_stage("sin(z1) + sin(z2)")) == pytest.approx(float(last_stage("cos(z1/sqrt(2))")), rel=1e-11)


@pytest.mark.slow
def test_a_line_is_known_with_the_sum():
    one, two = (TwoTerms(parse(t), z).squares() for t in ("gelu(z)", "3*gelu(z) - 2*z"))
    assert one[0] == pytest.approx(two[0], rel=1e-12)
    assert max(one[1], two[1]) < 1e-10


def test_injective_terms_give_one_half():
    inverse, error = TwoTerms(parse("z**2*sign(z)"), z).squares()
    assert inverse == pytest.approx(2, abs=1e-11) and error < 1e-10


@pytest.mark.parametrize("m", [-2.0, 1.6])
def test_gelu_at_one_sum(m):
    """E[scalar^2|u] by roots and adaptive quadrature over the labels."""
    def h(d):
        return (m + d) * ndtr(m + d) + (m - d) * ndtr(m - d)

    def slope(d):
        a, b = m + d, m - d
        return ndtr(a) - ndtr(b) + (a * np.exp(-a * a / 2) - b * np.exp(-b * b / 2)) / np.sqrt(2 * np.pi)

    turn = brentq(slope, 0.05, 4.0, xtol=1e-15)
    back = brentq(lambda d: h(d) - h(0.0), turn, 6.0, xtol=1e-15)

    def ratio(points):
        w = [np.exp(-d * d) / abs(slope(d)) for d in points]
        return sum(v * (2 * d * d - 1) for v, d in zip(w, points, strict=True)) / sum(w)

    def at(d):
        far = d > back
        if far:
            others = []
        elif d < turn:
            others = [brentq(lambda t: h(t) - h(d), turn, back + 1e-9, xtol=1e-15)]
        else:
            others = [brentq(lambda t: h(t) - h(d), 0.0, turn, xtol=1e-15)] if h(d) < h(0.0) else []
        return ratio([d, *others]) ** 2 * 2 * np.exp(-d * d) / np.sqrt(np.pi)

    pieces = [(0, turn), (turn, back), (back, 3.5), (3.5, 6.3)]
    expected = sum(quad(lambda s, a=a, b=b: at(a + (b - a) * np.sin(s) ** 2) * (b - a) * np.sin(2 * s), 0, np.pi / 2,
                        epsabs=1e-10, epsrel=1e-10, limit=200)[0] for a, b in pieces)
    with np.errstate(all="ignore"):
        found, lost = TwoTerms(parse("gelu(z)"), z).given(m)
    assert found == pytest.approx(expected, rel=2e-9)
    assert abs(lost) < 1e-11


def test_plateaus():
    """floor(m + d) + floor(m - d) takes two values: finitely many intervals of d, by their masses."""
    m = 0.3
    points = np.linspace(0, 7, 700001)[:-1] + 5e-6
    label = np.floor(m + points) + np.floor(m - points)
    weight = np.exp(-points**2)
    weight /= weight.sum()
    groups = [label == y for y in np.unique(label)]
    expected = sum((weight[mine] @ (2 * points[mine] ** 2 - 1)) ** 2 / weight[mine].sum() for mine in groups)
    with np.errstate(all="ignore"):
        found, lost = TwoTerms(parse("floor(z)"), z).given(m)
    assert found == pytest.approx(expected, rel=1e-2)
    assert abs(lost) < 1e-13


def test_a_lost_branch_shows_in_the_error(monkeypatch):
    from hermitex.exponents.laws import two_terms

    monkeypatch.setattr(two_terms, "_zeros", lambda slope, a, b: np.array([]))
    _, error = TwoTerms(parse("silu(z)"), z, mirror=True).squares()
    assert error > 1e-3


def test_rectified_sums_agree_with_their_lines():
    assert TwoTerms(parse("relu(z)"), z).squares()[0] == pytest.approx(1 / 0.5339937701876213, rel=1e-12)
