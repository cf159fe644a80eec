"""Explorers: what a slider draws is what the theory solves; a page of sliders holds its numbers and runs no text."""

import json
import re
import sys

import numpy as np
import pytest

import hermitex as hx
from hermitex.errors import BadInput, UnknownName
from hermitex.face.cli import main
from hermitex.show.explorer import slider_of
from hermitex.show.explorer_panels import Panel, pictures
from hermitex.show.interactive_page import block

ipywidgets = pytest.importorskip("ipywidgets")


def parts(box):
    menus, sliders, _ = box.children[0].children
    return {m.description: m for m in menus.children}, {s.description: s for s in sliders.children}, box.children[1]


def test_a_move_draws_what_the_theory_solves():
    theory = hx.theories.glm()
    menus, sliders, picture = parts(theory.explore([0.5, 1, 2], lam=0.1, Delta=0.25))
    assert not menus and set(sliders) == {"lam", "Delta"} and sliders["lam"].value == pytest.approx(0.1)
    first = picture.value
    sliders["lam"].value = 1.0
    assert picture.value != first
    assert picture.value == pictures(theory.panels(np.array([0.5, 1, 2]), {n: s.value for n, s in sliders.items()}))
    lines = theory.panels(np.array([0.5, 1, 2]), {"lam": 1.0, "Delta": 0.25})[0].lines
    assert lines["test error"][1] == theory.curve(alpha=[0.5, 1, 2], lam=1, Delta=0.25).test_error.tolist()


def test_menus_change_the_functions_and_a_wrong_one_is_said():
    menus, _, picture = parts(hx.theories.one_step("erf", "sin").explore([1, 2], lam=0.1, alpha0=2, eta=1))
    assert menus["sigma"].value == "erf" and menus["g"].value == "sin"
    before = picture.value
    menus["sigma"].value = "sin"
    assert picture.value != before and "<img" in picture.value
    menus["g"].value = "foo(z)"
    assert "unknown function" in picture.value and "<img" not in picture.value


def test_a_curve_of_one_step_has_its_bounds_and_a_button_its_spectrum(monkeypatch):
    """The bounds and the density are those of hx.bounds and hx.spectrum; a move computes no spectrum, and removes an old one."""
    theory, line, numbers = hx.theories.one_step("erf", "sin"), np.array([1.0, 2.0, 3.0]), {"lam": 0.1, "alpha0": 2.0, "eta": 1.0}
    box = theory.explore(line, **numbers)
    _, sliders, picture = parts(box)
    button, below = box.children[0].children[2].children[0], box.children[2]
    found, law = hx.bounds("erf", "sin", alpha0=2, eta=1), hx.theories.spike("erf", "sin")(alpha0=2, eta=1, beta=1, Delta=0)
    lines = theory.panels(line, numbers)[0].lines
    assert lines["upper bound at the best ridge"][1] == pytest.approx([found.upper]*3)
    assert lines["lower bound"][1] == pytest.approx([found.lower]*3)
    assert min(lines["test error"][1]) > found.lower
    assert not below.value and button.description == "Draw the spectrum"
    button.click()
    density = hx.spectrum("erf", r=law.r, c=law.c, alpha=2, beta=1)
    drawn = theory.slow_panels(line, numbers)["spectrum"]()
    assert drawn.title == "spectrum at n/d = 2" and drawn.lines["density"] == (density.x.tolist(), density.density.tolist())
    assert below.value == pictures([drawn])
    monkeypatch.setattr(sys.modules["hermitex.theories.spectrum"], "spectrum", None)
    sliders["eta"].value = 2.0
    assert not below.value and "<img" in picture.value
    sliders["lam"].value, sliders["eta"].value = 10.0, 0.01
    assert "<img" in picture.value


@pytest.mark.parametrize(("structure", "more"), [({"rows": "gaussian"}, {}), ({}, {"bias": 0.3}), ({}, {"dimension": 100.0})])
def test_bounds_are_drawn_for_their_own_model_alone(structure, more):
    theory = hx.theories.one_step("erf", "sin", **structure)
    lines = theory.panels(np.array([1.0, 2.0]), {"lam": 0.1, "r": 1.0, "c": 1.0, "gamma": 0.9, **more})[0].lines
    assert set(lines) == {"test error", "train error"}


def test_letters_that_are_not_there_are_named():
    with pytest.raises(UnknownName, match="beta"):
        hx.theories.glm().explore(beta=1, lam=0.1)
    assert slider_of((0.1, 1)) == (0.55, 0.1, 1.0, False) and slider_of((0.01, 1, 10)) == (1.0, 0.01, 10.0, True)


def test_a_picture_leaves_out_what_did_not_converge():
    assert pictures([Panel("t", "x", "y", {"f": ([1, 2, 3], [1.0, np.nan, 3.0])})]).count("<img") == 1
    assert "no point converged" in pictures([Panel("t", "x", "y", {"f": ([1], [np.nan])})])


def test_a_page_holds_numbers_and_runs_no_text():
    evil = "</script><script>alert(1)</script>"
    grid = [[Panel(evil, "x", "y", {evil: ([1, 2], [float(k), np.nan])})] for k in range(6)]
    page = block(evil, {"lam": [0.1, 1], "eta": [1, 2, 3]}, [0, 1], grid)
    assert page.count("</script>") == 2 and "alert(1)</script>" not in page.replace("\\u003c/script>", "")
    data = json.loads(re.search('id="explorer-data">(.*?)</script>', page)[1])
    assert [v[0][0] for v in data["values"]] == [[float(k), None] for k in range(6)] and data["start"] == [0, 1]
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")


def test_the_command_line_asks_for_a_page(tmp_path, capsys):
    assert main(["report", "--sigma", "tanh", "--target", "sin", "--interactive", "-o", str(tmp_path/"a.md")]) == 2
    assert "--interactive is for a page; end it in .html" in capsys.readouterr().err
    with pytest.raises(BadInput, match="one variable"):
        hx.report("tanh", "z1*z2", alpha=[1], interactive=True)
