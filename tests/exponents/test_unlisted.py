"""Targets nobody listed, against routes that share nothing with the package: sums on a fine grid, in doubles.

The coefficients c_k are plain sums over a uniform grid; lambda_k^2 and 1/alpha_c come from sorting its labels into
bins (deterministic targets) or from the matrix P(y|z) on a grid (noisy ones).
"""

import re

import numpy as np
import pytest
from scipy.special import erf, erfc, expit, gammaln, xlogy
from scipy.stats import norm

import hermitex as hx
from hermitex import Channel

N = 1 << 20
Z = (np.arange(N) + 0.5)*(18/N) - 9
W = np.exp(-Z*Z/2)/np.sqrt(2*np.pi)*(18/N)


def hermite(k, z):
    """He_k by its recursion."""
    a, b = np.ones_like(z), z
    for j in range(k):
        a, b = b, z*b - (j + 1)*a
    return a


def information_by_sums(mean, kmax=7):
    """(first k with c_k/(||g|| sqrt(k!)) above rounding, those ratios): a number, no proof."""
    g = mean - W @ mean
    size = np.sqrt(W @ g**2)
    ratios = [W @ (g*hermite(k, Z))/size/np.sqrt(float(np.prod(np.arange(1, k + 1)))) for k in range(1, kmax + 1)]
    return next((k for k, r in enumerate(ratios, 1) if abs(r) > SMALL), None), ratios


SMALL = 1e-6  # a jump costs the midpoint rule 1e-5 at most, times the values of He_k phi at it; see `JUMPS`
JUMPS = 2e-4


_ATOM = 50  # so many equal labels in a row are an atom


def binned(labels, bins):
    """(E[(E[h_k|Y])^2] for k = 1..4) with the label known up to bins; atoms are bins of their own."""
    order = np.argsort(labels, kind="stable")
    y, w = labels[order], W[order]
    fine = np.cumsum(w*(1 + Z[order]**4))  # finer bins in the tails, where h_2^2 is large
    edge = np.minimum((fine/fine[-1]*bins).astype(int), bins - 1)
    atom = np.r_[y[_ATOM:] - y[:-_ATOM] < 1e-13, np.zeros(_ATOM, bool)]
    atom |= np.r_[np.zeros(_ATOM, bool), atom[:-_ATOM]]
    bounds = (np.diff(edge) > 0) | (atom[1:] != atom[:-1]) | (atom[1:] & atom[:-1])
    starts = np.flatnonzero(np.r_[True, bounds & (np.diff(y) > 1e-13)])
    mass = np.add.reduceat(w, starts)
    found = []
    for k in range(1, 5):
        h = hermite(k, Z)[order]/np.sqrt(float(np.prod(np.arange(1, k + 1))))
        found.append(np.sum(np.add.reduceat(w*h, starts)**2/mass))
    return np.array(found)


def generative_by_bins(labels):
    """(first k whose lambda_k^2 stands above the noise of the bins, those lambda_k^2)."""
    value = binned(labels, 2000)
    return next((k for k, v in enumerate(value, 1) if v > 2e-4), None), value


def agrees(found, information, generative, inverse_alpha, rtol=1e-2):
    """The exponents exactly, 1/alpha_c to the accuracy of the sums, no certificate left open."""
    assert found.information_exponent == information
    assert found.generative_exponent == generative
    assert all(found.certificates)
    if generative == 1:
        assert found.weak_recovery["class"] == "trivial" and found.alpha_c == 0
    elif generative == 2:
        assert found.weak_recovery["class"] == "easy"
        assert 1/float(found.alpha_c) == pytest.approx(inverse_alpha, rel=rtol, abs=2e-4)
    else:
        assert found.weak_recovery["class"] == "hard" and found.alpha_c is None


def relu(z):
    return np.maximum(z, 0)


def phi_(z):
    return (1 + erf(z/np.sqrt(2)))/2


def he(k):
    return hermite(k, Z)


def mean(values):
    return W @ values


