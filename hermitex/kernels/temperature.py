"""T log(exp(a/T) + exp(b/T)) = max(a, b) + T log(1 + exp(-|a - b|/T)): free energies exist at T = 0."""

from __future__ import annotations

from sympy import Add, Expr, Mul, Pow, Symbol, expand, log

from hermitex.kernels.exponent_scales import logaddexp, logaddexp_at
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.subexpressions import parts


def move_temperature_inward(expr: Expr) -> Expr:
    """T E(F) as E(T F) where a logarithm in F has T in a denominator: at T = 0 the average alone is infinite.

    >>> from sympy import cosh
    >>> from hermitex.symbolic.gaussian import E
    >>> from hermitex.symbols import z
    >>> T = Symbol("T", positive=True)
    >>> move_temperature_inward(-T*(1 + E(log(cosh(z/T)), z)))
    -T - E(T*log(cosh(z/T)), z)
    """
    if not any(n.body.has(log) for n in parts(expr) if isinstance(n, Expectation)):
        return expr
    return expr.replace(lambda e: isinstance(e, Mul) and e.has(Expectation), _inward)


def _inward(e: Mul) -> Expr:
    for f in e.args:
        cold = {T for n in f.atoms(Expectation) for g in n.body.atoms(log) for T in e.free_symbols if _divided(g, T)}
        for T in sorted(cold & set(e.args), key=str):
            parts = [_times_averaged_temperature(t, T) for t in Add.make_args(f)]
            if None not in parts:
                return Mul(*(g for g in e.args if g not in (f, T)))*Add(*parts)
    return e


def _times_averaged_temperature(t: Expr, T: Symbol) -> Expr | None:
    """T t, an average in t multiplied in its integrand; None where there are several."""
    nodes = [g for g in Mul.make_args(t) if isinstance(g, Expectation)]
    if not nodes:
        return None if t.has(Expectation) else T*t
    if len(nodes) > 1:
        return None
    body, variables = nodes[0].open()
    return Mul(*(g for g in Mul.make_args(t) if g is not nodes[0]))*nodes[0].with_body(T*body, variables)


def at_temperature(e: Mul) -> Expr | None:
    """T log(exp(a/T) + exp(b/T)) in a product, written so that T may be 0; None where it is not there."""
    for f in e.args:
        for T in [g for g in e.args if g.is_Symbol] if f.has(logaddexp) else ():
            shared = Add(*(v if (v := _times_temperature(t, T)) is not None else T*t for t in Add.make_args(f)))
            if shared.has(logaddexp_at):
                return Mul(*(g for g in e.args if g not in (f, T)), shared)
    return None


def _times_temperature(t: Expr, T: Symbol) -> Expr | None:
    """T t as a function that exists at T = 0; None where it need not."""
    number, inside = t.as_coeff_Mul()
    if isinstance(inside, logaddexp):
        parts = [_times_temperature(a, T) if a.has(logaddexp) else expand(T*a) for a in inside.args]
        if all(a is not None and not _divided(a, T) for a in parts) and any(_divided(a, T) for a in inside.args):
            return number*logaddexp_at(*parts, T)
    return None


def _divided(e: Expr, T: Symbol) -> bool:
    return any(p.base == T and p.exp.is_negative for p in e.atoms(Pow))


__all__ = ["at_temperature", "move_temperature_inward"]
