"""{x : p(x) = 0} for a polynomial p: rationals, radicals, or `CRootOf`, never a number that is only close.

Coefficients may be rational (any degree), algebraic (by the norm over Q), or symbolic (degree 2 after factoring).
"""

from __future__ import annotations

from itertools import pairwise
from math import gcd

from mpmath.libmp import NoConvergence
from sympy import Abs, Dummy, Expr, Poly, Rational, S, Symbol, oo, sign, sqrt
from sympy.polys.polyerrors import BasePolynomialError

from hermitex.errors import AssumptionNeeded, NoClosedForm
from hermitex.symbolic.breaks.order import between, compare, ordered, sign_of
from hermitex.symbolic.budget import checkpoint

MAX_DEGREE = 100  # of a polynomial whose roots are isolated: beyond, it takes seconds
_FAR = 20  # powers of 2 between the size of the roots and 1


def near_roots(p: Poly) -> list[Expr]:
    """The complex roots in 15 digits, each once, of a polynomial whose coefficients are numbers; none where they are not found.

    Examples
    --------
    >>> x = Symbol('x', real=True)
    >>> [round(float(r), 6) for r in near_roots(Poly((x**2 - 2)**3, x))]
    [-1.414214, 1.414214]
    """
    if p.domain.is_QQ or p.domain.is_ZZ:
        p = p.sqf_part()  # iteration does not converge at multiple ones
    size = _size_of_roots(p)
    if size != 1:  # their digits are counted from 1, and those of 10^30 are not found
        p = p.compose(Poly(size*p.gen, p.gen))
    for digits, steps in ((15, 100), (30, 400)):
        try:
            return [size*r for r in p.nroots(n=digits, maxsteps=steps)]
        except NoConvergence:
            continue
    return []


def _size_of_roots(p: Poly) -> Rational:
    """A power of 2 near to the mean size of the roots that are not 0, |a_m/a_n|^(1/(n - m)), where that is far from 1."""
    (n, first), (m, last) = ((k, abs(c)) for (k,), c in (p.terms()[0], p.terms()[-1]))
    if n == m or not (first.is_Rational and last.is_Rational):
        return S.One
    power = round(((last.p*first.q).bit_length() - (last.q*first.p).bit_length())/(n - m))
    return S(2)**power if abs(power) > _FAR else S.One


def polynomial_zeros(f: Expr, x: Symbol) -> list[Expr]:
    """The distinct real zeros of a polynomial in x, in no order.

    Raises
    ------
    NoClosedForm : of degree 3 or more without a named root, or too high a degree.
    AssumptionNeeded : the sign of a coefficient or discriminant is needed.

    Examples
    --------
    >>> x = Symbol('x', real=True)
    >>> polynomial_zeros(x**4 - 6*x**2 + 3, x)[0]
    -sqrt(3 - sqrt(6))
    """
    checkpoint("finding the roots of a polynomial")
    try:
        p = Poly(f, x)
    except BasePolynomialError as error:
        raise no_roots(f, x, "it is not a polynomial") from error
    if p.is_zero:
        return []
    shift = min(m for (m,) in p.monoms())
    if shift:
        p = Poly({(m - shift,): c for (m,), c in p.terms()}, x)
    found = [S.Zero] if shift else []
    if p.degree() == 1:
        return [*found, *_irreducible(p, x)]
    if p.degree() > MAX_DEGREE and len(p.terms()) > 2:
        raise no_roots(f, x, f"its degree exceeds {MAX_DEGREE}")
    return found + [r for q in _factors(p, x) for r in _irreducible(q, x)]


def real_powers(u: Expr, n: int) -> list[Expr]:
    """The real solutions s of s**n = u, n > 0."""
    try:
        turn = sign_of(u)
    except (NoClosedForm, AssumptionNeeded):
        if n % 2 == 0:
            raise
        return [sign(u)*Abs(u)**Rational(1, n)]
    if turn == 0:
        return [S.Zero]
    if n % 2:
        return [u**Rational(1, n) if turn > 0 else -(-u)**Rational(1, n)]
    return [-u**Rational(1, n), u**Rational(1, n)] if turn > 0 else []


