"""The recursion over an oracle, the relevant subspace, and the symmetries that prove zeros."""


import pytest
from sympy import Abs, Matrix, Max, cos, exp, eye, sign, sin, sqrt, tanh

import hermitex as hx
from hermitex.errors import BudgetExceeded, NoClosedForm
from hermitex.exponents.directions.relevant import relevant_directions
from hermitex.exponents.directions.staircase import Climb, Evidence
from hermitex.exponents.directions.symmetry import sign_flips, symmetries, symmetry_of
from hermitex.face import cli
from hermitex.symbolic.subspaces import spans_same
from hermitex.symbols import z1, z2, z3, z4


class Scripted:
    """An oracle that answers from a table {(directions known, order): evidence}; zero elsewhere."""

    def __init__(self, table):
        self.table = table

    def tensor(self, known, k):
        found = self.table.get((known.rows, k), Evidence("zero"))
        if isinstance(found, Exception):
            raise found
        return found


def nonzero(*rows):
    return Evidence("nonzero", Matrix(rows))


def staircase(table, size):
    """As far as it goes."""
    climb = Climb(Scripted(table), size, name="test")
    try:
        return climb()
    except BudgetExceeded as err:
        return climb.so_far(str(err))


# -- the recursion -----------------------------------------------------------------------------------------------------
def test_stages_are_what_is_new():
    found = staircase({(0, 2): nonzero([1, 1, 0], [2, 2, 0]), (1, 1): nonzero([1, 0, 5])}, 3)
    assert found.complete is False and found.leap is None and found.first == 2   # the third direction is never charged
    assert [s["order"] for s in found.stages] == [2, 1]
    assert found.stages[0]["directions"] == Matrix([[1, 1, 0]])
    assert spans_same(found.stages[1]["directions"], Matrix([[1, -1, 10]]))      # orthogonal to (1, 1, 0)
    assert "orders 1 to" in found.notes[0]


def test_it_ends_when_nothing_is_left():
    found = staircase({(0, 1): nonzero([1, 0]), (1, 3): nonzero([0, 1])}, 2)
    assert found.complete and found.leap == 3 and found.first == 1 and found.notes == ()


@pytest.mark.parametrize("evidence", [Evidence("undetermined", note="too hard"), NoClosedForm("f", "too hard"),
                                      BudgetExceeded(1, "too hard"), nonzero([1, 0])])
def test_a_stage_that_is_not_decided_ends_it(evidence):
    """Undetermined, an error, no time, or an oracle that contradicts itself: no leap is claimed."""
    found = staircase({(0, 1): nonzero([1, 0]), (1, 2): evidence}, 2)
    assert found.leap is None and len(found.stages) == 1 and found.notes[0].startswith("test: undetermined")


# -- the relevant subspace ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("g, variables, inner, rows", [
    (z1**2, (z1, z2), z1**2, [[1, 0]]),
    (tanh(z1 + z2), (z1, z2), tanh(sqrt(2)*z1), [[sqrt(2)/2, sqrt(2)/2]]),
    (sign(z1**2 - z2**2), (z1, z2), sign(z1*z2), [[sqrt(2)/2, -sqrt(2)/2], [sqrt(2)/2, sqrt(2)/2]]),
    (Max(z1, z2), (z1, z2), Max(z1, z2), [[1, 0], [0, 1]]),
    (z3*sign(z1 + z2), (z1, z2, z3, z4), z3*sign(z1), [[sqrt(2)/2, sqrt(2)/2, 0, 0], [0, 0, 1, 0]])])
def test_the_relevant_subspace(g, variables, inner, rows):
    found = relevant_directions(g, variables)
    assert found.inner == inner and found.basis == Matrix(rows)
    assert (found.basis*found.basis.T) == Matrix(eye(found.dimension))
    back = found.inner.xreplace({n: sum(c*v for c, v in zip(row, variables, strict=True))
                                 for n, row in zip(found.names, found.basis.tolist(), strict=True)})
    for point in ((0.3, -1.2, 0.7, 2.1), (-0.4, 0.9, 1.3, -0.6)):
        values = dict(zip(variables, point, strict=False))
        assert abs(float(back.subs(values)) - float(g.subs(values))) < 1e-12


def test_what_is_irrelevant_is_named():
    assert relevant_directions(z1 + z3**2, (z1, z2, z3)).irrelevant == (z2,)
    assert relevant_directions(tanh(z1 - z2), (z1, z2)).irrelevant == ()
    assert relevant_directions(sin(z1)**2 + cos(z1)**2, (z1, z2)).dimension <= 1
    several = relevant_directions((z1*z2, sign(z3)), (z1, z2, z3, z4))
    assert several.dimension == 3 and several.irrelevant == (z4,)


def test_one_direction_is_answered_by_one_variable():
    found = hx.exponents("He3((z1 + z2)/sqrt(2))", variables=("z1", "z2", "z3"))
    assert (found.information_exponent, found.leap_exponent, found.generative_exponent) == (3, 3, 1)
    assert found.to_dict()["staircase"] == [{"order": 3, "directions": [[1, 1, 0]]}]
    assert any("does not depend on z3" in n for n in found.notes)


