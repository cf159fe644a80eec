r"""h_1 = (1 + eta f_0) h_0 + eta e_0 z + (eta/alpha) r_0 + eta sqrt(q_0/alpha) G: samples that come back."""

from sympy import Function, Rational, Subs, sqrt, symbols

import hermitex as hx
from hermitex import E, He, Result
from hermitex.symbols import alpha, eta, z1, z2

sigma = Function("sigma")
y, h, delta = symbols("y h delta", real=True)
e0, f0 = symbols("e_0 f_0", real=True)
q0 = symbols("q_0", positive=True)

page = Result(
    "Two steps on the same samples",
    "After a full-batch step on $n$ samples the weights remember each of them: the field of a sample holds its own residual. By "
    "it the "
    "second step depends on powers of the label. After the first step with relu on a target of order three the squared norm is "
    "$#1$.",
    source="dandi2024reusing", place="two steps on one batch",
    assumptions=["the weights start with norm one, orthogonal to the target",
                 "many samples and dimensions in a fixed ratio; given the sums of the first step the rest of the inputs is fresh"],
)
page.notation({"n": "the samples", alpha: "samples for each dimension", eta: "the rate", (z1, z2): "the target's field and the "
                                                                                                   "neuron's",
               sigma: "the slope of the activation", y: "a label", h: "a field of the neuron", delta: "the memory, the rate over "
                                                                                                      "the ratio",
               e0: "the mean product of residual and target's field", f0: "that of residual and neuron's field",
               q0: "the mean square of the residual"})
page.text("(i) The first step. Of its length one part is along the target, one along the weights, and the noise is that of so many "
          "samples:")
norm = (1 + eta*f0)**2 + eta**2*e0**2 + eta**2*q0/alpha
page.step("expanding the square", norm, 1 + 2*eta*f0 + eta**2*(f0**2 + e0**2 + q0/alpha))
label = He(3, z1)/sqrt(6)
step = hx.parse("Heaviside(z2)")
page.text("For the third polynomial and the correlation loss with relu the averages are")
along = page.step("orthogonality", E(z1*label*step, z1, z2), 0)
own = page.step("orthogonality", E(z2*label*step, z1, z2), 0)
square = page.step("independence", E(label**2*step**2, z1, z2), Rational(1, 2))
page.text("so that one step on fresh samples finds nothing.")
page.text("(ii) The second step. A sample's residual at the field with a memory $\\delta$ of the first has the second derivative "
          "in it")
page.step("the chain rule", Subs(sigma(h + delta*y*sigma(h)).diff(delta, 2), delta, 0), y**2*sigma(h)**2*sigma(h).diff(h, 2))
page.text("whose mean brings a third power of the label with the one of its slope, and that of a target of order three has a "
          "part along it:")
page.step("Hermite products", E(z1*label**3, z1), 9*sqrt(6))
page.variant("the neuron's own field counted", E(label**2*step**2, z1, z2), 1, "relu has a slope on one half of the samples")


def solved(solve):
    """The squared norm after one step."""
    return {alpha: 3.0, eta: 1.0}, [float(solve(alpha=3.0, eta=1.0)["norm_1"])**2]


length = (1 + eta*E(z2*label*step, z1, z2))**2 + eta**2*E(z1*label*step, z1, z2)**2 + eta**2/alpha*E(label**2*step**2, z1, z2)
page.therefore(length, 1 + eta**2/(2*alpha), "The squared norm:", by=[along, own, square],
               package={'hx.theories.batch_reuse("relu", "He3(z)/sqrt(6)", "correlation").solve(...)': solved})
page.not_shown("the conditioning on the sums of the first step, and the law of the second step at finite rates.")
