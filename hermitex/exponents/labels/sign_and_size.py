"""u = s h, s = +-1, h > 0 almost everywhere: such a label tells both its sign and its size, and nothing more.

The zeros of an analytic function that is not zero everywhere are a null set.
"""

from __future__ import annotations

from itertools import product
from math import prod

from sympy import (
    Abs,
    Add,
    Dummy,
    Expr,
    Heaviside,
    Mul,
    Piecewise,
    Poly,
    Pow,
    Rational,
    S,
    Symbol,
    asinh,
    atan,
    cos,
    default_sort_key,
    erf,
    erfc,
    exp,
    log,
    preorder_traversal,
    sign,
    sin,
    sinh,
    tanh,
)

from hermitex.exponents.labels.label_levels import sign_of
from hermitex.symbolic.breaks.switches import SWITCHES
from hermitex.symbolic.budget import checkpoint, kept, unless_refused
from hermitex.symbolic.pieces import pieces

ODD_RISING = (tanh, sinh, erf, atan, asinh)
ANALYTIC = (exp, sin, cos, erfc, *ODD_RISING)
_NAMES = 4  # 2^4 quadrants, or corners, are tried one by one
_BOUNDED = (sin, cos, tanh, erf)  # strictly inside of their bounds, sin and cos but for a null set where the argument is analytic


def sign_almost_everywhere(h: Expr) -> int:
    """+1 or -1 if h is proved positive or negative almost everywhere, else 0.

    Quadrant by quadrant; terms of one sign; a polynomial by its real zeros, or by its discriminant in a variable; what is
    affine in bounded functions by its values at their bounds.

    >>> from sympy import Max, exp, log, sin
    >>> from hermitex.symbols import z1, z2
    >>> [sign_almost_everywhere(h) for h in (log(1 + Abs(z1*z2)), -exp(-z1**2), Max(z1, 0), z1, exp(z1) + Max(z1, 0))]
    [1, -1, 0, 0, 1]
    >>> [sign_almost_everywhere(h) for h in (z1**2 + z1*z2 + z2**2, z1**2 + 3*z1*z2 + z2**2, sin(z1) - 1)]
    [1, 0, -1]
    """
    checkpoint("looking at the sign of a factor")
    return _sign_almost_everywhere(h)


@kept(4096)
def _sign_almost_everywhere(h: Expr) -> int:
    if (h.is_nonnegative or h.is_nonpositive) and nonzero_almost_everywhere(h):
        return 1 if h.is_nonnegative else -1
    longest = 60  # operations of an expression whose sign is sought; chosen by trial
    if not h.free_symbols or h.count_ops() > longest:
        return 0
    return _by_terms(h) or _by_quadrants(h) or _by_zeros(h) or _by_bounds(h)


def _by_terms(h: Expr) -> int:
    """Terms none of which has the other sign, and one of which is not zero."""
    if not isinstance(h, (Add, Mul)):
        return 0
    sides = [sign_almost_everywhere(a) or (0 if a.is_nonnegative or a.is_nonpositive else None) for a in h.args]
    if isinstance(h, Mul):
        return 0 if 0 in sides or None in sides else prod(s for s in sides if s)
    weak = {1 if a.is_nonnegative else -1 for a, s in zip(h.args, sides, strict=True) if s == 0}
    strong = {s for s in sides if s}
    return strong.pop() if None not in sides and len(strong) == 1 and weak <= strong else 0


def _by_quadrants(h: Expr) -> int:
    """One sign in all quadrants, where each variable has one: |z1| + |z2|, z1^4 + z2^2."""
    names = sorted(h.free_symbols, key=str)
    if len(names) > _NAMES:
        return 0
    sizes = [Dummy(x.name, positive=True) for x in names]
    found = None
    for signs in product(*((1,) if x.is_positive else (1, -1) for x in names)):
        here = sign_of(h.xreplace({x: s*t for x, s, t in zip(names, signs, sizes, strict=True)}))
        if not here or found not in (None, here):
            return 0
        found = here
    return found or 0


def _by_zeros(h: Expr) -> int:
    """A polynomial without real zeros of odd order; of several variables, of degree 2 in one, its discriminant negative."""
    names = sorted(h.free_symbols, key=str)
    if not h.is_polynomial(*names):
        return 0
    p = Poly(h, *names)
    if not all(c.is_Rational for c in p.coeffs()):
        return 0
    if len(names) == 1:
        odd = [f for f, n in p.factor_list()[1] if n % 2]
        low = 0 if names[0].is_positive else None
        return 0 if any(f.count_roots(low) - int(low == 0 == f.eval(0)) for f in odd) else int(sign(p.LC()))
    for x in names:
        if p.degree(x) == 2:
            a, b, c = (p.as_expr().coeff(x, n) for n in (2, 1, 0))
            if (towards := sign_almost_everywhere(a)) and sign_almost_everywhere((b*b - 4*a*c).expand()) == -1:
                return towards
    return 0


