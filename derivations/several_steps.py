r"""E[mu_1 h_1] decides which direction a further giant step finds."""

from sympy import Function, Subs, pi, sqrt, symbols

import hermitex as hx
from hermitex import Derivative, E, Result
from hermitex.symbols import c, gamma, kappa, r, z, z1, z2

sigma = Function("sigma")
u = r*kappa + sqrt(c)*z
t, R = symbols("t R", real=True)

page = Result(
    "Several giant steps",
    "Each giant step has its own batch. A step adds to the spike the mean of residual times slope times input; so a direction is "
    r"found once the slopes of feature and target along it have a mean product. With relu it is $#1$ along $z_2$ after the first "
    "step; an odd activation never finds $z_2$.",
    source="dandi2023giant", place="several steps; derived for spiked features",
    assumptions=["the batches are independent, and the first layer is spiked with a bulk of variance $c$"],
)
page.notation({sigma: "the activation", r: "the size of the spike", c: "the variance of the bulk", kappa: "the projection on the "
                                                                                                          "spike",
               gamma: "the overlap of spike and target", t: "the rate over the width", R: "the residual",
               (z1, z2): "the coordinates of the target"})
page.text(r"(i) The target, the sum of its first coordinate and the product of both, has in the second the slope $z_1$, whose mean "
          r"given $\kappa$ is $\gamma\kappa$:")
page.step("orthogonality", E((z1 + z1*z2)*z2, z2), z1)
page.text("The step of a neuron along its own row is, by parts, a multiple of that row: the bulk is stretched. The residual "
          "does not depend on the row, given the spike:")
page.step("Stein", E(z*Derivative(sigma)(u), z), sqrt(c)*E(Derivative(sigma, 2)(u), z))
page.step("the stretch", sqrt(c) + t*R*sqrt(c)*E(Derivative(sigma, 2)(u), z), sqrt(c)*(1 + t*R*E(Derivative(sigma, 2)(u), z)))
page.text(r"(ii) Across the spike the step is the mean product of both slopes. The slope of an odd activation is even in "
          r"$\kappa$ and the target's is "
          "odd: for the error function and for the sine")
page.step("parity", E(gamma*kappa*E(Derivative(hx.erf)(u), z).doit(), kappa), 0)
for odd in ("sin(z)", "z**3"):
    page.step("parity", E(gamma*kappa*E(hx.parse(odd).diff(z).subs(z, u), z), kappa), 0)
page.text("(iii) For relu the slope is a distribution function, and by parts")
slope = E(hx.parse("Heaviside(z)").subs(z, u), z)
along = gamma*r/sqrt(2*pi*(c + r**2))
found = page.step("Stein", E(gamma*kappa*slope, kappa), along)
page.step("no spike yet", Subs(along, r, 0), 0, "which is zero before the first step: $z_2$ appears at the second,")
page.variant("the bulk forgotten", E(gamma*kappa*slope, kappa), gamma/sqrt(2*pi), "right for a spike that is much larger than "
                                                                                  "the bulk")


def second(solve):
    """The part of a step along the second direction, at a point."""
    found = solve(U=[[1.3]], Gamma=[[0.7], [0.0]], c=[0.8])
    return {r: 1.3, c: 0.8, gamma: 0.7}, [found["b1_2"] - found["lift1"]]


page.therefore(E(gamma*kappa*slope, kappa), along, "The part along $z_2$:", by=[found],
               package={'hx.theories.one_step("relu", "z1 + z1*z2", steps=2).averages(...)': second})
page.not_shown("the fluctuations of a batch, which add a part that is orthogonal to the target, and that the readout after the "
               "steps "
               "is that of spiked random features.")
