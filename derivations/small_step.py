r"""The first layer after one gradient step of size one: a Gaussian matrix with a spike, its outlier and both alignments."""

from sympy import Derivative, Function, Limit, Subs, oo, sqrt, symbols

import hermitex as hx
from hermitex import E, Result
from hermitex.symbols import Delta, z, z1, z2

sigma, target = Function("sigma"), Function("g")
tau, psi1, psi2, x, n, d, c_1, second = symbols("tau psi1 psi2 x n d c_1 g_2", positive=True)
u = symbols("G", real=True)

page = Result(
    "One gradient step of size one",
    r"The weights after one gradient step of size one are a Gaussian matrix and a spike of rank one, of size $\theta$. Where its "
    r"square $\tau$ exceeds $\sqrt{\psi_2}$ a singular value leaves the bulk, and the squared alignment of its vector with the "
    "spike is $#1$ on the side of the inputs and $#2$ on that of the neurons.",
    source="ba2022", place="the spectrum after one step",
    assumptions=[r"the gradient is of rank one up to what vanishes in norm",
                 "$W_0$ has $d$ rows, and independent entries of a variance that is the inverse of $d$"],
)
page.assume(r"of a spike of size $\theta$ between unit vectors $\tau$ times $D$ is one at the outlier, where $D$ is the product "
            "of $x$, the square of the singular value, and of both traces, and the squared alignments are each trace over "
            r"$\tau$ times the fall of $D$", quoted="ba2022",
            place="spiked matrices, after Benaych-Georges and Nadakuditi (2012)")
page.notation({Delta: "the variance of the label's noise",
               "W_0": "the first layer before the step", r"\theta": "the size of a spike",
               "D": "the product of $x$ and of both traces",
               psi1: "samples for one dimension", psi2: "neurons for one dimension", tau: "the squared size of the spike",
               x: "a squared singular value", u: "the trace of the resolvent of the first side at $x$, over $d$",
               c_1: "the target's slope", second: "the mean square of a label", (n, d): "samples and dimension"})
page.text("(i) The spike. The gradient points along the mean of label times input, $n$ terms of which the square has $n$ on the "
          "diagonal:")
page.step("counting pairs", Limit(Subs((n*second*d + n*(n - 1)*c_1**2)/n**2, n, psi1*d).doit(), d, oo), c_1**2 + second/psi1)
page.step("the label", E((target(z1) + sqrt(Delta)*z2)**2, z1, z2), E(target(z)**2, z) + Delta,
          "with the mean square of a label", digits=8,
          points=1)
law = 1/u + psi2/(1 - u)
page.name(symbols("x_G", positive=True), law,
          "(ii) The bulk. By the equation of Marchenko and Pastur the square of a singular value is, as a function of the trace "
          "$G$,")
outlier = (1 + tau)*(psi2 + tau)/tau
page.step("the trace at the outlier", Subs(law, u, 1/(1 + tau)), outlier, r"so that at the trace $1/(1 + \tau)$ it is")
page.step("the other side", (1/(1 + tau) + (psi2 - 1)/outlier)/psi2, 1/(psi2 + tau),
          r"The trace of the other side, times $\psi_2$, is this one and that of $\psi_2 - 1$ zeros. There it is")
page.step("the outlier", Subs(tau*x*u*(u + (psi2 - 1)/x)/psi2, (u, x), (1/(1 + tau), outlier)), 1,
          "which solves the quoted equation:")
page.text(r"(iii) It leaves the bulk where its slope in the spike vanishes, at the edge of the law:")
slope = page.step("differentiation", Derivative(outlier, tau), 1 - psi2/tau**2)
page.step("the edge", Subs(outlier, tau, sqrt(psi2)), (1 + sqrt(psi2))**2, r"at $\sqrt{\psi_2}$ the outlier is")
page.text(r"(iv) The alignments. Along the outlier $D$ is $1/\tau$, so that its derivative in $x$ is that over the slope of $x$:")
page.step("the chain rule", -1/((1 + tau)*tau*(Derivative(1/tau, tau)/Derivative(outlier, tau))),
          tau/(1 + tau)*Derivative(outlier, tau))


def solved(solve):
    """theta^2 of the package, its alignments with the spike, its outlier squared."""
    found = solve(psi1=2.0, psi2=1.5, eta=3.0, Delta=0.1)
    slope_, mean_square = float(E(z*hx.parse("sin(z)"), z).evalf(15)), float(E(hx.parse("sin(z)")**2, z).evalf(15)) + 0.1
    seen = slope_**2/(slope_**2 + mean_square/2.0)   # the target's share of the spike
    return {tau: float(found["theta"])**2, psi2: 1.5}, [
        float(found["alignment_target"])/seen, float(found["alignment_readout"]), float(found["singular_value"])**2 - 2.5]


page.variant("the sides exchanged", tau/(1 + tau)*Derivative(outlier, tau), 1 - psi2*(1 + tau)/(tau*(psi2 + tau)),
             r"right for as many neurons as inputs only")
page.therefore([(tau/(1 + tau)*Derivative(outlier, tau), 1 - (psi2 + tau)/(tau*(1 + tau))),
                (tau/(psi2 + tau)*Derivative(outlier, tau), 1 - psi2*(1 + tau)/(tau*(psi2 + tau))),
                (2*tau - tau*Derivative(outlier, tau), tau + psi2/tau)],
               words=r"The alignments, and the outlier's square less one and $\psi_2$:", by=[slope],
               package={'hx.theories.small_step("tanh", "sin").solve(...)': solved})
page.not_shown("that the gradient is of rank one, and the formulas of spiked matrices themselves; the error of a readout on "
               "these features.")
