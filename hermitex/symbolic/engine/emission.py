"""sum_j c_j S_j exp(e_j): how an exact value is put together, real and with one exponential a term.

The recursions of `canonical` emit coefficients by (exponent, special function); equal keys meet here, conjugate terms
become cosines, sines and the real and imaginary parts of the error function.
"""

from __future__ import annotations

from sympy import Add, Expr, I, S, cos, erf, exp, factor_terms, sin

from hermitex.symbolic.engine.canonical_reading import Refusal
from hermitex.symbolic.engine.rational_tidying import split_complex, tidy
from hermitex.symbolic.formula_size import operations
from hermitex.symbolic.special import ImErf, ReErf

Emission = dict[tuple[Expr, Expr], Expr]  # (exponent, special function) -> coefficient


def assemble(out: Emission) -> Expr:
    """sum coefficient special exp(exponent): one exponential a term, its exponents merged."""
    grouped: dict[Expr, list[Expr]] = {}
    for (e, special), c in out.items():
        c = tidy(c) if c.is_Add else c
        if c == 0:
            continue
        grouped.setdefault(e, []).append(c * special)
    return Add(*(Add(*parts) if e == 0 else exp(e) * _factored(parts) for e, parts in grouped.items()))


def _factored(parts: list[Expr]) -> Expr:
    total = Add(*parts)
    if not total.is_Add:
        return total
    shorter = factor_terms(total)
    return shorter if operations(shorter) < operations(total) else total


def add(out: Emission, e: Expr, special: Expr, c: Expr) -> None:
    """Add c * special * exp(e); numbers and signs of the special function go to the coefficient."""
    if c == 0:
        return
    if not special.has(I) and special.is_Number:
        special, c = S.One, c * special
    if special.could_extract_minus_sign():
        special, c = -special, -c
    key = (e, special)
    out[key] = out[key] + c if key in out else c


def twice_real(out: Emission) -> Emission:
    """A term and its conjugate together."""
    return {key: 2 * c for key, c in real_part(out).items()}


def real_part(out: Emission) -> Emission:
    """The real part, term by term: nothing complex is left but re and im of an error function, if that."""
    found: Emission = {}
    for (e, special), c in out.items():
        er, ei = split_complex(e)
        cr, ci = split_complex(c)
        sr, si = _special_parts(special)
        turn, skew = cos(tidy(ei)), sin(tidy(ei))
        # Re[(cr + i ci)(sr + i si)(cos + i sin)], kept as a sum over the special functions
        if sr != 0:
            add(found, tidy(er), sr, cr * turn - ci * skew)
        if si != 0:
            add(found, tidy(er), si, -(ci * turn + cr * skew))
    return found


def _special_parts(special: Expr) -> tuple[Expr, Expr]:
    if not special.has(I):
        return special, S.Zero
    c, core = special.as_independent(erf, as_Add=False)
    if isinstance(core, erf) and not c.has(I):
        x, y = map(tidy, split_complex(core.args[0]))
        return c * ReErf(x, y), c * ImErf(x, y)
    a, b = split_complex(special)
    if a.has(I) or b.has(I):
        raise Refusal(f"the real part of {special} is not compact")
    return a, b
