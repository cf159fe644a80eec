"""upper = E(g - b mu_0)^2, lower = E(g - b_0 mu_0 - b_1 kappa mu_1)^2 - ..., their minima, their functions, their closed forms."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hermitex as hx
from hermitex.errors import BadInput
from hermitex.theories.risks.minimum import find_infimum
from hermitex.theories.risks.projection import Target

REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "one_step_bounds.json").read_text())
bounds = hx.theories.bounds
AT = st.tuples(st.floats(0.1, 3), st.floats(0.2, 3), st.floats(-1, 1))


def close(a, b):
    return a == pytest.approx(b, rel=1e-9, abs=1e-12)


# -- reference values --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("row", REFERENCE["bounds"], ids=lambda row: f"{row['sigma']}-{row['g']}-{row['gamma']}")
def test_published_bounds(row):
    found = bounds(row["sigma"], row["g"], r=row["r"], c=row["c"], gamma=row["gamma"])
    assert close(found.upper, row["upper"]) and close(found.lower, row["lower"])
    assert close(found.coefficients["b1"], row["b1_upper"])
    np.testing.assert_allclose(found.coefficients["b"], row["b"], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("row", REFERENCE["bounds28"], ids=lambda row: f"{row['sigma']}-{row['g']}")
def test_published_minima_over_the_learning_rate(row):
    found = bounds(row["sigma"], row["g"], optimise=True)
    for which in ("upper", "lower"):
        if row[f"r_{which}"] is None:
            assert found.optimum[f"r_{which}"] is None and any("infinity" in n and which in n for n in found.notes)
            # The sheet's values at r = 30 are good to 4e-10, as the other route below shows.
            at_30 = getattr(bounds(row["sigma"], row["g"], r=30), which)
            assert at_30 == pytest.approx(row[which], abs=1e-9) and getattr(found, which) < at_30
        else:
            assert getattr(found, which) == pytest.approx(row[which], abs=1e-9)
            assert found.optimum[f"r_{which}"] == pytest.approx(row[f"r_{which}"], abs=1e-6)
    if "etat_over_beta_upper" in row:
        assert found.optimum["eta_over_beta_upper"] == pytest.approx(row["etat_over_beta_upper"], rel=1e-6)


@pytest.mark.parametrize("row", REFERENCE["bias132"], ids=lambda row: f"{row['sigma']}-{row['g']}")
def test_published_minima_over_the_bias(row):
    found = bounds(row["sigma"], row["g"], r=row["r"], c=row["c"], bias=True)
    assert close(found.lower, row["lower_nobias"]) and found.lower_bias == pytest.approx(row["lower_bias"], abs=1e-9)
    assert found.b_lower == pytest.approx(row["best_bias"], abs=1e-6)
    assert found.upper_bias <= found.upper + 1e-15


def test_odd_activations_of_their_own_kind_reach_zero():
    for f, r in (("erf", 3**0.5), ("sin", 1.0)):
        found = bounds(f, f, optimise=True)
        assert found.upper < 1e-15 and found.lower < 1e-15
        assert found.optimum["r_upper"] == pytest.approx(r, abs=1e-6)
    assert bounds("erf", "erf", optimise=True).optimum["eta_over_beta_upper"] == pytest.approx(4.0810, abs=1e-4)


# -- a third route -----------------------------------------------------------------------------------------------------
def panels(kinks, reach, step=0.5):
    """Gauss panels that end at the kinks: nodes and weights of N(0, 1)."""
    t, w = np.polynomial.legendre.leggauss(20)
    ends = np.unique(np.append(np.arange(-reach, reach + step/2, step), [k for k in kinks if abs(k) < reach]))
    half = np.diff(ends)[:, None]/2
    x = (ends[:-1, None] + half*(1 + t)).ravel()
    return x, (half*w).ravel()*np.exp(-x*x/2)/np.sqrt(2*np.pi)


def by_differences(functions, at, kinks):
    """(upper, lower) as the paper writes them, E g^2 less what is explained, each average by its own Gauss panels."""
    (sigma, g), (r, c, gamma), (of_sigma, of_g) = functions, at, kinks
    s, rho = np.sqrt(c), np.sqrt(1 - gamma**2)
    kappa, w = panels((), 9)
    rows = []
    for k in kappa:
        z, v = panels([(p - r*k)/s for p in of_sigma], 11)
        t, u = panels([(p - gamma*k)/rho for p in of_g], 11)
        features, labels = sigma(r*k + s*z), g(gamma*k + rho*t)
        rows.append((v @ features, v @ (z*features)/s, u @ labels, u @ (t*labels)))
    m0, m1, h, h1 = np.array(rows).T
    z, v = panels(of_g, 11)
    total = v @ g(z)**2
    G = np.array([[w @ (a*b) for a in (m0, kappa*m1)] for b in (m0, kappa*m1)])
    y = np.array([w @ (a*h) for a in (m0, kappa*m1)])
    return total - y[0]**2/G[0, 0], total - y @ np.linalg.solve(G, y) - (w @ (m1*h1))**2/(w @ (m1*m1))


def test_a_sharp_feature_by_another_route():
    (kappa, w), (z, v) = panels((0,), 9, step=0.1), panels((), 11)
    mu_0 = np.tanh(30*kappa[:, None] + z) @ v
    assert bounds("tanh", "sign", r=30).upper == pytest.approx(1 - (w @ (mu_0*np.sign(kappa)))**2/(w @ mu_0**2), rel=1e-11)


@pytest.mark.parametrize("sigma, g, at, functions, kinks", [
    ("z*tanh(softplus(z))", "relu(z - 1) + sin(z)", (1.3, 0.6, 0.7),
     (lambda u: u*np.tanh(np.log1p(np.exp(u))), lambda u: np.maximum(u - 1, 0) + np.sin(u)), ((), (1,))),
    ("Piecewise((z**2, z > 0), (-tanh(z), True))", "abs(z)*cos(z)", (0.8, 1.4, -0.5),
     (lambda u: np.where(u > 0, u*u, -np.tanh(u)), lambda u: np.abs(u)*np.cos(u)), ((0,), (0,)))])
def test_unlisted_functions_by_another_route(sigma, g, at, functions, kinks):
    found = bounds(sigma, g, r=at[0], c=at[1], gamma=at[2])
    upper, lower = by_differences(functions, at, kinks)
    assert found.upper == pytest.approx(upper, rel=1e-11) and found.lower == pytest.approx(lower, rel=1e-11)
    planted = by_differences(functions, (at[0], at[1]**2, at[2]), kinks)  # a lost square root of c is seen
    assert abs(planted[1] - lower) > 1e-3*lower


@pytest.mark.parametrize("sigma, g", [("erf", "erf"), ("sign", "relu"), ("z + He3(z)/6", "z**2 + z"), ("relu", "sign")])
@pytest.mark.parametrize("gamma", [1.0, 0.6])
def test_closed_forms_are_the_numbers(sigma, g, gamma):
    found = bounds(sigma, g, r=1.3, c=0.7, gamma=gamma)
    for name, expr in found.expr.items():
        at = {s: {"r": 1.3, "c": 0.7, "gamma": gamma}[s.name] for s in expr.free_symbols}
        assert float(expr.evalf(20, subs=at)) == pytest.approx(getattr(found, name), rel=1e-10, abs=1e-13)


def test_without_a_closed_form_expr_says_none():
    assert bounds("tanh", "sin", r=0.9).expr == {"upper": None, "lower": None}


# -- identities --------------------------------------------------------------------------------------------------------
@settings(max_examples=6)
@given(AT, st.sampled_from(["erf", "relu", "sin", "gelu"]), st.sampled_from(["sin", "sign", "relu(z - 1/2)", "z**2"]))
def test_order_and_symmetries(at, sigma, g):
    r, c, gamma = at
    found = bounds(sigma, g, r=r, c=c, gamma=gamma)
    size = float(hx.E(hx.parse(g if "z" in g else f"{g}(z)")**2, hx.symbols.z).evalf(15))
    assert 0 <= found.lower <= found.upper <= size*(1 + 1e-12)
    mirrored = bounds(sigma, g, r=-r, c=c, gamma=-gamma)  # kappa -> -kappa
    assert found.lower == pytest.approx(mirrored.lower, rel=1e-9, abs=1e-12)


def test_the_functions_realise_the_bounds():
    found = bounds("tanh", "relu", r=1.1, c=0.8)
    x, w = panels((0,), 9)
    f = found.functions
    for which in ("upper", "lower"):
        assert w @ (f["target"](x) - f[which](x))**2 == pytest.approx(getattr(found, which), rel=1e-10)
    tilted = f["lower"](x) + 0.01*x  # a planted error is seen
    assert w @ (f["target"](x) - tilted)**2 > found.lower*1.0001


def test_mu_1_without_kappa_would_not_bound():
    """The slide's bare mu_1 is even where the target is odd: its bound is the upper one, above an exact error of .001778."""
    found = bounds("tanh", "sin", r=0.9)
    assert found.lower < 0.001778 < found.upper


