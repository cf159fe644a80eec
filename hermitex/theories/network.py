r"""(zeta, psi, chi) = (alpha/beta) K x,   K = [Wv, W theta_perp, delta]^T A^{-1} [Wv, W theta_perp, delta]: the trained network.

Spiked random features replace the weights after one gradient step by isotropic rows of equal norms. The weights are
anisotropic, correlated with the spike, and their norms fluctuate by delta_i = O(d^{-1/2}), which moves the features by
nu(kappa) delta_i, nu = d mu_0/dc. Here both are kept, for odd sigma: A = lamda + Vhat_2 + Vhat_1 W Pi W^T.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any, ClassVar

import numpy as np
from sympy import Eq, Expr, Matrix, S, Symbol, sqrt, symbols

from hermitex.errors import BadInput
from hermitex.solvers.solution import Solution
from hermitex.symbolic.activations import Activation, activation
from hermitex.symbolic.gaussian import E
from hermitex.symbols import Delta, alpha, beta, c, eta, gamma, kappa, lamda, m, z, zeta, zetatilde
from hermitex.systems.system import System
from hermitex.theories.directions import Target, target_of
from hermitex.theories.features import gradient_bulk as bulk
from hermitex.theories.features.gradient_bulk import delta, tau
from hermitex.theories.learned import OneStepSolution
from hermitex.theories.one_step import (
    V1,
    V2,
    Vhat1,
    Vhat2,
    bias,
    chi,
    chitilde,
    epsilon,
    overlaps,
    q1,
    q2,
    qhat1,
    qhat2,
    r,
    seen,
    slopes,
)
from hermitex.theories.ridgeless import ridgeless
from hermitex.theories.spike import OneStepFamily, complete_numbers, own_letters, say_noise


@dataclass(frozen=True, repr=False)
class ExactOneStep(OneStepFamily):
    r"""One gradient step on the network itself, odd sigma, square loss; numbers alpha, beta, lam, Delta, alpha0, eta.

    Raises
    ------
    BadInput : sigma is not proved odd, or jumps; r, c and gamma are given instead of alpha0 and eta.

    Examples
    --------
    >>> network = ExactOneStep.of("tanh", "sin")
    >>> round(network.solve(alpha=0.9, lam=0.1, alpha0=20, eta=3)["test_error"], 6)
    0.041628
    """

    loss: ClassVar[str] = "square"
    network: ClassVar[str] = "exact"
    rows: ClassVar[str] = "sphere"
    NUMBERS: ClassVar[tuple[str, ...]] = ("alpha", "beta", "lam", "Delta", "alpha0", "eta", "bias", "dimension")

    @classmethod
    def of(cls, sigma: Any, g: Any) -> ExactOneStep:
        """From names, texts or expressions."""
        return cls(activation(sigma), target_of("one-step", g))

    def __post_init__(self) -> None:
        if self.sigma.parity not in (-1, 0):
            raise BadInput("one-step: network='exact' is known for odd sigma (otherwise the rows' covariance has a part along "
                           f"theta without a closed asymptotic form), and {self.sigma.name} is not proved odd; use "
                           "network='srf', and simulate the network (model='network')")

    @cached_property
    def system(self) -> System:
        """The equations in alpha, beta, lamda, Delta, eta, r, c, gamma and alpha0inv = 1/alpha0; epsilon is 1/d."""
        return network(self.sigma, self.g)

    def run(self, numbers: Mapping[str, np.ndarray], **options: Any) -> Solution:
        """Solve at complete numbers: without label noise the averages over R run over z alone; lam = 0 is the limit lam -> 0+."""
        noisy = bool(np.any(numbers["Delta"]))
        system = network(self.sigma, self.g, noisy)
        wanted = {p.name for p in system.parameters} | {"lam"}

        def at(here: Mapping[str, np.ndarray], **how: Any) -> Solution:
            return system.solve({k: v for k, v in here.items() if k in wanted}, **how)

        limit = partial(network, self.sigma, self.g, noisy, interpolating=True)
        return OneStepSolution.of(say_noise(ridgeless(at, limit, numbers, options), numbers), self)

    @property
    def order_parameters(self) -> tuple[str, ...]:
        """Those of the spiked features, chi and its conjugate, and G, omega times the trace of the bulk's resolvent."""
        along, conjugate = ([v.name for v in family] for family in overlaps(self.g))
        return ("m", "zeta", *along, "chi", "q1", "q2", "V1", "V2", "Vhat1", "Vhat2", "qhat1", "qhat2", "zetatilde", *conjugate,
                "chitilde", "G")

    def given(self, numbers: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """The numbers as float arrays; r, c and gamma belong to the spiked features."""
        direct = [k for k in ("r", "c", "gamma") if numbers.get(k) is not None]
        if direct:
            raise BadInput(f"one-step: network='exact' is determined by alpha0 and eta, not by {', '.join(direct)}; "
                           "give alpha0 and eta, or use network='srf'")
        return super().given(numbers)

    def complete(self, numbers: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The numbers checked, with r, c, gamma of the gradient step."""
        done = complete_numbers(self.name, self.sigma, self.g, numbers)
        if self.g.parity == 0 and not np.all(done["Delta"] > 0):
            raise BadInput("one-step: with g = 0 and without noise the gradient is 0, and the network has no direction to learn")
        one = np.asarray(1.0)
        return {**done, "alpha0inv": one/done["alpha0"], "epsilon": one/done.get("dimension", np.inf*one)}

    def described(self, fixed: Mapping[str, float]) -> dict[str, Any]:
        """sigma, target and the numbers that stayed fixed."""
        rest = {k: v for k, v in fixed.items() if k not in ("alpha0inv", "epsilon")}
        return {**super().described(rest), "network": "exact"}


# -- the equations ----------------------------------------------------------------------------------------------------
def _average(x: Expr) -> Expr:
    return E(x, kappa)


@cache
def network(sigma: Activation, g: Target, noisy: bool = True, *, interpolating: bool = False) -> System:
    """The equations of the trained network: those of the spiked features with K for v, theta_perp and the norms."""
    mean, moments = bulk.BulkAverages(g, noisy), seen(g)
    mu_0, mu_1, mu_22, nu, h, h2 = symbols("mu_0 mu_1 mu_22 nu h h2", real=True)
    (along, conjugate), h1 = overlaps(g), slopes(g)
    turn = Matrix([[1]]) if isinstance(g, Activation) else Matrix(g.basis)  # the basis of the bulk
    Q, B, e, k_1, dk_1, T0, T1, T2 = symbols("Q B e k_1 dk_1 T0 T1 T2", real=True)
    K, dK, forms, entries = spike_and_norms(g, mean.moments)
    u = r*kappa + bias + sqrt(c)*z
    trace_of_row = (1 + tau/(1 + delta)*bulk.G*mean.moments.M[2, 0])/(1 + delta)  # tr C (I + delta C)^{-1}/d
    x = Matrix([zetatilde, *(turn.T*Matrix(conjugate)), chitilde])
    response, twice = V2*K*x, (x.T*(K + delta*dK)*x)[0]   # K is beta V_2 times the matrix of this name, a function of delta

    equations = {
        V1: k_1*V2,
        V2: 1/(lamda + Vhat2 + Vhat1*k_1),
        **bulk.trace(mean),
        Vhat1: alpha/beta*_average(mu_1**2*Q),
        Vhat2: alpha/beta*_average(mu_22*Q),
        **bulk.averages(mean),
        **forms,
        m: Eq(_average(mu_0*(h - B)*Q), m*epsilon/(alpha*V2)),
        zeta: alpha*response[0],
        zetatilde: _average(kappa*mu_1*(h - B)*Q),
        **dict(zip(along, alpha*turn*response[1:-1, :], strict=True)),
        **{b: _average(mu_1*f*Q) for b, f in zip(conjugate, h1, strict=True)},
        chi: alpha*response[len(along) + 1],
        chitilde: _average(nu*(h - B)*Q),
        qhat1: alpha/beta*_average(mu_1**2*e*Q**2),
        qhat2: alpha/beta*_average(mu_22*e*Q**2),
        q1: alpha**2/beta*(T1*twice - beta*V2**2*(x.T*dK*x)[0]) + qhat1*T2 + (qhat2 + m**2*epsilon/(beta*V2**2))*T1,
        q2: alpha**2/beta*T0*twice + qhat1*T1 + (qhat2 + m**2*epsilon/(beta*V2**2))*T0,
    }
    where = {
        **moments.names, **bulk.constants(sigma, g), **mean.definitions(), **mean.moments.definitions(),
        delta: beta*Vhat1*V2,
        k_1: trace_of_row,
        dk_1: _along_delta(trace_of_row, mean.moments),
        T0: V2**2/(1 + delta**2*dk_1/beta),
        T1: T0*(k_1 + delta*dk_1),
        T2: T1*(k_1 + delta*dk_1) - beta*V2**2*dk_1,
        **entries,
        mu_0: E(sigma(u), z),
        mu_1: E(z*sigma(u), z)/sqrt(c),
        mu_22: E(sigma(u)**2, z) - mu_0**2 - c*mu_1**2,
        nu: E(sigma(u)*(z**2 - 1), z)/(2*c),
        h: moments.h,
        **dict(zip(h1, moments.h_1, strict=True)),
        h2: moments.squared + Delta,
        Q: 1/((0 if interpolating else 1) + mu_1**2*V1 + mu_22*V2),
        B: mu_0*m + kappa*mu_1*zeta + nu*chi,
        e: h2 - 2*B*h + B**2 - 2*mu_1*sum(a*f for a, f in zip(along, h1, strict=True)) + mu_1**2*q1 + mu_22*q2,
    }
    letters = [alpha, beta, lamda, eta, bulk.alpha0inv, r, c, gamma, Delta, bias, epsilon]
    letters += own_letters((sigma, g), (*equations, *where, *letters))
    # Without a ridge it is 0, and Q^2 grows too fast to be averaged.
    trained = S.Zero if interpolating else _average(e*Q**2)
    return System(equations, where=where, observables={"test_error": _average(e) - Delta, "train_error": trained},
                  parameters=letters, name="One gradient step, the network itself",
                  source="one-step learning, the trained network at odd sigma")


def spike_and_norms(g: Target, moments: bulk.BulkMoments) -> tuple[Matrix, Matrix, dict[Symbol, Expr], dict[Symbol, Expr]]:
    """K/(beta V_2) and its derivative in delta as matrices of names; the equations of the forms P and F; the values of the names.

    With P = (I + delta C)^{-1} and F = [v, theta_perp, a]^T C P [v, theta_perp, a], taking the spike's direction out of the
    bulk, Pi = I - v v^T, adds delta F_v F_v^T/P_vv. The norms are C^{-1} a along the rows and independent of them otherwise,
    with the variance s_c^2 - a^T C^{-1} a that is left: a^T C^{-1} a cancels from their own entry, s_c^2 - delta a^T P a.
    """
    plain, weighted = bulk.plain(moments), bulk.weighted(moments)
    v, perp, a = bulk.directions(g)
    several = ["p"] if len(perp) == 1 else [f"p{k}" for k in range(1, len(perp) + 1)]
    names = ["v", *several, "a"]
    vectors = dict(zip(names, (v, *perp, a), strict=True))
    pairs = [(x, y) for i, x in enumerate(names) for y in names[i:]]
    P = {xy: _pair("P_{}{}".format(*xy)) for xy in pairs}
    F = {xy: _pair("F_{}{}".format(*xy)) for xy in pairs if "a" not in xy}
    forms: dict[Symbol, Expr] = {}
    for xy, named in P.items():
        value, slope = plain.between(vectors[xy[0]], vectors[xy[1]])
        forms |= _with_slope(named, value/(1 + delta), slope/(1 + delta))
    for xy, named in F.items():
        value, slope = weighted.between(vectors[xy[0]], vectors[xy[1]])
        same = int(xy[0] == xy[1])
        forms |= _with_slope(named, (same + tau/(1 + delta)*value)/(1 + delta), tau*slope/(1 + delta)**2)

    def p(x: str, y: str) -> Symbol:
        return P[x, y][0]

    def f(x: str, y: str) -> Symbol:
        return F[x, y][0]

    full: dict[tuple[str, str], Expr] = {}
    for x, y in pairs:
        if y != "a":
            full[x, y] = f(x, y)/p("v", "v") if x == "v" else f(x, y) + delta*f("v", x)*f("v", y)/p("v", "v")
        elif x == "a":
            full[x, y] = bulk.s_c2 - delta*p("a", "a") + delta*p("v", "a")**2/p("v", "v")
        else:
            full[x, y] = p("v", "a")/p("v", "v") if x == "v" else p(x, "a") - p("v", x)*p("v", "a")/p("v", "v")
    slopes = dict([*P.values(), *F.values()])
    K = {xy: _pair("K_{}{}".format(*xy)) for xy in full}
    entries = {**plain.definitions(), **weighted.definitions()}
    for xy, e in full.items():
        entries[K[xy][0]] = e
        entries[K[xy][1]] = e.diff(delta) + sum(e.diff(s)*d for s, d in slopes.items())

    def matrix(which: int) -> Matrix:
        return Matrix(len(names), len(names), lambda i, j: K[names[min(i, j)], names[max(i, j)]][which])

    return matrix(0), matrix(1), forms, entries


def _pair(name: str) -> tuple[Symbol, Symbol]:
    return Symbol(name, real=True), Symbol(f"d{name}", real=True)


_SPEED = tau/(1 + delta)**2  # d(1/omega)/d delta


def _with_slope(names: tuple[Symbol, Symbol], value: Expr, slope: Expr) -> dict[Symbol, Expr]:
    """A function of (delta, 1/omega) and its total derivative in delta; `slope` is the one in 1/omega."""
    forms = value.atoms(Symbol)
    explicit = value.diff(delta) if delta in forms else 0*value
    return {names[0]: value, names[1]: explicit + _SPEED*slope}


def _along_delta(e: Expr, moments: bulk.BulkMoments) -> Expr:
    return e.diff(delta) + _SPEED*moments.slope(e)
