r"""theory(alpha) against d = 600: the one-step network, or its spiked random features, trained and tested at finite size.

Each seed draws its own rows, training samples and test samples; the training samples of a smaller alpha are the first of those of
a larger one, so that a curve is smooth and its points are correlated. No seed is hidden: seed s is ``SeedSequence(s).spawn``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hermitex.errors import BadInput, UnknownName
from hermitex.experiments.feature_training import Array, Features, spiked
from hermitex.experiments.gradient_step import chunks, measured, population_step, trained
from hermitex.experiments.statistics import over_seeds, seeds_of
from hermitex.experiments.training import ConvexLoss, Ridge, convex_loss, minimise
from hermitex.symbols import z
from hermitex.theories.curve import Curve
from hermitex.theories.directions import DirectedTarget
from hermitex.theories.spike_span import Layer

MODELS = ("features", "network")
_TEST = 2**13  # samples: their error is 1/90 of the spread of a loss


@dataclass(frozen=True, eq=False)
class OneStepSetting:
    """One experiment at one dimension: the functions as kernels, the numbers of the theory, what is trained."""

    sigma: Callable[[Array], Array]
    slope: Callable[[Array], Array] | None
    g: Callable[[Array], Array]
    loss: ConvexLoss | None
    binary: bool
    model: str
    rows: str
    letters: tuple[float, ...]
    fractions: tuple[float, ...]
    layer: Layer
    numbers: Mapping[str, float]
    theory: Any
    d: int
    p: int
    samples: tuple[int, ...]
    test: int
    biases: tuple[float, ...] | None = None
    axis: Array | None = None  # of the spike between the directions of the target, where there are several
    steps: int = 1

    def features(self, rng: np.random.Generator) -> Features:
        """The first layer of one seed."""
        k = self.numbers
        if self.model == "features":
            return spiked(self.sigma, self.layer, d=self.d, p=self.p, rng=rng, kind=self.rows, fractions=self.fractions,
                          bias=k.get("bias", 0.0), biases=self.biases, tabled=hasattr(self.theory, "layer_of"))
        assert self.slope is not None
        if np.isinf(k["alpha0"]):
            return population_step(self.theory.sigma, self.theory.g, self.sigma, d=self.d, p=self.p, eta=k["eta"], rng=rng,
                                   letters=self.letters, fractions=self.fractions)
        return trained(self.sigma, self.slope, self.g, d=self.d, p=self.p, n=max(1, round(k["alpha0"]*self.d)), eta=k["eta"],
                       Delta=k["Delta"], rng=rng, letters=self.letters, fractions=self.fractions, steps=self.steps,
                       directions=1 if self.axis is None else len(self.axis))

    def draw(self, features: Features, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """phi(x)/sqrt(p) and noisy labels of n fresh samples."""
        x = rng.standard_normal((n, self.d))
        return features(x), self.label(features.projection(x), rng)

    def label(self, teacher: Array, rng: np.random.Generator) -> Array:
        """y = g + noise for real labels, y = +-1 of mean g(<theta, x> + noise) for labels of +-1."""
        noise = np.sqrt(self.numbers["Delta"])*rng.standard_normal(len(teacher))
        if not self.binary:
            return self.g(teacher) + noise
        mean = self.g(teacher + noise)
        return mean if np.all(np.abs(mean) == 1) else np.where(2*rng.random(len(teacher)) - 1 < mean, 1.0, -1.0)

    def run(self, seed: int) -> dict[str, list[float]]:
        """Train and test one seed: every quantity along the samples."""
        first, second, third = (np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(3))
        features = self.features(first)
        readouts, found = [], []
        for n, (a, train) in zip(self.samples, self._readouts(features, second), strict=True):
            readouts.append(a)
            objective = {} if self.loss is None else {"train_objective": train + self.numbers["lam"]/2*float(a @ a)/n}
            found.append({"train_error": train, **objective, **features.order_parameters(a)})
        errors = self._test(features, np.column_stack(readouts), third)
        columns = {k: list(v) for k, v in errors.items()} | {k: [f[k] for f in found] for k in found[0]}
        if self.model == "network":
            columns |= {k: [v]*len(self.samples) for k, v in measured(features, self.letters, self.axis).items()}
        return columns

    def _readouts(self, features: Features, rng: np.random.Generator) -> Iterable[tuple[Array, float]]:
        lam = self.numbers["lam"]
        before = 0
        if self.loss is None:
            ridge = Ridge(lam)
            for n in self.samples:
                for size in chunks(n - before, max(self.p, self.d)):
                    ridge.add(*self.draw(features, size, rng))
                before = n
                yield ridge.solve()
            return
        phi, y = np.empty((0, self.p)), np.empty(0)
        for n in self.samples:
            more, labels = self.draw(features, n - before, rng)
            phi, y, before = np.vstack([phi, more]), np.concatenate([y, labels]), n
            yield minimise(phi, y, self.loss, lam)

    def _test(self, features: Features, readouts: Array, rng: np.random.Generator) -> dict[str, Array]:
        """Fresh samples whose two components in the plane of v and theta fill it evenly: a lattice, randomly shifted."""
        from scipy.special import ndtri

        plastic = 1.32471795724474602596  # x^3 = x + 1: multiples of (1/x, 1/x^2) fill the unit square evenly
        lattice = np.arange(1, self.test + 1)[:, None]*[plastic**-1, plastic**-2] + rng.random(2)
        plane = ndtri(np.clip(lattice % 1, 1e-15, 1 - 1e-15))
        error, loss, done = np.zeros(readouts.shape[1]), np.zeros(readouts.shape[1]), 0
        for size in chunks(self.test, max(self.p, self.d)):
            x = rng.standard_normal((size, self.d))
            x[:, :2] = plane[done:done + size]
            teacher, f = features.projection(x), features(x) @ readouts
            done += size
            y = self.label(teacher, rng)[:, None]
            error += np.sum(y*f <= 0, axis=0) if self.binary else np.sum((self.g(teacher)[:, None] - f)**2, axis=0)
            if self.loss is not None:
                loss += np.sum(self.loss.value(np.broadcast_to(y, f.shape), f), axis=0)
        found = {"test_error": error/self.test}
        if self.loss is not None:
            found["test_loss"] = loss/self.test
            if not self.binary:
                found["test_error_noisy"] = found["test_error"] + self.numbers["Delta"]
        return found


def simulate(theory: Any, alpha: Any, *, dimension: int | None = None, seeds: int | Iterable[int] = 16, model: str | None = None,
             test: int = _TEST, progress: Callable[[int, int], None] | None = None, **numbers: Any) -> Curve:
    r"""Train and test at finite size what a one-step theory describes -> Curve with standard errors over the seeds.

    Parameters
    ----------
    theory : a one-step theory: its functions, loss, rows and vocabulary are taken from it
    alpha : numbers n/d, one list; n = round(alpha d)
    dimension : d (default: the largest of 200, ..., 1000 that costs about a minute for all seeds)
    seeds : how many (0, 1, ...), or which
    model : "features", the spiked random features with the theory's (r, c, gamma), or "network", the theory's gradient steps, each
        on alpha0 d samples at eta d (alpha0 = inf, one step and one direction: its expectation over the samples, exactly); default:
        what the theory is exact for
    test : fresh samples for the test error of a seed
    progress : called with (seeds done, seeds in all)
    numbers : those of ``theory.curve``

    Returns
    -------
    Curve : test_error (against the clean target; misclassified labels where they are +-1), train_error, the measured order
    parameters, for a network also the measured r, c, gamma (and Gamma1, Gamma2, ...); `standard_error` of each; `seeds`.
    Memory: max(n, p) x d is never held; p x p (ridge) or n x p (other losses), and chunks of a million numbers.

    With the theory's 1/d term every order parameter of the features agrees within about three standard errors at d = 600, 32 seeds.
    A network adds its output f^0 before the step, a random function of size d^{-1/2}: it turns the spike towards the mean row,
    along which W theta_perp then has a mean of size p^{-1/2}, so that psi does not vanish at alpha0 = inf but is of order
    m/sqrt(p); its test error feels this at order 1/d.

    Raises
    ------
    BadInput : what `theory.curve` refuses; alpha d below 1; a network from r, c, gamma, with biases, or where sigma jumps.

    Examples
    --------
    >>> from hermitex.theories import one_step
    >>> simulate(one_step("erf", "sin"), [1, 2], r=1, c=1, gamma=0.9, lam=0.1, dimension=50, seeds=2).seeds
    (0, 1)
    """
    chosen = seeds_of(seeds)
    setting, line, parameters = prepare(theory, alpha, numbers, dimension=dimension, runs=len(chosen), model=model, test=test)
    order = np.argsort(np.argsort(line, kind="stable"), kind="stable")
    values, errors = ({name: v[order] for name, v in found.items()} for found in over_seeds(setting.run, chosen, progress))
    known = ("test_error", "train_error", "test_loss", "test_error_noisy", "train_objective")
    return Curve(theory.name, parameters, line, values, tuple(n for n in values if n not in known), standard_error=errors,
                 seeds=chosen, title=f"experiment, d = {setting.d}", sources=theory.sources)


def prepare(theory: Any, alpha: Any, numbers: Mapping[str, Any], *, dimension: int | None, runs: int, model: str | None,
            test: int) -> tuple[OneStepSetting, Array, dict[str, Any]]:
    """The checked setting, the line of alphas as given, and the parameters that the curve shows."""
    line = np.atleast_1d(np.asarray(theory.given({"alpha": alpha})["alpha"], dtype=float))
    if line.ndim != 1:
        raise BadInput(f"{theory.name}: alpha along a curve is one list of numbers, not an array of shape {line.shape}")
    given = theory.given({k: v for k, v in numbers.items() if k not in ("alpha", "dimension")})
    fixed = {k: v.item() for k, v in theory.complete({**given, "alpha": line}).items() if np.ndim(v) == 0}
    model = _model(theory, model, fixed)
    axis, steps, biases = _axis(theory, fixed), getattr(theory, "steps", 1), getattr(theory, "biases", None)
    if model == "network" and biases is not None:
        raise BadInput(f"{theory.name}: the network of the experiment has no biases; simulate the features (model='features')")
    if model == "network" and np.isinf(fixed.get("alpha0", 0)) and (axis is not None or steps > 1):
        raise BadInput(f"{theory.name}: at alpha0 = inf a network is trained by one step on a target of one direction; give a "
                       "finite alpha0, or simulate the features (model='features')")
    d = _dimension(dimension, line, fixed["beta"], runs)
    J, rank = 1 if axis is None else len(axis), getattr(theory, "rank", 1)
    if d < J + rank + 1:
        raise BadInput(f"{theory.name}: {J} directions and spikes along {rank} need a dimension of {J + rank + 1} or more, not {d}")
    p, n = round(fixed["beta"]*d), np.rint(line*d).astype(int)
    if min(p, n.min()) < 1:
        raise BadInput(f"{theory.name}: at d = {d} there would be {p} neurons and {n.min()} samples; take a larger dimension")
    if test < 1 or int(test) != test:
        raise BadInput(f"{theory.name}: test is a number of samples, not {test!r}")
    loss, binary = _loss(theory)
    largest = p*(min(n.max(), p) if loss is None else n.max())
    most_held = 20_000_000  # numbers in a matrix that is held whole
    if largest > most_held*10:
        raise BadInput(f"{theory.name}: at d = {d} the experiment would hold {8*largest/1e9:.0f} GB; take a smaller dimension")
    letters = tuple(map(float, getattr(theory, "vocabulary", None) or (1.0,)))
    fractions = tuple(map(float, getattr(theory, "fractions", None) or (1.0,)*len(letters)))
    setting = OneStepSetting(
        sigma=_function(theory.sigma, fixed), slope=_slope(theory, fixed) if model == "network" else None,
        g=_function(theory.g, fixed), loss=loss, binary=binary, model=model, rows=getattr(theory, "rows", "sphere"),
        letters=letters, fractions=fractions, layer=_layer(theory, fixed, axis, letters), numbers=fixed, theory=theory, d=d, p=p,
        samples=tuple(np.sort(n).tolist()), test=int(test), axis=axis, steps=steps, biases=biases)
    shown = {k: v for k, v in fixed.items() if k not in ("dimension", "epsilon")}
    return setting, line, {**theory.described(shown), "dimension": d, "model": model}


def _model(theory: Any, model: str | None, fixed: Mapping[str, float]) -> str:
    if model is None:
        return "network" if getattr(theory, "network", "srf") == "exact" else "features"
    if model not in MODELS:
        raise UnknownName(str(model)[:60], MODELS, "model of the experiment")
    return model


def _axis(theory: Any, fixed: Mapping[str, float]) -> Array | None:
    """The spike's direction between those of the target; None for one direction."""
    if not isinstance(theory.g, DirectedTarget):
        return None
    if hasattr(theory, "layer_of"):
        return np.zeros(len(theory.g.variables))
    found: Array = theory.axis_of(fixed)
    return found


