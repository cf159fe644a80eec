"""T(h, a) = int_0^a exp(-h^2 (1 + x^2)/2) / (1 + x^2) dx / (2 pi): Owen's T, and the law of two signs that needs it.

Two error functions of one normal, or one on a half line, are the correlation of two signs of shifted normals; with
shifts that is Owen's T. To N digits both evaluate through mpmath.
"""

from __future__ import annotations

from typing import Any

from sympy import (
    Dummy,
    Expr,
    Float,
    Function,
    Integer,
    Integral,
    Rational,
    S,
    asin,
    atan,
    cancel,
    cos,
    digamma,
    erf,
    erfc,
    erfi,
    exp,
    loggamma,
    pi,
    sin,
    sqrt,
)
from sympy.core.function import ArgumentIndexError

from hermitex.symbolic.arithmetic import mp, mpf


def owen_t(h: Any, a: Any) -> mpf:
    """Owen's T of two mpmath reals at the working precision of mpmath.

    T(h, a) = T-integral above; |a| > 1 is brought to |a| <= 1 by T(h, a) + T(ah, 1/a) = (erfc products)/4 [Owen 1956].

    Examples
    --------
    >>> print(mp.nstr(owen_t(mp.mpf(1), mp.mpf(1)/2), 12))
    0.0430646911208
    """
    with mp.workprec(mp.prec + 20):
        h, a = abs(mp.mpf(h)), mp.mpf(a)
        if a < 0:
            value = -owen_t(h, -a)
        elif mp.isinf(h) or a == 0:
            value = mp.zero
        elif mp.isinf(a):
            value = mp.erfc(h / mp.sqrt(2)) / 4
        elif a > 1:
            low, high = mp.erfc(h / mp.sqrt(2)), mp.erfc(a * h / mp.sqrt(2))
            # Phi(h)/2 + Phi(ah)/2 - Phi(h) Phi(ah) in tails, so that nothing cancels for large h.
            value = (low + high - low * high) / 4 - owen_t(a * h, 1 / a)
        else:
            top = min(a, mp.sqrt(2 * mp.prec) / h) if h else a
            inside = mp.quad(lambda x: mp.exp(-h * h * x * x / 2) / (1 + x * x), mp.linspace(0, top, 3), method="gauss-legendre")
            value = mp.exp(-h * h / 2) * inside / (2 * mp.pi)
    return +value


class LogFactorial(Function):
    """log Gamma(x + 1), which stays a logarithm: exp(loggamma(x)) becomes gamma(x), which overflows."""

    nargs = 1
    is_real = True

    def fdiff(self, argindex: int = 1) -> Expr:
        """digamma(x + 1)."""
        return digamma(self.args[0] + 1)

    def _eval_evalf(self, prec: int) -> Expr:
        x = self.args[0]._to_mpmath(prec + 10) if self.args[0].is_Rational else None
        if x is None or x < 0:
            return loggamma(self.args[0] + 1)._eval_evalf(prec)
        with mp.workprec(prec + 10):  # SymPy would take the logarithm of the factorial, of thousands of digits
            return Expr._from_mpmath(mp.loggamma(mp.mpf(x) + 1), prec)


class _OfRealNumbers(Function):
    """A real function of real numbers; `mpmath_value` is its value at numbers of mpmath."""

    mpmath_value: Any

    def _eval_is_extended_real(self) -> bool | None:
        return True if all(a.is_extended_real for a in self.args) else None

    _eval_is_real = _eval_is_extended_real

    def _eval_evalf(self, prec: int) -> Expr | None:
        """A Float of `prec` bits where every argument is a real number."""
        args = [a._eval_evalf(prec + 10) if not a.is_Float else a for a in self.args]
        if not all(isinstance(a, (Float, Integer, Rational)) for a in args):
            return None
        with mp.workprec(prec + 10):
            return Float._new(type(self).mpmath_value(*(mp.own(a._to_mpmath(prec + 10)) for a in args))._mpf_, prec)


