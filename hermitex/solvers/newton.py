"""Newton's method at all points at once, positive unknowns in logarithms.

    x_j -> x_j exp(t d_j)  (positive),   x_j -> x_j + t d_j  (the rest),   J_R d = -R,

    t halved until   |R(x(t))| < |R(x)|   or   |J_R(x)^{-1} R(x(t))| < |J_R(x)^{-1} R(x)|,

with R_i = F_i for an ordinary row and R_i = -log(1 - F_i/x_i) = log x_i - log rhs_i for that of a positive unknown:
saddle-point equations are close to power laws, and in logarithms those are linear.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import linear
from .batch import ROUNDING, Array, Field, Params, finite_params, positive_mask, require_feasible, start, take_points, worst_names
from .solution import NOWHERE, Solution
from .solve_limits import is_time_up, ran_out

_least, _largest, _sum = np.minimum.reduce, np.maximum.reduce, np.add.reduce

Both = Callable[[Array, Params], tuple[Array, Array]]


def newton(
    residual: Field,
    jacobian: Field | None,
    x0: Any,
    p: Params | None = None,
    *,
    names: Sequence[str],
    positive: Any = None,
    bent: Any = None,
    rtol: float = 1e-10,
    atol: float = 1e-14,
    max_steps: int = 100,
    both: Both | None = None,
    contraction: bool = True,
    raise_on_failure: bool = True,
) -> Solution:
    """Solve F(x, p) = 0, with F = x - rhs(x), at every point of a batch.

    Parameters
    ----------
    residual, jacobian : F(x, p) -> (n, B) and dF_i/dx_j (x, p) -> (n, n, B) for x of shape (n, B)
    x0 : array (n,) or (n, B)    start; a single point with scalar parameters gives scalars back
    p : dict of scalars or arrays whose last axis is the points
    positive : mask or names of the unknowns to be solved for in logarithms
    bent : mask of those whose row is taken in logarithms, too, all of them if not given: the others are ordinary rows, for
        F_i/x_i may be small wherever x_i is large, unless F_i is x_i - rhs_i
    rtol, atol : an unknown counts as |x| + atol/rtol (as x alone if positive), an equation as sum_j |J_ij| |x_j|
    both : optional function that returns (residual, Jacobian) at once, sharing their work
    contraction : estimate that of plain iteration, the spectral radius of 1 - J (needs residual = x - rhs)

    A point is done, and is not evaluated again, when its full, undamped Newton step d and its residual are below `rtol`. Its error
    is d + d r + d r^2 + ... = d/(1 - r), r = d/(the step before): at a root of multiplicity m, r is 1 - 1/m.
    At a singular Jacobian the step of least norm is taken, and the notes report it.

    Raises
    ------
    NotConverged    with the last state, unless raise_on_failure=False

    Examples
    --------
    >>> F = lambda x, p: x - p["a"]/x
    >>> J = lambda x, p: (1 + p["a"]/x**2)[None]
    >>> newton(F, J, [1.0], {"a": np.array([4.0, 9.0])}, names=["V"], positive=True)["V"].round(9)
    array([2., 3.])
    """
    p, names = dict(p or {}), tuple(names)
    x, single = start(x0, p, names)
    mask = positive_mask(positive, names)
    finite_params(p)
    require_feasible(x, mask, names)
    rows = mask if bent is None else mask & np.array(bent, dtype=bool)
    run = _NewtonRun(residual, jacobian, both, x, p, mask, rows, names, rtol, atol)
    with np.errstate(all="ignore"):
        run.iterate(max_steps)
        run.complete(p)
        run.settle(p)
        found = run.solution(contraction)
    found = found.point(0) if single else found
    return found.require() if raise_on_failure else found


class _NewtonRun:
    """The state of one call: full arrays over all points, compact ones over those not yet done."""

    def __init__(self, residual: Field, jacobian: Field | None, both: Both | None, x: Array, p: Params, mask: Array, rows: Array,
                 names: tuple[str, ...], rtol: float, atol: float) -> None:  # fmt: skip
        self.residual, self.jacobian, self.both = residual, jacobian, both
        self.mask, self.rows, self.names, self.rtol, self.floor = mask, rows, names, rtol, atol / rtol
        n, points = x.shape
        self.x, self.p, self.active = x, dict(p), np.arange(points)
        self.final, self.last, self.J_final = x.copy(), np.zeros(x.shape), np.full((n, n, points), np.nan)
        self.backward, self.forward = np.full(points, np.inf), np.full(points, np.inf)
        self.steps, self.ok = np.zeros(points, dtype=int), np.zeros(points, dtype=bool)
        self.singular, self.before = np.zeros(points, dtype=bool), np.full(points, np.inf)
        self.reason = np.full(points, "", dtype=object)
        self.logs, self.some, self.every = np.flatnonzero(mask), bool(mask.any()), bool(mask.all())
        bends = np.flatnonzero(rows)
        self.bends, self.diagonal = bends if bends.size < n else slice(None), (bends, bends)
        self.floors = np.where(mask, 0.0, self.floor)[:, None]
        self.unit, self.size_F, self.G = np.abs(x), np.abs(x), self.J_final
        self.unsound: Array | None = None  # the points at which a slope is infinite, if there are any

    def evaluate(self, x: Array, p: Params) -> tuple[Array, Array]:
        shape = (len(self.names), *x.shape)
        if self.both is not None:
            F, J = self.both(x, p)
        else:
            assert self.jacobian is not None
            F, J = self.residual(x, p), self.jacobian(x, p)
        F, J = np.asarray(F), np.asarray(J)
        F = F if F.shape == x.shape else np.broadcast_to(F, x.shape)
        return F, J if J.shape == shape else np.broadcast_to(J, shape)

    def iterate(self, max_steps: int) -> None:
        F, J = self.evaluate(self.x, self.p)
        lost = ~np.isfinite(F).all(axis=0)
        if lost.any():
            said = [f"the equation of {worst_names(np.abs(f), self.names)} {NOWHERE}" for f in F.T[lost]]
            self.measure(J)
            self.finish(lost, F, J, np.full(F.shape, np.inf), said)
            F, J = F[:, ~lost], J[..., ~lost]
        for step in range(max_steps + 1):
            self.step = step
            if not self.active.size:
                return
            if is_time_up():
                max_steps = step
            self.measure(J)
            R, d = self.direction(F, J)
            done = self.done(F, d)
            if step == max_steps:
                self.finish(~done, F, J, d, ran_out())
                F, J, d, R, done = F[:, done], J[..., done], d[:, done], R[:, done], done[done]
            if done.any():
                self.finish(done, F, J, d, None)
                F, J, d, R = F[:, ~done], J[..., ~done], d[:, ~done], R[:, ~done]
            if step == max_steps:
                return
            if not np.isfinite(_sum(d, axis=None)):
                lost = ~np.isfinite(d.sum(axis=0))
                self.finish(lost, F, J, d, "the Jacobian is not finite")
                F, J, d, R = F[:, ~lost], J[..., ~lost], d[:, ~lost], R[:, ~lost]
            if self.active.size:
                F, J, stuck = self.search(F, J, d, R)
                if stuck.any():
                    self.finish(stuck, F, J, d, "the residual does not decrease along the Newton step")
                    F, J = F[:, ~stuck], J[..., ~stuck]

    def measure(self, J: Array) -> None:
        """The size of x, and of each equation: the sum of its linearised terms."""
        size_x = np.abs(self.x) if self.every else np.abs(self.x) + self.floors
        if not self.every:
            self.unit = np.where(self.mask[:, None], 1.0, size_x) if self.some else size_x
        self.size_F = np.einsum("ijb,jb->ib", np.abs(J), size_x)
        self.unsound = None
        if not (_least(self.size_F, axis=None) > 0 and np.isfinite(_sum(self.size_F, axis=None))):
            sound = np.isfinite(self.size_F.sum(axis=0))
            self.size_F, self.unsound = np.where((self.size_F > 0) & sound, self.size_F, 1.0), ~sound

    def direction(self, F: Array, J: Array) -> tuple[Array, Array]:
        """R and the Newton step d in the coordinates with logarithms."""
        R, G = F, J
        if self.some:
            i = self.bends
            G = J * (self.x if self.every else np.where(self.mask[:, None], self.x, 1.0))
            t = F[i] / self.x[i]
            # d(F_i/x_i)/dlog x_j = x_j J_ij/x_i - delta_ij F_i/x_i
            G[i] /= self.x[i][:, None]
            G[self.diagonal] -= t
            G[i] *= bend_slope(t)[:, None]
            R = np.array(F)
            R[i] = logarithmic_step(t)
        self.G = G
        d = linear.step(G, -R)
        absurd = 1e6  # a step this many times the unknown is a sign of a singular Jacobian
        if not _largest(self.length(d)) <= absurd:  # singular there, if only to rounding, or not finite: the step of least norm
            k = np.flatnonzero(~(self.length(d) <= absurd))
            d[:, k], rank = linear.solve(G[..., k], -R[:, k])
            self.singular[self.active[k[rank < len(self.names)]]] = True
        if self.unsound is not None:
            d[:, self.unsound] = np.nan  # an infinite slope makes the step zero, which is not convergence
        return R, d

    def length(self, d: Array) -> Array:
        """Of a step, relative to x."""
        return np.asarray(_largest(np.abs(d) if self.every else np.abs(d) / self.unit, axis=0))

    def errors(self, F: Array, d: Array) -> tuple[Array, Array]:
        """The residual relative to the terms of its equation, and what the full step and those after it leave, relative to x."""
        step = self.length(d)
        return _largest(np.abs(F) / self.size_F, axis=0), step / (1 - np.where(step < self.before, step / self.before, 0.0))

    def done(self, F: Array, d: Array) -> Array:
        backward, forward = self.errors(F, d)
        # where the Jacobian is singular the step along its kernel means nothing
        enough = (forward <= self.rtol) | (self.singular[self.active] & (backward <= ROUNDING))
        return np.asarray((backward <= self.rtol) & enough | (backward == 0))

    def move(self, x: Array, d: Array) -> Array:
        if not self.some:
            return np.asarray(x + d)
        if self.every:
            return np.asarray(x * np.exp(d))
        return np.where(self.mask[:, None], x * np.exp(np.where(self.mask[:, None], d, 0.0)), x + d)

    def merit(self, R: Array, size: Array) -> Array:
        """|R|^2, ordinary rows relative to the size of their terms when the step began."""
        if self.some:
            size = np.where(self.rows[:, None], 1.0, size)
        part = R / size
        return np.asarray(_sum(part * part, axis=0))

    def nearer(self, R: Array, d: Array, t: Array, G: Array) -> Array:
        """The natural test: the next step with the old Jacobian is shorter, so the solution is nearer."""
        natural = 25  # steps for which the natural test may accept what raises the residual: it alone could run in a circle
        if self.step >= natural:
            return np.zeros(t.shape, dtype=bool)
        ahead = linear.step(G, R)
        return np.asarray(np.abs(ahead).max(axis=0) <= (1 - t / 4) * np.abs(d).max(axis=0))

    def bent(self, F: Array, x: Array) -> Array:
        if not self.some:
            return F
        R = np.array(F)
        R[self.bends] = logarithmic_step(F[self.bends] / x[self.bends])
        return R

    def search(self, F: Array, J: Array, d: Array, R: Array) -> tuple[Array, Array, Array]:
        """Halve the step until the residual decreases, point by point; the Jacobian comes with the first trial."""
        x = self.x
        size = self.size_F  # of this step's start, so that the merits are comparable
        before = self.merit(R, size)
        t = np.ones(x.shape[1])
        most_logs = 4.0  # a step multiplies a positive unknown by at most e^4
        if self.some and _largest(longest := _largest(np.abs(d[self.logs]), axis=0)) > most_logs:
            t = np.minimum(1.0, most_logs / np.maximum(longest, most_logs))
        trial = self.move(x, t * d)
        F_new, J_new = self.evaluate(trial, self.p)
        R_new = self.bent(F_new, trial)
        fine = self.merit(R_new, size) <= (1 - 1e-4 * t) * before
        if not fine.all():
            fine |= self.nearer(R_new, d, t, self.G)
        if not np.isfinite(_sum(J_new, axis=None)):
            fine &= np.isfinite(J_new.sum(axis=(0, 1)))
        stuck = np.zeros(x.shape[1], dtype=bool)
        if not fine.all():
            F_new, J_new = np.array(F_new), np.array(J_new)
            stale = np.flatnonzero(~fine)
            # below the rounding of its terms a residual cannot be lowered: no search
            stuck[stale] = (np.abs(F) / size).max(axis=0)[stale] <= ROUNDING
            self.halve(stale[~stuck[stale]], (trial, F_new, t, stuck), (x, d, size, before))
            trial[:, stuck], F_new[:, stuck], J_new[..., stuck] = x[:, stuck], F[:, stuck], J[..., stuck]
            again = stale[~stuck[stale]]
            if again.size:
                J_new[..., again] = self.evaluate(trial[:, again], take_points(self.p, again))[1]
        self.steps[self.active] += ~stuck
        self.before = np.where(stuck, self.before, np.where(t == 1, self.length(d), np.inf))
        self.x = trial
        return F_new, J_new, stuck

    def halve(self, bad: Array, state: tuple[Array, ...], begun: tuple[Array, ...]) -> None:
        trial, F_new, t, stuck = state
        x, d, size, before = begun
        halvings = 24  # 2^-24 of a step is 6e-8 of it: if the residual is not smaller there, the step does not descend
        for _ in range(halvings):
            if not bad.size:
                return
            t[bad] *= 0.5
            trial[:, bad] = self.move(x[:, bad], t[bad] * d[:, bad])
            F_new[:, bad] = self.residual(trial[:, bad], take_points(self.p, bad))
            R_new = self.bent(F_new[:, bad], trial[:, bad])
            fine = self.merit(R_new, size[:, bad]) <= (1 - 1e-4 * t[bad]) * before[bad]
            fine |= self.nearer(R_new, d[:, bad], t[bad], self.G[..., bad])
            bad = bad[~fine]
        stuck[bad] = True

    def finish(self, which: Array, F: Array, J: Array, d: Array, why: str | Sequence[str] | None) -> None:
        """Write the points `which` (of the active ones) to the full arrays and drop them from the active set."""
        k = self.active[which]
        if not k.size:
            return
        self.final[:, k], self.J_final[..., k] = self.x[:, which], J[..., which]
        backward, forward = self.errors(F, d)
        self.backward[k], self.forward[k] = backward[which], forward[which]
        self.last[:, k] = d[:, which]
        # at the rounding of its terms an equation is solved, however ill-conditioned: `.error` says how far off x is
        self.ok[k] = True if why is None else backward[which] <= ROUNDING
        if why is not None:
            self.explain(k, F[:, which], why)
        keep = ~which
        self.active, self.x, self.p = self.active[keep], self.x[:, keep], take_points(self.p, np.flatnonzero(keep))
        self.size_F, self.unit, self.G = self.size_F[:, keep], self.unit[:, keep], self.G[..., keep]
        self.unsound = self.unsound if self.unsound is None else self.unsound[keep]
        self.before = self.before[keep]

    def complete(self, p: Params) -> None:
        """The last step is taken where it may be felt, if what is left after it is far shorter."""
        felt = 1e-15  # a last step that is longer is taken: what is computed from the solution may feel it
        k = np.flatnonzero(self.ok & ~self.singular & (self.forward > felt))
        if not k.size or is_time_up():
            return
        self.active, self.x = k, self.final[:, k]
        self.measure(self.J_final[..., k])
        self.before, self.x = self.length(self.last[:, k]), self.move(self.x, self.last[:, k])
        F, J = self.evaluate(self.x, take_points(p, k))
        self.measure(J)
        _, d = self.direction(F, J)
        backward, forward = self.errors(F, d)
        better = ~self.singular[k] & (forward < self.forward[k]/4) & (backward <= np.maximum(self.backward[k], ROUNDING))
        self.singular[k] = False
        k = k[better]
        self.final[:, k], self.J_final[..., k], self.last[:, k] = self.x[:, better], J[..., better], d[:, better]
        self.backward[k], self.forward[k] = backward[better], forward[better]

    def settle(self, p: Params) -> None:
        """Full steps where an unknown near 0 is known to the least size of an unknown only, as long as each is far shorter.

        Beside the infinite slope of log(x) at 0 that size makes a step short whose x is off by all of itself.
        """
        small = (np.abs(self.final) < self.floors) & (np.abs(self.last) > self.rtol*np.abs(self.final))
        k = np.flatnonzero(self.ok & ~self.singular & small.any(axis=0))
        d = self.last[:, k]
        nearer = 5  # steps that an unknown near 0 takes to relative accuracy
        for _ in range(nearer):
            if not k.size or is_time_up():
                return
            x = self.final[:, k] + d*~self.mask[:, None]
            F, J = self.evaluate(x, take_points(p, k))
            step = linear.step(J, -F)
            shorter = np.all(np.abs(step) <= np.maximum(np.abs(d)/4, self.rtol*np.abs(x)), axis=0)
            k, x, J, step = k[shorter], x[:, shorter], J[..., shorter], step[:, shorter]
            self.final[:, k], self.J_final[..., k] = x, J
            more = np.any((np.abs(step) > self.rtol*np.abs(x)) & (np.abs(x) < self.floors), axis=0)
            k, d = k[more], step[:, more]

    def explain(self, k: Array, F: Array, why: str | Sequence[str]) -> None:
        for i, point in enumerate(k):
            if self.ok[point]:
                continue
            if not isinstance(why, str):
                self.reason[point] = why[i]
                continue
            names = worst_names(np.abs(F[:, i]) / np.abs(self.final[:, point]).clip(1e-300), self.names)
            self.reason[point] = f"{why} (largest in the equation of {names}){self.runaway(self.final[:, point])}"

    def runaway(self, x: Array) -> str:
        small, large = self.mask & (x < 1e-14), np.abs(x) > 1e14
        said = [f"{n} runs to 0" for n, s in zip(self.names, small, strict=True) if s]
        said += [f"{n} runs to infinity" for n, s in zip(self.names, large, strict=True) if s]
        return "; " + ", ".join(said) if said else ""

    def solution(self, contraction: bool) -> Solution:
        points, notes = len(self.ok), []
        if self.singular.any():
            notes.append(f"singular Jacobian at {int(self.singular.sum())} of {points} points: steps of least norm")
        poor = self.ok & (self.forward > self.rtol)
        if poor.any():
            notes.append(f"ill-conditioned at {int(poor.sum())} of {points} points: solved to rounding, "
                         f"which leaves a relative error of {float(self.forward[poor].max()):.1g}")  # fmt: skip
        n = len(self.names)
        K = np.eye(n)[:, :, None] - self.J_final
        return Solution(
            dict(zip(self.names, self.final, strict=True)),
            residual=self.backward,
            converged=self.ok,
            iterations=self.steps,
            stability=linear.spectral_radius(K) if contraction else np.full(points, np.nan),
            error=self.forward,
            method="newton",
            reason=self.reason,
            unknowns=self.names,
            notes=tuple(notes),
            origin={"rtol": self.rtol, "atol": self.rtol * self.floor},
        )


def logarithmic_step(t: Array) -> Array:
    """-log(1 - t), continued by its tangent beyond t = 1/2: monotone, zero only at t = 0.

    >>> logarithmic_step(np.array([0.0, 0.5, 1.0])).round(6)
    array([0.      , 0.693147, 1.693147])
    """
    inside = np.minimum(t, 0.5)
    return np.asarray(2 * (t - inside) - np.log1p(-inside))


def bend_slope(t: Array) -> Array:
    """The derivative of `logarithmic_step`."""
    return np.asarray(1/np.maximum(1 - t, 0.5))
