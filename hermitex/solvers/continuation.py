"""Following a solution along a line of parameters, and telling branches apart.

    y(s_{k+1}) ~ y(s_k) + (s_{k+1} - s_k) (y(s_k) - y(s_{k-1}))/(s_k - s_{k-1}),   y = log x for positive unknowns,

predicts the next point of a coarse skeleton; the points between are then solved all at once from its interpolation, and
what fails is reached from its nearest solved neighbour by a shrinking homotopy p_k + t (p_{k+1} - p_k).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import isqrt
from typing import Any

import numpy as np

from ..errors import BadInput, UnknownName
from . import fixed_point
from .batch import Array, Field, Params, from_logs, positive_mask, start, take, to_logs
from .newton import Both, newton
from .solution import Solution

Solver = Callable[[Array, Params], Solution]

_JUMP = 0.5  # a prediction off by this part of an unknown (or of e-fold) is taken for a change of branch
_ARRAYS = ("residual", "converged", "iterations", "contraction", "error", "method", "branch", "reason")


def robust(
    x0: Any,
    p: Params | None = None,
    *,
    names: Sequence[str],
    residual: Field | None = None,
    jacobian: Field | None = None,
    both: Both | None = None,
    step: Field | None = None,
    positive: Any = None,
    rtol: float = 1e-10,
    atol: float = 1e-14,
    max_steps: int = 100,
    raise_on_failure: bool = True,
) -> Solution:
    """Newton; where that fails Anderson; where that fails damped iteration. Each only on the points still open.

    Parameters
    ----------
    residual, jacobian, both : as in `newton.newton`; without them the first method is Anderson
    step : the right-hand sides G(x, p); taken as x - residual where it is not given
    max_steps : of Newton; Anderson has 5 times, the damped iteration 100 times as many

    A point that Anderson or the damped iteration has brought near is finished by Newton, so that all points reach the
    same accuracy. `.method` names the method that each point ended with.

    Examples
    --------
    >>> F = lambda x, p: x - 1/(p["lam"] + 2/(1 + x))
    >>> s = robust([1.0], {"lam": 0.1}, names=["V"], residual=F, positive=True)
    >>> round(s["V"], 6), s.method
    (0.844289, 'anderson')
    """
    p, names = dict(p or {}), tuple(names)
    if residual is None and step is None:
        raise BadInput("robust needs residual= or step=")
    if step is None:
        function = residual
        assert function is not None
        step = lambda x, q: x - function(x, q)  # noqa: E731
    x, single = start(x0, p, names)
    common = {"names": names, "positive": positive, "rtol": rtol, "atol": atol, "raise_on_failure": False}
    exact = residual is not None and (jacobian is not None or both is not None)

    def polished(y: Array, q: Params) -> Solution:
        assert residual is not None
        return newton(residual, jacobian, y, q, both=both, max_steps=max_steps, **common)

    def slow(solve: Callable[..., Solution], steps: int, **options: Any) -> Solver:
        def run(y: Array, q: Params) -> Solution:
            found = solve(step, y, q, max_steps=steps, **options, **common)
            return _better(found, polished(_usable(found.state, y, positive, names), q)) if exact else found

        return run

    chain: list[Solver] = [polished] if exact else []
    chain += [slow(fixed_point.anderson, 5 * max_steps), slow(fixed_point.damped, 100 * max_steps, damping=0.5)]
    found = chain[0](x, p)
    for solve in chain[1:]:
        found = _mend(found, solve, x, p)
    found = found.point(0) if single else found
    return found.require() if raise_on_failure else found


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
    solver : callable (x0 (n, B), p) -> Solution that does not raise, e.g. a partial of `robust`
    x0 : start of the first point, (n,) or (n, 1)
    p : the parameters; p[along] (B,) is the continuation parameter, in the order in which it is to be followed
    skeleton : how many points are solved one after another before the rest is solved at once (default about sqrt(B));
        0 solves all at once from x0, the fastest where there is one solution; what fails is reached from its neighbours
    halvings : how often the way from a solved neighbour is halved before a point is given up

    Examples
    --------
    >>> from functools import partial
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
    line = _Line(solver, dict(p), s, mask, names)
    count = min(points, 1 + isqrt(points) if skeleton is None else skeleton)
    bones = np.unique(np.round(np.linspace(0, points - 1, count)).astype(int))
    for k in bones:
        line.step(int(k), first, halvings)
    rest = np.setdiff1d(np.arange(points), bones)
    torn = line.torn[bones[np.searchsorted(bones, rest)]] if bones.size > 1 else np.zeros(rest.size, dtype=bool)
    for k in rest[torn]:  # between two ends of different branches: one after another, from the side that was first
        line.step(int(k), first, halvings)
    rest = rest[~torn]
    if rest.size:
        line.solve(rest, line.interpolated(rest) if line.solved.any() else np.repeat(first, rest.size, axis=1))
    for k in sorted(np.flatnonzero(~line.solved).tolist(), key=line.distance):
        if line.solved.any():
            line.approach(k, halvings)
    found = line.solution()
    return found.require() if raise_on_failure else found


def branches(
    solve: Callable[[Any], Solution], starts: Mapping[str, Any], *, names: Sequence[str], rtol: float = 1e-6
) -> tuple[Solution, ...]:
    """Solve from several starts and keep the answers that differ.

    Parameters
    ----------
    solve : callable start -> Solution that does not raise, e.g. a partial of `follow` or `robust`
    starts : {"informed": x0, "uninformed": x0, ...}
    rtol : two answers are the same where they agree to this, or to ten times their error estimates

    Returns
    -------
    tuple of Solution    one a branch; `.branch` is the start that led there, or "unique" at the points where all
                         starts that converged agree

    Examples
    --------
    >>> import numpy as np
    >>> G = lambda x, p: np.tanh(p["beta"]*x)           # Curie-Weiss: one solution above the critical temperature
    >>> def solve(x0):
    ...     return fixed_point.anderson(G, x0, {"beta": np.array([0.5, 2.0])}, names=["m"], raise_on_failure=False)
    >>> up, down = branches(solve, {"informed": [1.0], "uninformed": [1e-12]}, names=["m"])
    >>> up.branch, up["m"].round(4) + 0.0
    (array(['unique', 'informed'], dtype=object), array([0.    , 0.9575]))
    """
    found: list[Solution] = []
    for label, x0 in starts.items():
        s = solve(x0)
        shape = np.shape(s.converged)
        found.append(replace(s, branch=np.full(shape, label, dtype=object) if shape else label))
    kept: list[Solution] = []
    for s in found:
        if not any(np.all(_same(s, k, names, rtol) | ~np.asarray(s.converged)) for k in kept):
            kept.append(s)
    kept = [s for s in kept if np.any(s.converged)] or found[:1]
    out = []
    for s in kept:
        alone = np.asarray(s.converged) & np.logical_and.reduce(
            [_same(s, k, names, rtol) | ~np.asarray(k.converged) for k in kept]
        )
        branch: Any = np.where(alone, "unique", np.asarray(s.branch, dtype=object))
        out.append(replace(s, branch=branch if np.ndim(branch) else str(branch)))
    return tuple(out)


class _Line:
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
        size = np.where(self.mask, 1.0, np.nanmax(np.abs(self.y), axis=1))
        off = np.abs(self.y[:, k] - to_logs(guess, self.mask)[:, 0])
        self.torn[k] = not (off <= _JUMP * size).all()

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
        return _assemble(self.parts, self.s.size, self.names)


def _between(a: Any, b: Any, t: float) -> Any:
    return b if np.array_equal(a, b) else a + t * (np.asarray(b) - a)


def _assemble(parts: Sequence[tuple[Array, Solution]], points: int, names: Sequence[str]) -> Solution:
    values: dict[str, Any] = {}
    fields: dict[str, Any] = {}
    for k, s in parts:
        for target, source in ((values, dict(s.value)), (fields, {f: getattr(s, f) for f in _ARRAYS})):
            for name, v in source.items():
                if name not in target:
                    kind = np.asarray(v).dtype
                    target[name] = np.empty(points, dtype=object if kind.kind in "OUS" else kind)
                target[name][k] = v
    method = fields.pop("method")
    return Solution(
        values,
        method=method[0] if len(set(method.tolist())) == 1 else method,
        unknowns=tuple(names),
        notes=tuple(dict.fromkeys(n for _, s in parts for n in s.notes)),
        origin=dict(parts[-1][1].origin),
        **fields,
    )


def _mend(found: Solution, solve: Solver, x: Array, p: Params) -> Solution:
    """Try `solve` on the points of `found` that are open; it counts where it converged or came nearer."""
    bad = np.flatnonzero(~np.asarray(found.converged))
    if not bad.size:
        return found
    every = np.arange(x.shape[1])
    second = _better(_pick(found, bad), solve(x[:, bad], take(p, bad)))
    spent = np.array(found.iterations)
    spent[bad] += second.iterations
    return replace(_assemble([(every, found), (bad, second)], every.size, found.unknowns), iterations=spent)


def _better(a: Solution, b: Solution) -> Solution:
    """Point by point b where it converged or has the smaller residual, else a."""
    near = np.nan_to_num(np.asarray(b.residual), nan=np.inf) <= np.nan_to_num(np.asarray(a.residual), nan=np.inf)
    use = np.flatnonzero(np.asarray(b.converged) | (~np.asarray(a.converged) & near))
    every = np.arange(np.size(a.converged))
    return a if not use.size else _assemble([(every, a), (use, _pick(b, use))], every.size, a.unknowns)


def _pick(s: Solution, k: Array) -> Solution:
    fields = {f: v[k] if np.ndim(v := getattr(s, f)) else v for f in _ARRAYS}
    return replace(s, value={n: np.asarray(v)[k] for n, v in s.value.items()}, **fields)


def _usable(x: Array, fallback: Array, positive: Any, names: Sequence[str]) -> Array:
    bad = ~np.isfinite(x) | (positive_mask(positive, names)[:, None] & ~(x > 0))
    return np.where(bad.any(axis=0), fallback, x)


def _same(a: Solution, b: Solution, names: Sequence[str], rtol: float) -> Array:
    same = np.ones(np.shape(a.converged), dtype=bool)
    error = 10 * (np.nan_to_num(np.asarray(a.error)) + np.nan_to_num(np.asarray(b.error)))
    for n in names:
        u, v = np.asarray(a[n]), np.asarray(b[n])
        same &= np.abs(u - v) <= np.maximum(rtol, error) * (np.abs(u) + np.abs(v)) + rtol**1.5
    return same

