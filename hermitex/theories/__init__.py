"""The theories by name: ``hermitex.theories.one_step(sigma, g)``; importing this computes nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from hermitex.errors import BadInput, no_attribute, public

if TYPE_CHECKING:  # what a type checker and an editor read; a test holds it to the table below
    from hermitex.hints import Formula
    from hermitex.theories.batch_reuse import batch_reuse as batch_reuse
    from hermitex.theories.bounds import Bounds as Bounds
    from hermitex.theories.bounds import bounds as bounds
    from hermitex.theories.claims import Claims as Claims
    from hermitex.theories.committee import committee as committee
    from hermitex.theories.conditional_coefficients import mu as mu
    from hermitex.theories.conditional_coefficients import mu_star as mu_star
    from hermitex.theories.covariate import covariate as covariate
    from hermitex.theories.curve import Curve as Curve
    from hermitex.theories.floor import floor as floor
    from hermitex.theories.giant_step import giant_step as giant_step
    from hermitex.theories.glm import glm as glm
    from hermitex.theories.intermediate_step import intermediate_step as intermediate_step
    from hermitex.theories.kernel_limit import KernelLimit as KernelLimit
    from hermitex.theories.kernel_limit import kernel_limit as kernel_limit
    from hermitex.theories.kernels.dual import dual_kernel as dual_kernel
    from hermitex.theories.kernels.product import inner_product_kernel as inner_product_kernel
    from hermitex.theories.kernels.ridge import kernel_ridge as kernel_ridge
    from hermitex.theories.marchenko_pastur import MarchenkoPastur as MarchenkoPastur
    from hermitex.theories.mean_field_parity import mean_field_parity as mean_field_parity
    from hermitex.theories.multi_index import multi_index as multi_index
    from hermitex.theories.random_features import random_features as random_features
    from hermitex.theories.repetition import Repetition as Repetition
    from hermitex.theories.repetition import repetition as repetition
    from hermitex.theories.ridge_equivalent import ridge_equivalent as ridge_equivalent
    from hermitex.theories.risks.plane import bounds_map as bounds_map
    from hermitex.theories.sgd import SGD as SGD
    from hermitex.theories.sgd import sgd as sgd
    from hermitex.theories.small_step import small_step as small_step
    from hermitex.theories.small_step import small_step_ridge as small_step_ridge
    from hermitex.theories.source_capacity import source_capacity as source_capacity
    from hermitex.theories.spectral import spectral as spectral
    from hermitex.theories.spectrum import Spectrum as Spectrum
    from hermitex.theories.spectrum import spectrum as spectrum
    from hermitex.theories.spike import spike as spike
    from hermitex.theories.spiked_covariance import spiked_covariance as spiked_covariance
    from hermitex.theories.target import target_moments as target_moments
    from hermitex.theories.theory import Theory as Theory
    from hermitex.theories.tree import tree as tree

# public name -> its module, where that is not called like the name
_ELSEWHERE = {
    "mu": "conditional_coefficients", "mu_star": "conditional_coefficients", "target_moments": "target", "Bounds": "bounds",
    "Spectrum": "spectrum", "MarchenkoPastur": "marchenko_pastur", "bounds_map": "risks.plane", "SGD": "sgd",
    "Repetition": "repetition", "KernelLimit": "kernel_limit", "kernel_ridge": "kernels.ridge", "dual_kernel": "kernels.dual",
    "inner_product_kernel": "kernels.product", "small_step_ridge": "small_step", "Claims": "claims", "Curve": "curve",
    "Theory": "theory",
}
# public name -> (module, its name there)
_PUBLIC = {name: (_ELSEWHERE.get(name, name), name) for name in (
    "random_features", "spike", "glm", "multi_index", "mu", "mu_star", "target_moments", "bounds", "Bounds", "spectral", "spectrum",
    "Spectrum", "MarchenkoPastur", "bounds_map", "sgd", "SGD", "batch_reuse", "repetition", "Repetition", "kernel_limit",
    "KernelLimit", "ridge_equivalent", "kernel_ridge", "dual_kernel", "inner_product_kernel", "covariate", "source_capacity",
    "small_step", "small_step_ridge", "intermediate_step", "tree", "committee", "floor", "giant_step", "mean_field_parity",
    "spiked_covariance", "Claims", "Curve", "Theory")}
# name on the command line and in a spec -> public name
_BY_NAME = {"one-step": "one_step", "random-features": "random_features", "glm": "glm", "sgd": "sgd", "bayes-amp": "multi_index",
            "kernel": "kernel_limit", "ridge": "ridge_equivalent", "kernel-ridge": "kernel_ridge", "small-step": "small_step",
            "source-capacity": "source_capacity", "covariate": "covariate", "tree": "tree", "giant-step": "giant_step",
            "committee": "committee", "spiked-covariance": "spiked_covariance",
            "mean-field-parity": "mean_field_parity", "batch-reuse": "batch_reuse", "spectral": "spectral",
            "small-step-ridge": "small_step_ridge", "intermediate-step": "intermediate_step"}


def one_step(sigma: Formula, g: Formula, *, loss: Formula = "square", network: str = "srf",
             vocabulary: Sequence[float] | None = None, fractions: Sequence[float] | None = None,
             norms: Sequence[float] | None = None, rows: str = "sphere", steps: int = 1,
             biases: Sequence[float] | None = None, spikes: Sequence[Sequence[float]] | None = None,
             overlaps: Sequence[Sequence[float]] | None = None) -> Theory:
    """The theory of one giant gradient step; functions and structure here, numbers in ``.solve`` and ``.curve``.

    Test and train error of the readout a_hat = argmin sum (y - <a, phi>/sqrt(p))^2 + lam |a|^2 after one gradient step of
    rate eta d on a batch alpha_0 d: y = g(<theta, x>) + sqrt(Delta) z, p = beta d, n = alpha d fresh samples, d -> oo.

    Parameters
    ----------
    sigma, g : activation and target: a name, text or expression in z, or `Activation`; square integrable. With the square loss
        g may be of several directions, z1, z2, ...: gamma is then the spike's overlap with C_1/|C_1|, C_1 = E[g z], and the
        solution holds psi1, psi2, ... along what is left of each direction
    loss : "square", or a convex loss ("logistic", "hinge", "huber:1", an expression in y and f)
    network : "srf", the equivalent spiked random features of the paper, an approximation of the rows' covariance; "exact", the
        network itself (odd sigma)
    vocabulary, fractions, norms : values of the readout at initialisation, their fractions and the rows' squared norms
    rows : "sphere"; "gaussian" adds the fluctuation of the row norms; "orthogonal" (with a vocabulary) W W^T = 1
    biases : with a vocabulary, what is added to the pre-activations of each letter (`bias` is one number for all)
    steps : of rate eta d each, every one on alpha0 d fresh samples; ``.path(alpha0=, eta=)`` says which direction appears when.
        With a vocabulary each letter has a spike of its own
    spikes, overlaps : in place of a step, letters whose spikes span m directions, sigma(w.x + U_k.kappa): a row U_k of m numbers
        for each letter, and one of the m overlaps Gamma = E[z kappa^T] for each direction of the target; with fractions, norms (or
        c in ``.solve``) and biases as of a vocabulary

    Returns
    -------
    Theory : ``.system`` (the equations), ``.solve(alpha=, beta=1, lam=, Delta=0, alpha0=, eta=)`` -> Solution and
    ``.curve(alpha=[...], ...)`` -> Curve. Instead of alpha0 and eta, r, c and gamma may be given; further numbers are bias=0
    (of every pre-activation) and dimension (d: adds the leading 1/d term).

    Raises
    ------
    BadInput : sigma or g is not square integrable; a structure that does not exist.

    Guarantee
    ---------
    `.solve` and `.curve` return a solution of the equations of the sources, with its error. This is the limit of the sources;
    accuracy at finite dimension is not promised. See docs/promise.md.

    References: cui2024 (Results 3.1-3.3).

    Examples
    --------
    >>> theory = one_step("tanh", "sin")
    >>> round(theory.solve(alpha=0.9, lam=0.1, alpha0=20, eta=3)["test_error"], 10)
    0.0425039287
    """
    from hermitex.theories.directions import DirectedTarget, target_of
    from hermitex.theories.one_step import ROWS, TAKEN, made
    from hermitex.theories.spike import functions

    pair = functions("one-step", sigma, target_of("one-step", g), TAKEN)
    if network not in ("srf", "exact"):
        raise BadInput(f"one-step: network is srf or exact, not {network!r}")
    plain = isinstance(loss, str) and loss.strip() == "square"
    asked = {"loss": not plain, "vocabulary": vocabulary is not None, "network": network != "srf"}
    extras = [n for n, there in asked.items() if there]
    if len(extras) > 1:
        raise BadInput(f"one-step: {' and '.join(extras)} cannot be combined; give one of them")
    if isinstance(pair[1], DirectedTarget) and not plain:
        raise BadInput(f"one-step: the loss {loss} depends on the law of the label given kappa and psi.zeta, which is known for a "
                       "target of one direction z; of z1, z2, ... take loss='square', of which the moments h and h_1 are enough")
    if (spikes is None) != (overlaps is None):
        raise BadInput("one-step: spikes and overlaps are given together: a row for each letter, and one for each direction")
    if spikes is not None:
        if extras or rows != "sphere" or steps != 1:
            raise BadInput(f"one-step: given spikes are for the square loss and spiked features on the sphere; leave "
                           f"{[*extras, 'rows' if rows != 'sphere' else 'steps'][0]} out")
        from hermitex.theories.several_spikes import SpikedLetters

        return SpikedLetters.given_spikes(*pair, spikes, overlaps, fractions, norms, biases)
    if vocabulary is None and any(v is not None for v in (fractions, norms, biases)):
        raise BadInput("one-step: fractions, norms and biases belong to a vocabulary; add vocabulary=[...]")
    if not isinstance(steps, int) or steps != 1:
        if others := [n for n in extras if n != "vocabulary"] or ["rows"]*(rows != "sphere"):
            raise BadInput("one-step: several steps are for the square loss and spiked features on the sphere; leave "
                           f"{others[0]} out")
        from hermitex.theories.several_steps import SeveralSteps, StepsOfLetters

        if vocabulary is None:
            return SeveralSteps(*pair, steps)
        return StepsOfLetters.taken(steps, *pair, vocabulary, fractions, norms, biases=biases)
    if vocabulary is not None:
        from hermitex.theories.vocabulary import VocabularyOneStep

        return VocabularyOneStep.of(*pair, vocabulary, fractions=fractions, norms=norms, rows=rows, biases=biases)
    if rows not in ROWS:
        raise BadInput(f"one-step: rows is {' or '.join(ROWS)}, not {rows!r}")
    if rows != "sphere" and extras:
        raise BadInput(f"one-step: rows={rows!r} is solved for the square loss and network='srf' only")
    if network == "exact":
        from hermitex.theories.network import ExactOneStep

        return ExactOneStep(*pair)
    if not plain:
        from hermitex.theories.convex import ConvexOneStep

        return ConvexOneStep.of(*pair, loss)
    return made(*pair, rows)


class _Registry(Mapping[str, Any]):
    """Name on the command line -> the function that makes the theory; a module is imported when its theory is first used."""

    def __getitem__(self, name: str) -> Any:
        return getattr(sys.modules[__name__], _BY_NAME[name])

    def __iter__(self) -> Iterator[str]:
        return iter(_BY_NAME)

    def __len__(self) -> int:
        return len(_BY_NAME)


THEORIES: Mapping[str, Any] = _Registry()


def _lazy(name: str) -> property:
    @cache
    def made() -> Any:
        module, attribute = _PUBLIC.get(name, ("", name))
        found = getattr(import_module(f"{__name__}.{module}"), attribute) if module else globals()[name]
        return public(found, __name__, name)

    # Importing hermitex.theories.one_step would put the module where the function of that name belongs.
    return property(lambda self: made(), lambda self, value: None)


class _Theories(ModuleType):
    def __getattr__(self, name: str) -> Any:
        by_name = {n.replace("-", "_"): public for n, public in _BY_NAME.items()}  # bayes_amp, as `hermitex curve` calls it
        if name in by_name:
            return getattr(self, by_name[name])
        raise no_attribute("hermitex.theories", name, __all__)

    def __dir__(self) -> list[str]:
        return sorted(__all__)


for _name in (*_PUBLIC, "one_step"):
    setattr(_Theories, _name, _lazy(_name))
sys.modules[__name__].__class__ = _Theories
__all__ = ["one_step", *_PUBLIC, "THEORIES"]  # pyright: ignore
