"""How well the equations hold at a state: the residual that decides, of all of them at once, undamped.

    |x - rhs|/T,  T the sum of the |terms| of rhs;   of an implicit or a linear equation |F|/T,  T that or the sum of |dF/dv| |v|
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hermitex.systems.compiled_system import BlockCode, State
from hermitex.systems.newton_step import FLOOR, OF_TERMS, SMALL


def residual_of(run: Any, verdict: State) -> np.ndarray:
    """The largest of all equations at each point.

    run : a `Run` where it ended, whose right-hand sides are `verdict`
    """
    unknowns = [(k, block, u) for k, block in enumerate(run.program.blocks) for u in block.unknowns]
    if not unknowns:
        return np.zeros(run.points)
    value = np.stack([run.row(verdict[f"rhs/{u}"]) for _, _, u in unknowns])
    x = np.stack([run.row(run.s[u]) for _, _, u in unknowns])
    gap = np.abs(x - value)
    terms = np.stack([run.row(verdict.get(f"terms/{u}", 0.0)) for _, _, u in unknowns])
    size = np.fmax(np.maximum(np.abs(x), terms), np.where(np.abs(x) <= gap, FLOOR, SMALL))
    # an unknown that vanishes but for rounding counts as FLOOR
    for i, (k, block, u) in enumerate(unknowns):
        if u in run.program.implicit:
            gap[i] = np.abs(value[i])
        if u in run.program.implicit or block.kind == "linear":
            size[i] = _size_of_terms(run, k, block, u)
    return np.max(np.where(gap == 0, 0.0, np.nan_to_num(gap/size, nan=np.inf)), axis=0)


def _size_of_terms(run: Any, k: int, block: BlockCode, u: str) -> np.ndarray:
    """Of an implicit equation: the sum of its |terms|, or of |dF/dv| |v|, an unknown near 0 counting as one of FLOOR.

    A row of a linear block that is rounding of the others says nothing: it counts as one of their size.
    """
    size = _own_size(run, k, block, u)
    if block.kind != "linear":
        return size
    largest = np.max([_own_size(run, k, block, v) for v in block.unknowns], axis=0)
    return np.where(size <= OF_TERMS*largest, largest, size)


def _own_size(run: Any, k: int, block: BlockCode, u: str) -> np.ndarray:
    out: Mapping[str, Any] = run.outputs[k]
    total = np.zeros(run.points)
    for v in block.unknowns:
        slope = np.abs(run.row(out.get(f"matrix/{u}/{v}", out.get(f"d/{u}/{v}", 0.0))))
        total = total + slope*(np.abs(run.row(run.s[v])) + FLOOR)
    terms = np.abs(run.row(out.get(f"terms/{u}", out.get(f"constant/{u}", 0.0))))
    return np.fmax(terms, total)  # where the slope is inf 0, as of tanh(x/T) at T = 0, its terms are known
