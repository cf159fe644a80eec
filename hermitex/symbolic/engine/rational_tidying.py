"""a/(a + a b) = 1/(1 + b): rational tidying of the small expressions that a closed form is made of.

Radicands, exponents and coefficients are brought to the shorter of their written and their cancelled form. Where a
derivation put s for sqrt(1 - rho^2), the relation rho^2 = 1 - s^2 is used while it runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache

from sympy import (
    Add,
    Dummy,
    Expr,
    Mul,
    Pow,
    Rational,
    S,
    Symbol,
    asin,
    atan,
    erf,
    erfc,
    exp,
    expand,
    factor,
    fraction,
    ilcm,
    sqrt,
    together,
)

from hermitex.symbolic.formula_size import DECIDED, EXPANDED, operations
from hermitex.symbolic.special import OwenT, SignCorrelation

_relations: ContextVar[tuple[tuple[Expr, Expr], ...]] = ContextVar("relations", default=())
_circles: ContextVar[tuple[tuple[Symbol, Symbol], ...]] = ContextVar("circles", default=())
_MADE = (erf, erfc, OwenT, SignCorrelation)


@contextmanager
def relations(found: tuple[tuple[Expr, Expr], ...]) -> Iterator[None]:
    """Use the polynomial relations old -> new (rho**2 -> 1 - s**2) in every `tidy` inside."""
    token = _relations.set(_relations.get() + found)
    circles = tuple((old.base, s) for old, new in found if old.is_Pow
                    for s in new.free_symbols if s.is_positive and new == 1 - s**2)
    other = _circles.set(_circles.get() + circles)
    try:
        yield
    finally:
        _relations.reset(token)
        _circles.reset(other)


def positive(e: Expr) -> bool | None:
    """Is e > 0 provable? With rho = (q^2 - p^2)/(q^2 + p^2), s = 2pq/(q^2 + p^2) wherever rho^2 + s^2 = 1.

    >>> rho, s = Symbol("rho", real=True), Symbol("s", positive=True)
    >>> with relations(((rho**2, 1 - s**2),)):
    ...     positive(1 - rho**2 - s**2/2), positive(1 - rho**2 - 2*s**2)
    (True, False)
    """
    known = e.is_positive
    if known is not None or operations(e) > DECIDED:
        return known
    swap: dict[Expr, Expr] = {}
    for rho, s in _circles.get():
        p, q = Symbol("p" + s.name, positive=True), Symbol("q" + s.name, positive=True)
        swap |= {rho: (q**2 - p**2) / (q**2 + p**2), s: 2 * p * q / (q**2 + p**2)}
    return factor(together(e.xreplace(swap))).is_positive


def tidy(e: Expr) -> Expr:
    """The shortest of `e` as written, expanded and cancelled; equal to `e` (under the relations in force)."""
    return e if e.is_Atom or not e.has(Add) else _tidied(e, _relations.get())


@lru_cache(maxsize=4096)  # one integral asks for the same few parts again and again
def _tidied(e: Expr, relations: tuple[tuple[Expr, Expr], ...]) -> Expr:
    if not e.free_symbols:
        return _shortest(e, expand(e))
    size = operations(e)
    if size > DECIDED:
        return e
    for old, new in relations:
        if e.has(old.base if old.is_Pow else old):
            num, den = fraction(together(e))
            e = expand(num).subs(old, new) / expand(den).subs(old, new)
    light, held = hold_made(e)
    if not any(f.has(Add) and not (f.is_Pow and f.exp.is_negative) for f in Mul.make_args(light)):
        return e  # sums in denominators alone: multiplied out they are longer
    grown = expand(light)
    if grown.is_Add and any(p.exp.is_negative for p in grown.atoms(Pow)):
        steep, powers = hold_steep(light)
        return _shortest(light, grown, factor(together(steep)).xreplace(powers)).xreplace(held)
    return _shortest(light, grown).xreplace(held)


def hold_made(e: Expr, *also: type[Expr]) -> tuple[Expr, dict[Expr, Expr]]:
    """`e` with letters for error functions and roots of sums, tidied when they were made, and the meanings of the letters."""
    found: dict[Expr, Expr] = {s: s for s in e.atoms(*_MADE, *also)}
    found |= {p: p.base ** Rational(1, p.exp.q) for p in e.atoms(Pow) if p.base.is_Add and p.exp.is_Rational and p.exp.q > 1}
    swap = {s: _letter(unit) ** (s.exp.p if s != unit and unit.is_Pow else 1) for s, unit in found.items()}
    return e.xreplace(swap), {_letter(unit): unit for unit in found.values()}


@lru_cache(maxsize=4096)
def _letter(e: Expr) -> Symbol:
    """The same letter for the same expression, so that SymPy's caches know it."""
    return Dummy("e", real=e.is_real, positive=e.is_positive)


