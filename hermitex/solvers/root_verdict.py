"""Is a state where F is 0 a solution, or has F only run out of digits there?

    |F_i| <= eps T_i  and  sum_j |J_ij| |x_j| <= eps T_i   over |x|/10 around x,   T_i the sum of the |terms| of row i

x + exp(-x) = x holds to rounding at x = 40, exp(-x) = 0 by underflow at 750, and 1/x - b = 0 at b = 0 ever better: they
hold nowhere. An equation that is as good at the start and nearer to 0 says nothing of x at all, which is no reason to
refuse one. Beside a pole, too, the Newton step is short. Where J is singular the same is asked of the combinations of
rows that it does not see: of a + b = 0 and a + b + 1/b = 0 far out, where their difference is rounding of their terms.
An implicit row does not hold either where it is neither rounding nor small beside its slopes, however little x - F moves x,
nor where it is steep, with all of its terms about as large as it is, and has one sign on both sides.
"""

from __future__ import annotations

import numpy as np

from .batch import ROUNDING, Array, Params, error_scale, take_points
from .linear import least_singular_bound
from .problem import START, Problem

_EPS = 16*float(np.finfo(float).eps)  # sixteen roundings: a term of an equation is the result of some operations
_UNDERFLOW = 1e-250  # terms below lose digits to underflow at 1e-308, as products of them do earlier
_NEARER = (0.1, 1e-2, 1e-4)  # parts of x where an equation is looked at that says nothing beside it
STEEPEST = 1e3  # an equation that moves by more than so many times its terms as its unknowns double has lost its digits
AROUND = 1e-3  # of an unknown, however small: by what it moves the equation is one of its terms
BESIDE = 0.1  # parts of x to either side where the terms of an equation are looked at that are 0 where it holds
LEAST_HELD = 1e-9  # of the size of an implicit equation: a residual below that is held in any case
_KEPT = ("the residual of {} has one sign on both sides: a double root there, or none; solve the derivative of that "
         "equation instead, from there, and see whether it holds")
_JUMPS = "the residual of {} changes sign there without being zero: a jump"
_CLEAR = 100.0  # a residual that many times its rounding is not rounding


def cancelled_equations(q: Problem, x: Array, J: Array, p: Params) -> list[str]:
    """For each point the names of the unknowns whose equations hold at x by cancellation or underflow only; "" if none does."""
    size = error_scale(x, q.positive, 1e-14/q.rtol)
    weight = np.einsum("ijb,jb->ib", np.abs(J), size)
    F, T = (np.zeros(x.shape), 2*np.abs(x)) if q.explicit.all() else q.sized(x, p)
    T = np.where(q.explicit[:, None], 2*np.abs(x), T)  # x = rhs there
    flat, steep = ~((weight > 10*_EPS*T) & (weight > _UNDERFLOW)), weight > STEEPEST*T
    said = dependent_equations(q, x, J, np.where(steep, weight, T), p) if len(x) > 1 else [""]*x.shape[1]
    lost = np.zeros(x.shape, dtype=bool)
    k = np.flatnonzero(flat.any(axis=0))
    if k.size:
        some = take_points(p, k)
        lost[:, k] = flat[:, k] & np.any([_rows_above_rounding(q, y, some)
                                          for y in (some[START], *(x[:, k]*part for part in _NEARER))], axis=0)
        lost[:, k] &= ~_clear_on_both_sides(q, x[:, k], size[:, k], some)
    k = np.flatnonzero(steep.any(axis=0))
    if k.size:
        some = take_points(p, k)
        around = np.fmax(*(np.abs(q.residual(y, some)) for y in _terms_at_neighbours(x[:, k], size[:, k])))
        at = np.abs(q.residual(x[:, k], some) if q.explicit.all() else F[:, k])
        lost[:, k] |= steep[:, k] & (at > np.maximum(around, _UNDERFLOW))
        rows = steep[:, k] & ~q.explicit[:, None] & (F[:, k] != 0)
        if rows.any():
            least = steepest_change(T[:, k], *(q.sized(y, some)[1] for y in _terms_at_neighbours(x[:, k], size[:, k])))
            least += AROUND*np.abs(J[..., k]).sum(axis=1)  # what is more is refused at the end, too
            lost[:, k] |= rows & (at > max(100*q.rtol, LEAST_HELD)*least)
            lost[:, k] |= np.any(_rows_without_crossing(q, x[:, k], J[..., k], size[:, k], F[:, k], rows, some), axis=0)
    # of the terms of an implicit equation: log(x) = -600 does not hold at x = 1e-17, however short a step is there
    unsatisfied = 1e-3
    off = np.any(np.abs(x) < size/2, axis=0) & steep & ~q.explicit[:, None] & (np.abs(F) > unsatisfied*T)
    k = np.flatnonzero(off.any(axis=0))
    if k.size:
        lost[:, k] |= _hardly_moving_rows(q, x[:, k], J[..., k], size[:, k], F[:, k], off[:, k], take_points(p, k))
    lost |= ~q.explicit[:, None] & (np.abs(F) > np.maximum(_EPS*T, max(q.rtol, ROUNDING)*weight))
    for i in np.flatnonzero(lost.any(axis=0)):
        said[i] = ", ".join(u for u, bad in zip(q.names, lost[:, i], strict=True) if bad)
    return said


