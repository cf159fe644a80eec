"""What an answer of the command line costs, as a multiple of the CPU of importing SymPy in a fresh interpreter."""

import os
import subprocess
import sys

import pytest

resource = pytest.importorskip("resource", reason="CPU time of a child process is POSIX")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """An environment that keeps compiled modules, as a user's does: where none may be written, a run compiles them all again."""
    kept = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPYCACHEPREFIX": str(tmp_path_factory.mktemp("compiled"))}


def cpu(environment, *argv):
    """The CPU seconds, user and system, of a fresh interpreter."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *argv], check=True, capture_output=True, timeout=120, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize("argv, most", [
    (["exponents", "z**3 - 3*z"], 3.5),  # 2.2 were measured
    (["exponents", "z1*z2*z3"], 5),  # 3.5
    (["--help"], 0.5)])  # no SymPy is imported at all
def test_cost_of_an_answer(argv, most, benchmark, compiled):
    least = min(cpu(compiled, "-c", "import sympy") for _ in range(3))
    spent = []
    benchmark.pedantic(lambda: spent.append(cpu(compiled, "-m", "hermitex.face.cli", *argv)), rounds=3)
    benchmark.extra_info["ratio"] = round(min(spent)/least, 2)
    assert min(spent) <= most*least
