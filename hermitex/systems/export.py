"""System -> a standalone .py: the formulas as its author wrote them, and a solver that needs NumPy alone.

    python solver.py --selftest          python solver.py --alpha 0.2,0.9 --lamda 0.1

The file holds the generated functions of the session and a small solver (`systems.standalone`); it carries reference points
whose residuals were checked with mpmath when it was written. Its own solver verifies each solution on finer nodes in extended
precision. Where it finds another solution from the start than the session, the file begins at that of the session.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sympy import Eq, Rational

from hermitex.errors import NO_NUMBER, BadInput, BudgetExceeded, HermitexError, NoClosedForm, NotConverged, SelfTestFailed, brief
from hermitex.show.columns import ridge
from hermitex.show.display import words_table
from hermitex.show.files import check_place, write_whole
from hermitex.solvers.solve_limits import require_tolerance
from hermitex.symbolic.budget import budget
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.indexed_sums import Index, with_entries
from hermitex.symbolic.precise import evaluate as evaluate_residual
from hermitex.systems.exported_text import Numbers, Point, parameters_of, render
from hermitex.systems.iterate import require_method
from hermitex.systems.matrices import flat_start
from hermitex.systems.scope import written_out
from hermitex.systems.solve import refusal_reasons
from hermitex.systems.state_evaluation import States
from hermitex.systems.trajectory import TIME

# Points after that time count as not checked: the checks of a file cost less than the file.
# 20 digits show every error of doubles; a solution holds to far less than 1e-7.
_CHECK_SECONDS, _CHECK_DIGITS, _WRONG = 0.5, 20, 1e-7
_ALONE = """import runpy, sys
sys.modules["hermitex"] = None
sys.argv = [sys.argv[1], "--selftest"]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@dataclass(frozen=True)
class Exported:
    """A written file: `path`, the numbers of `equations`, `blocks` and `lines`, and the reference points.

    `checked` says how the residuals were re-checked, `deviation` what the self-test of the file found,
    `left_out` which reference points have numbers with no meaning in the formulas.
    """

    path: str
    equations: int
    blocks: int
    lines: int
    points: int
    checked: str
    deviation: float
    left_out: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Its fields."""
        return asdict(self)

    def _repr_html_(self) -> str:
        rows = [(name, str(value)) for name, value in self.to_dict().items()]
        return words_table(rows, title="A standalone solver")


def write(system: Any, path: str | os.PathLike[str], *, reference: Numbers | Iterable[Numbers] | None = None,
          start: Numbers | None = None, tolerance: float = 1e-11, check: bool = True, method: str = "newton",
          damping: float = 1.0) -> Exported:
    """Write the standalone solver of a system; the file is whole or is not there.

    Parameters
    ----------
    path : of the file to be written
    reference : parameter values (one point or several) for its self-test; default: points found by trial. Of arrays that are
        summed over it takes the first 60 entries (of matrices as many); the file itself takes any length.
    start : {unknown: first guess}, the default of its `solve` and where the self-test begins
    tolerance, method, damping : the defaults of its `solve`; those of `System.solve`
    check : re-check the residuals of the first reference point with mpmath

    Raises
    ------
    NotConverged : no reference point could be solved. HermitexError : mpmath contradicts the generated code, or the file,
        run by itself without the package, fails its self-test; then nothing is written.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from hermitex.symbols import V, Vhat, alpha, lamda
    >>> from hermitex.systems.system import System
    >>> ridge = System({Vhat: alpha/(1 + V), V: 1/(lamda + Vhat)})
    >>> with TemporaryDirectory() as folder:
    ...     done = write(ridge, folder + "/ridge.py")
    >>> done.equations, done.blocks, done.checked
    (2, 1, 'mpmath, 20 digits, 2 of 2 equations')
    """
    try:
        given = flat_start(start or {}, [u.name for u in system.unknowns])
        first = {**system.start, **{u: float(v) for u, v in given.items()}}
    except NO_NUMBER:
        raise BadInput(f"export: start = {brief(start)} has a value that is not a number; give a number for each name") from None
    check_place(path)
    require_tolerance(tolerance)
    if not system.is_flow:
        require_method("export", method, damping)
    how = {"tolerance": tolerance, **({} if system.is_flow else {"method": method, "damping": damping})}
    left: list[str] = []
    system.compile()  # what has no numbers at all says so itself, and not as a point that could not be solved
    points = _reference(system, reference, first, how, left)
    checked = _check_equations(system, points[0]) if check else ""
    text = render(system, points, start=first, how=how, checked=checked)
    try:
        deviation = _selftest(text)
    except SelfTestFailed:  # where there are several solutions the file begins at that of the session
        if system.is_flow or method == "iterate":
            raise
        text = render(system, points, start={u.name: points[0][1][u.name] for u in system.unknowns}, how=how, checked=checked)
        deviation = _selftest(text)
    write_whole(path, text)
    return Exported(str(path), len(system.unknowns), len(system.blocks), text.count("\n"), len(points), checked, deviation,
                    tuple(left))


def _selftest(text: str) -> float:
    """Run the self-test of a file in a process of its own that does not find the package; the largest deviation."""
    seconds = 600.0  # far more than a file's three points take: what does not end is stopped
    with TemporaryDirectory() as folder:
        file = Path(folder) / "solver.py"
        file.write_text(text, encoding="utf-8")
        try:
            done = subprocess.run([sys.executable, "-I", "-c", _ALONE, str(file)], cwd=folder, capture_output=True, text=True,
                                  timeout=seconds, check=False)
        except subprocess.TimeoutExpired:
            raise SelfTestFailed(f"export: the self-test of the file takes more than {seconds:g} s; nothing was "
                                "written") from None
    if done.returncode:
        said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()] or ["no output"]
        raise SelfTestFailed(f"export: the file fails its own self-test, nothing was written: {said[-1][:200]}")
    found = re.search(r"largest deviation (\S+):", done.stdout)
    return float(found[1]) if found else float("nan")


# -- reference points ------------------------------------------------------------------------------------------------
def _reference(system: Any, given: Numbers | Iterable[Numbers] | None, start: Numbers, how: Numbers, left: list[str]
               ) -> list[Point]:
    """The points of the self-test; `left` takes the reasons of points that are left out."""
    if given is not None:
        wanted = _points(system, given)
        without = _left_out(system, wanted)
        left.extend(without.values())
        return [_solve_point(system, p, start, how) for k, p in enumerate(wanted) if k not in without]
    found: list[Point] = []
    failure: HermitexError | None = None
    tries = 24  # draws of the parameters, as some of them may have no solution
    most_points = 3  # reference points: one may be special, each makes the file longer
    for k in range(tries):
        try:
            found.append(_solve_point(system, _trial_numbers(system, k), start, how))
        except HermitexError as error:
            failure = failure or error
        if len(found) == most_points or not system.parameters:
            break
    if not found:
        raise NotConverged(getattr(failure, "solution", None), "export: none of the points tried for the self-test "
                           f"could be solved; give some with reference={{parameter: value}} ({failure})")
    return found


def _points(system: Any, given: Numbers | Iterable[Numbers]) -> list[Numbers]:
    """The points as a list; one line for what is none: every parameter is one number, but for arrays."""
    points = [given] if isinstance(given, Mapping) else list(given) if isinstance(given, Iterable) else [given]
    inside = {a.name for a in system.arrays}
    for point in points:
        if not isinstance(point, Mapping):
            raise BadInput(f"export: {brief(point)} is not a point; give reference={{'alpha': 2}}, or a list of such points")
        many = [f"{n} = {brief(v)}" for n, v in point.items() if str(n) not in inside and np.ndim(v)]
        if many:
            raise BadInput(f"export: {many[0]} is not a number; give several points as a list, reference=[{{...}}, {{...}}]")
    return points


def _left_out(system: Any, points: list[Numbers]) -> dict[int, str]:
    """Which of several points have numbers with no meaning in the formulas, and why: the file is tested at the others."""
    program, inside = system.compile(), {a.name for a in system.arrays}
    found = {}
    for k, point in enumerate(points):
        try:
            numbers = {ridge(str(n), program.parameters): np.asarray(float(v)) for n, v in point.items() if str(n) not in inside}
        except NO_NUMBER:
            continue  # whoever solves it says so
        if numbers.keys() >= set(program.parameters) and (why := refusal_reasons(program, numbers, 1)[0]):
            found[k] = f"point {k + 1} of {len(points)} cannot be a reference: {why}"
    return found if len(found) < len(points) else {}


def _trial_numbers(system: Any, k: int) -> dict[str, Any]:
    """Plain numbers that differ between the parameters: positive ones around 1, others in (0, 1)."""
    numbers: dict[str, Any] = {}
    inside = {a.name: depth for a, depth in system.arrays.items()}
    for i, p in enumerate(parameters_of(system)):
        if p.name in inside:
            numbers[p.name] = _short_array(inside[p.name], i + k)
            continue
        part = (0.5 + 0.618*(k + 1) + 0.2*(i + 1)) % 1.0
        numbers[p.name] = round(0.4 + 1.4*part if p.is_positive else 0.1 + 0.8*part, 3)
    return numbers


def _short_array(depth: int, k: int) -> Any:
    """A short array of plain numbers between 0.2 and 1.2 for a self-test."""
    entries = 5  # of an array in a reference point: a line of the file
    places = np.indices((entries,)*depth)
    return np.round(0.2 + (0.37*(k + 1) + 0.618*sum((i + 1)*(p + 1) for i, p in enumerate(places))) % 1.0, 3).tolist()


def _shorten_arrays(system: Any, point: Mapping[str, Any]) -> dict[str, Any]:
    """The point with the first entries of its arrays, which are the same whatever else is left out: the file holds all of them."""
    inside = {a.name for a in system.arrays}
    longest = 60  # characters of a reason that a comment of the file holds
    most = round(longest**(1/max(system.arrays.values(), default=1)))
    return {str(k): np.asarray(v, dtype=float)[(slice(most),)*np.ndim(v)].tolist() if str(k) in inside else v
            for k, v in point.items()}


def _solve_point(system: Any, point: Mapping[str, Any], start: Numbers, how: Numbers) -> Point:
    system.compile().bound({str(k): v for k, v in point.items()}, "export")  # the arrays as they are given fit each other
    point = _shorten_arrays(system, point)
    inside = {a.name for a in system.arrays}
    last_time = 1.0  # that a flow is followed to where no time is given
    if system.is_flow:
        given, time = {str(k): v for k, v in point.items() if str(k) != TIME}, float(point.get(TIME, last_time))
        path = system.solve(given, t=time, start=start, **how)
        return {**{k: v if k in inside else float(v) for k, v in given.items()}, TIME: time}, {
            n: float(v) for n, v in path.value.items()}
    found = system.solve(point, start=start, **how)
    known = {p.name for p in parameters_of(system)}
    inside = {a.name for a in system.arrays}
    numbers = {("lamda" if k == "lam" and k not in known else str(k)): v if str(k) in inside else float(v)
               for k, v in point.items()}
    return numbers, {n: float(v) for n, v in found.value.items()}


def _check_equations(system: Any, point: Point) -> str:
    """Put the numbers into the formulas themselves, at 20 digits; what takes too long is left out and counted."""
    import hermitex.numbers.average  # noqa: F401 - loaded before the seconds count, so that a first file is checked as a second one

    numbers, values = point
    if system.is_flow:
        return _checked_rates(system, numbers, values)
    inside = {a.name for a in system.arrays}
    exact = {**{p: Rational(numbers[p.name]) for p in parameters_of(system) if p.name in numbers and p.name not in inside},
             **{u: Rational(values[u.name]) for u in system.unknowns}}
    done = 0
    formulas = {u: written_out(v.lhs - v.rhs if isinstance(v, Eq) else u - v, system.where)
                for u, v in system.equations.items()}
    try:
        with budget(_CHECK_SECONDS):
            formulas = {u: f for u, f in formulas.items() if not (f.has(Expectation) and any(i.endless for i in f.atoms(Index)))}
            for u, formula in sorted(formulas.items(), key=lambda item: _depth(item[1])):
                formula = with_entries(formula, {n: numbers[n] for n in inside}, system._all())
                left = abs(float(evaluate_residual(formula, _CHECK_DIGITS, exact)))
                if left > _WRONG*max(abs(values[u.name]), 1.0):
                    raise HermitexError(f"export: at the solution of the session the equation of {u.name} is off by "
                                        f"{left:.1e} when mpmath evaluates it; nothing was written")
                done += 1
    except BudgetExceeded:
        pass
    except (NoClosedForm, NotConverged) as error:
        return f"mpmath, {_CHECK_DIGITS} digits, {done} of {len(system.unknowns)} equations ({str(error).partition(' for ')[0]})"
    return f"mpmath, {_CHECK_DIGITS} digits, {done} of {len(system.unknowns)} equations"


def _checked_rates(flow: Any, numbers: Mapping[str, float], values: Mapping[str, float]) -> str:
    """The rates where a trajectory ends: those of the generated code against those of mpmath."""
    program, fixed = flow.compile().bound({p.name: numbers[p.name] for p in parameters_of(flow)})
    states = States(program, fixed, 1e-12)
    state = {u: values[u] for u in (*(u.name for u in flow.unknowns), TIME)}
    states.examine(state)
    rates = states.call("right_hand_sides", state)
    exact = {s: Rational(v) for e in flow.written.values() for s in e.rhs.free_symbols
             for v in [{**fixed, **state}.get(s.name)] if v is not None}
    done = 0
    try:
        with budget(_CHECK_SECONDS):
            for u, rate in sorted(((u, written_out(v, flow.where)) for u, v in flow.equations.items()), key=lambda i: _depth(i[1])):
                rate = with_entries(rate, {a.name: numbers[a.name] for a in flow.arrays}, flow._all())
                here, there = float(rates[f"rhs/{u.name}"][0]), float(evaluate_residual(rate, _CHECK_DIGITS, exact))
                if abs(here - there) > _WRONG*max(abs(there), 1.0):
                    raise HermitexError(f"export: the rate of {u.name} is {here:.10g} in the session and {there:.10g} when mpmath "
                                        "evaluates it; nothing was written")
                done += 1
    except BudgetExceeded:
        pass
    except NotConverged as error:
        return f"mpmath, {_CHECK_DIGITS} digits, {done} of {len(flow.unknowns)} rates ({str(error).partition(' for ')[0]})"
    return f"mpmath, {_CHECK_DIGITS} digits, {done} of {len(flow.unknowns)} rates"


def _depth(expr: Any) -> int:
    """The depth to which expectations are nested."""
    inner = max((_depth(a) for a in expr.args), default=0)
    return inner + isinstance(expr, Expectation)
