"""sum over the preimages of a label of He_k phi/|u'| = 0: the proof that E[T(u(z)) He_k(z)] = 0 for every T at once.

It proves lambda_k = 0 where no symmetry does, and with it c_k = 0 for every integrable function of such a label.
"""

from __future__ import annotations

from collections.abc import Iterator

from sympy import Dummy, Expr, S, Symbol, diff, exp, fraction, log, oo, powsimp, preorder_traversal

from hermitex.errors import HermitexError
from hermitex.exponents.label import peel
from hermitex.exponents.labels.levels import differs
from hermitex.symbolic.bounds.asymptotics import expand_at_infinity
from hermitex.symbolic.bounds.transseries import Undecided, limit_of
from hermitex.symbolic.budget import kept
from hermitex.symbolic.hermite import He
from hermitex.symbolic.pieces import pieces


@kept(256)
def branch_identity(u: Expr, x: Symbol, k: int) -> str | None:
    """Proof that E[T(u) He_k] = 0 for every T: u, or something u is a function of, has preimages that cancel; or None.

    Examples
    --------
    >>> from sympy import cos
    >>> from hermitex.symbols import z
    >>> branch_identity(cos(z**2*exp(-z**2)), z, 2) is None, branch_identity(z**2, z, 2) is None
    (False, True)
    """
    return next((found for v in _cores(u, x) if (found := _identity(peel(v, x), x, k))), None)


def _cores(u: Expr, x: Symbol) -> Iterator[Expr]:
    """u, and its sub-expressions v with u = F(v)."""
    yield u
    if u.count_ops() > 60:
        return
    w = Dummy("w", real=True)
    for v in preorder_traversal(u):
        if v not in (u, x) and isinstance(v, Expr) and v.has(x) and not u.xreplace({v: w}).has(x):
            yield v


def _identity(u: Expr, x: Symbol, k: int) -> str | None:
    """Proof that the preimages of almost every label cancel: sum over them of He_k phi / |u'| = 0.

    For an even u with u(0+) = u(oo) = b the preimages on z > 0 come with both orientations equally often. If
    He_k(z) exp(-z^2/2) / u'(z) = C (u(z) - b)^p on all of z > 0 their weights are +- the same function of the label.
    Source: Damian et al. (2024), z^2 exp(-z^2) at k = 2.
    """
    t = Dummy("t", positive=True)
    try:
        found = pieces(u, x, S.Zero, oo)
    except HermitexError:
        return None
    if len(found) != 1 or found[0].expr.count_ops() > 40 or k % 2:
        return None
    half = found[0].expr.xreplace({x: t})
    base = half.xreplace({t: S.Zero})
    try:
        end, _ = limit_of(expand_at_infinity(half, t))
    except Undecided:
        return None
    if not base.is_finite or end != base:
        return None
    above = half - base
    if not (above.is_positive or above.is_negative):
        return None
    weight = He(k, t) * exp(-(t**2) / 2) / diff(half, t)
    slope = diff(log(weight), t) / diff(log(abs(above)), t)
    if differs(slope, t):
        return None
    above_line, below_line = fraction(slope.together())  # multiplied out: SymPy 1.13 fails on factors whose sum is 0
    power = powsimp(above_line.expand() / below_line.expand()).simplify()
    if not power.is_Rational:
        return None
    size = abs(above) ** power
    constant = powsimp((weight / size).simplify(), force=True).simplify()
    if constant.has(t):
        return None
    size_text = f"|u - {base}|" if base else "|u|"
    return (f"identity on the branches of u = {u}: He_{k}(z) exp(-z**2/2)/u'(z) = {constant}*{size_text}**({power}) "
            "for z > 0, and the preimages of every label come in pairs of opposite orientation")
