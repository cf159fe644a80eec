r"""Ridge on the features after one step eta = d^s, 1/2 < s < 1: as many outliers as powers of the spike's projection are visible.

The visible powers of kappa are fitted exactly; the rest is ridge on random features [moniri2024].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, factorial
from typing import Any, ClassVar

import numpy as np

from hermitex.errors import BadInput
from hermitex.hints import Formula
from hermitex.solvers.solution import Solution
from hermitex.symbolic.activations import Activation
from hermitex.theories.small_step import small_step
from hermitex.theories.step_ridge import RidgeAfterStep, coefficient_value

_MOST = 20  # outliers: E z^20 sigma has still its digits


@dataclass(frozen=True, repr=False)
class IntermediateStep(RidgeAfterStep):
    """The test error of ridge after a step eta = d^s, 1/2 < s < 1: `.solve(s=, psi1=, psi2=, alpha=, lam=, Delta=0)`."""

    sigma: Activation
    g: Activation

    name: ClassVar[str] = "intermediate-step"
    step: ClassVar[str] = "s"
    sources: ClassVar[tuple[str, ...]] = ("moniri2024",)
    order_parameters = ("t", "outliers", "overlap")

    def complete(self, numbers: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The numbers, with what is left of the label once the visible powers of kappa are fitted."""
        done = super().complete(numbers)
        s, overlap = np.broadcast_arrays(done["s"], done["share"])
        powers, left = np.zeros(s.shape), np.zeros(s.shape)
        for i in np.ndindex(s.shape):
            seen = self.visible(float(s[i]))
            powers[i], left[i] = len([k for k in seen if k]), self.fitted(seen, float(overlap[i]))
        return {**done, "linear": done["linear"]*(1 - overlap), "second": self.moments["g_squared"] + done["Delta"] - left,
                "theta": np.asarray(0.0), "share": np.asarray(0.0), "outliers": powers, "overlap": overlap}

    def visible(self, s: float) -> tuple[int, ...]:
        """The k >= 1 with s > 1 - 1/(2k) and mu_k = E sigma He_k != 0, and 0 if the features have a mean.

        Raises BadInput outside of 1/2 < s < 1, where one more appears, and where there are more than 20.
        """
        if not 0.5 < s < 1:
            raise BadInput(f"intermediate-step: s must be between 1/2 and 1, got {s:g}; small_step has eta = O(1), giant_step d")
        at = 1/(2 - 2*s)
        last = ceil(at) - 1
        if last > _MOST:
            raise BadInput(f"intermediate-step: s = {s:g} makes {last} outliers; take s below {1 - 1/(2*_MOST + 2):.4g}")
        if abs(at - round(at)) < 1e-9*at:
            raise BadInput(f"intermediate-step: at s = {s:g} outlier {round(at)} is about to appear; take s above or below")
        zero = 1e-13  # a coefficient that small, of functions of size 1, is one whose vanishing was not proved
        return tuple(k for k in range(last + 1) if abs(coefficient_value(self.sigma, k)) > zero)

    def fitted(self, powers: tuple[int, ...], overlap: float) -> float:
        """|P h|^2 of h(kappa) = E[g|kappa] = sum_k hatc_k g^k h_k on the span of kappa^k, hatc_k = c_k/sqrt(k!)."""
        orders = range(max(powers, default=0) + 1)
        h = np.array([coefficient_value(self.g, j)/np.sqrt(factorial(j))*overlap**(j/2) for j in orders])
        columns = np.zeros((len(orders), len(powers)))
        for column, k in enumerate(powers):  # kappa^k = sum_i k!/(2^i i! j!) He_j, j = k - 2 i
            for i in range(k//2 + 1):
                j = k - 2*i
                columns[j, column] = np.sqrt(factorial(k)/factorial(j))/(2**i*factorial(i))  # over the length sqrt(k!)
        return float(np.sum((np.linalg.qr(columns)[0].T @ h)**2)) if powers else 0.0

    def run(self, numbers: Mapping[str, np.ndarray], **options: Any) -> Solution:
        """The errors, the number of outliers and the squared overlap of the spike with the target's direction."""
        found = super().run(numbers, **options)
        more = {n: np.broadcast_to(numbers[n], np.shape(found.converged)) for n in ("outliers", "overlap")}
        more = {n: v if v.ndim else v.item() for n, v in more.items()}
        said = ("the limit of infinitely strong spikes: those of a network grow as a small power of its width, and at a width of "
                "1000 its error is far from this")
        return found.extended(more, notes=(*found.notes, said))


def intermediate_step(sigma: Formula, g: Formula) -> IntermediateStep:
    r"""Ridge on the features after one step eta = d^s, 1/2 < s < 1, which makes l outliers, s in (1 - 1/(2 l), 1 - 1/(2 l + 2)).

    error = that of random features with c_1^2 -> c_1^2 (1 - g^2) and E y^2 -> E y^2 - |P E[g|kappa]|^2, where
    g^2 = c_1^2/(c_1^2 + E y^2/psi1) and P projects on the powers kappa^k, k <= l, of the spike's projection that sigma shows
    (E sigma He_k != 0), the constant among them if E sigma != 0. If all are shown, |P E[g|kappa]|^2 = sum_{k <= l} c_k^2 g^(2k)/k!.

    Parameters
    ----------
    sigma : activation, E[z sigma] != 0; g : target of one direction

    Returns
    -------
    IntermediateStep : `.solve(s=, psi1=(samples of the step)/d, psi2=N/d, alpha=n/d, lam=, Delta=0)` -> test_error (against the
    clean target), train_error, test_error_noisy, outliers, overlap = g^2; arrays broadcast; `.curve(alpha=[...], ...)`.

    Raises
    ------
    BadInput : not square integrable, E[z sigma] = 0, a number out of range, an s at which an outlier is about to appear.

    Guarantee
    ---------
    `.solve` solves the equations of this limit: infinitely strong spikes. The outliers are a theorem of the source; the error is
    derived here, at the level of Gaussian equivalence. Networks of width 1000 are far from it. See docs/promise.md.

    References: moniri2024 (outliers).

    Examples
    --------
    >>> theory = intermediate_step("tanh(z + 1)", "sin(z) + 4*He2(z)/(5*sqrt(2))")
    >>> found = theory.solve(s=[0.6, 0.8], psi1=2, psi2=1, alpha=1.5, lam=0.1)
    >>> found["outliers"].tolist(), bool(found["test_error"][1] < found["test_error"][0])
    ([1.0, 2.0], True)
    """
    made = small_step(sigma, g)
    return _intermediate(made.sigma, made.g)


_intermediate = lru_cache(IntermediateStep)  # one object for one pair, so that its constants are computed once
