"""The face of an exported file: what stands between its generated functions and the solver that it shares with the session.

    solve(alpha=..., lamda=...)  ->  solve_all(CODE, numbers, start, tolerance)  ->  systems.iterate.solved_by, as in the session
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from hermitex.errors import BadInput
from hermitex.kernels.axis_records import accepts_table
from hermitex.kernels.extended_precision import extended_functions, widened
from hermitex.solvers.solution import REFUSED
from hermitex.solvers.solve_limits import limit_time
from hermitex.systems.compiled_system import BlockCode
from hermitex.systems.iterate import solved_by
from hermitex.systems.trajectory import many


class Axis(NamedTuple):
    """An integration variable, and how deep its expectation stands within others."""

    identifier: str
    depth: int
    summed: bool = False
    counting: bool = False
    fields: int = 1


class Code(NamedTuple):
    """The generated functions by name, and what they speak of: what a `Program` is in the session."""

    functions: dict[str, Any]
    parameters: tuple[str, ...]
    unknowns: tuple[str, ...]
    observables: tuple[str, ...]
    implicit: tuple[str, ...]
    blocks: tuple[BlockCode, ...]
    quadratures: Any  # called for fresh rules
    notes: tuple[str, ...] = ()
    arrays: Any = None  # that are summed over
    given: Mapping[str, Any] = {}
    positive: tuple[str, ...] = ()
    domain: Mapping[str, tuple[float, float]] = {}
    start: Mapping[str, float] = {}
    lawful: bool = False
    later: Any = None  # the same by quadrature where the terms of closed forms cancel
    whole: Mapping[str, Any] = {}
    behind: str = ""  # what stands behind the names of its functions

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters and the arrays."""
        return (*self.parameters, *(self.arrays.names if self.arrays is not None else ()))

    def bound(self, numbers: Mapping[str, Any]) -> tuple[Code, dict[str, Any]]:
        """The code with the arrays among the numbers, and the other numbers."""
        if self.arrays is None or self.given:
            return self, dict(numbers)
        given, rest = self.arrays.read(numbers, self.quadratures().ndim, "solve")
        return self._replace(given=given, whole={n: numbers[n] for n in self.arrays.names}), rest

    def integrated(self, *, fine: bool) -> Code | None:
        """The same by quadrature where the terms of closed forms may cancel; None where they do not."""
        if self.later is None:
            return None
        other = self.later().bound(self.whole)[0]
        return other._replace(quadratures=lambda: other.quadratures().finer()) if fine else other

    def call(self, name: str, s: Mapping[str, Any], quad: Mapping[str, Any], average: Any = None, extended: bool = False) -> Any:
        """Run a generated function, with another `average` (one that records its errors) or in extended precision if asked."""
        other = extended_functions(self.functions) if extended else {}
        other |= {"average": accepts_table(average)} if average is not None else {}
        plain = {n: self.functions.get(n) for n in other}
        try:
            self.functions.update(other)
            s = {**self.given, **s}
            return self.functions[name + self.behind](*((widened(s), widened(quad)) if extended else (s, quad)))
        finally:
            self.functions.update(plain)


class Exact:
    """Takes the place of the quadratures where every expectation has a closed form."""

    ndim, error, felt, held, nodes, largest = 1, *[np.zeros(1)]*3, 0, 0
    none: Mapping[str, Any] = MappingProxyType({})
    rules, smooth, settled = none, True, True

    def arrays(self) -> Mapping[str, Any]:
        """No nodes."""
        return self.none

    def forget(self) -> None:
        """Nothing was measured."""

    def of(self, points: Any) -> Exact:
        """The same for some of the points."""
        return self

    def finer(self) -> Exact:
        """There is nothing to refine: a kink or a count may stand without its average."""
        return self

    def examine(self, run: Any, tolerance: float, part: str = "", coarsely: Any = None) -> Any:
        """Run once; nothing can be refined."""
        run(None)
        return np.ones(1, dtype=bool)

    def fine_enough(self, run: Any) -> bool:
        """Run once."""
        run(None)
        return True

    def beside(self, run: Any) -> None:
        """There are no other nodes."""
        run(None)

    def verify(self, run: Any, tolerance: float, coarsely: Any = None, among: Any = True) -> Any:
        """Nothing was averaged."""
        return np.ones(1, dtype=bool)

    def reached(self, part: str) -> Any:
        """No error."""
        return np.zeros(1)


