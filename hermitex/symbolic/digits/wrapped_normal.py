"""E F(w z) = int_0^1 F(2 pi t) theta(t) dt,  theta(t) = 1 + 2 sum_n exp(-n^2 w^2/2) cos(2 pi n t),  F of period 2 pi.

A normal that stands in cosines and sines alone is one on a circle: a few nodes on it see what thousands on the line see, the more
so the faster the integrand turns. Exact, by Poisson's formula.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

from sympy import Dummy, Expr, Rational, Symbol, cos, gcd, sin
from sympy import pi as PI

from hermitex.symbolic.arithmetic import mp, mpf
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.digits.ball_evaluation import Swift
from hermitex.symbolic.digits.line_integral import MPMATH
from hermitex.symbolic.digits.series_summation import Sum

_LEAST = 1  # a frequency below which theta has many terms, and the line is short
_BEGIN, _MOST = 24, 400_000  # nodes beside the harmonics that are seen, and on all circles together
_SHIFT, _OTHER = mpf("0.381966011250105"), 7  # of a node, and how many more there are in verification
_AGREE = 8  # roundings by which two rules may differ


def on_circles(body: Expr, variables: Sequence[Symbol], bits: int) -> Sum | None:
    """E of what is smooth and has a period in each of the independent normals; None elsewhere, or where it does not settle."""
    turns = [_frequency(body, v) for v in variables]
    if None in turns:
        return None
    steps = [w for w, _ in filter(None, turns)]
    program = Swift(body.xreplace({v: 2*PI*v/w for v, w in zip(variables, steps, strict=True)}), list(variables), MPMATH)
    weights = [_theta(mpf(w.p)/w.q if isinstance(w, Rational) else mp.mpf(w.evalf(mp.dps + 5)), bits) for w in steps]
    nodes = [_BEGIN + 2*k for _, k in filter(None, turns)]
    while True:
        one, size = _mean(program, weights, nodes, mpf(0))
        other, _ = _mean(program, weights, [n + n//2 + _OTHER for n in nodes], _SHIFT)
        gap = abs(one - other)
        if gap <= _AGREE*size*mpf(2)**-bits:
            return Sum(other, gap + size*mp.eps*8, size)
        nodes = [2*n for n in nodes]
        if mp.mpf(2)**len(nodes)*mp.fprod(nodes) > _MOST:
            return None


def _frequency(body: Expr, v: Symbol) -> tuple[Expr, int] | None:
    """(w, k): body has the period 2 pi/w in v, which stands in cosines and sines up to the harmonic k; None where it does not."""
    turning = [f for f in body.atoms(cos, sin) if v in f.free_symbols]
    slopes = []
    for f in turning:
        slope = f.args[0].diff(v)
        if not slope.is_number:
            return None
        slopes.append(slope)
    if not slopes or body.xreplace({f: Dummy() for f in turning}).has(v):
        return None
    ratios = [(s/slopes[0]).simplify() if not s.is_Rational else s/slopes[0] for s in slopes]
    if not all(r.is_Rational for r in ratios):
        return None
    common = gcd(ratios) if len(ratios) > 1 else ratios[0]
    w = abs(slopes[0]*common)
    return (w, int(max(abs(r/common) for r in ratios))) if w >= _LEAST else None


def _theta(w: mpf, bits: int) -> Callable[[mpf], mpf]:
    most = int(mp.sqrt(2*(bits + 8)*mp.log(2))/w) + 1
    factors = [2*mp.exp(-(n*w)**2/2) for n in range(1, most + 1)]
    return lambda t: 1 + mp.fsum(c*mp.cos(2*mp.pi*n*t) for n, c in enumerate(factors, start=1))


def _mean(program: Callable, weights: Sequence[Callable], nodes: Sequence[int], shift: mpf) -> tuple[mpf, mpf]:
    """The mean of F theta and of its size over nodes that are evenly spread on each circle."""
    total, size = mpf(0), mpf(0)
    circles = [[((j + shift)/n, theta((j + shift)/n)) for j in range(n)] for n, theta in zip(nodes, weights, strict=True)]
    for count, places in enumerate(product(*circles)):
        if not count % 256:
            checkpoint("summing over circles")
        y = program(*(t for t, _ in places))*mp.fprod(c for _, c in places)
        total, size = total + y, size + abs(y)
    return total/mp.fprod(nodes), size/mp.fprod(nodes)


__all__ = ["on_circles"]
