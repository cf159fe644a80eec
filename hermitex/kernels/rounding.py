"""C -> C + 2^-30 sum_i |t_i| for each closed form C = sum_i t_i: the formulas of a system with its closed forms off by
what is many times their rounding, and so little that everything moves in proportion.

An average that holds such a form, a name that stands for one, and what holds these are taken a second time; the rest is shared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sympy import Abs, Add, Expr, Float, Function, Mul, Piecewise, Pow, S, Symbol
from sympy.core.function import ArgumentIndexError

from hermitex.kernels.cancellation import Known, size
from hermitex.kernels.lowered import Lowered
from hermitex.kernels.recognition import exp_erfc, recognise

OFF = 2.0**-30  # of the sum of the terms
_PLAIN = 64  # so many times as large as their sum, the terms do not cancel
_FUNCTION = 4  # roundings in a function's value
_GOLDEN = 0.6180339887498949  # so that no two forms are off by the same part: a difference of them would not move


class modulus(Function):  # a function's name in source
    """|x|, which no one reads as a place where something breaks."""

    is_extended_nonnegative = True

    @classmethod
    def eval(cls, x: Expr) -> Expr | None:
        return Abs(x) if x.is_number else None


@dataclass(frozen=True)
class Shaken:
    """Formulas with their closed forms off by rounding, and the averages and names that only they need."""

    outputs: list[Expr] = field(default_factory=list)
    named: dict[Symbol, Expr] = field(default_factory=dict)
    contractions: list[tuple[Symbol, Expr, Any]] = field(default_factory=list)


def written(e: Expr, forms: Mapping[Symbol, Expr]) -> Expr:
    """A formula with the symbols of closed forms written out."""
    return e.xreplace(forms) if forms and not forms.keys().isdisjoint(e.free_symbols) else e


def shaking(outputs: Sequence[Expr], named: Mapping[Symbol, Expr], contractions: Sequence[tuple[Symbol, Expr, Any]],
            forms: Mapping[Symbol, Expr], fresh: Iterator[Symbol], unknowns: Iterable[str] = ()) -> Shaken | None:
    """The outputs with what cancels in them, in names and in integrands off by rounding; None where nothing does.

    Parameters
    ----------
    named : definitions;  contractions : (symbol, body, axes) of averages, all of them with symbols for the closed forms in them
    forms : {symbol: closed form whose terms may cancel};  fresh : symbols for further averages
    unknowns : the names of the letters that are not given
    """
    whole = [written(e, forms) for e in outputs]
    inside = {v: body for v, body, axes in contractions if not axes[0].summed}
    varies, axes = _varying(named, contractions), {a.symbol for _, _, along in contractions for a in along}
    numbers = [v for v in named if not varies[v]]  # what varies along an axis would be averaged a second time
    letters = frozenset[Symbol]().union(*(written(e, forms).free_symbols for e in (*outputs, *named.values(), *inside.values())))
    letters -= axes | named.keys() | {v for v, _, _ in contractions}
    solved = set(unknowns)
    rounded = {s for s in letters if s.name in solved}
    own = {v for v in inside if not varies[v]}
    known = Known(letters - rounded, frozenset(rounded.union(numbers, own)), frozenset(inside.keys() - own))
    parts = _Parts(known)
    shifts = [parts.shift(e) for e in whole]
    below = [_below(e, forms, parts) for e in outputs]
    alone: dict[Symbol, tuple[Expr, Expr]] = {}
    for v, e in ({v: named[v] for v in numbers} | inside).items():
        found = _below(e, forms, parts), parts.shift(written(e, forms), within=v in inside)
        if found[1] != 0 or found[0] is not e:
            alone[v] = found
    if not forms and not alone and not any(shifts) and not any(a is not b for a, b in zip(below, outputs, strict=True)):
        return None
    swap: dict[Symbol, Expr] = {c: done + parts.off(size(done)) for c, done in forms.items()}
    bodies = {**named, **{symbol: body for symbol, body, _ in contractions}}
    touched = {v: next(fresh) for v in alone}
    swap |= touched
    while more := [v for v, e in bodies.items() if v not in touched and not e.free_symbols.isdisjoint(swap)]:
        touched |= {v: next(fresh) for v in more}
        swap |= {v: touched[v] for v in more}
    again = {c: e.xreplace(touched) for c, e in swap.items() if c in forms}  # a closed form may hold a name that moves

    def off(e: Expr) -> Expr:
        return e.xreplace({**touched, **again})

    moved = [off(e) + s.xreplace(touched) for e, s in zip(below, shifts, strict=True)]
    bodies |= {v: e + s for v, (e, s) in alone.items()}
    return Shaken(moved, {touched[v]: off(bodies[v]) for v in named if v in touched},
                  [(touched[v], off(bodies[v]), axes) for v, _, axes in contractions if v in touched])


def _varying(named: Mapping[Symbol, Expr], contractions: Sequence[tuple[Symbol, Expr, Any]]) -> dict[Symbol, set[Symbol]]:
    """The symbols of the axes along which each name and each average varies."""
    parts = {v: (e, set[Symbol]()) for v, e in named.items()}
    parts |= {symbol: (body, {a.symbol for a in axes}) for symbol, body, axes in contractions}
    axes = {a.symbol for _, _, along in contractions for a in along}
    varies: dict[Symbol, set[Symbol]] = {v: set() for v in parts}
    while True:
        wider = {v: (e.free_symbols & axes).union(*(varies[u] for u in e.free_symbols & parts.keys())) - own
                 for v, (e, own) in parts.items()}
        if wider == varies:
            return varies
        varies = wider


def _below(e: Expr, forms: Mapping[Symbol, Expr], parts: _Parts) -> Expr:
    """A formula with the sums below its roots, quotients and functions off by rounding; itself where none of them cancels."""
    plain = recognise(e)
    moved = _inside(plain, forms, parts)
    return e if moved is plain else moved


def _inside(e: Expr, forms: Mapping[Symbol, Expr], parts: _Parts) -> Expr:
    if not e.args or not isinstance(e, Add | Mul | Pow | Function) or isinstance(e, Piecewise | exp_erfc):
        return e
    if not all(isinstance(a, Expr) for a in e.args):  # the parameters of a hypergeometric function are no sums
        return e
    args = [_inside(a, forms, parts) for a in e.args]
    if not (isinstance(e, Add | Mul) or (isinstance(e, Pow) and e.exp.is_Integer and e.exp > 0)):  # those are seen by `size`
        shifts = [parts.shift(written(a, forms)) for a in e.args]
        if isinstance(e, Function):  # log E near E = 1 is a difference, too
            rounded = parts.known.rounded
            shifts = [parts.off(modulus(a)) if s == 0 and parts.known.number(a) and not rounded.isdisjoint(a.free_symbols) else s
                      for a, s in zip(e.args, shifts, strict=True)]
        args = [a if s == 0 else a + s for a, s in zip(args, shifts, strict=True)]
    if all(a is b for a, b in zip(args, e.args, strict=True)):
        return e
    if isinstance(e, Function) and str(type(e).__module__).startswith("sympy."):
        return e.func(*args, evaluate=False)  # SymPy would take a long sum to pieces to see its sign
    return e.func(*args)


class _Parts:
    """Of each sum a part of its own, between one and two OFF: what stands twice is off by the same."""

    def __init__(self, known: Known) -> None:
        self.known, self.seen = known, dict[Expr, int]()

    def shift(self, e: Expr, *, within: bool = False) -> Expr:
        """How far a formula is off. What its sums are multiplied by keeps its sign: else E f(c z) would not move with c.

        within : an average, which is known to the rounding of its integrand where nothing cancels: that does not count.
        """
        factors = Mul.make_args(recognise(e))
        lost = [f for f in factors if size(f, self.known) is not None]
        terms = size(Mul(*lost), self.known)
        if within and terms is not None:
            more = terms - _PLAIN*modulus(Mul(*lost))
            terms = (more + modulus(more))/2
        return Mul(*(f for f in factors if f not in lost), self.off(terms))

    def off(self, size: Expr | None) -> Expr:
        """How far a sum of that size is off."""
        if size is None:
            return S.Zero
        k = self.seen.setdefault(size, len(self.seen) + 1)
        return Float((1 + k * _GOLDEN % 1) * OFF) * size.replace(Abs, modulus)


def operations(lowered: Lowered) -> float:
    """How many roundings, each of half a last digit, a relative error of the first output may be made of, sums without loss.

    What sums lose, and what functions make of a rounded argument, is measured with `shaken`; only numbers are not shaken.

    >>> from hermitex.kernels.lowering import lower
    >>> from sympy import Rational, exp
    >>> [round(operations(lower([e]))) for e in (Rational(3, 2), Rational(1, 3), exp(Rational(-700, 3)))]
    [0, 1, 238]
    """
    known: dict[Symbol, float] = {}
    for statement in lowered.statements:
        known[statement.target] = _FUNCTION if statement.axes else _rounded(statement.expr, known)
    return _rounded(lowered.outputs[0], known)


def _rounded(e: Expr, known: Mapping[Symbol, float]) -> float:
    if e.is_Symbol:
        return known.get(e, 0.0)
    if e.is_Rational:
        return float(e.q & (e.q - 1) != 0)
    if not e.args:
        return 1.0
    below = [_rounded(a, known) for a in e.args if isinstance(a, Expr)]
    if e.is_Add or e.is_Mul:
        return (sum(below) if e.is_Mul else max(below)) + len(below) - 1
    if e.is_Pow and e.exp.is_Rational:
        return float(abs(e.exp))*below[0] + max(1.0, float(abs(e.exp)) - 1)
    return _FUNCTION + max(below, default=0.0) + (_conditioned(e) if e.is_number else 0.0)


def _conditioned(e: Expr) -> float:
    """|c f'(c)/f(c)| of a function of a number."""
    try:
        return float(Add(*(abs(c*e.fdiff(k)/e) for k, c in enumerate(e.args, start=1) if not c.is_Integer)).evalf(5))
    except (ArgumentIndexError, TypeError, AttributeError, ValueError):
        return 0.0
