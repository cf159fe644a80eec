"""Matrices of any size, of the unit matrix and of ones: determinant, inverse, trace, and the slope at no replicas."""

import random

import pytest
from sympy import (
    Derivative,
    Determinant,
    Identity,
    Inverse,
    KroneckerProduct,
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
from hermitex.check.replicas import two_numbers, worked_out

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


def blocks(own, everywhere):
    return KroneckerProduct(one, own) + KroneckerProduct(J, everywhere)


@pytest.mark.parametrize("seed", range(6))
def test_blocks_of_matrices_are_those_of_a_size_in_numbers(seed):
    """Against the same matrix written out for two and three replicas."""
    chance = random.Random(seed)
    k = chance.choice([1, 2])
    own = Matrix(k, k, lambda i, j: chance.choice([a, b, 1, 2]) if i == j else 0)
    everywhere = Matrix(k, k, lambda i, j: chance.choice([c, 1, 0]))
    x, y = (Matrix(k, 1, lambda i, j: chance.choice([a, 1, 2])) for _ in range(2))
    whole = blocks(own, everywhere)
    kinds = (Determinant(whole), Trace(Inverse(whole)), Trace(whole*whole),
             KroneckerProduct(row, x.T)*Inverse(whole)*KroneckerProduct(column, y))
    for many in (2, 3):
        made = Matrix(many*k, many*k, lambda i, j: (own[i % k, j % k] if i//k == j//k else 0) + everywhere[i % k, j % k])
        left, right = (Matrix([v]*many) for v in (x, y))
        wanted = (made.det(), made.inv().trace(), (made*made).trace(), (left.T*made.inv()*right))
        for kind, value in zip(kinds, wanted, strict=True):
            found = worked_out(kind).subs(n, many)
            assert check(found, value) and not check(2*found, value), kind


def test_blocks_of_matrices_are_compared_and_have_a_slope():
    own, everywhere = Matrix([[a, b/2], [b/2, a + b]]), Matrix([[c, 1], [1, 2]])
    whole = blocks(own, everywhere)
    inverse = blocks(own.inv(), -own.inv()*everywhere*(own + n*everywhere).inv())
    assert check(Inverse(whole), inverse)
    assert check(Inverse(whole), blocks(own.inv(), -own.inv()*everywhere*own.inv())).status == "fails"
    slope = Subs(Derivative(log(Determinant(whole)), n), n, 0)
    assert check(slope, log(own.det()) + (own.inv()*everywhere).trace())
    assert check(slope, log(own.det()) + (own*everywhere).trace()).status == "fails"
    assert two_numbers(OneMatrix(2*n, 2*n)*whole) is two_numbers(whole + OneMatrix(2*n, 2*n)) is None   # blocks are not told
    assert two_numbers(whole + 2*Identity(2*n))[1] == own + n*everywhere + 2*eye(2)
    assert two_numbers(Inverse(blocks(ones(2, 2), everywhere))) is None
