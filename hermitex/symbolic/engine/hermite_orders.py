"""E[He_n^2] = n!, E[exp(a z) He_n] = a^n exp(a^2/2): averages of Hermite polynomials whose orders are letters."""

from __future__ import annotations

from sympy import Add, Expr, KroneckerDelta, Mul, S, Symbol, exp, factorial

from hermitex.symbolic.engine.canonical_reading import Refusal
from hermitex.symbolic.engine.rational_tidying import multiplied_out
from hermitex.symbolic.series.polynomials import HermiteOfOrder, from_monomial


def hermite_orders(body: Expr, x: Symbol) -> Expr | None:
    """Polynomials times one He_n, or He_n He_m, or exp(a x + b) times one. Source: orthogonality and the generating function."""
    if not any(f.has(x) for f in body.atoms(HermiteOfOrder)):
        return None
    return Add(*(_of_term(term, x) for term in Add.make_args(multiplied_out(body))))


def _of_term(term: Expr, x: Symbol) -> Expr:
    constant, orders, degree, exponents = _read(term, x)
    for n in orders:
        if not n.is_nonnegative:
            raise Refusal(f"the order {n} is not known to be 0 or more: declare it nonnegative")
    if exponents and (len(orders) > 1 or degree):
        raise Refusal("next to an exponential one He alone is averaged")
    if exponents:
        exponent = Add(*exponents)
        a = exponent.coeff(x, 1)
        return constant*a**orders[0]*exp(a**2/2 + exponent.coeff(x, 0))
    if len(orders) == 1:
        return constant*Add(*(c*_product(orders[0], S(m)) for m, c in from_monomial(degree)))
    if len(orders) > 2:
        raise Refusal("a product of more than two He of letters has no rule")
    raised = {orders[0]: S.One}
    for _ in range(degree):  # x He_n = He_{n+1} + n He_{n-1}
        raised = {m: raised.get(m - 1, S.Zero) + raised.get(m + 1, S.Zero)*(m + 1) for n in raised for m in (n + 1, n - 1)}
    return constant*Add(*(c*_product(n, orders[1]) for n, c in raised.items()))


def _read(term: Expr, x: Symbol) -> tuple[Expr, list[Expr], int, list[Expr]]:
    """Constant, orders of the He(n, x), degree of x, and linear exponents of a product."""
    constant, moving = term.as_independent(x, as_Add=False)
    orders, degree, exponents = [], 0, []
    for factor in Mul.make_args(moving):
        base, power = (factor, S.One) if isinstance(factor, exp) else factor.as_base_exp()
        whole = power.is_Integer and power > 0
        if base == x and whole:
            degree += int(power)
        elif isinstance(base, HermiteOfOrder) and base.args[1] == x and not base.args[0].has(x) and whole:
            orders += [base.args[0]]*int(power)
        elif isinstance(base, exp) and (e := base.args[0].expand()).is_polynomial(x) and not e.coeff(x, 2) and \
                not (e - e.coeff(x, 1)*x).has(x):
            exponents.append(e)
        else:
            raise Refusal(f"{base} stands next to He of a letter")
    if not orders:
        raise Refusal("a term without He stands next to one with it")
    return constant, orders, degree, exponents


def _product(n: Expr, m: Expr) -> Expr:
    """E[He_n He_m] = n! delta_nm."""
    return KroneckerDelta(n, m)*factorial(m)
