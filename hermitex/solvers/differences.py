"""Numerical Jacobians, to check exact ones and to judge a fixed point:  dF_i/dx_j ~ Im F_i(x + i h e_j)/h."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import BadInput
from .batch import Array, Field, Params, start

_EPS = float(np.finfo(float).eps)


def complex_step(function: Field, x: Array, p: Params) -> Array | None:
    """The Jacobian (n, n, B) by complex steps, exact to rounding; None where `function` is not complex-analytic."""
    h = 1e-30
    columns = []
    for j in range(x.shape[0]):
        moved = x.astype(complex)
        moved[j] += 1j * h
        try:
            with np.errstate(all="ignore"):
                f = np.asarray(function(moved, p))
        except (TypeError, ValueError):
            return None
        if not np.iscomplexobj(f):
            return None
        columns.append(f.imag / h)
    return np.stack(columns, axis=1)


def central(function: Field, x: Array, p: Params) -> Array:
    """The Jacobian (n, n, B) by central differences with one Richardson step: error O(h^4)."""
    columns = []
    for j in range(x.shape[0]):
        h = _EPS**0.2 * np.where(x[j] == 0, 1.0, np.abs(x[j])) * 0.1
        slopes = []
        for shrink in (1.0, 2.0):
            up, down = x.copy(), x.copy()
            up[j] += h / shrink
            down[j] -= h / shrink
            with np.errstate(all="ignore"):
                slopes.append((function(up, p) - function(down, p)) / (up[j] - down[j]))
        columns.append((4 * slopes[1] - slopes[0]) / 3)
    return np.stack(columns, axis=1)


def forward(function: Field, x: Array, p: Params, at: Array) -> Array:
    """The Jacobian (n, n, B) by forward differences, given at = function(x, p): one evaluation an unknown."""
    columns = []
    for j in range(x.shape[0]):
        up = x.copy()
        up[j] += _EPS**0.5 * np.where(x[j] == 0, 1.0, np.abs(x[j]))
        with np.errstate(all="ignore"):
            columns.append((np.asarray(function(up, p)) - at) / (up[j] - x[j]))
    return np.stack(columns, axis=1)


class JacobianCheck(NamedTuple):
    """Whether a Jacobian agrees with the function, the worst entry, and how it was compared."""

    passed: bool
    row: str
    column: str
    given: float
    found: float
    how: str

    def __str__(self) -> str:
        if self.passed:
            return f"the Jacobian agrees with the residual ({self.how})"
        return (
            f"the Jacobian is wrong: d residual[{self.row}]/d {self.column} is given as {self.given:.8g}, "
            f"the residual says {self.found:.8g} ({self.how})"
        )


def check_jacobian(
    residual: Field,
    jacobian: Field,
    x: Any,
    p: Params | None = None,
    *,
    names: Sequence[str],
    rtol: float | None = None,
) -> JacobianCheck:
    """Compare a Jacobian with the residual it belongs to, entry by entry, and name the worst.

    Complex steps where the residual is analytic (agreement to 1e-10 asked), central differences otherwise (1e-6).

    Examples
    --------
    >>> f = lambda x, p: x**3 - p["a"]
    >>> check_jacobian(f, lambda x, p: 3*x[None]**2, [2.0], {"a": 8.0}, names=["V"]).passed
    True
    >>> print(check_jacobian(f, lambda x, p: 2*x[None]**2, [2.0], {"a": 8.0}, names=["V"]))
    the Jacobian is wrong: d residual[V]/d V is given as 8, the residual says 12 (complex step)
    """
    p = p or {}
    state, _ = start(x, p, names)
    found, how = central(residual, state, p), "central differences"
    exact = complex_step(residual, state, p)
    coarse = 1e-5 * float(np.abs(found).max(initial=0.0))
    if exact is not None and not np.allclose(exact, found, rtol=1e-5, atol=coarse):
        exact = None  # abs or a comparison dropped the imaginary part on the way: not complex-analytic
    if exact is not None:
        found, how = exact, "complex step"
    rtol = rtol if rtol is not None else (1e-6 if exact is None else 1e-10)
    given = np.asarray(jacobian(state, p), dtype=float)
    if given.shape not in (found.shape, (*found.shape[:2], 1)):
        raise BadInput(f"the Jacobian has shape {given.shape}; {found.shape} is needed")
    given = np.broadcast_to(given, found.shape)
    size = np.abs(found) + np.abs(found).max(axis=1, keepdims=True)  # an entry that cancels is judged by its row
    off = np.abs(given - found) / np.where(size > 0, size, 1.0)
    off = np.where(np.isfinite(off), off, np.inf)
    i, j, k = (int(a) for a in np.unravel_index(int(np.argmax(off)), off.shape))
    passed = bool(off[i, j, k] <= rtol)
    return JacobianCheck(passed, names[i], names[j], float(given[i, j, k]), float(found[i, j, k]), how)
