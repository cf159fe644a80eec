"""Solution, Curve, Trajectory and Sweep: numbers by name, the parameters with them, a file that is read back, one table."""

import copy
import pickle

import numpy as np
import pytest

import hermitex as hx
from hermitex.errors import BadInput, UnknownName

GLM = hx.theories.glm()
RIDGE = hx.System({"Vhat": "alpha/(1 + V)", "V": "1/(lamda + Vhat)"}, where={"u": "1 + V"}, observables={"size": "V**2*u"})
FLOW = hx.Flow({"m": "a*(1 - m**2)"}, start={"m": 0.1}, symbols="a")
COMMITTEE = hx.theories.committee("erf", students=1, teachers=1)
STATE = {"Q": [[1.0]], "M": [[0.5]]}
RESULTS = {
    "solution of a theory": (lambda: GLM.solve(alpha=[0.5, 1, 2], lam=0.1, Delta=0.25), "lam", 0.1, "test_error"),
    "curve": (lambda: GLM.curve(alpha=[0.5, 1, 2], lam=0.1, Delta=0.25), "lam", 0.1, "test_error"),
    "sweep of a theory": (lambda: hx.sweep(GLM, {"alpha": [0.5, 1, 2], "lam": [0.1, 1]}, parameters={"Delta": 0.25}), "Delta", 0.25,
                          "test_error"),
    "solution": (lambda: RIDGE.solve(alpha=[1, 2, 3], lam=0.1), "lam", 0.1, "V"),
    "one point": (lambda: RIDGE.solve(alpha=1, lam=0.1), "lam", 0.1, "V"),
    "sweep": (lambda: hx.sweep(RIDGE, {"lam": [0.1, 1.0]}, parameters={"alpha": 2}), "alpha", 2, "V"),
    "trajectory of a theory": (lambda: COMMITTEE.solve(t=[0, 0.5, 1], gamma=0.5, **STATE), "gamma", 0.5, "risk"),
    "curve along t": (lambda: COMMITTEE.curve(t=[0, 0.5, 1], gamma=0.5, **STATE), "start_M11", 0.5, "risk"),
    "trajectory": (lambda: FLOW.solve(t=[0, 0.5, 1], a=2), "a", 2, "m"),
}


@pytest.fixture(scope="module", params=RESULTS, name="result")
def fixture_result(request):
    make, letter, value, quantity = RESULTS[request.param]
    return make(), letter, value, quantity


def test_a_number_is_asked_for_in_two_ways(result):
    found, letter, value, quantity = result
    assert np.array_equal(getattr(found, quantity), found[quantity]) and quantity in dir(found)
    assert np.all(found[letter] == value) and np.all(getattr(found, letter) == value)
    with pytest.raises(UnknownName):
        found["nonsense"]
    with pytest.raises(AttributeError, match="has no 'nonsense'"):
        found.nonsense  # noqa: B018
    with pytest.raises(AttributeError, match=f"did you mean .*{quantity}"):
        getattr(found, quantity + "s")


def test_the_parameters_are_columns(result):
    found, letter, value, quantity = result
    frame = found.to_dataframe()
    spelt = letter if letter in frame else "lamda"
    assert (frame[spelt] == value).all() and quantity in frame and len(frame) == len(next(iter(found.table().values())))


def test_what_is_written_is_read_back_to_the_last_bit(result, tmp_path):
    found, _, _, quantity = result
    found.to_csv(tmp_path/"table.csv")
    again = hx.load(tmp_path/"table.csv")
    for name, column in found.table().items():
        if column and isinstance(column[0], float):
            assert np.array_equal(again[name], np.array(column, dtype=float), equal_nan=True), name
    assert np.array_equal(np.ravel(getattr(again, quantity)), np.ravel(found[quantity]))


def test_a_sweep_comes_back_with_its_grid(tmp_path):
    table = RESULTS["sweep of a theory"][0]()
    table.to_csv(tmp_path/"table.csv")
    again = hx.load(tmp_path/"table.csv")
    assert again.axes == table.axes and np.array_equal(again.on_grid("test_error"), table.on_grid("test_error"))


