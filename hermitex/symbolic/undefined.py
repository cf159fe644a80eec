"""f^(n)(u): the derivative of an undefined function as a function of its own, in place of Subs(Derivative(...)).

``Function('f')`` means any function of the theory until one is put in; its derivatives then print as in a paper.
"""

from __future__ import annotations

import copyreg
from collections.abc import Callable, Mapping
from typing import Any

import sympy
from sympy import Expr, Subs, Symbol
from sympy.core.function import AppliedUndef, UndefinedFunction

from hermitex.errors import BadInput
from hermitex.symbolic.gaussian import Expectation


class AppliedPrime(AppliedUndef):
    """f^(n)(u); its class knows `base` (f) and `order` (n)."""

    base: UndefinedFunction
    order: int

    def fdiff(self, argindex: int = 1) -> Expr:
        return prime(self.base, self.order + 1)(*self.args)

    def _eval_subs(self, old: Any, new: Any) -> Any:
        if old == self.base and callable(new):
            return _nth_derivative(new, self.order, self.args[0]._subs(old, new))
        return super()._eval_subs(old, new)

    def _sympystr(self, printer: Any) -> str:
        head = printer.derivative(self.base, self.order) if hasattr(printer, "derivative") else type(self).__name__
        return f"{head}({printer._print(self.args[0])})"

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        head = printer._print(Symbol(self.base.__name__))
        mark = r"\prime"*self.order if self.order <= 3 else f"({self.order})"
        body = rf"{head}^{{{mark}}}\left({printer._print(self.args[0])}\right)"
        return body if exp is None else rf"{body}^{{{exp}}}"


class _PrimeClass(UndefinedFunction):
    """The class of f^(n): equal for equal f and n."""

    def __new__(mcl, base: UndefinedFunction, order: int) -> Any:
        mark = "'"*order if order <= 3 else f"^({order})"
        obj = super().__new__(mcl, base.__name__ + mark, bases=(AppliedPrime,))
        obj.base, obj.order = base, order
        return obj

    def __init__(cls, base: UndefinedFunction, order: int) -> None:
        super().__init__(cls.__name__, nargs=1)

    def __eq__(cls, other: object) -> bool:
        return isinstance(other, _PrimeClass) and (cls.base, cls.order) == (other.base, other.order)

    def __hash__(cls) -> int:
        return hash((cls.base, cls.order))


# The class of an undefined function is nowhere to be imported from: it pickles as its name and what is assumed of it.
copyreg.pickle(UndefinedFunction, lambda f: (_undefined, (f.__name__, f._kwargs)))
copyreg.pickle(_PrimeClass, lambda f: (prime, (f.base, f.order)))


def _undefined(name: str, given: Mapping[str, Any]) -> Any:
    return UndefinedFunction(name, **given)


def prime(f: UndefinedFunction, order: int = 1) -> Any:
    """The function f^(order) of an undefined function f of one argument.

    Examples
    --------
    >>> from sympy import Function
    >>> from hermitex.symbols import z
    >>> f = Function("f")
    >>> prime(f)(2*z), prime(f)(2*z).diff(z)
    (f'(2*z), 2*f''(2*z))
    """
    if isinstance(f, _PrimeClass):
        f, order = f.base, f.order + order
    return _PrimeClass(f, order) if order else f


def Derivative(f: Any, *variables: Any, **hints: Any) -> Any:
    """``Derivative(f)``, or ``Derivative(f, n)``, of an undefined function is a function; else SymPy's Derivative.

    Guarantee
    ---------
    A proof with an undefined function holds for every function for which the averages exist. See docs/promise.md.

    Examples
    --------
    >>> from sympy import Function, Symbol
    >>> Derivative(Function("f"))(Symbol("x"))
    f'(x)

    Of a named function it is its weak derivative, a function too:

    >>> from hermitex.symbolic.activations import NAMED
    >>> Derivative(NAMED["erf"])(Symbol("x"))
    2*exp(-x**2)/sqrt(pi)

    Raises
    ------
    BadInput : f is neither a function nor an expression.
    """
    if isinstance(f, UndefinedFunction):
        return prime(f, *(int(n) for n in variables))
    if isinstance(f, sympy.Basic):
        return sympy.Derivative(f, *variables, **hints)
    if not callable(f):
        raise BadInput(f"Derivative: a function such as hx.tanh or Function('f') is needed, not {f!r}")
    order = int(variables[0]) if variables else 1
    return lambda u: _nth_derivative(f, order, sympy.sympify(u, strict=True))


