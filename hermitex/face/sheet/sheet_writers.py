"""A sheet as a file: HTML that holds its pictures, a notebook whose cells are the calls, Markdown, LaTeX.

Each writer turns (title, the blocks of the setting, the code that all calls share, the sections) into the text of a file and, for
Markdown and LaTeX, and its pictures, {name: bytes}.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Sequence
from html import escape
from typing import Any, NamedTuple

from hermitex.face.sheet.sheet_page import Block, Drawing, Literal, Prose, Section
from hermitex.show import appendix
from hermitex.show.cite import bibtex, cite, reference
from hermitex.show.escape import balanced, line, tex
from hermitex.show.mathtext import svg
from hermitex.show.plots import encoded

_PIECES = re.compile(r"(\$[^$]+\$|\\cite\{[\w:.+/-]+\})")
_MARKS = re.compile(r"([\\`*_{}\[\]<>#|~$])")
_ENTRIES = "The BibTeX of these papers"
_REPRODUCED = "The calls that give these numbers"


class Sheet(NamedTuple):
    """The input of a writer."""

    title: str
    setting: Sequence[Block]
    shared: str
    sections: Sequence[Section]

    @property
    def sources(self) -> list[str]:
        """Keys of the papers used, in the order of the page."""
        return list(dict.fromkeys(k for s in self.sections for k in s.sources))


Written = tuple[str, dict[str, bytes]]


def _render_words(text: str, plain: Callable[[str], str], formula: Callable[[str], str], cited: Callable[[str], str]) -> str:
    """One piece of words in a format: its plain parts, its formulas and its papers, each written by its own function."""
    if isinstance(text, Literal):
        return plain(line(text))
    out = []
    for part in _PIECES.split(text):
        if part.startswith("\\cite{"):
            out.append(cited(part[6:-1]))
        elif part.startswith("$") and len(part) > 1 and balanced(part):
            out.append(formula(part[1:-1]))
        else:
            out.append(plain(part))
    return "".join(out)


# -- HTML ------------------------------------------------------------------------------------------------------------------
_STYLE = """body{font:16px/1.45 Georgia,"Times New Roman",serif;color:#111;max-width:52em;margin:2em auto;padding:0 1.5em}
h1{font-size:1.5em;margin:.2em 0 .6em}h2{font-size:1.12em;margin:1.6em 0 .4em;border-bottom:1px solid #bbb}
table{border-collapse:collapse;margin:.6em 0;font-size:.9em}th{text-align:left;border-bottom:1px solid #555;font-weight:600}
td,th{padding:.18em 1.1em .18em 0;vertical-align:baseline}
figure{margin:1em 0;text-align:center}figure img{max-width:32em;width:100%}
figcaption,details{font-size:.85em;color:#444}pre{font-size:.85em;white-space:pre-wrap;background:#f6f6f6;padding:.5em .8em}
.absent{color:#555;font-style:italic}svg{fill:currentColor}@media print{body{font-size:11px;margin:0}details{display:none}}"""


def html(sheet: Sheet) -> Written:
    """A page that loads nothing: formulas as outlines, pictures inside."""
    head = (f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(line(sheet.title))}</title>\n'
            f"<style>{_STYLE}</style></head>\n<body>\n")
    return f"{head}{body(sheet)}\n</body></html>\n", {}


def body(sheet: Sheet) -> str:
    """The content between the tags of an HTML page."""
    out = [f"<h1>{escape(line(sheet.title))}</h1>", *map(_html_block, sheet.setting)]
    for k, section in enumerate(sheet.sections, start=1):
        out.append(f"<h2>{k}. {escape(section.title)}</h2>")
        out += [f'<p class="absent">{escape(line(section.absent))}</p>'] if section.absent else map(_html_block, section.blocks)
        if section.code:
            calls = "".join(f"<pre>{escape(text)}</pre>" for text in (f"{sheet.shared}\n{section.code}", "\n".join(section.shell)))
            out.append(f"<details><summary>{_REPRODUCED}</summary>{calls}</details>")
    if sheet.sources:
        items = "".join(f"<li>{escape(_entry(k))}</li>" for k in sheet.sources)
        out.append(f"<h2>References</h2><ol>{items}</ol><details><summary>{_ENTRIES}</summary>"
                   f"<pre>{escape(bibtex(sheet.sources))}</pre></details>")
    return "\n".join(out)


def _html_words(text: str) -> str:
    return _render_words(text, escape, svg, lambda key: escape(f"[{cite(key)}]"))


def _html_block(block: Block) -> str:
    if isinstance(block, Prose):
        return f"<p>{''.join(map(_html_words, block.pieces))}</p>"
    if isinstance(block, Drawing):
        data = base64.b64encode(encoded(block.figure, "png")).decode()
        return (f'<figure><img alt="{escape(block.name)}" src="data:image/png;base64,{data}"/>'
                f"<figcaption>{_html_words(block.caption)}</figcaption></figure>")
    head = "".join(f"<th>{_html_words(h)}</th>" for h in block.headers)
    rows = "".join("<tr>" + "".join(f"<td>{_html_words(c)}</td>" for c in row) + "</tr>" for row in block.rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _entry(key: str) -> str:
    """Authors, year and title of a paper."""
    title = re.sub(r"[{}]", "", reference(key).fields.get("title", ""))
    return f"{cite(key)}. {title}."


# -- Markdown and notebooks ------------------------------------------------------------------------------------------------
def markdown(sheet: Sheet) -> Written:
    """Markdown with formulas between dollars; the pictures are separate files."""
    files: dict[str, bytes] = {}

    def picture(drawing: Drawing) -> str:
        files[f"{drawing.name}.png"] = encoded(drawing.figure, "png")
        return f"![{_markdown_words(drawing.caption)}](@folder@/{drawing.name}.png)\n\n*{_markdown_words(drawing.caption)}*"

    out = [f"# {_escape_markdown(line(sheet.title))}", *(_markdown_block(b, picture) for b in sheet.setting)]
    for k, section in enumerate(sheet.sections, start=1):
        out += _markdown_section(k, section, picture)
        if section.code:
            shell = [_fenced("\n".join(section.shell), "sh")] if section.shell else []
            out += [f"{_REPRODUCED}:", _fenced(f"{sheet.shared}\n{section.code}", "python"), *shell]
    return "\n\n".join([*out, *_markdown_references(sheet)]) + "\n", files


def _markdown_section(k: int, section: Section, picture: Callable[[Drawing], str]) -> list[str]:
    written = [_escape_markdown(line(section.absent))] if section.absent else [_markdown_block(b, picture) for b in section.blocks]
    return [f"## {k}. {_escape_markdown(section.title)}", *written]


def _markdown_references(sheet: Sheet) -> list[str]:
    if not sheet.sources:
        return []
    items = "\n".join(f"{i}. {_escape_markdown(_entry(k))}" for i, k in enumerate(sheet.sources, start=1))
    return ["## References", items, _fenced(bibtex(sheet.sources).rstrip(), "bibtex")]


def _escape_markdown(text: str) -> str:
    r"""Plain words in Markdown: every mark of it is itself."""
    return _MARKS.sub(r"\\\1", text)


def _markdown_words(text: str) -> str:
    # A bar inside a formula would end the cell of a table.
    return _render_words(text, _escape_markdown, lambda f: f"${f.replace('|', chr(92) + 'vert ').replace('<', chr(92) + 'lt ')}$",
                 lambda key: _escape_markdown(f"[{cite(key)}]"))


def _markdown_block(block: Block, picture: Callable[[Drawing], str]) -> str:
    if isinstance(block, Prose):
        return "".join(map(_markdown_words, block.pieces))
    if isinstance(block, Drawing):
        return picture(block)
    rows = [block.headers, ("---",)*len(block.headers), *block.rows]
    return "\n".join("| " + " | ".join(c if c == "---" else _markdown_words(c) for c in row) + " |" for row in rows)


def _fenced(text: str, language: str) -> str:
    """Lines of code between fences longer than any inside."""
    fence = "`"*max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"


def notebook(sheet: Sheet) -> Written:
    """A notebook: the words of the sheet, its pictures as they were drawn, and its calls as cells that run."""
    cells: list[dict[str, Any]] = []

    def put(kind: str, source: str, outputs: Sequence[str] = ()) -> None:
        cell: dict[str, Any] = {"cell_type": kind, "id": f"cell-{len(cells)}", "metadata": {}, "source": source.splitlines(True)}
        if kind == "code":
            data = [{"data": {"image/png": png}, "metadata": {}, "output_type": "display_data"} for png in outputs]
            cell |= {"execution_count": None, "outputs": data}
        cells.append(cell)

    def picture(drawing: Drawing) -> str:
        return f"*{_markdown_words(drawing.caption)}*"

    put("markdown",
        "\n\n".join([f"# {_escape_markdown(line(sheet.title))}", *(_markdown_block(b, picture) for b in sheet.setting)]))
    put("code", sheet.shared)
    for k, section in enumerate(sheet.sections, start=1):
        put("markdown", "\n\n".join(_markdown_section(k, section, picture)))
        drawn = [base64.b64encode(encoded(b.figure, "png")).decode() for b in section.blocks if isinstance(b, Drawing)]
        for i, call in enumerate(section.code.splitlines()):
            put("code", call, drawn if i == 0 else ())
    if sheet.sources:
        put("markdown", "\n\n".join(_markdown_references(sheet)))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    about = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return json.dumps({"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5}, indent=1) + "\n", {}


# -- LaTeX -----------------------------------------------------------------------------------------------------------------
def latex(sheet: Sheet) -> Written:
    r"""A section that compiles by itself or by \input, with pictures as PDF files; in a document it needs array and graphicx."""
    files: dict[str, bytes] = {}

    def block(b: Block) -> str:
        if isinstance(b, Prose):
            return "".join(map(_tex_words, b.pieces)) + "\n"
        if isinstance(b, Drawing):
            files[f"{b.name}.pdf"] = encoded(b.figure, "pdf")
            return (f"\\begin{{center}}\n\\includegraphics[width=0.7\\linewidth]{{@folder@/{b.name}.pdf}}\n\n"
                    f"{{\\small {_tex_words(b.caption)}}}\n\\end{{center}}\n")
        columns = _tex_columns([b.headers, *b.rows])
        end = r" \tabularnewline" if ">" in columns else r" \\"
        rows = [" & ".join(map(_tex_words, row)) + end for row in b.rows]
        head = " & ".join(map(_tex_words, b.headers)) + end + r" \hline"
        table = "\n".join([rf"\begin{{tabular}}{{@{{}}{columns}@{{}}}}", head, *rows, r"\end{tabular}"])
        return f"\\begin{{center}}\\small\n{table}\n\\end{{center}}\n"

    out = [rf"\section{{{tex(sheet.title)}}}", "", *map(block, sheet.setting)]
    for section in sheet.sections:
        out += [rf"\subsection{{{tex(section.title)}}}", ""]
        out += [f"{tex(section.absent)}\n"] if section.absent else list(map(block, section.blocks))
    called = [s for s in sheet.sections if s.code]
    if called:
        lines = [x for s in called for x in ("", f"# {s.title}", s.code, *(f"$ {c}" for c in s.shell))]
        out += [rf"\subsection{{{_REPRODUCED}}}", "", _verbatim("\n".join([sheet.shared, *lines]))]
    if sheet.sources:
        out += [r"\subsection{References}", "", "".join(rf"\cite{{{k}}} " for k in sheet.sources), f"{_ENTRIES}:",
                _verbatim(bibtex(sheet.sources))]
    return appendix.document(["\n".join(out)], sheet.sources), files


def _tex_words(text: str) -> str:
    return _render_words(text, lambda s: tex(f"|{s}|")[len(tex("|")):-len(tex("|"))], lambda f: f"${f}$",
                         lambda key: rf"\cite{{{key}}}")


def _tex_columns(rows: Sequence[Sequence[str]], room: int = 88) -> str:
    """The columns of a tabular: where the rows are wider than a page, those of sentences break their lines."""
    wide = [max(appendix.tex_width(_tex_words(c).replace("$", "")) for c in column) for column in zip(*rows, strict=True)]
    if sum(wide) + 2*len(wide) <= room:
        return "l"*len(wide)
    fixed = sum(w for w in wide if w <= 24) + 2*len(wide)
    share = max(0.3, 1 - fixed/room)/max(sum(w for w in wide if w > 24), 1)
    return "".join("l" if w <= 24 else rf">{{\raggedright}}p{{{share*w:.2f}\linewidth}}" for w in wide)


def _verbatim(text: str) -> str:
    """Lines as they are, in ASCII, none so long that it leaves the page."""
    kept = text.replace(r"\end{verbatim}", r"\end {verbatim}").encode("ascii", "backslashreplace").decode()
    lines = [piece for whole in kept.splitlines() for piece in _wrapped(whole)]
    return "{\\footnotesize\n\\begin{verbatim}\n" + "\n".join(lines) + "\n\\end{verbatim}\n}\n"


def _wrapped(whole: str, room: int = 96) -> list[str]:
    """Break a line of code at blanks into lines of at most `room` characters; the following lines are indented."""
    out, rest = [], whole
    while len(rest) > room and (cut := rest.rfind(" ", 20, room)) > 0:
        out.append(rest[:cut] + (" \\" if whole.startswith("$") else ""))
        rest = "      " + rest[cut + 1:]
    return [*out, rest]


#: the ending of a file -> its writer
WRITERS: dict[str, Callable[[Sheet], Written]] = {".html": html, ".ipynb": notebook, ".md": markdown, ".tex": latex}
