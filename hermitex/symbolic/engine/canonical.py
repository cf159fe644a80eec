"""(p F G)' = (p' + (B - A z) p) F G + p F G': Stein's recursion, F = exp(-A z^2/2 + B z + s), G = prod erf(a_i z + b_i)

Integrated over (lo, hi), it brings every polynomial times F G to the integrals of F G alone, and each step by parts
removes one error function, so that all ends in four bases: the mass of an interval, the sign correlation of
`special` for one error function on a half line or two on the line, and zero by parity.
"""

from __future__ import annotations

from functools import lru_cache
from math import factorial
from typing import NamedTuple

from sympy import Add, Expr, I, S, atan, erf, erfc, exp, expand, fraction, oo, pi, sqrt, together

from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.engine.canonical_reading import Diverges, ErfWeight, NotCanonical, Polynomial, Refusal, Sum
from hermitex.symbolic.engine.emission import Emission, add, assemble, real_part, twice_real
from hermitex.symbolic.engine.rational_tidying import arc, conjugated, is_zero, multiplied_out, positive, root, split_complex, tidy
from hermitex.symbolic.special import OwenT, SignCorrelation


class Weight(NamedTuple):
    """exp(-A z^2/2 + B z + s) on (lo, hi)."""

    A: Expr
    B: Expr
    s: Expr
    lo: Expr
    hi: Expr

    @property
    def whole(self) -> bool:
        return self.lo == -oo and self.hi == oo

    @property
    def peak(self) -> Expr:
        """log of the integral over the line, less log(sqrt(2 pi/A)): B^2/(2A) + s."""
        return tidy(self.s + self.B**2 * _inverse(self.A) / 2)

    def exponent(self, x: Expr) -> Expr:
        return tidy(expand(self.s + self.B * x - self.A * x**2 / 2))

    def standard(self, x: Expr) -> Expr:
        """x in units of the weight's own normal: sqrt(A) (x - B/A)."""
        return x if x.is_infinite else tidy(root(self.A) * (x - self.B / self.A))


def integrate(terms: Sum, lo: Expr = -oo, hi: Expr = oo, *, real: bool = True) -> Expr:
    """int_lo^hi f(z) exp(-z^2/2) dz / sqrt(2 pi) for f in canonical form.

    Parameters
    ----------
    terms : what `reading.read` gave.
    lo, hi : exact end points, lo < hi.
    real : f is real, so that conjugate terms are taken together.

    Raises
    ------
    Refusal : positivity of A is not provable, or a base has no closed form.
    Diverges : the integral does not exist.

    Examples
    --------
    >>> from sympy import Symbol, erf
    >>> from hermitex.symbolic.engine.canonical_reading import read
    >>> z = Symbol('z', real=True)
    >>> integrate(read(erf(z/2 + 1)*z, z))
    sqrt(6)*exp(-2/3)/(3*sqrt(pi))
    """
    out: Emission = {}
    done: set[ErfWeight] = set()
    for law, poly in terms.items():
        checkpoint("integrating exactly")
        poly = {n: tidy(c) for n, c in poly.items() if not is_zero(c)}
        if not poly or law in done:
            continue
        mate = ErfWeight(conjugated(law.quad), conjugated(law.lin), conjugated(law.const), law.erfs)
        complex_law = mate != law
        single: Emission = {}
        try:
            _one_law(single, law, poly, (lo, hi))
        except Diverges as alone:
            if any(other.erfs for other in terms):  # 1 - erf(z) decays, and its terms do not
                raise Refusal(str(alone)) from alone
            raise
        if complex_law and real:
            if mate not in terms:
                raise Refusal(f"its real part is not seen in {exp(law.lin)}")
            done.add(mate)
            single = twice_real(single)
        elif real and any(special.has(I) or c.has(I) for (_, special), c in single.items()):
            single = real_part(single)
        for key, c in single.items():
            out[key] = out.get(key, S.Zero) + c
    return assemble(out)


