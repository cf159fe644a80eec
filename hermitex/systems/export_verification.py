"""The text of a standalone file -> the same, if it is what was meant: read before it is written.

    docstrings       say what they were meant to say
    solve            takes the parameters, and hands them over by name
    CODE, START, ...  numbers, texts and the names of the solver
    the formulas     as in a kernel, see `kernels.whitelist`
    the rest         statement by statement that of the package
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import lru_cache

from hermitex.errors import HermitexError
from hermitex.kernels.whitelist import IMPORTED, check_functions, read

_DATA = ("EQUATIONS", "START", "REFERENCE")
_CALLED = ("Block", "Equations", "globals", "float")


def verify_text(text: str, own: str, *, docs: Mapping[str, str], arguments: Mapping[str, str]) -> str:
    """`text`, checked.

    Parameters
    ----------
    own : the file without anything that depends on a system: what the package itself brings
    docs : what the docstrings of the file ("") and of `solve` say
    arguments : {parameter: keyword of `solve`}, in order

    Raises
    ------
    HermitexError : it holds something else; it is not written.
    """
    ours, trusted = _package(own)
    parts = {getattr(n, "name", ""): n for n in ours.body}
    rest: list[ast.stmt] = []
    special: set[str] = set()
    for k, node in enumerate(read(text).body):
        target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
        if k == 0:
            _require(isinstance(node, ast.Expr) and _text(node.value) == docs[""], "its docstring")
        elif isinstance(node, ast.ImportFrom) and node.module == "scipy.special":
            special |= _special(node, ours)
        elif isinstance(node, ast.FunctionDef) and node.name == "solve":
            _solve(node, parts["solve"], docs["solve"], arguments)
        elif isinstance(target, ast.Name) and target.id in _DATA:
            _data(node.value)  # type: ignore[attr-defined]
        elif ast.dump(node) not in trusted:
            rest.append(node)
    check_functions(rest, special | {"average", "spread"} & set(parts))
    return text


@lru_cache(maxsize=16)
def _package(own: str) -> tuple[ast.Module, frozenset[str]]:
    """The tree of what the package brings, and its statements: the same for many systems."""
    tree = read(own)
    return tree, frozenset(map(ast.dump, tree.body))


def _special(node: ast.ImportFrom, ours: ast.Module) -> set[str]:
    """The functions of SciPy that it imports: for formulas, and for the solver itself."""
    own = {a.name for n in ours.body if isinstance(n, ast.ImportFrom) and n.module == "scipy.special" for a in n.names}
    names = {a.asname or a.name for a in node.names}
    _require(node.level == 0 and names <= IMPORTED | own, "its imports")
    return names & IMPORTED


def _solve(node: ast.FunctionDef, own: ast.AST, doc: str, arguments: Mapping[str, str]) -> None:
    """def solve(a, b, *, ...): numbers = {"a": a, "b": b}; the rest as in the package."""
    assert isinstance(own, ast.FunctionDef)
    given, (said, numbers, *body) = node.args, node.body
    _require([a.arg for a in given.args] == list(arguments.values()) and not given.defaults and not node.decorator_list,
          "the arguments of solve")
    _require(isinstance(said, ast.Expr) and _text(said.value) == doc, "the docstring of solve")
    values = numbers.value if isinstance(numbers, ast.Assign) else None
    _require(isinstance(values, ast.Dict) and [_text(k) for k in values.keys] == list(arguments)
          and [getattr(v, "id", None) for v in values.values] == list(arguments.values()), "the numbers of solve")
    given.args = own.args.args  # compared above
    _require([ast.dump(n) for n in (given, *body)] == [ast.dump(n) for n in (own.args, *own.body[2:])], "the body of solve")


def _data(value: ast.expr) -> None:
    """Constants in tuples, lists, dictionaries and calls of the solver's own classes."""
    for node in ast.walk(value):
        if isinstance(node, ast.Call):
            _require(isinstance(node.func, ast.Name) and node.func.id in _CALLED, "a call in its data")
        elif isinstance(node, ast.Name):
            _require(node.id in _CALLED, "a name in its data")
        else:
            _require(isinstance(node,
                                ast.Constant | ast.Tuple | ast.List | ast.Dict | ast.keyword | ast.UnaryOp | ast.USub | ast.Load
                             | ast.arguments), "its data")


def _text(node: ast.AST | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _require(good: bool, what: str) -> None:
    if not good:
        raise HermitexError(f"export: {what} would not be what was meant; nothing was written")
