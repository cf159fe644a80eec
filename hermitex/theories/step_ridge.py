r"""eps = (E_2 - S + k dS/dz)/(1 - df_2) - Delta,   S = c_1^2 [1 - z m (1 - g^2 + g^2/(1 + theta^2 z m mt))]: ridge after one step.

The features are sigma(W_1^T x)/sqrt(N) with W_1 = W_0 + theta v u^T, g = <v, beta>: an untrained layer and a spike. m and mt
are the traces of the resolvents of W_0 W_0^T and W_0^T W_0, z = (mu_star^2 + t)/mu_1^2, k = t/mu_1^2, and the readout minimises
1/2 sum (y - w.phi)^2 + lam/2 |w|^2 on n = alpha d fresh samples; psi1 d samples made the step, N = psi2 d. Two sizes of the step:
eta = O(1), where theta is finite [ba2022], and eta = d^s, 1/2 < s < 1, where theta is infinite and the visible powers of the
spike's projection kappa are fitted exactly [moniri2024]. Derived at the level of Gaussian equivalence, checked by simulation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil, factorial
from typing import Any, ClassVar

import numpy as np
from sympy import Eq, Piecewise, sqrt, symbols

from hermitex.errors import BadInput
from hermitex.hints import Formula
from hermitex.solvers.solution import Solution
from hermitex.symbolic.activations import Activation
from hermitex.symbolic.gaussian import E
from hermitex.symbolic.precise import evaluate
from hermitex.symbolic.series.coefficients import coefficient
from hermitex.symbols import Delta, alpha, lamda, z
from hermitex.systems.system import System
from hermitex.theories.random_features import random_features
from hermitex.theories.small_step import psi2, small_step, theta
from hermitex.theories.theory import Theory

# linear = c_1^2 and second = E_2 of the label that the features see, share = g^2
t, linear, second, share = symbols("t linear second share", nonnegative=True)
_ZERO = 1e-13  # a coefficient that small, of functions of size 1, is one whose vanishing was not proved
_MOST = 20  # outliers: E z^20 sigma has still its digits


@lru_cache(maxsize=32)
def ridge_on_features(sigma: Activation) -> System:
    """The error of ridge on the features of a spiked layer, as formulas of one unknown t."""
    mu_0, mu_1, mu_star2, x, k, b, m, mt, dm, dmt, R, dR, below, S, dS, df2, noisy = symbols(
        "mu_0 mu_1 mu_star2 x k b m mt dm dmt R dR below S dS df2 noisy", real=True)
    root = sqrt(b**2 + 4*x)
    return System({t: Eq(psi2*lamda/t + psi2*(1 - k*mt), alpha)}, where={
        mu_0: E(sigma(z), z),
        mu_1: E(z*sigma(z), z),
        mu_star2: E(sigma(z)**2, z) - mu_0**2 - mu_1**2,
        x: (mu_star2 + t)/mu_1**2,
        k: t/mu_1**2,
        b: x + psi2 - 1,
        m: Piecewise((2/(b + root), b > 0), ((root - b)/(2*x), True)),   # 1/m = x + psi2/(1 + m)
        mt: 1/(x*(1 + m)),
        dm: -1/(1/m**2 - psi2/(1 + m)**2),
        dmt: -mt*(1/x + dm/(1 + m)),
        R: x*m*mt,
        dR: m*mt + x*(dm*mt + m*dmt),
        below: 1 - share + share/(1 + theta**2*R),
        S: linear*(1 - x*m*below),
        dS: -linear*((m + x*dm)*below - x*m*share*theta**2*dR/(1 + theta**2*R)**2),
        df2: psi2/alpha*(1 - 2*k*mt - k**2*dmt),
        noisy: (second - S + k*dS)/(1 - df2),
    }, observables={"test_error": noisy - Delta, "train_error": noisy*(psi2*lamda/(alpha*t))**2/2, "test_error_noisy": noisy},
        positive=[t], parameters=[alpha, lamda, psi2, Delta, linear, second, share, theta], source="ba2022",
        name=f"ridge on the features of a spiked layer, {sigma.name}")


class _RidgeAfterStep(Theory):
    """What both sizes of the step share: the functions, the system, the label's moments."""

    sigma: Activation
    g: Activation
    errors = ("test_error", "train_error", "test_error_noisy")
    order_parameters: tuple[str, ...] = ("t",)

    @property
    def system(self) -> System:
        """One equation for t, and the errors as formulas of it."""
        return ridge_on_features(self.sigma)

    @cached_property
    def moments(self) -> dict[str, float]:
        """c_1, E g^2, and what a constant among the features takes from E g^2."""
        constant = random_features(self.sigma, self.g).intercept
        return {"c_1": _float(coefficient(self.g, 1)), "g_squared": _float(E(self.g(z)**2, z)),
                "fitted": _float(coefficient(self.g, 0))**2 if constant else 0.0}

    def letters(self) -> dict[str, Any]:
        """psi1 = (samples of the step)/d, psi2 = N/d, alpha = n/d, lam, the step's size; Delta=0."""
        return {**dict.fromkeys(("alpha", "lam", "psi1", "psi2", self.step), self.REQUIRED), "Delta": 0.0}

    step: ClassVar[str] = ""

    def complete(self, numbers: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The numbers checked, with the label's second moment and the overlap g^2 = c_1^2/(c_1^2 + E y^2/psi1)."""
        done = self.checked(numbers, alpha="> 0", lam="> 0", psi1="> 0, inf", psi2="> 0", Delta=">= 0", **{self.step: ">= 0"})
        k = self.moments
        label = k["g_squared"] + done["Delta"]
        size = np.asarray(k["c_1"]**2 + label/done["psi1"])
        done["share"] = np.divide(k["c_1"]**2, size, out=np.zeros_like(size), where=size > 0)
        return {**done, "size": np.sqrt(size), "linear": np.asarray(k["c_1"]**2), "second": label - k["fitted"]}

    def described(self, fixed: Mapping[str, float]) -> dict[str, Any]:
        """Functions and the letters that stayed fixed."""
        return {"sigma": self.sigma.name, "target": self.g.name, **{n: v for n, v in fixed.items() if n in self.letters()}}


@dataclass(frozen=True, repr=False)
class SmallStepRidge(_RidgeAfterStep):
    """The test error of ridge on the features after one step of size O(1): `.solve(psi1=, psi2=, alpha=, lam=, eta=, Delta=0)`."""

    sigma: Activation
    g: Activation

    name: ClassVar[str] = "small-step-ridge"
    step: ClassVar[str] = "eta"
    sources: ClassVar[tuple[str, ...]] = ("ba2022",)

    def complete(self, numbers: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The numbers, with theta = eta |mu_1| sqrt(c_1^2 + E y^2/psi1)."""
        done = super().complete(numbers)
        return {**done, "theta": done["eta"]*abs(_float(coefficient(self.sigma, 1)))*done["size"]}


@dataclass(frozen=True, repr=False)
class IntermediateStep(_RidgeAfterStep):
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
        return tuple(k for k in range(last + 1) if abs(_float(coefficient(self.sigma, k))) > _ZERO)

    def fitted(self, powers: tuple[int, ...], overlap: float) -> float:
        """|P h|^2 of h(kappa) = E[g|kappa] = sum_k hatc_k g^k h_k on the span of kappa^k, hatc_k = c_k/sqrt(k!)."""
        orders = range(max(powers, default=0) + 1)
        h = np.array([_float(coefficient(self.g, j))/np.sqrt(factorial(j))*overlap**(j/2) for j in orders])
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


def _float(e: Any) -> float:
    return float(evaluate(e, digits=17))


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


@lru_cache(maxsize=32)
def _intermediate(sigma: Activation, g: Activation) -> IntermediateStep:
    """One object for one pair, so that its constants are computed once."""
    return IntermediateStep(sigma, g)
