"""System.follow: a branch of solutions along a parameter, through its folds, stable and unstable stretches told apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hermitex.errors import NO_NUMBER, BadInput, NotConverged, UnknownName, brief
from hermitex.hints import Axes, DataFrame
from hermitex.kernels.parameter_conditions import violated_conditions
from hermitex.show.display import Shown, letter, number_table
from hermitex.show.plots import new_axes
from hermitex.solvers.arclength import trace_curve
from hermitex.solvers.linear import spectral_radius
from hermitex.systems.sensitivity import compiled_slopes, parameter_of
from hermitex.systems.solve import refusal_reasons
from hermitex.systems.state_evaluation import States


@dataclass(frozen=True, eq=False, repr=False)
class Branch(Shown):
    """Solutions along a parameter in the order in which the curve runs: `branch["q"]`, `branch["alpha"]` are arrays.

    Attributes
    ----------
    parameter : what it was followed along;  values : {name: array (B,)}, the parameter and the unknowns
    folds : [{"alpha": .., "q": ..}, ...], where the curve turns back, located;  stability : spectral radius of the map (B,), NaN
        where an equation is implicit;  reason : why it ends inside the bounds, "" where it leaves them;  notes : what is to
        be known of where it begins

    Guarantee
    ---------
    Each point is a converged `Solution`. That a branch is complete, or the only one, is not promised. See docs/promise.md.

    >>> from hermitex.systems.system import System
    >>> branch = System({"q": "alpha - q**2"}).follow("alpha", (0.5, 2), start={"q": 0.4})
    >>> bool(branch["alpha"].max() >= 2), branch.folds
    (True, [])
    """

    parameter: str
    values: Mapping[str, np.ndarray]
    unknowns: tuple[str, ...]
    folds: list[dict[str, float]]
    stability: np.ndarray
    reason: str = ""
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self.values:
            raise UnknownName(name, self.values, "quantity of the branch")
        return self.values[name]

    def __len__(self) -> int:
        return len(self.stability)

    @property
    def stable(self) -> np.ndarray:
        """Whether iteration of the equations ends there."""
        return np.asarray(self.stability < 1)

    def table(self) -> dict[str, list[Any]]:
        """Columns of equal length."""
        columns = {**self.values, "stability": self.stability, "stable": self.stable}
        return {n: v.tolist() for n, v in columns.items()}

    def to_dict(self) -> dict[str, Any]:
        """The table, the folds, why it ends and the notes, ready for JSON."""
        return {"parameter": self.parameter, **self.table(), "folds": self.folds, "reason": self.reason, "notes": list(self.notes)}

    def to_dataframe(self) -> DataFrame:
        """A pandas DataFrame, one row a point."""
        from hermitex.show.tables import to_dataframe

        return to_dataframe(self.table())

    def plot(self, ax: Axes | None = None, *, quantity: str | None = None) -> Axes:
        """An unknown (default: the first) along the parameter: a line where stable, dashed elsewhere, dots at the folds."""
        ax, name = new_axes(ax), quantity or self.unknowns[0]
        x, y = self[self.parameter], self[name]
        for mask, style in ((self.stable, "-"), (~self.stable, "--")):
            wide = mask | np.append(mask[1:], False)
            ax.plot(np.where(wide, x, np.nan), np.where(wide, y, np.nan), style, color="C0")
        ax.plot([f[self.parameter] for f in self.folds], [f[name] for f in self.folds], "o", color="C0", markersize=4)
        ax.set_xlabel(f"${letter(self.parameter)}$")
        ax.set_ylabel(f"${letter(name)}$")
        return ax

    def _html(self) -> str:
        return number_table({n: v.tolist() for n, v in self.values.items()}, title=self._summary())

    def _summary(self) -> str:
        x, end = self[self.parameter], "".join(f"; {said}" for said in (self.reason, *self.notes) if said)
        turns = ", ".join(f"{f[self.parameter]:.6g}" for f in self.folds)
        turns = f"folds at {turns}" if turns else "no fold"
        return f"{self.parameter} from {x[0]:.4g} to {x[-1]:.4g}, {len(self)} points; {turns}{end}"


def follow(system: Any, name: str, bounds: Any, numbers: Mapping[str, Any], start: Mapping[str, Any], tolerance: float) -> Branch:
    """See `System.follow`."""
    own = parameter_of(system, name)
    try:
        first, last = (float(v) for v in bounds)
    except NO_NUMBER:
        raise BadInput(f"follow: along {own} from one number to another, (0.1, 2), not {brief(bounds)}") from None
    if not (np.isfinite(first) and np.isfinite(last) and first != last):
        raise BadInput(f"follow: the bounds of {own} are two finite numbers, not ({first:g}, {last:g})")
    if own in numbers:
        raise BadInput(f"follow: {own} varies and has a value, too")
    inside = {a.name for a in system.arrays}
    if several := [n for n, v in numbers.items() if n not in inside and np.ndim(v)]:
        raise BadInput(f"follow: {several[0]} has several values; a branch is followed at one")
    end, found, notes = _beginning(system, own, (first, last), numbers, start, tolerance)
    made = compiled_slopes(system, own)
    program, given = made.program.bound({**numbers, own: end})
    states = States(program, {n: float(v) for n, v in given.items()}, max(tolerance, 1e-14))
    x0 = np.array([float(found[u]) for u in made.unknowns])

    def equations(x: np.ndarray, p: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        states.at({own: p})
        at = dict(zip(made.unknowns, x, strict=True))
        J, b, _, _, sides = made.of(states, at, 1)
        rhs = sides[:, 0]
        return np.where(made.implicit, rhs, x - rhs), J[..., 0], -b[:, 0]

    shown = 4  # points of a block at which its averages are examined

    held_error = 1e-9  # of an average in the equations: a larger one is refused

    def examine(x: np.ndarray, p: np.ndarray) -> str | None:
        pick = np.unique(np.rint(np.linspace(0, p.size - 1, shown)).astype(int))
        before = dict(states.quad.rules)
        states.at({own: p[pick]})
        held = states.examine(dict(zip(made.unknowns, x[:, pick], strict=True)), ("observables",), most)
        if not held and states.error > held_error:
            at = ", ".join(f"{n} = {v:.4g}" for n, v in zip((own, *made.unknowns), (p[0], *x[:, 0]), strict=True))
            return f"averages of the equations are held no further than to about {at}"
        return None if states.quad.rules == before else ""

    most = np.inf
    examine(x0[:, None], np.array([end]))
    most_numbers = 300_000  # in an average at one point: a branch has hundreds of points, and asks for each some times
    most = max(most_numbers, 2*states.quad.size)
    path = trace_curve(equations, x0, end, (min(first, last), max(first, last)), tolerance=tolerance, examine=examine)
    J = np.stack([equations(x, p)[1] for x, p in zip(path.x.T, path.p, strict=True)], axis=-1)  # one by one: grids are large
    radius = spectral_radius(np.eye(len(J))[:, :, None] - J) if not made.implicit.any() else np.full(path.p.size, np.nan)
    values = {own: path.p, **dict(zip(made.unknowns, path.x, strict=True))}
    folds = [{own: p, **{u: float(v) for u, v in zip(made.unknowns, x, strict=True)}} for x, p in path.folds]
    why = _unlawful(system, values, {**numbers, own: end}, tolerance)
    if (last := int(np.argmax(why != ""))) or why[0]:
        inside = values[own][:last]
        values, radius = {n: v[:last] for n, v in values.items()}, radius[:last]
        folds = [f for f in folds if inside.min() <= f[own] <= inside.max()]
        return Branch(own, values, made.unknowns, folds, radius, str(why[last]), notes)
    return Branch(own, values, made.unknowns, folds, radius, path.reason, notes)


def _beginning(system: Any, own: str, ends: tuple[float, float], numbers: Mapping[str, Any], start: Mapping[str, Any],
               tolerance: float) -> tuple[float, Any, tuple[str, ...]]:
    """(the end at which a branch begins, the solution there, notes): the first at which the solution is the start's own."""
    known = {**system.start, **start}
    begun = []
    for end in ends:
        found = system.solve({**numbers, own: end}, start=start, tolerance=tolerance, raise_on_failure=False)
        if found.converged:
            fallen = [u for u, v in known.items() if _is_far(float(found[u]), float(v))]
            begun.append((end, found, fallen))
            if not fallen:
                break
    if not begun:
        raise NotConverged(found, f"follow: no solution at either end of {own} from this start: {found.reason}; "
                                  "give a start= near one")
    end, found, fallen = begun[-1] if not begun[-1][2] else begun[0]
    at, other, away = begun[0]
    notes = tuple(f"at {own} = {at:g} the start {u} = {known[u]:g} leads to another solution, {u} = {float(other[u]):.4g}"
                  for u in away[:1])
    return end, found, notes


def _is_far(x: float, start: float) -> bool:
    """Is a solution no neighbour of its start: less than half of it, more than twice it, or of another sign?"""
    return abs(x - start) > max(abs(x), abs(start))/2


def _unlawful(system: Any, values: Mapping[str, np.ndarray], numbers: Mapping[str, Any], tolerance: float) -> np.ndarray:
    """At each point of a branch, which condition of a law does not hold there."""
    points = next(iter(values.values())).shape
    program, given = system.compile().bound(numbers)
    at = {n: np.asarray(values.get(n, v), dtype=float) for n, v in given.items()}
    early = refusal_reasons(program, at, points[0])
    if not system.conditions:
        return early
    states = States(program, at, max(tolerance, 1e-14))
    late = violated_conditions(states.call("observables", {u: values[u] for u in program.unknowns}), points)
    return np.where(early != "", early, late)
