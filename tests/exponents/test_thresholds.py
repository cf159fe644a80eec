"""1/alpha_c = lambda_max(E[G (x) G]) in several variables: published values, exact relations, and points in the plane."""

import json
from pathlib import Path

import numpy as np
import pytest
from mpmath import mpf
from sympy import Rational, S, Symbol, lambdify, nsimplify, pi, sign, simplify

import hermitex as hx
from hermitex import Channel, parse
from hermitex.exponents.channels import channel
from hermitex.exponents.laws.density import normal_law, push_through_formula
from hermitex.exponents.laws.discrete import exact_atoms
from hermitex.exponents.laws.linearised import label_couplings, largest, sample_law
from hermitex.exponents.laws.product_laws import product_law
from hermitex.exponents.laws.sum_laws import sum_law
from hermitex.exponents.thresholds import weak_recovery
from hermitex.symbolic.budget import budget
from hermitex.symbols import normal as variable
from hermitex.symbols import normals, z1, z2

ROWS = json.loads((Path(__file__).parents[1] / "reference" / "weak_recovery_several.json").read_text())["rows"]
LONG = ("(z1**2 - 1)*(z2**2 - 1)", "Max(0, z1) + Max(0, z2)", "z1*z2*z3*z4", "sign(z1) + sign(z2) + sign(z3)", "Abs(z1*z2*z3)",
        "exp(z1*z2/4)", "exp(z1*z2)", "z1**4 - 6*z1**2 + 3 + sign(z1*z2*z3)")
RELATIVE = mpf(10) ** -9


def threshold(text, law="deterministic", stages=None, names=None):
    g = parse(text, variables=names)
    variables = [variable(n) for n in names] if names else list(normals(g))
    if stages is None:
        stages = [{"order": 2, "directions": np.eye(len(variables), dtype=int).tolist()}]
    return weak_recovery(g, channel(law), variables, stages=stages)


def steps(first, size):
    """The first directions at order one, the rest at order two."""
    rows = np.eye(size, dtype=int).tolist()
    return [{"order": 1, "directions": rows[:first]}, {"order": 2, "directions": rows[first:]}]


# -- reference values --------------------------------------------------------------------------------------------------
def _marked(row):
    name = f"{row['target']} {row['channel']}"
    return pytest.param(row, id=name, marks=[pytest.mark.slow] if row["target"] in LONG else [])


@pytest.mark.parametrize("row", [_marked(r) for r in ROWS])
def test_published(row):
    stages = [{"order": s["order"], "directions": [[nsimplify(x) for x in d] for d in s["directions"]]}
              for s in row["stages"]]
    found = threshold(row["target"], row["channel"], stages, row["variables"])
    assert found.kind == row["class"]
    assert [s["conditional"] for s in found.stages] == [n > 0 for n in range(len(found.stages))]
    if row["alpha_c"] is None:
        assert found.alpha_c is None
        return
    assert abs(found.alpha_c - mpf(row["alpha_c"])) <= RELATIVE * abs(mpf(row["alpha_c"]))
    if row["exact"] is not None:
        assert simplify(found.exact - parse(row["exact"])) == 0
    for stage, value in zip(found.stages, row["sequence"] or [], strict=False):
        assert abs(stage["alpha_c"] - mpf(value)) <= RELATIVE * mpf(value)


# -- exact values ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("text", "law", "expected"), [
    ("sign(z1*z2)", "flip:1/4", "pi**2"),
    ("sign(z1*z2)", "sign:1", "pi**2/(4*erf(sqrt(2)/2)**2)"),
    ("sign(z1 + z2)*sign(z1 - z2)", "deterministic", "pi**2/4"),
    ("sign(z1 + z2)*sign(z1)", "deterministic", "3*pi**2/8"),
    ("sign(z1*z2) + sign(z2*z3) + sign(z3*z1)", "deterministic", "3*pi**2/16"),
    ("sign(z1**2 + z2**2 - 1)", "deterministic", "4*exp(1/2) - 4"),
    ("exp(-z1**2 - z2**2 - z3**2)", "deterministic", "3/2"),
    ("z1**2*sign(z2)**2 + z2**2", "deterministic", "1"),
    ("(1 + sign(z1*z2)/2)/2", "bernoulli", "pi**2"),
    ("z1**2 + z2**2", "random_sign", "1"),
])
def test_exact_values(text, law, expected):
    found = threshold(text, law)
    assert simplify(found.exact - parse(expected)) == 0


