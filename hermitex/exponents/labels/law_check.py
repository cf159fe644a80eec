"""int P(y|z) dy = 1 and P(y|z) >= 0 for every z: is what a user wrote the law of a label?

A density is integrated over y at several z, a count summed, listed values added up; signs are looked at over many z. A
law is refused where its total is off by far more than the estimated error; a total that was not reached refuses
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sympy import Abs, Expr, Symbol, expand_log, factorial, gamma, log, loggamma

from hermitex.errors import BadInput
from hermitex.kernels.arrays import lambdify
from hermitex.numbers.gauss import legendre
from hermitex.symbols import natural, normals


def check_law(p: Expr, y: Symbol, support: Any) -> None:
    """Refuse a P(y|z) that is negative somewhere, or does not integrate (sum) to one.

    Parameters: `p` over the label `y` and standard normals; `support` "real", "integers" or the listed values.

    Raises
    ------
    BadInput : the value that was found, and at which z.

    Examples
    --------
    >>> from sympy import exp
    >>> from hermitex.symbols import z
    >>> y = Symbol("y", real=True)
    >>> check_law(exp(-(y - z)**2/2), y, "real")
    Traceback (most recent call last):
    ...
    hermitex.errors.BadInput: Channel: P(y|z) integrates to 2.50663, not to 1, at z = 0.5; divide it by what it integrates to
    """
    z = tuple(sorted(normals(p), key=natural))
    density = DrawnLaw(p, y, z)
    if not isinstance(support, str):
        _signs(density, z, [float(v) for v in support])
        for point in _points(len(z), 12):
            _is_one(sum(float(density(float(v), point)) for v in support), 0.0, "sums", z, point)
        return
    _signs(density, z, list(range(12)) if support == "integers" else [*np.linspace(-6, 6, 25)])
    for point in _points(len(z), 5, 2.5):
        total, error = _counted(density, point) if support == "integers" else _integrated(density, point)
        _is_one(total, error, "sums" if support == "integers" else "integrates", z, point)


class DrawnLaw:
    """p(y, z) on arrays that broadcast, by way of log p where p itself overflows."""

    def __init__(self, p: Expr, y: Symbol, z: Sequence[Symbol]) -> None:
        smooth = p.replace(factorial, lambda n: gamma(n + 1))
        logarithm = expand_log(log(smooth), force=True).replace(lambda e: isinstance(e, log) and isinstance(e.args[0], gamma),
                                                                lambda e: loggamma(e.args[0].args[0]))
        # The logarithm of z^2 is 2 log|z|; the signs of the factors of a probability cancel.
        logarithm = logarithm.replace(log, lambda u: log(Abs(u)))
        self._plain = lambdify((y, *z), p, modules=["numpy", "scipy"])
        self._log = lambdify((y, *z), logarithm, modules=["numpy", "scipy"])

    def __call__(self, y: Any, point: Sequence[Any]) -> np.ndarray:
        """p at labels and points, of the shape they broadcast to; nan where it is not known."""
        values = self._array(self._plain, y, point)
        doubtful = ~np.isfinite(values) | (values == 0)  # 0 may be what an overflow in a denominator left
        if doubtful.any():
            values[doubtful] = np.exp(np.minimum(self.log(*self._some(doubtful, y, point)), 700))
        return values

    def log(self, y: Any, point: Sequence[Any]) -> np.ndarray:
        """log p, -inf where p is zero, of the shape that labels and points broadcast to."""
        values = self._array(self._log, y, point)
        unknown = np.isnan(values)
        if unknown.any():
            with np.errstate(divide="ignore"):
                values[unknown] = np.log(np.maximum(self._array(self._plain, *self._some(unknown, y, point)), 0))
        return values

    @staticmethod
    def _some(chosen: np.ndarray, y: Any, point: Sequence[Any]) -> tuple[np.ndarray, list[np.ndarray]]:
        y, *z = (v[chosen] for v in np.broadcast_arrays(y, *point))
        return y, z

    @staticmethod
    def _array(f: Callable, y: Any, point: Sequence[Any]) -> np.ndarray:
        y, *z = np.broadcast_arrays(*(np.asarray(v, dtype=float) for v in (y, *point)))
        shape = y.shape
        try:
            with np.errstate(all="ignore"):
                values = np.asarray(f(y, *z))
        except (TypeError, ValueError, NameError, ArithmeticError, AttributeError, KeyError):
            return np.full(shape, np.nan)
        values = np.real(np.where(np.imag(values) == 0, values, np.nan)) if np.iscomplexobj(values) else values
        return np.broadcast_to(values, shape).astype(float)


def _points(r: int, count: int, reach: float = 6.0) -> list[tuple[float, ...]]:
    """A point off the kinks of everyday laws, then multiples of irrationals, spread over the window."""
    steps = [0.6180339887498949*(i + 1)**0.5 for i in range(r)]
    spread = [tuple(reach*(2*((k*s) % 1) - 1) for s in steps) for k in range(1, count)]
    return [tuple(0.5 + 0.25*i for i in range(r)), *spread] if r else [()]


def _signs(law: DrawnLaw, z: Sequence[Symbol], labels: Sequence[float]) -> None:
    y = np.array(labels, dtype=float)
    for point in _points(len(z), 200):
        with np.errstate(all="ignore"):
            values = law(y, point)
        values = np.nan_to_num(values, nan=0.0)
        worst = int(np.argmin(values))
        if values[worst] < -1e-9*max(1.0, float(np.abs(values).max())):
            raise BadInput(f"Channel: P(y|z) is negative, {values[worst]:.6g}, at y = {y[worst]:g}{_at(z, point, ', ')}; "
                           "a probability is at least 0")


def _is_one(total: float, error: float, verb: str, z: Sequence[Symbol], point: Sequence[float], *,
            off: float = 1e-5, reached: float = 1e-7) -> None:
    # reached: estimated error below which a total counts as known, a hundredth of what is called off
    # off: a total this far from one is not rounding, where sums and panels are good to 1e-7
    if np.isfinite(total) and error < reached and abs(total - 1) > off:
        raise BadInput(f"Channel: P(y|z) {verb} to {total:.6g}, not to 1{_at(z, point, ', at ')}; "
                       f"divide it by what it {verb} to")


def _at(z: Sequence[Symbol], point: Sequence[float], lead: str) -> str:
    return lead + ", ".join(f"{v} = {x:.4g}" for v, x in zip(z, point, strict=True)) if z else ""


# -- totals ------------------------------------------------------------------------------------------------------------
def _counted(law: DrawnLaw, point: Sequence[float]) -> tuple[float, float]:
    """(sum over the counts, the size of what was left out)."""
    counts = 4000  # 0, ..., 3999: a Poisson law of rate 3,000 is within them; the last ten terms show a law that is not
    with np.errstate(all="ignore"):
        values = law(np.arange(float(counts)), point)
    if not np.isfinite(values).all():
        return float("nan"), 0.0
    return float(values.sum()), float(counts*np.abs(values[-10:]).max())


def _integrated(law: DrawnLaw, point: Sequence[float]) -> tuple[float, float]:
    """(int p dy, its error): panels that accumulate at the peaks of p, halved where two rules disagree."""
    rounds = 45  # 2^-45 of the first panels is 3e-14 of the range: halving beyond is rounding
    most_panels = 400  # that are still bad in one round: a law with so many peaks is not integrated
    with np.errstate(all="ignore"):
        edges = _edges(law, point)
        total = error = 0.0
        for _ in range(rounds):
            fine, coarse = (_gauss(law, edges, point, n) for n in (14, 9))
            gap = np.abs(fine - coarse)
            bad = ~(gap < 1e-12)
            total, error = total + float(fine[~bad].sum()), error + float(gap[~bad].sum())
            width = np.diff(edges, axis=0)[0]
            if not bad.any() or bad.sum() > most_panels:
                break
            small = bad & (width <= 1e-12*np.maximum(1, np.abs(edges[0])))
            error += float(np.abs(fine[small]).sum()) + float(gap[small].sum())
            low, high = edges[:, bad & ~small]
            middle = (low + high)/2
            edges = np.array([[*low, *middle], [*middle, *high]])
        left = _gauss(law, edges, point, 14)[bad] if bad.any() and bad.sum() > most_panels else np.zeros(0)
    return total, error + (float("inf") if len(left) else 0.0)


def _gauss(law: DrawnLaw, edges: np.ndarray, point: Sequence[float], order: int) -> np.ndarray:
    x, w = legendre(order)
    half = (edges[1] - edges[0])/2
    y = (edges[0] + half)[:, None] + half[:, None]*x
    return half*(law(y, point) @ w)


def _edges(law: DrawnLaw, point: Sequence[float]) -> np.ndarray:
    """Panels over the line, uniform in t, y = sinh(pi/2 sinh t), and geometric about each peak of log p."""
    t = np.arange(-4.2, 4.2, 1/40)
    y = np.sinh(np.pi/2*np.sinh(t))
    height = np.nan_to_num(law.log(y, point), nan=-np.inf, posinf=700.0)
    inner = np.flatnonzero((height[1:-1] >= height[:-2]) & (height[1:-1] >= height[2:]) & (height[1:-1] > -np.inf)) + 1
    ends = [y]
    for i in inner[np.argsort(-height[inner])][:12]:
        peak = _peak(law, point, y[i - 1], y[i + 1])
        offsets = max(1.0, abs(peak))*2.0**-np.arange(0, 44)
        ends += [peak + offsets, peak - offsets, np.array([peak])]
    found = np.unique(np.concatenate(ends))
    return np.array([found[:-1], found[1:]])


def _peak(law: DrawnLaw, point: Sequence[float], low: float, high: float) -> float:
    for _ in range(40):
        y = np.linspace(low, high, 9)
        i = int(np.argmax(np.nan_to_num(law.log(y, point), nan=-np.inf, posinf=700.0)))
        low, high = y[max(i - 1, 0)], y[min(i + 1, 8)]
    return float((low + high)/2)
