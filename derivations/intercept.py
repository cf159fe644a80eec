r"""Features with a mean carry a free intercept: the labels are centred, and only then."""

from sympy import Derivative, Function, Limit, Subs, oo, sqrt, symbols

import hermitex as hx
from hermitex import E, Result
from hermitex.symbols import Delta, lamda, mu_0, z, z1, z2, z3

g = Function("g")
a, b = symbols("M b", real=True)
s, n, p = symbols("s n p", positive=True)

page = Result(
    "The intercept of features with a mean",
    r"If the mean $\mu_0$ of a feature is not zero, the readout shifts its output by any constant at no cost, and under the "
    r"square loss the labels count with their mean taken off. If $\mu_0$ is zero, they do not.",
    source="gerace2020", place="features with a mean",
    assumptions=[r"the features are equivalent to Gaussian ones of the mean $\mu_0$",
                 "on a new sample the output without the shift is normal, with the covariance $M$ with $z_1$, the target's "
                 "direction"],
)
page.notation({lamda: "the ridge",
               b: "the shift of the output", n: "the number of samples", p: "the number of weights",
               a: "the covariance of the output without the shift with $z_1$", s: "the spread of the rest of it, along $z_2$",
               Delta: "the variance of the label's noise $z_3$"})
page.text(r"The output without the shift is $M z_1 + s z_2$, and a label is $g(z_1) + \sqrt\Delta\,z_3$.")
equal = b/(mu_0*sqrt(p))
page.text("(i) Its cost. Equal weights that shift the output by $b$ add to the objective of a sample")
page.step("the penalty", Limit(lamda*p*equal**2/(2*n), n, oo), 0)
page.text(r"(ii) Its value. Under the square loss the mean error is least where the output has the mean of the label:")
left = g(z1) + sqrt(Delta)*z3 - b - a*z1 - s*z2
mean = E(g(z1), z1)
risk = E(g(z1)**2, z1) + Delta - 2*a*E(z1*g(z1), z1) + a**2 + s**2 - 2*b*mean + b**2
page.step("expanding the square", E(left**2, z1, z2, z3), risk, digits=6, points=1)
page.step("stationarity", Subs(Derivative(risk, b), b, mean), 0)
page.step("without a shift", Subs(risk, b, 0) - Subs(risk, b, mean), E(g(z), z)**2, "What the shift takes off:")
shift = page.let(symbols("gbar", real=True), E(g(z), z), "With the shift")
least = E(left.subs(b, shift)**2, z1, z2, z3)
whole = page.step("expanding the square", least, E(g(z)**2, z) + Delta - 2*a*E(z*g(z), z) + a**2 + s**2 - shift**2, "the error is",
                  digits=6, points=1)
page.text(r"With a vanishing $\mu_0$ there is no such direction, and this term stays in the error.")


def solved(solve):
    """The package's test error with the noise, for relu features and a relu target, at its own overlaps."""
    found = solve(alpha=3, gamma=1.5, lam=0.3, Delta=0.1)
    explained = float(found["M"])
    return ({g: hx.relu, a: explained, s: (float(found["Q"]) - explained**2)**0.5, Delta: 0.1},
            [float(found["test_error"]) + 0.1])


page.variant("the labels not centred", least, E(g(z)**2, z) + Delta - 2*a*E(z*g(z), z) + a**2 + s**2,
             r"right for a vanishing $\mu_0$ only", digits=6)
page.therefore(least, E(g(z)**2, z) - E(g(z), z)**2 + Delta - 2*a*E(z*g(z), z) + a**2 + s**2,
               r"The error at the best shift, in which the labels are centred:", by=[shift, whole],
               package={'hx.theories.random_features("relu", "relu").solve': solved})
page.not_shown("other losses, where the shift is the number at which the mean force vanishes.")
