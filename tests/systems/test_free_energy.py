"""Free energies of ridge-penalised GLMs: the printed equations, their numbers by other means, planted errors, simulation."""

import math

import glm_by_scipy as other
import mpmath
import numpy as np
import pytest
from scipy import special
from sympy import (
    Abs,
    Eq,
    Function,
    Max,
    Piecewise,
    Rational,
    Sum,
    Symbol,
    acos,
    cosh,
    erf,
    exp,
    factorial,
    log,
    pi,
    sign,
    simplify,
    sinh,
    sqrt,
)
from sympy.stats import Cauchy

import hermitex as hx
from hermitex import E, Moreau, free_energy
from hermitex.errors import BadInput
from hermitex.symbolic.indexed_sums import ArraySum
from hermitex.symbols import Delta, V, Vhat, alpha, lamda, m, mhat, q, qhat, rho, z1, z2, z3
from hermitex.symbols import f as F
from hermitex.symbols import y as Y
from hermitex.systems.gaussian_fields import shorten_expectations, variation

PAIRS = {V: Vhat, q: qhat, m: mhat}
delta = Symbol("delta", positive=True)
OMEGA = sqrt(q)*z1
NU = m/sqrt(q)*z1 + sqrt(rho - m**2/q)*z2
HUBER = Piecewise(((Y - F)**2/2, Abs(Y - F) <= delta), (delta*Abs(Y - F) - delta**2/2, True))
LOGISTIC = log(1 + exp(-Y*F))
MARGIN = acos(m/sqrt(rho*q))/pi


def coupling():
    return q*Vhat/2 - V*qhat/2 - m*mhat + (rho*mhat**2 + qhat)/(lamda + Vhat)/2


def glm(loss, label, sign_=1, factor=1):
    """Phi = (q Vhat - V qhat)/2 - m mhat + (rho mhat^2 + qhat)/(2 (lamda + Vhat)) - alpha E[M]."""
    return factor*(coupling() - sign_*alpha*E(Moreau(loss.subs(Y, label), F, OMEGA, V), z1, z2, z3))


def regression(loss, **options):
    return free_energy(glm(loss, NU + sqrt(Delta)*z3, **options), PAIRS, observables={"test_error": rho + q - 2*m})


def classification(loss, **options):
    return free_energy(glm(loss, sign(NU), **options), PAIRS, observables={"test_error": MARGIN})


@pytest.fixture(scope="module")
def ridge():
    return regression((Y - F)**2/2)


@pytest.fixture(scope="module")
def huber():
    return regression(HUBER)


@pytest.fixture(scope="module")
def logistic():
    return classification(LOGISTIC)


def papers():
    """STYLE: the six equations as [loureiro2021] prints them for the square loss."""
    return {Vhat: alpha/(1 + V), qhat: alpha*(rho + Delta + q - 2*m)/(1 + V)**2, mhat: alpha/(1 + V),
            V: 1/(lamda + Vhat), q: (rho*mhat**2 + qhat)/(lamda + Vhat)**2, m: rho*mhat/(lamda + Vhat)}


# -- the printed form --------------------------------------------------------------------------------------------------
def test_ridge_is_what_papers_print(ridge):
    assert set(ridge.equations) == set(papers())
    for unknown, rhs in papers().items():
        assert simplify(ridge.equations[unknown] - rhs) == 0


def test_ridge_needs_no_expectation_and_no_root(ridge):
    assert not any(r.has(E(z1, z1).func) or r.has(sqrt(q)) for r in ridge.equations.values())


@pytest.mark.parametrize("factor", [-1, Rational(1, 2), -3*alpha])
def test_overall_sign_and_factor_do_not_matter(ridge, factor):
    other_ = regression((Y - F)**2/2, factor=factor)
    for unknown, rhs in ridge.equations.items():
        assert simplify(other_.equations[unknown] - rhs) == 0


def test_fields_by_covariance_are_the_same_fields(ridge):
    node = E(Moreau((z2 + sqrt(Delta)*z3 - F)**2/2, F, z1, V), z1, z2, z3,
             cov={(z1, z1): q, (z1, z2): m, (z2, z2): rho})
    system = free_energy(coupling() - alpha*node, PAIRS)
    for unknown, rhs in ridge.equations.items():
        assert simplify(system.equations[unknown] - rhs) == 0


