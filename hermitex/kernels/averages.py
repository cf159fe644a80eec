"""E_t F[sigma(m + s t)] = sum_i w_i F[sigma(m + s t_i)]: Gaussian averages of a function of one variable, for arrays.

Between two neighbouring kinks of sigma the double-exponential rule t = tanh(pi/2 sinh x) is used, whose nodes crowd at
the ends, so that a kink, a jump or an integrable singularity there costs nothing; its step is halved until the value
is constant. Points (m, s) are one array axis, nodes another.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from sympy import Expr, Float, Rational, Symbol
from sympy.core.function import AppliedUndef

from hermitex.errors import BudgetExceeded, Divergent, HermitexError
from hermitex.kernels.arrays import lambdify
from hermitex.kernels.recognition import recognise
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.pieces import breakpoints
from hermitex.symbolic.precise import evaluate

Array = np.ndarray[Any, Any]
Statistic = Callable[[Array, Array, Array], Array]


def averages(sigma: Callable[[Array], Array], m: Array, s: Array, *, statistic: Statistic,
             kinks: Array, tolerance: float = 1e-12) -> tuple[Array, Array]:
    """The `statistic` of sigma(m + s t), t ~ N(0, 1), and its error estimate, for each point of m and s.

    Parameters
    ----------
    sigma : function of an array, evaluated elementwise
    m, s : arrays of shape (points,); s > 0
    statistic : (values of sigma, t, weights of N(0, 1)), each of shape (points, nodes) -> shape (points,)
    kinks : array, shape (number,), where sigma is not analytic
    tolerance : accepted change at the last halving, relative to the result, or if that is larger to E|sigma| or 1, the smaller

    Returns
    -------
    value, error : arrays, shape (points,); the error is nan where halving the step kept changing the value.

    Examples
    --------
    >>> mean = lambda values, t, w: (w*values).sum(axis=-1)
    >>> value, error = averages(np.abs, np.zeros(1), np.ones(1), statistic=mean, kinks=np.zeros(1))
    >>> bool(abs(value[0] - np.sqrt(2/np.pi)) < 1e-15), bool(error[0] < 1e-12)
    (True, True)
    """
    value, error = np.full(m.shape, np.nan), np.full(m.shape, np.nan)
    before = np.full(m.shape, np.nan)
    first = 3  # the first step is 2**-3
    last = 13  # the shortest step is 2**-13
    with np.errstate(all="ignore"):  # a branch of sigma that is not taken may overflow
        half_width = _half_width(sigma, m, s)
        open_points = np.flatnonzero(np.isfinite(half_width))
        for level in range(first, last + 1):
            if not open_points.size:
                break
            now, size = _rule(sigma, m[open_points], s[open_points], (statistic, kinks, half_width[open_points], level))
            change = np.abs(now - before[open_points])
            still = change <= tolerance*np.maximum(np.minimum(1.0, size), np.abs(now))
            done = open_points[still]
            value[done], error[done] = now[still], change[still]
            before[open_points] = now
            open_points = open_points[~still]
    return value, error


def compiled(expr: Expr, x: Symbol, around: Array) -> tuple[Callable[[Array], Array], Array] | None:
    """(function of arrays, kinks) of an expression in x alone, over the range of `around`; None if it cannot be.

    An expectation in it must be a constant. Kinks are all points where the expression may fail to be analytic.

    Examples
    --------
    >>> from sympy import Abs
    >>> x = Symbol("x", real=True)
    >>> f, kinks = compiled(Abs(x), x, np.array([-1.0, 1.0]))
    >>> f(np.array([-2.0, 3.0])), kinks
    (array([2., 3.]), array([0.]))
    """
    if not around.size or expr.free_symbols - {x} or expr.atoms(AppliedUndef):
        return None
    window = (Rational(float(np.min(around))), Rational(float(np.max(around))))
    try:
        nodes = {n: Float(evaluate(n, digits=20), 20) for n in expr.atoms(Expectation) if not n.free_symbols}
        expr = expr.xreplace(nodes)
        if expr.has(Expectation):
            return None
        kinks = np.array([float(b) for b in breakpoints(expr, x, window)])
    except (BudgetExceeded, Divergent):
        raise
    except HermitexError:
        return None
    raw = _function(x, expr)
    return lambda u: np.broadcast_to(np.asarray(raw(u), dtype=float), u.shape), kinks


@lru_cache(maxsize=256)
def _function(x: Symbol, expr: Expr) -> Callable[[Array], Any]:
    """One function for one formula: a minimisation asks for its averages point by point."""
    return lambdify(x, recognise(expr), modules=["scipy", "numpy"])


def _half_width(sigma: Callable[[Array], Array], m: Array, s: Array) -> Array:
    """The half width of the integration window: nan if sigma grows too fast for every width."""
    found = np.full(m.shape, np.nan)
    # 12 for what grows slowly: P(|t| > 12) = 4e-33; doubled where sigma times the density has not fallen off there
    half_widths = (12.0, 24.0, 48.0)
    for width in reversed(half_widths):
        t = width*np.array([[-1.0], [-0.95], [0.95], [1.0]])
        size = np.abs(sigma(m + s*t))
        # The square of sigma times a modest polynomial must be negligible there.
        small = 2*np.log1p(size) + 8*np.log(width) - 0.5*t**2 < np.log(1e-14)
        found[np.all(small & np.isfinite(size), axis=0)] = width
    return found


def _rule(sigma: Callable[[Array], Array], m: Array, s: Array, how: tuple[Statistic, Array, Array, int]) -> tuple[Array, Array]:
    """The statistic and E|sigma| with step 2**-level, the points taken in blocks that fit in memory."""
    statistic, kinks, half_width, level = how
    x_end = 5.0  # beyond it a node is 1e-100 from its end point
    x = np.arange(-x_end, x_end + 2.0**-level/2, 2.0**-level)
    nodes = x.size*(kinks.size + 1)
    most_values = 2_000_000  # values of sigma held at once: 16 MB
    step = max(1, most_values//nodes)
    out, size = np.empty(m.shape), np.empty(m.shape)
    lost = 1e-12  # of the integral that may be missing at a singular end point
    for start in range(0, m.size, step):
        block = slice(start, start + step)
        values, t, weights = _sample(sigma, m[block], s[block], (kinks, half_width[block], x))
        known = np.isfinite(values)
        out[block] = statistic(np.where(known, values, 0.0), t, weights)
        parts = np.where(known, weights*np.abs(values), np.nan)
        size[block] = np.nansum(parts, axis=-1)
        out[block][_cut_off(parts, x.size) > lost] = np.nan
    return out, size


def _cut_off(parts: Array, nodes: int) -> Array:
    """The largest term next to a missing one: at the ends of a rule, or where sigma is not finite."""
    parts = parts.reshape(len(parts), -1, nodes)
    missing = np.pad(np.isnan(parts), ((0, 0), (0, 0), (1, 1)), constant_values=True)
    beside = missing[..., :-2] | missing[..., 2:]
    return np.nan_to_num(np.where(beside, parts, 0.0), nan=0.0).max(axis=(1, 2))


def _sample(sigma: Callable[[Array], Array], m: Array, s: Array,
            how: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
    """Values of sigma, nodes t and weights, each (points, nodes)."""
    kinks, half_width, x = how
    lowest, highest = m - s*half_width, m + s*half_width
    inner = np.clip(np.sort(kinks)[None, :], lowest[:, None], highest[:, None])
    edges = np.concatenate([lowest[:, None], inner, highest[:, None]], axis=1)[:, :, None]
    # In units of s, for m - s t and m + s t are one float where s is far below m.
    ends = np.clip((edges - m[:, None, None])/s[:, None, None], -half_width[:, None, None], half_width[:, None, None])
    ends[:, 0, 0], ends[:, -1, 0] = -half_width, half_width
    y, from_left = np.pi/2*np.sinh(np.abs(x)), x < 0
    # Distances are taken from the nearer end, which keeps a kink's neighbourhood exact to the last bit.
    width = ends[:, 1:] - ends[:, :-1]
    distance = np.where(from_left, 1, -1)*width/(1 + np.exp(2*y))
    u = np.where(from_left, edges[:, :-1], edges[:, 1:]) + s[:, None, None]*distance
    t = np.where(from_left, ends[:, :-1], ends[:, 1:]) + distance
    weights = np.pi/4*np.cosh(x)/np.cosh(y)**2*(x[1] - x[0])*width*np.exp(-0.5*t*t)/np.sqrt(2*np.pi)
    shape = (m.size, -1)
    return sigma(u.reshape(shape)), t.reshape(shape), weights.reshape(shape)
