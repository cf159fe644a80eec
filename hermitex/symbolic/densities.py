"""Laws that are known by their density or their probabilities alone, brought down to averages over a standard normal, or to sums.

    E f(x) = E_z[w(z) f(T(z))],    w(z) = p(T(z)) T'(z)/phi(z),     t = -log(1 - Phi(z)),   b = -log Phi(z)

    a <= x <= c       T = a + (c - a) Phi(z)
    x >= a            T = a + s t, or a + s t exp(t/k) where the density falls no faster than x^-(1 + k)
    all x             T = m + s (t - b), or the two halves

on each piece of the density, so that nothing breaks inside. The median m, the spread s and the power k are read off the density at
numbers: they locate its weight, and no digit depends on them. The mass must be 1: at numbers it is summed up, in letters it
is integrated in closed form, which says for which letters it holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from sympy import (
    Dummy,
    Expr,
    Integer,
    Interval,
    Mul,
    Rational,
    S,
    cancel,
    exp,
    expand_power_base,
    nan,
    oo,
    simplify,
    solve,
    sqrt,
    zoo,
)

from hermitex.errors import BadInput, NoClosedForm
from hermitex.symbolic import hooks
from hermitex.symbolic.arithmetic import mp
from hermitex.symbolic.budget import kept
from hermitex.symbolic.density_pieces import (
    POSITIVE,
    DensityPiece,
    Needed,
    T,
    conditions,
    counted,
    letters_of,
    numbers_for,
    said,
    splits,
)
from hermitex.symbolic.weighted_laws import below, survives

Shape = tuple[Any, Expr, Expr]  # the powers of the two tails (None: exponential or lighter), a median and a spread
_MASS = 1e-9  # to which the mass of a density at numbers is 1: a law that is written in nine digits counts
_FAR = mp.mpf(10)**30  # where the fall of a density is read: lower powers are below rounding there
_NOWHERE: Shape = ((None, None), S.Zero, S.One)


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
    [(2*erf(sqrt(2)*z/2), 2*sqrt(2 - 2*erf(sqrt(2)*z/2))*sqrt(2*erf(sqrt(2)*z/2) + 2)/pi)]
    """
    pieces, _, shape = _read(law)
    t, b = survives(z), survives(-z)
    return [(value, p.xreplace({T: value})*slope)
            for p, value, slope in _mapped(pieces, shape, below(z), t, b, (1/below(-z), 1/below(z)))]


