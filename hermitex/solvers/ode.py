"""Ordinary differential equations with named variables:  dx/dt = f(t, x, p),  x(t_0) = x_0, by SciPy's integrators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import BadInput, UnknownName
from .batch import Array, Params
from .solution import Solution, trend

Rate = Callable[[float, Array, Params], Array]
Event = Callable[[float, Array, Params], float]


@dataclass(frozen=True, eq=False, repr=False)
class Trajectory(Solution):
    """A Solution over time: `solution["t"]` and every variable at those times; `.at(t)` anywhere in between.

    `events` maps the name of an event to the values at its crossings: {"t": ..., variable: ...}.
    """

    dense: Callable[[Any], Array] | None = None
    events: Mapping[str, Mapping[str, Array]] = field(default_factory=dict)

    def table(self) -> dict[str, list[Any]]:
        """Columns of equal length, a row for each time; the diagnostics are those of the whole run."""
        rows = np.size(self["t"])
        columns = {**self.value, "residual": self.residual, "converged": self.converged, "method": self.method}
        return {k: np.broadcast_to(np.asarray(v), (rows,)).tolist() for k, v in columns.items()}

    def at(self, t: Any) -> dict[str, Any]:
        """Every variable at the times t, a scalar or an array, inside the interval that was reached."""
        if self.dense is None:
            raise BadInput("no dense output was kept; integrate with dense=True")
        t = np.asarray(t, dtype=float)
        low, high = np.min(self["t"]), np.max(self["t"])
        if not ((t >= low) & (t <= high)).all():
            raise BadInput(f"t must lie in [{low:g}, {high:g}], the interval that was integrated")
        return dict(zip(self.unknowns, self.dense(t), strict=True))


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
    atol: float = 1e-12,
    max_step: float = float("inf"),
    dense: bool = True,
    raise_on_failure: bool = True,
) -> Trajectory:
    """Integrate dx/dt = rate(t, x, p) from x0 over the times t.

    Parameters
    ----------
    rate : f(t, x, p) -> (n,) for x of shape (n,)
    t : (t0, t1) for the integrator's own steps, or an increasing or decreasing array of times to report
    events : {name: function of (t, x, p) whose zeros are recorded}; those named in `terminal` end the integration
    method : of scipy.integrate.solve_ivp: DOP853 for smooth flows, LSODA or Radau for stiff ones
    rtol, atol : error of a step

    Raises
    ------
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
    hooks = _hooks(events or {}, terminal, p)
    with np.errstate(all="ignore"):
        run = solve_ivp(
            lambda s, y: np.asarray(rate(s, y, p), dtype=float),
            (times[0], times[-1]),
            x,
            method=method,
            t_eval=None if times.size == 2 else times,
            dense_output=dense,
            events=list(hooks.values()) or None,
            rtol=rtol,
            atol=atol,
            max_step=max_step,
        )
    crossings = {
        name: {"t": run.t_events[i], **dict(zip(names, np.reshape(run.y_events[i], (-1, len(names))).T, strict=True))}
        for i, name in enumerate(hooks)
    }
    last = run.y[:, -1] if run.y.size else x
    ok = bool(run.status >= 0) and bool(np.isfinite(run.y).all())
    found = Trajectory(
        {"t": run.t, **dict(zip(names, run.y, strict=True))},
        residual=float("nan"),
        converged=ok,
        iterations=int(run.nfev),
        error=rtol,
        method=method,
        reason="" if ok else _reason(run, last, names),
        unknowns=names,
        origin={"rtol": rtol, "atol": atol},
        dense=run.sol,
        events=crossings,
    )
    return found if ok or not raise_on_failure else _fail(found)


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
    reached = f"t = {run.t[-1]:.6g}" if run.t.size else "the first step"
    path = [*run.y.T[-4:]] if run.y.shape[-1] >= 4 else [last]
    said = trend(path, names)
    return f"the integration stopped at {reached}: {str(run.message).rstrip('.')}" + (f" ({said})" if said else "")
