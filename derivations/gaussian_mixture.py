r"""mhat = alpha E[y s], Vhat = alpha Delta E[-s'], qhat = alpha Delta E[s^2], E[s] = 0: classifying two Gaussian clusters."""

from math import erfc

from sympy import Derivative, Function, Subs, erf, exp, log, sign, sqrt, symbols

import hermitex as hx
from hermitex import E, Result, System
from hermitex.symbolic.moreau import Moreau
from hermitex.symbols import Delta, V, Vhat, alpha, f, lamda, m, mhat, q, qhat, rho, z

p, fraction, reach = symbols("p fraction tau", positive=True)
b, omega, y, s_ = symbols("b omega y s", real=True)
force, rest, ell = Function("s"), Function("f"), Function("ell")

page = Result(
    "Classifying two Gaussian clusters",
    r"A linear classifier with a ridge, trained on points of two clusters, $\alpha$ for each dimension, that lie around opposite "
    r"centres, sees a label through one normal: the six equations of regression hold, the variance $\Delta$ of the clusters "
    "beside $q$ and $V$, and the intercept is the number at which the mean force vanishes. For balanced clusters a large ridge "
    "is Bayes-optimal.",
    source="mignacco2020", place="the saddle-point equations",
    assumptions=[r"a point $x$ of label $y$ is normal around $y$ times the centre $v$, with the variance $\Delta$ in every "
                 r"direction; $v$ has the squared norm $\rho$ and $y$ is $1$ with probability $p$, else $-1$",
                 "the loss is convex, and with it replica symmetry holds"],
)
page.notation({"z_1": "the standard normal of an output, in the package's averages",
               r"\ell": "the loss",
               lamda: "the ridge",
               "x": "an input", "v": "the centre of the label 1",
               r"f^\star": "the proximal point, the output on a point of the sample", "M": "the Moreau envelope of the loss",
               q: "the mean square of the weights", m: "the output at the centre", V: "the susceptibility",
               (Vhat, qhat, mhat): "the conjugates", b: "the intercept", (p, fraction): "the share of the labels 1",
               s_: r"the force at the proximal point $f^*$, which is what it lies above $\omega$ over $\Delta V$: minus the "
                   "slope of the loss there", reach: r"the spread $\sqrt{\Delta q}$ of an output"})


def both(of):
    """The mean over the labels."""
    return p*of(1) + (1 - p)*of(-1)


page.text(r"(i) The output on a new point of label $y$ is normal, of mean $ym + b$ and variance $\Delta q$; on a point of the "
          r"sample it is the proximal point, where a unit of force moves it by $\Delta V$. So the sample costs $\alpha$ times "
          r"the mean of $M$, the Moreau envelope of the width $\Delta V$. At its minimum only what is explicit moves:")
for x, explicit in ((omega, -(rest(omega) - omega)/(Delta*V)), (V, -(rest(V) - omega)**2/(2*Delta*V**2))):
    page.step("the chain rule", Derivative((rest(x) - omega)**2/(2*Delta*V) + ell(rest(x)), x),
              explicit + ((rest(x) - omega)/(Delta*V) + hx.Derivative(ell)(rest(x)))*hx.Derivative(rest)(x))
page.step("the force along omega", Subs(-(rest(omega) - omega)/(Delta*V), rest(omega), omega + Delta*V*s_), -s_,
          r"The brackets vanish; the slopes are in $\omega$")
page.step("the force along V", Subs(-(rest(V) - omega)**2/(2*Delta*V**2), rest(V), omega + Delta*V*s_), -Delta*s_**2/2,
          r"and in $V$")
page.text(r"(ii) Through the spread of the output the slope in $q$ is that of the force: by parts, for any force,")
by_parts = page.step("Stein", E(z*force(y*m + b + reach*z), z), reach*E(hx.Derivative(force)(y*m + b + reach*z), z))
along = page.step("the chain rule", sqrt(Delta*q)*Derivative(sqrt(Delta*q), q), Delta/2, "and")
page.text(r"So stationarity of regression's free energy, with this cost, in $q$, $V$, $m$ and $b$ says that $\hat V$ is the mean "
          r"fall of the force and $\hat q$ its mean square, both times $\alpha\Delta$, that $\hat m$ is the mean of label times "
          r"force, times $\alpha$, and that the mean force vanishes.")