def test_the_derivation_is_kept_and_holds(ridge):
    assert len(ridge.derivation.steps) == 3
    assert ridge.derivation.check(digits=12)
    assert "align" in ridge.derivation.latex()


def test_noise_inside_of_a_switch_is_no_normal_of_its_own(logistic):
    """sign(nu + sqrt(Delta/2) (z3 + z4)): the averages are over one normal, and Delta = 0 is a number as any other."""
    z4 = Symbol("z4", real=True)
    label = sign(NU + sqrt(Delta/2)*(z3 + z4))
    noisy = free_energy(coupling() - alpha*E(Moreau(LOGISTIC.subs(Y, label), F, OMEGA, V), z1, z2, z3, z4), PAIRS)
    assert all(len(n.bound) == 1 for r in noisy.equations.values() for n in r.atoms(E(z1, z1).func))
    clean = noisy.solve(alpha=2, lamda=0.1, rho=1, Delta=0)
    assert clean["q"] == pytest.approx(logistic.solve(alpha=2, lamda=0.1, rho=1)["q"], rel=1e-9)


# -- numbers -----------------------------------------------------------------------------------------------------------
def test_reference_of_the_square_loss_to_all_digits(ridge):
    """V, q, m from the quadratic for V and linear equations for m and q at 30 digits."""
    with mpmath.workdps(30):
        a, lam, noise = mpmath.mpf(2), mpmath.mpf(1)/10, mpmath.mpf(1)/4
        # 1/V = lam + a/(1 + V)
        v = mpmath.findroot(lambda v: lam*v*(1 + v) + a*v - 1 - v, 0.8)
        vhat = a/(1 + v)
        overlap = vhat/(lam + vhat)
        k = a/(1 + v)**2/(lam + vhat)**2
        power = (vhat**2/(lam + vhat)**2 + k*(1 + noise - 2*overlap))/(1 - k)
        reference = {"V": v, "q": power, "m": overlap, "test_error": 1 + power - 2*overlap}
    found = ridge.solve(alpha=2, lamda=0.1, Delta=0.25, rho=1)
    for name, printed in (("V", 0.844289), ("q", 1.023807), ("m", 0.915571), ("test_error", 0.192665)):
        assert abs(found[name] - float(reference[name])) < 1e-12
        assert abs(found[name] - printed) < 5e-7


def test_huber_against_scipy(huber):
    width = 0.7
    found = huber.solve(alpha=2, lamda=0.1, Delta=0.25, rho=1, delta=width)
    expected = other.regression(lambda u: np.clip(u, -width, width), lambda u: float(abs(u) < width), alpha=2, lamda=0.1,
                                Delta=0.25, rho=1, kinks=lambda V: (width*(1 + V), -width*(1 + V)))
    assert np.allclose([found["V"], found["q"], found["m"]], expected, rtol=1e-9)


def test_wide_huber_is_the_square_loss(huber, ridge):
    numbers = {"alpha": 2, "lamda": 0.1, "Delta": 0.25, "rho": 1}
    wide, square = huber.solve(**numbers, delta=60.0), ridge.solve(**numbers)
    assert all(abs(wide[n] - square[n]) < 1e-12 for n in ("V", "q", "m", "test_error"))


def test_logistic_against_scipy(logistic):
    def slope(f):
        return -0.5*(1 - np.tanh(f/2))

    def bend(u, omega, V):
        curvature = 0.25/np.cosh(u/2)**2
        return V*curvature/(1 + V*curvature)

    found = logistic.solve(alpha=2, lamda=0.1, rho=1)
    expected = other.classification(slope, bend, alpha=2, lamda=0.1, rho=1)
    assert np.allclose([found["V"], found["q"], found["m"]], expected, rtol=1e-9)


@pytest.mark.slow
def test_hinge_against_scipy():
    found = classification(Max(0, 1 - Y*F)).solve(alpha=2, lamda=0.1, rho=1)
    expected = other.classification(lambda f: -float(f < 1), lambda u, omega, V: float(1 - V < omega < 1), alpha=2, lamda=0.1,
                                    rho=1, kinks=lambda V: (1.0, 1 - V))
    assert np.allclose([found["V"], found["q"], found["m"]], expected, rtol=1e-8)


def test_logistic_solves_where_newton_on_the_prox_would_cycle(logistic):
    """V >> 20: the prox is found inside a bracket."""
    found = logistic.solve(alpha=1, lamda=1e-3, rho=1)
    assert found["V"] > 20 and found.residual < 1e-9


