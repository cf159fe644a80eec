"""E_u[E[G_U (x) G_U | u]] from evenly spread points: at each u the label is sampled, and so is u if it has several coordinates.

The last resort once directions are known. One u is averaged over by the rule for one; of several the lattices are shifted, each
of which gives an average.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

import numpy as np
from sympy import Expr, Symbol

from hermitex.exponents.laws.density import Index
from hermitex.exponents.laws.invariant import invariant
from hermitex.exponents.laws.known import even_part, mirror, over_known
from hermitex.exponents.laws.linearised import Couplings, Second
from hermitex.exponents.laws.projected import points
from hermitex.exponents.laws.scattered import Kernels, Plan, Sampled
from hermitex.symbolic.budget import checkpoint

_ONE = Plan((11, 14), 12, 11)
_SEVERAL = Plan((12,), 11, 10)
_LATTICES, _NODES = 4, 64  # for several u
_LIGHT = 1e-3  # of the mean weight: no u that is worth its time
_SURE = 4.0


def scattered_given(g: Expr, silent: Sequence[Symbol], kernels: Kernels | None,
                    spaces: tuple[Sequence[Symbol], Sequence[Symbol], Sequence[Index]]) -> Second:
    """The couplings of order two of the hidden variables, averaged over the given ones.

    Parameters
    ----------
    g : the label, of the variables and of `silent` standard normals that carry no direction (noise)
    kernels : the probabilities of the labels given g, where it is drawn; None: g is the label
    spaces : the given variables, the hidden ones, indices known to be exactly zero

    Raises
    ------
    NoClosedForm : too many variables. BudgetExceeded : before the first result.
    """
    sampled, seed = Sampled(g, silent, kernels, spaces), count()
    given, hidden, _ = spaces
    signs = mirror(g, given, hidden) if len(given) == 1 else None

    def at(u: float) -> Second:
        found = sampled.second((u,), _ONE, next(seed))
        return found if signs is None else even_part(found, signs)

    found = over_known(at, signs is not None)[0] if len(given) == 1 else \
        _over_lattices(lambda u: sampled.second(u, _SEVERAL, next(seed)), len(given))
    return invariant(found, g, hidden, odd=kernels is None)


def _over_lattices(at: Callable[[Sequence[float]], Second], r: int) -> Second:
    """The mean over u of several coordinates; lattices that are shifted independently tell how far it is off."""
    averages: list[Couplings] = []
    keys: dict[tuple[Index, Index], None] = {}
    wrong = 0.0
    for shift in np.random.default_rng(0).random((_LATTICES, r)):
        total: Couplings = {}
        for z, w in points(r, _NODES, shift):
            kept = w > _LIGHT/_NODES
            for u, weight in zip(z.T[kept].tolist(), w[kept].tolist(), strict=True):
                checkpoint("averaging over what is known")
                found = at(u)
                wrong += weight*(found.error - found.scatter)
                for key, value in found.couplings.items():
                    total[key] = total.get(key, 0.0) + weight*value
        averages.append(total)
        keys |= dict.fromkeys(total)
    table = np.array([[a.get(k, 0.0) for k in keys] for a in averages])
    spread = table.std(axis=0, ddof=1)/np.sqrt(_LATTICES)
    return Second(dict(zip(keys, table.mean(axis=0).tolist(), strict=True)),
                  _SURE*float(spread.max(initial=0.0)) + wrong/_LATTICES)
