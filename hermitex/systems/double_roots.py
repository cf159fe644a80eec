"""How far a solution is undetermined where its equations hold to rounding beside it, too: at a double root, or nearly one."""

from __future__ import annotations

from copy import copy
from functools import cache
from typing import Any

import numpy as np

from hermitex.solvers.linear import rounding_spread
from hermitex.solvers.root_precision import undetermined_extent
from hermitex.systems.compiled_system import BlockCode, State
from hermitex.systems.newton_step import SMALL, chain_of, matrix_of

_OF_EQUATION = 2.3e-16  # of its terms: what rounding may be of an equation


def undetermined_parts(run: Any, ok: np.ndarray, verdict: State, gaps: State) -> tuple[np.ndarray, np.ndarray]:
    """Of each point, relative, how far unknowns and observables are undetermined; 0 where slopes tell it, and where not `ok`.

    Apart from it, how far those of linear blocks are that move no observable: of nearly collinear letters the sum alone counts.

    run : a `Run` at its solution, whose right-hand sides are `verdict`
    gaps : what rounding leaves of the formulas whose terms cancel
    """
    @cache
    def here() -> Any:
        """The same with the tables of the nodes in force, which were refined last."""
        other = copy(run)
        other.s = dict(run.s)
        other.into(other.s, other.s, ("tables",), None)
        return other

    def walked(k: int, block: BlockCode, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        J = chain_of(block, run.outputs[k], x)[1]
        positive = np.array(block.positive)[:, None]
        size = np.where(x == 0, 0.0, np.maximum(np.abs(x), np.where(positive, 0.0, SMALL)))
        r = _rounding(run, k, x, J, size, verdict, gaps)

        def equations(y: np.ndarray, points: np.ndarray) -> np.ndarray:
            some = here().part(points)
            some.s |= {u: some.column(v) for u, v in zip(block.torn, y, strict=True)}
            return chain_of(block, some.called(f"block_{k + 1}"), y)[0]

        d = np.zeros(x.shape)
        d[:, ok] = undetermined_extent(equations, x[:, ok], J[..., ok], r[:, ok], size[:, ok], run.tolerance)
        # x = x + (1 - x^2)/10^17: a row without a slope, which holds to rounding as far as one walks, determines nothing
        itself = np.array(block.explicit)[:, None] & (size > 0) & (size == np.abs(x))
        idle = itself & (np.abs(J)*size <= 4*_OF_EQUATION*size[:, None]).all(axis=1)
        return d, ok & idle.any(axis=0) & (d == 0).all(axis=0)

    worst, aside = np.zeros((2, run.points))
    for k, block in enumerate(run.program.blocks):
        if block.kind == "explicit" or not ok.any():
            continue
        linear = block.kind == "linear"
        names = block.unknowns if linear else block.torn
        x = np.stack([run.row(run.s[u]) for u in names])
        if linear:
            d = rounding_spread(*matrix_of(block, run.outputs[k], run.points), x)
            far = np.abs(d)
            of_zero = (np.abs(x) <= far) & (far <= run.tolerance)  # 0 but for rounding: it counts as one of size 1
            d = np.where(ok & np.any(~of_zero & (far > 10*run.tolerance*np.maximum(np.abs(x), SMALL)), axis=0), d, 0.0)
        else:
            d, idle = walked(k, block, x)
            worst[idle] = 1.0
        which = np.flatnonzero(np.any(d != 0, axis=0))
        if which.size:
            some, beside = here().part(which, outputs=True), here().part(which)
            put = dict(zip(names, x[:, which] + d[:, which], strict=True))
            if not linear:
                beside.s |= {u: beside.column(v) for u, v in put.items()}
                out = beside.called(f"block_{k + 1}")
                put |= {m: beside.row(out[m]) for m in block.members}
            s, seen = some.stepped({k: put})
            moved = some.how_far({u: some.row(some.s[u]) for u in s}, s)
            if linear and run.program.observables:
                worst[which], aside[which] = np.maximum(worst[which], seen), np.maximum(aside[which], moved)
            else:
                worst[which] = np.max([worst[which], moved, *([seen] if run.program.observables else [])], axis=0)
    return worst, aside


def _rounding(run: Any, k: int, x: np.ndarray, J: np.ndarray, size: np.ndarray, verdict: State, gaps: State) -> np.ndarray:
    """What rounding, and what quadrature leaves, may be of each equation of block k, shape (torn, points)."""
    block, out = run.program.blocks[k], run.outputs[k]
    names, explicit = [f"rhs/{u}" for u in block.torn], np.array(block.explicit)[:, None]
    there = np.stack([run.row(verdict[n]) for n in names])
    on_nodes = np.fmin(run.row(run.quad.reached("verified")), run.asked)  # what is worse is said of the quadrature
    terms = np.stack([run.row(out.get(f"terms/{u}", 0.0)) for u in block.torn])
    for i, u in enumerate(block.torn):
        terms[i] += sum(np.abs(run.row(out.get(f"d/{u}/{m}", 0.0))*run.row(run.s[m])) for m in block.members)
    terms = np.where(explicit, np.abs(x) + np.abs(there), 0.0) + terms
    terms = np.maximum(terms, np.einsum("ijb,jb->ib", np.abs(J), size))
    r = np.maximum((_OF_EQUATION + on_nodes)*terms, np.stack([gaps.get(n, 0*terms[0]) for n in names]))
    return np.maximum(r, 2*np.abs(np.where(explicit, x - there, there)))
