"""E[f(u, w) He_a(w) | u] = 0 for every u, by exact integration over w: for labels with finitely many values."""

from __future__ import annotations

from collections.abc import Sequence

from sympy import Add, Dummy, Expr, Symbol

from hermitex.errors import BudgetExceeded, HermitexError
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.deadline import attempt
from hermitex.symbolic.gaussian import E, Expectation
from hermitex.symbolic.hermite import He
from hermitex.symbolic.parity import identically_zero
from hermitex.symbolic.subspaces import Matrix

_SECONDS = 1.0


def conditional_zeros(f: Expr, variables: Sequence[Symbol], known: Matrix,
                      indices: Sequence[tuple[int, ...]]) -> dict[tuple[int, ...], str]:
    """{a: why} for the multi-indices with E[f He_a(w) | u] = 0 for every u; `known` is spanned by coordinates.

    Examples
    --------
    >>> from sympy import exp, Rational, sign, sin
    >>> from hermitex.symbols import z1, z2
    >>> f = sign(z1)*(sin(z2) - exp(Rational(3, 2))*sin(2*z2)/2)
    >>> list(conditional_zeros(f, (z1, z2), Matrix([[1, 0]]), [(0, 1), (0, 3)]))
    [(0, 1)]
    """
    if any(sum(1 for x in row if x != 0) > 1 for row in known.tolist()):
        return {}
    fixed = [v for i, v in enumerate(variables) if any(row[i] != 0 for row in known.tolist())]
    free = tuple(v for v in variables if v not in fixed)
    # u as symbols that nothing takes for standard normals.
    u = {v: Dummy(v.name, real=True) for v in fixed}
    found = {}
    for a in indices:
        value = _integrated(f.xreplace(u)*He(a, variables), free)
        if value is not None and identically_zero(Add(value), tuple(u.values())):
            given = f" given {', '.join(map(str, fixed))}" if fixed else ""
            found[a] = f"E[T(Y) He_({','.join(map(str, a))})]{given} = 0: exact integral"
    return found


def _integrated(integrand: Expr, variables: tuple[Symbol, ...]) -> Expr | None:
    """The expectation over some of the variables, if a rule gives it."""
    try:
        with attempt(_SECONDS):
            value = E(integrand, *variables).doit()
    except BudgetExceeded:
        checkpoint("integrating over some of the variables")
        return None
    except HermitexError:
        return None
    return None if value.has(Expectation) else value
