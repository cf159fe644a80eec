"""Signs, ramps and polynomials of three and four correlated normals: closed forms against sums over the orthant itself."""

from itertools import product

import numpy as np
import pytest
from sympy import Abs, Add, Heaviside, Max, Min, Rational, Symbol, atan, pi, sign, sqrt

from hermitex import E, closed_form, compile
from hermitex.symbolic.dimension_reduction import four_signs
from hermitex.symbolic.engine.node_integrals import answer
from hermitex.symbols import z1, z2, z3, z4

FIELDS = (z1, z2, z3, z4)
q, t = Symbol("q", nonnegative=True), Symbol("t", real=True)


def law(n, seed):
    """A drawn covariance, as numbers and as an argument."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(-3, 4, size=(n, n + 2))
    C = rows @ rows.T + 2*np.eye(n, dtype=int)
    return C/8, {(FIELDS[i], FIELDS[j]): Rational(int(C[i, j]), 8) for i in range(n) for j in range(i, n)}


def summed(f, C, nodes=34):
    """E f(u), f smooth in every orthant, by Gauss-Legendre nodes in each."""
    n = len(C)
    x, w = np.polynomial.legendre.leggauss(nodes)
    x, w = (x + 1)/2, w/2
    reach = 8*np.sqrt(np.diag(C))
    inverse, size = np.linalg.inv(C), np.sqrt((2*np.pi)**n*np.linalg.det(C))
    total = 0.0
    for sides in product((1, -1), repeat=n):
        axes = np.meshgrid(*(s*r*x for s, r in zip(sides, reach, strict=True)), indexing="ij")
        u = np.stack([a.ravel() for a in axes])
        weight = np.prod(np.stack([a.ravel() for a in np.meshgrid(*(r*w for r in reach), indexing="ij")]), axis=0)
        total += np.sum(weight*f(*u)*np.exp(-np.einsum("in,ij,jn->n", u, inverse, u)/2))/size
    return total


def ramp(u):
    return np.maximum(u, 0)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("body", "f"), [
    (Heaviside(z1)*Max(0, z2)*Max(0, z3), lambda a, b, c: (a > 0)*ramp(b)*ramp(c)),
    (Heaviside(z1)*Heaviside(-z2)*Max(0, z3)**2, lambda a, b, c: (a > 0)*(b < 0)*ramp(c)**2),
    (sign(z1)*Max(z2, z2/10)*z3**2, lambda a, b, c: np.sign(a)*np.maximum(b, b/10)*c**2),
    (Abs(z1)*Abs(2*z2)*Min(0, z3), lambda a, b, c: np.abs(a)*np.abs(2*b)*np.minimum(c, 0))],
                         ids=["step and ramps", "steps and a squared ramp", "a leaky ramp", "moduli"])
def test_three_fields_in_closed_form(body, f, seed):
    C, cov = law(3, seed)
    assert float(closed_form(E(body, z1, z2, z3, cov=cov))) == pytest.approx(summed(f, C), rel=1e-8, abs=1e-10)


def test_a_kink_of_a_difference():
    C, cov = law(3, 5)
    turn = np.array([[1, -1, 0], [0, 1, 0], [0, 0, 1]])
    found = float(closed_form(E(Max(z1, z2)*Heaviside(z2)*sign(z3), z1, z2, z3, cov=cov)))
    assert found == pytest.approx(summed(lambda d, b, c: (b + ramp(d))*(b > 0)*np.sign(c), turn @ C @ turn.T), rel=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(("body", "f"), [
    (Heaviside(z1)*Heaviside(z2)*Max(0, z3)*Max(0, z4), lambda a, b, c, d: (a > 0)*(b > 0)*ramp(c)*ramp(d)),
    (sign(z1)*Abs(z2)*Abs(z3)*sign(z4), lambda a, b, c, d: np.sign(a)*np.abs(b)*np.abs(c)*np.sign(d))],
                         ids=["steps and ramps", "signs and moduli"])
def test_four_fields_up_to_their_signs(body, f):
    """What has no closed form is a multiple of E sign sign sign sign, and that an average over one variable."""
    C, cov = law(4, 3)
    found = answer(E(body, *FIELDS, cov=cov))
    assert [why for _, why in found.rest] and all(four_signs(node) is not None for node, _ in found.rest)
    value = float(compile(Add(found.value, *(four_signs(node) for node, _ in found.rest)))())
    assert value == pytest.approx(summed(f, C, 26), rel=1e-6)


@pytest.mark.slow
def test_the_signs_of_four_as_an_average_of_one_variable():
    _, cov = law(4, 0)
    node = E(sign(z1)*sign(z2)*sign(z3)*sign(z4), *FIELDS, cov=cov)
    kernel = compile(node)
    assert len(kernel.nodes) == 1 and kernel() == pytest.approx(float(node.evalf(15)), abs=1e-14)
    pairs = E(sign(z1)*sign(z2)*sign(z3)*sign(z4), *FIELDS, cov={(z1, z2): Rational(1, 2), (z3, z4): Rational(1, 2)})
    assert compile(four_signs(pairs))() == pytest.approx(1/9, rel=1e-13)
    assert four_signs(E(sign(z1)*sign(z2)*sign(z3)*z4, *FIELDS, cov=cov)) is None


def test_what_is_added_to_the_signs_of_four_is_no_factor():
    node = E(2 + sign(z1)*sign(z2)*sign(z3)*sign(z4), *FIELDS, cov={(z1, z2): Rational(1, 2), (z3, z4): Rational(1, 2)})
    assert four_signs(node) is None and compile(node)() == pytest.approx(2 + 1/9, rel=1e-12)


def test_letters_stay_in_a_short_form():
    r, s = (Symbol(n, real=True) for n in "rs")
    found = closed_form(E(sign(z1)*sign(z2)*z3**2, z1, z2, z3, cov={(z1, z2): r, (z2, z3): s}))
    plain = 2*atan(r/sqrt(1 - r**2))/pi - 2*r*s**2/(pi*sqrt(1 - r**2))
    at = {r: Rational(1, 3), s: Rational(-2, 5)}
    assert float((found - plain).subs(at)) == pytest.approx(0, abs=1e-14) and found.count_ops() < 40


@pytest.mark.parametrize(("first", "second"), [(sqrt(q), q), (sqrt(Abs(t)), t), (Abs(t), t)])
def test_a_jump_that_loses_all_its_variables_at_a_number(first, second):
    """E z1 sign(sqrt(q) z1 + q z2) is 0 at q = 0: its closed form had divided by q, and was 0.4 or 0.8 there."""
    letter = second.as_base_exp()[0]
    for node in (E(z1*sign(first*z1 + second*z2)), E(sign(z1)*sign(first*z1 + second*z2))):
        done, kernel = node.doit(), compile(node)
        assert float(done.subs(letter, 0)) == kernel(0.0) == 0
        assert kernel(0.75) == pytest.approx(float(done.subs(letter, 0.75)), rel=1e-14)
        assert float(done.subs(letter, 0.75)) == pytest.approx(float(node.subs(letter, Rational(3, 4)).evalf(15)), rel=1e-14)
