"""g(z), P(y|z) -> information, leap and generative exponents, alpha_c, rates, and a certificate for each statement.

Here the parts are put together; what is computed stands in `information`, `generative`, `weak_recovery`, `complexity`.
"""

from __future__ import annotations

from typing import Any

from sympy import Expr, Symbol

from hermitex import symbols
from hermitex.errors import BadInput, BudgetExceeded, HermitexError
from hermitex.exponents.certificate import Certificate
from hermitex.exponents.channels import Channel, Named
from hermitex.exponents.channels import channel as read_channel
from hermitex.exponents.complexity import complexity
from hermitex.exponents.generative import generative_exponent
from hermitex.exponents.information import Found, information_exponent
from hermitex.exponents.levels import constant_value, polynomial
from hermitex.exponents.result import Exponents, Stage
from hermitex.exponents.weak_recovery import Threshold, weak_recovery
from hermitex.symbolic.budget import budget as time_budget

DEFAULT_BUDGET = 60.0


def exponents(target: Any, channel: Any = None, *, variables: Any = None,
              budget: float | None = DEFAULT_BUDGET) -> Exponents:
    """Every exponent of a target g(z), its class, its sample complexities, and a certificate for each statement.

    information exponent l = min{k >= 1: E[Y He_k] != 0};  generative exponent k* = min{k >= 1: E[E[h_k|Y]^2] != 0};
    1/alpha_c = E[(E[z^2|Y] - 1)^2].

    Parameters
    ----------
    target : expression or text in one standard normal (z, or z1, ...)
    channel : how the label is drawn given g(z): None (y = g), "gaussian:1/4", "flip:1/10", "sign:1", "random_sign",
        "poisson", "bernoulli", "multiplicative", or a `Channel`
    variables : names that count as variables though the target may not depend on them
    budget : seconds of wall time; what it does not allow is reported undetermined

    Returns
    -------
    Exponents

    Raises
    ------
    BadInput : a target in several variables, with free parameters, or that does not fit the channel.

    References: Ben Arous et al. (2021); Damian et al. (2024); Troiani et al. (2024).

    Examples
    --------
    >>> exponents("z**3 - 3*z")
    Exponents(z**3 - 3*z: information 3, generative 1, trivial, alpha_c = 0)
    """
    g, law, names, x = _read(target, channel, variables)
    with time_budget(budget):
        try:
            return _exponents(g, law, names, x)
        except BudgetExceeded as err:
            return _nothing(g, law, names, str(err))


def undecided(target: Any, channel: Any = None, *, variables: Any = None, why: str) -> Exponents:
    """The answer where nothing was decided: the target as it was read, every exponent None, and the reason."""
    g, law, names, _ = _read(target, channel, variables)
    return _nothing(g, law, names, why)


def _read(target: Any, channel: Any, variables: Any) -> tuple[Expr, Named | Channel, tuple[str, ...], Symbol]:
    from hermitex.symbolic.parsing import expression, parse

    declared = _declared(variables)
    g = parse(target, variables=declared or None) if isinstance(target, str) else expression(target)
    law = read_channel(channel)
    names, x = _variable(g, law, declared)
    return g, law, names, x


def _nothing(g: Expr, law: Named | Channel, names: tuple[str, ...], why: str) -> Exponents:
    note = f"everything is undetermined: {why}"
    return Exponents(
        target=g, variables=names, channel=str(law) if isinstance(law, Named) else law.name, square_integrable=None,
        information_exponent=None, leap_exponent=None, leap_coordinate=None, staircase=(), generative_exponent=None,
        generative_staircase=(), threshold=Threshold(None), certificates=(), notes=(note,),
        complexity=complexity(degree=None, square_integrable=None, first=None, leap=None, generative=None))


def _declared(variables: Any) -> list[str]:
    if variables is None:
        return []
    names = variables.split(",") if isinstance(variables, str) else [str(v) for v in variables]
    names = [n.strip() for n in names]
    bad = [n for n in names if not symbols.is_normal_name(n)]
    if bad:
        raise BadInput(f"variables: {', '.join(bad)} is not a standard normal; they are named z, or z1, z2, ...")
    return names


