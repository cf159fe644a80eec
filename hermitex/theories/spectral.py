r"""alpha (1 - R) E[(m - 1)^2/(1 + R (m - 1))] = 1, m = E[z^2|y]: the overlap R of the best spectral estimator, and AMP's.

The estimator is the top eigenvector of D = (1/n) sum_i T(y_i) x_i x_i^T. With s = T(y), psi(l) = l (1/alpha + E[s/(l - s)]) has its
least value, the edge of the bulk, at l_b; an eigenvalue psi(l) is outside iff E[s (m - 1)/(l - s)] = 1/alpha at an l > l_b, and
R = psi'/(psi' - phi') there, phi' = -E[s^2 m/(l - s)^2]. T* = 1 - 1/m has the largest R at every alpha, and the eigenvalue 1/alpha.
Sources: lu2020, mondelli2019, luo2019.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import brentq
from sympy import Expr, oo

from hermitex.errors import BadInput, HermitexError, NoValue
from hermitex.exponents.channels import Channel, NamedChannel
from hermitex.exponents.label_formula import Y
from hermitex.exponents.label_map import LabelMap, label_map
from hermitex.exponents.laws.density import array_function
from hermitex.exponents.laws.linearised import sample_law
from hermitex.hints import Axes, Formula
from hermitex.show.plots import curves, mark_critical
from hermitex.solvers.solution import Solution
from hermitex.symbolic.parsing import parse, real_expression
from hermitex.symbolic.pieces import breakpoints
from hermitex.symbolic.precise import evaluate
from hermitex.symbols import normals
from hermitex.theories.multi_index import multi_index, target_and_channel
from hermitex.theories.theory import Theory

Array = np.ndarray


@dataclass(frozen=True, repr=False)
class Spectral(Theory):
    """The overlap of a spectral estimator against alpha: with the optimal label map, or with a map T(y) of one's own.

    Attributes
    ----------
    g : the target;  law : its channel;  T : the label map, an expression of y; None: T*
    """

    g: Expr
    law: NamedChannel | Channel
    T: Expr | None = None
    name: ClassVar[str] = "spectral"
    sources: ClassVar[tuple[str, ...]] = ("lu2020", "mondelli2019", "luo2019")
    warm: ClassVar[bool] = False
    errors = ()  # none: the estimator is a direction
    # R of the direction that is found best, its eigenvalue, the edge of the bulk
    order_parameters = ("squared_overlap", "eigenvalue", "edge")

    @cached_property
    def map(self) -> LabelMap:
        """T*, with the law of the label: the label map of ``hx.exponents(g, channel)``."""
        return label_map(self.g, self.law, [s.name for s in normals(self.law.p if isinstance(self.law, Channel) else self.g)])

    @property
    def alpha_c(self) -> float:
        """The alpha from which T* finds a direction; with a map of one's own it is higher."""
        return self.map.alpha_c

    def letters(self) -> dict[str, Any]:
        """alpha is the one number."""
        return {"alpha": self.REQUIRED}

    def complete(self, numbers: dict[str, Array]) -> dict[str, Array]:
        """alpha, checked."""
        if "alpha" not in numbers:
            raise NoValue(self.name, "alpha", "2")
        return self.checked(numbers, alpha="> 0")

    def described(self, fixed: Mapping[str, float]) -> dict[str, Any]:
        """target, channel, label map."""
        channel = str(self.law) if isinstance(self.law, NamedChannel) else self.law.name
        return {"target": str(self.g), "channel": channel, "label_map": "optimal" if self.T is None else str(self.T)}

    def run(self, numbers: Mapping[str, Array], **options: Any) -> Solution:
        """R, the eigenvalue and the edge at each alpha; the overlaps of all directions as `overlaps` where there are several."""
        alpha = np.asarray(numbers["alpha"], dtype=float)
        line = alpha.ravel()
        found = self._optimal(line) if self.T is None else self._own(line)
        value = {n: v.reshape(alpha.shape + v.shape[1:]) for n, v in found.items()}
        one = alpha.shape == ()
        value = {n: v.item() if one and v.ndim == 0 else v for n, v in value.items()}
        off = self.map.error
        return Solution(value, 0.0 if one else np.zeros(alpha.shape), True if one else np.full(alpha.shape, True),
                        error=off if one else np.full(alpha.shape, off), method="explicit", unknowns=tuple(value),
                        notes=self.map.notes)

    def _optimal(self, line: Array) -> dict[str, Array]:
        overlaps = self.map.squared_overlap(line).reshape(len(line), -1)
        gains, p = self.map._gains()
        best = overlaps.argmax(axis=1)
        R = overlaps.max(axis=1)
        edges = np.full(len(line), np.nan)  # of the matrix problem of directions that share one overlap none is known
        if not self.map.shared:
            edges = np.array([_bulk(gains[k], 1 + gains[k], p, a)[1] for k, a in zip(best, line, strict=True)])
        found = {"squared_overlap": R, "eigenvalue": np.where(R > 0, 1/line, edges), "edge": edges}
        return found if overlaps.shape[1] == 1 else {**found, "overlaps": overlaps}

    def _own(self, line: Array) -> dict[str, Array]:
        labels, p, m = self._broken
        assert self.T is not None
        with np.errstate(all="ignore"):
            s = np.broadcast_to(array_function(self.T, Y)(labels), labels.shape)
        if not np.all(np.isfinite(s)) or not s.max() > 0:
            raise BadInput(f"spectral: the label map {self.T} must be finite at every label, and positive at some")
        found = np.array([_outlier(s, m, p, a) for a in line])
        return dict(zip(("squared_overlap", "eigenvalue", "edge"), found.T, strict=True))

    @cached_property
    def _broken(self) -> tuple[Array, Array, Array]:
        """(labels, their masses, m at them), the panels of the labels broken at the kinks of T."""
        of = self.map.law
        labels, masses = of.labels, of.masses
        if of.law is not None and (cuts := breakpoints(self.T, Y, (-oo, oo))):
            points = [float(evaluate(c, 20)) for c in cuts if c.is_finite]
            knots = (*of.law.knots, *(np.abs(points) if of.folded else points))
            labels, masses = sample_law(replace(of.law, knots=knots), 23)  # nodes of a panel, as of the law itself
            labels, masses = labels[masses[0] > 0], masses[:, masses[0] > 0]
        m = of.moments(masses, 1)[:, 0, 0]
        if of.folded:  # the law is that of |y|, and y takes both signs
            return np.concatenate([labels, -labels]), np.tile(masses[0]/2, 2), np.tile(m, 2)
        return labels, masses[0], m

    def plot(self, ax: Axes | None = None, *, alpha: Any = None, points: int = 60) -> Axes:
        """R against alpha, the overlap of Bayes-AMP along the same direction dashed, alpha_c marked."""
        top = 4*self.alpha_c if np.isfinite(self.alpha_c) else 4.0
        line = np.linspace(top/points, top, points) if alpha is None else np.atleast_1d(np.asarray(alpha, dtype=float))
        lines = {"spectral, $T^*$" if self.T is None else f"spectral, $T = {self.T}$": self.solve(alpha=line)["squared_overlap"]}
        if (amp := self.amp(line)) is not None:
            lines["Bayes-AMP"] = amp
        ax = curves(line.tolist(), {n: v.tolist() for n, v in lines.items()}, ax, xlabel=r"$\alpha = n/d$",
                    ylabel="squared overlap")
        if self.T is None and np.isfinite(self.alpha_c):
            mark_critical(ax, self.alpha_c, r"$\alpha_c$")
        ax.set_ylim(-0.03, 1.03)
        return ax

    def amp(self, alpha: Any) -> Array | None:
        """The overlap of Bayes-AMP with the direction that the spectral estimator finds first; None where it is not computed."""
        rows = self.map.directions if len(self.map.directions) else np.eye(len(self.map.variables))
        row = rows[int(np.argmin(self.map.thresholds))] if len(self.map.thresholds) else rows[0]
        try:
            found = multi_index(self.g, self.law).curve(alpha)  # type: ignore[arg-type]
        except HermitexError:
            return None
        r = len(row)
        pairs = {n: (int(n[1]) - 1, int(n[2]) - 1) for n in found.order_parameters}
        weight = {n: row[i]*row[j]*(1 if i == j else 2) for n, (i, j) in pairs.items() if max(i, j) < r}
        return np.sum([w*found[n] for n, w in weight.items()], axis=0)

    def _summary(self) -> str:
        return ", ".join(str(v) for v in self.described({}).values())

    def latex(self) -> str:
        """The equation of R."""
        return (r"\alpha (1 - R)\, E\left[\frac{(m - 1)^2}{1 + R (m - 1)}\right] = 1, \quad m = E[z^2 | y], \quad "
                + self.map.latex())

    _html = Theory._with_formula


