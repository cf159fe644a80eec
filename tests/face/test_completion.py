"""What a shell completes: every verb and every option, from the parsers themselves."""

from __future__ import annotations

import builtins
import shutil
import subprocess

import pytest

from hermitex.face import cli


def test_without_the_library_it_says_what_to_install(capsys, monkeypatch):
    real = builtins.__import__
    monkeypatch.setattr(builtins, "__import__", lambda name, *rest: (_ for _ in ()).throw(ImportError(name)) if name == "shtab"
                        else real(name, *rest))
    assert cli.main(["completion", "bash"]) == cli.BAD_INPUT
    assert "pip install 'hermitex[completion]'" in capsys.readouterr().err


def test_an_unknown_shell_is_one_line(capsys):
    assert cli.main(["completion", "fish"]) == cli.BAD_INPUT and capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_it_knows_verbs_and_options(shell, capsys):
    pytest.importorskip("shtab")
    assert cli.main(["completion", shell]) == 0
    text = capsys.readouterr().out
    assert all(verb in text for verb in cli.VERBS) and "--sigma" in text and "--normalisation" in text
    if shell == "bash":
        assert "one-step" in text
        if program := shutil.which("bash"):  # a shell reads it
            assert subprocess.run([program, "-n"], input=text, text=True, capture_output=True, timeout=20).stderr == ""
