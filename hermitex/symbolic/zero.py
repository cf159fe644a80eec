"""c = 0 or c != 0, with the reason: symmetry, exact algebra, an exact value, or an enclosure that excludes zero.

A number below a threshold is never called zero, and a zero is never concluded from an enclosure.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Literal, NamedTuple

from sympy import Expr, Integer, erf, erfc

from hermitex.errors import BudgetExceeded, Divergent, HermitexError, NoClosedForm
from hermitex.symbolic import hooks
from hermitex.symbolic.arithmetic import mpf, nstr
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.deadline import attempt
from hermitex.symbolic.definite import definite
from hermitex.symbolic.digits.enclosure import Enclosure, enclose
from hermitex.symbolic.digits.exact_constants import is_identically_zero
from hermitex.symbolic.existence_check import require_existence
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.integrals import normal_form
from hermitex.symbolic.parity import parity


class Verdict(NamedTuple):
    """`status`, the exact `value` where there is one, the `enclosure` (low, high) if one was made, and the reason."""

    status: Literal["zero", "nonzero", "undetermined"]
    value: Expr | None
    enclosure: tuple[Fraction, Fraction] | None
    how: str


def decide(expr: Any, digits: int = 40) -> Verdict:
    """Is this constant zero? Expectations inside it are allowed.

    Parameters
    ----------
    expr : a constant expression, or text
    digits : an undetermined value is known to be below 10^-digits at least (400 bits are tried at most)

    Returns
    -------
    Verdict : "zero" and "nonzero" are proved; "undetermined" carries the bound that was reached.

    Raises
    ------
    Divergent : an expectation that does not exist.

    Examples
    --------
    >>> from hermitex.symbols import z
    >>> from hermitex.symbolic.gaussian import E
    >>> from sympy import tanh
    >>> decide(E(tanh(z), z)).how
    'odd integrand'
    >>> decide(E(z*tanh(z), z)).status
    'nonzero'
    """
    expr = given = hooks.expression(expr)
    if expr.has(Expectation):
        for node in expr.atoms(Expectation):
            require_existence(node)
        even = _without_odd(expr)
        if even == 0:
            return Verdict("zero", Integer(0), None, "odd integrand")
        given, expr = even, _normal(even)
    if is_identically_zero(expr):
        return Verdict("zero", Integer(0), None, "exact algebra")
    several = any(len(node.bound) > 1 for node in expr.atoms(Expectation))
    if (expr.free_symbols or several) and (reason := definite(given)):
        return Verdict("nonzero", None if expr.has(Expectation) else expr, None, reason)
    if expr.free_symbols:
        return Verdict("undetermined", None, None, f"it holds the symbol {min(expr.free_symbols, key=str)}")
    found = _by_enclosure(expr, None, digits) if expr.has(Expectation) else _exact(_tails(expr), digits)
    if found.status == "undetermined" and found.enclosure is None and given != expr:
        # A reduced form may be harder to bound: 1/(2 + sin z)^2 is, once multiplied out.
        again = _by_enclosure(given, None, digits)
        found = found if again.enclosure is None else again
    if found.status == "undetermined" and (reason := definite(given)):
        return Verdict("nonzero", found.value, found.enclosure, reason)
    return found


def _without_odd(expr: Expr) -> Expr:
    """`expr` with every expectation of an odd integrand replaced by zero, innermost first."""
    if isinstance(expr, Expectation):
        body, variables = expr.open()
        body = _without_odd(body)
        if _is_odd(body, variables):
            return Integer(0)
        return expr.with_body(body, variables)
    if not expr.args or not expr.has(Expectation):
        return expr
    return expr.func(*(_without_odd(a) for a in expr.args))


def _is_odd(body: Expr, variables: tuple) -> bool:
    """Odd under z -> -z of all variables together (a centred law is even), or in a single one of independent ones."""
    if body.xreplace({v: -v for v in variables}) == -body:
        return True
    if len(variables) > 1:
        return False
    try:
        return parity(body, variables[0]) in (-1, 0)
    except HermitexError:
        return False


def _normal(expr: Expr) -> Expr:
    """The normal form, or the expression itself where there is none or the time runs out."""
    reduced = 2.0  # seconds for a normal form; an enclosure does without it
    try:
        with attempt(reduced):
            return normal_form(expr)
    except Divergent:
        raise
    except BudgetExceeded:
        checkpoint("bringing a coefficient to its normal form")
    except HermitexError:
        pass
    return expr


def _tails(value: Expr) -> Expr:
    """1 - erf(a) as erfc(a), where a > 1: an enclosure of the one takes as many bits as the other is small."""
    if not value.has(erf):
        return value
    return value.replace(lambda e: isinstance(e, erf) and (e.args[0] > 1) == True, lambda e: 1 - erfc(e.args[0])).expand()  # noqa: E712


def _exact(value: Expr, digits: int) -> Verdict:
    """An exact constant that algebra did not prove zero."""
    if value.is_Rational:
        return Verdict("nonzero", value, None, "exact value")
    return _by_enclosure(value, value, digits)


def _by_enclosure(expr: Expr, value: Expr | None, digits: int) -> Verdict:
    """Refine until zero is excluded or the limit is reached."""
    bits, found = 64, None
    limit_of_averages = 400  # bits up to which an enclosure is refined
    limit_of_numbers = 6400  # bits where nothing is left to be integrated: 1 - erf(40) is below 2^-2300
    limit = max(limit_of_averages if expr.has(Expectation) else limit_of_numbers, int(digits * 4))
    while True:
        checkpoint("enclosing a coefficient")
        try:
            found = enclose(expr, bits=bits)
        except NoClosedForm as refusal:
            return Verdict("undetermined", value, _pair(found), f"no enclosure: {refusal.reason}")
        if found.excludes_zero:
            how = found.how if value is None else f"exact value, {found.how}"
            return Verdict("nonzero", value, _pair(found), how)
        if bits >= limit:
            bound = max(abs(found.low), abs(found.high))
            how = f"{found.how} still contains 0: |value| < {_short(bound)}"
            return Verdict("undetermined", value, _pair(found), how)
        bits = min(2 * bits, limit)


def _pair(found: Enclosure | None) -> tuple[Fraction, Fraction] | None:
    return None if found is None else (found.low, found.high)


def _short(bound: Fraction) -> str:
    return nstr(mpf(bound.numerator) / bound.denominator, 2) if bound else "0"
