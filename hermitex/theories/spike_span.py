r"""z = Gamma kappa + S zeta,   S = (I - Gamma Gamma^T)^{1/2},   kappa ~ N(0, I_m): a target and a spike of rank m.

kappa = V^T x for an orthonormal basis V of the spikes, Gamma = Theta^T V. A term of the target that holds the variables A is
averaged over as many normals eta: z_A = Gamma_A kappa + L eta with S_A = L Q, L lower triangular with those variables first in
which the term is not a polynomial, so that the others drop out of the average; then E[zeta g_A] = Q^T E[eta g_A].
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from sympy import Add, Expr, S, Symbol, expand

from hermitex.symbolic.activations import Activation
from hermitex.symbolic.gaussian import E
from hermitex.symbolic.precise import evaluate
from hermitex.symbols import kappa, normal, z
from hermitex.theories.directions import DirectedTarget, Seen, Target, term_by_term

Array = np.ndarray[Any, Any]
LIFT, SIZE = Symbol("lift", real=True), Symbol("size", positive=True)
_SPAN = 1e-12  # of the largest spike: the part of a spike outside of the others is rounding below it


def axes(rank: int) -> tuple[Symbol, ...]:
    """kappa1, kappa2, ...: the coordinates along the spikes; of one axis kappa.

    SymPy keeps one of two nodes that are equal up to what they bind: a `where` name must have one letter for its kappa everywhere.
    """
    return (kappa,) if rank == 1 else tuple(Symbol(f"kappa{j}", real=True) for j in range(1, rank + 1))


def overlap_names(directions: int, rank: int) -> list[list[str]]:
    """Gamma1_1, Gamma1_2, ...: a row for each direction of the target."""
    return [[f"Gamma{j}_{a}" for a in range(1, rank + 1)] for j in range(1, directions + 1)]


def variables_of(g: Target) -> tuple[Symbol, ...]:
    """z, or z1, z2, ...."""
    return (z,) if isinstance(g, Activation) else g.variables


def seen_beside(g: Target, rank: int) -> Seen:
    """h, h_1 + lift and E g^2 given kappa1, kappa2, ..., in Gamma1_1, ... and the L and Q of each order of variables.

    lift = E[g^2|kappa]/sqrt(E g^2): next to it an h_1 that vanishes at every kappa is 0 to digits of the target's size, and not a
    rounding that no quadrature has digits of. Take averages of both and subtract.
    """
    variables = variables_of(g)
    mean = [Symbol(f"M{j}", real=True) for j in range(1, len(variables) + 1)]
    names = {v: Add(*(Symbol(n, real=True)*k for n, k in zip(row, axes(rank), strict=True)))
             for v, row in zip(mean, overlap_names(len(variables), rank), strict=True)}
    h, squared, along = S.Zero, S.Zero, [S.Zero]*len(variables)
    for power, body in ((1, g.expr), (2, g.expr**2)):
        for term in Add.make_args(expand(body)):
            order = _order(term, variables)
            eta = [normal(f"w{a}") for a in range(len(order))]
            at = {variables[j]: mean[j] + Add(*(Symbol(_name("L", order, a, b), real=True)*eta[b] for b in range(a + 1)))
                  for a, j in enumerate(order)}
            given = term.subs(at, simultaneous=True)
            if power == 2:
                squared += term_by_term(given, eta)
                continue
            h += term_by_term(given, eta)
            for b in range(len(order)):
                slope = term_by_term(eta[b]*given, eta)
                along = [v + Symbol(_name("Q", order, b, j), real=True)*slope for j, v in enumerate(along)]
    return Seen(h, tuple(v + LIFT for v in along), squared, {**names, LIFT: squared/SIZE})


def beside_numbers(g: Target, overlaps: Array) -> dict[str, Array]:
    """The numbers of Gamma, L and Q at overlaps (..., J, m)."""
    variables = variables_of(g)
    orders = {_order(term, variables) for body in (g.expr, g.expr**2) for term in Add.make_args(expand(body))}
    found = {SIZE.name: np.asarray(_size(g))}
    found |= {n: overlaps[..., j, a] for j, row in enumerate(overlap_names(*overlaps.shape[-2:])) for a, n in enumerate(row)}
    S_ = root(overlaps)
    for order in orders:
        L, Q = _triangle(S_[..., list(order), :])
        found |= {_name("L", order, a, b): L[..., a, b] for a in range(len(order)) for b in range(a + 1)}
        found |= {_name("Q", order, b, j): Q[..., b, j] for b in range(len(order)) for j in range(len(variables))}
    return found


def letters_beside(moments: Seen) -> list[Symbol]:
    """The parameters in the moments: Gamma, L and Q."""
    free = {v for e in (moments.h, *moments.h_1, moments.squared, *moments.names.values()) for v in e.free_symbols}
    return sorted((v for v in free if v == SIZE or v.name[:5] == "Gamma" or v.name[:2] in ("L_", "Q_")), key=str)


@cache
def _size(g: Target) -> float:
    """sqrt(E g^2), or 1 where that is 0."""
    mean = g.mean(g.expr**2) if isinstance(g, DirectedTarget) else E(g.expr**2, z)
    return float(evaluate(mean, digits=14))**0.5 or 1.0


def _name(matrix: str, order: tuple[int, ...], a: int, b: int) -> str:
    return f"{matrix}_{''.join(str(j + 1) for j in order)}_{a + 1}{b + 1}"


def _order(term: Expr, variables: tuple[Symbol, ...]) -> tuple[int, ...]:
    """The variables of the term, first the ones in which it is not a polynomial."""
    there = [j for j, v in enumerate(variables) if term.has(v)]
    return tuple(sorted(there, key=lambda j: (bool(term.is_polynomial(variables[j])), j)))


def _triangle(rows: Array) -> tuple[Array, Array]:
    """Rows = L Q, L lower triangular and Q of orthonormal rows; a row that the others span has a zero on the diagonal of L."""
    L, Q = np.zeros((*rows.shape[:-1], rows.shape[-2])), np.zeros_like(rows)
    for a in range(rows.shape[-2]):
        left = rows[..., a, :]
        for _ in range(2):  # twice is enough for orthogonality to rounding
            part = np.einsum("...bj,...j->...b", Q, left)
            L[..., a, :] += part
            left = left - np.einsum("...b,...bj->...j", part, Q)
        size = np.linalg.norm(left, axis=-1)
        kept = size > _SPAN
        L[..., a, a] = np.where(kept, size, 0.0)
        Q[..., a, :] = np.divide(left, size[..., None], out=np.zeros_like(left), where=kept[..., None])
    return L, Q


def root(overlaps: Array) -> Array:
    """(I - Gamma Gamma^T)^{1/2}, accurate where Gamma is close to a rotation; overlaps (..., J, m)."""
    left, sizes, _ = np.linalg.svd(overlaps, full_matrices=False)
    sizes = np.where(sizes > 1 - 1e-14, 1.0, sizes)  # a unit vector to rounding is in the span
    lost = 1 - np.sqrt(np.clip((1 - sizes)*(1 + sizes), 0, None))
    return np.eye(overlaps.shape[-2]) - np.einsum("...ja,...a,...ia->...ji", left, lost, left)


def spanned(vectors: Array) -> tuple[Array, Array]:
    """U and an orthonormal basis with vectors = U basis, in the order of the vectors: of as many rows as the rank."""
    basis, least = np.zeros((0, vectors.shape[1])), _SPAN*max(np.linalg.norm(vectors, axis=1).max(), np.finfo(float).tiny)
    for v in vectors:
        left = v - (basis @ v) @ basis
        left = left - (basis @ left) @ basis
        if (size := np.linalg.norm(left)) > least:
            basis = np.vstack([basis, left/size])
    return vectors @ basis.T, basis


def layer_names(letters: int, directions: int, rank: int) -> tuple[list[list[str]], list[list[str]]]:
    """U1_1, U1_2, ... with a row for each letter, and Gamma1_1, ... with one for each direction of the target."""
    return [[f"U{k}_{a}" for a in range(1, rank + 1)] for k in range(1, letters + 1)], overlap_names(directions, rank)


class Layer(NamedTuple):
    """U (..., K, m), Gamma (..., J, m) and c (..., K): S_k = V U_k, the overlaps of V with the target's directions, the bulks."""

    U: Array
    overlaps: Array
    c: Array


