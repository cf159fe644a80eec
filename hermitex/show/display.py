r"""How a formula looks: mu_star as \mu_\star, E(f(z), z) as \mathbb{E}_{z}[f(z)], a Gaussian tail as e^{-z^2}.

`latex` knows the house's names, `letter` and `number` those of a table; `Shown` gives a result its one-line text, its
LaTeX and its HTML; nothing here raises into a notebook, and what is too long to read is summarised.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, ClassVar

from hermitex import symbols
from hermitex.show.escape import balanced, line, tex

LONG = 4_000  # characters of LaTeX that a notebook still shows well
WIDE = 100  # characters of a field in a repr, which has several on a line
_WORD = re.compile("[A-Za-z]{4,}")


def latex(expr: Any, **settings: Any) -> str:
    r"""The LaTeX of an expression, in the house's names (`symbols.LATEX_NAMES`) and settings.

    Examples
    --------
    >>> from hermitex.symbols import mu_star, kappa
    >>> latex(mu_star + kappa/2)
    '\\frac{\\kappa}{2} + \\mu_\\star'
    """
    if isinstance(expr, str):
        return expr
    from sympy import latex as sympy_latex
    from sympy.printing.latex import translate

    expr = _ones_named(expr)
    free = getattr(expr, "free_symbols", ())
    words = {s: symbols.LATEX_WORDS[s.name] for s in free if s.name in symbols.LATEX_WORDS}
    words |= {s: rf"\text{{{tex(s.name)}}}" for s in free if s not in words and _is_odd(s.name)}
    words |= {s: rf"\mathrm{{{s.name}}}" for s in free if s not in words and _WORD.fullmatch(s.name)
              and translate(s.name) == s.name}   # noise, not the product of its letters
    names = {**symbols.LATEX_NAMES, **words, **settings.pop("symbol_names", {})}
    return sympy_latex(expr, **{"symbol_names": names, "ln_notation": False, "fold_short_frac": False, **settings})


def _ones_named(expr: Any) -> Any:
    r"""Matrices of ones by their shapes, where SymPy prints 1: J_n, and \mathbf{1}_n of one column."""
    from sympy import MatrixSymbol, OneMatrix

    names = {}
    for one in expr.atoms(OneMatrix) if hasattr(expr, "atoms") else ():
        rows, columns = one.shape
        size = latex(columns if rows == 1 else rows)
        name = rf"J_{{{size}}}" if rows == columns else rf"\mathbf{{1}}_{{{size}}}" + r"^{\top}"*(rows == 1)
        if 1 in one.shape or rows == columns:
            names[one] = MatrixSymbol(name, rows, columns)
    return expr.xreplace(names) if names else expr


#: what a symbol's name may contain to be LaTeX unchanged: letters, scripts, and commands of letters, accents and fonts
_FORBIDDEN = "href|url|input|include|def|let|write|open|read|csname|catcode|class|style|css|html|require|unicode|bbox|begin|end|new"
_LETTERS = re.compile(rf"\\(?!(?:{_FORBIDDEN}))[A-Za-z]+|[A-Za-z0-9_^{{}}', ()*+.-]")


def _is_odd(name: str) -> bool:
    """True if a name must be escaped for LaTeX: it has %, #, $, letters that are not Latin, or braces that do not match."""
    return not (name.isascii() and name.isalnum()) and (bool(_LETTERS.sub("", name)) or not balanced(name))


def math(value: Any) -> str:
    """A formula, or LaTeX text, between dollars as HTML."""
    return f"${escape(latex(value), quote=False)}$"  # a browser reads < before MathJax does


def shorten(text: str, width: int = WIDE) -> str:
    """`text` on one line of at most `width` characters, the middle left out.

    >>> shorten("a" * 40, 11)
    'aaaa...aaaa'
    """
    text = line(text)
    if len(text) <= width:
        return text
    half = (width - 3) // 2
    return f"{text[:width - 3 - half]}...{text[-half:]}" if half else text[:width]


def counted(count: int, what: str) -> str:
    """A number of things in words.

    >>> counted(1, "check"), counted(3, "check")
    ('1 check', '3 checks')
    """
    return f"{count} {what}" + ("" if count == 1 else "s")


