"""Kernels of inner products: formulas, spectra by degree on the sphere and in Gaussian data, kernel ridge regression, teeth."""

import json

import mpmath
import numpy as np
import pytest
from sympy import Rational, Symbol, asin, cos, pi, simplify, sqrt

import hermitex as hx
from hermitex.errors import BadInput, HermitexError
from hermitex.experiments.kernel_ridge import simulate
from hermitex.experiments.statistics import agreement
from hermitex.face import cli
from hermitex.theories import dual_kernel, inner_product_kernel, kernel_limit, kernel_ridge, ridge_equivalent
from hermitex.theories.kernels import harmonics
from hermitex.theories.kernels.inner import ORDER, t

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


def test_gaussian_data_by_hand():
    """(1 + t)^2 has finite rank: the moments of 1, x_i, x_i x_j give it. The spectrum of |x| |y| k(cos) is that of k alone."""
    for d in (8, 50):
        found = inner_product_kernel("(1 + t)**2").spectrum(d, data="gaussian", degrees=4)
        here = found["eigenvalues"] > 1e-12
        seen = sorted(zip(found["eigenvalues"][here], found["multiplicity"][here], strict=True))
        radial = np.linalg.eigvalsh([[1, d**-0.5], [d**-0.5, (d + 2)/d**2]])  # of 1 and sum_i x_i^2/d
        by_hand = sorted([(2/d**2, d*(d + 1)/2 - 1), (2/d, d), *((v, 1) for v in radial)])
        assert np.array(seen) == pytest.approx(np.array(by_hand), rel=1e-9)
        for kind in ("features", "ntk"):  # homogeneous, E|x|^2/d = 1
            kernel = dual_kernel("relu", kind)
            gaussian, sphere = (kernel.spectrum(d, data=data, degrees=4) for data in ("gaussian", "sphere"))
            for value, many in zip(sphere["eigenvalues"], sphere["multiplicity"], strict=True):
                if value > 1e-12:
                    same = gaussian["eigenvalues"][gaussian["multiplicity"] == many]
                    assert np.min(np.abs(same/value - 1)) < 1e-9, (d, kind, many)


def test_the_matrix_of_a_kernel_by_its_series_and_by_its_formula():
    x = np.random.default_rng(1).standard_normal((40, 25))
    for sigma, kind in (("relu", "features"), ("erf", "ntk"), ("abs", "ntk")):
        kernel = dual_kernel(sigma, kind)
        own, series = kernel.gram(x), super(type(kernel), kernel)._between
        r = np.sqrt((x**2).sum(axis=1)/25)
        cosine = np.clip(x @ x.T/25/r[:, None]/r, -1, 1)
        away = ~np.eye(40, dtype=bool)
        cosine[~away] = 0
        assert own[away] == pytest.approx(series(np.sqrt((1 + cosine)/2), np.sqrt((1 - cosine)/2), r, r)[away], abs=1e-9)
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


# -- Gaussian data, few dimensions, many samples ------------------------------------------------------------------------
@pytest.mark.parametrize("h, d", [("1/(2 - t)", 8), ("1/(20 - t)", 100), ("log(3/(2 - t))", 30), ("exp(5*t)", 8), ("exp(2*t)", 8),
                                  ("exp(t)**9", 36), ("cosh(9*t)", 36), ("exp(t**2)", 40), ("exp(5*t)", 30)])
def test_a_product_kernel_without_a_second_moment_is_refused_on_gaussian_data(h, d):
    kernel = inner_product_kernel(h)
    assert kernel.spectrum(d)["tail"] >= 0  # on the sphere it is a kernel
    with pytest.raises(BadInput, match="data='sphere'"):
        kernel.spectrum(d, data="gaussian")


@pytest.mark.slow
@pytest.mark.parametrize("h, g", [("exp(t)", "z"), ("(1 + t)**3", "sign")])
def test_each_length_of_gaussian_data_has_its_ridge(h, g):
    """Against samples at d = 50, where one ridge for all lengths misses the train error by far."""
    theory, at = kernel_ridge(h, g, kernel="product", data="gaussian"), {"dimension": 50, "lam": 0.1, "noise": 0.1}
    measured, found = simulate(theory, [200, 400], seeds=60, test=1000, **at), theory.solve(n=[200, 400], **at)
    alike = hx.theories.ridge_equivalent().solve(n=[200, 400], lam=0.1, noise=0.1, **theory.spectrum(50))
    for name in ("test_error", "train_error", "bias", "variance"):
        assert np.all(np.abs(found[name] - measured.values[name]) <= 3*measured.standard_error[name]), name
    assert np.all(np.abs(alike["train_error"] - measured.values["train_error"]) > 5*measured.standard_error["train_error"])


