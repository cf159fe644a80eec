"""The best parameters:  min over p in [lo, hi] of o(p),  where do/dp = 0, or at an end of the bounds.

A scan over the whole interval (in log p where p is positive) finds the valley; in it the zero of the exact derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from hermitex.errors import NO_NUMBER, BadInput, NotConverged, UnknownName, brief
from hermitex.solvers.solution import Solution
from hermitex.systems.names import by_name

_SCAN = {1: 49, 2: 13, 3: 7}  # values of each parameter
_FLAT = 1e-6  # a slope, per unit of log p or of the interval, of the objective's own size: less is 0
_ROUGH = 1e-5  # the tolerance of a scan, which only finds valleys
_VALLEYS = 3  # of a scan that are refined: the lowest ones


def minimise(solve: Callable[..., Solution], objective: str, over: Any, bounds: Any) -> Solution:
    """The Solution at the best parameters; `solution[name]` is the best value of each.

    solve : numbers of the parameters by keyword, arrays allowed, and `tolerance` -> Solution, which does not raise
    """
    names = [over] if isinstance(over, str) or not isinstance(over, Sequence) else list(over)
    names = [str(n) for n in names]
    each = by_name("minimise", bounds, parameters=names) if isinstance(bounds, Mapping) else dict.fromkeys(names, bounds)
    pairs = [_pair(n, each.get(n, bounds)) for n in names]
    if not names or len(names) > max(_SCAN):
        raise BadInput(f"minimise: over one to {max(_SCAN)} parameters, not {len(names)}")
    if twice := next((n for n in names if names.count(n) > 1), None):
        raise BadInput(f"minimise: {twice} is named twice in over")
    if strange := next((n for n in each if n not in names), ""):
        raise UnknownName(strange, names, "name in bounds")
    search = _LeastSearch(solve, objective, names, pairs)
    return search.one() if len(names) == 1 else search.several()


def _span(values: np.ndarray) -> tuple[float, float]:
    finite = values[np.isfinite(values)]
    return float(finite.min()), float(finite.max())


def _pair(name: str, bounds: Any) -> tuple[float, float]:
    try:
        lo, hi = (float(v) for v in bounds)
    except NO_NUMBER:
        raise BadInput(f"minimise: the bounds of {name} are two numbers, bounds=(1e-4, 10) or {{{name!r}: (1e-4, 10)}}, not "
                       f"{brief(bounds)}") from None
    if not (np.isfinite(lo) and np.isfinite(hi) and lo < hi):
        raise BadInput(f"minimise: the bounds of {name} are finite and the first is the lower, not ({lo:g}, {hi:g})")
    return lo, hi


class _LeastSearch:
    def __init__(self, solve: Callable[..., Solution], objective: str, names: list[str], bounds: list[tuple[float, float]]) -> None:
        self.solve, self.objective, self.names, self.bounds = solve, objective, names, bounds
        self.span = (0.0, 0.0)  # the least and the largest value of the scan
        self.logs = [lo > 0 for lo, _ in bounds]
        self.ends = [(float(np.log(lo)), float(np.log(hi))) if log else (lo, hi)
                     for (lo, hi), log in zip(bounds, self.logs, strict=True)]

    def numbers(self, u: Any) -> dict[str, Any]:
        """Parameters of coordinates in the scan: log p where p is positive."""
        found = {}
        for n, v, log, (lo, hi) in zip(self.names, u, self.logs, self.bounds, strict=True):
            found[n] = np.clip(np.exp(v) if log else v, lo, hi)
        return found

    def scan(self) -> tuple[np.ndarray, np.ndarray]:
        """(coordinates (k, B), objective (B,)), infinite where it was not solved."""
        axes = [np.linspace(lo, hi, _SCAN[len(self.names)]) for lo, hi in self.ends]
        u = np.array(list(product(*axes))).T
        # In parts of neighbours: a sharp function at one end of the bounds makes the nodes of its own part fine, not those of all.
        parts = [self.solve(tolerance=_ROUGH, **self.numbers(part))
                 for part in np.array_split(u, u.shape[1]//_SCAN[3], axis=1)]
        values = np.concatenate([np.where(f.converged, np.asarray(f[self.objective], dtype=float), np.inf) for f in parts])
        values = np.where(np.isfinite(values), values, np.inf)
        for k in np.argsort(values, kind="stable")[:_VALLEYS]:  # next to a pole a value holds at the rough tolerance only
            values[k] = self.value(u[:, k])[0] if np.isfinite(values[k]) else np.inf
        if np.all(values == np.inf):
            found = parts[0]
            why = np.ravel(np.asarray(found.reason, dtype=object))[0]
            raise NotConverged(found, f"minimise: no point between the bounds could be solved; the first: {why}")
        return u, values

    def valleys(self, values: np.ndarray) -> list[int]:
        """The points of the scan that are no higher than their neighbours along each parameter, the lowest first."""
        grid = values.reshape((_SCAN[len(self.names)],)*len(self.names))
        low = np.isfinite(grid)
        for axis in range(grid.ndim):
            beside = np.pad(grid, [(1, 1) if k == axis else (0, 0) for k in range(grid.ndim)], constant_values=np.inf)
            below, above = (np.take(beside, range(k, k + grid.shape[axis]), axis) for k in (0, 2))
            low &= (grid <= below) & (grid <= above)
        found = np.flatnonzero(low)
        return found[np.argsort(values[found], kind="stable")][:_VALLEYS].tolist()

    def value(self, u: Any) -> tuple[float, Solution]:
        """Objective and solution; infinite where it is not solved."""
        found = self.solve(**{n: float(v) for n, v in self.numbers(u).items()})
        solved = np.all(found.converged) and np.isfinite(found[self.objective])
        return float(found[self.objective]) if solved else np.inf, found

    def at(self, u: Any) -> tuple[float, np.ndarray, Solution]:
        """Objective, its exact slope along the coordinates, and the solution; infinite, and no slope, where it is not solved."""
        numbers = {n: float(v) for n, v in self.numbers(u).items()}
        value, found = self.value(u)
        if value == np.inf:
            return np.inf, np.full(len(self.names), np.nan), found
        slope = np.array([float(found.derivative(n)[self.objective])*(numbers[n] if log else 1.0)
                          for n, log in zip(self.names, self.logs, strict=True)])
        return value, slope, found

    def one(self) -> Solution:
        """One parameter: the least of what the valleys of the scan hold.

        Between two points of the scan a valley is deeper than at them, an end is not: which is the lowest is known at their floors.
        """
        u, values = self.scan()
        self.span = _span(values)
        floors = [self.floor(u[0], k) for k in self.valleys(values)]
        return self.answer([min(floors, key=lambda v: self.value([v])[0]) if len(floors) > 1 else floors[0]])

    def floor(self, line: np.ndarray, k: int) -> float:
        """The minimum of the objective between the neighbours of point k: at the zero of its slope, an end, or an edge."""
        from scipy.optimize import minimize_scalar, toms748

        a, b = float(line[max(k - 1, 0)]), float(line[min(k + 1, line.size - 1)])

        def slope(v: float) -> float:
            return float(self.at([v])[1][0])

        slopes = [slope(v) for v in (a, b)]
        if slopes[0] < 0 < slopes[1]:
            try:
                return float(toms748(slope, a, b, xtol=1e-13, rtol=1e-13))
            except ValueError:  # between them it is not solved everywhere
                pass
        if (k == 0 and slopes[0] >= 0) or (k == line.size - 1 and slopes[1] <= 0):
            return float(line[k])
        # no zero of the slope between lower ends: an edge of the objective
        return float(minimize_scalar(lambda v: self.value([v])[0], bounds=(a, b), method="bounded", options={"xatol": 1e-10}).x)

    def several(self) -> Solution:
        """Several: down the slope from the valleys of the scan, then the zero of the slope inside; without it at an edge."""
        from scipy.optimize import minimize, root

        u, values = self.scan()
        self.span = _span(values)
        best, x = np.inf, u[:, 0]

        def seen(v: np.ndarray) -> tuple[float, np.ndarray]:
            nonlocal best, x
            value, slope, _ = self.at(v)
            if value < best:
                best, x = value, np.array(v, dtype=float)
            return value, slope

        def walled(v: np.ndarray) -> tuple[float, np.ndarray]:
            value, slope = seen(v)
            return (value, slope) if np.all(np.isfinite([value, *slope])) else (self.span[1], np.zeros(len(v)))

        for k in self.valleys(values):
            minimize(walled, u[:, k], jac=True, method="L-BFGS-B", bounds=self.ends, options={"ftol": 1e-15, "gtol": 1e-12})
        inside = [i for i, (lo, hi) in enumerate(self.ends) if lo < x[i] < hi]

        def slope(v: np.ndarray) -> np.ndarray:
            y = x.copy()
            y[inside] = np.clip(v, *np.array(self.ends)[inside].T)
            return self.at(y)[1][inside]

        if inside and np.all(np.isfinite(slope(x[inside]))):
            finer = root(slope, x[inside], method="hybr", options={"xtol": 1e-13})
            if np.all(np.abs(finer.x - x[inside]) < 1e-3) and np.abs(finer.fun).max() <= np.abs(slope(x[inside])).max():
                x[inside] = finer.x
        if inside and not np.abs(slope(x[inside])).max() <= _FLAT*max(abs(best), 1e-300):
            minimize(lambda v: seen(v)[0], x.copy(), method="Nelder-Mead", bounds=self.ends, options={"xatol": 1e-10, "fatol": 0.0})
        return self.answer(x.tolist())

    def answer(self, u: Sequence[float]) -> Solution:
        """The solution with the best parameters in it, and the check of its slope in the notes."""
        value, slope, found = self.at(u)
        numbers, notes, ends = self.numbers(u), [], []
        low, high = self.span
        if not np.isfinite(value):
            found.require("narrower bounds")
        steep = np.nan_to_num(np.abs(slope)*[hi - lo for lo, hi in self.ends], nan=0.0, posinf=0.0).max()
        deep = 1e3  # times the span of the scan's values: a value that far below is not a minimum
        # times that, or the value: a slope over the whole interval that a root does not reach, to rounding, and a pole does
        pole = 1e10
        if value < low - deep*(high - low) or steep > pole*max(high - low, abs(value)):
            where = ", ".join(f"{n} = {float(v):.6g}" for n, v in numbers.items())
            raise BadInput(f"minimise: {self.objective} falls without bound next to {where}: it is {value:.3g} there; give bounds= "
                           "that leave this out")
        for n, v, g, (lo, hi) in zip(self.names, u, slope, self.ends, strict=True):
            end = "lower" if v - lo < 1e-9*(hi - lo) else "upper" if hi - v < 1e-9*(hi - lo) else ""
            size = max(abs(value), 1e-300)
            if end:
                ends.append(f"{n} at the {end} end")
                notes.append(f"the least {self.objective} lies at the {end} end of the bounds, {n} = {float(numbers[n]):.6g}; its "
                             f"slope there is {g/(float(numbers[n]) if self.logs[self.names.index(n)] else 1.0):.3g}")
            elif not abs(g) <= _FLAT*size:
                notes.append(f"the slope of {self.objective} by {n} is {g:.1e} at its least value, not 0: an edge, or few digits")
        best = {n: float(v) for n, v in numbers.items()}
        first = (*best, self.objective)
        return replace(found, value={**best, self.objective: found[self.objective], **found.value, **best},
                       notes=(*found.notes, *notes), optimum=first, at_end=", ".join(ends))