def test_arrays_broadcast_and_agree_with_points():
    r, c = np.array([0.3, 1.7])[:, None], np.array([0.5, 1.0, 2.5])
    found = bounds("tanh", "sign", r=r, c=c, gamma=0.8)
    assert found.upper.shape == found.lower.shape == (2, 3)
    assert found.lower[1, 2] == pytest.approx(bounds("tanh", "sign", r=1.7, c=2.5, gamma=0.8).lower, rel=1e-12)


def test_a_step_or_its_features_say_the_same():
    step = hx.theories.spike("tanh", "sin")(alpha0=20, eta=3, beta=1, Delta=0)
    a, b = bounds("tanh", "sin", alpha0=20, eta=3, beta=1), bounds("tanh", "sin", r=step.r, c=step.c, gamma=step.gamma)
    assert a.lower == b.lower and a.r == pytest.approx(1.1340555093, abs=1e-10)


def test_a_vocabulary_lowers_both_bounds_and_one_letter_changes_nothing():
    one, two = bounds("tanh", "sin", r=0.9), bounds("tanh", "sin", r=0.9, vocabulary=[1, 2], norms=[1, 1])
    assert two.lower < one.lower and two.upper < one.upper
    same = bounds("tanh", "sin", r=0.9, vocabulary=[1, 1])
    assert same.lower == pytest.approx(one.lower, rel=1e-10)
    np.testing.assert_allclose(same.coefficients["b1"], one.coefficients["b1"]/2, rtol=1e-10)  # the least norm


