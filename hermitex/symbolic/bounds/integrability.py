"""E|f|^p < oo: what happens at infinity against exp(-x^2/2), and next to each point where f is not analytic.

Next to a point a, x = a +- 1/t turns the question into one at t -> oo against t^-2. Both are read off the exact
leading behaviour (`asymptotics`); where that is undecided a majorant may still prove that the integral is finite.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import sympy as sp
from sympy import Dummy, Expr, Rational, Symbol
from sympy.functions.elementary.piecewise import ExprCondPair

from hermitex.errors import HermitexError
from hermitex.symbolic.bounds.asymptotics import expand_at_infinity
from hermitex.symbolic.bounds.line_existence import infinite_on_lines
from hermitex.symbolic.bounds.transseries import IncomparableScales, Scale, keeping, sign
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.growth import Majorant, local_majorant, majorant
from hermitex.symbolic.pieces import breakpoints

GAUSSIAN = Scale((((sp.Integer(2), sp.Integer(0)), Rational(-1, 2)),))
LOCAL = Scale(n=sp.Integer(-2))
_POWER, _PARTS = 8, 64  # of a sum, and terms of sums of products, that are written out to bound it
REACH = 40  # singular points are enumerated up to here where there are infinitely many


def integrable(expr: Expr, x: Symbol | Sequence[Symbol], power: int | Fraction = 1) -> bool | None:
    """Is E|expr|^power finite? True or False where it is decided, boundaries included; None where it is not.

    Examples
    --------
    >>> from hermitex.symbols import z
    >>> from sympy import Abs, Rational, exp
    >>> integrable(exp(z**2/2)/(1 + z**4), z), integrable(exp(z**2/4), z, power=2)
    (True, False)
    >>> integrable(Abs(z)**Rational(-1, 2), z), integrable(Abs(z)**Rational(-1, 2), z, power=2)
    (True, False)
    """
    p = sp.sympify(power, strict=True) if not isinstance(power, Fraction) else Rational(power.numerator, power.denominator)
    expr = sp.sympify(expr, strict=True)
    if not isinstance(x, Symbol):
        several = tuple(v for v in x if v in expr.free_symbols)
        if len(several) != 1:
            found = _several(expr, several, p)
            if found is None and infinite_on_lines(expr, several, lambda f, v: integrable(f, v, power)):
                return False
            return found
        (x,) = several
    if x not in expr.free_symbols or tempered(expr, x):
        return True
    if (rest := _without_bounded(expr)) != expr and integrable(rest, x, power):
        return True
    if any(x in d.free_symbols for d in expr.atoms(sp.Derivative)):
        return None
    verdicts = [_side(expr, x, side, p) for side in (1, -1)]
    if False in verdicts:
        return False
    danger = dangers(expr, (x,))
    if not danger:
        return None if None in verdicts else True
    points, all_of_them = _points(expr, x)
    if points is None or not (all_of_them or _tame_beyond(expr, x)):
        complete: bool | None = None
    else:
        complete = True
    for point in points or ():
        if all(certainly_nonzero(d.xreplace({x: point})) for d in danger):
            continue
        for side in (1, -1):
            verdicts.append(_near(expr, x, point, side, p))
            if verdicts[-1] is False:
                return False
    return None if None in verdicts else complete


def tempered(expr: Expr, x: Symbol) -> bool:
    """Is |expr| bounded by a polynomial by its form alone: sums and products of x and of bounded functions?"""
    if expr == x:
        return bool(x.is_real)
    if x not in expr.free_symbols:
        return True
    if isinstance(expr, (sp.Add, sp.Mul)):
        return all(tempered(a, x) for a in expr.args)
    if isinstance(expr, sp.Pow):
        return bool(expr.exp.is_Integer and expr.exp.is_positive and tempered(expr.base, x))
    if isinstance(expr, (sp.Abs, sp.Max, sp.Min)):
        return all(tempered(a, x) for a in expr.args)
    return isinstance(expr, _BOUNDED) and real_almost_everywhere(expr.args[0])  # on the real line only: sin(i x) grows


_BOUNDED = (sp.tanh, sp.erf, sp.erfc, sp.sin, sp.cos, sp.atan, sp.sign, sp.Heaviside, sp.sech)


def real_almost_everywhere(e: Expr) -> bool:
    """Is e real for all real values of its symbols but those at which it has a pole?

    >>> from hermitex.symbols import z1, z2
    >>> real_almost_everywhere(1/(z1 - z2) + z1), real_almost_everywhere(sp.sqrt(z1))
    (True, False)
    """
    if e.is_real:
        return True
    if isinstance(e, (sp.Add, sp.Mul, sp.Abs, sp.exp, sp.sinh, sp.cosh, sp.asinh, sp.Max, sp.Min, *_BOUNDED)):
        return all(real_almost_everywhere(a) for a in e.args)
    if isinstance(e, sp.log):
        return positive_everywhere(e.args[0])
    return isinstance(e, sp.Pow) and (
        (bool(e.exp.is_Integer) and real_almost_everywhere(e.base)) or (bool(e.exp.is_real) and positive_everywhere(e.base)))


def dangers(expr: Expr, variables: tuple[Symbol, ...], *, rough: bool = False) -> list[Expr]:
    """What must not vanish for expr to be bounded on bounded sets (rough: to be analytic, switches apart).

    0 means an unknown function.
    """
    tame = (sp.exp, sp.sin, sp.cos, sp.tanh, sp.erf, sp.erfc, sp.atan, sp.sinh, sp.cosh, sp.asinh, sp.Abs, sp.sign,
            sp.Heaviside, sp.Max, sp.Min, sp.floor, sp.ceiling, sp.sech, sp.Piecewise, ExprCondPair)
    found = []
    walk = sp.preorder_traversal(expr)
    for f in walk:
        if not rough and isinstance(f, _BOUNDED) and real_almost_everywhere(f.args[0]):
            walk.skip()  # whatever is inside
            continue
        if not (isinstance(f, Expr) and f.args and f.free_symbols.intersection(variables)):
            continue
        if isinstance(f, sp.Pow) and f.base != sp.E:
            if positive_everywhere(f.base) or (f.exp.is_nonnegative and (f.exp.is_Integer or not rough)):
                continue
            found.append(f.base)
        elif isinstance(f, sp.log):
            found += [] if positive_everywhere(f.args[0]) else [f.args[0]]
        elif isinstance(f, Expectation) and rough:
            continue  # what smooths an inner integrand is read off that integrand, which is traversed too
        elif not isinstance(f, (sp.Add, sp.Mul, sp.Pow, *tame)):
            found.append(sp.cos(f.args[0]) if isinstance(f, (sp.tan, sp.sec)) else sp.S.Zero)
    return found


#: functions of a real number that come to neither end of their range
_OPEN = {sp.erf: (-1, 1), sp.tanh: (-1, 1), sp.erfc: (0, 2), sp.exp: (0, sp.oo)}


def positive_everywhere(u: Expr) -> bool:
    """Is u > 0 certain for all real values of its letters? It is for 1 - erf(z), which may be very small.

    >>> from sympy import erfc, log
    >>> from hermitex.symbols import z
    >>> positive_everywhere(log(1 + erfc(z)**-Rational(1, 3))), positive_everywhere(sp.cosh(z) - 1)
    (True, False)
    """
    if u.is_positive:
        return True
    if isinstance(u, (sp.exp, sp.erfc, sp.cosh, sp.sech)):
        return bool(u.args[0].is_extended_real)
    if u.is_Mul:
        return all(map(positive_everywhere, u.args))
    if isinstance(u, sp.Pow):
        return bool(u.exp.is_extended_real) and positive_everywhere(u.base)
    if isinstance(u, sp.log):
        return positive_everywhere(u.args[0] - 1)
    if not u.is_Add:
        return False
    least, moves = sp.S.Zero, False
    for term in u.args:
        c, f = term.as_coeff_Mul()
        if not f.free_symbols:
            least += term
        elif type(f) in _OPEN and f.args[0].is_extended_real:
            least, moves = least + min(c*end for end in _OPEN[type(f)]), True
        elif positive_everywhere(term):
            moves = True
        elif not term.is_nonnegative:
            return False
    return bool(((least >= 0) if moves else (least > 0)) == True)  # noqa: E712 - SymPy's true


def certainly_nonzero(value: Expr) -> bool:
    """Is the constant far enough from zero for 15 digits to tell?"""
    number = value.evalf(15)
    return bool(number.is_Float and abs(number) > Rational(1, 10**6))


def _side(expr: Expr, x: Symbol, side: int, p: Expr) -> bool | None:
    t = Dummy("t", positive=True)
    found = _converges(expr.xreplace({x: side * t}), t, p, GAUSSIAN)
    return found if found is not None else _bound_converges(majorant(expr, x, side), p, local=False)


def _near(expr: Expr, x: Symbol, point: Expr, side: int, p: Expr) -> bool | None:
    t = Dummy("t", positive=True)
    found = _converges(expr.xreplace({x: point + side / t}), t, p, LOCAL)
    return found if found is not None else _bound_converges(local_majorant(expr, x, point, side), p, local=True)


def _converges(f: Expr, t: Symbol, p: Expr, weight: Scale) -> bool | None:
    """Does int^oo |f|^p weight dt converge? Two terms tell mostly; six where the first ones cancel."""
    for terms in (2, 6):
        try:
            with keeping(terms):
                series = expand_at_infinity(f, t)
        except IncomparableScales:
            continue
        found = True if series.top is None else _scale_converges(weight.times(series.top, p))
        if found or series.exact:
            return found
    return None


def _scale_converges(scale: Scale) -> bool | None:
    """Does int^oo scale dt converge?"""
    try:
        for _, a in scale.exponents:
            return sign(a) < 0
        return (sign(scale.n + 1) or sign(scale.l + 1) or 1) < 0  # int dt/(t log t) diverges
    except IncomparableScales:
        return None


def _bound_converges(bound: Majorant | None, p: Expr, *, local: bool) -> bool | None:
    if bound is None:
        return None
    power = Fraction(int(p.p), int(p.q)) if p.is_Rational else None
    if power is None:
        return None
    for term in bound.terms:
        b = term.b * power - (0 if local else Fraction(1, 2))
        n = term.n * power - (2 if local else 0)
        if b > 0 or (b == 0 and term.a > 0) or (b == 0 and term.a == 0 and n >= -1):
            return None
    return True


def _points(expr: Expr, x: Symbol) -> tuple[tuple[Expr, ...] | None, bool]:
    """(the points where expr may fail to be analytic, whether these are all)."""
    try:
        return breakpoints(expr, x), True
    except HermitexError:
        pass
    try:
        return breakpoints(expr, x, window=(sp.Integer(-REACH), sp.Integer(REACH))), False
    except HermitexError:
        return None, False


def _tame_beyond(expr: Expr, x: Symbol) -> bool:
    """A majorant that holds from within the enumerated window on leaves no singular point outside it."""
    bounds = [majorant(expr, x, side) for side in (1, -1)]
    return all(b is not None and b.start <= REACH for b in bounds)


def _several(expr: Expr, variables: tuple[Symbol, ...], p: Expr) -> bool | None:
    """Several variables: exp of a quadratic form times a polynomial exactly; else by a radial majorant."""
    if not variables:
        return True
    if _apart(expr, variables, p):
        return True
    quadratic = _quadratic_exponent(expr, variables)
    if quadratic is not None:
        form = sp.eye(len(variables)) - p * quadratic
        try:
            return all(sign(form[:k, :k].det()) > 0 for k in range(1, form.rows + 1))
        except IncomparableScales:
            return None
    bound = majorant(expr, variables)
    if bound is None or bound.start > 1 or dangers(expr, variables):
        return None
    radial = bound._replace(terms=tuple(t._replace(n=t.n + len(variables)) for t in bound.terms))
    return _bound_converges(radial, p, local=False)


Parts = list[dict[Symbol, Expr]]  # a sum of products of one function for each variable


def _apart(expr: Expr, variables: tuple[Symbol, ...], p: Expr) -> bool:
    """Is |expr| below a sum of products of functions of one variable, each with an average that is proved to exist?"""
    found = _separated(expr, variables)
    if found is None or p != 1 or found == [{}]:
        return found == [{}]
    pairs = dict.fromkeys((f, v) for product in found for v, f in product.items())
    return all(integrable(f, v) is True for f, v in pairs)


def _separated(f: Expr, variables: tuple[Symbol, ...]) -> Parts | None:
    """Such a sum, up to a factor; None where none is seen, or it is long."""
    own = f.free_symbols.intersection(variables)
    if _is_bounded(f):
        return [{}]
    if len(own) == 1:
        return [{own.pop(): f}]
    if isinstance(f, sp.log) and f.args[0].is_Add and all(isinstance(a, sp.exp) or a.is_positive for a in f.args[0].args):
        inner = [a.args[0] if isinstance(a, sp.exp) else sp.S.One for a in f.args[0].args]  # below and above by their exponents
        return _summed_parts([sp.S.One, *inner], variables)
    if f.is_Add or isinstance(f, (sp.Max, sp.Min, sp.Abs)):
        return _summed_parts(f.args, variables)
    if f.is_Mul or (f.is_Pow and f.exp.is_Integer and 0 < f.exp <= _POWER):
        total: Parts = [{}]
        for factor in f.args if f.is_Mul else [f.base] * int(f.exp):
            more = _separated(factor, variables)
            if more is None or len(total) * len(more) > _PARTS:
                return None
            total = [{v: a.get(v, sp.S.One) * b.get(v, sp.S.One) for v in (*a, *b)} for a in total for b in more]
        return total
    return None


def _summed_parts(terms: Sequence[Expr], variables: tuple[Symbol, ...]) -> Parts | None:
    found = [_separated(a, variables) for a in terms]
    return None if None in found else [product for part in found if part is not None for product in part]


def _is_bounded(f: Expr) -> bool:
    """A number, or sums, products and powers of functions that are bounded for any real number."""
    if not f.free_symbols:
        return True
    if isinstance(f, _BOUNDED):
        return real_almost_everywhere(f.args[0])
    if f.is_Add or f.is_Mul:
        return all(map(_is_bounded, f.args))
    return f.is_Pow and bool(f.exp.is_Integer and f.exp.is_positive) and _is_bounded(f.base)


def _without_bounded(f: Expr) -> Expr:
    return f.func(*(a for a in f.args if not _is_bounded(a))) if f.is_Mul else f


def _quadratic_exponent(expr: Expr, variables: tuple[Symbol, ...]) -> sp.Matrix | None:
    """The matrix H of exp(z.H.z/2 + linear) where expr is a polynomial times one such exponential."""
    factors = sp.Mul.make_args(expr)
    exponents = [f.args[0] for f in factors if isinstance(f, sp.exp)]
    rest = sp.Mul(*(f for f in factors if not isinstance(f, sp.exp)))
    if not exponents or not rest.is_polynomial(*variables):
        return None
    exponent = sp.expand(sp.Add(*exponents))
    if not exponent.is_polynomial(*variables) or sp.Poly(exponent, *variables).total_degree() > 2:
        return None
    return sp.hessian(exponent, variables)
