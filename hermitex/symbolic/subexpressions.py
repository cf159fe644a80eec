"""Each part of a formula once: derivatives hold the same parts many times, and SymPy goes through all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sympy import Basic, Expr, S, Symbol


def parts(e: Basic) -> Iterator[Basic]:
    """The different parts of an expression, itself first.

    >>> from sympy.abc import x, y
    >>> len(list(parts((x + y)**2/(x + y + 1))))
    10
    """
    stack, seen = [e], {e}
    while stack:
        yield (part := stack.pop())
        for a in part.args:
            if a not in seen:
                seen.add(a)
                stack.append(a)


def swapped(e: Basic, rule: Mapping[Any, Any]) -> Any:
    """`e.xreplace(rule)`.

    >>> from sympy.abc import x, y
    >>> swapped((x + y)**2/(x + 1), {x: y})
    4*y**2/(y + 1)
    """
    known = dict(rule)

    def of(part: Any) -> Any:
        if part in known or not part.args:
            return known.get(part, part)
        if type(part)._xreplace is not Basic._xreplace:  # what binds letters knows what may be put in
            found = part.xreplace(rule)
        else:
            args = [of(a) for a in part.args]
            found = part if all(a is b for a, b in zip(args, part.args, strict=True)) else part.func(*args)
        known[part] = found
        return found

    return of(e)


def at_numbers(e: Expr, numbers: Mapping[Symbol, Expr]) -> Expr:
    """An expression at numbers; NaN where it has none there."""
    try:
        return e.subs(numbers)
    except (ValueError, TypeError):  # Max of what is infinite: no number either
        return S.NaN
