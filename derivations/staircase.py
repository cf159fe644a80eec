r"""The leap and its staircase: which directions the first step sees, and which only once others are known."""

from sympy import Matrix, Subs, sqrt, symbols

import hermitex as hx
from hermitex import E, Result
from hermitex.symbols import z1, z2, z3

g = z1 + z1*z2 + z1*z2*z3
theory = hx.theories.sgd("z**2/2 + z**3/6 + z", "z1 + z1*z2 + z1*z2*z3")
m1, m2, m3 = (next(x for x in theory.potential.free_symbols if x.name == n) for n in ("m1", "m2", "m3"))
rest = symbols("s", positive=True)

page = Result(
    "The leap and its staircase",
    "A target of several directions has a first order at which its Hermite tensor is not zero; what that tensor sees is learned "
    "first, and the next order is counted with those directions known. The leap is the largest of these orders. For $z_1 + "
    "z_1z_2 + z_1z_2z_3$ each is one: near the equator the second overlap grows at the rate $#1$, driven by the first.",
    source="abbe2023", place="the leap",
    assumptions=[r"$z_1$, $z_2$, $z_3$ are independent standard normals, the projections of the input on orthonormal directions",
                 "a small learning rate, so that the overlaps follow the flow of the correlation loss"],
)
page.notation({(m1, m2, m3): "the student's overlaps with the three directions", rest: "what is left of its unit norm",
               "h": "the student's field"})
page.text(r"(i) The definition. Of the first order there is one coefficient:")
first = page.step("orthogonality", E(g*z1, z1, z2, z3), 1)
page.step("orthogonality", E(g*z2, z1, z2, z3), 0)
page.step("orthogonality", E(g*z3, z1, z2, z3), 0)
page.text(r"With $z_1$ known the second direction has a coefficient of order one, a function of it, and with both known the third:")
page.step("orthogonality", E(g*z2, z2, z3), z1)
page.step("orthogonality", E(g*z3, z2, z3), 0)
page.step("orthogonality", E(g*z3, z3), z1*z2)
page.text(r"So the orders are one, one, one. For $z_1z_2z_3$ nothing is seen below order three, and no step makes it shorter:")
for body in (z1, z1*z2, z1**2 - 1):
    page.step("orthogonality", E(z1*z2*z3*body, z1, z2, z3), 0)
page.step("orthogonality", E(z1*z2*z3*(z1*z2*z3), z1, z2, z3), 1)
page.text(r"(ii) A rotation does not change the orders: the tensor of $z_1z_2$ along two other axes is")
turned = z1*z2
page.step("rotation", E(turned.subs({z1: (z1 + z2)/sqrt(2), z2: (z1 - z2)/sqrt(2)}, simultaneous=True)*(z1**2 - 1), z1, z2), 1)
page.step("the tensor", Matrix([[E((z1**2 - 1)*turned, z1, z2), E(z1*z2*turned, z1, z2)],
                                [E(z1*z2*turned, z1, z2), E((z2**2 - 1)*turned, z1, z2)]]), Matrix([[0, 1], [1, 0]]),
          "of the same size as its own,")
page.text("(iii) The flow climbs the stairs. A student with all three powers has, by the definition of the rates, near the "
          "equator a second overlap that the first one drives, and a third that needs both. The part along the student itself "
          "vanishes there with $m_2$, so that the first drives the second,")
h = m1*z1 + m2*z2 + m3*z3
slope = 1 + h + h**2/2
along = [E(g*slope*x, z1, z2, z3) for x in (z2, z3)]
step2 = page.step("Isserlis", Subs(along[0], (m2, m3), (0, 0)), m1)
page.step("Isserlis", Subs(along[1], (m2, m3), (0, 0)), 0, "and not the third,")
page.step("Isserlis", Subs(along[1], m3, 0), m1*m2, "which starts once the second is known:")
PATHS = {"z1 + z1*z2 + z1*z2*z3": [1, 1, 1], "z1*z2*z3": [3], "z1 + z1*z2*z3": [1, 2], "z1*z2 + z1*z2*z3": [2, 1]}
for target, orders in PATHS.items():
    page.test(f"the staircase of {target}", lambda target=target, orders=orders: (
        lambda found: [s["order"] for s in found.staircase] == orders and found.leap_exponent == max(orders))(hx.exponents(target)))
page.variant("the stairs forgotten", E(g*z2, z2, z3), 0, "the second direction has no coefficient of order one by itself, only "
                                                         "given the first")
page.therefore(Subs(along[0], (m2, m3), (0, 0)), m1, "What drives the second overlap where only the first is known:", by=[step2],
               package={'hx.theories.sgd("z**2/2 + z**3/6 + z", "z1 + z1*z2 + z1*z2*z3").rates["m2"].subs({m2: 0, m3: 0})':
                        theory.rates["m2"].subs({m2: 0, m3: 0})})
page.not_shown("how many samples a leap costs, for a leap above two the power of the dimension that is one less, which is "
               "conjectured for networks in general and proved for some.")
