"""f >= 0 everywhere and not 0: the sign of a product read off its factors, so that E f > 0 needs no integral.

tanh, erf, sinh, atan, sign and odd powers have the sign of their argument; even powers, exp, cosh have none; Heaviside(x) and
Max(0, x) are 0 or have the sign +, and one of them alone, of what changes its sign, is not 0 everywhere. A sum has the sign of
its range, whose ends tanh, erf and exp never reach: 1 + tanh(x) > 0. The rest is a polynomial, and it has one sign if each
of its factors has an even power.
"""

from __future__ import annotations

from sympy import (
    Abs,
    Dummy,
    Expr,
    Heaviside,
    Max,
    Min,
    Mul,
    Pow,
    S,
    Symbol,
    asinh,
    atan,
    cosh,
    erf,
    erfc,
    exp,
    oo,
    sech,
    sign,
    sinh,
    sqf_list,
    tanh,
)
from sympy.polys.polyerrors import BasePolynomialError

from hermitex.symbolic.breaks.interval_ranges import BOUNDED, bounds
from hermitex.symbolic.gaussian import Expectation

_WITH_THE_SIGN = (tanh, erf, sinh, atan, asinh, sign)
_POSITIVE = (exp, cosh, sech, Abs)
_ANY = Dummy("x", real=True)
_WITHIN = (tanh, erf, erfc, exp)  # these come near to the ends of their ranges, and never to them


def sign_of_integrand(f: Expr, variables: tuple[Symbol, ...]) -> int | None:
    """1 if f >= 0 almost everywhere and is not 0, -1 if f <= 0, None if nothing was proved.

    Examples
    --------
    >>> from hermitex.symbols import z1, z2, z3
    >>> sign_of_integrand(z1*z2*z3*tanh(z1*z2*z3), (z1, z2, z3)), sign_of_integrand(z1*tanh(z2), (z1, z2)) is None
    (1, True)
    """
    left: list[Expr] = []
    gates = 0
    for factor in Mul.make_args(f):
        base, power = factor.as_base_exp() if not isinstance(factor, exp) else (factor, S.One)
        if power.is_positive and _is_gate(base, variables):
            gates += 1
            continue
        if not power.is_Integer:
            if power.is_number and power.is_real and (base.is_nonnegative or isinstance(base, Abs)):
                continue
            return None
        if power % 2 == 0 or isinstance(base, _POSITIVE) or base.is_positive:
            continue
        while isinstance(base, _WITH_THE_SIGN):
            base = base.args[0]
        left.append(S(_sign_of_sum(base)) if base.is_Add and _sign_of_sum(base) else base)
    try:
        constant, factors = sqf_list(Mul(*left), *variables)
    except (BasePolynomialError, NotImplementedError):
        return None
    if gates > 1 or any(n % 2 for _, n in factors) or not constant.is_nonzero:
        return None
    return 1 if constant.is_positive else -1 if constant.is_negative else None


def _sign_of_sum(f: Expr) -> int:
    """1 or -1 where the range of a sum says so, else 0."""
    ends = [_range(t) for t in f.args]
    low, high = sum(e[0] for e in ends), sum(e[1] for e in ends)
    inside = any(_within(t) for t in f.args)
    return 1 if low > 0 or (low == 0 and inside) else -1 if high < 0 or (high == 0 and inside) else 0


def _range(t: Expr) -> tuple[Expr, Expr]:
    """Ends of a term; of bounded functions whatever their real arguments are, where these are numbers or hold several variables."""
    if len(t.free_symbols) == 1:
        return bounds(t, t.free_symbols.pop(), (-oo, oo))
    if t.is_Mul:  # of several variables each factor takes all of its values, whatever the others are
        low, high = S.One, S.One
        for ends in map(_range, t.args):
            if not all(e.is_finite for e in (low, high, *ends)):
                return -oo, oo
            corners = [a*b for a in (low, high) for b in ends]
            low, high = Min(*corners), Max(*corners)
        return low, high
    found = {e for e in t.atoms(*BOUNDED) if e.args[0].is_extended_real}
    whole = t.xreplace({e: type(e)(_ANY) for e in found})
    return bounds(whole, _ANY, (-oo, oo)) if len(found) < 2 and whole.free_symbols <= {_ANY} else (-oo, oo)


def _within(t: Expr) -> bool:
    """Does the term never come to an end of its range?"""
    f = t.as_coeff_Mul()[1]
    if f.is_Mul:
        return all(_within(e) for e in f.args)
    if isinstance(f, Pow) and not isinstance(f, exp):
        return f.exp.is_Integer and (_within(f.base) if f.exp > 0 else f.base.is_Add and any(map(_within, f.base.args)))
    return isinstance(f, _WITHIN)


def _is_gate(f: Expr, variables: tuple[Symbol, ...]) -> bool:
    """Heaviside(x - c), Max(0, x - c): above 0 on a half line, 0 elsewhere."""
    if isinstance(f, Max) and len(f.args) == 2 and S.Zero in f.args:
        (inside,) = (a for a in f.args if a != 0)
    elif isinstance(f, Heaviside):
        inside = f.args[0]
    else:
        return False
    slopes = [inside.coeff(v) for v in variables]
    rest = inside - sum(s*v for s, v in zip(slopes, variables, strict=True))
    return any(s.is_nonzero for s in slopes) and all(s.is_number for s in slopes) and rest.is_number and bool(rest.is_finite)


def definite(value: Expr) -> str | None:
    """Why a + c E[f], or a number, is not zero: a + c f does not change its sign. None where that was not seen.

    Examples
    --------
    >>> from hermitex.symbolic.gaussian import E
    >>> from hermitex.symbols import z, z1, z2
    >>> definite(2*E(z1*z2*tanh(z1*z2), z1, z2))
    'the integrand z1*z2*tanh(z1*z2) does not change its sign'
    >>> definite(1 - E(tanh(z + 2000)))
    'the integrand 1 - tanh(z + 2000) does not change its sign'
    """
    rest, averaged = value.as_independent(Expectation, as_Add=True)
    constant, node = averaged.as_independent(Expectation, as_Add=False)
    if averaged == 0:
        return f"{value} keeps one sign, by the ranges of its functions" if value.is_Add and _sign_of_sum(value) else None
    if not isinstance(node, Expectation) or not constant.is_nonzero or not node.independent:
        return None
    body, variables = node.open()
    body = body if rest == 0 else rest + constant*body
    if body.free_symbols - set(variables) or sign_of_integrand(body, variables) is None:
        return None
    plain = body.xreplace({v: Symbol(v.name.strip("_"), real=True) for v in variables})
    return f"the integrand {plain} does not change its sign"
