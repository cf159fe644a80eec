"""g(z), P(y|z) -> information, leap and generative exponents, alpha_c, rates, and a certificate for each statement.

Here the parts are put together: the leap of E[Y|z] (`leap`), the generative leap of the label (`generative_leap`), the
stages of weak recovery (`thresholds`); they take turns (`clock`), and what the time does not allow is undetermined. One
variable is the case of one direction: its leaps are its information and its generative exponent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from sympy import Add, Expr, Symbol, default_sort_key

from hermitex import symbols
from hermitex.errors import DECLARING, BadInput, BudgetExceeded, UnknownName
from hermitex.exponents.channels import Channel, NamedChannel
from hermitex.exponents.channels import channel as read_channel
from hermitex.exponents.clock import AnswerPart, take_turns
from hermitex.exponents.complexity import complexity
from hermitex.exponents.correlated_inputs import GivenVariables, given_variables
from hermitex.exponents.directions.direction_text import in_written_forms, oriented, written_forms
from hermitex.exponents.directions.relevant import along_one_direction, relevant_directions
from hermitex.exponents.directions.staircase import Staircase
from hermitex.exponents.evidence import before_the_noise
from hermitex.exponents.explain import label_map_domain
from hermitex.exponents.findings import Stage, with_directions
from hermitex.exponents.generative_leap import GenerativeSearch
from hermitex.exponents.labels.almost_everywhere import almost_everywhere
from hermitex.exponents.labels.label_levels import constant_value
from hermitex.exponents.labels.sign_forms import polynomial_in_signs, without_constants
from hermitex.exponents.leap import Leap, LeapSearch
from hermitex.exponents.mean import degree, mean_of, square_integrable
from hermitex.exponents.result import Exponents
from hermitex.exponents.stages import NO_LABEL, NONE_EXISTS, Threshold
from hermitex.exponents.thresholds import weak_recovery
from hermitex.symbolic.budget import DEFAULT_BUDGET
from hermitex.symbolic.deadline import deadline
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.hermite_tensors import MAX_VARIABLES
from hermitex.symbolic.parsing import parse, real_expression, to_text
from hermitex.symbolic.subspaces import Matrix

_A_NUMBER = ("a number", "numbers")


def exponents(target: Any, channel: Any = None, *, variables: Any = None,
              budget: float | None = DEFAULT_BUDGET) -> Exponents:
    """What `hermitex.exponents` answers of one target, but for where AMP reaches the later stages; it is documented there.

    >>> exponents("z**3 - 3*z")
    Exponents(z**3 - 3*z: information 3, generative 1, trivial, alpha_c = 0)
    """
    g, law, names, used = _read(target, channel, variables)
    if budget == 0:
        raise BadInput("exponents: budget=0 leaves no time for any answer; give seconds, or None for no bound")
    with deadline(budget):
        try:
            found = replace(_with_numbers(_of_plain(g, law, names, used)), law=law)
            return with_notes(found, _of_a_law(g, law) if isinstance(law, Channel) else [])
        except BudgetExceeded as err:
            return _nothing(g, law, names, str(err))


def _of_a_law(g: Expr, law: Channel) -> list[str]:
    """The notes for a label whose law is written out: it determines everything, and how the exponents were found."""
    aside = [] if g.is_Symbol or not g.free_symbols else [
        f"the label is drawn from {', '.join(map(str, symbols.normals(law.p)))} by the law P(y|z) alone, "
        "which has to hold the target"]
    return [*aside, *([law.remark] if law.remark else [])]


def _of_plain(g: Expr, law: NamedChannel | Channel, names: tuple[str, ...], used: tuple[Symbol, ...]) -> Exponents:
    """The answer for a function that is g almost everywhere, without signs that cancel."""
    plain = almost_everywhere(along_one_direction(without_constants(g)))
    if plain == g or isinstance(law, Channel):
        return _any_number(g, law, names, used)
    found = _any_number(plain, law, names, tuple(x for x in used if plain.has(x)))
    return replace(found, target=g, notes=(*found.notes, f"almost everywhere the target is {to_text(plain)}"))


def _any_number(g: Expr, law: NamedChannel | Channel, names: tuple[str, ...], used: tuple[Symbol, ...]) -> Exponents:
    """One direction is answered as one variable, whatever the direction."""
    silent = [n for n in names if n not in {v.name for v in used}]
    notes = [f"the label does not depend on {', '.join(silent)}"] if silent and used else []
    if len(used) < 2:
        x = used[0].name if used else names[0]
        return with_notes(_along(_answer(g, law, (x,)), names, [[int(n == x) for n in names]]), notes)
    if len(used) > MAX_VARIABLES:
        raise BadInput(f"exponents: {len(used)} variables; at most {MAX_VARIABLES} are supported")
    variables = tuple(symbols.normal(n) for n in names)
    seen = relevant_directions((g, law.p) if isinstance(law, Channel) else g, variables)
    notes = [f"the label does not depend on {', '.join(map(str, seen.irrelevant))}"] if seen.irrelevant else []
    if seen.dimension != 1:
        return with_notes(_answer(g, law, names), notes)
    inner, law_inside = seen.inner, law
    if isinstance(law, Channel):
        inner, p = seen.inner
        along = law.regression and relevant_directions((law.regression, law.p), variables).inner[0]
        law_inside = replace(law, p=p, regression=along)
    form = Add(*(c*v for c, v in zip(seen.basis.tolist()[0], variables, strict=True)))
    if form != seen.names[0]:
        notes.append(f"one direction matters: in the certificates z is {form}")
    found = _along(_answer(inner, law_inside, (seen.names[0].name,)), names, seen.outside(Matrix([[1]])).tolist())
    return with_notes(replace(found, target=g), notes)


def _along(found: Exponents, names: tuple[str, ...], direction: list[list[Any]]) -> Exponents:
    """The answer for one variable that is a direction of others."""
    stages, generative = (tuple({**s, "directions": direction} for s in stairs)
                          for stairs in (found.staircase, found.generative_staircase))
    return replace(found, variables=names, staircase=stages, generative_staircase=generative)


def with_notes(found: Exponents, notes: list[str]) -> Exponents:
    """The same answer, with what else its reader should know."""
    return replace(found, notes=(*found.notes, *notes)) if notes else found


def _with_numbers(found: Exponents) -> Exponents:
    """The numbers of the directions that are integrals without closed form: once, in the time of the answer."""
    stages = (*found.staircase, *found.generative_staircase, *found.threshold.stages)
    entries = {x for s in stages for row in s["directions"] for x in row if isinstance(x, Expr) and x.has(Expectation)}
    if not entries:
        return found
    from hermitex.exponents.directions.exact_entries import entry_number

    numbers: dict[Expr, float | None] = dict.fromkeys(entries)
    why = ""
    try:
        for x in sorted(entries, key=default_sort_key):
            numbers[x] = entry_number(x)
    except BudgetExceeded as err:
        why = f": {err}"
    notes = (f"directions: an entry is an integral whose number was not found{why}",) if None in numbers.values() else ()
    return replace(found, numbers=numbers, notes=(*found.notes, *notes))


def standardised(target: Any, channel: Any, variables: Any, covariance: Any
                 ) -> tuple[Expr, Any, tuple[str, ...], GivenVariables | None]:
    """A target of variables with a covariance over standard normals: target, channel, variables, and the variables as given."""
    g, law, names, _ = _read(target, channel, variables)
    given = given_variables(g, names, covariance)
    if given is None:
        return g, channel, names, None
    g, p = given.over_normals(law)
    return g, p if isinstance(p, Channel) else channel, names, given


def in_linear_forms(found: Exponents) -> Exponents:
    """The directions of each stage as the linear forms that the target is written in, where some of these span them.

    The sign of a direction is arbitrary; here it becomes that of `oriented` for every staircase and stage.
    """
    forms = written_forms(found.target, [symbols.normal(n) for n in found.variables])
    numbers = dict(found.numbers)
    turned = with_directions(found, lambda rows: oriented(in_written_forms(rows, forms), numbers))
    return replace(turned, numbers=numbers)


def undecided(target: Any, channel: Any = None, *, variables: Any = None, why: str) -> Exponents:
    """The answer where nothing was decided: the target as it was read, every exponent None, and the reason."""
    g, law, names, _ = _read(target, channel, variables)
    return _nothing(g, law, names, why)


def read_target(target: Any, variables: Any = None) -> tuple[Expr, tuple[str, ...]]:
    """A target without parameters and the names of its variables."""
    g, _, names, _ = _read(target, None, variables)
    return g, names


def _read(target: Any, channel: Any, variables: Any) -> tuple[Expr, NamedChannel | Channel, tuple[str, ...], tuple[Symbol, ...]]:
    declared = _declared(variables)
    g = _parsed(target, declared) if isinstance(target, str) else real_expression(target)
    law = read_channel(channel)
    names, used = _variables(g, law, declared)
    return g, law, names, used


def _parsed(text: str, declared: list[str]) -> Expr:
    """Parse a text. A target has no parameters, so an unknown letter is an error, without advice to declare it."""
    try:
        return parse(text, variables=declared or None)
    except UnknownName as error:
        told, _, declaring = str(error).partition(DECLARING)
        if declaring:
            error.args = (f"{told}; a target holds z, or z1, z2, ... only: put a number in for a parameter",)
        raise


def _nothing(g: Expr, law: NamedChannel | Channel, names: tuple[str, ...], why: str) -> Exponents:
    note = f"everything is undetermined: {why}"
    return Exponents(
        target=g, variables=names, channel=str(law) if isinstance(law, NamedChannel) else law.name, square_integrable=None,
        information_exponent=None, leap_exponent=None, leap_coordinate=None, staircase=(), generative_exponent=None,
        generative_staircase=(), threshold=Threshold(None), certificates=(), notes=(note,),
        complexity=complexity(degree=None, square_integrable=None, first=None, leap=None, generative=None))


def _declared(variables: Any) -> list[str]:
    if variables is None:
        return []
    if isinstance(variables, Symbol):
        variables = variables.name
    if not isinstance(variables, str | Iterable):
        raise BadInput(f"variables: names are needed, as a text or a list, not {variables!r}; e.g. variables='z1,z2'")
    names = variables.split(",") if isinstance(variables, str) else [str(v) for v in variables]
    names = [n.strip() for n in names]
    if "" in names:
        raise BadInput(f"variables: a name is empty in {variables!r}; write names with one comma between, as in z1,z2")
    if twice := sorted({n for n in names if names.count(n) > 1}):
        raise BadInput(f"variables: {', '.join(twice)} occurs twice; name each variable once")
    bad = [n for n in names if not symbols.is_normal_name(n)]
    if bad:
        raise BadInput(f"variables: {', '.join(bad)} is not a standard normal; they are named z, or z1, z2, ...")
    return names


def _variables(g: Expr, law: NamedChannel | Channel, declared: list[str]) -> tuple[tuple[str, ...], tuple[Symbol, ...]]:
    """The names over which directions are written, and the variables that the target or the channel hold."""
    symbols.one_naming(symbols.normals(g))
    held = {*symbols.normals(g), *(symbols.normals(law.p) if isinstance(law, Channel) else ())}
    used = tuple(sorted(held, key=symbols.natural))
    free = {s for s in g.free_symbols if s not in used}
    if free:
        letters = ", ".join(sorted(map(str, free)))
        raise BadInput(f"exponents: {letters} {'has' if len(free) == 1 else 'have'} no value; put {_A_NUMBER[len(free) > 1]} in, "
                       "the target must hold z, or z1, z2, ... only")
    names = tuple(declared) or tuple(s.name for s in used) or ("z",)
    missing = [v.name for v in used if v.name not in names]
    if missing:
        raise BadInput(f"exponents: the target holds {', '.join(missing)}, which is not among the variables "
                       f"{', '.join(names)}")
    return names, used


def _answer(g: Expr, law: NamedChannel | Channel, names: tuple[str, ...]) -> Exponents:
    """Every exponent of a target over the directions of some variables."""
    variables = tuple(symbols.normal(n) for n in names)
    notes: list[str] = []
    if isinstance(law, NamedChannel):
        law.fits(g)
    g, target = polynomial_in_signs(g, variables), g
    mean, unknown = mean_of(g, law)
    said: list[str] = []
    integrable = AnswerPart("square integrability", lambda: square_integrable(mean, variables, said), None)
    take_turns(integrable)
    notes += [*integrable.notes, *said, *([unknown] if unknown else [])]
    silent = mean is not None and bool(integrable.value) and _constant(mean, variables)
    search = LeapSearch(mean, variables) if mean is not None and integrable.value and not silent else None
    # for a law written out, E[|Y| He_k] may not exist though E[Y|z] is in L2: then y is not a label map
    shared = search.facts if search and (isinstance(law, NamedChannel) or law.finite) else None
    climb = GenerativeSearch(g, law, variables, shared)
    generative = AnswerPart(climb.name, climb, Staircase((), complete=False), so_far=climb.so_far, decided=lambda s: s.complete)
    short = min(g, target, key=Expr.count_ops)
    threshold: AnswerPart[Threshold] = AnswerPart("alpha_c", lambda: _threshold(short, law, variables, generative.value),
                                                  Threshold(None),
                                      decided=lambda t: t.kind == "hard" or t.alpha_c is not None, after=generative)
    take_turns(*(search.parts if search else ()), generative, threshold)
    found = search.found() if search else Leap(Staircase((), complete=False), None)
    stairs = generative.value
    recovery = _class(stairs, climb.name) if threshold.value.kind is None else threshold.value
    nothing = stairs.complete and not stairs.stages
    if nothing or silent:
        notes.append(NO_LABEL if nothing else
                     f"information exponent: E[Y|z] is constant, {NONE_EXISTS} (the label itself may depend on z)")
    notes += [*found.notes, *generative.notes, *stairs.notes, *threshold.notes, *recovery.notes]
    shown = stairs.certificates
    if str(law) not in ("deterministic", "random_sign") and law.labels(g).levels is not None:
        shown = tuple(map(before_the_noise, shown))
    certificates = (*found.staircase.certificates, *shown)
    mapped = ("u(y)",) if str(law) == "deterministic" else ("T(y)", "S(u)")
    if isinstance(law, NamedChannel) and any(m in str(c) for m in mapped for c in shown):
        notes += filter(None, [label_map_domain(g, str(law), names)])
    rates = complexity(degree=degree(mean, variables), square_integrable=integrable.value, first=found.first, leap=found.order,
                       generative=stairs.leap, single=len(variables) == 1)
    return Exponents(
        target=target, variables=names, channel=str(law) if isinstance(law, NamedChannel) else law.name,
        square_integrable=integrable.value, information_exponent=found.first, leap_exponent=found.order,
        leap_coordinate=found.coordinate, staircase=_plain(found.staircase.stages),
        generative_exponent=stairs.leap, generative_staircase=_plain(stairs.stages), threshold=recovery,
        complexity=rates, certificates=certificates, notes=tuple(dict.fromkeys(notes)),
        silent="the label" if nothing else "its mean" if silent else "")


def _constant(mean: Expr, variables: tuple[Symbol, ...]) -> bool:
    one = len(variables) == 1 and constant_value(mean, variables[0]) is not None
    return one or not relevant_directions(mean, variables).dimension


def _plain(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """Stages with their directions as lists of exact rows."""
    return tuple({"order": s["order"], "directions": s["directions"].tolist()} for s in stages)


def _threshold(g: Expr, law: NamedChannel | Channel, variables: tuple[Symbol, ...], generative: Staircase) -> Threshold:
    """The thresholds of the stages of a staircase; none without stages, nor where these were not all found."""
    if not generative.complete or not generative.stages:
        return Threshold(None)
    found = weak_recovery(g, law, variables, stages=generative.stages)
    return found if len(variables) > 1 else replace(found, stages=())  # a single stage is the threshold itself


def _class(generative: Staircase, name: str) -> Threshold:
    """What the orders of the stages say alone; `name` of the largest."""
    if not generative.complete:
        why = (f"weak recovery: undetermined with the {name}" if generative.leap is None else
               "alpha_c: undetermined with the stages of the generative staircase")
        return Threshold("easy" if generative.leap == 2 else None, notes=(why,))
    most = max((s["order"] for s in generative.stages), default=None)
    return Threshold(None if most is None else "hard" if most > 2 else "easy" if most == 2 else "trivial")
