"""Random features: reference tables, the closed form for ridge, the one-step theory without its step, misprints that show."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

import hermitex as hx
from hermitex.errors import BadInput
from hermitex.experiments.random_features_experiment import simulate
from hermitex.experiments.statistics import agreement
from hermitex.theories import one_step, random_features

TABLE = json.loads((Path(__file__).parents[1] / "reference" / "random_features.json").read_text())
POINT = {"alpha": 1.5, "gamma": 0.5, "lam": 0.01, "Delta": 0.1}


def _numbers(row):
    return {n: row[n] for n in ("alpha", "gamma", "lam", "Delta")}


def _agree(found, row, names, digits):
    for name in names:
        assert abs(found[name] - row[name]) <= 10.0**-digits*abs(row[name]), name


def _measured(found, row):
    """The sheet's simulations, where it has some."""
    for name, (mean, error) in row.get("measured", {}).items():
        assert abs(found[name] - mean) < 3*error, name


@pytest.mark.parametrize("row", TABLE["square"], ids=lambda r: f"{r['sigma']}-{r['target'][:6]}-{r['lam']:g}")
def test_square_loss(row):
    found = random_features(row["sigma"], row["target"]).solve(**_numbers(row))
    _agree(found, row, ("V", "Q", "M", "Vs", "Vw", "qs", "qw", "ms", "test_error", "train_error", "train_objective"), 10)
    _measured(found, row)


def test_features_without_a_mean_are_not_centred():
    row = TABLE["uncentred"]
    found = random_features(row["sigma"], row["target"]).solve(**_numbers(row))
    _agree(found, row, ("test_error_noisy", "train_error", "qw"), 9)
    _measured(found, row)


_LABELS = [pytest.param(row, marks=() if k in (1, 5) else pytest.mark.slow) for k, row in enumerate(TABLE["labels"])]


@pytest.mark.parametrize("row", _LABELS)
def test_labels_of_a_sign(row):
    found = random_features(row["sigma"], "sign", loss=row["loss"]).solve(**_numbers(row))
    _agree(found, row, ("V", "Q", "M", "qw", "Vhat", "qhat", "mhat", "test_error", "train_error", "train_objective"), 10)
    _measured(found, row)


@pytest.mark.slow
def test_simulations_of_the_square_loss():
    for row in TABLE["measured"]:
        _measured(random_features(row["sigma"], row["target"]).solve(**_numbers(row)), row)


@pytest.mark.slow
@pytest.mark.parametrize("row", TABLE["huber"])
def test_huber_loss(row):
    found = random_features(row["sigma"], "z", loss=f"huber:{row['delta']}").solve(**_numbers(row))
    _agree(found, row, ("V", "Q", "M", "qw", "test_error_noisy", "train_error", "train_objective"), 10)
    _measured(found, row)


