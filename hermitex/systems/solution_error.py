"""The one error of a solution: how far it is from a solution of its equations, relative to itself.

    max( |M^-1 F'|,  2 eps |M^-1| T ),     M = dF/dx of each block,   T the sum of the |terms| of F

F' are the equations on nodes that are not among those of the solution, in a wider window, evaluated in extended precision: a
coarse rule, a truncated window and terms that cancel all move them. The second part is what rounding leaves where M is
nearly singular, as at a double root.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hermitex.solvers.linear import dead_rows, solve
from hermitex.systems.compiled_system import BlockCode, State
from hermitex.systems.newton_step import FLOOR, SMALL, matrix_of
from hermitex.systems.stability import block_slopes

_ROUNDED = 2*float(np.finfo(float).eps)  # four roundings, each half a last digit: of two factors, their product and the sum


SAID = 10  # times the tolerance: a larger error is reported, and closed forms with such an error are integrated
DRAWS = 10  # times what rounding was seen to do: that is one draw of it


class SolutionError:
    """The errors of a `Run` at its solution, whose right-hand sides and observables are `verdict`."""

    def __init__(self, run: Any, verdict: State) -> None:
        self.run, self.program, self.row = run, run.program, run.row
        self.here = {n: np.asarray(self.row(v), dtype=float) for n, v in verdict.items()}
        told = {n.removeprefix("rhs/"): v for n, v in self.here.items() if n.startswith("rhs/") or n in self.program.observables}
        known = np.array([np.isfinite(v) for v in told.values()]).reshape(len(told), run.points)
        self.finite = known.all(axis=0)  # where these are, the error is
        # of each point the unknown or observable that moved most, as `elsewhere` saw it last, or that has no number
        self.worst = [list(told)[k] for k in np.argmin(known, axis=0)] if told else []
        self.x = {u: self.row(run.s[u]) for u in self.program.unknowns}
        self.zero = {u: (v == 0) & (u in self.program.positive) for u, v in self.x.items()}
        self.inverse: dict[int, np.ndarray] = {}
        self.singular: dict[int, np.ndarray] = {}  # at which points there is none
        # the search tries these at 0
        self.torn = {u for b in self.program.blocks if b.kind in ("root", "nonlinear") for u in b.torn}
        self.still: dict[int, np.ndarray] = {}  # and which unknowns of a block stay where they are
        self.rounding = np.zeros(run.points)  # the second part
        self.lost = np.zeros(run.points)  # and that of terms that cancel in an explicit equation
        self.unfelt: dict[str, np.ndarray] = {}  # what rounding makes of the unknowns of nearly singular linear equations
        self.of_itself = np.zeros(run.points)  # how far `elsewhere` saw an explicit unknown move, relative however small it is
        self.noise: dict[str, np.ndarray] = {}  # how far rounding alone moves each unknown, once it was asked for
        self.exact: State = {}  # the equations in extended precision, from which that is known
        with np.errstate(all="ignore"):
            for k, block in enumerate(self.program.blocks):
                if block.kind != "explicit":
                    self._invert(k, block)
                else:
                    self.rounding = self._worst(self.rounding, k, block, np.abs([self.x[u] for u in block.unknowns]))
                terms = np.array([self.here.get(f"terms/{u}", np.zeros(run.points))*(u not in self.program.implicit)
                                  for u in block.unknowns])
                self.lost = self._worst(self.lost, k, block, terms)

    def _invert(self, k: int, block: BlockCode) -> None:
        """M^-1 of a block, shape (points, n, n); an unknown that is 0 at the end of its range stays there."""
        out = self.run.outputs[k]
        x = np.array([self.x[u] for u in block.unknowns])
        still = np.array([self.zero[u] for u in block.unknowns])
        if block.kind == "linear":
            M, b = matrix_of(block, out, self.run.points)
            dead = dead_rows(np.abs(M).max(axis=1).T).T  # rounding of the other rows, which says nothing: the least norm is taken
            terms, still = np.where(dead, 0.0, np.abs(b)), still | dead
        else:
            D = block_slopes(block, out, self.run.points)
            explicit = [u not in self.program.implicit for u in block.unknowns]
            M = np.where(np.array(explicit)[:, None, None], np.eye(len(D))[:, :, None] - D, D)
            terms = np.array([2*np.abs(v) if own else self.here[f"terms/{u}"]
                              for v, u, own in zip(x, block.unknowns, explicit, strict=True)])
        # without slopes, as of a step in an average at T = 0, the equations themselves say how far they are off
        self.still[k] = still
        own = still[:, None] | still[None] | ~np.isfinite(M).all(axis=(0, 1))
        M = np.where(own, np.eye(len(M))[:, :, None], M)
        inverse = self.inverse[k] = _inverted(M.transpose(2, 0, 1))
        if block.kind == "linear":
            inverse[:] = np.where((least := _least_norm(M))[1], least[0], inverse)
        self.singular[k] = np.isnan(inverse).any(axis=(1, 2))
        terms = np.where(still, 0.0, terms + np.einsum("ijb,jb->ib", np.abs(M), np.abs(x)))
        self.rounding = self._worst(self.rounding, k, block, terms)

    def _worst(self, known: np.ndarray, k: int, block: BlockCode, terms: np.ndarray) -> np.ndarray:
        """The change of a block's unknowns by rounding of the terms of its equations, or the known error if that is larger."""
        d = _ROUNDED*terms
        if k in self.inverse:
            d = np.where(self.singular[k], 0.0, np.einsum("bij,jb->ib", np.abs(self.inverse[k]), d))
        parts = dict(zip(block.unknowns, map(self._part, block.unknowns, d, d), strict=True))
        if block.kind == "linear" and self.program.observables:  # then the observables say how much of it is felt
            for u, own in zip(block.unknowns, d, strict=True):
                poor = parts[u] > SAID*self.run.tolerance
                self.unfelt[u] = np.maximum(self.unfelt.get(u, 0.0), np.where(poor, own, 0.0))
                parts[u] = np.where(poor, 0.0, parts[u])
        return np.nan_to_num(np.max([known, *parts.values()], axis=0), nan=np.inf)

    def notes(self, done: np.ndarray) -> tuple[str, ...]:
        """The digits that the unknowns of nearly singular linear equations hold, of the points `done`."""
        poor = max((float(np.max(self._part(u, d, d)[done], initial=0.0)) for u, d in self.unfelt.items()), default=0.0)
        return (f"nearly singular linear equations: relative error {poor:.1e} of unknowns, which no observable feels",)*(poor > 0)

    def elsewhere(self) -> np.ndarray:
        """|M^-1 F'|, F' on other nodes than those in force, at each point; infinite where it is nan.

        A small unknown that moves no further than rounding moves it counts as a larger one, see `_part`.
        """
        nodes = self.run.quad.beside()
        there = self.run.extended(nodes)
        shift = self._shift(there)
        gaps = self._gaps(there, nodes, shift)
        far = self._far(there, gaps)
        if np.any(far > self.run.tolerance) and any(np.any(np.abs(x) < SMALL) for x in self.x.values()):
            far = self._far(there, gaps, self._noise_of())
        apart = self._apart(shift)
        return np.where(apart > 1e-3, np.maximum(far, apart), far)  # an average has three digits, or is none

    def _apart(self, shift: Mapping[str, np.ndarray]) -> np.ndarray:
        """The largest `shift` of a right-hand side, relative to its terms.

        Where a pole moves with an unknown no nodes resolve the average; but its slope M is so steep that M^-1 F' is small.
        """
        apart = [np.zeros(self.run.points)]
        for u in (u for u in self.program.unknowns if u not in self.program.implicit):
            size = np.maximum(np.maximum(np.abs(self.here[f"rhs/{u}"]), self.here.get(f"terms/{u}", 0.0)), SMALL)
            apart.append(np.abs(shift[f"rhs/{u}"])/size)
        return np.nan_to_num(np.max(apart, axis=0), nan=np.inf)

    def of_rounding(self) -> np.ndarray:
        """The distance to the same equations on the same nodes, in extended precision."""
        if not self.finite.any():
            return np.full(self.run.points, np.inf)
        noise = self._noise_of()
        return self._far(self.exact, noise, noise)

    def _noise_of(self) -> dict[str, np.ndarray]:
        if not self.noise:
            self.exact = self.run.extended(self.run.used)
            self.noise = self._gaps(self.exact, self.run.used, self._shift(self.exact))
        return self.noise

    def _shift(self, there: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """The difference of each right-hand side to its value `there`."""
        return {n: np.asarray(np.subtract(self.row(there[n]), v), dtype=float)
                for n, v in self.here.items() if n.startswith("rhs/")}

    def _gaps(self, there: Mapping[str, Any], nodes: Mapping[str, Any], shift: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """How far each unknown moves with the `shift`, and each observable with them and the `nodes`."""
        with np.errstate(all="ignore"):
            s = self._moved(shift)
            gaps = {u: np.abs(self.row(s[u]) - x) for u, x in self.x.items()}
            if self.program.observables:
                seen = self.run.ask("observables", {**s, **there}, nodes, extended=True)
                gaps |= {o: np.abs(self.row(seen[o]) - self.here[o]) for o in self.program.observables}
        return gaps

    def _far(self, there: Mapping[str, Any], gaps: Mapping[str, np.ndarray], noise: Mapping[str, np.ndarray] | None = None
             ) -> np.ndarray:
        """The largest of the relative `gaps` at each point that exceed the `noise` of rounding."""
        with np.errstate(all="ignore"):
            none = np.zeros(self.run.points)
            parts = [np.where(gaps[u] <= DRAWS*self.unfelt.get(u, none), 0.0, self._part(u, gaps[u], noise[u] if noise else none))
                     for u in self.x]
            parts += [gaps[o]/np.maximum(np.abs(self.here[o]), FLOOR) for o in self.program.observables]
            names = [*self.x, *self.program.observables]
            for u in (u for block in self.program.blocks if block.kind == "explicit" for u in block.unknowns):
                size = np.abs(self.x[u])
                self.of_itself = np.maximum(self.of_itself, np.where(size > gaps[u], gaps[u]/size, 0.0))
            for u in self.program.positive:  # 0 is a solution where its right-hand side is 0 but for rounding
                if u not in self.program.implicit:
                    rhs, here = self.row(there[f"rhs/{u}"]), self.here[f"rhs/{u}"]
                    same = np.abs(rhs - here) <= 1e-3*np.abs(here)
                    parts.append(np.where(self.zero[u] & (rhs != 0) & same, np.inf, 0.0))
            far: np.ndarray = np.nan_to_num(np.max([np.zeros(self.run.points), *parts], axis=0), nan=np.inf).astype(float)
            self.worst = [names[k] for k in np.argmax(np.nan_to_num(parts[:len(names)], nan=np.inf), axis=0)] if names else []
            return 2*far  # a step is a slope times a difference: twice that holds what is of second order, and its own rounding

    def _moved(self, shift: Mapping[str, np.ndarray]) -> State:
        """The state after one step of Newton's method of every block in order, each formula off by its `shift`."""
        s, implicit = dict(self.run.s), self.program.implicit
        for k, block in enumerate(self.program.blocks):
            fine = block.kind == "explicit"  # a step of less than a rounding is lost in doubles, and felt where they cancel
            here = s if fine else {n: v.astype(float) if np.asarray(v).dtype == np.longdouble else v for n, v in s.items()}
            out = self.run.outputs[k] if k == 0 and not fine and k in self.run.outputs else self.run.ask(
                f"block_{k + 1}", here, self.run.used, extended=fine)
            x = np.array([self.x[u] for u in block.unknowns], dtype=np.longdouble)
            change = np.array([shift[f"rhs/{u}"] for u in block.unknowns])
            if block.kind == "explicit":
                new = np.array([self.row(out[f"rhs/{u}"]) for u in block.unknowns]) + change
            else:
                rest = np.where(np.array([u in implicit for u in block.unknowns])[:, None], -change, change)
                if block.kind == "linear":
                    A, b = matrix_of(block, out, self.run.points)
                    rest = rest + b - np.einsum("ijb,jb->ib", A, x.astype(float))
                else:
                    x = np.array([self.row(out[u]) if u in block.members else self.x[u] for u in block.unknowns],
                                 dtype=np.longdouble)
                    rest = rest + np.array([0*self.x[u] if u in block.members else -self.row(out[f"rhs/{u}"]) if u in implicit
                                            else self.row(out[f"rhs/{u}"]) - self.x[u] for u in block.unknowns])
                rest = np.where(self.still[k], 0.0, rest)
                new = x + np.einsum("bij,jb->ib", self.inverse[k], rest)  # NaN without an inverse, but where x = x says nothing
                new = np.where(self.singular[k] & (rest == 0).all(axis=0), x, new)
            s |= {u: v.reshape(self.run.column(0*v).shape) for u, v in zip(block.unknowns, new, strict=True)}
        return s

    def _part(self, u: str, d: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """An error relative to its unknown down to SMALL: of a positive one however small it is, but for what rounding leaves of 0.

        One that vanishes but for rounding, as an overlap with nothing does, counts as one of the size FLOOR.
        """
        size = np.abs(self.x[u])
        least = np.where(size <= np.maximum(d, DRAWS*noise), FLOOR, SMALL)
        if u in self.program.positive:  # other nodes and weights are rounded in another way than those in use
            least = np.where(size == 0, FLOOR, np.where((size <= DRAWS*noise) & (d <= DRAWS**2*noise) & (u not in self.torn),
                                                          SMALL, 0.0))
        return np.asarray(np.where(d == 0, 0.0, d/np.maximum(size, least)))


def _inverted(M: np.ndarray) -> np.ndarray:
    """The inverse of each matrix of a stack, NaN where there is none."""
    try:
        return np.linalg.inv(M)
    except np.linalg.LinAlgError:
        if len(M) == 1:
            return np.full_like(M, np.nan)
        return np.concatenate([_inverted(one[None]) for one in M])


def _least_norm(M: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What `linear.solve` makes of the unit vectors, shape (points, n, n), and where M (n, n, points) is singular to it."""
    n, _, points = M.shape
    columns = [solve(M, np.repeat(row[:, None], points, axis=1)) for row in np.eye(n)]
    return np.array([x for x, _ in columns]).transpose(2, 1, 0), (columns[0][1] < n)[:, None, None]


__all__ = ["SAID", "SolutionError"]
