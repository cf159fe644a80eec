"""f(x) as mpmath's number, by flint's balls where they are tight: a tenth of the time, with the rounding known.

A ball that is wide is computed again with more bits, so that log(1 + exp(-70)) keeps its digits. One that stays so, is not finite
or not real tells nothing, and mpmath says what f is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from mpmath.libmp import from_man_exp
from sympy import Expr, Symbol

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


@cache
def _flint() -> tuple[Any, Any]:
    """The library and its numbers as a backend."""
    import flint

    from hermitex.symbolic.digits.ball_backend import Balls

    return flint, Balls()


__all__ = ["Swift"]
