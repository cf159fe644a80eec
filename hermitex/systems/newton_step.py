"""The rows of a block as numbers, and how far a solution moves when its averages are taken on other nodes.

    J dx = -(F' - F),   F' the equations on the other nodes, block after block, each with what was solved before it moved

An average that is good to 1e-9 may leave a solution that is good to 1e-4, where a difference of averages or a pole is
taken of it: the error of the solution is how far it moves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from hermitex.errors import BadInput
from hermitex.kernels.axis_records import contracted
from hermitex.solvers.linear import solve
from hermitex.systems.compiled_system import BlockCode, State, as_point_vector

_EPS = float(np.finfo(float).eps)
OF_TERMS = 64*_EPS  # what rounding may leave of the terms of a linear row
SMALL = 1e-6  # an unknown of that size or less counts as one of that size in the relative residual
FLOOR = 1e-3  # an observable, and an average in it, is measured against its size or this, whichever is larger
OF_AVERAGE = 8*_EPS  # and of E|F| in E(F)
_ROUNDED = 4*_EPS  # of the terms of a row: no more is known of it on any nodes


def newton_moved_state(blocks: Sequence[BlockCode], call: Callable[[str, State], State], s: State, outputs: Mapping[int, State],
                       points: int,
          held: Mapping[int, State] | None = None, there: State | None = None, noise: bool = True,
          inverse: Mapping[int, np.ndarray] | None = None) -> State:
    """The state `s` after one step of Newton's method of every block in order, as `call(name, s)` has them.

    outputs : of the block functions at the solution, on the nodes on which it was found
    held : where some blocks are put in place of their step
    there : the right-hand sides that `call` would have at `s`, if they are known: the first block needs no more, but for slopes
    noise : what rounding may leave of an equation does not count; where it was moved on purpose, all of it does
    inverse : {k: that of the slopes of block k at the solution, (points, n, n) over all its unknowns}, which then are not asked for
    """
    s = dict(s)
    for k, block in enumerate(blocks):
        if k == 0 and there is not None and block.kind == "nonlinear":
            out = {**outputs[k], **{m: there[f"rhs/{m}"] for m in block.members}, **there}
        else:
            out = {} if held and k in held else call(f"block_{k + 1}", s)
        if held and k in held:
            values = dict(held[k])
        elif block.kind == "explicit":
            values = {u: as_point_vector(out[f"rhs/{u}"], points)*(1 + _ROUNDED) for u in block.unknowns}  # no more of it is known
        else:
            known = None if inverse is None else inverse[k]
            values = (_linear if block.kind == "linear" else _nonlinear)(block, out, outputs[k], s, points, noise, known)
        for u, v in values.items():
            s[u] = v.reshape(np.shape(s[u])) if np.size(s[u]) == points else v
    return s


def _linear(block: BlockCode, out: State, before: State, s: State, points: int, noise: bool, inverse: np.ndarray | None) -> State:
    A, b = matrix_of(block, out, points)
    x = np.stack([as_point_vector(s[u], points) for u in block.unknowns])
    place = {u: i for i, u in enumerate(block.unknowns)}
    left = rounding_of_rows(A, b, x, [place[u] for u in block.members]) if noise else 0.0
    d = _newton_displacement(b - np.einsum("ijb,jb->ib", A, x), left, A if inverse is None else inverse, inverse is not None)
    return dict(zip(block.unknowns, x + d, strict=True))


def _nonlinear(block: BlockCode, out: State, before: State, s: State, points: int, noise: bool, inverse: np.ndarray | None
               ) -> State:
    x = np.stack([as_point_vector(s[u], points) for u in block.torn])
    slopes = slopes_of(block, out, points)
    change, left = np.empty(x.shape), np.zeros(x.shape)
    for i, (u, explicit) in enumerate(zip(block.torn, block.explicit, strict=True)):
        new, old = (as_point_vector(o[f"rhs/{u}"], points) for o in (out, before))  # x - rhs would lose an rhs far below x
        change[i] = new - old if explicit else old - new
        if noise:
            left[i] = _ROUNDED*(np.abs(old) if explicit else np.abs(as_point_vector(before[f"terms/{u}"], points)))
    if inverse is None:
        d = _newton_displacement(change, left, chain_of(block, out, x, slopes)[1])
    else:
        torn = [block.unknowns.index(u) for u in block.torn]
        d = _newton_displacement(change, left, inverse[:, torn][:, :, torn], True)  # that of J, which is the Schur complement
    members = {m: as_point_vector(out[m], points) + sum(a*b for a, b in zip(slopes[m], d, strict=True)) for m in block.members}
    return {**dict(zip(block.torn, x + d, strict=True)), **members}


def _newton_displacement(change: np.ndarray, noise: np.ndarray | float, J: np.ndarray, inverted: bool = False) -> np.ndarray:
    """d with J d = what of the change is not rounding; the change itself where J is not finite, as beside a root of 0.

    inverted : J^-1 is given, (points, n, n), in place of J, (n, n, points)
    """
    change = np.sign(change)*np.maximum(np.abs(change) - noise, 0.0)
    if not change.any():
        return change
    d = np.einsum("bij,jb->ib", J, change) if inverted else solve(J, change)[0]
    return np.where(np.isfinite(d), d, change)


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


def rounding_of_rows(A: np.ndarray, b: np.ndarray, x: np.ndarray, members: Sequence[int]) -> np.ndarray:
    """What rounding alone leaves in each row of A x = b: of its terms, a member counting with the terms whose sum it is."""
    size = np.abs(x)
    for k in members:
        size[k] = np.abs(b[k]) + np.einsum("jb,jb->b", np.abs(A[k]), np.abs(x))
    return OF_TERMS*(np.abs(b) + np.einsum("ijb,jb->ib", np.abs(A), size))


def rounding_of_averages(run: Callable[[Callable], State]) -> State:
    """How far each number that `run(average)` returns moves as its averages, one by one, move by what rounding leaves of them."""
    def moving(which: int) -> tuple[State, int]:
        taken = 0

        def average(values: Any, weights: np.ndarray, axis: int, table: Any = None) -> np.ndarray:
            nonlocal taken
            taken += 1
            plain = contracted(values, weights, axis, table)
            if taken != which:
                return plain
            return plain + OF_AVERAGE*contracted(np.abs(values), weights, axis, None if table is None else np.abs(table))

        return run(average), taken

    before, averages = moving(0)
    total = {n: np.zeros(np.shape(v)) for n, v in before.items()}
    for k in range(1, averages + 1):
        for n, v in moving(k)[0].items():
            total[n] = total[n] + np.abs(v - before[n])
    return total


def chain_of(block: BlockCode, out: Mapping[str, Any], x: np.ndarray, rows: Mapping[str, np.ndarray] | None = None
             ) -> tuple[np.ndarray, np.ndarray]:
    """Residual and Jacobian of the torn unknowns, the members eliminated by the chain rule; `rows`: what `slopes_of` gives."""
    n, points = x.shape
    rows = rows or slopes_of(block, out, points)
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


def slopes_of(block: BlockCode, out: Mapping[str, Any], points: int) -> dict[str, np.ndarray]:
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

