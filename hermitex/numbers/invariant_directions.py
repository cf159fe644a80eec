"""f(z + s v) = f(z) e^(k s) or f(z) + c s for all s: the directions v that an integrand does not depend on, read off its formula.

The condition on v is linear at each node of the formula: 1 + exp(a.z) requires a.v = 0, exp(a.z) + exp(b.z) requires a.v = b.v.
So the solutions form a space; an average over n normals becomes one over its orthogonal complement.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sympy import Abs, Add, Expr, Heaviside, Matrix, Max, Min, Mul, Piecewise, Poly, Pow, S, exp, log, radsimp, sign, sqrt, zeros
from sympy.core.relational import Relational
from sympy.polys.polyerrors import PolynomialError

from hermitex.symbolic.arithmetic import mp

Row = tuple[Expr, ...]
WEIGHT, SHIFT = "weight", "shift"  # the node is multiplied by exp(row.v s), or row.v s is added to it


class Directions:
    """How an expression changes along each direction: `rows` (each row.v must be 0), and the kind and row of the whole.

    Examples
    --------
    >>> from hermitex.symbols import z1, z2
    >>> from sympy import exp
    >>> found = Directions(exp(z1)/(exp(z1) + exp(z2)), (z1, z2))
    >>> found.rows, found.kind, found.row
    ([(-1, 1)], 'weight', (0, 0))
    """

    def __init__(self, body: Expr, variables: Sequence[Expr]) -> None:
        self.variables = tuple(variables)
        self.zero: Row = (S.Zero,)*len(self.variables)
        self.rows: list[Row] = []
        self._known: dict[Any, tuple[str, Row]] = {}
        self.kind, self.row = self._of(body)

    def spanned(self) -> list[Row]:
        """The rows that the expression depends on, its own weight or shift included."""
        return self.rows + ([self.row] if any(self.row) else [])

    def _of(self, e: Any) -> tuple[str, Row]:
        if e not in self._known:
            self._known[e] = self._found(e)
        return self._known[e]

    def _found(self, e: Any) -> tuple[str, Row]:
        if not e.free_symbols.intersection(self.variables):
            return SHIFT, self.zero
        if (e.is_Add or e.is_Mul or e.is_Pow or e in self.variables) and (polynomial := self._polynomial(e)) is not None:
            return polynomial
        if isinstance(e, Add | Max | Min):
            return self._sum(e)
        if isinstance(e, Mul):
            return self._product(e)
        if isinstance(e, Pow):
            return self._power(e)
        if isinstance(e, exp):
            kind, row = self._of(e.args[0])
            return (WEIGHT, row) if kind == SHIFT else (WEIGHT, self._fixed(row))
        if isinstance(e, log):
            kind, row = self._of(e.args[0])
            return (SHIFT, row) if kind == WEIGHT else (SHIFT, self._fixed(row))
        if isinstance(e, Abs):
            return WEIGHT, self._weight(e.args[0])
        if isinstance(e, sign | Heaviside):
            self._weight(e.args[0])  # a positive factor does not change a sign
            return SHIFT, self.zero
        if isinstance(e, Piecewise):
            return self._pieces(e)
        for a in e.args:
            self._fixed(self._of(a)[1])
        return SHIFT, self.zero

    def _fixed(self, row: Row) -> Row:
        """Require row.v = 0."""
        if any(row) and row not in self.rows:
            self.rows.append(row)
        return self.zero

    def _weight(self, e: Expr) -> Row:
        """The row of e as a weight."""
        kind, row = self._of(e)
        return row if kind == WEIGHT else self._fixed(row)

    def _equal(self, rows: Sequence[Row]) -> Row:
        """Require that all the rows agree."""
        for row in rows[1:]:
            self._fixed(tuple(a - b for a, b in zip(row, rows[0], strict=True)))
        return rows[0]

    def _polynomial(self, e: Expr) -> tuple[str, Row] | None:
        """The gradient of a polynomial vanishes along v; an affine form is shifted."""
        try:
            p = Poly(e, *self.variables)
        except PolynomialError:
            return None
        if p.free_symbols_in_domain.intersection(self.variables):
            return None
        slopes = [p.diff(v) for v in self.variables]
        if p.total_degree() == 1:
            return SHIFT, tuple(s.as_expr() for s in slopes)
        for monomial in sorted({m for s in slopes for m in s.monoms()}):
            self._fixed(tuple(s.coeff_monomial(monomial) for s in slopes))
        return WEIGHT, self.zero

    def _sum(self, e: Expr) -> tuple[str, Row]:
        found = [self._of(a) for a in e.args]
        if all(kind == SHIFT for kind, _ in found):
            rows = [row for _, row in found]
            return SHIFT, _added(rows) if isinstance(e, Add) else self._equal(rows)
        return WEIGHT, self._equal([self._weight(a) for a in e.args])

    def _product(self, e: Expr) -> tuple[str, Row]:
        c, rest = e.as_independent(*self.variables, as_Add=False)
        if not isinstance(rest, Mul):
            kind, row = self._of(rest)
            return kind, tuple(c*a for a in row) if kind == SHIFT else row
        return WEIGHT, _added([self._weight(a) for a in rest.args])

    def _power(self, e: Expr) -> tuple[str, Row]:
        if not e.exp.free_symbols.intersection(self.variables):
            return WEIGHT, tuple(e.exp*a for a in self._weight(e.base))
        kind, row = self._of(e.exp)
        if kind == SHIFT and not e.base.free_symbols.intersection(self.variables):
            return WEIGHT, tuple(log(e.base)*a for a in row)
        self._fixed(row)
        self._fixed(self._of(e.base)[1])
        return SHIFT, self.zero

    def _pieces(self, e: Expr) -> tuple[str, Row]:
        for condition in (c for _, c in e.args):
            for r in condition.atoms(Relational):
                self._weight(r.lhs - r.rhs)
        found = [self._of(a) for a, _ in e.args]
        if all(kind == SHIFT for kind, _ in found):
            return SHIFT, self._equal([row for _, row in found])
        return WEIGHT, self._equal([self._weight(a) for a, _ in e.args])


def _added(rows: Sequence[Row]) -> Row:
    return tuple(Add(*column) for column in zip(*rows, strict=True))


def product(a: Row, law: Matrix, b: Row) -> Expr:
    """a.C.b, the covariance of two linear forms."""
    return tidied((Matrix([a])*law*Matrix([b]).T)[0])


def tidied(e: Expr) -> Expr:
    """A coefficient with its roots rationalised; of many operations or roots, whose products are more, a number."""
    roots = {p.base for p in e.atoms(Pow) if not p.exp.is_Integer}
    if len(roots) > 3 or e.count_ops() > 100:
        value = e.evalf(max(60, mp.dps + 30))
        return S.Zero if vanishes(value) else value
    e = e.expand()
    return e if e.is_Rational else radsimp(e).expand()


def vanishes(e: Expr) -> bool:
    """Decide if a coefficient is 0: exactly if SymPy can, else to 30 digits."""
    if e.is_Rational:
        return bool(e == 0)
    return e.is_zero is True or abs(e.evalf(40)) < S(10)**-30


def orthonormal(rows: Sequence[Row], law: Matrix) -> list[Row]:
    """Linear forms of variance 1 without correlation, as many as span the given ones; forms in few variables come first."""
    basis: list[Row] = []
    for row in sorted(rows, key=lambda r: (sum(c != 0 for c in r), [str(c) for c in r])):
        rest = row
        for q in basis:
            c = product(rest, law, q)
            rest = tuple(tidied(a - c*b) for a, b in zip(rest, q, strict=True))
        size = product(rest, law, rest)
        if not vanishes(size):
            basis.append(tuple(tidied(a/sqrt(size)) for a in rest))
    return basis


def images(basis: Sequence[Row], law: Matrix, names: Sequence[Expr]) -> list[Expr]:
    """Each variable's part in the span of the basis, as a form in independent standard normals `names`."""
    n = law.rows
    columns = [law*Matrix([q]).T for q in basis]
    parts = zeros(n, 1)
    for column, y in zip(columns, names, strict=True):
        parts += column*y
    return [Add(*(tidied(a.coeff(y))*y for y in names)) for a in parts.expand()]


__all__ = ["Directions", "Row", "images", "orthonormal", "product", "tidied", "vanishes"]
