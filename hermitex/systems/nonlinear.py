"""A nonlinear block at the points of a batch, as the solvers ask for it.

    F = x - rhs(x)  (of an implicit equation itself),  dF/dx;   x the torn unknowns, (n, points)

One call of the generated function gives all of it: a state that was looked at a moment ago is not looked at again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from hermitex.systems.compiled_system import BlockCode, State
from hermitex.systems.newton_step import chain_of

Params = Mapping[str, Any]


class NonlinearBlock:
    """The equations of a block; p["point"] holds the points of x."""

    def __init__(self, block: BlockCode, ask: Callable[[State], State], s: State, points: int, column: Callable[[Any], np.ndarray]
                 ) -> None:
        """ask(s): the values of its function;  s: the state, which is moved to x;  column: of a row."""
        self.block, self.ask, self.s, self.points, self.column = block, ask, s, points, column
        self._some: tuple[bytes | None, State] = None, {}  # the state at the points that were used last
        self._looked: dict[bytes, list[Any]] = {}  # by state: outputs, residual, Jacobian

    def functions(self) -> dict[str, Any]:
        """What `solvers.restarts.solve_robustly` takes."""
        return {"residual": lambda x, p: self.both(x, p)[0], "both": self.both, "step": self.step}

    def outputs(self, x: np.ndarray, p: Params) -> State:
        """What the generated function returns."""
        return dict(self._entry(x, p)[0])

    def both(self, x: np.ndarray, p: Params) -> tuple[np.ndarray, np.ndarray]:
        """F and dF/dx, (n, points) and (n, n, points)."""
        known = self._entry(x, p)
        if len(known) == 1:
            known += chain_of(self.block, known[0], x)
        if x.shape[1] == self.points:
            self.s.update({u: self.column(v) for u, v in zip(self.block.torn, x, strict=True)})
        return known[1], known[2]

    def step(self, x: np.ndarray, p: Params) -> np.ndarray:
        """rhs(x), the map: x - (x - rhs) would lose an rhs far below x."""
        out = self._entry(x, p)[0]
        rows = [np.broadcast_to(np.ravel(out[f"rhs/{u}"]), x[0].shape) for u in self.block.torn]
        return np.stack([r if explicit else v - r for v, r, explicit in zip(x, rows, self.block.explicit, strict=True)])

    def _entry(self, x: np.ndarray, p: Params) -> list[Any]:
        index = _points(p)
        key = index.tobytes() + x.tobytes()
        kept = 4  # states are kept: between two uses of a solution its neighbours are needed
        if key not in self._looked:
            if len(self._looked) > kept:
                self._looked.pop(next(iter(self._looked)))
            self._looked[key] = [self.ask(self._state(x, index))]
        return self._looked[key]

    def _state(self, x: np.ndarray, index: np.ndarray) -> State:
        """The state with x put into it; all of the points need no copy."""
        s = self.s
        if len(index) < self.points:
            if self._some[0] != index.tobytes():
                self._some = index.tobytes(), {n: v[index] if np.shape(v)[:1] == (self.points,) else v
                                               for n, v in self.s.items()}
            s = self._some[1]
        return {**s, **{u: self.column(v) for u, v in zip(self.block.torn, x, strict=True)}}


def _points(p: Params) -> np.ndarray:
    return np.atleast_1d(np.asarray(p["point"], dtype=int))