@pytest.mark.parametrize("name", ["n", "lam", "noise"])
def test_derivatives_where_each_length_has_its_ridge(name):
    theory, at = kernel_ridge("exp(t)", "z + z**2", kernel="product", data="gaussian"), {"n": 60.0, "lam": 0.1, "noise": 0.2}
    slope, step = theory.solve(dimension=30, **at).derivative(name), 1e-4*at[name]
    above, below = (theory.solve(dimension=30, **{**at, name: at[name] + s}) for s in (step, -step))
    for error in theory.errors:
        assert slope[error] == pytest.approx((above[error] - below[error])/(2*step), rel=1e-6)


def test_the_best_ridge_on_gaussian_data():
    theory = kernel_ridge("relu", "sign", data="gaussian")
    best = theory.minimise("test_error", over="lam", bounds=(1e-3, 10), n=100, dimension=30, noise=0.1)
    assert abs(best.derivative("lam")["test_error"]) < 1e-8
    beside = theory.solve(n=100, dimension=30, noise=0.1, lam=best["lam"]*np.array([0.5, 2]))
    assert np.all(beside["test_error"] > best["test_error"])


def test_at_one_length_it_is_the_deterministic_equivalent():
    from hermitex.theories.kernels.lengths import Lengths

    many, eta, beta = np.array([1.0, 20, 200]), np.array([0.4, 0.03, 0.001]), np.array([0.2, 1, 0.5])
    own = Lengths(np.ones(1), many, np.sqrt(eta)[:, None, None], beta[:, None], np.array([0.3]), np.array([0.1]))
    known = hx.theories.ridge_equivalent().solve(n=70, lam=0.2, noise=0.3, tail=0.3, eigenvalues=[*eta, 0], multiplicity=[*many, 1],
                                                 coefficients=[*beta, np.sqrt(0.1)])
    found, residual, _ = own.errors(70, 0.2, 0.3)
    assert residual < 1e-12
    for name, value in found.items():
        assert value == pytest.approx(known[name], rel=1e-10), name


@pytest.mark.parametrize("rate, d", [(Rational(1, 2), 8), (1, 20), (1, 60), (2, 60), (2, 200)])
def test_the_spread_of_an_exponential_kernel_on_gaussian_data(rate, d):
    """E exp(c chi^2_d/d) = (1 - 2c/d)^(-d/2)."""
    first, second = ((1 - 2*float(c)/d)**(-d/2) for c in (rate, 2*rate))
    kernel = inner_product_kernel(f"exp({rate}*t)")
    found = kernel.spectrum(d, data="gaussian")
    assert kernel.on_gaussian_data(d) == pytest.approx(np.sqrt(second/first**2 - 1), rel=1e-5)
    assert found["eigenvalues"] @ found["multiplicity"] + found["tail"] == pytest.approx(first, rel=1e-7)


@pytest.mark.parametrize("sigma, d", [("exp(z**2/5)", 8), ("exp(z**2/50)", 200), ("exp(4*z)", 8), ("sinh(3*z)", 12)])
def test_an_activation_that_grows_too_fast_is_refused_on_gaussian_data(sigma, d):
    with pytest.raises(BadInput, match="data='sphere'"):
        dual_kernel(sigma).spectrum(d, data="gaussian")


@pytest.mark.parametrize("d", [3, 4, 8, 30])
@pytest.mark.parametrize("sigma", ["Max(0, z - 1/2)", "Heaviside(z - 1)", "Max(0, 2 - Abs(z))"])
def test_eigenvalues_of_a_kernel_with_thresholds(sigma, d):
    """Those from averages over directions and lengths of the weights are those of the Hermite series, up to the series' rest."""
    kernel = dual_kernel(sigma)
    found = kernel.spectrum(d, degrees=4)
    series = kernel.coefficients(np.ones(1))[0]**2
    rest = kernel.diagonal(np.ones(1))[0] - series.sum()
    for degree in (2, 3):
        here, own = found["eigenvalues"][found["degree"] == degree], series @ harmonics.powers(degree, ORDER, d)
        beyond = rest*harmonics.powers(degree, 2*ORDER, d)[-1:].max() + rest*harmonics.powers(degree, ORDER, d)[-2:].max()
        assert (here[0] if here.size else 0) == pytest.approx(own, abs=beyond + 1e-9*series.sum()), degree


@pytest.mark.parametrize("sigma, g, d, n, lam", [
    ("relu", "z", 3, 60, 1e-2), ("relu", "sign", 3, 300, 1e-3), ("abs", "z**2", 5, 100, 0.02), ("erf", "z", 8, 40, 0.1)])
