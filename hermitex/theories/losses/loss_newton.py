r"""x - rhs(x) = 0 in (Vhat_1, Vhat_2, qhat_1, qhat_2, zetatilde, psitilde, m): one point of a convex loss, by Newton on a `Grid`.

The equations are those of `losses.loss_equations`; the slopes of the averages come with the grid, those of the
algebra between from complex steps. A solution is accepted when a grid finer in any direction does not change it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from hermitex.solvers.batch import merge_solutions
from hermitex.solvers.newton import newton
from hermitex.solvers.restarts import solve_robustly
from hermitex.solvers.solution import Solution
from hermitex.theories.losses import sign_labels
from hermitex.theories.losses.loss_equations import Structure
from hermitex.theories.losses.loss_grid import LossGrid, LossRule
from hermitex.theories.losses.sign_labels import SignGrid

Array = np.ndarray
TORN = ("Vhat1", "Vhat2", "qhat1", "qhat2", "zetatilde", "psitilde", "m")
UNKNOWNS = (*TORN[:6], "m", "V2", "V1", "zeta", "psi", "q1", "q2")  # the torn ones first
_POSITIVE = TORN[:4]  # the names Vhat_1, Vhat_2, qhat_1, qhat_2
_UNBOUNDED = ("m runs to infinity: along the spike the loss falls without bound, so it has no minimiser as d -> oo; "
              "take dimension=d, whose 1/d term bounds m")
_FLOOR = 1e-3  # what is smaller counts as of that size when two grids are compared


def members(x: Array, at: Mapping[str, float]) -> dict[str, Any]:
    """V2, V1, zeta, psi, q1, q2 and the traces T0, T1, T2 from the torn unknowns."""
    alpha, beta, lamda, c, epsilon = (at[n] for n in ("alpha", "beta", "lamda", "c", "epsilon"))
    Vhat1, Vhat2, qhat1, qhat2, zetatilde, psitilde, m = x
    L = lamda + Vhat2
    b = c*beta*Vhat1
    half = L + c*Vhat1 - b
    root = np.sqrt(half**2 + 4*L*b)
    V2 = 2/(half + root) if half.real > 0 else (root - half)/(2*L*b)
    u = 1/(1 + b*V2)
    V1 = c*V2*u
    T0 = V2**2/(1 - beta*(c*Vhat1*u*V2)**2)
    T1 = c*u**2*T0
    T2 = c*u**2*T1 + beta*V1**2
    source = c*zetatilde**2*alpha**2/beta + qhat2 + epsilon*m**2/(beta*V2**2)
    middle = psitilde**2*alpha**2/beta + qhat1
    return {"V2": V2, "V1": V1, "zeta": alpha*c*V2*zetatilde, "psi": alpha*V1*psitilde, "q1": source*T1 + middle*T2,
            "q2": source*T0 + middle*T1, "rho": 1 - at["gamma"]**2, "L": L, "u": u, "T0": T0, "T1": T1, "T2": T2}


_GRIDDED = ("V1", "V2", "m", "zeta", "psi", "q1", "q2")


def _state(x: Array, at: Mapping[str, float]) -> Array:
    made = {**members(x, at), "m": x[6]}
    return np.array([made[n] for n in _GRIDDED])


class Point:
    """One point of one structure: its equations on a grid."""

    def __init__(self, st: Structure, at: Mapping[str, float], grid: LossGrid) -> None:
        self.at, self.grid = dict(at), grid
        gone = {"Vhat2": st.linear, "qhat2": st.linear, "psitilde": bool(st.aligned), "m": st.mute}
        self.open = np.array([not gone.get(n, False) for n in TORN])

    def full(self, x: Array) -> Array:
        """All torn unknowns; 0 for the ones that vanish by structure."""
        everything = np.zeros(len(TORN))
        everything[self.open] = x
        return everything

    def both(self, x: Array) -> tuple[Array, Array]:
        """x - rhs and its slopes, of the torn unknowns that are open."""
        X, at, grid = self.full(x), self.at, self.grid
        v = _state(X, at)
        step = 1e-30  # along the imaginary axis: its square is below rounding, so that the slope is exact
        dv = np.stack([_state(X + 1j*step*e, at).imag/step for e in np.eye(len(TORN))], axis=1)
        if not np.all(np.isfinite(v)) or not np.all(grid.fields(v)[3] >= 0):
            n = int(self.open.sum())
            return np.full(n, np.nan), np.full((n, n), np.nan)
        averages = grid.averages(v)
        J_s = averages.values[1]
        mu_0, mu_1, mu_22 = grid.mu_0, grid.mu_1, grid.mu_22
        weigh = grid.weight*np.stack([mu_1**2, mu_22, mu_1**2, mu_22, grid.kappa*mu_1, mu_1, mu_0])
        ratio = at["alpha"]/at["beta"]
        factor = np.array([ratio, ratio, ratio, ratio, 1, 1, 1])
        which = (1, 1, 2, 2, 0, 3, 0)
        right = factor*np.array([w @ averages.values[k] for w, k in zip(weigh, which, strict=True)])
        slope = factor[:, None]*np.array([w @ averages.slopes[k] for w, k in zip(weigh, which, strict=True)]) @ dv
        F, dF = X - right, np.eye(len(TORN)) - slope
        # E mu_0 s = epsilon m/(alpha V2), in the units of m
        size = grid.weight @ (mu_0**2*J_s) + at["epsilon"]/(at["alpha"]*v[1])
        push, bend = at["epsilon"]*v[2]/(at["alpha"]*v[1]), np.zeros(len(TORN))
        bend[6] = at["epsilon"]/(at["alpha"]*v[1])
        F[6], dF[6] = (push - right[6])/size, (bend - push/v[1]*dv[1] - slope[6])/size
        return F[self.open], dF[np.ix_(self.open, self.open)]

    def solve(self, start: Array, tolerance: float) -> Solution:
        """Newton from a start of all torn unknowns."""
        names = tuple(np.array(TORN)[self.open])

        def both(x: Array, p: Any) -> tuple[Array, Array]:
            F, dF = self.both(x[:, 0])
            return F[:, None], dF[:, :, None]

        def residual(x: Array, p: Any) -> Array:
            return both(x, p)[0]

        first = start[self.open][:, None]
        options: dict[str, Any] = {"names": names, "positive": [n for n in names if n in _POSITIVE], "rtol": tolerance,
                                   "raise_on_failure": False}
        with np.errstate(all="ignore"):
            found = newton(residual, None, first, {"point": np.zeros(1)}, both=both, **options)
            if found.all_converged or self.unbounded:
                return found
            return solve_robustly(first, {"point": np.zeros(1)}, residual=residual, both=both, max_steps=40, **options)

    @cached_property
    def unbounded(self) -> bool:
        """True if nothing bounds m."""
        return self.at["epsilon"] == 0 and bool(self.open[6]) and self.grid.falls()

    def unknowns(self, x: Array) -> Array:
        """All unknowns, from the torn ones."""
        values = {**dict(zip(TORN, x, strict=True)), **members(x, self.at)}
        return np.array([values[n] for n in UNKNOWNS])

    def sizes(self, values: Array) -> Array:
        """The scale of each unknown's moves: an unknown of either sign may be 0, so |zetatilde|^2 <= beta qhat1/alpha is used."""
        x, ratio = dict(zip(UNKNOWNS, np.abs(values), strict=True)), self.at["alpha"]/self.at["beta"]
        tilde, alpha = np.sqrt(x["qhat1"]/ratio), self.at["alpha"]
        least = {"zetatilde": tilde, "psitilde": tilde, "zeta": alpha*self.at["c"]*x["V2"]*tilde, "psi": alpha*x["V1"]*tilde,
                 "m": min(1.0, float(np.sqrt(x["q2"])))}
        gone = np.array([1.0 if v == 0 else v for v in x.values()])  # what the structure makes vanish stays where it is
        return np.maximum(gone, _FLOOR*np.array([least.get(n, 0.0) for n in UNKNOWNS]))

    def everything(self, x: Array) -> dict[str, float]:
        """Every unknown and observable at a solution."""
        at = self.at
        made = members(x, at)
        seen = self.grid.observables(_state(x, at))
        seen["train_objective"] = seen["train_error"] + at["lamda"]*at["beta"]*made["q2"]/(2*at["alpha"])
        values = {**dict(zip(TORN, x, strict=True)), **made}
        order = (*UNKNOWNS, "rho", "L", "u", "T0", "T1", "T2")
        return {**{n: float(values[n]) for n in order}, **{n: float(e) for n, e in seen.items()}}


