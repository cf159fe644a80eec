"""1/alpha_c = lambda_max(E[G_U (x) G_U]), G_U(y, u) = E[z z^T - I | y, u] on U^perp: weak recovery, stage by stage.

The stages are those of the generative staircase: order 1 is trivial (alpha_c = 0), order 2 has the finite threshold of
the eigenproblem, a higher order is hard. Once a subspace U is perfectly known the label tells what (y, u) tells: what u
alone determines is peeled off the target, and what is left is a target in fewer variables, or an average over u.
Source: Troiani et al. (2024), Damian, Lee, Bruna (2025).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sympy import Expr, S, Symbol

from hermitex.errors import BudgetExceeded, HermitexError
from hermitex.exponents.channels import Channel, NamedChannel
from hermitex.exponents.directions.direction_text import directions_words, short_rows
from hermitex.exponents.laws.value import LaterDirections, Value, as_array
from hermitex.exponents.stages import Threshold, digits_that_hold, lower_bound
from hermitex.symbolic.arithmetic import mpf
from hermitex.symbolic.subspaces import Matrix, matrix, stack

Forms = Callable[[Any], list[list[Expr]]]

# alpha_c = 0: a direction with E[z|Y] != 0 is found from any number of samples
TRIVIAL = Value(mpf(0), S.Zero, mpf(0), method="E[z|Y] is not zero")


def weak_recovery(g: Expr, law: NamedChannel | Channel, variables: Sequence[Symbol], *,
                  stages: Sequence[dict[str, Any]]) -> Threshold:
    """The weak-recovery threshold of a target, with its (grand staircase) stages.

    Parameters
    ----------
    g : the target, an expression of the variables
    law : the channel, as `channels.channel` reads it
    variables : the standard normals over which directions are written
    stages : the generative staircase [{order, directions}]

    Returns
    -------
    Threshold : `kind` trivial (every stage at 0), easy or hard; `alpha_c` of the last stage; `stages`

    Raises
    ------
    nothing that the target could cause: what is not reached is None, with a note.

    References: Troiani et al. (2024); Damian, Lee, Bruna (2025).

    Examples
    --------
    >>> from hermitex.exponents.channels import channel
    >>> from hermitex.symbols import z1, z2
    >>> from sympy import sign
    >>> weak_recovery(sign(z1*z2), channel(), (z1, z2), stages=[{"order": 2, "directions": [[1, 0], [0, 1]]}])
    Threshold(easy, alpha_c = pi**2/4 = 2.46740110027)
    """
    variables = tuple(variables)
    names = [v.name for v in variables]
    notes: list[str] = []
    if not stages:
        return Threshold(None, notes=tuple(notes))
    known = matrix([], len(variables))
    done: list[dict[str, Any]] = []
    last = TRIVIAL
    rounding = 1e-9  # relative, above the rounding of couplings: z itself meets the bound
    for stage in stages:
        directions = matrix([[S(x) for x in row] for row in _rows(stage["directions"])], len(variables))
        entry = {"alpha_c": None, "directions": _rows(directions), "conditional": known.rows > 0, "bound": False, "reached": None,
                 "method": ""}
        done.append(entry)
        name = f"alpha_c of stage {len(done)}" if len(stages) > 1 else "alpha_c"
        if stage["order"] >= 3:
            return Threshold("hard", notes=tuple(notes), stages=tuple(done))
        try:
            if stage["order"] == 1:
                last = TRIVIAL
            else:  # an exact answer pays for no NumPy
                from hermitex.exponents.laws.mechanisms import stage_value

                last = stage_value(g, law, variables, known)
        except (BudgetExceeded, HermitexError) as err:
            failed = f"finite, its value was not reached: {' '.join(str(err).split())}"
        else:
            hidden = len(variables) - known.rows  # with G = z z^T - 1, as z itself tells, E[G M G] = (r + 1) M at M = 1
            failed = (f"not reached, {digits_that_hold(last.alpha)} came out, and z itself has 1/{hidden + 1}"
                      if last.alpha and last.alpha + last.error < (1 - rounding) / (hidden + 1) else "")
        if failed:
            notes.append(f"{name}: {failed}")
        else:
            entry |= {"alpha_c": last.alpha, "exact": last.exact, "error": last.error, "method": last.method,
                      "bound": bool(known.rows and last.alpha), "reached": None if known.rows else last.alpha,
                      "remaining": last.remaining}
            notes += [n.replace("alpha_c:", f"{name}:", 1) for n in last.notes]
            notes += later_words(last.remaining, directions, names)
            notes += [lower_bound(len(done))] if entry["bound"] else []
        known = stack(known, directions)
    kind = "trivial" if all(s["order"] == 1 for s in stages) else "easy"
    notes += _slower_before(done, names)
    if failed:
        return Threshold(kind, notes=tuple(notes), stages=tuple(done))
    return Threshold(kind, last.alpha, last.exact, last.error, tuple(notes), tuple(done), last.method)


def direction_notes(stages: Sequence[dict[str, Any]], names: Sequence[str], forms: Forms | None = None) -> list[str]:
    """The notes of `weak_recovery` that name directions; `forms` carries rows to the variables of these names."""
    later = [n for s in stages for n in later_words(s.get("remaining"), s["directions"], names, forms)]
    return [*later, *_slower_before(stages, names, forms)]


def _slower_before(done: Sequence[dict[str, Any]], names: Sequence[str], forms: Forms | None = None) -> list[str]:
    """A later stage that is faster than one before it still waits for it."""
    known = [s for s in done if s["alpha_c"] is not None]
    slowest = max(known, key=lambda s: s["alpha_c"], default=None)
    if slowest is None or not known[-1]["alpha_c"] < slowest["alpha_c"]:
        return []
    value, last = (digits_that_hold(s["alpha_c"], s.get("error")) for s in (slowest, known[-1]))
    final, before = (directions_words(forms(s["directions"]) if forms else s["directions"], names) for s in (known[-1], slowest))
    return [f"alpha_c = {last} is that of the last stage ({final}) once the directions before it are known; {before} "
            f"{'are' if ',' in before else 'is'} found from alpha = {value}, and {final} not earlier"]


def _rows(directions: Any) -> list[list[Any]]:
    return directions.tolist() if hasattr(directions, "tolist") else [list(row) for row in directions]


def later_words(later: LaterDirections | None, directions: Any, names: Sequence[str], forms: Forms | None = None) -> list[str]:
    """Which directions of the stage alpha_c is about, and what is known of the others."""
    if later is None:
        return []
    whole = as_array(Matrix(_rows(directions)))
    apart = whole - whole @ later.first.T @ later.first
    rest = short_rows(apart)
    if not rest or not len(later.first):
        return []  # the others are those of a later stage
    later = later if len(rest) == len(later.rows) else later._replace(alpha=None)
    first, others = (directions_words(short_rows(forms(rows) if forms else rows), names) for rows in (later.first, apart))
    exact = "" if later.exact is None else f"{later.exact} = "
    when = "" if later.alpha is None else (f", at alpha = {exact}{digits_that_hold(later.alpha, later.error, 10)} "
                                          "without help of the first, with it maybe earlier")
    return [f"alpha_c is where {first} {'are' if ',' in first else 'is'} found; {others} later{when}"]
