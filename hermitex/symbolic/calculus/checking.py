"""Is lhs = rhs? Proved by algebra, or tested to N digits at random points, or refuted by a counter-example.

Undefined functions are part of the claim: a proof holds for all of them, a test puts several concrete ones in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from random import Random
from time import monotonic
from typing import Any

from sympy import Expr, Max, Pow, Rational, S, Symbol, cos, erf, exp, expand, powsimp, sin, tanh
from sympy.core.function import UndefinedFunction

from hermitex.errors import AssumptionNeeded, BadInput, BudgetExceeded, Divergent, HermitexError, NoClosedForm
from hermitex.show.display import latex
from hermitex.symbolic.arithmetic import fabs, isfinite, mp, mpf, nstr
from hermitex.symbolic.budget import budget, checkpoint
from hermitex.symbolic.calculus import ratio, rules
from hermitex.symbolic.calculus.normal import SMALL, short, stein_form
from hermitex.symbolic.calculus.paper import plain
from hermitex.symbolic.calculus.undefined import derivative_order, put, tidy, undefined_functions
from hermitex.symbolic.gaussian import Expectation

SEARCH = 10  # seconds given to the search for the factor between two sides that differ
ENOUGH = 20  # seconds after which no further random point is tried

PROVED, AGREES, FAILS, OPEN = "proved", "agrees", "fails", "undetermined"

# What is put in for an undefined function, in this order: odd, kinked, neither, even, bounded, growing.
TEST_FUNCTIONS: tuple[tuple[str, Any, int | None], ...] = (
    ("tanh", tanh, None),
    ("relu", lambda u: Max(0, u), 1),  # not where a second derivative of it would be a delta
    ("x**3 + x**2", lambda u: u**3 + u**2, None),
    ("cos", cos, None),
    ("erf", erf, None),
    ("exp(x/2)", lambda u: exp(u/2), None),
    ("sin(2*x)", lambda u: sin(2*u), None),
)


@dataclass(frozen=True)
class CounterExample:
    """The values of parameters and functions at which the sides differ, and both sides there."""

    functions: Mapping[str, str]
    parameters: Mapping[str, Expr]
    left: Any
    right: Any

    @property
    def ratio(self) -> Any:
        """left/right; None if right is 0."""
        return self.left/self.right if self.right else None

    def __repr__(self) -> str:
        given = [f"{f} = {name}" for f, name in self.functions.items()]
        given += [f"{s} = {_decimal(v)}" for s, v in self.parameters.items()]
        sides = f"left {nstr(self.left, 10)}, right {nstr(self.right, 10)}"
        if self.ratio:
            sides += f", ratio {nstr(self.ratio, 10)}"
        return ", ".join(given) + ": " + sides if given else sides

    def latex(self) -> str:
        """What was put in, and both sides there, as LaTeX without dollars."""
        given = [rf"{f} = \text{{{name}}}" for f, name in self.functions.items()]
        given += [f"{s} = {_decimal(v)}" for s, v in self.parameters.items()]
        sides = rf"{nstr(self.left, 10)} \neq {nstr(self.right, 10)}"
        return r",\; ".join(given) + rf": \quad {sides}" if given else sides

    def _repr_latex_(self) -> str | None:
        return f"$\\displaystyle {self.latex()}$"

    def to_dict(self) -> dict[str, Any]:
        """Functions, parameters and both sides."""
        return {"functions": dict(self.functions), "parameters": {k: str(v) for k, v in self.parameters.items()},
                "left": float(self.left), "right": float(self.right)}


@dataclass(frozen=True)
class Check:
    """What is known of lhs = rhs; true if it is proved or agrees, false if it fails or could not be tested.

    Attributes
    ----------
    status : "proved", "agrees", "fails" or "undetermined"
    digits : the digits to which the sides agree (None if proved or untested)
    how : the proof or the test in words
    counter_example : where the sides differ
    factor : a simple expression that equals lhs/rhs, if one was found
    identity : (lhs, reduced), the right equality for a left side that integration by parts reduces
    """

    lhs: Expr
    rhs: Expr
    status: str
    how: str = ""
    digits: int | None = None
    counter_example: CounterExample | None = None
    factor: Expr | None = None
    identity: tuple[str, Expr, Expr] | None = None

    def __bool__(self) -> bool:
        return self.status in (PROVED, AGREES)

    def __repr__(self) -> str:
        if self.status == PROVED:
            return f"True: proved ({self.how})"
        if self.status == AGREES:
            return f"True: the sides agree to {self.digits} digits ({self.how}; not proved)"
        if self.status == OPEN:
            return f"undetermined: {self.how}"
        lines = [f"False: the sides differ{f' by the factor {plain(self.factor)}' if self.factor is not None else ''}"]
        if self.factor is None and self.how:
            lines[0] += f" ({self.how})"
        if self.counter_example is not None:
            lines.append(f"  {self.counter_example!r}")
        if self.identity is not None:
            rule, left, right = self.identity
            lines.append(f"  {rule}: {plain(left)} = {plain(right)}")
        return "\n".join(lines)

    def latex(self) -> str:
        """The claim, or its refutation, as LaTeX without dollars."""
        sign = {PROVED: "=", AGREES: "=", FAILS: r"\neq", OPEN: r"\overset{?}{=}"}[self.status]
        return f"{latex(self.lhs)} {sign} {latex(self.rhs)}"

    def _repr_latex_(self) -> str | None:
        try:
            return f"$\\displaystyle {self.latex()}$"
        except Exception:  # a notebook must show something else rather than fail
            return None

    def _repr_html_(self) -> str | None:
        """The claim as a formula; below it the proof in words, or the counter-example and the right equality."""
        try:
            said = repr(self).splitlines()
            if self.factor is not None:
                said[0] = f"False: the sides differ by the factor ${latex(self.factor)}$"
            if self.identity is not None:
                rule, left, right = self.identity
                said[-1] = f"{rule}: ${latex(left)} = {latex(right)}$"
            words = "<br>".join(escape(line.strip(), quote=False) for line in said)
            return f"<div>$\\displaystyle {escape(self.latex(), quote=False)}$</div><div>{words}</div>"
        except Exception:  # the notebook falls back on LaTeX
            return None

    def to_dict(self) -> dict[str, Any]:
        """Status, digits, how, and the counter-example and factor where there are any."""
        return {"status": self.status, "digits": self.digits, "how": self.how,
                "counter_example": self.counter_example and self.counter_example.to_dict(),
                "factor": None if self.factor is None else str(self.factor)}


def _decimal(value: Expr) -> str:
    return nstr(mpf(value.p)/value.q, 10) if value.is_Rational else str(value)


def check(lhs: Any, rhs: Any, *, symbols: Any = None, digits: int = 30, points: int = 4) -> Check:
    """Test an equality: a proof, agreement at random points, or a counter-example with the factor that is missing.

    Parameters
    ----------
    lhs, rhs : expressions (with nodes, parameters, undefined functions and their derivatives) or texts
    symbols : declarations for texts, as in `parse`
    digits : the agreement asked for at each point
    points : how many random points are tried

    Examples
    --------
    >>> from sympy import Function
    >>> from hermitex.symbolic.gaussian import E
    >>> from hermitex.symbolic.calculus.undefined import Derivative
    >>> from hermitex.symbols import z, kappa, r
    >>> f = Function("f")
    >>> check(E(r*z*f(kappa + r*z), z), r**2*E(Derivative(f)(kappa + r*z), z)).status
    'proved'
    >>> check(E(r*z*f(kappa + r*z), z), E(Derivative(f)(kappa + r*z), z))
    False: the sides differ by the factor r**2
      f = tanh, kappa = 0.7, r = 1.3: left 0.7782708088, right 0.4605152715, ratio 1.69
      Stein: E[r z f(kappa + r z)] = r**2 E[f'(kappa + r z)]
    """
    left, right = _read(lhs, symbols), _read(rhs, symbols)
    forms = _forms(left, right)
    if forms is not None and _is_zero(forms[0] - forms[1]):
        return Check(left, right, PROVED, "both sides have the same normal form")
    test = _Test(left, right, digits)
    outcome = test.run(points)
    if outcome.status != FAILS:
        return outcome
    try:
        with budget(SEARCH):
            factor = _factor(forms, test)
    except BudgetExceeded:
        checkpoint("comparing two sides")  # the caller's own budget; running out of ours only leaves the factor unknown
        factor = None
    return Check(left, right, FAILS, outcome.how, None, outcome.counter_example, factor, _identity(left, right, factor))


def _read(side: Any, declared: Any) -> Expr:
    if isinstance(side, str):
        from hermitex.symbolic.parsing import parse

        side = parse(side, symbols=declared)
    from sympy import Derivative, Subs, sympify

    expr = tidy(sympify(side, strict=True))
    if not isinstance(expr, Expr):
        raise BadInput(f"check compares expressions, not {type(expr).__name__}; write check(lhs, rhs)")
    expr = expr.xreplace({e: e.doit() for e in expr.atoms(Subs) if e.has(Expectation)})
    return expr.replace(lambda e: isinstance(e, Derivative) and e.has(Expectation), lambda e: e.doit())


# -- proof -------------------------------------------------------------------------------------------------------------
def _forms(left: Expr, right: Expr) -> tuple[Expr, Expr] | None:
    try:
        return stein_form(left), stein_form(right)
    except (NoClosedForm, AssumptionNeeded, Divergent, NotImplementedError):
        return None


def _is_zero(expr: Expr) -> bool:
    expr = stein_form(expr) if expr.has(Expectation) else expr
    if short(expr) == 0:
        return True
    if expr.has(Expectation) or expr.count_ops() > SMALL:
        return False
    if not expr.free_symbols:
        from hermitex.symbolic.zero import decide

        return bool(decide(expr).status == "zero")
    # Trigonometric and hyperbolic identities are identities of exponentials.
    return bool(short(powsimp(expand(expr.rewrite(exp)))) == 0)


# -- test --------------------------------------------------------------------------------------------------------------
class _Test:
    """Both sides at points: parameters by rational numbers, undefined functions by concrete ones."""

    def __init__(self, left: Expr, right: Expr, digits: int) -> None:
        self.sides, self.digits = (left, right), digits
        self.parameters = sorted(left.free_symbols | right.free_symbols, key=lambda s: s.name)
        self.functions = undefined_functions(left + right)
        self.skipped: str = ""

    def run(self, points: int) -> Check:
        """The first point at which the sides differ, or the agreement reached at all of them."""
        left, right = self.sides
        constant = not self.parameters and not self.functions
        reached, used, names, started = self.digits, 0, [], monotonic()
        for parameters, functions in self._points(1 if constant else points):
            checkpoint("testing an equality at random points")
            if used and monotonic() - started > ENOUGH:
                break
            values = self.at(parameters, functions)
            if values is None:
                continue
            left_value, right_value, work = values
            agreement = _agreement(left_value, right_value, self.digits, work)
            if agreement < min(self.digits, work) - 3:
                chosen = {f.__name__: TEST_FUNCTIONS[i][0] for f, i in functions.items()}
                example = CounterExample(chosen, {s.name: v for s, v in parameters.items()}, *values[:2])
                return Check(left, right, FAILS, "", None, example)
            reached, used = min(reached, agreement), used + 1
            names += [TEST_FUNCTIONS[i][0] for i in functions.values()]
        if not used:
            return Check(left, right, OPEN, f"no point could be evaluated{': ' + self.skipped if self.skipped else ''}")
        with_functions = f" with {', '.join(dict.fromkeys(names))}" if names else ""
        where = "two evaluations" if constant else f"{used} random points{with_functions}"
        return Check(left, right, AGREES, where, reached)

    def at(self, parameters: Mapping[Symbol, Expr], functions: Mapping[UndefinedFunction, int],
           digits: int | None = None) -> tuple[Any, Any, int] | None:
        """(left, right, digits asked) at one point; None where one of them cannot be evaluated."""
        from hermitex.symbolic.precise import evaluate

        chosen = {f: TEST_FUNCTIONS[i][1] for f, i in functions.items()}
        values = []
        try:
            concrete = [put(side.subs(parameters), chosen) for side in self.sides]
            # A node over two variables is a double integral: fewer digits are asked of it.
            work = min(digits or self.digits, *(_affordable(e) for e in concrete))
            for expr in concrete:
                if not all(map(_has_law, expr.atoms(Expectation))):
                    return None
                values.append(evaluate(expr, work))
        except BudgetExceeded:
            raise
        except (HermitexError, ValueError, ZeroDivisionError, NotImplementedError) as error:
            self.skipped = str(error).splitlines()[0] if str(error) else type(error).__name__
            return None
        if not all(isinstance(v, mpf) and isfinite(v) for v in values):
            return None
        return values[0], values[1], work

    def _points(self, count: int) -> Iterator[tuple[dict[Symbol, Expr], dict[UndefinedFunction, int]]]:
        """The first is made of the plain numbers 0.7, 1.3, ...; one that is not admissible is drawn nearer to 0."""
        for i in range(count):
            functions = self.assignment(i)
            for shrink in (S.One, Rational(1, 2), Rational(1, 5)):
                parameters = self.point(i, shrink)
                if all(self._admissible(side, parameters) for side in self.sides):
                    yield parameters, functions
                    break

    def _admissible(self, side: Expr, parameters: Mapping[Symbol, Expr]) -> bool:
        try:
            put_in = side.subs(parameters)
        except BadInput:  # the numbers make no covariance
            return False
        return put_in.is_finite is not False and put_in.is_real is not False and all(
            map(_has_law, put_in.atoms(Expectation))) and not any(
            p.is_Pow and p.exp.is_Rational and p.exp.q % 2 == 0 and p.base.is_negative
            for e in (put_in, *(n.body for n in put_in.atoms(Expectation))) for p in e.atoms(Pow))

    def point(self, i: int, shrink: Expr = S.One) -> dict[Symbol, Expr]:
        """Values for the parameters that their assumptions allow."""
        random = Random(i)
        plain_numbers = [Rational(v, 10) for v in (7, 13, 9, 16, 4, 11, 18, 6, 14, 8)]
        out: dict[Symbol, Expr] = {}
        for n, s in enumerate(self.parameters):
            value = plain_numbers[n % 10] if i == 0 else Rational(random.randint(20, 180), 100)
            if s.is_integer:
                out[s] = Rational(2 + (n + i) % 3)*(2 if s.is_even else 1) + (1 if s.is_odd and (n + i) % 3 != 1 else 0)
                continue
            if i and not s.is_extended_nonnegative and (s.is_extended_nonpositive or random.random() < 1/2):
                value = -value
            out[s] = (-abs(value) if s.is_extended_nonpositive else value)*shrink
        return out

    def assignment(self, i: int) -> dict[UndefinedFunction, int]:
        """A test function for each undefined one, smooth enough for the derivatives that occur."""
        out = {}
        for n, f in enumerate(self.functions):
            order = max(derivative_order(side, f) for side in self.sides)
            fit = [k for k, (_, _, most) in enumerate(TEST_FUNCTIONS) if most is None or order <= most]
            out[f] = fit[(i + n) % len(fit)]
        return out


def _affordable(expr: Expr) -> int:
    widest = max((len(n.bound) + n.level for n in expr.atoms(Expectation)), default=1)
    return {1: 10**6, 2: 12}.get(widest, 8)


def _has_law(node: Expectation) -> bool:
    """False where the numbers that were put in make the covariance indefinite."""
    cov = node.covariance
    if node.independent or cov.free_symbols:
        return True
    return not any(cov[:k, :k].det().is_negative for k in range(1, cov.rows + 1)) and all(
        not cov[i, i].is_negative for i in range(cov.rows))


def _agreement(left: Any, right: Any, asked: int, cap: int) -> int:
    """The number of leading digits in which two numbers agree."""
    scale = max(fabs(left), fabs(right))
    if left == right:
        return min(asked, cap)
    with mp.workdps(asked + 10):
        gap = fabs(left - right)/max(scale, mpf(10)**(-cap//2))
        return max(0, min(asked, cap, int(-mp.log10(gap))))


# -- what would be right -----------------------------------------------------------------------------------------------
def _factor(forms: tuple[Expr, Expr] | None, test: _Test) -> Expr | None:
    """lhs/rhs as a simple expression: exactly, from the normal forms, or fitted at points; verified at fresh ones."""
    exact = ratio.exact_factor(*forms) if forms is not None else None
    if exact is not None:
        return exact if _verified(exact, test) else None
    # A factor with an undefined function in it has no value at a point.
    found = [f for f in ratio.candidates(test.sides, test.parameters) if not undefined_functions(f)][:ratio.MOST]

    def quotient(point: dict[Symbol, Expr]) -> Any:
        values = test.at(point, test.assignment(0), 18)
        return None if values is None or not values[1] else values[0]/values[1]

    points = [test.point(i, Rational(1, 1 + i % 2)) for i in range(len(found) + 4)]
    fitted = ratio.simple_factor(quotient, points, found, digits=12)
    return fitted if fitted is not None and _verified(fitted, test) else None


def _verified(factor: Expr, test: _Test) -> bool:
    """The factor holds at fresh points and for other functions too."""
    seen = 0
    for i in range(3):
        parameters = test.point(i)
        values = test.at(parameters, test.assignment(i), 15)
        value = put(factor.xreplace(parameters), {f: TEST_FUNCTIONS[i][1] for f, i in test.assignment(i).items()})
        if values is None or not value.is_number or value.is_real is False:
            continue
        seen += 1
        if _agreement(values[0], values[1]*mpf(value.evalf(20)), 12, values[2]) < min(10, values[2] - 3):
            return False
    return seen > 0


def _identity(left: Expr, right: Expr, factor: Expr | None) -> tuple[str, Expr, Expr] | None:
    """The equality that integration by parts gives for the left (else the right) side of a wrong one."""
    for side in (left, right):
        for name, rule in (("Stein", rules.hermite), ("Stein", rules.stein)):
            after = rules.everywhere(rule, side) if side.has(Expectation) else None
            if after is not None and after != side and short(after - right if side is left else after - left) != 0:
                return name, side, after
    return None