def _one_law(out: Emission, law: ErfWeight, poly: Polynomial, span: tuple[Expr, Expr]) -> None:
    A = tidy(1 - 2 * law.quad)
    weight = Weight(A, law.lin, law.const, *span)
    decay, _ = split_complex(A)
    if not positive(decay):
        if not (weight.lo.is_infinite or weight.hi.is_infinite):
            if decay.is_negative and not law.erfs and not A.has(I) and not law.lin.has(I):
                _moments(out, weight, poly, ())  # erf of an imaginary argument is erfi
                return
            raise Refusal("a growing weight on an interval is integrated without error functions only")
        if not law.erfs and (decay.is_negative or (decay.is_nonpositive and weight.whole)):
            raise Diverges(f"it grows like exp(a*x**2) with a = {tidy(law.quad)}; the Gaussian allows a < 1/2")
        raise Refusal(f"it needs {decay} > 0, which is not provable")
    if A.has(I) and (not weight.whole or law.erfs):
        raise Refusal("a quadratic phase is integrated on the whole line only")
    _moments(out, weight, poly, law.erfs)


# -- Stein's recursion -----------------------------------------------------------------------------------------------
def _moments(out: Emission, weight: Weight, poly: Polynomial, erfs: tuple[tuple[Expr, Expr], ...]) -> None:
    """Add int poly F prod erf / sqrt(2 pi) to `out`."""
    if len(erfs) == 1 and weight.whole:
        _one_erf(out, weight, poly, *erfs[0])
        return
    mean, q = _divide(weight, poly)
    if not is_zero(mean):
        _base(out, weight, mean, erfs)
    if not q:
        return
    for x, side in ((weight.hi, 1), (weight.lo, -1)):
        if not x.is_infinite:
            value = tidy(multiplied_out(_at(q, x)))
            for a, b in erfs:
                value *= erf(tidy(a * x + b))
            add(out, weight.exponent(x), S.One, side * value / sqrt(2 * pi))
    for i, (a, b) in enumerate(erfs):
        # d erf(a z + b) = 2a/sqrt(pi) exp(-(a z + b)^2) dz
        narrower = Weight(tidy(weight.A + 2 * a**2), tidy(weight.B - 2 * a * b), tidy(weight.s - b**2),
                          weight.lo, weight.hi)
        factor = -2 * a / sqrt(pi)
        _moments(out, narrower, {n: factor * c for n, c in q.items()}, erfs[:i] + erfs[i + 1:])


def _divide(weight: Weight, poly: Polynomial) -> tuple[Expr, Polynomial]:
    """poly F = mean F + (q F)': the mean of `poly` under the weight, and q."""
    inverse, B = _inverse(weight.A), weight.B
    rest, q = dict(poly), {}
    for n in range(max(poly), 0, -1):
        c = rest.pop(n, S.Zero)
        if c == 0:
            continue
        q[n - 1] = lead = tidy(-c * inverse)
        # (lead z^(n-1) F)' = lead ((n-1) z^(n-2) + B z^(n-1) - A z^n) F
        if n > 1:
            rest[n - 2] = tidy(rest.get(n - 2, S.Zero) - (n - 1) * lead)
        if B != 0:
            rest[n - 1] = tidy(rest.get(n - 1, S.Zero) - B * lead)
    return rest.get(0, S.Zero), q


def _one_erf(out: Emission, weight: Weight, poly: Polynomial, a: Expr, b: Expr) -> None:
    """E[He_k(t) erf(al t + be)] = (al/g)^k erf^(k)(be/g), g = sqrt(1 + 2 al^2): derivatives, never monomials."""
    scale = root(weight.A)
    shift = tidy(weight.B * _inverse(weight.A))
    al, be = a / scale, tidy(a * shift + b)
    g = root(1 + 2 * al**2)
    w, slope = tidy(be / g), tidy(al / g)
    hermite = hermite_coefficients(affine(poly, 1 / scale, shift))
    mean = hermite.pop(0, S.Zero)
    front = 1 / scale
    add(out, weight.peak, erf(w), front * mean)
    terms = [c * slope**k * _erf_derivative(k, w) for k, c in hermite.items()]
    add(out, tidy(weight.peak - w**2), S.One, front * tidy(Add(*terms)))


