"""Kernels of inner products: formulas, spectra by degree on the sphere and in Gaussian data, kernel ridge regression, teeth."""

import json

import mpmath
import numpy as np
import pytest
from sympy import Symbol, asin, pi, simplify, sqrt

import hermitex as hx
from hermitex.errors import BadInput, HermitexError
from hermitex.experiments.kernel_ridge import simulate
from hermitex.experiments.statistics import agreement
from hermitex.face import cli
from hermitex.theories import dual_kernel, inner_product_kernel, kernel_limit, kernel_ridge, ridge_equivalent
from hermitex.theories.kernels import harmonics
from hermitex.theories.kernels.dual import ORDER, t

SIGMAS = ("relu", "erf", "abs", "z**2 + z", "Max(0, z - 1/2)")


def sphere_average(f, d):
    """E f(t) for an entry t of a uniform unit vector, by mpmath."""
    density = mpmath.gamma(mpmath.mpf(d)/2)/mpmath.gamma(mpmath.mpf(d - 1)/2)/mpmath.sqrt(mpmath.pi)
    return float(density*mpmath.quad(lambda s: f(s)*(1 - s*s)**((d - 3)/2), [-1, -0.5, 0, 0.5, 1]))


def by_funk_hecke(degree, d, *, norms=1):
    """The eigenvalue of E relu relu from relu itself: E|w|^2/d (E_s[sqrt(d) s_+ Q_l(s)])^2; `norms` plants an error."""
    def polynomial(s):
        return harmonics.gegenbauer(max(degree, 1), d, s)[degree]

    return norms*d*sphere_average(lambda s: s*polynomial(s) if s > 0 else 0, d)**2


# -- identities --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("sigma", SIGMAS)
@pytest.mark.parametrize("kind", ["features", "ntk"])
def test_the_series_is_exact_and_adds_up(sigma, kind):
    kernel = dual_kernel(sigma, kind)
    a = kernel.coefficients(np.ones(1))[0]**2
    for k in range(4):
        exact = kernel.weight(k)
        assert a[k] == pytest.approx(float(exact.evalf(15)), abs=1e-12)
    diagonal = kernel.diagonal(np.ones(1))[0]
    assert a.sum() < diagonal*(1 + 1e-12) and a.sum() == pytest.approx(diagonal, rel=0.2)
    if kernel.formula is not None:
        for at in (-0.6, 0.1, 0.55):
            assert float(kernel.formula.subs(t, at)) == pytest.approx((a*at**np.arange(ORDER + 1)).sum(), abs=1e-10)


@pytest.mark.parametrize("data, d", [("sphere", 3), ("sphere", 1000), ("gaussian", 8), ("gaussian", 200)])
def test_every_share_of_the_kernel_and_of_the_target_is_somewhere(data, d):
    for kernel in (dual_kernel("relu"), dual_kernel("tanh", "ntk"), inner_product_kernel("exp(t/2)")):
        found = kernel.spectrum(d, "relu", data=data)
        radius, chance = harmonics.radii(data, d)
        assert found["eigenvalues"] @ found["multiplicity"] + found["tail"] == pytest.approx(chance @ kernel.diagonal(radius))
        assert found["coefficients"] @ found["coefficients"] == pytest.approx(0.5, rel=1e-9)
        assert np.all(found["eigenvalues"] >= 0) and found["tail"] >= 0


def test_in_high_dimension_degrees_are_those_of_the_limit():
    """N_l eigenvalue_l -> b_l and the target's part of degree l -> ||P_l g||^2, with gaps of order 1/d."""
    gaps = []
    for d in (100, 1000):
        kernel = dual_kernel("z + He2(z) + He3(z) + 1")
        found = kernel.spectrum(d, "sign")
        shares, parts = found["eigenvalues"]*found["multiplicity"], found["coefficients"]**2
        seen = {k: (shares[found["degree"] == k].sum(), parts[found["degree"] == k].sum()) for k in range(4)}
        gaps.append([abs(seen[k][0] - float(kernel.weight(k))) + abs(seen[k][1] - float(kernel_limit("sign").weight(k)))
                     for k in range(4)])
    assert all(b < 0.2*a + 1e-10 for a, b in zip(*gaps, strict=True)) and max(gaps[1]) < 0.03, gaps


