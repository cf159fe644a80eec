"""What the README shows is what happens; its two commands are the ones that CI runs; the metadata agree."""

import doctest
import re
import shlex
import tomllib
from pathlib import Path

import pytest

import hermitex
from hermitex.face import cli

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, flags=re.M | re.S)
SESSIONS = [session for language, text in BLOCKS if language == "console"
            for session in re.split(r"^(?=\$ )", text, flags=re.M) if session]


def answer(command, capsys):
    """What a shell shows for a command: stdout, then stderr."""
    program, *argv = shlex.split(command)
    assert program == "hermitex"
    cli.main(argv)
    return "".join(capsys.readouterr())


@pytest.mark.parametrize("session", SESSIONS, ids=lambda s: s.splitlines()[0][2:60])
def test_the_console_shows_what_it_says(session, capsys):
    command, _, shown = session[2:].partition("\n")
    printed = answer(command, capsys)
    assert [line.rstrip() for line in printed.splitlines()] == [line.rstrip() for line in shown.splitlines()]


def test_the_python_tour():
    examples = "\n".join(text for language, text in BLOCKS if language == "python")
    test = doctest.DocTestParser().get_doctest(examples, {}, "README", "README.md", 0)
    assert len(test.examples) > 10
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    assert runner.run(test).failed == 0


def test_two_commands_stand_on_top_and_ci_runs_the_second():
    commands = [text.strip() for language, text in BLOCKS if language == "sh"]
    assert len(commands) == 2 and [language for language, _ in BLOCKS[:2]] == ["sh", "sh"]
    assert commands[0] == 'pip install ".[flint]" && hermitex exponents "z**3 - 3*z"'
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    pattern = re.search(r"grep -E '(.*)' README\.md", ci)[1]
    assert [line for line in README.splitlines() if re.search(pattern, line)] == [commands[1]]
    assert 'bash -c "$tests"' in ci and ci.startswith("#!/usr/bin/env bash") and "set -euo pipefail" in ci


def test_the_metadata_agree():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    released = re.search(r"^date-released: (\d{4}-\d\d-\d\d)$", citation, flags=re.M)[1]
    assert project["version"] == hermitex.__version__
    assert f"\nversion: {hermitex.__version__}\n" in citation and "cff-version: 1.2.0\n" in citation
    assert all(f"\n{key}:" in citation for key in ("message", "title", "authors", "license"))
    assert f"\n## {hermitex.__version__} - {released}\n" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert set(project["optional-dependencies"]) >= {"flint", "plot", "data", "notebook", "dask", "test", "docs", "all"}