def _mapped(pieces: Iterable[DensityPiece], shape: Shape, u: Any, t: Any, b: Any, slopes: tuple[Any, Any]
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
        p = _from_ends(p, low, high, ((high - low)*u, (high - low)/slopes[0]))
        if low.is_finite and high.is_finite:
            yield p, low + (high - low)*u, high - low
        elif low.is_finite or high.is_finite:
            yield p, *half(low if low.is_finite else high, bool(low.is_finite))
        elif powers == (None, None):
            yield p, middle + spread*(t - b), spread*(slopes[0] + slopes[1])
        else:
            yield from ((p, *half(middle, right)) for right in (False, True))


def _from_ends(p: Expr, low: Expr, high: Expr, away: tuple[Any, Any]) -> Expr:
    """A density whose powers are those of the distances from its ends, T - a and c - T, which lose no digits there and are not 0.

    away : the two distances, between two ends
    """
    if not low.is_finite:
        return p
    y = Dummy("y", positive=True)
    p = expand_power_base(p.xreplace({T: low + y})).xreplace({y: T - low})  # sqrt(x^5/(x + a)^b) is x^(5/2) (x + a)^(-b/2)
    if not high.is_finite:
        return p

    def written(base: Expr, n: Expr) -> Expr:
        found: list[Expr] = []
        for end, part, distance in ((low, T - low, away[0]), (high, high - T, away[1])):
            while base.has(T) and simplify(base.xreplace({T: end})) == 0:
                base = cancel(base/part)
                found.append(distance**n)
        return Mul(base**n, *found)

    return p.replace(lambda e: e.is_Pow and e.base.has(T) and e.base.is_polynomial(T), lambda e: written(*e.as_base_exp()))


def by_mass(law: Any, n: Expr) -> tuple[Expr, Expr]:
    """The probability of the n-th value of a countable law, n = 0, 1, 2, ..., and that value."""
    (p, low, _), = _read(law)[0]
    return p.xreplace({T: low + n}), low + n


def needed(law: Any) -> list[Needed]:
    """What the letters of a law must satisfy for its mass to be 1."""
    return list(_read(law)[1])


@kept(256)
def _read(law: Any) -> tuple[tuple[DensityPiece, ...], tuple[Needed, ...], Shape]:
    """The pieces of a density or of probabilities, the conditions of its letters, and the place of its weight."""
    countable = not isinstance(law.set, Interval)
    refused = None
    for pieces, order in [(counted(law), ())] if countable else splits(law):
        try:
            return _lies(law, pieces, order, countable)
        except BadInput as error:
            refused = refused or error
    raise refused or BadInput(f"E: where the density of {said(law)} changes is not known; give numbers for its letters")


def _lies(law: Any, pieces: tuple[DensityPiece, ...], order: tuple[Needed, ...], countable: bool
          ) -> tuple[tuple[DensityPiece, ...], tuple[Needed, ...], Shape]:
    """The same of one way to put the ends of the pieces in order."""
    letters = letters_of(u for p in pieces for u in p)
    if not letters:
        mass, shape = _at_numbers(pieces, countable)
        if mass is None:
            raise BadInput(f"E: the law {said(law)} could not be summed to a total mass: it is not a density, or narrow "
                           "compared with its distance from 0; of x = m + s*u take the law of u")
        if abs(mass - 1) > _MASS:
            raise BadInput(f"E: the law {said(law)} has the mass {mp.nstr(mass, 6)}, not 1")
        return pieces, (), shape
    required = conditions(law, pieces, order, countable)
    for at in numbers_for(letters):
        if any(i.contains(simplify(u.xreplace(at))) != True for u, i in required):  # noqa: E712 - SymPy's true
            continue
        formula = _NOWHERE if countable else _in_letters(pieces, at)
        if formula is None:
            continue
        powers, middle, spread = formula
        mass, _ = _at_numbers(tuple((p.xreplace(at), low.xreplace(at), high.xreplace(at)) for p, low, high in pieces), countable,
                              (powers, middle.xreplace(at), spread.xreplace(at)))
        if mass is not None and abs(mass - 1) < _MASS:
            return pieces, (*required, *(((spread, POSITIVE),) if spread.free_symbols else ())), formula
    raise BadInput(f"E: the range of the law {said(law)} is not known for every {', '.join(map(str, letters))}; give numbers")


def _at_numbers(pieces: tuple[DensityPiece, ...], countable: bool, shape: Shape | None = None) -> tuple[Any, Shape]:
    """The mass, None if it is not known, and its place. It is the mass of the map, whose nodes resolve every width."""
    counted = 4000  # terms of a sum of probabilities; the last one shows whether more are needed
    with mp.workdps(30):
        try:
            if countable:
                (p, low, _), = pieces
                f = hooks.numeric(p, [T])
                terms = [f(mp.mpf(int(low) + n)) for n in range(counted)]
                return (mp.fsum(terms) if abs(terms[-1]) < _MASS/counted and min(terms) >= 0 else None), _NOWHERE
            shape = shape or _shape(pieces)
            return (None if shape is None else _mass(pieces, shape)), shape or _NOWHERE
        except (TypeError, ValueError, ArithmeticError, NoClosedForm):
            return None, _NOWHERE


def _mass(pieces: tuple[DensityPiece, ...], shape: Shape) -> Any:
    """The sum over equidistant z of what is averaged; None where no number of nodes gives it, or a density is negative."""
    letters = u, t, b, right, left = [Dummy(n) for n in "utbrl"]
    f = [hooks.numeric(p.xreplace({T: value})*slope, letters) for p, value, slope in _mapped(pieces, shape, u, t, b, (right, left))]
    last = None
    furthest = 36  # half a window: beyond it exp(-x^2/2) is 1e-281
    per_unit = (4, 8, 16, 32)  # nodes to 1 of what is averaged
    for steps in per_unit:
        total = mp.zero
        for k in range(-furthest*steps, furthest*steps + 1):
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


def _ends(pieces: Iterable[DensityPiece]) -> tuple[list[Expr], dict[bool, DensityPiece]]:
    """Where half lines begin, and the pieces that run to -oo (False) and oo (True)."""
    pieces = list(pieces)
    begin = [u for _, low, high in pieces for u in (low, high) if u.is_finite and not (low.is_finite and high.is_finite)]
    return begin, {right: p for p in pieces for right in (False, True) if p[2 if right else 1].is_infinite}


def _shape(pieces: tuple[DensityPiece, ...]) -> Shape | None:
    """The place of the weight of a density, at numbers."""
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


def _powers(far: dict[bool, DensityPiece], bounded: bool) -> tuple[Expr | None, Expr | None]:
    left, right = (_power(far[side][0], 1 if side else -1) if side in far else None for side in (False, True))
    if not bounded and (left is None) != (right is None):  # its halves are taken one by one
        return left or S.One, right or S.One
    return left, right


def _in_letters(pieces: tuple[DensityPiece, ...], at: dict[Any, Any]) -> Shape | None:
    """Its place as a formula: the mode and its width, or the distance from the end of a half line to the fall or to the mode."""
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

    largest_log = 40  # of a distance: from exp(-40) to exp(40)
    reach, last = (4 if a is not None and c is not None else largest_log), None
    coarse = 4  # steps to 1 of the logarithm
    steps = coarse
    fine = 512  # steps to 1 at last, each time twice as many
    none = mp.mpf(10)**-60  # of the largest weight
    while steps <= fine:
        points, most, sides = [at(mp.zero)], mp.zero, [1, -1]
        for k in range(1, reach*steps + 1):  # outwards, no further than there is any: exp(-exp(10^20)) takes for ever
            for side in list(sides):
                points.append(at(mp.mpf(side*k)/steps))
                most = max(most, abs(points[-1][1]))
                if abs(points[-1][1]) < none*most:
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
    except OverflowError:
        return None
    if not all(map(mp.isfinite, falls)):  # exp(-exp(x)) is 0 there
        return None
    slope = (falls[2] - falls[0])/mp.log(_FAR)
    steep = 50  # a power of x that falls faster is none
    if slope < steep:
        return max(Rational(int(mp.nint(4*(slope - 1))), 12), Rational(1, 12))
    return None if falls[1] > 1.9*falls[0] else Integer(1)


__all__ = ["by_density", "by_mass", "needed"]