def _terms_at_neighbours(x: Array, size: Array) -> list[Array]:
    return [x - BESIDE*size, x + BESIDE*size]


def steepest_change(here: Array, left: Array, right: Array) -> Array:
    """By how much at most an equation counts as moving where its unknowns double: so many times its terms, there or on both sides.

    Those of cos(x) are 0 where it is. A tail, exp(-k x), has larger ones on one side only.
    """
    return np.asarray(STEEPEST*np.fmax(here, np.nan_to_num(np.fmin(left, right), nan=0.0, posinf=0.0)))


def _rows_without_crossing(q: Problem, x: Array, J: Array, size: Array, F: Array, rows: Array, p: Params) -> tuple[Array, Array]:
    """Which of the rows keep their sign on both sides of x, as sqrt|x| + b does, and which jump there, as sign(x) + b does.

    Along the unknown by which they move most. What jumps moves by far more than a slope promises, which is a quotient there.
    """
    kept, jumps = np.zeros_like(rows), np.zeros_like(rows)
    further = 4.0  # times as far as the slope of an equation promises that it is 0 it has to have the other sign
    for i in np.flatnonzero(rows.any(axis=1)):
        j, points = np.argmax(np.abs(J[i])*size, axis=0), np.arange(x.shape[1])
        slope = np.abs(J[i, j, points])
        apart = np.maximum(q.rtol*size[j, points], further*np.abs(F[i])/slope)
        sides = []
        for sign in (-1.0, 1.0):
            y = x.copy()
            y[j, points] += sign*apart
            sides.append(q.residual(y, p)[i])
        signs, nearest = np.sign(sides), np.min(np.abs(sides), axis=0)
        kept[i] = rows[i] & (signs[0] == signs[1]) & (signs[0] != 0)
        jumps[i] = rows[i] & (signs[0] == -signs[1]) & (nearest > _CLEAR*slope*apart)
    return kept, jumps


def double_root_reasons(q: Problem, x: Array, J: Array, p: Params) -> list[str]:
    """Of each point that all equations hold at but for a sign that one of them keeps, or a jump, the reason to refuse it.

    It is "" elsewhere. Rounding does not tell sin(x)^2 from sin(x)^2 + 1e-17, which is 0 nowhere.
    """
    size = error_scale(x, q.positive, 1e-14/q.rtol)
    weight = np.einsum("ijb,jb->ib", np.abs(J), size)
    F, T = q.sized(x, p)
    near = 1e-6  # of the size of an equation: from there on it is asked whether it has a double root
    rows = ~q.explicit[:, None] & (weight > STEEPEST*T) & (F != 0) & np.all(
        np.abs(F) <= np.maximum(max(q.rtol, near)*weight, _EPS*T), axis=0)
    said = [""]*x.shape[1]
    for which, words in zip(_rows_without_crossing(q, x, J, size, F, rows, p), (_KEPT, _JUMPS), strict=True):
        for i in np.flatnonzero(which.any(axis=0)):
            said[i] = words.format(", ".join(u for u, bad in zip(q.names, which[:, i], strict=True) if bad))
    return said