class OwenT(_OfRealNumbers):
    """Owen's T function, T(h, a): the mass of {X > h, 0 < Y < a X} for two independent standard normals, h >= 0.

    Even in h, odd in a; T(0, a) = atan(a)/(2 pi), T(h, 1) = (1 - erf(h/sqrt(2))^2)/8 [owen1956].

    Examples
    --------
    >>> from sympy.abc import h
    >>> OwenT(h, 1), OwenT(-2, 3), OwenT(0, 1)
    (1/8 - erf(sqrt(2)*h/2)**2/8, OwenT(2, 3), 1/8)
    """

    nargs = 2
    mpmath_value = staticmethod(owen_t)

    @classmethod
    def eval(cls, h: Expr, a: Expr) -> Expr | None:
        if a.is_zero or h in (S.Infinity, S.NegativeInfinity):
            return S.Zero
        if h.is_zero:
            return atan(a) / (2 * pi)
        if a is S.One:
            return Rational(1, 8) - erf(h / sqrt(2)) ** 2 / 8
        if a is S.Infinity and h.is_extended_real:
            return erfc(abs(h) / sqrt(2)) / 4
        if a.could_extract_minus_sign():
            return -cls(h, -a)
        if h.could_extract_minus_sign():
            return cls(-h, a)
        return None

    def fdiff(self, argindex: int = 1) -> Expr:
        h, a = self.args
        if argindex == 1:
            return -exp(-h**2 / 2) * erf(a * h / sqrt(2)) / (2 * sqrt(2 * pi))
        if argindex == 2:
            return exp(-(h**2) * (1 + a**2) / 2) / (2 * pi * (1 + a**2))
        raise ArgumentIndexError(self, argindex)

    def _eval_rewrite_as_Integral(self, h: Expr, a: Expr, **kwargs: Any) -> Expr:
        x = Dummy("x", real=True)
        return Integral(exp(-(h**2) * (1 + x**2) / 2) / (1 + x**2), (x, 0, a)) / (2 * pi)

    def _latex(self, printer: Any, exp: Any = None) -> str:
        text = rf"T\left({printer._print(self.args[0])}, {printer._print(self.args[1])}\right)"
        return rf"{text}^{{{exp}}}" if exp else text


def sign_correlation(h: Any, k: Any, rho: Any) -> mpf:
    """E[sign(X + h) sign(Y + k)] of three mpmath reals at the working precision of mpmath.

    Examples
    --------
    >>> print(mp.nstr(sign_correlation(1, 1, 0), 9), mp.nstr(mp.erf(mp.sqrt(0.5))**2, 9))
    0.466064943 0.466064943
    """
    with mp.workprec(mp.prec + 10):
        h, k, rho = mp.mpf(h), mp.mpf(k), mp.mpf(rho)
        side = mp.sqrt(1 - rho * rho)
        value = 2 * mp.asin(rho) / mp.pi
        for u, v in ((h, k), (k, h)):
            if u:  # the triangle of legs u and (v - rho u)/side; it is empty at u = 0
                slope = (v - rho * u) / (u * side)
                value += 2 * mp.atan(slope) / mp.pi - 4 * owen_t(u, slope)
    return +value


class SignCorrelation(_OfRealNumbers):
    """E[sign(X + h) sign(Y + k)], X and Y standard normal with correlation rho; smooth in h, k and |rho| < 1.

    = (2/pi) asin(rho) at h = k = 0, and an Owen T wherever the ratio k/h is known, whatever the sign of h [owen1956]:

    S(h, lambda h, rho) = (2/pi) (asin rho + atan a + atan b) - 4 T(h, a) - 4 T(lambda h, b),
    a = (lambda - rho)/sqrt(1 - rho^2), b = (1/lambda - rho)/sqrt(1 - rho^2). Otherwise it stays a node.

    Examples
    --------
    >>> from sympy.abc import h
    >>> SignCorrelation(0, 0, Rational(1, 2)), SignCorrelation(h, 0, Rational(3, 5))
    (1/3, 4*OwenT(h, 3/4))
    """

    nargs = 3
    mpmath_value = staticmethod(sign_correlation)

    @classmethod
    def eval(cls, h: Expr, k: Expr, rho: Expr) -> Expr | None:
        if h in (S.Infinity, S.NegativeInfinity):
            return (1 if h is S.Infinity else -1) * erf(k / sqrt(2))
        if k in (S.Infinity, S.NegativeInfinity):
            return (1 if k is S.Infinity else -1) * erf(h / sqrt(2))
        if rho.is_zero:
            return erf(h / sqrt(2)) * erf(k / sqrt(2))
        if h.is_zero and k.is_zero:
            return 2 * asin(rho) / pi
        side = sqrt(1 - rho**2)
        if k.is_zero:
            return 4 * OwenT(h, rho / side)
        if h.is_zero:
            return 4 * OwenT(k, rho / side)
        ratio = k / h if not (k.is_Add or h.is_Add) else cancel(k / h)
        if not ratio.is_nonzero:
            return None
        a, b = (ratio - rho) / side, (1 / ratio - rho) / side
        return 2 * (asin(rho) + atan(a) + atan(b)) / pi - 4 * OwenT(h, a) - 4 * OwenT(k, b)

    def fdiff(self, argindex: int = 1) -> Expr:
        h, k, rho = self.args
        if argindex == 3:
            gap = 1 - rho**2
            return 2 * exp(-(h**2 - 2 * rho * h * k + k**2) / (2 * gap)) / (pi * sqrt(gap))
        if argindex == 2:
            h, k = k, h
        elif argindex != 1:
            raise ArgumentIndexError(self, argindex)
        return sqrt(2 / pi) * exp(-(h**2) / 2) * erf((k - rho * h) / sqrt(2 * (1 - rho**2)))


