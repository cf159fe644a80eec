"""(1 + erf u)/2 = erfc(-u)/2: a printed probability keeps its digits far out in either tail.

SymPy writes erfc(-u) as 2 - erfc(u), of which floats leave nothing where u is large and negative; `TailErfc` is its erfc without
that rule. It prints, differentiates, evaluates and becomes code as SymPy's does; ``.rewrite(erf)`` brings 1 - erf(u) back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sympy import Abs, Add, Expr, Ge, Mul, Piecewise, Pow, S, erf, erfc, expand, factor_terms, log, sign

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
    """The expression with 1 - erf(u) for each `TailErfc`: what is averaged again is read as it would be in SymPy's form."""
    return expr.replace(TailErfc, lambda u: 1 - erf(u)) if expr.has(TailErfc) else expr


def tails(expr: Expr) -> Expr:
    """The expression with q + q erf(u) and 2 q - q erfc(u) as q erfc(-u), q - q erf(u) as q erfc(u).

    Ratios of intervals are written by their nearer tail.

    The chance of an interval, erf(u) - erf(v), is erfc(v) - erfc(u) where u + v > 0 and erfc(-u) - erfc(-v) else; a formula that
    divides by it or takes its logarithm is written for both cases.
    """
    if (cases := _by_sign(expr)) is not None:
        return cases
    if not expr.has(erf, erfc):
        return expr
    divided = [p.args[0] for p in expr.atoms(Pow, log) if p.has(erf) and (p.func is log or p.exp.is_negative)]
    middles = {m for d in divided for total in d.atoms(Add) for m in _middles(total)}
    if len(middles) != 1 or any(m.is_extended_real is False for m in middles):
        return _rewritten(expr, None)
    (middle,) = middles
    if middle.is_nonnegative or middle.is_nonpositive:
        return _rewritten(expr, middle if middle.is_nonnegative else -middle)
    return Piecewise((_rewritten(expr, middle), middle > 0), (_rewritten(expr, -middle), True))


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


def _rewritten(expr: Expr, middle: Expr | None) -> Expr:
    """The expression by tails, and by intervals of this middle from the tail at which it is positive."""
    if not expr.has(erf, erfc):
        return expr
    args = [_rewritten(a, middle) for a in expr.args]
    rebuilt = expr.func(*args) if args != list(expr.args) else expr  # terms that became equal are added here
    return _paired(rebuilt.args, middle) if isinstance(rebuilt, Add) else rebuilt


def _paired(terms: Sequence[Expr], middle: Expr | None) -> Expr:
    """The sum of the terms, those together that are q and +-q erf(u), 2 q and -q erfc(u), or q erf(u) and -q erf(v).

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
        elif middle is not None and -q in alone and alone[-q][0] in left and (s := _turn(_middle(u, alone[-q][1]), middle)):
            other, v = alone.pop(-q)
            found.append(q*s*(TailErfc(s*v) - TailErfc(s*u)))
            del left[term], left[other]
        else:
            alone[q] = (term, u)
    for term, q, u in _factors_of(erfc, [*left]):
        if term in left and -2*q in left:
            found.append(-q*TailErfc(-u))
            del left[term], left[-2*q]
    return Add(*left, *found)


def _middles(total: Add) -> list[Expr]:
    """The middle of each q erf(u) - q erf(v) in a sum that holds no q or -q beside."""
    of = {q: u for _, q, u in _factors_of(erf, total.args) if q not in total.args and -q not in total.args}
    return [_middle(u, of[-q]) for q, u in of.items() if q.could_extract_minus_sign() and -q in of]


def _middle(u: Expr, v: Expr) -> Expr:
    """u + v, but for a positive number."""
    total = factor_terms(expand(u + v))
    number, rest = total.as_independent(*total.free_symbols, as_Add=False)
    return rest if number.is_positive else -rest if number.is_negative else total


def _turn(one: Expr, other: Expr) -> int:
    """1 if both are equal, -1 if they are opposite, else 0."""
    return 1 if one == other else -1 if one == -other else 0


def _factors_of(function: type[Expr], terms: Iterable[Expr]) -> list[tuple[Expr, Expr, Expr]]:
    """Terms q erf(u), or q erfc(u), each with q and u."""
    return [(t, t/f, f.args[0]) for t in terms for f in Mul.make_args(t) if isinstance(f, function)]
