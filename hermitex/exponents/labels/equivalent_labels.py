"""sigma(y, u) = sigma(y', u): a simpler label y' with the same information on the hidden variables once u is known.

What u alone determines is dropped, injective outer functions are stripped, products of powers and sums of logarithms
are reduced to their common core. A known factor may go only if it is zero at single points at most.
"""

from __future__ import annotations

from collections.abc import Sequence

from sympy import (
    Abs,
    Add,
    Expr,
    Mul,
    Pow,
    Symbol,
    factor_terms,
    igcd,
    ilcm,
    log,
)

from hermitex.exponents.channels import Named, channel
from hermitex.exponents.labels.levels import INJECTIVE, _peel_power
from hermitex.exponents.labels.rising import injective
from hermitex.exponents.labels.sizes import nonzero_almost_everywhere, signed
from hermitex.exponents.laws.blocks import inner_quantities
from hermitex.exponents.laws.discrete import split_products
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.engine.tidy import compact


def without_known(g: Expr, law: Named, hidden: Sequence[Symbol]) -> tuple[Expr, Named]:
    """A target with the same information on the hidden variables once all others are known, and its channel."""
    while True:
        checkpoint("peeling off what is known")
        old, old_law = g, law
        if law.name in ("deterministic", "random_sign"):
            g, law = peeled(split_products(g), hidden), _named("deterministic")
        elif law.name in ("gaussian", "multiplicative"):
            g = g.as_independent(*hidden, as_Add=True)[1] if law.name == "gaussian" else g
            g = g if isinstance(g, Mul) or not g.is_polynomial() else g.factor()
            factor, rest = g.as_independent(*hidden, as_Add=False)
            if law.name == "multiplicative" and nonzero_almost_everywhere(factor):
                g = rest
            elif factor.is_number and factor.is_nonzero and factor != 1:
                g, law = rest, _named(f"gaussian:{compact(law.parameter / factor**2)}")
        if (g, law) == (old, old_law):
            return g, law


def _named(spec: str) -> Named:
    found = channel(spec)
    assert isinstance(found, Named)
    return found


def peeled(u: Expr, hidden: Sequence[Symbol]) -> Expr:
    """Strip what the other variables determine, and injective outer functions."""
    mine = set(hidden)
    while True:
        new = u
        if isinstance(u, Add):
            new = _of_logarithms(u.as_independent(*hidden, as_Add=True)[1])
            if new == u and u.is_polynomial(*hidden) and u.count_ops() < 60:
                factored = u.factor()
                new = factored if isinstance(factored, (Mul, Pow)) and _splits(factored, mine) else u
            if new == u:
                shared = factor_terms(u)
                known, _ = shared.as_independent(*hidden, as_Add=False)
                new = shared if known.free_symbols and nonzero_almost_everywhere(known) else u
            if new == u:
                new = next((w for w, f, t in inner_quantities(u, [x for x in hidden if u.has(x)]) if injective(f, t)), u)
        elif isinstance(u, Mul):
            factor, rest = u.as_independent(*hidden, as_Add=False)
            told = factor == 1 or nonzero_almost_everywhere(factor)
            new = signed(_root(rest), hidden, lambda h: peeled(h, hidden)) if told else u
        elif isinstance(u, INJECTIVE):
            new = u.args[0]
        elif isinstance(u, Pow) and not u.exp.free_symbols & mine and u.exp.is_Rational and u.exp != 0:
            new = _peel_power(u, u.base, u.exp)
        elif isinstance(u, Pow) and not u.base.free_symbols and u.base.is_positive and (u.base - 1).is_nonzero:
            new = u.exp
        if new == u:
            return u
        u = new


def _root(u: Expr) -> Expr:
    """a^2 b^4 has the level sets of |a| b^2, and sqrt(a) b^(3/2) for a, b >= 0 those of a b^3."""
    if not isinstance(u, Mul):
        return u
    parts = [f.as_base_exp() for f in u.args]
    if all(b.is_nonnegative and p.is_Rational for b, p in parts):
        scale = ilcm(*(p.q for _, p in parts))
        parts = [(b, p * scale) for b, p in parts]
        u = Mul(*(b**p for b, p in parts))
    if any(not p.is_Integer or p <= 0 for _, p in parts):
        return u
    common = igcd(*(p for _, p in parts))
    if common == 1:
        return u
    return Mul(*((Abs(b) if common % 2 == 0 else b) ** (p // common) for b, p in parts))


def _of_logarithms(u: Expr) -> Expr:
    """log a + 2 log b has the level sets of a b^2."""
    if not isinstance(u, Add):
        return u
    terms = [t.as_coeff_Mul() for t in u.args]
    if all(isinstance(e, log) and c.is_Rational for c, e in terms):
        return Mul(*(e.args[0] ** c for c, e in terms))
    return u


def _splits(e: Expr, mine: set[Symbol]) -> bool:
    """Is a factor known, or are the factors powers of independent quantities?"""
    factors = Mul.make_args(e)
    if isinstance(e, Pow) or any(not f.free_symbols & mine for f in factors if f.free_symbols):
        return True
    sets = [f.free_symbols & mine for f in factors if f.free_symbols]
    return sum(len(s) for s in sets) == len(set().union(*sets)) if sets else False
