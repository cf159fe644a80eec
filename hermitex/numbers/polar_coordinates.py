"""E f(q(z)) = int dt int r dr |det A| f(r^2) phi(c + A r (cos t, sin t)) for q = |A^-1 (z - c)|^2 in two variables.

A root, a logarithm or a pole of q is singular at the point c alone; in polar coordinates about it the integrand is smooth.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sympy import Dummy, Expr, Matrix, Poly, Symbol, cos, exp, pi, sin, sqrt

from hermitex.numbers.moving_breaks import BreakMarks


class Polar(NamedTuple):
    """An ordinary integrand in (angle, radius) over a box."""

    body: Expr
    variables: tuple[Symbol, Symbol]
    box: tuple[NDArray[np.float64], NDArray[np.float64]]


def in_polar(body: Expr, variables: Sequence[Symbol], found: BreakMarks, reach: float) -> Polar | None:
    """The integral over |z| < reach in polar coordinates about the first singular point; None where no such form is singular.

    Examples
    --------
    >>> from sympy import sqrt
    >>> from hermitex.numbers.moving_breaks import marks
    >>> from hermitex.numbers.program import Program
    >>> from hermitex.symbols import z1, z2
    >>> f = sqrt((z1 + 2)**2 + z2**2)
    >>> in_polar(f, (z1, z2), marks(Program(f, (z1, z2))), 9.0).body
    _r**2*exp(-_r**2*sin(_t)**2/2 - (_r*cos(_t) - 2)**2/2)/(2*pi)
    """
    for q in sorted(found.singular, key=str):
        place = _place(q, variables)
        if place is not None:
            c, A = place
            t, r = Dummy("t", real=True), Dummy("r", nonnegative=True)
            at = c + A*Matrix([r*cos(t), r*sin(t)])
            inside = _substituted(body, dict(zip(variables, at, strict=True)), q, r**2, variables)
            weight = r*abs(A.det())*exp(-(at[0]**2 + at[1]**2)/2)/(2*pi)
            far = (reach + float(c.norm()))*float(A.inv().norm())
            return Polar(inside*weight, (t, r), (np.array([-np.pi, 0.0]), np.array([np.pi, far])))
    return None


def _place(q: Expr, variables: Sequence[Symbol]) -> tuple[Matrix, Matrix] | None:
    """(c, A) with q = |A^-1 (z - c)|^2, for a polynomial of degree 2 that vanishes at c alone."""
    if not q.is_polynomial(*variables) or Poly(q, *variables).total_degree() != 2 or not all(q.has(v) for v in variables):
        return None
    H = Matrix(2, 2, lambda i, j: q.diff(variables[i]).diff(variables[j])/2)
    if not (H[0, 0].is_positive and H.det().is_positive):
        return None
    slope = Matrix([q.diff(v).xreplace(dict.fromkeys(variables, 0)) for v in variables])
    c = -H.inv()*slope/2
    if q.xreplace(dict(zip(variables, c, strict=True))).expand() != 0:
        return None
    lower = sqrt(H[0, 0])
    upper = Matrix([[lower, H[0, 1]/lower], [0, sqrt(H.det()/H[0, 0])]])  # H = upper^T upper
    return c, upper.inv()


def _substituted(e: Any, swap: dict[Symbol, Expr], q: Expr, square: Expr, variables: Sequence[Symbol]) -> Any:
    """The expression at the new coordinates, with r^2 for multiples of q."""
    if not e.free_symbols.intersection(variables):
        return e
    if isinstance(e, Expr) and e.is_polynomial(*variables):
        ratio = (Poly(e, *variables).LC()/Poly(q, *variables).LC())
        if (e - ratio*q).expand().free_symbols.isdisjoint(variables):
            return ratio*square + (e - ratio*q).expand()
        return e.xreplace(swap)
    return e.func(*(_substituted(a, swap, q, square, variables) for a in e.args))


__all__ = ["Polar", "in_polar"]
