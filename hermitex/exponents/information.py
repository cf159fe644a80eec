"""The information exponent l = min{k >= 1 : c_k != 0}, c_k = E[g(z) He_k(z)], g the regression function E[Y|z].

Source: Ben Arous, Gheissari, Jagannath (2021). It depends on E[Y|z] alone, and asks for it in L2.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sympy import Expr, Symbol

from hermitex.errors import BudgetExceeded, HermitexError
from hermitex.exponents.certificate import Certificate
from hermitex.exponents.labels.branches import branch_identity
from hermitex.exponents.labels.levels import polynomial
from hermitex.exponents.labels.mean_signs import decided
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.hermite import He
from hermitex.symbolic.parity import parity

MAX_ORDER = 40


@dataclass(frozen=True)
class Found:
    """An exponent (None: undetermined, or `none`: proved that there is none), what proves it, and what is to be said of it."""

    order: int | None
    certificates: tuple[Certificate, ...] = ()
    notes: tuple[str, ...] = field(default=())
    none: bool = False


def information_exponent(g: Expr, x: Symbol, *, max_order: int = MAX_ORDER, known: list[Certificate] | None = None) -> Found:
    """The smallest k >= 1 with E[g He_k] != 0, with a certificate for each order up to it.

    Parameters: `g` the regression function, square integrable and not constant; `x` its standard normal; `known` the
    certificates of the first orders, to which those found here are added.

    Examples
    --------
    >>> from hermitex.symbols import z
    >>> found = information_exponent(z**3 - 3*z, z)
    >>> found.order, [c.status for c in found.certificates]
    (3, ['zero', 'zero', 'nonzero'])
    """
    reflection = parity(g, x)
    poly = polynomial(g, x)
    last = max_order if poly is None else max(poly.degree(), 1)
    certificates: list[Certificate] = [] if known is None else known
    if certificates and certificates[-1].status == "nonzero":
        return Found(len(certificates), tuple(certificates))
    for k in range(len(certificates) + 1, last + 1):
        name = f"c_{k}"
        try:
            checkpoint(f"computing {name}")
            if reflection is not None and (-1) ** k != reflection:
                parity_word = "even" if reflection == 1 else "odd"
                certificates.append(Certificate.zero(name, k, f"the target is {parity_word}, He_{k} is not"))
                continue
            identity = branch_identity(g, x, k) if reflection == 1 else None
            found = Certificate.zero(name, k, identity) if identity else decided(g*He(k, x), x, name, k)
        except BudgetExceeded:
            raise
        except HermitexError as err:
            found = Certificate(name, k, "undetermined", " ".join(str(err).split()))
        if found.status == "undetermined":
            return Found(None, (*certificates, found), (f"information exponent: undetermined, {name}: {found.how}",))
        certificates.append(found)
        if found.status == "nonzero":
            return Found(k, tuple(certificates))
    note = f"information exponent: undetermined, all coefficients of orders 1 to {last} are zero"
    return Found(None, tuple(certificates), (note,))
