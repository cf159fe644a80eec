"""(1 + erf u)/2 = erfc(-u)/2: a printed probability keeps its digits far out in either tail.

SymPy writes erfc(-u) as 2 - erfc(u), of which floats leave nothing where u is large and negative; `TailErfc` is its erfc without
that rule. It prints, differentiates, evaluates and becomes code as SymPy's does; ``.rewrite(erf)`` brings 1 - erf(u) back.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from sympy import (
    Abs,
    Add,
    And,
    Dummy,
    Expr,
    Ge,
    Max,
    Mul,
    Piecewise,
    S,
    erf,
    erfc,
    expand,
    expand_mul,
    factor_terms,
    log,
    sign,
    sqrt,
)
from sympy.codegen.cfunctions import log1p
from sympy.logic.boolalg import Boolean

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
    """The expression with c_0 + sum_j c_j erf(u_j), where c_0 + sum_j s_j c_j = 0, as -sum_j s_j c_j erfc(s_j u_j): signs s_j.

    q + q erf(u) is q erfc(-u). The chance of an interval, erf(u) - erf(v), has two such forms: for u and v in the upper tail, and
    in the lower one. The logarithm of a probability near 1 is log1p(-erfc(u)/2). Averages that are left stay.
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
    return _of_sum(rebuilt) if isinstance(rebuilt, Add) else rebuilt


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


def _of_sum(total: Add) -> Expr:
    """A sum by its tails; of erf(u) erf(v) one of them is part of a coefficient."""
    total = _of_products(total)
    terms = {term: _linear(term) for term in Add.make_args(total)}
    weights: dict[Expr, dict[Expr, Expr]] = {}  # of each monomial: its coefficient in c_0, at ONE, and in c_j, at u_j
    for parts in terms.values():
        for u, r, core in _monomials(parts):
            row = weights.setdefault(core, {})
            row[u] = row.get(u, S.Zero) + r
    found = []
    for cores in _connected({core: row for core, row in weights.items() if row.keys() - {S.One}}):
        cancelled, signs = _cancelling([(core, weights[core]) for core in cores])
        if cancelled and (tail := _tail({core: weights[core] for core in cancelled}, signs)) is not None:
            found.append(tail)
            for core in cancelled:
                del weights[core]
    if not found:
        return total
    touched = {t for t, parts in terms.items() if any(core not in weights for _, _, core in _monomials(parts))}
    rest = [r*core*(erf(u) if u is not S.One else 1) for t in touched for u, r, core in _monomials(terms[t]) if core in weights]
    return Add(*(t for t in terms if t not in touched), *rest, *found)


def _of_products(total: Add) -> Expr:
    """q erf(u) erf(v) + q erf(v) as q erf(v) erfc(-u)."""
    left = dict.fromkeys(total.args)
    found = []
    for term in total.args:
        for f in [f for f in Mul.make_args(term) if isinstance(f, erf)] if _linear(term) == [(S.One, term)] else ():
            for side in (S.One, S.NegativeOne):
                if term in left and side*term/f in left:
                    found.append(side*term/f*TailErfc(-side*f.args[0]))
                    del left[term], left[side*term/f]
    return Add(*left, *found)


def _linear(term: Expr) -> list[tuple[Expr, Expr]]:
    """The term as q, at ONE, or q erf(u), at u; erfc(u) is 1 - erf(u), and erf(-u) is -erf(u). A product of two is q."""
    special = [f for f in Mul.make_args(term) if isinstance(f, erf | erfc)]
    if len(special) != 1:
        return [(S.One, term)]
    q, u = term/special[0], special[0].args[0]
    side = -1 if expand(u).could_extract_minus_sign() else 1
    return [(side*u, side*q)] if isinstance(special[0], erf) else [(S.One, q), (side*u, -side*q)]


def _monomials(parts: list[tuple[Expr, Expr]]) -> list[tuple[Expr, Expr, Expr]]:
    """Each u with the terms r m of its q: r a number, m a monomial."""
    return [(u, *p.as_coeff_Mul()) for u, q in parts for p in Add.make_args(expand_mul(q))]


def _connected(rows: dict[Expr, dict[Expr, Expr]]) -> list[list[Expr]]:
    """The monomials in groups that share no u; those with a constant part first in each."""
    groups: list[tuple[set[Expr], list[Expr]]] = []
    for core in sorted(rows, key=lambda core: rows[core].get(S.One, 0) == 0):
        us, cores = rows[core].keys() - {S.One}, [core]
        for group in [g for g in groups if g[0] & us]:
            groups.remove(group)
            us, cores = us | group[0], group[1] + cores
        groups.append((us, cores))
    return [sorted(cores, key=lambda core: rows[core].get(S.One, 0) == 0) for _, cores in groups]


