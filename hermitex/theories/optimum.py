"""d o/d letter = sum_j (d o/d p_j) (d p_j/d letter): derivatives and best values by the letters of a theory.

The p_j are the parameters of its system that are made from the letter: r, c and gamma from a learning rate, for instance.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from hermitex.errors import BadInput, UnknownName
from hermitex.show.columns import ridge
from hermitex.symbolic.precise import evaluate


class TheoryPoint(NamedTuple):
    """What a theory's Solution keeps: the theory, its letters as given, and the point of its system."""

    theory: Any
    given: Mapping[str, Any]
    point: Any

    def derivative(self, solution: Any, name: str) -> dict[str, Any]:
        """By a letter of the theory: exact in the parameters of its system, which follow from the letter by a smooth formula."""
        letters = self.theory.letters()
        if name not in letters:
            raise UnknownName(name, letters, f"keyword of {self.theory.name}")
        if name not in self.given:
            raise BadInput(f"{self.theory.name}: {name} was not given, so it has no derivative")
        found: dict[str, Any] = {}
        for own, slope in self._moves(name).items():
            for quantity, v in self.point.derivative(solution, own).items():
                found[quantity] = found.get(quantity, 0.0) + np.where(slope == 0, 0.0, slope*v)
        if not found:
            raise BadInput(f"{self.theory.name}: {name} = {np.ravel(self.given[name])[0]:g} moves no parameter of the equations")
        return {n: v if np.ndim(v) else float(v) for n, v in found.items()}

    def _moves(self, name: str) -> dict[str, Any]:
        """{parameter of the system: its slope by the letter}, of the parameters that move."""
        parameters = [p.name for p in self.point.system.parameters]
        value = np.asarray(self.given[name], dtype=float)
        if not np.all(np.isfinite(value)):
            raise BadInput(f"{self.theory.name}: {name} = inf is a limit, and has no derivative")
        step = 2e-3*np.where(value == 0, 1.0, np.abs(value))  # a formula of sixth order: (2e-3)^6 and 1e-13 of rounding are left

        def at(k: int) -> dict[str, np.ndarray]:
            done = self.theory.complete({**self.given, name: value + k*step})
            return {ridge(n, parameters): np.asarray(v, dtype=float) for n, v in done.items() if ridge(n, parameters) in parameters}

        here = at(0)
        for stencil in ({-3: -1/60, -2: 3/20, -1: -3/4, 1: 3/4, 2: -3/20, 3: 1/60},
                        {0: -49/20, 1: 6, 2: -15/2, 3: 20/3, 4: -15/4, 5: 6/5, 6: -1/6}):
            try:
                near = {k: at(k) for k in stencil}
            except BadInput:  # beyond the range of the letter: to the other side only
                continue
            moving = [p for p, v in here.items() if any(not np.array_equal(near[k][p], v) for k in stencil)]
            own = ridge(name, parameters)
            return {p: 1.0 if p == own else sum(w*near[k][p] for k, w in stencil.items())/step for p in moving}
        raise BadInput(f"{self.theory.name}: {name} = {np.ravel(value)[0]:g} is the upper end of its range, and has no derivative")


def featureless(theory: Any, found: Any) -> str:
    """The remark on the best point of a theory of one gradient step whose spike has no overlap with the target; else ""."""
    known = {**found.parameters, **found.value}
    made = theory.complete(theory.given({n: known[n] for n in theory.letters() if known.get(n) is not None}))
    if np.any(made["gamma"]*made["r"]):
        return ""
    why = "E[g x] = 0, so that the spike is noise (gamma = 0)" if np.all(made["gamma"] == 0) else "the step makes no spike (r = 0)"
    said = f"the best step learns no features: {why}"
    if str(theory.loss) != "square":
        return said
    k = theory.spike.coefficients
    own = {n: float(v) for n, v in found.parameters.items() if n in {s.name for s in k["g_squared"].free_symbols}}
    variance = float(evaluate(k["g_squared"] - k["g_0"]**2, digits=17, subs=own))
    return f"{said}; only the bulk's variance c is tuned, and the risk stays above Var g = {variance:.6g}" if \
        np.all(made["gamma"] == 0) else said