def undefined_functions(expr: Expr) -> tuple[UndefinedFunction, ...]:
    """The undefined functions (not their derivatives) that occur in it, by name."""
    found = {_base(e)[0] for e in expr.atoms(AppliedUndef)}
    return tuple(sorted(found, key=lambda f: f.__name__))


def one_function(*exprs: Expr) -> dict[UndefinedFunction, UndefinedFunction]:
    """{function: the one that its name means} if several undefined functions have one name: the one with the most assumptions."""
    groups: dict[str, set[UndefinedFunction]] = {}
    for expr in exprs:
        for f in undefined_functions(expr):
            groups.setdefault(f.__name__, set()).add(f)
    return {f: max(group, key=lambda g: len([v for v in g._kwargs.values() if v is not None]))
            for group in groups.values() if len(group) > 1 for f in group}


def arguments(expr: Expr, f: UndefinedFunction) -> int:
    """How many arguments f has, at most."""
    return max((len(e.args) for e in expr.atoms(AppliedUndef) if _base(e)[0] == f), default=1)


def is_slope(e: Any) -> bool:
    """Is it a partial derivative of an undefined function, at any arguments?"""
    inside = e.expr if isinstance(e, Subs) else e
    return isinstance(inside, sympy.Derivative) and isinstance(inside.expr, AppliedUndef) and inside.derivative_count.is_Integer


def _base(applied: AppliedUndef) -> tuple[UndefinedFunction, int]:
    cls = applied.func
    return (cls.base, cls.order) if isinstance(cls, _PrimeClass) else (cls, 0)


def tidy(expr: Expr) -> Expr:
    """Write SymPy's Derivative(f(x), x) and Subs(Derivative(f(xi), xi), xi, u) as f'(x) and f'(u)."""
    if expr.has(Subs):
        expr = expr.replace(_is_subs, _from_subs)
    if expr.has(sympy.Derivative):
        expr = expr.replace(_is_derivative, lambda d: prime(d.expr.func, d.derivative_count)(d.expr.args[0]))
    return expr


def _is_derivative(e: Any) -> bool:
    return (isinstance(e, sympy.Derivative) and isinstance(e.expr, AppliedUndef) and len(e.expr.args) == 1
            and e.derivative_count.is_Integer and set(e.variables) == {e.expr.args[0]})


def _is_subs(e: Any) -> bool:
    inside = isinstance(e, Subs) and len(e.variables) == 1 and e.expr
    return isinstance(inside, AppliedPrime) or _is_derivative(inside)


def _from_subs(e: Subs) -> Expr:
    inner = tidy(e.expr)
    return inner.xreplace({e.variables[0]: e.point[0]})


def slopes_done(expr: Expr) -> Expr:
    """Derivatives of what is known, and what is put into them, done within averages, where a jump counts.

    Examples
    --------
    >>> from sympy import Derivative, sign
    >>> from hermitex.symbolic.gaussian import E
    >>> from hermitex.symbols import z
    >>> slopes_done(E(Derivative(sign(z), z), z))
    E(2*DiracDelta(z), z)
    """
    if not expr.has(sympy.Derivative, Subs):
        return expr

    def undone(e: Any) -> bool:
        return isinstance(e, sympy.Derivative | Subs)

    def within(node: Any) -> Expr:
        body, variables = node.open()
        return node.with_body(tidy(body).replace(undone, _done), variables)

    return expr.replace(lambda e: isinstance(e, Expectation) and e.has(sympy.Derivative, Subs), within)


