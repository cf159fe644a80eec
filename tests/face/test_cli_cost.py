"""What an answer costs: at most twice the CPU of importing SymPy, plus half a second."""

import subprocess
import sys

import pytest

resource = pytest.importorskip("resource", reason="CPU time of a child process is POSIX")


def cpu(*argv, runs=3):
    """The least CPU time, user and system, of a fresh interpreter."""
    spent = []
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *argv], check=True, capture_output=True, timeout=120)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(spent)


def test_an_exact_exponent_costs_little_more_than_sympy():
    assert cpu("-m", "hermitex.face.cli", "exponents", "z**3 - 3*z") <= 2*cpu("-c", "import sympy") + 0.5


def test_help_costs_nothing():
    assert cpu("-m", "hermitex.face.cli", "--help") < 0.3
