"""E[sum a z^n core(z)] = sum a E[z^n core(z)]: an integrand as coefficients, monomials and cores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from sympy import Abs, Add, Dummy, Expr, Mul, S, Symbol, expand, sign

from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.gaussian import Expectation


class CoreTerm(NamedTuple):
    """coefficient * prod_i variable_i^power_i * core; the core is 1 or a product of non-polynomial factors."""

    coefficient: Expr
    powers: tuple[int, ...]
    core: Expr

    def body(self, variables: Sequence[Symbol]) -> Expr:
        """Monomial times core, without the coefficient."""
        return Mul(*(v**n for v, n in zip(variables, self.powers, strict=True)))*self.core


def terms(body: Expr, variables: Sequence[Symbol]) -> tuple[CoreTerm, ...]:
    """The integrand split over its variables; like terms (same powers, same core) are collected."""
    masked, cores = _mask(body, tuple(variables))
    found: dict[tuple[tuple[int, ...], Expr], list[Expr]] = {}
    for term in Add.make_args(_multiply_out(masked)):
        checkpoint("splitting an integrand into terms")
        powers: dict[Symbol, int] = dict.fromkeys(variables, 0)
        rest: list[Expr] = []
        core: list[Expr] = []
        for base, n in term.as_powers_dict().items():
            if base in powers and n.is_Integer:
                powers[base] = int(n)
            else:
                part = cores.get(base, base)**n
                (core if part.has_free(*variables) else rest).append(part)
        found.setdefault((tuple(powers.values()), Mul(*core)), []).append(Mul(*rest))
    summed = ((Add(*parts), powers, core) for (powers, core), parts in found.items())
    return tuple(CoreTerm(c, powers, core) for c, powers, core in summed if c != 0)


def by_core(body: Expr, variables: Sequence[Symbol]) -> dict[Expr, Expr]:
    """The integrand as sum of core * polynomial: {core: polynomial}."""
    out: dict[Expr, Expr] = {}
    for t in terms(body, variables):
        monomial = CoreTerm(t.coefficient, t.powers, S.One).body(variables)
        out[t.core] = out.get(t.core, S.Zero) + t.coefficient*monomial
    return out


def connected(parts: Iterable[Expr], variables: Sequence[Symbol]) -> list[list[Expr]]:
    """The parts sorted into sets that share no variable.

    >>> from hermitex.symbols import z1, z2, z3
    >>> connected([z1, z2*z3, z1**2, z3], [z1, z2, z3])
    [[z1, z1**2], [z2*z3, z3]]
    """
    found: list[tuple[set[Symbol], list[Expr]]] = []
    for part in parts:
        mine = part.free_symbols & set(variables)
        touching = [f for f in found if f[0] & mine]
        rest = [f for f in found if not f[0] & mine]
        found = [*rest, (mine.union(*[f[0] for f in touching]), [*[p for f in touching for p in f[1]], part])]
    return [parts for _, parts in found]


def linear(node: Any) -> Expr:
    """E[sum_i a_i f_i] = sum_i a_i E[f_i], each distinct core under one node; anything but a node as it is."""
    if not isinstance(node, Expectation):
        return node
    body, variables = node.open()
    return Add(*(t.coefficient*node.with_body(t.body(variables), variables) for t in terms(body, variables)))


def _multiply_out(expr: Expr) -> Expr:
    return expand(expr, power_base=False, power_exp=False, log=False, basic=False)


def _mask(expr: Expr, variables: tuple[Symbol, ...]) -> tuple[Expr, dict[Symbol, Expr]]:
    """Put a symbol for every maximal part that holds a variable and is not a polynomial."""
    seen: dict[Expr, Symbol] = {}

    def walk(e: Expr) -> Expr:
        if isinstance(e, Symbol) or e.is_Rational:
            return e
        if isinstance(e, (Add, Mul)):
            return e.func(*(walk(a) for a in e.args))
        if e.is_Pow and e.exp.is_Integer and e.exp > 0:
            return walk(e.base)**e.exp
        # A coefficient such as sqrt(c) or a node is opaque as well: expand would take it apart.
        return seen.setdefault(e, Dummy("core"))

    masked = walk(expr)
    return masked, {v: k for k, v in seen.items()}


def factorwise(body: Expr) -> Expr:
    """sign(u v) = sign(u) sign(v) and |u v| = |u| |v|: each factor then changes its sign in its own variables."""
    swap = {f: Mul(*(f.func(a) for a in f.args[0].args)) for f in body.atoms(sign, Abs) if f.args[0].is_Mul}
    return body.xreplace(swap)


def top_nodes(expr: Expr) -> list[Expectation]:
    """The outermost nodes, in order of appearance."""
    if isinstance(expr, Expectation):
        return [expr]
    found = [n for a in expr.args for n in top_nodes(a)] if expr.has(Expectation) else []
    return list(dict.fromkeys(found))
