r"""hx.curve(theory, alpha=..., simulate=True): the learning curve of a theory, its experiment and its reference lines.

The experiment is made at d = `dimension` where that is given (the theory then carries its 1/d term for that very d), else at a d
that costs about a minute; the theory of features carries the 1/d term of that d, that of a network is the limit d -> infinity.
``simulate={"dimension": 600, "seeds": 32}`` sets the experiment's own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import product
from typing import Any, overload

import numpy as np

from hermitex.errors import BadInput, NoValue, UnknownName, brief
from hermitex.hints import Axes, DataFrame, Numbers, Watched
from hermitex.show.columns import ridge
from hermitex.show.display import Shown, letter, number, number_table, words_table
from hermitex.show.plots import REFERENCE, TITLE, name_lines, new_axes
from hermitex.show.progress import reporter
from hermitex.symbolic.gaussian import E
from hermitex.symbols import z
from hermitex.systems.system import System
from hermitex.theories import THEORIES
from hermitex.theories.curve import Curve
from hermitex.theories.curves import Curves
from hermitex.theories.system_curve import solved_along
from hermitex.theories.theory import Theory

# theory's name -> the module of hermitex.experiments whose `simulate` (or the function behind its colon) is its experiment
EXPERIMENTS: dict[str, str] = {
    "one-step": "one_step_experiment", "random-features": "random_features_experiment", "sgd": "sgd_experiment",
    "bayes-amp": "amp", "small-step": "small_step_experiment", "small-step-ridge": "small_step_experiment:simulate_ridge",
    "intermediate-step": "small_step_experiment:simulate_ridge", "tree": "tree_experiment", "committee": "committee_experiment",
    "covariate": "covariate_experiment", "glm": "glm_experiment", "kernel-ridge": "kernel_ridge",
    "ridge": "ridge_equivalent_experiment", "source-capacity": "ridge_equivalent_experiment",
    "spiked-covariance": "spiked_covariance_experiment", "mean-field-parity": "parity_experiment",
    "spectral": "spectral_experiment", "batch-reuse": "batch_reuse_experiment", "giant-step": "giant_step_experiment"}
OPTIONS = ("dimension", "seeds", "model", "test", "repetition")


@overload
def curve(theory: str | Theory | System, alpha: Numbers | None = None, *, each: None = None,
          simulate: bool | Mapping[str, Any] = False, progress: Watched = None, title: str | None = None,
          **numbers: Any) -> Curve: ...
@overload
def curve(theory: str | Theory | System, alpha: Numbers | None = None, *, each: str | Sequence[str],
          simulate: bool | Mapping[str, Any] = False, progress: Watched = None, title: str | None = None,
          **numbers: Any) -> Curves: ...
def curve(theory: str | Theory | System, alpha: Numbers | None = None, *, each: str | Sequence[str] | None = None,
          simulate: bool | Mapping[str, Any] = False, progress: Watched = None, title: str | None = None,
          **numbers: Any) -> Curve | Curves:
    r"""The learning curve of a theory along alpha, with the experiment on request.

    Parameters
    ----------
    theory : a theory (``hx.theories.one_step(tanh, sin)``), or its name ("one-step") with its functions and structure as
        further keywords (sigma=, target=, loss=, ...); or a `System`, which is solved along the list among its parameters
    alpha : numbers, the abscissa (the flow of SGD runs along t instead: t=[0, 1, 2])
    each : one name or several whose values each make a curve: each="lam", lam=[0.01, 0.1, 1]; if the theory is given by name,
        also a function: each="sigma", sigma=["relu", "tanh"]
    simulate : True adds `.simulation`, measured at finite size; a mapping sets the experiment's own options:
        dimension (d), seeds (how many, or which), model ("features" or "network"), test (fresh samples), alpha, or
        the theory's axis (where to measure; by default at most 8 of the points). A curve along t starts where the
        theory does, whatever the experiment's d; d also sets the start if nothing else does. The line of one-step is drawn with
        the 1/d term of the experiment's d if that has spiked features; next to networks it is the limit d -> infinity
    progress : called with (seeds done, seeds in all); True writes a line on stderr
    title : what a legend says (default: the numbers given, alpha0 and eta first)
    numbers : those of ``theory.curve``: beta, lam, Delta, alpha0 and eta or r, c, gamma, ...; a list is the axis if alpha is one
        number, and otherwise runs along with alpha; optimise="lam", bounds=(1e-6, 1e3): lam has its best value at every point, or
        optimise=["lam", "eta"], bounds={"lam": (1e-4, 10), "eta": (0.1, 30)};
        refine=100: up to 100 points more where the curve bends

    Returns
    -------
    Curve : `.test_error`, `.train_error`, order parameters by name, `.converged`; `.simulation` with `.standard_error`;
    `.plot(ax)`, `.to_csv(path)`, `.bibtex()`. A point that did not converge is nan with its reason. With `each`: Curves, in the
    order of the values, with the same methods; the legend of their picture says what differs.

    Raises
    ------
    BadInput, UnknownName : one line: a number missing or out of range, an unknown keyword.

    Guarantee
    ---------
    The theory's points solve its equations to their error, or are NaN with a reason. Theory and experiment agree only as far as
    the limit holds at that dimension. See docs/promise.md.

    Examples
    --------
    >>> curve("one-step", sigma="tanh", target="sin", alpha=[0.2, 0.9], alpha0=20, eta=3, lam=0.1).test_error.round(6)
    array([0.048483, 0.042504])
    >>> curve("random-features", sigma="tanh", target="sin", alpha=[1, 2], gamma=1, each="lam", lam=[0.1, 1])
    Curves(2 curves of random-features along alpha, one for each lam)
    """
    if each is not None:
        return _of_each(theory, alpha, each, numbers, simulate=simulate, progress=progress, title=title)
    if isinstance(theory, System):
        if simulate:
            raise BadInput("curve: the experiment of a System is yours: hx.experiment(system, sample, alpha=[0.5, 1, 2])")
        return solved_along(theory, "curve", title=title or "", **numbers, **({} if alpha is None else {"alpha": alpha}))
    made, numbers = _theory(theory, numbers)
    axis = getattr(made, "axis", "alpha")
    if axis == "alpha":
        numbers["alpha"] = alpha
    elif alpha is not None:
        raise BadInput(f"{made.name}: its curve runs along {axis}, not along alpha; write {axis}=[0.5, 1, 2]")
    if numbers.get(axis) is None:
        raise NoValue(made.name, axis, "[0.5, 1, 2]")
    if strangers := [k for k in OPTIONS if k in numbers and k not in made.letters()]:
        raise BadInput(f"{made.name}: {strangers[0]} is of the experiment; write simulate={{{strangers[0]!r}: "
                       f"{brief(numbers[strangers[0]])}}}")
    options, line = experiment_options(simulate, axis), numbers.pop(axis)
    if options and _starts_at_dimension(made, numbers) and "dimension" in options:
        numbers["dimension"] = options["dimension"]  # if only one d is given, theory and experiment share it
    found = made.curve(line, title=title or "", **numbers)
    if title is None and numbers.get("r") != 0 and (auto := _title(numbers)):  # r = 0: random features, as the theory says
        found = replace(found, title=auto)
    if options is not None and (found.axis != axis or "optimise" in numbers):
        raise BadInput(f"{made.name}: the experiment is made along {axis} alone; give the other numbers one value each")
    if options is None:
        return found
    measured = experiment(made, line, options, progress, **numbers)
    found = at_size_of(made, found, measured, **{axis: line}, **numbers)
    if said := made.of_experiment(found, measured):
        measured = replace(measured, parameters={**measured.parameters, "remark": said})
    return found.with_simulation(measured)


def at_size_of(theory: Any, found: Curve, measured: Curve, **numbers: Any) -> Curve:
    """The curve of a theory at the size of its experiment, where the theory has a correction and no size was given."""
    more = {n: v for n, v in theory.at_size_of(measured).items() if numbers.get(n) is None}
    return replace(theory.curve(title=found.title, **numbers, **more), named=found.named) if more else found


def _of_each(theory: Any, alpha: Any, each: str | Sequence[str], numbers: Mapping[str, Any], **how: Any) -> Curves:
    """A curve for every value of what `each` names, in the order of the product."""
    numbers = {**numbers, **({} if alpha is None else {"alpha": alpha})}
    names = tuple(ridge(str(n), numbers) for n in ([each] if isinstance(each, str) else each))
    _of_theory(theory, numbers, names)
    for k, n in enumerate(names):
        if n in names[:k]:
            raise BadInput(f"curve: each names {n} twice; name it once")
        if n not in numbers:
            raise BadInput(f"curve: each={n!r} names what makes a curve of each value; give the values too, for instance "
                           f"{n}=[0.1, 1]")
        ordered = np.iterable(numbers[n]) and hasattr(numbers[n], "__getitem__") and not isinstance(numbers[n], str | Mapping)
        if not ordered or not len(numbers[n]):
            raise BadInput(f"curve: each={n!r} needs a list, {n}=[...], not {brief(numbers[n])}")
        if any(isinstance(v, Sequence | np.ndarray) and not isinstance(v, str) for v in numbers[n]):
            raise BadInput(f"curve: each={n!r} takes a list of single numbers or names; of arrays make one hx.curve(..., {n}=) "
                           "after another")
    made = []
    for chosen in product(*(list(numbers[n]) for n in names)):
        made.append(one := curve(theory, **how, **{**numbers, **dict(zip(names, chosen, strict=True))}))
        if one.axis in names:
            raise BadInput(f"curve: each={one.axis!r} leaves nothing that varies along a curve; give another number as a list, "
                           "or leave each out")
    return Curves(tuple(made), names)


def experiment(theory: Any, alpha: Any, options: Mapping[str, Any] | None = None, progress: Any = None, **numbers: Any) -> Curve:
    """The experiment of `curve` alone, with the options of `simulate`, at some of the alphas."""
    if theory.name not in EXPERIMENTS:
        raise BadInput(f"the theory {theory.name} has no experiment; these have one: {', '.join(EXPERIMENTS)}")
    module, _, attribute = EXPERIMENTS[theory.name].partition(":")
    simulate: Callable[..., Curve] = getattr(import_module(f"hermitex.experiments.{module}"), attribute or "simulate")
    own = dict(options or {})
    where = own.pop("alpha", None)
    asked = _finite(numbers.get("dimension"))
    if asked is not None and "dimension" in own and own["dimension"] != asked and theory.letters()["dimension"] is theory.REQUIRED:
        raise BadInput(f"{theory.name}: the theory is at dimension={asked:g}, so the experiment cannot be at {own['dimension']!r}; "
                       "leave the experiment's dimension out")
    own.setdefault("dimension", _finite(numbers.get("dimension")))
    start, taken = numbers.get("start"), inspect.signature(simulate).parameters
    if strangers := [k for k in own if k not in taken]:
        raise BadInput(f"{theory.name}: its experiment takes {', '.join(o for o in OPTIONS if o in taken)}, no {strangers[0]}; "
                       "leave it out")
    rest = {k: v for k, v in numbers.items() if k not in ("dimension", "start", "tolerance", "refine", *own)}
    if "start" in taken and start is not None:
        rest["start"] = start
    elif asked is not None and own["dimension"] != asked:
        rest |= theory.begins({k: v for k, v in numbers.items() if k not in ("start", "tolerance")})
    return simulate(theory, thin_out(np.atleast_1d(alpha)) if where is None else where, progress=_progress(progress), **own,
                    **rest)


@dataclass(frozen=True, eq=False, repr=False)
class Baselines(Shown):
    """What no feature learning achieves: random features at the same sizes, and the best linear predictor.

    random_features : Curve       the theory at r = 0, c = 1: no gradient step
    best_linear : float           min over a, b of E(g(z) - a - b z)^2 = Var g - g_1^2
    """

    random_features: Curve
    best_linear: float

    def plot(self, ax: Axes | None = None, *, colour: str = "") -> Axes:
        """Both as grey lines, dashed and dotted, under the curves; of several, each line of random features thin in its colour."""
        ax = new_axes(ax)
        line = self.random_features
        thin: dict[str, Any] = {"linewidth": 1.3, "zorder": 1, "gid": REFERENCE}
        first = "best linear predictor" not in ax.get_legend_handles_labels()[1]
        how = {"color": colour, "linestyle": (0, (1, 1)), "linewidth": 1.0} if colour else {"color": "0.45", "linestyle": "--"}
        said = ("" if first else "_") + "random features" + (", colours as below" if colour else "")
        ax.plot(line.alpha, line.test_error, label=said, **{**thin, **how})
        if first:
            ax.axhline(self.best_linear, linestyle=":", color="0.45", label="best linear predictor", **thin)
        ax.set_xlabel(ax.get_xlabel() or r"$\alpha = n/d$")
        ax.set_ylabel(ax.get_ylabel() or "test error")
        name_lines(ax)
        return ax

    def to_dict(self) -> dict[str, Any]:
        """The curve of random features as `Curve.to_dict` has it, and the best linear predictor's error."""
        return {"random_features": self.random_features.to_dict(), "best_linear": self.best_linear}

    def to_dataframe(self) -> DataFrame:
        """A pandas DataFrame, one row an alpha."""
        from hermitex.show.tables import to_dataframe

        line = self.random_features
        return to_dataframe({line.axis: line.alpha.tolist(), "random_features": line.test_error.tolist(),
                             "best_linear": [self.best_linear]*len(line)})

    def bibtex(self) -> str:
        """BibTeX of the papers whose results were used."""
        return self.random_features.bibtex()

    def _html(self) -> str:
        line = self.random_features
        head = words_table([("best linear predictor", f"${number(self.best_linear, 10)}$")], title="Without feature learning")
        return head + number_table({line.axis: line.alpha.tolist(), "test_error": line.test_error.tolist()},
                                   words={"test_error": "random features"})

    def _summary(self) -> str:
        return f"best linear predictor {self.best_linear:.6g}; {self.random_features!r}"


