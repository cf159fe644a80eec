"""sharp = E Var(g|P_U z) - E|h_1|^2,  h_1 = E[g v|u]: the floor of a ridge readout at n, p ~ d once u = P_U z is known, v the rest.

E Var(g|P_U z) alone is a floor for readouts that see u only; ridge also fits the part that is linear in v, with coefficients that
depend on u, and may go below it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from sympy import Float, S

from hermitex.errors import NO_NUMBER, BadInput, Divergent, brief
from hermitex.exponents.report import read_target
from hermitex.exponents.unlearned import Unlearned, unlearned
from hermitex.hints import Formula
from hermitex.symbolic.budget import DEFAULT_BUDGET
from hermitex.symbolic.deadline import deadline


def floor(g: Formula, rows: Sequence[Sequence[Any]] = (), *, budget: float | None = DEFAULT_BUDGET) -> Unlearned:
    """What no readout learns of g(z1, z2, ...) once the span U of some directions is known -> variance and sharp.

    Parameters
    ----------
    g : target in z (one direction) or z1, z2, ...; rows : directions that span U, over the variables, of any length; () for none
    budget : CPU seconds

    Returns
    -------
    Unlearned : `found["variance"]` = E Var(g|P_U z), a floor for readouts of P_U z alone (weights of one size), not of ridge;
    `found["sharp"]`, the floor of ridge at n, p ~ d, reached as n/d, p/d -> infinity with a rich enough vocabulary and biases;
    `.variance` and `.sharp` are exact, or None; `.values["error"]`.

    Raises
    ------
    BadInput : rows of another width than the variables, or that are not numbers. NoClosedForm : no number was found.

    Guarantee: the numbers are those of the formulas, to `error`. That `sharp` bounds the risk of ridge is derived at the level of
    replica theory, and checked by simulation; it is not a theorem. See docs/promise.md.

    >>> found = floor("z1 + z1*z2", [[1, 0]])
    >>> found["variance"], found["sharp"]      # ridge has a risk of 0.1255 at n = 40 d, p = 8 d with four letters and biases
    (1.0, 0.0)
    """
    if isinstance(rows, str) or not isinstance(rows, Iterable):
        raise BadInput(f"floor: rows is a list of directions, [[1, 0]], not {brief(rows)}")
    exact = [_row(row) for row in rows]
    width = len(exact[0]) if exact else 0
    if any(len(row) != width for row in exact):
        raise BadInput("floor: the rows have different lengths; give each an entry for each variable")
    target, names = read_target(g, [f"z{i + 1}" for i in range(width)] if width > 1 else None)
    if exact and width != len(names):
        raise BadInput(f"floor: a row has {width} entries for the {len(names)} variables {', '.join(names)}")
    if any(not any(row) for row in exact):
        raise BadInput("floor: a row is zero; leave it out")
    try:
        with deadline(budget):
            found = unlearned(target, names, [{"order": 1, "directions": exact}] if exact else [])
    except Divergent as why:
        raise BadInput(f"floor: the target must be square integrable: {why}") from why
    return replace(found, orders=())


def _row(row: Any) -> list[Any]:
    """The direction: exact as given, or, of floats, in units of the largest, the nearest fractions: off by 1e-14."""
    try:
        found = [S(x) for x in row]
    except NO_NUMBER:
        found = []
    if not found or not all(x.is_number and x.is_real and x.is_finite for x in found):
        raise BadInput(f"floor: a row holds one number for each variable, not {brief(row)}")
    if any(x.has(Float) for x in found) and (largest := max(abs(x) for x in found)):
        return [S(Fraction(float(x/largest)).limit_denominator(10**7)) for x in found]  # its square is an integer of 64 bits
    return found
