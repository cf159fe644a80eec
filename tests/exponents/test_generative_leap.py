"""The generative staircase in several variables: published rows, unlisted targets beside sums on a grid, and its parts."""

import itertools
import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermeval
from scipy.special import ndtri
from sympy import Rational, exp, sign, sqrt

import hermitex as hx
from hermitex import Channel, parse
from hermitex.errors import BudgetExceeded
from hermitex.exponents.channels import channel
from hermitex.exponents.clock import take_turns
from hermitex.exponents.directions.intervals import Interval, Rank
from hermitex.exponents.directions.invariant_tensors import stabiliser, tensor_space, without_sign
from hermitex.exponents.directions.symmetry import symmetries
from hermitex.exponents.generative_leap import GenerativeSearch
from hermitex.exponents.labels.families import family
from hermitex.exponents.labels.hidden_variables import vanishing_orders
from hermitex.exponents.labels.sign_and_size import finite_values
from hermitex.exponents.leap import LeapSearch
from hermitex.kernels.arrays import lambdify
from hermitex.symbolic.budget import budget, patience
from hermitex.symbolic.subspaces import Matrix, matrix
from hermitex.symbols import normal, normals, z1, z2, z3

TABLE = json.loads((Path(__file__).parents[1] / "reference" / "truth_several_variables.json").read_text())["targets"]


def projector(directions):
    rows = np.atleast_2d(np.array(directions, dtype=float))
    return np.linalg.pinv(rows) @ rows


def stages_of(found):
    return [(s["order"], [[float(x) for x in row] for row in s["directions"].tolist()]) for s in found.stages]


def same(found, stated):
    assert [k for k, _ in found] == [k for k, _ in stated]
    for (_, mine), (_, theirs) in zip(found, stated, strict=True):
        assert np.allclose(projector(mine), projector(theirs), atol=1e-4)


# -- published rows ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("row", [pytest.param(r, id=r["id"]) for r in TABLE])
def test_the_published_staircase(row):
    found = GenerativeSearch(parse(row["target"]), channel(row["channel"]), [normal(v) for v in row["variables"]])()
    assert found.complete and found.leap == row["generative_exponent"]
    same(stages_of(found), [(s["order"], s["directions"]) for s in row["generative_staircase"]])
    assert all(c.status != "undetermined" for c in found.certificates)


# -- a third route: a random family of label maps, stacked, on a grid --------------------------------------------------
SIZES = {1: 400, 2: 120, 3: 36, 4: 18}
FINE = {"sign(z1*z2*z3)*z1**2*exp(-z1**2)": 70}
SMALL = {1: 3e-3, 2: 4e-3, 3: 6e-3, 4: 9e-3}


def points(r, n=None):
    """The midpoints of equally probable cells, in each variable."""
    n = n or SIZES[r]
    q = ndtri((np.arange(n) + 0.5) / n)
    return np.array(np.meshgrid(*[q / np.sqrt((q**2).mean())] * r, indexing="ij")).reshape(r, -1)


def ranked(y):
    """The label through its distribution function, on (-1, 1): the same information, bounded."""
    _, at, counts = np.unique(np.round(y, 9), return_inverse=True, return_counts=True)
    return (2 * (np.cumsum(counts) - counts / 2) / len(y) - 1)[at]


def singular(label_maps, z, known, k):
    """Singular values and directions of the stacked E[T(Y) f(u) He_k(w)], mode-1 fibres as rows."""
    r = len(z)
    frame = np.linalg.qr(np.vstack([known, np.eye(r)]).T)[0]
    u, w = frame[:, :len(known)].T @ z, frame[:, len(known):].T @ z
    weights = [np.ones(z.shape[1])]
    for row in u:
        weights += [row, row**2 - 1, np.sign(row), np.cos(row + 0.3)]
    weights += [f(a * b) for a, b in itertools.combinations(u, 2) for f in (np.sign, np.copy)]
    family_of = np.array([t * f for t in label_maps for f in weights]) / z.shape[1]
    he = [[hermeval(row, [0] * j + [1]) for j in range(k + 1)] for row in w]

    def moments(a):
        return family_of @ np.prod([he[i][n] for i, n in enumerate(a)], axis=0)

    cache = {a: moments(a) for a in itertools.product(range(k + 1), repeat=len(w)) if sum(a) == k}
    rows = [np.stack([cache[tuple(n + (i == j) for j, n in enumerate(b))] for i in range(len(w))], axis=1)
            for b in itertools.product(range(k), repeat=len(w)) if sum(b) == k - 1]
    size, directions = np.linalg.svd(np.vstack(rows), full_matrices=False)[1:]
    return size / np.sqrt(len(family_of)), directions @ frame[:, len(known):].T


