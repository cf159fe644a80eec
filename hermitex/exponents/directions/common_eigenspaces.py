"""M_j v = m_j v for every j: the common eigenspaces of symmetric matrices over an exact field."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sympy import Poly, Symbol
from sympy.polys.matrices import DomainMatrix

Rows = list[list[Any]]


def common_eigenspaces(family: Sequence[Rows], r: int, K: Any) -> list[Rows] | None:
    """The common eigenspaces of symmetric matrices over K; None if they do not commute, or an eigenvalue is not in K.

    Examples
    --------
    >>> from sympy import QQ
    >>> common_eigenspaces([[[QQ(0), QQ(1)], [QQ(1), QQ(0)]]], 2, QQ)
    [[[1, 1]], [[-1, 1]]]
    """
    blocks: list[Rows] = [[[K.one if i == j else K.zero for j in range(r)] for i in range(r)]]
    for M in family:
        mixed = any(_mixes(a, M, b) for i, a in enumerate(blocks) for b in blocks[:i])
        finer = [] if mixed else [_eigenspaces(V, M, K) for V in blocks]
        if mixed or any(f is None for f in finer):
            return None
        blocks = [b for f in finer for b in f or []]
    return blocks


def _mixes(a: Rows, M: Rows, b: Rows) -> bool:
    return any(_form(x, M, y) for x in a for y in b)


def _form(x: list[Any], M: Rows, y: list[Any]) -> Any:
    total = x[0] - x[0]
    for i, a in enumerate(x):
        if a:
            for j, c in enumerate(y):
                if c:
                    total += a*M[i][j]*c
    return total


def _eigenspaces(V: Rows, M: Rows, K: Any) -> list[Rows] | None:
    """The eigenspaces of M inside the span of the rows V, over K; None if an eigenvalue is not in K."""
    n = len(V)
    if n == 1:
        return [V]
    unit = [[K.one if i == j else K.zero for j in range(len(M))] for i in range(len(M))]
    gram = DomainMatrix([[_form(x, unit, y) for y in V] for x in V], (n, n), K)
    A = gram.inv()*DomainMatrix([[_form(x, M, y) for y in V] for x in V], (n, n), K)
    rest, found = n, []
    t = Symbol("t")
    for factor, power in Poly.from_list(A.charpoly(), t, domain=K).factor_list()[1]:
        if factor.degree() > 1:
            return None
        lead, last = factor.rep.to_list()
        shifted = A - DomainMatrix.eye(n, K)*K.quo(-last, lead)
        vectors = shifted.nullspace().to_list()
        found.append([[sum((c*row[j] for c, row in zip(vector, V, strict=True)), K.zero) for j in range(len(M))]
                      for vector in vectors])
        rest -= power
    return found if rest == 0 else None
