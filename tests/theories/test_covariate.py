"""The Gaussian covariate model: regression, random features and matrices as cases of it, tables, simulations, files, teeth."""

import json
from pathlib import Path

import numpy as np
import pytest

import hermitex as hx
from hermitex.errors import BadInput, HermitexError
from hermitex.experiments.covariate_experiment import simulate
from hermitex.experiments.statistics import agreement
from hermitex.face import cli
from hermitex.theories import covariate, glm, kernel_limit, random_features

ROWS = json.loads((Path(__file__).parents[1]/"reference"/"random_features.json").read_text())
KEYS = ("V", "q", "m", "Vhat", "qhat", "mhat", "test_error")


def untrained_layer(sigma, gamma, points=4000):
    """Diagonals whose shares are the spectral law of mu_1^2 W W^T/d + mu_star^2 on Chebyshev nodes; gamma not 1."""
    angle = np.pi*np.arange(1, points + 1)/(points + 1)
    x = 1 + gamma + 2*np.sqrt(gamma)*np.cos(angle)
    share = gamma*2*np.sin(angle)**2/x/(points + 1)
    weights = kernel_limit(sigma)
    mu_1, mu_star = float(weights.weight(1)), weights.tail(1)
    if gamma < 1:
        x, share = np.append(x, 0.0), np.append(share, 1 - gamma)
    return {"Omega": mu_1*x/gamma + mu_star, "Phi": np.sqrt(mu_1*x)/gamma, "Psi": np.ones(x.size), "theta": np.ones(x.size),
            "share": share}


def matrices(seed, p=40, k=30):
    """A joint covariance of features and a teacher."""
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((p + k, 2*(p + k)))*np.linspace(0.2, 1.5, p + k)[:, None]/np.sqrt(p + k)
    whole = root @ root.T
    return {"Psi": whole[:k, :k], "Phi": whole[:k, k:], "Omega": whole[k:, k:], "theta": rng.standard_normal(k)}


def by_iteration(at, alpha, lam, Delta, *, lost_square=False, same_sizes=False):
    """The square loss and a linear teacher, from the matrices themselves, without the package; the keywords plant errors."""
    k, p = at["Phi"].shape
    tau = at["Phi"].T @ at["theta"]
    rho, q, m, V = at["theta"] @ at["Psi"] @ at["theta"]/k, 0.0, 0.0, 1.0
    ratio = 1.0 if same_sizes else p/k
    for _ in range(500):
        Vhat, qhat = alpha/(1 + V), alpha*(rho + Delta - 2*m + q)/(1 + V)**2
        R = np.linalg.inv(lam*np.eye(p) + Vhat*at["Omega"])
        power = (Vhat if lost_square else Vhat**2)*np.outer(tau, tau)*ratio + qhat*at["Omega"]
        V, m = np.trace(at["Omega"] @ R)/p, Vhat*(tau @ R @ tau)/p*ratio
        q = np.trace(power @ at["Omega"] @ R @ R)/p
    return {"V": V, "q": q, "m": m, "test_error": rho - 2*m + q}


# -- identities and cases ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("loss, link", [("square", "linear"), pytest.param("logistic", "sign", marks=pytest.mark.slow)])
def test_isotropic_features_are_a_linear_model(loss, link):
    one = np.ones(4)
    at = {"alpha": np.array([0.7, 2.0]), "lam": 0.1, "Delta": 0.25}
    found = covariate(loss, link).solve(**at, Omega=one, Psi=one, Phi=one, theta=1.3*one)
    other = hx.theories.glm(loss, link).solve(**at, rho=1.69)
    for key in KEYS:
        assert found[key] == pytest.approx(other[key], rel=1e-10), key


@pytest.mark.parametrize("row", [r for r in ROWS["square"] if r["sigma"] != "relu" and r["lam"] > 1e-5],
                         ids=lambda r: f"{r['sigma']}, {r['target']}, {r['gamma']}")
