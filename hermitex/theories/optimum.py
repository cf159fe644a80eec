"""Derivatives and best parameters of a theory: those of its system, where a letter of the theory is a parameter of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from hermitex.errors import BadInput, UnknownName
from hermitex.show.columns import ridge


class TheoryPoint(NamedTuple):
    """What a theory's Solution keeps: the theory, its letters as given, and the point of its system."""

    theory: Any
    given: Mapping[str, Any]
    point: Any

    def derivative(self, solution: Any, name: str) -> dict[str, Any]:
        """By a letter that is a parameter of the system and from which no other number of it is made."""
        letters = self.theory.letters()
        if name not in letters:
            raise UnknownName(name, letters, f"keyword of {self.theory.name}")
        if name not in self.given:
            raise BadInput(f"{self.theory.name}: {name} was not given, so it has no derivative")
        step = 1e-3  # relative: only whether a number moves with a letter matters
        moved = {**self.given, name: np.asarray(self.given[name])*(1 + step) + step*(np.asarray(self.given[name]) == 0)}
        before, after = (self.theory.complete(dict(n)) for n in (self.given, moved))
        parameters = [p.name for p in self.point.system.parameters]
        known = {ridge(n, parameters): n for n in before}
        changed = [n for n in parameters if n in known and not np.array_equal(before[known[n]], after[known[n]])]
        own = ridge(name, parameters)
        if changed != [own] or not np.array_equal(after[known[own]], moved[name]):
            those = ", ".join(n for n in letters if ridge(n, parameters) in parameters and n != name)
            into = ", ".join(changed) or "no parameter of the equations"
            raise BadInput(f"{self.theory.name}: {name} goes into {into}; take the derivative, or the best value, by one "
                           f"of {those}")
        found: dict[str, Any] = self.point.derivative(solution, own)
        return found
