r"""E[f | Y = y] = E[f p(y | z)]/E[p(y | z)] as a node, which prints as it is written and is worked out as that quotient.

    Y a law of sympy.stats with z in its parameters       p(y | z) its density, or its probability at y
    Y = a(z) z1 + b(z), a polynomial in one variable      f p is taken where Y = y: sum f phi/|dY/dz1| there
    Y of finitely many values (sign, Heaviside)           p(y | z) = 1 where Y = y: a polynomial of Y
    Y = F(X), F strictly monotone (exp, tanh, ..., 1/x)   X = F^-1(y): the slope of F cancels
    an inequality                                         p = 1 where it holds

The tower property, E[E[f | Y] g(Y)] = E[f g(Y)], holds for f and Y of any law (Durrett, Probability, section 4.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations, product
from typing import Any

from sympy import (
    Abs,
    Add,
    And,
    Dummy,
    Eq,
    Expr,
    Heaviside,
    Lambda,
    Mul,
    Piecewise,
    Poly,
    PolynomialError,
    Pow,
    S,
    Symbol,
    asinh,
    atan,
    erf,
    exp,
    expand,
    log,
    oo,
    pi,
    piecewise_fold,
    roots,
    sign,
    sinh,
    sqrt,
    tanh,
)
from sympy.core.symbol import Str
from sympy.logic.boolalg import Boolean, BooleanAtom

from hermitex.errors import BadInput
from hermitex.symbolic import laws
from hermitex.symbolic.conditioning import independent, over
from hermitex.symbolic.gaussian import E, Expectation
from hermitex.symbolic.tails import tails
from hermitex.symbolic.terms import linear

# Strictly, with the ends of their range; `inverse()` is the inverse on it.
_MONOTONE = {exp: (S.Zero, oo), log: (-oo, oo), sinh: (-oo, oo), asinh: (-oo, oo), tanh: (S.NegativeOne, S.One),
             erf: (S.NegativeOne, S.One), atan: (-pi/2, pi/2)}


class _LawOfLabel(Expr):
    """A label that is drawn: its name, and its density, or its probability, at y."""

    is_commutative = True


class _Observed(Expr):
    """The average and its label or condition, as one expression inside a node, which binds the variables of both."""

    is_commutative = True


class ConditionalMean(Expr):
    """E[f | Y = y]: an average given an observation, and y, which is absent if the condition is not an equality."""

    is_commutative = True

    def doit(self, **hints: Any) -> Expr:
        """The value of its quotient, exact where the rules of averages make it so."""
        if not hints.get("deep", True):
            return self
        return tails(_with_a_chance(*(side.doit(**hints) for side in self._sides())))

    def quotient(self) -> Expr:
        """The quotient of two averages.

        Raises
        ------
        BadInput : the label has not that value, or no rule tells where it has it.
        """
        above, below = self._sides()
        return above/below

    def _sides(self) -> tuple[Expr, Expr]:
        above, below = (self.args[0].replace(lambda e: isinstance(e, Expectation) and isinstance(e.body, _Observed),
                                             lambda e, chosen=chosen: self._average(e, chosen)) for chosen in (True, False))
        if below == 0 or above.has(_Observed):
            raise BadInput(f"{self}: the condition has no chance" if below == 0 else f"{self}: the label depends on nothing random")
        return above, below

    def _average(self, node: Expectation, chosen: bool) -> Expr:
        """E[f p], or E[p] if not `chosen`, of one node."""
        inequality = not isinstance(node.body.args[1], Expr)
        observed, variables = node.open() if inequality else independent(node)
        f, label = observed.args if chosen else (S.One, observed.args[1])
        if inequality:
            return linear(over(f*Piecewise((S.One, label), (S.Zero, True)), variables, node.covariance))
        if isinstance(label, _LawOfLabel):
            return linear(over(f*label.args[1](self.args[1]), variables))
        if (values := _values(label, variables)) is not None:
            return linear(over(expand(f*self._indicator(label, values)), variables))
        return self._where(f, label, variables)

    def _indicator(self, label: Expr, values: Sequence[Expr]) -> Expr:
        """1 where the label has the value, else 0: sum_v 1_v(Y) 1_v(y), each a polynomial."""
        theirs = [self.args[1]] if self.args[1] in values else _values(self.args[1], list(self.args[1].free_symbols))
        if theirs is None or not set(theirs) <= set(values):
            raise BadInput(f"{self}: the label has the values {', '.join(map(str, values))}; give one of them")

        def at(v: Expr, x: Expr) -> Expr:
            return Mul(*((x - u)/(v - u) for u in values if u != v))

        return Add(*(at(v, label)*at(v, self.args[1]) for v in values))

    def _where(self, f: Expr, label: Expr, variables: Sequence[Symbol]) -> Expr:
        """E of f phi(v)/|dY/dv| at the v for which the label has the value, over the other variables."""
        gap = self._inverted(label, self.args[1], variables)
        held = [(v, gap.diff(v)) for v in variables if gap.has_free(v)]
        ordered = sorted(held, key=lambda pair: pair[1].has_free(*variables))   # a slope that is a number first
        for v, slope in ordered:
            if not slope.has_free(v):
                found = [(expand(-gap.xreplace({v: S.Zero})/slope) if not slope.has_free(*variables) else
                          -gap.xreplace({v: S.Zero})/slope)]
            elif (some := _roots(gap, v)) is None or len(held) > 1:
                continue
            else:
                found = some
            body = Add(*((f*exp(-v**2/2)/(sqrt(2*pi)*Abs(slope))).xreplace({v: x}) for x in found))
            return linear(over(body, [u for u in variables if u != v]))
        raise BadInput(f"{self}: the points at which the label has that value are known only for a label that is affine in "
                       "a variable, a polynomial of one whose roots are real under the assumptions (declare letters positive), "
                       "or a monotone function of these")

    def _inverted(self, label: Expr, value: Expr, variables: Sequence[Symbol]) -> Expr:
        """X - F^-1(y) of Y = F(X), the monotone functions taken off one after the other."""
        gap = label - value
        while True:
            if isinstance(label, Add) and (known := label.as_independent(*variables)[0]) != 0:
                label, value = label - known, value - known
            elif isinstance(label, Mul) and (known := label.as_independent(*variables)[0]) != 1:
                label, value = label/known, value/known
            elif isinstance(label, Pow) and label.exp == -1:
                label, value = label.base, 1/value
            elif isinstance(label, Pow) and not isinstance(label, exp) and not label.base.has_free(*variables):
                label = exp(label.exp*log(label.base), evaluate=False)
            elif (ends := _MONOTONE.get(label.func)) is not None:
                if (value - ends[0]).is_extended_positive is False or (ends[1] - value).is_extended_positive is False:
                    raise BadInput(f"{self}: the condition has no chance")
                label, value = label.args[0], label.inverse()(value)
                gap = label - value
            else:
                return gap

    def _eval_derivative(self, symbol: Symbol) -> Expr:
        return self.quotient().diff(symbol)

    def _eval_evalf(self, prec: int) -> Expr:
        return self.quotient()._eval_evalf(prec)

    # -- printing --------------------------------------------------------------------------------------------------
    def _parts(self) -> tuple[Expr, Any, list[Symbol]] | None:
        """The average, the condition, and the variables, under the names they print with."""
        node = self.args[0]
        if not isinstance(node, Expectation):
            return None
        observed, names, _ = node.named()
        f, label = observed.args
        if len(self.args) == 1:
            return f, label, names
        label = Symbol(label.args[0].name) if isinstance(label, _LawOfLabel) else label
        return f, label if label == self.args[1] else Eq(label, self.args[1], evaluate=False), names   # E[f | Y] at Y itself

    def _sympystr(self, printer: Any) -> str:
        if (parts := self._parts()) is None:
            return printer._print(self.args[0])
        return f"E({', '.join(printer._print(x) for x in (parts[0], *parts[2], parts[1]))})"

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        if (parts := self._parts()) is None:
            body = printer._print(self.quotient())
        else:
            f, condition, names = parts
            body = (rf"\mathbb{{E}}_{{{', '.join(map(printer._print, names))}}}\left[{printer._print(f)} \mid "
                    rf"{printer._print(condition)}\right]")
        return body if exp is None else rf"{body}^{{{exp}}}"


def conditional(expr: Any, variables: Sequence[Any], condition: Any, cov: Any = None) -> Expr:
    """E[f | condition], the condition an equality Eq(Y, y) or an inequality; see the head of this file.

    >>> from sympy.abc import y
    >>> from hermitex.symbols import z, z1
    >>> posterior = E(z, Eq(z + 2*z1, y))
    >>> posterior, posterior.doit()
    (E(z, z, z1, Eq(z + 2*z1, y)), y/5)
    >>> E(z, Eq(sign(z), 1)).doit()
    sqrt(2)/sqrt(pi)
    """
    if isinstance(condition, BooleanAtom):
        raise BadInput(f"E: the condition is {condition} whatever is drawn")
    if not isinstance(condition, Eq):
        return ConditionalMean(E(_Observed(expr, condition), *variables, cov=cov))
    label, value = condition.args
    if laws.is_random(value) and not laws.is_random(label):
        label, value = value, label
    if laws.is_random(label):
        expr, label = expr.xreplace({label: value}), _drawn(label)
    return ConditionalMean(E(_Observed(expr, label), *variables, cov=cov), value)


def _drawn(x: Any) -> _LawOfLabel:
    """The law of a label as a density."""
    at = Dummy("y", real=True)
    if (table := laws.values(x)) is not None:
        return _LawOfLabel(Str(x.name), Lambda(at, Piecewise(*((p, Eq(at, v)) for v, p in table), (S.Zero, True))))
    from sympy.stats import density

    return _LawOfLabel(Str(x.name), Lambda(at, density(x)(at)))


def _with_a_chance(above: Expr, below: Expr) -> Expr:
    """above/below, nan in those cases of the letters in which the condition has no chance."""
    cases = piecewise_fold(below).args if below.has(Piecewise) else ()
    if not any(v == 0 for v, _ in cases):
        return above/below

    def within(given: Boolean) -> Expr:
        held = And.make_args(given)
        return above.replace(Piecewise, lambda *some: next((v for v, c in some if c == True or c in held), Piecewise(*some)))  # noqa: E712

    return Piecewise(*((within(c)/v if v != 0 else S.NaN, c) for v, c in cases))


def _values(label: Expr, variables: Sequence[Symbol]) -> list[Expr] | None:
    """What the label can be, almost everywhere, if switches alone hold its variables."""
    switches = [e for e in label.atoms(sign, Heaviside) if e.has_free(*variables)] if variables else []
    outer = [e for e in switches if not any(e != o and o.has(e) for o in switches)]
    names = {e: Dummy() for e in outer}
    rest = label.xreplace(names)
    most_switches = 6  # of a label of finitely many values
    if (variables and rest.has_free(*variables)) or len(outer) > most_switches:
        return None
    taken = product(*((S.NegativeOne if isinstance(e, sign) else S.Zero, S.One) for e in outer))
    return list(dict.fromkeys(rest.xreplace(dict(zip(names.values(), one, strict=True))) for one in taken))


def _roots(gap: Expr, v: Symbol) -> list[Expr] | None:
    """The real roots of a polynomial, if it is known which these are."""
    try:
        poly = Poly(gap, v)
        found = roots(poly)
    except PolynomialError:
        return None
    if sum(found.values()) < poly.degree() or any(x.is_real is None for x in found):
        return None
    return [x for x in found if x.is_real]


# -- the tower property ------------------------------------------------------------------------------------------------
def towered(node: Expectation) -> Expr | None:
    """E[E[f | Y] g(Y)] = E[f g(Y)], one condition after the other; None where there is none at the label of the average."""
    if not any(c.has_free(*node.bound) for c in node.body.atoms(ConditionalMean)):
        return None
    body, variables = node.open()
    changed, parts = False, list[Expr]()
    for term in Add.make_args(body):
        opened = _opened(term, variables, node)
        changed, parts = changed or opened is not None, [*parts, term if opened is None else opened]
    return node.with_body(Add(*parts), variables) if changed else None


def _opened(term: Expr, variables: Sequence[Symbol], node: Expectation) -> Expr | None:
    """The term with f in the place of a factor E[f | Y]."""
    for factor in Mul.make_args(term):
        base, n = factor.as_base_exp()
        if not (isinstance(base, ConditionalMean) and len(base.args) == 2 and n.is_Integer and n > 0
                and isinstance(base.args[0], Expectation)):
            continue
        rest, (inner, value) = term/base, base.args
        observed, own = inner.open()
        f, label = observed.args
        letter = Dummy("Y", real=True)
        for chosen in permutations(range(len(variables)), len(own)):
            names = dict(zip(own, (variables[i] for i in chosen), strict=True))
            others = [i for i in range(len(variables)) if i not in chosen and rest.has_free(variables[i])]
            if (isinstance(label, Expr) and expand(label.xreplace(names) - value) == 0
                    and not rest.xreplace({value: letter}).has_free(*names.values())
                    and node.covariance.extract(list(chosen), list(chosen)) == inner.covariance
                    and all(node.covariance[i, j] == 0 for i in chosen for j in others)):
                return rest*f.xreplace(names)
    return None


def worked_out(expr: Expr) -> Expr:
    """Every conditional expectation as a quotient, unless the tower property removes it first.

    Raises
    ------
    BadInput : see `ConditionalMean.quotient`; or one of a noisy label is averaged with other functions than of that label.
    """
    while expr.has(ConditionalMean):
        after = expr.replace(lambda e: isinstance(e, Expectation), lambda e: towered(e) or e)
        if after == expr:
            made = expr.replace(lambda e: isinstance(e, ConditionalMean), lambda e: e.quotient())
            if any(map(_wide, made.atoms(Expectation))):   # no quadrature does it, but a closed form may
                made = expr.replace(lambda e: isinstance(e, ConditionalMean), lambda e: e.doit())
            if any(map(_wide, made.atoms(Expectation))):
                raise BadInput("a conditional expectation without a closed form occurs in an average of something that is "
                               "not a function of its label, or not linearly; the tower property does not apply")
            return made
        expr = after
    return expr


def _wide(node: Expectation) -> bool:
    """Does it average a quotient of averages over three variables or more, which no quadrature does?"""
    wide = max((len(n.bound) for n in node.body.atoms(Expectation) if n.has_free(*node.bound)), default=0)
    most = 2  # variables, of a quotient of averages and of the average of it
    return bool(wide) and len(node.bound) + wide > most and any(
        e.exp.is_negative and e.has(Expectation) for e in node.body.atoms(Pow))
