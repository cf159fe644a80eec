"""data -> axes: coefficients, truncations, learning curves with error bars; axes in, axes out.

The colours are those of Okabe and Ito, told apart by colour-blind readers; line styles and markers say the same thing
again for black and white. matplotlib is imported when a picture is made.
"""

from __future__ import annotations

import io
import itertools
import math
import os
import re
from collections.abc import Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

from hermitex.errors import BadInput, MissingExtra
from hermitex.show.display import counted, letter, number
from hermitex.show.escape import balanced, visible
from hermitex.show.files import write_whole

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))  # in a dash pattern: points of a dash and of a gap, in turn
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
REFERENCE = "reference"  # gid of a line that takes no colour from the curves
# What all curves of a picture share and no entry of its legend says, in order, with the words before it; "" are numbers.
SHARED = {"sigma": r"$\sigma$ = ", "target": "$g$ = ", **{n: f"{n} = " for n in ("loss", "labels", "channel")}, "network": "",
          **dict.fromkeys(("lam", "Delta", "alpha0", "eta", "r", "c", "gamma"), "")}
TITLE = ("alpha0", "eta", "r", "c", "gamma")  # the numbers that tell curves of one figure apart
_USUAL = ("square", r"$\Delta = 0$")
FORMATS = ("pdf", "svg", "png")


def new_axes(ax: Any = None, *, size: tuple[float, float] = (5.0, 3.4)) -> Any:
    """The axes given, or those of a new figure (no window is opened)."""
    if ax is not None:
        if not hasattr(ax, "plot"):
            raise BadInput(f"plot: {str(ax)[:40]!r} is given instead of matplotlib axes" + (
                f"; write quantity={ax[:40]!r}" if isinstance(ax, str) else "; write ax=axes"))
        return ax
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("matplotlib", "plot", "a picture") from None
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    ax = figure.add_subplot()
    ax.hermitex_size = size
    return ax


def _label(text: str) -> str:
    """A label with paired dollars around formulas, and only letters that can be drawn."""
    return visible(text) if text.count("$") % 2 == 0 and balanced(text) else visible(text).replace("$", r"\$")


def _finish(ax: Any, *, xlabel: str, ylabel: str, legend: bool = True) -> Any:
    ax.set_xlabel(_label(xlabel))
    ax.set_ylabel(_label(ylabel))
    ax.spines[["top", "right"]].set_visible(False)
    if legend:
        name_lines(ax)
    return ax


