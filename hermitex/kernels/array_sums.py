"""Arrays that are summed over: as they are given, and as generated code reads them, each along the axes of its indices.

    eta of shape (N,) under the index k   ->   s["eta_k"] of shape (1, .., N, .., 1)
    the index itself, and how far it runs ->   s["k_place"] = 0, 1, .., N - 1 along its axis, s["k_place_length"] = N
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from hermitex.errors import NO_NUMBER, BadInput, UnknownName, brief
from hermitex.solvers.sweep_grid import real_array


class Entry(NamedTuple):
    """What generated code reads under `letter`: an array along the axes `places`; without an array, the places themselves."""

    letter: str
    array: str
    places: tuple[int, ...]
    indices: tuple[str, ...]
    first: int = 0
    terms: int = 0  # how many places there are, of a sum over numbers


class Arrays(NamedTuple):
    """The arrays of generated code."""

    entries: tuple[Entry, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The arrays, each once."""
        return _names(self.entries)

    def read(self, numbers: Mapping[str, Any], ndim: int, asking: str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """(arrays of `ndim` axes that generated code reads; the plain numbers)."""
        found, rest = split_arrays(self.entries, numbers, asking)
        return lay_out_arrays(self.entries, found, ndim, asking), rest


def _names(entries: Iterable[Entry]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(e.array for e in entries if e.array))


def split_arrays(entries: Iterable[Entry], numbers: Mapping[str, Any], asking: str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """(the arrays, checked; the other numbers).

    Raises
    ------
    BadInput : an array is missing, has another number of indices than its sum, is empty, or holds an entry that is not finite.
    """
    entries = tuple(entries)
    found = {}
    for name in _names(entries):
        depth = next(len(e.places) for e in entries if e.array == name)
        if name not in numbers:
            near = UnknownName(name, [n for n in numbers if n not in _names(entries)]).close_matches
            meant = f"; is {near[0]} meant for it?" if near else ""
            raise BadInput(f"{asking}: {name} has no value; it is an array that is summed over{meant}")
        try:
            value = real_array(numbers[name])
        except NO_NUMBER:
            raise BadInput(f"{asking}: {name} = {brief(numbers[name])} is not an array of numbers") from None
        if value.ndim != depth:
            raise BadInput(f"{asking}: {name} is summed over {depth} {'index' if depth == 1 else 'indices'}, and its shape is "
                           f"{value.shape}; it is an array of {depth} {'dimension' if depth == 1 else 'dimensions'}")
        if not value.size:
            raise BadInput(f"{asking}: the array {name} is empty")
        if not np.isfinite(value).all():
            raise BadInput(f"{asking}: {name} holds {value[~np.isfinite(value)][0]}; every entry must be finite")
        found[name] = value
    return found, {n: v for n, v in numbers.items() if n not in found}


def lay_out_arrays(entries: Iterable[Entry], values: Mapping[str, np.ndarray], ndim: int, asking: str) -> dict[str, Any]:
    """What generated code reads, in arrays of `ndim` axes.

    Raises
    ------
    BadInput : two arrays under one index have different lengths.

    Examples
    --------
    >>> entries = [Entry("eta_k", "eta", (1,), ("k",)), Entry("k_place", "", (1,), ("k",))]
    >>> {n: v.shape for n, v in lay_out_arrays(entries, {"eta": np.ones(5)}, 2, "solve").items()}
    {'eta_k': (1, 5), 'k_place': (1, 5), 'k_place_length': ()}
    """
    lengths: dict[str, tuple[int, str]] = {}
    out: dict[str, Any] = {}
    for e in entries:
        for index, n in zip(e.indices, values[e.array].shape if e.array else (), strict=False):
            before, other = lengths.setdefault(index, (n, e.array))
            if before != n:
                raise BadInput(f"{asking}: the arrays {other} and {e.array} are summed over {index} together, and have "
                               f"{before} and {n} entries")
    for e in entries:
        shape = [1]*ndim
        if not e.array:
            if not e.terms and e.indices[0] not in lengths:
                raise BadInput(f"{asking}: a sum over {e.indices[0]} has no array whose length it would have")
            n = e.terms or lengths[e.indices[0]][0]
            shape[e.places[0]] = n
            out[e.letter] = (np.arange(n, dtype=float) + e.first).reshape(shape)
            out[f"{e.letter}_length"] = np.float64(n)
            continue
        for place, n in zip(e.places, values[e.array].shape, strict=True):
            shape[place] = n
        # axes in their order; of C[k, k] the diagonal
        out[e.letter] = np.einsum(values[e.array], e.places, sorted(set(e.places))).reshape(shape)
    return out
