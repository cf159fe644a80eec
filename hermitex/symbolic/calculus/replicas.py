r"""a 1 + c J of any size n, J the matrix of ones: det = a^(n-1) (a + n c), as SymPy writes it, a*Identity(n) + c*OneMatrix(n, n).

J has the eigenvalue n at the vector of ones, and 0 beside it; so sums, products, powers and inverses of these matrices are those
of two numbers, u beside the ones (n - 1 times) and w at them: tr = (n - 1) u + w, and all entries add up to n w. They are functions
of n, which the replica method takes to 0 (Mezard, Parisi and Virasoro, Spin Glass Theory and Beyond, chapter I).
"""

from __future__ import annotations

from math import prod
from typing import Any

from sympy import (
    Determinant,
    Expr,
    Identity,
    Inverse,
    MatAdd,
    MatMul,
    MatPow,
    Matrix,
    MatrixExpr,
    OneMatrix,
    S,
    Trace,
    Transpose,
    ZeroMatrix,
)

Pair = tuple[Expr, Expr]


def of_any_size(matrix: Any) -> bool:
    """Is it a matrix whose size is a letter?"""
    return isinstance(matrix, MatrixExpr) and any(isinstance(size, Expr) and not size.is_Integer for size in matrix.shape)


def two_numbers(matrix: Any) -> Pair | None:
    """The eigenvalues beside the ones, and at them; None of a matrix that is no combination of the unit matrix and of ones.

    >>> from sympy.abc import a, c, n
    >>> two_numbers(Inverse(a*Identity(n) + c*OneMatrix(n, n)))
    (1/a, 1/(a + c*n))
    """
    if isinstance(matrix, Identity):
        return S.One, S.One
    if isinstance(matrix, ZeroMatrix | OneMatrix) and matrix.shape[0] == matrix.shape[1]:
        return S.Zero, matrix.shape[0] if isinstance(matrix, OneMatrix) else S.Zero
    if isinstance(matrix, Transpose):
        return two_numbers(matrix.arg)
    if isinstance(matrix, Inverse | MatPow):   # an inverse is a power, too
        found = two_numbers(matrix.base)
        return None if found is None else (found[0]**matrix.exp, found[1]**matrix.exp)
    if isinstance(matrix, MatAdd | MatMul):
        scalars = [x for x in matrix.args if not isinstance(x, MatrixExpr)]
        pairs = [two_numbers(x) for x in matrix.args if isinstance(x, MatrixExpr)]
        if None in pairs:
            return None
        u, w = zip(*(p for p in pairs if p is not None), strict=True)
        return (sum(u), sum(w)) if isinstance(matrix, MatAdd) else (prod(u, start=prod(scalars)), prod(w, start=prod(scalars)))
    return None


def worked_out(expr: Any) -> Expr | Matrix | None:
    """det M, tr M, or the sum of the entries of M (a row of ones times M times a column of them) of such a matrix, else None.

    >>> from sympy.abc import a, c, n
    >>> M = a*Identity(n) + c*OneMatrix(n, n)
    >>> worked_out(Determinant(M)), worked_out(Trace(M)), worked_out(OneMatrix(1, n)*M*OneMatrix(n, 1))
    (a**(n - 1)*(a + c*n), a*(n - 1) + a + c*n, Matrix([[n*(a + c*n)]]))
    """
    if isinstance(expr, Determinant | Trace) and of_any_size(expr.arg) and (found := two_numbers(expr.arg)) is not None:
        (u, w), n = found, expr.arg.shape[0]
        return u**(n - 1)*w if isinstance(expr, Determinant) else (n - 1)*u + w
    if isinstance(expr, MatMul) and expr.shape == (1, 1):
        factor, parts = expr.as_coeff_matrices()
        if len(parts) > 1 and all(isinstance(x, OneMatrix) for x in (parts[0], parts[-1])) and of_any_size(parts[0]):
            n = parts[0].shape[1]
            between = two_numbers(MatMul(*parts[1:-1])) if len(parts) > 2 else (S.One, S.One)
            return None if between is None else Matrix([[factor*n*between[1]]])
    return None
