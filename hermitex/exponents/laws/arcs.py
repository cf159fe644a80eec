"""nu_a = E[He_a(z) 1{theta in arc}], theta the angle of two variables, for a label that is constant along every ray.

The angle is uniform and independent of r, E[r] = sqrt(pi/2), E[r^2] = 2. With t = z2/z1 = tan(theta) on each side s of
z1 = 0 the arcs end at jumps t_i, and the moments of an arc are differences of
  P: atan(t)/(2 pi),  E z1: s t/sqrt(1 + t^2)/sqrt(8 pi),  E z2: -s/sqrt(1 + t^2)/sqrt(8 pi),
  E He_2(z1) = -E He_2(z2): t/(1 + t^2)/(2 pi),  E z1 z2: t^2/(1 + t^2)/(2 pi).
"""

from __future__ import annotations

from collections.abc import Sequence

from sympy import Add, Dummy, Expr, Heaviside, Rational, S, Symbol, atan, oo, pi, sign, sqrt

from hermitex.errors import HermitexError
from hermitex.exponents.laws.density import Index
from hermitex.exponents.laws.discrete import Atoms, cleaned, collect
from hermitex.symbolic.pieces import Piece, pieces


def arcs(g: Expr, variables: Sequence[Symbol]) -> Atoms | None:
    """The labels of g with their exact moments, or None if g is not piecewise constant in the angle.

    Examples
    --------
    >>> from sympy import Abs
    >>> from hermitex.symbols import z1, z2
    >>> [(label, nu[()], nu[0, 0]) for label, nu in arcs(sign(Abs(z1) - Abs(z2)), (z1, z2))]
    [(-1, 1/2, -1/pi), (1, 1/2, 1/pi)]
    """
    if len(variables) != 2:
        return None
    sides = [(s, _along(g, variables, s)) for s in (1, -1)]
    classes: Atoms = []
    for s, found in sides:
        if found is None:
            return None
        for piece in found:
            low, high = _moments(piece.lo, s), _moments(piece.hi, s)
            collect(classes, piece.expr, {a: high[a] - low[a] for a in low})
    return cleaned(classes)


def _along(g: Expr, variables: Sequence[Symbol], s: int) -> Sequence[Piece] | None:
    """The label on the side s of z1 = 0 as steps of t = z2/z1; None if it depends on r, or is no step."""
    t, r = Dummy("t", real=True), Dummy("r", positive=True)
    label = g.xreplace({variables[0]: s*r, variables[1]: s*r*t})
    label = label.replace(Heaviside, lambda u, *_: (1 + sign(u))/2)
    label = label.replace(lambda e: isinstance(e, sign) and isinstance(e.args[0], Add), lambda e: sign(e.args[0].expand().factor()))
    if label.has(r):
        return None
    try:
        found = pieces(label, t)
    except HermitexError:
        return None
    return None if any(p.expr.has(t) for p in found) else found


def _moments(t: Expr, s: int) -> dict[Index, Expr]:
    if t in (oo, -oo):
        side = 1 if t is oo else -1
        angle, sine, cosine, double, square = side*pi/2, S(side), S.Zero, S.Zero, S.One
    else:
        root = sqrt(1 + t**2)
        angle, sine, cosine, double, square = atan(t), t/root, 1/root, t/(1 + t**2), t**2/(1 + t**2)
    mean = sqrt(Rational(1, 8)/pi)
    return {(): angle/(2*pi), (0,): s*mean*sine, (1,): -s*mean*cosine, (0, 0): double/(2*pi), (1, 1): -double/(2*pi),
            (0, 1): square/(2*pi)}
