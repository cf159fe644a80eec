r"""dM/dt, dQ/dt and da/dt of a committee, from averages of products of its functions at the joint covariance of all fields.

delta = sum_a s_a f_a(u_a) + sqrt(Delta) eps over students (s_j = -a_j/p) and teachers (s_r = v_r/k), C their joint covariance.
By Stein's lemma and Price's theorem E[sigma'(u_j) u_i f_a(u_a)] = C_ij E[sigma''_j f_a] + C_ia E[sigma'_j f'_a], so with
F(C_jj, C_ja, C_aa) = E[sigma_j f_a] every I_3 is 2 C_ij dF/dC_jj + C_ia dF/dC_ja; I_4 is met four fields at a time, fewer where two
of them are one neuron.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from sympy import Expr, diff

from hermitex.errors import NO_NUMBER, BadInput
from hermitex.symbols import z
from hermitex.theories.committees.conditioned_quadrature import average as numeric
from hermitex.theories.committees.field_products import NODES, Product, compiled, product, slope, with_quadrature

Array = np.ndarray


@dataclass(frozen=True)
class Pair:
    """F = E[f(u) g(v)] of two neurons and its derivatives by C_11 and C_12; `same`: v is u, F = E[f g] of one."""

    f: Expr
    g: Expr
    same: bool = False

    @cached_property
    def value(self) -> Product:
        """F itself."""
        return product(self.f*self.g) if self.same else product(self.f, self.g)

    @cached_property
    def by_own(self) -> Callable[..., Array]:
        """E[f'' g] = 2 dF/dC_11; of one neuron E[(f' g)'] = E[f'' g + f' g']."""
        if self.same:
            return product((slope(self.f)*slope(self.g) + _continuous(slope(slope(self.f)), self.g)).expand())
        return self._derivative(1, 1, 2, product(slope(slope(self.f)), self.g))

    @cached_property
    def across(self) -> Callable[..., Array]:
        """E[f' g'] = dF/dC_12."""
        return self._derivative(1, 2, 1, product(slope(self.f), slope(self.g)))

    def _derivative(self, i: int, j: int, times: int, same: Product) -> Callable[..., Array]:
        """times dF/dC_ij by the closed form of F; `same` is that average as a product."""
        formula = self.value.derivative(i, j)
        if formula is None:
            return same
        made = compiled(self.value.letters, times*formula)
        return lambda C, nodes=NODES: with_quadrature(made, same.factors, C, nodes)


def _continuous(density: Expr, f: Expr) -> Expr:
    """A distribution times a continuous function: delta(z - c) f(z) is delta(z - c) f(c)."""
    from sympy import Add, DiracDelta

    terms = []
    for term in Add.make_args(density.expand(func=False)):
        held = term.atoms(DiracDelta)
        if not held:
            terms.append(term*f)
            continue
        (delta,) = held
        place = -delta.args[0].subs(z, 0)/diff(delta.args[0], z)
        terms.append(term*f.subs(z, place))
    return Add(*terms)


@lru_cache(maxsize=256)
def pair(f: Expr, g: Expr, same: bool = False) -> Pair:
    """The average of two neurons' outputs, made once."""
    return Pair(f, g, same)


@dataclass(frozen=True)
class Rates:
    """The right-hand sides for p students sigma and k teachers g; the second layer is trained or not.

    A state is the vector of Q_jl (j <= l), M_jr and, where it is trained, a_j.
    """

    sigma: Expr
    g: Expr
    p: int
    k: int
    trained: bool = False

    # -- shapes --------------------------------------------------------------------------------------------------------
    @cached_property
    def upper(self) -> tuple[Array, Array]:
        """Rows and columns of Q, each pair once."""
        return np.triu_indices(self.p)

    @cached_property
    def size(self) -> int:
        """Of a state."""
        return len(self.upper[0]) + self.p*self.k + self.p*self.trained

    def packed(self, Q: Array, M: Array, a: Array) -> Array:
        """The state of matrices."""
        return np.concatenate([Q[self.upper], np.ravel(M), *([a] if self.trained else [])])

    def read(self, x: Array, fixed: Array) -> tuple[Array, Array, Array]:
        """Q, M and a of a state; `fixed` is a where it is not trained."""
        q, m = len(self.upper[0]), self.p*self.k
        Q = np.zeros((self.p, self.p))
        Q[self.upper] = Q.T[self.upper] = x[:q]
        return Q, x[q:q + m].reshape(self.p, self.k), (x[q + m:] if self.trained else fixed)

    def joint(self, Q: Array, M: Array, P: Array) -> Array:
        """The covariance of all fields, students first."""
        C = np.empty((self.p + self.k, self.p + self.k))
        C[:self.p, :self.p], C[:self.p, self.p:], C[self.p:, :self.p], C[self.p:, self.p:] = Q, M, M.T, P
        return C

    def _f(self, a: int) -> Expr:
        return self.sigma if a < self.p else self.g

    # -- groups: the same average over many sets of neurons is one call --------------------------------------------------
    def _places(self, neurons: Sequence[Sequence[int]]) -> Array:
        """The flat places of the entries of their covariances in the covariance of all fields: (B, n, n)."""
        rows = np.array(neurons)
        return rows[:, :, None]*(self.p + self.k) + rows[:, None, :]

    @cached_property
    def pairs(self) -> list[tuple[Pair, Array, Array]]:
        """(average, places of the covariances (B, n, n), [(j, a)]) for a student j and any neuron a."""
        groups: dict[Pair, list[tuple[int, int]]] = {}
        for j in range(self.p):
            for a in range(self.p + self.k):
                groups.setdefault(pair(self.sigma, self._f(a), a == j), []).append((j, a))
        return [(p, self._places([[j] if p.same else [j, a] for j, a in found]), np.array(found)) for p, found in groups.items()]

    @cached_property
    def outputs(self) -> list[tuple[Product, Array, Array]]:
        """The same over all pairs of neurons, teachers too: the risk."""
        groups: dict[Product, tuple[list, list]] = {}
        for a in range(self.p + self.k):
            for b in range(a, self.p + self.k):
                found = pair(self._f(a), self._f(b), a == b).value
                rows, which = groups.setdefault(found, ([], []))
                rows.append([a] if a == b else [a, b])
                which.append((a, b))
        return [(q, self._places(rows), np.array(which)) for q, (rows, which) in groups.items()]

    @cached_property
    def steps(self) -> list[tuple[Product, Array, Array]]:
        """(average, places, [(j, l, a, b)], j <= l, a <= b) for E[sigma'_j sigma'_l f_a f_b]."""
        groups: dict[Product, tuple[list, list]] = {}
        for j, l, a, b in self._fours():
            found, neurons = self._merged(j, l, a, b)
            rows, which = groups.setdefault(found, ([], []))
            rows.append(neurons)
            which.append((j, l, a, b))
        return [(q, self._places(rows), np.array(which)) for q, (rows, which) in groups.items()]

    @cached_property
    def noises(self) -> list[tuple[Product, Array, Array]]:
        """(average, places, [(j, l)]) for J_2 = E[sigma'_j sigma'_l]."""
        d = slope(self.sigma)
        own, apart = product(d**2), product(d, d)
        found = [(own, self._places([[j] for j in range(self.p)]), np.array([(j, j) for j in range(self.p)]))]
        others = [(j, l) for j in range(self.p) for l in range(j + 1, self.p)]
        return [*found, *([(apart, self._places(others), np.array(others))] if others else [])]

    def _fours(self) -> Iterator[tuple[int, int, int, int]]:
        n = self.p + self.k
        for j, l in zip(*self.upper, strict=True):
            for a in range(n):
                for b in range(a, n):
                    yield int(j), int(l), a, b

    @cached_property
    def _four(self) -> dict[tuple[bool, bool], tuple[Product, bool]]:
        """The product over four distinct neurons, the last two of them students or not, and whether its formula serves for all."""
        d, f = slope(self.sigma), {True: self.sigma, False: self.g}
        found = {(a, b): product(d, d, f[a], f[b]) for a in f for b in f}
        return {which: (four, regular(four)) for which, four in found.items()}

    def _merged(self, j: int, l: int, a: int, b: int) -> tuple[Product, list[int]]:
        """The product over distinct neurons. A regular formula for four distinct ones serves for all."""
        four, serves = self._four[a < self.p, b < self.p]
        if serves:
            return four, [j, l, a, b]
        d = slope(self.sigma)
        found: dict[int, Expr] = {}
        for neuron, f in ((j, d), (l, d), (a, self._f(a)), (b, self._f(b))):
            found[neuron] = found.get(neuron, 1)*f
        order = sorted(found, key=lambda n: (str(found[n]), n))
        return product(*(found[n] for n in order)), order

    # -- numbers -------------------------------------------------------------------------------------------------------
    def second(self, C: Array, nodes: int = NODES) -> Array:
        """E[f_a f_b] of all pairs."""
        return self._table(self.outputs, C, nodes)

    def rate(self, Q: Array, M: Array, a: Array, P: Array, *, v: Array, gamma: float, Delta: float, second_rate: float = 1.0,
             nodes: int = NODES) -> tuple[Array, Array, Array]:
        """dQ/dt, dM/dt, da/dt. `second_rate`: the learning rate of the second layer over that of the first."""
        p, n = self.p, self.p + self.k
        C = self.joint(Q, M, P)
        s = np.concatenate([-a/p, v/self.k])
        own, across = np.zeros((p, n)), np.zeros((p, n))
        for average, places, which in self.pairs:
            law = C.take(places)
            own[which[:, 0], which[:, 1]] = average.by_own(law, nodes)
            if not average.same:
                across[which[:, 0], which[:, 1]] = average.across(law, nodes)
        drive = a[:, None]*(C[:p]*(own @ s)[:, None] + (across*s) @ C)  # sum_a s_a a_j I_3(j, i, a) for every field i
        dQ = drive[:, :p] + drive[:, :p].T
        if gamma:
            F = self._table(self.noises, C, nodes, p)*Delta
            weights = np.outer(s, s)
            for four, places, which in self.steps:
                j, l, b, c = which.T
                value = four(C.take(places), nodes)*weights.take(b*n + c)*np.where(b == c, 1.0, 2.0)
                F += np.bincount(j*p + l, value, p*p).reshape(p, p)
            F.T[self.upper] = F[self.upper]
            dQ = dQ + gamma/p*np.outer(a, a)*F
        da = second_rate*(self.second(C, nodes)[:p] @ s) if self.trained else np.zeros(p)
        return dQ, drive[:, p:], da

    def held(self, state: tuple[Array, Array, Array], P: Array, nodes: int, rtol: float, **numbers: Any) -> bool:
        """Do the rates at (Q, M, a) agree with the rates on other nodes, relative to the largest rate or entry of the state?"""
        one, two = (self.packed(*self.rate(*state, P, nodes=n, **numbers)) for n in (nodes, other_node_count(nodes)))
        return bool(np.max(np.abs(one - two)) <= rtol*max(np.max(np.abs(one)), np.max(np.abs(self.packed(*state)))))

    def enough(self, state: tuple[Array, Array, Array], P: Array, rtol: float, **numbers: Any) -> int:
        """The fewest nodes with which the rates at a state are `held`; the most that memory and time allow where none are."""
        nodes, fields = NODES, max((len(q.functions) for q, _, _ in self.steps), default=2)
        most = 10**7  # of one average: 80 MB
        while not self.exact and finer_node_count(nodes)**fields < most and not self.held(state, P, nodes, rtol, **numbers):
            nodes = finer_node_count(nodes)
        return nodes

    def risk(self, Q: Array, M: Array, a: Array, P: Array, *, v: Array, nodes: int = NODES) -> float:
        """E[(sum_a s_a f_a)^2]/2."""
        s = np.concatenate([-a/self.p, v/self.k])
        return float(s @ self.second(self.joint(Q, M, P), nodes) @ s)/2

    def _table(self, groups: list, C: Array, nodes: int, n: int | None = None) -> Array:
        n = len(C) if n is None else n
        table = np.zeros((n, n))
        for average, places, which in groups:
            table[which[:, 0], which[:, 1]] = table[which[:, 1], which[:, 0]] = average(C.take(places), nodes)
        return table

    @cached_property
    def exact(self) -> bool:
        """Does every average have a closed form?"""
        parts = [f for p, _, _ in self.pairs for f in ((p.by_own,) if p.same else (p.by_own, p.across))]
        pairs = all(f.closed is not None for f in parts if isinstance(f, Product))
        return pairs and all(q.closed is not None for q, _, _ in (*self.steps, *self.noises, *self.outputs))


def other_node_count(nodes: int) -> int:
    """Fewer nodes, at other places: an odd number for an even one, an even one for an odd.

    >>> other_node_count(30), other_node_count(37)
    (25, 30)
    """
    return nodes*5//6 + (nodes*5//6 + nodes + 1) % 2


def finer_node_count(nodes: int) -> int:
    """More nodes, at other places.

    >>> finer_node_count(30), finer_node_count(37)
    (37, 44)
    """
    return nodes*6//5 + (nodes*6//5 + nodes + 1) % 2


def neurons(name: str, n: Any) -> int:
    """A number of neurons, checked.

    >>> neurons("students", "3")
    3
    """
    try:
        value = float("nan" if isinstance(n, bool) else n)
    except NO_NUMBER:
        value = float("nan")
    if not (value >= 1 and value == np.floor(value) < np.inf):
        raise BadInput(f"committee: {name} is a whole number of neurons, 1 or more, not {n!r}")
    return int(value)


def require_few(p: int, k: int) -> None:
    """Refuse sizes whose flow has too many averages of four fields, p(p+1)/2 (p+k)(p+k+1)/2."""
    count = p*(p + 1)//2*((p + k)*(p + k + 1)//2)
    most = 200_000  # of four fields: an hour at 0.02 s each
    if count > most:
        raise BadInput(f"committee: {p} students and {k} teachers make {count} averages of four fields a step; {most} "
                       "is the most. Take fewer neurons")


def label(letter: str, i: int, j: int) -> str:
    """Q11; Q_10_2 beyond nine neurons."""
    return f"{letter}{i + 1}{j + 1}" if max(i, j) < 9 else f"{letter}_{i + 1}_{j + 1}"


@lru_cache(maxsize=256)
def regular(average: Product) -> bool:
    """Does the closed form hold where fields coincide, too? Tried at singular covariances: many, since a root of a determinant that
    is rounding has a value at half of them; and against the quadrature.
    """
    if average.closed is None:
        return False
    rng = np.random.default_rng(len(average.functions))
    trials = []
    for _ in range(40):
        for twins in ((0, 2), (0, 3), (1, 2), (2, 3), (0, 1)):
            rows = rng.normal(size=(4, 5))/3
            rows[twins[1]] = rows[twins[0]]
            trials.append(rows @ rows.T)
    law = np.array(trials)
    assert average._function is not None
    value = average._function(law)
    if not np.all(np.isfinite(value)):
        return False
    return bool(np.allclose(value[:5], product_by_quadrature(average, law[:5]), rtol=1e-5, atol=1e-6))


def product_by_quadrature(average: Product, C: Array, nodes: int = 40) -> Array:
    """The same average without its closed form."""
    return numeric(average.factors, C, nodes)
