"""x(p): the solutions of a System of one's own along one of its parameters, as a Curve."""

from __future__ import annotations

from typing import Any

import numpy as np

from hermitex.errors import NO_NUMBER, BadInput, brief
from hermitex.show.columns import ridge
from hermitex.show.plots import held_words
from hermitex.systems.system import System
from hermitex.theories.curve import Curve


def solved_along(system: System, asking: str, *, title: str = "", **numbers: Any) -> Curve:
    """The solutions of a System along the one of its parameters that is a list; the options are those of `System.solve`."""
    arrays, parameters = {a.name for a in system.arrays}, {p.name for p in system.parameters}
    numbers = {ridge(n, parameters): v for n, v in numbers.items()}
    lists = [n for n, v in numbers.items() if np.ndim(v) and n in parameters - arrays]
    if len(lists) != 1 or np.ndim(numbers[lists[0]]) != 1:
        raise BadInput(f"{asking}: one parameter of the system is a list, along which it is solved, not "
                       f"{', '.join(lists) or 'none'}; its parameters are {', '.join(sorted(parameters))}")
    axis = lists[0]
    line = axis_numbers(asking, axis, numbers[axis])
    found = system.solve(raise_on_failure=False, **{**numbers, axis: line})
    names = [*(u.name for u in system.unknowns), *(o.name for o in system.observables)]
    good = np.broadcast_to(np.asarray(found.converged, dtype=bool), line.shape)
    values = {n: np.where(good, np.broadcast_to(np.asarray(found[n], dtype=float), line.shape), np.nan) for n in names}
    fixed = {n: float(numbers[n]) for n in numbers if n in parameters and not np.ndim(numbers[n])}
    return Curve(system.name or "theory", fixed, line, values, tuple(names), converged=good,
                 residual=np.broadcast_to(found.residual, line.shape), stability=np.broadcast_to(found.stability, line.shape),
                 reason=found.reason, axis=axis, ratio="", title=title or ", ".join(held_words(fixed).values()), named=bool(title))


def axis_numbers(asking: str, name: str, value: Any) -> np.ndarray:
    """A list of numbers as an array; BadInput, by its name, for anything else."""
    try:
        return np.atleast_1d(np.asarray(value, dtype=float))
    except NO_NUMBER:
        raise BadInput(f"{asking}: {name} is a list of numbers, not {brief(value)}") from None
