"""Thirty systems of the literature by other means: Gauss-Legendre panels, brentq, hybr, mpmath; nothing here knows of the package.

    python independent.py          prints the values that tests/reference/literature.json holds

An average is a sum over panels of 16 Gauss-Legendre nodes, cut where the integrand has a kink; every solution is held to a
residual of 1e-11 of its own size.
"""

import json
import sys

import mpmath
import numpy as np
from scipy.optimize import brentq, minimize_scalar, root
from scipy.special import erf, erfcx, expit, log_ndtr, ndtr

SQ2, SQPI = np.sqrt(2.0), np.sqrt(np.pi)


def phi(x):
    return np.exp(-x*x/2)/np.sqrt(2*np.pi)


def line(kinks=(), step=0.02, reach=13.0):
    """Nodes and weights of N(0, 1)."""
    t, v = np.polynomial.legendre.leggauss(16)
    cuts = [np.arange(-reach, reach + step/2, step), np.asarray(kinks, dtype=float)]
    edges = np.unique(np.clip(np.concatenate(cuts), -reach, reach))
    half = np.diff(edges)[:, None]/2
    x = (edges[:-1, None] + half*(1 + t)).ravel()
    return x, (half*v).ravel()*phi(x)


FINE, PLAIN = line(step=0.004), line()
PLANE = line(step=0.4, reach=9.0)


def mean(f, kinks=None, fine=False):
    x, w = (FINE if fine else PLAIN) if kinks is None else line(kinks)
    return float(w @ f(x))


def mean2(f):
    x, w = PLANE
    return float(w @ f(x[:, None], x[None, :]) @ w)


def solve(equations, start, damped=0):
    """The root of `equations(x)` near `start`, after some damped steps x - equations(x)/2."""
    start = np.atleast_1d(np.asarray(start, dtype=float))
    for _ in range(damped):
        start = start - 0.5*np.atleast_1d(equations(start))
    found = root(lambda x: np.atleast_1d(equations(x)), start, tol=1e-14).x
    size = np.max(np.abs(np.atleast_1d(equations(found))))
    assert size < 1e-11*max(1.0, np.max(np.abs(found))), (start, found, size)
    return [float(v) for v in found]


def mills(u):
    """G(u)/H(u) of a Gaussian density and its upper tail."""
    return np.sqrt(2/np.pi)/erfcx(u/SQ2)


# -- perceptrons -------------------------------------------------------------------------------------------------------
def gardner(k):
    k = mpmath.mpf(k)
    return {"alpha": float(1/((1 + k**2)*mpmath.ncdf(k) + k*mpmath.npdf(k)))}


def gardner_gh(alpha, k):
    def gap(q):
        return alpha*(1 - q)*mean(lambda z: mills((k + np.sqrt(q)*z)/np.sqrt(1 - q))**2, fine=True) - q

    return {"q": brentq(gap, 1e-9, 1 - 1e-9, xtol=1e-15, rtol=1e-15)}


def binary(start=(0.56, 2.6, 0.83)):
    def equations(x):
        q, qhat, alpha = x
        u = np.sqrt(q/(1 - q))
        entropy = -qhat*(1 - q)/2 + mean(lambda z: np.logaddexp(np.sqrt(qhat)*z, -np.sqrt(qhat)*z)) + alpha*mean(
            lambda z: log_ndtr(-u*z))
        return [q - mean(lambda z: np.tanh(np.sqrt(qhat)*z)**2), qhat - alpha/(1 - q)*mean(lambda z: mills(u*z)**2), entropy]

    return dict(zip(("q", "qhat", "alpha"), solve(equations, start), strict=True))


def noisy(alpha, Delta):
    def gap(q):
        s = 1 - q + Delta
        u = np.sqrt(q/s)
        qhat = 2*alpha/s*mean(lambda z: mills(u*z)*phi(u*z))
        return qhat/(1 + qhat) - q

    q = brentq(gap, 1e-9, 1 - 1e-10, xtol=1e-15, rtol=1e-15)
    return {"q": q, "qhat": q/(1 - q)}


