"""A disk that refuses, streams that are closed or narrow, signals: one line on the command line, and nothing left behind."""

import json
import os
import signal
import stat
import subprocess
import sys
import time
import zipfile
from functools import partial
from pathlib import Path

import pytest

import hermitex
from hermitex.errors import BadInput
from hermitex.face import cli
from hermitex.show.files import check_place, write_whole
from hermitex.symbolic.interrupts import behind, heard

SPEC = """
[symbols]
alpha = "positive"
[equations]
V = "1/(alpha + V)"
[parameters]
alpha = 1
"""
PAGE = "import hermitex as hx\nprint('noise')\nimport os; os.system('echo noise')\npage = hx.Result('{title}', 'b')\n{step}\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spec.toml").write_text(SPEC)
    return tmp_path


def refused(capsys, *argv):
    assert cli.main(argv) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("hermitex: ") and err.count("\n") == 1 and len(err) < 700
    return err


def python(*words, **options):
    command = [sys.executable, "-m", "hermitex", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)


# -- files ---------------------------------------------------------------------------------------------------------------
def test_what_cannot_be_written_is_one_line_before_any_work(folder, capsys):
    (folder / "d").mkdir()
    (folder / "foreign.py").write_text("mine")
    for place, word in [("d", "folder"), ("nowhere/x.py", "does not exist"), ("x"*300 + ".py", "too long"),
                        ("foreign.py", "was not written"), ("foreign.py/x", "director"), ("/dev/full", "no space"),
                        ("a\0b.py", "null")]:
        assert word in refused(capsys, "generate", "spec.toml", "-o", place)
    assert sorted(p.name for p in folder.iterdir()) == ["d", "foreign.py", "spec.toml"]
    assert (folder / "foreign.py").read_text() == "mine"


def test_a_link_stays_a_link_and_a_mode_stays_a_mode(folder):
    (folder / "link").symlink_to("target")
    assert write_whole("link", "one") == Path("link")
    assert (folder / "target").read_text() == "one" and (folder / "link").is_symlink()
    (folder / "target").chmod(0o600)
    write_whole("link", b"two")
    assert (folder / "target").read_text() == "two"
    assert stat.S_IMODE((folder / "target").stat().st_mode) == 0o600
    write_whole("/dev/null", "x")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert sorted(p.name for p in folder.iterdir()) == ["link", "spec.toml", "target"]


def test_an_open_file_is_written_where_it_stands(folder):
    with open("f", "wb", buffering=0) as file:
        for part in (b"a", b"b", b"c"):
            write_whole(f"/dev/fd/{file.fileno()}", part) if part == b"b" else file.write(part)
    assert (folder / "f").read_text() == "abc"
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb"), pytest.raises(BrokenPipeError):
        write_whole(f"/dev/fd/{writer}", "x")


@pytest.mark.parametrize("place", ["-", "/dev/stdout"])
def test_the_standard_output_as_a_file_holds_nothing_else(folder, capfd, place):
    (folder / "page.py").write_text("import hermitex as hx\npage = hx.Result('A', 'b')\npage.step('no', 1, 2)\n")
    assert cli.main(["check", "page.py", "--markdown", place]) == 1
    out, err = capfd.readouterr()
    assert out.startswith("## A") and out.endswith("** 1 does not hold.\n")
    assert "in all: 1 does not hold\n" in err and "/dev/stdout" in err
    assert sorted(p.name for p in folder.iterdir() if p.is_file()) == ["page.py", "spec.toml"]


@pytest.mark.parametrize("call", ["os.replace", "os.fsync", "tempfile.mkstemp", "os.chmod"])
@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), OSError(28, "No space left"), KeyboardInterrupt()])
def test_a_failure_of_the_disk_leaves_the_old_file(folder, monkeypatch, call, error):
    (folder / "f").write_text("old")

    def fails(*args, **options):
        raise error

    monkeypatch.setattr(f"hermitex.show.files.{call}", fails)
    with pytest.raises(KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else BadInput):
        write_whole("f", "new")
    monkeypatch.undo()
    assert sorted(p.name for p in folder.iterdir()) == ["f", "spec.toml"] and (folder / "f").read_text() == "old"