def huber_by_one_integral(sigma, g, slope, delta, at, guess):
    """V, Q, M and q_w: given nu the residual is N(g - M nu, Delta + Q - M^2), mhat is by parts; one integral over nu is left."""
    from scipy.optimize import fsolve
    from scipy.special import ndtr

    x, w = np.polynomial.legendre.leggauss(600)
    nu, w = 10*x, 10*w*np.exp(-50*x*x)/np.sqrt(2*np.pi)
    mu_1, rest = (w*nu*sigma(nu)).sum(), (w*sigma(nu)**2).sum() - (w*nu*sigma(nu)).sum()**2

    def returned(V, Q, M):
        mean, s, t = g(nu) - M*nu, np.sqrt(at["Delta"] + Q - M*M), delta*(1 + V)
        low, high = (-t - mean)/s, (t - mean)/s
        inside, bell = ndtr(high) - ndtr(low), [np.exp(-e*e/2)/np.sqrt(2*np.pi) for e in (low, high)]
        square = (mean**2 + s*s)*inside - s*((mean + t)*bell[1] - (mean - t)*bell[0])
        Vh = at["alpha"]*(w*inside).sum()/(1 + V)
        qh = at["alpha"]*(w*(square/(1 + V)**2 + delta**2*(1 - inside))).sum()
        mh = at["alpha"]*(w*slope(nu)*inside).sum()/(1 + V)
        gamma = at["gamma"]
        Vs, Vw, qs, qw, ms = mu_1**2*Vh/gamma, rest*Vh, mu_1**2*qh/gamma, rest*qh, mu_1*mh/gamma
        z = (at["lam"] + Vw)/Vs
        b = z + 1 - gamma
        m = 2/(b + np.sqrt(b*b + 4*gamma*z))
        dm = (gamma*m*m + m)/np.sqrt(b*b + 4*gamma*z)
        A, B, C = 1 - z*m, m - z*dm, 1 - 2*z*m + z*z*dm
        q_w = qw*(1 - gamma + gamma*z*z*dm)/(at["lam"] + Vw)**2 + gamma*(ms**2 + qs)*B/Vs**2
        return (mu_1**2*A/Vs + rest*(1 - gamma + gamma*z*m)/(at["lam"] + Vw),
                mu_1**2*((ms**2 + qs)*C + qw*B)/Vs**2 + rest*q_w, mu_1*ms*A/Vs, q_w)

    root = fsolve(lambda u: np.array(returned(*u)[:3]) - u, guess, xtol=1e-14)
    return dict(zip(("V", "Q", "M", "qw"), returned(*root), strict=True))


@pytest.mark.slow
def test_huber_loss_of_a_nonlinear_target():
    """Against one integral over the teacher's field to 1e-10, and to what the sheet's two-dimensional quadrature holds."""
    row = TABLE["huber_tanh"]
    found = random_features(row["sigma"], row["target"], loss=f"huber:{row['delta']}").solve(**_numbers(row))
    guess = np.array([row[n] for n in ("V", "Q", "M")])
    known = huber_by_one_integral(np.vectorize(math.erf), lambda x: np.tanh(2*x), lambda x: 2/np.cosh(2*x)**2, row["delta"], row,
                                  guess)
    _agree(found, known, ("V", "Q", "M", "qw"), 10)
    _agree(found, row, ("V", "Q", "M", "qw", "test_error_noisy", "train_error"), 7)
    _measured(found, row)


@pytest.mark.slow
def test_an_intercept_is_free_where_the_features_have_a_mean():
    theory = random_features("relu", "sign(z + 1/2)", loss="logistic")
    names = ("V", "Q", "M", "b", "qw", "test_error", "train_error")
    found = theory.solve(alpha=2, gamma=0.5, lam=0.1)
    _agree(found, TABLE["intercept"], names, 10)
    _measured(found, TABLE["intercept"])
    assert "b" not in random_features("erf", "relu").order_parameters  # without a mean nothing is centred
    assert random_features("relu", "relu").solve(**POINT)["b"] == pytest.approx(1/np.sqrt(2*np.pi), abs=1e-12)


def mei_montanari(mu_1, mu_star, alpha, gamma, lam, signal, noise):
    """The risk of [mei2022] (ridge): chi = nu_1 nu_2 at xi = i sqrt(psi_1 psi_2 lambda), by iteration; then E_1/E_0 and E_2/E_0."""
    p1, p2 = 1/gamma, alpha/gamma
    w = np.sqrt(lam/p2/mu_star**2*p1*p2)
    s = (mu_1/mu_star)**2
    a = b = 1e-3
    for _ in range(20_000):
        chi = -a*b
        a, b = (a + p1/(w + b + s*b/(1 - s*chi)))/2, (b + p2/(w + a + s*a/(1 - s*chi)))/2
    x = -a*b
    e_0 = (-x**5*s**3 + 3*x**4*s**2 + (p1*p2 - p2 - p1 + 1)*x**3*s**3 - 2*x**3*s**2 - 3*x**3*s
           + (p1 + p2 - 3*p1*p2 + 1)*x**2*s**2 + 2*x**2*s + x**2 + 3*p1*p2*x*s - p1*p2)
    e_1 = p2*x**3*s**2 - p2*x**2*s + p1*p2*x*s - p1*p2
    e_2 = x**5*s**3 - 3*x**4*s**2 + (p1 - 1)*x**3*s**3 + 2*x**3*s**2 + 3*x**3*s - (p1 + 1)*x**2*s**2 - 2*x**2*s - x**2
    return signal*e_1/e_0 + noise*e_2/e_0


