r"""sum_D P_D t^D = sum_m ghat_m^2 (sum_q c_q^2 t^q)^m: what of a tree-like target is learned from n = d^kappa samples.

y = r^(-1/2) sum_{i <= r} g(h_i), h_i = d^(-epsilon1/2) a_i.P_k(W_i x): r groups of d^epsilon1 directions each, P_k = sum_q p_q He_q
applied to each. h is standardised, h = sum_q c_q h^(q) with c_q^2 = p_q^2 q!/sum; by the central limit theorem the h^(q) are
independent normals, so the weight of g at degree D in z = W x follows from the generating function; ghat_m = E[g He_m]/sqrt(m!).

Scenarios: I features are fixed, degree <= kappa in x is fitted; II the first layer is learned for kappa > kappa_1 = 1 + epsilon1,
then degree <= kappa/epsilon1 in z is fitted; III both layers, all is learned for kappa > max(kappa_1, k epsilon1). Between kappa_1
and k epsilon1 the second layer may find the parts of h of degree below kappa/epsilon1: III is at most II there, and II is given.
Status: III is the theorem of the source [treelike2025]; I and II, kappa_1's spectral reading and the weights are derived.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import factorial
from typing import Any, ClassVar

import numpy as np
from sympy import Add, Expr, Poly, Symbol

from hermitex.errors import BadInput, NoValue, UnknownName
from hermitex.hints import Axes, Formula
from hermitex.show.display import latex
from hermitex.show.plots import name_lines, new_axes
from hermitex.solvers.solution import Solution
from hermitex.symbolic.activations import Activation, activation
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbols import z
from hermitex.theories.claims import Claim, Claims, exact
from hermitex.theories.curve import Curve
from hermitex.theories.kernel_limit import KernelLimit, kernel_limit
from hermitex.theories.plateaus import Plateaus, steps_below

SCENARIOS = {"I": "no feature learning", "II": "first layer and readout", "III": "both layers"}
_T = Symbol("t", positive=True)


@dataclass(frozen=True, repr=False)
class Tree(Plateaus):
    """The error over kappa in three scenarios; `.thresholds`, `.weights`, `.curve(kappa=, scenario=)`, `.plot()`."""

    g: Activation
    P: tuple[tuple[int, Expr], ...]
    epsilon1: Expr
    scenario: str = "I"

    name: ClassVar[str] = "tree"
    sources: ClassVar[tuple[str, ...]] = ("treelike2025",)

    def of_experiment(self, theory: Any, measured: Any) -> str:
        """How far a limit is from a d that runs, and in scenarios II and III from which kappa on the directions are found there."""
        said = ("the theory is a limit: at a d that runs, groups have about ten directions, and errors differ from it by parts of "
                "order d^(-epsilon1)")
        if self.scenario == "I":
            return said
        d, groups, first = measured.parameters["dimension"], measured.parameters["groups"], float(self.thresholds["kappa_1"])
        half, most = (self.found_at(o, dimension=d, groups=groups) for o in (0.5, 0.9))
        return (f"{said}; no step is seen at kappa_1 = {first:.3g}: at d = {d} the directions have a squared overlap of 0.5 from "
                f"kappa = {half:.3g} and of 0.9 from {most:.3g} on, by Tree.overlap")

    def overlap(self, kappa: Any, *, dimension: float, groups: int = 1) -> Any:
        """1 - C d^(kappa_1 - kappa), or 0: the mean squared projection of the true directions on the found ones at a finite d.

        The matrix sum_mu y_mu (x_mu x_mu^T - 1)/n has the eigenvalue sqrt(2/r) c_2 E[g'] d^(-epsilon1/2) on the r d^epsilon1
        directions, and noise of size sqrt(Var y d/n): C = r Var y/(2 c_2^2 E[g']^2), by the formulas of spiked matrices. So the
        step at kappa_1 has a width of order 1/log d in kappa: 90 % of an overlap are reached log(10 C)/log d beyond kappa_1.
        Derived; as d -> oo, for a share of directions that vanishes.

        >>> theory = tree("tanh", P="2:1/2,3:1/6", epsilon1="1/2", scenario="II")
        >>> theory.overlap([1.5, 1.7, 2.0], dimension=64).round(3).tolist()
        [0.284, 0.688, 0.91]
        """
        if not (dimension > 1 and groups >= 1):
            raise BadInput(f"tree: dimension is above 1 and groups 1 or more, not {dimension} and {groups}")
        gap = float(self.thresholds["kappa_1"]) - np.asarray(kappa, dtype=float)
        return np.maximum(0.0, 1 - self._noise_over_signal*groups*float(dimension)**gap)[()]

    def found_at(self, overlap: float, *, dimension: float, groups: int = 1) -> float:
        """The kappa from which on the directions have this squared overlap at dimension d: kappa_1 + log(C/(1 - overlap))/log d.

        >>> theory = tree("tanh", P="2:1/2,3:1/6", epsilon1="1/2", scenario="II")
        >>> [round(theory.found_at(0.9, dimension=d), 2) for d in (64, 1024, 1e9)]
        [1.97, 1.78, 1.6]
        """
        if not 0 <= overlap < 1 or not (dimension > 1 and groups >= 1):
            raise BadInput("tree: overlap is at least 0 and below 1, dimension above 1 and groups 1 or more, "
                           f"not {overlap}, {dimension} and {groups}")
        excess = np.log(self._noise_over_signal*groups/(1 - overlap))/np.log(dimension)
        return float(self.thresholds["kappa_1"]) + float(excess)

    @property
    def _noise_over_signal(self) -> float:
        """C for one group: Var g/(2 c_2^2 E[g']^2), with E[g'] = E[g z]."""
        self._need_second_order()
        return float(self.tail(0))/(2*float(self.shares[2])*float(self._g.expansion(8).value(1))**2)

    @property
    def status(self) -> str:  # type: ignore[override]
        """Of the test error in this scenario."""
        how = "derived; thresholds of treelike2025, weights by the CLT"
        if self.scenario == "III":
            first, second = self.thresholds.values()
            before = "between kappa_1 and kappa_2 at most that of II, which is given" if first < second else "below it that of I"
            how = f"theorem (treelike2025) that it vanishes beyond both thresholds; {before}, derived"
        return f"test_error, scenario {self.scenario} ({SCENARIOS[self.scenario]}): {how}"

    @property
    def degree(self) -> int:
        """k, the degree of P_k."""
        return max(q for q, _ in self.P)

    @property
    def shares(self) -> dict[int, Expr]:
        """c_q^2 = p_q^2 q!/sum_q p_q^2 q!: how much of the variance of h is of Hermite degree q."""
        parts = {q: p**2*factorial(q) for q, p in self.P}
        whole = Add(*parts.values())
        return {q: v/whole for q, v in parts.items()}

    @property
    def thresholds(self) -> Claims:
        """kappa_1 = 1 + epsilon1, where the first layer learns its directions, and kappa_2 = k epsilon1, where the second learns h.

        >>> found = tree("tanh", P={2: 1, 3: 1}, epsilon1="1/2").thresholds
        >>> found["kappa_1"], found["kappa_2"]
        (3/2, 3/2)
        """
        e = self.epsilon1
        return Claims(f"thresholds of the tree, k = {self.degree}, epsilon1 = {e}", {
            "kappa_1": Claim(1 + e, "theorem", "treelike2025", "first layer; a spectrum reads it as d^(-epsilon1/2) = sqrt(d/n)"),
            "kappa_2": Claim(self.degree*e, "theorem", "treelike2025", "second layer, k the degree of P_k")})

    # -- weights -----------------------------------------------------------------------------------------------------------
    @cached_property
    def _g(self) -> KernelLimit:
        return kernel_limit(self.g.expr)

    def _powers(self, m: int) -> Poly:
        """(sum_q c_q^2 t^q)^m."""
        return Poly(Add(*(c*_T**q for q, c in self.shares.items())), _T)**m

    def weight(self, degree: int) -> Expr:
        """P_D, exactly: the coefficient of t^D."""
        least = min(self.shares)
        return Add(*(self._g.weight(m)*self._powers(m).coeff_monomial(_T**degree) for m in range(degree//least + 1)))

    @property
    def weights(self) -> dict[int, Expr]:
        """{D: P_D} for D = 0, ..., 9, over the averages of g that have no closed form.

        >>> tree("z**2", P={2: 1, 3: 1}, epsilon1=0.5).weights[5]
        3/4
        """
        return {D: self.weight(D) for D in range(10)}

    def tail(self, degree: int) -> float:
        """sum_{D > degree} P_D = sum_{m > degree/q_min} ghat_m^2 + what the lower m have above this degree."""
        last = degree//min(self.shares)
        expansion = self._g.expansion(max(last, 8))
        found = self._g.tail(last)
        for m in range(last + 1):
            above = Add(*(c for (D,), c in self._powers(m).terms() if degree < D))
            if above != 0:
                found += float(expansion.value(m))**2*float(above)
        return found

    # -- scenarios ---------------------------------------------------------------------------------------------------------
    def reached(self, numbers: Mapping[str, float]) -> tuple[float, float]:
        """The degrees that are fitted just below kappa and from it on."""
        kappa, e = numbers["kappa"], float(self.epsilon1)
        fixed = steps_below(kappa)
        if self.scenario == "I":
            return fixed
        self._need_second_order()
        first, both = 1 + e, max(1 + e, float(self.degree*self.epsilon1))
        if self.scenario == "II":
            # The part that fixed features fit, degree <= kappa, remains fitted: epsilon1 <= 1.
            return _beyond(kappa, first, fixed, steps_below(kappa/e))
        return _beyond(kappa, both, replace(self, scenario="II").reached(numbers), (np.inf, np.inf))

    def _need_second_order(self) -> None:
        """The first layer learns its directions by what the target has of degree 2, He_2 of P_k through the linear part of g."""
        if 2 not in self.shares or self._g.weight(1) == 0:
            lacks = "P has no He_2" if 2 not in self.shares else "g has no linear part"
            raise BadInput(f"tree: scenarios II and III are known where the target shows its directions at order 2; here {lacks}")

    def curve(self, alpha: Any = None, *, scenario: str | None = None, title: str = "", **numbers: Any) -> Curve:
        """test_error and the fitted degree along kappa, in scenario "I", "II" or "III" (default: the theory's own)."""
        return super(Tree, self._in(scenario)).curve(alpha, title=title, **numbers)

    def titled(self, numbers: Mapping[str, Any]) -> str:
        """The scenario."""
        return f"scenario {self.scenario}"

    def solve(self, *, scenario: str | None = None, **numbers: Any) -> Solution:
        """The same at one kappa, or at an array of them."""
        return super(Tree, self._in(scenario)).solve(**numbers)

    def _in(self, scenario: str | None) -> Tree:
        if scenario is None or scenario == self.scenario:
            return self
        return replace(self, scenario=checked_scenario(scenario))

    def described(self, fixed: Mapping[str, float]) -> dict[str, Any]:
        """Target, P_k, epsilon1, scenario and status."""
        return {"target": self.g.name, "P": {str(q): str(p) for q, p in self.P}, "epsilon1": str(self.epsilon1), **fixed,
                "scenario": self.scenario, "status": self.status}

    def plot(self, ax: Axes | None = None, *, kappa: tuple[float, float] = (0.0, 4.0), points: int = 801,
             label: str | None = None) -> Axes:
        """The error over kappa in the three scenarios, the thresholds as dotted lines."""
        ax, line = new_axes(ax), np.linspace(*kappa, points)
        for scenario, words in SCENARIOS.items():
            ax = self.curve(kappa=line, scenario=scenario).plot(ax, label=f"{scenario}: {words}")
        names: dict[Any, str] = {}  # both thresholds may be one
        for name in ("kappa_1", "kappa_2"):
            names[self.thresholds[name]] = names.get(self.thresholds[name], "") + rf"\{name} = "
        for at, said in names.items():
            if kappa[0] < float(at) < kappa[1]:
                ax.axvline(float(at), color="0.6", linestyle=":", linewidth=1.2, zorder=0, label=f"${said}{at}$")
        ax.set_ylim(bottom=0)
        name_lines(ax, below=True)  # steps leave no room that is free of lines
        return ax

    def to_dict(self) -> dict[str, Any]:
        """Target, P_k, epsilon1, thresholds and weights; a weight without a closed form as None, and its value."""
        weights = [{"degree": D, "exact": None if w.has(Expectation) else str(w), "value": self.tail(D - 1) - self.tail(D) if D else
                    float(self._g.expansion(8).value(0))**2} for D, w in self.weights.items()]
        P = {str(q): str(p) for q, p in self.P}
        return {"theory": self.name, "g": self.g.name, "P": P, "epsilon1": str(self.epsilon1), "scenario": self.scenario,
                "thresholds": self.thresholds.to_dict(), "weights": weights, "sources": list(self.sources)}

    def latex(self) -> str:
        """The generating function of the weights."""
        inner = latex(Add(*(c*_T**q for q, c in self.shares.items())))
        return rf"\sum_D P_D t^D = \sum_m \hat g_m^2 \left({inner}\right)^m"

    _html = Plateaus._with_formula

    def _summary(self) -> str:
        P = " + ".join(f"{p}*He{q}" for q, p in self.P)
        return f"{self.g.name}, P = {P}, epsilon1 = {self.epsilon1}"


def _beyond(kappa: float, threshold: float, below: tuple[float, float], above: tuple[float, float]) -> tuple[float, float]:
    """The degrees of either side of a threshold; at it, the one before and the one after."""
    if abs(kappa - threshold) <= 1e-9*threshold:
        return below[0], above[1]
    return above if kappa > threshold else below


def checked_scenario(scenario: Any) -> str:
    """I, II or III."""
    if scenario not in SCENARIOS:
        raise UnknownName(str(scenario), SCENARIOS, "scenario")
    return str(scenario)


def tree(g: Formula, P: Mapping[int, str | float | Expr] | str | None = None, epsilon1: str | float | Expr | None = None,
          scenario: str = "I") -> Tree:
    r"""A target over groups of d^epsilon1 directions, y = r^(-1/2) sum_i g(h_i): which part is learned at n = d^kappa.

    sum_D P_D t^D = sum_m ghat_m^2 (sum_q c_q^2 t^q)^m; scenario I fits D <= kappa; II, beyond kappa_1 = 1 + epsilon1, D <=
    kappa/epsilon1; III all beyond max(kappa_1, kappa_2), kappa_2 = k epsilon1. III is a theorem [treelike2025], the rest derived.

    Parameters
    ----------
    g : function of one standardised h: a name, a text in z
    P : {q: coefficient of the monic He_q in P_k}, or a text "2:1/2, 3:1/6"; q >= 1
    epsilon1 : 0 < epsilon1 <= 1, groups of d^epsilon1 directions
    scenario : "I" (fixed features), "II" (first layer and readout) or "III" (both layers)

    Returns
    -------
    Tree : `.thresholds` (kappa_1, kappa_2), `.weights` {D: P_D}, `.curve(kappa=[...], scenario="II")`, `.solve(kappa=)`, `.plot()`;
    `.overlap(kappa, dimension=)` and `.found_at(overlap, dimension=)`: how sharp the step at kappa_1 is at a finite d.

    An experiment at d = 64 shows no step at kappa_1. The size is the reason, neither the theory nor the experiment: the found
    directions have the squared overlap 1 - C d^(kappa_1 - kappa) with the true ones, C of order 1 (`.overlap(kappa, dimension=)`).
    Independent simulations at d = 256 and 1024 have 0.757 and 0.822 at kappa = 1.7, where this formula gives 0.764 and 0.821
    (tanh, P = "2:1/2,3:1/6", epsilon1 = 1/2). Its step has a width of 1/log d: an overlap of 0.9 needs kappa = 1.97 at d = 64
    and 1.6 at d = 10^9 (`.found_at(0.9, dimension=)`).

    Raises
    ------
    BadInput : no P or epsilon1, a degree below 1, epsilon1 out of range, g constant or with free parameters; scenarios II and
        III where P has no He_2 or g no linear part: the first layer then learns nothing at kappa_1.

    Guarantee
    ---------
    `.solve` and `.curve` return a solution of the equations of the sources, with its error. This is the limit of the sources;
    accuracy at finite dimension is not promised. See docs/promise.md.

    References: treelike2025.

    Examples
    --------
    >>> theory = tree("tanh", P={2: 1, 3: 1}, epsilon1="1/2")
    >>> [float(theory.curve(kappa=[2.5], scenario=s).test_error[0].round(6)) for s in ("I", "II", "III")]
    [0.302575, 0.027415, 0.0]
    """
    made = activation(g)
    if extra := made.expr.free_symbols - {z}:
        raise BadInput(f"tree: g holds {', '.join(sorted(map(str, extra)))}; put numbers in")
    if z not in made.expr.free_symbols:
        raise BadInput("tree: the target is a constant; there is nothing to learn")
    if epsilon1 is None:
        raise NoValue("tree", "epsilon1", "1/2: groups of d^epsilon1 directions")
    e = exact("epsilon1", epsilon1)
    if not (e.is_number and e.is_real) or not 0 < float(e) <= 1:
        raise BadInput(f"tree: epsilon1 is a number above 0, at most 1, not {epsilon1}")
    return Tree(made, polynomial_of(P), e, checked_scenario(scenario))


def polynomial_of(P: Any) -> tuple[tuple[int, Expr], ...]:
    """{2: 1, 3: "1/6"} or "2:1, 3:1/6" as pairs (q, coefficient), the orders in order, zeros left out.

    >>> polynomial_of("3:1/6, 2:1")
    ((2, 1), (3, 1/6))
    """
    said = "tree: P is {order: coefficient of He}, for instance {2: 1, 3: 1} or \"2:1, 3:1/6\""
    if P is None:
        raise NoValue("tree", "P", "'2:1, 3:1/6'; P is {order: coefficient of He}")
    if isinstance(P, str):
        pairs = [(a.strip(), b) for a, _, b in (part.partition(":") for part in P.split(","))]
        P = dict(pairs)
        if len(P) < len(pairs):
            raise BadInput(f"{said}; each order once")
    if not isinstance(P, Mapping) or not P:
        raise BadInput(said)
    found = {}
    for q, p in P.items():
        if isinstance(q, bool) or not str(q).isdecimal() or not 1 <= int(q) <= 12 or (isinstance(p, str) and not p.strip()):
            raise BadInput(f"{said}; orders are 1 to 12")
        value = exact("P", p)
        if not value.is_number or not value.is_real:
            raise BadInput(f"{said}; coefficients are numbers")
        if value != 0:
            found[int(q)] = value
    if not found:
        raise BadInput(f"{said}, not all of them zero")
    return tuple(sorted(found.items()))
