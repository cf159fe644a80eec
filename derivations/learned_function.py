r"""F(s) = E_u[mu_0 m + kappa mu_1 zeta + mu_1 psi (sqrt(rho) s - gamma u)]: the function that one step learned."""

from sympy import sqrt, symbols

import hermitex as hx
from hermitex import E, Result
from hermitex.symbols import c, gamma, kappa, m, r, z, z1, zeta
from hermitex.theories.one_step import psi

s, mu = symbols("s mu_1", real=True)
rest = sqrt(1 - gamma**2)

page = Result(
    "The function that one giant step learned",
    "At the coordinate $s$ along the target's direction the mean prediction after one giant step is an average over the rest "
    r"of the spike's projection. Without a spike, for an odd activation, it is the line $#1$.",
    source="cui2024", place="Figure 1",
    assumptions=[r"given both coordinates of the spike the prediction's mean is that of the features times $m$, and their slope "
                 r"times the sum of both coordinates, weighted by $\zeta$ and $\psi$", "all other directions are averaged over"],
)
page.notation({s: "the coordinate along the target", kappa: "the projection on the spike", gamma: "the overlap of both directions",
               z1: "the coordinate across the target, in their plane",
               (m, zeta, psi): "the readout's mean, and its overlaps along and across the spike",
               mu: r"the slope of a feature, given $\kappa$", r: "the size of the spike",
               c: "the variance of the bulk"})
page.text("(i) A rotation of the plane takes $s$ and $z_1$ to both coordinates of the spike, and back:")
along, across = gamma*s + rest*z1, rest*s - gamma*z1
page.step("rotation", gamma*along + rest*across, s)
page.step("rotation", along**2 + across**2, s**2 + z1**2)
page.text("(ii) The part of the mean is again a Gaussian average, of a larger variance; for the error function")
mean = hx.erf(r*gamma*s/sqrt(1 + 2*(c + r**2*(1 - gamma**2))))
page.step("convolution", E(hx.erf(r*along + sqrt(c)*z), z, z1), mean)
page.text("(iii) Without a spike $\\mu_1$ is a number and the mean of an odd activation is zero; what is left is a line:")
line = page.step("independence", E(along*mu*zeta + mu*psi*across, z1), mu*s*(psi*rest + gamma*zeta))
page.text(r"(iv) The spread of the mean over $z_1$ belongs to the error: for this line it is")
page.step("independence", E((along*mu*zeta + mu*psi*across)**2, z1) - (mu*s*(psi*rest + gamma*zeta))**2,
          mu**2*(rest*zeta - gamma*psi)**2)
page.variant("the plane not turned", E(along*mu*zeta + mu*psi*across, z1), mu*s*(psi + gamma*zeta),
             r"the overlap $\psi$ is along the coordinate across the spike")


def learned(solve):
    """The mean at s = 1.5 of random features."""
    point = {"alpha": 2, "lam": 0.05, "r": 0, "c": 1.1, "gamma": 0.9}
    found = solve(**point)
    values = {s: 1.5, gamma: 0.9, zeta: float(found["zeta"]), psi: float(found["psi"]),
              mu: float(hx.mu("erf", 1)(0.0, r=0, c=1.1))}
    return values, [float(found.learned(z=1.5).mean)]


page.therefore(E(along*mu*zeta + mu*psi*across, z1), mu*s*(psi*rest + gamma*zeta), "The line:", by=[line],
               package={'hx.theories.one_step("erf", "sin").solve(...)': learned})
page.not_shown("that the prediction is Gaussian given both coordinates, with the variance of the learning curve.")
