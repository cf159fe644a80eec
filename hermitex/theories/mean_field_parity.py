r"""n ~ d^(1 - a), log N ~ d^(1 - a), log t ~ d^(1 - a): k-parity by a mean-field network under noisy gradient descent.

y = sign(prod_{i in I} x_i), |I| = k; the relevant coordinates are larger than the others by x_i/x_j ~ d^(a/2), 0 <= a <= 1. The
exponents do not depend on k; a correlational statistical query would need d^(k-1) samples. Status: theorem [nitanda2024], quoted,
not re-derived; the reading by the effective dimension d_eff = tr Sigma/|Sigma| ~ d^(1 - a) is derived here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import comb
from typing import Any, ClassVar

import numpy as np
from sympy import Expr, Integer, Symbol

from hermitex.errors import BadInput
from hermitex.hints import Axes
from hermitex.kernels.normals import normal_nodes
from hermitex.show.display import latex
from hermitex.show.plots import curves
from hermitex.solvers.solution import Solution
from hermitex.theories.claims import Claim, Claims, exact
from hermitex.theories.theory import Theory

ALPHA = Symbol("alpha", nonnegative=True)


_EXPONENTS = ("samples", "width", "time", "effective_dimension_exponent")


@dataclass(frozen=True, repr=False)
class MeanFieldParity(Theory):
    """Scalings of k-parity with anisotropic inputs: `.scalings(alpha)`, `.effective_dimension(...)`, `.curve(alpha=[...])`."""

    k: int

    name: ClassVar[str] = "mean-field-parity"
    ratio: ClassVar[str] = r"2\log(x_i/x_j)/\log d"
    sources: ClassVar[tuple[str, ...]] = ("nitanda2024",)
    brought_by: ClassVar[Mapping[str, str]] = {"effective_dimension": "dimension"}

    def scalings(self, alpha: Any = None) -> Claims:
        """Exponents of d: `samples` of n, `width` of log N, `time` of log t, `effective_dimension_exponent` of
        tr Sigma/|Sigma|, and `csq` for comparison.

        Examples
        --------
        >>> found = mean_field_parity(4).scalings("1/3")
        >>> found["samples"], found["width"], found["time"], found.status["samples"]
        (2/3, 2/3, 2/3, 'theorem')
        """
        e = 1 - (ALPHA if alpha is None else _power(alpha))
        said = "quoted, not re-derived; up to powers of log d"
        return Claims(f"{self.k}-parity, mean field", {
            "samples": Claim(e, "theorem", "nitanda2024", f"n ~ d^samples; {said}"),
            "width": Claim(e, "theorem", "nitanda2024", f"log N ~ d^width; {said}"),
            "time": Claim(e, "theorem", "nitanda2024", f"log t ~ d^time; {said}"),
            "effective_dimension_exponent": Claim(e, "derived", "", "tr Sigma/|Sigma| ~ d^effective_dimension_exponent, k fixed"),
            "csq": Claim(Integer(max(self.k - 1, 1)), "theorem", "nitanda2024",
                         "isotropic inputs: samples ~ d^csq of a correlational statistical query")})

    def effective_dimension(self, d: Any, alpha: Any) -> Expr:
        """tr Sigma/|Sigma| exactly, for k coordinates of variance d^alpha and d - k of variance 1.

        >>> mean_field_parity(2).effective_dimension(100, "1/2")
        59/5
        """
        size, a = exact("d", d), _power(alpha)
        if size.is_number and not (size.is_integer and size >= self.k):
            raise BadInput(f"mean-field-parity: d is a whole number, at least k = {self.k}, not {str(d)[:60]}")
        return self.k + (size - self.k)/size**a

    def threshold(self, prior: Any = 0.5) -> float:
        """c*: nothing is learned at lam >= c*/d^(1 - alpha), with the loss E log(1 + exp(-y f)) + lam (prior E|w|^2 + entropy).

        Neurons are tanh(<w, x> + b), f their mean, x_i = +-d^((alpha - 1)/2) for the k relevant i and +-d^(-1/2) for the others. As
        d -> oo the weights of the others stay normal of variance 1/(2 prior) and add G to the field of the k, which are
        v sqrt(d^(1 - alpha)). With c = lam d^(1 - alpha) the problem becomes min_mu E log(1 + exp(-y f)) + c prior E(|v|^2 + b^2),
        which is convex in the law mu of the neurons:

            c* = max psi(v, b)/(|v|^2 + b^2)/(2 prior),  psi = E[y tanh(<v, x> + b + G)].

        For k = 1 no threshold exists, c* = oo. Derived; the full training at finite d and n was not simulated.

        >>> [round(mean_field_parity(k).threshold(prior=0.5), 10) for k in (2, 3, 4)]
        [0.0576388232, 0.0576388232, 0.0209211272]
        """
        if self.k == 1:
            return float("inf")
        return self._best(_positive("prior", prior))[0]

    def margin(self, c: Any, prior: Any = 0.5) -> float:
        """A of the learned function f = A y at lam = c/d^(1 - alpha): 0 from c* on, log(2 c*/c - 1) below, then psi(v) of one v.

        Up to psi of the best v the optimum is a mixture of the prior and neurons at that v; beyond it all neurons share one v,
        the argmax of psi/(c prior (1 + e^A)) - |v|^2 - b^2. Derived; k >= 2.

        >>> theory = mean_field_parity(2)
        >>> round(theory.margin(0.5*theory.threshold(prior=0.5), prior=0.5), 6)
        0.262463
        """
        from scipy.optimize import brentq

        weight, level = _positive("prior", prior), _positive("c", c)
        if self.k == 1:
            raise BadInput("mean-field-parity: one coordinate has no threshold; margin is for k of 2 or more")
        critical, first, bump = self._best(weight)
        if level >= critical:
            return 0.0
        mixed = float(np.log(2*critical/level - 1))
        if mixed <= bump:
            return mixed

        def excess(u: float) -> float:  # of the slope of psi over |v|^2, as a function of A = psi
            A, slope = self._bump(u, weight)
            return slope - 2*self._coordinates*u*level*weight*(1 + np.exp(A))

        last = first
        while excess(last) > 0:
            last *= 2
        return self._bump(brentq(excess, first, last, xtol=1e-14), weight)[0]

    @property
    def _coordinates(self) -> int:
        """K, those of (v, b) that are not 0 at the best neuron: for even k the bias takes the part of one more coordinate."""
        return self.k + 1 - self.k % 2

    def _bump(self, u: float, prior: float) -> tuple[float, float]:
        """psi and its slope where all K coordinates are u: 2^-K sum_j C(K, j) (-1)^j E tanh(u (K - 2j) + G)."""
        K = self._coordinates
        nodes, weights = normal_nodes(1/(2*prior), 0.25)  # tanh is analytic in a strip of half-width pi/2
        at = np.arange(K, -K - 1, -2)
        signs = np.array([(-1)**j*comb(K, j)/2**K for j in range(K + 1)])
        field = np.tanh(u*at[:, None] + nodes)
        return abs(float(signs @ (field @ weights))), abs(float((signs*at) @ ((1 - field**2) @ weights)))

    def _best(self, prior: float) -> tuple[float, float, float]:
        """c*, and the coordinate u and psi of the neuron whose psi/(|v|^2 + b^2) is largest."""
        from scipy.optimize import minimize_scalar

        K = self._coordinates
        grid = np.geomspace(1e-2, 1e2, 200)*np.sqrt(1 + 1/(2*prior))  # in units of the field at which tanh with its noise saturates
        values = [self._bump(u, prior)[0]/(K*u*u) for u in grid]
        best = int(np.argmax(values))
        found = minimize_scalar(lambda u: -self._bump(u, prior)[0]/(K*u*u), method="bounded", options={"xatol": 1e-10},
                                bounds=(grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]))
        u = float(found.x)
        bump = self._bump(u, prior)[0]
        return bump/(K*u**2)/(2*prior), u, bump

    def plot(self, ax: Axes | None = None) -> Axes:
        """The exponent of n over alpha, with the k - 1 of a correlational query."""
        line = [i/100 for i in range(101)]
        ax = curves(line, {"mean field: $n$, $\\log N$, $\\log t$": [1 - a for a in line]}, ax, xlabel=r"$\alpha$",
                    ylabel="exponent of $d$")
        ax.plot([0], [max(self.k - 1, 1)], "o", color="#D55E00", clip_on=False, label=f"correlational query, $k = {self.k}$")
        ax.legend(frameon=False, fontsize="small")
        ax.set_ylim(bottom=0)
        return ax

    # -- along alpha -------------------------------------------------------------------------------------------------------
    # the exponents of d, and where d is given effective_dimension = tr Sigma/|Sigma| itself
    order_parameters = (*_EXPONENTS, "effective_dimension")

    errors = ()  # none: exponents only

    def letters(self) -> dict[str, Any]:
        """alpha; dimension, d (default: none)."""
        return {"alpha": self.REQUIRED, "dimension": np.inf}

    def complete(self, numbers: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The numbers, checked."""
        out = self.checked(numbers, alpha=">= 0", dimension="> 0 inf")
        if not np.all(out["alpha"] <= 1):
            raise BadInput(f"mean-field-parity: alpha must be between 0 and 1, not {np.max(out['alpha']):g}")
        wrong = ~((out["dimension"] >= self.k) & (np.rint(out["dimension"]) == out["dimension"]))
        if np.any(wrong):
            one = out["dimension"][wrong].flat[0]
            raise BadInput(f"mean-field-parity: d is a whole number, at least k = {self.k}, not {one:g}")
        return out

    def run(self, numbers: Mapping[str, np.ndarray], **options: Any) -> Solution:
        """1 - alpha, four times, and tr Sigma/|Sigma| where d is given."""
        a, d = np.broadcast_arrays(np.asarray(numbers["alpha"], dtype=float), np.asarray(numbers["dimension"], dtype=float))
        value = dict.fromkeys(_EXPONENTS, 1 - a)
        if np.any(np.isfinite(d)):
            finite = np.where(np.isfinite(d), d, self.k)
            value["effective_dimension"] = np.where(np.isfinite(d), self.k + (finite - self.k)/finite**a, np.nan)
        one = a.shape == ()
        return Solution({n: v.item() if one else v for n, v in value.items()}, 0.0 if one else np.zeros(a.shape),
                        True if one else np.full(a.shape, True), method="explicit", unknowns=tuple(value),
                        notes=("exponents of d: theorem (nitanda2024), quoted; that of the effective dimension: derived",))

    def described(self, fixed: Mapping[str, float]) -> dict[str, Any]:
        """k, d where it is given, and the status."""
        return {"k": self.k, **{n: v for n, v in fixed.items() if v != np.inf}, "status": "theorem, quoted; d_eff derived"}

    # -- showing -----------------------------------------------------------------------------------------------------------
    def to_dict(self) -> dict[str, Any]:
        """k and the scalings."""
        return {"k": self.k, **self.scalings().to_dict()}

    def latex(self) -> str:
        """The three scalings."""
        e = latex(1 - ALPHA)
        return rf"n = \Theta(d^{{{e}}}), \quad N = e^{{\Theta(d^{{{e}}})}}, \quad t = e^{{\Theta(d^{{{e}}})}}"


