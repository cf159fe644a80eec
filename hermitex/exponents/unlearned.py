"""Var(g|P_U z) = E g^2 - E[g(u, v) g(u, v')]: the part of a target that a learner misses who knows the subspace U alone.

u = P_U z is shared, v and v' are independent copies of the rest. A ridge readout at n, p ~ d fits the part linear in the rest, too,
with coefficients that depend on u: what is left is less by E|h_1(u)|^2 = sum_i E[v_i v_i' g(u, v) g(u, v')], h_1 = E[g v|u].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from sympy import Add, Expr, Float, Mul, S, Symbol

from hermitex.errors import BadInput, BudgetExceeded, NoClosedForm, UnknownName
from hermitex.exponents.channels import channel
from hermitex.exponents.directions.direction_text import directions_words
from hermitex.exponents.findings import Findings, Stage
from hermitex.numbers.gauss import hermite
from hermitex.show.display import Shown, latex
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.deadline import attempt, deadline
from hermitex.symbolic.gaussian import E, Expectation
from hermitex.symbolic.integrals import closed_form
from hermitex.symbolic.invariance import rewritten
from hermitex.symbolic.parsing import to_text
from hermitex.symbolic.precise import evaluate
from hermitex.symbolic.subspaces import complement, frame, matrix, orthonormal, stack
from hermitex.symbols import normal


@dataclass(frozen=True, repr=False)
class Unlearned(Shown):
    """The unlearned part of E[Y|z] once the span U of some directions is known.

    Attributes
    ----------
    target : E[Y|z]
    variables, directions : U, rows over the variables
    orders : of the stages that found U: a stage of order k takes n ~ d^k samples
    variance : E Var(g|P_U z): a floor for readouts that see P_U z alone (output weights of one size, f a mean over neurons)
    sharp : the floor of a ridge readout at n, p ~ d, which fits the part linear in the rest; reached as n/d, p/d -> infinity
    values : both as numbers, with their errors

    Guarantee: both are exact, or None; then `values` holds numbers and the `error` that two rules show.
    """

    target: Expr
    variables: tuple[str, ...]
    directions: tuple[tuple[Any, ...], ...]
    orders: tuple[int, ...]
    variance: Expr | None
    sharp: Expr | None
    values: dict[str, float]

    def __str__(self) -> str:
        known = directions_words(self.directions, self.variables) or "nothing"
        cost = f" ({self._cost()})" if self.orders or not self.directions else ""
        shown = [f"once {known} is known{cost}:"]
        shown += [f"  E Var(g|P_U z) = {self._number('variance')}: the error of readouts that see only P_U z is no less"]
        shown += [f"  less what is linear in the rest = {self._number('sharp')}: the floor of ridge at n, p ~ d, which the line "
                  "above does not bound"]
        return "\n".join(shown)

    def __getitem__(self, name: str) -> float:
        """`variance`, `sharp` or `error` as a number."""
        if name not in self.values:
            raise UnknownName(name, self.values, "quantity")
        return self.values[name]

    def _cost(self) -> str:
        steps = f"{len(self.orders)} step{'s' if len(self.orders) != 1 else ''}"
        return f"{steps}{', n ~ ' if self.orders else ''}{', '.join('d' if k == 1 else f'd^{k}' for k in self.orders)}"

    def _number(self, name: str) -> str:
        exact, value = getattr(self, name), self.values[name]
        number = f"{value:.10g}"
        return number if exact is None or to_text(exact) == number else f"{to_text(exact)} = {number}"

    def to_dict(self) -> dict[str, Any]:
        """Directions as numbers, the floors as exact text (null where there is none) and as numbers."""
        return {"target": to_text(self.target), "variables": list(self.variables), "orders": list(self.orders),
                "directions": [[float(evaluate(S(x), 20)) for x in row] for row in self.directions],
                "variance": self.values["variance"], "sharp": self.values["sharp"],
                "variance_exact": None if self.variance is None else to_text(self.variance),
                "sharp_exact": None if self.sharp is None else to_text(self.sharp), "error": self.values["error"]}

    def latex(self) -> str:
        """E Var(g|P_U z)."""
        found = f"{self.values['variance']:.10g}" if self.variance is None else latex(self.variance)
        return rf"\mathbb{{E}}\,\mathrm{{Var}}(g \mid P_U z) = {found}"

    def _summary(self) -> str:
        return f"{directions_words(self.directions, self.variables) or 'nothing'} known: variance {self._number('variance')}, " \
               f"sharp {self._number('sharp')}"


def after_steps(found: Findings, steps: int, budget: float | None) -> Unlearned:
    """The rest after so many stages of the staircase of an answer."""
    if not isinstance(steps, int) or isinstance(steps, bool) or steps < 0:
        raise BadInput(f"unlearned: steps must be 0, 1, 2, ..., got {steps!r}")
    if found.square_integrable is not True:
        raise BadInput("unlearned: E[Y|z] must be square integrable, and known to be")
    if steps > len(found.staircase) and found.leap_exponent is None and found.silent == "":
        raise BadInput(f"unlearned: only {len(found.staircase)} stages of the staircase were decided, got steps={steps}; "
                       "allow more time with budget=")
    law = channel(found.channel) if found.law is None else found.law
    with deadline(budget):
        return unlearned(law.mean(found.target), found.variables, found.staircase[:steps])


def unlearned(mean: Expr, names: Sequence[str], stages: Sequence[Stage]) -> Unlearned:
    """The floors of E[Y|z] over these variables after the stages of a staircase.

    Raises
    ------
    NoClosedForm : a number was not found.

    Examples
    --------
    >>> from hermitex.symbols import z1, z2
    >>> found = unlearned(z1 + z1*z2, ("z1", "z2"), [{"order": 1, "directions": [[1, 0]]}])
    >>> found.variance, found.sharp
    (1, 0)
    """
    rows = [[S(x) for x in row] for stage in stages for row in stage["directions"]]
    variables = tuple(normal(n) for n in names)
    inner, known, rest = _adapted(mean, variables, rows)
    exact: tuple[Expr, Expr] | None = None
    seconds = 15.0  # of the processor for the closed forms; numbers take less where these are not found
    try:
        with attempt(seconds):
            exact = _exact(inner, known, rest)
    except (NoClosedForm, BudgetExceeded):
        checkpoint("averaging over what is known")
    numbers = None if exact is None else [float(evaluate(e, 20)) for e in exact]
    found, error = (numbers, 0.0) if numbers is not None else _by_grid(inner, known, rest)
    values = {"variance": found[0], "sharp": found[1], "error": error}
    variance, sharp = exact or (None, None)
    return Unlearned(mean, tuple(names), tuple(map(tuple, rows)), tuple(s["order"] for s in stages), variance, sharp, values)


def _adapted(g: Expr, variables: tuple[Symbol, ...], rows: Sequence[Sequence[Expr]]
             ) -> tuple[Expr, tuple[Symbol, ...], tuple[Symbol, ...]]:
    """g over coordinates of U and of its complement, and the names of the two."""
    known = matrix([list(r) for r in rows], len(variables))
    parts = ([frame(known)] if known.rows else []) + ([orthonormal(complement(known))] if known.rows < len(variables) else [])
    names = tuple(normal(f"z{i + 1}") for i in range(len(variables)))
    inner = rewritten(g, variables, parts[0] if len(parts) == 1 else stack(*parts), names)
    return inner, names[:known.rows], tuple(n for n in names[known.rows:] if inner.has(n))


def _exact(g: Expr, known: Sequence[Symbol], rest: Sequence[Symbol]) -> tuple[Expr, Expr]:
    """(E Var(g|u), the same less E|h_1|^2), where both are closed."""
    taken = max((int(v.name[1:]) for v in (*known, *rest)), default=0)
    copies = [normal(f"z{taken + i + 1}") for i in range(len(rest))]
    twice, every = g*g.xreplace(dict(zip(rest, copies, strict=True))), (*known, *rest, *copies)
    variance = _average(g**2, every) - _average(twice, every)
    sharp = variance - sum((_average(Mul(v, w, twice), every) for v, w in zip(rest, copies, strict=True)), S.Zero)
    return variance.expand().simplify(), sharp.expand().simplify()


def _by_grid(g: Expr, known: Sequence[Symbol], rest: Sequence[Symbol]) -> tuple[list[float], float]:
    """The same by Gauss-Hermite rules, and three times how far two of them are apart: on a kink they gain a factor 1.5 to 2."""
    many = 4  # variables of a grid of 24 points each: 330,000
    if len(known) + len(rest) > many:
        raise NoClosedForm("E Var(g|P_U z)", f"{len(known) + len(rest)} variables are too many for a grid",
                           "Give a target in fewer")
    orders = {1: (120, 80), 2: (120, 80), 3: (60, 44)}.get(len(known) + len(rest), (24, 18))
    g = g.xreplace({node: Float(evaluate(node, 20), 20) for node in g.atoms(Expectation)})
    fine, coarse = (_on_grid(g, known, rest, n) for n in orders)
    return fine, 3*max(abs(a - b) for a, b in zip(fine, coarse, strict=True))


def _on_grid(g: Expr, known: Sequence[Symbol], rest: Sequence[Symbol], order: int) -> list[float]:
    from hermitex.exponents.laws.density import array_function

    x, w = hermite(order)
    z = np.meshgrid(*[x]*(len(known) + len(rest)), indexing="ij")
    values = array_function(g, *known, *rest)(*z).reshape(order**len(known), -1)
    weights = [reduce(np.multiply.outer, [w]*n, np.ones(())).ravel() for n in (len(known), len(rest))]
    mean = values @ weights[1]
    slopes = [(values*v.reshape(values.shape)) @ weights[1] for v in z[len(known):]]
    variance = float(weights[0] @ (values**2 @ weights[1] - mean**2))
    return [variance, variance - float(sum(weights[0] @ h**2 for h in slopes))]


def _average(body: Expr, names: Sequence[Symbol]) -> Expr:
    """E body, term by term."""
    return sum((closed_form(E(t, *used)) if (used := [n for n in names if t.has(n)]) else t
                for t in Add.make_args(body.expand())), S.Zero)
