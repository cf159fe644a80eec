r"""M <- alpha F(M) (1 + alpha F(M))^{-1}, F(M) = E[g_out g_out^T]: what Bayes-AMP learns of a Gaussian multi-index target.

y ~ P(.|z), z = W x, n = alpha d samples, d -> oo; M is the overlap of the estimate with W [Troiani et al. 2024].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import numpy as np
from sympy import Expr, Symbol

from hermitex import symbols
from hermitex.errors import BadInput, BudgetExceeded, NoClosedForm, NotConverged, NoValue, UnknownName
from hermitex.exponents.channels import Channel, NamedChannel
from hermitex.exponents.channels import channel as channel_of
from hermitex.exponents.directions.relevant import Relevant, relevant_directions
from hermitex.exponents.label import canonical_label as canonical
from hermitex.exponents.observed_law import ObservedLaw, observed_law
from hermitex.hints import Formula
from hermitex.solvers.solution import Solution
from hermitex.solvers.solve_limits import limit_time
from hermitex.symbolic.budget import budget as bounded
from hermitex.symbolic.series.coefficients import target as read_target
from hermitex.theories.curve import Curve
from hermitex.theories.overlaps.channel import Output
from hermitex.theories.overlaps.free_entropy import (
    Gain,
    continuous_mass,
    entropic,
    gain_of_labels,
    jumps,
    known_labels,
    label_entropy,
    polished_jump,
)
from hermitex.theories.overlaps.generalisation import Generalisation
from hermitex.theories.overlaps.label_structure import target_function
from hermitex.theories.overlaps.output_choice import output
from hermitex.theories.overlaps.overlap_space import FixedPoint, OverlapSpace, overlap_space
from hermitex.theories.overlaps.picture import OverlapCurve
from hermitex.theories.overlaps.state_evolution import StateEvolution, quadrature_error
from hermitex.theories.overlaps.transitions import Transitions, transitions
from hermitex.theories.theory import Theory

Array = np.ndarray
BRANCHES = ("uninformed", "informed")


class _Row(NamedTuple):
    """One alpha: the fixed point, its generalisation error, and how far the quadrature leaves each off."""

    point: FixedPoint
    error: float = float("nan")
    off: float = float("nan")
    doubt: float = 0.0


@dataclass(frozen=True, repr=False)
class MultiIndex(Theory):
    """State evolution of Bayes-AMP for y ~ P(.|z), z the standard normals that the target holds.

    Attributes
    ----------
    g : the target, an expression;  law : its channel;  branch : where `.solve` and `.curve` start by default
    """

    g: Expr
    law: NamedChannel | Channel
    branch: str = "uninformed"
    name = "bayes-amp"
    sources = ("troiani2024",)
    warm = False

    # -- structure ------------------------------------------------------------------------------------------------------
    @cached_property
    def reduced(self) -> Relevant:
        """The target over its relevant directions."""
        target = self.law.p if isinstance(self.law, Channel) else self.g
        return relevant_directions(target, symbols.normals(target))

    @property
    def label(self) -> tuple[Expr, NamedChannel | Channel]:
        """What the label tells of the relevant directions, and its channel: `output` and the algorithm see labels of this form.

        The canonical label, as thresholds see it: exp(z1 z2) is z1 z2. Not where it shows less of the symmetries.
        """
        return self._label_and_space[0]

    @property
    def space(self) -> OverlapSpace:
        """The overlaps that the symmetries leave, over the relevant directions."""
        return self._label_and_space[1]

    @cached_property
    def _label_and_space(self) -> tuple[tuple[Expr, NamedChannel | Channel], OverlapSpace]:
        plain, names = (self.reduced.inner, self._law), self.reduced.names
        space = overlap_space(*plain, names)
        if isinstance(self.law, Channel) or self.law.name == "random_sign":
            return plain, space
        found = canonical(self.reduced.inner, self.law, names)
        if found == plain or len((other := overlap_space(*found, names)).entries) > len(space.entries):
            return plain, space
        wide, wider = (_spread(f[0], names) for f in (plain, found))
        tame = 100.0  # times its median: a label that is seldom larger has no tail that matters
        return (found, other) if wider <= max(wide, tame) else (plain, space)  # z1/z2 is not better than its logarithm

    @property
    def _law(self) -> NamedChannel | Channel:
        law = self.law
        return Channel(self.reduced.inner, law.y, law.support, None) if isinstance(law, Channel) else law

    @cached_property
    def output(self) -> Output:
        """g_out and F(M) of the label."""
        return output(*self.label, self.reduced.names, self.space)

    @cached_property
    def evolution(self) -> StateEvolution:
        """The map and its fixed points."""
        return StateEvolution(self.output, self.space)

    @cached_property
    def generalisation(self) -> Generalisation | None:
        """The error of the Bayes estimate of the clean label; none for a channel P(y|z) without a target."""
        return None if isinstance(self.law, Channel) else Generalisation(self.reduced.inner, self.law, self.reduced.names)

    @cached_property
    def _basis(self) -> Array:
        return np.array(self.reduced.basis.tolist(), dtype=float)

    @property
    def order_parameters(self) -> tuple[str, ...]:
        """M11, M12, ...: the upper triangle, over the variables of the target in their order."""
        return tuple(f"M{i + 1}{j + 1}" for i, j in combinations_with_replacement(range(len(self.reduced.variables)), 2))

    errors = ("test_error",)  # the generalisation error

    def letters(self) -> dict[str, Any]:
        """alpha is the one number."""
        return {"alpha": self.REQUIRED}

    def complete(self, numbers: dict[str, Array]) -> dict[str, Array]:
        """alpha, checked."""
        if "alpha" not in numbers:
            raise NoValue("bayes-amp", "alpha", "2")
        alpha = numbers["alpha"]
        if not np.all((alpha > 0) & np.isfinite(alpha)):
            worst = alpha.ravel()[np.argmax(~((alpha > 0) & np.isfinite(alpha)).ravel())]
            raise BadInput(f"bayes-amp: alpha = {worst:g} is not a positive number")
        return numbers

    def described(self, fixed: Mapping[str, float]) -> dict[str, Any]:
        """target, channel, branch."""
        return {"target": str(self.g), "channel": str(self.law if isinstance(self.law, NamedChannel) else self.law.name),
                "branch": self.branch, **{k: v for k, v in fixed.items() if k != "alpha"}}

    def overlaps(self, M: Array) -> dict[str, float]:
        """The order parameters of an overlap over the relevant directions."""
        full = self._basis.T @ M @ self._basis
        pairs = combinations_with_replacement(range(len(full)), 2)
        return {name: float(full[i, j]) for name, (i, j) in zip(self.order_parameters, pairs, strict=True)}

    def inside(self, rows: Array) -> Array:
        """Directions over the variables of the target, (k, variables), as directions over the relevant ones, (k, r)."""
        return np.asarray(rows @ self._basis.T)

    # -- solving --------------------------------------------------------------------------------------------------------
    def run(self, numbers: Mapping[str, Array], *, start: Any = None, raise_on_failure: bool = True, partial: bool = False,
            **options: Any) -> Solution:
        """The fixed points at the alphas; `partial`: also none of them, where the time is up."""
        informed = _informed(self.branch if start is None else start)
        alpha = np.asarray(numbers["alpha"], dtype=float)
        rows: list[_Row] = []
        for a in alpha.ravel():
            try:
                rows.append(self._row(self.evolution.solve(float(a), informed), float(a)))
            except BudgetExceeded as ran_out:
                if not rows and not partial:
                    raise
                none = FixedPoint(np.zeros(self.evolution.n), float("nan"), False, reason=str(ran_out))
                rows += [_Row(none)]*(alpha.size - len(rows))
                break
        found = self._solution(rows, alpha.shape, self.branch if start is None else start)
        return found.require() if raise_on_failure else found

    def _row(self, point: FixedPoint, alpha: float) -> _Row:
        """A fixed point with its generalisation error, and how far the quadrature leaves it off."""
        if not point.converged:
            return _Row(point)
        M, of = self.space.matrix(point.x), self.generalisation
        error, doubt = (float("nan"), 0.0) if of is None else (of(M), of.doubt(M))
        return _Row(point, error, quadrature_error(self.evolution, point.x, alpha), doubt)

    def _solution(self, rows: list[_Row], shape: tuple[int, ...], branch: str) -> Solution:
        def shaped(values: list[Any], kind: Any = float) -> Any:
            out = np.array(values, dtype=kind).reshape(shape)
            return out if shape else out.item()

        points = [row.point for row in rows]
        overlaps = [self.overlaps(self.space.matrix(p.x)) for p in points]
        value = {k: shaped([o[k] for o in overlaps]) for k in overlaps[0]} | {"test_error": shaped([row.error for row in rows])}
        worst = max((row.off for row in rows if not np.isnan(row.off)), default=float("nan"))
        doubt = max((row.doubt for row in rows), default=0.0)
        asked = 1e-6  # of the overlaps: what is further off by its quadrature says so
        notes = tuple(f"quadrature: the {what} known to {off:.1e} only, {asked:.0e} is usual"
                      for what, off in (("overlaps are", worst), ("test error is", doubt)) if off > asked)
        return Solution(value, residual=shaped([p.residual for p in points]), converged=shaped([p.converged for p in points], bool),
                        iterations=shaped([p.iterations for p in points], int), error=shaped([row.off for row in rows]),
                        method="state evolution", branch=branch, reason=shaped([p.reason for p in points], object),
                        unknowns=self.order_parameters, notes=notes, origin={"quadrature_error": worst})

    def solve(self, *, start: Any = None, raise_on_failure: bool = True, tolerance: float = 1e-9, budget: float | None = None,
              **numbers: Any) -> Solution:
        """The fixed point at alpha (arrays broadcast) from start="uninformed" (M = eps 1) or "informed" (M near 1).

        `budget` CPU seconds: what is not solved by then is not converged, and its reason says so; where the map itself is not made
        by then, BudgetExceeded.
        """
        with limit_time(budget), bounded(budget):
            found = self.run(self.complete(self.given(numbers)), start=start, raise_on_failure=False, partial=budget is not None)
        if raise_on_failure and not np.all(found.converged):
            raise NotConverged(found, f"bayes-amp: {next(r for r in np.ravel(np.asarray(found.reason, dtype=object)) if r)}")
        return found

    def curve(self, alpha: Any = None, *, branch: str | None = None, start: Any = None, tolerance: float = 1e-9, title: str = "",
              **numbers: Any) -> Curve:
        """Overlaps and test error along alpha on one branch, "uninformed" or "informed"."""
        branch = next(b for b in (branch, start, self.branch) if b is not None)
        _informed(branch)
        made = self if branch == self.branch else replace(self, branch=branch)
        if made is not self and "evolution" in self.__dict__:
            made.__dict__.update({k: v for k, v in self.__dict__.items() if k not in ("g", "law", "branch")})  # what is integrated
        found = super(MultiIndex, made).curve(alpha, start=None, tolerance=tolerance, title=title, **numbers)
        return replace(OverlapCurve.of(found, made), title=title or self._label + ("" if branch == "uninformed" else f", {branch}"))

    @property
    def _label(self) -> str:
        name = str(self.law) if isinstance(self.law, NamedChannel) else self.law.name
        return f"{self.g}" + ("" if name == "deterministic" else f", {name}")

    def transitions(self) -> Transitions:
        """Weak recovery, spinodals, the later transitions of the overlaps, and `["alpha_IT"]` -> Transitions.

        Where M = 0 stays stable the informed branch begins at its turning point, given for overlaps that are equal by symmetry.
        """
        found = transitions(self)
        if np.isfinite(found.weak_recovery) or self.evolution.n > 1:
            return found
        turns = self.evolution.line(np.zeros(1), 0).spinodals()
        return replace(found, spinodals=tuple((alpha, q, self.order_parameters[0]) for alpha, q in turns))

    def optimal_jump(self) -> float | None:
        """alpha_IT, where the overlap of the Bayes-optimal estimator jumps, the first of several; None where it does not.

        The largest value of f changes its place there: the state evolution is of first order. Raises NoClosedForm for several
        overlaps that are not equal by symmetry, where the informed branch is not one curve.
        """
        evolution = self.evolution
        if evolution.n > 1:
            raise NoClosedForm("alpha_IT", "the overlaps are not equal by symmetry", "Compare .free_energy(alpha=) at several "
                               "alpha: its branch says which is the larger")
        recovered = self.output.r/continuous_mass(self.observed) if evolution.can_be_one(0) else np.inf
        line = evolution.line(np.zeros(1), 0)
        found = jumps(line, recovered)
        r = self.output.r
        return polished_jump(line, found[0], lambda q: self._gain(q*np.eye(r)).value, r) if found else None

    # -- free energy ----------------------------------------------------------------------------------------------------
    @cached_property
    def observed(self) -> ObservedLaw:
        """The law of the label y itself, noise included."""
        return observed_law(self.reduced.inner, self._law, self.reduced.names)

    def free_energy(self, *, alpha: Any, budget: float | None = None) -> Solution:
        r"""The Bayes free entropy Phi = lim E log Z(Y|X)/d and the information I(W; Y|X)/d at alpha -> Solution.

        Phi = max_M {(tr M + log det(1 - M))/2 + alpha Psi(M)}, Psi(M) = E log Z_out(y, omega), over the fixed points of both
        branches; I/d = alpha E log P(y|z) - Phi, in nats. The free energy is -Phi.

        Parameters
        ----------
        alpha : n/d; arrays broadcast
        budget : CPU seconds, after which BudgetExceeded is raised

        Returns
        -------
        Solution : free_entropy, information, gain = Phi - alpha E log P(y) (the same under a one-to-one map of the label), and
        the overlaps M11, ... of the maximum, those of the Bayes-optimal estimator. `branch` is that of the maximum: AMP does not
        reach the branch "informed". `error` is that of the free entropy.

        free_entropy is for a density of y with respect to dy where labels have one, to counting where they have a mass.
        information is inf for a label with a density and no noise, and so are free_entropy and gain where M = 1 is its maximum;
        nan for a law P(y|z) of three directions or more, and all but the gain are nan where the law of the label is not found.

        Guarantee: the larger f of the two branches; a maximum on neither of them, or an M without the symmetries of the label,
        is not looked for.

        Examples
        --------
        >>> found = multi_index("sign(z)").free_energy(alpha=1)
        >>> round(found["information"], 9), round(found["M11"], 9)
        (0.596441256, 0.486263637)
        """
        numbers = self.complete(self.given({"alpha": alpha}))
        with limit_time(budget), bounded(budget):
            line = np.asarray(numbers["alpha"], dtype=float)
            rows = [self._largest(float(a)) for a in line.ravel()]
        value = {n: np.array([row[n] for row in rows]).reshape(line.shape) for n in rows[0]}
        value = value if line.shape else {n: v.item() for n, v in value.items()}
        error, branch = value.pop("error"), value.pop("branch")
        still, done = (np.zeros(line.shape), np.full(line.shape, True)) if line.shape else (0.0, True)
        unknown = ("the law of the label is not found: only the gain is known",) if np.isnan(self._label_entropies[0]) else ()
        return Solution(value, residual=still, converged=done, error=error, method="state evolution", branch=branch,
                        unknowns=tuple(value), notes=unknown)

    def _largest(self, alpha: float) -> dict[str, Any]:
        """Phi, I/d and the overlaps at one alpha, from the branch with the larger f."""
        start, end = self._label_entropies
        best: dict[str, Any] = {}
        for branch in BRANCHES:
            point = self.evolution.solve(alpha, branch == "informed")
            if not point.converged:
                raise NotConverged(self._solution([_Row(point)], (), branch), f"bayes-amp: {branch} branch: {point.reason}")
            M = self.space.matrix(point.x)
            f = alpha*(found := self._gain(M)).value + entropic(M) if np.linalg.eigvalsh(M)[-1] < 1 else np.inf
            if best and not f > best["gain"] + 1e-12:
                continue
            information = np.inf if end == np.inf else alpha*(end - start) - f
            best = {"free_entropy": alpha*start + f, "information": information, "gain": f, **self.overlaps(M), "branch": branch,
                    "error": 0.0 if f == np.inf else alpha*found.error}
        return best

    def _gain(self, M: Array) -> Gain:
        """Psi(M) - Psi(0): finer nodes where they cost little, else the error by other nodes at M, where F is largest."""
        evolution, output = self.evolution, self.output
        tolerance = 10.0**-(output.digits + 2)
        if output.r == 1 or output.quick:
            finer = 0.7  # twelve digits where the usual nodes have nine
            return gain_of_labels(lambda X: evolution.F_within(X, finer), M, tolerance)
        found, other = gain_of_labels(evolution.F_within, M, tolerance), output.beside[0]
        off = float(np.sum((evolution.F_within(M, other) - evolution.F_within(M))*M))/2
        return found._replace(error=found.error + output.doubt*abs(off))

    @cached_property
    def _label_entropies(self) -> tuple[float, float]:
        """(E log P(y), E log P(y|z)); nan where the law of the label is not found."""
        level = float(self._law.parameter or 0) if isinstance(self._law, NamedChannel) else 0.0
        try:
            return label_entropy(self.observed), known_labels(self._law.name, level, self.observed, self.output)
        except NoClosedForm:
            return np.nan, np.nan

    def latex(self) -> str:
        """The state evolution."""
        return (r"\begin{align}" "\n" r"V &= 1 - M, \quad \omega \sim N(0, M),\\" "\n"
                r"g_{\mathrm{out}}(y, \omega) &= V^{-1}\left(E[z|y, \omega] - \omega\right),\\" "\n"
                r"\hat M &= \alpha\, E[g_{\mathrm{out}} g_{\mathrm{out}}^\top], \quad M = \hat M (1 + \hat M)^{-1}" "\n"
                r"\end{align}")

    def _summary(self) -> str:
        return f"{self.g}; {self.law if isinstance(self.law, NamedChannel) else self.law.name}; {', '.join(self.order_parameters)}"

    _html = Theory._with_formula


def _spread(g: Expr, names: Sequence[Symbol]) -> float:
    """How many times its median |g| is at a place in a thousand: from there on a quadrature over labels loses them."""
    with np.errstate(all="ignore"):
        size = np.abs(target_function(g, names)(list(np.random.default_rng(0).standard_normal((len(names), 4000)))))
    return float(np.quantile(size, 0.999)/max(np.median(size), 1e-300))


def _informed(start: Any) -> bool:
    if not isinstance(start, str) or start not in BRANCHES:
        given = repr(start) if isinstance(start, str | int | float) else f"of the type {type(start).__name__}"
        raise BadInput(f"bayes-amp: start is {' or '.join(BRANCHES)}, not {given}")
    return bool(start == "informed")


def multi_index(g: Formula, channel: str | Channel | None = None, *, branch: str = "uninformed") -> MultiIndex:
    r"""State evolution of Bayes-AMP for a target g(z1, ..., zr), r <= 3, and its channel.

    V = 1 - M, omega ~ N(0, M), z ~ N(omega, V), y ~ P(.|z); g_out = V^{-1}(E[z|y, omega] - omega);
    Mhat = alpha E[g_out g_out^T]; M <- Mhat (1 + Mhat)^{-1}.

    Parameters
    ----------
    g : text or expression in z or z1, z2, z3
    channel : a channel's name ("gaussian:1/4", noise of variance 1/4; "flip:1/10", ...) or `Channel`; default y = g(z)
    branch : "uninformed" (from M = eps 1) or "informed" (from M near 1)

    Returns
    -------
    Theory : ``.solve(alpha=, start=)`` -> Solution, ``.curve(alpha=[...], branch=)`` -> Curve, ``.transitions()``,
    ``.free_energy(alpha=)`` -> free_entropy, information.
    Order parameters M11, M12, ...: the upper triangle of M over the variables of g, each of order 1, M = 1 for perfect recovery.
    test_error: for labels of +-1 the probability of error of the Bayes classifier, else E(g - E[g|omega])^2, of the clean label.

    Free choices: overlaps are those of the symmetric start M = eps 1 (a target that cannot tell z1 from z2 has M11 = M22); an
    overlap that the map drives to 1 at a finite alpha (a smooth label without noise) is reported as 1. The `error` of a Solution is
    how far its overlaps may be off by the quadrature of F, from a second grid; above 1e-6 a note says so. A smooth label of several
    variables without noise is read through bins, which leaves 1e-6 to 1e-4 for two and 1e-5 to 1e-3 for three.

    Raises
    ------
    BadInput : more than three directions, a constant target. NoClosedForm : a label that is not integrated.

    Guarantee
    ---------
    `.solve` and `.curve` return a solution of the equations of the sources, with its error. This is the limit of the sources;
    accuracy at finite dimension is not promised. Transitions have an error. See docs/promise.md.

    References: Troiani et al. (2024).

    Examples
    --------
    >>> theory = multi_index("sign(z1*z2)")
    >>> round(theory.solve(alpha=3.25)["M11"], 8)
    0.36108042
    """
    if not isinstance(branch, str) or branch not in BRANCHES:
        raise UnknownName(str(branch)[:40], BRANCHES, "branch")
    target, law = target_and_channel("bayes-amp", g, channel)
    made = _made(target, law, branch)
    r = made.reduced.dimension
    if not r:
        raise BadInput(f"bayes-amp: {target} does not depend on z; there is nothing to learn")
    most = 3  # directions: a quadrature over the fields and the hidden variables of four has eight axes
    if r > most:
        raise BadInput(f"bayes-amp: the target depends on {r} directions; the state evolution is solved for at most {most}")
    return made


def target_and_channel(name: str, g: Any, channel: Any) -> tuple[Expr, NamedChannel | Channel]:
    """A target over z or z1, z2, ... and its channel, which fit; `name` is the theory's, for its words."""
    law = channel_of(channel)
    target = read_target(g)[0] if not isinstance(law, Channel) or g is not None else law.p
    symbols.one_naming(symbols.normals(target))
    known = {*symbols.normals(target), *((law.y,) if isinstance(law, Channel) else ())}
    if strangers := sorted(target.free_symbols - known, key=str):
        raise BadInput(f"{name}: {strangers[0]} in the target has no value; put a number in (the variables are z or z1, z2, z3)")
    if isinstance(law, NamedChannel):
        law.fits(target)
    return target, law


@lru_cache(maxsize=32)
def _made(g: Expr, law: NamedChannel | Channel, branch: str) -> MultiIndex:
    """One object for one target, so that what is integrated once is kept."""
    return MultiIndex(g, law, branch)
