"""The result of a solver: numbers by name, with their error.

    converged  <=>  max_i |x_i - rhs_i(x)| / (|x_i| + atol/rtol) <= rtol   and   residual/(1 - stability) <= rtol

The residual is the undamped one, over all unknowns: a damped step is short without anything having converged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from html import escape
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..errors import BadInput, NotConverged, UnknownName
from ..show.columns import Columned, ridge, several

if TYPE_CHECKING:
    from hermitex.hints import Axes, Letter

_LARGE = 1e-9  # an error that is shown
_DIAGNOSTICS = ("residual", "stability", "error", "iterations", "converged", "method", "branch", "reason")
UNSTABLE = "unstable under iteration"
NOWHERE = "is not finite at the start"
REFUSED = "refused"  # the method of a point whose numbers are outside of what the formulas allow
MARGINAL = 1e-8  # a spectral radius that exceeds 1 by no more is 1 to rounding


@dataclass(frozen=True, eq=False, repr=False)
class Solution(Columned):
    """Numbers by name with their residual; every entry is a scalar or an array over the points.

    Attributes
    ----------
    value : mapping             unknowns, `where` names and observables by name
    residual : float or (B,)    max over the unknowns of |x - rhs| / (|x| + atol/rtol), undamped; Newton, which also
                                takes implicit equations, divides each by the size of its terms, sum_j |J_ij| |x_j|
    converged : bool or (B,)    residual and error estimate below the tolerance
    stability : float or (B,)   spectral radius of d rhs/dx, of the undamped map x -> rhs(x) over all unknowns at once: the
                                factor that plain iteration gains a step; above 1 it runs away, and the notes say `unstable
                                under iteration`. NaN if an equation is implicit, so that there is no map (the notes say which)
    error : float or (B,)       estimated relative distance to the exact solution, residual/(1 - stability); of a System's also
                                what quadrature, terms that cancel, or a root that is double or nearly so leave, if that is more
    iterations, method, branch, reason : one entry, or one a point; reason is empty where converged
    unknowns : tuple of str     the names that were solved for
    parameters : mapping        the numbers it was solved at, by name
    inner : tuple of str        the names of `value` that only serve the equations (`where` names): not in the notebook's table
    notes : tuple of str        what the reader should know (a singular block, an ill-conditioned point)
    optimum : tuple of str      of `minimise`: the letters that were sought and the objective, which are shown first
    at_end : str                of `minimise`: the letters that are at an end of their bounds ("" if all are inside)

    Guarantee
    ---------
    `error` bounds the distance to a solution of the equations as written, where `converged` is true. That it is the only
    solution, or the intended one, is not promised. See docs/promise.md.

    Examples
    --------
    >>> s = Solution({"q": 0.5, "m": 0.25}, residual=1e-13, converged=True, iterations=4, method="newton")
    >>> s["q"], bool(s.converged)
    (0.5, True)
    >>> s
    Solution(q=0.5, m=0.25; converged, residual 1e-13, newton, 4 iterations)
    """

    value: Mapping[str, Any]
    residual: float | np.ndarray
    converged: bool | np.ndarray
    iterations: int | np.ndarray = 0
    stability: float | np.ndarray = float("nan")
    error: float | np.ndarray = float("nan")
    method: str | np.ndarray = ""
    branch: str | np.ndarray = ""
    reason: str | np.ndarray = ""
    unknowns: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    origin: Mapping[str, Any] = field(default_factory=dict)
    model: Any = None  # of a System: used by `derivative`
    history: Mapping[str, Any] = field(default_factory=dict)  # of an iteration: {unknown: its values from the start on}
    parameters: Mapping[str, Any] = field(default_factory=dict)
    inner: tuple[str, ...] = ()
    optimum: tuple[str, ...] = ()
    at_end: str = ""

    def __getitem__(self, name: str) -> Any:
        """The numbers of a name; the matrix of Q11, Q12, ..., after the shape of the parameters; the complex one of G_re, G_im."""
        own = ridge(name, (*self.value, *self.parameters))
        if own in self.value:
            return self.value[own]
        if (found := _matrix(name, self.value)) is not None:
            return found
        if f"{name}_re" in self.value and f"{name}_im" in self.value:
            return self.value[f"{name}_re"] + 1j*self.value[f"{name}_im"]
        if own in self.parameters:
            return self.parameters[own]
        raise UnknownName(name, (*self.value, *self.parameters), "quantity")

    def _named(self) -> Iterable[str]:
        return (*self.value, *self.parameters)

    def __contains__(self, name: object) -> bool:
        return name in self.value

    def __iter__(self) -> Iterator[str]:
        return iter(self.value)

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that indexing accepts."""
        return tuple(self.value)

    @property
    def points(self) -> int | None:
        """The number of points, or None for a single one."""
        shape = np.shape(self.converged)
        return shape[0] if shape else None

    @property
    def state(self) -> np.ndarray:
        """The unknowns as an array (n, B) or (n,): a warm start for the next solve."""
        return np.array([self.value[n] for n in self.unknowns or self.names])

    @property
    def all_converged(self) -> bool:
        """Whether every point converged."""
        return bool(np.all(self.converged))

    @property
    def unstable(self) -> bool | np.ndarray:
        """True if iteration leaves the solution: stability above 1 by more than rounding; False if it is unknown."""
        return _scalar(np.asarray(np.asarray(self.stability, dtype=float) > 1 + MARGINAL))

    @property
    def provenance(self) -> dict[str, Any]:
        """Versions, method and tolerances that these numbers came from."""
        import platform

        from .. import __version__

        versions = {"hermitex": __version__, "numpy": np.__version__, "python": platform.python_version()}
        return {**versions, "method": _plain(self.method), **self.origin}

    def point(self, index: int) -> Self:
        """One point of a batch as a Solution of scalars.

        >>> Solution({"q": np.array([1.0, 2.0])}, np.zeros(2), np.array([True, True])).point(1)["q"]
        2.0
        """
        if self.points is None:
            return self
        changes = {name: _at(getattr(self, name), index) for name in _DIAGNOSTICS}
        given = {k: _at(v, index) if np.shape(v) == (self.points,) else v for k, v in self.parameters.items()}
        return replace(self, value={k: _at(v, index) for k, v in self.value.items()}, parameters=given, **changes)

    def derivative(self, parameter: Letter) -> dict[str, float | np.ndarray]:
        """{name: d name/d parameter} of unknowns and observables, in total, by the implicit function theorem.

        Exact up to the quadrature; NaN if fewer than six digits of it hold (at a fold and next to one), if the equations
        leave an unknown free (m of `one_step` at r = 0 for odd activations, where errors jump: any r > 0 adds a direction without
        ridge; `random_features` has derivatives there), and at points that did not converge. Arrays over the points as the
        solution's own.

        Raises
        ------
        BadInput : the solution is none of a System, or is one point taken out of a batch. UnknownName : no such parameter.
        """
        if self.model is None:
            raise BadInput("this solution has no equations behind it whose derivative could be taken; solve a System or a theory")
        found: dict[str, float | np.ndarray] = self.model.derivative(self, str(parameter))
        return found

    def extended(self, values: Mapping[str, Any], **changes: Any) -> Self:
        """The same solution with more numbers by name (observables, `where` names)."""
        return replace(self, value={**self.value, **values}, **changes)

    def at_numbers(self, numbers: Mapping[str, Any], inner: Iterable[str] = ()) -> Self:
        """The same with the numbers it was solved at, and the names that only serve the equations."""
        given = {k: np.asarray(v).item() if np.ndim(v) == 0 else np.asarray(v) for k, v in numbers.items()}
        return replace(self, parameters=given, inner=tuple(n for n in inner if n in self.value))

    def with_stability_said(self) -> Self:
        """The same with a note where it converged to what iteration leaves."""
        away = np.atleast_1d(np.asarray(self.unstable & np.asarray(self.converged, dtype=bool)))
        if not away.any():
            return self
        where = f" at {int(away.sum())} of {away.size} points" if away.size > 1 else ""
        largest = float(np.max(np.atleast_1d(np.asarray(self.stability))[away]))
        note = f"{UNSTABLE}{where}: the spectral radius of the map x -> rhs(x) is {largest:.4g}"
        return replace(self, notes=(*self.notes, note))

    def require(self, advice: str = "") -> Self:
        """Itself if every point converged; otherwise raises `NotConverged` with what happened, carrying itself.

        Raises BadInput where the formulas have no meaning at any of the numbers.
        """
        if self.all_converged:
            return self
        if np.all(np.asarray(self.method) == REFUSED):
            raise BadInput(f"solve: {np.ravel(np.asarray(self.reason))[0]}")
        raise NotConverged(self, failure_text(self, advice))

    def to_dict(self) -> dict[str, Any]:
        """Plain Python numbers, lists and strings, ready for JSON (NaN and infinity stay floats)."""
        out = {"value": {k: _plain(v) for k, v in self.value.items()}}
        out.update({name: _plain(getattr(self, name)) for name in _DIAGNOSTICS})
        return {**out, "unknowns": list(self.unknowns), "notes": list(self.notes), "provenance": self.provenance}

    def table(self) -> dict[str, list[Any]]:
        """Columns of equal length: the parameters, what was solved for and computed from it, then the diagnostics.

        A parameter that is an array at every point (a spectrum, a matrix) has no column.
        """
        rows = self.points or 1
        first = {**{n: self[n] for n in self.optimum}, "at_end": self.at_end or "inside"} if self.optimum else {}
        columns = {**first, **self._given(rows), **self.value, **{name: getattr(self, name) for name in _DIAGNOSTICS}}
        return {k: np.broadcast_to(np.asarray(v), (rows,)).tolist() for k, v in columns.items()}

    def _given(self, rows: int) -> dict[str, Any]:
        return {k: v for k, v in self.parameters.items() if np.shape(v) in ((), (1,), (rows,)) and k not in self.value}

    def plot(self, ax: Axes | None = None, *, quantity: str | None = None, label: str = "") -> Axes:
        """A quantity over the parameter that has several values, as a line -> axes.

        quantity : default: the test error, or else every unknown
        """
        from ..show.plots import along

        columns = self.table()
        line = next((n for n in self.parameters if n in columns and several(columns[n])), None)
        if line is None:
            raise BadInput("plot: this solution is one point; give a parameter several values, or print it")
        names = [quantity] if quantity else ["test_error"] if "test_error" in self.value else list(self.unknowns or self.names)
        return along(line, columns[line], {n: np.ravel(self[n]).tolist() for n in names}, ax, label=label)

    def __repr__(self) -> str:
        shown = list(self.value)[:6]
        more = ", ..." if len(self.value) > len(shown) else ""
        numbers = ", ".join(f"{k}={_short(self.value[k])}" for k in shown) + more
        return f"{type(self).__name__}({numbers}; {self._summary()})"

    def _summary(self) -> str:
        done, points = int(np.sum(self.converged)), self.points
        state = "converged" if self.all_converged else "NOT converged"
        if points is not None:
            state = f"{done} of {points} points converged"
        residual = np.max(self.residual) if np.size(self.residual) else float("nan")
        methods = " + ".join(dict.fromkeys(np.atleast_1d(np.asarray(self.method)).tolist()))
        iterations = int(np.max(self.iterations)) if np.size(self.iterations) else 0
        # An error that is not residual/(1 - stability) says more than the residual: that of a quadrature, of a double root.
        known = np.any(np.isfinite(self.error)) and (np.all(np.isnan(self.stability)) or np.nanmax(self.error) > _LARGE)
        off = f", error {np.nanmax(self.error):.1g}" if known else ""
        best = f"{self.at_end or 'inside the bounds'}; " if self.optimum else ""
        return f"{best}{state}, residual {residual:.2g}{off}{self._stability()}, {methods or 'no method'}, {iterations} iterations"

    def _stability(self) -> str:
        gain = np.asarray(self.stability, dtype=float)
        if not np.any(~np.isnan(gain)):
            return ""
        count = int(np.sum(self.unstable & np.asarray(self.converged)))
        where = f" ({UNSTABLE}" + (f" at {count} of {self.points} points" if self.points is not None else "") + ")"
        return f", stability {np.nanmax(gain):.4g}{where if count else ''}"

    def _repr_html_(self) -> str:
        try:
            columns = self.table()
            away = np.any(np.asarray(self.stability, dtype=float) > 1)
            given = [n for n in self._given(self.points or 1) if several(columns[n])]
            first = [*self.optimum, "at_end"] if self.optimum else []
            names = [*first, *given, *(n for n in self.value if n not in (*self.inner, *first)), *(["stability"] if away else []),
                     "converged"]
            plain = {n: n.replace("_", " ") for n in ("at_end", "stability", "converged")}
            return self._shown_table(names, f"{type(self).__name__}: {self._summary()}", plain)
        except Exception:  # a notebook cell must never fail because its result could not be drawn
            return f"<code>{escape(object.__repr__(self))}</code>"


