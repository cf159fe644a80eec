r"""|P h|^2 = sum_{k <= l} c_k^2 g^(2k)/k!: what the outliers of an intermediate step fit."""

from sympy import Subs, log, sqrt, symbols

import hermitex as hx
from hermitex import E, He, Result
from hermitex.symbols import kappa, z

g, c_1, c_2, N = symbols("g c_1 c_2 N", positive=True)
s, k = symbols("s k", positive=True)

page = Result(
    "Ridge after a step between one and the dimension",
    "After a step that is a power $s$ of the dimension, between one half and one, the features show as many powers of the spike's "
    "projection as are visible. These are fitted exactly, and the rest of the target is left to random features. Of a target with "
    "coefficients $c_1$ and $c_2$ two outliers fit $#1$.",
    source="moniri2024", place="the outliers",
    assumptions=["the spikes are infinitely strong: a power of the projection that is visible is fitted without a ridge",
                 "all visible powers have a coefficient in the activation"],
)
page.notation({kappa: "the projection on the spike", g: "its overlap with the target", (c_1, c_2): "the target's coefficients",
               z: "the coordinate across the spike", s: "the exponent of the step", k: "a power of the projection",
               N: "the width, of the order of the dimension"})
page.text("(i) Counting powers. A power of the projection has the length of that of the spike's size times a power of the width, "
          "against a "
          "bulk of the square root of the width. Its logarithm, over that of the width, is")
page.step("counting powers", log((N**(s - hx.parse("1/2")))**k*N**((1 - k)/2)*sqrt(N)/sqrt(N))/log(N), k*s - k + hx.parse("1/2"))
page.text("which is positive above the step at which it vanishes:")
page.step("the border", Subs(k*s - k + hx.parse("1/2"), s, 1 - 1/(2*k)), 0)
page.text("(ii) What the projection knows of the target. Given $\\kappa$ each polynomial is a polynomial of it, smaller by a "
          "power of the "
          "overlap:")
rest = sqrt(1 - g**2)
for j in (1, 2, 3):
    page.step("Mehler", E(He(j, g*kappa + rest*z), z), g**j*He(j, kappa))
page.text("(iii) The fit. On the span of both powers and a constant the mean square of it is")
mean = E(c_1*He(1, g*kappa + rest*z) + c_2*He(2, g*kappa + rest*z)/2, z)
fitted = page.step("orthogonality", E(mean**2, kappa), c_1**2*g**2 + c_2**2*g**4/2)
page.variant("the overlap once for both orders", E(mean**2, kappa), (c_1**2 + c_2**2/2)*g**2, "an order is smaller by its own "
                                                                                              "power")


def solved(theory):
    """What two outliers fit of a target with both coefficients, at an overlap."""
    return {c_1: 1.0, c_2: 0.8, g: 0.7}, [theory("tanh(z + 1)", "z + 2*He2(z)/5").fitted((0, 1, 2), 0.49)]


page.therefore(E(mean**2, kappa), c_1**2*g**2 + c_2**2*g**4/2, "What is fitted:", by=[fitted],
               package={"hx.theories.intermediate_step(...)": solved})
page.not_shown("that so many outliers appear, which is the source's theorem, and how slowly real spikes grow with the width.")
