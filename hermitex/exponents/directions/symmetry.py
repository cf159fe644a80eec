"""g(R z) = eps g(z) for an orthogonal R: then C_k = eps R.C_k, and zeta_k(y) = R.zeta_k(eps y).

Sign flips, permutations with signs, reflections in the linear forms of the target, and continuous rotations; each is
proved by algebra (values at points only sort out what need not be tried). Source of the rule: the change of variables
z -> R z leaves the Gaussian law as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, permutations, product
from math import prod
from typing import Any

from sympy import Add, Expr, Poly, Rational, S, Symbol, cos, expand, eye, pi, powsimp, sin, sqrt, zeros

from hermitex.errors import HermitexError
from hermitex.symbolic.arithmetic import mpf
from hermitex.symbolic.budget import checkpoint, kept
from hermitex.symbolic.invariance import linear_forms
from hermitex.symbolic.parity import identically_zero
from hermitex.symbolic.subspaces import Matrix, tidy

_DENSE = 4  # variables: their 4! = 24 permutations and 6 planes are all tried; of five variables they are 120 and 10


@dataclass(frozen=True)
class Symmetry:
    """An orthogonal matrix R and a sign with g(R z) = sign g(z), proved."""

    matrix: Matrix
    sign: int
    variables: tuple[Symbol, ...]

    @cached_property
    def how(self) -> str:
        """z -> R z in words: "z1 -> -z2, z2 -> -z1"."""
        moved = {v: Add(*(self.matrix[i, j]*w for j, w in enumerate(self.variables))) for i, v in enumerate(self.variables)}
        return ", ".join(f"{v} -> {w}" for v, w in moved.items() if v != w) or "identity"

    @cached_property
    def entries(self) -> tuple[tuple[int, int], ...] | None:
        """(j, e) for each row of a permutation with signs, e = +-1 its entry at j; None for any other R."""
        found = []
        for row in self.matrix.tolist():
            at = [(j, int(x)) for j, x in enumerate(row) if x != 0 and x in (S.One, S.NegativeOne)]
            if len(at) != 1 or sum(1 for x in row if x != 0) != 1:
                return None
            found.append(at[0])
        return tuple(found)

    @cached_property
    def flips(self) -> tuple[int, ...] | None:
        """The signs of a diagonal R, else None."""
        if self.entries is None or any(i != j for i, (j, _) in enumerate(self.entries)):
            return None
        return tuple(e for _, e in self.entries)


def signed_permutation(entries: Sequence[tuple[int, int]]) -> Matrix:
    """The matrix whose row i has its entry e at j, (j, e) = entries[i]."""
    m = zeros(len(entries), len(entries))
    for i, (j, e) in enumerate(entries):
        m[i, j] = e
    return Matrix(m)


def symmetries(g: Expr, variables: Sequence[Symbol]) -> tuple[Symmetry, ...]:
    """Generators of the reflections and permutations that leave g alone up to a sign, each proved.

    Parameters
    ----------
    g : expression; symbols that are not among `variables` are constants
    variables : at most 6 standard normals

    Examples
    --------
    >>> from sympy import sign
    >>> from hermitex.symbols import z1, z2
    >>> for s in symmetries(sign(z1) - sign(z2), (z1, z2)):
    ...     print(s.how, s.sign)
    z1 -> -z1, z2 -> -z2 -1
    z1 -> z2, z2 -> z1 -1
    """
    return _symmetries(g, tuple(variables))


@kept(256)
def _symmetries(g: Expr, variables: tuple[Symbol, ...]) -> tuple[Symmetry, ...]:
    flips = sign_flips(g, variables)
    return (*flips, *_permuted(g, variables, flips), *_reflected(g, variables))


def sign_flips(g: Expr, variables: Sequence[Symbol]) -> tuple[Symmetry, ...]:
    """Generators of the group of s in {+-1}^r with g(s z) = +-g(z).

    Examples
    --------
    >>> from sympy import sign
    >>> from hermitex.symbols import z1, z2, z3
    >>> [(s.flips, s.sign) for s in sign_flips(z1**2 + sign(z1*z2*z3), (z1, z2, z3))]
    [((1, -1, -1), 1), ((-1, 1, -1), 1)]
    """
    values = _Values(g, tuple(variables))
    found: list[Symmetry] = []
    reached = {tuple([1]*len(variables))}
    for s in sorted(product((1, -1), repeat=len(variables)), key=lambda s: s.count(-1)):
        if s in reached:
            continue
        symmetry = symmetry_of(g, variables, Matrix.diag(*s), values=values)
        if symmetry is not None:
            found.append(symmetry)
            reached |= {tuple(a*b for a, b in zip(s, t, strict=True)) for t in reached}
    return tuple(found)


def flip_group(g: Expr, variables: Sequence[Symbol]) -> set[tuple[int, ...]]:
    """Every s in {+-1}^r with g(s z) = g(z)."""
    group = {(tuple([1]*len(variables)), 1)}
    for s in sign_flips(g, variables):
        if s.flips is not None:
            group |= {(tuple(a*b for a, b in zip(s.flips, f, strict=True)), s.sign*e) for f, e in group}
    return {f for f, e in group if e == 1}


def symmetry_of(g: Expr, variables: Sequence[Symbol], R: Matrix, *, values: _Values | None = None) -> Symmetry | None:
    """The symmetry g(R z) = +-g(z) if it is proved for this orthogonal matrix, else None."""
    checkpoint("looking for symmetries")
    variables = tuple(variables)
    plausible = (values or _Values(g, variables)).signs(R)
    if not plausible:
        return None
    swap = {v: Add(*(R[i, j]*w for j, w in enumerate(variables))) for i, v in enumerate(variables)}
    moved = g.xreplace(swap)
    for eps in plausible:
        if moved == eps*g or identically_zero(expand(moved) - eps*expand(g) if g.is_polynomial(*variables)
                                              else moved - eps*g, variables):
            return Symmetry(R, eps, variables)
    return None


def _program(g: Expr, variables: Sequence[Symbol]) -> Any:
    """g as a function of numbers."""
    if g.is_polynomial(*variables) and all(a.is_Rational or a in variables for a in g.atoms()):
        terms = [(float(c), powers) for powers, c in Poly(g, *variables).terms()]
        return lambda *at: sum(c*prod(v**k for v, k in zip(at, powers, strict=True)) for c, powers in terms)
    from hermitex.numbers.program import Program  # with NumPy, which polynomials do not need

    return Program(g, variables).digits


class _Values:
    """g at a few generic points, to reject most candidates for a symmetry without algebra."""

    def __init__(self, g: Expr, variables: tuple[Symbol, ...]) -> None:
        self.points = [[((37*k + 29*i + 11) % 83)/31 - 1.3 + i/17 for i in range(len(variables))] for k in range(4)]
        try:
            self.program: Any = _program(g, variables) if g.free_symbols <= set(variables) else None
            self.base = [self.program(*map(mpf, p)) for p in self.points] if self.program else []
        except (HermitexError, ArithmeticError, ValueError, TypeError):
            self.program = None

    def signs(self, R: Matrix) -> list[int]:
        """The signs eps for which g(R z) = eps g(z) at every point, nearly; both where nothing is known."""
        if self.program is None:
            return [1, -1]
        rows = [[float(x) for x in row] for row in R.tolist()]
        left = [1, -1]
        for point, base in zip(self.points, self.base, strict=True):
            moved = [mpf(sum(a*b for a, b in zip(row, point, strict=True))) for row in rows]
            try:
                value = self.program(*moved)
            except (HermitexError, ArithmeticError, ValueError, TypeError):
                return left
            left = [eps for eps in left if abs(value - eps*base) <= 1e-9*(abs(value) + abs(base) + 1e-9)]
            if not left:
                break
        return left


    def centre(self, flip: Sequence[int]) -> Expr | None:
        """A short rational c with g(s z) + g(z) = 2 c at every point, nearly."""
        if self.program is None or -1 not in flip:
            return None
        sums = []
        for point, base in zip(self.points, self.base, strict=True):
            try:
                sums.append(self.program(*(mpf(e*x) for e, x in zip(flip, point, strict=True))) + base)
            except (HermitexError, ArithmeticError, ValueError, TypeError):
                return None
            if abs(sums[-1] - sums[0]) > 1e-9*(1 + abs(base)):
                return None
        c = Rational(round(60*float(sums[0])), 120)
        return c if c != 0 and abs(2*float(c) - float(sums[0])) < 1e-9 else None


def centre_target(g: Expr, variables: Sequence[Symbol]) -> Expr:
    """g - c where a sign flip takes g to 2 c - g, c guessed from values and then proved; else g.

    Examples
    --------
    >>> from sympy import floor
    >>> from hermitex.symbols import z1, z2
    >>> centre_target(floor(z1*z2), (z1, z2)), centre_target(z1 + z2**2, (z1, z2))
    (floor(z1*z2) + 1/2, z1 + z2**2)
    """
    variables = tuple(variables)
    values = _Values(g, variables)
    for s in sorted(product((1, -1), repeat=len(variables)), key=lambda s: s.count(-1)):
        c = values.centre(s)
        found = None if c is None else symmetry_of(g - c, variables, Matrix.diag(*s))
        if found is not None and found.sign == -1:  # an even g that is constant at the points is not centred
            return g - c
    return g


# -- permutations ------------------------------------------------------------------------------------------------------
def _permuted(g: Expr, variables: tuple[Symbol, ...], flips: Sequence[Symmetry]) -> Iterator[Symmetry]:
    """Generators of the signed permutations of g, beyond its sign flips."""
    values = _Values(g, variables)
    orders: list[tuple[int, ...]] = []
    reached = {tuple(range(len(variables)))}
    for order in _orders(len(variables)):
        if order in reached:
            continue
        for signs in _cosets(len(variables), flips):
            R = _permutation(order, signs)
            found = symmetry_of(g, variables, R, values=values)
            if found is not None:
                yield found
                orders.append(order)
                reached = _closed(orders)
                break


def _orders(r: int) -> Iterator[tuple[int, ...]]:
    """Transpositions first, then what is left: every permutation of a few variables, pairs of swaps of more."""
    swaps = [_swapped(range(r), i, j) for i in range(r) for j in range(i)]
    yield from swaps
    if r <= _DENSE:
        yield from permutations(range(r))
    else:
        yield from {_swapped(s, i, j) for s in swaps for i in range(r) for j in range(i)}


def _swapped(order: Sequence[int], i: int, j: int) -> tuple[int, ...]:
    out = list(order)
    out[i], out[j] = out[j], out[i]
    return tuple(out)


def _cosets(r: int, flips: Sequence[Symmetry]) -> Iterator[tuple[int, ...]]:
    """One sign pattern for each coset of the flips that g has."""
    group = {tuple([1]*r)}
    for s in flips:
        f = s.flips or tuple([1]*r)
        group |= {tuple(a*b for a, b in zip(f, t, strict=True)) for t in group}
    seen: set[tuple[int, ...]] = set()
    for signs in sorted(product((1, -1), repeat=r), key=lambda s: s.count(-1)):
        if signs not in seen:
            seen |= {tuple(a*b for a, b in zip(signs, t, strict=True)) for t in group}
            yield signs


def _permutation(order: Sequence[int], signs: Sequence[int]) -> Matrix:
    return signed_permutation(tuple(zip(order, signs, strict=True)))


def _closed(orders: Sequence[tuple[int, ...]]) -> set[tuple[int, ...]]:
    """The group that some permutations generate."""
    group = fresh = {tuple(range(len(orders[0])))}
    while fresh:
        fresh = {tuple(a[i] for i in b) for a in fresh for b in orders} - group
        group = group | fresh
    return group


# -- reflections -------------------------------------------------------------------------------------------------------
def _reflected(g: Expr, variables: tuple[Symbol, ...]) -> Iterator[Symmetry]:
    """Reflections z - 2 (l.z) l/|l|^2 in the linear forms of g, in sums and differences of two of them, and of regular polygons.

    Two forms of different lengths, sign(z1) and sign(z1 + z2), are swapped by the mirror between their unit normals. With the
    flips of z1 or z2 the mirror at pi/m turns the plane by 2 pi/m: Re (z1 + i z2)^3 and its like.
    """
    r = len(variables)
    regular = (3, 8)  # of 4 they are permutations with signs, of 6 those of 3 and z -> -z
    polygons = [[cos(pi/m) if k == i else sin(pi/m) if k == j else S.Zero for k in range(r)]
                for i, j in combinations(range(r), 2) for m in regular] if r <= _DENSE else []
    forms = [row for row in linear_forms(g, variables)][:8]
    size = [tidy(Add(*(x**2 for x in row))) for row in forms]
    both = [[tidy(a + s*b*ratio) for a, b in zip(x, forms[j], strict=True)] for i, x in enumerate(forms) for j in range(i)
            for ratio in dict.fromkeys((S.One, sqrt(size[i]/size[j]))) for s in (1, -1)]
    yield from find_reflections(g, variables, [row for row in (*forms, *both, *polygons) if not _plain_swap(row)])


def find_reflections(g: Expr, variables: Sequence[Symbol], normals: Sequence[Sequence[Expr]]) -> Iterator[Symmetry]:
    """The reflections z - 2 (l.z) l/|l|^2 with l among the normals that leave g alone up to a sign, sign flips apart."""
    variables = tuple(variables)
    values, seen = _Values(g, variables), set()
    for row in normals:
        length = tidy(Add(*(x**2 for x in row)))
        if sum(1 for x in row if x != 0) < 2 or length == 0:
            continue
        across = Matrix([row])
        R = Matrix((eye(len(row)) - across.T*across*(2/length)).applyfunc(lambda x: powsimp(expand(tidy(x)))))
        if R in seen:
            continue
        seen.add(R)
        found = symmetry_of(g, variables, R, values=values)
        if found is not None:
            yield found


def _plain_swap(row: Sequence[Expr]) -> bool:
    """z_i -> +-z_j is among the permutations."""
    inside = [abs(x) for x in row if x != S.Zero]
    return len(inside) == 2 and inside[0] == inside[1]
