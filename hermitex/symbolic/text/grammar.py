"""syntax tree -> expression: the grammar of `parse`, one method a kind of node; what has no method is refused.

expr = number | name | expr (+ - * / **) expr | name(expr, ...) | Piecewise(...) | E(expr, ...) | Sum(expr, index)
     | Integral(expr, (x, a, b)) | Moreau(expr, f, expr, expr) | Prox(expr, f, expr, expr)
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable
from typing import Any, NoReturn

from sympy import And, CRootOf, Expr, Integer, Integral, Not, Or, Piecewise, Rational, Symbol, oo
from sympy import Sum as SymPySum
from sympy.core.function import UndefinedFunction
from sympy.core.relational import Eq, Ge, Gt, Le, Lt, Ne
from sympy.logic.boolalg import Boolean, false, true

from hermitex import symbols as field
from hermitex.errors import DECLARING, BadInput, HermitexError, ParseError, UnknownName
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.gaussian import E, Expectation
from hermitex.symbolic.indexed_sums import ArraySum, Element, Index, most_written, over_numbers, read_sums
from hermitex.symbolic.integral_averages import read_integrals
from hermitex.symbolic.laws import is_random
from hermitex.symbolic.text import bounded_powers
from hermitex.symbolic.text.lexical import Source, excerpt
from hermitex.symbolic.text.text_derivatives import MAX_ORDER, derivative, substituted
from hermitex.symbolic.text.text_names import CONSTANTS, call, function_names, is_function
from hermitex.symbolic.undefined import prime

MAX_EXPECTATIONS = 6  # one within another: six normals are as many as `tensor` takes
_RELATIONS = {ast.Lt: Lt, ast.LtE: Le, ast.Gt: Gt, ast.GtE: Ge, ast.Eq: Eq, ast.NotEq: Ne}
_SLOPES = {"Derivative": derivative, "Subs": substituted}
_MINIMISATIONS = ("Moreau", "Prox")
_SPECIAL = ("E", "Sum", "Integral", *_MINIMISATIONS, "Piecewise", "Eq", "Ne", "CRootOf")
_INDICATORS = ("indicator", "Indicator", "ind", "step", "theta")
_CONDITION = "a condition is not a number; write Heaviside(z) or Piecewise((1, z > 0), (0, True))"
_MISSING = "an operator or operand is missing here; write * for a product"


def syntax(source: Source) -> ast.Expression:
    """Python's syntax tree of a clean text."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python warns of '1(z)' and the like; they are refused below, in our words
        try:
            # In brackets, so that leading blanks and line breaks mean nothing; columns are one too high.
            return ast.parse(f"({source.text})", mode="eval")
        except SyntaxError as error:
            source.fail((error.offset or 2) - 2, _MISSING)
        except (RecursionError, MemoryError):
            raise ParseError("the expression is nested too deeply; split it into a sum of shorter parts") from None
        except ValueError as error:
            raise ParseError(f"cannot read the expression: {error}") from None


def check_variables(expr: Expr, variables: Iterable[Any] | str) -> None:
    """Refuse variables that are not z, z1, ..., and an expression in others than those declared, or in z and z1 together."""
    allowed = [str(v).strip() for v in (variables.split(",") if isinstance(variables, str) else variables)]
    for v in allowed:
        if not field.is_normal_name(v):
            raise BadInput(f"{v!r} is not a variable; variables are z, or z1, z2, ...")
    used = field.normals(expr)
    field.one_naming([*used, *map(field.normal, allowed)])
    for v in used:
        if v.name not in allowed:
            raise BadInput(f"{v} is not among the variables {', '.join(allowed)}")


def _negated(condition: Any) -> Any:
    """not (a or b) as (not a) and (not b): what comes after meets no Not but of a single comparison."""
    if isinstance(condition, And | Or):
        return (Or if isinstance(condition, And) else And)(*(_negated(c) for c in condition.args))
    return Not(condition)


