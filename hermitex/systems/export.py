"""System -> a standalone .py: the formulas as its author wrote them, and a solver that needs NumPy alone.

    python solver.py --selftest          python solver.py --alpha 0.2,0.9 --lamda 0.1

The file holds the generated functions of the session and the text of its quadrature and solver (`excerpt`), so that it
gives the same numbers; it carries reference points whose residuals were checked with mpmath when it was written.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sympy import Eq, Rational, Symbol

from hermitex.errors import NO_NUMBER, BadInput, BudgetExceeded, HermitexError, NotConverged, SelfTestFailed, UnknownName, brief
from hermitex.kernels.words import INTEGRATED, Names, comment, literal, prose
from hermitex.show.columns import ridge
from hermitex.show.display import words_table
from hermitex.show.files import check_place, write_whole
from hermitex.solvers.limit import require_tolerance
from hermitex.symbolic.budget import budget
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.precise import evaluate as evaluate_residual
from hermitex.symbolic.sums import Index, with_entries
from hermitex.systems.excerpt import flat
from hermitex.systems.matrices import flat_start
from hermitex.systems.scope import written_out
from hermitex.systems.solve import refused
from hermitex.systems.states import States
from hermitex.systems.template import FLOW_PAGE, FORMULAS, PAGE, PLACES
from hermitex.systems.trajectory import TIME
from hermitex.systems.verified import verified

_STANDALONE, _ADAPTIVE, _LINEAR = "hermitex.systems.standalone", "hermitex.kernels.adaptive", "hermitex.solvers.linear"
_RENAME = {(_LINEAR, "solve"): "solve_linear", (_LINEAR, "step"): "solve_fast", ("hermitex.systems.program", "BlockCode"): "Block"}
_STANDARD = ("import argparse", "import json", "import os", "import sys")
_PAGE_NAMES = frozenset({"AXES", "CODE", "DOMAIN", "REFERENCE", "START", "main", "run", "selftest", "solve", "values"})
_WIDTH = 116
_TRIES, _POINTS = 24, 3
_ENTRIES, _LONGEST = 5, 60  # of an array in a reference point
_TIME = 1.0  # that a flow is followed for where no time is given
_CHECK_SECONDS, _CHECK_DIGITS, _WRONG = 5.0, 20, 1e-7
_SELFTEST_SECONDS = 600.0
_OTHERS = 1000  # functions of sums and minimisers of the second set of formulas are numbered from there
_ALONE = """import runpy, sys
sys.modules["hermitex"] = None
sys.argv = [sys.argv[1], "--selftest"]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@dataclass(frozen=True)
class Exported:
    """What was written: `path`, the numbers of `equations`, `blocks` and `lines`, and the reference points.

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


Numbers = Mapping[str, Any]
Point = tuple[dict[str, Any], dict[str, float]]  # parameters, solution


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
        given = flat_start({str(u): v for u, v in (start or {}).items()}, [u.name for u in system.unknowns])
        first = {**system.start, **{u: float(v) for u, v in given.items()}}
    except NO_NUMBER:
        raise BadInput(f"export: start = {brief(start)} holds what is no number; the file begins at one number each") from None
    check_place(path)
    require_tolerance(tolerance)
    how = {"tolerance": tolerance, **({} if system.is_flow else {"method": method, "damping": damping})}
    left: list[str] = []
    points = _reference(system, reference, first, how, left)
    checked = _checked(system, points[0]) if check else ""
    text = render(system, points, start=first, how=how, checked=checked)
    deviation = _selftest(text)
    write_whole(path, text)
    return Exported(str(path), len(system.unknowns), len(system.blocks), text.count("\n"), len(points), checked, deviation,
                    tuple(left))


def _selftest(text: str) -> float:
    """Run the self-test of a file in a process of its own that does not find the package; the largest deviation."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "solver.py"
        file.write_text(text, encoding="utf-8")
        try:
            done = subprocess.run([sys.executable, "-I", "-c", _ALONE, str(file)], cwd=folder, capture_output=True, text=True,
                                  timeout=_SELFTEST_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            raise SelfTestFailed(f"export: the self-test of the file takes more than {_SELFTEST_SECONDS:g} s; nothing was "
                                "written") from None
    if done.returncode:
        said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()] or ["no output"]
        raise SelfTestFailed(f"export: the file fails its own self-test, nothing was written: {said[-1][:200]}")
    found = re.search(r"largest deviation (\S+):", done.stdout)
    return float(found[1]) if found else float("nan")


