"""The points of a sweep:  grid = {a: (n_a), b: (n_b), ...}  ->  n_a n_b ... points, cut into chunks by the grid alone.

The first key runs fastest and is the continuation line. A piece is at most `chunk` consecutive points of one line; a
chunk is one piece or, where lines are short, as many whole lines as fit. Nothing but the grid enters, so one grid is
always solved in the same batches and gives the same bits.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from ..errors import NO_NUMBER, BadInput

GridPiece = dict[str, np.ndarray]


def real_array(value: Any) -> np.ndarray:
    """Return an array of floats. NumPy would keep a part of complex numbers and of dates: these raise an error of NO_NUMBER.

    >>> real_array([1, "2"])
    array([1., 2.])
    """
    given = np.asarray(value)
    if given.dtype.kind in "cmM":
        raise TypeError("not real numbers")
    return np.asarray(given, dtype=float)


@dataclass(frozen=True)
class Grid:
    """Axes by name and the size of a chunk.

    Examples
    --------
    >>> g = grid({"alpha": [1, 2, 3], "lam": [0.1, 0.2]}, 2)
    >>> g.points, g.chunks
    (6, 4)
    >>> g.pieces(1)
    [{'alpha': array([3.]), 'lam': array([0.1])}]
    """

    axes: Mapping[str, tuple[float, ...]]
    chunk: int

    @property
    def points(self) -> int:
        """How many points in all."""
        return prod(len(v) for v in self.axes.values())

    @cached_property
    def _line(self) -> int:
        return len(next(iter(self.axes.values())))

    @cached_property
    def _lines_each(self) -> int:
        return max(1, self.chunk // self._line)  # whole lines a chunk, where lines are short

    @cached_property
    def _cuts(self) -> int:
        return -(-self._line // self.chunk)  # pieces a line

    @property
    def chunks(self) -> int:
        """How many chunks, the unit that is sent, solved and written."""
        lines = self.points // self._line
        return -(-lines // self._lines_each) if self._cuts == 1 else lines * self._cuts

    def pieces(self, k: int) -> list[GridPiece]:
        """The pieces of chunk k in order, each a dict of arrays over its points."""
        names = list(self.axes)
        if self._cuts == 1:
            first, count, cut = k * self._lines_each, self._lines_each, slice(None)
        else:
            first, count = k // self._cuts, 1
            cut = slice(k % self._cuts * self.chunk, (k % self._cuts + 1) * self.chunk)
        line = np.array(self.axes[names[0]])[cut]
        lines = range(first, min(first + count, self.points // self._line))
        return [{names[0]: line, **{n: np.full(line.size, v) for n, v in self._rest(i).items()}} for i in lines]

    def _rest(self, i: int) -> dict[str, float]:
        """What stays fixed on line i; the last key varies fastest among the lines."""
        found = {}
        for n in reversed(list(self.axes)[1:]):
            i, k = divmod(i, len(self.axes[n]))
            found[n] = self.axes[n][k]
        return dict(reversed(found.items()))

    @cached_property
    def signature(self) -> str:
        """A hash of axes and chunk size."""
        return json_hash({"axes": {k: list(v) for k, v in self.axes.items()}, "chunk": self.chunk})


def check_size(asking: str, sizes: Mapping[str, int]) -> None:
    """Refuse a product of axes that no table holds, before anything is laid out.

    >>> check_size("sweep", {"alpha": 50, "lam": 20})
    >>> check_size("sweep", {"alpha": 100000, "lam": 10000})
    Traceback (most recent call last):
    ...
    hermitex.errors.BadInput: sweep: 100,000 alpha x 10,000 lam are 1,000,000,000 points, and 1,000,000 at most are \
solved at once; take fewer values, or one part of the grid after another
    """
    points = prod(sizes.values())
    most = 1_000_000  # a row is kept in memory, some hundred bytes a column
    if points > most:
        said = " x ".join(f"{k:,} {n}" for n, k in sizes.items() if k > 1)
        raise BadInput(f"{asking}: {said} are {points:,} points, and {most:,} at most are solved at once; "
                       "take fewer values, or one part of the grid after another")


def grid(axes: Mapping[str, Any], chunk: int) -> Grid:
    """The product of the axes, checked; raises `BadInput` naming an axis that is empty, not finite or not a line."""
    if not isinstance(axes, Mapping) or not axes:
        raise BadInput("the grid of a sweep is empty; give at least one parameter, e.g. {'alpha': [0.5, 1, 2]}")
    if not isinstance(chunk, int | np.integer) or chunk < 1:
        raise BadInput(f"chunk must be a positive whole number, not {chunk!r}")
    check_size("sweep", {str(n): len(v) for n, v in axes.items() if hasattr(v, "__len__")})
    out: dict[str, Any] = {}
    for name, values in axes.items():
        try:
            v = np.atleast_1d(real_array(values))
        except NO_NUMBER:
            raise BadInput(f"the grid of {name} is not made of numbers") from None
        if v.ndim != 1 or v.size == 0:
            raise BadInput(f"the grid of {name} must be a line of at least one number, not of shape {v.shape}")
        if np.isnan(v).any():
            raise BadInput(f"the grid of {name} contains NaN")
        if str(name) in out:
            raise BadInput(f"the grid has two lines of values for {name}; give it once")
        out[str(name)] = v
    return Grid({n: tuple(v.tolist()) for n, v in out.items()}, int(chunk))


def json_hash(content: Any) -> str:
    """A short hash of what JSON can write, independent of the order of keys inside it."""
    return text_hash(json.dumps(content, sort_keys=False))


def text_hash(text: str) -> str:
    """A short hash of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def concatenate_pieces(pieces: Sequence[GridPiece]) -> GridPiece:
    """The pieces one after another.

    >>> concatenate_pieces([{"a": np.array([1.0])}, {"a": np.array([2.0])}])
    {'a': array([1., 2.])}
    """
    return {n: np.concatenate([p[n] for p in pieces]) for n in pieces[0]}
