"""g(z_1, ..., z_r), P(y|z) -> leaps, staircases, thresholds and rates of a target in several variables.

Here the parts are put together: the leap of E[Y|z] (`leap`), the generative leap of the label (`generative_leap`), the
stages of weak recovery (`thresholds`); they take turns (`clock`), and what the time does not allow is undetermined.
"""

from __future__ import annotations

from collections.abc import Sequence

from sympy import Expr, Symbol

from hermitex import symbols
from hermitex.exponents.channels import Channel, Named
from hermitex.exponents.clock import Part, take_turns
from hermitex.exponents.complexity import complexity
from hermitex.exponents.directions.relevant import relevant
from hermitex.exponents.directions.staircase import Staircase
from hermitex.exponents.findings import Stage
from hermitex.exponents.generative_leap import GenerativeSearch
from hermitex.exponents.labels.forms import plainer
from hermitex.exponents.leap import Leap, LeapSearch
from hermitex.exponents.mean import degree, mean_of, square_integrable
from hermitex.exponents.result import Exponents
from hermitex.exponents.stages import NO_LABEL, NONE_EXISTS, Threshold


def several(g: Expr, law: Named | Channel, names: tuple[str, ...]) -> Exponents:
    """Every exponent of a target in several variables; see `report.exponents`."""
    variables = tuple(symbols.normal(n) for n in names)
    notes: list[str] = []
    if isinstance(law, Named):
        law.fits(g)
    g, target = plainer(g, variables), g
    mean, unknown = mean_of(g, law)
    said: list[str] = []
    integrable = Part("square integrability", lambda: square_integrable(mean, variables, said), None)
    take_turns(integrable)
    notes += [*integrable.notes, *said, *([unknown] if unknown else [])]
    search, silent = None, ""
    if mean is not None and integrable.value:
        if relevant(mean, variables).dimension:
            search = LeapSearch(mean, variables)
        else:
            silent = "its mean"
            notes.append(f"information exponent: E[Y|z] is constant, {NONE_EXISTS} (the label itself may depend on z)")
    climb = GenerativeSearch(g, law, variables)
    generative = Part("generative leap", climb, Staircase((), complete=False), so_far=climb.so_far, decided=lambda s: s.complete)
    threshold: Part[Threshold] = Part("alpha_c", lambda: _threshold(g, law, variables, generative.value), Threshold(None),
                                      decided=lambda t: t.kind == "hard" or t.alpha_c is not None, after=generative)
    take_turns(*(search.parts if search else ()), generative, threshold)
    found = search.found() if search else Leap(Staircase((), complete=False), None)
    stairs = generative.value
    recovery = _class(stairs) if threshold.value.kind is None else threshold.value
    if stairs.complete and not stairs.stages:
        silent = "the label"
        notes.append(NO_LABEL)
    notes += [*found.notes, *generative.notes, *stairs.notes, *threshold.notes, *recovery.notes]
    rates = complexity(degree=degree(mean, variables), square_integrable=integrable.value, first=found.first, leap=found.order,
                       generative=stairs.leap)
    return Exponents(
        target=target, variables=names, channel=str(law) if isinstance(law, Named) else law.name,
        square_integrable=integrable.value, information_exponent=found.first, leap_exponent=found.order,
        leap_coordinate=found.coordinate, staircase=plain(found.staircase.stages),
        generative_exponent=stairs.leap, generative_staircase=plain(stairs.stages), threshold=recovery,
        complexity=rates, certificates=(*found.staircase.certificates, *stairs.certificates),
        notes=tuple(dict.fromkeys(notes)), silent=silent)


def plain(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """Stages with their directions as lists of exact rows."""
    return tuple({"order": s["order"], "directions": s["directions"].tolist()} for s in stages)


def _threshold(g: Expr, law: Named | Channel, variables: tuple[Symbol, ...], generative: Staircase) -> Threshold:
    """The thresholds of the stages of a staircase; none without stages, nor where these were not all found."""
    from hermitex.exponents.thresholds import weak_recovery_several

    if not generative.complete or not generative.stages:
        return _class(generative)
    return weak_recovery_several(g, law, variables, stages=generative.stages)


def _class(generative: Staircase) -> Threshold:
    """What the orders of the stages say alone."""
    if not generative.complete:
        why = ("weak recovery: undetermined with the generative leap" if generative.leap is None else
               "alpha_c: undetermined with the stages of the generative staircase")
        return Threshold("easy" if generative.leap == 2 else None, notes=(why,))
    most = max((s["order"] for s in generative.stages), default=None)
    return Threshold(None if most is None else "hard" if most > 2 else "easy" if most == 2 else "trivial")
