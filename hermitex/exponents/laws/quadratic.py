"""z^T Q z = sum_i q_i x_i^2, x = R z: a quadratic form over its axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sympy import Add, Expr, Mul, Rational, S, Symbol, hessian

from hermitex.exponents.laws.value import as_array

_SHORT = 8  # characters: longer roots are beyond the integers of arrays


def diagonal(g: Expr, names: Sequence[Symbol]) -> tuple[Expr, Any] | None:
    """(sum of squares, the rows R of its axes, shape (r, r)) of a quadratic form with mixed terms; None for anything else."""
    poly = g.as_poly(*names) if g.is_polynomial(*names) else None
    of_powers = isinstance(g, Mul) and all(len(f.free_symbols) <= 1 for f in g.args)  # z1 z2 has a law of its own
    if of_powers or poly is None or poly.total_degree() != 2 or not poly.is_homogeneous:
        return None
    q = hessian(poly.as_expr(), names) / 2
    if q.is_diagonal():
        return None
    axes = np.linalg.eigh(as_array(q))[1].T  # in the order of the eigenvalues, which rise
    return Add(*(c * x**2 for c, x in zip(_eigenvalues(q), names, strict=True))), axes


def _eigenvalues(q: Any) -> list[Expr]:
    """Exactly for two variables and short numbers; else to 15 digits, equal ones made equal (their squares are a radial block)."""
    if q.rows == 2 and all(len(str(x)) < _SHORT for x in q):
        (a, b), (_, d) = q.tolist()
        root = ((a - d) ** 2 + 4 * b**2) ** S.Half
        return [(a + d - root) / 2, (a + d + root) / 2]
    found: list[Expr] = []
    for v in np.linalg.eigvalsh(np.array(q.evalf(20).tolist(), dtype=float)):
        near = next((c for c in found if abs(float(c) - v) < 1e-12 * max(1.0, abs(v))), None)
        found.append(near if near is not None else Rational(f"{v:.15g}"))
    return found