class NotSolved(ArithmeticError):
    """Some points did not converge; `.values` holds the last state, `.converged` says which points are good."""


def solve_all(code: Code, numbers: Mapping[str, Any], start: Mapping[str, Any], tolerance: float,
              budget: float | None = None, method: str = "newton", damping: float = 1.0) -> dict[str, Any]:
    """Every unknown and observable in the common shape of the parameters."""
    code, numbers = code.bound(numbers)
    found = solved_by(method, damping, code, numbers, start=start, tolerance=tolerance, budget=budget)
    shape = np.broadcast_shapes(*(np.shape(v) for v in numbers.values()))
    good = np.ravel(found.converged)
    if not good.all():
        bad = np.flatnonzero(~good)
        where = ", ".join(f"{n} = {np.broadcast_to(v, shape).flat[bad[0]]:g}" for n, v in numbers.items())
        reason = np.ravel(found.reason)[bad[0]] or "the residual stayed above the tolerance"
        if np.all(np.asarray(found.method) == REFUSED):
            raise BadInput(f"solve: {reason}")
        advice = "damping=0.5 or smaller" if method == "iterate" else "another start (start=, --start), from a neighbouring point"
        error = NotSolved(f"{bad.size} of {good.size} points did not converge, the first at {where}: {reason}; try {advice}")
    quadrature = np.full(shape, found.origin["quadrature_error"])
    rest = {"residual": found.residual, "stability": found.stability, "quadrature_error": quadrature, "converged": found.converged}
    values = {n: np.reshape(v, shape) if shape else v for n, v in {**found.value, **rest}.items()}
    if not good.all():
        error.values, error.converged = values, values["converged"]  # type: ignore[attr-defined]
        raise error
    return values


def flow_all(code: Code, numbers: Mapping[str, Any], start: Mapping[str, Any], t: Any, domain: Mapping[str, tuple[float, float]],
             tolerance: float, budget: float | None = None) -> dict[str, Any]:
    """Every variable and observable over time, the times along the last axis."""
    with limit_time(budget):
        found = many(code, numbers, start, t, domain=domain, tolerance=tolerance)
    values = {**found.value, "error": found.error, "quadrature_error": found.origin["quadrature_error"],
              "converged": found.converged}
    good = np.ravel(found.converged)
    if not good.all():
        reason = np.ravel(np.asarray(found.reason, dtype=object))[np.flatnonzero(~good)[0]]
        if np.all(np.asarray(found.method) == REFUSED):
            raise BadInput(f"solve: {reason}")
        error = NotSolved(f"{int(np.sum(~good))} of {good.size} trajectories did not converge; the first: {reason}")
        error.values, error.converged = values, found.converged  # type: ignore[attr-defined]
        raise error
    return values


def rows_of(points: Mapping[str, np.ndarray], found: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Columns of equal length, a row for each point and time."""
    times, count = np.atleast_1d(found["t"]), max((len(v) for v in points.values()), default=1)
    columns: dict[str, np.ndarray] = {n: np.repeat(v, len(times)) for n, v in points.items()}
    columns["t"] = np.tile(times, count)
    for name, v in found.items():
        if name != "t":
            values = np.asarray(v)
            whole = values.size == count*len(times)
            columns[name] = values.ravel() if whole else np.repeat(np.broadcast_to(values, (count,)), len(times))
    return columns
