r"""phi_i(x) = sigma(w_i.x + b_k + U_k.kappa),   kappa = V^T x in R^m,   z = Gamma kappa + S zeta: spikes of several directions.

The neurons of letter k (a fraction pi_k, |w_i|^2 = c_k) have the spike V U_k with V orthonormal, and Gamma = Theta^T V are the
overlaps with the target's directions. The equations are those of a vocabulary, which is m = 1 with U_k = r u_k, averaged over
kappa in R^m.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hermitex.errors import NO_NUMBER, BadInput, brief
from hermitex.symbolic.activations import activation
from hermitex.systems.system import System
from hermitex.theories.directions import target_of
from hermitex.theories.spike import require_ranges
from hermitex.theories.spike_span import Array, Layer, layer_names, layer_numbers, variables_of
from hermitex.theories.vocabulary import VocabularyOneStep, independent_rows


@dataclass(frozen=True, repr=False)
class LettersInSpan(VocabularyOneStep):
    """Letters whose spikes span several directions: ridge regression at the U_k, Gamma and c_k that a subclass says."""

    @property
    def rank(self) -> int:
        """m, the number of directions that the spikes span."""
        raise NotImplementedError

    def _build(self, **how: bool) -> System:
        return independent_rows(self.sigma, self.g, len(self.vocabulary), self.biases is not None, self.rank, **how)

    def checked_numbers(self, numbers: dict[str, Array], *needed: str) -> dict[str, Array]:
        """The numbers in their ranges, with pi_k, b_k and epsilon = 1/d."""
        one = np.asarray(1.0)
        require_ranges(self.name, numbers, needed=needed)
        done = {f"pi{k}": share*one for k, share in enumerate(self.fractions, start=1)}
        done |= {f"b{k}": b*one for k, b in enumerate(self.biases or (), start=1)}
        return {**numbers, **done, "epsilon": 1/numbers.get("dimension", np.asarray(np.inf))}

    def _layer_names(self) -> tuple[list[list[str]], list[list[str]]]:
        return layer_names(len(self.vocabulary), len(variables_of(self.g)), self.rank)

    def layer_of(self, numbers: Mapping[str, Any]) -> Layer:
        """The layer in complete numbers."""
        U, overlaps = self._layer_names()
        c = [f"c{k}" for k in range(1, len(self.vocabulary) + 1)]
        shape = np.broadcast_shapes(*(np.shape(numbers[n]) for n in (*U[0], *c)))

        def table(names: list[str]) -> Array:
            return np.stack([np.broadcast_to(numbers[n], shape) for n in names], axis=-1)

        spikes, along = (np.stack([table(row) for row in rows], axis=-2) for rows in (U, overlaps))
        return Layer(spikes, along, table(c))

    def described(self, fixed: Mapping[str, float]) -> dict[str, Any]:
        """As of a vocabulary, without the numbers that say the layer."""
        U, overlaps = self._layer_names()
        own = {n for row in (*U, *overlaps) for n in row}
        return super().described({n: v for n, v in fixed.items() if n not in own and n != "size" and n[:2] not in ("L_", "Q_")})

    def of_optimum(self, found: Any) -> str:
        return ""


@dataclass(frozen=True, repr=False)
class SpikedLetters(LettersInSpan):
    """Ridge regression on features with given spikes U_k in R^m and overlaps Gamma.

    spikes : U_k, one row of m numbers for each letter; overlaps : Gamma = Theta^T V, one row of m for each direction of the target

    >>> two = SpikedLetters.given_spikes("relu", "z1 + z1*z2", [[1.2, 0], [0, 1.5]], [[0.9, 0], [0, 0.8]], norms=[1, 1.2])
    >>> round(two.solve(alpha=2.5, beta=0.8, lam=0.05)["test_error"], 8)
    1.56679941
    """

    spikes: tuple[tuple[float, ...], ...] = ()
    overlaps: tuple[tuple[float, ...], ...] = ()
    NUMBERS: ClassVar[tuple[str, ...]] = ("alpha", "beta", "lam", "Delta", "c", "bias", "dimension")

    @classmethod
    def given_spikes(cls, sigma: Any, g: Any, spikes: Any, overlaps: Any, fractions: Any = None, norms: Any = None,
                     biases: Any = None) -> SpikedLetters:
        """From what a user types: lists of rows."""
        U, overlap = (_rows(n, v) for n, v in (("spikes", spikes), ("overlaps", overlaps)))
        plain = VocabularyOneStep.of(sigma, g, [1.0]*len(U), fractions, norms, biases=biases)
        return cls(activation(sigma), target_of("one-step", g), plain.vocabulary, plain.fractions, plain.norms, "sphere",
                   plain.biases, U, overlap)

    def __post_init__(self) -> None:
        super().__post_init__()
        count = len(variables_of(self.g))
        if len(self.overlaps) != count or {len(row) for row in self.overlaps} != {self.rank}:
            raise BadInput(f"one-step: overlaps has {count} x {self.rank} numbers, a row for each direction of the target and a "
                           f"column for each axis of the spikes, not {' x '.join(map(str, np.shape(self.overlaps)))}")
        if (largest := np.linalg.norm(self.overlaps, 2)) > 1 + 1e-12:
            raise BadInput(f"one-step: the overlaps are those of orthonormal directions, Gamma^T Gamma <= 1; the largest singular "
                           f"value of these is {largest:.6g}")

    @property
    def rank(self) -> int:
        """m, the length of a row of `spikes`."""
        return len(self.spikes[0])

    def complete(self, numbers: dict[str, Array]) -> dict[str, Array]:
        """The numbers checked, with U_k, Gamma, pi_k, c_k; c is the mean of the c_k over the neurons."""
        if self.norms is not None:
            numbers = {**numbers, "c": np.asarray(np.dot(self.fractions, self.norms))}
        done = self.checked_numbers(numbers, "alpha", "lam", "c")
        c = np.stack([np.asarray(v) for v in self.norms or [done["c"]]*len(self.vocabulary)], axis=-1)
        return {**done, **layer_numbers(Layer(np.array(self.spikes), np.array(self.overlaps), c), self.g)}

    def described(self, fixed: Mapping[str, float]) -> dict[str, Any]:
        """The spikes and overlaps in place of a vocabulary."""
        shown = super().described(fixed)
        del shown["vocabulary"]
        return {**shown, "spikes": [list(row) for row in self.spikes], "overlaps": [list(row) for row in self.overlaps]}


def _rows(name: str, given: Any) -> tuple[tuple[float, ...], ...]:
    """A table of numbers, rows of one length."""
    try:
        found = np.array(given, dtype=float) if isinstance(given, Sequence | np.ndarray) else np.empty(0)
    except NO_NUMBER:
        found = np.empty(0)
    if found.ndim != 2 or not found.size or not np.all(np.isfinite(found)):
        raise BadInput(f"one-step: {name} = {brief(given)} is not a table of finite numbers, rows of one length: [[1, 0], [0, 1]]")
    return tuple(map(tuple, found.tolist()))