# -- teeth -------------------------------------------------------------------------------------------------------------
def test_a_sign_error_in_phi_is_seen(ridge):
    wrong = regression((Y - F)**2/2, sign_=-1)
    assert simplify(wrong.equations[Vhat] - ridge.equations[Vhat]) != 0
    assert simplify(wrong.equations[Vhat] + ridge.equations[Vhat]) == 0


def test_swapped_q_and_m_are_seen(ridge):
    swapped = free_energy(glm((Y - F)**2/2, NU + sqrt(Delta)*z3).subs({q: m, m: q}, simultaneous=True), PAIRS)
    assert simplify(swapped.equations[qhat] - ridge.equations[qhat]) != 0


def test_a_lost_factor_is_seen(huber):
    found = huber.solve(alpha=2, lamda=0.1, Delta=0.25, rho=1, delta=0.7)
    planted = huber.subs(delta=2*delta).solve(alpha=2, lamda=0.1, Delta=0.25, rho=1, delta=0.7)
    assert abs(found["q"] - planted["q"]) > 1e-4


# -- other shapes ------------------------------------------------------------------------------------------------------
def test_conditions_that_are_not_linear_stay_implicit():
    a, b = Symbol("a", positive=True), Symbol("b", positive=True)
    system = free_energy(a**3*b + b**2 - a, {a: b})
    assert isinstance(system.equations[a], Eq)
    assert system.equations[b] == 1/(3*a**2) or isinstance(system.equations[b], Eq)
    found = system.solve(start={"a": 0.8, "b": 0.5}, raise_on_failure=False)
    if found.converged:
        x, c = found["a"], found["b"]
        assert abs(3*x**2*c - 1) < 1e-9 and abs(x**3 + 2*c) < 1e-9


def test_names_that_phi_does_not_hold():
    with pytest.raises(BadInput, match="does not depend on t"):
        free_energy(V*Vhat - V, {"t": Vhat})
    with pytest.raises(BadInput, match="two pairs"):
        free_energy(V*Vhat*q, {V: Vhat, q: Vhat})
    with pytest.raises(BadInput, match="two pairs"):
        free_energy(V*Vhat, {V: Vhat, Vhat: None})
    with pytest.raises(BadInput, match="depend on q; it holds V, Vhat; leave q out"):
        free_energy(V*Vhat, {V: Vhat, q: None})


def test_a_letter_alone_is_stationary_beside_pairs():
    """The Hopfield model: q with r, m alone; the equations of Amit, Gutfreund and Sompolinsky by NumPy, and m's written by hand."""
    coupled = "alpha*beta*r*(1 - q)/2 + alpha/(2*beta)*(log(1 - beta*(1 - q)) - beta*q/(1 - beta*(1 - q)))"
    local, letters = "E(log(2*cosh(beta*(m + sqrt(alpha*r)*z))), z)/beta", {"r": "positive"}
    system = free_energy(f"{coupled} + m**2/2 - {local}", {"q": "r", "m": None}, symbols=letters)
    found = system.solve(alpha=0.05, beta=5, start={"q": 0.9, "r": 1, "m": 0.95})
    x, w = np.polynomial.hermite_e.hermegauss(60)
    t = np.tanh(5*(found["m"] + np.sqrt(0.05*found["r"])*x))
    expected = w @ t/w.sum(), w @ t**2/w.sum(), found["q"]/(1 - 5*(1 - found["q"]))**2
    np.testing.assert_allclose([found[n] for n in ("m", "q", "r")], expected, rtol=1e-9)
    pair = free_energy(f"{coupled} - {local}", {"q": "r"}, symbols=letters).equations
    by_hand = hx.System({**{str(u): e for u, e in pair.items()}, "m": "E(tanh(beta*(m + sqrt(alpha*r)*z)), z)"})
    again = by_hand.solve(alpha=0.05, beta=5, start={"q": 0.9, "r": 1, "m": 0.95})
    assert all(abs(again[n] - found[n]) < 1e-12 for n in ("m", "q", "r"))


