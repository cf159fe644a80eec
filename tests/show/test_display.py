"""A result shows itself on one line, in LaTeX and in HTML, and never raises into a notebook."""

from __future__ import annotations

from dataclasses import dataclass
from html.parser import HTMLParser

import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from hermitex import E
from hermitex import symbols as field
from hermitex.show.display import Shown, align, dollars, formula_table, latex, shorten
from hermitex.symbols import alpha0, kappa, mu_star, z, zetatilde


@dataclass(frozen=True)
class Answer(Shown):
    value: object
    note: str = ""

    def latex(self) -> str:
        return latex(self.value)

    def _html(self) -> str:
        return formula_table([("x", self.value)])


@dataclass(frozen=True)
class Broken(Shown):
    value: int = 1

    def latex(self) -> str:
        raise ValueError

    def _html(self) -> str:
        raise ValueError

    def _summary(self) -> str:
        raise ValueError


@pytest.mark.parametrize("expr, text", [
    (mu_star, r"\mu_\star"), (alpha0*z, r"\alpha_0 z"), (zetatilde, r"\tilde{\zeta}"), (sp.Symbol("Vhat"), r"\hat{V}"),
    (sp.log(abs(z)), r"\log{\left(\left|{z}\right| \right)}"),
    (E(sp.tanh(kappa + z), z), r"\mathbb{E}_{z}\left[\tanh{\left(\kappa + z \right)}\right]"),
    (sp.exp(-z**2/2), r"e^{- \frac{z^{2}}{2}}"), ("d^2", "d^2"),
])
def test_latex_in_the_names_of_the_house(expr, text):
    assert latex(expr) == text


def test_every_symbol_of_the_field_has_a_name_without_a_bare_underscore():
    for symbol in field.FIELD.values():
        assert not latex(symbol).startswith("_") and "star" not in latex(symbol).replace(r"\star", "")


def test_a_result_in_one_line_and_nested_in_an_expression():
    answer = Answer(mu_star**2)
    assert repr(answer) == "Answer(value=mu_star**2, note=)"
    assert answer._repr_latex_() == r"$\displaystyle \mu_\star^{2}$"
    assert sp.latex(sp.Tuple(z)).replace("z", "") and sp.latex([answer]) == r"\left[ \mu_\star^{2}\right]"
    assert len(repr(Answer(sp.Add(*(sp.Symbol(f"x{i}") for i in range(200)))))) <= 100


def test_a_result_that_cannot_be_shown_does_not_raise():
    broken = Broken()
    assert broken._repr_latex_() is None and broken._repr_html_() is None and repr(broken) == "Broken(...)"


def test_long_results_are_summarised():
    long = Answer(sp.Add(*(sp.Symbol(f"x{i}") for i in range(700))))
    assert len(long._repr_latex_()) < 300
    assert "a formula of" in long._repr_html_()


class _Balance(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.data = [], ""

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.data += data


@settings(max_examples=40)
@given(st.lists(st.tuples(st.text(max_size=8), st.text(max_size=8)), max_size=4))
def test_a_table_of_formulas_is_whole_html_whatever_the_cells_hold(rows):
    reader = _Balance()
    reader.feed(formula_table(rows, title="<b>"))
    assert reader.open == [] and reader.data.startswith("<b>")


def test_a_table_of_formulas_writes_equations():
    assert "$=$" in formula_table([(mu_star, kappa)]) and r"\mu_\star" in formula_table([(mu_star, kappa)])
    assert "&lt;" in formula_table([("a", z < 1)])


def test_an_align_block():
    block = align([(kappa, z, "Stein, 100%"), ("", z + 1)], numbered=True)
    assert block.startswith(r"\begin{align}") and r"\text{(Stein, 100\%)}" in block and block.count(r"\\") == 1
    assert dollars(block) == block


@settings(max_examples=40)
@given(st.text(), st.integers(4, 60))
def test_a_shortened_text_fits(text, width):
    assert len(shorten(text, width)) <= width and "\n" not in shorten(text, width)
