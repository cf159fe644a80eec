"""value -> JSON: numbers as numbers (to every digit asked), infinity "inf", exact values as text, absence null."""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Callable
from fractions import Fraction
from secrets import token_hex
from typing import Any

from hermitex.errors import AssumptionNeeded, BadInput, BudgetExceeded, HermitexError, NoClosedForm

# A number with more digits than a float holds travels through json.dumps as marked text and is unquoted after it; no text of
# a user's bears the mark of this process.
_MARK = f"\x00{token_hex(16)}:"
_MARKED = re.compile(rf'"\\u0000{_MARK[1:]}([-+.0-9eE]+)"')  # group 1 is the number without its mark


def plain(value: Any) -> Any:
    """`value` as what JSON can hold: exact expressions as text that `hermitex.parse` reads back, infinity as "inf"."""
    from hermitex.symbolic.text.plain_data import plain

    return plain(value, number=_float)


def number(value: Any, digits: int) -> Any:
    """An mpmath number as a JSON number of `digits` digits."""
    from hermitex.symbolic.arithmetic import mp

    if not mp.isfinite(value):
        return _float(float(value))
    if digits <= 15:
        return float(value)
    return _MARK + str(mp.nstr(value, digits, strip_zeros=False, min_fixed=-5, max_fixed=digits + 1))


def is_number(value: Any) -> bool:
    """True for what `number` gave."""
    return isinstance(value, float | int) or (isinstance(value, str) and value.startswith(_MARK))


def dumps(value: Any) -> str:
    """The JSON text of `value`; see `plain`.

    Examples
    --------
    >>> dumps({"alpha_c": float("inf"), "order": 3, "value": None})
    '{"alpha_c": "inf", "order": 3, "value": null}'
    """
    return _MARKED.sub(r"\1", json.dumps(plain(value), allow_nan=False))


def covariances(text: str) -> dict[tuple[str, str], str]:
    """What --cov says: the pairs of names, and the text of each number.

    >>> covariances("z1,z2=1/2; z1,z1=2")
    {('z1', 'z2'): '1/2', ('z1', 'z1'): '2'}
    """
    found: dict[tuple[str, str], str] = {}
    for part in filter(str.strip, text.split(";")):
        pair, equals, value = part.partition("=")
        names = [n.strip() for n in pair.split(",")]
        if not equals or len(names) != 2 or not all(n.isidentifier() for n in names):
            raise BadInput(f"--cov is written 'z1,z2=1/2; z1,z1=2', not {part.strip()[:60]!r}")
        if (names[0], names[1]) in found:
            raise BadInput(f"--cov says {names[0]},{names[1]} twice; give it once")
        found[names[0], names[1]] = value.strip()
    return found


def grid(text: str, name: str = "") -> list[Any]:
    """The values of the option `name`: ``0.5``, ``1/2,sqrt(2),inf`` or ``0.2:3:50`` (both ends, 50 points); decimals exactly as
    written, as Fractions.

    Examples
    --------
    >>> [str(v) for v in grid("0:1:5")]
    ['0', '1/4', '1/2', '3/4', '1']
    >>> [str(v) for v in grid("-1/2, 0.25, inf")]
    ['-1/2', '1/4', 'inf']
    """
    about = f"--{name}: " if name else ""
    if ":" not in text:
        return [_constant(part, text, about) for part in split_expressions(text)]
    parts = text.split(":")
    if len(parts) != 3 or not parts[2].strip().isdecimal():
        raise BadInput(f"{about}a range is written first:last:points, as 0.2:3:50, not {text[:60]!r}")
    first, last, points = _constant(parts[0], text, about), _constant(parts[1], text, about), int(parts[2])
    most = 100_000  # lines of a table; a larger table is a sweep
    if not 1 <= points <= most:
        raise BadInput(f"{about}a range has between 1 and {most} points, not {points}")
    if math.inf in (abs(first), abs(last)):
        raise BadInput(f"{about}a range has two finite ends, not {text[:60]!r}")
    return [first + (last - first) * Fraction(i, max(points - 1, 1)) for i in range(points)]