def combine_solutions(parts: Sequence[Solution], values: Mapping[str, Any] | None = None) -> Solution:
    """One Solution out of those of consecutive blocks: worst residual, all converged, iterations added.

    >>> a = Solution({"V": 1.0}, 1e-14, True, 5, method="newton", unknowns=("V",))
    >>> b = Solution({"q": 2.0}, 0.0, True, 1, method="linear", unknowns=("q",))
    >>> combine_solutions([a, b]).method, combine_solutions([a, b]).unknowns
    ('newton + linear', ('V', 'q'))
    """

    def worst(name: str) -> Any:
        # fmax: a part that does not know its own does not hide another's
        return _scalar(reduce(np.fmax, (np.asarray(getattr(s, name), dtype=float) for s in parts)))

    reasons = np.broadcast_arrays(*[np.asarray(s.reason, dtype=object) for s in parts])
    first = reasons[0]
    for r in reasons[1:]:
        first = np.where(np.asarray(first == "", dtype=bool), r, first)
    methods = dict.fromkeys(m for s in parts for m in np.atleast_1d(np.asarray(s.method)).tolist() if m)
    branch = next((s.branch for s in parts if np.any(np.asarray(s.branch) != "")), "")
    value: dict[str, Any] = {}
    for s in parts:
        value.update(s.value)
    return Solution(
        {**value, **(values or {})},
        residual=worst("residual"),
        converged=_scalar(reduce(np.logical_and, (np.asarray(s.converged) for s in parts))),
        iterations=_scalar(sum(np.asarray(s.iterations) for s in parts)),
        stability=worst("stability"),
        error=worst("error"),
        method=" + ".join(methods),
        branch=branch,
        reason=_scalar(np.asarray(first, dtype=object)),
        unknowns=tuple(n for s in parts for n in s.unknowns),
        notes=tuple(dict.fromkeys(n for s in parts for n in s.notes)),
        origin={k: v for s in parts for k, v in s.origin.items()},
    )


