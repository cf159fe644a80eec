"""A label in LaTeX, Markdown, HTML, CSV, BibTeX and JSON: the file is well formed, and the text is only a text there."""

import csv
import io
import json
import random
import re
import xml.dom.minidom
from html.parser import HTMLParser

import numpy as np
import pytest
from hostile import ODD, assert_nothing_ran, texts
from sympy import Symbol

import hermitex as hx
from hermitex import Sweep
from hermitex.errors import HermitexError
from hermitex.face.output import dumps
from hermitex.show.appendix import document
from hermitex.show.display import formula_table, latex, letter, math, words_table
from hermitex.show.escape import balanced, cell, line, prose, tex, visible
from hermitex.show.plots import curves, save
from hermitex.show.tables import csv_text, markdown_table, text_table

V = Symbol("V", positive=True)
TEXTS = texts(11, 60)


def page(text):
    found = hx.Result(text, text, source="stein1981", place=text, assumptions=[text, text])
    found.text(text)
    found.step(text, "z", "z", text)
    found.step("second", "z + 1", "1 + z", text)
    found.less(text, "0", "1", text)
    found.test(text, lambda: True, text)
    found.misprint(text, "z", "2*z", text)
    found.conclude(V + 1, text)
    return found


def plain_tex(source):
    """LaTeX without its formulas; raises where a special character is not escaped, a brace open or a command unknown."""
    assert source.isascii(), [c for c in source if not c.isascii()]
    assert balanced(re.sub(r"(?<!\\)\$", "", source) + " "), source
    rest = re.sub(r"\\\$", "", source)
    assert rest.count("$") % 2 == 0, source
    rest = re.sub(r"\$\$.*?\$\$|\$.*?\$", "", rest, flags=re.DOTALL)
    rest = re.sub(r"\\begin\{(align|equation|aligned)\}.*?\\end\{\1\}", "", rest, flags=re.DOTALL)
    rest = re.sub(r"\\ensuremath\{[^{}]*(\{[^{}]*\}[^{}]*)*\}|\\\^\{", "", rest)
    assert not re.search(r"(?<!\\)[%#&_^~]", rest), source
    known = {"section", "paragraph", "item", "cite", "begin", "end", "textbackslash",
             "textasciicircum", "textasciitilde", "textless",
             "textgreater", "textbar", "ifdefined", "Umathchar", "symbol", "else", "text", "copyright", "pounds", "ldots"}
    used = set(re.findall(r"\\([A-Za-z]{3,})", rest))
    assert used <= known, used - known
    return rest


def test_words_become_latex_that_means_nothing():
    for text in TEXTS:
        assert "$" not in re.sub(r"\\\$", "", tex(text))
        plain_tex(tex(text))
        plain_tex(prose(text))
    assert_nothing_ran()


def test_prose_keeps_formulas_and_escapes_the_rest():
    assert prose(r"At 50% the $x_1^2$ of \cite{stein1981} costs 5$ & more: a^b ~ c_d {e} \f") == (
        r"At 50\% the $x_1^2$ of \cite{stein1981} costs 5\$ \& more: a\textasciicircum{}b "
        r"\textasciitilde{} c\_d \{e\} \textbackslash{}f")
    assert prose("Erdős and Ryaben'kii: ж, α, “Łoś”") == (
        r"Erd\H{o}s and Ryaben'kii: {\ifdefined\Umathchar\symbol{1078}\else{[}U+0436{]}\fi}, \ensuremath{\alpha}, ``\L{}o\'{s}''")
    assert prose("$α_1 ≤ 5%$") == r"$\alpha _1 \leq  5\%$" and prose(r"$\frac{a$") == r"\$\textbackslash{}frac\{a\$"


@pytest.mark.parametrize("size", [12, pytest.param(1, marks=pytest.mark.slow)])
def test_a_page_of_any_text_is_a_file_of_latex_and_of_markdown(size):
    for k in range(0, len(TEXTS), size):
        text = "; ".join(TEXTS[k:k + size])
        made = page(text)
        source = document([made.latex()], made.sources)
        body = source.partition(r"\makeatother")[2].rpartition(r"\ifdefined\endofpages")[0]
        plain_tex(body.partition(r"\ifdefined\endofpages")[0])
        written = made.markdown()
        outside = re.sub(r"\$\$.*?\$\$|\$[^$]*\$", "", written, flags=re.DOTALL)
        assert not re.search(r"<[A-Za-z/!?]", outside) and all(c.isprintable() or c == "\n" for c in written)
        assert json.loads(dumps(made.to_dict()))["title"] == text and json.loads(dumps(made.check().to_dict()))["name"] == text
        well_formed(made.check()._repr_html_())
    assert_nothing_ran()


