"""A theory: functions and structure in, a System out; numbers go to .solve and .curve.

    theory.solve(alpha=2, beta=1, lam=0.1, ...) -> Solution          theory.curve(alpha=[0.2, 1, 3], ...) -> Curve
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from html import escape
from typing import Any, ClassVar

import numpy as np

from hermitex.errors import NO_NUMBER, BadInput, NotConverged, NoValue, UnknownName, brief
from hermitex.hints import Numbers
from hermitex.show.cite import Cited
from hermitex.show.columns import ridge
from hermitex.show.display import Shown
from hermitex.show.explorer_panels import Panel
from hermitex.solvers.solution import Solution
from hermitex.solvers.solve_limits import limit_time, require_tolerance
from hermitex.solvers.sweep_grid import real_array
from hermitex.symbolic.activations import Activation, activation
from hermitex.symbolic.text.plain_data import plain
from hermitex.systems.iterate import require_method
from hermitex.systems.minimise import minimise
from hermitex.systems.names import by_name
from hermitex.systems.system import System
from hermitex.theories.curve import Curve, bending_points
from hermitex.theories.optimum import TheoryPoint

_AT_EVERY_POINT = ("optimise", "bounds", "refine")  # keywords of `Theory.curve` that a path in time has no use for


class Theory(Cited, Shown):
    """The base of every theory: checked numbers, curves, citations.

    A subclass is a frozen dataclass of functions and structure; it gives `name`, `numbers` (letters it takes, with the
    default of each or `REQUIRED`), `complete` (numbers -> those of its system), `run` and `order_parameters`.

    Guarantee: `.solve` and `.curve` return a solution of the equations of the sources, with its error. This is the limit of the
    sources; accuracy at finite dimension is not promised. See docs/promise.md.

    >>> from hermitex.theories import glm
    >>> theory = glm()
    >>> isinstance(theory, Theory), list(theory.letters())
    (True, ['alpha', 'lam', 'Delta', 'rho'])
    """

    REQUIRED: ClassVar[Any] = object()
    name: ClassVar[str] = ""
    axis: ClassVar[str] = "alpha"  # what varies along a curve
    ratio: ClassVar[str] = "n/d"  # what alpha is
    arrays: ClassVar[tuple[str, ...]] = ()  # letters that are arrays at every point of a curve: spectra, matrices
    sources: ClassVar[tuple[str, ...]] = ()
    warm: ClassVar[bool] = True  # whether a solve may start at a state that is near
    brought_by: ClassVar[Mapping[str, str]] = {}  # order parameters that are there where a letter is given: the letter of each
    elsewhere: ClassVar[Mapping[str, str]] = {}  # letters of other structures of this theory: what brings each

    @property
    def system(self) -> System:
        """The equations, as a `System`."""
        other = "; its equations of motion are .flow, a Flow" if hasattr(type(self), "flow") else ""
        raise AttributeError(f"{self.name}: this theory solves no system of equations{other}")

    @property
    def solved(self) -> Any:
        """The object that `solve` solves: the system or the flow, or the theory itself if it has its own solver."""
        return getattr(self, "system", self)

    @property
    def symbols(self) -> dict[str, Any]:
        """The theory's letters by name: unknowns and parameters of its system."""
        return {s.name: s for s in (*self.system.unknowns, *self.system.parameters)}

    @property
    def order_parameters(self) -> tuple[str, ...]:
        """Names of the order parameters that a curve holds."""
        raise NotImplementedError

    @property
    def errors(self) -> tuple[str, ...]:
        """Names of the errors and losses that a curve holds, the test error first."""
        return ("test_error", "train_error")

    def letters(self) -> dict[str, Any]:
        """Every number that `.solve` and `.curve` take, with its default or `REQUIRED`."""
        raise NotImplementedError

    def complete(self, numbers: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The numbers of the system from the numbers given (checked floats), and whatever follows from them."""
        return numbers

    def run(self, numbers: Mapping[str, np.ndarray], **options: Any) -> Solution:
        """Solve at complete numbers; by default the system does."""
        return self.system.solve(self.system.accepted(numbers), **options)

    def __dir__(self) -> list[str]:
        lacking = ("system", "symbols", "latex") if type(self).system is Theory.system else ()
        return [n for n in super().__dir__() if n not in lacking]

    def __getstate__(self) -> dict[str, Any]:
        """Its functions and structure: another process compiles its own system."""
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]

    def _summary(self) -> str:
        """Functions by name, structure by value."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.repr}  # type: ignore[arg-type]
        return ", ".join(f"{n}={getattr(v, 'name', v)}" for n, v in values.items())

    # -- what a user calls ---------------------------------------------------------------------------------------------
    def given(self, numbers: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """The numbers as float arrays, with defaults; one clear line for an unknown, missing or wrong number."""
        known = self.letters()
        values: dict[str, Any] = {}
        for key, v in by_name(self.name, numbers, parameters=known).items():
            if key not in known and key in self.elsewhere:
                raise BadInput(f"{self.name}: {key} is taken with {self.elsewhere[key]} only; here there are {', '.join(known)}")
            if key in _AT_EVERY_POINT:
                raise BadInput(f"{self.name}: {key} needs a curve whose error is solved at every point, and this is not one; "
                               "leave it out, and make a curve for each value")
            if key not in known:
                raise UnknownName(key, known, f"keyword of {self.name}")
            if v is None:
                continue
            try:
                array = real_array(v)
            except NO_NUMBER:
                raise BadInput(f"{self.name}: {key} = {brief(v)} is not a number or an array of numbers") from None
            if np.isnan(array).any() or not array.size:
                raise BadInput(f"{self.name}: {key} {'is empty' if not array.size else 'holds NaN'}; a number is needed")
            values[key] = array
        return {**{k: np.asarray(d, dtype=float) for k, d in known.items() if d is not self.REQUIRED and d is not None}, **values}

    def by_equations(self, numbers: dict[str, np.ndarray]) -> Mapping[str, Any]:
        """Complete numbers under the names of the parameters of its equations; of a path also where it starts, start_Q11 say."""
        return numbers

    def of_experiment(self, theory: Curve, measured: Curve) -> str:
        """A one-line note on the experiment of a curve of this theory; "" for none."""
        return ""

    def at_size_of(self, measured: Curve) -> dict[str, Any]:
        """The numbers with which the theory's line is drawn next to this experiment, where it has a finite-size correction."""
        return {}

    def begins(self, numbers: Mapping[str, Any]) -> dict[str, Any]:
        """Where a curve starts, if the dimension says it: as numbers that an experiment at another dimension takes, too."""
        return {}

    def solve(self, *, raise_on_failure: bool = True, start: Mapping[str, Any] | None = None, tolerance: float = 1e-11,
              budget: float | None = None, method: str = "newton", damping: float = 1.0, **numbers: Any) -> Solution:
        """Solve at given numbers (arrays broadcast) -> Solution; NotConverged carries the last state.

        `budget` CPU seconds: what is not solved by then is not converged, and its reason says so. `method`, `damping`: of
        `System.solve`; a theory with a solver of its own has no map to iterate, and says so.

        Guarantee: where `converged` is true, `error` bounds the distance to a solution of the theory's equations. See
        docs/promise.md.
        """
        given = self.given(numbers)
        require_method(self.name, method, damping)
        require_tolerance(tolerance)
        how = {} if method == "newton" else {"method": method, "damping": damping}
        with limit_time(budget):
            found = self.run(self.complete(dict(given)), raise_on_failure=False, start=start, tolerance=tolerance, **how)
        if how and not all("iterate" in str(m) for m in np.ravel(np.asarray(found.method, dtype=object))):
            raise BadInput(f"{self.name}: it has a solver of its own, not a map to iterate; leave method= out")
        found = found.at_numbers(given, self._inner())
        if raise_on_failure and not np.all(found.converged):
            why = next((r for r in np.ravel(np.asarray(found.reason, dtype=object)) if "; take " in str(r)), None)
            if why:  # the reason says what to type next
                raise NotConverged(found, f"{self.name}: {why}")
            found.require()
        return found if found.model is None else replace(found, model=TheoryPoint(self, given, found.model))

    def _inner(self) -> tuple[str, ...]:
        """The names of its equations that only serve to write them."""
        return () if type(self).system is Theory.system else tuple(k.name for k in self.system.where)

    def minimise(self, objective: str, over: str | Sequence[str],
                 bounds: Sequence[float] | Mapping[str, Sequence[float]] | None = None, *,
                 start: Mapping[str, Any] | None = None, tolerance: float = 1e-11, **numbers: Any) -> Solution:
        """The letters at which an error or order parameter is least -> Solution; as `System.minimise`.

        The Solution shows first the best letters, the objective, and whether one of them is at an end of its bounds
        (`.at_end`).

        >>> from hermitex.theories import glm
        >>> best = glm().minimise("test_error", over="lam", bounds=(1e-3, 10), alpha=2, Delta=0.25)
        >>> round(best["lam"], 8)                  # the noise over the signal's second moment, as for any ridge regression
        0.25
        """
        numbers = by_name(self.name, numbers, parameters=self.letters())
        wanted = [ridge(str(n), self.letters()) for n in ([over] if isinstance(over, str) else over)]
        self.given({**numbers, **dict.fromkeys(wanted, 1.0)})
        for name in wanted:
            if name in numbers:
                raise BadInput(f"{self.name}: {name} is sought and has a value, too; leave its value out")
        if several := [n for n, v in numbers.items() if np.ndim(v) and n not in self.arrays]:
            raise BadInput(f"{self.name}: {several[0]} has several values; minimise at one point, and along a curve with optimise=")
        known = (*self.errors, *self.order_parameters)
        if objective not in known:
            raise UnknownName(str(objective), known, "quantity to minimise")
        how = {"start": start, "tolerance": tolerance, "raise_on_failure": False}
        found = minimise(lambda **p: self.solve(**{**how, **numbers, **p}), objective, wanted, bounds)
        said = self.of_optimum(found)
        return replace(found, notes=(*found.notes, said)) if said else found

    def of_optimum(self, found: Solution) -> str:
        """What a reader of the best point should know; "" for nothing."""
        return ""

    def explore(self, along: Numbers | None = None, **numbers: Any) -> object:
        """Sliders for the numbers and menus for the functions, in JupyterLab; every move draws the curve and its bounds.

        The spectrum, where a theory has one, takes seconds: a button draws it.

        along : the abscissa (default: 30 points from 0.1 to 5);  numbers : where each slider starts, or (low, high), or
        (low, start, high). Letters that are not named keep their defaults.

        Raises
        ------
        MissingExtra : ipywidgets is not installed (extra `notebook`). UnknownName : a letter that the theory does not have.

        Guarantee: each line has the guarantee of the call that computes it; a point that does not converge is left out. See
        docs/promise.md.
        """
        from hermitex.show.explorer import explorer

        line = np.linspace(0.1, 5, 30) if along is None else np.atleast_1d(np.asarray(along, dtype=float))
        self.given({self.axis: line, **{n: float(np.ravel(v)[0]) for n, v in numbers.items()}})
        functions = {n: f.name for n in ("sigma", "g") if isinstance(f := getattr(self, n, None), Activation)}

        def at(chosen: Mapping[str, str]) -> Theory:
            now = {n: activation(text) for n, text in chosen.items() if text != functions[n]}
            return replace(self, **now) if now else self  # type: ignore[type-var]

        return explorer(lambda values, chosen: at(chosen).panels(line, values), numbers, functions,
                        lambda values, chosen: at(chosen).slow_panels(line, values))

    def panels(self, line: np.ndarray, numbers: Mapping[str, float]) -> list[Panel]:
        """The pictures that an explorer draws at these numbers; the first is the curve."""
        at: dict[str, Any] = {self.axis: line, **numbers}
        found = self.curve(**at)
        errors = [n for n in self.errors if n in found.values]
        shown = errors or list(self.order_parameters)
        said = f"{self.axis} = {self.ratio}" if self.axis == "alpha" else self.axis
        return [Panel("curve", said, "error" if errors else "order parameters",
                      {n.replace("_", " "): (line.tolist(), found[n].tolist()) for n in shown})]

    def slow_panels(self, line: np.ndarray, numbers: Mapping[str, float]) -> dict[str, Callable[[], Panel]]:
        """{name: what makes its picture} of pictures that an explorer draws on a button: each takes seconds."""
        return {}

    def single(self, numbers: Mapping[str, Any], *names: str) -> dict[str, float]:
        """{name: its one number} of what may not vary: along a curve only the axis does."""
        for name in names:
            if np.size(numbers[name]) != 1:
                raise BadInput(f"{self.name}: along a curve only {self.axis} varies; {name} has {np.size(numbers[name])} values "
                               f"(hx.curve(..., each={name!r}) makes one for each)")
        return {name: float(np.ravel(numbers[name])[0]) for name in names}

    def times(self, t: Any, said: str = "an increasing list of times") -> np.ndarray:
        """The increasing times of a path, 0 or more."""
        if t is None:
            raise NoValue(self.name, "t", "np.linspace(0, 20, 100)")
        line = np.atleast_1d(self.given({"t": t})["t"])
        if line.ndim != 1 or np.any(line < 0) or np.any(np.diff(line) <= 0) or not np.all(np.isfinite(line)):
            raise BadInput(f"{self.name}: t must be {said}, 0 or more")
        return line

    def curve(self, alpha: Numbers | None = None, *, start: Mapping[str, Any] | None = None, tolerance: float = 1e-11,
              title: str = "", optimise: str | Sequence[str] | None = None,
              bounds: Sequence[float] | Mapping[str, Sequence[float]] = (1e-6, 1e3), refine: int = 0,
              **numbers: Any) -> Curve:
        """The learning curve along `alpha`, or along whichever letter is given as a list: `.curve(alpha=2, lam=[0.1, 1])`.

        Several lists are broadcast: they run along the curve together, the first of them is its axis. A point that did not
        converge is nan, with its reason (`.require()` raises).

        optimise : a letter, or several, with the best values between `bounds` at every point, which the curve then holds too:
            those at which the first of `errors` is least
        refine : add up to so many points where the first of `errors` bends: the peak of a double descent is found

        Guarantee: as of `solve` at each point; a point that does not converge is NaN, with its reason. See docs/promise.md.
        """
        given = by_name(self.name, numbers if alpha is None else {self.axis: alpha, **numbers}, parameters=self.letters())
        wanted = optimise.split(",") if isinstance(optimise, str) else optimise or ()
        best = [ridge(str(n).strip(), self.letters()) for n in wanted]
        required = [n for n, d in self.letters().items() if d is self.REQUIRED and n not in given and n not in best]
        if self.axis in required or (not given and not required):
            raise NoValue(self.name, self.axis, "[0.5, 1, 2]")
        rest = self.given(given)
        lists = [n for n in given if n in rest and rest[n].ndim and n not in self.arrays]
        axis = self.axis if self.axis in lists or not lists else lists[0]
        for n in lists:
            if rest[n].ndim != 1:
                raise BadInput(f"{self.name}: {n} along a curve is one list of numbers, not an array of shape {rest[n].shape}")
        try:
            length = np.broadcast_shapes(*(rest[n].shape for n in lists), (1,))
        except ValueError:
            sizes = " and ".join(f"{n} {rest[n].size}" for n in lists)
            raise BadInput(f"{self.name}: along a curve the lists are of one length: {sizes} values; "
                           f"hx.curve(..., each={next(n for n in lists if n != axis)!r}) makes a curve for each") from None
        if axis not in rest:
            raise NoValue(self.name, axis, "[0.5, 1, 2]")
        rest |= {n: np.broadcast_to(rest[n], length) for n in lists}
        rest[axis] = np.broadcast_to(rest[axis], length)
        line = np.array(rest[axis], dtype=float)
        if not isinstance(refine, int) or refine < 0:
            raise BadInput(f"{self.name}: refine is a number of points to add, 0 or more, not {brief(refine)}")
        if (refine or best) and not self.errors:
            raise BadInput(f"{self.name}: its curve contains no error; leave {'refine' if refine else 'optimise'} out")
        if refine and (len(lists) != 1 or best):
            raise BadInput(f"{self.name}: refine adds points along one list of numbers, without optimise; give it alone")
        if best:
            own = {n: v for n, v in rest.items() if n in given}
            return self._best_along(axis, line, own, best, bounds, start, tolerance, title)
        numbers_now = self.complete(rest)
        found = self.run(numbers_now, raise_on_failure=False, start=start, tolerance=tolerance)
        if refine:
            line = self._refined(refine, axis, line, rest, found, {"start": start, "tolerance": tolerance})
            numbers_now = self.complete({**rest, axis: line})
            found = self.run(numbers_now, raise_on_failure=False, start=start, tolerance=tolerance)
        return self._curve(found, axis, line, numbers_now, title)

    def _refined(self, most: int, axis: str, line: np.ndarray, rest: Mapping[str, Any], found: Solution, how: Mapping[str, Any]
                 ) -> np.ndarray:
        """The points of a curve in order, and up to `most` others where it bends."""
        def seen(at: np.ndarray, found: Solution) -> np.ndarray:
            good, y = (np.broadcast_to(np.asarray(v), at.shape) for v in (found.converged, found[self.errors[0]]))
            return np.where(good, y, np.nan)

        y = seen(line, found)[np.argsort(line)]
        line = np.sort(line)
        while most > 0 and (new := bending_points(line, y, most)).size:
            more = self.run(self.complete({**rest, axis: new}), raise_on_failure=False, **how)
            line, y, most = np.append(line, new), np.append(y, seen(new, more)), most - new.size
            line, y = line[order := np.argsort(line)], y[order]
        return line

    def _curve(self, found: Solution, axis: str, line: np.ndarray, numbers: Mapping[str, Any], title: str,
               more: Mapping[str, np.ndarray] | None = None) -> Curve:
        good = np.broadcast_to(np.asarray(found.converged, dtype=bool), line.shape)
        names, letters = [*self.errors, *self.order_parameters], self.letters()
        values = {n: np.array(np.broadcast_to(found.value[n], line.shape), dtype=float) for n in names if n in found}
        if not good.all():
            values = {n: np.where(good, v, np.nan) for n, v in values.items()}
        fixed = {k: v.item() for k, v in numbers.items() if k != axis and k not in self.arrays and np.ndim(v) == 0}
        beside = {k: np.array(np.broadcast_to(v, line.shape)) for k, v in numbers.items()   # that run along with the axis
                  if k in letters and k != axis and k not in self.arrays and np.ndim(v) == 1 and k not in values}
        return Curve(self.name, self.described(fixed), line, {**values, **beside, **(more or {})},
                     tuple(n for n in self.order_parameters if n in values),
                     converged=good, residual=np.broadcast_to(np.asarray(found.residual, dtype=float), line.shape),
                     stability=np.broadcast_to(np.asarray(found.stability, dtype=float), line.shape),
                     reason=found.reason, title=title or self.titled(fixed), named=bool(title), axis=axis, ratio=self.ratio,
                     sources=self.sources, lacking={n: k for n, k in self.brought_by.items() if n not in values})

    def titled(self, numbers: Mapping[str, Any]) -> str:
        """The legend of a curve without a title: its difference from others; empty for the theory's name."""
        return ""

    def _best_along(self, axis: str, line: np.ndarray, given: Mapping[str, Any], letters: list[str], bounds: Any,
                    start: Mapping[str, Any] | None, tolerance: float, title: str) -> Curve:
        """The curve on which letters have their best values at every point."""
        best = np.full((len(letters), *line.shape), np.nan)
        why, ends = np.full(line.shape, "", dtype=object), Counter[str]()
        for k in range(line.size):
            here = {n: v if n in self.arrays else float(v[k]) if v.ndim else float(v) for n, v in given.items()}
            try:
                point = self.minimise(self.errors[0], letters, bounds, start=start, tolerance=tolerance, **here)
                best[:, k] = [point[n] for n in letters]
                ends.update(filter(None, point.at_end.split(", ")))
            except NotConverged as error:
                why[k] = str(error)
        done = np.isfinite(best).all(axis=0)
        inside = {n: bounds[n][0] if isinstance(bounds, Mapping) else bounds[0] for n in letters}
        at = self.complete(self.given({**given, **{n: np.where(done, v, inside[n]) for n, v in zip(letters, best, strict=True)}}))
        found = self.run(at, raise_on_failure=False, start=start, tolerance=tolerance)
        found = replace(found, converged=np.asarray(found.converged) & done,
                        reason=np.where(done, np.asarray(found.reason, dtype=object), why))
        made = self._curve(found, axis, line, at, title, dict(zip(letters, best, strict=True)))
        return replace(made, optimised=", ".join(letters),
                       at_end="; ".join(f"{end} at {many} of {line.size} points" for end, many in ends.items()))

    def checked(self, numbers: Mapping[str, np.ndarray], **ranges: str) -> dict[str, np.ndarray]:
        """The numbers, each there and in its range: "> 0", ">= 0", or "" for any; infinity only where the range ends in "inf".

        Raises
        ------
        BadInput : one line for the first that is missing or out of range.
        """
        for name, said in ranges.items():
            if name not in numbers:
                raise NoValue(self.name, name)
            v = numbers[name]
            fine = np.isfinite(v) | (("inf" in said) & (v == np.inf))
            least = np.asarray(v) > 0 if "> 0" in said else np.asarray(v) >= 0 if ">= 0" in said else True
            if not np.all(ok := np.broadcast_to(fine & least, v.shape)):
                words = "positive" if "> 0" in said else "0 or more" if ">= 0" in said else "a number"
                words += "" if "inf" in said else " and finite"
                raise BadInput(f"{self.name}: {name} must be {words}, not {v[~ok].flat[0]:g}")
        return dict(numbers)

    def described(self, fixed: Mapping[str, float]) -> dict[str, Any]:
        """The `parameters` of a curve: its functions and the numbers that stayed fixed."""
        return dict(fixed)

    def latex(self) -> str:
        """Its equations, an align block in the order of the paper."""
        text: str = self.system.latex()
        return text

    def _html(self) -> str:
        return f"<p><code>{escape(repr(self))}</code></p>{self.system._html()}"

    def _with_formula(self) -> str:
        """HTML of a theory whose equations are one formula."""
        return f"<p><code>{escape(repr(self))}</code></p>$${escape(self.latex(), quote=False)}$$"

    def to_dict(self) -> dict[str, Any]:
        """Its name, functions and structure, and the numbers it takes with their defaults (None: required)."""
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.repr}  # type: ignore[arg-type]
        numbers = {n: None if d is self.REQUIRED or d is None else float(d) for n, d in self.letters().items()}
        return {"theory": self.name, **{n: _plain(v) for n, v in own.items()}, "numbers": numbers, "sources": list(self.sources)}


def numbers_latex(numbers: Mapping[str, Any], **letters: str) -> list[str]:
    """The finite numbers among these, for a legend: "$p = 100$", each by its letter in LaTeX."""
    return [f"${letter} = {numbers[name]:.4g}$" for name, letter in letters.items() if np.isfinite(numbers.get(name, np.inf))]


def _plain(value: Any) -> Any:
    """A function by its name, an expression as text, a number or a tuple as it is."""
    try:
        return plain(getattr(value, "expr", value))
    except TypeError:
        return str(value)
