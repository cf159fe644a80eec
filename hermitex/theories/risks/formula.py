"""upper = E g^2 - <h, mu_0>^2/<mu_0, mu_0> with every average in closed form: the bounds as formulas of r, c (and gamma).

The engine computes each average over kappa; if one has no closed form, the bound has none.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from sympy import Expr, S, Symbol, simplify

from hermitex.errors import HermitexError
from hermitex.symbolic.budget import checkpoint, effort
from hermitex.symbolic.gaussian import E
from hermitex.symbolic.integrals import closed_form
from hermitex.symbolic.zero import decide
from hermitex.symbols import c, gamma, kappa, r, z

_rho = Symbol("rho", positive=True)


@lru_cache(maxsize=32)
def formulas(sigma: Any, g: Any, aligned: bool = True) -> dict[str, Expr | None]:
    """{"upper", "lower"}: expressions in r, c (and gamma if not `aligned`), or None.

    Parameters
    ----------
    sigma, g : `Activation`; aligned : gamma = 1
    """
    patience = 20.0  # seconds for both bounds
    try:
        with effort(patience):
            upper, products = _upper(sigma, g, aligned)
    except HermitexError:
        checkpoint()  # the budget around it is over, which is not an answer
        return {"upper": None, "lower": None}
    try:
        with effort(patience):
            lower = _lower(upper, products, aligned)
    except HermitexError:
        checkpoint()
        lower = None
    return {"upper": upper, "lower": lower}


def _upper(sigma: Any, g: Any, aligned: bool) -> tuple[Expr, dict[str, Any]]:
    """The upper bound, and what the lower one takes from it."""
    from hermitex.theories.conditional_coefficients import mu

    m0, m1 = mu(sigma, 0).expr, mu(sigma, 1).expr
    if aligned:
        h, h1 = g(kappa), S.Zero
    else:
        smooth = {r: gamma, c: _rho}
        h, h1 = (mu(g, k).expr.subs(smooth, simultaneous=True) for k in (0, 1))
    total = _mean(g(z)**2, z)
    a, t = _mean(m0**2), _mean(h*m0)
    p = {"m0": m0, "m1": m1, "h": h, "h1": h1, "a": a, "t": t}
    upper = total - _over(t**2, a)
    return _back(upper), p


def _lower(upper: Expr, p: dict[str, Any], aligned: bool) -> Expr:
    """What {mu_0, kappa mu_1} and mu_1 take off the upper bound."""
    m0, m1 = p["m0"], p["m1"]
    cross, length, s = _mean(kappa*m0*m1), _mean(kappa**2*m1**2), _mean(kappa*m1*p["h"])
    # The rest of kappa mu_1 once mu_0 is taken out of it.
    rest, seen = length - _over(cross**2, p["a"]), s - _over(cross*p["t"], p["a"])
    lower = upper - (S.Zero if _vanishes(rest) else seen**2/rest)
    if not aligned:
        # h_1 = E[z g] = sqrt(rho) E g'
        lower -= _over(_rho*_mean(m1*p["h1"])**2, _mean(m1**2))
    return _back(lower)


def _mean(e: Expr, x: Symbol = kappa) -> Expr:
    return closed_form(E(e, x))


def _over(numerator: Expr, denominator: Expr) -> Expr:
    return S.Zero if _vanishes(denominator) else numerator/denominator


def _vanishes(e: Expr) -> bool:
    """True if the expression is zero for all its parameters."""
    if not e.free_symbols:
        return decide(e).status == "zero"
    if e == 0:
        return True
    somewhere = e.subs({r: S(7)/5, c: S(3)/4, gamma: S(2)/3, _rho: S(5)/9}).evalf(30)
    return bool(abs(somewhere) < S(10)**-25 and simplify(e) == 0)


def _back(e: Expr) -> Expr:
    return e.subs(_rho, 1 - gamma**2)
