"""Exponents -> sample complexities: the dictionary, with the theorem, the hypotheses and the source of each entry."""

from __future__ import annotations

from dataclasses import dataclass

from sympy import Rational


@dataclass(frozen=True)
class Rate:
    """One algorithm's rate: what it asks for, under which hypotheses, who proved it; `time`: its operations where known."""

    algorithm: str
    statement: str
    hypotheses: str
    sources: tuple[str, ...]
    status: str = "theorem"
    time: str = ""


RATES: dict[str, Rate] = {
    "kernel": Rate("kernel methods and random features",
                   "n = d^k samples learn the part of degree <= k, and no more; error ||P_{>k} g||^2",
                   "rotation-invariant kernel, isotropic inputs, square loss", ("mei2022hypercontractivity",)),
    "one_pass_sgd": Rate("one-pass SGD",
                         "n = d if l = 1, d log d if l = 2, d^(l-1) above; l the rotation-invariant leap",
                         "correlation or square loss, fresh samples, small step", ("benarous2021", "abbe2023"),
                         time="n d for each neuron: a step takes one sample"),
    "csq": Rate("correlational statistical queries", "n >= d^max(1, l/2)",
                "queries E[Y phi(x)] with tolerance n^(-1/2)",
                ("damian2023",)),
    "smoothed_sgd": Rate("one-pass SGD on a smoothed loss", "n = d^max(1, l/2) up to logarithms: the bound of csq is reached",
                         "one direction, fresh samples, correlation loss averaged over a sphere around the weights; several "
                         "directions are open", ("damian2023",)),
    "one_giant_step": Rate("one giant gradient step", "n = d^l1, l1 the first order; learns the span of C_l1 only",
                           "one step of size growing with d, two-layer network", ("dandi2023giant",),
                           time="n d for each neuron"),
    "batch_reuse": Rate("SGD that reuses its batch", "n = d if k* = 1, d log d if k* = 2",
                        "two passes over each batch; activation generic; a large enough learning rate, see small_step_reuse",
                        ("dandi2024reusing", "arnaboldi2024", "tsiolis2025")),
    "small_step_reuse": Rate("SGD that reuses its batch in small steps",
                             "that of one-pass SGD; at a rate d^(-s) the least of d^(l-1) and d^(max(l_j - 1, 1) + 2 s j), j >= 1, "
                             "l_j the information exponent of Y^(j+1), l >= 3",
                             "one direction, s large enough; several directions are open", ("tsiolis2025",),
                             "theorem in certain cases (a transition between the two exponents), heuristic as written"),
    "full_batch": Rate("full-batch gradient descent",
                       "n = d in finitely many steps if k* = 1; if k* = 2 finitely many steps find nothing, and that about log d "
                       "do is a conjecture",
                       "all n samples at each step of rate O(1), two-layer network, activation and rate generic",
                       ("dandi2024reusing",), "theorem if k* = 1, open above", time="n d for each neuron and step"),
    "absolute_loss": Rate("gradient methods on the absolute loss",
                          "sparse functions of independent coordinates: the square loss asks for what csq does, the absolute loss "
                          "for what any statistical query does; Gaussian directions are open",
                          "differentiable learning queries, product distributions", ("joshi2024",)),
    "low_degree": Rate("low-degree and statistical-query methods", "n = d^max(1, k*/2)",
                       "low-degree hardness conjecture below; a spectral or tensor method above", ("damian2024", "damian2025"),
                       "theorem above, conjecture below"),
    "spherical": Rate("inputs with another rotation-invariant law",
                      "each degree of spherical harmonics has a rate of its own, in which the law of |x| counts: open from g "
                      "alone; tensor unfolding reaches the least n, online SGD the least run time, perhaps no method both",
                      "one direction, spherically symmetric inputs", ("joshi2025",)),
    "run_time": Rate("operations of the fastest estimator",
                     "d^(max(1, k*/2) + 1) up to logarithms: each sample of low_degree is read once",
                     "one direction, Gaussian inputs; several directions are open", ("damian2024", "joshi2025"),
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
    online = None if leap is None else "d log d" if leap == 2 else power(max(1, leap - 1))
    csq = None if leap is None else power(max(Rational(1), Rational(leap, 2)))
    low = None if generative is None else max(Rational(1), Rational(generative, 2))
    return {
        "kernel": kernel,
        "one_pass_sgd": online,
        "csq": csq,
        "smoothed_sgd": csq if single or csq is None else "open",
        "one_giant_step": None if first is None else power(first),
        "batch_reuse": None if generative is None else {1: "d", 2: "d log d"}.get(generative, "open"),
        "small_step_reuse": online if single or online is None else "open",
        "full_batch": None if generative is None else "d" if generative == 1 else "open",
        "absolute_loss": None if leap is None else "open",
        "low_degree": None if low is None else power(low),
        "spherical": None if generative is None else "open",
        "run_time": None if low is None else power(low + 1) if single else "open",
        "amp": None if generative is None else "d" if generative <= 2 else "none",
    }
