"""A density as a formula on each of its intervals, and what its letters must satisfy for it to be one.

The mass in letters is integrated in closed form, which says for which letters it is 1. Where letters move the ends of the
intervals, their order is that at numbers, and is kept as a condition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice, pairwise, product
from typing import Any

from sympy import (
    Abs,
    And,
    Dummy,
    Expr,
    Heaviside,
    Integral,
    Interval,
    Max,
    Min,
    Piecewise,
    Pow,
    Rational,
    S,
    Sum,
    arg,
    catalan,
    expand,
    gamma,
    oo,
    piecewise_fold,
    sign,
    simplify,
)
from sympy.core.relational import Relational

from hermitex.errors import BadInput, BudgetExceeded
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.deadline import attempt

Needed = tuple[Expr, Interval]
DensityPiece = tuple[Expr, Expr, Expr]  # a density as a formula of T, from where to where
T = Dummy("t", real=True)
POSITIVE = Interval.open(0, oo)  # the range of a scale or a slope
# for letters: small, of either sign and 0, simple first
_NUMBERS = (S.One, S(2), S.Half, S(3), Rational(1, 3), S.Zero, S.NegativeOne)


def _not_negative(law: Any, piece: DensityPiece, conditions: Iterable[Needed]) -> Iterator[Needed]:
    """The conditions for a density linear in x to be nonnegative; raises BadInput if another density is negative somewhere."""
    p, low, high = piece
    if p.as_independent(T, as_Add=False)[1].diff(T, 2) == 0 and low.is_finite and high.is_finite:
        yield from ((simplify(p.xreplace({T: end})), Interval(0, oo)) for end in (low, high))
        return
    letters = letters_of(piece)
    further = (*_NUMBERS, S(10), S(-5))  # numbers for letters
    tried = 200  # choices of numbers for the letters
    for at in islice(numbers_for(letters, further), tried):
        if all(i.contains(u.xreplace(at)) == True for u, i in conditions):  # noqa: E712 - SymPy's true
            a, b = low.xreplace(at), high.xreplace(at)
            a, b = (a if a.is_finite else b - 8 if b.is_finite else S(-8)), (b if b.is_finite else a + 8 if a.is_finite else S(8))
            for k in range(1, 16):
                if p.xreplace({**at, T: a + (b - a)*Rational(k, 16)}).evalf(15).is_negative:
                    where = ", ".join(f"{v} = {x}" for v, x in at.items())
                    raise BadInput(f"E: the density {said(law)} is negative at {where}; give numbers for its letters")


def letters_of(exprs: Iterable[Any]) -> list[Any]:
    return sorted({v for u in exprs for v in u.free_symbols} - {T}, key=str)


def numbers_for(letters: list[Any], numbers: tuple[Expr, ...] = _NUMBERS) -> Iterator[dict[Any, Any]]:
    """Numbers for letters that do not contradict what is declared of them."""
    for values in product(numbers, repeat=len(letters)) if len(letters) < 5 else ():
        if not any(_against(v, x) for v, x in zip(letters, values, strict=True)):
            yield dict(zip(letters, values, strict=True))


def _against(letter: Expr, number: Expr) -> bool:
    """Does a number contradict what is declared of a letter?"""
    return any(is_so is not None and getattr(number, f"is_{name}") not in (is_so, None)
               for name, is_so in letter._assumptions.items() if name in ("positive", "negative", "zero", "integer", "real"))


def said(law: Any) -> str:
    density = law.args[0] if "Handmade" in type(law).__name__ else law
    return str(getattr(density, "expr", density))


def splits(law: Any) -> Iterator[tuple[tuple[DensityPiece, ...], tuple[Needed, ...]]]:
    """The density on the intervals on which it is one formula, with the expressions that are positive if the ends have this order.

    If letters move the ends, each order that occurs for numbers of the letters is one answer.
    """
    rough = law.pdf(T).replace(lambda e: isinstance(e, Abs | Max | Min | sign | Heaviside) and e.has(T),
                               lambda e: e.rewrite(Piecewise)).replace(catalan, lambda n: catalan(n).rewrite(gamma))
    whole = piecewise_fold(rough)
    try:
        pairs = whole.as_expr_set_pairs(law.set) if isinstance(whole, Piecewise) else [(whole, law.set)]
        parts = [(p, part) for p, places in pairs for part in (places.args if places.is_Union else (places,)) if p != 0]
    except (NotImplementedError, TypeError, ValueError, AttributeError):
        yield from _in_order(law, whole)
        return
    found = tuple((p, part.inf, part.sup) for p, part in parts if isinstance(part, Interval))
    if not found:
        raise BadInput(f"E: the density of {said(law)} vanishes, or is not understood")
    yield found, ()


def _in_order(law: Any, whole: Piecewise) -> Iterator[tuple[tuple[DensityPiece, ...], tuple[Needed, ...]]]:
    """The same where every condition compares T with a formula of the letters."""
    ends, slopes = [law.set.inf, law.set.sup], []
    for c in set().union(*(condition.atoms(Relational) for _, condition in whole.args)):
        slope = (c.lhs - c.rhs).diff(T)
        if not c.has(T) or slope.has(T) or slope == 0:
            raise BadInput(f"E: where the density of {said(law)} changes is not known; give numbers for its letters")
        ends.append(expand(simplify(T - (c.lhs - c.rhs)/slope)))
        slopes += [slope] if slope.free_symbols else []
    ends = list(dict.fromkeys(ends))
    seen = set()
    for at in numbers_for(letters_of([whole, *ends])):
        placed = sorted(ends, key=lambda u: u.xreplace(at))
        numbers = [u.xreplace(at) for u in placed]
        signs = tuple(sign(u.xreplace(at)) for u in slopes)
        if 0 in signs or len(set(numbers)) < len(numbers) or (tuple(placed), signs) in seen:
            continue
        seen.add((tuple(placed), signs))
        inside = [(low, high, _between(*pair)) for low, high, pair in zip(placed, placed[1:], pairwise(numbers), strict=False)
                  if law.set.xreplace(at).contains(_between(*pair)) == True]  # noqa: E712 - SymPy's true
        pieces = [(next((p for p, c in whole.args if c.xreplace(at).xreplace({T: x}) == True), S.Zero), low, high)  # noqa: E712
                  for low, high, x in inside]
        needed = [(high - low, POSITIVE) for low, high in pairwise(placed) if low.is_finite and high.is_finite]
        if any(p.xreplace({**at, T: x}).is_negative for (p, _, _), (_, _, x) in zip(pieces, inside, strict=True)):
            continue
        yield tuple(p for p in pieces if p[0] != 0), (*needed, *((i*u, POSITIVE) for i, u in zip(signs, slopes, strict=True)))


def _between(low: Expr, high: Expr) -> Expr:
    if low.is_finite and high.is_finite:
        return (low + high)/2
    return low + 1 if low.is_finite else high - 1 if high.is_finite else S.Zero


def counted(law: Any) -> tuple[DensityPiece, ...]:
    low, high = law.set.inf, law.set.sup
    if not (low.is_integer and high == oo):
        raise BadInput(f"E: the law {said(law)} lives on {law.set}; a countable one is averaged over from a whole number on")
    n = Dummy("n", integer=True, nonnegative=True)
    return ((law.pdf(low + n).xreplace({n: T - low}), low, high),)


def conditions(law: Any, pieces: tuple[DensityPiece, ...], order: tuple[Needed, ...], countable: bool) -> tuple[Needed, ...]:
    """The conditions on the letters, besides the order of the ends, for a mass of 1, by its closed form, and no negative density.

    Raises BadInput where that is not known; the laws of sympy.stats are known not to be negative.
    """
    required = (*order, *_of_mass(law, pieces, countable))
    if "Handmade" in type(law).__name__:
        return (*required, *(u for p in pieces for u in _not_negative(law, p, required)))
    return required


def _of_mass(law: Any, pieces: tuple[DensityPiece, ...], countable: bool) -> tuple[Needed, ...]:
    """For which letters the mass is 1."""
    real = {v: Dummy(v.name, real=True) for p in pieces for u in p for v in u.free_symbols if v != T and v.is_real is None}
    found: list[Needed] = []
    mass = S.Zero
    seconds = 10.0  # of a closed form
    try:
        with attempt(seconds):
            for piece in pieces:
                p, low, high = (u.xreplace(real) for u in piece)
                n = Dummy("n", integer=True)
                total = Sum(p.xreplace({T: n}), (n, low, high)).doit() if countable else Integral(p, (T, low, high)).doit()
                for power in [q for q in total.atoms(Pow) if q.exp is oo and q.base.is_real]:  # SymPy sums up a**n to 1 - a**oo
                    total = total.xreplace({power: S.Zero})
                    found += [(1 - power.base, POSITIVE), (1 + power.base, POSITIVE)]
                total = piecewise_fold(total)
                if isinstance(total, Piecewise):
                    total, where = total.args[0]
                    found += [(_positive_where(c), POSITIVE) for c in And.make_args(where)]
                mass += total
            if simplify(mass - 1) != 0:
                raise ValueError
    except (BudgetExceeded, NotImplementedError, ValueError, TypeError, AttributeError):
        checkpoint("integrating a density")  # what ran out may have been the budget around
        free = sorted({str(v) for p in pieces for u in p for v in u.free_symbols if v != T and not v.is_positive})
        raise BadInput(f"E: the mass of the law {said(law)} is not known to be 1 for every {', '.join(map(str, real)) or 'letter'}"
                       f"; give numbers{', or declare ' + ', '.join(free) + ' positive' if free else ''}") from None
    found += [(high - low, POSITIVE) for _, low, high in pieces if low.is_finite and high.is_finite]
    back = {d: v for v, d in real.items()}
    return tuple((u.xreplace(back), i) for u, i in found if u.free_symbols)


def _positive_where(c: Any) -> Expr:
    """An expression that is positive where a condition holds; for a real number |arg u| < pi/2 is u > 0."""
    if not isinstance(c, Relational) or c.rel_op not in ("<", "<=", ">", ">="):
        raise ValueError
    angle = c.lts.args[0] if isinstance(c.lts, Abs) else None
    return angle.args[0] if isinstance(angle, arg) else c.gts - c.lts


__all__ = ["POSITIVE", "DensityPiece", "Needed", "T", "conditions", "counted", "letters_of", "numbers_for", "said", "splits"]
