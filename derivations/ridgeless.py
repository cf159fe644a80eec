r"""Rows whose norms fluctuate, and the limit of no ridge: what both change in the equations of the learning curve."""

import numpy as np
from sympy import Eq, Limit, Subs, Symbol, sqrt, symbols

import hermitex as hx
from hermitex import Derivative, E, He, Result, System
from hermitex.symbols import Delta, alpha, beta, c, gamma, kappa, lamda, m, psitilde, z, zeta, zetatilde
from hermitex.theories.one_step import V1, V2, Vhat1, Vhat2, bias, chi, chitilde, epsilon, psi, q1, q2, qhat1, qhat2, r

mu_0, mu_1, mu_22, nu, h, h1, h2, Q, omega = symbols("mu_0 mu_1 mu_22 nu h h1 h2 Q omega", real=True)
L, s_c, zetahat, psihat, mhat, chihat = symbols("L s_c zetahat psihat mhat chihat", positive=True)

SHARED = {   # by both pages
    alpha: "samples for each dimension",
    beta: "neurons for each dimension",
    gamma: "the overlap of the target's direction with the spike",
    Delta: "the variance of the label's noise",
    m: "the mean of the readout, the sum of its entries over the root of their number",
    (zeta, psi): "the readout's overlaps with the spike and, through the rows, with the rest of the target's direction",
    (zetatilde, psitilde): r"their conjugates, in units of $\frac{\alpha}{\beta}$",
    (q1, q2): "the squares of the readout's image across the spike and of the readout, for one neuron",
    (Vhat1, Vhat2, qhat1, qhat2): "the conjugates of $V_1$, $V_2$, $q_1$ and $q_2$",
    epsilon: "one over the dimension",
    r: "the spike's size in the features",
    bias: "the shift of a pre-activation"}

# -- row norms ---------------------------------------------------------------------------------------------------------
rows = Result(
    "Rows whose norms fluctuate",
    r"Rows of $W$ that are Gaussian are not equivalent to rows on a sphere: their squared norms fluctuate by a $\delta_i$ of the "
    r"order of one over the root of the dimension, which moves the features by the multiple $\nu(\kappa)$ of it, along a "
    r"direction of which the readout makes use. It adds the order parameter $\chi$, the readout's overlap with it, to the "
    "equations below.",
    source="cui2024", place="Result 3.3, with Gaussian rows",
    assumptions=[r"the features are equivalent to Gaussian ones, with the multiple $\nu(\kappa)$ of $\delta_i$ beside the mean "
                 r"$\mu_0$",
                 "the norms are independent of the rows' overlaps with the spike and with the target",
                 "replica symmetry, which holds for convex problems"],
)
rows.notation({**SHARED, lamda: "the ridge", omega: "the mean of a pre-activation",
               (zetahat, psihat, mhat): "the conjugates in the entropy, before they are put in those units",
               chitilde: r"the conjugate of $\chi$, in the same units",
               "W": "the rows, without the spike", "d": "the dimension", "A": "the matrix of the readout's quadratic form",
               nu: r"the derivative of $\mu_0$ by the squared norm $c$", r"\delta_i": "a row's squared norm less $c$",
               chi: r"the readout's product with the vector of all $\delta_i$, over the root of their number",
               s_c: r"$d$ times the variance of $\delta_i$"})
sample = hx.parse("tanh(z)")
u = omega + sqrt(c)*z
rows.text("(i) The variance. A Gaussian row of $d$ entries has the sum of their squares for its squared norm; each entry "
          "contributes")
d = Symbol("d", positive=True)
rows.step("counting", d*d*(c/d)**2*(E(z**4, z) - E(z**2, z)**2), 2*c**2)
rows.text(r"(ii) The third function. By parts, the derivative by the variance is a second Hermite coefficient; for tanh")
rows.step("the heat equation", Derivative(E(sample.subs(z, u), z), c), E(He(2, z)*sample.subs(z, u), z)/(2*c), digits=12,
          points=1)
rows.text(r"(iii) The free energy is that of the learning curve with $\nu\chi$ besides in the mean output and, since the vector "
          r"$(\delta_i)$ has the squared norm of the spike in the inverse of $A$, $s_c$ in the place of $c$, one more term in "
          r"the entropy, with $\hat\chi^2$.")
