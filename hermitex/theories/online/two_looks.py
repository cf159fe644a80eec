r"""E f(z, h_0, h_1): averages over a sample that a full batch uses twice, y = g(z) and h_1 the field after the step.

Given (z, h_0) the second field is a normal of mean (1 + eta f_0) h_0 + eta e_0 z + (eta/alpha) r_0 and of deviation
eta sqrt(q_0/alpha) (the letters are those of `batch_reuse`): nodes in (z, h_0), and E over h_1 made a polynomial in its mean.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sympy import Expr, Integer

from hermitex.errors import BadInput
from hermitex.kernels.normals import WINDOW, panels
from hermitex.kernels.panel_rules import split, to_series
from hermitex.numbers.gauss import legendre, legendre_on
from hermitex.symbolic.activations import Activation
from hermitex.symbolic.gaussian import E
from hermitex.symbolic.series.coefficients import coefficient
from hermitex.symbols import z
from hermitex.theories.online.repeated import function_of

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class TwoLooks:
    """Averages over (z, h_0, G) of a sample that is used twice.

    student, slope : sigma and sigma';  label : g;  kinks, cuts : where sigma' and g are not smooth
    e_0, f_0, q_0 : E[z r_0], E[h_0 r_0], E[r_0^2];  square : the loss;  even : whether g is
    """

    student: Callable[[Array], Array]
    slope: Callable[[Array], Array]
    label: Callable[[Array], Array]
    kinks: Array
    cuts: Array
    square: bool
    even: bool
    e_0: float
    f_0: float
    q_0: float

    @cached_property
    def reach(self) -> float:
        """The end of the range of z: the part of a growing label's second moment beyond it is at most 1e-12."""
        for reach in WINDOW*1.4**np.arange(6):
            x, w = panels(self.cuts, 0.5, 16, reach)
            own = w*np.exp(-x*x/2)*self.label(x)**2
            if own[np.abs(x) > reach - 1].sum() < 1e-12*own.sum():
                return float(reach)
        raise BadInput("batch-reuse: the second moment of the target comes from |z| > 40, where no sample is")

    @classmethod
    def of(cls, sigma: Activation, g: Activation, loss: str) -> TwoLooks:
        """Functions compiled, averages of the first look to all digits, as sums of products of two averages."""
        from hermitex.theories.overlaps.label_structure import axis

        slope, square = sigma.weak_derivative.expr, loss == "square"
        own = sigma.expr if square else Integer(0)

        def mean(f: Expr) -> float:
            return float(E(f, z).evalf(17)) if f.has(z) else float(f)

        first, second, y = float(coefficient(g, 1).evalf(17)), mean(g.expr**2), mean(g.expr)
        q_0 = second*mean(slope**2) - 2*y*mean(own*slope**2) + mean(own**2*slope**2)
        kinks, cuts = axis(sigma.expr, z).cuts, axis(g.expr, z).cuts
        student, steep, label = (function_of("batch-reuse", e, WINDOW) for e in (sigma.expr, slope, g.expr))
        return cls(student, steep, label, kinks, cuts, square, g.parity == 1,
                   first*mean(slope), y*mean(z*slope) - mean(z*own*slope), q_0)

    def residual(self, y: Array, h: Array) -> Array:
        """r(y, h)."""
        return (y - self.student(h) if self.square else y)*self.slope(h)

    def settled(self, alpha: float, eta: float, steps: int) -> tuple[dict[str, float], float]:
        """The numbers of each step and the difference of the last two rules, each 2/3 as coarse as the one before."""
        first = 1.6  # the coarsest rule: with it smooth functions have ten digits
        before, error = self.after(alpha, eta, steps, first), np.inf
        for level in range(1, 4):
            found = self.after(alpha, eta, steps, first*(2/3)**level)
            error = max(abs(found[n] - before[n])/max(1.0, abs(found[n])) for n in found)
            before = found
            if error < 1e-10:
                break
        return before, error

    def after(self, alpha: float, eta: float, steps: int, fineness: float) -> dict[str, float]:
        """cosine_t, overlap_t, norm_t, and growth_t of an even target, t = 1 to `steps`."""
        e, f, q = self.e_0, self.f_0, self.q_0
        kept, spread = 1 + eta*f, eta*np.sqrt(q/alpha)
        m, square = [eta*e], [kept**2 + (eta*e)**2 + spread**2]
        growth = [1.0]
        if steps == 2 or self.even:
            points = _Points(self, alpha, eta, fineness)
        if self.even:
            growth[0] += eta*points.mean(points.z**2*points.h*points.r_0)
        if steps == 2:
            R, R_G, R_2 = points.second_look(kept, spread)
            z, h, r_0, mean = points.z, points.h, points.r_0, points.mean
            along, own, square_1, both = mean(z*R), mean(h*R), mean(R_2), mean(r_0*R)
            memory = both/alpha + np.sqrt(q/alpha)*mean(R_G)
            m.append(m[0] + eta*along)
            noise = memory**2*alpha/q + (square_1 - both**2/q)/alpha if q else 0.0
            square.append(square[0] + 2*eta*(kept*own + m[0]*along + eta*memory) + eta**2*(along**2 + own**2 + noise))
            if self.even:  # E[r_1|m_0] to first order: the start enters h_0 and h_1 - (eta/alpha) r_0, of covariance C
                C = np.array([[1, kept], [kept, square[0]]])
                seen = [mean(z**2*h*R), mean(z**2*(kept*h*R + spread*R_G))]
                # The pseudo-inverse: without a spread both fields are one.
                growth.append(growth[0] + eta*float(np.array([1, growth[0]]) @ np.linalg.pinv(C, hermitian=True) @ seen))
        found: dict[str, float] = {}
        for t, (overlap, size) in enumerate(zip(m, np.sqrt(square), strict=True), start=1):
            found |= {f"cosine_{t}": float(overlap/size), f"overlap_{t}": float(overlap), f"norm_{t}": float(size)}
            if self.even:
                found[f"growth_{t}"] = float(growth[t - 1]/size)
        return found


