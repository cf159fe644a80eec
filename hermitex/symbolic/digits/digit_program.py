"""f(x) = op_n(... op_2(op_1(x))): an expression as a straight-line program over numbers of any kind.

Equal subexpressions are computed once, and what no variable enters once per precision. The kind of number (mpmath's
mpf, flint's acb balls) is a `Backend`; a program never knows which one it runs on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from sympy import Add, Dummy, E, Expr, Function, Max, Min, Mul, Piecewise, Pow, Symbol, atanh, erf, erfc, log

from hermitex.errors import NoClosedForm
from hermitex.symbolic.breaks.switches import margin
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.gaussian import Expectation

Values = list[Any]
Step = Callable[[Values, bool], Any]


class Backend(Protocol):
    """What a kind of number must be able to do; `analytic` asks for a non-finite answer where f is not analytic."""

    def constant(self, expr: Expr) -> Any:
        """The value of a number, a named constant or an algebraic root, at the precision in force."""
        ...

    def power(self, base: Any, exponent: Any, integer: int | None, analytic: bool) -> Any:
        """base**exponent; `integer` where the exponent is one."""
        ...

    def function(self, expr: Expr) -> Callable[..., Any] | None:
        """A callable (*arguments, analytic=) for the head of `expr`, or None if it is not known."""
        ...

    def choose(self, conditions: Sequence[Any], branches: Sequence[Any], analytic: bool) -> Any:
        """The branch of the first condition that holds; conditions are numbers that are positive where they hold."""
        ...

    def node(self, node: Expectation, variables: Sequence[Symbol]) -> Callable[..., Any]:
        """A callable (*variables, analytic=) for an expectation inside the expression."""
        ...


class StraightLine:
    """A compiled expression: ``StraightLine(expr, variables, backend)(*values, analytic=False)``.

    Examples
    --------
    >>> from hermitex.symbols import z
    >>> from hermitex.symbolic.precise import MPMATH
    >>> from sympy import exp
    >>> from hermitex.symbolic.arithmetic import mpf
    >>> StraightLine(1 + exp(z - 1)**2, [z], MPMATH)(mpf(1))
    mpf('2.0')
    """

    def __init__(self, expr: Expr, variables: Sequence[Symbol], backend: Backend) -> None:
        self.expr, self.backend, self.variables = expr, backend, tuple(variables)
        self._slots: dict[Any, int] = {v: i for i, v in enumerate(self.variables)}
        self._fixed: list[tuple[int, Step]] = []
        self._steps: list[tuple[int, Step]] = []
        self._size = len(self.variables)
        self._enter = {i: frozenset([v]) for v, i in self._slots.items()}  # the variables that enter a slot
        self._met: frozenset[Any] = frozenset()  # those that enter what is compiled now
        self._moving: dict[Any, list[tuple[int, Step]]] = {}
        self._out = self._slot(expr)
        self._values: Values = []

    def prepare(self) -> StraightLine:
        """Compute everything that no variable enters, at the precision now in force."""
        values: Values = [None] * self._size
        for slot, step in self._fixed:
            values[slot] = step(values, False)
        self._values = values
        return self

    def __call__(self, *arguments: Any, analytic: bool = False) -> Any:
        if not self._values:
            self.prepare()
        values = self._values
        values[: len(arguments)] = arguments
        for slot, step in self._steps:
            values[slot] = step(values, analytic)
        return values[self._out]

    def kept(self) -> Values:
        """All values of the last call, for `moved`."""
        return list(self._values)

    def moved(self, before: Values, variable: Symbol, value: Any) -> Any:
        """The value with another number for one variable, computed where that stands: the rest is as it was."""
        if variable not in self._slots:
            return before[self._out]
        if variable not in self._moving:
            self._moving[variable] = [step for step in self._steps if variable in self._enter[step[0]]]
        values = before.copy()
        values[self._slots[variable]] = value
        for slot, step in self._moving[variable]:
            values[slot] = step(values, False)
        return values[self._out]

    # -- compiling -------------------------------------------------------------------------------------------------
    def _slot(self, expr: Any) -> int:
        if expr in self._slots:
            self._met |= self._enter[self._slots[expr]]
            return self._slots[expr]
        checkpoint("compiling an expression")
        before, self._met = self._met, frozenset()
        step = self._step(expr)
        if isinstance(expr, Expectation):  # it is given all variables, whether or not they stand in it
            self._met = frozenset(expr.free_symbols & set(self.variables))
        slot, self._size = self._size, self._size + 1
        (self._steps if self._met else self._fixed).append((slot, step))
        self._slots[expr], self._enter[slot] = slot, self._met
        self._met |= before
        return slot

    def _step(self, expr: Any) -> Step:
        backend = self.backend
        if isinstance(expr, Expectation):
            return self._call(backend.node(expr, self.variables), list(self.variables))
        if isinstance(expr, Add):
            if (tail := _tail(expr)) is not None:
                return self._of_tail(*tail)
            return _fold(_plus, [self._slot(a) for a in expr.args])
        if isinstance(expr, Mul):
            return self._product(expr)
        if isinstance(expr, Pow) and expr.base != E:
            return self._power(expr)
        if isinstance(expr, Piecewise):
            return self._piecewise(expr)
        if isinstance(expr, log) and (tail := _tail(1 - expr.args[0])) is not None:
            return self._log_beside(expr, self._of_tail(*tail))
        if isinstance(expr, Symbol):
            raise NoClosedForm(self.expr, f"{expr} has no value", f"Give it one: subs={{'{expr}': ...}}")
        if not expr.args or not isinstance(expr, (Function, Pow, Max, Min)) or expr.is_Number:
            return lambda values, analytic: backend.constant(expr)
        function = backend.function(expr)
        if function is None:
            raise NoClosedForm(expr, f"no numeric rule is known for {expr.func.__name__}")
        return self._call(function, [expr.exp] if isinstance(expr, Pow) else list(expr.args))

    def _call(self, function: Callable[..., Any], arguments: list[Expr]) -> Step:
        slots = [self._slot(a) for a in arguments]
        if len(slots) == 1:
            (a,) = slots
            return lambda values, analytic: function(values[a], analytic=analytic)
        return lambda values, analytic: function(*[values[s] for s in slots], analytic=analytic)

    def _of_tail(self, factor: Expr, side: int, u: Expr) -> Step:
        """c erfc(+-u), which has its digits where 1 - erf(u) has none; SymPy writes erfc(-u) as 2 - erfc(u)."""
        slot, c = self._slot(u), self._slot(factor)
        function = self.backend.function(erfc(Dummy()))
        assert function is not None
        if side > 0:
            return lambda values, analytic: values[c] * function(values[slot], analytic=analytic)
        return lambda values, analytic: values[c] * function(-values[slot], analytic=analytic)

    def _log_beside(self, expr: Expr, left: Step) -> Step:
        """log(1 - left) = -2 atanh(left/(2 - left)) where 1 - left would be rounded to 1: log(erfc(u)/2) at negative u."""
        slot, function, near = self._slot(expr.args[0]), self.backend.function(expr), self.backend.function(atanh(Dummy()))
        assert function is not None and near is not None

        def step(values: Values, analytic: bool) -> Any:
            if abs(s := left(values, analytic)) < 0.5:
                return -2 * near(s / (2 - s), analytic=analytic)
            return function(values[slot], analytic=analytic)

        return step

    def _product(self, expr: Mul) -> Step:
        """Numerator over denominator: one division, not one inversion a factor."""
        above, below = [], []
        for factor in expr.args:
            if isinstance(factor, Pow) and factor.exp.is_Integer and factor.exp < 0:
                below.append(self._slot(factor.base ** -factor.exp))
            else:
                above.append(self._slot(factor))
        if not below:
            return _fold(_times, above)
        bottom = _fold(_times, below)
        if not above:
            one = self.backend.constant(Mul())
            return lambda values, analytic: one / bottom(values, analytic)
        top = _fold(_times, above)
        return lambda values, analytic: top(values, analytic) / bottom(values, analytic)

    def _power(self, expr: Pow) -> Step:
        backend, base = self.backend, self._slot(expr.base)
        if expr.exp.is_Integer:
            n = int(expr.exp)
            return lambda values, analytic: backend.power(values[base], None, n, analytic)
        exponent = self._slot(expr.exp)
        return lambda values, analytic: backend.power(values[base], values[exponent], None, analytic)

    def _piecewise(self, expr: Piecewise) -> Step:
        backend = self.backend
        branches = [self._slot(branch) for branch, _ in expr.args]
        margins = [self._slot(margin(condition)) for _, condition in expr.args]
        return lambda values, analytic: backend.choose([values[c] for c in margins], [values[b] for b in branches],
                                                       analytic)


def _tail(expr: Add) -> tuple[Expr, int, Expr] | None:
    """(c, side, u) with expr = c erfc(side u), of c - c erf(u), c + c erf(u) and 2 c - c erfc(u); None of others."""
    c, rest = expr.as_coeff_Add()
    b, f = rest.as_coeff_Mul()
    if isinstance(f, erf) and c in (b, -b):
        return c, 1 if c == -b else -1, f.args[0]
    return (-b, -1, f.args[0]) if isinstance(f, erfc) and c == -2*b else None


def _plus(a: Any, b: Any) -> Any:
    return a + b


def _times(a: Any, b: Any) -> Any:
    return a * b


def _fold(combine: Callable[[Any, Any], Any], slots: list[int]) -> Step:
    head, *rest = slots

    def step(values: Values, analytic: bool) -> Any:
        total = values[head]
        for slot in rest:
            total = combine(total, values[slot])
        return total

    return step