def agrees_on_a_grid(labels, variables, stages, n=None):
    """Every order below a stage charges nothing, the stage charges its directions and no others: on the grid."""
    rng, z = np.random.default_rng(1), points(len(variables), n)
    means = [labels.levels] if labels.levels is not None else labels.probabilities[:1]
    y = np.broadcast_to(lambdify(variables, means[0], ["numpy", "scipy"])(*z), z.shape[1:]).astype(float)
    if labels.levels is None:
        maps = [y - y.mean()]
    else:
        y = ranked(y)
        maps = [np.cos(rng.uniform(0, 6) * y + rng.uniform(0, 6)) for _ in range(16)]
    known = np.zeros((0, len(z)))
    for k, directions in stages:
        for below in range(1, k + 1):
            size, found = singular(maps, z, known, below)
            alive = found[size > SMALL[len(z)]]
            if below < k and len(alive):
                return False
        inside = projector(directions)
        if len(alive) != len(directions) or np.abs(alive @ inside - alive).max() > 0.05:
            return False
        known = np.vstack([known, directions])
    return True


UNLISTED = [
    ("Max(z1, z2)", None, "12"), ("Max(z1, z2, z3)", None, "12"), ("z1*z2 + z3", None, "12"),
    ("z1*z2*z3 + z1**2", None, "2"), ("tanh(z1) + tanh(z2)", None, "12"), ("tanh(z1)*tanh(z2)", None, "2"),
    ("sin(z1*z2)", None, "2"), ("exp(z1*z2*z3)", None, "2"), ("sqrt(z1**2 + z2**2)", None, "2"),
    ("cos(z1) + cos(z2)", None, "2"), ("z1**3 + 2*z2**3", None, "1"), ("z1**3 + z2**3", None, "12"),
    ("z1*sign(z2*z3)", None, "22"), ("z1**2*exp(-z1**2)*sign(z2)", None, "14"),
    ("z1**2*exp(-z1**2) + z2**2*exp(-z2**2)", None, "4"),
    ("sign(z1) + 2*sign(z2)", None, "1"), ("Max(0, z1) - Max(0, z2)", None, "1"),
    ("(z1 + z2)**2*sign(z1 - z2)", None, "12"), ("sin(z1*z2)*sign(z3)", None, "21"),
    ("z1*(z1**2 - 3*z2**2)", None, "2"), ("sign(z1*z2*(z1**2 - z2**2))", None, "4"), ("z1/z2", None, "2"),
    ("sign(z1*z2*z3) + sign(z1*z4)", None, "22"), ("z1*z2 + z3*z4", None, "2"), ("floor(z1*z2)", None, "2"),
    ("z1*z2*z3", "gaussian:1/4", "2"), ("z1 + z2**2", "random_sign", "12"), ("z1*z2 + z3", "multiplicative", "2"),
    ("z1**2*z2**2", "poisson", "2"), ("1/2 + tanh(z1)*tanh(z2)/2", "bernoulli", "2"),
    ("1/2 + tanh(z1*z2*z3)/2", "bernoulli", "3"), ("sign(z1*z2*z3)", "flip:1/5", "3"), ("z1*z2*z3", "sign:1", "3"),
    ("Piecewise((z1, z2 > 0), (z3, True))", None, "12"), ("Heaviside(z1 - 1)*z2", None, "1"),
    ("sign(Abs(z1) - 2*Abs(z2))*z3", None, "12"),
    ("1/z1 + z2", None, "1"), ("tan(z1) + z2", None, "1"), ("1/z1 + 1/z2", None, "12"), ("z1/(z2**2 - 1)", None, "12"),
    ("Piecewise((1, z1**2 + z2 > 1), (z1*z2, z2 > 0), (0, True))", None, "1"), ("ceiling(z1)*z2", None, "1"),
]
SLOW = [
    ("exp(z1*z2) + z1*z3", None, "2"), ("1/(z1*z2) + z3", None, "12"), ("tan(z1*z2)", None, "2"),
    ("z4*exp(z1*z2) + z4*z1*z3", None, "12"), ("Max(Min(z1, z2), z3)", None, "12"), ("exp(z1*z2*z3) + z1", None, "12"),
    ("sign(z1*z2)*z3/(1 + z4**2)", None, "22"), ("Piecewise((z1, (z2 > 0) & (z3 > 0)), (z2*z3, True))", None, "12"),
    ("exp(z1**2) + z2", None, "12"), ("exp(z1**2)*z2", None, "12"), ("log(1 + exp(z1)) + log(1 + exp(z2))", None, "12"),
    ("sign(z1 + z2*z3)", None, "12"), ("z1 + z2*z3", "sign:1/2", "12"), ("sign(z1**2 + z2**2 - 2)", None, "2"),
    ("sign(z1**3 - 3*z1 + z2)", None, "11"), ("Piecewise((1, z1*z2 > 1), (0, True))", None, "2"),
    ("sign(sign(z1) + sign(z2) + sign(z3))", None, "12"), ("Max(0, z1) + Max(0, z2) + Max(0, z3) + Max(0, z4)", None, "12"),
    ("sign(z1) + sign(z1 + z2)", None, "12"), ("sin(z1*z2*z3)", "random_sign", "2"),
    ("sign(z1*z2*z3)*z1**2*exp(-z1**2)", None, "3"), ("sign(z1*z2 + z3*z4)", None, "2"), ("sign(z1*(z1**2 - 3*z2**2))", None, "3"),
]


