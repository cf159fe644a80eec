"""dx/dt = rhs(t, x): the right-hand sides of a program integrated over time, by two routes that must agree.

    x    steps held to tolerance/100, on the nodes in force
    x'   steps held to tolerance/10, on other nodes              max over time of |x - x'|/|x| <= tolerance

The errors of the steps and of the averages are carried along by the flow, which may enlarge them: the error of a
trajectory is how far the two are apart. Knows nothing of SymPy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hermitex.errors import NO_NUMBER, BadInput, UnknownName, brief
from hermitex.kernels.parameter_conditions import LAW, violated_conditions
from hermitex.show.progress import reporter
from hermitex.solvers.interval import clip_to_interval, interval_text, is_outside
from hermitex.solvers.ode import Interpolant, TooManySteps, Trajectory, integrate
from hermitex.solvers.solution import REFUSED
from hermitex.solvers.solve_limits import is_time_up, ran_out, require_tolerance
from hermitex.solvers.sweep_grid import real_array
from hermitex.systems.newton_step import SMALL
from hermitex.systems.solve import points_of, refusal_reasons
from hermitex.systems.state_evaluation import States

TIME, OF_A_FLOW = "t", 1e-9  # the letter; the tolerance where none is given
_IMPLICIT = 200_000  # evaluations after which a flow counts as stiff, and as too long
_LEAST = 3e-14  # SciPy's integrators bear no smaller rtol
_TOO_LONG = f"more than {_IMPLICIT:,} evaluations of the rates; take a shorter time or a looser tolerance="
_METHODS = ("auto", "DOP853", "RK45", "RK23", "Radau", "BDF", "LSODA")


def checked_start(unknowns: Sequence[str], domain: Mapping[str, tuple[float, float]], start: Mapping[str, Any]) -> dict[str, float]:
    """A finite number inside its domain for every unknown."""
    for name in start:
        if name not in unknowns:
            raise UnknownName(name, unknowns, "name in start")
    if missing := [u for u in unknowns if u not in start]:
        raise BadInput(f"solve: where does {', '.join(missing)} start? Give start={{{missing[0]!r}: number}}")
    values = {}
    for u in unknowns:
        try:
            values[u] = float(start[u])
        except NO_NUMBER:
            raise BadInput(f"solve: start {u} = {brief(start[u])} is not a number") from None
        if not np.isfinite(values[u]):
            raise BadInput(f"solve: start {u} is {values[u]}; every start must be finite")
        if u in domain and is_outside(values[u], domain[u]):
            raise BadInput(f"solve: start {u} = {values[u]:g} is outside its domain {interval_text(u, domain[u])}")
    return values


def checked_times(t: Any) -> np.ndarray:
    """A number (from 0 to there), (t0, t1), or a monotone list of times that begins where the flow starts."""
    if t is None:
        raise BadInput("solve: t has no value; give t=(0, 10), the times to report, or the time to reach")
    try:
        times = real_array(t)
    except NO_NUMBER:
        raise BadInput(f"solve: t = {brief(t)} is not a number or a list of times") from None
    if times.ndim > 1 or not times.size or not np.isfinite(times).all():
        raise BadInput("solve: t is a finite number, (t0, t1) or a list of times")
    if times.ndim == 0 or times.size == 1:
        return times.reshape(())
    if not (np.all(np.diff(times) > 0) or np.all(np.diff(times) < 0)):
        raise BadInput("solve: the times in t increase, or decrease, from where the flow starts")
    return times


def trajectory(program: Any, numbers: Mapping[str, float], start: Mapping[str, float], t: np.ndarray, *,
               domain: Mapping[str, tuple[float, float]], tolerance: float, method: str = "auto", events: Sequence[str] = (),
               terminal: Sequence[str] = (), progress: bool = False) -> Trajectory:
    """One trajectory, converged or not; see `Flow.solve`. `events` name observables whose zeros are recorded."""
    if method not in _METHODS:
        raise UnknownName(method, _METHODS, "method of a flow")
    if not 0 < tolerance < 1:
        raise BadInput(f"solve: tolerance is a number between 0 and 1, not {tolerance!r}")
    run = _PointFlow(program, numbers, start, domain, tolerance, method, progress)
    times = np.array([0.0, float(t)]) if t.ndim == 0 else t
    if times[0] == times[-1]:
        times = np.array([times[0]])
    found = run.solved(times, list(events), list(terminal))
    return at_end(found) if t.ndim == 0 else found


class _PointFlow:
    """One flow at one point of its parameters."""

    def __init__(self, program: Any, numbers: Mapping[str, float], start: Mapping[str, float],
                 domain: Mapping[str, tuple[float, float]], tolerance: float, method: str, progress: bool = False) -> None:
        self.program, self.tolerance, self.method = program, tolerance, method
        self.unknowns = tuple(u for u in program.unknowns if u != TIME)
        self.domain = {u: domain[u] for u in self.unknowns if u in domain}
        self.x0 = np.array([start[u] for u in self.unknowns])
        self.states = States(program, numbers, tolerance/30)
        self.progress, self.integrations = progress, 0

    def _named(self, t: Any, x: np.ndarray) -> dict[str, Any]:
        return {TIME: t, **dict(zip(self.unknowns, x, strict=True))}

    def _inside(self, x: np.ndarray) -> np.ndarray:
        """The state with what a step carried across a bound put back: the rate beyond is not defined."""
        if not self.domain:
            return x
        return np.stack([clip_to_interval(v, self.domain[u]) if u in self.domain else v for u,
                         v in zip(self.unknowns, x, strict=True)])

    def _rate(self, arrays: Mapping[str, Any]) -> Any:
        def rate(t: float, x: np.ndarray, p: Any) -> np.ndarray:
            if is_time_up():
                raise TooManySteps
            out = self.states.call("right_hand_sides", self._named(t, self._inside(x)), arrays)
            return np.array([out[f"rhs/{u}"][0] for u in self.unknowns])

        return rate

    def _integrated(self, times: np.ndarray, rtol: float, arrays: Mapping[str, Any], method: str, **options: Any) -> Trajectory:
        """By an explicit method, or where that takes too many steps by one for stiff equations."""
        size = np.maximum(np.abs(self.x0), SMALL)
        rtol = max(rtol, _LEAST)
        how = {"names": self.unknowns, "rtol": rtol, "atol": 1e-2*rtol*size, "raise_on_failure": False, **options}
        rate = self._rate(arrays)
        if self.progress:
            self.integrations += 1
            rate = _told(rate, times, f"flow, integration {self.integrations}")
        explicit = 50_000  # evaluations after which a flow counts as stiff
        try:
            return integrate(rate, self.x0, times, method="DOP853" if method == "auto" else method,
                             most=explicit if method == "auto" else None, **how)
        except TooManySteps:
            if is_time_up():
                raise
            return integrate(rate, self.x0, times, method="Radau", most=_IMPLICIT, **how)

    def _hooks(self, arrays: Mapping[str, Any], events: Sequence[str]) -> dict[str, Any]:
        return {e: (lambda t, x, p, e=e: float(self.states.call("observables", self._named(t, self._inside(x)), arrays)[e][0]))
                for e in events}

    def solved(self, times: np.ndarray, events: list[str], terminal: list[str]) -> Trajectory:
        """Integrate, look at the averages along the path, integrate once more; until both agree."""
        self.states.examine(self._named(times[0], self.x0))
        if lost := self._lost(times[0]):
            return self._finished(replace(self._standing(times[:1]), reason=lost), np.inf, events)
        if len(times) == 1:
            return self._finished(self._standing(times), 0.0, events)
        try:
            found, error = self._agreeing(times, events, terminal)
        except TooManySteps:
            return self._finished(replace(self._standing(times[:1]), reason=ran_out(_TOO_LONG)), np.inf, events)
        return self._finished(found, error, events)

    def _agreeing(self, times: np.ndarray, events: list[str], terminal: list[str]) -> tuple[Trajectory, float]:
        """A trajectory and what another one differs from it by: below the tolerance, or as good as it gets."""
        rtol, how, error = self.tolerance, self.method, np.inf
        rounds = 6  # of two integrations that are compared; chosen by trial
        gain = 4.0  # of a second attempt with smaller steps, or there is no third
        for _ in range(rounds):
            arrays = self.states.quad.arrays()
            found = self._integrated(times, rtol/100, arrays, how, events=self._hooks(arrays, events), terminal=terminal)
            if not found.converged:
                break
            how = str(found.method) if how == "auto" else how  # what was stiff is stiff
            if not self._shown(found):
                continue
            reached = np.asarray(found[TIME])
            if reached[0] == reached[-1]:
                ends = next((e for e in terminal if np.size(found.events[e][TIME])), terminal[0])
                raise BadInput(f"solve: the event {ends} is 0 where the flow starts, at t = {reached[0]:g}, and would end "
                               "it there; start elsewhere, or leave it out of terminal=")
            again = reached if len(reached) > 2 else np.linspace(float(reached[0]), float(reached[-1]), 3)
            other = self._integrated(again, rtol/10, self.states.other, how)
            last, error = error, self._apart(found, other) if other.converged else np.inf
            if error > last/gain:  # what the flow makes of rounding
                break
            if error <= self.tolerance or rtol <= 1e3*_LEAST or not other.converged:
                break
            rtol = max(rtol*min(0.1, self.tolerance/error), 1e3*_LEAST)
            self.states.tolerance = max(self.states.tolerance*min(0.1, self.tolerance/error), 4e-15)
        return found, error

    def _standing(self, times: np.ndarray) -> Trajectory:
        return Trajectory({TIME: times, **dict(zip(self.unknowns, self.x0[:, None], strict=True))}, float("nan"), True, 0,
                          method="start", unknowns=self.unknowns)

    def _lost(self, t: float) -> str:
        """The rate that is not finite where the flow starts."""
        out = self.states.call("right_hand_sides", self._named(t, self.x0))
        return next((f"the rate of {u} is not finite where the flow starts, at t = {t:g}" for u in self.unknowns
                     if not np.isfinite(out[f"rhs/{u}"]).all()), "")

    def _shown(self, found: Trajectory) -> bool:
        """Did the averages hold along the path on the rules that were used? Else they are refined."""
        t = np.asarray(found["t"])
        shown = 33  # states of the path at which averages are examined
        pick = np.unique(np.rint(np.linspace(0, len(t) - 1, shown)).astype(int))
        before = self.states.quad.arrays()
        x = self._inside(np.array([found[u][pick] for u in self.unknowns]))
        self.states.examine(self._named(t[pick], x))
        return self.states.quad.arrays() is before

    def _apart(self, a: Trajectory, b: Trajectory) -> float:
        """max |x - x'|/|x|: at the times of a that b knows."""
        t = np.asarray(a["t"])
        x = np.array([a[u] for u in self.unknowns])
        assert b.dense is not None
        y = np.array([(b if len(b["t"]) == len(t) else b.dense(t))[u] for u in self.unknowns])
        top = np.max(np.abs(x), axis=1, keepdims=True)
        floor = 1e-3  # a variable is measured against that part of its largest value
        size = np.maximum(np.abs(x), floor*np.where(top > 0, top, 1.0))
        return float(np.max(np.abs(x - y)/size))

    def _left(self, found: Trajectory) -> str:
        """Which variable went beyond its domain by more than the error of a step, and when: also between the times reported."""
        times, path = np.asarray(found[TIME]), found.dense
        steps = np.unique(np.concatenate([times, path.steps])) if isinstance(path, Interpolant) else times
        steps = steps[(steps >= times.min()) & (steps <= times.max())][::1 if times[-1] >= times[0] else -1]
        along = found.value if path is None else path(steps)
        for u, (lo, hi) in self.domain.items():
            x = np.asarray(along[u])
            size = 100*self.tolerance*max(float(np.max(np.abs(x))), SMALL)
            away = np.flatnonzero((x < lo - size) | (x > hi + size))
            if away.size:
                k, when = int(away[0]), steps[away[0]]
                if path is not None and k:
                    when = _crossing(path, u, lo if x[k] < lo else hi, steps[k - 1], steps[k])
                return f"{u} leaves its domain {interval_text(u, (lo, hi))} at t = {when:.6g}"
        return ""

    def _finished(self, found: Trajectory, error: float, events: Sequence[str]) -> Trajectory:
        """Observables along the path, and the verdict."""
        t, held = np.asarray(found[TIME]), error <= self.tolerance
        x = self._inside(np.array([found[u] for u in self.unknowns]))
        seen = self.states.call("observables", self._named(t, x))
        reason = next(filter(None, violated_conditions(seen, t.shape)), "") or str(found.reason) or self._left(found)
        if not reason and not held:
            reason = "the averages along the path are not held"
            if np.isfinite(error):
                reason = f"two integrations differ by {error:.1e}: the flow makes errors grow, or an average is not held"
        quadrature = {"quadrature_error": self.states.error, "nodes": self.states.quad.nodes}
        return replace(found, value=self._seen(t, x, events), converged=not reason, error=error, reason=reason,
                       dense=None if found.dense is None else FlowPath(found.dense, self, tuple(events)),
                       origin={"tolerance": self.tolerance, **quadrature})

    def _seen(self, t: np.ndarray, x: np.ndarray, events: Sequence[str]) -> dict[str, np.ndarray]:
        """Times, unknowns and observables along the path."""
        seen = self.states.call("observables", self._named(t, x)) if self.program.observables else {}
        seen = {o: v for o, v in seen.items() if not o.startswith(LAW)}
        return {TIME: t, **dict(zip(self.unknowns, x, strict=True)),
                **{o: np.array(np.broadcast_to(v, t.shape)) for o, v in seen.items() if o not in events}}


