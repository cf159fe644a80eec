"""A readout of several values: reference values, splitting and merging letters, derivatives by mpmath, hostile input."""

import json
from itertools import combinations_with_replacement
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest

from hermitex.errors import BadInput
from hermitex.theories import one_step

ROWS = json.loads((Path(__file__).parents[1] / "reference" / "one_step_vocabulary.json").read_text())["rows"]
WRITTEN = {"he1+he3/6": "He1(z) + He3(z)/6"}
AT = {"alpha": np.array([0.4, 1.3, 2.5]), "beta": 1.5, "lam": 0.05, "r": 1.2, "gamma": 0.7, "Delta": 0.1}


def referenced(row):
    """The theory and the numbers of a reference row."""
    if row["kind"].startswith("W"):
        sigma, g, u, pi, alpha, beta, lam, r, Delta = row["args"]
        theory = one_step(sigma, WRITTEN.get(g, g), vocabulary=u, fractions=pi, rows="orthogonal")
        return theory, {"alpha": alpha, "beta": beta, "lam": lam, "r": r, "c": 1, "gamma": 1, "Delta": Delta}
    sigma, g, u, pi, c, alpha, beta, lam, r, gamma, Delta = row["args"]
    theory = one_step(sigma, WRITTEN.get(g, g), vocabulary=u, fractions=pi, norms=c)
    return theory, {"alpha": alpha, "beta": beta, "lam": lam, "r": r, "gamma": gamma, "Delta": Delta}


# -- reference values -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("row", ROWS, ids=["orthogonal", "independent", "independent, one far"])
def test_reference_values(row):
    theory, numbers = referenced(row)
    for key, more in (("out", {}), ("out_d600", {"dimension": 600})):
        if key not in row:
            continue
        found, wanted = theory.solve(**numbers, **more), row[key]
        assert found["test_error"] == pytest.approx(wanted["test"], abs=1e-7)
        assert found["train_error"] == pytest.approx(wanted["train"], abs=1e-7)
        for name, ours in {"m": "m", "zeta": "zeta", "psi": "psi", "q": "q2_", "q2": "q2_", "V": "V2_", "V2": "V2_"}.items():
            for k, value in enumerate(wanted.get(name, []), start=1):
                assert found[f"{ours}{k}"] == pytest.approx(value, rel=1e-7, abs=1e-7), (name, k)
        for k, l in combinations_with_replacement((1, 2), 2):
            if "q1" in wanted:
                assert found[f"q1_{k}{l}"] == pytest.approx(wanted["q1"][k - 1][l - 1], abs=1e-7)


def test_equations_are_made_once():
    for rows in ("sphere", "orthogonal"):
        one, other = (one_step("tanh", "z", vocabulary=u, rows=rows).system for u in ([1, -1], [2, 0.5]))
        assert one is other


# -- identities -------------------------------------------------------------------------------------------------------
def test_one_letter_is_the_spiked_features():
    one = one_step("tanh", "sign", vocabulary=[1]).solve(**AT, c=1.3, dimension=300, bias=0.3)
    plain = one_step("tanh", "sign").solve(**AT, c=1.3, dimension=300, bias=0.3)
    for name, theirs in {"V1_11": "V1", "V2_1": "V2", "Vhat1_11": "Vhat1", "m1": "m", "zeta1": "zeta", "psi1": "psi", "q1_11": "q1",
                         "q2_1": "q2", "qhat2_1": "qhat2", "test_error": "test_error", "train_error": "train_error"}.items():
        assert one[name] == pytest.approx(plain[theirs], rel=1e-9, abs=1e-12), name
    twice = one_step("tanh", "sign", vocabulary=[2]).solve(**{**AT, "r": 0.6}, c=1.3, dimension=300, bias=0.3)
    assert twice["test_error"] == pytest.approx(one["test_error"], rel=1e-12)


