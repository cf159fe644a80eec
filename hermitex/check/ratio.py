"""lhs/rhs = q * prod_i p_i^{a_i}: the simple factor by which the two sides of a wrong equality differ, if there is one.

With a handful of candidate factors p_i (the parameters, and the sums of them that occur), log |lhs/rhs| is linear in
the exponents: one linear solve at as many points as there are unknowns, then a test at fresh points.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from sympy import Add, Dummy, Expr, Function, Integral, Mul, Rational, S, Symbol, cancel, exp, pi, sqrt

from hermitex.check.normal import finely_graded, is_long
from hermitex.symbolic.arithmetic import fabs, log, lu_solve, matrix, mp, mpf, nint
from hermitex.symbolic.gaussian import Expectation

Point = dict[Symbol, Expr]
MOST = 6  # candidate factors
TESTS = 2  # fresh points at which what was fitted must hold


def simple_factor(
    quotient: Callable[[Point], Any], points: Sequence[Point], candidates: Sequence[Expr], *, digits: int = 15
) -> Expr | None:
    """The product q * prod p_i^{a_i} that equals the quotient at all points to `digits`; None if there is none.

    Parameters
    ----------
    quotient : lhs/rhs at a point, None where it cannot be had
    points : more of them than candidates + 2, asked as they are needed; the last ones only test
    candidates : the p_i, expressions in the parameters
    """
    known: list[tuple[Point, Any]] = []
    left = iter(points)

    def first(count: int) -> list[tuple[Point, Any]]:
        """Return `count` values, or fewer if the points end. A value costs two integrals, so it is computed on demand."""
        while len(known) < count and (p := next(left, None)) is not None:
            if (v := quotient(p)) is not None and v != 0:
                known.append((p, v))
        return known[:count]

    for count in sorted({0, min(len(candidates), MOST)}):
        given = first(count + 1)
        found = _fit(given, candidates[:count], digits) if len(given) == count + 1 else None
        tests = range(count + 2, count + 2 + TESTS)
        if found is not None and all(len(first(k)) == k and _agree(found, *known[k - 1], digits) for k in tests):
            return found
    return None


def candidates(expressions: Sequence[Expr], symbols: Sequence[Symbol]) -> list[Expr]:
    """The parameters, and the sums of parameters, that occur as factors or under powers."""
    found: dict[Expr, None] = dict.fromkeys(symbols)
    for expr in expressions:
        for e in _outside_nodes(expr):
            base = e.base if e.is_Pow else e
            if base.is_Add and base.free_symbols <= set(symbols) and base.count_ops() < 12:
                found[base] = None
    return list(found)


def _outside_nodes(expr: Expr) -> list[Expr]:
    parts = [expr, *(a for n in expr.atoms(Expectation) for a in (n.body, *n.covariance)), *expr.args]
    return [e for p in parts for e in (p, *Mul.make_args(p), *p.atoms(Add))]


def _fit(values: Sequence[tuple[Point, Any]], factors: Sequence[Expr], digits: int) -> Expr | None:
    n = len(factors)
    with mp.workdps(digits + 15):
        rows = [[log(fabs(_number(f, p))) if _number(f, p) else mpf(0) for f in factors] + [mpf(1)] for p, _ in values]
        try:
            solution = lu_solve(matrix(rows), matrix([log(fabs(v)) for _, v in values]))
        except (ZeroDivisionError, TypeError):  # singular; mpmath says it with a TypeError where a whole column is 0
            return None
        powers = [_small_rational(solution[i], digits) for i in range(n)]
        if None in powers:
            return None
        product = Mul(*(f**a for f, a in zip(factors, powers, strict=True)))
        point, value = values[0]
        constant = identify(value/_number(product, point), digits)
    return None if constant is None else constant*product


def _small_rational(x: Any, digits: int) -> Rational | None:
    quarter = nint(4*x)
    close = fabs(4*x - quarter) < mpf(10)**(-digits//2) and fabs(quarter) <= 48
    return Rational(int(quarter), 4) if close else None


def identify(x: Any, digits: int) -> Expr | None:
    """x = +- q^(1/2) pi^(j/2) e^(k/2) with a simple rational q, to `digits` digits; None if there is none so simple.

    Examples
    --------
    >>> with mp.workdps(30):
    ...     identify(mpf(3)/2*mp.sqrt(2/mp.pi), 25)
    3*sqrt(2)/(2*sqrt(pi))
    """
    for j in (0, 1, -1, 2, -2):
        for k in (0, 1, -1):
            square = x*x/(mp.pi**j*mp.e**k)
            q = Fraction(int(nint(square*mpf(2)**80)), 2**80).limit_denominator(10**4)
            # A rational with few digits does not agree to many digits by accident.
            if q and q.numerator < 10**7 and fabs(square*q.denominator/q.numerator - 1) < mpf(10)**(2 - digits):
                sign = 1 if x > 0 else -1
                return sign*sqrt(Rational(q.numerator, q.denominator))*sqrt(pi)**j*exp(Rational(k, 2))
    return None


def _agree(factor: Expr, point: Point, value: Any, digits: int) -> bool:
    with mp.workdps(digits + 15):
        return bool(fabs(_number(factor, point)/value - 1) < mpf(10)**(3 - digits))


def _number(expr: Expr, point: Point) -> Any:
    value = expr.xreplace(point)
    return mpf(value.evalf(mp.dps)) if value.is_real is not False else mp.nan


def exact_factor(left: Expr, right: Expr) -> Expr | None:
    """left/right where all nodes cancel and what is left is short."""
    nodes = left.atoms(Expectation, Integral) | right.atoms(Expectation, Integral)   # SymPy evaluates what is left standing
    if right == 0 or left == 0 or left.count_ops() + right.count_ops() > 400:
        return None
    names = {n: Dummy("n") for n in sorted(nodes, key=str, reverse=True)}
    left, right = left.xreplace(names), right.xreplace(names)
    if is_long(left) or is_long(right) or finely_graded(quotient := left/right):  # minutes, or all memory, for what is only a hint
        return None
    quotient = cancel(quotient)
    if quotient.free_symbols & set(names.values()) or quotient.count_ops() > 15:
        return None
    if any(f.free_symbols for f in quotient.atoms(Function)):  # a quotient of two different answers explains nothing
        return None
    return quotient if quotient != S.One else None
