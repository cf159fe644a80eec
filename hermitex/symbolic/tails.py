"""(1 + erf u)/2 = erfc(-u)/2: a printed probability keeps its digits far out in either tail.

SymPy writes erfc(-u) as 2 - erfc(u), of which floats leave nothing where u is large and negative; `TailErfc` is its erfc without
that rule. It prints, differentiates, evaluates and becomes code as SymPy's does; ``.rewrite(erf)`` brings 1 - erf(u) back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sympy import Abs, Add, And, Expr, Ge, Max, Mul, Piecewise, S, erf, erfc, expand, log, sign, sqrt
from sympy.codegen.cfunctions import log1p

from hermitex.symbolic.subexpressions import at_numbers


class TailErfc(erfc):  # type: ignore[misc]
    """erfc(u) of either sign of u."""

    @classmethod
    def eval(cls, u: Expr) -> Expr | None:
        """The value at a number; no rule for -u."""
        return erfc(u) if u.is_number and (u.is_Number or not u.could_extract_minus_sign()) else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, erfc) and self.args == other.args

    __hash__ = erfc.__hash__


TailErfc.__name__ = "erfc"  # to the printers of SymPy


def as_erf(expr: Expr) -> Expr:
    """The expression in SymPy's form: 1 - erf(u) for each `TailErfc`, and one formula for cases that are equal with it."""
    if not expr.has(TailErfc):
        return expr
    whole = expr.replace(TailErfc, lambda u: 1 - erf(u)).replace(log1p, lambda u: log(1 + u))
    cases = {p: expand(p.args[0].expr) for p in whole.atoms(Piecewise) - expr.atoms(Piecewise)}
    return whole.xreplace({p: first for p, first in cases.items() if all(expand(e) == first for e, _ in p.args[1:])})


def tails(expr: Expr) -> Expr:
    """The expression with q + q erf(u) and 2 q - q erfc(u) as q erfc(-u), q - q erf(u) as q erfc(u).

    The chance of an interval, erf(u) - erf(v), is erfc(v) - erfc(u) where u and v are in the upper tail, and erfc(-u) - erfc(-v)
    where they are in the lower one. The logarithm of a probability near 1 is log1p(-erfc(u)/2). Averages that are left stay.
    """
    if (cases := _by_sign(expr)) is not None:
        return cases
    done = isinstance(expr, Piecewise) and not isinstance(as_erf(expr), Piecewise)
    if done or not expr.has(erf, erfc) or hasattr(expr, "bound"):
        return expr
    args = [tails(a) for a in expr.args]
    rebuilt = expr.func(*args) if args != list(expr.args) else expr  # terms that became equal are added here
    if isinstance(rebuilt, log) and isinstance(tail := 2*rebuilt.args[0], TailErfc) and (u := tail.args[0]).is_extended_real:
        return Piecewise((log(tail/2), sqrt(2)*u > 0), (log1p(-TailErfc(-u)/2), True))
    return _paired(rebuilt.args) if isinstance(rebuilt, Add) else rebuilt


def _by_sign(expr: Expr) -> Expr | None:
    """A formula with erf(|k|) and sign(k) erf(|k|) in one sum, for k >= 0 and for k < 0; None of others.

    The half of it that cancels for k < 0 leaves no digits to a tail beside it.
    """
    cases = {p: p.args[0].cond.lhs for p in expr.atoms(Piecewise) if len(p.args) == 2 and isinstance(p.args[0].cond, Ge)
             and p.args[0].cond.lhs.is_Symbol and p.args[0].cond.rhs == 0 and p.args[1].cond == True}  # noqa: E712 - SymPy's true
    turned = {k for k in cases.values() if len(cases) > 1 or expr.has(sign(k), Abs(k))}
    turned |= {k for total in expr.atoms(Add) for t in total.args for k in _signs_of_tails(t)
               if t/sign(k) in total.args or -t/sign(k) in total.args}
    if len(turned) != 1:
        return None
    (k,) = turned
    above, below = (expr.xreplace({p: p.args[i].expr for p, of in cases.items() if of == k}).xreplace({Abs(k): s*k, sign(k): s})
                    for i, s in enumerate((S.One, S.NegativeOne)))
    gap = at_numbers(above, {k: S.Zero}) - at_numbers(expr, {k: S.Zero})
    return Piecewise((tails(above), k >= 0), (tails(below), True)) if gap.is_zero else None