class _Points:
    """Nodes of (z, h_0), shape (n,), their labels and first residuals; averages of the second look at them."""

    def __init__(self, looks: TwoLooks, alpha: float, eta: float, fineness: float) -> None:
        self.looks, self.fineness = looks, fineness
        self.spread = eta*np.sqrt(looks.q_0/alpha)
        order, widest, most = 16, 300, 10_000_000  # the spread's nodes take 60 MB, those of (z, h_0) 600 MB
        if self.spread > widest:
            raise BadInput(f"batch-reuse: the step's noise, eta sqrt(E r_0^2/alpha) = {self.spread:.3g}, is at most {widest}; "
                           "take a smaller eta or a larger alpha")
        # The label moves the field of the second look by (eta/alpha) r_0, over its spread by r_0/sqrt(q_0 alpha).
        x, w = panels(looks.cuts, 0.5*fineness*min(1.0, np.sqrt(looks.q_0*alpha)), order, looks.reach)
        # The second look at a kink of sigma' is smooth on the scale of the spread, which panels in h_0 resolve.
        edges = _graded(looks.kinks, self.spread*fineness, 0.5*fineness, WINDOW)
        u, v = (a.ravel() for a in legendre_on(edges, order))
        if x.size*u.size > most:
            raise BadInput(f"batch-reuse: alpha = {alpha:.3g} is too small for this target; take a larger one")
        w, v = w*np.exp(-x*x/2), v*np.exp(-u*u/2)
        weights = np.multiply.outer(w/w.sum(), v/v.sum())
        y = looks.label(x)
        r_0 = looks.residual(y[:, None], u)
        kept = weights*(1 + y[:, None]**2 + r_0**2) > 1e-17*(1 + looks.q_0)  # of averages of this order
        i, j = np.nonzero(kept)
        self.weights, self.z, self.h, self.y, self.r_0 = weights[i, j], x[i], u[j], y[i], r_0[i, j]
        self.shift = eta*looks.e_0*self.z + eta/alpha*self.r_0

    def mean(self, f: Array) -> float:
        """E[f(z, h_0)]."""
        return float(self.weights @ f)

    def second_look(self, kept: float, spread: float) -> tuple[Array, Array, Array]:
        """E[r_1], E[G r_1] and E[r_1^2] over G, at each node."""
        looks, y = self.looks, self.y

        def parts(u: Array) -> Array:
            slope = looks.slope(u)
            own = looks.student(u) if looks.square else np.zeros_like(u)
            return np.stack([slope, own*slope, slope**2, own*slope**2, (own*slope)**2], axis=-1)

        at = kept*self.h + self.shift
        reach = float(np.max(np.abs(at))) + spread
        coarse = self.fineness*max(spread, 0.25)  # of panels in h_1; sigma itself varies over a distance of about 1
        if reach > 200_000*coarse:  # half of the edges, at most: an array of 3 MB
            raise BadInput(f"batch-reuse: labels as large as {np.max(np.abs(y)):.1g} count in the second step; take a target that "
                           "grows more slowly")
        edges = _graded(looks.kinks, spread*self.fineness, coarse, reach)
        value = _smoothed(parts, at, spread, edges, looks.kinks, self.fineness)
        first, second, *squares, first_G, second_G = value.T
        return y*first - second, y*first_G - second_G, y**2*squares[0] - 2*y*squares[1] + squares[2]


