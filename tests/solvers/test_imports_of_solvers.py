"""Solvers know no SymPy at all, and no SciPy until a differential equation is integrated."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["newton", "sweep", "ode"])
def test_importing_a_solver_is_cheap(module):
    script = (f"import sys, hermitex.solvers.{module}; "
              "print([m for m in ('sympy', 'scipy', 'pandas', 'multiprocessing.pool') if m in sys.modules])")  # fmt: skip
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout.strip() == "[]"
