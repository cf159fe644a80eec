"""The lines of a spec as letters, formulas, laws and numbers; every complaint names the file, the section and the key."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from hermitex.errors import BadInput, HermitexError, UnknownName
from hermitex.symbolic.text.lexical import split_equation

SECTIONS = ("symbols", "laws", "functions", "structure", "where", "equations", "flow", "observables", "domain", "start",
            "parameters", "arrays", "grid", "sweep")
KEYS = ("theory", "name", "source")
SWEEP = {"chunk": 50, "tolerance": 1e-11, "method": "newton", "damping": 1.0}


class Lines:
    """The sections of one spec and the readers of their lines; every complaint goes through `fail`, which says where."""

    letters: dict[str, Any]

    def __init__(self, where: str, table: dict[str, Any]) -> None:
        self.where, self.table, self.folder = where, table, Path(where).parent
        for key, value in table.items():
            if key in SECTIONS:
                if not isinstance(value, dict):
                    self.fail(key, None, f"it is a section; write [{key}] on a line of its own")
            elif key not in KEYS:
                raise UnknownSection(where, key)
            elif not isinstance(value, str):
                self.fail(None, key, f'it is a text in quotes on a line above the sections, {key} = "..."')

    def fail(self, section: str | None, key: str | None, why: object) -> NoReturn:
        place = " ".join(filter(None, (f"[{section}]" if section else "", key and key[:60])))
        # In a spec a letter is declared by a line of the section [symbols].
        said = str(why).removeprefix("spec: ").partition(", or give hx.parse(")[0]
        said = re.sub(r"symbols=\{'(\w+)': 'real'\}", r'[symbols] \1 = "real"', said)
        raise BadInput(": ".join(filter(None, (self.where, place, said)))) from None

    @contextmanager
    def at(self, section: str | None, key: str | None) -> Iterator[None]:
        """Of every refusal inside, the message names this place of the spec."""
        try:
            yield
        except HermitexError as error:
            self.fail(section, key, error)
        except OverflowError:
            self.fail(section, key, "it is too large for a number in double precision")

    def section(self, name: str) -> dict[str, Any]:
        return dict(self.table.get(name, {}))

    def _letters(self) -> dict[str, Any]:
        """Every letter of the formulas: those declared, the field's own, and the names that the spec itself gives."""
        from hermitex import symbols
        from hermitex.symbolic.text.text_names import declared

        letters: dict[str, Any] = {n: s for n, s in symbols.FIELD.items() if not symbols.is_normal_name(n)}
        given: dict[str, tuple[str, Any]] = {}
        given |= {"t": ("flow", "real")} if "flow" in self.table else {}
        for section in ("where", "equations", "flow", "observables", "parameters", "grid"):
            given |= {k: (section, letters.get(k, "real")) for k in self.section(section)}
        given |= {k: ("functions", "function") for k in self.section("functions")}
        given |= {k: ("symbols", v) for k, v in self.section("symbols").items()}
        for section in ("equations", "flow"):  # Q = [["..", ".."], ["..", ".."]]: a matrix
            matrices = {k: self._rows(k, v) for k, v in self.section(section).items() if isinstance(v, list)}
            given |= {name: given[key] for name, key in entry_names(matrices).items()}
        for key, (section, kind) in given.items():
            if section == "symbols" and not isinstance(kind, str):
                self.fail(section, key, 'a letter is declared by a word: "real", "positive", "nonnegative", "function"')
            with self.at(section, key):
                letters |= declared({key: kind})
        return declared(letters | self._laws(letters))

    def _laws(self, letters: dict[str, Any]) -> dict[str, Any]:
        """The random variables, whose parameters are formulas of the letters."""
        from hermitex import symbols
        from hermitex.symbolic.text.law_text import law

        found = {}
        for key, text in self.section("laws").items():
            if symbols.is_normal_name(key):
                self.fail("laws", key, f"{key} is a standard normal; give the variable another name")
            others = [s for s in SECTIONS if s not in ("laws", "structure", "domain", "start", "sweep")]
            if clash := [s for s in others if key in self.section(s)]:
                self.fail("laws", key, f"the name is also used under [{clash[0]}]; rename one of the two")
            with self.at("laws", key):
                found[key] = law(key, text, letters)
        return found

    def _all_laws_used(self) -> None:
        """Refuse a law that no average contains."""
        for key in (laws := self.section("laws")):
            texts = [v for n, v in laws.items() if n != key]
            texts += [v for n in ("where", "equations", "flow", "observables") for v in self.section(n).values()]
            if key not in set(re.findall(r"\w+", str(texts))):
                self.fail("laws", key, f"no formula holds {key}; average over it with E(..., {key}), or leave the line out")

    def _symbol(self, section: str, key: str) -> Any:
        from sympy import Symbol

        if not isinstance(self.letters[key], Symbol):
            self.fail(section, key, f"{key} is declared as a function; a name on the left is a number")
        return self.letters[key]

    def _string(self, section: str, key: str, value: Any, needed: str = "a formula is a text in quotes") -> str:
        if not isinstance(value, str):
            self.fail(section, key, needed)
        return value

    def _formula(self, section: str, key: str, value: Any) -> Any:
        from hermitex.symbolic.parsing import parse

        if isinstance(value, int | float) and not isinstance(value, bool):
            value = repr(value)
        text = self._string(section, key, value)
        with self.at(section, key):
            return parse(text, symbols=self.letters)

    def _rows(self, key: str, value: list[Any]) -> list[list[Any]]:
        good = all(isinstance(row, list) and row and len(row) == len(value[0]) for row in value)
        if not good or not value or max(len(value), len(value[0])) > 9:
            self.fail("equations", key, 'a matrix is a list of rows of equal length, [["a", "b"], ["b", "c"]], 9 by 9 at most')
        return value

    def _equation(self, kind: str, key: str, value: Any) -> Any:
        from sympy import Eq

        if isinstance(value, list):
            return [[self._formula(kind, key, v) for v in row] for row in self._rows(key, value)]
        sides = split_equation(value) if isinstance(value, str) else None
        if sides is not None and kind == "flow":
            self.fail(kind, key, f"a flow needs only the rate d{key}/dt, a formula without an equals sign")
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
        with self.at(section, key):
            return float(value)

    def _range(self, section: str, key: str, text: str) -> list[float]:
        from hermitex.face.output import grid

        with self.at(section, key):
            return [float(v) for v in grid(text)]

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
            if key not in SWEEP:
                self.fail("sweep", key, UnknownName(key, SWEEP, "option"))
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


def entry_names(matrices: Mapping[str, list[list[Any]]]) -> dict[str, str]:
    """{Q11: Q, Q12: Q, ...} of the matrices of a spec."""
    return {f"{key}{i + 1}{j + 1}": key for key, rows in matrices.items() for i, row in enumerate(rows) for j in range(len(row))}


class UnknownSection(BadInput):
    """A section or key that no spec has."""

    def __init__(self, where: str, key: str) -> None:
        near = UnknownName(key, (*SECTIONS, *KEYS)).close_matches
        meant = f"; did you mean {' or '.join(near)}?" if near else ""
        if key == "free_energy":
            meant = "; a free energy is Python: hermitex generate FILE.py:NAME, where FILE.py has NAME = hx.free_energy(...)"
        super().__init__(f"{where}: [{key[:60]}]: unknown section {key[:60]!r}{meant}; there are "
                         f"{', '.join(SECTIONS)}, and the keys {', '.join(KEYS)}")
