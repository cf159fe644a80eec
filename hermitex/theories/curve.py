"""alpha -> test_error(alpha), train_error(alpha), q(alpha), ...: a learning curve, of a theory or of an experiment."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from typing import Any

import numpy as np

from hermitex.errors import BadInput, HermitexError, NotConverged, UnknownName
from hermitex.hints import Axes, Flag, Value
from hermitex.show.cite import Cited
from hermitex.show.columns import Columned, ridge
from hermitex.show.display import Shown, letter, number_table, shorten
from hermitex.solvers.solution import MARGINAL, UNSTABLE

ERRORS = ("test_error", "train_error")
_AXES = {"test_error": "test error", "train_error": "train error", "test_loss": "test loss"}


@dataclass(frozen=True, eq=False, repr=False)
class Curve(Cited, Columned, Shown):
    r"""The predictions of a theory along one parameter, or the measurements of an experiment.

    Attributes
    ----------
    theory : str                     its name as on the command line, "one-step"
    parameters : {name: number}      what stayed fixed, in the theory's letters
    alpha : array (B,)               the abscissa (its name is `axis`); `ratio` says what alpha is: n/d or n/p
    values : {name: array (B,)}      test_error, train_error, further errors, then the order parameters; nan where failed
    order_parameters : names         those of `values` that are order parameters
    converged, residual, stability, reason : arrays (B,), as of a `Solution`
    standard_error : {name: (B,)}    of an experiment: over its seeds; empty for a theory
    seeds : tuple of int             of an experiment
    simulation : Curve or None       the experiment that belongs to this theory

    Guarantee
    ---------
    A point with `converged` true solves the equations to its error; any other point is NaN, with its reason. An experiment's
    error bars are standard errors over seeds. See docs/promise.md.

    >>> from hermitex.theories import glm
    >>> curve = glm().curve(alpha=[1, 2], lam=0.1, Delta=0.25)
    >>> curve.test_error.round(4), curve.parameters["lam"], len(curve)
    (array([0.4411, 0.1927]), 0.1, 2)
    """

    theory: str
    parameters: Mapping[str, Any]
    alpha: np.ndarray
    values: Mapping[str, np.ndarray]
    order_parameters: tuple[str, ...] = ()
    converged: Flag = True
    residual: Value = float("nan")
    stability: Value = float("nan")
    reason: str | np.ndarray = ""
    standard_error: Mapping[str, np.ndarray] = field(default_factory=dict)
    seeds: tuple[int, ...] = ()
    simulation: Curve | None = None
    title: str = ""
    axis: str = "alpha"
    ratio: str = "n/d"
    sources: tuple[str, ...] = ()
    named: bool = False  # whether the title is the user's own
    optimised: str = ""  # the letters that have their best values at every point, "lam, eta"
    at_end: str = ""  # which of them are at an end of their bounds somewhere, "lam at the upper end at 2 of 3 points"
    lacking: Mapping[str, str] = field(default_factory=dict)  # what it does not hold: the letter that brings it

    def __getitem__(self, name: str) -> Any:
        own = ridge(name, list(self._named()))
        if own == self.axis:
            return self.alpha
        if own in self.values:
            return self.values[own]
        if own in self.parameters:
            return self.parameters[own]
        if name in ("residual", "stability") and not self.seeds:
            return np.broadcast_to(np.asarray(getattr(self, name), dtype=float), self.alpha.shape)
        if name in self.lacking:
            raise BadInput(f"{self.theory}: this curve holds no {name}; add {self.lacking[name]}=1000, say")
        raise UnknownName(name, list(self._named()), "quantity of the curve")

    def _named(self) -> Iterable[str]:
        return (self.axis, *self.values, *self.parameters)

    def __contains__(self, name: object) -> bool:
        return name == self.axis or name in self.values

    def __len__(self) -> int:
        return len(self.alpha)

    @property
    def test_error(self) -> np.ndarray:
        """The test error along the curve."""
        return self["test_error"]

    @property
    def train_error(self) -> np.ndarray:
        """The mean training loss along the curve, without the penalty: under the square loss the mean of (y - f)^2 in one-step,
        ridge and kernel-ridge, of (y - f)^2/2 in random-features, glm and covariate, whose test error is not halved.
        """
        return self["train_error"]

    @cached_property
    def _good(self) -> np.ndarray:
        return np.array(np.broadcast_to(np.asarray(self.converged, dtype=bool), self.alpha.shape))

    @property
    def all_converged(self) -> bool:
        """Whether every point converged."""
        return bool(self._good.all())

    def require(self) -> Curve:
        """Itself if every point converged; otherwise raises `NotConverged` that carries it."""
        if self.all_converged:
            return self
        bad = np.flatnonzero(~self._good)
        reasons = np.broadcast_to(np.asarray(self.reason, dtype=object), self.alpha.shape)
        why = reasons[bad[0]] or "the residual stayed above the tolerance"
        raise NotConverged(self, f"{bad.size} of {len(self)} points did not converge; the first is {self.axis} = "
                                 f"{self.alpha[bad[0]]:g}: {why}; the curve is in .solution of this error")

    def with_simulation(self, simulation: Curve) -> Curve:
        """The same curve with an experiment."""
        return replace(self, simulation=simulation)

    # -- data --------------------------------------------------------------------------------------------------------
    def table(self) -> dict[str, list[Any]]:
        """Columns of equal length: the abscissa, every value (and its standard error), residual, stability, converged, the
        experiment if it was made at some of the points (nan at the others), the parameters that stayed fixed, the theory's name,
        the ratio that the abscissa is, and the letters that were optimised.
        """
        columns: dict[str, Any] = {self.axis: self.alpha}
        for name, v in self.values.items():
            columns[name] = v
            if name in self.standard_error:
                columns[f"{name}_se"] = self.standard_error[name]
        if not self.seeds:
            columns |= {"residual": self.residual, "stability": self.stability, "converged": self._good,
                        "reason": np.asarray(self.reason, dtype=object)}
        if (s := self.simulation) is not None and (places := self._places(s.alpha)) is not None:
            measured = {**s.values, **{f"{n}_se": e for n, e in s.standard_error.items()}}
            for name, v in measured.items():
                columns[f"simulated_{name}"] = np.full(self.alpha.shape, np.nan)
                columns[f"simulated_{name}"][places] = v
            columns |= {"simulated_seeds": len(s.seeds)}
            columns |= {f"simulated_{n}": s.parameters[n] for n in ("dimension", "model") if n in s.parameters}
        columns |= {k: v for k, v in self.parameters.items() if k not in columns and (isinstance(v, str) or np.ndim(v) == 0)}
        about = {"theory": self.theory, "ratio": self._shown_ratio(), "optimised": self.optimised}
        columns |= {n: v for n, v in about.items() if v}
        return {k: np.broadcast_to(np.asarray(v), self.alpha.shape).tolist() for k, v in columns.items()}

    def _places(self, points: np.ndarray) -> np.ndarray | None:
        """The places of these points on the axis; None if one of them is not on it."""
        near = np.isclose(points[:, None], self.alpha, rtol=1e-12, atol=0)  # the same number, written and read
        return near.argmax(axis=1) if near.any(axis=1).all() else None

    def to_dict(self) -> dict[str, Any]:
        """The JSON of `hermitex curve --json`; a failed point is None, and infinity itself."""
        def column(v: Any) -> list[Any]:
            array = np.broadcast_to(np.asarray(v, dtype=float), self.alpha.shape)
            return [None if np.isnan(x) else float(x) for x in array]

        out: dict[str, Any] = {"theory": self.theory, "parameters": dict(self.parameters), self.axis: self.alpha.tolist()}
        out |= {k: column(v) for k, v in self.values.items() if k not in self.order_parameters}
        out["order_parameters"] = {k: column(self.values[k]) for k in self.order_parameters if k in self.values}
        if self.seeds:
            errors = {k: column(v) for k, v in self.standard_error.items()}
            return {**out, "standard_error": errors, "seeds": list(self.seeds)}
        out |= {"converged": self._good.tolist(), "residual": column(self.residual), "stability": column(self.stability)}
        if self.simulation is not None:
            kept = self.simulation.to_dict()
            out["simulation"] = {k: v for k, v in kept.items() if k != "theory"}
        return out

    # -- showing -----------------------------------------------------------------------------------------------------
    @property
    def label(self) -> str:
        """What a legend says: the title, or what stayed fixed; without a title of the user's also what was optimised."""
        from hermitex.show.plots import best_words

        return ", ".join(filter(None, (self.title or self.theory, "" if self.named else best_words(self.optimised))))

    def plot(self, ax: Axes | None = None, *, quantity: str | None = None, label: str | None = None,
             log: tuple[bool, bool] | None = None) -> Axes:
        r"""A quantity along the curve on the given axes: a line, the experiment as points with error bars.

        quantity : default: the test error; of a curve that has none, every order parameter
        log : (x, y) whether an axis is logarithmic; by default x is if the points are spaced so (np.geomspace), and numbers of
            samples over a decade and a half are; errors are where they fall by as much, as powers of n or in time
        """
        from hermitex.show.plots import axis_of, mark_critical, new_axes

        ax = new_axes(ax)
        if quantity is None and "risk" in self.values:
            quantity, log = "risk", log or (False, True)
        if quantity is None and "samples" in self.values:  # exponents of d: no test error, which its experiment may have
            quantity = "samples"
        if quantity is None and "test_error" not in self.values and self.order_parameters:
            said, alone = self.title if label is None else label, len(self.order_parameters) == 1
            # eta_c along eta is a place on the axis, not a height
            place = f"{self.axis}_c" if f"{self.axis}_c" in self.order_parameters else ""
            for name in self.order_parameters:
                if name == place:
                    continue
                words = "_" in name and len(name.split("_")[-1]) > 2  # a name of words is not a letter with an index
                shown = name.replace("_", " ") if words else f"${letter(name)}$"
                text = ", ".join(filter(None, (said, "" if alone and said else shown)))
                # the axis names the quantity; a legend of several curves of it needs their differences
                differs = {**self._told(name), "quantity": shown, **({"theory": text} if alone else {})}
                ax = self._drawn(ax, name, text, None if label is not None or self.named else differs, log)
            others = [n for n in self.order_parameters if "_" in n or n == "theta"]
            letters = ", ".join(f"${letter(n)}$" for n in self.order_parameters)
            ax.set_ylabel(axis_of(name) if alone and len(name) > 3 else "order parameters" if others else
                          "overlap" if self.ratio else letters)  # of a system of one's own the letters, whatever they are
            for at in sorted({float(v) for v in self[place] if np.isfinite(v)})[:1] if place else ():
                mark_critical(ax, at, f"${letter(place)}$")
            return ax
        quantity = quantity or "test_error"
        told = None if label is not None or self.named else self._told(quantity)
        return self._drawn(ax, quantity, self.label if label is None else label, told, log)

    def _drawn(self, ax: Any, quantity: str, label: str, told: Mapping[str, str] | None, log: tuple[bool, bool] | None) -> Any:
        """One quantity on the axes; `told`: see `learning_curve`."""
        from hermitex.show.plots import axis_of, beside, learning_curve, theory_words, usual_scales

        ylabel = axis_of(quantity)
        xlabel = self._abscissa()
        if ax.get_xlabel().startswith(f"${letter(self.axis)} ") and ax.get_xlabel() != xlabel:
            xlabel = f"${letter(self.axis)}$"  # n/p of one curve, n/d of another: the legend names both
        points = None
        if self.simulation is not None and quantity in self.simulation:
            s = self.simulation
            error = s.standard_error.get(quantity)
            points = {"x": s.alpha.tolist(), "y": s[quantity].tolist()} | ({} if error is None else {"error": error.tolist()})
            if told is not None and "dimension" in s.parameters:
                label = ", ".join(filter(None, (label, theory_words(self.parameters.get("dimension")))))
        x, y = (np.asarray(v, dtype=float).tolist() for v in (self.alpha, self[quantity]))
        ax = learning_curve(x, y, ax, label=label, points=points, xlabel=xlabel, ylabel=ylabel, steps=self.axis == "kappa",
                            log=log or usual_scales(self.axis, quantity, x, y), told=told, measured=self._measured(),
                            model="" if self.simulation is None else str(self.simulation.parameters.get("model", "")))
        if points is None and self.simulation is not None:
            s = self.simulation
            sizes = {n: n.removeprefix("test_error").lstrip("_") for n in s.values if n.startswith("test_error")}
            there = {self._measured(d or None): (s[n].tolist(), s.standard_error.get(n)) for n, d in sizes.items()
                     if not d or d.isdecimal()}  # test_error_20 is that at d = 20
            if there:
                beside(ax, s.alpha.tolist(), there, axis_of("test_error"))
        return ax

    def _abscissa(self) -> str:
        """The letter of the axis, and the ratio that it is."""
        from hermitex.show.plots import abscissa

        return abscissa(self.axis, self._shown_ratio())

    def _shown_ratio(self) -> str:
        """The ratio that the axis is, empty where it is none: n/d is alpha alone."""
        return self.ratio if self.axis == "alpha" or self.ratio != "n/d" else ""

    def _told(self, quantity: str) -> dict[str, str]:
        """What holds along the curve, in words for a legend."""
        from hermitex.show.plots import axis_of, held_words

        known = self.parameters
        derived = {"status"}
        if "m0" in known and np.allclose(known["m0"], np.asarray(known.get("dimension") or np.inf, dtype=float)**-0.5, atol=0):
            derived.add("m0")
        if "seed" in known:
            derived |= {n for n in known if n.startswith("start_M")}
        if "gamma_2" in known:
            derived.add("theta")
        held = {n: v for n, v in known.items() if n not in derived and not n.endswith("_exponent")}  # these follow from the others
        return {"theory": self.theory, "quantity": axis_of(quantity), "axis": self._abscissa(), **held_words(held)}

    def _measured(self, size: Any = None) -> str:
        """The legend of the experiment: its size (of several sizes, the given one) and its seeds."""
        from hermitex.show.plots import measured_words

        s = self.simulation
        if s is None:
            return ""
        return measured_words(s.parameters.get("dimension") if size is None else size, len(s.seeds))

    def __repr__(self) -> str:
        words = re.sub(r"\\mathrm\{(\w+)\}", r"\1", self.label).replace("\\infty", "inf")
        return self._line(words.replace("$", "").replace("\\", ""))

    def _line(self, label: str) -> str:
        ends = f"{self.axis} = {self.alpha[0]:g}" + (f" to {self.alpha[-1]:g}, {len(self)} points" if len(self) > 1 else "")
        first = next((k for k in ERRORS if k in self.values), next(iter(self.values), ""))
        said = f"; {first} {_range(self.values[first])}" if first else ""
        state = f"; {len(self.seeds)} seeds" if self.seeds else f"; {int(self._good.sum())} of {len(self)} converged"
        away = int(np.sum(self._good & (np.asarray(self.stability, dtype=float) > 1 + MARGINAL)))
        state += f", {away} {UNSTABLE}" if away else ""
        state += f"; {self.at_end}" if self.at_end else ""
        beside = "; with experiment" if self.simulation is not None else ""
        return shorten(f"Curve({label}: {ends}{said}{state}{beside})", 160)

    def _html(self) -> str:
        """The picture, and the errors (or the first quantities) as a table that opens."""
        from hermitex.show.plots import embedded

        columns = self.table()
        shown = [k for k in self.values if k not in self.order_parameters] or list(self.values)[:4]
        beside = [k for k in (f"simulated_{n}" for n in shown) if k in columns]
        title = self._line(self.label)
        try:
            picture = embedded(Curve.plot(self))
        except (HermitexError, ValueError):  # no matplotlib, or nothing that can be drawn
            return number_table({k: columns[k] for k in (self.axis, *shown, *beside)}, words=_AXES, title=title)
        words = {**_AXES, **{f"simulated_{n}": f"{w} measured" for n, w in _AXES.items()}}
        table = number_table({k: columns[k] for k in (self.axis, *shown, *beside)}, words=words)
        return f"{picture}<p>{escape(title)}</p><details><summary>numbers</summary>{table}</details>"


