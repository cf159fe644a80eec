"""Conditions at numbers: a parameter of a law is in the range of that law, and one declared positive is not below 0.

    "law [0.0, 1.0] Bernoulli needs 0 <= b <= 1": the value of b
    "law [0.0, inf] a stands for a positive number (declare it real for others)": the value of a
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

LAW = "law "


def violated_conditions(outputs: Mapping[str, Any], shape: tuple[int, ...]) -> np.ndarray:
    """Of each point the condition that does not hold there, and an empty text where all do.

    Examples
    --------
    >>> violated_conditions({"law [0.0, 1.0] Bernoulli needs 0 <= b <= 1": np.array([0.5, 1.5])}, (2,)).tolist()
    ['', 'Bernoulli needs 0 <= b <= 1, not 1.5']
    """
    why = np.full(shape, "", dtype=object)
    for key, value in outputs.items():
        if key.startswith(LAW):
            low, high, below, above, said = _read(key)
            x = np.asarray(value, dtype=float).reshape(-1)
            if (bad := below(x, low) | above(x, high)).any():
                x = np.broadcast_to(x, shape)
                for k in np.flatnonzero(bad & (why == "")):
                    why[k] = f"{said}, not {x[k]:.6g}"
    return why


@lru_cache(maxsize=1024)
def _read(key: str) -> tuple[float, float, np.ufunc, np.ufunc, str]:
    """The ends of the interval, which numbers are below and above it, and the words of the condition."""
    low, rest = key[len(LAW) + 1:].split(", ", 1)
    end = min(rest.find(c) for c in ")]" if c in rest.split(" ", 1)[0])
    below, above = np.less_equal if key[len(LAW)] == "(" else np.less, np.greater_equal if rest[end] == ")" else np.greater
    return float(low), float(rest[:end]), below, above, rest[end + 2:]
