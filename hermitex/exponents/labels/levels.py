"""The level sets of u(z), symbolically: what of u the label y = u(z) reveals.

lambda_k(u) depends on u only through the sigma-algebra of u(z), so an injective outer function may be peeled off:
lambda_k(F(u)) = lambda_k(u). What remains is classified: constant, discrete, even and injective in |z|, or general.
"""

from __future__ import annotations

from sympy import (
    Add,
    Dummy,
    Expr,
    Float,
    Mul,
    Poly,
    Pow,
    Rational,
    S,
    Symbol,
    asinh,
    atan,
    cancel,
    cosh,
    diff,
    erf,
    erfc,
    exp,
    log,
    sinh,
    tanh,
)

from hermitex.errors import HermitexError
from hermitex.symbolic.budget import checkpoint, kept
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.pieces import Piece, pieces
from hermitex.symbolic.series.polynomials import poly_of

_DEGREE_BOUND = 400
_ROUNDED = Rational(1, 10**12)  # values that are 0 but for rounding do not differ
_FLAT = 60  # operations of a branch that is asked whether it is constant


def polynomial(u: Expr, x: Symbol) -> Poly | None:
    """u as a polynomial in x with exact real coefficients, or None."""
    if not u.is_polynomial(x) or _degree_bound(u, x) > _DEGREE_BOUND:
        return None
    return poly_of(u, x)


def _degree_bound(u: Expr, x: Symbol) -> int:
    """An upper bound on the degree that expands nothing."""
    if u == x:
        return 1
    if not u.has(x):
        return 0
    if isinstance(u, Add):
        return max(_degree_bound(a, x) for a in u.args)
    if isinstance(u, Mul):
        return sum(_degree_bound(a, x) for a in u.args)
    if isinstance(u, Pow):
        return int(u.exp) * _degree_bound(u.base, x)
    return _DEGREE_BOUND + 1


@kept(256)
def constant_value(u: Expr, x: Symbol) -> Expr | None:
    """The value of u if it is proved not to depend on x (also through its switches), else None."""
    if not u.has(x):
        return u
    if differs(u, x):
        return None
    try:
        found = pieces(u, x)
    except HermitexError:
        return None
    values = {_flat(p, x) for p in found}
    if len(values) == 1 and not (value := values.pop()).has(x):
        return value
    return None


def differs(u: Expr, x: Symbol) -> bool:
    """Does u plainly take two values? What looks constant is left to algebra."""
    from hermitex.symbolic.precise import evaluate

    nodes = {node: Float(evaluate(node, 20), 20) for node in u.atoms(Expectation) if not node.has(x)}
    u = u.xreplace(nodes)
    seen: list[Expr] = []
    for point in (Rational(3, 7), Rational(13, 9), Rational(-13, 9), Rational(21, 8)):
        try:
            value = u.xreplace({x: point}).evalf(20)
        except (ArithmeticError, TypeError, ValueError, NotImplementedError):
            continue
        if value.is_Float:
            if any(abs(value - old) > Rational(1, 10**6) * (abs(value) + abs(old)) + _ROUNDED for old in seen):
                return True
            seen.append(value)
    return False


def _flat(piece: Piece, x: Symbol) -> Expr:
    """A smooth branch as a constant where identities make it one, within a size bound.

    Its derivative is often an algebraic function of exponentials where it is not itself: log(1 + e^x) - log(1 + e^-x) - x.
    """
    branch = piece.expr
    if not branch.has(x) or branch.count_ops() > _FLAT:
        return branch
    flat = branch.expand() if _degree_bound_safe(branch, x) else branch
    if not flat.has(x):
        return flat
    if cancel(diff(flat, x).rewrite(exp)) == 0:
        place = next((p for p in (S.Zero, S.One, S.NegativeOne) if piece.lo.evalf(15) < p < piece.hi.evalf(15)), None)
        value = None if place is None else flat.xreplace({x: place})
        return flat if value is None or not value.is_finite else value.simplify()
    return flat.simplify()


def _degree_bound_safe(u: Expr, x: Symbol) -> bool:
    return all(p.exp.is_Integer and p.exp < 50 for p in u.atoms(Pow) if p.base.is_Add and p.exp.is_number and p.exp > 0)


def discrete(u: Expr, x: Symbol) -> dict[Expr, list[Piece]] | None:
    """{label: the intervals on which u takes it}, if u takes finitely many values; else None.

    Two labels that are equal are merged; equality of exact constants is decided, never guessed.
    """
    from hermitex.symbolic.zero import decide

    try:
        found = pieces(u, x)
    except HermitexError:
        return None
    if any(p.expr.has(x) for p in found):
        return None
    classes: dict[Expr, list[Piece]] = {}
    for piece in found:
        checkpoint("comparing labels")
        for value in classes:
            difference = piece.expr - value
            if difference == 0 or (not difference.is_Rational and decide(difference).status != "nonzero"):
                if difference != 0 and decide(difference).status != "zero":
                    return None
                classes[value].append(piece)
                break
        else:
            classes[piece.expr] = [piece]
    return classes


def injective_in_modulus(u: Expr, x: Symbol) -> bool:
    """True if u, known to be even, is proved strictly monotone in |x|."""
    t = Dummy("t", positive=True)
    half = _on_half_line(u, x, t)
    return half is not None and monotone(half, t) != 0


