r"""phi'(m) = sum_{k>=1} c_k s_k/(k-1)! m^(k-1), phi(m) = E[sigma(h) g(h*)]: the drift of one overlap, in numbers.

Near m = 0 the drift falls like m^(l-1), and a closed form would lose it to rounding: there the series is summed, its coefficients
before the first that is not zero put to zero because they are proved to be. Beyond |m| = 1/2 the formula itself is compiled.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from math import factorial, sqrt
from typing import Any

import numpy as np
from sympy import DiracDelta, Expr, diff
from sympy import sqrt as root

from hermitex.errors import BadInput, HermitexError, NoClosedForm
from hermitex.exponents.certificate import Certificate
from hermitex.exponents.labels.label_levels import polynomial
from hermitex.numbers.hermite_coefficients import coefficients
from hermitex.symbolic.activations import Activation
from hermitex.symbolic.gaussian import E, Expectation
from hermitex.symbolic.series.coefficients import coefficient
from hermitex.symbolic.weak import weak_derivative
from hermitex.symbols import m, z, z1, z2

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Leading:
    """The first k with c_k s_k != 0: the order of the drift at m = 0, its value c_k s_k, and what proves it.

    order None: every product is zero (proved if `certain`), or it could not be decided.
    """

    order: int | None
    value: Expr | None
    certificates: tuple[Certificate, ...]
    certain: bool = True
    note: str = field(default="")


@lru_cache(maxsize=256)
def leading(sigma: Activation, g: Activation) -> Leading:
    """The first non-zero term of the drift, with a certificate for each coefficient that was needed.

    Examples
    --------
    >>> from hermitex.symbolic.activations import activation
    >>> found = leading(activation("tanh"), activation("He3"))
    >>> found.order, [c.quantity for c in found.certificates if c.status == "nonzero"]
    (3, ['c_3', 's_3'])
    """
    degrees = [p.degree() for f in (sigma, g) if (p := polynomial(f.expr, z)) is not None]
    highest = 40  # an information exponent beyond it has an escape time of d^19
    last = min([*degrees, highest])
    certificates: list[Certificate] = []
    for k in range(1, last + 1):
        pair = []
        for letter, f in (("c", g), ("s", sigma)):
            pair.append(_decided(f, f"{letter}_{k}", k))
            certificates.append(pair[-1])
            if pair[-1].status == "zero":
                break
        if any(c.status == "zero" for c in pair):
            continue
        if bad := [c for c in pair if c.status == "undetermined"]:
            return Leading(None, None, tuple(certificates), False, f"{bad[0].quantity} is undetermined: {bad[0].how}")
        return Leading(k, coefficient(g, k)*coefficient(sigma, k), tuple(certificates))
    if degrees or {sigma.parity, g.parity} == {1, -1}:
        return Leading(None, None, tuple(certificates), True, "every product c_k s_k is zero: this student never learns the target")
    return Leading(None, None, tuple(certificates), False, f"every product c_k s_k up to order {last} is zero")


def _decided(f: Activation, name: str, k: int) -> Certificate:
    reflection = f.parity
    if reflection is not None and (-1)**k != reflection:
        return Certificate.zero(name, k, f"{f.name} is {'even' if reflection == 1 else 'odd'}, He_{k} is not")
    try:
        return Certificate.of(coefficient(f, k), name, k)
    except HermitexError as err:
        return Certificate(name, k, "undetermined", " ".join(str(err).split()))


def phi(sigma: Activation, g: Activation) -> Expr:
    """The node E[sigma(z1) g(z2)], the two standard normals of covariance m."""
    return E(sigma.expr.xreplace({z: z1})*g.expr.xreplace({z: z2}), z1, z2, cov={(z1, z2): m})


@lru_cache(maxsize=256)
def slope(sigma: Activation, g: Activation) -> Expr:
    """phi'(m), exact where there is a closed form; else over the node E[sigma'(z1) g'(z2)] as Price's theorem gives it."""
    from hermitex.symbolic.integrals import closed_form

    node = phi(sigma, g)
    if not node.has(Expectation):
        return diff(node, m)
    try:
        return diff(closed_form(node), m)
    except NoClosedForm:
        return node.diff(m).doit()


def nested(sigma: Activation, g: Activation) -> Expr | None:
    """phi'(m) = E[f'(z1) E[z2 u(m z1 + s z2)]]/s, s^2 = 1 - m^2, f the one of the two that does not jump, u the other."""
    for f, u in ((sigma, g), (g, sigma)):
        try:
            derivative = weak_derivative(f.expr, z)
        except NoClosedForm:
            continue
        if not derivative.has(DiracDelta):
            s = root(1 - m**2)
            return E(derivative.xreplace({z: z1})*E(z2*u.expr.xreplace({z: m*z1 + s*z2}), z2), z1)/s
    return None


def size(sigma: Activation, g: Activation, loss: str) -> Expr:
    """E[(dl/dh)^2]: E[g^2 sigma'^2] for the correlation loss, E[(g - sigma)^2 sigma'^2] for the square loss; a node in m.

    Raises BadInput for a student that jumps: it has no gradient on a sample.
    """
    derivative = weak_derivative(sigma.expr, z)
    if derivative.has(DiracDelta):
        raise BadInput(f"sgd: {sigma.name} jumps, and has no gradient on a sample; take step=0, the flow of the expectation")
    student, own, label = sigma.expr.xreplace({z: z1}), derivative.xreplace({z: z1}), g.expr.xreplace({z: z2})
    error = label if loss == "correlation" else label - student
    return E(error**2*own**2, z1, z2, cov={(z1, z2): m})


class Drift:
    """The right-hand side (1 - m^2) phi'(m) - m step/2 E[(dl/dh)^2] at arrays of m."""

    def __init__(self, sigma: Activation, g: Activation, loss: str = "correlation") -> None:
        from hermitex.kernels.compile import compile

        self.first = leading(sigma, g)
        if self.first.note and not self.first.certain:
            raise BadInput(f"sgd: {self.first.note}")
        count = 64  # of the series: 2^-64 is left at |m| = 1/2
        weights = hermite(sigma, count)*hermite(g, count)
        order = self.first.order
        weights[:count + 1 if order is None else order] = 0.0
        self.terms = (np.arange(count + 1)*weights)[1:]  # k c_k s_k/k! of m^(k-1)
        self._functions = sigma, g, loss
        # If one of the two is analytic enough, the series has converged before its last terms, at every overlap.
        ended = np.abs(self.terms[-8:]).sum() <= 1e-13*np.abs(self.terms).max(initial=0.0)
        self._kernel = None
        if not ended:
            try:
                formula = slope(sigma, g)
                if formula.has(Expectation):  # one integral in another, where the averages over a pair have no fixed grid
                    formula = nested(sigma, g) or formula
                self._kernel = compile(formula, "m")
            except NoClosedForm as err:
                raise BadInput(f"sgd: the flow of {sigma.name} and {g.name} is not known beyond m = 1/2: {err.reason}") from None
        self._size: Any = None

    def __call__(self, at: Any, step: float = 0.0) -> Array:
        x = np.atleast_1d(np.asarray(at, dtype=float))
        found = (1 - x)*(1 + x)*self.slope(x)
        if step:
            found = found - x*step/2*self.size(x)
        return found

    def slope(self, x: Array) -> Array:
        """phi'(m)."""
        out = np.polynomial.polynomial.polyval(x, self.terms)
        near = 0.5  # overlap up to which the series is used, whose 64 terms leave 2^-64
        far = np.abs(x) > near
        edge = 1e-12  # the formula is not evaluated closer to |m| = 1; the factor 1 - m^2 has no digit left there
        if far.any() and self._kernel is not None:
            out[far] = self._kernel(np.clip(x[far], -1 + edge, 1 - edge))
        return out

    def size(self, x: Array) -> Array:
        """E[(dl/dh)^2], which the norm of the weights feels."""
        if self._size is None:
            from hermitex.kernels.compile import compile
            from hermitex.symbolic.integrals import integrate_or_keep

            self._size = compile(integrate_or_keep(size(*self._functions)), "m", tolerance=1e-9)
        inside = np.clip(x, -1 + 1e-9, 1 - 1e-9)
        return np.asarray(self._size(inside))


@lru_cache(maxsize=64)
def _hermite(f: Activation, order: int) -> tuple[float, ...]:
    poly = polynomial(f.expr, z)
    if poly is not None:
        return tuple(float(coefficient(f, k))/sqrt(factorial(k)) if k <= poly.degree() else 0.0 for k in range(order + 1))
    if f.expr.free_symbols - {z}:
        raise BadInput(f"sgd: {f.name} holds more than the variable z; give its parameters numbers")
    try:
        return tuple(coefficients(f.expr, z, order).values.tolist())
    except HermitexError as error:
        raise BadInput(f"sgd: the Hermite coefficients of {f.name} were not reached by quadrature: {error}") from None


def hermite(f: Activation, order: int) -> Array:
    """c_k/sqrt(k!) for k = 0, ..., order.

    >>> from hermitex.symbolic.activations import activation
    >>> hermite(activation("sign"), 3).round(6)
    array([ 0.      ,  0.797885,  0.      , -0.325735])
    """
    return np.array(_hermite(f, order))
