"""The solutions that can be found at one point of the parameters, and which of them iteration of the equations reaches.

    Newton from starts over many scales   ->   from the unstable ones along what iteration leaves them by, both ways
                                          ->   between the stable ones;  one block from one solution, the rest from another
                                          ->   x <- rhs(x) from the starts that have a name

What Newton's method finds from a start says nothing of where iteration from there ends; only the latter gives a solution
the name of its start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from .batch import Array, positive_mask
from .solution import Solution

Map = Callable[[Array], Array]

UNIQUE, STABLE, UNSTABLE, OTHER = "unique", "stable", "unstable", "other"
_MOST = 256  # starts of each kind in one round
_SAME, _FLOOR = 1e-6, 1e-6  # relative distance within one solution; size, relative to the largest solution, that counts as 0
_TINY = 1e-12  # no positive unknown is told from 0 below that, and no other below _FLOOR^2
_ENDED = 1e-10  # an iterate that moves no more than that has ended
_NEAR = 1e-4  # this near a stable solution is reached


def find_branches(solve: Callable[[Array], Solution], starts: Mapping[str, Array], *, names: Sequence[str], free: Sequence[str],
             positive: Any = None, step: Map | None = None, groups: Sequence[Sequence[str]] = (), boundary: bool = False
             ) -> tuple[Solution, ...]:
    """Every solution found, the reached ones first, each with its `.branch`.

    Parameters
    ----------
    solve : states (n, B) -> Solution of B points, each from its start; it does not raise
    starts : {"informed": state (n,), "uninformed": state (n,), ...}, of all unknowns
    names : the n unknowns;  free : those of them whose start matters
    positive : mask or names
    step : the undamped map, states (n, B) -> (n, B); None where an equation is implicit
    groups : the free unknowns block by block: solutions of separate blocks combine
    boundary : `solve` takes a start of 0 for a positive unknown: it asks there first

    Returns
    -------
    tuple of Solution : `.branch` is the name of the starts from which iteration ends there; "stable" if it is stable and no
        named start ends there; "unstable"; "other" if there is no map and no named start led there; "unique" where a single
        solution was found, and it is not unstable

    Examples
    --------
    >>> from hermitex.solvers.newton import newton
    >>> G = lambda x: np.tanh(2*x)                     # Curie-Weiss below its critical temperature
    >>> def solve(x0):
    ...     return newton(lambda x, p: x - G(x), lambda x, p: (1 - 2 + 2*G(x)**2)[None], x0, names=["m"], raise_on_failure=False)
    >>> found = find_branches(solve, {"up": np.array([1.0]), "small": np.array([-1e-3])}, names=["m"], free=["m"], step=G)
    >>> [(s.branch, round(float(s["m"]), 4) + 0.0) for s in found]
    [('up', 0.9575), ('small', -0.9575), ('unstable', 0.0)]
    """
    work = _Search(solve, names, free, positive_mask(positive, names), step, groups, boundary)
    first = np.stack(list(starts.values()), axis=1) if starts else np.zeros((len(names), 0))
    with np.errstate(all="ignore"):
        return work.search(first, list(starts))


class _Search:
    """The solutions found so far at one point of the parameters."""

    def __init__(self, solve: Callable[[Array], Solution], names: Sequence[str], free: Sequence[str], mask: Array,
                 step: Map | None, groups: Sequence[Sequence[str]], boundary: bool) -> None:
        self.solve, self.names, self.mask, self.step, self.boundary = solve, tuple(names), mask, step, boundary
        place = {n: i for i, n in enumerate(names)}
        self.free = np.array([place[n] for n in free], dtype=int)
        self.groups = [np.array([place[n] for n in g], dtype=int) for g in groups if g]
        self.found: list[Solution] = []
        self.states = np.zeros((len(self.names), 0))
        self.fresh: list[int] = []
        self.failed: Solution | None = None
        self.open: list[Solution] = []  # the equations hold, but the solver did not converge

    def search(self, first: Array, labels: Sequence[str]) -> tuple[Solution, ...]:
        """Search from the named states `first` and over scales, then from what was found; the solutions with their names."""
        tried = self.add(np.concatenate([first, self.scan()], axis=1))
        rounds = 4  # of exploring
        for _ in range(rounds):
            new, self.fresh = self.fresh, []
            trials = self.trials(new)
            if not trials.shape[1]:
                break
            self.add(trials)
        ends = dict(zip(labels, tried, strict=False)) if self.step is None else self.ends(first, labels)
        return self.named(ends)

    # -- starts --------------------------------------------------------------------------------------------------------
    def scan(self) -> Array:
        """Starts over scales: all free unknowns at one scale, then each at its own (an additive sequence: the same every time).

        And those at the boundary: all positive ones at 0, then each alone.
        """
        n = len(self.free)
        default = np.where(self.mask, 1.0, 0.0)
        if not n:
            return default[:, None]
        one_scale = 17  # starts with one scale for all unknowns; their numbers are chosen by trial
        alone_starts = 49  # of a single unknown
        diagonal = np.linspace(0, 1, alone_starts if n == 1 else one_scale)
        u = np.repeat(diagonal[None], n, axis=0)
        scattered = 48  # starts at random scales
        if n > 1:
            ratio = _golden_ratio(n)
            u = np.concatenate([u, (0.5 + np.outer(ratio ** np.arange(1, n + 1), np.arange(1, scattered + 1))) % 1.0], axis=1)
        x = np.repeat(default[:, None], u.shape[1], axis=1)
        logs = self.mask[self.free][:, None]
        low = -8.0  # the least decade of positive unknowns
        high = 3.0  # their largest decade; other unknowns are drawn from (-sinh(6), sinh(6)), densely at 0
        x[self.free] = np.where(logs, 10.0 ** (low + (high - low) * u), np.sinh(12 * (u - 0.5)))
        positive = self.free[self.mask[self.free]]
        alone = [positive[[i]] for i in range(len(positive))]
        zeros = [] if not self.boundary else [positive, *alone] if len(alone) > 1 else alone
        at = np.repeat(default[:, None], len(zeros), axis=1)
        for k, z in enumerate(zeros):
            at[z, k] = 0.0
        return np.concatenate([x, at], axis=1)

    def trials(self, new: Sequence[int]) -> Array:
        """Starts that the newest solutions suggest."""
        parts = [self.leaving([i for i in new if self.found[i].unstable]), self.between(new), self.crossed(new)]
        return np.concatenate([p[:, :_MOST] for p in parts], axis=1)

    def leaving(self, unstable: Sequence[int]) -> Array:
        """Iterate from points next to the unstable solutions, moved up and down in all free unknowns and in each alone."""
        n = len(self.free)
        few = [*np.eye(n)] if 1 < n <= 6 else []
        pushes = [s * w for w in [np.ones(n), *few, *([_sign_patterns(n)] if n > 1 else [])] for s in (1.0, -1.0)]
        x = []
        push = 1e-3  # relative, away from an unstable solution
        for i in unstable:
            for w in pushes:
                y = self.states[:, i].copy()
                size = np.maximum(np.abs(y[self.free]), _FLOOR * self.scale()[self.free])
                y[self.free] += push * size * w
                y[self.free] = np.where(self.mask[self.free] & (y[self.free] <= 0), push * size, y[self.free])
                x.append(y)
        if not x:
            return np.zeros((len(self.names), 0))
        begun = np.stack(x, axis=1)
        if self.step is None:
            return begun
        fixed = np.zeros(len(self.names), dtype=bool)
        fixed[self.free] = True
        steps_away = 400  # iterations away from an unstable solution
        ended, _ = self.iterated(consistent_states(self.step, begun, fixed), steps_away)
        return np.concatenate([ended, begun], axis=1)

    def between(self, new: Sequence[int]) -> Array:
        """Return starts on the lines between two solutions: an unstable solution that separates two stable ones is often near."""
        lines = [np.zeros((len(self.names), 0))]
        for a, b in combinations(range(len(self.found)), 2):
            if a in new or b in new:
                several = not (self.found[a].unstable or self.found[b].unstable)
                t = np.linspace(0.1, 0.9, 9 if several else 3)[None]
                x, y = self.states[:, [a]], self.states[:, [b]]
                logs = self.mask[:, None] & (x > 0) & (y > 0)
                safe = np.where(logs, x, 1.0), np.where(logs, y, 1.0)
                lines.append(np.where(logs, safe[0] ** (1 - t) * safe[1] ** t, (1 - t) * x + t * y))
        return np.concatenate(lines, axis=1)

    def crossed(self, new: Sequence[int]) -> Array:
        """The free unknowns of one block from one solution, the others from another."""
        none = [np.zeros(len(self.names))][:0]
        if len(self.groups) > 1:
            for a in range(len(self.found)):
                for b in range(len(self.found)):
                    for g in self.groups:
                        if a != b and (a in new or b in new) and len(none) < _MOST:
                            x = self.states[:, a].copy()
                            x[g] = self.states[g, b]
                            none.append(x)
        return np.stack(none, axis=1) if none else np.zeros((len(self.names), 0))

    # -- solutions -----------------------------------------------------------------------------------------------------
    def add(self, x: Array) -> list[int | None]:
        """Solve from the states x; the place of each answer among the solutions, None where there is none."""
        places: list[int | None] = []
        if not x.shape[1]:
            return places
        beside_zero = 1e-9  # the start of a positive unknown that is 0 in another solution, if 0 is not allowed as a start
        outcome = self.solve(np.where(self.mask[:, None] & ~(x > _TINY), 0.0 if self.boundary else beside_zero, x))
        holds = 1e-9  # a residual that small is a solution, were its averages known
        for k in range(x.shape[1]):
            one = outcome.point(k) if outcome.points is not None else outcome
            y = np.array([float(one[n]) for n in self.names])
            if not one.converged or not np.isfinite(y).all():
                self.failed = self.failed or one
                if one.residual <= holds and np.isfinite(y).all() and not any(
                        float(self.distance(np.array([o[n] for n in self.names]), y)) <= 1e-3 for o in self.open):
                    self.open.append(one)
                places.append(None)
                continue
            known = next((i for i in range(len(self.found)) if self.same(i, y, one)), None)
            if known is None:
                known = len(self.found)
                self.found.append(self.alone(one, y))
                self.states = np.concatenate([self.states, y[:, None]], axis=1)
                self.fresh.append(known)
            places.append(known)
        return places

    def alone(self, one: Solution, y: Array) -> Solution:
        """The same solution from itself: its notes speak of it, and not of the other starts it was found with."""
        if (self.mask & (y <= 0)).any():
            return replace(one, notes=tuple(n for n in one.notes if " points" not in n))
        again = self.solve(y[:, None])
        again = again.point(0) if again.points is not None else again
        x = np.array([float(again[n]) for n in self.names])
        if again.converged and float(self.distance(x, y)) <= _SAME:
            return replace(one, notes=again.notes, stability=again.stability)
        return replace(one, notes=())

    def scale(self) -> Array:
        """The largest size of each unknown over the solutions."""
        return np.abs(self.states).max(axis=1, initial=0.0) + np.finfo(float).tiny

    def distance(self, x: Array, y: Array) -> Array:
        """Return the largest relative difference of two states; entries that are small in every solution count as equal."""
        scale = np.maximum(self.scale(), np.abs(x).max(axis=-1, initial=0.0) if x.ndim > 1 else 0.0)
        scale = scale[:, None] if x.ndim > 1 else scale
        least = np.where(self.mask, _TINY, _FLOOR)
        gap = np.abs(x - y) / (np.abs(x) + np.abs(y) + _FLOOR * scale + (least[:, None] if x.ndim > 1 else least))
        return np.asarray(gap.max(axis=0, initial=0.0))

    def same(self, i: int, y: Array, one: Solution) -> bool:
        error = 10 * float(np.nan_to_num(one.error) + np.nan_to_num(self.found[i].error))
        gap = float(self.distance(self.states[:, i], y))
        if gap <= max(_SAME, min(error, 1e-3)):
            return True
        if gap > 1e-3 or self.step is None:
            return False
        middle = (self.states[:, i] + y)[:, None] / 2  # of a double root every point between two answers is one
        return float(self.distance(self.step(middle)[:, 0], middle[:, 0])) <= _ENDED

    # -- iteration -----------------------------------------------------------------------------------------------------
    def iterated(self, x: Array, steps: int, done: Callable[[Array], Array] | None = None) -> tuple[Array, Array]:
        """x <- rhs(x) until it stops moving, is not finite or is `done`; return the last states, and the last move of each."""
        assert self.step is not None
        x, moved = x.copy(), np.full(x.shape[1], np.inf)
        active = np.arange(x.shape[1])
        for k in range(steps):
            if not active.size:
                break
            new = self.step(x[:, active])
            good = np.isfinite(new).all(axis=0) & ~(self.mask[:, None] & (new < 0)).any(axis=0)
            moved[active[~good]] = np.inf
            active, new = active[good], new[:, good]
            moved[active] = (np.abs(new - x[:, active]) / (np.abs(new) + np.finfo(float).tiny)).max(axis=0, initial=0.0)
            x[:, active] = new
            left = moved[active] > _ENDED
            if done is not None and k % 10 == 9 and active.size:
                left &= ~done(x[:, active])
            active = active[left]
        return x, moved

    def reached(self, x: Array) -> Array:
        """The stable solution that each state is about to end in; -1 where none is clearly the nearest."""
        if not self.found:
            return np.full(x.shape[1], -1)
        gaps = np.stack([self.distance(x, self.states[:, [i]]) for i in range(len(self.found))])
        order = np.argsort(gaps, axis=0)
        near = np.take_along_axis(gaps, order[:1], axis=0)[0]
        other = np.take_along_axis(gaps, order[1:2], axis=0)[0] if len(gaps) > 1 else np.full(near.shape, np.inf)
        stable = np.array([not s.unstable for s in self.found])
        nearer = 0.05  # by this much nearer than to any other solution
        return np.where((near <= _NEAR) & (near <= nearer * other) & stable[order[0]], order[0], -1)

    def ends(self, first: Array, labels: Sequence[str]) -> dict[str, int | None]:
        """The solution in which iteration from each named start ends."""
        if not labels:
            return {}
        steps = 5000  # iterations from a named start
        x, moved = self.iterated(first, steps, lambda y: self.reached(y) >= 0)
        at = self.reached(x)
        still = np.flatnonzero((at < 0) & (moved <= _ENDED))  # it stops at a solution that is new, or unstable
        for k, i in zip(still, self.add(x[:, still]), strict=True):
            if i is not None and float(self.distance(x[:, k], self.states[:, i])) <= _NEAR:
                at[k] = i
        return {label: int(i) if i >= 0 else None for label, i in zip(labels, at, strict=True)}

    # -- names ---------------------------------------------------------------------------------------------------------
    def named(self, ends: Mapping[str, int | None]) -> tuple[Solution, ...]:
        """Return the named solutions, the ones that a start reaches first; the failure if there are none."""
        if not self.found:
            assert self.failed is not None
            return (replace(self.failed, branch=""),)
        unresolved = self.unresolved()
        lost = [label for label, i in ends.items() if i is None]
        reach = {i: [label for label, j in ends.items() if j == i] for i in range(len(self.found))}
        order = sorted(range(len(self.found)), key=lambda i: (
            not reach[i] or bool(self.found[i].unstable), bool(self.found[i].unstable),
            min([list(ends).index(label) for label in reach[i]], default=0), tuple(self.states[self.free, i])))
        out = []
        for i in order:
            s = self.found[i]
            rest = OTHER if np.isnan(s.stability) else STABLE
            name = UNSTABLE if s.unstable else UNIQUE if len(self.found) == 1 and not unresolved else ", ".join(reach[i]) or rest
            notes = s.notes
            if i == order[0]:
                notes = (*notes, *unresolved)
                if lost:
                    notes = (*notes, f"iteration from the start {', '.join(lost)} reaches none of the solutions that were found")
            out.append(replace(s, branch=name, notes=notes))
        return tuple(out)

    def unresolved(self) -> list[str]:
        """Notes on states at which the equations hold to what was computed of them, and no more can be said."""
        said = []
        for one in self.open:
            y = np.array([float(one[n]) for n in self.names])
            if not any(float(self.distance(self.states[:, i], y)) <= 1e-3 for i in range(len(self.found))):
                where = ", ".join(f"{n} = {v:.4g}" for n, v in list(zip(self.names, y, strict=True))[:4])
                said.append(f"there may be a further solution near {where}: {one.reason}")
        return said[:3]


def consistent_states(step: Map, x: Array, fixed: Array, rounds: int = 20) -> Array:
    """The states with every unknown that is not `fixed` put to its right-hand side: so a start in a few unknowns is one of all."""
    x = x.copy()
    for _ in range(min(rounds, int((~fixed).sum()))):
        new = step(x)
        good = ~fixed[:, None] & np.isfinite(new)
        if np.array_equal(np.where(good, new, x), x):
            break
        x = np.where(good, new, x)
    return x


def _golden_ratio(n: int) -> float:
    """1/g with g^(n+1) = g + 1: its powers fill the n-dimensional cube evenly."""
    g = 2.0
    for _ in range(60):
        g = (1 + g) ** (1 / (n + 1))
    return 1 / g


def _sign_patterns(n: int) -> Array:
    return np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