def baselines(theory: str | Theory, alpha: Numbers | None = None, **numbers: Any) -> Baselines:
    r"""The reference lines of a learning-curve figure: random features (r = 0, c = 1) and the best linear predictor.

    Parameters
    ----------
    theory, alpha, numbers : as in `curve`, of one-step; r, c, gamma, alpha0 and eta are not needed, and ignored; with
        optimise="lam" random features have their own best ridge

    Guarantee
    ---------
    As of the theories that give the lines. See docs/promise.md.

    Examples
    --------
    >>> lines = baselines("one-step", sigma="tanh", target="sign", alpha=[1, 2], lam=0.1)
    >>> round(lines.best_linear, 10), lines.random_features.test_error.round(4)
    (0.3633802276, array([0.9173, 0.7553]))
    """
    made, numbers = _theory(theory, numbers)
    if made.name != "one-step":  # alpha has another meaning there, or the theory has no error
        raise BadInput(f"{made.name}: the reference lines are defined for one-step; "
                       "plot a curve of random-features on the same axes")
    if str(made.loss) != "square":
        raise BadInput(f"{made.name}: the reference lines are those of the square loss")

    kept = {k: v for k, v in numbers.items() if k not in (*TITLE, "dimension", "optimise", "bounds")}
    best = numbers.get("optimise") or ()
    best = [n for n in ([best] if isinstance(best, str) else best) if n not in TITLE]  # the step's letters it has not
    plain = THEORIES["one-step"](made.sigma, made.g)  # without a spike the vocabulary does not show
    if best:
        kept["lam"] = _best_ridge(made, alpha, best[0], numbers.get("bounds", (1e-6, 1e3)), kept)
    line = plain.curve(alpha, title="random features", r=0, c=1, gamma=0, **kept)
    return Baselines(line, best_linear(made.g, kept))


