"""w^2/(|w| sqrt(w^2 X)) = 1/sqrt(X): a formula in a letter without the factors of the letter that cancel."""

from __future__ import annotations

from sympy import Abs, AccumBounds, Add, Dummy, Expr, Mul, Pow, S, Symbol, factor, factor_terms, fraction, together

from hermitex.symbolic.engine.rational_tidying import hold_made
from hermitex.symbolic.subexpressions import at_numbers


def without_pole(value: Expr, letter: Symbol, there: Expr) -> Expr | None:
    """A formula equal to `value` that is `there` at 0; None where `value` divides by no power of the letter, or none is found."""
    if not any(p.exp.is_negative and at_numbers(p.base, {letter: S.Zero}) == 0 for p in value.atoms(Pow)):
        return None
    found = cancelled(value, letter)
    gap = at_numbers(found, {letter: S.Zero}) - there
    if gap.has(S.NaN, S.ComplexInfinity, S.Infinity, AccumBounds):
        return None
    gap = gap.xreplace({p: factor(together(p.base))**p.exp for p in gap.atoms(Pow) if not p.exp.is_Integer})
    return found if factor_terms(gap) == 0 or factor(together(gap)) == 0 else None


def cancelled(value: Expr, letter: Symbol) -> Expr:
    """A formula equal to `value` for every real number but 0 in place of the letter, and often finite at 0, too.

    Examples
    --------
    >>> from sympy import sqrt, symbols
    >>> s, u, w = symbols("s u w", positive=True)
    >>> cancelled(w**2/sqrt(s*w**2 + u*w**2), w)
    w/sqrt(s + u)
    """
    w = Dummy("w", real=True)
    found = value.xreplace({letter: w})
    found = found.xreplace({p: _root(p, w) for p in found.atoms(Pow) if p.exp.is_Rational and p.exp.q == 2 and p.base.has(w)})
    light, held = hold_made(found, Abs)
    terms: dict[Expr, Expr] = {}  # the other factors -> the rational function of the letter
    for term in Add.make_args(light):
        beside, rational = _split(term, set(held))
        terms[beside] = terms.get(beside, 0) + rational
    whole = Add(*(beside*factor(together(rational)) for beside, rational in terms.items()))
    return whole.xreplace(held).xreplace({w: letter})


def _root(power: Pow, w: Symbol) -> Expr:
    """(w^(2 m) X)^e = |w|^(2 m e) X^e."""
    base = factor(together(power.base))
    above, below = (Mul.make_args(factor_terms(part)) for part in fraction(base))
    degree = Add(*(sign*n for factors, sign in ((above, 1), (below, -1)) for b, n in (f.as_base_exp() for f in factors) if b == w))
    m = degree//2
    return Abs(w)**(2*m*power.exp)*_expanded(base/w**(2*m))**power.exp


def _expanded(radicand: Expr) -> Expr:
    above, below = fraction(radicand)
    return above.expand()/below.expand()


def _split(term: Expr, held: set[Expr]) -> tuple[Expr, Expr]:
    """A product as (functions and roots, where roots are kept as they are, and a rational function)."""
    rational = [f for f in Mul.make_args(term) if f.is_rational_function() and not f.free_symbols & held]
    return Mul(*(f for f in Mul.make_args(term) if f not in rational)), Mul(*rational)