@pytest.mark.parametrize(("alpha", "gamma", "lam", "Delta"), [(1.5, 0.5, 0.01, 0.1), (0.6, 1.4, 0.1, 0.0), (4, 0.3, 0.5, 0.3)])
def test_the_closed_form_for_ridge(alpha, gamma, lam, Delta):
    """An unlisted activation and target, against the polynomials of Mei and Montanari."""
    sigma, g = "tanh(2*z) + z/5", "sin(z) + z**3/10"
    mu_1, square = (float(hx.E(hx.parse(e)).evalf(20)) for e in (f"z*({sigma})", f"({sigma})**2"))
    c_1, g_2 = (float(hx.E(hx.parse(e)).evalf(20)) for e in (f"z*({g})", f"({g})**2"))
    rest = g_2 - c_1**2
    expected = mei_montanari(mu_1, np.sqrt(square - mu_1**2), alpha, gamma, lam, c_1**2, Delta + rest) + rest
    found = random_features(sigma, g).solve(alpha=alpha, gamma=gamma, lam=lam, Delta=Delta)
    assert found["test_error"] == pytest.approx(expected, rel=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "g", "alpha", "beta"), [
    ("relu", "sin", 1.2, 2.0), ("softplus", "abs", 0.7, 0.5), ("elu", "tanh", 0.9, 1.5)])
def test_one_step_without_its_step(sigma, g, alpha, beta):
    there = one_step(sigma, g).solve(alpha=alpha, beta=beta, lam=0.05, Delta=0.2, r=0, c=1, gamma=0)
    here = random_features(sigma, g).solve(alpha=alpha/beta, gamma=1/beta, lam=0.05, Delta=0.2)
    assert here["train_error"] == pytest.approx(there["train_error"]/2, rel=1e-9)
    for name, other in {"test_error": "test_error", "qs": "q1", "qw": "q2", "Vs": "V1", "Vw": "V2", "ms": "psi"}.items():
        assert here[name] == pytest.approx(there[other], rel=1e-9), name


@pytest.mark.parametrize("loss", ["square", "logistic", pytest.param("log(cosh(y - f))", marks=pytest.mark.slow)])
def test_the_objective_grows_with_lam_as_the_norm_says(loss):
    """The envelope identity: d objective/d lam = qw/(2 alpha)."""
    theory, step = random_features("erf", "sign", loss=loss), 1e-4
    at = [theory.solve(alpha=1.3, gamma=0.6, lam=0.2 + s*step) for s in (-2, -1, 1, 2, 0)]
    o = [s["train_objective"] for s in at]
    slope = (o[0] - 8*o[1] + 8*o[2] - o[3])/(12*step)
    assert slope == pytest.approx(at[4]["qw"]/(2*1.3), rel=1e-7)


def test_the_limit_without_a_ridge():
    theory = random_features("relu", "z")
    for alpha in (0.5, 2.0):
        limit, near = (theory.solve(alpha=alpha, gamma=0.5, lam=lam, Delta=0.2) for lam in (0, 1e-9))
        assert limit["test_error"] == pytest.approx(near["test_error"], rel=1e-7)
    assert theory.solve(alpha=2, gamma=0.5, lam=0)["V"] == pytest.approx(1, rel=1e-12)  # 1/(alpha - 1)
    with pytest.raises(hx.errors.NotConverged, match="n = p"):
        theory.solve(alpha=1, gamma=0.5, lam=0).require()


