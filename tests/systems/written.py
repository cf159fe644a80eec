"""Systems as an author writes them, for the tests: name -> (System, points)."""

from functools import cache

from one_step import one_step
from sympy import Abs, Eq, Max, Piecewise, Rational, Symbol, erf, exp, log, pi, sign, sqrt, tanh

from hermitex import E, Moreau, Prox, System, free_energy
from hermitex.symbols import Delta, V, Vhat, alpha, lamda, m, mhat, q, qhat, rho, z, z1, z2
from hermitex.symbols import f as F
from hermitex.symbols import y as Y
from hermitex.theories import one_step as one_step_theory


def ridge():
    """Ridge regression on Gaussian data."""
    return System({
        Vhat: alpha/(1 + V), qhat: alpha*(rho + Delta + q - 2*m)/(1 + V)**2, mhat: alpha/(1 + V),
        V: 1/(lamda + Vhat), q: (rho*mhat**2 + qhat)/(lamda + Vhat)**2, m: rho*mhat/(lamda + Vhat),
    }, observables={"test_error": rho + q - 2*m}, source="loureiro2021")


def _special():
    x, y = Symbol("x", real=True), Symbol("y", positive=True)
    return System({x: E(erf(x + z)*tanh(z + alpha), z), y: E(sqrt(1 + y*z1**2), z1)*alpha/2, "w": x + y}, positive=[y])


def _kinked():
    x = Symbol("x", real=True)
    return System({x: E(Max(0, z + x/3)*tanh(alpha*z)**2, z)})


def _correlated():
    x, overlap = Symbol("x", real=True), Symbol("overlap", real=True)
    mean = E(tanh(z1)*tanh(z2) + exp(-z1**2)*z2**2, z1, z2, cov={(z1, z2): overlap})
    return System({x: mean/4 + x**2/9, "y": E(tanh(z1)*tanh(z2), z1, z2, cov={(z1, z2): Symbol("y", real=True)})/2 + alpha/4},
                  where={overlap: tanh(alpha)})


def _glm(loss, label):
    """Stationarity of the replica-symmetric free energy of a ridge-penalised generalised linear model."""
    omega, nu = sqrt(q)*z1, m/sqrt(q)*z1 + sqrt(rho - m**2/q)*z2
    coupling = q*Vhat/2 - V*qhat/2 - m*mhat + (rho*mhat**2 + qhat)/(lamda + Vhat)/2
    envelope = Moreau(loss.subs(Y, label(nu)), F, omega, V)
    return free_energy(coupling - alpha*E(envelope, z1, z2), {V: Vhat, q: qhat, m: mhat})


def _proximal():
    x, f = Symbol("x", real=True), Symbol("f", real=True)
    return System({x: E(Prox(log(1 + exp(-f)), f, x + z, alpha), z)/2},
                  observables={"envelope": E(Moreau(log(1 + exp(-f)), f, x + z, alpha), z)})


def _theory(**structure):
    """The package's own writing, which has a bias, the 1/d term and row norms that fluctuate."""
    return one_step_theory("tanh", "sin", **structure)


def _singular():
    x, y = Symbol("x", real=True), Symbol("y", real=True)
    return System({x: Eq(x + y, alpha), y: Eq(2*x + 2*y, 2*alpha)})


ONE = {"beta": 1.0, "r": 0.9, "c": 0.8, "gamma": 0.6, "Delta": 0.1}
HUBER = Piecewise(((Y - F)**2/2, Abs(Y - F) <= 1), (Abs(Y - F) - Rational(1, 2), True))
GLM = [{"alpha": 2.0, "lamda": 0.1, "rho": 1.0}]
CATALOGUE = {
    "ridge": (ridge, [{"alpha": 2.0, "lamda": 0.1, "Delta": 0.25, "rho": 1.0},
                      {"alpha": 0.3, "lamda": 1e-4, "Delta": 0.0, "rho": 2.0}]),
    "one step, tanh and sin": (lambda: one_step("tanh", "sin"),
                               [{**ONE, "alpha": 0.7, "lamda": 0.1}, {**ONE, "alpha": 3.0, "lamda": 1e-10}]),
    "one step, erf and sign": (lambda: one_step("erf", "sign"), [{**ONE, "alpha": 0.7, "lamda": 0.1}]),
    "one step, relu and sin": (lambda: one_step("relu", "sin"), [{**ONE, "alpha": 1.5, "lamda": 0.1}]),
    "one step, tanh and sign": (lambda: one_step("tanh", "sign"),
                                [{**ONE, "alpha": 1.5, "lamda": 0.1, "gamma": 1.0}]),
    "one step, row norms, bias and 1/d": (lambda: _theory(rows="gaussian").system,
                                          [{**ONE, "alpha": 1.5, "lamda": 0.1, "bias": 0.3, "epsilon": 0.002}]),
    "one step, interpolating": (lambda: _theory().interpolating,
                                [{**ONE, "alpha": 0.5, "lamda": 1.0, "bias": 0.0, "epsilon": 0.0}]),
    "special functions": (_special, [{"alpha": 0.4}, {"alpha": 1.5}]),
    "kinks that move": (_kinked, [{"alpha": 0.3}]),
    "GLM, Huber": (lambda: _glm(HUBER, lambda u: u), GLM),
    "GLM, logistic": (lambda: _glm(log(1 + exp(-Y*F)), sign), GLM),
    "GLM, hinge": (lambda: _glm(Max(0, 1 - Y*F), sign), GLM),
    "correlated normals": (_correlated, [{"alpha": 0.4}]),
    "a proximal operator": (_proximal, [{"alpha": 0.7}]),
    "a singular linear block": (_singular, [{"alpha": 0.5}]),
    "formulas alone": (lambda: System({"a": alpha*exp(-alpha), "b": pi*Symbol("a", real=True)}), [{"alpha": 0.5}]),
}


@cache
def written(name):
    """A system of the catalogue, compiled once for all tests."""
    make, points = CATALOGUE[name]
    return make(), points
