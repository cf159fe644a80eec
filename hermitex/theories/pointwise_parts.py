"""x(p) = x_i(p) on the points of part i: a batch whose points obey different equations, solved part by part."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hermitex.solvers.batch import merge_solutions
from hermitex.solvers.solution import Solution

Array = np.ndarray[Any, Any]


def in_parts(parts: Sequence[tuple[Array, Callable[..., Solution]]], numbers: Mapping[str, Array], options: Mapping[str, Any]
             ) -> Solution:
    """Solve each part of a batch by its own function and put the points together.

    Parameters
    ----------
    parts : pairs (mask, run): masks that broadcast with the numbers and cover every point once; run(numbers, **options)
    numbers : float arrays by name, which broadcast
    options : of `run`; starting values of single points stay at home where there are several parts
    """
    shape = np.broadcast_shapes(*(np.shape(v) for v in numbers.values()))
    masks = [np.broadcast_to(mask, shape).ravel() for mask, _ in parts]
    for mask, (_, run) in zip(masks, parts, strict=True):
        if mask.all():
            return run(numbers, **options)
    flat = {n: np.broadcast_to(v, shape).ravel() for n, v in numbers.items()}
    start = {k: v for k, v in (options.get("start") or {}).items() if np.ndim(v) == 0}
    inner = {**options, "raise_on_failure": False, "start": start}
    found = [(k, run({n: v[k] for n, v in flat.items()}, **inner))
             for mask, (_, run) in zip(masks, parts, strict=True) if (k := np.flatnonzero(mask)).size]
    return shaped(merge_solutions(found, masks[0].size, found[0][1].unknowns), shape)


def shaped(found: Solution, shape: tuple[int, ...]) -> Solution:
    """A solution over a flat axis of points with the shape that the numbers have."""
    if shape == ():
        return found.point(0)
    return found if len(shape) == 1 else replace(found, value={n: np.asarray(v).reshape(shape) for n, v in found.value.items()})
