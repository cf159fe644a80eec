r"""Phi = max_q {(q + log(1 - q))/2 + alpha Psi(q)}: the free entropy of Bayes-optimal learning."""

from sympy import Function, Subs, log, pi, sqrt, symbols

from hermitex import Derivative, E, Result
from hermitex.symbols import Delta, alpha, z

q, V = symbols("q V", positive=True)
Psi = Function("Psi")
f = (q + log(1 - q))/2 + alpha*Psi(q)

page = Result(
    "The Bayes free entropy",
    r"At $\alpha$ samples for each dimension the free entropy is the largest value over the overlap $q$ of a term of the weights "
    r"and $\alpha$ times that of a label, $\Psi$. Its stationary points are those of state evolution. For a field with noise it "
    r"is $#1$.",
    source="barbier2019", place="the free entropy",
    assumptions=["the weights have independent standard normal entries", r"the largest value, not only a stationary one, is taken"],
)
page.notation({q: "the overlap of the estimator", alpha: "samples for each dimension", Psi: "the mean logarithm of the label's "
               "probability, given an estimate of overlap $q$", V: "the variance of a label given an estimate",
               Delta: "the variance of the label's noise"})
page.text("(i) Stationarity is the state evolution: the conjugate of the overlap is a slope of the label's term,")
page.step("differentiation", 2*(1 - q)*Derivative(f, q), 2*alpha*(1 - q)*Derivative(Psi(q), q) - q)
page.text("(ii) A field with noise. The label is normal given the estimate, with the variance $V$ that the overlap leaves and the "
          "noise; its mean logarithm is")
term = page.step("second moment", E(log(1/sqrt(2*pi*V)) - z**2/2, z), -(log(2*pi*V) + 1)/2)
page.text("so that twice its slope in the overlap is the mean square of the score, which is the rate of state evolution:")
page.step("differentiation", 2*Derivative(-log(2*pi*(1 - q + Delta))/2, q), 1/(1 - q + Delta))
page.step("the score", E((sqrt(V)*z/V)**2, z), 1/V)
page.text("(iii) The information is what the labels hold beyond their noise: $\\alpha$ times the term at overlap one, less the "
          "free "
          "entropy. The noise cancels in")
page.step("overlap one", Subs(-log(2*pi*(1 - q + Delta))/2, q, 1) + log(2*pi*(1 - q + Delta))/2, log((1 - q + Delta)/Delta)/2)
value = (q + log(1 - q))/2 - alpha*(log(2*pi*(1 - q + Delta)) + 1)/2
free = page.step("both terms", (q + log(1 - q))/2 + alpha*E(log(1/sqrt(2*pi*(1 - q + Delta))) - z**2/2, z), value)
page.variant("the entropy of the weights forgotten", (q + log(1 - q))/2 + alpha*E(log(1/sqrt(2*pi*(1 - q + Delta))) - z**2/2, z),
             -alpha*(log(2*pi*(1 - q + Delta)) + 1)/2, "the overlap would then be one at any number of samples")


def solved(free_energy):
    """The free entropy at a noise of 3/10."""
    found = free_energy(alpha=1.7)
    return {q: float(found["M11"]), alpha: 1.7, Delta: 0.3}, [float(found["free_entropy"])]


page.therefore(free.lhs, value, "The free entropy:", by=[free],
               package={'hx.theories.multi_index("z", "gaussian:3/10").free_energy(...)': solved})
page.not_shown("the limit itself, a theorem; that no other overlap matrix has a larger value for several directions.")
