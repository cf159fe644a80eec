"""hx.exponents: what a target asks of an algorithm, with the alpha at which AMP reaches the stages that follow others."""

from __future__ import annotations

from dataclasses import replace
from functools import wraps
from time import monotonic
from typing import TYPE_CHECKING, Any

from hermitex.errors import BudgetExceeded, HermitexError, NoClosedForm
from hermitex.exponents import report
from hermitex.exponents.stages import digits_that_hold, lower_bound
from hermitex.symbolic.budget import DEFAULT_BUDGET
from hermitex.symbolic.deadline import attempt, deadline

if TYPE_CHECKING:
    from hermitex.exponents.result import Exponents
    from hermitex.theories.overlaps.reached import Reached

_SHARE = 1/10  # of the budget, of the processor: noise on a smooth label of several variables may take minutes


@wraps(report.exponents)
def exponents(target: Any, channel: Any = None, *, variables: Any = None, budget: float | None = DEFAULT_BUDGET) -> Exponents:
    """See `hermitex.exponents.report.exponents`, whose words help() shows."""
    start = monotonic()
    found = report.exponents(target, channel, variables=variables, budget=budget)
    if len(found.threshold.stages) < 2:
        return found
    left = None if budget is None else max(budget - (monotonic() - start), 0.0)
    return _with_reached(found, channel, left, None if budget is None else _SHARE*budget)


def _with_reached(found: Exponents, channel: Any, seconds: float | None, share: float | None) -> Exponents:
    """The stages with where the state evolution of AMP reaches them."""
    stages, notes = [dict(s) for s in found.threshold.stages], list(found.notes)
    for n, stage in enumerate(stages):
        if stage["alpha_c"] is None:
            break
        if not stage["bound"]:  # the first, or of order 1: at once, with those before
            stage["reached"] = stages[n - 1]["reached"] if n else stage["alpha_c"]
            continue
        try:
            with deadline(seconds), attempt(share):
                at = _reached(found, channel, n)
        except BudgetExceeded:
            notes.append(f"stage {n + 1}: where it is reached was not found in time; allow more with a larger budget")
            break
        except HermitexError as why:
            notes.append(f"stage {n + 1}: where it is reached was not found: {' '.join(str(why).split())}")
            break
        alpha, exact = max(at.alpha, float(stages[n - 1]["reached"])), at.overlap == 1
        stage |= {"reached": stage["alpha_c"] if exact else alpha, "reached_error": at.error, "bound": not exact}
        new = (f"stage {n + 1} is reached at its alpha_c: AMP knows the directions before perfectly there" if exact else
               f"stage {n + 1} is reached at alpha = {digits_that_hold(alpha, at.error)}, where AMP knows the directions before "
               f"with the overlap {at.overlap:.4f}; its alpha_c is where it would be, were they known perfectly")
        notes = [new if note == lower_bound(n + 1) else note for note in notes]
    return replace(found, threshold=replace(found.threshold, stages=tuple(stages)), notes=tuple(notes))


def _reached(found: Exponents, channel: Any, n: int) -> Reached:
    """Where the n-th stage is reached."""
    import numpy as np

    from hermitex.theories.multi_index import multi_index
    from hermitex.theories.overlaps.reached import reached

    theory = multi_index(found.target, channel)
    names = [v.name for v in theory.reduced.variables]
    directions = [stage["directions"] for stage in found.weak_recovery["stages"][:n + 1]]
    if any(x is None for rows in directions for row in rows for x in row):
        raise NoClosedForm("the direction of a stage", "its number was not found", "Allow more time")
    places = [found.variables.index(name) for name in names]
    rows = [theory.inside(np.array(r, dtype=float)[:, places]) for r in directions]
    return reached(theory.evolution, np.vstack(rows[:n]), rows[n], float(found.threshold.stages[n]["alpha_c"]))


__all__ = ["exponents"]