B = mu_0*m + kappa*mu_1*zeta + nu*chi
error = h2 - 2*B*h + B**2 - 2*mu_1*psi*h1 + mu_1**2*q1 + mu_22*q2
V = mu_1**2*V1 + mu_22*V2
b = c*beta*Vhat1
half = L + c*Vhat1 - b
root = 2/(half + sqrt(half**2 + 4*L*b))
trace = c*root/(1 + b*root)
entropy = (qhat1*trace + qhat2*root + beta*(c*zetahat**2 + s_c*chihat**2 + mhat**2/epsilon)*root + beta*psihat**2*trace)/2
fields = {zetahat: alpha/beta*zetatilde, psihat: alpha/beta*psitilde, chihat: alpha/beta*chitilde, mhat: m*epsilon/(beta*root)}


def derived(sigma, target):
    """Stationarity for given functions, as a System."""
    s, t = r*kappa + bias + sqrt(c)*z, gamma*kappa + sqrt(1 - gamma**2)*z
    sigma, target = hx.parse(sigma), hx.parse(target)

    def energetic(x):
        return alpha/(2*beta)*E((error/(1 + V)).diff(x).subs(1/(1 + V), Q), kappa)

    def entropic(x):
        return entropy.diff(x).subs(fields)

    return System({
        Vhat1: 2*energetic(q1), Vhat2: 2*energetic(q2), V2: root, V1: trace,
        m: Eq(-energetic(m)*beta/alpha, epsilon*m/(alpha*V2), evaluate=False), zeta: entropic(zetahat), psi: entropic(psihat),
        chi: entropic(chihat), zetatilde: -beta/alpha*energetic(zeta), psitilde: -beta/alpha*energetic(psi),
        chitilde: -beta/alpha*energetic(chi), qhat1: -2*energetic(V1), qhat2: -2*energetic(V2),
        q1: -2*entropic(Vhat1), q2: -2*entropic(L),
    }, where={
        mu_0: E(sigma.subs(z, s), z), mu_1: E(z*sigma.subs(z, s), z)/sqrt(c),
        mu_22: E(sigma.subs(z, s)**2, z) - E(sigma.subs(z, s), z)**2 - E(z*sigma.subs(z, s), z)**2,
        nu: E(He(2, z)*sigma.subs(z, s), z)/(2*c), s_c: 2*c**2, L: lamda + Vhat2, Q: 1/(1 + V),
        h: E(target.subs(z, t), z), h1: E(z*target.subs(z, t), z), h2: E(target.subs(z, t)**2, z) + Delta,
    }, observables={"test_error": E(error, kappa) - Delta, "train_error": E(error*Q**2, kappa)})


inverse = rows.let(Symbol("V_2", positive=True), root, "With")
in_letters = entropy.xreplace({root/2: inverse/2})
rows.name(Symbol("S"), in_letters, "and the entropy")
rows.step("the derivative by $\\hat\\chi$", Subs(Derivative(in_letters, chihat), chihat, alpha/beta*chitilde),
          alpha*s_c*inverse*chitilde)
numbers = {"beta": 0.8, "lam": 0.1, "r": 1.1, "c": 1.2, "gamma": 0.9, "Delta": 0.1}
gaussian = hx.theories.one_step("tanh", "sin", rows="gaussian").system
fluctuating = derived("tanh(z)", "sin(z)")
point = {**numbers, "alpha": 1.7, "bias": 0.3, "epsilon": 0.01}
agreed = rows.same("stationarity for tanh and sin", fluctuating, gaussian,
          at=[point, {**point, "alpha": 0.5, "beta": 1.4, "bias": -0.4, "epsilon": 0.0}], shown=False)
sphere = hx.theories.one_step("tanh", "sin").system
rows.variant("rows on a sphere", sphere, gaussian,
             r"the claim that Gaussian rows and rows on a sphere are equivalent", at=[point])
rows.therefore(gaussian, words="The equations that the package solves, here for tanh and sin:", by=[agreed],
               package={'hx.theories.one_step("tanh", "sin", rows="gaussian").system': gaussian})

rows.not_shown("that nothing else of the rows' law counts, and replica symmetry.")

# -- no ridge ----------------------------------------------------------------------------------------------------------
page = Result(
    "No ridge",
    r"As $\lambda \to 0$ the test error has a limit where samples and features are not equally many. With more samples it is "
    r"found without a ridge. With fewer the readout interpolates: $v_i$, the susceptibilities times the ridge, and $\hat v_i$, "
    "their conjugates over the ridge, have limits, for which the equations keep their form at ridge 1, but the $1$ beside $V$ "
    "in a sample's weight is gone.",
    source="cui2024", place="Result 3.3, $\\lambda \\to 0$",
    assumptions=[r"the equations of the learning curve, or of a vocabulary or of the network itself, at every $\lambda > 0$"],
)
v1, v2, hat1, hat2, lam = symbols("v_1 v_2 vhat_1 vhat_2 lambda", positive=True)
scaled = {V1: v1/lam, V2: v2/lam, Vhat1: lam*hat1, Vhat2: lam*hat2}
page.notation({**SHARED,
               (c, kappa): "the squared norm of a row, and the projection of an input on the spike",
               ("n", "p"): "samples and features", "V": "how far a unit of force moves the output on a sample",
               lam: "the ridge", (v1, v2): "the susceptibilities times the ridge",
               (hat1, hat2): "their conjugates over the ridge"})
