r"""The spectrum of the features after one giant gradient step: its Stieltjes transform is V_2 at lambda = -z."""

from math import floor, log10

import numpy as np
from sympy import Symbol, sqrt, symbols

import hermitex as hx
from hermitex import Result
from hermitex.symbols import alpha, beta, c, z
from hermitex.theories.one_step import V2, Vhat1, Vhat2

x, s = symbols("x s", positive=True)
mu_1, mu_22 = symbols("mu_1 mu_22", real=True)
w = Symbol("w", real=True)  # the spectral parameter -z, positive left of the spectrum

page = Result(
    "The spectrum of the features",
    r"The bulk of $\Phi^\top\Phi/p$ has the Stieltjes transform $m(z)$, which is $V_2$ where $V_1$, $V_2$ solve the first "
    r"equations of the learning curve with $-z$ for $\lambda$: $#1$. In the normalisation $\Phi^\top\Phi/n$ it is "
    r"$\frac{\alpha}{\beta}m(\frac{\alpha}{\beta}z)$. A non-zero $\mu_0$ adds one outlier near $n\,\mathbb{E}\mu_0^2$.",
    source="cui2024", place="Appendix F",
    assumptions=[r"the conditional equivalence of Result 3.2: at fixed $\kappa$ a row of $\Phi$ is Gaussian with mean $\mu_0 1$ "
                 r"and "
                 r"covariance $C(\kappa) = \mu_1^2\,W\Pi W^\top + \mu_2^2 I$ up to rank one",
                 r"the rows of $W$ are independent, of squared norm $c$"],
)
page.notation({r"R": r"the resolvent $(\Phi^\top\Phi/p - z)^{-1}$", V2: r"$\frac1p\mathrm{tr}\,R$, which is $m(z)$",
               r"V_1": r"$\frac1p\mathrm{tr}\,W\Pi W^\top R$", x: r"the form $\frac1p\varphi^\top R_{-\mu}\varphi$ of a row "
                                                                  r"without itself",
               (Vhat1, Vhat2): r"the means of $\frac\alpha\beta\mu_i^2/(1 + V)$ over $\kappa$",
               w: "the spectral parameter $-z$", s: r"an eigenvalue of $\Phi^\top\Phi/p$"})
page.text(r"Take one row of $\Phi$ out of the resolvent. By Sherman and Morrison its quadratic form is")
page.step("Sherman-Morrison", x - x**2/(1 + x), x/(1 + x))
page.text(r"and $x$ concentrates on $\mu_1^2V_1 + \mu_2^2V_2$. Summing over the rows, $R$ is equivalent to "
          r"$(\hat V_1 W\Pi W^\top + \hat V_2 - z)^{-1}$: the matrix of the learning curve at the ridge $-z$.")
L, b = w + Vhat2, c*beta*Vhat1
half = L + c*Vhat1 - b
root = 2/(half + sqrt(half**2 + 4*L*b))
page.name(V2, root, r"For independent rows the traces close:")
page.step("Marchenko-Pastur", root*(L + c*Vhat1/(1 + b*root)), 1)
page.step("the trace of $R R^{-1}$", L*root + Vhat1*c*root/(1 + b*root), 1)
ratio_ = page.let(symbols("p_n", positive=True), beta/alpha, shown=False)
page.text(r"Changing the normalisation moves the eigenvalues by $#1$, and each term of $\frac1p\sum_i 1/(\lambda_i - z)$ by its "
          r"inverse:", ratio_)
page.step("algebra", 1/(s*ratio_ - z), alpha/beta/(s - alpha/beta*z))
page.text(r"The mean direction. To leading order $\Phi^\top\Phi/p$ has the rank-one part $\frac{n}{p}\mathbb{E}[\mu_0^2]\,1 "
          r"1^\top$, whose "
          r"eigenvalue is $n\,\mathbb{E}\mu_0^2$. Its correction of order one, from the three ways in which the direction $1$ "
          r"meets the "
          r"bulk, is")
page.text(r"$$\frac{\mathbb{E}[\mu_0^2(c\mu_1^2 + \mu_2^2)]}{\mathbb{E}\mu_0^2} + \alpha c\,\frac{\mathbb{E}[\mu_0\mu_1\kappa]^2}"
          r"{\mathbb{E}\mu_0^2} + \frac{\alpha}{\beta}\,\mathbb{E}[c\mu_1^2 + \mu_2^2].$$")


def digits(*pairs):
    """The digits to which numbers of the package agree with others, over all pairs."""
    worst = max(abs(a/complex(b_).real - 1) for a, b_ in pairs)
    return min(15, floor(-log10(max(worst, 1e-16))))


