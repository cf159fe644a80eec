r"""alpha(q), M(q), q = tr(K M)/tr(K): a branch of a state evolution with several overlaps, as a curve over one of their sums.

A branch lives on a face {M: M = P M P} that the map keeps, and opens where the block K M K of a kernel K leaves zero. At a fixed
q the iteration M <- H(M) with alpha chosen so that tr(K H) = q tr(K) needs no more values of F than the plain one, and passes
the turning points of alpha(q), at which the plain one stops. The map H is that of
Troiani et al. (2024), the parametrisation this package's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from hermitex.theories.overlaps.line import TRIVIAL, OverlapLine

Array = np.ndarray
_SAME = 1e-7  # of F: a block below this part of it is zero up to quadrature
SEED = 2e-4
_STEPS, _MEMORY = 60, 3
_TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False)
class OverlapPath:
    """One branch: `face` P, the kernel `K` whose overlaps measure it, the point `base` at which it opens (zero for the first)."""

    F: Callable[[Array], Array]
    face: Array
    K: Array
    direction: Array
    base: Array
    smallest: float
    perfect: bool
    nodes: int = 20
    points: dict[float, tuple[Array, float]] = field(default_factory=dict)

    @property
    def size(self) -> float:
        """tr(K): the largest value of the sum of overlaps that measures the branch."""
        return float(np.trace(self.K))

    def F_of(self, q: float) -> float:
        """What one overlap with the same alpha(q) would have for F: q/((1 - q) alpha)."""
        if q <= 0:
            return 1.0 if not self.base.any() and self._trivial else 0.0
        return q/((1 - q)*self.at(q)[1])

    @property
    def _trivial(self) -> bool:
        return bool(np.abs(self.face @ self.F(np.zeros_like(self.face)) @ self.face).max() > TRIVIAL)

    @cached_property
    def line(self) -> OverlapLine:
        """alpha(q) as the curve of one overlap."""
        return OverlapLine(self.F_of, self.smallest, self.perfect, self.nodes)

    def at(self, q: float) -> tuple[Array, float]:
        """(M, alpha) where tr(K M) = q tr(K)."""
        if q not in self.points:
            self.points[q] = self._solved(q)
        return self.points[q]

    def guess(self, q: float) -> Array:
        """M near q, by the nearest points that are known: in proportion to q, or along their secant."""
        known = sorted(self.points, key=lambda p: abs(np.log(p/q)))[:2]
        if not known:
            return self.base + q*self.size*self.direction
        near, M = known[0], self.points[known[0]][0]
        if len(known) == 2 and abs(q - near) < 3*abs(near - known[1]):
            M = M + (q - near)/(near - known[1])*(M - self.points[known[1]][0])
        else:
            M = self.base + (M - self.base)*q/near
        m, R = np.linalg.eigh(M)
        return np.asarray((R*np.clip(m, 0, 1)) @ R.T)

    def held(self, M: Array, q: float) -> tuple[Array, float]:
        """(H(M), alpha), alpha such that tr(K H) = q tr(K)."""
        f, R = np.linalg.eigh(self.face @ self.F(M) @ self.face)
        f = np.maximum(f, 0.0)
        weight = np.einsum("ij,jk,ki->i", R.T, self.K, R)
        target = q*self.size

        def excess(t: float) -> float:
            a = np.exp(t)*f
            return float(weight @ (a/(1 + a))) - target

        from scipy.optimize import brentq

        scale = np.log(f.max())
        alpha = float(np.exp(brentq(excess, -45 - scale, 45 - scale, xtol=1e-14, rtol=1e-14)))
        return np.asarray((R*(alpha*f/(1 + alpha*f))) @ R.T), alpha

    def _solved(self, q: float) -> tuple[Array, float]:
        """The fixed point of `held`; its alpha comes with it."""
        M, _ = accelerated(lambda X: self.held(X, q)[0], self.guess(q), scale=q)
        return self.held(M, q)

    def kernel_growth(self, M: Array, K: Array, span: list[Array],
                      seeds: Sequence[float] = (1, 2, 4)) -> tuple[float, Array]:
        """The largest rate t and its N with K (dF/dM)[N] K = t N: alpha t > 1 lets the block K M K leave zero.

        seeds : the small overlaps, in units of 2e-4, from which the slope at zero is extrapolated
        """
        if not span:
            return 0.0, np.zeros_like(K)
        A = np.array([S.ravel() for S in span]).T
        whole = K @ K.T
        weights = [np.prod([b/(b - a) for b in seeds if b != a]) for a in seeds]
        rates = np.empty((len(span), len(span)))

        def block(N: Array) -> Array:
            slopes = (K @ self.F(M + e*SEED*N) @ K/(e*SEED) for e in seeds)
            return np.asarray(sum(w*f for w, f in zip(weights, slopes, strict=True)).ravel())

        central = block(whole)
        for j, S in enumerate(span):
            half = 0.5/max(1.0, float(np.abs(np.linalg.eigvalsh(S)).max()))
            shift = block(whole + half*S) - central if np.abs(S - whole).max() > 1e-12 else central*half
            rates[:, j] = np.linalg.lstsq(A, shift/half, rcond=None)[0]
        values, vectors = np.linalg.eig(rates)
        top = int(np.argmax(values.real))
        N = (A @ vectors[:, top].real).reshape(K.shape)
        N = N*np.sign(np.trace(N) or 1.0)
        return float(values[top].real), N/np.trace(N)


def accelerated(step: Callable[[Array], Array], M: Array, *, scale: float = 1.0) -> tuple[Array, float]:
    """(M, its residual) by Anderson's acceleration of M <- step(M); what would leave 0 <= M < 1 is a plain step."""
    xs: list[Array] = []
    fs: list[Array] = []
    best, kept = np.inf, M
    for _ in range(_STEPS):
        new = step(M)
        gap = float(np.abs(new - M).max())/scale
        if gap < best:
            best, kept = gap, M
        if gap < _TOLERANCE:
            break
        xs, fs = [*xs, M.ravel()][-_MEMORY - 1:], [*fs, (new - M).ravel()][-_MEMORY - 1:]
        M = new
        if len(xs) > 1:
            dx, df = np.diff(xs, axis=0).T, np.diff(fs, axis=0).T
            mixed = np.linalg.lstsq(df, fs[-1], rcond=1e-10)[0]
            tried = (xs[-1] + fs[-1] - (dx + df) @ mixed).reshape(M.shape)
            m = np.linalg.eigvalsh(tried)
            M = tried if m[0] > -1e-12 and m[-1] < 1 else new
    return kept, best*scale


def kept_face(F: Callable[[Array], Array], P: Array) -> Array:
    """The least projector above P that the map keeps: the range of F(eps P) added until nothing is new."""
    r = len(P)
    while True:
        M = F(SEED*P)
        m, R = np.linalg.eigh(M + P*max(1.0, float(np.abs(M).max())))
        span = R[:, m > _SAME*m.max()]
        if span.shape[1] == round(float(np.trace(P))) or span.shape[1] == r:
            return np.asarray(span @ span.T)
        P = span @ span.T


def compressed(basis: Array, K: Array) -> list[Array]:
    """A basis of {K S K}, S in the space of overlaps, orthonormal."""
    rows = np.array([(K @ S @ K).ravel() for S in basis])
    _, s, V = np.linalg.svd(rows)
    return [v.reshape(K.shape) for v in V[:int(np.sum(s > 1e-9))]]