# -- minima ------------------------------------------------------------------------------------------------------------
def test_the_infimum_at_either_end_is_said_to_be_there():
    cubic = bounds("tanh", "He3", optimise=True)  # r -> 0: the span becomes {z, z^3}
    assert cubic.optimum["r_lower"] is None and cubic.lower == pytest.approx(0, abs=1e-9)
    assert any("r -> 0" in n for n in cubic.notes)
    steep = bounds("erf", "sign(z) + z/10", optimise=True)
    assert steep.optimum["r_upper"] is not None or steep.upper < bounds("erf", "sign(z) + z/10", r=50).upper


@given(st.floats(0.05, 30), st.floats(0.1, 5))
def test_least_finds_the_deeper_of_two_minima(place, depth):
    def f(t):
        u = np.log(t/place)
        return 5 - depth*np.exp(-20*u**2) - (depth + 0.5)*np.exp(-20*(u - 2)**2)
    found = find_infimum(f, np.geomspace(place/50, place*500, 120))
    assert found.at == pytest.approx(place*np.exp(2), rel=1e-6)


def test_even_targets_and_negative_slopes_have_minima_too():
    down = bounds("tanh", "-sin(z)", optimise=True)
    up = bounds("tanh", "sin", optimise=True)
    assert down.lower == pytest.approx(up.lower, rel=1e-9) and down.optimum["eta_over_beta_lower"] > 0
    even = bounds("relu", "z**2", optimise=True)
    assert any("no learning rate" in n for n in even.notes)


# -- limits and hostile input --------------------------------------------------------------------------------------------
def test_degenerate_functions_have_answers():
    assert bounds("z", "sin", r=1).lower == pytest.approx((1 - np.exp(-2))/2 - np.exp(-1), rel=1e-12)  # linear: the best line
    assert bounds("0", "sin", r=1).upper == pytest.approx((1 - np.exp(-2))/2, rel=1e-12)
    assert bounds("1", "3", r=1).lower == pytest.approx(0, abs=1e-25)
    assert bounds("tanh", "0", r=1).upper == 0
    assert bounds("tanh", "sin", r=0).upper == pytest.approx((1 - np.exp(-2))/2, rel=1e-12)
    assert bounds("relu", "sin", r=-1.5).lower == pytest.approx(bounds("relu", "sin", r=1.5).lower, rel=1e-10)


