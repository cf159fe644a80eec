"""hx.report(sigma, g): the sheet of a model, one page that composes what the package knows of it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hermitex.errors import BadInput, UnknownName
from hermitex.exponents.channels import Channel, NamedChannel
from hermitex.exponents.channels import channel as read_channel
from hermitex.face.sheet import sheet_text
from hermitex.face.sheet.sheet_explorer import explorer
from hermitex.face.sheet.sheet_page import Block, Literal, Prose, Section
from hermitex.face.sheet.sheet_parts import Model, compose, setting
from hermitex.face.sheet.sheet_writers import WRITERS, Sheet, body
from hermitex.face.theory_and_experiment import experiment_options
from hermitex.hints import Formula, Watched
from hermitex.show.cite import bibtex
from hermitex.show.display import Shown, counted
from hermitex.show.files import check_place, write_whole
from hermitex.solvers.sweep_grid import real_array
from hermitex.symbolic.activations import activation
from hermitex.symbolic.budget import DEFAULT_BUDGET
from hermitex.symbolic.parsing import parse, real_expression, to_text
from hermitex.symbols import z

_NUMBERS = {"beta": 1.0, "lam": 0.1, "Delta": 0.0, "alpha0": 5.0, "eta": 1.0}
_FOLDER = "@folder@"


@dataclass(frozen=True, repr=False, eq=False)
class Report(Shown):
    """The sheet of a model; `.save("sheet.html")` writes it (.html, .ipynb, .md, .tex).

    setting : the model in words;  shared : the Python that its calls share;  sections : the parts, each with its blocks, its call
    and its data, or in one line why it does not apply;  explorer : sliders over a grid, which .html alone holds

    Guarantee: each part has the guarantee of the call that it shows; a part that is left out says why. See docs/promise.md.

    >>> sheet = report("relu", "z1*z2", alpha=[1])
    >>> len(sheet.sections), sheet.absent["Spectrum of the features"].partition(";")[0]
    (6, 'the theory of one gradient step is about targets of one variable')
    """

    title: str
    setting: tuple[Block, ...]
    shared: str
    sections: tuple[Section, ...]
    explorer: str = ""

    @property
    def absent(self) -> dict[str, str]:
        """{part: why it does not apply}."""
        return {s.title: s.absent for s in self.sections if s.absent}

    @property
    def unfinished(self) -> dict[str, str]:
        """{part: what a budget left out of it}; empty where the report is complete."""
        return {s.title: s.unfinished for s in self.sections if s.unfinished}

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the sheet in the format of the path's ending, whole or not at all; returns its path.

        The pictures of .md and .tex are files in the folder NAME_files next to it.

        Raises
        ------
        BadInput : an unknown ending, or a place that cannot be written; one line, and no file.
        """
        place = check_ending(path)
        text, pictures = WRITERS[place.suffix.lower()](self._sheet())
        if self.explorer and place.suffix.lower() == ".html":
            text = text.replace("<h2>", f"{self.explorer}\n<h2>", 1)
        folder = place.with_name(f"{_portable(place.stem)}_files")
        made = [folder/name for name in pictures if not (folder/name).exists()]
        new = bool(pictures) and not folder.exists()
        try:
            if new:
                folder.mkdir()
            for name, content in pictures.items():
                write_whole(folder/name, content)
            return write_whole(place, text.replace(_FOLDER, folder.name))
        except BaseException as error:
            for path in made:
                path.unlink(missing_ok=True)
            if new and folder.is_dir():
                folder.rmdir()
            if isinstance(error, OSError):
                raise BadInput(f"cannot write {str(folder)[:80]!r}: {(error.strerror or str(error)).lower()}") from None
            raise

    def to_dict(self) -> dict[str, Any]:
        """The JSON of `hermitex report --json`: every part with its call, its numbers, or why it does not apply."""
        return {"title": self.title, "unfinished": self.unfinished, "python": self.shared,
                "parts": [{"title": s.title, "python": s.code, "shell": list(s.shell), "absent": s.absent or None,
                           "numbers": dict(s.data)} for s in self.sections]}

    def bibtex(self) -> str:
        """BibTeX of the papers whose results were used."""
        return bibtex(self._sheet().sources)

    def _sheet(self) -> Sheet:
        if not self.unfinished:
            return Sheet(self.title, self.setting, self.shared, self.sections)
        missing = Literal("; ".join(f"{title}: {why}" for title, why in self.unfinished.items()))
        first = Prose(("This report is not complete. ", missing, "."))
        return Sheet(f"{self.title} (not complete)", (first, *self.setting), self.shared, self.sections)

    def _repr_html_(self) -> str | None:
        try:
            return body(self._sheet())
        except Exception:  # a display that raises hides the result
            return None

    def _summary(self) -> str:
        told = f"; {counted(len(self.absent), 'part')} left out, .absent says why" if self.absent else ""
        return f"{self.title}: {counted(len(self.sections) - len(self.absent), 'part')}{told}"


