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


@kept(256)
def branch_identity(seen: tuple[Expr, ...], variables: tuple[Symbol, ...], k: int) -> str | None:
    """Proof that E[T(Y) He_a] = 0, |a| = k, for every T of a label that expressions even in one variable, or radial, determine.

    Examples
    --------
    >>> from sympy import Abs, cos, log
    >>> from hermitex.symbols import z, z1, z2
    >>> [branch_identity((u,), (z,), 2) is None for u in (cos(z**2*exp(-z**2)), log(Abs(z)) - z**2/2, z**2)]
    [False, False, True]
    >>> branch_identity((z**2*exp(-z**2),), (z,), 4) is None
    True
    >>> branch_identity(((z1**2 + z2**2)*exp(-(z1**2 + z2**2)/2),), (z1, z2), 2) is None
    False
    """
    h, r = Dummy("x", positive=True), len(variables)
    if k % 2 or k < 2:
        return None
    longest = 120  # operations of a label whose profile is sought; chosen by trial
    for u in seen:
        profile = _profile(u, variables, h) if u.count_ops() <= longest else None
        if profile is None or _over_path(profile, h, r, k) is None:
            return None
    if r == 1:
        path = "|z| exp(-z**2/2)" if k == 2 else f"He_{k - 1}(z) exp(-z**2/2)"
        return (f"the target is even and on z > 0 a function of w = {path}, an antiderivative of He_{k}(z) exp(-z**2/2) "
                "but for a factor, which begins and ends at 0: int T(w) dw = 0")
    path = f"x**{S(r)/2} exp(-x)" if k == 2 else f"x**{S(r)/2} L_{k//2 - 1}(x) exp(-x)"
    return (f"the label is a function of w = {path}, x = |z|**2/2, an antiderivative of the weight of order {k} that begins and "
            "ends at 0: int T(w) dw = 0")


def _profile(u: Expr, variables: tuple[Symbol, ...], x: Symbol) -> Expr | None:
    """u as a function of x = |z|^2/2, or None."""
    if len(variables) == 1:
        return u.xreplace({variables[0]: sqrt(2*x)}) if parity(u, variables[0]) == 1 else None
    length = Add(*(v**2 for v in variables))
    found, square = radial(u, variables), radial(length, variables)
    if found is None or square is None:
        return None
    return (found[0]*found[1]**2/square[0].xreplace({square[1]: found[1]})).xreplace({found[1]: sqrt(2*x)})


def _over_path(u: Expr, x: Symbol, r: int, k: int) -> Expr | None:
    """u(x) as a function F(w) of w = x^(r/2) L(x) exp(-x) alone, or None."""
    checkpoint("looking for the levels of a target")
    n = k//2
    w = Dummy("w", positive=True) if n == 1 else Dummy("w", real=True)  # for n > 1 it changes its sign
    front = x**(S(r)/2)*factor(assoc_laguerre(n - 1, S(r)/2, x))
    found = _rewritten(u, x, w, front)
    return found if not found.has(x) else None


def _rewritten(e: Any, x: Symbol, w: Symbol, front: Expr) -> Any:
    """exp(-x) = w/front and, for front = x^p, log x = (log w + x)/p, everywhere; x is gone if u depends on w only."""
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
