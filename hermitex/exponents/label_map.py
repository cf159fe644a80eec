"""T*(y) = 1 - E[z z^T|y]^-1: the label map of the spectral estimator with the largest overlap at every alpha = n/d.

The estimator is the top eigenvector of D = (1/n) sum_i T(y_i) x_i x_i^T, in one index. With m = E[z^2|y] it begins to find the
direction at 1/alpha_c = E[(m - 1)^2], the threshold of AMP where E[z|y] = 0, and its squared overlap R above solves
alpha (1 - R) E[(m - 1)^2/(1 + R (m - 1))] = 1. In several indices m is a matrix: where all m(y) commute each common eigenvector is
such a problem of its own; where the mean of (m - 1)^2/(1 + R (m - 1)) is a multiple of 1, R solves the equation with its trace.
Sources: Lu and Li (2017); Mondelli and Montanari (2018); Luo, Alghamdi and Lu (2019).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sympy import Expr, Matrix, MatrixBase, eye

from hermitex.errors import BadInput, BudgetExceeded, NoClosedForm
from hermitex.exponents.channels import Channel, NamedChannel, channel
from hermitex.exponents.directions.direction_text import directions_words, short_rows
from hermitex.exponents.directions.relevant import along_one_direction, relevant_directions
from hermitex.exponents.label import visible_target
from hermitex.exponents.label_formula import Y, optimal_map, second_moment
from hermitex.exponents.label_table import LabelTable, tabulated_moments
from hermitex.exponents.labels.almost_everywhere import almost_everywhere
from hermitex.exponents.labels.sign_forms import without_constants
from hermitex.exponents.laws.density import array_function
from hermitex.exponents.laws.linearised import largest, of_masses
from hermitex.exponents.laws.value import as_array
from hermitex.exponents.observed_law import ObservedLaw, observed_law
from hermitex.show.display import Shown, latex
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.deadline import attempt
from hermitex.symbolic.parsing import to_text
from hermitex.symbols import normal

if TYPE_CHECKING:
    from hermitex.hints import Axes

_EQUAL = 1e-7  # relative: matrices of double precision that are equal but for the quadrature over labels


@dataclass(frozen=True, repr=False)
class LabelMap(Shown):
    """T*(y) = 1 - E[z z^T|y]^-1 of a target and its channel, as a formula, a function of arrays, a picture and a file.

    Attributes
    ----------
    target, channel, variables : what it was asked for; y is the label that is observed, noise included
    formula : T* as an expression of the symbol y, over one variable; a Matrix over several; None where no formula is known
    second_moment : E[z z^T|y] in the same form
    alpha_c : where the spectral estimator begins to find a direction, inf where T* is 0
    directions : rows over `variables`: the common eigenvectors of all T*(y), or a basis if their overlaps agree; empty if neither
    thresholds : where each of them begins to be found, shape (directions,)
    error : of the table that the function reads, relative to 1 + |E[z z^T|y]|
    notes : what else its reader should know

    Guarantee: the formula equals E[z z^T|y] to nine digits at twenty labels. The function is the table, to `error`; the labels
    beyond it, with a probability of 1e-12, have the value at its end.

    >>> from hermitex.face.exponents_with_stages import exponents
    >>> found = exponents("abs(z)").label_map()
    >>> found.formula, round(float(found(2.0)), 12), round(found.alpha_c, 9)
    (1 - 1/y**2, 0.75, 0.5)
    >>> float(found.squared_overlap(1).round(9))
    0.230697044
    """

    target: Expr
    channel: str
    variables: tuple[str, ...]
    formula: Any
    second_moment: Any
    alpha_c: float
    directions: np.ndarray
    thresholds: np.ndarray
    error: float
    notes: tuple[str, ...] = ()
    amp: str = ""  # the thresholds of Bayes-AMP, stage by stage, in words
    _: KW_ONLY
    table: LabelTable = field(repr=False)
    basis: np.ndarray = field(repr=False)  # the relevant directions, rows
    law: ObservedLaw = field(repr=False)
    shared: bool = field(repr=False, default=False)  # whether the directions share one overlap by symmetry

    def __call__(self, y: Any) -> np.ndarray:
        """T*(y) at labels of any shape; over several variables a matrix (r, r) at each label."""
        y = np.asarray(y, dtype=float)
        m = self.table((np.abs(y) if self.law.folded else y).ravel())
        inner = np.eye(m.shape[1]) - np.linalg.inv(m)
        found = np.einsum("ai,nab,bj->nij", self.basis, inner, self.basis)
        return found.reshape(y.shape if len(self.variables) == 1 else (*y.shape, *found.shape[1:]))

    def squared_overlap(self, alpha: Any) -> np.ndarray:
        """R(alpha), 0 below the threshold; over several variables with a last axis over `directions`.

        Raises
        ------
        NoClosedForm : the matrices T*(y) share no eigenvectors and no symmetry makes their directions equal.
        """
        alpha = np.asarray(alpha, dtype=float)
        if not (alpha > 0).all():
            raise BadInput(f"squared_overlap: alpha = n/d must be positive, got {alpha.min():g}")
        if not len(self.directions):
            raise NoClosedForm("the overlap of the spectral estimator", "the matrices T*(y) do not commute and no symmetry makes "
                               "their directions equal", "Take the threshold, .alpha_c, or AMP: hx.theories.multi_index")
        g, p = self._gains()
        found = np.array([[_overlap(a, column, p, self.shared) for column in g] for a in alpha.ravel()])
        return found[:, 0].reshape(alpha.shape) if len(self.variables) == 1 else found.reshape(*alpha.shape, -1)

    def _gains(self) -> tuple[np.ndarray, np.ndarray]:
        """m - 1 along each direction at the nodes of the law, (directions, n), or all of its eigenvalues where they are shared."""
        m = self.law.moments(self.law.masses, len(self.basis))
        inside = self.directions @ self.basis.T
        if self.shared:
            return np.array([np.linalg.eigvalsh(m).T - 1]*len(self.directions)), self.law.masses[0]
        return np.einsum("ai,nij,aj->an", inside, m, inside) - 1, self.law.masses[0]

    def plot(self, ax: Axes | None = None) -> Axes:
        """T* against the label: along its common eigenvectors, or its entries where it has none -> axes."""
        from hermitex.exponents.label_map_picture import draw

        return draw(self, ax)

    def export(self, path: str | os.PathLike[str]) -> str:
        """Write a module with the function `label_map(y)`, which needs NumPy alone, and return its path."""
        from hermitex.exponents.label_map_file import write

        return write(self, path)

    def to_dict(self) -> dict[str, Any]:
        """Its fields as JSON, formulas as text that `hermitex.parse` reads."""
        return {"target": to_text(self.target), "channel": self.channel, "variables": list(self.variables),
                "formula": _texts(self.formula), "second_moment": _texts(self.second_moment),
                "alpha_c": "inf" if np.isinf(self.alpha_c) else self.alpha_c, "directions": self.directions.tolist(),
                "thresholds": [float(t) if np.isfinite(t) else "inf" for t in self.thresholds], "error": self.error,
                "notes": list(self.notes)}

    def latex(self) -> str:
        """T* as a formula, or what it is."""
        if self.formula is None:
            return r"T^*(y) = 1 - \mathbb{E}[z z^\top \mid y]^{-1}"
        return rf"T^*(y) = {latex(self.formula)}"

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """The map, its threshold and where it begins to see each direction, as lines of text."""
        several = len(self.variables) > 1
        form = "a table, no formula is known" if self.formula is None else _words(self.formula)
        found = [f"T*(y) = 1 - {'E[z z^T|y]^-1' if several else '1/E[z^2|y]'}, y the observed label: {form}",
                 f"the spectral estimator with T* {_begins(self.alpha_c)}"]
        if several:
            if self.second_moment is not None and len(_words(self.second_moment)) < len(form):
                found.append(f"  E[z z^T|y] = {_words(self.second_moment)}")
            found += [f"  along {form}: {_begins(t)}" for form, t in zip(self.forms(), self.thresholds, strict=True)]
        return [*found, *([f"Bayes-AMP: alpha_c = {self.amp}"] if self.amp else []), *self.notes]

    def forms(self) -> list[str]:
        """The directions as linear forms of the variables."""
        return [directions_words(short_rows([row.tolist()]), self.variables) for row in self.directions]

    def _summary(self) -> str:
        shown = "a table" if self.formula is None else _words(self.formula)
        return f"T*(y) = {shown}; alpha_c = {self.alpha_c:.9g}"


def _begins(alpha: float) -> str:
    return "finds no direction at any alpha" if np.isinf(alpha) else f"finds a direction above alpha = {alpha:.9g}"


def label_map(g: Expr, law: NamedChannel | Channel, names: Sequence[str], amp: str = "") -> LabelMap:
    """The optimal label map of a target over these variables, drawn through a channel; `amp`: the thresholds of AMP in words.

    Raises
    ------
    NoClosedForm : the law of the label is not found. BadInput : the label does not depend on the variables.
    """
    variables = tuple(normal(n) for n in names)
    inside: Any = law.p if isinstance(law, Channel) else almost_everywhere(along_one_direction(without_constants(g)))
    seen = relevant_directions(inside, variables)
    if not seen.dimension:
        raise BadInput("label_map: the label does not depend on z, so that every label map is constant")
    plain, inner_law, inner = law, law, seen.inner
    if isinstance(law, Channel):
        inner_law = plain = Channel(seen.inner, law.y, law.support, None)
    found = observed_law(inner, inner_law, seen.names)
    table = tabulated_moments(found, seen.dimension)
    if found.folded:
        inner, plain = visible_target(inner, inner_law), channel()  # type: ignore[arg-type]
    seconds = 1.5  # of the processor for a formula: known ones take less than one
    try:
        with attempt(seconds):
            m = second_moment(inner, plain, seen.names, found.exact)
    except (NoClosedForm, BudgetExceeded):
        checkpoint("looking for a formula of the label map")
        m = None
    m = _verified(m, found, seen.dimension)
    directions, shared = _directions(found, seen.dimension)
    basis = as_array(seen.basis)
    couplings = of_masses(found.indices, found.masses)
    top = largest({k: v for k, v in couplings.items() if len(k[0]) == 2}, list(range(seen.dimension)))[0]
    name = str(law) if isinstance(law, NamedChannel) else law.name
    result = LabelMap(g, name, tuple(names), *_formulas(m, seen.basis, found.folded),
                      _inverse(top), _positive(directions @ basis), np.zeros(len(directions)), table.error, _notes(found), amp,
                      table=table, basis=basis, law=found, shared=shared)
    gains, p = result._gains()
    at = [_inverse(float(np.sum(p*np.mean(np.atleast_2d(row)**2, axis=0)))) for row in gains]
    object.__setattr__(result, "thresholds", np.array(at))
    return result


def _positive(rows: np.ndarray) -> np.ndarray:
    """The rows with their largest entry positive, the first of equal ones."""
    if not len(rows):
        return rows
    size = np.abs(rows)
    first = np.argmax(size > size.max(axis=1, keepdims=True) - _EQUAL, axis=1)
    return rows*np.sign(rows[np.arange(len(rows)), first])[:, None]


def _inverse(x: float) -> float:
    rounding = 1e-14  # of E[(m - 1)^2]: a smaller value is zero up to the quadrature
    return 1/x if x > rounding else np.inf


def _notes(found: ObservedLaw) -> tuple[str, ...]:
    first = [np.sum(nu[found.masses[0] > 0]**2/found.masses[0][found.masses[0] > 0])
             for a, nu in zip(found.indices, found.masses, strict=True) if len(a) == 1]
    told = ("E[z|y] is not 0: AMP, and the linear estimator sum_i E[z|y_i] x_i, find a direction at any alpha > 0; T* reads "
            "second moments only")
    lost = abs(float(found.masses[0].sum()) - 1)
    rough = 1e-9  # of the mass: below it thresholds and overlaps keep the nine digits that are shown
    words = (f"the mass of the law of the label is integrated to {lost:.0e}: the threshold and the overlap have no more digits",)
    return ((told,) if first and max(first) > _EQUAL else ()) + (words if lost > rough else ())


def _verified(m: Matrix | None, found: ObservedLaw, r: int) -> Matrix | None:
    """The formula, if it agrees with the law at labels spread over it."""
    if m is None:
        return None
    order = np.argsort(found.labels)
    cumulative = np.cumsum(found.masses[0][order])
    at = order[np.unique(np.searchsorted(cumulative, np.linspace(0.02, 0.98, 20)*cumulative[-1]))]
    wanted = found.moments(found.masses[:, at], r)
    shown = np.array([array_function(e, Y)(found.labels[at]) for e in m]).T.reshape(-1, r, r)
    close = 1e-9  # relative to 1 + |m|
    return m if np.all(np.abs(shown - wanted) <= close*(1 + np.abs(wanted))) else None


def _formulas(m: Matrix | None, basis: Matrix, folded: bool) -> tuple[Any, Any]:
    """(T*, m) over the variables, from m over the relevant directions."""
    if m is None:
        return None, None
    m = m.xreplace({Y: abs(Y)}) if folded else m
    one = eye(basis.rows)
    best, moment = basis.T*optimal_map(m)*basis, eye(basis.cols) + basis.T*(m - one)*basis
    return (best[0, 0], moment[0, 0]) if basis.cols == 1 else (best, moment)


def _directions(found: ObservedLaw, r: int) -> tuple[np.ndarray, bool]:
    """(rows, whether they share one overlap): the common eigenvectors of all m(y), else a basis if the means are multiples of 1."""
    p, g = found.masses[0], found.moments(found.masses, r) - np.eye(r)
    mixed = np.einsum("n,nij->ij", p*np.cos(np.arange(len(p))), g)
    turned = np.linalg.eigh((mixed + mixed.T)/2)[1].T
    inside = np.einsum("ai,nij,bj->nab", turned, g, turned)
    apart = np.einsum("n,nab->ab", p, inside**2)
    size = float(np.trace(apart))
    if np.sum(apart) - size <= _EQUAL**2*size or r == 1:
        order = np.argsort(-np.diag(apart), kind="stable")
        return turned[order], False
    values, vectors = np.linalg.eigh(g)
    for R in (0.0, 0.4, 0.8):
        mean = np.einsum("n,nia,na,nja->ij", p, vectors, values**2/(1 + R*values), vectors)
        if np.max(np.abs(mean - np.trace(mean)/r*np.eye(r))) > _EQUAL*np.trace(mean):
            return np.zeros((0, r)), False
    return np.eye(r), True


def _overlap(alpha: float, gain: np.ndarray, p: np.ndarray, shared: bool) -> float:
    """The root R of alpha (1 - R) E[g^2/(1 + R g)] = 1, the mean over eigenvalues too where they are shared; 0 below alpha_c."""
    from scipy.optimize import brentq

    def left(R: float) -> float:
        value = gain**2/(1 + R*gain)
        return float(alpha*(1 - R)*np.sum(p*(value.mean(axis=0) if shared else value)) - 1)

    last = 1 - 1e-12
    return 0.0 if left(0.0) <= 0 else float(last if left(last) > 0 else brentq(left, 0.0, last, xtol=1e-14))


def _texts(formula: Any) -> Any:
    if formula is None:
        return None
    return [[to_text(x) for x in row] for row in formula.tolist()] if isinstance(formula, MatrixBase) else to_text(formula)


def _words(formula: Any) -> str:
    text = str(_texts(formula)).replace("'", "")
    longest = 400  # characters that can still be read on a page
    return text if len(text) <= longest else "a formula of " + str(len(text)) + " characters, in .formula"


