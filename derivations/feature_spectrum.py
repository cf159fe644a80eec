r"""The spectrum of the features after one giant gradient step: its Stieltjes transform is V_2 at lambda = -z."""

from sympy import Function, Limit, Subs, Symbol, cos, exp, oo, sin, sqrt, symbols

import hermitex as hx
from hermitex import E, Result
from hermitex.symbols import alpha, beta, c, kappa, z, z1, z2
from hermitex.theories.one_step import V2, Vhat1, Vhat2

x, s = symbols("x s", positive=True)
mu0, mu1, rest = Function("mu_0")(kappa), Function("mu_1")(kappa), Function("mu_2")(kappa)
n, p, d = symbols("n p d", positive=True)
w = Symbol("w", real=True)  # the spectral parameter -z, positive left of the spectrum

page = Result(
    "The spectrum of the features",
    r"The bulk of $\Phi^\top\Phi/p$ has the Stieltjes transform $m(z)$, which is $V_2$ where $V_1$, $V_2$ solve the first "
    r"equations of the learning curve with $-z$ for $\lambda$: $#1$. Where the features are normalised by the samples, argument "
    r"and transform are multiplied by $\alpha/\beta$. A non-zero $\mu_0$ adds one outlier, near the mean of $\mu_0^2$ times the "
    "number of samples.",
    source="cui2024", place="Appendix F",
    assumptions=[r"the conditional equivalence of Result 3.2: at fixed $\kappa$ a row of $\Phi$ is Gaussian with mean $\mu_0 1$ "
                 r"and a covariance $C(\kappa)$ that is $\mu_1^2$ times that of the bulk and $\mu_2^2$ times the unit matrix, up "
                 "to rank one",
                 r"the rows of $W$ are independent, of squared norm $c$"],
)
page.notation({r"\Phi": "the features, a row for each sample", "W": "the rows, without the spike",
               "m": "the Stieltjes transform of the bulk", r"\lambda": "the ridge of the learning curve",
               r"\Phi^\top\Phi/p": "the covariance of the features over the samples", "R": "its resolvent at $z$",
               V2: "the trace of $R$ for one neuron, which is $m(z)$", "V_1": "the same with the bulk's covariance before $R$",
               x: "the quadratic form of a row in the resolvent without it, for one neuron",
               (Vhat1, Vhat2): r"the means over $\kappa$ of $\mu_1^2$ and $\mu_2^2$, each over one and the row's form, times "
                               r"$\alpha/\beta$", (mu0, mu1, rest): r"the coefficients of a feature at $\kappa$",
               (n, p, d): "samples, neurons and dimension", w: "the spectral parameter $-z$",
               s: r"an eigenvalue of $\Phi^\top\Phi/p$"})
page.text(r"Take one row of $\Phi$ out of the resolvent. By Sherman and Morrison its quadratic form is")
page.step("Sherman-Morrison", x - x**2/(1 + x), x/(1 + x))
page.text(r"and $x$ concentrates on $V_1$ and $V_2$, times $\mu_1^2$ and $\mu_2^2$. Summing over the rows, $R$ is equivalent to "
          "the inverse of the learning curve's matrix at the ridge $-z$.")
L, b = w + Vhat2, c*beta*Vhat1
half = L + c*Vhat1 - b
root = 2/(half + sqrt(half**2 + 4*L*b))
page.name(V2, root, r"For independent rows the traces close:")
page.step("Marchenko-Pastur", root*(L + c*Vhat1/(1 + b*root)), 1)
ratio_ = page.let(symbols("p_n", positive=True), beta/alpha, shown=False)
page.text("Changing the normalisation moves the eigenvalues by $#1$, and each term of the transform by its inverse:", ratio_)
page.step("algebra", 1/(s*ratio_ - z), alpha/beta/(s - alpha/beta*z))
page.text("The mean direction. The matrix of the features is a rank-one part of the size $S$, from the means, and a rest that "
          "takes its two directions a little aside, by $b_1$ and by $b_2$. Beside these it is a matrix of two rows, $S$ and "
          "$b_1$, $b_2$ and $h$; its largest squared singular value exceeds $S^2$, as $S$ grows, by")
