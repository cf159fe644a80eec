"""Are two systems one? Letter by letter, equation by equation, or in every number they determine at given points."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sympy import Dummy, Expr

from hermitex.check.claim import check
from hermitex.errors import BudgetExceeded, HermitexError, first_line
from hermitex.pages.checked import digits_of
from hermitex.systems.scope import written_out
from hermitex.systems.system import System

ENOUGH = 9  # digits in which all numbers of two systems must agree


def agreement(derived: System, used: System, at: Sequence[Mapping[str, Any]] = (),
              functions: Mapping[str, Any] | None = None, *, formal: bool = True) -> tuple[str, int | None, str, str]:
    """(status, digits, how, counter-example) of the claim that `derived` and `used` are the same equations.

    Parameters
    ----------
    at : numbers for the parameters of both; at each, both are solved and all numbers with a common name are compared
    functions : what is put in for undefined functions before solving, {"sigma": "tanh"}
    formal : whether equations that are not equal letter by letter may be proved equal; without it the numbers decide

    Examples
    --------
    >>> from hermitex.symbols import V, Vhat, alpha, lamda
    >>> one = System({Vhat: alpha/(1 + V), V: 1/(lamda + Vhat)})
    >>> two = System({V: 1/(lamda + Vhat), Vhat: alpha/(1 + V)})
    >>> agreement(one, two)[:2]
    ('proved', None)
    >>> agreement(one, System({Vhat: alpha/(1 - V), V: 1/(lamda + Vhat)}), [{"alpha": 2, "lam": 0.1}])[0]
    'fails'
    """
    if _by_name(derived) == _by_name(used) and not derived.diff(used):
        return "proved", None, "the same equations, letter by letter", ""
    if formal and _equations_equal(derived, used):
        return "proved", None, "every equation has the same right-hand side", ""
    if not at:
        changed = ", ".join(derived.diff(used))
        return "undetermined", None, f"the systems differ in form ({changed}), and no point was given to solve them at", ""
    first, second = (s.substitute(**functions) if functions else s for s in (derived, used))
    worst, compared = 0.0, 0
    for point in at:
        try:
            theirs = second.solve(second.accepted(point))
            near = {u.name: theirs[u.name] for u in first.unknowns if u.name in theirs and theirs[u.name] != 0}
            ours = first.solve(first.accepted(point), start=near)
        except BudgetExceeded:
            raise
        except HermitexError as error:  # without numbers nothing is shown, neither that they agree nor that they differ
            return "undetermined", None, f"at {dict(point)}: {first_line(error)}", ""
        common = [u.name for u in second.unknowns if u.name in ours]
        common += [o.name for o in second.observables if o.name in ours]
        compared = max(compared, len(common))
        for name in common:
            a, b = float(ours[name]), float(theirs[name])
            gap = abs(a - b) / max(abs(b), 1e-3)
            if not gap < 10.0**-ENOUGH:
                return "fails", None, "", f"at {dict(point)}: {name} = {a:.12g} here and {b:.12g} there"
            worst = max(worst, gap)
    if not compared:
        return "undetermined", None, "the systems have no name in common", ""
    return "agrees", digits_of(worst), f"{compared} numbers at {len(at)} points", ""


def unmatched_change(printed: Any, mended: Any, change: Callable[[Any], Any] | None, where: Mapping[Any, Expr] | None = None, *,
           digits: int = 30) -> str:
    """Why the printed formula is not the change of the mended one, or nothing."""
    if change is None:
        return "say how the printed form comes from the mended one, as change=lambda right: right/2"
    letter = Dummy("right")
    if letter not in getattr(change(letter), "free_symbols", ()):
        return "its change does not depend on the mended form"
    changed = change(mended)
    if changed == printed:
        return ""
    said = check(written_out(changed, where or {}), written_out(printed, where or {}), digits=digits)
    return "" if said else f"the printed form is not the change of the mended one: {said!r}".replace("\n", " ")


def untied_systems(printed: System, mended: System, change: Mapping[Any, Callable[[Any], Any]]) -> str:
    """The same for two systems: the right sides named in `change` differ, and the others are equal."""
    if not change:
        return "say which right sides are printed otherwise, and how, as change={V: lambda right: right/2}"
    changes = {str(x): one for x, one in change.items()}
    theirs, ours = ({x.name: value for some in (one.equations, one.where, one.observables) for x, value in some.items()}
                    for one in (mended, printed))
    if lost := sorted(set(changes) - set(ours) - {""}):
        return f"it has no letter {lost[0]}"
    for name, value in theirs.items():
        if name not in changes:
            wrong = "" if ours.get(name) == value else "its printed form is another one, and no change says how it comes about"
        else:
            wrong = unmatched_change(ours.get(name), value, changes[name], mended.where)
        if wrong:
            return f"{name}: {wrong}"
    return ""


def _by_name(system: System) -> dict[str, Any]:
    return {u.name: v for u, v in system.equations.items()}


def _equations_equal(derived: System, used: System) -> bool:
    ours, theirs = derived.written, used.written
    if {u.name for u in ours} != {u.name for u in theirs}:
        return False
    by_name = {u.name: e for u, e in theirs.items()}
    for u, e in ours.items():
        other = by_name[u.name]
        if e.implicit != other.implicit:
            return False
        if e.rhs != other.rhs:
            try:
                if check(e.rhs, other.rhs, points=1).status != "proved":
                    return False
            except HermitexError:
                return False
    return True
