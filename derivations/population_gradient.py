r"""E[x sigma'(<x, w>) f_star(x)] by Stein's lemma and Hermite series, for isotropic and for spiked inputs."""

from sympy import Function, Symbol, factorial, sqrt, symbols

from hermitex import Derivative, E, He, Result
from hermitex.symbols import rho, z1, z2

sigma, f = Function("sigma"), Function("f")
i = Symbol("i", integer=True, nonnegative=True)

page = Result(
    "The population gradient of a neuron",
    r"For inputs of covariance $\Sigma$, the gradient $\mathbb{E}[x\,\sigma'(\langle x, w\rangle) f_\star]$ of a neuron's "
    r"correlation "
    r"loss lies along $\Sigma\beta_\star$, by the mean product of the slopes, and along $\Sigma w$; in Hermite coefficients its "
    r"first "
    r"coefficient is, in the overlap $\rho$ of the two fields, $\sum_i (i+1)^2\, i!\;\alpha_{i+1}\alpha^\star_{i+1}\rho^i$: $#1$.",
    source="ba2022",
    assumptions=[r"$x \sim \mathcal{N}(0, \Sigma)$; isotropic is $\Sigma = I$, spiked is $\Sigma = I + \theta\mu\mu^\top$",
                 r"$\sigma'$ and $\sigma_\star$ have square integrable weak derivatives"],
)
page.notation({z1: r"the neuron's field $\langle w, x\rangle$", z2: r"the target's, $\langle\beta_\star, x\rangle/\sqrt{\kappa}$",
               rho: "their covariance", f: r"the target's link $\sigma_\star$", r"X": r"the input along any direction $a$",
               r"\kappa": r"$\langle\beta_\star, \Sigma\beta_\star\rangle$"})
page.text(r"Project the gradient on a direction: $X$ is jointly normal with both fields, and Stein's lemma moves it onto its "
          r"covariances with them; written for the neuron's own field, where they are $1$ and $\rho$:")
law = {(z1, z2): rho}
sigma_1, sigma_2, f_1 = Derivative(sigma), Derivative(Derivative(sigma)), Derivative(f)
page.step("Stein", E(z1*sigma_1(z1)*f(z2), z1, z2, cov=law),
          E(sigma_2(z1)*f(z2), z1, z2, cov=law) + rho*E(sigma_1(z1)*f_1(z2), z1, z2, cov=law),
          digits=10, points=2)
page.step("Stein", E(z2*sigma_1(z1)*f(z2), z1, z2, cov=law),
          rho*E(sigma_2(z1)*f(z2), z1, z2, cov=law) + E(sigma_1(z1)*f_1(z2), z1, z2, cov=law),
          "and for the target's:", digits=10, points=2)
page.text(r"The covariance of $X$ with $z_1$ is $\langle a, \Sigma w\rangle$ and with $z_2$ is $\kappa^{-1/2}\langle a, "
          r"\Sigma\beta_\star\rangle$: the two vectors of the claim. (Some slides write $w$ for $\Sigma w$.)")

page.text(r"The Hermite series of the mean product of the slopes. With $He_k'$ the multiple $k\,He_{k-1}$, Mehler's formula gives, "
          r"order by order,")
for k in range(2, 5):
    page.step("Mehler", E(He(k, z1).diff(z1)*He(k, z2).diff(z2), z1, z2, cov=law), k**2*factorial(k - 1)*rho**(k - 1))
page.step("Mehler", E(He(2, z1).diff(z1)*He(4, z2).diff(z2), z1, z2, cov=law), 0, "and nothing between different orders:")
a, b = symbols("alpha1:5", real=True), symbols("beta1:5", real=True)
student = sum(v*He(k + 1, z1) for k, v in enumerate(a))
teacher = sum(v*He(k + 1, z2) for k, v in enumerate(b))
series = page.step("Mehler", E(student.diff(z1)*teacher.diff(z2), z1, z2, cov=law),
          sum((k + 1)**2*factorial(k)*a[k]*b[k]*rho**k for k in range(4)),
          r"So for four terms of both series ($\beta_i$ for $\alpha_i^\star$):")
h = [He(k, z1)/sqrt(factorial(k)) for k in range(5)]
page.step("Mehler", E(h[3].diff(z1)*h[3].subs(z1, z2).diff(z2), z1, z2, cov=law), 3*rho**2,
          r"With normalised polynomials $He_k/\sqrt{k!}$ the factor is $i + 1$; for the third:")
page.step("algebra", (i + 1)**2*factorial(i), (i + 1)*factorial(i + 1), "The two forms in use are one:")
page.misprint("the factorial forgotten", E(He(3, z1).diff(z1)*He(3, z2).diff(z2), z1, z2, cov=law), 9*rho**2,
              r"$(i+1)^2$ is printed for unnormalised $He_i$: it misses $i!$, which is $2$ here", source="wu2023slides",
              place="the gradient of a neuron", mended=18*rho**2, change=lambda right: right/factorial(2))
page.misprint("the factor of normalised polynomials", E(h[3].diff(z1)*h[3].subs(z1, z2).diff(z2), z1, z2, cov=law), 9*rho**2,
              r"nor is $(i+1)^2$ right for $h_i$, whose factor is $i+1$")
page.therefore(E(student.diff(z1)*teacher.diff(z2), z1, z2, cov=law),
               sum((k + 1)**2*factorial(k)*a[k]*b[k]*rho**k for k in range(4)),
               r"Near initialisation $\rho$ is of order $1/\sqrt{d}$, and the first non-zero coefficient of the target decides "
               r"the gradient.",
               by=[series], package=None)
page.not_shown(r"the gradient on a sample: how far it is from its mean for $n$ of the order of $d$.")
