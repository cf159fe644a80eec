"""Laws that are known by their density or their probabilities alone, brought down to averages over a standard normal, or to sums.

    E f(x) = E_z[w(z) f(T(z))],    w(z) = p(T(z)) T'(z)/phi(z),     t = -log(1 - Phi(z)),   b = -log Phi(z)

    a <= x <= c       T = a + (c - a) Phi(z)
    x >= a            T = a + s t, or a + s t exp(t/k) where the density falls no faster than x^-(1 + k)
    all x             T = m + s (t - b), or the two halves

on each piece of the density, so that nothing breaks inside. The median m, the spread s and the power k are read off the density at
numbers: they say where its weight lies, and no digit hangs on them. The mass must be 1: at numbers it is summed up, in letters it
is integrated in closed form, which says for which letters it holds.
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
    Integer,
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
    exp,
    expand,
    gamma,
    nan,
    oo,
    piecewise_fold,
    sign,
    simplify,
    solve,
    sqrt,
    zoo,
)
from sympy.core.relational import Relational

from hermitex.errors import BadInput, BudgetExceeded, NoClosedForm
from hermitex.symbolic import hooks
from hermitex.symbolic.arithmetic import mp
from hermitex.symbolic.budget import checkpoint, kept
from hermitex.symbolic.deadline import attempt
from hermitex.symbolic.weighted_laws import below, survives

Needed = tuple[Expr, Interval]
Piece = tuple[Expr, Expr, Expr]  # a density as a formula of T, from where to where
Shape = tuple[Any, Expr, Expr]  # the powers of the two tails (None: exponential or lighter), a median and a spread
T = Dummy("t", real=True)
_POSITIVE = Interval.open(0, oo)
_REACH, _COARSE, _FINE = 40, 4, 512  # of the logarithm of a distance, and steps to 1
_NONE = mp.mpf(10)**-60  # of the largest weight
_MASS = 1e-9  # to which the mass of a density at numbers is 1
_SECONDS = 10.0  # of a closed form
_FAR = mp.mpf(10)**30  # where the fall of a density is read
_STEEP = 50  # a power of x that falls faster is none
_NOWHERE: Shape = ((None, None), S.Zero, S.One)
_STEPS, _FURTHEST = (4, 8, 16, 32), 36  # nodes to 1 of what is averaged, and how far
_TERMS = 4000
_NUMBERS = (S.One, S(2), S.Half, S(3), Rational(1, 3), S.Zero, S.NegativeOne)  # for letters
_FURTHER = (*_NUMBERS, S(10), S(-5))
_TRIED = 200


def by_density(law: Any, z: Expr) -> list[tuple[Expr, Expr]]:
    """Pairs of value and weight, functions of z, whose sum of averages is that over the law.

    Raises
    ------
    BadInput : the density has another mass than 1, or is not understood.

    Examples
    --------
    >>> from sympy import symbols
    >>> from sympy.stats import WignerSemicircle
    >>> z = symbols("z", real=True)
    >>> by_density(WignerSemicircle("x", 2).pspace.distribution, z)
    [(2*erf(sqrt(2)*z/2), 2*sqrt(4 - 4*erf(sqrt(2)*z/2)**2)/pi)]
    """
    pieces, _, shape = _read(law)
    t, b = survives(z), survives(-z)
    return [(value, p.xreplace({T: value})*slope)
            for p, value, slope in _mapped(pieces, shape, below(z), t, b, (1/below(-z), 1/below(z)))]


def _mapped(pieces: Iterable[Piece], shape: Shape, u: Any, t: Any, b: Any, slopes: tuple[Any, Any]
            ) -> Iterator[tuple[Expr, Any, Any]]:
    """Each piece, T there, and T' over the normal density; u = Phi(z), t, b and the slopes of t and -b."""
    powers, middle, spread = shape

    def half(end: Expr, right: bool) -> tuple[Any, Any]:
        power, x, slope = powers[right], t if right else b, slopes[0] if right else slopes[1]
        side = 1 if right else -1
        if power is None:
            return end + side*spread*x, spread*slope
        return end + side*spread*x*exp(x/power), spread*(1 + x/power)*exp(x/power)*slope

    for p, low, high in pieces:
        if low.is_finite and high.is_finite:
            yield p, low + (high - low)*u, high - low
        elif low.is_finite or high.is_finite:
            yield p, *half(low if low.is_finite else high, bool(low.is_finite))
        elif powers == (None, None):
            yield p, middle + spread*(t - b), spread*(slopes[0] + slopes[1])
        else:
            yield from ((p, *half(middle, right)) for right in (False, True))


