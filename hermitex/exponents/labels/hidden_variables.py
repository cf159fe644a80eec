"""E[He_n(z_i) | v(z_i)] = 0 if a label depends on z_i only through v: then E[He_n(z_i) h(rest) | Y, rest] = 0 as well.

sign(z1 z2) depends on the sign of z2 only, and |z2| is independent of it: no label informs about z2^2 - 1. The parts v are
a sign, a modulus, a step, or any function with preimages that cancel, such as z^2 exp(-z^2) at n = 2.
"""

from __future__ import annotations

from collections.abc import Sequence

from sympy import Abs, Dummy, Expr, Piecewise, Symbol

from hermitex.exponents.label import revealed
from hermitex.exponents.labels.label_branches import branch_identity
from hermitex.exponents.labels.label_levels import finite_level_sets, indicator_moment
from hermitex.exponents.labels.quantities import own_parts
from hermitex.symbolic.budget import unless_refused
from hermitex.symbolic.parity import parity
from hermitex.symbolic.weak import in_heavisides


def vanishing_orders(seen: Sequence[Expr], x: Symbol, most: int) -> dict[int, str]:
    """{n: why}: the orders 1 <= n <= most with E[He_n(x) | v(x)] = 0, each proved.

    Parameters
    ----------
    seen : the expressions through which the label depends on x and on other variables

    Examples
    --------
    >>> from sympy import Abs, sign
    >>> from hermitex.symbols import z1, z2
    >>> sorted(vanishing_orders([z1 + sign(z1*z2)], z2, 4)), sorted(vanishing_orders([z1 + Abs(z2)], z2, 4))
    ([2, 4], [1, 3])
    """
    # Conditions with a comparison hide what they depend on.
    seen = [e.replace(lambda n: isinstance(n, Piecewise), in_heavisides) for e in seen]
    if all(x not in e.free_symbols for e in seen):
        return dict.fromkeys(range(1, most + 1), f"the label does not depend on {x}")
    if _only_sign(seen, x):
        why = f"the label sees {x} through its sign only"
        return {n: f"{why}, so E[He_{n}({x}) | its sign] = 0" for n in range(2, most + 1, 2)}
    v = visible_part(seen, x)
    return unless_refused(lambda: _by_modulus(seen, x, most) if v is None or v == x else _by_one_variable(v, x, most)) or {}


def _only_sign(seen: Sequence[Expr], x: Symbol) -> bool:
    t = Dummy("t", positive=True)
    return all(t not in e.xreplace({x: s*t}).free_symbols for e in seen for s in (1, -1))


def visible_part(seen: Sequence[Expr], x: Symbol) -> Expr | None:
    """v(x) with every expression a function of v and of the other variables, or None without a single such v.

    Examples
    --------
    >>> from sympy import exp
    >>> from hermitex.symbols import z1, z2
    >>> visible_part([z1*z2**2*exp(-z2**2)], z2)
    z2**2*exp(-z2**2)
    """
    parts = {revealed(v, (x,)) for e in seen for v in own_parts(e, x)}
    return parts.pop() if len(parts) == 1 else None


def _by_one_variable(v: Expr, x: Symbol, most: int) -> dict[int, str]:
    found: dict[int, str] = {}
    even = parity(v, x) == 1
    if even:
        found = dict.fromkeys(range(1, most + 1, 2), f"the label sees {x} through the even function {v}")
    found.update(_by_steps(v, x, most))
    if even:
        for n in range(2, most + 1, 2):
            identity = branch_identity((v,), (x,), n) if n not in found else None
            if identity:
                found[n] = identity
    return found


def _by_modulus(seen: Sequence[Expr], x: Symbol, most: int) -> dict[int, str]:
    """Orders that are even: E[He_n(x) | v(|x|), sign of x] = E[He_n(x) | v(|x|)], if the label depends on |x| through v only."""
    t = Dummy("t", positive=True)
    parts = {visible_part([e.xreplace({x: s*t}) for e in seen], t) for s in (1, -1)}
    v = parts.pop() if len(parts) == 1 else None
    if v is None or v == t:
        return {}
    found = _by_one_variable(v.xreplace({t: Abs(x)}), x, most)
    return {n: f"given the sign of {x}, {why}" for n, why in found.items() if n % 2 == 0}


def _by_steps(v: Expr, x: Symbol, most: int) -> dict[int, str]:
    from hermitex.symbolic.zero import decide

    classes = finite_level_sets(v, x)
    if classes is None:
        return {}
    why = f"the label sees {x} through the steps of {v}"
    return {n: why for n in range(1, most + 1)
            if all(decide(indicator_moment(c, n)).status == "zero" for c in classes.values())}
