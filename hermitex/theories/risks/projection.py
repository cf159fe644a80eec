"""min_b E(g - sum_k b_k f_k)^2 = E[(h - P h)^2] + E[h_1^2] + E[h_star^2]: risks as sums of squares, for arrays of (r, c, b).

A bound is the distance of the target from the span of a few functions of kappa. It is computed from what the
projection leaves, never as a difference of large numbers, so that a bound of 1e-10 has its digits and a bound of zero
is zero. h, h_1, h_star^2 are the target's own conditional coefficients, with (gamma, 1 - gamma^2) for (r, c).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Any

import numpy as np
from sympy import Symbol

from hermitex.errors import BadInput, BudgetExceeded, Divergent
from hermitex.kernels import quadrature
from hermitex.symbolic.activations import Activation
from hermitex.symbolic.budget import checkpoint, effort
from hermitex.symbols import gamma as field_gamma
from hermitex.symbols import kappa, z
from hermitex.systems.system import System
from hermitex.theories.conditional_coefficients import activation_of, in_floats, mu, mu_star
from hermitex.theories.directions import DirectedTarget
from hermitex.theories.directions import rho as field_rho
from hermitex.theories.features.smoothed import Smoothed

Array = np.ndarray[Any, Any]

_WIDEST = 37.0        # exp(-kappa^2/2) underflows beyond


@dataclass(frozen=True)
class Projection:
    """Squared distances of the target from span{mu_0^k} (upper) and span{mu_0^k, kappa mu_1^k} (lower), and where they are taken.

    upper, lower : arrays, shape (points,); b1 : (points, K); b : (points, 2K), first those of mu_0^k; psi : (points, J, K) for the
    J directions of the target; error : (points,), an estimate of the absolute error of upper and lower.
    """

    upper: Array
    lower: Array
    b1: Array
    b: Array
    psi: Array
    error: Array


class Target:
    """h(kappa) = E g(gamma kappa + sqrt(rho) z), h_1 = E[z g], h_star^2 = E g^2 - h^2 - h_1^2; rho = 1 - gamma^2.

    Raises
    ------
    BadInput : g has parameters, or is not square integrable.
    """

    def __init__(self, g: Any, gamma: float = 1.0) -> None:
        self._turn(in_floats(activation_of(g)), gamma)
        free = sorted(str(s) for s in self.activation(z).free_symbols - {z})
        if free:
            raise BadInput(f"the target's {', '.join(free)} must have a value")
        if _square_integrable(self.activation) is False:
            raise BadInput(f"the target {self.activation(z)} is not square integrable: E g(z)^2 is infinite, and so is the risk")
        self.function, kinks = _function(self.activation)
        self.kinks = kinks/gamma if self.sharp else np.zeros(0)

    def _turn(self, g: Any, gamma: float) -> None:
        """The target seen at the overlap gamma."""
        if not abs(gamma) <= 1:
            raise BadInput(f"gamma is an overlap, between -1 and 1, not {gamma}")
        self.activation, self.gamma, self.rho = g, float(gamma), (1 - gamma)*(1 + gamma)

    @property
    def sharp(self) -> bool:
        """Do the target's kinks still show?"""
        smooth_from = 0.3  # of sqrt(1 - gamma^2)
        return bool(np.sqrt(self.rho) < smooth_from)

    directions = 1

    @cached_property
    def _known(self) -> list[Array]:
        return [np.zeros(0), np.zeros((self.directions + 2, 0))]

    def __call__(self, x: Array) -> tuple[Array, Array, Array]:
        """h, shape (nodes,), h_1, shape (directions, nodes), and h_star^2, shape (nodes,), at kappa = x."""
        nodes, values = self._known  # every spike asks for the same nodes, and a finer rule for those of the coarser one
        new = np.setdiff1d(x, nodes)
        if new.size:
            nodes = np.append(nodes, new)
            order = np.argsort(nodes)
            nodes, values = nodes[order], np.hstack([values, self._smoothed(new)])[:, order]
            self._known[:] = nodes, values
        found = values[:, np.searchsorted(nodes, x)]
        return found[0], found[1:-1], found[-1]

    @property
    def parity(self) -> int | None:
        """1 or -1 where h is proved even or odd, and h_1 and h_star^2 with it."""
        return self.activation.parity

    def _smoothed(self, x: Array) -> Array:
        """The rows, an average at each node: shape (directions + 2, nodes)."""
        if self.rho == 0:
            return np.stack([self.function(self.gamma*x), np.zeros_like(x), np.zeros_like(x)])
        return _averages_of(self.activation, self.gamma, x.tobytes())


