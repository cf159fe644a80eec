"""int_a^b f(x) dx = E[1{0 < z < 1} f(x(z)) x'(z) sqrt(2 pi) exp(z^2/2)]: an integral over a range, written as an average.

So its digits come from the quadrature that cuts at kinks, resolves powers at the ends and says how large its error is.
"""

from __future__ import annotations

from sympy import Add, And, Dummy, Expr, Integral, Mul, Piecewise, S, Symbol, erf, exp, expand, oo, pi, sqrt

from hermitex.symbolic.gaussian import Bound, Expectation, bind


def as_averages(expr: Expr, *, letters: bool = False, around: frozenset[Symbol] = frozenset()) -> Expr:
    """`expr` with each definite integral of numbers as an average; an integral that converges only conditionally does not exist.

    letters : integrals between numbers, too, of functions with other letters
    around : the variables of the averages around it: they count as numbers

    Examples
    --------
    >>> from sympy import Integral, Rational
    >>> from sympy.abc import x
    >>> from hermitex.symbolic.precise import evaluate
    >>> print(evaluate(as_averages(Integral(x**Rational(-9, 10), (x, 0, 1))), 15))
    10.0
    """
    if not expr.has(Integral):
        return expr
    found = {e: _average(e, letters, around) for e in expr.atoms(Integral) if all(len(span) == 3 for span in e.limits)
             and not (ends(e) | e.free_symbols & e.atoms(Bound) if letters else e.free_symbols - around)}

    def within(node: Expectation) -> Expr:
        body, variables = node.open()
        return node.with_body(as_averages(body, letters=letters, around=around.union(variables)), variables, keep=True)

    return expr.xreplace(found).replace(lambda e: isinstance(e, Expectation) and e.has(Integral), within)


def ends(e: Expr) -> set[Symbol]:
    """The letters in the ends of an integral, a sum or a product."""
    return set().union(*(end.free_symbols for _, *span in e.limits for end in span)) - {x for x, *_ in e.limits}


def _average(e: Integral, letters: bool, around: frozenset[Symbol]) -> Expr:
    body = as_averages(e.function, letters=letters, around=around.union(x for x, *_ in e.limits))
    variables = tuple(Dummy("z", real=True) for _ in e.limits)
    if (gaussian := _of_gaussian(body, e)) is not None:
        return gaussian
    # Inside of an average it is summed at every node: x is uniform then, a smooth function of a normal on the whole line.
    uniform = bool(around) and all(end.is_finite for _, *span in e.limits for end in span)
    reached: dict[Expr, Expr] = {}
    weight: Expr = S.One
    for (x, a, b), v in zip(reversed(e.limits), variables, strict=True):  # the range of an inner one may hold an outer variable
        a, b = a.xreplace(reached), b.xreplace(reached)
        reached[x], slope = (a + (b - a)*(1 + erf(v/sqrt(2)))/2, b - a) if uniform else _mapped(a, b, v)
        weight *= slope if uniform else slope*sqrt(2*pi)*exp(v**2/2)
    if uniform:
        return bind(weight*body.xreplace(reached), variables, None)
    inside = And(*(c for v in variables for c in (v > 0, v < 1)))
    return bind(Piecewise((weight*body.xreplace(reached), inside), (S.Zero, True)), variables, None)


def _of_gaussian(body: Expr, e: Integral) -> Expr | None:
    """int exp(-a x^2) g(x) dx = (pi/a)^(1/2) E g(z/(2 a)^(1/2)) over whole lines; None where a variable has no such factor."""
    factors = Mul.make_args(body)
    exponent = expand(Add(*(f.exp for f in factors if isinstance(f, exp))))
    weight: Expr = S.One
    reached: dict[Expr, Expr] = {}
    for x, a, b in e.limits:
        rate = -exponent.coeff(x, 2)
        if (a, b) != (-oo, oo) or not (rate.is_number and rate.is_positive) or not exponent.is_polynomial(x):
            return None
        exponent += rate*x**2
        weight *= sqrt(pi/rate)
        reached[x] = Dummy("z", real=True)/sqrt(2*rate)
    rest = Mul(exp(expand(exponent)), *(f for f in factors if not isinstance(f, exp)))
    variables = tuple(z for x in reached.values() for z in x.free_symbols)
    return weight*bind(rest.xreplace(reached), variables, None)


def _mapped(a: Expr, b: Expr, v: Symbol) -> tuple[Expr, Expr]:
    """x(v) from a at 0 to b at 1, and x'(v)."""
    if a == -oo and b == oo:
        return (2*v - 1)/(v*(1 - v)), (2*v**2 - 2*v + 1)/(v*(1 - v))**2
    if b in (oo, -oo):
        return a + (1 if b == oo else -1)*v/(1 - v), (1 if b == oo else -1)/(1 - v)**2
    if a in (oo, -oo):
        return b + (1 if a == oo else -1)*(1 - v)/v, -(1 if a == oo else -1)/v**2
    return a + (b - a)*v, b - a


__all__ = ["as_averages", "ends"]