def test_a_letter_alone_has_the_derivative_of_phi():
    """d/dm of Curie and Weiss's free energy; a field of the wrong sign is another equation."""
    weiss = {s: free_energy(f"beta*m**2/2 - log(cosh(beta*(m {s} h)))", {"m": None}, symbols={"h": "real"}) for s in "+-"}
    found = weiss["+"].solve(beta=1.5, h=0.1, start={"m": 0.5})["m"]
    assert abs(found - np.tanh(1.5*(found + 0.1))) < 1e-12
    assert abs(weiss["-"].solve(beta=1.5, h=0.1, start={"m": 0.5})["m"] - found) > 0.01


def test_public_name_and_text():
    system = hx.free_energy("V*Vhat/2 - log(1 + Vhat)/2 - V**2/4", {"V": "Vhat"})
    assert [str(u) for u in system.equations] == ["Vhat", "V"]


def test_generic_potential_by_price():
    """d/dq E[f(sqrt(q) z)] = E[f''(sqrt(q) z)]/2 for a function that nobody named."""
    found, rule = variation(E(Function("f")(sqrt(q)*z1), z1), q)
    assert rule == "Price"
    assert str(found) == "E(f''(sqrt(q)*z1)/2, z1)"


# -- simulation --------------------------------------------------------------------------------------------------------
def simulate(fit, *, label, error, d=200, runs=24, ratio=2, seed=7):
    rng = np.random.default_rng(seed)
    errors = []
    for _ in range(runs):
        teacher = rng.standard_normal(d)
        teacher *= np.sqrt(d)/np.linalg.norm(teacher)
        X = rng.standard_normal((ratio*d, d))/np.sqrt(d)
        w = fit(X, label(X @ teacher, rng))
        errors.append(error(teacher, w))
    return np.mean(errors), np.std(errors, ddof=1)/np.sqrt(runs)


@pytest.mark.slow
def test_ridge_simulation(ridge):
    def fit(X, y):
        return np.linalg.solve(X.T @ X + 0.1*np.eye(X.shape[1]), X.T @ y)

    mean, error = simulate(fit, label=lambda nu, rng: nu + 0.5*rng.standard_normal(nu.shape),
                           error=lambda t, w: ((t - w)**2).mean())
    assert abs(mean - ridge.solve(alpha=2, lamda=0.1, Delta=0.25, rho=1)["test_error"]) < 4*error


@pytest.mark.slow
def test_logistic_simulation(logistic):
    from scipy.optimize import minimize

    def fit(X, y):
        def value(w):
            margin = y*(X @ w)
            return np.logaddexp(0, -margin).sum() + 0.05*w @ w, -X.T @ (y/(1 + np.exp(margin))) + 0.1*w

        return minimize(value, np.zeros(X.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 2000}).x

    mean, error = simulate(fit, label=lambda nu, rng: np.sign(nu),
                           error=lambda t, w: np.arccos(t @ w/np.linalg.norm(t)/np.linalg.norm(w))/np.pi)
    assert abs(mean - logistic.solve(alpha=2, lamda=0.1, rho=1)["test_error"]) < 4*error


def test_a_normal_that_only_decides_a_switch_is_averaged_out():
    """E[e^z1 (1 + z2) sign(b z1 + s z2)] = sqrt(e) (erf(b/sqrt 2) + 2 s phi(b)) where b^2 + s^2 = 1."""
    b, s = Rational(3, 5), Rational(4, 5)
    found = shorten_expectations(E(exp(z1)*(1 + z2)*sign(b*z1 + s*z2), z1, z2))
    assert abs((found - sqrt(exp(1))*(erf(b/sqrt(2)) + 2*s*exp(-b**2/2)/sqrt(2*pi))).evalf(20)) < 1e-18


def poisson(V, q, m, alpha, lam, rho, most):
    """One step of the state evolution of y ~ Poisson(exp(nu)) with the loss exp(f) - y f and a ridge, by NumPy."""
    g, w = np.polynomial.hermite_e.hermegauss(80)
    z, W = g[:, None], np.outer(w, w)/(2*np.pi)
    omega, nu = np.sqrt(q)*z, m/np.sqrt(q)*z + np.sqrt(rho - m**2/q)*g
    Vhat = qhat = mhat = 0.0
    for y in range(most + 1):
        f = np.zeros_like(omega)
        for _ in range(60):
            f = f - np.clip((f - omega + V*(np.exp(f) - y))/(1 + V*np.exp(f)), -2, 2)
        mass = np.exp(y*nu - np.exp(nu))/math.factorial(y)
        Vhat += alpha*np.sum(W*mass*np.exp(f)/(1 + V*np.exp(f)))
        qhat += alpha*np.sum(W*mass*((f - omega)/V)**2)
        mhat += alpha*np.sum(W*mass*(y - np.exp(nu))*(f - omega)/V)
    return 1/(lam + Vhat), (rho*mhat**2 + qhat)/(lam + Vhat)**2, rho*mhat/(lam + Vhat)


