"""T*(y) as a module of its own: the table, the text of its look-up, and the function `label_map`; NumPy is all that it needs."""

from __future__ import annotations

import ast
import inspect
import os
from pathlib import Path
from typing import Any

import numpy as np

from hermitex import __version__
from hermitex.errors import BadInput
from hermitex.exponents.label_table import look_up
from hermitex.kernels.generated_text import docstring_text
from hermitex.symbolic.parsing import to_text

_TEXT = '''
def label_map(y):
    """{signature}"""
    y = np.asarray(y, dtype=float)
    m = look_up({argument}.ravel(), LABELS, VALUES, HALVES, PANELS, SERIES)
    found = np.einsum("ai,nab,bj->nij", BASIS, np.eye(len(BASIS)) - np.linalg.inv(m), BASIS)
    return found.reshape({shape})


def selftest():
    """The largest difference to the values of the session that wrote this file."""
    return float(np.max(np.abs(label_map(REFERENCE) - EXPECTED)))


if __name__ == "__main__":
    print(f"label_map: {{len(REFERENCE)}} labels, largest difference {{selftest():.1e}}")
'''


def write(found: Any, path: str | os.PathLike[str]) -> str:
    """Write the module of a `LabelMap`."""
    target = Path(path)
    if target.suffix != ".py":
        raise BadInput(f"label map: {target.name} is not the name of a Python file; e.g. label_map.py")
    try:
        target.write_text(source(found), encoding="utf-8")
    except OSError as error:
        raise BadInput(f"label map: {target} cannot be written: {error.strerror or error}") from None
    return str(target)


def source(found: Any) -> str:
    """The text of the module."""
    several = len(found.variables) > 1
    head = [f"The optimal label map of {to_text(found.target)}, channel {found.channel}, over {', '.join(found.variables)}.", "",
            *found.lines(), "", f"Written by hermitex {__version__}; python FILE.py compares it with the values of that session."]
    table = found.table
    order = np.argsort(found.law.labels)
    at = found.law.labels[order][np.linspace(0, len(order) - 1, min(9, len(order))).astype(int)]
    at = at[np.isfinite(found(at)).reshape(len(at), -1).all(axis=1)]  # T* is -inf where E[z^2|y] vanishes
    arrays = {"LABELS": table.labels, "VALUES": table.values, "HALVES": table.halves, "PANELS": table.panels,
              "SERIES": table.series, "BASIS": found.basis, "REFERENCE": at, "EXPECTED": found(at)}
    text = _TEXT.format(signature="T*(y), " + ("a matrix (r, r) at each label" if several else "of the shape of y"),
                        argument="np.abs(y)" if found.law.folded else "y",
                        shape="(*y.shape, *found.shape[1:])" if several else "y.shape")
    look = inspect.getsource(look_up).replace("  # type: ignore[no-untyped-def]  # its text goes into exported files", "").replace(
        "  # noqa: B905  # the text runs on older versions of Python, too", "")
    lines = [f'"""{docstring_text(chr(10).join(head))}"""', "", "import numpy as np", "",
             *(f"{name} = np.array({_numbers(a)}).reshape{a.shape}" for name, a in arrays.items()), "", "",
             look.rstrip(), "", text.rstrip(), ""]
    whole = "\n".join(lines)
    ast.parse(whole)  # only a valid module is written
    return whole


def _numbers(a: np.ndarray) -> str:
    return "[" + ", ".join(repr(float(x)) for x in a.ravel()) + "]"
