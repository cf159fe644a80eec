r"""lam -> 0+:   V = v/lam, Vhat = lam vhat, Q = lam/(mu_1^2 v_1 + mu_2^2 v_2)  for n < p;   lam = 0 itself  for n > p.

The ridgeless limit of a one-step theory. With fewer samples than features the readout interpolates: V diverges and the 1 in
Q = 1/(1 + V) falls away; what is left holds neither lam nor a small number. At n = p the test error diverges.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from hermitex.solvers.batch import merge_solutions
from hermitex.solvers.solution import Solution
from hermitex.theories.pointwise_parts import shaped

#: powers of lam by which the unknowns and names of the interpolating equations are to be multiplied: 0 or infinity in the limit
_INFINITE = ("V", "V1", "V2", "Vs", "Vw", "T0", "T1", "T2")
_ZERO = ("Vhat1", "Vhat2", "qhat1", "qhat2", "zetatilde", "psitilde", "chitilde", "L", "train_error", "train_objective",
         "Vhat", "qhat", "mhat", "v")
_METHOD = "lam = 0: the limit lam -> 0+, for n < p by its own equations in V lam, Vhat/lam, ..., for n > p at lam = 0"
_DIVERGES = "lam = 0 at n = p: the test error diverges; take lam > 0"


def ridgeless(run: Callable[..., Solution], interpolating: Any, numbers: Mapping[str, np.ndarray], options: Mapping[str, Any],
              *, excess: Any = None) -> Solution:
    """Solve where some lam are 0.

    Parameters
    ----------
    run : solves the equations at complete numbers
    interpolating : the System of the limit for n < p
    excess : of the sign of n - p at each point (default: alpha - beta)
    """
    shape = np.broadcast_shapes(*(np.shape(v) for v in numbers.values()))
    flat = {n: np.broadcast_to(v, shape).ravel() for n, v in numbers.items()}
    points = flat["lam"].size
    gap = flat["alpha"] - flat["beta"] if excess is None else np.broadcast_to(excess, shape).ravel()
    zero = flat["lam"] == 0
    start = {k: v for k, v in (options.get("start") or {}).items() if np.ndim(v) == 0}
    inner = {**options, "raise_on_failure": False, "start": start}

    def at(k: np.ndarray, **changed: float) -> dict[str, np.ndarray]:
        return {n: v[k] for n, v in flat.items()} | {n: np.full(k.size, v) for n, v in changed.items()}

    parts: list[tuple[np.ndarray, Solution]] = []
    plain = np.flatnonzero(~zero | (gap > 0))
    if plain.size:
        parts.append((plain, run(at(plain), **inner)))
    few = np.flatnonzero(zero & (gap < 0))
    if few.size:
        wanted = {p.name for p in interpolating.parameters}
        scaled = {n: v for n, v in {**at(few), "lamda": np.ones(few.size)}.items() if n in wanted}
        limit = interpolating.solve(scaled, tolerance=options.get("tolerance", 1e-11), raise_on_failure=False)
        parts.append((few, _undo_scaling(limit)))
    at_peak = np.flatnonzero(zero & (gap == 0))
    if at_peak.size:
        parts.append((at_peak, _no_solution(run(at(at_peak, lam=1.0), **inner))))
    found = merge_solutions(parts, points, parts[0][1].unknowns)
    failed = zero & ~np.asarray(found.converged) & (gap != 0)
    why = np.array(found.reason, dtype=object)
    why[failed] = [f"lam = 0: no ridgeless limit was found ({r}); take lam > 0" for r in why[failed]]
    found = replace(found, reason=why, notes=(*found.notes, _METHOD))
    return shaped(found, shape)


def _undo_scaling(found: Solution) -> Solution:
    """Back from V lam, Vhat/lam, ... to the letters themselves."""
    limit = {**dict.fromkeys(_INFINITE, np.inf), **dict.fromkeys(_ZERO, 0.0)}

    def unscaled(name: str, v: Any) -> Any:
        # V1_12 and zetatilde2 are V1 and zetatilde of letters of a vocabulary; an entry between two letters has either sign
        base = next((b for b in (name, name.split("_")[0], name.rstrip("0123456789")) if b in limit), None)
        return v if base is None else np.where(v == 0, 0.0, np.sign(v)*limit[base]) if limit[base] else np.zeros_like(v)

    return replace(found, value={n: unscaled(n, v) for n, v in found.value.items()})


def _no_solution(found: Solution) -> Solution:
    """No solution, whatever was found."""
    value = {n: np.full_like(v, np.nan) for n, v in found.value.items()}
    points = len(np.asarray(found.converged))
    return replace(found, value=value, residual=np.full(points, np.inf), converged=np.zeros(points, dtype=bool),
                   reason=np.full(points, _DIVERGES, dtype=object))
