"""Averages inside an integrand that are related (by parts, tower, linearity, products) may cancel what would diverge."""

from random import Random

import pytest
from sympy import Abs, Rational, S, Symbol, atan, cos, exp, log, sin, sqrt, tanh

import hermitex as hx
from hermitex import Expectation
from hermitex.errors import Divergent, HermitexError, NoClosedForm
from hermitex.symbolic.existence_check import exists
from hermitex.symbolic.precise import enclose
from hermitex.symbols import z, z1, z2

pytestmark = pytest.mark.beyond  # existence where averages inside are related by identities: existence_check.py, divergence.py

E = hx.E
b = Symbol("b", real=True)
FUNCTIONS = (tanh, lambda u: u/(1 + u**2), lambda u: log(1 + u**2), atan, lambda u: exp(-u**2)*cos(u), lambda u: 1/(2 + cos(u)))
FAR = (1/z**2, 1/Abs(z), exp(z**2), 1/(z - Rational(1, 2))**2, exp(z**2/2)*cos(z), 1/z**3, sin(z)/z**2, tanh(z)/z**2)
TOGETHER = ((S.One, cos(z)), (exp(z), 1 + z), (1/(1 + z**2), S.One), (S.One, exp(z**2/3)))  # the two differ by O(z^2) at 0


def related(seed, moving=False):
    """(a, b): two expressions in averages, equal by an identity; with `moving` averages around a parameter b."""
    random = Random(seed)
    scale = Rational(random.randint(1, 5), random.randint(2, 4))
    f, g = random.choice(FUNCTIONS), random.choice(FUNCTIONS)
    shift = b if moving else Rational(random.randint(0, 2), 3)
    u = scale*z1 + shift
    return (
        lambda: (E(z1*f(u), z1), E(f(u).diff(z1), z1)),                                         # Stein
        lambda: (E(E(f(u + z2), z1), z2), E(f(sqrt(1 + scale**2)*z1 + shift), z1)),              # tower
        lambda: (E(f(u) + 2*z1*g(u), z1), E(f(u), z1) + 2*E(g(u).diff(z1), z1)),                 # linearity and Stein
        lambda: (E(f(u)*g(scale*z2), z1, z2), E(f(u), z1)*E(g(scale*z1), z1)),                   # independent factors
        lambda: (E(f(u), z1), E(f(shift - scale*z1), z1)),                                       # symmetry of the law
        lambda: (E((z1**2 - 1)*f(u), z1), E(f(u).diff(z1, 2), z1)),                              # Stein twice
    )[seed % 6]()


def drawn(seed):
    """(an integrand over z that vanishes, or whose pole is removed, by the relation; its value where it is known)."""
    random = Random(1000 + seed)
    left, right = related(seed)
    if seed % 4 == 3:
        one, other = random.choice(TOGETHER)
        return (left*one - right*other)/z**2, None
    return (left - right)*random.choice(FAR), S.Zero


def said(node):
    """What each question answers, a refusal by its type."""
    found = {}
    for name, ask in {"doit": node.doit, "evalf": lambda: node.evalf(12), "enclose": lambda: enclose(node, 10),
                      "check": lambda: hx.check(node, 0).status, "compile": lambda: float(hx.compile(node)())}.items():
        try:
            found[name] = ask()
        except HermitexError as no:
            found[name] = type(no)
    return found


def wrong(seed):
    """What is said of the seed's average and is not so."""
    body, value = drawn(seed)
    node = E(body, z)
    if not isinstance(node, Expectation):
        return []
    found = said(node)
    bad = [k for k, v in found.items() if v is Divergent]
    if value == 0:
        bad += ["doit"] if found["doit"] != 0 and not (hasattr(found["doit"], "has") and found["doit"].has(Expectation)) else []
        bad += ["evalf"] if not isinstance(found["evalf"], type) and abs(found["evalf"]) > 1e-10 else []
        bad += ["check"] if found["check"] == "fails" else []
        bad += ["enclose"] if not isinstance(found["enclose"], type) and not found["enclose"].contains(0) else []
        bad += ["compile"] if isinstance(found["compile"], float) and not abs(found["compile"]) < 1e-6 else []
    return [f"{seed}: {k} of {node}: {found[k]}" for k in bad]


@pytest.mark.parametrize("seed", [0, 1, 2, 4, 6, 7, 8, 9, 10])
def test_what_cancels_is_not_called_divergent(seed):
    assert wrong(seed) == []


@pytest.mark.parametrize("seed", [0, 4, 6, 10])
def test_a_planted_error_diverges(seed):
    left, right = related(seed)
    node = E((left - right*(1 + Rational(1, 10**(3 + seed % 4))))/z**2, z)
    for ask in (node.doit, lambda: node.evalf(12), lambda: enclose(node, 10)):
        with pytest.raises(Divergent):
            ask()


@pytest.mark.parametrize("seed", [0, 4])
def test_with_a_parameter(seed):
    left, right = related(seed, moving=True)
    assert E((left - right)/z**2, z).doit() == 0
    with pytest.raises(Divergent):
        E((left - 2*right)/z**2, z).doit()


def test_averages_around_the_outer_variable():
    """E_x[x tanh(z + x)] = 1 - E_x[tanh(z + x)^2] at every z."""
    node = E((E(tanh(z + z1)**2, z1) + E(z1*tanh(z + z1), z1) - 1)/z**2, z)
    assert node.doit() == 0 == node.evalf(12)


def test_it_is_refused_where_averages_are_not_known_to_cancel():
    """E[(x^2 - 1) atan(u)] = E[atan''(u)], u = x + 2/3, in a sum whose pole goes: no normal form sees it."""
    node = E(drawn(11)[0], z)
    assert node.doit().has(Expectation)
    for ask in (lambda: node.evalf(12), lambda: enclose(node, 10)):
        with pytest.raises(NoClosedForm, match="may cancel"):
            ask()


def test_numbers_that_are_zero_in_disguise_cancel_too():
    hidden = sin(1)**2 + cos(1)**2 - 1
    assert exists(E(hidden/z**2, z)) is not False


def test_close_roots_of_a_power_are_read_once():
    p = (25*z1**2 + 30*z1 + 13)**3
    assert abs(E(1/p.expand(), z1).evalf(15) - E(1/p, z1).evalf(15)) < 1e-15


def test_what_is_not_known_to_be_infinite_is_not_called_finite():
    """A coefficient of one over two variables beside a weight that grows in places: E|f| = oo, and no rule here decides it."""
    grows = E(tanh(z1*z2 + z1**2)**2, z1, z2)*exp(z**2*(2 + sin(z))/4)
    assert exists(E((E(tanh(z1)**2) + E(z1*tanh(z1)) - 1)/z**2 + grows, z)) is not True