@pytest.mark.parametrize("wrong", [{"r": 1, "c": 0}, {"r": 1, "c": -1}, {"r": 1, "gamma": 1.2}, {"r": float("nan")},
                                   {"r": 1, "eta": 2}, {"alpha0": 0, "eta": 1}, {"alpha0": 1}, {}, {"r": 1, "optimise": True},
                                   {"r": float("inf")}, {"r": []}, {"r": [1, 2], "c": [1, 2, 3]}, {"r": "x"},
                                   {"r": 1, "vocabulary": [1, 2], "norms": [1]}])
def test_hostile_numbers_get_one_line(wrong):
    with pytest.raises(BadInput) as caught:
        bounds("tanh", "sin", **wrong)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["10**400*z", "exp(1000)", "z/10**400", "tanh(exp(2000)*z)"])
def test_numbers_that_no_float_holds_are_refused(text):
    """Of exp(1000) the spectrum said that mu_0 is 0; the bounds ended in NumPy's words."""
    for ask in (lambda: hx.spectrum(text, r=1, c=1, alpha=1, beta=1), lambda: hx.bounds(text, "sin", r=1),
                lambda: hx.bounds("tanh", text, optimise=True), lambda: hx.theories.one_step("tanh", text)):
        with pytest.raises(BadInput, match="beyond what a float holds"):
            ask()


def test_a_target_outside_L2_is_refused():
    with pytest.raises(BadInput, match="square integrable"):
        bounds("tanh", "exp(z**2/2)", r=1)


# -- pictures and speed --------------------------------------------------------------------------------------------------
def test_shows_itself():
    found = bounds("tanh", "sin", r=0.9)
    assert repr(found).startswith("Bounds(tanh for sin: upper=0.02910490064")
    assert "0.0291049006433" in found._repr_html_() and "cui2024" in found.bibtex()
    ax = found.plot()
    assert len(ax.get_lines()) == 3 and ax.get_xlabel() == r"$\kappa$"
    chart = hx.theories.bounds_map("erf", "sin", r=np.linspace(0.2, 3, 8), c=np.linspace(0.5, 2, 5))
    assert chart.bounds.lower.shape == (5, 8) and chart.plot().get_xlabel() == "$r$"


def test_the_functions_at_the_best_rate_are_those_of_its_own_bulk():
    # An activation that is not odd moves c along the learning rate: mu_0 is that of c at the optimum.
    found = hx.theories.bounds("z + z**2/4", "z**3/4 + z", optimise=True)
    assert found.c is None
    at = {n: (found.optimum[f"r_{n}"], found.optimum[f"c_{n}"]) for n in ("upper", "lower")}
    z, weights = np.polynomial.hermite_e.hermegauss(60)
    for which, f in found.functions.items():
        if which != "target":
            risk = weights @ (f(z) - found.functions["target"](z))**2/weights.sum()
            assert risk == pytest.approx(getattr(found, which), rel=1e-6), at[which]


@pytest.mark.parametrize("r", [20.0, 63.0, 64.0, 200.0])
def test_a_steep_spike_is_resolved(r):
    """tanh against sin at gamma = 1: by a plain sum over kappa; halving a step longer than 1/r showed no change."""
    z, weights = np.polynomial.hermite_e.hermegauss(40)
    weights /= weights.sum()
    kappa, step = np.linspace(-9, 9, 60_001, retstep=True)
    p = np.exp(-kappa**2/2)/np.sqrt(2*np.pi)*step
    mean = sum(w*np.tanh(r*kappa + v) for v, w in zip(z, weights, strict=True))
    upper = p @ np.sin(kappa)**2 - (p @ (np.sin(kappa)*mean))**2/(p @ mean**2)
    assert bounds("tanh", "sin", r=r).upper == pytest.approx(upper, abs=1e-10)


@pytest.mark.parametrize("sigma, target, upper, lower", [("tanh", "sign", 0, 0), ("erf", "sign", 0, 0), ("sign", "sign", 0, 0),
                                                         ("gelu", "relu", 0.00033772568, 4.045838440e-5)])