def _done(e: Any) -> Expr:
    if e.has(AppliedUndef):   # by the chain rule: 2*z*f'(z**2)
        return tidy(e.doit(deep=False))
    if isinstance(e, Subs) or not all(isinstance(v, Symbol) and n.is_Integer for v, n in e.variable_count):
        return e.doit(deep=False)
    from hermitex.symbolic.weak import weak_derivative

    value = e.expr
    for v, n in e.variable_count:
        for _ in range(int(n)):
            value = weak_derivative(value, v)
    return value


def _is_by_a_function(e: Any) -> bool:
    return isinstance(e, sympy.Derivative) and not all(isinstance(v, Symbol) for v, _ in e.variable_count)


def _by_letters(e: sympy.Derivative) -> Expr:
    """d f(x, g(x))/d g(x) as the slope by a letter, for which g(x) is put in afterwards."""
    letters = {v: sympy.Dummy(real=True) for v in e.variables if not isinstance(v, Symbol)}
    slope = sympy.Derivative(e.expr.xreplace(letters), *((letters.get(v, v), n) for v, n in e.variable_count))
    return Subs(slope, tuple(letters.values()), tuple(letters))


def put(expr: Expr, functions: Mapping[UndefinedFunction, Callable[..., Any]]) -> Expr:
    """The expression with concrete functions in the place of undefined ones, derivatives (weak ones) included.

    Examples
    --------
    >>> from sympy import Function, sin
    >>> from hermitex.symbols import z
    >>> f = Function("f")
    >>> put(z*f(z) - prime(f)(2*z), {f: sin})
    z*sin(z) - cos(2*z)
    """
    def value(e: AppliedUndef) -> Expr:
        base, order = _base(e)
        return functions[base](*e.args) if order == 0 else _nth_derivative(functions[base], order, e.args[0])

    slopes = expr.has(sympy.Derivative, Subs)
    if slopes:
        expr = expr.replace(_is_by_a_function, _by_letters)
    expr = tidy(expr).replace(lambda e: isinstance(e, AppliedUndef) and _base(e)[0] in functions, value)
    return expr.replace(lambda e: isinstance(e, sympy.Derivative | Subs), _done) if slopes else expr


def put_at(expr: Expr, point: Mapping[Any, Expr], functions: Mapping[UndefinedFunction, Callable[..., Any]]) -> Expr:
    """The same with numbers for the parameters; functions come first where a partial derivative in one of these is left."""
    def done(e: Expr) -> Expr:
        return put(e, functions).xreplace(dict(point)) if e.has(sympy.Derivative, Subs) else put(e.xreplace(dict(point)), functions)

    return _compared(done, expr)


def at_numbers(expr: Expr, point: Mapping[Any, Expr]) -> Expr:
    """Numbers for letters.

    >>> from sympy import Max, erf
    >>> from hermitex.symbols import kappa
    >>> at_numbers(Max(0, erf(kappa) - erf(500)), {kappa: sympy.Integer(600)}).func
    <class 'sympy.core.add.Add'>
    """
    return _compared(lambda e: e.xreplace(dict(point)), expr)


def _compared(done: Callable[[Expr], Expr], expr: Expr) -> Expr:
    """SymPy refuses Max(0, erf(600) - erf(500)), whose digits it does not find, and takes the absolute value of it."""
    try:
        return done(expr)
    except ValueError:
        return done(expr.replace(lambda e: isinstance(e, sympy.Max | sympy.Min), lambda e: e.rewrite(sympy.Abs)))


def _nth_derivative(function: Callable[[Any], Any], order: int, at: Expr) -> Expr:
    from hermitex.symbolic.weak import weak_derivative

    if order == 0:
        return function(at)
    x = sympy.Dummy("x", real=True)
    value = function(x)
    for _ in range(order):
        value = tidy(weak_derivative(value, x))
    return value.subs(x, at)
