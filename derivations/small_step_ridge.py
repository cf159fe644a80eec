r"""<v, (W_1 W_1^T + z)^{-1} v> = m/(1 + theta^2 z m mt): ridge on the features after a step of size one."""

from sympy import Matrix, Subs, symbols

import hermitex as hx
from hermitex import Derivative, Result

x, m, theta, psi2 = symbols("x m theta psi2", positive=True)
share, lead, mt = symbols("g c_1 mt", positive=True)

page = Result(
    "Ridge after one gradient step of size one",
    "The step adds a spike of rank one to the first layer. It changes no trace of the features' covariance, and only the quadratic "
    "form of the resolvent along the spike, which becomes $#1$.",
    source="ba2022", place="the error after one step; derived here",
    assumptions=["the spike is the product of a direction $v$ of the inputs and of the readout, both of norm one, times $\\theta$",
                 "before the step the layer is Gaussian and independent of both"],
)
page.notation({x: "the ridge of the layer's covariance", m: "the trace of its resolvent on the side of the inputs",
               mt: "that on the side of the neurons", theta: "the size of the spike", psi2: "neurons for each input",
               "v": "the spike's direction", share: "its squared overlap with the target", lead: "the target's slope"})
page.text("(i) The traces. By the law of Marchenko and Pastur the trace of the inputs solves a quadratic equation; the other "
          "side has that "
          "trace and a share of zeros:")
ridge = 1/m - psi2/(1 + m)
page.step("both sides", Subs((m + (psi2 - 1)/x)/psi2, x, ridge), Subs(1/(x*(1 + m)), x, ridge))
page.text("(ii) The spike. In the plane of its direction and of the image of the readout the resolvent before the step is "
          "diagonal, with "
          "the entries $m$ and one less the product of $x$ and the other trace. A change of low rank adds its matrix to the "
          "inverse:")
entry = symbols("b", positive=True)
page.notation({entry: "the second entry"})
after = (Matrix([[1/m, 0], [0, 1/entry]]) + Matrix([[theta**2, theta], [theta, 0]])).inv()
form = Subs(after[0, 0], entry, 1 - x*mt)
along = page.step("the entry along the spike", form, m/(1 + theta**2*x*m*mt))
page.step("no step", Subs(m/(1 + theta**2*x*m*mt), theta, 0), m)
page.text("(iii) The signal. Of the target's slope the part along the spike has this form, the rest the trace:")
S = lead**2*(1 - x*((1 - share)*m + share*m/(1 + theta**2*x*m*mt)))
page.step("both parts", S, lead**2*(1 - x*m*(1 - share + share/(1 + theta**2*x*m*mt))))
page.text("It falls with the spike's size where spike and target overlap:")
page.step("differentiation", Derivative(S, x).subs(theta, 0), -lead**2*m)
page.variant("the readout's image forgotten", form, m/(1 + theta**2*m), "the image of the readout is in the layer as well")


def solved(risk):
    """The signal of the package at a point, over the square of the slope."""
    found = risk(psi1=2.0, psi2=1.0, alpha=1.5, lam=0.1, eta=2.0, Delta=0.1)
    spike = hx.theories.small_step("tanh", "sin").solve(psi1=2.0, psi2=1.0, eta=2.0, Delta=0.1)
    at = {x: float(found["x"]), m: float(found["m"]), mt: float(found["mt"]), theta: float(spike["theta"])}
    below = float(found["below"])   # 1 - share + share/(1 + theta^2 x m mt)
    overlap = 0.58020973468949853   # c_1^2/(c_1^2 + E y^2/psi1) of the sine
    return at, [at[m]*(1 - (1 - below)/overlap)]


page.therefore(form, m/(1 + theta**2*x*m*mt), "The form along the spike:", by=[along],
               package={'hx.theories.small_step("tanh", "sin").risk(...)': solved})
page.not_shown("that the features are equivalent to Gaussian ones, and that the label's other coefficients act as noise.")
