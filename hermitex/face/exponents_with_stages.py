"""hx.exponents: the exponents of a target, with the alpha at which AMP reaches its later stages."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any, overload

from hermitex.errors import BadInput, BudgetExceeded, HermitexError, NoClosedForm
from hermitex.exponents import report
from hermitex.exponents.stages import digits_that_hold, lower_bound
from hermitex.hints import Covariance, Formula
from hermitex.processor import processor_seconds
from hermitex.symbolic.budget import DEFAULT_BUDGET, work
from hermitex.symbolic.deadline import deadline

if TYPE_CHECKING:
    from sympy import Symbol

    from hermitex.exponents.channels import Channel
    from hermitex.exponents.exponents_table import ExponentsTable
    from hermitex.exponents.result import Exponents
    from hermitex.theories.overlaps.reached_thresholds import Reached


@overload
def exponents(target: list[Formula] | tuple[Formula, ...], channel: str | Channel | None = None, *,
              variables: Sequence[str | Symbol] | str | None = None, covariance: Covariance | None = None,
              budget: float | None = DEFAULT_BUDGET) -> ExponentsTable: ...
@overload
def exponents(target: Formula, channel: str | Channel | None = None, *,
              variables: Sequence[str | Symbol] | str | None = None, covariance: Covariance | None = None,
              budget: float | None = DEFAULT_BUDGET) -> Exponents: ...
def exponents(target: Formula | Sequence[Formula], channel: str | Channel | None = None, *,
              variables: Sequence[str | Symbol] | str | None = None, covariance: Covariance | None = None,
              budget: float | None = DEFAULT_BUDGET) -> Exponents | ExponentsTable:
    """Every exponent of a target g(z), its class, its sample complexities, and a certificate for each statement.

    information exponent l = min{k >= 1: E[Y He_k] != 0};  generative exponent k* = min{k >= 1: E[E[h_k|Y]^2] != 0};
    1/alpha_c = E[(E[z^2|Y] - 1)^2]. In several variables: the first order, the leap and the staircase of the tensors
    E[Y He_k], the generative leap and its staircase, and a threshold for each of its stages,
    1/alpha_c = ||M -> E[G M G]|| over symmetric M, G = E[z z^T - 1|Y], once the directions of the stages before are known.

    Parameters
    ----------
    target : expression or text in standard normals: z, or z1, z2, ... (at most 6); a function of SymPy symbols
        (``lambda x, y: x*y``: its arguments are z1, z2), a Lambda; or a list of targets
    channel : how the label is drawn given g(z): None (y = g), "gaussian:1/4" (noise of variance 1/4), "flip:1/10" (a sign
        flipped with that probability), "sign:1" (the sign of g with noise of that variance), "random_sign", "poisson", "bernoulli",
        "multiplicative", or a `Channel`, the law P(y|z) itself, which contains g
    variables : names that count as variables though the target may not depend on them
    covariance : of the variables, where they are not standard: a matrix in their order, {("z1", "z2"): "1/2"} (the others stay as
        they are), a number for one variable; floats are read to 15 digits. The answer is that of g(L w), L lower triangular and
        w standard normals; directions are linear forms of the variables as given, and the certificates name w1, w2, ...
        Data N(0, 1 + theta mu mu^T) give the fields <w_i, x> the covariance <w_i, w_j> + theta <w_i, mu> <w_j, mu>.
    budget : CPU seconds, None for all that it takes; what it does not allow is reported undetermined

    Returns
    -------
    Exponents : information_exponent, leap_exponent, leap_coordinate, staircase, generative_exponent, generative_staircase,
        weak_recovery (class, alpha_c, alpha_c_exact, stages), complexity, certificates, notes. A stage is its order and its
        directions, rows over `variables`. None is an exponent that does not exist or was not decided; a note says which.
    Of a list, an `ExponentsTable`: print(table), .to_latex(), .to_csv(path), .to_dataframe().

    Raises
    ------
    BadInput : a target with free parameters, in more than 6 variables, or that does not fit the channel; a covariance of another
        size, not symmetric, not positive semi-definite, or with a letter in it.

    Guarantee
    ---------
    Every exponent rests on proofs that coefficients are zero or not zero, or is undetermined. `alpha_c` is exact or has an
    error; for later directions `>=` is a lower bound. See docs/promise.md.

    References: Ben Arous et al. (2021); Abbe et al. (2023); Dandi et al. (2023); Damian et al. (2024, 2025);
    Troiani et al. (2024).

    Examples
    --------
    >>> exponents("z**3 - 3*z")
    Exponents(z**3 - 3*z: information 3, generative 1, trivial, alpha_c = 0)
    >>> exponents("sign(z1*z2)")
    Exponents(sign(z1*z2): information 2, leap 2, generative 2, easy, alpha_c = pi**2/4 = 2.46740110027)
    >>> exponents("z**3 - 3*z", covariance=2).information_exponent  # E[x (x^3 - 3 x)] = 6
    1
    """
    if isinstance(target, list | tuple):
        from hermitex.exponents.exponents_table import ExponentsTable

        return ExponentsTable(tuple(_of_one(one, channel, variables, covariance, budget) for one in target))
    return _of_one(target, channel, variables, covariance, budget)


def _of_one(target: Any, channel: Any, variables: Any, covariance: Any, budget: float | None) -> Exponents:
    if isinstance(target, list | tuple):
        raise BadInput("exponents: a list holds targets, not further lists")
    start, given = processor_seconds(), None
    budget = None if budget == inf else budget
    if covariance is not None:
        target, channel, variables, given = report.standardised(target, channel, variables, covariance)
    found = report.exponents(target, channel, variables=variables, budget=budget)
    if len(found.threshold.stages) > 1:
        left = None if budget is None else max(budget - (processor_seconds() - start), 0.0)
        found = _with_reached(found, channel, budget, left)
    return report.in_linear_forms(found if given is None else given.restated(found))


def _with_reached(found: Exponents, channel: Any, budget: float | None, left: float | None) -> Exponents:
    """The stages with where the state evolution of AMP reaches them; `left` seconds are left of the budget."""
    stages, notes = [dict(s) for s in found.threshold.stages], list(found.notes)
    steps_a_second = 200  # of work for each second of the budget, about a tenth of it: noise on a smooth label may take minutes
    for n, stage in enumerate(stages):
        if stage["alpha_c"] is None:
            break
        if not stage["bound"]:  # the first, or of order 1: at once, with those before
            stage["reached"] = stages[n - 1]["reached"] if n else stage["alpha_c"]
            continue
        try:
            with deadline(left), nullcontext() if budget is None else work(steps_a_second*budget):
                at = _reached(found, channel, n)
        except BudgetExceeded:
            notes.append(f"stage {n + 1}: finding where it is reached needs more work than this budget allows; allow more with "
                         f"--budget {10*(budget or 0.1):g} (budget=), all that it takes with --budget inf (budget=None)")
            break
        except HermitexError as why:
            notes.append(f"stage {n + 1}: where it is reached was not found: {' '.join(str(why).split())}")
            break
        alpha, exact = max(at.alpha, float(stages[n - 1]["reached"])), at.overlap == 1
        stage |= {"reached": stage["alpha_c"] if exact else alpha, "reached_error": at.error, "bound": not exact}
        new = (f"stage {n + 1} is reached at its alpha_c: AMP knows the directions before perfectly there" if exact else
               f"stage {n + 1} is reached at alpha = {digits_that_hold(alpha, at.error)}, where AMP knows the directions before "
               f"with the overlap {at.overlap:.4f}; its alpha_c is where it would be, were they known perfectly")
        notes = [new if note == lower_bound(n + 1) else note for note in notes]
    return replace(found, threshold=replace(found.threshold, stages=tuple(stages)), notes=tuple(notes))


def _reached(found: Exponents, channel: Any, n: int) -> Reached:
    """The alpha at which the n-th stage is reached."""
    import numpy as np

    from hermitex.theories.multi_index import multi_index
    from hermitex.theories.overlaps.reached_thresholds import reached_threshold

    theory = multi_index(found.target, channel)
    names = [v.name for v in theory.reduced.variables]
    directions = [stage["directions"] for stage in found.weak_recovery["stages"][:n + 1]]
    if any(x is None for rows in directions for row in rows for x in row):
        raise NoClosedForm("the direction of a stage", "its number was not found", "Allow more time")
    places = [found.variables.index(name) for name in names]
    rows = [theory.inside(np.array(r, dtype=float)[:, places]) for r in directions]
    return reached_threshold(theory.evolution, np.vstack(rows[:n]), rows[n], float(found.threshold.stages[n]["alpha_c"]))


__all__ = ["exponents"]