# text, its values on the grid
DETERMINISTIC = [
    # polynomials
    ("He4(z) + z", lambda: he(4) + Z), ("z**6 - z**4", lambda: Z**6 - Z**4), ("z**5 + z**2", lambda: Z**5 + Z**2),
    ("He5(z)", lambda: he(5)),
    ("He3(z)**2", lambda: he(3)**2), ("z**2 - E(z**4)", lambda: Z**2 - 3),
    ("(z**2 - 1)**2 - 4*z**2", lambda: (Z**2 - 1)**2 - 4*Z**2),
    # trigonometric
    ("cos(2*z)", lambda: np.cos(2*Z)), ("sin(z)**2", lambda: np.sin(Z)**2), ("z*sin(z)", lambda: Z*np.sin(Z)),
    ("sin(z)*cos(z)", lambda: np.sin(Z)*np.cos(Z)),
    ("cos(z) + cos(sqrt(2)*z)", lambda: np.cos(Z) + np.cos(np.sqrt(2)*Z)), ("exp(cos(z))", lambda: np.exp(np.cos(Z))),
    ("cos(z) + exp(-1/2)*z**2/2", lambda: np.cos(Z) + np.exp(-.5)*Z**2/2), ("1/(2 + sin(z))", lambda: 1/(2 + np.sin(Z))),
    # kinked
    ("relu(z) - z/2", lambda: relu(Z) - Z/2), ("Abs(z) - z**2", lambda: abs(Z) - Z**2), ("Abs(z - 1)", lambda: abs(Z - 1)),
    ("Max(0, 1 - abs(z))", lambda: np.maximum(0, 1 - abs(Z))), ("Min(1, Max(-1, z))", lambda: np.clip(Z, -1, 1)),
    ("Max(z, 2*z**2 - 1)", lambda: np.maximum(Z, 2*Z**2 - 1)), ("abs(abs(z) - 1)", lambda: abs(abs(Z) - 1)),
    ("relu(z - 1) + relu(-z - 1)", lambda: relu(Z - 1) + relu(-Z - 1)), ("abs(z)**3 - abs(z)", lambda: abs(Z)**3 - abs(Z)),
    ("z**2 + Abs(z)/3", lambda: Z**2 + abs(Z)/3), ("leaky_relu(z)", lambda: np.where(Z > 0, Z, Z/100)),
    ("Max(z**2, 1)", lambda: np.maximum(Z**2, 1)), ("Max(abs(z), 2) - abs(z)", lambda: np.maximum(abs(Z), 2) - abs(Z)),
    # smooth activations
    ("gelu(z)", lambda: Z*phi_(Z)), ("silu(z)", lambda: Z*expit(Z)), ("softplus(z) - z/2", lambda: np.logaddexp(0, Z) - Z/2),
    ("erf(z) - 2*z/sqrt(3*pi)", lambda: erf(Z) - 2*Z/np.sqrt(3*np.pi)), ("tanh(z) - 0.6057*z", lambda: np.tanh(Z) - 0.6057*Z),
    ("erf(z)**2", lambda: erf(Z)**2), ("atan(z)", lambda: np.arctan(Z)), ("erfc(z)", lambda: erfc(Z)),
    ("log(1 + z**2)", lambda: np.log1p(Z**2)),
    # products with Gaussians, where exponents above 2 live
    ("z*exp(-z**2/2)", lambda: Z*np.exp(-Z**2/2)), ("abs(z)*exp(-z**2/2)", lambda: abs(Z)*np.exp(-Z**2/2)),
    ("3*z**2*exp(-z**2) + 1", lambda: 3*Z**2*np.exp(-Z**2) + 1), ("exp(z**2*exp(-z**2))", lambda: np.exp(Z**2*np.exp(-Z**2))),
    ("tanh(3*z**2*exp(-z**2))", lambda: np.tanh(3*Z**2*np.exp(-Z**2))),
    ("cos(z**2*exp(-z**2))", lambda: np.cos(Z**2*np.exp(-Z**2))),
    ("z**4*exp(-z**2)", lambda: Z**4*np.exp(-Z**2)), ("He4(z)*exp(-z**2)", lambda: he(4)*np.exp(-Z**2)),
    ("exp(-z**2)", lambda: np.exp(-Z**2)),
    # rational and singular
    ("1/(1 + z**2)", lambda: 1/(1 + Z**2)), ("z/(1 + z**2)", lambda: Z/(1 + Z**2)), ("z**2/(1 + z**4)", lambda: Z**2/(1 + Z**4)),
    ("log(abs(z))", lambda: np.log(abs(Z))), ("z**2*log(abs(z))", lambda: Z**2*np.log(abs(Z))),
    # growing
    ("exp(z) - z", lambda: np.exp(Z) - Z), ("cosh(z) - z**2", lambda: np.cosh(Z) - Z**2),
    ("sin(3*z)*exp(-z)", lambda: np.sin(3*Z)*np.exp(-Z)),
    ("exp(abs(z))", lambda: np.exp(abs(Z))),
    # constants that are expectations
    ("tanh(z) - z*E(z*tanh(z))", lambda: np.tanh(Z) - Z*mean(Z*np.tanh(Z))),
    ("sigmoid(z) - 1/2 - z*E(z*sigmoid(z))", lambda: expit(Z) - .5 - Z*mean(Z*expit(Z))),
    ("cos(z) - E(cos(z)*He2(z))*He2(z)/2", lambda: np.cos(Z) - mean(np.cos(Z)*he(2))*he(2)/2),
]
DISCRETE = [
    ("floor(z)", lambda: np.floor(Z)), ("floor(abs(z))", lambda: np.floor(abs(Z))), ("floor(z**2/2)", lambda: np.floor(Z**2/2)),
    ("sign(z**2 - 1)", lambda: np.sign(Z**2 - 1)), ("sign(z**3 - 3*z)", lambda: np.sign(Z**3 - 3*Z)),
    ("Heaviside(z**2 - 2)", lambda: 1.*(Z**2 > 2)),
    ("sign(sin(3*z))", lambda: np.sign(np.sin(3*Z))), ("sign(cos(z))", lambda: np.sign(np.cos(Z))),
    ("Piecewise((1, z > 1), (2, z > 0), (3, True))", lambda: np.where(Z > 1, 1., np.where(Z > 0, 2., 3.))),
    ("Piecewise((z, abs(z) > 1), (0, True))", lambda: np.where(abs(Z) > 1, Z, 0)),
    ("Piecewise((z**2, abs(z) < 1), (1, True))", lambda: np.minimum(Z**2, 1)), ("sign(z**2 - 1)*z", lambda: np.sign(Z**2 - 1)*Z),
]
QUICK = {"He4(z) + z", "cos(2*z)", "sin(z)**2", "Abs(z) - z**2", "abs(z)*exp(-z**2/2)", "tanh(z) - 0.6057*z",
         "z**4*exp(-z**2)",
         "floor(abs(z))", "sign(z**2 - 1)", "Piecewise((z, abs(z) > 1), (0, True))", "relu(z) - z/2"}


