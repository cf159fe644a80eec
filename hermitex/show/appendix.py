r"""A page of mathematics in LaTeX or Markdown: claim, assumptions, numbered steps with their rules in words, misprints.

`document` makes a file that compiles by itself and can be read by \input inside any other document.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from hermitex.show.cite import cite, is_known_key, reference
from hermitex.show.display import latex
from hermitex.show.escape import markdown as words_of
from hermitex.show.escape import prose, tex
from hermitex.show.formula_line import Line

# Inside a document \@nodocument is \relax; there the file adds its sections only. \fitted prints smaller what is too wide.
_HEAD = r"""% Written by hermitex; compiles by itself, and by \input{...} inside a document with amsmath.
\providecommand\fitted[2]{\setbox0\hbox{$\displaystyle #2$}\ifdim\wd0>#1\linewidth
  \ifdefined\resizebox\resizebox{#1\linewidth}{!}{\box0}\else\box0\fi\else\box0\fi}
\makeatletter
\ifx\@nodocument\relax\else
  \documentclass{article}
  \usepackage{amsmath,amssymb,array,graphicx}
  \usepackage[margin=2.5cm,right=4.5cm,marginparwidth=3.5cm]{geometry}
  \providecommand\extrafloats[1]{}\extrafloats{500}
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
_WRONG = {"misprints": "Misprints of the sources", "variants": "What would go wrong"}
_HEADED = {"notation": "Notation", "not shown": "Not shown"}
_WIDEST = 62  # signs on one line of an align block; a longer right side is broken at its + and -


def document(sections: Iterable[str], keys: Sequence[str]) -> str:
    r"""A whole file: the sections, and where it is its own document the references that they cite."""
    names = {k: reference(k).key for k in keys}  # a paper may be cited by several keys, and is listed once
    sections = [_renamed(text, names) for text in sections]
    items = "\n".join(_bibitem(k) for k in dict.fromkeys(names.values()))
    references = f"\\begin{{thebibliography}}{{99}}\n{items}\n\\end{{thebibliography}}" if items else ""
    return _HEAD + "\n".join(sections) + _FOOT % {"references": references}


def _renamed(text: str, names: Mapping[str, str]) -> str:
    return re.sub(r"\\cite\{([^}]*)\}", lambda m: rf"\cite{{{names.get(m[1], m[1])}}}", text)


def section(title: str, place: str, source: str | None, blocks: Iterable[tuple[str, Any]]) -> str:
    """One result as a section."""
    cite = _cited(source)
    slug = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
    where = f" ({tex(place)})" if place else ""
    out = [rf"\section{{{prose(' '.join(title.split()))}}}", ""]
    for kind, content in _merge_blocks(blocks):
        if kind == "claim":
            out += [rf"\paragraph{{Claim{where}.}} {prose(_displayed(content))}{cite}", ""]
        elif kind == "assumptions":
            out += [r"\paragraph{Assumptions.}", *_items(f"{prose(words)} [{badge}{_cited(source)}{_at(place)}]"
                                                         for words, badge, source, place in content), ""]
        elif kind in _HEADED:
            out += [rf"\paragraph{{{_HEADED[kind]}.}} {prose(content)}", ""]
        elif kind == "text":
            out += [prose(_displayed(content))]
        elif kind == "align":
            out += [*_margin(content, slug), _align(content, slug=slug)]  # no blank line: the text goes on in the same paragraph
        elif kind == "facts":
            out += ["", prose(f"Checked by computation: {'; '.join(content)}."), ""]
        elif kind == "tally":
            out += [rf"\paragraph{{Lines of this page.}} {prose(content)}.", ""]
        elif kind in _WRONG:
            out += [rf"\paragraph{{{_WRONG[kind]}.}} Each line below with $\neq$ fails its check.", _misprints(content), ""]
            out += [*_items(f"{prose(p.rule)}: {prose(p.words)}" for p in content if p.words), ""]
        elif kind == "conclusion":
            value, words = content
            lines = value if isinstance(value, list) and all(isinstance(v, Line) for v in value) else []
            out += [rf"\paragraph{{Conclusion.}} {prose(words)}".rstrip(), *_margin(lines, slug),
                    _align(lines, slug=slug) if lines else _display(value), ""]
        elif kind == "premises":
            out += [f"It follows from {', '.join(_reference(slug, key) for key in content)}.", ""]
    return "\n".join(out)


def markdown(title: str, place: str, source: str | None, blocks: Iterable[tuple[str, Any]]) -> str:
    """One result as Markdown; formulas between dollars, as notebooks and most renderers read them."""
    said = words_of(", ".join(filter(None, [cite(source) if source and is_known_key(source) else source, place])))
    out = [f"## {words_of(' '.join(title.split()))}", ""]
    for kind, content in _merge_blocks(blocks):
        if kind == "claim":
            out += [f"**Claim**{f' ({said})' if said else ''}. {words_of(content)}", ""]
        elif kind == "assumptions":
            items = (f"- {words_of(words)} [{badge}{_quoted(source, place)}]" for words, badge, source, place in content)
            out += ["**Assumptions.**", "", *items, ""]
        elif kind in _HEADED:
            out += [f"**{_HEADED[kind]}.** {words_of(content)}", ""]
        elif kind == "text":
            out += [words_of(content), ""]
        elif kind == "align":
            out += ["$$", _align(content, numbered=False, cited=False), "$$", ""]
        elif kind == "facts":
            out += [words_of(f"Checked by computation: {'; '.join(content)}."), ""]
        elif kind == "tally":
            out += [f"**Lines of this page.** {words_of(content)}.", ""]
        elif kind in _WRONG:
            out += [rf"**{_WRONG[kind]}** (each line with $\neq$ fails its check).", "", "$$",
                    _misprints(content, numbered=False), "$$", ""]
            out += [words_of(f"- {p.rule}: {p.words}") for p in content if p.words] + [""]
        elif kind == "conclusion":
            value, words = content
            out += [f"**Conclusion.** {words_of(words)}".rstrip(), "", "$$", _display(value, numbered=False), "$$", ""]
    return "\n".join(out)


def _merge_blocks(blocks: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """The same, with consecutive facts in one list, and a sentence that several texts share in one paragraph."""
    for kind, group in groupby(blocks, key=lambda b: b[0]):
        if kind == "fact":
            yield "facts", [f"{rule} ({badge})" if badge else rule for _, (rule, badge) in group]
        elif kind == "text":
            yield from (("text", said) for said in _sentences(words for _, words in group))
        else:
            yield from group


def _sentences(texts: Iterable[str]) -> Iterator[str]:
    """Paragraphs; a paragraph that ends inside a sentence is joined to the next, unless a formula is open there."""
    said = ""
    for words in texts:
        said = f"{said} {words}" if said else words
        if said.rstrip().endswith((".", ":")) or said.count("$") % 2:
            yield said
            said = ""
    if said:
        yield said


def mark_doubted(page: str, rules: Sequence[str]) -> str:
    r"""The page of `section` or `markdown`, with the checks that do not hold named under its title.

    >>> print(mark_doubted(r"\section{A}" + "\n\nText.", ["Stein"]))
    \section{A}
    <BLANKLINE>
    \paragraph{Not established.} Checks that do not hold: Stein.
    <BLANKLINE>
    Text.
    """
    if not rules:
        return page
    title, _, rest = page.partition("\n")
    words = f"Checks that do not hold: {'; '.join(rules)}."
    said = f"**Not established.** {words_of(words)}" if title.startswith("#") else rf"\paragraph{{Not established.}} {prose(words)}"
    return f"{title}\n\n{said}\n{rest}"


def _margin(lines: Sequence[Line], slug: str) -> list[str]:
    """The verdict of each numbered line, with the text before these lines."""
    badges = dict.fromkeys(line.badge for line in lines if line.badge and line.key)
    lists = {b: ", ".join(_reference(slug, line.key) for line in lines if line.key and line.badge == b) for b in badges}
    said = [f"{badge}: {places}" for badge, places in lists.items()]
    return [rf"\marginpar{{\raggedright\scriptsize {'; '.join(said)}}}"] if said else []


def _reference(slug: str, key: str) -> str:
    return rf"\eqref{{eq:{slug}:{key}}}"


def _align(lines: Sequence[Line], *, numbered: bool = True, cited: bool = True, slug: str = "") -> str:
    """An align block; the rules and badges in a column, or behind their lines where one is wide.

    slug : the page's name in its labels; the badges are then printed in the margin.
    """
    labels = [rf" \label{{eq:{slug}:{line.key}}}" if slug and line.key else "" for line in lines]
    lines = [line._replace(badge="") if label else line for line, label in zip(lines, labels, strict=True)]
    notes = [_note(line.rule, line.source if cited else None, line.badge) for line in lines]
    column = max((tex_width(left) for left in (line.left for line in lines) if tex_width(left) <= _WIDEST // 2), default=0)
    words = [" ".join(filter(None, (line.rule, line.badge))) for line in lines]
    rows = [_rows(line.left, line.sign, line.right, _WIDEST - tex_width(said), column) for line,
            said in zip(lines, words, strict=True)]
    before, after = (max(tex_width(r[k]) for line in rows for r in line) for k in (0, 1))
    beside = before + after + max(map(tex_width, words), default=0) <= _WIDEST
    unnumbered = r" \nonumber \\" if numbered else r" \\"
    written = []
    for line, note, said, label in zip(rows, notes, words, labels, strict=True):
        *most, (left,
                right) = [(left, _shrink_row(right, tex_width(left) and before) if numbered else right) for left, right in line]
        if note and not beside:
            fits = before + tex_width(right) + tex_width(said) <= _WIDEST
            most, right, left = (most, rf"{right} \qquad {note}", left) if fits else ([*most, (left, right)], rf"\qquad {note}", "")
        elif note:
            right = rf"{right} && {note}"
        written.append(f"{unnumbered}\n".join(f"{a} &{b}".strip() for a, b in [*most, (left, right)]) + label)
    name = "align" if numbered else "aligned"
    return f"\\begin{{{name}}}\n" + " \\\\\n".join(written) + f"\n\\end{{{name}}}"


def _shrink_row(row: str, before: int = 0) -> str:
    """Print a row smaller if it is too wide after the text `before` it and cannot be cut."""
    room = max(_WIDEST - before, _WIDEST//3)
    return rf"\fitted{{{0.9*room/_WIDEST:.2f}}}{{{row}}}" if tex_width(row) > room and len(break_formula(row, room,
                                                                                                         room)) == 1 else row


def _displayed(words: str) -> str:
    """Words in which a formula that is wider than a line is a display of its own."""
    def one(found: re.Match[str]) -> str:
        if tex_width(found[1]) <= _WIDEST:
            return found[0]
        rows = (_shrink_row(row) for row in break_formula(found[1], _WIDEST, _WIDEST))
        return "$$\\begin{gathered}" + r" \\ ".join(rows) + "\\end{gathered}$$"

    return re.sub(r"(?<!\$)\$([^$]+)\$(?!\$)", one, words)


def _cited(source: str | None) -> str:
    """A source at the end of the text: its key, or its name if it has no key."""
    if not source:
        return ""
    return rf" \cite{{{source}}}" if re.fullmatch(r"[\w:.+/-]+", source, re.ASCII) else f" ({tex(source)})"


def _at(place: str) -> str:
    return f", {tex(place)}" if place else ""


def _quoted(source: str | None, place: str) -> str:
    """The source of a quoted premise, in Markdown."""
    return "".join(f", {words_of(said)}" for said in (cite(source) if source and is_known_key(source) else source, place) if said)


def _note(words: str, source: str | None, badge: str = "") -> str:
    rule = f"({prose(words)}{_cited(source)})" if words else ""
    said = " ".join(filter(None, (rule, f"[{badge}]" if badge else "")))
    return rf"\text{{{said}}}" if said else ""


def _rows(left: str, sign: str, right: str, room: int, column: int) -> list[tuple[str, str]]:
    """One equation in rows of two columns, none wider than `room`: broken at its + and -, the left side too where it is long.

    column : how wide the left sides of the block are.
    """
    if tex_width(left) > room // 2 and tex_width(left) + tex_width(right) <= room:   # else it would push all other right sides out
        return [("", f"{left} {sign} {right}")]
    if tex_width(left) > room // 2:
        first, *more = break_formula(left, room, room)
        begin, *rest = break_formula(right, room, room)
        return [("", first), *(("", rf"\quad {p}") for p in more), ("", rf"\qquad {sign} {begin}"),
                *(("", rf"\qquad {p}") for p in rest)]
    begin, *rest = break_formula(right, max(room - max(column, tex_width(left)), room // 2), room - column)
    return [(left, f"{sign} {begin}"), *(("", rf"\qquad {p}") for p in rest)]


def tex_width(tex: str) -> int:
    """About how many signs wide a formula is printed; of a fraction, the wider of its two parts.

    >>> tex_width(r"\\frac{a + b}{c}"), tex_width(r"\\mathbb{E}_{z}\\left[z^{2}\\right]")
    (3, 6)
    """
    wide, i = 0, 0
    while i < len(tex):
        if tex.startswith(r"\frac{", i):
            top, i = _braced(tex, i + 5)
            bottom, i = _braced(tex, i)
            wide += max(tex_width(top), tex_width(bottom))
            continue
        found = _COMMAND.match(tex, i)
        if found:
            wide += 0 if found[0] in _THIN else 1
            i = found.end()
            continue
        wide += tex[i] not in "{}^_& "
        i += 1
    return wide


_COMMAND = re.compile(r"\\[A-Za-z]+|\\.")
_THIN = (r"\left", r"\right", r"\mathbb", r"\hat", r"\tilde", r"\operatorname", r"\displaystyle", r"\,", r"\text", r"\bar",
         r"\Bigl", r"\Bigr")


_CALLED = re.compile(r"(\\operatorname\{\w+\}|\\?[A-Za-z]+)(_\{\w+\})?\Z")  # the name of a function in front of its bracket


def _braced(tex: str, i: int) -> tuple[str, int]:
    """The group that opens at i, without its braces, and where it ends."""
    depth = 0
    for k in range(i, len(tex)):
        depth += (tex[k] == "{") - (tex[k] == "}")
        if depth == 0:
            return tex[i + 1:k], k + 1
    return tex[i + 1:], len(tex)


def break_formula(tex: str, first: int, room: int) -> list[str]:
    """A formula in pieces of at most `room` signs (`first` for the first), cut before a + or - outside of all brackets.

    If a bracket alone is too wide, it is replaced by one that can be cut inside.
    """
    if tex_width(tex) <= first:
        return [tex]
    deepest = 3  # brackets in each other in which a line may end
    chunks = next((found for found in (_terms(_opened(tex, k)) for k in range(deepest + 1)) if len(found) > 1), [tex])
    if len(chunks) == 1:
        return [tex]
    lines = [""]
    for chunk in chunks:
        limit = first if len(lines) == 1 else room
        if lines[-1] and tex_width(lines[-1]) + tex_width(chunk) > limit:
            lines.append("")
            limit = room
        if tex_width(chunk) > limit and chunk != tex:
            *more, last = break_formula(chunk, limit, room)
            for piece in more:
                lines[-1] += piece
                lines.append("")
            lines[-1] = last
        else:
            lines[-1] += chunk
    return [line.strip() for line in lines if line.strip()]


def _terms(tex: str) -> list[str]:
    r"""The summands of a formula with their signs; a line may also end inside \Bigl( ... \Bigr)."""
    cuts, depth, i = [0], 0, 0
    while i < len(tex):
        for opening, closing in ((r"\left", r"\right"), (r"\begin", r"\end"), ("{", "}")):  # a matrix is whole
            step = tex.startswith(opening, i) - tex.startswith(closing, i)
            depth += step if not tex[i + len(opening if step > 0 else closing):][:1].isalpha() or opening == "{" else 0
        if depth == 0 and tex.startswith((" + ", " - "), i) and tex[:i].strip():
            cuts.append(i)
        i += 1
    return [tex[a:b] for a, b in zip(cuts, [*cuts[1:], len(tex)], strict=True)]


def _opened(tex: str, levels: int) -> str:
    r"""The outer \left( ... \right) of a product as \Bigl( ... \Bigr), where a line may end; `levels` of them in each other.

    The argument of a function stays on its line: \Gamma\left(a + b\right), where a product has a blank before its bracket.
    """
    opened: list[bool] = []
    braces, i, out = 0, 0, []
    while i < len(tex):
        if tex.startswith(r"\left", i) and not tex[i + 5:i + 6].isalpha():
            whole = tex.startswith(r"\begin", i + 6) or (tex[i + 5:i + 6] == "(" and _CALLED.search(tex, 0, i))
            opened.append(len(opened) < levels and braces == 0 and not whole)
            out.append(r"\Bigl" if opened[-1] else r"\left")
            i += 5
        elif tex.startswith(r"\right", i) and not tex[i + 6:i + 7].isalpha():
            out.append(r"\Bigr" if opened.pop() else r"\right")
            i += 6
        else:
            braces += (tex[i] == "{") - (tex[i] == "}")
            out.append(tex[i])
            i += 1
    return "".join(out)


def _misprints(parts: Sequence[Any], *, numbered: bool = True) -> str:
    lines = []
    for p in parts:
        pairs = p.differing if hasattr(p, "differing") else [(p.lhs, p.rhs)]
        said = p.rule + (f", {p.place}" if getattr(p, "place", "") else "")
        lines += [Line(latex(a), getattr(p, "sign", r"\neq"), latex(b), said, p.source) for a, b in pairs]
        if getattr(p, "of_a_source", False) and hasattr(p, "differing"):
            lines += [Line(latex(a), "=", latex(p.used.equations[a]), "mended") for a, _ in pairs if a in p.used.equations]
        if getattr(p, "mended", None) is not None:
            lines.append(Line("", p.sign.replace(r"\neq", "=").replace(r"\not", ""), latex(p.mended), "mended"))
    return _align(lines, numbered=numbered, cited=numbered)


def _display(value: Any, *, numbered: bool = True) -> str:
    """An expression, an equation or a System as a display of its own."""
    if hasattr(value, "rows"):
        return _align([Line(latex(a), "=", latex(b)) for a, b in value.rows()], numbered=numbered)
    if isinstance(value, list | tuple):
        return _align([v if isinstance(v, Line) else Line(latex(v[0]), "=", latex(v[1])) for v in value], numbered=numbered)
    text = value.latex() if hasattr(value, "latex") and not hasattr(value, "free_symbols") else latex(value)
    if tex_width(text) > _WIDEST and "\\begin" not in text:
        first, *more = break_formula(text, _WIDEST, _WIDEST)
        name = "align" if numbered else "aligned"
        rows = [f"&{first}", *(rf"&\qquad {p}" for p in more)]
        return f"\\begin{{{name}}}\n" + (r" \nonumber \\" if numbered else r" \\").join(f"{r}\n" for r in rows) + f"\\end{{{name}}}"
    return f"\\begin{{equation}}\n{text}\n\\end{{equation}}" if numbered else text


def _items(lines: Iterable[str]) -> list[str]:
    items = [rf"  \item {line}" for line in lines]
    return [r"\begin{itemize}", *items, r"\end{itemize}"] if items else []


def _bibitem(key: str) -> str:
    entry = reference(key)
    f = entry.fields
    kind = f.get("journal") or f.get("booktitle") or f.get("eprint", "")
    said = f"{f.get('author', '')}. {f.get('title', '')}. {kind}, {f.get('year', '')}."
    return rf"\bibitem{{{key}}} {said}"


