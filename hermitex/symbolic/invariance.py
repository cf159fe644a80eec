"""v . grad g = 0: the directions on which a function does not depend.

A function is built from polynomials (the largest polynomial parts of its expression). A direction on which none of them
depends is one on which the function does not depend, so the answer is a linear system in v, solved exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sympy import (
    Add,
    Basic,
    Expr,
    Mul,
    Poly,
    Rational,
    S,
    Symbol,
    factor_list,
    sqrt,
)
from sympy.core.relational import Relational
from sympy.polys.polyerrors import BasePolynomialError

from hermitex import symbols
from hermitex.errors import HermitexError
from hermitex.symbolic.arithmetic import mp, mpf
from hermitex.symbolic.breaks.switches import JUMPS
from hermitex.symbolic.budget import kept
from hermitex.symbolic.formula_size import MAX_TERMS, polynomial_size
from hermitex.symbolic.parity import identically_zero
from hermitex.symbolic.series.polynomials import poly_of
from hermitex.symbolic.subspaces import Matrix, complement, contains, matrix, null_space, stack, tidy
from hermitex.symbolic.terms import by_core


def polynomial_parts(g: Basic, variables: Sequence[Symbol]) -> list[Poly]:
    """The polynomials that g is built from: sums and products are taken apart, arguments of functions read.

    Examples
    --------
    >>> from sympy import tanh
    >>> from hermitex.symbols import z1, z2
    >>> [p.as_expr() for p in polynomial_parts(z1*tanh(z1 + z2) + z2*tanh(z1 + z2) + z1**2, (z1, z2))]
    [z1**2, z1 + z2, z1 + z2]
    """
    found: list[Poly] = []
    _collect(g, tuple(variables), found)
    return found


def _collect(e: Basic, variables: tuple[Symbol, ...], into: list[Poly]) -> None:
    if not e.free_symbols & set(variables):
        return
    if isinstance(e, Expr) and e.is_polynomial(*variables):
        if polynomial_size(e, variables)[0] <= MAX_TERMS:
            into.append(poly_of(e, *variables))
            return
    elif isinstance(e, (Add, Mul)) and e.count_ops() < 400:
        for core, polynomial in by_core(e, variables).items():
            if polynomial.free_symbols & set(variables):
                into.append(poly_of(polynomial, *variables))
            for factor in Mul.make_args(core):
                _inside(factor, variables, into)
        return
    _inside(e, variables, into)


def _inside(e: Basic, variables: tuple[Symbol, ...], into: list[Poly]) -> None:
    if isinstance(e, Relational):
        _collect(e.lhs - e.rhs, variables, into)
        return
    for a in e.args:
        _collect(a, variables, into)


def linear_forms(g: Basic, variables: Sequence[Symbol]) -> list[list[Expr]]:
    """The coefficient rows of the linear forms that g depends on: its linear parts, and the linear factors of the others.

    Examples
    --------
    >>> from sympy import sign
    >>> from hermitex.symbols import z1, z2
    >>> linear_forms(sign(z1**2 - z2**2), (z1, z2))
    [[1, -1], [1, 1]]
    """
    rows: list[list[Expr]] = []
    for part in polynomial_parts(g, variables):
        for factor in _factors(part):
            if factor.total_degree() == 1:
                row = [factor.coeff_monomial(v) for v in factor.gens]
                if not any(x.free_symbols for x in row) and row not in rows:
                    rows.append(row)
    return rows


def _factors(p: Poly) -> list[Poly]:
    if p.total_degree() <= 1:
        return [p]
    if p.total_degree() > 12 or len(p.terms()) > 60:
        return []
    try:
        return [Poly(f, *p.gens) for f, _ in factor_list(p.as_expr(), *p.gens)[1]]
    except (BasePolynomialError, NotImplementedError, ValueError):
        return []


# -- translations ------------------------------------------------------------------------------------------------------
def unseen(g: Any, variables: Sequence[Symbol]) -> Matrix:
    """Rows v with v . grad g = 0: g does not change along them. Proved; others may exist.

    g may be a sequence of expressions: directions on which none of them depends.

    Examples
    --------
    >>> from sympy import tanh
    >>> from hermitex.symbols import z1, z2, z3
    >>> unseen(tanh(z1 + 2*z2), (z1, z2, z3))
    Matrix([
    [-2, 1, 0],
    [ 0, 0, 1]])
    """
    return _unseen(tuple(g) if isinstance(g, (list, tuple)) else (g,), tuple(variables))


@kept(512)
def _unseen(expressions: tuple[Expr, ...], variables: tuple[Symbol, ...]) -> Matrix:
    rows = [row for e in expressions for p in polynomial_parts(e, variables)
            for row in _rows([p.diff(v) for v in variables])]
    found = null_space(matrix(_distinct(rows), len(variables)))
    return _by_values(expressions, variables, found)


def _rows(columns: list[Poly]) -> list[list[Expr]]:
    """sum_i x_i p_i = 0 monomial by monomial: one row of coefficients for each."""
    tables = [dict(p.terms()) for p in columns]
    every = dict.fromkeys(m for t in tables for m in t)
    rows = [[S(t.get(m, 0)) for t in tables] for m in every]
    return [split for row in rows for split in _without_parameters(row)]


def _without_parameters(row: list[Expr]) -> list[list[Expr]]:
    """A row whose coefficients hold other symbols: one for each power of them, or a refusal of every direction."""
    symbols = sorted(set().union(*(x.free_symbols for x in row)), key=str)
    if not symbols:
        return [row]
    try:
        return _rows([Poly(x, *symbols) for x in row])
    except BasePolynomialError:
        return [[S(int(i == j)) for j in range(len(row))] for i in range(len(row)) if row[i] != 0]


def _distinct(rows: list[list[Expr]]) -> list[list[Expr]]:
    return [list(r) for r in dict.fromkeys(tuple(r) for r in rows if any(x != 0 for x in r))]


def _by_values(expressions: Sequence[Expr], variables: tuple[Symbol, ...], known: Matrix) -> Matrix:
    """More directions, guessed from the gradient at a few points and proved by translation."""
    r = len(variables)
    if all(e.is_polynomial(*variables) and polynomial_size(e, variables)[0] <= MAX_TERMS for e in expressions):
        return known  # its monomials say all
    rows: list[list[Any]] = []
    for e in expressions:
        if e.free_symbols - set(variables):
            return known
        rows += [[S(p.coeff_monomial(v)) for v in variables] for s in e.atoms(*JUMPS)
                 for p in polynomial_parts(s, variables) if p.total_degree() == 1]
        if any(p.total_degree() > 1 for s in e.atoms(*JUMPS) for p in polynomial_parts(s, variables)):
            return known
    guesses = _numeric_null_space(expressions, variables, rows)
    if guesses is None or guesses.rows <= known.rows:
        return known
    t = Symbol("t_shift", real=True)
    proved = [row for row in guesses.tolist() if all(
        identically_zero(e.xreplace({v: v + t*x for v, x in zip(variables, row, strict=True)}) - e, (*variables, t))
        for e in expressions)]
    return matrix(proved, r) if len(proved) > known.rows else known


def _numeric_null_space(expressions: Sequence[Expr], variables: tuple[Symbol, ...],
                        rows: list[list[Expr]]) -> Matrix | None:
    """A rational guess at the common null space of `rows` and of the gradients at generic points."""
    with mp.workdps(60):
        found = _gradients(expressions, variables)
        if len(found) < len(variables):
            return None
        table = [[mpf(x.p)/x.q if x.is_Rational else mpf(x.evalf(60)) for x in row] for row in rows]
        return _guessed_null_space(table + found, len(variables))


def _gradients(expressions: Sequence[Expr], variables: tuple[Symbol, ...]) -> list[list[Any]]:
    """Central differences at the working precision."""
    from hermitex.numbers.program import Program  # with NumPy, which an exact answer does not need

    r, found, step = len(variables), [], mpf(10)**-18
    for e in expressions:
        try:
            value = Program(e, variables).digits
            for k in range(r + 3):
                point = [mpf((37*k + 23*i + 11) % 97)/41 - 1 - mpf(k)/7 for i in range(r)]
                sides = [[value(*(x + s*(i == j) for j, x in enumerate(point))) for s in (step, -step)] for i in range(r)]
                found.append([(above - below)/(2*step) for above, below in sides])
        except (HermitexError, ArithmeticError, ValueError, TypeError):
            continue
    return found


def _guessed_null_space(table: list[list[Any]], r: int) -> Matrix:
    """Gauss-Jordan with a tolerance, entries rounded to simple rationals: a guess, proved or dropped by the caller."""
    pivots: list[int] = []
    done: list[list[Any]] = []
    for c in range(r):
        best = max(table, key=lambda row: abs(row[c]), default=None)
        if best is None or abs(best[c]) < mpf(10)**-12:
            continue
        table.remove(best)
        best = [x/best[c] for x in best]
        table = [[a - row[c]*b for a, b in zip(row, best, strict=True)] for row in table]
        done = [[a - row[c]*b for a, b in zip(row, best, strict=True)] for row in done] + [best]
        pivots.append(c)
    guess = []
    for free in (c for c in range(r) if c not in pivots):
        row = [S(int(c == free)) for c in range(r)]
        for i, pivot in enumerate(pivots):
            row[pivot] = Rational(str(mp.nstr(-done[i][free], 30))).limit_denominator(1000)
        guess.append(row)
    return matrix(guess, r)


# -- a target over other coordinates ---------------------------------------------------------------------------------
def aligned(rows: Matrix, expressions: Sequence[Expr], variables: Sequence[Symbol]) -> Matrix:
    """The same subspace over the linear forms that the target is written in, where they are orthogonal to each other."""
    forms = [row for e in expressions for row in linear_forms(e, variables)]
    chosen: list[list[Expr]] = []
    for row in forms:
        clear = all(tidy(Add(*(a*b for a, b in zip(row, other, strict=True)))) == 0 for other in chosen)
        if clear and contains(rows, matrix([row], len(variables))):
            chosen.append(row)
    if not chosen or all(sum(1 for x in row if x != 0) == 1 for row in chosen):
        return rows
    whole = matrix(chosen, len(variables))
    if whole.rows < rows.rows:
        rest = complement(stack(whole, complement(rows)) if rows.rows < rows.cols else whole)
        whole = stack(whole, rest)
    # Only where every form is a row, or it is a change for nothing.
    seen = [row for row in forms if any(contains(matrix([c], len(variables)), matrix([row], len(variables)))
                                        for c in whole.tolist())]
    return whole if len(seen) == len(forms) else rows


def rewritten(g: Expr, variables: Sequence[Symbol], basis: Matrix, names: Sequence[Symbol]) -> Expr:
    """g(B^T u): g over the coordinates u = B z, for a g that depends on nothing else."""
    swap: dict[Basic, Any] = {v: Add(*(basis[i, j]*u for i, u in enumerate(names))) for j, v in enumerate(variables)}
    if all(w == v for v, w in swap.items()):
        return g
    # A condition with variables on both sides: Piecewise may turn it round and round without end.
    swap |= {c: c.func(_gathered((c.lhs - c.rhs).xreplace(swap), set(names)), 0) for c in g.atoms(Relational)}
    return _gathered(g.xreplace(swap), set(names))


def _gathered(e: Any, names: set[Symbol]) -> Any:
    """Polynomial parts multiplied out, so that what cancels is gone: (u + v)/2 + (u - v)/2 is u."""
    if not e.args or not e.free_symbols & names:
        return e
    if isinstance(e, Expr) and e.is_polynomial(*names) and e.count_ops() < 400:
        return symbols.standard(e.expand().replace(lambda n: n.is_Pow and n.exp == S.Half and n.base.is_Rational,
                                                   lambda n: sqrt(n.base)))
    return e.func(*(_gathered(a, names) for a in e.args))
