"""Matrices of any size, of the unit matrix and of ones: determinant, inverse, trace, and the slope at no replicas."""

import random

import pytest
from sympy import (
    Derivative,
    Determinant,
    Identity,
    Inverse,
    MatPow,
    Matrix,
    MatrixSymbol,
    OneMatrix,
    Subs,
    Symbol,
    Trace,
    eye,
    log,
    ones,
    symbols,
)

from hermitex import Result, check
from hermitex.symbolic.calculus.replicas import two_numbers, worked_out

a, c, b, n = symbols("a c b n", positive=True)
one, J = Identity(n), OneMatrix(n, n)
M = a*one + c*J
row, column = OneMatrix(1, n), OneMatrix(n, 1)


@pytest.mark.parametrize("left,right", [
    (Determinant(M), a**(n - 1)*(a + n*c)),
    (Inverse(M), (one - c/(a + n*c)*J)/a),
    (Inverse(M)*M, one),
    (J*J, n*J),
    (MatPow(M, 2), a**2*one + (2*a*c + n*c**2)*J),
    (Trace(Inverse(M)), (n - 1)/a + 1/(a + n*c)),
    (Trace(M*Inverse(b*one + c*J)), (n - 1)*a/b + (a + n*c)/(b + n*c)),
    (row*Inverse(M)*column, Matrix([[n/(a + n*c)]])),
    (Subs(Derivative(log(Determinant(M)), n), n, 0), log(a) + c/a),
    (Subs(Derivative(Trace(Inverse(M)), n), n, 0), 1/a - c/a**2),
])
def test_what_is_proved(left, right):
    assert check(left, right).status == "proved"


@pytest.mark.parametrize("left,right", [
    (Determinant(M), a**n*(a + n*c)),
    (Inverse(M), (one - c/(a + c)*J)/a),
    (J*J, J),
    (Trace(M), n*a + c),
    (row*Inverse(M)*column, Matrix([[1/(a + n*c)]])),
    (Subs(Derivative(log(Determinant(M)), n), n, 0), log(a + c)),
])
def test_what_is_wrong_is_refuted(left, right):
    assert check(left, right).status == "fails"


@pytest.mark.parametrize("seed", range(8))
def test_numbers_of_replicas_are_cases(seed):
    """Every formula at n = 2, 3, 4 is that of SymPy's matrices."""
    chance = random.Random(seed)
    made = M
    for _ in range(3):
        other = chance.choice([a, b])*one + chance.choice([c, 1])*J
        made = chance.choice([lambda m, o: m + o, lambda m, o: m*o, lambda m, o: Inverse(m), lambda m, o: 2*m*o])(made, other)
    k, numbers = chance.choice([2, 3, 4]), {a: 3, b: 5, c: 2}
    whole = made.subs({**numbers, n: k}).doit().as_explicit()
    assert worked_out(Determinant(made)).subs({**numbers, n: k}) == whole.det()
    assert worked_out(Trace(made)).subs({**numbers, n: k}) == whole.trace()
    u, w = (x.subs({**numbers, n: k}) for x in two_numbers(made))
    assert whole == u*eye(k) + (w - u)/k*ones(k, k)


def test_other_matrices_are_left_open():
    X = MatrixSymbol("X", n, n)
    assert two_numbers(X) is None and worked_out(Determinant(X)) is None
    assert check(X*one + J, J + X).status in ("undetermined", "proved") and check(X, 2*X).status == "undetermined"


def test_a_page_shows_them():
    page = Result("Replicas", "Any number of them.")
    s = page.let(Symbol("s"), a + c)
    page.step("the determinant lemma", Determinant(M), a**(n - 1)*(a + n*c))
    page.step("Sherman-Morrison", Inverse(s*one + c*J), (one - c/(a + c + n*c)*J)/(a + c))
    page.misprint("one replica", Determinant(M), a + c)
    found = page.check()
    assert found and [x.status for x in found.steps] == ["proved", "proved", "refuted"]
    assert r"a \mathbb{I} + c J_{n}" in page.markdown()
