"""d E[prod g_i(x_i + h_i)]/dC_ij = c_i c_j phi_2(h_i, h_j; C_ij) E[the others | x_i = -h_i, x_j = -h_j]: signs of six normals.

g is a sign (c = 2) or a step (c = 1). From independent normals, C(t) = 1 + t (C - 1), an integral over t leads to C; it contains
two switches fewer, and the average of two has a closed form. So six switches cost a double integral. Source: Plackett (1954).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sympy import Expr, Heaviside, Matrix, Max, Min, Poly, S, Symbol, sign
from sympy.polys.polyerrors import PolynomialError

from hermitex.numbers import gauss
from hermitex.numbers.invariant_directions import Row, product
from hermitex.numbers.reductions import linear_forms
from hermitex.symbolic.budget import checkpoint

Array = NDArray[np.float64]


def switches_average(body: Expr, variables: Sequence[Symbol], law: Matrix, most: int = 6) -> tuple[float, float] | None:
    """(value, error) of a polynomial in signs and steps of affine forms, at most `most` in a product; None of anything else.

    Examples
    --------
    >>> from sympy import eye
    >>> from hermitex.symbols import z1, z2, z3
    >>> from sympy import sign
    >>> value, error = switches_average(sign(z1 + z2)*sign(z2 + z3), (z1, z2, z3), eye(3))
    >>> bool(abs(value - 1/3) < error < 1e-13)
    True
    """
    switches = sorted((e for e in body.atoms(sign, Heaviside) if e.free_symbols.intersection(variables)), key=str)
    letters = [Symbol(f"s{i}") for i in range(len(switches))]
    flat = body.xreplace(dict(zip(switches, letters, strict=True)))
    forms = linear_forms([e.args[0] for e in switches], variables)
    if not switches or forms is None or flat.free_symbols - set(letters):
        return None
    try:
        terms = Poly(flat, *letters).terms()
    except PolynomialError:
        return None
    total = error = 0.0
    for powers, coefficient in terms:
        chosen = [i for i, n in enumerate(powers) if n % 2 or (n and isinstance(switches[i], Heaviside))]
        kinds = [2 if isinstance(switches[i], sign) else 1 for i in chosen]
        part = _of_forms([forms[i] for i in chosen], kinds, law) if len(chosen) <= most else None
        if part is None:
            return None
        total, error = total + float(coefficient)*part[0], error + abs(float(coefficient))*part[1]
    return total, error


def _of_forms(forms: Sequence[tuple[Row, Expr]], kinds: Sequence[int], law: Matrix) -> tuple[float, float] | None:
    C = covariances([row for row, _ in forms], law)
    size = np.sqrt(np.diag(C))
    return product_average(kinds, np.array([float(c) for _, c in forms])/size, C/np.outer(size, size))


def covariances(rows: Sequence[Row], law: Matrix) -> Array:
    """The covariance matrix of linear forms, each entry exact before it is rounded."""
    return np.array([[float(product(a, law, b)) for b in rows] for a in rows]).reshape(len(rows), len(rows))


def product_average(kinds: Sequence[int], h: Array, C: Array) -> tuple[float, float] | None:
    """(value, error) of E prod g_i(x_i + h_i) for correlations C; None where C is singular to six digits.

    kinds : 2 for a sign, 1 for a step
    """
    smallest = np.linalg.eigvalsh(C)[0] if len(h) else 1.0
    if smallest < 1e-6:
        return None
    if len(h) % 2 and not h.any() and all(k == 2 for k in kinds):
        return 0.0, 0.0
    coarse, fine = (_average(tuple(kinds), h[None, :], C[None, :, :], order) for order in (14, 20))
    # 1 - r^2 and the conditional covariances lose eps over the smallest eigenvalue: 0.4 of it in 300 draws of three
    rounding = 4*np.finfo(float).eps/smallest*max(fine[1][0], abs(fine[0][0]))
    return float(fine[0][0]), float(abs(fine[0][0] - coarse[0][0]) + rounding)


def _average(kinds: tuple[int, ...], h: Array, C: Array, order: int) -> tuple[Array, Array]:
    """The averages for a batch of shifts (N, k) and correlations (N, k, k), and the sums of the sizes of their terms."""
    if len(kinds) == 0:
        return np.ones(len(h)), np.ones(len(h))
    if len(kinds) == 1:
        value = _one(kinds[0], h[:, 0])
        return value, np.abs(value)
    if len(kinds) == 2:
        return _two(kinds, h, C[:, 0, 1])
    checkpoint("integrating signs of correlated normals", cells=len(h)*order)
    value = np.prod([_one(k, h[:, i]) for i, k in enumerate(kinds)], axis=0)
    size = np.abs(value)
    nodes, weights = _nodes(float(np.linalg.eigvalsh(C)[:, 0].min()), order)
    n, k, many = len(h), len(kinds), len(nodes)
    at = (C[:, None]*nodes[:, None, None]).reshape(n*many, k, k)
    at[:, np.arange(k), np.arange(k)] = 1.0
    shifts = np.repeat(h, many, axis=0)
    for i, j in combinations(range(k), 2):
        slope, much = _slope(kinds, shifts, at, i, j, order)
        value += C[:, i, j]*(slope.reshape(n, many) @ weights)
        size += np.abs(C[:, i, j])*(much.reshape(n, many) @ weights)
    return value, size


def _nodes(smallest: float, order: int) -> tuple[Array, Array]:
    """Gauss-Legendre on panels of [0, 1] that halve towards 1, until they are as short as the distance to a singular C(t)."""
    panels = max(1, int(np.ceil(np.log2(1/max(smallest, 1e-12)))))
    ends = np.append(1 - 0.5**np.arange(panels + 1), 1.0)
    x, w = gauss.legendre_on(ends, order)
    return x.ravel(), w.ravel()


def _slope(kinds: tuple[int, ...], h: Array, C: Array, i: int, j: int, order: int) -> tuple[Array, Array]:
    """c_i c_j phi_2 times the average of the other switches where x_i = -h_i and x_j = -h_j."""
    r = C[:, i, j]
    gap = (1 - r)*(1 + r)
    density = kinds[i]*kinds[j]*np.exp(-(h[:, i]**2 - 2*r*h[:, i]*h[:, j] + h[:, j]**2)/(2*gap))/(2*np.pi*np.sqrt(gap))
    others = [k for k in range(len(kinds)) if k not in (i, j)]
    a, b = C[:, others, i], C[:, others, j]
    u, v = (a - r[:, None]*b)/gap[:, None], (b - r[:, None]*a)/gap[:, None]
    left = C[:, others][:, :, others] - u[:, :, None]*a[:, None, :] - v[:, :, None]*b[:, None, :]
    size = np.sqrt(np.maximum(np.einsum("nkk->nk", left), np.finfo(float).tiny))
    shift = (h[:, others] - u*h[:, i, None] - v*h[:, j, None])/size
    value, much = _average(tuple(kinds[k] for k in others), shift, left/size[:, :, None]/size[:, None, :], order)
    return density*value, density*much


def _one(kind: int, h: Array) -> Array:
    from scipy.special import erf, erfc  # scipy takes longer to load than most answers take

    return np.asarray(erf(h/np.sqrt(2)) if kind == 2 else erfc(-h/np.sqrt(2))/2)


def _two(kinds: tuple[int, ...], h: Array, r: Array) -> tuple[Array, Array]:
    """Two switches: a sum of Owen's T functions, or an arc sine without shifts."""
    from scipy.special import erf

    signs = _two_signs(h[:, 0], h[:, 1], np.clip(r, -1, 1))
    one = erf(h/np.sqrt(2))
    value, size = signs, np.ones(len(h))
    if kinds != (2, 2):
        steps = [(1 if k == 1 else 0) for k in kinds]
        value = signs + steps[0]*one[:, 1] + steps[1]*one[:, 0] + steps[0]*steps[1]
        value = value/(2**sum(steps))
    return value, size


