"""inf over b of the bounds for sigma(r kappa + b + sqrt(c) z), at one (r, c)  [cui2024, Eq. (132)]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hermitex.theories.features.smoothed import Smoothed
from hermitex.theories.risks.minimum import Infimum, find_infimum
from hermitex.theories.risks.projection import Projection, Target, project

Array = np.ndarray[Any, Any]

RATES = np.geomspace(0.02, 60, 60)   # spikes r that a minimisation scans


def bounds_at(smoothed: Smoothed, target: Target, r: Array, c: Array, b: Array | float = 0.0) -> Projection:
    """`project` for one activation, at one axis of points."""
    columns = np.broadcast_arrays(r, c, b)
    return project([smoothed], target, *(np.array(v, dtype=float).reshape(-1, 1) for v in columns))


def over_bias(smoothed: Smoothed, parts: Mapping[float, tuple[Array, Target]], at: tuple[Array, Array]) -> dict[str, Any]:
    """The bounds minimised over the bias, point by point."""
    size = at[0].size
    names = ("upper_bias", "lower_bias", "b_upper", "b_lower")
    out: dict[str, Any] = {n: np.full(size, np.nan) for n in names}
    notes: list[str] = []
    for rows, target in parts.values():
        for i in rows:
            for which, found in best_bias(smoothed, target, at[0][i], at[1][i]).items():
                out[f"{which}_bias"][i] = found.value
                out[f"b_{which}"][i] = np.nan if found.at is None else found.at
                if found.at is None:
                    notes.append(f"{which} bound with a bias: the infimum is at b -> {found.end:g}, its limit is {found.said}")
    return {**out, "notes": list(dict.fromkeys(notes))}


def best_bias(smoothed: Smoothed, target: Target, r: float, c: float) -> dict[str, Infimum]:
    """The infimum over the bias of each bound at one (r, c)."""
    far = 6.0  # deviations of a pre-activation that a bias may shift
    reach = far*np.sqrt(r*r + c) + 2
    quick = smoothed.tabulated(c, 14*abs(r) + 20*reach)
    known: dict[bytes, Projection] = {}

    def values(which: str, b: Array) -> Array:
        key = np.asarray(b).tobytes()
        if key not in known:
            known[key] = bounds_at(quick, target, np.asarray(r), np.asarray(c), b)
        return np.asarray(getattr(known[key], which))

    found = {}
    biases = np.linspace(-1, 1, 121)  # in units of the reach of a pre-activation
    for which in ("upper", "lower"):
        inside = bounds_at(smoothed, target, np.asarray(r), np.asarray(c))
        best = find_infimum(lambda b, w=which: values(w, b), reach*biases, (-np.inf, np.inf))  # type: ignore[misc]
        # No bias is one of the biases.
        at_zero = float(getattr(inside, which)[0])
        found[which] = Infimum(at_zero, 0.0, np.nan, 0.0) if at_zero <= best.value else best
    return found
