"""g(z_1, ..., z_r), P(y|z) -> leaps, staircases, thresholds and rates of a target in several variables.

Here the parts are put together: the leap of E[Y|z] (`leap`), the generative leap of the label (`generative_leap`), the
stages of weak recovery (`thresholds`); each has its share of the time, and what it does not finish is undetermined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from sympy import Expr, Symbol

from hermitex import symbols
from hermitex.errors import BudgetExceeded, HermitexError
from hermitex.exponents.channels import Channel, Named
from hermitex.exponents.complexity import complexity
from hermitex.exponents.directions.relevant import relevant
from hermitex.exponents.directions.staircase import Staircase
from hermitex.exponents.findings import Stage
from hermitex.exponents.generative_leap import generative_leap
from hermitex.exponents.labels.forms import plainer
from hermitex.exponents.leap import Leap, leap
from hermitex.exponents.mean import degree, mean_of, square_integrable
from hermitex.exponents.result import Exponents
from hermitex.exponents.stages import Threshold
from hermitex.symbolic.budget import checkpoint, remaining
from hermitex.symbolic.deadline import deadline

T = TypeVar("T")
_SHARE = 0.45  # of the time that is left, for each part but the last


def several(g: Expr, law: Named | Channel, names: tuple[str, ...]) -> Exponents:
    """Every exponent of a target in several variables; see `report.exponents`."""
    variables = tuple(symbols.normal(n) for n in names)
    notes: list[str] = []
    if isinstance(law, Named):
        law.fits(g)
    g, target = plainer(g, variables), g
    mean, unknown = mean_of(g, law)
    integrable = _within(lambda: square_integrable(mean, variables, notes), None, notes, "square integrability")
    if unknown:
        notes.append(unknown)
    found = _leap(mean, variables, integrable, notes)
    generative = _generative(g, law, variables, notes)
    trivial = generative.complete and not generative.stages
    if trivial:
        notes.append("the label does not depend on z: no exponent exists")
    threshold = Threshold(None) if trivial else _threshold(g, law, variables, generative, notes)
    rates = complexity(degree=degree(mean, variables), square_integrable=integrable, first=found.first, leap=found.order,
                       generative=generative.leap)
    return Exponents(
        target=target, variables=names, channel=str(law) if isinstance(law, Named) else law.name,
        square_integrable=integrable, information_exponent=found.first, leap_exponent=found.order,
        leap_coordinate=found.coordinate, staircase=plain(found.staircase.stages),
        generative_exponent=generative.leap, generative_staircase=plain(generative.stages), threshold=threshold,
        complexity=rates, certificates=(*found.staircase.certificates, *generative.certificates),
        notes=tuple(dict.fromkeys(notes)))


def plain(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """Stages with their directions as lists of exact rows."""
    return tuple({"order": s["order"], "directions": s["directions"].tolist()} for s in stages)


def _within(work: Callable[[], T], otherwise: T, notes: list[str], what: str, *, share: float = _SHARE) -> T:
    """Run one part within its share of the time; what it does not allow is said, and the next part has its turn."""
    try:
        with deadline(remaining(share)):
            return work()
    except BudgetExceeded as err:
        notes.append(f"{what}: undetermined, {err}")
        if share == 1:
            checkpoint(what)
    except HermitexError as err:
        notes.append(f"{what}: undetermined, {' '.join(str(err).split())}")
    except (ArithmeticError, RuntimeError, ValueError) as err:  # of a library: the other parts stand
        notes.append(f"{what}: not reached, its computation failed ({type(err).__name__}: {' '.join(str(err).split())})")
    return otherwise


def _leap(mean: Expr | None, variables: tuple[Symbol, ...], integrable: bool | None, notes: list[str]) -> Leap:
    nothing = Leap(Staircase((), complete=False), None)
    if mean is None or not integrable:
        return nothing
    if relevant(mean, variables).dimension == 0:
        notes.append("information exponent: E[Y|z] is constant, so none exists (the label itself may depend on z)")
        return nothing
    found = _within(lambda: leap(mean, variables), nothing, notes, "information exponent and leap")
    notes += [n for n in (*found.staircase.notes, *found.notes) if n not in notes]
    return found


def _generative(g: Expr, law: Named | Channel, variables: tuple[Symbol, ...], notes: list[str]) -> Staircase:
    nothing = Staircase((), complete=False)
    found = _within(lambda: generative_leap(g, law, variables), nothing, notes, "generative leap", share=0.6)
    notes += found.notes
    return found


def _threshold(g: Expr, law: Named | Channel, variables: tuple[Symbol, ...], generative: Staircase,
               notes: list[str]) -> Threshold:
    from hermitex.exponents.thresholds import weak_recovery_several

    if not generative.complete:
        notes.append("weak recovery: undetermined with the generative leap" if generative.leap is None else
                     "alpha_c: undetermined with the stages of the generative staircase")
        return Threshold("easy" if generative.leap == 2 else None)
    orders = [s["order"] for s in generative.stages]
    kind = "hard" if max(orders) > 2 else "easy" if max(orders) == 2 else "trivial"
    found: Any = _within(lambda: weak_recovery_several(g, law, variables, stages=generative.stages),
                         Threshold(kind), notes, "alpha_c", share=0.95)
    notes += found.notes
    return found
