"""Lets the tests here import the generator beside them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
