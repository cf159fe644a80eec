"""deadline = budget + grace, for the verbs of the command line; see `hermitex.symbolic.deadline`."""

from __future__ import annotations

from hermitex.symbolic.deadline import deadline

__all__ = ["deadline"]
