r"""Vhat_i = (alpha/beta) E[mu_i^2 (-ds/domega)],  qhat_i = (alpha/beta) E[mu_i^2 s^2],  E[mu_0 s] = 0: any convex loss.

The readout after one giant gradient step minimises sum l(y, f) + lam/2 |a|^2. Through the equivalent spiked random
features its output on a fresh sample is omega = mu_0 m + kappa mu_1 zeta + mu_1 psi z + Gaussian, and on a training sample
f* = argmin (f - omega)^2/(2V) + l(y, f), s = (f* - omega)/V [cui2024, Result 3.3, extended to convex losses].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from sympy import Rational, sqrt

from hermitex.errors import BadInput
from hermitex.kernels.compile import compile
from hermitex.solvers.batch import merge_solutions, select_points
from hermitex.solvers.solution import Solution
from hermitex.symbolic.activations import Activation, activation
from hermitex.symbolic.gaussian import E
from hermitex.symbolic.precise import evaluate
from hermitex.symbols import f, z
from hermitex.systems.names import read_start
from hermitex.systems.solve import shape_solution
from hermitex.systems.system import System
from hermitex.theories.conditional_coefficients import mu, mu_star
from hermitex.theories.losses import loss_grid, loss_newton, sign_labels
from hermitex.theories.losses.loss_equations import Structure, equations
from hermitex.theories.losses.loss_labels import a, of_signs, probability, s_0
from hermitex.theories.losses.pointwise import Pointwise, pointwise
from hermitex.theories.spike import OneStepFamily, complete_numbers, free_parameters


@dataclass(frozen=True, repr=False)
class ConvexOneStep(OneStepFamily):
    """A convex loss on the features of one giant gradient step: argmin_a sum l(y, f) + lam/2 |a|^2, f = <a, phi>/sqrt(p).

    A target of +-1 under a loss that is not one of y - f has labels y = g(<theta, x> + sqrt(Delta) Z) of +-1, and `test_error` is
    the probability that sign f is not y; otherwise y = g(<theta, x>) + sqrt(Delta) z and `test_error` is E(g - f)^2. `train_error`
    is the mean training loss without the penalty, `test_loss` E l(y, f) on a fresh sample, `train_objective` the training loss with
    the penalty, per sample; `test_error_noisy` = test_error + Delta for real labels. The losses are as written: the
    square loss (y - f)^2/2 at `lam` is the ridge theory at the same `lam`.

    A smooth loss whose averages have no closed form (exp(f) - y f, log cosh(y - f)) takes threefold averages over a sample,
    fourfold if Delta > 0 and neither y - f nor y f carries the label; these are held to 1e-8.

    dimension : with it the readout's common direction, along which the features have the spike mu_0, costs m^2/(2 V_2) out of n:
    E[mu_0 s] = m/(n V_2), and m^2/(p V_2^2) (T_1, T_0) is added to (q_1, q_2). This is the leading 1/d term of m, which
    holds for any convex loss because the loss enters the readout's measure through Vhat and qhat only; other corrections
    of order 1/d (of V, zeta, psi) are not claimed.
    """

    g: Activation
    loss: Pointwise
    drawn: str = ""  # "logit" or "probit": labels of +-1 whose mean is g

    network: ClassVar[str] = "srf"
    rows: ClassVar[str] = "sphere"

    @classmethod
    @lru_cache(maxsize=128)
    def of(cls, sigma: Activation, g: Activation, loss: Any) -> ConvexOneStep:
        """The theory for a loss as it was asked for.

        Raises
        ------
        BadInput : the loss is not convex in f, holds other letters, or asks for labels of +-1 that the target does not have.
        """
        found = cls(sigma, g, pointwise(loss))
        if z not in sigma(z).free_symbols:
            raise BadInput(f"one-step: sigma = {sigma.name} is constant: its features tell no sample from another; take an "
                           "activation that depends on z")
        found.loss.require_labels("one-step", g, found.binary)
        return found

    @cached_property
    def binary(self) -> bool:
        """True if the labels are +-1."""
        return bool(self.drawn) or (self.loss.of_residual is None and of_signs(self.g))

    @cached_property
    def _odd(self) -> bool:
        """True if a reflection of the sample exchanges the labels."""
        return self.binary and self.sigma.parity == self.g.parity == -1 and self.loss.symmetric

    def structure(self, **flags: Any) -> Structure:
        """The structure with some of its reductions."""
        kind = "labels" if self.binary else "residual" if self.loss.of_residual is not None else "values"
        return Structure(self.sigma, self.g, self.loss, kind, **flags)

    @property
    def system(self) -> System:
        """The equations, without the reductions that special numbers allow."""
        return equations(self.structure())

    # m, zeta, psi, q1, q2, V1, V2 and their conjugates
    order_parameters = ("m", "zeta", "psi", "q1", "q2", "V1", "V2", "Vhat1", "Vhat2", "qhat1", "qhat2", "zetatilde", "psitilde")

    @property
    def errors(self) -> tuple[str, ...]:
        """The errors and losses of a curve, the test error first."""
        noisy = () if self.binary else ("test_error_noisy",)
        return ("test_error", "train_error", "test_loss", *noisy, "train_objective")

    def complete(self, numbers: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The numbers checked, with r, c, gamma of the gradient step and epsilon = 1/dimension."""
        made = self._spiked(numbers)
        return {**made, "epsilon": 1/made.get("dimension", np.asarray(np.inf))}

    def _spiked(self, numbers: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """(r, c, gamma); noisy labels of +-1 are a step on E g(z + sqrt(Delta) Z) with the rest of E y^2 = 1 as its noise."""
        noise = numbers.get("Delta", np.asarray(0.0))
        if not (self.binary and "alpha0" in numbers and np.any(noise > 0)) or np.any(noise < 0):
            return complete_numbers(self.name, self.sigma, self.g, numbers)
        if noise.ndim:
            raise BadInput(f"{self.name}: with alpha0 and eta, Delta is one number where labels are +-1; solve once for each")
        mean = activation((2*probability(self.g) - 1).xreplace({a: z, s_0: sqrt(Rational(float(noise)))}))
        rest = 1 - float(evaluate(E(mean(z)**2, z), digits=17))
        made = complete_numbers(self.name, self.sigma, mean, {**numbers, "Delta": np.asarray(rest)})
        return {**made, "Delta": noise}

    # -- solving -----------------------------------------------------------------------------------------------------
    def described(self, fixed: Mapping[str, float]) -> dict[str, Any]:
        """The functions, the loss and the numbers of a curve."""
        return {**super().described(fixed), "loss": str(self.loss)}

    def run(self, numbers: Mapping[str, Any], *, start: Mapping[str, Any] | None = None, tolerance: float = 1e-11,
            **options: Any) -> Solution:
        """Solve at complete numbers: points that share their exact reductions together."""
        shape, flat, first = flattened(self.name, self.system, numbers, start)
        flags = self._flags(flat)
        triple = 1e-8  # what threefold averages are held to: a grid that is twice as fine costs eight times as much
        if flags[0].kind != "labels" and (flags[0].kind == "values" or loss_grid.supports_grid(flags[0])):
            tolerance = max(tolerance, triple)
        self._refuse_nothing(flat)
        lost = self._separated(flat, flags)
        parts = [(lost, self._unbounded(lost.size))] if lost.size else []
        double = 1e-10  # what a grid of smooth averages over labels of +-1 is held to
        for st in dict.fromkeys(flags):
            here = np.array([k for k, s in enumerate(flags) if s == st and k not in set(lost)])
            if here.size and (loss_grid.supports_grid(st) or sign_labels.supports_sign_grid(st)):
                at, near = ({n: v[here] for n, v in d.items()} for d in (flat, first))
                found = loss_newton.solved(st, at, near, tolerance if sign_labels.supports_sign_grid(st)
                                           else max(tolerance, double))
                parts.append((here, found))
                if st.kind != "labels":
                    continue
                here = here[~np.asarray(found.converged)]  # the compiled equations may still manage
            step = _BATCH[st.kind]
            for chunk in (here[k:k + step] for k in range(0, len(here), step)):
                at = {n: v[chunk] for n, v in flat.items()}
                parts.append((chunk, solved(equations(st), at, {n: v[chunk] for n, v in first.items()}, tolerance)))
        found = merge_solutions(parts, int(np.prod(shape)), tuple(x.name for x in self.system.unknowns))
        found = shape_solution(found, shape)
        return found.require() if options.get("raise_on_failure") else found

    def _refuse_nothing(self, at: Mapping[str, np.ndarray]) -> None:
        """A constant label whose loss is least at f = 0 leaves a = 0: no order parameter to be solved for."""
        label = self.g(z)
        if label.is_number and (self.binary or np.all(at["Delta"] == 0)) and self.loss.at(label).diff(f).subs(f, 0) == 0:
            raise BadInput(f"{self.name}: every label is {label}, where the loss {self.loss} is least at f = 0: the readout is 0 "
                           "and there is nothing to solve; take a target that varies, or Delta > 0")

    def _separated(self, at: Mapping[str, np.ndarray], flags: list[Structure]) -> np.ndarray:
        """The points at which m mu_0(kappa) alone has the sign of every label, at no cost as d -> oo: the loss has no minimiser."""
        aligned = np.array([k for k, st in enumerate(flags) if st.aligned and self.binary and at["epsilon"][k] == 0], dtype=int)
        falls = self.loss.at(1).diff(f).subs(f, 50) <= 0 and self.loss.at(-1).diff(f).subs(f, -50) >= 0 if aligned.size else False
        if not falls:
            return np.empty(0, dtype=int)
        near = np.linspace(0.013, 7, 60)
        x = np.concatenate([-near, near])
        r_, b_, c_, gamma_ = (at[n][aligned, None] for n in ("r", "bias", "c", "gamma"))
        agree = mu(self.sigma, 0)(r_*x + b_, r=1.0, c=c_)*np.asarray(compile(self.g(z))(z=gamma_*x))
        return aligned[np.all(agree > 0, axis=1) | np.all(agree < 0, axis=1)]

    def _unbounded(self, points: int) -> Solution:
        why = ("m runs to infinity: the spike alone separates the labels (gamma = 1, no noise), so the loss has no minimiser as "
               "d -> oo; dimension=d gives the 1/d term that bounds m")
        names = tuple(x.name for x in self.system.unknowns)
        nothing = np.full(points, np.nan)
        values = {n: nothing for n in (*names, *(o.name for o in self.system.observables))}
        return Solution(values, residual=np.full(points, np.inf),
                        converged=np.zeros(points, dtype=bool), iterations=np.zeros(points, dtype=int), stability=nothing,
                        error=nothing, method="none", reason=np.full(points, why, dtype=object), unknowns=names)

    def _flags(self, at: Mapping[str, np.ndarray]) -> list[Structure]:
        """The structure of each point."""
        aligned = (np.abs(at["gamma"]) == 1) & ((at["Delta"] == 0) | (not self.binary))
        mute = at["r"] == 0
        if np.any(mute):
            mean = mu(self.sigma, 0)(at["bias"], r=1.0, c=at["c"])
            size = np.sqrt(mean**2 + mu_star(self.sigma).squared(at["bias"], r=1.0, c=at["c"]))
            mute = mute & (np.abs(mean) <= 1e-13*size)
        linear = self.sigma.expr.diff(z, 2) == 0 if not free_parameters(self.sigma) else False
        mirror = at["bias"] == 0 if self._odd else np.zeros(mute.shape, dtype=bool)
        noisy = (at["Delta"] > 0) | self.binary | (self.loss.of_residual is not None)
        return [self.structure(mirror=bool(mirror[k]), aligned=int(aligned[k]*at["gamma"][k]), mute=bool(mute[k]), linear=linear,
                               noisy=bool(noisy[k])) for k in range(len(mute))]


_BATCH = {"labels": 20, "residual": 20, "values": 1}


def flattened(asking: str, system: System, numbers: Mapping[str, Any], start: Mapping[str, Any] | None
              ) -> tuple[tuple[int, ...], dict[str, np.ndarray], dict[str, np.ndarray]]:
    """(shape, the parameters of the system at each point, the start there): arrays of one axis, from numbers that broadcast."""
    names = [q.name for q in system.parameters]
    given = {n: np.asarray(numbers["lam" if n == "lamda" else n], dtype=float) for n in names}
    try:
        shape = np.broadcast_shapes(*(v.shape for v in given.values()))
    except ValueError:
        shapes = ", ".join(f"{n} {v.shape}" for n, v in given.items() if v.ndim)
        raise BadInput(f"{asking}: the numbers do not broadcast: {shapes}") from None
    first = {n: np.broadcast_to(np.asarray(v, dtype=float), shape).ravel() for n, v in read_start(start, "'V': 1").items()}
    return shape, {n: np.broadcast_to(v, shape).ravel() for n, v in given.items()}, first


def solved(system: System, at: Mapping[str, np.ndarray], start: Mapping[str, np.ndarray], tolerance: float) -> Solution:
    """The solution at points of one structure; what Newton does not reach from its start is followed from lam = 1 down."""
    found = system.solve(at, start=start, tolerance=tolerance, raise_on_failure=False)
    left = np.flatnonzero(~np.asarray(found.converged))
    if start or not left.size:
        return found
    near: dict[str, np.ndarray] = {}
    some = {n: v[left] for n, v in at.items()}
    large_lam = 1.0  # a ridge from which Newton's method arrives, and the solution is followed down
    low = np.clip(some["lamda"], 1e-8, large_lam)
    steps = int(np.ceil(-np.log10(low.min()) - 1e-9))  # a decade each
    rough = 1e-6  # tolerance of the starts on the way
    for k in range(steps):
        here = {**some, "lamda": np.maximum(some["lamda"], low**(k/steps))}
        far = system.solve(here, start=near, tolerance=rough, raise_on_failure=False)
        near = {n: _usable(far[n], _positive(system, n)) for n in far.unknowns}
    if not steps:
        return found
    again = system.solve(some, start=near, tolerance=tolerance, raise_on_failure=False)
    good = np.flatnonzero(found.converged)
    return merge_solutions([(good, select_points(found, good)), (left, again)], np.size(found.converged), found.unknowns)


def _usable(v: np.ndarray, positive: bool) -> np.ndarray:
    """Values to start from, 1 or 0 where there are none."""
    return np.where(np.isfinite(v) & ((v > 0) | (not positive)), v, float(positive))


def _positive(system: System, name: str) -> bool:
    return any(x.name == name for x in system.positive)
