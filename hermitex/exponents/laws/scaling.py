"""g(s^a1 z1, ..., s^ar zr) = s g(z) for s > 0, a_i >= 0: the scalings under which a label is homogeneous.

The weights are read off the tree: of a product the degrees add up, the terms of a sum or of an extremum share theirs,
and what stands under any other function has degree 0. These are linear equations for the a_i.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sympy import Abs, Add, Expr, Heaviside, Max, Min, Mul, Piecewise, Poly, Pow, S, Symbol, expand, sign
from sympy.core.relational import Relational

from hermitex.exponents.laws.sections import switch_arguments

_LARGEST = 8.0
_ZERO = 1e-9


def scaling(g: Expr, used: Sequence[Symbol]) -> np.ndarray | None:
    """The weights a_i, shape (variables,), all equal if they can be, as many positive as can be; None if there are none.

    Examples
    --------
    >>> from hermitex.symbols import z1, z2, z3
    >>> scaling(z1*z2 + Abs(z3)*z1, (z1, z2, z3)).tolist()
    [0.5, 0.5, 0.5]
    >>> scaling(z1**2 + z1*z2*z3, (z1, z2, z3)).tolist()
    [0.5, 0.25, 0.25]
    """
    zero: list[np.ndarray] = []
    degree = _degree(g, {x: n for n, x in enumerate(used)}, zero)
    if degree is None:
        return None
    total = float(degree.sum())
    if total > _ZERO and all(abs(e.sum()) < _ZERO for e in zero):
        return np.full(len(used), 1 / total)
    return _weights(degree, [e for e in zero if np.abs(e).max() > _ZERO])


def _degree(e: Expr, spots: dict[Symbol, int], zero: list[np.ndarray]) -> np.ndarray | None:
    """The degree of e as a linear form in the weights; forms that must vanish are appended to `zero`."""
    count = len(spots)
    if not any(x in spots for x in e.free_symbols):
        return np.zeros(count)
    if isinstance(e, Symbol):
        return np.eye(count)[spots[e]]
    if isinstance(e, Pow) and e.exp.is_Rational:
        base = _degree(e.base, spots, zero)
        return None if base is None else float(e.exp) * base
    if isinstance(e, Piecewise) and any(_degree(r.lhs - r.rhs, spots, zero) is None
                                        for _, c in e.args for r in c.atoms(Relational)):
        return None
    below = [_degree(a, spots, zero) for a in _values(e) if a != 0]
    if any(p is None for p in below):
        return None
    known = [p for p in below if p is not None]
    if isinstance(e, (Mul, Abs)):
        return np.sum(known, axis=0)
    if isinstance(e, (Add, Max, Min, Piecewise)):
        zero += [p - known[0] for p in known[1:]]
        return known[0]
    if not isinstance(e, (sign, Heaviside)):
        zero += known
    return np.zeros(count)


def _values(e: Expr) -> Sequence[Expr]:
    return [a for a, _ in e.args] if isinstance(e, Piecewise) else e.args  # type: ignore[return-value]


def _weights(degree: np.ndarray, zero: list[np.ndarray]) -> np.ndarray | None:
    """A point inside the solutions of degree . a = 1, zero . a = 0, a >= 0."""
    from scipy.optimize import linprog

    count = len(degree)
    rows = np.array([degree, *zero])
    right = np.array([1.0, *[0.0] * len(zero)])
    slack = linprog([*[0.0] * count, -1.0], A_eq=np.column_stack([rows, np.zeros(len(rows))]), b_eq=right,
                    A_ub=np.column_stack([-np.eye(count), np.ones(count)]), b_ub=np.zeros(count),
                    bounds=[(0, _LARGEST)] * (count + 1))
    if slack.status != 0:
        return None
    if slack.x[-1] > _ZERO:
        return np.round(slack.x[:-1], 12)
    corners = [linprog(-np.eye(count)[n], A_eq=rows, b_eq=right, bounds=[(0, _LARGEST)] * count).x for n in range(count)]
    found = np.mean(corners, axis=0)
    live = found > _ZERO
    even = live / max(float(degree[live].sum()), _ZERO)
    if np.abs(rows @ even - right).max() < _ZERO:
        return even
    return np.where(live, np.round(found, 12), 0.0)


# -- the lines along which an integral over orbits is singular ----------------------------------------------------------
def curves(h: Expr, names: Sequence[Symbol]) -> list[Expr]:
    """What vanishes along the nodal lines of h, along its kinks and where it is not analytic."""
    found: list[Expr] = []
    switches = list(dict.fromkeys(e for x in names for e in switch_arguments(h, x)))
    powers = [p.base for p in h.atoms(Pow) if p.exp.is_number and not (p.exp.is_Integer and p.exp > 0)]
    for e in dict.fromkeys([h, *switches, *powers]):
        for f in _factors(e, names):
            if f.has(*names) and f not in found and -f not in found:
                found.append(f)
    return found


def _factors(e: Expr, names: Sequence[Symbol]) -> list[Expr]:
    """Irreducible factors that may vanish inside; powers of one coordinate vanish on the edge."""
    if e.is_polynomial(*names) and e.has(*names):
        try:
            factors = [f for f, _ in Poly(expand(e), *names).factor_list()[1]]
        except (ValueError, TypeError, NotImplementedError):
            return [e]
        return [f.as_expr() for f in factors if len(f.terms()) > 1 and not _off_zero(f.as_expr(), names)]
    if isinstance(e, Mul):
        return [f for part in e.args for f in _factors(part, names)]
    if isinstance(e, Pow) and e.exp.is_number:
        return _factors(e.base, names)
    return [] if _off_zero(e, names) or isinstance(e, (sign, Heaviside)) else [e]


def _off_zero(e: Expr, names: Sequence[Symbol]) -> bool:
    """Positive, and in the corner too."""
    corner = e.xreplace(dict.fromkeys(names, S.Zero))
    return bool(e.is_positive and corner.is_positive)


def singular_edge(h: Expr, x: Symbol) -> bool:
    """Is the integral over orbits singular along x = 0? It is where h vanishes there, or is not smooth."""
    if not h.has(x):
        return False
    return not h.is_polynomial(x) or h.subs(x, 0) == 0