def nonzero(a: Expr) -> None:
    """Refuse unless `a` is provably not zero."""
    if a.is_zero is False:
        return
    try:
        if sign_of(a):
            return
    except AssumptionNeeded as error:
        raise AssumptionNeeded(error.symbol, "nonzero") from None
    raise NoClosedForm(a, f"{a} must be known to be non-zero")


def no_roots(f: Expr, x: Symbol, why: str) -> NoClosedForm:
    """The refusal, in the user's letters."""
    shown = f.xreplace({s: Symbol(s.name) for s in f.free_symbols if isinstance(s, Dummy)})
    return NoClosedForm(shown, f"the real roots of {str(shown)[:80]} are not found exactly: {why}")


def _factors(p: Poly, x: Symbol) -> list[Poly]:
    """Over Q, over the number field of algebraic coefficients, or over polynomials in the symbols."""
    rational = p.domain.is_ZZ or p.domain.is_QQ
    if not rational and p.degree() <= 8 and _algebraic(p):
        try:
            p = Poly(p.as_expr(), x, extension=True)
        except (BasePolynomialError, NotImplementedError):
            return [p]
    try:
        return [q for q, _ in p.factor_list()[1]]
    except (BasePolynomialError, NotImplementedError):
        return [p]


def _algebraic(p: Poly) -> bool:
    return all(c.is_algebraic and not c.free_symbols and c.count_ops() < 12 for c in p.all_coeffs())


def _irreducible(q: Poly, x: Symbol) -> list[Expr]:
    if q.degree() <= 0:
        return []
    if q.degree() == 1:
        a, b = q.all_coeffs()
        nonzero(a)
        return [-b / a]
    step = gcd(*(m for (m,) in q.monoms()))
    if step > 1 and q.degree() // step <= 2:                  # q(x) = h(x**step): He_4 has +-sqrt(3 +- sqrt(6))
        h = Poly({(m // step,): c for (m,), c in q.terms()}, x)
        return [r for u in _irreducible(h, x) for r in real_powers(u, step)]
    if q.degree() == 2:
        return _quadratic(*q.all_coeffs())
    if q.domain.is_ZZ or q.domain.is_QQ:
        return list(q.real_roots(multiple=True))
    if _algebraic(q):
        return _by_norm(q, x)
    why = f"a factor of degree {q.degree()} has coefficients that are not algebraic numbers"
    raise no_roots(q.as_expr(), x, why)


def _quadratic(a: Expr, b: Expr, c: Expr) -> list[Expr]:
    nonzero(a)
    discriminant = (b**2 - 4*a*c).expand()
    turn = sign_of(discriminant)
    if turn <= 0:
        return [-b / (2*a)] if turn == 0 else []
    root = sqrt(discriminant.factor() if discriminant.free_symbols else discriminant)
    return [(-b - root) / (2*a), (-b + root) / (2*a)]


def _by_norm(q: Poly, x: Symbol) -> list[Expr]:
    """Roots of an irreducible q over a number field: those roots of its norm over Q across which q changes sign."""
    norm = Poly(q.as_expr(), x, extension=True).norm()
    if norm.degree() > MAX_DEGREE:
        raise no_roots(q.as_expr(), x, f"the degree of its norm exceeds {MAX_DEGREE}")
    candidates = ordered(r for r, _ in norm.real_roots(multiple=False))
    probes = [between(a, b) for a, b in pairwise([-oo, *candidates, oo])]
    signs = [sign_of(q.eval(p)) for p in probes]                # q is squarefree: it changes sign at each of its roots
    return [r for r, (a, b) in zip(candidates, pairwise(signs), strict=True) if compare(S(a), S(b))]
