r"""eps_test = E_kappa[h_2 - 2 B h + B^2 - 2 mu_1 psi h_1 + mu_1^2 q_1 + mu_2^2 q_2] - Delta: ridge on spiked random features.

The learning curve after one giant gradient step [cui2024, Result 3.3], as the thirteen equations of its order parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from sympy import Eq, Expr, S, Symbol, sqrt, symbols

from hermitex.show.explorer_panels import Panel
from hermitex.solvers.solution import Solution
from hermitex.symbolic.activations import Activation
from hermitex.symbolic.gaussian import E
from hermitex.symbols import Delta, alpha, beta, c, gamma, kappa, lamda, m, psitilde, z, zeta, zetatilde
from hermitex.systems.system import System
from hermitex.theories.directions import Seen, Target, rho
from hermitex.theories.learned import OneStepSolution
from hermitex.theories.pointwise_parts import in_parts
from hermitex.theories.ridgeless import ridgeless
from hermitex.theories.spike import OneStepFamily, explain_missing_moment, free_parameters, own_letters, say_noise
from hermitex.theories.spike_span import LIFT, letters_beside, seen_beside

Vhat1, Vhat2, V1, V2 = symbols("Vhat1 Vhat2 V1 V2", positive=True)
q1, q2, qhat1, qhat2 = symbols("q1 q2 qhat1 qhat2", nonnegative=True)
# r may be negative (a decreasing activation), psi too; bias shifts every pre-activation; epsilon = 1/d.
r, psi, bias, chi, chitilde = symbols("r psi bias chi chitilde", real=True)
epsilon = Symbol("epsilon", nonnegative=True)
ROWS = ("sphere", "gaussian")
#: what a parameter of sigma or g cannot be called
TAKEN = {
    *OneStepFamily.NUMBERS, "lamda", "epsilon", "kappa", "rho", "mu_0", "mu_1", "mu_22", "nu", "h", "h1", "h2", "Q", "L", "u",
    "T0", "T1", "T2", "B", "e", "m", "zeta", "psi", "q1", "q2", "V1", "V2", "Vhat1", "Vhat2", "qhat1", "qhat2",
    "zetatilde", "psitilde", "chi", "chitilde",
}


@dataclass(frozen=True, repr=False)
class OneStep(OneStepFamily):
    """Ridge regression on the features of one giant gradient step, through the equivalent spiked random features.

    rows : "sphere" (rows of W of squared norm c) or "gaussian" (fluctuating norms: one more order parameter, chi)
    """

    rows: str = "sphere"
    loss: ClassVar[str] = "square"
    network: ClassVar[str] = "srf"
    has_network: ClassVar[bool] = True

    @cached_property
    def system(self) -> System:
        """Result 3.3 in the paper's letters and order, with the 1/d term (epsilon = 1/d; 0 leaves the limit d -> oo)."""
        return result33(self.sigma, self.g, self.rows)

    @property
    def order_parameters(self) -> tuple[str, ...]:
        """m, zeta, psi, q1, q2, V1, V2 and their conjugates (rows="gaussian": also chi; several directions: psi1, psi2, ...)."""
        more = ("chi", "chitilde") if self.rows == "gaussian" else ()
        along, conjugate = ([v.name for v in family] for family in overlaps(self.g))
        return ("m", "zeta", *along, "q1", "q2", "V1", "V2", "Vhat1", "Vhat2", "qhat1", "qhat2", "zetatilde", *conjugate, *more)

    @cached_property
    def interpolating(self) -> System:
        """The equations at lam -> 0+ with n < p, in V lam, Vhat/lam, ...: the 1 of Q = 1/(1 + V) falls away, lam counts as 1."""
        return result33(self.sigma, self.g, self.rows, interpolating=True)

    @cached_property
    def aligned(self) -> Mapping[int, OneStep]:
        """The same for a spike along the target, gamma = 1 and -1: h = g(gamma kappa), h_1 = 0, without the limit rho -> 0."""
        return {sign: _Aligned(self.sigma, self.g, self.rows, sign) for sign in (1, -1)}

    def run(self, numbers: Mapping[str, np.ndarray], **options: Any) -> Solution:
        """Solve at complete numbers; lam = 0 is the limit lam -> 0+, which exists off n = p."""
        along = {sign: numbers["gamma"] == sign for sign in self.aligned}
        inside = np.abs(numbers["gamma"]) < 1
        found = in_parts([(inside, self._run), *((along[k], theory._run) for k, theory in self.aligned.items())], numbers, options)
        found = say_noise(found, numbers)
        return OneStepSolution.of(found if np.all(found.converged) else explain_missing_moment(found, self.sigma, numbers), self)

    def _run(self, numbers: Mapping[str, np.ndarray], **options: Any) -> Solution:
        return ridgeless(super().run, lambda: self.interpolating, numbers, options)

    def described(self, fixed: Mapping[str, float]) -> dict[str, Any]:
        """sigma, target, the rows if they are not on the sphere, and the numbers that stayed fixed."""
        return super().described(fixed) | ({"rows": self.rows} if self.rows != "sphere" else {})

    def panels(self, line: np.ndarray, numbers: Mapping[str, float]) -> list[Panel]:
        """The curve with its bounds, which are those of rows on the sphere, without a bias, as d -> oo."""
        curve, *others = super().panels(line, numbers)
        if self.rows == "sphere" and not (numbers.get("bias") or numbers.get("dimension") or free_parameters(self.sigma, self.g)):
            limits = _limits(self.sigma, self.g, *self._spike_at(line, numbers))
            curve = replace(curve, lines={**curve.lines, **{n: (line.tolist(), [v]*line.size) for n, v in limits.items()}})
        return [curve, *others]

    def slow_panels(self, line: np.ndarray, numbers: Mapping[str, float]) -> dict[str, Callable[[], Panel]]:
        """The spectrum of the features at the middle of the curve, which takes seconds."""
        def spectrum() -> Panel:
            from hermitex.theories.spectrum import spectrum  # see `panels`

            r, c, _ = self._spike_at(line, numbers)
            middle = float(line[line.size//2])
            law = spectrum(self.sigma, r=r, c=c, alpha=middle, beta=float(numbers.get("beta", 1.0)), rows=self.rows)
            drawn = {"density": (law.x.tolist(), law.density.tolist())}
            return Panel(f"spectrum at n/d = {middle:.3g}", "eigenvalue", "density", drawn)

        return {} if numbers.get("bias") or free_parameters(self.sigma, self.g) else {"spectrum": spectrum}

    def _spike_at(self, line: np.ndarray, numbers: Mapping[str, float]) -> tuple[float, float, float]:
        """r, c and gamma, given or of the step."""
        known = self.complete(self.given({self.axis: line, **numbers}))
        return float(known["r"]), float(known["c"]), float(known["gamma"])

    def complete(self, numbers: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The numbers checked, with r, c, gamma of the gradient step and epsilon = 1/dimension."""
        made = super().complete(numbers)
        return {**made, "epsilon": 1/made.get("dimension", np.asarray(np.inf))}


@lru_cache(maxsize=1)  # a slider of the ridge leaves them alone
def _limits(sigma: Activation, g: Target, r: float, c: float, gamma: float) -> dict[str, float]:
    from hermitex.theories.bounds import bounds  # not needed, and so not loaded, where nothing is explored

    found = bounds(sigma, g, r=r, c=c, gamma=gamma)
    return {"upper bound at the best ridge": float(found.upper), "lower bound": float(found.lower)}


@dataclass(frozen=True, repr=False)
class _Aligned(OneStep):
    """The equations at gamma = 1 or -1, where rho = 0."""

    gamma: int = 1

    @cached_property
    def system(self) -> System:
        return result33(self.sigma, self.g, self.rows, aligned=self.gamma)

    @cached_property
    def interpolating(self) -> System:
        return result33(self.sigma, self.g, self.rows, interpolating=True, aligned=self.gamma)


def overlaps(g: Target) -> tuple[tuple[Symbol, ...], tuple[Symbol, ...]]:
    """psi and its conjugate; psi1, psi2, ... where the target has several directions."""
    if isinstance(g, Activation):
        return (psi,), (psitilde,)
    each = range(1, len(g.variables) + 1)
    return tuple(Symbol(f"psi{j}", real=True) for j in each), tuple(Symbol(f"psitilde{j}", real=True) for j in each)


def slopes(g: Target) -> tuple[Symbol, ...]:
    """h1, the name of the h_1 of `seen`; h1_1, h1_2, ... where the target has several directions."""
    names = ["h1"] if isinstance(g, Activation) else [f"h1_{j}" for j in range(1, len(g.variables) + 1)]
    return tuple(Symbol(name, real=True) for name in names)


def seen(g: Target, aligned: int = 0) -> Seen:
    """h, h_1 and E g^2 given kappa of a target of one direction or several; `aligned` is gamma where that is 1 or -1."""
    if not isinstance(g, Activation):
        return g.seen(aligned)
    t = aligned*kappa if aligned else gamma*kappa + sqrt(rho)*z
    return Seen(E(g(t), z), (E(z*g(t), z),), E(g(t)**2, z), {})


@cache
def result33(sigma: Activation, g: Target, rows: str = "sphere", *, interpolating: bool = False, aligned: int = 0,
             turned: bool = False) -> System:
    """The equations of Result 3.3, nothing solved or reordered by hand; `aligned` is gamma where that is 1 or -1.

    turned : the spike has the overlaps Gamma1_1, Gamma2_1, ... with the target's directions, as in `spike_span`
    """
    mu_0, mu_1, mu_22, nu, h, h2 = symbols("mu_0 mu_1 mu_22 nu h h2", real=True)
    Q, L, u, T0, T1, T2, B, e = symbols("Q L u T0 T1 T2 B e", real=True)
    along, conjugate = overlaps(g)
    h1, s, moments = slopes(g), r*kappa + bias + sqrt(c)*z, seen_beside(g, 1) if turned else seen(g, aligned)
    # Row norms that fluctuate, d Var(|w|^2) = 2 c^2, see the features through nu = d mu_0/dc.
    norms = rows == "gaussian"
    s_c = 2*c**2 if norms else 0
    tilted = sum(b**2 for b in conjugate)

    def K(f: Expr) -> Any:
        return E(f, kappa)

    equations = {
        Vhat1: alpha/beta*K(mu_1**2*Q),
        Vhat2: alpha/beta*K(mu_22*Q),
        V1: c*V2*u,
        V2: 1/(L + c*Vhat1*u),
        m: Eq(K(mu_0*(h - B)*Q), epsilon*m/(alpha*V2)),
        zeta: alpha*c*V2*zetatilde,
        zetatilde: K(kappa*mu_1*(h - B)*Q),
        **{a: alpha*V1*b for a, b in zip(along, conjugate, strict=True)},
        **{b: K(mu_1*f*Q) for b, f in zip(conjugate, h1, strict=True)},
        qhat1: alpha/beta*K(mu_1**2*e*Q**2),
        qhat2: alpha/beta*K(mu_22*e*Q**2),
        q1: alpha**2/beta*((c*zetatilde**2 + s_c*chitilde**2)*T1 + tilted*T2) + qhat1*T2 + qhat2*T1
            + epsilon*m**2/(beta*V2**2)*T1,
        q2: alpha**2/beta*((c*zetatilde**2 + s_c*chitilde**2)*T0 + tilted*T1) + qhat1*T1 + qhat2*T0
            + epsilon*m**2/(beta*V2**2)*T0,
    }
    if norms:
        equations |= {chi: alpha*s_c*V2*chitilde, chitilde: K(nu*(h - B)*Q)}
    where = {
        **({} if aligned or turned else {rho: 1 - gamma**2}),
        mu_0: E(sigma(s), z),
        mu_1: E(z*sigma(s), z)/sqrt(c),
        mu_22: E(sigma(s)**2, z) - mu_0**2 - c*mu_1**2,
        **({nu: E(sigma(s)*(z**2 - 1), z)/(2*c)} if norms else {}),
        **moments.names,
        h: moments.h,
        **dict(zip(h1, (v - LIFT if turned else v for v in moments.h_1), strict=True)),
        h2: moments.squared + Delta,
        Q: 1/((0 if interpolating else 1) + mu_1**2*V1 + mu_22*V2),
        L: lamda + Vhat2,
        u: 1/(1 + c*beta*Vhat1*V2),
        T0: V2**2/(1 - beta*(c*Vhat1*u*V2)**2),
        T1: c*u**2*T0,
        T2: c*u**2*T1 + beta*V1**2,
        B: mu_0*m + kappa*mu_1*zeta + (nu*chi if norms else 0),
        e: h2 - 2*B*h + B**2 - 2*mu_1*sum(a*f for a, f in zip(along, h1, strict=True)) + mu_1**2*q1 + mu_22*q2,
    }
    own = letters_beside(moments) if turned else own_letters((sigma, g), ())
    trained = S.Zero if interpolating else K(e*Q**2)  # without a ridge it is 0, and Q^2 grows too fast to be averaged
    return System(equations, where=where, observables={"test_error": K(e) - Delta, "train_error": trained},
                  parameters=[alpha, beta, lamda, r, c, gamma, Delta, bias, epsilon, *own],
                  source="arXiv:2402.04980, Result 3.3", name=f"one_step({sigma.name}, {g.name})")


@lru_cache(maxsize=64)
def made(sigma: Activation, g: Target, rows: str) -> OneStep:
    """One object for one structure, so that its system is compiled once."""
    return OneStep(sigma, g, rows)