def test_bessel_form_of_a_noisy_sign():
    # [Delta/(2 pi) e^(Delta/4) (K_1(Delta/4) - K_0(Delta/4))]^(-2), Delta the variance over the square of the factor.
    expected = parse("(exp(1/48)/(24*pi)*(besselk(1, 1/48) - besselk(0, 1/48)))**(-2)")
    assert abs(threshold("2*z1*z2", "sign:1/3").alpha_c - mpf(str(expected.evalf(30)))) < RELATIVE * 10


@pytest.mark.slow
def test_sum_of_two_products_is_laplace():
    # z1 z2 + z3 z4 has the density exp(-|y|)/2, and E[z_i^2 - 1 | y] = (|y| - 1)/2, E[z1 z2 | y] = y/2, so that
    # 1/alpha_c = E[((|y| - 1)/2)^2] + E[y^2/4] = 1/4 + 1/2.
    assert abs(threshold("z1*z2 + z3*z4").alpha_c - mpf(4) / 3) < 1e-9


# -- exact relations ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("one", "two"), [
    ("z1*z2", "z1**2 - z2**2"),                                  # rotations
    ("(z1 + z2)*(z1 - 2*z2) - z1**2 + 2*z2**2", "z1*z2"),
    pytest.param("z1**4 - z2**4", "z1*z2*(z1**2 + z2**2)", marks=pytest.mark.slow),
    pytest.param("cos(z1 + z2) + cos(z1 - z2)", "cos(z1)*cos(z2)", marks=pytest.mark.slow),
    ("tanh(3*z1*z2 + 1)", "z1*z2"),                              # injective outer functions
    ("exp(Abs(z1) + Abs(z2))", "Abs(z1) + Abs(z2)"),
    ("log(Abs(z1)) + log(Abs(z2))", "Abs(z1*z2)"),
    ("z1**2*z2**2", "Abs(z1*z2)"),
    ("z1**2 + 2*z2**2", "z2**2 + 2*z1**2"),                      # permutations
    ("z1**2*Abs(z2)", "z2**2*Abs(z1)"),
    ("z1**2*sign(z2*z3)", "z1**2"),                              # the sign tells nothing that |z1| does not
])
def test_equal_thresholds(one, two):
    a, b = threshold(one), (threshold(two) if two != "z1**2" else None)
    expected = b.alpha_c if b is not None else mpf("0.5")
    assert abs(a.alpha_c - expected) < RELATIVE * expected


@pytest.mark.parametrize("p", ["1/10", "2/3"])
def test_flips_scale_the_threshold(p):
    clean = threshold("sign(z1**2 - 1)*sign(z2**2 - 1/2)").alpha_c
    noisy = threshold("sign(z1**2 - 1)*sign(z2**2 - 1/2)", f"flip:{p}")
    if noisy.exact is not None:
        # The two labels are not equally likely: compare through E[G (x) G] = H (x) H (1/P_+ + 1/P_-).
        plus = exact_atoms(parse("sign(z1**2 - 1)*sign(z2**2 - 1/2)"), (z1, z2))[1][1][()]
        mean = 2 * plus - 1
        q = 1 - 2 * Rational(p)
        factor = (1 - (q * mean) ** 2) / (q**2 * (1 - mean**2))
        assert abs(noisy.alpha_c - clean * mpf(str(factor.evalf(30)))) < RELATIVE * noisy.alpha_c


@pytest.mark.slow
def test_noise_only_raises_the_threshold():
    values = [threshold("z1**2 + 2*z2**2", law).alpha_c for law in ("deterministic", "gaussian:1/100", "gaussian:1")]
    assert values[0] < values[1] < values[2]


def test_a_known_factor_that_is_often_zero():
    # Given z1 the label shows z2 z3 where z1 > 0 only: half of the information.
    found = threshold("z1 + Max(0, z1)*z2*z3", stages=steps(1, 3))
    assert abs(found.alpha_c - 2 * threshold("z1*z2").alpha_c) < RELATIVE
    assert "lower bound" in found.notes[-1]


