"""E(g - b mu_0)^2 >= risk >= E(g - b_0 mu_0 - b_1 kappa mu_1)^2: closed-form bounds after one giant gradient step.

upper = E g^2 - <h, mu_0>^2/<mu_0, mu_0>                                                     [cui2024, Eq. (26)]
lower = E g^2 - |P_{mu_0, kappa mu_1} h|^2 - sum_j <mu_1, h_{1,j}>^2/<mu_1, mu_1>             [cui2024, Eq. (27)]
over kappa ~ N(0, 1): mu_k(kappa) of the activation at (r, c), h and h_1 (one for each direction of the target) at gamma. The upper
bound is the risk at lambda -> oo: it bounds the risk at the best ridge, not that at a given ridge, which may be larger. The lower
bound holds for every ridge; the risk reaches it at infinite alpha and beta. (28) minimises them over the learning rate, (132)
over a bias b in sigma(r kappa + b + sqrt(c) z).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hermitex.errors import BadInput, brief
from hermitex.hints import Formula, Numbers
from hermitex.theories.directions import target_of
from hermitex.theories.features.smoothed import Smoothed
from hermitex.theories.risks.bias import over_bias
from hermitex.theories.risks.projection import Projection, conditional_target, project
from hermitex.theories.risks.risk_bounds import Bounds, as_numbers, letters_of
from hermitex.theories.risks.risk_path import optimise_bounds

Array = np.ndarray[Any, Any]

_LARGEST = 1e100  # of r and c, whose squares are numbers
_SHARPEST = 1e8  # r/sqrt(c) beyond which a deviation of the bulk is few floats of a mean


def bounds(sigma: Formula, g: Formula, *, r: Numbers | None = None, c: Numbers | None = None, gamma: Numbers | None = None,
           alpha0: Numbers | None = None, eta: Numbers | None = None, beta: Numbers | None = None, Delta: Numbers = 0.0,
           optimise: bool = False, bias: bool = False, vocabulary: Sequence[float] | None = None,
           norms: Sequence[float] | None = None, biases: Sequence[float] | None = None) -> Bounds:
    """Bounds on the risk after one giant gradient step: lower for every ridge, upper for the best ridge.

    `upper` is the risk at lam -> infinity, so that the best ridge does no worse; at a given lam the risk may exceed it.

    Parameters
    ----------
    sigma, g : activation and target: names, texts or expressions in z; g may be of several directions z1, z2, ...
    r, c, gamma : the spiked features: numbers or arrays that broadcast; c > 0 (default 1), -1 <= gamma <= 1 (default 1)
    alpha0, eta, beta, Delta : or the gradient step they come from (eta is eta_tilde; alpha0 may be inf)
    optimise : minimise over the learning rate, each bound by itself (28)
    bias : also minimise over a bias of every neuron, `upper_bias` and `lower_bias` (132)
    vocabulary, norms, biases : values u_k of the first readout, squared row norms c_k (default c) and biases b_k (default 0) of
        each letter: the richer basis {mu_0^k, kappa mu_1^k} with mu^k at (r u_k, c_k, b_k); biases alone are letters with u_k = 1

    Returns
    -------
    Bounds : absolute error below 1e-12 E g^2 as a rule, estimated in `.error`.

    Raises
    ------
    BadInput : a target that is not square integrable, numbers out of range, both ways of giving the step.

    Guarantee
    ---------
    The bounds are those of the sources, evaluated to `error`. They hold for the model of the source, not for a finite network.
    See docs/promise.md.

    References: cui2024, Eqs. (26)-(28), (132); general gamma and vocabularies go beyond it.

    Examples
    --------
    >>> found = bounds("tanh", "sin", r=0.9)
    >>> round(found.upper, 12), round(found.lower, 12)
    (0.029104900643, 0.001669053251)
    """
    smoothed, g = Smoothed(sigma), target_of("bounds", g)
    if not isinstance(optimise, bool):
        raise BadInput(f"bounds: optimise is True or False, not {brief(optimise)}")
    if optimise:
        if vocabulary is not None or norms is not None or biases is not None:
            raise BadInput("bounds: optimise takes no vocabulary and no biases; give r")
        given = {"r": r, "c": c, "gamma": gamma, "alpha0": alpha0, "Delta": Delta, "eta": eta, "beta": beta}
        return optimise_bounds(smoothed, g, given, bias)
    r, c, gamma = _where(smoothed, g, (r, c, gamma), (alpha0, eta, beta, Delta))
    letters = letters_of("bounds", vocabulary, norms, biases)
    shape = np.broadcast_shapes(r.shape, c.shape, gamma.shape)
    if 0 in shape:
        raise BadInput("bounds: an array of parameters is empty")
    rs, cs, gs = (np.broadcast_to(v, shape).ravel() for v in (r, c, gamma))
    K = len(letters.u)
    at = letters.columns(rs, cs)
    parts = {v: (np.flatnonzero(gs == v), conditional_target(g, float(v))) for v in np.unique(gs)}
    J = next(iter(parts.values()))[1].directions
    found = Projection(*(np.empty((rs.size, *s)) for s in ((), (), (K,), (2*K,), (J, K), ())))
    for rows, target in parts.values():
        part = project([smoothed]*K, target, *(v[rows] for v in at))
        for name in Projection.__dataclass_fields__:
            getattr(found, name)[rows] = getattr(part, name)
    biased = over_bias(smoothed, parts, (rs, cs), letters) if bias else {}
    notes = list(biased.get("notes", ()))
    digits = 1e-9  # a larger error is named in the notes
    if np.any(found.error > digits*np.maximum(1, found.upper)):
        notes.append(f"the bounds hold to +- {np.max(found.error):.0e}: rounding is much of what the columns differ by")

    def shaped(v: Array) -> Any:
        v = v.reshape(shape + v.shape[1:])
        return v if v.ndim else v.item()

    b1, psi = (found.b1, found.psi) if K > 1 else (found.b1[:, 0], found.psi[..., 0])
    psi = psi if J > 1 else psi[:, 0]
    return Bounds(
        smoothed.activation, next(iter(parts.values()))[1].activation, shaped(found.upper), shaped(found.lower),
        shaped(rs), shaped(cs) if letters.c is None else letters.c, shaped(gs),
        {"b1": shaped(b1), "b": shaped(found.b), "psi": shaped(psi)}, shaped(found.error),
        **{n: shaped(v) for n, v in biased.items() if n != "notes"}, notes=tuple(notes), letters=letters.u, biases=letters.b)


def _where(smoothed: Smoothed, g: Any, direct: tuple[Any, Any, Any], step: tuple[Any, Any, Any, Any]) -> tuple[Array, Array, Array]:
    """(r, c, gamma), checked, from whichever way they were given."""
    r, c, gamma = direct
    alpha0, eta, beta, Delta = step
    if alpha0 is not None or eta is not None:
        if r is not None or c is not None:
            raise BadInput("bounds: r and c follow from alpha0 and eta; give one or the other")
        if alpha0 is None or eta is None:
            raise BadInput("bounds: a gradient step is given by alpha0 and eta (and beta, default 1), or by r and c")
        from hermitex.theories.spike import spike

        beta = 1.0 if beta is None else beta
        r, c, overlap = spike(smoothed.activation, g)(*(as_numbers(n, v) for n, v in (
            ("alpha0", alpha0), ("eta", eta), ("beta", beta), ("Delta", Delta))))
        gamma = overlap if gamma is None else gamma
    elif beta is not None:
        raise BadInput("bounds: beta belongs to a gradient step; give alpha0 and eta with it, or r and c alone")
    if r is None:
        raise BadInput("bounds: give r (and c, gamma), or alpha0 and eta, or optimise")
    values = as_numbers("r", r), as_numbers("c", 1.0 if c is None else c), as_numbers("gamma", 1.0 if gamma is None else gamma)
    if not np.all(np.abs(values[0]) < _LARGEST):
        raise BadInput(f"bounds: r must be finite, and below {_LARGEST:.0e}")
    if not np.all((values[1] > 0) & (values[1] < _LARGEST)):
        raise BadInput(f"bounds: c is a variance, positive and finite, and below {_LARGEST:.0e}")
    if not np.all(np.abs(values[2]) <= 1):
        raise BadInput("bounds: gamma is an overlap, between -1 and 1")
    try:
        sharp = np.abs(values[0]) > _SHARPEST*np.sqrt(values[1])
        np.broadcast_shapes(sharp.shape, values[2].shape)
    except ValueError:
        raise BadInput("bounds: r, c and gamma do not broadcast") from None
    if np.any(sharp):
        raise BadInput(f"bounds: |r| must be below {_SHARPEST:.0e} sqrt(c)")
    return values