def _signs_of_tails(term: Expr) -> list[Expr]:
    """Real letters k of a term q sign(k) erf(.. |k| ..)."""
    factors = Mul.make_args(term)
    letters = [f.args[0] for f in factors if isinstance(f, sign) and f.args[0].is_Symbol and f.args[0].is_extended_real]
    return [k for k in letters if any(isinstance(f, erf) and f.has(Abs(k)) for f in factors)]


def _paired(terms: Sequence[Expr]) -> Expr:
    """The sum of the terms, those together that are q and +-q erf(u), 2 q and -q erfc(u), or q erf(u) and +-q erf(v).

    In the first case q may be a sum.
    """
    left = dict.fromkeys(terms)
    found = []
    alone: dict[Expr, tuple[Expr, Expr]] = {}  # q -> q erf(u), u
    for term, q, u in _factors_of(erf, terms):
        if term not in left:  # erf(u) erf(v), paired by the other
            continue
        if (sign := next((s for s in (S.One, S.NegativeOne) if all(s*p in left for p in Add.make_args(q))), None)) is not None:
            found.append(sign*q*TailErfc(-sign*u))
            for taken in (term, *(sign*p for p in Add.make_args(q))):
                del left[taken]
            continue
        for other, side in ((-q, 1), (q, -1)):  # q erf(u) + q erf(v) = q erf(u) - q erf(-v)
            if other in alone and alone[other][0] in left and (chance := _chance(q, u, side*alone[other][1], side < 0)) is not None:
                found.append(chance)
                del left[term], left[alone.pop(other)[0]]
                break
        else:
            alone[q] = (term, u)
    for term, q, u in _factors_of(erfc, [*left]):
        if term in left and -2*q in left:
            found.append(-q*TailErfc(-u))
            del left[term], left[-2*q]
    return Add(*left, *found)


def _chance(q: Expr, u: Expr, v: Expr, turned: bool) -> Expr | None:
    """q (erf(u) - erf(v)) by the tail in which both are; None where it is not known that they are real.

    None also of erf(u) + erf(w), w = -v turned, that is no interval: its width depends on a letter that its middle does not have.
    Between the tails, |u| < 1/sqrt(2), erf loses no digit that erfc keeps: P(|z| > 1) = .32.
    """
    width, twice = _width(u, v), expand(u + v)
    if not (u.is_extended_real and v.is_extended_real):
        return None
    ordered = width.is_nonnegative or width.is_nonpositive
    if turned and not (ordered or width.free_symbols < twice.free_symbols):
        return None
    if width.is_nonpositive or (not ordered and width.could_extract_minus_sign()):
        q, u, v = -q, v, u
    above = [sqrt(2)*e > 1 for e in ((v,) if ordered else (u, v))] if not twice.is_nonpositive else [False]
    below = [sqrt(2)*e < -1 for e in ((u,) if ordered else (u, v))] if not twice.is_nonnegative else [False]
    upper, lower = TailErfc(v) - TailErfc(u), TailErfc(-u) - TailErfc(-v)
    return q*Piecewise((upper, And(*above)), (lower, And(*below)), (erf(u) - erf(v), True))


def _width(u: Expr, v: Expr) -> Expr:
    """u - v; of Max(a, b) and a it is Max(0, b - a)."""
    width = expand(u - v)
    for larger in width.atoms(Max):
        for a in larger.args:
            rest = expand(width.xreplace({larger: a + Max(*(b - a for b in larger.args))}))
            if rest.is_nonnegative or rest.is_nonpositive:
                return rest
    return width


def _factors_of(function: type[Expr], terms: Iterable[Expr]) -> list[tuple[Expr, Expr, Expr]]:
    """Terms q erf(u), or q erfc(u), each with q and u."""
    return [(t, t/f, f.args[0]) for t in terms for f in Mul.make_args(t) if isinstance(f, function)]
