"""What a page says one types, 'hx.mu(sigma, 1).node', is what is compared: the text is read and evaluated.

Names, attributes, calls, entries and arithmetic. `...` among the arguments of a call are arguments that a function fills in:
then the whole text is a function of them.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from typing import Any

from hermitex.errors import BadInput, first_line

_READ = (ast.Expression, ast.Constant, ast.Name, ast.List, ast.Tuple, ast.Dict, ast.Attribute, ast.Subscript, ast.Call, ast.keyword,
         ast.UnaryOp, ast.BinOp, ast.operator, ast.USub, ast.Load)


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
        tree = ast.parse(text.strip(), mode="eval")
        if strange := next((n for n in ast.walk(tree) if not isinstance(n, _READ)), None):
            raise BadInput(f"it holds {type(strange).__name__}")
        filled = [_leave_open(n) for n in ast.walk(tree) if isinstance(n, ast.Call)]
        if any(filled):
            tree.body = ast.Lambda(ast.arguments([], [], ast.arg("more"), [], [], ast.arg("others"), []), tree.body)
        code = compile(ast.fix_missing_locations(tree), text, "eval")
        return eval(code, {"__builtins__": {}, "hx": sys.modules["hermitex"], **letters})
    except Exception as error:   # of whatever the text calls
        raise BadInput(f"{text} cannot be typed: {first_line(error)}") from error


def _leave_open(call: ast.Call) -> bool:
    """Replace `...` among the arguments of a call by those that the function of the whole text is given; False if there is none."""
    args, given = [a for a in call.args if not _is_open(a)], [k for k in call.keywords if not _is_open(k.value)]
    if len(args) == len(call.args) and len(given) == len(call.keywords):
        return False
    call.args = [*args, ast.Starred(ast.Name("more", ast.Load()), ast.Load())]
    call.keywords = [*given, ast.keyword(None, ast.Name("others", ast.Load()))]
    return True


def _is_open(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...
