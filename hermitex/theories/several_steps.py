r"""S_k <- S_k + t u_k E[R mu_1^k x] + noise_k,   c_k <- c_k (1 + t u_k E[R mu_2^k])^2 + (t u_k)^2/alpha_0 E[R^2 Var(sigma'|kappa)].

Several giant steps: each has its own batch and starts where the last one ended; the readout stays at its values u_k, of which
pi_k are the shares, so that the spikes of K letters span K directions at most (one letter: the spike moves). With kappa = V^T x
along them, S_k = V U_k, Gamma = Theta^T V, z = Gamma kappa + S zeta, R = y - F, F = sum_k pi_k u_k mu_0^k(kappa),
mu_2^k = d mu_1^k/d shift and t = eta/beta,

    E[R mu_1^k x] = V E[kappa (h - F) mu_1^k] + Theta_perp E[mu_1^k h_1],
    <noise_k, noise_l> = t^2 u_k u_l/alpha_0 E[R^2 mu_1^k mu_1^l].

A direction is found at a step where some E[mu_1^k h_1] has a part along it: for odd sigma without biases mu_1 is even in kappa, and
z1 + z1 z2 never shows z2. After the steps the readout is that of spiked random features with the same (S_k, c_k), an
approximation as after one step. Derived here by the rules of one step; agrees with simulations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache, partial
from typing import Any, ClassVar

import numpy as np
from sympy import Add, Expr, Symbol, symbols

from hermitex.errors import BadInput, NoValue
from hermitex.solvers.solution import Solution
from hermitex.symbolic.activations import Activation
from hermitex.symbolic.gaussian import E
from hermitex.symbols import Delta, z
from hermitex.systems.system import System
from hermitex.theories.directions import Target
from hermitex.theories.learned import OneStepSolution
from hermitex.theories.one_step import bias, made, result33, slopes
from hermitex.theories.ridgeless import ridgeless
from hermitex.theories.several_spikes import LettersInSpan
from hermitex.theories.spike import OneStepFamily, require_ranges, say_noise, spike
from hermitex.theories.spike_span import (
    LIFT,
    Layer,
    beside_numbers,
    layer_numbers,
    letters_beside,
    measured_names,
    measured_values,
    root,
    seen_beside,
    spanned,
    variables_of,
)
from hermitex.theories.vocabulary import Letters, VocabularyOneStep

Array = np.ndarray[Any, Any]
_STEP = ("alpha0", "eta", "beta", "Delta")
_NEW = 1e-11  # of |S|: an overlap below it is a zero up to quadrature


@dataclass(frozen=True, eq=False)
class Path:
    """The first layer after each step, one row for each; of a vocabulary, with one entry for each letter.

    Attributes
    ----------
    overlap : array (steps, J) or (steps, K, J)   Theta^T S, the spike along each direction of the target
    norm : array (steps,) or (steps, K)           |S|, which is r
    c : array (steps,) or (steps, K)              the variance of the bulk
    gram : array (steps, K, K)                    S_k.S_l
    rank : array (steps,)                         how many directions the spikes span
    """

    overlap: Array
    norm: Array
    c: Array
    gram: Array
    rank: Array

    @property
    def cosine(self) -> Array:
        """Gamma = Theta^T S/|S| after each step."""
        size = self.norm[..., None]
        return np.divide(self.overlap, size, out=np.zeros_like(self.overlap), where=size > 0)

    @property
    def appears(self) -> tuple[int | None, ...]:
        """The step, counted from 1, at which each direction appears in a spike of some letter; None if it never does."""
        there: Array = np.abs(self.cosine) > _NEW
        columns: Array = there if there.ndim == 2 else np.any(there, axis=1)
        return tuple(int(np.argmax(column)) + 1 if column.any() else None for column in columns.T)

    def __repr__(self) -> str:
        said = ", ".join(f"z{j}: {'never' if at is None else f'step {at}'}" for j, at in enumerate(self.appears, start=1))
        return f"Path({len(self.c)} steps; {said})"


class Stepping(OneStepFamily):
    """What the theories of several steps share: the steps themselves."""

    steps: int

    def __post_init__(self) -> None:
        if isinstance(self.steps, bool) or not isinstance(self.steps, int) or self.steps < 1:
            raise BadInput(f"one-step: steps is an integer of 1 or more, not {str(self.steps)[:40]}")
        if own := [v.name for f in (self.sigma, self.g) for v in f.letters]:
            raise BadInput(f"one-step: with steps= the functions have no parameters; put a number in for {own[0]}")

    @property
    def starts(self) -> tuple[tuple[float, float, float], ...]:
        """(u_k, pi_k, b_k) of each letter of the readout."""
        return ((1.0, 1.0, 0.0),)

    def path(self, *, alpha0: float, eta: float, beta: float = 1.0, Delta: float = 0.0) -> Path:
        """Overlaps, norms and bulks after each step, at one number each (alpha0 may be inf)."""
        if missing := [n for n, v in (("alpha0", alpha0), ("eta", eta)) if v is None]:
            raise NoValue(self.name, missing[0])
        at = self.given({"alpha0": alpha0, "eta": eta, "beta": beta, "Delta": Delta})
        require_ranges(self.name, at, needed=_STEP[:2])
        if any(np.ndim(at[n]) for n in _STEP):
            raise BadInput("one-step: a path has one alpha0, eta, beta and Delta")
        layers = self.layers(*(float(at[n]) for n in _STEP))
        overlap, gram, c = (np.array(v) for v in zip(*((x.U @ x.overlaps.T, x.U @ x.U.T, x.c) for x in layers), strict=True))
        norm = np.sqrt(np.einsum("skk->sk", gram))
        alone = (slice(None), 0) if isinstance(self, SeveralSteps) else slice(None)
        rank = np.array([int(np.sum(np.any(x.U, axis=0))) for x in layers])
        return Path(overlap[alone], norm[alone], c[alone], gram, rank)

    def averages(self, U: Any, Gamma: Any, c: Any, Delta: float = 0.0) -> Solution:
        """What a step needs of the layer: a_kl = E[kappa_l (h - F) mu_1^k], b_kj = E[mu_1^k h_1j] + lift_k, push, bend, heat."""
        U, Gamma, c = (np.asarray(v, dtype=float) for v in (U, Gamma, c))
        numbers = layer_numbers(Layer(U, Gamma, c), self.g) | {"Delta": Delta, "bias": 0.0}
        for k, (u, share, b) in enumerate(self.starts, start=1):
            numbers |= {f"u{k}": u, f"pi{k}": share, f"b{k}": b}
        system = step_averages(self.sigma, self.g, len(U), U.shape[1])
        return system.solve(system.accepted(numbers))

    def layers(self, alpha0: float, eta: float, beta: float, noise: float) -> list[Layer]:
        """The first layer after each step."""
        spike(self.sigma, self.g).slope_variance  # noqa: B018 - refuses an activation that jumps
        K, J = len(self.starts), len(variables_of(self.g))
        rate, found = eta/beta*np.array([u for u, _, _ in self.starts]), []
        now = Layer(np.zeros((K, 1)), np.zeros((J, 1)), np.ones(K))
        for _ in range(self.steps):
            means, each = self.averages(*now, noise), range(1, K + 1)
            along = np.array([[means[f"a{k}_{a}"] for a in range(1, now.U.shape[1] + 1)] for k in each])
            across = np.array([[means[f"b{k}_{j}"] - means[f"lift{k}"] for j in range(1, J + 1)] for k in each])
            push = np.array([[means[f"push_{min(k, j)}{max(k, j)}"] for k in each] for j in each])
            sizes, turn = np.linalg.eigh(push)
            random = rate[:, None]*turn*np.sqrt(np.maximum(sizes, 0)/alpha0)
            # in V, Theta_perp and the span of the noise; an axis without a spike yet is left out
            U, side = now.U + rate[:, None]*along, root(now.overlaps)
            if not now.U.any():
                U, now = np.zeros((K, 0)), now._replace(overlaps=np.zeros((J, 0)))
            U, basis = spanned(np.hstack([U, rate[:, None]*across, random]))
            overlaps = np.hstack([now.overlaps, side, np.zeros((J, K))]) @ basis.T
            bend, heat = (np.array([means[f"{n}{k}"] for k in each]) for n in ("bend", "heat"))
            c = now.c*(1 + rate*bend)**2 + rate**2/alpha0*heat
            now = Layer(U, overlaps, c) if U.shape[1] else Layer(np.zeros((K, 1)), np.zeros((J, 1)), c)
            found.append(now)
        return found

    def last_layers(self, numbers: Mapping[str, Array], rank: int) -> Layer:
        """The layer after the last step at each point, with `rank` axes; along some of them there may be no spike."""
        require_ranges(self.name, numbers, needed=(*_STEP[:2], "alpha", "lam"))
        shape = np.broadcast_shapes(*(numbers[n].shape for n in _STEP))
        points = list(zip(*(np.broadcast_to(numbers[n], shape).ravel().tolist() for n in _STEP), strict=True))
        known = {at: self.layers(*at)[-1] for at in dict.fromkeys(points)}

        def wide(v: Array) -> Array:
            return np.pad(v, [(0, 0), (0, rank - v.shape[1])])

        each = [(wide(known[at].U), wide(known[at].overlaps), known[at].c) for at in points]
        return Layer(*(np.reshape(v, (*shape, *np.shape(v)[1:])) for v in zip(*each, strict=True)))


@dataclass(frozen=True, repr=False)
class StepsOfLetters(Stepping, LettersInSpan):
    """Ridge regression on the features of several giant steps from a readout of K values: the spikes span K directions.

    Beside the order parameters of a vocabulary the solution holds the layer: overlap1_2 (of letter 1 with z2; overlap1 of one
    direction), gram_12 = S_1.S_2, c1, c2. The axes of kappa are those of S_1, S_2, ... made orthogonal in this order.

    >>> two = StepsOfLetters.of("erf", "z1 + z1*z2", [1, -1.5])
    >>> two.path(alpha0=4, eta=1).rank.tolist()
    [1, 2]
    """

    steps: int = 2
    NUMBERS: ClassVar[tuple[str, ...]] = ("alpha", "beta", "lam", "Delta", "alpha0", "eta", "dimension")

    @classmethod
    def taken(cls, steps: int, *structure: Any, **more: Any) -> StepsOfLetters:
        """So many steps of what `VocabularyOneStep.of` takes."""
        found = cls.of(*structure, **more)
        return cls(**{f.name: getattr(found, f.name) for f in fields(VocabularyOneStep)}, steps=steps)

    def __post_init__(self) -> None:
        Stepping.__post_init__(self)
        LettersInSpan.__post_init__(self)
        if self.norms is not None or self.rows != "sphere":
            raise BadInput("one-step: after several steps the norms of the rows are those of the steps, on the sphere; leave "
                           f"{'norms' if self.norms is not None else 'rows'} out")

    @property
    def rank(self) -> int:
        """K: there may be as many axes as letters."""
        return len(self.vocabulary)

    @property
    def starts(self) -> tuple[tuple[float, float, float], ...]:
        return tuple(zip(self.vocabulary, self.fractions, self.biases or (0.0,)*self.rank, strict=True))

    @property
    def order_parameters(self) -> tuple[str, ...]:
        """Those of a vocabulary, and the layer."""
        return (*super().order_parameters, *measured_names(self.rank, len(variables_of(self.g))))

    def complete(self, numbers: dict[str, Array]) -> dict[str, Array]:
        """The numbers checked, with U_k, Gamma and c_k after the last step."""
        if np.any(np.isinf(numbers.get("alpha0", 0.0))):  # what vanishes in the span of the spikes has no digits to solve for
            raise BadInput("one-step: after several steps of a vocabulary alpha0 is finite; a large one, 1e8, is as the limit "
                           "(.path takes inf)")
        layer = self.last_layers(numbers, self.rank)
        done = self.checked_numbers(numbers) | layer_numbers(layer, self.g)
        return {**done, "bias": np.zeros(())}

    def run(self, numbers: Mapping[str, Array], **options: Any) -> Solution:
        """Solve the readout on the layer after the last step."""
        found = super().run(numbers, **options)
        shown = measured_values(self.layer_of(numbers))
        shown = {n: np.broadcast_to(v, np.shape(found["m1"]))[()] for n, v in shown.items()}
        return OneStepSolution.of(found.extended(shown), self)

    def described(self, fixed: Mapping[str, float]) -> dict[str, Any]:
        """As of a vocabulary, with the number of steps."""
        return {**super().described({n: v for n, v in fixed.items() if n != "bias"}), "steps": self.steps}


@dataclass(frozen=True, repr=False)
class SeveralSteps(Stepping):
    """Ridge regression on the features of several giant steps, each of rate eta d on its own batch of alpha0 d samples.

    >>> from hermitex.theories import one_step
    >>> one_step("softplus", "z1 + z1*z2", steps=2).path(alpha0=4, eta=2)
    Path(2 steps; z1: step 1, z2: step 2)
    """

    steps: int = 2
    loss: ClassVar[str] = "square"
    network: ClassVar[str] = "srf"
    rows: ClassVar[str] = "sphere"
    NUMBERS: ClassVar[tuple[str, ...]] = ("alpha", "beta", "lam", "Delta", "alpha0", "eta", "dimension")

    @property
    def order_parameters(self) -> tuple[str, ...]:
        """Those of one step, and the overlaps Gamma1, Gamma2, ... of the spike."""
        return (*made(self.sigma, self.g, self.rows).order_parameters, *self._gammas)

    @property
    def system(self) -> System:
        """The equations of the readout; those of the steps are `.step`."""
        return result33(self.sigma, self.g, turned=True)

    def complete(self, numbers: dict[str, Array]) -> dict[str, Array]:
        """The numbers checked, with r, c, gamma after the last step, Gamma1, Gamma2, ... and epsilon = 1/dimension."""
        layer = self.last_layers(numbers, 1)
        done = {**numbers, **beside_numbers(self.g, layer.overlaps), "r": layer.U[..., 0, 0], "c": layer.c[..., 0]}
        done |= {n: layer.overlaps[..., j, 0] for j, n in enumerate(self._gammas)}
        along = np.sum(layer.overlaps[..., 0]*self.axis_of(done), axis=-1)
        done["gamma"] = np.where(np.abs(along) > 1 - 1e-14, np.sign(along), along)  # as in `root`: in the span to rounding
        return {**done, "bias": np.zeros(()), "epsilon": 1/done.get("dimension", np.asarray(np.inf))}

    def run(self, numbers: Mapping[str, Array], **options: Any) -> Solution:
        """Solve the readout next to the spike as it is after the last step."""
        limit = partial(result33, self.sigma, self.g, turned=True, interpolating=True)
        found = say_noise(ridgeless(super().run, limit, numbers, options), numbers)
        shown = {n: np.broadcast_to(numbers[n], np.shape(found["m"]))[()] for n in ("r", "c", *self._gammas)}
        return OneStepSolution.of(found.extended(shown), self)

    def described(self, fixed: Mapping[str, float]) -> dict[str, Any]:
        """sigma, target, the number of steps and the numbers that stayed fixed."""
        known = {n: v for n, v in fixed.items() if n in {"r", "c", *self._gammas, *self.letters()}}
        return {**super().described(known), "steps": self.steps}

    def axis_of(self, at: Mapping[str, Any]) -> Array:
        """Gamma/|Gamma|, the direction in the target's span that the spike has after the last step, its first entry positive."""
        cosines = np.stack([np.asarray(at[n]) for n in self._gammas], axis=-1)
        there = np.where(np.abs(cosines) > _NEW, cosines, 0.0)
        first = np.take_along_axis(there, np.argmax(there != 0, axis=-1)[..., None], axis=-1)
        along = np.linalg.norm(there, axis=-1, keepdims=True)*np.where(first < 0, -1.0, 1.0)
        return np.divide(there, along, out=np.broadcast_to(np.eye(1, there.shape[-1])[0], there.shape).copy(), where=along != 0)

    @property
    def _gammas(self) -> tuple[str, ...]:
        return tuple(f"Gamma{j}" for j in range(1, len(variables_of(self.g)) + 1))


