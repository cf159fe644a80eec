"""What results with numbers by name share: `result.test_error` is `result["test_error"]`; a DataFrame, a table in a notebook."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import product
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermitex.errors import no_attribute

if TYPE_CHECKING:
    from hermitex.hints import DataFrame, Dataset, Place


def ridge(name: str, known: Collection[str]) -> str:
    """The ridge is `lam` in keywords and `lamda` as a symbol: return the known one of the two; other names are unchanged.

    >>> ridge("lam", ["alpha", "lamda"]), ridge("lam", ["lam", "lamda"]), ridge("lamda", ["lam"]), ridge("mu", ["alpha"])
    ('lamda', 'lam', 'lam', 'mu')
    """
    other = {"lam": "lamda", "lamda": "lam"}.get(name)
    return other if other is not None and name not in known and other in known else name


def axes_of(columns: Mapping[str, Sequence[Any]]) -> dict[str, tuple[Any, ...]]:
    """The first columns of numbers whose values, each with each, are the rows, that first which runs fastest down the rows; where
    there are none in such an order, the first column.

    >>> axes_of({"lam": [0.1], "alpha": [1.0]}), axes_of({"d": [5.0, 5.0], "alpha": [1.0, 2.0], "q": [0.3, 0.6]})
    ({'lam': (0.1,)}, {'alpha': (1.0, 2.0)})
    """
    axes: dict[str, tuple[Any, ...]] = {}
    rows = len(next(iter(columns.values())))
    for name, values in columns.items():
        if any(not isinstance(v, int | float) or isinstance(v, bool) for v in values):
            break
        axes[name] = tuple(dict.fromkeys(map(float, values)))
        size = prod(map(len, axes.values()))
        if size >= rows:
            for names in (list(axes), list(axes)[::-1]):
                grid = [row[::-1] for row in product(*(axes[n] for n in reversed(names)))]
                if grid == [tuple(map(float, row)) for row in zip(*(columns[n] for n in names), strict=True)]:
                    return {n: axes[n] for n in names if len(axes[n]) > 1} or {name: axes[name]}
            break
    first = next(iter(columns))
    return {first: tuple(columns[first])}


def blocks_of(columns: Mapping[str, Any]) -> tuple[tuple[str, ...], str]:
    """Of a table of curves, one below the other: the columns that differ between the curves, and the abscissa, which is the first
    column that changes in the second row.

    >>> blocks_of({"lam": [1, 1, 2, 2], "alpha": [1, 2, 1, 2], "q": [4, 3, 2, 1]}), blocks_of({"alpha": [1, 2], "q": [4, 3]})
    ((('lam',), 'alpha'), ((), 'alpha'))
    """
    names = list(columns)
    k = next((k for k, n in enumerate(names) if several(columns[n][:2])), 0)
    return tuple(n for n in names[:k] if several(columns[n])), names[k]


class Tabled:
    """A result whose numbers are a table; a subclass has `table`."""

    __slots__ = ()

    def table(self) -> dict[str, list[Any]]:
        """Columns of equal length by name."""
        raise NotImplementedError

    def to_dataframe(self) -> DataFrame:
        """A pandas DataFrame of the columns of `table`, one row a point; pandas sits in the extra `data`."""
        from hermitex.show.tables import to_dataframe

        return to_dataframe(self.table())

    def to_xarray(self) -> Dataset:
        """An xarray.Dataset of the columns of `table` over the index columns; single numbers are attributes.

        Raises
        ------
        MissingExtra : xarray is not installed (extra `xarray`).
        """
        from hermitex.show.tables import dataset

        columns = self.table()
        axes = axes_of(columns)
        fixed = {n: v[0] for n, v in columns.items() if n not in axes and isinstance(v[0], str | int | float) and not several(v)}
        return dataset(axes, {n: v for n, v in columns.items() if n not in {*axes, *fixed}}, fixed)

    def to_csv(self, path: Place | None = None) -> Path | str:
        """The columns of `table` as CSV text; or written to a file, which `hx.load` reads back, and whose path is returned."""
        from hermitex.show.tables import csv_text, save_csv

        return csv_text(self.table()) if path is None else save_csv(self.table(), path)


class Columned(Tabled):
    """A result with numbers by name; a subclass has `__getitem__`, `_named` (the names it knows) and `table`."""

    __slots__ = ()

    def _named(self) -> Iterable[str]:
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        # A copy or an unpickled object that has no fields yet asks for its methods here, too.
        if name.startswith("_") or not self.__dict__:
            raise AttributeError(name)
        known = list(self._named())
        if ridge(name, known) in known:
            return self[name]  # type: ignore[index]
        raise no_attribute(type(self).__name__, name, [n for n in (*known, *dir(type(self))) if not n.startswith("_")])

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(n for n in self._named() if n.isidentifier())})

    def _shown_table(self, names: Sequence[str], title: str, words: Mapping[str, str] | None = None) -> str:
        from hermitex.show.display import number_table

        columns = self.table()
        return number_table({n: columns[n] for n in names if n in columns}, title=title, words=words)


def several(values: Sequence[Any]) -> bool:
    """Whether a column holds more than one value."""
    return any(v != values[0] for v in values)