@pytest.mark.parametrize("count", [2, pytest.param(3, marks=pytest.mark.slow), pytest.param(4, marks=pytest.mark.slow)])
def test_equal_letters_are_one(count):
    shares = np.arange(1, count + 1)/sum(range(1, count + 1))
    found = one_step("tanh", "sign", vocabulary=[1]*count, fractions=shares).solve(**AT, c=1.3)
    plain = one_step("tanh", "sign").solve(**AT, c=1.3)
    each = range(1, count + 1)
    assert found["test_error"] == pytest.approx(plain["test_error"], rel=1e-9)
    assert found["train_error"] == pytest.approx(plain["train_error"], rel=1e-9)
    assert sum(found[f"q2_{k}"] for k in each) == pytest.approx(plain["q2"], rel=1e-9)
    assert sum(found[f"V1_{min(k, l)}{max(k, l)}"] for k in each for l in each) == pytest.approx(plain["V1"], rel=1e-9)
    assert all(np.allclose(found[f"V2_{k}"], plain["V2"], rtol=1e-9) for k in each)


@pytest.mark.parametrize("rows, more", [("sphere", {}), ("orthogonal", {"gamma": 1, "beta": 0.9})])
def test_the_order_of_the_letters_does_not_matter(rows, more):
    at = {**AT, **more, "dimension": 500, "c": 1.2}
    here = one_step("tanh", "sin", vocabulary=[1, -2], fractions=[0.3, 0.7], rows=rows).solve(**at)
    there = one_step("tanh", "sin", vocabulary=[-2, 1], fractions=[0.7, 0.3], rows=rows).solve(**at)
    for name, other in {"test_error": "test_error", "m1": "m2", "zeta2": "zeta1", "q2_1": "q2_2", "V2_2": "V2_1"}.items():
        assert here[name] == pytest.approx(there[other], rel=1e-9, abs=1e-13), name


def test_orthogonal_rows_scale_with_their_norm():
    # sigma(sqrt(c) x) on rows of norm 1 is sigma(x) on rows of norm c
    at = {"alpha": 1.3, "lam": 0.05, "gamma": 1, "beta": 0.8, "Delta": 0.1}
    kw = {"vocabulary": [1, -1.5], "rows": "orthogonal"}
    scaled = one_step("tanh(2*z)", "sin", **kw).solve(**at, r=0.6, c=0.25)
    plain = one_step("tanh", "sin", **kw).solve(**at, r=1.2, c=1)
    assert scaled["test_error"] == pytest.approx(plain["test_error"], rel=1e-10)
    assert scaled["q2_1"] == pytest.approx(plain["q2_1"], rel=1e-10)
    assert scaled["zeta1"] == pytest.approx(plain["zeta1"]/2, rel=1e-9)


def test_orthogonal_and_independent_rows_agree_where_there_are_few():
    at = {**AT, "gamma": 1, "beta": 1e-4, "alpha": 0.01, "c": 1}
    errors = [one_step("tanh", "sin", vocabulary=[1, -2], rows=rows).solve(**at)["test_error"] for rows in ("sphere", "orthogonal")]
    assert errors[0] == pytest.approx(errors[1], rel=1e-3)


# -- the third route: q as minus the derivatives of G, by mpmath -----------------------------------------------------------
@pytest.mark.parametrize("epsilon", [0, 1/400])
def test_the_overlaps_are_derivatives(epsilon):
    pi, c, beta, lam = [0.4, 0.6], [1.0, 1.3], 1.5, 0.05
    theory = one_step("tanh", "He1(z) + He3(z)/6", vocabulary=[1, 3], fractions=pi, norms=c)
    found = theory.solve(alpha=2.0, beta=beta, lam=lam, r=0.8, gamma=0.85, Delta=0.1, dimension=1/epsilon if epsilon else None)
    G = generating(found, pi, c, beta, alpha=2.0, epsilon=epsilon)
    L = [mp.mpf(lam + found[f"Vhat2_{k}"]) for k in (1, 2)]
    M = mp.matrix([[found["Vhat1_11"], found["Vhat1_12"]], [found["Vhat1_12"], found["Vhat1_22"]]])
    h = mp.mpf(10)**-9

    def minus(change):
        return float((G(*change(-h)) - G(*change(h)))/(2*h))

    for k in (0, 1):
        assert found[f"q2_{k + 1}"] == pytest.approx(minus(lambda x, k=k: ([v + x*(j == k) for j, v in enumerate(L)], M)), rel=1e-8)
    for k, l in ((0, 0), (0, 1), (1, 1)):
        unit = mp.matrix(2, 2)
        unit[k, l] += mp.mpf(1)/2  # the symmetric derivative
        unit[l, k] += mp.mpf(1)/2
        assert found[f"q1_{k + 1}{l + 1}"] == pytest.approx(minus(lambda x, unit=unit: (L, M + x*unit)), rel=1e-8)


