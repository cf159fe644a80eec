"""How far a solution moves when its closed forms are off by what rounding leaves of them.

    J dx = F' - F,   F' the equations with each closed form off by a part of the sum of its |terms|, block after block
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hermitex.kernels.rounding import OFF
from hermitex.systems.moves import moved

_EPS = float(np.finfo(float).eps)
_ROUNDED = _EPS/OFF  # of how far they are moved: what rounding may be of the terms, one to two units in the last place
_PART, _FEEDS_BACK = 0.1, 1e-4  # of the tolerance that rounding may be of a right-hand side before the unknowns are asked
_SMALL, _FLOOR = 1e-6, 1e-3  # what an unknown, and an observable, is measured against if it is smaller


def losses(run: Any, verdict: dict[str, Any], radius: np.ndarray, ok: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each point what part of a right-hand side, of the solution, and of an average however small, rounding may be.

    run : a `Run` at its solution, whose right-hand sides and observables are `verdict`
    radius : of the map there; what it feeds back grows by 1/|1 - radius|, about
    ok : the points that are solved; of the others, where they stand and where the map leads from there, the worse
    """
    program, row = run.program, run._row
    here = {n: row(v) for n, v in verdict.items()}

    def shaken(s: dict[str, Any], here: dict[str, Any] = here) -> dict[str, Any]:
        """The formulas off by rounding; where that overflows and they do not, it says nothing of them."""
        found = {n: row(v) for n, v in program.call("rounded", s, run.used).items()}
        return {n: np.where(np.isfinite(v), v, here[n]) for n, v in found.items()}

    gaps = {n: np.abs(v - here[n])*_ROUNDED for n, v in shaken(run.s).items()}
    if not ok.all():
        s = {**run.s, **{u: run._column(np.where(ok, row(run.s[u]), here[f"rhs/{u}"]))
                         for u in program.unknowns if u not in program.implicit}}
        there = {n: row(v) for name in ("right_hand_sides", "observables") for n, v in program.call(name, s, run.used).items()}
        gaps = {n: np.fmax(gaps[n], np.abs(v - there[n])*_ROUNDED) for n, v in shaken(s, there).items()}
    state = {u: row(run.s[u]) for u in program.unknowns}
    seen = [gaps[o]/np.maximum(np.abs(here[o]), _FLOOR) for o in program.observables]
    alone = [u for block in program.blocks if block.kind == "explicit" for u in block.unknowns]
    tiny = [gaps[f"rhs/{u}"]/np.maximum(np.abs(state[u]), 1e-300) for u in alone]
    own = _worst([np.where(part < 1, part, 0.0) for part in tiny], run.points)  # what has no digit is 0, as far as one can tell
    first = _worst([*(gaps[f"rhs/{u}"]/_size(run, u, state[u]) for u in program.unknowns), *seen], run.points)
    if not np.any(first > _PART*run.tolerance*np.clip(np.nan_to_num(np.abs(1 - radius), nan=1.0), _FEEDS_BACK, 1.0)):
        return first, np.zeros(run.points), own

    def call(name: str, s: dict[str, Any]) -> dict[str, Any]:
        k = int(name.removeprefix("block_")) - 1
        block, out, new = program.blocks[k], dict(run.outputs.get(k, {})), shaken(s)
        for u in block.unknowns:
            label = f"rhs/{u}"
            if block.kind == "linear":
                change = new[label] - here[label]
                out[f"constant/{u}"] = row(out[f"constant/{u}"]) + (change if u in program.implicit else -change)
            elif u in block.members:
                out[u] = new[label]
            else:
                out[label] = new[label]
        return out

    before = {k: {**out, **{f"rhs/{u}": here[f"rhs/{u}"] for u in program.blocks[k].unknowns}} for k, out in run.outputs.items()}
    s = moved(program.blocks, call, run.s, before, run.points)
    last = shaken(s) if program.observables else {}
    parts = [np.abs(row(s[u]) - state[u])*_ROUNDED/_size(run, u, state[u]) for u in program.unknowns]
    parts += [np.abs(last[o] - here[o])*_ROUNDED/np.maximum(np.abs(here[o]), _FLOOR) for o in program.observables]
    return first, _worst(parts, run.points), own


def _size(run: Any, u: str, x: np.ndarray) -> np.ndarray:
    """What an error of an unknown is measured against: a positive one that nothing feeds back into against itself.

    One that is 0 and feeds back, below its transition, is the more amplified the nearer that is: it counts as an observable.
    """
    if any(u in block.unknowns for block in run.program.blocks if block.kind == "explicit"):
        return np.maximum(np.abs(x), np.where(x == 0, _SMALL, 0.0) if u in run.program.positive else _SMALL)
    return np.maximum(np.abs(x), np.where(x == 0, _FLOOR, _SMALL))


def _worst(parts: list[np.ndarray], points: int) -> np.ndarray:
    return np.nan_to_num(np.max([np.zeros(points), *parts], axis=0), nan=np.inf)


__all__ = ["losses"]
