"""Every theory takes anything for any argument, and answers in one line: drawn arguments of the wrong kind, and numbers of none."""

import inspect
import random

import numpy as np
import pytest

import hermitex as hx
from hermitex.errors import HermitexError

JUNK = [None, 5, -1, 0, 1.5, "tanh", "z1*z2", "sign(z)", "nonsense", "", "z**", [], [1, 2], {}, {"a": 1}, float("nan"),
        float("inf"), True, np.array([1.0, 2.0]), (1, 2), "1/0", "hinge", object(), 1e308, 10**30, "0.1:2:5", b"x", 1j]
KNOWN = {"sigma": "tanh", "g": "sin", "loss": "square"}
RECORDS = ("Curve", "Theory", "Trajectory")  # what theories return
NAMES = [n for n in dir(hx.theories) if not n.startswith("_") and callable(getattr(hx.theories, n)) and n not in RECORDS]


def attempt(rng):
    """Make a drawn theory, and solve it, with arguments of which most are wrong."""
    name = rng.choice(NAMES)
    made = getattr(hx.theories, name)
    given = {}
    for p in inspect.signature(made).parameters.values():
        if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL) and (p.default is p.empty or rng.random() < 0.25):
            given[p.name] = KNOWN[p.name] if p.name in KNOWN and rng.random() < 0.6 else rng.choice(JUNK)
    numbers = {k: rng.choice([0.5, 1.0, 2.0]) for k in ("alpha", "lam", "r", "c", "gamma") if rng.random() < 0.6}
    theory = made(**given)
    if hasattr(theory, "solve"):
        asked = [str(p) for p in getattr(theory, "parameters", ())] or ["alpha", "lam"]
        theory.solve(**{k: numbers.get(k, rng.choice(JUNK)) for k in asked})


@pytest.mark.parametrize("seed", range(4))
def test_what_is_of_the_wrong_kind_gets_a_line(seed):
    rng = random.Random(seed)
    for _ in range(100):
        try:
            attempt(rng)
        except HermitexError as error:
            assert str(error).strip()
