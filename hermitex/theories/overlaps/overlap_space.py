r"""M = R M R^T for every symmetry R of the label: the overlaps that a state evolution can reach from M = eps 1.

g(R z) = +-g(z) leaves M <- H(M) in the space of matrices that commute with R; flips kill off-diagonals, permutations equate
entries. A label without noise, or with noise even in y, may change its sign.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np
from sympy import Expr, Matrix, Symbol, linear_eq_to_matrix, zeros

from hermitex.errors import HermitexError
from hermitex.exponents.channels import Channel, NamedChannel
from hermitex.exponents.directions.symmetry import symmetries

Array = np.ndarray
_EVEN = ("deterministic", "random_sign", "gaussian", "flip", "sign", "multiplicative")


@dataclass(frozen=True)
class FixedPoint:
    """One fixed point: coordinates x of M, the undamped residual, whether it converged, and why not."""

    x: Array
    residual: float
    converged: bool
    iterations: int = 0
    reason: str = ""

    @classmethod
    def resting(cls, x: Array, residual: float, most: float, iterations: int = 0) -> FixedPoint:
        """One that moves by `residual` a step, which has to be below `most`."""
        good = residual < most
        return cls(x, residual, good, iterations, "" if good else f"the overlaps still move by {residual:.1e} a step")


@dataclass(frozen=True, eq=False)
class OverlapSpace:
    """M = sum_k x_k S_k; x_k is the entry `entries[k]` of M.

    words : the symmetries, in words;  group : every R with g(R z) = g(z) that they generate, which no label tells apart
    odd : every R with g(R z) = -g(z) that they generate
    """

    entries: tuple[tuple[int, int], ...]
    basis: Array
    words: tuple[str, ...] = ()
    group: tuple[Array, ...] = ()
    odd: tuple[Array, ...] = ()

    @property
    def diagonal(self) -> bool:
        """Is every M of the space diagonal?"""
        return all(not np.any(S - np.diag(np.diag(S))) for S in self.basis)

    def matrix(self, x: Array) -> Array:
        """M from its coordinates."""
        return np.tensordot(np.asarray(x, dtype=float), self.basis, axes=1)

    def coordinates(self, M: Array) -> Array:
        """The coordinates of an M in the space."""
        return np.array([M[e] for e in self.entries])


def overlap_space(g: Expr, law: NamedChannel | Channel, names: Sequence[Symbol]) -> OverlapSpace:
    """The overlaps compatible with the symmetries of a target and its channel, each proved by algebra.

    >>> from sympy import sign
    >>> from hermitex.exponents.channels import channel
    >>> from hermitex.symbols import z1, z2, z3
    >>> overlap_space(z1**2 + sign(z1*z2*z3), channel(), (z1, z2, z3)).entries
    ((0, 0), (1, 1))
    """
    target = law.p if isinstance(law, Channel) else g
    signs = (1, -1) if isinstance(law, NamedChannel) and law.name in _EVEN else (1,)
    try:
        found = [s for s in symmetries(target, tuple(names)) if s.sign in signs]
    except HermitexError:
        found = []
    r = len(names)
    pairs = list(combinations_with_replacement(range(r), 2))
    S = Matrix(r, r, lambda i, j: Symbol(f"S{min(i, j)}{max(i, j)}"))
    entries = [S[p] for p in pairs]
    gaps = [gap for s in found for gap in s.matrix*S*s.matrix.T - S]
    conditions = linear_eq_to_matrix(gaps, entries)[0] if gaps else zeros(1, len(pairs))
    reduced, pivots = Matrix.hstack(*conditions.applyfunc(lambda e: e.simplify()).nullspace()).T.rref()
    basis = np.array([S.xreplace(dict(zip(entries, row, strict=True))).tolist() for row in reduced.tolist()], dtype=float)
    group = _group([(np.array(s.matrix.tolist(), dtype=float), s.sign) for s in found], r)
    return OverlapSpace(tuple(pairs[p] for p in pivots), basis, tuple(s.how for s in found),
                        *(tuple(R for R, s in group if s == sign) for sign in (1, -1)))


def _group(generators: Sequence[tuple[Array, int]], r: int, most: int = 200) -> list[tuple[Array, int]]:
    """The products of the generators with their signs (the first 200 of an infinite group)."""
    found: list[tuple[Array, int]] = [(np.eye(r), 1)]
    for R, s in found:
        for G, t in generators:
            product = (G @ R, s*t)
            if len(found) < most and not any(np.allclose(product[0], Q) for Q, _ in found):
                found.append(product)
    return found
