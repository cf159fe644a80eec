r"""A kernel learns the part of degree k from n >> d^k samples: eigenvalues of order d^-k, and a cut at 1/n."""

from sympy import Limit, Rational, Subs, binomial, factorial, oo, pi, sqrt, symbols

import hermitex as hx
from hermitex import E, He, Result
from hermitex.symbols import rho, z, z1, z2

d, kappa, k = symbols("d kappa k", positive=True)
eta, nu = symbols("eta nu", positive=True)
c = symbols("c_0:4", real=True)

page = Result(
    "What a kernel can learn",
    r"A kernel of inner products learns from $d^\kappa$ samples the part of the target of degree below $\kappa$ and nothing of "
    "the rest: for the sign, between the first and the third power, the error is $#1$.",
    source="mei2022hypercontractivity", place="the staircase of kernel ridge regression",
    assumptions=[r"inputs are standard normals in dimension $d$ (or uniform on a sphere), $\kappa$ is no integer",
                 r"the deterministic equivalent of kernel ridge regression: a mode of eigenvalue $\eta$ keeps the share "
                 r"$\nu/(\eta + \nu)$ of its part, with $\nu$ of the order of one over the samples"],
)
page.notation({rho: "the normalised inner product of two inputs", (eta, nu): "an eigenvalue, and the cut", d: "the dimension",
               kappa: "the exponent of the samples", k: "a degree", c[0]: "a Hermite coefficient of the activation"})
page.text("(i) The kernel. Random features of any activation have a power series in the inner product (Mehler); up to order "
          "three,")
feature = sum(c[j]*He(j, z1)/factorial(j) for j in range(4))
page.step("Mehler", E(feature*feature.subs(z1, z2), z1, z2, cov={(z1, z2): rho}),
          sum(c[j]**2*rho**j/factorial(j) for j in range(4)))
page.text(r"(ii) Its eigenvalues. A power of $\rho$ is shared by the polynomials of its degree in $d$ letters. Those of degree "
          "$k$ number the combinations of $k$ letters with repetition, of the order $d^k$, so that each has an eigenvalue of "
          "the order $d^{-k}$:")
for order in (2, 3):
    page.step(f"counting polynomials of degree {order}", Limit(binomial(d + order - 1, order).expand(func=True)/d**order, d, oo),
              Rational(1, factorial(order)))
page.text(r"(iii) The cut. At $d^\kappa$ samples a mode keeps the share $\nu/(\eta + \nu)$. Between the first and the second "
          "degree, say at the exponent three halves, the modes of degree one are learned and those of degree two are not; the "
          "third follow:")
for order, left in ((1, 0), (2, 1), (3, 1)):
    page.step(f"the share of degree "
              f"{order}", Limit(Subs(nu/(eta + nu), (eta, nu), (d**-order, d**Rational(-3, 2))).doit(), d, oo), left)
page.step("the share at any exponent", Subs(nu/(eta + nu), (eta, nu), (d**-k, d**-kappa)), 1/(1 + d**(kappa - k)),
          "In general the share goes to zero for degrees below the exponent, and to one above:")
page.text(r"(iv) The error is what is left: of the sign, whose mean vanishes,")
whole = page.step("closed form", E(hx.sign(z)**2, z), 1)
linear = page.step("closed form", E(z*hx.sign(z), z), sqrt(2/pi))
page.step("closed form", E(He(2, z)*hx.sign(z), z), 0)
page.step("closed form", E(He(3, z)*hx.sign(z), z)**2/factorial(3), 1/(3*pi), "(the next plateau lies lower by this)")
page.step("Parseval", E(hx.relu(z)**2, z) - E(hx.relu(z), z)**2 - E(z*hx.relu(z), z)**2, Rational(1, 4) - 1/(2*pi),
          "and of the rectifier, after its linear part,")
page.test("the package's plateaus", lambda: all(
    abs(hx.theories.kernel_limit(target).solve(kappa=at)["test_error"] - float(value)) < 1e-12 for target, at, value in (
        ("sign", 0.5, 1), ("sign", 2.5, 1 - 2/pi), ("sign", 3.5, 1 - 2/pi - 1/(3*pi)), ("relu", 1.5, Rational(1, 4) - 1/(2*pi)))))
page.variant("the factorial forgotten", E(He(3, z)*hx.sign(z), z)**2, 1/(3*pi), mended=2/pi,
             words=r"$He_3$ has the mean square 3!, and the weight is that of a unit vector")
page.misprint("the part that is learned", E(hx.sign(z)**2, z) - E(z*hx.sign(z), z)**2, E(z*hx.sign(z), z)**2,
              "the error is the weight above the degree, not up to it", source="loureiro2024slides",
              place="the theorem on kernel methods", mended=1 - 2/pi, change=lambda right: 1 - right)
page.therefore(E(hx.sign(z)**2, z) - E(z*hx.sign(z), z)**2, 1 - 2/pi, r"The error for the sign, from $d^{3/2}$ samples:",
               by=[whole, linear], package={'1 - hx.theories.kernel_limit("sign").weights[1]': 1 - hx.theories.kernel_limit(
                   "sign").weights[1]})
page.not_shown("that the deterministic equivalent holds for these kernels, and what happens at an integer exponent, where a "
               "degree is fitted in part.")
