"""u = F(w), w = int He_k phi: the proof that E[T(u(z)) He_k(z)] = 0 for every T at once, by the level sets of u.

On z > 0 the antiderivative w_k = -He_{k-1} phi of He_k phi begins and ends at 0 (k even), so int T(w) dw = 0 for every T:
an even u that is a function of w_k there, whichever, tells nothing of He_k. The same in r variables for what depends on
x = |z|^2/2 alone: the density of x times the Laguerre polynomial of order n = k/2 has the antiderivative
x^(r/2) L_{n-1}^(r/2)(x) exp(-x). Source: Damian et al. (2024), z^2 exp(-z^2) at k = 2.
"""

from __future__ import annotations

from typing import Any

from sympy import Add, Dummy, Expr, Mul, Pow, S, Symbol, assoc_laguerre, cancel, exp, expand, expand_log, factor, log, powsimp, sqrt

from hermitex.symbolic.budget import checkpoint, kept
from hermitex.symbolic.parity import parity
from hermitex.symbolic.radial import radial

_OPS = 120


@kept(256)
def branch_identity(u: Expr, x: Symbol, k: int) -> str | None:
    """Proof that E[T(u) He_k] = 0 for every T, for an even u and an even k; or None.

    Examples
    --------
    >>> from sympy import Abs, cos, log
    >>> from hermitex.symbols import z
    >>> branch_identity(cos(z**2*exp(-z**2)), z, 2) is None, branch_identity(log(Abs(z)) - z**2/2, z, 2) is None
    (False, False)
    >>> branch_identity(z**2, z, 2) is None, branch_identity(z**2*exp(-z**2), z, 4) is None
    (True, True)
    """
    if k % 2 or k < 2 or u.count_ops() > _OPS or parity(u, x) != 1:
        return None
    h = Dummy("x", positive=True)
    found = _over_path(u.xreplace({x: sqrt(2*h)}), h, 1, k)
    path = "|z| exp(-z**2/2)" if k == 2 else f"He_{k - 1}(z) exp(-z**2/2)"
    return None if found is None else (f"the target is even and on z > 0 a function of w = {path}, an antiderivative of "
                                       f"He_{k}(z) exp(-z**2/2) but for a factor, which begins and ends at 0: int T(w) dw = 0")


@kept(256)
def radial_identity(seen: tuple[Expr, ...], variables: tuple[Symbol, ...], k: int) -> str | None:
    """The same for expressions that depend on r > 1 variables through |z| alone: every entry of order k vanishes.

    Examples
    --------
    >>> from hermitex.symbols import z1, z2
    >>> radial_identity(((z1**2 + z2**2)*exp(-(z1**2 + z2**2)/2),), (z1, z2), 2) is None
    False
    """
    if k % 2 or k < 2:
        return None
    h, r = Dummy("x", positive=True), len(variables)
    for u in seen:
        found = radial(u, variables) if u.count_ops() <= _OPS else None
        if found is None:
            return None
        weight, t = radial(Add(*(v**2 for v in variables)), variables) or (S.One, Symbol("t"))
        profile = (found[0]/(weight/t**2).xreplace({t: found[1]}))
        if _over_path(profile.xreplace({found[1]: sqrt(2*h)}), h, r, k) is None:
            return None
    path = f"x**{S(r)/2} exp(-x)" if k == 2 else f"x**{S(r)/2} L_{k//2 - 1}(x) exp(-x)"
    return (f"the label is a function of w = {path}, x = |z|**2/2, an antiderivative of the weight of order {k} that begins and "
            "ends at 0: int T(w) dw = 0")


def _over_path(u: Expr, x: Symbol, r: int, k: int) -> Expr | None:
    """u(x) as a function F(w) of w = x^(r/2) L(x) exp(-x) alone, or None."""
    checkpoint("looking for the levels of a target")
    n = k//2
    w = Dummy("w", positive=True) if n == 1 else Dummy("w", real=True)  # for n > 1 it changes its sign
    front = x**(S(r)/2)*factor(assoc_laguerre(n - 1, S(r)/2, x))
    found = _rewritten(u, x, w, front)
    return found if not found.has(x) else None


def _rewritten(e: Any, x: Symbol, w: Symbol, front: Expr) -> Any:
    """exp(-x) = w/front and, for front = x^p, log x = (log w + x)/p, wherever they stand; x is gone if u depends on w only."""
    if not e.has(x) or e == x:
        return e
    args = [_rewritten(a, x, w, front) for a in e.args]
    e = e.func(*args)
    if isinstance(e, exp):
        power = expand(e.args[0])
        c = power.coeff(x, 1)
        if not c.has(x) and (w.is_positive or c.is_Integer):
            e = exp(power - c*x)*(w/front)**(-c)
    elif isinstance(e, log):
        e = expand_log(e, force=bool(w.is_positive))
        if front.as_base_exp()[0] == x:
            e = e.xreplace({log(x): (log(w) + x)/front.as_base_exp()[1]})
            e = expand(e)
    elif isinstance(e, (Add, Mul, Pow)):
        e = powsimp(expand(e), force=True) if front.as_base_exp()[0] == x else cancel(e)
    return e