def test_powers_of_the_sphere_are_orthogonal_expansions():
    """t^j = sum_l N_l E[t^j Q_l] Q_l(t), by the recurrence; and N_l counts the harmonics."""
    s = np.linspace(-0.9, 0.9, 7)
    for d in (3, 8, 30):
        q = harmonics.gegenbauer(9, d, s)
        for j in (0, 1, 4, 9):
            again = sum(harmonics.dimensions(k, d)*harmonics.powers(k, 9, d)[j]*q[k] for k in range(10))
            assert again == pytest.approx(s**j, abs=1e-12)
        nodes, weights = harmonics.sphere_rule([], d)
        table = harmonics.gegenbauer(6, d, nodes)
        assert (table*weights) @ table.T == pytest.approx(np.diag([1/harmonics.dimensions(k, d) for k in range(7)]), abs=1e-12)


# -- reference values --------------------------------------------------------------------------------------------------
def test_the_arc_cosine_kernel_and_its_tangent_kernel():
    """Cho and Saul (2009): J_1 = sin + (pi - angle) cos, J_0 = pi - angle over 2 pi, with the angle arccos t."""
    angle = pi/2 - asin(t)
    first = (sqrt(1 - t**2) + (pi - angle)*t)/(2*pi)
    assert simplify(dual_kernel("relu").formula - first) == 0
    assert simplify(dual_kernel("relu", "ntk").formula - first - t*(pi - angle)/(2*pi)) == 0
    assert simplify(dual_kernel("erf").formula - 2/pi*asin(2*t/3)).subs(t, 0.37) == pytest.approx(0, abs=1e-14)
    assert float(dual_kernel("sin").formula.subs(t, 1)) == pytest.approx(0.4323323584)
    d = Symbol("d", positive=True)
    assert dual_kernel("He2(z)").eigenvalue(2, d) == 4/(d*(d + 2)) and dual_kernel("He2(z)").eigenvalue(0, d) == 2/d
    assert dual_kernel("He2(z)").eigenvalue(1, d) == 0


# -- another route, planted errors ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("d", [3, 8, 30, 100])
def test_eigenvalues_of_the_arc_cosine_kernel_without_its_series(d):
    found = dual_kernel("relu").spectrum(d)
    for degree in (0, 1, 2, 4):
        here = float(found["eigenvalues"][found["degree"] == degree][0])
        assert here == pytest.approx(by_funk_hecke(degree, d), rel=1e-8)
        assert here != pytest.approx(by_funk_hecke(degree, d, norms=1 + 1/d), rel=1e-4)


def test_eigenvalues_from_the_formula_itself():
    """E[K(t) Q_l(t)] for the tangent kernel of erf and a target's coefficient of degree 3."""
    d, kernel = 20, dual_kernel("erf", "ntk")
    found = kernel.spectrum(d, "sign")
    form = hx.compile(kernel.formula, "t")
    for degree in (1, 3):
        def polynomial(s, degree=degree):
            return harmonics.gegenbauer(3, d, s)[degree]

        here = found["degree"] == degree
        assert found["eigenvalues"][here][0] == pytest.approx(
            sphere_average(lambda s, f=polynomial: float(form(float(s)))*f(s), d), rel=1e-8)
        seen = sphere_average(lambda s, f=polynomial: abs(s)/s*f(s) if s else 0, d)
        assert found["coefficients"][here][0]**2 == pytest.approx(harmonics.dimensions(degree, d)*seen**2, rel=1e-8)


def test_the_series_and_the_degrees_are_one_kernel():
    """The spectrum from the Hermite series, by powers of t, is that from averages over the weights."""
    for kernel in (dual_kernel("tanh"), dual_kernel("erf", "ntk"), dual_kernel("Max(0, z - 1/2)")):
        radius = np.array([0.9, 1.0, 1.2])
        for degree, block in enumerate(kernel.factors(3, radius, 40)):
            series = kernel.coefficients(radius)*np.sqrt(harmonics.powers(degree, ORDER, 40))
            assert block @ block.T == pytest.approx(series @ series.T, rel=1e-7, abs=1e-14)
        first = kernel.coefficients(radius)[:, :2]*np.sqrt(harmonics.powers(1, 1, 40))  # without the powers t^3, t^5, ...
        assert kernel.factors(1, radius, 40)[1] @ kernel.factors(1, radius, 40)[1].T != pytest.approx(first @ first.T, rel=1e-5)


