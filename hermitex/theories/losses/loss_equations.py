r"""Vhat_i = (alpha/beta) E[mu_i^2 (-ds/domega)],  qhat_i = (alpha/beta) E[mu_i^2 s^2],  E[mu_0 s] = 0: any convex loss.

The readout after one giant gradient step minimises sum l(y, f) + lam/2 |a|^2. Through the equivalent spiked random
features its output on a fresh sample is omega = mu_0 m + kappa mu_1 zeta + mu_1 psi z + Gaussian, and on a training sample
f* = argmin (f - omega)^2/(2V) + l(y, f), s = (f* - omega)/V [cui2024, Result 3.3, extended to convex losses].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sympy import Dummy, Eq, Expr, Float, Piecewise, S, Symbol, erf, sqrt, symbols

from hermitex.errors import HermitexError
from hermitex.kernels.closed_form_choice import exact_or_none
from hermitex.symbolic.activations import Activation
from hermitex.symbolic.gaussian import E
from hermitex.symbolic.integrals import closed_form
from hermitex.symbols import Delta, alpha, beta, c, f, gamma, kappa, lamda, m, psitilde, y, z, z1, z2, z3, zeta, zetatilde
from hermitex.systems.system import System
from hermitex.theories.losses.loss_labels import a, agreement, probability, s_0
from hermitex.theories.losses.pointwise import Pointwise, envelope, force
from hermitex.theories.one_step import V1, V2, Vhat1, Vhat2, bias, epsilon, psi, q1, q2, qhat1, qhat2, r
from hermitex.theories.spike import own_letters

# local scalars of a sample at fixed kappa
V, S_, tau, L, u, T0, T1, T2, rho = symbols("V S tau L u T0 T1 T2 rho", positive=True)
# in place of a variance 0: a feature that does not vary at some kappa (a ReLU far on its dark side) divides by none
STILL = Float(1e-100)
mu_0, mu_1, B, J, J_z, J_2, J_s, t_0 = symbols("mu_0 mu_1 B J J_z J_2 J_s t_0", real=True)
mu_22 = Symbol("mu_22", nonnegative=True)
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


Average = Callable[[Expr], Any]
Output = tuple[dict[Any, Any], dict[str, Any]]


def over_spike(e: Expr) -> Any:
    """The average over the projection on the spike."""
    return E(e, kappa)


def sample_averages(st: Structure, K: Average = over_spike) -> Output:
    """What a sample gives: names for J, J_z, J_2, J_s and V's other names, and the observables; K averages over kappa."""
    return {"labels": _labels, "residual": _residual, "values": _values}[st.kind](st, K)


def without_spike(st: Structure, here: Mapping[Symbol, Expr]) -> Output:
    """The averages of a sample at one kappa: `here` are its scalars there. Without an intercept B nothing needs J."""
    here = {mu_1: S.One, mu_22: S.Zero, kappa: S.Zero, **here}
    names, observables = sample_averages(st, lambda e: e)
    return ({n: e.xreplace(here) for n, e in names.items() if n != J or here[B] != 0},
            {n: e.xreplace(here) for n, e in observables.items()})


# -- labels of +-1 -----------------------------------------------------------------------------------------------------
def _labels(st: Structure, K: Average) -> Output:
    """Both labels summed with P(y | kappa, omega), omega = B + S z1: averages over kappa and z1.

    Given omega the target's argument is normal with mean a = gamma kappa + sqrt(rho) tau z1, tau = mu_1 psi/S, and
    variance s_0^2 = rho (1 - tau^2) + Delta, so P(y = 1) = (1 + E g(a + s_0 z))/2. By parts,
    E[-ds/domega] = (sqrt(rho) tau E[s dP/da] - E[z1 s])/S: no derivative of a kinked force is taken.
    """
    omega = B + S_*z1
    (up, f_up), (down, f_down) = st.loss.force(1, omega, V), st.loss.force(-1, omega, V)
    where: dict[Any, Any] = {S_: sqrt(mu_1**2*q1 + mu_22*q2 + STILL)}
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
        "test_error": _error(st, K),
        "train_error": K(both(plus.subs(f, f_plus), minus.subs(f, f_minus))),
        "test_loss": K(both(plus.subs(f, omega), minus.subs(f, omega))),
    }
    return where, observables


