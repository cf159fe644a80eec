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
    called = {re.match(r"`(?:hx\.)?(\w+)", call)[1] for _, _, call, *_ in ROWS}
    assert set(hx.theories.__all__) - RESULTS - BESIDE <= called


@pytest.mark.every_case
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:40])
def test_what_holds_a_row_exists(row):
    path, _, name = row[3].strip("`").partition("::")
    assert f"def {name}" in (ROOT/"tests"/"theories"/path).resolve().read_text(encoding="utf-8")


@pytest.mark.every_case
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:40])
def test_the_experiment_and_the_derivation_of_a_row_exist(row):
    experiment, page = (cell.strip("`") for cell in row[4:])
    assert (ROOT/"derivations"/f"{page}.py").exists()
    assert experiment == "-" or "def simulate" in (ROOT/"hermitex"/"experiments"/f"{experiment}.py").read_text(encoding="utf-8")


def test_every_row_of_the_further_sheets_and_every_experiment_are_on_the_page():
    sources = " ".join(row[1] for row in ROWS)
    assert all(re.search(rf"\b{part}{n}\b", sources) for part in "AB" for n in range(1, 9))
    made = {path.stem for path in (ROOT/"hermitex"/"experiments").glob("*.py")
            if re.search("^def simulate", path.read_text(encoding="utf-8"), re.M)}
    assert made - {"own_experiment"} <= {row[4].strip("`") for row in ROWS}  # own: of a user's system


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:40])
def test_the_call_of_a_row_runs(row):
    names = {**{n: getattr(hx.theories, n) for n in hx.theories.__all__}, "hx": hx}
    assert repr(eval(row[2].strip("`"), names))  # the page is our own
