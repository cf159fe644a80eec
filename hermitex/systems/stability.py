"""The spectral radius of the map x -> rhs(x) at a solution: below 1 iteration of the equations ends there, above 1 it runs away.

    rho(D),   D_uv = d rhs_u/d v   over all unknowns;   D is block triangular, so rho is the largest of those of the blocks

D is read off the block functions. If an unknown is 0 and D is 0/0 (of sqrt(q) at q = 0), rho is the limit from
above; an implicit equation is not a map, and then rho is not defined.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from hermitex.errors import BadInput
from hermitex.solvers.linear import largest_radius, spectral_radius


def stability(blocks: Sequence[Any], outputs: Mapping[int, Mapping[str, Any]], points: int,
              beside: Callable[[int, float], Mapping[str, Any]]) -> tuple[np.ndarray, tuple[str, ...]]:
    """The spectral radius at every point, and what the reader should know of it.

    Parameters
    ----------
    blocks : those of the program (`BlockCode`)
    outputs : {k: what the function of block k returned at the solution}, of every block that is not explicit
    beside : (k, size) -> the block at its neighbour, with the unknowns that are 0 moved to `size`
    """
    implicit = [u for b in blocks for u, explicit in zip(b.torn, b.explicit, strict=True) if not explicit]
    if implicit:
        named = f"{', '.join(implicit[:3])}{', ...' if len(implicit) > 3 else ''}"
        verb = "are" if len(implicit) > 1 else "is"
        return np.full(points, np.nan), (f"stability: the equation{'s' if len(implicit) > 1 else ''} of {named} {verb} implicit, "
                                         "so there is no map to iterate",)
    rho, found = np.zeros(points), {k: block_slopes(blocks[k], out, points) for k, out in outputs.items()}
    most = {k: largest_radius(D) if len(found) > 1 else np.full(points, np.inf) for k, D in found.items()}
    distances = (1e-6, 1e-8, 1e-10, 1e-12, 1e-16, 1e-20)  # from 0, at which the limit is read off
    for k in sorted(found, key=lambda k: -np.sum(most[k])):  # eigenvalues cost far more than bounds of them
        asked = np.flatnonzero(~(most[k] <= rho))
        own = spectral_radius(found[k][..., asked])
        if not np.isfinite(own).all():
            own = np.where(np.isfinite(own), own,
                           _limit_of_radii([spectral_radius(block_slopes(blocks[k], beside(k, size), points))[asked]
                                                          for size in distances]))
        rho[asked] = np.maximum(rho[asked], own)
    return rho, ()


def block_slopes(block: Any, out: Mapping[str, Any], points: int) -> np.ndarray:
    """d rhs_u/d v over the unknowns of a block, (n, n, points)."""
    n = len(block.unknowns)
    D = np.zeros((n, n, points))
    linear = block.kind == "linear"  # x - rhs = A x + b
    for i, u in enumerate(block.unknowns):
        for j, v in enumerate(block.unknowns):
            found = out.get(f"{'matrix' if linear else 'd'}/{u}/{v}")
            if found is not None:
                row = np.asarray(found, dtype=float).reshape(-1)
                if row.size not in (1, points):
                    raise BadInput(f"System: the derivative of the equation of {u} by {v} does not have one value a point")
                D[i, j] = row
    return np.eye(n)[:, :, None] - D if linear else D


def _limit_of_radii(values: Sequence[np.ndarray]) -> np.ndarray:
    """Of radii ever nearer to 0: where two of them agree, infinity where they grow, else NaN."""
    limit = np.full(values[0].shape, np.nan)
    floor = 1e-2  # a radius below that is near 0
    agree = 1e-3  # two of them that agree to this give the limit
    for a, b in pairwise(values):
        settled = np.isnan(limit) & (np.abs(a - b) <= agree*np.maximum(np.abs(b), floor))
        limit = np.where(settled, b, limit)
    growth = 1.5  # from one to the next by more than this at each: infinite
    grows = np.all([b >= growth*a for a, b in pairwise(values)], axis=0)
    return np.where(np.isnan(limit) & grows, np.inf, limit)