@pytest.mark.parametrize("text", ["", "a,a\n1,2\n", "a,b\n1\n", "a,b\n", "\xff\xfe"])
def test_what_is_no_table_is_refused_in_one_line(text, tmp_path):
    (tmp_path/"bad.csv").write_bytes(text.encode("latin-1"))
    for path in (tmp_path/"bad.csv", tmp_path/"missing.csv", tmp_path):
        with pytest.raises(BadInput) as caught:
            hx.load(path)
        assert "\n" not in str(caught.value)


def test_they_show_themselves_in_one_manner(result):
    found = result[0]
    shown = found._repr_html_()
    assert "nowrap" in shown and "\n" not in repr(found) and repr(found).startswith(type(found).__name__ + "(")
    names = [n for n in ("T0", "L") if n in getattr(found, "value", ())]
    assert not any(f">${n}$<" in shown for n in names)


def test_the_ridge_has_two_spellings_everywhere():
    asked = [dict(alpha=[1.0, 2.0], Delta=0.25, **{name: 0.1}) for name in ("lam", "lamda")]
    one, two = (GLM.solve(**a) for a in asked)
    assert np.array_equal(one.test_error, two.test_error) and one["lamda"] == one["lam"] == two["lamda"] == two.lamda == 0.1
    first, second = (hx.curve(GLM, **a) for a in asked)
    assert np.array_equal(first.test_error, second.test_error) and second["lamda"] == second["lam"] == 0.1
    tables = [hx.sweep(GLM, {"alpha": [1, 2], name: [0.1, 1]}, parameters={"Delta": 0.25}) for name in ("lam", "lamda")]
    assert np.array_equal(tables[0].test_error, tables[1].test_error) and np.array_equal(tables[0]["lamda"], tables[1]["lam"])
    best = [GLM.minimise("test_error", over=name, bounds=(1e-3, 10), alpha=2, Delta=0.25) for name in ("lam", "lamda")]
    assert best[0]["lam"] == best[1]["lam"] == best[1]["lamda"] == pytest.approx(0.25, abs=1e-6)
    solved = [RIDGE.solve(alpha=2, **{name: 0.1}) for name in ("lam", "lamda")]
    assert solved[0].derivative("lam") == solved[1].derivative("lamda") and solved[0]["lam"] == solved[1]["lamda"]
    with pytest.raises(BadInput, match="give it once"):
        GLM.solve(alpha=2, Delta=0.25, lam=0.1, lamda=0.1)


def test_they_are_copied_and_pickled(result):
    found = result[0]
    for again in (copy.copy(found), copy.deepcopy(found)):
        assert np.array_equal(again[result[3]], found[result[3]])
    if "trajectory" not in type(found).__name__.lower():
        assert np.array_equal(pickle.loads(pickle.dumps(found))[result[3]], found[result[3]])


def test_a_picture_of_each(result):
    pytest.importorskip("matplotlib")
    found = result[0]
    if getattr(found, "points", 1) is None and type(found).__name__ == "Solution":
        with pytest.raises(BadInput, match="one point"):
            found.plot()
        return
    ax = found.plot()
    assert ax.get_xlabel() and (ax.get_ylabel() or ax.get_legend()) and (ax.get_lines() or ax.collections)


def test_three_swept_parameters_are_no_picture():
    grid = {"alpha": [1, 2], "lam": [0.1, 1], "Delta": [0.1, 0.2]}
    with pytest.raises(BadInput, match="3 parameters"):
        hx.sweep(GLM, grid).plot()


def test_a_notebook_shows_the_picture_of_a_curve_and_what_tells_two_apart():
    pytest.importorskip("matplotlib")
    made = [hx.curve("one-step", sigma=s, target="sin", alpha=[0.5, 1.0], lam=0.1, alpha0=5, eta=2) for s in ("relu", "tanh")]
    shown = made[0]._repr_html_()
    assert shown.startswith("<img") and "data:image/png;base64," in shown and shown.count("<th") <= 4
    ax = made[1].plot(made[0].plot())
    assert [t.get_text().split(",")[0] for t in ax.get_legend().get_texts()] == ["relu", "tanh"]
    own = hx.curve("one-step", sigma="erf", target="sin", alpha=[0.5], lam=0.1, alpha0=5, eta=2, title="mine")
    assert [t.get_text() for t in own.plot(ax).get_legend().get_texts()][-1] == "mine"


