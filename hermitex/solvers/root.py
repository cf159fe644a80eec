"""One unknown, bracketed: F(a) F(b) < 0, by Chandrupatla's method at all points at once.

    x = a + t (b - a),   t from inverse quadratic interpolation where that is safe, 1/2 where it is not.

A positive unknown is bracketed and halved in its logarithm, so the search spans its orders of magnitude.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import BadInput
from .batch import Array, Field, Params, finite_params, positive_mask, start, take_points, to_logs
from .solution import Solution


def root(
    residual: Field,
    x0: Any = None,
    p: Params | None = None,
    *,
    names: Sequence[str],
    positive: Any = None,
    lower: Any = None,
    upper: Any = None,
    rtol: float = 1e-12,
    atol: float = 1e-14,
    max_steps: int = 200,
    raise_on_failure: bool = True,
) -> Solution:
    """The root of F(x, p) = 0 in one unknown at every point.

    Parameters
    ----------
    residual : F(x, p) -> (1, B) for x of shape (1, B), continuous
    x0 : where the search for a bracket begins (default 1 if positive, else 0); it goes outwards, by factors or by steps
    lower, upper : a bracket that is known, scalars or (B,); then no search
    rtol, atol : width of the last bracket, relative to |x| + atol/rtol (|x| if positive)

    Raises
    ------
    NotConverged    no sign change was found, or the sign changes at a jump or a pole

    Examples
    --------
    >>> import numpy as np
    >>> F = lambda x, p: x - 1/(p["lam"] + 2/(1 + x))
    >>> root(F, p={"lam": np.array([0.1, 1e-9])}, names=["V"], positive=True)["V"].round(6)
    array([0.844289, 1.      ])
    """
    if len(names) != 1:
        raise BadInput(f"a bracketed root has one unknown, not {len(names)} ({', '.join(names)})")
    p = dict(p or {})
    finite_params(p)
    positive = positive_mask(positive, names)
    at = [1.0 if positive[0] else 0.0] if x0 is None else x0
    x, single = start(at, {**p, **_checked_bound(lower, "lower"), **_checked_bound(upper, "upper")}, names)
    single = single and np.ndim(lower) == 0 and np.ndim(upper) == 0
    run = _Bracket(residual, p, x.shape[1], bool(positive[0]), rtol, atol)
    with np.errstate(all="ignore"):
        if lower is not None and upper is not None:
            run.known(np.broadcast_to(lower, x.shape[1:]), np.broadcast_to(upper, x.shape[1:]))
        else:
            run.search(x[0], lower, upper)
        run.shrink(max_steps)
        found = run.solution(names[0])
    found = found.point(0) if single else found
    return found.require("give lower= and upper= on both sides of the root") if raise_on_failure else found


def _checked_bound(bound: Any, name: str) -> dict[str, Any]:
    return {} if bound is None else {name: bound}


class _Bracket:
    """Ends a, b of each point's bracket in the coordinate (its logarithm if positive) with F there."""

    def __init__(self, residual: Field, p: Params, points: int, positive: bool, rtol: float, atol: float) -> None:
        self.residual, self.p, self.positive, self.rtol, self.floor = residual, p, positive, rtol, atol / rtol
        self.a, self.b, self.fa, self.fb = (np.full(points, np.nan) for _ in range(4))
        self.steps, self.reason = np.zeros(points, dtype=int), np.full(points, "", dtype=object)
        self.first, self.width = np.full(points, np.nan), np.full(points, np.inf)

    def F(self, y: Array, k: Array) -> Array:
        """F at the coordinate y of the points k."""
        self.steps[k] += 1
        x = np.exp(y) if self.positive else y
        return np.array(np.broadcast_to(self.residual(x[None], take_points(self.p, k)), (1, k.size))[0])

    def coordinate(self, x: Array) -> Array:
        x = np.asarray(x, dtype=float)
        if self.positive and (x <= 0).any():
            raise BadInput(f"a positive unknown cannot be bracketed at {float(x[x <= 0][0]):g}")
        return to_logs(x[None], np.array([self.positive]))[0]

    def known(self, lower: Array, upper: Array) -> None:
        every = np.arange(self.a.size)
        self.a, self.b = self.coordinate(lower), self.coordinate(upper)
        self.fa, self.fb = self.F(self.a, every), self.F(self.b, every)

    def search(self, x: Array, lower: Any, upper: Any) -> None:
        """Go outwards from the start on both sides by growing steps until F changes sign between neighbours."""
        every = np.arange(x.size)
        largest_log = 690.0  # exp(690) is near the largest float
        far = largest_log if self.positive else np.inf
        low = np.full(x.shape, -far) if lower is None else self.coordinate(np.broadcast_to(lower, x.shape))
        high = np.full(x.shape, far) if upper is None else self.coordinate(np.broadcast_to(upper, x.shape))
        y = np.clip(self.coordinate(x), low, high)
        f = self.F(y, every)
        self.a, self.b, self.fa, self.fb = y.copy(), y.copy(), f.copy(), f.copy()
        ends = {-1: (y.copy(), f.copy()), 1: (y.copy(), f.copy())}
        stride = np.full(x.shape, 0.7) if self.positive else 0.1 * np.abs(y) + 0.1
        open_ = np.flatnonzero(~(f == 0))
        for _ in range(60):
            for side, limit in ((1, high), (-1, low)):
                end, f_end = ends[side]
                go = open_[end[open_] != limit[open_]]
                if not go.size:
                    continue
                new = np.clip(end[go] + side * stride[go], low[go], high[go])
                f_new = self.F(new, go)
                flip = (np.sign(f_new) * np.sign(f_end[go]) <= 0) & np.isfinite(f_new)
                self.a[go[flip]], self.fa[go[flip]] = end[go[flip]], f_end[go[flip]]
                self.b[go[flip]], self.fb[go[flip]] = new[flip], f_new[flip]
                usable = np.isfinite(f_new)
                end[go[usable]], f_end[go[usable]] = new[usable], f_new[usable]
                open_ = np.setdiff1d(open_, go[flip], assume_unique=True)
            stride = stride * 1.7
            if not open_.size:
                return
        for k in open_:
            lo, hi = ends[-1][0][k], ends[1][0][k]
            lo, hi = (np.exp(lo), np.exp(hi)) if self.positive else (lo, hi)
            self.reason[k] = f"no sign change between {lo:.3g} and {hi:.3g}"

    def shrink(self, max_steps: int) -> None:
        every = np.arange(self.a.size)
        bad = ~(np.sign(self.fa) * np.sign(self.fb) <= 0) & (self.reason == "")
        for k in np.flatnonzero(bad):
            self.reason[k] = f"the residual has one sign at both ends ({self.fa[k]:.3g} and {self.fb[k]:.3g})"
        self.first = np.maximum(np.abs(self.fa), np.abs(self.fb))
        k = every[self.reason == ""]
        c, fc = self.a.copy(), self.fa.copy()
        t = np.full(self.a.size, 0.5)
        for _ in range(max_steps):
            best = np.where(np.abs(self.fa) < np.abs(self.fb), self.a, self.b)
            self.width[k] = np.abs(self.b - self.a)[k]
            tolerance = self.tolerance(best[k])
            exact = np.minimum(np.abs(self.fa), np.abs(self.fb))[k] == 0
            k_open = ~(exact | (self.width[k] <= tolerance))
            self.width[k[exact]] = 0.0
            tl = 0.5 * tolerance / np.where(self.width[k] > 0, self.width[k], 1.0)
            k, tl = k[k_open], tl[k_open]
            if not k.size:
                return
            t[k] = np.clip(t[k], tl, 1 - tl)
            y = self.a[k] + t[k] * (self.b[k] - self.a[k])
            f = self.F(y, k)
            same = np.sign(f) == np.sign(self.fa[k])
            c[k], fc[k] = np.where(same, self.a[k], self.b[k]), np.where(same, self.fa[k], self.fb[k])
            other = k[~same]
            self.b[other], self.fb[other] = self.a[other], self.fa[other]
            self.a[k], self.fa[k] = y, f
            t[k] = _next_fraction(self.a[k], self.b[k], c[k], self.fa[k], self.fb[k], fc[k])
        self.reason[k] = "the steps ran out"

    def tolerance(self, y: Array) -> Array:
        eps = 4 * float(np.finfo(float).eps)
        if self.positive:
            return np.full(y.shape, self.rtol) + eps * np.abs(y)
        return self.rtol * (np.abs(y) + self.floor) + eps * np.abs(y)

    def solution(self, name: str) -> Solution:
        every = np.arange(self.a.size)
        use_a = np.abs(self.fa) <= np.abs(self.fb)
        y, f = np.where(use_a, self.a, self.b), np.where(use_a, self.fa, self.fb)
        x = np.exp(y) if self.positive else y
        clear = self.reason == ""
        jump_part = 1e-3  # a sign change across which |F| keeps this part of its size is a jump or a pole, not a root
        jump = clear & ~(np.abs(f) <= jump_part * self.first) & (np.abs(f) > 0)
        for k in np.flatnonzero(jump):
            where = f"{name} = {x[k]:.6g}"
            self.reason[k] = f"the residual changes sign at {where} without being zero there: a jump or a pole"
        size = np.abs(x) + (0.0 if self.positive else self.floor)
        h = 1e-6 * (np.ones_like(y) if self.positive else np.abs(y) + self.floor)
        moved = y + h
        slope = (self.F(moved, every) - f) / ((np.exp(moved) if self.positive else moved) - x)
        width = self.width if self.positive else self.width / np.where(size > 0, size, 1.0)
        noise = float(np.finfo(float).eps) / np.where(slope != 0, np.abs(slope), 1.0)  # of x - rhs, which cancels
        ok = self.reason == ""
        return Solution(
            {name: x},
            residual=np.abs(f) / np.where(size * np.abs(slope) > 0, size * np.abs(slope), 1.0),
            converged=ok,
            iterations=self.steps,
            stability=np.abs(1 - slope),
            error=np.maximum(width, noise),
            method="bracketed root",
            reason=self.reason,
            unknowns=(name,),
            origin={"rtol": self.rtol, "atol": self.rtol * self.floor},
        )


def _next_fraction(a: Array, b: Array, c: Array, fa: Array, fb: Array, fc: Array) -> Array:
    """Where in (a, b) to look next: inverse quadratic interpolation if Chandrupatla's two conditions allow it."""
    xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
    safe = (phi * phi < xi) & ((1 - phi) * (1 - phi) < 1 - xi)
    t = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
    return np.where(safe & np.isfinite(t), t, 0.5)