# -- reference points ------------------------------------------------------------------------------------------------
def _reference(system: Any, given: Numbers | Iterable[Numbers] | None, start: Numbers, how: Numbers, left: list[str]
               ) -> list[Point]:
    """The points of the self-test; `left` takes what is said of those that are none."""
    if given is not None:
        wanted = [given] if isinstance(given, Mapping) else list(given)
        without = _left_out(system, wanted)
        left.extend(without.values())
        return [_solved(system, p, start, how) for k, p in enumerate(wanted) if k not in without]
    found: list[Point] = []
    failure: HermitexError | None = None
    for k in range(_TRIES):
        try:
            found.append(_solved(system, _trial(system, k), start, how))
        except HermitexError as error:
            failure = failure or error
        if len(found) == _POINTS or not system.parameters:
            break
    if not found:
        raise NotConverged(getattr(failure, "solution", None), "export: none of the points tried for the self-test "
                           f"could be solved; give some with reference={{parameter: value}} ({failure})")
    return found


def _left_out(system: Any, points: list[Numbers]) -> dict[int, str]:
    """Which of several points have numbers with no meaning in the formulas, and why: the file is tested at the others."""
    program, inside = system.compile(), {a.name for a in system.arrays}
    found = {}
    for k, point in enumerate(points):
        try:
            numbers = {ridge(str(n), program.parameters): np.asarray(float(v)) for n, v in point.items() if str(n) not in inside}
        except NO_NUMBER:
            continue  # whoever solves it says so
        if numbers.keys() >= set(program.parameters) and (why := refused(program, numbers, 1)[0]):
            found[k] = f"point {k + 1} of {len(points)} is no reference: {why}"
    return found if len(found) < len(points) else {}


def _trial(system: Any, k: int) -> dict[str, Any]:
    """Plain numbers that differ between the parameters: positive ones around 1, others in (0, 1)."""
    numbers: dict[str, Any] = {}
    inside = {a.name: depth for a, depth in system.arrays.items()}
    for i, p in enumerate(_parameters(system)):
        if p.name in inside:
            numbers[p.name] = _drawn(inside[p.name], i + k)
            continue
        part = (0.5 + 0.618*(k + 1) + 0.2*(i + 1)) % 1.0
        numbers[p.name] = round(0.4 + 1.4*part if p.is_positive else 0.1 + 0.8*part, 3)
    return numbers


def _drawn(depth: int, k: int) -> Any:
    """A short array of plain numbers between 0.2 and 1.2 for a self-test."""
    places = np.indices((_ENTRIES,)*depth)
    return np.round(0.2 + (0.37*(k + 1) + 0.618*sum((i + 1)*(p + 1) for i, p in enumerate(places))) % 1.0, 3).tolist()


def _shortened(system: Any, point: Mapping[str, Any]) -> dict[str, Any]:
    """The point with the first entries of its arrays, which are the same whatever else is left out: the file holds all of them."""
    inside = {a.name for a in system.arrays}
    most = round(_LONGEST**(1/max(system.arrays.values(), default=1)))
    return {str(k): np.asarray(v, dtype=float)[(slice(most),)*np.ndim(v)].tolist() if str(k) in inside else v
            for k, v in point.items()}


def _solved(system: Any, point: Mapping[str, Any], start: Numbers, how: Numbers) -> Point:
    point = _shortened(system, point)
    inside = {a.name for a in system.arrays}
    if system.is_flow:
        given, time = {str(k): v for k, v in point.items() if str(k) != TIME}, float(point.get(TIME, _TIME))
        path = system.solve(given, t=time, start=start, **how)
        return {**{k: v if k in inside else float(v) for k, v in given.items()}, TIME: time}, {
            n: float(v) for n, v in path.value.items()}
    found = system.solve(point, start=start, **how)
    known = {p.name for p in _parameters(system)}
    inside = {a.name for a in system.arrays}
    numbers = {("lamda" if k == "lam" and k not in known else str(k)): v if str(k) in inside else float(v)
               for k, v in point.items()}
    return numbers, {n: float(v) for n, v in found.value.items()}


