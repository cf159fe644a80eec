"""How far a solution moves when what cancels in its formulas is off by what rounding leaves of it.

    J dx = F' - F,   F' the equations with each sum that cancels off by a part of the sum of its |terms|, block after block
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hermitex.kernels.rounding import GOLDEN, OFF
from hermitex.systems.newton_step import FLOOR, SMALL, newton_moved_state

_EPS = float(np.finfo(float).eps)
_ROUNDED = _EPS/OFF  # of how far they are moved: what rounding may be of the terms, one to two units in the last place


def cancellation_losses(run: Any, verdict: dict[str, Any], radius: np.ndarray, ok: np.ndarray
           ) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Of each point what part of a right-hand side, of the solution, and of an average however small, rounding may be.

    And what it may be of each formula.

    run : a `Run` at its solution, whose right-hand sides and observables are `verdict`
    radius : of the map there; what it feeds back grows by 1/|1 - radius|, about
    ok : the points that are solved; of the others, where they stand and where the map leads from there, the worse
    """
    program, row = run.program, run.row
    here = {n: row(v) for n, v in verdict.items()}

    def shifts(s: dict[str, Any], here: dict[str, Any]) -> dict[str, Any]:
        """How far the formulas are off by rounding; where that overflows and they do not, it says nothing of them."""
        found = {n: row(v) for n, v in run.ask("rounded", perturb_state(s, program.unknowns), run.used).items()}
        return {n: np.where(np.isfinite(v), v, here[n]) - here[n] for n, v in found.items()}

    shift = shifts(run.s, here)
    gaps = {n: np.abs(v)*_ROUNDED for n, v in shift.items()}
    if not ok.all():
        s = {**run.s, **{u: run.column(np.where(ok, row(run.s[u]), here[f"rhs/{u}"]))
                         for u in program.unknowns if u not in program.implicit}}
        there = {n: row(v) for name in ("right_hand_sides", "observables") for n, v in run.ask(name, s, run.used).items()}
        gaps = {n: np.fmax(gaps[n], np.abs(v)*_ROUNDED) for n, v in shifts(s, there).items()}
    blocks = {u: k for k, b in enumerate(program.blocks) for u in b.unknowns}
    unknowns, kinds = program.unknowns, np.array([program.blocks[blocks[u]].kind for u in program.unknowns])[:, None]
    state, positive = np.stack([row(run.s[u]) for u in unknowns]), np.array([u in program.positive for u in unknowns])[:, None]
    stable = 0.5  # a radius at which what is 0 at the end of its range is led back there
    at_end = (state == 0) & (np.abs(radius) < stable) & (kinds != "explicit") & positive

    def part(gap: np.ndarray) -> np.ndarray:
        return np.where(at_end, 0.0, _error_part(state, gap, kinds, positive))  # what it does to others counts there

    seen = [gaps[o]/np.maximum(np.abs(here[o]), FLOOR) for o in program.observables]
    direct = np.stack([gaps[f"rhs/{u}"]/(_slope(run, u, blocks[u]) if u in program.implicit else 1.0) for u in unknowns])
    own = _worst_parts([*np.where(kinds == "explicit", _rounding_part(state, direct), 0.0)], run.points)
    first = _worst_parts([*part(direct), *seen], run.points)
    s, last = displace_state(run, shift, here)
    moves = part(np.abs(np.stack([row(s[u]) for u in unknowns]) - state)*_ROUNDED)
    # of linear equations that are nearly one, the unknowns hold fewer digits than what is made of them
    parts = list(np.where(kinds == "linear", 0.0, moves) if program.observables else moves)
    parts += [np.abs(last[o] - here[o])*_ROUNDED/np.maximum(np.abs(here[o]), FLOOR) for o in program.observables]
    return first, _worst_parts(parts, run.points), own, gaps


def perturb_state(s: Mapping[str, Any], unknowns: Sequence[str], part: float = 1.0) -> dict[str, Any]:
    """A state with its unknowns off as sums are, or by a part of that: what they feed is moved, too, each by another one."""
    return {**s, **{u: s[u]*(1 + (1 + k*GOLDEN % 1)*OFF*part) for k, u in enumerate(unknowns)}}


def displace_state(run: Any, shift: Mapping[str, np.ndarray], here: Mapping[str, np.ndarray],
              inverse: Mapping[int, np.ndarray] | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
    """The state where every formula is off by its `shift`, block after block, and the observables there.

    here : what they are at the solution;  inverse : as in `newton_moved_state`
    """
    program, row = run.program, run.row

    def call(name: str, s: dict[str, Any]) -> dict[str, Any]:
        k = int(name.removeprefix("block_")) - 1
        block = program.blocks[k]
        out = dict(run.outputs[k] if k == 0 and k in run.outputs else run.ask(name, s, run.used))  # before the first nothing moves
        for u in block.unknowns:
            change = shift[f"rhs/{u}"]
            label = f"constant/{u}" if block.kind == "linear" else u if u in block.members else f"rhs/{u}"
            out[label] = row(out[label]) + (-change if block.kind == "linear" and u not in program.implicit else change)
        return out

    before = {k: {**out, **{f"rhs/{u}": here[f"rhs/{u}"] for u in program.blocks[k].unknowns}} for k, out in run.outputs.items()}
    s = newton_moved_state(program.blocks, call, run.s, before, run.points, noise=False, inverse=inverse)
    last = run.ask("observables", s, run.used) if program.observables else {}
    return s, {o: row(last[o]) + shift[o] for o in program.observables}


def _rounding_part(x: np.ndarray, gap: np.ndarray) -> np.ndarray:
    """What part of a number rounding may be, however small that is; what has no digit is 0, as far as one can tell."""
    return np.where(gap < np.abs(x), gap/np.maximum(np.abs(x), 1e-300), np.where(x == 0, 0.0, gap/SMALL))


def _error_part(x: np.ndarray, gap: np.ndarray, kinds: np.ndarray, positive: np.ndarray) -> np.ndarray:
    """What part of an unknown an error of it is: of a positive one that nothing feeds back into, however small that is.

    What vanishes but for rounding needs an absolute accuracy; one that feeds back, below its transition, is the more amplified
    the nearer that is: it counts as an observable.
    """
    least = np.where((kinds == "explicit") | (kinds == "linear"), 1.0, FLOOR)
    floor = np.where((x == 0) | (np.abs(x) <= gap), least, SMALL)
    floor = np.where((kinds == "explicit") & positive, np.where(x == 0, SMALL, 1e-300), floor)
    return np.asarray(gap/np.maximum(np.abs(x), floor))


def _slope(run: Any, u: str, k: int) -> np.ndarray:
    """By what a gap in the implicit equation of u is divided to move it."""
    out = run.outputs[k]
    return np.abs(run.row(out.get(f"matrix/{u}/{u}", out.get(f"d/{u}/{u}", 0.0))))


def _worst_parts(parts: list[np.ndarray], points: int) -> np.ndarray:
    return np.nan_to_num(np.max([np.zeros(points), *parts], axis=0), nan=np.inf)


__all__ = ["cancellation_losses", "displace_state", "perturb_state"]