def generating(found, pi, c, beta, *, alpha, epsilon):
    """G(L, Mhat) with the conjugates held fixed; V_2 by its own fixed point, V_1 by matrix inversion."""
    mp.mp.dps = 30
    qhat2, zt, pt, m, near = ([mp.mpf(float(found[f"{n}{k}"])) for k in (1, 2)]
                              for n in ("qhat2_", "zetatilde", "psitilde", "m", "V2_"))
    qhat1 = mp.matrix([[found["qhat1_11"], found["qhat1_12"]], [found["qhat1_12"], found["qhat1_22"]]])

    def solved(L, M):
        def gap(*V2):
            D = mp.diag([beta*p*v*w for p, v, w in zip(pi, c, V2, strict=True)])
            inverse = M*(mp.eye(2) + D*M)**-1
            return [w*(L[k] + c[k]*inverse[k, k]) - 1 for k, w in enumerate(V2)]

        V2 = mp.findroot(gap, near, tol=1e-40)
        D = mp.diag([beta*p*v*w for p, v, w in zip(pi, c, V2, strict=True)])
        return list(V2), (D**-1 + M)**-1/beta

    def G(L, M):
        V2, V1 = solved(L, M)
        trace = sum((qhat1*V1)[i, i] for i in (0, 1))
        total = sum(pi[k]*qhat2[k]*V2[k] + alpha**2/beta*pi[k]*c[k]*V2[k]*zt[k]**2 for k in (0, 1)) + trace
        total += alpha**2/beta*sum(pt[k]*V1[k, l]*pt[l] for k in (0, 1) for l in (0, 1))
        return total + sum(m[k]**2*epsilon/(beta*pi[k]*near[k]**2)*V2[k] for k in (0, 1))

    return G


def test_tooth_the_fixed_point_is_felt_in_the_derivative():
    # leaving out the response of V_2 changes the overlaps
    theory, numbers = referenced(ROWS[1])
    found = theory.solve(**numbers)
    pi, c, alpha, beta = [0.4, 0.6], [1.0, 1.3], numbers["alpha"], numbers["beta"]
    alone = [pi[k]*found[f"V2_{k + 1}"]**2*(found[f"qhat2_{k + 1}"] + alpha**2/beta*c[k]*found[f"zetatilde{k + 1}"]**2)
             for k in (0, 1)]
    assert all(a < 0.95*found[f"q2_{k}"] for k, a in enumerate(alone, start=1))


