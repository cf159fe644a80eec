r"""LaTeX of a formula -> an SVG of its glyphs, for a page that loads nothing: \frac{1}{2} as outlines on the text's baseline.

matplotlib sets the formula; what its grammar lacks (\begin{cases}, \displaystyle) is rewritten first.
"""

from __future__ import annotations

import re
from functools import lru_cache
from html import escape

_CASES = re.compile(r"\\begin\{cases\}(.*?)\\end\{cases\}", re.DOTALL)


@lru_cache(maxsize=1024)
def svg(formula: str) -> str:
    r"""The formula as an inline SVG as large as the text around it; where it cannot be set, its LaTeX as text.

    >>> svg(r"\frac{1}{2}").startswith("<svg"), svg(r"\nothing{<")
    (True, '<code>\\nothing{&lt;</code>')
    """
    try:
        from matplotlib.font_manager import FontProperties
        from matplotlib.textpath import TextPath, TextToPath
    except ImportError:
        return f"<code>{escape(formula)}</code>"
    said = f"${_within_reach(formula)}$"
    size = 100.0  # points of one em
    try:
        font = FontProperties(size=size, math_fontfamily="stix")
        width, height, depth = TextToPath().get_text_width_height_descent(said, font, ismath=True)
        drawn = TextPath((0, 0), said, prop=font)
    except ValueError:  # no formula in its grammar
        return f"<code>{escape(formula)}</code>"
    letters = {1: "M", 2: "L", 3: "Q", 4: "C", 79: "Z"}
    path = "".join(letters[int(code)] + ("" if code == 79 else " ".join(f"{v:.0f}" for v in points))
                   for points, code in drawn.iter_segments(simplify=False, curves=True))
    scale = 1/size
    return (f'<svg role="img" aria-label="{escape(formula)}" viewBox="0 {depth - height:.0f} {width:.0f} {height:.0f}" '
            f'style="width:{width*scale:.3f}em;height:{height*scale:.3f}em;vertical-align:{-depth*scale:.3f}em">'
            f'<path transform="scale(1,-1)" d="{path}"/></svg>')


def label(formula: str, otherwise: str) -> str:
    r"""The formula as matplotlib can print it; if it cannot, the text given instead.

    >>> label(r"\operatorname{tanh}{\left(z \right)}", "tanh(z)"), label(r"\nothing{", "nothing")
    ('$\\operatorname{tanh}{\\left(z \\right)}$', 'nothing')
    """
    from matplotlib.mathtext import MathTextParser

    said = f"${_within_reach(formula)}$"
    try:
        MathTextParser("path").parse(said)
    except ValueError:
        return otherwise
    return said


def _within_reach(formula: str) -> str:
    """The same in the grammar of matplotlib."""
    def cases(found: re.Match[str]) -> str:
        return r"\{" + found[1].replace(r"\\", r";\;\; ").replace("&", r"\;\;") + r"\}"

    plain = _CASES.sub(cases, formula).replace(r"\displaystyle", "").replace(r"\:", r"\;")
    out, depth = [], 0
    for token in re.findall(r"\\[A-Za-z]+|\\.|.", plain, re.DOTALL):
        depth += (token == "{") - (token == "}")
        out.append(r"\dfrac" if token == r"\frac" and not depth else token)  # a fraction of its own is read at full size
    return "".join(out)