def _told(rate: Any, times: np.ndarray, what: str) -> Any:
    """The same rate, which reports on stderr how much of the time is integrated."""
    tell, reached = reporter(what, "percent"), -1

    def told(t: float, x: np.ndarray, p: Any) -> Any:
        nonlocal reached
        now = int(100*(t - times[0])/(times[-1] - times[0]))
        if now > reached:
            reached = now
            tell(now, 100)
        return rate(t, x, p)

    return told


def _crossing(path: Any, u: str, bound: float, before: float, after: float) -> float:
    """When a variable that is inside its bound before, and outside after, is there: by halves."""
    out = path(after)[u] > bound
    for _ in range(60):
        middle = (before + after)/2
        before, after = (before, middle) if (path(middle)[u] > bound) == out else (middle, after)
    return float(after)


class FlowPath:
    """Unknowns and observables at any time in between."""

    def __init__(self, dense: Any, flow: _PointFlow, events: tuple[str, ...]) -> None:
        self.dense, self.flow, self.events = dense, flow, events

    def __call__(self, t: Any) -> dict[str, Any]:
        times = np.asarray(t, dtype=float)
        flat = times.reshape(-1)
        x = self.flow._inside(np.array(list(self.dense(flat).values())))
        values = self.flow._seen(flat, x, self.events)
        return {n: v.reshape(times.shape) if times.ndim else float(v[0]) for n, v in values.items() if n != TIME}