def test_a_file_or_a_folder_that_may_not_be_written(folder, monkeypatch):
    (folder / "f").write_text("old")
    monkeypatch.setattr("hermitex.show.files.os.access", lambda path, mode: False)
    with pytest.raises(BadInput, match="may not be written"):
        check_place("f")
    with pytest.raises(BadInput, match="not writable"):
        check_place("g")


def test_a_sweep_says_what_the_disk_refuses(folder, capsys, monkeypatch):
    (folder / "spec.toml").write_text(SPEC.replace("[parameters]\nalpha = 1", "[grid]\nalpha = [1, 2]"))
    (folder / "f").write_text("")
    for place in ("f", "f/x", "a\0b"):
        assert "cannot write" in refused(capsys, "sweep", "spec.toml", "-o", place, "--workers", "1")
    (folder / "t" / "table.csv").mkdir(parents=True)
    assert "it is a folder" in refused(capsys, "sweep", "spec.toml", "-o", "t", "--workers", "1")

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("hermitex.solvers.journal.os.fsync", full)
    assert "no space left" in refused(capsys, "sweep", "spec.toml", "-o", "s", "--workers", "1")


def test_a_failed_self_test_leaves_no_file(folder, capsys, monkeypatch):
    from hermitex.systems import export

    monkeypatch.setattr(export, "_ALONE", "import sys; print('selftest: 1 points, largest deviation 1: FAILED'); sys.exit(1)")
    assert cli.main(["generate", "spec.toml", "-o", "out.py"]) == 1
    out, err = capsys.readouterr()
    assert out == "" and "fails its own self-test, nothing was written" in err and err.count("\n") == 1
    assert [p.name for p in folder.iterdir()] == ["spec.toml"]


@pytest.mark.slow
def test_a_package_in_a_zip_generates(folder):
    root = Path(hermitex.__file__).parent
    with zipfile.ZipFile(folder / "h.zip", "w") as archive:
        for path in root.rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                archive.write(path, path.relative_to(root.parent))
    done = python("generate", "spec.toml", "-o", "out.py", env={**os.environ, "PYTHONPATH": str(folder / "h.zip")})
    assert done.returncode == 0 and done.stderr == "" and (folder / "out.py").exists()


# -- derivation files ----------------------------------------------------------------------------------------------------
def test_a_page_that_runs_on_is_ended_by_its_budget(folder, capsys):
    (folder / "page.py").write_text("while True:\n    pass\n")
    assert "running it: the budget of 0.2 CPU seconds" in refused(capsys, "check", "page.py", "--budget", "0.2")


def test_a_page_without_a_step_does_not_hold(folder, capsys):
    (folder / "page.py").write_text(PAGE.format(title="A", step="page.text('words')"))
    assert cli.main(["check", "page.py"]) == 1
    assert "it has no step" in capsys.readouterr().out
    assert not hermitex.Result("A", "b").check()


