"""What the README and the documentation show is what happens; the README's two commands are the ones that CI runs."""

import doctest
import inspect
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import hermitex
from hermitex.face import cli

ROOT = Path(__file__).parents[1]
PAGES = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
         if path.name not in ("atlas.md", "references.md", "changelog.md")}  # those are made from the package
README = PAGES["README.md"]
BLOCKS = {name: re.findall(r"^```(\w+)\n(.*?)^```$", text, flags=re.M | re.S) for name, text in PAGES.items()}
SESSIONS = [session for blocks in BLOCKS.values() for language, text in blocks if language == "console"
            for session in re.split(r"^(?=\$ )", text, flags=re.M) if session]
TOURS = {name: "\n".join(text for language, text in blocks if language == "python") for name, blocks in BLOCKS.items()}


def answer(command, capsys):
    """What a shell shows for a command: stdout, then stderr."""
    program, *argv = shlex.split(command)
    assert program == "hermitex"
    cli.main(argv)
    return "".join(capsys.readouterr())


def answer_alone(command):
    """The same from a process of its own, which has not met an equal average by another name of its variable."""
    argv = [sys.executable, "-m", "hermitex", *shlex.split(command)[1:]]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@pytest.mark.parametrize("session", SESSIONS, ids=lambda s: s.splitlines()[0][2:60])
def test_the_console_shows_what_it_says(session, capsys):
    command, _, shown = session[2:].partition("\n")
    printed = answer_alone(command) if "no closed form" in shown else answer(command, capsys)
    assert [line.rstrip() for line in printed.splitlines()] == [line.rstrip() for line in shown.splitlines()]


@pytest.mark.parametrize("page", [name for name, text in TOURS.items() if text])
def test_the_python_tour(page):
    test = doctest.DocTestParser().get_doctest(TOURS[page], {}, page, page, 0)
    assert test.examples
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    assert runner.run(test).failed == 0


def test_what_was_shown_once_is_shown_still():
    assert len(SESSIONS) >= 16 and sum(text.count(">>>") for text in TOURS.values()) >= 60


def test_links_lead_somewhere():
    for name, text in PAGES.items():
        folder = ROOT if name == "README.md" else ROOT / "docs"
        for target in re.findall(r"\]\(([^)#]+)\)", text):
            if not target.startswith("http"):
                beside = ROOT / target if target.startswith("notebooks/") else folder / target
                assert beside.exists(), f"{name}: {target}"


def test_every_command_of_the_table_exists():
    names = re.findall(r"`hx\.([\w.]+)", README) + re.findall(r"`hx\.([\w.]+)", PAGES["gallery.md"])
    assert len(names) > 10
    for name in names:
        thing = hermitex
        for part in name.split("."):
            thing = getattr(thing, part)


def test_two_commands_stand_on_top_and_ci_runs_the_second():
    blocks = BLOCKS["README.md"]
    commands = [text.strip() for language, text in blocks if language == "sh"]
    assert len(commands) == 2 and [language for language, _ in blocks[:2]] == ["sh", "sh"]
    assert commands[0] == 'pip install ".[plot,data]" && hermitex exponents "z**3 - 3*z"'
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    pattern = re.search(r"grep -E '(.*)' README\.md", ci)[1]
    assert [line for line in README.splitlines() if re.search(pattern, line)] == [commands[1]]
    assert 'bash -c "$tests"' in ci and ci.startswith("#!/usr/bin/env bash") and "set -euo pipefail" in ci


def test_every_public_docstring_says_what_it_guarantees():
    objects = [getattr(owner, name) for owner in (hermitex, hermitex.theories) for name in owner.__all__]
    documented = [thing for thing in objects if inspect.isclass(thing) or inspect.isfunction(thing)]
    methods = [hermitex.Expectation.doit, hermitex.Expectation.evalf, hermitex.System.solve, hermitex.Flow.solve,
               hermitex.Result.check, hermitex.theories.Theory.solve, hermitex.theories.Theory.curve]
    assert len(documented) > 70
    for thing in (*documented, *methods):
        said = inspect.getdoc(thing)
        assert "Guarantee" in said and "docs/promise.md" in " ".join(said.split()), thing


def test_the_metadata_agree():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    released = re.search(r"^date-released: (\d{4}-\d\d-\d\d)$", citation, flags=re.M)[1]
    assert project["version"] == hermitex.__version__
    assert f"\nversion: {hermitex.__version__}\n" in citation and "cff-version: 1.2.0\n" in citation
    address = project["urls"]["Repository"]
    assert f'repository-code: "{address}"' in citation and f"git clone {address}" in README
    assert all(f"\n{key}:" in citation for key in ("message", "title", "authors", "license"))
    assert f"\n## {hermitex.__version__} - {released}\n" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert set(project["optional-dependencies"]) >= {"plot", "data", "notebook", "dask", "test", "docs", "all"}


@pytest.mark.parametrize("spec", [text for blocks in BLOCKS.values() for language, text in blocks if language == "toml"])
def test_a_spec_that_is_shown_is_solved(spec, tmp_path, capsys):
    (tmp_path/"spec.toml").write_text(spec)
    assert cli.main(["sweep", str(tmp_path/"spec.toml"), "--workers", "1", "-o", str(tmp_path/"run")]) == 0
    assert ", 0 failed" in capsys.readouterr().out