def at_end(found: Trajectory) -> Trajectory:
    """The values at the last time only: what a flow that is given the time to reach answers."""
    return replace(found, value={n: float(np.ravel(v)[-1]) for n, v in found.value.items()})


def many(program: Any, numbers: Mapping[str, Any], start: Mapping[str, Any], t: Any, *, domain: Mapping[str, tuple[float, float]],
         tolerance: float, method: str = "auto", events: Sequence[str] = (), terminal: Sequence[str] = (), progress: bool = False
         ) -> Trajectory:
    """The trajectory at every point of the broadcast numbers; the times are the last axis. What a session and a file share."""
    require_tolerance(tolerance)
    program, numbers = program.bound(numbers)
    flat, shape = points_of(program, numbers)
    times, x0 = checked_times(t), checked_start([u for u in program.unknowns if u != TIME], domain, start)
    options: dict[str, Any] = {"domain": domain, "tolerance": tolerance, "method": method, "progress": progress}
    why = refusal_reasons(program, flat, int(np.prod(shape)))
    if not shape:
        if why[0]:
            found = _refused(program, np.atleast_1d(times), tolerance, why[0])
            return found if times.ndim else at_end(found)
        return trajectory(program, {n: float(v) for n, v in flat.items()}, x0, times, events=events, terminal=terminal, **options)
    if times.size == 2:
        raise BadInput("solve: with arrays of parameters every trajectory is reported at the same times; give more than two in t, "
                       "or the time to reach")
    if events:
        raise BadInput("solve: events are those of one trajectory; give each parameter one number")
    rows = [_refused(program, np.atleast_1d(times), tolerance, why[k]) if why[k] else trajectory(
                program, {n: float(v[k] if v.ndim else v) for n, v in flat.items()}, x0, times, **options)
            for k in range(int(np.prod(shape)))]
    return _together(rows, shape, times)


