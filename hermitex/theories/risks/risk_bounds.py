"""Bounds on the risk as a result: numbers, the functions that realise them, tables and pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
from sympy import Expr

from hermitex.errors import NO_NUMBER, BadInput, brief
from hermitex.hints import Axes, Value
from hermitex.show.cite import Cited
from hermitex.show.columns import Tabled
from hermitex.show.display import Shown, formula_table, number, number_table
from hermitex.solvers.sweep_grid import real_array
from hermitex.symbolic.activations import Activation
from hermitex.symbolic.text.plain_data import plain
from hermitex.symbols import z
from hermitex.theories.features.smoothed import Smoothed
from hermitex.theories.risks.bias import Vocabulary
from hermitex.theories.risks.projection import conditional_target

Array = np.ndarray[Any, Any]

# LaTeX of what a table of bounds names
_COLUMNS = {n: n.replace("_", " ") for n in ("upper", "lower", "upper_bias", "lower_bias", "b_upper", "b_lower", "r_upper",
                                             "r_lower", "eta_over_beta_upper", "eta_over_beta_lower")}
_LETTERS = {"upper": r"\text{upper bound, best ridge}", "lower": r"\text{lower bound}",
            "upper_bias": r"\text{upper bound, best bias}",
            "lower_bias": r"\text{lower bound, best bias}", "b_upper": r"\text{bias } b \text{ of the upper bound}",
            "b_lower": r"\text{bias } b \text{ of the lower bound}", "r": "r", "c": "c", "gamma": r"\gamma",
            "r_upper": r"r \text{ of the upper bound}", "r_lower": r"r \text{ of the lower bound}",
            "eta_over_beta_upper": r"\tilde\eta/\beta \text{ of the upper bound}",
            "eta_over_beta_lower": r"\tilde\eta/\beta \text{ of the lower bound}"}


@dataclass(frozen=True, repr=False, eq=False)
class Bounds(Cited, Tabled, Shown):
    """Bounds on the risk, the coefficients and the functions that realise them.

    upper : the risk at lam -> infinity: the best ridge's is not larger, a given ridge's may be; lower : of any ridge.
    upper, lower, error : float or array; r, c, gamma : where (None where the learning rate was minimised over: then
    r_upper, r_lower and eta_over_beta_upper, eta_over_beta_lower, None if the infimum is at an end, named in notes);
    upper_bias, lower_bias, b_upper, b_lower : with a bias; coefficients : {"b1": .., "b": .., "psi": ..}, psi with an axis of
    the directions where the target has several.

    Guarantee: evaluated to `error`; they hold for the model of the source. See docs/promise.md.

    >>> from hermitex.theories.bounds import bounds
    >>> found = bounds("tanh", "sin", r=1)
    >>> bool(found.lower < found.upper)
    True
    """

    sources = ("cui2024",)

    sigma: Activation
    target: Activation
    upper: Value
    lower: Value
    r: Value | None
    c: Value | tuple[float, ...] | None
    gamma: Value
    coefficients: Mapping[str, Value]
    error: Value = 0.0
    upper_bias: Value | None = None
    lower_bias: Value | None = None
    b_upper: Value | None = None
    b_lower: Value | None = None
    optimum: Mapping[str, Value | None] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    letters: tuple[float, ...] = (1.0,)
    biases: tuple[float, ...] = (0.0,)

    def _summary(self) -> str:
        known = (("r", self.r), ("c", self.c), ("gamma", self.gamma))
        where = ", ".join(f"{n}={v:.6g}" for n, v in known if v is not None and np.ndim(v) == 0)
        values = ", ".join(f"{n}={v:.10g}" if np.ndim(v) == 0 else f"{n}: array {np.shape(v)}"
                           for n, v in (("upper", self.upper), ("lower", self.lower)))
        return f"{self.sigma.name} for {self.target.name}: {values}" + (f"; {where}" if where else "")

    # -- the functions that realise the bounds ---------------------------------------------------------------------------
    @property
    def functions(self) -> dict[str, Callable[[Value], Array]]:
        """{"target": h, "upper": b_1 mu_0, "lower": b_0 mu_0 + b_1 kappa mu_1}: functions of an array kappa."""
        self._one("functions")
        smoothed = Smoothed(self.sigma)

        def realised(which: str, at_r: Any, at_c: Any) -> Any:
            b = np.atleast_1d(self.coefficients["b1" if which == "upper" else "b"]).astype(float)

            def value(kappa: Any) -> Array:
                x = np.asarray(kappa, dtype=float)
                out: Array = np.zeros_like(x)
                for k, (u, c) in enumerate(zip(self.letters, np.broadcast_to(at_c, len(self.letters)), strict=True)):
                    mu_0, mu_1 = smoothed(u*at_r*x + self.biases[k], np.asarray(float(c)))
                    out = out + b[k]*mu_0 + (b[len(self.letters) + k]*x*mu_1 if which == "lower" else 0)
                return out
            return value

        target = conditional_target(self.target, float(self.gamma))
        found = {"target": lambda kappa: target(np.asarray(kappa, dtype=float))[0]}
        for which in ("upper", "lower"):
            at_r = self.optimum.get(f"r_{which}", self.r)
            if at_r is not None:
                found[which] = realised(which, at_r, self.optimum.get(f"c_{which}", self.c))  # c may move with the rate
        return found

    @property
    def expr(self) -> dict[str, Expr | None]:
        """{"upper", "lower"} in closed form, as formulas of r, c (and gamma where it is not 1); None where there is none."""
        from hermitex.theories.risks.formula import formulas

        self._one("expr")
        if self.letters != (1.0,) or self.biases != (0.0,):
            return {"upper": None, "lower": None}  # formulas are those of one letter
        return formulas(self.sigma, self.target, aligned=abs(float(self.gamma)) == 1)

    def _one(self, what: str) -> None:
        if np.ndim(self.upper):
            drawn = "; hx.theories.bounds_map(sigma, g, r=[...], c=[...]).plot() draws many" if what == "plot" else ""
            raise BadInput(f"bounds: .{what} belongs to one point (r, c, gamma); these are {np.size(self.upper)} points{drawn}")

    # -- showing -----------------------------------------------------------------------------------------------------------
    def to_dict(self) -> dict[str, Any]:
        """The keys of ``hermitex bounds --json``; numbers, lists and texts."""
        found = {"sigma": self.sigma(z), "target": self.target.expr, "upper": self.upper, "lower": self.lower,
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
        own: dict[str, Any] = {**{n: getattr(self, n, None) for n in names}, **self.optimum}
        shape = np.shape(self.upper)
        return {n: np.broadcast_to(own[n], shape).ravel().tolist() for n in names if own[n] is not None}

    def plot(self, ax: Axes | None = None, *, reach: float = 4.0) -> Axes:
        """The target against the functions that realise the bounds, over kappa."""
        from hermitex.show.plots import curves

        self._one("plot")
        x = np.linspace(-reach, reach, 401)
        names = {"target": r"$h(\kappa)$, the target", "upper": r"upper bound (best ridge), $b_1\mu_0(\kappa)$",
                 "lower": r"lower bound, $b_0\mu_0(\kappa) + b_1\kappa\mu_1(\kappa)$"}
        lines = {names[n]: np.broadcast_to(f(x), x.shape).tolist() for n, f in self.functions.items()}
        return curves(x.tolist(), lines, ax, xlabel=r"$\kappa$", ylabel=r"$h(\kappa)$", reference=names["target"])


def as_numbers(name: str, value: Any, asking: str = "bounds") -> Array:
    """A parameter as an array of floats, of the shape it was given in; BadInput, by its name, for what is no number."""
    try:
        array = real_array(value)
    except NO_NUMBER:
        raise BadInput(f"{asking}: {name} = {brief(value)} is not a number") from None
    if np.isnan(array).any():
        raise BadInput(f"{asking}: {name} holds nan")
    return array


def letters_of(asking: str, vocabulary: Any, norms: Any, biases: Any) -> Vocabulary:
    """The vocabulary, checked; one letter without biases where none is given."""
    lists = {"vocabulary": vocabulary, "norms": norms, "biases": biases}
    given = {n: as_numbers(n, v, asking) for n, v in lists.items() if v is not None}
    if wrong := next((n for n, v in given.items() if v.ndim != 1 or not v.size or not np.all(np.isfinite(v))), None):
        raise BadInput(f"{asking}: {wrong} is a list of finite numbers, one for each letter")
    count = given["vocabulary"].size if "vocabulary" in given else given["biases"].size if "biases" in given else 1
    if wrong := next((n for n, v in given.items() if v.size != count), None):
        raise BadInput(f"{asking}: {wrong} has {given[wrong].size} entries for {count} letters; give one for each")
    if "norms" in given and np.any(given["norms"] <= 0):
        raise BadInput(f"{asking}: norms are positive")
    u, c, b = (tuple(map(float, given[n])) if n in given else None for n in ("vocabulary", "norms", "biases"))
    return Vocabulary(u or (1.0,)*count, c, b or (0.0,)*count)
