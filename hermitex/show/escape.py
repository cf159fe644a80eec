r"""A text for the place it goes to: a terminal's line, LaTeX, Markdown, a cell of CSV. It is written, and means nothing there.

    50% of a_b -> 50\% of a\_b        $x_1$ stays a formula        \u0435 -> its letter where the engine has it, else [U+0435]
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Any


def visible(text: str) -> str:
    r"""Every character that does not print (controls, marks of direction, lone surrogates) as its escape; blanks stay.

    >>> print(visible("a\x1b[31m b"))
    a\x1b[31m b
    """
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def line(text: object) -> str:
    r"""A text on one line, fit for a terminal.

    >>> line("a\n b\x07")
    'a b\\x07'
    """
    return visible(" ".join(str(text).split()))


# -- LaTeX -------------------------------------------------------------------------------------------------------------
_SPECIAL = {**{c: f"\\{c}" for c in "%&#_{}$"}, "\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
            "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "[": "{[}", "]": "{]}", "\u00a0": "~"}
_SIGNS = {"“": "``", "”": "''", "‘": "`", "’": "'", "–": "--", "—": "---", "…": r"\ldots{}", "ß": r"\ss{}", "æ": r"\ae{}",
          "Æ": r"\AE{}", "œ": r"\oe{}", "Œ": r"\OE{}", "ø": r"\o{}", "Ø": r"\O{}", "ł": r"\l{}", "Ł": r"\L{}", "ı": r"\i{}",
          "§": r"\S{}", "©": r"\copyright{}", "£": r"\pounds{}"}
_MATHS = {"≤": r"\leq", "≥": r"\geq", "≠": r"\neq", "≈": r"\approx", "≡": r"\equiv", "∞": r"\infty", "∑": r"\sum", "∏": r"\prod",
          "∫": r"\int", "√": r"\surd", "∂": r"\partial", "∇": r"\nabla", "∈": r"\in", "→": r"\to", "←": r"\leftarrow",
          "↔": r"\leftrightarrow", "⇒": r"\Rightarrow", "×": r"\times", "·": r"\cdot", "÷": r"\div", "±": r"\pm", "−": "-",
          "°": r"^\circ", "²": "^2", "³": "^3", "¹": "^1", "ℝ": r"\mathbb{R}", "𝔼": r"\mathbb{E}", "∥": r"\|", "∼": r"\sim"}
_ACCENTS = {0x300: "`", 0x301: "'", 0x302: "^", 0x303: "~", 0x304: "=", 0x306: "u", 0x307: ".", 0x308: '"', 0x30a: "r", 0x30b: "H",
            0x30c: "v", 0x327: "c", 0x328: "k"}
_PLAIN_GREEK = {"Alpha": "A", "Beta": "B", "Epsilon": "E", "Zeta": "Z", "Eta": "H", "Iota": "I", "Kappa": "K", "Mu": "M", "Nu": "N",
                "Omicron": "O", "Rho": "P", "Tau": "T", "Chi": "X", "omicron": "o", "Upsilon": r"\Upsilon"}


@lru_cache(maxsize=4096)
def _greek(c: str) -> str:
    """The formula of a Greek letter; empty for any other."""
    name = unicodedata.name(unicodedata.normalize("NFKC", c), "") if len(c) == 1 else ""
    found = re.match(r"GREEK (SMALL|CAPITAL) LETTER (FINAL )?([A-Z]+)$", name)
    if not found:
        return ""
    word = found[3].replace("LAMDA", "LAMBDA")
    word = word.lower() if found[1] == "SMALL" else word.capitalize()
    return _PLAIN_GREEK.get(word, f"\\{'var' if found[2] else ''}{word}")


@lru_cache(maxsize=4096)
def _character(c: str) -> str:
    """One character of plain text in ASCII LaTeX."""
    if c in _SPECIAL or c in _SIGNS:
        return _SPECIAL.get(c) or _SIGNS[c]
    if c.isascii() and c.isprintable():
        return c
    if c in _MATHS or _greek(c):
        return rf"\ensuremath{{{_MATHS.get(c) or _greek(c)}}}"
    if not c.isprintable():
        return " " if c.isspace() else "".join(map(_character, visible(c)))
    base, *marks = list(unicodedata.normalize("NFD", c))
    if marks and base.isascii() and all(ord(m) in _ACCENTS for m in marks):
        out = base
        for m in marks:
            out = rf"\{_ACCENTS[ord(m)]}{{{out}}}"
        return out
    # XeTeX and LuaTeX print it where the font has it; pdfTeX would stop.
    return rf"{{\ifdefined\Umathchar\symbol{{{ord(c)}}}\else{{[}}U+{ord(c):04X}{{]}}\fi}}"


def tex(text: object) -> str:
    r"""Plain words as LaTeX, in ASCII and on one line.

    >>> print(tex("50% of a_b ^ ~ \\ é λ"))
    50\% of a\_b \textasciicircum{} \textasciitilde{} \textbackslash{} \'{e} \ensuremath{\lambda}
    """
    return "".join(map(_character, " ".join(str(text).split())))


_MATH = re.compile(r"(\$\$[^$]*\$\$|\$[^$]*\$|\\cite\{[\w:.+/-]*\})")
_CODE = re.compile(r"`([^`\n]+)`")


def prose(text: str) -> str:
    r"""Words with formulas between dollars (two of them: a display), `code` and \cite{key} as LaTeX; all else is plain text.

    >>> print(prose(r"50% of $x_1$ \cite{stein1981}, and 5$"))
    50\% of $x_1$ \cite{stein1981}, and 5\$
    """
    return "".join(_formula(p) if k % 2 else "".join(_code(q) if j % 2 else _plain(q) for j, q in enumerate(_CODE.split(p)))
                   for k, p in enumerate(_MATH.split(text)))


def _plain(words: str) -> str:
    return "".join(c if c == "\n" else _character(c) for c in words)


def _code(words: str) -> str:
    """What one types; a line may end after a sign."""
    return r"\texttt{" + "".join(_character(c) + r"\allowbreak{}"*(c in ".,(=*") for c in words) + "}"


def _formula(piece: str) -> str:
    """The formula between dollars; if its braces do not match, plain text."""
    if piece.startswith("\\cite"):
        return piece
    if not balanced(piece) or not piece.strip("$ \n") or "\n\n" in piece:
        return "".join(map(_character, piece))
    special = "%#" if r"\begin" in piece else "%#&"
    piece = re.sub(rf"(?<!\\)([{special}])", r"\\\1", piece)
    return "".join(c if c.isascii() and (c.isprintable() or c == "\n") else _letter(c) for c in piece)


def _letter(c: str) -> str:
    """One character that is not ASCII in a formula."""
    known = _greek(c) or _MATHS.get(c)
    return f"{known} " if known else rf"\text{{{_character(c)}}}"


def balanced(formula: str) -> bool:
    r"""True if the braces of a piece of LaTeX match and it does not end with a backslash.

    >>> balanced(r"\frac{a}{b}"), balanced("a}{b"), balanced("a\\")
    (True, False, False)
    """
    depth = 0
    for token in re.findall(r"\\.|\\\Z|[{}]", formula.strip("$"), re.DOTALL):
        depth += (token == "{") - (token == "}")
        if depth < 0 or token == "\\":
            return False
    return depth == 0


# -- other places ------------------------------------------------------------------------------------------------------
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\Z|[-+]?(inf|nan)\Z")


def cell(value: Any) -> Any:
    r"""A value for a cell of CSV: a text that a spreadsheet would compute (it begins with =, +, -, @) gets an apostrophe before it.

    >>> cell("=1+1"), cell("-1.5"), cell(-1.5), cell("a=b")
    ("'=1+1", '-1.5', -1.5, 'a=b')
    """
    if not isinstance(value, str):
        return value
    text = value.replace("\0", "\\x00")
    return f"'{text}" if text.lstrip()[:1] in tuple("=+-@") and not _NUMBER.match(text.strip()) else text


def markdown(text: str) -> str:
    """Words with formulas between dollars as Markdown; what would be a tag of HTML is text.

    >>> markdown("a < b, <b>, $x<y$")
    'a < b, &lt;b>, $x<y$'
    """
    pieces = _MATH.split("".join(c if c == "\n" else visible(c) for c in text))
    return "".join(p if k % 2 else re.sub(r"<(?=[A-Za-z/!?])", "&lt;", p) for k, p in enumerate(pieces))
