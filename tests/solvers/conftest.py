"""Puts this folder on the path, so that worker processes can import the problems that the tests solve."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
