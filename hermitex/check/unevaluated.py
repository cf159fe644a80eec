r"""d/dx f, f|_{x = a}, lim f, \int f dx as a claim writes them: worked out from the inside, so that both sides can be compared.

SymPy's value of a limit, or of an integral without an average, is used only if numbers near the point, or a quadrature, agree.
"""

from __future__ import annotations

from typing import Any

from sympy import (
    Basic,
    Derivative,
    Determinant,
    Dummy,
    Expr,
    Float,
    Integral,
    Limit,
    MatrixBase,
    MatrixExpr,
    Piecewise,
    Product,
    Rational,
    Subs,
    Sum,
    Trace,
    limit,
    nan,
    oo,
    zoo,
)
from sympy.core.function import AppliedUndef

from hermitex.check import replicas
from hermitex.check.orders import summed
from hermitex.errors import HermitexError
from hermitex.symbolic.conditional_expectation import ConditionalMean, worked_out
from hermitex.symbolic.digits.finite_ranges import as_averages
from hermitex.symbolic.formula_size import DECIDED, operations
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.indexed_sums import ArraySum
from hermitex.symbolic.series.polynomials import HermiteOfOrder
from hermitex.symbolic.undefined import is_slope, slopes_done, tidy
from hermitex.symbols import fits, fractions

FORMS = (Derivative, Subs, Limit, Integral, Sum, Determinant, Trace, ConditionalMean)
_OPAQUE = (Expectation, AppliedUndef, ArraySum)
_DIGITS = 40  # of a number next to a limit: thirty are compared
_NEAR = (Rational(1, 10**8), Rational(1, 10**16))   # distances from the point at which a limit is tried


def evaluated(expr: Expr) -> Expr:
    """Derivatives, substitutions, limits, integrals, determinants and traces done, the inner ones first; what cannot be done stays.

    >>> from sympy.abc import q, x
    >>> evaluated(Subs(Derivative(q/(1 + q), q), q, 0)), evaluated(x*Limit((1 - 1/(1 + q))/q, q, 0))
    (1, x)
    """
    if not expr.has(*FORMS):
        return expr
    return tidy(tidy(slopes_done(worked_out(expr))).replace(lambda e: isinstance(e, FORMS), _done))


def explicit(matrix: Any) -> MatrixBase:
    """A matrix of entries: products, transposes and inverses carried out."""
    if isinstance(matrix, MatrixExpr) and (value := replicas.worked_out(matrix)) is not None:
        return value
    return matrix.doit().as_explicit() if isinstance(matrix, MatrixExpr) else matrix


def undone(*sides: Expr) -> Expr | None:
    """A derivative, substitution or limit, or a sum over orders, that is left, which no number can be put into.

    Partial derivatives of undefined functions are those of what is put in for them.
    """
    left = [e for side in sides for e in side.atoms(Derivative, Subs, Limit, Sum)]
    within = {e.expr for e in left if isinstance(e, Subs) and is_slope(e)}
    return next((e for e in left if not (is_slope(e) or e in within) and (not isinstance(e, Sum) or
                                     (e.has(HermiteOfOrder) and e.has(oo, Expectation)))), None)


def renamed(*sides: Expr) -> tuple[Expr, ...]:
    """The sides with another letter for what an integral or a sum binds, where it is a parameter too.

    >>> from sympy.abc import x, y
    >>> renamed(Integral(y, (y, 0, y)), x)
    (Integral(_y, (_y, 0, y)), x)
    """
    free: set[Basic] = set().union(*(side.free_symbols for side in sides))
    fresh = {v: Dummy(v.name, **v.assumptions0) for v in sorted(free, key=str)}

    def other(e: Any) -> Expr:
        body, spans = e.function, list(e.limits)
        for i, (x, *ends) in enumerate(spans):
            if x in free and len(ends) == 2:  # the ranges of the inner integrals hold x as well
                spans[i], body = (fresh[x], *ends), body.xreplace({x: fresh[x]})
                spans[:i] = [(v, *(b.xreplace({x: fresh[x]}) for b in inner)) for v, *inner in spans[:i]]
        return e.func(body, *spans)

    return tuple(side.replace(lambda e: isinstance(e, Integral | Sum), other) for side in sides)


