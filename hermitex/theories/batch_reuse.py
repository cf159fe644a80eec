r"""h_1 = (1 + eta f_0) h_0 + eta e_0 z + (eta/alpha) r_0 + eta sqrt(q_0/alpha) G: the field after a step on samples that come back.

w_(t+1) = w_t + (eta/n) X^T r(y, X w_t), twice on the same n = alpha d samples; |w_0| = 1, <w_0, w*> = 0, y = g(z), z = <w*, x>. The
residual r is (y - sigma(h)) sigma'(h) (square loss) or y sigma'(h) (correlation). r_0 = r(y, h_0), e_0 = E[z r_0],
f_0 = E[h_0 r_0], q_0 = E[r_0^2] with z, h_0, G independent normals; by (eta/alpha) r_0 the weights remember the sample itself:

    m_1 = eta e_0,  |w_1|^2 = (1 + eta f_0)^2 + eta^2 (e_0^2 + q_0/alpha),  m_2 = m_1 + eta E[z r_1],  r_1 = r(y, h_1).

Exact as d -> oo; derived by conditioning on X^T r_0 [after dandi2024reusing].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from sympy import DiracDelta, Expr, Integer, Max, Min, Rational

from hermitex.errors import BadInput
from hermitex.hints import Axes, Formula
from hermitex.kernels.averages import compiled
from hermitex.kernels.normals import WINDOW, panels
from hermitex.kernels.panel_rules import split, to_series
from hermitex.numbers.gauss import legendre, legendre_on
from hermitex.show.plots import curves
from hermitex.solvers.solution import Solution
from hermitex.symbolic.activations import Activation, activation
from hermitex.symbolic.gaussian import E
from hermitex.symbolic.series.coefficients import coefficient
from hermitex.symbols import z
from hermitex.theories.claims import Claim, Claims, exact
from hermitex.theories.repetition import repetition
from hermitex.theories.spike import require_square_integrable
from hermitex.theories.theory import Theory

Array = np.ndarray[Any, Any]
_BY_STEP = ("cosine", "overlap", "norm", "growth")


class StepSolution(Solution):
    """A Solution with arrays `cosine`, `overlap`, `norm` and `growth` whose last axis is the step, beside each step's own numbers.

    `growth` is there for an even target: the factor by which the steps so far multiply a small cosine of the start. If E[z|y] = 0,
    every overlap is 0 without a start.

    >>> found = batch_reuse("relu", "tanh").solve(alpha=3, eta=1)
    >>> found["overlap"].round(6), found["cosine"].round(5)
    (array([0.302853, 0.372545]), array([0.3997 , 0.54134]))
    """

    def __getitem__(self, name: str) -> Any:
        if name not in _BY_STEP or f"{name}_1" not in self.value:
            return super().__getitem__(name)
        return np.stack([self.value[n] for n in (f"{name}_1", f"{name}_2") if n in self.value], axis=-1)

    def __contains__(self, name: object) -> bool:
        return super().__contains__(f"{name}_1" if name in _BY_STEP else name)


@dataclass(frozen=True, repr=False)
class BatchReuse(Theory):
    """One or two full-batch steps on one set of samples: `.solve(alpha=, eta=)`, `.curve(alpha=[...], eta=)`, `.rates(s)`."""

    sigma: Activation
    g: Activation
    loss: str = "square"

    name: ClassVar[str] = "batch-reuse"
    sources: ClassVar[tuple[str, ...]] = ("dandi2024reusing", "damian2023")
    status: ClassVar[str] = "derived; exact as d -> oo at fixed alpha and eta"
    errors = ()  # none: the theory knows the weights only

    @property
    def order_parameters(self) -> tuple[str, ...]:
        """cosine_t, overlap_t = <w_t, w*>, norm_t = |w_t| after step t; growth_t for an even target."""
        return tuple(f"{n}_{t}" for n in _BY_STEP[:4 if self.g.parity == 1 else 3] for t in (1, 2))

    def letters(self) -> dict[str, Any]:
        """alpha = n/d, eta the step; steps, 1 or 2 (default 2)."""
        return {"alpha": self.REQUIRED, "eta": self.REQUIRED, "steps": 2.0}

    def complete(self, numbers: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The numbers, checked."""
        found = self.checked(numbers, alpha="> 0", eta="> 0", steps="> 0")
        self.single(found, "steps")
        if not np.all(np.isin(found["steps"], (1, 2))):
            raise BadInput(f"batch-reuse: steps is 1 or 2, not {found['steps'].flat[0]:g}; "
                           "hermitex.experiments.batch_reuse_experiment.simulate takes more")
        return found

    @cached_property
    def averages(self) -> TwoLooks:
        """The averages over a sample that comes back."""
        return TwoLooks.of(self.sigma, self.g, self.loss)

    def run(self, numbers: Mapping[str, np.ndarray], **options: Any) -> Solution:
        """Cosine, overlap and norm after each step, by two rules whose difference is the error."""
        alpha, eta = np.broadcast_arrays(np.asarray(numbers["alpha"], dtype=float), np.asarray(numbers["eta"], dtype=float))
        steps = int(np.ravel(numbers["steps"])[0])
        rows = [self.averages.settled(float(a), float(h), steps) for a, h in zip(alpha.ravel(), eta.ravel(), strict=True)]
        one = alpha.shape == ()

        def shaped(values: list[Any]) -> Any:
            return values[0] if one else np.array(values).reshape(alpha.shape)

        value = {n: shaped([row[n] for row, _ in rows]) for n in rows[0][0]}
        error = shaped([e for _, e in rows])
        known = 1e-8  # absolute: two rules of the last fineness differ by less
        good = np.asarray(error) <= known
        return StepSolution(value, error, bool(good) if one else good, error=error, method="explicit", unknowns=tuple(value),
                            reason="" if np.all(good) else f"the averages over the sample are known to {np.max(error):.1g} only",
                            notes=(self.status,))

    def rates(self, s: Any) -> Claims:
        """Exponents of d in the number of samples, if the inner step is d^-s: E[g sigma'(h + d^-s g sigma'(h)) h*].

        The term of g^(j+1) is the drift d^(-s j) m^(l_j - 1), l_j the information exponent of g^(j+1), j >= 1. At m = d^(-1/2) it
        exceeds that of g, m^(l-1), where s < `switch` = max_j (l - l_j)/(2 j). `samples` is min_j of d^(l-1) and
        d^(max(l_j - 1, 1) + 2 s j), powers up to g^4, logarithms dropped; no sample count of it was simulated. A student for which
        E[sigma'^j sigma^(j+1) He_(l_j - 1)] = 0 lacks that term.

        >>> found = batch_reuse("relu", "He3").rates("1/4")
        >>> found["samples"], found["switch"], found["one_pass"], found["smoothed"]
        (3/2, 1/2, 2, 3/2)
        """
        rate = exact("s", s)
        if rate.is_number and not (rate.is_real and rate >= 0):
            raise BadInput(f"batch-reuse: the inner step is d^-s with s >= 0, not {s}")
        terms = 3  # of the expansion in the inner step: powers of the label up to g^4
        rows = repetition(self.g.expr, terms + 1).powers
        if rows[0].order is None:
            raise BadInput(f"batch-reuse: the information exponent of {self.g.name} is undetermined")
        ell = Integer(rows[0].order)
        plain = Max(ell - 1, 1)
        others = [(j, Integer(row.order)) for j, row in enumerate(rows) if j and row.order is not None]
        words = "logarithms dropped"
        return Claims(f"batch reuse of {self.g.name}, inner step d^-s", {
            "samples": Claim(Min(plain, *(Max(k - 1, 1) + 2*rate*j for j, k in others)), "heuristic", "",
                             f"n ~ d^samples; {words}"),
            "switch": Claim(Max(0, *(Rational(ell - k, 2*j) for j, k in others)), "heuristic", "tsiolis2025",
                            "a larger inner step, s < switch, is needed to leave the information exponent; that there is such a "
                            "transition in certain cases is the theorem of the source"),
            "one_pass": Claim(plain, "theorem", "benarous2021", f"each sample once; {words}"),
            "smoothed": Claim(Max(1, ell/2), "theorem", "damian2023", f"one pass on a smoothed loss; {words}")})

    def described(self, fixed: Mapping[str, float]) -> dict[str, Any]:
        """Functions, loss, numbers and status."""
        return {"sigma": self.sigma.name, "target": self.g.name, "loss": self.loss, **fixed, "status": self.status}

    def latex(self) -> str:
        """The field after the first step."""
        return (r"h_1 = (1 + \eta f_0)\,h_0 + \eta e_0\,z + \tfrac{\eta}{\alpha}\,r_0 + \eta\sqrt{q_0/\alpha}\,G,\qquad "
                r"m_2 = \eta\,\mathbb{E}[z\,(r_0 + r_1)]")

    _html = Theory._with_formula

    def plot(self, ax: Axes | None = None, *, eta: float = 1.0, points: int = 13) -> Axes:
        """The cosine after each step along alpha."""
        line = np.geomspace(0.3, 30, points)
        found = self.curve(line, eta=eta)
        ax = curves(line.tolist(), {f"step {t}": found[f"cosine_{t}"].tolist() for t in (1, 2)}, ax, xlabel=r"$\alpha = n/d$",
                    ylabel=r"$\cos(w_t, w_\star)$")
        ax.set_xscale("log")
        return ax


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
        """Where z ends: what a label that grows has of its second moment beyond is at most 1e-12 of it."""
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
        return cls(_function(sigma.expr), _function(slope), _function(g.expr), kinks, cuts, square, g.parity == 1,
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


def _function(expr: Expr) -> Callable[[Array], Array]:
    made = compiled(expr, z, np.array([-WINDOW, WINDOW]))
    if made is None:
        raise BadInput(f"batch-reuse: {expr} holds more than the variable z; give its parameters numbers")
    return made[0]


def batch_reuse(sigma: Formula, g: Formula, loss: str = "square") -> BatchReuse:
    r"""Full-batch gradient steps of one neuron on the same n = alpha d samples: the overlap after one and two of them.

    w_(t+1) = w_t + (eta/n) X^T r(y, X w_t), |w_0| = 1, <w_0, w*> = 0, r = (y - sigma(h)) sigma'(h) or y sigma'(h), y = g(z). The
    second step depends on powers of the label, because h_1 contains (eta/alpha) r(y, h_0).

    Parameters
    ----------
    sigma : activation without a jump;  g : target of one direction;  both square integrable
    loss : "square" (the gradient of (y - f)^2/2) or "correlation"

    Returns
    -------
    BatchReuse : `.solve(alpha=n/d, eta=, steps=2)` -> arrays cosine, overlap <w_t, w*>, norm |w_t| over the steps, growth for an
    even target; `.curve(alpha=[...], eta=)` with cosine_1, cosine_2, ...; `.rates(s)`; `.plot()`. The experiment,
    `hermitex.experiments.batch_reuse_experiment.simulate`, takes any number of steps.

    Raises
    ------
    BadInput : a function with free parameters, a jump in sigma, a constant target, numbers out of range, more than two steps.

    What reuse brings, and at which rate:

    * If E[z|y] = 0 (generative exponent 2 or more) no number of steps gives an overlap. If the generative exponent is 1 the second
      step gives one, zero at isolated eta at most; it is small: for He3 at alpha = 3 the cosine is about 0.03.
    * As eta -> 0 and for an information exponent above 1, m_2 falls as eta^2 (sigma with a kink) or eta^3 (smooth sigma).
    * With several steps on a sample at different rates, the sample complexity is that of the generative exponent for large enough
      rates only; in certain cases there is a transition from the information exponent [tsiolis2025, theorem, quoted].
    * One pass on a smoothed loss takes n ~ d^max(1, l/2) samples, plain SGD d^(l - 1) for l > 2 [damian2023, theorem, quoted].

    Guarantee
    ---------
    `.solve` and `.curve` return the formulas of this limit, with their error; `.rates` carries its status. Accuracy at finite
    dimension is not promised. See docs/promise.md.

    References: dandi2024reusing, damian2023, tsiolis2025.

    Examples
    --------
    >>> found = batch_reuse("relu", "He3(z)/sqrt(6)").solve(alpha=3, eta=3)
    >>> found["overlap"].round(5).tolist(), found["norm"].round(5).tolist()
    ([0.0, 0.03238], [1.80278, 2.36307])
    """
    made = activation(sigma), activation(g)
    for role, f in zip(("activation", "target"), made, strict=True):
        if extra := f.expr.free_symbols - {z}:
            raise BadInput(f"batch-reuse: the {role} {f.name} holds {', '.join(sorted(map(str, extra)))}; put numbers in")
        if z not in f.expr.free_symbols:
            raise BadInput(f"batch-reuse: the {role} is a constant; there is nothing to learn")
        require_square_integrable("batch-reuse", role, f)
    if made[0].weak_derivative.expr.has(DiracDelta):
        raise BadInput(f"batch-reuse: {made[0].name} jumps and has no gradient; take an activation without a jump")
    if loss not in ("square", "correlation"):
        raise BadInput(f"batch-reuse: loss is square or correlation, not {loss!r}")
    return _made(*made, loss)


@lru_cache(maxsize=32)
def _made(sigma: Activation, g: Activation, loss: str) -> BatchReuse:
    """One object for one structure, so that its functions are compiled once."""
    return BatchReuse(sigma, g, loss)
