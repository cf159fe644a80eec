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
from typing import Any, ClassVar

import numpy as np
from sympy import Eq, Piecewise, Symbol, sqrt, symbols

from hermitex.symbolic.activations import Activation
from hermitex.symbolic.gaussian import E
from hermitex.symbolic.precise import evaluate
from hermitex.symbolic.series.coefficients import coefficient
from hermitex.symbols import Delta, alpha, lamda, z
from hermitex.systems.system import System
from hermitex.theories.random_features import random_features
from hermitex.theories.theory import Theory

# linear = c_1^2 and second = E_2 of the label that the features see, share = g^2
t, linear, second, share = symbols("t linear second share", nonnegative=True)
psi1, psi2, theta = (Symbol(n, positive=True) for n in ("psi1", "psi2", "theta"))


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


class RidgeAfterStep(Theory):
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
        return {"c_1": coefficient_value(self.g, 1), "g_squared": float(evaluate(E(self.g(z)**2, z), digits=17)),
                "fitted": coefficient_value(self.g, 0)**2 if constant else 0.0}

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
class SmallStepRidge(RidgeAfterStep):
    """The test error of ridge on the features after one step of size O(1): `.solve(psi1=, psi2=, alpha=, lam=, eta=, Delta=0)`."""

    sigma: Activation
    g: Activation

    name: ClassVar[str] = "small-step-ridge"
    step: ClassVar[str] = "eta"
    sources: ClassVar[tuple[str, ...]] = ("ba2022",)

    def complete(self, numbers: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The numbers, with theta = eta |mu_1| sqrt(c_1^2 + E y^2/psi1)."""
        done = super().complete(numbers)
        return {**done, "theta": done["eta"]*abs(coefficient_value(self.sigma, 1))*done["size"]}


@lru_cache(maxsize=256)
def coefficient_value(f: Activation, k: int) -> float:
    """E[f He_k] as a number, computed once for all points of a curve."""
    return float(evaluate(coefficient(f, k), digits=17))
