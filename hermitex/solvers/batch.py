"""The points of a batch: x of shape (n, B), parameters with the points along their last axis.

    residual_i = |x_i - rhs_i| / (|x_i| + atol/rtol)   <=   rtol

is the one measure of convergence. The floor atol/rtol serves unknowns that pass through zero; positive unknowns have no floor,
as their error is relative however small they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import BadInput, UnknownName
from .solution import Solution

Array = np.ndarray
_ARRAYS = ("residual", "converged", "iterations", "stability", "error", "method", "branch", "reason")
Params = Mapping[str, Any]
Field = Callable[[Array, Params], Array]

ROUNDING = 256 * float(np.finfo(float).eps)  # a residual below this is noise of the summation


def take_points(p: Params, index: Array) -> dict[str, Any]:
    """The parameters of the points `index`; scalars and arrays of length one stay as they are.

    >>> take_points({"alpha": np.array([1.0, 2.0, 3.0]), "beta": 1.0}, np.array([2]))
    {'alpha': array([3.]), 'beta': 1.0}
    """
    return {k: v if np.ndim(v) == 0 or np.shape(v)[-1] == 1 else np.asarray(v)[..., index] for k, v in p.items()}


def size(x0: Array, p: Params) -> int:
    """The number B of points that the start and the parameters agree on; raises `BadInput` naming the odd one."""
    found: tuple[str, int] | None = ("the start", x0.shape[1]) if x0.ndim == 2 and x0.shape[1] != 1 else None
    for name, v in p.items():
        if np.ndim(v) == 0 or np.shape(v)[-1] == 1:
            continue
        length = np.shape(v)[-1]
        if found is None:
            found = (name, length)
        elif found[1] != length:
            raise BadInput(f"{name} has {length} points but {found[0]} has {found[1]}")
    return 1 if found is None else found[1]


def start(x0: Any, p: Params, names: Sequence[str]) -> tuple[Array, bool]:
    """The start as a fresh array (n, B), and whether the caller asked about a single point."""
    x = np.asarray(x0, dtype=float)
    if x.ndim not in (1, 2) or x.shape[0] != len(names):
        need = f"{len(names)} unknowns ({', '.join(names)}) need ({len(names)}, B)"
        raise BadInput(f"the start has shape {x.shape}; {need}")
    points = size(x, p)
    single = x.ndim == 1 and all(np.ndim(v) == 0 for v in p.values())
    return np.array(np.broadcast_to(x.reshape(len(names), -1), (len(names), points))), single


def positive_mask(positive: Any, names: Sequence[str]) -> Array:
    """A boolean mask over the unknowns from None, True, a mask, or names.

    >>> positive_mask(["V"], ("V", "m"))
    array([ True, False])
    """
    if positive is None or isinstance(positive, bool):
        return np.full(len(names), bool(positive))
    items = list(positive) if isinstance(positive, Iterable) else []
    if items and all(isinstance(i, str) for i in items):
        for item in items:
            if item not in names:
                raise UnknownName(item, names, "unknown")
        return np.array([n in items for n in names])
    mask = np.asarray(items, dtype=bool)
    if len(items) not in (0, len(names)):
        raise BadInput(f"the mask of positive unknowns has {len(items)} entries for {len(names)} unknowns")
    return mask if len(items) else np.zeros(len(names), dtype=bool)


def require_feasible(x: Array, positive: Array, names: Sequence[str]) -> None:
    """Raise `BadInput` when a start is not finite or a positive unknown starts at or below zero."""
    wrong = ~np.isfinite(x) | (positive[:, None] & (x <= 0))
    if wrong.any():
        i, b = (int(k) for k in np.argwhere(wrong)[0])
        need = "positive and finite" if positive[i] else "finite"
        raise BadInput(f"the start of {names[i]} is {x[i, b]:g} at point {b}; it must be {need}")


def finite_params(p: Params) -> None:
    """Raise `BadInput` for a parameter that is NaN; infinities are a legitimate limit and pass."""
    for name, v in p.items():
        if np.isnan(v).any():
            raise BadInput(f"parameter {name} is NaN")


def worst_names(size_of: Array, names: Sequence[str], most: int = 3) -> str:
    """The names whose entries are within a factor ten of the largest, largest first."""
    size_of = np.where(np.isfinite(size_of), size_of, np.inf)
    top = size_of.max()
    order = np.argsort(-size_of, kind="stable")
    return ", ".join(names[i] for i in order[:most] if size_of[i] >= top / 10)


def merge_solutions(parts: Sequence[tuple[Array, Solution]], points: int, names: Sequence[str],
             origin: Mapping[str, Any] | None = None) -> Solution:
    """Solutions of subsets of the points put together in order; a later one replaces an earlier one.

    origin : fields of the whole (default: fields of the last part); the quadrature error is the largest of the parts
    """
    values: dict[str, Any] = {}
    fields: dict[str, Any] = {}
    part = np.full(points, -1)  # which of them each point is of
    for i, (k, s) in enumerate(parts):
        part[k] = i
        for target, source in ((values, dict(s.value)), (fields, {f: getattr(s, f) for f in _ARRAYS})):
            for name, v in source.items():
                if name not in target:
                    kind = np.asarray(v).dtype
                    target[name] = np.empty(points, dtype=object if kind.kind in "OUS" else kind)
                target[name][k] = v
    method = fields.pop("method")
    told = [parts[i][1].origin for i in np.unique(part[part >= 0])]
    worst = max((float(o["quadrature_error"]) for o in told if "quadrature_error" in o), default=None)
    return Solution(
        values,
        method=method[0] if len(set(method.tolist())) == 1 else method,
        unknowns=tuple(names),
        notes=tuple(dict.fromkeys(n for _, s in parts for n in s.notes)),
        origin={**(parts[-1][1].origin if origin is None else origin), **({} if worst is None else {"quadrature_error": worst})},
        **fields,
    )


def select_points(s: Solution, k: Array) -> Solution:
    """The points k of a batch."""
    fields = {f: v[k] if np.ndim(v := getattr(s, f)) else v for f in _ARRAYS}
    return replace(s, value={n: np.asarray(v)[k] for n, v in s.value.items()}, **fields)
