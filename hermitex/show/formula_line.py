"""One line of formulas as it is printed: left, sign, right, the rule in words, its source, and how far it is established."""

from __future__ import annotations

from typing import NamedTuple


class Line(NamedTuple):
    """LaTeX of both sides; `badge`: "proved", "to 30 digits at 4 points", "tested", "defined", or nothing yet; `key`: by which it
    is referred to on its page."""

    left: str
    sign: str
    right: str
    rule: str = ""
    source: str | None = None
    badge: str = ""
    key: str = ""
