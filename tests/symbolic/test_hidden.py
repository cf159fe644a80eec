"""Random averages whose scales stand in no polynomial: bumps through functions, in one variable and across two, and waves.

Values by substitution: E exp(-K g(z)^2) h(z) by mpmath about the places where g = 0, given by the one who draws it.
"""

from random import Random

import mpmath
import pytest
from sympy import Rational, asinh, cos, cosh, exp, log, sinh, tanh

from hermitex import E, compile
from hermitex.errors import NotConverged
from hermitex.symbolic.precise import evaluate_with_error
from hermitex.symbols import z, z1, z2

mp = mpmath.mp.clone()
mp.dps = 40


def number(q):
    return mp.mpf(int(q.p))/int(q.q)


def inner(draw):
    """(g, g of mpmath, its zeros, its slope at a zero): increasing but for the last."""
    m = Rational(draw.randint(-9, 9), 11)
    v = number(m)
    return draw.choice([
        (tanh(z) - m, lambda t: mp.tanh(t) - v, [mp.atanh(v)]),
        (exp(z) - m - 1, lambda t: mp.exp(t) - v - 1, [mp.log(1 + v)]),
        (sinh(z) - m, lambda t: mp.sinh(t) - v, [mp.asinh(v)]),
        (z + exp(z) - m, lambda t: t + mp.exp(t) - v, [v - mp.lambertw(mp.exp(v)).real]),
        (asinh(z) - m, lambda t: mp.asinh(t) - v, [mp.sinh(v)]),
        (z + tanh(2*z) - m, lambda t: t + mp.tanh(2*t) - v, [mp.findroot(lambda t: t + mp.tanh(2*t) - v, v/3)]),
        (log(1 + exp(z)) - (m + 1)/2 - Rational(1, 20), lambda t: mp.log1p(mp.exp(t)) - (v + 1)/2 - mp.mpf(1)/20,
         [mp.log(mp.expm1((v + 1)/2 + mp.mpf(1)/20))]),
        (cosh(z) - 2 - m, lambda t: mp.cosh(t) - 2 - v, [mp.acosh(2 + v), -mp.acosh(2 + v)]),
    ])


def bump(draw):
    """(f, E f) for a Gaussian, a Lorentzian or a hyperbolic bump of width 1e-1 to 1e-4 about the zeros of g, and what is wide."""
    (g, f, zeros), steep = inner(draw), 10**draw.randint(1, 4)
    shape, here, reach = draw.choice([(exp(-(steep*g)**2), lambda u: mp.exp(-u*u), 10), (1/cosh(steep*g), mp.sech, 110)])
    wide, there = draw.choice([(tanh(z)**2, lambda t: mp.tanh(t)**2), (exp(z/3), lambda t: mp.exp(t/3))])
    known = mp.mpf(0)
    for c in zeros:
        w = 1/(steep*abs(mp.diff(f, c)))
        ends = [c + w*reach*mp.mpf(j)/12 for j in range(-15, 16)]
        known += mp.quad(lambda t: here(steep*f(t))*there(t)*mp.npdf(t), ends)
    if draw.random() < 0.5:
        return shape*wide, known
    with mp.workdps(30):
        return shape*wide + cos(z)**2, known + (1 + mp.exp(-2))/2


def ridge(draw):
    """E exp(-(K (u.z - m))^2) h(v.z) with v across u: a Gaussian of one form times an average over another."""
    a, b = draw.randint(1, 5), draw.randint(-5, 5) or 1
    size, steep, m = mp.sqrt(a*a + b*b), 10**draw.randint(1, 4), Rational(draw.randint(-15, 15), 7)
    K = steep*size
    known = mp.exp(-(number(m)*steep)**2/(1 + 2*K*K))/mp.sqrt(1 + 2*K*K)
    w, h = draw.choice([((a*z2 - b*z1)**2, size**2), (1 + (a*z2 - b*z1)**4, 1 + 3*size**4)])
    return exp(-(steep*(a*z1 + b*z2 - m))**2)*w, known*h


def agree(node, known, digits):
    try:
        value, error = evaluate_with_error(node, digits)
    except NotConverged:
        value = None  # it said so
    if value is not None:
        value, error = (mp.mpf(mpmath.nstr(v, 40)) for v in (value, error))
        assert abs(value - known) <= 10*error + abs(known)*mp.mpf(10)**(2 - digits), node
        assert error <= abs(known)*mp.mpf(10)**(3 - digits), node
    if any(f.has(exp) for f in node.atoms(cosh)):
        return  # refused by kernels: a constant exponent is taken out of the sum, and is too large for a number
    try:
        kernel = compile(node)
        found = kernel()
    except NotConverged:
        return
    assert abs(found - known) <= abs(known)*(3*kernel.error + 1e-15), node


@pytest.mark.parametrize("seed", [3])
def test_a_bump_through_a_function(seed):
    body, known = bump(Random(seed))
    agree(E(body, z), known, 15)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_many_bumps(seed):
    body, known = bump(Random(100 + seed))
    agree(E(body, z), known, 15)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_ridges_in_the_plane(seed):
    body, known = ridge(Random(300 + seed))
    agree(E(body, z1, z2), known, 15)
