"""E[f] = sum over the pieces of f of int_lo^hi f_i(z) phi(z) dz: the rules for one standard normal.

A rule is a function of the integrand and its variable that gives the exact value, or None if it has nothing to say;
it raises `Refusal` with the reason where it applies and fails. The cheap ones come first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from sympy import (
    Abs,
    AccumBounds,
    Add,
    DiracDelta,
    Dummy,
    Eq,
    Expr,
    Heaviside,
    Mul,
    Piecewise,
    Pow,
    Rational,
    S,
    Symbol,
    ceiling,
    diff,
    exp,
    expand,
    floor,
    frac,
    fraction,
    oo,
    pi,
    sign,
    sqrt,
    together,
)
from sympy.utilities.iterables import sift

from hermitex.errors import AssumptionNeeded, HermitexError, NoClosedForm
from hermitex.symbolic.bounds.integrability import integrable
from hermitex.symbolic.breaks.roots import real_roots
from hermitex.symbolic.breaks.switches import JUMPS, STEPS, SWITCHES
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.engine.canonical import Diverges, Refusal, integrate
from hermitex.symbolic.engine.canonical_reading import NotCanonical, read
from hermitex.symbolic.engine.hermite_orders import hermite_orders
from hermitex.symbolic.engine.indicators import steps
from hermitex.symbolic.engine.rational_tidying import depends, hold_made, multiplied_out, tidy
from hermitex.symbolic.engine.transforms import logarithm, poles, uniform
from hermitex.symbolic.engine.unordered_switches import unordered
from hermitex.symbolic.existence_check import kept_together
from hermitex.symbolic.formula_size import DECIDED, EXPANDED, operations
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.indexed_sums import HIDDEN, hidden
from hermitex.symbolic.pieces import breakpoints, pieces
from hermitex.symbolic.subexpressions import at_numbers
from hermitex.symbols import fractions

_TOGETHER = "its terms do not exist one by one"


class Answer(NamedTuple):
    """The exact part of an expectation, and the terms of the integrand that have none, each with the reason."""

    value: Expr
    rest: tuple[tuple[Expr, str], ...] = ()


Rule = Callable[[Expr, Symbol], Expr | None]


def expectation(body: Expr, x: Symbol) -> Answer:
    """E[body] over the standard normal x, as far as it is exact.

    Raises
    ------
    Diverges : a term is provably not integrable.

    Examples
    --------
    >>> from sympy import tanh
    >>> x = Symbol('x', real=True)
    >>> expectation(x**2 + tanh(x)**2, x)[0]
    1
    """
    if not depends(body, x):
        return Answer(body)
    try:
        return Answer(integrate(read(body, x), real=not body.has(S.ImaginaryUnit)))
    except (NotCanonical, Refusal):
        pass

    def one(term: Expr) -> Answer:
        factor, core = term.as_independent(x, as_Add=False)
        found = Answer(S.Zero, ((core, HIDDEN),)) if hidden(core, (x,)) else _by_rules(core, x)
        return Answer(factor * found.value, tuple((factor * t, why) for t, why in found.rest))

    found = summed(_groups(body, x), one, (x,))
    if any(why is _TOGETHER for _, why in found.rest) and _decidable(body, x) and _provably_infinite(body, x):
        raise Diverges(f"{body} is not integrable")
    return found


def summed(terms: Sequence[Expr], one: Callable[[Expr], Answer], variables: tuple[Symbol, ...], cov: Any = None) -> Answer:
    """The sum of the averages of terms; terms that may not exist alone are kept together, as they may cancel.

    Raises
    ------
    Diverges : one term does not exist, and all the others do.
    """
    found, lost = [], []
    for term in terms:
        try:
            found.append(one(term))
        except Diverges:
            if len(terms) == 1:
                raise
            lost.append(term)
    value, rest = Add(*(f.value for f in found)), sum((f.rest for f in found), ())
    if not lost:
        times = Counter(t for t, _ in rest)  # equal terms of several summands count as often
        reasons = {times[t] * t: why for t, why in rest}
        together_or_alone = kept_together([n * t for t, n in times.items()], variables, cov)
        return Answer(value, tuple((t, reasons.get(t, _TOGETHER)) for t in together_or_alone))
    if rest:
        return Answer(S.Zero, ((Add(*terms), _TOGETHER),))
    if len(lost) == 1:
        raise Diverges(f"{lost[0]} is not integrable")
    return Answer(value, ((Add(*lost), _TOGETHER),))


def _groups(body: Expr, x: Symbol) -> list[Expr]:
    """The terms of a sum; those with the same switches stay together, so that their boundaries cancel early."""
    if not isinstance(body, Add):
        return [body]
    groups: dict[frozenset, list[Expr]] = {}
    alone: list[Expr] = []
    for term in body.args:
        marks = frozenset(s for s in term.atoms(*SWITCHES) if depends(s, x))
        if term.has(DiracDelta) or not (marks or _readable(term, x)):
            alone.append(term)
        else:
            groups.setdefault(marks, []).append(term)
    return [Add(*g) for g in groups.values()] + alone


def _readable(term: Expr, x: Symbol) -> bool:
    try:
        read(term, x)
    except NotCanonical:
        return False
    return True


def _by_rules(body: Expr, x: Symbol, *, multiplied: bool = False) -> Answer:
    checkpoint("integrating exactly")
    reasons = []
    for rule in RULES:
        try:
            value = rule(body, x)
        except AssumptionNeeded as no:
            both = _either_sign(body, x, no.symbol)
            if both is not None:
                return both
            reasons.append(str(no))
            continue
        except (Refusal, NotCanonical, NoClosedForm) as no:
            reasons.append(getattr(no, "reason", None) or str(no))
            continue
        if value is not None:
            return Answer(value)
    if not multiplied and operations(body) < EXPANDED:
        terms = multiplied_out(body)
        if isinstance(terms, Add):
            groups = _groups(terms, x)
            found = summed(groups, partial(_by_rules, x=x, multiplied=True), (x,))
            if len(found.rest) < len(groups) and not any(why is _TOGETHER for _, why in found.rest):
                return found
    if _decidable(body, x) and _provably_infinite(body, x):
        raise Diverges(f"{body} is not integrable")
    return Answer(S.Zero, ((body, reasons[0] if reasons else "no rule applies"),))


def _either_sign(body: Expr, x: Symbol, a: Expr) -> Answer | None:
    """The value for a > 0 and for a < 0, as one formula in |a| and sign(a); that for a >= 0 of a square root or an |a|."""
    if depends(a, x) or a.is_extended_real is False or a.is_positive is not None:
        return None
    if not isinstance(a, Symbol):
        size = Dummy(str(a), nonnegative=True)
        found = _by_rules(body.xreplace({a: size}), x)
        return None if found.rest else Answer(found.value.xreplace({size: a}))
    p = Dummy(a.name, positive=True)
    sides = [_by_rules(body.xreplace({a: side * p}), x) for side in ((1,) if a.is_nonnegative else (1, -1))]
    if any(s.rest for s in sides):
        return None
    value = sides[0].value.subs(p, a)
    if not a.is_nonnegative:
        even, odd = (multiplied_out((sides[0].value + side * sides[1].value) / 2) for side in (1, -1))
        value = multiplied_out(even.subs(p, Abs(a)) + (sign(a) * odd.subs(p, Abs(a)) if odd != 0 else 0))
    given = at_numbers(body, {a: S.Zero})
    alone = Answer(given) if not _finite(given) or not depends(given, x) else _by_rules(given, x)
    return Answer(with_zero(value, a, a, alone))


def with_zero(value: Expr, a: Symbol, size: Expr, alone: Answer) -> Expr:
    """The value for all a, of one for a != 0: `alone` at a = 0, for E sign(a x + b)^2 is 1, and sign(b)^2 there.

    `size` is a, or |a|. Only where the value has a number at 0, too. If it divides by a that is an accident: 0*erfc(oo) = 0, or
    erfc(zoo b) - erfc(-zoo b) = 0.
    """
    if size.is_nonzero or alone.rest or not _finite(alone.value):
        return value
    if not any(p.exp.is_negative and at_numbers(p.base, {a: S.Zero}) == 0 for p in value.atoms(Pow)):
        lost = multiplied_out(alone.value - there) if _finite(there := at_numbers(value, {a: S.Zero})) else S.Zero
        return multiplied_out(value + lost*(1 - sign(size)**2)) if lost != 0 else value
    letters = (value.free_symbols | alone.value.free_symbols) - {a}
    zero, others = {a: S.Zero}, fractions(letters, 1, -1)
    vanish = [{**others, b: S.Zero} for b in letters if b.is_zero is None]
    few = 15  # digits of a number
    alike = Rational(1, 10**9)  # how near another number is to it that is the same
    for first, then, here in ((others, zero, others), (zero, others, others), *((v, zero, v) for v in vanish)):
        there, given = (e.evalf(few) for e in (at_numbers(at_numbers(value, first), then), at_numbers(alone.value, here)))
        if there is S.NaN or there.has(AccumBounds) or (there.is_Number and _finite(there - given) and abs(there - given) > alike):
            return Piecewise((alone.value, Eq(size, 0)), (value, True))
    return value


def _finite(e: Expr) -> bool:
    return not e.has(S.NaN, S.ComplexInfinity, S.Infinity, S.NegativeInfinity)


# -- the rules -------------------------------------------------------------------------------------------------------
def canonical(body: Expr, x: Symbol) -> Expr | None:
    """Polynomials, exponentials and error functions on the line. Source: Stein's lemma, `canonical.integrate`."""
    if body.has(*SWITCHES, DiracDelta) and _switched(body, x):
        return None
    return integrate(read(body, x), real=not body.has(S.ImaginaryUnit))