def margin(alpha):
    """Largest margin of noiseless labels: min over the angle of F(kappa, cos, sin) - sin/sqrt(alpha), and that minimum is 0."""
    psi = 1/np.sqrt(alpha)

    def parts(k, t):
        # E (k - c|G| - s Z)_+^2 over Z in closed form, with slope -2 E[(k - c|G| - s Z)_+ (..)]
        c, s = np.cos(t), np.sin(t)

        def square(g):
            a = (k - c*np.abs(g))/s
            return s*s*((1 + a*a)*ndtr(a) + a*phi(a))

        def slope(g):  # d/dt of it by Stein: both moments of Z are at hand
            a = (k - c*np.abs(g))/s
            first, overlap = s*(a*ndtr(a) + phi(a)), -s*ndtr(a)
            return 2*(first*s*np.abs(g) - c*overlap)

        F = np.sqrt(mean(square, kinks=[0.0]))
        return F - s*psi, mean(slope, kinks=[0.0])/(2*F) - c*psi

    return dict(zip(("k", "t"), solve(lambda x: parts(*x), (0.3, 0.8)), strict=True))


def mixture(loss, alpha, lamda):
    """Two Gaussian clusters +-v/sqrt(d) of variance 1, balanced."""
    def prox(w, V):
        if loss == "square":
            return (w + V)/(1 + V), np.full_like(w, 1/(1 + V))
        if loss == "hinge":
            return np.where(w < 1 - V, w + V, np.where(w < 1, 1.0, w)), np.where((w > 1 - V) & (w < 1), 0.0, 1.0)
        f = w.copy()
        for _ in range(100):
            step = (f - w - V*expit(-f))/(1 + V*expit(f)*expit(-f))
            f -= step
            if np.abs(step).max() < 1e-12:  # its square is what is left
                break
        return f, 1/(1 + V*expit(f)*expit(-f))

    def equations(x):
        m, q, V = x
        kinks = [(1 - V - m)/np.sqrt(q), (1 - m)/np.sqrt(q)] if loss == "hinge" else []
        z, weight = line(kinks) if kinks else PLAIN
        w = m + np.sqrt(q)*z
        f, slope = prox(w, V)
        mhat, qhat, Vhat = (alpha*weight @ e for e in ((f - w)/V, ((f - w)/V)**2, (1 - slope)/V))
        return [m - mhat/(lamda + Vhat), q - (mhat**2 + qhat)/(lamda + Vhat)**2, V - 1/(lamda + Vhat)]

    return dict(zip(("m", "q", "V"), solve(equations, (0.5, 0.5, 0.5), damped=300), strict=True))


# -- glasses and memories ----------------------------------------------------------------------------------------------
def hopfield_cold(alpha):
    def load(y):
        return (erf(y)/y - 2/SQPI*np.exp(-y*y))**2/2 - alpha

    y = brentq(load, 1.513, 30, xtol=1e-15)
    C = 2*y/SQPI*np.exp(-y*y)/erf(y)
    return {"m": float(erf(y)), "C": C, "r": 1/(1 - C)**2}


def hopfield_fold():
    mpmath.mp.dps = 40

    def load(y):
        return (mpmath.erf(y)/y - 2/mpmath.sqrt(mpmath.pi)*mpmath.exp(-y*y))**2/2

    y = mpmath.findroot(lambda t: mpmath.diff(load, t), 1.5)
    return {"y": float(y), "alpha": float(load(y)), "m": float(mpmath.erf(y))}


def hopfield(alpha, beta):
    def equations(x):
        m, q = x
        r = q/(1 - beta*(1 - q))**2
        t = np.tanh(beta*(m + np.sqrt(alpha*r)*PLAIN[0]))
        return [m - PLAIN[1] @ t, q - PLAIN[1] @ t**2]

    m, q = solve(equations, (0.99, 0.99))
    return {"m": m, "q": q, "r": q/(1 - beta*(1 - q))**2}


def sk(beta, h):
    return {"q": brentq(lambda q: mean(lambda z: np.tanh(beta*(np.sqrt(q)*z + h))**2, fine=True) - q, 1e-9, 1, xtol=1e-15)}


def almeida_thouless(h):
    def equations(x):
        q, beta = x
        t = np.tanh(beta*(np.sqrt(q)*PLAIN[0] + h))**2
        return [q - PLAIN[1] @ t, beta**2*(PLAIN[1] @ (1 - t)**2) - 1]

    return dict(zip(("q", "beta"), solve(equations, (0.5, 1.4)), strict=True))


