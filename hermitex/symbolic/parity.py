"""g(-z) = +-g(z), proved: by rewriting both sides to one form, or branch by branch between the break points."""

from __future__ import annotations

from collections.abc import Callable

from sympy import (
    Abs,
    Add,
    Basic,
    Dummy,
    Expr,
    Heaviside,
    Max,
    Min,
    Mul,
    Piecewise,
    Poly,
    Pow,
    Rational,
    S,
    Symbol,
    ceiling,
    cos,
    cosh,
    coth,
    csch,
    default_sort_key,
    erf,
    erfc,
    exp,
    expand,
    expand_log,
    expand_power_exp,
    expand_trig,
    floor,
    frac,
    fraction,
    log,
    radsimp,
    sech,
    sign,
    sin,
    sinh,
    tanh,
    together,
)
from sympy.concrete.expr_with_limits import ExprWithLimits
from sympy.polys.polyerrors import BasePolynomialError
from sympy.polys.polyutils import dict_from_expr

from hermitex.errors import HermitexError
from hermitex.symbolic.breaks.order import compare
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.formula_size import EXPANDED, operations
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.pieces import pieces
from hermitex.symbolic.weak import in_heavisides

_HYPERBOLIC = (tanh, sinh, cosh, coth, sech, csch)


def parity(expr: Expr, z: Symbol) -> int | None:
    """1 if expr is proved even in z, -1 if odd, 0 if identically zero, None if nothing was proved.

    Parameters
    ----------
    expr : expression; other symbols and expectations are constants. Values at single points do not count.
    z : the variable, taken real.

    Examples
    --------
    >>> from sympy import exp, log, cosh, Max, Abs, floor, Rational
    >>> from hermitex.symbols import z
    >>> parity(1/(1 + exp(-z)) - Rational(1, 2), z), parity(log(cosh(z)), z)
    (-1, 1)
    >>> parity(Max(z, 0) - Abs(z)/2, z), parity(floor(z) + Rational(1, 2), z)
    (-1, -1)
    >>> parity(Max(z, 0), z) is None
    True
    """
    t = Dummy(z.name, real=True)
    f = expr.xreplace({z: t}).as_independent(t, as_Add=False)[1] if not expr.is_zero else expr
    if f.is_zero:
        return 0
    if t not in f.free_symbols:
        return 1
    return _joint(f, (t,))


def _joint(f: Expr, variables: tuple[Symbol, ...]) -> int | None:
    """The parity under the reflection of all the variables at once."""
    checkpoint("proving a parity")
    g = _reflected(f, variables)
    if g == f:
        return 1 if len(variables) > 1 or not _vanishes(f, variables) else 0
    if g == -f:
        return -1
    if operations(f) > 4*EXPANDED:
        return None
    found = [s for s, difference in ((1, f - g), (-1, f + g)) if _vanishes(difference, variables)]
    return 0 if len(found) == 2 else found[0] if found else _by_branches(f, g, variables)


def _reflected(f: Basic, variables: tuple[Symbol, ...]) -> Basic:
    """f at minus the variables; what an expectation binds may be reflected too, its law being symmetric."""
    if f in variables:
        return -f
    if not f.args or not f.free_symbols & set(variables):
        return f
    if isinstance(f, Expectation):
        body, bound = f.open()
        both = (*variables, *bound)
        known = _joint(body, both)
        if known is not None:
            return known*f
        return f.with_body(body.xreplace({v: -v for v in variables}), bound)
    return f.func(*(_reflected(a, variables) for a in f.args))


