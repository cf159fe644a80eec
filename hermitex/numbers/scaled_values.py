"""f(x) = m e^k with a whole number k: values of an expression on arrays of points, from which nothing under- or overflows.

The expression is walked once; equal parts are computed once. k is None where all values fit in floats, so that ordinary
integrands cost no more than NumPy does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray
from scipy import special

from hermitex.errors import NoClosedForm

Array = NDArray[np.float64]
Value = tuple[Array, Array | None]

PLAIN: dict[Any, Callable[..., Any]] = {
    sp.sin: np.sin, sp.cos: np.cos, sp.tan: np.tan, sp.tanh: np.tanh, sp.atan: np.arctan, sp.asin: np.arcsin, sp.acos: np.arccos,
    sp.asinh: np.arcsinh, sp.atanh: np.arctanh, sp.erf: special.erf, sp.floor: np.floor, sp.ceiling: np.ceil,
    sp.gamma: special.gamma, sp.loggamma: special.gammaln, sp.sign: np.sign, sp.Heaviside: lambda u, *_: np.heaviside(u, 0.5),
    sp.LambertW: lambda u: special.lambertw(u).real}


class ScaledValues:
    """An expression as a list of operations; calling it with a column for each variable gives (m, k).

    Examples
    --------
    >>> from hermitex.symbols import z1, z2
    >>> m, k = ScaledValues(sp.exp(z1*z2)/(1 + z1**2), (z1, z2))(np.array([0.0, 1e3]), np.array([5.0, 7.0]))
    >>> np.log(m) + k
    array([   0.        , 6986.18448844])
    """

    def __init__(self, expr: sp.Expr, variables: Sequence[sp.Symbol]) -> None:
        self.expr, self.variables = expr, tuple(variables)
        self.operations: list[tuple[Callable[..., Value], tuple[int, ...]]] = []
        self._known: dict[Any, int] = {}
        self._top = self._place(expr)

    def __call__(self, *columns: Array) -> tuple[Array, Array]:
        values: list[Value] = [(np.asarray(c, float), None) for c in columns]
        shape = np.shape(columns[0])
        with np.errstate(all="ignore"):
            for f, at in self.operations:
                values.append(f(*(values[i] for i in at)))
        m, k = values[self._top]
        return np.broadcast_to(m, shape), np.broadcast_to(np.zeros(1) if k is None else k, shape)

    def _add(self, f: Callable[..., Value], *at: int) -> int:
        self.operations.append((f, at))
        return len(self.variables) + len(self.operations) - 1

    def _place(self, e: Any) -> int:
        if e not in self._known:
            self._known[e] = self.variables.index(e) if e in self.variables else self._written(e)
        return self._known[e]

    def _written(self, e: Any) -> int:
        if not e.free_symbols:
            return self._constant(e)
        if isinstance(e, sp.Add):
            return self._sum(e)
        if isinstance(e, sp.Mul):
            return self._fold(_times, e.args)
        if isinstance(e, sp.Max | sp.Min):
            return self._fold(_larger if isinstance(e, sp.Max) else _smaller, e.args)
        if isinstance(e, sp.Pow):
            if e.exp.free_symbols:
                return self._place(sp.exp(e.exp*sp.log(e.base)))
            p = int(e.exp) if e.exp.is_Integer else float(e.exp)
            return self._add(lambda a: _power(a, p), self._place(e.base))
        if isinstance(e, sp.Piecewise):
            return self._pieces(e)
        if isinstance(e, sp.log) and (r := e.args[0] - 1).func == sp.exp:
            return self._add(_softplus, self._place(r.args[0]))
        special_forms = {sp.exp: _exponential, sp.log: _logarithm, sp.erfc: _erfc, sp.Abs: lambda a: (np.abs(a[0]), a[1]),
                         sp.cosh: lambda a: _halved(_plus(_exponential(a), _exponential(_minus(a)))),
                         sp.sinh: lambda a: _halved(_plus(_exponential(a), _minus(_exponential(_minus(a)))))}
        if e.func in special_forms:
            return self._add(special_forms[e.func], self._place(e.args[0]))
        if e.func in PLAIN:
            plain = PLAIN[e.func]
            return self._add(lambda a: (plain(plainly(a)), None), self._place(e.args[0]))
        raise NoClosedForm(e, f"{e.func.__name__} has no values on arrays")

    def _constant(self, e: sp.Expr) -> int:
        value = e.evalf(20)
        if not value.is_real or not value.is_finite:
            raise NoClosedForm(e, "it is not a real number")
        k = 0 if value == 0 else int(sp.floor(sp.log(abs(value))))
        m = np.array([float(value*sp.exp(-k).evalf(25))]) if abs(k) > 600 else np.array([float(value)])
        scaled = m, (np.array([float(k)]) if abs(k) > 600 else None)
        return self._add(lambda: scaled)

    def _fold(self, f: Callable[[Value, Value], Value], args: Sequence[Any]) -> int:
        at = self._place(args[0])
        for a in args[1:]:
            at = self._add(f, at, self._place(a))
        return at

    def _sum(self, e: sp.Add) -> int:
        """The terms, c + c erf(u) being c erfc(-u)."""
        c, _ = e.as_coeff_Add()
        for t in e.args:
            k, g = t.as_coeff_Mul()
            if isinstance(g, sp.erf) and c != 0 and k in (c, -c):
                tail = c*sp.erfc(-k/c*g.args[0], evaluate=False)
                at = self._add(lambda a: (a[0]*float(c), a[1]), self._add(_erfc, self._place(-k/c*g.args[0])))
                rest = [a for a in e.args if a not in (c, t)]
                self._known.setdefault(tail, at)
                return at if not rest else self._add(_plus, at, self._place(sp.Add(*rest)))
        return self._fold(_plus, e.args)

    def _pieces(self, e: sp.Piecewise) -> int:
        arms = [(self._place(a), self._condition(c)) for a, c in e.args]

        def choose(*found: Value) -> Value:
            values, conditions = found[:len(arms)], found[len(arms):]
            out: Value = (np.array([np.nan]), None)
            for v, c in zip(reversed(values), reversed(conditions), strict=True):
                out = _where(c[0] > 0, v, out)
            return out

        return self._add(choose, *(v for v, _ in arms), *(c for _, c in arms))

    def _condition(self, c: Any) -> int:
        if c in (sp.true, sp.false):
            one = np.array([float(c == sp.true)]), None
            return self._add(lambda: one)
        if isinstance(c, sp.And | sp.Or):
            smallest = np.minimum if isinstance(c, sp.And) else np.maximum
            return self._fold_conditions(smallest, [self._condition(a) for a in c.args])
        if isinstance(c, sp.Not):
            return self._add(lambda a: (1 - a[0], None), self._condition(c.args[0]))
        compare = {">": np.greater, ">=": np.greater_equal, "<": np.less, "<=": np.less_equal, "==": np.equal, "!=": np.not_equal}
        test = compare[c.rel_op]
        return self._add(lambda a: (test(a[0], 0).astype(float), None), self._place(c.lhs - c.rhs))

    def _fold_conditions(self, f: Callable[[Array, Array], Array], at: Sequence[int]) -> int:
        first = at[0]
        for other in at[1:]:
            first = self._add(lambda a, b: (f(a[0], b[0]), None), first, other)
        return first


# -- operations on m e^k -----------------------------------------------------------------------------------------------
def plainly(a: Value) -> Array:
    """The values as floats, clipped to e^(+-700)."""
    m, k = a
    return m if k is None else np.asarray(m*np.exp(np.clip(k, -745, 700)))


def _balanced(m: Array, k: Array | None) -> Value:
    """m brought to a size of e^(+-100) where it is not."""
    size = np.abs(m)
    with np.errstate(all="ignore"):
        far = (size > 1e100) | ((size < 1e-100) & (size > 0))
        if not far.any():
            return m, k
        by = np.where(far & np.isfinite(size), np.rint(np.log(np.where(size > 0, size, 1.0))), 0.0)
        half = np.exp(-by/2)
        return m*half*half, by if k is None else k + by


def _minus(a: Value) -> Value:
    return -a[0], a[1]


def _halved(a: Value) -> Value:
    return a[0]/2, a[1]


def _plus(a: Value, b: Value) -> Value:
    if a[1] is None and b[1] is None:
        return a[0] + b[0], None
    p, q = (np.where(m == 0, -np.inf, 0.0 if k is None else k) for m, k in (a, b))
    k = np.maximum(p, q)
    k = np.where(np.isfinite(k), k, 0.0)
    return _balanced(a[0]*np.exp(np.maximum(p - k, -800)) + b[0]*np.exp(np.maximum(q - k, -800)), k)


def _times(a: Value, b: Value) -> Value:
    k = a[1] if b[1] is None else b[1] if a[1] is None else a[1] + b[1]
    return _balanced(a[0]*b[0], k)


def _power(a: Value, p: float) -> Value:
    m, k = a
    if k is None and (p in (2, 0.5) or isinstance(p, int)) and abs(p) < 3:
        return _balanced(m**p if p != -1 else 1/m, None)
    size = np.abs(m)
    by = np.where((size > 0) & np.isfinite(size), np.rint(np.log(np.where(size > 0, size, 1.0))), 0.0)
    t = p*(by if k is None else by + k)
    whole = np.rint(t)
    return (m*np.exp(-by))**p*np.exp(t - whole), (whole if np.any(whole) else None)


def _exponential(a: Value) -> Value:
    u = plainly(a)
    if np.max(np.abs(u), initial=0.0) < 300:
        return np.exp(u), None
    k = np.where(np.isfinite(u), np.rint(u), 0.0)
    return np.exp(u - k), k


def _logarithm(a: Value) -> Value:
    return (np.log(a[0]) if a[1] is None else np.log(a[0]) + a[1]), None


def _softplus(a: Value) -> Value:
    u = plainly(a)
    tail = _exponential((np.minimum(u, 0.0), None))
    return _where(u < -40, tail, (np.logaddexp(0, u), None))


def _erfc(a: Value) -> Value:
    u = plainly(a)
    far = np.where(u > 1, u, 0.0)
    m, k = _exponential((-far*far, None))
    return np.where(u > 1, special.erfcx(np.maximum(u, 1.0))*m, special.erfc(np.minimum(u, 1.0))), k


def _where(c: NDArray[np.bool_], a: Value, b: Value) -> Value:
    if a[1] is None and b[1] is None:
        return np.where(c, a[0], b[0]), None
    return np.where(c, a[0], b[0]), np.where(c, 0.0 if a[1] is None else a[1], 0.0 if b[1] is None else b[1])


def _larger(a: Value, b: Value) -> Value:
    return _where(_plus(a, _minus(b))[0] >= 0, a, b)


def _smaller(a: Value, b: Value) -> Value:
    return _where(_plus(a, _minus(b))[0] <= 0, a, b)


__all__ = ["ScaledValues", "plainly"]
