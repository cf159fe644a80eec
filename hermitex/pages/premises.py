"""What a page gives without a check: premises, the meaning of its letters, what it does not show; and what is typed by hand."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from hermitex.show.display import latex

_TYPED = re.compile(r"\$([^$]*)\$")
# Equalities, also up to a factor or in a limit; a letter that goes to zero or to infinity names the limit.
_EQUALS = re.compile(r"(?<![<>\\])=|\\(simeq|approx|propto|equiv)(?![a-z])|\\to(?![a-z])(?!\s*(0|\\infty))")


@dataclass(frozen=True)
class Premise:
    """A premise that is not shown here: assumed, or quoted from `source` at `place`."""

    words: str
    source: str | None = None
    place: str = ""

    @property
    def badge(self) -> str:
        """Assumed, or quoted and from where."""
        return "assumed" if not self.source else "quoted"


@dataclass(frozen=True)
class Notation:
    """The meaning of letters, in words: of objects that no formula of the page contains (a norm, a trace, a sample)."""

    letters: tuple[tuple[Any, str], ...]

    @property
    def words(self) -> str:
        """One paragraph."""
        return "; ".join(f"{_letter(x)}: {said}" for x, said in self.letters) + "."

    @property
    def objects(self) -> list[str]:
        """Those that are declared by their LaTeX."""
        return [x for x in self._each() if isinstance(x, str)]

    @property
    def names(self) -> list[str]:
        """All of them, in LaTeX."""
        return [x if isinstance(x, str) else latex(x) for x in self._each()]

    def _each(self) -> list[Any]:
        return [x for some, _ in self.letters for x in (some if isinstance(some, tuple) else (some,))]


@dataclass(frozen=True)
class NotShown:
    """A statement that a reader might think is shown here, and is not."""

    words: str


def count_typed_equalities(words: str) -> int:
    """The number of equalities typed by hand between the dollars of the text; a display counts as one.

    >>> count_typed_equalities("At $a = 1$ and $b$, for $c \\\\ge 2$, $#1$"), count_typed_equalities("It is $$a + b.$$")
    (1, 1)
    >>> count_typed_equalities("As $d \\\\to \\\\infty$, $a \\\\to b$ and $a \\\\propto b$")
    2
    """
    parts = words.split("$$")
    return len(parts)//2 + sum(bool(_EQUALS.search(f)) for part in parts[::2] for f in _TYPED.findall(part))


def _letter(x: Any) -> str:
    """A letter between dollars; several as a tuple; a text is LaTeX."""
    if isinstance(x, tuple):
        return ", ".join(map(_letter, x))
    return f"${x if isinstance(x, str) else latex(x)}$"
