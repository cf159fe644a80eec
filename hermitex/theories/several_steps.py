r"""S <- S + t E[R mu_1 x] + noise,   c <- c (1 + t E[R mu_2])^2 + (t^2/alpha_0) E[R^2 Var(sigma'(u)|kappa)]: several steps.

Each giant step has its own batch and starts where the last one ended; the readout stays uniform, so that the spike stays of
rank one: it moves. With kappa along it, v = S/|S|, Gamma = Theta^T v, P = (I - Gamma Gamma^T)^{1/2} in the target's span,
R = y - mu_0(kappa), mu_2 = d mu_1/d shift and t = eta/beta,

    Theta^T E[R mu_1 x] = Gamma E[kappa (h - mu_0) mu_1] + P E[mu_1 h_1],   |noise|^2 = (t^2/alpha_0) E[R^2 mu_1^2].

A direction is found at a step where E[mu_1 h_1] has a part along it: for odd sigma mu_1 is even in kappa, and z1 + z1 z2 never
shows z2. After the steps the readout is that of spiked random features with the same (S, c), an approximation as after one
step. Derived here by the rules of one step; agrees with simulations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
from sympy import Symbol, sqrt, symbols

from hermitex.errors import BadInput, NoValue
from hermitex.solvers.solution import Solution
from hermitex.symbolic.activations import Activation
from hermitex.symbolic.gaussian import E
from hermitex.symbols import Delta, c, gamma, kappa, r, z
from hermitex.systems.system import System
from hermitex.theories.directions import DirectedTarget, Target, rho
from hermitex.theories.learned import OneStepSolution
from hermitex.theories.one_step import made, overlaps, seen
from hermitex.theories.spike import OneStepFamily, complete_numbers, spike

Array = np.ndarray[Any, Any]
_NEW = 1e-11  # of |S|: an overlap below it is a zero up to quadrature


@dataclass(frozen=True, eq=False)
class Path:
    """What the first layer has learned after each step, one row for each.

    Attributes
    ----------
    overlap : array (steps, J)     Theta^T S, the spike along each direction of the target
    norm : array (steps,)          |S|, which is r
    c : array (steps,)             the variance of the bulk
    """

    overlap: Array
    norm: Array
    c: Array

    @property
    def cosine(self) -> Array:
        """Gamma = Theta^T S/|S| after each step."""
        return np.divide(self.overlap, self.norm[:, None], out=np.zeros_like(self.overlap), where=self.norm[:, None] > 0)

    @property
    def appears(self) -> tuple[int | None, ...]:
        """The step at which each direction appears, counted from 1; None for one that does not."""
        there = np.abs(self.cosine) > _NEW
        return tuple(int(np.argmax(column)) + 1 if column.any() else None for column in there.T)

    def __repr__(self) -> str:
        said = ", ".join(f"z{j}: {'never' if at is None else f'step {at}'}" for j, at in enumerate(self.appears, start=1))
        return f"Path({len(self.c)} steps; {said})"


@dataclass(frozen=True, repr=False)
class SeveralSteps(OneStepFamily):
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

    def __post_init__(self) -> None:
        if isinstance(self.steps, bool) or not isinstance(self.steps, int) or self.steps < 1:
            raise BadInput(f"one-step: steps is an integer of 1 or more, not {str(self.steps)[:40]}")
        if own := [v.name for f in (self.sigma, self.g) for v in f.letters]:
            raise BadInput(f"one-step: with steps= the functions have no parameters; put a number in for {own[0]}")

    @property
    def order_parameters(self) -> tuple[str, ...]:
        """Those of one step, and the overlaps Gamma1, Gamma2, ... of the spike."""
        return (*made(self.sigma, self.g, self.rows).order_parameters, *(v.name for v in _gammas(self.g)))

    @property
    def system(self) -> System:
        """The equations of the readout; those of the steps are `.step`."""
        return made(self.sigma, self.g, self.rows).system

    @property
    def step(self) -> System:
        """The averages of one step in r, c and gamma."""
        return averages(self.sigma, self.g)

    def path(self, *, alpha0: float, eta: float, beta: float = 1.0, Delta: float = 0.0) -> Path:
        """Overlaps, norm and bulk after each step, at one number each (alpha0 may be inf)."""
        if missing := [n for n, v in (("alpha0", alpha0), ("eta", eta)) if v is None]:
            raise NoValue(self.name, missing[0])
        given = self.given({"alpha0": alpha0, "eta": eta, "beta": beta, "Delta": Delta})
        at = complete_numbers(self.name, self.sigma, self.g, {**given, "alpha": np.ones(()), "lam": np.ones(())})
        if any(np.ndim(at[n]) for n in ("alpha0", "eta", "beta", "Delta")):
            raise BadInput("one-step: a path has one alpha0, eta, beta and Delta")
        return self._path(*(float(at[n]) for n in ("alpha0", "eta", "beta", "Delta")))

    def _path(self, alpha0: float, eta: float, beta: float, noise: float) -> Path:
        spike(self.sigma, self.g).slope_variance  # noqa: B018 - refuses an activation that jumps
        t, count = eta/beta, len(overlaps(self.g)[0])
        inside, outside, c_, rows = np.zeros(count), 0.0, 1.0, []  # Theta^T S, |S|^2 beside the target's span, c
        for _ in range(self.steps):
            norm = float(np.sqrt(inside @ inside + outside))
            cosine = inside/norm if norm else inside
            g, entries, along = towards(self.g, cosine)
            share = outside/norm**2 if norm else 1.0
            found = averages(self.sigma, g, 0 if share else int(np.sign(along))).solve(
                {"r": norm, "c": c_, "gamma": along, "Delta": noise, **entries})
            new = np.array([found[f"b{j}"] for j in range(1, count + 1)])
            axis = cosine/along if along else np.zeros(count)
            part = axis @ new
            stretch = norm + t*found["a"]
            inside = cosine*stretch + t*(new - (1 - np.sqrt(share))*part*axis)
            lost = along*part/np.sqrt(share) if share else 0.0   # Gamma^T S^+ E[mu_1 h_1]
            outside = share*(stretch - t*lost)**2*(norm > 0) + t**2/alpha0*found["push"]
            c_ = c_*(1 + t*found["bend"])**2 + t**2/alpha0*found["heat"]
            rows.append((inside, np.sqrt(inside @ inside + outside), c_))
        return Path(*(np.array(v) for v in zip(*rows, strict=True)))

    def complete(self, numbers: dict[str, Array]) -> dict[str, Array]:
        """The numbers checked, with r, c, gamma after the last step, Gamma1, Gamma2, ... and epsilon = 1/dimension."""
        if missing := [n for n in ("alpha0", "eta") if n not in numbers]:
            raise NoValue(self.name, missing[0])
        done = complete_numbers(self.name, self.sigma, self.g, numbers)
        shape = np.broadcast_shapes(*(done[n].shape for n in ("alpha0", "eta", "beta", "Delta")))
        points = np.stack([np.broadcast_to(done[n], shape).ravel() for n in ("alpha0", "eta", "beta", "Delta")], axis=1)
        known = {at: self._path(*at) for at in dict.fromkeys(map(tuple, points.tolist()))}
        last = [known[at] for at in map(tuple, points.tolist())]
        cosine = np.array([p.cosine[-1] for p in last])
        after = {"r": np.array([p.norm[-1] for p in last]), "c": np.array([p.c[-1] for p in last]),
                 **{v.name: cosine[:, j] for j, v in enumerate(_gammas(self.g))}}
        done |= {n: v.reshape(shape) for n, v in after.items()}
        _, entries, done["gamma"] = self._towards(done)
        return {**done, **entries, "bias": np.zeros(()), "epsilon": 1/done.get("dimension", np.asarray(np.inf))}

    def run(self, numbers: Mapping[str, Array], **options: Any) -> Solution:
        """Solve the readout along the direction that the spike has after the last step."""
        g, entries, along = self._towards(numbers)
        found = made(self.sigma, g, self.rows).run({**numbers, "gamma": along, **entries}, **options)
        shown = {n: np.broadcast_to(numbers[n], np.shape(found["m"]))[()] for n in ("r", "c", *(v.name for v in _gammas(self.g)))}
        return OneStepSolution.of(found.extended(shown), self)

    def described(self, fixed: Mapping[str, float]) -> dict[str, Any]:
        """sigma, target, the number of steps and the numbers that stayed fixed."""
        own = {"bias", "gamma", *(f"e{j}" for j in range(1, len(overlaps(self.g)[0]) + 1))}
        return {**super().described({k: v for k, v in fixed.items() if k not in own}), "steps": self.steps}

    def aimed(self, at: Mapping[str, Any]) -> tuple[Target, dict[str, Array]]:
        """The target with the direction that the spike has after the last step, and the entries of that direction."""
        g, entries, _ = self._towards(at)
        return g, entries

    def _towards(self, at: Mapping[str, Any]) -> tuple[Target, dict[str, Array], Any]:
        return towards(self.g, np.stack([np.asarray(at[v.name]) for v in _gammas(self.g)], axis=-1))


def _gammas(g: Target) -> tuple[Symbol, ...]:
    return tuple(Symbol(f"Gamma{j}", real=True) for j in range(1, len(overlaps(g)[0]) + 1))


def towards(g: Target, cosines: Array) -> tuple[Target, dict[str, Array], Any]:
    """The target with the axis Gamma/|Gamma|, the numbers of the entries of that axis, and the overlap with it."""
    if isinstance(g, Activation):
        return g, {}, cosines[..., 0]
    there = np.any(np.abs(cosines).reshape(-1, cosines.shape[-1]) > _NEW, axis=0)
    mixed = tuple(np.flatnonzero(there).tolist()) or (0,)
    charged = np.where(there, cosines, 0.0)
    sign = np.where(charged[..., mixed[0]] < 0, -1.0, 1.0)
    size = np.sqrt(np.sum(charged**2, axis=-1))
    along = np.where(size > 1 - 1e-15, 1.0, size)*sign   # 1e-15: a unit vector to rounding lies in the span, and has its equations
    entries = {f"e{j + 1}": np.divide(charged[..., j], along, out=np.full(along.shape, float(j == mixed[0])), where=along != 0)
               for j in mixed} if len(mixed) > 1 else {}
    return DirectedTarget(g.expr, g.variables, mixed), entries, along


@cache
def averages(sigma: Activation, g: Target, aligned: int = 0) -> System:
    """What a step needs of the layer (r, c, gamma): E[kappa R mu_1], E[mu_1 h_1], E[R^2 mu_1^2], E[R mu_2], E[R^2 Var sigma']."""
    mu_0, mu_1, mu_2, slope, h, h2, residual = symbols("mu_0 mu_1 mu_2 slope h h2 R_2", real=True)
    a, push, bend, heat = symbols("a push bend heat", real=True)
    count = len(overlaps(g)[0])
    h1 = [Symbol(f"h1_{j}", real=True) for j in range(1, count + 1)]
    s, moments = r*kappa + sqrt(c)*z, seen(g, aligned)
    steep = sigma.weak_derivative(s)
    equations = {a: E(kappa*(h - mu_0)*mu_1, kappa), push: E(residual*mu_1**2, kappa), bend: E((h - mu_0)*mu_2, kappa),
                 heat: E(residual*slope, kappa)}
    equations |= {Symbol(f"b{j}", real=True): E(mu_1*f, kappa) for j, f in enumerate(h1, start=1)}
    return System(equations, where={
        **({} if aligned else {rho: 1 - gamma**2}),
        mu_0: E(sigma(s), z),
        mu_1: E(z*sigma(s), z)/sqrt(c),
        mu_2: E((z**2 - 1)*sigma(s), z)/c,
        slope: E(steep**2, z) - mu_1**2,
        h: moments.h, **dict(zip(h1, moments.h_1, strict=True)), h2: moments.squared + Delta,
        residual: h2 - 2*h*mu_0 + mu_0**2,
    }, parameters=[r, c, gamma, Delta, *g.letters], name=f"A giant step of {sigma.name} on {g.name}")
