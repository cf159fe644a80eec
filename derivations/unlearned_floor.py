r"""sharp = E Var(g|P_U z) - E|h_1(P_U z)|^2: what ridge on n, p ~ d does not learn."""

from sympy import symbols

from hermitex import E, He, Result
from hermitex.symbols import z1, z2

a, b, e = symbols("a b e", real=True)
g = a*z1 + b*z1*z2 + e*z1*He(2, z2)

page = Result(
    "What cannot be learned once some directions are known",
    "With the first direction known the variance that it leaves of $g$ bounds a readout of that direction alone. "
    "Ridge on features also fits what is linear in the other direction, with a coefficient that depends on the first, and only "
    "$#1$ "
    "is left.",
    source="dandi2023giant", place="the part of the target that is not learned",
    assumptions=["$z_1$ is known, $z_2$ is a direction across it, both standard normal and independent",
                 "many samples and neurons for each dimension, and features of every $z_1$"],
)
page.notation({"g": "the target, of both", (z1, z2): "the known direction and the other", (a, b, e): "its coefficients"})
page.text("(i) The mean given what is known, and what it leaves:")
page.step("independence", E(g, z2), a*z1)
page.step("orthogonality", E(g**2, z1, z2) - E(E(g, z2)**2, z1), b**2 + 2*e**2)
page.text("(ii) The slope in the other direction depends on the first,")
page.step("Stein", E(z2*g, z2), b*z1)
page.step("its square", E(E(z2*g, z2)**2, z1), b**2)
page.text("(iii) A fit with any two functions of $z_1$, a mean and a slope, has its least error at these:")
q0, q1 = symbols("q_0 q_1", real=True)
page.notation({(q0, q1): "the fit's mean and slope at one $z_1$"})
page.step("expanding the square", E((g - q0 - q1*z2)**2, z2), (q0 - a*z1)**2 + (q1 - b*z1)**2 + 2*e**2*z1**2)
left = page.step("what is left", E(E(g**2, z2) - E(g, z2)**2 - E(z2*g, z2)**2, z1), 2*e**2)
page.variant("the slope forgotten", E(E(g**2, z2) - E(g, z2)**2 - E(z2*g, z2)**2, z1), b**2 + 2*e**2,
             "right for a readout of the first direction alone")
page.therefore(E(E(g**2, z2) - E(g, z2)**2 - E(z2*g, z2)**2, z1), 2*e**2, "The floor:", by=[left],
               package={"hx.theories.floor(...)": lambda floor: (
                   {e: 3.0}, [floor("z1 + 2*z1*z2 + 3*z1*He2(z2)", [[1, 0]])["sharp"]])})
page.not_shown("that no readout of that many features does better, which follows from the replica result for the learning curve.")
