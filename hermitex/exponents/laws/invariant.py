"""E[G (x) G] = R R E[G (x) G] R^T R^T where g(R z) = +-g(z): couplings share the symmetries of the label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from sympy import Expr, Symbol

from hermitex.exponents.directions.symmetry import symmetries
from hermitex.exponents.laws.linearised import Second, couplings_of, tensor_of
from hermitex.exponents.laws.value import as_array

_ROUNDS = 60


def invariant(found: Second, g: Expr, variables: Sequence[Symbol], *, odd: bool = True) -> Second:
    """The couplings of order two, averaged over the symmetries that are proved of g.

    odd : whether those count that turn the sign of g, which the label must show up to its sign

    Examples
    --------
    >>> from hermitex.symbols import z1, z2
    >>> rough = Second({((0, 0), (0, 0)): 0.9, ((1, 1), (1, 1)): 1.1}, 0.1)
    >>> invariant(rough, z1*z2, (z1, z2)).couplings[(1, 1), (1, 1)]
    1.0
    """
    r = len(variables)
    turns = [as_array(s.matrix) for s in symmetries(g, variables) if odd or s.sign == 1]
    T = tensor_of(found.couplings, r)
    # Averages over R and 1, one R after the other, again and again: what is left has all the symmetries.
    for _ in range(_ROUNDS if turns else 0):
        for R in turns:
            T = (T + np.einsum("ai,bj,ck,dm,ijkm->abcd", R, R, R, R, T, optimize=True))/2
    return replace(found, couplings=couplings_of(T))
