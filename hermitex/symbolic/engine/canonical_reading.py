"""f(x) = sum_j p_j(x) exp(a_j x^2 + b_j x + c_j) prod_i erf(alpha_ij x + beta_ij): the canonical form of an integrand.

sin, cos, sinh, cosh become exponentials, erfc becomes 1 - erf. An integrand of this form (without a switch) has Gaussian
moments by the recursions of `canonical`; another one is refused with the factor that is in the way.
"""

from __future__ import annotations

from typing import NamedTuple

from sympy import Add, Expr, I, Mul, Pow, S, Symbol, cos, cosh, default_sort_key, erf, erfc, exp, log, sin, sinh

from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.engine.rational_tidying import depends, is_zero, tidy

Polynomial = dict[int, Expr]


class NotCanonical(Exception):
    """The integrand holds a factor outside the canonical form."""

    def __init__(self, factor: Expr, why: str = "") -> None:
        self.factor, self.why = factor, why or "it is not a product of polynomials, exponentials and error functions"
        super().__init__(f"{factor}: {self.why}")


class Refusal(Exception):
    """No exact rule applies to a term, with the reason."""


class Diverges(Exception):
    """A term is provably not integrable."""


class ErfWeight(NamedTuple):
    """exp(quad x^2 + lin x + const) prod erf(a x + b): what multiplies a polynomial."""

    quad: Expr = S.Zero
    lin: Expr = S.Zero
    const: Expr = S.Zero
    erfs: tuple[tuple[Expr, Expr], ...] = ()

    def times(self, other: ErfWeight) -> ErfWeight:
        """The product: exponents add, error functions join."""
        if other is UNIT or other == UNIT:
            return self
        if self == UNIT:
            return other
        erfs = self.erfs + other.erfs
        if len(self.erfs) and len(other.erfs):
            erfs = tuple(sorted(erfs, key=lambda ab: (default_sort_key(ab[0]), default_sort_key(ab[1]))))
        return ErfWeight(self.quad + other.quad, self.lin + other.lin, self.const + other.const, erfs)


UNIT = ErfWeight()
Sum = dict[ErfWeight, Polynomial]


def read(e: Expr, x: Symbol) -> Sum:
    """The canonical form of `e` in x.

    Raises
    ------
    NotCanonical : names the factor that has no place in it.

    Examples
    --------
    >>> from sympy.abc import x
    >>> from sympy import exp
    >>> read((x + 1)**2 * exp(-x**2), x)
    {ErfWeight(quad=-1, lin=0, const=0, erfs=()): {0: 1, 1: 2, 2: 1}}
    """
    if e == x:
        return {UNIT: {1: S.One}}
    if not depends(e, x):
        return {UNIT: {0: e}}
    if isinstance(e, Add):
        total: Sum = {}
        for a in e.args:
            _merge(total, read(a, x))
        return total
    if isinstance(e, Mul):
        found = {UNIT: {0: S.One}}
        for a in e.args:
            found = multiply(found, read(a, x))
        return found
    if isinstance(e, Pow):
        return _read_power(e, x)
    return _read_function(e, x)


def _read_power(e: Expr, x: Symbol) -> Sum:
    base, power = e.as_base_exp()
    if not depends(base, x) and base.is_positive:
        return _exponential(power * log(base), x)
    if base is S.Exp1:
        return _exponential(power, x)
    if depends(power, x):
        raise NotCanonical(e)
    largest_power = 400  # of a sum: 401 terms; a power of x itself is one term
    if power.is_Integer and power.is_positive:
        if power > (largest_power if base != x else 10 * largest_power):
            raise NotCanonical(e, f"powers above {largest_power} are not expanded")
        if base == x:
            return {UNIT: {int(power): S.One}}
        return _raise(read(base, x), int(power))
    inner = read(base, x)
    if len(inner) != 1:
        raise NotCanonical(e)
    (law, poly), = inner.items()
    if law.erfs or set(poly) != {0} or not (power.is_integer or (poly[0].is_positive and power.is_real)):
        raise NotCanonical(e)
    # (c exp(u))**p = c**p exp(p u)
    return {ErfWeight(law.quad * power, law.lin * power, law.const * power): {0: poly[0]**power}}


def _read_function(e: Expr, x: Symbol) -> Sum:
    if len(e.args) != 1:
        raise NotCanonical(e)
    u = e.args[0]
    if isinstance(e, exp):
        return _exponential(u, x)
    if isinstance(e, cosh | sinh):
        odd = isinstance(e, sinh)
        return _two(_exponential(u, x), S.Half, _exponential(-u, x), -S.Half if odd else S.Half)
    if isinstance(e, cos | sin):
        up, down = _exponential(I * u, x), _exponential(-I * u, x)
        return _two(up, -I / 2, down, I / 2) if isinstance(e, sin) else _two(up, S.Half, down, S.Half)
    if isinstance(e, erf | erfc):
        line = polynomial(u, x)
        if max(line) > 1:
            raise NotCanonical(e, "its argument is not linear")
        if max(line) == 0:  # what holds x in it cancels
            return {UNIT: {0: e.func(line[0])}}
        found = {ErfWeight(erfs=((line[1], line.get(0, S.Zero)),)): {0: S.One}}
        return found if isinstance(e, erf) else _two({UNIT: {0: S.One}}, S.One, found, S.NegativeOne)
    raise NotCanonical(e)


def polynomial(u: Expr, x: Symbol) -> Polynomial:
    """The coefficients of `u`, a polynomial in x."""
    found = read(u, x)
    if set(found) - {UNIT}:
        raise NotCanonical(u, "its argument is not a polynomial")
    poly = {n: tidy(c) for n, c in found.get(UNIT, {}).items()}
    return {n: c for n, c in poly.items() if n == 0 or not is_zero(c)} or {0: S.Zero}


def _exponential(u: Expr, x: Symbol) -> Sum:
    poly = polynomial(u, x)
    if max(poly) > 2:
        raise NotCanonical(exp(u), "its exponent is not a polynomial of degree at most two")
    return {ErfWeight(poly.get(2, S.Zero), poly.get(1, S.Zero), poly.get(0, S.Zero)): {0: S.One}}


# -- algebra ---------------------------------------------------------------------------------------------------------
def multiply(f: Sum, g: Sum) -> Sum:
    """The product of two canonical sums."""
    found: Sum = {}
    for law, p in f.items():
        checkpoint("expanding a product")
        for other, q in g.items():
            _merge(found, {law.times(other): _product(p, q)})
    return found


def _product(p: Polynomial, q: Polynomial) -> Polynomial:
    found: Polynomial = {}
    for i, a in p.items():
        for j, b in q.items():
            found[i + j] = found.get(i + j, S.Zero) + a * b
    return found


def _raise(f: Sum, n: int) -> Sum:
    result = None
    while n:
        if n & 1:
            result = f if result is None else multiply(result, f)
        n >>= 1
        if n:
            f = multiply(f, f)
    assert result is not None
    return result


def _two(f: Sum, a: Expr, g: Sum, b: Expr) -> Sum:
    total: Sum = {}
    _merge(total, {law: {n: a * c for n, c in p.items()} for law, p in f.items()})
    _merge(total, {law: {n: b * c for n, c in p.items()} for law, p in g.items()})
    return total


def _merge(total: Sum, more: Sum) -> None:
    for law, p in more.items():
        into = total.setdefault(law, {})
        for n, c in p.items():
            into[n] = into[n] + c if n in into else c
