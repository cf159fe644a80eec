"""The level sets of u(z), symbolically: the part of u that the label y = u(z) reveals.

lambda_k(u) depends on u only through the sigma-algebra of u(z), so an injective outer function may be peeled off:
lambda_k(F(u)) = lambda_k(u). The rest is classified: constant, discrete, even and injective in |z|, or general.
"""

from __future__ import annotations

from collections.abc import Sequence

from sympy import (
    Add,
    Expr,
    Float,
    Mul,
    Poly,
    Pow,
    Rational,
    S,
    Symbol,
    asinh,
    atan,
    cancel,
    cosh,
    diff,
    erf,
    erfc,
    exp,
    log,
    oo,
    sinh,
    sqrt,
    tanh,
)

from hermitex.errors import BudgetExceeded, HermitexError, NoClosedForm
from hermitex.symbolic.budget import checkpoint, kept, unless_refused
from hermitex.symbolic.formula_size import polynomial_size
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.pieces import Piece, pieces
from hermitex.symbolic.series.polynomials import He, poly_of


def polynomial(u: Expr, x: Symbol) -> Poly | None:
    """u as a polynomial in x with exact real coefficients, or None."""
    highest = 400  # degree of a polynomial whose roots are isolated exactly; chosen by trial
    small = u.is_polynomial(x) and polynomial_size(u, [x])[1] <= highest
    return poly_of(u, x) if small else None


@kept(256)
def constant_value(u: Expr, x: Symbol) -> Expr | None:
    """The value of u if it is proved not to depend on x (also through its switches), else None."""
    if not u.has(x):
        return u
    if takes_two_values(u, x):
        return None
    values = {_flat(p, x) for p in unless_refused(lambda: pieces(u, x)) or ()}
    return value if len(values) == 1 and not (value := values.pop()).has(x) else None


def takes_two_values(u: Expr, x: Symbol,
            points: Sequence[Expr] = (Rational(3, 7), Rational(13, 9), Rational(-13, 9), Rational(21, 8))) -> bool:
    """Does u plainly take two values at some points? What looks constant is left to algebra."""
    from hermitex.symbolic.precise import evaluate

    nodes = {node: Float(evaluate(node, 20), 20) for node in u.atoms(Expectation) if not node.has(x)}
    u = u.xreplace(nodes)
    seen: list[Expr] = []
    rounded = Rational(1, 10**12)  # values that are 0 but for rounding do not differ
    for point in points:
        try:
            value = u.xreplace({x: point}).evalf(20)
        except BudgetExceeded:
            raise
        except (HermitexError, ArithmeticError, TypeError, ValueError, NotImplementedError):
            continue
        if value.is_Float or value == 0:  # evalf leaves an exact 0 as it is
            if any(abs(value - old) > Rational(1, 10**6) * (abs(value) + abs(old)) + rounded for old in seen):
                return True
            seen.append(value)
    return False


def _flat(piece: Piece, x: Symbol) -> Expr:
    """A smooth branch as a constant where identities make it one, within a size bound.

    Its derivative is often an algebraic function of exponentials where it is not itself: log(1 + e^x) - log(1 + e^-x) - x.
    """
    branch = piece.expr
    longest = 60  # operations of a branch that is examined for being constant; chosen by trial
    if not branch.has(x) or branch.count_ops() > longest:
        return branch
    most_terms = 50  # of a branch, after its expansion; chosen by trial
    flat = branch.expand() if polynomial_size(branch, [x])[1] < most_terms else branch
    if not flat.has(x):
        return flat
    if cancel(diff(flat, x).rewrite(exp)) == 0:
        place = next((p for p in (S.Zero, S.One, S.NegativeOne) if piece.lo.evalf(15) < p < piece.hi.evalf(15)), None)
        value = None if place is None else flat.xreplace({x: place})
        return flat if value is None or not value.is_finite else value.simplify()
    return flat.simplify()


def finite_level_sets(u: Expr, x: Symbol) -> dict[Expr, list[Piece]] | None:
    """{label: the intervals on which u takes it}, if u takes finitely many values; else None.

    Two labels that are equal are merged; equality of exact constants is decided, never guessed.
    """
    def found() -> dict[Expr, list[Piece]] | None:
        branches = pieces(u, x)
        if any(p.expr.has(x) for p in branches):
            return None
        classes: dict[Expr, list[Piece]] = {}
        for piece in branches:
            checkpoint("comparing labels")
            classes.setdefault(next((value for value in classes if equal_constants(piece.expr, value)), piece.expr),
                               []).append(piece)
        return classes

    return unless_refused(found)


def indicator_moment(intervals: list[Piece], k: int) -> Expr:
    """E[He_k(z) 1_A], A a union of intervals: sum of He_{k-1}(a) phi(a) - He_{k-1}(b) phi(b); P(A) at k = 0."""
    def at(point: Expr) -> Expr:
        if k == 0:
            return -erf(point / sqrt(2)) / 2
        if point in (oo, -oo):
            return S.Zero
        return He(k - 1, point) * exp(-(point**2) / 2) / sqrt(2 * S.Pi)

    return sum((at(p.lo) - at(p.hi) for p in intervals), S.Zero)


def equal_constants(a: Expr, b: Expr) -> bool:
    """Are two exact constants equal?

    Raises
    ------
    NoClosedForm : it was not decided.
    """
    from hermitex.symbolic.zero import decide

    difference = a - b
    if difference.is_Rational:
        return bool(difference == 0)
    status = decide(difference).status
    if status == "undetermined":
        raise NoClosedForm("labels", "whether two of them are equal was not decided", "Use a simpler target")
    return status == "zero"


def sign_of(e: Expr) -> int:
    """+1 or -1 if e is proved positive or negative wherever it is defined, else 0.

    >>> from hermitex.symbols import z
    >>> sign_of(log(2 + z**2)), sign_of(log(z**2 + S.Half))
    (1, 0)
    """
    if e.is_positive:
        return 1
    if e.is_negative:
        return -1
    if isinstance(e, (sinh, tanh, asinh, atan, erf)):
        return sign_of(e.args[0])
    if isinstance(e, (erfc, cosh)):
        return 1
    if isinstance(e, log):
        return 1 if sign_of(e.args[0] - 1) == 1 else (-1 if sign_of(1 - e.args[0]) == 1 else 0)
    if isinstance(e, Mul):
        signs = [sign_of(a) for a in e.args]
        return 0 if 0 in signs else (-1) ** signs.count(-1)
    if isinstance(e, Pow) and sign_of(e.base) == 1:
        return 1
    if isinstance(e, Pow) and e.exp.is_even and sign_of(e.base):
        return 1
    if isinstance(e, Add):
        first, rest = e.args[0], e - e.args[0]
        above_one = isinstance(rest, (cosh, exp)) and sign_of(rest.args[0]) in ((1,) if isinstance(rest, exp) else (1, -1))
        if above_one and first.is_number and first >= -1:
            return 1
        same = {sign_of(a) for a in e.args}
        return same.pop() if len(same) == 1 else 0
    return 0