def _erf_derivative(k: int, w: Expr) -> Expr:
    """erf^(k)(w) exp(w^2) = (-1)^(k-1) (2/sqrt(pi)) H_(k-1)(w), H the physicists' Hermite polynomials."""
    n = k - 1
    total = Add(*((-1)**j * factorial(n) * (2 * w) ** (n - 2 * j) / (factorial(j) * factorial(n - 2 * j))
                  for j in range(n // 2 + 1)))
    return (-1)**n * 2 * total / sqrt(pi)


# -- bases -----------------------------------------------------------------------------------------------------------
def _base(out: Emission, weight: Weight, c: Expr, erfs: tuple[tuple[Expr, Expr], ...]) -> None:
    """Add c int F prod erf / sqrt(2 pi)."""
    if weight.A.has(I):
        # A^(-1/2) = |A|^(-1/2) exp(-i arg(A)/2), and Re A > 0
        x, y = split_complex(weight.A)
        size = root(x**2 + y**2)
        add(out, weight.peak - I * atan(y / x) / 2, S.One, c / sqrt(size))
        return
    scale = root(weight.A)
    lo, hi = weight.standard(weight.lo), weight.standard(weight.hi)
    shift = tidy(weight.B * _inverse(weight.A))
    lines = [(tidy(a / scale), tidy(a * shift + b)) for a, b in erfs]
    for special, factor in _standard_base(lo, hi, lines, weight.peak != 0):
        add(out, weight.peak, special, c * factor / scale)


def _standard_base(lo: Expr, hi: Expr, lines: list[tuple[Expr, Expr]], tails: bool) -> list[tuple[Expr, Expr]]:
    """int_lo^hi phi(t) prod erf(al_i t + be_i) dt as [(special function, factor)]."""
    whole = lo == -oo and hi == oo
    centred = all(be.is_zero for _, be in lines)
    if not lines:
        return [(S.One, S.One)] if whole else _mass(lo, hi, tails)
    if whole and len(lines) % 2 and centred:
        return []
    if whole and len(lines) == 1:
        (al, be), = lines
        return [(erf(tidy(be / root(1 + 2 * al**2))), S.One)]
    if whole and len(lines) == 2:
        return _correlation(*lines)
    if len(lines) == 1:
        up, down = _one_erf_below(hi, *lines[0]), _one_erf_below(lo, *lines[0])
        return up + [(special, -factor) for special, factor in down]
    if centred and len(lines) == 2 and {lo, hi} in ({S.Zero, oo}, {S.Zero, -oo}):
        return [(special, factor / 2) for special, factor in _correlation(*lines)]
    where = "the line" if whole else "an interval"
    raise Refusal(f"a product of {len(lines)} error functions on {where} has no closed form in the rule table")


def _mass(lo: Expr, hi: Expr, tails: bool) -> list[tuple[Expr, Expr]]:
    """Phi(hi) - Phi(lo); as tails (erfc) if it has a large factor, so that nothing cancels."""
    half = S.Half
    if lo == -oo or hi == oo:
        end = hi if lo == -oo else -lo
        if tails:
            tail = erfc(tidy(-end / sqrt(2)))  # SymPy writes erfc(-x) as 2 - erfc(x)
            return [(S.One, S.One), (erfc(tidy(end / sqrt(2))), -half)] if tail.is_Add else [(tail, half)]
        return [(S.One, half), (_erf(end / sqrt(2)), half)]
    if lo == -hi:
        return [(erf(tidy(hi / sqrt(2))), S.One)]
    if tails and lo.is_nonnegative:
        return [(erfc(tidy(lo / sqrt(2))), half), (erfc(tidy(hi / sqrt(2))), -half)]
    if tails and hi.is_nonpositive:
        return [(erfc(tidy(-hi / sqrt(2))), half), (erfc(tidy(-lo / sqrt(2))), -half)]
    return [(_erf(hi / sqrt(2)), half), (_erf(lo / sqrt(2)), -half)]


def _erf(x: Expr) -> Expr:
    """erf, its sign outside: erf(-kappa - 1) = -erf(kappa + 1)."""
    x = tidy(x)
    return -erf(-x) if any(f.is_Add and f.could_extract_minus_sign() for f in (x, *x.args)) else erf(x)


def _correlation(first: tuple[Expr, Expr], second: tuple[Expr, Expr]) -> list[tuple[Expr, Expr]]:
    """E[erf(a t + b) erf(a' t + b')] is the correlation of sign(sqrt(2) a t - x + ..) with its fellow."""
    (a, b), (aa, bb) = first, second
    one, two = tidy(1 + 2 * a**2), tidy(1 + 2 * aa**2)
    rho = tidy(2 * a * aa / (root(one) * root(two)))
    side = root(tidy(1 + 2 * a**2 + 2 * aa**2)) / (root(one) * root(two))
    return _signs(tidy(b * sqrt(2) / root(one)), tidy(bb * sqrt(2) / root(two)), (rho, side))


def _one_erf_below(x: Expr, a: Expr, b: Expr) -> list[tuple[Expr, Expr]]:
    """int_-oo^x phi(t) erf(a t + b) dt = erf(w)/2 + E[sign(x - t) sign(a t + b - noise)]/2."""
    if x == -oo:
        return []
    g = root(1 + 2 * a**2)
    w = tidy(b / g)
    if x == oo:
        return [(erf(w), S.One)]
    rho, side = tidy(-sqrt(2) * a / g), 1 / g
    found = [(erf(w), S.Half)] if w != 0 else []
    return found + [(s, f / 2) for s, f in _signs(x, tidy(sqrt(2) * w), (rho, side))]


def _signs(h: Expr, k: Expr, angle: tuple[Expr, Expr]) -> list[tuple[Expr, Expr]]:
    """E[sign(X + h) sign(Y + k)] at correlation rho, side = sqrt(1 - rho^2), as [(special, factor)]."""
    rho, side = angle
    if any(e.has(I) for e in (h, k, rho)):
        raise Refusal("Owen's T of a complex argument is not in the rule table")
    slope = tidy(rho / side)
    if h.is_zero and k.is_zero:
        return [(arc(slope), 2 / pi)]
    if h.is_zero or k.is_zero:
        return [(OwenT(k if h.is_zero else h, slope), S(4))]
    ratio = tidy(k / h)
    if h == k:
        return [(S.One, S.One), (OwenT(h, tidy((1 - rho) / side)), S(-8))]
    if h == -k:
        return [(S.One, S.NegativeOne), (OwenT(h, tidy((1 + rho) / side)), S(8))]
    if not ratio.is_nonzero:
        return [(SignCorrelation(h, k, rho), S.One)]
    # tan(asin rho) = slope; the three angles add up to +-pi/2 or 0 at most, so no simplification is lost
    a, b = tidy((ratio - rho) / side), tidy((1 / ratio - rho) / side)
    angles = S.Half if ratio.is_positive else -S.Half
    return [(S.One, angles * 2), (OwenT(h, a), S(-4)), (OwenT(k, b), S(-4))]


# -- polynomials -----------------------------------------------------------------------------------------------------
def affine(poly: Polynomial, scale: Expr, shift: Expr) -> Polynomial:
    """The coefficients of poly(scale t + shift)."""
    if shift == 0:
        return poly if scale == 1 else {n: c * scale**n for n, c in poly.items()}
    from math import comb

    found: Polynomial = {}
    for n, c in poly.items():
        for k in range(n + 1):
            found[k] = found.get(k, S.Zero) + c * comb(n, k) * scale**k * shift ** (n - k)
    return {n: tidy(c) for n, c in found.items()}


def hermite_coefficients(poly: Polynomial) -> Polynomial:
    """h_k with poly(t) = sum_k h_k He_k(t): t^n = sum_j n!/(2^j j! (n-2j)!) He_(n-2j)(t)."""
    found: Polynomial = {}
    for n, c in poly.items():
        for j in range(n // 2 + 1):
            k = n - 2 * j
            weight = factorial(n) // (2**j * factorial(j) * factorial(k))
            found[k] = found.get(k, S.Zero) + c * weight
    return {k: e for k, c in found.items() if (e := tidy(c)) != 0}


def _at(q: Polynomial, x: Expr) -> Expr:
    return Add(*(c * x**n for n, c in q.items()))


@lru_cache(maxsize=1024)
def _inverse(A: Expr) -> Expr:
    """1/A as one fraction; of a complex A with its denominator made real."""
    if not A.has(I):
        num, den = fraction(together(A))
        return den / num
    x, y = split_complex(A)
    return (x - I * y) / tidy(x**2 + y**2)


__all__ = ["Diverges", "NotCanonical", "Refusal", "affine", "assemble", "hermite_coefficients", "integrate"]
