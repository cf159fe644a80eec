"""alpha_c, a value for each stage, and in words: the exact form where it is known, and of a number the digits that hold."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, isfinite, log10
from typing import Any, NamedTuple

from sympy import Expr

from hermitex.show.display import Shown, latex
from hermitex.show.display import number as number_latex
from hermitex.symbolic.arithmetic import mpf
from hermitex.symbolic.parsing import to_text
from hermitex.symbolic.text.plain_data import plain

MOST = 12  # digits of a threshold in words: alpha_c claims ten
NO_LABEL = "the label does not depend on z: no exponent exists"
NONE_EXISTS = "so none exists"  # in what a note says of the information exponent and the leap


@dataclass(frozen=True)
class Threshold(Shown):
    """alpha_c (None: infinite or not found), its exact form where there is one, an error bound, and notes."""

    kind: str | None
    alpha_c: mpf | None = None
    exact: Expr | None = None
    error: mpf | None = None
    notes: tuple[str, ...] = ()
    stages: tuple[dict[str, Any], ...] = ()  # {alpha_c, directions, conditional, bound, reached, method}, in order
    method: str = ""  # the mechanism that found alpha_c

    def latex(self) -> str:
        """alpha_c: exact where it is known, then the number."""
        if self.kind == "hard" and len(self.stages) < 2:
            return r"\alpha_c = \infty"
        return r"\alpha_c = " + found if (found := alpha_latex(self)) else r"\alpha_c \text{ undetermined}"

    def to_dict(self) -> dict[str, Any]:
        """class, alpha_c, alpha_c_exact, error, method and notes; what does not exist is None."""
        return dict(plain({"class": self.kind, "alpha_c": self.alpha_c, "alpha_c_exact": self.exact, "error": self.error,
                           "method": self.method or None, "notes": list(self.notes)}))

    def __repr__(self) -> str:
        if self.kind != "easy":
            return f"Threshold({self.kind or 'undetermined'})"
        told = alpha_text(self)
        return f"Threshold(easy, alpha_c = {'not reached' if told == '-' else told})"


def digits_that_hold(value: Any, error: Any = None, most: int = MOST) -> str:
    """A number with as many digits as an absolute error leaves it, `most` at most.

    >>> digits_that_hold(1.2345678901234, 2e-3), digits_that_hold(0.25, 0)
    ('1.23', '0.25')
    """
    value, error = float(value), float(error or 0)
    digits = most if not error or not value else max(1, min(most, floor(-log10(2*error/abs(value))) + 1))
    # As 1.234567: an exponent would come earlier with few digits.
    return f"{value:.{digits}g}" if abs(value) < 10**digits else f"{value:.{most}g}"


class Told(NamedTuple):
    """The threshold of a stage in words: its number, its exact form, whether it is a lower bound, and where it is reached then."""

    number: str
    exact: Expr | None = None
    bound: bool = False
    reached: str = ""
    error: str = ""  # of a number without an exact form


def stage_values(t: Threshold, most: int = MOST) -> list[Told]:
    """The lines about each stage in order.

    [] where nothing is known, "infinite" for a hard stage.

    Stages that follow at the same value share one line.
    """
    if not t.stages:
        single = "infinite" if t.kind == "hard" else None if t.alpha_c is None else digits_that_hold(t.alpha_c, t.error, most)
        return [] if single is None else [Told(single, t.exact, error=error_text(t.error, t.exact))]
    found: list[Told] = []
    for stage in t.stages:
        last = stage is t.stages[-1]
        value = stage["alpha_c"]
        if value is None:
            told = Told("infinite" if t.kind == "hard" and last else "not reached")
        else:
            told = Told(digits_that_hold(value, stage.get("error"), most), stage.get("exact"), stage.get("bound", False),
                        reached_text(stage, most), error_text(stage.get("error"), stage.get("exact")))
        if not found or found[-1].number != told.number:
            found.append(told)
    return [] if all(told.number == "not reached" for told in found) else found


def error_text(error: Any, exact: Any = None) -> str:
    """A bound on an error with two digits, rounded up; empty for a value that is exact.

    >>> error_text(5.81e-13), error_text(0)
    ('5.9e-13', '')
    """
    if not error or not isfinite(error) or exact is not None:
        return ""
    unit = 10.0**(floor(log10(error)) - 1)
    return f"{ceil(float(error)/unit)*unit:.2g}"


def reached_text(stage: dict[str, Any], most: int = MOST) -> str:
    """The alpha that reaches a stage whose threshold is a lower bound, with the digits that hold; empty if not known."""
    known = stage.get("bound") and stage.get("reached") is not None
    return digits_that_hold(stage["reached"], stage.get("reached_error"), most) if known else ""


def lower_bound(stage: int) -> str:
    """What a threshold says that follows others."""
    return (f"alpha_c of stage {stage} holds once the earlier directions are perfectly known: a lower bound on the "
            "transition unless their overlap is 1 at that alpha")


def alpha_text(t: Threshold, *, short: bool = False, absent: str = "-") -> str:
    """Every stage's threshold on one line: 0 then >= 1.43083366052, reached at 2.0523824; `absent` where nothing is known.

    ">=" precedes a value that holds once the directions of the earlier stages are perfectly known; AMP, which knows them in
    part, reaches those of the stage where it says so.

    short : a brief exact form without its number, or the number.
    """
    words = []
    shortest = 10  # digits that fit in a table
    for number, exact, bound, reached, error in stage_values(t, shortest if short else MOST):
        least, later = ">= " if bound else "", f", reached at {reached}" if reached else ""
        number += f" +- {error}" if error and not short else ""
        form = "" if exact is None else to_text(exact)
        if short:
            number = "inf" if number == "infinite" else number
            words.append(least + (form if form and len(form) < 12 else number) + later)
        else:
            words.append(least + (number if form in ("", number) else f"{form} = {number}") + later)
    return " then ".join(words) or absent


def alpha_latex(t: Threshold, *, short: bool = False) -> str:
    """The same as a formula; empty where nothing is known. short: the exact form where it is brief, else the number."""
    words = []
    for value, exact, bound, reached, error in stage_values(t, 10 if short else MOST):
        told = {"infinite": r"\infty", "not reached": r"\text{not reached}"}.get(value, value)
        if error and not short:
            told += rf" \pm {number_latex(float(error), 2)}"
        if exact is not None and latex(exact) != value and not (short and len(to_text(exact)) >= 12):
            told = latex(exact) if short else f"{latex(exact)} = {told}"
        words.append((rf"\ge {told}" if bound else told) + (rf" \text{{ (reached at }} {reached})" if reached else ""))
    return r" \text{ then } ".join(words)


def alpha_words(t: Threshold) -> str:
    """The threshold as it ends a line."""
    if t.kind == "easy" and t.alpha_c is not None:
        return f", alpha_c = {alpha_text(t)}"
    return ", alpha_c = 0" if t.kind == "trivial" else ""
