r"""phi = mu_0 + mu_1 W x/sqrt(d) + mu_star z: the Gaussian equivalence of random features, and its three constants."""

from sympy import Function, Rational, Sum, Symbol, asin, factorial, oo, pi, sqrt
from sympy.core.function import Derivative as OfNode

import hermitex as hx
from hermitex import Derivative, E, He, Result
from hermitex.symbols import c, mu_0, mu_1, mu_star, r, rho, z, z1, z2

sigma = Function("sigma")
k = Symbol("k", integer=True, nonnegative=True)

page = Result(
    "Gaussian equivalence of random features",
    r"The features $\sigma(z)$ of Gaussian inputs, $z$ the field of a row of $W_0$, are equivalent, for every quantity that "
    r"depends on their covariances alone, to $\mu_0 + \mu_1 z$ and independent normals of the variance $\mu_\star^2$, where "
    "$#1$, $#2$ and the last is what the linear part leaves.",
    source="goldt2022", place="Gaussian equivalence",
    assumptions=[r"$x \sim \mathcal{N}(0, I_d)$, the rows of $W_0$ are independent $\mathcal{N}(0, I_d)$; their normalised "
                 r"overlaps $\rho$ are of the order of one over the root of $d$",
                 r"$\sigma$ is square integrable over the standard normal"],
)
page.notation({"W_0": "the rows of the first layer", "d": "the dimension",
               rho: "the overlap of two rows of $W_0$, normalised", z: "the pre-activation of one feature", k: "an order"})
page.text("The three constants are the first Hermite coefficients and what is left:")
page.let(mu_0, E(sigma(z), z))
page.let(mu_1, E(z*sigma(z), z))
page.let(mu_star, sqrt(E(sigma(z)**2, z) - mu_0**2 - mu_1**2))
page.step("Stein", mu_1, E(Derivative(sigma)(z), z))
square = page.step("expanding the square", E((sigma(z) - mu_0 - mu_1*z)**2, z), mu_star**2,
          "What is neither constant nor linear has the second moment")
page.step("orthogonality", E(z*(sigma(z) - mu_0 - mu_1*z), z), 0, "and is uncorrelated with the linear part:")
page.text(r"Two features whose rows overlap by $\rho$ have the covariance of Mehler's formula, a series in it, for every "
          "activation that is square integrable:")
pair = E(sigma(z1)*sigma(z2), z1, z2, cov={(z1, z2): rho})
page.step("Mehler", pair - mu_0**2, Sum(rho**k/factorial(k)*E(He(k, z)*sigma(z), z)**2, (k, 1, oo)))
page.text(r"From the second order on the sum over pairs is negligible, for $\rho^2$, of the order of one over $d$, has no "
          "structure left but its mean. Each order is a derivative by Price's theorem.")
third = He(1, z) + He(2, z)/3 + He(3, z)/5
page.step("Mehler", E(third.subs(z, z1)*third.subs(z, z2), z1, z2, cov={(z1, z2): rho}),
          rho + 2*rho**2/9 + 6*rho**3/25, r"An instance:")
page.step("Price", OfNode(pair, rho), E(Derivative(sigma)(z1)*Derivative(sigma)(z2), z1, z2, cov={(z1, z2): rho}),
          "For every activation:", digits=10, points=2)
page.step("independence", E(Derivative(sigma)(z1)*Derivative(sigma)(z2), z1, z2), mu_1**2, digits=10, points=2)

page.text(r"Three activations whose constants are elementary, as they stand in most tables:")
page.step("closed form", E(z*hx.erf(z), z), 2/sqrt(3*pi))
page.step("closed form", E(hx.erf(z)**2, z) - E(z*hx.erf(z), z)**2, 2/pi*asin(Rational(2, 3)) - 4/(3*pi))
page.step("closed form", E(hx.sign(z)**2, z) - E(z*hx.sign(z), z)**2, 1 - 2/pi)
page.step("closed form", E(hx.relu(z)**2, z) - E(hx.relu(z), z)**2 - E(z*hx.relu(z), z)**2, Rational(1, 4) - 1/(2*pi))
page.variant("the root forgotten", E((sigma(z) - mu_0 - mu_1*z)**2, z), sqrt(E(sigma(z)**2, z) - mu_0**2 - mu_1**2),
             r"a slide calls the variance itself $\mu_\star$; with that number in place of $\mu_\star$ the test error of ridge "
             "regression is 0.155 where it is 0.3555")
unspiked = hx.mu_star(sigma).squared.node.subs({r: 0, c: 1})
page.same("the package's residual", mu_star**2, unspiked, "The package has it as its conditional residual, without a spike and "
                                                          "at unit variance:")
node = [hx.mu(sigma, i).node.subs({r: 0, c: 1}) for i in (0, 1)]
page.therefore([(mu_0, E(sigma(z), z)), (mu_1, E(z*sigma(z), z)), (E((sigma(z) - mu_0 - mu_1*z)**2, z), mu_star**2)],
               words="The three constants, for every activation:", by=[mu_0, mu_1, square],
               package={f"hx.{text}.node.subs({{hx.symbols.r: 0, hx.symbols.c: 1}})": one for text, one in (
                   ("mu(sigma, 0)", node[0]), ("mu(sigma, 1)", node[1]), ("mu_star(sigma).squared", unspiked))})
page.not_shown("the equivalence itself: that nothing but the covariances of the features counts in the limit (a theorem for "
               "shallow generalised linear models, whose proof is the source's).")
