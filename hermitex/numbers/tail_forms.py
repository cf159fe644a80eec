"""1 + erf u = erfc(-u), 1 - tanh u = 2/(1 + e^(2u)), e^u - 1 = expm1 u: differences that lose all digits in the tails, rewritten.

Each rule takes a sum or a logarithm and returns an equal expression, or None.
"""

from __future__ import annotations

from typing import Any

import sympy as sp
from sympy import Expr, Function, Symbol


class expm1(Function):
    """e^u - 1."""

    def fdiff(self, argindex: int = 1) -> Expr:
        return sp.exp(self.args[0])


class log1p(Function):
    """log(1 + u)."""

    def fdiff(self, argindex: int = 1) -> Expr:
        return 1/(1 + self.args[0])


class erfc_tail(Function):
    """erfc u, which SymPy would write 2 - erfc(-u) of -u."""

    def fdiff(self, argindex: int = 1) -> Expr:
        return -2*sp.exp(-self.args[0]**2)/sp.sqrt(sp.pi)


class logistic(Function):
    """1/(1 + e^-u), whose ball is small wherever Re u is large: 1 + e^-u itself turns about 0 there."""

    def fdiff(self, argindex: int = 1) -> Expr:
        return logistic(self.args[0])*logistic(-self.args[0])


class softplus(Function):
    """log(1 + e^u)."""

    def fdiff(self, argindex: int = 1) -> Expr:
        return logistic(self.args[0])


class log_normal_probability(Function):
    """log P(z < u) of a standard normal z."""

    def fdiff(self, argindex: int = 1) -> Expr:
        u = self.args[0]
        return sp.exp(-u**2/2 - log_normal_probability(u))/sp.sqrt(2*sp.pi)


def saturating(total: sp.Add) -> Expr | None:
    """The sum with one pair q g + q, q g - q or q e^a - q e^b in a form without cancellation; None without such a pair."""
    terms = set(total.args)
    for term in total.args:
        for factor in sp.Mul.make_args(term):
            rest = term/factor
            for sign in (1, -1):
                if isinstance(factor, sp.erfc) and -2*rest in terms:
                    return sp.Add(-rest*erfc_tail(-factor.args[0]), *(terms - {term, -2*rest}))
                if sign*rest in terms and (form := _pair(factor, sign)) is not None:
                    return sp.Add(rest*form, *(terms - {term, sign*rest}))
    return _exponentials(total)


def _pair(g: Expr, s: int) -> Expr | None:
    """g + s without cancellation, s = 1 or -1; None without a rule for g."""
    if g.is_Pow and g.exp == 2 and s == -1:
        return _square_less_one(g.base)
    if g.is_Pow and g.exp == -1 and s == -1 and isinstance(w := g.base - 1, sp.exp):  # 1/(1 + e^w) - 1
        return -logistic(w.args[0])
    if not isinstance(g, Function) or len(g.args) != 1:
        return None
    u = g.args[0]
    if isinstance(g, sp.erf):
        return s*erfc_tail(-s*u)
    if isinstance(g, sp.tanh):
        return 2*s*logistic(2*s*u)
    if isinstance(g, sp.cos):
        return 2*sp.cos(u/2)**2 if s == 1 else -2*sp.sin(u/2)**2
    if isinstance(g, sp.cosh) and s == -1:
        return 2*sp.sinh(u/2)**2
    if isinstance(g, sp.erfc) and s == -1:
        return -sp.erf(u)
    return expm1(u) if isinstance(g, sp.exp) and s == -1 else None


def _square_less_one(g: Expr) -> Expr | None:
    if isinstance(g, sp.tanh):
        return -sp.sech(g.args[0])**2
    if isinstance(g, sp.erf):
        return -erfc_tail(g.args[0])*erfc_tail(-g.args[0])
    return None


