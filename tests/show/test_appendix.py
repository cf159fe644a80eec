"""A page in LaTeX: nothing runs over its margin, notes stand beside or below, a paper is listed once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sympy import Function, Symbol, sqrt, symbols

import hermitex as hx
from hermitex.show.appendix import break_formula, document, tex_width
from hermitex.show.display import latex
from hermitex.symbols import c, kappa, r, z

a = symbols("a1:40", positive=True)
f = Function("f")
LONG = sum(v**2 for v in a)


def _page(**options):
    return hx.Result("A page", "It is so.", **options)


def _widths(page):
    """Signs in each row of the page's displays, notes included."""
    inside = page.latex().split(r"\begin{align}")[1:]
    inside = [re.sub(r"\\label\{[^}]*\}", "", block) for block in inside]
    rows = [row for block in inside for row in block.split(r"\end{align}")[0].replace(r"\nonumber", "").split(r"\\")]
    return [tex_width(row.replace("&", "")) for row in rows]


def test_a_long_equation_is_broken_on_both_sides():
    page = _page()
    page.step("algebra", LONG*2, LONG + LONG)
    page.step("expanding the square of a long sum of many different letters", sum(a[:20]) + sqrt(c), LONG)
    assert max(_widths(page)) <= 90


def test_notes_stand_in_a_column_where_there_is_room():
    page = _page()
    page.step("Stein", hx.E(z*f(z), z), hx.E(hx.Derivative(f)(z), z))
    assert r"&& \text{(Stein's lemma)}" in page.latex()
    wide = _page()
    wide.step("a rule with a long name that says what is done here", hx.E(z*f(r*kappa + sqrt(c)*z), z),
              sqrt(sum(a[:16])))
    assert "&&" not in wide.latex() and r"&\qquad \text{(a rule with a long name" in wide.latex()


def test_a_long_conclusion_is_broken():
    page = _page()
    page.conclude(LONG, "So it is.")
    assert page.latex().count(r"\nonumber") >= 2 and max(_widths(page)) <= 80
    assert "".join(break_formula(latex(LONG), 60, 60)).count("a_") == 39


def test_a_step_may_show_its_left_side_otherwise():
    V, Vhat = Symbol("V", positive=True), Symbol("Vhat", positive=True)
    found = hx.free_energy(V*Vhat/2 - hx.E(hx.Moreau(Symbol("f")**2/2, Symbol("f"), z, V), z) - Vhat**2/2, {V: Vhat})
    assert r"\frac{\partial \phi}{\partial V} &= " in found.derivation.latex() and found.derivation.check()
    page = _page()
    page.derivation(found.derivation)
    assert r"\frac{\partial \phi}{\partial V} &= " in page.latex() and page.check()


def test_a_paper_under_two_keys_is_listed_once():
    text = document([r"\section{A} \cite{T24}", r"\section{B} \cite{troiani2025}"], ["T24", "troiani2025"])
    assert text.count(r"\bibitem") == 1 and text.count(r"\cite{troiani2025}") == 2


def test_what_is_compared_by_computation_is_named():
    page = _page()
    page.test("the first numbers", lambda: True, "In numbers:")
    page.test("the second numbers", lambda: 12)
    assert "Checked by computation: the first numbers (tested); the second numbers (tested)." in page.latex()
    assert "Checked by computation: the first numbers (tested); the second numbers (tested)." in page.markdown()


