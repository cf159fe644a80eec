"""hx.load: what `.to_csv` of a Solution, a Curve, a Trajectory or a Sweep wrote, as a table with the same names."""

from __future__ import annotations

import os

import numpy as np

from ..errors import BadInput
from ..show.columns import axes_of
from ..show.load import columns_of
from .journal import column_from_json
from .sweep_table import Sweep


def load(path: str | os.PathLike[str]) -> Sweep:
    """Read a CSV file that a result wrote (or any table of numbers with a header) -> Sweep.

    `table["test_error"]`, `table.test_error`, `.plot()`, `.to_dataframe()` work as on the result. The first columns are the index:
    the smallest set of them that identifies each row, fastest-varying first. The numbers are those of the file to
    the last bit.

    Raises
    ------
    BadInput : the file does not exist, is not a table, or has no rows; one line.

    Guarantee
    ---------
    The numbers are those of the file, to the last digit that it holds. See docs/promise.md.

    Examples
    --------
    >>> import tempfile, os
    >>> from hermitex.solvers.solution import Solution
    >>> s = Solution({"V": np.array([0.5, 0.25])}, np.zeros(2), np.array([True, True])).at_numbers({"alpha": [1.0, 2.0]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     back = load(s.to_csv(os.path.join(folder, "V.csv")))
    >>> back.axes, back.V
    ({'alpha': (1.0, 2.0)}, array([0.5 , 0.25]))
    """
    found = columns_of(path)
    rows = len(next(iter(found.values())))
    if not rows:
        raise BadInput(f"load: {str(path)[:80]!r} has no rows")
    columns = {name: column_from_json(values) for name, values in found.items()}
    numbers = [v for v in columns.values() if v.dtype.kind == "f"]
    there = np.array([all(map(np.isfinite, row)) for row in zip(np.zeros(rows), *numbers, strict=True)])
    columns.setdefault("converged", there)
    return Sweep(axes_of(found), columns)