def _two_signs(h: Array, k: Array, r: Array) -> Array:
    """E sign(x + h) sign(y + k) for correlation r."""
    from scipy.special import owens_t

    if not (h.any() or k.any()):
        return np.asarray(2/np.pi*np.arcsin(r))
    with np.errstate(all="ignore"):
        root = np.sqrt((1 - r)*(1 + r))
        a, b = (k - r*h)/(h*root), (h - r*k)/(k*root)
    a, b = np.where(h == 0, np.copysign(np.inf, k), a), np.where(k == 0, np.copysign(np.inf, h), b)
    opposite = (h*k < 0) | ((h*k == 0) & (h + k < 0))
    value = 1 - 4*owens_t(h, a) - 4*owens_t(k, b) - 2*opposite
    return np.where((h == 0) & (k == 0), 2/np.pi*np.arcsin(r), value)


def mean_of_largest(body: Expr, variables: Sequence[Symbol], law: Matrix, most: int = 6) -> tuple[float, float] | None:
    """E max u_i = sum_i m_i P(u_i largest) + sum_{i<j} d_ij phi((m_i - m_j)/d_ij) P(u_k < u_i for the others | u_i = u_j).

    d_ij^2 = Var(u_i - u_j). (value, error) of c + a Max(u_1, ..., u_n) with at most `most` affine forms; None of anything else.
    """
    largest = [e for e in body.atoms(Max, Min) if e.free_symbols.intersection(variables)]
    if len(largest) != 1 or len(top := largest[0].args) > most:
        return None
    turn = 1 if isinstance(largest[0], Max) else -1
    M = Symbol("M")
    h = body.xreplace({largest[0]: M})
    forms = linear_forms([turn*a for a in top], variables)
    if forms is None or h.free_symbols - {M} or not h.is_polynomial(M) or Poly(h, M).degree() != 1:
        return None
    mean, C = np.array([float(m) for _, m in forms]), covariances([row for row, _ in forms], law)
    value = error = 0.0
    for i in range(len(top)):
        if mean[i]:
            part = _wins(i, mean, C)
            if part is None:
                return None
            value, error = value + mean[i]*part[0], error + abs(mean[i])*part[1]
    for i, j in combinations(range(len(top)), 2):
        part = _meets(i, j, mean, C)
        if part is None:
            return None
        value, error = value + part[0], error + part[1]
    slope, at0 = float(h.coeff(M, 1)), float(h.coeff(M, 0) if h.is_Add else S.Zero)
    return at0 + turn*slope*value, abs(slope)*error + np.finfo(float).eps*abs(at0)


