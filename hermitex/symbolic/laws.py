"""E f(x) over the random variables of sympy.stats, brought down to averages over standard normals and finite sums.

    finite        E f(x) = sum_i p_i f(v_i)                     Rademacher, Bernoulli, Binomial, Die, FiniteRV, ...
    continuous    E f(x) = E_z f(F^-1(Phi(z)))                  Exponential, Uniform, Laplace, Logistic, ...; Normal: mu + s z
                  E f(x) = E_z w(z) f(T(z))                     Gamma, Beta, StudentT, ChiSquared, ...: `weighted_laws`
    countable     E f(n) = sum_n p_n f(n), as many terms as the digits need           Poisson, Geometric, NegativeBinomial
    any other     from its density, or from its probabilities: `densities`          ContinuousRV, WignerSemicircle, DiscreteRV, ...
    polynomials   E x^n by the moments of the law               where they have a formula, of Gamma and Poisson too
    powers        E x^s log(x)^j exp(-c x)                      of positive laws, s not whole: `mellin`

Parameters of a law enter the probabilities, or what is averaged; so they are differentiated like everything else.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sympy import (
    Abs,
    Add,
    Basic,
    Dummy,
    Expr,
    Indexed,
    Interval,
    Mul,
    Poly,
    PolynomialError,
    Rational,
    S,
    Symbol,
    cot,
    erfc,
    exp,
    factorial,
    gamma,
    log,
    pi,
    rf,
    sin,
    sqrt,
)
from sympy.functions.combinatorial.numbers import stirling

from hermitex.errors import BadInput
from hermitex.symbolic import densities, mellin
from hermitex.symbolic.formula_size import MANY
from hermitex.symbolic.indexed_sums import ArraySum, Index
from hermitex.symbolic.law_constraints import Condition, conditions
from hermitex.symbolic.special import LogFactorial
from hermitex.symbolic.weighted_laws import LARGEST, NONE_ABOVE, SHAPES, WEIGHTED, below, moment_of_student, survives

Term = tuple[Expr, Expr, tuple[Symbol, ...]]  # a probability, what is averaged, and the normals that came in

#: law -> x as a function of a standard normal; the arguments are those of the law in sympy.stats
_QUANTILES: dict[str, Callable[..., Expr]] = {
    "NormalDistribution": lambda z, mu, s: mu + s*z,
    "LogNormalDistribution": lambda z, mu, s: exp(mu + s*z),
    "UniformDistribution": lambda z, a, b: a + (b - a)*below(z),
    "ExponentialDistribution": lambda z, rate: survives(z)/rate,
    "LogisticDistribution": lambda z, mu, s: mu + s*(survives(z) - survives(-z)),
    "WeibullDistribution": lambda z, a, b: a*survives(z)**(1/b),
    "ParetoDistribution": lambda z, least, a: least*exp(survives(z)/a),
    "RayleighDistribution": lambda z, s: s*sqrt(2*survives(z)),
    "FrechetDistribution": lambda z, a, s, m: m + s*survives(-z)**(-1/a),
    "ArcsinDistribution": lambda z, a, b: a + (b - a)*sin(pi*below(z)/2)**2,
}
#: law about its centre -> the size of its deviation in units of its width
_SIGNED: dict[str, Callable[..., Expr]] = {
    "LaplaceDistribution": survives,
    "CauchyDistribution": lambda z: cot(pi*erfc(z/sqrt(2))/4),
}
#: law -> E x^n
_MOMENTS: dict[str, Callable[..., Expr]] = {
    "UniformDistribution": lambda n, a, b: Add(*(a**i*b**(n - i) for i in range(n + 1)))/(n + 1),
    "ExponentialDistribution": lambda n, rate: factorial(n)/rate**n,
    "GammaDistribution": lambda n, k, t: t**n*rf(k, n),
    "ChiSquaredDistribution": lambda n, k: 2**n*rf(k/2, n),
    "BetaDistribution": lambda n, a, b: rf(a, n)/rf(a + b, n),
    "WeibullDistribution": lambda n, a, b: a**n*gamma(1 + S(n)/b),
    "RayleighDistribution": lambda n, s: s**n*2**Rational(n, 2)*gamma(1 + Rational(n, 2)),
    "ChiDistribution": lambda n, k: 2**Rational(n, 2)*gamma((k + n)/2)/gamma(k/2),
    "GammaInverseDistribution": lambda n, a, b: b**n/Mul(*(a - i - 1 for i in range(n))),
    "StudentTDistribution": moment_of_student,
    "PoissonDistribution": lambda n, c: Add(*(stirling(n, i)*c**i for i in range(n + 1))),
    "GeometricDistribution": lambda n, p: Add(*(stirling(n, i)*factorial(i)*(1 - p)**max(i - 1, 0)/p**i for i in range(n + 1))),
}


#: countable law -> (the probability of n = 0, 1, 2, ..., and the value there); at p = 1 (1 - p)**0 is 1, and 0 log 0 has no value
_COUNTED: dict[str, Callable[..., tuple[Expr, Expr]]] = {
    "PoissonDistribution": lambda n, c: (exp(n*log(c) - c - LogFactorial(n)), n),
    "GeometricDistribution": lambda n, p: (p*(1 - p)**n, n + 1),
    "NegativeBinomialDistribution": lambda n, r, p: (
        exp(LogFactorial(n + r - 1) - LogFactorial(n) - LogFactorial(r - 1) + r*log(1 - p) + n*log(p)), n),
}


def random_variables(*exprs: Any) -> list[Any]:
    """The random variables of sympy.stats in expressions, those in the parameters of their laws too, in a fixed order."""
    stats = sys.modules.get("sympy.stats.rv")  # nobody has one who has not imported it
    if stats is None:
        return []
    found: dict[Any, None] = {}
    left = [x for e in exprs for x in e.atoms(stats.RandomSymbol)]
    while left:
        x = left.pop()
        if x not in found:
            found[x] = None
            left += [y for a in x.pspace.args for y in a.atoms(stats.RandomSymbol) if y != x]
    return sorted(found, key=str)


def joint_normals(*exprs: Any) -> tuple[dict[Expr, Expr], dict[tuple[Symbol, Symbol], Expr]]:
    """Components Y[i] of the multivariate normals of sympy.stats, each as its mean and a normal symbol, and their covariances."""
    stats = sys.modules.get("sympy.stats.joint_rv")
    parts = [] if stats is None else sorted({x for e in exprs if isinstance(e, Basic) for x in e.atoms(Indexed)
                                             if isinstance(x.args[0], stats.JointRandomSymbol) and x.args[1].is_Integer}, key=str)
    symbols: dict[Expr, Symbol] = {}
    means, covariances = {}, {}
    for x in parts:
        law, i = x.args[0].pspace.distribution, int(x.args[1])
        if type(law).__name__ != "MultivariateNormalDistribution":
            continue
        symbols[x] = Symbol(_unused(f"{x.args[0]}{i}", Add(*(e for e in exprs if isinstance(e, Expr)))), real=True)
        means[x] = law.mu[i] + symbols[x]
        for y in parts:
            if y in symbols and y.args[0] == x.args[0]:
                covariances[symbols[y], symbols[x]] = law.sigma[int(y.args[1]), i]
    return means, covariances


def is_random(x: Any) -> bool:
    """Is it a random variable of sympy.stats?"""
    stats = sys.modules.get("sympy.stats.rv")
    return stats is not None and isinstance(x, stats.RandomSymbol)


def checked(x: Any) -> Any:
    """A random variable, if its probabilities are some."""
    _values(x, _law(x))
    return x


def required(variables: Iterable[Any]) -> list[Condition]:
    """What the parameters of the laws of random variables must satisfy, in letters."""
    return [c for x in variables for c in conditions(_law(x), _values(x, _law(x)), densities.needed)]


def values(x: Any) -> Sequence[tuple[Expr, Expr]] | None:
    """(value, probability) of a random variable of finitely many values, None of another one."""
    return _values(x, _law(x))


def refuse_loose(expr: Any) -> None:
    """Raises BadInput if a random variable is outside of every expectation: it has no value."""
    if found := random_variables(expr):
        raise BadInput(f"the random variable {found[0]} occurs outside of every expectation; write hx.E(..., {found[0]})")


def averaged(body: Expr, variables: Iterable[Any]) -> list[Term]:
    """The average of `body` over random variables as a sum of probability times Gaussian average.

    Raises
    ------
    BadInput : a law whose mass is not known to be 1, or variables that depend on each other.

    Examples
    --------
    >>> from sympy.stats import Rademacher, Normal
    >>> x = Rademacher("x")
    >>> averaged(exp(x), [x])
    [(1/2, exp(-1), ()), (1/2, E, ())]
    >>> averaged(exp(Normal("y", 1, 2)), [Normal("y", 1, 2)])
    [(1, exp(2*_y + 1), (_y,))]
    """
    variables = list(variables)
    _told_apart(body, variables)
    terms: list[Term] = [(S.One, body, ())]
    for x in _ordered(variables):
        terms = [(p*q, b, (*normals, *more)) for p, e, normals in terms for q, b, more in _over(e, x)]
        if len(terms) > MANY:
            raise BadInput(f"E: the average over {x} has more than {MANY} terms; average in steps, or use a continuous law")
    return terms


def _told_apart(body: Expr, variables: list[Any]) -> None:
    """Raises BadInput where two things have one letter: two laws, or a law and a symbol."""
    named: dict[str, Any] = {}
    for x in variables:
        if named.setdefault(x.name, x) != x:
            raise BadInput(f"E: {x.name} is the name of two laws, {_law(named[x.name])} and {_law(x)}; give one another name")
    rest = body.xreplace({x: Dummy() for x in random_variables(body)})
    for s in rest.atoms(Symbol):
        if s.name in named and not isinstance(s, Dummy):
            raise BadInput(f"E: {s.name} is the name of a law, {_law(named[s.name])}, and of a symbol; give one another name")


def _ordered(variables: list[Any]) -> list[Any]:
    """Those whose laws others enter come first: then only numbers are left in the others."""
    inner = {x: {y for a in x.pspace.args for y in random_variables(a)} - {x} for x in variables}
    done: list[Any] = []
    while left := [x for x in variables if x not in done]:
        free = [x for x in left if not any(x in inner[y] for y in left if y != x)]
        if not free:
            raise BadInput(f"E: the laws of {', '.join(map(str, left))} refer to each other")
        done += free
    return done


def _over(e: Expr, x: Any) -> list[Term]:
    law = _law(x)
    if x not in e.atoms(type(x)):
        return [(S.One, e, ())]
    values = _values(x, law)
    if values is not None:
        return [(p, e.xreplace({x: v}), ()) for v, p in values]
    e = e.xreplace({Abs(x): x}) if law.set.inf.is_nonnegative else e
    moments = _by_moments(e, x, law)
    if moments is None:
        moments = mellin.average(e, x, law)
    if moments is not None:
        return [(S.One, moments, ())]
    z = Dummy(x.name, real=True)
    name = type(law).__name__
    if name in _SIGNED:  # a fair sign times a size: nothing has a kink at 0, and no tail is 1 less a small number
        at, width = law.args
        return [(Rational(1, 2), e.xreplace({x: at + s*width*_SIGNED[name](z)}), (z,)) for s in (1, -1)]
    if name == "GumbelDistribution":
        b, mu, least = law.args
        value = mu + b*log(survives(z)) if least == True else mu - b*log(survives(-z))  # noqa: E712 - SymPy's true
        return [(S.One, e.xreplace({x: value}), (z,))]
    if name in _COUNTED or (name not in WEIGHTED and name not in _QUANTILES and not isinstance(law.set, Interval)):
        n = Index(_unused(x.name, e), endless=True)
        mass, value = _COUNTED[name](n, *law.args) if name in _COUNTED else densities.by_mass(law, n)
        # The probabilities are summed too: a sum over a part of them is not an average.
        return [(S.One, ArraySum(mass*e.xreplace({x: value}), n)/ArraySum(mass, n), ())]
    if name in WEIGHTED:
        if any(a.is_number and a > LARGEST for a in law.args[SHAPES.get(name, slice(1))]):
            raise BadInput(f"E: the law {law} of {x} is averaged for shapes up to {LARGEST}; beyond, write a normal law")
        value, weight = WEIGHTED[name](z, *law.args)
        return [(S.One, weight*e.xreplace({x: value}), (z,))]
    if name in _QUANTILES:
        return [(S.One, e.xreplace({x: _QUANTILES[name](z, *law.args)}), (z,))]
    return [(S.One, weight*e.xreplace({x: value}), (z,)) for value, weight in densities.by_density(law, z)]


def _unused(name: str, e: Expr) -> str:
    """A name like that of the variable that no symbol of the expression has."""
    taken = {str(s) for s in e.atoms(Symbol)}
    while name in taken:
        name += "_"
    return name


def _law(x: Any) -> Any:
    """Its distribution; that of a variable whose parameters are random too is the one given them."""
    space = x.pspace
    if type(space).__name__ not in ("SingleFinitePSpace", "SingleContinuousPSpace", "SingleDiscretePSpace", "CompoundPSpace"):
        raise BadInput(f"E: {x} is part of a joint law ({type(space).__name__}); only normals are correlated, by cov=")
    law = space.distribution
    return law.args[0] if type(law).__name__ == "CompoundDistribution" else law


def _values(x: Any, law: Any) -> Sequence[tuple[Expr, Expr]] | None:
    """(value, probability) of a finite law, None of another one."""
    from sympy.stats.frv_types import SingleFiniteDistribution

    if not isinstance(law, SingleFiniteDistribution):
        return None
    try:
        table = dict(law.dict)
    except (TypeError, ValueError, AttributeError, NotImplementedError):
        raise BadInput(f"E: the values of {x} are not known: its law {law} takes numbers where it says how many they are") from None
    if any(not isinstance(v, Expr) for v in map(S, table)):
        raise BadInput(f"E: {x} has values that are not numbers")
    total = Add(*map(S, table.values()))
    if (total.is_number and not _one(total)) or any(S(p).is_negative for p in table.values()):
        raise BadInput(f"E: the probabilities of {x} are not positive numbers whose sum is 1")
    found = [(S(v), S(p)) for v, p in table.items() if p != 0]
    if len(found) > MANY:
        raise BadInput(f"E: {x} has {len(found)} values; at most {MANY} are summed over")
    return sorted(found, key=lambda pair: str(pair[0])) if any(v.free_symbols for v, _ in found) else sorted(found)


def _one(total: Expr) -> bool:
    return total == 1 or abs(total.evalf(20) - 1) < Rational(1, 10**12)


def _by_moments(e: Expr, x: Any, law: Any) -> Expr | None:
    """A polynomial of x by the moments of its law, where these have a formula."""
    name = type(law).__name__
    moment, most = _MOMENTS.get(name), NONE_ABOVE.get(name, lambda *_: None)(*law.args)
    t = Dummy("t", real=True)
    body = e.xreplace({x: t})
    if (moment is None and most is None) or not body.is_polynomial(t):
        return None
    try:
        poly = Poly(body, t)
    except PolynomialError:
        return None
    if most is not None and poly.degree() > 0 and (poly.degree() >= most) == True:  # noqa: E712 - SymPy's true
        raise BadInput(f"E: {e} has no average: {law} has no moment of order {most} and above")
    highest = 30  # moment that is written out
    if moment is None or poly.degree() > highest or (most is not None and not (most - poly.degree()).is_positive):
        return None
    return Add(*(c*(moment(n, *law.args) if n else 1) for (n,), c in poly.terms()))