def _error(st: Structure, K: Average) -> Expr:
    """P(y != sign omega) = (1 - E[y sign omega])/2."""
    if st.aligned:  # omega is normal at fixed kappa
        return K((1 - st.g(st.aligned*kappa)*erf(B/(sqrt(2)*S_)))/2)
    agrees, (shift, slope, edge) = agreement(st.g)
    at = {shift: gamma*kappa, slope: sqrt(rho)*tau, edge: B/S_}
    if agrees is not None:
        return K((1 - agrees.xreplace(at))/2)
    # Where omega changes sign the integrand jumps: a variable of its own, with its own break point.
    chance = probability(st.g).xreplace({a: gamma*kappa + sqrt(rho)*tau*z2})
    return K(E(chance + Piecewise((S.One, z2 > -B/S_), (S.Zero, True))*(1 - 2*chance), z2))


# -- real labels -------------------------------------------------------------------------------------------------------
def noiseless_label(st: Structure) -> Expr:
    """The label without noise, g(<theta, x>), at fixed kappa and z1."""
    return st.g(st.aligned*kappa) if st.aligned else st.g(gamma*kappa + sqrt(rho)*z1)


def _residual(st: Structure, K: Average) -> Output:
    """l = h(y - f): the force depends on t = y - omega, normal at fixed kappa and z1 (the target's other direction).

    Its mean is t_0 = g(gamma kappa + sqrt(rho) z1) - B - mu_1 psi z1, its variance tau^2 = mu_1^2 (q1 - psi^2) + mu_22 q2 +
    Delta: the noise is joined to omega. If E h'(e*) has a closed form, two averages are left, else three.
    """
    h = st.loss.of_residual
    assert h is not None
    e_star = Symbol("e_star", real=True)
    where: dict[Any, Any] = {tau: sqrt(mu_1**2*(q1 - psi**2) + mu_22*q2 + Delta + STILL),
                             t_0: noiseless_label(st) - B - (0 if st.aligned else mu_1*psi*z1)}
    smoothed, fresh = closed_moments(h), closed_loss(h)
    at = {_M: t_0, _TAU: tau, _V: V}

    def over(e: Expr, *noise: Symbol) -> Expr:
        return E(e, *((*noise,) if st.aligned else (z1, *noise))) if noise or not st.aligned else e

    if smoothed is not None:
        force_, square, moreau = smoothed
        where |= {s_plus: force_.xreplace(at), p_slope: force_.diff(_M).xreplace(at), s_minus: square.xreplace(at)}
        where |= {J: over(s_plus), J_s: over(p_slope), J_2: over(s_minus)}
        noise: tuple[Symbol, ...] = ()
        train = over(moreau.xreplace(at) - V/2*s_minus)
    else:
        s, e = force(h, t_0 + tau*z2, V)
        where |= {s_plus: -s, e_star: e}
        where |= {J: over(s_plus, z2), J_s: over(z2*s_plus/tau, z2), J_2: over(s_plus**2, z2)}
        noise = (z2,)
        train = over(h.subs(f, e_star), z2)
    where |= {J_z: S.Zero if st.aligned else over(z1*s_plus, *noise) + mu_1*psi*J_s}
    test = over(fresh.xreplace(at)) if fresh is not None else over(h.subs(f, t_0 + tau*z2), z2)
    square_error = K(over(t_0**2)) + K(tau**2) - Delta
    return where, {"test_error": square_error, "train_error": K(train), "test_loss": K(test),
                   "test_error_noisy": square_error + Delta}


_M, _TAU, _V = Symbol("M_0", real=True), Symbol("tau_0", positive=True), Symbol("V_0", positive=True)


@lru_cache(maxsize=64)
def closed_moments(h: Expr) -> tuple[Expr, Expr, Expr] | None:
    """E[s], E[s^2] and the mean Moreau envelope of h at t = M + tau z, in closed form; None where one has none."""
    at = Dummy("t", real=True)
    s, _ = force(h, at, _V)
    try:
        return tuple(closed_form(E(e.xreplace({at: _M + _TAU*z}), z)) for e in (-s, s**2, envelope(h, at, _V)))  # type: ignore[return-value]
    except (HermitexError, RecursionError):
        return None


