"""g = sum_k c_k/k! He_k = sum_k chat_k h_k,  E[g^2] = sum_k chat_k^2: a target as its Hermite series.

A coefficient with a closed form is exact; another one is the unevaluated node, with its value to any number of digits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from sympy import Add, Expr, Float, S, Symbol, sqrt

from hermitex.errors import BadInput, ConventionError, Divergent, HermitexError, NoClosedForm
from hermitex.hints import Axes, DataFrame, Formula, Variables
from hermitex.show.display import latex
from hermitex.symbolic.arithmetic import linspace, mp, mpf, nstr
from hermitex.symbolic.bounds.integrability import integrable
from hermitex.symbolic.deadline import deadline
from hermitex.symbolic.gaussian import E, Expectation
from hermitex.symbolic.series.coefficients import coefficients, has_nodes, target
from hermitex.symbolic.series.polynomials import He, Index, h, index_factorial, order_of

BASES = ("monic", "orthonormal")
SHOWN, SOON = 8, 1  # digits of a coefficient in a picture or a line, and the seconds that one may take in a line
_CHOOSE = ('say which basis: basis="monic" gives c_k = E[g He_k] with g = sum c_k/k! He_k; '
           'basis="orthonormal" gives c_k = E[g He_k]/sqrt(k!) with g = sum c_k h_k')


class EvaluatedCoefficient(NamedTuple):
    """A number to the digits asked and a bound on its error."""

    value: Any
    error: Any


@dataclass(frozen=True)
class Expansion:
    """The coefficients of a target up to a total order; see `expand`.

    Attributes
    ----------
    target, variables : g and the standard normals it depends on
    basis : "monic", c_k = E[g He_k], or "orthonormal", c_k = E[g He_k]/sqrt(k!)
    order : the highest (total) order
    coefficients : {k: expression}, or {(a_1, ..., a_r): expression} for several variables
    norm : E[g^2]; an unevaluated node where it has no closed form

    Guarantee
    ---------
    An exact coefficient equals the average; a numerical one has the digits shown. The remainder is E[g^2] less the terms. See
    docs/promise.md.

    >>> from hermitex.symbolic.series.expansion import expand
    >>> found = expand("z**3", order=3, basis="monic")
    >>> found.coefficients
    {0: 0, 1: 3, 2: 0, 3: 6}
    """

    target: Expr
    variables: tuple[Symbol, ...]
    basis: str
    order: int
    coefficients: Mapping[Index, Expr]
    norm: Expr
    _values: dict[tuple[Expr, int], EvaluatedCoefficient] = field(default_factory=dict, repr=False, compare=False)

    def __hash__(self) -> int:
        return hash((self.target, self.variables, self.basis, self.order))

    # -- reading ---------------------------------------------------------------------------------------------------
    def is_exact(self, index: Index) -> bool:
        """True if the coefficient is a closed form."""
        return not has_nodes(self.coefficients[index])

    def value(self, index: Index, digits: int = 15) -> Any:
        """The coefficient as a number of `digits` digits (mpmath)."""
        return self.numeric(self.coefficients[index], digits).value

    def error(self, index: Index, digits: int = 15) -> Any:
        """A bound on the error of `value`."""
        return self.numeric(self.coefficients[index], digits).error

    def numeric(self, expr: Expr, digits: int = 15) -> EvaluatedCoefficient:
        """Any constant of the expansion as a number with its error, computed once."""
        if expr.free_symbols:
            names = ", ".join(sorted(map(str, expr.free_symbols)))
            raise BadInput(f"{names} must be put in first for a number: expand(g.subs(...), ...)")
        if (expr, digits) not in self._values:
            from hermitex.symbolic.precise import evaluate_with_error

            self._values[expr, digits] = EvaluatedCoefficient(*evaluate_with_error(expr, digits))
        return self._values[expr, digits]

    def tail(self, k: int | None = None, digits: int = 15) -> Expr:
        """||P_{>k} g||^2 = E[g^2] - sum_{|a| <= k} c_a^2/a!: exact if all of it is, else a number of `digits` digits.

        The subtraction is done with so many more digits that `digits` of the difference are right; a difference that
        stays below 10**-100 of the norm is given as the bound it is known to be below, with one digit.

        Examples
        --------
        >>> from sympy import sign
        >>> from hermitex.symbols import z
        >>> expand(sign(z), order=1, basis="monic").tail()
        1 - 2/pi
        """
        k = self.order if k is None else self._up_to(k)
        parts = [self._square(a) for a in self.coefficients if _total(a) <= k]
        exact = self.norm - Add(*parts)
        exact = exact.expand() if exact.count_ops() < 2000 else exact
        if not has_nodes(exact) or exact.free_symbols:
            return exact
        return self._difference(parts, digits)

    def _difference(self, parts: list[Expr], digits: int) -> Float:
        for extra in (10, 40, 110):
            work = digits + extra
            with mp.workdps(work + 10):
                norm = self.numeric(self.norm, work)
                found = [self.numeric(p, work) for p in parts]
                value = norm.value - mp.fsum(v.value for v in found)
                error = norm.error + mp.fsum(v.error for v in found) + abs(norm.value)*mpf(10)**(-work)
                if abs(value)*mpf(10)**(-digits) >= error:
                    return Float(value, digits)
        return Float(abs(value) + error, 1)

    def _square(self, index: Index) -> Expr:
        scale = 1 if self.basis == "orthonormal" else index_factorial(index)
        return self.coefficients[index]**2/scale

    def _up_to(self, k: int) -> int:
        if order_of(k) > self.order:
            raise BadInput(f"the expansion stops at order {self.order}; call expand(g, order={k}, ...) for more")
        return int(k)

    # -- using -----------------------------------------------------------------------------------------------------
    def truncate(self, k: int | None = None) -> Expr:
        """The partial sum up to (total) order k, as an expression.

        Examples
        --------
        >>> from hermitex.symbols import z
        >>> expand(z**3, order=3, basis="monic").truncate(2)
        3*z
        """
        k = self.order if k is None else self._up_to(k)
        return Add(*(c*self._function(a) for a, c in self.coefficients.items() if _total(a) <= k and c != 0))

    def _function(self, index: Index) -> Expr:
        at = self.variables[0] if isinstance(index, int) else self.variables
        return h(index, at) if self.basis == "orthonormal" else He(index, at)/index_factorial(index)

    def evaluate(self, *points: Any, k: int | None = None, digits: int = 15) -> Any:
        """The partial sum at numbers or arrays, one for each variable, by the three-term recurrence.

        Any arithmetic will do: floats and NumPy arrays take float coefficients (to `digits`), mpmath numbers those of their own.
        """
        if len(points) != len(self.variables):
            raise BadInput(f"{len(points)} points for the variables {', '.join(map(str, self.variables))}")
        k = self.order if k is None else self._up_to(k)
        tables = [_orthonormal_table(p, k) for p in points]
        total: Any = 0*sum(points)
        for index, c in self.coefficients.items():
            if c == 0 or _total(index) > k:
                continue
            chat = c if self.basis == "orthonormal" else c/sqrt(index_factorial(index))
            term = self._number_like(index, chat, points[0], digits)
            for table, n in zip(tables, (index,) if isinstance(index, int) else index, strict=True):
                term = term*table[n]
            total = total + term
        return total

    __call__ = evaluate

    def _number_like(self, index: Index, chat: Expr, point: Any, digits: int) -> Any:
        if isinstance(point, Expr):
            return chat
        if hasattr(point, "_mpf_"):  # the digits that its own context works with
            return point.context.make_mpf(self.numeric(chat, point.context.dps).value._mpf_)
        if self._in_doubles is not None and isinstance(index, int) and not self.is_exact(index):
            return float(self._in_doubles.values[index])
        return float(self.numeric(chat, digits).value)

    @cached_property
    def _in_doubles(self) -> Any:
        """All coefficients on h_k in one pass, with errors that a partial sum does not feel; None where that is not to be had."""
        if len(self.variables) > 1 or self.target.free_symbols - {*self.variables} or self.target.has(Expectation):
            return None
        from hermitex.numbers.hermite_coefficients import coefficients as in_one_pass

        try:
            found = in_one_pass(self.target, self.variables[0], self.order)
        except HermitexError:  # each has a number of its own, or is refused with its reason
            return None
        real = found.values.dtype.kind == "f"
        return found if real and max(found.errors) < 1e-13*max(abs(found.values)) else None

    # -- showing ---------------------------------------------------------------------------------------------------
    def plot(self, ax: Axes | None = None, *, orders: Any = None) -> Axes:
        """g and its partial sums on the range that a standard normal visits; returns the axes.

        Of two variables the level lines of the partial sums are drawn over the target's levels in grey, by default of the
        last order alone; more variables have `plot_coefficients`.
        """
        from hermitex.numbers.program import Program
        from hermitex.show.plots import curves, level_lines

        if len(self.variables) > 2:
            raise BadInput("plot shows targets of one or two variables; plot_coefficients shows any")
        target = self.target.xreplace({n: Float(self.numeric(n).value) for n in self.target.atoms(Expectation)})
        g = Program(target, self.variables).digits
        plane = 2.5  # of pairs of standard normals, 24 in 25 are within a circle of 2.5
        if len(self.variables) == 2:
            grid = linspace(-plane, plane, 65)
            at = [float(p) for p in grid]
            first, second = (f"${latex(v)}$" for v in self.variables)
            sums = {f"order {k}": [[self.evaluate(p, q, k=k, digits=SHOWN) for p in at] for q in at]
                    for k in orders or [self.order]}
            return level_lines(at, at, [[g(p, q) for p in grid] for q in grid], sums, ax, xlabel=first, ylabel=second,
                               quantity=f"$g({first[1:-1]}, {second[1:-1]})$")
        if orders is None:
            nonzero = [_total(a) for a, c in self.coefficients.items() if c != 0]
            orders = sorted({*nonzero[:3], self.order})
        reach = 4  # a standard normal leaves [-4, 4] once in 16000
        points = linspace(-reach, reach, 241)
        lines = {"target": [g(p) for p in points]}
        lines |= {f"order {k}": [self.evaluate(float(p), k=k, digits=SHOWN) for p in points] for k in orders}
        name = self.variables[0].name
        return curves([float(p) for p in points], lines, ax, xlabel=f"${name}$", ylabel=f"$g({name})$", reference="target")

    def plot_coefficients(self, ax: Axes | None = None) -> Axes:
        """The absolute coefficients, order by order, on a logarithmic scale; returns the axes."""
        from hermitex.show.plots import stem

        values = [float(self.value(a, SHOWN)) for a in self.coefficients]
        label = r"$\hat c_k$" if self.basis == "orthonormal" else "$c_k$"
        return stem(list(self.coefficients), values, ax, ylabel=label, log=True)

    def to_dict(self, digits: int = 15) -> dict[str, Any]:
        """The keys of ``hermitex hermite --json``; up to 15 digits the values are floats, above that mpmath numbers."""
        rows = [{"order": a if isinstance(a, int) else list(a), "exact": self._text(c), "value": self._plain(c, digits)}
                for a, c in self.coefficients.items()]
        return {"target": self._text(self.target), "variables": [v.name for v in self.variables], "basis": self.basis,
                "coefficients": rows, "norm": self._plain(self.norm, digits), "tail": self._plain(self.tail(digits=digits), digits)}

    def _text(self, expr: Expr) -> str | None:
        from hermitex.symbolic.parsing import to_text

        return None if has_nodes(expr) and expr is not self.target else to_text(expr)

    def _plain(self, expr: Expr, digits: int) -> Any:
        """A float (or mpmath number); None if it has parameters."""
        if expr.free_symbols:
            return None
        value = self.numeric(expr, digits).value
        return float(value) if digits <= 15 else value

    def to_dataframe(self) -> DataFrame:
        """One row a coefficient: order, exact, value."""
        from hermitex.show.tables import to_dataframe

        rows = self.to_dict()["coefficients"]
        return to_dataframe({key: [row[key] for row in rows] for key in ("order", "exact", "value")}, index="order")

    def latex(self) -> str:
        """g = sum of coefficients and polynomials, as LaTeX without dollars."""
        terms = [_term(c, self._function_latex(a)) for a, c in self.coefficients.items() if c != 0]
        series = " + ".join(terms).replace("+ - ", "- ").replace("+ -", "- ") or "0"
        return f"{latex(self.target)} = {series} + \\cdots"

    def _function_latex(self, index: Index) -> str:
        letter, scale = ("h", 1) if self.basis == "orthonormal" else (r"\mathrm{He}", index_factorial(index))
        orders = (index,) if isinstance(index, int) else index
        factors = [f"{letter}_{{{n}}}({latex(v)})" for n, v in zip(orders, self.variables, strict=True) if n]
        return (f"\\frac{{1}}{{{scale}}} " if scale != 1 else "") + " ".join(factors)

    def _repr_latex_(self) -> str | None:
        try:
            return f"$\\displaystyle {self.latex()}$"
        except Exception:  # a notebook must show something else rather than fail
            return None

    def __repr__(self) -> str:
        letter = "h" if self.basis == "orthonormal" else "He"
        nonzero = [(a, c) for a, c in self.coefficients.items() if c != 0]
        series = ", ".join(f"{self._short(c)} {letter}_{a}" for a, c in nonzero[:4]) + (", ..." if len(nonzero) > 4 else "")
        return f"Expansion({self.target}; {self.basis}, order {self.order}: {series or 'all zero'})"

    def _short(self, expr: Expr) -> str:
        try:
            with deadline(SOON):
                return str(expr) if len(str(expr)) <= 8 else nstr(self.numeric(expr, SHOWN).value, 6)
        except HermitexError:
            return f"({expr})" if len(str(expr)) <= 40 else "(...)"


def expand(g: Formula, x: Variables | None = None, *, order: int = 8, basis: str | None = None) -> Expansion:
    """The Hermite expansion of a square-integrable target, exact where it can be.

    monic: c_k = E[g He_k], g = sum_k c_k/k! He_k;  orthonormal: c_k = E[g He_k]/sqrt(k!), g = sum_k c_k h_k.

    Parameters
    ----------
    g : expression, text, the name of an activation, or an `Activation`
    x : the variable(s); default: the z, z1, z2, ... in g
    order : highest (total) order
    basis : "monic" or "orthonormal"; without a default, since papers differ

    Returns
    -------
    Expansion

    Raises
    ------
    ConventionError : no basis, or an unknown one.
    Divergent : E[g^2] is infinite; the message says where it diverges.

    Guarantee
    ---------
    An exact coefficient equals the average; a numerical one has double precision. A target that is not square integrable is
    refused. See docs/promise.md.

    Examples
    --------
    >>> expand("z**4", order=4, basis="monic").coefficients
    {0: 3, 1: 0, 2: 12, 3: 0, 4: 24}
    >>> expand("relu(z)", order=2, basis="orthonormal").coefficients
    {0: sqrt(2)/(2*sqrt(pi)), 1: 1/2, 2: 1/(2*sqrt(pi))}
    """
    if basis not in BASES:
        raise ConventionError(_CHOOSE if basis is None else f"unknown basis {basis!r}: {_CHOOSE}")
    body, variables = target(g, x)
    _require_square_integrable(body, variables)
    found = coefficients(body, order, variables)
    if basis == "orthonormal":
        found = {a: c/sqrt(index_factorial(a)) for a, c in found.items()}
    return Expansion(body, variables, basis, order_of(order), found, _norm(body, variables))


def _require_square_integrable(body: Expr, variables: tuple[Symbol, ...]) -> None:
    if integrable(body, variables, power=2) is False:
        raise Divergent(E(body**2, *variables), "the target is not square integrable against the Gaussian: it has no "
                        "Hermite expansion, though single coefficients may exist (coefficient(g, k))")


def _norm(body: Expr, variables: tuple[Symbol, ...]) -> Expr:
    from hermitex.symbolic.integrals import closed_form, normal_form

    square = E(body**2, *variables)
    try:
        return closed_form(square) if has_nodes(square) else square
    except NoClosedForm:
        return normal_form(square)


def _total(index: Index) -> int:
    return index if isinstance(index, int) else sum(index)


def _orthonormal_table(x: Any, order: int) -> list[Any]:
    """h_0(x), ..., h_order(x): h_{k+1} = (x h_k - sqrt(k) h_{k-1})/sqrt(k+1), which does not overflow."""
    from math import sqrt as float_sqrt

    root = sqrt if isinstance(x, Expr) else x.context.sqrt if hasattr(x, "_mpf_") else float_sqrt
    table = [0*x + (S.One if isinstance(x, Expr) else 1), x]
    for k in range(1, order):
        table.append((x*table[k] - root(k)*table[k - 1])/root(k + 1))
    return table[:order + 1]


def _term(c: Expr, function: str) -> str:
    if function and c in (1, -1):
        return function if c == 1 else f"- {function}"
    return f"{_bracket(c)} {function}".strip()


def _bracket(expr: Expr) -> str:
    text = latex(expr)
    return rf"\left({text}\right)" if expr.is_Add else text