# -- is it zero? ------------------------------------------------------------------------------------------------------
def identically_zero(d: Expr, variables: tuple[Symbol, ...]) -> bool:
    """True if d is proved to vanish almost everywhere in its real variables; False says nothing.

    Examples
    --------
    >>> from sympy import Abs, Max, sign
    >>> from hermitex.symbols import z1, z2
    >>> identically_zero(Max(z1, z2) - (z1 + z2 + Abs(z1 - z2))/2, (z1, z2))
    True
    >>> from sympy import sqrt
    >>> identically_zero(sign(z1 + z2) - sign(z1/sqrt(2) + z2/sqrt(2)), (z1, z2))
    True
    >>> identically_zero(sign(z1*z2)*z2 - sign(z1)*Abs(z2), (z1, z2)), identically_zero(z1 - z2, (z1, z2))
    (True, False)
    """
    if _vanishes(d, variables):
        return True
    apart = _factors_apart(d)
    return apart != d and _vanishes(apart, variables)


def _factors_apart(f: Expr) -> Expr:
    """sign(u v) = sign(u) sign(v), |u v| = |u| |v|, and u = sign(u) |u| for what is then multiplied by a sign."""
    def product(u: Expr, kind: type) -> Expr:
        return Mul(*(kind(b)**n for b, n in u.as_powers_dict().items())) if u.is_Mul or u.is_Pow else kind(u)

    f = f.replace(sign, lambda u: product(u, sign)).replace(Abs, lambda u: product(u, Abs))
    return f.replace(lambda n: n.is_Mul and n.has(sign), lambda n: Mul(*(_signed(a, n) for a in n.args)))


def _signed(a: Expr, within: Expr) -> Expr:
    return sign(a)*Abs(a) if not isinstance(a, (sign, Abs)) and sign(a) in within.args else a


def _vanishes(d: Expr, variables: tuple[Symbol, ...]) -> bool:
    """Proved to be zero off single points: each form that follows is equal to d there."""
    nodes = _outermost_nodes(d)
    d = d.xreplace({n: Dummy("node", real=True) for n in nodes}) if nodes else d
    if d.is_zero:
        return True
    if operations(d) > EXPANDED or _differs_at_a_point(d):
        return False
    for rewrite in (expand, _without_switches, _in_exponentials, _in_plain_logarithms, _in_one_angle):
        checkpoint("comparing with the reflection")
        try:
            d = rewrite(d)
        except (BasePolynomialError, NotImplementedError, RecursionError):
            continue
        if d.is_zero:
            return True
        if operations(d) > 4*EXPANDED:
            return False
    return _one_logarithm(d, variables)


def _differs_at_a_point(d: Expr) -> bool:
    """Is d plainly not zero at one generic point? Nothing but time is saved: what is close to zero is rewritten."""
    if any(s.is_integer or s.is_negative or s.is_real is False for s in d.free_symbols) or d.has(ExprWithLimits):
        return False  # SymPy looks for digits of an integral with a kink, or of a sum, without end
    point = {s: Rational(37*k + 11, 41*k + 23) for k, s in enumerate(sorted(d.free_symbols, key=default_sort_key))}
    try:
        value = d.xreplace(point).evalf(15)
    except (ArithmeticError, TypeError, ValueError, NotImplementedError):
        return False
    return bool(value.is_Float and abs(value) > Rational(1, 10**8))


def _outermost_nodes(f: Basic) -> set[Basic]:
    if isinstance(f, Expectation):
        return {f}
    return set().union(*(_outermost_nodes(a) for a in f.args)) if f.args else set()


def _everywhere(f: Expr, kinds: tuple[type, ...], rule: Callable[..., Expr]) -> Expr:
    """Replace the functions of these kinds, innermost first, leaving expectations alone."""
    if not f.args or isinstance(f, Expectation):
        return f
    args = [_everywhere(a, kinds, rule) for a in f.args]
    return rule(*args) if isinstance(f, kinds) else f.func(*args) if tuple(args) != f.args else f


