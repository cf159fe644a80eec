r"""The generative exponent: the first order that the label sees, and its variational form over label transformations."""

from sympy import Eq, Function, Rational, Subs, Symbol, exp, factorial, pi, sign, sqrt, symbols

import hermitex as hx
from hermitex import E, He, Result
from hermitex.symbols import Delta, z, z1

T, zeta, g = Function("T"), Function("zeta"), Function("g")
k = Symbol("k", integer=True, positive=True)
u = Symbol("u", positive=True)

page = Result(
    "The generative exponent",
    r"Let $\zeta_k(Y)$ be the mean of $h_k(z)$ given the label and $\lambda_k$ its root mean square. The generative exponent, "
    r"the first order $k \ge 1$ with $\lambda_k \ne 0$, is the least information exponent of $T(Y)$ over all transformations $T$ "
    "of the label, and never exceeds that of $Y$. It can exceed two: $#1$ where the orders below vanish.",
    source="damian2024",
    assumptions=[r"$Y \sim P(\cdot\,|\,z)$ with $z \sim \mathcal{N}(0, 1)$; $T(Y)$ square integrable; nothing is asked of $Y$ "
                 "itself"],
)
page.notation({"g": "the link of the label to the field",
               Delta: "the variance of the label's noise",
               r"\lambda_2": "that of order two",
               r"k^\star": r"the generative exponent: the first order at which $\lambda_k$ is not zero", "h_2": "that of order two",
               ("u_-", "u_+"): "the two values of $u$ that have one label",
               "h_k": "the orthonormal Hermite polynomial of order $k$",
               zeta: "the mean of $h_k(z)$ given the label, of one order $k$", r"\lambda_k": r"the root mean square of $\zeta_k$",
               r"\ell": "the information exponent of $Y$ itself"})
page.text(r"(i) The variational form. By the tower property the coefficient of $T(Y)$ is the overlap of $T$ with $\zeta_k$, here "
          "of any link under noise:")
label, value = g(z) + sqrt(Delta)*z1, Symbol("y", real=True)
hermite = He(k, z)/sqrt(factorial(k))
page.step("tower property", E(hermite*T(label), z, z1), E(E(hermite, Eq(label, value)).subs(value, label)*T(label), z, z1))
page.text(r"By Cauchy and Schwarz this is at most $\lambda_k$ times the norm of $T$, reached by $\zeta_k$ itself. In one line, for "
          "every $T$, the square that is left is not negative (here over a label that is a standard normal):")
overlap, square, length = E(T(z)*zeta(z), z), E(zeta(z)**2, z), E(T(z)**2, z)
page.step("expanding the square", E((T(z) - overlap/square*zeta(z))**2, z), length - overlap**2/square)
page.text(r"It vanishes where $T$ is $\zeta_k$. So $\lambda_k \ne 0$ exactly if some $T(Y)$ has a non-zero coefficient of order "
          r"$k$, and the identity shows $k^\star \le \ell$. One map is a certificate: for $He_3$, whose own coefficients of "
          "order one and two vanish, the cube gives")
page.step("orthogonality", E(He(3, z)*z, z), 0)
page.step("orthogonality", E(He(3, z)**3*z, z), 324)

page.text("(ii) Labels of two values. $T(Y)$ is affine in $Y$, so nothing is gained: generative and information exponent agree. "
          r"At the values $\pm1$ any map is the affine one through its two values $T_1$ and $T_2$:")
a, b, y = symbols("T_1 T_2 y", real=True)
for label, value in ((1, a), (-1, b)):
    page.step("interpolation", Subs((a + b)/2 + (a - b)/2*y, y, label), value)

page.text("(iii) A zero that no symmetry explains: the target $z^2 e^{-z^2}$. In the letter $u$ for $z^2$ a label has two "
          "preimages $u_- < 1 < u_+$ with the same label, each weighted by the density over the slope. The weight of $u - 1$, "
          "which is $h_2$ but for a factor, is the same on both up to its sign:")
density = exp(-u/2)/sqrt(2*pi)
slope = 2*sqrt(u)*exp(-u)*(1 - u)
page.step("change of variables", (u - 1)*density/abs(slope), sign(u - 1)/(2*sqrt(2*pi)*sqrt(u*exp(-u))))
page.text(r"so the two branches cancel and $\lambda_2$ vanishes; the target is even, so the odd orders do, and the first order "
          "is four:")
page.step("closed form", E(z**2*exp(-z**2)*He(2, z), z), 0)
fourth = page.step("closed form", E(z**2*exp(-z**2)*He(4, z), z), Rational(-4, 9)/sqrt(3))

page.text("(iv) The package's exponents:")
rows = {"z**3 - 3*z": (3, 1), "z**2": (2, 2), "sign(z**3 - 3*z)": (1, 1), "z**2*exp(-z**2)": (4, 4), "He4(z)": (4, 2)}
for target, pair in rows.items():
    page.test(f"the exponents of {target}", lambda target=target, pair=pair: (
        lambda found: (found.information_exponent, found.generative_exponent) == pair)(hx.exponents(target)))
page.variant("the wrong branch sign", (u - 1)*density/abs(slope), 1/(2*sqrt(2*pi)*sqrt(u*exp(-u))),
             r"without the sign of $u - 1$ the branches would add up, and $\lambda_2$ would not vanish")
page.therefore(E(z**2*exp(-z**2)*He(4, z), z), -4*sqrt(3)/27,
               r"The first coefficient of $z^2e^{-z^2}$ that is not zero:",
               by=[fourth], package={'hx.expand("z**2*exp(-z**2)", basis="monic", order=4).coefficients[4]':
                                     hx.expand("z**2*exp(-z**2)", basis="monic", order=4).coefficients[4]})
page.not_shown("that the exponent decides how many samples an algorithm needs; that is the source's theorem.")