def solved(st: Structure, at: Mapping[str, np.ndarray], start: Mapping[str, np.ndarray], tolerance: float) -> Solution:
    """The solution at points of one structure, one after another, each from its neighbour or from lam = 1 down."""
    points = len(at["lamda"])
    line = _PointSequence(st, tolerance)
    near, parts = None, []
    for k in range(points):
        here = {n: float(v[k]) for n, v in at.items()}
        first = np.array([float(start[n][k]) if n in start else (1.0 if n in _POSITIVE else 0.0) for n in TORN]) if start else near
        found = line.point(here, first)
        if not found.all_converged and first is not None:
            found = line.point(here, None)
        near = np.array([found[n][0] for n in TORN]) if found.all_converged else None
        parts.append((np.array([k]), found))
    return merge_solutions(parts, points, UNKNOWNS)


class _PointSequence:
    """Points one after another: they begin with the rule that was fine enough for the last one, and share their grids."""

    def __init__(self, st: Structure, tolerance: float) -> None:
        self.st, self.tolerance = st, tolerance
        self.made = SignGrid if sign_labels.supports_sign_grid(st) else LossGrid
        self.rule = self.made.first
        self.grids: dict[tuple, LossGrid] = {}

    def grid(self, at: Mapping[str, float], rule: LossRule) -> LossGrid:
        """The grid of a point: alpha, beta, lam and the dimension do not enter it."""
        key = (rule, *(v for n, v in sorted(at.items()) if n not in ("alpha", "beta", "lamda", "epsilon")))
        most_grids = 12  # kept for further points
        if key not in self.grids:
            if len(self.grids) >= most_grids:
                self.grids.clear()
            self.grids[key] = self.made(self.st, at, rule)
        return self.grids[key]

    def point(self, at: Mapping[str, float], start: Array | None) -> Solution:
        """Solve, compare with grids finer along one axis each, and refine the axes that matter until none does."""
        x = self.followed(at) if start is None else _usable(start)
        gaps, spent = np.full((1, 2), np.inf), 0
        finest = 500_000  # nodes of a grid
        finest_noisy = 2_000_000  # nodes of a grid with an axis for the noise
        rounds = 12  # of refinement, each of one axis or more
        for_test_loss = 4  # rounds in which the test loss is refined too
        for k in range(rounds):
            point = Point(self.st, at, self.grid(at, self.rule))
            found = point.solve(x, self.tolerance/10)
            x, spent = point.full(found.state[:, 0]), spent + int(np.max(found.iterations))
            if not found.all_converged:
                break
            axes = point.grid.axes
            gaps = np.array([_moved(point, Point(self.st, at, self.grid(at, self.rule.finer(axis))), x) for axis in axes])
            looked_at = gaps if k < for_test_loss else gaps[:, :1]
            # where a finer rule costs little an unknown far below _FLOOR gets its digits, too
            least = self.tolerance/(self.made.beyond if k < for_test_loss else 1)
            rough = [axis for axis, gap in zip(axes, looked_at.max(axis=1), strict=True) if not gap <= least]
            if not rough or point.grid.size > (finest if point.grid.joined else finest_noisy):
                break
            for axis in rough:
                self.rule = self.rule.finer(axis)
        return _verdict(point, found, x, gaps.max(axis=0), spent, self.tolerance)

    def followed(self, at: Mapping[str, float]) -> Array:
        """A start: the solution followed from lam = 1 down, a decade a step."""
        large_lam = 1.0  # a ridge from which Newton's method arrives, and the solution is followed down
        low = min(max(at["lamda"], 1e-8), large_lam)
        steps = int(np.ceil(-np.log10(low) - 1e-9))
        x = _usable(np.full(len(TORN), np.nan))
        rough = 1e-4  # tolerance of the starts on the way
        for k in range(steps):
            point = Point(self.st, {**at, "lamda": max(at["lamda"], low**(k/steps))}, self.grid(at, self.rule))
            found = point.solve(x, rough)
            x = _usable(point.full(found.state[:, 0]))
            if not found.all_converged and point.unbounded:
                break
        return x


