r"""lam -> 0+:   V = v/lam, Vhat = lam vhat, Q = lam/(mu_1^2 v_1 + mu_2^2 v_2)  for n < p;   lam = 0 itself  for n > p.

The ridgeless limit of a one-step theory. With fewer samples than features the readout interpolates: V diverges and the 1 in
Q = 1/(1 + V) falls away; what is left holds neither lam nor a small number. At n = p the test error diverges.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from hermitex.solvers.solution import Solution
from hermitex.theories.pointwise_parts import in_parts

#: powers of lam by which the unknowns and names of the interpolating equations are to be multiplied: 0 or infinity in the limit
_INFINITE = ("V", "V1", "V2", "Vs", "Vw", "T0", "T1", "T2")
_ZERO = ("Vhat1", "Vhat2", "qhat1", "qhat2", "zetatilde", "psitilde", "chitilde", "L", "train_error", "train_objective",
         "Vhat", "qhat", "mhat", "v")
_METHOD = "lam = 0: the limit lam -> 0+, for n < p by its own equations in V lam, Vhat/lam, ..., for n > p at lam = 0"
_DIVERGES = "lam = 0 at n = p: the test error diverges; take lam > 0"


def ridgeless(run: Callable[..., Solution], interpolating: Callable[[], Any], numbers: Mapping[str, np.ndarray],
              options: Mapping[str, Any], *, excess: Any = None) -> Solution:
    """Solve where some lam may be 0.

    Parameters
    ----------
    run : solves the equations at complete numbers
    interpolating : makes the System of the limit for n < p
    excess : of the sign of n - p at each point (default: alpha - beta)
    """
    if np.all(numbers["lam"] > 0):
        return run(numbers, **options)
    gap, zero = numbers["alpha"] - numbers["beta"] if excess is None else excess, numbers["lam"] == 0

    def limit(here: Mapping[str, np.ndarray], **how: Any) -> Solution:
        system = interpolating()
        wanted = {p.name for p in system.parameters}
        scaled = {n: v for n, v in {**here, "lamda": np.ones_like(here["lam"])}.items() if n in wanted}
        return _undo_scaling(system.solve(scaled, tolerance=how.get("tolerance", 1e-11), raise_on_failure=False))

    def peak(here: Mapping[str, np.ndarray], **how: Any) -> Solution:
        return _no_solution(run({**here, "lam": np.ones_like(here["lam"])}, **how))

    found = in_parts([(~zero | (gap > 0), run), (zero & (gap < 0), limit), (zero & (gap == 0), peak)], numbers,
                     {**options, "raise_on_failure": False})
    why = np.array(found.reason, dtype=object)
    failed = np.broadcast_to(zero & (gap != 0), why.shape) & ~np.asarray(found.converged)
    why[failed] = [f"lam = 0: no ridgeless limit was found ({r}); take lam > 0" for r in why[failed]]
    return replace(found, reason=why if why.shape else why.item(), notes=(*found.notes, _METHOD))


def _undo_scaling(found: Solution) -> Solution:
    """Back from V lam, Vhat/lam, ... to the letters themselves."""
    limit = {**dict.fromkeys(_INFINITE, np.inf), **dict.fromkeys(_ZERO, 0.0)}

    def unscaled(name: str, v: Any) -> Any:
        # V1_12 and zetatilde2 are V1 and zetatilde of letters of a vocabulary; an entry between two letters has either sign
        first = name.split("_")[0]
        base = next((b for b in (name, first, name.rstrip("0123456789"), first.rstrip("0123456789")) if b in limit), None)
        return v if base is None else np.where(v == 0, 0.0, np.sign(v)*limit[base]) if limit[base] else np.zeros_like(v)

    return replace(found, value={n: unscaled(n, v) for n, v in found.value.items()})


def _no_solution(found: Solution) -> Solution:
    """No solution, whatever was found."""
    value = {n: np.full_like(v, np.nan) for n, v in found.value.items()}
    none = np.zeros(np.shape(found.converged), dtype=bool)
    return replace(found, value=value, residual=np.where(none, 0.0, np.inf), converged=none,
                   reason=np.where(none, "", _DIVERGES).astype(object))
