"""SPEC.toml -> a System, its numbers and its grid.

    [symbols] V = "positive"     [equations] V = "1/(lamda + Vhat)"     [grid] alpha = "0.2:3:50"
    theory = "one-step"          [functions] sigma = "tanh", target = "sin"     [structure] rows = "gaussian"

The formulas are read by `hermitex.parse`; nothing in a spec is executed. Only FILE.py:NAME runs a user's code. Every
mistake is one line that names the file, the section and the key.
"""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

from hermitex.errors import BadInput, HermitexError, UnknownName, both_ends
from hermitex.face.spec_lines import SWEEP, Lines, entry_names
from hermitex.show.files import check_source

# bytes of a file that somebody wrote; parts of a dotted key, which sections and names have few of
_LARGEST, _PARTS, TIME = 1_000_000, 20, "t"
_DOTTED = re.compile(rf"(?<![\w.-])[\w-]++(?:\s*\.\s*[\w-]++){{{_PARTS}}}|(?:[\"'][^\"'\n]*+[\"']\s*\.\s*){{{_PARTS}}}")


@dataclass(frozen=True)
class Spec:
    """What a spec says: the system or theory, fixed numbers by parameter, the grid (first key: the continuation line)."""

    system: Any  # a System, or a theory
    parameters: Mapping[str, float] = field(default_factory=dict)
    grid: Mapping[str, list[float]] = field(default_factory=dict)
    chunk: int = 50
    tolerance: float | None = 1e-11  # None: the theory's own
    how: Mapping[str, Any] = field(default_factory=dict)  # method and damping, if they are given
    arrays: Mapping[str, Any] = field(default_factory=dict)  # that are summed over

    @property
    def formulas(self) -> Any:
        """The System or Flow that is solved; of a theory that has neither, itself."""
        return getattr(self.system, "solved", self.system)

    @property
    def is_path(self) -> bool:
        """True if it is a theory that is integrated in time."""
        return is_theory(self.system) and self.system.axis == TIME

    def points(self) -> list[dict[str, float]]:
        """A few points of the grid with the fixed numbers: both ends of the line, for a self-test; of a path its end."""
        first, last = ({n: v[i] for n, v in self.grid.items()} for i in (0, -1))
        found = [{**self.parameters, **self.arrays, **p} for p in ([last] if first == last or self.is_path else [first, last])]
        return [self._completed(p) for p in found] if is_theory(self.system) else found

    def start(self) -> dict[str, float] | None:
        """The start of a theory that is integrated in time."""
        if not (self.is_path and self.complete()):
            return None
        made = self.system.by_equations(self.system.complete(self.system.given({**self.parameters, **self._last})))
        return {n.removeprefix("start_"): float(v) for n, v in made.items() if n.startswith("start_")}

    @property
    def _last(self) -> dict[str, float]:
        return {n: v[-1] for n, v in self.grid.items()}

    def _completed(self, numbers: Mapping[str, float]) -> dict[str, float]:
        """A theory's numbers as the parameters of its system."""
        made = self.system.complete(self.system.given(numbers))
        if self.formulas is self.system:
            return dict(made)
        made = self.system.by_equations(made)
        wanted = {*(p.name for p in self.formulas.parameters), *([TIME] if self.is_path else [])}
        inside = {a.name for a in self.formulas.arrays}
        # 1e100 replaces infinity in formulas of 1/n and 1/p
        return {k: v if k in inside else min(float(v), 1e100) for k, v in {**made, "lamda": made.get("lam", 0.0)}.items()
                if k in wanted}

    def complete(self) -> bool:
        """True if every parameter has a number."""
        from hermitex.show.columns import ridge

        if is_theory(self.system):
            needed = [n for n, default in self.system.letters().items() if default is self.system.REQUIRED]
            return {*self.parameters, *self.arrays, *self.grid} >= set(needed)
        program = self.system.compile()
        return {ridge(n, program.parameters) for n in (*self.parameters, *self.arrays, *self.grid)} >= set(program.names)


def is_theory(system: Any) -> bool:
    """True for a theory, which has letters of its own and completes its numbers."""
    return hasattr(system, "letters") and hasattr(system, "complete")


def load(text: str) -> Spec:
    """Read the spec of a TOML file, or of FILE.py:NAME.

    Raises
    ------
    BadInput : one line that says where the mistake is.
    """
    path, colon, name = text.rpartition(":")
    if colon and path.endswith(".py"):
        from hermitex.face.userfile import system_of

        return Spec(system_of(Path(path), name))
    if text.endswith(".py"):
        raise BadInput(f"{text}: say which object of the file is meant, {text}:NAME")
    found = from_toml(_text(Path(text)), where=text)
    try:
        if not found.is_path:
            getattr(found.formulas, "compile", bool)()  # what is wrong with the formulas together shows here
    except HermitexError as error:
        raise BadInput(f"{text}: [{'flow' if found.formulas.is_flow else 'equations'}]: {error}") from error
    if is_theory(found.system) and found.complete():
        try:
            found.points()
        except HermitexError as error:
            raise BadInput(f"{text}: [parameters]: {error}") from error
    return found


