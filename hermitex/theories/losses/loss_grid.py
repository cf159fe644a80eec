r"""J = E[s],  J_s = -E[w s]/S,  J_2 = E[s^2],  J_z = E[z1 s] + mu_1 psi J_s  at fixed kappa, over a grid of (z1, w).

For smooth losses whose averages have no closed form: f* by Newton's method at all nodes at once, begun from the f* of the
step before, and the exact slopes of all averages from the one table E[s_omega a b], a and b among 1, z1, w and s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from sympy import Expr, Rational, Symbol

from hermitex.errors import BadInput, HermitexError
from hermitex.kernels.arrays import lambdify
from hermitex.kernels.compile import compile
from hermitex.kernels.recognition import recognise
from hermitex.numbers.gauss import legendre_on
from hermitex.symbolic.activations import Activation
from hermitex.symbolic.breaks.switches import SWITCHES
from hermitex.symbolic.pieces import breakpoints
from hermitex.symbols import f, y, z
from hermitex.theories.conditional_coefficients import mu, mu_star
from hermitex.theories.losses.loss_equations import Structure, closed_moments

Array = np.ndarray


def smooth(st: Structure) -> bool:
    """True if the loss has no switch of f."""
    return not any(f in s.free_symbols for s in st.loss.expr.atoms(*SWITCHES))


def supports_grid(st: Structure) -> bool:
    """True if the loss is smooth in f and asks for a minimiser at every node; labels of +-1 where kappa decides them."""
    if not smooth(st):
        return False
    if st.kind == "labels":
        return bool(st.aligned) and st.g.expr.free_symbols == {z} and cuts(st.g(z)).size > 0
    h = st.loss.of_residual
    return st.kind == "values" or (h is not None and closed_moments(h) is None)


# -- nodes -------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class LossRule:
    """Steps of the trapezoid rules in kappa, z1, w and the noise; nodes of a Gauss rule between two cuts; the window."""

    steps: tuple[float, float, float, float] = (0.4, 0.5, 0.5, 0.5)
    nodes: tuple[int, int] = (30, 24)  # kappa, z1
    window: float = 7.5

    def finer(self, axis: int) -> LossRule:
        """The rule with one axis finer by half; axis 4 is the window."""
        if axis == 4:
            return replace(self, window=self.window + 2.5)
        steps: Any = list(self.steps)
        nodes: Any = list(self.nodes)
        steps[axis] /= 1.5
        if axis < 2:
            nodes[axis] = int(1.5*nodes[axis])
        return replace(self, steps=tuple(steps), nodes=tuple(nodes))


def normal(step: float, window: float) -> tuple[Array, Array]:
    """Nodes and weights of the trapezoid rule for the standard normal."""
    half = int(np.ceil(window/step))
    x = step*np.arange(-half, half + 1)
    return x, step*np.exp(-x**2/2)/np.sqrt(2*np.pi)


def between(cuts: Array, count: int, window: float) -> tuple[Array, Array]:
    """Gauss rules between the cuts (..., k), for the standard normal: nodes and weights (..., (k + 1) count)."""
    inside = np.clip(np.sort(cuts, axis=-1), -window, window)
    ends = np.full((*inside.shape[:-1], 1), window)
    edges = np.concatenate([-ends, inside, ends], axis=-1)
    at, weight = (a.reshape(*inside.shape[:-1], -1) for a in legendre_on(edges, count))
    return at, weight*np.exp(-at**2/2)/np.sqrt(2*np.pi)


@lru_cache(maxsize=64)
def cuts(e: Expr) -> Array:
    """The break points of an expression in z near 0, or none where they are not found exactly or are many."""
    reach = 40  # half a window: beyond it exp(-z^2/2) underflows
    try:
        found = np.array([float(p) for p in breakpoints(e, z, (-reach, reach))])
    except (HermitexError, NotImplementedError, ValueError, TypeError):
        return np.empty(0)
    most_cuts = 8  # each adds a panel on the axis
    return found if found.size <= most_cuts else np.empty(0)


# -- the loss in numbers -----------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Numbers:
    """The loss, (its slope, its curvature) and its minimiser as functions of arrays."""

    value: Callable[..., Any]
    slopes: Callable[..., Any]
    minimiser: Callable[..., Any]

    def prox(self, omega: Array, V: Array, label: Array, near: Array | None) -> Array:
        """argmin (f - omega)^2/(2V) + l(label, f): Newton from `near`, or omega; the safe method where that does not arrive."""
        at = omega if near is None or near.shape != omega.shape else near
        steps = 12  # of Newton's method, which is quadratic from a near start; what takes more goes to the safe method
        for _ in range(steps):
            slope, curvature = self.slopes(label, at)
            step = (at - omega + V*slope)/(1 + V*curvature)
            at = at - step
            if not (worst := float(np.max(np.abs(step)/(1 + np.abs(at))))) > 1e-8:
                break
        lost = ~(np.abs(step) <= 1e-7*(1 + np.abs(at))) if worst > 1e-8 or worst != worst else np.zeros(1, dtype=bool)
        if lost.any():
            V, label = np.broadcast_to(V, omega.shape), np.broadcast_to(label, omega.shape)
            at = at.copy()
            at[lost] = self.minimiser(omega=omega[lost], V=V[lost], y=label[lost])
        return at


def functions(letters: Sequence[Symbol], exprs: Sequence[Expr]) -> Callable[..., list[Any]]:
    """Several formulas at arrays, what they share worked out once."""
    made: Callable[..., list[Any]] = lambdify(list(letters), [recognise(e) for e in exprs], modules=["scipy", "numpy"], cse=True)
    return made


@lru_cache(maxsize=64)
def numbers(st: Structure) -> Numbers:
    """The loss of a structure, compiled."""
    letter = Symbol("y", real=True)
    expr = st.loss.expr.subs(y, letter)
    _, f_star = st.loss.force(letter, Symbol("omega", real=True), Symbol("V", positive=True))

    kernel, value = compile(f_star), functions([letter, f], [expr])
    return Numbers(lambda label, at: np.asarray(value(label, at)[0]), functions([letter, f], [expr.diff(f), expr.diff(f, 2)]),
                   lambda **given: kernel(**{n: given[n] for n in kernel.parameters}))


@lru_cache(maxsize=64)
def features(sigma: Activation, mute: bool, linear: bool, shift: bytes, c: float, letters: tuple[tuple[str, float], ...]
             ) -> tuple[Array, Array, Array]:
    """mu_0, mu_1 and mu_star^2 of the features at these shifts of their argument."""
    at: dict[str, Any] = {"kappa": np.frombuffer(shift), "r": 1.0, "c": c, **dict(letters)}
    none = np.zeros_like(at["kappa"])
    return (none if mute else mu(sigma, 0)(**at), mu(sigma, 1)(**at),
            none if linear else np.maximum(mu_star(sigma).squared(**at), 0.0))


# -- the averages ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Averages:
    """J, J_s, J_2, J_z at each kappa, and their slopes in (V1, V2, m, zeta, psi, q1, q2): arrays (4, K), (4, K, 7)."""

    values: Array
    slopes: Array


class LossGrid:
    """One point (numbers of a theory) on one rule: what no unknown enters, and the averages over a sample."""

    first = LossRule()
    beyond = 1.0  # how many times better than asked the first rules are to hold

    def __init__(self, st: Structure, at: Mapping[str, float], rule: LossRule) -> None:
        self.loss = numbers(st)
        self.family = float(st.loss.family) if st.kind == "values" and st.loss.family is not None else 0.0
        self.joined = st.kind == "residual" or bool(self.family) or at["Delta"] == 0
        self.begin(st, at, rule)
        edges = self._edges()
        gamma = at["gamma"]
        rho = max(1 - gamma**2, 0.0)
        if st.aligned:
            self.z1, w1 = np.zeros((1, 1)), np.ones((1, 1))
        elif edges.size:
            self.z1, w1 = between((edges - gamma*self.kappa[:, None])/np.sqrt(rho), rule.nodes[1], rule.window)
        else:
            self.z1, w1 = (v[None] for v in normal(rule.steps[1], rule.window))
        self.w, ww = normal(rule.steps[2], rule.window)
        z3, w3 = (np.zeros(1), np.ones(1)) if self.joined else normal(rule.steps[3], rule.window)
        self.clean = self._target(gamma*self.kappa[:, None] + np.sqrt(rho)*self.z1)
        self.label = self.clean[..., None, None] + np.sqrt(at["Delta"])*z3 if not self.joined else self.clean[..., None, None]
        self.weights = w1[..., None, None]*ww[:, None]*w3
        self.near: list[Array | None] = [None]*len(self._chunks)

    def begin(self, st: Structure, at: Mapping[str, float], rule: LossRule) -> None:
        """The nodes of kappa, and what the features are there."""
        self.st, self.rule, self.at = st, rule, at
        edges = self._edges() if st.aligned else np.empty(0)
        self.kappa, self.weight = (between(edges/at["gamma"], rule.nodes[0], rule.window) if edges.size
                                   else normal(rule.steps[0], rule.window))
        shift, letters = at["r"]*self.kappa + at["bias"], tuple(self._letters(st.sigma).items())
        self.mu_0, self.mu_1, self.mu_22 = features(st.sigma, st.mute, st.linear, shift.tobytes(), at["c"], letters)

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes along which a rule is made finer: kappa, z1, w, the noise, the window."""
        return (0, *(() if self.st.aligned else (1,)), 2, *(() if self.joined else (3,)), 4)

    def _letters(self, function: Any) -> dict[str, float]:
        return {s.name: float(self.at[s.name]) for s in function.letters}

    def _edges(self) -> Array:
        letters = {s: Rational(self.at[s.name]) for s in self.st.g.letters}
        return cuts(self.st.loss.expr.subs({y: self.st.g(z).subs(letters), f: Rational(1, 3)}))

    def _target(self, x: Array) -> Array:
        return np.broadcast_to(np.asarray(compile(self.st.g(z))(**({"z": x} if z in self.st.g(z).free_symbols else {}),
                                                                **self._letters(self.st.g))), x.shape)

    @cached_property
    def _chunks(self) -> list[slice]:
        chunk = 100_000  # nodes in one sweep: what stays in the cache
        each = max(1, chunk//max(1, self.weights[0].size))
        return [slice(k, k + each) for k in range(0, self.kappa.size, each)]

    @property
    def size(self) -> int:
        """Number of nodes."""
        return int(self.kappa.size*self.weights[0].size)

    def fields(self, v: Array) -> tuple[Array, ...]:
        """V, B, tau^2 and S at each kappa; v = (V1, V2, m, zeta, psi, q1, q2)."""
        V1, V2, m, zeta, psi, q1, q2 = v
        V = self.mu_1**2*V1 + self.mu_22*V2
        B = self.mu_0*m + self.kappa*self.mu_1*zeta
        tau2 = self.mu_1**2*(q1 - psi**2) + self.mu_22*q2
        noise = self.at["Delta"]
        return V, B, tau2, np.sqrt(tau2 + (noise if self.st.kind == "residual" else (self.family*V)**2*noise))

    def _sample(self, v: Array, fields: tuple[Array, ...], k: int) -> tuple[Array, Array, Array]:
        """omega, f* and the labels of a chunk of nodes, all of one shape."""
        part = self._chunks[k]
        V, B, S, mu_1 = (x[part, None, None, None] for x in (fields[0], fields[1], fields[3], self.mu_1))
        z1, label = (x[part] if len(x) > 1 else x for x in (self.z1[..., None, None], self.label))
        shape = (V.shape[0], *np.broadcast_shapes(z1.shape[1:], label.shape[1:], self.weights.shape[1:]))
        omega = np.broadcast_to(B + mu_1*v[4]*z1 + S*self.w[:, None], shape)
        f_star = self.loss.prox(omega, V, label, self.near[k])
        self.near[k] = f_star
        return omega, f_star, label

    def averages(self, v: Array) -> Averages:
        """The averages and their slopes at (V1, V2, m, zeta, psi, q1, q2)."""
        fields = self.fields(v)
        first, table = np.empty((self.kappa.size, 4)), np.empty((self.kappa.size, 4, 4))
        for k, part in enumerate(self._chunks):
            _, f_star, label = self._sample(v, fields, k)
            count = f_star.shape[0]
            slope, curvature = self.loss.slopes(label, f_star)
            s, b = np.broadcast_to(-slope, f_star.shape), np.broadcast_to(curvature, f_star.shape)
            if np.any(b < 0):
                at = float(np.broadcast_to(label, b.shape)[b < 0][0])
                raise BadInput(f"one-step: the loss {self.st.loss} is not convex in f at labels that occur, such as y = {at:.3g}")
            weights = np.broadcast_to(self.weights[part] if len(self.weights) > 1 else self.weights, s.shape).reshape(count, -1)
            z1 = self.z1[part] if len(self.z1) > 1 else self.z1
            rows = (np.ones_like(s), np.broadcast_to(z1[..., None, None], s.shape), np.broadcast_to(self.w[:, None], s.shape), s)
            X = np.stack([x.reshape(count, -1) for x in rows], axis=1)
            pull = weights*(-b/(1 + fields[0][part, None, None, None]*b)).reshape(count, -1)  # ds/domega
            first[part] = (X @ (weights*X[:, 3])[..., None])[..., 0]
            table[part] = (X*pull[:, None]) @ X.transpose(0, 2, 1)
        return self._combined(v, fields, first, table)

    def _combined(self, v: Array, fields: tuple[Array, ...], first: Array, table: Array) -> Averages:
        """J, J_s, J_2, J_z from E[a s] and E[s_omega a b]: ds = s_omega (dB + mu_1 z1 dpsi + w dS + s dV)."""
        V, _, _, S = fields
        least = 1e-8  # of the largest S: omega does not move there
        still = least*np.max(S) >= S  # omega does not move there, and mu_1, mu_22 vanish: ds/domega itself, its slope not needed
        S = np.where(still, 1.0, S)
        m1, m2, psi, extra = self.mu_1, self.mu_22, v[4], self.family**2*self.at["Delta"] if self.st.kind == "values" else 0.0
        extra = extra if self.joined else 0.0
        zero = np.zeros_like(m1)
        dV = np.stack([m1**2, m2, zero, zero, zero, zero, zero], axis=1)
        dB = np.stack([zero, zero, self.mu_0, self.kappa*m1, zero, zero, zero], axis=1)
        dpsi = np.zeros(7)
        dpsi[4] = 1
        dS = np.stack([zero, zero, zero, zero, -psi*m1**2, m1**2/2, m2/2], axis=1)/S[:, None] + (V*extra/S)[:, None]*dV
        slope = (table[:, :, 0, None]*dB[:, None] + (table[:, :, 1]*m1[:, None])[..., None]*dpsi
                 + table[:, :, 2, None]*dS[:, None] + table[:, :, 3, None]*dV[:, None])  # of E[a s], a = 1, z1, w; half of E[s^2]
        J, J_1, J_w, J_2 = first.T
        J_s = np.where(still, -table[:, 0, 0], -J_w/S)
        d_s = np.where(still[:, None], 0.0, -slope[:, 2]/S[:, None] + (J_w/S**2)[:, None]*dS)
        J_2 = J_2 + extra*(1 - 2*V*J_s)
        d_2 = 2*slope[:, 3] - 2*extra*(J_s[:, None]*dV + V[:, None]*d_s)
        J_z = zero if self.st.aligned else J_1 + m1*psi*J_s
        d_z = 0*d_s if self.st.aligned else slope[:, 1] + m1[:, None]*(J_s[:, None]*dpsi + psi*d_s)
        return Averages(np.stack([J, J_s, J_2, J_z]), np.stack([slope[:, 0], d_s, d_2, d_z]))

    def falls(self) -> bool:
        """True if the mean loss falls without bound along the spike, so that m has no finite value as d -> oo."""
        size = np.max(np.abs(self.mu_0))
        times_size = 1e6  # of mu_0: the slope of a loss there is that at infinity
        far = times_size/size if size > 0 else 0.0
        weights = self.weights.sum(axis=-2)
        least_fall = 1e-9  # of the size: a fall below is rounding of the sum over the grid
        for side in (-far, far):
            output = (side*self.mu_0)[:, None, None]
            with np.errstate(all="ignore"):
                rise = self.loss.slopes(self.label[..., 0, :], output)[0]*self.mu_0[:, None, None]*side
            # inf where it rises fast, nan where mu_0 = 0 meets it
            if np.nansum(weights*self.weight[:, None, None]*rise) < -least_fall*abs(side)*size:
                return True
        return False

    def observables(self, v: Array) -> dict[str, float]:
        """E (g - omega)^2, and the mean loss of a fresh and of a training sample."""
        fields = self.fields(v)
        V, B, tau2, S = fields
        noise, extra = self.at["Delta"], self.family**2*self.at["Delta"] if self.joined else 0.0
        w1 = self.weights.sum(axis=(-2, -1))
        gap = (self.clean - B[:, None] - self.mu_1[:, None]*v[4]*self.z1)**2
        square = float(self.weight @ ((gap*w1).sum(axis=1) + tau2))
        train = test = 0.0
        for k, part in enumerate(self._chunks):
            omega, f_star, label = self._sample(v, fields, k)
            weights = (self.weights[part] if len(self.weights) > 1 else self.weights)*self.weight[part, None, None, None]
            side = omega - S[part, None, None, None]*self.w[:, None]
            fresh = omega if self.st.kind == "residual" else side + np.sqrt(tau2)[part, None, None, None]*self.w[:, None]
            train += float(np.sum(weights*self.loss.value(label, f_star)))
            if extra:  # E (y - E y) k f*
                train -= float(np.sum(weights*self.w[:, None]*f_star*(V*extra/np.where(S > 0, S, 1.0))[part, None, None, None]))
            test += float(np.sum(weights*self.loss.value(label, fresh)))
        more = self._of_noise(w1) if extra else 0.0
        if self.st.kind == "labels":  # P(y omega < 0), omega normal at fixed kappa and z1
            from scipy.special import ndtr  # a theory of real labels starts without scipy

            mean = self.clean*(B[:, None] + self.mu_1[:, None]*v[4]*self.z1)
            with np.errstate(all="ignore"):
                wrong = np.where(mean == 0, 0.5, ndtr(-mean/np.sqrt(tau2)[:, None]))
            return {"test_error": float(self.weight @ (wrong*w1).sum(axis=1)), "train_error": train, "test_loss": test}
        return {"test_error": square, "train_error": train + more, "test_loss": test + more, "test_error_noisy": square + noise}

    def _of_noise(self, w1: Array) -> float:
        """E a(y) - E a(g) for l = b(f) - k y f + a(y)."""
        rest = self.st.loss.of_label
        if y not in rest.free_symbols:
            return 0.0
        z3, w3 = normal(self.rule.steps[3], self.rule.window)
        a = compile(rest.subs(y, Symbol("y", real=True)))
        noisy = np.asarray(a(y=self.clean[..., None] + np.sqrt(self.at["Delta"])*z3)) @ w3
        return float(self.weight @ ((noisy - np.asarray(a(y=self.clean)))*w1).sum(axis=1))
