"""F' - F: how far generated formulas move when what they add up is off by rounding.

    a + b - c  ->  a + b - c + d (|a| + |b| + |c|),    f(a)  ->  f(a + d |a|),    d between one and two times OFF

The terms of a sum, and what a function is taken of, were rounded where they were computed; what is read, nodes and whole
numbers were not. All sums are off in one direction, at all nodes, so that what they lose does not cancel. An exponent that
is a sum is off by more than its terms are, upward: exp of what rounding has moved to -1e6 is 0, and so it is further down.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping
from textwrap import wrap
from typing import Any

from sympy import Add, Expr, Function, Symbol, preorder_traversal
from sympy.core.function import ArgumentIndexError

from hermitex.kernels.cancellation import of_one_sign
from hermitex.kernels.lowered import Lowered
from hermitex.kernels.recognition import exp_erfc

OFF = 2.0**-40  # many times what rounding is, and so little that everything moves in proportion
GOLDEN = 0.6180339887498949  # the golden section: no two sums are off by the same part
_WIDTH = 116  # characters of a line of generated code, as in kernels/source
_FUNCTION = 4  # roundings in a function's value
#: What takes its arguments as they are: it chooses among them, adds them up, or lays them out.
_PLAIN = frozenset({"where", "maximum", "minimum", "abs", "sign", "heaviside", "square", "average", "total", "nonzero", "float64",
                    "broadcast_arrays", "ravel", "logical_not"})
_EXPONENT = frozenset({"exp_erfc", "exp_erfi", "exp_erf"})  # of (a, b), whose exponent is a difference of |a| and |b|^2
_TAILS = frozenset({"erfc", "erfcx", "tame_erfc", "ndtr", "log_ndtr"})  # far out the rounding even of what is given counts


def may_cancel(lowered: Lowered) -> bool:
    """Whether digits may be lost: in a sum whose terms may differ in sign, or in a function of what is rounded (log E near 1)."""
    reach = lowered.reach()
    for e in (*(s.expr for s in lowered.statements), *lowered.outputs):
        along = any(reach.get(v) for v in e.free_symbols)
        for part in preorder_traversal(e):
            if isinstance(part, exp_erfc) or (isinstance(part, Add) and not of_one_sign(part)):
                return True
            if isinstance(part, Function) and not along and any(not a.is_Atom or a in reach for a in part.args):
                return True
    return False


def perturbed_source(source: str) -> str:
    """The source of generated functions with their sums off by rounding; sums over arrays stand above what calls them.

    >>> print(perturbed_source("def f(s):\\n    x = s['x']\\n    return x*x - 1"))
    def f(s):
        x = s['x']
        return off(1.47e-12, x * x, -1)
    """
    tree = ast.parse(source)
    given: dict[str, list[bool]] = {}
    for node in reversed(tree.body):
        if isinstance(node, ast.FunctionDef):
            _Rounded(node, given).visit(node)
    return "\n\n\n".join(_written(node) for node in ast.fix_missing_locations(tree).body)


def scale_perturbation(functions: Mapping[str, Any], part: float) -> dict[str, Any]:
    """The functions by which sums and exponents are off, with so small a part of how far."""
    def less(function: Callable[..., Any], place: int) -> Callable[..., Any]:
        return lambda *values: function(*values[:place], part*values[place], *values[place + 1:])

    return {n: less(functions[n], place) for n, place in (("off", 0), ("exp_off", 0), ("far_off", 2)) if n in functions}


def _written(function: ast.stmt) -> str:
    """Its source with long lines folded: a line between brackets may end at any space that stands in no text."""
    assert isinstance(function, ast.FunctionDef)
    lines = [f"def {function.name}({ast.unparse(function.args)}):"]
    for node in function.body:
        text = ast.unparse(node)
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Dict):
            items = zip(map(ast.unparse, filter(None, node.value.keys)), map(ast.unparse, node.value.values), strict=True)
            lines += ["    return {", *(part for key, value in items for part in _folded(f"{key}: {value},", 8)), "    }"]
        elif isinstance(node, ast.Assign) and len(text) > _WIDTH:
            head, _, formula = text.partition(" = ")
            lines += [f"    {head} = (", *_folded(formula, 8), "    )"]
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            lines.append(f'    """{node.value.value!s}"""')
        else:
            lines.append(f"    {text}")
    return "\n".join(lines)


def _folded(text: str, indent: int) -> list[str]:
    joined = re.sub(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", lambda found: found[0].replace(" ", "\0"), text)
    lines = wrap(joined, _WIDTH, initial_indent=" "*indent, subsequent_indent=" "*(indent + 4), break_long_words=False,
                 break_on_hyphens=False)
    return [line.replace("\0", " ") for line in lines]


class _Rounded(ast.NodeTransformer):
    """One function. Each sum and argument has a part of its own; what stands twice is off by the same.

    given : {sum over an array: which of the values it takes are exact}, of those that were called
    """

    def __init__(self, function: ast.FunctionDef, given: dict[str, list[bool]]) -> None:
        self.parts = dict[str, int]()
        names = [a.arg for a in function.args.args]  # of a sum: quad, block_size, and its values
        exact = given.get(function.name, [True]*len(names))
        self.exact = {n for n, good in zip(names[len(names) - len(exact):], exact, strict=True) if good} | set(names[:2])
        assigned = [node for node in ast.walk(function) if isinstance(node, ast.Assign)]
        read = [t for a in assigned if _is_read(a.value) for t in a.targets]
        self.exact |= {n.id for t in read for n in ast.walk(t) if isinstance(n, ast.Name)}
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and _name(node.func) == "summed":
                given[_name(node.args[0])] = [self._is_exact(a) for a in node.args[6:]]

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """A sum, but of what is exact: then it is as exact as one rounding leaves it."""
        terms = _terms(node)
        if len(terms) > 1 and not all(map(self._is_exact, terms)):
            return ast.Call(ast.Name("off"), [ast.Constant(self._part(node)), *map(self.visit, terms)], [])
        self.generic_visit(node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """What a function is taken of."""
        name = _name(node.func)
        if name == "summed":
            node.args[6:] = [self.visit(a) for a in node.args[6:]]
        elif name == "not_negative":  # it takes less than OFF for rounding
            return ast.Call(ast.Name("cleared"), [self.visit(node.args[0]), node.args[1]], [])
        elif name == "maximum" and (sums := [a for a in node.args if len(_terms(a)) > 1]) and any(map(_is_zero, node.args)):
            return ast.Call(ast.Name("cleared"), [self.visit(sums[0]), *_terms(sums[0])], [])  # a root of it would move by far more
        elif name in _EXPONENT:
            a, b = node.args
            value = ast.Call(node.func, [ast.Call(ast.Name("raised"), [a, b], []), b], [])
            return ast.Call(ast.Name("far_off"), [value, a, ast.Constant(self._part(node))], [])
        elif name == "exp" and len(terms := _terms(node.args[0])) > 1 and not all(map(self._is_exact, terms)):
            return ast.Call(ast.Name("exp_off"), [ast.Constant(self._part(node.args[0])), *map(self.visit, terms)], [])
        elif name in _PLAIN or name.startswith(("prox_", "fields_")):
            node.args = [self.visit(a) for a in node.args]
        elif name != "spread":  # nodes are where they are
            node.args = [self._off(a, tail=name in _TAILS) for a in node.args]
        return node

    def _off(self, e: ast.expr, *, tail: bool) -> ast.expr:
        """What a function is taken of."""
        if isinstance(e, ast.Constant) or (self._is_exact(e) and not tail):
            return e
        moved = self.visit(e)
        if isinstance(moved, ast.Call) and _name(moved.func) == "off":  # a sum is no larger than its terms
            return moved
        return ast.Call(ast.Name("off"), [ast.Constant(self._part(e)), moved], [])

    def _part(self, e: ast.expr) -> float:
        """By what part it is off: each formula by another one, at all its places by the same."""
        k = self.parts.setdefault(ast.unparse(e), len(self.parts) + 1)
        return float(f"{(1 + k*GOLDEN % 1)*OFF:.3g}")

    def _is_exact(self, e: ast.expr) -> bool:
        """Is it known to its last digit, or a power of two times what is?"""
        bits = 2.0**20  # a number with so many after the point is what it was meant to be
        if isinstance(e, ast.Constant):
            return isinstance(e.value, int | float) and float(e.value*bits).is_integer()
        if isinstance(e, ast.Name):
            return e.id in self.exact
        if isinstance(e, ast.UnaryOp):
            return self._is_exact(e.operand)
        if isinstance(e, ast.BinOp) and isinstance(e.op, ast.Mult | ast.Div):
            if _is_power_of_two(e.right):
                return self._is_exact(e.left)
            return isinstance(e.op, ast.Mult) and _is_power_of_two(e.left) and self._is_exact(e.right)
        return False


def _is_read(e: ast.expr) -> bool:
    """A number of `s`, or nodes and weights."""
    if isinstance(e, ast.Tuple):
        return all(map(_is_read, e.elts))
    return isinstance(e, ast.Subscript) or (isinstance(e, ast.Call) and _name(e.func) == "spread")


def _terms(e: ast.expr) -> list[ast.expr]:
    """Of a + b - c: a, b, -c."""
    if not isinstance(e, ast.BinOp) or not isinstance(e.op, ast.Add | ast.Sub):
        return [e]
    return [*_terms(e.left), e.right if isinstance(e.op, ast.Add) else ast.UnaryOp(ast.USub(), e.right)]


def _is_zero(e: ast.expr) -> bool:
    return isinstance(e, ast.Constant) and e.value == 0


def _is_power_of_two(e: ast.expr) -> bool:
    return isinstance(e, ast.Constant) and isinstance(e.value, int | float) and abs(math.frexp(e.value)[0]) == 0.5


def _name(e: ast.expr) -> str:
    return e.id if isinstance(e, ast.Name) else getattr(e, "attr", "")


def operations(lowered: Lowered) -> float:
    """How many roundings, each of half a last digit, a relative error of the first output may be made of, sums without loss.

    What sums lose, and what functions make of a rounded argument, is measured with `perturbed_source`; numbers are not off there.

    >>> from hermitex.kernels.lowering import lower
    >>> from sympy import Rational, exp
    >>> [round(operations(lower([e]))) for e in (Rational(3, 2), Rational(1, 3), exp(Rational(-700, 3)))]
    [0, 1, 238]
    """
    known: dict[Symbol, float] = {}
    for statement in lowered.statements:
        known[statement.target] = _FUNCTION if statement.axes else _roundings(statement.expr, known)
    return _roundings(lowered.outputs[0], known)


def _roundings(e: Expr, known: Mapping[Symbol, float]) -> float:
    if e.is_Symbol:
        return known.get(e, 0.0)
    if e.is_Rational:
        return float(e.q & (e.q - 1) != 0)
    if not e.args:
        return 1.0
    below = [_roundings(a, known) for a in e.args if isinstance(a, Expr)]
    if e.is_Add or e.is_Mul:
        return (sum(below) if e.is_Mul else max(below)) + len(below) - 1
    if e.is_Pow and e.exp.is_Rational:
        return float(abs(e.exp))*below[0] + max(1.0, float(abs(e.exp)) - 1)
    return _FUNCTION + max(below, default=0.0) + (_conditioned(e) if e.is_number else 0.0)


def _conditioned(e: Expr) -> float:
    """|c f'(c)/f(c)| of a function of a number."""
    try:
        return float(Add(*(abs(c*e.fdiff(k)/e) for k, c in enumerate(e.args, start=1) if not c.is_Integer)).evalf(5))
    except (ArgumentIndexError, TypeError, AttributeError, ValueError):
        return 0.0
