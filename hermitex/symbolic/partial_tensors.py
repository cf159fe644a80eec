"""C_k^U(u) = E[g(z) He_k(P z) | P_U z = u], P the projection on the complement of U: Hermite tensors given some directions.

U is the span of orthonormal rows, z = U^T u + W^T w with the rows of W an orthonormal basis of the complement. The entry
of a multi-index b is c_b(u) = E_w[g He_b(w)], a function of u; each summand of g is integrated over the few directions
of w on which it depends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import factorial

from sympy import Add, Expr, Mul, Poly, Rational, S, Symbol, expand, factorial2

from hermitex.errors import BudgetExceeded, Divergent, HermitexError
from hermitex.symbolic.budget import Store, checkpoint, kept
from hermitex.symbolic.deadline import attempt
from hermitex.symbolic.formula_size import MANY
from hermitex.symbolic.gaussian import E
from hermitex.symbolic.parity import identically_zero
from hermitex.symbolic.radial import radial
from hermitex.symbolic.series.polynomials import He, Index, index_factorial, multi_indices, to_hermite
from hermitex.symbolic.subspaces import Matrix, complement, matrix, orthonormal, tidy
from hermitex.symbolic.summands import Split, Summand
from hermitex.symbolic.terms import linear

MultiIndex = tuple[int, ...]


@dataclass(frozen=True)
class TensorEntry:
    """c_b(u) as an expression (with nodes where no rule applies), and how it was found."""

    value: Expr
    how: str


class Given:
    """The tensors of one target given one subspace.

    Parameters
    ----------
    whole : the target taken apart, see `summands.split`
    known : orthonormal rows that span U (none for U = 0)

    Attributes: `frame` the orthonormal rows of W, `u` and `w` the symbols of the coordinates.

    Examples
    --------
    >>> from sympy import sign
    >>> from hermitex.symbols import z1, z2
    >>> from hermitex.symbolic.summands import split
    >>> given = Given(split(z1*sign(z2), (z1, z2)), Matrix([[1, 0]]))
    >>> given.entries(1)[1,].value
    sqrt(2)*u_1/sqrt(pi)
    """

    def __init__(self, whole: Split, known: Matrix) -> None:
        self.whole, self.known = whole, known
        self.frame = orthonormal(complement(known))
        self.u = tuple(Symbol(f"u_{i + 1}", real=True) for i in range(known.rows))
        self.w = tuple(Symbol(f"w_{i + 1}", real=True) for i in range(self.frame.rows))
        self._found = Store()

    def entries(self, k: int) -> dict[MultiIndex, TensorEntry]:
        """Every c_b(u) with |b| = k."""
        return self._found.of(k, lambda: self._entries(k))

    def _entries(self, k: int) -> dict[MultiIndex, TensorEntry]:
        checkpoint(f"computing a tensor of order {k}")
        total: dict[MultiIndex, list[Expr]] = {b: [] for b in multi_indices(len(self.w), k)}
        ways: dict[MultiIndex, list[str]] = {b: [] for b in total}
        for b, value in self._polynomial.items():
            if sum(b) == k:
                total[b].append(value)
                ways[b].append("exact Hermite expansion of a polynomial")
        for piece in self._pieces:
            for b, value, how in piece.contributions(k, self.w):
                total[b].append(value)
                ways[b].append(how)
        return {b: TensorEntry(_summed(total[b]), _words(ways[b])) for b in total}

    @cached_property
    def _polynomial(self) -> dict[MultiIndex, Expr]:
        """{b: c_b(u)} of the polynomial, all orders at once."""
        if self.whole.polynomial == 0:
            return {}
        moved = self.whole.polynomial.xreplace(self._moved(self.whole.variables))
        found: dict[Index, Expr] = to_hermite(expand(moved), *self.w)
        return {(b if isinstance(b, tuple) else (b,)): expand(v*index_factorial(b)) for b, v in found.items()}

    def _moved(self, variables: Sequence[Symbol]) -> dict[Symbol, Expr]:
        """z = U^T u + W^T w."""
        return {z: Add(*(self.known[i, j]*a for i, a in enumerate(self.u)),
                       *(self.frame[i, j]*a for i, a in enumerate(self.w))) for j, z in enumerate(variables)}

    @cached_property
    def _pieces(self) -> list[_Rotated]:
        found = (_Rotated.of(f, self.known, self.frame, self.u) for f in self.whole.summands)
        return [p for p in found if p is not None]


def _summed(parts: list[Expr]) -> Expr:
    if len(parts) < 2:
        return parts[0] if parts else S.Zero
    total = Add(*parts)
    return expand(total) if total.count_ops() < 400 else total


def _words(ways: list[str]) -> str:
    return "; ".join(dict.fromkeys(w for w in ways if w)) or "no summand depends on it"


@dataclass(frozen=True)
class _Rotated:
    """One summand as f(u, s) with s = Q w, the rows of Q orthonormal."""

    expr: Expr
    names: tuple[Symbol, ...]
    rows: Matrix

    @classmethod
    def of(cls, f: Summand, known: Matrix, frame: Matrix, u: tuple[Symbol, ...]) -> _Rotated | None:
        """The summand over its directions outside U; None if it has none."""
        along = (f.rows*known.T).applyfunc(tidy) if known.rows else Matrix.zeros(f.rows.rows, 0)
        across = (f.rows*frame.T).applyfunc(tidy)
        Q = _directions(across)
        if Q.rows == 0:
            return None
        lift = (across*Q.T).applyfunc(tidy)
        names = f.names[:Q.rows]
        forms = [Add(*(along[i, j]*a for j, a in enumerate(u)), *(lift[i, j]*s for j, s in enumerate(names)))
                 for i in range(len(f.names))]
        return cls(f.expr.xreplace(dict(zip(f.names, forms, strict=True))), names, Q)

    def contributions(self, k: int, w: Sequence[Symbol]) -> list[tuple[MultiIndex, Expr, str]]:
        """(b, c_b(u), how) for |b| = k: the tensor over s carried over to w, <C, y^k> = <C_s, (Q y)^k>."""
        plain = all(sorted(map(abs, row)) == [0]*(len(w) - 1) + [1] for row in self.rows.tolist())
        found = []
        for b in multi_indices(len(self.names), k):
            value, how = _moment(self.expr, self.names, b)
            found.append((b, value, how))
        if plain:
            return [(self._placed(b, len(w)), value*self._side(b), how) for b, value, how in found]
        return self._carried(found, k, w)

    def _placed(self, b: MultiIndex, n: int) -> MultiIndex:
        out = [0]*n
        for row, power in zip(self.rows.tolist(), b, strict=True):
            out[next(j for j, x in enumerate(row) if x != 0)] = power
        return tuple(out)

    def _side(self, b: MultiIndex) -> Expr:
        return Mul(*(next(x for x in row if x != 0)**n for row, n in zip(self.rows.tolist(), b, strict=True)))

    def _carried(self, found: list[tuple[MultiIndex, Expr, str]], k: int, w: Sequence[Symbol]) -> list:
        y = tuple(Symbol(f"y_{i + 1}", real=True) for i in range(len(w)))
        forms = [Add(*(x*v for x, v in zip(row, y, strict=True))) for row in self.rows.tolist()]
        out: list[tuple[MultiIndex, Expr, str]] = []
        for b, value, how in found:
            if value == 0:
                out.append(((k, *[0]*(len(w) - 1)), S.Zero, how))
                continue
            weight = Rational(factorial(k), index_factorial(b))
            form = Poly(Mul(*(f**n for f, n in zip(forms, b, strict=True))), *y)
            out += [(c, tidy(weight*x*Rational(index_factorial(c), factorial(k)))*value, how) for c, x in form.terms()]
        return out


def _directions(across: Matrix) -> Matrix:
    """Orthonormal rows that span those of `across`: themselves, made of length one, where they are orthogonal."""
    rows = [row for row in across.tolist() if any(x != 0 for x in row)]
    chosen: list[list[Expr]] = []
    for row in rows:
        left = row
        for other in chosen:
            along = tidy(Add(*(a*b for a, b in zip(left, other, strict=True))))
            left = [tidy(a - along*b) for a, b in zip(left, other, strict=True)]
        if all(x == 0 for x in left):
            continue
        length = tidy(Add(*(x**2 for x in left)))**Rational(1, 2)
        chosen.append([tidy(x/length) for x in left])
    return matrix(chosen, across.cols)


# -- moments of one summand --------------------------------------------------------------------------------------------
@kept(MANY)
def _moment(f: Expr, s: tuple[Symbol, ...], b: MultiIndex) -> tuple[Expr, str]:
    """E_s[f He_b(s)] and how it was found; a node where no rule applies."""
    from hermitex.symbolic.integrals import closed_form

    for flip, sign in _parities(f, s):
        if sign*Mul(*((-1)**n for n, x in zip(b, flip, strict=True) if x < 0)) == -1:
            return S.Zero, "odd under a reflection"
    node = _radial(f, s, b) or E(f*He(b, s), *s)
    patience = 1.5  # seconds for one closed form; the node is kept after that
    try:
        with attempt(patience):
            value = closed_form(node)
            return expand(value) if value.count_ops() < 200 else value, "exact integrals"
    except Divergent:
        raise
    except BudgetExceeded:
        checkpoint("integrating a summand")
    except HermitexError:
        pass
    # Monomial by monomial, constants outside: equal integrals are then equal nodes, and cancel.
    return linear(node), "integrals without closed form"


def _radial(f: Expr, s: tuple[Symbol, ...], b: MultiIndex) -> Expr | None:
    """E[f He_b] for an f of the length |s| alone: He_b averaged over the sphere, one integral over the length."""
    if len(s) < 2 or f.free_symbols - set(s) or radial(f, s) is None:
        return None
    square, average = Add(*(v**2 for v in s)), S.Zero
    for powers, c in Poly(He(b, s), *s).terms():
        if any(n % 2 for n in powers):
            continue
        # The mean of s^a on the unit sphere: prod (a_i - 1)!! / (n (n + 2) ... (n + |a| - 2)).
        below = Mul(*(len(s) + 2*j for j in range(sum(powers)//2)))
        average += c*Mul(*(factorial2(n - 1) for n in powers))*square**(sum(powers)//2)/below
    found = radial(f*average.expand(), s)
    return None if found is None else E(found[0], found[1])


@kept(512)
def _parities(f: Expr, s: tuple[Symbol, ...]) -> tuple[tuple[MultiIndex, int], ...]:
    """(flip, sign) with f(flip s) = sign f(s), proved; what else f holds is a constant."""
    found: list[tuple[MultiIndex, int]] = []
    variables = tuple(sorted(f.free_symbols, key=str))
    for flip in product((1, -1), repeat=len(s)):
        if -1 not in flip:
            continue
        moved = f.xreplace({v: -v for v, x in zip(s, flip, strict=True) if x < 0})
        for sign in (1, -1):
            if moved == sign*f or identically_zero(moved - sign*f, variables):
                found.append((flip, sign))
                break
    return tuple(found)
