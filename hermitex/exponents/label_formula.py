"""m(y) = E[z z^T|y] as a formula of the label y, where there is one.

Without noise and in one variable it is sum z_i^2 w_i/sum w_i over the points z_i with u(z_i) = y, w_i = phi(z_i)/|u'(z_i)|; a
plateau has the mean of z^2 over it. With noise it is a quotient of two Gaussian averages of P(y|z).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from sympy import (
    Abs,
    Add,
    And,
    Eq,
    Expr,
    Matrix,
    Mul,
    Piecewise,
    Pow,
    S,
    Symbol,
    asinh,
    atan,
    atanh,
    besselk,
    cancel,
    erf,
    erfinv,
    exp,
    eye,
    log,
    nan,
    oo,
    sign,
    sinh,
    sqrt,
    tan,
    tanh,
)

from hermitex.exponents.channels import Channel, NamedChannel
from hermitex.exponents.labels.label_levels import indicator_moment
from hermitex.exponents.laws.density import array_function
from hermitex.exponents.laws.discrete import Atoms
from hermitex.symbolic.breaks.order import ordered
from hermitex.symbolic.budget import unless_refused
from hermitex.symbolic.engine.rational_tidying import compact
from hermitex.symbolic.gaussian import E, Expectation
from hermitex.symbolic.integrals import closed_form
from hermitex.symbolic.pieces import Piece, pieces
from hermitex.symbolic.precise import evaluate
from hermitex.symbolic.series.polynomials import He

Y = Symbol("y", real=True)
_INVERSES = {exp: log, log: exp, tanh: atanh, atan: tan, sinh: asinh, asinh: sinh, erf: erfinv}


def second_moment(g: Expr, law: NamedChannel | Channel, variables: Sequence[Symbol], exact: Atoms | None) -> Matrix | None:
    """m(y) over the variables, a matrix of formulas in y; None where there is none. `exact`: the masses of finitely many labels.

    Examples
    --------
    >>> from hermitex.exponents.channels import channel
    >>> from hermitex.symbols import z, z1, z2
    >>> second_moment(Abs(z), channel(), (z,), None)
    Matrix([[y**2]])
    >>> second_moment(z1*z2, channel(), (z1, z2), None)[0, 0]
    Abs(y)*besselk(1, Abs(y))/besselk(0, Abs(y))
    """
    if exact is not None:
        return _of_atoms(exact, len(variables))
    if law.name == "deterministic" and len(variables) == 1:
        found = unless_refused(lambda: _by_preimages(g, variables[0]))
    elif law.name == "deterministic" and len(variables) == 2:
        return _of_a_product(g, variables)
    else:
        found = unless_refused(lambda: _by_averages(g, law, variables)) if len(variables) == 1 else None
    longest = 150  # operations: a longer formula explains nothing
    return None if found is None or found.has(Expectation) or found.count_ops() > longest else Matrix([[found]])


def _of_atoms(exact: Atoms, r: int) -> Matrix | None:
    """Each entry by the labels that have another value than a label of no information has."""
    if any(v.has(Expectation) for _, nu in exact for v in nu.values()):
        return None
    values = [(label, [[compact(S(int(i == j)) + nu.get((min(i, j), max(i, j)), S.Zero)/nu[()]) for j in range(r)]
                       for i in range(r)]) for label, nu in exact]
    return Matrix(r, r, lambda i, j: _piecewise([(v[i][j], Eq(Y, label)) for label, v in values]))


def _piecewise(rows: list[tuple[Expr, Expr]]) -> Expr:
    """One formula for all labels where they agree."""
    return rows[0][0] if len({v for v, _ in rows}) == 1 else Piecewise(*rows, (nan, True))


def _of_a_product(g: Expr, variables: Sequence[Symbol]) -> Matrix | None:
    """y = F(z1 z2): E[z1^2|w] = |w| K_1(|w|)/K_0(|w|) = E[z2^2|w], E[z1 z2|w] = w = F^-1(y)."""
    w = Symbol("w", real=True)
    inside = g.subs(variables[0]*variables[1], w)
    found = _inverted(inside, w, Y) if not inside.has(*variables) else []
    if len(found) != 1:
        return None
    label = found[0]
    diagonal = Abs(label)*besselk(1, Abs(label))/besselk(0, Abs(label))
    return Matrix([[diagonal, label], [label, diagonal]])


# -- one variable, no noise ---------------------------------------------------------------------------------------------
class _Preimage(NamedTuple):
    """z(y) of one branch, and the branch as a function on its piece."""

    point: Expr
    piece: Piece


def _by_preimages(u: Expr, x: Symbol) -> Expr | None:
    found: list[_Preimage] = []
    ends: set[Expr] = set()
    plateaus: dict[Expr, list[Piece]] = {}
    for piece in pieces(u, x):
        if not piece.expr.has(x):
            plateaus.setdefault(piece.expr, []).append(piece)
            continue
        inverse = _inverted(piece.expr, x, Y)
        if not inverse:
            return None
        found += [_Preimage(p, piece) for p in inverse]
        ends |= {piece.expr.subs(x, end) for end in (piece.lo, piece.hi)} | _turning_labels(piece.expr, x)
    if any(e.free_symbols or e.has(nan) or not e.is_extended_real for e in ends):
        return None
    rows = [(compact(indicator_moment(p, 2)/indicator_moment(p, 0) + 1), Eq(Y, c)) for c, p in plateaus.items()]
    labels = sorted((e for e in ends if e.is_infinite), key=lambda e: e is oo)
    labels = [*labels[:1], *ordered([e for e in ends if e.is_finite]), *labels[1:]] if -oo in ends else [
        *ordered([e for e in ends if e.is_finite]), *labels]
    open_rows = []
    for low, high in pairwise(labels):
        active = [p for p in found if _is_active(p, x, low, high)]
        if active:
            open_rows.append((_mean_square(active, x), And(low < Y, high > Y)))
    if len({v for v, _ in open_rows}) == 1 and not rows:
        return open_rows[0][0]
    return Piecewise(*rows, *open_rows, (nan, True)) if open_rows else None


def _inverted(u: Expr, x: Symbol, y: Expr) -> list[Expr]:
    """The points x(y) with u(x) = y, one for each branch, where x enters u once; [] where it enters otherwise."""
    if u == x:
        return [y]
    if isinstance(u, Add | Mul):
        rest, mine = u.as_independent(x, as_Add=isinstance(u, Add))
        return [] if isinstance(mine, u.func) else _inverted(mine, x, y - rest if isinstance(u, Add) else y/rest)
    if isinstance(u, Abs):
        return [*_inverted(u.args[0], x, y), *_inverted(u.args[0], x, -y)]
    if isinstance(u, Pow) and not u.exp.has(x) and u.exp.is_Rational:
        if u.exp.p % 2 == 0:
            root = sqrt(y) if abs(u.exp) == 2 and u.exp > 0 else Abs(y)**(1/u.exp)
            return [*_inverted(u.base, x, root), *_inverted(u.base, x, -root)]
        odd = u.exp.q == 1 and abs(u.exp.p) > 1
        return _inverted(u.base, x, sign(y)*Abs(y)**(1/u.exp) if odd else y**(1/u.exp))
    inverse = _INVERSES.get(u.func)
    return [] if inverse is None or len(u.args) > 1 else _inverted(u.args[0], x, inverse(y))


def _turning_labels(u: Expr, x: Symbol) -> set[Expr]:
    """The labels at which two branches of an even power meet."""
    return {u.xreplace({e: S.Zero}) for e in u.atoms(Pow, Abs)
            if e.has(x) and (isinstance(e, Abs) or (e.exp.is_Rational and e.exp.p % 2 == 0 and e.exp > 0))}


def _is_active(branch: _Preimage, x: Symbol, low: Expr, high: Expr) -> bool:
    """Does the branch reach the labels between two ends? It reaches all of them or none."""
    a, b = (float(evaluate(e, 20)) if e.is_finite else None for e in (low, high))
    at = (a + b)/2 if a is not None and b is not None else (a + 1 if a is not None else b - 1 if b is not None else 0.3)
    point = float(array_function(branch.point, Y)(at))
    ends = [float(evaluate(e, 20)) if e.is_finite else float(e) for e in (branch.piece.lo, branch.piece.hi)]
    if not ends[0] < point < ends[1]:
        return False
    return bool(abs(float(array_function(branch.piece.expr, x)(point)) - at) <= 1e-9*(1 + abs(at)))


def _mean_square(active: Sequence[_Preimage], x: Symbol) -> Expr:
    weights: dict[Expr, Expr] = {}  # by z^2
    for p in active:
        square = cancel(p.point**2)
        square = square.xreplace({e**2: S.One for e in square.atoms(sign)})
        steep = Abs(p.piece.expr.diff(x).xreplace({x: p.point}))
        weights[square] = weights.get(square, S.Zero) + (exp(-square/2)/steep).simplify()
    if len(weights) == 1:
        return next(iter(weights))
    return Add(*(w*square for square, w in weights.items()))/Add(*weights.values())


# -- one variable, with noise -------------------------------------------------------------------------------------------
def _by_averages(g: Expr, law: NamedChannel | Channel, variables: Sequence[Symbol]) -> Expr | None:
    p, y = _density(g, law)
    if p is None:
        return None
    x = variables[0]
    ratio = closed_form(E(p*He(2, x), x))/closed_form(E(p, x))
    return (1 + ratio.simplify()).xreplace({y: Y})


def _density(g: Expr, law: NamedChannel | Channel) -> tuple[Expr | None, Symbol]:
    """P(y|z) up to a factor that does not depend on z."""
    count = Symbol("y", positive=True)  # a power |z|^(2 y) is integrated then
    if isinstance(law, Channel):
        return law.p.xreplace({law.y: count} if law.support == "integers" else {}), count if law.support == "integers" else law.y
    if law.name == "gaussian":
        return exp(-(Y - g)**2/(2*S(law.parameter))), Y
    return (exp(-g)*Abs(g)**count if law.name == "poisson" else None), count


def optimal_map(m: Matrix) -> Matrix:
    """T* = 1 - m^-1, label by label where m is given so."""
    if m.rows == 1:
        return Matrix([[_over_pieces(m[0, 0], lambda v: 1 - 1/v)]])
    rows = m[0, 0].args if isinstance(m[0, 0], Piecewise) else next((e.args for e in m if isinstance(e, Piecewise)), None)
    if rows is None:
        return eye(m.rows) - m.inv()
    found = []
    for n, (_, condition) in enumerate(rows[:-1]):
        at = m.applyfunc(lambda e, n=n: e.args[n][0] if isinstance(e, Piecewise) else e)
        found.append(((eye(m.rows) - at.inv()).applyfunc(compact), condition))
    return Matrix(m.rows, m.cols, lambda i, j: _piecewise([(t[i, j], c) for t, c in found]))


def _over_pieces(e: Expr, f) -> Expr:  # type: ignore[no-untyped-def]
    return Piecewise(*(((f(v) if v is not nan else nan), c) for v, c in e.args)) if isinstance(e, Piecewise) else f(e)