def test_what_a_page_prints_does_not_enter_the_json(folder):
    steps = "page.step('a', '(z + 1)**2', 'z**2 + 2*z + 1')\npage.test('t', lambda: print('noise') or True)"
    (folder / "page.py").write_text(PAGE.format(title=r"\x1b[31m", step=steps))
    done = python("check", "page.py", "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["derivations"][0]["passed"] and done.stderr.count("noise") == 3
    shown = python("check", "page.py")
    assert shown.returncode == 0 and "noise" not in shown.stdout and "\x1b" not in shown.stdout and "all hold" in shown.stdout


def test_help_says_what_is_run(capsys):
    said_of = {("--help",): "are Python, and are run", ("check", "--help"): "it is run", ("generate", "--help"): "it is run"}
    for words, said in said_of.items():
        assert cli.main(words) == 0
        assert said in " ".join(capsys.readouterr().out.split())


# -- streams -------------------------------------------------------------------------------------------------------------
def shell(command, **env):
    command = command.replace("hermitex", f"{sys.executable} -m hermitex")
    return subprocess.run(["sh", "-c", command], capture_output=True, timeout=60, check=False, env={**os.environ, **env})


def test_closed_and_full_streams():
    done = shell("hermitex nix 2>&-")
    assert done.returncode == 2 and done.stdout == b"" == done.stderr
    done = shell("hermitex cite T24 >&-")
    assert done.returncode == 2 and done.stderr.count(b"\n") == 1 and b"standard output is closed" in done.stderr
    done = shell("hermitex cite T24 >/dev/full")
    assert done.returncode == 2 and done.stderr == b"hermitex: no space left on device (standard output)\n"
    assert shell("hermitex nix 2>/dev/full").returncode == 2
    assert shell("hermitex cite T24 <&- | head -1").stdout.startswith(b"@")


@pytest.mark.parametrize("env", [{"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, {"PYTHONIOENCODING": "ascii"},
                                 {"PYTHONIOENCODING": "latin-1"}])
def test_what_an_encoding_lacks_is_escaped(env):
    done = shell("hermitex nix-α-\U0001f600", **env)
    assert done.returncode == 2 and done.stderr.count(b"\n") == 1 and b"Traceback" not in done.stderr
    done = shell("hermitex cite T24 λ --json", **env)
    assert done.returncode == 2 and done.stderr.startswith(b"hermitex: ")


# -- signals -------------------------------------------------------------------------------------------------------------
def test_an_interrupt_stays_one_whatever_a_library_makes_of_it(capsys, monkeypatch):
    def library(args):
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as error:
            try:
                raise SystemError("returned a result with an exception set") from error
            except SystemError as inner:
                raise SystemError("again") from inner

    with pytest.raises(KeyboardInterrupt), heard():
        library(None)
    monkeypatch.setattr("hermitex.face.verbs.cite_verb.run", library)
    assert cli.main(["cite", "x"]) == 130
    assert capsys.readouterr().err == "hermitex: interrupted\n"
    assert behind(ValueError()) is None
    with pytest.raises(SystemError), heard():
        raise SystemError("of its own")


def test_an_interrupt_inside_flint(monkeypatch):
    from sympy import exp, sin, sqrt, tanh

    from hermitex import E
    from hermitex.symbolic.precise import enclose
    from hermitex.symbols import z

    if not hasattr(signal, "setitimer"):
        pytest.skip("no timer")

    def ring(number, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, ring)
    seen = set()
    try:
        for k in range(40):
            node = E(tanh((3 + k)*z)**2*sin(z)**2*exp(-tanh(z)**2)*sqrt(1 + z**2), z)
            try:
                try:
                    signal.setitimer(signal.ITIMER_REAL, 0.002 + 0.003*k)
                    enclose(node, 15)
                    seen.add("done")
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except BaseException as error:  # the alarm may ring in `finally`, too
                seen.add(type(error).__name__)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert "KeyboardInterrupt" in seen and seen <= {"KeyboardInterrupt", "done"}


def test_an_interrupt_that_a_library_swallows_is_told_at_the_end(capsys, monkeypatch):
    """An import that may fail catches what is left of a KeyboardInterrupt: the answer may be another one then."""
    def body(argv):
        try:
            signal.raise_signal(signal.SIGINT)
        except BaseException:
            return 0
        return 1

    monkeypatch.setattr(cli, "_dispatch", body)
    assert cli.main([]) == 130 and capsys.readouterr().err == "hermitex: interrupted\n"


@pytest.mark.slow
def test_an_interrupted_sweep_says_one_line(folder):
    grid = '[grid]\nalpha = "1:2:40000"\nlam = [1, 2, 3]\n[sweep]\nchunk = 5'
    text = SPEC.replace("[parameters]\nalpha = 1", grid).replace("1/(alpha + V)", "1/(alpha + lamda*V + E(tanh(V*z)**2, z))")
    (folder / "spec.toml").write_text(text.replace("lam =", "lamda ="))
    for k, wait in enumerate((0.4, 0.9, 1.6, 2.0, 2.4, 3.5)):  # before the first import, while workers start, at work
        whole = k % 2 == 1  # a terminal interrupts the workers too
        command = [sys.executable, "-m", "hermitex", "sweep", "spec.toml", "--workers", "2", "-o", f"d{k}"]
        work = subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                                preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL))  # a shell's background ignores it
        time.sleep(wait)
        (os.killpg if whole else os.kill)(work.pid, signal.SIGINT)
        _, err = work.communicate(timeout=60)
        assert work.returncode in (130, -signal.SIGINT) and err == "hermitex: interrupted\n"