def test_gaussian_data_against_the_matrix_of_many_samples():
    """Eigenvalues of K/n at n = 1500 in 8 dimensions; degree 0 and 1, to the noise of a sample."""
    rng = np.random.default_rng(0)
    for kernel in (dual_kernel("relu", "ntk"), inner_product_kernel("(1 + t)**2")):
        x = rng.standard_normal((1500, 8))
        top = np.linalg.eigvalsh(kernel.gram(x)/1500)[::-1]
        found = kernel.spectrum(8, data="gaussian", degrees=4)
        order = np.argsort(-found["eigenvalues"])[:2]
        expected = np.repeat(found["eigenvalues"][order], found["multiplicity"][order].astype(int))
        assert top[:9] == pytest.approx(expected, rel=0.2) and top[:9].sum() == pytest.approx(expected.sum(), rel=0.05)


def test_the_matrix_of_a_kernel_by_its_series_and_by_its_formula():
    x = np.random.default_rng(1).standard_normal((40, 25))
    for sigma, kind in (("relu", "features"), ("erf", "ntk"), ("abs", "ntk")):
        kernel = dual_kernel(sigma, kind)
        own, series = kernel.gram(x), super(type(kernel), kernel)._between
        r = np.sqrt((x**2).sum(axis=1)/25)
        cosine = np.clip(x @ x.T/25/r[:, None]/r, -1, 1)
        away = ~np.eye(40, dtype=bool)
        assert own[away] == pytest.approx(series(cosine, r, r)[away], abs=1e-9)
        assert np.linalg.eigvalsh(own).min() > -1e-9


@pytest.mark.parametrize("sigma, kind, data, g, more", [
    ("relu", "features", "sphere", "relu", {}), pytest.param("erf", "ntk", "gaussian", "sign", {}, marks=pytest.mark.slow),
    ("exp(t)", "product", "sphere", "z**2 + z", {}), ("relu", "features", "sphere", "relu", {"p": 150})])
def test_real_kernels(sigma, kind, data, g, more):
    theory, line = kernel_ridge(sigma, g, kernel=kind, data=data), [20, 100, 300]
    at = {"dimension": 40, "lam": 0.05, "noise": 0.1, **more}
    measured = simulate(theory, line, seeds=12, test=600, **at)
    assert agreement(theory.curve(line, **at), measured).worst("test_error", "bias") < 3.5
    assert agreement(theory.curve(line, **{**at, "noise": 0.5}), measured).worst("test_error", "variance") > 3.5


@pytest.mark.slow
def test_a_real_kernel_up_to_four_thousand_samples():
    """Other kernels and other noise are seen at n = 4000, too."""
    theory, at = kernel_ridge("relu", "relu", kernel="ntk"), {"dimension": 100, "lam": 0.01, "noise": 0.1}
    measured = simulate(theory, [4000], seeds=5, test=800, **at)
    assert agreement(theory.curve([4000], **at), measured).worst("test_error", "train_error") < 3
    for other in (kernel_ridge("relu", "relu").curve([4000], **at), theory.curve([4000], **{**at, "noise": 0.15})):
        assert agreement(other, measured).worst("test_error", "train_error") > 3