NUMBERS = {"r": 1.2, "c": 1.1, "alpha": 1.5, "beta": 0.8}


def left_of_the_spectrum():
    """m(-lam) of the package's spectrum is V_2 of its learning curve at that ridge."""
    spectrum = hx.theories.spectrum("erf", **NUMBERS)
    theory = hx.theories.one_step("erf", "sin")
    pairs = []
    for ridge in (0.05, 0.7, 4.0):
        found = theory.solve(lam=ridge, gamma=0.9, **NUMBERS)
        pairs.append((spectrum.stieltjes(-ridge).real, found["V2"]))
    return digits(*pairs)


def noise_alone():
    """Features without a constant or linear part are noise: the law of Marchenko and Pastur, which solves its quadratic."""
    ratio, pairs = NUMBERS["alpha"]/NUMBERS["beta"], []
    spectrum = hx.theories.spectrum("z**2 - 1", **{**NUMBERS, "r": 0.0, "c": 1.0})   # mu_star^2 = 2
    law = hx.theories.MarchenkoPastur(1/ratio)
    for at in (0.05, 0.7, 4.0):
        m = law.m(at/(2*ratio))
        pairs.append((spectrum.stieltjes(-at).real, m/(2*ratio)))
        for x_ in (at, at + 0.6j, -at + 0.1j):
            m = law.m(x_)
            pairs.append((x_/ratio*m**2 + (x_ + 1 - 1/ratio)*m, 1.0))
    return digits(*pairs)


def other_normalisation():
    """m_n(z) = (alpha/beta) m((alpha/beta) z)."""
    one, other = (hx.theories.spectrum("tanh", **NUMBERS, normalisation=k) for k in ("p", "n"))
    ratio = NUMBERS["alpha"]/NUMBERS["beta"]
    return digits(*((other.stieltjes(-at).real, ratio*one.stieltjes(-ratio*at).real) for at in (0.1, 1.0, 3.0)))


def outlier():
    """Its numbers by the trapezoid rule over kappa, from the package's conditional coefficients."""
    step = 0.05
    k = np.arange(-9, 9 + step/2, step)
    weight = step*np.exp(-k*k/2)/np.sqrt(2*np.pi)
    at = {"r": NUMBERS["r"], "c": NUMBERS["c"]}
    first, slope, rest = hx.mu("erf", 0)(k, **at), hx.mu("erf", 1)(k, **at), hx.mu_star("erf").squared(k, **at)
    bulk, square = at["c"]*slope**2 + rest, weight @ first**2
    constant = (weight @ (first**2*bulk) + NUMBERS["alpha"]*at["c"]*(weight @ (first*slope*k))**2)/square
    constant += NUMBERS["alpha"]/NUMBERS["beta"]*(weight @ bulk)
    pairs, ratio = [], NUMBERS["alpha"]/NUMBERS["beta"]
    for kind, unit in (("p", 1.0), ("n", 1/ratio)):   # at d = 500: the whole, and its parts
        found = hx.theories.spectrum("erf", **NUMBERS, normalisation=kind, dimension=500).outlier
        pairs += [(found["coefficient"], square), (found["constant"], unit*constant),
                  (found["value"], unit*(NUMBERS["alpha"]*500*square + constant))]
    return digits(*pairs)


def solved():
    """V_2 of the package's spectrum, with the conjugates of its learning curve at that ridge."""
    found = hx.theories.one_step("erf", "sin").solve(lam=0.7, gamma=0.9, **NUMBERS)
    return {V2: hx.theories.spectrum("erf", **NUMBERS).stieltjes(-0.7).real, Vhat1: found["Vhat1"], Vhat2: found["Vhat2"],
            w: 0.7, c: NUMBERS["c"], beta: NUMBERS["beta"]}


page.test("left of the spectrum", left_of_the_spectrum, r"The package's transform against its learning curve:")
page.test("no linear part", noise_alone)
page.test("the other normalisation", other_normalisation)
page.test("the outlier", outlier)
page.therefore(L*V2 + Vhat1*c*V2/(1 + b*V2), 1, r"The equation of $V_2$, in which its second part is $\hat V_1V_1$:",
               by=[V2], package={'hx.theories.spectrum("erf", ...).stieltjes(-w)': solved})
page.text(r"The package solves it for complex $z$, on the branch with $\mathrm{Im}\,m > 0$, beside the equations of the "
          r"conjugates.")
page.not_shown(r"that quadratic forms concentrate and that rank-one parts do not move the bulk; and the three terms of the "
               r"outlier's "
               r"constant, which are tested against the package's at one point only.")
