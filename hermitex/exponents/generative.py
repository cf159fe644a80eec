"""The generative exponent k* = min{k >= 1 : lambda_k != 0}, lambda_k^2 = E[zeta_k(Y)^2], zeta_k(Y) = E[h_k(z) | Y].

Source: Damian, Pillaud-Vivien, Lee, Bruna (2024). Equivalently the least information exponent of T(Y) over label maps
T, since E[T(Y) h_k] = E[T zeta_k]. So lambda_k != 0 is certified by one map T with E[T(Y) He_k] != 0, and lambda_k = 0
by a reflection, by finitely many labels, or by an identity between the branches of the target.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sympy import Expr, S, Symbol, erf, exp, oo, sqrt

from hermitex.exponents.certificate import Certificate
from hermitex.exponents.channels import Labels
from hermitex.exponents.information import Found
from hermitex.exponents.label import revealed
from hermitex.exponents.labels.branches import branch_identity
from hermitex.exponents.labels.families import label_maps
from hermitex.exponents.labels.levels import discrete, polynomial
from hermitex.exponents.labels.mean_signs import decided
from hermitex.exponents.labels.moments import Moments
from hermitex.exponents.labels.rising import injective_in_modulus, injective_odd
from hermitex.symbolic.budget import Listed, checkpoint
from hermitex.symbolic.hermite import He
from hermitex.symbolic.parity import parity
from hermitex.symbolic.pieces import Piece

MAX_ORDER = 24


def generative_exponent(labels: Labels, x: Symbol, *, known: Certificate | None = None,
                        law: Expr | None = None, found: list[Certificate] | None = None) -> Found:
    """The smallest k >= 1 with lambda_k != 0, with a certificate for each order up to it.

    Parameters
    ----------
    labels : what the label reveals (see `channels`)
    known : the certificate of the first non-zero c_k; then k* <= k, by the label map T(y) = y
    law : P(y|z) with y a free symbol, where `labels` lists it at a few labels only; its parity in z proves zeros
    found : certificates of the first orders, to which those found here are added
    """
    last = known.order if known is not None and isinstance(known.order, int) else MAX_ORDER
    if labels.levels is not None:
        u = revealed(labels.levels, (x,))
        classes = discrete(u, x)
        if classes is None:
            judge = _by_levels(u, x, plain=u == labels.levels)
        else:
            judge = _by_probabilities(list(classes.values())[1:], x, None, complete=True)
    else:
        judge = _by_probabilities(list(labels.probabilities), x, law, complete=law is None)
    seen = labels.probabilities if labels.levels is None else (labels.levels,)
    certificates: list[Certificate] = [] if found is None else found
    if certificates and certificates[-1].status == "nonzero":
        return Found(len(certificates), tuple(certificates))
    for k in range(len(certificates) + 1, last + 1):
        checkpoint(f"computing lambda_{k}")
        if known is not None and k == known.order and known.status == "nonzero":
            proof = replace(known, quantity=_mapped(k), how=f"label map T(y) = y, so this is c_{k}: {known.how}")
        elif law is None and (why := _same_path(seen, x, k)) is not None:
            proof = Certificate.zero(f"lambda_{k}", k, why)
        else:
            proof = judge(k)
        if proof.status == "undetermined":
            return Found(None, (*certificates, proof), (f"generative exponent: undetermined, lambda_{k}: {proof.how}",))
        certificates.append(proof)
        if proof.status == "nonzero":
            return Found(k, tuple(certificates))
    return Found(None, tuple(certificates), (f"generative exponent: undetermined, lambda_k = 0 for k <= {last}",))


def _same_path(seen: Sequence[Expr], x: Symbol, k: int) -> str | None:
    """Why every function of these tells nothing of He_k, by their level sets."""
    found = [branch_identity(p, x, k) for p in seen if p.has(x)]
    return found[0] if found and None not in found else None


# -- finitely many labels ----------------------------------------------------------------------------------------------

def _mapped(k: int) -> str:
    """The quantity whose being non-zero proves lambda_k != 0."""
    return f"E[T(Y) He_{k}]"


def _by_probabilities(laws: list, x: Symbol, law: Expr | None, *, complete: bool) -> Callable[[int], Certificate]:
    """lambda_k = 0 iff E[p_j He_k] = 0 for every label j (all of them, if the list is complete)."""
    reflection = parity(law, x) if law is not None else None

    def judge(k: int) -> Certificate:
        name = f"lambda_{k}"
        if reflection is not None and (-1) ** k != reflection:
            return Certificate.zero(name, k, f"P(y|z) is {'even' if reflection == 1 else 'odd'} in z, He_{k} is not")
        results = []
        for p in laws:
            words = "T the indicator of one label"
            found = Certificate.of(indicator_moment(p, k), _mapped(k), k, prefix=words) if isinstance(p, list) else \
                decided(p * He(k, x), x, _mapped(k), k, prefix=words)
            if found.status == "nonzero":
                return found
            results.append(found)
        bad = next((c for c in results if c.status == "undetermined"), None)
        if bad is not None:
            return bad
        if complete:
            return Certificate.zero(name, k, f"E[1(Y = y) He_{k}] = 0 for every label y: {results[0].how}")
        return Certificate(name, k, "undetermined", "zero at every label that was tried")

    return judge


def indicator_moment(intervals: list[Piece], k: int) -> Expr:
    """E[He_k(z) 1_A], A a union of intervals: sum of He_{k-1}(a) phi(a) - He_{k-1}(b) phi(b); P(A) at k = 0."""
    def at(point: Expr) -> Expr:
        if k == 0:
            return -erf(point / sqrt(2)) / 2
        if point in (oo, -oo):
            return S.Zero
        return He(k - 1, point) * exp(-(point**2) / 2) / sqrt(2 * S.Pi)

    return sum((at(p.lo) - at(p.hi) for p in intervals), S.Zero)


# -- level sets --------------------------------------------------------------------------------------------------------
def _by_levels(u: Expr, x: Symbol, *, plain: bool) -> Callable[[int], Certificate]:
    """Proofs for y = u(z), u neither constant nor discrete; `plain`: nothing was peeled off the target."""
    reflection = parity(u, x)
    poly = polynomial(u, x)
    even_injective = reflection == 1 and injective_in_modulus(u, x)
    odd_injective = reflection == -1 and injective_odd(u, x)
    maps = Listed(lambda: (Moments(m, (x,)) for m in label_maps(u, (x,), "y" if plain else "u(y)")))

    def judge(k: int) -> Certificate:
        name = f"lambda_{k}"
        if reflection == 1 and k % 2:
            return Certificate.zero(name, k, f"the target is even: E[He_{k} | Y] changes sign under z -> -z")
        if k == 1 and odd_injective:
            return Certificate(name, k, "nonzero", "the target is injective, so E[z | Y] = z", S.One, (S.One, S.One))
        if k == 2 and even_injective:
            return Certificate(name, k, "nonzero", "the target is even and injective in |z|, so E[h_2 | Y] = h_2(z)",
                               S.One, (S.One, S.One))
        last = None
        for moments in maps:
            found = moments.certificate({(k,): S.One}, name)
            if found is None:
                continue
            if found.status == "nonzero":
                return replace(found, quantity=_mapped(k), order=k)
            last = found if found.status == "undetermined" or last is None else last
        if poly is not None and k <= 2:
            fact = ("a polynomial that is not even has a far label with E[z | Y] != 0" if k == 1
                    else "far labels of an even polynomial have two preimages +-b, b > 1")
            return Certificate(name, k, "nonzero", fact)
        how = "every label map that was tried gives zero" if last is None or last.status == "zero" else last.how
        return Certificate(name, k, "undetermined", how)

    return judge
