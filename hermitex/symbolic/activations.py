"""sigma(z): functions of one variable that are called, differentiated and judged.

`activation` makes one of a name, a text, an expression, a function of SymPy or of Python.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sympy import Expr, Lambda, Symbol, latex
from sympy.core.function import FunctionClass, UndefinedFunction

from hermitex import symbols
from hermitex.errors import BadInput
from hermitex.symbolic.bounds.integrability import integrable
from hermitex.symbolic.growth import majorant
from hermitex.symbolic.named_functions import FUNCTIONS, FunctionOfSeveral, NamedFunction
from hermitex.symbolic.parity import parity
from hermitex.symbolic.parsing import expression, undeclared
from hermitex.symbolic.pieces import breakpoints
from hermitex.symbolic.text.functions import arguments, name_of
from hermitex.symbolic.text.plain_data import plain
from hermitex.symbolic.weak import weak_derivative

__all__ = ["NAMED", "Activation", "activation"]

z = symbols.z


@dataclass(frozen=True, repr=False)
class Activation(NamedFunction):
    """A function of one variable that can be differentiated and judged: parity, kinks, growth, weak derivative.

    Guarantee
    ---------
    Parity, kinks and finiteness are None unless they are proved. See docs/promise.md.

    Examples
    --------
    >>> from hermitex.symbols import kappa
    >>> NAMED["leaky_relu"](kappa)
    Max(0, kappa) + Min(0, kappa)/100
    >>> NAMED["gelu"].parity is None, NAMED["tanh"].parity
    (True, -1)
    """

    def to_dict(self) -> dict[str, Any]:
        """Its name, its expression in z as text that `hermitex.parse` reads, and its parity."""
        return {"name": self.name, "expr": plain(self.expr), "parity": self.parity}

    @cached_property
    def weak_derivative(self) -> Activation:
        """sigma' as a distribution: relu' = Heaviside, sign' = 2 delta."""
        return Activation(f"{self.name}'", weak_derivative(self.expr, z))

    @cached_property
    def kinks(self) -> tuple[Expr, ...]:
        """The points off which it is analytic."""
        return breakpoints(self.expr, z)

    @cached_property
    def parity(self) -> int | None:
        """1 even, -1 odd, 0 identically zero, None not proved."""
        return parity(self.expr, z)

    @cached_property
    def letters(self) -> tuple[Symbol, ...]:
        """Its parameters: the letters other than z, by name."""
        return tuple(sorted(self.expr.free_symbols - {z}, key=str))

    @cached_property
    def growth(self) -> tuple[Any, Any]:
        """Derived bounds of |sigma| towards -oo and +oo."""
        return majorant(self.expr, z, -1), majorant(self.expr, z, 1)

    @cached_property
    def in_L1(self) -> bool | None:
        """Is E|sigma(z)| finite? None if neither was proved."""
        return self._integrable(1)

    @cached_property
    def in_L2(self) -> bool | None:
        """Is E sigma(z)^2 finite? None if neither was proved."""
        return self._integrable(2)

    def _integrable(self, power: int) -> bool | None:
        return integrable(self.expr, z, power=power)

    def _repr_latex_(self) -> str:
        return rf"$\displaystyle z \mapsto {latex(self.expr)}$"


class _Activations(dict):
    """name -> its meaning; He0, He1, He2, ... are made on first use."""

    def __missing__(self, name: str) -> Activation:
        self[name] = _judged(FUNCTIONS[name])
        return self[name]

    def __contains__(self, name: object) -> bool:
        return name in FUNCTIONS

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self else default  # noqa: SIM401 - dict.get would not make He7


def _judged(function: NamedFunction | FunctionOfSeveral) -> Any:
    return Activation(function.name, function.form, function.parameters) if isinstance(function, NamedFunction) else function


NAMED: dict[str, Activation | FunctionOfSeveral] = _Activations({name: _judged(f) for name, f in FUNCTIONS.items()})


def activation(sigma: Any) -> Activation:
    """sigma(z): a function of one variable that is called, differentiated and judged; and what a user may name it by.

The activation that a name, a text, an expression in z, a SymPy function or an `Activation` means.

    Raises
    ------
    UnknownName : with the closest known names.
    BadInput : it is not a function of one variable.

    Examples
    --------
    >>> import sympy
    >>> activation("relu"), activation(sympy.tanh), activation("He3")
    (relu: z -> Max(0, z), tanh: z -> tanh(z), He3: z -> z**3 - 3*z)
    >>> activation("z*tanh(z)").parity
    1
    """
    if isinstance(sigma, Activation):
        return sigma
    if isinstance(sigma, (UndefinedFunction, FunctionClass)):
        return _from_class(sigma)
    if isinstance(sigma, str):
        return _from_text(sigma.strip())
    if isinstance(sigma, FunctionOfSeveral | Lambda) or (callable(sigma) and not isinstance(sigma, Expr)):
        return _from_callable(sigma)
    expr = expression(sigma)
    return _of_one_variable(str(expr), expr)


def _from_text(text: str) -> Activation:
    if text.isidentifier() and not symbols.is_normal_name(text):
        found = NAMED[text]
        if isinstance(found, Activation):
            return found
        raise BadInput(f"{text} is not a function of one variable; write an expression in z, e.g. '{text}(z, 1)'")
    return _of_one_variable(text, undeclared(text))


def _from_class(function: Any) -> Activation:
    name = function.__name__
    known = NAMED.get(name)
    if known is not None and not isinstance(function, UndefinedFunction):
        return known if isinstance(known, Activation) else _from_text(name)
    return _from_callable(function)


def _from_callable(function: Any) -> Activation:
    """The value of a function of Python or SymPy at z; a function of several variables is refused."""
    if len(asked := arguments(function)) > 1:
        raise BadInput(f"an activation is a function of one variable z; {name_of(function)} takes {len(asked)} arguments")
    expr = expression(function)
    name = str(getattr(function, "name", getattr(function, "__name__", "")))
    return _of_one_variable(name if name.isidentifier() else str(expr), expr)


def _of_one_variable(name: str, expr: Expr) -> Activation:
    """The normal z (or the only normal, or the only symbol) is the variable; further symbols are parameters."""
    found = symbols.normals(expr)
    if not found and len(expr.free_symbols) == 1:
        found = tuple(expr.free_symbols)
    if len(found) > 1 or (not found and expr.free_symbols):
        names = ", ".join(sorted(map(str, expr.free_symbols)))
        raise BadInput(f"a function of one variable z is meant here, as tanh(z), not one of {names}")
    return Activation(name, expr.xreplace({found[0]: z}) if found else expr)
