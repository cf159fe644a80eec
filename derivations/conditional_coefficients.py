r"""Given its projection on the spike, a feature is mu_0 + mu_1 sqrt(c) z + mu_star xi (Result 3.2)."""

import numpy as np
from sympy import Function, cos, exp, pi, sin, sqrt, symbols
from sympy.core.function import Derivative as OfNode

import hermitex as hx
from hermitex import Derivative, E, Result
from hermitex.symbols import Delta, c, gamma, kappa, r, rho, z, z1, z2

sigma = Function("sigma")


def u(normal):
    """The pre-activation at fixed projection kappa on the spike."""
    return r*kappa + sqrt(c)*normal


page = Result(
    "Conditional Gaussian equivalence of spiked features",
    r"Let $u$ be a pre-activation $r\kappa + \sqrt{c}\,z$ with projection $\kappa$ on the spike. At fixed $\kappa$ the feature "
    r"$\sigma(u)$ is equivalent to the sum of $\mu_0 + c^{1/2} z \mu_1$ and a fresh normal of the variance $\mu_\star^2$, where "
    "$#1$, $#2$ and the variance is what the linear part leaves, $#3$.",
    source="cui2024", place="Result 3.2",
    assumptions=[r"$x \sim \mathcal{N}(0, I_d)$; the rows $w_i$ of the bulk have squared norm $c$ and overlaps of the order of "
                 "one over the root of $d$ with each other, with the spike $v$ and with the target",
                 r"$\sigma$ and its weak derivative are square integrable over $u$"],
)
mu_0, mu_1 = symbols("mu_0 mu_1", real=True)
page.notation({Delta: "the variance of the label's noise",
               "b": "the shift of a pre-activation",
               "u": "the pre-activation of one feature", "v": "the direction of the spike", "d": "the dimension",
               r"\mu_\star": r"the root of $\mu_\star^2$", "w_i": "the bulk of a row",
               r"\mu_\star^2": "the mean square of what is neither constant nor linear",
               kappa: "the projection of the input on the spike", r: "the spike's size in the row",
               c: "the squared norm of the row's bulk", rho: "the overlap of the bulks of two rows",
               gamma: "the overlap of the target's direction with the spike"})

page.let(mu_0, E(sigma(u(z)), z), r"At fixed $\kappa$ the pre-activations of two features are jointly normal. Three numbers of "
                                  "one of them enter: its mean,")
page.let(mu_1, E(z*sigma(u(z)), z)/sqrt(c), "the slope of its best linear fit in $\\sqrt{c}\\,z$,")
slope = page.step("Stein", mu_1, E(Derivative(sigma)(u(z)), z), "which is its mean slope,")
page.step("differentiation", OfNode(E(sigma(u(z)), z), kappa), r*mu_1, r"so that")
rest = page.step("expanding the square", E((sigma(u(z)) - mu_0 - mu_1*sqrt(c)*z)**2, z), E(sigma(u(z))**2, z) - mu_0**2 - c*mu_1**2,
          r"and what is left, neither constant nor linear, has the mean square $\mu_\star^2$:")
page.step("orthogonality", E(z*(sigma(u(z)) - mu_0 - mu_1*sqrt(c)*z), z), 0, "It is uncorrelated with the linear part.")
page.text(r"Two features see each other through the overlap $\rho$ of their bulk rows, which is small. Price's theorem gives the "
          "first order in it, which is the covariance of the linear parts; the residuals only meet at the second order and are "
          "independent for what follows.")
pair = E(sigma(u(z1))*sigma(u(z2)), z1, z2, cov={(z1, z2): rho})
page.step("Price", OfNode(pair, rho), c*E(Derivative(sigma)(u(z1))*Derivative(sigma)(u(z2)), z1, z2, cov={(z1, z2): rho}),
          digits=10, points=2)
page.step("independence", E(sigma(u(z1))*sigma(u(z2)), z1, z2), mu_0**2, r"Without an overlap:", digits=10, points=2)
page.step("independence", E(Derivative(sigma)(u(z1))*Derivative(sigma)(u(z2)), z1, z2), mu_1**2, digits=10, points=2)