def sk_one_step(beta):
    """1RSB at h = 0, q0 = 0: stationarity of its free energy in (q, x)."""
    def free(q, x):
        z, w = PLAIN
        log_cosh = np.logaddexp(beta*np.sqrt(q)*z, -beta*np.sqrt(q)*z)
        return log_cosh, w*np.exp(x*log_cosh)

    def equations(v):
        q, x = v
        log_cosh, weight = free(q, x)
        Z = weight.sum()
        t = np.tanh(beta*np.sqrt(q)*PLAIN[0])**2
        return [q - weight @ t/Z, beta**2*q**2/4*x**2 + np.log(Z) - x*(weight @ log_cosh)/Z]

    q, x = solve(equations, (0.6, 0.4))
    _, weight = free(q, x)
    return {"q": q, "x": x, "energy": float(-beta/4*(1 + (1 - x)*q*q - 2*q) - np.log(weight.sum())/(beta*x))}


def p_spin_static(p):
    """Crisanti and Sommers: 2/p = -2 y (1 - y + ln y)/(1 - y)^2 at x = 1."""
    y = brentq(lambda y: 2/p + 2*y*(1 - y + np.log(y))/(1 - y)**2, 1e-9, 0.9, xtol=1e-16)
    return {"y": y, "q": 1 - y, "T": float(np.sqrt(p/2*(1 - y)**(p - 2)*y))}


def p_spin_cold(p, T):
    """Below the static transition y keeps its value: y = (1 - q)/(1 - q + x q), T^2 = p/2 q^(p - 2) (1 - q)^2/y."""
    y = p_spin_static(p)["y"]
    q = brentq(lambda q: p/2*q**(p - 2)*(1 - q)**2/y - T*T, (p - 2)/p, 1 - 1e-12, xtol=1e-16)
    return {"q": q, "x": (1 - q)*(1 - y)/(y*q)}


# -- regression --------------------------------------------------------------------------------------------------------
def lasso(delta, eps, sigma2, a):
    """tau^2 = sigma2 + E(soft(X + tau Z; a tau) - X)^2/delta, X = 0 or +-1."""
    def risk(tau):
        def error(x):
            def f(z):
                y = x + tau*z
                return (np.sign(y)*np.maximum(np.abs(y) - a*tau, 0) - x)**2
            return mean(f, kinks=[(a*tau - x)/tau, (-a*tau - x)/tau])
        return (1 - eps)*error(0.0) + eps*error(1.0)

    tau = brentq(lambda t: sigma2 + risk(t)/delta - t*t, 0.9*np.sqrt(sigma2), 10, xtol=1e-15)
    active = (1 - eps)*2*ndtr(-a) + eps*(ndtr(1/tau - a) + ndtr(-1/tau - a))
    return {"tau2": tau*tau, "lamda": float(a*tau*(1 - active/delta))}


def donoho_maleki_montanari(delta):
    mpmath.mp.dps = 40
    delta = mpmath.mpf(delta)

    def rho(z):
        M = (1 + z*z)*mpmath.ncdf(-z) - z*mpmath.npdf(z)
        return (1 - 2*M/delta)/(1 + z*z - 2*M)

    near = minimize_scalar(lambda t: -float(rho(mpmath.mpf(t))), bounds=(0.01, 5), method="bounded").x
    z = mpmath.findroot(lambda t: mpmath.diff(rho, t), mpmath.mpf(near))
    return {"t": float(z), "rho": float(rho(z))}


def elastic_net(alpha, eps, Delta, lam1, lam2):
    def equations(x):
        V, q, m = x
        Vhat = alpha/(1 + V)
        qhat = alpha*(eps + Delta + q - 2*m)/(1 + V)**2
        S, R, kept = 0.0, lam2 + Vhat, 0.0
        for weight, s in ((1 - eps, np.sqrt(qhat)), (eps, np.sqrt(qhat + Vhat**2))):
            t = lam1/s
            S += weight*2*s*s*((1 + t*t)*ndtr(-t) - t*phi(t))
            kept += weight*2*ndtr(-t)
        return [V - kept/R, q - S/R**2, m - eps*Vhat*2*ndtr(-lam1/np.sqrt(qhat + Vhat**2))/R]

    return dict(zip(("V", "q", "m"), solve(equations, (0.5, 0.3, 0.1), damped=200), strict=True))


