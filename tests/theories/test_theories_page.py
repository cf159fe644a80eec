"""docs/theories.md: every theory stands on it with a call that runs and a test that exists."""

import re
from pathlib import Path

import pytest

import hermitex as hx

ROOT = Path(__file__).parents[2]
ROWS = [re.split(r" \| ", line.strip("| ")) for line in (ROOT/"docs"/"theories.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| ") and "`" in line]
RESULTS = {"Bounds", "Spectrum", "SGD", "Repetition", "KernelLimit", "Claims", "Curve", "Theory", "THEORIES"}
BESIDE = {"mu_star", "target_moments", "bounds_map", "dual_kernel", "inner_product_kernel"}  # parts of rows that are on the page


def test_every_theory_is_on_the_page():
    called = {re.match(r"`(?:hx\.)?(\w+)", call)[1] for _, _, call, _ in ROWS}
    assert set(hx.theories.__all__) - RESULTS - BESIDE <= called


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:40])
def test_what_holds_a_row_exists(row):
    path, _, name = row[3].strip("`").partition("::")
    assert f"def {name}" in (ROOT/"tests"/"theories"/path).resolve().read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:40])
def test_the_call_of_a_row_runs(row):
    names = {**{n: getattr(hx.theories, n) for n in hx.theories.__all__}, "hx": hx}
    assert repr(eval(row[2].strip("`"), names))  # the page is our own
