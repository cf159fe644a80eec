r"""Closed-form bounds on the risk after one giant gradient step: Eqs. (26), (27), (28) and (132)."""

import numpy as np
from sympy import Function, Matrix, Rational, Subs, cos, exp, nsimplify, sin, sqrt, symbols
from sympy.core.function import Derivative as OfNode

import hermitex as hx
from hermitex import Derivative, E, Result
from hermitex.symbolic.activations import activation
from hermitex.symbols import c, gamma, kappa, m, r, z, z1, z2, zeta
from hermitex.theories.one_step import bias, psi, q1, q2
from hermitex.theories.risks.formula import formulas as formulas_of

g = Function("g")
rho = 1 - gamma**2
mu_0, mu_1, mu_22, h, h1, g_2 = symbols("mu_0 mu_1 mu_22 h h1 g_2", real=True)
sigma = Function("sigma")

page = Result(
    "Bounds on the risk after one giant gradient step",
    "Whatever the sample size, width and ridge, the test error lies above the squared distance of the target from the span of "
    r"$\mu_0$, $\kappa\mu_1$ and, through the target's other coordinate, the multiple $\mu_1$ of it; that of $\mu_0$ alone is "
    "reached at infinite ridge, so that it bounds the error at the best ridge, and not that at a given one. "
    r"Both are elementary: with $\mu_0$ alone it is $g_2 - t_1^2/G_{11}$.",
    source="cui2024", place="Eqs. (26)-(28), (132)",
    assumptions=[r"the test error of Result 3.3", r"a product of functions is their Gaussian product over $\kappa$"],
)
page.notation({symbols("upper"): "the upper bound",
               r"\theta_\perp": "the rest of the target's direction, across the spike", r"\lambda": "the ridge",
               r"\rho": r"what is left of the target's direction across the spike, squared: $1 - \gamma^2$",
               h: r"the mean of the target given $\kappa$", h1: "its slope in the coordinate $z_1$ across the spike",
               m: "the mean of the readout", zeta: "its overlap with the spike", psi: r"its overlap with $\theta_\perp$",
               q1: "the square of its image across the spike, for one neuron",
               q2: "the squared norm of the second layer for one neuron", g_2: "the second moment of the target",
               (r"G", r"t"): r"the Gram matrix of $\mu_0$ and $\kappa\mu_1$, and their overlaps with $h$",
               symbols("o1"): r"the product of $\mu_1$ and $h_1$", symbols("n1"): r"that of $\mu_1$ with itself"})
target = g(gamma*kappa + sqrt(rho)*z1)
mean = mu_0*m + kappa*mu_1*zeta
spread = mu_1**2*(q1 - psi**2) + mu_22*q2
field = page.let(symbols("omega", real=True), mean + mu_1*psi*z1 + sqrt(spread)*z2, shown=False)
page.text(r"At fixed $\kappa$ the test error is that of the Gaussian field $#1$. It splits:", field)
page.step("independence", E((target - field)**2, z1, z2),
          E((target - mean - mu_1*psi*z1)**2, z1) + spread, digits=8, points=1)
page.text(r"The last terms are not negative: $q_1 \ge \psi^2$, because $\psi$ is its projection on the unit vector "
          r"$\theta_\perp$. So the error exceeds the minimum of the first over $m$, $\zeta$ and $\psi$, whose square expands in "
          "the target's own coefficients:")
page.step("expanding the square", E((target - mean - mu_1*psi*z1)**2, z1),
          E(target**2, z1) - 2*mean*E(target, z1) + mean**2 - 2*mu_1*psi*E(z1*target, z1) + mu_1**2*psi**2, digits=10, points=1)
page.text(r"Averaged over $\kappa$ it is quadratic in $(m, \zeta)$, and separately in $\psi$:")
G11, G12, G22, t1, t2, n1, o1 = symbols("G11 G12 G22 t1 t2 n1 o1", real=True)
G, t = Matrix([[G11, G12], [G12, G22]]), Matrix([t1, t2])
quadratic = g_2 - 2*(t1*m + t2*zeta) + G11*m**2 + 2*G12*m*zeta + G22*zeta**2 - 2*o1*psi + n1*psi**2
best = G.LUsolve(t)
at_best = {m: best[0], zeta: best[1], psi: o1/n1}
page.name(symbols("S"), quadratic)
for unknown in (m, zeta, psi):
    page.step("stationarity", Subs(Derivative(quadratic, unknown), tuple(at_best), tuple(at_best.values())), 0)
