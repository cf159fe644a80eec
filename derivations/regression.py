r"""Ridge and Huber regression on Gaussian data: the six saddle-point equations from the free energy."""

from sympy import Max, Min, Rational, Symbol, acos, erf, exp, pi, sign, sqrt

import hermitex as hx
from hermitex import Derivative, E, Result, System
from hermitex.symbols import Delta, V, Vhat, alpha, lamda, m, mhat, q, qhat, rho, y, z, z1, z2, z3

omega, f = Symbol("omega", real=True), hx.symbols.f
delta, s = Symbol("delta", positive=True), Symbol("s", positive=True)
gap = rho + Delta + q - 2*m  # the variance of y - omega
x = Symbol("x", real=True)

# -- ridge -------------------------------------------------------------------------------------------------------------
ridge = Result(
    "Ridge regression on Gaussian data",
    r"The ridge estimator on $\alpha$ samples for each dimension has the overlaps $q$ with itself and $m$ with the teacher of "
    r"the six equations below, and the test error $\rho + q - 2m$.",
    source="loureiro2021",
    assumptions=[r"$x \sim \mathcal{N}(0, I_d)$, a label $y$ is the teacher's field $\nu$ with noise of variance $\Delta$",
                 r"replica symmetry, which holds for convex problems"],
)
ridge.notation({lamda: "the ridge",
                q: "the mean square of the estimator", m: "its mean product with the teacher", rho: "the teacher's mean square",
                omega: "the estimator's field on a sample, of variance $q$",
                r"\nu": r"the teacher's, of variance $\rho$, with the covariance $m$ with it", V: "the susceptibility",
                (qhat, mhat, Vhat): "the conjugates"})
ridge.text("The free energy is an entropy, explicit for the ridge penalty, and the mean Moreau envelope of the loss over the "
           "joint law of the label and of the two fields. The envelope of the square loss:")
relaxed = (omega + V*y)/(1 + V)
ridge.step("the proximal point", ((f - omega)/V + (f - y)).subs(f, relaxed), 0)
ridge.step("the envelope", ((f - omega)**2/(2*V) + (y - f)**2/2).subs(f, relaxed), (y - omega)**2/(2*(1 + V)))
teacher = m/sqrt(q)*z1 + sqrt(rho - m**2/q)*z2 + sqrt(Delta)*z3
ridge.step("Gaussian integration", E((teacher - sqrt(q)*z1)**2, z1, z2, z3), gap, "Its mean over both fields:")
phi = (q*Vhat - V*qhat)/2 - m*mhat + (rho*mhat**2 + qhat)/(lamda + Vhat)/2 - alpha*gap/(2*(1 + V))
ridge.name(Symbol("Phi"), phi, "So the free energy is")
ridge.text("Its derivatives, each of which determines one unknown:")
conditions = {
    "q": (2, q, Vhat - alpha/(1 + V)), "V": (-2, V, qhat - alpha*gap/(1 + V)**2), "m": (-1, m, mhat - alpha/(1 + V)),
    r"\hat q": (2, qhat, 1/(lamda + Vhat) - V), r"\hat V": (2, Vhat, q - (rho*mhat**2 + qhat)/(lamda + Vhat)**2),
    r"\hat m": (1, mhat, rho*mhat/(lamda + Vhat) - m),
}
for letter, (factor, unknown, slope) in conditions.items():
    ridge.step(f"stationarity in ${letter}$", factor*Derivative(phi, unknown), slope)
printed = System({
    Vhat: alpha/(1 + V), qhat: alpha*gap/(1 + V)**2, mhat: alpha/(1 + V),
    V: 1/(lamda + Vhat), q: (rho*mhat**2 + qhat)/(lamda + Vhat)**2, m: rho*mhat/(lamda + Vhat),
}, observables={"test_error": rho + q - 2*m})
used = hx.theories.glm("square").system
agreed = ridge.same("the package's equations", printed, used,
                    "These six are what the package derives by itself from the free energy:",
           at=[{"alpha": 2.0, "lam": 0.1, "Delta": 0.25, "rho": 1.0}, {"alpha": 0.5, "lam": 0.3, "Delta": 0.1, "rho": 2.0}])
ridge.text("With the sign of field and noise for the label, all that changes is how much of the label the field explains, in "
           "the mean of their product, and $#1$:",
           (E(sign(sqrt(rho)*z1 + sqrt(Delta)*z2)**2, z1, z2), 1))
explained = sqrt(2/(pi*(rho + Delta)))
spread = ridge.let(Symbol("s", positive=True), sqrt(rho + Delta - m**2/q), shown=False)
ridge.step("Gaussian integration", E(sign(m/sqrt(q)*z1 + spread*z2)*sqrt(q)*z1, z1, z2), sqrt(2/pi)*m/sqrt(rho + Delta),
           points=2)