S, B, C, h, b1, b2 = symbols("S B C h b_1 b_2", positive=True)
square, product = S**2 + b1**2 + b2**2 + h**2, S*h - b1*b2
page.step("perturbation", Limit((square + sqrt(square**2 - 4*product**2))/2 - S**2, S, oo), b1**2 + b2**2)
page.text(r"A row at $\kappa$ has along any direction, and any row's direction has at it, the mean square")
spread = E((sqrt(c)*mu1*z1 + rest*z2)**2, z1, z2)
page.step("independence", spread, c*mu1**2 + rest**2)
page.text(r"The direction $1$ meets $n$ rows over $p$ of it; that of the means, whose entries have the squares $\mu_0^2$ over "
          "their sum, meets one row in the mean, and the vector of the rows' overlaps with the spike, of squared norm $c/d$ a "
          "neuron, at all of them at once. So $B$ for $b_1^2$ and $C$ for $b_2^2$ are")
one = page.let(B, alpha/beta*E(c*mu1**2 + rest**2, kappa))
other = page.let(C, (E(mu0**2*(c*mu1**2 + rest**2), kappa) + alpha*c*E(mu0*mu1*kappa, kappa)**2)/E(mu0**2, kappa))
x1, x2 = symbols("X_1 X_2", positive=True)   # means over the rows
page.text("by the counts of rows and neurons, with $X_1$, $X_2$ for means over the rows,")
page.step("counting rows", Subs(n/p*x1, (n, p), (alpha*d, beta*d)), alpha/beta*x1)
page.step("coherent rows", Subs((n*x1)**2/(n*x2)*(c*p/d)/p, n, alpha*d), alpha*c*x1**2/x2)


def digits(*pairs):
    """The digits to which numbers of the package agree with others, over all pairs."""
    return Result.numbers((("a number", complex(b_).real, a) for a, b_ in pairs), floor=0.0)


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


def outlier(theory):
    """The package's constant for the sine, whose coefficients are elementary."""
    r, width = NUMBERS["r"], NUMBERS["c"]

    def left(x_):
        return sqrt((1 - exp(-2*width)*cos(2*r*x_))/2 - exp(-width)*sin(r*x_)**2 - width*exp(-width)*cos(r*x_)**2)

    at = {mu0.func: lambda x_: exp(-width/2)*sin(r*x_), mu1.func: lambda x_: exp(-width/2)*cos(r*x_), rest.func: left}
    return {**at, **{x_: NUMBERS[x_.name] for x_ in (alpha, beta, c)}}, [theory(**NUMBERS).outlier["constant"]]


def solved(spectrum):
    """V_2 of the package's spectrum, with the conjugates of its learning curve at that ridge."""
    found = hx.theories.one_step("erf", "sin").solve(lam=0.7, gamma=0.9, **NUMBERS)
    return {V2: spectrum(**NUMBERS).stieltjes(-0.7).real, Vhat1: found["Vhat1"], Vhat2: found["Vhat2"],
            w: 0.7, c: NUMBERS["c"], beta: NUMBERS["beta"]}


page.test("left of the spectrum", left_of_the_spectrum, r"The package's transform against its learning curve:")
page.test("no linear part", noise_alone)
page.test("the other normalisation", other_normalisation)
page.therefore(L*V2 + Vhat1*c*V2/(1 + b*V2), 1, "The equation of $V_2$, in which its second part is $V_1$ times its conjugate:",
               by=[V2], package={'hx.theories.spectrum("erf", ...)': solved})
page.text("The package solves it for complex $z$, on the branch with a positive imaginary part, beside the equations of the "
          "conjugates.")
page.therefore(B + C, page.definitions[B] + page.definitions[C], "What the outlier has beside its leading order:", by=[one, other],
               package={'hx.theories.spectrum("sin", ..., dimension=500)': outlier})
page.not_shown("that quadratic forms concentrate, that rank-one parts do not move the bulk, and that what the means share with "
               "the rest has the mean zero: it moves the outlier by a random number of order one.")
