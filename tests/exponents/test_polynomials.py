"""Polynomials: exact leaps, and the same answer whatever the coordinates."""

import pytest
from sympy import Matrix, Rational, expand, factorial, simplify, sqrt

import hermitex as hx
from hermitex.exponents.directions.regression import Regression
from hermitex.exponents.directions.relevant import relevant_directions
from hermitex.exponents.label import revealed
from hermitex.exponents.leap import leap
from hermitex.symbolic.series.polynomials import multi_indices, to_hermite
from hermitex.symbolic.subspaces import complement, matrix, orthonormal, span, spans_same, stack
from hermitex.symbols import z1, z2

PLAIN = {"He3(z1) + z2**2": [[Rational(3, 5), Rational(4, 5)], [Rational(4, 5), -Rational(3, 5)]],
         "He2(z1) + He4(z2)": [[Rational(3, 5), Rational(4, 5)], [Rational(4, 5), -Rational(3, 5)]],
         "He4(z1) + 2*z2**2": [[1/sqrt(2), 1/sqrt(2)], [1/sqrt(2), -1/sqrt(2)]],
         "z1 + He2(z1)*z2": [[1/sqrt(5), 2/sqrt(5)], [2/sqrt(5), -1/sqrt(5)]],
         "He2(z1)*z2": [[Rational(5, 13), Rational(12, 13)], [Rational(12, 13), -Rational(5, 13)]]}


def turned(text, R):
    """g(R z)."""
    g, R = hx.parse(text), Matrix(R)
    return g.xreplace({v: sum(R[i, j]*w for j, w in enumerate((z1, z2))) for i, v in enumerate((z1, z2))})


@pytest.mark.parametrize("text", PLAIN)
def test_a_rotation_turns_the_answer_and_nothing_else(text):
    R = Matrix(PLAIN[text])
    plain, found = hx.exponents(text), hx.exponents(turned(text, R))
    assert (found.information_exponent, found.leap_exponent, found.generative_exponent) == (
        plain.information_exponent, plain.leap_exponent, plain.generative_exponent)
    assert found.threshold.kind == plain.threshold.kind
    assert float(found.threshold.alpha_c) == pytest.approx(float(plain.threshold.alpha_c), rel=1e-11)
    for stairs, stated in ((found.staircase, plain.staircase), (found.generative_staircase, plain.generative_staircase)):
        assert [s["order"] for s in stairs] == [s["order"] for s in stated]
        for a, b in zip(stairs, stated, strict=True):
            assert spans_same(Matrix(a["directions"]), Matrix(Matrix(b["directions"])*R))


THIRD = [(z1*z2 + z1**3 - sqrt(2)*z2**2, [[1, 1]]), ((z1 + z2)**3/5 + z1, [[1, 0]]), (z1**2*z2**2 + z1*z2**3, []),
         ((z1 + 2*z2)**4 - 54*z1**2, [[2, -1]])]


def charged(g, U, k):
    """The span of the slots outside U of the coefficients of degree k there, by the Hermite expansion over a turned basis."""
    W = orthonormal(complement(U))
    B = stack(orthonormal(U), W)
    whole = to_hermite(expand(g.xreplace(dict(zip((z1, z2), B.T*Matrix([z1, z2]), strict=True)))), z1, z2)
    rows = []
    for b in (b for n in range(8) for b in multi_indices(2, n) if sum(b[U.rows:]) == k - 1):
        more = [tuple(n + (i == j) for j, n in enumerate(b)) for i in range(U.rows, 2)]
        rows.append([whole.get(a, 0)*factorial(a[0])*factorial(a[1]) for a in more])
    rows = [row for row in rows if any(x != 0 for x in row)]
    return span(Matrix(rows)*W) if rows else None


@pytest.mark.parametrize("g, known", THIRD)
def test_the_tensors_are_those_of_the_expansion(g, known):
    U = matrix(known, 2)
    for k in range(1, 5):
        stated, found = charged(g, U, k), Regression(g, (z1, z2)).tensor(U, k)
        assert found.status == ("zero" if stated is None else "nonzero")
        assert stated is None or spans_same(stated, found.directions)


def test_values_of_certificates_are_coefficients():
    found = Regression((z1 + z2)**2 + z1, (z1, z2)).tensor(matrix([[1, 1]], 2), 1)
    # z1 = (u + w)/sqrt(2), so that E[Y He_1(w)] = 1/sqrt(2).
    (proof,) = found.certificates
    assert simplify(proof.value - 1/sqrt(2)) == 0 and "He_1(sqrt(2)*z1/2 - sqrt(2)*z2/2)" in proof.quantity


def test_the_forms_that_are_written_are_the_basis():
    g = hx.parse("3*He3((3*z1 + 4*z2)/5) + 3*((4*z1 - 3*z2)/5)**2")
    assert sorted(len(t.free_symbols) for t in relevant_directions(g, (z1, z2)).inner.args) == [1, 1, 1]
    assert expand(revealed(g, (z1, z2)) - 125*g/3) == 0 and revealed(g, (z1, z2)).has((3*z1/5 + 4*z2/5)**3)


def test_a_form_beside_its_variables_is_exact():
    found = hx.exponents("He3((z1 + 2*z2)/sqrt(5)) + z1*z2*z3")
    assert (found.leap_exponent, found.generative_exponent, found.threshold.kind) == (3, 1, "trivial")
    assert leap(hx.parse("z1*z2*z3*z4 + z1**2"), hx.symbols.normals(hx.parse("z1*z2*z3*z4"))).order == 3


def test_the_theorem_gives_the_generative_leap_where_no_label_map_does(monkeypatch):
    """A polynomial has generative leap <= 2, so that a stage without order 1 settles it."""
    from hermitex.exponents.generative_leap import GenerativeOracle

    monkeypatch.setattr(GenerativeOracle, "_look", lambda *_: None)
    found = hx.exponents("z1*z2*z3")
    assert (found.generative_exponent, found.threshold.kind, found.threshold.alpha_c) == (2, "easy", None)
    other = hx.exponents("He3((z1 + 2*z2)/sqrt(5)) + z1*z2*z3")  # an order 1 that is not shown: 1 or 2
    assert other.generative_exponent is None and other.threshold.kind is None
