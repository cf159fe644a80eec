r"""K(x, x') = h(<x, x'>/d) = sum_k b_k (<x, x'>/d)^k: a kernel in every dimension where no b_k is negative (Schoenberg)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from sympy import Add, Expr, Mul, Pow, SympifyError, cos, cosh, erf, erfi, exp, factorial, simplify, sin, sinh, sympify

from hermitex.errors import BadInput
from hermitex.hints import Formula
from hermitex.kernels.arrays import lambdify
from hermitex.symbolic.activations import activation
from hermitex.symbolic.arithmetic import mp
from hermitex.symbolic.parsing import parse
from hermitex.symbols import z
from hermitex.theories.kernels import harmonics
from hermitex.theories.kernels.inner import ORDER, InnerKernel, require_whole, t

Array = np.ndarray


@dataclass(frozen=True, repr=False)
class InnerProduct(InnerKernel):
    """h(<x, x'>/d), a series with coefficients >= 0."""

    h: Expr

    sources: ClassVar[tuple[str, ...]] = ("mei2022hypercontractivity",)

    def __str__(self) -> str:
        return str(self.h)

    def _summary(self) -> str:
        return str(self.h)

    @property
    def formula(self) -> Expr:
        """h itself."""
        return self.h

    def weight(self, degree: int) -> Expr:
        """b_k = h^(k)(0)/k!."""
        return simplify(self.h.diff(t, require_whole("degree", degree)).subs(t, 0)/factorial(degree))

    @cached_property
    def _series(self) -> Array:
        h = lambdify(t, self.h, modules=[mp.functions(), "mpmath"])
        with mp.workdps(30):
            try:
                return np.array([float(v.real) for v in mp.taylor(h, 0, ORDER)])
            except (ZeroDivisionError, ValueError, TypeError):
                return np.array([np.nan])

    def coefficients(self, radius: Array, order: int = ORDER) -> Array:
        """a_k(r) = sqrt(b_k) r^k."""
        return np.sqrt(np.maximum(self._series[:order + 1], 0))*radius[:, None]**np.arange(order + 1)

    def factors(self, degrees: int, radius: Array, d: int) -> list[Array]:
        """Its powers of t, by degree."""
        a = self.coefficients(radius)
        return [a*np.sqrt(harmonics.powers(k, ORDER, d)) for k in range(degrees + 1)]

    def require_moment(self, d: int) -> None:
        """h entire by the way it is written, and E h(r^2)^2 finite: h(z^2/d) square integrable, r^2 ~ chi^2_d/d."""
        if not _entire(self.h):
            raise BadInput(f"{self}: on Gaussian data |x|^2/d has no bound, and the power series of h is not known to converge "
                           "everywhere (polynomials, exp, sinh, cosh and what they make do); take data='sphere'")
        if activation(self.h.subs(t, z**2/d)).in_L2 is not True:
            raise BadInput(f"{self}: the mean of K(x, x)^2 over Gaussian data in d = {d} dimensions is not known to be finite; "
                           "take more dimensions or data='sphere'")
        radius, chance = harmonics.radii("gaussian", d)
        total, series = self.diagonal(radius), (self.coefficients(radius)**2).sum(axis=1)
        if not float(chance @ np.abs(total - series)) <= 1e-9*float(chance @ total):
            raise BadInput(f"{self}: {ORDER + 1} terms of the power series are too few for Gaussian data in d = {d} dimensions; "
                           "take more dimensions or data='sphere'")

    def diagonal(self, radius: Array) -> Array:
        """h(r^2)."""
        return self._of(radius**2)

    def _of(self, at: Array) -> Array:
        from hermitex.kernels.compile import compile

        return np.array(np.broadcast_to(compile(self.h, "t")(at), at.shape), dtype=float)

    def _between(self, p: Array, q: Array, one: Array, two: Array) -> Array:
        return self._of((p - q)*(p + q)*one[:, None]*two)


def inner_product_kernel(h: Formula) -> InnerProduct:
    """K(x, x') = h(<x, x'>/d) for a formula h in t, whose power series has no negative coefficient.

    Raises
    ------
    BadInput : another letter than t; a negative coefficient (no kernel in every dimension); a series that does not converge at 1.

    Guarantee
    ---------
    A formula whose power series shows a negative coefficient is refused. See docs/promise.md.

    Examples
    --------
    >>> inner_product_kernel("exp(t)").weight(3)
    1/6
    """
    form = parse(h, symbols={"t": "real"}) if isinstance(h, str) else _formula(h)
    form = form.subs({s: t for s in form.free_symbols if s.name == "t"})
    if form.free_symbols != {t}:
        raise BadInput(f"kernel: a formula in t = <x, x'>/d is needed, not {str(form)[:60]}")
    made = _inner(form)
    with np.errstate(all="ignore"):
        size = abs(float(made.diagonal(np.ones(1))[0]))
        series = made._series
    if not (np.isfinite(size) and np.isfinite(series).all()) or abs(series.sum() - made.diagonal(np.ones(1))[0]) > 1e-9*size:
        raise BadInput(f"kernel: the power series of {form} does not converge at t = 1, or not within {ORDER} terms")
    if np.any(series < -1e-12*size):
        k = int(np.flatnonzero(series < -1e-12*size)[0])
        raise BadInput(f"kernel: {form} has a negative coefficient at t^{k}: it is not a kernel in every dimension")
    return made


def _formula(h: Any) -> Expr:
    try:
        form = sympify(h(t) if callable(h) and not isinstance(h, Expr) else h, strict=True)
    except (SympifyError, TypeError, ValueError, AttributeError):
        form = None
    if not isinstance(form, Expr):
        raise BadInput("kernel: a formula in t = <x, x'>/d is needed: text, a SymPy expression or a function of t")
    return form


def _entire(h: Expr) -> bool:
    """Without a singularity in the complex plane, from the way it is written."""
    if not h.has(t) or h == t:
        return True
    if isinstance(h, Pow) and h.exp.is_Integer and h.exp > 0:
        return _entire(h.base)
    return isinstance(h, Add | Mul | exp | sinh | cosh | sin | cos | erf | erfi) and all(_entire(a) for a in h.args)


_inner = lru_cache(InnerProduct)  # one object for one kernel, so that its series is derived once
