"""Result 3.3 of arXiv:2402.04980 (one gradient step, square loss) as its 13 naive equations, and a plain solver of it.

The equations stand in the order of the paper, with named sub-expressions and nothing solved or reordered by hand; the
plain solver shares no code with the package: it tabulates by the trapezoid rule and solves with SciPy.
"""

import json
from functools import cache
from pathlib import Path

import numpy as np
from scipy.optimize import fsolve
from sympy import Eq, sqrt, symbols

from hermitex import E, System
from hermitex.symbolic.activations import activation
from hermitex.symbols import Delta, alpha, beta, c, gamma, kappa, lamda, r, z

REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "one_step_result33.json").read_text())
NAMES = {"test": "test_error", "train": "train_error", "Vh1": "Vhat1", "Vh2": "Vhat2", "qh1": "qhat1", "qh2": "qhat2",
         "zetah": "zetatilde", "psih": "psitilde"}
PARAMETERS = ("alpha", "beta", "lam", "r", "c", "gamma", "Delta")
#: The notebook's point: tanh/sin at alpha_0 = 20, eta_tilde = 3, lambda = 0.1, beta = 1.
NOTEBOOK = {"beta": 1.0, "lam": 0.1, "r": 1.1340555092826203, "c": 1.0189732004581857, "gamma": 0.9718544444873879, "Delta": 0.0}
ALPHAS = np.array([0.2, 0.9, 1.6, 2.3, 3.0])
CURVE = np.array([0.0484829019195, 0.0425039287213, 0.0373113280789, 0.0343046647450, 0.0325182080146])
_WRITTEN = {"he3": "He3(z)", "he2": "He2(z)", "he1+he3/6": "He1(z) + He3(z)/6", "he1+he2/2": "He1(z) + He2(z)/2"}


@cache
def one_step(sigma: str, g: str) -> System:
    """The 13 equations for features sigma and target g."""
    sigma, g = (activation(_WRITTEN.get(f, f)) for f in (sigma, g))
    Vhat1, Vhat2, V1, V2, q1, q2, qhat1, qhat2 = symbols("Vhat1 Vhat2 V1 V2 q1 q2 qhat1 qhat2", positive=True)
    m, zeta, zetatilde, psi, psitilde = symbols("m zeta zetatilde psi psitilde", real=True)
    mu_0, mu_1, mu_22, h, h1, h2, Q, L, u = symbols("mu_0 mu_1 mu_22 h h1 h2 Q L u", real=True)
    T0, T1, T2, B, e, rho = symbols("T0 T1 T2 B e rho", real=True)
    s, t = r*kappa + sqrt(c)*z, gamma*kappa + sqrt(rho)*z

    def K(x):
        return E(x, kappa)

    return System({
        Vhat1: alpha/beta*K(mu_1**2*Q),
        Vhat2: alpha/beta*K(mu_22*Q),
        V1: c*V2*u,
        V2: 1/(L + c*Vhat1*u),
        m: Eq(K(mu_0*(h - B)*Q), 0),
        zeta: alpha*c*V2*zetatilde,
        zetatilde: K(kappa*mu_1*(h - B)*Q),
        psi: alpha*V1*psitilde,
        psitilde: K(mu_1*h1*Q),
        qhat1: alpha/beta*K(mu_1**2*e*Q**2),
        qhat2: alpha/beta*K(mu_22*e*Q**2),
        q1: alpha**2/beta*(c*zetatilde**2*T1 + psitilde**2*T2) + qhat1*T2 + qhat2*T1,
        q2: alpha**2/beta*(c*zetatilde**2*T0 + psitilde**2*T1) + qhat1*T1 + qhat2*T0,
    }, where={
        rho: 1 - gamma**2,
        mu_0: E(sigma(s), z),
        mu_1: E(z*sigma(s), z)/sqrt(c),
        mu_22: E(sigma(s)**2, z) - mu_0**2 - c*mu_1**2,
        h: E(g(t), z),
        h1: E(z*g(t), z),
        h2: E(g(t)**2, z) + Delta,
        Q: 1/(1 + mu_1**2*V1 + mu_22*V2),
        L: lamda + Vhat2,
        u: 1/(1 + c*beta*Vhat1*V2),
        T0: V2**2/(1 - beta*(c*Vhat1*u*V2)**2),
        T1: c*u**2*T0,
        T2: c*u**2*T1 + beta*V1**2,
        B: mu_0*m + kappa*mu_1*zeta,
        e: h2 - 2*B*h + B**2 - 2*mu_1*psi*h1 + mu_1**2*q1 + mu_22*q2,
    }, observables={"test_error": K(e) - Delta, "train_error": K(e*Q**2)}, source="arXiv:2402.04980, Result 3.3")


