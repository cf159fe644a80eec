r"""dm/dt = (1 - m^2) sum_{k>=1} c_k s_k/(k-1)! m^(k-1) = (1 - m^2) E[sigma'(h) g'(h*)]: one-pass SGD of one neuron.

Student sigma(<w, x>) on the sphere |w| = 1, target g(<theta, x>), overlap m = <w, theta>, time t = gamma x (number of samples)
[benarous2021]. With a step gamma = step/d that is not small the norm of the gradients costs -m step/2 E[(dl/dh)^2]; the square
loss has the same flow, because its other term is odd in what h lacks of h*. With `repetition` each sample is seen twice:
online/repeated.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sympy import Add, Expr, factorial

from hermitex.errors import BadInput
from hermitex.exponents.labels.label_levels import polynomial
from hermitex.exponents.leap import leap
from hermitex.hints import Formula
from hermitex.show.display import latex
from hermitex.symbolic.activations import Activation, activation
from hermitex.symbolic.series.coefficients import coefficient
from hermitex.symbols import m, z
from hermitex.systems.flow import Flow
from hermitex.theories.directions import DirectedTarget, target_of
from hermitex.theories.online.escape_time import EscapeTimes, escape_times
from hermitex.theories.online.online_directions import SGDDirections
from hermitex.theories.online.overlap_averages import OverlapFlow
from hermitex.theories.online.overlap_drift import Drift, Leading, leading, slope
from hermitex.theories.online.repeated import Repeated, escape_times_repeated, repeated
from hermitex.theories.spike import require_numbers, require_square_integrable

LOSSES = ("correlation", "square")


@dataclass(frozen=True, repr=False)
class SGD(OverlapFlow):
    r"""The flow of one overlap; `.rate` and `.series(order)` are its formulas in m.

    Attributes
    ----------
    sigma, g : the student's and the target's functions
    loss : "correlation" or "square"

    Guarantee
    ---------
    `.solve` and `.curve` return a solution of the equations of the sources, with its error. This is the limit of the sources;
    accuracy at finite dimension is not promised. See docs/promise.md.

    >>> theory = sgd("He2", "He2")
    >>> theory.rate, theory.information_exponent
    (4*m*(1 - m**2), 2)
    """

    sigma: Activation
    g: Activation
    loss: str = "correlation"

    order_parameters = ("m",)

    @property
    def remark(self) -> str:
        """Why the overlap does not move, where it does not: "" else.

        >>> sgd("relu", "He3").remark
        'sgd: the activation has no He_3 part, E[sigma He_3] = 0, so dm/dt = 0: the overlap stays where it starts'
        """
        if self.rate != 0:
            return ""
        target = polynomial(self.g.expr, z)
        orders = [] if target is None else [k for k in range(1, target.degree() + 1) if coefficient(self.g, k) != 0]
        if len(orders) == 1:
            (k,) = orders
            why = f"the activation has no He_{k} part, E[sigma He_{k}] = 0"
        else:
            why = "the activation and the target have no Hermite order k >= 1 in common"
        return f"sgd: {why}, so dm/dt = 0: the overlap stays where it starts"

    # -- formulas ------------------------------------------------------------------------------------------------------
    @property
    def rate(self) -> Expr:
        """(1 - m^2) E[sigma'(h) g'(h*)] = (1 - m^2) d/dm E[sigma(h) g(h*)], exact where there is a closed form."""
        return (1 - m**2)*slope(self.sigma, self.g)

    def series(self, order: int = 8) -> Expr:
        """(1 - m^2) sum_{k=1}^{order} c_k s_k/(k-1)! m^(k-1), with exact coefficients where they are known.

        >>> sgd("He3", "He3").series(4)
        18*m**2*(1 - m**2)
        """
        terms = [coefficient(self.g, k)*coefficient(self.sigma, k)/factorial(k - 1)*m**(k - 1) for k in range(1, order + 1)]
        return (1 - m**2)*Add(*terms)

    @property
    def flow(self) -> Flow:
        """dm/dt = rate as a `Flow`, on -1 < m < 1: with events, a file of its own and whatever else a flow has.

        >>> round(float(sgd("He2", "He2").flow.solve(t=2, start={"m": 0.1})["m"]), 6)
        0.999994
        """
        return Flow({m: self.rate}, domain={m: (-1, 1)}, source="benarous2021", name=f"sgd {self.sigma.name} {self.g.name}")

    @property
    def leading(self) -> Leading:
        """The first order k with c_k s_k != 0, its value and its certificates; it decides the escape."""
        return leading(self.sigma, self.g)

    @cached_property
    def information_exponent(self) -> int | None:
        """That of the target alone: the least order any student can have."""
        return leap(self.g.expr, (z,)).first

    @property
    def step_exponent(self) -> float:
        """a in gamma ~ d^-a, the largest step that the noise allows: max(1, l/2) [benarous2021]."""
        order = self.leading.order
        return float("nan") if order is None else max(1.0, order/2)

    # -- numbers -------------------------------------------------------------------------------------------------------
    @cached_property
    def drift(self) -> Drift:
        """m -> dm/dt at arrays."""
        return Drift(self.sigma, self.g, self.loss)

    def _rate(self, step: float) -> Any:
        return lambda t, x, p: self.drift(np.clip(x, -1, 1), step)

    def repeated(self, repetition: float) -> Repeated:
        """The averages over a sample that is seen twice."""
        return repeated(self.sigma, self.g.expr, (z,), self.loss, float(repetition))

    def escape_time(self, dimension: Any, *, level: float = 0.5, step: Any = 0.0, repetition: float = 0.0) -> Any:
        """T(d), from m = d^(-1/2) to the overlap `level`: the integral of dm/(dm/dt); inf where the flow turns back.

        >>> theory = sgd("He2(z)/sqrt(2)", "He2(z)/sqrt(2)")
        >>> round(theory.escape_time(1e8) - theory.escape_time(1e4), 4)   # log(d)/4
        2.3026
        """
        if repetition:
            d = np.atleast_1d(np.asarray(dimension, dtype=float))
            times = escape_times_repeated(self.repeated(repetition), d, level, float(step))
            return float(times[0]) if np.ndim(dimension) == 0 else times
        times = self.escape(dimension, level=level, step=step).times
        return float(times[0]) if np.ndim(dimension) == 0 else times

    def escape(self, dimension: Any, *, level: float = 0.5, step: Any = 0.0) -> EscapeTimes:
        """T(d) along d, with the law of its growth: O(1), log(d)/(2 C) or d^(l/2 - 1) -> EscapeTimes."""
        d = np.atleast_1d(np.asarray(dimension, dtype=float))
        if not (0 < level < 1) or not np.all(d > 1/level**2):
            raise BadInput(f"sgd: the level must be between d^(-1/2) and 1, not {level:g} at d = {d.min():g}")
        return escape_times(self.drift, self.leading, d, level, float(step), label=f"{self.sigma.name}, {self.g.name}")

    def samples(self, dimension: Any, *, level: float = 0.5, step: float = 1.0) -> Any:
        """n = T/gamma at gamma = step d^(-max(1, l/2)): it grows like d, d log d or d^(l-1)."""
        return self.escape_time(dimension, level=level)*np.asarray(dimension, dtype=float)**self.step_exponent/step

    def described(self, fixed: Mapping[str, float]) -> dict[str, Any]:
        """Functions, loss and numbers, with the order of the drift."""
        return {"sigma": self.sigma.name, "target": self.g.name, "loss": self.loss, **fixed, "order": self.leading.order,
                "information_exponent": self.information_exponent}

    def latex(self) -> str:
        """dm/dt as a formula of m."""
        return rf"\dot m = {latex(self.rate)}"

    _html = OverlapFlow._with_formula

    def _summary(self) -> str:
        return f"{self.sigma.name}, {self.g.name}, loss={self.loss}"


def sgd(sigma: Formula, g: Formula, *, loss: str = "correlation", order: int | None = None) -> SGD | SGDDirections:
    r"""One-pass SGD of one neuron on the sphere: the flow of its overlaps with the directions of the target.

    dm/dt = (1 - m^2) sum_{k>=1} c_k s_k/(k-1)! m^(k-1),  c_k = E[g He_k], s_k = E[sigma He_k],  t = gamma n. In several
    directions dm_i/dt = d_i Phi - m_i sum_j m_j d_j Phi, Phi(m) = E[g(z) sigma(h)] = sum_a s_{|a|} c_a/a! m^a.

    Parameters
    ----------
    sigma : the student: a name, text or expression in z, or `Activation`; square integrable
    g : the target, in z, or in z1, z2, ... for several directions
    loss : "correlation" (-y sigma) or "square"; the flow is the same, the cost of a finite step is not
    order : several directions: the last |a| of the series (default: the degree if one of the two is a polynomial, else 7)

    Returns
    -------
    SGD : `.rate`, `.series(order)`, `.leading`, `.solve(t=(0, 20), dimension=d)` (t=20: at its end),
    `.curve(t=[...], dimension=d, step=0)`,
    `.escape_time(d)`, `.escape([d, ...])`, `.samples(d)`; `SGDDirections` for a target in several variables. Numbers: t,
    dimension (the start is then d^(-1/2)) or m0, step (gamma d; 0 is the flow of small steps), repetition (the first of two steps
    on each sample, times d; 0: one step). `.repeated(repetition)` says which step and how many samples that takes.

    Raises
    ------
    BadInput : sigma or g is not square integrable or holds free parameters; an unknown loss.

    Guarantee
    ---------
    `.solve` and `.curve` return a solution of the equations of the sources, with its error. This is the limit of the sources;
    accuracy at finite dimension is not promised. See docs/promise.md.

    References: benarous2021; abbe2023.

    Examples
    --------
    >>> sgd("erf", "sign").rate
    2*sqrt(6)*(1 - m**2)/(3*pi*sqrt(1 - 2*m**2/3))
    >>> sgd("tanh", "He3").leading.order
    3
    >>> float(sgd("He2", "He2").solve(t=(0, 2), dimension=100)["m"][-1].round(6))
    0.999994
    """
    if not isinstance(loss, str) or loss not in LOSSES:
        raise BadInput(f"sgd: loss is {' or '.join(LOSSES)}, not {loss!r}")
    student = _checked("activation", activation(sigma))
    target = target_of("sgd", g)
    if isinstance(target, DirectedTarget):
        if loss != "correlation":
            raise BadInput("sgd: in several directions the loss is the correlation loss")
        require_square_integrable("sgd", "target", target)
        return SGDDirections(student, target.expr, target.variables, order)
    return SGD(student, _checked("target", target), loss)


def _checked(role: str, f: Activation) -> Activation:
    require_numbers("sgd", role, f)
    require_square_integrable("sgd", role, f)
    return f
