r"""dc/dt = 2 h'(c)(1 - c^2): the preconditioned flow under a spiked covariance sees the spike in its start alone."""

from sympy import Matrix, Subs, atanh, sqrt, symbols

from hermitex import Derivative, Result

rho, c, zeta = symbols("rho c zeta", real=True)
theta, N = symbols("theta N", positive=True)

page = Result(
    "Gradient flow under a spiked covariance",
    r"A neuron follows the flow of its squared error on a target of one direction, under the covariance of unit noise and a spike. "
    r"With the preconditioner the correlation $c$ of both fields obeys an equation of its own, so that the spike enters through "
    r"the "
    "start alone. For the third Hermite polynomial the time up to $c$ is a difference of $#1$.",
    source="mousavi2023", place="the normalised gradient flow",
    assumptions=["the rate is the variance of the neuron's field, and the target's direction has norm one",
                 "the student is the target's polynomial"],
)
page.notation({rho: "the overlap of spike and target", theta: "the strength of the spike", N: "the spread of the neuron's field",
               c: "the correlation of both fields", zeta: "the slope of the mean product of both, as a function of $c$"})
Sigma = Matrix([[1 + theta*rho**2, theta*rho*sqrt(1 - rho**2)], [theta*rho*sqrt(1 - rho**2), 1 + theta*(1 - rho**2)]])
beta, mu = Matrix([1, 0]), Matrix([rho, sqrt(1 - rho**2)])
page.text("(i) The target's direction and the spike span a plane. In it the products with the target's image are, along the spike,")
page.step("the covariance", (mu.T*Sigma*beta)[0], (1 + theta)*rho)
page.text("(ii) The correlation. With the preconditioner the velocity of the weights is twice $\\zeta$ times a multiple of the "
          "target less "
          "$c$ times the weights. Its product with the target's image moves the correlation,")
kappa_ = symbols("k", positive=True)
page.notation({kappa_: "the variance of the target's field"})
closed = page.step("the correlation", 2*zeta*(N/sqrt(kappa_)*kappa_ - c*(c*N*sqrt(kappa_)))/(N*sqrt(kappa_)), 2*zeta*(1 - c**2))
product = symbols("X", real=True)
page.notation({product: "the neuron's product with the target's image"})
page.step("the spread", Subs(2*zeta*(N/sqrt(kappa_)*product - c*N**2), product, c*N*sqrt(kappa_)), 0, "and its product with the "
                                                                                                      "neuron's own image is zero:")
page.text("(iii) Without the preconditioner the same velocity meets the covariance once more. At a small correlation it is "
          "faster by the "
          "squared norm of the target's image over its variance,")
page.step("the image", ((Sigma*beta).T*(Sigma*beta))[0], 1 + theta*rho**2*(2 + theta))
page.text("(iv) The time. For the third polynomial the mean product is the cube of the correlation; the time has the slope")
T = (atanh(c) - 1/c)/6
page.step("the slope of the cube", Derivative(c**3, c), 3*c**2)
slope = page.step("differentiation", Derivative(T, c), 1/(2*(3*c**2)*(1 - c**2)))
page.variant("a risk that is halved", Derivative(T, c), 1/(3*c**2*(1 - c**2)), "the time would be twice as long")


def solved(escape_time):
    """The slope of the time in its end, by a difference."""
    at = {"dimension": 1e4, "gamma_1": 0.2, "gamma_2": 0.3, "tolerance": 1e-13}
    high, low = (escape_time(level=0.5 + h, **at) for h in (1e-4, -1e-4))
    return {c: 0.5}, [(high - low)/2e-4]


page.therefore(Derivative(T, c), 1/(2*(3*c**2)*(1 - c**2)), "The slope of the time:", by=[slope],
               package={'hx.theories.spiked_covariance("He3(z)/sqrt(6)").escape_time(...)': solved})
page.not_shown("that the empirical flow follows this one with so many samples, and the exponents of the start; see "
               "`spiked_exponents.py`.")