def _bulk(n: Array, q: Array, p: Array, alpha: float) -> tuple[float, float]:
    """(l_b, psi(l_b)) of the label map n/q: l_b is the zero of psi' = 1/alpha - E[s^2/(l - s)^2] above every s."""
    finite = (p > 0) & (q > 0)
    if not n[finite].any():
        return 0.0, 0.0  # D = 0: the labels say nothing of z^2
    top = float((n[finite]/q[finite]).max())

    def slope(x: float) -> float:
        return float(1/alpha - np.sum(p*(n/(x*q - n))**2))

    beside = 1e-9  # of the largest s, to the right of it
    low = high = top + beside*abs(top)
    while slope(high) <= 0:
        high = top + 2*(high - top)
    x = low if high == low else float(brentq(slope, low, high, xtol=1e-14, rtol=1e-13))
    return x, float(x*(1/alpha + np.sum(p*n/(x*q - n))))


def _outlier(s: Array, m: Array, p: Array, alpha: float) -> tuple[float, float, float]:
    """(R, the largest eigenvalue, the edge) of the label map with the values s."""
    bulk, edge = _bulk(s, np.ones_like(s), p, alpha)

    def excess(x: float) -> float:
        return float(np.sum(p*s*(m - 1)/(x - s)) - 1/alpha)

    # the largest root: the excess is -1/alpha for large R
    grid = bulk + (abs(bulk) + 1)*np.concatenate([[0.0], np.geomspace(1e-8, 1e4, 240)])
    above = np.flatnonzero(np.array([excess(x) for x in grid]) > 0)
    if not above.size:
        return 0.0, edge, edge
    x = float(brentq(excess, grid[above[-1]], grid[above[-1] + 1], xtol=1e-14, rtol=1e-13))
    share = s/(x - s)
    rise = 1/alpha - np.sum(p*share**2)
    return float(rise/(rise + np.sum(p*m*share**2))), float(x*(1/alpha + np.sum(p*share))), edge


