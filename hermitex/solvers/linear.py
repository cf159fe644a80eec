"""Linear blocks, solved exactly at all points at once: A x = b with A of shape (n, n, B).

    x = A^{-1} b,    and where A is singular the x of least norm among those nearest to a solution (said in the notes).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import BadInput
from .batch import ROUNDING, Array
from .solution import Solution

_EPS = float(np.finfo(float).eps)


def linear(A: Any, b: Any, *, names: Sequence[str], rtol: float = 1e-10, raise_on_failure: bool = True) -> Solution:
    """Solve A x = b at every point; minimum norm where A is singular, and then `.notes` says so.

    Parameters
    ----------
    A : array (n, n, B) or (n, n)
    b : array (n, B) or (n,)
    names : the n unknowns
    rtol : a singular system whose least residual exceeds this, relative to |A||x| + |b|, has no solution

    Raises
    ------
    NotConverged    where A or b is not finite, or A is singular and b is not in its range

    Examples
    --------
    >>> linear([[2.0, 0.0], [0.0, 4.0]], [2.0, 2.0], names=("m", "zeta")).value
    {'m': 1.0, 'zeta': 0.5}
    >>> s = linear([[0.0, 0.0], [0.0, 4.0]], [0.0, 2.0], names=("m", "zeta"))
    >>> s["m"], s.notes
    (0.0, ('singular linear block (m, zeta) of rank 1 at 1 of 1 points: minimum-norm solution',))
    """
    A, b, n = np.asarray(A, dtype=float), np.asarray(b, dtype=float), len(names)
    if A.shape[:2] != (n, n) or b.shape[:1] != (n,):
        need = f"a linear block of {n} unknowns needs A ({n}, {n}, B) and b ({n}, B)"
        raise BadInput(f"{need}, not {A.shape} and {b.shape}")
    single = A.ndim == 2 and b.ndim == 1
    A, b = A.reshape(n, n, -1), b.reshape(n, -1)
    points = max(A.shape[2], b.shape[1])
    A, b = np.broadcast_to(A, (n, n, points)), np.broadcast_to(b, (n, points))
    x, rank = solve(A, b)
    small = 1e-3  # noise is measured as if one unknown had that size at least
    with np.errstate(all="ignore"):
        left = np.abs(np.einsum("ijb,jb->ib", A, x) - b)
        size = np.einsum("ijb,jb->ib", np.abs(A), np.abs(x)) + np.abs(b)
        if not (left <= ROUNDING * size).all():
            # A solution of least norm is good to the rounding of its largest entry.
            size = np.where(rank < n, np.maximum(size, np.abs(A).sum(axis=1) * np.abs(x).max(axis=0, initial=0.0)), size)
            # Noise is measured against the largest row, with unknowns of a size of small at least: all may be 0.
            largest = np.maximum(size.max(axis=0, initial=0.0), small * np.abs(A).max(axis=(0, 1), initial=0.0))
            size = np.where(dead_rows(np.abs(A).max(axis=1, initial=0.0).T).T, largest, size)
        residual = (left / np.where(size > 0, size, 1.0)).max(axis=0, initial=0.0)
    residual = np.where(np.isfinite(residual), residual, np.inf)
    ok = residual <= max(rtol, ROUNDING)
    reason = np.full(points, "", dtype=object)
    reason[~ok] = f"singular linear block ({', '.join(names)}) without a solution"
    reason[~np.isfinite(residual)] = f"the coefficients of the linear block ({', '.join(names)}) are not finite"
    deficient = (rank < n) & np.isfinite(residual)
    notes = (
        (f"singular linear block ({', '.join(names)}) of rank {int(rank[deficient].min())} at {int(deficient.sum())} "
         f"of {points} points: minimum-norm solution",)
        if deficient.any() else ()
    )  # fmt: skip
    found = Solution(
        dict(zip(names, x, strict=True)),
        residual=residual,
        converged=ok,
        iterations=np.ones(points, dtype=int),
        stability=np.full(points, np.nan),
        error=np.full(points, np.nan),
        method="linear",
        reason=reason,
        unknowns=tuple(names),
        notes=notes,
    )
    found = found.point(0) if single else found
    return found.require("check the equations of this block") if raise_on_failure else found


def step(A: Array, b: Array) -> Array:
    """x (n, B) with A x = b, fast, for n small; not finite where A is singular to rounding, or not finite."""
    n = len(b)
    if n == 1:
        return np.asarray(b / A[0])
    if n == 2:
        x = np.array([b[0] * A[1, 1] - b[1] * A[0, 1], A[0, 0] * b[1] - A[1, 0] * b[0]])
        one, two = A[0, 0] * A[1, 1], A[0, 1] * A[1, 0]
        return np.asarray(x / np.where(np.abs(one - two) > 8 * _EPS * (np.abs(one) + np.abs(two)), one - two, np.nan))
    M = A.transpose(2, 0, 1)
    try:
        inverse = np.linalg.inv(M)
    except np.linalg.LinAlgError:
        return np.full(b.shape, np.nan)
    # Skeel's condition number does not mind badly scaled rows
    condition = (np.abs(inverse) @ np.abs(M)).sum(axis=2).max(axis=1)
    return np.where(condition < 0.01 / _EPS, np.einsum("bij,jb->ib", inverse, b), np.nan)


def solve(A: Array, b: Array) -> tuple[Array, Array]:
    """x (n, B) with A x = b and the rank (B,) found; least norm where the rank is below n.

    Rows, then columns are brought to one size first, so a badly scaled system is not mistaken for a singular one; a row
    smaller than the rounding of the largest counts as zero, and so does a column.
    """
    n, points = b.shape
    rank = np.full(points, n)
    if n == 0:
        return np.zeros((0, points)), rank
    with np.errstate(all="ignore"):
        M, weight, unit, finite, inverse = _balanced_inverse(A)
        v = b.T * weight
        finite &= np.isfinite(v.sum(axis=1))
        good = finite & np.isfinite(inverse).all(axis=(1, 2))
        inverse = np.where(good[:, None, None], inverse, 0.0)
        x = np.einsum("bij,bj->bi", inverse, v)
        x += np.einsum("bij,bj->bi", inverse, v - np.einsum("bij,bj->bi", M, x))  # one step of refinement
    for k in np.flatnonzero(finite & ~good):
        x[k], _, rank[k], _ = np.linalg.lstsq(M[k], v[k], rcond=8 * n * _EPS)
        if rank[k] < n:  # the least norm is that of the unknowns themselves
            x[k] = np.linalg.lstsq(M[k] / unit[k], v[k], rcond=8 * n * _EPS)[0] / unit[k]
    x[~finite] = np.nan
    return (x * unit).T, rank


def _balanced_inverse(A: Array) -> tuple[Array, Array, Array, Array, Array]:
    """M = w A u of (B, n, n) with the weights w and u, where it is finite, and its inverse: not finite where M is singular."""
    M, n = A.transpose(2, 0, 1), len(A)
    rows = np.abs(M).max(axis=2)
    weight = np.where(dead_rows(rows), 0.0, 1 / rows)
    M = M * weight[:, :, None]
    columns = np.abs(M).max(axis=1)
    unit = np.where(columns > n * _EPS * columns.max(axis=1, keepdims=True), 1 / columns, 1.0)
    M = M * unit[:, None, :]
    finite = np.isfinite(M.sum(axis=(1, 2)))
    inverse = _inverse(M if finite.all() else np.where(finite[:, None, None], M, np.eye(n)))
    condition = np.abs(inverse).sum(axis=2).max(axis=1) * np.abs(M).sum(axis=2).max(axis=1)
    return M, weight, unit, finite, np.where((finite & (condition < 1 / (8 * n * _EPS)))[:, None, None], inverse, np.inf)


def rounding_of_solution(J: Array, x: Array, terms: Array, size: Array) -> Array:
    """How far rounding of equations of the sizes |J| |x| + `terms` moves a solution x (n, B), relative to `size`, at each point.

    Infinite where J is singular, 0 where it is not finite.
    """
    with np.errstate(all="ignore"):
        row = np.einsum("ijb,jb->ib", np.abs(J), size)
        M = np.where(row[:, None] > 0, J*size/row[:, None], 0.0).transpose(2, 0, 1)
        finite = np.isfinite(J).all(axis=(0, 1))
        inverse = _inverse(np.where(finite[:, None, None], M, np.eye(len(x))))
        d = np.einsum("bij,jb->ib", np.abs(inverse), 2*_EPS*(np.einsum("ijb,jb->ib", np.abs(J), np.abs(x)) + terms)/row)
        return np.where(finite, np.nan_to_num(np.where(size > 0, d, 0.0).max(axis=0), nan=np.inf), 0.0)


def dead_rows(sizes: Array) -> Array:
    """Which of the rows, of the sizes (B, n), are zero to the rounding of the largest row."""
    return np.asarray(sizes <= sizes.shape[1] * _EPS * sizes.max(axis=1, keepdims=True, initial=0.0))


def _inverse(M: Array) -> Array:
    """Inverses of (B, n, n); infinite where singular."""
    try:
        return np.linalg.inv(M)
    except np.linalg.LinAlgError:
        out = np.full(M.shape, np.inf)
        regular = np.linalg.matrix_rank(M) == M.shape[-1]
        out[regular] = np.linalg.inv(M[regular])
        return out


def least_singular_value(D: Array, size: Array) -> Array:
    """The least singular value of D (n, n, B), its unknowns measured in units of `size` (n, B); NaN if not finite."""
    M = (D * size[None] / size[:, None]).transpose(2, 0, 1)
    finite = np.isfinite(M).all(axis=(1, 2))
    out = np.full(M.shape[0], np.nan)
    if finite.any():
        out[finite] = np.linalg.svd(M[finite], compute_uv=False)[:, -1]
    return out


def largest_radius(K: Array) -> Array:
    """Bound the spectral radius of K (n, n, B) by |K^16|^(1/16), one number for each point; NaN where K is not finite.

    >>> largest_radius(np.array([[0.0, 2.0], [-2.0, 0.0]])[:, :, None]).round(2)
    array([2.04])
    """
    M = np.moveaxis(K, -1, 0)
    size = np.abs(M).max(axis=(1, 2), initial=1e-300)
    with np.errstate(all="ignore"):
        M = M / size[:, None, None]
        for _ in range(4):
            M = M @ M
        return np.asarray(size * ((M * M).sum(axis=(1, 2)) ** (1 / 32) + _EPS * len(K)))  # nothing below rounding is ruled out


def spectral_radius(K: Array) -> Array:
    """Largest modulus of the eigenvalues of K (n, n, B), a number a point; NaN where K is not finite.

    >>> spectral_radius(np.array([[0.0, 2.0], [-2.0, 0.0]])[:, :, None])
    array([2.])
    """
    if len(K) == 1:
        return np.abs(K[0, 0])
    M = np.moveaxis(K, -1, 0)
    finite = np.isfinite(M).all(axis=(1, 2))
    out = np.full(M.shape[0], np.nan)
    if finite.any() and M.shape[1]:
        out[finite] = np.abs(np.linalg.eigvals(M[finite])).max(axis=1)
    return out
