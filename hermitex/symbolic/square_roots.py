"""K(sqrt f_1, ..., sqrt f_n), K = Q(t_1, ..., t_m): exact constants with square roots, in a form that equal ones share.

The t are what is neither arithmetic nor a square root in a constant: erf(1/2), pi, log 3. The f are primes and irreducible
polynomials in the t. Nothing is known of the t but their signs, so what becomes 0 here is 0; the converse is not claimed.
"""

from __future__ import annotations

from math import prod
from typing import Any

from sympy import QQ, Add, Dummy, Expr, Mul, Pow, factorint, sqrt

from hermitex.symbolic.breaks.order import sign_of
from hermitex.symbolic.budget import unless_refused

Element = dict[frozenset[int], Any]  # {roots: coefficient in K} of a sum of products of different roots


def without_roots_below(value: Expr) -> Expr:
    """The constant with no square root in a denominator, alike for equal ones; itself where a root holds a root, or it is long.

    Examples
    --------
    >>> from sympy import erf
    >>> a = erf(1)
    >>> without_roots_below((1 - a**2)/sqrt(2*(1 + a)**2)/(1 - a)), without_roots_below(a/sqrt(a**2 + 1) - sqrt(a**2/(1 + a**2)))
    (sqrt(2)/2, 0)
    """
    letters: dict[Expr, Dummy] = {}
    most = 1000  # operations of a constant that is worth the work
    plain = _plain(value, letters) if value.count_ops() <= most else value
    try:
        return _Field({t: x for x, t in letters.items()}).reduced(plain) if letters else value
    except _Unsuited:
        return value


class _Unsuited(Exception):
    """A root in a root, many roots or terms, a factor whose sign is not proved, or a division by 0."""


def _plain(value: Expr, letters: dict[Expr, Dummy]) -> Expr:
    """The constant with a letter for whatever is neither arithmetic nor a square root."""
    if value.is_Rational:
        return value
    if isinstance(value, Add | Mul) or (isinstance(value, Pow) and value.exp.is_Rational and value.exp.q <= 2):
        return value.func(*(_plain(x, letters) for x in value.args), evaluate=False)
    return letters.setdefault(value, Dummy(f"t{len(letters)}", real=True))


class _Field:
    """K(sqrt f_1, ...) for letters that mean numbers; an element is a dict from sets of roots to coefficients in K."""

    def __init__(self, numbers: dict[Dummy, Expr]) -> None:
        self.numbers, self.K = numbers, QQ.frac_field(*numbers)
        self.roots: list[Any] = []  # the f, elements of K

    def reduced(self, plain: Expr) -> Expr:
        """A constant in its normal form."""
        return Add(*(Mul(self._number(c), *(sqrt(self._number(self.roots[i])) for i in sorted(held)))
                     for held, c in self._of(plain).items()))

    def _number(self, c: Any) -> Expr:
        return self.K.to_sympy(c).xreplace(self.numbers)

    def _of(self, plain: Expr) -> Element:
        if isinstance(plain, Add):
            total: Element = {}
            for x in plain.args:
                total = self._plus(total, self._of(x))
            return total
        if isinstance(plain, Mul):
            product: Element = {frozenset(): self.K.one}
            for x in plain.args:
                product = self._times(product, self._of(x))
            return product
        if isinstance(plain, Pow):
            base = self._of(plain.base)
            base = base if plain.exp.is_Integer else self._root(base)
            return self._power(base, int(plain.exp.p))
        return {frozenset(): self.K.from_sympy(plain)} if plain != 0 else {}

    def _plus(self, a: Element, b: Element) -> Element:
        total = {s: a.get(s, self.K.zero) + b.get(s, self.K.zero) for s in {*a, *b}}
        return {s: c for s, c in total.items() if c}

    def _times(self, a: Element, b: Element) -> Element:
        total: Element = {}
        terms = 24  # of two coefficients that are multiplied: common factors of longer ones take seconds, in steps no alarm ends
        for s, c in a.items():
            for r, d in b.items():
                for i in s & r:
                    d = d*self.roots[i]
                if sum(len(x.numer) + len(x.denom) for x in (c, d)) > terms:
                    raise _Unsuited
                total[s ^ r] = total.get(s ^ r, self.K.zero) + c*d
        return {s: c for s, c in total.items() if c}

    def _power(self, a: Element, n: int) -> Element:
        a = self._inverse(a) if n < 0 else a
        product: Element = {frozenset(): self.K.one}
        for _ in range(abs(n)):
            product = self._times(product, a)
        return product

    def _inverse(self, a: Element) -> Element:
        """1/a = a'/(a a'), a' with the other sign of a root, for one root after the other."""
        above: Element = {frozenset(): self.K.one}
        while held := frozenset().union(*a):
            i = min(held)
            other = {s: -c if i in s else c for s, c in a.items()}
            a, above = self._times(a, other), self._times(above, other)
        if not a:
            raise _Unsuited
        return {s: c/a[frozenset()] for s, c in above.items()}

    def _root(self, a: Element) -> Element:
        """sqrt(p/q) = sqrt(p q)/|q| by the factors of p q: of even power outside, each with the sign that makes it positive."""
        if not a:
            return {}
        if set(a) != {frozenset()}:
            raise _Unsuited
        (over,) = a.values()
        content, factors = (over.numer*over.denom).factor_list()
        outside: Element = {frozenset(): self.K.one/self._positive(self.K(over.denom))[0]}
        under: list[Any] = []
        for f, n in factors:
            f, sign = self._positive(self.K(f))
            content *= sign**n
            outside = self._times(outside, {frozenset(): f**(n//2)})
            under += [f]*(n % 2)
        if content < 0:
            raise _Unsuited
        largest_prime = 2**14  # up to which factors of an integer are looked for
        primes = factorint(int(content.numerator*content.denominator), limit=largest_prime)
        outside = self._times(outside, {frozenset(): self.K(prod(p**(n//2) for p, n in primes.items()))/content.denominator})
        under += [self.K(p) for p, n in primes.items() if n % 2]
        return self._times(outside, {frozenset(map(self._index, under)): self.K.one})

    def _index(self, f: Any) -> int:
        roots = 6  # different ones: an element has up to 2^6 coefficients
        if f not in self.roots:
            if len(self.roots) == roots:
                raise _Unsuited
            self.roots.append(f)
        return self.roots.index(f)

    def _positive(self, f: Any) -> tuple[Any, int]:
        """|f| and the sign of f, an element of K."""
        sign = unless_refused(lambda: sign_of(self._number(f)))
        if not sign:
            raise _Unsuited
        return (f, 1) if sign > 0 else (-f, -1)
