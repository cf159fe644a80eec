"""c = P(sqrt 2, sqrt 3, ..., pi, exp(1/d), log 2, erf(1/2), ...): an exact constant as a polynomial in generators.

Radicals, exponentials and logarithms are written over primes and a common denominator first, so that what is equal by
their laws becomes the same generator. A polynomial that is then identically zero proves that the constant is zero; the
converse is not claimed (whether the generators are independent is an open question of number theory).
"""

from __future__ import annotations

from math import lcm

import sympy as sp
from sympy import Basic, Dummy, Expr, Integer, Rational
from sympy.polys.rings import PolyRing, ring

from hermitex.symbolic.budget import checkpoint

_PRIMES = 2**14  # up to which factors are looked for
_LARGE = 3000  # operations beyond which nothing is expanded
_POWER = 300  # of a sum: higher ones are not multiplied out
_ROUNDS = 6  # of substituting powers of nested roots; chosen by trial


def is_identically_zero(expr: Expr) -> bool:
    """True if `expr` is proved to vanish by exact algebra. False says nothing.

    Examples
    --------
    >>> from sympy import sqrt, exp, log, Rational
    >>> is_identically_zero(sqrt(6)/sqrt(2) - sqrt(3)), is_identically_zero(exp(Rational(1, 2))**2 - exp(1))
    (True, True)
    >>> is_identically_zero(log(6) - log(2) - log(3)), is_identically_zero(exp(Rational(-1, 10**9)) - 1)
    (True, False)
    """
    if expr == 0:
        return True
    if sp.count_ops(expr) > _LARGE:
        return False
    checkpoint("exact algebra")
    plain = _split(_standard_functions(expr))
    if plain == 0 or sp.expand(plain) == 0:
        return True
    return _polynomial_is_zero(plain) or _algebraic_is_zero(expr)


def _standard_functions(expr: Expr) -> Expr:
    """One function for each family: erf, atan, sin and cos (of what SymPy does not evaluate), exp."""
    rules: list[tuple] = [
        (sp.erfc, lambda u: 1 - sp.erf(u)),
        (sp.acos, lambda u: sp.pi / 2 - _asin(u)),
        (sp.asin, lambda u: _asin(u)),
        (sp.acot, lambda u: sp.atan(1 / u)),
        (sp.cosh, lambda u: (sp.exp(u) + sp.exp(-u)) / 2),
        (sp.sinh, lambda u: (sp.exp(u) - sp.exp(-u)) / 2),
        (sp.tanh, lambda u: (sp.exp(2 * u) - 1) / (sp.exp(2 * u) + 1)),
    ]
    for head, rule in rules:
        if expr.has(head):
            expr = expr.replace(head, rule)
    return expr


def _asin(u: Expr) -> Expr:
    return sp.atan(u / sp.sqrt(1 - u**2)) if u.is_Rational and abs(u) < 1 else sp.asin(u)


def _split(expr: Expr) -> Expr:
    """Logarithms and roots of rationals over primes; exponents expanded."""
    if not expr.args:
        return expr
    args = [_split(a) for a in expr.args]
    if isinstance(expr, sp.log) and args[0].is_Rational and args[0] > 0:
        return sp.Add(*(k * sp.log(p) for p, k in sp.factorrat(args[0], limit=_PRIMES).items()))
    if isinstance(expr, sp.exp):
        return sp.exp(sp.expand(args[0]))
    if isinstance(expr, sp.Pow) and args[1].is_Rational and not args[1].is_Integer:
        base, power = args
        if base.is_Rational and base > 0:
            return sp.Mul(*(sp.Integer(p) ** (k * power) for p, k in sp.factorrat(base, limit=_PRIMES).items()))
        if base.is_Mul:
            outside = [a for a in base.args if a.is_positive]
            rest = sp.Mul(*(a for a in base.args if not a.is_positive))
            return sp.Mul(*(_split(a**power) for a in outside), rest**power)
    return expr.func(*args)


def _polynomial_is_zero(expr: Expr) -> bool:
    """expr over a common denominator, its numerator reduced modulo r^q = p for every root r = p^(1/q).

    The polynomials are sparse: in exp(-0.6797**2/2) the generator exp(1/200000000) has the power 46199209.
    """
    table = _Generators(expr)
    try:
        numerator, denominator = sp.fraction(sp.together(table.replace(expr)))
        if not table.symbols:
            return bool(numerator == 0)
        if any(k > _POWER for e in (numerator, denominator) for k in _powers_of_sums(e)):
            return False
        polynomials = ring(list(table.symbols.values()), sp.QQ)[0]
        # 0/0 proves nothing: the denominator must not reduce to zero itself.
        return table.vanishes(numerator, polynomials) and not table.vanishes(denominator, polynomials)
    except (sp.PolynomialError, sp.CoercionFailed, ValueError):
        return False


