"""What a page says one types, 'hx.mu(sigma, 1).node', is what is compared: the text is read and evaluated.

Names, attributes, calls, entries and arithmetic. `...` among the arguments of a call are arguments that a function fills in:
then the whole text is a function of them, which calls and goes on as the text does.
"""

from __future__ import annotations

import ast
import operator
import sys
from collections.abc import Callable, Mapping
from typing import Any

from hermitex.errors import BadInput, first_line

_ARITHMETIC: Mapping[type, Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv, ast.Pow: operator.pow,
    ast.USub: operator.neg}


class Unfilled:
    """A call whose arguments are not all given, and what is done with what it returns."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self.call = call

    def then(self, more: Callable[[Any], Any]) -> Unfilled:
        """The same, and after it `more`."""
        return Unfilled(lambda *args, **given: more(self.call(*args, **given)))


def typed_object(text: str, letters: Mapping[str, Any]) -> Any:
    """What `text` gives, with hx for the package and the letters of a page; a function where `...` is left to fill in.

    Raises
    ------
    BadInput : it cannot be read, holds a name that is unknown, or what it calls refuses.

    Examples
    --------
    >>> import hermitex as hx
    >>> typed_object('hx.He(2, z)', {"z": hx.symbols.z})
    z**2 - 1
    >>> typed_object('hx.He(2, ...)', {})(hx.symbols.z)
    z**2 - 1
    """
    try:
        found = _value(ast.parse(text, mode="eval").body, {"hx": sys.modules["hermitex"], **letters})
    except Exception as error:   # of whatever the text calls
        raise BadInput(f"{text} cannot be typed: {first_line(error)}") from error
    return found.call if isinstance(found, Unfilled) else found


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """The value of a node."""
    def of(one: ast.expr) -> Any:
        return _value(one, names)

    match node:
        case ast.Constant():
            return node.value
        case ast.Name() if node.id in names:
            return names[node.id]
        case ast.List() | ast.Tuple():
            return [of(e) for e in node.elts]
        case ast.Dict():
            return {of(k): of(v) for k, v in zip(node.keys, node.values, strict=True) if k is not None}
        case ast.Attribute():
            return _after(of(node.value), lambda e: getattr(e, node.attr))
        case ast.Subscript():
            return _after(of(node.value), lambda e: e[of(node.slice)])
        case ast.UnaryOp() if type(node.op) in _ARITHMETIC:
            return _after(of(node.operand), _ARITHMETIC[type(node.op)])
        case ast.BinOp() if type(node.op) in _ARITHMETIC:
            left, right = of(node.left), of(node.right)
            return _after(right, lambda e: _ARITHMETIC[type(node.op)](left, e))
        case ast.Call():
            args, given = [of(a) for a in node.args], {k.arg: of(k.value) for k in node.keywords if k.arg}
            return _after(of(node.func), lambda call: _called(call, args, given))
    raise BadInput(f"it cannot be read from {ast.unparse(node)} on")


def _called(call: Callable[..., Any], args: list[Any], given: dict[str, Any]) -> Any:
    """The call, or a function of the arguments at `...`."""
    if not any(e is ... for e in (*args, *given.values())):
        return call(*args, **given)
    fixed, known = [e for e in args if e is not ...], {k: v for k, v in given.items() if v is not ...}
    return Unfilled(lambda *more, **others: call(*fixed, *more, **known, **others))


def _after(one: Any, more: Callable[[Any], Any]) -> Any:
    """`more` of it, now or once it is filled in."""
    return one.then(more) if isinstance(one, Unfilled) else more(one)
