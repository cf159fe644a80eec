"""Q = F(Q) of matrices as equations of their entries: Q11, Q12, ...; what is symmetric is stored once.

    {Q: A*Q.inv() + B}   ->   {Q11: .., Q12: .., Q22: ..},   Q the symmetric Matrix([[Q11, Q12], [Q12, Q22]]) or a MatrixSymbol

Inverse, determinant and trace of small matrices are written out. A solution gives the matrix back, solution["Q"].
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any

from sympy import Basic, Determinant, Eq, Expr, ImmutableDenseMatrix, MatrixBase, MatrixExpr, MatrixSymbol, Symbol, Trace

from hermitex.errors import NO_NUMBER, BadInput, brief
from hermitex.systems.complex_unknowns import complex_start


def is_list_of_pairs(given: Any) -> bool:
    """Is it a list of pairs [(Q, right-hand side), ...], as a dictionary is of what can be a key?"""
    return isinstance(given, list | tuple) and all(isinstance(p, list | tuple) and len(p) == 2 for p in given)


def write_entrywise(*parts: Mapping[Any, Any] | Iterable[tuple[Any, Any]]) -> tuple[dict[Any, Any], ...]:
    """Equations (and where names, and observables) with those of matrices as those of their entries.

    A Matrix of SymPy is not a dictionary key: an ImmutableMatrix or MatrixSymbol is, and pairs [(Q, right-hand side)] work too.

    Raises
    ------
    BadInput : the shapes differ, a matrix on the left holds something else than symbols, or an equation of a symmetric one is not
        symmetric.
    """
    lines = [list(p.items()) if isinstance(p, Mapping) else [tuple(pair) for pair in p] for p in parts]
    if not any(_is_matrix(k) or _is_matrix(v) or isinstance(v, Eq) or _mentions(v) for part in lines for k, v in part):
        return tuple(dict(part) for part in lines)
    named = {k: _entries(k.name, *map(int, k.shape)) for part in lines for k, _ in part if isinstance(k, MatrixSymbol)}
    return tuple(dict(p for k, v in part for p in _split(k, v, named)) for part in lines)


def _split(key: Any, value: Any, named: Mapping[MatrixSymbol, ImmutableDenseMatrix]) -> list[tuple[Any, Any]]:
    value = _written(value, named)
    if isinstance(value, Eq) and _is_matrix(value.lhs):
        left, right = (ImmutableDenseMatrix(_written(side, named)) for side in (value.lhs, value.rhs))
        return [(u, Eq(e, 0, evaluate=False)) for u, e in _split(key, left - right, named)]
    if not _is_matrix(key) and not _is_matrix(value):
        return [(key, value)]
    if not _is_matrix(value):
        raise BadInput(f"System: {_title(key)} is a matrix, but its right-hand side is not")
    value = ImmutableDenseMatrix(value)
    left = named[key] if isinstance(key, MatrixSymbol) else key
    if not _is_matrix(left):
        left = _entries(str(key), *value.shape, symmetric=_symmetric(value))
    if left.shape != value.shape:
        raise BadInput(f"System: {_title(key)} has the shape {left.shape} and its right-hand side {value.shape}")
    if strange := [e for e in left if not isinstance(e, Symbol)]:
        raise BadInput(f"System: {_title(key)} holds {strange[0]}; a matrix of unknowns is one of symbols")
    found: dict[Any, Any] = {}
    for symbol, right in zip(left, value, strict=True):
        if symbol not in found:
            found[symbol] = right
        elif not _equal_formulas(found[symbol], right):
            raise BadInput(f"System: {symbol} occurs twice in {_title(key)} with different right-hand sides: is the equation "
                           "symmetric?")
    return list(found.items())


def _written(value: Any, named: Mapping[MatrixSymbol, ImmutableDenseMatrix]) -> Any:
    """A side with its matrices as entries, inverse, determinant and trace written out."""
    if isinstance(value, list | tuple) and value and all(isinstance(row, list | tuple) for row in value):
        return ImmutableDenseMatrix([list(row) for row in value])
    if isinstance(value, MatrixBase):
        return ImmutableDenseMatrix(value).applyfunc(lambda e: _written(e, named))
    if not isinstance(value, Basic) or not (named or isinstance(value, MatrixExpr) or _mentions(value)):
        return value
    if isinstance(value, Eq):
        return Eq(_written(value.lhs, named), _written(value.rhs, named), evaluate=False)
    value = value.xreplace(dict(named)) if named else value
    if loose := value.atoms(MatrixSymbol):
        raise BadInput(f"System: the matrix {sorted(map(str, loose))[0]} has no equation; write its entries as a Matrix of symbols")
    most = 4  # rows of a matrix whose inverse is written out
    for inner in value.atoms(MatrixExpr):
        if inner.is_square and isinstance(inner.shape[0], int) and inner.shape[0] > most and inner.is_Inverse:
            raise BadInput(f"System: the inverse of a matrix of {inner.shape[0]} rows is not written out; make it an unknown of "
                           "its own")
    value = value.replace(lambda e: isinstance(e, Trace | Determinant), lambda e: e.func(e.arg.as_explicit()).doit(deep=False))
    return value.as_explicit() if isinstance(value, MatrixExpr) else value


def _entries(name: str, rows: int, columns: int, *, symmetric: bool = False) -> ImmutableDenseMatrix:
    most = 9  # rows or columns whose entries are named Q11, Q12, ...; beyond it Q_10_2
    form = "{}{}{}" if max(rows, columns) <= most else "{}_{}_{}"

    def entry(i: int, j: int) -> Symbol:
        i, j = (min(i, j), max(i, j)) if symmetric else (i, j)
        return Symbol(form.format(name, i + 1, j + 1), real=True)

    return ImmutableDenseMatrix(rows, columns, entry)


def _symmetric(value: ImmutableDenseMatrix) -> bool:
    return value.is_square and all(_equal_formulas(value[i, j], value[j, i]) for i in range(value.rows) for j in range(i))


def _equal_formulas(a: Any, b: Any) -> bool:
    """Are two formulas equal? What is not seen at once is tried."""
    from hermitex.check.claim import check

    if a == b:
        return True
    return bool((a - b).expand() == 0) or bool(check(a, b))


def _is_matrix(x: Any) -> bool:
    return isinstance(x, MatrixBase | MatrixExpr) or (
        isinstance(x, list) and bool(x) and all(isinstance(row, list | tuple) for row in x))


def _mentions(x: Any) -> bool:
    return isinstance(x, Expr | Eq) and x.has(MatrixExpr, MatrixBase)


def _title(key: Any) -> str:
    return key.name if isinstance(key, MatrixSymbol) else str(list(key)) if isinstance(key, MatrixBase) else str(key)


def _nearly_equal(v: Any, w: Any) -> bool:
    """Equal but for rounding."""
    import numpy as np

    try:
        return bool(np.allclose(np.asarray(v, dtype=float), np.asarray(w, dtype=float), rtol=1e-12, atol=0))
    except NO_NUMBER:  # no numbers, or lists of several lengths: whoever reads the start says so
        return bool(np.array_equal(v, w))


def flat_start(start: Any, unknowns: Iterable[str]) -> Any:
    """A start with matrices, {"Q": [[1, 0.5], [0.5, 1]]} or {Matrix of unknowns: Matrix of numbers}, as one of entries."""
    if not isinstance(start, Mapping):
        return start  # whoever reads it says what it is not
    names, found = set(unknowns), dict[str, Any]()
    for key, value in complex_start(start, names).items():
        left = key if isinstance(key, MatrixBase) else _entries_of(str(key), names)
        own = {str(key): value} if left is None else _entrywise_start(left, value, _title(key))
        if twice := own.keys() & found.keys():
            raise BadInput(f"start: {min(twice)} has two values; give it once")
        found |= own
    return found


def _entrywise_start(left: MatrixBase, value: Any, title: str) -> dict[str, Any]:
    import numpy as np

    table, found = np.asarray(value, dtype=object), dict[str, Any]()
    if table.shape != left.shape:
        what = " by ".join(map(str, table.shape)) if table.ndim > 1 else brief(value)
        raise BadInput(f"start: {title} is {left.rows} by {left.cols}, and its start is {what}")
    for entry, v in zip(map(str, left), table.ravel(), strict=True):
        if entry in found and not _nearly_equal(found[entry], v):
            raise BadInput(f"start: {title} is symmetric, and its start is not: {entry} = {found[entry]} and {v}")
        found.setdefault(entry, v)  # the reader of the start reports names that are not unknowns
    return found


def _entries_of(name: str, names: set[str]) -> ImmutableDenseMatrix | None:
    """The matrix of unknowns with this name; None without one, or if the name is an unknown itself."""
    for form in () if name in names else ("{}{}{}", "{}_{}_{}"):
        def known(i: int, j: int, form: str = form) -> bool:
            return form.format(name, i, j) in names

        rows, columns = next(n for n in count() if not known(n + 1, 1)), next(n for n in count() if not known(1, n + 1))
        if min(rows, columns) == 1 and known(2, 2):  # a symmetric one is stored once
            rows = columns = max(rows, columns)
        if rows and columns:
            return ImmutableDenseMatrix(rows, columns, lambda i, j: Symbol(
                form.format(name, *((i + 1, j + 1) if known(i + 1, j + 1) else (j + 1, i + 1)))))  # noqa: B023 - made here
    return None