def endless_of_undefined(*sides: Expr) -> Expr | None:
    """Return an integral or sum to infinity over an undefined function outside of averages; it diverges for trial functions."""
    return next((e for side in sides for e in side.atoms(Integral, Sum, Product)
                 if e.has(AppliedUndef) and any(b.has(oo, -oo) for span in e.limits for b in span[1:])), None)


def _done(e: Expr) -> Expr:
    if isinstance(e, Limit):
        return _limit(e)
    if isinstance(e, Integral):
        return _integral(e)
    if isinstance(e, Sum):
        return summed(e)
    if isinstance(e, Determinant | Trace) and (value := replicas.worked_out(e)) is not None:
        return value
    return tidy(e.doit())


def _limit(e: Limit) -> Expr:
    body, x, at, side = e.args
    # Averages and functions without x are numbers, and letters here.
    fixed = sorted((n for n in body.atoms(*_OPAQUE) if not n.has(x)), key=str)
    letters = {n: Dummy(f"n{i}", real=True) for i, n in enumerate(fixed)}
    body = body.xreplace(letters)
    if body.has(*_OPAQUE, *FORMS) or operations(body) > DECIDED:
        return e
    try:
        value = limit(body, x, at, str(side))
    except (NotImplementedError, ValueError, TypeError, ArithmeticError):
        return e
    if value.has(Limit, x, nan, zoo) or not _approached(body, x, at, str(side), value):
        return e
    return value.xreplace({letter: n for n, letter in letters.items()})


def _approached(body: Expr, x: Expr, at: Expr, side: str, value: Expr) -> bool:
    """Do the numbers of the body near the point come nearer to the value?"""
    points = _points((body.free_symbols | at.free_symbols) - {x})
    return bool(points) and not value.has(oo, -oo) and all(_approached_at(body, x, at, side, value, given) for given in points)


def _approached_at(body: Expr, x: Expr, at: Expr, side: str, value: Expr, given: dict[Basic, Expr]) -> bool:
    wanted, gaps = _number(value.xreplace(given)), []
    for h in _NEAR:
        near = 1/h if at is oo else -1/h if at is -oo else at.xreplace(given) + (-h if side == "-" else h)
        number = _number(body.xreplace(given).xreplace({x: Float(near, 2*_DIGITS)}))   # no power of rational numbers
        if wanted is None or number is None:
            return False
        gaps.append(abs(number - wanted))
    return bool(gaps[1] <= gaps[0]/2 + Rational(1, 10**(_DIGITS - 10)) and gaps[1] <= (1 + abs(wanted))/1000)


def _points(symbols: set[Basic]) -> list[dict[Basic, Expr]]:
    """Numbers for the symbols: positive ones, negative ones where they may be, and in turn; none where one takes no fraction."""
    drawn = [fractions(symbols, *signs) for signs in ((1,), (-1,), (1, -1))]
    return [p for i, p in enumerate(drawn) if p not in drawn[:i]] if all(fits(s, v) for p in drawn for s, v in p.items()) else []


def _number(expr: Expr) -> Any:
    """A number in `_DIGITS` digits, or None."""
    value = expr.evalf(_DIGITS)
    return value if value.is_Float or value.is_Rational else None


def _integral(e: Integral) -> Expr:
    """Its value where SymPy finds one and a quadrature agrees; improper ones most of all, which quadrature does alone."""
    if e.has(*_OPAQUE, Derivative, Subs, Limit) or operations(e) > DECIDED or not all(len(span) == 3 for span in e.limits):
        return e
    if len(e.limits) > 1 or not any(b.has(oo, -oo) for b in e.limits[0][1:]):
        return e   # a proper one is compared by quadrature, which needs no antiderivative
    try:
        value = e.doit(heurisch=False, risch=False)
    except (NotImplementedError, ValueError, TypeError, ArithmeticError, AttributeError):
        return e
    if value.has(Integral, Piecewise, nan, zoo, oo):
        return e
    points = _points(e.free_symbols)
    return value if points and all(_integrates_to(e, value, given) for given in points) else e


def _integrates_to(e: Integral, value: Expr, given: dict[Basic, Expr]) -> bool:
    number = _number(value.xreplace(given))
    try:
        direct = _number(as_averages(e.xreplace(given)))
    except HermitexError:  # an integral that converges conditionally is not an average
        direct = _number(e.xreplace(given))
    return number is not None and direct is not None and bool(abs(number - direct) <= (abs(number) + abs(direct))/10**12)