def injective_odd(u: Expr, x: Symbol) -> bool:
    """True if u, known to be odd, is proved injective: of one sign and strictly monotone on x > 0."""
    t = Dummy("t", positive=True)
    half = _on_half_line(u, x, t)
    return half is not None and sign_of(half) != 0 and monotone(half, t) != 0


def _on_half_line(u: Expr, x: Symbol, t: Symbol) -> Expr | None:
    """u at x = t > 0, if one smooth branch holds there."""
    try:
        found = pieces(u, x, S.Zero, S.Infinity)
    except HermitexError:
        return None
    return found[0].expr.xreplace({x: t}) if len(found) == 1 else None


# -- monotone calculus on t > 0: every answer is proved, 0 says nothing -----------------------------------------------
_INCREASING: tuple[type, ...] = (exp, log, sinh, tanh, asinh, atan, erf)


def sign_of(e: Expr) -> int:
    """+1 or -1 if e is proved positive or negative wherever it is defined, else 0."""
    if e.is_positive:
        return 1
    if e.is_negative:
        return -1
    if isinstance(e, (sinh, tanh, asinh, atan, erf)):
        return sign_of(e.args[0])
    if isinstance(e, (erfc, cosh)):
        return 1
    if isinstance(e, log):
        return 1 if sign_of(e.args[0] - 1) == 1 else (-1 if sign_of(1 - e.args[0]) == 1 else 0)
    if isinstance(e, Mul):
        signs = [sign_of(a) for a in e.args]
        return 0 if 0 in signs else (-1) ** signs.count(-1)
    if isinstance(e, Pow) and sign_of(e.base) == 1:
        return 1
    if isinstance(e, Pow) and e.exp.is_even and sign_of(e.base):
        return 1
    if isinstance(e, Add):
        if e.args[0].is_number and e.args[0].is_negative and sign_of(e - e.args[0]) == 1:
            return _above(e - e.args[0], -e.args[0])
        same = {sign_of(a) for a in e.args}
        return same.pop() if len(same) == 1 else 0
    return 0


def _above(e: Expr, bound: Expr) -> int:
    """+1 if e > bound is proved from cosh > 1 and exp(positive) > 1, else 0."""
    if bound <= 1 and ((isinstance(e, cosh) and sign_of(e.args[0])) or (isinstance(e,
                                                                                   exp) and sign_of(e.args[0]) == 1)):
        return 1
    return 0


def monotone(e: Expr, t: Symbol) -> int:
    """+1 or -1 if e is proved strictly increasing or decreasing in t > 0, else 0."""
    checkpoint("proving monotonicity")
    if e == t:
        return 1
    if not e.has(t):
        return 0
    poly = polynomial(e, t)
    if poly is not None and all(c.is_Rational for c in poly.all_coeffs()):
        return _monotone_polynomial(poly)
    if isinstance(e, _INCREASING):
        return monotone(e.args[0], t)  # type: ignore[attr-defined]
    if isinstance(e, erfc):
        return -monotone(e.args[0], t)
    if isinstance(e, cosh):
        return sign_of(e.args[0]) * monotone(e.args[0], t)
    if isinstance(e, Pow):
        return _monotone_power(e, t)
    if isinstance(e, Add):
        slopes = {monotone(a, t) for a in e.args if a.has(t)}
        found = slopes.pop() if len(slopes) == 1 else 0
    elif isinstance(e, Mul):
        found = _monotone_product(e, t)
    else:
        found = 0
    return found or _sign_of_derivative(e, t)


def _monotone_polynomial(poly: Poly) -> int:
    slope = poly.diff()
    if slope.is_zero:
        return 0
    # Sturm: the derivative has no root in (0, oo); a root of even multiplicity would be harmless but is not needed.
    at_zero = 1 if slope.eval(0) == 0 else 0
    if slope.count_roots(0, None) - at_zero > 0:
        return 0
    return 1 if slope.eval(1) > 0 else -1


def _monotone_power(e: Pow, t: Symbol) -> int:
    base, power = e.args
    if not power.has(t) and power.is_real:
        if sign_of(base) == 1:
            return monotone(base, t) * (1 if power.is_positive else -1 if power.is_negative else 0)
        if power.is_Integer and power.p % 2 and power.is_positive:
            return monotone(base, t)
        if power.is_Integer and power.is_positive and sign_of(base) == -1:
            return -monotone(base, t)
    if not base.has(t) and base.is_positive:
        return monotone(power, t) * (1 if (base - 1).is_positive else -1 if (base - 1).is_negative else 0)
    return 0


def _monotone_product(e: Mul, t: Symbol) -> int:
    """|e| moves one way if every factor is of known sign and none moves the other way in modulus."""
    constant, rest = e.as_independent(t, as_Add=False)
    factors = Mul.make_args(rest)
    signs = [sign_of(f) for f in factors]
    if 0 in signs or sign_of(constant) == 0:
        return 0
    moves = {monotone(f, t) * s for f, s in zip(factors, signs, strict=True)}
    total = sign_of(constant)
    for s in signs:
        total *= s
    return total * moves.pop() if len(moves) == 1 else 0


def _sign_of_derivative(e: Expr, t: Symbol) -> int:
    if e.count_ops() > 60:
        return 0
    return sign_of(diff(e, t).factor())