page.text("For the sign function everything is elementary, as the paper's example shows at unit $r$ and $c$:")
tilted = hx.sign(kappa + z)
page.step("closed form", E(tilted, z), hx.erf(kappa/sqrt(2)))
page.step("closed form", E(z*tilted, z), sqrt(2/pi)*exp(-kappa**2/2))
page.step("closed form", E(tilted**2, z), 1)

page.text(r"A target whose direction has overlap $\gamma$ with the spike is seen at fixed $\kappa$ through its argument "
          r"$\gamma\kappa + \sqrt{1 - \gamma^2}\,z$, with three moments; for the sine")
at = gamma*kappa + sqrt(1 - gamma**2)*z
seen = hx.theories.target_moments("sin")
page.same("the mean", E(sin(at), z), seen.h)
page.same("the linear part", E(z*sin(at), z), seen.h_1)
page.same("the second moment, with the noise", E(sin(at)**2, z) + Delta, seen.h_2)


def moments():
    """h, h_1 and h_2 of a target without closed forms, by plain nodes."""
    x, w = Result.normal_grid()
    k, overlap, noise = np.array([-1.3, 0.2, 0.9]), 0.6, 0.3
    values = np.tanh(overlap*k[:, None] + 0.8*x)
    found = hx.theories.target_moments("tanh")(k, gamma=overlap, Delta=noise)
    wanted = (values @ w, values @ (x*w), values**2 @ w + noise)
    return Result.numbers(("a moment", b, a) for a, b in zip(found, wanted, strict=True))


page.test("the moments of a target without closed forms", moments, "and for any other target by quadrature.")

page.misprint("the residual without its square", E((sigma(u(z)) - mu_0 - mu_1*sqrt(c)*z)**2, z),
              sqrt(E(sigma(u(z))**2, z) - mu_0**2 - c*mu_1**2),
              r"the number is printed as $\mu_\star$; it is $\mu_\star^2$", source="loureiro2024slides",
              place="the example of the sign", mended=E(sigma(u(z))**2, z) - mu_0**2 - c*mu_1**2, change=sqrt)
page.variant("the variance forgotten", E((sigma(u(z)) - mu_0 - mu_1*sqrt(c)*z)**2, z), E(sigma(u(z))**2, z) - mu_0**2 - mu_1**2,
             r"right at unit variance only")
page.therefore([(mu_0, E(sigma(u(z)), z)), (mu_1, E(Derivative(sigma)(u(z)), z)),
                (E((sigma(u(z)) - mu_0 - mu_1*sqrt(c)*z)**2, z), E(sigma(u(z))**2, z) - mu_0**2 - c*mu_1**2)],
               words=r"The coefficients $\mu_0$, $\mu_1$ and $\mu_\star^2$ for every activation:", by=[mu_0, slope, rest],
               package={"hx.mu(sigma, 0).node": hx.mu(sigma, 0).node, "hx.mu(sigma, 1).node": hx.mu(sigma, 1).node,
                        "hx.mu_star(sigma).squared.node": hx.mu_star(sigma).squared.node})
page.test("the package's coefficients", lambda: all([
    hx.mu(sigma, 0).node == E(sigma(u(z)), z), hx.mu(sigma, 1).node == E(z*sigma(u(z)), z)/sqrt(c),
    bool(hx.check(hx.mu_star(sigma).squared.node, E((sigma(u(z)) - E(sigma(u(z)), z) - E(z*sigma(u(z)), z)*z)**2, z)))]))
shift = symbols("b", real=True)
page.step("closed form", E(cos(r*kappa + shift + sqrt(c)*z), z), exp(-c/2)*cos(r*kappa + shift),
          r"A bias moves the pre-activation; for the sine, whose slope is the cosine,")
page.same("the package's coefficient", exp(-c/2)*cos(r*kappa + shift), hx.mu("sin", 1)(kappa, r=r, c=c, bias=shift), name=mu_1)
page.not_shown("that the residuals of different features may be taken for independent: their covariance is of the second order "
               r"in $\rho$, and that it does not count is the source's claim.")