def test_random_features_are_a_case(row):
    """Those of E sigma = 0, which learn no intercept."""
    at = untrained_layer(row["sigma"], row["gamma"])
    found = covariate("square", row["target"]).solve(alpha=row["alpha"], lam=row["lam"], Delta=row["Delta"], **at)
    for key in ("V", "test_error", "train_error"):
        assert found[key] == pytest.approx(row[key], rel=1e-9)
    other = hx.theories.random_features(row["sigma"], row["target"]).solve(
        alpha=row["alpha"], gamma=row["gamma"], lam=row["lam"], Delta=row["Delta"])
    for key, name in (("V", "V"), ("q", "Q"), ("m", "M"), ("Vhat", "Vhat"), ("qhat", "qhat"), ("mhat", "mhat")):
        assert found[key] == pytest.approx(other[name], rel=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("link", ["sign", "logit"])
def test_random_features_and_the_covariate_model_classify_alike(link):
    at, point = untrained_layer("erf", 0.5), {"alpha": 2.0, "lam": 0.1, "Delta": 0.2}
    found = covariate("logistic", link).solve(**point, **at)
    own = ("sign", {}) if link == "sign" else ("z", {"link": "logit"})
    other = hx.theories.random_features("erf", own[0], loss="logistic", **own[1]).solve(**point, gamma=0.5)
    names = {"V": "V", "q": "Q", "m": "M", "Vhat": "Vhat", "qhat": "qhat", "mhat": "mhat"}
    for key in (*names, "test_error", "train_error", "train_objective"):
        assert found[key] == pytest.approx(other[names.get(key, key)], rel=1e-10), key
    one = covariate("logistic", link).solve(**{**point, "Delta": 0.25}, **at)
    assert one["V"] != pytest.approx(other["V"], rel=1e-4)


@pytest.mark.slow
def test_classification_by_random_features_is_a_case():
    rows = [r for r in ROWS["labels"] if r["loss"] == "logistic" and r["sigma"] in ("erf", "tanh") and r["gamma"] != 1]
    assert len(rows) >= 3
    for row in rows:
        found = covariate("logistic", "sign").solve(alpha=row["alpha"], lam=row["lam"], Delta=row["Delta"],
                                                    **untrained_layer(row["sigma"], row["gamma"]))
        for key, name in (("V", "V"), ("q", "Q"), ("m", "M"), ("test_error", "test_error"), ("train_error", "train_error")):
            assert found[key] == pytest.approx(row[name], rel=1e-8), row


def test_a_turned_basis_changes_nothing_and_the_envelope_theorem_holds():
    at = matrices(0)
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((40, 40)))[0]
    theory, point = covariate("square", "tanh(2*z)"), {"alpha": 1.5, "lam": 0.05, "Delta": 0.2}
    found = theory.solve(**point, **at)
    turned = theory.solve(**point, **{**at, "Omega": turn @ at["Omega"] @ turn.T, "Phi": at["Phi"] @ turn.T})
    assert [turned[k] for k in KEYS] == pytest.approx([found[k] for k in KEYS], rel=1e-9)
    up, down = (theory.solve(**{**point, "lam": 0.05 + h}, **at)["train_objective"] for h in (1e-5, -1e-5))
    norm = (found["train_objective"] - found["train_error"])/0.05
    assert (up - down)/2e-5 == pytest.approx(norm, rel=1e-6)


# -- another route, and planted errors -----------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(3))
def test_the_matrices_themselves(seed):
    at = matrices(seed)
    found = covariate().solve(alpha=1.3, lam=0.1, Delta=0.2, **at)
    other = by_iteration(at, 1.3, 0.1, 0.2)
    assert [found[k] for k in other] == pytest.approx(list(other.values()), rel=1e-9)
    for wrong in ({"lost_square": True}, {"same_sizes": True}):
        assert found["test_error"] != pytest.approx(by_iteration(at, 1.3, 0.1, 0.2, **wrong)["test_error"], rel=1e-3)


