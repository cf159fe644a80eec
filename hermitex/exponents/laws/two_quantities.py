"""g = F(w_1(z_A), w_2(z_B)): a target as a function of two quantities in different variables.

The largest sub-expressions in the variables of one group are tried as its quantity; single variables come first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from sympy import Add, Dummy, Expr, Mul, Poly, S, Symbol


def two_quantities(g: Expr, used: Sequence[Symbol]) -> Iterator[tuple[Expr, Expr, Expr, tuple[Symbol, Symbol]]]:
    """(w1, w2, F, names) with g = F(w1, w2), w1 and w2 in different variables; single variables first."""
    used = list(used)
    for size in range(1, len(used) // 2 + 1):
        for mine in combinations(used, size):
            other = [x for x in used if x not in mine]
            form, found = g, []
            for group in (list(mine), other):
                reduced = _reduced(form, group)
                if reduced is None:
                    break
                form, quantity, name = reduced
                found.append((quantity, name))
            if len(found) == 2:
                yield found[0][0], found[1][0], form, (found[0][1], found[1][1])


def one_quantity(g: Expr, given: Sequence[Symbol], hidden: Sequence[Symbol]) -> tuple[Expr, Expr, Symbol] | None:
    """(F, w, its name) with g = F(u, w), w a function of the hidden variables alone.

    Examples
    --------
    >>> from sympy import Abs
    >>> from hermitex.symbols import z1, z2, z3
    >>> one_quantity(z1*Abs(z2) + z1*z2*z3 - z1**2, [z1], [z2, z3])[1]
    z2*z3 + Abs(z2)
    """
    for form in (g, g.expand().collect(list(given))) if not isinstance(g, Symbol) else (g,):
        found = _reduced(form, list(hidden)) if set(hidden) <= form.free_symbols else None
        if found is not None:
            return found
    return None


def product_and_constant(g: Expr, used: Sequence[Symbol]) -> Expr | None:
    """g = c + P(z_A) Q(z_B) of a polynomial: with g = sum_b p_b(z_A) z_B^b, every p_b but that of b = 0 is a multiple of P.

    Examples
    --------
    >>> from hermitex.symbols import z1, z2, z3
    >>> product_and_constant((z1**2*z2**2 - z1**2 + z2**2*z3**2 - 2*z2**2 - z3**2), (z1, z2, z3))
    (z2**2 - 1)*(z1**2 + z3**2 - 2) - 2
    """
    if not g.is_polynomial(*used):
        return None
    for size in range(1, len(used) // 2 + 1):
        for mine in combinations(used, size):
            others = [x for x in used if x not in mine]
            flat = Poly(g, *mine)
            zero = (0,) * size
            first = next((c for m, c in flat.terms() if m != zero), S.Zero)
            if not set(others) & first.free_symbols:
                continue
            p = Poly(first, *others)
            lead = p.monoms()[0]
            ratios = {m: Poly(c, *others).coeff_monomial(lead) / p.LC() for m, c in flat.terms()}
            rest = [Poly(c, *others) - p * ratios[m] for m, c in flat.terms() if m != zero]
            last = Poly(flat.coeff_monomial(Mul(*(x**0 for x in mine))), *others) - p * ratios.get(zero, S.Zero)
            if all(q.is_zero for q in rest) and last.is_ground:
                q = Add(*(r * Mul(*(x**n for x, n in zip(mine, m, strict=True))) for m, r in ratios.items()))
                return p.as_expr() * q + last.as_expr()
    return None


def _reduced(g: Expr, group: list[Symbol]) -> tuple[Expr, Expr, Symbol] | None:
    """(F(w, others), w, its name) with w a function of the group alone."""
    if len(group) == 1:
        return g, group[0], group[0]
    w = Dummy("w", real=True)
    for part in dict.fromkeys(_parts(g, set(group))):
        form = _replaced(g, part, w)
        if not form.has(*group):
            return form, part, w
    return None


def _parts(e: Expr, group: set[Symbol]) -> Iterator[Expr]:
    """The largest sub-expressions in the variables of the group only, all of them."""
    if e.free_symbols == group:
        yield e
        return
    if isinstance(e, (Add, Mul)):
        inner = [a for a in e.args if a.free_symbols and a.free_symbols <= group]
        if len(inner) > 1 and set().union(*(a.free_symbols for a in inner)) == group:
            yield e.func(*inner)
    for a in e.args:
        if isinstance(a, Expr) and a.has(*group):
            yield from _parts(a, group)


def _replaced(g: Expr, part: Expr, w: Symbol) -> Expr:
    form = g.xreplace({part: w})
    return form if not form.has(*part.free_symbols) else g.subs(part, w)
