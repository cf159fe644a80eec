"""How far a root is undetermined: how far its equations stay within their rounding beside it.

    max t :  |F_i(x(s)) - F_i(x)| <= 2 r_i   for all s <= t,     x(s) = x + s |x| v + O(s^2),   J v ~ 0

By its slopes alone a root is known to r/|J|; at a double root, where J is 0, to sqrt(2 r/|J'|), eight digits of sixteen, and at a
triple one to five. Whatever the slope is to rounding, also by luck 0 or beside the root and large, that is measured here.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .batch import Array
from .linear import least_singular_bound

CLEAR = 1e-10  # a root that its slopes determine to that part is measured by these alone


def undetermined_extent(F: Callable[[Array, Array], Array], x: Array, J: Array, r: Array, size: Array,
           clear: float = CLEAR) -> Array:
    """The displacement d (n, B) by which x is undetermined; 0 where slopes determine it to `clear`, and where they are no numbers.

    0 also where no end is found: the solutions are a curve then, which a singular J says.

    Parameters
    ----------
    F : (y, k) -> the equations (n, K) at the points k, at y (n, K)
    x, J : (n, B) and (n, n, B)
    r : (n, B) > 0, what rounding may be of each equation
    size : (n, B), what an unknown is moved by; one of size 0 stays where it is
    clear : what is asked of the root, if that is more than CLEAR; the walk begins at half of it

    Examples
    --------
    >>> double = lambda y, k: (y - 1)**2
    >>> one, r = np.ones((1, 1)), np.full((1, 1), 1e-16)
    >>> bool(1e-8 < np.abs(undetermined_extent(double, one, np.zeros((1, 1, 1)), r, one))[0, 0] < 2e-8)
    True
    """
    n, clear = len(x), max(clear, CLEAR)
    d = np.zeros(x.shape)
    G = np.moveaxis(J*size/r[:, None], -1, 0)
    surely = 10.0  # times as large as it has to be: no singular value is asked for
    with np.errstate(all="ignore"):
        fine = np.flatnonzero(np.isfinite(G).all(axis=(1, 2)) & (size > 0).any(axis=0) & ~(least_singular_bound(G) > surely/clear))
    if not fine.size:
        return d
    still = np.eye(n)*np.where(size.T[fine] > 0, 0.0, 1/CLEAR**2)[:, None]  # unknowns that stay
    left, values, right = np.linalg.svd(np.concatenate([G[fine], still], axis=1), full_matrices=False)
    weak = np.flatnonzero(values[:, -1] < 1/clear)
    if not weak.size:
        return d
    k, v = fine[weak], size[:, fine[weak]]*right[weak, -1].T
    with np.errstate(divide="ignore"):
        inverse = np.where(np.arange(n) < n - 1, 1/values[weak], 0.0)
    back = np.einsum("bji,bj,bkj->bik", right[weak], inverse, left[weak][:, :n])  # of the directions in which F moves
    own, begun = left[weak, :n, -1].T, F(x[:, k], k)

    def apart(y: Array, some: Array) -> Array:
        return (F(y, k[some]) - begun[:, some])/r[:, k[some]]

    corrections = 12  # of chords, after which the equations are within their rounding or do not get there

    rests = 0.1  # a gap that changes by less in one correction does not go away

    most = 1.5  # in units of the rounding

    def corrected(y: Array, some: Array, t: float) -> tuple[Array, Array]:
        """y moved where the other directions lead, and at which points the equations are within their rounding then.

        It ends where what the other directions do not move is beyond rounding, and rests.
        """
        before = np.full(some.size, np.inf)
        for _ in range(corrections):
            gap = apart(y, some)
            within = np.abs(gap).max(axis=0) <= most  # not where it is no number
            unmoved = np.abs(own[:, some]*(own[:, some]*gap).sum(axis=0)).max(axis=0)
            beyond = (unmoved > most) & (np.abs(unmoved - before) <= rests*unmoved)
            if (within | beyond).all() or n == 1:
                break
            before = unmoved
            bend = np.clip(np.nan_to_num(np.einsum("bik,kb->ib", back[some], gap)), -t, t)
            y = np.where(within, y, y - size[:, k[some]]*bend)
        return y, within

    farthest = np.zeros((2, k.size))
    farthest_step = 0.1  # in units of the unknowns: a root that is undetermined by a tenth has no digit
    grows = 1.5  # each step is half as long again: the extent is known to this factor
    for side, sign in enumerate((1.0, -1.0)):
        some, t, y = np.arange(k.size), clear/2, x[:, k]
        while some.size and t < farthest_step:
            farthest[side, some] = t
            y = y + sign*(t - t/grows*(t > clear/2))*v[:, some]
            y, here = corrected(y, some, t)
            y, some = y[:, here], some[here]
            t *= grows
        farthest[side, some] = 0.0
    d[:, k] = np.where(farthest[0] >= farthest[1], farthest[0], -farthest[1])*v
    return d