def _without_switches(f: Expr) -> Expr:
    """Max, Min, Heaviside and Piecewise over Abs and sign; ceiling and frac over floor; products of signs undone."""
    if f.has(Piecewise):
        f = f.replace(lambda n: isinstance(n, Piecewise), in_heavisides)
    f = _everywhere(f, (Max,), lambda *a: _extremum(a, 1))
    f = _everywhere(f, (Min,), lambda *a: _extremum(a, -1))
    f = _everywhere(f, (Heaviside,), lambda u, *_: (1 + _sign(u))/2)
    f = _everywhere(f, (sign,), _sign)
    f = _everywhere(f, (Abs,), _abs)
    f = _everywhere(f, (ceiling,), lambda u: _floor(u) + 1 if u.free_symbols else ceiling(u))
    f = _everywhere(f, (frac,), lambda u: u - _floor(u))
    f = _everywhere(f, (floor,), _floor)
    f = expand(f.replace(erfc, lambda u: 1 - erf(u)))
    f = f.replace(lambda n: n.is_Pow and isinstance(n.base, sign) and n.exp.is_Integer and n.exp > 1,
                  lambda n: n.base if n.exp % 2 else S.One)
    return expand(f.replace(lambda n: n.is_Mul and any(isinstance(a, sign) for a in n.args), _signs_absorbed))


def _extremum(args: tuple[Expr, ...], side: int) -> Expr:
    value = args[0]
    for a in args[1:]:
        value = (value + a + side*_abs(expand(value - a)))/2
    return value


def _sign(u: Expr) -> Expr:
    u = expand(u)
    if u.is_Add and any(p.is_number for p in u.atoms(Pow)):
        # sign(sqrt(2) a + sqrt(2) b) = sign(a + b)
        lead = u.coeff(min(u.free_symbols, key=default_sort_key)) if u.free_symbols else S.Zero
        if lead.is_number and (lead.is_positive or lead.is_negative):
            return (1 if lead.is_positive else -1)*_plain_sign(expand(radsimp(expand(u/lead))))
    return _plain_sign(u)


def _plain_sign(u: Expr) -> Expr:
    return -sign(-u) if u.could_extract_minus_sign() else sign(u)


def _abs(u: Expr) -> Expr:
    u = expand(u)
    return Abs(-u) if u.could_extract_minus_sign() else Abs(u)


def _floor(u: Expr) -> Expr:
    if not u.free_symbols:
        return floor(u)
    constant, moving = expand(u).as_coeff_Add()
    if moving.could_extract_minus_sign():
        return -1 - _floor(-u)
    whole = floor(constant)
    return whole + floor(moving + constant - whole)


def _signs_absorbed(product: Expr) -> Expr:
    """sign(u) |u| = u."""
    args = list(product.args)
    for s in [a for a in args if isinstance(a, sign)]:
        partner = Abs(s.args[0])
        if partner in args:
            args.remove(s)
            args[args.index(partner)] = s.args[0]
    return Mul(*args)


def _in_exponentials(f: Expr) -> Expr:
    """One fraction in exponentials, its numerator multiplied out."""
    return expand_power_exp(expand(fraction(together(_exp_form(f)))[0]))


def _exp_form(f: Expr) -> Expr:
    return f.replace(lambda n: isinstance(n, _HYPERBOLIC), lambda n: n.rewrite(exp))


def _in_plain_logarithms(f: Expr) -> Expr:
    """log of a product of powers is the sum over its factors, each |factor| (the argument being positive)."""
    f = f.replace(log, lambda u: _log(together(_exp_form(u))))
    return expand_power_exp(expand(fraction(together(f))[0]))


def _log(u: Expr) -> Expr:
    u = expand_power_exp(u)
    if not u.is_positive:
        return log(u)
    numerator, denominator = fraction(together(u))
    return _log_of_polynomial(expand(numerator)) - _log_of_polynomial(expand(denominator))


def _log_of_polynomial(p: Expr) -> Expr:
    """log|p|, p a polynomial in exponentials: exponentials out of it, then factor by factor."""
    least = _common_exponent(p)
    p = expand(p*exp(-least))
    content, factors = (S.One, [(p, 1)]) if p.free_symbols else (p, [])
    try:
        if p.free_symbols and _short(p):
            content, factors = Poly(p).factor_list()
    except (BasePolynomialError, NotImplementedError):
        pass
    logs = [k*log(_upright(q.as_expr())) for q, k in factors]
    return Add(least, expand_log(log(Abs(content)), force=True), *logs)


