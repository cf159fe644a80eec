"""Sliders over a grid that was computed before: a piece of a page that needs no server and no network.

The numbers stand in the page as JSON; interactive_page.js draws them. No text of a user is run there:
names are put in as text, and the JSON cannot end its element.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files

from hermitex.show.explorer_panels import ABOVE, BELOW, HEIGHT, LEFT, RIGHT, WIDTH, Panel
from hermitex.show.plots import COLOURS


def block(title: str, axes: Mapping[str, Sequence[float]], start: Sequence[int], grid: Sequence[Sequence[Panel]]) -> str:
    """A heading, a slider for each axis, and the panels at its place; `grid` runs over the product of the axes, the last fastest.

    The panels of all points have the same titles, abscissas and lines. `start` : the place of each slider at first.
    """
    first = [panel.to_dict() for panel in grid[0]]
    heads = [{**{n: p[n] for n in ("title", "xlabel", "ylabel", "log")}, "x": p["lines"][0][1],
              "names": [name for name, *_ in p["lines"]]} for p in first]
    data = {"size": {"width": WIDTH, "height": HEIGHT, "left": LEFT, "right": RIGHT, "above": ABOVE, "below": BELOW},
            "colours": COLOURS, "axes": [[name, list(map(float, values))] for name, values in axes.items()], "start": list(start),
            "panels": heads, "values": [[[y for _, _, y in panel.to_dict()["lines"]] for panel in panels] for panels in grid]}
    kept = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    script = files("hermitex.show").joinpath("interactive_page.js").read_text(encoding="utf-8")
    row = "display:flex;flex-wrap:wrap;gap:1.5em;font-family:sans-serif"
    return (f'<h2>{escape(title)}</h2><div id="explorer-controls" style="{row}"></div><div id="explorer"></div>'
            '<p style="font-family:sans-serif"><label>read at <input type="range" id="explorer-at" min="0"></label> '
            '<output id="explorer-number"></output></p>'
            f'<script type="application/json" id="explorer-data">{kept}</script><script>{script}</script>')
