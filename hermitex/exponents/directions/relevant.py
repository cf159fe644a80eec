"""R = {v : v . grad g = 0}^perp: the subspace of directions on which a target depends, with an exact orthonormal basis.

A target g(z1 + z2) depends on one direction; written over a basis of R it becomes a target in one variable. Coordinates
stay as they are where R is spanned by them, unless the target is written in other forms that are orthogonal to each
other: sign(z1**2 - z2**2) is sign(z1 z2) over the forms (z1 - z2)/sqrt(2), (z1 + z2)/sqrt(2). A polynomial is turned to
axes along which it is shorter, another sum to forms over which it falls apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sympy import Add, Expr, Pow, S, Symbol

from hermitex import symbols
from hermitex.exponents.directions.direction_text import normals_apart
from hermitex.symbolic.gaussian import E, Expectation
from hermitex.symbolic.invariance import aligned, rewritten, unseen
from hermitex.symbolic.parsing import to_text
from hermitex.symbolic.subspaces import Matrix, complement, contains, matrix, orthonormal, span, tidy
from hermitex.symbolic.terms import connected


@dataclass(frozen=True)
class Relevant:
    """A target over its relevant subspace: g(z) = inner(B z), the rows of B orthonormal.

    Attributes
    ----------
    variables : the variables of g, over which directions are written
    inner : g as an expression of `names` (a tuple where a sequence of expressions was given)
    names : the standard normals that inner depends on, one for each row of `basis`
    basis : B, orthonormal rows over `variables`; coordinate rows keep the name of their coordinate
    null : rows that span what g does not see
    irrelevant : the variables on which g does not depend at all
    """

    variables: tuple[Symbol, ...]
    inner: Any
    names: tuple[Symbol, ...]
    basis: Matrix
    null: Matrix
    irrelevant: tuple[Symbol, ...]

    @property
    def dimension(self) -> int:
        """How many directions g depends on."""
        return self.basis.rows

    @property
    def own_names(self) -> dict[str, str]:
        """Names for the coordinates that are not variables: z1 -> v1, so that z1 stays the variable z1."""
        turned = [n.name for n, form in self._forms if n != form]
        return normals_apart(turned, "v")

    @property
    def told(self) -> str:
        """Which forms of the variables those names are."""
        names = self.own_names
        return ", ".join(f"{names[n.name]} stands for {to_text(form)}" for n, form in self._forms if n != form)

    @property
    def _forms(self) -> list[tuple[Symbol, Expr]]:
        rows = self.basis.tolist()
        return [(n, Add(*(x*v for x, v in zip(row, self.variables, strict=True)))) for n, row in zip(self.names, rows, strict=True)]

    def outside(self, rows: Matrix) -> Matrix:
        """Directions over `names` as directions over `variables`, made short."""
        if rows.rows == 0:
            return matrix([], len(self.variables))
        return span(Matrix((rows*self.basis).applyfunc(tidy)))


def relevant_directions(g: Any, variables: Sequence[Symbol]) -> Relevant:
    """The directions a target depends on, exactly, and the target written over them.

    Parameters
    ----------
    g : expression, or a sequence of expressions; symbols that are not among `variables` count as parameters
    variables : the standard normals

    Examples
    --------
    >>> from sympy import tanh
    >>> from hermitex.symbols import z1, z2, z3
    >>> found = relevant_directions(tanh(z1 + 2*z2), (z1, z2, z3))
    >>> found.inner, found.basis, found.irrelevant
    (tanh(sqrt(5)*z1), Matrix([[sqrt(5)/5, 2*sqrt(5)/5, 0]]), (z3,))
    """
    variables = tuple(variables)
    expressions = tuple(g) if isinstance(g, (list, tuple)) else (g,)
    null = unseen(expressions, variables)
    irrelevant = tuple(v for i, v in enumerate(variables) if contains(null, _unit(i, len(variables))))
    rows = complement(null)
    found = _apart(expressions, variables, rows)
    if found is None:
        basis, names = _named(orthonormal(aligned(rows, expressions, variables)), variables)
        inner = tuple(rewritten(e, variables, basis, names) for e in expressions)
    else:
        basis, names, inner = found
    return Relevant(variables, inner if isinstance(g, (list, tuple)) else inner[0], names, basis, null, irrelevant)


def _apart(expressions: tuple[Expr, ...], variables: tuple[Symbol, ...],
           rows: Matrix) -> tuple[Matrix, tuple[Symbol, ...], tuple[Expr, ...]] | None:
    """A sum over the forms of its terms that are not polynomials, or powers of forms, if it then splits into more parts.

    z1*z2 + |z1 - z2| is u^2/2 + (sqrt(2)*|v| - v^2/2) over u = (z1 + z2)/sqrt(2), v = (z1 - z2)/sqrt(2).
    """
    (g, *others) = expressions
    curved = [e for e in Add.make_args(g) if not e.is_polynomial(*variables) or any(p.base.is_Add for p in e.atoms(Pow))]
    if others or not curved:
        return None
    turned = aligned(rows, curved, variables)
    if turned is rows:
        return None
    basis, names = _named(orthonormal(turned), variables)
    inner = rewritten(g, variables, basis, names)
    before, after = (len(connected(Add.make_args(e), v)) for e, v in ((g, variables), (inner, names)))
    return (basis, names, (inner,)) if after > before else None


def _named(basis: Matrix, variables: tuple[Symbol, ...]) -> tuple[Matrix, tuple[Symbol, ...]]:
    """The rows with their names, in the order of the names."""
    names = _names(basis, variables)
    order = sorted(range(len(names)), key=lambda i: symbols.natural(names[i]))
    return matrix([basis.tolist()[i] for i in order], len(variables)), tuple(names[i] for i in order)


def _unit(i: int, n: int) -> Matrix:
    return Matrix(1, n, [S(int(i == j)) for j in range(n)])


def _names(basis: Matrix, variables: tuple[Symbol, ...]) -> tuple[Symbol, ...]:
    """A coordinate row keeps its variable; the others take the variables that are left, in order."""
    found: list[Symbol | None] = []
    for row in basis.tolist():
        at = [i for i, x in enumerate(row) if x != 0]
        found.append(variables[at[0]] if len(at) == 1 and row[at[0]] == 1 else None)
    left = [v for v in variables if v not in found]
    return tuple(v if v is not None else left.pop(0) for v in found)


def along_one_direction(g: Expr) -> Expr:
    """g with every expectation inside that depends on one direction written over that direction: E f(z1 + z2) = E f(sqrt(2) z).

    Examples
    --------
    >>> from hermitex.symbols import z1, z2
    >>> from sympy import cos
    >>> len(along_one_direction(E(cos(z1 + z2), z1, z2)*z1).atoms(Expectation).pop().bound)
    1
    """
    def short(node: Expectation) -> Expr:
        body, bound = node.open()
        if len(bound) < 2 or not node.independent or body.has(Expectation):
            return node
        seen = relevant_directions(body, bound)
        return E(seen.inner, *seen.names) if seen.dimension == 1 else node

    return g.xreplace({node: short(node) for node in g.atoms(Expectation) if not node.free_symbols})
