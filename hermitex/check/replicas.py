r"""a 1 + c J of any size n, J the matrix of ones: det = a^(n-1) (a + n c), as SymPy writes it, a*Identity(n) + c*OneMatrix(n, n).

J has the eigenvalue n at the vector of ones, and 0 on its orthogonal complement. Such a matrix therefore has two eigenvalues, u on
the complement (n - 1 times) and w at the ones; sums, products, powers and inverses act on u and on w: tr = (n - 1) u + w, and all
entries add up to n w. The replica method takes n to 0 (Mezard, Parisi and Virasoro, Spin Glass Theory and Beyond, chapter I).

If the entries are matrices, KroneckerProduct(Identity(n), A) + KroneckerProduct(OneMatrix(n, n), C), then u = A and w = A + n C are
matrices: det = det(u)^(n-1) det(w), and tr = (n - 1) tr u + tr w.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add, mul
from typing import Any

from sympy import (
    Determinant,
    Expr,
    Identity,
    Inverse,
    KroneckerProduct,
    MatAdd,
    MatMul,
    MatPow,
    Matrix,
    MatrixBase,
    MatrixExpr,
    OneMatrix,
    S,
    Trace,
    Transpose,
    ZeroMatrix,
    eye,
)
from sympy.matrices.exceptions import NonInvertibleMatrixError

Pair = tuple[Any, Any]   # numbers, or matrices of them


def of_any_size(matrix: Any) -> bool:
    """Is it a matrix whose size is a letter?"""
    return isinstance(matrix, MatrixExpr) and any(isinstance(size, Expr) and not size.is_Integer for size in matrix.shape)


def two_numbers(matrix: Any) -> Pair | None:
    """Return (u, w), numbers or blocks; None if the matrix is not a combination of the unit matrix and the matrix of ones.

    >>> from sympy.abc import a, c, n
    >>> two_numbers(Inverse(a*Identity(n) + c*OneMatrix(n, n)))
    (1/a, 1/(a + c*n))
    """
    if isinstance(matrix, Identity):
        return S.One, S.One
    if isinstance(matrix, ZeroMatrix | OneMatrix) and matrix.shape[0] == matrix.shape[1]:
        return S.Zero, matrix.shape[0] if isinstance(matrix, OneMatrix) else S.Zero
    if isinstance(matrix, KroneckerProduct) and len(matrix.args) == 2 and isinstance(block := matrix.args[1], MatrixBase):
        found = two_numbers(matrix.args[0])
        return None if found is None else (found[0]*block, found[1]*block)
    if isinstance(matrix, Transpose):
        found = two_numbers(matrix.arg)
        return found and (_transposed(found[0]), _transposed(found[1]))
    if isinstance(matrix, Inverse | MatPow):   # an inverse is a power, too
        found = two_numbers(matrix.base)
        try:
            return None if found is None else (found[0]**matrix.exp, found[1]**matrix.exp)
        except NonInvertibleMatrixError:
            return None
    if isinstance(matrix, MatAdd | MatMul):
        scalars = [x for x in matrix.args if not isinstance(x, MatrixExpr)]
        pairs = [two_numbers(x) for x in matrix.args if isinstance(x, MatrixExpr)]
        if None in pairs or None in (pairs := _of_blocks(pairs)):
            return None
        u, w = zip(*(p for p in pairs if p is not None), strict=True)
        join, first = (add, []) if isinstance(matrix, MatAdd) else (mul, scalars)
        return reduce(join, [*first, *u]), reduce(join, [*first, *w])
    return None


def _of_blocks(pairs: Sequence[Pair | None]) -> list[Pair | None]:
    """Write numbers as blocks if other pairs are blocks: a multiple of the unit matrix is one, a matrix of ones is not."""
    size = next((p[0].rows for p in pairs if p is not None and isinstance(p[0], MatrixBase)), None)

    def one(p: Pair) -> Pair | None:
        unit = None if size is None or p[0] != p[1] else p[0]*eye(size)
        return p if size is None or isinstance(p[0], MatrixBase) else unit and (unit, unit)

    return [p and one(p) for p in pairs]


def _transposed(one: Any) -> Any:
    return one.T if isinstance(one, MatrixBase) else one


def _det(one: Any) -> Expr:
    return one.det() if isinstance(one, MatrixBase) else one


def _trace(one: Any) -> Expr:
    return one.trace() if isinstance(one, MatrixBase) else one


def _ones(part: Any) -> tuple[Expr, Any] | None:
    """How many ones a row or a column of them has, and by what each is multiplied; None of anything else."""
    ones, each = part.args if isinstance(part, KroneckerProduct) and len(part.args) == 2 else (part, Matrix([[1]]))
    if not (isinstance(ones, OneMatrix) and isinstance(each, MatrixBase) and 1 in ones.shape):
        return None
    return ones.shape[0]*ones.shape[1], each


def worked_out(expr: Any) -> Expr | Matrix | None:
    """det M, tr M, or the sum of the entries of M (a row of ones times M times a column of them) of such a matrix, else None.

    >>> from sympy.abc import a, c, n
    >>> M = a*Identity(n) + c*OneMatrix(n, n)
    >>> worked_out(Determinant(M)), worked_out(Trace(M)), worked_out(OneMatrix(1, n)*M*OneMatrix(n, 1))
    (a**(n - 1)*(a + c*n), a*(n - 1) + a + c*n, Matrix([[n*(a + c*n)]]))
    """
    if isinstance(expr, Determinant | Trace) and of_any_size(expr.arg) and (found := two_numbers(expr.arg)) is not None:
        u, w = found
        n = expr.arg.shape[0]/(u.rows if isinstance(u, MatrixBase) else 1)
        return _det(u)**(n - 1)*_det(w) if isinstance(expr, Determinant) else (n - 1)*_trace(u) + _trace(w)
    if isinstance(expr, MatMul) and expr.shape == (1, 1):
        factor, parts = expr.as_coeff_matrices()
        first, last = (_ones(x) for x in (parts[0], parts[-1]))
        if len(parts) > 1 and of_any_size(parts[0]) and first is not None and last is not None:
            between = two_numbers(MatMul(*parts[1:-1])) if len(parts) > 2 else (S.One, S.One)
            return None if between is None else factor*first[0]*first[1]*between[1]*last[1]
    return None
