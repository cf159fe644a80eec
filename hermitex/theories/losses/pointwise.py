r"""l(y, f), convex in f: a loss of one sample as a theory reads it, its force s = (f* - omega)/V and the kind of its labels.

f* = argmin (f - omega)^2/(2V) + l(y, f), so s = -dl/df at f*. If the loss depends on y - f only, s is a function of
t = y - omega, and the Gaussian noise of the label joins that of omega.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sympy import Abs, Dummy, Expr, Piecewise, S, exp, log, piecewise_fold

from hermitex.errors import BadInput, HermitexError, ParseError, UnknownName, first_line
from hermitex.symbolic.moreau import Moreau, Prox
from hermitex.symbolic.parsing import expression, parse
from hermitex.symbols import f, y

_NAMED = {"logistic": log(1 + exp(-y*f)), "hinge": (1 - y*f + Abs(1 - y*f))/2}
_ADVICE = "a loss is square, logistic, hinge, huber:DELTA, or an expression in y and f that is convex in f"


@dataclass(frozen=True)
class Huber:
    """l = (y - f)^2/2 where |y - f| <= delta, delta |y - f| - delta^2/2 beyond: the square loss with bounded force."""

    delta: Any

    @property
    def expr(self) -> Expr:
        """The loss in y and f."""
        try:
            delta = expression(self.delta)
        except HermitexError:
            delta = S.NaN
        if not (delta.is_number and delta.is_finite and delta.is_positive):
            raise BadInput(f"huber:{self.delta}: DELTA is a positive number, as in huber:1")
        return huber(delta)


def huber(delta: Expr) -> Expr:
    """The Huber loss in y and f, of a width that may be a symbol."""
    gap = Abs(y - f)
    return Piecewise((gap**2/2, gap <= delta), (delta*gap - delta**2/2, True))


@dataclass(frozen=True)
class Pointwise:
    """A convex loss of one sample: `name` as it was asked for, `expr` in y and f."""

    name: str
    expr: Expr

    def __str__(self) -> str:
        return self.name

    def require_labels(self, asking: str, g: Any, binary: bool) -> None:
        """Raise one clear line if the loss asks for labels of +-1 and the target is real."""
        if self.margin and not binary:
            raise BadInput(f"{asking}: the loss {self} depends on y f only and needs labels of +-1; the target {g.name} is "
                           f"real valued: take sign({g.expr}) or a loss of y - f, such as huber:1")

    @cached_property
    def of_residual(self) -> Expr | None:
        """h with l(y, f) = h(y - f), in the symbol f for its argument; None if the loss is not of that kind."""
        h = self.expr.subs(f, y - f, simultaneous=True)
        short = h if y not in h.free_symbols else h.expand()
        return None if y in short.free_symbols else _plain(short)

    @cached_property
    def margin(self) -> bool:
        """True if the loss depends on the product y f only: it asks for labels of +-1."""
        h = self.expr.subs(f, f/y, simultaneous=True)
        return self.of_residual is None and y not in (h if y not in h.free_symbols else h.expand()).free_symbols

    @cached_property
    def symmetric(self) -> bool:
        """True if l(-1, -f) = l(1, f), proved."""
        gap = self.at(-1).subs(f, -f) - self.at(1)
        return gap == 0 or gap.rewrite(Piecewise).expand() == 0

    @cached_property
    def family(self) -> Expr | None:
        """k with l(y, f) = b(f) - k y f + a(y), as in exponential families (k = 1); None if the loss is not of that kind."""
        cross = (self.expr - self.expr.subs(y, 0)).diff(f).expand()
        k = -(cross/y).expand()
        return k if k.is_number and k.is_finite and k != 0 else None

    @cached_property
    def of_label(self) -> Expr:
        """a(y) of l(y, f) = b(f) - k y f + a(y)."""
        assert self.family is not None
        return (self.expr + self.family*y*f - self.expr.subs(y, 0)).expand()

    def at(self, label: Any) -> Expr:
        """l(label, f)."""
        return _plain(self.expr.subs(y, label))

    def force(self, label: Any, omega: Expr, V: Expr) -> tuple[Expr, Expr]:
        """(s, f*) at a label: s = (f* - omega)/V = -dl/df(f*)."""
        return force(self.at(label), omega, V)


def force(h: Expr, omega: Expr, V: Expr) -> tuple[Expr, Expr]:
    """((f* - omega)/V, f*) with f* = argmin (f - omega)^2/(2V) + h(f)."""
    node = Prox(h, f, omega, V)
    if isinstance(node, Prox) and node.loss.smooth and isinstance(done := node.doit(), Prox | type(-node)) and done.has(Prox):
        return -h.diff(f).subs(f, done), done  # (f* - omega)/V would lose the digits of a small force
    at, size = Dummy("omega", real=True), Dummy("V", positive=True)
    prox = piecewise_fold(Prox(h, f, at, size).doit())
    branches = prox.args if isinstance(prox, Piecewise) else ((prox, S.true),)
    s = Piecewise(*((((e - at)/size).factor() if not e.has(Prox) else (e - at)/size, where) for e, where in branches))
    return s.xreplace({at: omega, size: V}), prox.xreplace({at: omega, size: V})


def envelope(h: Expr, omega: Expr, V: Expr) -> Expr:
    """min (f - omega)^2/(2V) + h(f), branch by branch."""
    at, size = Dummy("omega", real=True), Dummy("V", positive=True)
    return Moreau(h, f, at, size).doit().xreplace({at: omega, size: V})


def _plain(e: Expr) -> Expr:
    """Abs(1 - f) and Abs(f - 1) are one."""
    return e.replace(lambda a: isinstance(a, Abs), lambda a: Abs((-a.args[0]).expand())
                     if a.args[0].could_extract_minus_sign() else Abs(a.args[0].expand()))


#: the square loss of those theories that have it so
HALF_SQUARE = Pointwise("square", (y - f)**2/2)


def pointwise(loss: Any) -> Pointwise:
    """The loss that was asked for: a name, huber:DELTA, `Huber`, or an expression (or text) in y and f.

    Raises
    ------
    BadInput : it is not convex in f, does not depend on f, or has other letters; one line.

    Examples
    --------
    >>> pointwise("logistic").expr
    log(1 + exp(-f*y))
    >>> pointwise("log(cosh(y - f))").of_residual
    log(cosh(f))
    """
    if isinstance(loss, Pointwise):
        return loss
    if isinstance(loss, Huber):
        return Pointwise(f"huber:{loss.delta}", loss.expr)
    text = loss.strip() if isinstance(loss, str) else str(loss)
    if text in _NAMED:
        return Pointwise(text, _NAMED[text])
    if text == "square":
        return Pointwise(text, (y - f)**2)
    if text.split(":")[0] == "huber":
        return Pointwise(text, Huber(text.partition(":")[2] or "without a number").expr if ":" in text else _no_delta())
    return _checked(text, _read(loss, text))


def _no_delta() -> Expr:
    raise BadInput("huber needs its width: huber:DELTA, as in huber:1")


def _read(loss: Any, text: str) -> Expr:
    try:
        expr = parse(loss, symbols={"y": "real", "f": "real"}) if isinstance(loss, str) else expression(loss)
    except (UnknownName, ParseError) as error:
        raise BadInput(f"loss: {str(error).split('; or declare')[0]}; {_ADVICE}") from error
    expr = expr.subs({s: t for s in expr.free_symbols for t in (y, f) if s.name == t.name})
    other = sorted(s.name for s in expr.free_symbols - {y, f})
    if other:
        raise BadInput(f"loss {text!r} holds {', '.join(other)}; {_ADVICE}")
    if f not in expr.free_symbols:
        raise BadInput(f"loss {text!r} does not depend on f; {_ADVICE}")
    if y not in expr.free_symbols:
        raise BadInput(f"loss {text!r} does not depend on the label y; {_ADVICE}")
    return expr


def _checked(text: str, expr: Expr) -> Pointwise:
    """The loss, if it is convex at labels of both signs, as far as that is seen."""
    for label in (1, -1, S.Half):
        try:
            if f in (at := _plain(expr.subs(y, label))).free_symbols:
                Prox(at, f, Dummy("omega", real=True), Dummy("V", positive=True))
        except RecursionError:
            raise BadInput(f"loss {text!r} is not seen to be convex in f; {_ADVICE}") from None
        except HermitexError as error:
            raise BadInput(f"loss {text!r}: {first_line(error)}; {_ADVICE}") from error
    return Pointwise(text, expr)
