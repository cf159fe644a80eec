"""How well the equations hold at a state: the residual that decides, of all of them at once, undamped.

    |x - rhs|/|x|;   of an implicit equation |F|/T,  T the sum of its |terms| or of |dF/dv| |v|
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hermitex.solvers.root_verdict import AROUND, BESIDE, STEEPEST, steepest_change
from hermitex.systems.compiled_system import BlockCode, State
from hermitex.systems.newton_step import OF_TERMS, SMALL


def residual_of(run: Any, verdict: State) -> np.ndarray:
    """The largest of all equations at each point, less what rounding explains.

    run : a `Run` where it ended, whose right-hand sides are `verdict`
    """
    unknowns = [(k, block, u) for k, block in enumerate(run.program.blocks) for u in block.unknowns]
    if not unknowns:
        return np.zeros(run.points)
    value = np.stack([run.row(verdict[f"rhs/{u}"]) for _, _, u in unknowns])
    x = np.stack([run.row(run.s[u]) for _, _, u in unknowns])
    size, gap = np.maximum(np.abs(x), SMALL), np.abs(x - value)
    excused = 1e-3  # of an unknown: more is not excused as rounding
    for i, (k, block, u) in enumerate(unknowns):
        if u in run.program.implicit:
            gap[i] = np.abs(value[i])
            size[i] = _size_of_terms(run, k, block, u, gap[i])
        if u in run.rounding:
            gap[i] = np.maximum(gap[i] - np.minimum(run.rounding[u], excused*size[i]), 0.0)
    return np.max(np.where(gap == 0, 0.0, np.nan_to_num(gap/size, nan=np.inf)), axis=0)


def _size_of_terms(run: Any, k: int, block: BlockCode, u: str, gap: np.ndarray) -> np.ndarray:
    """Of an implicit equation: the sum of its |terms|, or of |dF/dv| |v|, an unknown near 0 counting as one of 1e-3.

    The least that it can be where a `gap` is small even beside that.
    A row of a linear block that is rounding of the others says nothing: it counts as one of their size.
    """
    size = _own_size(run, k, block, u, gap)
    if block.kind != "linear":
        return size
    largest = np.max([_own_size(run, k, block, v, gap) for v in block.unknowns], axis=0)
    return np.where(size <= OF_TERMS*largest, largest, size)


def _own_size(run: Any, k: int, block: BlockCode, u: str, gap: np.ndarray) -> np.ndarray:
    out: Mapping[str, Any] = run.outputs[k]
    total, near = np.zeros(run.points), np.zeros(run.points)
    for v in block.unknowns:
        slope = np.abs(run.row(out.get(f"matrix/{u}/{v}", out.get(f"d/{u}/{v}", 0.0))))
        total = total + slope*(np.abs(run.row(run.s[v])) + AROUND)
        near = near + slope*AROUND
    terms = np.abs(run.row(out.get(f"terms/{u}", out.get(f"constant/{u}", 0.0))))
    if f"terms/{u}" in out and np.any(steep := total > STEEPEST*terms + near):  # cos(x) where it is 0: its terms are, too
        least = steep & (gap <= run.tolerance*near)
        if np.any(steep & ~least):
            sides = [_terms(run, k, block, u, 1 + part) for part in (-BESIDE, BESIDE)]
            total = np.minimum(total, steepest_change(terms, *sides) + near)  # far out it moves by all within the rounding of x
        total = np.where(least, near, total)
    return np.fmax(terms, total)  # where the slope is inf 0, as of tanh(x/T) at T = 0, its terms are known


def _terms(run: Any, k: int, block: BlockCode, u: str, part: float) -> np.ndarray:
    """Those of an equation with all unknowns of its block at that part of theirs."""
    with np.errstate(all="ignore"):
        s = {n: v*part if n in block.torn else v for n, v in run.s.items()}
        terms: np.ndarray = run.row(run.ask(f"block_{k + 1}", s, run.used)[f"terms/{u}"])
        return terms
