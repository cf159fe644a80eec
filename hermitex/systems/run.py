"""One batch of points: tables, blocks in order, the undamped residual of every equation, the quadrature verdict.

    x - rhs(x) = 0  block by block;   |x - rhs| <= tolerance |x|  of all equations at the end, less what rounding explains
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from hermitex.kernels.parameter_conditions import violated_conditions
from hermitex.solvers.fallback_chain import merge_solutions, select_points, solve_robustly
from hermitex.solvers.fixed_point import GROWS
from hermitex.solvers.interval import interior_point, interval_text, is_outside
from hermitex.solvers.linear import linear
from hermitex.solvers.problem import SOUND, START
from hermitex.solvers.root_verdict import LEAST_HELD
from hermitex.solvers.solution import Solution, combine_solutions
from hermitex.solvers.solve_limits import OutOfTime, is_time_up, ran_out, run_if_time_allows
from hermitex.solvers.starts import off_poles
from hermitex.systems.cancelled import cancellation_losses
from hermitex.systems.compiled_system import BlockCode, Program, State, as_point_vector
from hermitex.systems.coordinates import Coordinates, at_ends
from hermitex.systems.double_roots import undetermined_parts
from hermitex.systems.newton_step import (
    FLOOR,
    OF_AVERAGE,
    SMALL,
    matrix_of,
    newton_moved_state,
    rounding_of_averages,
    rounding_of_rows,
)
from hermitex.systems.nonlinear import NonlinearBlock
from hermitex.systems.residual import residual_of
from hermitex.systems.stability import stability
from hermitex.systems.verification import glance

_REFINEMENTS = 40  # of the quadratures of a batch; chosen by trial: a point that needs more is refused
_VERDICT = ("right_hand_sides", "observables")
_LEAST_GAP = 4e-15  # between averages on two sets of nodes: less is rounding
_SAID = 10  # of the tolerance: a larger error is told, and closed forms that leave it are integrated
SHORT, LOST = "the quadrature reached", "terms that cancel leave"
DOUBLE = "a root that is double or nearly so"
NEAR = 1e-6  # a residual from which a solution is near


class Run:
    """One batch of points."""

    def __init__(self, program: Program, numbers: dict[str, np.ndarray], points: int, guess: dict[str, Any],
                 tolerance: float) -> None:
        self.program, self.points, self.tolerance = program, points, tolerance
        self.numbers = numbers
        self.place, self.cancelled = np.arange(points), dict[int, float]()  # how much the closed forms of a point lose
        self.quad = program.quadratures()
        self.s: State = {n: self.column(v) if v.ndim else np.float64(v) for n, v in numbers.items()}
        self.guess = guess
        self.first: State = {}  # where each block began before any rule was refined
        self.zero: State = {}  # and which of its unknowns were given 0, or found there
        self.held: State = {}  # and what was found of it, where that was sound
        self.before: State = {}
        self.moved = self.unsettled = np.full(points, np.inf)
        self.asked = max(tolerance/3, 1e-15)  # of every average
        self.drift = np.zeros(points)  # of the solution: how far it moves on other nodes
        self.stopped = np.zeros(points)  # how far the observables still move with a step of Newton's method
        self.drifts: list[np.ndarray] = []  # the same as it was found, and with coarser weights where that was asked
        self.least, self.idle = np.full(points, np.inf), np.zeros(points, dtype=int)
        self.rounds = 0
        self.used: Mapping[str, Any] = {}
        self.rounding: State = {}
        self.outputs: dict[int, State] = {}  # of the block functions, at the solution

    def column(self, v: Any) -> np.ndarray:
        """A vector over the points as an array with every axis."""
        return np.asarray(v, dtype=float).reshape(-1, *[1] * (self.quad.ndim - 1))

    def ask(self, name: str, s: State, quad: Mapping[str, Any], average: Any = None, part: float = 1.0) -> dict[str, Any]:
        """What a function of the program returns. Raises OutOfTime where a budget leaves no time for it."""
        per_grade = 6  # further panels along an axis, about, for each grade of them about what is narrow

        def size() -> float:
            product = float(max((np.size(v) for v in s.values() if np.ndim(v) and np.shape(v)[0] == np.size(v)), default=1))
            for nodes, _, *moving in (v for n, v in quad.items() if n):
                product *= nodes.size*(1 + per_grade*max(moving[1], 0) if moving else 1)
            return product

        return run_if_time_allows(f"{name}/{average is not None}", size, lambda: self.program.call(name, s, quad, average, part))

    def solution(self) -> Solution:
        """Solve, and refine the quadrature until every average of a solution holds its tolerance, point by point."""
        try:
            return self._solution()
        except OutOfTime:
            return self._unfinished()

    def _unfinished(self) -> Solution:
        """Where the points stand when the time is up."""
        none = np.full(self.points, np.nan)
        values = {u: self.row(self.s.get(u, self.guess.get(u, none))) for u in self.program.unknowns}
        return Solution({**values, **dict.fromkeys(self.program.observables, none)}, residual=np.full(self.points, np.inf),
                        converged=np.zeros(self.points, dtype=bool), iterations=np.zeros(self.points, dtype=int), stability=none,
                        error=none, method="none", reason=np.full(self.points, ran_out(), dtype=object),
                        unknowns=self.program.unknowns,
                        origin={"tolerance": self.tolerance, "quadrature_error": np.inf, "nodes": self.quad.nodes})

    def _solution(self) -> Solution:
        quality = max(self.tolerance / 3, 1e-15)
        at_once = self.quad.smooth  # nothing is asked of each average where one look at the solution holds all
        chances = 3  # quadratures with which a point is tried that none of the methods solves
        while True:
            with np.errstate(all="ignore"):
                at_once = at_once and self.quad.fine_enough(partial(self.into, self.s, self.s, ("tables",)))
                if not at_once:
                    self._settle_tables(self.asked)
                found = combine_solutions([self._block(k, b) for k, b in enumerate(self.program.blocks, start=1)])
                found = self._last_step(found)
                verdict: State = {}
                looked = at_once
                if at_once:
                    at_once, self.used, before = False, self.quad.arrays(), dict(self.quad.rules)
                    fine = found.all_converged and self.quad.fine_enough(partial(self.into, self.s, verdict, _VERDICT))
                    if fine and (far := glance(self, verdict)) is not None:
                        return self._held(found, verdict, far)
                    self._settle_tables(self.asked)
                    if self.quad.rules != before:
                        solved = found.converged  # what was not says nothing on finer nodes
                        self.guess |= {u: np.where(solved, found[u], self.guess.get(u, np.nan)) for u in self.program.unknowns}
                        continue
                self.used = self.quad.arrays()  # before they are refined
                good = self.quad.examine(partial(self.into, self.s, verdict, _VERDICT), self.asked,
                                         coarsely=partial(self.into, self.s, {}, _VERDICT))
                values = {**{u: found[u] for u in self.program.unknowns}, **{o: verdict[o] for o in self.program.observables}}
                last, self.moved = self.moved, self.how_far(self.before, values)
                self.before = {n: self.row(v) for n, v in values.items()}
                self.rounds += 1
                resting, end = np.maximum(last, self.moved) <= quality, self.rounds == _REFINEMENTS or is_time_up()
                lost = [self.rounds >= chances or GROWS in str(r) or "runs to" in str(r) for r in found.reason]
                end = end | (~np.asarray(found.converged) & np.array(lost))
                done = good | resting | end
                looked &= self.quad.settled  # on these nodes
                if good.all() and found.all_converged and not looked and (far := glance(self, verdict)) is not None:
                    return self._held(found, verdict, far)
                if done.any():
                    other: State = {}
                    self.drifts = []
                    agreed = self.quad.verify(partial(self._again, other), self.asked, partial(self._again, {}), done)
                    shift = self._shifted(verdict, other)
                    self.moved = np.maximum(self.moved, shift)
                    done &= agreed | (resting & (shift <= quality)) | end
                    self.drift = np.where(found.converged, self._amplified_drift(), 0.0)
                    done &= end | ~self._points_to_refine(done & ~end)
                ended = self._finish(found, verdict, done) if done.any() else found
            if done.all():
                return ended
            # What needs finer rules goes on without the others, and what is not solved without what is.
            solved = np.asarray(found.converged)
            groups = [k for k in (np.flatnonzero(~done & solved), np.flatnonzero(~done & ~solved)) if k.size]
            self.guess = {u: found[u] for u in self.program.unknowns}
            if groups[0].size < self.points:
                parts = [(k, self.part(k).solution()) for k in groups]
                parts += [(k, select_points(ended, k)) for k in [np.flatnonzero(done)] if k.size]
                return merge_solutions(parts, self.points, self.program.unknowns, parts[0][1].origin)

    def _held(self, found: Solution, verdict: State, far: np.ndarray) -> Solution:
        """What one look at it holds, by which it moves so far."""
        self.moved = self.drift = far
        return self._finish(found, verdict, np.ones(self.points, dtype=bool), sure=True)

    def part(self, points: np.ndarray, *, outputs: bool = False) -> Run:
        """Some of the points, from where they stand; with what the block functions returned there, if asked."""
        def some(v: Any) -> Any:
            return v[points] if np.ndim(v) and len(v) == self.points else v

        other = copy(self)
        other.points, other.quad, other.rounding = len(points), self.quad.of(points), {}
        other.outputs = {k: {n: some(v) for n, v in out.items()} for k, out in self.outputs.items()} if outputs else {}
        other.place = self.place[points]
        other.s, other.guess, other.before = ({n: some(v) for n, v in d.items()} for d in (self.s, self.guess, self.before))
        other.first, other.zero, other.held = ({n: v[:, points] for n, v in d.items()} for d in (self.first, self.zero, self.held))
        other.moved, other.drift, other.least, other.idle, other.stopped = (
            some(v) for v in (self.moved, self.drift, self.least, self.idle, self.stopped))
        return other

    def _last_step(self, found: Solution) -> Solution:
        """A step of Newton's method more where an observable moves with it: 1/(x - c) shows what is left of x, and far larger."""
        self.stopped = np.zeros(self.points)
        stopped = 1e-13  # a residual from which a step of Newton's method may be felt
        k = np.flatnonzero(np.asarray(found.converged) & (np.asarray(found.residual) > stopped))
        if not self.program.observables or not k.size:
            return found
        new, shift = self.part(k, outputs=True).stepped()
        far = shift > _SAID*self.tolerance
        if not far.any():
            return found
        k, shift, new = k[far], shift[far], {u: v[far] for u, v in new.items()}
        ahead = self.part(k)
        ahead.s |= {u: ahead.column(v) for u, v in new.items()}
        ahead.outputs = {b: ahead.called(f"block_{b + 1}") for b in self.outputs}
        left = ahead.stepped()[1]
        better = left < shift  # where it gains nothing the old state stays
        values = {u: _replace_points(self.row(self.s[u]), k, new[u], better) for u in self.program.unknowns}
        self.s |= {u: self.column(v) for u, v in values.items()}
        self.outputs = {b: {n: _replace_points(v, k, ahead.outputs[b][n], better) if np.shape(v)[:1] == (self.points,) else v
                            for n, v in out.items()} for b, out in self.outputs.items()}
        self.stopped[k] = np.where(better, left, shift)
        return replace(found, value={**found.value, **values})

    def stepped(self, put: Mapping[int, State] | None = None) -> tuple[State, np.ndarray]:
        """The unknowns after a step of Newton's method, and how far it moves the observables, relative.

        put : {k: the unknowns of block k}, of blocks that are put there in place of their step
        """
        held = {f"rhs/{u}": 0.0 if u in self.program.implicit else self.s[u] for u in self.program.unknowns}
        s = newton_moved_state(self.program.blocks, lambda name, s: self.program.call(name, s, self.quad.arrays()), self.s,
                  {k: {**out, **held} for k, out in self.outputs.items()}, self.points, put)
        now, then = ({n: self.row(v) for n, v in self.program.call("observables", state, self.quad.arrays()).items()
                      if n in self.program.observables} for state in (self.s, s))
        return {u: self.row(s[u]) for u in self.program.unknowns}, self.how_far(now, then)

    def how_far(self, before: State, now: State, zero: float = SMALL) -> np.ndarray:
        """How far two sets of numbers differ at each point, relative; an unknown below SMALL counts as one of the size `zero`."""
        if not before:
            return np.full(self.points, np.inf)
        values = np.array([self.row(v) for v in now.values()])
        seen = np.array([n in self.program.observables for n in now])[:, None]
        size = np.abs(values)
        size = np.where(seen, np.maximum(size, FLOOR), np.where(size < SMALL, zero, size))
        return np.nan_to_num(np.max(np.abs(values - np.array([before[n] for n in now]))/size, axis=0), nan=np.inf)

    def _settle_tables(self, quality: float) -> None:
        """What no unknown enters is computed, and its quadrature refined, before anything is solved."""
        for _ in range(_REFINEMENTS):
            tables: State = {}
            good = self.quad.examine(partial(self.into, self.s, tables, ("tables",)), quality, "tables")
            self.s.update(tables)
            if good.all() or is_time_up():
                break
        if not good.all():  # on the nodes in force, which were refined last
            self.into(self.s, self.s, ("tables",), None)
        self.unsettled = self.row(self.quad.reached("tables"))

    def into(self, s: State, out: State, names: tuple[str, ...], average: Any) -> None:
        # An unknown is solved to relative accuracy; an observable that is nearly zero needs an absolute one only.
        absolute = partial(average, floor=FLOOR) if average else None
        for name in names:
            out.update(self.ask(name, s, self.quad.arrays(), absolute if name == "observables" else average))

    def _again(self, out: State, average: Any) -> None:
        """Tables, right-hand sides and observables at the solution, on the nodes in force, and how far it moves on them."""
        tables: State = {}
        self.into(self.s, tables, ("tables",), average)
        first = not out
        self.into({**self.s, **tables}, out, _VERDICT, average)
        if first:
            arrays = self.quad.arrays()
            s = newton_moved_state(self.program.blocks, lambda name, s: self.ask(name, s, arrays), {**self.s, **tables},
                                   self.outputs,
                      self.points, there=out)
            seen = self.ask("observables", s, arrays) if self.program.observables else {}
            # What vanishes but for rounding, an overlap with nothing, moves by all of itself: it needs an absolute accuracy.
            self.drifts.append(self.how_far(self.before, {**{u: s[u] for u in self.program.unknowns}, **seen}, zero=1.0))

    def elsewhere(self, s: State, part: float) -> State:
        """Right-hand sides and observables on nodes beside those in force, what cancels in them off by that part of OFF."""
        out: State = {}

        def run(average: Any) -> None:
            for name in ("rounded",) if self.program.cancels else ("tables", *_VERDICT):
                out.update(self.ask(name, {**s, **out}, self.quad.arrays(), part=part if name == "rounded" else 1.0))

        self.quad.beside(run)
        return out

    def _shifted(self, before: State, now: State) -> np.ndarray:
        """How far right-hand sides and observables move on other nodes; an implicit equation is 0 but for its drift."""
        same = {n: v for n, v in now.items() if n.removeprefix("rhs/") not in self.program.implicit}
        return self.how_far({n: self.row(before[n]) for n in same}, same) if same else np.zeros(self.points)

    def _amplified_drift(self) -> np.ndarray:
        """The drift; where refinement ended short, that of the error measured, as two sets of nodes may agree by chance.

        It is no more than how far the solution moves with coarser weights.
        """
        if not self.drifts:
            return np.zeros(self.points)
        drift, *coarser = self.drifts
        gaps, error = self.row(self.quad.reached("verified")), self.row(self.quad.felt)
        far = drift*np.maximum(error/np.maximum(gaps, _LEAST_GAP), 1.0)
        for other in coarser:
            far = np.minimum(far, np.maximum(drift, other))
        return np.where(error > self.asked, far, drift)

    def _points_to_refine(self, among: np.ndarray) -> np.ndarray:
        """Points whose solution moves on other nodes by more than is asked, while better averages make it move less."""
        gaps = self.row(self.quad.reached("verified"))
        cheap = 100_000  # numbers in the largest array of a point
        # Where finer rules gave no more, what is left is rounding: yet finer ones are tried where that costs little.
        held = (self.row(self.quad.reached("")) <= self.asked) | (self.quad.largest <= cheap*self.points)
        short = among & (self.drift > self.tolerance) & (gaps > _LEAST_GAP) & held
        if not short.any():
            return short
        gained = self.drift < self.least/2
        self.least, self.idle = np.where(gained, self.drift, self.least), np.where(gained, 0, self.idle + 1)
        idle = 3  # rounds in a row that do not bring a solution nearer: finer nodes do not help
        short = short & (self.idle < idle)
        if short.any():
            self.asked = max(min(self.asked, float(np.min((gaps*self.tolerance/self.drift)[short]))/3), _LEAST_GAP)
        return short

    def called(self, name: str) -> dict[str, Any]:
        return self.ask(name, self.s, self.quad.arrays())

    # -- blocks ------------------------------------------------------------------------------------------------------
    def _block(self, k: int, block: BlockCode) -> Solution:
        name = f"block_{k}"
        if block.kind == "explicit":
            out = self.called(name)
            found = self._explicit(block, out)
        elif block.kind == "linear":
            self.outputs[k - 1] = self.called(name)
            found = self._linear(block, self.outputs[k - 1])
        else:
            found, self.outputs[k - 1] = self._nonlinear(name, block)
        for u in block.unknowns:
            self.s[u] = self.column(found[u])
        return found

    def row(self, value: Any) -> np.ndarray:
        return as_point_vector(value, self.points)

    def _explicit(self, block: BlockCode, out: dict[str, Any]) -> Solution:
        (u,) = block.unknowns
        x = self.row(out[f"rhs/{u}"])
        ok = np.isfinite(x)
        reason = np.where(ok, "", f"the right-hand side of {u} is not finite").astype(object)
        return Solution({u: x}, residual=np.where(ok, 0.0, np.inf), converged=ok, iterations=np.zeros(self.points, dtype=int),
                        stability=np.zeros(self.points), error=np.full(self.points, np.nan), method="explicit",
                        reason=reason, unknowns=(u,))

    def _linear(self, block: BlockCode, out: dict[str, Any]) -> Solution:
        """Explicit members are eliminated first: what is left is small and its rows are of comparable size."""
        A, b = matrix_of(block, out, self.points)
        rows = A.copy(), b.copy()
        place = {u: i for i, u in enumerate(block.unknowns)}
        members = [place[u] for u in block.members]
        torn = [place[u] for u in block.torn]
        for k in members:  # row k reads x_k + sum_j A_kj x_j = b_k
            factor = A[:, k].copy()
            factor[k] = 0.0
            A -= factor[:, None]*A[k]
            b -= factor*b[k]
        rest = np.ix_(torn, torn)
        found = linear(A[rest], b[torn], names=block.torn, raise_on_failure=False)
        x = found.state
        values = dict(zip(block.members, b[members] - np.einsum("ijb,jb->ib", A[np.ix_(members, torn)], x), strict=True))
        found = found.extended(values, unknowns=block.unknowns)
        solution = np.array([found[u] for u in block.unknowns])
        self.rounding |= dict(zip(block.unknowns, rounding_of_rows(*rows, solution, members), strict=True))
        return found

    def _nonlinear(self, name: str, block: BlockCode) -> tuple[Solution, State]:
        equations = NonlinearBlock(block, lambda s, average=None: self.ask(name, s, self.quad.arrays(), average), self.s,
                                   self.points, self.column)
        functions: dict[str, Any] = equations.functions()
        everything = np.arange(self.points)
        x0, given = self._starts(block)
        if not given.all():
            x0 = off_poles(equations.both, x0, ~given, {"point": everything})
        begin, domains = x0, [self.program.domain.get(u) for u in block.torn]
        positive, explicit, line = list(block.positive), list(block.explicit), Coordinates(domains)
        if line.some:
            functions, explicit, x0 = line.wrapped(functions, explicit), line.explicit(explicit), line.inside(x0)
            positive = [p or d is not None for p, d in zip(positive, domains, strict=True)]
        self.first.setdefault(name, x0)
        zero = self.zero.get(name, False) | np.stack([
            np.broadcast_to(np.equal(self.guess.get(u, np.nan), 0.0) & p & (u not in self.program.domain), (self.points,))
            for u, p in zip(block.torn, positive, strict=True)])
        self.zero[name] = zero
        begun = {"point": everything, START: self.first[name], SOUND: np.equal(self.held.get(name, np.nan), begin).all(axis=0)}
        found = solve_robustly(x0, begun, names=block.torn, positive=positive, explicit=explicit, bent=line.plain(len(x0)),
                               zero=zero,
                       rtol=self.tolerance, contraction=False, raise_on_failure=False, **functions)
        if line.some:
            found = line.back(found, block.torn)
            if not is_time_up():
                found = at_ends(found, begin, domains, list(block.positive), explicit=list(block.explicit), rtol=self.tolerance,
                                **equations.functions())
        x = np.array([found[u] for u in block.torn])
        self.held[name] = np.where(found.converged, x, np.nan)
        out = equations.outputs(x, {"point": everything})
        return found.extended({m: self.row(out[m]) for m in block.members}), out

    def _beside(self, k: int, size: float) -> State:
        """What block k returns with the unknowns that are 0 moved to `size`."""
        unknowns = {u for b in self.program.blocks for u in b.torn}
        s = {n: np.where(np.equal(v, 0.0), size, v) if n in unknowns else v for n, v in self.s.items()}
        return self.ask(f"block_{k + 1}", s, self.used)

    def start_of(self, u: str, positive: bool, guess: State) -> tuple[np.ndarray, np.ndarray]:
        """The start of an unknown at every point, and where there is no other: 1 where it is positive, else 0, is the default."""
        domain = self.program.domain.get(u)
        default = interior_point(domain) if domain else 1.0 if positive else 0.0
        value = np.asarray(guess.get(u, np.nan), dtype=float).reshape(-1)
        good = np.isfinite(value) & (~is_outside(value, domain) if domain else (value > 0) | (not positive))
        value, given = np.where(good, value, default), good | (domain is not None)
        return np.array(np.broadcast_to(value, (self.points,))), np.broadcast_to(given, (self.points,))

    def _starts(self, block: BlockCode) -> tuple[np.ndarray, np.ndarray]:
        """Of the torn unknowns; one that was given none is what its equation makes of the members that were given one."""
        guess = dict(self.guess)
        positive = dict(zip(block.torn, block.positive, strict=True))
        known = [m for m in block.members if m in guess or m in self.program.domain]
        unsaid = [u for u, explicit in zip(block.torn, block.explicit, strict=True) if explicit and u not in guess]
        if known and unsaid:
            inner = {u: self.column(self.start_of(u, positive.get(u, False), guess)[0]) for u in block.unknowns}
            later = {u: np.float64(0.0) for u in self.program.unknowns if u not in self.s}
            out = self.ask("right_hand_sides", {**later, **self.s, **inner}, self.quad.arrays())
            guess |= {u: self.row(out[f"rhs/{u}"]) for u in unsaid}
        starts, given = zip(*(self.start_of(u, p, guess) for u, p in positive.items()), strict=True)
        return np.stack(starts), np.stack(given)

    # -- verdict -----------------------------------------------------------------------------------------------------
    def _finish(self, found: Solution, verdict: State, done: np.ndarray, *, sure: bool = False) -> Solution:
        residual, most = residual_of(self, verdict), max(100*self.tolerance, LEAST_HELD)
        below = {u: -self.row(self.s[u]) for u in self.program.positive}
        # An average that is nearly 0 is known to the rounding of its terms only.
        if np.any(found.converged & ((residual > most) | (np.max([*below.values(), np.zeros(self.points)], axis=0) > most*SMALL))):
            left = rounding_of_averages(lambda average: self.ask(_VERDICT[0], self.s, self.used, average))
            known = max(min(self.asked, 1e-11)/OF_AVERAGE, 1.0)  # an average is held to what was asked of it, relative to E|F|
            for name, v in left.items():
                u = name.removeprefix("rhs/")
                self.rounding[u] = np.nan_to_num(known*self.row(v)) + self.rounding.get(u, 0.0)
            residual = residual_of(self, verdict)
        ok = np.asarray(found.converged) & (residual <= most)
        # An average of nothing but rounding (h - B = 0 where the target is learnt) has no relative error to hold: there
        # it counts that a finer rule leaves the solution where it is. What no unknown enters has no such excuse.
        quadrature = self.moved if sure else np.maximum(np.minimum(self.row(self.quad.held), self.moved), self.unsettled)
        quadrature = np.maximum(quadrature, self.stopped)
        quadrature = np.maximum(quadrature, self.drift)  # what a pole or a difference of averages makes of their error
        radius, why = stability(self.program.blocks, self.outputs, self.points, self._beside)
        solved = np.asarray(found.converged) & ok
        lost = double = aside = np.zeros(self.points)
        if not sure:
            lost, gaps = self._lost(solved, verdict, radius, done)
            double, aside = undetermined_parts(self, solved & done, verdict, gaps)
        quadrature = np.maximum(quadrature, np.maximum(lost, double))
        worst_quadrature = 1e-9  # one no better than that leaves no point converged
        reached, poor = max(1e3 * self.tolerance, worst_quadrature), float(np.max(quadrature[done], initial=0.0))
        notes = (*self.program.notes, *found.notes)
        if poor > _SAID*self.tolerance:
            what = "terms that cancel" if poor == np.max(lost[done], initial=0.0) else (
                DOUBLE if poor == np.max(double[done], initial=0.0) else "quadrature")
            notes = (*notes, f"{what}: relative error {poor:.1e} reached, {self.tolerance / 3:.0e} asked")
        if (loose := float(np.max(aside[done], initial=0.0))) > _SAID*self.tolerance:
            notes = (*notes, f"nearly singular linear equations: relative error {loose:.1e} of unknowns, which no observable feels")
        reason = np.array(found.reason, dtype=object)
        for k in np.flatnonzero(~(ok & (quadrature <= reached)) & (reason == "")):
            reason[k] = "the undamped residual stayed above the tolerance" if quadrature[k] <= reached else (
                f"{LOST} a relative error of {lost[k]:.1e}: the digits are lost in the formulas as "
                "they are written, at these numbers" if lost[k] == quadrature[k] else
                f"{DOUBLE} leaves a relative error of {double[k]:.1e}: beside it the equations hold to rounding"
                if double[k] == quadrature[k] else
                f"{SHORT} a relative error of {quadrature[k]:.1e} only: something is steep, oscillates on a "
                "small scale or diverges; take less extreme numbers")
        for u, domain in self.program.domain.items():
            x = self.row(self.s[u])
            for k in np.flatnonzero(ok & ~((x >= domain[0]) & (x <= domain[1]))):
                ok[k], reason[k] = False, f"{u} = {x[k]:.6g} is outside its domain {interval_text(u, domain)}"
            for end in domain:
                if end and np.any(ok & (x == end)):
                    notes = (*notes, f"{u} = {end:g}: an end of its domain {interval_text(u, domain)}")
        for u, depth in below.items():
            for k in np.flatnonzero(ok & (depth > most*SMALL + self.rounding.get(u, 0.0))):
                ok[k], reason[k] = False, f"{u} = {-depth[k]:.6g} is negative, but {u} is declared positive"
        for k in np.flatnonzero((laws := violated_conditions(verdict, (self.points,))) != ""):
            ok[k], reason[k] = False, laws[k]
        values = {u: found[u] for u in self.program.unknowns}
        values |= {o: self.row(verdict[o]) for o in self.program.observables}
        far = np.fmax(np.asarray(found.error, dtype=float), np.where(quadrature > self.tolerance, quadrature, np.nan))
        return replace(found, value=values, residual=residual, converged=ok & (quadrature <= reached), stability=radius, error=far,
                       reason=reason, notes=(*notes, *why),
                       unknowns=self.program.unknowns,
                       origin={"tolerance": self.tolerance, "quadrature_error": poor, "nodes": self.quad.nodes})

    def _lost(self, ok: np.ndarray, verdict: State, radius: np.ndarray, done: np.ndarray) -> tuple[np.ndarray, State]:
        """How far what rounding leaves of closed forms moves the solution; 0 where there is none, or their terms do not cancel.

        And what it leaves of each formula.
        """
        if not self.program.cancels or not done.any():
            return np.zeros(self.points), {}
        gap, far, own, gaps = cancellation_losses(self, verdict, radius, ok)
        far = np.where(ok, far, 0.0)
        # where nothing was found the slopes, which are not looked at, may have lost what the formulas have not
        some = done & np.where(ok, np.maximum(far, own) > _SAID*self.tolerance, gap > 0)
        for k in np.flatnonzero(done):
            self.cancelled.pop(int(self.place[k]), None)
            if some[k]:
                self.cancelled[int(self.place[k])] = float(max(far[k], own[k])) if ok[k] else np.inf
        return far, gaps


def _replace_points(whole: np.ndarray, points: np.ndarray, part: np.ndarray, better: np.ndarray) -> np.ndarray:
    """An array of all points with what it is at some of them, those that are better."""
    done = np.array(whole)
    done[points[better]] = np.broadcast_to(part, (len(points), *done.shape[1:]))[better]
    return done