def test_an_infimum_at_infinity_has_the_digits_that_it_claims(sigma, target, upper, lower):
    """The values of gelu/relu: extrapolated from r up to 1,000 with polynomials of degree 8 in 1/r."""
    found = bounds(sigma, target, optimise=True)
    claims = [float(n.rpartition("(+- ")[2].rstrip(")")) for n in found.notes if "(+-" in n]
    assert len(claims) == 2 and max(claims) < 1e-9
    assert abs(found.upper - upper) <= claims[0] and abs(found.lower - lower) <= claims[1] + 1e-13


@pytest.mark.parametrize("overlap", [0.5, -0.97])
def test_a_target_below_full_overlap_is_averaged_once_at_each_node(overlap, monkeypatch):
    asked = []
    plain = Target._smoothed
    monkeypatch.setattr(Target, "_smoothed", lambda self, x: asked.append(x) or plain(self, x))
    target, other = Target("tanh", overlap), Target("tanh", overlap)
    rng = np.random.default_rng(3)
    nodes = 0.3*np.arange(-30, 31)
    for x in (nodes, nodes/2, rng.permutation(nodes)[:7], nodes[::-1]):
        np.testing.assert_allclose(np.vstack(target(x)), plain(other, x), rtol=1e-13, atol=1e-15)
    every = np.concatenate(asked)
    assert every.size == np.unique(every).size == np.union1d(nodes, nodes/2).size


@pytest.mark.parametrize("r", [1e-3, 1e-5])
def test_the_error_of_a_gentle_spike_is_that_of_its_columns(r):
    found = hx.bounds("tanh", "sin", r=r)
    upper, lower = 0.0644529172102, 0.0031396771  # what no multiple of kappa, nor of kappa and kappa^3, explains
    assert abs(found.upper - upper) <= found.error + 1e-6 and abs(found.lower - lower) <= found.error + r*r
    assert found.error < 1e-6 if r > 1e-4 else found.notes


@pytest.mark.parametrize("sigma, limit", [("tanh", "sign"), ("erf", "sign")])
def test_wide_features_are_those_of_the_limit(sigma, limit):
    """sigma(s u) at s = 1e12 is s^n times that at s = oo; a slope of 1/s is no rounding of a mean of 1."""
    found, ideal = hx.bounds(sigma, "z**2 + z", r=1e12, c=1e24), hx.bounds(limit, "z**2 + z", r=1)
    assert (found.upper, found.lower) == pytest.approx((ideal.upper, ideal.lower), abs=1e-11)
    assert found.error < 1e-11


@pytest.mark.parametrize("sigma, at", [("tanh", {"r": 1, "c": 1e30}), ("relu", {"r": 1e-15, "c": 1e-30}),
                                       ("tanh", {"r": 1e-15, "c": 1e-30})])
def test_a_mean_that_drowns_in_the_rounding_of_its_activation_has_no_digits(sigma, at):
    """tanh: a multiple of kappa, 3; relu is homogeneous, and its bounds are those at r = c = 1."""
    found, upper = hx.bounds(sigma, "z**2 + z", **at), {"tanh": 3.0, "relu": 1.0238288616957552}[sigma]
    assert abs(found.upper - upper) <= found.error and found.notes


@pytest.mark.parametrize("at", [{"alpha0": 1, "eta": 1e200}, {"alpha0": 1, "eta": 1, "beta": 1e-200}, {"r": 1e20},
                                {"r": 0.9, "c": 1e-99}])
def test_numbers_beyond_what_floats_tell_apart_are_refused(at):
    with np.errstate(all="raise"), pytest.raises(BadInput, match=r"beyond what a float holds|must be below"):
        hx.bounds("tanh", "sin", **at)


# -- letters with biases, and what the upper bound bounds: theory sheet one_step_2, A6 ----------------------------------
# (its .0411741817 of the second row is a misprint: least squares on a trapezoid rule gives .0411740817)
LETTERS = [("tanh", "He1(z) + He2(z)/2", dict(r=0.9, vocabulary=[1, -1.5]), 0.5023043021018295, 0.5000285268117428,
            0.03876657735827216, 0.25796205793057103),
           ("tanh", "He1(z) + He2(z)/2", dict(r=0.9, biases=[0.5, -0.5]), 0.491281204911832, 0.13440501579813868, 0.0411740817,
            0.0440146446),
           ("tanh", "He1(z) + He2(z)/2", dict(r=0.9, gamma=0.9, vocabulary=[1, -1.5], norms=[1, 1.2], biases=[0.5, -0.5]),
            0.8921523284756993, 0.2831463593455116, 0.04506225638158351, 0.4325052729316401),
           ("erf", "relu", dict(r=1, vocabulary=[1, 2], biases=[0.5, -1]), 0.1663497041, 0.0337714804, 0.0018222844, 0.1478513396),
           pytest.param("tanh", "z1 + z1*z2", dict(r=1.2, gamma=0.9, vocabulary=[1, -2], norms=[1.1, 1.3], biases=[0.5, -0.3]),
                        1.2892943319, 0.9760768766, 0.3733328065569107, 1.2031415066136613, marks=pytest.mark.slow)]