@lru_cache(maxsize=16)  # a slider that moves the spike alone asks for the same averages again, which take half of its time
def _averages_of(g: Activation, gamma: float, nodes: bytes) -> Array:
    """h, h_1 and h_star^2, one row each, at nodes given as the bytes of an array."""
    x, rho = np.frombuffer(nodes), (1 - gamma)*(1 + gamma)
    at = {"r": gamma, "c": rho}
    return np.stack([mu(g, 0)(x, **at), np.sqrt(rho)*mu(g, 1)(x, **at), mu_star(g).squared(x, **at)])


class SeveralDirections(Target):
    """h, h_1 (one row for each direction) and h_star^2 of a target of several directions, at nodes kappa."""

    parity = None

    def __init__(self, g: DirectedTarget, gamma: float) -> None:
        self._turn(g, gamma)
        self.directions = len(g.variables)
        self.system = _moments(g, int(np.sign(gamma)) if self.rho == 0 else 0)
        self.kinks = np.zeros(int(self.sharp))  # the panels close in on them

    def _smoothed(self, x: Array) -> Array:
        found = self.system.solve({"at": x, **({} if self.rho == 0 else {"gamma": self.gamma, "rho": self.rho})})
        names = "h", *(f"h1_{j}" for j in range(1, self.directions + 1)), "square"
        rows = np.stack([np.broadcast_to(found[n], x.shape) for n in names])
        rows[-1] = np.maximum(rows[-1] - (rows[:-1]**2).sum(axis=0), 0)
        return rows


@cache
def _moments(g: DirectedTarget, aligned: int) -> System:
    """h, h_1 and E[g^2 | kappa] as functions of kappa, which is called `at`."""
    found, at = g.seen(aligned), Symbol("at", real=True)
    names = ["h", "square", *(f"h1_{j}" for j in range(1, len(found.h_1) + 1))]
    equations = {Symbol(n, real=True): e for n, e in zip(names, (found.h, found.squared, *found.h_1), strict=True)}
    return System({k: e.subs(kappa, at) + 0*at for k, e in equations.items()}, where=g.names,
                  parameters=[at] if aligned else [at, field_gamma, field_rho])


def conditional_target(g: Any, gamma: float) -> Target:
    """The conditional moments of a target of one direction or of several, as functions of kappa."""
    return SeveralDirections(g, gamma) if isinstance(g, DirectedTarget) else Target(g, gamma)