def _dimension(dimension: int | None, line: Array, beta: float, runs: int) -> int:
    """The given d; by default the largest of a few whose cost, for all seeds, is bearable."""
    # among which the default is chosen by its cost
    dimensions = (200, 300, 400, 500, 600, 800, 1000)
    most = 4e11  # multiplications that a default dimension may cost in all
    if dimension is None:
        def cost(d: int) -> float:
            n, p = line.max()*d, beta*d
            return runs*(2*(n + _TEST)*d*p + n*p*p + len(line)*min(n, p)**3)

        return max((d for d in dimensions if cost(d) <= most), default=dimensions[0])
    if isinstance(dimension, bool) or not np.isfinite(dimension) or int(dimension) != dimension or dimension < 3:
        raise BadInput(f"the dimension of an experiment is an integer of 3 or more, not {dimension!r}")
    return int(dimension)


def _function(activation: Any, fixed: Mapping[str, float]) -> Callable[[Array], Array]:
    """A compiled function of one array, its parameters put in."""
    from hermitex.kernels.compile import compile

    if isinstance(activation, DirectedTarget):
        several = compile(activation.expr)
        return lambda u: np.asarray(several(**{v.name: u[:, j] for j, v in enumerate(activation.variables)}))
    kernel = compile(activation(z))
    own = {name: fixed[name] for name in kernel.parameters if name != "z"}
    if "z" not in kernel.parameters:
        return lambda u: np.full(np.shape(u), kernel(**own))
    return lambda u: np.asarray(kernel(z=u, **own))


