"""{h = 0} and the kinks of h: the curves in a face next to which an integral over orbits varies on every scale."""

from __future__ import annotations

from collections.abc import Sequence

from sympy import Expr, Heaviside, Mul, Poly, Pow, S, Symbol, expand, sign

from hermitex.exponents.laws.sections import switch_arguments


def curves(h: Expr, names: Sequence[Symbol]) -> list[Expr]:
    """What vanishes along the nodal lines of h, along its kinks and where it is not analytic."""
    found: list[Expr] = []
    switches = list(dict.fromkeys(e for x in names for e in switch_arguments(h, x)))
    powers = [p.base for p in h.atoms(Pow) if p.exp.is_number and not (p.exp.is_Integer and p.exp > 0)]
    for e in dict.fromkeys([h, *switches, *powers]):
        for f in _factors(e, names):
            if f.has(*names) and f not in found and -f not in found:
                found.append(f)
    return found


def _factors(e: Expr, names: Sequence[Symbol]) -> list[Expr]:
    """Irreducible factors that may vanish inside; powers of one coordinate vanish on the edge."""
    if e.is_polynomial(*names) and e.has(*names):
        try:
            factors = [f for f, _ in Poly(expand(e), *names).factor_list()[1]]
        except (ValueError, TypeError, NotImplementedError):
            return [e]
        return [f.as_expr() for f in factors if len(f.terms()) > 1 and not _off_zero(f.as_expr(), names)]
    if isinstance(e, Mul):
        return [f for part in e.args for f in _factors(part, names)]
    if isinstance(e, Pow) and e.exp.is_number:
        return _factors(e.base, names)
    return [] if _off_zero(e, names) or isinstance(e, (sign, Heaviside)) else [e]


def _off_zero(e: Expr, names: Sequence[Symbol]) -> bool:
    """Positive, and in the corner too."""
    corner = e.xreplace(dict.fromkeys(names, S.Zero))
    return bool(e.is_positive and corner.is_positive)


def singular_edge(h: Expr, x: Symbol) -> bool:
    """Is the integral over orbits singular along x = 0? It is where h vanishes there, or is not smooth."""
    if not h.has(x):
        return False
    return not h.is_polynomial(x) or h.subs(x, 0) == 0
