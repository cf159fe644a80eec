"""Command lines: exit code and stdout, and on bad input one line on stderr that names what is wrong."""

from __future__ import annotations

import contextlib
import io
import json
import shlex
import tempfile
import tomllib
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from . import comparison
from .entries import ROOT, Entry, Part

BAD_INPUT = 2  # the exit code


@cache
def command_line() -> Callable[[list[str]], int]:
    """The function behind the script `hermitex`, as pyproject.toml names it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    module, _, name = project["project"]["scripts"]["hermitex"].partition(":")
    return getattr(import_module(module), name)


def run(argv: list[str]) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command, in this process: starting an interpreter costs more than most answers."""
    out, err = io.StringIO(), io.StringIO()
    code: Any
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = command_line()(argv)
        except SystemExit as stop:
            code = stop.code
    return int(code or 0), out.getvalue(), err.getvalue()


def ask(entry: Entry) -> Any:
    """Run the command in an empty folder that holds the entry's `files`."""
    argv = shlex.split(entry["command"])[1:]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name, lines in entry.get("files", {}).items():
            Path(name).write_text("\n".join(lines) + "\n", encoding="utf-8")
        code, out, err = run(argv)
    answer: dict[str, Any] = {"exit": code, "stdout": out.rstrip("\n").splitlines()}
    if "--json" in argv and code != BAD_INPUT:
        answer["stdout"] = json.loads(out)
    if code == BAD_INPUT:
        answer |= {"stderr_lines": len(err.splitlines()), "named": entry.get("names", "") in err}
    return answer


def compare(entry: Entry, answer: Any) -> str | None:
    expected, digits = entry["expected"], entry.get("digits", 10)
    for key in expected:
        if key != "stdout" and answer.get(key) != expected[key]:
            return f"{key} {expected[key]} was expected, {answer.get(key)} came"
    kinds = {type(expected["stdout"]), type(answer["stdout"])}
    if kinds == {list} and all(isinstance(x, str) for x in expected["stdout"]):
        return comparison.text(expected["stdout"], answer["stdout"], digits)
    return comparison.value(expected["stdout"], answer["stdout"], digits, at="stdout")


def judge(entry: Entry, answer: Any) -> str:
    """Better: a refusal became an answer. Changed: the numbers are the same, the words are not."""
    before, after = entry["expected"], answer
    if before["exit"] != after["exit"]:
        return "better" if (before["exit"], after["exit"]) == (1, 0) else "worse"
    return comparison.judge(json.dumps(before["stdout"]), json.dumps(after["stdout"]), entry.get("digits", 10))


PART = Part("commands", "command lines with exit code and stdout", ask, compare, judge)
