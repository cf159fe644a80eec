"""All partial derivatives of a formula in one walk over it: as long as the formula has terms, and not once for each unknown.

    d(f + g) = df + dg,   d(f g) = df g + f dg,   d f^p = p f^(p-1) df,   d F(f, ...) = F_1 df + ...

A part without a smooth rule of its own (a node, a switch, a power that moves) is left to `derivatives.derivative`.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from sympy import Abs, Add, Expr, Function, Mul, Pow, S, Symbol, arg, sign
from sympy.core.function import ArgumentIndexError, UndefinedFunction

from hermitex.symbolic.indexed_sums import ArraySum

Slopes = dict[Symbol, Expr]
_OTHERS = (Abs, sign, arg)


class Factors:
    """Names for what many entries of a Jacobian share: d tanh(S)/dx_j = D dS/dx_j, D = 1 - tanh(S)^2 written once."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.named: dict[Expr, Symbol] = {}
        self.taken = set(taken)

    def __call__(self, factor: Expr) -> Expr:
        if factor.is_Atom or (isinstance(factor, Pow) and factor.base.is_Atom):
            return factor
        if factor not in self.named:
            name = f"D{len(self.named) + 1}"
            while name in self.taken:
                name += "_"
            self.named[factor] = Symbol(name, real=True)
        return self.named[factor]

    @property
    def definitions(self) -> dict[Symbol, Expr]:
        """{name: factor}."""
        return {s: e for e, s in self.named.items()}


def gradient(expr: Expr, unknowns: AbstractSet[Symbol], share: Factors | None = None) -> Slopes | None:
    """{v: d expr/dv} for the unknowns in it; None where a part has no rule here. `share` names what many of them share.

    >>> from sympy import tanh
    >>> from sympy.abc import x, y, a
    >>> found = gradient(a*tanh(x + 2*y), {x, y})
    >>> found[x], found[y]
    (a*(1 - tanh(x + 2*y)**2), a*(2 - 2*tanh(x + 2*y)**2))
    """
    memo: dict[Expr, Slopes | None] = {}

    def of(e: Expr) -> Slopes | None:
        if e.is_Symbol:
            return {e: S.One} if e in unknowns else {}
        if not e.args:
            return {}
        if e not in memo:
            memo[e] = summed(e) if isinstance(e, ArraySum) else compound(e)
        return memo[e]

    def summed(e: ArraySum) -> Slopes | None:
        inner = gradient(e.body, unknowns)
        return None if inner is None else {v: ArraySum(slope, e.index) for v, slope in inner.items()}

    many = 12  # unknowns that share a factor of their derivatives, from which on it gets a name

    def compound(e: Expr) -> Slopes | None:
        parts: list[Slopes] = []
        for a in e.args:
            inner = of(a) if isinstance(a, Expr) else None
            if inner is None:  # not an expression, or without a rule
                return {} if not (e.free_symbols & unknowns) else None
            parts.append(inner)
        moving = [k for k, part in enumerate(parts) if part]
        if not moving:
            return {}
        factors = _factors(e, moving)
        if factors is None:
            return None
        if share is not None and any(len(parts[k]) >= many for k in moving):
            factors = {k: share(f) if f.free_symbols & unknowns else f for k, f in factors.items()}
        terms: dict[Symbol, list[Expr]] = {}
        for k in moving:
            for v, slope in parts[k].items():
                terms.setdefault(v, []).append(slope if factors[k] is S.One else factors[k]*slope)
        total = {v: t[0] if len(t) == 1 else Add(*t) for v, t in terms.items()}
        return {v: t for v, t in total.items() if t != 0}

    return of(expr)


def _factors(e: Expr, moving: list[int]) -> dict[int, Expr] | None:
    """{k: d e/d(its k-th part)} of the parts that move, or None."""
    if isinstance(e, Add):
        return dict.fromkeys(moving, S.One)
    if isinstance(e, Mul):
        return {k: Mul(*e.args[:k], *e.args[k + 1:]) for k in moving}
    if isinstance(e, Pow):
        return {0: e.exp*Pow(e.base, e.exp - 1)} if moving == [0] else None
    ordinary = isinstance(e, Function) and not isinstance(e, _OTHERS) and not isinstance(type(e), UndefinedFunction)
    if not ordinary or type(e)._eval_derivative is not Function._eval_derivative:
        return None
    try:
        return {k: e.fdiff(k + 1) for k in moving}
    except (ArgumentIndexError, NotImplementedError, AttributeError):
        return None
