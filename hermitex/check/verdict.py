"""The verdict on lhs = rhs: proved, agreeing to N digits where it was tried, refuted by a counter-example, or open."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from sympy import Expr, Rational
from sympy.printing.str import StrPrinter

from hermitex.show.display import latex
from hermitex.symbolic.arithmetic import log10, mp, mpf, nstr
from hermitex.symbolic.gaussian import Expectation

PROVED, AGREES, FAILS, OPEN = "proved", "agrees", "fails", "undetermined"
_PLAIN = 8  # characters of a short number
_SHOWN = 50  # digits of the two sides of a counter-example


@dataclass(frozen=True)
class CounterExample:
    """The values of parameters and functions at which the sides differ, and both sides there."""

    functions: Mapping[str, str]
    parameters: Mapping[str, Expr]
    left: Any
    right: Any

    @property
    def ratio(self) -> Any:
        """left/right; None if right is 0, or one of them is not real."""
        return self.left/self.right if self.right and not _complex(self.left, self.right) else None

    def __repr__(self) -> str:
        given = [f"{f} = {name}" for f, name in self.functions.items()]
        given += [f"{s} = {decimal(v)}" for s, v in self.parameters.items()]
        left, right = self._sides()
        sides = f"left {left}, right {right}" + (f", left - right {nstr(self.left - self.right, 10)}" if self._long() else "")
        if self.ratio and not self._long():
            with mp.workdps(self._digits() + 5):
                sides += f", ratio {nstr(self.ratio, self._digits())}"
        return ", ".join(given) + ": " + sides if given else sides

    def _digits(self) -> int:
        """Ten, or as many as show the difference."""
        gap, size = abs(self.left - self.right), max(abs(self.left), abs(self.right))
        return 10 if not gap else max(10, 3 - int(log10(gap/size)))

    def _long(self) -> bool:
        """Are they so near to each other that their difference says more?"""
        return self._digits() > _SHOWN

    def _sides(self) -> tuple[str, str]:
        digits = 10 if self._long() else self._digits()
        return nstr(self.left, digits), nstr(self.right, digits)

    def latex(self) -> str:
        """Return the values put in, and both sides at them, as LaTeX without dollars."""
        given = [rf"{f} = \text{{{name}}}" for f, name in self.functions.items()]
        given += [f"{s} = {decimal(v)}" for s, v in self.parameters.items()]
        left, right = self._sides()
        sides = rf"{left} \neq {right}" + (rf",\; \text{{difference }} {nstr(self.left - self.right, 10)}" if self._long() else "")
        return r",\; ".join(given) + rf": \quad {sides}" if given else sides

    def _repr_latex_(self) -> str | None:
        return f"$\\displaystyle {self.latex()}$"

    def to_dict(self) -> dict[str, Any]:
        """Functions, parameters and both sides."""
        return {"functions": dict(self.functions), "parameters": {k: str(v) for k, v in self.parameters.items()},
                "left": _plain(self.left), "right": _plain(self.right)}


@dataclass(frozen=True)
class Check:
    """The verdict on lhs = rhs; true if it is proved or agrees, false if it fails or could not be tested.

    Attributes
    ----------
    status : "proved", "agrees", "fails" or "undetermined"
    digits : the digits to which the sides agree (None if proved or untested)
    how : the proof in words, or where the sides were tried
    counter_example : where the sides differ
    factor : a simple expression that equals lhs/rhs, if one was found
    points : how many points they were tried at (None if proved)
    identity : (lhs, reduced), the right equality for a left side that integration by parts reduces
    """

    lhs: Expr
    rhs: Expr
    status: str
    how: str = ""
    digits: int | None = None
    counter_example: CounterExample | None = None
    factor: Expr | None = None
    identity: tuple[str, Expr, Expr] | None = None
    points: int | None = None

    def __bool__(self) -> bool:
        return self.status in (PROVED, AGREES)

    def __repr__(self) -> str:
        if self.status == PROVED:
            return f"True: proved ({self.how})"
        if self.status == AGREES:
            return f"True: the sides agree{f' to {self.digits} digits' if self.digits else ''} ({self.how}; not proved)"
        if self.status == OPEN:
            return f"undetermined: {self.how}"
        lines = [f"False: the sides differ{f' by the factor {plain(self.factor)}' if self.factor is not None else ''}"]
        if self.how:
            lines[0] += f" ({self.how})"
        if self.counter_example is not None:
            lines.append(f"  {self.counter_example!r}")
        if self.identity is not None:
            rule, left, right = self.identity
            lines.append(f"  {rule}: {plain(left)} = {plain(right)}")
        return "\n".join(lines)

    def latex(self) -> str:
        """The claim, or its refutation, as LaTeX without dollars."""
        sign = {PROVED: "=", AGREES: "=", FAILS: r"\neq", OPEN: r"\overset{?}{=}"}[self.status]
        return f"{latex(self.lhs)} {sign} {latex(self.rhs)}"

    def _repr_latex_(self) -> str | None:
        try:
            return f"$\\displaystyle {self.latex()}$"
        except Exception:  # a notebook must show something else rather than fail
            return None

    def _repr_html_(self) -> str | None:
        """The claim as a formula; below it the proof in words, or the counter-example and the right equality."""
        try:
            said = repr(self).splitlines()
            if self.factor is not None:
                said[0] = f"False: the sides differ by the factor ${latex(self.factor)}$"
            if self.identity is not None:
                rule, left, right = self.identity
                said[-1] = f"{rule}: ${latex(left)} = {latex(right)}$"
            words = "<br>".join(escape(line.strip(), quote=False) for line in said)
            return f"<div>$\\displaystyle {escape(self.latex(), quote=False)}$</div><div>{words}</div>"
        except Exception:  # the notebook falls back on LaTeX
            return None

    def to_dict(self) -> dict[str, Any]:
        """Status, digits, how, and the counter-example and factor where there are any."""
        return {"status": self.status, "digits": self.digits, "how": self.how,
                "counter_example": self.counter_example and self.counter_example.to_dict(),
                "factor": None if self.factor is None else str(self.factor)}


def _complex(*values: Any) -> bool:
    return any(mp.convert(v).imag for v in values)


def _plain(value: Any) -> float | str:
    """For JSON, which has no numbers that are not real."""
    return nstr(value, 15) if _complex(value) else float(value)


def decimal(value: Expr) -> str:
    """A number in ten digits; "3.0 - 6.3e-41" for what is near to a short one and is not it."""
    if not value.is_Rational:
        return str(value)
    said = nstr(mpf(value.p)/value.q, 10)
    rest = value - Rational(said)
    if not rest or len(said.partition("e")[0].strip("-")) > _PLAIN:
        return said
    return f"{said} {'-' if rest < 0 else '+'} {nstr(mpf(abs(rest.p))/rest.q, 3)}"


class _Paper(StrPrinter):
    printmethod = "_paper"  # so that the classes' own str form does not come first

    def _print_Expectation(self, node: Expectation) -> str:
        body, names, cov = node.named()
        given = "" if cov is None else "; " + ", ".join(
            f"cov({names[i]}, {names[j]}) = {self._print(cov[i, j])}"
            for i in range(len(names)) for j in range(i, len(names)) if cov[i, j] != int(i == j))
        return f"E[{self._print(body)}{given}]"

    def _print_AppliedPrime(self, e: Any) -> str:
        return f"{type(e).__name__}({self._print(e.args[0])})"

    def _print_HermiteOfOrder(self, e: Any) -> str:
        return f"He({', '.join(map(self._print, e.args))})"

    def _print_Mul(self, e: Expr) -> str:
        return re.sub(r"(?<!\*)\*(?!\*)", " ", super()._print_Mul(e))


def plain(expr: Any) -> str:
    """One line of text.

    Examples
    --------
    >>> from sympy import Function
    >>> from hermitex.symbolic.gaussian import E
    >>> from hermitex.symbols import z, kappa, r
    >>> plain(r**2*E(z*Function("f")(kappa + r*z), z))
    'r**2 E[z f(kappa + r z)]'
    """
    return _Paper().doprint(expr)