@pytest.mark.parametrize(("text", "law", "orders"), [*UNLISTED, *(pytest.param(*t, marks=pytest.mark.slow) for t in SLOW)])
def test_an_unlisted_target_beside_a_grid(text, law, orders):
    g, law = parse(text), channel(law)
    with patience(9):  # as the clock gives it where the first turns were too short
        found = GenerativeSearch(g, law, normals(g))()
    assert found.complete and "".join(str(s["order"]) for s in found.stages) == orders
    exact = [(s["order"], [[float(x.evalf()) for x in row] for row in s["directions"].tolist()]) for s in found.stages]
    assert agrees_on_a_grid(law.labels(g), normals(g), exact, FINE.get(text))


@pytest.mark.parametrize(("text", "wrong"), [
    ("z1*z2 + z3", [(1, [[0, 0, 1]]), (2, [[1, 0, 0]])]), ("Max(z1, z2)", [(1, [[1, 0]]), (2, [[0, 1]])]),
    ("sign(z1*z2*z3)", [(2, np.eye(3).tolist())]), ("z1**3 - 3*z1 + z2**2", [(2, [[0, 1]]), (1, [[1, 0]])]),
])
def test_the_grid_refuses_a_wrong_staircase(text, wrong):
    g = parse(text)
    assert not agrees_on_a_grid(channel().labels(g), normals(g), wrong)


# -- more variables, conventions ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(("text", "orders", "dimensions"), [
    ("sign(z1*z2*z3*z4*z5)", [5], [5]), ("z1*z2 + z3*z4 + z5*z6", [2], [6]), ("z1 + z2*z3*z4", [1, 2], [1, 3]),
    ("z1**2 + z2**2 + z3**2 + z4**2 + z5**2 + z6**2", [2], [6]), ("tanh(z1 + z2 + z3)", [1], [1]),
])
def test_up_to_six_variables(text, orders, dimensions):
    g = parse(text)
    found = GenerativeSearch(g, channel(), normals(g))()
    assert [s["order"] for s in found.stages] == orders
    assert [s["directions"].rows for s in found.stages] == dimensions


def test_what_the_label_does_not_see_is_no_direction():
    found = GenerativeSearch(z1**2, channel(), (z1, z2))()
    assert [(s["order"], s["directions"].tolist()) for s in found.stages] == [(2, [[1, 0]])]
    assert GenerativeSearch(parse("3"), channel(), (z1, z2))().stages == ()


def test_a_law_of_ones_own():
    from sympy import Symbol, pi, tanh

    y = Symbol("y", real=True)
    density = exp(-(y - z1*z2)**2/2)/sqrt(2*pi)
    found = GenerativeSearch(z1*z2, Channel(density, y), (z1, z2))()
    assert [(s["order"], s["directions"].tolist()) for s in found.stages] == [(2, [[1, 0], [0, 1]])]
    three = Channel(Rational(1, 3) + (1 - 3*y**2/2)*tanh(z1)/6 + y*tanh(z2)/6, y, support=(-1, 0, 1))
    assert [s["order"] for s in GenerativeSearch(z1, three, (z1, z2))().stages] == [1]


