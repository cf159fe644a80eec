"""The leap by subspaces and by coordinates: invariance, unlisted targets against quadrature, proofs, refusals."""

from itertools import pairwise, permutations, product

import numpy as np
import pytest
from sympy import Matrix, Rational, expand, sqrt

import hermitex as hx
from hermitex.exponents.directions.regression import Regression
from hermitex.exponents.leap import _LeapOracle, leap
from hermitex.exponents.mean import in_space
from hermitex.symbolic.budget import patience
from hermitex.symbolic.subspaces import matrix, spans_same
from hermitex.symbols import normal, z1, z2, z3


def found(text, r):
    """(information exponent, coordinate leap, leap, [(order, directions)])."""
    answer = leap(hx.parse(text), tuple(normal(f"z{i + 1}") for i in range(r)))
    return (answer.first, answer.coordinate, answer.order,
            [(s["order"], s["directions"]) for s in answer.staircase.stages])


def same(stairs, stated):
    return [k for k, _ in stairs] == [k for k, _ in stated] and all(
        spans_same(Matrix(a), Matrix(b)) for (_, a), (_, b) in zip(stairs, stated, strict=True))


# -- unlisted targets: the statement ----------------------------------------------------------------------------------
E1, E2, E3 = [1, 0, 0], [0, 1, 0], [0, 0, 1]
UNLISTED = [
    ("Max(z1, z2)", 2, 1, 1, 2, [(1, [[1, 1]]), (2, [[1, -1]])]),
    ("sign(z1*z2) + z3", 3, 1, 2, 2, [(1, [E3]), (2, [E1, E2])]),
    ("tanh(z1 + 2*z2)", 2, 1, 1, 1, [(1, [[1, 2]])]),
    ("He2(z1)*z2 + z1", 2, 1, 1, 1, [(1, [[1, 0]]), (1, [[0, 1]])]),
    ("He3(z1 - z2)", 2, 1, 1, 1, [(1, [[1, -1]])]),
    ("He4((z1 + z2)/sqrt(2)) + z3**2", 3, 2, 4, 4, [(2, [E3]), (4, [[1, 1, 0]])]),
    ("(z1 + z2)/sqrt(2) + (z1 - z2)**2/2", 2, 1, 1, 2, [(1, [[1, 1]]), (2, [[1, -1]])]),
    ("relu(z1) - relu(z2)", 2, 1, 1, 1, [(1, [[1, -1]]), (1, [[1, 1]])]),
    ("tanh(z1) + tanh(z2)", 2, 1, 1, 2, [(1, [[1, 1]]), (2, [[1, -1]])]),
    ("tanh(z1) + 2*tanh(z2)", 2, 1, 1, 1, [(1, [[1, 2]]), (1, [[2, -1]])]),
    ("sign(z1**2 - z2**2)", 2, 2, 2, 2, [(2, [[1, 0], [0, 1]])]),
    ("sign(z1 + z2)*sign(z1 - z2)*z3", 3, 3, 3, 3, [(3, [E1, E2, E3])]),
    ("He2(z1) + sign(z1*z2*z3)", 3, 2, 2, 2, [(2, [E1]), (2, [E2, E3])]),
    ("z3 + He3(z3)*z1 + He3(z1)*z2", 3, 1, 1, 1, [(1, [E3]), (1, [E1]), (1, [E2])]),
    ("cos(z1 + z2)*z3", 3, 1, 2, 2, [(1, [E3]), (2, [[1, 1, 0]])]),
    ("relu(z1)*relu(z2)", 2, 1, 1, 2, [(1, [[1, 1]]), (2, [[1, -1]])]),
    ("1/(1 + z1**2 + z2**2)", 2, 2, 2, 2, [(2, [[1, 0], [0, 1]])]),
    ("Piecewise((z1, z2 > 0), (-z1, True))", 2, 2, 2, 2, [(2, [[1, 0], [0, 1]])]),
    ("tanh(z1*z2*z3)", 3, 3, 3, 3, [(3, [E1, E2, E3])]),
    ("z1*z2 + z3*z4", 4, 2, 2, 2, [(2, np.eye(4, dtype=int).tolist())]),
    ("sign(z1) + z1*z2 + sign(z3*z4)", 4, 1, 2, 2,
     [(1, [[1, 0, 0, 0]]), (1, [[0, 1, 0, 0]]), (2, [[0, 0, 1, 0], [0, 0, 0, 1]])]),
    ("floor(z1*z2*z3)", 3, 3, 3, 3, [(3, [E1, E2, E3])]),
    ("floor(2*z1*z2*z3 + 1/2)", 3, 3, 3, 3, [(3, [E1, E2, E3])]),
    ("ceiling(z1*z2) + floor(z3)", 3, 1, 2, 2, [(1, [E3]), (2, [E1, E2])]),
    ("floor(z1)*floor(z2)", 2, 1, 1, 2, [(1, [[1, 1]]), (2, [[1, -1]])]),
    ("1/(1 + exp(-z1*z2*z3))", 3, 3, 3, 3, [(3, [E1, E2, E3])]),
    ("z1*z2*z3*z4*z5*z6", 6, 6, 6, 6, [(6, np.eye(6, dtype=int).tolist())]),
]