@pytest.mark.parametrize("loss, link, Delta", [("square", "linear", 0.2), ("square", "tanh(2*z)", 0.1),
                                               pytest.param("logistic", "logit", 0.0, marks=pytest.mark.slow)])
def test_simulations(loss, link, Delta):
    k = np.arange(1, 201.0)
    at = {"Omega": k**-0.5 + 0.05, "Psi": k**-0.5 + 0.1, "Phi": k**-0.5, "theta": np.full(200, 2.0)}
    theory, alphas = covariate(loss, link), [0.5, 1.5]
    measured = simulate(theory, alphas, lam=0.05, Delta=Delta, seeds=24, **at)
    assert agreement(theory.curve(alphas, lam=0.05, Delta=Delta, **at), measured).worst("test_error", "train_error", "m") < 3.5
    away = theory.curve(alphas, lam=0.1, Delta=Delta, **at)
    assert agreement(away, measured).worst("train_error", "m") > 3.5


# -- features of a user ------------------------------------------------------------------------------------------------
def test_features_give_their_covariances():
    rng = np.random.default_rng(3)
    u = rng.standard_normal((300, 12))
    v, theta = np.tanh(u @ rng.standard_normal((12, 20))), rng.standard_normal(12)
    measured = {"Omega": v.T @ v/300, "Psi": u.T @ u/300, "Phi": u.T @ v/300, "theta": theta}
    point = {"alpha": 2.0, "lam": 0.1, "Delta": 0.05}
    found = covariate().from_features(u, v, theta=theta).solve(**point)
    assert found["test_error"] == pytest.approx(covariate().solve(**point, **measured)["test_error"], rel=1e-12)
    fitted = covariate().from_features(u, v, labels=u @ theta/np.sqrt(12)).solve(**point)
    assert fitted["test_error"] == pytest.approx(found["test_error"], rel=1e-9)
    several = [covariate().from_features(u, v, theta=rng.standard_normal(12)).solve(**point) for _ in range(60)]
    anyone = covariate().from_features(u, v).solve(**point)
    for key in ("test_error", "m"):  # linear in theta theta^T at the square loss
        error = np.std([s[key] for s in several])/np.sqrt(60)
        assert abs(np.mean([s[key] for s in several]) - anyone[key]) < 4*error


def test_what_no_linear_function_of_the_features_gives_is_noise():
    """Ridge regression on samples of the data; without that noise the theory is far off."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((10_000, 40))
    y = x[:, 0] + 0.8*(x[:, 1]**2 - 1)/np.sqrt(2)
    theory, at = covariate().from_features(x, labels=y), {"alpha": 3, "lam": 0.1}
    errors = []
    for _ in range(100):
        some = rng.integers(0, len(x), 120)
        v = x[some]/np.sqrt(40)
        w = np.linalg.solve(v.T @ v + 0.1*np.eye(40), v.T @ y[some])
        errors.append(np.mean((y - x @ w/np.sqrt(40))**2))
    found, error = theory.solve(**at)["test_error_noisy"], np.std(errors)/10
    assert abs(np.mean(errors) - found) < 3.5*error
    assert abs(np.mean(errors) - theory.solve(**at, Delta=0)["test_error_noisy"]) > 20*error
    assert theory.to_dict()["numbers"]["Delta"] == pytest.approx(0.64, abs=0.05)
    assert theory.solve(**at, Delta=0.64)["test_error_noisy"] == pytest.approx(found, rel=0.05)


@pytest.mark.slow
def test_labels_of_signs_give_the_direction_and_the_noise(capsys, tmp_path):
    """The same curve as the teacher's own direction and noise; without the noise it is far off."""
    rng = np.random.default_rng(5)
    x, theta = rng.standard_normal((20_000, 20))*np.linspace(0.5, 1.5, 20), np.linspace(-1, 2, 20)
    y = np.sign(x @ theta/np.sqrt(20) + 0.8*rng.standard_normal(len(x)))
    made, known = (covariate("logistic", "sign").from_features(x, **how) for how in ({"labels": y}, {"theta": theta}))
    found, expected = (one.curve([0.5, 2], lam=0.1, **more) for one, more in ((made, {}), (known, {"Delta": 0.64})))
    for name in ("test_error", "train_error", "q"):
        assert found[name] == pytest.approx(expected[name], rel=0.03), name
    assert np.all(known.curve([0.5, 2], lam=0.1).test_error < expected.test_error - 0.05)
    np.savetxt(tmp_path/"x.csv", x[:500], delimiter=",")
    np.savetxt(tmp_path/"y.csv", y[:500])
    words = ["curve", "covariate", "--alpha", "1", "--lam", "0.1", "--features", str(tmp_path/"x.csv"), "--labels",
             str(tmp_path/"y.csv"), "--loss", "logistic"]
    assert cli.main([*words, "--link", "sign"]) == 0 and "test_error" in capsys.readouterr().out
    np.savetxt(tmp_path/"y.csv", 2*y[:500])
    assert cli.main([*words, "--link", "sign"]) == 2 and "labels are 1 and -1, not" in capsys.readouterr().err


