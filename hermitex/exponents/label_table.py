"""m(y) = E[z z^T|y] as a table: series on panels that shrink where m bends, and single labels with a value of their own.

The panels are in tau, y = end +- width tau^2, so that the square roots at the ends of the branches of a label are smooth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from hermitex.exponents.laws.density import Law
from hermitex.exponents.observed_law import ObservedLaw
from hermitex.kernels.panel_rules import distinct_sorted, to_series
from hermitex.numbers.gauss import legendre
from hermitex.symbolic.budget import checkpoint

_TERMS = 14  # of the series on a panel; a panel is halved until they suffice


@dataclass(frozen=True)
class LabelTable:
    """m(y) on arrays.

    Attributes
    ----------
    labels, values : labels with a value of their own, (n,), and m at these, (n, r, r)
    halves : (end, width) of the intervals y = end + width tau^2, 0 < tau < 1, width of either sign
    panels : (half, low, high) in tau, one row each, in the order of their labels
    series : coefficients of Legendre polynomials on each panel, (panels, terms, r, r)
    error : the largest distance to the law of the label at points between the nodes, relative to 1 + |m|; next to a jump or a
        logarithm panels of 1e-6 of an interval are not counted
    """

    labels: np.ndarray
    values: np.ndarray
    halves: np.ndarray
    panels: np.ndarray
    series: np.ndarray
    error: float = 0.0

    def __call__(self, y: np.ndarray) -> np.ndarray:
        """m at labels (n,) -> (n, r, r); a label beyond the table has the value at its end."""
        return look_up(y, self.labels, self.values, self.halves, self.panels, self.series)


def look_up(y, labels, values, halves, panels, series):  # type: ignore[no-untyped-def]  # its text goes into exported files
    """E[z z^T|y] at labels y, shape (n,) -> (n, r, r)."""
    found = np.full((len(y), *values.shape[1:]), np.nan)
    if len(panels):
        end, width = halves[panels[:, 0].astype(int)].T
        edges = np.sort(np.stack([end + width*panels[:, 1]**2, end + width*panels[:, 2]**2]), axis=0)
        at = np.clip(np.searchsorted(edges[1], y), 0, len(panels) - 1)
        inside = np.clip(y, edges[0][at], edges[1][at])
        tau = np.sqrt(np.maximum((inside - end[at])/width[at], 0))
        x = np.clip((2*tau - panels[at, 1] - panels[at, 2])/(panels[at, 2] - panels[at, 1]), -1, 1)
        powers = np.polynomial.legendre.legvander(x, series.shape[1] - 1)
        found = np.einsum("nk,nkij->nij", powers, series[at])
        found[~np.isfinite(y)] = np.nan
    for label, value in zip(labels, values):  # noqa: B905  # the text runs on older versions of Python, too
        found[np.abs(y - label) <= 1e-12*(1 + abs(label))] = value
    return found


def tabulated_moments(seen: ObservedLaw, r: int) -> LabelTable:
    """The table of a law of the label over r variables."""
    labels = np.array([label for label, _ in seen.atoms])
    values = seen.moments(np.array([nu for _, nu in seen.atoms]).T, r) if seen.atoms else np.zeros((0, r, r))
    nothing = LabelTable(labels, values, np.zeros((0, 2)), np.zeros((0, 3)), np.zeros((0, _TERMS, r, r)))
    return nothing if seen.law is None else _with_panels(nothing, seen, seen.law, r)


def _with_panels(table: LabelTable, seen: ObservedLaw, law: Law, r: int) -> LabelTable:
    order = np.argsort(seen.labels, kind="stable")
    cumulative = np.cumsum(seen.masses[0][order])
    far = 1e-12  # mass of a tail in which a label keeps the value at the end of the table
    low, high = seen.labels[order][np.searchsorted(cumulative, [far*cumulative[-1], (1 - far)*cumulative[-1]])]
    low, high = (next((k for k in law.knots if k == end), at) for end, at in ((law.lo, low), (law.hi, high)))
    quarters = seen.labels[order][np.searchsorted(cumulative, np.array([0.25, 0.75])*cumulative[-1])]
    typical = 0.5*cumulative[-1]/max(float(np.ptp(quarters)), 1e-300)
    breaks = distinct_sorted(np.array([low, *[b for b in law.breaks() if low < b < high], high]))
    halves: list[tuple[float, float]] = []
    panels: list[tuple[float, float, float]] = []
    series, errors = [], [0.0]
    for a, b in pairwise(breaks):
        for end, width in ((a, (b - a)/2), (b, (a - b)/2)):
            def m(tau: np.ndarray, end: float = end, width: float = width) -> tuple[np.ndarray, np.ndarray]:
                nu = law.density(end + width*tau**2)
                with np.errstate(all="ignore"):
                    return nu[0], seen.moments(nu, r)

            found = _fitted(m, typical)
            found = found if width > 0 else found[::-1]
            panels += [(len(halves), lo, hi) for lo, hi, _, _ in found]
            series += [s for _, _, s, _ in found]
            errors += [e for *_, e in found]
            halves.append((end, width))
    return LabelTable(table.labels, table.values, np.array(halves), np.array(panels), np.array(series), max(errors))


def _fitted(m: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]], typical: float
            ) -> Sequence[tuple[float, float, np.ndarray, float]]:
    """Panels (low, high, series, error) of (0, 1) in their order; `typical`: the unit of densities."""
    x, _ = legendre(_TERMS)
    between = np.linspace(-0.97, 0.97, 9)  # points for verification, between the nodes
    fine, deepest = 1e-11, 20  # relative to 1 + |m|; halvings of a panel, to 2^-40 in y next to a knot
    rounding, rare = 1e-14, 1e-6  # of densities, in units of the typical one; densities below which an error is not counted
    quiet, slow = 1e-8, 1/4  # an error at which a halving must still divide it by four: what does not is the noise of the law
    found: list[tuple[float, float, np.ndarray, float]] = []
    left = [(0.0, 1.0, 0, np.inf)]
    while left:
        checkpoint("tabulating the label map")
        low, high, depth, before = left.pop()
        middle, half = (low + high)/2, (high - low)/2
        mass, at_nodes = m(middle + half*x)
        good = (mass > 0) & np.isfinite(at_nodes).all(axis=(1, 2))
        if not good.any():
            continue
        at_nodes = at_nodes[good][np.abs(np.flatnonzero(good)[:, None] - np.arange(len(x))).argmin(axis=0)]
        series = np.einsum("kn,nij->kij", to_series(_TERMS), at_nodes)
        check_mass, wanted = m(middle + half*between)
        fit = np.einsum("nk,kij->nij", np.polynomial.legendre.legvander(between, _TERMS - 1), series)
        part = np.maximum(check_mass, 1e-300)/typical
        off = np.nan_to_num(np.abs(fit - wanted)/(1 + np.abs(wanted))).max(axis=(1, 2))
        worst = float(np.max(off - rounding/part))
        noise = worst <= quiet and worst > slow*before
        if (good.all() and (worst <= fine or noise)) or depth == deepest:
            found.append((low, high, series, float(np.max(off, where=part > rare, initial=0.0)) if depth < deepest else 0.0))
        else:
            left += [(middle, high, depth + 1, worst), (low, middle, depth + 1, worst)]
    return found