def huber(delta, eps, c):
    """Contaminated noise (1 - eps) N(0, 1) + eps N(0, 100), Huber's loss with its kink at c."""
    def equations(x):
        tau2, b = x
        square, slope = 0.0, 0.0
        for weight, s in ((1 - eps, np.sqrt(1 + tau2)), (eps, np.sqrt(100 + tau2))):
            edge = c*(1 + b)/s
            square += weight*((b/(1 + b))**2*s*s*(1 - 2*ndtr(-edge) - 2*edge*phi(edge)) + 2*(b*c)**2*ndtr(-edge))
            slope += weight*b/(1 + b)*(1 - 2*ndtr(-edge))
        return [tau2 - delta*square, slope - 1/delta]

    return dict(zip(("tau2", "b"), solve(equations, (1.0, 1.0)), strict=True))


def sur_candes(kappa, gamma2):
    z1, w1 = line(step=1.0, reach=10.0)
    W = w1[:, None]*w1[None, :]

    def equations(v):
        a, s2, lam = v
        Q1 = np.sqrt(gamma2)*z1[:, None]
        Q2 = -a*Q1 + np.sqrt(kappa*s2)*z1[None, :]
        f = Q2.copy()
        for _ in range(30):
            f -= (f - Q2 + lam*expit(f))/(1 + lam*expit(f)*expit(-f))
        g, bend = expit(f), expit(f)*expit(-f)
        return [s2 - (W*2*expit(Q1)*(lam*g)**2).sum()/kappa**2, (W*expit(Q1)*Q1*lam*g).sum(),
                1 - kappa - (W*2*expit(Q1)/(1 + lam*bend)).sum()]

    return dict(zip(("a", "s2", "lam"), solve(equations, (1.5, 20.0, 3.0) if kappa > 0.15 else (1.15, 6.0, 0.7)), strict=True))


def anisotropic(alpha, lamda, Delta, width):
    x, w = PLAIN
    eta = np.exp(width*x)
    nu = brentq(lambda n: lamda + n/alpha*(w @ (eta/(eta + n))) - n, 1e-12, 1e3, xtol=1e-16)
    gamma = w @ (eta/(eta + nu))**2/alpha
    return {"nu": nu, "test_error": float((nu**2*(w @ (eta/(eta + nu)**2)) + Delta)/(1 - gamma))}


# -- estimation --------------------------------------------------------------------------------------------------------
def bernoulli_gauss(alpha, eps, Delta, start):
    def update(S):
        def square(s):
            def f(z):
                y = s*z
                odds = np.log(eps/(1 - eps)) - np.log(1 + 1/S)/2 + y*y/2*(1/S - 1/(1 + S))
                return (y/(1 + S)*expit(odds))**2
            return mean(f, fine=True)

        return Delta + (eps - (1 - eps)*square(np.sqrt(S)) - eps*square(np.sqrt(1 + S)))/alpha

    logs = solve(lambda v: [update(np.exp(v[0]))/np.exp(v[0]) - 1], [np.log(start)])
    return {"S": float(np.exp(logs[0]))}


def phase_retrieval(alpha, low, high):
    return {"q": brentq(lambda q: _phase(q) - alpha, low, high, xtol=1e-14)}


def _phase(q):
    """The alpha at which the overlap q is a fixed point: q/(1 - q) = alpha (E nu^2 tanh^2(nu omega/(1 - q)) - q)/(1 - q)^2."""
    x, w = line(step=0.25, reach=9.0)
    t, v = line(step=0.5, reach=9.0)
    omega = np.sqrt(q)*t[:, None]
    nu = omega + np.sqrt(1 - q)*x[None, :]
    return float(q*(1 - q)/(v @ (nu**2*np.tanh(nu*omega/(1 - q))**2) @ w - q))


def phase_fold():
    found = minimize_scalar(lambda q: -_phase(q), bounds=(0.3, 0.95), method="bounded", options={"xatol": 1e-9})
    return {"alpha": -float(found.fun)}


def wigner(lamda):
    if lamda <= 1:
        return {"q": 0.0}
    return {"q": brentq(lambda m: mean(lambda z: np.tanh(lamda*m + np.sqrt(lamda*m)*z)) - m, 1e-3, 1, xtol=1e-15)}


def wishart(lamda, alpha):
    """Signs in u, normals in v."""
    def gap(m):
        v = lamda*alpha*m/(1 + lamda*alpha*m)
        return mean(lambda z: np.tanh(lamda*v + np.sqrt(lamda*v)*z)) - m

    u = brentq(gap, 1e-3, 1, xtol=1e-15)
    return {"u": u, "v": lamda*alpha*u/(1 + lamda*alpha*u)}


def wishart_normal(lamda, alpha):
    u = (alpha*lamda**2 - 1)/(lamda*alpha*(1 + lamda))
    return {"u": u, "v": lamda*alpha*u/(1 + lamda*alpha*u)}


