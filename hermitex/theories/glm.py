r"""Phi = (q Vhat - V qhat)/2 - m mhat + (rho mhat^2 + qhat)/(2 (lam + Vhat)) - alpha E min_f [(f - omega)^2/(2V) + l(y, f)].

A ridge-penalised generalised linear model on isotropic Gaussian data: theta_hat = argmin sum l(y, <theta, x>/sqrt(d)) +
lam/2 |theta|^2, q = |theta_hat|^2/d; its saddle-point equations are the stationarity conditions of Phi [loureiro2021].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any, ClassVar

import numpy as np
from sympy import Expr, sqrt

from hermitex.errors import BadInput
from hermitex.hints import Formula
from hermitex.solvers.solution import Solution
from hermitex.symbolic.gaussian import E
from hermitex.symbolic.moreau import Moreau
from hermitex.symbols import Delta, V, Vhat, alpha, f, lamda, m, mhat, q, qhat, rho, y, z, z1, z2, z3
from hermitex.systems.free_energy import free_energy
from hermitex.systems.solve import shape_solution
from hermitex.systems.system import System
from hermitex.theories.convex import flattened, solved
from hermitex.theories.losses import classes
from hermitex.theories.losses.pointwise import HALF_SQUARE, Pointwise, pointwise
from hermitex.theories.theory import Theory, numbers_latex

LABELS = ("linear", "sign", "logit", "probit", "mixture")


def _energy(loss: Pointwise) -> Expr:
    """E min; a loss of the residual depends on its fields only through y - omega ~ N(0, rho + Delta + q - 2 m), one normal."""
    if loss.of_residual is not None:
        return E(Moreau(loss.of_residual, f, sqrt(rho + Delta + q - 2*m)*z1, V), z1)
    teacher = m/sqrt(q)*z1 + sqrt(rho - m**2/q)*z2 + sqrt(Delta)*z3
    return E(Moreau(loss.expr.subs(y, teacher), f, sqrt(q)*z1, V), z1, z2, z3)


def _energy_of_signs(word: str, loss: Pointwise) -> Expr:
    """E min of labels of +-1 that the field decides: their sign, or both labels by their probabilities."""
    field = m/sqrt(q)*z1 + sqrt(rho - m**2/q)*z2 + sqrt(Delta)*z3
    mean = classes.MEANS[word].subs(z, field)
    if word == "sign":
        return E(Moreau(loss.expr.subs(y, mean), f, sqrt(q)*z1, V), z1, z2, z3)
    up, down = (Moreau(loss.expr.subs(y, label), f, sqrt(q)*z1, V) for label in (1, -1))
    return E((1 + mean)/2*up + (1 - mean)/2*down, z1, z2, z3)


def _energy_of_clusters(loss: Pointwise) -> Expr:
    """E min over two clusters, whose samples have outputs of mean +-m and variance Delta q, and move by Delta V."""
    up, down = (E(Moreau(loss.expr.subs(y, label), f, label*m + sqrt(Delta*q)*z1, Delta*V), z1) for label in (1, -1))
    return classes.fraction*up + (1 - classes.fraction)*down


@dataclass(frozen=True, repr=False)
class Glm(Theory):
    """A generalised linear model: its loss, and how labels are made of the teacher's field nu ~ N(0, rho)."""

    loss: Pointwise
    labels: str = "linear"
    intercept: bool = False

    name: ClassVar[str] = "glm"
    elsewhere: ClassVar[Mapping[str, str]] = {"fraction": "labels='mixture' (--labels mixture)",
                                               "bias": "intercept=True (--intercept)"}

    @property
    def sources(self) -> tuple[str, ...]:  # type: ignore[override]
        """The papers whose results are used."""
        return ("mignacco2020",) if self.labels == "mixture" else ("loureiro2021",)

    @cached_property
    def system(self) -> System:
        """The saddle-point equations: for real labels those of stationarity of the free energy."""
        # The square loss of this theory is (y - f)^2/2, as papers on regression have it.
        loss = HALF_SQUARE if self.loss.name == "square" else self.loss
        if self.labels == "mixture":
            return classes.of_mixture(loss, intercept=self.intercept)
        if self.binary:
            return classes.of_field(loss, self.labels, intercept=self.intercept)
        return self.stationary

    @cached_property
    def stationary(self) -> System:
        """The stationarity conditions of the free energy, without an intercept; those of `system`, which for labels of +-1 has them
        by averages that are cheaper.
        """
        loss = HALF_SQUARE if self.loss.name == "square" else self.loss
        energy = {"linear": _energy, "mixture": _energy_of_clusters}.get(self.labels, partial(_energy_of_signs, self.labels))(loss)
        phi = (q*Vhat - V*qhat)/2 - m*mhat + (rho*mhat**2 + qhat)/(lamda + Vhat)/2 - alpha*energy
        parameters, observables = [alpha, lamda, Delta, rho], {}
        if self.labels == "mixture":
            parameters.append(classes.fraction)
        if not self.binary:
            # E l(y, f*) = E min - E (f* - omega)^2/(2V)
            train = energy - V*qhat/(2*alpha)
            observables = {"test_error": rho + q - 2*m, "train_error": train, "train_objective": train + lamda*q/(2*alpha)}
        return free_energy(phi, {V: Vhat, q: qhat, m: mhat}, parameters=parameters, source=self.sources[0], observables=observables,
                           name=f"glm({self.loss}, {self.labels})")

    @property
    def binary(self) -> bool:
        """True if the labels are +-1."""
        return self.labels != "linear"

    @property
    def derivation(self) -> Any:
        """How the equations follow from the free energy; None with an intercept, in which it is stationary, too."""
        return None if self.intercept else self.stationary.derivation

    @property
    def order_parameters(self) -> tuple[str, ...]:
        """V, q, m and their conjugates; b where there is an intercept."""
        return ("V", "q", "m", "Vhat", "qhat", "mhat", *(("b",) if self.intercept else ()))

    # E(y - f)^2 against the clean label, or the probability of misclassifying a noisy one; the mean training loss
    errors = ("test_error", "train_error", "train_objective")

    def letters(self) -> dict[str, Any]:
        """alpha = n/d, lam; Delta=0, rho=1; bias=0 of the field, with an intercept; mixture: Delta=1, fraction=1/2 of y = 1."""
        needed = {"alpha": self.REQUIRED, "lam": self.REQUIRED}
        if self.labels == "mixture":
            return {**needed, "Delta": 1.0, "rho": 1.0, "fraction": 0.5}
        return {**needed, "Delta": 0.0, "rho": 1.0, **({"bias": 0.0} if self.intercept else {})}

    def complete(self, numbers: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The numbers, checked."""
        ranges = {name: "> 0" for name in self.letters()} | ({} if self.labels == "mixture" else {"Delta": ">= 0", "bias": ""})
        found = self.checked(numbers, **{name: ranges[name] for name in self.letters()})
        if np.any(np.asarray(found.get("fraction", 0.5)) >= 1):
            raise BadInput("glm: fraction is the share of labels 1, between 0 and 1")
        return found

    def run(self, numbers: Mapping[str, np.ndarray], *, start: Mapping[str, Any] | None = None, tolerance: float = 1e-11,
            **options: Any) -> Solution:
        """Real labels: the system; labels of +-1: all points in one batch, a small lam come to from lam = 1."""
        if not self.binary or options.get("method", "newton") != "newton":
            return super().run(numbers, start=start, tolerance=tolerance, **options)
        shape, flat, first = flattened(self.name, self.system, numbers, start)
        found = solved(self.system, flat, first, tolerance)
        drawn = 1e-10  # where averages over a label that is drawn are held to no more
        if self.labels in ("logit", "probit") and tolerance < drawn and not np.all(found.converged):
            found = solved(self.system, flat, first, drawn)
        found = shape_solution(found, shape)
        return found.require() if options.get("raise_on_failure") else found

    def described(self, fixed: Any) -> dict[str, Any]:
        """Loss and labels, then the numbers that stayed fixed."""
        return {"loss": str(self.loss), "labels": self.labels, **({"intercept": True} if self.intercept else {}), **fixed}

    def titled(self, numbers: Mapping[str, Any]) -> str:
        """Loss, labels and the numbers, as far as they are fixed."""
        return ", ".join((str(self.loss), self.labels, *(("intercept",) if self.intercept else ()), *numbers_latex(
            numbers, alpha=r"\alpha", lam=r"\lambda", Delta=r"\Delta",
            **({"fraction": r"\mathrm{fraction}"} if "fraction" in numbers else {}))))


def glm(loss: Formula = "square", labels: str | None = None, *, link: str | None = None, intercept: bool = False) -> Glm:
    """Ridge-penalised empirical risk minimisation on Gaussian data, n = alpha d -> oo.

    theta_hat = argmin sum l(y, <theta, x>/sqrt(d)) + lam/2 |theta|^2 with x ~ N(0, I_d); q = |theta_hat|^2/d,
    m = <theta_star, theta_hat>/d, rho = |theta_star|^2/d.

    Parameters
    ----------
    loss : "square" ((y - f)^2/2), "huber:1", "logistic", "hinge", or a convex expression in y and f
    labels or link : "linear" (the default), y = nu + sqrt(Delta) z with nu = <theta_star, x>/sqrt(d); labels of +-1:
        "sign", that of u = nu + bias + sqrt(Delta) z; "logit", "probit": P(y = 1) = 1/(1 + exp(-u)) or Phi(u); "mixture":
        x = y v/sqrt(d) + sqrt(Delta) z, |v|^2 = rho d, a share `fraction` of y = 1 [mignacco2020] (m is <v, theta_hat>/d then)
    intercept : f = <theta, x>/sqrt(d) + b, b without penalty; labels of +-1 only, and a bias of the teacher's field, too

    Returns
    -------
    Theory : ``.system``, ``.solve(alpha=, lam=, Delta=0, rho=1, bias=0)`` (mixture: Delta=1, rho=1, fraction=1/2) -> test_error
    (of classification, of noisy labels, for labels of +-1), train_error (the mean training loss, so of half squares), V, q, m, b;
    ``.curve(alpha=[...], lam=...)``; without an intercept ``.derivation``, from the free energy.

    Raises
    ------
    BadInput : an unknown kind of labels, or a loss that asks for labels of +-1 and gets real ones.

    Guarantee
    ---------
    `.solve` and `.curve` return a solution of the equations of the sources, with its error. This is the limit of the sources;
    accuracy at finite dimension is not promised. See docs/promise.md.

    References: loureiro2021; mignacco2020 (mixtures).

    Examples
    --------
    >>> ridge = glm("square")
    >>> ridge.system.equations[V], round(ridge.solve(alpha=2, lam=0.1, Delta=0.25)["test_error"], 6)
    (1/(Vhat + lamda), 0.192665)
    """
    found, labels = pointwise(loss), classes.word_of_link("glm", labels, link)
    if labels not in LABELS:
        raise BadInput(f"glm: labels are {', '.join(LABELS[:-1])} or {LABELS[-1]}, not {labels!r}")
    if found.margin and labels == "linear":
        raise BadInput(f"glm: the loss {found} needs labels of +-1; use labels='sign'")
    if not isinstance(intercept, bool):
        raise BadInput(f"glm: intercept is True or False, not {intercept!r}")
    if intercept and labels == "linear":
        raise BadInput("glm: an intercept is solved for labels of +-1; centre real labels")
    return _made(found, labels, intercept)


_made = lru_cache(Glm)  # one object for one structure, so that its system is derived and compiled once