def test_a_curve_is_named_in_words():
    theory = hx.theories.committee("z", students=1)
    assert "(students = 1, teachers = 1, gamma = 1: t" in repr(theory.curve(t=[0, 1], gamma=1, dimension=100))


def _flow(**given):
    return hx.curve("spiked-covariance", **{"target": "z", "t": [0, 1], "gamma_2": 0.5, "dimension": 100, **given})


def _tree(**given):
    return hx.curve("tree", **{"target": "z", "P": "2:1", "epsilon1": "1/2", "kappa": [1.2], "scenario": "II", **given})


def _pair(**given):
    return hx.curve("committee", **{"sigma": "z", "students": 1, "t": [0, 1], "gamma": 1, "dimension": 100, **given})


@pytest.mark.parametrize("make, other, told", [
    (_flow, {"flow": "spherical"}, ["preconditioned flow", "spherical flow"]),
    (_flow, {"m0": 0.3}, ["preconditioned flow", "$m_{0} = 0.3$, preconditioned flow"]),
    (_tree, {"target": "2*z"}, ["z, scenario II", "2*z, scenario II"]),
    (_tree, {"P": "2:1,3:1"}, ["P = 2:1, scenario II", "P = 2:1, 3:1, scenario II"]),
    (_tree, {"epsilon1": "1/3"}, [r"$\epsilon_{1}$ = 1/2, scenario II", r"$\epsilon_{1}$ = 1/3, scenario II"]),
    (_pair, {"students": 2}, [rf"$\mathrm{{students}} = {p}$, $\gamma = 1$" for p in (1, 2)])])
def test_a_legend_says_what_differs_and_says_it_once(make, other, told):
    ax = make(**other).plot(make().plot())
    assert ax.get_legend_handles_labels()[1] == told


def test_one_curve_says_what_it_is_of_and_so_does_its_file(tmp_path):
    """sigma, g and lam over the entries; the experiment, made at 8 of the 9 points, keeps its entry in a file."""
    theory, at = hx.theories.one_step("tanh", "sin"), dict(alpha=[0.5, 1, 2, 3, 4, 5, 6, 7, 8], lam=0.1, alpha0=2, eta=1)
    found = hx.curve(theory, simulate={"model": "network", "dimension": 20, "seeds": 2}, **at)
    ax = found.plot()
    assert ax.get_legend().get_title().get_text() == r"$\sigma$ = tanh, $g$ = sin, $\lambda = 0.1$"
    entries = [r"$\alpha_0 = 2$, $\eta = 1$, theory at $d \to \infty$",
               r"experiment (network), $d = 20$, 2 seeds $\pm$ s.e."]
    assert ax.get_legend_handles_labels()[1] == entries
    back = hx.load(found.to_csv(tmp_path/"curve.csv"))
    read = back.plot()
    assert read.get_legend_handles_labels()[1] == entries and read.get_xlabel() == ax.get_xlabel()
    assert read.get_legend().get_title().get_text() == ax.get_legend().get_title().get_text()
    measured = np.isfinite(back["simulated_test_error"])
    np.testing.assert_array_equal(back["simulated_test_error"][measured], found.simulation.test_error)


def test_a_curve_that_is_read_back_shows_its_experiment(tmp_path):
    (tmp_path/"curve.csv").write_text("alpha,test_error,simulated_test_error,simulated_test_error_se\n1,0.5,0.52,0.01\n2,0.25,0.24,0.02\n")
    ax = hx.load(tmp_path/"curve.csv").plot()
    assert ax.get_legend_handles_labels()[1] == ["theory", "experiment"] and ax.get_xlabel() == r"$\alpha$"
    points, (lower, _), _ = ax.containers[0]
    assert points.get_ydata().tolist() == [0.52, 0.24] and np.allclose(np.asarray(lower.get_ydata(), dtype=float), [0.51, 0.22])
    assert next(line for line in ax.get_lines() if line.get_linestyle() != "None").get_ydata().tolist() == [0.5, 0.25]
    hx.load(tmp_path/"curve.csv").plot(quantity="simulated_test_error")
    (tmp_path/"words.csv").write_text("word,q\na,1\nb,2\n")
    with pytest.raises(BadInput, match="word holds words"):
        hx.load(tmp_path/"words.csv").plot()