def complex_erf(x: Any, y: Any) -> Any:
    """erf(x + i y) of two mpmath reals; for large z 1 - exp(-z^2)/(z sqrt(pi)) (1 - 1/(2 z^2) + 3/(2 z^2)^2 - ...) [DLMF 7.12.1].

    mpmath adds up |z|^2 terms of e^(|z|^2). The remainder is below the next term times |z|^2/(2 x |y|) [DLMF 7.12(i)].

    Examples
    --------
    >>> print(mp.nstr(complex_erf(mp.mpf(1), mp.mpf(9)), 12))
    (-2.84817582343e+33 + 1.98726707401e+33j)
    """
    z, square = mp.mpc(abs(x), y), x*x + y*y
    bits = mp.prec + 20 + max(0, mp.mag(square))
    with mp.workprec(bits):
        needed = bits + max(0, mp.log(square/(2*abs(x)*max(abs(y), abs(x))), 2)) if x else mp.inf
        if square < 2*needed:
            return mp.erf(mp.mpc(x, y))
        term, total, k = mp.mpc(1), mp.mpc(1), 0
        while abs(term) > mp.mpf(2)**-needed:
            k += 1
            term *= -(2*k - 1)/(2*z*z)
            total += term
        found = 1 - mp.exp(-z*z)/(z*mp.sqrt(mp.pi))*total
    return +(found if x > 0 else -mp.conj(found))


class ReErf(_OfRealNumbers):
    """Re erf(x + i y) for real x and y: what a cosine leaves on a half line; odd in x, even in y.

    d erf(x + i y) = (2/sqrt(pi)) exp(y^2 - x^2) (cos(2xy) - i sin(2xy)) (dx + i dy) [DLMF 7.2.1].

    Examples
    --------
    >>> from sympy.abc import x, y
    >>> ReErf(x, 0), ReErf(0, y), ReErf(-x, -y)
    (erf(x), 0, -ReErf(x, y))
    """

    nargs = 2
    mpmath_value = staticmethod(lambda x, y: complex_erf(x, y).real)

    @classmethod
    def eval(cls, x: Expr, y: Expr) -> Expr | None:
        if x.is_zero:
            return S.Zero
        if y.is_zero:
            return erf(x)
        if x.could_extract_minus_sign():
            return -cls(-x, y)
        return cls(x, -y) if y.could_extract_minus_sign() else None

    def fdiff(self, argindex: int = 1) -> Expr:
        x, y = self.args
        if argindex not in (1, 2):
            raise ArgumentIndexError(self, argindex)
        turn = cos(2 * x * y) if argindex == 1 else sin(2 * x * y)
        return 2 * exp(y**2 - x**2) * turn / sqrt(pi)


class ImErf(_OfRealNumbers):
    """Im erf(x + i y) for real x and y: even in x, odd in y, erfi(y) at x = 0 [DLMF 7.2.1].

    Examples
    --------
    >>> from sympy.abc import x, y
    >>> ImErf(x, 0), ImErf(0, y), ImErf(-x, -y)
    (0, erfi(y), -ImErf(x, y))
    """

    nargs = 2
    mpmath_value = staticmethod(lambda x, y: complex_erf(x, y).imag)

    @classmethod
    def eval(cls, x: Expr, y: Expr) -> Expr | None:
        if y.is_zero:
            return S.Zero
        if x.is_zero:
            return erfi(y)
        if y.could_extract_minus_sign():
            return -cls(x, -y)
        return cls(-x, y) if x.could_extract_minus_sign() else None

    def fdiff(self, argindex: int = 1) -> Expr:
        x, y = self.args
        if argindex not in (1, 2):
            raise ArgumentIndexError(self, argindex)
        turn = -sin(2 * x * y) if argindex == 1 else cos(2 * x * y)
        return 2 * exp(y**2 - x**2) * turn / sqrt(pi)


__all__ = ["ImErf", "OwenT", "ReErf", "SignCorrelation", "complex_erf", "owen_t", "sign_correlation"]
