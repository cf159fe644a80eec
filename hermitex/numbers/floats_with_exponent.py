"""m e^k with a double m and a whole number k: floats that neither underflow nor overflow, as NumPy arrays.

Exponents add exactly, so the ratio of two rare events keeps all its digits.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np


class _Special:
    """The functions of scipy.special, which is loaded at the first call of one: balls do without it."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *values: getattr(import_module("scipy.special"), name)(*values)


special = _Special()

# e^250 = 1e108: the product of two mantissas within these limits is a double, and so is the sum of many.
WIDEST = 250.0


class Scaled(NamedTuple):
    """m e^k: arrays (or numbers) of one shape after broadcasting; k holds whole numbers."""

    m: Any
    k: Any = 0.0

    def logarithm(self) -> Any:
        """log|m e^k|, -inf at 0."""
        with np.errstate(all="ignore"):
            return np.log(np.abs(self.m)) + self.k

    def plain(self) -> Any:
        """m e^k as doubles: 0 or inf where it is beyond them."""
        if _is_plain(self):
            return self.m
        with np.errstate(all="ignore"):
            half = np.clip(self.k, -1600, 1600)/2  # e^800 is beyond doubles, its root is not: m e^k may be within
            return self.m*np.exp(half)*np.exp(half)


def _is_plain(a: Scaled) -> bool:
    return type(a.k) is float and a.k == 0


def normalised(m: Any, k: Any) -> Scaled:
    """The same number with |m| within e^-250 and e^250."""
    size = np.abs(m)
    if size.size and size.min() > np.exp(-WIDEST) and size.max() < np.exp(WIDEST):
        return Scaled(m, k)
    outside = (size > np.exp(WIDEST)) | ((size < np.exp(-WIDEST)) & (size > 0))
    return _unit(m, k, outside & np.isfinite(size)) if np.any(outside) else Scaled(m, k)


def _unit(m: Any, k: Any, where: Any = True) -> Scaled:
    """The same number with |m| near 1."""
    shift = np.where(where, np.rint(np.log(np.abs(m))), 0.0)
    shift = np.where(np.isfinite(shift), shift, 0.0)
    return Scaled(m*np.exp(-shift/2)*np.exp(-shift/2), k + shift)


def add(a: Scaled, b: Scaled) -> Scaled:
    """a + b, by the larger exponent."""
    if _is_plain(a) and _is_plain(b):
        return normalised(a.m + b.m, 0.0)
    k = np.maximum(np.where(a.m == 0, -np.inf, a.k), np.where(b.m == 0, -np.inf, b.k))
    k = np.where(np.isfinite(k), k, 0.0)
    return normalised(_at_exponent(a, k) + _at_exponent(b, k), k)


def _at_exponent(a: Scaled, k: Any) -> Any:
    return np.where(a.m == 0, a.m, a.m*np.exp(np.maximum(np.minimum(a.k - k, 0.0), -1000.0)))


def multiply(a: Scaled, b: Scaled) -> Scaled:
    """a b."""
    return normalised(a.m*b.m, 0.0 if _is_plain(a) and _is_plain(b) else a.k + b.k)


def negative(a: Scaled) -> Scaled:
    """-a."""
    return Scaled(-a.m, a.k)


def power(a: Scaled, p: float | complex) -> Scaled:
    """a^p; nan where that is not real."""
    if p == -1:
        return normalised(1/a.m, 0.0 if _is_plain(a) else -a.k)
    if p == 2:
        return multiply(a, a)
    if p == 0.5 and _is_plain(a):
        return Scaled(np.sqrt(a.m))
    if isinstance(p, complex):
        return exponential(p*logarithm(a).m)
    unit = _unit(a.m, a.k)
    whole = np.rint(p*unit.k)
    largest = 500  # 1.7^500 = 1e115: a mantissa near 1 to a larger power is taken through its logarithm
    if abs(p) > largest:
        return multiply(exponential(p*np.log(np.abs(unit.m))), Scaled(np.sign(unit.m)**int(p) if p == int(p) else 1.0, whole))
    m = unit.m**int(p) if p == int(p) else unit.m**p
    return normalised(m*np.exp(p*unit.k - whole), whole)