@pytest.mark.slow
def test_nearly_collinear_letters_keep_their_digits():
    # m = -170, 172: the function B that they add up to is compared with a solution at 30 digits
    letters, gamma, r, c = [1.0, 1.001], 0.7, 1.2, 1.3
    found = one_step("tanh", "sin", vocabulary=letters).solve(alpha=1.3, beta=1.5, lam=0.05, r=r, gamma=gamma, Delta=0.1, c=c)
    assert any("nearly singular" in note for note in found.notes)  # m and zeta hold fewer digits, one by one
    mp.mp.dps = 30
    nodes = [(mp.npdf(x)*mp.mpf("0.15"), x) for x in (mp.mpf("0.15")*k for k in range(-66, 67))]
    rows = []
    for w, k in nodes:
        mu = []
        for u in letters:
            values = [(v, z, mp.tanh(r*mp.mpf(u)*k + mp.sqrt(mp.mpf(c))*z)) for v, z in nodes]
            mu0, mu1 = sum(v*s for v, z, s in values), sum(v*z*s for v, z, s in values)/mp.sqrt(mp.mpf(c))
            mu.append((mu0, mu1, sum(v*s*s for v, z, s in values) - mu0**2 - mp.mpf(c)*mu1**2))
        h = mp.exp(-mp.mpf(1 - gamma**2)/2)*mp.sin(mp.mpf(gamma)*k)
        V = sum(found[f"V1_{min(i, j) + 1}{max(i, j) + 1}"]*mu[i][1]*mu[j][1] for i in (0, 1) for j in (0, 1))
        V += sum(mp.mpf("0.5")*found[f"V2_{i + 1}"]*mu[i][2] for i in (0, 1))
        rows.append((w/(1 + V), k, mu, h))
    A, b = mp.matrix(4, 4), mp.matrix(4, 1)
    for w, k, mu, h in rows:
        basis = [mu[0][0], mu[1][0], k*mu[0][1], k*mu[1][1]]
        for i in range(4):
            b[i] += w*basis[i]*h
            for j in range(4):
                A[i, j] += w*basis[i]*basis[j]
    for i in (2, 3):
        A[i, i] += 1/(mp.mpf("1.3")*mp.mpf("0.5")*mp.mpf(c)*found[f"V2_{i - 1}"])
    x = mp.lu_solve(A, b)
    ours = [found["m1"], found["m2"], found["zeta1"], found["zeta2"]]
    assert abs(x[0]) > 50
    gap = max(abs(sum((x[i] - ours[i])*f for i, f in enumerate([mu[0][0], mu[1][0], k*mu[0][1], k*mu[1][1]])))
              for w, k, mu, h in rows if abs(k) < 6)
    assert gap < 1e-8
    assert found["m1"] == pytest.approx(float(x[0]), rel=1e-5)


# -- norms, limits ----------------------------------------------------------------------------------------------------
def test_each_letter_has_the_bulk_of_its_own_rate():
    kw = {"alpha": [1.0], "lam": 0.1, "alpha0": 2, "Delta": 0.2, "beta": 1.2}
    curve = one_step("tanh", "sin", vocabulary=[0, -2], fractions=[0.3, 0.7]).curve(eta=1.5, **kw)
    step = one_step("tanh", "sin").curve(eta=3.0, **kw).parameters
    assert set(curve.order_parameters) == {u.name for u in one_step("tanh", "sin", vocabulary=[0, -2]).system.unknowns}
    assert curve.all_converged and curve.parameters["norms"] == pytest.approx([1, step["c"]], rel=1e-12)
    assert curve.parameters["r"] == pytest.approx(step["r"]/2, rel=1e-12)
    assert curve.parameters["c"] == pytest.approx(0.3 + 0.7*step["c"])


@pytest.mark.slow
def test_the_start_of_the_network_is_subtracted_from_the_labels():
    # one letter 1 is Result 3.1 also for an activation with a mean; a readout of mean 0 leaves the labels as they are
    kw = {"alpha": [1.0], "lam": 0.1, "alpha0": 2, "eta": 1.5}
    one = one_step("relu", "sin", vocabulary=[1]).curve(**kw)
    assert one["test_error"] == pytest.approx(one_step("relu", "sin").curve(**kw)["test_error"], rel=1e-10)
    balanced = one_step("relu", "sin", vocabulary=[1, -1]).curve(**kw).parameters
    centred = one_step("Max(0, z) - 1/sqrt(2*pi)", "sin").curve(**kw).parameters
    assert balanced["r"] == pytest.approx(centred["r"], rel=1e-10) and balanced["gamma"] == pytest.approx(centred["gamma"])