class Reader:
    """Walks the syntax tree; every method gives the SymPy object of a node of the tree."""

    def __init__(self, source: Source, parameters: dict[str, Any]) -> None:
        self.source, self.scopes, self.nodes = source, [parameters], 0

    def fail(self, node: ast.AST, message: str) -> NoReturn:
        start = getattr(node, "col_offset", 1) - 1
        what = self.source.text[start:getattr(node, "end_col_offset", start + 1) - 1].strip()
        self.source.fail(start, message, what if len(what) <= 40 else what[:37] + "...")

    def unknown(self, node: ast.AST, error: UnknownName, advice: str = "") -> NoReturn:
        """The error about a name, with its place in the text."""
        place = self.source.origin[getattr(node, "col_offset", 1) - 1]
        text = f"cannot read {excerpt(self.source.original, place)}: {error} (position {place + 1})"
        error.args = (f"{text}; {advice}" if advice else text,)
        raise error

    def _enter(self, node: ast.AST, depth: int) -> None:
        checkpoint("reading an expression")
        self.nodes += 1
        most_parts = 10_000  # a formula of 10,000 parts fills some ten pages
        if self.nodes > most_parts:
            raise ParseError(f"the expression has more than {most_parts} parts")
        most_deep = 130  # below the recursion of Python, which takes several frames a level
        if depth > most_deep:
            self.fail(node, f"nested more than {most_deep} deep")

    def expr(self, node: ast.expr, depth: int) -> Expr:
        """A number-valued part."""
        value = self.any(node, depth)
        if not isinstance(value, Expr):
            self.fail(node, _CONDITION)
        return value

    def any(self, node: ast.expr, depth: int) -> Any:
        self._enter(node, depth)
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            self.fail(node, "this is not in the grammar; write a formula such as z**3 - 3*z")
        try:
            return method(node, depth + 1)
        except (ParseError, UnknownName):
            raise
        except BadInput as error:
            self.fail(node, str(error))
        except HermitexError:
            raise
        except RecursionError:
            self.fail(node, "nested too deeply")
        except (TypeError, ValueError, ArithmeticError, AttributeError, NotImplementedError) as error:
            self.fail(node, f"this does not exist as a real expression ({str(error).splitlines()[0][:80]})"
                      if str(error) else "this does not exist as a real expression")

    # -- atoms -----------------------------------------------------------------------------------------------------
    def _constant(self, node: ast.Constant, depth: int) -> Any:
        if node.value is True or node.value is False:
            return true if node.value else false
        digits = self.source.text[node.col_offset - 1:(node.end_col_offset or 0) - 1]
        if type(node.value) not in (int, float):
            self.fail(node, "this is not in the grammar; write a formula such as z**3 - 3*z")
        return Rational(digits)

    def _name(self, node: ast.Name, depth: int) -> Any:
        name = node.id
        for scope in reversed(self.scopes):
            if name in scope and (isinstance(scope[name], Symbol | Integer) or is_random(scope[name])):
                return scope[name]
        if field.is_normal_name(name):
            return field.normal(name)
        if name in CONSTANTS:
            return CONSTANTS[name]
        if name in ("E", "e"):
            self.fail(node, "E(...) is a Gaussian expectation; write exp(1) for the number e")
        if name in ("I", "j"):
            self.fail(node, "the imaginary unit is not in the grammar; a target is real")
        if name in ("oo", "inf", "infinity", "nan", "zoo"):
            self.fail(node, "an infinite or undefined number is not in the grammar")
        if name in _SPECIAL or name in function_names() or any(name in s for s in self.scopes):
            self.fail(node, f"a function without its argument; write {name}(z)")
        known = [*function_names(), *CONSTANTS, "z", "z1", "z2", *_SPECIAL, *self.scopes[0]]
        variable = re.fullmatch(r"[txyuvwXYZ](\d?)", name)  # what others call a standard normal
        meant = [f"z{variable[1]}"] if variable else []
        self.unknown(node, UnknownName(name[:60], known, meant=meant), f"{DECLARING[2:]}{{{name[:60]!r}: 'real'}}")

    # -- arithmetic: chains are walked in a loop, for a sum of 1000 terms is a tree of depth 1000 ------------------
    def _binop(self, node: ast.BinOp, depth: int) -> Any:
        if isinstance(node.op, ast.Add | ast.Sub):
            return bounded_powers.total(self._chain(node, depth, (ast.Add, ast.Sub)))
        if isinstance(node.op, ast.Mult | ast.Div):
            return bounded_powers.product(self._chain(node, depth, (ast.Mult, ast.Div)))
        if isinstance(node.op, ast.Pow):
            return bounded_powers.power(self.expr(node.left, depth), self.expr(node.right, depth))
        if isinstance(node.op, ast.BitAnd | ast.BitOr):
            kind = type(node.op)
            parts = [self.condition(p, depth) for p, _ in self._operands(node, (kind,))]
            return (And if kind is ast.BitAnd else Or)(*parts)
        self.fail(node, "this operator is not in the grammar; there are + - * / **")

    def _operands(self, node: ast.expr, kinds: tuple[type, ...]) -> list[tuple[ast.expr, ast.operator | None]]:
        parts: list[tuple[ast.expr, ast.operator | None]] = []
        while isinstance(node, ast.BinOp) and isinstance(node.op, kinds):
            parts.append((node.right, node.op))
            node = node.left
        return [(node, None), *reversed(parts)]

    def _chain(self, node: ast.expr, depth: int, kinds: tuple[type, ...]) -> list[Expr]:
        values = []
        for part, op in self._operands(node, kinds):
            value = self.expr(part, depth)
            if isinstance(op, ast.Sub):
                value = -value
            elif isinstance(op, ast.Div):
                if value.is_zero:
                    self.fail(part, "division by zero")
                value = bounded_powers.power(value, Integer(-1))
            values.append(value)
        return values

    def _unaryop(self, node: ast.UnaryOp, depth: int) -> Any:
        if isinstance(node.op, ast.Not | ast.Invert):
            return _negated(self.condition(node.operand, depth))
        value = self.expr(node.operand, depth)
        return -value if isinstance(node.op, ast.USub) else value

    # -- conditions ------------------------------------------------------------------------------------------------
    def condition(self, node: ast.expr, depth: int) -> Any:
        """A truth-valued part."""
        value = self.any(node, depth)
        if isinstance(value, Expr) or not isinstance(value, Boolean):  # a Symbol is both in SymPy
            self.fail(node, "a condition is needed here; write (z > 0) & (z < 1), each part in brackets")
        return value

    def _boolop(self, node: ast.BoolOp, depth: int) -> Any:
        return (And if isinstance(node.op, ast.And) else Or)(*(self.condition(p, depth) for p in node.values))

    def _compare(self, node: ast.Compare, depth: int) -> Any:
        sides = [self.expr(s, depth) for s in (node.left, *node.comparators)]
        parts = []
        for left, op, right in zip(sides, node.ops, sides[1:], strict=False):
            if type(op) not in _RELATIONS:
                self.fail(node, "this comparison is not in the grammar; there are < <= > >= == !=")
            parts.append(self._relation(_RELATIONS[type(op)], left, right))
        return And(*parts)

    def _relation(self, kind: Any, left: Expr, right: Expr) -> Any:
        return kind(left, right) if bounded_powers.small(left, right) else kind(left, right, evaluate=False)

    # -- calls -----------------------------------------------------------------------------------------------------
    def _call(self, node: ast.Call, depth: int) -> Any:
        if isinstance(node.func, ast.Call):
            return self._derivative(node.func, node)(*(self.expr(a, depth) for a in node.args))
        if not isinstance(node.func, ast.Name):
            self.fail(node, "only a named function can be called; write * for a product")
        name = node.func.id
        if name == "E":
            return self._expectation(node, depth)
        if name == "Sum":
            return self._sum(node, depth)
        if name == "Integral":
            return self._integral(node, depth)
        if name in _MINIMISATIONS and name not in self.scopes[0]:
            return self._minimisation(name, node, depth)
        if name in _SLOPES and name not in self.scopes[0]:
            return _SLOPES[name](self, node, depth)
        function = self.scopes[0].get(name)
        if (isinstance(function, Symbol) and not is_function(name)) or field.is_normal_name(name):
            self.fail(node, f"{name} is not a function; write * for a product: {name}*(...)")
        if name == "He" and function is None:
            return self._hermite(node, depth)
        if name == "hermite" and function is None:
            self.fail(node, "hermite is SymPy's H_n of physics; write He(3, z) or He3(z) for He_n, E[He_j He_k] = k! delta_jk")
        if name in _INDICATORS and not is_function(name) and function is None:
            self.fail(node, "write Heaviside(z) for the indicator of z > 0, or Piecewise((1, z > 0), (0, True))")
        if name not in _SPECIAL and not isinstance(function, UndefinedFunction) and not is_function(name):
            self.unknown(node, UnknownName(name[:60], [*_SPECIAL, *function_names(), *self.scopes[0]], "function"))
        if node.keywords:
            self.fail(node, f"{name} takes no keyword")
        if name == "Piecewise":
            return self._piecewise(node, depth)
        if name == "CRootOf":
            return self._root(node, depth)
        args = [self.expr(a, depth) for a in node.args]
        if name in ("Eq", "Ne"):
            if len(args) != 2:
                self.fail(node, f"{name} takes two arguments")
            return self._relation(Eq if name == "Eq" else Ne, *args)
        if isinstance(function, UndefinedFunction):
            if not args:
                self.fail(node, f"{name} needs an argument; write {name}(z)")
            return function(*args)
        value = call(name, args)
        if bounded_powers.size(value) > bounded_powers.MAX_SIZE:
            self.fail(node, f"written out, this has more than {bounded_powers.MAX_SIZE} parts")
        return value

    def _sum(self, node: ast.Call, depth: int) -> Any:
        """Sum(eta[k]/(eta[k] + nu), k): over all entries of arrays that come with the numbers; (k, 1, N) counts them from 1.

        Without arrays the ends are numbers or declared integers: Sum(n**2, (n, 1, 10)), Sum(n**2, (n, 1, M)).
        """
        if len(node.args) < 2 or node.keywords:
            self.fail(node, "Sum(...) needs a summand and its index, e.g. Sum(eta[k]/(eta[k] + nu), k)")
        if len(self.scopes) > MAX_EXPECTATIONS:
            self.fail(node, f"more than {MAX_EXPECTATIONS} sums and expectations within each other")
        return self._summed(node.args[0], node.args[1:], depth)

    def _summed(self, summand: ast.expr, over: list[ast.expr], depth: int) -> Any:
        """The last index is the outermost one, as in SymPy: the ends of those before it may depend on it."""
        if not over:
            return self.expr(summand, depth)
        a = over[-1]
        names = [i.elts[0] if isinstance(i, ast.Tuple) and len(i.elts) == 3 else i for i in over]
        name, first, last = (*a.elts,) if isinstance(a, ast.Tuple) and len(a.elts) == 3 else (a, ast.Constant(0), None)
        if not isinstance(name, ast.Name):
            self.fail(a, "after the summand write its indices: Sum(eta[k], k), or (k, 1, N) where they count from 1")
        if name.id in map(ast.unparse, names[:-1]) or name.id in CONSTANTS or field.is_normal_name(name.id):
            self.fail(a, "an index has a name of its own, such as k")

        def at(place: Expr) -> Any:
            self.scopes.append({name.id: place})
            try:
                return self._summed(summand, over[:-1], depth)
            finally:
                self.scopes.pop()

        begin, end = ast.unparse(first), "" if last is None else ast.unparse(last)
        length = end if begin == "1" or end == "oo" else end.removesuffix(" - 1")
        whole = not end or (length.isidentifier() and (length == "oo") == (length == end and begin == "0"))
        declared = field.is_normal_name(length) or any(isinstance(s.get(length), Expr) for s in self.scopes)
        if whole and not declared and begin in ("0", "1"):
            k = Index(name.id, int(begin), end == "oo")
            body = at(k)
            if length in ("", "oo") or k not in body.free_symbols or body.has(Element):
                return ArraySum(body, k)  # a sum of the index itself, Sum(n, (n, 1, Q)), has no array that would bring Q
        counted = Symbol(name.id, integer=True)
        try:
            low, high = self.expr(first, depth), oo if end == "oo" or last is None else self.expr(last, depth)
        except UnknownName:
            at(counted)   # an array under this sum says more than that N is not declared
            raise
        if not low.is_integer or not (high == oo or high.is_integer):
            self.fail(a, "a sum runs over whole numbers; what its ends depend on is declared as an integer")
        body = at(counted)
        most = most_written(body.free_symbols - {counted}, averages=body.has(Expectation))
        if (high - low).is_Integer and -1 <= high - low < most:
            return bounded_powers.total([at(low + j) for j in range(int(high - low) + 1)])
        if low.is_Integer:
            at(low)    # SymPy puts it in where nothing is bounded
        return bounded_powers.exists((over_numbers if body.has(Expectation) else read_sums)(SymPySum(body, (counted, low, high))))

    def _integral(self, node: ast.Call, depth: int) -> Any:
        """Integral(exp(-x**2), (x, a, q)), its ends numbers, oo or formulas, as an average over one normal."""
        if len(node.args) != 2 or node.keywords or not (isinstance(node.args[1], ast.Tuple) and len(node.args[1].elts) == 3):
            self.fail(node, "Integral takes a function and one range: Integral(exp(-x**2), (x, 0, q))")
        if len(self.scopes) > MAX_EXPECTATIONS:
            self.fail(node, f"more than {MAX_EXPECTATIONS} integrals and expectations within each other")
        name, *ends = node.args[1].elts
        if not isinstance(name, ast.Name) or name.id in CONSTANTS:
            self.fail(name, "the variable of an integral has a name of its own, such as x")
        infinite = {"oo": oo, "-oo": -oo}
        low, high = (infinite[t] if (t := ast.unparse(e)) in infinite else self.expr(e, depth) for e in ends)
        x = Symbol(name.id, real=True)
        self.scopes.append({name.id: x})
        try:
            return read_integrals(Integral(self.expr(node.args[0], depth), (x, low, high)))
        finally:
            self.scopes.pop()

    def _minimisation(self, name: str, node: ast.Call, depth: int) -> Any:
        """Moreau(abs(y - f), f, omega, V): the loss binds f."""
        from hermitex.symbolic import moreau  # few formulas need it

        if len(node.args) != 4 or node.keywords or not isinstance(f := node.args[1], ast.Name):
            self.fail(node, f"{name} takes a loss, its variable, a place and a width: {name}(abs(y - f), f, omega, V)")
        bound = Symbol(f.id, real=True)
        self.scopes.append({f.id: bound})
        try:
            loss = self.expr(node.args[0], depth)
        finally:
            self.scopes.pop()
        return getattr(moreau, name)(loss, bound, *(self.expr(a, depth) for a in node.args[2:]))

    def _subscript(self, node: ast.Subscript, depth: int) -> Any:
        """eta[k], A[i, j]: entries of arrays, real or as declared."""
        places = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        indices = [next((s[p.id] for s in reversed(self.scopes) if p.id in s), None) if isinstance(p, ast.Name) else None
                   for p in places]
        if not isinstance(node.value, ast.Name) or not all(isinstance(i, Index) for i in indices):
            self.fail(node, "write ( ) for brackets; an entry of an array is eta[k], under a sum over all of it: Sum(eta[k], k), "
                            "or (k, 0, N - 1) or (k, 1, N), whose N comes with the numbers and is not declared")
        name = node.value.id
        if name in CONSTANTS or field.is_normal_name(name) or is_function(name) or name in _SPECIAL:
            self.fail(node, f"{name} has a meaning of its own and cannot be an array")
        declared = next((s[name] for s in reversed(self.scopes) if isinstance(s.get(name), Symbol)), None)
        if isinstance(declared, Index):
            self.fail(node, f"{name} is an index here and cannot be an array")
        return Element(declared or Symbol(name, real=True), *(i for i in indices if isinstance(i, Index)))

    def _derivative(self, head: ast.Call, node: ast.Call) -> Any:
        """Derivative(f)(u) and Derivative(f, 2)(u) of a declared function, as `to_text` writes f'(u) and f''(u)."""
        if not (isinstance(head.func, ast.Name) and head.func.id == "Derivative" and 1 <= len(head.args) <= 2
                and not head.keywords and not node.keywords and len(node.args) == 1):
            self.fail(node, "only a named function can be called; write * for a product, Derivative(f)(z) for f'(z)")
        first, order = head.args[0], head.args[1] if len(head.args) > 1 else ast.Constant(1)
        function = self.scopes[0].get(first.id) if isinstance(first, ast.Name) else None
        if not isinstance(function, UndefinedFunction):
            self.fail(head, "Derivative is of a declared function, symbols={'f': 'function'}; write out that of a named one")
        if not (isinstance(order, ast.Constant) and type(order.value) is int and 1 <= order.value <= MAX_ORDER):
            self.fail(head, f"the order of a derivative is a whole number from 1 to {MAX_ORDER}")
        return prime(function, order.value)

    def _hermite(self, node: ast.Call, depth: int) -> Any:
        """He(3, z1), as in Python, is He3(z1)."""
        order = node.args[0] if node.args else None
        if len(node.args) != 2 or node.keywords or not (isinstance(order, ast.Constant) and type(order.value) is int):
            self.fail(node, "He takes its order and an argument: He(3, z) or He3(z)")
        return call(f"He{order.value}", [self.expr(node.args[1], depth)])

    def _root(self, node: ast.Call, depth: int) -> Any:
        """CRootOf(x**5 - x - 1, 0), as exact values are printed: a real root of a polynomial in x, by its number."""
        if len(node.args) != 2:
            self.fail(node, "CRootOf takes a polynomial in x and the number of the root")
        x = Symbol("x")
        self.scopes.append({"x": x})
        try:
            form, index = self.expr(node.args[0], depth), self.expr(node.args[1], depth)
        finally:
            self.scopes.pop()
        polynomial = form.as_poly(x) if form.free_symbols == {x} and bounded_powers.small(form) else None
        if polynomial is None or not polynomial.domain.is_ZZ or not isinstance(index, Integer):
            self.fail(node, "CRootOf takes a polynomial in x with integer coefficients, of degree 40 at most")
        real = len(polynomial.real_roots(radicals=False))  # these come first
        if not 0 <= int(index) < real:
            known = f"it has {real}, numbered from 0" if real else "it has none"
            self.fail(node, f"CRootOf: the real root {index} of {form} was asked; {known}")
        return CRootOf(polynomial, int(index))

    def _piecewise(self, node: ast.Call, depth: int) -> Any:
        branches = []
        for pair in node.args:
            if not isinstance(pair, ast.Tuple) or len(pair.elts) != 2:
                self.fail(pair, "Piecewise takes pairs: Piecewise((1, z > 0), (0, True))")
            branches.append((self.expr(pair.elts[0], depth), self.condition(pair.elts[1], depth)))
        if not branches:
            self.fail(node, "Piecewise takes pairs: Piecewise((1, z > 0), (0, True))")
        return Piecewise(*branches, evaluate=all(bounded_powers.small(*b) for b in branches))

    def _expectation(self, node: ast.Call, depth: int) -> Any:
        if not node.args:
            self.fail(node, "E(...) needs what is averaged, e.g. E(tanh(z)**2)")
        if len(self.scopes) > MAX_EXPECTATIONS:
            self.fail(node, f"more than {MAX_EXPECTATIONS} expectations within each other")
        names, conditions = list[str](), list[ast.expr]()
        for v in node.args[1:]:
            equality = isinstance(v, ast.Call) and getattr(v.func, "id", "") == "Eq"
            if equality or isinstance(v, ast.Compare | ast.BoolOp | ast.BinOp):
                conditions.append(v)
                continue
            if not isinstance(v, ast.Name) or v.id in names or v.id in CONSTANTS:
                self.fail(v, "after the integrand write the names of its variables, or a condition: E(z1*z2, z1), E(z, z > 0)")
            names.append(v.id)
        laws = {n: v for n, v in self.scopes[0].items() if is_random(v)}
        self.scopes.append({n: field.normal(n) if field.is_normal_name(n) else laws.get(n) or Symbol(n, real=True) for n in names})
        try:
            body = self.expr(node.args[0], depth)
            given = [self.condition(c, depth) for c in conditions]
        finally:
            self.scopes.pop()
        return E(body, *(laws.get(n, n) for n in names), *given, cov=self._covariance(node, depth))

    def _covariance(self, node: ast.Call, depth: int) -> dict | None:
        for keyword in node.keywords:
            if keyword.arg != "cov" or not isinstance(keyword.value, ast.Dict):
                self.fail(node, "the only keyword of E is cov={(z1, z2): 1/2}")
            pairs = {}
            for key, value in zip(keyword.value.keys, keyword.value.values, strict=True):
                if not (isinstance(key, ast.Tuple) and len(key.elts) == 2
                        and all(isinstance(e, ast.Name) for e in key.elts)):
                    self.fail(node, "the keys of cov are pairs of variables: cov={(z1, z2): 1/2}")
                a, b = (e.id for e in key.elts if isinstance(e, ast.Name))
                pairs[a, b] = self.expr(value, depth)
            return pairs
        return None
