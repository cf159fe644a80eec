"""Named sub-expressions: Q = 1/(1 + V(kappa)) may speak of kappa, which the expectation around it binds.

A `where` name is a macro in the sense of the paper: its standard normals are those of the expectation around it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from sympy import Basic, Dummy, Expr, Symbol

from hermitex.errors import BadInput
from hermitex.symbolic.gaussian import Bound, E, Expectation
from hermitex.symbolic.indexed_sums import Element, Index
from hermitex.symbolic.moreau import resolve


def free_names(expr: Basic, where: Mapping[Symbol, Expr], memo: dict[Basic, dict[str, Symbol]] | None = None
               ) -> dict[str, Symbol]:
    """{name: symbol} of the free symbols of `expr` once every `where` name is written out; nothing is rebuilt."""
    memo = {} if memo is None else memo
    if isinstance(expr, Expectation):  # not memorised: equal nodes may bind under different names
        bound = {b.name for b in expr.bound}
        inside = {n: s for n, s in free_names(expr.body, where, memo).items() if n not in bound}
        return inside | {n: s for extra in expr.args[2:] for n, s in free_names(extra, where, memo).items()}
    if isinstance(expr, Bound | Index):
        return {}
    if isinstance(expr, Element):
        return {expr.array.name: expr.array}
    if expr in memo:
        return memo[expr]
    found: dict[str, Symbol] = {}
    if isinstance(expr, Symbol):
        if expr in where:
            memo[expr] = {}  # a circle ends here; written_out names it
            found = dict(free_names(where[expr], where, memo))
        else:
            found = {expr.name: expr}
    else:
        for a in expr.args:
            found |= free_names(a, where, memo)
    memo[expr] = found
    return found


def require_acyclic(where: Mapping[Symbol, Expr]) -> None:
    """Raises BadInput, naming the circle, if `where` names refer to each other in one."""
    done: set[Symbol] = set()

    def visit(name: Symbol, path: tuple[Symbol, ...]) -> None:
        if name in path:
            circle = " -> ".join(s.name for s in (*path[path.index(name):], name))
            raise BadInput(f"where: {circle} is a circle")
        if name not in done:
            for other in sorted(where[name].atoms(Symbol) & where.keys(), key=str):
                visit(other, (*path, name))
            done.add(name)

    for name in where:
        visit(name, ())


def depends_on(where: Mapping[Symbol, Expr], unknowns: set[Symbol]) -> dict[Symbol, Expr]:
    """The `where` names that an unknown enters, at any remove."""
    memo: dict[Basic, dict[str, Symbol]] = {}
    return {k: v for k, v in where.items() if set(free_names(v, where, memo).values()) & unknowns}


def written_out(expr: Expr, where: Mapping[Symbol, Expr], letters: Mapping[str, Symbol] | None = None) -> Expr:
    """`expr` with every `where` name replaced by its definition, all the way down.

    `letters`: the symbols by which other definitions, which stay names, speak of the bound variables.

    >>> from hermitex.symbols import kappa, q, V
    >>> Q = Symbol("Q")
    >>> written_out(E(kappa**2*Q, kappa), {Q: 1/(1 + V*kappa**2)})
    E(kappa**2/(V*kappa**2 + 1), kappa)
    """
    letters = {**(letters or {}), **{s.name: s for e in where.values() for s in _free_symbols(e)}}
    return resolve(_write(expr, where, letters, ()))


@lru_cache(maxsize=4096)
def _free_symbols(e: Expr) -> frozenset[Symbol]:
    """The symbols among the free ones: every formula of a system asks for those of every name."""
    return frozenset(s for s in e.free_symbols if isinstance(s, Symbol))


def _write(expr: Basic, where: Mapping[Symbol, Expr], letters: Mapping[str, Symbol], inside: tuple[Symbol, ...]) -> Expr:
    if isinstance(expr, Symbol):
        if expr not in where:
            return expr
        if expr in inside:
            circle = " -> ".join(s.name for s in (*inside[inside.index(expr):], expr))
            raise BadInput(f"where: {circle} is a circle")
        return _write(where[expr], where, letters, (*inside, expr))
    if isinstance(expr, Expectation):
        if where.keys().isdisjoint(expr.free_symbols):
            return expr
        # The bound variables take the names by which the definitions speak of them.
        public = tuple(letters.get(b.name) or Dummy(b.name, real=True) for b in expr.bound)
        body = expr.body.xreplace(dict(zip(expr.bound, public, strict=True)))
        body = _write(body, where, letters, inside)
        cov = None if expr.independent else {
            (public[i].name, public[j].name): _write(expr.covariance[i, j], where, letters, inside)
            for i in range(len(public)) for j in range(i, len(public))}
        return E(body, *public, cov=cov)
    args = [_write(a, where, letters, inside) for a in expr.args]
    return expr if all(a is b for a, b in zip(args, expr.args, strict=True)) else expr.func(*args)
