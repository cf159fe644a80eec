"""int F = sum over panels of two Gauss rules, of orders 16 and 24: the value of the second, the error from their difference.

Panels end at the places where F is not analytic and are graded about its centres; next to a singular place r the
variable is s with x = r +- e^s. Bad panels are halved. Rounding is part of the error: floats are compared with balls on a
sample of the nodes, and the rounding of the nodes themselves is modelled by the variation of F.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from flint import acb, arb, ctx

from hermitex.errors import NotConverged
from hermitex.numbers import floats_with_exponent as scaled
from hermitex.numbers.floats_with_exponent import Scaled
from hermitex.numbers.gauss import legendre
from hermitex.numbers.integrand import LN10, Centre, Integrand
from hermitex.numbers.places import Place
from hermitex.numbers.program import Undecided
from hermitex.numbers.windows import Window
from hermitex.symbolic.budget import checkpoint

# 16 and 24: on an analytic panel the second has the square root of the first one's cube of its error.
ORDERS = (16, 24)
# 40,000 panels of 40 nodes are 1.6 million evaluations: some ten seconds; no panel is halved more than 64 times.
MOST_PANELS, MOST_ROUNDS = 40_000, 64
EPSILON = 2.0**-52  # of a double


class Sum(NamedTuple):
    """An integral exp(top) `value`, its error, the integral of |F| (`size`), in units of exp(top)."""

    value: Any
    error: float
    size: float


@dataclass(frozen=True)
class Chart:
    """A coordinate of panels: x itself, or s with x = r + side e^s next to a singular place r."""

    integrand: Integrand
    edges: np.ndarray
    place: Place | None = None
    side: int = 1
    power: float = 0.0

    def floats(self, s: np.ndarray) -> Scaled:
        """F dx/ds."""
        program = self.integrand.program
        number = float if self.integrand.real else complex
        if self.place is None:
            return program.floats(s.astype(number))
        logarithmic = self.integrand.logarithmic(self.place, self.side)
        if logarithmic is not None:
            return logarithmic.floats(s.astype(number))
        return scaled.multiply(program.floats((self.place.x + self.side*np.exp(s)).astype(number)), scaled.exponential(s))

    def rounded(self, s: np.ndarray) -> np.ndarray:
        """The size of what is rounded in the coordinate: |s|, and next to a place r that is a double only, |r/(x - r)|, too."""
        if self.place is None or self.place.exact is not None:
            return np.abs(s)
        return np.abs(s) + abs(self.place.x)*np.exp(np.minimum(-s, 700.0))

    def position(self, s: np.ndarray) -> np.ndarray:
        """The points in the variable of the integrand."""
        return s if self.place is None else self.place.x + self.side*np.exp(s)

    def ball(self, s: float) -> Any:
        """F dx/ds at one point, with the working precision of flint."""
        if self.place is None:
            return self.integrand.program.balls(acb(s))
        logarithmic = self.integrand.logarithmic(self.place, self.side)
        if logarithmic is not None:
            return logarithmic.balls(acb(s))
        step = arb(s).exp()
        return self.integrand.program.balls(acb(self.place.ball(ctx.prec) + self.side*step))*step


def charts(integrand: Integrand, window: Window) -> list[Chart]:
    """The charts of a window: one of all regular panels, one for each singular end."""
    breaks = integrand.breaks(window)
    centres = integrand.centres(window)
    ends: list[tuple[float, Place | None]] = [(p.x, p) for p in breaks]
    ends = [_end(integrand, 0, window.low), *ends, _end(integrand, 1, window.high)]
    knots = _knots(window, centres)
    out, regular = [], []
    for (a, left), (b, right) in pairwise(ends):
        powers = [None if p is None else integrand.behaviour(p, s) for p, s in ((left, 1), (right, -1))]
        middle = (a + b)/2 if powers[0] is not None and powers[1] is not None else a if powers[0] is None else b
        for place, side, power, far in ((left, 1, powers[0], middle), (right, -1, powers[1], middle)):
            if place is not None and power is not None:
                out.append(_singular_chart(integrand, place, side, power, far, knots))
        if powers[0] is None and powers[1] is None:
            regular.append(_between(knots, a, b))
    return [*([_regular_chart(integrand, regular)] if regular else []), *out]


def _end(integrand: Integrand, number: int, x: float) -> tuple[float, Place | None]:
    place = integrand.ends[number]
    return (x, place if place is not None and place.x == x else None)


def _knots(window: Window, centres: Sequence[Centre]) -> np.ndarray:
    """Panel ends: evenly over the window, at powers of 2, and about each centre graded by 4 from its width on."""
    width = window.high - window.low
    doublings = 2.0**np.arange(0, max(1.0, math.log2(1 + max(abs(window.low), abs(window.high)))))
    knots = [np.linspace(window.low, window.high, 17), doublings, -doublings]
    for c in centres:
        steps = c.width*4.0**np.arange(0, max(1.0, math.log(width/c.width + 1, 4)))
        knots += [np.array([c.x]), c.x + steps, c.x - steps]
    found = np.unique(np.concatenate(knots))
    return found[(found > window.low) & (found < window.high)]


def _between(knots: np.ndarray, a: float, b: float) -> np.ndarray:
    """The ends of the panels between a and b."""
    inside = knots[(knots > a) & (knots < b)]
    inside = inside[(inside - a > 1e-15*abs(a)) & (b - inside > 1e-15*abs(b))]  # no panels of a few doubles
    return np.concatenate([[a], inside, [b]])


def _regular_chart(integrand: Integrand, pieces: Sequence[np.ndarray]) -> Chart:
    return Chart(integrand, np.concatenate([np.stack([p[:-1], p[1:]], axis=1) for p in pieces]))


def _singular_chart(integrand: Integrand, place: Place, side: int, power: float, far: float, knots: np.ndarray) -> Chart:
    """Panels in s = log|x - r|, from the far end down to where less than 10^-digits of the mass of the end is left."""
    last = math.log(abs(far - place.x))
    depth = (integrand.digits + 4)*LN10/max(1 + power, 1e-3)
    first = integrand.peak_next_to(place, side, last) - max(depth, 8.0)
    distance = side*(knots - place.x)
    mapped = np.log(distance[(distance > 0) & (distance < abs(far - place.x))])
    down = last - 0.5*2.0**np.arange(0, math.log2(2*(last - first)))
    edges = _between(np.unique(np.concatenate([mapped, down[down > first]])), first, last)
    return Chart(integrand, np.stack([edges[:-1], edges[1:]], axis=1), place, side, power)


# -- summation ---------------------------------------------------------------------------------------------------------------
@dataclass
class Panels:
    """The panels of a chart: edges (n, 2), integrals, errors, sizes, noise, and nodes with their values."""

    edges: np.ndarray
    value: np.ndarray
    error: np.ndarray
    size: np.ndarray
    noise: np.ndarray
    nodes: np.ndarray
    masses: np.ndarray
    stalls: np.ndarray

    def __getitem__(self, chosen: Any) -> Panels:
        return Panels(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))

    def joined(self, other: Panels) -> Panels:
        """Both lists."""
        return Panels(*(np.concatenate([getattr(self, n), getattr(other, n)]) for n in self.__dataclass_fields__))


def _evaluated(chart: Chart, edges: np.ndarray, top: float) -> Panels:
    rules = [legendre(order) for order in ORDERS]
    half, middle = np.diff(edges, axis=1)/2, edges.mean(axis=1, keepdims=True)
    nodes = [middle + half*x for x, _ in rules]
    values = chart.floats(np.concatenate(nodes, axis=1))
    with np.errstate(all="ignore"):
        plain = Scaled(values.m, np.asarray(values.k - top)).plain()
    plain = np.where(np.isnan(plain), 0.0, plain)
    coarse, fine = plain[:, :ORDERS[0]], plain[:, ORDERS[0]:]
    with np.errstate(all="ignore"):  # an infinite value gives no finite error, which the sum refuses
        terms = half*rules[1][1]*fine
        variation = np.abs(np.diff(fine, axis=1)).sum(axis=1)*chart.rounded(nodes[1]).max(axis=1)
        size = np.abs(terms).sum(axis=1)
        value = terms.sum(axis=1)
        error = np.abs(value - (half*rules[0][1]*coarse).sum(axis=1))
        noise = EPSILON*(2*size + variation/4)
    return Panels(edges, value, error, size, noise, nodes[1], np.abs(terms), np.zeros(len(edges), dtype=int))


def panel_sum(integrand: Integrand, window: Window, digits: int = 15) -> Sum:
    """The integral of F over a window by floats, with its error, rounding included."""
    found = refined(integrand, window, digits)
    if not all(np.isfinite(p.error).all() and np.isfinite(p.noise).all() for _, p in found):
        raise NotConverged(None, f"{integrand.f} is too large for a float somewhere in its window")
    value = sum(_total(p.value) for _, p in found)
    size = float(sum(p.size.sum() for _, p in found))
    if size < window.mass/100:  # the cells of a scan may miss a peak, but what they hold is there
        raise NotConverged(None, f"the panels of {integrand.f} hold {size:.3g} of a mass of about {window.mass:.3g}")
    error = float(sum(p.error.sum() + p.noise.sum() for _, p in found))
    error += sum(_remainder(chart, p) for chart, p in found) + _measured_rounding(found, window.top, size)
    return Sum(value, error, size)


def refined(integrand: Integrand, window: Window, digits: int) -> list[tuple[Chart, Panels]]:
    """The panels of a window, halved until their errors are below 10^-digits of the integral, or below rounding."""
    found = [(chart, _evaluated(chart, chart.edges, window.top)) for chart in charts(integrand, window)]
    for _ in range(MOST_ROUNDS):
        checkpoint("summing panels")
        size, count = sum(p.size.sum() for _, p in found), sum(len(p.size) for _, p in found)
        allowed = 10.0**-(digits + 1)*size/count
        bad = [(p.error > np.maximum(4*p.noise, allowed)) & ((p.stalls < 4) | (p.error > 1e-8*size)) for _, p in found]
        if not any(b.any() for b in bad) or count > MOST_PANELS:
            break
        found = [(chart, _halved(chart, p, b, window.top)) for (chart, p), b in zip(found, bad, strict=True)]
    return found


def _total(values: np.ndarray) -> Any:
    """The exactly rounded sum."""
    if np.iscomplexobj(values):
        return complex(math.fsum(values.real), math.fsum(values.imag))
    return math.fsum(values)


def _halved(chart: Chart, panels: Panels, bad: np.ndarray, top: float) -> Panels:
    if not bad.any():
        return panels
    low, high = panels.edges[bad].T
    middle = (low + high)/2
    halves = np.concatenate([np.stack([low, middle], axis=1), np.stack([middle, high], axis=1)])
    children = _evaluated(chart, halves, top)
    # 0.3: the error of rounding halves with a panel, that of a kink falls to a quarter
    children.stalls = np.tile(panels.stalls[bad], 2) + (children.error > 0.3*np.tile(panels.error[bad], 2))
    return panels[~bad].joined(children)


def _remainder(chart: Chart, panels: Panels) -> float:
    """The part between a singular place and the first panel: a geometric series of the first panel."""
    if chart.place is None or not len(panels.size):
        return 0.0
    first = int(np.argmin(panels.edges[:, 0]))
    width = float(panels.edges[first, 1] - panels.edges[first, 0])
    return float(panels.size[first])/math.expm1(min(max(1 + chart.power, 1e-3)*width, 700.0))  # e^700 is the largest double


def _measured_rounding(found: Sequence[tuple[Chart, Panels]], top: float, size: float) -> float:
    """Twice the root mean square of float against ball, on nodes at equal shares of the mass, times the mass."""
    deviations = list(_deviations(found, top))
    return 2*size*math.sqrt(sum(d*d for d in deviations)/len(deviations)) if deviations else 8*EPSILON*size


def _deviations(found: Sequence[tuple[Chart, Panels]], top: float, samples: int = 24) -> Iterator[float]:
    masses = np.concatenate([p.masses.ravel() for _, p in found])
    nodes = np.concatenate([p.nodes.ravel() for _, p in found])
    owner = np.concatenate([np.full(p.masses.size, i) for i, (_, p) in enumerate(found)])
    share = np.cumsum(masses)
    if not share[-1] > 0:
        return
    chosen = np.unique(np.searchsorted(share, share[-1]*(np.arange(samples) + 0.5)/samples))
    for j in chosen[chosen < len(nodes)]:
        chart = found[int(owner[j])][0]
        if not chart.integrand.program.has_balls:
            return
        ball = _at(chart, float(nodes[j]))
        value = chart.floats(nodes[j:j + 1])
        if ball is None:
            continue
        with ctx.workprec(120):
            rescaled = ball*arb(-top).exp()
            exact = complex(float(rescaled.real.mid()), float(rescaled.imag.mid()))
            got = complex(Scaled(value.m, np.asarray(value.k - top)).plain()[0])
            yield abs(got - exact)/abs(exact) if exact else abs(got)


def _at(chart: Chart, s: float) -> acb | None:
    """F at one node to 70 bits, or None where balls do not decide."""
    for bits in (120, 500):
        with ctx.workprec(bits):
            try:
                ball = chart.ball(s)
            except (Undecided, ZeroDivisionError, ValueError):
                continue
            if ball.rel_accuracy_bits() > 70:
                return ball
    return None
