r"""E[x sigma'(<x, w>) f_star(x)] by Stein's lemma and Hermite series, for isotropic and for spiked inputs."""

from sympy import Function, KroneckerDelta, Sum, Symbol, factorial, oo, sqrt, symbols
from sympy.core.function import Derivative as OfNode

from hermitex import Derivative, E, He, Result
from hermitex.symbols import rho, z, z1, z2

sigma, f = Function("sigma"), Function("f")
i = Symbol("i", integer=True, nonnegative=True)

page = Result(
    "The population gradient of a neuron",
    r"For inputs of covariance $\Sigma$, the gradient of a neuron's correlation loss lies along $\Sigma$ times the target's "
    r"direction, by the mean product of the slopes, and along $\Sigma$ times the neuron's. In Hermite coefficients the first of "
    r"these is a series in the overlap $\rho$ of the two fields; for four terms, $#1$.",
    source="ba2022",
    assumptions=[r"$x \sim \mathcal{N}(0, \Sigma)$; isotropic is the unit matrix, spiked is that and a part of rank one",
                 r"$\sigma'$ and $\sigma_\star$ have square integrable weak derivatives"],
)
page.notation({"j": "another order",
               r"\Sigma": "the covariance of the inputs", r"\sigma_\star": "the target's link", "a": "any direction",
               (r"\alpha_i^\star", "h_i"): "coefficients of link and activation on Hermite polynomials", "d": "the dimension",
               "n": "the samples",
               z1: "the neuron's field", z2: "the target's, of variance one", rho: "their covariance",
               f: r"the target's link $\sigma_\star$", "X": "the input along any direction $a$"})
page.text("Project the gradient on a direction: $X$ is jointly normal with both fields, and Stein's lemma moves it onto its "
          r"covariances with them; written for the neuron's own field, where they are $1$ and $\rho$:")
law = {(z1, z2): rho}
sigma_1, sigma_2, f_1 = Derivative(sigma), Derivative(Derivative(sigma)), Derivative(f)
page.step("Stein", E(z1*sigma_1(z1)*f(z2), z1, z2, cov=law),
          E(sigma_2(z1)*f(z2), z1, z2, cov=law) + rho*E(sigma_1(z1)*f_1(z2), z1, z2, cov=law),
          digits=10, points=2)
page.step("Stein", E(z2*sigma_1(z1)*f(z2), z1, z2, cov=law),
          rho*E(sigma_2(z1)*f(z2), z1, z2, cov=law) + E(sigma_1(z1)*f_1(z2), z1, z2, cov=law),
          "and for the target's:", digits=10, points=2)
page.text(r"The covariance of $X$ with $z_1$ is the product of $a$ with $\Sigma$ times the neuron's direction, and with $z_2$ "
          r"that with $\Sigma$ times the target's, normalised: the two vectors of the claim. (Some slides leave out $\Sigma$ in "
          "the first.)")

page.text("The Hermite series of the mean product of the slopes. The derivative of $He_k$ is the polynomial below it, times "
          "$k$, and Mehler's formula gives, for all orders,")
k = symbols("k", integer=True, positive=True)
j = symbols("j", integer=True, nonnegative=True)
page.step("differentiation", OfNode(He(k, z), z), k*He(k - 1, z))
page.step("Mehler", E(He(k, z1).diff(z1)*He(j, z2).diff(z2), z1, z2, cov=law),
          k**2*factorial(k - 1)*rho**(k - 1)*KroneckerDelta(j, k), "and nothing between different orders:")
page.step("Mehler", E(sigma_1(z1)*f_1(z2), z1, z2, cov=law),
          Sum(rho**j/factorial(j)*E(He(j + 1, z)*sigma(z), z)*E(He(j + 1, z)*f(z), z), (j, 0, oo)),
          "For every neuron and target whose slopes are square integrable this is a series in the overlap, whose coefficients are "
          "the products of those of the two:")
a, b = symbols("alpha1:5", real=True), symbols("beta1:5", real=True)
student = sum(v*He(k + 1, z1) for k, v in enumerate(a))
teacher = sum(v*He(k + 1, z2) for k, v in enumerate(b))
series = page.step("Mehler", E(student.diff(z1)*teacher.diff(z2), z1, z2, cov=law),
          sum((k + 1)**2*factorial(k)*a[k]*b[k]*rho**k for k in range(4)),
          r"So for four terms of both series ($\beta_i$ for $\alpha_i^\star$):")
h = [He(k, z1)/sqrt(factorial(k)) for k in range(5)]
page.step("Mehler", E(h[3].diff(z1)*h[3].subs(z1, z2).diff(z2), z1, z2, cov=law), 3*rho**2,
          "With normalised polynomials the factor is $i + 1$; for the third:")
page.step("algebra", (i + 1)**2*factorial(i), (i + 1)*factorial(i + 1), "The two forms in use are one:")
page.misprint("the factorial forgotten", E(He(3, z1).diff(z1)*He(3, z2).diff(z2), z1, z2, cov=law), 9*rho**2,
              r"$(i+1)^2$ is printed for unnormalised $He_i$: it misses $i!$, which is $2$ here", source="wu2023slides",
              place="the gradient of a neuron", mended=18*rho**2, change=lambda right: right/factorial(2))
page.variant("the factor of normalised polynomials", E(h[3].diff(z1)*h[3].subs(z1, z2).diff(z2), z1, z2, cov=law), 9*rho**2,
             r"nor is $(i+1)^2$ right for $h_i$, whose factor is $i+1$")
page.therefore(E(student.diff(z1)*teacher.diff(z2), z1, z2, cov=law),
               sum((k + 1)**2*factorial(k)*a[k]*b[k]*rho**k for k in range(4)),
               r"Near initialisation $\rho$ is of the order of one over the root of $d$, and the first non-zero coefficient of "
               "the target decides the gradient.",
               by=[series], package=None)
page.not_shown(r"the gradient on a sample: how far it is from its mean for $n$ of the order of $d$.")
