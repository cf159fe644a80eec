r"""cos = |s|/sqrt(s^2 + 1 + u^2 tau^2), s = u mu_l/(l-1)! |C_l[Z^(l-1)]|: the first layer after one giant step at n ~ d^l.

C_l = E[g He_l] is the first Hermite tensor of the target that is not zero, l >= 1, the information exponent; mu_l = E[sigma He_l].
A neuron of norm 1 moves by u d^((l-1)/2) times the gradient on n = samples d^l fresh examples with centred labels (a mean would
only stretch w). Its signal is in V_l, the span of the higher-order singular vectors of C_l, and depends on its start there,
Z = sqrt(d) P_V w ~ N(0, 1_r); noise adds tau^2 = (Var g + Delta) E sigma'^2/samples to its squared norm. cos is the norm of its
projection on V_l over its own norm. In one direction |C_l[Z^(l-1)]| = |mu*_l| |Z|^(l-1). Status: orders, rates and the span are
theorems [dandi2023giant]; the law of the cosine is derived here by the leading terms at large d and agrees with simulations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property, lru_cache
from math import factorial
from typing import Any, ClassVar

import numpy as np
from sympy import Abs, Add, DiracDelta, Expr, ImmutableMatrix, Rational, Symbol, sqrt

from hermitex.errors import BadInput
from hermitex.exponents.leap import leap
from hermitex.hints import Axes, Formula
from hermitex.show.plots import new_axes
from hermitex.solvers.solution import Solution
from hermitex.symbolic.activations import Activation, activation
from hermitex.symbolic.bounds.integrability import integrable
from hermitex.symbolic.gaussian import E
from hermitex.symbolic.hermite_tensors import SymmetricTensor, tensor
from hermitex.symbolic.series.coefficients import coefficient, target
from hermitex.symbolic.subspaces import Matrix, orthonormal
from hermitex.symbolic.text.plain_data import plain
from hermitex.symbols import Delta, normal, z
from hermitex.systems.system import System
from hermitex.theories.claims import Claim, Claims, exact
from hermitex.theories.polar import mean_root
from hermitex.theories.spike import require_numbers, require_square_integrable
from hermitex.theories.theory import Theory

u = Symbol("u", real=True)
NOISE, DIMENSION = Symbol("noise", nonnegative=True), Symbol("dimension", positive=True)  # 1/samples, d
COSINE = Symbol("cosine", nonnegative=True)


@dataclass(frozen=True, repr=False)
class GiantSolution(Solution):
    """A Solution that also holds what is exact: the order and the rows of V_l."""

    exact: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        return self.exact[name] if name in self.exact else super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        return name in self.exact or super().__contains__(name)

    def to_dict(self) -> dict[str, Any]:
        """The numbers, and what is exact as texts."""
        rows = self.exact["directions"].tolist()
        return {**super().to_dict(), "order": self.exact["order"], "directions": plain(rows)}


@dataclass(frozen=True, repr=False)
class GiantStep(Theory):
    """One giant step: `.order`, `.directions`, `.solve(u=, samples=)`, `.density(c)`, `.rates()`, `.curve(samples=[...], u=)`."""

    sigma: Activation
    g: Expr
    variables: tuple[Symbol, ...]
    order: int

    name: ClassVar[str] = "giant-step"
    axis: ClassVar[str] = "samples"
    ratio: ClassVar[str] = r"n/d^\ell"
    sources: ClassVar[tuple[str, ...]] = ("dandi2023giant",)
    status: ClassVar[str] = "cosine: derived (leading terms at large d); order and directions: theorem (dandi2023giant)"

    # -- exact -------------------------------------------------------------------------------------------------------------
    @cached_property
    def tensor(self) -> SymmetricTensor:
        """C_l, the first Hermite tensor of the target that is not zero."""
        return tensor(self.g, self.order, self.variables)

    @cached_property
    def directions(self) -> Matrix:
        """Rows that span V_l, exact, over the variables of the target.

        >>> giant_step("relu", "(z1 + z2)**2/2").directions
        Matrix([[1, 1]])
        """
        return self.tensor.charged()

    @cached_property
    def signal(self) -> Expr:
        """(mu_l/(l-1)!)^2 |C_l[Z^(l-1)]|^2, a form of degree 2l - 2 in Z, standard normals of an orthonormal basis of V_l."""
        inner = self.tensor.rotated(orthonormal(self.directions))
        Z = self._start(inner.dimension)
        form = inner.polynomial(Z)
        # The gradient of <C, y^l> is l C[y^(l-1)].
        parts = [form.diff(v)/self.order for v in Z]
        factor = coefficient(self.sigma, self.order)/factorial(self.order - 1)
        return Add(*((factor*p)**2 for p in parts)).expand()

    @staticmethod
    def _start(r: int) -> tuple[Symbol, ...]:
        return tuple(normal(f"z{i + 1}") for i in range(r))

    @cached_property
    def _spread(self) -> Expr:
        """(Var g + Delta) E sigma'^2, what 1/samples multiplies in tau^2."""
        slope = self.sigma.weak_derivative.expr
        return (E(self.centred**2, *self.variables) + Delta)*E(slope**2, z)

    @cached_property
    def centred(self) -> Expr:
        """g - E g, what the labels are before noise."""
        return self.g - coefficient(self.g, (0,)*len(self.variables), self.variables)

    @cached_property
    def system(self) -> System:
        """The mean |cos| over neurons at d = oo, as a formula of u, 1/samples and Delta."""
        Z = self._start(self.directions.rows)
        square = u**2*self.signal
        mean = sqrt(square/(square + 1 + u**2*NOISE*self._spread))
        if len(Z) == 1:  # the square root of a square, written out
            (v,) = Z
            size = Abs(u)*sqrt(self.signal.subs(v, 1))*Abs(v)**(self.order - 1)
            mean = size/sqrt(size**2 + 1 + u**2*NOISE*self._spread)
        return System({COSINE: E(mean, *Z)}, parameters=[u, NOISE, Delta], source="dandi2023giant",
                      name=f"giant_step({self.sigma.name}, {self.g})")

    @property
    def solved(self) -> Any:
        """The system; in several directions the theory, whose average is taken by radius and direction."""
        return self.system if self.directions.rows == 1 else self

    @cached_property
    def finite(self) -> System:
        """The same with every term of order d^(-1/2), and the terms that keep it at most 1. One direction only.

        cos = |s|/sqrt(s^2 + (k^2 + u^2 tau^2)(1 - 1/d)), s = u A Z^(l-1) + (k Z + u C Z^l + u tau' x)/sqrt(d),
        k = 1 + u B Z^l/sqrt(d): A = mu_l mu*_l/(l-1)!, B = mu_(l+2) mu*_l/l!, C = mu_(l+1) mu*_(l+1)/l!, x normal,
        tau'^2 = (E[g^2 t^2] + Delta) E sigma'^2/samples with g centred and t the projection of the example on the direction.
        """
        if self.directions.rows > 1 or len(self.variables) > 1:
            raise BadInput("giant-step: finite-d terms are known for a target of one direction; leave dimension out for the limit")
        z1, z2 = self._start(2)
        (t,), ell = self.variables, self.order
        mu, of_g = (lambda k: coefficient(self.sigma, k)), (lambda k: coefficient(self.g, k, t))
        along = (E(self.centred**2*t**2, t) + Delta)*E(self.sigma.weak_derivative.expr**2, z)
        A, B = mu(ell)*of_g(ell)/factorial(ell - 1), mu(ell + 2)*of_g(ell)/factorial(ell)
        C = mu(ell + 1)*of_g(ell + 1)/factorial(ell)
        k = 1 + u*B*z1**ell/sqrt(DIMENSION)
        s = u*A*z1**(ell - 1) + (k*z1 + u*C*z1**ell + Abs(u)*sqrt(NOISE*along)*z2)/sqrt(DIMENSION)
        rest = (k**2 + u**2*NOISE*self._spread)*(1 - 1/DIMENSION)
        return System({COSINE: E(Abs(s)/sqrt(s**2 + rest), z1, z2)}, parameters=[u, NOISE, Delta, DIMENSION],
                      source="dandi2023giant")

    def of_experiment(self, theory: Any, measured: Any) -> str:
        """How far the law of d = oo is from the experiment's d, and from which d on it is within 5 %; "" where it is.

        One direction: by the law with terms of order d^(-1/2). Several: by the cosine sqrt(r/d) that r directions have with any
        vector, which is part of what is measured and not of the limit.
        """
        at: dict[str, Any] = {n: float(measured.parameters[n]) for n in ("u", "Delta")}
        d, samples = float(measured.parameters["dimension"]), np.asarray(measured.alpha, dtype=float)
        if "dimension" in theory.parameters:
            return ""
        limit = np.asarray(self.solve(samples=samples, **at)["cosine"])
        r = self.directions.rows

        def away(d: float) -> float:
            if r == 1 and len(self.variables) == 1:
                return float(np.max(np.abs(1 - limit/np.asarray(self.solve(samples=samples, dimension=d, **at)["cosine"]))))
            return float(np.max(1 - limit/np.sqrt(limit**2 + r/d)))

        gap = enough = away(d)
        near = 0.05  # how near the limit must be to the law of a finite d
        if gap <= near:
            return ""
        largest = 1e12  # the largest d that is named
        while enough > near and d < largest:
            d *= 2
            enough = away(d)
        how = f"--dimension {measured.parameters['dimension']} (dimension=) gives the theory at that d; " if r == 1 else ""
        return (f"the theory is the limit of large d, here {'about ' if r > 1 else ''}{gap:.0%} below what d = "
                f"{measured.parameters['dimension']} has; {how}the limit is within {near:.0%} from d = {d:g} on")

    def density(self, c: Any, *, u: float, samples: float = 1.0, Delta: float = 0.0) -> Any:
        """The density of |cos| over neurons at d = oo: 2 phi(x) x/((l-1) c (1 - c^2)), x the |Z| whose cosine is c.

        x^(l-1) = c sqrt(1 + u^2 tau^2)/(|u A| sqrt(1 - c^2)). One direction, l >= 2; at l = 1 every neuron has the same cosine.
        """
        if self.order == 1 or self.directions.rows > 1:
            raise BadInput("giant-step: the cosine has a density for one direction and order 2 or more; at order 1 all are equal")
        at = self.complete(self.given({"u": u, "samples": samples, "Delta": Delta}))
        from hermitex.kernels.compile import compile

        size = float(np.abs(at["u"]))*float(compile(self.signal.subs(self._start(1)[0], 1))())**0.5
        tau2 = float(at["noise"])*float(compile(self._spread)(Delta=float(at["Delta"])))
        c = np.asarray(c, dtype=float)
        inside = (c > 0) & (c < 1)
        safe = np.where(inside, c, 0.5)
        x = (safe*np.sqrt(1 + float(at["u"])**2*tau2)/(size*np.sqrt(1 - safe**2)))**(1/(self.order - 1))
        p = 2*np.exp(-x*x/2)/np.sqrt(2*np.pi)*x/((self.order - 1)*safe*(1 - safe**2))
        return np.where(inside, p, 0.0)[()]

    def rates(self, delta: Any = None) -> Claims:
        """How many samples and which step the first directions ask for, and what fewer samples, n = d^(l - delta), give.

        >>> found = giant_step("relu", "z1*z2").rates("1/2")
        >>> found["samples"], found["step"], found["cosine"]
        (2, 1/2, -1/4)
        """
        from sympy import Min

        less = Symbol("delta", positive=True) if delta is None else exact("delta", delta)
        if less.is_positive is False:
            raise BadInput(f"giant-step: n = d^(l - delta) with delta above 0, not {delta}")
        ell = self.order
        return Claims(f"one giant step, order {ell}", {
            "samples": Claim(Rational(ell), "theorem", "dandi2023giant", "n = d^samples is enough for V_l, and only for it"),
            "step": Claim(Rational(ell - 1, 2), "theorem", "dandi2023giant", "the rate is p d^step for p neurons"),
            "cosine": Claim(-Min(1, less)/2, "theorem", "dandi2023giant",
                            "at n = d^(l - delta) every cosine is at most d^cosine, up to powers of log d")})

    # -- numbers -----------------------------------------------------------------------------------------------------------
    order_parameters = ("cosine",)  # the mean |cos|

    errors = ()  # none: the theory knows the first layer only

    def letters(self) -> dict[str, Any]:
        """u the step, samples = n/d^l (default 1, inf allowed), Delta the noise (default 0), dimension (default inf)."""
        return {"u": self.REQUIRED, "samples": 1.0, "Delta": 0.0, "dimension": np.inf}

    def complete(self, numbers: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The numbers, checked; 1/samples for the system."""
        found = self.checked(numbers, u="", samples="> 0 inf", Delta=">= 0", dimension="> 0 inf")
        if np.any(found["u"] == 0):
            raise BadInput("giant-step: u must not be 0, a step of size zero")
        if np.any(found["dimension"] <= 1):
            raise BadInput("giant-step: dimension is above 1")
        return {**found, "noise": 1/found["samples"]}

    def run(self, numbers: Mapping[str, np.ndarray], **options: Any) -> Solution:
        """The mean |cos| at d = oo, or with the leading terms of a finite d."""
        infinite = np.isinf(numbers["dimension"])
        if not np.all(infinite == infinite.flat[0]):
            raise BadInput("giant-step: give finite dimensions or infinite ones in one call")
        if infinite.all() and self.directions.rows > 1:
            found = self._several(numbers)
        else:
            system = self.system if infinite.all() else self.finite
            found = system.solve(system.accepted({p.name: numbers[p.name] for p in system.parameters}), **options)
        own = {f.name: getattr(found, f.name) for f in fields(Solution)}
        own["notes"] = (*found.notes, self.status)
        return GiantSolution(**own, exact={"order": self.order, "directions": ImmutableMatrix(self.directions)})

    def _several(self, numbers: Mapping[str, np.ndarray]) -> Solution:
        """The system's average in several directions, by radius and direction of the start."""
        from hermitex.kernels.compile import compile

        at_u, noise, at_Delta = np.broadcast_arrays(*(numbers[n] for n in ("u", "noise", "Delta")))
        Z = self._start(self.directions.rows)
        signal, spread = compile(self.signal), compile(self._spread)(Delta=at_Delta.ravel())
        b = (1/at_u.ravel()**2 + noise.ravel()*spread)

        def form(points: np.ndarray) -> np.ndarray:
            return np.broadcast_to(signal(**{v.name: points[:, i] for i, v in enumerate(Z)}), len(points))

        value, error = (v.reshape(at_u.shape) for v in mean_root(form, self.order - 1, len(Z), b))
        one = value.shape == ()
        digits = 1e-5  # of an average over several directions
        good = error <= digits
        return Solution({"cosine": value.item() if one else value}, residual=error.item() if one else error,
                        converged=bool(good) if one else good, error=error.item() if one else error, method="polar",
                        reason="" if np.all(good) else f"the average over directions is known to {np.max(error):.1g} only",
                        unknowns=("cosine",))

    def described(self, fixed: Mapping[str, float]) -> dict[str, Any]:
        """Functions, numbers, order, directions and status."""
        shown = {k: v for k, v in fixed.items() if k != "noise" and np.isfinite(v)}
        rows = [[str(x) for x in row] for row in self.directions.tolist()]
        return {"sigma": self.sigma.name, "target": str(self.g), **shown, "order": self.order, "directions": rows,
                "status": self.status}

    def plot(self, ax: Axes | None = None, *, u: tuple[float, ...] = (0.5, 1.0, 3.0), Delta: float = 0.0, points: int = 60) -> Axes:
        """The mean |cos| over samples = n/d^l for a few steps u."""
        ax, line = new_axes(ax), np.geomspace(1e-2, 1e2, points)
        for step in u:
            ax = self.curve(line, u=step, Delta=Delta, title=f"$u = {step:g}$").plot(ax)
        ax.set_ylim(0, 1)
        ax.set_ylabel(r"mean $|\cos|$")
        return ax

    def _summary(self) -> str:
        return f"{self.sigma.name}, {self.g}, order {self.order}"


def giant_step(sigma: Formula, g: Formula) -> GiantStep:
    r"""One gradient step of size u d^((l-1)/2) on n = samples d^l examples: which directions the first layer learns, how well.

    cos = |s|/sqrt(s^2 + 1 + u^2 tau^2), s = u mu_l/(l-1)! |C_l[Z^(l-1)]|, tau^2 = (Var g + Delta) E sigma'^2/samples. Orders, span
    and rates: theorem [dandi2023giant]; the law of the cosine: derived.

    Parameters
    ----------
    sigma : activation with E[sigma He_l] != 0 and a derivative in L2 (not sign)
    g : target in z, or in z1, z2, ...; square integrable, not constant

    Returns
    -------
    GiantStep : `.order` (l), `.directions` (exact rows of V_l), `.solve(u=, samples=1, Delta=0, dimension=inf)` -> order,
    directions, cosine (mean |cos|), `.density(c, u=)`, `.rates(delta)`, `.curve(samples=[...], u=)`, `.plot()`.

    Raises
    ------
    BadInput : no order is found, sigma has no part of that order, sigma' is not square integrable, numbers out of range.

    Guarantee
    ---------
    Each formula carries its status. This is the limit of the sources; accuracy at finite dimension is not promised. See
    docs/promise.md.

    References: dandi2023giant.

    Examples
    --------
    >>> theory = giant_step("relu", "He2(z)/sqrt(2)")
    >>> theory.order, round(theory.solve(u=1)["cosine"], 10)
    (2, 0.3159520816)
    """
    made = activation(sigma)
    require_numbers("giant-step", "activation", made)
    require_square_integrable("giant-step", "activation", made)
    slope = made.weak_derivative
    if slope.expr.has(DiracDelta) or slope.in_L2 is False:
        raise BadInput(f"giant-step: the derivative of {made.name} is not square integrable; the step's noise would be infinite")
    body, variables = target(g)
    if extra := body.free_symbols - set(variables):
        raise BadInput(f"giant-step: the target holds {', '.join(sorted(map(str, extra)))}; put numbers in")

    if integrable(body, variables, power=2) is False:
        raise BadInput(f"giant-step: the target {body} is not square integrable")
    return _made(made, body, variables)


@lru_cache(maxsize=32)
def _made(sigma: Activation, g: Expr, variables: tuple[Symbol, ...]) -> GiantStep:
    """One object for one structure, its order proved."""
    seen = g.free_symbols & set(variables)
    if not seen:
        raise BadInput("giant-step: the target is a constant; it has no direction")
    first = leap(g, variables).first
    if first is None:
        raise BadInput(f"giant-step: the first order of {g} could not be proved; `hermitex exponents` says how far it was tried")
    if coefficient(sigma, first) == 0:
        raise BadInput(f"giant-step: the activation {sigma.name} has no He_{first} part, E[sigma He_{first}] = 0")
    return GiantStep(sigma, g, variables, first)