def _wins(i: int, mean: Array, C: Array) -> tuple[float, float] | None:
    """P(u_j < u_i for all j)."""
    T = np.array([np.eye(len(mean))[i] - np.eye(len(mean))[j] for j in range(len(mean)) if j != i])
    return _all_positive(T @ mean, T @ C @ T.T)


def _meets(i: int, j: int, mean: Array, C: Array) -> tuple[float, float] | None:
    """d_ij phi((m_i - m_j)/d_ij) P(u_k < u_i for the others | u_i = u_j)."""
    e = np.eye(len(mean))
    T = np.array([e[i] - e[j], *(e[i] - e[k] for k in range(len(mean)) if k not in (i, j))])
    m, K = T @ mean, T @ C @ T.T
    if not K[0, 0] > 0:
        return (0.0, 0.0) if m[0] else None
    front = np.sqrt(K[0, 0])*np.exp(-m[0]**2/(2*K[0, 0]))/np.sqrt(2*np.pi)
    part = _all_positive(m[1:] - K[1:, 0]*m[0]/K[0, 0], K[1:, 1:] - np.outer(K[1:, 0], K[0, 1:])/K[0, 0])
    return part and (front*part[0], front*part[1])


def _all_positive(mean: Array, C: Array) -> tuple[float, float] | None:
    size = np.sqrt(np.diag(C))
    return product_average([1]*len(mean), mean/size, C/np.outer(size, size)) if np.all(size > 0) else None


__all__: list[Any] = ["covariances", "mean_of_largest", "product_average", "switches_average"]