def _exponentials(total: sp.Add) -> Expr | None:
    """q e^a - q e^b = q e^b expm1(a - b)."""
    seen: dict[Expr, tuple[Expr, Expr]] = {}
    for term in total.args:
        for factor in sp.Mul.make_args(term):
            if not isinstance(factor, sp.exp):
                continue
            rest = term/factor
            if -rest in seen:
                other, u = seen[-rest]
                return sp.Add(-rest*sp.exp(factor.args[0])*expm1(sp.expand(u - factor.args[0])), total - term - other)
            seen[rest] = (term, factor.args[0])
    return None


def negative_power(base: Expr, exponent: Expr) -> Expr | None:
    """(1 + e^w)^-p as a power of the logistic function; None of others."""
    if base.is_Add and isinstance(w := base - 1, sp.exp) and exponent.is_negative:
        return logistic(-w.args[0])**(-exponent)
    return None


def logarithm(u: Expr) -> Expr | None:
    """log u by log1p, by the logarithm of the normal's probability, or by that of 1/u; None without a rule."""
    if u.is_Pow and u.exp.is_real and u.base.is_positive:
        return u.exp*sp.log(u.base)
    if u.is_Mul and (exponents := [a for a in u.args if isinstance(a, sp.exp) and a.is_positive]):
        rest = sp.Mul(*(a for a in u.args if a not in exponents))
        if rest.is_positive:
            return sp.Add(*(a.args[0] for a in exponents), sp.log(rest))
    if (argument := _normal_argument(u)) is not None:
        return log_normal_probability(argument)
    if isinstance(u - 1, sp.exp):
        return softplus((u - 1).args[0])
    if u.is_Add and sp.S.One in u.args and saturating(u) is None:
        return log1p(u - 1)
    return None


def _normal_argument(u: Expr) -> Expr | None:
    """v of u = (1 + erf(v/sqrt 2))/2 or erfc(-v/sqrt 2)/2; None of others."""
    if u.is_Add and len(u.args) == 2 and sp.S.Half in u.args:
        coefficient, g = (u - sp.S.Half).as_coeff_Mul()
        if isinstance(g, sp.erf) and abs(coefficient) == sp.S.Half:
            return sp.sqrt(2)*sp.sign(coefficient)*g.args[0]
    if isinstance(2*u, sp.erfc | erfc_tail):
        return -sp.sqrt(2)*(2*u).args[0]
    return None


def weighted(f: Expr, variables: tuple[Symbol, ...]) -> Expr:
    """f exp(-|x|^2/2) with the weight inside the exponents of f, so that what cancels there cancels exactly.

    >>> z = Symbol("z", real=True)
    >>> weighted(z*sp.exp(z**2/2 - z), (z,))
    z*exp(-z)
    """
    if f.is_Add and any(isinstance(g, sp.exp) for t in f.args for g in sp.Mul.make_args(t)):
        return sp.Add(*(weighted(t, variables) for t in f.args))
    factors = sp.Mul.make_args(f)
    exponent = sp.Add(*(g.args[0] for g in factors if isinstance(g, sp.exp)), *(-x**2/2 for x in variables))
    return sp.Mul(*(g for g in factors if not isinstance(g, sp.exp)), sp.exp(_merged(exponent, variables)))


def _merged(exponent: Expr, variables: tuple[Symbol, ...]) -> Expr:
    """The exponent, expanded only where a square cancels: expanded, (z - 7/5)^2 10^18 loses its digits."""
    if not exponent.is_polynomial(*variables):
        return exponent
    expanded: Any = sp.expand(exponent)
    if any(expanded.coeff(x, 2) == 0 for x in variables):
        return expanded
    if len(variables) == 1 and exponent.is_Add and not expanded.has(sp.Float) and sp.degree(expanded, *variables) == 2:
        return _completed_square(expanded, *variables)
    return exponent


def _completed_square(q: Expr, z: Symbol) -> Expr:
    """a z^2 + b z + c = a (z + b/(2a))^2 + c - b^2/(4a): next to its peak nothing cancels."""
    a, b, c = (q.coeff(z, n) for n in (2, 1, 0))
    return a*(z + b/(2*a))**2 + (c - b**2/(4*a)) if b != 0 else q