def test_real_kernels_in_few_dimensions(sigma, g, d, n, lam):
    theory, at = kernel_ridge(sigma, g), {"dimension": d, "lam": lam, "noise": 0.2}
    measured = simulate(theory, [n], seeds=24, test=500, **at)
    found = theory.curve([n], **at).test_error[0]
    assert abs(measured.test_error[0] - found) < 3.5*measured.standard_error["test_error"][0] + 0.03*found


@pytest.mark.parametrize("sigma, d, n, lam", [("relu", 3, 100, 1e-6), ("Max(0, z - 1/2)", 3, 400, 1e-6), ("abs", 4, 600, 1e-5)])
def test_as_many_degrees_as_the_samples_learn(sigma, d, n, lam):
    """Twice the degrees change nothing; the twelve of a few samples do, or are enough."""
    theory = kernel_ridge(sigma, "sign")
    found = float(theory.solve(n=n, dimension=d, lam=lam)["test_error"])

    def with_degrees(most):
        spectrum = dual_kernel(sigma).spectrum(d, "sign", degrees=most)
        return float(ridge_equivalent().solve(n=n, lam=lam, **{k: v for k, v in spectrum.items() if k != "degree"})["test_error"])

    assert found == pytest.approx(with_degrees(200), rel=2e-3) and abs(with_degrees(6)/found - 1) > 0.02
    with pytest.raises(BadInput, match="degrees above"):
        theory.solve(n=100*n, dimension=3, lam=1e-9)


def test_the_matrix_is_held_or_refused():
    """No closed form: K(x, x) is one number however it is asked for, near rows are refused, far ones agree with the average."""
    kernel, x = dual_kernel("Max(0, tanh(z))", "ntk"), np.random.default_rng(0).standard_normal((12, 30))
    assert kernel.gram(x, x) == pytest.approx(kernel.gram(x), rel=1e-12)
    with pytest.raises(BadInput, match="terms"):
        kernel.gram(x, x + 0.05)
    z1 = np.random.default_rng(1).standard_normal((300_000, 2))
    u, v = z1[:, 0], 0.6*z1[:, 0] + 0.8*z1[:, 1]
    slope = [np.where(w > 0, 1/np.cosh(w)**2, 0) for w in (u, v)]
    draws = np.maximum(0, np.tanh(u))*np.maximum(0, np.tanh(v)) + 0.6*slope[0]*slope[1]
    here = kernel.gram([[np.sqrt(2), 0.0]], [[0.6*np.sqrt(2), 0.8*np.sqrt(2)]])[0, 0]
    assert abs(here - draws.mean()) < 4*draws.std()/np.sqrt(draws.size)
    assert inner_product_kernel("exp(t)").gram([[0, 0], [1, 2]])[0] == pytest.approx([1, 1])
    for many in (40, 400):  # directly, and by interpolation in the length
        rows = np.random.default_rng(many).standard_normal((many, 8))
        assert np.diag(dual_kernel("erf", "ntk").gram(rows))[:10] == pytest.approx(
            [dual_kernel("erf", "ntk").gram(row[None])[0, 0] for row in rows[:10]], rel=1e-7)


@pytest.mark.parametrize("sigma, kind", [("hardtanh", "ntk"), ("hardtanh", "features"), ("elu", "ntk"), ("relu", "ntk"),
                                         ("relu6", "ntk"), ("gelu", "ntk"), ("selu", "features"), ("relu(z)**2", "features")])
def test_the_matrix_holds_up_to_both_ends(sigma, kind):
    """Rows at an angle theta down to 1e-9 and next to pi, of equal and of unequal lengths, beside the formula at 40 digits."""
    kernel = dual_kernel(sigma, kind)
    for length in (1.0, 3.0):
        for theta in (1.1, 1e-2, 1e-5, 1e-9):
            for sign in (1, -1):
                x, y = np.array([[1.0, 0.0]]), sign*length*np.array([[np.cos(theta), np.sin(theta)]])
                at = {t: sign*cos(Rational(theta)), Symbol("r_1", positive=True): 1/sqrt(2),
                      Symbol("r_2", positive=True): Rational(length)/sqrt(2)}
                wanted = float(kernel.between.subs(at).evalf(20, maxn=400))
                assert kernel.gram(x, y)[0, 0] == pytest.approx(wanted, rel=1e-11, abs=1e-12), (length, theta, sign)
    rows = np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, 1.0]])
    ends = kernel.gram(rows)
    assert np.isfinite(ends).all() and ends[0, 2] == pytest.approx(ends[0, 0], rel=1e-12)
    nearly = kernel.gram(rows[:1], -np.array([[1.0, 1 + 1e-9]]))[0, 0]
    assert ends[0, 1] == pytest.approx(nearly, abs=1e-8) and kernel.gram(rows[:1], rows[1:2])[0, 0] == ends[0, 1]


