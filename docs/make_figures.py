"""The pictures of the README and of the gallery, made by the lines of gallery.md: python docs/make_figures.py [NAME...]"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import matplotlib

from hermitex.show.plots import save

HERE = Path(__file__).parent
PAGE = (HERE/"gallery.md").read_text(encoding="utf-8")
FIRST = re.search(r"^```py\n(.*?)^```$", PAGE, re.M | re.S)[1]  # type: ignore[index]  # the page has a block
#: {name of a picture: the block of code that is nearest above it}
FIGURES = {name: code for code, name in re.findall(
    r"^```py\n((?:(?!```).*\n)*)```\n+!\[[^\]]*\]\(figures/(\w+)\.png\)$", PAGE, re.M)}


def made(name: str) -> Any:
    """The axes that the lines of a picture draw in."""
    names: dict[str, Any] = {}
    exec(FIRST + FIGURES[name], names)
    return names["ax"]


def main(names: list[str]) -> None:
    """Make the pictures named, or all."""
    matplotlib.use("agg")
    (HERE/"figures").mkdir(exist_ok=True)
    for name in names or FIGURES:
        print(save(made(name), HERE/"figures"/f"{name}.png"))


if __name__ == "__main__":
    main(sys.argv[1:])
