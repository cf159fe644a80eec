"""g(z) = E[Y|z]: what of it is known, its degree where it is a polynomial, and whether E[g^2] is finite.

Information exponent and leap ask for g in L2. In several variables E|g|^2 is decided summand by summand: a product of
independent factors is in L2 iff each factor is, a sum is if all its summands are, and is not if exactly one is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sympy import Abs, Expr, Mul, Pow, S, Symbol, log, sign

from hermitex.errors import BudgetExceeded, Divergent, HermitexError
from hermitex.exponents.channels import Channel, NamedChannel
from hermitex.exponents.labels.label_levels import constant_value, polynomial
from hermitex.exponents.stages import NONE_EXISTS
from hermitex.symbolic.bounds.integrability import integrable
from hermitex.symbolic.bounds.quotients import HOELDER, without_moderate_quotients
from hermitex.symbolic.formula_size import MAX_TERMS, polynomial_size
from hermitex.symbolic.series.polynomials import poly_of
from hermitex.symbolic.summands import apart
from hermitex.symbolic.terms import by_core, connected


def mean_of(g: Expr, law: NamedChannel | Channel) -> tuple[Expr | None, str]:
    """E[Y|z], or None and why it is not known."""
    try:
        return law.mean(g), ""
    except BudgetExceeded:
        raise
    except Divergent as err:
        return None, f"information exponent: none, {' '.join(str(err).split())}"
    except HermitexError as err:
        return None, f"information exponent: E[Y|z] is not known ({' '.join(str(err).split())})"


def degree(mean: Expr | None, variables: Sequence[Symbol]) -> int | None:
    """The total degree of a polynomial E[Y|z], 0 if it is constant, else None.

    >>> from hermitex.symbols import z1, z2
    >>> degree(z1**2*z2 + z1, (z1, z2))
    3
    """
    if mean is None:
        return None
    if len(variables) > 1:
        if not mean.is_polynomial(*variables) or polynomial_size(mean, tuple(variables))[0] > MAX_TERMS:
            return None
        return max(int(poly_of(mean, *variables).total_degree()), 0) if mean != 0 else 0
    poly = polynomial(mean, variables[0])
    if poly is not None:
        return max(poly.degree(), 0) if not poly.is_zero else 0
    return 0 if constant_value(mean, variables[0]) is not None else None


def square_integrable(mean: Expr | None, variables: Sequence[Symbol], notes: list[str]) -> bool | None:
    """Is E[Y|z] in L2? None where it was not decided; what is to be said is appended to `notes`."""
    if mean is None:
        return None
    if len(variables) == 1 and constant_value(mean, variables[0]) is not None:
        return True
    found = in_space(mean, variables, 2)
    if found is False:
        first = in_space(mean, variables, 1)
        where = "in L1 but not in L2" if first else "not in L1" if first is False else "not in L2"
        notes.append(f"information exponent: the target is {where} of the Gaussian, {NONE_EXISTS}")
    elif found is None:
        notes.append("information exponent: undetermined, square integrability of the target was not decided")
    return found


def in_space(g: Expr, variables: Sequence[Symbol], power: Any) -> bool | None:
    """Is E|g|^power finite?

    >>> from sympy import Abs, Rational, exp, sign
    >>> from hermitex.symbols import z1, z2, z3
    >>> in_space(exp(z1*z2/4)*sign(z3) + z2, (z1, z2, z3), 2), in_space(exp(z1*z2) + z3, (z1, z2, z3), 2)
    (True, False)
    >>> in_space(1/z1 - 1/z2, (z1, z2), 1)
    False
    >>> in_space(Abs(z1)**Rational(-1, 2)*z2, (z1, z2), 2), in_space(Abs(z1)**Rational(-1, 2)*z2, (z1, z2), 1)
    (False, True)
    >>> from sympy import log
    >>> in_space(log(z1**2 + z2**2)*z1 - z2**2, (z1, z2), 2), in_space(log(Abs(z1*z2))/z1, (z1, z2), 2)
    (True, False)
    """
    inside = tuple(v for v in variables if v in g.free_symbols)
    if len(inside) < 2:
        return integrable(g, inside[0], power) if inside else True
    unsigned = Mul(*(f for f in Mul.make_args(g) if not isinstance(f, sign)))
    if unsigned != g:
        return in_space(unsigned, variables, power)
    whole = integrable(g, inside, power)
    if whole is not None or g.count_ops() > 300:
        return whole
    from hermitex.exponents.labels.bounded_moments import has_moments  # which needs NumPy

    if has_moments(g, inside):
        return True
    if (less := without_moderate_quotients(g, inside)) != g and in_space(less, variables, power*HOELDER):
        return True
    logs = [f for f in Mul.make_args(g) if _logarithm(f, inside)]
    if logs and in_space(Mul(*(f for f in Mul.make_args(g) if f not in logs)), variables, power*HOELDER):
        return True
    summands = [core*polynomial for core, polynomial in by_core(apart(g, inside), inside).items()]
    if len(summands) == 1:
        return _product(g, inside, power)
    verdicts = [in_space(s, inside, power) for s in summands]
    if False in verdicts and _apart([s.free_symbols & set(inside) for s in summands]):
        return False  # E|a + b|^p is finite for independent a, b only if it is for some value of b
    if None in verdicts:
        return None
    return True if all(verdicts) else False if verdicts.count(False) == 1 else None


def _logarithm(f: Expr, variables: Sequence[Symbol]) -> bool:
    """Is f a power of the logarithm of a polynomial? It has every moment, for |P|^-c is integrable for a small c; so
    it goes with what is integrable to a power above.
    """
    base, n = f.as_base_exp() if isinstance(f, Pow) else (f, S.One)
    if not isinstance(base, log) or not n.is_positive:
        return False
    inner = base.args[0].args[0] if isinstance(base.args[0], Abs) else base.args[0]
    return bool(inner.is_polynomial(*variables) and inner.expand() != 0)


def _apart(sets: Sequence[set]) -> bool:
    return sum(map(len, sets)) == len(set().union(*sets))


def _product(f: Expr, variables: tuple[Symbol, ...], power: Any) -> bool | None:
    """A product factor by factor, where the factors are independent of each other."""
    groups = connected(Mul.make_args(f), variables)
    if len(groups) < 2:
        return None
    verdicts = [in_space(Mul(*factors), variables, power) for factors in groups]
    if False in verdicts:
        return False if None not in verdicts else None
    return None if None in verdicts else True