def _range(v: np.ndarray) -> str:
    good = v[np.isfinite(v)]
    if not good.size:
        return "unknown"
    return f"{good[0]:.4g}" if good.size == 1 else f"{good[0]:.4g} to {good[-1]:.4g}"


def bending_points(x: np.ndarray, y: np.ndarray, most: int) -> np.ndarray:
    """Up to `most` points between neighbours of x, where the line y(x) bends most in its picture.

    >>> x = np.array([0.0, 1.0, 2.0, 3.0])
    >>> bending_points(x, np.array([0.0, 0.0, 1.0, 0.0]), 2)
    array([1.5, 2.5])
    """
    from hermitex.show.plots import is_geometric

    if np.isfinite(y).sum() < 3:
        return x[:0]
    powers = is_geometric(x.tolist())
    u, v = _scaled(np.log(x) if powers else x), _scaled(y)
    width, rise = np.diff(u), np.diff(v)
    length = np.hypot(width, rise)
    corner = np.abs(np.diff(np.arctan2(rise, width)))*np.minimum(length[:-1], length[1:])
    seen = 4e-3  # of a picture: the angle between two neighbouring pieces of a line times the shorter of them
    corner = np.where(corner > seen, corner, 0.0)
    wanted = np.maximum(np.append(corner, 0.0), np.append(0.0, corner))
    chosen = np.sort(np.argsort(-wanted, kind="stable")[:min(most, int((wanted > 0).sum()))])
    return np.sqrt(x[chosen]*x[chosen + 1]) if powers else (x[chosen] + x[chosen + 1])/2


def _scaled(v: np.ndarray) -> np.ndarray:
    """From 0 to 1."""
    v = np.where(np.isfinite(v), v, np.nan)
    size = np.nanmax(v) - np.nanmin(v)
    return (v - np.nanmin(v))/(size if size > 0 else 1.0)