page.step("the value there", Subs(quadratic, tuple(at_best), tuple(at_best.values())), g_2 - (t.T*G.inv()*t)[0] - o1**2/n1)
page.step("with $\\mu_0$ alone", Subs(g_2 - 2*t1*m + G11*m**2, m, t1/G11), g_2 - t1**2/G11,
          r"At $\lambda \to \infty$ only $m$ is left, since nothing regularises the direction of all ones:")
page.step("differentiation", OfNode(E(sigma(r*kappa + sqrt(c)*z), z), r), kappa*E(Derivative(sigma)(r*kappa + sqrt(c)*z), z),
          r"The second function is the derivative of the first in the spike's size:")

page.text("Two pairs for which the bounds are elementary. For the sine as activation and target, the spike along the target, "
          r"$\mu_0$ is")
smooth = exp(-c/2)*sin(r*kappa)
page.step("closed form", E(sin(r*kappa + sqrt(c)*z), z), smooth)
upper = E(sin(kappa)**2, kappa) - E(sin(kappa)*smooth, kappa)**2/E(smooth**2, kappa)
found = hx.theories.bounds("sin", "sin", r=1, c=1, gamma=1).expr["upper"]
bound = page.same("the package's upper bound", upper, found, name=symbols("upper"))
page.step("the minimum over the learning rate", Subs(upper, r, 1), 0, "which vanishes at one learning rate, the minimum (28).")
page.step("closed form", E(hx.erf(r*kappa + sqrt(c)*z), z).subs(r, sqrt(1 + 2*c)), hx.erf(kappa),
          "For the error function the target itself is reached, at one size of the spike:")


page.text(r"Numbers at general $\gamma$: for the error function and the sine every ingredient is elementary, with a bias $b$ "
          "(132):")
s_ = symbols("s", positive=True)


def ingredients(r_, c_, gamma_, b_):
    """mu_0, mu_1, h, h_1 in closed form, each checked above or by Stein's lemma."""
    u, rest = r_*kappa + b_, 1 - gamma_**2
    first = hx.erf(u/sqrt(1 + 2*c_))
    return first, first.diff(kappa)/r_, exp(-rest/2)*sin(gamma_*kappa), sqrt(rest)*exp(-rest/2)*cos(gamma_*kappa)


page.step("closed form", E(hx.erf(r*kappa + bias + sqrt(c)*z), z), hx.erf((r*kappa + bias)/sqrt(1 + 2*c)))
page.step("closed form", E(z*sin(gamma*kappa + s_*z), z), s_*exp(-s_**2/2)*cos(gamma*kappa),
    r"and $h_1$, with $s$ for the root of $\rho$:")


def digits(*pairs):
    """The digits to which numbers of the package agree with formulas, over all pairs."""
    return Result.numbers((("a number", formula, number) for number, formula in pairs), floor=0.0)


def formulas(r_, c_, gamma_, b_=0):
    """(upper, lower) from Gaussian averages at 20 digits."""
    one, slope, along, across = ingredients(*(nsimplify(x, rational=True) for x in (r_, c_, gamma_, b_)))
    two = kappa*slope
    total = E(sin(kappa)**2, kappa).evalf(20)
    products = (one**2, one*two, two**2, along*one, along*two, slope**2, slope*across)
    a11, a12, a22, b1, b2, n, o = (E(e, kappa).evalf(20) for e in products)
    projected = (a22*b1**2 - 2*a12*b1*b2 + a11*b2**2)/(a11*a22 - a12**2)
    return total - b1**2/a11, total - projected - o**2/n


def package_numbers():
    """(26) and (27) at a point, (28) at its minimum, (132) at its bias."""
    at = hx.theories.bounds("erf", "sin", r=0.9, c=1.2, gamma=0.8)
    upper_, lower_ = formulas(0.9, 1.2, 0.8)
    # A spike against the target is one along the mirrored target.
    against, along = (hx.theories.bounds("relu", g_, r=0.9, gamma=s) for g_, s in (("sin(z) + z**2", -1), ("z**2 - sin(z)", 1)))
    return digits((at.upper, upper_), (at.lower, lower_), (against.upper, along.upper), (against.lower, along.lower))


def at_the_minimum():
    """The least upper bound over the learning rate lies where nearby rates give more."""
    best_ = hx.theories.bounds("erf", "sin", optimise=True).to_dict()
    value = best_["upper"]
    here, less, more = (float(formulas(best_["r_upper"]*(1 + step), 1.0, 1.0)[0]) for step in (0, -1e-3, 1e-3))
    return digits((value, here)) if here < less and here < more else False


def with_a_bias():
    """The best bias lies where nearby ones give more."""
    found = hx.theories.bounds("erf", "sin", r=0.9, c=1.0, gamma=0.9, bias=True)
    here, less, more = (float(formulas(0.9, 1.0, 0.9, found.b_lower + step)[1]) for step in (0, -1e-3, 1e-3))
    return digits((found.lower_bias, here)) if here <= less and here <= more else False


