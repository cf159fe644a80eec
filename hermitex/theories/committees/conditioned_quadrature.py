"""E[f_1(u_1) ... f_n(u_n)], u ~ N(0, C), n <= 4, by conditioning: u_k = sum_j L_kj x_j, one x after the other, for stacks of C.

A smooth factor is met on the trapezoidal rule, whose error falls like exp(-2 pi y/h), y the distance of the nearest pole: the step
is one of the field u, not of x. An odd number of nodes puts one at 0, an even number none: such rules err to opposite sides, and
check one another. One with kinks is met on Gauss-Legendre panels between them, which move with what the variables before it were,
and a piece that is zero is left out; the last one by its closed form, if it has one. delta(u - c) in a factor is a single node. A
vanishing conditional variance (two neurons that agree) costs nothing: that variable has no spread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from hermitex.numbers.gauss import legendre
from hermitex.symbolic.budget import checkpoint

Array = np.ndarray
_WINDOW = 8.0  # of a standard normal, for panels: P(|z| > 8) = 1e-15
_FINER = {1: 2.5, 2: 2.0, 3: 1.5}  # of fewer variables: they cost nothing, and hold the powers whose poles are of high order
_MOST = 3_000_000  # numbers in one array: 24 MB
_MANY = 2  # how many more values are read off a table than it holds
_THROUGH = np.linalg.inv(np.vander(np.arange(-3.0, 5.0), increasing=True)).T  # eight values at -3, ..., 4 to their polynomial


@dataclass(frozen=True)
class Factor:
    """One f: its pieces [(lo, hi, function)] that are not zero, and its deltas [(place, weight)].

    averaged : E f(mean + spread x) by its closed form, where a kinked f has one
    """

    pieces: tuple[tuple[float, float, Callable[[Array], Array]], ...]
    deltas: tuple[tuple[float, float], ...] = ()
    parity: int | None = None
    averaged: Callable[[Array, Array], Array] | None = None

    @cached_property
    def grows(self) -> bool:
        """Faster than a line: then the average depends on far values."""
        ends = [abs(float(f(np.array([u]))[0])) for lo, hi, f in self.pieces for u in (-12.0, 12.0) if lo <= u <= hi]
        near = [abs(float(f(np.array([u]))[0])) for lo, hi, f in self.pieces for u in (-1.0, 1.0) if lo <= u <= hi]
        return bool(max(ends, default=0.0) > 30*max(near, default=0.0) + 1e-300)

    @property
    def smooth(self) -> bool:
        """One piece, the whole line."""
        return len(self.pieces) == 1 and self.pieces[0][:2] == (-np.inf, np.inf)


def average(factors: Sequence[Factor], C: Array, nodes: int) -> Array:
    """The average of the product at each covariance of the stack C (B, n, n).

    nodes : for a field of unit variance, where there are four; fewer fields have more, an odd number where it is odd
    """
    C = np.asarray(C, dtype=float)
    fine = _like(nodes*_FINER.get(len(factors), 1.0), nodes)
    held = [i for i, f in enumerate(factors) if f.deltas]
    if held:
        i = held[0]
        rest = [*factors[:i], *factors[i + 1:]]
        order = [i, *(j for j in range(len(factors)) if j != i)]
        turned = C[:, order][:, :, order]
        total = average([*factors[:i], Factor(factors[i].pieces), *factors[i + 1:]], C, nodes) if factors[i].pieces else 0.0
        for place, weight in factors[i].deltas:
            total = total + weight*_on(place, rest, turned, fine)
        return np.broadcast_to(total, (len(C),)).astype(float)
    if any(not f.pieces for f in factors):
        return np.zeros(len(C))
    size = max(1, _MOST//max(1, fine**len(factors)))
    # Kinked factors first: what comes after them is smoothed by the conditioning.
    order = sorted(range(len(factors)), key=lambda k: (factors[k].smooth, factors[k].averaged is not None))
    chosen, law = [factors[k] for k in order], C[:, order][:, :, order]
    return np.concatenate([_stack(chosen, law[k:k + size], fine) for k in range(0, len(C), size)]) if len(C) else np.zeros(0)


def _like(count: float, nodes: int) -> int:
    """About that many, odd where `nodes` is odd."""
    return round(count)//2*2 + nodes % 2


def _on(place: float, rest: Sequence[Factor], C: Array, nodes: int) -> Array:
    """E[delta(u_1 - place) prod f(u)]: the density at the place times the average given u_1 = place."""
    variance = C[:, 0, 0]
    density = np.exp(-place**2/(2*variance))/np.sqrt(2*np.pi*variance)
    if not rest:
        return density
    slope = C[:, 1:, 0]/variance[:, None]
    law = C[:, 1:, 1:] - slope[:, :, None]*C[:, 0, None, 1:]
    return density*_stack(rest, law, nodes, place*slope)


def _stack(factors: Sequence[Factor], C: Array, nodes: int, mean: Array | None = None) -> Array:
    batch, n = C.shape[0], len(factors)
    L = lower(C)
    shift = np.zeros((batch, n)) if mean is None else mean
    even = mean is None and all(f.smooth for f in factors) and all(f.parity in (1, -1) for f in factors)
    if even and sum(f.parity == -1 for f in factors) % 2:
        return np.zeros(batch)
    means = [shift[:, k, None] for k in range(n)]  # of u_k at each point of the x before it, shape (batch, points)
    weight = np.ones((batch, 1))
    # half of that of the trapezoidal rule, for functions that stay bounded or grow like a line: P(|x| > 6.5) = 8e-11
    near_window = 6.5
    far_window = 9.0  # half of that for others: P(|x| > 9) = 2e-19
    reach = far_window if any(f.grows for f in factors) else near_window
    far = _like(nodes*reach/near_window, nodes)
    largest_step = 0.9  # of a standard normal: exp(-2 pi^2/h^2) is 3e-11
    fine = 8  # of a table: places for a step of the rule
    unseen = 1e-17  # of the largest weight of a point: less is none
    for k, factor in enumerate(factors):
        spread = L[:, k, k, None]
        widest = float(np.max(np.abs(L[:, k:, k]), initial=0.0))  # x_k moves the later fields, too
        own = _like(max(2*reach/largest_step, far*min(widest, 4.0)), nodes) if factor.smooth else far
        last = k == n - 1 and (factor.smooth or factor.averaged is not None)
        if k and weight.size*own > _MOST and not last:
            return _apart(factors[k:], L[:, k:, k:], nodes, weight, means[k:])
        if last and factor.averaged is not None:
            return np.sum(weight*factor.averaged(means[k], spread), axis=1)
        if last:  # a function of one number, the mean
            inner = _smoothed(factor.pieces[0][2], means[k], spread, trapezoid(own, reach, even and k == 0), 2*reach/far/fine)
            return np.sum(weight*inner, axis=1)
        x, w, values = _nodes(factor, means[k], spread, (own, reach), half=even and k == 0)
        weight = (weight[..., None]*(w*values)).reshape(batch, -1)
        size = np.max(np.abs(weight), axis=0, initial=0.0)
        seen = np.flatnonzero(size > unseen*np.max(size, initial=0.0))
        weight = weight[:, seen]
        for later in range(k + 1, n):
            moved = means[later][..., None] + L[:, later, k, None, None]*x
            means[later] = np.broadcast_to(moved, np.broadcast_shapes(moved.shape, values.shape)).reshape(batch, -1)[:, seen]
    return weight.sum(axis=1)


def _smoothed(f: Callable[[Array], Array], mean: Array, spread: Array, rule: tuple[Array, Array], step: float) -> Array:
    """E f(mean + spread x) at every mean (B, K), spread (B, 1): where there are many, read off a table with this step."""
    x, w = rule
    side = len(_THROUGH)//2
    reach = float(np.max(np.abs(mean), initial=0.0)) + side*step
    count = int(np.ceil(2*reach/step)) + 1
    if mean.shape[1] < _MANY*count:
        return np.asarray(f(mean[..., None] + spread[..., None]*x) @ w)
    table = f(np.linspace(-reach, (count - 1)*step - reach, count)[:, None] + spread[..., None]*x) @ w
    cells = sliding_window_view(table, 2*side, axis=1) @ _THROUGH
    place = (mean + reach)/step
    cell = np.floor(place)
    t = (place - cell).ravel()
    at = (cell.astype(int) - (side - 1) + cells.shape[1]*np.arange(len(mean))[:, None]).ravel()
    found: Array = np.zeros(t.shape)
    for column in cells.reshape(-1, 2*side).T[::-1]:
        found = found*t + np.ascontiguousarray(column).take(at)
    return found.reshape(mean.shape)


def _apart(factors: Sequence[Factor], L: Array, nodes: int, weight: Array, means: Sequence[Array]) -> Array:
    """The remaining average if its nodes would fill the memory: one value of the earlier fields at a time."""
    batch = len(weight)
    law = np.repeat(L @ L.transpose(0, 2, 1), weight.size//batch, axis=0)
    mean = np.stack([np.broadcast_to(m, weight.shape).ravel() for m in means], axis=1)
    size = max(1, _MOST//nodes**min(len(factors), 2))
    parts = []
    for k in range(0, weight.size, size):
        checkpoint("averaging over several fields")
        parts.append(_stack(factors, law[k:k + size], nodes, mean[k:k + size]))
    found: Array = (weight*np.concatenate(parts).reshape(weight.shape)).reshape(batch, -1).sum(axis=1)
    return found


def _nodes(factor: Factor, mean: Array, spread: Array, rule: tuple[int, float], *, half: bool) -> tuple[Array, Array, Array]:
    """Nodes x, weights and values f(mean + spread x), the nodes along a new last axis."""
    if factor.smooth:
        x, w = trapezoid(*rule, half)
        return x, w, factor.pieces[0][2](mean[..., None] + spread[..., None]*x)
    nodes = rule[0]
    t, v = legendre(nodes)
    xs, ws, fs = [], [], []
    flat = np.broadcast_to(spread <= 0, mean.shape)
    scale = np.where(flat, 1.0, np.broadcast_to(spread, mean.shape))
    for lo, hi, f in factor.pieces:
        a = np.clip((lo - mean)/scale, -_WINDOW, _WINDOW)
        b = np.clip((hi - mean)/scale, -_WINDOW, _WINDOW)
        inside = flat & (mean > lo) & (mean <= hi)
        a, b = np.where(flat, np.where(inside, -_WINDOW, 0.0), a), np.where(flat, np.where(inside, _WINDOW, 0.0), b)
        x = (a + b)[..., None]/2 + (b - a)[..., None]/2*t
        xs.append(x)
        mass = (b - a)[..., None]/2*v*np.exp(-x**2/2)/np.sqrt(2*np.pi)
        ws.append(np.where(inside[..., None], 1.0/nodes, mass))
        at = mean[..., None] + spread[..., None]*x
        fs.append(f(at if not (np.isfinite(lo) or np.isfinite(hi)) else np.clip(at, lo, hi)))
    return np.concatenate(xs, axis=-1), np.concatenate(ws, axis=-1), np.concatenate(fs, axis=-1)


def lower(C: Array) -> Array:
    """The lower triangular L, L L^T = C, of a stack; a pivot that is rounding is 0, and so is its column."""
    L = np.zeros_like(C)
    flat = 1e-13  # of a variance: less is none
    for j in range(C.shape[-1]):
        square = C[:, j, j] - np.sum(L[:, j, :j]**2, axis=1)
        there = square > flat*np.maximum(C[:, j, j], 1e-300)
        L[:, j, j] = np.sqrt(np.where(there, square, 0.0))
        for i in range(j + 1, C.shape[-1]):
            rest = C[:, i, j] - np.sum(L[:, i, :j]*L[:, j, :j], axis=1)
            L[:, i, j] = np.where(there, rest/np.where(there, L[:, j, j], 1.0), 0.0)
    return L


@lru_cache(maxsize=256)
def trapezoid(n: int, reach: float, half: bool = False) -> tuple[Array, Array]:
    """n nodes and weights of a standard normal, symmetric about 0; or the nonnegative half."""
    x = (np.arange(n) - (n - 1)/2)*2*reach/n
    w = np.exp(-x**2/2)
    w /= w.sum()
    return (x[n//2:], w[n//2:]*np.where(x[n//2:] > 0, 2.0, 1.0)) if half else (x, w)