def _refused(program: Any, times: np.ndarray, tolerance: float, why: str) -> Trajectory:
    """The trajectory at numbers for which the formulas have no value: nan."""
    names = [u for u in program.unknowns if u != TIME]
    none = {n: np.full(1, np.nan) for n in (*names, *program.observables)}
    return Trajectory({TIME: times[:1], **none}, float("nan"), False, 0, method=REFUSED, unknowns=tuple(names), reason=why,
                      error=np.inf, origin={"tolerance": tolerance, "quadrature_error": 0.0, "nodes": {}})


def _together(rows: Sequence[Trajectory], shape: tuple[int, ...], times: np.ndarray) -> Trajectory:
    """Trajectories at the same times as one, what a flow did not reach as NaN."""
    def whole(v: Any) -> np.ndarray:
        values = np.full(times.shape, np.nan)
        reached = np.atleast_1d(np.asarray(v))
        if times.ndim == 0:
            return np.asarray(reached[-1])
        values[:len(reached)] = reached
        return values

    values = {n: np.array([whole(r[n] if r.converged or times.ndim else np.nan) for r in rows]).reshape(*shape, *times.shape)
              for n in rows[0].value if n != TIME}
    each: dict[str, Any] = {n: np.array([getattr(r, n) for r in rows], dtype=object if n in ("reason", "method") else None)
            for n in ("residual", "converged", "iterations", "error", "reason", "method")}
    worst = max(float(r.origin["quadrature_error"]) for r in rows)
    return replace(rows[0], value={TIME: times, **values}, dense=None, stability=np.full(len(rows), np.nan),
                   origin={**rows[0].origin, "quadrature_error": worst}, **each)