def cases(rows):
    return [pytest.param(*row, id=row[0], marks=() if row[0] in QUICK else pytest.mark.slow) for row in rows]


@pytest.mark.parametrize("text, values", cases(DETERMINISTIC))
def test_deterministic(text, values):
    information, _ = information_by_sums(values())
    generative, lambdas = generative_by_bins(values())
    agrees(hx.exponents(text), information, generative, 2*lambdas[1])


@pytest.mark.parametrize("text, values", cases(DISCRETE))
def test_labels_with_atoms(text, values):
    _, ratios = information_by_sums(values())
    information = next(k for k, r in enumerate(ratios, 1) if abs(r) > JUMPS)
    generative, lambdas = generative_by_bins(values())
    agrees(hx.exponents(text), information, generative, 2*lambdas[1])


# Values: any function with the same level sets will do, and a tame one is kinder to the bins.
@pytest.mark.parametrize("text, values, inside", [
    ("exp(z**2)", Z**2, "not in L1"), ("exp(z**2/4)", Z**2, "in L1 but not in L2"),
    ("1/(z**2 - 1)", Z**2, "not in L1"),
    ("tan(z)**2", np.sin(Z)**2, "not in L1"), ("1 + tan(z)", np.tan(Z), "not in L1"),
    ("1/abs(z)", abs(Z), "not in L1")])
def test_outside_l2_the_generative_exponent_stands(text, values, inside):
    found = hx.exponents(text)
    generative, lambdas = generative_by_bins(values)
    assert found.square_integrable is False and found.leap_exponent is None and found.staircase == ()
    assert any(inside in note for note in found.notes)
    assert found.complexity["kernel"] is None and found.complexity["one_pass_sgd"] is None
    agrees(found, None, generative, 2*lambdas[1])


