"""sign(a)^2 = 1, |a| = a sign(a), max(a, b) = (a + b + |a - b|)/2, ... almost everywhere, which is enough for the exponents.

Each kink is written over signs s_i of factors whose zeros are a null set, powers are reduced by s_i^2 = 1, and a form that is
shorter then, or holds fewer signs, replaces the original. Values on null sets never matter to a label.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sympy import (
    Abs,
    Add,
    Dummy,
    Expr,
    Heaviside,
    Max,
    Min,
    Mul,
    Piecewise,
    Poly,
    Pow,
    S,
    cancel,
    ceiling,
    expand,
    factor_list,
    factor_terms,
    floor,
    frac,
    sign,
)
from sympy.polys.polyerrors import BasePolynomialError

from hermitex.errors import HermitexError
from hermitex.exponents.labels.sign_and_size import ODD_RISING, nonzero_almost_everywhere, null_zeros, sign_almost_everywhere
from hermitex.symbolic.budget import checkpoint, kept
from hermitex.symbolic.terms import connected
from hermitex.symbolic.weak import in_heavisides

_KINKS = (sign, Abs, Heaviside, Max, Min, floor, ceiling, Piecewise)


@kept(512)
def almost_everywhere(g: Expr) -> Expr:
    """A function that is equal to g but for a null set, without signs that cancel.

    Examples
    --------
    >>> from hermitex.symbols import z1, z2
    >>> almost_everywhere(sign(z1)**2*z2), almost_everywhere(sign(z1*z2)*sign(z1)), almost_everywhere(Abs(z1)*sign(z1))
    (z2, sign(z2), z1)
    >>> almost_everywhere(Max(z1, 0) - Max(-z1, 0) + Abs(z2)), almost_everywhere(Max(z1, z2)**2 + Min(z1, z2)**2)
    (z1 + Abs(z2), z1**2 + z2**2)
    >>> almost_everywhere(sign(z1*z2) + Abs(z1 + z2)), almost_everywhere(frac(z1))
    (Abs(z1 + z2) + sign(z1*z2), z1 - floor(z1))
    """
    g = g.replace(frac, lambda a: a - floor(a))
    longest = 200  # operations: multiplying out longer ones takes seconds, chosen by trial
    if not g.has(*_KINKS) or g.count_ops() > longest:
        return g
    if g.args:
        g = _rebuilt(g)
    if not g.has(*_KINKS):
        return g
    if isinstance(g, Add):
        return Add(*(_reduced(part) for part in _connected(g)))
    return _reduced(g)


def _rebuilt(g: Expr) -> Any:
    if isinstance(g, Piecewise):
        return g
    if isinstance(g, Pow) and isinstance(g.base, Heaviside) and g.exp.is_positive:
        return g.base
    return g.func(*(almost_everywhere(a) if isinstance(a, Expr) else a for a in g.args))


def _connected(g: Expr) -> Iterator[Expr]:
    """The terms of a sum, those together that hold a sign in common."""
    signs, opened = _Signs(), dict[Expr, Expr]()
    for term in Add.make_args(g):
        form = signs.opened(term)
        opened[form] = opened.get(form, S.Zero) + term
    return (Add(*(opened[form] for form in part)) for part in connected(opened, list(signs.symbol.values())))


def _reduced(g: Expr) -> Expr:
    """g over signs, with s^2 = 1; g itself where that holds as many signs and is not shorter."""
    checkpoint("comparing almost everywhere")
    signs = _Signs()
    opened = signs.opened(g)
    held = set(signs.symbol.values())  # some may be gone from the sum already
    if not held:
        return g
    try:
        p = Poly(opened, *sorted(held, key=str))
    except BasePolynomialError:
        return g
    most_terms = 400  # of a polynomial in signs, which is reduced term by term; chosen by trial
    if len(p.terms()) > most_terms:
        return g
    parts: dict[tuple[int, ...], Expr] = {}
    for powers, c in p.terms():
        odd = tuple(n % 2 if x in signs.argument else n for x, n in zip(p.gens, powers, strict=True))
        parts[odd] = parts.get(odd, S.Zero) + c
    parts = {m: c for m, c in ((m, expand(c)) for m, c in parts.items()) if c != 0}
    left = {x for m in parts for x, n in zip(p.gens, m, strict=True) if n}
    plain = Add(*(signs.closed(c, [(x, n) for x, n in zip(p.gens, m, strict=True) if n]) for m, c in parts.items()))
    shorter = plain.count_ops() < g.count_ops() + (3 if isinstance(g, Piecewise) else 0)
    return plain if len(left) < len(held) or shorter or plain.free_symbols < g.free_symbols else g


class _Signs:
    """The signs s_i of factors, and steps floor(a), as symbols."""

    def __init__(self) -> None:
        self.symbol: dict[Expr, Dummy] = {}
        self.argument: dict[Dummy, Expr] = {}   # of a sign
        self.step: dict[Dummy, Expr] = {}       # floor(a)

    # -- from kinks to signs
    def opened(self, e: Expr) -> Expr:
        """e with its kinks written over signs; what is not understood stays."""
        if not e.has(*_KINKS):
            return e
        if isinstance(e, (Add, Mul)):
            return e.func(*(self.opened(a) for a in e.args))
        if isinstance(e, Pow) and e.exp.is_Integer:
            base = self.opened(e.base)
            return base**e.exp if e.exp > 0 else self._inverse(base, e)
        if isinstance(e, Piecewise):
            try:
                steps = in_heavisides(e)
            except HermitexError:
                return e
            return e if steps.has(Piecewise) else self.opened(steps)
        if not isinstance(e, _KINKS) or (not isinstance(e, (sign, Heaviside)) and any(a.has(*_KINKS) for a in e.args)):
            return e
        return self._kink(e)

    def _kink(self, e: Expr) -> Expr:
        if isinstance(e, (Max, Min)):
            if len(e.args) != 2:
                return e
            a, b = e.args
            s = self.sign(a - b)
            return e if s is None else (a + b + (s if isinstance(e, Max) else -s)*(a - b))/2
        (a, *_) = e.args
        if isinstance(e, (floor, ceiling)):
            return self._steps(e, a)
        s = self.sign(a)
        if s is None:
            return e
        return s if isinstance(e, sign) else a*s if isinstance(e, Abs) else (1 + s)/2

    def _inverse(self, base: Expr, e: Expr) -> Expr:
        """1/(a s) = s/a."""
        rest, signs = base.as_independent(*self.argument, as_Add=False)
        if any(f not in self.argument for f in Mul.make_args(signs)) or rest.has(*_KINKS):
            return e
        return rest**e.exp*signs**-e.exp

    def sign(self, a: Expr) -> Expr | None:
        """sign(a) as a product of signs, or None where a may vanish on more than a null set."""
        constant, factors = _factors(a)
        out: Expr = sign(constant)
        for f in factors:
            while isinstance(f, ODD_RISING):
                f = f.args[0]
            if towards := sign_almost_everywhere(f):
                out = towards*out
                continue
            if not null_zeros(f):
                return None
            flip = f.could_extract_minus_sign()
            out = (-out if flip else out)*self._name(-f if flip else f, self.argument)
        return out

    def _steps(self, e: Expr, a: Expr) -> Expr:
        """floor(-a) = -floor(a) - 1 and ceiling(a) = floor(a) + 1, where a is nowhere constant."""
        if not a.free_symbols or not null_zeros(a - S(1)/7):
            return e
        flip = a.could_extract_minus_sign()
        low = self._name(-a if flip else a, self.step)
        down = -low - 1 if flip else low
        return down if isinstance(e, floor) else down + 1

    def _name(self, a: Expr, kind: dict[Dummy, Expr]) -> Dummy:
        key = (sign if kind is self.argument else floor)(a, evaluate=False)
        if key not in self.symbol:
            self.symbol[key] = Dummy(f"s_{len(self.symbol)}", real=True)
            kind[self.symbol[key]] = a
        return self.symbol[key]

    # -- and back
    def closed(self, c: Expr, powers: list[tuple[Dummy, int]]) -> Expr:
        """c prod s_i, with a s = |a|."""
        out = c
        for s, n in powers:
            if s in self.step:
                out = out*floor(self.step[s])**n
                continue
            a = self.argument[s]
            ratio = cancel(c/a) if len(powers) == 1 and c.count_ops() < 60 else None
            out = ratio*Abs(a) if ratio is not None and not _denominator(ratio).free_symbols else out*sign(a)
        return out


def _denominator(e: Expr) -> Expr:
    return e.as_numer_denom()[1]


def _factors(a: Expr) -> tuple[Expr, list[Expr]]:
    """A constant and factors with the sign of a: powers of even order are left out where they are not zero."""
    if a.is_polynomial(*a.free_symbols) and a.count_ops() < 60:
        try:
            constant, found = factor_list(a)
            return constant, [f for f, n in found if n % 2]
        except (BasePolynomialError, NotImplementedError):
            pass
    constant, rest = factor_terms(a).as_coeff_Mul()
    factors = []
    for f in Mul.make_args(rest):
        base, n = f.as_base_exp() if isinstance(f, Pow) else (f, S.One)
        if n.is_Integer:
            if n % 2:
                factors.append(base)
            elif not (sign_almost_everywhere(base) or nonzero_almost_everywhere(base)):
                factors.append(f)
        else:
            factors.append(f)
    return constant, factors
