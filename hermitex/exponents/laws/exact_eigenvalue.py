"""lambda_max(E[G (x) G]) in closed form, for a label that takes finitely many values with exact moments.

The matrix of F(M) = E[G M G] falls into blocks; a block of one or two rows is solved, of a larger one an eigenvector of
small rationals is guessed from numbers and verified exactly. Without a closed form it is a number of 25 digits.
"""

from __future__ import annotations

from itertools import combinations_with_replacement

from sympy import Expr, Matrix, Rational, S

from hermitex.exponents.laws.density import Index
from hermitex.exponents.laws.discrete import Atoms
from hermitex.exponents.laws.linearised import operator
from hermitex.symbolic.arithmetic import mp, mpf
from hermitex.symbolic.engine.rational_tidying import compact
from hermitex.symbolic.precise import evaluate


def exact_couplings(atoms: Atoms) -> dict[tuple[Index, Index], Expr]:
    """E[E[He_a|Y] E[He_b|Y]] = sum_y nu_a nu_b/nu_0."""
    found: dict[tuple[Index, Index], Expr] = {}
    for _, nu in atoms:
        present = [a for a in nu if a != ()]
        for a, b in combinations_with_replacement(sorted(present, key=lambda a: (len(a), a)), 2):
            if len(a) == len(b):
                found[a, b] = found.get((a, b), S.Zero) + nu[a] * nu[b] / nu[()]
    return {key: v for key, v in ((k, compact(v)) for k, v in found.items()) if v != 0}


def exact_largest(couplings: dict[tuple[Index, Index], Expr], variables: list[int]) -> Expr | None:
    """The largest eigenvalue of F(M) = E[G M G] in closed form, block by block; None if a block has none."""
    _, rows = operator(couplings, variables, S.Zero)
    matrix = Matrix(rows)
    values = [_top_of_block(matrix.extract(block, block)) for block in matrix.connected_components()]
    if any(v is None for v in values):
        return None
    return _largest(values) if values else S.Zero


def _largest(values: list[Expr]) -> Expr:
    return max(values, key=lambda v: evaluate(v, 30)) if len(values) > 1 else values[0]


def largest_of_exact(couplings: dict[tuple[Index, Index], Expr], variables: list[int]) -> mpf:
    """The largest eigenvalue of F to 25 digits, from exact couplings, where it has no closed form."""
    basis, rows = operator({key: evaluate(v, 40) for key, v in couplings.items()}, variables, mpf(0))
    with mp.workdps(40):
        size = [mpf(1) if i == j else mp.sqrt(2) for i, j in basis]
        found = mp.matrix([[x * a / b for x, b in zip(row, size, strict=True)] for row, a in zip(rows, size, strict=True)])
        return max(mp.eigsy((found + found.T) / 2, eigvals_only=True))


def exact_largest_of_two(atoms: Atoms, variables: list[int]) -> Expr | None:
    """Two labels: G = +-H/P, so F(M) = (1/P_1 + 1/P_2) H M H and the eigenvalue is that times the square of H's largest."""
    if len(atoms) != 2:
        return None
    nu = atoms[0][1]
    h = Matrix(len(variables), len(variables), lambda i, j: nu.get(tuple(sorted((variables[i], variables[j]))), S.Zero))
    found = [_spectral_radius(h.extract(block, block)) for block in h.connected_components()]
    tops = [t for t in found if t is not None]
    if len(tops) < len(found):
        return None
    radius = _largest(tops)
    return compact(radius**2 * sum(1 / nu[()] for _, nu in atoms))


def _spectral_radius(h: Matrix) -> Expr | None:
    from sympy import Abs

    if h.rows == 1:
        return Abs(h[0, 0])
    if h.rows == 2:
        (a, b), (_, d) = h.tolist()
        return compact((Abs(a + d) + ((a - d) ** 2 + 4 * b**2) ** Rational(1, 2)) / 2)
    return None


def _top_of_block(block: Matrix) -> Expr | None:
    if block.rows == 1:
        return compact(block[0, 0])
    guess = _simple_eigenvalue(block)
    if guess is not None:
        return guess
    if block.rows == 2:
        (a, b), (c, d) = block.tolist()
        root = compact((a - d) ** 2 + 4 * b * c)
        return compact((a + d + root ** Rational(1, 2)) / 2)
    return None


def _simple_eigenvalue(block: Matrix) -> Expr | None:
    """An eigenvalue that belongs to a vector of small rationals, if the numerically largest one does: verified exactly."""
    import numpy as np

    numeric = np.array([[float(evaluate(v, 25)) if v != 0 else 0.0 for v in row] for row in block.tolist()])
    values, vectors = np.linalg.eig(numeric)
    top = int(np.argmax(values.real))
    v = vectors[:, top].real
    v = v / v[np.argmax(np.abs(v))]
    rational = Matrix([Rational(round(float(x) * 12), 12) for x in v])
    if any(abs(float(r) - float(x)) > 1e-9 for r, x in zip(rational, v, strict=True)):
        return None
    first = next(i for i in range(block.rows) if rational[i] != 0)
    moved = block * rational
    value = compact(moved[first] / rational[first])
    wrong = [compact(moved[i] - value * rational[i]) for i in range(block.rows)]
    return value if all(w == 0 or w.simplify() == 0 for w in wrong) else None