def test_a_known_factor_that_is_zero_on_one_step():
    """Given z1 the label shows |z2| unless 0 < z1 < 1: 1/alpha_c = 2 P(z1 outside)."""
    found = threshold("floor(z1)*Abs(z2)", stages=steps(1, 2))
    assert simplify(found.exact - 1/(2 - parse("erf(sqrt(2)/2)"))) == 0


@pytest.mark.parametrize(("text", "expected"), [
    ("z1 + cos(z1)*z2**2", S.Half), ("z1**3 + Abs(z2)", S.Half), ("sinh(z1) + sign(z2*z3)", pi**2 / 4),
    ("z1 - 7*z1**2*sign(z2*z3)", pi**2 / 4),
])
def test_known_parts_are_peeled_off(text, expected):
    size = len(normals(parse(text)))
    assert threshold(text, stages=steps(1, size)).exact == expected


@pytest.mark.parametrize("text", ["Max(z1, z2)", "Min(z1, z2)*3 + z1 + z2"])
def test_conditional_stage_of_an_even_function_of_the_difference(text):
    # max(z1, z2) = (u + |v|)/sqrt(2): given u the label shows |v|.
    found = threshold(text, stages=[{"order": 1, "directions": [[1, 1]]}, {"order": 2, "directions": [[1, -1]]}])
    assert found.exact == S.Half
    assert found.stages[1]["conditional"]


def test_directions_that_the_top_eigenvector_does_not_charge_are_named():
    # G is diagonal, so F(M)_ii = E[G_ii^2] M_ii: z2 is found first, z1 is stable there to first order.
    found = threshold("z1**2 + 2*z2**2")
    assert "z1 later" in found.notes[-1]
    quoted = float(found.notes[-1].partition("at alpha = ")[2].partition(" ")[0])
    law = sum_law(push_through_formula(normal_law(0), z1**2, z1, drop=[(0,)]),
                  push_through_formula(normal_law(1), 2 * z2**2, z2, drop=[(1,)]))
    couplings = label_couplings(law).couplings
    assert abs(quoted * couplings[(0, 0), (0, 0)] - 1) < 1e-9
    assert couplings[(0, 0), (0, 0)] < couplings[(1, 1), (1, 1)]
    assert not threshold("z1*z2 - z1**2*0").notes and not threshold("Abs(z1) + Abs(z2)").notes


@pytest.mark.parametrize("text", ["z1**5*z2", pytest.param("sign(z1*z2)*Abs(z1)*Abs(z2)**(1/5)", marks=pytest.mark.slow)])
def test_powers_of_a_label_have_one_threshold(text):
    """The value is that of an integral along z1 = s, z2 = w/s^(1/5), of an earlier version."""
    found = hx.exponents(text).threshold
    assert abs(float(found.alpha_c) - 0.489906370794217) < min(1e-7, float(found.error) + 1e-11)