def failure_text(solution: Solution, advice: str = "") -> str:
    """The text of a failure: how many points, what the first of them did, and what to try."""
    flags = np.atleast_1d(np.asarray(solution.converged))
    bad = np.flatnonzero(~flags)
    one = solution.point(int(bad[0]))
    count = f"{bad.size} of {flags.size} points did not converge; the first is point {bad[0]}: "
    where = count if flags.size > 1 else ""
    gain = f", stability {float(one.stability):.4g}" if np.isfinite(one.stability) else ""
    what = one.reason or "the residual stayed above the tolerance"
    facts = f"residual {float(one.residual):.2g} after {int(one.iterations)} iterations{gain} ({one.method})"
    return f"{where}{what}; {facts}.\n  Try: {advice or _advice(one)}\n  The last state is in .solution of this error."


def _advice(one: Solution) -> str:
    gain = float(one.stability)
    if "quadrature reached" in str(one.reason):
        return "less extreme numbers, or .evalf(20, subs={...}) of its averages there: it says whether they exist"
    if "terms that cancel" in str(one.reason):
        return "the formulas written so that nothing cancels, (a - b)*(a + b) for a**2 - b**2, or less extreme numbers"
    if "that is double" in str(one.reason):
        return "the tolerance named, where one is, or numbers further from those at which two roots meet"
    if one.method == "explicit":
        return "other numbers: nothing is solved here, the formula itself has no finite value"
    if NOWHERE in str(one.reason):
        return ("start={unknown: number} where every equation is finite, or say where the unknown lives: "
                "System(..., domain={unknown: (lo, hi)})")
    if "oscillat" in str(one.reason):
        return "damping=0.5 or smaller (of method='iterate'), method='newton', or a start nearer the solution"
    if "runs to" in str(one.reason) or "diverg" in str(one.reason) or "finite" in str(one.reason):
        return "another start, a larger ridge, or check that a solution exists at these parameters"
    if "does not decrease" in str(one.reason) and "newton" in str(one.method) and 0.99 < gain < 1.01:
        return ("another start (start={unknown: number}), or other numbers: where the residual is least and not 0, nothing near "
                "to it is a solution")
    if np.isfinite(gain) and 0.99 < gain < 1:
        return f"method='newton', or more steps: plain iteration gains {1 - gain:.1g} a step here"
    return "another start (start={unknown: number}, from a neighbouring point), or a looser tolerance"


