"""expression <-> text and expression <-> JSON tree, exact both ways: 2*tanh(z) is ["Mul", 2, ["tanh", "z"]].

A tree is a number, the name of a field symbol, or a list of a head and its parts. The heads are a white list: reading a
tree builds nodes and runs nothing. A bound variable is ["Bound", k, i]: the i-th variable of the k-th expectation
outwards, so no name can be captured.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import sympy
from sympy import Dummy, Expr, Float, Function, Integer, Rational, S, Symbol
from sympy.core.function import AppliedUndef
from sympy.core.symbol import Str
from sympy.functions.elementary.piecewise import ExprCondPair
from sympy.logic.boolalg import Boolean
from sympy.printing.str import StrPrinter

from hermitex import symbols as field
from hermitex.errors import BadInput
from hermitex.symbolic import special
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.indexed_sums import ArraySum, Element, Index
from hermitex.symbolic.law_constraints import Condition, Lawful, apart, lawful
from hermitex.symbolic.text import bounded_powers
from hermitex.symbolic.undefined import AppliedPrime, prime

_CONSTANTS = {"pi": S.Pi, "e": S.Exp1, "EulerGamma": S.EulerGamma, "Catalan": S.Catalan, "GoldenRatio": S.GoldenRatio,
              "oo": S.Infinity, "-oo": S.NegativeInfinity, "True": S.true, "False": S.false}
_HEADS = """Add Mul Pow And Or Not ITE Abs Max Min sign Heaviside DiracDelta floor ceiling frac exp log
    sin cos tan cot sec csc asin acos atan acot asec acsc atan2 sinh cosh tanh coth sech csch asinh acosh atanh acoth
    erf erfc erfi erfinv erfcinv gamma loggamma polygamma digamma zeta uppergamma lowergamma Ei LambertW
    besseli besselj besselk bessely Derivative Subs Tuple""".split()  # noqa: SIM905
_RELATIONS = {"<": sympy.StrictLessThan, "<=": sympy.LessThan, ">": sympy.StrictGreaterThan, ">=": sympy.GreaterThan,
              "==": sympy.Equality, "!=": sympy.Unequality}
_SPECIAL = ("LogFactorial", "OwenT", "SignCorrelation", "ReErf", "ImErf")


class _Text(StrPrinter):
    """SymPy's text with e written exp(1), for E is the expectation."""

    def _print_Exp1(self, expr: Any) -> str:
        return "exp(1)"

    def _print_ITE(self, expr: Any) -> str:
        test, then, other = (f"({self._print(a)})" for a in expr.args)
        return f"({test} & {then}) | (~{test} & {other})"

    def derivative(self, f: Any, order: int) -> str:
        """The head of f^(n)(u), as `parse` reads it."""
        return f"Derivative({f.__name__})" if order == 1 else f"Derivative({f.__name__}, {order})"

    def _print_Subs(self, expr: Any) -> str:
        """One variable in the other, under names that nothing else in it bears."""
        taken = {s.name for s in expr.expr.free_symbols.difference(expr.variables) | expr.free_symbols}
        free = (Symbol(f"xi{k}") for k in count(1) if f"xi{k}" not in taken)
        names = dict(zip(expr.variables, free, strict=False))
        text = self._print(expr.expr.xreplace(names))
        for x, point in zip(expr.variables, expr.point, strict=True):
            text = f"Subs({text}, {names[x].name}, {self._print(point)})"
        return text

    def _print_Heaviside(self, expr: Any) -> str:
        return f"Heaviside({self._print(expr.args[0])})"  # its value at the one point 0 never matters


def to_text(expr: Any) -> str:
    """The text of an expression that `parse` reads back.

    >>> from sympy import E, pi
    >>> to_text(E**2 + pi), to_text(E)
    ('pi + exp(2)', 'exp(1)')
    """
    return _Text({"full_prec": True}).doprint(apart(expr)[0])