def test_a_file_of_features_gives_a_curve_in_one_command(capsys, tmp_path):
    x = np.random.default_rng(4).standard_normal((200, 10))*np.linspace(0.3, 2, 10)
    np.savetxt(tmp_path/"x.csv", x, delimiter=",")
    np.savetxt(tmp_path/"y.csv", x[:, 0] + x[:, 9], delimiter=",")
    words = ["curve", "covariate", "--alpha", "0.5,2", "--lam", "0.1", "--features", str(tmp_path/"x.csv")]
    assert cli.main([*words, "--labels", str(tmp_path/"y.csv"), "--Delta", "0.1", "--plot", str(tmp_path/"a.svg"), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    expected = covariate().from_features(x, labels=x[:, 0] + x[:, 9]).curve([0.5, 2], lam=0.1, Delta=0.1)
    assert answer["test_error"] == pytest.approx(expected.test_error.tolist(), rel=1e-10)
    assert cli.main([*words, "--simulate", "--seeds", "3"]) == 0 and "experiment" in capsys.readouterr().out
    assert cli.main(["curve", "covariate", "--alpha", "1", "--lam", "1"]) == 2 and "Omega" in capsys.readouterr().err


def test_products_are_one():
    at, theory = matrices(2), covariate("square", "erf")
    found, curve = theory.solve(alpha=1.5, lam=0.2, **at), theory.curve([1.5], lam=0.2, **at)
    seen = theory.complete(theory.given({"alpha": 1.5, "lam": 0.2, **at}))
    system = theory.system.solve(alpha=1.5, lamda=0.2, Delta=0, rho=float(seen["rho"]),
                                 **{n: seen[n] for n in ("omega", "signal", "share")})
    for key in KEYS:
        assert curve[key][0] == pytest.approx(found[key], rel=1e-12) and system[key] == pytest.approx(found[key], rel=1e-9)
    ax = covariate("square", "erf").curve([1, 2], lam=0.1, **at).plot(curve.plot())
    assert len({t.get_text() for t in ax.get_legend().get_texts()}) == 2
    two = [covariate().curve([1, 2], lam=0.1, Delta=v, **at).title for v in (0.1, 0.5)]
    two += [covariate().curve(alpha=v, lam=[0.1, 1], **at).title for v in (1, 2)]
    assert len(set(two)) == 4
    assert "loureiro" in theory.bibtex().lower() and r"\sum" in theory.latex() and theory.to_dict()["theory"] == "covariate"


def test_the_best_ridge_is_the_noise_and_sweeps_tell_features_apart():
    one = np.ones(4)
    best = covariate().minimise("test_error", over="lam", bounds=(1e-2, 10), alpha=2, Delta=0.25, Omega=one, Psi=one, Phi=one,
                                theta=one)
    assert best["lam"] == pytest.approx(0.25, rel=1e-6)
    x = np.random.default_rng(5).standard_normal((2, 60, 40))*np.linspace(0.5, 2, 40)
    for features in x:
        theory = covariate().from_features(features)
        table = hx.sweep(theory, {"alpha": [0.5, 1.0]}, parameters={"lam": 0.1})
        assert table["test_error"] == pytest.approx(theory.solve(alpha=np.array([0.5, 1.0]), lam=0.1)["test_error"], rel=1e-9)
    at = matrices(1)
    table = hx.sweep(covariate(), {"alpha": [0.5, 1.0]}, parameters={"lam": 0.1, **at})
    assert table["m"] == pytest.approx(covariate().solve(alpha=np.array([0.5, 1.0]), lam=0.1, **at)["m"], rel=1e-9)


ONE = np.ones(3)
AT = {"alpha": 1, "lam": 0.1, "Omega": ONE, "Psi": ONE, "Phi": ONE, "theta": ONE}


@pytest.mark.parametrize("change, word", [
    ({"Phi": 1.5*ONE}, "joint covariance"), ({"Phi": np.ones(2)}, "one length"), ({"Omega": -ONE}, "negative eigenvalue"),
    ({"lam": 0}, "lam"), ({"alpha": -1}, "alpha"), ({"Omega": np.eye(3)}, "are required"), ({"theta": None}, "theta"),
    ({"share": np.zeros(3)}, "share"),
    ({"Omega": 1.0}, "single"), ({"Psi": 1.0}, "single"), ({"Phi": 1.0}, "single"), ({"theta": 1.0}, "one length"),
    ({"Omega": np.eye(3), "Psi": 1.0, "Phi": np.eye(3)}, "single")])
def test_bad_input_is_one_line(change, word):
    with pytest.raises(BadInput) as caught:
        covariate().solve(**{**AT, **change})
    assert word.replace("joint covariance", "covariances of one Gaussian") in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("ask, word", [
    (lambda: covariate("logistic"), "labels of"), (lambda: covariate("square", "a*z"), "a"),
    (lambda: covariate().from_features(np.ones((5, 2)), np.ones((4, 2))), "samples"),
    (lambda: covariate().from_features(np.ones(5)), "row"),
    (lambda: covariate().from_features(np.eye(5), labels=[1, 2]), "one for each sample"),
    (lambda: covariate("logistic", "logit").from_features(np.eye(5), labels=np.ones(5)), "theta="),
    (lambda: covariate("square", "sign").from_features(np.eye(5), labels=np.ones(5)), "theta=")])
def test_what_cannot_be_made(ask, word):
    with pytest.raises(HermitexError) as caught:
        ask()
    assert word in str(caught.value)


@pytest.mark.parametrize("word", ["linear", "sign", "logit", "probit"])
def test_labels_and_link_mean_the_same_in_every_theory(word):
    loss = "square" if word == "linear" else "logistic"
    assert glm(loss, labels=word) is glm(loss, link=word)
    assert random_features("erf", "z", loss=loss, labels=word) is random_features("erf", "z", loss=loss, link=word)
    assert covariate(loss, labels=word).g == covariate(loss, link=word).g
    white = {"Omega": np.ones(3), "Psi": np.ones(3), "Phi": np.ones(3), "theta": np.ones(3)}
    alike = glm(loss, link=word).solve(alpha=2, lam=0.1, rho=1), covariate(loss, labels=word).solve(alpha=2, lam=0.1, **white)
    assert abs(alike[0]["test_error"] - alike[1]["test_error"]) < 1e-10
    with pytest.raises(BadInput, match="say two things about the labels; give one of them"):
        glm(loss, labels=word, link="sign" if word != "sign" else "logit")
