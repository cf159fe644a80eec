"""What averages over one axis record of themselves: their error, their tail at the window's end, the panels to be halved.

The error is that of the same average by coarser weights on the same nodes, relative to E|F|, at each point of a batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hermitex.kernels import quadrature

_ROUNDING = 4e-16  # two units of the last place: no sum is known better


class Record:
    """The worst error over all averages along one axis, the tail at the window's end, and the panels to be halved."""

    def __init__(self, rule: quadrature.Rule, estimated: bool = True) -> None:
        self.rule = rule
        self.estimated = estimated  # an axis of several variables gets other nodes, and no other weights
        self.error = np.full(1, _ROUNDING)
        self.outer = np.zeros(1)  # of what is averaged over all axes
        self.tail = np.zeros(1)
        self.undefined = np.zeros(1, dtype=bool)
        self.first = 0.0
        self.suspects: np.ndarray | None = None
        self._taken: dict[tuple[int, bool], list[tuple[np.ndarray, ...]]] = {}  # by points, and whether over all axes
        self._sizes: tuple[Any, Any] = None, None  # of what was averaged last, which often comes again with another table

    def add(self, values: np.ndarray, weights: np.ndarray, axis: int, floor: Any, table: Any = None
            ) -> tuple[np.ndarray, np.ndarray]:
        """The average of values, or of values*table, and E|F|, both with the axis kept."""
        rule = self.rule
        if table is not None and (np.ndim(values) == 0 or values.shape[axis] == 1 or rule.kind in ("unit", "panels")):
            values, table = values*table, None
        if np.ndim(values) == 0 or values.shape[axis] == 1:  # constant along the axis
            result = contracted(values, weights, axis)
            return result, np.maximum(np.abs(result), floor)
        v, floor = values.swapaxes(axis, -1), np.swapaxes(floor, axis, -1)[..., 0] if np.ndim(floor) else floor
        t = np.ones(1) if table is None else table.ravel()
        if rule.kind == "unit":  # the nodes, and with them the weights, differ from point to point
            w = weights.swapaxes(axis, -1)
            v, levels = v * w, np.tile(rule.ratios, (1, w.shape[-1] // len(rule))).T
            own = np.maximum(np.abs(v).sum(axis=-1), floor)
        else:
            if table is None:
                levels, size = rule.levels, np.abs(v)
            else:
                if self._sizes[0] is not values:
                    self._sizes = values, np.abs(v)
                levels, size = rule.levels * t[:, None], self._sizes[1]
            own = np.maximum(size @ (rule.weights * np.abs(t)), floor)
        sums = (v.reshape(-1, v.shape[-1]) @ levels).reshape(*own.shape, 3)
        size = own.reshape(len(own), -1)
        negligible = 1e-8  # of the largest entry of a table: entries below are needed to absolute accuracy only
        # A table is needed to relative accuracy only where it is not negligible against its own largest entry.
        size = size if size.shape[1] == 1 else np.maximum(size, negligible * size.max(axis=1, keepdims=True))
        last = slice(-1, None) if rule.kind == "counting" else slice(None, None, v.shape[-1] - 1)  # both ends of a window
        ends = np.abs(v[..., last]) * ((rule.weights * np.abs(t))[last] if rule.kind != "unit" else 0.0)
        self._taken.setdefault((len(size), size.shape[1] == 1), []).append(
            (sums.reshape(*size.shape, 3), size, ends.max(axis=-1).reshape(size.shape)))
        if rule.kind == "panels":
            parts = rule.panel_errors(v) / size.reshape(own.shape)[..., None]
            worst = parts.max(axis=tuple(range(1, parts.ndim - 1)))
            self.suspects = worst if self.suspects is None else np.maximum(self.suspects, worst)
        return sums[..., :1].swapaxes(axis, -1), own[..., None].swapaxes(axis, -1)

    def measure(self) -> None:
        """The errors of all that was taken, at once."""
        beyond = 2.0  # twice the last term of the window, as a tail is its sum
        least_rate = 1e-3  # the least quotient of two errors that is trusted
        safety = 4.0  # on the rate at which the error shrinks
        for (_, outer), taken in self._taken.items():
            sums, size, ends = (np.concatenate(part, axis=1) for part in zip(*taken, strict=True))
            self.undefined = self.undefined | np.isnan(sums[..., 0]).any(axis=1)
            steps = np.abs(sums[..., :-1] - sums[..., 1:]) / size[..., None]
            if self.rule.kind == "counting":  # nothing but 0 so far: the first terms may be too small for a number, not the rest
                steps = np.where(size[..., None] > 1e-290, steps, 1.0)
            first, second = steps[..., 0], steps[..., 1]
            rate = first / np.maximum(second, 1e-300)
            if self.rule.kind != "trapezoid":  # small by accident: no gain above a thousand is trusted
                rate = np.maximum(rate, least_rate)
            error = worst_of(first * np.minimum(1.0, safety * rate))
            self.error = np.maximum(self.error, error) if self.estimated else self.error
            if self.estimated and outer:
                self.outer = np.maximum(self.outer, error)
            self.first = max(self.first, float(np.fmax.reduce(first, axis=None)))
            if self.rule.kind != "unit":
                # The part beyond the window is about its last term: beyond L a Gaussian tail falls by exp(-L) a unit.
                self.tail = np.maximum(self.tail, beyond * worst_of(ends / size))

    def suspects_of(self, points: np.ndarray) -> np.ndarray | None:
        """The worst error of each panel over some of the points."""
        if self.suspects is None or len(self.suspects) != len(points):
            return None if self.suspects is None else self.suspects.max(axis=0)
        return np.asarray(self.suspects[points].max(axis=0))


def contracted(values: Any, weights: np.ndarray, axis: int, table: Any = None) -> np.ndarray:
    """The plain average of values, or of values*table, over one axis, which is kept."""
    weights = weights if table is None else weights*table
    if np.ndim(values) == 0 or not values.shape[axis] == weights.shape[axis] == weights.size:
        return np.asarray((values * weights).sum(axis=axis, keepdims=True))
    return np.asarray((values.swapaxes(axis, -1) @ weights.reshape(-1, 1)).swapaxes(axis, -1))


def accepts_table(average: Callable) -> Callable:
    """An average to which generated code may pass a table besides the weights; a table that is equal at all points is reported."""
    def taken(values: Any, weights: np.ndarray, axis: int, table: Any = None) -> Any:
        if table is None:
            return average(values, weights, axis)
        return average(values, weights, axis, table=table) if np.shape(table) == weights.shape else average(
            values*table, weights, axis)

    return taken


def sizes_of(values: Any) -> np.ndarray:
    """The largest finite |value| at each point."""
    size = np.abs(np.asarray(values, dtype=float))
    size = np.where(np.isfinite(size), size, 0.0)
    return size.reshape(len(size), -1).max(axis=1) if size.ndim else size.reshape(1)


def infinite_points(values: Any) -> np.ndarray:
    """1 at each point where some value is infinite, else 0."""
    found = np.isinf(np.asarray(values, dtype=float))
    return 1.0*(found.reshape(len(found), -1).any(axis=1) if found.ndim else found.reshape(1))


def worst_of(values: np.ndarray) -> np.ndarray:
    """For each point the largest entry, infinite where one is missing."""
    worst = values.reshape(len(values), -1).max(axis=1)
    return np.where(np.isnan(worst), np.inf, np.maximum(worst, _ROUNDING))


def at_points(values: np.ndarray, points: np.ndarray) -> np.ndarray:
    return values if len(values) == 1 else values[points]


def worst_errors(*errors: np.ndarray) -> np.ndarray:
    """The largest of several errors at each point; a single number applies to all points."""
    worst = np.zeros(1)
    for error in errors:
        worst = np.maximum(worst, error)
    return worst
