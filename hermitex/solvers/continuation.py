"""Following a solution along a line of parameters.

    y(s_{k+1}) ~ y(s_k) + (s_{k+1} - s_k) (y(s_k) - y(s_{k-1}))/(s_k - s_{k-1}),   y = log x for positive unknowns,

predicts the next point of a coarse skeleton; the points between are then solved all at once from its interpolation, and
what fails is reached from its nearest solved neighbour by a shrinking homotopy p_k + t (p_{k+1} - p_k).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import isqrt
from typing import Any

import numpy as np

from ..errors import UnknownName
from .batch import Array, Params, from_logs, positive_mask, take, to_logs
from .chain import Solver, assemble
from .solution import Solution

_JUMP = 0.5  # a prediction off by this part of an unknown (or of e-fold) is taken for a change of branch


def follow(
    solver: Solver,
    x0: Any,
    p: Params,
    *,
    along: str,
    names: Sequence[str],
    positive: Any = None,
    skeleton: int | None = None,
    halvings: int = 6,
    raise_on_failure: bool = True,
) -> Solution:
    """Solve a chunk of consecutive points of a line, each from its neighbours.

    Parameters
    ----------
    solver : callable (x0 (n, B), p) -> Solution that does not raise, e.g. a partial of `chain.robust`
    x0 : start of the first point, (n,) or (n, 1)
    p : the parameters; p[along] (B,) is the continuation parameter, in the order in which it is to be followed
    skeleton : how many points are solved one after another before the rest is solved at once (default about sqrt(B));
        0 solves all at once from x0, the fastest where there is one solution; what fails is reached from its neighbours
        (between two skeleton points that lie on different branches the jump is closed in on by bisection from the left)
    halvings : how often the way from a solved neighbour is halved before a point is given up

    Examples
    --------
    >>> from functools import partial
    >>> from hermitex.solvers.chain import robust
    >>> F = lambda x, p: x - 1/(p["lam"] + p["alpha"]/(1 + x))
    >>> J = lambda x, p: (1 - (p["alpha"]/(p["lam"]*(1 + x) + p["alpha"])**2))[None]
    >>> solve = partial(robust, names=["V"], residual=F, jacobian=J, positive=True, raise_on_failure=False)
    >>> p = {"alpha": np.linspace(0.5, 4, 30), "lam": 1e-6}
    >>> follow(solve, [1.0], p, along="alpha", names=["V"], positive=True).all_converged
    True
    """
    if along not in p:
        raise UnknownName(along, p, "parameter")
    s = np.atleast_1d(np.asarray(p[along], dtype=float))
    points = s.size
    mask = positive_mask(positive, names)
    first = np.asarray(x0, dtype=float).reshape(len(names), -1)[:, :1]
    line = _Turning(solver, dict(p), s, mask, names)
    count = min(points, 1 + isqrt(points) if skeleton is None else skeleton)
    bones = np.unique(np.round(np.linspace(0, points - 1, count)).astype(int))
    for k in bones:
        line.step(int(k), first, halvings)
    gaps = [(int(a), int(b)) for a, b in pairwise(bones) if line.torn[b]]
    while gaps:  # between ends of different branches interpolation would mix them: close in on the jump from the left
        a, b = gaps.pop()
        if b - a > 1:
            middle = (a + b) // 2
            line.step(middle, first, halvings)
            gaps += [(a, middle)] if line.torn[middle] else []
            gaps += [(middle, b)] if line.jumped(b, line.predicted(b)) else []
    rest = np.setdiff1d(np.arange(points), line.tried)
    if rest.size:
        line.solve(rest, line.interpolated(rest) if line.solved.any() else np.repeat(first, rest.size, axis=1))
    for k in sorted(np.flatnonzero(~line.solved).tolist(), key=line.distance):
        if line.solved.any():
            line.approach(k, halvings)
    found = line.solution()
    return found.require() if raise_on_failure else found


class _Turning:
    """The points of one chunk: what is solved so far, and predictions from it."""

    def __init__(self, solver: Solver, p: dict[str, Any], s: Array, mask: Array, names: Sequence[str]) -> None:
        self.solver, self.p, self.s, self.mask, self.names = solver, p, s, mask, tuple(names)
        self.solved = np.zeros(s.size, dtype=bool)
        self.y = np.full((len(names), s.size), np.nan)
        self.torn = np.zeros(s.size, dtype=bool)
        self.parts: list[tuple[Array, Solution]] = []

    def step(self, k: int, first: Array, halvings: int) -> None:
        """Solve point k from the points before it, and note whether the solution jumped on the way."""
        if not self.solved[:k].any():
            self.solve(np.array([k]), first)
            return
        guess = self.predicted(k)
        self.solve(np.array([k]), guess)
        if not self.solved[k]:
            self.approach(k, halvings)
        self.torn[k] = self.jumped(k, guess)

    def jumped(self, k: int, guess: Array) -> bool:
        """Whether point k lies so far from its prediction that the branch may have changed."""
        size = np.where(self.mask, 1.0, np.nanmax(np.abs(self.y), axis=1))
        off = np.abs(self.y[:, k] - to_logs(guess, self.mask)[:, 0])
        return not (off <= _JUMP * size).all()

    @property
    def tried(self) -> Array:
        """The points that were solved or given up."""
        return np.unique(np.concatenate([k for k, _ in self.parts])) if self.parts else np.zeros(0, dtype=int)

    def solve(self, k: Array, guess: Array) -> None:
        """Solve the points k from `guess`, and keep the outcome."""
        self.keep(k, self.solver(guess, take(self.p, k)))

    def keep(self, k: Array, found: Solution) -> None:
        self.parts.append((k, found))
        ok = np.broadcast_to(found.converged, k.shape)
        self.solved[k] = ok
        self.y[:, k[ok]] = to_logs(found.state.reshape(len(self.names), -1), self.mask)[:, ok]

    def predicted(self, k: int) -> Array:
        """The secant through the last two solved points before k; the last one alone after a jump."""
        last = np.flatnonzero(self.solved[:k])[:-3:-1]
        y = self.y[:, last[0]]
        if self.torn[last[0]]:
            return from_logs(y[:, None], self.mask)
        if last.size == 2 and self.s[last[0]] != self.s[last[1]]:
            reach = (self.s[k] - self.s[last[0]]) / (self.s[last[0]] - self.s[last[1]])
            y = y + np.clip(reach, -2.0, 2.0) * (y - self.y[:, last[1]])
        return from_logs(y[:, None], self.mask)

    def interpolated(self, k: Array) -> Array:
        known = np.flatnonzero(self.solved)
        y = np.stack([np.interp(k, known, row[known]) for row in self.y])
        if known.size > 1:
            between = np.clip(np.searchsorted(known, k), 1, known.size - 1)
            a, b = known[between - 1], known[between]
            gap = self.s[b] - self.s[a]
            t = np.clip((self.s[k] - self.s[a]) / np.where(gap != 0, gap, 1.0), 0.0, 1.0)
            y = self.y[:, a] + t * (self.y[:, b] - self.y[:, a])
        return from_logs(y, self.mask)

    def distance(self, k: int) -> int:
        known = np.flatnonzero(self.solved)
        return int(np.abs(known - k).min()) if known.size else 0

    def approach(self, k: int, halvings: int) -> None:
        """Walk to point k from its nearest solved neighbour, halving the stride whenever a step fails."""
        known = np.flatnonzero(self.solved)
        near = int(known[np.argmin(np.abs(known - k))])
        begin, end = take(self.p, np.array([near])), take(self.p, np.array([k]))
        x, t, stride, spent = from_logs(self.y[:, [near]], self.mask), 0.0, 0.5, 0
        found: Solution | None = None
        while t < 1 and stride >= 0.5**halvings:
            to = min(1.0, t + stride)
            found = self.solver(x, {n: _between(begin[n], end[n], to) for n in begin})
            spent += int(np.max(found.iterations))
            if found.all_converged:
                x, t, stride = found.state.reshape(len(self.names), -1), to, min(2 * stride, 1.0)
            else:
                stride /= 2
        if found is not None and t >= 1:
            self.keep(np.array([k]), replace(found, iterations=np.array([spent])))

    def solution(self) -> Solution:
        """The parts put together in the order of the points; a later part replaces an earlier one."""
        return assemble(self.parts, self.s.size, self.names)


def _between(a: Any, b: Any, t: float) -> Any:
    return b if np.array_equal(a, b) else a + t * (np.asarray(b) - a)