def _defects(tex):
    """What LaTeX stops at, or prints as ??: braces, environments, brackets that stretch, empty lines in displays, references."""
    found, depth, opened = [], 0, []
    tex = re.sub(r"\\(begin|end)\{document\}", "", tex)   # the one is defined before the other stands
    for sign in re.findall(r"\\begin\{\w+\}|\\end\{\w+\}|\\.|[{}]", tex):
        depth += (sign == "{") - (sign == "}")
        if sign.startswith(r"\begin"):
            opened.append(sign[7:-1])
        elif sign.startswith(r"\end{") and (not opened or opened.pop() != sign[5:-1]):
            found.append(f"{sign} ends what was not begun")
        if depth < 0:
            found.append("a brace too many")
    found += ["a brace is open"]*(depth != 0) + [f"{name} is open" for name in opened]
    for block in re.findall(r"\\begin\{align\}(.*?)\\end\{align\}", tex, re.DOTALL):
        found += ["an empty line in a display"]*bool(re.search(r"\n\s*\n", block))
        for row in [*re.split(r"\\\\(?![A-Za-z])", block), tex]:
            found += ["brackets"]*(len(re.findall(r"\\left(?![a-z])", row)) != len(re.findall(r"\\right(?![a-z])", row)))
            found += ["two labels on one line"]*(row is not tex and row.count(r"\label") > 1)
    labels = re.findall(r"\\label\{([^}]*)\}", tex)
    found += ["one label twice"]*(len(set(labels)) < len(labels))
    found += [f"{ref} has no label" for ref in re.findall(r"\\eqref\{([^}]*)\}", tex) if ref not in labels]
    items = re.findall(r"\\bibitem\{([^}]*)\}", tex)
    return found + [f"{key} is not listed" for key in re.findall(r"\\cite\{([^}]*)\}", tex) if key not in items]


@pytest.mark.parametrize("name", ["gaussian_equivalence", "tree_weights", "one_giant_step"])
def test_an_appendix_has_numbers_labels_and_references(name):
    from hermitex.face.userfile import module_of

    path = Path(__file__).parents[2]/"derivations"/f"{name}.py"
    pages = [v for v in vars(module_of(path)).values() if isinstance(v, hx.Result)]
    tex = document([page.latex() for page in pages], list(dict.fromkeys(k for page in pages for k in page.sources)))
    assert not _defects(tex) and r"\marginpar{" in tex and r"It follows from \eqref" in tex
    label = "\\label{" + re.search(r"\\eqref\{([^}]*)\}", tex)[1] + "}"
    for old, new in ((label, ""), (label, label + label), (r"\left", ""), (r"\end{align}", ""), ("}", ""),
                     (r"\begin{align}", "\\begin{align}\n\n")):
        assert old in tex and _defects(tex.replace(old, new, 1)), f"{old} becomes {new}, and nothing is noticed"


def test_the_argument_of_a_function_is_never_cut():
    assert break_formula(r"\Gamma\left(a + b + c + d\right)", 8, 8) == [r"\Gamma\left(a + b + c + d\right)"]
    assert len(break_formula(r"x \left(a + b + c + d\right)", 8, 8)) == 2


def test_a_matrix_is_never_cut_inside():
    from sympy import Inverse, Matrix

    wide = Matrix(3, 3, [sum(a[:k + 3]) for k in range(9)])
    page = _page()
    page.step("wide", Inverse(wide), 2*wide + 3*wide)
    for piece in page.latex().splitlines():
        assert piece.count(r"\begin{matrix}") == piece.count(r"\end{matrix}")


def test_a_line_may_end_inside_two_brackets_and_what_cannot_be_cut_is_printed_smaller():
    rows = break_formula(latex(hx.E(z*(sum(a[:20])*f(z) + 1), z)), 60, 60)
    assert len(rows) > 1 and max(map(tex_width, rows)) <= 76
    page = _page()
    page.step("algebra", 2*a[0], (sum(a[:30]) + 1)/(sum(a[:30]) + 2))
    assert r"\fitted{" in page.latex() and r"\fitted" not in page.markdown()
    assert r"\providecommand\fitted" in document([page.latex()], [])


def test_a_long_formula_in_words_is_a_display_and_code_is_code():
    page = _page()
    page.text("So $#1$ holds; type `hx.E(f)`.", (LONG*2, LONG + LONG + f(0)))
    assert r"$$\begin{gathered}" in page.latex() and r"\texttt{hx.\allowbreak{}E(\allowbreak{}f)}" in page.latex()
    assert "gathered" not in page.markdown() and "`hx.E(f)`" in page.markdown()