def delta(body: Expr, x: Symbol) -> Expr | None:
    """E[delta(p(z)) f(z)] = sum_roots f phi/|p'|; derivatives of delta by parts. Source: change of variables."""
    found = [d for d in body.atoms(DiracDelta) if depends(d, x)]
    if not found:
        return None
    if isinstance(body, Add):
        return Add(*(_exact(t, x) for t in body.args))
    spike = found[0]
    rest = body / spike
    if len(found) > 1 or rest.has(spike):
        raise Refusal("a product of Dirac deltas of one variable has no meaning")
    p, order = spike.args[0], spike.args[1] if len(spike.args) > 1 else S.Zero
    slope = diff(p, x)
    density = rest * exp(-x**2 / 2) / sqrt(2 * pi)
    if order != 0:
        if depends(slope, x):
            raise Refusal("a derivative of delta is integrated for a linear argument only")
        a = -p.subs(x, 0) / slope
        _continuous(rest, x, a, all_switches=True)
        return (-1)**order * diff(density, x, order).subs(x, a) / (Abs(slope) * slope**order)

    total = []
    for a in [tidy(-p.subs(x, 0) / slope)] if not depends(slope, x) else real_roots(p, x, -oo, oo):
        _continuous(rest, x, a)
        at = tidy(slope.subs(x, a))
        if at.is_zero:
            raise Refusal(f"{p} touches zero at {a}, where delta has no meaning")
        total.append(tidy(rest.subs(x, a)) * exp(tidy(-a**2 / 2)) / (sqrt(2 * pi) * Abs(at)))
    return Add(*total)