def _checked(system: Any, point: Point) -> str:
    """Put the numbers into the formulas themselves, at 20 digits; what takes too long is left out and counted."""
    numbers, values = point
    if system.is_flow:
        return _checked_rates(system, numbers, values)
    inside = {a.name for a in system.arrays}
    exact = {**{p: Rational(numbers[p.name]) for p in _parameters(system) if p.name in numbers and p.name not in inside},
             **{u: Rational(values[u.name]) for u in system.unknowns}}
    done = 0
    formulas = {u: written_out(v.lhs - v.rhs if isinstance(v, Eq) else u - v, system.where)
                for u, v in system.equations.items()}
    try:
        with budget(_CHECK_SECONDS):
            formulas = {u: f for u, f in formulas.items() if not any(i.endless for i in f.atoms(Index))}
            for u, formula in sorted(formulas.items(), key=lambda item: _depth(item[1])):
                formula = with_entries(formula, {n: numbers[n] for n in inside})
                left = abs(float(evaluate_residual(formula, _CHECK_DIGITS, exact)))
                if left > _WRONG*max(abs(values[u.name]), 1.0):
                    raise HermitexError(f"export: at the solution of the session the equation of {u.name} is off by "
                                        f"{left:.1e} when mpmath evaluates it; nothing was written")
                done += 1
    except BudgetExceeded:
        pass
    except NotConverged as error:
        return f"mpmath, {_CHECK_DIGITS} digits, {done} of {len(system.unknowns)} equations ({str(error)[:40]})"
    return f"mpmath, {_CHECK_DIGITS} digits, {done} of {len(system.unknowns)} equations"


def _checked_rates(flow: Any, numbers: Mapping[str, float], values: Mapping[str, float]) -> str:
    """The rates where a trajectory ends: those of the generated code against those of mpmath."""
    program, fixed = flow.compile().bound({p.name: numbers[p.name] for p in _parameters(flow)})
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
                rate = with_entries(rate, {a.name: numbers[a.name] for a in flow.arrays})
                here, there = float(rates[f"rhs/{u.name}"][0]), float(evaluate_residual(rate, _CHECK_DIGITS, exact))
                if abs(here - there) > _WRONG*max(abs(there), 1.0):
                    raise HermitexError(f"export: the rate of {u.name} is {here:.10g} in the session and {there:.10g} when mpmath "
                                        "evaluates it; nothing was written")
                done += 1
    except BudgetExceeded:
        pass
    except NotConverged as error:
        return f"mpmath, {_CHECK_DIGITS} digits, {done} of {len(flow.unknowns)} rates ({str(error)[:40]})"
    return f"mpmath, {_CHECK_DIGITS} digits, {done} of {len(flow.unknowns)} rates"


def _depth(expr: Any) -> int:
    """How deep expectations stand within each other."""
    inner = max((_depth(a) for a in expr.args), default=0)
    return inner + isinstance(expr, Expectation)


