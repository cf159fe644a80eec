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
from pathlib import Path
from typing import Any, NoReturn

from hermitex.errors import BadInput, HermitexError, UnknownName

SECTIONS = ("symbols", "laws", "functions", "structure", "where", "equations", "flow", "observables", "domain", "start",
            "parameters", "arrays", "grid", "sweep")
KEYS = ("theory", "name", "source")
_SWEEP = {"chunk": 50, "tolerance": 1e-11, "method": "newton", "damping": 1.0}
_LARGEST, _PARTS = 1_000_000, 20
_DOTTED = re.compile(rf"(?<![\w.-])[\w-]++(?:\s*\.\s*[\w-]++){{{_PARTS}}}|(?:[\"'][^\"'\n]*+[\"']\s*\.\s*){{{_PARTS}}}")


@dataclass(frozen=True)
class Spec:
    """What a spec says: the system or theory, fixed numbers by parameter, the grid (first key: the continuation line)."""

    system: Any  # a System, or a theory
    parameters: Mapping[str, float] = field(default_factory=dict)
    grid: Mapping[str, list[float]] = field(default_factory=dict)
    chunk: int = 50
    tolerance: float = 1e-11
    how: Mapping[str, Any] = field(default_factory=dict)  # method and damping, where they are said
    arrays: Mapping[str, Any] = field(default_factory=dict)  # that are summed over

    @property
    def formulas(self) -> Any:
        """The System that is solved."""
        return getattr(self.system, "system", self.system)

    def points(self) -> list[dict[str, float]]:
        """A few points of the grid with the fixed numbers: both ends of the line, for a self-test."""
        first, last = ({n: v[i] for n, v in self.grid.items()} for i in (0, -1))
        found = [{**self.parameters, **self.arrays, **p} for p in ([first] if first == last else [first, last])]
        return [self._completed(p) for p in found] if is_theory(self.system) else found

    def _completed(self, numbers: Mapping[str, float]) -> dict[str, float]:
        """A theory's numbers as the parameters of its system."""
        made = self.system.complete(self.system.given(numbers))
        wanted = {p.name for p in self.formulas.parameters}
        inside = {a.name for a in self.formulas.arrays}
        # 1e100 stands for infinity in formulas of 1/n and 1/p
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
    """The spec that a path to a TOML file, or FILE.py:NAME, stands for.

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
    try:
        if path.exists() and not path.is_file():
            raise BadInput(f"{path} is {'a folder' if path.is_dir() else 'no file but a device or a pipe'}; a spec is a file")
        if path.exists() and path.stat().st_size > _LARGEST:
            raise BadInput(f"{path} has {path.stat().st_size:,} bytes; a spec has {_LARGEST:,} at most")
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
        raise BadInput(f"{where} is not TOML: {error}") from None
    except RecursionError:
        raise BadInput(f"{where} is nested too deeply; a spec has sections and keys") from None
    except ValueError as error:  # a whole number of thousands of digits
        raise BadInput(f"{where} is not TOML: {str(error).partition(';')[0]}") from None
    return _SpecReader(where, table).spec()


class _SpecReader:
    """Reads the sections of one spec; every complaint goes through `fail`, which says where."""

    def __init__(self, where: str, table: dict[str, Any]) -> None:
        self.where, self.table, self.folder = where, table, Path(where).parent
        for key, value in table.items():
            if key in SECTIONS:
                if not isinstance(value, dict):
                    self.fail(key, None, f"it is a section; write [{key}] on a line of its own")
            elif key not in KEYS:
                raise UnknownSection(where, key)
            elif not isinstance(value, str):
                self.fail(None, key, "it is a text in quotes")

    def fail(self, section: str | None, key: str | None, why: object) -> NoReturn:
        place = " ".join(filter(None, (f"[{section}]" if section else "", key and key[:60])))
        raise BadInput(": ".join(filter(None, (self.where, place, str(why)))))

    def section(self, name: str) -> dict[str, Any]:
        return dict(self.table.get(name, {}))

    def spec(self) -> Spec:
        from hermitex.solvers.grid import check_size
        from hermitex.systems.names import by_name
        from hermitex.systems.trajectory import OF_A_FLOW

        options = {**_SWEEP, **({"tolerance": OF_A_FLOW} if "flow" in self.table else {}), **self._options()}
        system = self._theory(self.table["theory"]) if "theory" in self.table else self._system()
        grid = {k: self._grid(k, v) for k, v in self.section("grid").items()}
        numbers = {k: self._number("parameters", k, v) for k, v in self.section("parameters").items()}
        known = set(system.letters()) if is_theory(system) else {p.name for p in system.parameters}
        known |= {"t"} if "flow" in self.table else set()
        try:
            by_name("[parameters] and [grid]", numbers, grid, parameters=known)
            check_size("[grid]", {k: len(v) for k, v in grid.items()})
        except BadInput as error:
            self.fail(None, None, error)
        known |= {"lam"} if "lamda" in known else set()
        for name in ("parameters", "grid"):
            for key in self.section(name):
                if key not in known:
                    self.fail(name, key, UnknownName(key, known, "parameter"))
        arrays = self._arrays(system)
        how: dict[str, Any] = {k: options[k] for k in ("method", "damping") if k in self.section("sweep")}
        return Spec(system, numbers, grid, int(options["chunk"]), float(options["tolerance"]), how, arrays)

    def _arrays(self, system: Any) -> dict[str, Any]:
        """The arrays that are summed over, each under [arrays] and nowhere else."""
        from hermitex.face.spec_arrays import read_array

        inside = list(system.arrays) if is_theory(system) else [a.name for a in system.arrays]
        for section in ("parameters", "grid"):
            for key in self.section(section):
                if key in inside:
                    self.fail(section, key, "it is an array that is summed over; it stands under [arrays]")
        found = {}
        for key, value in self.section("arrays").items():
            if key not in inside:
                why = f"; arrays are those that a sum is taken over, {', '.join(sorted(inside))}" if inside else ""
                said = f"{system.name} takes no such array" if is_theory(system) else "no sum over it stands in the formulas"
                self.fail("arrays", key, said + why)
            try:
                found[key] = read_array(value, self.folder)
            except HermitexError as error:
                self.fail("arrays", key, error)
        return found

    # -- the system --------------------------------------------------------------------------------------------------
    def _theory(self, name: str) -> Any:
        import hermitex.theories as theories

        known: Mapping[str, Any] = getattr(theories, "THEORIES", {})
        for section in ("symbols", "laws", "where", "equations", "flow", "observables", "domain", "start"):
            if section in self.table:
                self.fail(section, None, "a theory brings its own formulas; leave the section out, or the key theory")
        if name not in known:
            listed = f"known: {', '.join(sorted(known))}" if known else "this version knows none; write [equations]"
            self.fail(None, "theory", f"unknown theory {name[:60]!r}; {listed}")
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
            return make(**given)
        except HermitexError as error:
            self.fail(None, None, error)
        except (TypeError, ValueError) as error:
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
        more = {name: self._of_unknowns(name, equations) for name in ("domain", "start")}
        try:
            system = (System if kind == "equations" else Flow)(
                lines, where=read["where"], observables=read["observables"], source=self.table.get("source", ""),
                name=self.table.get("name", ""), **more)
        except HermitexError as error:
            self.fail(kind, None, error)
        functions = {k: self._string("functions", k, v) for k, v in self.section("functions").items()}
        for key, text in functions.items():
            try:
                system = system.substitute(**{key: text})
            except HermitexError as error:
                self.fail("functions", key, error)
        return system

    def _of_unknowns(self, section: str, equations: Mapping[str, Any]) -> dict[str, Any]:
        """[domain] q = "0 < q < 1" and [start] q = 0.9, for unknowns of the spec; [start] Q = [[1, 0.5], [0.5, 1]] of a matrix."""
        from hermitex.systems.domain import domains

        found: dict[str, Any] = {}
        matrices = {k: self._rows(k, v) for k, v in equations.items() if isinstance(v, list)}
        names = [*(k for k in equations if k not in matrices), *_entry_names(matrices)]
        for key, value in self.section(section).items():
            if section == "start" and key in matrices:
                found[key] = self._start_of_matrix(key, value, matrices[key])
                continue
            if key not in names:
                self.fail(section, key, UnknownName(key, [*names, *matrices], "unknown"))
            if section == "start":
                found[key] = self._number(section, key, value)
                continue
            try:
                found |= domains("spec", {key: self._string(section, key, value)}, [key])
            except HermitexError as error:
                self.fail(section, key, str(error).removeprefix("spec: "))
        return found

    def _start_of_matrix(self, key: str, value: Any, rows: list[list[Any]]) -> list[list[float]]:
        fits = isinstance(value, list) and all(isinstance(r, list) and len(r) == len(rows[0]) for r in value)
        if not fits or len(value) != len(rows):
            self.fail("start", key, f"{key} is a matrix; give {len(rows)} rows of {len(rows[0])} numbers, "
                                    f"{[[1 if i == j else 0 for j in range(len(rows[0]))] for i in range(len(rows))]}")
        return [[self._number("start", key, v) for v in row] for row in value]

    def _letters(self) -> dict[str, Any]:
        """Every letter of the formulas: those declared, the field's own, and the names that the spec itself gives."""
        from hermitex import symbols
        from hermitex.symbolic.text.names import declared

        letters: dict[str, Any] = {n: s for n, s in symbols.FIELD.items() if not symbols.is_normal_name(n)}
        given: dict[str, tuple[str, Any]] = {}
        given |= {"t": ("flow", "real")} if "flow" in self.table else {}
        for section in ("where", "equations", "flow", "observables", "parameters", "grid"):
            given |= {k: (section, letters.get(k, "real")) for k in self.section(section)}
        given |= {k: ("functions", "function") for k in self.section("functions")}
        given |= {k: ("symbols", v) for k, v in self.section("symbols").items()}
        for section in ("equations", "flow"):  # Q = [["..", ".."], ["..", ".."]]: a matrix
            matrices = {k: self._rows(k, v) for k, v in self.section(section).items() if isinstance(v, list)}
            given |= {name: given[key] for name, key in _entry_names(matrices).items()}
        for key, (section, kind) in given.items():
            if section == "symbols" and not isinstance(kind, str):
                self.fail(section, key, 'a letter is declared by a word: "real", "positive", "nonnegative", "function"')
            try:
                letters |= declared({key: kind})
            except HermitexError as error:
                self.fail(section, key, error)
        return letters | self._laws(letters)

    def _laws(self, letters: dict[str, Any]) -> dict[str, Any]:
        """The random variables, whose parameters are formulas of the letters."""
        from hermitex import symbols
        from hermitex.symbolic.text.laws import law

        found = {}
        for key, text in self.section("laws").items():
            if symbols.is_normal_name(key):
                self.fail("laws", key, f"{key} is a standard normal; give the variable another name")
            others = [s for s in SECTIONS if s not in ("laws", "structure", "domain", "start", "sweep")]
            if clash := [s for s in others if key in self.section(s)]:
                self.fail("laws", key, f"it stands under [{clash[0]}] too; give one of them another name")
            try:
                found[key] = law(key, text, letters)
            except HermitexError as error:
                self.fail("laws", key, re.sub(r"symbols=\{'(\w+)': 'real'\}", r'[symbols] \1 = "real"', str(error)))
        return found

    def _symbol(self, section: str, key: str) -> Any:
        from sympy import Symbol

        if not isinstance(self.letters[key], Symbol):
            self.fail(section, key, f"{key} is declared as a function; a name on the left is a number")
        return self.letters[key]

    def _string(self, section: str, key: str, value: Any) -> str:
        if not isinstance(value, str):
            self.fail(section, key, "a formula is a text in quotes")
        return value

    def _formula(self, section: str, key: str, value: Any) -> Any:
        from hermitex.symbolic.parsing import parse

        if isinstance(value, int | float) and not isinstance(value, bool):
            value = repr(value)
        text = self._string(section, key, value)
        try:
            return parse(text, symbols=self.letters)
        except HermitexError as error:
            # In a spec a letter is declared by a line of the section [symbols].
            self.fail(section, key, re.sub(r"symbols=\{'(\w+)': 'real'\}", r'[symbols] \1 = "real"', str(error)))

    def _rows(self, key: str, value: list[Any]) -> list[list[Any]]:
        good = all(isinstance(row, list) and row and len(row) == len(value[0]) for row in value)
        if not good or not value or max(len(value), len(value[0])) > 9:
            self.fail("equations", key, 'a matrix is a list of rows of equal length, [["a", "b"], ["b", "c"]], 9 by 9 at most')
        return value

    def _equation(self, kind: str, key: str, value: Any) -> Any:
        from sympy import Eq

        if isinstance(value, list):
            return [[self._formula(kind, key, v) for v in row] for row in self._rows(key, value)]
        sides = split_equation(value) if isinstance(value, str) and kind == "equations" else None
        if sides is None:
            return self._formula(kind, key, value)
        left, right = (self._formula(kind, key, side) for side in sides)
        made = Eq(left, right, evaluate=False)
        if left == right:
            self.fail("equations", key, "both sides are the same")
        return made

    # -- numbers -----------------------------------------------------------------------------------------------------
    def _number(self, section: str, key: str, value: Any) -> float:
        if isinstance(value, str):
            values = self._range(section, key, value)
            if len(values) == 1:
                return values[0]
            self.fail(section, key, "it has several values; put it into [grid]")
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.fail(section, key, "a number is needed; several values go into [grid]")
        if value != value:
            self.fail(section, key, "NaN is not a value")
        try:
            return float(value)
        except OverflowError:
            self.fail(section, key, "it is too large for a number in double precision")

    def _range(self, section: str, key: str, text: str) -> list[float]:
        from hermitex.face.output import grid

        try:
            return [float(v) for v in grid(text)]
        except HermitexError as error:
            self.fail(section, key, error)
        except OverflowError:
            self.fail(section, key, "it is too large for a number in double precision")

    def _grid(self, key: str, value: Any) -> list[float]:
        if isinstance(value, str):
            return self._range("grid", key, value)
        values = value if isinstance(value, list) else [value]
        if not values:
            self.fail("grid", key, "it is empty")
        return [self._number("grid", key, v) for v in values]

    def _options(self) -> dict[str, Any]:
        from hermitex.systems.iterate import METHODS

        options = self.section("sweep")
        for key, value in options.items():
            if key not in _SWEEP:
                self.fail("sweep", key, UnknownName(key, _SWEEP, "option"))
            number = isinstance(value, int | float) and not isinstance(value, bool) and value > 0
            if key == "chunk" and not (number and isinstance(value, int)):
                self.fail("sweep", key, f"a whole number of points, 1 or more, not {value!r}")
            if key in ("method", "damping") and "flow" in self.table:
                self.fail("sweep", key, "a flow is integrated over time; it is for [equations]")
            if key == "damping" and not (number and value <= 1):
                self.fail("sweep", key, f"the weight of the new value, above 0 and at most 1, not {value!r}")
            if key == "damping" and value != 1 and options.get("method") != "iterate":
                self.fail("sweep", key, 'it is of an iteration; add method = "iterate"')
            if key == "method" and value not in METHODS:
                self.fail("sweep", key, UnknownName(str(value), METHODS, "method"))
            if key == "tolerance" and not (number and value < 1):
                self.fail("sweep", key, f"a number between 0 and 1, not {value!r}")
        return options


