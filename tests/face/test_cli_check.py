"""hermitex check: pages are re-checked, a planted error is named, the appendix compiles."""

import json
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from hermitex.face.cli import main

TEMPLATE = Path(__file__).parents[2]/"derivations"/"_template.py"


def test_the_template_holds(capsys):
    assert main(["check", str(TEMPLATE), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["derivations"]
    assert [s["status"] for s in found[0]["steps"]] == ["proved", "refuted", "proved"]
    assert found[0]["passed"] and set(found[0]["steps"][0]) >= {"rule", "status", "digits"}


def test_a_planted_error_is_named_with_a_counter_example(tmp_path, capsys):
    wrong = tmp_path/"wrong.py"
    wrong.write_text(TEMPLATE.read_text().replace("sqrt(c)*E(Derivative", "c*E(Derivative"))
    assert main(["check", str(wrong)]) == 1
    out = capsys.readouterr().out
    assert "FAILS   Stein" in out and "ratio" in out


def test_an_appendix_of_a_wrong_page_says_so(tmp_path, capsys):
    wrong, tex, md = tmp_path/"wrong.py", tmp_path/"a.tex", tmp_path/"a.md"
    wrong.write_text(TEMPLATE.read_text().replace("sqrt(c)*E(Derivative", "c*E(Derivative"))
    assert main(["check", str(wrong), "--latex", str(tex), "--markdown", str(md)]) == 1
    title, _, said, *_ = tex.read_text().partition(r"\section")[2].splitlines()
    assert "spiked" in title and said == r"\paragraph{Not established.} Checks that do not hold: Stein; conclusion."
    assert "**Not established.** Checks that do not hold: Stein; conclusion." in md.read_text()
    assert main(["check", str(TEMPLATE), "--latex", str(tex)]) == 0 and "Not established" not in tex.read_text()
    capsys.readouterr()


@pytest.mark.parametrize("text, said", [("x = 1\n", "defines no hermitex.Result"),
                                        ("import nowhere\n", "line 1: ModuleNotFoundError"),
                                        ("1 +\n", "line 1: SyntaxError"), ("raise SystemExit(3)\n", "SystemExit")])
def test_a_file_that_is_no_derivation(tmp_path, capsys, text, said):
    (tmp_path/"bad.py").write_text(text)
    assert main(["check", str(tmp_path/"bad.py")]) == 2
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1


def test_paths(tmp_path, capsys):
    assert main(["check", str(tmp_path)]) == 2
    assert main(["check", str(tmp_path/"none.py")]) == 2
    (tmp_path/"a.toml").write_text("")
    assert main(["check", str(tmp_path/"a.toml")]) == 2
    assert all(line.startswith("hermitex: ") for line in capsys.readouterr().err.splitlines())


def test_appendix_markdown_and_bibliography(tmp_path, capsys):
    out = [tmp_path/"a.tex", tmp_path/"a.md", tmp_path/"a.bib"]
    options = [w for name, path in zip(("--latex", "--markdown", "--bib"), out, strict=True) for w in (name, str(path))]
    assert main(["check", str(TEMPLATE), *options]) == 0
    tex, md, bib = (p.read_text() for p in out)
    assert r"\documentclass{article}" in tex and r"\bibitem{cui2024}" in tex
    assert "$$" in md and bib.startswith("@inproceedings{cui2024,")
    capsys.readouterr()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex")
@pytest.mark.parametrize("host", [None, "\\documentclass[twocolumn]{article}\n\\usepackage{amsmath,amssymb}\n"
                                  "\\begin{document}\n\\appendix\n\\input{a.tex}\n\\end{document}\n"])
def test_the_appendix_compiles_alone_and_inside_a_paper(tmp_path, host):
    assert main(["check", str(TEMPLATE), "--latex", str(tmp_path/"a.tex")]) == 0
    name = "a.tex"
    if host:
        name = "host.tex"
        (tmp_path/name).write_text(host)
    done = subprocess.run(["pdflatex", "-interaction=nonstopmode", "-halt-on-error", name], cwd=tmp_path, capture_output=True,
                          text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout[-2000:]


def test_how_far_it_is_goes_to_stderr(capsys):
    assert main(["check", str(TEMPLATE), "--json", "--progress"]) == 0
    said = capsys.readouterr()
    assert said.err.startswith("check: 1 of 1 files, ") and json.loads(said.out)["derivations"]


@pytest.mark.slow
def test_files_are_checked_side_by_side(tmp_path, capsys):
    wrong = TEMPLATE.read_text().replace("sqrt(c)*E(Derivative", "c*E(Derivative")
    for name, text in (("a", wrong), ("b", TEMPLATE.read_text()), ("c", "x = 1\n")):
        (tmp_path/f"{name}.py").write_text(text)
    tex = tmp_path/"all.tex"
    assert main(["check", str(tmp_path), "--workers", "2", "--latex", str(tex)]) == 2   # one of them is no page
    said = capsys.readouterr()
    assert "[3 of 3]" in said.out and "FAILS   Stein" in said.out and "defines no hermitex.Result" in said.err
    assert tex.read_text().count(r"\section") == 2 and tex.read_text().count("Not established") == 1
    assert main(["check", str(tmp_path/"b.py"), "--workers", "0"]) == 2


@pytest.mark.skipif(not hasattr(signal, "SIGURG"), reason="no such signal")
def test_a_page_that_sleeps_ends_with_its_budget(tmp_path, capsys):
    """An exception that is raised at the next step of Python is not raised in what waits for the system."""
    page = tmp_path/"page.py"
    page.write_text("import time\ntime.sleep(60)\n")
    began = time.monotonic()
    assert main(["check", str(page), "--budget", "0.1"]) == 2
    assert "running it: the budget of 0.1 CPU seconds ran out" in capsys.readouterr().err and time.monotonic() - began < 30
    assert signal.getsignal(signal.SIGURG) is signal.SIG_DFL


@pytest.mark.parametrize("sides, let, status, said", [
    (["E(z*tanh(z))", "E(1 - tanh(z)**2)"], "", 0, "True: proved (integration by parts)"),
    (["E(z*f(z))", "E(f(z))"], "f: function", 1, "Stein: E[z f(z)] = E[f'(z)]"),
    (["E(w*z**2)", "w"], "w", 0, "True: proved"),
])
def test_one_equality(capsys, sides, let, status, said):
    asked = ["check", *sides, *(["--let", let] if let else [])]
    assert main(asked) == status
    assert said in capsys.readouterr().out
    assert main([*asked, "--json"]) == status
    found = json.loads(capsys.readouterr().out)
    assert [found["lhs"], found["rhs"]] == sides and found["status"] == ("fails" if status else "proved")


@pytest.mark.parametrize("asked, said", [
    (["E(w*z)", "0"], "unknown name 'w'; did you mean z? (position 3); or declare it: --let w"),
    (["E(z)", "0", "--latex", "x.tex"], "--latex belongs to derivation files"),
    ([str(TEMPLATE), "--let", "w"], "--let declares the letters of an equality"),
    (["E(z", "0"], "cannot read 'E(z'"),
])
def test_an_equality_that_cannot_be_read(capsys, asked, said):
    assert main(["check", *asked]) == 2
    assert said in capsys.readouterr().err
