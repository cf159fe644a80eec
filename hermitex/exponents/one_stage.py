"""1/alpha_c = lambda_max(E[G_U (x) G_U]) of one stage: G_U(y, u) = E[z z^T - I | y, u] on U^perp, U perfectly known.

What u alone determines is peeled off the target, and what is left is a target in fewer variables, or an average over u.
The routes that may give a closed form come before those that give numbers.
Source: Troiani et al. (2024).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import combinations_with_replacement
from typing import Any

from sympy import Abs, Add, Expr, Max, Min, Mul, Rational, S, Symbol

from hermitex.errors import HermitexError, NoClosedForm
from hermitex.exponents.channels import Channel, Named
from hermitex.exponents.directions.relevant import relevant
from hermitex.exponents.generative import indicator_moment
from hermitex.exponents.labels.equivalent_labels import without_known
from hermitex.exponents.labels.sizes import pair_of_labels, without_silent_sign
from hermitex.exponents.laws.committees import committee, injective_pair
from hermitex.exponents.laws.conditional import averaged_over
from hermitex.exponents.laws.density import Index
from hermitex.exponents.laws.discrete import Atoms, exact_atoms
from hermitex.exponents.laws.exact_eigenvalue import (
    exact_couplings,
    exact_largest,
    exact_largest_of_two,
    largest_of_exact,
)
from hermitex.exponents.laws.later_channel import later_stage
from hermitex.exponents.laws.linearised import charged, largest
from hermitex.exponents.laws.noisy import effective, exact_mixture, noisy_second
from hermitex.exponents.laws.value import Late, Value, as_array, measured
from hermitex.exponents.weak_recovery import weak_recovery
from hermitex.symbolic.arithmetic import mpf
from hermitex.symbolic.engine.tidy import compact
from hermitex.symbolic.pieces import pieces
from hermitex.symbolic.precise import evaluate
from hermitex.symbolic.subspaces import Matrix, complement, frame, orthonormal, stack

_TOLD_APART = 0.01  # eigenvalues with a relative error beyond are not told apart


def stage_value(g: Expr, law: Named | Channel, variables: Sequence[Symbol], known: Matrix) -> Value:
    """alpha_c of the stage at which G_U is the first tensor that is not zero, U the span of the rows `known`.

    Raises
    ------
    NoClosedForm : the label is not integrated. BudgetExceeded.
    """
    variables = tuple(variables)
    if known.rows == 0:
        return _unconditional(g, law, variables)
    if isinstance(law, Channel):
        given, hidden, inner = _adapted(law.p, variables, known)
        return later_stage(Channel(inner, law.y, law.support, None), given, hidden)
    if law.name == "deterministic" and injective_pair(g, variables, known):
        return Value(mpf(1) / 2, S.Half, mpf(0))
    # Over one hidden direction what follows may be exact.
    found = committee(effective(g, law), law, variables, known) if len(variables) - known.rows > 1 else None
    if found is not None:
        return measured(*found)
    given, hidden, inner = _adapted(g, variables, known)
    rest, noise = without_known(effective(inner, law), law, hidden)
    if rest.free_symbols & set(given) and inner.has(Max, Min):
        opened, other = without_known(effective(_without_max(inner), law), law, hidden)
        if not opened.free_symbols & set(given):
            rest, noise = opened, other
    if not rest.free_symbols & set(given):
        value = _unconditional(rest, noise, hidden)
        outside = as_array(orthonormal(complement(known)))
        return value if value.late is None else value._replace(late=value.late.seen_through(outside))
    silent = _silent(rest, noise, hidden)
    if silent is not None:
        return silent
    return averaged_over(rest, noise, given, hidden)


def _without_max(g: Expr) -> Expr:
    """max(a, b) = (a + b)/2 + |a - b|/2: a known sum then comes off."""
    def larger(a: Expr, b: Expr) -> Expr:
        return (((a + b) / 2).expand() + Abs((a - b).expand()) / 2).expand()

    return g.replace(Max, lambda *e: reduce(larger, e)).replace(Min, lambda *e: -reduce(larger, [-x for x in e]))


def _silent(g: Expr, law: Named, hidden: Sequence[Symbol]) -> Value | None:
    """g = f(u) w(v), f zero with some probability: 1/alpha_c = P(f != 0)/alpha_c(w)."""
    factor, rest = g.as_independent(*hidden, as_Add=False)
    if law.name not in ("deterministic", "multiplicative") or not isinstance(g, Mul) or len(factor.free_symbols) != 1:
        return None
    u = next(iter(factor.free_symbols))
    try:
        live = compact(indicator_moment([p for p in pieces(factor, u) if p.expr != 0], 0))
    except HermitexError:
        return None
    inner = _unconditional(rest, law, hidden)
    chance = evaluate(live, 25)
    exact = None if inner.exact is None else compact(inner.exact / live)
    return Value(inner.alpha / chance, exact, inner.error / chance, inner.notes)


def _adapted(g: Expr, variables: tuple[Symbol, ...], known: Matrix) -> tuple[tuple[Symbol, ...], tuple[Symbol, ...], Expr]:
    """(coordinates of U, coordinates of its complement, g over both)."""
    from hermitex.symbolic.invariance import rewritten
    from hermitex.symbols import normal

    u, v = frame(known), orthonormal(complement(known))
    names = tuple(normal(f"z{i + 1}") for i in range(len(variables)))
    plain = all(sum(1 for x in row if x != 0) == 1 for row in [*u.tolist(), *v.tolist()])
    if plain:
        names = tuple(variables[next(j for j, x in enumerate(row) if x != 0)] for row in [*u.tolist(), *v.tolist()])
    inner = rewritten(g, variables, stack(u, v), names)
    return names[:u.rows], names[u.rows:], inner


# -- nothing known -----------------------------------------------------------------------------------------------------
def _unconditional(g: Expr, law: Named | Channel, variables: Sequence[Symbol]) -> Value:
    if isinstance(law, Named):
        g, law = without_known(effective(g, law), law, variables)
        g = without_silent_sign(g, variables) if law.name == "deterministic" else g
    target = law.p if isinstance(law, Channel) else g
    found = relevant(target, variables)
    value = _relevant_only(found.inner, law, found.names)
    return value if value.late is None else value._replace(late=value.late.seen_through(as_array(found.basis)))


def _relevant_only(inner: Expr, law: Named | Channel, over: Sequence[Symbol]) -> Value:
    names, g = tuple(over), inner
    if isinstance(law, Channel):
        law = Channel(inner, law.y, law.support, None)
    else:
        g, law = without_known(inner, law, names)
    names = tuple(x for x in names if (law.p if isinstance(law, Channel) else g).has(x))
    if len(names) == 1:
        return _one_variable(g, law, names[0])
    if isinstance(law, Named) and law.name == "deterministic" and _is_radius(g, names):
        return Value(mpf(len(names)) / 2, S(len(names)) / 2, mpf(0))
    inside = _coordinates(names, over)
    pair = pair_of_labels(g, names) if isinstance(law, Named) and law.name == "deterministic" else None
    if pair is not None and isinstance(law, Named):
        return _of_pair(pair, law, names, over)
    atoms = _finitely_many(g, law, names)
    value = _of_atoms(atoms, names, inside) if atoms is not None else None
    if value is not None:
        return value
    turned, turn = _diagonal(g, names) if isinstance(law, Named) else (g, None)
    second = noisy_second(turned, law, names)
    inverse, _ = largest(second.couplings, list(range(len(names))))
    if not inverse > 0:
        raise NoClosedForm("alpha_c", "the conditional second moments came out as zero", "Give the target in another form")
    error = len(names) * second.error
    value = measured(inverse, error)
    return value._replace(late=_partial(second.couplings, inside if turn is None else turn @ inside, error / inverse))


def _coordinates(names: Sequence[Symbol], over: Sequence[Symbol]) -> Any:
    """The rows of some coordinates over all of them."""
    import numpy as np

    return np.array([[float(a == b) for b in over] for a in names])


def _of_pair(pair: tuple[Expr, Expr], law: Named, names: Sequence[Symbol], over: Sequence[Symbol]) -> Value:
    """The smaller of the thresholds of two independent labels, of which the first takes two values."""
    atoms = exact_atoms(pair[0], [x for x in names if pair[0].has(x)])
    silent = atoms is not None and not exact_couplings(atoms)
    parts = [[x for x in names if part.has(x)] for part in pair]
    if silent:
        value = _unconditional(pair[1], law, parts[1])
        return value if value.late is None else value._replace(late=value.late.seen_through(_coordinates(parts[1], over)))
    found = sorted(((_unconditional(part, law, mine), mine) for part, mine in zip(pair, parts, strict=True)),
                   key=lambda v: v[0].alpha)
    (one, mine), (two, others) = found
    if one.alpha < two.alpha and one.late is None and not set(mine) & set(others):
        late = Late(_coordinates(mine, over), _coordinates(others, over), two.alpha, two.exact, two.error)
        return one._replace(late=late)
    return one._replace(late=None)


def _partial(couplings: Any, rows: Any, relative: float = 0.0) -> Late | None:
    """Where the top eigenvectors M do not charge every direction: the others begin to be found later.

    relative : the error of the largest eigenvalue, in units of it
    """
    if relative > _TOLD_APART:
        return None
    spots = list(range(len(rows)))
    first, late, inverse = charged(couplings, spots, max(1e-9, 10 * relative))
    if not len(late):
        return None
    error = relative * largest(couplings, spots)[0]
    if not inverse > max(1e-12, 2 * error):
        return Late(first @ rows, late @ rows, None)
    return Late(first @ rows, late @ rows, mpf(1) / mpf(inverse), None, mpf(error) / mpf(inverse)**2)


def _one_variable(g: Expr, law: Named | Channel, x: Symbol) -> Value:
    """The same threshold by the one-variable route, which is exact more often and has more digits."""
    found = weak_recovery(g, law, x, 2)
    if found.alpha_c is None:
        raise NoClosedForm("alpha_c", found.notes[0] if found.notes else "not reached", "Write the target in another form")
    return Value(found.alpha_c, found.exact, found.error or mpf(0), found.notes)


def _finitely_many(g: Expr, law: Named | Channel, names: Sequence[Symbol]) -> Atoms | None:
    """The exact moments of the labels, where these are finitely many."""
    if isinstance(law, Named) and law.name in ("random_sign", "gaussian", "multiplicative", "poisson"):
        return None
    return exact_atoms(g, names) if isinstance(law, Named) and law.name == "deterministic" else exact_mixture(g, law, names)


def _of_atoms(atoms: Atoms, names: Sequence[Symbol], rows: Any) -> Value | None:
    """Exactly where the largest eigenvalue has a closed form, else to 25 digits; None if it is zero."""
    spots = list(range(len(names)))
    found = exact_largest_of_two(atoms, spots)
    couplings = exact_couplings(atoms) if found is None else {}
    if found is None:
        found = exact_largest(couplings, spots)
    if found is not None:
        alpha = compact(1 / found) if found != 0 else None
        return None if alpha is None else Value(evaluate(alpha, 25), alpha, mpf(0), (), _partial(_numbers(atoms), rows))
    alpha = 1 / largest_of_exact(couplings, spots)
    return Value(alpha, None, alpha * mpf(10) ** -25, (), _partial(_numbers(atoms), rows))


def _numbers(atoms: Atoms) -> dict[tuple[Index, Index], float]:
    """E[E[He_a|Y] E[He_b|Y]], |a| = |b| = 2, in doubles."""
    found: dict[tuple[Index, Index], float] = {}
    for _, nu in atoms:
        value = {a: float(evaluate(v, 20)) for a, v in nu.items() if len(a) != 1}
        for a, b in combinations_with_replacement(sorted(a for a in value if a), 2):
            found[a, b] = found.get((a, b), 0.0) + value[a] * value[b] / value[()]
    return found


def _is_radius(g: Expr, names: Sequence[Symbol]) -> bool:
    """g = c sum z_i^2 over all names: E[z_i^2 - 1 | rho] = rho/r - 1, whose second moment is 2/r."""
    poly = g.as_poly(*names) if g.is_polynomial(*names) else None
    if poly is None or poly.total_degree() != 2:
        return False
    terms = [(m, c) for m, c in poly.terms() if any(m)]
    return len(terms) == len(names) and all(max(m) == 2 for m, _ in terms) and len({c for _, c in terms}) == 1


def _diagonal(g: Expr, names: Sequence[Symbol]) -> tuple[Expr, Any]:
    """(a quadratic form rotated to a sum of squares, the rows of its axes): alpha_c is invariant; else (g, None)."""
    import numpy as np
    from sympy import eye

    poly = g.as_poly(*names) if g.is_polynomial(*names) else None
    if isinstance(g, Mul) or poly is None or poly.total_degree() != 2 or not poly.is_homogeneous:
        return g, None
    n = len(names)
    q = eye(n).as_mutable()
    for i in range(n):
        for j in range(n):
            m = tuple((k == i) + (k == j) for k in range(n))
            q[i, j] = poly.coeff_monomial(m) / (1 if i == j else 2)
    if all(q[i, j] == 0 for i in range(n) for j in range(n) if i != j):
        return g, None
    axes = np.linalg.eigh(as_array(q))[1].T  # in the order of the eigenvalues, which rise
    return Add(*(c * x**2 for c, x in zip(_eigenvalues(q), names, strict=True))), axes


def _eigenvalues(q: Any) -> list[Expr]:
    """Exactly for two variables; else to 15 digits, equal ones made equal (their squares are one radial block)."""
    if q.rows == 2:
        (a, b), (_, d) = q.tolist()
        root = ((a - d) ** 2 + 4 * b**2) ** S.Half
        return [(a + d - root) / 2, (a + d + root) / 2]
    import numpy as np

    found: list[Expr] = []
    for v in np.linalg.eigvalsh(np.array(q.evalf(20).tolist(), dtype=float)):
        near = next((c for c in found if abs(float(c) - v) < 1e-12 * max(1.0, abs(v))), None)
        found.append(near if near is not None else Rational(round(float(v), 14)).limit_denominator(10**14))
    return found