def trend_text(history: Sequence[np.ndarray], names: Sequence[str]) -> str:
    """What the last iterates of one point did, unknown by unknown: oscillate, run away, or creep.

    >>> trend_text([np.array([1.0]), np.array([-1.0]), np.array([1.0]), np.array([-1.0])], ["q"])
    'q oscillates'
    """
    path = np.array(history, dtype=float)
    if not np.isfinite(path[-1]).all():
        return f"{_join(names, ~np.isfinite(path[-1]))} became infinite or undefined"
    if len(path) < 4:
        return ""
    moves = np.diff(path, axis=0)[-3:]
    size = np.abs(path[-1]) + np.finfo(float).tiny
    moving = np.abs(moves[-1]) > 1e-9 * size
    flips = moving & (moves[-1] * moves[-2] < 0) & (moves[-2] * moves[-3] < 0)
    grows = np.abs(moves[-1]) >= 0.999 * np.abs(moves[-2])
    said = []
    if (flips & grows).any():
        said.append(f"{_join(names, flips & grows)} {_verb(flips & grows, 'oscillates', 'oscillate')}")
    away = moving & ~flips & (np.abs(moves[-1]) > 1.0001 * np.abs(moves[-2])) & (np.abs(path[-1]) > np.abs(path[-2]))
    if away.any():
        said.append(f"{_join(names, away)} {_verb(away, 'diverges', 'diverge')}")
    creeps = moving & ~(flips & grows) & ~away
    if creeps.any() and not said:
        said.append(f"{_join(names, creeps)} still {_verb(creeps, 'moves', 'move')}")
    return "; ".join(said)


