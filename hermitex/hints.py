"""What the public functions take, as type hints."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from sympy import Expr, MatrixBase, Symbol

if TYPE_CHECKING:  # a formula is read without them
    import matplotlib.axes
    import numpy as np
    import pandas
    import xarray

#: A formula: a text, a SymPy expression, a number, or a function of SymPy symbols (``lambda x, y: x*y``).
Formula: TypeAlias = str | float | Expr | Callable[..., Expr]
#: One number, or one for every point: a list, an array, or an exact number of SymPy.
Numbers: TypeAlias = "float | Expr | Sequence[float] | np.ndarray"
#: Letters that a text may hold: {"mu": "real", "s": "positive"}, "mu, s>0", or the symbols themselves.
Letters: TypeAlias = Mapping[str, str | Symbol] | str | Iterable[Symbol]
#: One variable or parameter, or its name.
Letter: TypeAlias = Symbol | str
#: One variable or several, or their names.
Variables: TypeAlias = Symbol | str | Sequence[Symbol | str]
#: {("z1", "z2"): "1/2"} with symbols or their names, a matrix in the order of the variables, or a number for one variable.
Covariance: TypeAlias = ("Mapping[tuple[str | Symbol, str | Symbol], str | float | Expr] | MatrixBase | "
                         "Sequence[Sequence[float]] | np.ndarray | str | float | Expr")
#: One number at one point, an array of them over several.
Value: TypeAlias = "float | np.ndarray"
#: True or False at one point, an array of them over several.
Flag: TypeAlias = "bool | np.ndarray"
#: A file.
Place: TypeAlias = "str | os.PathLike[str]"
#: Called with (what is done, what there is to do); True writes a line on stderr.
Watched: TypeAlias = Callable[[int, int], None] | bool | None
#: The axes of Matplotlib that a picture is drawn in, and that drawing it returns.
Axes: TypeAlias = "matplotlib.axes.Axes"
#: A table of pandas.
DataFrame: TypeAlias = "pandas.DataFrame"
#: A data set of xarray.
Dataset: TypeAlias = "xarray.Dataset"
