"""nu_a(y) = E[He_a(z) 1{g(z) = y}] exactly, for a label that takes finitely many values.

Where every variable enters through piecewise constant functions of itself, the space falls into boxes, and the moments
of a box are products of those of intervals. Otherwise the label is a function of signs: the indicator of a pattern is
prod (1 + t_k s_k)/2, and the Gaussian engine integrates each product of signs.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, combinations_with_replacement, pairwise, product
from math import prod

from sympy import Add, Dummy, Expr, Heaviside, Mul, Rational, S, Symbol, erfc, exp, factorial, gamma, oo, sign

from hermitex.exponents.label import split_products
from hermitex.exponents.labels.label_levels import equal_constants, indicator_moment
from hermitex.exponents.labels.quantities import own_parts
from hermitex.exponents.laws.density import Index
from hermitex.symbolic.breaks.order import between, ordered
from hermitex.symbolic.budget import checkpoint, unless_refused
from hermitex.symbolic.gaussian import E
from hermitex.symbolic.integrals import closed_form
from hermitex.symbolic.pieces import Piece, pieces
from hermitex.symbolic.precise import evaluate
from hermitex.symbolic.series.polynomials import He

Atoms = list[tuple[Expr, dict[Index, Expr]]]  # (label, {a: nu_a}); an index that is missing is exactly zero


def indices(count: int) -> list[Index]:
    """Every multi-index of degree at most two in that many variables."""
    one = [(i,) for i in range(count)]
    return [(), *one, *combinations_with_replacement(range(count), 2)]


def exact_atoms(g: Expr, variables: Sequence[Symbol]) -> Atoms | None:
    """The labels of g with their exact moments, or None if g is not seen to be discrete.

    Examples
    --------
    >>> from hermitex.symbols import z1, z2
    >>> [(label, nu[()], nu.get((0, 1))) for label, nu in exact_atoms(sign(z1*z2), (z1, z2))]
    [(-1, 1/2, -1/pi), (1, 1/2, 1/pi)]
    """
    g = split_products(g)
    return unless_refused(lambda: _radial(g, variables) or _boxes(g, variables) or _patterns(g, variables))


# -- spheres -----------------------------------------------------------------------------------------------------------
def _radial(g: Expr, variables: Sequence[Symbol]) -> Atoms | None:
    """g = F(rho), rho = sum z_i^2 over all k variables: P(rho > t) = Q(k/2, t/2), and by one integration by parts
    E[(rho/k - 1) 1{rho > t}] = (t/2)^(k/2) exp(-t/2)/Gamma(k/2 + 1)."""
    k, rho = len(variables), Dummy("rho", positive=True)
    if k < 2:
        return None
    form = g.subs(variables[-1] ** 2, rho - Add(*(x**2 for x in variables[:-1]))).expand()
    form = form.replace(lambda e: isinstance(e, (sign, Heaviside)), lambda e: e.func(e.args[0].expand()))
    if form.free_symbols != {rho}:
        return None
    found = pieces(form, rho, S.Zero, oo)
    if any(p.expr.has(rho) for p in found):
        return None

    def beyond(t: Expr) -> tuple[Expr, Expr]:
        if t is oo:
            return S.Zero, S.Zero
        half = t / 2
        tail = (half ** Rational(k, 2) * exp(-half) / gamma(Rational(k, 2) + 1))
        q = Add(*(half**n / factorial(n) for n in range(k // 2))) * exp(-half) if k % 2 == 0 else (
            erfc(half**S.Half) + exp(-half) * Add(*(half ** (n + S.Half) / gamma(n + Rational(3, 2)) for n in range(k // 2))))
        return q, tail

    classes: Atoms = []
    for piece in found:
        (p0, t0), (p1, t1) = beyond(piece.lo), beyond(piece.hi)
        add_to_class(classes, piece.expr, {(): p0 - p1, **{(i, i): t0 - t1 for i in range(k)}})
    return clean_classes(classes)


# -- boxes -------------------------------------------------------------------------------------------------------------
def intervals(g: Expr, x: Symbol) -> list[Piece] | None:
    """Intervals of x on which g does not depend on x, `expr` a point inside; None if there are none."""
    cuts: list[Expr] = []
    for part in own_parts(g, x):
        found = pieces(part, x)
        if any(p.expr.has(x) for p in found):
            return None
        cuts += [p.hi for p in found[:-1]]
    # Not in the middle, where a value may be that of a null set.
    return [Piece(a, b, between(between(a, b), b)) for a, b in pairwise([-oo, *ordered(cuts), oo])]


def _boxes(g: Expr, variables: Sequence[Symbol]) -> Atoms | None:
    sides = []
    for x in variables:
        checkpoint("cutting the target into boxes")
        if g.has(x):
            found = intervals(g, x)
            if found is None:
                return None
            sides.append(found)
        else:
            sides.append([Piece(-S.Infinity, S.Infinity, S.One)])
    most_boxes = 600  # each a product of normal probabilities in exact form; chosen by trial
    if prod(len(s) for s in sides) > most_boxes:
        return None
    moments = [[[indicator_moment([p], k) if len(side) > 1 else S(int(k == 0)) for k in range(3)] for p in side]
               for side in sides]
    classes: Atoms = []
    wanted = indices(len(variables))
    for cell in product(*(range(len(s)) for s in sides)):
        label = g.xreplace({x: sides[i][n].expr for i, (x, n) in enumerate(zip(variables, cell, strict=True))})
        nu = {a: Mul(*(moments[i][n][a.count(i)] for i, n in enumerate(cell))) for a in wanted}
        add_to_class(classes, label, nu)
    return clean_classes(classes)


def add_to_class(classes: Atoms, label: Expr, nu: dict[Index, Expr]) -> None:
    """Add nu to the class of an equal label."""
    old = next((old for value, old in classes if equal_constants(label, value)), None)
    if old is None:
        classes.append((label, dict(nu)))
        return
    for a, v in nu.items():
        old[a] = old.get(a, S.Zero) + v


def clean_classes(classes: Atoms) -> Atoms:
    """The classes in the order of their labels, without moments that are zero."""
    from hermitex.symbolic.zero import decide

    found = []
    for label, nu in sorted(classes, key=lambda c: float(evaluate(c[0], 20))):
        kept = {}
        for a, v in nu.items():
            v = v.expand() if v.is_Add or v.is_Mul else v
            if v == 0 or (not v.is_Rational and decide(v).status == "zero"):
                continue
            kept[a] = v
        found.append((label, kept))
    return found


# -- patterns of signs -------------------------------------------------------------------------------------------------
def _patterns(g: Expr, variables: Sequence[Symbol]) -> Atoms | None:
    g = g.replace(Heaviside, lambda u, *_: (1 + sign(u)) / 2)
    signs = sorted(g.atoms(sign), key=str)
    marks = [Dummy(f"t{k}", real=True) for k in range(len(signs))]
    form = g.xreplace(dict(zip(signs, marks, strict=True)))
    most_signs = 6  # 2^6 = 64 patterns, each an orthant probability
    if not signs or len(signs) > most_signs or form.has(*variables):
        return None
    tensors = _sign_moments(signs, variables)
    classes: Atoms = []
    for pattern in product((1, -1), repeat=len(signs)):
        label = form.xreplace({t: S(v) for t, v in zip(marks, pattern, strict=True)})
        nu: dict[Index, Expr] = {}
        for subset, a, value in tensors:
            nu[a] = nu.get(a, S.Zero) + value * prod(pattern[k] for k in subset) / 2 ** len(signs)
        add_to_class(classes, label, nu)
    return [(label, nu) for label, nu in clean_classes(classes) if nu.get((), S.Zero) != 0]


def _sign_moments(signs: list[Expr], variables: Sequence[Symbol]) -> list[tuple[tuple[int, ...], Index, Expr]]:
    """E[prod of some signs times He_a], where flips of the variables do not prove it to be zero."""
    flips = [f for f in product((1, -1), repeat=len(variables)) if -1 in f]
    parity = []
    for f in flips:
        swap = {x: s * x for x, s in zip(variables, f, strict=True)}
        parity.append([_relative(u.xreplace(swap), u) for u in signs])
    found = []
    for size in range(len(signs) + 1):
        for subset in combinations(range(len(signs)), size):
            body = Mul(*(signs[k] for k in subset))
            for a in indices(len(variables)):
                checkpoint("integrating products of signs")
                if any(all(p[k] for k in subset) and prod(p[k] for k in subset) * prod(f[i] for i in a) == -1
                       for f, p in zip(flips, parity, strict=True)):
                    continue
                if any(not body.has(variables[i]) for i in a):
                    continue
                weight = Mul(*(He(a.count(i), variables[i]) for i in set(a)))
                used = [x for x in variables if body.has(x) or weight.has(x)]
                value = closed_form(E(body * weight, *used)) if used else S.One
                if value != 0:
                    found.append((subset, a, value))
    return found


def _relative(moved: Expr, old: Expr) -> int:
    """+1 or -1 if moved = +-old by its form, else 0."""
    difference = moved.args[0].expand() - old.args[0].expand() if moved.args and old.args else moved - old
    total = moved.args[0].expand() + old.args[0].expand() if moved.args and old.args else moved + old
    if moved == old or difference == 0:
        return 1
    return -1 if moved == -old or total == 0 else 0