page.text(r"(iii) The square loss $\frac12(y - f)^2$, whose force and envelope are explicit:")
relaxed = (omega + Delta*V*y)/(1 + Delta*V)
page.step("the proximal point", (relaxed - omega)/(Delta*V), (y - omega)/(1 + Delta*V))
page.step("the envelope", Subs((f - omega)**2/(2*Delta*V) + (y - f)**2/2, f, relaxed), (y - omega)**2/(2*(1 + Delta*V)))
left = 2*p - 1   # the mean label
center, gap = left*(1 - m), 4*p*(1 - p)*(1 - m)**2 + Delta*q
square = both(lambda k: E((k - k*m - b - sqrt(Delta*q)*z)**2, z))
page.step("Gaussian integration", square, (1 - m)**2 - 2*left*(1 - m)*b + b**2 + Delta*q, "The mean square of label less output is")
page.step("stationarity", Subs(Derivative(square, b), b, center), 0, "least at the intercept $(2p - 1)(1 - m)$,")
best = page.step("the best intercept", Subs(square, b, center), gap, "where it is")
equations = {
    Vhat: alpha*Delta/(1 + Delta*V), qhat: alpha*Delta*gap/(1 + Delta*V)**2,
    mhat: alpha*4*p*(1 - p)*(1 - m)/(1 + Delta*V), b: center,
    V: 1/(lamda + Vhat), q: (rho*mhat**2 + qhat)/(lamda + Vhat)**2, m: rho*mhat/(lamda + Vhat)}
missed = both(lambda k: (1 - erf((m + k*b)/sqrt(2*Delta*q)))/2)


def system(**changed):
    """The equations, or some of them otherwise, in the package's letter for p."""
    return System({x: changed.get(x.name, e).subs(p, fraction) for x, e in equations.items()},
                  observables={"test_error": missed.subs(p, fraction)})


printed = system()
at = [{"alpha": 2.0, "lam": 0.1, "Delta": 0.6, "rho": 1.3, "fraction": 0.3}, {"alpha": 0.7, "lam": 0.4, "Delta": 1.5, "rho": 0.8,
                                                                            "fraction": 0.5}]
page.step("Gaussian integration", E((1 - sign(m + b + sqrt(Delta*q)*z))/2, z), (1 - erf((m + b)/sqrt(2*Delta*q)))/2,
          r"A point of label 1 is missed with the probability")
used = hx.theories.glm("square", labels="mixture", intercept=True).system
agreed = page.same("the package's equations", printed, used, "With it the equations are, as the package has them,", at=at)

page.text("(iv) The logistic loss, whose envelope has no formula: the package solves by averages of the force, and the free "
          "energy, solved as any System, agrees.")
envelope = both(lambda k: E(Moreau(log(1 + exp(-k*f)), f, k*m + sqrt(Delta*q)*z, Delta*V), z))
phi = (q*Vhat - V*qhat)/2 - m*mhat + (rho*mhat**2 + qhat)/(lamda + Vhat)/2 - alpha*envelope.subs(p, fraction)


def logistic():
    """The free energy, solved as a System, and the package's solution."""
    own = hx.free_energy(phi, {V: Vhat, q: qhat, m: mhat}, parameters=[alpha, lamda, Delta, rho, fraction]).solve(at[0])
    found = hx.theories.glm("logistic", labels="mixture").solve(**at[0])
    return Result.numbers({x: (own[x], found[x]) for x in ("V", "q", "m", "Vhat", "qhat", "mhat")}, floor=0.0)


page.test("the logistic loss", logistic)
page.text(r"(v) A large ridge. For balanced clusters the error depends on $m$ over $\sqrt{\Delta q}$ alone, whose square is, "
          "where a large ridge leaves no $m$ and no $q$,")
fitted = {mhat: alpha*(1 - m)/(1 + Delta*V), qhat: alpha*Delta*((1 - m)**2 + Delta*q)/(1 + Delta*V)**2}
ratio = (rho*mhat)**2/(Delta*(rho*mhat**2 + qhat))
large = page.step("no overlap", Subs(ratio.subs(fitted), (m, q), (0, 0)), alpha*rho**2/(Delta*(alpha*rho + Delta)))
page.text("This is the direction of the sum of label times point, which is that of the posterior mean of $v$ under a normal "
          "prior: the classifier is Bayes-optimal.")


def optimal():
    """The package's error at a large ridge, for three losses, against the number of (v)."""
    limit = erfc((1.7*1.3**2/(0.6*(1.7*1.3 + 0.6))/2)**0.5)/2
    return Result.numbers({loss: (limit, hx.theories.glm(loss, labels="mixture").solve(
        alpha=1.7, lam=1e7, Delta=0.6, rho=1.3)["test_error"]) for loss in ("square", "logistic", "hinge")})


page.test("three losses at a large ridge", optimal)
page.variant(r"$V$ for $\Delta V$", system(Vhat=alpha*Delta/(1 + V)), printed, "right for clusters of variance one only",
             at=at[:1])
page.variant("the intercept left out", Subs(square, b, center), (1 - m)**2 + Delta*q,
             "right for balanced clusters, where the mean label vanishes")
page.therefore(used, words="The square loss, with an intercept:", by=[agreed],
               package={'hx.theories.glm("square", labels="mixture", intercept=True).system': used})
page.not_shown("replica symmetry, and that the free energy is that of the sample: for convex losses a theorem of the source, by "
               "Gordon's inequality.")
