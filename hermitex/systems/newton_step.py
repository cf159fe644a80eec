"""The rows of a block as numbers, out of what its generated function returns.

    A x = b  of a linear block;   F,  dF/dx  of the torn unknowns of another one, its members eliminated by the chain rule
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from hermitex.errors import BadInput
from hermitex.systems.compiled_system import BlockCode, as_point_vector

_EPS = float(np.finfo(float).eps)
OF_TERMS = 64*_EPS  # what rounding may leave of the terms of a linear row
SMALL = 1e-6  # an unknown, or a start, of that size or less counts as one of that size where a relative change is meant
FLOOR = 1e-3  # an observable, and an average in it, is measured against its size or this, whichever is larger


def matrix_of(block: BlockCode, out: Mapping[str, Any], points: int) -> tuple[np.ndarray, np.ndarray]:
    """A and b of a linear block."""
    n = len(block.unknowns)
    A, b = np.empty((n, n, points)), np.empty((n, points))
    for at, labels in zip((A.reshape(-1, points), b), _entries(block), strict=True):
        for entry, label in zip(at, labels, strict=True):
            value = out[label]
            entry[:] = value.reshape(-1) if isinstance(value, np.ndarray) else value
    return A, np.negative(b, out=b)


@lru_cache(maxsize=256)
def _entries(block: BlockCode) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the matrix, row by row, and of the constants."""
    return (tuple(f"matrix/{u}/{v}" for u in block.unknowns for v in block.unknowns),
            tuple(f"constant/{u}" for u in block.unknowns))


def chain_of(block: BlockCode, out: Mapping[str, Any], x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Residual and Jacobian of the torn unknowns, the members eliminated by the chain rule."""
    n, points = x.shape
    rows = _slopes(block, out, points)
    F, J = np.empty((n, points)), np.empty((n, n, points))
    for i, (u, explicit) in enumerate(zip(block.torn, block.explicit, strict=True)):
        rhs = _flat(out[f"rhs/{u}"], u, points)
        if explicit:
            np.subtract(x[i], rhs, out=F[i])
            np.negative(rows[u], out=J[i])
            J[i, i] += 1.0
        else:
            F[i], J[i] = rhs, rows[u]
    return F, J


def _slopes(block: BlockCode, out: Mapping[str, Any], points: int) -> dict[str, np.ndarray]:
    """{u: du/d torn unknown, in total} of the members, in their order, and of the torn unknowns: (torn unknowns, points)."""
    found = {u: np.zeros((len(block.torn), points)) for u in (*block.members, *block.torn)}
    for label, u, v, place in _slopes_in(block, tuple(out)):
        slope = _flat(out[label], u, points)
        if place is None:
            found[u] += slope*found[v]
        else:
            found[u][place] += slope
    return found


@lru_cache(maxsize=256)
def _slopes_in(block: BlockCode, labels: tuple[str, ...]) -> tuple[tuple[str, str, str, int | None], ...]:
    """(label, u, v, the place of v among the torn unknowns) of the d/u/v that a block function returns, member by member."""
    order = {u: k for k, u in enumerate((*block.members, *block.torn))}
    place = {v: j for j, v in enumerate(block.torn)}
    rows = [(label, u, v) for label in labels if label.startswith("d/") for _, u, v in [label.split("/")]]
    return tuple((label, u, v, place.get(v)) for label, u, v in sorted(rows, key=lambda row: order[row[1]]))


def _flat(value: Any, u: str, points: int) -> np.ndarray:
    if isinstance(value, np.ndarray) and value.size == points:
        return value.reshape(-1)
    if np.size(value) != 1:
        raise BadInput(f"System: an average in the equation of {u} has a break point that moves with another variable of the "
                       "average in a way that is not resolved; write the switch so that one of its variables enters linearly")
    return as_point_vector(value, points)