def _entry_names(matrices: Mapping[str, list[list[Any]]]) -> dict[str, str]:
    """{Q11: Q, Q12: Q, ...} of the matrices of a spec."""
    return {f"{key}{i + 1}{j + 1}": key for key, rows in matrices.items() for i, row in enumerate(rows) for j in range(len(row))}


class UnknownSection(BadInput):
    """A section or key that no spec has."""

    def __init__(self, where: str, key: str) -> None:
        near = UnknownName(key, (*SECTIONS, *KEYS)).close_matches
        meant = f"; did you mean {' or '.join(near)}?" if near else ""
        super().__init__(f"{where}: [{key[:60]}]: unknown section {key[:60]!r}{meant}; there are "
                         f"{', '.join(SECTIONS)}, and the keys "
                         f"{', '.join(KEYS)}")


def split_equation(text: str) -> tuple[str, str] | None:
    """The two sides of an implicit equation, `Eq(lhs, rhs)` or `lhs = rhs`; None for a right-hand side alone.

    Examples
    --------
    >>> split_equation("Eq(m + q, E(z**2, z))"), split_equation("a*b = c"), split_equation("z1 + E(z1, cov={})")
    (('m + q', 'E(z**2, z)'), ('a*b', 'c'), None)
    """
    depth, equals, commas = 0, [], []
    stripped = text.strip()
    closed_early = False
    for i, c in enumerate(stripped):
        depth += (c in "([{") - (c in ")]}")
        closed_early |= depth == 0 and c == ")" and i < len(stripped) - 1
        if c == "=" and depth == 0 and stripped[i - 1:i] not in ("<", ">", "!", "=") and stripped[i + 1:i + 2] != "=":
            equals.append(i)
        if c == "," and depth == 1:
            commas.append(i)
    if len(equals) == 1:
        return stripped[:equals[0]].strip(), stripped[equals[0] + 1:].strip()
    if stripped.startswith("Eq(") and stripped.endswith(")") and not closed_early and len(commas) == 1:
        return stripped[3:commas[0]].strip(), stripped[commas[0] + 1:-1].strip()
    return None
