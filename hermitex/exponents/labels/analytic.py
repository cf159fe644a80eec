"""Where a function is zero: an analytic one that is not zero everywhere is so on a null set."""

from __future__ import annotations

from sympy import Add, Expr, Mul, Pow, Rational, S, Symbol, asinh, atan, cos, erf, erfc, exp, log, sin, sinh, tanh

ODD_RISING = (tanh, sinh, erf, atan, asinh)
ANALYTIC = (exp, sin, cos, erfc, *ODD_RISING)


def null_zeros(f: Expr) -> bool:
    """Is f analytic on all of space and not zero everywhere? Then its zeros are a null set.

    >>> from sympy import sqrt
    >>> from hermitex.symbols import z1
    >>> null_zeros(1 + z1), null_zeros(sin(z1)**2 + cos(z1)**2 - 1), null_zeros(sqrt(z1**2) - z1)
    (True, False, False)
    """
    variables = sorted(f.free_symbols, key=str)
    if not variables or not analytic(f, set(variables)):
        return False
    point = {v: Rational((37*i + 11) % 83, 31) - Rational(13, 10) for i, v in enumerate(variables)}
    try:
        return bool(abs(f.xreplace(point).evalf(20)) > 1e-8)
    except TypeError:
        return False


def takes_single_values_on_null_sets(f: Expr) -> bool:
    """Is f analytic and not constant? Then sin(f) is 1 on a null set only."""
    slopes = [f.diff(v) for v in sorted(f.free_symbols, key=str)]
    return analytic(f, f.free_symbols) and any(null_zeros(s) or s.is_nonzero for s in slopes)


def analytic(f: Expr, variables: set[Symbol]) -> bool:
    """Is f analytic in the variables, on all of space?"""
    if not f.free_symbols & variables or isinstance(f, Symbol):
        return True
    if isinstance(f, Pow) and not (f.exp.is_Integer and f.exp > 0):
        return f.base == S.Exp1 or (f.base.is_positive is True and analytic(f.base, variables) and not f.exp.free_symbols)
    if isinstance(f, log):
        return f.args[0].is_positive is True and analytic(f.args[0], variables)
    return isinstance(f, (Add, Mul, Pow, *ANALYTIC)) and all(analytic(a, variables) for a in f.args if isinstance(a, Expr))