def test_known_ends_of_the_matrix():
    """hardtanh's tangent kernel of opposite rows is odd; relu's is 0; a cosine that rounding has put above 1 changes nothing."""
    x = np.sqrt(2)*np.eye(2)[:1]
    same, opposite = dual_kernel("hardtanh", "ntk").gram(x)[0, 0], dual_kernel("hardtanh", "ntk").gram(x, -x)[0, 0]
    assert opposite == pytest.approx(-same, rel=1e-12) and same == pytest.approx(1.1987480430987993, rel=1e-12)
    assert abs(dual_kernel("relu", "ntk").gram(x, -x)[0, 0]) < 1e-15
    near = dual_kernel("hardtanh", "ntk").gram(x, x + np.array([[0, 2e-6]]))[0, 0]  # 1 - t = 1e-12
    assert near == pytest.approx(same, abs=2e-6)


@pytest.mark.parametrize("kind, sigma", [("ntk", "relu"), ("features", "abs"), ("ntk", "Max(0, tanh(z))")])
def test_the_picture_is_the_kernel(kind, sigma):
    kernel = dual_kernel(sigma, kind)
    line = kernel.plot().lines[0]
    at, drawn = np.array(line.get_xdata(), dtype=float), np.array(line.get_ydata(), dtype=float)
    assert at[-1] == 1 and drawn[-1] == pytest.approx(kernel.diagonal(np.ones(1))[0])
    if kernel.formula is not None:
        assert drawn[1:-1] == pytest.approx([float(kernel.formula.subs(t, a)) for a in at[1:-1]], rel=1e-6, abs=1e-9)
    else:
        assert 0.5 < at[-2] < 0.95  # what the series does not hold is not drawn


@pytest.mark.parametrize("sigma, jumps", [("10000*relu(z)", False), ("Abs(z)**(9/10)*sign(z)", False), ("1e-7*sign(z)", True),
                                          ("z*Heaviside(z - 1)", True), ("(z - 1)*Heaviside(z - 1)", False)])
def test_a_jump_is_a_jump_at_any_size(sigma, jumps):
    if jumps:
        with pytest.raises(BadInput, match="jumps"):
            dual_kernel(sigma, "ntk")
    elif "9/10" in sigma:  # it has none, but its slope is without a bound there
        with pytest.raises(BadInput, match="singularity"):
            dual_kernel(sigma, "ntk")
    else:
        assert dual_kernel(sigma, "ntk").diagonal(np.ones(1))[0] > 0


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
    assert lines.get_xscale() == "log" and any("relu" in text.get_text() for text in lines.get_legend().get_texts())
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
    (lambda: kernel_ridge(dual_kernel("relu"), "z", kernel="ntk"), "leave kernel='ntk' out"),
    (lambda: hx.curve(kernel_ridge("relu", "z"), n=[9], dimension=10, lam=0.1, simulate={"dimension": 40}), "cannot be at 40"),
    (lambda: simulate(kernel_ridge("relu", "z"), [9], dimension=10, lam=0.1, p=0.4), "p is a whole number"),
    (lambda: simulate(kernel_ridge("relu", "z"), [0.3], dimension=10, lam=0.1), "n is a whole number"),
    (lambda: simulate(kernel_ridge("relu", "z"), [9], dimension=10, lam=0.1, test=0), "test is a whole number"),
    (lambda: dual_kernel("relu").gram([["a"]]), "rows of finite"), (lambda: dual_kernel("relu").gram([[0.0, 0], [1, 2]]), "zeros"),
    (lambda: dual_kernel("tanh").gram([[0.0, 0], [1, 2]]), "zeros"),
    (lambda: dual_kernel("relu").gram([[1, 2]], [[1]]), "rows of 2"),
    (lambda: dual_kernel("relu").spectrum("a"), "'a'"), (lambda: dual_kernel("relu").spectrum(9, degrees=2.5), "2.5"),
    (lambda: dual_kernel("relu").weight(1.5), "1.5"), (lambda: inner_product_kernel("exp(t)").weight(-1), "-1"),
    (lambda: inner_product_kernel(None), "formula in t"), (lambda: inner_product_kernel(lambda a, b: a), "formula in t"),
    (lambda: simulate(kernel_ridge("relu", "z"), [30], dimension=20, lam=0.1, noise=[0, 1]), "only n varies")])
def test_bad_input_is_one_line(ask, word):
    with pytest.raises(HermitexError) as caught:
        ask()
    assert word in str(caught.value) and (not isinstance(caught.value, BadInput) or "\n" not in str(caught.value))


def test_kernels_of_all_kinds_show_themselves():
    for kernel in (dual_kernel("relu"), dual_kernel("Heaviside(z - 1)"), inner_product_kernel("exp(t)")):
        assert kernel.latex().startswith("K(t) =") and kernel._html() and kernel.to_dict()["weights"]["1"]
