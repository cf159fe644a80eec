"""Expressions -> source of NumPy: stable, batched, and with as few operations as the formula needs.

x**3 is x*x*x (a general power costs 15 times as much), a polynomial of degree above 4 is written in Horner's form, and
what overflows or cancels is written in the functions of `recognition`. Functions that NumPy lacks come from
scipy.special, and only those are imported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import pairwise
from math import isinf
from typing import Any, Protocol

from sympy import Add, Expr, Float, Integer, Mul, Pow, Rational, S, Symbol, default_sort_key
from sympy.printing.printer import Printer as SymPyPrinter

from hermitex.errors import BadInput, NoClosedForm
from hermitex.kernels.recognition import recognise
from hermitex.symbolic.conditioning import no_mass
from hermitex.symbolic.text.bounded_powers import short

_NUMPY = {
    "exp": "exp", "log": "log", "sin": "sin", "cos": "cos", "tan": "tan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh",
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
    "Abs": "abs", "sign": "sign", "floor": "floor", "ceiling": "ceil", "Max": "maximum", "Min": "minimum", "atan2": "arctan2",
    "logaddexp": "logaddexp", "modulus": "abs", "log1p": "log1p", "expm1": "expm1",
}
_RECIPROCALS = {"sec": "cos", "csc": "sin", "cot": "tan", "sech": "cosh", "csch": "sinh", "coth": "tanh"}
_INVERSES = {"asec": "arccos", "acsc": "arcsin", "acot": "arctan", "asech": "arccosh", "acsch": "arcsinh", "acoth": "arctanh"}
_SCIPY = {
    "erf": "erf", "erfc": "erfc", "tail": "erfc", "erfi": "erfi", "erfinv": "erfinv", "erfcinv": "erfcinv",
    "gamma": "gamma", "loggamma": "gammaln",
    "OwenT": "owens_t", "besselk": "kv", "besseli": "iv", "besselj": "jv", "bessely": "yv", "digamma": "digamma",
    "polygamma": "polygamma", "beta": "beta", "zeta": "zeta", "Ei": "expi", "expit": "expit", "ndtr": "ndtr",
    "log_ndtr": "log_ndtr",
}
#: SymPy's name -> (functions of scipy.special, how they are put together; {0}, {1}, ... are the arguments)
_COMPOSED = {
    "LogFactorial": (("gammaln",), "gammaln({0} + 1)"),
    "factorial": (("gamma",), "gamma_function({0} + 1)"),
    "uppergamma": (("gamma", "gammaincc"), "gamma_function({0})*gammaincc({0}, {1})"),
    "lowergamma": (("gamma", "gammainc"), "gamma_function({0})*gammainc({0}, {1})"),
    "LambertW": (("lambertw",), "np.real(lambertw({0}))"),
    "ReErf": (("erf",), "np.real(erf({0} + 1j*({1})))"),
    "ImErf": (("erf",), "np.imag(erf({0} + 1j*({1})))"),
    "exp_re_erf": ((), "np.real(exp_erf({0}, {1} + 1j*({2})))"),
    "exp_im_erf": ((), "np.imag(exp_erf({0}, {1} + 1j*({2})))"),
    "SignCorrelation": ((), "sign_correlation({0}, {1}, {2})"),
    "above": ((), "np.square(np.maximum({0}, 0.0))"),
    "below": ((), "np.square(np.minimum({0}, 0.0))"),
    "log1mexp": ((), "np.where({0} > -0.7, np.log(-np.expm1({0})), np.log1p(-np.exp({0})))"),
    "gated": ((), "np.where({1} >= 0, {0}, 0.0)"),
    "rise": ((), "np.maximum({0}, 0.0)"),
    "frac": ((), "np.mod({0}, 1)"),
    "Mod": ((), "np.mod({0}, {1})"),
}
HYPERGEOMETRIC = {(0, 1): "hyp0f1", (1, 1): "hyp1f1", (2, 1): "hyp2f1"}
_ALIASES = {"gamma": "gamma_function", "beta": "beta_function", "zeta": "zeta_function"}  # parameters bear these names
#: Functions of the generated module, by the name of their node.
_HELPERS = ("far_mode", "nonzero", "exp_erfc", "exp_erfi", "logaddexp_at", "tame_erfc", "tame_expm1")
#: Names of SciPy's functions as generated source may call them.
SPECIAL = frozenset({_ALIASES.get(n, n) for n in (*_SCIPY.values(), *HYPERGEOMETRIC.values(),
                                                  *(n for needs, _ in _COMPOSED.values() for n in needs))})

_FORMS = " ".join(form for _, form in _COMPOSED.values())
#: Functions and constants of NumPy that it may call, and the functions of generated modules.
NUMPY = frozenset({*_NUMPY.values(), *_RECIPROCALS.values(), *_INVERSES.values(), *re.findall(r"np\.(\w+)", _FORMS), "heaviside",
                   "float64", "divide", "logical_not", "maximum", "power", "sqrt", "square", "where", "broadcast_arrays", "ravel"})
CONSTANTS = frozenset({"e", "inf", "nan", "pi"})


class Printer(Protocol):
    """What a target language must give: the source of an expression, and the imports it used."""

    def doprint(self, expr: Expr) -> str:
        """The source of one expression."""

    def imports(self) -> list[str]:
        """Import lines for all that was printed."""


class NumPyPrinter(SymPyPrinter):
    """Expressions to NumPy source. `rename` maps symbols to identifiers.

    >>> from sympy.abc import x
    >>> from sympy import erfc, exp
    >>> NumPyPrinter().doprint(x**6 - 15*x**4 + 45*x**2 - 15)
    'x*x*(x*x*(x*x - 15) + 45) - 15'
    """

    printmethod = "_numpycode"

    def __init__(self, rename: Callable[[Any], str] | None = None) -> None:
        super().__init__()
        self._rename = rename or (lambda s: s.name)
        self.width: Callable[[Expr], float] = lambda e: 0.0  # of the array that an expression is: narrow factors come first
        self.special: set[str] = set()
        self.solvers: dict[Any, tuple[str, str]] = {}  # a loss -> the name and source of its minimiser, likewise

    def imports(self) -> list[str]:
        """Import lines for all that was printed."""
        lines = ["import numpy as np"]
        if self.special:
            names = [f"{n} as {_ALIASES[n]}" if n in _ALIASES else n for n in sorted(self.special)]
            lines.append(f"from scipy.special import {', '.join(names)}")
        return lines

    def doprint(self, expr: Expr, assign_to: Any = None) -> str:
        """The source of one expression."""
        return self._print(recognise(expr))

    def emptyPrinter(self, e: Any) -> str:
        """Refuse an expression without source: SymPy's own printers would write it as if it had some."""
        raise NoClosedForm(e, f"{type(e).__name__} has no numeric form in the generated code", "Put an expression in for it")

    # -- atoms -----------------------------------------------------------------------------------------------------
    def _print_Symbol(self, e: Any) -> str:
        return self._rename(e)

    _print_Dummy = _print_Bound = _print_Symbol

    def _print_Rational(self, e: Any) -> str:
        exact = max(abs(e.p), e.q) < 2**53
        return (str(e.p) if e.q == 1 else f"{e.p}/{e.q}") if exact else self._print_Float(e)

    def _print_int(self, e: Any) -> str:
        return self._print_Rational(Integer(e))

    _print_Integer = _print_Rational

    def _print_Float(self, e: Any) -> str:
        value = float(e)
        if isinf(value):
            raise BadInput(f"{short(e)} is beyond the largest number that a float holds, 1.8e308; measure in another unit")
        return repr(value)

    _print_ComplexRootOf = _print_Float

    def _print_NumberSymbol(self, e: Any) -> str:
        return {"pi": "np.pi", "E": "np.e"}.get(str(e)) or self._print_Float(e)

    _print_Pi = _print_Exp1 = _print_EulerGamma = _print_Catalan = _print_GoldenRatio = _print_NumberSymbol

    def _print_Infinity(self, e: Any) -> str:
        return "np.inf"

    def _print_NegativeInfinity(self, e: Any) -> str:
        return "(-np.inf)"

    def _print_NaN(self, e: Any) -> str:
        return "np.nan"

    def _print_Prox(self, e: Any) -> str:
        from hermitex.kernels.proximal import function_source

        return self._call("prox", e.loss, e.args[1:], lambda name: function_source(name, e.loss, self.doprint, self._rename))

    def _print_Conditioned(self, e: Any) -> str:
        from hermitex.kernels.correlated_fields import function_source

        factors, *numbers = e.args
        return self._call("fields", factors, numbers, lambda name: function_source(name, factors, self.doprint))

    def _call(self, kind: str, key: Any, args: Iterable[Any], source: Callable[[str], str]) -> str:
        """A call of a function of the generated module, which is written when it is first called for."""
        if key not in self.solvers:
            name = f"{kind}_{len(self.solvers) + 1}"
            self.solvers[key] = (name, source(name))
        return f"{self.solvers[key][0]}({', '.join(map(self._print, args))})"

    # -- arithmetic --------------------------------------------------------------------------------------------------
    def _print_Add(self, e: Any, order: Any = None) -> str:
        if (steep := _steep(e)) is not None:
            slope, x, zero = steep
            return f"{self._factor(slope)}*({_sum([self._print(x), self._print(Float(-zero))])})"
        polynomial = _polynomial(e)
        if polynomial is None:
            return _sum([self._print(a) for a in e.args])
        x, coefficients, rest = polynomial
        return _sum([self._horner(x, coefficients), *(self._print(a) for a in rest)])

    def _horner(self, x: Expr, coefficients: dict[int, Expr]) -> str:
        """c_n x^n + ... + c_0 from the highest power down."""
        powers = sorted(coefficients, reverse=True)
        text, sums = self._print(coefficients[powers[0]]), isinstance(coefficients[powers[0]], Add)
        for high, low in pairwise([*powers, 0]):
            if high > low:
                factor = self._power(x, high - low)
                sign, text = ("-", text[1:]) if text.startswith("-") and not sums else ("", text)
                text = f"{sign}{factor}" if text == "1" else f"{sign}{factor}*({text})" if sums else f"{sign}{text}*{factor}"
            if low in coefficients and high != low:
                text, sums = _sum([text, self._print(coefficients[low])]), True
        return text

    def _print_Mul(self, e: Any) -> str:
        coefficient, rest = e.as_coeff_Mul()
        above, below = [], []
        if coefficient.is_Rational:
            above += [self._print(Integer(abs(coefficient.p)))] if abs(coefficient.p) != 1 else []
            below += [self._print(Integer(coefficient.q))] if coefficient.q != 1 else []
        else:
            above.append(self._print(abs(coefficient)))
        inverses = [a for a in Mul.make_args(rest) if isinstance(a, Pow) and a.exp.is_Rational and a.exp.is_negative]
        factors = sorted((a for a in Mul.make_args(rest) if a not in inverses and a != 1), key=self.width)
        for a in sorted(inverses, key=self.width):
            inverse = a.base if a.exp == -1 else Pow(a.base, -a.exp, evaluate=False)
            below.append(_closed(self._print(inverse)) if isinstance(inverse, Mul) else self._factor(inverse))
        # a*F/b is a/b*F where F is wider than a and b: one product along it, and no quotient
        widest = max(map(self.width, inverses), default=0.0)
        narrow = [a for a in factors if self.width(a) <= widest] if below else factors
        above += map(self._factor, narrow)
        if not above:
            narrow = factors
            above += map(self._factor, narrow)
        text = "*".join(above) or "1"
        if below:
            text += f"/{_closed('*'.join(below))}"
        text = "*".join([text, *map(self._factor, factors[len(narrow):])])
        return f"-{text}" if coefficient.is_negative else text

    def _factor(self, e: Any) -> str:
        """A factor of a product, in parentheses where it needs them."""
        text = self._print(e)
        return f"({text})" if isinstance(e, Add) or text.startswith("-") or ("/" in text and isinstance(e, Pow)) else text

    def _print_Pow(self, e: Any) -> str:
        base, exponent = e.args
        if exponent.is_Rational and exponent.q <= 2:
            whole, half = divmod(abs(exponent.p), exponent.q)
            parts = ([self._power(base, whole)] if whole else []) + ([f"np.sqrt({self._print(base)})"] if half else [])
            text = "*".join(parts)
            return text if exponent > 0 else f"1/{_closed(text)}"
        return f"np.power({self._print(base)}, {self._print(exponent)})"

    def _power(self, base: Expr, n: int) -> str:
        """base**n for a whole number n >= 1."""
        text = self._print(base)
        if n == 1:
            return text if base.is_Symbol or base.is_Function or (base.is_Integer and base >= 0) else f"({text})"
        highest = 4  # x*x*x*x is quicker than x**4 and as easy to read
        if base.is_Symbol and n <= highest:
            return "*".join([text] * n)
        return f"np.square({text})" if n == 2 else f"power({text}, {n})"

    # -- functions ---------------------------------------------------------------------------------------------------
    def _print_Function(self, e: Any) -> str:
        name = type(e).__name__
        arguments = [self._print(a) for a in e.args]
        if name in _NUMPY:
            return f"np.{_NUMPY[name]}({', '.join(arguments)})"
        if name in _RECIPROCALS:
            return f"(1/np.{_RECIPROCALS[name]}({arguments[0]}))"
        if name in _INVERSES:
            return f"np.{_INVERSES[name]}(1/({arguments[0]}))"
        if name == "polygamma" and e.args[0] == 0:
            name, arguments = "digamma", arguments[1:]
        if name in _SCIPY:
            function = _SCIPY[name]
            self.special.add(function)
            return f"{_ALIASES.get(function, function)}({', '.join(arguments)})"
        if name in _COMPOSED and len(arguments) == 1 + max(k for k in range(3) if f"{{{k}}}" in _COMPOSED[name][1]):
            needs, form = _COMPOSED[name]
            self.special.update(needs)
            return form.format(*arguments)
        if name in _HELPERS:
            return f"{name}({', '.join(arguments)})"
        if name == "DiracDelta":
            raise no_mass(e)
        raise NoClosedForm(e, f"{name} has no numeric form", "Put an expression in for it: .subs or .substitute")

    _print_Abs = _print_sign = _print_exp = _print_log = _print_Function

    def _print_ExpBase(self, e: Any) -> str:
        return f"np.exp({self._print(e.args[0])})"

    def _print_hyper(self, e: Any) -> str:
        name = HYPERGEOMETRIC.get((len(e.ap), len(e.bq)))
        if name is None:
            raise NoClosedForm(e, f"the hypergeometric function {len(e.ap)}F{len(e.bq)} has no numeric form",
                               "Put an expression in for it")
        self.special.add(name)
        return f"{name}({', '.join(self._print(a) for a in (*e.ap, *e.bq, e.argument))})"

    def _print_Max(self, e: Any) -> str:
        # A number comes last, the rest in a fixed order: SymPy keeps a set.
        arguments = [self._print(a) for a in sorted(e.args, key=lambda a: (a.is_number, default_sort_key(a)))]
        text = arguments[0]
        for a in arguments[1:]:
            text = f"np.{_NUMPY[type(e).__name__]}({text}, {a})"
        return text

    _print_Min = _print_Max

    def _print_largest(self, e: Any) -> str:
        text = self._print(e.args[0])
        for a in e.args[1:]:
            text = f"np.maximum({text}, {self._print(a)})"
        return text

    def _print_Heaviside(self, e: Any) -> str:
        middle = self._print(e.args[1]) if len(e.args) > 1 and e.args[1].is_number and e.args[1].is_finite else "1/2"
        return f"np.heaviside({self._print(e.args[0])}, {middle})"

    def _print_Piecewise(self, e: Any) -> str:
        text = "np.nan"
        for branch, condition in reversed(e.args):
            value = self._print(branch)
            text = value if condition == S.true else f"np.where({self._print(condition)}, {value}, {text})"
        return text

    def _print_ITE(self, e: Any) -> str:
        return f"np.where({', '.join(map(self._print, e.args))})"

    # -- conditions --------------------------------------------------------------------------------------------------
    def _print_Relational(self, e: Any) -> str:
        return f"({self._print(e.lhs)} {e.rel_op} {self._print(e.rhs)})"

    _print_StrictGreaterThan = _print_GreaterThan = _print_StrictLessThan = _print_LessThan = _print_Relational
    _print_Equality = _print_Unequality = _print_Relational

    def _print_And(self, e: Any) -> str:
        return "(" + " & ".join(self._print(a) for a in sorted(e.args, key=default_sort_key)) + ")"

    def _print_Or(self, e: Any) -> str:
        return "(" + " | ".join(self._print(a) for a in sorted(e.args, key=default_sort_key)) + ")"

    def _print_Not(self, e: Any) -> str:
        return f"np.logical_not({self._print(e.args[0])})"

    def _print_BooleanTrue(self, e: Any) -> str:
        return "True"

    def _print_BooleanFalse(self, e: Any) -> str:
        return "False"


