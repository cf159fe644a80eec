r"""dm_i/dt = d_i Phi - m_i sum_j m_j d_j Phi,   Phi(m) = E[g(z) sigma(h)] = sum_a s_{|a|} c_a/a! m^a: several overlaps.

The gradient on the sphere of the correlation of student and target: E[g He_k(<m, z> + ...)] = <C_k, m^k>, C_k the Hermite tensor of
the target and s_k the coefficient of the student. Exact where one of the two is a polynomial; otherwise the series is cut at an
order and the curve's `residual` estimates, by the Cauchy-Schwarz inequality, what was left out of the rate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import factorial, prod, sqrt
from typing import Any

import numpy as np
from sympy import Add, DiracDelta, Expr, Float, Poly, S, Symbol, Wild, expand, sign

from hermitex.errors import BadInput
from hermitex.exponents.labels.label_levels import polynomial
from hermitex.show.display import align
from hermitex.solvers.ode import integrate
from hermitex.symbolic.activations import Activation, activation
from hermitex.symbolic.gaussian import E
from hermitex.symbolic.precise import evaluate
from hermitex.symbolic.series.coefficients import coefficient, coefficients
from hermitex.symbolic.weak import weak_derivative
from hermitex.symbols import z
from hermitex.theories.online.overlap_averages import OverlapFlow
from hermitex.theories.online.overlap_drift import hermite
from hermitex.theories.online.repeated import Repeated, repeated


@dataclass(frozen=True, repr=False)
class SGDDirections(OverlapFlow):
    """The flow of the overlaps m1, ..., mr with the directions of the target.

    Attributes
    ----------
    sigma : the student's function
    g : the target, an expression in `variables`
    order : the last |a| of the series; None: the degree of a polynomial, else 7

    The step costs -m_i step/2 E[g^2 sigma'^2], and that mean is Phi of the target g^2 and the student sigma'^2.
    """

    sigma: Activation
    g: Expr
    variables: tuple[Symbol, ...]
    order: int | None = None

    @property
    def order_parameters(self) -> tuple[str, ...]:
        """m1, m2, ...: m_i belongs to z_i."""
        return tuple("m" + v.name[1:] for v in self.variables)

    @cached_property
    def _degree(self) -> int | None:
        """The order at which the series ends by itself."""
        own = polynomial(self.sigma.expr, z)
        degrees = [] if own is None else [own.degree()]
        if self.g.is_polynomial(*self.variables):
            degrees.append(Poly(self.g, *self.variables).total_degree())
        return min(degrees, default=None)  # type: ignore[type-var]

    @cached_property
    def last(self) -> int:
        """The last order of the series."""
        default = 7  # the series has C(r + 7, 7) terms in r overlaps, 120 of three
        wanted = default if self.order is None else self.order
        return wanted if self._degree is None else self._degree if self.order is None else min(self._degree, wanted)

    @cached_property
    def potential(self) -> Expr:
        """Phi(m) = sum_a s_{|a|} c_a/a! m^a, exact coefficients where they are known.

        >>> from hermitex.theories import sgd
        >>> sgd("z**2 - 1 + z**3/6 - z/2", "z1*z2").potential
        2*m1*m2
        """
        m = [Symbol(n, real=True) for n in self.order_parameters]
        terms = []
        for a, c in self._coefficients.items():
            if c != 0 and sum(a):
                weight = coefficient(self.sigma, sum(a))*c/prod(map(factorial, a))
                terms.append(weight*prod(x**k for x, k in zip(m, a, strict=True)))
        return Add(*terms)

    @cached_property
    def _coefficients(self) -> dict[tuple[int, ...], Expr]:
        return {(a,) if isinstance(a, int) else tuple(a): c for a, c in coefficients(self.g, self.last, self.variables).items()}

    @property
    def rates(self) -> dict[str, Expr]:
        """dm_i/dt as formulas of m1, m2, ..."""
        m = [Symbol(n, real=True) for n in self.order_parameters]
        slopes = [self.potential.diff(x) for x in m]
        along = Add(*(x*s for x, s in zip(m, slopes, strict=True)))
        return {x.name: expand(s) - x*along for x, s in zip(m, slopes, strict=True)}

    @cached_property
    def _terms(self) -> tuple[np.ndarray, np.ndarray]:
        """Multi-indices (A, r) and weights s_{|a|} c_a/a! of the terms of Phi."""
        powers, weights = _weighted(self.sigma, self._coefficients, self.last)
        if not np.any(weights[powers.sum(axis=1) > 0]):
            raise BadInput(f"sgd: the student {self.sigma.name} has no overlap with the target up to order {self.last}")
        return powers, weights

    @cached_property
    def _size(self) -> tuple[np.ndarray, np.ndarray]:
        """The terms of E[g^2 sigma'^2], which is Phi of the target g^2 and the student sigma'^2."""
        slope = weak_derivative(self.sigma.expr, z)
        if slope.has(DiracDelta):
            raise BadInput(f"sgd: {self.sigma.name} jumps, and has no gradient on a sample; take step=0")
        student, label = activation(slope**2), almost_everywhere(self.g**2)
        own = polynomial(student.expr, z)
        ends = [p for p in (None if own is None else own.degree(), Poly(label, *self.variables).total_degree()
                            if label.is_polynomial(*self.variables) else None) if p is not None]
        last = min([*ends, 2*self.last])
        found = coefficients(label, last, self.variables)
        return _weighted(student, {((a,) if isinstance(a, int) else tuple(a)): c for a, c in found.items()}, last)

    def gradient(self, m: Any) -> np.ndarray:
        """d_i Phi at the overlaps m, shape (r,)."""
        powers, weights = self._terms
        x = np.asarray(m, dtype=float)
        found = np.empty(x.size)
        for i in range(x.size):
            lowered = powers.copy()
            lowered[:, i] = np.maximum(lowered[:, i] - 1, 0)
            found[i] = np.sum(weights*powers[:, i]*np.prod(x**lowered, axis=1))
        return found

    def _rate(self, step: float) -> Any:
        def rate(t: float, x: np.ndarray, p: Any) -> np.ndarray:
            slope = self.gradient(x)
            cost = step/2*float(np.sum(self._size[1]*np.prod(x**self._size[0], axis=1))) if step else 0.0
            return slope - x*(x @ slope + cost)

        return rate

    def repeated(self, repetition: float) -> Repeated:
        """The averages over a sample that is seen twice."""
        return repeated(self.sigma, self.g, self.variables, "correlation", float(repetition))

    @cached_property
    def _missing(self) -> float:
        """||P_{>K} g||, the part of the target beyond the series."""
        if self._degree is not None and self._degree <= self.last:
            return 0.0
        seen = sum(float(evaluate(c, 20))**2/prod(map(factorial, a)) for a, c in self._coefficients.items() if c != 0)
        whole = E(self.g**2, *self.variables).doit()
        return sqrt(max(0.0, float(Float(evaluate(whole, 15))) - seen))

    def _error(self, values: Mapping[str, np.ndarray], tolerance: float) -> np.ndarray:
        length = np.sqrt(np.sum(np.square(list(values.values())), axis=0))
        if self._missing == 0:
            return np.full(length.shape, tolerance)
        beyond = 80  # orders of the student that the estimate of the remainder adds up
        k = np.arange(self.last + 1, self.last + beyond)
        student = hermite(self.sigma, self.last + beyond - 1)[self.last + 1:]
        powers = np.nan_to_num(length)[:, None]**(k - 1)
        return np.asarray(tolerance + self._missing*np.sqrt(np.sum((k*student*powers)**2, axis=1)))

    def learned(self, dimension: Any, *, level: float = 0.3, horizon: float = 1e4, step: float = 0.0,
                repetition: float = 0.0) -> dict[str, float]:
        """The times at which each |m_i| first reaches `level`, in the order in which it happens; inf: not before `horizon`.

        >>> from hermitex.theories import sgd
        >>> times = sgd("z + He4(z)/4", "z1 + He3(z1)*z2 + He3(z2)*z3").learned(1e4, level=0.05)
        >>> list(times)
        ['m1', 'm2', 'm3']
        """
        given = self.complete(self.given({"dimension": dimension, "step": step, "repetition": repetition}))

        names = self.order_parameters
        events = {n: (lambda t, x, p, i=i: abs(float(x[i])) - level) for i, n in enumerate(names)}
        rate, _, tolerance = self._flow(float(step), float(repetition), 1e-9)
        x0 = self._start(self.single(given, "m0")["m0"])
        run = integrate(rate, x0, (0.0, horizon), names=names, events=events, method="LSODA", rtol=tolerance,
                        atol=1e-4*tolerance, dense=False)
        first = {n: float(run.events[n]["t"][0]) if len(run.events[n]["t"]) else float("inf") for n in names}
        return dict(sorted(first.items(), key=lambda pair: pair[1]))

    def described(self, fixed: Mapping[str, float]) -> dict[str, Any]:
        """Functions, order of the series, numbers."""
        return {"sigma": self.sigma.name, "target": str(self.g), "series": self.last, **fixed}

    def latex(self) -> str:
        """The equations as an align block."""
        return align([(rf"\dot m_{{{name[1:]}}}", rate) for name, rate in self.rates.items()])

    def _html(self) -> str:
        from html import escape

        return f"<p><code>{escape(repr(self))}</code></p>{escape(self.latex(), quote=False)}"

    def _summary(self) -> str:
        return f"{self.sigma.name}, {self.g}"


def _weighted(student: Activation, target: Mapping[tuple[int, ...], Expr], last: int) -> tuple[np.ndarray, np.ndarray]:
    """Multi-indices a and weights s_{|a|} c_a/a!."""
    own = hermite(student, last)  # s_k/sqrt(k!)
    rows = [(a, float(evaluate(c, 20))*own[sum(a)]*sqrt(factorial(sum(a)))/prod(map(factorial, a)))
            for a, c in target.items() if c != 0]
    return np.array([a for a, _ in rows]), np.array([w for _, w in rows])


def almost_everywhere(expr: Expr) -> Expr:
    """The expression with sign(u)^2 = 1, multiplied out."""
    u = Wild("u")
    return expand(expr).replace(sign(u)**2, S.One)
