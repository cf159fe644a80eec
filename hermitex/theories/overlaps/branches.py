r"""alpha lambda(K dF(M)[.] K) = 1: where a block of overlaps leaves zero along a branch, and the branch that opens there.

From M = 0 the first branch opens; each is followed on the face that the map keeps (`path`), and along it the kernel K, in which
nothing is known yet, becomes unstable at the next stage: for committees the specialisation of the directions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit

from hermitex.errors import NoClosedForm
from hermitex.theories.overlaps.map import TRIVIAL, OverlapMap
from hermitex.theories.overlaps.path import OverlapPath, compressed, kept_face

Array = np.ndarray
_NODES = 20  # of a curve of full matrices
_RESOLVED = {1: 0.0, 2: 1e-2, 3: 4e-2}  # 1 - q of a branch of full matrices: its largest overlap is nearer to 1
_FIRST, _STEP, _LEAST = 0.0, 1.2, -6.0  # of logit(q): alpha lambda rises about like q/(1 - q)
_FAR = -2.0  # log(alpha lambda) at q = 1/2 below which the end of the branch is looked at first
CLOSE = 1e-5  # of logit(q), by the slope from one small overlap
_ROUGH, SHARP = (1,), (1, 2, 4)  # the small overlaps of K from which the rate is extrapolated
_SETTLED = 1e-7  # |H(M) - M| of a point on the branch
WHAT, NEXT = "where the state evolution reaches the directions", "Follow the overlaps with hermitex curve bayes-amp"
LEAST = 1e-3  # a growth rate of the size of the seed is that of an overlap that enters at second order


@dataclass(frozen=True, eq=False)
class Stage:
    """Where a branch opens: alpha, the projector on what leaves zero, the branch; and q on the branch before it."""

    alpha: float
    K: Array
    path: OverlapPath
    q: float = 0.0


class Onset:
    """alpha lambda(q) = 1 along a branch: where hidden directions `K` leave zero while those of its face are known in part."""

    def __init__(self, evolution: OverlapMap, path: OverlapPath, K: Array) -> None:
        self.path, self.K, self.span = path, K, compressed(evolution.space.basis, K)
        self.perfect, self.most = evolution.can_be_one(path.face), 1 - evolution.limit(path.face)
        self._excess: dict[tuple[float, Sequence[float]], float] = {}

    def alpha(self, q: float) -> float:
        """alpha at which the known directions have the mean overlap q."""
        M, alpha = self.path.at(float(q))
        if not float(np.abs(self.path.held(M, q)[0] - M).max()) < _SETTLED:
            raise NoClosedForm(WHAT, "the overlaps of the directions before do not settle", NEXT)
        if np.linalg.eigvalsh(M)[-1] > self.most:
            raise NoClosedForm(WHAT, "a direction before is nearer to exact knowledge than is resolved", NEXT)
        return alpha

    def excess(self, q: float, seeds: Sequence[float] = _ROUGH) -> float:
        """log(alpha lambda)."""
        if (q, seeds) not in self._excess:
            rate = self.path.kernel_growth(self.path.at(q)[0], self.K, self.span, seeds)[0]
            self._excess[q, seeds] = float(np.log(max(self.alpha(q)*rate, 1e-12)))
        return self._excess[q, seeds]

    def crossing(self, last: float) -> tuple[float, bool]:
        """q where alpha lambda = 1, or the last that is resolved and False where that comes beyond it."""
        def excess(x: float) -> float:
            return self.excess(float(expit(x)))

        low = high = _FIRST
        top = float(logit(last))
        if self.perfect and excess(_FIRST) < _FAR and excess(top) < 0:
            return float(expit(top)), False
        while excess(high) < 0:
            if high == top:
                return float(expit(top)), False
            low, high = high, min(high - _STEP*excess(high) + 1e-2, top)
        while excess(low) > 0:
            low, high = low - _STEP*excess(low) - 1e-2, low
            if low < _LEAST:
                raise NoClosedForm(WHAT, "the directions before are hardly known there", NEXT)
        x = float(brentq(excess, low, high, xtol=CLOSE))
        # from here the rate is extrapolated: one step more, and what is left is linear
        near = float(expit(x))
        steep = (excess(x + CLOSE*100) - excess(x))/(CLOSE*100)
        return float(expit(x - self.excess(near, SHARP)/steep)), True


@dataclass(frozen=True, eq=False)
class Branches:
    """The branches of a map that open one after another."""

    evolution: OverlapMap

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """Every stage, the first from zero; none where the overlaps never leave it."""
        found: list[Stage] = []
        zero = np.zeros((self.evolution.output.r,)*2)
        while (new := self._next(found[-1]) if found else self._opened(zero, zero)) is not None:
            found.append(new)
        return tuple(found)

    def _path(self, face: Array, K: Array, direction: Array, base: Array) -> OverlapPath:
        evolution = self.evolution
        plain = evolution.space.diagonal
        least = evolution.limit(K) if plain else max(evolution.limit(K), _RESOLVED[evolution.output.r])
        return OverlapPath(evolution.on, face, K, direction, base, least, evolution.output.nodes if plain else
                           min(_NODES, evolution.output.nodes))

    def _opened(self, face: Array, base: Array, q: float = 0.0, alpha: float | None = None) -> Stage | None:
        """The branch on which more than the face leaves zero, at an M on it; `alpha` there, where that is known."""
        one = np.eye(len(face))
        K = one - face
        start = K @ self.evolution.on(base) @ K
        trivial = bool(np.abs(start).max() > TRIVIAL) and alpha is None
        if trivial:
            N = start/np.trace(start)
        else:
            rate, N = self._path(one, one, one/len(one), base).kernel_growth(base, K, compressed(self.evolution.space.basis, K))
            if rate < LEAST:
                return None
        new = _range(N)
        if not face.any():
            new = kept_face(self.evolution.on, new)
        path = self._path(face + new, new, N, base)
        # the branch itself, at small overlaps, is sharper than the differences that found it
        sharp = path.line.threshold if path.line.order == 1 and not trivial else 0.0
        return Stage(float(sharp if alpha is None or abs(sharp/alpha - 1) < 1e-3 else alpha), new, path, q)

    def _next(self, last: Stage) -> Stage | None:
        """Where what is hidden along the last branch leaves zero: on it, or beside what is known exactly at its end."""
        path = last.path
        onset = Onset(self.evolution, path, np.eye(len(path.face)) - path.face)
        if np.trace(onset.K) < 0.5 or not onset.span:
            return None
        q, resolved = onset.crossing(1 - 1.2*path.smallest)
        if resolved:
            M, alpha = path.at(q)
            return self._opened(path.face, M, q, alpha)
        if not onset.perfect:
            return None
        beside = self._opened(path.face, path.face, 1.0)
        before = max([last.alpha, *(alpha for alpha, _ in path.line.spinodals())])
        return None if beside is None else replace(beside, alpha=max(beside.alpha, before))


def _range(N: Array) -> Array:
    """The projector on the range of a positive matrix."""
    m, R = np.linalg.eigh(N)
    span = R[:, m > 1e-6*m.max()]
    return np.asarray(span @ span.T)
