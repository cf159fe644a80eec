"""P(y|z) = f(y - u(z)): the label is u(z) plus a noise of density f, whatever the noise.

The measures nu_k(dy) = E[He_k(z) P(dy|z)] are those of u convolved with f, so their Fourier transforms are multiplied by
that of f. If its zeros are nowhere dense, nothing is lost: nu_k vanishes iff that of y = u(z) does, and every
exponent of the label is that of u. It is so for a noise with an exponential moment (its transform is analytic) and for
(a + b s^2)^(-k), Cauchy's and Student's laws, which are mixtures of Gaussians (their transforms are positive).
"""

from __future__ import annotations

from dataclasses import dataclass

from sympy import Abs, Add, Dummy, Expr, Pow, Rational, Symbol, exp, pi, sqrt

from hermitex.symbolic.bounds.integrability import integrable
from hermitex.symbolic.budget import unless_refused
from hermitex.symbolic.parity import parity
from hermitex.symbols import normals


@dataclass(frozen=True)
class Parted:
    """A label drawn from u(z) by a noise: u, the density f over `s`, and why it hides nothing of u ("" if that is not known)."""

    u: Expr
    f: Expr
    s: Symbol
    keeps: str

    @property
    def has_mean(self) -> bool | None:
        """Is E|N| finite? None where it was not decided."""
        return integrable(self.s*against_gaussian(self.f, self.s), self.s, 1)

    @property
    def symmetric(self) -> bool:
        """Is f even, so that E[N] = 0 where it exists?"""
        return bool(parity(self.f, self.s) == 1)


def location(p: Expr, y: Symbol) -> Parted | None:
    """The parts of a law P(y|z) that depends on y - u(z) alone; None if it is not seen to.

    Examples
    --------
    >>> from hermitex.symbols import z1, z2
    >>> y = Symbol("y", real=True)
    >>> found = location(exp(-Abs(y - z1*z2))/2, y)
    >>> found.u, found.keeps
    (z1*z2, 'the noise has an exponential moment')
    >>> location(exp(-y**2/(2*z1**2))/(sqrt(2*pi)*Abs(z1)), y) is None
    True
    """
    s = Dummy("s", real=True)
    for u in _centres(p, y):
        shifted = p.xreplace({y: s + u})
        for form in (shifted, shifted.replace(lambda e: isinstance(e, Add), lambda e: e.expand()), shifted.expand()):
            if not normals(form):
                return Parted(u, form, s, _why_nothing_is_hidden(form, s))
    return None


def _centres(p: Expr, y: Symbol) -> list[Expr]:
    """Candidates for u: y + rest as in p, or a y^2 + b y + c with its vertex."""
    found = []
    for part in sorted(p.atoms(Add), key=lambda e: e.count_ops()):
        poly = part.as_poly(y) if part.has(y) and part.is_polynomial(y) else None
        if poly is None or poly.degree() > 2:
            continue
        lead, rest = poly.coeff_monomial(y**poly.degree()), poly.coeff_monomial(y**(poly.degree() - 1))
        if not normals(lead) and normals(rest):
            found.append((-rest/(poly.degree()*lead)).expand())
    return list(dict.fromkeys(found))


def against_gaussian(f: Expr, s: Symbol) -> Expr:
    """f over the standard Gaussian density: E of it is the integral of f."""
    return f*exp(s**2/2)*sqrt(2*pi)


def _why_nothing_is_hidden(f: Expr, s: Symbol) -> str:
    rate = Rational(1, 10**6)  # any rate will do for "some exponential moment": so small a one asks least
    if unless_refused(lambda: integrable(against_gaussian(f, s)*exp(rate*Abs(s)), s, 1)):
        return "the noise has an exponential moment"
    core = f.as_independent(s, as_Add=False)[1]
    if isinstance(core, Pow) and core.exp.is_number and core.exp.is_negative:
        poly = core.base.as_poly(s)
        if poly is not None and poly.degree() == 2 and poly.coeff_monomial(s) == 0 and all(c.is_positive for c in poly.coeffs()):
            return "the noise is a mixture of Gaussians"
    return ""
