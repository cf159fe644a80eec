r"""alpha lambda(K dF(M)[.] K) = 1: where a block of overlaps leaves zero along a branch, and the branch that opens there.

From M = 0 the first branch opens; each is followed on the face that the map keeps (`path`), and along it the kernel K, in which
nothing is known yet, becomes unstable at the next stage: for committees the specialisation of the directions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hermitex.symbolic.budget import checkpoint
from hermitex.theories.overlaps.line import TRIVIAL
from hermitex.theories.overlaps.path import OverlapPath, compressed, kept_face

Array = np.ndarray
_NODES = 12  # of the growth of a kernel along a branch
LEAST = 1e-3  # a growth rate of the size of the seed is that of an overlap that enters at second order


@dataclass(frozen=True, eq=False)
class Stage:
    """Where a branch opens: alpha, the projector on what leaves zero, the branch; and q on the branch before it."""

    alpha: float
    K: Array
    path: OverlapPath
    q: float = 0.0


@dataclass(frozen=True, eq=False)
class Branches:
    """The branches that open one after another; F: M -> F(M) in the space that `basis` spans."""

    F: Callable[[Array], Array]
    basis: Array
    smallest: float
    perfect: bool
    nodes: int = 20

    @property
    def r(self) -> int:
        """How many variables."""
        return int(self.basis.shape[1])

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """Every stage, the first from zero; none where the overlaps never leave it."""
        found: list[Stage] = []
        while (new := self._next(found[-1]) if found else self._first()) is not None:
            found.append(new)
        return tuple(found)

    def _path(self, face: Array, K: Array, direction: Array, base: Array) -> OverlapPath:
        return OverlapPath(self.F, face, K, direction, base, self.smallest, self.perfect, self.nodes)

    def _first(self) -> Stage | None:
        zero, one = np.zeros((self.r, self.r)), np.eye(self.r)
        start = self.F(zero)
        trivial = bool(np.abs(start).max() > TRIVIAL)
        if trivial:
            N = start/np.trace(start)
        else:
            rate, N = self._path(one, one, one/self.r, zero).kernel_growth(zero, one, compressed(self.basis, one))
            if rate < LEAST:
                return None
        P = kept_face(self.F, _range(N))
        path = self._path(P, P, N, zero)
        return Stage(0.0 if trivial else path.line.threshold, P, path)

    def _next(self, last: Stage) -> Stage | None:
        """Where the kernel of the last branch becomes unstable, by the zero of log(alpha lambda) along it."""
        path, K = last.path, np.eye(self.r) - last.path.face
        span = compressed(self.basis, K)
        if np.trace(K) < 0.5 or not span:
            return None

        def excess(t: float) -> float:
            checkpoint("iterating the state evolution")
            M, alpha = path.at(float(1 - t*t))
            return float(np.log(max(alpha*path.kernel_growth(M, K, span)[0], 1e-12)))

        t0 = path.line.t0
        x = np.cos(np.pi*(np.arange(_NODES) + 0.5)/_NODES)
        t = t0 + (1 - t0)*(1 + x)/2
        level = np.polynomial.chebyshev.Chebyshev.fit(t, [excess(a) for a in t], _NODES - 1, domain=[t0, 1.0])
        fine = np.linspace(1.0, t0, 400)[1:]
        over = np.flatnonzero(level(fine) > 0)
        if not over.size:
            return None
        root = float(fine[over[0]])
        for _ in range(6):
            step = excess(root)/float(level.deriv()(root))
            root = float(np.clip(root - step, t0, 1 - 1e-9))
            if abs(step) < 1e-9:
                break
        q = 1 - root*root
        M, alpha = path.at(q)
        N = path.kernel_growth(M, K, span)[1]
        new = _range(N)
        face = path.face + new
        opened = self._path(face, new, N, M)
        # the branch itself, at small overlaps, is sharper than the differences that found it
        sharp = opened.line.threshold if opened.line.order == 1 else alpha
        return Stage(float(sharp if abs(sharp/alpha - 1) < 1e-3 else alpha), new, opened, q)


def _range(N: Array) -> Array:
    """The projector on the range of a positive matrix."""
    m, R = np.linalg.eigh(N)
    span = R[:, m > 1e-6*m.max()]
    return np.asarray(span @ span.T)