# -- noisy labels: P(y|z) on a grid ------------------------------------------------------------------------------------
z = np.linspace(-9, 9, 3001)
w = np.exp(-z*z/2)/np.sqrt(2*np.pi)*(z[1] - z[0])


def by_matrix(law, dy=1.0, orders=(1, 2)):
    """lambda_k^2 = sum over y of (E[h_k P(y|z)])^2/E[P(y|z)], rows of `law` the labels."""
    mass = law @ w
    keep = mass > 1e-300
    return [float(np.sum((law @ (w*hermite(k, z)))[keep]**2/mass[keep]))*dy/k for k in orders]


def gaussian(g, variance):
    s = np.sqrt(variance)
    y = np.arange(g.min() - 9*s, g.max() + 9*s, s/4)
    return np.exp(-((y[:, None] - g)/s)**2/2)/np.sqrt(2*np.pi)/s, s/4


def counts(g, last):
    n = np.arange(last)[:, None]
    return np.exp(xlogy(n, g) - g - gammaln(n + 1)), 1.0


def two(p):
    return np.array([p, 1 - p]), 1.0


def scaled(g):
    t = np.arange(-60, 9, 1/16)[:, None]
    with np.errstate(divide="ignore"):
        d = t - np.log(abs(g))
    return 2*np.exp(d - np.exp(2*np.minimum(d, 20))/2)/np.sqrt(2*np.pi), 1/16


NOISY = [
    ("cos(z)", "gaussian:1/100", np.cos(z), lambda: gaussian(np.cos(z), .01)),
    ("z**2", "gaussian:1/4", z**2, lambda: gaussian(z**2, .25)),
    ("tanh(z)", "gaussian:2", np.tanh(z), lambda: gaussian(np.tanh(z), 2)),
    ("z**2*exp(-z**2)", "gaussian:1/4", z**2*np.exp(-z**2), lambda: gaussian(z**2*np.exp(-z**2), .25)),
    ("z**2", "poisson", z**2, lambda: counts(z**2, 150)),
    ("1 + cos(z)", "poisson", 1 + np.cos(z), lambda: counts(1 + np.cos(z), 40)),
    ("z**2*exp(-z**2)", "poisson", z**2*np.exp(-z**2), lambda: counts(z**2*np.exp(-z**2), 30)),
    ("z**2 - 1", "sign:1", erf((z**2 - 1)/np.sqrt(2)), lambda: two(norm.cdf(z**2 - 1))),
    ("cos(z)", "sign:1/2", erf(np.cos(z)), lambda: two(norm.cdf(np.cos(z)*np.sqrt(2)))),
    ("exp(-z**2)", "bernoulli", np.exp(-z**2), lambda: two(np.exp(-z**2))),
    ("Phi(z)", "bernoulli", phi_(z), lambda: two(phi_(z))),
    ("z**2", "multiplicative", None, lambda: scaled(np.where(z == 0, 1e-9, z)**2)),
    ("1 + z**2", "multiplicative", None, lambda: scaled(1 + z**2)),
    ("cos(z) + 2", "multiplicative", None, lambda: scaled(np.cos(z) + 2)),
]


@pytest.mark.parametrize("text, channel, regression, law", [
    pytest.param(*row, id=f"{row[0]} {row[1]}") for row in NOISY])
def test_noisy(text, channel, regression, law):
    first, second = by_matrix(*law())
    information = None
    if regression is not None:
        g = regression - w @ regression
        ratios = [w @ (g*hermite(k, z))/np.sqrt(w @ g**2) for k in range(1, 7)]
        information = next(k for k, r in enumerate(ratios, 1) if abs(r) > 1e-6)
    generative = 1 if first > 1e-9 else 2 if second > 1e-9 else information
    rtol = 5e-3 if channel == "multiplicative" else 1e-6
    agrees(hx.exponents(text, channel), information, generative, 2*second, rtol)


@pytest.mark.parametrize("text, twin", [("z**3 - z", "(z**3 - z)**2"), ("cos(z)", "cos(2*z)"), ("He3(z)", "He3(z)**2")])
def test_a_fair_sign_leaves_the_modulus(text, twin):
    noisy, plain = hx.exponents(text, "random_sign"), hx.exponents(twin)
    assert noisy.information_exponent is None and noisy.generative_exponent == plain.generative_exponent
    assert float(noisy.alpha_c) == pytest.approx(float(plain.alpha_c), rel=1e-12)