def by_mass(law: Any, n: Expr) -> tuple[Expr, Expr]:
    """The probability of the n-th value of a countable law, n = 0, 1, 2, ..., and that value."""
    (p, low, _), = _read(law)[0]
    return p.xreplace({T: low + n}), low + n


def needed(law: Any) -> list[Needed]:
    """What the letters of a law must satisfy for its mass to be 1."""
    return list(_read(law)[1])


@kept(256)
def _read(law: Any) -> tuple[tuple[Piece, ...], tuple[Needed, ...], Shape]:
    """The pieces of a density or of probabilities, the conditions of its letters, and where its weight lies."""
    countable = not isinstance(law.set, Interval)
    refused = None
    for pieces, order in [(_counted(law), ())] if countable else _splits(law):
        try:
            return _lies(law, pieces, order, countable)
        except BadInput as error:
            refused = refused or error
    raise refused or BadInput(f"E: where the density of {_said(law)} changes is not known; give numbers for its letters")


def _lies(law: Any, pieces: tuple[Piece, ...], order: tuple[Needed, ...], countable: bool
          ) -> tuple[tuple[Piece, ...], tuple[Needed, ...], Shape]:
    """The same of one way to put the ends of the pieces in order."""
    letters = _letters(u for p in pieces for u in p)
    if not letters:
        mass, shape = _at_numbers(pieces, countable)
        if mass is None:
            raise BadInput(f"E: the law {_said(law)} could not be summed up to its mass: it is no density, or narrow beside its "
                           "distance from 0; of x = m + s*u take the law of u")
        if abs(mass - 1) > _MASS:
            raise BadInput(f"E: the law {_said(law)} has the mass {mp.nstr(mass, 6)}, not 1")
        return pieces, (), shape
    conditions = (*order, *_conditions(law, pieces, countable))
    if "Handmade" in type(law).__name__:
        conditions = (*conditions, *(u for p in pieces for u in _not_negative(law, p, conditions)))
    for at in _numbers(letters):
        if any(i.contains(simplify(u.xreplace(at))) != True for u, i in conditions):  # noqa: E712 - SymPy's true
            continue
        formula = _NOWHERE if countable else _in_letters(pieces, at)
        if formula is None:
            continue
        powers, middle, spread = formula
        mass, _ = _at_numbers(tuple((p.xreplace(at), low.xreplace(at), high.xreplace(at)) for p, low, high in pieces), countable,
                              (powers, middle.xreplace(at), spread.xreplace(at)))
        if mass is not None and abs(mass - 1) < _MASS:
            return pieces, (*conditions, *(((spread, _POSITIVE),) if spread.free_symbols else ())), formula
    raise BadInput(f"E: where the law {_said(law)} lies is not known for every {', '.join(map(str, letters))}; give numbers")


def _not_negative(law: Any, piece: Piece, conditions: Iterable[Needed]) -> Iterator[Needed]:
    """What keeps a density that is linear in x from being negative; raises BadInput where one that is not is negative somewhere."""
    p, low, high = piece
    if p.as_independent(T, as_Add=False)[1].diff(T, 2) == 0 and low.is_finite and high.is_finite:
        yield from ((simplify(p.xreplace({T: end})), Interval(0, oo)) for end in (low, high))
        return
    letters = _letters(piece)
    for at in islice(_numbers(letters, _FURTHER), _TRIED):
        if all(i.contains(u.xreplace(at)) == True for u, i in conditions):  # noqa: E712 - SymPy's true
            a, b = low.xreplace(at), high.xreplace(at)
            a, b = (a if a.is_finite else b - 8 if b.is_finite else S(-8)), (b if b.is_finite else a + 8 if a.is_finite else S(8))
            for k in range(1, 16):
                if p.xreplace({**at, T: a + (b - a)*Rational(k, 16)}).evalf(15).is_negative:
                    said = ", ".join(f"{v} = {x}" for v, x in at.items())
                    raise BadInput(f"E: the density {_said(law)} is negative at {said}; give numbers for its letters")


