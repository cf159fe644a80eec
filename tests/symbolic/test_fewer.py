"""Averages over fewer variables than are written: digits and kernels against integrals over the angle, and closed forms."""

from random import Random

import mpmath
import pytest
from sympy import Abs, Max, Rational, Symbol, cos, exp, lambdify, pi, sign, sqrt, tanh

from hermitex import E, compile
from hermitex.symbolic.dimension_reduction import over_fewer
from hermitex.symbolic.precise import evaluate
from hermitex.symbolic.radial import degree
from hermitex.symbols import z1, z2, z3

mp = mpmath.mp.clone()
mp.dps = 40
HALF = Rational(1, 2)
r2 = z1**2 + z2**2


def agrees(node, known, digits=20):
    value = mp.mpf(mpmath.nstr(evaluate(node, digits), digits + 5))
    assert abs(value - known) < abs(known)*mp.mpf(10)**(1 - digits), node
    kernel = compile(node)
    assert abs(kernel() - known) < abs(known)*(3*kernel.error + 4e-16) and kernel.error < 1e-11, node


def length(power):
    """E r^a of two normals."""
    return mp.mpf(2)**(mp.mpf(power)/2)*mp.gamma(1 + mp.mpf(power)/2)


@pytest.mark.parametrize("node, known", [
    (E(exp(cos(50*(z1 + z2))), z1, z2), mp.besseli(0, 1)),
    (E(exp(cos(30*(z1 + z2 + z3))), z1, z2, z3, cov={(z1, z2): HALF}), mp.besseli(0, 1)),
    (E(exp(cos(50*z1) + cos(30*z2)), z1, z2), mp.besseli(0, 1)**2),
    (E(z1**4/r2**2, z1, z2), mp.mpf(3)/8),
    (E(z1**2/(z1**2 + 4*z2**2), z1, z2), mp.mpf(1)/3),
    (E(1/sqrt(Abs(z1*z2)), z1, z2), (mp.mpf(2)**(-mp.mpf(1)/4)*mp.gamma(mp.mpf(1)/4))**2/mp.pi),
], ids=str)
def test_digits_and_kernels(node, known):
    agrees(node, known)


def test_a_kernel_with_letters_takes_one_variable():
    a, b = Symbol("a", positive=True), Symbol("b", positive=True)
    kernel = compile(E(tanh(a*z1 - b*z2 + 1)**2*cos(a*z1 - b*z2), z1, z2))
    assert list(kernel.nodes) == ["z1"]
    assert abs(kernel(a=3.0, b=4.0) - compile(E(tanh(5*z1 + 1)**2*cos(5*z1), z1))()) < 1e-14


def test_what_is_not_seen_to_be_homogeneous():
    assert degree(1 + z1, (z1, z2)) is None and degree(exp(z1), (z1, z2)) is None and degree(Max(z1, 1), (z1, z2)) is None
    assert degree(exp(z1/z2)*sign(z1), (z1, z2)) == 0 and degree(Max(0, z1)*sqrt(Abs(z2)), (z1, z2)) == Rational(3, 2)
    assert over_fewer(E(r2**Rational(-1, 2)*z1*cos(z2), z1, z2)) is None


def drawn(seed):
    """(f, the places of its kinks as tan of the angle, its value at an angle), homogeneous of a drawn degree above -2."""
    draw = Random(seed)
    a, b, c = (Rational(draw.randint(1, 9), draw.randint(1, 5)) for _ in range(3))
    u, v = a*z1 + draw.choice((1, -1))*b*z2, z2 - c*z1
    shape = draw.choice([
        u**2/(z1**2 + c*z2**2), Abs(u)/sqrt(r2), Max(u, v), Abs(u)**HALF*sign(v), Max(0, u)*Max(0, v)/r2,
        1/sqrt(a*z1**2 + b*z2**2), tanh(u/sqrt(r2))**2, u**4/r2**2, exp(v/sqrt(r2))*Abs(u), sqrt(a*z1**4 + b*z2**4),
        Abs(u*v)**Rational(1, 3)])
    return shape, [u, v, u - v]


def by_angle(shape, lines):
    """E r^a times the mean of f over the circle, cut where a line crosses it, and where an axis does."""
    power = mp.mpf(str(degree(shape, (z1, z2)).evalf(40)))
    cuts = {k*mp.pi/2 for k in range(5)}
    for line in lines:
        x, y = (mp.mpf(str(line.coeff(w).evalf(40))) for w in (z1, z2))
        cuts |= {(mp.atan2(-x, y) + k*mp.pi) % (2*mp.pi) for k in range(2)} if (x, y) != (0, 0) else set()
    cuts = sorted(cuts)
    cuts = [c for i, c in enumerate(cuts) if i == 0 or c - cuts[i - 1] > mp.mpf(10)**-20]
    names = {n: getattr(mp, n) for n in ("sqrt", "tanh", "exp", "sign", "mpf")}
    f = lambdify((z1, z2), shape, [{**names, "Abs": abs, "Max": max}])
    total = mp.quad(lambda t: f(mp.cos(t), mp.sin(t)), cuts)
    return length(power)*total/(2*mp.pi)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(36))
def test_drawn_homogeneous_averages(seed):
    shape, lines = drawn(seed)
    agrees(E(shape, z1, z2), by_angle(shape, lines), 14)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_drawn_functions_of_one_form(seed):
    draw = Random(900 + seed)
    k, b = draw.randint(5, 200), Rational(draw.randint(12, 40), 10)
    rows = [draw.randint(0, 4), draw.randint(-4, 4), draw.randint(-4, 4)]
    form = sum((r*v for r, v in zip(rows, (z1, z2, z3), strict=True)), z1)
    rows[0] += 1
    size = mp.sqrt(sum(r*r for r in rows))
    root = mp.sqrt(mp.mpf(int(b.p))**2/int(b.q)**2 - 1)
    back = mp.mpf(int(b.p))/int(b.q) - root
    known = (1 + 2*sum((-back)**n*mp.exp(-(n*k*size)**2/2)*mp.cos(n*mp.mpf(1)/3) for n in range(1, 60)))/root
    agrees(E(1/(b + cos(k*form + Rational(1, 3))), z1, z2, z3), known, 15)


def test_an_angle_between_two_lines():
    """P(z1 > 0, z2 > 0) in disguise, by an integral over the angle."""
    node = E(Max(0, z1)*Max(0, z2)/r2, z1, z2)
    agrees(node, 1/(4*mp.pi))
    agrees(E(cos(pi*z1/sqrt(r2)), z1, z2), mp.besselj(0, mp.pi))