ridge.text(r"where $#1$;", spread)
signs = System({
    Vhat: alpha/(1 + V), qhat: alpha*(1 + q - 2*explained*m)/(1 + V)**2, mhat: alpha*explained/(1 + V),
    V: 1/(lamda + Vhat), q: (rho*mhat**2 + qhat)/(lamda + Vhat)**2, m: rho*mhat/(lamda + Vhat),
}, observables={"test_error": acos(m/sqrt((rho + Delta)*q))/pi})
ridge.same("the equations for labels of sign", signs, hx.theories.glm("square", labels="sign").system,
           r"so that regression on signs is regression on the multiple of $\nu$ that explains most of them, with a noise of its "
           "own:",
           at=[{"alpha": 2.0, "lam": 0.1, "Delta": 0.25, "rho": 1.0}], shown=False)
ridge.variant("one less the slope of the proximal point printed as the slope",
              System({**printed.equations, Vhat: alpha/(1 + V)/V},
              observables=printed.observables), printed,
              r"the slope is $1/(1 + V)$, and $\hat V$ has what it leaves of one, over $V$",
              at=[{"alpha": 2.0, "lam": 0.1, "Delta": 0.25, "rho": 1.0}])
ridge.not_shown("replica symmetry, and that the entropy of the ridge penalty is this one, for which see `replicas.py`.")
ridge.therefore(used, words="Ridge regression:", by=[agreed], package={'hx.theories.glm("square").system': used})

# -- Huber -------------------------------------------------------------------------------------------------------------
huber = Result(
    "Huber regression on Gaussian data",
    r"With the Huber loss of width $\delta$ the six equations keep their form; the square of the force and its slope are those "
    "of the loss cut off, whose means are an error function and a bell.",
    source="loureiro2021",
    assumptions=[r"as for ridge regression; the loss is half the square up to $\delta$, and beyond it the line that continues it "
                 r"with the slope $\delta$"],
)
huber.notation({(q, m, V, qhat, mhat, Vhat): "the overlaps of the estimator, its susceptibility and the conjugates",
                rho: "the teacher's mean square",
                Delta: "the variance of the label's noise",
                alpha: "samples for each dimension",
                lamda: "the ridge",
                x: "the gap between label and field", s: "its spread", delta: "the width of the loss"})
huber.text("The loss depends on the residual only. Its proximal point moves by $V$ times the slope, so the slope there is that "
           r"of the square loss, $x/(1 + V)$, cut off at $\pm\delta$.")
force = Max(-delta, Min(delta, x/(1 + V)))
huber.step("the proximal point", Max(-delta, Min(delta, x - V*force)), force,
           "The slope of the loss, which is its argument cut off, is at the proximal point that number again:")
P = erf(delta*(1 + V)/(s*sqrt(2)))
t = delta*(1 + V)/s
bell = exp(-t**2/2)/sqrt(2*pi)
clipped = Max(-delta, Min(delta, s*z/(1 + V)))
huber.step("Gaussian integration", E(z*clipped, z)/s, P/(1 + V),
           r"Over gaps $s z$ the mean slope of the force (by parts) is",
           points=2)
huber.step("Gaussian integration", E(clipped**2, z), s**2/(1 + V)**2*(P - 2*t*bell) + delta**2*(1 - P),
           "and its mean square", points=2)
width = Rational(7, 10)
root = sqrt(gap)
inside = {s: root, delta: width}
equations = {
    Vhat: alpha*P.subs(inside)/(1 + V),
    qhat: alpha*(s**2/(1 + V)**2*(P - 2*t*bell) + delta**2*(1 - P)).subs(inside),
    mhat: alpha*P.subs(inside)/(1 + V),
    V: 1/(lamda + Vhat), q: (rho*mhat**2 + qhat)/(lamda + Vhat)**2, m: rho*mhat/(lamda + Vhat),
}
written = System(equations, observables={"test_error": rho + q - 2*m})
point = {"alpha": 2.0, "lam": 0.1, "Delta": 0.25, "rho": 1.0}
cut = hx.theories.glm("huber:7/10").system
agreed = huber.same("the package's equations", written, cut,
           r"At the width 7/10 these are the stationarity conditions that the package finds:", at=[point, {**point, "alpha": 0.6}],
           shown=False)
huber.variant("the force uncut", E(clipped**2, z), s**2/(1 + V)**2, "that is the square loss", digits=20)
huber.therefore(cut, words="Huber regression of the width 7/10:", by=[agreed],
                package={'hx.theories.glm("huber:7/10").system': cut})
huber.not_shown("replica symmetry, as for ridge regression.")