class Shown:
    """A result that shows itself: a one-line repr, LaTeX and HTML that never raise.

    A subclass (a frozen dataclass) has `_summary()` for its one line, and `latex()` or `_html()` or both.
    """

    __slots__: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # A dataclass writes its own __repr__ over an inherited one, but not over one that the class itself has.
        if "__repr__" not in cls.__dict__ and cls.__repr__ in (object.__repr__, Shown.__repr__):
            cls.__repr__ = Shown.__repr__  # type: ignore[method-assign]

    def _summary(self) -> str:
        """The short fields by name."""
        names = getattr(self, "__dataclass_fields__", {})
        shown = [f"{n}={getattr(self, n)!s}" for n, f in names.items() if f.repr and not n.startswith("_")]
        return ", ".join(s for s in shown if len(s) <= WIDE // 2)

    def __repr__(self) -> str:
        name = type(self).__name__
        line_length = 132  # characters of a repr
        try:
            return shorten(f"{name}({self._summary()})", line_length)
        except Exception:  # a repr that raises makes every traceback unreadable
            return f"{name}(...)"

    def _latex(self, printer: Any) -> str:
        """SymPy's hook: a result nests in matrices, equations and lists."""
        written = getattr(self, "latex", None)
        return written() if callable(written) else rf"\text{{{tex(repr(self))}}}"

    def _repr_latex_(self) -> str | None:
        written = getattr(self, "latex", None)
        if not callable(written):
            return None
        try:
            text = written()
        except Exception:  # the notebook falls back on the text
            return None
        return dollars(text) if len(text) <= LONG else rf"$\text{{{tex(repr(self))}}}$"

    def _repr_html_(self) -> str | None:
        written = getattr(self, "_html", None)
        if not callable(written):
            return None
        try:
            text = written()
        except Exception:
            return None
        return text if len(text) <= 20 * LONG else f"<code>{escape(repr(self))}</code>"


def dollars(text: str) -> str:
    """LaTeX in displayed style between dollars; an align block stays as it is.

    >>> dollars("x^2")
    '$\\\\displaystyle x^2$'
    """
    return text if text.lstrip().startswith((r"\begin{", "$")) else rf"$\displaystyle {text}$"


def number(value: float, digits: int = 10) -> str:
    r"""A number as LaTeX: powers of ten written out, infinity as its sign.

    >>> number(9.8896e-06, 4), number(float("-inf"))
    ('9.89 \\cdot 10^{-6}', '-\\infty')
    """
    mantissa, _, power = f"{value:.{digits}g}".partition("e")
    if power:
        return rf"{mantissa} \cdot 10^{{{int(power)}}}"
    return mantissa.replace("inf", r"\infty").replace("nan", r"\text{nan}")


def letter(name: str) -> str:
    r"""The LaTeX of a quantity by its name: the field's own symbols, and words as words.

    >>> letter("qhat"), letter("test_error"), letter("risk")
    ('\\hat{q}', '\\varepsilon_{\\mathrm{test}}', '\\mathrm{risk}')
    """
    from sympy import Symbol

    text = latex(symbols.FIELD.get(name) or Symbol(name, real=True))
    return rf"\mathrm{{{text}}}" if text == name and len(name) > 2 and name.isalpha() else text


def formula_table(rows: Iterable[Sequence[Any]], headers: Sequence[str] = (), *, title: str = "") -> str:
    """A borderless HTML table of formulas, each cell in dollars; a cell too long to read says how long it is.

    Parameters
    ----------
    rows : rows of cells, LaTeX texts without dollars or expressions; two cells make an equation, left = right.
    headers, title : plain text.
    """
    head = "".join(f'<th style="text-align:left">{escape(h)}</th>' for h in headers)
    body = []
    for row in rows:
        cells = [_cell(c) for c in row]
        if len(cells) == 2 and not headers and not cells[1].lstrip("$").startswith(("=", r"\neq", r"\displaystyle =")):
            cells.insert(1, "$=$")
        body.append("<tr style='background:none'>" + "".join(
            f'<td style="border:none;text-align:left;white-space:nowrap">{c}</td>' for c in cells) + "</tr>")
    caption = f"<caption style='text-align:left'>{escape(title)}</caption>" if title else ""
    top = f"<thead><tr>{head}</tr></thead>" if head else ""
    return f'<table style="border:none">{caption}{top}<tbody>{"".join(body)}</tbody></table>'


def number_table(columns: Mapping[str, Sequence[Any]], *, title: str = "", words: Mapping[str, str] | None = None,
                 digits: int = 6, most: int = 12) -> str:
    """An HTML table of columns of numbers by name, the names as the field's letters; of a long one the first rows.

    words : {name: plain text} of the columns whose heading is not a letter.

    Examples
    --------
    >>> "first 2 of 3 rows" in number_table({"alpha": [0.5, 1, 2]}, most=2)
    True
    """
    rows = list(zip(*columns.values(), strict=True))
    def cell(v: Any) -> str:
        if isinstance(v, bool):
            return r"\text{yes}" if v else r"\text{no}"
        return number(v, digits) if isinstance(v, float) else "" if v is None else str(v)

    cells = [[cell(v) for v in row] for row in rows[:most]]
    heads = [(words or {}).get(n) or f"${letter(n)}$" for n in columns]
    more = f"<p>first {most} of {len(rows)} rows</p>" if len(rows) > most else ""
    return formula_table(cells, heads, title=title) + more


def words_table(rows: Iterable[tuple[str, str]], *, title: str = "") -> str:
    """A borderless HTML table of plain words, a name and its description; a part between dollars is a formula.

    >>> words_table([("law", "$d^{1/2}$")]).count("<td")
    2
    """
    cell = '<td style="border:none;text-align:left">'
    body = "".join(f"<tr style='background:none'>{cell}{escape(a, quote=False)}</td>{cell}{escape(b, quote=False)}</td></tr>"
                   for a, b in rows)
    caption = f"<caption style='text-align:left'>{escape(title)}</caption>" if title else ""
    return f'<table style="border:none">{caption}<tbody>{body}</tbody></table>'


def _cell(value: Any) -> str:
    try:
        text = latex(value)
    except Exception:
        return escape(shorten(str(value)))
    if len(text) > LONG:
        return f"<i>a formula of {len(text)} characters</i>"
    # A browser reads < before MathJax does.
    return f"${escape(text, quote=False)}$" if text else ""


def align(lines: Iterable[tuple[Any, ...]], *, numbered: bool = False) -> str:
    r"""An align block: each line is (left, right) or (left, right, words), the words at the right in brackets.

    An empty left side continues the equation above, as derivations are printed.

    Examples
    --------
    >>> print(align([("x", "y + y", "sum"), ("", "2y")]))
    \begin{align*}
    x &= y + y && \text{(sum)} \\
     &= 2y
    \end{align*}
    """
    name = "align" if numbered else "align*"
    written = []
    for left, right, *words in lines:
        note = rf" && \text{{({tex(str(words[0]))})}}" if words and words[0] else ""
        written.append(f"{latex(left)} &= {latex(right)}{note}")
    inside = " \\\\\n".join(written)
    return f"\\begin{{{name}}}\n{inside}\n\\end{{{name}}}"