def realised():
    """The functions that realise the bounds have these risks, one kind of features and a vocabulary; gamma = 1."""
    x, w = Result.normal_grid()
    pairs = []
    for more in ({"c": 1.2}, {"vocabulary": [1, -0.6], "norms": [1.2, 0.9]}):
        at = hx.theories.bounds("erf", "exp(-z**2/2) + sin(z)", r=0.9, **more)
        made = at.functions
        pairs += [(float(bound), w @ (made["target"](x) - made[which](x))**2)
                  for which, bound in (("upper", at.upper), ("lower", at.lower))]
    return digits(*pairs)


page.test("the functions that realise (26) and (27)", realised)
def closed_forms():
    """The formulas in r, c and gamma, with letters, give the numbers of other routes."""
    found = hx.theories.bounds("sin", "sin", r=0.7, c=1.3, gamma=0.6)
    expr = formulas_of(activation("sin"), activation("sin"), aligned=False)
    at = {"r": 0.7, "c": 1.3, "gamma": 0.6}
    return digits(*((getattr(found, k), expr[k].subs({x: at[x.name] for x in expr[k].free_symbols}).evalf(20))
                    for k in ("upper", "lower")))


def along_the_rate():
    """A batch and features with a mean: r and c at the best rate are those of Result 3.1, from moments by nodes."""
    x, w = Result.normal_grid()
    target, alpha0, noise = np.sin(x) + x**2/2, 2.0, 0.1
    # relu: E relu = E relu'' = 1/sqrt(2 pi), E relu' = 1/2, Var relu' = 1/4
    start = 1/np.sqrt(2*np.pi)
    gap = w @ target - start
    rest = w @ (target - start)**2 + noise
    size = np.sqrt((w @ (x*target))**2 + rest/alpha0)
    found = hx.theories.bounds("relu", "sin(z) + z**2/2", alpha0=alpha0, Delta=noise, optimise=True).to_dict()
    pairs = [(found["gamma"], w @ (x*target)/size)]
    for which in ("upper", "lower"):
        rate = found[f"eta_over_beta_{which}"]
        if rate is not None:
            c_ = (1 + rate*start*gap)**2 + rate**2*rest/alpha0/4
            at = hx.theories.bounds("relu", "sin(z) + z**2/2", r=rate/2*size, c=c_, gamma=found["gamma"])
            pairs += [(found[f"r_{which}"], rate/2*size), (found[which], getattr(at, which))]
    return digits(*pairs)


def many_points():
    """A map of an activation without closed forms, looked up in a table: (26) by nodes at some of its points."""
    rates, sizes = np.linspace(0.2, 2.5, 40), np.linspace(0.6, 1.9, 40)
    found = hx.theories.bounds("tanh", "sin", r=rates[:, None], c=sizes[None, :], gamma=0.7)
    x, w = Result.normal_grid()
    along = np.sin(0.7*x)*np.exp(-0.51/2)
    pairs = []
    for i, j in ((0, 3), (17, 30), (39, 39)):
        mean = np.tanh(rates[i]*x[:, None] + np.sqrt(sizes[j])*x) @ w
        pairs.append((found.upper[i, j], (1 - np.exp(-2))/2 - (w @ (along*mean))**2/(w @ mean**2)))
    return digits(*pairs)


page.test("the path along the learning rate", along_the_rate)
page.test("many points at once", many_points)
page.test("the formulas of $r$, $c$ and $\\gamma$", closed_forms)
page.test("(26) and (27) in numbers", package_numbers, "The package's numbers from these formulas:")
page.test("(28) in numbers", at_the_minimum)
page.test("(132) in numbers", with_a_bias)
page.variant("$\\mu_1$ without its $\\kappa$", E(kappa*sin(kappa)*exp(-kappa**2/4), kappa), E(sin(kappa)*exp(-kappa**2/4), kappa),
             r"the second function is $\kappa\mu_1$: for odd $\sigma$ and $g$ a slide's bare $\mu_1$ is even, has no overlap "
             r"with the target and gives the upper bound twice; here with a Gaussian for $\mu_1$ and the sine",
             mended=Rational(2, 3)**Rational(3, 2)*exp(-Rational(1, 3)))
page.therefore(symbols("upper"), upper, "The upper bound for the sine as activation and target, along the spike:", by=[bound],
               package={'hx.theories.bounds("sin", "sin", r=1, c=1, gamma=1).expr["upper"]': found})
page.not_shown("that the bounds are reached by any finite sample; the test error of Result 3.3 is the source's claim.")