# -- text --------------------------------------------------------------------------------------------------------------
def render(system: Any, points: Sequence[Point], *, start: Numbers | None = None, how: Numbers, checked: str = "") -> str:
    """The text of the file, read again and compared with what was meant (`verified`)."""
    from hermitex import __version__

    program, parameters = system.compile(), _parameters(system)
    imports, helpers, functions = _parts(program.source)
    axes, other = program.axes, program.later.program() if program.later is not None else None
    every = (program, *([other] if other is not None else []))
    if other is not None:
        more, below, integrated = _parts(_apart(other.source))
        imports, helpers, functions = [*imports, *more], list(dict.fromkeys([*helpers, *below])), [*functions, *integrated]
    flow = system.is_flow
    page_of, runs = (FLOW_PAGE, ("flow_all", "rows_of")) if flow else (PAGE, ("solve_all",))
    averaged = any(p.axes for p in every)
    rules_of = (*(("Axis",) if averaged else ()), *(("Exact",) if not all(p.axes for p in every) else ()))
    own = [(_STANDALONE, n) for n in (*rules_of, "Code", "NotSolved", *runs)]
    own += [("hermitex.kernels.sums", n) for n in ("Entry", "Arrays")] if program.arrays is not None else []
    if flow:
        own += [("hermitex.solvers.grid", "check_size"), ("hermitex.systems.program", "BlockCode")]
    groups = [[(_ADAPTIVE, "Quadratures")] if averaged else [], own]
    taken = _PAGE_NAMES | set(re.findall(r"^def (\w+)", "\n".join([*helpers, *functions]), re.M))
    more, (quadrature, solving) = flat(*groups, rename=_RENAME, taken=taken)
    imports = _merged([*imports, *more, *_STANDARD])
    rules = _rules(program, "AXES")
    own_page = {
        **dict.fromkeys(PLACES, ""), "start": "{}", "domain": "{}",
        "imports": "\n".join(_merged([*more, *_STANDARD])), "tolerance": repr(how["tolerance"]),
        "method": literal(how.get("method", "newton")), "damping": repr(how.get("damping", 1.0)),
        "quadrature": quadrature, "solving": solving, "rules": rules, "version": __version__,
    }
    own_text = page_of.render(own_page)
    arguments = _arguments(parameters, own_text)
    said = {
        "title": " ".join(system.name.split()) or ("Flow" if flow else "Self-consistent equations"), "formulas": _formulas(system),
        "parameters": _documented(parameters, arguments, system.arrays), "returned": _returned(program, flow=flow),
        "needs": "NumPy and SciPy" if flow or any("scipy" in line for line in imports) else "NumPy", "version": __version__,
    }
    page = {
        **own_page, **{name: prose(text) for name, text in said.items()}, "checked": comment(checked) or "no",
        "imports": "\n".join(imports), "signature": _folded("".join(f"{a}, " for a in arguments.values()), 10),
        "given": _folded(", ".join(f"{_name(n)}:\x00{a}" for n, a in arguments.items()), 15),
        "helpers": "\n\n\n".join(helpers), "functions": "\n\n\n".join(functions),
        "axes": "AXES = (" + " ".join(map(_axis, axes)) + ")\n" if axes else "",
        "code": _code(program) + _later(other), "start": f"{{{_values(start or {})}}}", "domain": _domain(system.domain),
        "reference": _points(points, arguments),
    }
    docs = page_of.docstrings({**page, **said})
    return verified(page_of.render(page), own_text, docs=docs, arguments=arguments)


def _arguments(parameters: Sequence[Symbol], own: str) -> dict[str, str]:
    """{parameter: keyword of `solve` and option of the command line}, which shadow nothing of either."""
    names = Names(_taken(own), first=[p.name for p in parameters], generated=False)
    return {p.name: names(p) for p in parameters}


@lru_cache(maxsize=16)
def _taken(own: str) -> frozenset[str]:
    """The names that stand in `solve`, and the options of the command line."""
    tree = ast.parse(own)
    solve = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "solve")
    used = {n.id for n in ast.walk(solve) if isinstance(n, ast.Name)} | {n.arg for n in ast.walk(solve) if isinstance(n, ast.arg)}
    options = {str(n.value)[2:] for n in ast.walk(tree) if isinstance(n, ast.Constant) and str(n.value).startswith("--")}
    return frozenset(used | options - {"lam"} | {"help"})


def _parts(source: str) -> tuple[list[str], list[str], list[str]]:
    """Import lines, the helpers that are used at any remove, and the functions of a generated module."""
    tree, lines = ast.parse(source), source.split("\n")
    texts: dict[str, str] = {}
    for node in tree.body:
        names = [getattr(node, "name", ""), *(getattr(t, "id", "") for t in getattr(node, "targets", ()))]
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
        texts |= {n: "\n".join(lines[first - 1:node.end_lineno]) for n in names if n}
    imports = [ast.unparse(n) for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)]
    results = [n for n in texts if n.removesuffix(INTEGRATED) in FORMULAS or n.startswith("block_")]
    used, left = set(results), list(results)
    while left:
        found = {n.id for n in ast.walk(ast.parse(texts[left.pop()])) if isinstance(n, ast.Name)} & set(texts) - used
        used |= found
        left += found
    return imports, [texts[n] for n in texts if n in used - set(results)], [texts[n] for n in results]