def name_lines(ax: Any, *, below: bool = False) -> None:
    """The legend: inside, where it covers least; of many lines `below` the axes, in a figure that is made taller for it.

    Its title says what all curves share. Axes of a user's own figure keep their size, and the legend stays inside.
    """
    (handles, labels), own = ax.get_legend_handles_labels(), getattr(ax, "hermitex_size", None)
    look = {"frameon": False, "fontsize": "small", "title": _shared(ax), "title_fontsize": "small", "alignment": "left"}
    inside = 8  # lines in a legend next to the curves
    if own is None or not (below or len(labels) > inside):
        if labels or look["title"]:
            ax.legend(handles, labels, **look)
        return
    columns = 3 if max(map(len, labels)) <= 24 else 2
    ax.figure.set_size_inches(own[0], own[1] + 0.2*-(-len(labels)//columns))
    ax.legend(handles, labels, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=columns, **look)


def _shared(ax: Any) -> str | None:
    """What holds along every curve, three to a line, unless an entry says it or a curve has a label of its user's own."""
    lines = [line for line in ax.get_lines() if line.get_gid() != REFERENCE and line.get_linestyle() != "None"]
    if not lines or not all(hasattr(line, "hermitex_told") for line in lines):
        return None
    first, *others = (line.hermitex_told[1] for line in lines)
    said = [f"{before}{first[n]}" for n, before in SHARED.items()
            if n in first and first[n] not in _USUAL and all(first[n] == told.get(n) for told in others)
            and not all(_says(line.get_label(), first[n]) for line in lines)]
    return "\n".join(_label(", ".join(said[k:k + 3])) for k in range(0, len(said), 3)) or None


def _says(label: str, words: str) -> bool:
    return re.search(rf"(?<![\w$]){re.escape(words)}(?!\w)", label) is not None


def held_words(parameters: Mapping[str, Any]) -> dict[str, str]:
    """{name: words for a legend} of what stays fixed along a curve, a text, or a letter and its number: of the spike either what
    made it or its own numbers, and neither where there is none.
    """
    spiked = not ("alpha0" in parameters or "dimension" in parameters or parameters.get("r") == 0)
    words = {}
    for name, v in parameters.items():
        if not spiked and name in ("r", "c", "gamma", "order"):
            continue
        if isinstance(v, Mapping):
            v = f"{name} = " + ", ".join(f"{a}:{b}" for a, b in v.items())
        if isinstance(v, str):
            v = f"${letter(name)}$ = {v}" if re.fullmatch(r"[\d./]+", v) else f"{v} network" if name == "network" else v
            words[name] = v if len(v) <= 40 else f"{v[:37]}..."
        elif isinstance(v, Real) and not isinstance(v, bool):
            words[name] = f"${letter('d' if name == 'dimension' else name)} = {number(float(v), 4)}$"
    return words


def best_words(names: str) -> str:
    """The words for the letters that have their best values at every point of a curve, "lam, eta"; empty where there is none."""
    return f"best {' and '.join(f'${letter(n)}$' for n in names.split(', '))}" if names else ""


def theory_words(size: Any) -> str:
    """The entry of a line next to an experiment: the dimension that it is for, None for the limit."""
    return r"theory at $d \to \infty$" if size is None else f"theory at $d = {number(float(size), 4)}$"


def measured_words(size: Any, seeds: int) -> str:
    """The entry of an experiment: its dimension and its number of seeds, None and 0 where they are not known."""
    d = "" if size is None else f"$d = {size if isinstance(size, str) else int(size)}$"
    return ", ".join(filter(None, ("experiment", d, rf"{counted(seeds, 'seed')} $\pm$ s.e." if seeds else "")))


def stem(orders: Sequence[Any], values: Sequence[float], ax: Any = None, *, label: str = "",
         xlabel: str = "$k$", ylabel: str = "$c_k$", log: bool = False) -> Any:
    """Coefficients over their orders; with `log` their absolute values: zeros left out, negative ones hollow."""
    ax = new_axes(ax)
    positions = list(range(len(orders)))
    numeric = all(isinstance(k, int) for k in orders)
    x = list(orders) if numeric else positions
    shown = [(p, abs(v) if log else v) for p, v in zip(x, values, strict=True) if v is not None and (v or not log)]
    colour = COLOURS[len(ax.containers) % len(COLOURS)]
    if shown:
        lines = ax.stem(*zip(*shown, strict=True), linefmt=colour, markerfmt=MARKERS[0], basefmt=" ",
                        label=_label(label) or None)
        lines.markerline.set(markersize=4.5, color=colour)
        below = [(p, -v) for p, v in zip(x, values, strict=True) if v is not None and v < 0]
        if log and below:
            ax.plot(*zip(*below, strict=True), MARKERS[0], color=colour, markersize=4.5, markerfacecolor="white", label="negative")
    if log and shown:
        ax.set_yscale("log")
        _plain_ticks(ax.yaxis, ax.get_ylim())
    else:
        ax.axhline(0, color="0.6", linewidth=0.8, zorder=0)
    if not numeric:
        ax.set_xticks(positions, [str(k).replace(" ", "") for k in orders], rotation=60, fontsize="small")
    elif len(x) <= 15:
        ax.set_xticks(x)
    return _finish(ax, xlabel=xlabel, ylabel=rf"$|${ylabel}$|$" if log else ylabel)


def curves(x: Sequence[float], lines: Mapping[str, Sequence[float]], ax: Any = None, *, xlabel: str = "$z$",
           ylabel: str = "", reference: str | None = None) -> Any:
    """Several functions of one variable by name; `reference` names the one drawn thick and grey, below the others.

    It is how a target and its truncations, or overlaps along alpha, are shown.
    """
    ax = new_axes(ax)
    if reference is not None and reference not in lines:
        raise BadInput(f"the curve {reference!r} is not among {', '.join(lines)}")
    if reference is not None:
        ax.plot(x, _numbers(lines[reference]), color="0.55", linewidth=3.2, label=_label(reference), zorder=1)
    rest = [(n, y) for n, y in lines.items() if n != reference]
    for i, (name, y) in enumerate(rest):
        ax.plot(x, _numbers(y), color=COLOURS[i % len(COLOURS)], linestyle=STYLES[i % len(STYLES)], linewidth=1.5,
                label=_label(name), zorder=2)
    return _finish(ax, xlabel=xlabel, ylabel=ylabel)


def learning_curve(x: Sequence[float], theory: Sequence[float], ax: Any = None, *, label: str = "theory",
                   points: Mapping[str, Sequence[float]] | None = None, xlabel: str = r"$\alpha = n/d$",
                   ylabel: str = "test error", log: tuple[bool, bool] = (False, False), steps: bool = False,
                   told: Mapping[str, str] | None = None, measured: str = "", model: str = "") -> Any:
    """Theory as a line, an experiment as points with error bars, in one colour.

    A point of the line without neighbours is a dot, and few points are ticks; other markers are measured.

    Parameters
    ----------
    points : {"x": .., "y": .., "error": ..}: the experiment and its standard error; `measured` is its entry in the legend,
        with its `model` (network, features).
    told : {name: words}, what holds along the line: where several such lines differ in it, their labels say so.
    log : (x, y) whether an axis is logarithmic. A failed point (None or nan) leaves a gap in the line.
    steps : whether the line keeps each value up to the next point, as a function with plateaus does.
    """
    ax = new_axes(ax)
    taken = len([line for line in ax.get_lines() if not line.get_label().startswith("_") and line.get_gid() != REFERENCE])
    colour, style = COLOURS[taken % len(COLOURS)], STYLES[taken % len(STYLES)]
    y = _numbers(theory)
    alone = _isolated_places(y)
    few = 12  # points whose straight joints would be taken for the curve itself
    marker = MARKERS[0] if alone else "|" if len(y) <= few and not steps else None
    (drawn,) = ax.plot(x, y, color=colour, linestyle=style, linewidth=1.5, label=_label(label), markersize=4.5,
                       marker=marker, markevery=alone or None,
                       drawstyle="steps-post" if steps else "default")
    if told is not None:
        drawn.hermitex_told = (label, dict(told))
        _tell_apart(ax)
    if points:
        bars = ax.errorbar(points["x"], _numbers(points["y"]), yerr=points.get("error"), color=colour, linestyle="none",
                           marker=MARKERS[taken % len(MARKERS)], markersize=4, capsize=2, elinewidth=1)
        bars.hermitex_measured = (measured, model)
        _name_experiments(ax)
    for on, scale, axis in zip(log, (ax.set_xscale, ax.set_yscale), (ax.xaxis, ax.yaxis), strict=True):
        if on:
            scale("log")
            _plain_ticks(axis)
    return _finish(ax, xlabel=xlabel, ylabel=ylabel)


def _isolated_places(y: Sequence[float]) -> list[int]:
    """The places of the numbers that no line joins to another."""
    there = [False, *(v == v for v in y), False]
    return [i for i in range(len(y)) if there[i + 1] and not there[i] and not there[i + 2]]


_ENTRY = re.compile(r"(start_)?[QMPav]_?\d+(_\d+)?")  # of matrices of overlaps and vectors of weights: Q11, start_M_10_2, a3


def _tell_apart(ax: Any) -> None:
    """Put before each label what its line differs in from the others and the label does not say yet.

    An entry of an array that only some curves have follows from the sizes, which the legend names.
    """
    lines = [(line, *line.hermitex_told) for line in ax.get_lines() if hasattr(line, "hermitex_told")]
    names = dict.fromkeys(n for _, _, told in lines for n in told)
    differing = [n for n in names if len({told.get(n) for _, _, told in lines}) > 1
                 and not (_ENTRY.fullmatch(n) and any(n not in told for _, _, told in lines))]
    for line, label, told in lines:
        new = [w for w in dict.fromkeys(told[n] for n in differing if n in told) if not _says(label, w)]
        known = "" if new and label == told.get("theory") else label
        line.set_label(_label(", ".join(filter(None, (*new, known)))))


def _name_experiments(ax: Any) -> None:
    """One entry of the legend for experiments alike, with their model."""
    made = [(bars, *bars.hermitex_measured) for bars in ax.containers if hasattr(bars, "hermitex_measured")]
    known = {""}
    for bars, words, model in made:
        first, *rest = words.split(", ")
        said = ", ".join((f"{first} ({model})", *rest)) if model and words else words
        bars.set_label("_experiment" if said in known else _label(said))
        known.add(said)


def _plain_ticks(axis: Any, interval: Sequence[float] | None = None) -> None:
    """0.2, 0.5, 1, 2 on a short logarithmic axis, where matplotlib would write 2 x 10^-1 over its neighbour."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_data_interval() if interval is None else interval
    if low > 0 and high/low < 1e4:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
        axis.set_minor_formatter(NullFormatter())


def along(name: str, x: Sequence[float], columns: Mapping[str, Sequence[float]], ax: Any = None, *, label: str = "",
          log: tuple[bool, bool] | None = None, points: Mapping[str, Sequence[float]] | None = None,
          told: Mapping[str, str] | None = None, measured: str = "experiment", model: str = "", ratio: str = "") -> Any:
    """Columns by name over a parameter, in its order; `ratio` says what the parameter is. For the rest see `learning_curve`."""
    order = sorted(range(len(x)), key=lambda i: x[i])
    line = [float(x[i]) for i in order]
    for quantity, values in columns.items():
        said = ", ".join(filter(None, (label, f"${letter(quantity)}$" if len(columns) > 1 else "")))
        one = len(columns) == 1
        y = [values[i] for i in order]
        ax = learning_curve(line, y, ax, label=said, xlabel=abscissa(name, ratio), ylabel=axis_of(quantity) if one else "",
                            log=log or usual_scales(name, quantity, line, _numbers(y)), points=points, steps=name == "kappa",
                            told=told, measured=measured, model=model)
    return ax


def abscissa(axis: str, ratio: str) -> str:
    """The letter of an axis, and the ratio that it is.

    >>> abscissa("alpha", "n/p"), abscissa("t", "")
    ('$\\\\alpha = n/p$', '$t$')
    """
    return f"${letter(axis)}{f' = {ratio}' if ratio else ''}$"


def usual_scales(axis: str, quantity: str, x: Sequence[float], y: Sequence[float]) -> tuple[bool, bool]:
    """Whether x and y are drawn logarithmically, if nobody says so: geometric x, numbers of samples over a decade and a half, and
    errors that fall by as much, as powers of n or in time.
    """
    finite = [v for v in y if math.isfinite(v)]
    powers = axis in ("n", "samples") and _far(x)
    falls = quantity.endswith("error") and axis == "t" and _far(finite)
    return powers or is_geometric(x), falls or (powers and axis == "n" and all(v > 0 for v in finite))


def _far(v: Sequence[float]) -> bool:
    """Whether positive numbers span a decade and a half."""
    return len(v) > 1 and 0 < 30*min(v) <= max(v)


def axis_of(quantity: str) -> str:
    """The label of an axis: the name of the quantity if the field has one, else its letter."""
    words = {"samples": "exponent of $d$ in $n$",
             "test_error": "test error", "train_error": "train error", "test_loss": "test loss", "train_loss": "train loss"}
    return words.get(quantity, f"${letter(quantity)}$")


def beside(ax: Any, x: Sequence[float], measured: Mapping[str, tuple[Any, Any]], ylabel: str) -> None:
    """What an experiment measured in another quantity than the curve's: {label: (y, error)}, points on an axis at the right."""
    other = ax.twinx()
    for i, (label, (y, error)) in enumerate(measured.items()):
        other.errorbar(list(x), list(y), yerr=None if error is None else list(error), color=COLOURS[(i + 1) % len(COLOURS)],
                       linestyle="none", marker=MARKERS[i % len(MARKERS)], markersize=5, capsize=2, clip_on=False,
                       label=f"{label} (right)")
    other.set_ylabel(ylabel)
    other.set_ylim(bottom=0)
    other.legend(frameon=False, fontsize="small", loc="upper right", bbox_to_anchor=(1, 0.93))  # below the curve's own


def is_geometric(x: Sequence[float]) -> bool:
    """True if the values have one ratio, as in np.geomspace, also if some intervals were halved; for three values, a large ratio.

    >>> is_geometric([1, 10, 100, 1000]), is_geometric([1, 10, 31.6227766, 100, 1000]), is_geometric([1, 2, 3, 4])
    (True, True, False)
    >>> is_geometric([0.01, 0.1, 1]), is_geometric([1, 2, 4])
    (True, False)
    """
    if len(x) < 3 or min(x) <= 0 or (len(x) == 3 and max(x) < 9*min(x)):
        return False
    steps = [math.log(b/a) for a, b in itertools.pairwise(x)]
    largest = max(steps, key=abs)
    if abs(largest) < 1e-6 or min(step/largest for step in steps) <= 0:
        return False
    halvings = [math.log2(largest/step) for step in steps]
    return all(abs(h - round(h)) < 1e-5 for h in halvings)


def heat_map(across: tuple[str, Sequence[float]], up: tuple[str, Sequence[float]], table: Sequence[Sequence[float]], quantity: str,
             ax: Any = None, *, log: tuple[bool, bool] | None = None) -> Any:
    """A quantity over two parameters, `table[row of up][column of across]`, darker where it is larger; failed points stay white."""
    ax = new_axes(ax)
    columns, rows = (sorted(range(len(values)), key=values.__getitem__) for _, values in (across, up))
    x, y = [across[1][j] for j in columns], [up[1][i] for i in rows]
    logs = log or (_by_ratio(x), _by_ratio(y))
    sides = [_edges(values, log=on and values[0] > 0) for values, on in zip((x, y), logs, strict=True)]
    drawn = ax.pcolormesh(*sides, [_numbers([table[i][j] for j in columns]) for i in rows], cmap="viridis_r", shading="flat",
                          rasterized=True)
    few = 5  # values that are ticks themselves
    for values, on, scale, axis in zip((x, y), logs, (ax.set_xscale, ax.set_yscale), (ax.xaxis, ax.yaxis), strict=True):
        if on:
            scale("log")
            _plain_ticks(axis)
        if len(values) <= few:
            axis.set_ticks(values, [f"{v:.4g}" for v in values])
            axis.set_ticks([], minor=True)
    ax.figure.colorbar(drawn, ax=ax, label=axis_of(quantity))
    return _finish(ax, xlabel=f"${letter(across[0])}$", ylabel=f"${letter(up[0])}$", legend=False)


def _by_ratio(values: Sequence[float]) -> bool:
    """Whether increasing values span a decade, nearly, and are spaced at least as evenly by ratios as by differences.

    >>> [_by_ratio(v) for v in ([0.1, 2], [0.5, 2], [1e-3, 1e-2, 0.03, 0.1], [0.2, 1.1, 2, 2.9], [0, 1, 10])]
    [True, False, True, False, False]
    """
    if len(values) < 2 or values[0] <= 0 or values[-1] < 9*values[0]:
        return is_geometric(values)
    steps = [(b - a, math.log(b/a)) for a, b in itertools.pairwise(values)]
    plain, ratio = (max(side)/min(side) for side in zip(*steps, strict=True))
    return ratio <= plain


def _edges(values: Sequence[float], *, log: bool) -> list[float]:
    """Ends of the cells around increasing values: halfway between neighbours, on a logarithmic axis their geometric mean; where no
    value has the other sign, none beyond 0, where many a parameter ends.

    >>> _edges([1, 2, 4], log=False), _edges([0.5, 2], log=False), _edges([-1, 1], log=False)
    ([0.5, 1.5, 3.0, 5.0], [0.0, 1.25, 2.75], [-2.0, 0.0, 2.0])
    >>> _edges([0], log=False), _edges([-2, 0], log=False), _edges([0.1], log=False)
    ([0.0, 0.5], [-3.0, -1.0, 0.0], [0.0, 0.6])
    >>> [round(v, 3) for v in _edges([1, 10, 100], log=True)]
    [0.316, 3.162, 31.623, 316.228]
    """
    if log:
        return [math.exp(v) for v in _plain_edges([math.log(v) for v in values])]
    edges = _plain_edges(values)
    low, high = (0.0 if values[0] >= 0 else -math.inf), (0.0 if values[-1] <= 0 < -values[0] else math.inf)
    return [min(max(v, low), high) for v in edges]


def _plain_edges(values: Sequence[float]) -> list[float]:
    middles = [(a + b)/2 for a, b in itertools.pairwise(values)]
    first, last = (2*values[0] - middles[0], 2*values[-1] - middles[-1]) if middles else (values[0] - 0.5, values[0] + 0.5)
    return [first, *middles, last]


def level_lines(x: Sequence[float], y: Sequence[float], target: Sequence[Sequence[float]],
                tables: Mapping[str, Sequence[Sequence[float]]], ax: Any = None, *, xlabel: str, ylabel: str, quantity: str) -> Any:
    """A function of two variables in grey, `target[row of y][column of x]`, and lines of its levels for each table by name."""
    from matplotlib.lines import Line2D

    ax = new_axes(ax)
    shades = ax.contourf(list(x), list(y), [_numbers(row) for row in target], levels=7, cmap="Greys", alpha=0.7)
    handles = []
    for i, (name, table) in enumerate(tables.items()):
        look: dict[str, Any] = {"color": COLOURS[i % len(COLOURS)], "linestyle": STYLES[i % len(STYLES)]}
        ax.contour(list(x), list(y), [_numbers(row) for row in table], levels=shades.levels, linewidths=1.2,
                   colors=look["color"], linestyles=[look["linestyle"]])
        handles.append(Line2D([], [], label=_label(name), **look))
    ax.figure.colorbar(shades, ax=ax, label=_label(quantity))
    if handles:
        ax.legend(handles=handles, frameon=True, framealpha=0.8, fontsize="small", loc="upper right")
    return _finish(ax, xlabel=xlabel, ylabel=ylabel, legend=False)


def mark_critical(ax: Any, at: float, name: str) -> Any:
    """A dotted line at a critical value of the abscissa; the legend names the first of several."""
    known = name in ax.get_legend_handles_labels()[1]
    ax.axvline(at, color="0.6", linestyle=":", linewidth=1.2, label=f"_{name}" if known else name, gid=REFERENCE)
    name_lines(ax)
    return ax


def staircases(lines: Mapping[str, Sequence[tuple[int, str]]], ax: Any = None, *, title: str = "") -> Any:
    """Steps by name: (height, the directions found on it), in order. The words are above the first line that has them, and below
    the second.
    """
    ax = new_axes(ax)
    most = max(height for steps in lines.values() for height, _ in steps)
    for i, (name, steps) in enumerate(lines.items()):
        heights = [float(h) + 0.04*i*(most > 1 or i > 0) for h, _ in steps]
        ax.stairs(heights, list(range(len(steps) + 1)), baseline=None, color=COLOURS[i % len(COLOURS)], linewidth=2,
                  linestyle=STYLES[i % len(STYLES)], label=_label(name))
        for k, (height, words) in enumerate(steps):
            if i == 0 or lines[next(iter(lines))][k:k + 1] != [(height, words)]:
                side = -1 if i % 2 else 1
                ax.annotate(_label(words), (k + 0.5, heights[k] + 0.06*side), ha="center", va="top" if i % 2 else "bottom",
                            xytext=(0, 4*side), textcoords="offset points", fontsize="small", color=COLOURS[i % len(COLOURS)])
    count = max(map(len, lines.values()))
    ax.set_xlim(-0.05, count + 0.05)
    ax.set_ylim(0, most + 1)
    ax.set_xticks(range(count + 1))
    ax.set_yticks(range(most + 2))
    ax.set_title(title, fontsize="medium")
    return _finish(ax, xlabel="directions found", ylabel="order $k$ of the tensor that finds it")


def cells(x: Sequence[float], y: Sequence[float], table: Sequence[Sequence[int]], names: Sequence[str], ax: Any = None, *,
          xlabel: str = "$x$", ylabel: str = "$y$") -> Any:
    """A phase picture: which of the named regimes holds at each point of a grid, `table[row of y][column of x]`; -1 is none.

    Each regime that occurs has a pale colour and a line in the legend below; beyond the colours there are, darker ones.
    """
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    ax = new_axes(ax)
    pale = [_paler(COLOURS[i % len(COLOURS)], 0.45 if i < len(COLOURS) else 0.9) for i in range(len(names))]
    ax.pcolormesh(x, y, [[i if i >= 0 else float("nan") for i in row] for row in table], cmap=ListedColormap(pale), vmin=-0.5,
                  vmax=len(names) - 0.5, shading="nearest", rasterized=True)
    handles = []
    for i, name in enumerate(names):
        if any(i in row for row in table):
            handles.append(Patch(color=pale[i], label=_label(name)))
    ax.legend(handles=handles, frameon=False, fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.16),
              ncols=min(2, len(handles)))
    return _finish(ax, xlabel=xlabel, ylabel=ylabel, legend=False)


def _paler(colour: str, share: float = 0.45) -> tuple[float, float, float]:
    from matplotlib.colors import to_rgb

    red, green, blue = (share*v + 1 - share for v in to_rgb(colour))
    return red, green, blue


def _numbers(values: Sequence[Any]) -> list[float]:
    return [float("nan") if v is None else float(v) for v in values]


def embedded(figure: Any) -> str:
    """A figure (or that of axes) as an HTML image that holds its own PNG."""
    import base64

    out = io.BytesIO()
    getattr(figure, "figure", figure).savefig(out, format="png", dpi=90, metadata={"Software": None})
    return f'<img alt="a picture of the curve" src="data:image/png;base64,{base64.b64encode(out.getvalue()).decode()}"/>'


def save(figure: Any, path: str | os.PathLike[str]) -> Path:
    """Write a figure (or the figure of axes) in the format of the path's ending; same picture, same bytes.

    Raises
    ------
    BadInput : an unknown picture format, or a place that cannot be written; one line, and no file.
    """
    return write_whole(path, encoded(figure, format_of(path)))


def format_of(path: str | os.PathLike[str]) -> str:
    """The one of `FORMATS` that the path's ending names.

    Raises
    ------
    BadInput : none of them.
    """
    ending = Path(path).suffix[1:].lower()
    if ending not in FORMATS:
        raise BadInput(f"cannot write a picture to {str(path)[:80]!r}; end it in .{', .'.join(FORMATS)}")
    return ending


def encoded(figure: Any, ending: str) -> bytes:
    """A figure (or that of axes) in one of `FORMATS`; same picture, same bytes."""
    import matplotlib

    figure = getattr(figure, "figure", figure)
    dates = {"pdf": {"CreationDate": None, "ModDate": None}, "svg": {"Date": None}, "png": {}}[ending]
    out = io.BytesIO()
    # svg: ids from a fixed salt and text as text; pdf: fonts embedded as TrueType, as journals ask.
    with matplotlib.rc_context({"svg.hashsalt": "hermitex", "svg.fonttype": "none", "pdf.fonttype": 42}):
        figure.savefig(out, format=ending, metadata=dates or None, dpi=200 if ending == "png" else None)
    return out.getvalue()