def _moved(point: Point, finer: Point, x: Array) -> tuple[float, float]:
    """How far a finer grid would move the solution (one Newton step) and the errors; and, apart, the test loss.

    The mean loss of a fresh sample may be carried by rare ones, where the loss grows like exp(f) and lam is small.
    """
    with np.errstate(all="ignore"):
        F, dF = finer.both(x[point.open])
        if not (np.all(np.isfinite(F)) and np.all(np.isfinite(dF))):
            return np.inf, np.inf
        step = np.linalg.lstsq(dF, F, rcond=None)[0]
        one, other = point.everything(x), finer.everything(x)
        here, there = (point.unknowns(y) for y in (x, x - finer.full(step)))
        far = np.abs(there - here)/point.sizes(here)
        gaps = [abs(one[n] - other[n])/max(abs(one[n]), _FLOOR) for n in ("test_error", "train_error", "test_loss")]
    moved, seen = max(float(np.max(far)), *gaps[:2]), gaps[2]
    return (moved if np.isfinite(moved) else np.inf), (seen if np.isfinite(seen) else np.inf)


def _usable(x: Array) -> Array:
    positive = np.array([n in _POSITIVE for n in TORN])
    return np.where(np.isfinite(x) & ((x > 0) | ~positive), x, np.where(positive, 1.0, 0.0))


