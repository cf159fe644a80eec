"""Conditions on the parameters of a law, kept with its reduced form:  value, where low <= parameter <= high.

A sum or an integral in the parameters may have a value where the law does not exist: (1 - b) f(0) + b f(1), b = 3/2. If the
assumptions of the parameters do not prove the conditions, `E` keeps them in a node around the value; a `System` takes them off
again and holds every point against them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from sympy import Add, Basic, Expr, Integer, Interval, Rational, S, Symbol, Tuple, oo
from sympy.core.symbol import Str

from hermitex.errors import BadInput

Needed = tuple[Expr, Interval]
_POSITIVE, _PROBABILITY = Interval.open(0, oo), Interval(0, 1)  # of a scale; of a probability


def _positive(*values: Expr) -> list[Needed]:
    return [(v, _POSITIVE) for v in values]


#: law -> (parameter, its interval); the arguments are the ones of the law in sympy.stats
_CONDITIONS: dict[str, Callable[..., list[Needed]]] = {
    "BernoulliDistribution": lambda p, *_: [(p, _PROBABILITY)],
    "BinomialDistribution": lambda n, p, *_: [(p, _PROBABILITY)],
    "BetaBinomialDistribution": lambda n, a, b: _positive(a, b),
    "PoissonDistribution": _positive,
    "GeometricDistribution": lambda p: [(p, Interval.Lopen(0, 1))],
    "NegativeBinomialDistribution": lambda r, p: [*_positive(r), (p, Interval.open(0, 1))],
    "NormalDistribution": lambda mu, s: _positive(s),
    "LogNormalDistribution": lambda mu, s: _positive(s),
    "UniformDistribution": lambda a, b: _positive(b - a),
    "ArcsinDistribution": lambda a, b: _positive(b - a),
    "ExponentialDistribution": _positive,
    "LogisticDistribution": lambda mu, s: _positive(s),
    "LaplaceDistribution": lambda mu, b: _positive(b),
    "GumbelDistribution": lambda b, mu, least: _positive(b),
    "CauchyDistribution": lambda x, s: _positive(s),
    "FrechetDistribution": lambda a, s, m: _positive(a, s),
    **dict.fromkeys(("WeibullDistribution", "ParetoDistribution", "RayleighDistribution", "KumaraswamyDistribution",
                     "GammaDistribution", "GammaInverseDistribution", "BetaDistribution", "StudentTDistribution",
                     "ChiSquaredDistribution", "ChiDistribution"), _positive),
}


class Condition(Basic):
    """The expression `args[1]` of the law `args[0]` is in the interval `args[2]`."""

    law = property(lambda self: str(self.args[0]))
    value = property(lambda self: self.args[1])

    def __new__(cls, law: Any, value: Expr, interval: Any) -> Condition:
        # An infinite end among the arguments would be taken for a value that does not exist.
        kept = Str(str(interval)) if isinstance(interval, Str) else Str(
            f"{'(' if interval.left_open else '['}{interval.start} {interval.end}{')' if interval.right_open else ']'}")
        return Basic.__new__(cls, Str(str(law)), value, kept)

    @property
    def interval(self) -> Interval:
        """Its interval."""
        text = str(self.args[2])
        low, high = (oo if end == "oo" else Rational(end) for end in text[1:-1].split())
        return Interval(low, high, text[0] == "(", text[-1] == ")")

    @property
    def key(self) -> str:
        """The interval and the words, as the generated code has them: ``[0, 1] Bernoulli needs 0 <= b <= 1``."""
        low, high, lopen, ropen = self.interval.args
        return f"{'(' if lopen else '['}{float(low)!r}, {float(high)!r}{')' if ropen else ']'} {self.says}"

    @property
    def holds(self) -> bool | None:
        """Is it proved, refuted (False), or open (None)?"""
        low, high, lopen, ropen = self.interval.args
        sides = []
        for gap, strict, end in ((self.value - low, lopen, low), (high - self.value, ropen, high)):
            if end.is_finite:
                sides.append(gap.is_positive if strict else gap.is_nonnegative)
        return False if False in sides else None if None in sides else True

    def at(self, value: Expr) -> Condition:
        """The same of another expression. Raises BadInput where it does not hold."""
        new = Condition(self.law, value, self.args[2])
        if new.holds is False:
            raise BadInput(f"E: {self.says}, not {value}")
        return new

    @property
    def says(self) -> str:
        """In words: ``Bernoulli needs 0 <= b <= 1``."""
        low, high, lopen, ropen = self.interval.args
        text = str(self.value)
        if self.value.is_number:
            return f"{self.law} needs a parameter in {self.interval}, not {text}"
        if low.is_finite and high.is_finite:
            if high - low < S.Half:
                return f"{self.law} needs {text} = {(low + high)/2}"
            return f"{self.law} needs {low} {'<' if lopen else '<='} {text} {'<' if ropen else '<='} {high}"
        return f"{self.law} needs {text} {'>' if lopen else '>='} {low}"


class Lawful(Expr):
    """The node: a value, and the conditions of the laws it comes from; it prints as its value, and `doit` is that alone."""

    is_commutative = True
    precedence = property(lambda self: _precedence(self.args[0]))
    value = property(lambda self: self.args[0])
    conditions = property(lambda self: tuple(self.args[1]))

    def __new__(cls, value: Expr, conditions: Iterable[Any]) -> Expr:
        return lawful(value, conditions)

    @property
    def free_symbols(self) -> set[Symbol]:
        return self.value.free_symbols | set().union(*(c.value.free_symbols for c in self.conditions))

    def doit(self, **hints: Any) -> Expr:
        """The value without its conditions."""
        return self.value.doit(**hints) if hints.get("deep", True) else self.value

    def _eval_is_real(self) -> bool | None:
        return self.value.is_real

    def _eval_is_positive(self) -> bool | None:
        return self.value.is_positive

    def _eval_is_nonnegative(self) -> bool | None:
        return self.value.is_nonnegative

    def _eval_derivative(self, symbol: Symbol) -> Expr:
        return lawful(self.value.diff(symbol), self.conditions)

    def _eval_evalf(self, prec: int) -> Expr:
        return self if self.free_symbols else self.value._eval_evalf(prec)

    def _eval_power(self, exponent: Expr) -> Expr:
        return lawful(self.value**exponent, self.conditions)

    def expand(self, *args: Any, **hints: Any) -> Expr:
        """The value expanded."""
        return lawful(self.value.expand(*args, **hints), self.conditions)

    def _eval_simplify(self, **kwargs: Any) -> Expr:
        return lawful(self.value.simplify(**kwargs), self.conditions)

    def _sympystr(self, printer: Any) -> str:
        return str(printer._print(self.value))

    def _no_code(self, printer: Any) -> str:
        raise BadInput(f"{str(self)[:80]} is an average over a law whose parameters have a range, which lambdify does not hold; "
                       "hx.compile(expr) makes a function of arrays, and expr.doit() is the formula alone")

    _pythoncode = _numpycode = _mpmathcode = _lambdacode = _sympycode = _no_code

    def _latex(self, printer: Any) -> str:
        return str(printer._print(self.value))

    def _pretty(self, printer: Any) -> Any:
        return printer._print(self.value)


def _outward(e: Expr) -> Expr:
    """A sum or a product with such nodes, as one of them: what cancels in it is gone."""
    *values, needed = apart(*e.args)
    return lawful(e.func(*values), needed)


Basic._constructor_postprocessor_mapping[Lawful] = {"Add": [_outward], "Mul": [_outward]}


def _precedence(e: Expr) -> int:
    from sympy.printing.precedence import precedence

    return int(precedence(e))


def lawful(value: Expr, conditions: Iterable[Condition]) -> Expr:
    """The value with those of the conditions that are open.

    Raises
    ------
    BadInput : one of them does not hold.
    """
    value, more = apart(value)
    left: dict[Condition, None] = {}
    for c in (*more, *conditions):
        holds = c.holds
        if holds is False:
            raise BadInput(f"E: {c.says}")
        if holds is None:
            left[c] = None
    if not left or not value.free_symbols:
        return value
    return Expr.__new__(Lawful, value, Tuple(*sorted(left, key=str)))


def apart(*exprs: Any) -> Any:
    """The expressions with their conditions taken off, and these at the end."""
    found: dict[Condition, None] = {}
    out = []
    for e in exprs:
        nodes = e.atoms(Lawful) if isinstance(e, Basic) and e.has(Lawful) else set()
        found.update(dict.fromkeys(c for n in nodes for c in n.conditions))
        out.append(_bare(e) if nodes else e)
    return (*out, tuple(sorted(found, key=str)))


def _bare(e: Basic) -> Basic:
    """The expression with the value in place of each node."""
    while e.has(Lawful):
        e = e.xreplace({n: n.value for n in e.atoms(Lawful)})
    return e


def conditions(law: Any, table: Iterable[tuple[Expr, Expr]] | None, needed: Callable[[Any], list[Needed]]) -> list[Condition]:
    """The conditions of a law: those of its probabilities if it lists values, else the ones of `needed`."""
    name = type(law).__name__
    said = name.removesuffix("Distribution").removesuffix("Handmade")
    if name in _CONDITIONS:
        return [Condition(said, v, i) for v, i in _CONDITIONS[name](*law.args)]
    if table is None:
        return [Condition(said, v, i) for v, i in needed(law)]
    total = Add(*(p for _, p in table))
    of_one = Rational(1, 10**12)  # rounding of probabilities that are given as floats
    within = [(p, _PROBABILITY) for _, p in table] + [(total, Interval(1 - of_one, 1 + of_one))]
    return [Condition(said, S(v), i) for v, i in within if not isinstance(v, Integer)]
