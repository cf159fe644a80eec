"""text -> expression, by walking Python's syntax tree with a white list; a user's text is never executed.

parse("tanh(z) - z*E(z*tanh(z))") is tanh(z) - z E[z tanh z]; an integer and a decimal literal are exact numbers.
Text outside of the grammar is answered with one line: what was found where, and what to type instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sympy import Basic, Expr, I, Lambda, Pow, Rational, sympify

from hermitex import symbols as field
from hermitex.errors import DECLARING, BadInput, UnknownName, brief
from hermitex.hints import Letters
from hermitex.symbolic.conditional_expectation import worked_out
from hermitex.symbolic.indexed_sums import read_sums
from hermitex.symbolic.law_constraints import apart
from hermitex.symbolic.laws import refuse_loose
from hermitex.symbolic.text import bounded_powers
from hermitex.symbolic.text.functions import applied
from hermitex.symbolic.text.grammar import Reader, check_variables, syntax
from hermitex.symbolic.text.lexical import clean, excerpt
from hermitex.symbolic.text.plain_data import to_text
from hermitex.symbolic.text.reality import check_real
from hermitex.symbolic.text.text_names import declared
from hermitex.symbolic.undefined import slopes_done

__all__ = ["check_real", "expression", "formula", "parse", "parse_with_letters", "real_expression", "to_text"]


def parse(text: str, symbols: Letters | None = None, variables: Iterable[Any] | str | None = None) -> Expr:
    """The expression that a text writes, in the house's symbols; exact numbers, real for real variables.

    Parameters
    ----------
    text : str
        In z, z1, z2, ...; ``+ - * / **``, comparisons, ``& | ~``, `Piecewise`, the named functions,
        `pi`, and ``E(...)``, a Gaussian expectation over every variable inside it. 0.1 is exactly 1/10.
    symbols : mapping, text or iterable of Symbols
        Declared parameters: ``{"mu": "real", "s": "positive", "f": "function"}`` or ``"mu, s>0"``.
    variables : iterable of names, or comma-separated text
        All standard normals there are; using another one is an error.

    Raises
    ------
    ParseError : the text is not in the grammar; one line with the position and what to type.
    UnknownName : a name is not known; carries the closest known ones.
    BadInput : too large, or not real for real z; with `variables`, a mixture of z with z1, z2, ...

    Guarantee
    ---------
    Text is never executed; what the grammar does not know is refused in one line. See docs/promise.md.

    Examples
    --------
    >>> parse("z**3 - 0.3*z")
    z**3 - 3*z/10
    >>> parse("tanh(z) - z*E(z*tanh(z))")
    -z*E(z*tanh(z), z) + tanh(z)
    >>> parse("mu + s*z", symbols="mu, s>0")
    mu + s*z
    >>> parse("z^2")
    Traceback (most recent call last):
    ...
    hermitex.errors.ParseError: cannot read 'z^2': '^' at position 2: write ** for a power
    """
    source = clean(text)
    reader = Reader(source, declared(symbols))
    result = reader.expr(syntax(source).body, 0)
    if result.has(I):
        raise BadInput(f"{excerpt(text)} is not a real number")
    used = field.normals(result)
    if variables is not None:
        check_variables(result, variables)
    return check_real(result, used)


def parse_with_letters(text: str, symbols: Any = None) -> Expr:
    """The same where parameters are allowed: kappa, alpha, lamda, ... (`hermitex.symbols.LETTERS`) are known besides `symbols`.

    >>> parse_with_letters("tanh(kappa + s*z)", "s>0")
    tanh(kappa + s*z)
    """
    return parse(text, symbols={**field.LETTERS, **declared(symbols)})


def undeclared(text: str, letters: Any = None) -> Expr:
    """A text where a caller takes no `symbols`: for an unknown letter there is a number to put in, or an expression to give.

    >>> undeclared("w*z")
    Traceback (most recent call last):
    ...
    hermitex.errors.UnknownName: cannot read 'w*z': ... put a number in for it, or give hx.parse(text, symbols={'w': 'real'})
    """
    try:
        return parse(text, symbols=letters)
    except UnknownName as error:
        told, _, asked = str(error).partition(DECLARING)
        if asked:
            error.args = (f"{told}; put a number in for it, or give hx.parse(text, symbols={asked})",)
        raise


def formula(x: Any) -> Any:
    """The input of the rules of the calculus: a text may hold the package's letters, a function is applied to normals, and an
    expression stays as it is.

    >>> formula("kappa*z"), formula(lambda a, b: a*b)
    (kappa*z, z1*z2)
    """
    if isinstance(x, str):
        return apart(undeclared(x, field.LETTERS))[0]
    if isinstance(x, Lambda) or (callable(x) and not isinstance(x, Basic)):
        return expression(applied(x))
    value = _sympified(x)
    if not isinstance(value, Expr):
        raise BadInput(f"a formula is a text, a number or a SymPy expression, not {brief(x)}")
    return apart(value)[0]


def _sympified(x: Any) -> Any:
    try:
        return sympify(x, strict=True)
    except (TypeError, ValueError, AttributeError) as error:
        raise BadInput(f"an expression is a text, a number or a SymPy expression, not {type(x).__name__}") from error


def expression(x: Any) -> Expr:
    """Text, number, SymPy expression, or function of SymPy symbols -> expression in the house's symbols.

    A binary float becomes the exact decimal that Python prints for it: 0.1 is 1/10. A function of one argument is applied to z,
    one of several to z1, z2, ...

    >>> expression("relu(z)"), expression(0.5), expression(lambda x, y: x*y)
    (Max(0, z), 1/2, z1*z2)
    """
    if isinstance(x, str):
        return undeclared(x)
    if isinstance(x, bool) or x is None:
        raise BadInput(f"an expression is a text, a number or a SymPy expression, not {x!r}")
    if isinstance(x, float):
        return _exact_float(repr(x))
    if isinstance(x, Lambda) or (callable(x) and not isinstance(x, Basic)):
        return expression(applied(x))
    value = _sympified(x)
    if not isinstance(value, Expr) or not getattr(value, "is_commutative", False):
        raise BadInput(f"a number is needed, not {bounded_powers.short(value)}")
    for power in value.atoms(Pow):
        bounded_powers.check_polynomial(power)
    value = slopes_done(worked_out(read_sums(value)))
    refuse_loose(value)
    floats = {a: _exact_float(str(a)) for a in value.atoms() if a.is_Float}
    value = value.xreplace(floats) if floats else value
    swap = field.one_name(value)
    return bounded_powers.exists(value.xreplace(swap) if swap else value)


def real_expression(x: Any) -> Expr:
    """The same, for what must be a real number whatever its variables are.

    >>> real_expression(I*field.z)
    Traceback (most recent call last):
    ...
    hermitex.errors.BadInput: I*z is not a real number
    """
    value = expression(x)
    if value.has(I):
        raise BadInput(f"{bounded_powers.short(value)} is not a real number")
    return check_real(value, field.normals(value))


def _exact_float(text: str) -> Expr:
    try:
        return Rational(text)
    except (TypeError, ValueError, ZeroDivisionError):
        raise BadInput(f"{text} is not a finite number") from None
