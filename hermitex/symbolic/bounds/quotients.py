"""|z^a| <= C |z^(a - b)| prod_i p_i(z)^q_i, b = sum_ij w_ij e_ij <= a, w_ij >= 0, sum_j w_ij = q_i: quotients by sums of powers.

p_i = sum_j c_ij z^e_ij with c_ij > 0 and every e_ij even; by the inequality of weighted means z^e with e in the hull of the
e_ij is at most a multiple of p_i. So z1 z2/(z1^2 + z2^2) is bounded and |z1 z2|/sqrt(z1^2 + z2^2) at most |z1|, poles or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sympy import Abs, Expr, Mul, Poly, Pow, Rational, Symbol, sign
from sympy.solvers.simplex import InfeasibleLPError, UnboundedLPError, linprog

_MOST = 40  # monomials

HOELDER = Rational(11, 10)  # a power above 1: with E|T|^p finite, E|T He_a| is, for He_a has every moment


def without_moderate_quotients(g: Expr, variables: Sequence[Symbol]) -> Expr:
    """g without factors whose product is at most a polynomial: signs, and quotients by sums of even powers.

    Examples
    --------
    >>> from sympy import exp, sqrt
    >>> from hermitex.symbols import z1, z2
    >>> without_moderate_quotients(z1*z2/(z1**2 + z2**2)*exp(z1), (z1, z2)), without_moderate_quotients(z1/sqrt(1 + z1**2), (z1,))
    (exp(z1), 1)
    >>> without_moderate_quotients(z1*z2/sqrt(z1**2 + z2**2)*sign(z1*z2), (z1, z2)), without_moderate_quotients(z1/z2**2, (z1, z2))
    (1, z1/z2**2)
    """
    factors = [f for f in Mul.make_args(g) if not isinstance(f, sign)]
    algebraic = [f for f in factors if _algebraic(f, variables)]
    if not any(isinstance(f, Pow) and f.exp.is_negative for f in algebraic):
        return Mul(*factors)
    rest = Mul(*(f for f in factors if f not in algebraic))
    return rest if _moderate(algebraic, tuple(variables)) else Mul(*factors)


def _algebraic(f: Expr, variables: Sequence[Symbol]) -> bool:
    base, power = f.as_base_exp()
    return bool(power.is_Rational and _plain(base).is_polynomial(*variables))


def _plain(e: Expr) -> Expr:
    """|x| counts as x: only sizes are compared."""
    return e.replace(Abs, lambda a: a) if all(a.args[0].is_Symbol for a in e.atoms(Abs)) else e


def _moderate(factors: Sequence[Expr], variables: tuple[Symbol, ...]) -> bool:
    """Is every monomial of the numerator under the denominator?"""
    below: list[tuple[list[tuple[int, ...]], Any]] = []
    monomials: list[tuple[Any, ...]] = [(Rational(0),) * len(variables)]
    for base, power in (f.as_base_exp() for f in factors):
        poly = Poly(_plain(base), *variables)
        if power.is_negative:
            if any(m % 2 for e in poly.monoms() for m in e) or not all(c.is_positive for c in poly.coeffs()):
                return False
            below.append((poly.monoms(), -power))
            continue
        if not power.is_Integer and len(poly.monoms()) > 1:
            return False
        more = poly.monoms() if not power.is_Integer else (poly**power).monoms()
        scale = power if not power.is_Integer else 1
        monomials = [tuple(a + scale*b for a, b in zip(m, e, strict=True)) for m in monomials for e in more]
        if len(monomials) > _MOST:
            return False
    return all(_under(m, below) for m in set(monomials))


def _under(a: tuple[Any, ...], below: Sequence[tuple[list[tuple[int, ...]], Any]]) -> bool:
    """Are there weights w_ij >= 0 with sum w_ij e_ij <= a and sum_j w_ij = q_i?"""
    points = [(i, e) for i, (monoms, _) in enumerate(below) for e in monoms if all(b or not n for n, b in zip(e, a, strict=True))]
    if not points:
        return not below
    least = [[Rational(e[k]) for _, e in points] for k, b in enumerate(a) if b]
    whole = [[Rational(int(i == j)) for i, _ in points] for j in range(len(below))]
    room, powers = [b for b in a if b], [q for _, q in below]
    try:  # an equality is two inequalities
        _, found = linprog([0]*len(points), [*least, *whole, *([-w for w in row] for row in whole)],
                           [*room, *powers, *(-q for q in powers)])
    except (InfeasibleLPError, UnboundedLPError):
        return False

    def sums(rows: list[list[Any]]) -> list[Any]:
        return [sum(w*x for w, x in zip(row, found, strict=True)) for row in rows]

    return sums(whole) == powers and all(v <= b for v, b in zip(sums(least), room, strict=True))
