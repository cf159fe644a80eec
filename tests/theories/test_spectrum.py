"""m(z) = (1/p) tr(Phi^T Phi/p - z)^{-1} = V_2: published values, sum rules, edges, an eigenvalue histogram."""

import json
from pathlib import Path

import numpy as np
import pytest

import hermitex as hx
from hermitex.errors import BadInput

REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "one_step_bounds.json").read_text())["stieltjes"]
spectrum = hx.theories.spectrum


def totals(law):
    """(mass, first moment) by the Gauss rule whose nodes x are; the atom included."""
    each, mass, moment = len(law.x)//max(1, len(law.edges)), law.mass_at_zero, 0.0
    angle = np.pi*(np.arange(each) + 0.5)/each
    for i in range(len(law.edges)):
        x, y = law.x[i*each:(i + 1)*each], law.density[i*each:(i + 1)*each]
        weight = (x[-1] - x[0])/2/np.cos(angle[0])*np.sin(angle)*np.pi/each
        mass, moment = mass + y @ weight, moment + (x*y) @ weight
    return mass, moment


@pytest.mark.parametrize("row", REFERENCE, ids=lambda row: row["sigma"])
def test_published_values(row):
    law = spectrum(row["sigma"], **{n: row[n] for n in ("r", "c", "alpha", "beta")})
    z, m = (np.array([complex(*v) for v in row[n]]) for n in ("z", "m"))
    np.testing.assert_allclose(law.stieltjes(z), m, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(law.stieltjes(z.conj()), m.conj(), rtol=1e-9, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("sigma, at", [
    ("tanh", {"r": 1.2, "c": 1.1, "alpha": 1.5, "beta": 1}), ("sin", {"r": 1, "alpha": 1, "beta": 2}),
    ("z + He3(z)/10", {"r": 0, "alpha": 8, "beta": 4}), ("z + He2(z)/20", {"r": 0, "alpha": 8, "beta": 3, "normalisation": "n"}),
    ("z*tanh(softplus(z))", {"r": 0, "alpha": 3, "beta": 1, "c": 0.5})])
def test_sum_rules(sigma, at):
    law = spectrum(sigma, **at)
    mass, moment = totals(law)
    assert mass == pytest.approx(1, abs=1e-8) and moment == pytest.approx(law.first_moment, rel=1e-8)
    for low, high in law.edges:  # real and increasing outside, and a square root at the edge
        assert law.stieltjes(low*(1 - 1e-6)).imag == pytest.approx(0, abs=1e-7*abs(law.stieltjes(low*(1 - 1e-6))))
        ends = [law.stieltjes(high*(1 - t)).imag for t in (1e-6, 4e-6)]
        assert ends[1]/ends[0] == pytest.approx(2, rel=1e-2)


@pytest.mark.slow
@pytest.mark.parametrize("alpha, beta", [(2, 0.5), (0.7, 3), (3, 1.5)])
def test_linear_features_are_a_product_of_two_wishart_matrices(alpha, beta):
    """sigma(u) = u, r = 0: Phi = X W^T, whose S-transform gives z = (1 + t)(alpha + t)(beta + t)/(beta t), t = -beta (1 + z m)."""
    law = spectrum("z", r=0, alpha=alpha, beta=beta)
    z = 0.7 + 0.3j
    t = -beta*(1 + z*law.stieltjes(z))
    assert (1 + t)*(alpha + t)*(beta + t)/(beta*t) == pytest.approx(z, rel=1e-10)
    cubic = np.poly([-1, -alpha, -beta])
    flat = np.roots(np.polysub(np.polymul(np.polyder(cubic), [1, 0]), cubic))  # dz/dt = 0
    edges = sorted(np.polyval(cubic, s)/s/beta for s in flat.real)[1:]          # the third is negative
    np.testing.assert_allclose(law.edges[0], edges, rtol=1e-8)
    assert law.mass_at_zero == pytest.approx(max(0, 1 - min(alpha, beta, 1)/beta))


def test_even_features_without_a_spike_are_marchenko_pastur():
    """mu_1 = 0: Phi Phi^T/p is E[mu_star^2] times the law of ratio n/p, plus n - p zeros."""
    alpha, beta = 3.0, 1.2
    law = spectrum("He2(z)", r=0, alpha=alpha, beta=beta)
    mp = hx.theories.MarchenkoPastur(beta/alpha)
    np.testing.assert_allclose(law.edges[0], 2*alpha/beta*np.array(mp.edges), rtol=1e-9)
    np.testing.assert_allclose(law.density, mp.density(law.x*beta/alpha/2)*beta/alpha/2, rtol=1e-7)


@pytest.mark.slow
def test_normalisations_are_one_law():
    at = {"r": 1.2, "c": 1.1, "alpha": 1.5, "beta": 0.8}
    p, n = spectrum("tanh", **at), spectrum("tanh", normalisation="n", **at)
    z = 0.5 + 0.2j
    assert n.stieltjes(z) == pytest.approx(1.5/0.8*p.stieltjes(1.5/0.8*z), rel=1e-10)  # m_n(z) = (alpha/beta) m((alpha/beta) z)
    assert n.outlier["times"] == "p" and n.outlier["coefficient"] == p.outlier["coefficient"]
    wrong = 0.8/1.5*p.stieltjes(0.8/1.5*z)
    assert abs(n.stieltjes(z) - wrong) > 0.1*abs(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("sigma, c_, value", [("tanh", 1.1, 0.690), ("sign", 1.0, 0.520)])
def test_published_constants_of_the_outlier(sigma, c_, value):
    row = next(r for r in REFERENCE if r["sigma"] == sigma)
    law = spectrum(sigma, r=row["r"], c=c_, alpha=row["alpha"], beta=row["beta"], dimension=400)
    assert law.outlier["constant"] == pytest.approx(value, abs=6e-4)
    assert law.outlier["value"] == pytest.approx(400*row["alpha"]*law.outlier["coefficient"] + law.outlier["constant"])


@pytest.mark.slow
def test_limits():
    assert spectrum("1", r=0, alpha=1, beta=2).mass_at_zero == 1
    assert spectrum("0", r=0, alpha=1, beta=2).outlier is None and spectrum("tanh", r=0, alpha=1, beta=2).outlier is None
    assert spectrum("tanh", r=1, alpha=0.5, beta=2).mass_at_zero == pytest.approx(0.75)


@pytest.mark.slow
def test_a_cubic_has_no_last_edge():
    tail = spectrum("He3", r=1, alpha=1, beta=2)
    assert tail.edges[-1][1] == np.inf and any("unbounded" in n for n in tail.notes)


@pytest.mark.parametrize("wrong", [{"c": 0}, {"alpha": -1}, {"beta": 0}, {"r": float("nan")}, {"alpha": float("inf")},
                                   {"normalisation": "d"}, {"points": 1}, {"r": "x"}, {"dimension": -3}, {"r": 1e30}, {"c": 1e-20}])
def test_hostile_numbers_get_one_line(wrong):
    with pytest.raises(BadInput) as caught:
        spectrum("tanh", **{"r": 1, "alpha": 1.5, "beta": 1, **wrong})
    assert "\n" not in str(caught.value)


def test_shows_itself():
    law = spectrum("tanh", r=1.2, c=1.1, alpha=1.5, beta=1, points=60)
    assert "bulk on [0.00436387, 2.42171]" in repr(law) and "outlier" in law._repr_html_()
    ax = law.plot(histogram=np.linspace(0.1, 2, 50))
    assert "eigenvalue" in ax.get_xlabel() and len(ax.get_lines()) == 1
    assert set(law.to_dict()) >= {"x", "density", "edges", "outlier"}


@pytest.mark.slow
@pytest.mark.parametrize("sigma, f", [("tanh", np.tanh), ("sign", np.sign)])
def test_eigenvalues_of_a_finite_network(sigma, f):
    d, alpha, beta, r, c = 500, 1.5, 1.0, 1.2, 1.1
    n, p, rng = int(alpha*d), int(beta*d), np.random.default_rng(7)
    W = rng.standard_normal((p, d))
    W *= np.sqrt(c)/np.linalg.norm(W, axis=1, keepdims=True)
    v = rng.standard_normal(d)
    v /= np.linalg.norm(v)
    X = rng.standard_normal((n, d))
    values = np.linalg.eigvalsh((lambda F: F.T @ F/p)(f(X @ W.T + r*(X @ v)[:, None])))
    law = spectrum(sigma, r=r, c=c, alpha=alpha, beta=beta, dimension=d)
    bulk = values[:-1]
    assert bulk.max() < law.edges[-1][1]*1.05
    assert bulk.mean() == pytest.approx(law.first_moment, rel=0.03)
    z = 0.5 + 0.2j
    assert np.mean(1/(bulk - z)) == pytest.approx(law.stieltjes(z), rel=0.02)
    assert values[-1] == pytest.approx(law.outlier["value"], rel=0.15)  # E mu_0^2 over n samples fluctuates


@pytest.mark.slow
@pytest.mark.parametrize("sigma, feature, r, alpha", [("relu", lambda u: np.maximum(u, 0), 30.0, 1.5),
                                                       ("sign", np.sign, 20.0, 2.0)])
def test_rows_that_are_alike_are_told_of(sigma, feature, r, alpha):
    """Where the features of a sample do not vary its row is no new one: zeros of a finite matrix, bulk of the limit."""
    law = spectrum(sigma, r=r, alpha=alpha, beta=1.0)
    note = next(n for n in law.notes if n.startswith("of the eigenvalues"))
    share = float(note.split()[3])
    rng, d = np.random.default_rng(1), 300
    W = rng.standard_normal((d, d))
    W /= np.linalg.norm(W, axis=1)[:, None]
    kappa = rng.standard_normal(int(alpha*d))
    Phi = feature(rng.standard_normal((kappa.size, d)) @ W.T + r*kappa[:, None])
    seen = np.mean(np.linalg.eigvalsh(Phi.T @ Phi/d) < 1e-9*law.first_moment)
    assert law.mass_at_zero == 0 and 0.1 < share <= seen + 0.05
    assert not any("lie below" in n for n in spectrum("tanh", r=1.0, alpha=alpha, beta=1.0).notes)


# -- letters of a vocabulary, and norms that fluctuate: theory sheet one_step_2, A5 ------------------------------------
LETTERS = [  # sigma, alpha, beta, n, letters, outliers
    ("tanh", 1.5, 0.8, 750, dict(vocabulary=[1, 3], fractions=[0.4, 0.6], norms=[1, 1.3]), [338.793790678358, 4.2914629467]),
    ("relu", 2, 0.5, 1200, dict(vocabulary=[1, -1.5], norms=[1, 1.2]), [754.8522614433349, 355.87591246112277]),
    ("relu", 2, 1, 1000, dict(vocabulary=[0.8]), [443.24708759790263]),
    ("relu", 2, 1, 1000, dict(vocabulary=[0.8], rows="gaussian"), [443.29564411775306]),
    ("erf", 2, 0.8, 1000, dict(vocabulary=[0.5, 1, 3], fractions=[0.3, 0.3, 0.4], norms=[1, 1.1, 1.5], biases=[0, 0.3, -0.5]),
     [334.848101, 19.166290]),
    ("relu", 2, 0.8, 1000, dict(vocabulary=[1, 1], norms=[0.4, 2]), [637.495522, 10.805962965])]
RESOLVENT = {  # m at z
    0: ([0.010632821136869967 + 0.035442737122899894j, 1.068598524255432 + 0.035442737122899894j],
        [5.616175990103006 + 6.239440114817719j, -1.059421374245725 + 0.6308184963842908j]),
    4: ([0.9128888574274739 + 0.059959859272740494j, 3.5975915563644296 + 0.059959859272740494j],
        [-0.820408666327137 + 0.9657231510627162j, -0.43993624674493265 + 0.0329510089816268j])}


@pytest.mark.slow
@pytest.mark.parametrize("row", range(len(LETTERS)))
def test_outliers_and_resolvents_of_letters(row):
    sigma, alpha, beta, n, letters, known = LETTERS[row]
    law = spectrum(sigma, r=1, alpha=alpha, beta=beta, dimension=n/alpha, **letters)
    np.testing.assert_allclose(law.outliers, known, rtol=2e-9, atol=6e-7)  # the digits of the sheet
    if row in RESOLVENT:
        z, m = RESOLVENT[row]
        np.testing.assert_allclose(law.stieltjes(np.array(z)), m, rtol=1e-9)
    mass, moment = totals(law)
    assert mass == pytest.approx(1, abs=1e-7) and moment == pytest.approx(law.first_moment, rel=1e-7)


@pytest.mark.slow
def test_equal_letters_are_one_letter_and_norms_alone_make_an_outlier():
    at = dict(r=1.2, alpha=1.5, beta=0.8, dimension=400)
    one = spectrum("gelu", c=1.1, **at)
    two = spectrum("gelu", vocabulary=[1, 1], fractions=[0.3, 0.7], norms=[1.1, 1.1], **at)
    np.testing.assert_allclose(two.edges, one.edges, rtol=1e-9)
    np.testing.assert_allclose(two.outliers, one.outliers, rtol=1e-9)
    assert abs(one.outliers[0] - one.outlier["value"]) < 1e-2*one.outlier["constant"]
    fluctuating = spectrum("gelu", vocabulary=[1, 1], norms=[0.4, 1.8], **at)
    assert len(fluctuating.outliers) == 2 and fluctuating.outlier is None
    n_scaled = spectrum("gelu", vocabulary=[1, 1], norms=[0.4, 1.8], normalisation="n", **at)
    np.testing.assert_allclose(n_scaled.outliers, 0.8/1.5*np.array(fluctuating.outliers), rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("letters", [dict(vocabulary=[1, 3], fractions=[0.4, 0.6], norms=[1, 1.3]),
                                     dict(vocabulary=[1, 1], norms=[0.4, 2])])
def test_eigenvalues_of_letters_agree_within_three_standard_errors(letters):
    from hermitex.experiments.spectrum_experiment import simulate

    law = spectrum("relu" if letters["vocabulary"] == [1, 1] else "tanh", r=1, alpha=2, beta=0.8, dimension=400, **letters)
    found = simulate(law, dimension=400, seeds=16)
    off = (np.array(found["outliers"]) - law.outliers)/np.array(found["standard_error"]["outliers"])
    assert np.abs(off).max() < 3 and abs(found["below"] - found["expected"]) < 0.01


def test_outliers_without_a_dimension_say_what_they_need_or_need_none():
    at = dict(r=0.5, c=1, alpha=2, beta=1)
    plain = spectrum("relu", **at)
    assert plain.outliers == () and all("give dimension=" in shown for shown in (repr(plain), plain._repr_html_()))
    known = spectrum("relu", **at, dimension=100)
    assert f"outliers: {known.outliers[0]:.6g}" in repr(known) and "give" not in known._repr_html_()
    of_norms = [spectrum("He2", r=0, alpha=20, beta=1, rows="gaussian", dimension=d).outliers for d in (None, 1e3)]
    assert len(of_norms[0]) == 1 and np.allclose(*of_norms, rtol=1e-12)  # mu_0 = 0: no n enters


def test_outliers_are_drawn_and_listed():
    law = spectrum("relu", r=1, alpha=2, beta=0.8, dimension=500, vocabulary=[1, 1], norms=[0.4, 2], points=60)
    ax = law.plot()
    said = " ".join(t.get_text() for t in ax.texts)
    assert "outlier at 637.5" in said and ax.get_xlim()[1] > law.outliers[1]
    assert law.to_dict()["outliers"] == list(law.outliers) and "outlier" in law._repr_html_()
    assert spectrum("relu", r=1, alpha=2, beta=0.8, vocabulary=[1, 1], norms=[0.4, 2], points=60).outliers == ()


@pytest.mark.parametrize("letters, word", [(dict(vocabulary=[1, 2], norms=[1]), "norms has 1 entries for 2 letters"),
                                           (dict(vocabulary=[1, 2], fractions=[0.5, 0.6]), "sum is 1"),
                                           (dict(vocabulary=[1, 2], fractions=["x", 1]), "list of numbers"),
                                           (dict(vocabulary=[1e9]), "at most"), (dict(rows="cube"), "sphere or gaussian")])
def test_letters_that_do_not_fit_get_one_line(letters, word):
    with pytest.raises(BadInput, match=word) as caught:
        spectrum("tanh", r=1, alpha=1, beta=1, **letters)
    assert "\n" not in str(caught.value)
