"""dm/dt = rate(m), t = gamma x (number of samples): the flow of one overlap or of several, from m0 = d^(-1/2) on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from sympy import Symbol

from hermitex.errors import BadInput, NoValue
from hermitex.solvers.ode import Trajectory, integrate
from hermitex.solvers.solve_limits import limit_time
from hermitex.systems.names import read_start
from hermitex.systems.trajectory import at_end, checked_times
from hermitex.theories.curve import Curve
from hermitex.theories.online.repeated import Repeated
from hermitex.theories.theory import Theory


class OverlapFlow(Theory):
    """What the flows of one and of several overlaps share: their numbers, their start, their curve along t."""

    name: ClassVar[str] = "sgd"
    axis: ClassVar[str] = "t"
    sources: ClassVar[tuple[str, ...]] = ("benarous2021", "abbe2023")

    @property
    def symbols(self) -> dict[str, Any]:
        """The overlaps, by name."""
        return {n: Symbol(n, real=True) for n in self.order_parameters}

    errors = ()  # none: the flow knows overlaps only

    def letters(self) -> dict[str, Any]:
        """t; dimension (d) or m0 (default d^(-1/2)); step, which is gamma d; repetition, the first step on a sample times d."""
        return {"t": self.REQUIRED, "dimension": None, "m0": None, "step": 0.0, "repetition": 0.0}

    def complete(self, numbers: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Checked numbers, m0 = d^(-1/2) where it was not given."""
        out = dict(numbers)
        d = out.get("dimension")
        if d is not None and not np.all(d > 1):
            raise BadInput(f"sgd: dimension is a number above 1, not {d}")
        if "m0" not in out:
            if d is None:
                raise BadInput("sgd: where does it start? Give dimension (then m0 = d^(-1/2)) or m0")
            out["m0"] = 1/np.sqrt(d)
        if not np.all(np.abs(out["m0"]) < 1):
            raise BadInput(f"sgd: m0 must be strictly between -1 and 1, not {out['m0']}")
        if not (np.all(out["step"] >= 0) and np.all(np.isfinite(out["step"]))):
            raise BadInput(f"sgd: step = gamma d is a finite number, 0 (the flow) or more, not {out['step']}")
        if not np.all(np.isfinite(out["repetition"])):
            raise BadInput(f"sgd: repetition is a finite number, 0 (each sample seen once) or another, not {out['repetition']}")
        return out

    def _rate(self, step: float) -> Any:
        """x -> dx/dt for the vector of overlaps."""
        raise NotImplementedError

    def repeated(self, repetition: float) -> Repeated:
        """Averages for samples used twice, first with a step `repetition`/d: growth, best step, signal, rates.

        >>> from hermitex.theories.sgd import sgd
        >>> twice = sgd("sqrt(1 + z**2)", "He4(z)/sqrt(24)").repeated(5)
        >>> round(twice.growth, 3), round(twice.step, 3)
        (0.525, 0.61)
        """
        raise NotImplementedError

    def _flow(self, step: float, repetition: float, tolerance: float) -> tuple[Any, str, float]:
        """The rate, a method that integrates it, and the tolerance that its averages bear."""
        if not repetition:
            return self._rate(step), "DOP853", tolerance
        twice = self.repeated(repetition)
        return (lambda t, x, p: twice.rate(x, step)), "LSODA", max(tolerance, 1e-6)

    def begins(self, numbers: Mapping[str, Any]) -> dict[str, Any]:
        """m0 = d^(-1/2), where it is not given."""
        return {"m0": float(np.asarray(self.complete(self.given(numbers))["m0"]))} if numbers.get("m0") is None else {}

    def _start(self, m0: float) -> np.ndarray:
        return np.full(len(self.order_parameters), m0)

    def solve(self, *, raise_on_failure: bool = True, start: Mapping[str, Any] | None = None, tolerance: float = 1e-10,
              until: float | None = None, budget: float | None = None, **numbers: Any) -> Trajectory:
        """The overlaps along t -> Trajectory.

        Parameters
        ----------
        t : (0, end) for the integrator's own steps; the increasing times to report, the first of them the start; or the time to
            reach from 0, and then every overlap is that at its end
        dimension or m0, step, repetition : as in `.letters()`; start : {overlap: value} instead of m0
        until : the time at which the first overlap reaches this level is the event "escape", where the integration ends
        budget : seconds; what was not integrated by then is missing, and the reason says so
        """
        given = self.complete(self.given(numbers))
        if "t" not in given:
            raise NoValue("sgd", "t", "(0, 20)")
        times, fixed = checked_times(given.pop("t")), self.single(given, *given)
        x0 = self._start(fixed["m0"])
        for name, value in read_start(start, "'m': 0.1").items():
            x0[self.order_parameters.index(name)] = float(value)
        events = {} if until is None else {"escape": lambda t, x, p: float(np.max(np.abs(x))) - until}
        with limit_time(budget):
            rate, method, tolerance = self._flow(fixed["step"], fixed["repetition"], tolerance)
            found = integrate(rate, x0, times if times.ndim else (0.0, float(times)), names=self.order_parameters, events=events,
                              terminal=tuple(events), method=method, rtol=tolerance,
                              atol=tolerance*float(np.min(np.abs(x0[x0 != 0]), initial=1.0))*1e-2,
                              raise_on_failure=raise_on_failure)
        return (found if times.ndim else at_end(found)).at_numbers(fixed)

    def curve(self, t: Any = None, *, start: Mapping[str, Any] | None = None,  # type: ignore[override]
              tolerance: float = 1e-10, title: str = "", **numbers: Any) -> Curve:
        """The overlaps along `t`, an increasing list of times from 0 on -> Curve (its `axis` is t)."""
        if "alpha" in numbers:
            raise BadInput("sgd: its curve runs along the time t = gamma n, not along alpha; write .curve(t=[...])")
        line = self.times(t)
        given = self.complete(self.given(numbers))
        fixed = self.single(given, *given)
        found = self.solve(t=(0.0, float(line[-1]) or 1e-9), start=start, tolerance=tolerance, raise_on_failure=False, **fixed)
        good = line <= found["t"][-1]
        values = {name: np.full(line.shape, np.nan) for name in self.order_parameters}
        for name, reached in found.at(line[good]).items():
            values[name][good] = np.where(line[good] == 0, found[name][0], reached)
        return Curve(self.name, self.described(fixed), line, values, self.order_parameters, converged=good,
                     residual=np.where(good, self._off(values, fixed["repetition"], tolerance), np.nan), reason=found.reason,
                     title=title, named=bool(title), axis="t", sources=self.sources)

    def _off(self, values: Mapping[str, np.ndarray], repetition: float, tolerance: float) -> np.ndarray:
        if not repetition:
            return self._error(values, tolerance)
        path = np.nan_to_num(np.array(list(values.values())))
        twice, length = self.repeated(repetition), np.linalg.norm(path, axis=0)
        ends = (int(np.argmin(np.abs(length - length.max()/2))), int(np.argmax(length)))
        return np.full(length.shape, max(tolerance, *(twice.error(path[:, k]) for k in ends)))

    def _error(self, values: Mapping[str, np.ndarray], tolerance: float) -> np.ndarray:
        """How far the rate may be off along the curve: the integrator's tolerance."""
        return np.full(len(next(iter(values.values()))), tolerance)
