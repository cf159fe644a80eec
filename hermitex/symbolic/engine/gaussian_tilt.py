"""E[exp(-x.A.x/2 + b.x + c) f(x)] = exp(c + b.K.b/2)/sqrt(det(1 + C A)) E[f(K b + y)], y ~ N(0, K), K = (1 + C A)^(-1) C.

A product of Gaussian exponentials only changes the law of the other factors: completing the square. K is written without the
inverse of C, K = C - C_T (1 + A_TT C_TT)^(-1) A_TT C_T^T over the variables T that the exponent holds; so it is there for a
singular C too. A = 0 is the shift E[exp(b.x) f(x)] = exp(b.C.b/2) E[f(C b + x)]. Products of waves are sums of them, each of one
linear form.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sympy import Add, Dummy, Expr, ImmutableDenseMatrix, Matrix, Mul, Poly, PolynomialError, S, Symbol, cos, exp, eye, sin, sqrt
from sympy.simplify.fu import TR8

from hermitex.symbolic.engine.one_variable import Answer
from hermitex.symbolic.engine.rational_tidying import depends, tidy


def tilted(body: Expr, variables: tuple[Symbol, ...], cov: Any, inner: Callable[..., Answer]) -> Answer | None:
    """The expectation of a product with linear or quadratic exponentials, by `inner` (body, variables, covariance) of the rest.

    None without such an exponential, or if the new law is not proved to exist, or the rest has no closed form.
    """
    exponents = [f.args[0] for f in Mul.make_args(body) if isinstance(f, exp)]
    mine = [e for e in exponents if any(depends(e, v) for v in variables)]
    read = _quadratic(Add(*mine), variables) if mine else None
    if read is None:
        return None
    A, b, c, held = read
    square = A.extract(held, held)
    pivot = eye(len(held)) + square*cov.extract(held, held)
    if not _a_law(square, pivot):
        return None
    columns = cov.extract(list(range(cov.rows)), held)
    size = _whole(pivot.det())
    K = (cov - columns*pivot.adjugate()*square*columns.T/size).applyfunc(_whole)
    mean = [_whole(Add(*(K[i, j]*b[j] for j in range(K.rows)))) for i in range(K.rows)]
    rest = Mul(*(f for f in Mul.make_args(body) if not (isinstance(f, exp) and f.args[0] in mine)))
    found = _over(rest.subs({v: v + m for v, m in zip(variables, mean, strict=True) if m != 0}, simultaneous=True), variables, K,
                  inner)
    if found is None:
        return None
    lift = _whole(c + Add(*(b[i]*m for i, m in enumerate(mean)))/2)
    return Answer(found*exp(lift)/sqrt(size))


def waves(body: Expr, variables: tuple[Symbol, ...]) -> Expr | None:
    """A product of sines and cosines of the variables, and of nothing else that holds them, as a sum; None where it is none.

    >>> from sympy.abc import x, y
    >>> waves(3*sin(x)*cos(y), (x, y))
    3*sin(x - y)/2 + 3*sin(x + y)/2
    """
    mine = [f.as_base_exp() for f in Mul.make_args(body) if any(depends(f, v) for v in variables)]
    if not all(isinstance(f, sin | cos) and n.is_Integer and n.is_positive for f, n in mine) or sum(n for _, n in mine) < 2:
        return None
    return TR8(body).expand()


def _quadratic(exponent: Expr, variables: tuple[Symbol, ...]) -> tuple[Any, list[Expr], Expr, list[int]] | None:
    """A, b, c of -x.A.x/2 + b.x + c, and the variables that A holds."""
    try:
        poly = Poly(exponent, *variables)
    except PolynomialError:
        return None
    if poly.total_degree() not in (1, 2):
        return None
    n = len(variables)
    A, b, c = Matrix.zeros(n, n), [S.Zero]*n, S.Zero
    for powers, value in poly.terms():
        where = [i for i, k in enumerate(powers) for _ in range(k)]
        if len(where) == 2:
            i, j = where
            A[i, j] -= value
            A[j, i] -= value
        elif where:
            b[where[0]] = value
        else:
            c = value
    held = [i for i in range(n) if any(A[i, j] != 0 for j in range(n))]
    most = 4  # variables in the exponent: their matrix is inverted in symbols
    return (ImmutableDenseMatrix(A), b, c, held) if len(held) <= most else None


def _a_law(A: Any, pivot: Any) -> bool:
    """Does the new law exist? It does for A > 0 or A diagonal and >= 0, whatever C is; for one variable 1 + A C decides."""
    if all(A.extract(list(range(k)), list(range(k))).det().is_positive for k in range(1, A.rows + 1)):
        return True
    if A.is_diagonal() and all(A[i, i].is_nonnegative for i in range(A.rows)):
        return True
    return A.rows == 1 and bool(tidy(pivot[0, 0]).is_positive)


def _over(rest: Expr, variables: tuple[Symbol, ...], K: Any, inner: Callable[..., Answer]) -> Expr | None:
    """E[rest] at the new covariance: worked out in letters for its entries, which are put in last."""
    back: dict[Expr, Expr] = {}
    letters: dict[Expr, Symbol] = {}
    law = Matrix(K)
    for i in range(K.rows):
        for j in range(i, K.rows):
            if K[i, j].is_number or K[i, j].is_Symbol:
                continue
            if K[i, j] not in letters:
                letters[K[i, j]] = Dummy("K", positive=True) if i == j else Dummy("K", real=True)
                back[letters[K[i, j]]] = K[i, j]
            law[i, j] = law[j, i] = letters[K[i, j]]
    found = inner(rest, variables, ImmutableDenseMatrix(law))
    return None if found.rest else found.value.xreplace(back)


def _whole(e: Expr) -> Expr:
    return e if e.is_Atom else tidy(e)
