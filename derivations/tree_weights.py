r"""sum_D P_D t^D = sum_m g_m^2 (sum_q c_q^2 t^q)^m: how the variance of a tree-like target is spread over degrees."""

from sympy import Rational, Subs, sqrt, symbols

import hermitex as hx
from hermitex import E, He, Result
from hermitex.symbols import z1, z2

a, t = symbols("a t", positive=True)
c2, c3 = symbols("c_2 c_3", positive=True)
g_m = symbols("g_2", real=True)

page = Result(
    "The weights of a tree-like target",
    "A target $g(h)$ of a hidden feature $h$ that is a sum of many Hermite polynomials of degrees $q$, with the squares of "
    "$c_q$ for their shares, has in its inputs the weight of degree $D$ that a generating function gives. For the square of an "
    "$h$ of degrees two and three in the shares one and three quarters the weight of degree five is $#1$.",
    source="treelike2025", place="the degrees of the target",
    assumptions=["by the central limit theorem the parts of $h$ of each degree $q$ are independent standard normals times $c_q$",
                 "the shares add to one, and $g$ is square integrable"],
)
page.notation({"g": "the target's link", "h": "the hidden feature", "q": "a degree of it", "D": "a degree of the target",
               (z1, z2): "the parts of $h$ of degrees two and three, normalised", (c2, c3): "the square roots of their shares",
               a: "any such root", t: "what counts a degree", g_m: "a coefficient of $g$ on orthonormal polynomials"})
page.text("(i) A Hermite polynomial of a sum falls into products, each of one degree in the inputs: with $a$ for $c_2$ and "
          r"$\sqrt{1 - a^2}$ for $c_3$,")
rest = sqrt(1 - a**2)
second = a**2*He(2, z1) + 2*a*rest*z1*z2 + (1 - a**2)*He(2, z2)
page.step("the addition theorem", He(2, a*z1 + rest*z2), second)
third = a**3*He(3, z1) + 3*a**2*rest*He(2, z1)*z2 + 3*a*(1 - a**2)*z1*He(2, z2) + rest**3*He(3, z2)
page.step("the addition theorem", He(3, a*z1 + rest*z2), third)
page.text(r"(ii) The products are orthogonal, and their mean squares are the terms of a power, here the second and the third:")
page.step("orthogonality", E(He(2, z1)*z1*z2, z1, z2), 0)
for order, parts in ((2, (a**2*He(2, z1), 2*a*rest*z1*z2, (1 - a**2)*He(2, z2))),
                     (3, (a**3*He(3, z1), 3*a**2*rest*He(2, z1)*z2, 3*a*(1 - a**2)*z1*He(2, z2), rest**3*He(3, z2)))):
    factorial = 2 if order == 2 else 6
    counted = sum(E(p**2, z1, z2)*t**(2*(order - k) + 3*k) for k, p in enumerate(parts))/factorial
    page.step("the generating function", counted, (a**2*t**2 + (1 - a**2)*t**3)**order,
              "Each part counted with its degree, two for the first variable and three for the second," if order == 2 else "")
page.text(r"(iii) The square. Its coefficient of order two is that of $He_2$, whose square over $2!$ counts; it is")
square = page.step("orthogonality", E(z1**2*He(2, z1), z1), 2)
share = page.let(symbols("c_22", positive=True), Rational(1, 4), "and for polynomials of degrees two and three with equal "
                                                                 "coefficients, whose squares are 2! and 3!, the share of the "
                                                                 "first is")
middle = page.step("the middle term", E((2*a*rest*z1*z2)**2, z1, z2)/2, 2*a**2*(1 - a**2),
                   "The term of degree five in the square is")
made = hx.theories.tree("z**2", P={2: 1, 3: 1}, epsilon1=Rational(1, 2))
value = page.step("the shares put in", Subs(2*a**2*(1 - a**2), a, sqrt(share)), Rational(3, 8), "with these shares")
page.test("the package's weights", lambda: [made.weight(D) for D in range(3, 8)] == [0, Rational(1, 8), Rational(3, 4),
                                                                                     Rational(9, 8), 0])
page.variant("the two orders of a product counted once", E((2*a*rest*z1*z2)**2, z1, z2)/2, a**2*(1 - a**2),
             "both factors may carry the degree three")
page.therefore(E(z1**2*He(2, z1), z1)**2/2*Subs(2*a**2*(1 - a**2), a, sqrt(share)), Rational(3, 4),
               r"The weight of degree five:", by=[square, value],
               package={'hx.theories.tree("z**2", P={2: 1, 3: 1}, epsilon1=1/2).weight(5)': made.weight(5)})
page.not_shown("that the parts are independent normals at a finite number of directions, and that a kernel or a network learns "
               "the degrees in this order; the thresholds of the third scenario are the source's theorem.")
