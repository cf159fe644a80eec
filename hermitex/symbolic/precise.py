"""E f = int f(x) exp(-x^2/2)/sqrt(2 pi) dx to N digits, and any formula that holds such integrals.

Averages are those of `hermitex.numbers`; the digits asked of them are raised until the formula has its own, cancellation included.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import sympy as sp
from sympy import Dummy, Expr, Symbol
from sympy.core.relational import Relational

from hermitex.errors import BudgetExceeded, Divergent, HermitexError, NoClosedForm, NotConverged
from hermitex.symbolic import hooks
from hermitex.symbolic.arithmetic import mp, mpf
from hermitex.symbolic.breaks.switches import STEPS
from hermitex.symbolic.budget import checkpoint, kept
from hermitex.symbolic.conditioning import no_mass, sifted
from hermitex.symbolic.deadline import attempt
from hermitex.symbolic.digits.enclosure import Enclosure, enclose
from hermitex.symbolic.digits.finite_ranges import as_averages
from hermitex.symbolic.digits.iterated_averages import nested, sums_outside, whitened
from hermitex.symbolic.existence_check import exists_on_line, require_existence, settled
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.indexed_sums import ArraySum, Index, written_out

__all__ = ["Enclosure", "enclose", "evaluate", "evaluate_to_precision", "evaluate_with_error"]

_COMPILED = "Numeric value: hx.compile(...)"
_SPARE = 40  # bits that a number inside of an average has beyond those asked for
_QUICK = 1.5  # CPU seconds of closed forms over several variables: ten times what gelu*gelu takes, for slow machines
_EXTRA_BITS = 420  # how much working precision may be added against cancellation


class Evaluated(NamedTuple):
    """Value, error, and the average of the absolute value, against which rounding is measured."""

    value: Any
    error: Any
    scale: Any


def evaluate(expr: Any, digits: int = 15, subs: Mapping[Any, Any] | None = None) -> Any:
    """The value of an expression, expectations included, to `digits` significant digits.

    Parameters
    ----------
    expr : expression, or text
    digits : significant digits; where the value is zero as far as can be seen, digits against the size of its terms
    subs : {symbol or name: number}

    Returns
    -------
    mp.mpf

    Raises
    ------
    NotConverged : the digits were not reached; `.solution` is (value, error).
    NoClosedForm : a symbol without a value, or a function without a numeric rule.
    Divergent : an expectation that does not exist.

    Examples
    --------
    >>> from hermitex.symbols import z
    >>> from hermitex.symbolic.gaussian import E
    >>> from sympy import tanh
    >>> print(mp.nstr(evaluate(E(z*tanh(z), z), 20), 20))
    0.60570550960215882558
    """
    value, _ = _held(expr, digits, subs)
    with mp.workdps(max(digits, 1)):
        return +value


def _held(expr: Any, digits: int, subs: Mapping[Any, Any] | None = None) -> tuple[Any, Any]:
    """(value, error) to `digits`, of the value, or where nothing of it can be seen, of its terms."""
    value, error, scale = _evaluate(expr, digits, subs)
    if not _holds(value, error, scale, digits):
        raise _not_reached(expr, value, error)
    return value, error


def _holds(value: Any, error: Any, scale: Any, digits: int) -> bool:
    return bool(error <= max(abs(value), scale) * mpf(10) ** (1 - digits))  # nor for nan


def _not_reached(expr: Any, value: Any, error: Any) -> NotConverged:
    return NotConverged((value, error), f"only an error of {mp.nstr(error, 2)} was reached for {expr}")


def evaluate_with_error(expr: Any, digits: int = 15, subs: Mapping[Any, Any] | None = None, *,
                        against_cancellation: int = _EXTRA_BITS) -> tuple[Any, Any]:
    """(value, error): as `evaluate`, with the absolute error estimate that was reached, however large it is.

    `against_cancellation` bounds the binary digits that are added where terms cancel; a value that is 0 costs them all.

    Examples
    --------
    >>> from hermitex.symbols import z
    >>> from hermitex.symbolic.gaussian import E
    >>> from sympy import Abs
    >>> value, error = evaluate_with_error(E(Abs(z), z), 30)
    >>> error < value*10**-29
    True
    """
    value, error, _ = _evaluate(expr, digits, subs, against_cancellation)
    return value, error


def evaluate_to_precision(node: Expr, prec: int) -> tuple[Any, int]:
    """(value, bits of it that hold): what `.evalf` of a node calls; 0 bits and fewer where the value is below its error."""
    value, error, scale, digits = _remembered(node, -(-prec // 64) * 64)
    # SymPy adds 4 bits; a Float of 9 fewer shows the digits that hold
    if not _holds(value, error, scale, digits) and not error < abs(value) * mpf(2) ** (13 - prec):
        raise _not_reached(node, value, error)
    if abs(value) <= error and (exact := _closed(node)) is not None:
        return mpf(0) if exact == 0 else mp.make_mpf(exact.evalf(digits)._mpf_), prec
    bits = prec if not error or not value else min(prec, int(mp.floor(mp.log(abs(value)/error, 2))))
    with mp.workprec(prec):
        return +value, bits


@kept(256)
def _closed(node: Expr) -> Expr | None:
    """The closed form of an average so small that its terms cancel to nothing: E[cos(40 z) sigmoid(z)] = exp(-800)/2."""
    from hermitex.symbolic.integrals import closed_form  # with the exact engine, which other numbers do not need

    try:
        with attempt(_QUICK):
            found = closed_form(node)
    except HermitexError:
        return None
    return found if found.evalf().is_Float or found == 0 else None


@lru_cache(maxsize=512)
def _remembered(node: Expr, prec: int) -> tuple[Any, Any, Any, int]:
    """(value, error, size of the terms, digits asked): SymPy asks for a node again and again at slightly different precisions."""
    digits = int(prec * mp.log(2, 10)) + 1
    return *_evaluate(node, digits, None), digits


# -- formulas ----------------------------------------------------------------------------------------------------------
def _evaluate(expr: Any, digits: int, subs: Mapping[Any, Any] | None, extra: int = _EXTRA_BITS) -> tuple[Any, Any, Any]:
    expr = sifted(sums_outside(as_averages(_with_values(hooks.expression(expr), subs))))
    names: dict[Expectation | ArraySum, Dummy] = {}
    outer = _nodes_named(expr, names)
    bits = goal = _goal(digits)
    before = mp.inf
    while True:
        checkpoint("evaluating an expression")
        value, error, scale = _at_bits(outer, names, bits)
        stuck = error > before/2 or (goal <= _goal(20) and any(node in _unreached for node in names))
        if stuck and abs(value) > error:
            return _real(expr, value, error), error, scale  # more bits do not help: an average is known in doubles only
        before = error
        if error <= abs(value) * mpf(2) ** -goal or bits >= goal + extra:
            return _real(expr, value, error), error, scale
        if error == 0:
            return _real(expr, value, error), error, scale
        short = goal + 4 - int(mp.log(abs(value) / error, 2)) if abs(value) > error else bits
        bits = min(bits + max(short, 16), goal + extra)


def _goal(digits: int) -> int:
    """Bits for so many digits."""
    return int(digits * mp.log(10, 2)) + 6


def _rational(x: Any) -> sp.Rational:
    """The exact value of a number of mpmath."""
    sign, man, exponent, _ = x._mpf_
    return (-1) ** sign * sp.Rational(int(man)) * sp.Rational(2) ** int(exponent)


def _with_values(expr: Expr, subs: Mapping[Any, Any] | None) -> Expr:
    if not subs:
        return expr
    values = {str(k): _rational(v) if isinstance(v, mpf) else hooks.expression(v) for k, v in subs.items()}
    return expr.xreplace({s: values[s.name] for s in expr.free_symbols if s.name in values})


def _nodes_named(expr: Expr, names: dict[Expectation | ArraySum, Dummy]) -> Expr:
    """`expr` with each outermost node replaced by a symbol."""
    if isinstance(expr, Expectation | ArraySum):
        return names.setdefault(expr, Dummy("E", real=True))
    if not expr.args or not expr.has(Expectation, ArraySum):
        return expr
    return expr.func(*(_nodes_named(a, names) for a in expr.args))


def _at_bits(outer: Expr, names: Mapping[Expectation | ArraySum, Dummy], bits: int) -> tuple[Any, Any, Any]:
    """(value, error, size of the terms) with the nodes to `bits`; first-order propagation of their errors."""
    with mp.workprec(bits + 30):
        sums = [_summed(node, bits) if isinstance(node, ArraySum) else integrate(node, bits) for node in names]
        value, error, scale = _of_sums(outer, names, sums, bits)
        return value, mp.inf if _may_jump(outer, names, sums, bits) else error, scale


def _of_sums(outer: Expr, names: Mapping[Expectation | ArraySum, Dummy], sums: Sequence[Evaluated],
             bits: int) -> tuple[Any, Any, Any]:
    if outer.is_Rational:
        value = mpf(int(outer.p)) / int(outer.q)
        return value, abs(value) * mpf(2) ** (-bits - 10), abs(value)
    from hermitex.numbers.program import Program  # with NumPy, which an exact answer does not need

    values = [s.value for s in sums]
    program = Program(outer, list(names.values()))
    with mp.workprec(2 * bits + 60):
        value, error = _with_rounding(program, values, bits)
        scale = mpf(0)
        for i, s in enumerate(sums):
            before, after = values[:i], values[i + 1:]
            error += sum(abs(program.digits(*before, values[i] + step, *after) - value) for step in (s.error, -s.error))
            scale += abs(program.digits(*before, values[i] + s.scale, *after) - value)
        if abs(value) <= error and outer.is_Add:  # of what rounds to 0 it is its terms that have digits
            scale += sum(abs(Program(a, program.variables).digits(*values)) for a in outer.args)
    return value, error + abs(value) * mpf(2) ** (-bits - 10), max(scale, abs(value))


def _with_rounding(program: Any, values: Sequence[Any], bits: int) -> tuple[Any, Any]:
    """A formula at numbers, and what rounding may have cost: the radius of its ball, or twice what half of the bits lose."""
    from hermitex.numbers.program import Undecided, ball_at

    if program.has_balls:
        try:
            value, radius = ball_at(program, values)
            if mp.isfinite(value) and mp.isfinite(radius):
                return value, radius
        except Undecided:  # a switch at its place; `_may_jump` decides if the formula jumps there
            pass
    value = program.digits(*values)
    with mp.workprec(bits + 30):
        return value, 2 * abs(program.digits(*values) - value)


def _may_jump(outer: Expr, names: Mapping[Expectation | ArraySum, Dummy], sums: Sequence[Evaluated], bits: int) -> bool:
    """Is the side of a jump not known: may u be 0 in some sign(u) of the formula?"""
    for e in outer.atoms(sp.sign, sp.Heaviside, Relational, *STEPS):
        u = e.lhs - e.rhs if isinstance(e, Relational) else e.args[0]
        if u.is_number and not u.is_comparable and not isinstance(e, Relational):
            continue  # sign(i)
        value, error, _ = _of_sums(u, names, sums, bits)
        if isinstance(e, STEPS):
            value -= mp.nint(value)
        if not isinstance(value, mp.mpc) and abs(value) <= error and (error or isinstance(e, (sp.Lt, sp.Gt, sp.Eq, sp.Ne))):
            return True
    return False


def _real(expr: Expr, value: Any, error: Any) -> Any:
    if not isinstance(value, mp.mpc):
        return value
    if abs(value.imag) > 16 * error + abs(value) * mp.eps:
        raise NoClosedForm(expr, f"its value is not real ({mp.nstr(value, 6)})")
    return value.real


def _summed(node: ArraySum, bits: int) -> Evaluated:
    """A sum over numbers, or over a countable law, with an error of about 2^-bits of it."""
    k = node.index
    if node.free_symbols or not (k.endless or k.count):
        raise NoClosedForm(node, f"{min([*node.free_symbols, k], key=str)} has no value")
    if not k.count:
        return _of_countable(node, bits)
    terms, most = prod(i.count for i in node.atoms(Index) if i.count), 100_000  # added up one by one in a second
    if terms > most:
        raise NoClosedForm(node, f"it has {terms} terms", _COMPILED)  # of more, kernels have doubles
    if node.body.has(Expectation, ArraySum):
        parts = [_of_constant(written_out(node.body, {}, None, {k: place}), bits) for place in range(k.count)]
        return Evaluated(*(mp.fsum(column) for column in zip(*parts, strict=True)))
    from hermitex.numbers.program import Program

    term = Program(node.body, [k]).digits
    try:
        values = [term(mpf(n)) for n in range(k.first, k.first + k.count)]
    except ZeroDivisionError:
        raise NoClosedForm(node, "a term of it is divided by zero") from None
    size = mp.fsum(values, absolute=True)
    return Evaluated(mp.fsum(values), size*mpf(2)**-bits, size)


def _of_countable(node: ArraySum, bits: int) -> Evaluated:
    value = hooks.total(node, int(bits * mp.log(2, 10)) + 2)
    if value is None:
        raise NoClosedForm(node, "what it holds beyond the terms that are summed is not known to be small", _COMPILED)
    return Evaluated(value, abs(value) * mpf(2) ** -bits, abs(value))


# -- one expectation ---------------------------------------------------------------------------------------------------
def integrate(node: Expectation, bits: int) -> Evaluated:
    """E f with an error of about 2^-bits E|f|."""
    if node.free_symbols:
        free = min(node.free_symbols, key=str)
        raise NoClosedForm(node, f"{free} has no value", f"Give it one: subs={{'{free}': ...}}")
    if node.has(sp.DiracDelta):
        raise no_mass(node)
    if node.has(ArraySum):
        raise NoClosedForm(node, "a sum over a countable law stands in it, and it is not linear in the sum", _COMPILED)
    if unordered := [f for f in node.body.atoms(sp.sign, sp.Heaviside) if f.has(sp.I) and f.args[0].is_real is not True]:
        raise NoClosedForm(node, f"{unordered[0].args[0]} is compared with 0 and is not real")
    if len(node.bound) > 1 and not node.body.has(Expectation, sp.I):
        return _over_several(node, bits)
    return _by_closed_forms(node, bits)


def _over_several(node: Expectation, bits: int) -> Evaluated:
    """E f over several normals: by a reduction to one, or closed forms of inner averages, or in doubles, with a larger error."""
    reduced = _reduced(node, int(bits * mp.log(2, 10)) + 2)
    if reduced is not None:
        return reduced
    found = _quickly(node, bits)
    if found is None:
        found = _in_doubles(node)
    if found.error > found.scale/2:
        raise NotConverged((found.value, found.error), f"no digits of {node} were reached")
    return found


def _reduced(node: Expectation, digits: int) -> Evaluated | None:
    """By the common integrator; beyond 15 digits None unless the average reduces to one variable."""
    from hermitex.numbers.several import BeyondDoubles, NormalAverages  # with NumPy and SciPy, which an exact answer does not need

    body, variables = node.opened()
    try:
        found = NormalAverages(digits).of(body, variables, None if node.independent else node.covariance)
    except BeyondDoubles:
        return None
    except Divergent as error:
        raise Divergent(node, error.reason) from None
    return Evaluated(found.value, found.error, found.size)


@kept(256)
def _in_doubles(node: Expectation) -> Evaluated:
    found = _reduced(node, 15)
    assert found is not None, node
    return found


_unreached: dict[Expectation, int] = {}


def _quickly(node: Expectation, bits: int) -> Evaluated | None:
    """By closed forms, if they answer at once; what did not is not tried again for as many bits."""
    if _unreached.get(node, bits + 1) <= bits:
        return None
    try:
        with attempt(_QUICK):
            return _by_closed_forms(node, bits)
    except Divergent:
        raise
    except (BudgetExceeded, NoClosedForm, NotConverged):
        checkpoint("evaluating an average over several variables")
        if len(_unreached) > 256:
            _unreached.clear()
        _unreached[node] = bits
        return None


def _by_closed_forms(node: Expectation, bits: int) -> Evaluated:
    """E f with all variables but one integrated in closed form."""
    if len(node.bound) > 1:  # asked of all variables at once: an inner average may vanish where the whole does not exist
        require_existence(node)
    one = nested(node) if len(node.bound) > 1 or not node.independent else node
    if not isinstance(one, Expectation):
        return _of_constant(one, bits)
    one = settled(one)
    if not isinstance(one, Expectation):
        return _of_constant(one, bits)
    body, (x,) = one.opened()
    if _odd(body, x):
        finite = exists_on_line(one)
        if finite is False:
            raise Divergent(node, "the integrand is not absolutely integrable")
        if finite is None:
            raise NoClosedForm(node, "it is odd, but whether the expectation exists was not decided")
        return Evaluated(mpf(0), mpf(0), mpf(0))
    if not body.has(Expectation):
        return _by_panels(node, body, x, bits)
    if exists_on_line(one) is False:
        raise Divergent(node, "the integrand is not absolutely integrable")
    return _around_others(node, body, x, bits)


def _by_panels(node: Expectation, body: Expr, x: Symbol, bits: int) -> Evaluated:
    """E f by the common integrator, with an error of about 2^-bits E|f|."""
    from hermitex.numbers.average import average  # with NumPy and SciPy, which an exact answer does not need

    try:
        found = average(body, x, int(bits * mp.log(2, 10)) + 2, of_size=True, as_reached=True)
    except Divergent as error:
        raise Divergent(node, error.reason) from None
    return Evaluated(found.value, found.error, found.size)


def _around_others(node: Expectation, body: Expr, x: Symbol, bits: int) -> Evaluated:
    """E F(x, E f_1, ...): averages without x by their values, the others at all nodes of the outer one, in doubles."""
    names: dict[Expectation | ArraySum, Dummy] = {}
    outer = _nodes_named(body, names)
    fixed = {name: integrate(one, bits + _SPARE) for one, name in names.items() if x not in one.free_symbols}
    moving = {name: one for one, name in names.items() if name not in fixed}

    def found(values: Mapping[Dummy, Any]) -> Evaluated:
        numbers = outer.xreplace({name: _rational(value) for name, value in values.items()})
        return _in_doubles_around(node, numbers, x, moving) if moving else _by_panels(node, numbers, x, bits)

    values = {name: s.value for name, s in fixed.items()}
    plain, error = found(values), mpf(0)
    for name, s in fixed.items():
        if s.error > abs(s.value) * mpf(2) ** (-bits - _SPARE // 2):  # of the others so many digits hold that none is felt
            error += abs(found(values | {name: s.value + s.error}).value - plain.value)
    return Evaluated(plain.value, plain.error + error, plain.scale)


def _in_doubles_around(node: Expectation, outer: Expr, x: Symbol, moving: Mapping[Dummy, Expectation]) -> Evaluated:
    from hermitex.numbers.inner_averages import average_of_averages  # with NumPy and SciPy, which an exact answer does not need

    inner: dict[Symbol, tuple[Expr, Symbol]] = {}
    for name, one in moving.items():
        body, variables = whitened(one)
        if len(variables) > 1 or body.has(Expectation, sp.I):
            why = f"{one} stands in it otherwise than linearly, and is not an average of reals over one variable"
            raise NoClosedForm(node, why, _COMPILED)
        inner[name] = body, variables[0]
    found = average_of_averages(outer, x, inner)
    return Evaluated(found.value, found.error, found.size)


def _of_constant(value: Expr, bits: int) -> Evaluated:
    names: dict[Expectation | ArraySum, Dummy] = {}
    return Evaluated(*_at_bits(_nodes_named(value, names), names, bits))


@kept(256)
def _odd(body: Expr, x: Symbol) -> bool:
    if body.xreplace({x: -x}) == -body:
        return True
    if _differs_from_odd(body, x):
        return False
    try:
        from hermitex.symbolic.parity import parity

        return parity(body, x) == -1
    except (ImportError, HermitexError):
        return False


def _differs_from_odd(body: Expr, x: Symbol) -> bool:
    """Do numbers show that f(-x) is not -f(x)? They cost less than a failing proof; a jump may be beyond the first number."""
    from hermitex.numbers.program import Program

    try:
        program = Program(body, [x]).digits
        pairs = [(program(place), program(-place)) for place in (mpf(7) / 10, mpf(23) / 10)]
        return any(abs(one + other) > (abs(one) + abs(other)) / 10**6 for one, other in pairs)
    except (HermitexError, ValueError, ArithmeticError, TypeError):
        return False
