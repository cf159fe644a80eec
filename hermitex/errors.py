"""The error tree: every message says what was needed, what was given, and what to type."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from types import FunctionType
from typing import Any, ClassVar

_DUMMY = re.compile(r"(?<!\w)_(?=[A-Za-z])")
NO_NUMBER = (TypeError, ValueError, OverflowError)  # what makes a float of something may raise; the last of them at 10**400
#: Keywords that say the same: a function takes one of each row.
_ALIKE = (("g", "target", "link", "teacher"), ("sigma", "activation", "nonlinearity"), ("k", "order", "degree"),
          ("x", "variable", "variables"))
_ELSEWHERE = {("check", "cov"): "a covariance belongs to its average, check(E(z1*z2, cov={(z1, z2): rho}), rho)"}
DECLARING = "; or declare it, symbols="  # how the line on an unknown letter goes on, where its text may come with `symbols`


def _plain(value: Any) -> str:
    """The text of a formula under the names its author gave: an internal copy of z prints as _z."""
    return _DUMMY.sub("", str(value))


class HermitexError(Exception):
    """Base of every error that hermitex raises on purpose; its text is fit to be shown to a user, whatever it quotes."""

    def __str__(self) -> str:
        most = 2_000  # letters of a message
        return both_ends(super().__str__(), most)

    def __reduce__(self) -> tuple[Any, ...]:
        # Not by calling the class: an error is made of its parts, and travels between processes as its text and them.
        return _restored, (type(self), self.args), self.__dict__


class BadInput(HermitexError, ValueError):
    """The input is wrong: one line, exit code 2 on the command line."""


class ParseError(BadInput):
    """A text is not an expression in the grammar of `hermitex.parse`."""


class ConventionError(BadInput):
    """A convention that has no default was not given (monic or orthonormal, for instance)."""


class NoValue(BadInput):
    """A number was not given: `name`, from which the command line knows its option."""

    def __init__(self, asking: str, name: str, like: str = "...") -> None:
        self.asking, self.name = asking, name
        super().__init__(f"{asking}: {name} has no value; add {name}={like}")


class UnknownName(BadInput):
    """An unknown name; carries the closest known names, or the names that users usually mean by it (`meant`)."""

    def __init__(self, name: str, known: Iterable[str] = (), what: str = "name", meant: Iterable[str] = ()) -> None:
        known = sorted(set(known))
        self.name, self.close_matches = name, list(meant) or close_matches(str(name), known)
        hint = f"; did you mean {' or '.join(self.close_matches)}?" if self.close_matches else ""
        few = 16  # choices that still fit in a line
        if not hint and 0 < len(known) <= few:
            hint = f"; there {'is' if len(known) == 1 else 'are'} {', '.join(known)}"
        super().__init__(f"unknown {what} {name!r}{hint}")


def close_matches(name: str, known: Iterable[str]) -> list[str]:
    """Up to three known names, closest first, that are nearly as close as the closest.

    >>> close_matches("exponant", ["exponents", "Exponents", "expand", "ExponentsTable"])
    ['exponents', 'expand']
    >>> close_matches("tahn", ["tan", "tanh", "atan"]), close_matches("a", ["tan", "max"])  # letters that changed places come first
    (['tanh', 'tan', 'atan'], [])
    """
    from difflib import SequenceMatcher, get_close_matches  # only a failure pays for this import

    lower = {k.lower(): k for k in sorted(known, key=lambda k: k[:1].isupper() == name[:1].isupper())}  # the last one stays
    likeness = 0.5 if len(name) > 1 else 0.6  # one letter in a name of three is no likeness
    near = get_close_matches(name.lower(), list(lower), n=3, cutoff=likeness)
    close = [SequenceMatcher(None, k, name.lower()).ratio() for k in near]
    as_close = 0.15  # of the likeness: names that much less like than the closest are not meant
    kept = [k for k, ratio in zip(near, close, strict=True) if ratio > close[0] - as_close]
    return [lower[k] for k in sorted(kept, key=lambda k: sorted(k) != sorted(name.lower()))]


def both_ends(text: str, most: int) -> str:
    """A text of at most so many letters, without its middle if it is longer.

    >>> both_ends("0123456789", 10), both_ends("0123456789", 4)
    ('0123456789', '01 ... 89')
    """
    return text if len(text) <= most else f"{text[:most//2]} ... {text[-most//2:]}"


def first_line(error: BaseException) -> str:
    """The first line of an error, or its class name if it has no text.

    >>> first_line(ValueError("not here\\n  Try: there")), first_line(ValueError())
    ('not here', 'ValueError')
    """
    return next((line for line in str(error).splitlines() if line), type(error).__name__)


def brief(value: Any) -> str:
    """The text of a value for a message: at most 60 characters.

    >>> brief(1 + 1j), brief(10**5000)
    ('(1+1j)', 'an integer of thousands of digits')
    """
    try:
        text = repr(value)
    except ValueError:  # Python writes no integer of more than 4,300 digits
        return "an integer of thousands of digits"
    return text if len(text) <= 60 else f"{text[:57]}..."


def no_attribute(owner: str, name: str, known: Iterable[str], within: Mapping[str, Iterable[str]] | None = None) -> AttributeError:
    """The error of a missing attribute, with the closest existing ones; `within` holds the names of submodules.

    >>> str(no_attribute("hermitex", "exponant", ["exponents", "E"]))
    "hermitex has no 'exponant'; did you mean exponents?"
    """
    places = {n: f"{part}.{n}" for part, names in (within or {}).items() for n in names} | {n: n for n in known}
    near = [] if name.startswith("__") else [places[n] for n in close_matches(name, places)]
    return AttributeError(f"{owner} has no {name!r}" + (f"; did you mean {' or '.join(near)}?" if near else ""))


def public(made: Any, room: str, name: str) -> Any:
    """A function or class under its public name; an unknown keyword and a missing argument are errors that say what to type.

    >>> public(close_matches, "hermitex.errors", "close_matches")("a", knwon=["b"])
    Traceback (most recent call last):
    hermitex.errors.UnknownName: unknown keyword of close_matches 'knwon'; did you mean known?
    """
    if isinstance(made, type):
        if isinstance(start := vars(made).get("__init__"), FunctionType) and not hasattr(start, "__wrapped__"):
            made.__init__ = _outermost(start, name)  # type: ignore[misc]
            for method, function in list(vars(made).items()):
                if isinstance(function, FunctionType) and not method.startswith("_") and not hasattr(function, "__wrapped__"):
                    setattr(made, method, _outermost(function, method))
        return made
    if isinstance(made, FunctionType):
        made = _outermost(made, name)
        made.__module__, made.__name__, made.__qualname__ = room, name, name  # pickled as what it is called
    return made


def _at_once(interrupt: KeyboardInterrupt) -> KeyboardInterrupt:
    """The interrupt without its sixty frames; HERMITEX_TRACEBACK=1 keeps them."""
    return interrupt if os.environ.get("HERMITEX_TRACEBACK") else interrupt.with_traceback(None)


def _outermost(function: Callable[..., Any], name: str = "") -> Callable[..., Any]:
    """A public function: interrupts have a short traceback, an unknown keyword or a missing argument is one line."""
    @wraps(function)
    def called(*values: Any, **keywords: Any) -> Any:
        __tracebackhide__ = True
        try:
            return function(*values, **keywords)
        except KeyboardInterrupt as interrupt:
            raise _at_once(interrupt) from None
        except TypeError as error:
            if not name or error.__traceback__ is None or error.__traceback__.tb_next is not None:  # of something inside
                raise
            from inspect import signature

            takes = {n: p for n, p in signature(function).parameters.items()
                     if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
            strange = [n for n in keywords if n not in takes]
            free = [n for n in list(takes)[len(values):] if n not in keywords]
            needed = [n for n, p in takes.items() if p.default is p.empty and n != "self"]
            if not strange and (missing := [n for n in needed if n in free]):
                call = ", ".join([*needed, "..."][:len(takes)])
                raise BadInput(f"{name} needs {' and '.join(missing)}: {name}({call})") from None
            if not strange:
                raise
        if (told := _ELSEWHERE.get((name, strange[0]))) is not None:
            raise BadInput(f"{name} takes no {strange[0]}: {told}")
        meant = [n for row in _ALIKE if strange[0] in row for n in free if n in row]
        raise UnknownName(strange[0], free, f"keyword of {name}", meant)

    return called


class AssumptionNeeded(HermitexError):
    """A sign or range of a symbol is not known and the answer depends on it."""

    def __init__(self, symbol: Any, need: str) -> None:
        self.symbol, self.need = symbol, need
        name = _plain(symbol)
        super().__init__(f"{name} must be known to be {need}; declare it, e.g. symbols={{'{name}': '{need}'}}")


class NoClosedForm(HermitexError):
    """No exact rule applies; carries the reduced integral and the reason."""

    def __init__(self, integral: Any, reason: str, advice: str | None = None) -> None:
        self.integral, self.reason = integral, _plain(reason)
        advice = advice or "Numeric value: .evalf(20, subs={...})   Expansion: hx.expand(g, order=12, basis=...)"
        super().__init__(f"{_plain(integral)} has no closed form in the rule table: {self.reason}.\n  {advice}")


class Divergent(HermitexError):
    """The expectation does not exist (not absolutely convergent)."""

    def __init__(self, integral: Any, reason: str) -> None:
        self.integral, self.reason = integral, _plain(reason)
        super().__init__(f"{_plain(integral)} does not exist: {self.reason}")


class BudgetExceeded(HermitexError):
    """A budget of CPU seconds ran out; `used` is how many were used, `doing` the step that was not finished.

    `count`: how often a budget ran out so far. A result that was computed while it rises may be incomplete, and is not kept.
    """

    count: ClassVar[int] = 0

    def __init__(self, seconds: float, doing: str = "", used: float | None = None) -> None:
        BudgetExceeded.count += 1
        self.seconds, self.doing, self.used = seconds, doing, used
        spent = "" if used is None else f" ({used:.3g} used)"
        where = f" while {doing}" if doing else ""
        super().__init__(f"the budget of {seconds:g} CPU seconds ran out{spent}{where}; allow more with --budget SECONDS (budget=)")


class WorkExceeded(BudgetExceeded):
    """A search took more steps than allowed; the caller tries another method."""

    def __init__(self, steps: float, doing: str = "") -> None:
        super().__init__(steps, doing)
        self.args = (f"more than {steps:g} steps of work" + (f" while {doing}" if doing else ""),)


class NotConverged(HermitexError):
    """A solve ended above its tolerance; carries the last state as `.solution`."""

    def __init__(self, solution: Any, message: str) -> None:
        self.solution = solution
        super().__init__(_plain(message))


class SelfTestFailed(HermitexError):
    """A generated file does not reproduce the numbers of the session, so it was not written."""


class MissingExtra(HermitexError):
    """An optional library is needed for what was asked."""

    def __init__(self, library: str, extra: str, purpose: str) -> None:
        self.library, self.extra = library, extra
        super().__init__(f"{purpose} needs {library}: pip install 'hermitex[{extra}]'")


def _restored(kind: type[HermitexError], args: tuple[Any, ...]) -> HermitexError:
    """An error as it was, without its constructor."""
    error = kind.__new__(kind, *args)
    error.args = args
    return error
