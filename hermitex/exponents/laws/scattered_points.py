"""E[G (x) G] of any label from evenly spread points of R^r: some digits without any structure.

The last resort. Points of randomly shifted lattices are sorted into cells of the label, on which polynomials are fitted; where
they show structure the cells are made finer, and the points more. The error holds for features that the points resolve, but not
for a label with more detail than points.

If directions are known, the label is sampled at each u. One u is averaged over by the rule for one; for several the lattices
are shifted, and each shift gives an average.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
from sympy import Expr, Symbol

from hermitex.errors import BudgetExceeded, NoClosedForm
from hermitex.exponents.directions.invariant_tensors import without_sign
from hermitex.exponents.directions.symmetry import symmetries
from hermitex.exponents.laws.coupling_averages import beyond_known, even_part, mirror_signs, over_known
from hermitex.exponents.laws.density import Index, array_function
from hermitex.exponents.laws.discrete import indices
from hermitex.exponents.laws.linearised import (
    Couplings,
    Kernels,
    LabelCouplings,
    mix_couplings,
    most_precise,
)
from hermitex.exponents.laws.projected import MOST, FittedCouplings, Samples, points, projections
from hermitex.exponents.laws.value import as_array
from hermitex.symbolic.budget import checkpoint

_SHIFTS = 16  # independent shifts of the lattice: their spread is known to 1/sqrt(2*15) = 18 %
Spaces = tuple[Sequence[Symbol], Sequence[Symbol], Sequence[Index]]  # known, hidden, indices that are zero

@dataclass(frozen=True)
class Plan:
    """log2 of the points of each shift, pass by pass; of the points that make the first panels; and of the cells."""

    sizes: tuple[int, ...] = (12, 15, 18, 20)
    sample: int = 15
    cells: int = 13


# Plan(sizes, sample, cells), in powers of 2, at each u: of one, where there is time for more, and of several
_ONE, _SEVERAL = Plan((11, 14), 12, 11), Plan((12,), 11, 10)


def scattered(g: Expr, silent: Sequence[Symbol], kernels: Kernels | None, spaces: Spaces,
              turns: Sequence[np.ndarray] = ()) -> LabelCouplings:
    """The couplings of order two of the hidden variables, averaged over the given ones.

    Parameters
    ----------
    g : the label, of the variables and of `silent` standard normals that carry no direction (noise)
    kernels : the probabilities of the labels given g, where it is drawn; None: g is the label
    spaces : the given variables (or none), the hidden ones, indices known to be exactly zero
    turns : orthogonal matrices R over the hidden variables with g(u, R v) = g(u, v), where they are known already; else those
        that are proved of g

    Raises
    ------
    NoClosedForm : too many variables. BudgetExceeded : before the first result.
    """
    given, hidden, _ = spaces
    turns = turns or [as_array(s.matrix) for s in without_sign(symmetries(g, hidden))]
    sampled, seed = Sampled(g, silent, kernels, spaces, turns), count()
    if not given:
        return sampled.second(())
    if len(given) == 1:
        signs = mirror_signs(beyond_known(g, hidden) if kernels is None and not silent else g, given, hidden)

        def at(u: float) -> LabelCouplings:
            once = sampled.second((u,), _ONE, next(seed))
            return once if signs is None else even_part(once, signs)

        return over_known(at, signs is not None)[0]
    return _over_lattices(lambda u: sampled.second(u, _SEVERAL, next(seed)), len(given))


def _over_lattices(at: Callable[[Sequence[float]], LabelCouplings], r: int) -> LabelCouplings:
    """The mean over u of several coordinates; lattices that are shifted independently tell how far it is off."""
    nodes = 64  # of each lattice, for several u
    light = 1e-3  # of the mean weight: a u below is left out, as all of them together weigh no more

    def parts(shift: np.ndarray) -> Iterator[tuple[float, LabelCouplings]]:
        for z, w in points(r, nodes, shift):
            kept = w > light/nodes
            for u, weight in zip(z.T[kept].tolist(), w[kept].tolist(), strict=True):
                checkpoint("averaging over what is known")
                yield weight, at(u)

    lattices = 4  # for several u: their spread gives the error
    averages = [mix_couplings(parts(shift)) for shift in np.random.default_rng(0).random((lattices, r))]
    mean = mix_couplings((1/lattices, a) for a in averages)
    spread = [np.std([a.couplings.get(k, 0.0) for a in averages], ddof=1) for k in mean.couplings]
    sure = 4.0  # standard errors that the stated error covers
    return replace(mean, error=sure*max(spread, default=0.0)/np.sqrt(lattices) + mean.error - mean.scatter, scatter=0.0)


def invariant_forms(index: Sequence[Index], turns: Sequence[np.ndarray]) -> np.ndarray:
    """Rows over the entries (i, j), i <= j, of an orthogonal basis of the symmetric matrices T = R T R^T for every turn R.

    Entries that are not in `index` are zero.

    >>> invariant_forms([(0, 0), (0, 1), (1, 1)], [np.array([[0.0, -1.0], [1.0, 0.0]])]).round(3).tolist()
    [[1.0, 0.0, 1.0]]
    """
    if not turns or not index:
        return np.eye(len(index))
    units = np.zeros((len(index), *turns[0].shape))
    for n, (i, j) in enumerate(index):
        units[n, i, j] = units[n, j, i] = 1.0 if i == j else np.sqrt(0.5)
    moved = np.concatenate([(R @ units @ R.T - units).reshape(len(index), -1).T for R in turns])
    _, sizes, rows = np.linalg.svd(moved)
    null = rows[np.count_nonzero(sizes > 1e-9):]  # the turns are exact to rounding
    null[abs(null) < 1e-9] = 0.0
    forms = null*np.array([1.0 if i == j else np.sqrt(0.5) for i, j in index])
    return np.array([row/row[np.argmax(abs(row))] for row in forms]).reshape(-1, len(index)) + 0.0  # 0 without a sign


class Sampled:
    """The couplings at each u of g(u, v)."""

    def __init__(self, g: Expr, silent: Sequence[Symbol], kernels: Kernels | None, spaces: Spaces,
                 turns: Sequence[np.ndarray] = ()) -> None:
        given, hidden, drop = spaces
        used = [x for x in (*hidden, *silent) if g.has(x)]
        if len(used) > MOST:
            raise NoClosedForm("alpha_c", f"a label of {len(used)} variables is not sampled", "Write it with fewer variables")
        spots = {list(hidden).index(x): n for n, x in enumerate(used) if x in hidden}
        self.indices = [a for a in indices(len(hidden)) if len(a) == 2 and set(a) <= set(spots) and a not in drop]
        self.pairs = [(spots[i], spots[j]) for i, j in self.indices]
        forms = invariant_forms(self.indices, turns)
        # The entries of G_u that the points must tell: those of an orthogonal basis of the tensors that the turns leave alone.
        self.forms = forms if len(forms) else np.eye(len(self.indices))
        self.g, self.r, self.kernels = array_function(g, *given, *used), len(used), kernels

    def second(self, u: Sequence[float], plan: Plan | None = None, seed: int = 0) -> LabelCouplings:
        """The couplings at u; the points of different seeds are independent."""
        found: list[LabelCouplings] = []
        plan = plan or Plan()
        least = 8  # cells in a panel; a fit by a cubic takes four
        enough = 1e-7  # an error at which no more points are taken: seven digits from points are more than is needed
        grown = float(abs(self.forms).sum(axis=0).max(initial=0.0))**2  # an entry of G may be a sum of forms
        try:
            label = Label(lambda *z: self.g(*u, *z), self.r, (self.pairs, self.duals), (plan.sample, seed))
            for size in plan.sizes:
                cells = max(least, 1 << (plan.cells - len(label.ends).bit_length() + 1))
                last = projections(label.samples(size, cells, self.kernels))
                found.append(LabelCouplings(self._couplings(last), last.error*grown, last.scatter*grown))
                if last.error < enough:
                    break
                if self.kernels is None:
                    label.refine(last.leaves, cells)
        except BudgetExceeded:
            if not found:
                raise
        return most_precise(found[-2:], times=1.0)  # each pass resolves more than the earlier ones, whatever errors these claim

    @property
    def duals(self) -> np.ndarray:
        """Shape (forms, pairs): <t, G>/<t, t> of each form t, from the entries of G."""
        weights = np.array([1.0 if i == j else 2.0 for i, j in self.pairs])
        return self.forms*weights/np.sum(weights*self.forms**2, axis=1)[:, None]

    def _couplings(self, found: FittedCouplings) -> Couplings:
        couplings = self.forms.T @ found.couplings @ self.forms
        return {(a, b): float(couplings[n, m]) for n, a in enumerate(self.indices)
                for m, b in enumerate(self.indices) if m >= n}


class Label:
    """Panels of the label, and points of R^r sorted into their cells.

    g : the label on arrays;  weights : pairs i, j and the weights (forms, pairs) of z_i z_j - delta_ij in what is averaged
    size : log2 of the points that make the first panels, a seed
    """

    def __init__(self, g: Callable[..., np.ndarray], r: int, weights: tuple[Sequence[tuple[int, int]], np.ndarray],
                 size: tuple[int, int]) -> None:
        self.g, self.r = g, r
        pairs, forms = weights
        self.forms = [[(c, i, j) for c, (i, j) in zip(row, pairs, strict=True) if c] for row in forms.tolist()]
        self.shifts = np.random.default_rng(size[1]).random((_SHIFTS + 1, r))
        self.sample = np.sort(np.concatenate([self.values(z) for z, _ in points(r, 1 << size[0], self.shifts[-1])]))
        label, count = np.unique(self.sample, return_counts=True)
        least_count = 40  # points with the same label: of a continuous law two hardly coincide
        often = np.flatnonzero(count > least_count)
        most_atoms = 1000  # the most frequent ones; the rest have a mass of 1/1000 at most each
        atoms = label[often[np.argsort(-count[often])[:most_atoms]]]
        panels = 8  # to begin with
        ends = np.quantile(self.sample, np.arange(1, panels)/panels)
        # A panel of its own for each atom, without its neighbours however close: of relu(z1)^7 many are.
        self.ends = np.unique(np.concatenate([self.sample[[0, -1]], ends, atoms, np.nextafter(atoms, np.inf)]))
        if len(self.ends) == 1:
            self.ends = self.ends[0] + np.array([0.0, 1.0])

    def values(self, z: np.ndarray) -> np.ndarray:
        """The labels (n,) of points (r, n); what has none is one label of its own."""
        return np.nan_to_num(self.g(*z), nan=1e300, posinf=1e300, neginf=-1e300)

    def edges(self, count: int) -> np.ndarray:
        """The edges of `count` cells in each panel, equally filled, shape (panels*count + 1,)."""
        places = np.linspace(0, 1, count + 1)[:-1]
        cut = np.searchsorted(self.sample, self.ends)
        found = []
        for n in range(len(self.ends) - 1):
            inside = np.concatenate([self.ends[n:n + 1], self.sample[cut[n]:cut[n + 1]], self.ends[n + 1:n + 2]])
            found.append(np.interp(places*(len(inside) - 1), np.arange(len(inside)), inside))
        return np.append(np.concatenate(found), self.ends[-1])

    def samples(self, size: int, count: int, kernels: Kernels | None = None) -> Samples:
        """The masses and moments of 2^size points of each shift."""
        edges = self.edges(count)
        inner, cells = edges[1:-1], len(edges) - 1
        mass, moments = np.zeros((_SHIFTS, cells)), np.zeros((_SHIFTS, len(self.forms), cells))
        sums = np.zeros(cells)
        for n, shift in enumerate(self.shifts[:-1]):
            for z, w in points(self.r, 1 << size, shift):
                checkpoint("sampling the label")
                y = self.values(z)
                cell = np.searchsorted(inner, y, side="right")
                mass[n] += np.bincount(cell, w, cells)
                for m, form in enumerate(self.forms):
                    moments[n, m] += np.bincount(cell, w*sum(c*(z[i]*z[j] - (i == j)) for c, i, j in form), cells)
                if kernels is not None:
                    sums += np.bincount(cell, w*y, cells)
        if kernels is None:
            return Samples(mass.reshape(_SHIFTS, -1, count), moments.reshape(_SHIFTS, len(self.forms), -1, count))
        unseen = 1e-13  # the mass of a cell below which its moments are left out: rounding
        # In a cell the probabilities of the labels are those at its mean.
        mean = np.where(mass.sum(axis=0) > unseen, sums/np.maximum(mass.sum(axis=0), 1e-300), 0.0)
        p = np.array([np.broadcast_to(k, mean.shape) for k in kernels(mean)]).T
        return Samples((mass @ p)[:, :, None], (moments @ p)[:, :, :, None])

    def refine(self, leaves: np.ndarray, count: int) -> None:
        """The panels of the next pass: those of the last fit, `leaves` (k, 2): panel and cell."""
        edges = self.edges(count)
        self.ends = np.unique(np.append(edges[leaves[:, 0]*count + leaves[:, 1]], edges[-1]))