def switches(body: Expr, x: Symbol) -> Expr | None:
    """The sum over the intervals between the switching points. Source: additivity of the integral."""
    if not _switched(body, x):
        return None

    # Only the factors that switch are cut up; the others multiply every branch.
    apart = [[f for f in Mul.make_args(body) if _switched(f, x) is here] for here in (True, False)]
    try:
        cut = pieces(Mul(*apart[0]), x)
    except (NoClosedForm, AssumptionNeeded):  # the order of two places is not known, or a sign between them
        value = unordered(steps(body, (x,)), x, _on_interval)
        if value is None:
            raise
        return value
    total = []
    for lo, hi, branch in cut:
        if branch == 0:
            continue
        if branch in (S.NaN, S.ComplexInfinity, oo, -oo):
            raise Refusal(f"it is undefined between {lo} and {hi}")
        total.append(_on_interval(Mul(branch, *apart[1]), x, (lo, hi)))
    return _merged(total)


def powers(body: Expr, x: Symbol) -> Expr | None:
    """|z|^p log(|z|)^k by the Gamma function. Source: `powers.integrate_powers`."""
    from hermitex.symbolic.engine.powers import integrate_powers

    return integrate_powers(body, x, (-oo, oo))


def parity(body: Expr, x: Symbol) -> Expr | None:
    """E[f] = 0 for an odd f; E[p f] = E[p] c/2 for an even p and f(z) + f(-z) = c. Source: z and -z have the same law."""
    if operations(body) > DECIDED:
        return None
    even, uneven = sift(Mul.make_args(body), lambda f: f.xreplace({x: -x}) == f, binary=True)
    total = _stepwise(Add(*(Mul(*uneven).xreplace({x: side}) for side in (x, -x))), x)
    size = Mul(*(1 + Abs(f.args[0]) if isinstance(f, STEPS) else f for f in Mul.make_args(body)))
    if total.has(x):
        num, den = fraction(together(total))
        num, den = expand(num), expand(den)
        total = S.Zero if num == 0 else num / den
    if not uneven or depends(total, x) or total.has(S.NaN) or not provably_finite(size, x):
        return None
    return total / 2 * _exact(Mul(*even), x)


