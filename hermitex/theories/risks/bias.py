"""inf over b of the bounds for sigma(r kappa + b + sqrt(c) z), at one (r, c)  [cui2024, Eq. (132)]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from hermitex.theories.features.smoothed import Smoothed
from hermitex.theories.risks.directions_projection import DirectedMoments, project_target
from hermitex.theories.risks.minimum import Infimum, find_infimum
from hermitex.theories.risks.projection import Projection, Target

Array = np.ndarray[Any, Any]
Aim: TypeAlias = Target | DirectedMoments

RATES = np.geomspace(0.02, 60, 60)   # spikes r that a minimisation scans


class Vocabulary(NamedTuple):
    """A vocabulary: letter k has the spike r u_k, the bulk's variance c_k (None: the common c) and the bias b_k."""

    u: tuple[float, ...] = (1.0,)
    c: tuple[float, ...] | None = None
    b: tuple[float, ...] = (0.0,)

    def columns(self, r: Array, c: Array, b: Array | float = 0.0) -> tuple[Array, Array, Array]:
        """r u_k, c_k, b + b_k at one axis of points, shape (points, K)."""
        rs, cs, bs = (np.array(v, dtype=float).reshape(-1, 1) for v in np.broadcast_arrays(r, c, b))
        sizes = np.broadcast_to(cs if self.c is None else np.array(self.c), (rs.size, len(self.u)))
        return rs*np.array(self.u), sizes, bs + np.array(self.b)


ONE = Vocabulary()


def bounds_at(smoothed: Smoothed, target: Aim, r: Array, c: Array, b: Array | float = 0.0, *, letters: Vocabulary = ONE,
              quick: Mapping[float, Smoothed] | None = None) -> Projection:
    """`project` for one activation, or the letters of a vocabulary, at one axis of points; `quick`: by c, in its place."""
    rs, cs, bs = letters.columns(r, c, b)
    known = [smoothed if quick is None else quick.get(float(v), smoothed) for v in (cs[0] if len(cs) else letters.u)]
    return project_target(known, target, rs, cs, bs)


def over_bias(smoothed: Smoothed, parts: Mapping[float, tuple[Array, Aim]], at: tuple[Array, Array], letters: Vocabulary
              ) -> dict[str, Any]:
    """The bounds minimised over the bias of all letters, point by point."""
    size = at[0].size
    names = ("upper_bias", "lower_bias", "b_upper", "b_lower")
    out: dict[str, Any] = {n: np.full(size, np.nan) for n in names}
    notes: list[str] = []
    for rows, target in parts.values():
        for i in rows:
            for which, found in best_bias(smoothed, target, at[0][i], at[1][i], letters).items():
                out[f"{which}_bias"][i] = found.value
                out[f"b_{which}"][i] = np.nan if found.at is None else found.at
                if found.at is None:
                    notes.append(f"{which} bound with a bias: the infimum is at b -> {found.end:g}, its limit is {found.said}")
    return {**out, "notes": list(dict.fromkeys(notes))}


def best_bias(smoothed: Smoothed, target: Aim, r: float, c: float, letters: Vocabulary = ONE) -> dict[str, Infimum]:
    """The infimum over the bias of each bound at one (r, c)."""
    far = 6.0  # deviations of a pre-activation that a bias may shift
    (rs, cs, bs) = (v[0] for v in letters.columns(np.asarray(r), np.asarray(c)))
    reach = far*float(np.sqrt(rs**2 + cs).max()) + 2 + float(np.abs(bs).max())
    quick = {float(v): smoothed.tabulated(float(v), 14*float(np.abs(rs).max()) + 20*reach) for v in cs}
    known: dict[bytes, Projection] = {}

    def values(which: str, b: Array) -> Array:
        key = np.asarray(b).tobytes()
        if key not in known:
            known[key] = bounds_at(smoothed, target, np.asarray(r), np.asarray(c), b, letters=letters, quick=quick)
        return np.asarray(getattr(known[key], which))

    found = {}
    biases = np.linspace(-1, 1, 121)  # in units of the reach of a pre-activation
    inside = bounds_at(smoothed, target, np.asarray(r), np.asarray(c), letters=letters)
    for which in ("upper", "lower"):
        best = find_infimum(lambda b, w=which: values(w, b), reach*biases, (-np.inf, np.inf))  # type: ignore[misc]
        # No bias is one of the biases.
        at_zero = float(getattr(inside, which)[0])
        found[which] = Infimum(at_zero, 0.0, np.nan, 0.0) if at_zero <= best.value else best
    return found
