"""The flow of one-pass SGD: its formula by three routes, its escape times, repeated samples, several directions."""

import json
from math import asin, factorial, pi
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad
from sympy import Piecewise, Rational, S, simplify, sqrt

import hermitex as hx
from hermitex.errors import BadInput, UnknownName
from hermitex.symbols import m
from hermitex.theories.repetition import extragradient

REFERENCE = json.loads((Path(__file__).parent.parent / "reference" / "sgd.json").read_text())
UNIT = {1: "z", 2: "He2(z)/sqrt(2)", 3: "He3(z)/sqrt(6)", 4: "He4(z)/sqrt(24)"}


def unit(order):
    return hx.theories.sgd(UNIT[order], UNIT[order])


# -- the formula -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("sigma", "g"), [("erf", "sign"), ("relu", "abs(z)"), ("gelu", "relu"), ("sign", "sign(z - 1/3)")])
def test_closed_form_against_series(sigma, g):
    """The Taylor coefficients in m of the exact rate are c_k s_k/(k-1)!."""
    theory = hx.theories.sgd(sigma, g)
    order = 4
    inside = theory.rate.replace(Piecewise, lambda *branches: branches[-1][0])  # |m| < 1: at 1 a jump's rate is its limit
    taylor = (inside/(1 - m**2)).series(m, 0, order).removeO()
    for k in range(order):
        difference = (taylor - theory.series(order)/(1 - m**2)).coeff(m, k)
        assert abs(difference.evalf(25)) < 1e-20, k


def test_polynomial_rate_is_exact():
    assert simplify(hx.theories.sgd("He3", "He3").rate - 18*m**2*(1 - m**2)) == 0
    theory = hx.theories.sgd("z**4 + z", "z**2 + z**3/3 - 2")
    assert simplify(theory.rate - theory.series(6)) == 0


@pytest.mark.parametrize(("sigma", "g"), [
    ("tanh", "He3"), ("relu", "abs(z - 1/2)"),
    pytest.param("z*tanh(softplus(z))", "Piecewise((z**2, z > 1), (sin(z), True))", marks=pytest.mark.slow)])
def test_numbers_join_where_the_series_gives_way_to_the_formula(sigma, g):
    """Third route: plain sums on a grid, the target's slope by parts, at overlaps on both sides of 1/2."""
    theory = hx.theories.sgd(sigma, g)
    below, above = theory.drift(np.array([0.5, 0.5 + 1e-9]))
    assert below == pytest.approx(above, rel=1e-7)
    student, target = hx.compile(theory.sigma.expr, "z"), hx.compile(theory.g.expr, "z")
    x = np.linspace(-9, 9, 2401)
    weight = np.exp(-x**2/2)*(x[1] - x[0])/np.sqrt(2*pi)
    for at in (0.3, 0.7):
        s = np.sqrt(1 - at**2)
        seen = np.array([np.sum(weight*x*target(at*h + s*x)) for h in x])/s  # E[g'(m h + s x)] by parts
        slope = np.gradient(student(x), x, edge_order=2)
        assert theory.drift(at)[0] == pytest.approx((1 - at**2)*np.sum(weight*slope*seen), rel=2e-3)


def test_the_misprinted_factorial_fails():
    """A slide's sum (i+1)^2 a_{i+1} a*_{i+1} m^i, monic polynomials, misses i!: wrong for He3, right only up to order two."""
    def misprinted(order):
        return (1 - m**2)*order**2*m**(order - 1)  # He_order = 1 * He_order on both sides

    true = {k: simplify(hx.theories.sgd(f"He{k}", f"He{k}").rate/misprinted(k)) for k in (2, 3, 4)}
    assert true == {k: factorial(k - 1) for k in (2, 3, 4)}
    assert not hx.check(hx.theories.sgd("He3", "He3").rate, misprinted(3))


@pytest.mark.parametrize(("sigma", "g", "order"), [("tanh", "He3", 3), ("relu", "He3", None), ("erf", "sign", 1),
                                                   ("relu", "abs(z)", 2), ("tanh", "tanh(z) - z*E(z*tanh(z))", 3),
                                                   ("gelu", "He4(z) + He3(z)", 4)])
def test_the_first_order_is_proved(sigma, g, order):
    found = hx.theories.sgd(sigma, g).leading
    assert found.order == order
    assert all(c.status in ("zero", "nonzero") for c in found.certificates)


