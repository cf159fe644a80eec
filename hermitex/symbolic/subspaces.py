"""P_U = B^T (B B^T)^(-1) B: subspaces of R^r as exact matrices of rows, with every rank decided and never guessed.

Entries are exact real constants (rationals, roots, expectations without a closed form). A pivot is used only where it
is proved not to be zero, an entry dropped only where it is proved to be zero; what cannot be decided is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from sympy import Add, Expr, Function, ImmutableDenseMatrix, Mul, NumberSymbol, Rational, expand, eye, gcd_list, ilcm, radsimp, sqrt
from sympy.polys.matrices import DomainMatrix

from hermitex.errors import NoClosedForm
from hermitex.symbolic.budget import kept
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.square_roots import without_roots_below

if TYPE_CHECKING:  # SymPy has no types of its own
    Matrix = Any
else:
    Matrix = ImmutableDenseMatrix


def is_zero(value: Expr) -> bool:
    """Is this exact constant zero? Both answers are proofs.

    Raises
    ------
    NoClosedForm : it could not be decided.

    Examples
    --------
    >>> is_zero(sqrt(6)/sqrt(2) - sqrt(3)), is_zero(sqrt(6) - sqrt(3))
    (True, False)
    >>> from hermitex.symbolic.gaussian import E
    >>> from hermitex.symbols import z1, z2
    >>> is_zero(-1/E(abs(z1 + z2**2))), is_zero(E(z1*abs(z2))/sqrt(3))
    (False, True)
    """
    return value == 0 if value.is_Rational else _is_zero(value)


@kept(4096)
def _is_zero(value: Expr) -> bool:
    from hermitex.symbolic.zero import decide

    if value.is_zero is not None and not value.has(Expectation):
        return bool(value.is_zero)
    above = [f for f in Mul.make_args(value) if not (f.is_Pow and f.exp.is_negative)]
    if len(above) < len(Mul.make_args(value)):  # a/b, b finite: an entry that was divided by a pivot
        return is_zero(Mul(*above))
    found = decide(value)
    if found.status == "undetermined":
        raise NoClosedForm(value, f"whether it is zero was not decided ({found.how})")
    return found.status == "zero"


def tidy(value: Expr) -> Expr:
    """A short exact form of an entry: multiplied out, denominators rational where that is cheap."""
    if value.is_Rational:
        return value
    letters = value.has(Add) and value.has(Function, NumberSymbol) and not value.has(Expectation)
    size = value.count_ops()
    shortest = 60  # operations
    if letters and (short := without_roots_below(value)) != value and short.count_ops() <= max(shortest, size):
        return short
    if size > 200:
        return value
    grown = expand(value)
    return grown if grown.is_Rational or letters or grown.has(Expectation) or grown.count_ops() > shortest else radsimp(grown)


def matrix(rows: Iterable[Iterable[Expr]], columns: int) -> Matrix:
    """Rows as an immutable matrix; none at all is a matrix with 0 rows and `columns` columns."""
    found = [list(row) for row in rows]
    return Matrix(len(found), columns, [x for row in found for x in row])


def rows_of(m: Matrix) -> list[list[Expr]]:
    """The rows of a matrix as lists."""
    return [list(m.row(i)) for i in range(m.rows)]


def echelon(m: Matrix) -> tuple[Matrix, tuple[int, ...]]:
    """The reduced row echelon form without its zero rows, and the columns of the pivots.

    Examples
    --------
    >>> echelon(Matrix([[1, 2], [2, 4]]))
    (Matrix([[1, 2]]), (0,))
    """
    if m.rows and all(x.is_Rational for x in m):
        reduced, at = DomainMatrix.from_Matrix(m).to_field().rref()
        return Matrix(reduced.to_Matrix()[:len(at), :]), tuple(at)
    left, pivots = rows_of(m), []
    done: list[list[Expr]] = []
    for column in range(m.cols):
        at = min((i for i, row in enumerate(left) if not is_zero(row[column])),
                 key=lambda i: left[i][column].count_ops(), default=None)
        if at is None:
            continue
        row = left.pop(at)
        row = [tidy(x / row[column]) for x in row]
        left = [_minus(other, row, column) for other in left]
        done = [_minus(other, row, column) for other in done] + [row]
        pivots.append(column)
    return matrix(done, m.cols), tuple(pivots)


def _minus(other: list[Expr], row: list[Expr], column: int) -> list[Expr]:
    factor = other[column]
    if factor == 0:
        return other
    return [tidy(a - factor*b) if i != column else Rational(0) for i, (a, b) in enumerate(zip(other, row, strict=True))]


def null_space(m: Matrix) -> Matrix:
    """Rows that span {v : m v = 0}.

    Examples
    --------
    >>> null_space(Matrix([[1, 1, 0]]))
    Matrix([
    [-1, 1, 0],
    [ 0, 0, 1]])
    """
    reduced, pivots = echelon(m)
    rows = []
    for free in (c for c in range(m.cols) if c not in pivots):
        row = [Rational(int(c == free)) for c in range(m.cols)]
        for i, pivot in enumerate(pivots):
            row[pivot] = -reduced[i, free]
        rows.append(row)
    return matrix(rows, m.cols)


def rank(m: Matrix) -> int:
    """The dimension of the span of the rows."""
    return echelon(m)[0].rows


def spans_same(a: Matrix, b: Matrix) -> bool:
    """Do the rows of a and of b span the same subspace?"""
    n = rank(a)
    return n == rank(b) == rank(stack(a, b))


def contains(outer: Matrix, inner: Matrix) -> bool:
    """Is the span of `inner` part of the span of `outer`?"""
    return inner.rows == 0 or rank(stack(outer, inner)) == rank(outer)


def stack(*parts: Matrix) -> Matrix:
    """The rows of all the matrices."""
    return matrix([row for part in parts for row in rows_of(part)], parts[0].cols)


def span(m: Matrix) -> Matrix:
    """A short orthogonal basis of the span: coordinate vectors if they belong to it, integer rows if it is rational.

    Examples
    --------
    >>> span(Matrix([[1, 1, 1], [1, 1, -1]]))
    Matrix([
    [0, 0, 1],
    [1, 1, 0]])
    """
    basis = echelon(m)[0]
    if basis.rows == m.cols:
        return Matrix(eye(m.cols))
    units = [row for row in rows_of(basis) if sum(1 for x in row if x != 0) == 1]
    # In echelon form a coordinate vector in the span is itself a row.
    rest = [row for row in rows_of(basis) if row not in units]
    return stack(matrix(units, m.cols), orthogonal(matrix(rest, m.cols)))


def orthogonal(m: Matrix) -> Matrix:
    """Gram-Schmidt without square roots: independent rows, pairwise orthogonal, each made short."""
    done: list[list[Expr]] = []
    for row in rows_of(m):
        for other in done:
            factor = tidy(_dot(row, other)/_dot(other, other))
            row = [tidy(a - factor*b) for a, b in zip(row, other, strict=True)]
        done.append(_short(row))
    return matrix(done, m.cols)


def orthonormal(m: Matrix) -> Matrix:
    """The rows of `orthogonal`, each divided by its length."""
    rows = []
    for row in rows_of(orthogonal(m)):
        length = sqrt(tidy(_dot(row, row)))
        rows.append([tidy(x/length) for x in row])
    return matrix(rows, m.cols)


def complement(m: Matrix) -> Matrix:
    """A short orthogonal basis of the orthogonal complement of the span of the rows."""
    return span(null_space(m)) if m.rows else Matrix(eye(m.cols))


def frame(m: Matrix) -> Matrix:
    """A short orthonormal basis of the span of the rows (`span`, normalised)."""
    return orthonormal(span(m))


def _dot(a: Sequence[Expr], b: Sequence[Expr]) -> Expr:
    return sum((x*y for x, y in zip(a, b, strict=True)), Rational(0))


def _short(row: list[Expr]) -> list[Expr]:
    """Coprime integers for a rational row, the first entry that is not zero positive; else divided by that entry."""
    if all(x.is_Rational for x in row):
        scale = ilcm(*(x.q for x in row), 1)
        row = [x*scale for x in row]
        common = abs(gcd_list(row))  # of one negative number SymPy's is negative
        lead = next(x for x in row if x != 0)
        return [x/common*(1 if lead > 0 else -1) for x in row]
    lead = next(x for x in row if x != 0)
    return [tidy(x/lead) for x in row]
