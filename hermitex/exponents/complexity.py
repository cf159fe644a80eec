"""Exponents -> sample complexities: the dictionary, with the theorem, the hypotheses and the source of each entry."""

from __future__ import annotations

from dataclasses import dataclass

from sympy import Rational


@dataclass(frozen=True)
class Rate:
    """One algorithm's rate: what it asks for, under which hypotheses, who proved it."""

    algorithm: str
    statement: str
    hypotheses: str
    sources: tuple[str, ...]
    status: str = "theorem"


RATES: dict[str, Rate] = {
    "kernel": Rate("kernel methods and random features",
                   "n = d^k samples learn the part of degree <= k, and no more; error ||P_{>k} g||^2",
                   "rotation-invariant kernel, isotropic inputs, square loss", ("mei2022hypercontractivity",)),
    "one_pass_sgd": Rate("one-pass SGD",
                         "n = d if l = 1, d log d if l = 2, d^(l-1) above; l the rotation-invariant leap",
                         "correlation or square loss, fresh samples, small step", ("benarous2021", "abbe2023")),
    "csq": Rate("correlational statistical queries", "n >= d^max(1, l/2)",
                "queries E[Y phi(x)] with tolerance n^(-1/2)",
                ("damian2023",)),
    "smoothed_sgd": Rate("one-pass SGD on a smoothed loss", "n = d^max(1, l/2) up to logarithms: the bound of csq is reached",
                         "one direction, fresh samples, correlation loss averaged over a sphere around the weights; several "
                         "directions are open", ("damian2023",)),
    "one_giant_step": Rate("one giant gradient step", "n = d^l1, l1 the first order; learns the span of C_l1 only",
                           "one step of size growing with d, two-layer network", ("dandi2023giant",)),
    "batch_reuse": Rate("SGD that reuses its batch", "n = d if k* = 1, d log d if k* = 2",
                        "two passes over each batch; activation generic; a large enough learning rate: small steps keep the "
                        "information exponent (arXiv 2510.21020)", ("dandi2024reusing", "arnaboldi2024")),
    "low_degree": Rate("low-degree and statistical-query methods", "n = d^max(1, k*/2)",
                       "low-degree hardness conjecture below; a spectral or tensor method above", ("damian2024", "damian2025"),
                       "theorem above, conjecture below"),
    "amp": Rate("Bayes-AMP", "weak recovery at n = alpha d for alpha > alpha_c; none if k* >= 3",
                "proportional regime, Bayes-optimal denoiser", ("troiani2025",), "theorem for AMP, conjecture for other methods"),
}


def power(exponent: Rational | int) -> str:
    """d to a power, as the contract writes it.

    >>> power(Rational(3, 2)), power(1), power(0)
    ('d^(3/2)', 'd', '1')
    """
    exponent = Rational(exponent)
    if exponent == 0:
        return "1"
    if exponent == 1:
        return "d"
    return f"d^{exponent}" if exponent.is_Integer else f"d^({exponent})"


def complexity(*, degree: int | None, square_integrable: bool | None, first: int | None, leap: int | None,
               generative: int | None, single: bool = False) -> dict[str, str | None]:
    """The dictionary of sample complexities.

    Parameters
    ----------
    degree : degree of E[Y|z] if it is a polynomial (0 if constant), else None
    square_integrable : whether E[Y|z] is in L2; if not, the kernel entry does not exist
    first, leap : first order and rotation-invariant leap of E[Y|z], None if they do not exist
    generative : generative exponent (leap), None if it does not exist or is undetermined
    single : whether one direction matters
    """
    kernel = None if not square_integrable else power(degree) if degree is not None else "none"
    return {
        "kernel": kernel,
        "one_pass_sgd": None if leap is None else "d log d" if leap == 2 else power(max(1, leap - 1)),
        "csq": None if leap is None else power(max(Rational(1), Rational(leap, 2))),
        "smoothed_sgd": None if leap is None else power(max(Rational(1), Rational(leap, 2))) if single else "open",
        "one_giant_step": None if first is None else power(first),
        "batch_reuse": None if generative is None else {1: "d", 2: "d log d"}.get(generative, "open"),
        "low_degree": None if generative is None else power(max(Rational(1), Rational(generative, 2))),
        "amp": None if generative is None else "d" if generative <= 2 else "none",
    }