# -- expression -> tree -----------------------------------------------------------------------------------------------
def to_tree(expr: Any) -> Any:
    """A tree of lists, texts and integers that `json.dumps` writes and `from_tree` reads back exactly.

    >>> from hermitex.symbolic.gaussian import E
    >>> from hermitex.symbols import z
    >>> to_tree(E(z**2, z) + 1)
    ['Add', 1, ['E', ['z'], ['Pow', ['Bound', 0, 0], 2], None]]
    """
    return _write(sympy.sympify(expr, strict=True), ())


def _write(expr: Any, scopes: tuple[tuple[Symbol, ...], ...]) -> Any:
    if isinstance(expr, Integer):
        number = _integer(int(expr))
        return number if isinstance(number, int) else ["Integer", number]
    if isinstance(expr, Rational):
        return ["Rational", _integer(expr.p), _integer(expr.q)]
    if isinstance(expr, Float):
        return ["Float", *map(_integer, expr._mpf_), int(expr._prec)]
    if isinstance(expr, Element):
        return ["Element", _write(expr.array, ()), *(_write(i, ()) for i in expr.indices)]
    if isinstance(expr, Index):
        return ["Index", expr.name, expr.first, *([1] if expr.endless else [0, expr.count] if expr.count else [])]
    if isinstance(expr, Symbol):
        return _write_symbol(expr, scopes)
    if isinstance(expr, ArraySum):
        return ["Sum", _write(expr.body, scopes), _write(expr.index, scopes)]
    for name, value in _CONSTANTS.items():
        if expr is value:
            return [name]
    if isinstance(expr, Expectation):
        body, fresh = expr.open()
        cov = None if expr.independent else [[_write(v, scopes) for v in row] for row in expr.covariance.tolist()]
        return ["E", [b.name for b in expr.bound], _write(body, (fresh, *scopes)), cov]
    head = type(expr).__name__
    if isinstance(expr, Lawful):
        return ["Lawful", _write(expr.value, scopes), *([c.law, _write(c.value, scopes), str(c.args[2])] for c in expr.conditions)]
    if isinstance(expr, sympy.Piecewise):
        return ["Piecewise", *([_write(p, scopes) for p in pair.args] for pair in expr.args)]
    parts = [_write(a, scopes) for a in expr.args]
    if isinstance(expr, AppliedPrime):
        return ["Prime", expr.base.__name__, _assumed(expr.base), int(expr.order), *parts]
    if isinstance(expr, AppliedUndef):
        return ["Apply", head, _assumed(expr.func), *parts]
    if isinstance(expr, sympy.core.relational.Relational):
        return [expr.rel_op, *parts]
    if isinstance(expr, sympy.CRootOf):
        return ["CRootOf", [_integer(int(c)) for c in expr.poly.all_coeffs()], int(expr.index)]
    if head in _HEADS or head in _SPECIAL:
        return [head, *parts]
    raise BadInput(f"{bounded_powers.short(expr)} cannot be written as a tree: {head} is not among its heads")


def _integer(n: int) -> int | str:
    """Beyond 2**53 as a text: not every reader of JSON keeps a longer integer exact."""
    return int(n) if abs(n) < 2**53 else str(n)


def _write_symbol(symbol: Symbol, scopes: tuple[tuple[Symbol, ...], ...]) -> Any:
    for k, scope in enumerate(scopes):
        if symbol in scope:
            return ["Bound", k, scope.index(symbol)]
    if type(symbol) is not Symbol:
        raise BadInput(f"{symbol} cannot be written as a tree: it is a {type(symbol).__name__}, not a plain symbol")
    if field.FIELD.get(symbol.name) == symbol:
        return symbol.name
    return ["Symbol", symbol.name, _assumed(symbol)]


def _assumed(symbol: Any) -> dict[str, bool]:
    given = symbol._assumptions_orig if isinstance(symbol, Symbol) else symbol._kwargs
    return {str(k): bool(v) for k, v in sorted(given.items()) if v is not None and k != "commutative"}