def test_flips_scale_the_threshold():
    plain, noisy = hx.exponents("sign(z**2 - 1)"), hx.exponents("sign(z**2 - 1)", "flip:1/4")
    first, second = by_matrix(*two(.5 + .25*np.sign(z**2 - 1)))
    assert abs(first) < 1e-12
    assert 1/float(noisy.alpha_c) == pytest.approx(2*second, rel=1e-2)
    assert noisy.information_exponent == plain.information_exponent == 2


@pytest.mark.parametrize("density, support, law", [
    ("exp(-(y - z**2)**2/2)/sqrt(2*pi)", "real", lambda: gaussian(z**2, 1)),
    pytest.param("exp(-Abs(y - cos(z)))/2", "real",
                 lambda: (np.exp(-abs(np.arange(-30, 30, 1/64)[:, None] - np.cos(z)))/2, 1/64), marks=pytest.mark.slow),
    ("1/(pi*(1 + (y - z**2)**2))", "real", None),
    ("(1/(2 + z**2))*((1 + z**2)/(2 + z**2))**y", "integers",
     lambda: ((1/(2 + z**2))*((1 + z**2)/(2 + z**2))**np.arange(4000)[:, None], 1.0)),
    ("Piecewise((Phi(z**2 - 1), Eq(y, 1)), (1 - Phi(z**2 - 1), True))", [0, 1], lambda: two(norm.cdf(z**2 - 1)))])
def test_custom_channels(density, support, law):
    from sympy import Symbol

    y = Symbol("y", real=True)
    found = hx.exponents("z", Channel(hx.parse(density, symbols={"y": y}), y, support))
    assert found.generative_exponent == 2
    if law is not None:
        first, second = by_matrix(*law())
        assert abs(first) < 1e-12
        assert 1/float(found.alpha_c) == pytest.approx(2*second, rel=1e-4)


# -- the same checks refuse what is wrong ------------------------------------------------------------------------------
def test_teeth():
    values = np.cos(2*Z)
    found = hx.exponents("cos(2*z)")
    information, _ = information_by_sums(values)
    generative, lambdas = generative_by_bins(values)
    agrees(found, information, generative, 2*lambdas[1])
    for wrong in (lambdas[1], 4*lambdas[1], 1.0, 2*lambdas[1]*1.03):  # 1/alpha_c = lambda_2^2; the misprint gives 1
        with pytest.raises(AssertionError):
            agrees(found, information, generative, wrong)
    # physicists' polynomials H_k instead of He_k give another c_2
    exact = float(hx.exponents("cos(z)").certificates[1].value)
    assert W @ (np.cos(Z)*he(2)) == pytest.approx(exact, abs=1e-12)
    assert W @ (np.cos(Z)*(4*Z**2 - 2)) != pytest.approx(exact, abs=0.5)
    # a target whose order 2 is lost counts as order 4
    with pytest.raises(AssertionError):
        agrees(found, 4, generative, 2*lambdas[1])


@pytest.mark.parametrize(("target", "alpha_c"), [
    ("Heaviside(abs(z) - 0.6797) - Heaviside(abs(z) - 1.3594)", 46620389.528),
    ("sign(abs(z) - 0.123456789)", 9.2714171922)])
def test_a_target_in_decimals(target, alpha_c):
    """1/alpha_c = sum_y E[(z^2 - 1) 1_y]^2/P_y, with E[(z^2 - 1) 1(|z| > a)] = 2 a phi(a)."""
    edges = [float(a) for a in re.findall(r"0\.\d+|1\.\d+", target)]
    part = [2*a*norm.pdf(a) for a in edges]
    cut = [2*norm.sf(a) for a in edges]
    moments, chances = ([part[0] - part[1], part[1] - part[0]], [cut[0] - cut[1], 1 - cut[0] + cut[1]]) if len(edges) == 2 else \
        ([part[0], -part[0]], [cut[0], 1 - cut[0]])
    expected = 1/sum(m**2/p for m, p in zip(moments, chances, strict=True))
    found = hx.exponents(target).to_dict()["weak_recovery"]["alpha_c"]
    assert found == pytest.approx(alpha_c, rel=1e-9) and found == pytest.approx(expected, rel=1e-6)