def _hardly_moving_rows(q: Problem, x: Array, J: Array, size: Array, F: Array, off: Array, p: Params) -> Array:
    """Which of the rows `off` hardly move as one unknown moves by its size, to either side where there is a number.

    The unknowns are moved one by one, first those by which the slopes promise most, until every row has moved.
    """
    promised = np.abs(J)*size
    bent = 1e-3  # part of what its slope promises by which such an equation moves beside x; what cancels to 0 moves by all of it
    enough = bent*promised.sum(axis=1)
    left = off & ~np.isnan(enough)
    most = np.fmax.reduce(np.where(off[:, None], promised, 0.0), axis=(0, 2))
    for j in np.argsort(-most, kind="stable"):
        for sign in (1.0, -1.0):
            if not left.any():
                return left
            y = x.copy()
            y[j] += sign*size[j]
            left &= ~(np.abs(q.residual(y, p) - F) >= enough)
    return left


def dependent_equations(q: Problem, x: Array, J: Array, T: Array, p: Params) -> list[str]:
    """The same where several rows together say nothing beside x: the combinations w with w J = 0 to rounding."""
    said, size = [""]*x.shape[1], error_scale(x, q.positive, 1e-14/q.rtol)
    scaled = np.moveaxis(J*size/T[:, None], -1, 0)
    nearly = 1e-9  # a singular value of J below that, relative to the terms of its rows
    with np.errstate(all="ignore"):
        fine = np.flatnonzero(np.isfinite(scaled).all(axis=(1, 2)) & ~(least_singular_bound(scaled) > _CLEAR*nearly))
    if not fine.size:
        return said
    left, values, _ = np.linalg.svd(scaled[fine])
    for which, j in np.argwhere(values <= nearly):
        i, u, least = fine[which], left[which][:, j], values[which, j]
        some, y, w = take_points(p, np.array([i])), x[:, [i]], u/T[:, i]

        def beyond(at: Array, times: float = _CLEAR, w: Array = w, some: Params = some) -> bool:
            F, T = q.sized(at, some)
            return bool(np.abs(w @ F) > np.maximum(times*_EPS*(np.abs(w) @ T), _UNDERFLOW))

        if least > 1e3*_EPS and not beyond(y, 1.0):
            continue  # ill-conditioned, and solved to three digits
        elsewhere = [some[START], *(y*part for part in (*_NEARER, 1/np.abs(y).max()))]
        if beyond(y) or (any(map(beyond, elsewhere)) and not all(map(beyond, _terms_at_neighbours(y, size[:, [i]])))):
            said[i] = ", ".join(n for n, part in zip(q.names, np.abs(u), strict=True) if part > 0.1)
    return said


def _clear_on_both_sides(q: Problem, x: Array, size: Array, p: Params) -> Array:
    """Beside x, on the sides where there is a residual: exp(-exp(x)) grows on one side of what is 0 by underflow only."""
    sides = [(_rows_above_rounding(q, y, p), np.isfinite(q.residual(y, p))) for y in _terms_at_neighbours(x, size)]
    return np.asarray(np.all([clear | ~there for clear, there in sides], axis=0) & np.any([clear for clear, _ in sides], axis=0))


def _rows_above_rounding(q: Problem, x: Array, p: Params) -> Array:
    """The rows whose residual is not rounding."""
    F, T = q.sized(x, p)
    return np.asarray(np.maximum(_CLEAR*_EPS*T, _UNDERFLOW) < np.abs(F))
