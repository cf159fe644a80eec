"""What a reader is told of a threshold: every stage, the digits that hold, and the directions it is about."""

import re

import numpy as np
import pytest

import hermitex as hx
from hermitex.exponents.stages import digits_that_hold
from hermitex.face import cli
from hermitex.show.tables import text_table


def test_all_stages_are_shown_so_that_zero_is_not_read_as_the_threshold(capsys):
    found = hx.exponents("sign(z1)*z2*z3")
    assert found.weak_recovery["alpha_c"] == 0  # that of the last stage
    told = re.compile(r"1\.46154511587 \+- \d\.\de-1\d then 0")
    assert all(told.search(text) for text in (repr(found), repr(found.threshold), found.explain()))
    assert re.search(r"1\.46154511587.* then .*0", found._repr_html_())
    assert "1.461545116 then 0" in text_table([found.table_row()], found.HEADERS, columns=None)
    assert any("z2, z3 are found from alpha = 1.46154511587, and z1 not earlier" in n for n in found.notes)
    assert cli.main(["exponents", "sign(z1)*z2*z3"]) == 0
    assert told.search(capsys.readouterr().out)


@pytest.mark.parametrize("target, first, later", [
    ("z1**2+z2**2+z1*z2", "z1 + z2 is", "z1 - z2 later, at alpha = 2.879924"),
    ("z1*z2+z2*z3+z3*z1", "z1 + z2 + z3 is", "z1 - z3, z2 - z3 later"),
    ("exp(z1**2/3)*sign(z2*z3)", "z1 is", "z2, z3 later, at alpha = pi**2/4"),
    ("3*z1**2/2+z2**2/2", "z1 is", "z2 later"),
])
def test_the_note_names_the_directions_that_are_found(target, first, later):
    (note,) = [n for n in hx.exponents(target).notes if "later" in n]
    assert f"alpha_c is where {first} found; {later}" in note


@pytest.mark.parametrize("target", ["sign(z1*z2)", "z1**2+z2**2", "z1+z2**2", "cos(z1)*cos(z2)"])
def test_no_note_where_all_directions_are_found_together(target):
    assert not any("later" in n for n in hx.exponents(target).notes)


def test_the_late_directions_turn_with_the_target():
    """A rotation of (z1, z2) turns the words, not the numbers."""
    plain, turned = (hx.exponents(t) for t in ("3*z1**2/2+z2**2/2", "3*(3*z1+4*z2)**2/50+(4*z1-3*z2)**2/50"))
    assert float(plain.alpha_c) == pytest.approx(float(turned.alpha_c), rel=1e-9)
    (note,) = [n for n in turned.notes if "later" in n]
    said = hx.parse(note.partition("; ")[2].partition(" later")[0])
    row = np.array(
        [float(said.coeff(v)) for v in (hx.symbols.z1, hx.symbols.z2)])
    assert abs(row @ np.array([3, 4])) < 1e-6


def test_only_the_digits_that_hold_are_printed():
    assert digits_that_hold(1.23456789, 0) == "1.23456789"
    assert digits_that_hold(1.23456789, 1e-3) == "1.23"
    assert digits_that_hold(123.456, 30) == "123.456"  # no digit after the point would be left: the note says how far it is off


@pytest.mark.parametrize("target, channel, told", [
    ("3", None, "weak recovery: none, there is nothing to recover"),
    ("z**3 - 3*z", "gaussian:1/4", "S(u) in the certificates is a function of u = z**3 - 3*z, before the noise"),
    ("z**3 - 3*z", None, "trivial: order 1 at every stage"),
    ("sign(z1*z2*z3)", None, "hard: order 3 or more at some stage"),
    ("z1 + z2**2", None, "alpha_c = 0 then >= 1/2 = 0.5"),
])
def test_an_account_says_what_the_class_means(target, channel, told):
    assert told in hx.exponents(target, channel=channel).explain()


def test_directions_that_are_no_small_fractions_are_decimals():
    """The golden ratio is not 309/500."""
    found = hx.exponents("z1*z2 + z2*z3 + z3*z4")
    assert "z2 + 0.618034*z4, 0.618034*z1 + z3 are found" in " ".join(found.notes)


def test_a_cell_of_a_table_holds_no_html_that_pandas_would_escape():
    row = hx.exponents("z1**2*z2").table_row(formulas=True)
    assert not any("&" in cell for cell in row) and any(r"\ge \frac{1}{2}" in cell for cell in row)
