"""c_k = E[g(z) He_k(z)]: the Hermite coefficients of a target.

In several variables He_a(z) = prod_i He_{a_i}(z_i) for a multi-index a; `tensors` puts them together. The polynomials
are those of `polynomials`; `expansion` makes the series.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import product as cartesian
from math import prod
from typing import Any

from sympy import Add, Expr, Integer, Mul, Rational, S, Symbol
from sympy import expand as multiply_out

from hermitex import symbols
from hermitex.errors import BadInput, Divergent, HermitexError, NoClosedForm
from hermitex.hints import Formula, Variables
from hermitex.symbolic import hooks
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.existence_check import require_existence
from hermitex.symbolic.gaussian import E, Expectation
from hermitex.symbolic.series.polynomials import (
    He,
    Index,
    index_factorial,
    index_of,
    monomials,
    multi_indices,
    order_of,
    to_hermite,
)
from hermitex.symbolic.terms import by_core

_Moments = dict[tuple[int, ...], Expr | HermitexError]  # a refusal is remembered as well


def coefficient(g: Formula, k: int | Sequence[int], x: Variables | None = None) -> Expr:
    """c_k = E[g He_k] (c_a = E[g He_a] for a multi-index), exact where a rule applies, else over unevaluated nodes.

    Parameters
    ----------
    g : expression, text, or anything `activation` takes
    k : int >= 0 or a multi-index, one order for each variable
    x : the variable(s); default: the z, z1, z2, ... that occur in g

    Guarantee
    ---------
    An exact value equals the average for all values that the assumptions allow. See docs/promise.md.

    Examples
    --------
    >>> from sympy import sign, tanh
    >>> from hermitex.symbols import z
    >>> coefficient(z**3 - 3*z, 3), coefficient(sign(z), 3)
    (6, -sqrt(2)/sqrt(pi))
    >>> coefficient(tanh(z), 1)
    E(z*tanh(z), z)
    """
    body, variables = target(g, x)
    a = (order_of(k),) if isinstance(k, int) else tuple(order_of(i) for i in k)
    if len(a) != len(variables):
        raise BadInput(f"coefficient: {len(a)} orders for the variables {', '.join(map(str, variables))}")
    return _Projections(body, variables).coefficient(a)


def coefficients(g: Any, order: int, x: Any = None) -> dict[Index, Expr]:
    """Every c_a with |a| <= order, the moments E[z^a g] computed once and shared.

    Examples
    --------
    >>> from hermitex.symbols import z
    >>> coefficients(abs(z), 2)
    {0: sqrt(2)/sqrt(pi), 1: 0, 2: sqrt(2)/sqrt(pi)}
    """
    body, variables = target(g, x)
    moments = _Projections(body, variables)
    every = (a for n in range(order_of(order) + 1) for a in multi_indices(len(variables), n))
    return {index_of(a): moments.coefficient(a) for a in every}


def target(g: Any, x: Any = None) -> tuple[Expr, tuple[Symbol, ...]]:
    """The expression and the variables that a caller's `g` and `x` mean."""
    body = _target_expression(g)
    if x is None:
        return body, symbols.normals(body) or (symbols.z,)
    given = tuple(x) if isinstance(x, (tuple, list)) else (x,)
    by_name = {s.name: s for s in body.free_symbols if type(s) is Symbol}
    return body, tuple(by_name.get(str(v), v if isinstance(v, Symbol) else symbols.normal(str(v))) for v in given)


def _target_expression(g: Any) -> Expr:
    if isinstance(g, Expr):
        return symbols.standard(g)
    if isinstance(g, str) and not g.isidentifier():
        return symbols.standard(hooks.formula(g))
    if isinstance(g, (str, type)) or hasattr(g, "name"):
        from hermitex.symbolic.activations import activation

        return activation(g)(symbols.z)
    return symbols.standard(hooks.formula(g))