def test_a_student_may_see_later_than_the_target_allows():
    theory = hx.theories.sgd("gelu", "He4(z) + He3(z)")
    assert (theory.information_exponent, theory.leading.order) == (3, 4)
    assert hx.exponents("He4(z) + He3(z)").information_exponent == theory.information_exponent


# -- escape ----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_escape_exponents(order):
    """0, 1/4 of log d, 1/2, 1: the sheet's fits over d from 1e4 to 1e8 lie within 0.005 of them."""
    found = unit(order).escape(np.geomspace(1e4, 1e8, 7))
    assert found.fitted == pytest.approx(REFERENCE["escape"]["exponents"][str(order)], abs=5e-3)
    assert found.predicted == pytest.approx(REFERENCE["escape"]["exponents"][str(order)])


def test_escape_time_by_the_event_of_the_flow_and_by_quadrature():
    theory = hx.theories.sgd("erf", "sign")
    event = theory.solve(t=(0, 50), dimension=1000, until=0.5).events["escape"]["t"][0]
    exact = quad(lambda x: 1/float(theory.rate.subs(m, x)), 1000**-0.5, 0.5, epsabs=1e-11)[0]
    assert theory.escape_time(1000) == pytest.approx(exact, rel=1e-9)
    assert event == pytest.approx(exact, rel=1e-7)


def test_samples_grow_as_the_table_says():
    for order, exponent in ((1, 1), (3, 2), (4, 3)):
        n = unit(order).samples(np.array([1e7, 1e8]))
        assert np.log10(n[1]/n[0]) == pytest.approx(exponent, abs=3e-3)
        assert hx.exponents(f"He{order}(z)").complexity["one_pass_sgd"] == REFERENCE["steps"][str(order)]


def test_no_escape_where_the_flow_turns_back():
    assert hx.theories.sgd("tanh", "He3").escape_time(1e4) == np.inf  # s_3 < 0
    found = hx.theories.sgd("relu", "He3").escape([1e3, 1e4])
    assert found.law == "never"
    assert found.to_dict()["time"] == [None, None]


# -- curves ----------------------------------------------------------------------------------------------------------------
def test_curve_of_the_quadratic_in_closed_form():
    """l = 2, unit coefficients: u = m^2 obeys du/dt = 4 u (1 - u), a logistic curve."""
    t, d = np.linspace(0, 4, 9), 1e4
    curve = hx.curve("sgd", sigma=UNIT[2], target=UNIT[2], t=t, dimension=d)
    u = 1/(1 + (d - 1)*np.exp(-4*t))
    assert curve.axis == "t"
    np.testing.assert_allclose(curve["m"], np.sqrt(u), rtol=1e-8)
    out = curve.to_dict()
    assert out["theory"] == "sgd"
    assert out["t"] == t.tolist()
    assert set(out["order_parameters"]) == {"m"}
    assert curve.plot().get_ylabel() == "overlap"


def test_a_step_costs_the_norm_of_the_gradient():
    """z and z: E[g^2 sigma'^2] = E[z^2] = 1, so m* solves (1 - m^2) = m step/2; with the square loss E(z1 - z2)^2 = 2(1 - m)."""
    step = 0.4
    last = hx.theories.sgd("z", "z").curve(t=[0, 60], m0=0.5, step=step)["m"][-1]
    assert last == pytest.approx((-step/2 + np.sqrt(step**2/4 + 4))/2, rel=1e-8)
    assert hx.theories.sgd("z", "z", loss="square").curve(t=[0, 60], m0=0.5, step=step)["m"][-1] == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(("call", "says"), [
    (lambda: hx.theories.sgd("tanh(a*z)", "z"), "a"),
    (lambda: hx.theories.sgd("exp(z**2)", "z"), "square integrable"),
    (lambda: hx.theories.sgd("tanh", "z", loss="hinge"), "correlation"),
    (lambda: hx.theories.sgd("tanh", "z").curve(t=[0, 1]), "dimension"),
    (lambda: hx.theories.sgd("tanh", "z").curve(t=[1, 0], dimension=9), "increasing"),
    (lambda: hx.theories.sgd("tanh", "z").curve(t=[0, 1], m0=1.5), "m0"),
    (lambda: hx.theories.sgd("sign", "z").curve(t=[0, 1], m0=0.5, step=1), "jumps"),
    (lambda: hx.theories.sgd("tanh", "z").escape_time(3, level=0.5), "level"),
    (lambda: hx.curve("sgd", sigma="tanh", target="z", dimension=100), "t has no value"),
    (lambda: hx.theories.repetition("z1*z2"), "one direction"),
    (lambda: hx.theories.repetition("He3", 0), "times"),
])
def test_refusals_are_one_clear_line(call, says):
    with pytest.raises(BadInput) as err:
        call()
    assert says in str(err.value)
    assert "\n" not in str(err.value)