def test_a_place_and_a_source_that_is_no_key_are_words():
    made = hx.Result("A", "b", source="my notes, 50% {of} them", place="Eq. (3) of §2_a ^ ~ ж")
    written = plain_tex(made.latex())
    assert r"(my notes, 50\% \{of\} them)" in written and r"\_a \textasciicircum{} \textasciitilde{}" in written


class Tags(HTMLParser):
    """The tags of a text, which must match."""

    def __init__(self):
        super().__init__()
        self.open, self.seen = [], set()

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def well_formed(html):
    tags = Tags()
    tags.feed(html)
    tags.close()
    assert not tags.open, tags.open
    assert tags.seen <= {"table", "caption", "thead", "tbody", "tr", "td", "th", "i", "p", "code", "div"}, tags.seen


def test_html_has_the_tags_of_the_house_only():
    for text in TEXTS:
        well_formed(words_table([(text, text)], title=text))
        well_formed(formula_table([(text, text)], [text, text], title=text))
        well_formed(formula_table([(Symbol(text or "x"), 1 + Symbol(text or "x"))]))
        well_formed(math(Symbol(text or "x")))
        columns = {"a": np.array([1.0]), text or "x": np.array([2.0]), "converged": np.array([False]),
                   "reason": np.array([text], dtype=object)}
        well_formed(Sweep({"a": [1.0]}, columns)._repr_html_())
    assert_nothing_ran()


def test_a_symbol_of_any_name_is_balanced_latex():
    for text in TEXTS:
        for written in (latex(Symbol(text or "x")**2 + 1), letter(text or "x")):
            assert balanced(written) and not re.search(r"(?<!\\)[%#&]|\\(href|input|write|def)\b", written), written
            assert written.isascii() or re.fullmatch(r"[A-Za-z0-9_]*", text) is None
    assert latex(Symbol(r"\hat{q}_1")) == r"\hat{q}_1" and latex(Symbol("50%")) == r"\text{50\%}"


def test_csv_is_read_back_and_computes_nothing():
    rng = random.Random(12)
    for text in TEXTS:
        column = [text, rng.choice(TEXTS), -1.5, None]
        again = list(csv.reader(io.StringIO(csv_text({text or "x": column}), newline="")))
        assert [row[0] for row in again[1:3]] == [cell(v) for v in column[:2]] and again[3] == ["-1.5"]
        for value in (again[0][0], again[1][0]):
            assert value.lstrip()[:1] not in tuple("=+-@") or re.fullmatch(r"[-+]?[\d.]+", value.strip())
        csv_text({"a": column}).encode("utf-8", "backslashreplace")


def test_json_is_read_back_whatever_the_text():
    for text in [*TEXTS, "\x00number:]}{", "\x00number:1"]:
        written = dumps({"a": text, "b": [text]})
        assert json.loads(written) == {"a": text, "b": [text]}
        written.encode("utf-8")


def test_a_line_for_a_terminal_is_one_and_shows_its_controls():
    for text in TEXTS:
        assert line(text).isprintable()
        assert all(c.isprintable() or c == "\n" for c in text_table([[text, 1]], [text, "n"]))
        assert markdown_table([[text, 1]], ["a", "n"]).count("\n") == 2


def test_pictures_take_any_label(tmp_path):
    for k in range(0, len(ODD), 8):
        names = [n for n in ODD[k:k + 8] if n.strip()]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("warnings.warn", lambda *a, **k: None)  # a glyph that the font has not
            save(curves([0, 1], {n: [0, 1] for n in names}, xlabel=names[0], ylabel=names[-1]), tmp_path / "p.svg")
        drawn = xml.dom.minidom.parse(str(tmp_path / "p.svg"))
        texts_drawn = ["".join(c.data for c in t.childNodes if c.nodeType == c.TEXT_NODE).strip()
                       for t in drawn.getElementsByTagName("text")]
        missing = [n for n in names if "$" not in n and visible(n).strip() not in texts_drawn]
        assert not missing, (missing, texts_drawn)
        legend = [g for g in drawn.getElementsByTagName("g") if g.getAttribute("id").startswith("legend")]
        assert len(legend) == 1 and len(legend[0].getElementsByTagName("text")) >= len(names) - sum("$" in n for n in names)


def test_a_reference_of_any_key_is_refused_in_words():
    for text in TEXTS:
        with pytest.raises(HermitexError):
            hx.Result("a", "b", source=text or "x").bibtex()