def _power(alpha: Any) -> Expr:
    """alpha as an exact expression: a number between 0 and 1, or a letter."""
    a = exact("alpha", alpha)
    if not a.free_symbols and not (a.is_extended_real and 0 <= a <= 1):
        raise BadInput(f"mean-field-parity: alpha must be between 0 and 1, not {str(alpha)[:60]}")
    return a


def _positive(name: str, value: Any) -> float:
    """A finite number above 0."""
    number = exact(name, value.item() if isinstance(value, np.generic) else value)
    if not (number.is_number and number.is_real and number > 0):
        raise BadInput(f"mean-field-parity: {name} must be positive and finite, not {str(value)[:60]}")
    return float(number)


def mean_field_parity(k: int | str = 2) -> MeanFieldParity:
    """What k-parity costs a two-layer network of mean-field width under noisy gradient descent.

    n ~ d^(1 - alpha), log N and log t likewise, for inputs whose relevant coordinates are larger by d^(alpha/2), whatever k is.
    Theorem [nitanda2024], quoted.

    Parameters
    ----------
    k : how many coordinates the parity is of, an integer >= 1 (default: 2)

    Returns
    -------
    MeanFieldParity : `.scalings(alpha)` -> samples, width, time, effective_dimension_exponent with their status;
    `.threshold(prior=)`, the temperature c*/d^(1 - alpha) from which nothing is learned; `.margin(c, prior=)`;
    `.curve(alpha=[...], dimension=)`; `.plot()`. The experiment, ``hx.curve(..., simulate=True)`` or
    `hermitex.experiments.parity_experiment.simulate`, shows the trend for small k in its test error (at d = 20, 40, 80 without
    ``dimension=``), not the exponents.

    Guarantee
    ---------
    Each formula carries its status. This is the limit of the sources; accuracy at finite dimension is not promised. See
    docs/promise.md.

    References: nitanda2024.

    Examples
    --------
    >>> mean_field_parity(3).scalings()["samples"]
    1 - alpha
    """
    k = int(k) if isinstance(k, str) and k.strip().isdecimal() else k
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise BadInput(f"mean-field-parity: k is an integer, 1 or more, not {k!r}")
    return MeanFieldParity(k)
