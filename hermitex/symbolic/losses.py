"""l(f), convex: a loss as an atom of SymPy's trees, its variable f bound, everything else in it a numbered parameter.

Two losses are equal exactly when they are equal up to the name of f. Where f enters only through u = a f + b, the loss
is h(u), and argmin_f (f - omega)^2/(2V) + h(a f + b) = (prox_{a^2 V h}(a omega + b) - b)/a: one function h serves all labels.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from sympy import (
    Abs,
    Add,
    Basic,
    Dummy,
    Expr,
    Float,
    Mul,
    Pow,
    Rational,
    S,
    Symbol,
    default_sort_key,
    factor,
    oo,
    sign,
    sympify,
)
from sympy.core.expr import AtomicExpr

from hermitex.errors import BadInput
from hermitex.symbolic.breaks.switches import SWITCHES
from hermitex.symbolic.budget import checkpoint

_KNOWN = ("real", "positive", "nonnegative", "negative", "nonpositive", "nonzero", "integer")


class Loss(AtomicExpr):
    """l(f) as an atom: no substitution and no common subexpression reaches into it.

    Attributes: `expr`, its variable `f`, the tuple `parameters` of its placeholders, and the open interval `domain`.
    """

    __slots__ = ("__dict__", "domain", "expr", "f", "parameters")
    is_commutative = True
    expr: Expr
    f: Symbol
    parameters: tuple[Symbol, ...]
    domain: tuple[Expr, Expr]

    def __new__(cls, expr: Expr, f: Symbol, parameters: tuple[Symbol, ...] = (), domain: tuple[Expr, Expr] = (-oo, oo)) -> Loss:
        obj = AtomicExpr.__new__(cls)
        obj.expr, obj.f, obj.parameters, obj.domain = expr, f, tuple(parameters), domain
        return obj

    def __getnewargs__(self) -> tuple:
        return self.expr, self.f, self.parameters, self.domain

    def _hashable_content(self) -> tuple:
        return self.expr, self.f, self.parameters, self.domain

    def sort_key(self, order: Any = None) -> Any:
        return self.class_key(), (1, (str(self.expr), str(self.parameters))), S.One.sort_key(), S.One

    def at(self, f: Expr, values: tuple[Expr, ...]) -> Expr:
        """l(f) with values for the parameters."""
        return put(self.expr, self, f, values)

    @cached_property
    def slope(self) -> Expr:
        """l'(f), for a smooth loss."""
        return _tidy(self.expr.diff(self.f))

    @cached_property
    def curvature(self) -> Expr:
        """l''(f), for a smooth loss."""
        return _tidy(self.expr.diff(self.f, 2))

    @cached_property
    def smooth(self) -> bool:
        """True if it holds no switch (Abs, Max, Piecewise, ...) of f."""
        return not any(self.f in s.free_symbols for s in self.expr.atoms(*SWITCHES))

    def _to_mpmath(self, prec: int) -> Loss:
        return self  # as an argument of a number-valued function it is itself

    def _sympystr(self, printer: Any) -> str:
        return f"({printer._print(self.f)} -> {printer._print(self.expr)})"

    def _latex(self, printer: Any) -> str:
        return rf"\left[{printer._print(self.f)} \mapsto {printer._print(self.expr)}\right]"


def put(expr: Expr, loss: Loss, f: Expr, values: tuple[Expr, ...]) -> Expr:
    """An expression in the symbols of `loss` at a point."""
    return expr.xreplace({loss.f: f, **dict(zip(loss.parameters, values, strict=True))})


def _tidy(expr: Expr) -> Expr:
    """A derivative over one denominator, which is shorter and does not cancel in floating point."""
    largest = 12  # integer in what is factored: exp(999 f/1000) is a polynomial of degree 999 to SymPy
    plain = all(abs(r.p) <= largest and r.q <= largest for r in expr.atoms(Rational))
    longest = 120  # operations up to which a derivative is factored
    if expr.count_ops() > longest or expr.has(*SWITCHES) or not plain or expr.has(Float):
        return expr
    short = factor(expr)
    return short if short.count_ops() <= expr.count_ops() else expr


