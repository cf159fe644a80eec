"""The list of cases that take long names cases that stand."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_every_slow_case_stands():
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n", "0", "-m", "", "-p", "no:cacheprovider"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=True).stdout
    listed = (ROOT/"tests"/"slow.txt").read_text(encoding="utf-8").splitlines()
    assert not set(listed) - set(shown.splitlines())
    assert sorted(listed) == listed
