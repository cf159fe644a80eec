"""P(y = 1) = (1 + E g(a + s_0 z))/2: targets of +-1 under noise, in closed form or from the places where g jumps."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from sympy import Dummy, Expr, Symbol, sign, symbols

from hermitex.errors import HermitexError
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
        mean = E(g(a + s_0*z), z)
    return (1 + mean)/2


# half a window, beyond which exp(-z^2/2) underflows; cells of it, 1/200 wide, that tell two jumps apart
_REACH, _CELLS = 40, 16_000


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
