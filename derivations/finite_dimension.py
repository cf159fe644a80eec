r"""What a finite dimension adds to the learning curve: the mean of the readout costs m^2/d, its conjugate is of order 1/d."""

import numpy as np
from sympy import Derivative, Limit, Subs, oo, symbols

import hermitex as hx
from hermitex import Result
from hermitex.symbols import alpha, beta, m, mhat
from hermitex.theories.one_step import V2, epsilon

d, p, c0, c1 = symbols("d p A B", positive=True)
force = symbols("S", real=True)

page = Result(
    "The finite-dimension term of the learning curve",
    "The mean $m$ of the readout is not regularised in the limit: the direction of all ones has a norm of the order of the "
    r"width. At dimension $d$ its equation keeps one term, and what $\mu_0$ leaves of the residual is $\frac{\epsilon m}{\alpha "
    "V_2}$; the correction of $m$ is of the order $1/d$.",
    source="cui2024", place="Result 3.3, at finite dimension",
    assumptions=["replica symmetry, which holds for convex problems",
                 r"among the terms of order $1/d$ this is the one that stays where $\mu_0$ has the mean of the target to fit"],
)
page.notation({p: "the neurons",
               r"\mu_0": r"the mean of a feature at fixed $\kappa$", r"\kappa": "the projection of the input on the spike",
               m: "the mean of the readout: the sum of its entries over the root of their number", mhat: "its conjugate",
               V2: "the trace of the readout's resolvent for one neuron",
               force: r"what $\mu_0$ leaves of the residual, in the mean over $\kappa$", epsilon: "$1/d$",
               (c0, c1): "that mean without the readout's mean, and its slope in it"})
norm = page.let(symbols("N_m", positive=True), p*V2,
                "(i) The norm of the direction. The vector of all ones, over and times the root of the width as the conjugate "
                "couples to it, has in the resolvent the squared norm of the width times the trace a neuron,")
page.step("the width", Subs(norm, p, beta*d), Subs(beta*V2/epsilon, epsilon, 1/d), r"which at $\beta d$ neurons is")
page.name(symbols("Phi_m"), beta/(2*epsilon)*V2*mhat**2 - m*mhat,
          "(ii) The terms of the free energy that hold the conjugate of $m$, from the entropy and the coupling, are")
inside = beta/(2*epsilon)*V2*mhat**2 - m*mhat
page.step("stationarity in the conjugate", Derivative(inside, mhat), beta/epsilon*V2*mhat - m)
conjugate = page.let(symbols("mhat_0", real=True), epsilon*m/(beta*V2), "so that the conjugate is")
page.step("the value there", Subs(inside, mhat, conjugate), -epsilon*m**2/(2*beta*V2))
page.text(r"(iii) The energy has in $m$ the slope $S$ times $\alpha/\beta$, downwards; with that of the rest, times "
          r"$\beta/\alpha$, stationarity in $m$ asks that the force be")
balance = page.step("stationarity in $m$", -beta/alpha*Subs(Derivative(inside, m), mhat, conjugate), epsilon*m/(alpha*V2))
page.text(r"(iv) Its size. The force falls with $m$, to leading order on a line. The mean that solves the equation moves by")
mean = c0/(c1 + epsilon/(alpha*V2))
page.step("the solution", c0 - c1*mean - epsilon*mean/(alpha*V2), 0)
page.step("the first order", Subs(Derivative(mean, epsilon), epsilon, 0), -c0/(c1**2*alpha*V2),
          "for each $1/d$, and in the limit it is")
page.step("the limit", Limit(Subs(mean, epsilon, 1/d).doit(), d, oo), c0/c1)
AT = {"alpha": 1.6, "beta": 0.8, "lam": 0.1, "r": 1.1, "c": 1.2, "gamma": 0.9, "Delta": 0.1, "bias": 0.3}


def pull(found):
    """E[mu_0 (h - B) Q] by plain nodes at the package's overlaps, for tanh and sin."""
    x, w = Result.normal_grid()
    u = AT["r"]*x[:, None] + AT["bias"] + np.sqrt(AT["c"])*x
    first, slope = np.tanh(u) @ w, np.tanh(u) @ (x*w)/np.sqrt(AT["c"])
    rest = np.tanh(u)**2 @ w - first**2 - AT["c"]*slope**2
    h = np.sin(AT["gamma"]*x)*np.exp(-(1 - AT["gamma"]**2)/2)
    B = first*float(found["m"]) + x*slope*float(found["zeta"])
    return w @ (first*(h - B)/(1 + slope**2*float(found["V1"]) + rest*float(found["V2"])))


def solved(solve):
    """m and V_2 of the package in dimension 50, and the pull at them."""
    found = solve(**AT)
    return {m: float(found["m"]), V2: float(found["V2"]), alpha: AT["alpha"], epsilon: 1/50}, [pull(found)]


def in_the_limit():
    """Without a dimension the pull vanishes, and the solutions at two dimensions point to it."""
    theory = hx.theories.one_step("tanh", "sin")
    limit = theory.solve(**AT)
    assert abs(pull(limit)) < 1e-9, f"the pull is {pull(limit)} in the limit"
    one, two, four = (float(theory.solve(**AT, dimension=k)["m"]) for k in (2000, 4000, 8000))
    gap = abs((one - 6*two + 8*four)/3/float(limit["m"]) - 1)
    return Result.digits(gap)


page.test("the limit of the mean", in_the_limit)
page.variant("the width for the dimension", -beta/alpha*Subs(Derivative(inside, m), mhat, conjugate), m/(p*alpha*V2),
             r"the cost is that of $1/d$, whatever the width")
page.therefore(balance.lhs, epsilon*m/(alpha*V2), "What the direction of all ones leaves of the residual, in dimension "
                                                  r"$1/\epsilon$:",
               by=[balance], package={'hx.theories.one_step("tanh", "sin").solve(..., dimension=50)': solved})
page.not_shown(r"the other terms of order $1/d$: fluctuations of the spectrum, of the spike and of the equivalence itself.")
