"""f(x) as mpmath's number, by flint's balls where they are tight: a tenth of the time, with the rounding known.

A ball that is wide is computed again with more bits, so that log(1 + exp(-70)) keeps its digits. One that stays so, is not finite
or not real tells nothing, and mpmath says what f is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from mpmath.libmp import from_man_exp
from sympy import Dummy, Expr, Symbol

from hermitex.errors import HermitexError
from hermitex.symbolic.arithmetic import mp
from hermitex.symbolic.digits.digit_program import Backend, StraightLine

_GUARDS = (16, 100, 500, 2500, 10_000)  # bits more than mpmath has: the first, and what follows where a ball is wide
_MISSES = 40  # balls that told nothing, beyond those that did, after which no more are tried


class Swift:
    """``Swift(expr, variables, backend)(*values)``: a `StraightLine` of mpmath's numbers.

    The balls have the precision that is in force where it is made, whatever is in force where it is called.

    Examples
    --------
    >>> from hermitex.symbols import z
    >>> from hermitex.symbolic.precise import MPMATH
    >>> from sympy import exp
    >>> Swift(1 + exp(z - 1)**2, [z], MPMATH)(mp.mpf(1))
    mpf('2.0')
    """

    def __init__(self, expr: Expr, variables: Sequence[Symbol], backend: Backend, *, deeper: bool = True) -> None:
        self._guards = _GUARDS if deeper else _GUARDS[:1]  # not where the caller measures what is lost
        self._plain = StraightLine(expr, variables, backend).prepare()
        self._expr, self._variables = expr, variables
        self._bits, self._misses = mp.prec, 0
        self._balls: list[StraightLine] = []
        self._more()

    def __call__(self, *values: Any) -> Any:
        if self._balls:
            found = self._tight(values)
            self._misses += 1 if found is None else -1
            if found is not None:
                return found
            if self._misses > _MISSES:
                self._balls = []
        return self._plain(*values)

    def _more(self) -> bool:
        """The program with the next more bits; False where there is none."""
        flint, balls = _flint()
        if len(self._balls) == len(self._guards):
            return False
        before, flint.ctx.prec = flint.ctx.prec, self._bits + _GUARDS[len(self._balls)]
        try:
            self._balls.append(StraightLine(self._expr, self._variables, balls).prepare())
        except (HermitexError, ValueError, ArithmeticError, TypeError, AttributeError):
            return False
        finally:
            flint.ctx.prec = before
        return True

    def _tight(self, values: Sequence[Any]) -> Any:
        """The middle of the first ball that is not wider than a rounding of mpmath's may be; None where none is."""
        flint, _ = _flint()
        arguments = []
        for v in values:
            if not hasattr(v, "_mpf_"):
                return None
            sign, man, exponent = map(int, v._mpf_[:3])  # where gmpy2 is installed the mantissa is one of its numbers
            if not man and exponent:  # infinite, or no number
                return None
            arguments.append(flint.acb(flint.arb((-man if sign else man, exponent))))
        before = flint.ctx.prec
        try:
            for i, guard in enumerate(self._guards):
                if i == len(self._balls) and not self._more():
                    return None
                flint.ctx.prec = self._bits + guard
                ball = self._balls[i](*arguments)
                if not ball.is_finite() or not ball.imag.is_zero():
                    return None
                if ball.real.rel_accuracy_bits() >= self._bits:
                    man, exponent = ball.real.mid().man_exp()
                    return mp.make_mpf(from_man_exp(int(man), int(exponent), self._bits, "n"))
        except (ValueError, ArithmeticError, TypeError):
            return None
        finally:
            flint.ctx.prec = before
        return None


class Gridded:
    """``Gridded(expr, (x, y), backend)(x, y)`` on a grid: what x alone enters once for a row of it, what y alone enters once
    for a column.

    Examples
    --------
    >>> from hermitex.symbols import z1, z2
    >>> from hermitex.symbolic.precise import MPMATH
    >>> from sympy import exp
    >>> Gridded(exp(z1)*(1 + exp(z2)), (z1, z2), MPMATH)(mp.mpf(0), mp.mpf(0))
    mpf('2.0')
    """

    def __init__(self, expr: Expr, variables: Sequence[Symbol], backend: Backend) -> None:
        names: dict[Expr, Symbol] = {v: v for v in variables}

        def core(e: Expr) -> Expr:
            own = e.free_symbols.intersection(variables)
            if len(own) == 1 and e not in names and e.args:
                names[e] = Dummy("g", real=True)
            if len(own) == 1:
                return names[e]
            return e.func(*map(core, _sorted(e, variables))) if len(own) > 1 else e

        inner = core(expr)
        own = [[e for e in names if e.free_symbols.intersection(variables) == {v}] for v in variables]
        self._parts = [[(e, Swift(e, [v], backend)) for e in part] for v, part in zip(variables, own, strict=True)]
        self._core = Swift(inner, [names[e] for part in self._parts for e, _ in part], backend)
        self._row: tuple[Any, list[Any]] = (None, [])
        self._columns: dict[Any, list[Any]] = {}

    def __call__(self, x: Any, y: Any) -> Any:
        if self._row[0] != x:
            self._row = x, [program(x) for _, program in self._parts[0]]
        if y not in self._columns:
            self._columns[y] = [program(y) for _, program in self._parts[1]]
        return self._core(*self._row[1], *self._columns[y])


def _sorted(e: Expr, variables: Sequence[Symbol]) -> list[Expr]:
    """The arguments; of a sum or a product those of one variable alone as one."""
    if not (e.is_Add or e.is_Mul):
        return list(e.args)
    alone = {v: [a for a in e.args if a.free_symbols.intersection(variables) == {v}] for v in variables}
    rest = [a for a in e.args if len(a.free_symbols.intersection(variables)) != 1]
    return [*rest, *(e.func(*own) for own in alone.values() if own)]


@cache
def _flint() -> tuple[Any, Any]:
    """The library and its numbers as a backend."""
    import flint

    from hermitex.symbolic.digits.ball_backend import Balls

    return flint, Balls()


__all__ = ["Gridded", "Swift"]