def _drawn(ax):
    """What a picture of lines says and shows."""
    return (ax.get_legend_handles_labels()[1], ax.get_legend().get_title().get_text(), ax.get_xlabel(), ax.get_ylabel(),
            ax.get_xscale(), [line.get_xydata().tolist() for line in ax.get_lines()])


@pytest.mark.parametrize("each, simulate", [
    ({"lam": [0.02, 0.3]}, {"dimension": 20, "seeds": 2, "alpha": [0.5, 1, 2]}),
    ({"lam": [0.02, 0.3]}, False), ({"sigma": ["relu", "tanh"], "lam": [0.1, 1, 2]}, False)])
def test_curves_that_are_read_back_are_drawn_as_they_were(tmp_path, each, simulate):
    """Curves of two ridges were a heat map without their experiment; curves of two functions had no picture."""
    given = {"sigma": "tanh", "target": "sin", "gamma": 1, "alpha": [0.5, 1, 2], **each}
    found = hx.curve("random-features", each=list(each), simulate=simulate, **given)
    asked, read = found.plot(), hx.load(found.to_csv(tmp_path/"curves.csv")).plot()
    assert _drawn(read) == _drawn(asked) and read.get_xlabel() == r"$\alpha = n/p$"
    assert len(read.containers) == (2 if simulate else 0) and not read.collections[2*bool(simulate):]


def test_a_sweep_is_drawn_in_lines_if_a_quantity_is_named(tmp_path):
    for grid in ({"alpha": np.linspace(0.5, 3, 8), "lam": [0.1, 1]}, {"lam": [0.1, 1], "alpha": np.linspace(0.5, 3, 8)}):
        made = hx.sweep(GLM, grid)
        for table in (made, hx.load(made.to_csv(tmp_path/"sweep.csv"))):
            assert table.plot().collections and not table.plot().get_lines()
            ax = table.plot(quantity="test_error")
            assert ax.get_legend_handles_labels()[1] == [r"$\lambda = 0.1$", r"$\lambda = 1$"] and ax.get_xlabel() == r"$\alpha$"
            for line, lam in zip(ax.get_lines(), grid["lam"], strict=True):
                np.testing.assert_array_equal(line.get_ydata(), made.test_error[made["lam"] == lam])
    assert hx.sweep(GLM, {"alpha": np.linspace(0.5, 3, 7), "lam": np.geomspace(0.1, 1, 7)}).plot(quantity="test_error").collections


def test_the_legend_names_the_letter_that_was_optimised(tmp_path):
    theory, at = hx.theories.glm(), {"alpha": [0.5, 1, 2], "Delta": 0.25}
    best = hx.curve(theory, optimise="lam", **at)
    for one in (best, theory.curve(optimise="lamda", **at), hx.load(best.to_csv(tmp_path/"best.csv"))):
        assert one.plot().get_legend_handles_labels()[1][0].endswith(r"best $\lambda$")
    assert "best lambda" in repr(best) and "best" not in repr(hx.curve(theory, lam=1, **at))
    ax = hx.curve(theory, lam=1, **at).plot(best.plot())
    assert ["best" in label for label in ax.get_legend_handles_labels()[1]] == [True, False]
    assert hx.curve(theory, optimise="lam", title="mine", **at).plot().get_legend_handles_labels()[1] == ["mine"]


def test_exponents_and_coefficients_have_pictures():
    pytest.importorskip("matplotlib")
    ax = hx.exponents("z1*z2 + z1").plot()
    assert ax.get_title() == "$z_{1} z_{2} + z_{1}$" and len(ax.patches) == 2
    with pytest.raises(BadInput, match="no order"):
        hx.exponents("3").plot()
    ax = hx.mu("relu", 1).plot(kappa=[-1.0, 0.0, 1.0])
    assert ax.get_lines()[0].get_ydata()[1] == pytest.approx(0.5) and "kappa" in ax.get_xlabel()


def test_a_table_without_a_verdict_has_none_where_numbers_are_missing(tmp_path):
    (tmp_path/"q.csv").write_text("alpha,q\n1,0.5\n2,\n3,nan\n", encoding="utf-8")
    assert hx.load(tmp_path/"q.csv")["converged"].tolist() == [True, False, False]