def _stepwise(f: Expr, x: Symbol) -> Expr:
    """The steps that move with x by floors of u rather than -u: floor(u) + floor(-u) = -1 almost everywhere."""
    f = f.replace(frac, lambda u: u - floor(u)).replace(ceiling, lambda u: -floor(-u))
    return f.replace(lambda e: isinstance(e, floor) and e.free_symbols == {x} and e.args[0].could_extract_minus_sign(),
                     lambda e: -1 - floor(-e.args[0]))  # floor(a x) is 0 at a = 0


RULES: tuple[Rule, ...] = (hermite_orders, canonical, delta, switches, poles, uniform, logarithm, powers, parity)


# -- helpers ---------------------------------------------------------------------------------------------------------
def _switched(body: Expr, x: Symbol) -> bool:
    return any(depends(s, x) for s in body.atoms(*SWITCHES))


def _exact(term: Expr, x: Symbol) -> Expr:
    found = expectation(term, x)
    if found.rest:
        raise Refusal(found.rest[0][1])
    return found.value


def _on_interval(branch: Expr, x: Symbol, span: tuple[Expr, Expr]) -> Expr:
    try:
        return integrate(read(branch, x), *span)
    except NotCanonical as no:
        from hermitex.symbolic.engine.powers import integrate_powers

        value = integrate_powers(branch, x, span)
        if value is not None:
            return value
        grown = multiplied_out(branch) if operations(branch) < EXPANDED else branch
        if isinstance(grown, Add):
            try:
                return Add(*(_on_interval(t, x, span) for t in grown.args))
            except Diverges as alone:  # one term, which another may cancel
                raise Refusal(_TOGETHER) from alone
        raise Refusal(str(no)) from no


def _merged(parts: list[Expr]) -> Expr:
    """The sum of the pieces; what they have in common cancels after expansion, if that makes it shorter."""
    total = Add(*parts)
    if len(parts) < 2 or operations(total) > EXPANDED:
        return total
    light, held = hold_made(total, exp)
    return min(light, multiplied_out(light), key=operations).xreplace(held)


def _continuous(f: Expr, x: Symbol, a: Expr, *, all_switches: bool = False) -> None:
    """Refuse if f jumps at a: delta times a jump at the same point is not defined."""
    kinds = SWITCHES if all_switches else JUMPS
    for s in f.atoms(*kinds):
        if not depends(s, x):
            continue
        if isinstance(s, sign | Heaviside | Abs):
            meets = tidy(s.args[0].subs(x, a)).is_zero
        else:
            meets = any(tidy(b - a).is_zero is not False for b in breakpoints(s, x))
        if meets:
            raise Refusal(f"delta sits on the jump of {s} at {a}, where their product is not defined")


def provably_finite(body: Expr, x: Symbol) -> bool:
    """Is E|body(x)| proved to be finite, x a standard normal?"""
    return _integrable(body, x) is True


def _decidable(body: Expr, x: Symbol) -> bool:
    return body.free_symbols == {x} and operations(body) < DECIDED


def _provably_infinite(body: Expr, x: Symbol) -> bool:
    return _integrable(body, x) is False


def _integrable(body: Expr, x: Symbol) -> bool | None:
    if body.has(*STEPS):
        return None  # bounded steps: their many pieces are not worth the look
    atoms = {n: Dummy(real=True) for n in body.atoms(Expectation)}
    try:
        found = integrable(body.xreplace(atoms), x)
    except HermitexError:
        return None
    # Nodes inside are read as any numbers: what diverges for most may cancel for these.
    return None if atoms and found is False else found