def test_unknown_number():
    with pytest.raises(UnknownName):
        hx.theories.sgd("tanh", "z").curve(t=[0, 1], dimension=9, lam=1)


# -- repetition ------------------------------------------------------------------------------------------------------------
def test_exact_numbers_of_the_powers():
    for name, rows in REFERENCE["powers"].items():
        if not name.startswith("He"):
            continue
        found = {p.power: p for p in hx.theories.repetition(name, 3).powers}
        for power, (one, two) in rows.items():
            assert (found[int(power)].c_1, found[int(power)].c_2) == (S(one), S(two))


def test_two_and_three_repetitions_of_the_third_polynomial():
    two, three = hx.theories.repetition("He3", 2), hx.theories.repetition("He3", 3)
    assert (two.information_exponent, two.exponent, two.power, two.samples) == (3, 2, 2, "d log d")
    assert (three.exponent, three.power, three.samples) == (1, 3, "d")
    assert two.generative_exponent == three.generative_exponent == hx.exponents("He3(z)").generative_exponent == 1
    assert two.to_dict()["powers"][1]["c_2"] == "36"
    assert "36" in two._repr_html_()


@pytest.mark.parametrize(("g", "exponents"), [("sign", [1, None]), ("z**2*exp(-z**2)", [4, 4]), ("He4", [4, 2]),
                                              ("exp(z**2/5)", [2, None]), ("sign(z**2 - 1)", [2, None])])
def test_powers_of_other_targets(g, exponents):
    found = hx.theories.repetition(g, 2)
    assert [p.order for p in found.powers] == exponents
    assert len(found.notes) == sum(e is None for e in exponents)


@pytest.mark.slow
def test_expansion_is_derived_and_a_wrong_factor_is_found():
    derivation = hx.theories.repetition("He3", 3).derivation()
    assert derivation.check().passed
    assert len(derivation.steps) == 3
    assert all(step.before != step.after for step in derivation.steps)
    assert r"\frac{\partial^{2}}{\partial \gamma^{2}}" in derivation.latex()
    assert not hx.check(derivation.steps[1].before, 2*derivation.steps[1].after)
    made = extragradient(1, "z**3 + z**2", "He2")
    assert made.check().passed
    wrong = hx.Derivation((made.claim[0], 2*made.claim[1]), made.steps)
    assert not wrong.check().passed


def test_drift_of_a_repeated_sample():
    """sigma = z^2/2: sigma' sigma'' = z, so that the square of He3 is seen with E[g^2 He_2] = 36."""
    gamma = hx.symbols.gamma
    with pytest.raises(BadInput, match="derivatives"):
        hx.theories.repetition("He3", 2).drift("relu", order=2)
    assert simplify(hx.theories.repetition("He3", 2).drift("z**2/2", order=2) - 36*gamma*m*(1 - m**2)) == 0


# -- repetition, whole ------------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_a_first_step_of_no_size_is_the_flow_of_fresh_samples():
    """Identity: at repetition -> 0 the averages are those of the series, in one direction and in several, for both losses."""
    for loss in ("correlation", "square"):
        theory = hx.theories.sgd("tanh", "He3(z)/2 + z", loss=loss)
        for at in (0.2, 0.8):
            assert theory.repeated(0.0).rate([at], 0.3)[0] == pytest.approx(theory.drift(at, 0.3)[0], rel=2e-5)
    several = hx.theories.sgd("He2(z)/10 + He3(z)/2", "He2(z1)/2 + sign(z1*z2)")
    at = np.array([0.4, -0.3])
    np.testing.assert_allclose(several.repeated(0.0).rate(at, 0.2), several._rate(0.2)(0, at, None), atol=2e-5)


def test_a_small_first_step_adds_the_square_of_the_label():
    """Third route: the exact expansion, with its powers of the label, against the whole average at small repetition."""
    theory, size = hx.theories.sgd("z**2/2 + z**3/6", "He3(z)/sqrt(6)"), 1e-3
    expanded = hx.theories.repetition("He3(z)/sqrt(6)", 2).drift(theory.sigma.expr, order=5)
    for at in (0.1, 0.6):
        exact = float(expanded.subs({hx.symbols.gamma: size, m: at}))
        assert theory.repeated(size).rate([at])[0] == pytest.approx(exact, abs=3e-4*abs(exact) + 30*size**2)


