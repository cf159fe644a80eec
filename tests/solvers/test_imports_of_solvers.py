"""Solvers know no SymPy at all, and no SciPy until a differential equation is integrated."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["newton", "chunked_sweep", "ode"])
def test_importing_a_solver_is_cheap(module):
    heavy = "('sympy', 'scipy', 'pandas', 'multiprocessing.pool')"
    script = f"import sys, hermitex.solvers.{module}; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout.strip() == "[]"
