r"""Phi = (q Vhat - V qhat)/2 - m mhat + (rho mhat^2 + qhat)/(2 (lam + Vhat)) - alpha E min_f [(f - omega)^2/(2V) + l(y, f)].

A ridge-penalised generalised linear model on isotropic Gaussian data: theta_hat = argmin sum l(y, <theta, x>/sqrt(d)) +
lam/2 |theta|^2, q = |theta_hat|^2/d; its saddle-point equations are the stationarity conditions of Phi [loureiro2021].
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from sympy import Expr, acos, pi, sign, sqrt

from hermitex.errors import BadInput
from hermitex.symbolic.gaussian import E
from hermitex.symbolic.moreau import Moreau
from hermitex.symbols import Delta, V, Vhat, alpha, f, lamda, m, mhat, q, qhat, rho, y, z1, z2, z3
from hermitex.systems.free_energy import free_energy
from hermitex.systems.system import System
from hermitex.theories.losses.pointwise import HALF_SQUARE, Pointwise, pointwise
from hermitex.theories.theory import Theory

LABELS = ("linear", "sign")


def _potential(loss: Pointwise, labels: str) -> Expr:
    """Phi; a loss of the residual sees its fields only through y - omega ~ N(0, rho + Delta + q - 2 m), one normal."""
    teacher = m/sqrt(q)*z1 + sqrt(rho - m**2/q)*z2 + sqrt(Delta)*z3
    if labels == "linear" and loss.of_residual is not None:
        energy = E(Moreau(loss.of_residual, f, sqrt(rho + Delta + q - 2*m)*z1, V), z1)
    else:
        label = teacher if labels == "linear" else sign(teacher)
        energy = E(Moreau(loss.expr.subs(y, label), f, sqrt(q)*z1, V), z1, z2, z3)
    return (q*Vhat - V*qhat)/2 - m*mhat + (rho*mhat**2 + qhat)/(lamda + Vhat)/2 - alpha*energy


@dataclass(frozen=True, repr=False)
class Glm(Theory):
    """A generalised linear model: its loss, and how labels are made of the teacher's field nu ~ N(0, rho)."""

    loss: Pointwise
    labels: str = "linear"

    name: ClassVar[str] = "glm"
    sources: ClassVar[tuple[str, ...]] = ("loureiro2021",)

    @cached_property
    def system(self) -> System:
        """The six saddle-point equations, from stationarity of the free energy."""
        # The square loss of this theory is (y - f)^2/2, as papers on regression have it.
        loss = HALF_SQUARE if self.loss.name == "square" else self.loss
        error = rho + q - 2*m if self.labels == "linear" else acos(m/sqrt((rho + Delta)*q))/pi
        return free_energy(_potential(loss, self.labels), {V: Vhat, q: qhat, m: mhat}, observables={"test_error": error},
                           parameters=[alpha, lamda, Delta, rho], source="loureiro2021", name=f"glm({self.loss}, {self.labels})")

    @property
    def derivation(self) -> Any:
        """How the equations follow from the free energy."""
        return self.system.derivation

    @property
    def order_parameters(self) -> tuple[str, ...]:
        """V, q, m and their conjugates."""
        return ("V", "q", "m", "Vhat", "qhat", "mhat")

    @property
    def errors(self) -> tuple[str, ...]:
        """The test error: E(y - f)^2 against the clean label, or the probability of misclassifying a noisy one."""
        return ("test_error",)

    def letters(self) -> dict[str, Any]:
        """alpha = n/d and lam; Delta=0 and rho=1."""
        return {"alpha": self.REQUIRED, "lam": self.REQUIRED, "Delta": 0.0, "rho": 1.0}

    def complete(self, numbers: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The numbers, checked."""
        for name in self.letters():
            if name not in numbers:
                raise BadInput(f"glm: {name} has no value; add {name}=...")
            v = numbers[name]
            if not np.all(np.isfinite(v)) or np.any(v < 0) or (name != "Delta" and np.any(v == 0)):
                raise BadInput(f"glm: {name} must be finite and {'0 or more' if name == 'Delta' else 'positive'}")
        return numbers

    def described(self, fixed: Any) -> dict[str, Any]:
        """Loss and labels, then the numbers that stayed fixed."""
        return {"loss": str(self.loss), "labels": self.labels, **fixed}


def glm(loss: Any = "square", labels: str = "linear") -> Glm:
    """Ridge-penalised empirical risk minimisation on Gaussian data, n = alpha d -> oo.

    theta_hat = argmin sum l(y, <theta, x>/sqrt(d)) + lam/2 |theta|^2 with x ~ N(0, I_d); q = |theta_hat|^2/d,
    m = <theta_star, theta_hat>/d, rho = |theta_star|^2/d.

    Parameters
    ----------
    loss : "square" ((y - f)^2/2), "huber:1", "logistic", "hinge", or a convex expression in y and f
    labels : "linear", y = <theta_star, x>/sqrt(d) + sqrt(Delta) z; "sign", the sign of that

    Returns
    -------
    Theory : ``.system``, ``.solve(alpha=, lam=, Delta=0, rho=1)``, ``.curve(alpha=[...], lam=...)``, ``.derivation``.

    Raises
    ------
    BadInput : an unknown kind of labels, or a loss that asks for labels of +-1 and gets real ones.

    References: loureiro2021.

    Examples
    --------
    >>> ridge = glm("square")
    >>> ridge.system.equations[V], round(ridge.solve(alpha=2, lam=0.1, Delta=0.25)["test_error"], 6)
    (1/(Vhat + lamda), 0.192665)
    """
    found = pointwise(loss)
    if labels not in LABELS:
        raise BadInput(f"glm: labels are {' or '.join(LABELS)}, not {labels!r}")
    if found.margin and labels == "linear":
        raise BadInput(f"glm: the loss {found} asks for labels of +-1; use labels='sign'")
    return _made(found, labels)


@lru_cache(maxsize=32)
def _made(loss: Pointwise, labels: str) -> Glm:
    """One object for one structure, so that its system is derived and compiled once."""
    return Glm(loss, labels)
