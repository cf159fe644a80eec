"""The flow of a committee as formulas: rates of Q, M and a over symbols, closed forms where there are some and E(...) where not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sympy import Add, Expr, Rational, Symbol

from hermitex.errors import BadInput
from hermitex.kernels.correlated_fields import FIELD, smooth
from hermitex.symbols import z
from hermitex.systems.flow import Flow
from hermitex.theories.committees.field_products import Product, entry, product, slope
from hermitex.theories.committees.rates import Pair, Rates, label


class UncompiledFlow(Flow):
    """Rates with more averages of kinked functions over three and four fields than a step can take: formulas alone."""

    def compile(self, events: Mapping[str, Any] | None = None) -> Any:
        """Refuses, and says what does it."""
        raise BadInput(f"{self.name}: its flow averages kinked functions of three or four fields, without a closed form here: that "
                       "is too much for .flow.solve and a file. `.solve(t=...)` and `.curve(t=...)` of the committee itself "
                       "(hermitex curve committee) integrate it; a file takes smooth functions, relu, or one student and teacher")


def flow(theory: Any) -> Flow:
    """The `Flow` of a committee: unknowns Q_jl (j <= l), M_jr and, where it is trained, a_j; the risk is an observable.

    A `UncompiledFlow` one where kinked functions have no closed form in many averages over several fields.
    """
    rates: Rates = theory.rates
    p, k = rates.p, rates.k
    n = p + k
    C = [[_symbol(i, j, p) for j in range(n)] for i in range(n)]
    a, v = [Symbol(f"a{j + 1}", real=True) for j in range(p)], [Symbol(f"v{r + 1}", real=True) for r in range(k)]
    gamma, Delta, second = Symbol("gamma", nonnegative=True), Symbol("Delta", nonnegative=True), Symbol("second", nonnegative=True)
    s = [*(-x/p for x in a), *(x/Rational(k) for x in v)]

    def i3(j: int, i: int, b: int) -> Expr:
        """E[sigma'(u_j) u_i f_b(u_b)] = C_ij E[sigma'' f_b] + C_ib E[sigma' f_b'] (Stein)."""
        group = next(g for g, _, which in rates.pairs if (j, b) in {tuple(w) for w in which.tolist()})
        own = at(_own(group), [j] if group.same else [j, b], C)
        return C[i][j]*own if group.same else C[i][j]*own + C[i][b]*at(_across(group), [j, b], C)

    drive = {(j, i): a[j]*Add(*(s[b]*i3(j, i, b) for b in range(n))) for j in range(p) for i in range(n)}
    equations: dict[Any, Expr] = {}
    for j in range(p):
        for l in range(j, p):
            own = slope(rates.sigma)
            steps = [Delta*(at(product(own**2), [j], C) if j == l else at(product(own, own), [j, l], C))]
            for b in range(n):
                for c in range(b, n):
                    four, order = rates._merged(j, l, b, c)
                    steps.append((1 if b == c else 2)*s[b]*s[c]*at(four, order, C))
            equations[C[j][l]] = drive[j, l] + drive[l, j] + gamma/p*a[j]*a[l]*Add(*steps)
    for j in range(p):
        for r in range(k):
            equations[C[j][p + r]] = drive[j, p + r]
    outputs = {(b, c): _output(rates, b, c, C) for b in range(n) for c in range(b, n)}
    if rates.trained:
        for j in range(p):
            equations[a[j]] = second*Add(*(s[b]*outputs[min(j, b), max(j, b)] for b in range(n)))
    risk = Add(*((1 if b == c else 2)*s[b]*s[c]*e for (b, c), e in outputs.items()))/2
    # students of norm 1 that lean a little to one teacher each
    start = {u: 1 if u.is_positive or u in a else 0 for u in equations} | {
        C[j][p + r]: 0.2 if r == j % k else 0.1 for j in range(p) for r in range(k)}
    open_ = [(len(q.functions), len(which)) for q, _, which in rates.steps
             if len(q.functions) > 2 and q.formula is None and not all(smooth(f.xreplace({z: FIELD})) for f in q.functions)]
    few = 3  # averages of kinked functions over three fields, on a grid at every step: one takes 0.02 s
    kind = UncompiledFlow if any(n > 3 for n, _ in open_) or sum(count for _, count in open_) > few else Flow
    return kind(equations, observables={"risk": risk}, source="saadsolla1995", name=f"committee {theory.sigma.name}", start=start)


def _symbol(i: int, j: int, p: int) -> Symbol:
    i, j = min(i, j), max(i, j)
    letter, row, column = ("Q", i, j) if j < p else ("M", i, j - p) if i < p else ("P", i - p, j - p)
    return Symbol(label(letter, row, column), positive=True) if i == j else Symbol(label(letter, row, column), real=True)


def at(average: Product | tuple[Expr, int], neurons: list[int], C: list[list[Any]]) -> Expr:
    """An average at the neurons' covariance: its formula with the entries put in, or the node over them."""
    if isinstance(average, Product):
        if average.formula is None:
            return average.over(lambda i, j: C[neurons[i]][neurons[j]])
        formula = average.formula
    else:
        formula = average[0]
    letters = {entry(i + 1, j + 1): C[neurons[i]][neurons[j]] for i in range(len(neurons)) for j in range(i, len(neurons))}
    return formula.xreplace(letters)


def _own(group: Pair) -> Any:
    """E[f'' g]: 2 dF/dC_11 of the closed form, or the product."""
    if not group.same and (formula := group.value.derivative(1, 1)) is not None:
        return (2*formula, 2)
    return group.by_own


def _across(group: Pair) -> Any:
    formula = group.value.derivative(1, 2)
    return (formula, 2) if formula is not None else group.across


def _output(rates: Rates, b: int, c: int, C: list[list[Any]]) -> Expr:
    group = next(q for q, _, which in rates.outputs if (b, c) in {tuple(w) for w in which.tolist()})
    return at(group, [b] if b == c else [b, c], C)