@cache
def step_averages(sigma: Activation, g: Target, count: int, rank: int) -> System:
    """What a step needs of the layer: E[kappa (h - F) mu_1^k], E[mu_1^k h_1], E[R^2 mu_1^k mu_1^l], E[(h - F) mu_2^k] and
    E[R^2 Var(sigma'|kappa)]."""
    a, moments, h1 = Letters(count, shifted=True, rank=rank), seen_beside(g, rank), slopes(g)
    mu_2, slope = a.family("mu2_"), a.family("slope")
    h, h2, F, residual = symbols("h h2 F R_2", real=True)

    def K(x: Expr) -> Expr:
        return E(x, *a.kappas)

    equations: dict[Symbol, Any] = {}
    where: dict[Symbol, Expr] = {**a.coefficients(sigma), **moments.names}
    for k in a.each:
        steep = sigma.weak_derivative(a.field(k))
        where |= {mu_2[k]: E((z**2 - 1)*sigma(a.field(k)), z)/a.c[k], slope[k]: E(steep**2, z) - a.mu_1[k]**2}
        equations |= {Symbol(f"a{k}_{j}", real=True): K(x*(h - F)*a.mu_1[k]) for j, x in enumerate(a.kappas, start=1)}
        equations |= {Symbol(f"b{k}_{j}", real=True): K(a.mu_1[k]*f) for j, f in enumerate(h1, start=1)}
        equations |= {Symbol(f"lift{k}", real=True): K(a.mu_1[k]*LIFT), Symbol(f"bend{k}", real=True): K((h - F)*mu_2[k]),
                      Symbol(f"heat{k}", real=True): K(residual*slope[k])}
    equations |= {Symbol(f"push_{k}{j}", real=True): K(residual*a.mu_1[k]*a.mu_1[j]) for k, j in a.pairs}
    where |= {h: moments.h, **dict(zip(h1, moments.h_1, strict=True)), h2: moments.squared + Delta,
              F: Add(*(a.pi[k]*a.u[k]*a.mu_0[k] for k in a.each)), residual: h2 - 2*h*F + F**2}
    unused = {*a.mu_22.values()}
    return System(equations, where={n: v for n, v in where.items() if n not in unused},
                  parameters=[*a.spread, *a.u.values(), *a.pi.values(), *a.c.values(), *a.b.values(), bias, Delta,
                              *letters_beside(moments)], name=f"A giant step of {sigma.name} on {g.name}")