# -- making ------------------------------------------------------------------------------------------------------------
VARIABLE = Symbol("f", real=True)


def bind(expr: Expr, f: Symbol, domain: tuple[Expr, Expr] = (-oo, oo)) -> tuple[Loss, tuple[Expr, ...]]:
    """The loss f -> expr and the values of its parameters: the largest parts of it without f.

    >>> from hermitex.symbols import y, f, rho
    >>> bind((rho*y - f)**2/2, f)[1]
    (rho*y,)
    """
    if f not in expr.free_symbols:
        raise BadInput(f"the loss {expr} does not depend on {f}; it is an expression in y and {f}")
    inside = Dummy("f", real=True)
    masked, values = _masked(expr.xreplace({f: inside}), inside)
    lo, hi = (sympify(e, strict=True) for e in domain)
    named = {v: Symbol(f"p{i}", **_assumptions(v)) for i, v in enumerate(values, start=1)}
    rule = {d: named[v] for v, d in values.items()}
    ends = (lo.xreplace({v: named[v] for v in named}), hi.xreplace({v: named[v] for v in named}))
    return Loss(masked.xreplace({inside: VARIABLE, **rule}), VARIABLE, tuple(named.values()), ends), tuple(named)


def _assumptions(value: Expr) -> dict[str, bool]:
    known = {k: True for k in _KNOWN if getattr(value, f"is_{k}")}
    return {"real": True, **known}


def _masked(expr: Expr, f: Symbol) -> tuple[Expr, dict[Expr, Symbol]]:
    """`expr` with a symbol for each largest part without f, one for y - x and x - y; parts that share letters: letter by letter."""
    parts: list[Expr] = []
    for p in _parts(expr, f):
        if p not in parts and -p not in parts:
            parts.append(p)
    shared = {s for i, a in enumerate(parts) for b in parts[i + 1:] for s in a.free_symbols & b.free_symbols}
    values: dict[Expr, Symbol] = {}
    for p in parts:
        for v in ([p] if not p.free_symbols & shared else sorted(p.free_symbols, key=default_sort_key)):
            values.setdefault(v, Dummy(real=True))
    ordered = dict(sorted(values.items(), key=lambda item: default_sort_key(item[0])))
    return _replaced(expr, f, ordered), ordered


def _parts(expr: Basic, f: Symbol) -> list[Expr]:
    if f not in expr.free_symbols:
        return [] if not expr.free_symbols else [expr]
    if isinstance(expr, (Add, Mul)):
        fixed, moving = expr.as_independent(f, as_Add=isinstance(expr, Add))
        coefficient = fixed.as_coeff_Mul()[1] if isinstance(expr, (Add, Mul)) else fixed
        own = [coefficient] if coefficient.free_symbols else []
        return own + [p for a in type(expr).make_args(moving) for p in _parts(a, f)]
    return [p for a in expr.args for p in _parts(a, f)]


def _replaced(expr: Basic, f: Symbol, values: dict[Expr, Symbol]) -> Any:
    if expr == f:
        return f
    if expr in values:
        return values[expr]
    if f not in expr.free_symbols:
        if not expr.free_symbols:
            return expr
        coefficient, rest = expr.as_coeff_Mul()
        if -rest in values:
            return -coefficient * values[-rest]
        return coefficient * values[rest] if rest in values else expr.xreplace(values)
    if isinstance(expr, (Add, Mul)):
        fixed, moving = expr.as_independent(f, as_Add=isinstance(expr, Add))
        kind = type(expr)
        return kind(_replaced(fixed, f, values), *(_replaced(a, f, values) for a in kind.make_args(moving)))
    return expr.func(*(_replaced(a, f, values) for a in expr.args))


# -- one inner variable ------------------------------------------------------------------------------------------------
class Inner(NamedTuple):
    """l(f) = h(a f + b): `core` is h, over the parameters that it still has; a and b in the parameters of l."""

    core: Loss
    a: Expr
    b: Expr