def test_a_column_without_a_number_is_one_of_missing_numbers(tmp_path):
    """None of its points was found: each is nan, as it was when the result was written."""
    (tmp_path/"q.csv").write_text("alpha,q,V\n1,,0.5\n2,,0.25\n", encoding="utf-8")
    again = hx.load(tmp_path/"q.csv")
    assert again["q"].dtype == float and np.isnan(again["q"]).all() and not again["converged"].any()
    assert again["V"].tolist() == [0.5, 0.25] and again.axes == {"alpha": (1.0, 2.0)}
    (tmp_path/"r.csv").write_text("alpha,V,reason\n1,0.5,\n2,0.25,\n", encoding="utf-8")
    assert list(hx.load(tmp_path/"r.csv")["reason"]) == ["", ""]


def test_a_table_with_the_mark_of_a_spreadsheet_is_read(tmp_path):
    (tmp_path/"q.csv").write_bytes(b"\xef\xbb\xbfalpha,q\n1,0.5\n2,0.25\n")
    assert hx.load(tmp_path/"q.csv").axes == {"alpha": (1.0, 2.0)}
    for path, said in ((None, "cannot read"), ("a\0b", "not a file name")):
        with pytest.raises(BadInput, match=said):
            hx.load(path)


def test_a_sweep_is_a_dataset_over_its_grid(monkeypatch):
    from hermitex.symbols import V, alpha, lamda

    table = hx.sweep(hx.System({V: 1/(lamda + alpha)}), {"alpha": [1, 2, 3], "lamda": [0.5, 1.0]})
    try:
        import xarray  # noqa: F401
    except ImportError:
        with pytest.raises(hx.errors.MissingExtra, match="xarray"):
            table.to_xarray()
        return
    found = table.to_xarray()
    assert dict(found.sizes) == {"alpha": 3, "lamda": 2} and bool(found["converged"].all())
    for a in (1, 2, 3):
        for v in (0.5, 1.0):
            assert float(found["V"].sel(alpha=a, lamda=v)) == pytest.approx(1/(a + v), rel=1e-9)


@pytest.mark.parametrize("make", [
    lambda: hx.theories.random_features("tanh", "sin").solve(alpha=[1, 2, 3], gamma=1, lam=0.1),
    lambda: hx.theories.random_features("tanh", "sin").curve(alpha=[1, 2, 3], gamma=1, lam=0.1),
    lambda: hx.curve("random-features", sigma="tanh", target="sin", alpha=[1, 2, 3], gamma=1, each="lam", lam=[0.1, 1]),
    lambda: hx.theories.sgd("tanh", "z").solve(t=[0, 1, 2], m0=0.1),
    lambda: hx.exponents(["z", "z**2"])])
def test_every_table_is_a_dataset(make):
    """Each column at the places of its own rows; what is one number stands among the attributes."""
    pytest.importorskip("xarray")
    result = make()
    found, columns = result.to_xarray(), result.table()
    axes = list(found.sizes)
    for i in range(len(next(iter(columns.values())))):
        at = found.sel({a: columns[a][i] for a in axes})
        for name in set(found) - {"reason"}:
            value = at[name].item()
            assert value == columns[name][i] or value != value, name
    assert {*found, *axes, *found.attrs} == set(columns)


@pytest.mark.parametrize("rows", [[(1, 5), (2, 5), (1, 6), (2, 6)], [(1, 5), (1, 6), (2, 5), (2, 6)],
                                  [(1, 5), (2, 6), (1, 6), (2, 5)]])
def test_a_table_in_any_order_is_read_as_it_stands(rows, tmp_path):
    (tmp_path/"t.csv").write_text("a,b,q\n" + "".join(f"{a},{b},{10*a + b}\n" for a, b in rows))
    back = hx.load(tmp_path/"t.csv")
    if len(back.axes) == 2:
        grid = back.on_grid("q")
        names = list(back.axes)
        for i, x in enumerate(back.axes[names[0]]):
            for j, y in enumerate(back.axes[names[1]]):
                a, b = (x, y) if names == ["a", "b"] else (y, x)
                assert grid[i, j] == 10*a + b
    else:
        assert rows[1] == (2, 6) and list(back.q) == [10*a + b for a, b in rows]


def test_axes_are_no_words():
    with pytest.raises(BadInput, match="quantity='test_error'"):
        hx.theories.random_features("tanh", "sin").curve(alpha=[1, 2], gamma=1, lam=0.1).plot("test_error")