def compact(value: Expr) -> Expr:
    """A short form of an exact constant; a few elementary functions only, so simplification is cheap."""
    value, held = hold_steep(value)
    size = operations(value)
    forms = [value, value.expand(), value.together(), value.factor() if size < 200 else value]
    if size < DECIDED:
        forms.append(value.simplify())
    return _shortest(*(f.xreplace(held) for f in forms))


def hold_steep(e: Expr) -> tuple[Expr, dict[Expr, Expr]]:
    """`e` with letters for exponentials that are high powers of one another, and the meanings of the letters.

    SymPy reads exp(-0.6797**2/2) as a power 46199209 of exp(-1/200000000), and its dense polynomials fill the memory.
    """
    units: dict[Expr, list[tuple[Expr, Expr]]] = {}
    for power in e.atoms(exp):
        for term in Add.make_args(power.args[0]):
            coefficient, unit = term.as_coeff_Mul(rational=True)
            units.setdefault(unit, []).append((coefficient, power))
    most = 40  # the highest power of one exponential that polynomials are made of
    steep = {power: None for found in units.values() for power in [p for _, p in found]
             if max(abs(q) for q, _ in found)*ilcm(1, *(q.q for q, _ in found)) > most}
    held = {Dummy("e", positive=True): power for power in steep}
    return e.xreplace({power: d for d, power in held.items()}), held


def root(e: Expr) -> Expr:
    """sqrt(e) for a positive e, with the square factors of a tidied radicand outside."""
    e = tidy(e)
    num, den = fraction(together(e)) if e.is_Add else (e, S.One)
    return sqrt(num) / sqrt(den) if den is not S.One else sqrt(e)


def arc(x: Expr) -> Expr:
    """atan(x), as asin(x/sqrt(1 + x^2)) where that is the shorter (atan(rho/sqrt(1 - rho^2)) = asin(rho))."""
    plain = atan(x)
    if not x.free_symbols or not _relations.get():
        return plain
    return _shortest(plain, asin(tidy(x / root(1 + x**2))))


def multiplied_out(e: Expr) -> Expr:
    """`e` expanded, but no denominator and no function of it: 1/(1 + exp(z))^2 stays what it is."""
    held = {p: Dummy("p") for p in e.atoms(Pow)
            if isinstance(p.base, Add) and not (p.exp.is_Integer and p.exp.is_positive)}
    flat = e.xreplace(held) if held else e
    grown = expand(flat, power_exp=False, power_base=False, log=False, trig=False)
    return grown.xreplace({d: p for p, d in held.items()}) if held else grown


def is_zero(e: Expr) -> bool:
    """True if `e` is zero by expansion."""
    return bool(e.is_zero) or (e.has(Add) and operations(e) < EXPANDED and expand(e).is_zero is True)


def split_complex(e: Expr) -> tuple[Expr, Expr]:
    """(Re e, Im e) of a polynomial in I over real quantities."""
    if not e.has(S.ImaginaryUnit):
        return e, S.Zero
    real, imaginary = [], []
    for term in Add.make_args(expand(e)):
        if not term.has(S.ImaginaryUnit):
            real.append(term)
            continue
        rest = [f for f in Mul.make_args(term) if f != S.ImaginaryUnit]
        if any(f.has(S.ImaginaryUnit) for f in rest):
            a, b = term.as_real_imag()
            real.append(a)
            imaginary.append(b)
        else:
            imaginary.append(Mul(*rest))
    return Add(*real), Add(*imaginary)


def conjugated(e: Expr) -> Expr:
    """The complex conjugate of an expression over real symbols."""
    return e.xreplace({S.ImaginaryUnit: -S.ImaginaryUnit}) if e.has(S.ImaginaryUnit) else e


def depends(e: Expr, x: Symbol) -> bool:
    """True if x occurs free in `e`."""
    return x in e.free_symbols


def _shortest(*forms: Expr) -> Expr:
    different = list(dict.fromkeys(forms))
    return min(different, key=operations) if len(different) > 1 else different[0]
