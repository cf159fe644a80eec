r"""alpha(q), M(q), q = tr(K M)/tr(K): a branch of a state evolution with several overlaps, as a curve over one of their sums.

From M = 0 the first branch opens. Along each the kernel of its face, in which nothing is known yet, becomes unstable where
alpha lambda(K dF(M)[.] K) = 1, and the next one opens: for committees the specialisation of the directions.

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
from scipy.interpolate import krogh_interpolate
from scipy.optimize import brentq

from hermitex.theories.overlaps.fixed_point_line import TRIVIAL, OverlapLine

Array = np.ndarray
SEED = 2e-4  # a small overlap; rates at its multiples are extrapolated to 0; chosen by trial
LEAST = 1e-3  # a growth rate of the size of the seed is that of an overlap that enters at second order


@dataclass(frozen=True, eq=False)
class OverlapPath:
    """One branch: `face` P, the kernel `K` whose overlaps measure it, the point `base` at which it opens (zero for the first)."""

    F: Callable[[Array], Array]
    face: Array
    K: Array
    direction: Array
    base: Array
    smallest: float
    nodes: int = 20
    points: dict[float, tuple[Array, float]] = field(default_factory=dict)

    def opened(self, face: Array, K: Array, direction: Array, base: Array) -> OverlapPath:
        """Another branch of the same map."""
        return OverlapPath(self.F, face, K, direction, base, self.smallest, self.nodes)

    @property
    def size(self) -> float:
        """tr(K): the largest value of the sum of overlaps that measures the branch."""
        return float(np.trace(self.K))

    def F_of(self, q: float) -> float:
        """The F of a single overlap with the same alpha(q): q/((1 - q) alpha)."""
        if q <= 0:
            return 1.0 if not self.base.any() and self.trivial else 0.0
        return q/((1 - q)*self.at(q)[1])

    @property
    def trivial(self) -> bool:
        """Is F(0) nonzero on the face?"""
        return bool(np.abs(self.face @ self.F(np.zeros_like(self.face)) @ self.face).max() > TRIVIAL)

    @cached_property
    def line(self) -> OverlapLine:
        """alpha(q) as the curve of one overlap."""
        return OverlapLine(self.F_of, self.smallest, self.nodes)

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

        scale = np.log(f.max())
        alpha = float(np.exp(brentq(excess, -45 - scale, 45 - scale, xtol=1e-14, rtol=1e-14)))
        return np.asarray((R*(alpha*f/(1 + alpha*f))) @ R.T), alpha

    def _solved(self, q: float) -> tuple[Array, float]:
        """The fixed point of `held`; its alpha comes with it."""
        M, _ = accelerated(lambda X: self.held(X, q)[0], self.guess(q), scale=q)
        return self.held(M, q)

    def excess(self, q: float, K: Array, span: list[Array], seeds: Sequence[float] = (1, 2, 4)) -> float:
        """log(alpha lambda), lambda the rate of K (dF/dM) K at q: where it is above zero what K holds leaves zero."""
        M, alpha = self.at(q)
        return float(np.log(max(alpha*self.kernel_growth(M, K, span, seeds)[0], 1e-12)))

    def kernel_growth(self, M: Array, K: Array, span: list[Array],
                      seeds: Sequence[float] = (1, 2, 4)) -> tuple[float, Array]:
        """The largest rate t and its N with K (dF/dM)[N] K = t N: alpha t > 1 lets the block K M K leave zero.

        seeds : the small overlaps, in units of 2e-4, from which the slope at zero is extrapolated
        """
        if not span:
            return 0.0, np.zeros_like(K)
        A = np.array([S.ravel() for S in span]).T
        whole = K @ K.T
        rates = np.empty((len(span), len(span)))

        def block(N: Array) -> Array:
            slopes = [(K @ self.F(M + e*SEED*N) @ K).ravel()/(e*SEED) for e in seeds]
            return np.asarray(krogh_interpolate(seeds, slopes, 0.0))

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


# -- where branches open -------------------------------------------------------------------------------------------------
def branch_stages(zero: OverlapPath, basis: Array) -> tuple[tuple[float, OverlapPath], ...]:
    """(alpha, branch) for the branches that open one after another, the first from M = 0; none where the overlaps stay there.

    zero : M = 0 itself, with all variables as its kernel;  basis : of the space of overlaps
    """
    found = [first] if (first := _first(zero, basis)) else []
    while found and (new := _next(found[-1][1], basis)):
        found.append(new)
    return tuple(found)


def _first(zero: OverlapPath, basis: Array) -> tuple[float, OverlapPath] | None:
    if zero.trivial:
        start = zero.F(zero.base)
        N = start/np.trace(start)
    else:
        span = compressed_basis(basis, zero.K)
        rate, N = zero.kernel_growth(zero.base, zero.K, span)
        if rate < LEAST and not _steady(rate, zero.kernel_growth(zero.base, zero.K, span, (2, 4, 8))[0]):
            return None
    P = kept_face(zero.F, _range(N))
    path = zero.opened(P, P, N, zero.base)
    return 0.0 if zero.trivial else path.line.threshold, path


def _steady(rate: float, again: float) -> bool:
    """Is a small rate independent of the overlaps that it is taken from? A rate of second order grows with them."""
    return rate > 0 and abs(again/rate - 1) < 0.2


def _next(path: OverlapPath, basis: Array) -> tuple[float, OverlapPath] | None:
    """Where the kernel of a branch becomes unstable, by the zero of log(alpha lambda) along it."""
    K = np.eye(len(path.face)) - path.face
    span = compressed_basis(basis, K)
    if np.trace(K) < 0.5 or not span:
        return None

    def excess(t: float) -> float:
        return path.excess(float(1 - t*t), K, span)

    t0 = path.line.t0
    nodes = 12  # of the growth of a kernel along a branch
    x = np.cos(np.pi*(np.arange(nodes) + 0.5)/nodes)
    t = t0 + (1 - t0)*(1 + x)/2
    level = np.polynomial.chebyshev.Chebyshev.fit(t, [excess(a) for a in t], nodes - 1, domain=[t0, 1.0])
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
    M, alpha = path.at(1 - root*root)
    N = path.kernel_growth(M, K, span)[1]
    new = _range(N)
    opened = path.opened(path.face + new, new, N, M)
    # the branch itself, at small overlaps, is sharper than the differences that found it
    sharp = opened.line.threshold if opened.line.order == 1 else alpha
    return float(sharp if abs(sharp/alpha - 1) < 1e-3 else alpha), opened


def _range(N: Array) -> Array:
    """The projector on the range of a positive matrix."""
    m, R = np.linalg.eigh(N)
    span = R[:, m > 1e-6*m.max()]
    return np.asarray(span @ span.T)


# -- what both need ------------------------------------------------------------------------------------------------------
def accelerated(step: Callable[[Array], Array], M: Array, *, scale: float = 1.0, tolerance: float = 1e-12) -> tuple[Array, float]:
    """(M, its residual) by Anderson's acceleration of M <- step(M); what would leave 0 <= M < 1 is a plain step."""
    xs: list[Array] = []
    fs: list[Array] = []
    best, kept = np.inf, M
    steps = 60  # of the acceleration; chosen by trial
    memory = 3  # steps that are combined; chosen by trial
    # tolerance: of the largest move of M: rounding of the sums in F
    for _ in range(steps):
        new = step(M)
        gap = float(np.abs(new - M).max())/scale
        if gap < best:
            best, kept = gap, M
        if gap < tolerance:
            break
        xs, fs = [*xs, M.ravel()][-memory - 1:], [*fs, (new - M).ravel()][-memory - 1:]
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
    same = 1e-7  # of F: a block below this part of it is zero up to quadrature
    while True:
        M = F(SEED*P)
        m, R = np.linalg.eigh(M + P*max(1.0, float(np.abs(M).max())))
        span = R[:, m > same*m.max()]
        if span.shape[1] == round(float(np.trace(P))) or span.shape[1] == r:
            return np.asarray(span @ span.T)
        P = span @ span.T


def compressed_basis(basis: Array, K: Array) -> list[Array]:
    """A basis of {K S K}, S in the space of overlaps, orthonormal."""
    rows = np.array([(K @ S @ K).ravel() for S in basis])
    _, s, V = np.linalg.svd(rows)
    return [v.reshape(K.shape) for v in V[:int(np.sum(s > 1e-9))]]