def _verdict(point: Point, found: Solution, x: Array, gaps: Array, spent: int, tolerance: float) -> Solution:
    error, of_loss = (float(e) for e in gaps)
    with np.errstate(all="ignore"):
        finite = np.all(np.isfinite(point.grid.fields(_state(x, point.at))[3]))
        values = point.everything(x) if finite else dict.fromkeys((*UNKNOWNS, "test_error"), np.nan)
    met = found.all_converged
    accepted = 1e3  # times the tolerance: what is not called an answer beyond it
    good = met and error <= accepted*tolerance
    notes = []
    if good and error > tolerance:
        notes.append(f"quadrature: relative error {error:.1e} reached, {tolerance:.0e} asked")
    if good and of_loss > accepted*tolerance:
        values["test_loss"] = np.nan
        notes.append("test_loss is nan: the mean loss of a fresh sample is carried by samples too rare to be resolved")
    poor = f"the averages over a sample hold {error:.1e} only, {tolerance:.0e} asked"
    reason = "" if good else poor if met else _UNBOUNDED if point.unbounded else str(np.ravel(found.reason)[0])
    far = np.array([max(error, float(np.max(found.error)))])
    return Solution({n: np.array([v]) for n, v in values.items()}, residual=found.residual, converged=np.array([good]),
                    iterations=np.array([spent]), stability=found.stability, error=far, method=found.method,
                    reason=np.array([reason], dtype=object), unknowns=UNKNOWNS, notes=tuple(notes),
                    origin={"tolerance": tolerance, "quadrature_error": error, "nodes": point.grid.size,
                            "steps": point.grid.rule.steps})