def _short(p: Expr) -> bool:
    """Of low degree in few generators: one of decimals in exponents is endless to factor, and to write as a `Poly` already."""
    powers, generators = dict_from_expr(p)
    highest = 40  # degree above which a polynomial is not factored
    most = 4  # generators above which a polynomial is not factored
    return len(generators) <= most and all(sum(monomial) <= highest for monomial in powers)


def _common_exponent(p: Expr) -> Expr:
    """The least exponent in an order that shifts do not change, so that exp(z) + 1 and 1 + exp(-z) meet."""
    exponents = [Add(*(a.exp for a in Mul.make_args(term) if isinstance(a, exp))) for term in Add.make_args(p)]
    parts = [e.as_coefficients_dict() for e in exponents]
    monomials = sorted({m for part in parts for m in part if m != 1}, key=str)
    least = min(range(len(parts)), key=lambda i: [parts[i].get(m, S.Zero) for m in monomials])
    return Add(*(c*m for m, c in parts[least].items() if m != 1))


def _upright(p: Expr) -> Expr:
    return -p if p.could_extract_minus_sign() else p


def _in_one_angle(f: Expr) -> Expr:
    def even_powers(n: Expr) -> Expr:                         # cos^2 = 1 - sin^2
        return (1 - sin(n.base.args[0])**2)**(n.exp//2)*n.base**(n.exp % 2)

    turns = [u.as_coeff_Mul()[0] for n in f.atoms(sin, cos) for u in Add.make_args(n.args[0])]
    largest = 12  # multiple of an angle that is written out
    if any(abs(k) > largest for k in turns):  # cos(175 z) is a polynomial of degree 175 in cos(z)
        return expand(f.replace(lambda n: isinstance(n, sin | cos), lambda n: n.rewrite(exp)))
    f = expand(expand_trig(f))
    return expand(f.replace(lambda n: n.is_Pow and isinstance(n.base, cos) and n.exp.is_Integer and n.exp > 1, even_powers))


def _one_logarithm(d: Expr, variables: tuple[Symbol, ...]) -> bool:
    """sum n_i log u_i = 0 where all u_i > 0 and prod u_i**n_i = 1: asinh as a logarithm, for one."""
    product = S.One
    for term in Add.make_args(expand(d)):
        c, rest = term.as_coeff_Mul()
        if not (isinstance(rest, log) and c.is_Integer and abs(c) < 20):
            return False
        if len(variables) != 1 or not _positive(rest.args[0], variables[0]):
            return False
        product *= rest.args[0]**c
    return expand(fraction(together(product - 1))[0]).is_zero is True


def _positive(u: Expr, t: Symbol) -> bool:
    try:
        branches = pieces(sign(u), t)
    except HermitexError:
        return False
    return all(b.expr == 1 for b in branches)


# -- branch by branch -------------------------------------------------------------------------------------------------
def _by_branches(f: Expr, g: Expr, variables: tuple[Symbol, ...]) -> int | None:
    if len(variables) != 1 or operations(f) > EXPANDED:
        return None
    (t,) = variables
    try:
        mine = pieces(f, t)
        if len(mine) == 1 and mine[0].expr == f:
            return None
        other = [(-p.hi, -p.lo, p.expr.xreplace({t: -t})) for p in reversed(mine)]
        pairs = list(zip(mine, other, strict=True))
        if any(compare(p.lo, q[0]) or compare(p.hi, q[1]) for p, q in pairs):
            return None
    except HermitexError:
        return None
    even = all(_vanishes(p.expr - q[2], variables) for p, q in pairs)
    odd = all(_vanishes(p.expr + q[2], variables) for p, q in pairs)
    return 0 if even and odd else 1 if even else -1 if odd else None