def _closed(text: str) -> str:
    """The text, in parentheses unless it is a name, a number, one call or in parentheses already."""
    depth = 0
    for k, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and not (letter.isalnum() or letter in "_." or (letter == ")" and k == len(text) - 1)):
            return f"({text})"
    return text


def _sum(terms: list[str]) -> str:
    """Terms joined, those with a minus last."""
    terms = sorted(terms, key=lambda t: t.startswith("-"))
    return terms[0] + "".join(f" - {t[1:]}" if t.startswith("-") else f" + {t}" for t in terms[1:])


def _steep(e: Add) -> tuple[Expr, Symbol, float] | None:
    """(k, x, c) of k x - k c with numbers, where k c is large: near x = c the difference of the two has lost that many digits.

    >>> from sympy.abc import x
    >>> _steep(1000*x - 1250), _steep(2*x - 1)
    ((1000, x, 1.25), None)
    """
    large = 64  # of a number in a sum: near the zero of the sum so many digits are lost
    if len(e.args) != 2 or not (e.args[0].is_Rational or e.args[0].is_Float) or abs(e.args[0]) < large:
        return None
    slope, x = e.args[1].as_coeff_Mul()
    return (slope, x, float(-e.args[0]/slope)) if isinstance(x, Symbol) and abs(slope) > 1 else None


def _polynomial(e: Add) -> tuple[Expr, dict[int, Expr], list[Expr]] | None:
    """(x, {power: coefficient}, the terms without x) if the sum is a polynomial of degree above 4 in some symbol."""
    degree: dict[Symbol, int] = {}
    highest = 4  # sums of lower degree read better as they are
    for power in (f for t in e.args for f in Mul.make_args(t) if isinstance(f, Pow)):
        if power.base.is_Symbol and power.exp.is_Integer and power.exp > highest:
            degree[power.base] = max(degree.get(power.base, 0), int(power.exp))
    for x in sorted(degree, key=lambda s: (-degree[s], s.name)):
        terms: dict[int, list[Expr]] = {}
        rest = []
        for t in e.args:
            coefficient, monomial = t.as_independent(x, as_Add=False)
            base, n = monomial.as_base_exp()
            if monomial != 1 and base == x and n.is_Integer and n > 0:
                terms.setdefault(int(n), []).append(coefficient)
            else:
                rest.append(t)
        if len(terms) > 1:
            constants = [t for t in rest if isinstance(t, Rational)]
            found = {n: Add(*c) for n, c in terms.items()} | ({0: Add(*constants)} if constants else {})
            return x, found, [t for t in rest if t not in constants]
    return None