def layer_numbers(layer: Layer, g: Target) -> dict[str, Array]:
    """What the equations of K letters take of a layer."""
    U, overlaps, c = layer
    names, _ = layer_names(U.shape[-2], overlaps.shape[-2], U.shape[-1])
    found = {n: U[..., k, a] for k, row in enumerate(names) for a, n in enumerate(row)}
    return found | {f"c{k + 1}": c[..., k] for k in range(c.shape[-1])} | beside_numbers(g, overlaps)


def measured_names(letters: int, directions: int) -> list[str]:
    """overlap1_2 of letter 1 with z2 (overlap1 of one direction), and gram_11, gram_12, ..."""
    each = range(1, letters + 1)
    return [*(f"overlap{k}_{j}" if directions > 1 else f"overlap{k}" for k in each for j in range(1, directions + 1)),
            *(f"gram_{k}{j}" for k in each for j in range(k, letters + 1)), *(f"c{k}" for k in each)]


def measured_values(layer: Layer) -> dict[str, Array]:
    """The layer under these names."""
    K, J = layer.U.shape[-2], layer.overlaps.shape[-2]
    overlap, gram = np.einsum("...ka,...ja->...kj", layer.U, layer.overlaps), np.einsum("...ka,...ja->...kj", layer.U, layer.U)
    values = [*(overlap[..., k, j] for k in range(K) for j in range(J)), *(gram[..., k, j] for k in range(K) for j in range(k, K)),
              *(layer.c[..., k] for k in range(K))]
    return dict(zip(measured_names(K, J), values, strict=True))
