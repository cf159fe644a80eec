"""E_u[f(u)], u ~ N(0, 1), of couplings that cost much at each u: a nested double-exponential rule, with what is done kept.

On each side u = exp(t - e^-t): u falls off doubly exponentially towards 0, where logarithms of u are singular, and so does the
weight at the other end; the trapezoidal rule in t is halved, and its nodes are used again. A budget that runs out in the
next halving leaves the last value, with the last change as its error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import prod

import numpy as np
from sympy import Expr, S, Symbol

from hermitex.errors import BudgetExceeded, NoClosedForm
from hermitex.exponents.directions.symmetry import sign_flips
from hermitex.exponents.laws.density import Index
from hermitex.exponents.laws.linearised import LabelCouplings, mix_couplings
from hermitex.processor import processor_seconds
from hermitex.symbolic.budget import budget, checkpoint, remaining


def even_part(found: LabelCouplings, signs: Sequence[int]) -> LabelCouplings:
    """The couplings that agree at u and -u, where the label at -u is that at u with z_i -> signs_i z_i: the others average to 0."""
    def character(key: tuple[Index, Index]) -> int:
        return prod(signs[i] for a in key for i in a)

    return replace(found, couplings={key: v for key, v in found.couplings.items() if character(key) == 1})


def mirror_signs(p: Expr, known: Sequence[Symbol], hidden: Sequence[Symbol], n: int = 0) -> tuple[int, ...] | None:
    """Signs s with p(-u_n, v) = +-p(u_n, s v), the other known variables left alone; None if there are none.

    So the law at -u_n is that at u_n with the hidden variables turned.
    """
    inside = [*known, *[x for x in hidden if p.has(x)]]
    wanted = tuple(-1 if k == n else 1 for k in range(len(known)))
    for s in sign_flips(p, inside):
        if s.flips is not None and s.flips[:len(known)] == wanted:
            found = dict(zip(inside, s.flips, strict=True))
            return tuple(found.get(x, 1) for x in hidden)
    return None


def beyond_known(g: Expr, hidden: Sequence[Symbol]) -> Expr:
    """g(u, v) - g(u, 0), which tells of v what g tells once u is known, and has mirrors that g may lack: gelu(u + v) + gelu(u - v).

    Examples
    --------
    >>> from hermitex.symbols import z1, z2
    >>> beyond_known(z1 + z1**2*z2, [z2])
    z1**2*z2
    """
    at_zero = g.xreplace({v: S.Zero for v in hidden})
    return g if at_zero.has(S.NaN, S.Infinity, S.NegativeInfinity, S.ComplexInfinity) else (g - at_zero).expand()


def over_known(at: Callable[[float], LabelCouplings], even: bool, *, converged: float = 1e-11) -> tuple[LabelCouplings, float]:
    """The couplings averaged over u; those of order two.

    Parameters: `at`: the couplings at u, with their error; `even`: they agree at u and -u.

    The error is the change that the next halving would make, which is returned too, and twice the average of the errors at u.
    A change below the latter ends the halving.
    """
    last, lost = None, float("inf")
    changes: list[float] = []
    halvings = 6  # down to a step of 1.3/2^5 = 0.04
    kept = 0.9  # of the time that is left: the rest serves the error
    # converged: absolute, of couplings of size one, a tenth of what alpha_c claims
    try:
        with budget(remaining(kept)):
            for level in range(halvings):
                start = processor_seconds()
                now = _halved(at, level, even, last)
                if last is not None:
                    changes.append(max((abs(v - last.couplings.get(k, 0.0)) for k, v in now.couplings.items()), default=0.0))
                    lost = next_change(changes)
                last = now
                more = remaining()
                too_long = more is not None and (2.1 if level > 1 else 1.05) * (processor_seconds() - start) > more
                if lost < max(converged, now.error) or (too_long and level > 1):
                    break
    except BudgetExceeded:
        if last is None or not np.isfinite(lost):
            raise
    assert last is not None
    return LabelCouplings(last.couplings, lost + 2 * last.error), lost


def _halved(at: Callable[[float], LabelCouplings], level: int, even: bool, last: LabelCouplings | None) -> LabelCouplings:
    """The trapezoidal rule at the next halving: half of the last one, and the nodes between its own."""
    first_step = 1.3  # five nodes in the range to begin with, as one may take seconds
    step = first_step / 2**level
    reach = (-3.25, 2.3)  # of t: u from 3e-13, below which the mass is negligible, to 9
    t = np.arange(reach[0] + (step if level else 0.0), reach[1], 2 * step if level else step)
    u = np.exp(t - np.exp(-t))
    weight = step * u * (1 + np.exp(-t)) * np.exp(-u * u / 2) / np.sqrt(2 * np.pi) * (2 if even else 1)

    def parts() -> Iterator[tuple[float, LabelCouplings]]:
        if last is not None:
            yield 0.5, last
        for place, w in zip(u.tolist(), weight.tolist(), strict=True):
            for side in (1.0,) if even else (1.0, -1.0):
                checkpoint("averaging over what is known")
                yield w, at(side * place)

    found = mix_couplings(parts())
    return replace(found, couplings={key: v for key, v in found.couplings.items() if len(key[0]) == 2})


def over_all_known(at: Callable[[Sequence[float]], LabelCouplings], p: Expr, known: Sequence[Symbol], hidden: Sequence[Symbol],
                   place: tuple[float, ...] = ()) -> LabelCouplings:
    """The average over several known variables, one inside the other; `p`: what the label depends on, `place`: those given.

    Raises
    ------
    NoClosedForm : more than two of them.
    """
    most = 2  # known variables: nested rules of three would take minutes
    if len(known) > most:
        raise NoClosedForm("alpha_c", f"an average over {len(known)} known directions is not taken", "Give a simpler target")
    if len(place) == len(known):
        return at(place)
    signs = mirror_signs(p, known, hidden, len(place))

    def inner(u: float) -> LabelCouplings:
        found = over_all_known(at, p, known, hidden, (*place, u))
        return found if signs is None else even_part(found, signs)

    return over_known(inner, signs is not None)[0]


def next_change(changes: Sequence[float]) -> float:
    """The change that the next halving would make.

    Where they fall off twice, they will at least as fast as they last did: at an analytic f each squares the one before. A
    single small change may be an accident.

    Examples
    --------
    >>> next_change([0.5, 1e-4]), round(next_change([0.5, 1e-3, 1e-5]), 12)
    (0.01, 2e-07)
    """
    *earlier, last = changes
    falls = 1/8  # a quotient of changes from which convergence is taken as faster than geometric
    if len(earlier) > 1 and earlier[-1] < falls*earlier[-2]:
        return last*min(1.0, 2*last/earlier[-1]) if earlier[-1] else last
    once = 1/50  # of the change before: a single small change may be chance
    return max(last, once*earlier[-1]) if earlier else last