def _best_ridge(theory: Any, alpha: Any, letter: str, bounds: Any, numbers: Mapping[str, Any]) -> list[float]:
    """The best ridge of random features at every alpha: n/p = alpha/beta, d/p = 1/beta in their own theory."""
    own = {n: v for n, v in numbers.items() if n != "beta"}
    if letter not in ("lam", "lamda") or own.keys() - {"Delta", "tolerance"}:
        raise BadInput(f"baselines: random features have a best ridge of their own, optimise='lam', with beta and Delta alone; "
                       f"leave {next(iter(own.keys() - {'Delta', 'tolerance'}), f'optimise={letter!r}')} out")
    features, beta = THEORIES["random-features"](theory.sigma, theory.g), float(numbers.get("beta", 1.0))
    return [float(features.minimise("test_error", "lam", bounds, alpha=float(a)/beta, gamma=1/beta, **own)["lam"])
            for a in np.atleast_1d(alpha)]


def best_linear(g: Any, numbers: Mapping[str, Any] | None = None) -> float:
    """min over a, b of E(g(z) - a - b z)^2 = E g^2 - g_0^2 - g_1^2, the error of the best affine function of z.

    >>> round(best_linear("sign"), 12)
    0.363380227632
    """
    from hermitex.kernels.compile import compile
    from hermitex.theories.directions import DirectedTarget, target_of

    found = target_of("best_linear", g)
    if isinstance(found, DirectedTarget):
        left = found.mean(found.expr**2) - found.mean(found.expr)**2 - sum(v**2 for v in found.charged)
    else:
        made = found(z)
        left = E(made**2, z) - E(made, z)**2 - E(z*made, z)**2
    kernel = compile(left)
    return max(0.0, float(kernel(**{n: float((numbers or {})[n]) for n in kernel.parameters})))


