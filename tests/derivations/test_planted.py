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


@pytest.mark.parametrize("file", ["weak_recovery.py", "gaussian_equivalence.py", "_template.py", "replicas.py",
                                  "marchenko_pastur.py"])
def test_every_kind_of_error_is_noticed(file, monkeypatch):
    monkeypatch.setattr("hermitex.symbolic.calculus.checking.SEARCH", 0.05)
    chance = random.Random(7)
    for _, page in planted.pages(file):
        lines = planted.errors_of(page)
        lines = [line for line in lines if line[2] is not None]   # what is typed nothing checks, and the page says so
        kinds = {kind for kind, *_ in lines}
        assert {"expression", "conclusion", "premise lost", "wrong form"} <= kinds
        for kind in sorted(kinds):
            _, part, change = chance.choice([line for line in lines if line[0] == kind])
            assert planted.noticed(page, part, change, chance), f"{kind}: {part!r}"
