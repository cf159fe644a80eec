r"""h_1 = E[zeta g|kappa] in R^J: what one giant step leaves of a target of several directions."""

from sympy import sqrt, symbols

import hermitex as hx
from hermitex import E, Result
from hermitex.symbols import Delta, gamma, kappa, z1, z2, z3
from hermitex.theories.directions import rho
from hermitex.theories.one_step import seen

B, mu_1, psi_1, psi_2 = symbols("B mu_1 psi_1 psi_2", real=True)
spread = symbols("s", nonnegative=True)
g = z1 + z1*z2
made = seen(hx.theories.one_step("tanh", "z1 + z1*z2").g)

page = Result(
    "One giant step on a target of several directions",
    "The spike of one giant step points along the mean gradient of the target, with an overlap $\\gamma$. Given the projection "
    r"$\kappa$ on it the square loss needs three moments of the target $g$ only: its mean $#1$, its slopes and its mean square. "
    r"No readout has a risk below that which "
    r"they leave, here $\rho$.",
    source="cui2024", place="Results 3.1 and 3.3, for several directions",
    assumptions=["$z_1$, $z_2$ are independent standard normals, the projections of the input on orthonormal directions",
                 "the noise in the spike is orthogonal to both of them"],
)
page.notation({"g": "the target", rho: "one less the square of the overlap",
               gamma: "the overlap of the spike with the mean gradient", kappa: "the projection on the spike",
               Delta: "the variance of the label's noise", (z1, z2): "the coordinates of the target, and across the spike",
               z3: "a further standard normal", B: "the prediction's mean", mu_1: "the slope of a feature",
               (psi_1, psi_2): "the readout's overlaps across the spike",
               spread: "what is left of the prediction's spread"})
page.text("(i) The target is the sum of its first coordinate and the product of both. Its mean gradient points along the first:")
page.step("orthogonality", E(g*z1, z1, z2), 1)
page.step("orthogonality", E(g*z2, z1, z2), 0)
page.text("so that the first coordinate is the projection and a rest, and the second is untouched. The moments are")
at = g.subs(z1, gamma*kappa + sqrt(rho)*z1)
moments = [page.step("independence", left, right) for left, right in (
    (E(at, z1, z2), gamma*kappa), (E(z1*at, z1, z2), sqrt(rho)), (E(z2*at, z1, z2), gamma*kappa),
    (E(at**2, z1, z2), 2*(gamma**2*kappa**2 + rho)))]
page.text(r"(ii) The error of a sample. Nothing else of the target enters,")
page.step("expanding the square", E((at + sqrt(Delta)*z3 - B - mu_1*(psi_1*z1 + psi_2*z2))**2, z1, z2, z3) + spread**2,
          2*(gamma**2*kappa**2 + rho) + Delta - 2*B*gamma*kappa + B**2
          - 2*mu_1*(psi_1*sqrt(rho) + psi_2*gamma*kappa) + mu_1**2*(psi_1**2 + psi_2**2) + spread**2)
page.text(r"(iii) The floor. A prediction that is any function of $\kappa$ and linear across the spike leaves")
left = E(E(at**2, z1, z2) - E(at, z1, z2)**2 - E(z1*at, z1, z2)**2 - E(z2*at, z1, z2)**2, kappa)
page.step("orthogonality", left, rho)
page.variant("the second direction forgotten", E(z2*at, z1, z2), 0,
             r"the coefficient of $z_2$ depends on $\kappa$, and a readout fits it")
own = 'hx.theories.one_step("tanh", "z1 + z1*z2").g.seen()'
page.therefore([(m.lhs, m.rhs) for m in moments], words="The target's moments:", by=moments,
               package={f"{own}.h": made.h, f"{own}.h_1[0]": made.h_1[0], f"{own}.h_1[1]": made.h_1[1],
                        f"{own}.squared": made.squared})
page.not_shown("that the spiked features are equivalent to Gaussian ones, and replica symmetry.")
