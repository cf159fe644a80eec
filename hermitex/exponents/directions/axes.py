"""g(z) = sum_j g_j(V_j z), the V_j orthogonal to each other: the axes along which a polynomial is short.

A symmetric X commutes with every coefficient of the Hessian exactly if its eigenspaces split g into a sum. Matrices that turn
with g (contractions of its Hermite tensors) have axes of g among their eigenvectors if it is not a sum. All of it is linear
algebra over the field of the coefficients.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import factorial, prod
from typing import Any

from sympy import Add, Expr, Mul, Poly, Symbol, sqrt
from sympy.polys.matrices import DomainMatrix

from hermitex.symbolic.budget import checkpoint, kept
from hermitex.symbolic.series.coefficient_fields import hermite_form, in_field
from hermitex.symbolic.subspaces import Matrix, matrix, span, tidy

Rows = list[list[Any]]


@kept(256)
def shorter_axes(g: Expr, variables: tuple[Symbol, ...]) -> tuple[Matrix, Expr] | None:
    """(B, inner) with g(z) = inner(B z) shorter than g, the rows of B orthonormal; None if nothing shorter was found.

    Parameters
    ----------
    g : a polynomial over rationals or algebraic numbers; anything else is None
    variables : two or more standard normals, which inner is written in as well

    Examples
    --------
    >>> from sympy import expand
    >>> from hermitex.symbols import z1, z2
    >>> shorter_axes(expand((3*z1 + 4*z2)**3/125 + (4*z1 - 3*z2)**2/25), (z1, z2))
    (Matrix([
    [4/5, -3/5],
    [3/5,  4/5]]), z1**2 + z2**3)
    """
    p = in_field(g, variables)
    if p is None or len(variables) < 2 or p.is_ground:
        return None
    P, best, seen = hermite_form(p), None, set()
    size = len(p) + len(P)
    for V in _candidates(P):
        if V in seen or all(sum(1 for x in row if x != 0) == 1 for row in V.tolist()):
            continue
        seen.add(V)
        inner = _turned(p, V)
        length = len(inner) + len(_turned(P, V))
        if length < size:
            best, size = (V, inner), length
    if best is None:
        return None
    V, inner = best
    lengths = [sqrt(_square(row)) for row in V.tolist()]
    K = p.ring.domain
    terms = (tidy(K.to_sympy(c)*Mul(*(L**n for L, n in zip(lengths, m, strict=True))))
             * Mul(*(x**n for x, n in zip(variables, m, strict=True))) for m, c in inner.terms())
    B = matrix([[tidy(x/L) for x in row] for row, L in zip(V.tolist(), lengths, strict=True)], len(variables))
    return B, Add(*terms)


def _turned(p: Any, V: Matrix) -> Any:
    """p at z = sum_i u_i V_i/|V_i|^2: over the coordinates u_i = V_i z, which need no roots."""
    K, gens = p.ring.domain, p.ring.gens
    sizes = [K.from_sympy(_square(row)) for row in V.tolist()]
    swap = [(x, sum((u.mul_ground(K.quo(K.from_sympy(V[i, j]), sizes[i])) for i, u in enumerate(gens)), p.ring.zero))
            for j, x in enumerate(gens)]
    return p.compose(swap)


def _square(row: Sequence[Expr]) -> Expr:
    return tidy(Add(*(x*x for x in row)))


# -- bases that may be axes --------------------------------------------------------------------------------------------
def _candidates(P: Any) -> Iterator[Matrix]:
    """Orthogonal rows."""
    split, turning = list(_splitting(P)), list(_contractions(P))
    for family in ([*split, *turning], turning):
        if family:
            checkpoint("looking for the axes of a polynomial")
            yield _blocks(family, len(P.ring.gens), P.ring.domain)


def _splitting(P: Any) -> Iterator[Rows]:
    """The symmetric X that commute with every coefficient of the Hessian of P, a basis of them."""
    r, K = len(P.ring.gens), P.ring.domain
    places = [(i, j) for i in range(r) for j in range(i, r)]
    equations = []
    for H in _hessians(P):
        for a in range(r):
            for b in range(a + 1, r):  # X H - H X is antisymmetric
                row = [K.zero]*len(places)
                for n, (i, j) in enumerate(places):
                    for s, t in {(i, j), (j, i)}:
                        if s == a:
                            row[n] += H[t][b]
                        if t == b:
                            row[n] -= H[a][s]
                equations.append(row)
    if not equations:
        return
    for weights in _null_space(equations, len(places), K):
        X = [[K.zero]*r for _ in range(r)]
        for (i, j), w in zip(places, weights, strict=True):
            X[i][j] = X[j][i] = w
        if any(X[i][j] for i, j in places if i != j) or any(X[i][i] != X[0][0] for i in range(r)):
            yield X


def _hessians(P: Any) -> list[Rows]:
    """The matrix of second derivatives, monomial by monomial."""
    gens = P.ring.gens
    second = [[P.diff(x).diff(y) for y in gens] for x in gens]
    monomials = dict.fromkeys(m for line in second for e in line for m in e)
    return [[[e.get(m, P.ring.domain.zero) for e in line] for line in second] for m in monomials]


def _contractions(P: Any) -> Iterator[Rows]:
    """Matrices that turn with P: C_n contracted with itself over all slots but one, or over pairs of its own slots."""
    r, K = len(P.ring.gens), P.ring.domain
    for n in range(1, max(map(sum, P)) + 1):
        part = P.ring.from_dict({m: c for m, c in P.items() if sum(m) == n})
        if not part:
            continue
        slopes = [part.diff(x) for x in P.ring.gens]
        if n == 2:
            yield [[s.coeff(x) for x in P.ring.gens] for s in slopes]
        weight = {m: K(prod(map(factorial, m))) for s in slopes for m in s}
        yield [[sum((weight[m]*c*t.get(m, K.zero) for m, c in s.items()), K.zero) for t in slopes] for s in slopes]
        if n > 2 and r <= 4:  # the trace over pairs of slots, down to a vector or a matrix
            while max(map(sum, part), default=0) > 2:
                part = sum((part.diff(x).diff(x) for x in P.ring.gens), P.ring.zero)
            slopes = [part.diff(x) for x in P.ring.gens]
            if part and n % 2 == 0:
                yield [[s.coeff(x) for x in P.ring.gens] for s in slopes]
            elif part:
                v = [part.coeff(x) for x in P.ring.gens]
                yield [[a*b for b in v] for a in v]


# -- common eigenspaces ------------------------------------------------------------------------------------------------
def _blocks(family: Sequence[Rows], r: int, K: Any) -> Matrix:
    """Rows along the common eigenspaces of the matrices, each matrix passed over that mixes the spaces found before it."""
    out: Rows = []
    for V in _split(family, r, K, all_of_them=False) or []:
        out += span(matrix([[K.to_sympy(x) for x in row] for row in V], r)).tolist()
    return matrix(out, r)


def common_eigenspaces(family: Sequence[Rows], r: int, K: Any) -> list[Rows] | None:
    """The common eigenspaces of symmetric matrices over K; None if they do not commute, or an eigenvalue is not in K.

    Examples
    --------
    >>> from sympy import QQ
    >>> common_eigenspaces([[[QQ(0), QQ(1)], [QQ(1), QQ(0)]]], 2, QQ)
    [[[1, 1]], [[-1, 1]]]
    """
    return _split(family, r, K, all_of_them=True)


def _split(family: Sequence[Rows], r: int, K: Any, *, all_of_them: bool) -> list[Rows] | None:
    blocks: list[Rows] = [[[K.one if i == j else K.zero for j in range(r)] for i in range(r)]]
    for M in family:
        mixed = any(_mixes(a, M, b) for i, a in enumerate(blocks) for b in blocks[:i])
        finer = [] if mixed else [_eigenspaces(V, M, K) for V in blocks]
        if mixed or any(f is None for f in finer):
            if all_of_them:
                return None
            continue
        blocks = [b for f in finer for b in f or []]
        if len(blocks) == r and not all_of_them:
            break
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


def _null_space(rows: Rows, columns: int, K: Any) -> Rows:
    return DomainMatrix(rows, (len(rows), columns), K).nullspace().to_list()