def tensor(lamda, stable=True):
    root_ = np.sqrt(1 - 4/lamda)
    return {"q": float((1 + (root_ if stable else -root_))/2)}


def tensor_signs(lamda, low, high):
    return {"q": brentq(lambda m: mean(lambda z: np.tanh(lamda*m*m + np.sqrt(lamda)*m*z)) - m, low, high, xtol=1e-15)}


# -- networks ----------------------------------------------------------------------------------------------------------
def edge_of_chaos(sb2):
    def equations(x):
        q, sw2 = x
        t = np.tanh(np.sqrt(q)*PLAIN[0])**2
        return [q - sw2*(PLAIN[1] @ t) - sb2, sw2*(PLAIN[1] @ (1 - t)**2) - 1]

    return dict(zip(("q", "sw2"), solve(equations, (0.5, 1.3)), strict=True))


def c_map(sw2, sb2):
    q = brentq(lambda q: sw2*mean(lambda z: np.tanh(np.sqrt(q)*z)**2) + sb2 - q, 1e-6, 50, xtol=1e-15)
    s = np.sqrt(q)

    def gap(c):
        return sw2*mean2(lambda a, b: np.tanh(s*a)*np.tanh(s*(c*a + np.sqrt(1 - c*c)*b))) + sb2 - q*c

    return {"q": q, "c": brentq(gap, 0.0, 0.99, xtol=1e-15)}


def nngp(c, sb2):
    """Three layers of relu with weights of variance 2: the arc-cosine kernel of Cho and Saul."""
    values, k, K = {}, c, 1.0
    for layer in (1, 2, 3):
        t = np.arccos(k/K)
        k, K = K/np.pi*(np.sin(t) + (np.pi - t)*np.cos(t)) + sb2, K + sb2
        values |= {f"k{layer}": float(k), f"K{layer}": K}
    return values


def chaotic(g):
    def gap(D):
        F = np.logaddexp(np.sqrt(D)*PLAIN[0], -np.sqrt(D)*PLAIN[0]) - np.log(2)
        return g*g*(PLAIN[1] @ F**2 - (PLAIN[1] @ F)**2) - D*D/2

    return {"D": brentq(gap, 1e-2, 50, xtol=1e-15)}


