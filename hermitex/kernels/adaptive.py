"""Which quadrature each integration variable gets, whether it is good enough, and how it is refined.

The choice is structural: no break point in the integrands -> the trapezoid rule; break points -> panels that end at
them, also where they move with a parameter, with an outer variable or with an unknown. The verdict is measured, point by
point and relative to E|F|: every average of a solution is taken with coarser weights on the same nodes (`examine`), and
once more on nodes that are not among them (`verify`), since halving a step finds nothing that falls between all nodes.
A whole solution that does not change on other nodes (`beside`) needs neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from math import prod
from typing import Any

import numpy as np

from hermitex.errors import BadInput
from hermitex.kernels import quadrature
from hermitex.kernels.axis_records import Record, at_points, contracted, infinite_points, sizes_of, worst_errors, worst_of
from hermitex.kernels.lowered import NodeAxis
from hermitex.kernels.source import place

_GRADES = 20  # panels toward each end of an interval, each a quarter of the one before: a root there costs no digits
_WIDEST = 40.0  # half a window; beyond it exp(-x^2/2) underflows
_FAR = 38.0  # half a window from which a sum begins that is to see all that floats hold
_FURTHER = 3.0  # a window is widened by that much: at 9 a Gaussian tail falls by e^-31 on the way
_STIR = 2.0**-49  # of a node in verification, some ten times its rounding, which a narrow integrand feels
_MOST_NUMBERS = 10**8  # in one array of 0.8 GB; several exist at once
_FITS = 60_000_000  # numbers in one array that no finer rule may exceed: 0.5 GB
_PANEL, _MANY = 31, 256  # nodes of a panel, those of quadrature.fejer; panels of a moving interval: 8,000 nodes at each outer one


def require_room(nested: Iterable[tuple[str, ...]], quad: Mapping[str, Any], points: int) -> None:
    """Raises BadInput where an average over several variables at once takes an array that does not fit into memory."""
    for names in nested:
        numbers = points*prod(np.size(quad[name][0]) for name in names)
        if numbers > _MOST_NUMBERS:
            fewer = "; evaluate fewer points at once" if points > 1 else ""
            raise BadInput(f"an average over {len(names)} variables at once takes an array of {numbers:.2g} numbers, at most "
                           f"{_MOST_NUMBERS:.0e} fit{fewer}: write it as averages over fewer variables, or take functions of which "
                           "they have a closed form (erf, polynomials)")


class Quadratures:
    """The rules in force for the axes of a program, and their refinement.

    Attributes: `nodes` {axis: number}, `largest` the size of the largest array averaged last. `kinked`: {axis: how many moving
    break points}, for the axes whose break points or scales are known; `grid`: axes that begin with a coarser rule.
    """

    def __init__(self, axes: Iterable[NodeAxis], kinked: dict[str, int], grid: frozenset[str] = frozenset()) -> None:
        self.axes = tuple(axes)
        self.kinked = kinked
        crowded = 12  # from that many kinks on an interval between two of them begins with one panel
        steps = (0.1, 0.15)  # of the first trapezoid rule, outer and inner: fine enough for most, and verified for all
        coarse = (0.2, 0.3)  # the same where every step of a solver averages over a grid of several axes: its cost is the grid's
        of_fields = (0.25, 8.0)  # the step and window of an axis that represents several variables: it is only verified
        self.rules = {a.identifier: quadrature.counting() if a.counting else
                      quadrature.unit(4 if kinked[a.identifier] < crowded else 1) if kinked.get(a.identifier) else
                      quadrature.trapezoid(*of_fields) if a.fields > 1 else
                      quadrature.trapezoid((coarse if a.identifier in grid else steps)[a.depth > 0])
                      for a in self.axes if not a.summed}
        self._between = tuple(i for i, a in enumerate(self.axes, start=1) if not a.summed)
        self.grades = dict.fromkeys(kinked, 0)
        self.largest = 0
        self._sizes: dict[str, int] = {}  # by part: the numbers in its largest array, of one point
        self._shapes: dict[str, set[tuple[int, ...]]] = {}  # by part: those of the arrays that it averages
        self._arrays: dict[str, tuple] | None = None
        self._other: dict[tuple, dict[str, tuple]] = {}
        self._errors: dict[str, np.ndarray] = {}  # by part of the program, one number a point
        self._tails: dict[str, np.ndarray] = {}  # its part beyond the window
        self.felt = np.full(1, np.inf)  # what the errors come to in the averages over all axes, as far as `verify` has looked
        self._taken: dict[str, list[tuple]] = {}  # by part: what its averages over all axes came to
        self._settled: dict[str, bool] = {}  # by axis: the rule of twice the step would have done
        self._best: dict[tuple[str, str], tuple[np.ndarray, np.ndarray]] = {}

    def finer(self) -> Quadratures:
        """With the rules for the averages that closed forms leave over: far in the tails, or very near a kink."""
        graded = 3*_GRADES//2 if len(self.rules) == 1 else 0
        self.rules |= {a: quadrature.unit(8, graded, _FAR) for a in self.rules if a in self.kinked}
        self._changed()
        return self

    def farther(self) -> Quadratures:
        """With nodes up to where exp(-x^2/2) vanishes: for axes with known kinks, or for one axis alone."""
        self.finer()
        if len(self.rules) == 1:
            self.rules = {a: quadrature.panels(np.linspace(-_FAR, _FAR, 77)) if rule.kind in ("trapezoid", "panels") else rule
                          for a, rule in self.rules.items()}
        self._changed()
        return self

    @property
    def far(self) -> bool:
        """Do the nodes reach that far already?"""
        return all(rule.window >= _FAR for a, rule in self.rules.items() if a in self.kinked or len(self.rules) == 1)

    @property
    def ndim(self) -> int:
        """Axes of every array: one for the points, one for each integration variable and each index of a sum."""
        return 1 + len(self.axes)

    @property
    def nodes(self) -> dict[str, int]:
        """Number of nodes of each axis (of each interval between break points, if it has any)."""
        return {name: len(rule) for name, rule in self.rules.items()}

    @property
    def size(self) -> int:
        """The numbers in the largest array averaged last, of one point."""
        return max(self._sizes.values(), default=0)

    def join(self, *others: Quadratures) -> None:
        """Take the finest rule of each axis; a rule that follows a narrow feature is finer than one with more nodes."""
        for other in others:
            for name, rule in other.rules.items():
                if (other.grades.get(name, 0), len(rule)) > (self.grades.get(name, 0), len(self.rules[name])):
                    self.rules[name] = rule
                    if name in self.grades:
                        self.grades[name] = other.grades[name]
        self._changed()

    def keep(self, rules: Mapping[str, quadrature.Rule]) -> None:
        """Go back to rules that were in force; what was measured last, stays."""
        self.rules = dict(rules)
        self._changed()

    @property
    def error(self) -> np.ndarray:
        """The worst relative error of all averages measured last, for each point of the batch (or one for all)."""
        if not self._errors:
            return np.zeros(1) if not self.axes else np.full(1, np.nan)
        return worst_errors(*self._errors.values())

    @property
    def held(self) -> np.ndarray:
        """The part of that error that reaches the averages over all axes, as measured by the last check on other nodes."""
        return np.minimum(self.error, np.maximum(self.felt, self.reached("verified")))

    def of(self, points: np.ndarray) -> Quadratures:
        """The same rules for some of the points: the points that need finer rules continue without the others."""
        other = copy(self)
        other.rules, other.grades, other._other, other._taken = dict(self.rules), dict(self.grades), {}, {}
        other._settled, other._sizes, other._shapes = dict(self._settled), dict(self._sizes), dict(self._shapes)
        other._errors = {part: at_points(error, points) for part, error in self._errors.items()}
        other._tails = {part: at_points(tail, points) for part, tail in self._tails.items()}
        other.felt = at_points(self.felt, points)
        other._best = {key: (at_points(best, points), at_points(idle, points)) for key, (best, idle) in self._best.items()}
        return other

    def forget(self) -> None:
        """Keep the rules; forget what was measured, since new numbers come now."""
        for memory in (self._errors, self._tails, self._taken, self._settled, self._best):
            memory.clear()

    def reached(self, part: str) -> np.ndarray:
        """The error of one part alone, 0 where it has no averages."""
        return self._errors.get(part, np.zeros(1))

    @property
    def unseen(self) -> np.ndarray:
        """Point by point: was nothing but 0 met at all nodes of an average over all axes? There may be something between them."""
        sizes = [size for taken in self._taken.values() for _, _, size in taken if all(size.shape[i] == 1 for i in self._between)]
        least = 1e-290  # sums of products below are underflow
        rows = [(size.reshape(len(size), -1) <= least).any(axis=1) for size in sizes]
        none = np.zeros(1, dtype=bool)  # one point, at which nothing was unseen
        return np.any(np.stack(np.broadcast_arrays(*rows)), axis=0) if rows else none

    def arrays(self) -> dict[str, tuple]:
        """What generated code reads: {axis: (nodes, weights, ...)}, laid along the axes."""
        if self._arrays is None:
            self._arrays = self._laid({name: (rule.nodes, rule.weights) for name, rule in self.rules.items()})
        return self._arrays

    def _noting(self, notes: dict[str, list]) -> dict[str, tuple]:
        """The same, so that each axis notes its scales."""
        return {name: (*given[:-1], notes[name]) if name in notes else given for name, given in self.arrays().items()}

    def _others(self, names: tuple[str, ...], stir: float = _STIR, *, exact: bool = False) -> dict[str, tuple]:
        """The same with other nodes on the axes of these names, as extended numbers where they are to be `exact`."""
        way = {name: (2 if self._settled.get(name) else 1) if name in names else 0 for name in self.rules}
        key = (*way.values(), stir, exact)
        if key not in self._other:
            ways = {name: ((rule.nodes, rule.weights), rule.closer, rule.wider)[way[name]] for name, rule in self.rules.items()}
            if not exact:
                ways = {name: (nodes.astype(float), weights.astype(float)) for name, (nodes, weights) in ways.items()}
            self._other[key] = self._laid(ways, _FURTHER, stir)
        return self._other[key]

    def _laid(self, rules: dict[str, tuple], further: float = 0.0, stir: float = 0.0) -> dict[str, tuple]:
        arrays: dict[str, Any] = {a.identifier: tuple(place(v, i, self.ndim) for v in rules[a.identifier])
                                    for i, a in enumerate(self.axes, start=1) if not a.summed}
        arrays[""] = self.nodes  # of the rules in force: blocks of sums are the same on all nodes
        for name in self.kinked:
            rule = self.rules[name]
            moving = rule.kind == "unit"
            arrays[name] += (rule.window + further, self.grades[name] if moving else -1, stir, None)
        return arrays

    def examine(self, run: Callable[[Callable], Any], tolerance: float, part: str = "",
                coarsely: Callable[[Callable], Any] | None = None, *, cancelled: float = 4e-15) -> np.ndarray:
        """Evaluate through `run(average)` with an average that records errors; refine what falls short.

        `part` names what is run: `error` is the worst of all parts. Returns True, point by point (one entry if they are all
        alike), where every average holds the tolerance or no finer rule can mend it. With `coarsely`, which runs the same and
        keeps nothing, an average over one axis may be poor where those over all axes do not feel it.
        """
        records: dict[int, Record] = {}
        taken: list[tuple] = []
        inner: dict[int, tuple[np.ndarray, np.ndarray]] = {}  # averages, and E|F| of them; what is kept has an id of its own

        # cancelled: of E|F|: rounding of a sum
        def average(values: np.ndarray, weights: np.ndarray, axis: int, floor: Any = 1e-300, table: Any = None) -> np.ndarray:
            rule = self.rules[self.axes[axis - 1].identifier]
            if axis not in records:
                records[axis] = Record(rule, self.axes[axis - 1].fields == 1)
            _, whole = inner.get(id(values), (None, None)) if table is None else (None, None)
            if whole is not None:  # an average of averages: if the inner ones cancel, their rounding is not an error of this one
                whole = contracted(whole, weights, axis)
                floor = np.maximum(floor, min(cancelled/tolerance, 1.0)*whole)
            result, size = records[axis].add(values, weights, axis, floor, table)
            inner[id(result)] = result, size if whole is None else np.maximum(size, whole)
            taken.append((axis, result, size))
            behind = len(rule)**(self.axes[axis - 1].fields - 1)  # of what was averaged over before
            sizes.append(np.size(values)*behind)
            shapes.add(np.shape(values))
            each.append(np.size(values)*behind // max(np.shape(values)[:1] or (1,)))
            return result

        self.felt = np.full(1, np.inf)  # what was seen was seen of other rules
        notes: dict[str, list] = {name: [] for name in self.kinked}
        sizes, each, before = [0], [0], dict(self.rules)
        shapes = self._shapes[part] = set()
        self._instead(self._noting(notes), run, average)
        self.largest, self._sizes[part] = max(sizes), max(each)
        self._taken[part] = taken
        for record in records.values():
            record.measure()
        self._tails[part] = worst_errors(*(r.tail for r in records.values()))
        self._errors[part] = worst_errors(*(r.error for r in records.values()), self._tails[part])
        felt = self._felt_within(records, coarsely, taken, tolerance)
        good = np.ones(1, dtype=bool)
        for name in notes.keys() - {self.axes[axis - 1].identifier for axis in records}:
            good = good & ~self._resolve(name, notes[name])  # of an axis over which nothing is averaged yet: tables show its scales
        for axis, record in records.items():
            name = self.axes[axis - 1].identifier
            rule = self.rules[name]
            self._settled[name] = record.first <= tolerance and self._settled.get(name, True)
            wanting = self._resolve(name, notes.get(name, []))
            # No value at a point: a finer rule does not mend that.
            cut = (record.tail > tolerance) & np.isfinite(record.error) & (rule.window < _WIDEST)
            error = np.where(felt > tolerance, record.error, np.minimum(record.error, felt))
            rough = self._falls_short((name, part), error, tolerance)
            undefined = record.undefined & (rule.kind == "trapezoid" and not rule.shift)
            if undefined.any():  # 0/0 at a node: next to it there may be a value
                self.rules[name] = rule.shifted()
            elif not wanting.any() and cut.any():
                self.rules[name] = rule.widen(rule.window + _FURTHER)
            elif not wanting.any() and rough.any():
                self.rules[name] = _refined(rule, record.suspects_of(rough), float(np.max(error))**2 <= tolerance)
            good = good & ~(cut | rough | wanting | undefined)
        return good if good.all() or self._fitting(before) else np.ones(1, dtype=bool)

    def verify(self, run: Callable[[Callable], Any], tolerance: float, coarsely: Callable[[Callable], Any] | None = None,
               among: np.ndarray | bool = True, *, noise: float = 1e-14) -> np.ndarray:
        """Evaluate every part once more on other nodes, through `run(average)`, in the order in which they were examined.

        The difference of the averages over all axes is their error. Returns True, point by point, where they agree or no finer
        rule can mend it. Only the points `among` make rules finer, since the others are refined in any case.
        If refinement has ended short, they are also taken with coarser weights, through `coarsely`.
        """
        before = [one for part in self._taken.values() for one in part]
        if not before:
            return np.ones(1, dtype=bool)
        worst = worst_errors(*(error for part, error in self._errors.items() if part != "verified"))
        gaps = self._compared(run, before, self._others(tuple(self.rules)))
        stir_again = 1.375*_STIR  # with another pattern
        # noise: gaps below are rounding of the nodes, which both comparisons feel
        if self.kinked and np.any(gaps > noise):  # what rounding of the nodes makes of the two may be alike by chance
            gaps = worst_errors(gaps, self._compared(run, before, self._others(tuple(self.rules), stir_again)))
        self._errors["verified"] = gaps
        self.felt = worst
        if np.any(worst > tolerance):  # an average over one axis may be poor where the weights of another are all but 0
            coarse = self._compared(coarsely or run, before, self._coarse())
            self.felt = worst_errors(np.minimum(worst, coarse), *self._tails.values())
        good = ~((gaps > tolerance) & among)
        if good.all():
            return good
        good = np.ones(1, dtype=bool)
        finer = dict(self.rules)
        for name, rule in self.rules.items():  # which of the axes it is
            error = gaps if len(self.rules) == 1 else self._compared(run, before, self._others((name,)))
            rough = self._falls_short((name, "verified"), np.where(among, error, 0.0), tolerance)
            if rough.any():
                finer[name] = _refined(rule, None)
                if rule.kind == "unit":
                    finer[name] = finer[name].widen(min(rule.window + _FURTHER, _WIDEST))
            good = good & ~rough
        if good.all():
            return good
        coarser, self.rules = self.rules, finer
        return good if self._fitting(coarser) else np.ones(1, dtype=bool)

    @property
    def smooth(self) -> bool:
        """Whether other nodes of the same window are sure to give each average another value, unless its value is right."""
        return all(rule.kind == "trapezoid" for rule in self.rules.values())

    @property
    def settled(self) -> bool:
        """Whether rules of twice the step would suffice, as far as is known."""
        return all(self._settled.get(name) for name in self.rules)

    def fine_enough(self, run: Callable[[None], Any]) -> bool:
        """Evaluate without a look at each average; False where the scales that the formulas show ask for finer rules.

        The next check, `beside`, takes longer steps: the present ones are much shorter than needed.
        """
        self._settled = dict.fromkeys(self.rules, True)
        notes: dict[str, list] = {name: [] for name in self.kinked}
        self._instead(self._noting(notes), run, None)
        wanting = [bool(np.any(self._resolve(name, found))) for name, found in notes.items()]
        if any(wanting):
            self._changed()
        return not any(wanting)

    def beside(self) -> dict[str, tuple]:
        """The nodes on which `verify` looks first, in extended numbers, as `arrays` gives those in force."""
        return self._others(tuple(self.rules), exact=True)

    def _fitting(self, before: Mapping[str, quadrature.Rule]) -> bool:
        """Take finer rules back, the largest growth first, until every array fits into memory; False if no such rule is left."""
        def largest() -> float:
            grown = [1.0, *(1.0 if a.summed else len(self.rules[a.identifier])/len(before[a.identifier]) for a in self.axes)]
            return max((float(np.prod([n*g if n > 1 else 1 for n, g in zip(shape, grown[-len(shape):], strict=True)]))
                        for shapes in self._shapes.values() for shape in shapes if shape), default=0.0)

        taken = False
        while largest() > _FITS and (finer := [n for n in before if len(self.rules[n]) > len(before[n])]):
            most = max(finer, key=lambda n: len(self.rules[n])/len(before[n]))
            self.rules[most], taken = before[most], True
        self._changed()
        return not taken or any(self.rules[n] is not before[n] for n in before)

    def _felt_within(self, records: Mapping[int, Record], run: Callable[[Callable], Any] | None, taken: list[tuple],
                     tolerance: float) -> np.ndarray:
        """What the errors of averages over some of the axes come to in those over all; infinite where that is not asked."""
        inner = worst_errors(*(r.error for r in records.values())) > tolerance
        outer = worst_errors(*(r.outer for r in records.values())) > tolerance
        if run is None or not np.any(inner & ~outer):
            return np.full(1, np.inf)
        return self._compared(run, taken, self._coarse())

    def _coarse(self) -> dict[str, tuple]:
        return self._laid({name: (rule.nodes, rule.coarse) for name, rule in self.rules.items()})

    def _compared(self, run: Callable[[Callable], Any], before: list[tuple], given: dict[str, tuple]) -> Any:
        """How far averages over all axes move with other nodes or weights than those in force; relative, for each point."""
        ways = iter(before)
        gaps: list[np.ndarray] = []

        def average(values: np.ndarray, weights: np.ndarray, axis: int, floor: float = 1e-300, table: Any = None) -> np.ndarray:
            result = contracted(values, weights, axis, table)
            known, value, size = next(ways)
            assert known == axis, "the parts are not run in the order in which they were examined"
            if all(result.shape[i] == 1 for i in self._between):  # elsewhere it varies along an axis whose nodes are others too
                gaps.append(worst_of(np.abs(result - value) / size))
            return result

        self._instead(given, run, average)
        return worst_errors(*gaps)

    def _instead(self, given: dict[str, tuple], run: Callable[[Any], Any], average: Callable | None) -> None:
        """Run on other arrays than those in force."""
        before = self.arrays()
        try:
            self._arrays = given
            run(average)
        finally:
            self._arrays = before

    def _resolve(self, name: str, notes: list) -> np.ndarray:
        """Choose a rule for the scales that a formula shows; True, point by point, where the one in force was too coarse."""
        rule = self.rules[name]
        steepest, fastest = (max((float(np.max(np.abs(v))) for note in notes for v in note[i]), default=0.0) for i in (0, 1))
        per_width = 3.0  # steps of a trapezoid rule on one width
        poles = 24.0  # beyond the frequency in the formula: what the rest of the integrand needs
        # Frequencies below 2 pi/step are integrated; twice the step also resolves those below a third of it.
        fine = min(3 * fastest, fastest + poles) * rule.step <= 2 * np.pi and steepest * rule.step * per_width <= 1
        sharp = 12.0  # inverse widths from there on get break points about their centres
        if steepest <= sharp and (rule.kind == "panels" or (rule.kind == "trapezoid" and fine)):
            return np.zeros(1, dtype=bool)
        k = worst_errors(*(sizes_of(v) for narrow, _ in notes for v in narrow))
        f = worst_errors(*(sizes_of(v) for _, fast in notes for v in fast))
        moving = rule.kind == "unit"
        grade = 4.0  # the quotient of neighbouring distances of such break points from the centre
        slow = 2.0  # inverse width of a moving interval from which its panels are graded; chosen by trial
        narrower = 2.0  # the innermost panel is so many times narrower than the width
        grades = np.where(k > (slow if moving else sharp), np.ceil(np.log(narrower * np.maximum(k, 1.0)) / np.log(grade)) + 1, 0)
        # a kink is one panel's end
        grades = np.maximum(grades, worst_errors(*(infinite_points(v) for narrow, _ in notes for v in narrow)))
        short = grades > self.grades[name] if moving else grades > 0
        most_grades = 26  # 4^-26 = 2e-16 of a panel is its rounding
        turn = 24.0  # radians on one panel, whose 31 nodes resolve them to rounding
        finest = 20 / 2**15  # the least step that a formula may ask for: 32,768 nodes on the window
        if moving or short.any():
            length = 2.4 if grades.any() or self.grades[name] else 2 * rule.window
            count = np.ceil(f * length / turn)
            short = short | ((count > len(rule) // _PANEL) & (len(rule) < _PANEL * _MANY))
            if short.any():
                self.grades[name] = max(int(np.max(grades)), self.grades[name], 0)
                self.grades[name] = min(self.grades[name], most_grades)
                least = len(rule) // _PANEL if moving else 1
                self.rules[name] = quadrature.unit(int(max(min(float(np.max(count)), _MANY), least)))
        elif rule.kind == "trapezoid":
            # Half the step that would do, of what is slow three quarters: its double is then right, too, or says that it is not.
            wide = np.pi / np.maximum(np.where(2 * f < poles, 1.5 * f, f + poles), 1e-3)
            step = np.minimum(wide, 1 / (per_width * np.maximum(k, 1e-300)))
            short = (step < rule.step) & (rule.step > finest)
            if short.any():
                halvings = np.ceil(np.log2(rule.step / max(float(np.min(step)), finest)))
                self.rules[name] = quadrature.trapezoid(rule.step / 2**float(halvings), rule.window, rule.shift)
        return np.asarray(short)

    def _changed(self) -> None:
        self._arrays = None
        self._other.clear()
        self._settled.clear()

    def _falls_short(self, key: tuple[str, str], error: np.ndarray, tolerance: float) -> np.ndarray:
        """The points at which refining an axis is needed and helps; elsewhere the error is rounding, or the integrand diverges."""
        grid = (4_000_000, 50_000_000)  # numbers in one array from which on nothing is refined: of one point, of a batch
        full = max(self._sizes.values(), default=0) > grid[0] or self.largest > grid[1]
        short = (error > tolerance) & np.isfinite(error) & (not full and not _exhausted(self.rules[key[0]]))
        if not short.any():
            return short
        best, idle = self._best.get(key, (np.full(1, np.inf), np.zeros(1, dtype=int)))
        best, idle = np.where(short, best, np.inf), np.where(short, idle, 0)  # what was good says nothing of another rule
        gained = error < best / 2
        best, idle = self._best[key] = np.where(gained, error, best), np.where(gained, 0, idle + 1)
        stalled = (2, 5)  # refinements of one axis in a row without a gain of two: below and above an error of 1e-6
        return short & ~(idle >= np.where(error > 1e-6, stalled[1], stalled[0]))


def _refined(rule: quadrature.Rule, suspects: np.ndarray | None, nearly: bool = False, *, surely: float = 1e-8) -> quadrature.Rule:
    """A finer rule; `nearly`: twice as many panels square the error of what is analytic on them, and that is enough."""
    broad = 3.2  # a panel of this width integrates exp(-x^2/2) to all digits
    if rule.kind == "unit":
        panels = len(rule) // _PANEL  # first more panels, then ones graded toward singular ends
        if rule.grades:
            return quadrature.unit(8 * (panels - 2 * rule.grades), rule.grades, rule.window)
        enough = max(8, int(np.ceil(2 * rule.window / broad)))
        grades = _GRADES if panels >= enough else 0
        return quadrature.unit(panels if grades else (2 if nearly else 4) * panels, grades, rule.window)
    # surely: a panel whose two rules differ by more is halved, however much worse another one is
    if rule.kind == "panels" and suspects is not None:
        return rule.refine(suspects >= max(min(0.1 * float(np.max(suspects)), surely), 1e-17))
    return rule.refine()


def _exhausted(rule: quadrature.Rule) -> bool:
    if rule.kind == "unit":
        return len(rule) >= _PANEL * _MANY
    if rule.full:
        return True
    # Halving beyond the spacing of floating-point numbers helps nothing.
    return rule.kind == "panels" and rule.edges is not None and float(np.min(np.diff(rule.edges))) < 1e-13
