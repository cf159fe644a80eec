"""E(g - b mu_0)^2 >= risk >= E(g - b_0 mu_0 - b_1 kappa mu_1)^2: closed-form bounds after one giant gradient step.

upper = E g^2 - <h, mu_0>^2/<mu_0, mu_0>                                                     [cui2024, Eq. (26)]
lower = E g^2 - |P_{mu_0, kappa mu_1} h|^2 - <mu_1, h_1>^2/<mu_1, mu_1>                       [cui2024, Eq. (27)]
over kappa ~ N(0, 1): mu_k(kappa) of the activation at (r, c), h and h_1 of the target at (gamma, 1 - gamma^2). The upper
bound is the risk at lambda -> oo, the lower one that of infinite alpha and beta. (28) minimises them over the learning
rate, (132) over a bias b in sigma(r kappa + b + sqrt(c) z).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from hermitex.errors import BadInput
from hermitex.show.display import Shown, formula_table, number, number_table
from hermitex.symbols import z
from hermitex.theories.features.smoothed import Smoothed
from hermitex.theories.risks.minimum import Least, least
from hermitex.theories.risks.projection import Projection, Target, project

Array = np.ndarray[Any, Any]

RATES = np.geomspace(0.02, 60, 60)   # spikes r that a minimisation scans
_BIASES = np.linspace(-1, 1, 121)     # biases, in units of the reach of a pre-activation
_FAR = 6.0
# LaTeX of what a table of bounds names
_COLUMNS = {n: n.replace("_", " ") for n in ("upper", "lower", "upper_bias", "lower_bias", "b_upper", "b_lower", "r_upper",
                                             "r_lower", "eta_over_beta_upper", "eta_over_beta_lower")}
_LETTERS = {"upper": r"\text{upper bound}", "lower": r"\text{lower bound}", "upper_bias": r"\text{upper bound, best bias}",
            "lower_bias": r"\text{lower bound, best bias}", "b_upper": r"\text{bias } b \text{ of the upper bound}",
            "b_lower": r"\text{bias } b \text{ of the lower bound}", "r": "r", "c": "c", "gamma": r"\gamma",
            "r_upper": r"r \text{ of the upper bound}", "r_lower": r"r \text{ of the lower bound}",
            "eta_over_beta_upper": r"\tilde\eta/\beta \text{ of the upper bound}",
            "eta_over_beta_lower": r"\tilde\eta/\beta \text{ of the lower bound}"}


@dataclass(frozen=True, repr=False, eq=False)
class Bounds(Shown):
    """Bounds on the risk, the coefficients and the functions that realise them.

    upper, lower, error : float or array; r, c, gamma : where (None where the learning rate was minimised over: then
    r_upper, r_lower and eta_over_beta_upper, eta_over_beta_lower, None where the infimum lies at an end, named in notes);
    upper_bias, lower_bias, b_upper, b_lower : with a bias; coefficients : {"b1": .., "b": .., "psi": ..}.
    """

    sigma: Any
    target: Any
    upper: Any
    lower: Any
    r: Any
    c: Any
    gamma: Any
    coefficients: Mapping[str, Any]
    error: Any = 0.0
    upper_bias: Any = None
    lower_bias: Any = None
    b_upper: Any = None
    b_lower: Any = None
    optimum: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    letters: tuple[float, ...] = (1.0,)

    def _summary(self) -> str:
        known = (("r", self.r), ("c", self.c), ("gamma", self.gamma))
        where = ", ".join(f"{n}={v:.6g}" for n, v in known if np.ndim(v) == 0 and v is not None)
        values = ", ".join(f"{n}={v:.10g}" if np.ndim(v) == 0 else f"{n}: array {np.shape(v)}"
                           for n, v in (("upper", self.upper), ("lower", self.lower)))
        return f"{self.sigma.name} for {self.target.name}: {values}" + (f"; {where}" if where else "")

    # -- the functions that realise the bounds ---------------------------------------------------------------------------
    @property
    def functions(self) -> dict[str, Any]:
        """{"target": h, "upper": b_1 mu_0, "lower": b_0 mu_0 + b_1 kappa mu_1}: functions of an array kappa."""
        self._one("functions")
        smoothed = Smoothed(self.sigma)

        def realised(which: str, at_r: Any, at_c: Any) -> Any:
            b = np.atleast_1d(self.coefficients["b1" if which == "upper" else "b"]).astype(float)

            def value(kappa: Any) -> Array:
                x = np.asarray(kappa, dtype=float)
                out: Array = np.zeros_like(x)
                for k, (u, c) in enumerate(zip(self.letters, np.broadcast_to(at_c, len(self.letters)), strict=True)):
                    mu_0, mu_1 = smoothed(u*at_r*x, np.asarray(float(c)))
                    out = out + b[k]*mu_0 + (b[len(self.letters) + k]*x*mu_1 if which == "lower" else 0)
                return out
            return value

        target = Target(self.target, float(self.gamma))
        found = {"target": lambda kappa: target(np.asarray(kappa, dtype=float))[0]}
        for which in ("upper", "lower"):
            at_r = self.optimum.get(f"r_{which}", self.r)
            if at_r is not None:
                found[which] = realised(which, at_r, self.optimum.get(f"c_{which}", self.c))  # c may move with the rate
        return found

    @property
    def expr(self) -> dict[str, Any]:
        """{"upper", "lower"} in closed form, as formulas of r, c (and gamma where it is not 1); None where there is none."""
        from hermitex.theories.risks.formula import formulas

        self._one("expr")
        return formulas(self.sigma, self.target, aligned=abs(float(self.gamma)) == 1)

    def _one(self, what: str) -> None:
        if np.ndim(self.upper):
            raise BadInput(f"bounds: .{what} belongs to one point (r, c, gamma); these are {np.size(self.upper)} points")

    # -- showing -----------------------------------------------------------------------------------------------------------
    def to_dict(self) -> dict[str, Any]:
        """The keys of ``hermitex bounds --json``; numbers, lists and texts."""
        from hermitex.symbolic.text.plain import plain

        found = {"sigma": self.sigma(z), "target": self.target(z), "upper": self.upper, "lower": self.lower,
                "upper_bias": self.upper_bias, "lower_bias": self.lower_bias, "b_upper": self.b_upper, "b_lower": self.b_lower,
                "r": self.r, "c": self.c, "gamma": self.gamma, "coefficients": dict(self.coefficients), "error": self.error,
                **self.optimum, "notes": list(self.notes)}
        return dict(plain(found))

    def _html(self) -> str:
        if np.ndim(self.upper):
            return number_table(self.table(), digits=8, words=_COLUMNS, title=self._title())
        rows = [(_LETTERS[n], number(v, 12)) for n, v in self.to_dict().items() if n in _LETTERS and isinstance(v, float)]
        notes = "".join(f"<p>{escape(n)}</p>" for n in self.notes)
        return formula_table(rows, title=self._title()) + notes

    def _title(self) -> str:
        return f"Risk bounds, σ = {self.sigma.name}, target {self.target.name}"

    def table(self) -> dict[str, list[Any]]:
        """Columns of equal length: where, and the bounds."""
        names = ("r", "c", "gamma", *self.optimum, "upper", "lower", "upper_bias", "lower_bias", "b_upper", "b_lower")
        own = {**{n: getattr(self, n, None) for n in names}, **self.optimum}
        shape = np.shape(self.upper)
        return {n: np.broadcast_to(own[n], shape).ravel().tolist() for n in names if own[n] is not None}

    def to_dataframe(self) -> Any:
        """A pandas DataFrame, one row a point: r, c, gamma and the bounds there."""
        from hermitex.show.tables import to_dataframe

        return to_dataframe(self.table())

    def plot(self, ax: Any = None, *, reach: float = 4.0) -> Any:
        """The target against the functions that realise the bounds, over kappa."""
        from hermitex.show.plots import curves

        self._one("plot")
        x = np.linspace(-reach, reach, 401)
        names = {"target": r"$h(\kappa)$, the target", "upper": r"upper bound, $b_1\mu_0(\kappa)$",
                 "lower": r"lower bound, $b_0\mu_0(\kappa) + b_1\kappa\mu_1(\kappa)$"}
        lines = {names[n]: np.broadcast_to(f(x), x.shape).tolist() for n, f in self.functions.items()}
        return curves(x.tolist(), lines, ax, xlabel=r"$\kappa$", ylabel=r"$h(\kappa)$", reference=names["target"])

    def bibtex(self) -> str:
        """BibTeX of the paper whose result this is."""
        from hermitex.show.cite import bibtex

        return bibtex(["cui2024"])


def bounds(sigma: Any, g: Any, *, r: Any = None, c: Any = None, gamma: Any = None, alpha0: Any = None, eta: Any = None,
           beta: Any = None, Delta: Any = 0.0, optimise: bool = False, bias: bool = False,
           vocabulary: Sequence[float] | None = None, norms: Sequence[float] | None = None) -> Bounds:
    """Upper and lower bound on the risk after one giant gradient step.

    Parameters
    ----------
    sigma, g : activation and target: names, texts or expressions in z
    r, c, gamma : the spiked features: numbers or arrays that broadcast; c > 0 (default 1), -1 <= gamma <= 1 (default 1)
    alpha0, eta, beta, Delta : or the gradient step they come from (eta is eta_tilde; alpha0 may be inf)
    optimise : minimise over the learning rate, each bound by itself (28)
    bias : also minimise over a bias, `upper_bias` and `lower_bias` (132)
    vocabulary, norms : values u_k of the first readout and squared row norms c_k: the richer basis
        {mu_0^k, kappa mu_1^k} with mu^k at (r u_k, c_k)

    Returns
    -------
    Bounds : absolute error below 1e-12 E g^2 as a rule, estimated in `.error`.

    Raises
    ------
    BadInput : a target that is not square integrable, numbers out of range, both ways of giving the step.

    References: cui2024, Eqs. (26)-(28), (132); general gamma and vocabularies go beyond it.

    Examples
    --------
    >>> found = bounds("tanh", "sin", r=0.9)
    >>> round(found.upper, 12), round(found.lower, 12)
    (0.029104900643, 0.001669053251)
    """
    smoothed = Smoothed(sigma)
    if optimise:
        if vocabulary is not None or norms is not None:
            raise BadInput("bounds: optimise takes no vocabulary; give r")
        from hermitex.theories.risks.path import optimised

        given = {"r": r, "c": c, "gamma": gamma, "alpha0": alpha0, "Delta": Delta, "eta": eta, "beta": beta}
        return optimised(smoothed, g, given, bias)
    r, c, gamma = _where(smoothed, g, (r, c, gamma), (alpha0, eta, beta, Delta))
    letters = tuple(as_numbers("vocabulary", vocabulary)) if vocabulary is not None else (1.0,)
    sizes = as_numbers("norms", norms) if norms is not None else None
    if sizes is not None and (len(sizes) != len(letters) or np.any(sizes <= 0)):
        raise BadInput(f"bounds: {len(letters)} letters need {len(letters)} positive norms")
    if (len(letters) > 1 or sizes is not None) and bias:
        raise BadInput("bounds: a bias with a vocabulary is not supported; leave one of them out")
    shape = np.broadcast_shapes(r.shape, c.shape, gamma.shape)
    rs, cs, gs = (np.broadcast_to(v, shape).ravel() for v in (r, c, gamma))
    K = len(letters)
    at = (rs[:, None]*np.array(letters), np.broadcast_to(cs[:, None] if sizes is None else sizes, (rs.size, K)),
          np.zeros((rs.size, K)))
    parts = {v: (np.flatnonzero(gs == v), Target(g, float(v))) for v in np.unique(gs)}
    found = Projection(*(np.empty((rs.size, *s)) for s in ((), (), (K,), (2*K,), (K,), ())))
    for rows, target in parts.values():
        part = project([smoothed]*K, target, *(v[rows] for v in at))
        for name in Projection.__dataclass_fields__:
            getattr(found, name)[rows] = getattr(part, name)
    biased = _over_bias(smoothed, parts, (rs, cs)) if bias else {}

    def shaped(v: Array, tail: int = 1) -> Any:
        v = v.reshape(shape + v.shape[1:]) if v.ndim > 1 and tail > 1 else v.reshape(shape)
        return v if shape or v.ndim else v.item()

    b1, psi = (found.b1, found.psi) if K > 1 else (found.b1[:, 0], found.psi[:, 0])
    return Bounds(
        smoothed.activation, next(iter(parts.values()))[1].activation if parts else None, shaped(found.upper), shaped(found.lower),
        shaped(rs), shaped(cs) if sizes is None else tuple(sizes), shaped(gs),
        {"b1": shaped(b1, K), "b": shaped(found.b, 2), "psi": shaped(psi, K)}, shaped(found.error),
        **{n: shaped(v) for n, v in biased.items() if n != "notes"}, notes=tuple(biased.get("notes", ())), letters=letters)


def bounds_at(smoothed: Smoothed, target: Target, r: Array, c: Array, b: Array | float = 0.0) -> Projection:
    """`project` for one activation, at one axis of points."""
    columns = np.broadcast_arrays(r, c, b)
    return project([smoothed], target, *(np.array(v, dtype=float).reshape(-1, 1) for v in columns))


def _over_bias(smoothed: Smoothed, parts: Mapping[float, tuple[Array, Target]], at: tuple[Array, Array]) -> dict[str, Any]:
    """The bounds minimised over the bias, point by point."""
    size = at[0].size
    names = ("upper_bias", "lower_bias", "b_upper", "b_lower")
    out: dict[str, Any] = {n: np.full(size, np.nan) for n in names}
    notes: list[str] = []
    for rows, target in parts.values():
        for i in rows:
            for which, found in best_bias(smoothed, target, at[0][i], at[1][i]).items():
                out[f"{which}_bias"][i] = found.value
                out[f"b_{which}"][i] = np.nan if found.at is None else found.at
                if found.at is None:
                    notes.append(f"{which} bound with a bias: the infimum lies at b -> {found.end:g}, its limit is {found.said}")
    return {**out, "notes": list(dict.fromkeys(notes))}


def best_bias(smoothed: Smoothed, target: Target, r: float, c: float) -> dict[str, Least]:
    """The infimum over the bias of each bound at one (r, c)."""
    reach = _FAR*np.sqrt(r*r + c) + 2
    quick = smoothed.tabulated(c, 14*abs(r) + 20*reach)
    known: dict[bytes, Projection] = {}

    def values(which: str, b: Array) -> Array:
        key = np.asarray(b).tobytes()
        if key not in known:
            known[key] = bounds_at(quick, target, np.asarray(r), np.asarray(c), b)
        return np.asarray(getattr(known[key], which))

    found = {}
    for which in ("upper", "lower"):
        inside = bounds_at(smoothed, target, np.asarray(r), np.asarray(c))
        best = least(lambda b, w=which: values(w, b), reach*_BIASES, (-np.inf, np.inf))  # type: ignore[misc]
        # No bias is one of the biases.
        at_zero = float(getattr(inside, which)[0])
        found[which] = Least(at_zero, 0.0, np.nan, 0.0) if at_zero <= best.value else best
    return found


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
    if not np.all(np.isfinite(values[0])):
        raise BadInput("bounds: r must be finite")
    if not (np.all(values[1] > 0) and np.all(np.isfinite(values[1]))):
        raise BadInput("bounds: c is a variance, positive and finite")
    if not np.all(np.abs(values[2]) <= 1):
        raise BadInput("bounds: gamma is an overlap, between -1 and 1")
    try:
        np.broadcast_shapes(*(v.shape for v in values))
    except ValueError:
        raise BadInput("bounds: r, c and gamma do not broadcast") from None
    return values


def as_numbers(name: str, value: Any) -> Array:
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise BadInput(f"bounds: {name} = {value!r} is not a number") from None
    if np.isnan(array).any():
        raise BadInput(f"bounds: {name} holds nan")
    return array