# -- third route: labels in bins -----------------------------------------------------------------------------
def grid_estimate(text, law="deterministic", count=1_000_000, bins=400):
    """alpha_c from a million evenly spread points of the plane, with the labels in bins of equal mass."""
    from scipy.special import ndtri

    g = parse(text)
    # The powers of the plastic number spread points evenly without repeating a coordinate, as a square grid would.
    steps = np.arange(1, count + 1)[:, None] * np.array([0.7548776662466927, 0.5698402909980532])
    a, b = ndtri((0.5 + steps) % 1).T
    w = np.full(count, 1 / count)
    y = np.broadcast_to(lambdify((z1, z2), g, modules=["numpy", "scipy"])(a, b), a.shape).astype(float)
    if law == "random_sign":
        y = np.abs(y)
    moments = np.stack([w, (a**2 - 1) * w, a * b * w, (b**2 - 1) * w])
    if law.startswith("gaussian"):
        scale = float(Rational(law.partition(":")[2])) ** 0.5
        edges = np.linspace(np.min(y), min(np.max(y), 40.0), 1500)
        nu = np.stack([np.histogram(y, np.append(edges, np.inf), weights=m)[0] for m in moments])
        t = np.linspace(edges[0] - 6 * scale, edges[-1] + 6 * scale, 1200)
        middle = edges + (edges[1] - edges[0]) / 2
        nu = nu @ np.exp(-((t - middle[:, None]) ** 2) / (2 * scale**2)) * (t[1] - t[0]) / (scale * np.sqrt(2 * np.pi))
    else:
        order = np.argsort(np.round(y, 9), kind="stable")
        y, moments = np.round(y, 9)[order], moments[:, order]
        mass = np.cumsum(moments[0])
        start = np.concatenate([[True], np.diff(y) > 0])
        spot = np.maximum.accumulate(np.where(start, (mass * bins).astype(int), 0))
        cut = np.flatnonzero(np.concatenate([[True], np.diff(spot) > 0]) & start)
        nu = np.add.reduceat(moments, cut, axis=1)
    keys = [(), (0, 0), (0, 1), (1, 1)]
    live = nu[0] > 1e-12
    couplings = {(keys[n], keys[m]): float(np.sum(nu[n, live] * nu[m, live] / nu[0, live]))
                 for n in range(1, 4) for m in range(n, 4)}
    return 1 / largest(couplings, [0, 1])[0]


UNLISTED = [
    ("z1**2 - 2*z2**2", "deterministic"), ("z1**2 + 2*z2**2", "deterministic"), ("z1**2 + z1*z2 + z2**2", "deterministic"),
    ("z1**2*z2**2 + z1**2", "deterministic"), ("cos(z1) + cos(z2)", "deterministic"), ("z1**4 + z2**4", "deterministic"),
    ("cos(z1)*cos(z2)", "deterministic"), ("Abs(z1) - Abs(z2)", "deterministic"), ("z1**2*z2", "deterministic"),
    ("Max(Abs(z1) - 1, 0)*z2", "deterministic"), ("Max(z1**2 - 1, 0) + z2**2", "deterministic"),
    ("Heaviside(Abs(z1) - 1)*z2**2", "deterministic"), ("sin(z1**2 + z2**2)", "deterministic"),
    ("z1*z2 + z1**2*z2**2", "deterministic"), ("exp(-z1**2 - z2**2/2)", "deterministic"),
    ("z1**4 + 2*z1**2*z2**2 + z2**4 - 3*z1**2 - 3*z2**2", "deterministic"), ("sign(z1*z2)*Max(Abs(z1), 1)", "deterministic"),
    ("Piecewise((z1**2, Abs(z1) < 1), (1, True)) + Abs(z2)", "deterministic"), ("z1**2*Abs(z2) - Abs(z2)**3", "deterministic"),
    ("z1**4 - 6*z1**2*z2**2 + z2**4", "deterministic"), ("sign(z1*z2) + sign(Abs(z1) - 1)", "deterministic"),
    ("sign(z1*z2 + z1**3)", "deterministic"), ("z1*z2", "gaussian:1/4"), ("z1**2 + z2**2", "gaussian:1"),
    ("Abs(z1) + Abs(z2)", "gaussian:1/10"), ("z1**2 - Abs(z2)", "random_sign"),
]

BY_POINTS = ("z1**2*Abs(z2) - Abs(z2)**3", "z1**4 - 6*z1**2*z2**2 + z2**4")  # of which no structure is seen


@pytest.mark.slow
@pytest.mark.parametrize(("text", "law"), UNLISTED, ids=[f"{t} {c}" for t, c in UNLISTED])
def test_unlisted_against_a_grid(text, law):
    found = threshold(text, law)
    assert abs(float(found.alpha_c) / grid_estimate(text, law) - 1) < 0.01
    if found.error is not None:
        assert found.error < (1e-4 if text in BY_POINTS else 1e-8) * found.alpha_c


# -- laws --------------------------------------------------------------------------------------------------------------
def test_laws_are_normalised():
    x = variable("z1")
    one, two = push_through_formula(normal_law(0), x**2, x), push_through_formula(normal_law(1), x**2 - x, x)
    for law in (one, two, sum_law(one, two), product_law(one, two)):
        y, nu = sample_law(law, 20)
        assert abs(np.sum(nu[0]) - 1) < 1e-6
        assert len(y) == nu.shape[1]