def _text(path: Path) -> str:
    """The text of a file; a device, a pipe or a file that is too large for a spec is refused before it is read."""
    check_source(path, _LARGEST)
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path} is not a text in UTF-8") from None


def from_toml(text: str, where: str = "spec") -> Spec:
    """The spec that a TOML text writes.

    Examples
    --------
    >>> spec = from_toml('''
    ... [equations]
    ... Vhat = "alpha/(1 + V)"
    ... "V" = "V*(lam + Vhat) = 1"
    ... [symbols]
    ... lam = "positive"
    ... [parameters]
    ... lam = 0.1
    ... [grid]
    ... alpha = "1:2:2"
    ... ''')
    >>> spec.system.equations
    {Vhat: alpha/(V + 1), V: Eq(V*(Vhat + lam), 1)}
    >>> spec.grid, spec.parameters
    ({'alpha': [1.0, 2.0]}, {'lam': 0.1})
    """
    if long := _DOTTED.search(text):  # tomllib takes a time quadratic in the number of parts
        raise BadInput(f"{where}: a key of more than {_PARTS} parts, {long[0][:20]}...; a spec has sections and keys")
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{where} is not TOML: {error}{_unquoted(text, str(error))}") from None
    except RecursionError:
        raise BadInput(f"{where} is nested too deeply; a spec has sections and keys") from None
    except ValueError as error:  # a whole number of thousands of digits
        raise BadInput(f"{where} is not TOML: {str(error).partition(';')[0]}") from None
    return _SpecReader(where, table).spec()


def _unquoted(text: str, error: str) -> str:
    """What to write, where the line that an error names holds a formula without its quotes."""
    place = re.search(r"at line (\d+)", error)
    line = text.splitlines()[int(place[1]) - 1:][:1] if place else []
    found = re.fullmatch(r"\s*([A-Za-z_]\w*)\s*=\s*([^\"'\[\]{}#]+?)\s*(#.*)?", line[0]) if line else None
    return f'; a formula is a text in quotes, {found[1]} = "{both_ends(found[2], 60)}"' if found else ""