def _cancelling(rows: list[tuple[Expr, dict[Expr, Expr]]]) -> tuple[list[Expr], list[dict[Expr, int]]]:
    """Monomials whose coefficients cancel where each erf(u) is one of +-1, and the signs for which they do."""
    cancelled, signs = [], [dict[Expr, int]()]
    for core, row in rows:
        new = [u for u in row if u is not S.One and u not in signs[0]]
        most = 6  # error functions of one monomial: there are 2^n signs
        if len(new) > most:
            continue
        both = [{**known, **dict(zip(new, chosen, strict=True))} for known in signs for chosen in product((1, -1), repeat=len(new))]
        if some := [s for s in both if sum(r*s.get(u, 1) for u, r in row.items()) == 0]:
            cancelled.append(core)
            signs = some
    return cancelled, signs


def _tail(rows: dict[Expr, dict[Expr, Expr]], signs: list[dict[Expr, int]]) -> Expr | None:
    """-sum_j s_j c_j erfc(s_j u_j): as it is if the signs are known, for either tail if they may be turned together, or None.

    Between the tails, |u| < 1/sqrt(2), erf loses no digit that erfc keeps: P(|z| > 1) = .32.
    """
    s = next((s for s in signs if len(set(s.values())) == 1), signs[0])
    weight = {u: factor_terms(Add(*(row.get(u, 0)*core for core, row in rows.items()))) for u in s}
    both = {u: -side for u, side in s.items()} in signs
    weight, s = ({_of_the_same(u, s): given[u] for u in s} for given in (weight, s))

    def written(side: int) -> Expr:
        return Add(*(-side*s[u]*c*TailErfc(side*s[u]*u) for u, c in weight.items()))

    if not both:
        return written(1)
    turned = len(set(s.values())) > 1
    if not all(u.is_extended_real for u in s) or (turned and (len(signs) > 2 or not _together([s[u]*u for u in s]))):
        return None
    common = next((c for c in weight.values() if not c.could_extract_minus_sign()), next(iter(weight.values())))
    if not all((c/common).is_Rational for c in weight.values()):
        common = S.One
    weight = {u: c/common for u, c in weight.items()}
    plain = Add(*(c*erf(u) for u, c in weight.items()))
    return common*Piecewise((written(1), _beyond([s[u]*u for u in s])), (written(-1), _beyond([-s[u]*u for u in s])), (plain, True))


def _together(places: list[Expr]) -> bool:
    """Is there a letter with which all of them rise?"""
    return any(all(u.diff(x).is_positive for u in places) or all(u.diff(x).is_negative for u in places)
               for x in set.intersection(*(u.free_symbols for u in places)))


def _beyond(places: list[Expr]) -> Boolean:
    """Is each of them above 1/sqrt(2)? Of two whose order is known the lower one is asked."""
    gaps = {(u, v): _gap(u, v) for u in places for v in places if u != v}
    if any(expand(u + v).is_nonpositive for u, v in gaps):
        return S.false
    lowest: list[Expr] = []
    for u in places:
        if not any(gaps[u, v].is_nonnegative and (v in lowest or not gaps[v, u].is_nonnegative) for v in places if v != u):
            lowest.append(u)
    return And(*(sqrt(2)*u > 1 if not expand(u).could_extract_minus_sign() else -sqrt(2)*u < -1 for u in lowest))


def _of_the_same(u: Expr, places: Iterable[Expr]) -> Expr:
    """c Max(a, b) as Max(c a, c b), c > 0, where c a is another place: both round alike, and are equal where c a is the larger."""
    for larger in u.atoms(Max):
        x = Dummy()
        scaled = [u.xreplace({larger: a}) for a in larger.args]
        if u.xreplace({larger: x}).diff(x).is_positive and not set(scaled).isdisjoint(places):
            return Max(*scaled)
    return u


def _gap(u: Expr, v: Expr) -> Expr:
    """u - v; of Max(a, b) and a it is Max(0, b - a)."""
    gap = expand(u - v)
    for larger in gap.atoms(Max):
        for a in larger.args:
            rest = expand(gap.xreplace({larger: a + Max(*(b - a for b in larger.args))}))
            if rest.is_nonnegative or rest.is_nonpositive:
                return rest
    return gap
