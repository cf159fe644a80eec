"""Is a state where F is 0 a solution, or has F only run out of digits there?

    |F_i| <= eps T_i  and  sum_j |J_ij| |x_j| <= eps T_i   over |x|/10 around x,   T_i the sum of the |terms| of row i

x + exp(-x) = x holds to rounding at x = 40, exp(-x) = 0 by underflow at 750, and 1/x - b = 0 at b = 0 ever better: they
hold nowhere. An equation that is as good at the start and nearer to 0 says nothing of x at all, which is no reason to
refuse one. Beside a pole, too, the Newton step is short.
"""

from __future__ import annotations

import numpy as np

from .batch import Array, Params, scale, take
from .problem import START, Problem

_EPS = 16*float(np.finfo(float).eps)
_UNDERFLOW = 1e-250
_NEARER = (0.1, 1e-2, 1e-4)  # parts of x where an equation is looked at that says nothing beside it
_CLEAR = 100.0  # a residual that many times its rounding is not rounding


def run_out(q: Problem, x: Array, J: Array, p: Params) -> list[str]:
    """For each point the names of the unknowns whose equations hold at x by cancellation or underflow only; "" if none does."""
    size = scale(x, q.positive, 1e-14/q.rtol)
    weight = np.einsum("ijb,jb->ib", np.abs(J), size)
    T = 2*np.abs(x) if q.explicit.all() else np.where(q.explicit[:, None], 2*np.abs(x), q.terms(x, p))  # x = rhs there
    flat, steep = ~((weight > 10*_EPS*T) & (weight > _UNDERFLOW)), weight > 1e3*T
    said = [""]*x.shape[1]
    k = np.flatnonzero((flat | steep).any(axis=0))
    if not k.size:
        return said
    some = take(p, k)
    beside = [x[:, k] + step*size[:, k] for step in (-0.1, 0.1)]
    elsewhere = [some[START], *(x[:, k]*part for part in _NEARER)]
    lost = flat[:, k] & np.any([_clear(q, y, some) for y in elsewhere], axis=0)
    lost &= ~np.any([_clear(q, y, some) for y in beside], axis=0)
    if steep.any():
        around = np.fmax(*(np.abs(q.residual(y, some)) for y in beside))
        lost |= steep[:, k] & (np.abs(q.residual(x[:, k], some)) > np.maximum(around, _UNDERFLOW))
    for i, column in zip(k, lost.T, strict=True):
        said[i] = ", ".join(u for u, bad in zip(q.names, column, strict=True) if bad)
    return said


def _clear(q: Problem, x: Array, p: Params) -> Array:
    """The rows whose residual is not rounding."""
    F = np.abs(q.residual(x, p))
    return np.asarray(np.maximum(_CLEAR*_EPS*q.terms(x, p), _UNDERFLOW) < F)
