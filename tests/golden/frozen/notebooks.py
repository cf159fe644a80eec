"""The text that the checked cells of a notebook print: numbers with the digits that the notebook claims.

`pytest --nbval-lax notebooks` makes sure that the stored text is what the cells print. Here the stored text is compared with
the frozen one, which costs nothing; `python tests/golden notebooks --all` executes the cells, too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from . import comparison
from .entries import ROOT, Entry, Part

FOLDER = ROOT / "notebooks"
CHECKED = "# NBVAL_CHECK_OUTPUT"
# Executes the cells of a notebook in order and writes what the checked ones print, as a JSON list.
CELLS = """
import contextlib, io, json, sys
import matplotlib
matplotlib.use("Agg")
space, printed = {"__name__": "__main__"}, []
for source in json.load(sys.stdin):
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        exec(compile("\\n".join("" if line.startswith("%") else line for line in source.splitlines()), "cell", "exec"), space)
    if source.startswith("# NBVAL_CHECK_OUTPUT"):
        printed.append(shown.getvalue().splitlines())
print(json.dumps(printed))
"""


def cells(name: str) -> list[dict[str, Any]]:
    notebook = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def stored(name: str) -> list[list[str]]:
    """The lines of each checked cell, as they stand in the file."""
    checked = [cell for cell in cells(name) if "".join(cell["source"]).startswith(CHECKED)]
    return ["".join("".join(output["text"]) for output in cell["outputs"]).splitlines() for cell in checked]


def executed(name: str) -> list[list[str]]:
    """The lines that each checked cell prints now."""
    sources = json.dumps(["".join(cell["source"]) for cell in cells(name)])
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run([sys.executable, "-c", CELLS], input=sources, capture_output=True, text=True, check=False, cwd=FOLDER,
                          env={**os.environ, "PYTHONPATH": paths})
    return json.loads(done.stdout) if done.returncode == 0 else [[done.stderr.splitlines()[-1]]]


def ask(entry: Entry) -> Any:
    return stored(entry["name"])


def ask_thoroughly(entry: Entry) -> Any:
    return executed(entry["name"])


def compare(entry: Entry, answer: Any) -> str | None:
    if len(entry["expected"]) != len(answer):
        return f"{entry['name']}: {len(entry['expected'])} checked cells were expected, {len(answer)} came"
    for k, (expected, found) in enumerate(zip(entry["expected"], answer, strict=True), 1):
        if said := comparison.text(expected, found):
            return f"{entry['name']}: checked cell {k}: {said}"
    return None


def judge(entry: Entry, answer: Any) -> str:
    """Changed: the numbers are the same, the words are not."""
    return comparison.judge(json.dumps(entry["expected"]), json.dumps(answer))


PART = Part("notebooks", "the numbers of every notebook", ask, compare, judge, thoroughly=ask_thoroughly)
