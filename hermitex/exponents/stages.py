"""alpha_c in words: a value for each stage, the exact form where it is known, and of a number the digits that hold."""

from __future__ import annotations

from math import floor, log10
from typing import TYPE_CHECKING, Any

from sympy import Expr

if TYPE_CHECKING:
    from hermitex.exponents.weak_recovery import Threshold

MOST = 12
_SHORT = 10  # in a table


def digits_that_hold(value: Any, error: Any = None, most: int = MOST) -> str:
    """A number with as many digits as an absolute error leaves it, `most` at most.

    >>> digits_that_hold(1.2345678901234, 2e-3), digits_that_hold(0.25, 0)
    ('1.23', '0.25')
    """
    value, error = float(value), float(error or 0)
    digits = most if not error or not value else max(1, min(most, floor(-log10(2*error/abs(value))) + 1))
    # As 1.234567: an exponent would come sooner with few digits.
    return f"{value:.{digits}g}" if abs(value) < 10**digits else f"{value:.{most}g}"


def stage_values(t: Threshold, most: int = MOST) -> list[tuple[str, Expr | None, bool]]:
    """(number as text, exact form, whether it is a lower bound) of each stage in order.

    [] where nothing is known, "infinite" for a hard stage.

    Stages that follow at the same value are told once.
    """
    if not t.stages:
        single = "infinite" if t.kind == "hard" else None if t.alpha_c is None else digits_that_hold(t.alpha_c, t.error, most)
        return [] if single is None else [(single, t.exact, False)]
    found: list[tuple[str, Expr | None, bool]] = []
    for stage in t.stages:
        last = stage is t.stages[-1]
        value = stage["alpha_c"]
        if value is None:
            told: tuple[str, Expr | None, bool] = ("infinite" if t.kind == "hard" and last else "not reached", None, False)
        else:
            told = (digits_that_hold(value, stage.get("error"), most), stage.get("exact"), stage.get("bound", False))
        if not found or found[-1][0] != told[0]:
            found.append(told)
    return [] if all(text == "not reached" for text, *_ in found) else found


def alpha_text(t: Threshold, *, short: bool = False) -> str:
    """Every stage's threshold on one line: 0.575166352289 then >= pi**2/4 = 2.46740110027; "-" where nothing is known.

    ">=" stands before a value that holds once the directions of the stages before are perfectly known.

    short : a brief exact form without its number, or the number.
    """
    from hermitex.symbolic.parsing import to_text

    words = []
    for number, exact, bound in stage_values(t, _SHORT if short else MOST):
        least = ">= " if bound else ""
        form = "" if exact is None else to_text(exact)
        if short:
            number = "inf" if number == "infinite" else number
            words.append(least + (form if form and len(form) < 12 else number))
        else:
            words.append(least + (number if form in ("", number) else f"{form} = {number}"))
    return " then ".join(words) or "-"


def alpha_words(t: Threshold) -> str:
    """The threshold as it ends a line."""
    if t.kind == "easy" and t.alpha_c is not None:
        return f", alpha_c = {alpha_text(t)}"
    return ", alpha_c = 0" if t.kind == "trivial" else ""
