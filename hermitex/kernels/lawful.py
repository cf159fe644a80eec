"""Conditions at numbers: a parameter of a law lies where there is such a law, and one declared positive is not below 0.

    "law [0.0, 1.0] Bernoulli needs 0 <= b <= 1": the value of b
    "law [0.0, inf] a stands for a positive number (declare it real for others)": the value of a
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

LAW = "law "


def unlawful(outputs: Mapping[str, Any], shape: tuple[int, ...]) -> np.ndarray:
    """Of each point the condition that does not hold there, and an empty text where all do.

    Examples
    --------
    >>> unlawful({"law [0.0, 1.0] Bernoulli needs 0 <= b <= 1": np.array([0.5, 1.5])}, (2,)).tolist()
    ['', 'Bernoulli needs 0 <= b <= 1, not 1.5']
    """
    why = np.full(shape, "", dtype=object)
    for key, value in outputs.items():
        if key.startswith(LAW):
            low, rest = key[len(LAW) + 1:].split(", ", 1)
            end = min(rest.find(c) for c in ")]" if c in rest.split(" ", 1)[0])
            x = np.asarray(value, dtype=float).reshape(-1)
            under = x <= float(low) if key[len(LAW)] == "(" else x < float(low)
            above = x >= float(rest[:end]) if rest[end] == ")" else x > float(rest[:end])
            if np.any(bad := under | above):
                x = np.broadcast_to(x, shape)
                for k in np.flatnonzero(bad & (why == "")):
                    why[k] = f"{rest[end + 2:]}, not {x[k]:.6g}"
    return why