page.text(r"The weight of a sample is then of order $\lambda$, and the fixed point of the traces does not change form:")
page.step("the limit", Limit((1/(1 + V)).subs(scaled)/lam, lam, 0), 1/(mu_1**2*v1 + mu_22*v2))
fixed = 1/(lamda + Vhat2 + c*Vhat1/(1 + c*beta*Vhat1*V2))
page.step("scaling", lam*fixed.subs({lamda: lam}).subs(scaled), 1/(1 + hat2 + c*hat1/(1 + c*beta*hat1*v2)))
page.text("Every equation of the package is homogeneous in the same way. Its solutions without a ridge against those at small "
          "ridges, extrapolated:")


def limits(theory, numbers_, names):
    """The digits to which the solution at lam = 0 is the limit of those at small lam, by Richardson's extrapolation.

    For sigma = sin: a feature that saturates has mu_2 -> 0 far out, and its limit is not a power series in lambda.
    """
    ridges = 1e-4*0.5**np.arange(5)
    rows_ = np.array([[float(found[k]) for k in names] for found in (theory.solve(**numbers_, lam=v) for v in ridges)])
    for k in range(1, len(ridges)):
        rows_ = (2**k*rows_[1:] - rows_[:-1])/(2**k - 1)
    found = theory.solve(**numbers_, lam=0)
    return Result.numbers({name: (value, float(found[name])) for name, value in zip(names, rows_[0], strict=True)}, 1e-8)


ERRORS = ("test_error", "m", "zeta", "psi", "q1", "q2")


def one_kind():
    """One kind of features, fewer and more samples than features."""
    at = {k: v for k, v in numbers.items() if k != "lam"}
    theory = hx.theories.one_step("sin", "tanh")
    return min(limits(theory, {**at, "alpha": a, "bias": 0.2}, ERRORS) for a in (0.4, 1.6))


def fluctuating_rows():
    """Gaussian rows."""
    at = {k: v for k, v in numbers.items() if k != "lam"}
    return limits(hx.theories.one_step("sin", "tanh", rows="gaussian"), {**at, "alpha": 0.4, "bias": 0.2}, (*ERRORS, "chi"))


def two_letters():
    """A vocabulary, independent and orthogonal rows."""
    at = {**{k: v for k, v in numbers.items() if k != "lam"}, "alpha": 0.3, "bias": 0.2, "dimension": 100}
    found = []
    for kind, here, names in (("sphere", at, ("psi1", "q1_12")), ("orthogonal", {**at, "gamma": 1.0}, ())):
        theory = hx.theories.one_step("sin", "tanh", vocabulary=[1, -0.6], norms=[1.2, 0.9], rows=kind)
        found.append(limits(theory, here, ("test_error", "m1", "zeta1", "q2_2", *names)))
    return min(found)


def trained():
    """The network itself."""
    at = {"alpha": 0.4, "beta": 0.8, "alpha0": 2.0, "eta": 1.5, "Delta": 0.2, "bias": 0.1}
    return limits(hx.theories.one_step("sin", "tanh", network="exact"), at, (*ERRORS, "chi"))


page.test("one kind of features", one_kind)
page.test("Gaussian rows", fluctuating_rows)
page.test("a vocabulary", two_letters)
page.test("the network itself", trained)
theory = hx.theories.one_step("sin", "tanh")
shared = theory.system
bare = System(shared.equations, where={**shared.where, Q: 1/(mu_1**2*V1 + mu_22*V2)}, observables=theory.interpolating.observables)
agreed = page.same("the equations in the scaled letters", bare, theory.interpolating,
                   "With fewer samples than features the package solves the equations of the learning curve, read in the scaled "
                   "letters at the ridge 1, with the weight of a sample put for $Q$:", shown=False)
page.therefore(theory.interpolating, words="The equations for $n < p$, here for the activation sin and the target tanh:",
               by=[agreed], package={'hx.theories.one_step("sin", "tanh").interpolating': theory.interpolating})
page.not_shown("the divergence where samples and features are equally many.")