class _Projections:
    """Moments of one target, each integrated once: c_a is a combination of E[z^n g] with integers."""

    def __init__(self, body: Expr, variables: tuple[Symbol, ...], known: _Moments | None = None) -> None:
        self.body, self.variables = body, variables
        self.known: _Moments = {} if known is None else known
        self.polynomial: Mapping[Index, Expr] | None = None
        self._exists = False
        if body.is_polynomial(*variables):
            self.polynomial = to_hermite(body, *variables)

    def coefficient(self, a: tuple[int, ...]) -> Expr:
        checkpoint("computing Hermite coefficients")
        if self.polynomial is not None:
            value = multiply_out(self.polynomial.get(index_of(a), S.Zero)*index_factorial(a))
            return _normal_form(value) if has_nodes(value) else value
        if (known := self._by_reflection(a)) is not None:
            return known
        try:
            return self._combine(a)
        except NoClosedForm:
            pass
        if has_nodes(self.body):
            return _normal_form(E(self.body*He(a, self.variables), *self.variables))
        return Add(*(part.coefficient(a) for part in self._parts))

    @cached_property
    def _parts(self) -> list[_PartProjections]:
        """The target as a sum of terms that are integrated apart: what is closed leaves the rest a smaller node."""
        bodies = [core*polynomial for core, polynomial in by_core(self.body, self.variables).items()]
        known = self.known if bodies == [self.body] else None  # a single term has the moments of the target
        return [_PartProjections(body, self.variables, known) for body in bodies]

    def _combine(self, a: tuple[int, ...]) -> Expr:
        terms = []
        for choice in cartesian(*(monomials(k) for k in a)):
            terms.append(Integer(prod(c for _, c in choice))*self._moment(tuple(n for n, _ in choice)))
        return multiply_out(Add(*terms))

    def _moment(self, n: tuple[int, ...]) -> Expr:
        if n not in self.known and (refusal := self._refused_below(n)) is not None:
            self.known[n] = refusal
        if n not in self.known:
            from hermitex.symbolic.integrals import closed_form

            power = Mul(*(v**i for v, i in zip(self.variables, n, strict=True)))
            try:
                self.known[n] = closed_form(E(self.body*power, *self.variables))
            except (NoClosedForm, Divergent) as refusal:
                self.known[n] = refusal
        found = self.known[n]
        if isinstance(found, HermitexError):
            raise found
        return found

    def _refused_below(self, n: tuple[int, ...]) -> NoClosedForm | None:
        """The refusal of the moments two and four orders below in one variable.

        E[z^n g] = (n - 1) E[z^(n-2) g] + E[z^(n-1) g'] has the same transcendental part for every n of one parity, and the
        search costs seconds for each of them at high orders.
        """
        for i in range(len(n)):
            two, four = ((*n[:i], n[i] - step, *n[i + 1:]) for step in (2, 4))
            refusal = self.known.get(two)
            if isinstance(refusal, NoClosedForm) and isinstance(self.known.get(four), NoClosedForm):
                return refusal
        return None

    def _by_reflection(self, a: tuple[int, ...]) -> Expr | None:
        """c_a where reflection in one variable gives it: 0 of an even or odd g, and those of a z^n in g = a z^n + even or odd."""
        if any(sign == 0 or sign == -(-1)**k for sign, k in zip(self._parities, a, strict=True)):
            return self._of_existing(S.Zero)
        if len(a) == 1 and (found := self._apart.get(a[0] % 2)) is not None:
            return self._of_existing(found if a[0] < 2 else S.Zero)
        return None

    def _of_existing(self, value: Expr) -> Expr:
        """The value, where the average of the target exists: 1/z is odd, and has no mean."""
        if not self._exists:
            require_existence(E(self.body, *self.variables))
            self._exists = True
        return value

    @cached_property
    def _apart(self) -> dict[int, Rational]:
        """{n: a} if g - a z^n has the other parity than z^n, n = 0 or 1: floor(z) + 1/2 is odd, softplus(z) - z/2 is even.

        The number is read at two points, and then proved.
        """
        from hermitex.symbolic.parity import parity

        v = self.variables[0]
        for n in (0, 1):
            a, other = (self._read(n, place) for place in (Rational(1, 3), Rational(7, 5)))
            if a is not None and a == other and a != 0 and parity(self.body - a*v**n, v) == -(-1)**n:
                return {n: a}
        return {}

    def _read(self, n: int, place: Rational) -> Rational | None:
        """(g(x) + (-1)^n g(-x))/(2 x^n), where it is a simple rational number."""
        v = self.variables[0]
        value = (self.body.xreplace({v: place}) + (-1)**n*self.body.xreplace({v: -place})).evalf(20)/(2*place**n)
        if not value.is_Float and not value.is_Rational:
            return None
        near = Rational(str(value)).limit_denominator(1000)
        return near if abs(value - near) < Rational(1, 10**15) else None

    @cached_property
    def _parities(self) -> tuple[int | None, ...]:
        from hermitex.symbolic.parity import parity

        return tuple(parity(self.body, v) for v in self.variables)


class _PartProjections(_Projections):
    """One term of a target: its coefficients are closed, or nodes."""

    def coefficient(self, a: tuple[int, ...]) -> Expr:
        if (known := self._by_reflection(a)) is not None:
            return known
        try:
            return self._combine(a)
        except (NoClosedForm, Divergent):
            return E(self.body*He(a, self.variables), *self.variables)


def _normal_form(expr: Expr) -> Expr:
    from hermitex.symbolic.integrals import normal_form

    return normal_form(expr)


def has_nodes(expr: Expr) -> bool:
    """True if an expectation in it was left unevaluated."""
    return expr.has(Expectation)