def exponential(u: Any) -> Scaled:
    """e^u of doubles u."""
    if np.size(u) and np.abs(u).max() < WIDEST:
        return Scaled(np.exp(u))
    whole = np.rint(np.real(u))
    whole = np.where(np.isfinite(whole), whole, 0.0)
    return Scaled(np.exp(u - whole), whole)


def logarithm(a: Scaled) -> Scaled:
    """log a; nan where that is not real."""
    return Scaled(np.log(a.m) + a.k)


def log1p(a: Scaled) -> Scaled:
    """log(1 + a), accurate for small and for large a."""
    if _is_plain(a):
        return Scaled(np.log1p(a.m))
    large, small = np.asarray(a.k) > 40, np.asarray(a.k) < -40  # e^40 = 2e17: 1 is below the last digit
    middle = np.log1p(np.where(large | small, 0.0, a.plain()))
    return where(small, a, Scaled(np.where(large, np.log(np.where(large, a.m, 1.0)) + a.k, middle)))


def logistic(u: Any) -> Scaled:
    """1/(1 + e^-u) of doubles u."""
    t = exponential(np.where(np.real(u) > 0, -u, u))
    whole = add(Scaled(1.0), t)
    return multiply(where(np.real(u) > 0, Scaled(np.ones_like(t.m)), t), power(whole, -1))


def expm1(u: Any) -> Scaled:
    """e^u - 1 of doubles u."""
    large = np.real(u) > 40  # e^40 = 2e17: 1 is below the last digit
    return where(large, exponential(np.where(large, u, 0.0)), Scaled(np.expm1(np.where(large, 0.0, u))))


def erfc(u: Any) -> Scaled:
    """erfc u = e^(-u^2) erfcx u of doubles u, its tail included."""
    tail = np.real(u) > 1
    v = np.where(tail, u, 1.0)
    factor = exponential(-(v*v))
    # at v = 1e10 the square is wrong by 1e4, and the value below e^(-1e20) whatever the factor is
    correction = np.exp(np.clip(_square_error(v), -1.0, 1.0)) if not np.iscomplexobj(v) else 1.0
    return where(tail, Scaled(special.erfcx(v)*factor.m*correction, factor.k), Scaled(special.erfc(np.where(tail, 1.0, u))))


def _square_error(v: Any) -> Any:
    """fl(v^2) - v^2, which e^(-v^2) multiplies by itself: at v = 30 it would cost 200 roundings."""
    high = np.float64(2.0**27 + 1)*v
    high = high - (high - v)
    low = v - high
    return v*v - ((high*high) + 2*high*low + low*low) if np.all(np.isfinite(high)) else 0.0*v


def hyperbolic(u: Any, sign: float) -> Scaled:
    """(e^u + sign e^-u)/2 of doubles u."""
    up, down = exponential(u), exponential(-u)
    total = add(up, Scaled(sign*down.m, down.k))
    return Scaled(total.m/2, total.k)


def sinh(u: Any) -> Scaled:
    """sinh u of doubles u."""
    small = np.abs(u) < 1
    return where(small, Scaled(np.sinh(np.where(small, u, 0.0))), hyperbolic(u, -1.0))


def erfi(u: Any) -> Scaled:
    """erfi u = 2/sqrt(pi) e^(u^2) D(u), D Dawson's integral, of doubles u."""
    return multiply(Scaled(special.dawsn(u)*2/np.sqrt(np.pi)), exponential(u*u))


def where(condition: Any, a: Scaled, b: Scaled) -> Scaled:
    """a where the condition holds, b elsewhere."""
    if _is_plain(a) and _is_plain(b):
        return Scaled(np.where(condition, a.m, b.m))
    return Scaled(np.where(condition, a.m, b.m), np.where(condition, a.k, b.k))