def test_a_sum_of_averages_stays_one():
    """A Poisson GLM: one derivative for all counts, and the numbers of NumPy; k = 0 is one of them."""
    k, most = Symbol("k", integer=True, nonnegative=True), 14
    mean = E(exp(k*NU - exp(NU))/factorial(k)*Moreau(exp(F) - k*F, F, OMEGA, V), z1, z2)
    system = free_energy(coupling() - alpha*Sum(mean, (k, 0, most)), PAIRS)
    assert all(system.equations[u].has(ArraySum) for u in (Vhat, qhat, mhat))
    found = system.solve(alpha=3, lam=0.5, rho=0.2)
    at = tuple(found[n] for n in ("V", "q", "m"))
    np.testing.assert_allclose(poisson(*at, 3, 0.5, 0.2, most), at, rtol=1e-10)


def test_a_sum_of_averages_that_python_adds_up_is_one():
    """61 counts took minutes term by term; what is not alike stays as it is written."""
    def mean(y):
        return E(exp(y*NU - exp(NU))/factorial(y)*Moreau(exp(F) - y*F, F, OMEGA, V), z1, z2)

    written = free_energy(coupling() - alpha*sum(map(mean, range(61))) - 2*alpha*mean(70), PAIRS)
    n = Symbol("n", integer=True, nonnegative=True)
    summed = free_energy(coupling() - alpha*Sum(mean(n), (n, 0, 60)) - 2*alpha*mean(70), PAIRS)
    assert written.equations[Vhat].has(ArraySum) and written.equations == summed.equations


def test_an_average_of_a_sum_is_a_sum_of_averages():
    k = Symbol("k", integer=True, nonnegative=True)
    term = exp(k*NU - exp(NU))/factorial(k)*Moreau(exp(F) - k*F, F, OMEGA, V)
    inside, outside = (free_energy(coupling() - alpha*mean, PAIRS) for mean in (
        E(2*Sum(term, (k, 0, 60)) + z1, z1, z2), 2*Sum(E(term, z1, z2), (k, 0, 60))))
    assert inside.equations == outside.equations and inside.equations[Vhat].has(ArraySum)


def test_a_loss_of_a_difference_written_both_ways():
    """Abs(y - f) beside (f - y)^2: one label, and the printed closed forms."""
    u = NU + sqrt(Delta)*z3 - F
    loss = Piecewise((u**2/2, Abs(-u) <= 1), (Abs(u) - Rational(1, 2), True))
    mixed = loss.xreplace({u**2: (-u)**2})
    found = free_energy(coupling() - alpha*E(Moreau(mixed, F, OMEGA, V), z1, z2, z3), PAIRS)
    s2 = rho + Delta + q - 2*m
    assert simplify(found.equations[Vhat] - alpha*erf((1 + V)/sqrt(2*s2))/(1 + V)) == 0


def huber_with_cauchy_noise(V, q, m, alpha, lam):
    """One step for the Huber loss at 1 and y = nu + c/2, c of Cauchy's law: E[.|c] by hand, c = tan, 200 nodes."""
    t, w = np.polynomial.legendre.leggauss(200)
    noise, s = np.tan(np.pi*t/2)/2, np.sqrt(1 - 2*m + q)
    lo, hi = (-1 - V - noise)/s, (1 + V - noise)/s
    density = [np.exp(-b**2/2)/np.sqrt(2*np.pi) for b in (lo, hi)]
    within = special.ndtr(hi) - special.ndtr(lo)
    square = (noise**2 + s**2)*within + 2*noise*s*(density[0] - density[1]) + s**2*(lo*density[0] - hi*density[1])
    Vhat, qhat = alpha/(1 + V)*np.sum(w/2*within), alpha*np.sum(w/2*(1 - within + square/(1 + V)**2))
    return 1/(lam + Vhat), (Vhat**2 + qhat)/(lam + Vhat)**2, Vhat/(lam + Vhat)


