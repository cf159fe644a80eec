"""The covariance of the variables that an expectation binds: by pairs or as a matrix in, a matrix out, none that no law has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from sympy import Expr, ImmutableDenseMatrix, Pow, Symbol, eye, sympify

from hermitex.errors import BadInput
from hermitex.symbolic import hooks


def by_pairs(cov: Any, variables: Sequence[Any], name: str = "E: cov") -> Mapping[tuple[Any, Any], Any]:
    """A covariance by pairs of variables, from pairs or from a matrix with a row for each variable."""
    if isinstance(cov, Mapping):
        if strange := next((pair for pair in cov if not (isinstance(pair, tuple) and len(pair) == 2)), None):
            raise BadInput(f"{name} names pairs of variables, {{(z1, z2): rho}}, not {strange}")
        return cov
    rows = cov.tolist() if hasattr(cov, "tolist") else cov
    n = len(variables)
    if not (isinstance(rows, (list, tuple)) and len(rows) == n and all(isinstance(r, (list, tuple)) and len(r) == n for r in rows)):
        raise BadInput(f"{name} is {{(z1, z2): rho}}, or a matrix with a row for each of {', '.join(map(str, variables))}, "
                       f"not {cov!r}")
    if uneven := next(((i, j) for i in range(n) for j in range(i) if str(rows[i][j]) != str(rows[j][i])), None):
        raise BadInput(f"{name} is not symmetric: {rows[uneven[0]][uneven[1]]} and {rows[uneven[1]][uneven[0]]}")
    return {(variables[i], variables[j]): rows[i][j] for i in range(n) for j in range(i + 1)}


def matrix_of(names: Sequence[str], cov: Mapping[tuple[Any, Any], Any], name: str = "E: cov") -> ImmutableDenseMatrix:
    """The identity with the covariances of named variables put in; a value may be a text."""
    matrix = eye(len(names)).as_mutable()
    given: dict[tuple[int, int], Expr] = {}
    for (a, b), value in cov.items():
        for v in (a, b):
            if str(v) not in names:
                raise BadInput(f"{name} names {v}, which is not among the variables {', '.join(names)}")
        i, j = names.index(str(a)), names.index(str(b))
        if isinstance(value, str):
            value = hooks.parse(value, letters=True)
        entry = sympify(value, strict=True)
        if given.setdefault((min(i, j), max(i, j)), entry) != entry:
            raise BadInput(f"{name}: the covariance of {a} and {b} is {given[min(i, j), max(i, j)]} and {entry}; give it once")
        matrix[i, j] = matrix[j, i] = entry
    return ImmutableDenseMatrix(matrix)


def require_law(matrix: ImmutableDenseMatrix, name: str = "E: the covariance") -> None:
    """Semi-definiteness is decided exactly, on principal minors, where every entry is a number."""
    if not matrix.free_symbols and any(v.is_negative for v in _principal_minors(matrix)):
        raise BadInput(f"{name} {matrix.tolist()} is not positive semi-definite")


def _principal_minors(matrix: Any) -> list[Expr]:
    n = matrix.rows
    return [matrix.extract(list(k), list(k)).det() for size in range(1, n + 1) for k in combinations(range(n), size)]


def correlations(body: Expr, cov: Any) -> set[Symbol]:
    """Symbols of correlations that are declared to have a sign, though a correlation rho in (-1, 1) may have the other one.

    Those of a covariance between two variables, and those in sqrt(1 - rho^2); a variance keeps its sign.
    """
    sized: set[Symbol] = set() if cov is None else set().union(*(cov[i, i].free_symbols for i in range(cov.rows)))
    between: set[Symbol] = set() if cov is None else cov.free_symbols - sized
    halves = [p.base for p in body.atoms(Pow) if p.exp.is_Rational and p.exp.q == 2]
    between |= {s for b in halves if b.is_Add for s in b.free_symbols if b == 1 - s**2} - sized
    return {s for s in between if s.is_extended_nonnegative or s.is_extended_nonpositive}