def _slope(theory: Any, fixed: Mapping[str, float]) -> Callable[[Array], Array]:
    from sympy import DiracDelta

    if "alpha0" not in fixed or "eta" not in fixed:
        raise BadInput(f"{theory.name}: a network is trained by a gradient step: give alpha0 and eta, not r, c, gamma")
    if fixed.get("bias"):
        raise BadInput(f"{theory.name}: the network of the experiment has no bias; simulate the features (model='features')")
    slope = theory.sigma.weak_derivative
    if slope.expr.has(DiracDelta):
        raise BadInput(f"{theory.name}: {theory.sigma.name} jumps, and has no gradient; simulate the features (model='features')")
    return _function(slope, fixed)


def _layer(theory: Any, fixed: Mapping[str, float], axis: Array | None, letters: tuple[float, ...]) -> Layer:
    """The spikes, overlaps and norms that the theory has."""
    if hasattr(theory, "layer_of"):
        found: Layer = theory.layer_of(fixed)
        return found
    c = np.array([fixed.get(f"c{k}", fixed["c"]) for k in range(1, len(letters) + 1)])
    return Layer(fixed["r"]*np.array(letters)[:, None], fixed["gamma"]*(np.ones(1) if axis is None else axis)[:, None], c)


def _loss(theory: Any) -> tuple[ConvexLoss | None, bool]:
    """The loss as functions (None: ridge), and whether the labels are +-1."""
    if theory.loss == "square":
        return None, False
    return convex_loss(theory.loss.expr), bool(theory.binary)
