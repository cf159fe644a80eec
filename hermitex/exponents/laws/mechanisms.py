"""1/alpha_c = lambda_max(E[G_U (x) G_U]) of one stage, G_U(y, u) = E[z z^T - I | y, u] on U^perp: the table of mechanisms.

A stage is a `ThresholdQuestion`: its label in canonical form (`exponents.label`), its variables, and the known ones.
`MECHANISMS` is in the order in which they are tried; each says what it gives and at what cost, and answers None
where it does not apply. The first that answers is named by the answer (`Threshold.method`).
Source: Troiani et al. (2024).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sympy import Expr, Heaviside, Mul, S, Symbol, floor

from hermitex.errors import NoClosedForm
from hermitex.exponents.channels import Channel, NamedChannel, channel
from hermitex.exponents.directions.invariant_tensors import stabiliser, without_sign
from hermitex.exponents.directions.relevant import relevant_directions
from hermitex.exponents.directions.symmetry import symmetries
from hermitex.exponents.label import canonical_label, independent_labels, without_silent_sign
from hermitex.exponents.labels.label_levels import indicator_moment
from hermitex.exponents.labels.sign_and_size import nonzero_almost_everywhere
from hermitex.exponents.laws.channel_couplings import later_stage
from hermitex.exponents.laws.committee_laws import committee, injective_pair
from hermitex.exponents.laws.conditional_couplings import averaged_over
from hermitex.exponents.laws.discrete import Atoms, exact_atoms, indices
from hermitex.exponents.laws.exact_eigenvalue import exact_couplings, exact_largest, exact_largest_of_two, largest_of_exact
from hermitex.exponents.laws.linearised import LabelCouplings, largest, of_masses, supported_directions
from hermitex.exponents.laws.noisy import POINTS, exact_mixture, noisy_second
from hermitex.exponents.laws.one_variable_threshold import one_variable
from hermitex.exponents.laws.value import LaterDirections, Value, as_array, threshold_from_number
from hermitex.symbolic.arithmetic import mpf
from hermitex.symbolic.budget import unless_refused
from hermitex.symbolic.engine.rational_tidying import compact
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.invariance import rewritten
from hermitex.symbolic.pieces import pieces
from hermitex.symbolic.precise import evaluate
from hermitex.symbolic.subspaces import Matrix, complement, frame, matrix, orthonormal, stack
from hermitex.symbolic.terms import connected
from hermitex.symbols import normal

_NOISES = ("gaussian", "poisson", "multiplicative")  # their label is a function of g and of an independent draw


@dataclass(frozen=True)
class ThresholdQuestion:
    """alpha_c of the directions `hidden` once `given` are perfectly known.

    Attributes
    ----------
    g : what the label tells of the hidden variables, over given and hidden ones
    law : the channel that is left; a `Channel` of the user's holds its law over the same variables
    rows : the hidden coordinates over the variables of the target, shape (hidden, variables)
    target : the target as it was asked for, with its channel, variables and the known rows over them
    """

    g: Expr
    law: NamedChannel | Channel
    given: tuple[Symbol, ...]
    hidden: tuple[Symbol, ...]
    rows: Any
    target: tuple[Expr, NamedChannel | Channel, tuple[Symbol, ...], Matrix]

    @property
    def plain(self) -> bool:
        """A label without noise, and nothing known that enters it."""
        return not self.given and isinstance(self.law, NamedChannel) and self.law.name == "deterministic"


class Mechanism(NamedTuple):
    """One way to the threshold: its name, what it gives, its cost, and the value where it applies (else None)."""

    name: str
    gives: str
    cost: str
    value: Callable[[ThresholdQuestion], Value | None]


def stage_value(g: Expr, law: NamedChannel | Channel, variables: Sequence[Symbol], known: Matrix) -> Value:
    """alpha_c of the stage at which G_U is the first tensor that is not zero, U the span of the rows `known`.

    Raises
    ------
    NoClosedForm : the label is not integrated. BudgetExceeded.
    """
    return _answered(_question(g, law, tuple(variables), known))


def _answered(question: ThresholdQuestion) -> Value:
    """The value by the first mechanism that applies."""
    for mechanism in MECHANISMS:
        found = mechanism.value(question)
        if found is not None:
            _loses_something(found, question)
            later = None if found.remaining is None else found.remaining.over(question.rows)
            return found._replace(method=found.method or mechanism.name, remaining=later)
    raise NoClosedForm("alpha_c", "no mechanism of the table applies", "Write the target in another form")


def _loses_something(found: Value, q: ThresholdQuestion) -> None:
    """Data processing: noise tells no more of one variable than the label without it.

    Raises
    ------
    NoClosedForm : a threshold below the one without noise, which is wrong.
    """
    if q.given or len(q.hidden) != 1 or q.law.name not in _NOISES:
        return
    plain = _alone(q.g, channel(), q.hidden)
    if found.alpha + found.error < (plain.alpha - plain.error) * (1 - mpf(10)**-9):
        raise NoClosedForm("alpha_c", f"{float(found.alpha):.6g} came out, and without noise it is {float(plain.alpha):.6g}: "
                           "no channel lowers it", "Give the target in another form")


# -- the question ------------------------------------------------------------------------------------------------------
def _question(g: Expr, law: NamedChannel | Channel, variables: tuple[Symbol, ...], known: Matrix) -> ThresholdQuestion:
    """The question without the known parts of the label, over the variables that enter the rest."""
    target = (g, law, variables, known)
    inner, hidden, rows = law.p if isinstance(law, Channel) else g, variables, np.eye(len(variables))
    given: tuple[Symbol, ...] = ()
    if known.rows:
        given, hidden, inner = _adapted(inner, variables, known)
        rows = as_array(orthonormal(complement(known)))
    if isinstance(law, Channel):
        if not known.rows:
            found = relevant_directions(inner, hidden)
            inner, hidden, rows = found.inner, tuple(found.names), as_array(found.basis)
        return ThresholdQuestion(inner, Channel(inner, law.y, law.support, None), given, hidden, rows, target)
    inner, law = canonical_label(inner, law, hidden)
    given = tuple(u for u in given if inner.has(u))
    if not given:
        inner = without_silent_sign(inner, hidden) if law.name == "deterministic" else inner
        found = relevant_directions(inner, hidden)
        rows, over = as_array(found.basis) @ rows, tuple(found.names)
        inner, law = canonical_label(found.inner, law, over)
        hidden = tuple(x for x in over if inner.has(x))
        rows = _coordinates(hidden, over) @ rows
    return ThresholdQuestion(inner, law, given, hidden, rows, target)


def _alone(g: Expr, law: NamedChannel | Channel, variables: Sequence[Symbol]) -> Value:
    """The threshold of a label with nothing known."""
    return stage_value(g, law, tuple(variables), matrix([], len(variables)))


def _adapted(g: Expr, variables: tuple[Symbol, ...], known: Matrix) -> tuple[tuple[Symbol, ...], tuple[Symbol, ...], Expr]:
    """(coordinates of U, coordinates of its complement, g over both)."""
    u, v = frame(known), orthonormal(complement(known))
    names = tuple(normal(f"z{i + 1}") for i in range(len(variables)))
    plain = all(sum(1 for x in row if x != 0) == 1 for row in [*u.tolist(), *v.tolist()])
    if plain:
        names = tuple(variables[next(j for j, x in enumerate(row) if x != 0)] for row in [*u.tolist(), *v.tolist()])
    inner = rewritten(g, variables, stack(u, v), names)
    return names[:u.rows], names[u.rows:], inner


def _coordinates(names: Sequence[Symbol], over: Sequence[Symbol]) -> Any:
    """The rows of some coordinates over all of them."""
    return np.array([[float(a == b) for b in over] for a in names])


# -- what is known enters the label ------------------------------------------------------------------------------------
def _two_terms(q: ThresholdQuestion) -> Value | None:
    """f(z_1) + f(z_2) given z_1 + z_2, where it determines |z_1 - z_2|."""
    g, law, variables, known = q.target
    return Value(mpf(1) / 2, S.Half, mpf(0)) if law.name == "deterministic" and injective_pair(g, variables, known) else None


def _committee(q: ThresholdQuestion) -> Value | None:
    g, law, variables, known = q.target
    # Over one hidden direction what follows may be exact.
    if not isinstance(law, NamedChannel) or law.name != "deterministic" or len(variables) - known.rows < 2:
        return None
    found = committee(g, variables, known)
    return None if found is None else threshold_from_number(*found)


def _known_factor(q: ThresholdQuestion) -> Value | None:
    """g = f(u) w(v), f zero with some probability: 1/alpha_c = P(f != 0)/alpha_c(w)."""
    factor, rest = q.g.as_independent(*q.hidden, as_Add=False)
    if not q.given or q.law.name not in ("deterministic", "multiplicative") or rest.free_symbols - set(q.hidden):
        return None
    live = _chance(factor) if isinstance(q.g, Mul) and factor.free_symbols else None
    if live is None:
        return None
    inner = _alone(rest, q.law, q.hidden)
    chance = evaluate(live, 25)
    exact = None if inner.exact is None else compact(inner.exact / live)
    return Value(inner.alpha / chance, exact, inner.error / chance, inner.notes, method=f"known factor; {inner.method}")


def _chance(f: Expr) -> Expr | None:
    """P(f != 0) of a product of functions of one variable each, independent of each other; None for anything else.

    Examples
    --------
    >>> from sympy import Max
    >>> from hermitex.symbols import z1, z2
    >>> _chance(Max(z1, 0)*floor(z2)), _chance(z1 - Max(z2, 0)) is None
    ((2 - erf(sqrt(2)/2))/4, True)
    """
    # floor(a) is zero on 0 < a < 1 only, and other steps of it have no end
    shown = Mul(*(1 - Heaviside(e.args[0])*Heaviside(1 - e.args[0]) if isinstance(e, floor) else e for e in Mul.make_args(f)))
    found: Expr = S.One
    for factors in connected(Mul.make_args(shown), sorted(f.free_symbols, key=str)):
        part = Mul(*factors)
        if nonzero_almost_everywhere(part):
            continue
        if len(part.free_symbols) != 1:
            return None
        branches = unless_refused(partial(pieces, part, *part.free_symbols))
        if branches is None:
            return None
        found *= indicator_moment([p for p in branches if p.expr != 0], 0)
    return compact(found)


def _drawn(q: ThresholdQuestion) -> Value | None:
    known = q.target[3].rows
    return _of_couplings(later_stage(q.law, q.given, q.hidden), q) if isinstance(q.law, Channel) and known else None


def _average(q: ThresholdQuestion) -> Value | None:
    if not q.given or not isinstance(q.law, NamedChannel):
        return None
    found = averaged_over(q.g, q.law, q.given, q.hidden, _turns(q))
    how = f"average over what is known{f': {POINTS}' if found.method == POINTS else ''}"
    return _of_couplings(found, q)._replace(method=how)


def _turns(q: ThresholdQuestion) -> list[Any]:
    """The symmetries of the label over the hidden coordinates, those of the target that leave what is known where it is."""
    g, _, variables, known = q.target
    fixing = stabiliser(without_sign(symmetries(g, variables)), known)
    return [q.rows @ as_array(s.matrix) @ q.rows.T for s in fixing]


def _of_couplings(found: LabelCouplings, q: ThresholdQuestion) -> Value:
    inverse, _ = largest(found.couplings, list(range(len(q.hidden))))
    return threshold_from_number(inverse, len(q.hidden) * found.error)


# -- nothing known enters it -------------------------------------------------------------------------------------------
def _one_variable(q: ThresholdQuestion) -> Value | None:
    """By level sets, which have more digits than a law, and exactly where there is a formula."""
    return one_variable(q.g, q.law, q.hidden[0]) if not q.given and len(q.hidden) == 1 else None


def _sphere(q: ThresholdQuestion) -> Value | None:
    """g = c sum z_i^2 over all names: E[z_i^2 - 1 | rho] = rho/r - 1, whose second moment is 2/r."""
    poly = q.g.as_poly(*q.hidden) if q.plain and q.g.is_polynomial(*q.hidden) else None
    if poly is None or poly.total_degree() != 2:
        return None
    terms = [(m, c) for m, c in poly.terms() if any(m)]
    if len(terms) != len(q.hidden) or any(max(m) != 2 for m, _ in terms) or len({c for _, c in terms}) > 1:
        return None
    return Value(mpf(len(terms)) / 2, S(len(terms)) / 2, mpf(0))


def _independent(q: ThresholdQuestion) -> Value | None:
    """The smaller of the thresholds of two independent labels; the first takes two values.

    E[G] = 0 and the blocks are independent: F(M) = F_A(M_A) + F_B(M_B), and M_AB is sent to E[G_A] M_AB E[G_B] = 0.
    """
    pair = independent_labels(q.g, q.hidden) if q.plain else None
    if pair is None:
        return None
    names, law = q.hidden, q.law
    atoms = exact_atoms(pair[0], [x for x in names if pair[0].has(x)])
    silent = atoms is not None and not exact_couplings(atoms)
    parts = [[x for x in names if part.has(x)] for part in pair]
    if silent:
        value = _alone(pair[1], law, parts[1])
        return value if value.remaining is None else value._replace(remaining=value.remaining.over(_coordinates(parts[1], names)))
    found = sorted(((_alone(part, law, mine), mine) for part, mine in zip(pair, parts, strict=True)),
                   key=lambda v: v[0].alpha)
    (one, mine), (two, others) = found
    if one.alpha < two.alpha and one.remaining is None and not set(mine) & set(others):
        later = LaterDirections(_coordinates(mine, names), _coordinates(others, names), two.alpha, two.exact, two.error)
        return one._replace(remaining=later)
    return one._replace(remaining=None)


def _atoms(q: ThresholdQuestion) -> Value | None:
    """Exactly where the largest eigenvalue has a closed form, else to 25 digits; None if it is zero."""
    atoms = None if q.given else _finitely_many(q.g, q.law, q.hidden)
    if atoms is None:
        return None
    spots = list(range(len(q.hidden)))
    found = exact_largest_of_two(atoms, spots)
    couplings = exact_couplings(atoms) if found is None else {}
    if found is None:
        found = exact_largest(couplings, spots)
    every = indices(len(spots))
    nu = np.array([[float(evaluate(moments.get(a, S.Zero), 20)) for _, moments in atoms] for a in every])
    later = _remaining(of_masses(every, nu), np.eye(len(spots))) if len(spots) > 1 else None
    if found is None:
        number = 1 / largest_of_exact(couplings, spots)
        return Value(number, None, number * mpf(10) ** -25, (), later)
    if found == 0:
        return None
    alpha = compact(1 / found)
    number, exact = evaluate(alpha, 25), None if alpha.has(Expectation) else alpha
    return Value(number, exact, mpf(0) if exact is not None else number * mpf(10) ** -20, (), later)


def _finitely_many(g: Expr, law: NamedChannel | Channel, names: Sequence[Symbol]) -> Atoms | None:
    """The exact moments of the labels, where these are finitely many."""
    if law.name in ("random_sign", *_NOISES):
        return None
    return exact_atoms(g, names) if isinstance(law, NamedChannel) and law.name == "deterministic" else exact_mixture(g, law, names)


def _law(q: ThresholdQuestion) -> Value | None:
    """Numerically, from the couplings of the law of the label."""
    if q.given:
        return None
    second = noisy_second(q.g, q.law, q.hidden)
    found = _of_couplings(second, q)
    relative = len(q.hidden) * second.error * float(found.alpha)
    return found._replace(remaining=_remaining(second.couplings, np.eye(len(q.hidden)), relative), method=second.method)


def _remaining(couplings: Any, rows: Any, relative: float = 0.0) -> LaterDirections | None:
    """Where the top eigenvectors M do not charge every direction: the others begin to be found later.

    relative : the error of the largest eigenvalue, in units of it
    """
    told_apart = 0.01  # relative error of an eigenvalue that may hide another one; chosen by trial
    if relative > told_apart:
        return None
    spots = list(range(len(rows)))
    first, rest, inverse = supported_directions(couplings, spots, max(1e-9, 10 * relative))
    if not len(rest):
        return None
    error = relative * largest(couplings, spots)[0]
    if not inverse > max(1e-12, 2 * error):
        return LaterDirections(first @ rows, rest @ rows, None)
    return LaterDirections(first @ rows, rest @ rows, mpf(1) / mpf(inverse), None, mpf(error) / mpf(inverse)**2)


MECHANISMS = (
    Mechanism("two terms that tell their difference", "exact", "0.1 s", _two_terms),
    Mechanism("committee given its mean", "12 digits", "0.5 s", _committee),
    Mechanism("sphere", "exact", "0.1 s", _sphere),
    Mechanism("independent labels", "as their parts", "as their parts", _independent),
    Mechanism("finitely many labels", "exact, or 25 digits", "0.3 s", _atoms),
    Mechanism("one variable", "exact, or 12 digits", "0.1 s", _one_variable),
    Mechanism("known factor", "as what it multiplies", "0.1 s more", _known_factor),
    Mechanism("channel given what is known", "6 digits", "5 s", _drawn),
    Mechanism("average over what is known", "10 digits, or few by points", "2 s", _average),
    Mechanism("law of the label", "10 digits, or few by points", "1 s", _law),
)