def _merged(lines: Sequence[str]) -> list[str]:
    """Import lines, one for each module."""
    plain = sorted({line for line in lines if line.startswith("import ") and "numpy" not in line})
    names: dict[str, set[str]] = {}
    for line in lines:
        match = re.match(r"from (\S+) import (.+)", line)
        if match and match[1] != "__future__":
            names.setdefault(match[1], set()).update(n.strip() for n in match[2].split(","))
    whole = {m: f"from {m} import {', '.join(sorted(n))}" for m, n in sorted(names.items())}
    own = [whole.pop(m) for m in list(whole) if not m.startswith("scipy")]
    return [*plain, *own, "", "import numpy as np", *whole.values()]


def _formulas(system: Any) -> str:
    from hermitex.symbolic.parsing import to_text

    def side(v: Any) -> str:
        return f"{to_text(v.lhs)} = {to_text(v.rhs)}" if hasattr(v, "lhs") else to_text(v)

    def line(name: str, v: Any) -> str:
        text = side(v) + f"     (for {name})" if hasattr(v, "lhs") else f"{name} = {side(v)}"
        return textwrap.fill(text, _WIDTH, initial_indent="    ", subsequent_indent="        ", break_long_words=False,
                             break_on_hyphens=False)

    flow = system.is_flow
    parts = ["\n".join(line(f"d{u.name}/dt" if flow else u.name, v) for u, v in system.equations.items())]
    for title, formulas in (("where", system.where), ("and, of the solution,", system.observables)):
        if formulas:
            parts += [title, "\n".join(line(k.name, v) for k, v in formulas.items())]
    parts.append("E(f, x, ...) is the mean of f over independent standard normals x, ...")
    if not flow:
        parts.append("The equations fall into blocks, solved in this order:\n\n" + "\n".join(
            f"    {k}. {b}" for k, b in enumerate(system.blocks, start=1)))
    if system.source:
        parts.append(_source(system.source))
    return "\n\n".join(parts)


def _source(key: str) -> str:
    from hermitex.show.cite import bibtex

    try:
        return "Source:\n\n" + textwrap.indent(bibtex([key]).strip(), "    ")
    except UnknownName:
        return f"Source: {key}"


def _parameters(system: Any) -> tuple[Symbol, ...]:
    """The parameters in the order of the program's names, arrays last: the file's command line pairs the two by their places."""
    place = {name: i for i, name in enumerate(system.compile().names)}
    return tuple(sorted(system.parameters or (), key=lambda p: place.get(p.name, len(place))))


def _documented(parameters: Sequence[Symbol], arguments: Mapping[str, str], arrays: Mapping[Symbol, int]) -> str:
    inside = {a.name: depth for a, depth in arrays.items()}
    width = max([len(a) for a in arguments.values()] + [9])

    def line(p: Symbol) -> str:
        kind = next((f", {k}" for k in ("positive", "nonnegative", "negative") if getattr(p, f"is_{k}")), "")
        if p.name in inside:
            depth = f"{inside[p.name]} dimension{'s'*(inside[p.name] > 1)}"
            return f"    {arguments[p.name]:<{width}} : array of {depth}, summed over{kind}"
        return f"    {arguments[p.name]:<{width}} : number or array{kind}"

    return "\n".join(map(line, parameters))


def _returned(program: Any, *, flow: bool = False) -> str:
    if flow:
        names = ", ".join(n for n in (TIME, *program.unknowns, *program.observables) if n != TIME)
        return textwrap.fill(f"dict: t, {names}, and error (by which two integrations differ, relative), quadrature_error, "
                             "converged. Parameters broadcast; the times are the last axis.", _WIDTH, initial_indent="    ",
                             subsequent_indent="    ")
    text = f"dict: the unknowns {', '.join(program.unknowns)}"
    text += f"; {', '.join(program.observables)}" if program.observables else ""
    text += ("; residual (the largest |x - rhs|/|x|), stability (the spectral radius of the map x -> rhs(x); iteration leaves a "
             "solution where it exceeds 1; nan where an equation is implicit), quadrature_error, converged. Arrays have the "
             "common shape of the parameters, which broadcast; numbers give numbers.")
    return textwrap.fill(text, _WIDTH, initial_indent="    ", subsequent_indent="    ")


def _tuple(names: Iterable[Any]) -> str:
    items = [literal(n) if isinstance(n, str) else repr(n) for n in names]
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


