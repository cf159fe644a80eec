"""Ordinary differential equations with named variables:  dx/dt = f(t, x, p),  x(t_0) = x_0, by SciPy's integrators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import BadInput, UnknownName
from .batch import Array, Params
from .solution import Solution, trend_text
from .solve_limits import is_time_up, ran_out

if TYPE_CHECKING:
    from hermitex.hints import Axes

Rate = Callable[[float, Array, Params], Array]
Event = Callable[[float, Array, Params], float]


class TooManySteps(ArithmeticError):
    """More evaluations than an explicit method may take: the equations are stiff, or the time is long."""


@dataclass(frozen=True, eq=False, repr=False)
class Trajectory(Solution):
    """A Solution over time: `solution["t"]` and every variable at those times; `.at(t)` anywhere in between.

    `events` maps the name of an event to the values at its crossings: {"t": ..., variable: ...}.

    Guarantee: each time that was reported keeps the tolerance of the integration; values between them are interpolated. See
    docs/promise.md.

    >>> path = integrate(lambda t, x, p: -x, [1.0], [0, 1, 2], names=["m"])
    >>> path["m"].round(6), float(path.at(0.5)["m"].round(6))
    (array([1.      , 0.367879, 0.135335]), 0.606531)
    """

    dense: Callable[[Array], Mapping[str, Array]] | None = None
    events: Mapping[str, Mapping[str, Array]] = field(default_factory=dict)

    def table(self) -> dict[str, list[Any]]:
        """Columns of equal length, a row for each time of each trajectory; the diagnostics are those of the whole run."""
        shape = (self.points or 1, np.size(self["t"]))
        run = {"error": self.error, "converged": self.converged, "method": self.method}
        given, told = ({k: np.reshape(np.asarray(v), (-1, 1)) for k, v in part.items()} for part in (self._given(shape[0]), run))
        columns: dict[str, Any] = {**given, **self.value, **told}
        return {k: np.broadcast_to(np.asarray(v), shape).ravel().tolist() for k, v in columns.items()}

    def _summary(self) -> str:
        done = "converged" if self.all_converged else "NOT converged"
        if self.points is not None:
            done = f"{int(np.sum(self.converged))} of {self.points} trajectories converged"
        methods = " + ".join(dict.fromkeys(np.atleast_1d(np.asarray(self.method)).tolist()))
        return f"{done}, error {np.max(self.error):.1g}, {methods}, {int(np.max(self.iterations))} evaluations"

    def at(self, t: float | np.ndarray) -> dict[str, Array]:
        """Every variable at the times t, a scalar or an array, inside the interval that was reached."""
        if self.dense is None:
            raise BadInput("no dense output was kept; integrate with dense=True")
        t = np.asarray(t, dtype=float)
        low, high = np.min(self["t"]), np.max(self["t"])
        if not ((t >= low) & (t <= high)).all():
            raise BadInput(f"t must be in [{low:g}, {high:g}], the times that were kept; solve with t=[0, ...] for more of them")
        return dict(self.dense(t))

    def plot(self, ax: Axes | None = None, *, quantity: str | None = None, label: str = "",
             quantities: Sequence[str] | None = None) -> Axes:
        """Every unknown over time as a line, or the quantities named -> axes; `label` precedes their letters. Events are dotted."""
        from ..show.display import letter
        from ..show.plots import curves, mark_critical

        times = np.size(self["t"])
        if times == 1:
            raise BadInput(f"plot: the end, t = {float(np.ravel(self['t'])[0]):g}, is kept alone; solve with t=[0, ...]")
        names = [quantity] if quantity else list(self.unknowns if quantities is None else quantities)
        given = {n: np.ravel(v) for n, v in self._given(self.points or 1).items() if np.size(v) > 1}
        lines = {}
        for n in names:
            for j, row in enumerate(np.reshape(self[n], (-1, times))):
                words = label, f"${letter(n)}$", *(f"${letter(k)} = {v[j]:g}$" for k, v in given.items())
                lines[", ".join(filter(None, words))] = row.tolist()
        said = ", ".join(f"${letter(n)}$" for n in names) if len(names) <= 4 else "order parameters"
        axes = curves(np.ravel(self["t"]).tolist(), lines, ax, xlabel="time $t$", ylabel=said)
        for name, crossings in self.events.items():
            for at in np.ravel(crossings["t"]).tolist():
                mark_critical(axes, at, name)
        return axes


def integrate(
    rate: Rate,
    x0: Any,
    t: Any,
    *,
    names: Sequence[str],
    p: Params | None = None,
    events: Mapping[str, Event] | None = None,
    terminal: Sequence[str] = (),
    method: str = "DOP853",
    rtol: float = 1e-10,
    atol: Any = 1e-12,
    max_step: float = float("inf"),
    most: int | None = None,
    dense: bool = True,
    raise_on_failure: bool = True,
) -> Trajectory:
    """Integrate dx/dt = rate(t, x, p) from x0 over the times t.

    Parameters
    ----------
    rate : f(t, x, p) -> (n,) for x of shape (n,)
    t : (t0, t1) for the integrator's own steps, or an increasing or decreasing array of times to report
    events : {name: function of (t, x, p) whose zeros are recorded}; those named in `terminal` end the integration, and are
        its last row
    method : of scipy.integrate.solve_ivp: DOP853 for smooth flows, LSODA or Radau for stiff ones
    rtol, atol : error of a step; atol one number, or one for each variable
    most : evaluations of the rate after which `TooManySteps` is raised

    Within `limit.limited` it ends after the step in which the time is up, not converged, with what was reached.

    Raises
    ------
    BadInput        the rate is not finite at the start
    NotConverged    the step size fell to nothing or a variable became infinite; says where, carries what was reached

    Examples
    --------
    >>> x = integrate(lambda t, x, p: -p["rate"]*x, [1.0], [0, 1, 2], names=["m"], p={"rate": 0.5})
    >>> x["m"].round(9)
    array([1.        , 0.60653066, 0.36787944])
    >>> fall = integrate(lambda t, x, p: x[1:].tolist() + [-2.0], [1.0, 0.0], (0, 5), names=["h", "v"],
    ...                  events={"ground": lambda t, x, p: x[0]}, terminal=["ground"])
    >>> fall.events["ground"]["t"].round(9)
    array([1.])
    """
    from scipy.integrate import solve_ivp

    p, names = dict(p or {}), tuple(names)
    times, x = np.asarray(t, dtype=float), np.asarray(x0, dtype=float)
    if x.shape != (len(names),) or not np.isfinite(x).all():
        raise BadInput(f"the start needs {len(names)} finite numbers ({', '.join(names)}), not {x.tolist()}")
    if times.ndim != 1 or times.size < 2 or not (np.all(np.diff(times) > 0) or np.all(np.diff(times) < 0)):
        raise BadInput("the times must be (t0, t1) or a monotone array of at least two")
    if "t" in names:
        raise BadInput("a variable cannot be named t, which is the time")
    with np.errstate(all="ignore"):
        first = np.isfinite(np.asarray(rate(times[0], x, p), dtype=float))
    if first.shape != x.shape:
        raise BadInput(f"the rate of {len(names)} variables has the shape {first.shape}, not ({len(names)},)")
    if not first.all():  # the integrator would look for a first step for ever
        lost = ", ".join(n for n, finite in zip(names, first, strict=True) if not finite)
        raise BadInput(f"the rate of {lost} is not finite where it starts, at t = {times[0]:g}")

    def attempt(dense: bool) -> tuple[Any, Any, _Clock]:
        hooks, clock = _hooks(events or {}, terminal, p), _Clock(float(times[0]), float(np.sign(times[-1] - times[0])))
        taken = count(1)

        def counted(s: float, y: Array) -> Array:
            if most is not None and next(taken) > most:
                raise TooManySteps
            return np.asarray(rate(s, y, p), dtype=float)

        run = solve_ivp(
            counted,
            (times[0], times[-1]),
            x,
            method=method,
            t_eval=None if times.size == 2 else times,
            dense_output=dense,
            events=[*hooks.values(), clock],
            rtol=rtol,
            atol=atol,
            max_step=max_step,
        )
        return run, hooks, clock

    with np.errstate(all="ignore"):
        try:
            run, hooks, clock = attempt(dense)
        except ValueError as error:
            if not (dense and "strictly" in str(error)):
                raise
            # an older SciPy makes no dense output of a solution that runs off, where the steps shrink to nothing
            run, hooks, clock = attempt(False)
    crossings = {
        name: {"t": run.t_events[i], **dict(zip(names, np.reshape(run.y_events[i], (-1, len(names))).T, strict=True))}
        for i, name in enumerate(hooks)
    }
    times, path = run.t, run.y
    if run.status == 1 and not clock.is_up:  # between two of the times to report a terminal event is the last row
        end, at = max(((abs(s - run.t[0]), s), y) for i, name in enumerate(hooks) if name in terminal
                      for s, y in zip(run.t_events[i], run.y_events[i].tolist(), strict=True))
        if end[0] > abs(run.t[-1] - run.t[0]):
            times, path = np.append(run.t, end[1]), np.column_stack([run.y, at])
    last = run.y[:, -1] if run.y.size else x
    ok = bool(run.status >= 0) and bool(np.isfinite(run.y).all()) and not clock.is_up
    found = Trajectory(
        {"t": times, **dict(zip(names, path, strict=True))},
        residual=float("nan"),
        converged=ok,
        iterations=int(run.nfev),
        error=rtol,
        method=method,
        reason="" if ok else f"{ran_out()} at t = {run.t[-1]:.6g}" if clock.is_up else _reason(run, last, names),
        unknowns=names,
        origin={"rtol": rtol, "atol": np.max(atol).item()},
        dense=None if run.sol is None else Interpolant(run.sol, names, run.sol.ts),
        events=crossings,
    )
    return found if ok or not raise_on_failure else _fail(found)


@dataclass(frozen=True)
class Interpolant:
    """{variable: its values} at any times in between; `steps`: where those of the integrator ended."""

    values: Callable[[Any], Array]
    names: tuple[str, ...]
    steps: Array

    def __call__(self, t: Any) -> dict[str, Any]:
        return dict(zip(self.names, self.values(t), strict=True))


class _Clock:
    """An event of the wall clock: positive until the time is up, from then on negative after the middle of the step."""

    terminal = True

    def __init__(self, t: float, sign: float) -> None:
        self.last, self.sign, self.is_up = t, sign, False

    def __call__(self, t: float, x: Array) -> float:
        if not self.is_up:
            self.is_up = is_time_up()
            self.last = (self.last + t)/2 if self.is_up else t
        return (self.last - t)*self.sign if self.is_up else 1.0


def _fail(found: Trajectory) -> Trajectory:
    found.require("a stiff method (method='Radau' or 'LSODA'), a shorter interval, or looser rtol=")
    return found


def _hooks(events: Mapping[str, Event], terminal: Sequence[str], p: Params) -> dict[str, Callable[..., float]]:
    for name in terminal:
        if name not in events:
            raise UnknownName(name, events, "event")

    def hook(event: Event, ends: bool) -> Callable[..., float]:
        def crossing(t: float, x: Array) -> float:
            return float(event(t, x, p))

        crossing.terminal = ends  # type: ignore[attr-defined]
        return crossing

    return {name: hook(event, name in terminal) for name, event in events.items()}


def _reason(run: Any, last: Array, names: Sequence[str]) -> str:
    ends = run.t if run.sol is None else run.sol.ts
    reached = f"t = {ends[-1]:.6g}" if len(ends) else "the first step"
    path = [*run.y.T[-4:]] if run.y.shape[-1] >= 4 else [last]
    said = trend_text(path, names)
    return f"the integration stopped at {reached}: {str(run.message).rstrip('.')}" + (f" ({said})" if said else "")
