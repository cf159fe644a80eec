"""sigma(y, u) = sigma(y', u): the canonical label y', which tells of the hidden variables what y tells, and nothing else.

Parts that u, the known variables, determine are dropped; injective outer functions are stripped; a product of a sign and a size
tells both; a sign that tells nothing of second order goes. One set of rules, used wherever a label is looked at:

- `split_products`: signs and moduli of products taken apart, everywhere in g;
- `revealed`: one injective function after the other, from outside, what is known, and the sign and size of a product;
- `canonical_label`: what a target shows through its channel, with the channel that is left: thresholds and state evolution begin
here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations_with_replacement, product
from math import prod
from typing import Any

from sympy import (
    Abs,
    Add,
    Expr,
    Max,
    Min,
    Mul,
    Pow,
    Rational,
    S,
    Symbol,
    asinh,
    atan,
    cosh,
    erf,
    erfc,
    exp,
    factor_terms,
    igcd,
    ilcm,
    log,
    sign,
    sinh,
    tan,
    tanh,
)

from hermitex.exponents.channels import Channel, NamedChannel, channel
from hermitex.exponents.labels.almost_everywhere import almost_everywhere
from hermitex.exponents.labels.monotone_labels import injective_in_modulus, strict_sign
from hermitex.exponents.labels.quantities import inner_quantities
from hermitex.exponents.labels.sign_and_size import nonzero_almost_everywhere, sign_almost_everywhere, signs_and_size
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.engine.rational_tidying import compact
from hermitex.symbolic.summands import open_extremum

INJECTIVE = (exp, log, sinh, tanh, asinh, atan, erf, erfc)


# -- a label and its channel -------------------------------------------------------------------------------------------
def canonical_label(g: Expr, law: NamedChannel, hidden: Sequence[Symbol]) -> tuple[Expr, NamedChannel]:
    """The canonical label of the hidden variables once all others are known, and the channel through which it is seen.

    Examples
    --------
    >>> from hermitex.symbols import z1, z2, z3
    >>> g, law = canonical_label(2*z1*z2, channel("gaussian:1"), (z1, z2))
    >>> canonical_label(exp(z1 + z2*z3), channel(), (z2, z3))[0], g, str(law)
    (z2*z3, z1*z2, 'gaussian:1/4')
    """
    found = _without_known(visible_target(g, law), law, hidden)
    if g.has(Max, Min) and found[0].free_symbols - set(hidden):
        plain = g.replace(lambda e: isinstance(e, (Max, Min)), lambda e: open_extremum(e).expand())  # a known sum then comes off
        opened = _without_known(visible_target(plain, law), law, hidden)
        found = found if opened[0].free_symbols - set(hidden) else opened
    return found


def visible_target(g: Expr, law: NamedChannel | Channel) -> Expr:
    """The part of g that the label shows without noise: |g| if its sign is drawn at random."""
    return split_products(Abs(g)) if law.name == "random_sign" else g


def _without_known(g: Expr, law: NamedChannel, hidden: Sequence[Symbol]) -> tuple[Expr, NamedChannel]:
    """A target with the same information on the hidden variables once all others are known, and its channel."""
    while True:
        checkpoint("peeling off what is known")
        old, old_law = g, law
        if law.name in ("deterministic", "random_sign"):
            g, law = revealed(split_products(g), hidden), _named("deterministic")
        elif law.name in ("gaussian", "multiplicative"):
            g = g.as_independent(*hidden, as_Add=True)[1] if law.name == "gaussian" else g
            g = g if isinstance(g, Mul) or not g.is_polynomial() else g.factor()
            factor, rest = g.as_independent(*hidden, as_Add=False)
            if law.name == "multiplicative" and nonzero_almost_everywhere(factor):
                g = rest
            elif factor.is_number and factor.is_nonzero and factor != 1:
                g, law = rest, _named(f"gaussian:{compact(law.parameter / factor**2)}")
        if (g, law) == (old, old_law):
            return g, law


def _named(spec: str) -> NamedChannel:
    found = channel(spec)
    assert isinstance(found, NamedChannel)
    return found


# -- what a function tells ---------------------------------------------------------------------------------------------
def _peel_power(u: Expr, base: Expr, power: Rational) -> Expr:
    if base.is_nonnegative or (power.is_Integer and power.p % 2) or power.q % 2 == 0:
        return base
    if power.is_Integer:
        inner = base.args[0] if isinstance(base, Abs) else base
        return inner**2
    return u


def revealed(u: Expr, hidden: Sequence[Symbol]) -> Expr:
    """A simpler label with the same level sets in the hidden variables, whatever the others are: exp(z1 z2) tells z1 z2.

    Parts that the others determine are dropped, and injective outer functions: affine maps, exp, tanh, odd powers, roots; an even
    power becomes a square.

    >>> from hermitex.symbols import z, z1, z2
    >>> revealed(1/(1 + exp(-3*z**3)), (z,)), revealed(exp(z1*z2), (z1, z2)), revealed(sign(z1)*sign(z2)*exp(-z1**2), (z1, z2))
    (z, z1*z2, z1*sign(z2))
    """
    mine = set(hidden)
    while True:
        new = u
        if isinstance(u, Add):
            new = u.as_independent(*hidden, as_Add=True)[1]
            if new == u and u.is_polynomial(*hidden) and u.count_ops() < 60:
                factored = u.factor()
                content, core = factored.as_coeff_Mul()
                if isinstance(core, Add):  # the powers of forms that the target is written in stay
                    new = Add(*(t/content for t in u.args))
                elif isinstance(factored, (Mul, Pow)) and _splits(factored, mine):
                    new = factored
            if new == u:
                shared = factor_terms(u)
                known, _ = shared.as_independent(*hidden, as_Add=False)
                new = shared if known.free_symbols and nonzero_almost_everywhere(known) else u
            if new == u:
                new = next((w for w, f, t in inner_quantities(u, [x for x in hidden if u.has(x)]) if strict_sign(f, t)), u)
        elif isinstance(u, Mul):
            factor, rest = u.as_independent(*hidden, as_Add=False)
            told = factor == 1 or nonzero_almost_everywhere(factor)
            new = _signed(_root(rest), hidden, lambda h: revealed(h, hidden)) if told else u
        elif isinstance(u, INJECTIVE):
            new = u.args[0]
        elif isinstance(u, cosh) or (isinstance(u, Abs) and u.has(tan)):
            new = u.args[0]**2  # the same level sets, and no corner at every pole
        elif isinstance(u, Pow) and not u.exp.free_symbols & mine and u.exp.is_Rational and u.exp != 0:
            new = _peel_power(u, u.base, u.exp)
        elif isinstance(u, Pow) and not u.base.free_symbols and u.base.is_positive and (u.base - 1).is_nonzero:
            new = u.exp
        if new == u:
            return u
        u = new


def _root(u: Expr) -> Expr:
    """a^2 b^4 has the level sets of |a| b^2, and sqrt(a) b^(3/2) for a, b >= 0 those of a b^3."""
    if not isinstance(u, Mul):
        return u
    parts = [f.as_base_exp() for f in u.args]
    if all(b.is_nonnegative and p.is_Rational for b, p in parts):
        scale = ilcm(*(p.q for _, p in parts))
        parts = [(b, p * scale) for b, p in parts]
        u = Mul(*(b**p for b, p in parts))
    if any(not p.is_Integer or p <= 0 for _, p in parts):
        return u
    common = igcd(*(p for _, p in parts))
    if common == 1:
        return u
    return Mul(*((Abs(b) if common % 2 == 0 else b) ** (p // common) for b, p in parts))


def _splits(e: Expr, mine: set[Symbol]) -> bool:
    """Is a factor known, or are the factors powers of independent quantities?"""
    factors = Mul.make_args(e)
    if isinstance(e, Pow) or any(not f.free_symbols & mine for f in factors if f.free_symbols):
        return True
    sets = [f.free_symbols & mine for f in factors if f.free_symbols]
    return sum(len(s) for s in sets) == len(set().union(*sets)) if sets else False


# -- signs -------------------------------------------------------------------------------------------------------------
def split_products(g: Expr) -> Expr:
    """sign(a b) = sign(a) sign(b), |a b| = |a| |b|, sign(a)^2 = 1, everywhere in g."""
    g = g.replace(lambda e: isinstance(e, Pow) and isinstance(e.base, sign) and e.exp.is_Integer and e.exp > 1,
                  lambda e: e.base if e.exp % 2 else S.One)

    def apart(head: Any, e: Any) -> Any:
        if not isinstance(e, head):
            return e  # a number
        argument = e.args[0]
        if isinstance(argument, Add):
            argument = argument.factor() if argument.is_polynomial() and argument.count_ops() < 40 else argument
        if isinstance(argument, Mul):
            return Mul(*(apart(head, head(f)) for f in argument.args))
        if isinstance(argument, Pow) and argument.exp.is_Integer and argument.exp > 0:
            base = head(argument.base)
            if head is sign:
                return S.One if argument.exp % 2 == 0 else apart(sign, base)
            return apart(Abs, base) ** argument.exp
        return e

    for head in (sign, Abs):
        g = g.replace(lambda e, head=head: isinstance(e, head) and isinstance(e.args[0], (Mul, Pow, Add)),
                      lambda e, head=head: apart(head, e))
    return g


def _signed(u: Expr, variables: Sequence[Symbol], inner: Callable[[Expr], Expr]) -> Expr:
    """s h tells (s, h), and so does s h' for a positive h' that tells what h tells: sign(z1 z2) exp(-z1^2) tells z1 sign(z2).

    inner : what h tells, in another form
    """
    found = signs_and_size(u)
    if found is None:
        return u
    s, h = found
    mine = [x for x in variables if h.has(x)]
    x = mine[0] if len(mine) == 1 and h.free_symbols == set(mine) else None
    if x is not None and (h.subs(x, -x) - h).expand() == 0 and injective_in_modulus(h, x):
        core: Expr = Abs(x)
    else:
        core = inner(h)
        core *= sign_almost_everywhere(core)
    return almost_everywhere(s * core) if core not in (0, h) else u


def independent_labels(g: Expr, names: Sequence[Symbol]) -> tuple[Expr, Expr] | None:
    """(A, B) in different variables if the label g tells both, and nothing more; A takes two opposite values.

    Examples
    --------
    >>> from sympy import sign
    >>> from hermitex.symbols import z1, z2, z3
    >>> independent_labels(sign(z1*z2)*(1 + z3**2), (z1, z2, z3))
    (sign(z1)*sign(z2), z3**2 + 1)
    >>> independent_labels(sign(z1*z2)*z3, (z1, z2, z3)) is None
    True
    """
    constant, rest = split_products(g).as_independent(*names, as_Add=False)
    found = signs_and_size(rest) if constant.is_nonzero else None
    return found if found is not None and not found[0].free_symbols & found[1].free_symbols else None


def without_silent_sign(g: Expr, names: Sequence[Symbol]) -> Expr:
    """|g| where the sign of g tells nothing of second order given |g|, and |g| holds fewer variables than g; else g.

    Where for every |a| = 0 or 2 a flip of variables that takes g to +-g takes He_a sign(g) to its negative, E[He_a sign(g) | |g|]
    is 0. So G of (|g|, sign(g)) is that of |g|.

    Examples
    --------
    >>> from sympy import sign
    >>> from hermitex.symbols import z1, z2, z3
    >>> without_silent_sign(sign(z1*z2)*z3, (z1, z2, z3)), without_silent_sign(sign(z1*z2)*z3**2, (z1, z2, z3))
    (Abs(z3), z3**2*sign(z1*z2))
    """
    g, whole = split_products(g), g
    size = split_products(Abs(g)).replace(lambda e: isinstance(e, Abs) and isinstance(e.args[0], sign), lambda e: S.One)
    if not size.free_symbols or size.free_symbols >= g.free_symbols & set(names):
        return whole
    kinds = []  # (a flip, its sign): g(flip z) = sign g(z)
    for flip in product((1, -1), repeat=len(names)):
        moved = g.xreplace({x: f*x for x, f in zip(names, flip, strict=True)})
        kinds += [(flip, e) for e in (1, -1) if (moved - e*g).expand() == 0]
    orders: list[tuple[int, ...]] = [(), *combinations_with_replacement(range(len(names)), 2)]
    hidden = all(any(e*prod(flip[i] for i in a) == -1 for flip, e in kinds) for a in orders)
    return size if hidden else whole
