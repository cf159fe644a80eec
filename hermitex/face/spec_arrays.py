"""[arrays] of a spec: eta = [1, 0.5, 0.25], or "eta.npy", or a formula of a place with its range, "k**(-3/2), 1..10000"."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hermitex.errors import NO_NUMBER, BadInput, first_line
from hermitex.show.files import check_source

_MOST = 100_000_000  # bytes of a file; entries of a formula are an eighth of it
_RANGE = re.compile(r"(.*),\s*(\d{1,18})\s*\.\.\s*(\d{1,18})\s*", re.S)


def read_array(value: Any, folder: Path) -> Any:
    """The array that a line of [arrays] describes; a file is searched next to the spec.

    Raises BadInput, in one line, if the value is not an array of numbers.

    Examples
    --------
    >>> read_array("k**(-3/2), 1..3", Path()).round(4).tolist()
    [1.0, 0.3536, 0.1925]
    """
    import numpy as np

    found = _array(value, folder)
    if not found.size:
        raise BadInput("it is empty")
    if not np.isfinite(found).all():
        raise BadInput(f"it holds {found[~np.isfinite(found)][0]}; every entry must be finite")
    return found


def _array(value: Any, folder: Path) -> Any:
    import numpy as np

    if isinstance(value, list):
        try:
            return np.asarray(value, dtype=float)
        except NO_NUMBER:
            raise BadInput("an array is a list of numbers, or of rows of equal length") from None
    if not isinstance(value, str):
        raise BadInput('an array is a list of numbers, a file "eta.npy", or a formula with a range "k**(-3/2), 1..10000"')
    if value.strip().endswith((".npy", ".txt", ".csv")):
        return _file(folder / value.strip())
    found = _RANGE.fullmatch(value)
    if found is None:
        raise BadInput(f'{value[:60]!r} is neither a file (.npy, .csv, .txt) nor a formula with a range, "k**(-3/2), 1..10000"')
    return _formula(found[1], int(found[2]), int(found[3]))


def _file(path: Path) -> Any:
    import numpy as np

    from hermitex.solvers.sweep_grid import real_array

    check_source(path, _MOST)
    try:
        if not path.exists():
            raise BadInput(f"no such file: {path}")
        if path.suffix == ".npy":
            return real_array(np.load(path, allow_pickle=False))
        return np.loadtxt(path, delimiter="," if path.suffix == ".csv" else None, dtype=float, ndmin=1)
    except (EOFError, OSError, ValueError, TypeError) as error:
        raise BadInput(f"{path} is not an array of numbers ({first_line(error)[:80]})") from None


def _formula(text: str, first: int, last: int) -> Any:
    import numpy as np

    from hermitex.kernels.compile import compile as compiled
    from hermitex.symbolic.parsing import parse

    if last < first or last - first >= _MOST//8:
        raise BadInput(f"the range {first}..{last} has {max(last - first + 1, 0):,} entries; it has 1 to {_MOST//8:,}")
    name = next(iter(re.findall(r"(?<!\w)[a-zA-Z](?!\w)", text)), "k")
    formula = parse(text, symbols={name: "positive" if first else "nonnegative"})
    places = np.arange(first, last + 1, dtype=float)
    if not formula.free_symbols:
        return np.full(places.shape, float(formula))
    return compiled(formula)(**{name: places})
