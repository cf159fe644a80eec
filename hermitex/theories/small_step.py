r"""theta = eta mu_1 sqrt(c_1^2 + E y^2/psi1): the outlier of the first layer after one gradient step of size O(1).

W_0 (d x N) has entries N(0, 1/d), f = N^(-1/2) a^T sigma(W^T x), a ~ N(0, 1/N), W_1 = W_0 + eta sqrt(N) G_0 with the gradient G_0
on n fresh samples; psi1 = n/d, psi2 = N/d. The step is a matrix of rank one, theta u v^T, up to what vanishes in norm; so singular
values and vectors of W_1 are those of a Gaussian matrix with a spike [ba2022]. The bulk stays that of W_0. Status: theorem.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from sympy import Abs, Max, Piecewise, Rational, sqrt

from hermitex.errors import BadInput
from hermitex.hints import Axes, Formula
from hermitex.show.plots import curves, mark_critical
from hermitex.solvers.solution import Solution
from hermitex.symbolic.activations import Activation, activation
from hermitex.symbolic.gaussian import E
from hermitex.symbolic.series.coefficients import coefficient
from hermitex.symbols import Delta, eta, z
from hermitex.systems.system import System
from hermitex.theories.spike import require_numbers, require_square_integrable
from hermitex.theories.step_ridge import SmallStepRidge, psi1, psi2, theta
from hermitex.theories.theory import Theory
from hermitex.theories.weight_spectrum import WeightSpectrum, weight_spectrum


@dataclass(frozen=True, repr=False)
class SmallStep(Theory):
    """The spectrum of the weights after one step: `.solve(psi1=, psi2=, eta=, Delta=0)`, `.curve(eta=[...])`, `.spectrum(...)`."""

    sigma: Activation
    g: Activation

    name: ClassVar[str] = "small-step"
    axis: ClassVar[str] = "eta"
    sources: ClassVar[tuple[str, ...]] = ("ba2022",)
    status: ClassVar[str] = "theorem (ba2022); the alignments by the formulas of spiked matrices"

    @cached_property
    def system(self) -> System:
        """theta, and what follows from it, as formulas of psi1, psi2, eta and Delta."""
        # An activation that falls turns the sign of its neurons, not their singular values.
        mu_1, c_1 = coefficient(self.sigma, 1), coefficient(self.g, 1)
        second = E(self.g(z)**2, z) + Delta  # not centred: labels as they come
        size = c_1**2 + second/psi1
        seen = c_1**2/size
        square = theta**2
        above = square**2 > psi2
        return System({theta: eta*Abs(mu_1)*sqrt(size)}, observables={
            "singular_value": Piecewise((sqrt((1 + square)*(psi2 + square))/theta, above), (1 + sqrt(psi2), True)),
            "edge": 1 + sqrt(psi2),
            "alignment_target": seen*Max(0, 1 - (psi2 + square)/(square*(1 + square))),
            "alignment_readout": Max(0, 1 - psi2*(1 + square)/(square*(psi2 + square))),
            "eta_c": psi2**Rational(1, 4)/(Abs(mu_1)*sqrt(size)),
        }, parameters=[psi1, psi2, eta, Delta], source="ba2022", name=f"small_step({self.sigma.name}, {self.g.name})")

    # theta, the outlier, the edge of the bulk, the two squared overlaps, the critical step
    order_parameters = ("theta", "singular_value", "edge", "alignment_target", "alignment_readout", "eta_c")

    errors = ()  # none: the theory knows the weights only

    def letters(self) -> dict[str, Any]:
        """psi1 = n/d, psi2 = N/d, eta the step; Delta the noise of the labels (default 0)."""
        return {"psi1": self.REQUIRED, "psi2": self.REQUIRED, "eta": self.REQUIRED, "Delta": 0.0}

    def complete(self, numbers: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The numbers, checked."""
        return self.checked(numbers, psi1="> 0", psi2="> 0", eta="> 0", Delta=">= 0")

    def run(self, numbers: Mapping[str, np.ndarray], **options: Any) -> Solution:
        """The system's answer, its status in the notes."""
        found = super().run(numbers, **options)
        return found.extended({}, notes=(*found.notes, f"theta and what follows: {self.status}"))

    def described(self, fixed: Mapping[str, float]) -> dict[str, Any]:
        """Functions and numbers, and the status."""
        return {"sigma": self.sigma.name, "target": self.g.name, **fixed, "status": self.status}

    @cached_property
    def ridge(self) -> Theory:
        """The theory of ridge on the features after the step: `.solve`, `.curve(alpha=[...], ...)`."""
        return SmallStepRidge(self.sigma, self.g)

    def risk(self, **numbers: Any) -> Solution:
        """Ridge on the features after the step, 1/2 sum (y - w.phi)^2 + lam/2 |w|^2 on alpha d fresh samples.

        Parameters
        ----------
        psi1, psi2, eta, Delta=0 : as in `solve`;  alpha : fresh samples over d;  lam : ridge, positive

        Returns
        -------
        Solution : test_error (against the clean target), test_error_noisy, train_error, of random features at eta = 0; arrays
        broadcast. A mean of the target is fitted where E sigma != 0.

        Guarantee: derived at the level of Gaussian equivalence; this is the limit, not a promise at finite d. See docs/promise.md.

        >>> small_step("tanh", "sin").risk(psi1=2, psi2=1, alpha=1.5, lam=0.1, eta=[0, 2], Delta=0.1)["test_error"].round(7)
        array([0.308915, 0.267745])
        """
        return self.ridge.solve(**numbers)

    def spectrum(self, *, simulated: Any = None, points: int = 400, **numbers: Any) -> WeightSpectrum:
        """The singular values of W_1: the bulk's density, the outlier, and the singular values of simulated networks.

        Parameters
        ----------
        psi1, psi2, eta, Delta : one number each
        simulated : singular values to draw as a histogram, from
            `hermitex.experiments.small_step_experiment.singular_values`

        Examples
        --------
        >>> small_step("tanh", "relu").spectrum(psi1=4, psi2=0.8, eta=4)
        WeightSpectrum(psi2=0.8: bulk 0.105573 to 1.89443, outlier 2.08919)
        """
        for name, v in (given := self.complete(self.given(numbers))).items():
            if v.ndim:
                raise BadInput(f"small-step: a spectrum is that of one point; {name} has {v.size} values")
        found = self.run(given)
        outlier = float(found["singular_value"]) if float(given["eta"]) > float(found["eta_c"]) else None
        return weight_spectrum(float(given["psi2"]), outlier, points, simulated)

    def plot(self, ax: Axes | None = None, *, psi1: float = 4.0, psi2: float = 1.0, Delta: float = 0.0, points: int = 200) -> Axes:
        """The outlier and the two alignments along the step, up to three critical steps."""
        at_one = self.solve(psi1=psi1, psi2=psi2, eta=1.0, Delta=Delta)
        eta_c = float(at_one["eta_c"])
        etas = eta_c*np.linspace(0.01, 3, points)
        found = self.solve(psi1=psi1, psi2=psi2, eta=etas, Delta=Delta)
        lines = {"outlier/edge - 1": found["singular_value"]/found["edge"] - 1,
                 r"$\langle u_1, \beta_\star\rangle^2$": found["alignment_target"],
                 r"$\langle v_1, a\rangle^2$": found["alignment_readout"]}
        ax = curves(etas.tolist(), {n: v.tolist() for n, v in lines.items()}, ax, xlabel=r"$\eta$",
                    ylabel="squared overlap, outlier/edge - 1")
        mark_critical(ax, eta_c, r"$\eta_c$")
        ax.set_ylim(bottom=0)
        return ax


