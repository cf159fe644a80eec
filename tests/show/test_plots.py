"""Pictures: axes in, axes out; what was given stands on them; a file is whole, the same each time, or not there."""

from __future__ import annotations

import math
import os

import numpy as np
import pytest

import hermitex as hx
from hermitex.errors import BadInput
from hermitex.show import plots

pytest.importorskip("matplotlib")
ALPHA = [0.5, 1.0, 2.0, 4.0]


def test_the_coefficients_stand_where_they_were_given():
    ax = plots.stem([0, 1, 2, 3], [0.5, -0.25, 0.0, None])
    x, y = ax.containers[0].markerline.get_data()
    assert list(x) == [0, 1, 2] and list(y) == [0.5, -0.25, 0.0]
    assert plots.stem([0, 1], [1, 2], ax) is ax
    assert ax.containers[0].markerline.get_color() != ax.containers[1].markerline.get_color()


def test_logarithmic_coefficients_leave_out_zeros():
    ax = plots.stem([0, 1, 2], [0.5, 0.0, -0.1], log=True)
    assert list(ax.containers[0].markerline.get_ydata()) == [0.5, 0.1] and ax.get_yscale() == "log"


def test_several_variables_are_named_by_their_index():
    ax = plots.stem([(0, 1), (1, 1)], [1, 2])
    assert [t.get_text() for t in ax.get_xticklabels()] == ["(0,1)", "(1,1)"]


def test_a_target_and_its_truncations():
    lines = {"tanh": [0, 1, 2, 3], "order 1": [1, 1, 1, 1], "order 3": [2, 2, 2, 2]}
    ax = plots.curves(ALPHA, lines, reference="tanh", ylabel="$g$")
    assert [line.get_label() for line in ax.get_lines()] == list(lines)
    assert len({line.get_color() for line in ax.get_lines()}) == 3 == len({line.get_linestyle() for line in
                                                                          ax.get_lines()} | {"reference"})
    with pytest.raises(BadInput, match="is not among"):
        plots.curves(ALPHA, lines, reference="sin")


def test_a_failed_point_is_a_gap_and_theory_and_experiment_share_a_colour():
    ax = plots.learning_curve(ALPHA, [1, None, 0.5, 0.2], label="r = 0", log=(True, True),
                              points={"x": ALPHA, "y": [1, 0.7, 0.5, 0.2], "error": [0.1]*4})
    line = ax.get_lines()[0]
    assert math.isnan(line.get_ydata()[1]) and ax.get_xscale() == ax.get_yscale() == "log"
    assert {child.get_color() for child in ax.get_lines()} == {line.get_color()}
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["r = 0"]
    plots.learning_curve(ALPHA, [1, 1, 1, 1], ax, label="r = 1")
    assert ax.get_lines()[-1].get_color() != line.get_color()


def test_colours_are_told_apart_in_grey_too():
    def luminance(colour):
        r, g, b = (int(colour[i:i + 2], 16) for i in (1, 3, 5))
        return 0.299*r + 0.587*g + 0.114*b

    assert len(set(plots.COLOURS)) == 7 and len({round(luminance(c)) for c in plots.COLOURS}) == 7


@pytest.mark.parametrize("ending", ["pdf", "svg", "png"])
def test_the_same_picture_is_the_same_file(ending, tmp_path):
    written = []
    for name in ("a", "b"):
        path = plots.save(plots.curves(ALPHA, {"$q$": [0, 1, 2, 3]}), tmp_path / f"{name}.{ending}")
        written.append(path.read_bytes())
    assert written[0] == written[1] and len(written[0]) > 1000
    assert sorted(os.listdir(tmp_path)) == [f"a.{ending}", f"b.{ending}"]


@pytest.mark.parametrize("place", ["curve", "curve.docx", "missing/curve.pdf", "", ".pdf", "curve.pdf/"])
def test_a_bad_place_is_one_line_and_no_file(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "curve.pdf").mkdir()
    with pytest.raises(BadInput, match="cannot write") as caught:
        plots.save(plots.stem([0], [1]), place)
    assert "\n" not in str(caught.value) and os.listdir(tmp_path) == ["curve.pdf"]