def test_growth_and_signal_of_a_repeated_sample():
    """sigma = z^2/2: G = y h (1 + rho y), so J = E[g He2] + rho E[g^2 He2] = 192/24 rho, E[G^2] = E[y^2 (1 + rho y)^2], exact."""
    rho = 0.3
    twice = hx.theories.sgd("z**2/2", "He4(z)/sqrt(24)").repeated(rho)
    y = hx.parse("(z**4 - 6*z**2 + 3)/sqrt(24)")
    square = float(hx.E((y**2*(1 + rho*y)**2).expand(), hx.symbols.z).doit())
    assert twice.growth == pytest.approx(8*rho, rel=1e-4)
    assert twice.start[2] == pytest.approx(square, rel=1e-3)
    assert twice.growth != pytest.approx(4*rho, rel=0.1)  # planted: the factor of He_2 lost
    assert twice.step == pytest.approx(twice.growth/twice.start[2])


@pytest.mark.parametrize(("g", "students"), [("He4(z)/sqrt(24)", (("sqrt(1 + z**2)", 5.0), ("z**2/2", 3.0), ("tanh", -1.0))),
                                             ("He3(z)/sqrt(6)", (("sqrt(1 + z**2)", 2.0), ("gelu(z + 1/2)", 1.0)))])
def test_no_student_sees_more_than_the_weak_recovery_of_the_label(g, students):
    """Cauchy and Schwarz: lambda_max(J)^2/E[G^2] <= E[(E[z^2|y] - 1)^2], which for He4 is 1/alpha_c."""
    most = 1/hx.exponents("He4(z)").weak_recovery["alpha_c"] if "He4" in g else 2.0
    for sigma, size in students:
        assert 0 < hx.theories.sgd(sigma, g).repeated(size).signal < most


def test_escape_with_repetition_by_quadrature_and_by_the_flow():
    theory = hx.theories.sgd("sqrt(1 + z**2)", "He4(z)/sqrt(24)")
    numbers = {"step": 0.3, "repetition": 5.0}
    event = theory.solve(t=(0, 50), dimension=512, until=0.5, **numbers).events["escape"]["t"][0]
    assert theory.escape_time(512, **numbers) == pytest.approx(event, rel=1e-4)
    slope = (theory.escape_time(2**20, **numbers) - theory.escape_time(2**14, **numbers))/(6*np.log(2))
    twice = theory.repeated(5.0)
    assert slope == pytest.approx(1/(2*(twice.growth - 0.15*twice.start[2])), rel=1e-3)
    assert theory.escape_time(512, step=2.0, repetition=5.0) == np.inf
    curve = theory.curve(t=[0, 8, 16], dimension=512, **numbers)
    assert curve["m"][-1] > 0.75
    assert np.all(curve.residual < 1e-3)


def test_a_student_that_overflows_or_jumps_is_refused_in_one_line():
    with pytest.raises(BadInput, match="overflows"):
        hx.theories.sgd("exp(z)", "He4(z)/sqrt(24)").repeated(5.0).rate([0.1])
    with pytest.raises(BadInput, match="jumps"):
        hx.theories.sgd("sign", "He3").repeated(1.0)
    with pytest.raises(BadInput, match="repetition"):
        hx.theories.sgd("tanh", "He3").curve(t=[0, 1], dimension=100, repetition=np.inf)


# -- several directions ----------------------------------------------------------------------------------------------------
def test_flow_of_several_directions_from_its_definition():
    """dm_i/dt = E[g(z) sigma'(h) (z_i - m_i h)], here for polynomials by exact expectations."""
    from hermitex.symbols import z1, z2, z3

    theory = hx.theories.sgd("z**2/2 + z**3/3", "z1 + He2(z1)*z2")
    at = {"m1": Rational(1, 3), "m2": Rational(2, 3)}
    h = at["m1"]*z1 + at["m2"]*z2 + sqrt(1 - at["m1"]**2 - at["m2"]**2)*z3
    g, slope = z1 + (z1**2 - 1)*z2, h + h**2
    for name, variable in (("m1", z1), ("m2", z2)):
        exact = hx.E(hx.parse("0") + (g*slope*(variable - at[name]*h)).expand(), z1, z2, z3).doit()
        rate = theory.rates[name].subs({theory.symbols[k]: v for k, v in at.items()})
        assert simplify(rate - exact) == 0