# -- symmetries --------------------------------------------------------------------------------------------------------
def test_sign_flips():
    found = {s.flips: s.sign for s in sign_flips(sign(z1*z2*z3), (z1, z2, z3))}
    assert found == {(1, 1, -1): -1, (1, -1, 1): -1, (-1, 1, 1): -1}
    assert [s.flips for s in sign_flips(z1**3*Abs(z2), (z1, z2))] == [(1, -1), (-1, 1)]
    assert sign_flips(z1 + z1**2, (z1,)) == () == sign_flips(exp(z1) + z2, (z1, z2))


def test_permutations_and_reflections():
    swap = Matrix([[0, 1], [1, 0]])
    assert symmetry_of(Max(z1, z2), (z1, z2), swap).sign == 1
    assert symmetry_of(tanh(z1) - tanh(z2), (z1, z2), swap).sign == -1
    assert symmetry_of(z1 + 2*z2, (z1, z2), swap) is None
    pairs = symmetries(sign(z1*z2) + sign(z3*z4), (z1, z2, z3, z4))
    assert any(s.matrix == Matrix([[0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0]]) for s in pairs)
    # a reflection that is no permutation: in the form z1 + 2 z2
    assert any(s.matrix.det() == -1 and s.sign == -1 for s in symmetries(tanh(z1 + 2*z2), (z1, z2)))


@pytest.mark.parametrize("g", [z1 + z2/10**6, z1*z2 + z1/10**9, Abs(z1) + Abs(z2)*(1 + sqrt(2)/10**12)])
def test_what_is_nearly_symmetric_is_not(g):
    assert symmetry_of(g, (z1, z2), Matrix([[0, 1], [1, 0]])) is None


def test_every_symmetry_is_one():
    g = Abs(z1 - z2)*sign(z3) + z3**3
    for s in symmetries(g, (z1, z2, z3)):
        point = Matrix([0.3, -1.1, 0.8])
        here, there = (float(g.subs(dict(zip((z1, z2, z3), p, strict=True)))) for p in (point, s.matrix*point))
        assert abs(there - s.sign*here) < 1e-12


# -- the face ----------------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_the_table_of_the_slides(capsys):
    targets = ["z", "z**2", "z**3 - 3*z", "z1*z2", "z1*z2*z3", "sign(z1*z2*z3)"]
    assert cli.main(["exponents", *targets]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split()[0] == "target" and len(lines) == 6
    for line, words in zip(lines, (("d", "d", "d"), ("d^2", "d log d", "1/2"), ("d^3", "d^2", "trivial"),
                                   ("d^2", "d log d", "0.59375"), ("d^3", "d^2", "2.56518"), ("none", "d^2", "hard")),
                           strict=True):
        assert all(w in line for w in words)


def test_the_first_question(capsys):
    assert cli.main(["exponents", "He3(z)", "z**2", "sign(z1*z2*z3)", "sign(z1*z2*z3) + He4(z1)"]) == 0
    rows = [line.split("  ") for line in capsys.readouterr().out.splitlines()]
    rows = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    column = {name: i for i, name in enumerate(rows[0])}
    wanted = ("information", "leap", "generative", "one-pass SGD", "reusing data")
    assert [[row[column[w]] for w in wanted] for row in rows[1:]] == [
        ["3", "3", "1", "d^2", "d"], ["2", "2", "2", "d log d", "d log d"], ["3", "3", "3", "d^2", "open"],
        ["3", "3", "2", "d^2", "d log d"]]


def test_the_staircase_is_explained(capsys):
    assert cli.main(["exponents", "sign(z1) + sign(z2)", "--explain"]) == 0
    out = capsys.readouterr().out
    for words in ("leap: 2", "coordinate leap: 1", "staircase: 1: z1 + z2;  2: z1 - z2", "generative leap: 2", "Abbe", "Dandi",
                  "Damian", "Troiani", "C_1 = 0 once z1 + z2 is known", "stage z1 - z2: alpha_c = 1.43083366052"):
        assert words in out
    found = hx.exponents("sign(z1) + sign(z2)")
    assert repr(found).startswith("Exponents(sign(z1) + sign(z2): information 1, leap 2, generative 2, easy")
    html = found._repr_html_()
    assert html.count("<table") == html.count("</table>") == 3 and "staircase" in html
    assert "abbe" in found.bibtex().lower()


def test_the_first_component_of_every_direction_is_positive():
    found = hx.exponents("sigmoid(z)", "bernoulli")  # written with exp(-z)
    assert found.staircase[0]["directions"] == [[1]]
    slanted = hx.exponents("abs(z1)", covariance=[[1, "-1/2"], ["-1/2", 1]], variables="z1,z2")
    assert slanted.generative_staircase[0]["directions"] == [[1, 0]]