def test_only_a_point_without_neighbours_is_a_dot_of_a_line():
    """A line with a dot at each of its four points looked like an experiment."""
    many, y = list(range(1, 21)), [float(v) for v in range(20)]
    single = plots.learning_curve([1.0], [0.3]).get_lines()[0]
    assert single.get_marker() == "o" and plots.learning_curve(many, y).get_lines()[0].get_marker() == "None"
    assert plots.learning_curve(ALPHA, [1, 2, 3, 4]).get_lines()[0].get_marker() == "|"  # few points are ticks
    gaps = plots.learning_curve(many, [1, None, *y[2:]]).get_lines()[0]
    assert gaps.get_markevery() == [0]


@pytest.mark.parametrize(("told", "labels"), [
    ([{"sigma": "relu", "eta": "$1$"}, {"sigma": "tanh", "eta": "$1$"}], ["relu, a", "tanh, a"]),
    ([{"sigma": "relu", "eta": "$1$"}, {"sigma": "relu", "eta": "$2$"}], ["$1$, a", "$2$, a"]),
    ([{"sigma": "relu"}, {"sigma": "relu"}], ["a", "a"]),
    ([{"theory": "a", "lam": "$1$"}, {"theory": "a"}, {"theory": "b"}], ["$1$", "a", "b, a"]),
])
def test_labels_say_what_differs(told, labels):
    ax = None
    for one in told:
        ax = plots.learning_curve(ALPHA, [1, 2, 3, 4], ax, label="a", told=one)
    assert [t.get_text() for t in ax.get_legend().get_texts()] == labels


def test_the_title_of_a_legend_says_what_all_lines_share():
    of = plots.held_words({"sigma": "tanh", "target": "tanh", "lam": 0.1, "Delta": 0.0, "alpha0": 2.0, "r": 0.5, "loss": "square"})
    ax = plots.learning_curve(ALPHA, [1, 2, 3, 4], label="a", told={"theory": "a", **of})
    assert ax.get_legend().get_title().get_text() == "$\\sigma$ = tanh, $g$ = tanh, $\\lambda = 0.1$\n$\\alpha_0 = 2$"
    exact = of | plots.held_words({"network": "exact", "sigma": "erf"})
    ax = plots.learning_curve(ALPHA, [1, 2, 3, 4], ax, label="a", told={"theory": "a", **exact})
    assert ax.get_legend().get_title().get_text() == "$g$ = tanh, $\\lambda = 0.1$, $\\alpha_0 = 2$"
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["tanh", "erf, exact network"]
    own = plots.learning_curve(ALPHA, [1, 2, 3, 4], ax, label="mine")
    assert own.get_legend().get_title().get_text() == ""  # nobody knows what holds along a line of the user's own


def test_an_experiment_has_one_entry():
    ax = None
    for k in range(2):
        ax = plots.learning_curve(ALPHA, [1, 2, 3, 4], ax, label=str(k), points={"x": ALPHA, "y": ALPHA}, measured="$d = 9$")
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["0", "1", "$d = 9$"]


def test_experiments_of_several_models_are_told_apart():
    ax, how = None, {"points": {"x": ALPHA, "y": ALPHA}, "measured": "experiment, $d = 9$"}
    for k, model in enumerate(("network", "network", "features", "")):
        ax = plots.learning_curve(ALPHA, [1, 2, 3, 4], ax, label=str(k), model=model, **how)
        said = [t.get_text() for t in ax.get_legend().get_texts()][k + 1:]
        each = ["experiment (network), $d = 9$", "experiment (features), $d = 9$", "experiment, $d = 9$"]
        assert said == each[:max(k, 1)]


