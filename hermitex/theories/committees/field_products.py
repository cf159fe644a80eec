"""E[f_1(u_1) ... f_n(u_n)], u ~ N(0, C): the averages of a committee, in closed form where the engine has one, else in numbers.

The formula is found once for every set of functions, over letters C11, C12, ... for the entries of C, and compiled for stacks of C.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from sympy import (
    Abs,
    Add,
    DiracDelta,
    Expr,
    Heaviside,
    Max,
    Min,
    Mul,
    Piecewise,
    Pow,
    S,
    Symbol,
    cos,
    erf,
    erfc,
    factor,
    oo,
    sign,
    sin,
    together,
)

from hermitex.errors import BadInput, BudgetExceeded, HermitexError
from hermitex.kernels.arrays import lambdify
from hermitex.symbolic.budget import checkpoint, work
from hermitex.symbolic.engine.node_integrals import answer
from hermitex.symbolic.gaussian import E, Expectation
from hermitex.symbolic.integrals import closed_form
from hermitex.symbolic.parity import parity
from hermitex.symbolic.pieces import breakpoints, pieces
from hermitex.symbolic.weak import weak_derivative
from hermitex.symbols import z
from hermitex.theories.committees.conditioned_quadrature import Factor, average

Array = np.ndarray
# of a rule over one field, by which an average without a closed form is taken; `Rates.enough` looks whether more are needed
NODES = 30
_KINKED = (Max, Min, Abs, Heaviside, sign, Piecewise)
MEAN, SPREAD = Symbol("m", real=True), Symbol("s", positive=True)
FIELDS = tuple(Symbol(f"z{i}", real=True) for i in range(1, 5))  # four fields: a product of committee functions has no more


def entry(i: int, j: int) -> Symbol:
    """C_ij, counted from 1; a variance is positive."""
    i, j = min(i, j), max(i, j)
    return Symbol(f"C{i}{j}", positive=True) if i == j else Symbol(f"C{i}{j}", real=True)


@dataclass(frozen=True)
class Product:
    """The average of a product of functions of z, one for each of n correlated normals."""

    functions: tuple[Expr, ...]

    @property
    def letters(self) -> tuple[Symbol, ...]:
        """C11, C12, ..., row by row."""
        n = len(self.functions)
        return tuple(entry(i, j) for i in range(1, n + 1) for j in range(i, n + 1))

    @property
    def node(self) -> Expr:
        """The expectation as it is defined."""
        return self.over(lambda i, j: entry(i + 1, j + 1))

    def over(self, covariance: Callable[[int, int], Any]) -> Expr:
        """The node at a covariance given by its entries (counted from 0)."""
        fields = FIELDS[:len(self.functions)]
        body = Mul(*(f.xreplace({z: u}) for f, u in zip(self.functions, fields, strict=True)))
        cov = {(fields[i], fields[j]): covariance(i, j) for i in range(len(fields)) for j in range(i, len(fields))}
        return E(body, *fields, cov=cov)

    @cached_property
    def closed(self) -> Expr | None:
        """The closed form in the letters, or None."""
        if any(f == 0 for f in self.functions):
            return S.Zero
        if not within_reach(self.functions) or (len(self.functions) > 1 and not all(map(has_single_closed_form, self.functions))):
            return None
        found = search_closed_form(self.node)
        return None if found is None or found.has(DiracDelta) else clean_radicands(found)

    def derivative(self, i: int, j: int) -> Expr | None:
        """d/dC_ij of the closed form, i <= j."""
        return None if self.closed is None else clean_radicands(self.closed.diff(entry(i, j)))

    @cached_property
    def formula(self) -> Expr | None:
        """The closed form, perhaps over averages that are simpler than the product: signs of four fields, besides ramps."""
        if self.closed is not None or not all(map(is_ramp, self.functions)):
            return self.closed
        found = answer(self.node)  # type: ignore[arg-type]
        return clean_radicands(Add(found.value, *(node for node, _ in found.rest)))

    @cached_property
    def _function(self) -> Callable[..., Array] | None:
        return None if self.closed is None else compiled(self.letters, self.closed)

    @cached_property
    def factors(self) -> tuple[Factor, ...]:
        """What the quadrature works with."""
        return tuple(map(factor_of, self.functions))

    def __call__(self, C: Array, nodes: int = NODES) -> Array:
        """At a stack of covariances (B, n, n)."""
        return with_quadrature(self._function, self.factors, C, nodes)


def with_quadrature(formula: Callable[[Array], Array] | None, factors: Sequence[Factor], C: Array, nodes: int) -> Array:
    """A closed form where it has a value: at a singular C the root of a determinant may be one of a negative rounding."""
    if formula is None:
        return average(factors, C, nodes)
    value = formula(C)
    if not np.isfinite(value).all():
        bad, value = ~np.isfinite(value), np.array(value)
        value[bad] = average(factors, C[bad], nodes)
    return value


@lru_cache(maxsize=512)
def product(*functions: Expr) -> Product:
    """The average of a product, found once.

    >>> from sympy import erf, sqrt
    >>> product(erf(z/sqrt(2)), erf(z/sqrt(2))).closed
    2*atan(C12/sqrt(C11*C22 + C11 - C12**2 + C22 + 1))/pi
    """
    return Product(functions)


def within_reach(functions: Sequence[Expr]) -> bool:
    """Is the search for a closed form worth while, or long and in vain?

    Polynomials, with kinks and jumps at zero only, are integrated by parts. Else a kink, a jump and every erf is a probability of
    one normal more below a bound. Closed forms are known for two of them, with polynomials, and for three of bounded functions;
    of three fields and more for few terms only, and for none with a wave times such a bound, which makes the bound complex.
    """
    if all(map(is_ramp, functions)):
        return True
    bounds = sum(map(switches, functions))
    if bounds > 3 or (bounds == 3 and any(map(grows_polynomially, functions))):
        return False
    terms = prod(len(Add.make_args(f.expand())) for f in functions)
    waves = any(f.has(sin, cos) for f in functions)
    return len(functions) < 3 or (terms <= 2 and sum(f.has(*_KINKED) for f in functions) <= 2 and not (bounds and waves))


@lru_cache(maxsize=256)
def is_ramp(f: Expr) -> bool:
    """A polynomial in z on either side of 0: its averages are those of polynomials and signs.

    >>> from sympy import Max, exp
    >>> is_ramp(z**2*Max(0, z)), is_ramp(Max(1, z)), is_ramp(exp(z)), is_ramp(Piecewise((z, z > 0), (exp(z) - 1, True)))
    (True, False, False, False)
    """
    kinked = f.atoms(*_KINKED)
    ends = (a for e in kinked for a in e.args[:1 if isinstance(e, Heaviside) else None])
    if f.has(Piecewise) or not all(a == a.coeff(z)*z for a in ends):
        return False
    return bool(f.xreplace({e: z for e in kinked}).is_polynomial(z))


@lru_cache(maxsize=256)
def switches(f: Expr) -> int:
    """How many kinks or jumps at once (those of one field count as one) and error functions a term of f holds at most.

    >>> from sympy import Heaviside, erf
    >>> switches(Heaviside(z)*(1 + erf(z))**2), switches(z**3)
    (3, 0)
    """
    def of(term: Expr) -> int:
        powers = (factor.as_base_exp() for factor in Mul.make_args(term))
        return int(term.has(*_KINKED)) + sum(int(p) for base, p in powers if base.func in (erf, erfc) and p.is_Integer and p > 0)

    return max(of(term) for term in Add.make_args(f.expand()))


@lru_cache(maxsize=256)
def grows_polynomially(f: Expr) -> bool:
    """Is there a polynomial in some term of f, or a ramp?"""
    return any(f.has(k) for k in (Max, Min, Abs)) or any(
        factor.as_base_exp()[0] == z for term in Add.make_args(f.expand()) for factor in Mul.make_args(term))


@lru_cache(maxsize=256)
def has_single_closed_form(f: Expr) -> bool:
    """Has E f(m + s z) a closed form? Without it no average of a product with f has one."""
    return f.has(DiracDelta) or smoothed(f) is not None


@lru_cache(maxsize=256)
def smoothed(f: Expr) -> Expr | None:
    """E f(m + s z) as a formula of m and s, or None."""
    return search_closed_form(E(f.xreplace({z: MEAN + SPREAD*z}), z))


def search_closed_form(node: Expr) -> Expr | None:
    """The closed form, if it is found within a number of steps, the same on every machine."""
    most_checks = 3000  # in the search for one closed form; a successful search takes 1,500 at most
    try:
        with work(most_checks):
            found = closed_form(node)
    except HermitexError:
        checkpoint()  # the budget around it is over, which is not an answer
        return None
    return None if found.has(Expectation) else found


def compiled(letters: Sequence[Symbol], formula: Expr) -> Callable[[Array], Array]:
    """A formula of C11, C12, ... as a function of a stack of matrices."""
    raw = lambdify(list(letters), formula, modules=["scipy", "numpy"], cse=True)
    places = [(int(s.name[1]) - 1, int(s.name[2]) - 1) for s in letters]

    def value(C: Array) -> Array:
        with np.errstate(all="ignore"):
            found = np.asarray(raw(*(C[:, i, j] for i, j in places)), dtype=float)
        return found if found.shape else np.full(len(C), found)

    return value


def clean_radicands(e: Expr) -> Expr:
    """Radicands as one fraction: sqrt(c^2 + c^2/k) is |c| sqrt(1 + 1/k), and c |c|/|c| is c."""
    def radical(p: Expr) -> bool:
        return bool(p.is_Pow and p.exp.is_Rational and p.exp.q == 2 and p.base.is_Add and p.base.count_ops() < 80)

    return e.replace(radical, lambda p: Pow(factor(together(p.base)), p.exp))


@lru_cache(maxsize=256)
def factor_of(f: Expr) -> Factor:
    """A function of z as the quadrature needs it: its pieces in NumPy, its deltas, its parity."""
    deltas, rest = [], []
    for term in Add.make_args(f.expand(func=False) if f.has(DiracDelta) else f):
        held = term.atoms(DiracDelta)
        if not held:
            rest.append(term)
            continue
        (delta,) = held
        slope = delta.args[0].diff(z)
        if len(held) > 1 or len(delta.args) > 1 or slope.has(z) or slope == 0:
            raise BadInput(f"committee: {term} is not a density that can be averaged in numbers")
        place = -delta.args[0].subs(z, 0)/slope
        deltas.append((float(place), float((term/delta/abs(slope)).subs(z, place))))
    regular = Add(*rest)
    if regular == 0:
        return Factor((), tuple(deltas))
    try:
        ends = [-oo, *breakpoints(regular, z), oo]
    except BudgetExceeded:
        raise
    except HermitexError as error:
        raise BadInput(f"committee: the kinks of {regular} are not known: {error}") from None
    found = []
    for lo, hi in pairwise(ends):
        branch = _branch(regular, lo, hi)
        if branch != 0:
            raw = lambdify(z, branch, modules=["scipy", "numpy"])
            found.append((float(lo), float(hi), _everywhere(raw)))
    if len(ends) == 2:
        return Factor(tuple(found), tuple(deltas), parity(regular, z))
    formula = smoothed(regular)
    return Factor(tuple(found), tuple(deltas), averaged=None if formula is None else _by_formula(formula, found))


def _by_formula(formula: Expr, branches: Sequence[tuple[float, float, Any]]) -> Callable[[Array, Array], Array]:
    """E f(mean + spread x) of arrays by its closed form; f(mean) if the spread is 0."""
    raw = lambdify([MEAN, SPREAD], formula, modules=["scipy", "numpy"], cse=True)

    def value(mean: Array, spread: Array) -> Array:
        found = np.broadcast_to(raw(mean, np.where(spread > 0, spread, 1.0)), mean.shape)
        if np.all(spread > 0):
            return found
        alone = sum(np.where((lo < mean) & (mean <= hi), f(np.clip(mean, lo, hi)), 0.0) for lo, hi, f in branches)
        return np.where(spread > 0, found, alone)

    return value


def _branch(f: Expr, lo: Expr, hi: Expr) -> Expr:
    parts = pieces(f, z, lo, hi)
    return parts[0].expr if len(parts) == 1 else f


def _everywhere(raw: Callable[[Array], Any]) -> Callable[[Array], Array]:
    return lambda u: np.broadcast_to(np.asarray(raw(u), dtype=float), np.shape(u))


def slope(f: Expr) -> Expr:
    """f' as a distribution."""
    return weak_derivative(f, z)