@lru_cache(maxsize=512)
def inner(loss: Loss) -> Inner:
    """The representation l(f) = h(a f + b) in which h has the fewest parameters (a = 1, b = 0 if none is better)."""
    best = Inner(loss, S.One, S.Zero)
    if loss.domain != (-oo, oo):
        return best
    forms = list(dict.fromkeys(_affine_parts(loss.expr, loss.f)))
    for form in forms:
        a, b = form.diff(loss.f), form.subs(loss.f, 0)
        if a.is_zero is not False and not _label(a):
            continue
        rule = {}
        for other in forms:
            ratio = other.diff(loss.f) / a
            rule[other] = ratio * loss.f + (other.subs(loss.f, 0) - ratio * b).expand()
        h = _swap(loss.expr, rule)
        alone = len(forms) == 1 and form != loss.f  # log(1 + exp(-f)) is log(1 + exp(f)) at -f
        if len(h.free_symbols - {loss.f}) < len(best.core.parameters) or alone:
            kept = tuple(p for p in loss.parameters if p in h.free_symbols)
            best = Inner(Loss(h, loss.f, kept), a, b)
    return best


def _label(a: Expr) -> bool:
    """A lone factor such as the label y: it is taken not to vanish (at y = 0 alone the loss would not depend on f)."""
    return a.as_coeff_Mul()[1].is_Symbol


def _affine_parts(expr: Basic, f: Symbol) -> list[Expr]:
    if f not in expr.free_symbols:
        return []
    if isinstance(expr, Expr) and expr.is_polynomial(f) and f not in expr.diff(f).expand().free_symbols:
        return [expr]
    if isinstance(expr, Mul):  # y*f*log(..): f is a factor of its own
        moving = expr.as_independent(f, as_Add=False)[1]
        return [p for a in Mul.make_args(moving) for p in _affine_parts(a, f)]
    return [p for a in expr.args for p in _affine_parts(a, f)]


def _swap(expr: Basic, rule: dict[Expr, Expr]) -> Any:
    if expr in rule:
        return rule[expr]
    return expr if not expr.args else expr.func(*(_swap(a, rule) for a in expr.args))


def labels(expr: Expr) -> Expr:
    """sign(x)^2 = 1 and 1/sign(x) = sign(x): x = 0 has no weight.

    >>> from hermitex.symbols import x
    >>> labels(3/sign(x) + sign(x)**2)
    3*sign(x) + 1
    """
    return expr.replace(lambda e: isinstance(e, Pow) and isinstance(e.base, sign) and e.exp.is_Integer,
                        lambda e: e.base if e.exp % 2 else S.One)


# -- convexity ---------------------------------------------------------------------------------------------------------
def require_convex(branch: Expr, f: Symbol, interval: tuple[Expr, Expr]) -> None:
    """Refuse a branch whose second derivative is negative somewhere in its range.

    Raises BadInput, in one line, with the place.
    """
    checkpoint("checking that the loss is convex")
    bend = branch.diff(f, 2)
    if bend.is_nonnegative:
        return
    if bend.is_negative:
        raise BadInput(f"the loss is not convex in f: its second derivative is {bend} < 0")
    others = sorted(bend.free_symbols - {f}, key=str)
    # of either sign, from the curved middle of a loss to 15
    probes = tuple(Rational(k, 4) for k in (0, 1, -1, 2, -2, 4, -4, 8, -8, 20, -20, 60, -60))
    for sample in (Rational(7, 5), Rational(1, 3)):
        values = {s: (-sample if s.is_negative else S(2) if s.is_integer else sample) for s in others}
        lo, hi = (e.xreplace(values) for e in interval)
        for point in probes:
            if not ((point - lo).is_extended_positive and (hi - point).is_extended_positive):
                continue
            value = bend.xreplace({**values, f: point}).evalf(25)
            size = branch.xreplace({**values, f: point}).evalf(25)
            if value.is_real and value < -Rational(1, 10**12) * (1 + Abs(size) if size.is_real else 1):
                raise BadInput(f"the loss is not convex in f: its second derivative is {value.n(4)} at f = {point}"
                               + (f" with {values}" if values else ""))


__all__ = ["VARIABLE", "Inner", "Loss", "bind", "inner", "labels", "put", "require_convex"]