# Integrals without closed form take a second each.
SLOW = ("tanh(z1) + ", "1/(1", "tanh(z1*z2*z3)", "sign(z1 + z2)*")


@pytest.mark.parametrize("text, r, first, coordinate, order, stairs", [
    pytest.param(*row, id=row[0], marks=pytest.mark.slow if row[0].startswith(SLOW) else ()) for row in UNLISTED])
def test_unlisted(text, r, first, coordinate, order, stairs):
    answer = found(text, r)
    assert answer[:3] == (first, coordinate, order) and same(answer[3], stairs)


# -- third route: tensors by quadrature, the recursion by singular values ----------------------------------------------
def tensors_on_a_grid(text, r, top):
    """C_n for n <= top by Gauss-Legendre panels that meet at the axes."""
    nodes, weights = np.polynomial.legendre.leggauss(28)
    edges = [-8, -4, -2, 0, 2, 4, 8]
    x = np.concatenate([(b - a)/2*nodes + (a + b)/2 for a, b in pairwise(edges)])
    w = np.concatenate([(b - a)/2*weights for a, b in pairwise(edges)])*np.exp(-x**2/2)/np.sqrt(2*np.pi)
    grid = np.meshgrid(*[x]*r, indexing="ij")
    names = [f"z{i + 1}" for i in range(r)]
    values = hx.compile(hx.parse(text))(**dict(zip(names, grid, strict=True)))
    He = [np.ones_like(x), x]
    for k in range(1, top):
        He.append(x*He[k] - k*He[k - 1])
    coefficient = {}
    for a in product(range(top + 1), repeat=r):
        if sum(a) <= top:
            c = values
            for k in reversed(a):
                c = c @ (He[k]*w)
            coefficient[a] = c
    found = {}
    for n in range(1, top + 1):
        C = np.empty((r,)*n)
        for slots in product(range(r), repeat=n):
            C[slots] = coefficient[tuple(slots.count(i) for i in range(r))]
        found[n] = C
    return found


def leap_by_singular_values(C, r, tolerance):
    """[(k, projector on U_{t+1})]: blocks of C_n with k slots outside U, their column space."""
    U, stairs = np.zeros((0, r)), []
    while len(U) < r:
        inside = U.T @ U
        outside = np.eye(r) - inside
        for k in range(1, max(C) + 1):
            columns = []
            for n in range(k, max(C) + 1):
                block = C[n]
                for slot in range(n):
                    P = outside if slot < k else inside
                    block = np.moveaxis(np.tensordot(P, block, axes=(1, slot)), 0, slot)
                columns.append(block.reshape(r, -1))
            left, size, _ = np.linalg.svd(np.hstack(columns))
            new = left[:, :len(size)][:, size > tolerance].T
            if len(new):
                U = np.linalg.svd(np.vstack([U, new]))[2][:len(U) + len(new)]
                stairs.append((k, U.T @ U))
                break
        else:
            break
    return stairs


NUMERIC = ["Max(z1, z2)", "He2(z1)*z2 + z1", "relu(z1) - relu(z2)", "tanh(z1) + 2*tanh(z2)", "relu(z1)*relu(z2)",
           "z1**2*z2 + z2**2*z1", "sign(z1) + abs(z2)", "gelu(z1) + gelu(z2)", "sigmoid(z1)*z2", "tanh(z1*z2)",
           "exp(-(z1 - z2)**2) + z1", "sin(z1)*cos(z2)"]


@pytest.mark.parametrize("text", [pytest.param(t, marks=() if i < 6 else pytest.mark.slow) for i, t in enumerate(NUMERIC)])
def test_against_quadrature(text):
    answer = found(text, 2)
    numeric = leap_by_singular_values(tensors_on_a_grid(text, 2, 6), 2, 2e-3)
    assert [k for k, _ in answer[3]] == [k for k, _ in numeric]
    rows = np.zeros((0, 2))
    for (_, directions), (_, projector) in zip(answer[3], numeric, strict=True):
        rows = np.vstack([rows, np.array(directions.evalf(20), dtype=float)])
        assert np.allclose(np.linalg.pinv(rows) @ rows, projector, atol=5e-3)


