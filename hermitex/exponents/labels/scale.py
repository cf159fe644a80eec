"""P(y|z) = f(y/S(z))/S(z), S > 0: the label is S(z) times a noise of density f, whatever the noise.

log|y| = log S + log|N|, so the Mellin transforms of the measures nu_k(dy) = E[He_k(z) P(dy|z)] are those of S times that of
|N|. If E|N|^e and E|N|^-e are finite for some e > 0, that of |N| is analytic about the imaginary axis, and its zeros there
are isolated: nu_k vanishes iff that of y = S(z) does, and every exponent of the label is that of S.
"""

from __future__ import annotations

from sympy import Abs, Dummy, Expr, Mul, Pow, Rational, Symbol, piecewise_fold, preorder_traversal
from sympy.core.relational import Relational

from hermitex.exponents.labels.location import Parted, against_gaussian
from hermitex.symbolic.bounds.integrability import integrable
from hermitex.symbolic.budget import unless_refused
from hermitex.symbols import normals


def scale(p: Expr, y: Symbol) -> Parted | None:
    """The parts of a law P(y|z) of S(z) times a noise; None if it is not seen to be one.

    Examples
    --------
    >>> from sympy import exp
    >>> from hermitex.symbols import z1, z2
    >>> y = Symbol("y", real=True)
    >>> found = scale(exp(-Abs(y/(z1*z2)))/(2*Abs(z1*z2)), y)
    >>> found.u, found.f.subs(found.s, 1), found.keeps
    (Abs(z1)*Abs(z2), exp(-1)/2, 'the noise has moments of small positive and negative order')
    >>> scale(exp(-Abs(y - z1))/2, y) is None
    True
    """
    s = Dummy("s", real=True)
    modulus: dict[Expr, Symbol] = {}
    law = _in_moduli(p, modulus)
    whole = {x: Abs(b) for b, x in modulus.items()}
    longest = 60  # operations of a density that is cancelled; chosen by trial
    for size in _sizes(law, y, modulus):
        f = law.xreplace({modulus.get(y, y): size*Abs(s)} | {y: size*s})*size
        f = piecewise_fold(f).replace(lambda e: isinstance(e, Relational),
                                      lambda e, size=size: e.func((e.lhs/size).cancel(), (e.rhs/size).cancel()))
        for form in (f, f.cancel()) if f.count_ops() < longest else (f,):
            if form.free_symbols == {s}:
                return Parted(size.xreplace(whole), form, s, _why_nothing_is_hidden(form, s))
    return None


def _in_moduli(p: Expr, modulus: dict[Expr, Symbol]) -> Expr:
    """p with a positive symbol for each |b|: |a b| = |a| |b|, b^2 = |b|^2."""
    def of(b: Expr) -> Expr:
        return b if b.is_nonnegative else modulus.setdefault(b, Dummy("P", positive=True))

    def apart(e: Expr) -> Expr:
        return Mul(*(Abs(b)**n if b.is_number else of(b)**n for b, n in e.as_powers_dict().items()))

    p = p.replace(lambda e: isinstance(e, Abs), lambda e: apart(e.args[0]))
    return p.replace(lambda e: e.is_Pow and e.exp.is_even and not e.base.is_number, lambda e: of(e.base)**e.exp)


def _sizes(law: Expr, y: Symbol, modulus: dict[Expr, Symbol]) -> list[Expr]:
    """Candidates for S: what divides |y|, y or a power of them in a term of the law."""
    found = []
    own = (y, modulus.get(y, y))
    held = {*modulus.values()} - {own[1]}
    for part in preorder_traversal(law):
        if not isinstance(part, (Mul, Pow)) or not part.has(*own):
            continue
        factor, moving = part.as_independent(*own, as_Add=False)
        base, power = moving.as_base_exp()
        over = factor.as_independent(*held, *normals(factor), as_Add=False)[1]
        if over != 1 and base in own and power.is_Rational and power > 0:
            size = Mul(*(b**(-n/power) for b, n in over.as_powers_dict().items()))
            found += [size] if size.is_nonnegative else []
    return list(dict.fromkeys(found))


def _why_nothing_is_hidden(f: Expr, s: Symbol) -> str:
    moment = Rational(1, 50)  # any small power will do for "some moment of either order": so small a one asks least
    known = unless_refused(lambda: all(integrable(against_gaussian(f, s)*Abs(s)**e, s, 1) for e in (moment, -moment)))
    return "the noise has moments of small positive and negative order" if known else ""
