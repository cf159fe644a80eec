"""F(x, p) = 0 with its Jacobian and what is known of its unknowns, as one argument."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from .batch import Array, Field, Params

START = "_start"  # the parameter that holds the first start, (n, B), whatever start a solver is given later
SOUND = "_sound"  # that of the points whose start was found, and found sound, by coarser averages: where it stays, it is


class Problem(NamedTuple):
    """n equations at all points at once.

    Attributes
    ----------
    residual, both : F(x, p) -> (n, B), and (F, J) with J of shape (n, n, B)
    names, positive : the unknowns, and the mask of those that are solved for in logarithms
    explicit : the mask of the rows that read F_i = x_i - rhs_i; the others are implicit equations
    bent : the mask of the rows that are taken in logarithms, as in `newton.newton`
    sized : (x, p) -> (F, T), and T of shape (n, B) the sum of the absolute values of the terms of each row
    rtol : what the unknowns are asked to
    rounding : (x, p) -> (n, B), how far rounding of the averages in it may move each right-hand side; none, where it is not known
    """

    residual: Field
    both: Callable[[Array, Params], tuple[Array, Array]]
    names: tuple[str, ...]
    positive: Array
    explicit: Array
    bent: Array
    sized: Callable[[Array, Params], tuple[Array, Array]]
    rtol: float
    rounding: Field | None = None