def _axis(a: Any) -> str:
    return f"Axis({literal(a.identifier)}, {a.depth}{', True' if a.summed else ', False, True' if a.counting else ''}),"


def _code(program: Any) -> str:
    def line(b: Any) -> str:
        fields = [_tuple(b.unknowns), f'"{b.kind}"']
        fields += [f"{n}={_tuple(getattr(b, n))}" for n in ("torn", "members", "positive", "explicit") if getattr(b, n)]
        whole = f"        Block({', '.join(fields)}),\n"
        return whole if len(whole) <= _WIDTH else whole.replace(", torn=", ",\n              torn=")

    blocks = "".join(map(line, program.blocks))
    notes = f"    notes=(\n{''.join(f'        {literal(n)},' + chr(10) for n in program.notes)}    ),\n" if program.notes else ""
    if program.arrays is not None:
        entries = "".join(f"        Entry({literal(e.letter)}, {literal(e.array)}, {_tuple(e.places)}, {_tuple(e.indices)}, "
                          f"{e.first}),\n" for e in program.arrays.entries)
        notes += f"    arrays=Arrays((\n{entries}    )),\n"
    if program.positive:
        notes += f"    positive={_tuple(program.positive)},\n"
    if program.domain:
        notes += f"    domain={_domain(program.domain)},\n"
    if program.cancels:
        notes += "    cancels=True,\n"
    if program.lawful:
        notes += "    lawful=True,\n"
    if program.start:
        notes += f"    start={{{_values(program.start)}}},\n"
    return (f"    parameters={_tuple(program.parameters)},\n    unknowns={_tuple(program.unknowns)},\n"
            f"    observables={_tuple(program.observables)},\n"
            f"    implicit={_tuple(sorted(program.implicit))},\n    blocks=(\n{blocks}    ),\n{notes}")


def _rules(program: Any, axes: str) -> str:
    grid = f", frozenset({sorted(program.grid)})" if program.grid else ""
    return f"lambda: Quadratures({axes}, {program.kinked}{grid})" if program.axes else "Exact"


def _later(other: Any) -> str:
    """The second set of formulas, for points where the terms of closed forms cancel."""
    if other is None:
        return ""
    axes = f"({' '.join(map(_axis, other.axes))})"
    fields = f"    functions=globals(),\n{_code(other)}    quadratures={_rules(other, axes)},\n    behind={literal(INTEGRATED)},\n"
    return f"    later=lambda: Code(\n{textwrap.indent(fields, '    ')}    ),\n"


def _apart(source: str) -> str:
    """The functions of a module under names of their own."""
    text = re.sub(r"(?m)^def (\w+)\(s, quad\)", rf"def \1{INTEGRATED}(s, quad)", source)
    return re.sub(r"\b(prox|sum)_(\d+)\b(?=\(|, )", lambda m: f"{m[1]}_{int(m[2]) + _OTHERS}", text)


def _domain(domain: Mapping[str, tuple[float, float]]) -> str:
    return "{" + ", ".join(f"{literal(u)}: ({_number(a)}, {_number(b)})" for u, (a, b) in domain.items()) + "}"


def _points(points: Sequence[Point], arguments: Mapping[str, str]) -> str:
    return "".join(f"    ({{{_values({arguments.get(n, n): v for n, v in given.items()})}}},\n     {{{_values(values)}}}),\n"
                   for given, values in points)


def _values(values: Mapping[str, float]) -> str:
    return _folded(", ".join(f"{_name(n)}:\x00{_number(v)}" for n, v in values.items()), 6)


def _name(name: str) -> str:
    """A name as a literal that is not folded at its blanks."""
    return literal(name).replace(" ", "\x00")


def _folded(text: str, indent: int) -> str:
    """A list of items, folded at its blanks (a zero byte stands for a blank where it must not be)."""
    if not text:
        return text
    folded = textwrap.fill(text, _WIDTH - indent - 4, break_long_words=False, break_on_hyphens=False,
                           subsequent_indent=" "*indent)
    return folded.replace("\x00", " ") + (" " if text.endswith(" ") else "")


def _number(v: Any) -> str:
    if isinstance(v, list):
        return f"[{', '.join(map(_number, v))}]".replace(" ", "\x00")
    return repr(v) if np.isfinite(v) else f"float({str(v)!r})"