def test_one_direction_in_two_variables_moves_alone():
    """g(z1) + 0 z2 as a target in two variables: m2 only shrinks, and m1 follows the flow of one direction where m2 = 0."""
    both = hx.theories.sgd("He2", "He2(z1) + z1*z2 - z1*z2/1 + He3(z2)")
    assert both.order_parameters == ("m1", "m2")
    alone = both.curve(t=[0, 1, 2], m0=0.1, start={"m2": 0.0})
    np.testing.assert_allclose(alone["m1"], hx.theories.sgd("He2", "He2").curve(t=[0, 1, 2], m0=0.1)["m"], rtol=1e-8)


def test_staircases_in_the_order_of_their_steps():
    climb = hx.theories.sgd("z + He4(z)/4", "z1 + He3(z1)*z2 + He3(z2)*z3").learned(1e4, level=0.05)
    assert list(climb) == ["m1", "m2", "m3"]
    assert list(climb.values()) == sorted(climb.values())
    first = hx.theories.sgd("He2(z)/10 + He3(z)/2", "He2(z1) + sign(z1*z2*z3)")
    curve = first.curve(t=np.linspace(0, 15, 16), dimension=1e4)
    times = first.learned(1e4)
    assert times["m1"] < times["m2"] == pytest.approx(times["m3"], rel=1e-6)
    np.testing.assert_allclose(curve["m2"], curve["m3"], rtol=1e-6)
    # He4 lies above the parity of order three: all three directions start together.
    together = hx.theories.sgd("He3(z)", "He4(z1) + sign(z1*z2*z3)").learned(1e4)
    assert together["m1"] == pytest.approx(together["m2"], rel=1e-5)


def test_a_series_that_is_cut_says_by_how_much():
    exact = hx.theories.sgd("He2(z) + He3(z)", "He2(z1) + sign(z1*z2)").curve(t=[0, 1], m0=0.3)
    cut = hx.theories.sgd("erf(z) + erf(z)**2", "He2(z1) + sign(z1*z2)", order=5).curve(t=[0, 1], m0=0.3)
    assert np.all(exact.residual <= 1e-9)
    assert np.all(cut.residual > 1e-6)
    finer = hx.theories.sgd("erf(z) + erf(z)**2", "He2(z1) + sign(z1*z2)", order=7).curve(t=[0, 1], m0=0.3)
    assert abs(finer["m1"][-1] - cut["m1"][-1]) < cut.residual.max()


def test_arcsine_law_of_two_signs():
    theory = hx.theories.sgd("sign", "sign")
    assert theory.drift(0.5)[0] == pytest.approx(0.75*2/pi/np.sqrt(0.75), rel=1e-10)
    assert theory.escape_time(100) == pytest.approx(pi/2*(asin(0.5) - asin(0.1)), rel=1e-9)


# -- time ------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("repetition", [0.0, 1.0])
def test_a_budget_ends_the_flow_with_what_was_reached(repetition):
    theory = unit(3)
    cut = theory.solve(t=(0, 50.0), dimension=1000, repetition=repetition, budget=0, raise_on_failure=False)
    assert not cut.converged and "the budget of 0 CPU seconds ran out at t = " in cut.reason and cut["t"][-1] < 50
    with pytest.raises(BadInput, match="not a number of seconds"):
        theory.solve(t=(0, 1.0), dimension=1000, budget=-1)
    whole = theory.solve(t=(0, 1.0), dimension=1000, budget=600)
    assert whole.converged and whole["m"][-1] == theory.solve(t=(0, 1.0), dimension=1000)["m"][-1]


@pytest.mark.parametrize("solve", [
    lambda t: hx.theories.sgd("tanh", "He2").solve(t=t, m0=0.1),
    lambda t: hx.theories.sgd("relu", "z1*z2").solve(t=t, dimension=100),
    lambda t: hx.theories.committee("erf", students=1, teachers=1).solve(t=t, gamma=1, dimension=50),
    lambda t: hx.theories.spiked_covariance("He3").solve(t=t, gamma_2=0.5, dimension=100)])
def test_the_time_to_reach_gives_the_values_at_its_end(solve):
    """As a flow of one's own."""
    found, path = solve(2), solve([0, 1, 2])
    assert found.converged and found["t"] == 2
    for name in found.unknowns:
        assert isinstance(found[name], float) and found[name] == pytest.approx(path[name][-1], rel=1e-6, abs=1e-9)
