"""y = r^p h(theta): the law of a label that is homogeneous of degree p in two variables.

r and theta are independent, so nu_a(dy)/dy = int He_a(r cos, r sin) r^2 exp(-r^2/2)/(p |y|) dtheta/(2 pi) over the
directions with the sign of y, r = (y/h)^(1/p): an integral of a smooth function between the kinks and zeros of h.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import pairwise

import numpy as np
from sympy import Abs, Add, Expr, Max, Min, Mul, Pow, S, Symbol, cos, factor_terms, sin

from hermitex.errors import HermitexError
from hermitex.exponents.laws.density import WINDOW, Index, Law, array_function, distinct, half_template
from hermitex.exponents.laws.sums import in_chunks
from hermitex.symbolic.budget import checkpoint

_ORDER, _DEPTH = 16, 18


def degree(g: Expr, used: Sequence[Symbol]) -> Expr | None:
    """p with g(s z) = s^p g(z) for s > 0, or None."""
    from sympy import Dummy

    if (p := _by_parts(g, set(used))) is not None and p != 0:
        return p
    s = Dummy("s", positive=True)
    if g.count_ops() > 80:
        return None
    ratio = factor_terms(g.xreplace({x: s * x for x in used})) / factor_terms(g)
    if ratio.free_symbols - {s}:
        ratio = ratio.simplify()
    if ratio.free_symbols - {s}:
        return None
    base, p = ratio.as_base_exp()
    return p if base == s and p.is_Rational and p != 0 else None


def _by_parts(e: Expr, used: set[Symbol]) -> Expr | None:
    """The degree read off the tree: of a product the sum, of a sum or an extremum the one its terms share."""
    if not e.free_symbols & used:
        return S.Zero
    if isinstance(e, Symbol):
        return S.One
    if isinstance(e, Pow) and e.exp.is_Rational:
        below = _by_parts(e.base, used)
        return None if below is None else below * e.exp
    if not isinstance(e, (Add, Mul, Max, Min, Abs)):
        return None
    parts = [_by_parts(a, used) for a in e.args]
    if any(p is None for p in parts):
        return None
    known = [p for p in parts if p is not None]
    if isinstance(e, (Mul, Abs)):
        return sum(known, S.Zero)
    return known[0] if len(set(known)) == 1 else None


def polar(g: Expr, used: Sequence[Symbol], spots: Sequence[int], drop: Sequence[Index]) -> Law | None:
    """The law of a homogeneous g(z1, z2), or None if it is not homogeneous or its kinks are not found."""
    g = g.replace(Max, lambda *a: reduce(_larger, a)).replace(Min, lambda *a: -reduce(_larger, [-b for b in a]))
    p = degree(g, used)
    if p is None:
        return None
    x = Symbol("theta", real=True)
    h = g.xreplace(dict(zip(used, (cos(x), sin(x)), strict=True)))
    try:
        edges = _edges(h, x)
    except HermitexError:
        return None
    theta, w = _angles(edges)
    value = array_function(h, x)(theta)
    i, j = spots
    wanted = [a for a in ((), (i,), (j,), (i, i), tuple(sorted((i, j))), (j, j)) if a not in drop]
    c, s = {i: np.cos(theta), j: np.sin(theta)}, float(p)

    def smooth(y: np.ndarray) -> np.ndarray:
        checkpoint("integrating over directions")
        with np.errstate(all="ignore"):
            r = (y[:, None] / value) ** (1 / s)
            weight = np.where(np.isfinite(r) & (r < 40), r * r * np.exp(-r * r / 2), 0.0) * w / (2 * np.pi * s)
        weight /= np.abs(y)[:, None]
        r = np.where(weight > 0, r, 0.0)
        return np.stack([np.sum(weight * _he(a, r, c), axis=1) for a in wanted])

    def density(y: np.ndarray) -> np.ndarray:
        y = np.asarray(y, dtype=float)
        total = np.zeros((len(wanted), len(y)))
        live = y != 0
        total[:, live] = in_chunks(smooth, y[live], len(theta), len(wanted))
        return np.where(np.isfinite(total), total, 0.0)

    top, bottom = float(np.max(value)), float(np.min(value))
    scale = (WINDOW + 1) ** s if s > 0 else np.inf
    if not np.isfinite(scale * top):
        return None
    return Law(tuple(wanted), density, min(bottom, 0.0) * scale, max(top, 0.0) * scale, (0.0,), (), (), True, 4, False)


def _larger(a: Expr, b: Expr) -> Expr:
    return (a + b + Abs(a - b)) / 2


def _he(a: Index, r: np.ndarray, c: dict[int, np.ndarray]) -> np.ndarray:
    if len(a) == 2:
        return r * r * c[a[0]] * c[a[1]] - (a[0] == a[1])
    return r * c[a[0]] if a else np.ones_like(r)


def _edges(h: Expr, x: Symbol) -> np.ndarray:
    """0, 2 pi, and the kinks and zeros of h in between, found where it changes sign or its form."""
    from scipy.optimize import brentq

    from hermitex.exponents.laws.sections import switch_arguments

    grid = np.linspace(0, 2 * np.pi, 1441) + 1.7e-4
    cuts = [k * np.pi / 2 for k in range(5)]
    for e in [h, *switch_arguments(h, x)]:
        f = array_function(e, x)
        values = f(grid)
        for n in np.flatnonzero(np.sign(values[:-1]) * np.sign(values[1:]) < 0):
            cuts.append(brentq(lambda t, f=f: float(f(np.array([t]))[0]), grid[n], grid[n + 1], xtol=1e-15))
    return distinct(np.array([t for t in cuts if 0 <= t <= 2 * np.pi + 1e-12]))


def _angles(edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Nodes graded towards every edge, as a product with a zero of h there is concentrated next to it for small y."""
    t, v = half_template(_ORDER, _DEPTH)
    nodes, weights = [], []
    for a, b in pairwise(edges):
        m = (a + b) / 2
        for end, width in ((a, m - a), (b, m - b)):
            nodes.append(end + width * t)
            weights.append(abs(width) * v)
    return np.concatenate(nodes), np.concatenate(weights)
