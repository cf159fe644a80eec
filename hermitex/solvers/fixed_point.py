"""Fixed points x = G(x): damped iteration, and Anderson's acceleration of it with a safeguard.

    damped:    x <- x + a (G(x) - x)
    Anderson:  x <- x + f - (dX + dF) gamma,   gamma = argmin |f - dF gamma|,   f = G(x) - x,

in logarithms for positive unknowns. Neither stops on a short step: a candidate is accepted when the error it leaves,
|(1 - K)^{-1} f| with K = dG/dx by differences at that point, is below the tolerance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import linear
from .batch import Array, Field, Params, finite_params, from_logs, positive_mask, require_feasible, start, take_points, to_logs
from .differences import central, forward
from .solution import Solution, trend_text
from .solve_limits import is_time_up, ran_out

GROWS = "under iteration "  # of a reason: unknowns run off
_KEPT = 4  # iterates kept to say how a point failed


def damped(
    step: Field,
    x0: Any,
    p: Params | None = None,
    *,
    names: Sequence[str],
    positive: Any = None,
    damping: float = 1.0,
    rtol: float = 1e-10,
    atol: float = 1e-14,
    max_steps: int = 10_000,
    raise_on_failure: bool = True,
) -> Solution:
    """Iterate x <- x + damping (G(x) - x), the last resort; `damping` in (0, 1] is the weight of the new value.

    Parameters
    ----------
    step : G(x, p) -> (n, B)        the right-hand sides
    x0, p, names, positive, rtol, atol : as in `newton.newton`

    Raises
    ------
    NotConverged    says which unknowns oscillate, diverge or still move, and carries the last state

    Examples
    --------
    >>> import numpy as np
    >>> s = damped(lambda x, p: p["k"]*np.cos(x), [1.0], {"k": np.array([0.5, 0.9])}, names=["q"])
    >>> s["q"].round(6), s.stability.round(3)
    (array([0.450184, 0.692619]), array([0.218, 0.575]))
    """
    run = _Iteration(step, x0, p, names, positive, rtol, atol)
    run.weight = damping
    return run.run("damped iteration" if damping < 1 else "plain iteration", max_steps, 0, raise_on_failure)


def anderson(
    step: Field,
    x0: Any,
    p: Params | None = None,
    *,
    names: Sequence[str],
    positive: Any = None,
    memory: int = 10,
    damping: float = 0.5,
    rtol: float = 1e-10,
    atol: float = 1e-14,
    max_steps: int = 500,
    raise_on_failure: bool = True,
) -> Solution:
    """Anderson's acceleration of x <- G(x) at every point, with a damped step wherever it did not lower the residual.

    Unsafeguarded, the method fails on many replica systems; here an accelerated iterate counts only if its residual is
    smaller than the last one's, and otherwise a step of weight `damping` is taken from there and the memory cleared.

    Parameters and errors as in `damped`; `memory` is the number of past differences that are combined.

    Examples
    --------
    >>> import numpy as np
    >>> G = lambda x, p: np.stack([1/(p["lam"] + 2/(1 + x[0]))])
    >>> anderson(G, [1.0], {"lam": 0.1}, names=["V"], positive=["V"])["V"].__round__(6)
    0.844289
    """
    run = _Iteration(step, x0, p, names, positive, rtol, atol)
    run.weight = damping
    return run.run("anderson", max_steps, memory, raise_on_failure)


class _Iteration:
    """One call: the points still active, their iterates in logarithms, and what is known about the finished ones."""

    weight = 1.0

    def __init__(self, step: Field, x0: Any, p: Params | None, names: Sequence[str], positive: Any, rtol: float,
                 atol: float) -> None:  # fmt: skip
        self.step, self.names, self.rtol, self.atol = step, tuple(names), rtol, atol
        self.p = dict(p or {})
        x, self.single = start(x0, self.p, self.names)
        self.mask = positive_mask(positive, self.names)
        finite_params(self.p)
        require_feasible(x, self.mask, self.names)
        points = x.shape[1]
        self.y, self.active, self.final = to_logs(x, self.mask), np.arange(points), x
        self.residual, self.error = np.full(points, np.inf), np.full(points, np.nan)
        self.gain, self.ok = np.full(points, np.nan), np.zeros(points, dtype=bool)
        self.steps, self.reason = np.zeros(points, dtype=int), np.full(points, "", dtype=object)
        self.goal = np.full(points, rtol)
        self.past: list[Array] = []
        self.checked = np.full(points, np.inf)  # the residual at the last check
        self.marks: list[tuple[int, Array]] = []  # states after 1, 2, 4, ... steps

    def run(self, method: str, max_steps: int, memory: int, raise_on_failure: bool) -> Solution:
        with np.errstate(all="ignore"):
            self.iterate(max_steps, memory)
        points = len(self.ok)
        found = Solution(
            dict(zip(self.names, self.final, strict=True)),
            residual=self.residual,
            converged=self.ok,
            iterations=self.steps,
            stability=self.gain,
            error=self.error,
            method=method,
            reason=self.reason,
            unknowns=self.names,
            origin={"rtol": self.rtol, "atol": self.atol},
        )
        found = found.point(0) if self.single and points == 1 else found
        return found.require() if raise_on_failure else found

    def defect(self, y: Array, p: Params) -> Array:
        """f = G - x in the coordinates with logarithms; NaN where G left the domain."""
        G = np.broadcast_to(self.step(from_logs(y, self.mask), p), y.shape)
        return to_logs(G, self.mask) - y

    def size(self, y: Array) -> Array:
        return np.where(self.mask[:, None], 1.0, np.abs(y) + self.atol / self.rtol)

    def iterate(self, max_steps: int, memory: int) -> None:
        f = self.defect(self.y, self.p)
        self.steps[:] = 1
        f = self.drop_undefined(f)
        n = len(self.names)
        self.dY, self.dF = np.zeros((0, n, self.active.size)), np.zeros((0, n, self.active.size))
        patience = 100  # steps, or a tenth of those allowed, in which the residual has to be halved, or no solution is reached
        for step in range(max_steps):
            f = self.leave(f)
            if not self.active.size:
                return
            if is_time_up():
                break
            if step and step % max(patience, max_steps // 10) == 0:
                f = self.drop_slow(f)
            if step & (step - 1) == 0:
                self.final[:, self.active] = from_logs(self.y, self.mask)
                self.marks = [*self.marks[-2:], (step, self.final.copy())]
            self.past = [*self.past[-_KEPT + 1 :], from_logs(self.y, self.mask)]
            move = self.weight * f if memory == 0 else self.accelerated(f)
            y = self.y + move
            new = self.defect(y, self.p)
            self.steps[self.active] += 1
            accelerated = memory > 0 and self.dF.shape[0] > 0
            worse = ~(self.norm(new, self.y) < self.norm(f, self.y)) if accelerated else ~np.isfinite(new).all(axis=0)
            if worse.any():
                self.retreat(np.flatnonzero(worse), (y, new, f))
            if memory:
                self.remember(y - self.y, new - f, worse, memory)
            self.y, f = y, new
            f = self.drop_undefined(f)
        self.leave(f)
        self.close(np.ones(self.active.size, dtype=bool), f, ran_out())

    def retreat(self, k: Array, state: tuple[Array, Array, Array]) -> None:
        """A damped step instead, and a shorter one while the map is undefined there."""
        y, new, f = state
        length = min(self.weight, 1.0)
        for _ in range(8):
            y[:, k] = self.y[:, k] + length * f[:, k]
            new[:, k] = self.defect(y[:, k], take_points(self.p, k))
            self.steps[self.active[k]] += 1
            k = k[~np.isfinite(new[:, k]).all(axis=0)]
            if not k.size:
                return
            length /= 4

    def norm(self, f: Array, y: Array) -> Array:
        weight = np.where(self.mask[:, None], 1.0, 1 / (np.abs(y) + 1))
        return np.asarray(((f * weight) ** 2).sum(axis=0))

    def accelerated(self, f: Array) -> Array:
        """The Anderson move from the differences in memory; points whose memory was cleared carry zeros there."""
        m = self.dF.shape[0]
        if m == 0:
            return self.weight * f
        weight = np.where(self.mask[:, None], 1.0, 1 / (np.abs(self.y) + 1))
        A = self.dF * weight
        length = np.sqrt((A * A).sum(axis=1))
        inverse = np.where(length > 0, 1 / np.where(length > 0, length, 1.0), 0.0)  # (m, B)
        A = A * inverse[:, None]
        gram = np.einsum("kib,lib->bkl", A, A) + 1e-13 * np.eye(m)  # unit columns: the shift is relative
        gamma = np.linalg.solve(gram, np.einsum("kib,ib->bk", A, f * weight)[:, :, None])[:, :, 0].T * inverse
        move = f - np.einsum("kib,kb->ib", self.dY + self.dF, gamma)
        fresh = ~(length > 0).any(axis=0)
        return np.where(fresh, self.weight * f, move)

    def remember(self, dy: Array, df: Array, cleared: Array, memory: int) -> None:
        good = np.isfinite(df).all(axis=0) & ~cleared
        keep = self.dY.shape[0] - max(0, self.dY.shape[0] + 1 - memory)
        self.dY = np.concatenate([self.dY[self.dY.shape[0] - keep :], np.where(good, dy, 0.0)[None]])
        self.dF = np.concatenate([self.dF[self.dF.shape[0] - keep :], np.where(good, df, 0.0)[None]])
        self.dY[:, :, ~good] = self.dF[:, :, ~good] = 0.0

    def leave(self, f: Array) -> Array:
        """Points whose residual is small are judged by the error it leaves; those that pass are done."""
        residual = (np.abs(f) / self.size(self.y)).max(axis=0, initial=0.0)
        near = residual <= self.goal[self.active]
        if not near.any():
            return f
        k = np.flatnonzero(near)
        error, gain = self.judge(k, f)
        self.gain[self.active[k]] = gain
        # the error is linear in the residual: what it must fall to before it is worth judging again
        passed = (error <= self.rtol) | (residual[k] == 0)
        lower = residual[k] * 0.5 * self.rtol / np.maximum(error, self.rtol)
        self.goal[self.active[k]] = np.where(passed, self.rtol, lower)
        done = np.zeros(self.active.size, dtype=bool)
        done[k[passed]] = True
        return self.close(done, f, None, error[passed])

    def judge(self, k: Array, f: Array) -> tuple[Array, Array]:
        """The error (1 - K)^{-1} f relative to x, and the stability, the spectral radius of K.

        Where 1 - K is so small that forward differences do not resolve it, central ones are taken; where those do not
        either, the error is not known and counts as infinite: this is where a map that hardly moves would pass.
        """
        y, p, at = self.y[:, k], take_points(self.p, k), f[:, k]
        D = forward(self.defect, y, p, at)  # D = K - 1
        size = self.size(y)
        least = linear.least_singular_value(D, size)
        resolved = 1e-4  # the least 1 - K that forward and central differences can be trusted with
        weak = np.flatnonzero(~(least > resolved))
        if weak.size:
            D[..., weak] = central(self.defect, y[:, weak], take_points(p, weak))
            least[weak] = linear.least_singular_value(D[..., weak], size[:, weak])
        x, _ = linear.solve(D, -at)
        error = (np.abs(x) / size).max(axis=0, initial=0.0)
        noise = 1e-11  # residual, relative, below which its differences are rounding
        known = np.isfinite(error) & (least > noise)
        return np.where(known, error, np.inf), linear.spectral_radius(D + np.eye(len(self.names))[:, :, None])

    def drop_slow(self, f: Array) -> Array:
        """Points whose residual has not been halved since the last check."""
        now = self.norm(f, self.y)
        slow = now > 0.25 * self.checked[self.active]
        self.checked[self.active] = now
        return self.close(slow, f, "no headway") if slow.any() else f

    def growth(self, point: int) -> str:
        """How the unknowns of a point that run off do it: x ~ step^a over the last two doublings of the steps."""
        marks = [(step, x[:, point]) for step, x in self.marks if 0 < step < self.steps[point]]
        marks = [*marks[-2:], (int(self.steps[point]), self.final[:, point])]
        if len(marks) < 3 or marks[0][0] < 8:
            return ""
        (s0, a), (s1, b), (s2, c) = marks
        first, last = (np.log(np.abs(v / u)) / np.log(t / s) for s, u, t, v in ((s0, a, s1, b), (s1, b, s2, c)))
        said = []
        grows = 0.15  # the least power of the steps that is called growth
        for name, early, late, x in zip(self.names, first, last, c, strict=True):
            if min(abs(early), abs(late)) > grows and early * late > 0 and abs(late) > 0.5 * abs(early):
                verb = "grows" if late > 0 else "falls"
                how = "faster than a power" if abs(late) > 1.5 * abs(early) else f"like the power {late:.2g}"
                said.append(f"{name} {verb} {how} of the steps ({x:.2g} after {s2})")
        return GROWS + ", ".join(said) if said else ""

    def drop_undefined(self, f: Array) -> Array:
        lost = ~np.isfinite(f).all(axis=0)
        return self.close(lost, f, "the map is not finite") if lost.any() else f

    def close(self, which: Array, f: Array, why: str | None, error: Array | None = None) -> Array:
        """Write the points `which` to the result and drop them; returns f over those that stay."""
        k = self.active[which]
        if not k.size:
            return f
        self.final[:, k] = from_logs(self.y[:, which], self.mask)
        self.residual[k] = (np.abs(f) / self.size(self.y)).max(axis=0, initial=0.0)[which]
        self.ok[k] = why is None
        if error is not None:
            self.error[k] = error
        if why is not None and k.size:
            self.explain(np.flatnonzero(which), k, f, why)
        keep = ~which
        self.active, self.y, self.p = self.active[keep], self.y[:, keep], take_points(self.p, np.flatnonzero(keep))
        self.past = [x[:, keep] for x in self.past]
        if hasattr(self, "dY"):
            self.dY, self.dF = self.dY[..., keep], self.dF[..., keep]
        return f[:, keep]

    def explain(self, local: Array, k: Array, f: Array, why: str) -> None:
        error, gain = self.judge(local, f)
        self.error[k], self.gain[k] = error, np.where(np.isnan(self.gain[k]), gain, self.gain[k])
        for i, point in zip(local, k, strict=True):
            path = [*(x[:, i] for x in self.past[-_KEPT + 1 :]), self.final[:, point]]
            if not np.isfinite(f[:, i]).all():
                bad = ~np.isfinite(f[:, i])
                lost = ", ".join(n for n, flag in zip(self.names, bad, strict=True) if flag)
                how = "not positive" if self.mask[bad].all() else "undefined"
                said = f"the right-hand side of {lost} is {how} there"
            else:
                said = "; ".join(filter(None, (trend_text(path, self.names), self.growth(int(point)))))
            self.reason[point] = f"{why}: {said}" if said else why
