r"""J = sum_y E[p_y s_y],  omega = B + S w,  p_y = P(y | kappa, omega): labels of +-1, over a grid of (kappa, w).

P(y = 1) = (1 + E g(a + s_0 z))/2 at a = gamma kappa + sqrt(rho) tau w, tau = mu_1 psi/S, s_0^2 = rho (1 - tau^2) + Delta.
A force turns where omega = f_k + V l'(f_k -+ 0), f_k a kink of the loss: between such places are Gauss rules, which move
with the state. All slopes follow from ds/dV = s ds/domega and dp/ds_0 = s_0 d^2p/da^2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from sympy import Expr, Symbol

from hermitex.errors import HermitexError
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.moreau import Prox
from hermitex.symbolic.pieces import pieces
from hermitex.symbols import f
from hermitex.theories.losses.loss_equations import STILL, Structure
from hermitex.theories.losses.loss_grid import Array, Averages, LossGrid, LossRule, between, functions, numbers, smooth
from hermitex.theories.losses.loss_labels import a, probability, s_0

_omega, _V = Symbol("omega", real=True), Symbol("V", positive=True)
_PANEL = {True: 1.5, False: 3.0}  # in w, without cuts: a smooth force bends where one with kinks has its cuts


def supports_sign_grid(st: Structure) -> bool:
    """True if forces and the probability of a label are formulas without averages, and the kinks of the loss are known."""
    if st.kind != "labels" or st.aligned or probability(st.g).has(Expectation):
        return False
    return smooth(st) or (_kinks(st) is not None and not any(s.has(Prox) for y in (1, -1) for s in _force(st, y)))


@lru_cache(maxsize=64)
def _force(st: Structure, label: int) -> tuple[Expr, Expr]:
    return st.loss.force(label, _omega, _V)


@lru_cache(maxsize=64)
def _kinks(st: Structure) -> tuple[tuple[float, float, float], ...] | None:
    """(f_k, l'(f_k - 0), l'(f_k + 0)) of the kinks of l(1, f) and l(-1, f); None if they are not found."""
    found = []
    try:
        for y in (1, -1):
            for left, right in pairwise(pieces(st.loss.at(y), f)):
                found.append((left.hi, *(e.expr.diff(f).subs(f, left.hi) for e in (left, right))))
        rows = tuple((float(x), float(before), float(after)) for x, before, after in found)
    except (HermitexError, NotImplementedError, ValueError, TypeError):
        return None
    most_kinks = 16  # each cuts the axis of every node
    return rows if len(rows) <= most_kinks and np.all(np.isfinite(rows)) else None


@dataclass(frozen=True, eq=False)
class _LabelFunctions:
    """(s_+, s_-), their slopes in omega, (f*_+, f*_-), at (omega, V); the losses, at f; P(y = 1) and its slopes, at a, s_0, ..."""

    forces: Callable[..., list[Any]] | None
    losses: Callable[..., list[Any]]
    chance: Callable[..., list[Any]]
    letters: tuple[str, ...]


@lru_cache(maxsize=64)
def _compiled(st: Structure) -> _LabelFunctions:
    chance = [probability(st.g)]
    for _ in range(3):
        chance.append(chance[-1].diff(a))
    forces = None
    if not smooth(st):
        (up, f_up), (down, f_down) = (_force(st, y) for y in (1, -1))
        forces = functions([_omega, _V], [up, down, up.diff(_omega), down.diff(_omega), f_up, f_down])
    letters = sorted(st.g.letters, key=str)
    losses = functions([f], [st.loss.at(1), st.loss.at(-1)])
    return _LabelFunctions(forces, losses, functions([a, s_0, *letters], chance), tuple(s.name for s in letters))


class SignGrid(LossGrid):
    """One point on one rule; `rule.nodes[1]` nodes between two cuts of w."""

    axes = (0, 1, 4)
    beyond = 30.0
    first = LossRule(steps=(0.2, 0.5, 0.5, 0.5), nodes=(30, 16), window=9.0)

    def __init__(self, st: Structure, at: Mapping[str, float], rule: LossRule) -> None:
        self.joined = True
        self.begin(st, at, rule)
        self.bent = numbers(st) if smooth(st) else None
        self.compiled = _compiled(st)
        self.near: Any = [None, None]
        self.rho, self.noise = 1 - at["gamma"]**2, at["Delta"]
        self.kinks = () if self.bent else _kinks(st) or ()
        self.panel = _PANEL[self.bent is not None]
        self.panels = int(np.ceil(rule.window/self.panel))  # on either side of 0

    @property
    def size(self) -> int:
        """Number of nodes."""
        return int(self.kappa.size*self.rule.nodes[1]*(2*self.panels + 2*len(self.kinks)))

    def fields(self, v: Array) -> tuple[Array, ...]:
        """V, B, tau, S and s_0 at each kappa; nan for S where the output would tell more of the label than all there is."""
        V1, V2, m, zeta, psi, q1, q2 = v
        V = self.mu_1**2*V1 + self.mu_22*V2 + float(STILL)
        B = self.mu_0*m + self.kappa*self.mu_1*zeta
        S = np.sqrt(self.mu_1**2*q1 + self.mu_22*q2 + float(STILL))
        tau = self.mu_1*psi/S
        rest = self.rho*(1 - tau**2) + self.noise
        return V, B, tau, np.where(rest > 0, S, np.nan), np.sqrt(np.maximum(rest, 0.0))

    def _nodes(self, fields: tuple[Array, ...], *more: float) -> tuple[Array, Array]:
        """w and weights (K, n) between the places where a force turns, or omega passes one more."""
        V, B, _, S, _ = fields
        places = [np.full_like(V, x) for x in more]
        for at, *sides in self.kinks:
            places += [at + V*slope for slope in dict.fromkeys(sides)]
        even = self.panel*np.arange(1 - self.panels, self.panels)
        cuts = [np.broadcast_to(even, (V.size, even.size)), *(((x - B)/S)[:, None] for x in places)]
        return between(np.nan_to_num(np.concatenate(cuts, axis=1)), self.rule.nodes[1], self.rule.window)

    def _forces(self, omega: Array, V: Array) -> tuple[Array, Array, Array]:
        """s, ds/domega and f* of both labels: arrays (2, K, n)."""
        if self.compiled.forces is not None:
            rows = np.array(np.broadcast_arrays(*self.compiled.forces(omega, V), omega)[:6])
            return rows[:2], rows[2:4], rows[4:]
        assert self.bent is not None
        found = []
        for k, y in enumerate((1.0, -1.0)):
            self.near[k] = f_star = self.bent.prox(omega, V, np.asarray(y), self.near[k])
            slope, bend = self.bent.slopes(y, f_star)
            found.append(np.broadcast_arrays(-slope, -bend/(1 + V*bend), f_star))
        return tuple(np.stack(part) for part in zip(*found, strict=True))  # type: ignore[return-value]

    def _chances(self, w: Array, fields: tuple[Array, ...]) -> list[Array]:
        """P(y = 1) and its slopes in a."""
        at = self.at["gamma"]*self.kappa[:, None] + np.sqrt(self.rho)*fields[2][:, None]*w
        found = self.compiled.chance(at, fields[4][:, None], *(self.at[n] for n in self.compiled.letters))
        return [np.broadcast_to(p, w.shape) for p in found]

    def averages(self, v: Array) -> Averages:
        """The averages and their slopes at (V1, V2, m, zeta, psi, q1, q2)."""
        fields = V, B, tau, S, width = self.fields(v)
        w, weight = self._nodes(fields)
        (up, down), (up_s, down_s), _ = self._forces(B[:, None] + S[:, None]*w, V[:, None])
        p, p_1, p_2, p_3 = self._chances(w, fields)
        root, not_p = np.sqrt(self.rho), 1 - p
        bend = p*up_s + not_p*down_s  # of the mean force, by omega
        pull = p*up*up_s + not_p*down*down_s  # and by V
        gap, gap_2 = up - down, up*up - down*down
        rows = [p*up + not_p*down, pull, bend, w*bend, root*w*gap*p_1, gap*p_2,  # E s, and its slopes in V, B, S, tau, s_0
                p*up*up + not_p*down*down, 2*(p*up*up*up_s + not_p*down*down*down_s), 2*pull, 2*w*pull, root*w*gap_2*p_1, gap_2*p_2,
                root*gap*p_1, root*p_1*(up*up_s - down*down_s), root*p_1*(up_s - down_s), root*w*p_1*(up_s - down_s),
                self.rho*w*gap*p_2, root*gap*p_3]
        found = [np.einsum("kn,kn->k", x, weight) for x in rows]
        moved = [np.einsum("kn,kn,kn->k", x, weight, w) for x in rows[:6]]  # E w s, and its slopes
        J, J_2, J_z, J_w = (np.stack(part) for part in (found[:6], found[6:12], found[12:], moved))
        for part in (J, J_2, J_z, J_w):
            part[5] *= width
        J_s = (tau*J_z - J_w)/S
        J_s[3] -= J_s[0]/S
        J_s[4] += J_z[0]/S
        local = np.stack([J, J_s, J_2, J_z])  # (4, 1 + 5, K)
        return Averages(local[:, 0], np.einsum("alk,lkv->akv", local[:, 1:], self._moves(v, tau, S, width)))

    def _moves(self, v: Array, tau: Array, S: Array, width: Array) -> Array:
        """The slopes (5, K, 7) of V, B, S, tau and s_0 in (V1, V2, m, zeta, psi, q1, q2)."""
        m1, zero = self.mu_1, np.zeros_like(self.mu_1)
        dV = np.stack([m1**2, self.mu_22, zero, zero, zero, zero, zero], axis=1)
        dB = np.stack([zero, zero, self.mu_0, self.kappa*m1, zero, zero, zero], axis=1)
        dS = np.stack([zero, zero, zero, zero, zero, m1**2, self.mu_22], axis=1)/(2*S[:, None])
        dtau = -(tau/S)[:, None]*dS
        dtau[:, 4] += m1/S
        return np.stack([dV, dB, dS, dtau, -self.rho*(tau/width)[:, None]*dtau])

    def falls(self) -> bool:
        """False: both labels occur at every output."""
        return False

    def observables(self, v: Array) -> dict[str, float]:
        """P(y omega < 0), and the mean loss of a training and of a fresh sample."""
        fields = V, B, _, S, _ = self.fields(v)
        w, weight = self._nodes(fields)
        up, down = self._forces(B[:, None] + S[:, None]*w, V[:, None])[2]
        train = self._mean(self._chances(w, fields)[0], (up, down), weight)
        w, weight = self._nodes(fields, 0.0, *(at for at, *_ in self.kinks))
        omega, p = B[:, None] + S[:, None]*w, self._chances(w, fields)[0]
        wrong = self.weight @ np.einsum("kn,kn->k", weight, np.where(omega > 0, 1 - p, p))
        return {"test_error": float(wrong), "train_error": train, "test_loss": self._mean(p, (omega, omega), weight)}

    def _mean(self, p: Array, outputs: tuple[Array, Array], weight: Array) -> float:
        """The mean loss at the outputs of both labels."""
        up, down = (self.compiled.losses(at)[k] for k, at in enumerate(outputs))
        return float(self.weight @ np.einsum("kn,kn->k", weight, p*up + (1 - p)*down))
