"""E F = sum_i E[(w_i F)(z + m_i) exp(-m_i z - m_i^2/2)],  w_i(z) = exp(-(z - m_i)^2/2)/sum_j exp(-(z - m_j)^2/2).

In F = N(z)^n/Z(z) exp(a z^2) with N, Z sums of exp(b z + c) the largest terms decide where the mass is, often beyond every
window: at |z| = sqrt(q), or about 0 if the other factors of F fall off. Each term of N has one such place m_i, as -log Z is
concave.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import product
from math import prod

import numpy as np
from sympy import Abs, Add, Expr, Function, Integer, Mul, Poly, PolynomialError, S, Symbol, cosh, exp, expand_mul, log, sinh, tanh

from hermitex.kernels.arrays import lambdify
from hermitex.symbolic.breaks.switches import SWITCHES

Line = tuple[Expr, Expr, Expr]  # g, b, c of a term g exp(b v + c)


class far_mode(Function):
    """argmin_z z^2/2 - slope z + sum_k n_k log sum_j exp(b_j z + c_j); after the slope: k, n, b and c of each term."""


def around_modes(body: Expr, variables: Collection[Symbol], around: Collection[Symbol] = ()) -> Expr:
    """The integrand over standard normals, each part centred at its mass if that may be beyond the window.

    `around` : the variables of the averages around it, with which no exponent may move.

    >>> from sympy.abc import z
    >>> q = Symbol("q", positive=True)
    >>> around_modes(1/(1 + exp(-q*z)), [z])
    1/(1 + exp(-q*z))
    >>> around_modes(exp(2*q*z - q**2)/(9 + exp(q*z - q**2/2)), [z]).has(far_mode)
    True
    """
    moving = {*variables, *around}
    for v in variables:
        body = Add(*(part for term in Add.make_args(body) for part in _parts(term, v, moving - {v})))
    return body


def _parts(body: Expr, v: Symbol, others: Collection[Symbol]) -> list[Expr]:
    """The parts of one product, one for each term of the sums of exponentials that multiply it."""
    known, wide, tame = S.Zero, S.One, True
    above, below = list[tuple[Expr, list[Line]]](), list[tuple[Expr, list[Line]]]()
    if any(v in s.free_symbols for s in body.atoms(*SWITCHES)):
        return [body]
    for factor in Mul.make_args(body):
        base, n = factor.as_base_exp() if not isinstance(factor, exp) else (factor, S.One)
        if (square := _square(base, v, others)) is not None and n == 1:  # z^2/2 - a z^2 - b z, over 1 - 2 a
            known, wide = known + square[1], wide - 2*square[0]
            continue
        lines = _lines(base, v, others)
        if isinstance(base, log) and n.is_positive and _stays(base.args[0], v, others):
            tame = False
        elif lines is None and (base.is_polynomial(v) or (isinstance(base, tanh) and n.is_positive)):
            continue
        elif lines is None or not n.is_number:
            return [body]
        elif len(lines) == 1:
            known += n*lines[0][1]
        else:
            (below if n.is_negative else above).append((n, lines))
    most = 8  # parts of one integrand
    if not (above or below) or prod(len(lines) for _, lines in above) > most:
        return [body]
    if not wide.is_positive:
        return [body]
    flat = [a for k, (n, lines) in enumerate(below) for g, b, c in lines for a in (Integer(k), -n/wide, b, c + log(Abs(g)))]
    chosen = list(product(*([(n, lines, i) for i in range(len(lines))] for n, lines in above)))
    slopes = [(known + sum(n*lines[i][1] for n, lines, i in one))/wide for one in chosen]
    modes = dict.fromkeys([*(far_mode(s, *flat) if flat else s for s in slopes), *([] if tame else [S.Zero])])
    if not any(map(_may_be_far, modes)):
        return [body]
    return [body.xreplace({v: v + m})*exp(-m*v - m**2/2)/Add(*(exp((k - m)*v - (k - m)**2/2) for k in modes)) for m in modes]


def _square(base: Expr, v: Symbol, others: Collection[Symbol]) -> tuple[Expr, Expr] | None:
    """a and b of exp(a v^2 + b v + c)."""
    if not isinstance(base, exp) or not base.args[0].is_polynomial(v) or set(others) & base.free_symbols:
        return None
    square = Poly(base.args[0], v)
    return (square.coeff_monomial(v**2), square.coeff_monomial(v)) if square.degree() == 2 else None


def _lines(base: Expr, v: Symbol, others: Collection[Symbol]) -> list[Line] | None:
    """The terms of a sum g exp(b v + c), g without v and no exponent with others; None where it is none of exponentials."""
    if v not in base.free_symbols or not base.has(exp, cosh, sinh):
        return None
    found = dict[tuple[Expr, Expr], Expr]()
    for term in Add.make_args(expand_mul(base.rewrite([cosh, sinh], exp))):
        factors = Mul.make_args(term)
        exponent = Add(*(f.args[0] for f in factors if isinstance(f, exp)))
        g = Mul(*(f for f in factors if not isinstance(f, exp)))
        try:
            line = Poly(exponent, v)
        except PolynomialError:
            return None
        if v in g.free_symbols or line.degree() > 1 or (g.free_symbols | exponent.free_symbols) & set(others):
            return None
        at = line.coeff_monomial(v), line.coeff_monomial(1)
        found[at] = found.get(at, S.Zero) + g
    return [(g, b, c) for (b, c), g in found.items()]


def _stays(total: Expr, v: Symbol, others: Collection[Symbol]) -> bool:
    """Does the logarithm of a sum of exponentials not fall? That of 1 + exp(-z) does."""
    lines = _lines(total, v, others)
    return lines is not None and (S.One, S.Zero, S.Zero) not in lines


def _may_be_far(mode: Expr) -> bool:
    """Is it beyond a window for some numbers of the letters?"""
    window = 8.0  # the first rule of an axis has no nodes beyond it
    letters = sorted(mode.free_symbols, key=str)
    place = lambdify(letters, mode, ["numpy"])
    with np.errstate(all="ignore"):
        return any(np.abs(place(*np.array(at))) > window for at in _tried(len(letters)))  # of a float 1/0 is an error


def _tried(count: int) -> Iterator[list[float]]:
    """Numbers for letters: all moderate, all large, and one of them large or small."""
    yield from ([size]*count for size in (1.0, 1e2, 1e4))
    yield from ([size if j == i else 1.0 for j in range(count)] for i in range(count) for size in (1e-4, 1e4))


__all__ = ["around_modes", "far_mode"]
