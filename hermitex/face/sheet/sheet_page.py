"""A page before it is written: sections of prose, tables, pictures, and the call that reproduces their numbers.

Words are prose: a part between dollars is a formula, \\cite{key} a paper, all else is plain in every format. A text of a
user is `Literal`: nothing in it means anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


class Literal(str):
    """Plain text: without formulas, papers or marks of a format."""

    __slots__ = ()


@dataclass(frozen=True)
class Prose:
    """A paragraph, of pieces that follow each other."""

    pieces: tuple[str, ...]


@dataclass(frozen=True)
class Tabular:
    """Rows of cells under their headings."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Drawing:
    """A picture: a matplotlib figure, its name in a folder and its caption."""

    name: str
    figure: Any
    caption: str


Block = Prose | Tabular | Drawing


@dataclass(frozen=True)
class Section:
    """A part of the page: its blocks, or in one line why there are none.

    code : the lines of Python that reproduce its numbers;  shell : the command lines that do
    data : the results as data;  sources : keys of the papers used;  unfinished : what a budget left out, in one line
    """

    title: str
    blocks: Sequence[Block] = ()
    code: str = ""
    shell: Sequence[str] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    sources: Sequence[str] = ()
    absent: str = ""
    unfinished: str = ""


def prose(*pieces: str) -> Prose:
    """A paragraph."""
    return Prose(pieces)
