"""g = F(w): quantities w through which a target depends on its variables, or on the hidden ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from sympy import Abs, Add, Basic, Dummy, Expr, Mul, Poly, Symbol, preorder_traversal, sign

_SIZE = 60  # operations of a polynomial whose monomials are all tried as quantities; chosen by trial


def inner_quantities(g: Expr, used: Sequence[Symbol], *, apart: bool = False) -> Iterator[tuple[Expr, Expr, Symbol]]:
    """(w, F, its symbol) for quantities w with g = F(w): sub-expressions, the largest first, monomials, the radius.

    apart : also the terms or factors of a sum or product that hold the used variables alone

    >>> from hermitex.symbols import z1, z2
    >>> [(w, F) for w, F, _ in inner_quantities((3*(z1**2 + z2**2)**2).expand(), (z1, z2))]
    [(z1**2 + z2**2, 3*_w**2)]
    """
    symbols = set(used)
    seen: set[Expr] = set()
    found: set[Expr] = set()
    candidates = [e for e in preorder_traversal(g) if isinstance(e, Expr) and not isinstance(e, Symbol)]
    if apart:
        candidates += [e.func(*(a for a in e.args if a.free_symbols and a.free_symbols <= symbols)) for e in candidates
                       if isinstance(e, (Add, Mul))]
    for e in [*candidates, *_monomial(g, used)]:
        if e == g or e in seen or not symbols <= e.free_symbols:
            continue
        seen.add(e)
        w = Dummy("w", real=True)
        for outer in (g.xreplace({e: w}), g.subs(e, w) if e.is_Mul or e.is_Add else g):
            if not outer.free_symbols & symbols:
                found.add(e)
                yield e, outer, w
                break
    if (whole := _of_product(g, used)) is not None and whole[0] not in found:
        yield whole
    if g.is_polynomial(*used) and len(used) > 1 and g.count_ops() < _SIZE:
        w = Dummy("w", real=True)
        last, others = used[-1], used[:-1]
        flat = Poly(g, last)
        if all(n % 2 == 0 for (n,) in flat.monoms()):
            rest = w - Add(*(x**2 for x in others))
            outer = Add(*(c * rest ** (n // 2) for (n,), c in flat.terms())).expand()
            square = Add(*(x**2 for x in used))
            if not outer.free_symbols & symbols and (g - square).expand().free_symbols and outer.as_poly(w).degree() > 1:
                yield square, outer, w


def _of_product(g: Expr, used: Sequence[Symbol]) -> tuple[Expr, Expr, Symbol] | None:
    """(prod z_i, F, its symbol) if g = F(prod z_i): the last variable is w over the others, whatever their signs."""
    if len(used) < 2 or not g.has(sign, Abs):
        return None
    w = Dummy("w", real=True)
    sizes = [Dummy(x.name, positive=True) for x in used[:-1]]
    found = {g.xreplace({**{x: s * p for x, s, p in zip(used[:-1], signs, sizes, strict=True)},
                         used[-1]: w / Mul(*signs, *sizes)}) for signs in product((1, -1), repeat=len(sizes))}
    outer = found.pop()
    return None if found or outer.has(*sizes) else (Mul(*used), outer, w)


def _monomial(g: Expr, used: Sequence[Symbol]) -> list[Expr]:
    """The smallest monomial of a polynomial, if all its monomials could be powers of it."""
    if not isinstance(g, Add) or not g.is_polynomial(*used) or g.count_ops() > _SIZE:
        return []
    powers = [m for m in Poly(g, *used).monoms() if any(m)]
    least = min(powers, key=sum)
    return [Mul(*(x**n for x, n in zip(used, least, strict=True)))]


def one_quantity(g: Expr, given: Sequence[Symbol], hidden: Sequence[Symbol]) -> tuple[Expr, Expr, Symbol] | None:
    """(F, w, its name) with g = F(u, w), w a function of the hidden variables alone.

    Examples
    --------
    >>> from sympy import Abs
    >>> from hermitex.symbols import z1, z2, z3
    >>> one_quantity(z1*Abs(z2) + z1*z2*z3 - z1**2, [z1], [z2, z3])[1]
    z2*z3 + Abs(z2)
    """
    if len(hidden) == 1:
        return g, hidden[0], hidden[0]
    for form in dict.fromkeys((g, g.expand().collect(list(given)))):
        for part, outer, w in inner_quantities(form, hidden, apart=True):
            if not part.has(*given):
                return outer, part, w
    return None


def own_parts(g: Expr, x: Symbol) -> list[Expr]:
    """The largest sub-expressions of g that hold x and no other symbol."""
    return list(dict.fromkeys(_own(g, x)))


def _own(e: Basic, x: Symbol) -> Iterator[Expr]:
    if not e.has(x):
        return
    if e.free_symbols == {x} and isinstance(e, Expr):
        yield e
        return
    if isinstance(e, (Add, Mul)):
        mine = [a for a in e.args if a.free_symbols == {x}]
        if len(mine) > 1:
            yield e.func(*mine)
            mine_set = set(mine)
        else:
            mine_set = set()
        for a in e.args:
            if a not in mine_set:
                yield from _own(a, x)
        return
    for a in e.args:
        yield from _own(a, x)