VALUES = {
    "Gardner, margin": (gardner, [{"k": 0.0}, {"k": 0.5}, {"k": -1.0}]),
    "Gardner, G/H": (gardner_gh, [{"alpha": 1.0, "k": 0.0}, {"alpha": 0.5, "k": 0.5}, {"alpha": 1.9, "k": 0.0}]),
    "binary perceptron": (binary, [{}]),
    "noisy perceptron": (noisy, [{"alpha": 2.0, "Delta": 0.1}, {"alpha": 1.0, "Delta": 0.5}, {"alpha": 20.0, "Delta": 0.01}]),
    "largest margin": (margin, [{"alpha": 2.0}, {"alpha": 3.0}, {"alpha": 0.8}]),
    "Gaussian mixture, square": (lambda **n: mixture("square", **n), [{"alpha": 2.0, "lamda": 0.1}, {"alpha": 1.0, "lamda": 0.5}]),
    "Gaussian mixture, hinge": (lambda **n: mixture("hinge", **n),
                                [{"alpha": 2.0, "lamda": 0.1}, {"alpha": 1.0, "lamda": 0.5}, {"alpha": 2.0, "lamda": 100.0}]),
    "Gaussian mixture, logistic": (lambda **n: mixture("logistic", **n),
                                   [{"alpha": 2.0, "lamda": 0.1}, {"alpha": 1.0, "lamda": 0.5}]),
    "Hopfield, T = 0": (hopfield_cold, [{"alpha": 0.1}, {"alpha": 0.05}, {"alpha": 0.137}]),
    "Hopfield, fold": (hopfield_fold, [{}]),
    "Hopfield, T > 0": (hopfield, [{"alpha": 0.05, "beta": 10.0}, {"alpha": 0.05, "beta": 3.0}, {"alpha": 0.1, "beta": 20.0}]),
    "SK": (sk, [{"beta": 2.0, "h": 0.3}, {"beta": 1.0, "h": 0.5}, {"beta": 50.0, "h": 0.3}]),
    "SK, AT line": (almeida_thouless, [{"h": 0.3}, {"h": 0.5}, {"h": 0.1}]),
    "SK, 1RSB": (sk_one_step, [{"beta": 2.0}, {"beta": 2.5}]),
    "p-spin, static": (p_spin_static, [{"p": 3.0}, {"p": 4.0}]),
    "p-spin, cold": (p_spin_cold, [{"p": 3.0, "T": 0.5}, {"p": 3.0, "T": 0.45}]),
    "LASSO": (lasso, [{"delta": 0.5, "eps": 0.1, "sigma2": 0.1, "a": 1.5}, {"delta": 0.7, "eps": 0.2, "sigma2": 0.01, "a": 1.2}]),
    "Donoho-Maleki-Montanari": (donoho_maleki_montanari, [{"delta": 0.5}, {"delta": 0.25}, {"delta": 0.75}, {"delta": 0.1}]),
    "elastic net": (elastic_net, [{"alpha": 0.8, "eps": 0.2, "Delta": 0.05, "lam1": 0.2, "lam2": 0.1},
                                  {"alpha": 1.5, "eps": 0.3, "Delta": 0.1, "lam1": 0.4, "lam2": 0.5}]),
    "Huber": (huber, [{"delta": 3.0, "eps": 0.1, "c": 1.0}, {"delta": 5.0, "eps": 0.05, "c": 1.5}]),
    "Sur-Candes": (sur_candes, [{"kappa": 0.2, "gamma2": 5.0}, {"kappa": 0.1, "gamma2": 2.0}]),
    "anisotropic ridge": (anisotropic, [{"alpha": 1.5, "lamda": 0.1, "Delta": 0.2, "width": 1.0},
                                        {"alpha": 0.7, "lamda": 0.01, "Delta": 0.1, "width": 0.5}]),
    "Bernoulli-Gauss": (bernoulli_gauss, [{"alpha": 0.5, "eps": 0.1, "Delta": 0.01, "start": 0.02},
                                          {"alpha": 0.3, "eps": 0.1, "Delta": 1e-4, "start": 2e-4}]),
    "Bernoulli-Gauss, hard": (bernoulli_gauss,
                              [{"alpha": 0.2, "eps": 0.1, "Delta": 1e-4, "start": s} for s in (0.15, 0.036, 2.5e-4)]),
    "phase retrieval": (phase_retrieval, [{"alpha": 1.0, "low": 0.4, "high": 0.73}, {"alpha": 0.8, "low": 0.2, "high": 0.7}]),
    "phase retrieval, fold": (phase_fold, [{}]),
    "spiked Wigner": (wigner, [{"lamda": 2.0}, {"lamda": 1.2}, {"lamda": 0.5}]),
    "spiked Wishart": (wishart, [{"lamda": 2.0, "alpha": 1.0}, {"lamda": 1.5, "alpha": 0.8}]),
    "spiked Wishart, normal": (wishart_normal, [{"lamda": 2.0, "alpha": 1.0}, {"lamda": 1.5, "alpha": 3.0}]),
    "tensor PCA": (tensor, [{"lamda": 8.0}, {"lamda": 5.0}]),
    "tensor PCA, signs": (tensor_signs, [{"lamda": 5.0, "low": 0.6, "high": 1.0}]),
    "edge of chaos": (edge_of_chaos, [{"sb2": 0.05}, {"sb2": 0.2}]),
    "c map": (c_map, [{"sw2": 4.0, "sb2": 0.1}, {"sw2": 3.0, "sb2": 0.3}]),
    "NNGP": (nngp, [{"c": 0.3, "sb2": 0.1}, {"c": -0.5, "sb2": 0.0}]),
    "chaotic network": (chaotic, [{"g": 1.5}, {"g": 2.0}, {"g": 3.0}]),
}


HELP = {"low", "high", "start"}  # where the search begins here; no parameters of the systems


def main(names):
    found = {}
    for name in names or VALUES:
        function, points = VALUES[name]
        found[name] = [{"numbers": {k: v for k, v in p.items() if k not in HELP}, "values": function(**p)} for p in points]
    source = "tests/systems/literature/independent.py: Gauss-Legendre panels, brentq, hybr, mpmath; residuals below 1e-11"
    lines = ",\n".join(f" {json.dumps(k)}: [\n" + ",\n".join(f"  {json.dumps(p)}" for p in v) + "\n ]" for k, v in found.items())
    print(f'{{\n "source": {json.dumps(source)},\n{lines}\n}}')


if __name__ == "__main__":
    main(sys.argv[1:])