def test_huber_with_cauchy_noise():
    """The panels of the normal that turns the switches follow the noise, which is no linear part of them."""
    loss = HUBER.subs(delta, 1).subs(Y, NU + Cauchy("c", 0, Rational(1, 2)))
    found = free_energy(coupling() - alpha*E(Moreau(loss, F, OMEGA, V)), PAIRS).solve(alpha=3, lam=0.5, rho=1)
    at = tuple(found[n] for n in ("V", "q", "m"))
    np.testing.assert_allclose(huber_with_cauchy_noise(*at, 3, 0.5), at, rtol=1e-10)


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_lasso_as_a_free_energy_from_its_default_start(noise):
    """Its map runs to infinity from V = qhat = 1: the solution is that of lasso as one fixed point, [bayati2012]'s."""
    eps, lam, B = Symbol("eps", positive=True), Symbol("lam", positive=True), Symbol("B", real=True)

    def penalty(field):
        return E((Moreau(lam*Abs(F), F, B/Vhat, 1/Vhat) - B**2/(2*Vhat)).subs(B, field), z1, z2)

    prior = (1 - eps)*penalty(sqrt(qhat)*z1) + eps*penalty(sqrt(qhat)*z1 + mhat*z2)
    phi = (q*Vhat - V*qhat)/2 - m*mhat - prior - alpha*(eps + Delta - 2*m + q)/(2*(1 + V))
    found = free_energy(phi, PAIRS).solve(alpha=0.6, lam=0.1, eps=0.2, Delta=noise)
    Vh, tau = found["Vhat"], math.sqrt(found["qhat"])
    assert Vh == pytest.approx(0.6/(1 + found["V"]), rel=1e-11)

    def kept(s):  # how often |w + noise| exceeds the threshold, and the mean square of what is left
        u = 0.1/s
        return special.erfc(u/math.sqrt(2)), s**2*((1 + u*u)*special.erfc(u/math.sqrt(2)) - u*math.sqrt(2/math.pi)*math.exp(-u*u/2))

    mixed = [0.8*a + 0.2*b for a, b in zip(kept(tau), kept(math.hypot(tau, Vh)), strict=True)]
    assert found["V"] == pytest.approx(mixed[0]/Vh, rel=1e-10) and found["q"] == pytest.approx(mixed[1]/Vh**2, rel=1e-10)
    assert found["m"] == pytest.approx(0.2*kept(math.hypot(tau, Vh))[0], rel=1e-10)
    assert found["qhat"] == pytest.approx(0.6*(0.2 + noise - 2*found["m"] + found["q"])/(1 + found["V"])**2, rel=1e-10)


def test_the_bayes_optimal_perceptron_with_many_samples():
    """Averages that are coarse where the start stands led the solver away, for good: [barbier2019] at alpha = 20."""
    seen = special_tail(sqrt(q/(1 - q))*z1)
    system = free_energy(-q*qhat/2 + qhat/2 - log(1 + qhat)/2 + 2*alpha*E(seen*log(seen), z1), {q: qhat})
    found = system.solve(alpha=20)
    a = found["qhat"]
    with mpmath.workdps(20):
        root = mpmath.sqrt(a)
        mean = 2*mpmath.quad(lambda v: mpmath.npdf(v)*mpmath.npdf(root*v)**2/mpmath.ncdf(-root*v), [-6, -.3, 0, .3, 1, 6])
    assert float(20*(1 + a)*mean) == pytest.approx(a, rel=1e-8)


def special_tail(w):
    return (1 - erf(w/sqrt(2)))/2


def test_the_slopes_of_log_cosh_are_tanh_and_a_good_start_keeps_its_branch():
    """Hopfield at beta = 1000, where sinh and cosh overflow: from next to the retrieval state it is found, not m = 0."""
    phi = ("m**2/2 + alpha/(2*beta)*(log(1 - beta*(1 - q)) - beta*q/(1 - beta*(1 - q))) + alpha*beta*r*(1 - q)/2"
           "- E(log(2*cosh(beta*(sqrt(alpha*r)*z + m))), z)/beta")
    hopfield = hx.free_energy(phi, {"q": "r", "m": None}, symbols="r>0", domain={"q": (0, 1)})
    assert not any(e.has(sinh, cosh) for e in hopfield.equations.values())
    found = hopfield.solve(alpha=0.1, beta=1000, start={"q": 0.99999, "m": 0.99, "r": 1.05})
    assert found["m"] == pytest.approx(0.997999, abs=1e-6) and found.stability < 1
