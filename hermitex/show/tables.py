"""rows and headers -> text for a terminal, Markdown, CSV (RFC 4180), a pandas DataFrame.

Numbers are aligned right, words left; a wide letter (East Asian) takes two places.
"""

from __future__ import annotations

import csv
import io
import os
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermitex.errors import BadInput, MissingExtra
from hermitex.show.escape import cell, visible
from hermitex.show.files import write_whole

if TYPE_CHECKING:
    from hermitex.hints import DataFrame

_NUMERIC = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?%?\Z|[-+]?inf\Z|nan\Z|-?\Z|null\Z")


def width(text: str) -> int:
    """Places that a text takes on a terminal.

    >>> width("abc"), width("数"), width("e\u0301")
    (3, 2, 1)
    """
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def text_table(rows: Iterable[Sequence[Any]], headers: Sequence[str] = (), *, columns: int | None = 100) -> str:
    """A table in plain text; the widest columns are cut so that it fits into `columns` places (None: never cut).

    Examples
    --------
    >>> print(text_table([["He3(z)", 3, 1], ["z**2", 2, 2]], ["target", "information", "generative"]))
    target  information  generative
    He3(z)            3           1
    z**2              2           2
    """
    cells = [[_text(c) for c in row] for row in rows]
    _check_shape(cells, headers)
    table = [[_text(h) for h in headers], *cells] if headers else cells
    if not table:
        return ""
    right = [all(_NUMERIC.match(row[j]) for row in cells) and bool(cells) for j in range(len(table[0]))]
    sizes = _fit([max(width(row[j]) for row in table) for j in range(len(table[0]))], columns)
    lines = []
    for row in table:
        line = "  ".join(_pad(_cut(c, size), size, r) for c, size, r in zip(row, sizes, right, strict=True))
        lines.append(line.rstrip())
    return "\n".join(lines)


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.10g}"
    return visible(" ".join(str(value).split()))


def _check_shape(rows: Sequence[Sequence[Any]], headers: Sequence[Any]) -> None:
    count = len(headers) if headers else len(rows[0]) if rows else 0
    for row in rows:
        if len(row) != count:
            raise BadInput(f"a row of {len(row)} cells in a table of {count} columns")


def _fit(sizes: list[int], columns: int | None) -> list[int]:
    """Take places from the widest column until all fit; no column goes below 8."""
    sizes = list(sizes)
    while columns is not None and sum(sizes) + 2*(len(sizes) - 1) > columns and max(sizes) > 8:
        sizes[sizes.index(max(sizes))] -= 1
    return sizes


def _cut(text: str, size: int) -> str:
    if width(text) <= size:
        return text
    kept = ""
    for c in text:
        if width(kept + c) > size - 3:
            break
        kept += c
    return kept + "..."


def _pad(text: str, size: int, right: bool) -> str:
    blank = " " * (size - width(text))
    return blank + text if right else text + blank


def markdown_table(rows: Iterable[Sequence[Any]], headers: Sequence[str]) -> str:
    """A Markdown table.

    >>> print(markdown_table([["a|b", 1]], ["name", "n"]))
    | name | n |
    | --- | ---: |
    | a\\|b | 1 |
    """
    cells = [[_text(c) for c in row] for row in rows]
    _check_shape(cells, headers)
    right = [bool(cells) and all(_NUMERIC.match(row[j]) for row in cells) for j in range(len(headers))]
    rule = ["---:" if r else "---" for r in right]

    def line(row: Sequence[str]) -> str:
        return "| " + " | ".join(c.replace("\\", "\\\\").replace("|", "\\|") for c in row) + " |"

    return "\n".join([line(list(headers)), "| " + " | ".join(rule) + " |", *map(line, cells)])


def csv_text(columns: Mapping[str, Sequence[Any]]) -> str:
    """CSV as RFC 4180 has it: a header, CRLF at the line ends, quotes where needed; floats to their last bit.

    A text that a spreadsheet would compute (=1+1) gets an apostrophe before it, as spreadsheets themselves mark a text.

    >>> csv_text({"alpha": [0.5, 1], "note": ["a,b", None]})
    'alpha,note\\r\\n0.5,"a,b"\\r\\n1,\\r\\n'
    """
    _same_length(columns)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(map(cell, columns))
    for row in zip(*columns.values(), strict=True):
        writer.writerow(["" if v is None else repr(float(v)) if isinstance(v, float) else cell(v) for v in row])
    return out.getvalue()


def save_csv(columns: Mapping[str, Sequence[Any]], path: str | os.PathLike[str]) -> Path:
    """Write `csv_text` to a file, whole or not at all."""
    return write_whole(path, csv_text(columns))


def to_dataframe(columns: Mapping[str, Sequence[Any]], index: str | None = None) -> DataFrame:
    """A pandas DataFrame of the columns; `index` names the column that labels the rows.

    Raises
    ------
    MissingExtra : pandas is not installed.
    """
    _same_length(columns)
    try:
        import pandas
    except ImportError:
        raise MissingExtra("pandas", "data", "a DataFrame") from None
    frame = pandas.DataFrame(dict(columns))
    return frame.set_index(index) if index is not None else frame


def dataset(axes: Mapping[str, Sequence[Any]], columns: Mapping[str, Any], fixed: Mapping[str, Any]) -> Any:
    """An xarray.Dataset of columns whose rows are the grid of the axes, the first of them running fastest.

    Raises
    ------
    MissingExtra : xarray is not installed.
    """
    try:
        import xarray
    except ImportError:
        raise MissingExtra("xarray", "xarray", "a Dataset") from None
    import numpy as np

    names = tuple(axes)[::-1]
    held = {n: (names, np.reshape(np.asarray(v), [len(axes[a]) for a in names])) for n, v in columns.items()}
    return xarray.Dataset(held, coords={n: list(v) for n, v in axes.items()}, attrs=dict(fixed)).transpose(*axes)


def _same_length(columns: Mapping[str, Sequence[Any]]) -> None:
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise BadInput(f"columns of different lengths: {', '.join(f'{n} {k}' for n, k in lengths.items())}")
