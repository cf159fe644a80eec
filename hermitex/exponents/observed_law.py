"""nu_a(dy) = E[He_a(z) P(dy|z)], |a| <= 2: the law of the label that is observed, noise included, with the weights of E[z z^T|y].

Finitely many labels have exact masses where there are any. Counts and listed labels are sums over the law of g, a density is that
of g with one block more for the noise. A law P(y|z) of the user's own is integrated over a grid in z.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sympy import Dummy, Expr, S, Symbol

from hermitex.errors import NoClosedForm
from hermitex.exponents.channels import Channel, NamedChannel
from hermitex.exponents.label import visible_target
from hermitex.exponents.laws.block_laws import law_of
from hermitex.exponents.laws.channel_couplings import ChannelCouplings
from hermitex.exponents.laws.density import Index, Law, noise_law
from hermitex.exponents.laws.discrete import Atoms, exact_atoms, indices
from hermitex.exponents.laws.law_table import tabulated
from hermitex.exponents.laws.linearised import sample_law
from hermitex.exponents.laws.noisy import density_of, exact_mixture, noisy_label
from hermitex.exponents.laws.product_laws import product_law
from hermitex.exponents.laws.sum_laws import sum_law
from hermitex.symbolic.budget import unless_refused
from hermitex.symbolic.precise import evaluate

_ORDER = 23  # nodes of a panel, as those of the thresholds
_TWO_LABELS = {"flip": (1, -1), "sign": (1, -1), "bernoulli": (1, 0)}  # in the order of the probabilities of the channel


@dataclass(frozen=True)
class ObservedLaw:
    """The masses nu_a at single labels, and the density of the rest.

    Attributes
    ----------
    indices : the multi-indices a that may be non-zero, () first
    labels, masses : nodes of the whole law (n,) and the measures nu_a on them (indices, n), for averages over labels
    atoms : {label: nu_a} of the labels with a mass of their own, (indices,)
    law : the law that has a density; None where there is none
    exact : the masses as formulas, of finitely many labels
    folded : y shows |y| only: the law is that of |y|
    """

    indices: tuple[Index, ...]
    labels: np.ndarray
    masses: np.ndarray
    atoms: tuple[tuple[float, np.ndarray], ...]
    law: Law | None = None
    exact: Atoms | None = None
    folded: bool = False

    def moments(self, nu: np.ndarray, r: int) -> np.ndarray:
        """E[z z^T|y] from nu_a, shape (indices, n) -> (n, r, r)."""
        found = np.broadcast_to(np.eye(r), (nu.shape[1], r, r)).copy()
        for a, value in zip(self.indices, nu, strict=True):
            if len(a) == 2:
                found[:, a[0], a[1]] += value/nu[0]
                if a[0] != a[1]:
                    found[:, a[1], a[0]] += value/nu[0]
        return found


def observed_law(g: Expr, law: NamedChannel | Channel, variables: Sequence[Symbol]) -> ObservedLaw:
    """The law of the label of a target of these variables, which all enter it; a `Channel` does not use `g`.

    Raises
    ------
    NoClosedForm : the structure of the target is not seen, or too many variables enter a law P(y|z).
    """
    exact = _finitely_many(g, law, variables)
    if exact is not None:
        every = tuple(indices(len(variables)))
        nu = np.array([[float(evaluate(of.get(a, S.Zero), 20)) for _, of in exact] for a in every])
        return _discrete(every, np.array([float(evaluate(label, 20)) for label, _ in exact]), nu, exact)
    return _of_a_channel(law, variables) if isinstance(law, Channel) else _of_a_target(g, law, variables)


def _finitely_many(g: Expr, law: NamedChannel | Channel, variables: Sequence[Symbol]) -> Atoms | None:
    """The masses as formulas, by the values of the label."""
    if law.name == "deterministic":
        return exact_atoms(g, variables)
    values: Sequence[Any] | None = law.support if isinstance(law, Channel) and law.finite else _TWO_LABELS.get(law.name)
    found = None if values is None else exact_mixture(g, law, variables)
    return None if found is None or values is None else [(S(values[int(j)]), nu) for j, nu in found]


def _discrete(every: tuple[Index, ...], labels: np.ndarray, nu: np.ndarray, exact: Atoms | None = None) -> ObservedLaw:
    kept = nu[0] > 0
    labels, nu = labels[kept], nu[:, kept]
    return ObservedLaw(every, labels, nu, tuple(zip(labels.tolist(), nu.T, strict=True)), None, exact)


def _continuous(law: Law, *, folded: bool = False) -> ObservedLaw:
    labels, nu = sample_law(law, _ORDER)
    lost = 1e-6  # of the mass: more is a label that the nodes do not see
    if abs(nu[0].sum() - 1) > lost:
        raise NoClosedForm("the law of the label", f"its mass is {nu[0].sum():.6g} and not 1 at the nodes",
                           "Write it in another form")
    kept = nu[0] > 0
    return ObservedLaw(law.indices, labels[kept], nu[:, kept], law.atoms, law if law.continuous else None, folded=folded)


def _of_a_target(g: Expr, law: NamedChannel, variables: Sequence[Symbol]) -> ObservedLaw:
    clean, place = visible_target(g, law), {x: i for i, x in enumerate(variables)}
    if law.name in ("deterministic", "random_sign"):
        return _continuous(law_of(clean, place), folded=law.name == "random_sign")
    if law.name == "gaussian":
        return _continuous(sum_law(tabulated(law_of(clean, place)), noise_law(float(evaluate(law.parameter or S.Zero, 20))**0.5)))
    if law.name == "multiplicative":
        xi, k = Dummy("xi", real=True), len(variables)
        drawn = law_of(clean*xi, {**place, xi: k})
        rows = [n for n, a in enumerate(drawn.indices) if k not in a]
        return _continuous(Law(tuple(drawn.indices[n] for n in rows), lambda y: drawn.density(y)[rows], drawn.lo, drawn.hi,
                               drawn.knots, drawn.hints, tuple((p, v[rows]) for p, v in drawn.atoms), drawn.continuous,
                               drawn.power, drawn.plain))
    base = law_of(clean, place)
    y, nu = sample_law(base, _ORDER)
    kernels = noisy_label(clean, law)[2]
    if kernels is None:
        raise NoClosedForm("the law of the label", f"that of the channel {law} is not known", "Write it as a Channel P(y|z)")
    drawn_nu = np.array([nu @ k for k in kernels(y)]).T
    names = _TWO_LABELS.get(law.name) or range(drawn_nu.shape[1])
    return _discrete(base.indices, np.array(names, dtype=float), drawn_nu)


# -- a law of the user's own --------------------------------------------------------------------------------------------
def _of_a_channel(law: Channel, variables: Sequence[Symbol]) -> ObservedLaw:
    drawn = law.added or law.scaled
    if drawn is not None and (found := unless_refused(lambda: _by_noise(law, variables))) is not None:
        return found
    grid = ChannelCouplings(law, (), variables)
    if law.support == "real":
        return _continuous(_on_grid(grid))
    most_counts = 4000  # a table of their probabilities over 1,400 points is 45 MB
    labels = np.array([float(v) for v in law.support]) if law.finite else np.arange(float(most_counts))
    nu = grid.measures(labels)
    negligible = 1e-15  # of the whole mass: counts beyond the last that weighs more do not enter an average
    kept = slice(None) if law.finite else slice(int(np.flatnonzero(nu[0] > negligible)[-1]) + 1)
    return _discrete(tuple(grid.indices), labels[kept], nu[:, kept])


def _by_noise(law: Channel, variables: Sequence[Symbol]) -> ObservedLaw | None:
    drawn = law.added or law.scaled
    assert drawn is not None
    noise = density_of(drawn.f, drawn.s)
    if noise is None:
        return None
    base = tabulated(law_of(drawn.u, {x: i for i, x in enumerate(variables)}))
    return _continuous((sum_law if drawn is law.added else product_law)(base, noise))


def _on_grid(grid: ChannelCouplings) -> Law:
    """The density over the labels at which it is not below rounding."""
    reach = 4.0  # of t, y = sinh(pi/2 sinh t): to |y| = exp(42)
    t = np.linspace(-reach, reach, 641)
    y = np.sinh(np.pi/2*np.sinh(t))
    weight = grid.measures(y)[0]*np.cosh(t)*np.cosh(np.pi/2*np.sinh(t))
    light = 1e-17  # of the largest: below rounding of the sum
    inside = np.flatnonzero(weight > light*np.max(weight))
    ends = grid.fixed_knots((float(y[0]), float(y[-1])))
    first, last = float(y[max(inside[0] - 1, 0)]), float(y[min(inside[-1] + 1, len(y) - 1)])
    low, high = max([first, *(k for k in ends if k <= y[inside[0]])]), min([last, *(k for k in ends if k >= y[inside[-1]])])
    return Law(tuple(grid.indices), grid.measures, low, high, knots=ends, hints=tuple(y[inside[0]:inside[-1] + 1:20]))