def _powers_of_sums(expr: Expr) -> list[int]:
    """The exponents of what has to be multiplied out."""
    return [int(p.exp) for p in expr.atoms(sp.Pow) if p.base.is_Add and p.exp.is_Integer]


class _Generators:
    """Symbols for the independent parts of a constant."""

    def __init__(self, expr: Expr) -> None:
        self.symbols: dict[Basic, Dummy] = {}
        self.roots: dict[Dummy, tuple[int, Expr]] = {}
        self.root_denominators: dict[Expr, int] = {}
        self.exp_denominators: dict[Expr, int] = {}
        for power in expr.atoms(sp.Pow):
            if power.exp.is_Rational and not power.exp.is_Integer:
                old = self.root_denominators.get(power.base, 1)
                self.root_denominators[power.base] = lcm(old, int(power.exp.q))
        for e in expr.atoms(sp.exp):
            for q, unit in self._exponents(e.args[0]):
                self.exp_denominators[unit] = lcm(self.exp_denominators.get(unit, 1), int(q.q))
        for root in expr.atoms(sp.CRootOf):
            self.root_denominators.setdefault(root, 1)

    def _exponents(self, exponent: Expr) -> list[tuple[Rational, Expr]]:
        return [term.as_coeff_Mul(rational=True) for term in sp.Add.make_args(exponent)]

    def symbol(self, part: Basic) -> Dummy:
        if part not in self.symbols:
            self.symbols[part] = Dummy("g")
        return self.symbols[part]

    def replace(self, u: Expr) -> Expr:
        if u.is_Rational:
            return u
        if isinstance(u, sp.exp):
            factors = [self.symbol(sp.exp(unit / self.exp_denominators[unit])) ** (q * self.exp_denominators[unit])
                       for q, unit in self._exponents(u.args[0])]
            return sp.Mul(*factors)
        if isinstance(u, (sp.Add, sp.Mul)):
            return u.func(*(self.replace(a) for a in u.args))
        if isinstance(u, sp.Pow) and u.exp.is_Rational:
            d = self.root_denominators.get(u.base, 1)
            if d == 1:
                return self.replace(u.base) ** u.exp
            return self._root(u.base, d) ** (u.exp * d)
        if u in self.root_denominators and not u.is_Rational:
            return self._root(u, self.root_denominators[u]) ** self.root_denominators[u]
        return self.symbol(u)

    def _root(self, base: Expr, d: int) -> Dummy:
        """base^(1/d); its d-th power is the base, which may itself hold generators (pi stays a free one)."""
        root = self.symbol(sp.Tuple(base, Integer(d)))
        if root not in self.roots and (base.is_Rational or base.is_Add):
            self.roots[root] = (d, self.replace(base))
        return root

    def vanishes(self, expr: Expr, polynomials: PolyRing) -> bool:
        """True if the polynomial is zero once powers r^q are replaced by what they are, until none is left."""
        current = polynomials.from_expr(expr)
        relations = {k: (q, polynomials.from_expr(p)) for k, g in enumerate(polynomials.symbols)
                     for q, p in [self.roots.get(g, (0, Integer(0)))] if q}
        for _ in range(_ROUNDS):
            checkpoint("exact algebra")
            if not any(monomial[k] >= q for monomial in current for k, (q, _) in relations.items()):
                break
            total = polynomials.zero
            for monomial, coefficient in current.terms():
                left, factor = list(monomial), polynomials.one
                for k, (q, p) in relations.items():
                    if left[k] >= q:
                        if len(p) > 1 and left[k] // q > _POWER:
                            raise sp.PolynomialError("a high power of a sum")
                        factor *= p ** (left[k] // q)
                        left[k] %= q
                total += factor.mul_term((tuple(left), coefficient))
            current = total
        return not current


def _algebraic_is_zero(expr: Expr) -> bool:
    """Nested radicals: the minimal polynomial, where it is small enough to be found at once."""
    # Only single functions are tried: for a sum SymPy would compute digits first, ten million for 1 - erf(70000).
    if sp.count_ops(expr) > 40 or not all(f.is_algebraic for f in expr.atoms(sp.Function)) or not expr.is_algebraic:
        return False
    v = Dummy("v")
    try:
        return bool(sp.minimal_polynomial(expr, v) == v)
    except (NotImplementedError, sp.PolynomialError):
        return False