@pytest.mark.slow
def test_a_target_without_structure_gets_a_few_digits_and_says_so():
    found = threshold("tanh(z1*z2) + z2*z3 + z1**2*z3**2")
    assert 1e-6 < found.error / found.alpha_c < 1e-3
    assert "relative accuracy" in found.notes[0]


def test_an_error_planted_in_a_weight_is_seen():
    x = variable("z1")
    law = sum_law(push_through_formula(normal_law(0), x**2, x, drop=[(0,)]),
                  push_through_formula(normal_law(1), -(x**2), x, drop=[(1,)]))
    good = 1 / largest(label_couplings(law).couplings, [0, 1])[0]
    wrong = sum_law(push_through_formula(normal_law(0), x**2, x, drop=[(0,)]),
                    push_through_formula(normal_law(1), -2 * x**2, x, drop=[(1,)]))
    bad = 1 / largest(label_couplings(wrong).couplings, [0, 1])[0]
    assert abs(good - 0.59375109822225719956) < 1e-10 < abs(bad - good)


# -- what is not reached -----------------------------------------------------------------------------------------------
def test_hard_and_trivial():
    hard = threshold("sign(z1*z2*z3)", stages=[{"order": 3, "directions": np.eye(3, dtype=int).tolist()}])
    assert (hard.kind, hard.alpha_c, hard.stages[0]["alpha_c"]) == ("hard", None, None)
    trivial = threshold("z1 + z2**2*z1", stages=[{"order": 1, "directions": [[1, 0]]}, {"order": 1, "directions": [[0, 1]]}])
    assert (trivial.kind, trivial.alpha_c, trivial.exact) == ("trivial", 0, 0)


def test_a_budget_leaves_an_honest_gap():
    with budget(0.05):
        found = threshold("(z1**2 - 1)*(z2**2 - 1)*(z3**2 - 1)*(z4**2 - 1)")
    assert found.alpha_c is None and found.kind == "easy"
    assert "not reached" in found.notes[0]


def test_a_channel_of_the_users():
    y = Symbol("y", real=True)
    p = parse("(1 + y*sign(z1*z2)/2)/2", symbols={"y": y})
    law = Channel(p, y, support=[-1, 1])
    found = weak_recovery(sign(z1 * z2), law, (z1, z2), stages=[{"order": 2, "directions": [[1, 0], [0, 1]]}])
    assert simplify(found.exact - pi**2) == 0


def test_a_root_of_high_order_is_found():
    """x^3 and its like: a bracketed root by interpolation may take the square of the steps of a bisection."""
    from hermitex.kernels.panel_rules import zeros_on

    grid = np.linspace(-2, 2, 42) + 1e-5
    for n in (1, 3, 5, 9):
        assert zeros_on([lambda x, n=n: (x - 0.3)**n], grid) == pytest.approx([0.3], abs=1e-12)
    assert zeros_on([lambda x: x*x + 1], grid) == []


def test_powers_on_either_side_of_a_known_coordinate():
    """z2^2 and z2^4 both tell |z2| once z1 is known: 1/alpha_c = E[(z^2 - 1)^2] = 2."""
    found = hx.exponents("Piecewise((z2**2, z1 > 1), (z2**4, True))")
    assert (found.leap_exponent, found.generative_exponent) == (2, 2)
    assert [float(s["alpha_c"]) for s in found.threshold.stages] == pytest.approx([0, 0.5], rel=1e-9)


def test_a_library_that_fails_takes_its_part_only(monkeypatch):
    from hermitex.exponents import leap

    def fails(*given, **how):
        raise RuntimeError("Failed to converge\nafter 100 iterations.")

    plain = hx.exponents("z1*z2 + z2**3")
    monkeypatch.setattr(leap.LeapSearch, "_steps", fails)
    found = hx.exponents("z1*z2 + z2**3")
    assert "information exponent and leap: not reached, its computation failed (RuntimeError: Failed to converge after 100 " \
        "iterations.)" in found.notes
    assert found.leap_exponent is None and found.generative_exponent == plain.generative_exponent is not None
    assert repr(found.threshold) == repr(plain.threshold)
