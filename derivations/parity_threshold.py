r"""c* = max psi(v, b)/(|v|^2 + b^2)/(2 lambda_1): the temperature above which a parity is not learned."""

import numpy as np
from sympy import Rational, Subs, exp, log, symbols, tanh

import hermitex as hx
from hermitex import Derivative, E, Result
from hermitex.symbols import z, z1, z2

u, A, size = symbols("u A s", real=True)
c, cstar, ridge, psi = symbols("c c_s lambda_1 psi", positive=True)

page = Result(
    "Parity by mean-field Langevin",
    r"A mean-field network under noisy gradient descent on a parity becomes, for an effective dimension that is large, a convex "
    r"problem "
    r"in the law of few coordinates. Nothing is learned from the temperature $c_s$ on. Below it the learned function is the "
    r"parity times "
    "a margin $A$, at which the logistic loss has the slope $#1$.",
    source="nitanda2024", place="k-parity",
    assumptions=["neurons are the hyperbolic tangent of a field with normal noise",
                 "the weights of all other inputs stay at their prior"],
)
page.notation({u: "the size of each relevant weight", (z1, z2): "two coordinates, of which the signs count",
               z: "the noise of the field", A: "the margin", ridge: "the ridge of the prior",
               c: "the temperature times the effective dimension", cstar: "its threshold", size: "the squared norm of the best "
                                                                                                 "weights",
               psi: "the mean product of parity and best neuron"})
page.text("(i) Two coordinates and a bias of the same size. Over the four signs the mean product of parity and neuron is:")
s1, s2 = (hx.parse(f"sign(z{j})") for j in (1, 2))
two = (tanh(3*u + z) - 2*tanh(u + z) + tanh(z - u))/4
page.step("four signs", E(s1*s2*tanh(u*(s1 + s2) + u + z), z1, z2), two)
page.text("and the mirror image of the noise $z$ turns the last term into one more of the middle one, as for three coordinates:")
page.step("symmetry", E(two, z), E((tanh(3*u + z) - 3*tanh(u + z))/4, z), points=2, digits=10)
page.text("(ii) The first variation. At no function the loss falls by half of the mean product:")
page.step("differentiation", Subs(Derivative(log(1 + exp(-A)), A), A, 0), -Rational(1, 2))
page.text("and the prior costs the ridge times the squared norm: both balance at the threshold, twice the ridge of which is the "
          "mean "
          "product over the squared norm.")
page.step("the balance", Subs(psi/2 - c*ridge*size, c, psi/(2*ridge*size)), 0)
page.text("(iii) Below it a share of the neurons sits at the best weights. Their cost is what the loss at the margin $A$ gains:")
page.step("differentiation", -Derivative(log(1 + exp(-A)), A), 1/(1 + exp(A)))
at = log(2*cstar/c - 1)
balance = page.step("the margin", Subs(1/(1 + exp(A)), A, at), c/(2*cstar))
page.variant("the threshold at the whole mean product", Subs(psi/2 - c*ridge*size, c, psi/(2*ridge*size)), psi/2,
             "the slope of the loss is one half")


def solved(theory):
    """The margin at a little less than the threshold."""
    top = theory(2).threshold(prior=0.5)
    return {c: 0.97*top, cstar: top}, [1/(1 + np.exp(theory(2).margin(0.97*top, prior=0.5)))]


page.therefore(Subs(1/(1 + exp(A)), A, at), c/(2*cstar), "The share of its threshold at the margin:", by=[balance],
               package={"hx.theories.mean_field_parity(...)": solved})
page.not_shown("that the best neuron has equal coordinates, that the entropy of the few coordinates drops out, and the time that "
               "the "
               "dynamics takes.")