@pytest.mark.parametrize("sigma, g, at, upper, lower, lower_bias, upper_bias", LETTERS)
def test_letters_with_biases_of_the_sheet(sigma, g, at, upper, lower, lower_bias, upper_bias):
    found = bounds(sigma, g, bias=True, **at)
    assert found.upper == pytest.approx(upper, abs=6e-11) and found.lower == pytest.approx(lower, abs=6e-11)
    assert found.lower_bias == pytest.approx(lower_bias, abs=6e-11) and found.upper_bias == pytest.approx(upper_bias, abs=6e-11)
    unbiased = bounds(sigma, g, **{n: v for n, v in at.items() if n != "biases"} | ({} if "vocabulary" in at else
                                                                                   {"vocabulary": [1, 1]}))
    assert "biases" not in at or abs(unbiased.lower - found.lower) > 1e-3  # a bias that is dropped shows


# The last row of the sheet, and a symmetric pair whose best bias is none.
@pytest.mark.parametrize("at, known", [
    (dict(vocabulary=[1, -2], norms=[1.1, 1.3], biases=[0.5, -0.3]), (0.3733328065569107, -2.98919, 1.2031415066136613, -0.33963)),
    (dict(c=1.1), (1.0221732472884686, 0, 1.2179253707336524, 0))])
def test_the_best_bias_for_a_target_of_two_directions(at, known):
    found = bounds("tanh", "z1 + z1*z2", r=1.2, gamma=0.9, bias=True, **at)
    assert (found.lower_bias, found.upper_bias) == pytest.approx((known[0], known[2]), rel=1e-11)
    assert (found.b_lower, found.b_upper) == pytest.approx((known[1], known[3]), abs=2e-5)


def test_the_functions_of_letters_with_biases_realise_the_bounds():
    found = bounds("tanh", "He1(z) + He2(z)/2", r=0.9, vocabulary=[1, -1.5], norms=[1, 1.2], biases=[0.5, -0.5])
    x, w = np.polynomial.hermite_e.hermegauss(120)
    for which in ("upper", "lower"):
        gap = found.functions["target"](x) - found.functions[which](x)
        assert w @ gap**2/np.sqrt(2*np.pi) == pytest.approx(getattr(found, which), abs=1e-9)
    assert found.expr == {"upper": None, "lower": None}


def test_the_upper_bound_is_that_of_the_best_ridge_and_not_of_a_given_one():
    at = dict(r=0.9, c=1, gamma=0.9)
    theory, found = hx.theories.one_step("tanh", "He1(z) + He2(z)/2"), bounds("tanh", "He1(z) + He2(z)/2", **at)
    risk = theory.solve(alpha=1.2, beta=1, lam=[1e-3, 1e9], **at)["test_error"]
    assert risk[0] > found.upper and risk[1] == pytest.approx(found.upper, rel=1e-8)
    assert risk.min() > found.lower and "best ridge" in bounds.__doc__
    legend = [t.get_text() for t in found.plot().get_legend().get_texts()]
    assert any("best ridge" in t for t in legend) and "best ridge" in found._repr_html_()


@pytest.mark.parametrize("at, word", [
    (dict(vocabulary=[1, 2], biases=[1]), "biases has 1 entries for 2 letters"), (dict(biases=[[1]]), "list of finite"),
    (dict(biases=[np.inf]), "list of finite"), (dict(biases=[]), "list of finite"), (dict(norms=[1, 2]), "norms has 2 entries")])
def test_letters_that_do_not_fit_get_one_line(at, word):
    with pytest.raises(BadInput, match=word) as caught:
        bounds("tanh", "sin", r=1, **at)
    assert "\n" not in str(caught.value)