def small_step(sigma: Formula, g: Formula) -> SmallStep:
    r"""One gradient step of size O(1) on the first layer: outlier, alignments, critical step.

    theta = eta |mu_1| sqrt(c_1^2 + E y^2/psi1), mu_1 = E[z sigma], c_1 = E[z g], E y^2 = E g^2 + Delta. Above theta = psi2^(1/4)
    s_1 = sqrt((1 + theta^2)(psi2 + theta^2))/theta leaves the bulk, whose edge is 1 + sqrt(psi2) [ba2022]. Theorem.

    Parameters
    ----------
    sigma : activation, E sigma = 0 or not; g : target of one direction

    Returns
    -------
    SmallStep : `.solve(psi1=n/d, psi2=N/d, eta=, Delta=0)` -> theta, singular_value, edge, alignment_target <u_1, beta>^2,
    alignment_readout <v_1, a>^2/|a|^2, eta_c; arrays broadcast; `.spectrum(...)`, `.curve(eta=[...])`, `.plot()`.

    Raises
    ------
    BadInput : not square integrable, free parameters, an activation with E[z sigma] = 0, a number out of range.

    Ridge regression on the features sigma(W_1^T x)/sqrt(N) has the error `.risk(...)`; for given weights W_1 it is a case of
    `covariate`: Omega = mu_1^2 W_1^T W_1 + mu_star^2, Phi = mu_1 W_1, Psi = 1, theta = sqrt(d) beta_star (an odd sigma: no mean).

    Guarantee
    ---------
    The formulas are those of the sources. This is the limit of the sources; accuracy at finite dimension is not promised. See
    docs/promise.md.

    References: ba2022.

    Examples
    --------
    >>> found = small_step("tanh", "relu").solve(psi1=4, psi2=0.8, eta=4)
    >>> round(found["singular_value"], 10), round(found["alignment_target"], 10)
    (2.0891866193, 0.3827327653)
    """
    made = activation(sigma), activation(g)
    for role, f in zip(("activation", "target"), made, strict=True):
        require_numbers("small-step", role, f)
        require_square_integrable("small-step", role, f)
    if coefficient(made[0], 1) == 0:
        raise BadInput(f"small-step: the activation {made[0].name} has no linear part, E[z sigma] = 0, which this theory needs")
    return _made(*made)


def small_step_ridge(sigma: Formula, g: Formula) -> Theory:
    """Ridge on the features after one gradient step of size O(1): the theory behind `small_step(sigma, g).risk`.

    Parameters
    ----------
    sigma, g : as for `small_step`

    Returns
    -------
    Theory : `.solve(psi1=(samples of the step)/d, psi2=N/d, alpha=n/d, lam=, eta=, Delta=0)` -> test_error (against the clean
    target), test_error_noisy, train_error; `.curve(alpha=[...], ...)`.

    Raises
    ------
    BadInput : as `small_step`.

    Guarantee
    ---------
    `.solve` solves the equation of this limit, derived at the level of Gaussian equivalence; accuracy at finite dimension is not
    promised. See docs/promise.md.

    References: ba2022.

    Examples
    --------
    >>> round(small_step_ridge("tanh", "sin").solve(psi1=2, psi2=1, alpha=1.5, lam=0.1, eta=2, Delta=0.1)["test_error"], 7)
    0.267745
    """
    return small_step(sigma, g).ridge


_made = lru_cache(SmallStep)  # one object for one pair, so that its system is compiled once