def test_a_spoiled_tensor_is_seen():
    """One entry of C_1 moved by 0.3 turns the first direction away from (1, 1)."""
    C = tensors_on_a_grid("sign(z1) + sign(z2)", 2, 5)
    right = leap_by_singular_values(C, 2, 2e-3)
    assert [k for k, _ in right] == [1, 2] == [k for k, _ in found("sign(z1) + sign(z2)", 2)[3]]
    spoiled = {**C, 1: C[1] + np.array([0.3, 0.0])}
    assert not np.allclose(leap_by_singular_values(spoiled, 2, 2e-3)[0][1], right[0][1])


# -- identities --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("text", ["z1*z2 + z3", "He3(z1) + z2**2", "z1 + He2(z1)*z2 + z3**2", "z1*z2*z3"])
def test_rotation_invariance(text):
    """The leap and the staircase of g(R z) are those of g, its directions rotated; the coordinate leap is at most that."""
    R = Matrix([[1, 2, 2], [2, 1, -2], [2, -2, 1]])/3
    g, zs = hx.parse(text), Matrix([z1, z2, z3])
    moved = expand(g.subs(dict(zip((z1, z2, z3), R*zs, strict=True)), simultaneous=True))
    plain, rotated = leap(g, (z1, z2, z3)), leap(moved, (z1, z2, z3))
    assert rotated.order == plain.order and rotated.coordinate <= rotated.order
    for a, b in zip(plain.staircase.stages, rotated.staircase.stages, strict=True):
        assert a["order"] == b["order"] and spans_same(Matrix(a["directions"]*R), b["directions"])


@pytest.mark.parametrize("order", list(permutations("123"))[1:4])
def test_permuted_parities(order):
    a, b, c = (f"z{i}" for i in order)
    answer = found(f"He2({a}) + sign({a}*{b}*{c})", 3)
    first = [int(i + 1 == int(order[0])) for i in range(3)]
    rest = [[int(i + 1 == int(k)) for i in range(3)] for k in order[1:]]
    assert answer[:3] == (2, 2, 2) and same(answer[3], [(2, [first]), (2, rest)])


def test_scaling_and_shifting_the_label_changes_nothing():
    assert found("3*sign(z1*z2) + 3*z3 - 7", 3)[:3] == found("sign(z1*z2) + z3", 3)[:3]


# -- proofs ------------------------------------------------------------------------------------------------------------
def test_every_stage_has_its_proof():
    answer = leap(hx.parse("sign(z1*z2) + z3"), (z1, z2, z3))
    proofs = [(c.quantity, c.order, c.status) for c in answer.staircase.certificates]
    assert proofs == [("c_(0,0,1)", (0, 0, 1), "nonzero"), ("C_1 given z3", 1, "zero"), ("c_(1,1,0)", (1, 1, 0), "nonzero")]


def test_an_integral_without_closed_form_is_enclosed():
    (proof,) = [c for c in leap(hx.parse("tanh(z1)*z2"), (z1, z2)).staircase.certificates if c.status == "nonzero"]
    assert proof.order == (1, 1) and abs(float(proof.enclosure[0]) - 0.605705509602) < 1e-12


@pytest.mark.parametrize(("text", "names", "charged"), [
    ("1/(1 + exp(-z))", (normal("z"),), "c_1"), ("tanh(z1)*tanh(z2)", (z1, z2), "c_(1,1)")])
def test_whatever_way_was_in_time_a_proof_speaks_of_the_mean(text, names, charged):
    """A single moment E[T(Y) He_a] of T(y) = y is c_a: else `explain` lists it under the generative exponent."""
    with patience(1e-3):
        proofs = leap(hx.parse(text), names).staircase.certificates
    assert charged in {c.quantity for c in proofs} <= {charged, "C_1", "C_2"}
    assert not any("label map" in c.how for c in proofs)


@pytest.mark.parametrize(("text", "first"), [
    ("Piecewise((z1, z3 > 1/2), (z2, True))", [1, 2.2410971, 0]), ("Heaviside(z1 - 1/2)*z2 + z3 + z1*z3", [0, 1, 3.2410965])])
def test_a_direction_with_transcendental_entries_leaves_short_ones_beside_it(text, first):
    """P(z > 1/2) stands in the first direction: its length, and what is left beside it, hold no root within a root."""
    information, coordinate, order, stairs = found(text, 3)
    assert (information, coordinate, order) == (1, 1, 1) and sum(rows.rows for _, rows in stairs) == 3
    assert np.allclose(np.array(stairs[0][1].evalf(), dtype=float), [first], atol=1e-6)