def test_negative_coefficients_are_hollow():
    ax = plots.stem([0, 1, 2], [0.5, -0.25, 0.1], log=True)
    hollow = [line for line in ax.get_lines() if line.get_label() == "negative"]
    assert [list(v) for v in hollow[0].get_data()] == [[1], [0.25]]


@pytest.mark.parametrize(("values", "edges", "scale"), [
    ([0.5, 2], [0, 1.25, 2.75], "linear"), ([0.1, 1e-3, 1e-2], [10**-3.5, 10**-2.5, 10**-1.5, 10**-0.5], "log"),
    ([0.2, 5], [0.04, 1, 25], "log"), ([0, 0.1], [0, 0.05, 0.15], "linear"), ([-1, 1], [-2, 0, 2], "linear")])
def test_cells_stay_on_their_side_of_0(values, edges, scale):
    """Rows in order, whatever order they came in; a row of few values has its ticks at them."""
    ax = plots.heat_map(("alpha", [1, 2]), ("beta", values), [[v, -v] for v in values], "test_error")
    mesh = ax.collections[0]
    assert np.allclose(mesh.get_coordinates()[:, 0, 1], edges) and ax.get_yscale() == scale
    assert np.allclose(mesh.get_array()[:, 0], sorted(values)) and list(ax.get_yticks()) == sorted(values)


def test_a_heat_map_has_a_row_for_each_value_that_goes_up():
    ax = plots.heat_map(("alpha", [1, 2, 3]), ("lam", [0.1, 1.0]), [[1, 2, 3], [4, None, 6]], "test_error")
    values = ax.collections[0].get_array()
    assert values.shape == (2, 3) and math.isnan(values.filled(math.nan)[1, 1]) and ax.get_ylabel() == r"$\lambda$"


def test_staircases_have_a_step_for_each_direction():
    ax = plots.staircases({"one": [(1, "z1"), (2, "z2")], "two": [(1, "z1")]})
    assert ax.get_xlim()[1] > 2 and [t.get_text() for t in ax.texts] == ["z1", "z2"]


def test_words_of_two_staircases_do_not_cover_each_other():
    """Over the first line, under the second."""
    ax = hx.exponents("z1*z2*z3 + z1*z2").plot()
    ax.figure.canvas.draw()
    boxes = [t.get_window_extent() for t in ax.texts]
    assert len(boxes) == 6
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[i + 1:])


@pytest.mark.parametrize("target, said", [("(pi*z1 + z2)**2", r"\pi"),
                                          ("(sqrt(1 + pi)*z1 + sqrt(exp(1) + 2)*z2)**2", "z1 + 1.06735*z2")])
def test_the_directions_of_a_staircase_are_formulas_and_long_ones_are_rounded(target, said):
    texts = [t.get_text() for t in hx.exponents(target).plot().texts]
    assert any(said in t for t in texts) and not any("pi*" in t or "..." in t for t in texts), texts


def test_regimes_beyond_the_colours_are_told_apart():
    names = [f"regime {i}" for i in range(len(plots.COLOURS) + 4)]
    ax = plots.cells(list(range(len(names))), [0, 1], [list(range(len(names)))]*2, names)
    assert len({patch.get_facecolor() for patch in ax.get_legend().get_patches()}) == len(names)


@pytest.mark.parametrize("own", [False, True])
def test_many_lines_are_named_below_the_curves(own):
    ax = plots.new_axes() if own else None
    if own:
        del ax.hermitex_size  # as a user's own axes
    for k in range(12):
        ax = plots.learning_curve([0, 1, 2], [k, k + 1, k], ax, label=f"$k = {k}$")
    figure, legend = ax.figure, ax.get_legend()
    figure.canvas.draw()
    drawn = {(line.get_color(), str(line._dash_pattern)) for line in ax.get_lines()}
    assert len(legend.get_texts()) == len(drawn) == 12
    low, high = (legend.get_window_extent().y1, ax.get_window_extent().y0)
    assert (low <= high) is not own
    assert figure.bbox.y0 <= legend.get_window_extent().y0 and ax.get_window_extent().height > 0.5*100*3.4
