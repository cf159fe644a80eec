"""Expressions -> source of NumPy: stable, batched, and with as few operations as the formula needs.

x**3 is x*x*x (a general power costs 15 times as much), log(1 + exp(x)) is logaddexp(0, x), 1/(1 + exp(-x)) is expit(x),
(1 + erf(x/sqrt 2))/2 is ndtr(x), and a Piecewise selects without evaluating a branch where it is not finite into the
result. Functions that NumPy lacks come from scipy.special, and only those are imported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from sympy import Add, Expr, Mul, Pow, S, Wild, erf, exp, log, sqrt
from sympy.printing.printer import Printer as SymPyPrinter

_NUMPY = {
    "exp": "exp", "log": "log", "sin": "sin", "cos": "cos", "tan": "tan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh",
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
    "Abs": "abs", "sign": "sign", "floor": "floor", "ceiling": "ceil", "Max": "maximum", "Min": "minimum", "atan2": "arctan2",
}
_SCIPY = {
    "erf": "erf", "erfc": "erfc", "erfi": "erfi", "gamma": "gamma", "loggamma": "gammaln", "OwenT": "owens_t", "besselk": "kv",
    "besseli": "iv", "besselj": "jv", "digamma": "digamma", "expit": "expit", "ndtr": "ndtr", "LambertW": "lambertw",
}


class Printer(Protocol):
    """What a target language must give: the source of an expression, and the imports it used."""

    def doprint(self, expr: Expr) -> str:
        """The source of one expression."""

    def imports(self) -> list[str]:
        """Import lines for all that was printed."""


class NumPyPrinter(SymPyPrinter):
    """Expressions to NumPy source. `rename` maps symbols to identifiers."""

    printmethod = "_numpycode"

    def __init__(self, rename: Callable[[Any], str] | None = None) -> None:
        super().__init__()
        self._rename = rename or (lambda s: s.name)
        self.special: set[str] = set()
        self.solvers: dict[Any, tuple[str, str]] = {}  # a loss -> the name and source of the function that minimises it

    def imports(self) -> list[str]:
        """Import lines for all that was printed."""
        lines = ["import numpy as np"]
        if self.special:
            lines.append(f"from scipy.special import {', '.join(sorted(self.special))}")
        return lines

    def doprint(self, expr: Expr, assign_to: Any = None) -> str:
        """The source of one expression."""
        return self._print(recognise(expr))

    # -- atoms -----------------------------------------------------------------------------------------------------
    def _print_Symbol(self, e: Any) -> str:
        return self._rename(e)

    _print_Dummy = _print_Bound = _print_Symbol

    def _print_Rational(self, e: Any) -> str:
        return f"{e.p}/{e.q}" if e.q != 1 else str(e.p)

    def _print_Integer(self, e: Any) -> str:
        return str(e.p) if abs(e.p) < 2**53 else f"{float(e)!r}"

    def _print_Float(self, e: Any) -> str:
        return repr(float(e))

    def _print_NumberSymbol(self, e: Any) -> str:
        return {"pi": "np.pi", "E": "np.e"}.get(str(e)) or repr(float(e))

    _print_Pi = _print_Exp1 = _print_EulerGamma = _print_Catalan = _print_GoldenRatio = _print_NumberSymbol

    def _print_Infinity(self, e: Any) -> str:
        return "np.inf"

    def _print_NegativeInfinity(self, e: Any) -> str:
        return "(-np.inf)"

    def _print_Prox(self, e: Any) -> str:
        """A call of a function of the generated module, which is written when it is first called for."""
        from hermitex.kernels.proximal import function_source

        if e.loss not in self.solvers:
            name = f"prox_{len(self.solvers) + 1}"
            self.solvers[e.loss] = (name, function_source(name, e.loss, self.doprint))
        return f"{self.solvers[e.loss][0]}({', '.join(self._print(a) for a in e.args[1:])})"

    # -- arithmetic --------------------------------------------------------------------------------------------------
    def _print_Add(self, e: Any, order: Any = None) -> str:
        terms = sorted((self._print(a) for a in e.args), key=lambda t: t.startswith("-"))
        return terms[0] + "".join(f" - {t[1:]}" if t.startswith("-") else f" + {t}" for t in terms[1:])

    def _print_Mul(self, e: Any) -> str:
        coefficient, rest = e.as_coeff_Mul()
        above, below = [], []
        if coefficient.is_Rational:
            above += [str(abs(coefficient.p))] if abs(coefficient.p) != 1 else []
            below += [str(coefficient.q)] if coefficient.q != 1 else []
        else:
            above.append(self._print(abs(coefficient)))
        for a in Mul.make_args(rest):
            if isinstance(a, Pow) and a.exp.is_Rational and a.exp.is_negative:
                below.append(self._factor(a.base if a.exp == -1 else Pow(a.base, -a.exp, evaluate=False)))
            elif a != 1:
                above.append(self._factor(a))
        text = "*".join(above) or "1"
        if below:
            bottom = "*".join(below)
            text += f"/({bottom})" if len(below) > 1 or "*" in bottom else f"/{bottom}"
        return f"-{text}" if coefficient.is_negative else text

    def _factor(self, e: Any) -> str:
        """A factor of a product, in parentheses where it needs them."""
        text = self._print(e)
        return f"({text})" if isinstance(e, Add) or text.startswith("-") or (isinstance(e, Pow) and text.startswith("1/")) else text

    def _print_Pow(self, e: Any) -> str:
        base, power = e.args
        if power == S.Half:
            return f"np.sqrt({self._print(base)})"
        if power == -S.Half:
            return f"1/np.sqrt({self._print(base)})"
        if power.is_Integer and 2 <= abs(int(power)) <= 4 and base.is_Symbol:
            product = "*".join([self._print(base)] * abs(int(power)))
            return product if power > 0 else f"1/({product})"
        if power == 2:
            return f"np.square({self._print(base)})"
        if power == -1:
            return f"1/{self._operand(base)}"
        return f"{self._operand(base)}**{self._operand(power)}"

    # -- functions ---------------------------------------------------------------------------------------------------
    def _print_Function(self, e: Any) -> str:
        name = type(e).__name__
        arguments = ", ".join(self._print(a) for a in e.args)
        if name in ("Max", "Min"):
            return _fold(f"np.{_NUMPY[name]}", [self._print(a) for a in e.args])
        if name in _NUMPY:
            return f"np.{_NUMPY[name]}({arguments})"
        if name in _SCIPY:
            self.special.add(_SCIPY[name])
            return f"{_SCIPY[name]}({arguments})"
        if name == "logaddexp":
            return f"np.logaddexp({arguments})"
        if name == "nonzero":  # a helper of the generated module
            return f"nonzero({arguments})"
        from hermitex.errors import NoClosedForm

        raise NoClosedForm(e, f"{name} has no numeric form", "Put an expression in for it: .subs or .substitute")

    _print_Max = _print_Min = _print_Abs = _print_sign = _print_exp = _print_log = _print_Function

    def _print_ExpBase(self, e: Any) -> str:
        return f"np.exp({self._print(e.args[0])})"

    def _print_Heaviside(self, e: Any) -> str:
        return f"np.heaviside({self._print(e.args[0])}, 0.5)"

    def _print_Piecewise(self, e: Any) -> str:
        text = "np.nan"
        for branch, condition in reversed(e.args):
            text = self._print(branch) if condition == S.true else f"np.where({self._print(condition)}, {self._print(branch)}, {text})"
        return text

    # -- conditions --------------------------------------------------------------------------------------------------
    def _print_Relational(self, e: Any) -> str:
        return f"({self._print(e.lhs)} {e.rel_op} {self._print(e.rhs)})"

    _print_StrictGreaterThan = _print_GreaterThan = _print_StrictLessThan = _print_LessThan = _print_Relational
    _print_Equality = _print_Unequality = _print_Relational

    def _print_And(self, e: Any) -> str:
        return "(" + " & ".join(self._print(a) for a in e.args) + ")"

    def _print_Or(self, e: Any) -> str:
        return "(" + " | ".join(self._print(a) for a in e.args) + ")"

    def _print_Not(self, e: Any) -> str:
        return f"~{self._print(e.args[0])}"

    def _print_BooleanTrue(self, e: Any) -> str:
        return "True"

    def _print_BooleanFalse(self, e: Any) -> str:
        return "False"

    def _operand(self, e: Any) -> str:
        """A base or exponent: anything but a name, a call or a plain number stands in parentheses."""
        text = self._print(e)
        plain = e.is_Symbol or e.is_Function or (e.is_Integer and e >= 0)
        return text if plain else f"({text})"


def _fold(name: str, arguments: list[str]) -> str:
    text = arguments[0]
    for a in arguments[1:]:
        text = f"{name}({text}, {a})"
    return text


# -- stable forms ------------------------------------------------------------------------------------------------------
def recognise(expr: Expr) -> Expr:
    """Rewrite into functions that are stable in floating point: expit, logaddexp, ndtr, merged exponentials."""
    from sympy import Function

    expit, logaddexp, ndtr = Function("expit"), Function("logaddexp"), Function("ndtr")
    a = Wild("a")

    def rewrite(e: Expr) -> Expr:
        if isinstance(e, Pow) and e.exp.is_Integer and e.exp.is_negative:
            match = e.base.match(1 + exp(a)) if isinstance(e.base, Add) else None
            if match and match[a].has(*e.free_symbols or (S.One,)):
                return expit(-match[a]) ** (-e.exp)
        if isinstance(e, log) and isinstance(e.args[0], Add):
            match = e.args[0].match(1 + exp(a))
            if match:
                return logaddexp(S.Zero, match[a])
        if isinstance(e, Add) and len(e.args) == 2 and e.args[0] == S.Half:
            match = e.args[1].match(erf(a) / 2)
            if match:
                return ndtr(sqrt(2) * match[a])
            match = e.args[1].match(-erf(a) / 2)
            if match:
                return ndtr(-sqrt(2) * match[a])
        if isinstance(e, Mul):
            for f in e.args:  # exp(x) expit(-x) = expit(x), without overflow
                if isinstance(f, exp):
                    other = expit(-f.args[0])
                    if other in (b for g in e.args for b in g.as_base_exp()[:1]):
                        return e / f / other * expit(f.args[0])
            exponents = [f.args[0] for f in e.args if isinstance(f, exp)]
            if len(exponents) > 1:
                return Mul(*[f for f in e.args if not isinstance(f, exp)], exp(Add(*exponents)))
        return e

    return expr.replace(lambda e: isinstance(e, (Pow, log, Add, Mul)), rewrite)

