"""M(omega, V) = min_f (f - omega)^2/(2V) + l(f), attained at prox(omega, V): proximal operators and Moreau envelopes as nodes.

A node is opaque and binds f. ``.doit()`` is exact: branch by branch where the loss is piecewise linear or quadratic, and
at its kinks, where the minimum sticks; a curved branch stays a node, which is solved for numbers when they are needed. Envelope
theorem: dM/domega = (omega - prox)/V, dM/dV = -(omega - prox)^2/(2V^2), dM/dy = dl/dy at prox. Implicit function theorem:
dprox/domega = 1/(1 + V l''), dprox/dV = -l'/(1 + V l''), dprox/dy = -V dl'/dy/(1 + V l'').
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from sympy import Basic, Dummy, Expr, Float, Function, Piecewise, S, Symbol, oo, sympify
from sympy.core.function import ArgumentIndexError

from hermitex.errors import BadInput, NoClosedForm, NotConverged
from hermitex.symbolic.arithmetic import mp, mpf
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.losses import VARIABLE, Loss, bind, inner, labels, put, require_convex

_OMEGA, _V = Dummy("omega", real=True), Dummy("V", positive=True)


class _Minimisation(Function):
    """What `Prox` and `Moreau` share: arguments (loss, omega, V, values of the loss's parameters)."""

    analytic_on_the_line = True  # of its smooth branches; a kinked loss is resolved beforehand

    def __new__(cls, *args: Any, domain: tuple[Any, Any] = (-oo, oo)) -> Expr:
        if not isinstance(args[0], Loss):
            if len(args) != 4:
                raise BadInput(f"{cls.__name__}(loss, f, omega, V) takes four arguments, not {len(args)}")
            loss, values = bind(_expression(args[0]), _variable(args[1], _expression(args[0])), domain)
            _judge(loss)
            args = (loss, _expression(args[2]), _expression(args[3]), *values)
        loss, omega, V, *rest = args
        if V == 0 or (V.is_number and V.is_negative):
            raise BadInput(f"{cls.__name__}: V must be positive, not {V}")
        return super().__new__(cls, *_with_numbers(loss, omega, V, rest))

    @property
    def loss(self) -> Loss:
        """The loss, f bound."""
        return self.args[0]

    @property
    def values(self) -> tuple[Expr, ...]:
        """The values for the parameters of the loss."""
        return self.args[3:]

    def _eval_is_real(self) -> bool | None:
        return all(a.is_real for a in self.args[1:]) or None

    def doit(self, **hints: Any) -> Expr:
        """The closed form, with a node left for each curved branch."""
        expr = self
        if hints.get("deep", True):
            expr = self.func(self.loss, *(a.doit(**hints) for a in self.args[1:]))
        return labels(expr._exact())

    def _exact(self) -> Expr:
        raise NotImplementedError

    def _spread(self, form: Expr) -> Expr:
        """A formula in the reserved omega, V and parameters at the arguments of this node."""
        return put(form, self.loss, VARIABLE, self.values).xreplace({_OMEGA: self.args[1], _V: self.args[2]})

    def _by_pieces(self, argindex: int) -> Expr:
        """The derivative of the resolved form: a kinked loss has no l'' where the minimum sticks."""
        symbol = (_OMEGA, _V, *self.loss.parameters)[argindex - 2]
        generic = self.func(self.loss, _OMEGA, _V, *self.loss.parameters)
        return labels(self._spread(generic._exact().diff(symbol)))

    def _eval_evalf(self, prec: int) -> Expr:
        if self.free_symbols:
            return self
        from hermitex.symbolic.precise import evaluate

        return Float(evaluate(self, int(prec * 0.30103) + 1), precision=prec)

    def _written(self, printer: Any) -> tuple[str, ...]:
        names = {s.name for a in self.args for s in a.free_symbols}
        f = Symbol(next(n for n in ("f", "u", "f_", "u_") if n not in names), real=True)
        return tuple(printer._print(e) for e in (self.loss.at(f, self.values), f, *self.args[1:3]))

    def _sympystr(self, printer: Any) -> str:
        return f"{type(self).__name__}({', '.join(self._written(printer))})"


class Prox(_Minimisation):
    r"""argmin_f (f - omega)^2/(2V) + l(f) for a convex loss l, as a node.

    Parameters
    ----------
    loss : expression (or text) in `f` and in anything else: labels, widths, parameters
    f : the variable of the loss; it is bound, so its name does not matter
    omega, V : expressions; V > 0
    domain : (lo, hi) where the loss is finite on an interval only

    Raises
    ------
    BadInput : the loss is not convex, where that can be seen; it does not depend on f.

    Guarantee
    ---------
    For convex losses only; a closed form equals the minimiser for all V > 0, and a number has the digits asked for. See
    docs/promise.md.

    Examples
    --------
    >>> from sympy import Abs, exp, log
    >>> from hermitex.symbols import y, f, V
    >>> w = Symbol("omega", real=True)
    >>> Prox((y - f)**2/2, f, w, V).doit()
    (V*y + omega)/(V + 1)
    >>> Prox(Abs(f), f, 3, 1).doit()
    2
    >>> node = Prox(log(1 + exp(-y*f)), f, w, V)
    >>> print(node)
    Prox(log(1 + exp(-f*y)), f, omega, V)
    >>> node.subs({y: 1, w: 0, V: 4}).evalf(12)
    1.04259691400
    """

    def fdiff(self, argindex: int = 2) -> Expr:
        """The implicit function theorem on f - omega + V l'(f) = 0."""
        if argindex == 1:
            raise ArgumentIndexError(self, argindex)
        if not self.loss.smooth:
            return self._by_pieces(argindex)
        loss, V = self.loss, self.args[2]
        bend = 1 + V * put(loss.curvature, loss, self, self.values)
        if argindex == 2:
            return 1 / bend
        if argindex == 3:
            return -put(loss.slope, loss, self, self.values) / bend
        return -V * put(loss.slope.diff(loss.parameters[argindex - 4]), loss, self, self.values) / bend

    def _exact(self) -> Expr:
        outer = inner(self.loss)
        a, b = self._spread(outer.a), self._spread(outer.b)
        if outer.core == self.loss:
            found = _resolved(self.loss)
            return self if found is None else self._spread(found.prox)
        values = dict(zip(self.loss.parameters, self.values, strict=True))
        core = Prox(outer.core, a * self.args[1] + b, labels(a**2) * self.args[2], *(values[p] for p in outer.core.parameters))
        core = core._exact() if isinstance(core, Prox) else core
        return _shifted(core, a, b)

    def _latex(self, printer: Any, exp: Any = None) -> str:
        loss, f, omega, V = self._written(printer)
        text = rf"\mathrm{{prox}}_{{{V}\,\left[{f} \mapsto {loss}\right]}}\left({omega}\right)"
        return text if exp is None else rf"{text}^{{{exp}}}"

    @staticmethod
    def mpmath_value(loss: Loss, omega: Any, V: Any, *values: Any) -> Any:
        """The minimiser at mpmath's working precision."""
        return _minimiser(loss, omega, V, values)


class Moreau(_Minimisation):
    r"""min_f (f - omega)^2/(2V) + l(f) for a convex loss l, as a node; arguments as in `Prox`.

    Guarantee
    ---------
    As of `Prox`. See docs/promise.md.

    Examples
    --------
    >>> from sympy import Abs
    >>> from hermitex.symbols import y, f, V
    >>> w = Symbol("omega", real=True)
    >>> Moreau((y - f)**2/2, f, w, V).doit()
    (-omega + y)**2/(2*V + 2)
    >>> Moreau(Abs(f), f, w, V).diff(w)
    (omega - Prox(Abs(f), f, omega, V))/V
    """

    @property
    def prox(self) -> Prox:
        """The place of the minimum."""
        return Prox(*self.args)

    def fdiff(self, argindex: int = 2) -> Expr:
        """The envelope theorem."""
        loss, omega, V = self.loss, self.args[1], self.args[2]
        if argindex == 1:
            raise ArgumentIndexError(self, argindex)
        if argindex == 2:
            return (omega - self.prox) / V
        if argindex == 3:
            return -((omega - self.prox) ** 2) / (2 * V**2)
        if not loss.smooth:
            return self._by_pieces(argindex)
        return put(loss.expr.diff(loss.parameters[argindex - 4]), loss, self.prox, self.values)

    def _exact(self) -> Expr:
        outer = inner(self.loss)
        if outer.core == self.loss:
            found = _resolved(self.loss)
            return (self.prox - self.args[1])**2/(2*self.args[2]) + self.loss.at(self.prox, self.values) if found is None \
                else self._spread(found.envelope)
        a, b = self._spread(outer.a), self._spread(outer.b)
        values = dict(zip(self.loss.parameters, self.values, strict=True))
        kept = (values[p] for p in outer.core.parameters)
        return Moreau(outer.core, a * self.args[1] + b, labels(a**2) * self.args[2], *kept)._exact()

    def _latex(self, printer: Any, exp: Any = None) -> str:
        loss, f, omega, V = self._written(printer)
        text = rf"\mathcal{{M}}_{{{V}\,\left[{f} \mapsto {loss}\right]}}\left({omega}\right)"
        return text if exp is None else rf"\left({text}\right)^{{{exp}}}"

    @staticmethod
    def mpmath_value(loss: Loss, omega: Any, V: Any, *values: Any) -> Any:
        """The minimum at mpmath's working precision."""
        f = _minimiser(loss, omega, V, values)
        return (f - omega) ** 2 / (2 * V) + _programs(loss)[2](f, *values)


# -- reading what the user gave ----------------------------------------------------------------------------------------
def _expression(given: Any) -> Expr:
    if isinstance(given, str):
        from hermitex.symbolic.parsing import expression

        return expression(given)
    return sympify(given, strict=True)


def _variable(given: Any, loss: Expr) -> Symbol:
    """The symbol of the loss that bears the name given."""
    found = [s for s in loss.free_symbols if s.name == str(given)]
    if isinstance(given, Symbol) and given in loss.free_symbols:
        return given
    if len(found) == 1:
        return found[0]
    raise BadInput(f"the loss {loss} does not depend on {given}; write it as an expression in {given}")


def _with_numbers(loss: Loss, omega: Expr, V: Expr, values: list[Expr]) -> tuple:
    """Parameters that are numbers are put into the loss itself, so that equal losses are equal."""
    fixed = {p: v for p, v in zip(loss.parameters, values, strict=True) if v.is_number}
    if not fixed:
        return loss, omega, V, *values
    kept = [(p, v) for p, v in zip(loss.parameters, values, strict=True) if p not in fixed]
    lo, hi = (S(e).xreplace(fixed) for e in loss.domain)
    names = {p: Symbol(f"p{i}", **p._assumptions_orig) for i, (p, _) in enumerate(kept, start=1)}
    expr, lo, hi = (e.xreplace(fixed).xreplace(names) for e in (loss.expr, lo, hi))
    return Loss(expr, loss.f, tuple(names.values()), (lo, hi)), omega, V, *(v for _, v in kept)


def _judge(loss: Loss) -> None:
    """Refuse what is seen not to be convex; a loss whose kinks are not ordered yet is judged when it is resolved."""
    if loss.smooth:
        require_convex(loss.expr, loss.f, loss.domain)
    elif loss == inner(loss).core or not inner(loss).core.parameters:
        _resolved(inner(loss).core)


# -- branch by branch --------------------------------------------------------------------------------------------------
class Resolved(NamedTuple):
    """prox and envelope over the reserved omega and V and the loss's parameters."""

    prox: Expr
    envelope: Expr


@lru_cache(maxsize=512)
def _resolved(loss: Loss) -> Resolved | None:
    """The exact form, or None where the loss is one curved branch."""
    from hermitex.symbolic.pieces import pieces

    found = pieces(loss.expr, loss.f, *loss.domain)
    for p in found:
        require_convex(p.expr, loss.f, (p.lo, p.hi))
    if len(found) == 1 and _quadratic(found[0].expr, loss.f) is None and found[0].expr == loss.expr and not _walls(loss):
        return None
    prox, envelope = [], []
    for i, p in enumerate(found):
        values = _branch(loss, p)
        below, above = _slope(p, loss.f, p.lo), _slope(p, loss.f, p.hi)
        before = _slope(found[i - 1], loss.f, p.lo) if i else -oo
        _continuous(loss, found[i - 1], p) if i else None
        if p.lo.is_finite and below.is_finite and _jump(before, below, loss):
            stuck = p.lo + _V * below >= _OMEGA
            prox.append((p.lo, stuck))
            envelope.append(((p.lo - _OMEGA) ** 2 / (2 * _V) + p.expr.subs(loss.f, p.lo), stuck))
        free = S.true if p.hi is oo or not above.is_finite else p.hi + _V * above > _OMEGA
        prox.append((values[0], free))
        envelope.append((values[1], free))
    if prox[-1][1] != S.true:  # a wall at the right end of the domain
        last = found[-1]
        prox.append((last.hi, S.true))
        envelope.append(((last.hi - _OMEGA) ** 2 / (2 * _V) + last.expr.subs(loss.f, last.hi), S.true))
    return Resolved(Piecewise(*prox), Piecewise(*envelope))


def _walls(loss: Loss) -> bool:
    """Does the domain end where the slope is still finite?"""
    from hermitex.symbolic.pieces import Piece

    whole = Piece(*loss.domain, loss.expr)
    return any(e.is_finite and _slope(whole, loss.f, e).is_finite for e in loss.domain)


def _quadratic(branch: Expr, f: Symbol) -> tuple[Expr, Expr, Expr] | None:
    """(A, B, C) with branch = A f^2/2 + B f + C."""
    if not branch.is_polynomial(f):
        return None
    poly = branch.as_poly(f)
    if poly is None or poly.degree() > 2:
        return None if branch.has(f) else (S.Zero, S.Zero, branch)
    return 2 * poly.nth(2), poly.nth(1), poly.nth(0)


def _branch(loss: Loss, p: Any) -> tuple[Expr, Expr]:
    """(prox, envelope) while the minimum is inside a branch."""
    square = _quadratic(p.expr, loss.f)
    if square is not None:
        A, B, C = square
        bend = 1 + _V * A
        if A == 0:
            return _OMEGA - _V * B, B * _OMEGA - _V * B**2 / 2 + C
        # completing the square keeps (y - omega)^2 together
        centre = -B / A
        return (_OMEGA - _V * B) / bend, A * (_OMEGA - centre) ** 2 / (2 * bend) + (C - B**2 / (2 * A)).expand()
    kept = tuple(s for s in loss.parameters if s in p.expr.free_symbols | p.lo.free_symbols | p.hi.free_symbols)
    node = Prox(Loss(p.expr, loss.f, kept, (p.lo, p.hi)), _OMEGA, _V, *kept)
    return node, (node - _OMEGA) ** 2 / (2 * _V) + p.expr.xreplace({loss.f: node})


def _slope(p: Any, f: Symbol, end: Expr) -> Expr:
    """l' at an end of a branch, from inside (infinite at an infinite end)."""
    if not end.is_finite:
        return end
    value = p.expr.diff(f).subs(f, end)
    if value.has(S.NaN):  # SymPy's slope of (-f)^(3/2) is 3 (-f)^(3/2)/(2 f): in the distance t from the end it is a power of t
        t, side = Dummy("t", positive=True), 1 if end == p.lo else -1
        value = side * p.expr.xreplace({f: end + side * t}).diff(t).subs(t, 0)
    if value.has(S.NaN):
        raise NoClosedForm(p.expr, f"its slope at {f} = {end} is not known")
    return -oo if value is S.ComplexInfinity and end == p.lo else oo if value is S.ComplexInfinity else value


def _jump(before: Expr, after: Expr, loss: Loss) -> bool:
    """Is there a kink, at which the minimum sticks? A loss whose slope falls is not convex."""
    gap = (after - before).expand() if before.is_finite else oo
    if gap.is_negative:
        raise BadInput(f"the loss {loss.expr} is not convex in {loss.f}: its slope falls from {before} to {after} at a kink")
    return gap.is_zero is not True


def _continuous(loss: Loss, left: Any, right: Any) -> None:
    gap = (left.expr.subs(loss.f, left.hi) - right.expr.subs(loss.f, left.hi)).expand()
    if gap.is_zero is False:
        raise BadInput(f"the loss {loss.expr} is not convex in {loss.f}: it jumps at {left.hi}")


def _shifted(core: Expr, a: Expr, b: Expr) -> Expr:
    """(core - b)/a, branch by branch."""
    if isinstance(core, Piecewise):
        return Piecewise(*((_shifted(e, a, b), c) for e, c in core.args))
    value = (core - b) / a
    if core.has(_Minimisation) or core.count_ops() > 30:
        return value
    return min((value.factor(), value.expand(), value), key=lambda e: e.count_ops())


# -- digits ------------------------------------------------------------------------------------------------------------
@lru_cache(maxsize=256)
def _programs(loss: Loss) -> tuple[Any, Any, Any]:
    """l', l'' and l as functions of (f, parameters)."""
    from hermitex.numbers.program import Program

    slope = loss.slope if loss.smooth else loss.expr.diff(loss.f)
    forms = (slope, loss.curvature if loss.smooth else S.Zero, loss.expr)
    return tuple(Program(e, [loss.f, *loss.parameters]).digits for e in forms)  # type: ignore[return-value]


def _minimiser(loss: Loss, omega: Any, V: Any, values: tuple) -> Any:
    """The root of g(f) = f - omega + V l'(f), which rises with slope 1 at least: it is within |g(f)| of any f."""
    checkpoint("solving for a proximal operator")
    goal = mp.prec
    if any(isinstance(v, mp.mpc) and v.imag != 0 for v in (omega, V, *values)):
        raise NoClosedForm(loss, "a proximal operator is for real arguments, and a square root in them is not real")
    omega, V, values = mp.re(omega), mp.re(V), tuple(mp.re(v) for v in values)
    with mp.workprec(goal + 20):
        slope, curvature, _ = _programs(loss)
        lo, hi = (e if isinstance(e, mpf) else _end(e, loss, values) for e in loss.domain)
        low, high, before = lo, hi, mpf("inf")
        for f in (mpf(omega), mpf(0)):  # both ends of the bracket from what rises
            if lo < f < hi:
                g = f - omega + V * slope(f, *values)
                low, high = (max(low, f - g), min(high, f)) if g > 0 else (max(low, f), min(high, f - g))
        f = mpf(0) if lo < 0 < hi and low <= 0 <= high else _inside(low, high)
        for _ in range(40 * goal):
            g = f - omega + V * slope(f, *values)
            if g == 0:
                return +f
            low, high = (max(low, f - g), f) if g > 0 else (f, min(high, f - g))
            step = -g / (1 + V * curvature(f, *values)) if loss.smooth else mpf("inf")
            # Newton while its steps shrink and stay inside, else the middle of the bracket
            trial = f + step if abs(step) <= before / 2 and low <= f + step <= high and lo < f + step < hi else _inside(low, high)
            before = abs(trial - f)
            floor = 0 if loss.smooth else (1 + abs(omega)) * mpf(2) ** -goal  # a kink at 0 is not approached for ever
            if before <= max(abs(trial), floor) * mpf(2) ** (-goal - 8) or not low < high:
                return +(trial if loss.smooth else _snapped(trial, loss, values))
            f = trial
    raise NotConverged(f, f"prox of {loss} at omega = {mp.nstr(omega, 8)}, V = {mp.nstr(V, 8)} did not settle")


def _snapped(f: Any, loss: Loss, values: tuple) -> Any:
    """The kink itself, where the bisection has closed in on one."""
    from hermitex.symbolic.pieces import breakpoints

    for kink in breakpoints(loss.expr, loss.f):
        at = _end(kink, loss, values)
        if abs(f - at) <= (1 + abs(at)) * mpf(2) ** (16 - mp.prec):
            return at
    return f


def _end(e: Expr, loss: Loss, values: tuple) -> Any:
    if e in (oo, -oo):
        return mpf("inf") if e is oo else mpf("-inf")
    from hermitex.numbers.program import Program

    return Program(e, loss.parameters).digits(*values)


def _inside(low: Any, high: Any) -> Any:
    """A point between two ends, either of which may be infinite."""
    if low == -mp.inf and high == mp.inf:
        return mpf(0)
    if low == -mp.inf:
        return 2 * high - 1 if high <= 0 else mpf(0) if high > 1 else -high
    if high == mp.inf:
        return 2 * low + 1 if low >= 0 else mpf(0) if low < -1 else -low
    return (low + high) / 2


def has_nodes(expr: Basic) -> bool:
    """True if the expression holds a proximal operator or a Moreau envelope."""
    return bool(expr.has(Prox, Moreau))


def resolve(expr: Expr) -> Expr:
    """Every proximal node of `expr` in its exact form, what is curved left as nodes over the fewest parameters.

    >>> from hermitex.symbols import f, V
    >>> resolve(1 + Prox(f**2/2, f, 3, V))
    1 + 3/(V + 1)
    """
    if not has_nodes(expr):
        return expr
    for _ in range(4):
        done = expr.replace(lambda e: isinstance(e, _Minimisation), lambda e: e.doit(deep=False))
        if done == expr:
            return expr
        expr = done
    return expr


__all__ = ["Loss", "Moreau", "Prox", "has_nodes", "resolve"]
