"""C_k = E[g He_k(z)] = E[grad^k g]: Hermite tensors of a target in several variables, stored by multi-index.

Entry (i_1, ..., i_k) is c_a = E[g He_a], a_i the number of slots that hold i; <C_k, y^k> = sum_a k!/a! c_a y^a is the
tensor as a polynomial. R.C_k belongs to g(R^T z), and E[g^2] = sum_k ||C_k||^2/k! (Parseval).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product as cartesian
from math import factorial
from typing import Any

from sympy import Add, Expr, ImmutableDenseNDimArray, Mul, Poly, Rational, S, Symbol, expand

from hermitex.errors import BadInput
from hermitex.hints import Formula, Variables
from hermitex.show.display import Shown, latex
from hermitex.symbolic.series.coefficients import coefficient, target
from hermitex.symbolic.series.polynomials import index_factorial, multi_indices, order_of, to_hermite
from hermitex.symbolic.subspaces import Matrix, matrix, span
from hermitex.symbolic.summands import Summand, split

MAX_VARIABLES = 6  # a tensor of order 10 in six variables has 3003 entries


@dataclass(frozen=True)
class SymmetricTensor(Shown):
    """A symmetric tensor stored by multi-index: entry (i_1, ..., i_k) is entries[a], a_i = #(slots holding i)."""

    order: int
    dimension: int
    entries: Mapping[tuple[int, ...], Expr]

    def __getitem__(self, slots: int | tuple[int, ...]) -> Expr:
        slots = (slots,) if isinstance(slots, int) else slots
        if len(slots) != self.order or not all(0 <= i < self.dimension for i in slots):
            raise IndexError(f"{slots} does not address a tensor of order {self.order} in dimension {self.dimension}")
        return self.entries[tuple(slots.count(i) for i in range(self.dimension))]

    def to_dict(self) -> dict[str, Any]:
        """Order, dimension and the nonzero entries [multi-index, value as text that `hermitex.parse` reads]."""
        from hermitex.symbolic.text.plain_data import plain

        entries = [[list(a), plain(v)] for a, v in self.entries.items() if v != 0]
        return {"order": self.order, "dimension": self.dimension, "entries": entries}

    # -- as a polynomial
    def polynomial(self, y: Sequence[Symbol]) -> Expr:
        """<C, y^k> = sum_a k!/a! c_a y^a.

        >>> from hermitex.symbols import z1, z2
        >>> tensor(z1*z2, 2).polynomial((z1, z2))
        2*z1*z2
        """
        k = factorial(self.order)
        return Add(*(k//index_factorial(a)*c*Mul(*(v**n for v, n in zip(y, a, strict=True)))
                     for a, c in self.entries.items() if c != 0))

    @classmethod
    def of_polynomial(cls, p: Expr, y: Sequence[Symbol], order: int) -> SymmetricTensor:
        """The tensor C with <C, y^k> = p, a form of degree k in y."""
        found = dict(Poly(p, *y).terms()) if p != 0 else {}
        k = factorial(order)
        return cls(order, len(y), {a: expand(found.get(a, S.Zero)*Rational(index_factorial(a), k))
                                   for a in multi_indices(len(y), order)})

    # -- algebra
    def rotated(self, R: Any) -> SymmetricTensor:
        """R.C: every slot multiplied by R; the tensor of g(R^T z) if this one is that of g (R orthogonal).

        >>> from sympy import Matrix, sqrt
        >>> from hermitex.symbols import z1, z2
        >>> tensor(z1*z2, 2).rotated(Matrix([[1, 1], [1, -1]])/sqrt(2)).full()
        [[1, 0], [0, -1]]
        """
        R = Matrix(R)
        if R.cols != self.dimension:
            raise BadInput(f"rotated: a matrix with {R.cols} columns does not act in dimension {self.dimension}")
        y = _letters(R.rows)
        swap = {v: Add(*(R[j, i]*w for j, w in enumerate(y))) for i, v in enumerate(_letters(self.dimension, "x"))}
        p = self.polynomial(_letters(self.dimension, "x")).xreplace(swap)
        return SymmetricTensor.of_polynomial(expand(p), y, self.order)

    def fibres(self) -> Matrix:
        """The rows (C[e_i, a])_i over all multi-indices a of the other slots: they span the directions of the tensor."""
        if self.order == 0:
            return matrix([], self.dimension)
        rows = [[self.entries[tuple(n + (i == j) for j, n in enumerate(a))] for i in range(self.dimension)]
                for a in multi_indices(self.dimension, self.order - 1)]
        return matrix([row for row in rows if any(x != 0 for x in row)], self.dimension)

    def charged(self) -> Matrix:
        """A short basis of the smallest subspace V with C in Sym^k(V), exact.

        >>> from hermitex.symbols import z1, z2
        >>> tensor((z1 + z2)**2, 2).charged()
        Matrix([[1, 1]])
        """
        return span(self.fibres())

    def full(self) -> Any:
        """All dimension**order entries, as an immutable SymPy array."""
        largest = 10**6  # entries, each a reference to an expression: 8 MB
        if self.dimension**self.order > largest:
            raise BadInput(f"the full tensor has {self.dimension}**{self.order} entries; read .entries instead")
        every = cartesian(range(self.dimension), repeat=self.order)
        return ImmutableDenseNDimArray([self[i] for i in every], (self.dimension,)*self.order)

    def squared_norm(self) -> Expr:
        """||C||_F^2 = sum_a k!/a! c_a^2; divided by k! it is the part of E[g^2] at order k."""
        return Add(*(factorial(self.order)//index_factorial(a)*v**2 for a, v in self.entries.items()))

    def is_zero(self) -> bool:
        """True if every entry is the exact number 0."""
        return all(v == 0 for v in self.entries.values())

    def latex(self) -> str:
        r"""C_2 as a matrix; any other order as the form <C_k, y^k>."""
        if self.order == 2:
            rows = [" & ".join(latex(self[i, j]) for j in range(self.dimension)) for i in range(self.dimension)]
            return r"C_{2} = \begin{pmatrix} " + r" \\ ".join(rows) + r" \end{pmatrix}"
        form = latex(self.polynomial(_letters(self.dimension)))
        return rf"\langle C_{{{self.order}}},\, y^{{\otimes {self.order}}}\rangle = {form}"

    def __repr__(self) -> str:
        inside = ", ".join(f"{a}: {v}" for a, v in self.entries.items() if v != 0)
        return f"SymmetricTensor(order={self.order}, dimension={self.dimension}, {{{inside}}})"


def tensor(g: Formula, k: int, x: Variables | None = None) -> SymmetricTensor:
    """C_k = E[g He_k(z)], the symmetric tensor of Hermite coefficients of order k (He_2 = z z^T - I).

    Parameters
    ----------
    g : expression, text, or anything `activation` takes, in at most 6 variables
    k : the order
    x : the variables; default: the z, z1, z2, ... that occur in g

    Returns
    -------
    SymmetricTensor : exact where a rule applies, else over unevaluated nodes

    Guarantee
    ---------
    An exact entry equals the average for all values that the assumptions allow. See docs/promise.md.

    Examples
    --------
    >>> from hermitex.symbols import z1, z2
    >>> tensor(z1*z2, 2).full()
    [[0, 1], [1, 0]]
    """
    body, variables = target(g, x)
    k = order_of(k)
    if len(variables) > MAX_VARIABLES:
        raise BadInput(f"tensor: {len(variables)} variables; at most {MAX_VARIABLES} are supported")
    whole = split(body, variables)
    if len(variables) == 1 or (not whole.summands and body.is_polynomial(*variables)):
        return _of_whole(body, variables, k)
    y = _letters(len(variables))
    total = _of_whole(whole.polynomial, variables, k).polynomial(y) if whole.polynomial != 0 else S.Zero
    return SymmetricTensor.of_polynomial(expand(total + Add(*(_of_summand(f, k, y) for f in whole.summands))), y, k)


def _of_whole(g: Expr, variables: tuple[Symbol, ...], k: int) -> SymmetricTensor:
    every = multi_indices(len(variables), k)
    if len(variables) > 1 and g.is_polynomial(*variables):
        found = to_hermite(g, *variables)
        return SymmetricTensor(k, len(variables), {a: expand(found.get(a, S.Zero)*index_factorial(a)) for a in every})
    return SymmetricTensor(k, len(variables), {a: coefficient(g, a, variables) for a in every})


def _of_summand(f: Summand, k: int, y: Sequence[Symbol]) -> Expr:
    """<C_k(f(R z)), y^k> = <C_k(f), (R y)^k>."""
    own = _of_whole(f.expr, f.names, k)
    along = [Add(*(c*v for c, v in zip(row, y, strict=True))) for row in f.rows.tolist()]
    x = _letters(len(along), "x")
    return own.polynomial(x).xreplace(dict(zip(x, along, strict=True)))


def _letters(n: int, letter: str = "y") -> tuple[Symbol, ...]:
    return tuple(Symbol(f"{letter}_{i + 1}", real=True) for i in range(n))
