"""C_k^U(u) of a polynomial: the part of degree k in b of P(U^T a + W^T b), P = exp(Laplacian/2) g, W the complement of U.

P writes He_a as y^a, so that P = sum_n <C_n, y^n>/n!, and the blocks of C_n with k slots outside U are the monomials of
P of degree k in b. U and W need not be orthonormal, so all is exact algebra over the field of the coefficients of g.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial, prod
from typing import Any

from sympy import Expr, Symbol, sqrt

from hermitex.exponents.certificate import Certificate
from hermitex.exponents.directions.staircase import Evidence
from hermitex.exponents.directions.words import directions_words
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.series.fields import field_of, hermite_form, in_field
from hermitex.symbolic.subspaces import Matrix, complement, matrix, span, tidy

_HOW = "exact Hermite expansion of a polynomial"


class PolynomialOracle:
    """What C_k^U charges, for a polynomial over rationals or algebraic numbers.

    Examples
    --------
    >>> from hermitex.symbols import z1, z2
    >>> oracle = PolynomialOracle.of((z1 + z2)**2 + z1 - z2, (z1, z2))
    >>> oracle.tensor(matrix([], 2), 1).directions, oracle.tensor(Matrix([[1, -1]]), 1).status
    (Matrix([[1, -1]]), 'zero')
    """

    def __init__(self, P: Any, variables: tuple[Symbol, ...]) -> None:
        self.P, self.variables = P, variables
        self._split: dict[Matrix, tuple[Matrix, dict[int, Any]]] = {}

    @classmethod
    def of(cls, g: Expr, variables: Sequence[Symbol]) -> PolynomialOracle | None:
        """The oracle of g, or None if g is no such polynomial."""
        p = in_field(g, tuple(variables))
        return None if p is None else cls(hermite_form(p), tuple(variables))

    def tensor(self, known: Matrix, k: int) -> Evidence:
        """zero or nonzero, with all that is charged."""
        outside, parts = self._parts(known)
        name = f"C_{k}" + (f" given {', '.join(self._form(row) for row in known.tolist())}" if known.rows else "")
        if k not in parts:
            return Evidence("zero", certificates=(Certificate.zero(name, k, _HOW),))
        return Evidence("nonzero", self._charged(outside, parts[k], known.rows), (self._proof(known, outside, parts[k], k),))

    def support(self) -> list[tuple[int, ...]]:
        """The multi-indices a with c_a != 0."""
        return list(self.P)

    def coefficient(self, a: tuple[int, ...]) -> Expr:
        """c_a."""
        return self.P.ring.domain.to_sympy(self.P.get(a, self.P.ring.domain.zero)) * prod(map(factorial, a))

    # -- parts by their degree outside U
    def _parts(self, known: Matrix) -> tuple[Matrix, dict[int, Any]]:
        """The complement of U, and {k: the part of degree k in b}, the variables in the order a, b."""
        if known not in self._split:
            checkpoint("taking a polynomial apart")
            outside = complement(known)
            rows = [*known.tolist(), *outside.tolist()]
            P = _wider(self.P, rows)
            turned = P if Matrix(rows) == Matrix.eye(len(rows)) else _substituted(P, rows)
            parts: dict[int, Any] = {}
            for m, c in turned.items():
                k = sum(m[known.rows:])
                parts.setdefault(k, {})[m] = c
            self._split[known] = outside, {k: turned.ring.from_dict(t) for k, t in parts.items()}
        return self._split[known]

    def _charged(self, outside: Matrix, part: Any, at: int) -> Matrix:
        """The span of the derivatives in b: sum_j f_j w_j/|w_j|^2 for each monomial of them, the w_j orthogonal."""
        K = part.ring.domain
        slopes = [part.diff(x) for x in part.ring.gens[at:]]
        rows = [[K.to_sympy(s.get(m, K.zero)) for s in slopes] for m in dict.fromkeys(m for s in slopes for m in s)]
        sizes = [sum(x*x for x in row) for row in outside.tolist()]
        fibres = matrix([[x/n for x, n in zip(row, sizes, strict=True)] for row in dict.fromkeys(map(tuple, rows))], outside.rows)
        return span(Matrix(fibres*outside))

    # -- words
    def _proof(self, known: Matrix, outside: Matrix, part: Any, k: int) -> Certificate:
        rows = [*known.tolist(), *outside.tolist()]
        m, c = max(part.items(), key=lambda item: (-sum(item[0]), item[0]))
        places = [[i for i, x in enumerate(row) if x != 0] for row in rows]
        if all(len(at) == 1 for at in places):
            a = [0]*len(rows)
            for (i,), n in zip(places, m, strict=True):
                a[i] = n
            return Certificate(f"c_({','.join(map(str, a))})", tuple(a), "nonzero", "exact value", self.coefficient(tuple(a)))
        # Over the forms row/|row|, which are orthonormal.
        lengths = [sqrt(sum(x*x for x in row)) for row in rows]
        value = tidy(part.ring.domain.to_sympy(c)*prod(factorial(n)/L**n for L, n in zip(lengths, m, strict=True)))
        what = ", ".join(f"He_{n}({self._form([tidy(x/L) for x in row])})"
                         for row, L, n in zip(rows, lengths, m, strict=True) if n)
        return Certificate(f"c[{what}]", m, "nonzero", "exact value", value)

    def _form(self, row: Sequence[Expr]) -> str:
        return directions_words([row], [v.name for v in self.variables])


def _wider(P: Any, rows: Sequence[Sequence[Expr]]) -> Any:
    """P over a field that holds the entries of the rows as well."""
    entries = [x for row in rows for x in row if not x.is_Rational]
    if not entries:
        return P
    K = field_of([*entries, *(P.ring.domain.to_sympy(c) for c in P.values())])
    return P.set_ring(P.ring.clone(domain=K))


def _substituted(P: Any, rows: Sequence[Sequence[Expr]]) -> Any:
    """P at y = sum_i a_i (row i)."""
    K, gens = P.ring.domain, P.ring.gens
    swap = [(y, sum((a.mul_ground(K.from_sympy(row[j])) for a, row in zip(gens, rows, strict=True)), P.ring.zero))
            for j, y in enumerate(gens)]
    return P.compose(swap)
