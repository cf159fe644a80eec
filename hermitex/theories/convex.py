r"""Vhat_i = (alpha/beta) E[mu_i^2 (-ds/domega)],  qhat_i = (alpha/beta) E[mu_i^2 s^2],  E[mu_0 s] = 0: any convex loss.

The readout after one giant gradient step minimises sum l(y, f) + lam/2 |a|^2. Through the equivalent spiked random
features its output on a fresh sample is omega = mu_0 m + kappa mu_1 zeta + mu_1 psi z + Gaussian, and on a training sample
f* = argmin (f - omega)^2/(2V) + l(y, f), s = (f* - omega)/V [cui2024, Result 3.3, extended to convex losses].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from sympy import Dummy, Eq, Expr, Piecewise, Rational, S, Symbol, erf, sign, sqrt, symbols

from hermitex.errors import BadInput, HermitexError
from hermitex.solvers.chain import assemble
from hermitex.solvers.solution import Solution
from hermitex.symbolic.activations import Activation
from hermitex.symbolic.gaussian import E
from hermitex.symbols import Delta, alpha, beta, c, f, gamma, kappa, lamda, m, psitilde, y, z, z1, z2, z3, zeta, zetatilde
from hermitex.systems.solve import _shaped as shaped
from hermitex.systems.system import System
from hermitex.theories.conditional import mu, mu_star
from hermitex.theories.one_step import V1, V2, Vhat1, Vhat2, bias, epsilon, psi, q1, q2, qhat1, qhat2, r
from hermitex.theories.pointwise import Pointwise, envelope, force, pointwise
from hermitex.theories.spike import OneStepFamily, completed, free_parameters

# local scalars of a sample at fixed kappa
V, S_, tau, s_0, L, u, T0, T1, T2, rho = symbols("V S tau s_0 L u T0 T1 T2 rho", positive=True)
mu_0, mu_1, mu_22, B, J, J_z, J_2, J_s, t, a = symbols("mu_0 mu_1 mu_22 B J J_z J_2 J_s t a", real=True)
p, p_slope, s_plus, s_minus, f_plus, f_minus = symbols("p p_slope s_plus s_minus f_plus f_minus", real=True)


@dataclass(frozen=True)
class Structure:
    """What decides the equations: functions, loss, the kind of labels, and which exact reductions hold.

    kind : "labels" (y = +-1), "residual" (l of y - f), "values" (any other loss, real y)
    mirror : sigma and g odd, the loss symmetric, no bias: both labels contribute the same
    aligned : gamma, where it is +-1 (for labels: without noise): kappa alone decides the label; else 0
    mute : mu_0 = 0, so that m does not exist (it is set to 0)
    linear : sigma is linear, mu_22 = 0
    noisy : Delta > 0 (asked of kind "values" only, which needs one more average for it)
    """

    sigma: Activation
    g: Activation
    loss: Pointwise
    kind: str
    mirror: bool = False
    aligned: int = 0
    mute: bool = False
    linear: bool = False
    noisy: bool = True


def K(e: Expr) -> Any:
    """The average over the projection on the spike."""
    return E(e, kappa)


# -- labels of +-1 -----------------------------------------------------------------------------------------------------
def _labels(st: Structure) -> tuple[dict, dict]:
    """Both labels summed with P(y | kappa, omega), omega = B + S z1: averages over kappa and z1.

    Given omega the target's argument is normal with mean a = gamma kappa + sqrt(rho) tau z1, tau = mu_1 psi/S, and
    variance s_0^2 = rho (1 - tau^2) + Delta, so P(y = 1) = (1 + E g(a + s_0 z))/2. By parts,
    E[-ds/domega] = (sqrt(rho) tau E[s dP/da] - E[z1 s])/S: no derivative of a kinked force is taken.
    """
    omega = B + S_*z1
    (up, f_up), (down, f_down) = st.loss.force(1, omega, V), st.loss.force(-1, omega, V)
    where: dict[Any, Any] = {S_: sqrt(mu_1**2*q1 + mu_22*q2)}
    if st.aligned:
        where |= {p: (1 + st.g(st.aligned*kappa))/2}
    else:
        chance = probability(st.g)
        where |= {tau: mu_1*psi/S_, a: gamma*kappa + sqrt(rho)*tau*z1, s_0: sqrt(rho*(1 - tau**2) + Delta),
                  p: chance, p_slope: chance.diff(a)}
    where |= {s_plus: up, f_plus: f_up} | ({} if st.mirror else {s_minus: down, f_minus: f_down})

    def both(plus: Expr, minus: Expr) -> Expr:
        if st.aligned:  # the jump of P at fixed kappa stays outside of the inner average, where it is seen
            return 2*p*E(plus, z1) if st.mirror else p*E(plus, z1) + (1 - p)*E(minus, z1)
        return 2*E(p*plus, z1) if st.mirror else E(p*plus + (1 - p)*minus, z1)

    pull = S.Zero if st.aligned else E(p_slope*(2*s_plus if st.mirror else s_plus - s_minus), z1)
    where |= {J: both(s_plus, s_minus), J_z: sqrt(rho)*pull, J_2: both(s_plus**2, s_minus**2),
              J_s: ((0 if st.aligned else tau*J_z) - both(z1*s_plus, z1*s_minus))/S_}
    plus, minus = st.loss.at(1), st.loss.at(-1)
    observables = {
        "test_error": _error(st),
        "train_error": K(both(plus.subs(f, f_plus), minus.subs(f, f_minus))),
        "test_loss": K(both(plus.subs(f, omega), minus.subs(f, omega))),
    }
    return where, observables


def _error(st: Structure) -> Expr:
    """P(y != sign omega) = (1 - E[y sign omega])/2."""
    if st.aligned:  # omega is normal at fixed kappa
        return K((1 - st.g(st.aligned*kappa)*erf(B/(sqrt(2)*S_)))/2)
    agreement, (shift, slope, edge) = _agreement(st.g)
    at = {shift: gamma*kappa, slope: sqrt(rho)*tau, edge: B/S_}
    if agreement is not None:
        return K((1 - agreement.xreplace(at))/2)
    # Where omega changes sign the integrand jumps: a variable of its own, with its own break point.
    chance = probability(st.g).xreplace({a: gamma*kappa + sqrt(rho)*tau*z2})
    return K(E(chance + Piecewise((S.One, z2 > -B/S_), (S.Zero, True))*(1 - 2*chance), z2))


@lru_cache(maxsize=64)
def _agreement(g: Activation) -> tuple[Expr | None, tuple[Symbol, Symbol, Symbol]]:
    """E[g(shift + slope w + s_0 z) sign(w + edge)] in closed form, or None, and its symbols."""
    from hermitex.symbolic.integrals import closed_form

    shift, slope, edge = letters = tuple(Dummy(n, real=True) for n in ("shift", "slope", "edge"))
    try:
        return closed_form(E((2*probability(g) - 1).xreplace({a: shift + slope*z})*sign(z + edge), z)), letters
    except HermitexError:
        return None, letters


@lru_cache(maxsize=64)
def probability(g: Activation) -> Expr:
    """P(g(a + s_0 z) = 1) = (1 + E g(a + s_0 z))/2 for a target of +-1, in the symbols a and s_0."""
    from hermitex.symbolic.integrals import closed_form

    try:
        mean = closed_form(E(g(a + s_0*z), z))
    except HermitexError:
        mean = _by_jumps(g)
    return (1 + mean)/2


_REACH, _CELLS, _MOST_JUMPS = 40, 16_000, 60


def _by_jumps(g: Activation) -> Expr:
    """E g(a + s_0 z) from the places where g changes sign, found numerically to the last digit within |x| <= 40."""
    from scipy.optimize import bisect

    from hermitex.kernels.compile import compile

    kernel = compile(g(z))
    x = np.linspace(-_REACH, _REACH, _CELLS + 1) + 1e-7
    value = np.asarray(kernel(z=x), dtype=float)
    steps = np.flatnonzero(value[1:]*value[:-1] < 0)
    if len(steps) > _MOST_JUMPS:
        raise BadInput(f"one-step: the target {g.name} changes sign more than {_MOST_JUMPS} times within |x| <= {_REACH}")
    places = [bisect(lambda v: float(kernel(z=v)), x[k], x[k + 1], xtol=1e-15, rtol=1e-15) for k in steps]
    mean = S.Zero
    for k, b in zip(steps, places, strict=True):  # a jump by 2 at b is erf((a - b)/(sqrt(2) s_0)) around its middle
        mean += Rational(float(np.sign(value[k + 1])))*erf((a - Rational(b))/(sqrt(2)*s_0))
    ends = (Rational(float(np.sign(value[0]))) + Rational(float(np.sign(value[-1]))))/2
    return mean + ends


# -- real labels -------------------------------------------------------------------------------------------------------
def clean(st: Structure) -> Expr:
    """The label without noise, g(<theta, x>), at fixed kappa and z1."""
    return st.g(st.aligned*kappa) if st.aligned else st.g(gamma*kappa + sqrt(rho)*z1)


def _residual(st: Structure) -> tuple[dict, dict]:
    """l = h(y - f): the force depends on t = y - omega, normal at fixed kappa and z1 (the target's other direction).

    Its mean is M = g(gamma kappa + sqrt(rho) z1) - B - mu_1 psi z1, its variance tau^2 = mu_1^2 (q1 - psi^2) + mu_22 q2 +
    Delta: the noise is joined to omega. Where E h'(e*) has a closed form two averages are left, else three.
    """
    h = st.loss.of_residual
    assert h is not None
    M, e_star = Symbol("M", real=True), Symbol("e_star", real=True)
    where: dict[Any, Any] = {tau: sqrt(mu_1**2*(q1 - psi**2) + mu_22*q2 + Delta),
                             M: clean(st) - B - (0 if st.aligned else mu_1*psi*z1)}
    smoothed, fresh = closed_moments(h), closed_loss(h)
    at = {_M: M, _TAU: tau, _V: V}

    def over(e: Expr, *noise: Symbol) -> Expr:
        return E(e, *((*noise,) if st.aligned else (z1, *noise))) if noise or not st.aligned else e

    if smoothed is not None:
        force_, square, moreau = smoothed
        where |= {s_plus: force_.xreplace(at), p_slope: force_.diff(_M).xreplace(at), s_minus: square.xreplace(at)}
        where |= {J: over(s_plus), J_s: over(p_slope), J_2: over(s_minus)}
        noise: tuple[Symbol, ...] = ()
        train = over(moreau.xreplace(at) - V/2*s_minus)
    else:
        s, e = force(h, M + tau*z2, V)
        where |= {s_plus: -s, e_star: e}
        where |= {J: over(s_plus, z2), J_s: over(z2*s_plus/tau, z2), J_2: over(s_plus**2, z2)}
        noise = (z2,)
        train = over(h.subs(f, e_star), z2)
    where |= {J_z: S.Zero if st.aligned else over(z1*s_plus, *noise) + mu_1*psi*J_s}
    test = over(fresh.xreplace(at)) if fresh is not None else over(h.subs(f, M + tau*z2), z2)
    square_error = K(over(M**2)) + K(tau**2) - Delta
    return where, {"test_error": square_error, "train_error": K(train), "test_loss": K(test),
                   "test_error_noisy": square_error + Delta}


_M, _TAU, _V = Symbol("M_0", real=True), Symbol("tau_0", positive=True), Symbol("V_0", positive=True)


@lru_cache(maxsize=64)
def closed_moments(h: Expr) -> tuple[Expr, Expr, Expr] | None:
    """E[s], E[s^2] and the mean Moreau envelope of h at t = M + tau z, in closed form; None where one has none."""
    from hermitex.symbolic.integrals import closed_form

    at = Dummy("t", real=True)
    s, _ = force(h, at, _V)
    try:
        return tuple(closed_form(E(e.xreplace({at: _M + _TAU*z}), z)) for e in (-s, s**2, envelope(h, at, _V)))  # type: ignore[return-value]
    except (HermitexError, RecursionError):
        return None


@lru_cache(maxsize=64)
def closed_loss(h: Expr) -> Expr | None:
    """E h(M + tau z) in closed form, or None."""
    from hermitex.kernels.lowering import exact_or_none

    return exact_or_none(E(h.subs(f, _M + _TAU*z), z))


def _values(st: Structure) -> tuple[dict, dict]:
    """Any loss with y = g(gamma kappa + sqrt(rho) z1) + sqrt(Delta) z3 and omega = B + mu_1 psi z1 + tau z2."""
    side = S.Zero if st.aligned else mu_1*psi*z1
    label, omega = Symbol("y", real=True), B + side + tau*z2
    over = (*(() if st.aligned else (z1,)), z2, *((z3,) if st.noisy else ()))
    s, f_star = st.loss.force(label, omega, V)
    where = {tau: sqrt(mu_1**2*(q1 - psi**2) + mu_22*q2), label: clean(st) + (sqrt(Delta)*z3 if st.noisy else 0),
             s_plus: s, f_plus: f_star}
    where |= {J: E(s_plus, *over), J_2: E(s_plus**2, *over), J_s: -E(z2*s_plus, *over)/tau,
              J_z: S.Zero if st.aligned else E(z1*s_plus, *over) + mu_1*psi*J_s}
    gap = (clean(st) - B - side)**2
    square_error = K(gap if st.aligned else E(gap, z1)) + K(tau**2)
    return where, {"test_error": square_error, "test_error_noisy": square_error + Delta,
                   "train_error": K(E(st.loss.expr.subs({f: f_plus, y: label}), *over)),
                   "test_loss": K(E(st.loss.expr.subs({f: omega, y: label}), *over))}


# -- the equations -----------------------------------------------------------------------------------------------------
@lru_cache(maxsize=64)
def equations(st: Structure) -> System:
    """The equations of a convex loss; J = E[s], J_s = E[-ds/domega], J_2 = E[s^2] at fixed kappa, J_z that of psitilde."""
    w = r*kappa + bias + sqrt(c)*z
    own, observables = {"labels": _labels, "residual": _residual, "values": _values}[st.kind](st)
    b = c*beta*Vhat1
    half = L + c*Vhat1 - b
    root = sqrt(half**2 + 4*L*b)
    right = {
        Vhat1: alpha/beta*K(mu_1**2*J_s),
        Vhat2: S.Zero if st.linear else alpha/beta*K(mu_22*J_s),
        qhat1: alpha/beta*K(mu_1**2*J_2),
        qhat2: S.Zero if st.linear else alpha/beta*K(mu_22*J_2),
        zetatilde: K(kappa*mu_1*J),
        psitilde: S.Zero if st.aligned else K(mu_1*J_z),
        m: S.Zero if st.mute else Eq(K(mu_0*J), epsilon*m/(alpha*V2), evaluate=False),
        # 1/(L + c Vhat1/(1 + c beta Vhat1 V2)) solved for V2, in the form that does not cancel
        V2: Piecewise((2/(half + root), half > 0), ((root - half)/(2*L*b), True)),
        V1: c*V2*u,
        zeta: alpha*c*V2*zetatilde,
        psi: alpha*V1*psitilde,
        q1: alpha**2/beta*(c*zetatilde**2*T1 + psitilde**2*T2) + qhat1*T2 + qhat2*T1 + epsilon*m**2/(beta*V2**2)*T1,
        q2: alpha**2/beta*(c*zetatilde**2*T0 + psitilde**2*T1) + qhat1*T1 + qhat2*T0 + epsilon*m**2/(beta*V2**2)*T0,
    }
    where = {
        rho: 1 - gamma**2,
        mu_0: S.Zero if st.mute else E(st.sigma(w), z),
        mu_1: E(z*st.sigma(w), z)/sqrt(c),
        mu_22: S.Zero if st.linear else E(st.sigma(w)**2, z) - mu_0**2 - c*mu_1**2,
        V: mu_1**2*V1 + mu_22*V2,
        B: mu_0*m + kappa*mu_1*zeta,
        **own,
        L: lamda + Vhat2,
        u: 1/(1 + c*beta*Vhat1*V2),
        T0: V2**2/(1 - beta*(c*Vhat1*u*V2)**2),
        T1: c*u**2*T0,
        T2: c*u**2*T1 + beta*V1**2,
    }
    letters = sorted({v for h in (st.sigma, st.g) for v in h(z).free_symbols} - {z}, key=str)
    observables["train_objective"] = observables["train_error"] + lamda*beta*q2/(2*alpha)
    return System(right, where=where, observables=observables,
                  parameters=[alpha, beta, lamda, r, c, gamma, Delta, bias, epsilon, *letters], positive=[qhat1, qhat2],
                  kept=[V, B, S_, tau, s_0, J, J_z, J_2, J_s],
                  source="arXiv:2402.04980, Result 3.3, for a convex loss",
                  name=f"one_step({st.sigma.name}, {st.g.name}, {st.loss})")


@lru_cache(maxsize=256)
def of_signs(g: Activation) -> bool:
    """True if g takes the values +-1 only."""
    from hermitex.symbolic.pieces import pieces

    if free_parameters(g):
        return False
    try:
        return all(abs(e.expr) == 1 for e in pieces(g(z), z))
    except (HermitexError, NotImplementedError, ValueError, TypeError):
        from hermitex.kernels.compile import compile

        values = np.asarray(compile(g(z))(z=np.linspace(-_REACH, _REACH, _CELLS + 1) + 1e-7))
        return bool(np.all(np.abs(np.abs(values) - 1) < 1e-12))


@dataclass(frozen=True, repr=False)
class ConvexOneStep(OneStepFamily):
    """A convex loss on the features of one giant gradient step: argmin_a sum l(y, f) + lam/2 |a|^2, f = <a, phi>/sqrt(p).

    A target of +-1 under a loss that is not one of y - f has labels y = g(<theta, x> + sqrt(Delta) Z) of +-1, and `test_error` is
    the probability that sign f is not y; otherwise y = g(<theta, x>) + sqrt(Delta) z and `test_error` is E(g - f)^2. `train_error`
    is the mean training loss without the penalty, `test_loss` E l(y, f) on a fresh sample, `train_objective` the training loss with
    the penalty, per sample; `test_error_noisy` = test_error + Delta for real labels. The losses are as written: the
    square loss (y - f)^2/2 at `lam` is the ridge theory at the same `lam`.

    A loss of real labels that is not one of y - f takes threefold averages (fourfold if Delta > 0): slow, and held to 1e-8.

    dimension : with it the readout's common direction, of which the features carry the spike mu_0, costs m^2/(2 V_2) out of n:
    E[mu_0 s] = m/(n V_2), and m^2/(p V_2^2) (T_1, T_0) is added to (q_1, q_2). This is the leading 1/d term of m, which
    holds for any convex loss because the loss enters the readout's measure through Vhat and qhat only; other corrections
    of order 1/d (of V, zeta, psi) are not claimed.
    """

    loss: Pointwise

    network: ClassVar[str] = "srf"
    rows: ClassVar[str] = "sphere"

    @classmethod
    @lru_cache(maxsize=128)
    def of(cls, sigma: Activation, g: Activation, loss: Any) -> ConvexOneStep:
        """The theory for a loss as it was asked for.

        Raises
        ------
        BadInput : the loss is not convex in f, holds other letters, or asks for labels of +-1 that the target does not have.
        """
        found = cls(sigma, g, pointwise(loss))
        if found.loss.margin and not found.binary:
            raise BadInput(f"one-step: the loss {found.loss} depends on y f only and needs labels of +-1; the target {g.name} is "
                           f"real valued: take sign({g(z)}) or a loss of y - f, such as huber:1")
        return found

    @cached_property
    def binary(self) -> bool:
        """True if the labels are +-1."""
        return self.loss.of_residual is None and of_signs(self.g)

    @cached_property
    def _odd(self) -> bool:
        """True if a reflection of the sample exchanges the labels."""
        return self.binary and self.sigma.parity == self.g.parity == -1 and self.loss.symmetric

    def structure(self, **flags: Any) -> Structure:
        """The structure with some of its reductions."""
        kind = "labels" if self.binary else "residual" if self.loss.of_residual is not None else "values"
        return Structure(self.sigma, self.g, self.loss, kind, **flags)

    @property
    def system(self) -> System:
        """The equations, without the reductions that special numbers allow."""
        return equations(self.structure())

    @property
    def order_parameters(self) -> tuple[str, ...]:
        """m, zeta, psi, q1, q2, V1, V2 and their conjugates."""
        return ("m", "zeta", "psi", "q1", "q2", "V1", "V2", "Vhat1", "Vhat2", "qhat1", "qhat2", "zetatilde", "psitilde")

    @property
    def errors(self) -> tuple[str, ...]:
        """The errors and losses of a curve, the test error first."""
        noisy = () if self.binary else ("test_error_noisy",)
        return ("test_error", "train_error", "test_loss", *noisy, "train_objective")

    def complete(self, numbers: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The numbers checked, with r, c, gamma of the gradient step and epsilon = 1/dimension."""
        made = self._spiked(numbers)
        return {**made, "epsilon": 1/made.get("dimension", np.asarray(np.inf))}

    def _spiked(self, numbers: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """(r, c, gamma); noisy labels of +-1 are a step on E g(z + sqrt(Delta) Z) with the rest of E y^2 = 1 as its noise."""
        noise = numbers.get("Delta", np.asarray(0.0))
        if not (self.binary and "alpha0" in numbers and np.any(noise > 0)) or np.any(noise < 0):
            return completed(self.name, self.sigma, self.g, numbers)
        if noise.ndim:
            raise BadInput(f"{self.name}: with alpha0 and eta, Delta is one number where labels are +-1; solve once for each")
        from hermitex.symbolic.activations import activation
        from hermitex.symbolic.precise import evaluate

        mean = activation((2*probability(self.g) - 1).xreplace({a: z, s_0: sqrt(Rational(float(noise)))}))
        rest = 1 - float(evaluate(E(mean(z)**2, z), digits=17))
        made = completed(self.name, self.sigma, mean, {**numbers, "Delta": np.asarray(rest)})
        return {**made, "Delta": noise}

    # -- solving -----------------------------------------------------------------------------------------------------
    def described(self, fixed: Mapping[str, float]) -> dict[str, Any]:
        """The functions, the loss and the numbers of a curve."""
        return {**super().described(fixed), "loss": str(self.loss)}

    def run(self, numbers: Mapping[str, Any], *, start: Mapping[str, Any] | None = None, tolerance: float = 1e-11,
            **options: Any) -> Solution:
        """Solve at complete numbers: points that share their exact reductions together; a small lam is come to from lam = 1."""
        names = [q.name for q in self.system.parameters]
        given = {n: np.asarray(numbers["lam" if n == "lamda" else n], dtype=float) for n in names}
        try:
            shape = np.broadcast_shapes(*(v.shape for v in given.values()))
        except ValueError:
            shapes = ", ".join(f"{n} {v.shape}" for n, v in given.items() if v.ndim)
            raise BadInput(f"{self.name}: the numbers do not broadcast: {shapes}") from None
        flat = {n: np.broadcast_to(v, shape).ravel() for n, v in given.items()}
        first = {n: np.broadcast_to(np.asarray(v, dtype=float), shape).ravel() for n, v in (start or {}).items()}
        flags = self._flags(flat)
        if flags[0].kind == "values":
            tolerance = max(tolerance, _TRIPLE)
        lost = self._separated(flat, flags)
        parts = [(lost, self._unbounded(lost.size))] if lost.size else []
        for st in dict.fromkeys(flags):
            here = np.array([k for k, s in enumerate(flags) if s == st and k not in set(lost)])
            step = _BATCH[st.kind]
            for chunk in (here[k:k + step] for k in range(0, len(here), step)):
                at = {n: v[chunk] for n, v in flat.items()}
                parts.append((chunk, solved(equations(st), at, {n: v[chunk] for n, v in first.items()}, tolerance)))
        found = assemble(parts, int(np.prod(shape)), tuple(x.name for x in self.system.unknowns))
        found = shaped(found, shape)
        return found.require() if options.get("raise_on_failure") else found

    def _separated(self, at: Mapping[str, np.ndarray], flags: list[Structure]) -> np.ndarray:
        """The points at which m mu_0(kappa) alone has the sign of every label, at no cost as d -> oo: the loss has no minimiser."""
        aligned = np.array([k for k, st in enumerate(flags) if st.aligned and self.binary and at["epsilon"][k] == 0], dtype=int)
        falls = self.loss.at(1).diff(f).subs(f, 50) <= 0 and self.loss.at(-1).diff(f).subs(f, -50) >= 0 if aligned.size else False
        if not falls:
            return np.empty(0, dtype=int)
        from hermitex.kernels.compile import compile

        near = np.linspace(0.013, 7, 60)
        x = np.concatenate([-near, near])
        r_, b_, c_, gamma_ = (at[n][aligned, None] for n in ("r", "bias", "c", "gamma"))
        agree = mu(self.sigma, 0)(r_*x + b_, r=1.0, c=c_)*np.asarray(compile(self.g(z))(z=gamma_*x))
        return aligned[np.all(agree > 0, axis=1) | np.all(agree < 0, axis=1)]

    def _unbounded(self, points: int) -> Solution:
        why = ("m runs to infinity: the spike alone separates the labels (gamma = 1, no noise), so the loss has no minimiser as "
               "d -> oo; dimension=d gives the 1/d term that bounds m")
        names = tuple(x.name for x in self.system.unknowns)
        nothing = np.full(points, np.nan)
        values = {n: nothing for n in (*names, *(o.name for o in self.system.observables))}
        return Solution(values, residual=np.full(points, np.inf),
                        converged=np.zeros(points, dtype=bool), iterations=np.zeros(points, dtype=int), contraction=nothing,
                        error=nothing, method="none", reason=np.full(points, why, dtype=object), unknowns=names)

    def _flags(self, at: Mapping[str, np.ndarray]) -> list[Structure]:
        """The structure of each point."""
        aligned = (np.abs(at["gamma"]) == 1) & ((at["Delta"] == 0) | (not self.binary))
        mute = at["r"] == 0
        if np.any(mute):
            mean = mu(self.sigma, 0)(at["bias"], r=1.0, c=at["c"])
            size = np.sqrt(mean**2 + mu_star(self.sigma).squared(at["bias"], r=1.0, c=at["c"]))
            mute = mute & (np.abs(mean) <= 1e-13*size)
        linear = self.sigma.expr.diff(z, 2) == 0 if not free_parameters(self.sigma) else False
        mirror = at["bias"] == 0 if self._odd else np.zeros(mute.shape, dtype=bool)
        noisy = (at["Delta"] > 0) | self.binary | (self.loss.of_residual is not None)
        return [self.structure(mirror=bool(mirror[k]), aligned=int(aligned[k]*at["gamma"][k]), mute=bool(mute[k]), linear=linear,
                               noisy=bool(noisy[k])) for k in range(len(mute))]


_BATCH = {"labels": 20, "residual": 20, "values": 1}
_LARGE_LAM, _ROUGH = 1.0, 1e-6
_TRIPLE = 1e-8  # what threefold averages are held to: a grid that is twice as fine costs eight times as much


def solved(system: System, at: Mapping[str, np.ndarray], start: Mapping[str, np.ndarray], tolerance: float) -> Solution:
    """The solution at points of one structure: followed from lam = 1 down, a decade a step, unless a start is given."""
    low = np.clip(at["lamda"], 1e-8, _LARGE_LAM)
    steps = 0 if start else int(np.ceil(-np.log10(low.min()) - 1e-9))
    near = dict(start)
    for k in range(steps):
        here = {**at, "lamda": np.maximum(at["lamda"], low**(k/steps))}
        found = system.solve(here, start=near, tolerance=_ROUGH, raise_on_failure=False)
        near = {n: _usable(found[n], _positive(system, n)) for n in found.unknowns}
    return system.solve(at, start=near, tolerance=tolerance, raise_on_failure=False)


def _usable(v: np.ndarray, positive: bool) -> np.ndarray:
    """Values to start from, 1 or 0 where there are none."""
    return np.where(np.isfinite(v) & ((v > 0) | (not positive)), v, float(positive))


def _positive(system: System, name: str) -> bool:
    return any(x.name == name for x in system.positive)
