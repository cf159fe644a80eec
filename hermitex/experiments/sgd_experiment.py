r"""m(t) against d = 500: one-pass SGD of one neuron on the sphere, each sample seen once, or twice (extragradient).

    h = <w, x>,   htilde = h + (repetition/d) dl(h) |x|^2,   w <- (w + gamma dl(htilde) (x - h w))/|...|,   gamma = step/d

with dl(h) = y sigma'(h) (correlation) or (y - sigma(h)) sigma'(h) (square). All seeds move together; seed s draws from
``SeedSequence(s)``, in chunks, so that the memory does not grow with the number of samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hermitex.errors import BadInput, UnknownName
from hermitex.experiments.statistics import mean_and_error, seeds_of
from hermitex.symbols import z
from hermitex.systems.names import read_start
from hermitex.theories.curve import Curve

Array = np.ndarray[Any, Any]
MODELS = ("vectors", "overlaps")
_CHUNK = 1_000_000  # numbers drawn at once: 8 MB


@dataclass(frozen=True, eq=False)
class SGDSetting:
    """One run: functions of arrays, sizes, and the samples after which the overlaps are recorded."""

    student: Callable[[Array], Array]
    slope: Callable[[Array], Array]
    label: Callable[[Array], Array]
    loss: str
    model: str
    d: int
    r: int
    start: Array
    gamma: float
    repetition: float
    records: tuple[int, ...]

    def gradient(self, y: Array, h: Array) -> Array:
        """-dl/dh of the loss at pre-activations h."""
        return (y if self.loss == "correlation" else y - self.student(h))*self.slope(h)

    def moved(self, y: Array, h: Array, square: Array) -> Array:
        """The gradient at the pre-activation that the first look at the sample leaves behind; `square` is |x|^2."""
        first = self.gradient(y, h)
        return first if not self.repetition else self.gradient(y, h + self.repetition/self.d*first*square)

    def run(self, seeds: tuple[int, ...], progress: Callable[[int, int], None] | None = None) -> Array:
        """Overlaps, shape (seeds, records, r)."""
        walk = self.walk(seeds)
        found, total, done = [], self.records[-1], 0
        m = next(walk)
        for record in self.records:
            while done < record:
                m, done = next(walk), done + 1
            found.append(m.copy())
            if progress is not None:
                progress(int(len(seeds)*done/max(total, 1)), len(seeds))
        return np.stack(found, axis=1)

    def walk(self, seeds: tuple[int, ...]) -> Iterator[Array]:
        """The overlaps (seeds, r) after 0, 1, 2, ... samples."""
        rngs = [np.random.default_rng(np.random.SeedSequence(s)) for s in seeds]
        return self._vectors(rngs) if self.model == "vectors" else self._overlaps(rngs)

    def _vectors(self, rngs: list[np.random.Generator]) -> Iterator[Array]:
        """The weights themselves; the directions of the target are the first r axes."""
        w = np.stack([rng.standard_normal(self.d) for rng in rngs])
        w[:, :self.r] = self.start
        rest = w[:, self.r:]
        rest *= (np.sqrt(1 - self.start @ self.start)/np.linalg.norm(rest, axis=1))[:, None]
        yield w[:, :self.r]
        chunk = max(1, _CHUNK//(self.d*len(rngs)))
        while True:
            x = np.stack([rng.standard_normal((chunk, self.d)) for rng in rngs], axis=1)
            y, squares = self.label(x[..., :self.r]), np.einsum("csd,csd->cs", x, x)
            for now in range(chunk):
                h = np.einsum("sd,sd->s", w, x[now])
                w += self.gamma*self.moved(y[now], h, squares[now])[:, None]*(x[now] - h[:, None]*w)
                w /= np.sqrt(np.einsum("sd,sd->s", w, w))[:, None]
                yield w[:, :self.r]

    def _overlaps(self, rngs: list[np.random.Generator]) -> Iterator[Array]:
        """The same law, with draws of the projections that matter only: h, the target's z, and |x|^2."""
        m = np.repeat(self.start[None], len(rngs), axis=0)
        yield m
        chunk = max(1, _CHUNK//((self.r + 2)*len(rngs)))
        while True:
            x = np.stack([rng.standard_normal((chunk, self.r + 1)) for rng in rngs], axis=1)
            others = np.stack([rng.chisquare(self.d - self.r - 1, chunk) for rng in rngs], axis=1)
            y, squares = self.label(x[..., :self.r]), np.einsum("csd,csd->cs", x, x) + others
            for now in range(chunk):
                z, own = x[now, :, :self.r], x[now, :, self.r]
                h = np.einsum("sr,sr->s", m, z) + np.sqrt(np.maximum(0.0, 1 - np.einsum("sr,sr->s", m, m)))*own
                push = self.gamma*self.moved(y[now], h, squares[now])
                norm = np.sqrt(1 + push**2*(squares[now] - h**2))
                m = (m + push[:, None]*(z - h[:, None]*m))/norm[:, None]
                yield m


def simulate(theory: Any, t: Any, *, dimension: Any = None, seeds: int | Iterable[int] = 16, model: str | None = None,
             repetition: float = 0.0, start: Mapping[str, float] | None = None,
             progress: Callable[[int, int], None] | None = None, **numbers: Any) -> Curve:
    r"""Spherical SGD with fresh samples at finite size -> Curve of overlaps along t, with standard errors over the seeds.

    Parameters
    ----------
    theory : ``hx.theories.sgd(sigma, g)``: functions, loss and directions are taken from it
    t : times gamma n, increasing; after round(t d/step) samples the overlaps are recorded
    dimension : d (default: 500)
    seeds : how many (0, 1, ...), or which
    model : "vectors", weights and inputs in d dimensions; "overlaps", the same law with only the components drawn that matter
        (the overlaps are a Markov chain), for large d
    repetition : size of a first step on the same sample, times d; 0: each sample is seen once. Student and size decide how much
        of the label's powers is seen: ``theory.repeated(repetition)`` has `.growth`, which must be positive, the best `.step`,
        and `.signal`, with n = d log d/signal samples; an even student such as sqrt(1 + z**2) makes the most of an even target
    numbers : m0 (default d^(-1/2)), step (gamma d; default a tenth of the largest that the noise allows, d^(1 - max(1, l/2)), with
        repetition half of ``theory.repeated(repetition).step``)

    Returns
    -------
    Curve : values m (or m1, m2, ...) and length = |m|, which does not see the sign, in several directions also length1 = |m1|,
    ...; `standard_error`; `seeds`; axis t.

    Raises
    ------
    BadInput : what the theory refuses; a student that jumps (no gradient); more than 20 million samples.

    Examples
    --------
    >>> from hermitex.theories import sgd
    >>> simulate(sgd("erf", "sign"), [0, 2], dimension=100, step=0.1, seeds=4)["m"].round(1)
    array([0.1, 0.8])
    """
    chosen = seeds_of(seeds)
    setting, line, parameters = prepare(theory, t, numbers, dimension, model, repetition, start)
    found = setting.run(chosen, progress)
    columns = {name: found[..., i] for i, name in enumerate(theory.order_parameters)}
    columns["length"] = np.sqrt(np.sum(found**2, axis=-1))
    if len(columns) > 2:  # where the label allows a sign, runs of both would cancel
        columns.update({name.replace("m", "length"): np.abs(found[..., i]) for i, name in enumerate(theory.order_parameters)})
    values, errors = {}, {}
    for name, samples in columns.items():
        mean, error = mean_and_error(samples)
        # The start, which all seeds share, has no error; its mean is exact.
        values[name], errors[name] = np.where(error < 1e-14, samples[0], mean), np.where(error < 1e-14, 0.0, error)
    return Curve(theory.name, parameters, line, values, tuple(values), standard_error=errors, seeds=chosen, axis="t",
                 title=f"experiment, d = {setting.d}" + (", each sample twice" if repetition else ""), sources=theory.sources)


def prepare(theory: Any, t: Any, numbers: Mapping[str, Any], dimension: Any, model: str | None, repetition: Any,
            start: Mapping[str, float] | None) -> tuple[SGDSetting, Array, dict[str, Any]]:
    """The checked setting, the times, and the parameters that the curve shows."""
    line = theory.times(t)
    d = _dimension(dimension, len(theory.order_parameters))
    if model is not None and model not in MODELS:
        raise UnknownName(str(model)[:60], MODELS, "model of the experiment")
    given = theory.given({**numbers, "dimension": d, "repetition": repetition})
    fixed = {k: float(v) for k, v in theory.complete(given).items() if k != "t"}
    step = fixed["step"] or _step(theory, d, float(repetition))
    records = tuple(np.rint(line*d/step).astype(int).tolist())
    most_steps = 20_000_000  # samples of one run; chosen by trial
    if records[-1] > most_steps:
        raise BadInput(f"sgd: {records[-1]:.3g} samples would be drawn; take a larger step than {step:.3g}, or shorter times")
    names = theory.order_parameters
    first = np.full(len(names), fixed["m0"])
    for name, value in read_start(start, "'m': 0.1").items():
        if name not in names:
            raise UnknownName(name, names, "overlap")
        first[names.index(name)] = value
    if first @ first >= 1:
        raise BadInput("sgd: the overlaps at the start do not fit into the unit sphere; take a smaller m0 or a larger dimension")
    setting = SGDSetting(_function(theory.sigma.expr), _slope(theory), _label(theory), getattr(theory, "loss", "correlation"),
                      model or "vectors", d, len(names), first, step/d, float(repetition), records)
    shown = {**theory.described(fixed), "dimension": d, "step": step, "model": setting.model, "repetition": float(repetition)}
    return setting, line, shown


def _dimension(dimension: Any, r: int) -> int:
    default = 500  # overlaps fluctuate by d^-1/2 = 4 %
    d = default if dimension is None else dimension
    if isinstance(d, bool) or not np.isfinite(d) or int(d) != d or d < r + 2:
        raise BadInput(f"the dimension of this experiment is an integer of {r + 2} or more, not {d!r}")
    return int(d)


def _step(theory: Any, d: int, repetition: float) -> float:
    """A tenth of the largest step that the noise allows; with repetition half of the step that takes the fewest samples."""
    best = theory.repeated(repetition).step if repetition else 0.0
    return best/2 or 0.1*float(d)**(1 - exponent(theory))


def exponent(theory: Any) -> float:
    """max(1, l/2), l the lowest order with a signal of the target for the student."""
    found = float(getattr(theory, "step_exponent", float("nan")))
    return found if np.isfinite(found) else 1.0


def _function(expr: Any) -> Callable[[Array], Array]:
    """A function of one array; the plain one of NumPy where there is one, since it is called once a sample."""
    from hermitex.kernels.averages import compiled
    from hermitex.kernels.compile import compile

    made = compiled(expr, z, np.array([-50.0, 50.0]))
    if made is not None:
        return made[0]
    kernel = compile(expr, "z")
    return lambda u: np.asarray(kernel(u))


def _slope(theory: Any) -> Callable[[Array], Array]:
    from sympy import DiracDelta

    derivative = theory.sigma.weak_derivative
    if derivative.expr.has(DiracDelta):
        raise BadInput(f"sgd: {theory.sigma.name} jumps, and has no gradient on a sample")
    return _function(derivative.expr)


def _label(theory: Any) -> Callable[[Array], Array]:
    """(..., r) -> (...): the target at its directions, a whole chunk at once."""
    from hermitex.kernels.compile import compile

    variables = getattr(theory, "variables", None)
    if variables is None:
        one = _function(theory.g.expr)
        return lambda x: one(x[..., 0])
    kernel = compile(theory.g, *(v.name for v in variables))
    return lambda x: np.asarray(kernel(*np.moveaxis(x, -1, 0)))
