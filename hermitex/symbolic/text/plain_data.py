"""value -> lists, texts and numbers: an expression as text that `parse` reads back, an array as lists, absence as None."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from hermitex.symbolic.text.expression_trees import to_text


def _as_it_is(value: float) -> Any:
    return value


def plain(value: Any, number: Callable[[float], Any] = _as_it_is) -> Any:
    """`value` as what `json.dumps` can write; `number` says what becomes of a float.

    Raises
    ------
    TypeError : a value of another kind.

    Examples
    --------
    >>> from hermitex.symbols import kappa
    >>> plain({"expr": kappa**2, "at": (1, 0.5), "none": None})
    {'expr': 'kappa**2', 'at': [1, 0.5], 'none': None}
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, Mapping):
        return {str(k): plain(v, number) for k, v in value.items()}
    if isinstance(value, float):
        return number(value)
    if hasattr(value, "tolist") and not hasattr(value, "free_symbols"):  # a NumPy array or scalar, without importing NumPy
        return plain(value.tolist(), number)
    if hasattr(value, "free_symbols"):
        return to_text(value)
    if hasattr(value, "_mpf_"):
        return number(float(value))
    if isinstance(value, Iterable):
        return [plain(v, number) for v in value]
    raise TypeError(f"{type(value).__name__} has no JSON form")
