"""The table of a sweep: one row a point, in the order of the grid, failed points with their reason."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import BadInput, UnknownName
from ..show.columns import Columned, blocks_of, ridge, several
from ..show.escape import cell
from ..show.files import write_whole
from .journal import PASSING, Packed, column_to_json, join_column
from .sweep_grid import Grid

if TYPE_CHECKING:
    from hermitex.hints import Axes, Dataset, Place

_ENDS = ("residual", "stability", "iterations", "converged", "reason")


@dataclass(frozen=True, eq=False, repr=False)
class Sweep(Columned):
    """Columns by name over all points of a grid.

    Attributes
    ----------
    axes : {name: values}           the grid
    columns : {name: (points,)}     parameters first, then what was solved, then `converged` and `reason`
    parameters : {name: number}     what was not swept

    Guarantee
    ---------
    One row for each point of the grid; a point that did not converge is NaN, with its reason. See docs/promise.md.

    >>> from hermitex.solvers.chunked_sweep import sweep
    >>> table = sweep(lambda p: {"q": p["alpha"]/3}, {"alpha": [3.0, 6.0]})
    >>> table["q"], table.axes
    (array([1., 2.]), {'alpha': (3.0, 6.0)})
    """

    axes: Mapping[str, tuple[float, ...]]
    columns: Mapping[str, np.ndarray]
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        own = ridge(name, (*self.columns, *self.parameters))
        if own in self.columns:
            return self.columns[own]
        if own in self.parameters:
            return self.parameters[own]
        raise UnknownName(name, (*self.columns, *self.parameters), "column")

    def _named(self) -> Iterable[str]:
        return (*self.columns, *self.parameters)

    def __len__(self) -> int:
        return len(self.columns["converged"])

    @property
    def converged(self) -> np.ndarray:
        """Which points converged."""
        return self.columns["converged"]

    @property
    def failed(self) -> tuple[dict[str, Any], ...]:
        """The rows of the points that failed: their parameters and the reason."""
        names = [*self.axes, "reason"]
        return tuple({n: self.columns[n][i].item() if n in self.axes else self.columns[n][i] for n in names}
                     for i in np.flatnonzero(~self.converged))  # fmt: skip

    def on_grid(self, name: str) -> np.ndarray:
        """A column as an array with one axis a grid key, in the order of the keys."""
        sizes = [len(v) for v in self.axes.values()]
        return np.moveaxis(self[name].reshape(*sizes[1:], sizes[0]), -1, 0)

    def to_xarray(self) -> Dataset:
        """An xarray.Dataset: every solved column over the swept parameters; it needs the extra `xarray`.

        Raises
        ------
        MissingExtra : xarray is not installed.
        """
        from ..show.tables import dataset

        fixed = {n: v for n, v in self.parameters.items() if isinstance(v, str | int | float)}
        return dataset(self.axes, {n: v for n, v in self.columns.items() if n not in self.axes}, fixed)

    def to_dict(self) -> dict[str, list[Any]]:
        """Columns as lists fit for JSON: NaN is None, infinity is "inf"."""
        return {k: column_to_json(v) for k, v in self.columns.items()}

    def table(self) -> dict[str, list[Any]]:
        """Columns of equal length: what was swept, what was solved, how it ended, then the parameters that were not swept."""
        fixed = {n: [v]*len(self) for n, v in self.parameters.items() if np.ndim(v) == 0 and n not in self.columns}
        return {**{n: c.tolist() for n, c in self.columns.items()}, **fixed}

    def plot(self, ax: Axes | None = None, *, quantity: str | None = None, log: tuple[bool, bool] | None = None) -> Axes:
        """One swept parameter: a line. Two: a heat map, or with `quantity` in lines where one has at most six values -> axes.

        A file of several curves has a line for each. An experiment is drawn as points next to its line.

        quantity : default: the test error, or else the first column that was solved for
        log : (x, y) whether an axis is logarithmic; by default where the values are spaced so
        """
        from ..show.plots import heat_map

        each, line = blocks_of(self.columns)
        axes = {n: v for n, v in self.axes.items() if len(v) > 1} or dict(self.axes)
        if not each and len(axes) > 2:
            raise BadInput(f"plot: {len(axes)} parameters were swept; a picture has two: sweep fewer, or take a part of "
                           ".to_dataframe()")
        solved = [n for n in self.columns if n not in (*self.axes, *each, line, *_ENDS)]
        name = quantity or ("test_error" if "test_error" in self.columns else solved[0])
        if each:
            return self._lines(each, line, name, ax, log)
        few = 6  # lines that are told apart in one picture
        line, *rest = sorted(axes, key=lambda n: -len(axes[n]))
        if not rest or (quantity is not None and len(axes[rest[0]]) <= few):
            return self._lines(tuple(rest), line, name, ax, log)
        first, second = axes
        values = self.on_grid(name).reshape(len(axes[first]), len(axes[second]))
        return heat_map((first, axes[first]), (second, axes[second]), values.T.tolist(), name, ax, log=log)

    def _lines(self, each: tuple[str, ...], line: str, name: str, ax: Axes | None, log: tuple[bool, bool] | None) -> Axes:
        """A line over a column for every combination of the values in the columns `each`, with its experiment."""
        from ..show import plots

        for n in (line, name):
            if self[n].dtype.kind not in "biuf":
                raise BadInput(f"plot: the column {n} holds words; a picture needs numbers, take a part of .to_dataframe()")
        ax, columns = plots.new_axes(ax), self.table()
        blocks: dict[tuple[Any, ...], list[int]] = {}
        for i in range(len(self)):
            blocks.setdefault(tuple(columns[n][i] for n in each), []).append(i)
        for rows in blocks.values():
            own = {n: [v[i] for i in rows] for n, v in columns.items()}
            held = {n: v[0] for n, v in own.items() if n != line and not several(v)}
            points = _measured(own, line, name)
            theory, ratio = held.get("theory") or ("theory" if points else ""), held.get("ratio") or ""
            title = list(plots.held_words({n: held[n] for n in plots.TITLE if n in held}).values())[:3]
            limit = plots.theory_words(held.get("dimension")) if points and "simulated_dimension" in held else ""
            said = ", ".join(filter(None, (*(title or [theory]), plots.best_words(held.get("optimised") or ""), limit)))
            told = {"theory": theory, "quantity": plots.axis_of(name), "axis": plots.abscissa(line, ratio),
                    **plots.held_words({n: held[n] for n in (*plots.SHARED, *each) if n in held})}
            ax = plots.along(line, own[line], {name: own[name]}, ax, label=said, log=log, points=points, told=told, ratio=ratio,
                       measured=plots.measured_words(held.get("simulated_dimension"), int(held.get("simulated_seeds") or 0)),
                       model=str(held.get("simulated_model") or ""))
        return ax

    def to_csv(self, path: Place | None = None) -> Path | str:
        """The table as CSV text, floats with the digits that give the same bits back; or written to `path`, which is returned.

        A text that a spreadsheet would compute (a reason that begins with =) gets an apostrophe before it.
        """
        text = io.StringIO()
        out = csv.writer(text, lineterminator="\n")
        columns = self.table()
        out.writerow(map(cell, columns))
        out.writerows(map(cell, row) for row in zip(*columns.values(), strict=True))
        return text.getvalue() if path is None else write_whole(Path(path), text.getvalue())

    def __repr__(self) -> str:
        sizes = " x ".join(str(len(v)) for v in self.axes.values())
        count = f"{sizes} = {len(self)}" if len(self.axes) > 1 else sizes
        lost = int((~self.converged).sum())
        shown = [k for k in self.columns if k not in self.axes and k not in ("converged", "reason")]
        what = ", ".join(shown[:6]) + (", ..." if len(shown) > 6 else "")
        return f"Sweep({' x '.join(self.axes)}: {count} points, {lost or 'none'} failed; {what})"

    def _repr_html_(self) -> str:
        try:
            names = [n for n in self.columns if n not in _ENDS or n == "converged"]
            return self._shown_table(names, repr(self), {"converged": "converged"})
        except Exception:  # a notebook cell must never fail because its result could not be drawn
            return f"<code>{escape(object.__repr__(self))}</code>"


def _measured(columns: Mapping[str, list[Any]], line: str, name: str) -> dict[str, list[float]] | None:
    """The experiment of a column, as the file of a curve holds it."""
    if (simulated := f"simulated_{name}") not in columns:
        return None
    made = np.isfinite(np.array(columns[simulated], dtype=float))
    kept = {"x": line, "y": simulated, "error": f"{simulated}_se"}
    return {k: np.array(columns[n], dtype=float)[made].tolist() for k, n in kept.items() if n in columns}


def assemble_sweep(points: Grid, done: Mapping[int, Packed]) -> Sweep:
    """The table out of the chunks, whatever order they came in."""
    order = range(points.chunks)
    names = dict.fromkeys(n for k in order for n in done[k] if n != PASSING)
    last = [n for n in ("converged", "reason") if n in names]
    names = dict.fromkeys([*(n for n in names if n not in last), *last])
    table = {n: np.concatenate([p[n] for k in order for p in points.pieces(k)]) for n in points.axes}
    for n in names:
        if n not in points.axes:
            table[n] = join_column([done[k].get(n, np.full(len(done[k]["converged"]), np.nan)) for k in order])
    return Sweep(dict(points.axes), table)