def _smoothed(f: Callable[[Array], Array], at: Array, s: float, edges: Array, kinks: Array, fineness: float) -> Array:
    """E f(a + s G), and E[G f(a + s G)] of the first two columns of f, for each a: shape (n, columns + 2).

    On each panel between the edges that holds some a, the averages at the Gauss nodes are made a polynomial in a.
    """
    order, inner = 12, 12
    x, _ = legendre(order)
    project = to_series(order)
    width = fineness*min(1.0, 0.5/s)  # of panels in G: f varies over a distance of about 1
    G_nodes, G_weights = panels(np.zeros(0), width, inner, WINDOW)
    which = np.searchsorted(edges, at, side="right") - 1
    places = np.argsort(which, kind="stable")
    found: Array | None = None
    for group in np.split(places, np.flatnonzero(np.diff(which[places])) + 1):
        low, high = edges[which[group[0]]:which[group[0]] + 2]
        nodes = ((low + high)/2 + (high - low)/2*x)[:, None]
        ends = np.array([low - WINDOW*s, high + WINDOW*s])
        near = kinks[(kinks > ends[0]) & (kinks < ends[1])]
        if near.size:
            u, w = (v.ravel() for v in legendre_on(split(np.concatenate([ends[:1], near, ends[1:]]), width*s), inner))
            u = np.broadcast_to(u, (order, u.size))
            G = (u - nodes)/s
        else:
            G, w = np.broadcast_to(G_nodes, (order, G_nodes.size)), G_weights
            u = nodes + s*G
        kernel = np.exp(-G*G/2)*w
        kernel /= kernel.sum(axis=1, keepdims=True)
        values = f(u)
        table = np.hstack([np.einsum("ij,ijk->ik", kernel, values), np.einsum("ij,ijk->ik", kernel*G, values[..., :2])])
        t = (2*at[group] - low - high)/(high - low)
        if found is None:
            found = np.empty((len(at), table.shape[1]))
        found[group] = np.polynomial.legendre.legvander(t, order - 1) @ (project @ table)
    assert found is not None
    return found


def _graded(kinks: Array, fine: float, coarse: float, reach: float) -> Array:
    """Edges on [-reach, reach] with steps `fine` next to each kink, growing by a third away from it, `coarse` far from all.

    >>> _graded(np.array([0.0]), 1.0, 4.0, 10.0).round(1).tolist()
    [-10.0, -9.6, -6.5, -4.1, -2.3, -1.0, 0.0, 1.0, 2.3, 4.1, 6.5, 9.6, 10.0]
    """
    inside = kinks[np.abs(kinks) < reach]
    offsets, step = [0.0], fine
    while step < coarse and offsets[-1] < 2*reach:
        offsets.append(offsets[-1] + step)
        step *= 4/3
    beside = np.concatenate([k + sign*np.array(offsets) for k in inside for sign in (-1, 1)]) if inside.size else inside
    knots = np.unique(np.concatenate([[-reach, reach], beside[np.abs(beside) < reach]]))
    return split(knots[np.insert(np.diff(knots) > 1e-12*reach, 0, True)], coarse)
