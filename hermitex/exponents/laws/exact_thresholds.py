"""1/alpha_c = lambda_max(E[G (x) G]) in closed form: finitely many labels with exact moments, and labels of one variable.

The matrix of F(M) = E[G M G] falls into blocks; a block of one or two rows is solved, of a larger one an eigenvector of
small rationals is guessed from numbers and verified exactly. What has no closed form is a number of 25 digits. A label of one
variable has 1/alpha_c = E[(E[z^2|Y] - 1)^2] = 2 lambda_2^2: exact where u is even and injective in |z|, or where E[z^2|Y] is a
polynomial of a count. Source: Troiani et al. (2024).
"""

from __future__ import annotations

from itertools import combinations_with_replacement

from sympy import Dummy, Expr, Matrix, Poly, Rational, S, Symbol, exp, functions, gammasimp, powdenest, powsimp

from hermitex.errors import HermitexError
from hermitex.exponents.channels import Channel, NamedChannel
from hermitex.exponents.labels.monotone_labels import injective_in_modulus
from hermitex.exponents.laws.density import Index
from hermitex.exponents.laws.discrete import Atoms
from hermitex.exponents.laws.linearised import operator
from hermitex.exponents.laws.value import Value
from hermitex.symbolic.arithmetic import mp, mpf
from hermitex.symbolic.engine.rational_tidying import compact
from hermitex.symbolic.gaussian import E
from hermitex.symbolic.hermite_calculus import He
from hermitex.symbolic.integrals import closed_form
from hermitex.symbolic.parity import parity
from hermitex.symbolic.pieces import pieces
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


# -- one variable ------------------------------------------------------------------------------------------------------
def one_variable(g: Expr, law: NamedChannel | Channel, x: Symbol) -> Value | None:
    """The threshold of a label of one standard normal, E[z|Y] = 0; None where it has no formula.

    Parameters: `g` as it is after what is injective was peeled off; it takes infinitely many values.
    """
    exact = None
    if law.name == "poisson":
        exact = _poisson(g, x)
    elif law.name == "deterministic":
        exact = S.Half if parity(g, x) == 1 and injective_in_modulus(g, x) else None
    return None if exact is None else Value(evaluate(exact, 25), exact, mpf(0), method="one variable: closed form")


def _poisson(g: Expr, x: Symbol) -> Expr | None:
    """E[z^2|y] - 1 = R(y), a polynomial of the count: then E[R(Y)^2] needs moments only, E[Y^n|z] = sum S(n, j) g^j."""
    # A count as a real number: |z|^(2y) is then a power that the engine integrates; the factorial cancels in the ratio.
    y, t = Dummy("y", positive=True), Dummy("t", positive=True)
    if parity(g, x) != 1 or any(p.expr == 0 for p in pieces(g, x)):  # 0^y is not 0 at the count 0
        return None
    half = g.xreplace({x: t})
    law = powsimp(powdenest((exp(-half) * half**y).expand(), force=True)).xreplace({t: functions.Abs(x)})
    try:
        ratio = gammasimp(closed_form(E(law * He(2, x), x)) / closed_form(E(law, x))).simplify()
        if not ratio.is_polynomial(y):
            return None
        square = Poly(ratio**2, y)
        moments = sum(c * sum(functions.combinatorial.numbers.stirling(n, j) * g**j for j in range(n + 1))
                      for (n,), c in square.terms())
        return compact(1 / closed_form(E(moments, x)))
    except HermitexError:
        return None