def _join(names: Sequence[str], mask: Iterable[Any]) -> str:
    chosen = [n for n, flag in zip(names, mask, strict=True) if flag]
    return ", ".join(chosen[:4]) + (f" and {len(chosen) - 4} more" if len(chosen) > 4 else "")


def _verb(mask: np.ndarray, one: str, many: str) -> str:
    return one if int(mask.sum()) == 1 else many


def _at(v: Any, index: int) -> Any:
    return _scalar(np.asarray(v)[..., index]) if np.ndim(v) else v


def _scalar(v: Any) -> Any:
    return v.item() if isinstance(v, np.ndarray | np.generic) and np.ndim(v) == 0 else v


def _plain(v: Any) -> Any:
    return v.tolist() if isinstance(v, np.ndarray | np.generic) else v


def _cell(name: str, v: Any) -> str:
    """An entry of the table; of a residual its size counts."""
    return f"{v:.1e}" if name == "residual" and isinstance(v, float) else _short(v)


def _short(v: Any) -> str:
    if isinstance(v, np.ndarray) and v.ndim:
        return f"<{'x'.join(str(k) for k in v.shape)} array>"
    if isinstance(v, float | np.floating):
        return f"{float(v):.6g}"
    return str(v)


def _matrix(name: str, value: Mapping[str, Any]) -> np.ndarray | None:
    """The matrix of the entries Q11, Q12, ..., symmetric where only one of Q12 and Q21 is there; None without them."""
    for form in ("{}{}{}", "{}_{}_{}"):
        pattern = re.compile(re.escape(name) + (r"(\d)(\d)" if form == "{}{}{}" else r"_(\d+)_(\d+)"))
        places = {(int(m[1]), int(m[2])): n for n in value if (m := pattern.fullmatch(n))}
        if not places:
            continue
        first = min(min(p) for p in places)
        rows, columns = (max(p[k] for p in places) - first + 1 for k in (0, 1))
        both = [[places.get((i, j), places.get((j, i))) for j in range(first, first + columns)]
                for i in range(first, first + rows)]
        if first in (0, 1) and all(n is not None for row in both for n in row):
            return np.stack([np.stack([np.asarray(value[n]) for n in row if n is not None], axis=-1) for row in both], axis=-2)
    return None
