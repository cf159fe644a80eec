"""Errors planted in the lines of cheap pages are noticed, whatever their kind."""

import importlib.util
import random
import sys
from pathlib import Path

import pytest

spec = importlib.util.spec_from_file_location("planted", Path(__file__).parent/"planted.py")
planted = importlib.util.module_from_spec(spec)
sys.modules["planted"] = planted
spec.loader.exec_module(planted)


KINDS = {"expression", "conclusion", "premise lost", "premise added", "wrong form", "misprint", "misprint mended", "definition",
         "display", "in words", "term", "typed in words", "typed in a premise", "declared"}


@pytest.mark.parametrize("file", ["weak_recovery.py", "gaussian_equivalence.py", "_template.py", "replicas.py",
                                  "replicas_of_features.py", "marchenko_pastur.py"])
def test_every_kind_of_error_is_noticed(file):
    chance = random.Random(7)
    for _, page in planted.pages(file):
        lines = planted.errors_of(page)
        kinds = {kind for kind, *_ in lines}
        assert {"expression", "conclusion", "premise lost", "wrong form"} <= kinds <= KINDS
        for kind in sorted(kinds):
            _, part, change = chance.choice([line for line in lines if line[0] == kind])
            assert planted.noticed(page, kind, part, change, chance), f"{kind}: {part!r}"


@pytest.mark.parametrize("many", [8, pytest.param(None, marks=pytest.mark.slow)], ids=["some pages", "all pages"])
def test_nine_in_ten_terms_that_are_typed_wrongly_are_refused(many):
    """What is left is part of another formula of the page: a root lost, a square that is a cube elsewhere."""
    chance, lost, typed = random.Random(3), [], 0
    files = sorted(p.name for p in planted.PAGES.glob("[a-z]*.py"))
    for file, page in planted.pages(*(chance.sample(files, many) if many else files)):
        for kind, part, change in planted.errors_of(page):
            if kind in ("typed in words", "typed in a premise", "declared"):
                typed += 1
                lost += [(file, kind, part)]*(not planted.noticed(page, kind, part, change, chance))
    assert typed > 4*(many or len(files)) and len(lost) < typed/10, lost


@pytest.mark.slow
@pytest.mark.parametrize("lines", [False, True], ids=["kinds evenly", "by lines"])
def test_of_a_hundred_errors_on_all_pages_at_most_five_survive(lines):
    drawn, survivors = planted.plant(planted.pages(), 100, random.Random(2), by_lines=lines)
    assert set(drawn) == KINDS or lines
    assert len(survivors) <= 5, survivors