def _by_bounds(h: Expr) -> int:
    """Affine in functions between -1 and 1, 0 and 1, and of one sign, or zero, at all their bounds, but not zero at all of them."""
    inside = {e for e in h.atoms(*_BOUNDED, exp) if e.free_symbols and e.free_symbols <= h.free_symbols}  # no bound variables
    found = [e for e in inside if isinstance(e, _BOUNDED) and (
        _finite(e.args[0]) if isinstance(e, (tanh, erf)) else takes_single_values_on_null_sets(e.args[0]))]
    found += [e for e in inside if isinstance(e, exp) and sign_almost_everywhere(e.args[0]) == -1]
    outer = sorted((e for e in found if not any(other.args[0].has(e) for other in found)), key=default_sort_key)
    if not outer or len(outer) > _NAMES:
        return 0
    names = [Dummy("b", real=True) for _ in outer]
    form = h.xreplace(dict(zip(outer, names, strict=True))).expand()
    if not form.is_polynomial(*names) or any(n > 1 for m in Poly(form, *names).monoms() for n in m):
        return 0
    values = [form.xreplace(dict(zip(names, ends, strict=True))) for ends in product(*(_ends(e) for e in outer))]
    sides = {sign_almost_everywhere(v) for v in values if v != 0}
    return sides.pop() if len(sides) == 1 else 0


def _finite(e: Expr) -> bool:
    """Is it finite almost everywhere? tanh(log(max(z, 0))) is -1 on a half line."""
    def one(n: Expr) -> bool:
        if isinstance(n, Pow):
            return bool(n.base == S.Exp1 or (n.exp.is_number and n.exp.is_nonnegative)) or nonzero_almost_everywhere(n.base)
        if isinstance(n, log):
            return nonzero_almost_everywhere(n.args[0])
        return n.is_Atom or isinstance(n, (Add, Mul, *SWITCHES, *ANALYTIC))
    return all(one(n) for n in preorder_traversal(e) if isinstance(n, Expr))


def _ends(e: Expr) -> tuple[Expr, Expr]:
    return (S.Zero if isinstance(e, exp) else -S.One), S.One


def signs_and_size(u: Expr) -> tuple[Expr, Expr] | None:
    """(s, h) with u = s h, s = +-1 and h > 0 almost everywhere: u tells both, and nothing more; None if u is not of that kind."""
    factors = Mul.make_args(u)
    signs = [f for f in factors if _opposite(f)]
    h = Mul(*(f for f in factors if f not in signs))
    if not signs or not h.free_symbols:
        return None
    towards = sign_almost_everywhere(h) or sign_almost_everywhere(h.factor())
    return (Mul(*signs), h * towards) if towards else None


def _opposite(e: Expr) -> bool:
    values = finite_values(e)
    return values is not None and len(values) == 2 and sum(values) == 0


def nonzero_almost_everywhere(factor: Expr) -> bool:
    """Is a known factor zero at single points at most? max(z, 0) is not: where it is zero the label is silent."""
    symbols = factor.free_symbols
    if not symbols:
        return bool(factor.is_nonzero)
    if factor.is_nonzero or null_zeros(factor):
        return True
    if isinstance(factor, Pow):
        return not factor.exp.free_symbols and nonzero_almost_everywhere(factor.base)
    if isinstance(factor, (Mul, sign, Abs, *ODD_RISING)):
        return all(map(nonzero_almost_everywhere, factor.args))
    if len(symbols) > 1 or not factor.has(*SWITCHES):
        return False
    found = unless_refused(lambda: pieces(factor, next(iter(symbols))))
    return found is not None and all(p.expr.is_nonzero or null_zeros(p.expr) for p in found)


def finite_values(e: Expr) -> frozenset[Expr] | None:
    """A finite set of values that holds every value of e (almost everywhere), or None.

    Examples
    --------
    >>> from hermitex.symbols import z1, z2
    >>> sorted(finite_values(sign(z1) + sign(z2)))
    [-2, 0, 2]
    >>> finite_values(z1 + sign(z2)) is None
    True
    """
    if not e.free_symbols:
        return frozenset([e])
    if isinstance(e, Piecewise):
        branches = [finite_values(value) for value, _ in e.args]
        known = [b for b in branches if b is not None]
        return frozenset().union(*known) if len(known) == len(branches) else None
    if isinstance(e, (sign, Heaviside)):
        inner = finite_values(e.args[0])
        if inner is None:
            return frozenset([S.One, S.NegativeOne] if isinstance(e, sign) else [S.One, S.Zero])
        return frozenset(e.func(v, *e.args[1:]) for v in inner)
    if not e.args:
        return None
    parts = [finite_values(a) for a in e.args]
    total = 1
    most_values = 400  # combinations of the values of the parts, each formed and simplified; chosen by trial
    for p in parts:
        total *= len(p) if p is not None else most_values + 1
    if total > most_values:
        return None
    return frozenset(e.func(*choice) for choice in product(*(p for p in parts if p is not None)))


# -- zeros of analytic functions ------------------------------------------------------------------------------------------
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