@pytest.mark.slow
def test_ridgeless_limit_and_extremes():
    theory = one_step("tanh", "sign", vocabulary=[1, 2], fractions=[0.3, 0.7])
    at = {"beta": 1.0, "r": 1.2, "gamma": 0.8, "Delta": 0.1, "c": 1.1}
    for alpha in (0.5, 1.5):
        found = theory.solve(**at, alpha=alpha, lam=np.array([0.0, 1e-12]))  # reached like sqrt(lam)
        assert found["test_error"][0] == pytest.approx(found["test_error"][1], rel=5e-3)
    few = theory.solve(**at, alpha=0.5, lam=0.0)
    assert few["V2_1"] == np.inf and abs(few["V1_12"]) == np.inf and few["zetatilde2"] == few["qhat1_12"] == few["train_error"] == 0
    assert np.all(theory.solve(**at, alpha=1.5, lam=np.array([1e-8, 1e-4, 1e2, 1e6])).converged)
    assert theory.curve(alpha=np.linspace(0.2, 3, 12), lam=0.01, **at).all_converged
    for letters in ([1, 50], [1e-3, 1], [1, -1], [0, 0]):
        many = one_step("tanh", "sign", vocabulary=letters).solve(**at, alpha=np.array([0.1, 1.0, 10.0, 100.0]), lam=0.01)
        assert np.all(np.diff(many["test_error"][1:]) < 0)


# -- bad input --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("structure, said", [
    ({"vocabulary": [1, 2], "fractions": [0.5, 0.6]}, "sum to 1.1, not to 1"),
    ({"vocabulary": [1, 2], "fractions": [1.5, -0.5]}, "every entry must be positive"),
    ({"vocabulary": [1, 2], "fractions": [1]}, "fractions has 1 entries for 2 letters"),
    ({"vocabulary": [1, 2], "norms": [1, 2, 3]}, "norms has 3 entries for 2 letters"),
    ({"vocabulary": [1, 2], "norms": [1, 0]}, "every entry must be positive"),
    ({"vocabulary": []}, "at least one number"),
    ({"vocabulary": ["a", 1]}, "not a list of numbers"),
    ({"vocabulary": [1, float("nan")]}, "every one finite"),
    ({"vocabulary": [1, 2], "rows": "gaussian"}, "rows is 'sphere'"),
    ({"fractions": [0.5, 0.5]}, "belong to a vocabulary"),
])
def test_bad_structure_is_one_line(structure, said):
    with pytest.raises(BadInput) as error:
        one_step("tanh", "sin", **structure)
    assert said in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("numbers, said", [
    ({"beta": 1.5, "gamma": 1, "r": 1, "c": 1}, "beta <= 1"),
    ({"beta": 0.5, "gamma": 0.9, "r": 1, "c": 1}, "gamma = 1 (alpha0 = inf) only"),
    ({"beta": 0.5, "alpha0": 2, "eta": 1}, "gamma = 1 (alpha0 = inf) only"),
    ({"beta": 0.5, "gamma": 1, "r": 1}, "give alpha0 and eta"),
])
def test_orthogonal_rows_have_their_bounds(numbers, said):
    theory = one_step("tanh", "sin", vocabulary=[1, 2], rows="orthogonal")
    with pytest.raises(BadInput) as error:
        theory.solve(alpha=1.0, lam=0.1, **numbers)
    assert said in str(error.value)
    assert theory.solve(alpha=1.0, lam=0.1, beta=0.5, alpha0=np.inf, eta=1.0).converged


@pytest.mark.slow
def test_the_exported_solver_is_the_system(tmp_path):
    theory = one_step("tanh", "sin", vocabulary=[1, 2])
    numbers = {"alpha": 1.0, "beta": 1.0, "lamda": 0.1, "r": 1.0, "gamma": 0.8, "Delta": 0.0, "bias": 0.0, "epsilon": 0.0,
               "u1": 1.0, "u2": 2.0, "pi1": 0.5, "pi2": 0.5, "c1": 1.2, "c2": 1.2}
    done = theory.system.export(tmp_path / "solver.py", reference=numbers)
    assert "mpmath" in done.checked
    import runpy

    found = runpy.run_path(str(tmp_path / "solver.py"))["solve"](**numbers)
    ours = theory.solve(alpha=1.0, lam=0.1, r=1, c=1.2, gamma=0.8)
    assert found["test_error"] == pytest.approx(ours["test_error"], rel=1e-10)