# -- equality of products, faces -----------------------------------------------------------------------------------------
def test_products_are_one():
    theory = kernel_ridge("relu", "sign")
    at = {"lam": 0.1, "noise": 0.2, "p": 60.0}
    found = theory.solve(n=70, dimension=[20, 40], **at)
    for k, d in enumerate((20, 40)):
        again = ridge_equivalent().solve(n=70, **at, **theory.spectrum(d))
        line = theory.curve(n=[70], dimension=d, **at)
        for key in ("test_error", "bias", "variance", "nu_2", "train_error"):
            assert found[key][k] == pytest.approx(again[key], rel=1e-10) and line[key][0] == pytest.approx(again[key], rel=1e-10)
    best = theory.minimise("test_error", over="lam", bounds=(1e-3, 10), n=70, dimension=20, noise=0.5)
    around = theory.solve(n=70, dimension=20, noise=0.5, lam=best["lam"]*np.array([0.8, 1, 1.25]))["test_error"]
    assert around[1] <= around.min() and "jacot2018" in theory.sources and "asin" in theory.latex()
    assert theory.to_dict()["data"] == "sphere" and "features(relu)" in repr(theory) + str(theory.kernel)
    table = hx.sweep(theory, {"lam": [0.1, 1.0]}, parameters={"n": 30, "dimension": 20})
    assert table["bias"] == pytest.approx(theory.solve(n=30, dimension=20, lam=np.array([0.1, 1.0]))["bias"], rel=1e-9)


def test_the_command_line_and_the_picture(capsys, tmp_path):
    words = ["curve", "kernel-ridge", "--sigma", "relu", "--target", "sign", "--kernel", "ntk", "--dimension", "20", "--lam", "0.1",
             "--noise", "0.1", "--n", "10,40", "--data", "gaussian"]
    assert cli.main([*words, "--simulate", "--seeds", "2", "--plot", str(tmp_path/"a.svg"), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    expected = kernel_ridge("relu", "sign", kernel="ntk", data="gaussian").curve([10, 40], dimension=20, lam=0.1, noise=0.1)
    assert answer["test_error"] == pytest.approx(expected.test_error.tolist(), rel=1e-10)
    assert answer["simulation"]["standard_error"]["test_error"][0] > 0 and answer["parameters"]["kernel"] == "ntk(relu)"
    assert cli.main([*words[:4], "--target", "z"]) == 2 and "--n is needed" in capsys.readouterr().err
    lines = kernel_ridge("relu", "relu").plot(dimension=10)
    assert lines.get_xscale() == "log" and len({t.get_text() for t in lines.get_legend().get_texts()}) >= 1
    assert dual_kernel("tanh").plot(dual_kernel("relu").plot()).get_legend() is not None


@pytest.mark.parametrize("ask, word", [
    (lambda: dual_kernel("sign", "ntk"), "jumps"), (lambda: dual_kernel("relu", "rbf"), "features or ntk"),
    (lambda: dual_kernel("a*z"), "unknown name"), (lambda: dual_kernel("exp(z**2)"), "square integrable"),
    (lambda: inner_product_kernel("cos(t)"), "negative coefficient at t^2"),
    (lambda: inner_product_kernel("1/(1 - t)"), "converge"),
    (lambda: inner_product_kernel("1/t"), "converge"), (lambda: inner_product_kernel("2"), "formula in t"),
    (lambda: kernel_ridge("relu", "z", data="cube"), "sphere or gaussian"),
    (lambda: kernel_ridge("relu", "z", kernel="k"), "product"),
    (lambda: kernel_ridge("relu", "z").solve(n=5, dimension=2, lam=1), "3 or more"),
    (lambda: kernel_ridge("relu", "z", data="gaussian").solve(n=5, dimension=5, lam=1), "8 or more"),
    (lambda: kernel_ridge("relu", "z").solve(n=5, dimension=20.5, lam=1), "whole number"),
    (lambda: kernel_ridge("relu", "z", kernel="ntk").solve(n=5, dimension=20, lam=1, p=10), "leave p out"),
    (lambda: kernel_ridge("relu", "z").solve(n=5, lam=1), "dimension has no value"),
    (lambda: dual_kernel("relu").eigenvalue(2, 30), "does not end"),
    (lambda: simulate(kernel_ridge("relu", "z"), [30], dimension=20, lam=0.1, noise=[0, 1]), "only n varies")])
def test_bad_input_is_one_line(ask, word):
    with pytest.raises(HermitexError) as caught:
        ask()
    assert word in str(caught.value) and (not isinstance(caught.value, BadInput) or "\n" not in str(caught.value))


def test_kernels_of_all_kinds_show_themselves():
    for kernel in (dual_kernel("relu"), dual_kernel("Heaviside(z - 1)"), inner_product_kernel("exp(t)")):
        assert kernel.latex().startswith("K(t) =") and kernel._html() and kernel.to_dict()["weights"]["1"]