@lru_cache(maxsize=64)
def closed_loss(h: Expr) -> Expr | None:
    """E h(M + tau z) in closed form, or None."""
    return exact_or_none(E(h.subs(f, _M + _TAU*z), z))


def _values(st: Structure, K: Average) -> Output:
    """Any loss with y = g(gamma kappa + sqrt(rho) z1) + sqrt(Delta) z3 and omega = B + mu_1 psi z1 + tau z2.

    Where l = b(f) - k y f + a(y), f* depends on omega + k V y only: with S^2 = tau^2 + k^2 V^2 Delta in place of tau^2 the
    noise is joined to omega, and E s^2 = E e^2 + k^2 Delta (1 - 2 V E[-ds/domega]) for the force e at the clean label.
    """
    side = S.Zero if st.aligned else mu_1*psi*z1
    k = st.loss.family if st.noisy else None
    joined = k is not None
    width, extra = (S_, k**2*Delta) if k is not None else (tau, S.Zero)
    label, omega = Symbol("y", real=True), B + side + width*z2
    outer = () if st.aligned else (z1,)
    third = (z3,) if st.noisy and not joined else ()
    over = (*outer, z2, *third)
    s, f_star = st.loss.force(label, omega, V)
    where = {tau: sqrt(mu_1**2*(q1 - psi**2) + mu_22*q2 + STILL), label: noiseless_label(st) + sum(sqrt(Delta)*v for v in third),
             s_plus: s, f_plus: f_star}
    if joined:
        where |= {S_: sqrt(tau**2 + V**2*extra)}
    where |= {J: E(s_plus, *over), J_s: -E(z2*s_plus, *over)/width, J_2: E(s_plus**2, *over) + extra*(1 - 2*V*J_s),
              J_z: S.Zero if st.aligned else E(z1*s_plus, *over) + mu_1*psi*J_s}
    gap = (noiseless_label(st) - B - side)**2
    square_error = K(gap if st.aligned else E(gap, z1)) + K(tau**2)
    train = K(E(st.loss.expr.subs({f: f_plus, y: label}), *over))
    test = K(E(st.loss.expr.subs({f: B + side + tau*z2, y: label}), *over))
    if joined:  # E (y - E y) f* = k V Delta E[df*/domega]
        rest = st.loss.of_label
        excess = rest.subs(y, label + sqrt(Delta)*z3) - rest.subs(y, label)
        more = K(E(excess, *outer, z3)) if y in rest.free_symbols else S.Zero
        train += more - K(V*extra/S_*E(z2*f_plus, *over))
        test += more
    return where, {"test_error": square_error, "test_error_noisy": square_error + Delta, "train_error": train, "test_loss": test}


# -- the equations -----------------------------------------------------------------------------------------------------
@lru_cache(maxsize=64)
def equations(st: Structure) -> System:
    """The equations of a convex loss; J = E[s], J_s = E[-ds/domega], J_2 = E[s^2] at fixed kappa, J_z that of psitilde."""
    w = r*kappa + bias + sqrt(c)*z
    own, observables = sample_averages(st)
    K = over_spike
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
        V: mu_1**2*V1 + mu_22*V2 + STILL,
        B: mu_0*m + kappa*mu_1*zeta,
        **own,
        L: lamda + Vhat2,
        u: 1/(1 + c*beta*Vhat1*V2),
        T0: V2**2/(1 - beta*(c*Vhat1*u*V2)**2),
        T1: c*u**2*T0,
        T2: c*u**2*T1 + beta*V1**2,
    }
    letters = own_letters((st.sigma, st.g), ())
    observables["train_objective"] = observables["train_error"] + lamda*beta*q2/(2*alpha)
    return System(right, where=where, observables=observables,
                  parameters=[alpha, beta, lamda, r, c, gamma, Delta, bias, epsilon, *letters], positive=[qhat1, qhat2],
                  kept=[k for k in (V, B, S_, tau, s_0, J, J_z, J_2, J_s) if k in where],
                  source="arXiv:2402.04980, Result 3.3, for a convex loss",
                  name=f"one_step({st.sigma.name}, {st.g.name}, {st.loss})")