# -- tree -> expression -----------------------------------------------------------------------------------------------
def from_tree(tree: Any) -> Expr:
    """The expression of a tree, built node by node as it was (nothing is evaluated anew).

    Raises
    ------
    BadInput : the tree is not one that `to_tree` writes, or holds a number too large to be evaluated.

    Examples
    --------
    >>> from_tree(["Add", 1, ["Pow", "z", 2]])
    z**2 + 1
    """
    return _Builder().read(tree, (), 0)


class _Builder:
    def __init__(self) -> None:
        self.nodes = 0

    def read(self, tree: Any, scopes: tuple[tuple[Symbol, ...], ...], depth: int) -> Any:
        self.nodes += 1
        most_nodes = 50_000  # five times what a text may have, as trees are written by programs
        most_levels = 200  # below the recursion of Python, which takes several frames a level
        if self.nodes > most_nodes or depth > most_levels:
            raise BadInput(f"a tree of more than {most_nodes} nodes or {most_levels} levels")
        if isinstance(tree, int) and not isinstance(tree, bool):
            return Integer(_number(tree))
        if isinstance(tree, str):
            if tree not in field.FIELD:
                raise BadInput(f"{tree[:40]!r} in a tree is not a field symbol; write ['Symbol', name, assumptions]")
            return field.FIELD[tree]
        if not (isinstance(tree, list) and tree and isinstance(tree[0], str)):
            raise BadInput(f"a tree is a number, a name or a list with a head, not {str(tree)[:40]!r}")
        head, *parts = tree
        try:
            return self._node(head, parts, scopes, depth + 1)
        except (TypeError, ValueError, AttributeError, IndexError, ArithmeticError) as error:
            if isinstance(error, BadInput):
                raise
            raise BadInput(f"a tree node {head[:40]!r} is malformed") from None

    def _node(self, head: str, parts: list, scopes: tuple, depth: int) -> Any:
        if head in _CONSTANTS and not parts:
            return _CONSTANTS[head]
        leaf = getattr(self, f"_{head.lower()}", None) if head in _LEAVES else None
        if leaf is not None:
            return leaf(*parts)
        if head == "Bound":
            k, i = parts
            return scopes[_natural(k)][_natural(i)]
        if head == "E":
            return self._expectation(parts, scopes, depth)
        if head == "Index":
            return Index(_identifier(parts[0]), *map(_natural, parts[1:]))
        if head in ("Element", "Sum"):
            first, *rest = (self.read(p, scopes if head == "Sum" else (), depth) for p in parts)
            if not all(isinstance(i, Index) for i in rest) or not isinstance(first, Expr if head == "Sum" else Symbol):
                raise BadInput(f"{head} in a tree is malformed")
            return ArraySum(first, *rest) if head == "Sum" else Element(first, *rest)
        if head == "Piecewise":
            pairs = [ExprCondPair(*(self.read(p, scopes, depth) for p in pair)) for pair in parts]
            return sympy.Piecewise(*pairs, evaluate=False)
        if head == "Lawful":
            value, *needed = parts
            return lawful(self.read(value, scopes, depth),
                          [Condition(law, self.read(v, scopes, depth), Str(interval)) for law, v, interval in needed])
        if head in ("Apply", "Prime"):
            function = Function(_identifier(parts[0]), **_assumptions(parts[1]))
            if head == "Prime":
                return prime(function, _natural(parts[2]))(self.read(parts[3], scopes, depth))
            return function(*(self.read(p, scopes, depth) for p in parts[2:]))
        return _rebuild(head, [self.read(p, scopes, depth) for p in parts])

    def _expectation(self, parts: list, scopes: tuple, depth: int) -> Any:
        names, body, cov = parts
        fresh = tuple(Dummy(_identifier(n), real=True) for n in names)
        matrix = None
        if cov is not None:
            matrix = sympy.ImmutableDenseMatrix([[self.read(v, scopes, depth) for v in row] for row in cov])
            if matrix.shape != (len(fresh), len(fresh)) or matrix != matrix.T:
                raise BadInput("a covariance in a tree is not a symmetric matrix over the variables")
        return Expectation(self.read(body, (fresh, *scopes), depth), sympy.Tuple(*fresh), matrix)

    def _symbol(self, name: Any, assumptions: Any) -> Symbol:
        return Symbol(_identifier(name), **_assumptions(assumptions))

    def _rational(self, p: Any, q: Any) -> Rational:
        if not _number(q):
            raise BadInput("a rational with denominator 0 in a tree")
        return Rational(_number(p), _number(q))

    def _integer(self, n: Any) -> Integer:
        return Integer(_number(n))

    def _float(self, negative: Any, mantissa: Any, exponent: Any, count: Any, precision: Any) -> Float:
        value = Float._new((_natural(negative), sympy.external.gmpy.MPZ(_number(mantissa)), _number(exponent),
                            _natural(count)), _natural(precision))
        if _natural(precision) > 10**5 or abs(_number(exponent)) > 10**6:
            raise BadInput("a floating-point number out of range in a tree")
        return value

    def _crootof(self, coefficients: Any, index: Any) -> Expr:
        if not 2 <= len(coefficients) <= 60:
            raise BadInput("a CRootOf in a tree has a degree between 1 and 59")
        return sympy.CRootOf(sympy.Poly([_number(c) for c in coefficients], Dummy("x")), _natural(index))