class _SpecReader(Lines):
    """Makes of the sections of one spec its system, its numbers and its grid."""

    def spec(self) -> Spec:
        from hermitex.solvers.sweep_grid import check_size
        from hermitex.systems.names import by_name
        from hermitex.systems.trajectory import OF_A_FLOW  # SciPy comes with it

        options = {**SWEEP, **({"tolerance": OF_A_FLOW} if "flow" in self.table else {}), **self._options()}
        system = self._theory(self.table["theory"]) if "theory" in self.table else self._system()
        grid = {k: self._grid(k, v) for k, v in self.section("grid").items()}
        numbers = {k: self._number("parameters", k, v) for k, v in self.section("parameters").items()}
        known = set(system.letters()) if is_theory(system) else {p.name for p in system.parameters}
        known |= {TIME} if "flow" in self.table else set()
        with self.at(None, None):
            by_name("[parameters] and [grid]", numbers, grid, parameters=known)
            check_size("[grid]", {k: len(v) for k, v in grid.items()})
        known |= {"lam"} if "lamda" in known else set()
        for name, lines in (("parameters", {k: [v] for k, v in numbers.items()}), ("grid", grid)):
            for key, line in lines.items():
                if key not in known:
                    self.fail(name, key, UnknownName(key, known, "parameter"))
                if not (is_theory(system) or all(map(isfinite, line))):
                    self.fail(name, key, "infinity is not a value; every parameter is finite")
        arrays = self._arrays(system)
        how: dict[str, Any] = {k: options[k] for k in ("method", "damping") if k in self.section("sweep")}
        own = is_theory(system) and system.axis == TIME and "tolerance" not in self.section("sweep")
        return Spec(system, numbers, grid, int(options["chunk"]), None if own else float(options["tolerance"]), how, arrays)

    def _arrays(self, system: Any) -> dict[str, Any]:
        """The arrays that are summed over, each under [arrays] and nowhere else."""
        from hermitex.face.spec_arrays import read_array

        inside = list(system.arrays) if is_theory(system) else [a.name for a in system.arrays]
        for section in ("parameters", "grid"):
            for key in self.section(section):
                if key in inside:
                    self.fail(section, key, "the formulas sum over this array; put it under [arrays]")
        found = {}
        for key, value in self.section("arrays").items():
            if key not in inside:
                why = f"; the formulas sum over {', '.join(sorted(inside))}" if inside else ""
                said = f"{system.name} takes no such array" if is_theory(system) else "the formulas contain no sum over it"
                self.fail("arrays", key, said + why)
            with self.at("arrays", key):
                found[key] = read_array(value, self.folder)
        return found

    # -- the system --------------------------------------------------------------------------------------------------
    def _theory(self, name: str) -> Any:
        import hermitex.theories as theories

        known = theories.THEORIES
        for section in ("symbols", "laws", "where", "equations", "flow", "observables", "domain", "start"):
            if section in self.table:
                self.fail(section, None, "a theory brings its own formulas; leave the section out, or the key theory")
        if name not in known:
            unknown = UnknownName(name[:60], known, "theory")
            self.fail(None, "theory", unknown if unknown.close_matches else f"{unknown}; known: {', '.join(sorted(known))}")
        make = known[name]
        takes = list(inspect.signature(make).parameters)
        given: dict[str, Any] = {}
        for section in ("functions", "structure"):
            for key, value in self.section(section).items():
                argument = "g" if key == "target" and "g" in takes else key
                if argument not in takes:
                    self.fail(section, key, UnknownName(key, [*takes, "target"], f"argument of {name}"))
                if argument in given:
                    self.fail(section, key, f"{'target and g are one argument' if argument == 'g' else key + ' is given twice'}; "
                                            "give it once")
                given[argument] = self._string(section, key, value) if section == "functions" else value
        for argument, p in inspect.signature(make).parameters.items():
            if p.default is p.empty and argument not in given:
                self.fail("functions", {"g": "target"}.get(argument, argument), f"{name} needs it, a function in quotes")
        try:
            with self.at(None, None):
                return make(**given)
        except (TypeError, ValueError) as error:
            if isinstance(error, HermitexError):
                raise
            self.fail("structure", None, f"{name} cannot be made of this ({error})")

    def _system(self) -> Any:
        from hermitex.systems.flow import Flow
        from hermitex.systems.system import System

        kind = "flow" if "flow" in self.table else "equations"
        if "flow" in self.table and "equations" in self.table:
            self.fail("flow", None, "a spec has [equations] or the rates of a [flow], not both")
        equations = self.section(kind)
        if not equations:
            self.fail(kind, None, "a spec has a theory or at least one equation, V = \"1/(lamda + Vhat)\"")
        self.letters = self._letters()
        read = {name: {self._symbol(name, k): self._formula(name, k, v) for k, v in self.section(name).items()}
                for name in ("where", "observables")}
        lines = {self._symbol(kind, k): self._equation(kind, k, v) for k, v in equations.items()}
        self._all_laws_used()
        more: dict[str, Any] = {name: self._of_unknowns(name, equations) for name in ("domain", "start")}
        with self.at(kind, None):
            system = (System if kind == "equations" else Flow)(
                lines, where=read["where"], observables=read["observables"], source=self.table.get("source", ""),
                name=self.table.get("name", ""), **more)
        functions = {k: self._string("functions", k, v) for k, v in self.section("functions").items()}
        for key, text in functions.items():
            with self.at("functions", key):
                system = system.substitute(**{key: text})
        return system

    def _of_unknowns(self, section: str, equations: Mapping[str, Any]) -> dict[str, Any]:
        """[domain] q = "0 < q < 1" and [start] q = 0.9, for unknowns of the spec; [start] Q = [[1, 0.5], [0.5, 1]] of a matrix."""
        from hermitex.systems.domain import domains
        from hermitex.systems.moving_ends import moving_ends

        found: dict[str, Any] = {}
        matrices = {k: self._rows(k, v) for k, v in equations.items() if isinstance(v, list)}
        names = [*(k for k in equations if k not in matrices), *entry_names(matrices)]
        for key, value in self.section(section).items():
            if section == "start" and key in matrices:
                found[key] = self._start_of_matrix(key, value, matrices[key])
                continue
            if key not in names:
                self.fail(section, key, UnknownName(key, [*names, *matrices], "unknown"))
            if section == "start":
                found[key] = self._number(section, key, value)
                continue
            text = self._string(section, key, value, 'an open interval is a text, "0 < q < 1"')
            with self.at(section, key):
                found |= {key: text} if moving_ends({key: text}, self.letters) else domains("spec", {key: text}, [key])
        return found

    def _start_of_matrix(self, key: str, value: Any, rows: list[list[Any]]) -> list[list[float]]:
        fits = isinstance(value, list) and all(isinstance(r, list) and len(r) == len(rows[0]) for r in value)
        if not fits or len(value) != len(rows):
            self.fail("start", key, f"{key} is a matrix; give {len(rows)} rows of {len(rows[0])} numbers, "
                                    f"{[[1 if i == j else 0 for j in range(len(rows[0]))] for i in range(len(rows))]}")
        return [[self._number("start", key, v) for v in row] for row in value]