@pytest.mark.parametrize("wrong", ["qs", "Vhat", "mu_star"])
def test_a_misprinted_equation_is_seen(wrong):
    """As printed once: qs over Vhat_s, not its square; Vhat without 1 - ...; mu_star without its root."""
    theory = random_features("erf", "z")
    right, names = dict(theory.system.equations), dict(theory.system.where)
    by_name = {s.name: s for s in (*right, *names)}
    if wrong == "qs":
        right[by_name["qs"]] *= by_name["v"]
    elif wrong == "Vhat":
        right[by_name["Vhat"]] = right[by_name["Vhat"]]*by_name["V"]
    else:
        names[by_name["mu_star"]] = names[by_name["mu_star"]]**2
    planted = hx.System(right, where=names, parameters=theory.system.parameters, observables=theory.system.observables)
    found = planted.solve(alpha=1.5, gamma=0.5, lamda=0.01, Delta=0.1, raise_on_failure=False)
    assert not abs(found["test_error"] - TABLE["square"][0]["test_error"]) < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("sigma, g, loss, link", [("erf", "2*z", "square", "logit"), ("relu", "z + 1/2", "logistic", "probit")])
def test_labels_that_are_drawn_by_chance(sigma, g, loss, link):
    theory, line = random_features(sigma, g, loss=loss, link=link), [1.0, 2.0]
    measured = simulate(theory, line, dimension=80, seeds=12, gamma=0.5, lam=0.1)
    assert agreement(theory.curve(line, gamma=0.5, lam=0.1), measured).worst("test_error", "train_error", "qw", "ms") < 3.5
    assert agreement(theory.curve(line, gamma=0.5, lam=0.2), measured).worst("train_error", "qw") > 3.5


@pytest.mark.slow
def test_the_experiment():
    theory = random_features("tanh", "relu")
    found = hx.curve(theory, alpha=[0.5, 1.5, 3], gamma=0.6, lam=0.05, Delta=0.1, simulate={"dimension": 400, "seeds": 16})
    measured = found.simulation
    assert measured.order_parameters == ("ms", "qw", "qs") and measured.ratio == "n/p"
    for name in ("test_error", "train_error", "qs", "qw", "ms"):
        assert np.all(np.abs(measured[name] - found[name]) < 4*measured.standard_error[name]), name


def test_a_curve_says_what_alpha_is():
    found = random_features("erf", "sin").curve([0.5, 1, 2], gamma=0.5, lam=0.1)
    assert found.plot().get_xlabel() == r"$\alpha = n/p$"
    assert found.to_dict()["theory"] == "random-features" and set(found.to_dict()["order_parameters"]) == {
        "V", "Q", "M", "Vs", "Vw", "qs", "qw", "ms", "Vhat", "qhat", "mhat"}


@pytest.mark.parametrize(("ask", "said"), [
    (lambda: random_features("tanh", "sin", loss="hinge"), "needs labels of .-1"),
    (lambda: random_features("1", "sin"), "constant"),
    (lambda: random_features("exp(z**2)", "sin"), "not square integrable"),
    (lambda: random_features(hx.parse("relu(V*z)", symbols={"V": "positive"}), "sin"), "letter of the theory"),
    (lambda: random_features("tanh", "sin").solve(alpha=1, lam=0.1), "gamma has no value"),
    (lambda: random_features("tanh", "sin").solve(alpha=1, gamma=-1, lam=0.1), "gamma must be finite and positive"),
    (lambda: random_features("tanh", "sign", loss="logistic").solve(alpha=1, gamma=1, lam=0), "lam must be finite and positive"),
])
def test_bad_input(ask, said):
    with pytest.raises(BadInput, match=said):
        ask()


# -- two clusters ------------------------------------------------------------------------------------------------------------
CLUSTERS = {"alpha": 1.5, "gamma": 0.5, "lam": 0.1, "Delta": 0.5, "rho": 1.2, "fraction": 0.3}


@pytest.mark.slow
def test_many_linear_features_of_clusters_are_the_clusters():
    """sigma = z, p/d -> oo: W^T W/p -> 1, and the readout is one of the data, the linear model with n/d samples."""
    at, gamma, loss = {k: v for k, v in CLUSTERS.items() if k != "gamma"}, 1e-6, "logistic"
    wide = random_features("z", labels="mixture", loss=loss).solve(**{**at, "alpha": 1.5*gamma}, gamma=gamma)
    linear = hx.theories.glm(loss, "mixture").solve(**at)
    for here, there in {"test_error": "test_error", "train_error": "train_error", "M": "m", "Vs": "V", "qs": "q"}.items():
        assert wide[here] == pytest.approx(linear[there], rel=1e-5), here