_LEAVES = ("Symbol", "Rational", "Integer", "Float", "CRootOf")


def _rebuild(head: str, args: list[Any]) -> Any:
    if head in _RELATIONS:
        left, right = args
        return _RELATIONS[head](left, right, evaluate=False)
    if head in _SPECIAL:
        function: Any = getattr(special, head)
    elif head in _HEADS:
        function = getattr(sympy, head)
    else:
        raise BadInput(f"unknown head {head[:40]!r} in a tree")
    logical = head in ("And", "Or", "Not", "ITE")
    wanted: Any = Boolean if logical else (Expr, sympy.Tuple)
    if head not in ("Derivative", "Subs", "Tuple") and not all(isinstance(a, wanted) for a in args):
        raise BadInput(f"a part of {head} in a tree is of the wrong kind")
    bounded_powers.check_call(head, args)
    if head == "Pow":
        bounded_powers.check_power(*args)
    if head in ("Add", "Mul"):
        if len(args) < 2:
            raise BadInput(f"{head} in a tree has two parts or more")
        return function._from_args(args)
    if head in ("Tuple", "Subs"):
        return function(*args)
    result = function(*args, evaluate=False)
    if isinstance(result, Expr):
        bounded_powers.check_magnitude(result)
    return result


def _number(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str) or len(str(value)) > bounded_powers.MAX_DIGITS:
        raise BadInput(f"{str(value)[:40]!r} in a tree is not an integer that can be read")
    return int(value)


def _natural(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise BadInput(f"{str(value)[:40]!r} in a tree is not a natural number")
    return value


def _identifier(name: Any) -> str:
    if not (isinstance(name, str) and name.isidentifier() and len(name) <= 100):
        raise BadInput(f"{str(name)[:40]!r} in a tree is not a name")
    return name


def _assumptions(given: Any) -> dict[str, bool]:
    if not (isinstance(given, dict) and all(isinstance(k, str) and isinstance(v, bool) for k, v in given.items())
            and set(given) <= _KNOWN):
        raise BadInput(f"{str(given)[:60]!r} in a tree are not assumptions of a symbol")
    return given


_KNOWN = frozenset(["real", "positive", "negative", "nonnegative", "nonpositive", "zero", "nonzero", "integer",
                    "rational", "irrational", "algebraic", "transcendental", "even", "odd", "prime", "composite",
                    "noninteger", "finite", "infinite", "complex", "imaginary", "hermitian", "antihermitian",
                    "commutative", *(f"extended_{k}" for k in ("real", "positive", "negative", "nonnegative",
                                                                "nonpositive", "nonzero"))])
