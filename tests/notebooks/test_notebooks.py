"""Each notebook opens with what it answers, shows its claims in checked cells, ends with what to try next; nothing is run here."""

from __future__ import annotations

import ast
import base64
import json
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(p for p in FOLDER.rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)
JOBS = {"quick_start", "exponents_of_my_target", "staircases_and_thresholds", "one_giant_step", "bounds_and_the_learning_rate",
        "spectra", "free_energy_to_solver", "check_my_derivation", "sgd_with_and_without_repetition"}
CHECKED = "# NBVAL_CHECK_OUTPUT"


def _read(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def _code(notebook: dict) -> list[dict]:
    return [c for c in notebook["cells"] if c["cell_type"] == "code"]


def _source(cell: dict) -> str:
    return "".join(cell["source"])


@pytest.fixture(params=NOTEBOOKS, ids=lambda p: p.stem)
def notebook(request):
    return _read(request.param)


def test_every_job_has_its_notebook():
    assert {p.stem for p in NOTEBOOKS} >= JOBS


def test_it_opens_with_a_title_and_what_it_answers(notebook):
    first = notebook["cells"][0]
    lines = [line for line in _source(first).splitlines() if line]
    assert first["cell_type"] == "markdown" and lines[0].startswith("# ")
    assert lines[1].startswith("*") and "?" in lines[1], "the first sentence is the question, in italics"
    assert len(re.findall(r"[.?:](?=\s|\*|$)", " ".join(lines[1:]))) >= 2


def test_it_ends_with_what_to_try_next(notebook):
    last = notebook["cells"][-1]
    assert last["cell_type"] == "markdown" and "## What to try next" in _source(last)
    assert re.search(r"^\* ", _source(last).split("## What to try next")[1], re.MULTILINE)


def test_its_claims_stand_in_checked_cells(notebook):
    checked = [c for c in _code(notebook) if _source(c).startswith(CHECKED)]
    assert len(checked) >= 2
    for cell in checked:
        printed = cell["outputs"]
        assert printed and all(o["output_type"] == "stream" and o["name"] == "stdout" for o in printed), "printed digits, booleans"


def test_it_was_run_from_top_to_bottom_without_an_error(notebook):
    assert [c["execution_count"] for c in _code(notebook)] == list(range(1, len(_code(notebook)) + 1))
    kinds = [o["output_type"] for c in _code(notebook) for o in c["outputs"]]
    assert "error" not in kinds
    assert not [o for c in _code(notebook) for o in c["outputs"] if o.get("name") == "stderr"]


def test_formulas_are_formulas_and_pictures_pictures(notebook):
    shown = [o["data"] for c in _code(notebook) for o in c["outputs"] if "data" in o]
    assert any({"text/latex", "text/html", "text/markdown"} & set(data) for data in shown)
    for data in shown:
        if "Figure" in "".join(data["text/plain"]):
            assert "image/png" in data, "a reader who has not trusted the notebook sees no svg"
            assert base64.b64decode(data["image/png"])[1:4] == b"PNG"


def test_a_notebook_carries_the_template_of_a_derivation():
    """So that it runs copied alone into an empty folder."""
    carried = [_source(c) for c in _code(_read(FOLDER/"check_my_derivation.ipynb")) if _source(c).startswith("template = ")]
    assert [ast.literal_eval(c.removeprefix("template = ")) for c in carried] == [
        (FOLDER.parent/"derivations"/"_template.py").read_text(encoding="utf-8")]


def test_it_speaks_of_no_machine(notebook):
    text = json.dumps({**notebook, "cells": [{k: v for k, v in c.items() if k != "outputs"} for c in notebook["cells"]]})
    text += "".join(json.dumps(o) for c in _code(notebook) for o in c["outputs"] if "image/png" not in o.get("data", {}))
    assert not re.search(r"(/home/|/root/|/tmp/|/Users/|/work/|[A-Z]:\\\\)", text)
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert notebook["nbformat"] == 4 and len({c["id"] for c in notebook["cells"]}) == len(notebook["cells"])


def test_links_lead_to_files_that_are_there(notebook):
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            for target in re.findall(r"\]\(([^)#]+)\)", _source(cell)):
                assert target.startswith("https://") or (FOLDER/target).exists(), target


def test_code_fits_its_cell(notebook):
    assert max(len(line) for c in _code(notebook) for line in _source(c).splitlines()) <= 120
