r"""The training objective falls with the ridge at the rate q_w/(2 alpha): the derivative of a minimum is explicit."""

from sympy import Derivative, Function, Subs, symbols

import hermitex as hx
from hermitex import Result
from hermitex.symbols import alpha, lamda

page = Result(
    "The envelope identity",
    r"For every convex loss the least objective of a sample, as a function of the ridge, has the slope $q_w/(2\alpha)$, where "
    r"$q_w$ is the mean square of the weights and $\alpha$ the number of samples for one of them.",
    source="gerace2020", place="the training loss",
    assumptions=[r"$\hat w$ minimises the loss of the sample and half the ridge times the squared norm over $p$ weights and $n = "
                 r"\alpha p$ samples",
                 r"the loss is convex and differentiable at the minimum, so that the minimum is a zero of the gradient"],
)
page.notation({lamda: "the ridge",
               r"\hat w": "the weights at the minimum",
               r"\ell": "the loss of the whole sample, as a function of one of its weights",
               "w": "that weight as a function of the ridge; the others move in the same way"})
ell, w = Function("ell"), Function("w")
slope, moved = hx.Derivative(ell), hx.Derivative(w)
page.text(r"(i) Any loss. The objective depends on the ridge through the penalty and through the weights:")
chain = page.step("the chain rule", Derivative(ell(w(lamda)) + lamda*w(lamda)**2/2, lamda),
                  w(lamda)**2/2 + (slope(w(lamda)) + lamda*w(lamda))*moved(lamda))
page.text("At the minimum the bracket is the gradient, which vanishes; what is left is half the square of the weight.")
force, rate_ = symbols("G wdot", real=True)
weight, total = symbols("w_i", real=True), symbols("n", positive=True)
envelope = page.step("the gradient vanishes", Subs(weight**2/2 + (force + lamda*weight)*rate_, force, -lamda*weight), weight**2/2,
                     r"For each of them, with $G$ for the slope of the loss and any rate $\dot w$ of the weight,")

page.text(r"(ii) The square loss in full, along one singular direction of the features of strength $s$, where the labels are $y$:")
s, y = symbols("s y", positive=True)
x = symbols("x", real=True)
best = s*y/(s**2 + lamda)
objective = (y - s*x)**2/2 + lamda*x**2/2
page.step("stationarity", Subs(Derivative(objective, x), x, best), 0)
least = lamda*y**2/(2*(s**2 + lamda))
page.step("the value there", Subs(objective, x, best), least)
page.step("the slope of the minimum", Derivative(least, lamda), best**2/2)

p, q_w = symbols("p q_w", positive=True)
square = page.let(q_w, weight**2, "(iii) A sample. The sum over the weights is their squared norm, $p$ terms, whose mean is half "
                                  "of")
samples = page.let(total, alpha*p, "and the objective is divided by the number of samples, which is")

AT = {"alpha": 1.5, "gamma": 0.5, "Delta": 0.1}


def rate(solve, at=0.1, h=0.003):
    """The slope of the package's training objective by differences of the sixth order, and its q_w."""
    def value(x_):
        return float(solve(**AT, lam=x_)["train_objective"])

    steps = ((1, 45), (2, -9), (3, 1))
    return sum(k*(value(at + i*h) - value(at - i*h)) for i, k in steps)/(60*h), float(solve(**AT, lam=at)["qw"])


def losses():
    """The identity at the package's solutions, for three losses."""
    pairs = {}
    for target, loss in (("sin", "square"), ("z", "huber:1/2"), ("sign", "logistic")):
        found, mean = rate(hx.theories.random_features("erf", target, loss=loss).solve)
        pairs[f"the slope of the {loss} loss"] = (found, mean/(2*AT["alpha"]))
    return Result.numbers(pairs, floor=0.0)


def solved(solve):
    """q_w of the package and the slope of its training objective."""
    found, mean = rate(solve)
    return {q_w: mean, alpha: AT["alpha"]}, [found]


page.test("the square, Huber's and the logistic loss", losses, "The package's solutions, which know nothing of it:")
page.variant("the half of the penalty forgotten", Derivative(least, lamda), best**2,
             "the penalty is half the ridge times the squared norm")
page.therefore(p*envelope.lhs/samples, q_w/(2*alpha), r"The slope of the least objective in the ridge, a sample:",
               by=[envelope, square, samples],
               package={'hx.theories.random_features("erf", "sign").solve': solved})
page.not_shown("that the order parameters of the replica method describe the sample; the identity holds at every size.")
