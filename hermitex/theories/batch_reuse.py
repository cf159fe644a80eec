r"""h_1 = (1 + eta f_0) h_0 + eta e_0 z + (eta/alpha) r_0 + eta sqrt(q_0/alpha) G: the field after a step on samples that come back.

w_(t+1) = w_t + (eta/n) X^T r(y, X w_t), twice on the same n = alpha d samples; |w_0| = 1, <w_0, w*> = 0, y = g(z), z = <w*, x>. The
residual r is (y - sigma(h)) sigma'(h) (square loss) or y sigma'(h) (correlation). r_0 = r(y, h_0), e_0 = E[z r_0],
f_0 = E[h_0 r_0], q_0 = E[r_0^2] with z, h_0, G independent normals; by (eta/alpha) r_0 the weights remember the sample itself:

    m_1 = eta e_0,  |w_1|^2 = (1 + eta f_0)^2 + eta^2 (e_0^2 + q_0/alpha),  m_2 = m_1 + eta E[z r_1],  r_1 = r(y, h_1).

Exact as d -> oo; derived by conditioning on X^T r_0 [after dandi2024reusing].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from sympy import DiracDelta, Integer, Max, Min, Rational

from hermitex.errors import BadInput
from hermitex.hints import Axes, Formula
from hermitex.show.plots import curves
from hermitex.solvers.solution import Solution
from hermitex.symbolic.activations import Activation, activation
from hermitex.symbols import z
from hermitex.theories.claims import Claim, Claims, exact
from hermitex.theories.online.two_looks import TwoLooks
from hermitex.theories.repetition import repetition
from hermitex.theories.spike import require_numbers, require_square_integrable
from hermitex.theories.theory import Theory

_BY_STEP = ("cosine", "overlap", "norm", "growth")


class StepSolution(Solution):
    """A Solution with arrays `cosine`, `overlap`, `norm` and `growth` whose last axis is the step, besides each step's own numbers.

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
        require_numbers("batch-reuse", role, f)
        if z not in f.expr.free_symbols:
            raise BadInput(f"batch-reuse: the {role} is a constant; there is nothing to learn")
        require_square_integrable("batch-reuse", role, f)
    if made[0].weak_derivative.expr.has(DiracDelta):
        raise BadInput(f"batch-reuse: {made[0].name} jumps and has no gradient; take an activation without a jump")
    if loss not in ("square", "correlation"):
        raise BadInput(f"batch-reuse: loss is square or correlation, not {loss!r}")
    return _made(*made, loss)


_made = lru_cache(BatchReuse)  # one object for one structure, so that its functions are compiled once
