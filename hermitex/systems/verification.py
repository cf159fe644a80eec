"""One look that most solutions pass: on other nodes, with all sums off by far more than rounding, nothing moves.

    |x' - x| <= tolerance |x|,   F'(x') = 0;    |M^-1| T eps <= tolerance |x|,   M = dF/dx of each block, T the |terms| of F

What passes is held by its averages, its formulas and its slopes at once; of what does not, each is asked by itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hermitex.systems.cancelled import displace_state, perturb_state
from hermitex.systems.compiled_system import BlockCode, State
from hermitex.systems.newton_step import FLOOR, SMALL, matrix_of
from hermitex.systems.stability import block_slopes

_FAINT = 2.0**-8  # of how far sums are off where cancellation is looked for: 16 roundings leave room for what the nodes do


def glance(run: Any, verdict: State) -> np.ndarray | None:
    """How far each point moves, relative, if that is within the tolerance at all of them; else None.

    run : a `Run` at its solution, whose right-hand sides and observables are `verdict`
    """
    program, row = run.program, run.row
    if any(rule.kind == "unit" for rule in run.quad.rules.values()):  # their rounding may be alike by chance on two sets of nodes
        return None
    here = {n: row(v) for n, v in verdict.items()}
    inverse: dict[int, np.ndarray] = {}
    part = 0.3  # of the tolerance that rounding of slopes may be
    for k, block in enumerate(program.blocks):
        if block.kind != "explicit":
            inverse[k], known = _inverse(run, k, block)
            if not np.all(known <= part*run.tolerance):
                return None
    there = run.elsewhere(perturb_state(run.s, program.unknowns, _FAINT), _FAINT)
    shift = {n: row(there[n]) - v for n, v in here.items()}
    if any(np.any(np.abs(shift[f"rhs/{u}"]) > run.tolerance*np.abs(row(run.s[u]))) for u in program.unknowns
           if u not in program.implicit):
        return None
    s, seen = displace_state(run, shift, here, inverse)
    x, y = (np.array([row(v[u]) for u in program.unknowns]) for v in (run.s, s))
    least = np.array([0.0 if u in program.positive else SMALL for u in program.unknowns])[:, None]
    far = (np.abs(y - x)/np.maximum(np.abs(x), least)).max(axis=0)
    for o, v in seen.items():
        far = np.maximum(far, np.abs(v - here[o])/np.maximum(np.abs(here[o]), FLOOR))
    return far if np.all(far <= run.tolerance) else None


def _inverse(run: Any, k: int, block: BlockCode) -> tuple[np.ndarray, np.ndarray]:
    """M^-1 of block k, (points, n, n), and how far rounding of M moves its unknowns, relative; infinite where it has none."""
    out, row = run.outputs[k], run.row
    size = np.abs(np.array([row(run.s[u]) for u in block.unknowns]))
    if block.kind == "linear":
        M, b = matrix_of(block, out, run.points)
        terms = np.abs(b)
    else:
        M = block_slopes(block, out, run.points)  # an implicit equation's own, of the others those of x - rhs
        explicit = [u not in run.program.implicit for u in block.unknowns]
        M = np.where(np.array(explicit)[:, None, None], np.eye(len(M))[:, :, None] - M, M)
        terms = np.array([x if own else np.abs(row(out[f"terms/{u}"])) for x, u, own in
                          zip(size, block.unknowns, explicit, strict=True)])
    try:
        inverse = np.linalg.inv(M.transpose(2, 0, 1))
    except np.linalg.LinAlgError:
        return M.transpose(2, 0, 1), np.full(run.points, np.inf)
    terms += np.einsum("ijb,jb->ib", np.abs(M), size)
    rounded = 8*float(np.finfo(float).eps)  # eight roundings: of the terms of a row of M, and of its inverse
    return inverse, rounded*(np.einsum("bij,jb->ib", np.abs(inverse), terms)/size).max(axis=0)