# -- from keywords to a theory ------------------------------------------------------------------------------------------
def _theory(theory: Any, numbers: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """A theory object, and the numbers that are left for it."""
    if not isinstance(theory, str):
        if not hasattr(theory, "curve"):
            raise BadInput(f"curve: a theory is needed, its name with its functions, or a System, not {type(theory).__name__}")
        _of_theory(theory, numbers)
        return theory, dict(numbers)

    if theory not in THEORIES:
        raise UnknownName(theory[:60], THEORIES, "theory")
    make = THEORIES[theory]
    return build(make, theory, numbers)


def _of_theory(theory: Any, numbers: Mapping[str, Any], each: Sequence[str] = ()) -> None:
    """Refuse functions and structure for a theory that is made, and say the call that takes them."""
    name = getattr(theory, "name", "")
    if isinstance(theory, str) or name not in THEORIES:
        return
    own = {"target" if n == "g" else n: p for n, p in inspect.signature(THEORIES[name]).parameters.items()}
    for key in numbers:
        if key in own and key not in theory.letters():
            asked = [f"{key}={brief(numbers[key])}", *(f"{n}=..." for n, p in own.items() if n != key and p.default is p.empty),
                     *([f"each={key!r}"] if key in each else [])]
            raise BadInput(f"{name}: {key} is of the theory, which is made already; name it instead: "
                           f"hx.curve({name!r}, {', '.join(asked)}, ...)")


def build(make: Callable[..., Any], name: str, keywords: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The theory that a factory makes from its keywords (target is read as g), and the remaining keywords."""
    rest = dict(keywords)
    taken: dict[str, Any] = {}
    for key, parameter in inspect.signature(make).parameters.items():
        said = "target" if key == "g" and "target" in rest else key
        if said in rest:
            value = rest.pop(said)
            if isinstance(value, list | tuple) and str(parameter.annotation).startswith("Formula"):
                raise BadInput(f"{name}: {said} is one function; for a curve of each add each={said!r}")
            if value is not None:
                taken[key] = value
        if key not in taken and parameter.default is parameter.empty:
            raise BadInput(f"{name}: {'target' if key == 'g' else key} has no value; give it, for instance "
                           f"{'target' if key == 'g' else key}='tanh'")
    return make(**taken), rest


def experiment_options(simulate: Any, axis: str = "alpha") -> dict[str, Any] | None:
    """The options of the experiment, None without one."""
    if isinstance(simulate, bool | np.bool_):
        return {} if simulate else None
    if not isinstance(simulate, Mapping):
        raise BadInput(f"simulate is True, False or a mapping of {', '.join((*OPTIONS, axis))}, not {simulate!r}")
    for key in simulate:
        if key not in (*OPTIONS, "alpha", axis):
            raise UnknownName(str(key), (*OPTIONS, axis), "option of the experiment")
    return {"alpha" if key == axis else key: value for key, value in simulate.items()}


def _starts_at_dimension(theory: Any, numbers: Mapping[str, Any]) -> bool:
    """True if the dimension decides where the curve starts and no start is given."""
    return (getattr(theory, "axis", "") == "t" and "dimension" in theory.letters()
            and all(numbers.get(n) is None for n in ("dimension", "start", "m0", "M")))


def _finite(dimension: Any) -> Any:
    """The theory's dimension for the experiment; inf means none."""
    return None if dimension is None or np.isinf(dimension) else dimension


def thin_out(alpha: np.ndarray, most: int = 8) -> np.ndarray:
    """At most `most` of the points, evenly, both ends among them."""
    if len(alpha) <= most:
        return alpha
    return alpha[np.unique(np.rint(np.linspace(0, len(alpha) - 1, most)).astype(int))]


def _title(numbers: Mapping[str, Any]) -> str:
    given = [(n, numbers[n]) for n in TITLE if numbers.get(n) is not None]
    try:
        said = [f"${letter(n)} = {number(float(v), 4)}$" for n, v in given]
    except (TypeError, ValueError):
        return ""  # the theory says what is wrong with it
    return ", ".join(said[:3])


def _progress(progress: Any) -> Callable[[int, int], None] | None:
    if progress is True:
        return reporter("experiment", "seeds")
    return progress or None


__all__ = ["Baselines", "at_size_of", "baselines", "best_linear", "build", "curve", "experiment", "experiment_options", "thin_out"]