@pytest.mark.slow
def test_the_objective_of_clusters_grows_with_lam_and_the_features_carry_an_intercept():
    theory, step = random_features("relu", labels="mixture", loss="logistic"), 1e-4
    found = theory.solve(**{**CLUSTERS, "lam": np.array([0.1 - 2*step, 0.1 - step, 0.1 + step, 0.1 + 2*step, 0.1])})
    o = found["train_objective"]
    assert (o[0] - 8*o[1] + 8*o[2] - o[3])/(12*step) == pytest.approx(found["qw"][4]/(2*1.5), rel=1e-7)
    assert "b" in theory.order_parameters and "b" not in random_features("erf", labels="mixture").order_parameters
    # more labels -1; with as many of each the constant is 0, and the sides may be exchanged
    even, other = (theory.solve(**{**CLUSTERS, "fraction": share}) for share in (0.5, 0.7))
    assert found["b"][4] < -0.1 and abs(even["b"]) < 1e-9
    assert other["b"] == pytest.approx(-found["b"][4], rel=1e-8) and other["M"] == pytest.approx(found["M"][4], rel=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "loss", "more"), [
    ("erf", "logistic", {}), ("relu", "square", {"rho": 2.0, "Delta": 0.7})])
def test_clusters_through_real_features(sigma, loss, more):
    """Within three standard errors; the slope of the features along the clusters' axis taken at Delta = 1 would be seen."""
    theory, at = random_features(sigma, labels="mixture", loss=loss), {**CLUSTERS, **more}
    both = hx.curve(theory, alpha=[1.5], simulate={"dimension": 200, "seeds": 8}, **{k: v for k, v in at.items() if k != "alpha"})
    measured = both.simulation
    names = ("test_error", "train_error", "qs", "qw", "ms")
    off = {n: float(((measured[n] - both[n])/measured.standard_error[n])[0]) for n in names}
    assert all(abs(z) < 3 for z in off.values()), off
    planted = dict(theory.system.equations)
    by_name = {s.name: s for s in planted}
    planted[by_name["M"]] *= hx.symbols.Delta
    wrong = hx.System(planted, where=theory.system.where, parameters=theory.system.parameters,
                      observables=theory.system.observables)
    value = wrong.solve(**at, start={n: float(both[n][0]) for n in theory.order_parameters})["test_error"]
    assert abs(float(measured["test_error"][0]) - value) > 3*float(measured.standard_error["test_error"][0])


def test_clusters_on_the_command_line(capsys):
    from hermitex.face.cli import main

    asked = ["curve", "random-features", "--sigma", "relu", "--loss", "logistic", "--labels", "mixture", "--gamma", "0.5",
             "--lam", "0.1", "--alpha", "1.5", "--Delta", "0.5", "--rho", "1.2", "--fraction", "0.3", "--json"]
    assert main(asked) == 0
    answer = json.loads(capsys.readouterr().out)
    expected = random_features("relu", labels="mixture", loss="logistic").solve(**CLUSTERS)
    assert answer["test_error"] == pytest.approx([float(expected["test_error"])], rel=1e-9)
    assert answer["parameters"]["labels"] == "mixture"
    assert main([*asked, "--target", "sign"]) == 2 and "leave the target" in capsys.readouterr().err


@pytest.mark.parametrize("ask, word", [
    (lambda: random_features("erf"), "target"), (lambda: random_features("erf", labels="sign"), "mixture"),
    (lambda: random_features("erf", labels="mixture", loss="hinge").solve(**{**CLUSTERS, "fraction": 1}), "fraction"),
    (lambda: random_features("erf", labels="mixture").solve(**{**CLUSTERS, "Delta": 0}), "Delta"),
    (lambda: random_features("He2", labels="mixture").solve(**{**CLUSTERS, "Delta": 1}), "constant")])
def test_clusters_that_do_not_exist(ask, word):
    with pytest.raises(hx.errors.BadInput, match=word):
        ask()
