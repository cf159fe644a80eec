"""g(z) = P(z) + sum_j f_j(R_j z): a polynomial and summands that each depend on a few directions.

A Hermite tensor of the sum is the sum of the tensors, and the tensor of f(R z) is that of f in as many variables as R
has rows, carried over by R. So a committee of many neurons costs no more than its neurons.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sympy import Abs, Add, Expr, Heaviside, Max, Min, Mul, Piecewise, Pow, S, Symbol, expand, factor_list, log, sign
from sympy.polys.polyerrors import BasePolynomialError

from hermitex.symbolic.bounds.integrability import integrable
from hermitex.symbolic.invariance import aligned, rewritten, unseen
from hermitex.symbolic.subspaces import Matrix, complement, orthonormal
from hermitex.symbolic.terms import terms
from hermitex.symbolic.weak import in_heavisides


@dataclass(frozen=True)
class Summand:
    """f(s), s = R z: `expr` over the symbols `names`, the orthonormal rows of `rows` over the variables of the target."""

    expr: Expr
    names: tuple[Symbol, ...]
    rows: Matrix


@dataclass(frozen=True)
class Split:
    """A target taken apart: its polynomial, and its other summands."""

    target: Expr
    variables: tuple[Symbol, ...]
    polynomial: Expr
    summands: tuple[Summand, ...]


def split(g: Expr, variables: Sequence[Symbol]) -> Split:
    """The target as a polynomial and summands over orthonormal rows; equal almost everywhere, each summand integrable.

    Examples
    --------
    >>> from hermitex.symbols import z1, z2
    >>> found = split(Max(z1, z2), (z1, z2))
    >>> found.polynomial, [(f.expr, f.rows) for f in found.summands]
    (z1/2 + z2/2, [(sqrt(2)*Abs(z1)/2, Matrix([[sqrt(2)/2, -sqrt(2)/2]]))])
    """
    variables = tuple(variables)
    if g.is_polynomial(*variables):
        return Split(g, variables, g, ())
    whole = apart(g, variables)
    found: dict[Expr, list[Expr]] = {}
    size = 300  # operations up to which an expression is taken apart
    for t in terms(whole, variables) if whole.count_ops() < size else ():
        found.setdefault(t.core, []).append(t.coefficient*t.body(variables))
    if not found or any(integrable(Add(*parts), _inside(Add(*parts), variables)) is False for parts in found.values()):
        return Split(g, variables, S.Zero, (_summand(g, variables),))
    polynomial = Add(*found.pop(S.One, []))
    rest = (part for parts in found.values() for part in _by_variables(parts, variables))
    return Split(g, variables, polynomial, tuple(_gathered([_summand(e, variables) for e in rest])))


def _inside(e: Expr, variables: tuple[Symbol, ...]) -> tuple[Symbol, ...]:
    return tuple(v for v in variables if v in e.free_symbols) or variables[:1]


def _by_variables(parts: list[Expr], variables: tuple[Symbol, ...]) -> list[Expr]:
    """Terms over one core that hold the same variables stay together."""
    groups: dict[tuple[Symbol, ...], list[Expr]] = {}
    for part in parts:
        groups.setdefault(_inside(part, variables), []).append(part)
    return [Add(*group) for group in groups.values()]


def _summand(e: Expr, variables: tuple[Symbol, ...]) -> Summand:
    rows = orthonormal(aligned(complement(unseen(e, variables)), (e,), variables))
    names = variables[:rows.rows]  # nodes are equal up to the names they bind, and one kept from here may be shown to a user
    return Summand(rewritten(e, variables, rows, names), names, rows)


def _gathered(found: list[Summand]) -> list[Summand]:
    """Summands over the same rows are one."""
    groups: dict[Matrix, list[Summand]] = {}
    for f in found:
        groups.setdefault(f.rows, []).append(f)
    return [Summand(Add(*(f.expr for f in group)), group[0].names, rows) for rows, group in groups.items()]


# -- switches that couple variables ------------------------------------------------------------------------------------
def apart(g: Expr, variables: tuple[Symbol, ...]) -> Expr:
    """Max and Min of two directions through |a - b|, Piecewise through Heaviside; sign, |.| and log of products apart.

    Examples
    --------
    >>> from sympy import log
    >>> from hermitex.symbols import z1, z2
    >>> apart(log(Abs(z1*z2)), (z1, z2)), apart(sign(z1**2 - z2**2), (z1, z2))
    (log(Abs(z1)) + log(Abs(z2)), sign(z1 - z2)*sign(z1 + z2))
    """
    def coupled(e: Expr) -> bool:
        return len(e.free_symbols & set(variables)) > 1

    g = g.replace(lambda e: isinstance(e, Piecewise) and coupled(e), in_heavisides)
    g = g.replace(lambda e: isinstance(e, (Max, Min)) and coupled(e), open_extremum)
    g = g.replace(lambda e: isinstance(e, Heaviside) and coupled(e) and _product(e.args[0], variables) is not None,
                  lambda e: (1 + _factorwise(sign, e.args[0], variables))/2)
    g = g.replace(lambda e: isinstance(e, (sign, Abs)) and coupled(e),
                  lambda e: _factorwise(e.func, e.args[0], variables))
    return g.replace(lambda e: isinstance(e, log) and coupled(e) and all(f.is_nonnegative for f in Mul.make_args(e.args[0])),
                     lambda e: Add(*(n*log(b) for b, n in e.args[0].as_powers_dict().items())))


def open_extremum(e: Expr) -> Expr:
    """max(a, b) = (a + b)/2 + |a - b|/2, one argument after the other."""
    side = 1 if isinstance(e, Max) else -1
    value = e.args[0]
    for a in e.args[1:]:
        value = (value + a + side*Abs(expand(value - a)))/2
    return value


def _factorwise(kind: type, u: Expr, variables: tuple[Symbol, ...]) -> Expr:
    """sign or Abs of a product, factor by factor; a polynomial is factorised first."""
    factors = _product(u, variables)
    if factors is None:
        return kind(u)
    # sign^2 = 1 almost everywhere.
    return Mul(*(kind(b)**(n if kind is Abs else n % 2) for b, n in factors))


def _product(u: Expr, variables: tuple[Symbol, ...]) -> list[tuple[Expr, int]] | None:
    """[(factor, power)] of something that is a product in more than one way of its variables, else None."""
    if isinstance(u, (Mul, Pow)):
        found = [(b, n) for b, n in u.as_powers_dict().items()]
        return found if all(n.is_Integer and n > 0 for _, n in found) else None
    if not u.is_polynomial(*variables) or u.count_ops() > 40:
        return None
    try:
        constant, factors = factor_list(u, *variables)
    except (BasePolynomialError, NotImplementedError, ValueError):
        return None
    if len(factors) < 2 and all(n == 1 for _, n in factors):
        return None
    return [(constant, 1), *((f, int(n)) for f, n in factors)]
