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
from hermitex.solvers.batch import merge_solutions, select_points
from hermitex.solvers.interval import interior_point, interval_text, is_outside
from hermitex.solvers.linear import linear
from hermitex.solvers.restarts import solve_robustly
from hermitex.solvers.solution import Solution, combine_solutions
from hermitex.solvers.solve_limits import OutOfTime, is_time_up, ran_out, run_if_time_allows
from hermitex.systems.compiled_system import BlockCode, CompiledSystem, State, as_point_vector
from hermitex.systems.coordinates import Coordinates, at_ends
from hermitex.systems.newton_step import FLOOR, SMALL, matrix_of
from hermitex.systems.nonlinear import NonlinearBlock
from hermitex.systems.residual import residual_of
from hermitex.systems.solution_error import SAID, SolutionError
from hermitex.systems.stability import stability

_REFINEMENTS = 40  # of the quadratures of a batch; chosen by trial: a point that needs more is refused
_VERDICT = ("right_hand_sides", "observables")
_LEAST_GAP = 4e-15  # between averages on two sets of nodes: less is rounding
SHORT, LOST = "the quadrature reached", "terms that cancel leave"
DOUBLE = "a root that is double or nearly so"


class Run:
    """One batch of points."""

    def __init__(self, program: CompiledSystem, numbers: dict[str, np.ndarray], points: int, guess: dict[str, Any],
                 tolerance: float) -> None:
        self.program, self.points, self.tolerance = program, points, tolerance
        self.numbers = numbers
        self.place, self.cancelled = np.arange(points), dict[int, float]()  # how much the closed forms of a point lose
        self.quad = program.quadratures()
        self.s: State = {n: self.column(v) if v.ndim else np.float64(v) for n, v in numbers.items()}
        self.guess = guess
        self.zero: State = {}  # which unknowns of each block were given 0, or found there
        self.before: State = {}
        self.moved = self.unsettled = np.full(points, np.inf)
        self.asked = max(tolerance/3, 1e-15)  # of every average
        self.drift = np.zeros(points)  # of the solution: how far it moves on other nodes
        self.least, self.idle = np.full(points, np.inf), np.zeros(points, dtype=int)
        self.rounds = 0
        self.used: Mapping[str, Any] = {}
        self.outputs: dict[int, State] = {}  # of the block functions, at the solution

    def column(self, v: Any) -> np.ndarray:
        """A vector over the points as an array with every axis."""
        return np.asarray(v, dtype=float).reshape(-1, *[1] * (self.quad.ndim - 1))

    def ask(self, name: str, s: State, quad: Mapping[str, Any], average: Any = None, extended: bool = False) -> dict[str, Any]:
        """What a function of the program returns. Raises OutOfTime where a budget leaves no time for it."""
        per_grade = 6  # further panels along an axis, about, for each grade of them about what is narrow

        def size() -> float:
            product = float(max((np.size(v) for v in s.values() if np.ndim(v) and np.shape(v)[0] == np.size(v)), default=1))
            for nodes, _, *moving in (v for n, v in quad.items() if n):
                product *= nodes.size*(1 + per_grade*max(moving[1], 0) if moving else 1)
            return product

        kind = "extended" if extended else average is not None
        return run_if_time_allows(f"{name}/{kind}", size, lambda: self.program.call(name, s, quad, average, extended))

    def solution(self) -> Solution:
        """Solve, and refine the quadrature until every average of a solution holds its tolerance, point by point."""
        try:
            return self._solution()
        except OutOfTime:
            return self._unfinished()

    def _unfinished(self) -> Solution:
        """The last states of the points when the time is up."""
        none = np.full(self.points, np.nan)
        values = {u: self.row(self.s.get(u, self.guess.get(u, none))) for u in self.program.unknowns}
        return Solution({**values, **dict.fromkeys(self.program.observables, none)}, residual=np.full(self.points, np.inf),
                        converged=np.zeros(self.points, dtype=bool), iterations=np.zeros(self.points, dtype=int), stability=none,
                        error=none, method="none", reason=np.full(self.points, ran_out(), dtype=object),
                        unknowns=self.program.unknowns,
                        origin={"tolerance": self.tolerance, "quadrature_error": np.inf, "nodes": self.quad.nodes})

    def _solution(self) -> Solution:
        quality = max(self.tolerance / 3, 1e-15)
        at_once = self.quad.smooth  # if the error of the solution holds all, single averages need no checks
        chances = 3  # quadratures with which a point is tried that none of the methods solves
        while True:
            with np.errstate(all="ignore"):
                at_once = at_once and self.quad.fine_enough(partial(self.into, self.s, self.s, ("tables",)))
                if not at_once:
                    self._settle_tables(self.asked)
                found = combine_solutions([self._block(k, b) for k, b in enumerate(self.program.blocks, start=1)])
                if at_once:
                    at_once, before = False, dict(self.quad.rules)
                    if (held := self._held_at_once(found)) is not None:
                        return held
                    self._settle_tables(self.asked)
                    if self.quad.rules != before:
                        solved = found.converged  # what was not says nothing on finer nodes
                        self.guess |= {u: np.where(solved, found[u], self.guess.get(u, np.nan)) for u in self.program.unknowns}
                        continue
                self.used, verdict = self.quad.arrays(), dict[str, Any]()  # before they are refined
                good = self.quad.examine(partial(self.into, self.s, verdict, _VERDICT), self.asked,
                                         coarsely=partial(self.into, self.s, {}, _VERDICT))
                values = {**{u: found[u] for u in self.program.unknowns}, **{o: verdict[o] for o in self.program.observables}}
                last, self.moved = self.moved, self.how_far(self.before, values)
                self.before = {n: self.row(v) for n, v in values.items()}
                self.rounds += 1
                resting, end = np.maximum(last, self.moved) <= quality, self.rounds == _REFINEMENTS or is_time_up()
                # not what runs off under iteration alone: coarse averages may have led it there
                lost = [self.rounds >= chances or "runs to infinity;" in f"{r};" for r in found.reason]
                solved = np.asarray(found.converged)
                end = end | (~solved & np.array(lost))
                done = good | resting | end
                if done.any():
                    error = SolutionError(self, verdict)
                    felt = done & error.finite & (solved | ~end)  # elsewhere other nodes say nothing
                    self.drift = error.elsewhere() if felt.any() else np.full(self.points, np.inf)
                    sure = good & solved & (self.drift <= self.tolerance)
                    if np.any(unsure := felt & ~sure):
                        agreed = self.quad.verify(partial(self._again, {}), self.asked, partial(self._again, {}), unsure)
                        done &= sure | agreed | resting | end
                        done &= sure | end | ~self._points_to_refine(done & unsure & ~end, error)
                ended = self._finish(found, verdict, error, done, sure) if done.any() else found
            if done.all():
                return ended
            # Points that need finer rules go on without the others, and unsolved points without the solved ones.
            groups = [k for k in (np.flatnonzero(~done & solved), np.flatnonzero(~done & ~solved)) if k.size]
            self.guess = {u: found[u] for u in self.program.unknowns}
            if groups[0].size < self.points:
                parts = [(k, self.part(k).solution()) for k in groups]
                parts += [(k, select_points(ended, k)) for k in [np.flatnonzero(done)] if k.size]
                return merge_solutions(parts, self.points, self.program.unknowns, parts[0][1].origin)

    def _held_at_once(self, found: Solution) -> Solution | None:
        """The solution, if the first rules hold it at every point: single averages need no checks then."""
        verdict: State = {}
        self.used = self.quad.arrays()
        if not found.all_converged or not self.quad.fine_enough(partial(self.into, self.s, verdict, _VERDICT)):
            return None
        error = SolutionError(self, verdict)
        self.drift = error.elsewhere()
        every = np.ones(self.points, dtype=bool)
        return self._finish(found, verdict, error, every, every) if np.all(self.drift <= self.tolerance) else None

    def part(self, points: np.ndarray) -> Run:
        """Some of the points, from their last states."""
        def some(v: Any) -> Any:
            return v[points] if np.ndim(v) and len(v) == self.points else v

        other = copy(self)
        other.points, other.quad = len(points), self.quad.of(points)
        other.outputs, other.place = {}, self.place[points]
        other.s, other.guess, other.before = ({n: some(v) for n, v in d.items()} for d in (self.s, self.guess, self.before))
        other.zero = {n: v[:, points] for n, v in self.zero.items()}
        other.moved, other.unsettled, other.drift, other.least, other.idle = (
            some(v) for v in (self.moved, self.unsettled, self.drift, self.least, self.idle))
        return other

    def how_far(self, before: State, now: State) -> np.ndarray:
        """How far two sets of numbers differ at each point, relative; an unknown below SMALL counts as one of that size."""
        if not before:
            return np.full(self.points, np.inf)
        values = np.array([self.row(v) for v in now.values()])
        least = np.array([FLOOR if n in self.program.observables else SMALL for n in now])[:, None]
        size = np.maximum(np.abs(values), least)
        return np.nan_to_num(np.max(np.abs(values - np.array([before[n] for n in now]))/size, axis=0), nan=np.inf)

    def _settle_tables(self, quality: float) -> None:
        """Compute the parts without unknowns, and refine their quadrature, before anything is solved."""
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
        """Tables, right-hand sides and observables at the solution, on the nodes in force."""
        tables: State = {}
        self.into(self.s, tables, ("tables",), average)
        self.into({**self.s, **tables}, out, _VERDICT, average)

    def extended(self, nodes: Mapping[str, Any]) -> State:
        """Tables and right-hand sides at the solution, in extended precision."""
        tables = self.ask("tables", self.s, nodes, extended=True)
        return {**tables, **self.ask("right_hand_sides", {**self.s, **tables}, nodes, extended=True)}

    def _points_to_refine(self, among: np.ndarray, error: SolutionError) -> np.ndarray:
        """Points whose solution moves on other nodes by more than the tolerance, if better averages make it move less."""
        gaps = self.row(self.quad.reached("verified"))
        cheap = 100_000  # numbers in the largest array of a point
        # If finer rules gave no more, the rest is rounding: yet finer ones are tried if they cost little.
        held = (self.row(self.quad.reached("")) <= self.asked) | (self.quad.largest <= cheap*self.points)
        short = among & (self.drift > self.tolerance) & (gaps > _LEAST_GAP) & held
        if short.any():  # finer nodes do not mend rounding
            short = short & (self.drift > 2*error.of_rounding())
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
        return found.extended(values, unknowns=block.unknowns)

    def _nonlinear(self, name: str, block: BlockCode) -> tuple[Solution, State]:
        equations = NonlinearBlock(block, lambda s: self.ask(name, s, self.quad.arrays()), self.s, self.points, self.column)
        functions: dict[str, Any] = equations.functions()
        everything = np.arange(self.points)
        x0 = self._starts(block)
        begin, domains = x0, [self.program.domain.get(u) for u in block.torn]
        positive, explicit, line = list(block.positive), list(block.explicit), Coordinates(domains)
        if line.some:
            functions, explicit, x0 = line.wrapped(functions, explicit), line.explicit(explicit), line.inside(x0)
            positive = [p or d is not None for p, d in zip(positive, domains, strict=True)]
        zero = self.zero.get(name, False) | np.stack([
            np.broadcast_to(np.equal(self.guess.get(u, np.nan), 0.0) & p & (u not in self.program.domain), (self.points,))
            for u, p in zip(block.torn, positive, strict=True)])
        self.zero[name] = zero
        how = {"names": block.torn, "positive": positive, "explicit": explicit, "bent": line.plain(len(x0)), "rtol": self.tolerance,
               "contraction": False, "raise_on_failure": False, **functions}
        found = solve_robustly(x0, {"point": everything}, zero=zero, **how)
        if (k := np.flatnonzero(~np.asarray(found.converged))).size and block.members:
            other = line.inside(self._starts(block, consistent=True))
            if (k := k[(other != x0)[:, k].any(axis=0)]).size:
                again = solve_robustly(other[:, k], {"point": k}, **how)
                use = np.flatnonzero(again.converged)
                found = merge_solutions([(everything, found), (k[use], select_points(again, use))], self.points, found.unknowns)
        if line.some:
            found = line.back(found, block.torn)
            if not is_time_up():
                found = at_ends(found, begin, domains, list(block.positive), explicit=list(block.explicit), rtol=self.tolerance,
                                **equations.functions())
        x = np.array([found[u] for u in block.torn])
        out = equations.outputs(x, {"point": everything})
        return found.extended({m: self.row(out[m]) for m in block.members}), out

    def _beside(self, k: int, size: float) -> State:
        """The values of block k with the unknowns that are 0 moved to `size`."""
        unknowns = {u for b in self.program.blocks for u in b.torn}
        s = {n: np.where(np.equal(v, 0.0), size, v) if n in unknowns else v for n, v in self.s.items()}
        return self.ask(f"block_{k + 1}", s, self.used)

    def start_of(self, u: str, positive: bool, guess: State) -> np.ndarray:
        """The start of an unknown at every point: 1 where it is positive, else 0, is the default."""
        domain = self.program.domain.get(u)
        default = interior_point(domain) if domain else 1.0 if positive else 0.0
        value = np.asarray(guess.get(u, np.nan), dtype=float).reshape(-1)
        good = np.isfinite(value) & (~is_outside(value, domain) if domain else (value > 0) | (not positive))
        return np.array(np.broadcast_to(np.where(good, value, default), (self.points,)))

    def _starts(self, block: BlockCode, *, consistent: bool = False) -> np.ndarray:
        """Starts of the torn unknowns; one without a start takes the value of its equation at the members that have one.

        `consistent` : all members count, those without a start at their default.
        """
        guess = dict(self.guess)
        positive = dict(zip(block.torn, block.positive, strict=True))
        known = [m for m in block.members if consistent or m in guess or m in self.program.domain]
        unsaid = [u for u, explicit in zip(block.torn, block.explicit, strict=True) if explicit and u not in guess]
        if known and unsaid:
            inner = {u: self.column(self.start_of(u, positive.get(u, False), guess)) for u in block.unknowns}
            later = {u: np.float64(0.0) for u in self.program.unknowns if u not in self.s}
            out = self.ask("right_hand_sides", {**later, **self.s, **inner}, self.quad.arrays())
            guess |= {u: self.row(out[f"rhs/{u}"]) for u in unsaid}
        return np.stack([self.start_of(u, p, guess) for u, p in positive.items()])

    # -- verdict -----------------------------------------------------------------------------------------------------
    def _finish(self, found: Solution, verdict: State, error: SolutionError, done: np.ndarray, held: np.ndarray) -> Solution:
        """The solution with its error, of the points `done`; at points that are `held` the averages need no check of their own."""
        residual = residual_of(self, verdict)
        ok = np.asarray(found.converged) & np.isfinite(residual)  # the error says what is left of each equation moves
        # An average of nothing but rounding (h - B = 0 where the target is learnt) has no relative error to hold: there
        # it counts that a finer rule does not move the solution. Parts without unknowns have no such excuse.
        rough = np.maximum(np.minimum(self.row(self.quad.held), self.moved), self.unsettled)
        quadrature = np.maximum(self.drift, np.where(held, 0.0, rough))
        worst = error.worst  # before rounding alone is looked at, which names another one
        lost = self._lost(error, ok, done, quadrature)
        far = np.maximum(quadrature, lost) + error.rounding
        radius, why = stability(self.program.blocks, self.outputs, self.points, self._beside)
        worst_quadrature = 1e-9  # an error no better than that leaves no point converged
        reached, poor = max(1e3 * self.tolerance, worst_quadrature), float(np.max(far[done & ok], initial=0.0))
        notes = (*self.program.notes, *found.notes, *error.notes(done))
        if poor > SAID*self.tolerance:
            poorest = np.argmax(np.where(done & ok, far, 0.0))
            what = "terms that cancel" if lost[poorest] >= max(quadrature[poorest], error.rounding[poorest]) else (
                DOUBLE if error.rounding[poorest] >= quadrature[poorest] else "quadrature")
            notes = (*notes, f"{what}: relative error {poor:.1e} reached, {self.tolerance / 3:.0e} asked")
        reason = np.array(found.reason, dtype=object)
        for k in np.flatnonzero(~(ok & (far <= reached)) & (reason == "")):
            reason[k] = _reason(far[k], lost[k], error.rounding[k], worst[k]) if far[k] > reached else (
                "the right-hand side of an equation is not finite")
        for u, domain in self.program.domain.items():
            x = self.row(self.s[u])
            for k in np.flatnonzero(ok & ~((x >= domain[0]) & (x <= domain[1]))):
                ok[k], reason[k] = False, f"{u} = {x[k]:.6g} is outside its domain {interval_text(u, domain)}"
            for end in domain:
                if end and np.any(ok & (x == end)):
                    notes = (*notes, f"{u} = {end:g}: an end of its domain {interval_text(u, domain)}")
        for u in self.program.positive:
            x = self.row(self.s[u])
            for k in np.flatnonzero(ok & (x < -reached*SMALL)):
                ok[k], reason[k] = False, f"{u} = {x[k]:.6g} is negative, but {u} is declared positive"
        for k in np.flatnonzero((laws := violated_conditions(verdict, (self.points,))) != ""):
            ok[k], reason[k] = False, laws[k]
        values = {u: found[u] for u in self.program.unknowns}
        values |= {o: self.row(verdict[o]) for o in self.program.observables}
        return replace(found, value=values, residual=residual, converged=ok & (far <= reached), stability=radius, error=far,
                       reason=reason, notes=(*notes, *why), unknowns=self.program.unknowns,
                       origin={"tolerance": self.tolerance, "quadrature_error": poor, "nodes": self.quad.nodes})

    def _lost(self, error: SolutionError, ok: np.ndarray, done: np.ndarray, quadrature: np.ndarray) -> np.ndarray:
        """How far rounding of the formulas moves the solution, where its error is large: the part that finer rules do not mend."""
        lost, some = np.where(done, error.lost, 0.0), done & (quadrature > SAID*self.tolerance)
        if some.any():
            lost = np.where(some, np.maximum(lost, np.minimum(error.of_rounding(), quadrature)), lost)
        for k in np.flatnonzero(done):
            self.cancelled.pop(int(self.place[k]), None)
            felt = max(lost[k], float(error.of_itself[k]))  # the digits of a rare event
            if felt > SAID*self.tolerance and not any(d[k] for d in error.unfelt.values()):  # which lose digits of any formula
                self.cancelled[int(self.place[k])] = float(felt) if ok[k] else np.inf
        return lost


def _reason(far: float, lost: float, rounding: float, worst: str) -> str:
    """Why a point with the error `far` is not held; `worst` is what moves most on other nodes."""
    if lost >= far/2:
        return f"{LOST} a relative error of {far:.1e}: the digits are lost in the formulas as they are written, at these numbers"
    if rounding >= far/2:
        return f"{DOUBLE} leaves a relative error of {far:.1e}: beside it the equations hold to rounding"
    return (f"{SHORT} a relative error of {far:.1e} only, in the averages of {worst}: something is steep, oscillates on a small "
            "scale or diverges; take less extreme numbers")
