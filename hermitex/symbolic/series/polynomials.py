"""E[He_j(z) He_k(z)] = k! delta_jk: the monic (probabilists') Hermite polynomials and their algebra."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, reduce
from itertools import product as cartesian
from math import comb, factorial, prod
from operator import add, mul
from typing import Any

from sympy import Add, Expr, Function, Mul, Poly, Pow, S, Symbol, sqrt, sympify
from sympy import expand as multiply_out
from sympy import factorial as factorial_of

from hermitex.errors import BadInput
from hermitex.symbolic import hooks

Index = int | tuple[int, ...]


# -- the polynomials ---------------------------------------------------------------------------------------------------
@lru_cache(maxsize=1024)
def monomials(k: int) -> tuple[tuple[int, int], ...]:
    """He_k = sum of c x^n as pairs (n, c), highest first: c = (-1)^j k! / (2^j j! n!), n = k - 2j."""
    return tuple((k - 2*j, (-1)**j * comb(k, 2*j) * _pairings(j)) for j in range(k//2 + 1))


@lru_cache(maxsize=1024)
def from_monomial(n: int) -> tuple[tuple[int, int], ...]:
    """x^n = sum of a He_k as pairs (k, a), highest first: the same numbers as in He_n, without the signs."""
    return tuple((k, abs(a)) for k, a in monomials(n))


def _pairings(j: int) -> int:
    """(2j - 1)!!, the number of ways to pair 2j things."""
    return factorial(2*j) // (2**j * factorial(j))


def He(k: int | Sequence[int], x: Expr | float | Sequence[Expr | float], *, horner: bool = False) -> Expr:
    """The monic (probabilists') Hermite polynomial: He_0 = 1, He_1 = x, He_{k+1} = x He_k - k He_{k-1}.

    The first are 1, x, x^2 - 1, x^3 - 3x, x^4 - 6x^2 + 3. E[He_j(z) He_k(z)] = k! delta_jk.

    Parameters
    ----------
    k : int >= 0, or a letter (or k - 1, k + 2) declared integer; or a multi-index (a_1, ..., a_r)
    x : expression or number, or r of them for a multi-index: He_a(x) = prod_i He_{a_i}(x_i)
    horner : nest it, x*(x**2 - 3), for evaluation

    Raises
    ------
    BadInput : the order is not a non-negative integer, or the numbers of orders and arguments differ.

    Guarantee
    ---------
    Exact, for whole and for symbolic orders. See docs/promise.md.

    Examples
    --------
    >>> from hermitex.symbols import z, z1, z2
    >>> He(3, z), He(4, z)
    (z**3 - 3*z, z**4 - 6*z**2 + 3)
    >>> He((2, 1), (z1, z2))
    z2*(z1**2 - 1)
    >>> He(Symbol("k", integer=True), z).diff(z)
    k*He(k - 1, z)
    """
    if isinstance(k, (tuple, list)):
        points = tuple(x) if isinstance(x, Iterable) else (x,)
        if len(points) != len(k):
            raise BadInput(f"He: {len(k)} orders for {len(points)} variables")
        return Mul(*(He(i, p, horner=horner) for i, p in zip(k, points, strict=True)))
    if isinstance(k, Expr) and k.is_integer and k.free_symbols:
        return HermiteOfOrder(k, _expression(x))
    k, x = order_of(k), _expression(x)
    if x.is_number or horner:
        return _nested(k, x)
    return Add(*(c*x**n for n, c in monomials(k)))


def h(k: int | Sequence[int], x: Any, *, horner: bool = False) -> Expr:
    """The orthonormal Hermite polynomial h_k = He_k / sqrt(k!): 1, x, (x^2 - 1)/sqrt(2), (x^3 - 3x)/sqrt(6).

    Examples
    --------
    >>> from hermitex.symbols import z
    >>> h(2, z)
    sqrt(2)*(z**2 - 1)/2
    """
    scale = factorial_of(k) if isinstance(k, Expr) else index_factorial(k if isinstance(k, int) else tuple(k))
    return He(k, x, horner=horner) / sqrt(scale)


class HermiteOfOrder(Function):
    """He_k(x) of an order k that is a letter; 0 below order 0, so that He_k' = k He_{k-1} holds at every order."""

    nargs = 2

    @classmethod
    def eval(cls, k: Expr, x: Expr) -> Expr | None:
        return (He(k, x) if k >= 0 else S.Zero) if k.is_Integer else None

    def fdiff(self, argindex: int = 2) -> Expr:
        """The derivative in x."""
        k, x = self.args
        return k*HermiteOfOrder(k - 1, x)

    def _eval_is_extended_real(self) -> bool | None:
        return self.args[1].is_extended_real

    def _sympystr(self, printer: Any) -> str:
        return f"He({', '.join(map(printer._print, self.args))})"

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        order, x = map(printer._print, self.args)
        return rf"\mathrm{{He}}_{{{order}}}{f'^{{{exp}}}' if exp else ''}\left({x}\right)"


def order_of(k: Any) -> int:
    """The order as an int, or `BadInput`."""
    if isinstance(k, bool) or not (isinstance(k, int) or getattr(k, "is_Integer", False)) or k < 0:
        raise BadInput(f"a Hermite order must be an integer >= 0, not {k}")
    return int(k)


def _expression(x: Any) -> Expr:
    found: Expr = hooks.formula(x)
    return found


def _nested(k: int, x: Expr) -> Expr:
    """Horner in x^2; exact for a number, nested for a symbol."""
    value: Expr = S.Zero
    for _, c in monomials(k):
        value = value*x**2 + c
    return value*x if k % 2 else value


def index_factorial(a: Index) -> int:
    """k!, or a! = prod a_i! for a multi-index."""
    return factorial(a) if isinstance(a, int) else prod(factorial(i) for i in a)


def to_hermite(polynomial: Any, *variables: Symbol) -> dict[Index, Expr]:
    """The exact expansion sum_a p_a He_a of a polynomial: {order: p_a} (multi-indices for several variables).

    Examples
    --------
    >>> from hermitex.symbols import z
    >>> to_hermite(z**4, z)
    {4: 1, 2: 6, 0: 3}
    """
    parts: dict[tuple[int, ...], list[Expr]] = {}
    for powers, value in poly_of(polynomial, *variables).terms():
        for choice in cartesian(*(from_monomial(n) for n in powers)):
            parts.setdefault(tuple(k for k, _ in choice), []).append(value*prod(a for _, a in choice))
    sums = {a: multiply_out(Add(*terms)) for a, terms in parts.items()}
    return {index_of(a): v for a, v in sums.items() if v != 0}


def poly_of(expr: Any, *variables: Symbol) -> Poly:
    """The polynomial that an expression writes: as `Poly`, but powers are taken of polynomials, not of expressions.

    Examples
    --------
    >>> from hermitex.symbols import z
    >>> poly_of(((1 + z)**20 + (1 + z**2)**20)**10, z).degree()
    400
    """
    expr = sympify(expr, strict=True)
    if isinstance(expr, Add | Mul) and expr.has_free(*variables):
        parts = [poly_of(a, *variables) for a in expr.args]
        return reduce(mul if isinstance(expr, Mul) else add, parts)
    if isinstance(expr, Pow) and expr.exp.is_Integer and expr.exp.is_positive and expr.has_free(*variables):
        return poly_of(expr.base, *variables)**int(expr.exp)
    return Poly(expr, *variables)


def index_of(a: tuple[int, ...]) -> Index:
    """A multi-index of one variable is written as an int."""
    return a[0] if len(a) == 1 else a


def multi_indices(variables: int, order: int) -> Iterator[tuple[int, ...]]:
    """The multi-indices of total order `order`, first variable highest first: (2,0), (1,1), (0,2)."""
    if variables == 1:
        yield (order,)
        return
    for first in range(order, -1, -1):
        for rest in multi_indices(variables - 1, order - first):
            yield (first, *rest)