def project(sigma: Sequence[Smoothed], target: Target, r: Array, c: Array, b: Array) -> Projection:
    """The projection of a target on the functions of one activation (or of several letters of it).

    Parameters
    ----------
    sigma : K smoothed activations (K letters of a vocabulary share one)
    r, c, b : arrays, shape (points, K): the spike's scale, the bulk's variance, the bias of each letter
    """
    points, K = r.shape
    out = Projection(*(np.empty((points, *shape)) for shape in ((), (), (K,), (2*K,), (target.directions, K), ())))
    rules = [(chosen, kappa_rule(sigma, target, *(v[_extremes(chosen, r, c, b)] for v in (r, c, b))))
             for chosen in _buckets(r, c)]
    reach = max((np.max(np.abs(x)) for _, (x, *_) in rules), default=0.0)*np.abs(r) + np.abs(b)
    many = sum(chosen.size*len(rule[0]) for chosen, rule in rules)
    known = [s.for_many(many, c[:, k], float(reach[:, k].max())) for k, s in enumerate(sigma)] if points else []
    numbers = 3_000_000  # in one array
    gentle_below = 1e-2  # r/sqrt(c) below which columns that are independent look alike
    for chosen, (x, w, error) in rules:
        h = target(x)
        for rows in np.array_split(chosen, 1 + chosen.size*x.size*K//numbers):
            columns = [f(r[rows, k, None]*x + b[rows, k, None], c[rows, k]) for k, f in enumerate(known)]
            s = np.sqrt(c[rows])
            moves = r[rows] != 0
            gentle = np.any(moves & (np.abs(r[rows]) < gentle_below*s), axis=1)
            # in a mean of values of either sign they cancel: rounding is a part of their size, sqrt(M_0^2 + c M_1^2 + ...)
            spread = [(s[:, k], 1 if f.kernels else s[:, k]) for k, f in enumerate(sigma)]
            _fill(out, rows, (x, w, error), h, columns, (moves.any(axis=1), gentle, spread))
    return out


def _fill(out: Projection, rows: Array, rule: tuple[Array, Array, float], h: tuple[Array, Array, Array],
          columns: list[tuple[Array, Array]], how: tuple[Array, Array, list[tuple[Any, Any]]]) -> None:
    """The projections of one chunk of points."""
    (x, w, error), (*which, spread) = rule, how
    root, K = np.sqrt(w), len(columns)
    lengths = [(np.sqrt((w*m0**2).sum(-1)), np.sqrt((w*m1**2).sum(-1))) for m0, m1 in columns]
    whole = [np.maximum(a, np.maximum(1, d)*b) for (a, b), (_, d) in zip(lengths, spread, strict=True)]
    slopes = [np.maximum(b, v/np.maximum(1, s)) for (_, b), v, (s, _) in zip(lengths, whole, spread, strict=True)]
    basis = [root*m0 for m0, _ in columns] + [root*x*m1 for _, m1 in columns]
    left, b, coefficients, rounding = _gram_schmidt(root*h[0], basis, [*whole, *slopes], K, which)
    square = (h[1]**2).sum(axis=0)
    rest, rest_lower = w @ (square + h[2]), w @ h[2]
    out.psi[rows] = 0
    for j, slope in enumerate(h[1]):
        if np.any(slope):  # each of the directions is projected as if it were alone
            seen, out.psi[rows, j], _, more = _gram_schmidt(root*slope, [root*m1 for _, m1 in columns], slopes, K, which)
            rest_lower, rounding = rest_lower + seen[1], rounding + more
    out.upper[rows] = left[0] + rest
    # More functions explain no less: the order is exact, rounding apart.
    out.lower[rows] = np.minimum(left[1] + rest_lower, out.upper[rows])
    out.b1[rows], out.b[rows] = coefficients, b
    out.error[rows] = (error + 4e-16)*(w @ (h[0]**2 + square + h[2])) + rounding


def _gram_schmidt(y: Array, basis: list[Array], size: list[Array], first: int, which: Sequence[Array]
                  ) -> tuple[list[Array], Array, Array, Array]:
    """Project y, shape (nodes,), on columns of shape (points, nodes).

    Returns the squared residuals after the first `first` columns and after all, the coefficients on all columns, and
    those on the first ones; of minimum norm where columns are dependent; and what rounding may be of the residuals.

    size : of the activation behind each column; rounding is relative to it
    which : points at which the first column moves, and at which a column that looks dependent need not be so
    """
    moves, gentle = which
    points, K = len(basis[0]), len(basis)
    left = np.broadcast_to(y, basis[0].shape).copy()
    q: list[Array] = []
    R, t = np.zeros((points, K, K)), np.zeros((points, K))
    residuals, early = [], np.zeros((points, first))
    tilt, error = np.zeros((K, points)), np.zeros(points)  # of the directions, and of the residuals
    dependent = 0.1  # of a column's direction: beyond that it is rounding, and the column is in the span of the earlier ones
    quick = 100  # times rounding: the error of the quick quadrature, which a gentle column must rise above
    known_to = 2e-16  # of an activation's size: what its conditional coefficients are known to
    for k, column in enumerate(basis):
        v = column.copy()
        for _ in range(2 if k else 0):  # twice is enough
            for j in range(k):
                part = np.einsum("pn,pn->p", q[j], v)
                R[:, j, k] += part
                v -= part[:, None]*q[j]
        length = np.sqrt(np.einsum("pn,pn->p", v, v))
        rounding = known_to*size[k] + np.einsum("jp,pj->p", tilt[:k], np.abs(R[:, :k, k]))
        real = length*dependent > np.where(gentle, quick, 1)*rounding
        tilt[k] = np.where(real, rounding/np.where(real, length, 1), 0)
        R[:, k, k] = np.where(real, length, 0)
        R[:, :k, k] *= (np.sqrt(length**2 + (R[:, :k, k]**2).sum(-1)) > rounding)[:, None]
        v *= np.where(real, 1/np.where(real, length, 1), 0)[:, None]
        t[:, k] = np.einsum("pn,pn->p", v, left)
        before = np.einsum("pn,pn->p", left, left)
        left -= t[:, k, None]*v
        now = np.einsum("pn,pn->p", left, left)
        # a single column is not dependent: it drowns in rounding, unless it is zero
        doubtful = ~real & (gentle | (moves & (length > 0) & (k == 0)))
        error += np.where(doubtful, before, 2*np.abs(t[:, k])*np.sqrt(now)*tilt[k] + before*tilt[k]**2)
        q.append(v)
        if k in (first - 1, K - 1):
            residuals.append(now)
        if k == first - 1:
            early = _solved(R[:, :first, :first], t[:, :first])
    return [residuals[0], residuals[-1]], _solved(R, t) if first < K else early, early, error


def _solved(R: Array, t: Array) -> Array:
    """b of least norm with R b = t, R upper triangular, rows of zeros where a column was dependent."""
    regular = (np.diagonal(R, axis1=-2, axis2=-1) > 0).all(-1)
    out = np.empty_like(t)
    out[regular] = np.linalg.solve(R[regular], t[regular, :, None])[..., 0]
    out[~regular] = (np.linalg.pinv(R[~regular], rcond=1e-13) @ t[~regular, :, None])[..., 0]
    return out


# -- the quadrature over kappa ---------------------------------------------------------------------------------------------
def kappa_rule(sigma: Sequence[Smoothed], target: Target, r: Array, c: Array, b: Array, *,
               tolerance: float = 2e-15) -> tuple[Array, Array, float]:
    """Nodes, weights and error of a rule that integrates all products of the functions at the points (r, c, b) given.

    Trapezoid where the target is smooth, else panels between its kinks; refined until the products are constant
    relative to the lengths of their factors.
    """
    smooth = target.kinks.size == 0
    rule = quadrature.trapezoid(0.3) if smooth else quadrature.panels(_edges(target.kinks, quadrature.WINDOW))
    best, idle, error = np.inf, 0, np.inf
    # A feature turns over within sqrt(c)/r: halving the step shows nothing until it is as short.
    sharpness = float(np.max(np.abs(r)/np.sqrt(c), initial=1.0))
    patience = 3 + int(np.ceil(np.log2(max(sharpness, 1.0))))
    rounds = 40  # of refinement, besides the ones that a sharp function needs
    # tolerance: of the quadrature over kappa, relative to the lengths of the two factors
    for _ in range(rounds + patience):
        products = _products(sigma, target, rule.nodes, (r, c, b))
        error, tail, suspects = _worst_errors(products, rule)
        if tail > tolerance and rule.window < _WIDEST:
            wider = min(rule.window + 3, _WIDEST)
            rule = rule.widen(wider) if rule.kind == "trapezoid" else quadrature.panels(_edges(target.kinks, wider))
            continue
        if tail > 1e-6 or not np.isfinite(error):
            raise Divergent(f"E[sigma(r kappa + sqrt(c) z)^2] or E[g(z)^2] with sigma = {sigma[0].activation(z)}, "
                            f"g = {target.activation(z)}", "the integrand does not fall off")
        best, idle = (error, 0) if error < best/2 else (best, idle + 1)
        if error <= tolerance or idle >= patience or rule.full:
            break
        rule = rule.refine() if rule.kind == "trapezoid" else rule.refine(suspects > max(0.1*tolerance, 0.01*suspects.max()))
    x, w = rule.nodes, rule.weights
    if _even(sigma, target, b):  # the other half says the same
        x, w = x[x >= 0], np.where(x > 0, 2*w, w)[x >= 0]
    kept = w > 1e-40
    return x[kept], w[kept], error


def _even(sigma: Sequence[Smoothed], target: Target, b: Array) -> bool:
    """True if all products of two of the functions are proved even in kappa."""
    parities = {target.parity, *(s.activation.parity for s in sigma)}
    return not np.any(b) and len(parities) == 1 and parities < {-1, 1}


def _products(sigma: Sequence[Smoothed], target: Target, x: Array, at: tuple[Array, Array, Array]) -> Array:
    """Products of functions that the bounds integrate, over the lengths of their factors: shape (products, nodes)."""
    r, c, b = at
    w = np.exp(-x*x/2)
    w /= w.sum()
    h, h1, rest = target(x)
    rows = [(f, f) for f in (h, *h1, np.sqrt(rest))]
    for k, s in enumerate(sigma):
        m0, m1 = s.rows(r[:, k, None]*x + b[:, k, None], c[:, k])
        for f0, f1 in zip(m0, x*m1, strict=True):
            rows += [(h, f0), (h, f1), (f0, f0), (f0, f1), (f1, f1)]
        rows += [(v, f) for v in h1 for f in m1]
    with np.errstate(all="ignore"):
        lengths = [np.sqrt((w*f*f).sum()*(w*g*g).sum()) for f, g in rows]
    products = [f*g/length for (f, g), length in zip(rows, lengths, strict=True) if length != 0]
    return np.array(products) if products else np.zeros((1, len(x)))


def _worst_errors(products: Array, rule: quadrature.Rule) -> tuple[float, float, Array]:
    """The worst error, the worst tail, and the worst error of each panel."""
    fine, coarse, coarser = (products @ rule.levels).T
    first, second = np.abs(fine - coarse), np.abs(coarse - coarser)
    gain = np.minimum(1.0, 4*first/np.maximum(second, 1e-300))
    tail = np.abs(products[:, [0, -1]])*rule.weights[[0, -1]]
    if rule.kind == "trapezoid":
        # The error of this rule is squared when the step is halved.
        return float(np.max(first*gain)), float(2*np.max(tail)), np.zeros(0)
    parts = rule.panel_errors(products)
    suspects = parts.max(axis=0)
    return float(np.max(parts.sum(-1)*np.maximum(gain, 1e-3))), float(2*np.max(tail)), suspects


def _edges(kinks: Array, window: float) -> Array:
    """Panels that end at the kinks, of width 2 or less in the middle."""
    inner = kinks[np.abs(kinks) < window]
    return np.union1d(np.append(np.arange(-8.0, 9.0, 2.0), (-window, window)), inner)


def _buckets(r: Array, c: Array) -> list[Array]:
    """Points of like sharpness r/sqrt(c), which share a rule."""
    sharpness = np.max(np.abs(r)/np.sqrt(c), axis=1)
    level = np.ceil(2*np.log2(np.maximum(sharpness, 0.5)))
    return [np.flatnonzero(level == v) for v in np.unique(level)]


def _extremes(chosen: Array, *columns: Array) -> Array:
    """Some points of a bucket that bound the others: least and greatest r, c, b, and of r/sqrt(c)."""
    r, c, b = (v[chosen] for v in columns)
    found: set[int] = set()
    for v in (*r.T, *c.T, *b.T, *(np.abs(r)/np.sqrt(c)).T):
        found |= {int(np.argmin(v)), int(np.argmax(v))}
    return chosen[sorted(found)]


@lru_cache(maxsize=64)
def _square_integrable(activation: Any) -> bool | None:
    try:
        with effort(5):
            return activation.in_L2
    except BudgetExceeded:
        checkpoint()  # the budget around it is over, which is not an answer
        return None


def _function(activation: Any) -> tuple[Callable[[Array], Array], Array]:
    """g as a function of arrays and its kinks within the range that matters."""
    from hermitex.kernels.averages import compiled
    from hermitex.kernels.compile import compile

    found = compiled(activation(z), z, np.array([-_WIDEST, _WIDEST]))
    if found is not None:
        return found[0], found[1]
    kernel = compile(activation(z), z)  # kinks that are not known exactly: the panels close in on them
    return (lambda x: np.asarray(kernel(z=x))), np.zeros(1)
