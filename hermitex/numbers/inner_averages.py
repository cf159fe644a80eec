"""E F(x, E f(x, y)): an average of a nonlinear function of other averages, which depend on its variable.

The inner averages are computed at all nodes of the outer one together, each in units of the largest value of its own integrand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from sympy import Expr, Symbol

from hermitex.errors import NotConverged
from hermitex.numbers.average import Average
from hermitex.numbers.floats_with_exponent import Scaled
from hermitex.numbers.moving_breaks import BreakMarks, Breaks, marks
from hermitex.numbers.nested_panels import NestedPanels, Sums
from hermitex.numbers.scaled_integrand import Array, ScaledIntegrand
from hermitex.symbolic.arithmetic import mp


def average_of_averages(F: Expr, x: Symbol, inner: Mapping[Symbol, tuple[Expr, Symbol]], digits: int = 15) -> Average:
    """E F(x, v_1, ..., v_m) over a standard normal x, with v_i = E f_i(x, y) over a standard normal y.

    Parameters
    ----------
    F, x : a real expression in x and in the names of the inner averages
    inner : {name v_i: (f_i, y)}
    digits : 15 at most; they hold relative to E|F|

    Returns
    -------
    Average : its error contains those of the inner averages.

    Raises
    ------
    NotConverged : no number is found, for example if the integrand has mass beyond |x| = 38.

    Examples
    --------
    >>> from sympy import exp, log
    >>> from hermitex.symbols import z1, z2
    >>> v = Symbol("v", positive=True)
    >>> found = average_of_averages(log(v), z1, {v: (exp(z1*z2), z2)})
    >>> print(mp.nstr(found.value, 12))
    0.5
    """
    outer = _Outer(F, x, inner)
    breaks = _BreaksOfAll([Breaks(outer.own_marks(), (x,)), *(row.breaks for row in outer.rows.values())])
    value, error, size = _OverNodes(outer, breaks, max(10.0**-digits, 1e-14)).total()
    if not error <= size:
        raise NotConverged(None, f"no digits of the average of {F} were reached")
    unit = mp.exp(mp.mpf(outer.top))
    return Average(mp.mpf(value)*unit, mp.mpf(error)*unit, mp.mpf(size)*unit, False)


class _ScaledRow(ScaledIntegrand):
    """f(x, y) exp(-y^2/2)/(2 pi)^(1/2) over e^k(x), k(x) the whole number next to the logarithm of its largest value at x."""

    def __init__(self, f: Expr, variables: Sequence[Symbol]) -> None:
        self._begin(f, variables)
        self.between, self.k = np.empty(0), np.zeros(1)

    def prepare(self, x: Array) -> NDArray[np.bool_]:
        """Find the units and the window of y for sorted distinct x; True for those whose mass ends within 38 of the origin."""
        inner = np.arange(-8, 8.0625, 0.125)
        y = np.concatenate([np.arange(-40, -8, 0.5), inner, np.arange(8.5, 40.5, 0.5)]) + 0.0123
        self.between, self.k = (x[1:] + x[:-1])/2, np.zeros(len(x))
        points = np.stack([np.repeat(x, len(y)), np.tile(y, len(x))], axis=1)
        level = self.level(points)[1].reshape(len(x), len(y))
        top = level.max(axis=1)
        self.k = np.where(np.isfinite(top), np.rint(top), 0.0)
        massive = level > (top - 18*np.log(10))[:, None]
        known = ~massive[:, np.abs(y) > 38].any(axis=1)
        heavy = y[massive[known].any(axis=0)]
        low, high = heavy.min(initial=-6.5) - 2, heavy.max(initial=6.5) + 2
        self.low, self.high = np.array([0.0, low]), np.array([0.0, high])
        return known

    def _exponent(self, points: Array) -> Array:
        y = points[:, 1]
        return np.asarray(y*y/2 + np.log(2*np.pi)/2 + self.k[np.searchsorted(self.between, points[:, 0])])


class _InnerAverage:
    """E f(x, y) at arrays of x."""

    def __init__(self, f: Expr, x: Symbol, y: Symbol) -> None:
        self.integrand = _ScaledRow(f, (x, y))
        self.breaks = Breaks(marks(self.integrand.program), (x, y))
        self.panels = NestedPanels(self.integrand, self.breaks, 1e-14)

    def at(self, x: Array) -> tuple[Scaled, Scaled]:
        """(values, errors); nan where mass is beyond 38."""
        places, back = np.unique(x, return_inverse=True)
        known = self.integrand.prepare(places)
        if not known.any():
            return 2*(Scaled(np.full(len(x), np.nan)),)
        found = self.panels.inner([places[known]], int(known.sum()))
        value, error = np.full(len(places), np.nan), np.full(len(places), np.nan)
        value[known], error[known] = found.value, found.error + self.integrand.rounding*found.size
        k = self.integrand.k[back]
        return Scaled(value[back], k), Scaled(error[back], k)


class _Outer(ScaledIntegrand):
    """F(x, v(x)) exp(-x^2/2)/(2 pi)^(1/2) over exp(`top`)."""

    def __init__(self, F: Expr, x: Symbol, inner: Mapping[Symbol, tuple[Expr, Symbol]]) -> None:
        self.rows = {v: _InnerAverage(f, x, y) for v, (f, y) in inner.items()}
        self._begin(F, (x,), (x, *inner), most=200_000)
        self.low, self.high = self._region()
        if np.isnan(self._found(np.concatenate([self.low, self.high]))[0].m).any():
            raise NotConverged(None, f"an average in {F} has no number at the ends of the window")

    def own_marks(self) -> BreakMarks:
        """The places that the formula shows in x alone."""
        return BreakMarks(*({u for u in us if u.free_symbols == {self.variables[0]}} for us in marks(self.program)))

    def level(self, points: Array) -> tuple[Array, Array]:
        found = self._found(points[:, 0])[0].logarithm() - self._exponent(points)
        return points, np.where(np.isfinite(found), found, -np.inf)

    def _require_decay(self) -> None:
        """Values on the grid only: an integrand with mass at its ends is refused."""

    def with_error(self, x: Array) -> tuple[Array, Array]:
        """Values of F over exp(top), and what the errors of the inner averages change in them."""
        self.evaluations += len(x)
        unit = self._exponent(x[:, None]) + self.top
        with np.errstate(all="ignore"):
            value, error = (np.real(a.m)*np.exp(a.k - unit) for a in self._found(x))
        return value, error

    def _found(self, x: Array) -> tuple[Scaled, Scaled]:
        values = {v: row.at(x) for v, row in self.rows.items()}
        plain = [value for value, _ in values.values()]
        with np.errstate(all="ignore"):
            found = self.program.floats(x, *plain)
            error = np.zeros(len(x))
            for i, (value, wrong) in enumerate(values.values()):
                for side in (1, -1):
                    moved = [*plain[:i], Scaled(value.m + side*wrong.m, value.k), *plain[i + 1:]]
                    other = self.program.floats(x, *moved)
                    error = np.maximum(error, np.abs(other.m*np.exp(other.k - found.k) - found.m))
        return found, Scaled(error*len(values), found.k)


class _OverNodes(NestedPanels):
    """The panels of the outer variable."""

    def _value(self, columns: Sequence[Array], owner: NDArray[np.intp], y: Array, weights: Array) -> Sums:
        value, error = self.F.with_error(y)  # type: ignore[attr-defined]
        return Sums(value, error, np.abs(value))


class _BreaksOfAll(Breaks):
    """The places of several lists together."""

    def __init__(self, parts: Sequence[Breaks]) -> None:
        self.parts = parts

    def at(self, depth: int, columns: Sequence[Array], owners: int, low: float, high: float) -> tuple[Array, Array, Array]:
        found = [part.at(depth, columns, owners, low, high) for part in self.parts]
        places, blur, soft = (np.concatenate(lists) for lists in zip(*found, strict=True))
        return places, blur, soft


__all__ = ["average_of_averages"]