def _variable(g: Expr, law: Named | Channel, declared: list[str]) -> tuple[tuple[str, ...], Symbol]:
    """The names over which directions are written, and the one variable the label depends on."""
    used = list(symbols.normals(g))
    if isinstance(law, Channel):
        used += [s for s in symbols.normals(law.p) if s not in used]
    free = {s for s in g.free_symbols if s not in used}
    if free:
        raise BadInput(f"exponents: {', '.join(sorted(map(str, free)))} has no value; put a number in, "
                       "the target must hold z only")
    if len(used) > 1:
        raise BadInput(f"exponents: the target holds {', '.join(map(str, used))}; one variable is answered, "
                       "z or one of z1, z2, ...")
    names = tuple(declared) or tuple(s.name for s in used) or ("z",)
    x = used[0] if used else symbols.normal(names[0])
    if x.name not in names:
        raise BadInput(f"exponents: the target holds {x.name}, which is not among the variables {', '.join(names)}")
    return names, x


def _exponents(g: Expr, law: Named | Channel, names: tuple[str, ...], x: Symbol) -> Exponents:
    notes: list[str] = []
    if isinstance(law, Named):
        law.fits(g)
    mean, unknown_mean = _mean(g, law)
    labels = law.labels(g)
    parts = (labels.levels,) if labels.levels is not None else labels.probabilities
    trivial = all(constant_value(p, x) is not None for p in parts)
    degree = _degree(mean, x)
    integrable = _square_integrable(mean, x, notes)
    if unknown_mean:
        notes.append(unknown_mean)
    information = _information(mean, x, integrable, trivial, notes)
    notes += information.notes
    if trivial:
        notes.append("the label does not depend on z: no exponent exists")
        generative, threshold = Found(None), Threshold(None)
    else:
        generative = _generative(g, law, labels, information, x)
        threshold = weak_recovery(g, law, x, generative.order)
    notes += [*generative.notes, *threshold.notes]
    _hint_flint(notes, (*information.certificates, *generative.certificates))
    direction = [[int(n == x.name) for n in names]]
    first = information.order
    rates = complexity(degree=degree, square_integrable=integrable, first=first, leap=first,
                       generative=generative.order)
    return Exponents(
        target=g, variables=names, channel=str(law) if isinstance(law, Named) else law.name,
        square_integrable=integrable,
        information_exponent=first, leap_exponent=first, leap_coordinate=first, staircase=_staircase(first, direction),
        generative_exponent=generative.order, generative_staircase=_staircase(generative.order, direction),
        threshold=threshold, complexity=rates, certificates=(*information.certificates, *generative.certificates),
        notes=tuple(notes))


def _staircase(order: int | None, direction: list[list[int]]) -> tuple[Stage, ...]:
    return () if order is None else ({"order": order, "directions": direction},)


def _mean(g: Expr, law: Named | Channel) -> tuple[Expr | None, str]:
    try:
        return law.mean(g), ""
    except BudgetExceeded:
        raise
    except HermitexError as err:
        return None, f"information exponent: E[Y|z] is not known ({' '.join(str(err).split())})"


def _degree(mean: Expr | None, x: Symbol) -> int | None:
    if mean is None:
        return None
    poly = polynomial(mean, x)
    if poly is not None:
        return max(poly.degree(), 0) if not poly.is_zero else 0
    return 0 if constant_value(mean, x) is not None else None


def _square_integrable(mean: Expr | None, x: Symbol, notes: list[str]) -> bool | None:
    from hermitex.symbolic.growth import integrable

    if mean is None:
        return None
    if constant_value(mean, x) is not None:
        return True
    found = integrable(mean, x, 2)
    if found is False:
        first = integrable(mean, x, 1)
        where = "in L1 but not in L2" if first else "not in L1" if first is False else "not in L2"
        notes.append(f"information exponent: the target is {where} of the Gaussian, so none exists")
    elif found is None:
        notes.append("information exponent: undetermined, square integrability of the target was not decided")
    return found


def _information(mean: Expr | None, x: Symbol, integrable: bool | None, trivial: bool, notes: list[str]) -> Found:
    if mean is None or not integrable:
        return Found(None)
    if constant_value(mean, x) is not None:
        if not trivial:
            notes.append("information exponent: E[Y|z] is constant, so none exists (the label itself does depend on z)")
        return Found(None)
    return information_exponent(mean, x)


def _generative(g: Expr, law: Named | Channel, labels: Any, information: Found, x: Symbol) -> Found:
    # y itself is a label map in L2 where E[Y|z] has an information exponent.
    known = next((c for c in information.certificates if c.status == "nonzero"), None)
    conditional = law.p if isinstance(law, Channel) and not law.finite else None
    return generative_exponent(labels, x, known=known, law=conditional)


def _hint_flint(notes: list[str], certificates: tuple[Certificate, ...]) -> None:
    from importlib.util import find_spec

    if find_spec("flint") is None and any(c.status == "undetermined" for c in certificates):
        notes.append("rigorous enclosures need python-flint: pip install 'hermitex[flint]'")
