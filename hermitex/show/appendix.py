r"""A page of mathematics in LaTeX or Markdown: claim, assumptions, numbered steps with their rules in words, misprints.

`document` makes a file that compiles by itself and can be read by \input inside any other document.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from hermitex.show.cite import reference
from hermitex.show.display import latex

# Inside a document \@nodocument is \relax; there the file adds its sections only.
_HEAD = r"""% Written by hermitex; compiles by itself, and by \input{...} inside a document with amsmath.
\makeatletter
\ifx\@nodocument\relax\else
  \documentclass{article}
  \usepackage{amsmath,amssymb}
  \usepackage[margin=2.5cm]{geometry}
  \allowdisplaybreaks
  \gdef\endofpages{\end{document}}
  \begin{document}
\fi
\makeatother
"""
_FOOT = r"""
\ifdefined\endofpages
%(references)s
\fi
\ifdefined\endofpages\expandafter\endofpages\fi
"""
_WIDEST = 700  # characters of LaTeX on one line of an align block; a longer right side is set below its left


def document(sections: Iterable[str], keys: Sequence[str]) -> str:
    r"""A whole file: the sections, and where it is its own document the references that they cite."""
    items = "\n".join(_bibitem(k) for k in keys)
    references = f"\\begin{{thebibliography}}{{99}}\n{items}\n\\end{{thebibliography}}" if items else ""
    return _HEAD + "\n".join(sections) + _FOOT % {"references": references}


def section(title: str, place: str, source: str | None, blocks: Iterable[tuple[str, Any]]) -> str:
    """One result as a section."""
    cite = rf" \cite{{{source}}}" if source else ""
    where = f" ({place})" if place else ""
    out = [rf"\section{{{_text(title)}}}", ""]
    for kind, content in blocks:
        if kind == "claim":
            out += [rf"\paragraph{{Claim{where}.}} {_text(content)}{cite}", ""]
        elif kind == "assumptions":
            out += [r"\paragraph{Assumptions.}", *_items(map(_text, content)), ""]
        elif kind == "text":
            out += [_text(content)]
        elif kind == "align":
            out += [_align(content)]  # no blank line: the text goes on in the same paragraph
        elif kind == "misprints":
            out += [r"\paragraph{Misprints of the sources.} Each line below fails its check.", _misprints(content), ""]
            out += [*_items(f"{_text(p.rule)}: {_text(p.words)}" for p in content if p.words), ""]
        elif kind == "conclusion":
            value, words = content
            out += [rf"\paragraph{{Conclusion.}} {_text(words)}", _display(value), ""]
    return "\n".join(out)


def markdown(title: str, place: str, source: str | None, blocks: Iterable[tuple[str, Any]]) -> str:
    """One result as Markdown; formulas between dollars, as notebooks and most renderers read them."""
    from hermitex.show.cite import cite

    said = ", ".join(filter(None, [cite(source) if source else "", place]))
    out = [f"## {title}", ""]
    for kind, content in blocks:
        if kind == "claim":
            out += [f"**Claim**{f' ({said})' if said else ''}. {content}", ""]
        elif kind == "assumptions":
            out += ["**Assumptions.**", "", *(f"- {a}" for a in content), ""]
        elif kind == "text":
            out += [content, ""]
        elif kind == "align":
            out += ["$$", _align(content, numbered=False, cited=False), "$$", ""]
        elif kind == "misprints":
            out += ["**Misprints of the sources** (each of these fails its check).", "", "$$",
                    _misprints(content, numbered=False), "$$", ""]
            out += [f"- {p.rule}: {p.words}" for p in content if p.words] + [""]
        elif kind == "conclusion":
            value, words = content
            out += [f"**Conclusion.** {words}", "", "$$", _display(value, numbered=False), "$$", ""]
    return "\n".join(out)


def _align(lines: Sequence[tuple[str, str, str, str, str | None]], *, numbered: bool = True, cited: bool = True) -> str:
    written = []
    for left, sign, right, note, source in lines:
        cite = rf" \cite{{{source}}}" if source and cited else ""
        said = rf" && \text{{({_text(note)}{cite})}}" if note else ""
        gap = rf" \\{chr(10)} &\qquad " if len(left) + len(right) > _WIDEST and left else " "
        skip = r"\nonumber" if gap != " " and numbered else ""
        written.append(f"{left} &{sign}{skip}{gap}{right}{said}".strip())
    name = "align" if numbered else "aligned"
    return f"\\begin{{{name}}}\n" + " \\\\\n".join(written) + f"\n\\end{{{name}}}"


def _misprints(parts: Sequence[Any], *, numbered: bool = True) -> str:
    lines = [(latex(p.lhs), r"\neq", latex(p.rhs), p.rule, p.source) for p in parts]
    return _align(lines, numbered=numbered, cited=numbered)


def _display(value: Any, *, numbered: bool = True) -> str:
    """An expression, an equation or a System as a display of its own."""
    if hasattr(value, "rows"):
        return _align([(latex(a), "=", latex(b), "", None) for a, b in value.rows()], numbered=numbered)
    if isinstance(value, list | tuple):
        return _align([(latex(a), "=", latex(b), "", None) for a, b in value], numbered=numbered)
    text = value.latex() if hasattr(value, "latex") and not hasattr(value, "free_symbols") else latex(value)
    return f"\\begin{{equation}}\n{text}\n\\end{{equation}}" if numbered else text


def _items(lines: Iterable[str]) -> list[str]:
    items = [rf"  \item {line}" for line in lines]
    return [r"\begin{itemize}", *items, r"\end{itemize}"] if items else []


def _text(words: str) -> str:
    """Words as LaTeX: what stands outside of dollars is plain text."""
    pieces = re.split(r"(\$[^$]*\$|\\cite\{[^}]*\})", words)
    return "".join(p if i % 2 else re.sub(r"([%&#_])", r"\\\1", p.replace("\\", r"\textbackslash{}")) for i, p in enumerate(pieces))


def _bibitem(key: str) -> str:
    entry = reference(key)
    f = entry.fields
    kind = f.get("journal") or f.get("booktitle") or f.get("eprint", "")
    said = f"{f.get('author', '')}. {f.get('title', '')}. {kind}, {f.get('year', '')}."
    return rf"\bibitem{{{key}}} {said}"


