"""The formulas of a program at states that are given, not solved for: every average held to a tolerance, there.

    tables, then x, p -> right_hand_sides(x, p), observables(x, p)

Rules are refined at the states that are shown, and compared on other nodes, as those of a solution are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

_ALL = ("right_hand_sides", "observables")


class States:
    """A program at fixed numbers (floats, or one a point), with the rules that suit the states shown to it so far.

    Attributes: `error` the largest relative error of an average at the states examined last; `other` nodes that verified them.
    """

    def __init__(self, program: Any, numbers: Mapping[str, Any], tolerance: float) -> None:
        self.program, self.tolerance = program, tolerance
        self.quad = program.quadratures()
        self.numbers = {n: self._column(v) for n, v in numbers.items()}
        self.error = 0.0
        self.other: Mapping[str, Any] = {}
        self._tables: dict[int, tuple[Any, dict[str, Any]]] = {}

    def at(self, numbers: Mapping[str, Any]) -> None:
        """Other values of some of the numbers; the rules stay."""
        self.numbers = {**self.numbers, **{n: self._column(v) for n, v in numbers.items()}}
        self._tables = {}

    def _column(self, v: Any) -> Any:
        values = np.asarray(v, dtype=float)
        return values.reshape(-1, *[1]*(self.quad.ndim - 1)) if values.ndim else np.float64(values)

    def _state(self, x: Mapping[str, Any]) -> dict[str, Any]:
        return {**self.numbers, **{u: self._column(v) for u, v in x.items()}}

    def examine(self, x: Mapping[str, Any], parts: Sequence[str] = _ALL, most: float = np.inf) -> bool:
        """Refine the rules until every average at the states x holds the tolerance; whether it does.

        With `most` no rule is tried by which an average of one point would be over more numbers than that.
        """
        s = self._state(x)
        self.quad.forget()

        def run(average: Any, other: bool = False) -> None:
            arrays = self.quad.arrays()
            if other and not self.other:
                self.other = arrays
            whole = {**s, **self.program.call("tables", s, arrays, average)}
            for name in parts:
                self.program.call(name, whole, arrays, average)

        good = False
        rounds = 60  # of refinement; chosen by trial
        with np.errstate(all="ignore"):
            for _ in range(rounds):
                rules = dict(self.quad.rules)
                self.other = {}
                good = bool(self.quad.examine(run, self.tolerance, coarsely=run).all())
                good = good and bool(self.quad.verify(lambda average: run(average, True), self.tolerance, run).all())
                if good:
                    break
                if self.quad.size*np.prod([len(r)/len(rules[a]) for a, r in self.quad.rules.items()]) > most:
                    self.quad.keep(rules)
                    self.other = {}
                    self.quad.verify(lambda average: run(average, True), self.tolerance, run)
                    self.quad.keep(rules)
                    break
        self.other = self.other or self.quad.arrays()
        self.errors = np.ravel(self.quad.held)  # one a point, or one for all
        self.error = float(np.max(self.errors, initial=0.0))
        return good and self.error <= 10*self.tolerance

    def call(self, name: str, x: Mapping[str, Any], arrays: Mapping[str, Any] | None = None) -> dict[str, np.ndarray]:
        """One of the program's functions at states x, {unknown: number or (B,)}: {its outputs: (B,)}, on the rules in force."""
        arrays = self.quad.arrays() if arrays is None else arrays
        s = self._state(x)
        with np.errstate(all="ignore"):
            if id(arrays) not in self._tables:
                self._tables = {**dict(list(self._tables.items())[-1:]),
                                id(arrays): (arrays, self.program.call("tables", self.numbers, arrays))}
            out = self.program.call(name, {**s, **self._tables[id(arrays)][1]}, arrays)
        return {n: np.asarray(v, dtype=float).reshape(-1) for n, v in out.items()}
