"""The thresholds of stages are asked here; where AMP reaches one takes as long again: see tests/face/test_reached.py."""

import pytest


@pytest.fixture(autouse=True)
def thresholds_alone(monkeypatch):
    """`hx.exponents` without the places at which later stages are reached: no test of this folder asks for them."""
    monkeypatch.setattr("hermitex.face.exponents_with_stages._with_reached", lambda found, *budgets: found)
