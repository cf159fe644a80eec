"""Y = F(Q), Q = lambda_A A + lambda_B B with A = |P_A z|^2 and B = |P_B z|^2 chi-square, lambda_A > 0 > lambda_B: exactly.

A quadratic form with two eigenvalues of opposite signs, p and q times. E[He_2 | Q] is one number on each eigenspace:
- p = q = 2: A/2 and B/2 are exponential, Q has Laplace's law with scales a = 2 lambda_A, b = -2 lambda_B, and by the lack of
  memory E[A/2 - 1 | Q] = max(Q, 0)/a - a/(a + b): of a label that tells Q, E[G_A^2] = 2 c - c^2 with c = a/(a + b);
- any p, q: the sign of Q is that of A/B - t, and E[(A/p - 1) 1(Q > 0)] = 2 t f(t)/p, f the density of A/B;
- a label that tells A/B (a ratio of two such forms): A + B is independent of A/(A + B), which has a beta law, so that
  E[G_A^2] = 2 q/(p (p + q + 2)).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sympy import (
    Dummy,
    Expr,
    Matrix,
    Rational,
    S,
    Symbol,
    atan,
    beta,
    exp,
    expand,
    eye,
    fraction,
    gamma,
    linsolve,
    oo,
    pi,
    sqrt,
    together,
)

from hermitex.errors import HermitexError
from hermitex.exponents.laws.density import Index
from hermitex.exponents.laws.discrete import Atoms, cleaned, collect
from hermitex.symbolic.pieces import pieces

Couplings = dict[tuple[Index, Index], Expr]


class Form(NamedTuple):
    """lambda_A P_A + lambda_B P_B, lambda_A > lambda_B: the values, the projectors and their ranks."""

    a: Expr
    b: Expr
    A: Matrix
    B: Matrix

    @property
    def ranks(self) -> tuple[int, int]:
        """p and q."""
        return int(self.A.trace()), int(self.B.trace())


# -- labels F(Q) with finitely many values -----------------------------------------------------------------------------
def atoms_of_form(g: Expr, variables: Sequence[Symbol]) -> Atoms | None:
    """The labels of g = F(Q) with their exact moments, or None if g is not of that kind.

    Examples
    --------
    >>> from sympy import sign
    >>> from hermitex.symbols import z1, z2, z3, z4
    >>> [(label, nu[()], nu[0, 1]) for label, nu in atoms_of_form(sign(z1*z2 + z3*z4), (z1, z2, z3, z4))]
    [(-1, 1/2, -1/4), (1, 1/2, 1/4)]
    """
    q = Dummy("q", real=True)
    seen: list[Matrix] = []
    label = _over_form(g, tuple(variables), q, seen)
    form = two_eigenvalues(seen[0]) if label is not None and seen else None
    if label is None or form is None or not (form.a.is_positive and form.b.is_negative):
        return None
    try:
        found = pieces(label, q)
    except HermitexError:
        return None
    cuts = [piece.hi for piece in found[:-1]]
    if any(piece.expr.has(q) for piece in found) or (form.ranks != (2, 2) and cuts != [0]):
        return None
    classes: Atoms = []
    for piece in found:
        (p0, a0, b0), (p1, a1, b1) = _beyond(piece.lo, form), _beyond(piece.hi, form)
        tensor = (a0 - a1)*form.A + (b0 - b1)*form.B
        collect(classes, piece.expr, {(): p0 - p1, **{(i, j): tensor[i, j] for j in range(len(variables)) for i in range(j + 1)}})
    return cleaned(classes)


def _over_form(e: Expr, variables: tuple[Symbol, ...], q: Symbol, seen: list[Matrix]) -> Expr | None:
    """g with q for the quadratic form through which all of it depends on z, or None; the form is put into `seen`."""
    if not e.free_symbols & set(variables):
        return e
    if not isinstance(e, Expr):
        return None  # a condition
    if e.is_polynomial(*variables):
        matrix = _quadratic(e, variables)
        if matrix is None:
            return None
        if not seen:
            seen.append(matrix)
        at = next(n for n, x in enumerate(seen[0]) if x != 0)
        factor = matrix[at]/seen[0][at]
        return e.subs(dict.fromkeys(variables, 0)) + factor*q if (matrix - factor*seen[0]).is_zero_matrix else None
    args = [_over_form(a, variables, q, seen) for a in e.args] if e.args else [None]
    return None if None in args else e.func(*args)


def two_eigenvalues(m: Matrix) -> Form | None:
    """A symmetric rational matrix that has two eigenvalues, taken apart: m^2 = s m - d I says so, with their sum and product.

    Examples
    --------
    >>> two_eigenvalues(Matrix([[0, 1], [1, 0]]))[:2]
    (1, -1)
    """
    n = m.rows
    if n < 2 or not all(x.is_Rational for x in m):
        return None
    s, d = Dummy("s"), Dummy("d")
    solution = linsolve(list(m*m - s*m + d*eye(n)), [s, d])
    if not solution or any(x.free_symbols for x in next(iter(solution))):
        return None  # more eigenvalues, or one
    total, product = next(iter(solution))
    root = sqrt(total**2 - 4*product)
    a, b = (total + root)/2, (total - root)/2
    above = ((m - b*eye(n))/(a - b)).applyfunc(expand)
    return Form(a, b, above, eye(n) - above)


def _beyond(y: Expr, form: Form) -> tuple[Expr, Expr, Expr]:
    """P(Q > y), E[He_2(w) 1(Q > y)] for a unit vector w in either eigenspace."""
    if y is -oo:
        return S.One, S.Zero, S.Zero
    if y is oo:
        return S.Zero, S.Zero, S.Zero
    p, q = form.ranks
    if (p, q) == (2, 2):
        a, b = 2*form.a, -2*form.b
        both = a*b/(a + b)
        if y.is_nonnegative:
            tail = exp(-y/a)/(a + b)
            return a*tail, (y + both)*tail, -both*tail
        tail = exp(y/b)/(a + b)
        return 1 - b*tail, both*tail, -(both - y)*tail
    t = -form.b/form.a
    slope = 2*t*t**(Rational(p, 2) - 1)*(1 + t)**(-Rational(p + q, 2))/beta(Rational(p, 2), Rational(q, 2)).rewrite(gamma)
    return ratio_exceeds(p, q, t), slope/p, -slope/q


def ratio_exceeds(p: int, q: int, t: Expr) -> Expr:
    """P(A > t B) for independent chi-squares of p and q degrees, by two degrees at a time.

    Examples
    --------
    >>> ratio_exceeds(1, 1, S(1)), ratio_exceeds(2, 2, S(2)), ratio_exceeds(1, 2, S(1))
    (1/2, 1/3, 1 - sqrt(2)/2)
    """
    if p > 2:  # Q(p/2, x) = Q(p/2 - 1, x) + x^(p/2 - 1) exp(-x)/Gamma(p/2)
        k = Rational(p, 2) - 1
        more = t**k*(1 + t)**(-k - Rational(q, 2))*gamma(k + Rational(q, 2))/gamma(Rational(q, 2))/gamma(k + 1)
        return ratio_exceeds(p - 2, q, t) + more
    if p == 2:
        return (1 + t)**(-Rational(q, 2))
    return 1 - 2*atan(sqrt(t))/pi if q == 1 else 1 - ratio_exceeds(q, p, 1/t)


# -- labels that tell Q, A/B, or the line through z ----------------------------------------------------------------------
class Axes(NamedTuple):
    """E[G_ij G_kl] over orthonormal axes, and the axes: rows over the variables."""

    couplings: Couplings
    rows: Any


def couplings_of_form(g: Expr, variables: Sequence[Symbol]) -> Axes | None:
    """E[G_ij G_kl] of a label g that tells Q (p = q = 2), A/B, or z1/z2; None for any other.

    Examples
    --------
    >>> from hermitex.symbols import z1, z2, z3, z4
    >>> couplings_of_form(z1*z2 + z3*z4, (z1, z2, z3, z4)).couplings[(0, 0), (0, 0)]
    3/4
    >>> couplings_of_form(z1*z2/(z1**2 + z2**2), (z1, z2)).couplings[(0, 0), (0, 0)]
    1/2
    """
    import numpy as np

    variables = tuple(variables)
    if _tells_line(g, variables):  # G = 2 u u^T - 1, u at a uniform angle
        return Axes({((0, 0), (0, 0)): S.Half, ((1, 1), (1, 1)): S.Half, ((0, 0), (1, 1)): -S.Half, ((0, 1), (0, 1)): S.Half},
                    np.eye(2))
    found = _of_form(g, variables) or _of_ratio(g, variables)
    if found is None:
        return None
    (aa, ab, bb), form = found
    p, q = form.ranks
    values = {(i, j): aa if j < p else bb if i >= p else ab for j in range(p + q) for i in range(j + 1)}
    projector = np.array(form.A.evalf(20).tolist(), dtype=float)
    return Axes({((i, i), (j, j)): v for (i, j), v in values.items()}, np.linalg.eigh(-projector)[1].T)


def _of_form(g: Expr, variables: tuple[Symbol, ...]) -> tuple[tuple[Expr, Expr, Expr], Form] | None:
    matrix = _quadratic(g, variables)
    form = two_eigenvalues(matrix) if matrix is not None else None
    if form is None or form.ranks != (2, 2) or not (form.a.is_positive and form.b.is_negative):
        return None
    c = form.a/(form.a - form.b)
    return (2*c - c**2, -c*(1 - c), 1 - c**2), form


def _of_ratio(g: Expr, variables: tuple[Symbol, ...]) -> tuple[tuple[Expr, Expr, Expr], Form] | None:
    """N/D tells A/B where N and D are two different combinations of A and B, without a constant beside them."""
    if g.is_polynomial(*variables) or not g.is_rational_function(*variables):
        return None
    n, d = (_quadratic(e, variables) if e.subs(dict.fromkeys(variables, 0)) == 0 else None for e in fraction(together(g)))
    form = two_eigenvalues(n) or two_eigenvalues(d) if n is not None and d is not None else None
    if form is None:
        return None
    above, below = _over(n, form), _over(d, form)
    if above is None or below is None or expand(above[0]*below[1] - above[1]*below[0]) == 0:
        return None
    p, q = form.ranks
    whole = S(p + q + 2)
    return (2*q/(p*whole), -2/whole, 2*p/(q*whole)), form


def _over(m: Any, form: Form) -> tuple[Expr, Expr] | None:
    """(x, y) with m = x P_A + y P_B, or None."""
    x, y = ((m*P).trace()/P.trace() for P in (form.A, form.B))
    return (x, y) if (m - x*form.A - y*form.B).applyfunc(expand).is_zero_matrix else None


def _tells_line(g: Expr, variables: tuple[Symbol, ...]) -> bool:
    """Is g a ratio of two linear forms in two variables?"""
    if len(variables) != 2 or g.is_polynomial(*variables) or not g.is_rational_function(*variables):
        return False
    parts = fraction(together(g))
    above, below = ([e.diff(v) for v in variables] for e in parts)
    flat = all(not x.free_symbols for x in (*above, *below))
    return flat and all(e.subs(dict.fromkeys(variables, 0)) == 0 for e in parts) and \
        expand(above[0]*below[1] - above[1]*below[0]) != 0


def _quadratic(g: Expr, variables: tuple[Symbol, ...]) -> Matrix | None:
    """The matrix of a quadratic form, a constant beside it left out; None for any other expression."""
    poly = g.as_poly(*variables) if g.is_polynomial(*variables) and g.count_ops() < 60 else None
    if poly is None or any(sum(m) not in (0, 2) for m, _ in poly.terms()):
        return None
    n = len(variables)
    return Matrix(n, n, lambda i, j: poly.coeff_monomial(tuple((k == i) + (k == j) for k in range(n)))/(1 if i == j else 2))