def plain(sigma, g, *, alpha, beta, lam, r, c, gamma, Delta, near, step=0.05):
    """The same by hand: (i) two unknowns by SciPy from `near` = (Vhat1, Vhat2), then two linear solves. Smooth sigma and g."""
    x = np.arange(-9, 9 + step/2, step)
    w = step*np.exp(-x*x/2)/np.sqrt(2*np.pi)
    rho = 1 - gamma**2
    S, G = sigma(r*x[:, None] + np.sqrt(c)*x), g(gamma*x[:, None] + np.sqrt(rho)*x)
    mu0, mu1 = S@w, S@(w*x)/np.sqrt(c)
    mu22 = S**2@w - mu0**2 - c*mu1**2
    h, h1, h2 = G@w, G@(w*x), G**2@w + Delta

    def inner(Vh1, Vh2):
        L, b = lam + Vh2, c*beta*Vh1
        B = L + c*Vh1 - b
        D = np.sqrt(B*B + 4*L*b)
        V2 = 2/(B + D) if B > 0 else (D - B)/(2*L*b)
        u = 1/(1 + b*V2)
        V1 = c*V2*u
        return V1, V2, u, 1/(1 + mu1**2*V1 + mu22*V2)

    def gap(logs):
        Q = inner(*np.exp(logs))[3]
        return np.log([alpha/beta*w@(mu1**2*Q), alpha/beta*w@(mu22*Q)]) - logs

    Vh1, Vh2 = np.exp(fsolve(gap, np.log(near), xtol=1e-13))
    V1, V2, u, Q = inner(Vh1, Vh2)
    T0 = V2**2/(1 - beta*(c*Vh1*u*V2)**2)
    T1 = c*u*u*T0
    T2 = c*u*u*T1 + beta*V1**2
    a = alpha*c*V2
    k = x*mu1
    m, zeta = np.linalg.solve([[w@(mu0*mu0*Q), w@(mu0*k*Q)], [a*(w@(k*mu0*Q)), 1 + a*(w@(k*k*Q))]],
                              [w@(mu0*h*Q), a*(w@(k*h*Q))])
    B = mu0*m + k*zeta
    zt, pt = w@(k*(h - B)*Q), w@(mu1*h1*Q)
    psi = alpha*V1*pt
    e0 = h2 - 2*B*h + B**2 - 2*mu1*psi*h1
    # (q1, q2) = source + [[T2, T1], [T1, T0]] (qhat1, qhat2), qhat = alpha/beta E[(mu1^2, mu22) e Q^2]
    phi = np.array([mu1**2, mu22])
    T = np.array([[T2, T1], [T1, T0]])
    source = alpha**2/beta*np.array([c*zt**2*T1 + pt**2*T2, c*zt**2*T0 + pt**2*T1])
    M = alpha/beta*(phi*w*Q**2)@phi.T
    q1, q2 = np.linalg.solve(np.eye(2) - T@M, source + T@(alpha/beta*(phi*w*Q**2)@e0))
    e = e0 + mu1**2*q1 + mu22*q2
    return {"test_error": w@e - Delta, "train_error": w@(e*Q**2), "m": m, "zeta": zeta, "psi": psi, "q1": q1, "q2": q2,
            "V1": V1, "V2": V2, "Vhat1": Vh1, "Vhat2": Vh2, "zetatilde": zt, "psitilde": pt}
