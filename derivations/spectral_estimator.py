r"""alpha (1 - R) E[(m - 1)^2/(1 + R(m - 1))] = 1: the best spectral estimator."""

from sympy import Subs, pi, symbols

import hermitex as hx
from hermitex import E, Result
from hermitex.symbols import alpha, z, z1, z2

m, R = symbols("m R", positive=True)
s = 1 - 1/m
top = 1/(1 - R)

page = Result(
    "The best spectral estimator",
    r"The top eigenvector of a weighted covariance with the weights $1 - 1/m$, where $m$ is the mean square of the field given "
    r"the label, has the largest squared overlap $R$ with the target. For the sign of a product it solves $#1$.",
    source="luo2019", place="the uniform optimality",
    assumptions=["an eigenvalue leaves the bulk where the mean of weight times $m - 1$ over the distance to the weight is the "
                 r"inverse of $\alpha$", "samples and dimension are large"],
)
page.notation({m: "the mean square of the field, given the label", R: "the squared overlap", alpha: "samples for each dimension",
               (z1, z2): "two directions of the target"})
page.text(r"(i) At the distance $#1$ the ratio of a weight to what is left of the distance is", top)
ratio = page.step("algebra", s/(top - s), (1 - R)*(m - 1)/(1 + R*(m - 1)))
page.text("(ii) The eigenvalue. The mean of $m$ is one; what the condition leaves of the sum over the labels vanishes on average, "
          "so that the eigenvalue is the inverse of $\\alpha$:")
page.step("algebra", top*(1 - R)*(m - 1)/(1 + R*(m - 1)) + R*(m - 1)**2/(1 + R*(m - 1)), m - 1)
page.text("(iii) The sign of a product. Along the sum of both directions the excess $m - 1$ is, by its sign, this number or its "
          "negative:")
page.step("polar coordinates", E(hx.parse("abs(z1)")*hx.parse("abs(z2)"), z1, z2), 2/pi)
gap = 2/pi*hx.parse("sign(z)")
condition = alpha*(1 - R)*E(gap**2/(1 + R*gap), z)
law = page.step("both labels", condition, 4*alpha*(1 - R)/(pi**2 - 4*R**2))
page.step("the threshold", Subs(4*alpha*(1 - R)/(pi**2 - 4*R**2), R, 0), 4*alpha/pi**2, "At no overlap it is one at the threshold:")
page.variant("a single label", condition, 4*alpha*(1 - R)/(pi**2 + 2*pi*R), "the other label counts as well")


def solved(solve):
    """R at six samples for each dimension."""
    return {alpha: 6.0, R: float(solve(alpha=6.0)["squared_overlap"])}, [1.0]


page.therefore(condition, 4*alpha*(1 - R)/(pi**2 - 4*R**2), "The left side of the condition, which is one:", by=[law],
               package={'hx.theories.spectral("sign(z1*z2)").solve(...)': solved})
page.not_shown("the limits of eigenvalues and eigenvectors, which are the source's theorems.")
