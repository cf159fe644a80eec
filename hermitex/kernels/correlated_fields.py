"""E[f_1(u_1) ... f_n(u_n)], u ~ N(0, C), n > 2: one function of the generated module, which conditions one field on the others.

u_k = sum_{j <= k} L_kj x_j, L L^T = C, the fields in an order of decreasing pivots. The integrand along x_1 is
f_1(u_1) E[f_2(u_2) ... f_n(u_n) | x_1], by the nodes of x_1 on every other axis, but for the last: E[f_n(m + L_nn x)] is a function
of the number m and is read off a table. So n fields cost the nodes of n - 1 axes; and the axis of x_1, refined and verified as any
other, is that of all of them.
"""

from __future__ import annotations

from typing import Any

from sympy import AtomicExpr, DiracDelta, Expr, Function, Mul, Pow, S, Symbol, log

from hermitex.kernels.generated_text import docstring_text
from hermitex.symbolic.breaks.switches import SWITCHES
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.indexed_sums import ArraySum

FIELD = Symbol("u", real=True)
_ROUGH = (*SWITCHES, DiracDelta, log)


class FieldFactors(AtomicExpr):
    """Functions of `FIELD` as an atom: no substitution and no common subexpression reaches into them."""

    __slots__ = ("functions",)
    is_commutative = True
    functions: tuple[Expr, ...]

    def __new__(cls, *functions: Expr) -> FieldFactors:
        obj = AtomicExpr.__new__(cls)
        obj.functions = functions
        return obj

    def __getnewargs__(self) -> tuple:
        return self.functions

    def _hashable_content(self) -> tuple:
        return self.functions

    def sort_key(self, order: Any = None) -> Any:
        return self.class_key(), (1, (str(self.functions),)), S.One.sort_key(), S.One

    def _sympystr(self, printer: Any) -> str:
        return f"({', '.join(map(printer._print, self.functions))})"


class Conditioned(Function):
    """Conditioned(factors, x, C11, C21, C22, ...): what is averaged over x."""


def correlated(node: Expectation) -> tuple[Expr, FieldFactors] | None:
    """(the factor before the average, the averaged factors): smooth functions of three or more correlated normals; None for others.

    >>> from sympy import tanh
    >>> from hermitex.symbolic.gaussian import E
    >>> from hermitex.symbols import z1, z2, z3
    >>> correlated(E(2*tanh(z1)*tanh(z2)**2*tanh(z3), z1, z2, z3, cov={(z1, z2): S.Half, (z2, z3): S.Half}))
    (2, (tanh(u), tanh(u)**2, tanh(u)))
    """
    fewest = 3  # fields; two are met on a grid
    if node.independent or len(node.bound) < fewest:
        return None
    body, fields = node.open()
    before, rest = body.as_independent(*fields, as_Add=False)
    found = {v: [f for f in Mul.make_args(rest) if v in f.free_symbols] for v in fields}
    if sum(map(len, found.values())) != len(Mul.make_args(rest)) or not all(found.values()):
        return None
    factors = [Mul(*own).xreplace({v: FIELD}) for v, own in found.items()]
    return (before, FieldFactors(*factors)) if all(map(smooth, factors)) else None


def smooth(f: Expr) -> bool:
    """Is f a function of `FIELD` alone, without kinks, jumps and branch points that are seen?"""
    roots = any(not p.exp.is_Integer and p.base.free_symbols for p in f.atoms(Pow) if not p.base.is_number)
    return f.free_symbols == {FIELD} and not roots and not f.has(*_ROUGH, Expectation, ArraySum)


def function_source(name: str, factors: FieldFactors, printed: Any) -> str:
    """The source of `name(x, c1, c2, ...)`, the conditional average along x."""
    n = len(factors.functions)
    entries = [f"c{k}" for k in range(1, n*(n + 1)//2 + 1)]
    lines = [f"def {name}(x, {', '.join(entries)}):", f'    """Of {docstring_text(str(factors))}, conditioned on the first."""']
    for k, f in enumerate(factors.functions, start=1):
        lines += [f"    def f{k}(u):", f"        return {printed(f)}"]
    lines.append(f"    return conditioned(({', '.join(f'f{k}' for k in range(1, n + 1))}), ({', '.join(entries)}), x)")
    return "\n".join(lines)
