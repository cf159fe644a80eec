"""A function of Python or SymPy as a formula: f(z) of one argument, f(z1, z2) of two, or the normals it names itself."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from sympy import Lambda

from hermitex import symbols
from hermitex.errors import BadInput, HermitexError


def arguments(function: Any) -> list[Any]:
    """The standard normals that a function is applied to: by its own names where these are normals, else z, or z1, z2, ...

    >>> arguments(lambda x: x), arguments(lambda x, y: x), arguments(lambda z2, z1: z1)
    ([z], [z1, z2], [z2, z1])
    """
    names = [str(s) for s in function.signature] if isinstance(function, Lambda) else _names(function)
    if len(set(names)) == len(names) and all(map(symbols.is_normal_name, names)):
        return [symbols.normal(n) for n in names]
    return [symbols.z] if len(names) == 1 else [symbols.normal(f"z{k}") for k in range(1, len(names) + 1)]


def _names(function: Any) -> list[str]:
    """The arguments that must be given; a function that does not tell takes one."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return ["z"]
    asked = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty]
    return asked or ["z"]


def name_of(function: Any) -> str:
    """What a message calls a function."""
    name = getattr(function, "__name__", None) or getattr(function, "name", None)
    return "the function" if not isinstance(name, str) or name == "<lambda>" else name[:60]


def applied(function: Callable[..., Any]) -> Any:
    """The value of a function at standard normals, unevaluated.

    Raises
    ------
    BadInput : it computes numbers (NumPy, math), or branches on its argument; one line with what to write instead.

    Examples
    --------
    >>> applied(lambda x, y: x*y)
    z1*z2
    """
    if numeric := _numeric(function):
        raise _takes_numbers(function, numeric)
    given = arguments(function)
    try:
        found = function(*given)
    except HermitexError:
        raise
    except Exception as error:  # any error of a user's function is reported in one line
        said = " ".join(str(error).split())[:120]
        if "ufunc" in said or "numpy" in said or "Cannot convert expression to float" in said or _ndarray(error):
            raise _takes_numbers(function, "NumPy" if "ufunc" in said or "numpy" in said else "math") from None
        if "truth value" in said:
            raise BadInput(f"{name_of(function)} branches on its argument, which is a formula here; write "
                           "sympy.Piecewise((a, z > 0), (b, True)) for `a if z > 0 else b`") from None
        raise BadInput(f"{name_of(function)} of {', '.join(map(str, given))} raises {type(error).__name__}: {said}; "
                       "a function takes SymPy symbols here and returns a formula") from None
    if numeric := _numeric(found):
        raise _takes_numbers(function, numeric)
    return found


def _ndarray(error: Exception) -> bool:
    return type(error).__module__.startswith("numpy")


def _numeric(thing: Any) -> str:
    """The library of numbers that a function or a value comes from; "" for none."""
    for owner in (thing, type(thing)):
        head = str(getattr(owner, "__module__", "") or "").split(".")[0]
        if head in _LIBRARIES:
            return _LIBRARIES[head]
    return ""


_LIBRARIES = {"numpy": "NumPy", "scipy": "SciPy", "math": "math", "cmath": "math", "torch": "torch", "jax": "jax", "jaxlib": "jax"}


def _takes_numbers(function: Any, library: str) -> BadInput:
    name = name_of(function)
    known = name if name.isidentifier() and name.isascii() and name not in ("the function",) else "tanh"
    return BadInput(f"{name} computes numbers ({library}), and a formula is needed: write the text '{known}(z)', "
                    f"or a function of SymPy symbols such as lambda z: sympy.{known}(z)")
