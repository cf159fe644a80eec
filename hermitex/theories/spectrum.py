"""m(z) = (1/p) tr(Phi^T Phi/p - z)^{-1} = V_2 at lambda = -z: bulk, edges and outlier of the feature covariance.

Phi (n x p) holds the spiked random features sigma(w_i . x + r kappa) after one giant gradient step [cui2024, App. F]. The
outlier is the spike's: n E mu_0^2 + O(1) for Phi^T Phi/p [cui2024, Eq. (191)]; Phi^T Phi/n has the same law, x times beta/alpha.
K letters of a vocabulary have up to K outliers and more, the zeros of a determinant at given n.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hermitex.errors import NO_NUMBER, BadInput, brief
from hermitex.hints import Axes, DataFrame, Formula
from hermitex.show.cite import Cited
from hermitex.show.display import Shown, formula_table
from hermitex.symbolic.activations import Activation
from hermitex.symbolic.text.plain_data import plain
from hermitex.symbols import z as _z
from hermitex.theories.conditional_coefficients import mu, mu_star
from hermitex.theories.features.outliers import outliers
from hermitex.theories.features.resolvent_equations import Equations
from hermitex.theories.features.smoothed import Smoothed
from hermitex.theories.risks.bias import ONE, Vocabulary
from hermitex.theories.risks.risk_bounds import letters_of

Array = np.ndarray[Any, Any]

_WINDOW = 9.0  # P(|kappa| > 9) = 2e-19
_INSIDE = 1e-9               # Im m/|m| beyond which a point is in the support


@dataclass(frozen=True, repr=False, eq=False)
class Spectrum(Cited, Shown):
    """The law of the feature covariance: x, density (arrays), edges [(low, high), ...], mass_at_zero, outlier.

    outlier : {"times": "n" or "p", "coefficient": E mu_0^2, "constant": the O(1) term, "value": at `dimension`, or None};
    None if mu_0 = 0, and with several letters. outliers : the eigenvalues outside of the bulk, the largest first, as zeros of the
    determinant. Unless mu_0 = 0 they grow with n = alpha d: without `dimension=` they are (), and `lacking` and the shown result
    say so. `.stieltjes(z)` is m(z); on the real axis, its limit from above.

    Guarantee: the law of the limit d -> oo; the density of a finite sample fluctuates around it. See docs/promise.md.

    >>> law = spectrum("tanh", r=0, c=1, alpha=2, beta=1)
    >>> len(law.edges), law.outlier is None
    (1, True)
    """

    sources = ("cui2024",)

    sigma: Activation
    r: float
    c: float
    alpha: float
    beta: float
    normalisation: str
    x: Array
    density: Array
    edges: tuple[tuple[float, float], ...]
    mass_at_zero: float
    outlier: dict[str, Any] | None
    notes: tuple[str, ...] = ()
    outliers: tuple[float, ...] = ()
    lacking: str = ""  # why outliers is () where there are some
    letters: Vocabulary = ONE
    fractions: tuple[float, ...] = (1.0,)
    rows: str = "sphere"
    _equations: Equations = field(repr=False, default=None)  # type: ignore[assignment]

    @property
    def unit(self) -> float:
        """An eigenvalue of Phi^T Phi/p in units of this normalisation."""
        return 1.0 if self.normalisation == "p" else self.beta/self.alpha

    @property
    def first_moment(self) -> float:
        """int x drho(x) of the bulk, (alpha/beta) E[c mu_1^2 + mu_star^2] in normalisation p."""
        return self._equations.mean*self.unit

    def stieltjes(self, z: complex | np.ndarray) -> complex | np.ndarray:
        """m(z) = int drho(x)/(x - z) of the bulk (its atom at zero included), for complex z of any shape."""
        given = np.asarray(z, dtype=complex)
        if not np.isfinite(given).all():
            raise BadInput("spectrum: z must be finite")
        if self.mass_at_zero > 0 and np.any(given == 0):
            raise BadInput("spectrum: m has a pole at z = 0, where the law has an atom")
        flat = given.ravel()/self.unit
        upper = np.where(flat.imag < 0, flat.conj(), flat)
        m = self._equations.trace(self._equations.solve(upper))/self.unit
        m = np.where((flat.imag == 0) & (np.abs(m.imag) < _INSIDE*np.abs(m)), m.real, m)  # a gap: real but for rounding
        m = np.where(flat.imag < 0, m.conj(), m).reshape(given.shape)
        return m if m.shape else complex(m)

    def _summary(self) -> str:
        bulks = ", ".join(f"[{low:.6g}, {high:.6g}]" for low, high in self.edges)
        return (f"{self.sigma.name}, normalisation={self.normalisation}, bulk on {bulks or 'nothing'}, "
                f"mass at zero {self.mass_at_zero:.6g}, "
                f"outliers: {', '.join(f'{v:.6g}' for v in self.outliers) or self.lacking or 'none'}")

    def to_dict(self) -> dict[str, Any]:
        """The keys of ``hermitex spectrum --json``, without `stieltjes`; numbers, lists and texts."""
        found = {"sigma": self.sigma(_z), "r": self.r, "c": self.c, "alpha": self.alpha, "beta": self.beta,
                "normalisation": self.normalisation, "x": self.x, "density": self.density,
                "edges": [list(e) for e in self.edges], "mass_at_zero": self.mass_at_zero, "outlier": self.outlier,
                "first_moment": self.first_moment, "notes": list(self.notes)}
        if self.outliers:
            found["outliers"] = list(self.outliers)
        if len(self.fractions) > 1:
            found |= {"vocabulary": list(self.letters.u), "fractions": list(self.fractions), "norms": list(self.letters.c or ()),
                      "biases": list(self.letters.b)}
        return dict(plain(found))

    def to_dataframe(self) -> DataFrame:
        """x and density as a pandas DataFrame."""
        from hermitex.show.tables import to_dataframe

        return to_dataframe({"x": self.x.tolist(), "density": self.density.tolist()})

    def _html(self) -> str:
        rows = [(r"\text{bulk}", rf"[{low:.8g},\; {high:.8g}]".replace("inf", r"\infty")) for low, high in self.edges]
        rows.append((r"\text{mass at } 0", f"{self.mass_at_zero:.8g}"))
        if self.outlier:
            o = self.outlier
            rows.append((r"\text{outlier}", rf"{o['coefficient']:.8g}\,{o['times']} + {o['constant']:.8g}"))
        rows += [(r"\text{outlier at this } d", f"{v:.10g}") for v in self.outliers]
        rows += [(r"\text{outliers at finite } d", rf"\text{{{self.lacking}}}")] if self.lacking else []
        return formula_table(rows, title=rf"Spectrum of $\Phi^\top\Phi/{self.normalisation}$, σ = {self.sigma.name}")

    def plot(self, ax: Axes | None = None, *, histogram: np.ndarray | Sequence[float] | None = None, bins: int = 60,
             label: str = "density") -> Axes:
        """The density, over a histogram of eigenvalues where some are given (zeros left out of view), and the outliers.

        Outliers are those at `dimension`: arrows on the axis up to three times the bulk's edge, else named at its right end.
        On axes with densities already the view grows to hold all of them.
        """
        from hermitex.show.plots import learning_curve, new_axes

        ax = new_axes(ax)
        seen = (ax.get_xlim()[1], ax.get_ylim()[1]) if ax.get_lines() else (0.0, 0.0)
        right = max((high for _, high in self.edges if np.isfinite(high)), default=float(self.x.max(initial=1.0)))
        right = min(right, float(self.x.max(initial=right)))
        if histogram is not None:
            values = np.ravel(histogram)
            shown = values[(values > 1e-9*right) & (values < 1.1*right)]
            heights, ends = np.histogram(shown, bins=bins, range=(0, 1.05*right))
            ax.stairs(heights/(values.size*np.diff(ends)), ends, fill=True, color="0.8", label="eigenvalues", zorder=0)
        # A bulk that ends at zero may have an infinite density there.
        order = np.argsort(self.x)
        x, y = self.x[order], np.where(self.x > 1e-4*right, self.density, np.nan)[order]
        matrix = rf"$\Phi^T\Phi/{self.normalisation}$"
        learning_curve(x.tolist(), y.tolist(), ax, label=label, xlabel=f"eigenvalue of {matrix}", ylabel="density")
        finite = y[np.isfinite(y)]
        if finite.size:
            ax.set_ylim(0, max(seen[1], 1.15*float(np.quantile(finite, 0.98))))
        near = [v for v in self.outliers if v <= 3*right]
        ax.set_xlim(0, max(seen[0], 1.05*max([right, *near])))
        for v in near:
            ax.annotate("outlier", (v, 0), (v, 0.25*ax.get_ylim()[1]), ha="center", fontsize="small",
                        arrowprops={"arrowstyle": "->", "color": "0.3"})
        if far := [f"{v:.5g}" for v in self.outliers if v > 3*right]:
            ax.annotate(f"outlier{'s' if len(far) > 1 else ''} at {', '.join(far)} $\\rightarrow$", (0.99, 0.5), ha="right",
                        xycoords="axes fraction", fontsize="small", color="0.3")
        return ax


def spectrum(sigma: Formula, *, r: float, c: float = 1.0, alpha: float, beta: float, normalisation: str = "p", points: int = 400,
             dimension: float | None = None, vocabulary: Sequence[float] | None = None, fractions: Sequence[float] | None = None,
             norms: Sequence[float] | None = None, biases: Sequence[float] | None = None, rows: str = "sphere") -> Spectrum:
    """The spectrum of the features' covariance after one giant gradient step.

    Parameters
    ----------
    sigma : activation: a name, text or expression in z
    r, c : spike and bulk variance of the features (c > 0);   alpha, beta : n/d and p/d, positive
    normalisation : "p" for Phi^T Phi/p, "n" for Phi^T Phi/n
    points : number of points at which the density is given, spread over the bulks, dense at their edges
    dimension : d, for the values of outliers, which grow with n = alpha d unless mu_0 = 0
    vocabulary, fractions, norms, biases : values u_k of the readout before the step, their shares of the neurons (default equal),
        the squared row norms c_k (default c) and biases b_k (default 0): letter k has the spike r u_k. Norms that fluctuate by
        O(1) are letters with equal u_k
    rows : "sphere"; "gaussian": squared norms that fluctuate by sqrt(2/d) c, which moves outliers, not the bulk

    Returns
    -------
    Spectrum : edges to 1e-8 relative where they are folds (square roots), as a rule.

    Raises
    ------
    BadInput : a number out of range.    NotConverged : the branch of the fixed point was lost.

    Guarantee
    ---------
    Edges, atom and outlier solve the equations of the sources, which describe the limit d -> oo. See docs/promise.md.

    References: cui2024 (App. F).

    Examples
    --------
    >>> law = spectrum("tanh", r=1.2, c=1.1, alpha=1.5, beta=1)
    >>> [round(float(e), 6) for e in law.edges[0]], complex(round(law.stieltjes(0.5j).real, 9))
    ([0.004364, 2.421709], (0.530958974+0j))
    """
    smoothed = Smoothed(sigma)
    r, c, alpha, beta = (_number(n, v) for n, v in (("r", r), ("c", c), ("alpha", alpha), ("beta", beta)))
    for name, v in (("c", c), ("alpha", alpha), ("beta", beta)):
        if not v > 0:
            raise BadInput(f"spectrum: {name} is positive, not {v:g}")
    if not isinstance(normalisation, str) or normalisation not in ("p", "n"):
        raise BadInput(f"spectrum: the normalisation is 'p' or 'n', not {brief(normalisation)}")
    if not 2 <= points <= 100_000:
        raise BadInput(f"spectrum: points is between 2 and 100000, not {points}")
    sharpest = 1e3  # r/sqrt(c), whose rule has 10^5 nodes
    if not abs(r) <= sharpest*np.sqrt(c):
        raise BadInput(f"spectrum: |r| is at most {sharpest:g} sqrt(c), for features vary over sqrt(c)/r")
    if not isinstance(rows, str) or rows not in ("sphere", "gaussian"):
        raise BadInput(f"spectrum: rows is sphere or gaussian, not {brief(rows)}")
    letters, pi = _letters(vocabulary, fractions, norms, biases)
    spikes, sizes, shifts = (v[0] for v in letters.columns(np.asarray(r), np.asarray(c)))
    if not np.all(np.abs(spikes) <= sharpest*np.sqrt(sizes)):
        raise BadInput(f"spectrum: |r u_k| is at most {sharpest:g} sqrt(c_k), for features vary over sqrt(c_k)/(r u_k)")
    d = None if dimension is None else _number("dimension", dimension)
    if d is not None and not d > 0:
        raise BadInput("spectrum: dimension is positive")
    known = _coefficients(smoothed, spikes, sizes, shifts)
    kappa, w, mu_0, mu_1, rest = known
    equations = Equations(w, mu_1, rest, alpha, beta, pi, sizes)
    unit = 1.0 if normalisation == "p" else beta/alpha
    notes: list[str] = []
    grows = _unbounded(kappa, equations.population)
    bulks, soft, thin = _support(equations, grows) if equations.mean > 0 else ([], False, False)
    finer = 8  # times finer in kappa where few samples carry a part of the bulk
    if thin:
        kappa, w, mu_0, mu_1, rest = _coefficients(smoothed, spikes, sizes, shifts, refine=finer)
        equations = Equations(w, mu_1, rest, alpha, beta, pi, sizes)
        notes.append("part of the bulk comes from few samples (large |kappa|): its density is small and known to about 1 % there")
    if grows:
        notes.append("mu_1 or mu_star is unbounded in kappa: the bulk has no right edge, its density has a tail")
    elif soft:
        notes.append("an edge is not a fold of the fixed point: the density vanishes there faster than any power, or not at all")
    zero = _mass_at_zero(equations)
    negligible = 1e-9  # a variance, relative to the mean, that shows as none
    seen = 1e-3  # a share of the law that is reported
    if (nearly := _mass_at_zero(equations, negligible) - zero) > seen:
        notes.append(f"of the eigenvalues {nearly:.3g} lie below {negligible:.0e} of the mean: where mu_1 and mu_star (nearly) "
                     "vanish the features of a sample do not vary, and rows are alike; the law counts these as its bulk, "
                     "a matrix of finite size shows them, and some more, as zeros")
    x, density = _density(equations, bulks, points)
    edges = tuple((low*unit, (np.inf if grows and i == len(bulks) - 1 else high*unit)) for i, (low, high) in enumerate(bulks))
    found: tuple[float, ...] = ()
    mean = bool(np.any(w @ mu_0**2 > 1e-26*(w @ (mu_0**2 + sizes*mu_1**2 + rest))))  # 1e-26: a mu_0 of roundings is none
    lacking = "give dimension=, they grow with n = alpha d" if mean and d is None else ""
    if not lacking:
        functions = [(mu_0, alpha*d*pi)] if mean and d is not None else []
        functions.append((kappa[:, None]*mu_1, alpha*pi*sizes))
        if rows == "gaussian":  # d Var |w|^2 = 2 c^2, nu = d mu_0/dc
            nu = [mu(smoothed.activation, 2)(u*kappa + b, r=1.0, c=v)/2 for u, v, b in zip(spikes, sizes, shifts, strict=True)]
            functions.append((np.stack(nu, axis=1), alpha*pi*2*sizes**2))
        found = tuple(unit*v for v in outliers(equations, functions, bulks))
    own = _outlier(known, equations, normalisation, d) if pi.size == 1 else None
    letters = letters._replace(c=tuple(map(float, sizes)))
    return Spectrum(smoothed.activation, r, c, alpha, beta, normalisation, x*unit, density/unit, edges, zero, own, tuple(notes),
                    found, lacking, letters, tuple(map(float, pi)), rows, equations)


def _letters(vocabulary: Any, fractions: Any, norms: Any, biases: Any) -> tuple[Vocabulary, Array]:
    """The letters and their fractions, checked; one letter if none is given."""
    letters = letters_of("spectrum", vocabulary, norms, biases)
    count = len(letters.u)
    try:
        pi = np.full(count, 1/count) if fractions is None else np.array([float(v) for v in fractions])
    except NO_NUMBER:
        raise BadInput(f"spectrum: fractions is a list of numbers, not {brief(fractions)}") from None
    if pi.size != count or not np.all(pi > 0) or not abs(pi.sum() - 1) <= 1e-9:
        raise BadInput(f"spectrum: fractions must be {count} positive numbers, one for each letter, whose sum is 1")
    return letters, pi


def _number(name: str, value: Any) -> float:
    try:
        number = float(value)
    except NO_NUMBER:
        raise BadInput(f"spectrum: {name} = {brief(value)} is not a number") from None
    if not np.isfinite(number):
        raise BadInput(f"spectrum: {name} must be finite")
    return number


def _coefficients(smoothed: Smoothed, r: Array, c: Array, b: Array, refine: int = 1) -> tuple[Array, Array, Array, Array, Array]:
    """kappa, weights, and mu_0, mu_1, mu_star^2 of each letter, shape (nodes, K), on a rule as fine as their sqrt(c)/r requires."""
    coarsest = 0.05  # step of the quadrature over kappa: exp(-2 pi^2/h^2) is 0, and an activation of width 1 is resolved
    step = min(coarsest, float(np.min(0.3/np.sqrt(1 + 2*r*r/c))))/refine
    kappa = step*np.arange(-np.ceil(_WINDOW/step), np.ceil(_WINDOW/step) + 1)
    w = np.exp(-kappa**2/2)*step/np.sqrt(2*np.pi)
    if smoothed.activation.parity in (1, -1) and not np.any(b):  # only squares and mu_0 mu_1 kappa are averaged
        w = np.where(kappa > 0, 2*w, w)[kappa >= 0]
        kappa = kappa[kappa >= 0]
    columns = []
    for r_k, c_k, b_k in zip(r, c, b, strict=True):
        mu_0, mu_1 = smoothed(r_k*kappa + b_k, np.asarray(c_k))
        shifted = (r_k*kappa + b_k, 1.0) if b_k else (kappa, r_k)
        rest = np.maximum(mu_star(smoothed.activation).squared(shifted[0], r=shifted[1], c=c_k), 0)
        size = float(w @ (mu_0**2 + c_k*mu_1**2 + rest))
        # A number that is 0 up to rounding (mu_star of a linear activation) must not count as a small population.
        rest = rest if w @ rest > 1e-26*size else np.zeros_like(rest)
        mu_1 = mu_1 if w @ (c_k*mu_1**2 + 0*kappa) > 1e-26*size else np.zeros_like(mu_1)
        columns.append([np.broadcast_to(v, kappa.shape) for v in (mu_0, mu_1, rest)])
    return (kappa, w, *(np.stack(v, axis=1) for v in zip(*columns, strict=True)))  # type: ignore[return-value]


def _unbounded(kappa: Array, population: Array) -> bool:
    """True if the variance of a feature keeps growing with |kappa|."""
    grows = 1e-3  # relative growth of the population at the window's end: unbounded
    for side in (np.argsort(kappa), np.argsort(-kappa)):
        tail = population[side][np.abs(kappa[side]) > 0]
        end, before = tail[-1], tail[-1 - max(1, len(tail)//20)]
        if end > before*(1 + grows) and end >= population.max()*(1 - 1e-12) and abs(kappa[side][-1]) > _WINDOW - 1:
            return True
    return False


def _mass_at_zero(e: Equations, negligible: float = 0.0) -> float:
    """1 - rank/p: Phi has rank min(n, p), or min(n, d, p) if the features are linear, 0 if they are constant.

    negligible : samples whose features vary by less, relative to the mean, do not count
    """
    population = e.population
    varying = float(e.w @ (population > negligible*(e.w @ population)))/float(np.sum(e.w)) if negligible else 1.0
    ranks = [e.alpha*varying, e.beta]
    if not e.d.any():
        ranks.append(1.0 if e.mu.any() else 0.0)
    return max(0.0, 1 - min(ranks)/e.beta)


def _support(e: Equations, grows: bool) -> tuple[list[tuple[float, float]], bool, bool]:
    """The bulks away from zero, whether some edge is not a fold, and whether part of a bulk rests on few samples."""
    top = 4*e.mean
    while e.trace(e.solve(np.array([top + 0j])))[0].imag*top > (1e-9 if grows else _INSIDE) and top < 1e8*e.mean:
        top *= 2
    scanned = 250  # points that look for edges, linearly and geometrically spaced
    scan = np.unique(np.append(np.linspace(0, top, scanned + 1)[1:], np.geomspace(1e-7*top, top, scanned)))
    V = e.solve(scan + 0j)
    # In a gap V is real, and no sample may sit on a pole of Q: the population is a continuum, its nodes only sample it.
    pole, m = 1 + V.real @ e.basis.T, e.trace(V)
    inside = m.imag > _INSIDE*np.abs(m)
    thin = ~inside & (pole.min(axis=1) < 0) & (pole.max(axis=1) > 0)
    inside |= thin
    starts, ends = np.flatnonzero(np.diff(inside.astype(int)) > 0), np.flatnonzero(np.diff(inside.astype(int)) < 0)
    folds = True
    lows: list[float] = [0.0] if inside[0] else []
    for i in starts:
        edge, fold = e.edge(scan[i], scan[i + 1], V[i + 1])
        lows.append(edge)
        folds &= fold
    highs: list[float] = []
    for i in ends:
        edge, fold = e.edge(scan[i + 1], scan[i], V[i])
        highs.append(edge)
        folds &= fold
    if inside[-1]:
        highs.append(float(scan[-1]))
    return list(zip(lows, highs, strict=True)), not folds, bool(thin.any())


def _density(e: Equations, bulks: list[tuple[float, float]], points: int) -> tuple[Array, Array]:
    """x on each bulk at the angles of a cosine, dense at its edges, and Im m/pi there."""
    if not bulks:
        return np.zeros(0), np.zeros(0)
    each = max(2, points//len(bulks))
    theta = np.pi*(np.arange(each) + 0.5)/each
    x = np.concatenate([(low + high)/2 - (high - low)/2*np.cos(theta) for low, high in bulks])
    return x, np.maximum(e.trace(e.solve(x + 0j)).imag, 0)/np.pi


def _outlier(known: tuple[Array, ...], e: Equations, normalisation: str, dimension: float | None) -> dict[str, Any] | None:
    """n E mu_0^2 + (E[mu_0^2 s^2] + alpha c E[mu_0 mu_1 kappa]^2)/E mu_0^2 + (alpha/beta) E s^2, s^2 = c mu_1^2 + mu_star^2."""
    kappa, w, *letters = known
    (mu_0, mu_1, rest), c = (v[:, 0] for v in letters), float(e.c[0])
    population = c*mu_1**2 + rest
    square = float(w @ mu_0**2)
    if square <= 1e-26*float(w @ (mu_0**2 + population)) or square == 0:
        return None
    constant = (w @ (mu_0**2*population) + e.alpha*c*(w @ (mu_0*mu_1*kappa))**2)/square + e.mean
    unit = 1.0 if normalisation == "p" else e.beta/e.alpha
    value = None
    if dimension is not None:
        value = float(unit*(e.alpha*dimension*square + constant))
    return {"times": "n" if normalisation == "p" else "p", "coefficient": square, "constant": float(unit*constant), "value": value}