def test_a_direction_that_is_an_integral():
    """C_1 of tanh(z1) + erf(z2) is (E z tanh z, 2/sqrt(3 pi)): a direction without closed form, exact all the same."""
    stairs = found("tanh(z1) + erf(z2)", 2)[3]
    assert [k for k, _ in stairs] == [1, 1]
    ratio = (stairs[0][1][1]/stairs[0][1][0]).evalf(20)
    assert abs(float(ratio) - (2/np.sqrt(3*np.pi))/0.605705509602158) < 1e-9


def test_the_order_is_shown_where_its_directions_stay_open():
    proofs = _LeapOracle(hx.parse("relu(relu(z1) - relu(z2))"), (z1, z2))._risen(1)  # the sizes of both are open
    assert [(p.order, p.status) for p in proofs] == [((1, 0), "nonzero"), ((0, 1), "nonzero")]


def test_no_time_is_undetermined():
    answer = hx.exponents("tanh(z1*z2 + z1**2) + z3", budget=1e-6)
    assert answer.leap_exponent is None and any("budget" in n for n in answer.notes)


# -- square integrability ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("text, l1, l2", [
    ("exp(z1*z2/4)", True, True), ("exp(z1*z2/2)", True, False), ("exp(z1*z2)", False, False),
    ("abs(z1)**(-1/3)*z2", True, True), ("abs(z1)**(-1/2)*z2", True, False), ("abs(z1)**(-1)*z2", False, False),
    ("exp(z1**2/5) + sign(z2)", True, True), ("exp(z1**2/3)*abs(z2)", True, False), ("log(abs(z1*z2))", True, True),
    ("exp(z1*z2) + z3", False, False), ("tanh(exp(z1*z2))", True, True), ("z1*z2/(z1**2 + z2**2)", True, True),
    ("z1**2/(z1**2 + z2**2)", True, True), ("z1/sqrt(1 + z1**2)*z2", True, True), ("1/(z1**2 + z2**2)", False, False),
    ("z1/(z1**2 + z2**2)", None, None), ("z1*z2*z3/(z1**2 + z2**2)", True, True),
    ("z1*z2/sqrt(z1**2 + z2**2)", True, True)])
def test_square_integrability(text, l1, l2):
    g = hx.parse(text)
    assert in_space(g, (z1, z2, z3), 1) is l1 and in_space(g, (z1, z2, z3), 2) is l2


def test_what_is_not_in_l2_has_no_leap_but_its_label_has():
    answer = hx.exponents("exp(z1*z2/2)").to_dict()
    assert answer["square_integrable"] is False and answer["information_exponent"] is answer["leap_exponent"] is None
    assert answer["generative_exponent"] == 2 and any("L1 but not in L2" in n for n in answer["notes"])


def test_constants_keep_their_exact_form():
    directions = found("z1 + sqrt(2)*z2 + z2**2", 2)[3][0][1]
    assert directions == Matrix([[1, sqrt(2)]]) and Rational(1, 2)*directions[0] == Rational(1, 2)


def test_an_even_function_that_is_constant_at_a_few_points_is_not_centred():
    """sign Re (z1 + i z2)^4 is 1 at many points, and even: it is no constant beside what is odd."""
    from hermitex.exponents.directions.symmetry import centre_target

    z1, z2 = hx.symbols.z1, hx.symbols.z2
    g = hx.parse("sign(z1**4 - 6*z1**2*z2**2 + z2**4)")
    assert centre_target(g, (z1, z2)) == g
    assert centre_target(hx.parse("floor(z1*z2)"), (z1, z2)) == hx.parse("floor(z1*z2) + 1/2")


def test_directions_that_are_integrals_are_climbed_from():
    """C_2 charges z1 and a z2 + b z3, a = E[z1 z2 tanh(z1 z2)], b = sqrt(2/pi); what is left is a block of C_4, not of C_3."""
    oracle = Regression(hx.parse("tanh(z1*z2) + z3*sign(z1)"), (z1, z2, z3))
    first = oracle.tensor(matrix([], 3), 2)
    assert first.status == "nonzero" and first.directions.rows == 2
    second = oracle.tensor(first.directions, 1)
    assert second.status == "nonzero" and second.directions.rows == 1


@pytest.mark.slow
def test_a_fractional_part_is_bounded_and_rises_a_little():
    """E[frac(z1) |z2|] = sqrt(2/pi)/2; E[z1 frac(z1)] = 1 - sum_k phi(k) = -5e-9 is not zero either."""
    found = hx.exponents("frac(z1)*sign(z2)")
    assert [(s["order"], s["directions"]) for s in found.staircase] == [(1, [[0, 1]]), (1, [[1, 0]])]
    assert [(s["order"], s["directions"]) for s in found.generative_staircase] == [(1, [[1, 0], [0, 1]])]