def _letters(exprs: Iterable[Any]) -> list[Any]:
    return sorted({v for u in exprs for v in u.free_symbols} - {T}, key=str)


def _numbers(letters: list[Any], numbers: tuple[Expr, ...] = _NUMBERS) -> Iterator[dict[Any, Any]]:
    """Numbers for letters that do not contradict what is declared of them."""
    for values in product(numbers, repeat=len(letters)) if len(letters) < 5 else ():
        if not any(_against(v, x) for v, x in zip(letters, values, strict=True)):
            yield dict(zip(letters, values, strict=True))


def _against(letter: Expr, number: Expr) -> bool:
    """Does a number contradict what is declared of a letter?"""
    return any(is_so is not None and getattr(number, f"is_{name}") not in (is_so, None)
               for name, is_so in letter._assumptions.items() if name in ("positive", "negative", "zero", "integer", "real"))


def _said(law: Any) -> str:
    density = law.args[0] if "Handmade" in type(law).__name__ else law
    return str(getattr(density, "expr", density))


def _splits(law: Any) -> Iterator[tuple[tuple[Piece, ...], tuple[Needed, ...]]]:
    """The density on the intervals on which it is one formula, with what must be positive for their ends to stand in this order.

    Where letters move the ends, each order that numbers for the letters have is one answer.
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
        raise BadInput(f"E: the density of {_said(law)} vanishes, or is not understood")
    yield found, ()


def _in_order(law: Any, whole: Piecewise) -> Iterator[tuple[tuple[Piece, ...], tuple[Needed, ...]]]:
    """The same where every condition compares T with a formula of the letters."""
    ends, slopes = [law.set.inf, law.set.sup], []
    for c in set().union(*(condition.atoms(Relational) for _, condition in whole.args)):
        slope = (c.lhs - c.rhs).diff(T)
        if not c.has(T) or slope.has(T) or slope == 0:
            raise BadInput(f"E: where the density of {_said(law)} changes is not known; give numbers for its letters")
        ends.append(expand(simplify(T - (c.lhs - c.rhs)/slope)))
        slopes += [slope] if slope.free_symbols else []
    ends = list(dict.fromkeys(ends))
    seen = set()
    for at in _numbers(_letters([whole, *ends])):
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
        needed = [(high - low, _POSITIVE) for low, high in pairwise(placed) if low.is_finite and high.is_finite]
        if any(p.xreplace({**at, T: x}).is_negative for (p, _, _), (_, _, x) in zip(pieces, inside, strict=True)):
            continue
        yield tuple(p for p in pieces if p[0] != 0), (*needed, *((i*u, _POSITIVE) for i, u in zip(signs, slopes, strict=True)))


def _between(low: Expr, high: Expr) -> Expr:
    if low.is_finite and high.is_finite:
        return (low + high)/2
    return low + 1 if low.is_finite else high - 1 if high.is_finite else S.Zero


def _counted(law: Any) -> tuple[Piece, ...]:
    low, high = law.set.inf, law.set.sup
    if not (low.is_integer and high == oo):
        raise BadInput(f"E: the law {_said(law)} lives on {law.set}; a countable one is averaged over from a whole number on")
    n = Dummy("n", integer=True, nonnegative=True)
    return ((law.pdf(low + n).xreplace({n: T - low}), low, high),)


def _conditions(law: Any, pieces: tuple[Piece, ...], countable: bool) -> tuple[Needed, ...]:
    """For which letters the mass is 1, by its closed form."""
    real = {v: Dummy(v.name, real=True) for p in pieces for u in p for v in u.free_symbols if v != T and v.is_real is None}
    found: list[Needed] = []
    mass = S.Zero
    try:
        with attempt(_SECONDS):
            for piece in pieces:
                p, low, high = (u.xreplace(real) for u in piece)
                n = Dummy("n", integer=True)
                total = Sum(p.xreplace({T: n}), (n, low, high)).doit() if countable else Integral(p, (T, low, high)).doit()
                for power in [q for q in total.atoms(Pow) if q.exp is oo and q.base.is_real]:  # SymPy sums up a**n to 1 - a**oo
                    total = total.xreplace({power: S.Zero})
                    found += [(1 - power.base, _POSITIVE), (1 + power.base, _POSITIVE)]
                total = piecewise_fold(total)
                if isinstance(total, Piecewise):
                    total, where = total.args[0]
                    found += [(_positive_where(c), _POSITIVE) for c in And.make_args(where)]
                mass += total
            if simplify(mass - 1) != 0:
                raise ValueError
    except (BudgetExceeded, NotImplementedError, ValueError, TypeError, AttributeError):
        checkpoint("integrating a density")  # what ran out may have been the budget around
        raise BadInput(f"E: the mass of the law {_said(law)} is not known to be 1 for every {', '.join(map(str, real)) or 'letter'}"
                       "; give numbers, or declare its letters positive") from None
    found += [(high - low, _POSITIVE) for _, low, high in pieces if low.is_finite and high.is_finite]
    back = {d: v for v, d in real.items()}
    return tuple((u.xreplace(back), i) for u, i in found if u.free_symbols)


def _positive_where(c: Any) -> Expr:
    """What is positive where a condition holds; of a real number |arg u| < pi/2 is u > 0."""
    if not isinstance(c, Relational) or c.rel_op not in ("<", "<=", ">", ">="):
        raise ValueError
    angle = c.lts.args[0] if isinstance(c.lts, Abs) else None
    return angle.args[0] if isinstance(angle, arg) else c.gts - c.lts


def _at_numbers(pieces: tuple[Piece, ...], countable: bool, shape: Shape | None = None) -> tuple[Any, Shape]:
    """The mass, None where it is not known, and where it lies. It is that of the map: nothing is too narrow for its nodes."""
    with mp.workdps(30):
        try:
            if countable:
                (p, low, _), = pieces
                f = hooks.numeric(p, [T])
                terms = [f(mp.mpf(int(low) + n)) for n in range(_TERMS)]
                return (mp.fsum(terms) if abs(terms[-1]) < _MASS/_TERMS and min(terms) >= 0 else None), _NOWHERE
            shape = shape or _shape(pieces)
            return (None if shape is None else _mass(pieces, shape)), shape or _NOWHERE
        except (TypeError, ValueError, ArithmeticError, NoClosedForm):
            return None, _NOWHERE


def _mass(pieces: tuple[Piece, ...], shape: Shape) -> Any:
    """The sum over equidistant z of what is averaged; None where no number of nodes gives it, or a density is negative."""
    letters = u, t, b, right, left = [Dummy(n) for n in "utbrl"]
    f = [hooks.numeric(p.xreplace({T: value})*slope, letters) for p, value, slope in _mapped(pieces, shape, u, t, b, (right, left))]
    last = None
    for steps in _STEPS:
        total = mp.zero
        for k in range(-_FURTHEST*steps, _FURTHEST*steps + 1):
            z = mp.mpf(k)/steps
            up, down = mp.erfc(-z/mp.sqrt(2))/2, mp.erfc(z/mp.sqrt(2))/2
            t, b = (-mp.log(tail) if tail < other else -mp.log1p(-other) for tail, other in ((down, up), (up, down)))
            value = mp.fsum(g(up, t, b, 1/down, 1/up) for g in f)
            if mp.im(value) or value < -_MASS:
                return None
            total += value*mp.npdf(z)/steps
        if last is not None and abs(total - last) < _MASS/10:
            return total
        last = total
    return None


def _ends(pieces: Iterable[Piece]) -> tuple[list[Expr], dict[bool, Piece]]:
    """Where half lines begin, and the pieces that run to -oo (False) and oo (True)."""
    pieces = list(pieces)
    begin = [u for _, low, high in pieces for u in (low, high) if u.is_finite and not (low.is_finite and high.is_finite)]
    return begin, {right: p for p in pieces for right in (False, True) if p[2 if right else 1].is_infinite}


def _shape(pieces: tuple[Piece, ...]) -> Shape | None:
    """Where the weight of a density lies, at numbers."""
    begin, far = _ends(pieces)
    if not far:
        return _NOWHERE
    grids = [_grid(*piece) for piece in pieces]
    weights = sorted(pair for g in grids for pair in g or ())
    if any(g is None for g in grids) or not weights:
        return None
    middle = mp.mpf(begin[0].evalf(20)) if begin else _quantile(weights)
    spread = S(2)**int(mp.nint(mp.log(_quantile(sorted((abs(x - middle), w) for x, w in weights)), 2)))
    return _powers(far, bool(begin)), spread*int(mp.nint(middle*spread.q/spread.p)), spread


def _powers(far: dict[bool, Piece], bounded: bool) -> tuple[Expr | None, Expr | None]:
    left, right = (_power(far[side][0], 1 if side else -1) if side in far else None for side in (False, True))
    if not bounded and (left is None) != (right is None):  # its halves are taken one by one
        return left or S.One, right or S.One
    return left, right


def _in_letters(pieces: tuple[Piece, ...], at: dict[Any, Any]) -> Shape | None:
    """Where it lies as a formula: the mode and its width, or how far from its end a half line falls, or has its mode."""
    begin, far = _ends(pieces)
    if not far:
        return _NOWHERE
    p, low, high = far[max(far)]
    slope = simplify(p.diff(T)/p)
    inside = Interval.open(*(S(u).xreplace(at) for u in (low, high)))
    modes = [m for m in solve(slope, T) if inside.contains(m.xreplace(at)) == True] if slope.has(T) else []  # noqa: E712
    if begin:
        middle, at_end = begin[0], slope.xreplace({T: begin[0]})
        falls = at_end != 0 and not at_end.has(zoo, nan, oo)
        spread = -1/at_end if falls else modes[0] - middle if len(modes) == 1 else None
        if spread is not None and not high.is_infinite:
            spread = -spread
    else:
        middle, spread = (modes[0], 1/sqrt(-slope.diff(T).xreplace({T: modes[0]}))) if len(modes) == 1 else (None, None)
    if spread is None:
        return None
    numbers = {side: (q.xreplace(at), first, last) for side, (q, first, last) in far.items()}
    return _powers(numbers, bool(begin)), simplify(middle), simplify(spread)


def _quantile(weights: list[tuple[Any, Any]]) -> Any:
    """The median of places with weights, in order."""
    half, so_far = mp.fsum(w for _, w in weights)/2, mp.zero
    for x, w in weights:
        so_far += w
        if so_far >= half:
            return x
    return weights[-1][0]


def _grid(p: Expr, low: Expr, high: Expr) -> list[tuple[Any, Any]] | None:
    """Places and weights that sum up a piece: equidistant in the logarithm of the distance from its ends, doubly so between two."""
    f = hooks.numeric(p, [T])
    a, c = (None if u.is_infinite else mp.mpf(u.evalf(30)) for u in (low, high))

    def at(y: Any) -> tuple[Any, Any]:
        if a is not None and c is not None:
            u = mp.exp(mp.sinh(y))
            x, slope = (a + (c - a)*u/(1 + u) if y < 0 else c - (c - a)/(1 + u)), (c - a)*u/(1 + u)**2*mp.cosh(y)
        elif a is not None or c is not None:
            slope = mp.exp(y)
            x = a + slope if a is not None else c - slope
        else:
            x, slope = mp.sinh(y), mp.cosh(y)
        return x, f(x)*slope

    reach, last = (4 if a is not None and c is not None else _REACH), None
    steps = _COARSE
    while steps <= _FINE:
        points, most, sides = [at(mp.zero)], mp.zero, [1, -1]
        for k in range(1, reach*steps + 1):  # outwards, no further than there is any: exp(-exp(10^20)) takes for ever
            for side in list(sides):
                points.append(at(mp.mpf(side*k)/steps))
                most = max(most, abs(points[-1][1]))
                if abs(points[-1][1]) < _NONE*most:
                    sides.remove(side)
        total = mp.fsum(w for _, w in points)/steps
        if last is not None and abs(total - last) <= _MASS/100*max(abs(total), 1):
            return [(x, w/steps) for x, w in points]
        last, steps = total, 2*steps
    return None


def _power(p: Expr, side: int) -> Expr | None:
    """k where a density falls like x^-(1 + k), 1 where it falls slower than an exponential; None where it falls faster."""
    f = hooks.numeric(p, [T])
    try:
        falls = [-mp.log(f(side*x)) for x in (_FAR, 2*_FAR, _FAR**2)]
    except OverflowError:  # exp(-exp(x))
        return None
    slope = (falls[2] - falls[0])/mp.log(_FAR)
    if slope < _STEEP:
        return max(Rational(int(mp.nint(4*(slope - 1))), 12), Rational(1, 12))
    return None if falls[1] > 1.9*falls[0] else Integer(1)


__all__ = ["by_density", "by_mass", "needed"]