def _constant(part: str, text: str, about: str) -> Fraction | float:
    """A decimal, a fraction, inf, or a constant expression such as sqrt(2)."""
    if part.strip().lower() in ("inf", "+inf", "oo"):
        return math.inf
    try:
        # Fraction builds 10**exponent: a short text must not become a number of a million digits.
        if len(part) > 100 or abs(int(part.lower().partition("e")[2] or 0)) > 400:
            raise ValueError
        return Fraction(part.strip())
    except (ValueError, ZeroDivisionError):
        from hermitex.symbolic.parsing import parse

        with contextlib.suppress(HermitexError, TypeError, OverflowError):  # a TypeError of SymPy: a letter has no number
            if math.isfinite(value := float(parse(part))):
                return value
    where = f" in {text[:60]!r}" if part.strip() != text.strip() else ""
    raise BadInput(f"{about}{part.strip()[:40]!r}{where} is not a number; write 0.5, some as 0.2,0.9,3, or a range 0.2:3:50")


def _float(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value


def split_expressions(text: str) -> list[str]:
    """The expressions of an option that takes several: commas outside of brackets part them.

    Examples
    --------
    >>> split_expressions("relu, Max(z, -1)")
    ['relu', 'Max(z, -1)']
    """
    depth, parts = 0, [""]
    for c in text:
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    if len(parts) > 1 and not all(p.strip() for p in parts):
        raise BadInput(f"{text[:60]!r} has a comma with nothing on one side; write several as 1,2 or relu,tanh")
    return [p.strip() for p in parts]


def whole_number(text: str, name: str) -> int:
    """The value of an option that is a whole number, 400 or 4e2."""
    with contextlib.suppress(HermitexError):
        value = one_number(text, name)
        if math.isfinite(value) and value == int(value):
            return int(value)
    raise BadInput(f"--{name} is a whole number, not {text[:60]!r}")


def one_number(text: str, name: str) -> float:
    """The value of an option that is one number."""
    found = grid(text, name)
    if len(found) != 1:
        raise BadInput(f"--{name} is one number, not {text[:60]!r}")
    return float(found[0])


def given_numbers(args: Any, *names: str) -> dict[str, float]:
    """{name: number} of the options among `names` that were given."""
    return {n: one_number(text, n) for n in names if (text := getattr(args, n)) is not None}


def given_lists(args: Any, *names: str) -> dict[str, list[Any]]:
    """{name: its values} of the options among `names` that were given."""
    return {n: grid(text, n) for n in names if (text := getattr(args, n)) is not None}


def check_picture(path: str | None) -> None:
    """Refuse, before any work, a picture of an unknown format, or one that cannot be written there."""
    if path is None:
        return
    from hermitex.show.files import check_place
    from hermitex.show.plots import format_of

    try:
        format_of(path)
    except BadInput as error:
        raise BadInput(f"--plot: {error}") from None
    check_place(path)


def picture(path: str | None, draw: Callable[[], Any]) -> None:
    """Write what `draw` draws, where --plot was given."""
    if path is not None:
        from hermitex.show.plots import save

        save(draw(), path)


def closed_or_none(find: Callable[[], Any], name: str, notes: dict[str, list[str]], where: str = "") -> Any:
    """The closed form that `find` gives; None with its reason in `notes`, {reason: the names that it holds for}."""
    try:
        return find()
    except NoClosedForm as error:
        notes.setdefault(f"no closed form{where}: {error.reason}", []).append(name)
    except (AssumptionNeeded, BudgetExceeded) as error:
        notes.setdefault(str(error), []).append(name)
    return None


def reasons(notes: dict[str, list[str]]) -> list[str]:
    """The same in lines, "mu_1, mu_star: no closed form: ..."."""
    return [f"{', '.join(names)}: {why}" if names else why for why, names in notes.items()]


def digits(asked: int | None) -> int:
    """The number of digits asked for, 15 if none was."""
    if asked is None:
        return 15
    most = 10_000  # chosen by hand: more than a comparison needs
    if not 1 <= asked <= most:
        raise BadInput(f"--digits is between 1 and {most}, not {asked}")
    return asked


def digits_reached(value: Any, error: Any, asked: int) -> int:
    """How many of the `asked` significant digits an error bound leaves.

    Examples
    --------
    >>> digits_reached(2.0, 0.4e-6, 15)
    6
    >>> digits_reached(0.0, 1e-20, 15)
    15
    """
    from hermitex.symbolic.arithmetic import mp

    if not error:
        return asked
    # A value that may be zero has no significant digits; it is measured against 1.
    scale = abs(value) if abs(value) > error else 1
    return max(0, min(asked, int(mp.floor(-mp.log10(error / scale)))))