def test_a_coincidence_of_constants_is_seen_by_exact_integrals():
    # E[sin(z) z] = e^(-1/2) and E[sin(2z) z] = 2 e^(-2): the difference has no linear part, given the sign of z1 as well.
    # Two labels: the leap of the mean proves it, and the label has no other tensors.
    wave = parse("sin(z2) - exp(3/2)*sin(2*z2)/2")
    both = Rational(1, 2) + sign(z1)/10 + (1 + sign(z1))*wave/20
    for mean, stages in ((Rational(1, 2) + wave/10, [(3, [[0, 1]])]), (both, [(1, [[1, 0]]), (3, [[0, 1]])])):
        leap = LeapSearch(mean, (z1, z2))
        take_turns(*leap.parts)
        found = GenerativeSearch(mean, channel("bernoulli"), (z1, z2), leap.facts)()
        assert [(s["order"], s["directions"].tolist()) for s in found.stages] == stages


def test_no_time_is_an_honest_undetermined():
    g = parse("tanh(z1*z2) + z1*z3")
    search = GenerativeSearch(g, channel(), (z1, z2, z3))
    with budget(1e-9), pytest.raises(BudgetExceeded):
        search()
    found = search.so_far("there was no time")
    assert found.leap is None and not found.complete and "undetermined" in found.notes[0]


# -- the parts ---------------------------------------------------------------------------------------------------------
def test_symmetries_without_their_sign():
    found = without_sign(symmetries(z1**3*z2, (z1, z2)))
    assert all(s.sign == 1 for s in found) and [s.matrix.tolist() for s in found] == [[[-1, 0], [0, -1]]]


def test_the_tensors_that_symmetry_leaves():
    swap = symmetries(sign(z1) + sign(z2), (z1, z2))
    known = Matrix([[1, 1]])
    fixing = [s for s in stabiliser(without_sign(swap), known)]
    assert tensor_space(1, 2, known, fixing, {}).directions.rows == 0
    assert tensor_space(2, 2, known, fixing, {}).directions.tolist() == [[1, -1]]
    assert tensor_space(2, 3, matrix([], 3), (), {1: {2: "hidden"}}).basis != ()


@pytest.mark.parametrize(("text", "muted"), [
    ("z1 + sign(z1*z2)", [2, 4]), ("z1 + Abs(z2)", [1, 3]), ("z1*z2", []), ("z1*z2**2*exp(-z2**2)", [1, 2, 3]),
    ("sign(z1*z2)*z2**2*exp(-z2**2)", [2]), ("z1 + floor(z2)", []), ("z1", [1, 2, 3, 4]),
])
def test_what_is_hidden_of_a_coordinate(text, muted):
    assert sorted(vanishing_orders([parse(text)], z2, 4)) == muted


def test_finite_labels_have_finitely_many_maps():
    law = channel()
    found = family(law.labels(sign(z1) + sign(z2*z3)), law, (z1, z2, z3))
    assert found.complete and [m.words for m in found.members] == ["y", "y**2"]
    assert finite_values(parse("Piecewise((1, z1*z2 > 1), (0, True))*sign(z3)")) == {-1, 0, 1}
    assert not family(law.labels(z1*z2), law, (z1, z2)).complete


def test_a_rank_is_certain_or_not_counted():
    wide = Interval(Fraction(-1), Fraction(1))
    rank, one = Rank(), Interval.exactly(1)
    assert rank.add([one, wide]) and not rank.add([one, wide]) and not rank.add([wide, wide]) and len(rank) == 1


@pytest.mark.parametrize("text", ["z1*z2 + z3", "z1**2 - z2 + z2**2*z3"])
def test_the_modulus_of_a_polynomial_is_shown_by_its_square(text):
    """|p| and p^2 have the same level sets; moments of p^2 are exact, those of |p| took ten times as long, box by box."""
    found = [c for c in hx.exponents(text, "multiplicative").certificates if c.status == "nonzero" and "E[S(u)" in c.quantity]
    assert found and all("exact value" in c.how for c in found)


def test_the_moment_of_a_label_map_is_the_number():
    """E[He_3^3 He_1] = 9*4! + 3*18*2!, from He_3^2 = He_6 + 9 He_4 + 18 He_2 + 6 and He_1 He_3 = He_4 + 3 He_2."""
    assert [c.value for c in hx.exponents("He3(z)").certificates if "label map" in c.how] == [324]