def spectral(g: Formula, channel: str | Channel | None = None, *, T: Formula | None = None) -> Spectral:
    r"""The squared overlap of the spectral estimator with the target's direction, and AMP's.

    D = (1/n) sum_i T(y_i) x_i x_i^T; with T* = 1 - 1/E[z^2|y], alpha (1 - R) E[(m - 1)^2/(1 + R (m - 1))] = 1 [luo2019].

    Parameters
    ----------
    g : text or expression in z or z1, z2, z3
    channel : a channel's name ("gaussian:1/4", noise of variance 1/4; "flip:1/10", ...) or `Channel`; default y = g(z)
    T : a label map of one's own, in y, of a target of one direction; default the optimal one

    Returns
    -------
    Spectral : ``.solve(alpha=)`` -> squared_overlap (of the direction that is found best; 0 below the threshold), eigenvalue, edge
    of the bulk, and overlaps, of every direction of ``.map.directions``, where there are several; ``.curve(alpha=[...])``,
    ``.plot()`` with Bayes-AMP, ``.map``, the label map itself. The experiment is
    `hermitex.experiments.spectral_experiment.simulate`.

    Over several directions the matrix S(y) = 1 - E[z z^T|y]^{-1} takes the place of T*, of d r x d r; where all S(y) commute it
    falls apart into one problem for each common eigenvector.

    Raises
    ------
    BadInput : T over several directions, or without a positive value. NoClosedForm : the law of the label is not found, or the
        matrices S(y) share no eigenvectors and no symmetry makes their directions equal.

    Guarantee
    ---------
    `.solve` and `.curve` return a solution of the equations of the sources, with its error. This is the limit of the sources;
    accuracy at finite dimension is not promised. See docs/promise.md.

    References: lu2020, mondelli2019, luo2019.

    Examples
    --------
    >>> theory = spectral("abs(z)")
    >>> round(theory.solve(alpha=2)["squared_overlap"], 9), round(theory.alpha_c, 9)
    (0.638881278, 0.5)
    """
    target, law = target_and_channel("spectral", g, channel)
    own = None
    if T is not None:
        read = parse(T, symbols={"y": "real"}) if isinstance(T, str) else real_expression(T)
        own = read.xreplace({s: Y for s in read.free_symbols if s.name == "y"})  # type: ignore[attr-defined]
        if strangers := own.free_symbols - {Y}:
            raise BadInput(f"spectral: the label map holds {', '.join(sorted(map(str, strangers)))}; it is a function of y alone")
        if not own.has(Y):
            raise BadInput(f"spectral: the label map {own} is constant; it must depend on the label y")
    made = _made(target, law, own)
    if own is not None and len(made.map.variables) > 1:
        raise BadInput("spectral: T(y) is for a target of one direction; leave it out for the optimal matrix")
    return made


_made = lru_cache(Spectral)  # one object for one target, so that its label map is made once
