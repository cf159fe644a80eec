"""P(y = 1) = (1 + E g(a + s_0 z))/2: targets of +-1 under noise, in closed form or from the places where g jumps."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from sympy import Dummy, Expr, Rational, S, Symbol, erf, sign, sqrt, symbols

from hermitex.errors import BadInput, HermitexError
from hermitex.symbolic.activations import Activation
from hermitex.symbolic.gaussian import E
from hermitex.symbolic.integrals import closed_form
from hermitex.symbolic.pieces import pieces
from hermitex.symbols import z
from hermitex.theories.spike import free_parameters

s_0, a = symbols("s_0", positive=True), symbols("a", real=True)


@lru_cache(maxsize=64)
def agreement(g: Activation) -> tuple[Expr | None, tuple[Symbol, Symbol, Symbol]]:
    """E[g(shift + slope w + s_0 z) sign(w + edge)] in closed form, or None, and its symbols."""
    shift, slope, edge = letters = tuple(Dummy(n, real=True) for n in ("shift", "slope", "edge"))
    try:
        return closed_form(E((2*probability(g) - 1).xreplace({a: shift + slope*z})*sign(z + edge), z)), letters
    except HermitexError:
        return None, letters


@lru_cache(maxsize=64)
def probability(g: Activation) -> Expr:
    """P(y = 1) = (1 + E g(a + s_0 z))/2 in the symbols a and s_0, for a target of +-1, or the mean g of a label of +-1."""
    try:
        mean = closed_form(E(g(a + s_0*z), z))
    except HermitexError:
        mean = _by_jumps(g) if of_signs(g) else E(g(a + s_0*z), z)
    return (1 + mean)/2


# half a window, beyond which exp(-z^2/2) underflows; cells of it, 1/200 wide, that tell two jumps apart
_REACH, _CELLS = 40, 16_000


def _by_jumps(g: Activation) -> Expr:
    """E g(a + s_0 z) from the places where g changes sign, found numerically to the last digit within |x| <= 40."""
    from scipy.optimize import bisect

    from hermitex.kernels.compile import compile

    kernel = compile(g(z))
    x = np.linspace(-_REACH, _REACH, _CELLS + 1) + 1e-7
    value = np.asarray(kernel(z=x), dtype=float)
    steps = np.flatnonzero(value[1:]*value[:-1] < 0)
    most_jumps = 60  # each is bisected and is a term of the closed form
    if len(steps) > most_jumps:
        raise BadInput(f"one-step: the target {g.name} changes sign more than {most_jumps} times within |x| <= {_REACH}")
    places = [bisect(lambda v: float(kernel(z=v)), x[k], x[k + 1], xtol=1e-15, rtol=1e-15) for k in steps]
    mean = S.Zero
    for k, b in zip(steps, places, strict=True):  # a jump by 2 at b is erf((a - b)/(sqrt(2) s_0)) around its middle
        mean += Rational(float(np.sign(value[k + 1])))*erf((a - Rational(b))/(sqrt(2)*s_0))
    ends = (Rational(float(np.sign(value[0]))) + Rational(float(np.sign(value[-1]))))/2
    return mean + ends


@lru_cache(maxsize=256)
def of_signs(g: Activation) -> bool:
    """True if g takes the values +-1 only."""
    if free_parameters(g):
        return False
    try:
        return all(abs(e.expr) == 1 for e in pieces(g(z), z))
    except (HermitexError, NotImplementedError, ValueError, TypeError):
        from hermitex.kernels.compile import compile

        values = np.asarray(compile(g(z))(z=np.linspace(-_REACH, _REACH, _CELLS + 1) + 1e-7))
        return bool(np.all(np.abs(np.abs(values) - 1) < 1e-12))