def report(sigma: Formula | Sequence[Formula], g: Formula, *, channel: str | Channel | None = None,
           alpha: Sequence[float] | None = None, simulate: bool | Mapping[str, Any] = False, budget: float | None = DEFAULT_BUDGET,
           patience: float | None = None, progress: Watched = None, interactive: bool = False, **numbers: float) -> Report:
    """The sheet of a model: a target's exponents, coefficients, learning curve after one gradient step, bounds, spectrum, papers.

    Parameters
    ----------
    sigma : activation: a name, a text or an expression in z; or a list of them, which are compared
    g : target: likewise, or in z1, z2, ... (then what is known of one direction only says so)
    channel : how the label is drawn (a text, as `hx.exponents` takes it): "gaussian:1/4" is noise of variance Delta = 1/4 in every
        part; any other is for the exponents and coefficients alone
    alpha : the abscissa of the learning curve, n/d (default: 0.1 to 5)
    simulate : True also trains networks, about a minute for each activation; or {"dimension": 200, "seeds": 4}
    numbers : beta = 1, lam = 0.1, Delta = 0, alpha0 = 5, eta = 1, as of `hx.theories.one_step`
    interactive : .html has sliders for lam, eta and Delta, over curves, bounds and spectra that are computed now; it needs no
        network
    budget : CPU seconds for each question; patience : those for the experiment of one activation (default: all that it takes)

    Returns
    -------
    Report : `.save("sheet.html")` (.ipynb, .md, .tex), `.to_dict()`, `.bibtex()`. A part that does not apply says why.

    Raises
    ------
    BadInput : an argument that is not a function, a number or a channel; one line.

    Guarantee
    ---------
    Each part has the guarantee of the call that it shows; a part that is left out says why. See docs/promise.md.

    Examples
    --------
    >>> sheet = report("tanh", "He3(z)", alpha=[0.5, 1, 2])
    >>> sheet, sheet.sections[0].data["exponents"]["information_exponent"]
    (Report(tanh for He3(z): 6 parts), 3)
    """
    sigmas = tuple(dict.fromkeys(map(_activation, sigma if isinstance(sigma, list | tuple) else [sigma])))
    if not sigmas:
        raise BadInput("report: give an activation, or a list of some")
    if {"lam", "lamda"} <= numbers.keys():
        raise BadInput("report: lam and lamda are one number; give it once")
    given = {**_NUMBERS, **{("lam" if k == "lamda" else k): v for k, v in numbers.items()}}
    if strange := [k for k in given if k not in _NUMBERS]:
        raise UnknownName(strange[0], _NUMBERS, "number of a report")
    default = tuple(float(a) for a in np.linspace(0.1, 5, 50).round(10))  # the 50 points of a curve from 0.1 to 5
    line = tuple(_floats("alpha", default if alpha is None else alpha))
    if min(line) <= 0:
        raise BadInput(f"report: alpha is positive, not {min(line):g}")
    for seconds in (budget, patience):
        if seconds is not None and not seconds > 0:
            raise BadInput(f"report: a budget is a positive number of seconds, not {seconds}")
    options = experiment_options(simulate)
    if channel is not None and not isinstance(channel, str):
        raise BadInput("report: a channel is a text here, for instance 'gaussian:1/4', so that the page can repeat the call")
    drawn = read_channel(channel)
    read = {k: _number(k, v) for k, v in given.items()}
    if isinstance(drawn, NamedChannel) and drawn.name == "gaussian" and drawn.parameter is not None:
        noise = float(drawn.parameter)
        if "Delta" in numbers and read["Delta"] != noise:
            raise BadInput(f"report: the channel {channel} and Delta = {read['Delta']:g} are two noises; leave one of them out")
        read["Delta"] = noise
    asked = Model(sigmas, _target(g), channel, line, read, options, budget, patience, progress)
    title = f"{', '.join(sigmas)} for {g.strip() if isinstance(g, str) else asked.target}"
    shared = f"import numpy as np\n\nimport hermitex as hx\n\ninf, alpha = np.inf, {sheet_text.line(line)}"
    return Report(title, tuple(setting(asked)), shared, tuple(compose(asked)), explorer(asked) if interactive else "")


def check_ending(path: str | os.PathLike[str]) -> Path:
    """The path of a sheet, refused before any work where it has no format or no place."""
    if not isinstance(path, str | os.PathLike):
        raise BadInput(f"a sheet is written to a path that ends in {', '.join(WRITERS)}, not {str(path)[:60]}")
    place = Path(path)
    if place.suffix.lower() not in WRITERS:
        raise BadInput(f"cannot write a sheet to {str(path)[:80]!r}; end it in {', '.join(WRITERS)}")
    check_place(place)
    return place


def _activation(sigma: Any) -> str:
    """The text that means this activation, in every call of the page."""
    made = activation(sigma)
    if made.letters:
        raise BadInput(f"report: {', '.join(map(str, made.letters))} in {made.name[:60]!r} must be a number")
    return sigma.strip() if isinstance(sigma, str) else to_text(made(z))


def _target(g: Any) -> str:
    """The target as a text in z or z1, z2, ..."""
    if not isinstance(g, str):
        return to_text(real_expression(g))
    text = sheet_text.name_with_argument(g.strip())
    parse(text)
    return text


def _floats(name: str, values: Any) -> list[float]:
    try:
        found = [float(v) for v in np.ravel(real_array(values))]
    except (TypeError, ValueError):
        raise BadInput(f"report: {name} is a number or numbers, not {str(values)[:60]}") from None
    if not found or any(np.isnan(v) for v in found):
        raise BadInput(f"report: {name} needs a number")
    return found


def _number(name: str, value: Any) -> float:
    """One number that a step can have: none is negative, nor is the width 0."""
    found = _floats(name, value)
    if len(found) > 1:
        raise BadInput(f"report: {name} is one number, not {len(found)}; hx.curve takes several")
    positive = name in ("beta", "alpha0")
    if name != "eta" and (found[0] < 0 or (positive and not found[0])):
        raise BadInput(f"report: {name} is {'positive' if positive else '0 or more'}, not {found[0]:g}")
    return found[0]


def _portable(name: str) -> str:
    """A name that needs no quotes in Markdown and LaTeX."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "-" for c in name)
