"""[[1, 0, 0], [0, 1, 2]] is z1, z2 + 2*z3: directions and staircases in words, numerical rows as short fractions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from sympy import Add, Expr, Float, Rational, S, Symbol

from hermitex.symbolic.gaussian import Expectation


def staircase_words(stages: Sequence[dict[str, Any]], variables: Sequence[str],
                    numbers: Mapping[Expr, float | None] | None = None) -> str:
    """Orders and directions in a line; `numbers` as in `directions_words`.

    >>> staircase_words([{"order": 1, "directions": [[1, 1]]}, {"order": 2, "directions": [[1, -1]]}], ("z1", "z2"))
    '1: z1 + z2;  2: z1 - z2'
    """
    return ";  ".join(f"{s['order']}: {directions_words(s['directions'], variables, numbers)}" for s in stages)


def directions_words(rows: Sequence[Sequence[Any]], variables: Sequence[str],
                     numbers: Mapping[Expr, float | None] | None = None, *, most: float = inf) -> str:
    """The linear forms of some rows; `numbers` are those of integrals without closed form, as far as they were found.

    most : characters of a form, beyond which its coefficients are rounded

    >>> directions_words([[1, 0, 0], [0, 1, 2]], ("z1", "z2", "z3"))
    'z1, z2 + 2*z3'
    """
    letters = [Symbol(v, real=True) for v in variables]
    forms = [Add(*(S(x)*v for x, v in zip(row, letters, strict=True))) for row in rows]
    from hermitex.symbolic.parsing import to_text

    return ", ".join(said if f.count_ops() < 30 and not f.has(Expectation) and len(said := to_text(f)) <= most else
                     _short(row, variables, numbers) for f, row in zip(forms, rows, strict=True))


def _short(row: Sequence[Any], variables: Sequence[str], numbers: Mapping[Expr, float | None] | None) -> str:
    """Coefficients that are long, or integrals without closed form, as numbers; those whose number is not had, as they are."""
    from hermitex.exponents.directions.exact_entries import entry_number
    from hermitex.symbolic.parsing import to_text

    found = [numbers.get(x) if numbers is not None and S(x).has(Expectation) else entry_number(S(x)) for x in row]
    terms = ((to_text(x) if n is None else _few_digits(n), v) for x, n, v in zip(row, found, variables, strict=True) if x != 0)
    return " + ".join(v if c == "1" else f"{c}*{v}" for c, v in terms).replace("+ -", "- ")


def _few_digits(x: Any) -> str:
    """Six digits, or as many more as it takes not to pass for a whole number."""
    return next((s for n in (6, 9, 12) if "." in (s := f"{float(x):.{n}g}") or float(x) == float(s)), f"{float(x):.12g}")


def short_rows(rows: Any) -> list[list[Expr]]:
    """A reduced basis of the span of numerical rows: small fractions where they are near, else six digits.

    >>> short_rows([[0.7071067811865476, 0.7071067811865476]])
    [[1, 1]]
    """
    import numpy as np

    rest = [np.array(row, dtype=float) for row in rows]
    done: list[tuple[int, Any]] = []
    while rest:
        at = max(range(len(rest)), key=lambda i: np.abs(rest[i]).max())
        row = rest.pop(at)
        size = np.abs(row).max()
        if size < 1e-8:
            break
        pivot = int(np.flatnonzero(np.abs(row) > size * (1 - 1e-6))[0])
        row = row / row[pivot]
        rest = [r - r[pivot] * row for r in rest]
        done = [*((p, r - r[pivot] * row) for p, r in done), (pivot, row)]
    return [[_short_number(float(x)) for x in row] for _, row in sorted(done, key=lambda d: d[0])]


def _short_number(x: float) -> Expr:
    near = Rational(x).limit_denominator(24)
    return near if abs(float(near) - x) < 1e-7 else Float(f"{x:.6g}", 6)  # rounded: not to be read as a fraction
