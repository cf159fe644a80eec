"""f(s) at a small distance s from a singular end: how much precision it loses there, and how small an s still matters.

    (1 - cos s)/s^2 loses two bits for each bit of s;  s^(-99/100) has 1 % of its integral below s = 10^-200
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hermitex.errors import HermitexError
from hermitex.symbolic.arithmetic import mp, mpf

_AT = (20, 40)  # bits of the distances at which a function is looked at
_MANY = 200  # times the precision: more than that a reach is never


class Near:
    """A function of the distance from an end, evaluated with as many bits more as cancellation takes.

    `make` compiles it at the precision in force.
    """

    def __init__(self, make: Callable[[], Callable[..., Any]], probe: Sequence[Any] = ()) -> None:
        self._make, self._probe = make, list(probe)
        self._programs: dict[int, Callable[..., Any]] = {}
        self._lost: float | None = None
        self._power = 0.0

    def __call__(self, s: Any, *values: Any) -> Any:
        if self._lost is None:
            self._look()
        if not self._lost:
            return self._at(mp.prec, s, *values)
        depth = max(0, -int(mp.mag(s)))
        more = -(-int(self._lost * depth + 8) // 64) * 64
        return self._at(mp.prec + more, s, *values)

    def _at(self, bits: int, s: Any, *values: Any) -> Any:
        with mp.workprec(bits):
            if bits not in self._programs:
                self._programs[bits] = self._make()
            return self._programs[bits](s, *values)

    def reach(self) -> int:
        """-log2 of the least distance that matters: int_0^s u^-n du = s^(1 - n)/(1 - n)."""
        if self._lost is None:
            self._look()
        rest = max(1 - self._power, 1.0 / _MANY)
        return int((mp.prec + 20) * 1.2 / rest) if self._power > 0 else mp.prec + 20

    def _look(self) -> None:
        """The bits lost for each bit of s, and the power n of a singularity s^-n, read off two places."""
        lost, sizes = 0.0, []
        for depth in _AT:
            s, exact = mpf(2) ** -depth * mp.pi / 4, None  # at a power of 2, 1 + s^2 is exact and shows no loss
            try:
                exact = self._at(mp.prec + 8 * depth + 200, s, *self._probe)
                plain = self._at(mp.prec, s, *self._probe)
                gap = abs(plain - exact)
                bits = mp.prec + float(mp.log(gap / abs(exact), 2)) if gap and exact else 0.0
            except (HermitexError, ArithmeticError, ValueError):
                bits = float(mp.prec)
            lost = max(lost, bits / depth if bits > 12 else 0.0)
            sizes.append(abs(exact) if exact is not None else mpf(0))
        self._lost = 1.25 * lost + 0.5 if lost else 0.0
        if all(size > 0 for size in sizes):
            self._power = max(0.0, float(mp.log(sizes[1] / sizes[0], 2)) / (_AT[1] - _AT[0]))
