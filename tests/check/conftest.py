"""Lets the tests here import the lists of claims that stand beside them and beside the tests of formulas."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1]/"symbolic")]
