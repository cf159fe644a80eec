"""hx.Flow: rates with E nodes, integrated as by hand; the file, the spec and the sweep give the numbers of the session."""

import importlib.util
import json
import subprocess
import sys

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from scipy.integrate import solve_ivp
from sympy import Eq, Idx, IndexedBase, Matrix, Rational, Sum, Symbol, cos, erf, oo, sin, sqrt, stats, symbols, tanh

import hermitex as hx
from hermitex.errors import BadInput, NotConverged, UnknownName
from hermitex.face import cli, spec
from hermitex.symbols import m, z, z1, z2

t, x, y, w = symbols("t x y w", real=True)
q, a, eta = symbols("q a eta", positive=True)
Q, R = Symbol("Q", positive=True), Symbol("R", real=True)


def saad_solla(noise=1):
    """One erf neuron that learns one: the rates with the averages as they are written in the paper's derivation."""
    cov, d = {(z1, z1): Q, (z1, z2): R, (z2, z2): 1}, erf(z1/sqrt(2)).diff(z1)
    off = erf(z2/sqrt(2)) - erf(z1/sqrt(2))
    return hx.Flow({R: eta*hx.E(d*off*z2, z1, z2, cov=cov),
                    Q: 2*eta*hx.E(d*off*z1, z1, z2, cov=cov) + noise*eta**2*hx.E(d**2*off**2, z1, z2, cov=cov)},
                   observables={"test_error": hx.E(off**2, z1, z2, cov=cov)/2}, start={R: 0.01, Q: 0.25}, source="saad1995")


def closed_form(time, s, rate):
    """The same in the closed form of Biehl and Schwarze (1995), typed by hand."""
    R, Q = s
    root = np.sqrt(2*(1 + Q) - R**2)
    dR = 2/np.pi*rate/(1 + Q)*((1 + Q - R**2)/root - R/np.sqrt(1 + 2*Q))
    u = 1 + 2*Q - R**2
    bends = (np.arcsin(Q/(1 + 3*Q)) + np.arcsin((1 + 2*Q - 2*R**2)/(2*u)) - 2*np.arcsin(R/np.sqrt(2*u*(1 + 3*Q))))
    dQ = 4/np.pi*rate/(1 + Q)*(R/root - Q/np.sqrt(1 + 2*Q)) + 4/np.pi**2*rate**2/np.sqrt(1 + 2*Q)*bends
    return [dR, dQ]


def by_hand(rate, x0, times, **numbers):
    return solve_ivp(rate, (times[0], times[-1]), x0, method="DOP853", rtol=1e-12, atol=1e-14, t_eval=times,
                     args=tuple(numbers.values())).y


def test_saad_and_solla_one_neuron_is_what_scipy_gives_by_hand():
    times = np.linspace(0, 12, 7)
    path = saad_solla().solve(t=times, eta=1.5)
    there = by_hand(closed_form, [0.01, 0.25], times, eta=1.5)
    np.testing.assert_allclose([path["R"], path["Q"]], there, rtol=1e-9, atol=1e-11)
    assert path.converged and path.error < 1e-9
    assert path["test_error"][-1] < 0.05*path["test_error"][0]


def test_a_lost_term_of_the_noise_is_seen():
    times = np.linspace(0, 12, 4)
    there = by_hand(closed_form, [0.01, 0.25], times, eta=1.5)
    assert np.max(np.abs(saad_solla(noise=0).solve(t=times, eta=1.5)["Q"] - there[1])) > 1e-3


def test_the_logistic_equation_is_exact_at_every_time_and_in_between():
    flow = hx.Flow({m: a*m*(1 - m)}, start={m: 1e-4}, domain={m: (0, 1)})
    times = np.linspace(0, 30, 16)
    path = flow.solve(t=times, a=1)
    exact = 1/(1 + (1e4 - 1)*np.exp(-times))
    np.testing.assert_allclose(path["m"], exact, rtol=1e-9)
    between = np.array([0.3, 7.7, 12.1])
    np.testing.assert_allclose(path.at(between)["m"], 1/(1 + (1e4 - 1)*np.exp(-between)), rtol=1e-9)
    assert flow.solve(t=9.2, a=1)["m"] == pytest.approx(1/(1 + (1e4 - 1)*np.exp(-9.2)), rel=1e-9)


def test_what_is_conserved_stays_and_time_runs_back():
    swing = hx.Flow({x: y, y: -sin(x)}, observables={"energy": y**2/2 - cos(x)}, start={x: 1, y: Rational(1, 2)})
    there = swing.solve(t=np.linspace(0, 8, 9))
    np.testing.assert_allclose(there["energy"], there["energy"][0], atol=1e-9)
    back = swing.solve(t=[8, 4, 0], start={n: there[n][-1] for n in "xy"})
    np.testing.assert_allclose([back["x"][-1], back["y"][-1]], [1, 0.5], atol=2e-9)


@pytest.mark.parametrize("functions", [("erf", "sign"), ("He2", "He2"), ("tanh", "z")])
def test_the_theory_of_one_neuron_and_its_flow_agree(functions):
    theory = hx.theories.sgd(*functions)
    times = [0, 0.5, 1.5]
    np.testing.assert_allclose(theory.flow.solve(t=times, start={"m": 0.1})["m"], theory.curve(t=times, m0=0.1)["m"], rtol=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_drawn_flows_are_what_scipy_gives_with_a_rule_of_its_own(seed):
    """Rates -c x + E f(x1 + s x2 z) of two variables, smooth f, against Gauss-Hermite with 80 nodes and another integrator."""
    rng = np.random.default_rng(seed)
    c, s, b = rng.uniform(0.3, 1.5, 2), rng.uniform(0.2, 1.0, 2), rng.uniform(-1, 1, 2)
    f = [(tanh, np.tanh), (sin, np.sin), (cos, np.cos)][int(rng.integers(3))]
    rates = {v: -float(c[i])*v + float(b[i])*hx.E(f[0](x + float(s[i])*y*z), z) for i, v in enumerate((x, y))}
    nodes, weights = hermegauss(80)

    def rate(time, v):
        return [-c[i]*v[i] + b[i]*np.sum(weights*f[1](v[0] + s[i]*v[1]*nodes))/np.sqrt(2*np.pi) for i in range(2)]

    times, start = np.linspace(0, 5, 6), rng.uniform(-1, 1, 2)
    path = hx.Flow(rates).solve(t=times, start={"x": start[0], "y": start[1]})
    np.testing.assert_allclose([path["x"], path["y"]], by_hand(rate, start, times), rtol=1e-7, atol=1e-10)


def test_a_stiff_flow_goes_over_to_an_implicit_method():
    k = 3000
    path = hx.Flow({x: -k*(x - cos(t)), y: x - y}, start={x: 1, y: 0}).solve(t=[0, 1, 20], tolerance=1e-6)
    assert path.method == "Radau" and path.converged
    exact = k*(k*np.cos(20) + np.sin(20))/(k**2 + 1)
    assert path["x"][-1] == pytest.approx(exact, abs=1e-6)


def test_a_sum_over_an_array_is_a_rate(tmp_path):
    """dx/dt = sum_k s_k (b_k - x) relaxes to the weighted mean; in the session and in the file."""
    s, b, k = IndexedBase("v"), IndexedBase("b"), Idx("k", Symbol("N", integer=True))
    flow = hx.Flow({x: Sum(s[k]*(b[k] - x), k), y: Sum(1/(k + 2 + x), k)}, start={x: 0, y: 0})
    arrays = {"v": np.array([0.2, 0.5, 1.1]), "b": np.array([1.0, -2.0, 3.0])}
    rate = arrays["v"].sum()
    exact = arrays["v"] @ arrays["b"]/rate*(1 - np.exp(-2*rate))
    assert flow.solve(t=2, **arrays)["x"] == pytest.approx(exact, rel=1e-9)
    assert flow.export(tmp_path/"sums.py", reference={"t": 1, **arrays}).checked.endswith("2 of 2 rates")
    module = importlib.util.module_from_spec(found := importlib.util.spec_from_file_location("sums_flow", tmp_path/"sums.py"))
    sys.modules["sums_flow"] = module
    found.loader.exec_module(module)
    assert module.solve(t=2, **arrays)["x"] == pytest.approx(exact, rel=1e-9)


def test_a_flow_has_laws_and_matrices():
    """dQ/dt = B - A Q - Q A^T relaxes as matrix exponentials say; a sign and a count drive it, through their laws."""
    from scipy.linalg import expm, solve_continuous_lyapunov

    mark, count = stats.Rademacher("mark"), stats.Poisson("count", a)
    drive = hx.E((mark*z + 1)**2*count) + hx.E(tanh(mark + z)**2)
    S = Matrix(2, 2, lambda i, j: Symbol(f"S{min(i, j) + 1}{max(i, j) + 1}", real=True))
    A, B = Matrix([[2, 1], [0, 1]]), Matrix([[1, 1], [1, 3]])
    flow = hx.Flow([(S, drive*B - A*S - S*A.T)], start={"S": [[1, 0.5], [0.5, 2]]})
    nodes, weights = hermegauss(120)
    force = 2*0.7 + weights @ np.tanh(1 + nodes)**2/weights.sum()
    A, B, x0 = np.array(A, dtype=float), np.array(B, dtype=float), np.array([[1, 0.5], [0.5, 2]])
    rest = solve_continuous_lyapunov(A, force*B)
    times = np.array([0, 0.3, 1.0])
    exact = np.array([rest + expm(-A*s) @ (x0 - rest) @ expm(-A*s).T for s in times])
    path = flow.solve(t=times, a=0.7)
    assert path["S"] == pytest.approx(exact, rel=1e-8) and path.at(0.3)["S12"] == pytest.approx(exact[1, 0, 1], rel=1e-8)
    read = spec.from_toml("""
[symbols]
a = "positive"
[laws]
mark = "Rademacher()"
count = "Poisson(a)"
[where]
force = "E((mark*z + 1)**2*count, mark, count, z) + E(tanh(mark + z)**2, mark, z)"
[flow]
S = [["force - 4*S11 - 2*S12", "force - 3*S12 - S22"], ["force - 3*S12 - S22", "3*force - 2*S22"]]
[start]
S = [[1, 0.5], [0.5, 2]]
[grid]
t = [0.3, 1.0]
[parameters]
a = 0.7
""")
    table = hx.sweep(read.system, read.grid, parameters=read.parameters)
    assert table["S12"] == pytest.approx(exact[1:, 0, 1], rel=1e-8)


def test_time_stands_in_a_rate_and_in_a_name():
    flow = hx.Flow({x: w}, where={w: hx.E(cos(t*z), z)})
    found = flow.solve(t=[0, 1, 3], start={"x": 0})
    assert found["x"][-1] == pytest.approx(1.2533141373155*0.9973002039367, rel=1e-9)  # int_0^3 exp(-t^2/2)
    assert [p.name for p in flow.parameters] == []
    named = hx.Flow({x: a*cos(t)}, parameters=[a], start={x: 0})
    assert named.solve(t=np.pi/2, a=2)["x"] == pytest.approx(2, rel=1e-9)
    assert hx.Flow({"x": "cos(t)"}, start={"x": 0}).solve(t=np.pi/2)["x"] == pytest.approx(1, rel=1e-9)  # t was not known


def test_arrays_of_parameters_are_trajectories_of_their_own():
    flow = hx.Flow({m: a*(1 - m)}, start={m: 0})
    times = np.linspace(0, 2, 5)
    found = flow.solve(t=times, a=[[1, 2, 3]])
    assert found["m"].shape == (1, 3, 5) and found.all_converged
    for k, rate in enumerate((1, 2, 3)):
        np.testing.assert_allclose(found["m"][0, k], 1 - np.exp(-rate*times), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(flow.solve(t=2, a=[1, 2])["m"], 1 - np.exp([-2, -4]), rtol=1e-9)


def test_several_trajectories_are_rows_of_a_table_and_lines_of_a_picture():
    flow = hx.Flow({x: a - x}, start={x: 0})
    path = flow.solve(t=[0, 1, 2], a=[1.0, 3.0])
    table = path.to_dataframe()
    assert table["x"].tolist() == path["x"].ravel().tolist() and table["t"].tolist() == [0, 1, 2, 0, 1, 2]
    assert table["a"].tolist() == [1, 1, 1, 3, 3, 3] and (table["error"] < 1e-8).all()
    axes = path.plot()
    assert [line.get_ydata().tolist() for line in axes.lines] == path["x"].tolist()
    assert axes.get_legend_handles_labels()[1] == ["$x$, $a = 1$", "$x$, $a = 3$"]
    with pytest.raises(BadInput, match="the end, t = 2, is kept alone"):
        flow.solve(t=2, a=1).plot()


def test_events_are_zeros_of_any_expression():
    flow = hx.Flow({m: a*m}, observables={"square": m**2}, start={m: 0.1})
    found = flow.solve(t=(0, 50), a=1, events={"escape": "square - 1/4", "late": m - 2*a}, terminal=["escape"])
    assert found.events["escape"]["t"][0] == pytest.approx(np.log(5), abs=1e-8)
    assert found["t"][-1] == pytest.approx(np.log(5), abs=1e-8) and not len(found.events["late"]["t"])
    assert flow.solve(t=50, a=1, events={"escape": "square - 1/4"}, terminal="escape")["m"] == pytest.approx(0.5, abs=1e-8)


def test_a_terminal_event_is_the_last_row_and_events_are_marked_in_the_picture():
    flow = hx.Flow({m: a*m}, observables={"square": m**2}, start={m: 0.1})
    asked = {"a": 1, "events": {"early": m - 0.2, "escape": "square - 1/4"}, "terminal": ["escape"]}
    end = np.log(5)
    for t in ([0, 0.5, 1, 1.5, 2, 3], [0, 2, 3], [0, 0.5, 1, end, 3]):  # the second one has no time before it
        found = flow.solve(t=t, **asked)
        assert found["t"][:-1].tolist() == [v for v in t if v < end - 1e-6] and found["t"][-1] == pytest.approx(end, abs=1e-8)
        assert found["m"][-1] == pytest.approx(0.5, abs=1e-8) and found["square"][-1] == pytest.approx(0.25, abs=1e-8)
        assert found.at(found["t"][-1])["m"] == pytest.approx(0.5, abs=1e-8) and found.table()["t"][-1] == found["t"][-1]
    back = hx.Flow({m: a*m}, start={m: 1}).solve(t=[0, -1, -2, -3], a=1, events={"half": m - 0.5}, terminal="half")
    assert back["t"].tolist()[:-1] == [0] and back["t"][-1] == pytest.approx(-np.log(2), abs=1e-8)
    axes = found.plot()
    assert axes.get_legend_handles_labels()[1] == ["$m$", "early", "escape"]
    assert [line.get_xdata()[0] for line in axes.lines[1:]] == pytest.approx([np.log(2), end], abs=1e-8)


def test_terms_of_an_average_are_taken_by_themselves_where_their_sum_passes_through_0():
    def path(drift):
        flow = hx.Flow({"m": drift, "s": "-s*m**2/4"}, symbols="s>0", domain={"m": (-1, 1)}, start={"m": 0.02, "s": 1})
        return flow.solve(t=np.linspace(0, 6, 50))

    whole = path("E(z*(tanh(2*z) - erf(m*z + s*z1)))*(1 - m**2)")
    apart = path("(E(z*tanh(2*z)) - E(z*erf(m*z + s*z1)))*(1 - m**2)")
    assert np.abs(whole["m"] - apart["m"]).max() < 1e-8 and list(whole.origin["nodes"]) == ["z"]


def test_a_flow_that_ends_or_leaves_its_domain_says_when():
    with pytest.raises(NotConverged, match=r"stopped at t = (1:|0\.9999)") as caught:
        hx.Flow({m: m**2}, start={m: 1}).solve(t=[0, 0.5, 2])
    assert not caught.value.solution.converged
    with pytest.raises(NotConverged, match=r"q leaves its domain q > 0 at t = "):
        hx.Flow({q: -1 - 0*q}, start={q: 1}, domain={q: (0, oo)}).solve(t=np.linspace(0, 2, 9))
    held = hx.Flow({q: -sqrt(q)*q}, start={q: 1}, domain={q: (0, oo)}).solve(t=[0, 1, 100])
    assert held["q"][-1] == pytest.approx(4/102**2, rel=1e-9)


def test_a_tolerance_that_cannot_hold_is_not_called_converged():
    lorenz = hx.Flow({x: 10*(y - x), y: x*(28 - w) - y, w: x*y - Rational(8, 3)*w}, start={x: 1, y: 1, w: 1})
    with pytest.raises(NotConverged, match="two integrations differ"):
        lorenz.solve(t=[0, 20, 40])
    assert lorenz.solve(t=[0, 1, 2]).error < 1e-9


# -- equality of products ----------------------------------------------------------------------------------------------
TOML = """
[symbols]
q = "positive"
a = "positive"
[flow]
q = "-a*q + E(tanh(z*sqrt(q) + sin(t))**2)"
[observables]
w = "q**2 + 1"
[domain]
q = "q > 0"
[start]
q = 0.5
[grid]
t = "0:4:5"
a = [0.5, 1.0]
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """(folder, flow): the spec, written."""
    folder = tmp_path_factory.mktemp("flow")
    (folder / "flow.toml").write_text(TOML)
    return folder, spec.load(str(folder / "flow.toml")).system


def test_the_file_the_spec_the_sweep_and_the_session_agree(written, monkeypatch, capsys):
    folder, read = written
    here = hx.Flow({q: -a*q + hx.E(tanh(z*sqrt(q) + sin(t))**2, z)}, start={q: Rational(1, 2)}, domain={q: (0, oo)},
                   observables={"w": q**2 + 1})
    times = np.linspace(0, 4, 5)
    own = here.solve(t=times, a=[0.5, 1.0])
    np.testing.assert_array_equal(own["q"], read.solve(t=times, a=[0.5, 1.0])["q"])
    monkeypatch.chdir(folder)
    assert cli.main(["generate", "flow.toml", "-o", "solver.py"]) == 0
    assert "1 of 1 rates" in capsys.readouterr().out
    module = importlib.util.module_from_spec(found := importlib.util.spec_from_file_location("flow_solver", folder / "solver.py"))
    sys.modules["flow_solver"] = module
    found.loader.exec_module(module)
    there = module.solve(a=[0.5, 1.0], t=times)
    np.testing.assert_allclose(there["q"], own["q"], rtol=1e-10)  # of a tolerance of 1e-9
    np.testing.assert_allclose(there["w"], own["w"], rtol=1e-10)
    assert module.selftest() < 1e-10
    table = hx.sweep(read, {"t": times, "a": [0.5, 1.0]})
    by_point = dict(zip(zip(table["a"], table["t"], strict=True), table["q"], strict=True))
    np.testing.assert_allclose([[by_point[rate, time] for time in times] for rate in (0.5, 1.0)], own["q"], rtol=1e-9)
    out = subprocess.run([sys.executable, "solver.py", "--t", "0:4:5", "--a", "0.5,1", "--json"], capture_output=True, text=True,
                         check=True)
    np.testing.assert_allclose(json.loads(out.stdout)["q"], own["q"].ravel(), rtol=1e-10)


def test_a_wrong_number_in_the_file_fails_its_self_test(written):
    folder, _ = written
    assert cli.main(["generate", str(folder / "flow.toml"), "-o", str(folder / "right.py")]) == 0
    text = (folder / "right.py").read_text()
    (folder / "planted.py").write_text(text.replace('START = {"q": 0.5}', 'START = {"q": 0.500001}'))
    done = subprocess.run([sys.executable, str(folder / "planted.py"), "--selftest"], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "FAILED" in done.stdout


def test_a_flow_without_averages_is_a_file(tmp_path):
    hx.Flow({m: -a*m}, start={m: 2}).export(tmp_path/"fall.py", reference={"a": 1.5, "t": 2})  # in a process without the package
    fall = importlib.util.module_from_spec(made := importlib.util.spec_from_file_location("fall", tmp_path/"fall.py"))
    made.loader.exec_module(fall)
    assert float(np.ravel(fall.solve(a=1.5, t=2)["m"])[-1]) == pytest.approx(2*np.exp(-3), rel=1e-8)


@pytest.mark.parametrize("times", [[0, 3], [0, 1.5, 3], [0, 0.1, 0.2, 2.9]])
@pytest.mark.parametrize("rate, start, bound, when", [
    (1, 0, (-1, 1), 1), (-x - 2, 0, (-1, 3), np.log(2)), (cos(t), 0, (-2, 0.5), np.pi/6)])
def test_when_a_domain_is_left(rate, start, bound, when, times):
    """At its bound, and not where the step or the next time reported ended; also where it comes back before that."""
    with pytest.raises(NotConverged) as caught:
        hx.Flow({x: rate + 0*x}, domain={x: bound}).solve(t=times, start={"x": start})
    said = str(caught.value).partition(" at t = ")[2].partition(";")[0]
    assert float(said) == pytest.approx(when, rel=1e-4)


def test_a_rate_that_is_no_number_where_the_flow_starts_is_said():
    """It ended in an error of Python's own."""
    found = hx.Flow({m: -m + 1/a}, start={m: 1}).solve(t=[0, 1, 2], a=[0, 1], raise_on_failure=False)
    assert found.converged.tolist() == [False, True]
    assert found.reason[0] == "the rate of m is not finite where the flow starts, at t = 0"


def test_what_was_stiff_is_not_told_to_take_a_stiff_method():
    with pytest.raises(NotConverged) as caught:
        hx.Flow({x: -1e6*(x - cos(t))}).solve(t=[0, 3], start={"x": 0})
    assert "Radau)" in str(caught.value) and "method='Radau'" not in str(caught.value)


# -- what is said of bad input -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("bad, says", [
    (lambda: hx.Flow({x: 1 + 0*x}).solve(t=[0, 3], start={"x": 0}, events={"e": "x"}, terminal=["e"]),
     r"the event e is 0 where the flow starts, at t = 0"),
    (lambda: hx.Flow({x: 1 + 0*x}).solve(t=[0, 3], start={"x": 0}, events={"e": "x - x"}), "the event e is the number 0"),
    (lambda: hx.Flow({m: -m}, start={m: 1}).solve(t=1, events={"m": "m - 1/2"}), "m is a letter of the flow"),
    (lambda: hx.Flow({m: -m}).solve(t=[0, 1, 2]), "where does m start"),
    (lambda: hx.Flow({m: -m}, start={m: 1}).solve(), "t has no value"),
    (lambda: hx.Flow({m: -m}, start={m: 1}).solve(t=[0, 2, 1]), "increase, or decrease"),
    (lambda: hx.Flow({m: -m}, start={m: 1}).solve(t=np.inf), "finite"),
    (lambda: hx.Flow({m: -m}, start={m: 1}, domain={m: (-1, 1)}), "start m = 1 is outside its domain -1 < m < 1"),
    (lambda: hx.Flow({m: -m}, domain={m: (-1, 1)}).solve(t=1, start={m: 2}), "start m = 2 is outside its domain -1 < m < 1"),
    (lambda: hx.Flow({m: -m}, domain={m: (1, -1)}), "is empty"),
    (lambda: hx.Flow({m: -m}, domain={m: "m"}), "open interval"),
    (lambda: hx.Flow({m: Eq(m, a)}), "implicit"),
    (lambda: hx.Flow({t: a}), "t is the time"),
    (lambda: hx.Flow({m: -a*m}, start={m: 1}).solve(t=1), "a has no value"),
    (lambda: hx.Flow({m: -m}, start={m: "one"}), "one number"),
    (lambda: hx.Flow({m: -m}, start={m: 1}).solve(t=1, tolerance=0), "tolerance"),
    (lambda: hx.Flow({m: -a*m}, start={m: 1}).solve(t=(0, 1), a=[1, 2]), "same times"),
    (lambda: hx.Flow({m: -m}, start={m: 1}).branches(), "fixed-point"),
    (lambda: hx.Flow({m: -a*m}, start={m: 1}).follow("a", (0, 1)), "fixed-point"),
    (lambda: hx.Flow({m: -a*m}, start={m: 1}).minimise("m", "a", (0, 1)), "fixed-point"),
    (lambda: hx.sweep(hx.Flow({m: -a*m}), {"a": [1, 2]}, parameters={"t": 1}), "where does m start"),
    (lambda: hx.sweep(hx.Flow({m: -a*m}, start={m: 1}), {"a": [1, 2]}), "t"),
    (lambda: hx.theories.sgd("erf", "sign").curve(alpha=[1, 2], m0=0.1), "along the time t"),
    (lambda: hx.curve("sgd", sigma="erf", target="sign", alpha=[1, 2], m0=0.1), "along t"),
])
def test_bad_input_gets_one_line(bad, says):
    with pytest.raises(BadInput, match=says) as caught:
        bad()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("bad", [
    lambda: hx.Flow({m: -m}, start={"mm": 1}), lambda: hx.Flow({m: -m}, domain={"mm": (0, 1)}),
    lambda: hx.Flow({m: -m}, start={m: 1}).solve(t=1, b=2), lambda: hx.Flow({m: -m}, start={m: 1}).solve(t=1, method="Euler"),
    lambda: hx.Flow({m: -m}, start={m: 1}).solve(t=(0, 1), events={"e": m}, terminal=["f"]),
])
def test_unknown_names_get_close_ones(bad):
    with pytest.raises(UnknownName):
        bad()


@pytest.mark.parametrize("section, says", [
    ("[flow]\nm = \"-m\"\n[equations]\nm = \"1\"", "not both"),
    ("[flow]\nm = \"-m\"\n[start]\nm = 2\n[domain]\nm = \"-1 < m < 1\"", "outside"),
    ("[flow]\nm = \"-m\"\n[domain]\nm = \"0 < x < 1\"", "open interval"), ("[flow]\nm = \"-m\"\n[start]\nq = 1", "q"),
    ("[flow]", "at least one"),
])
def test_a_bad_spec_gets_one_line(section, says, tmp_path):
    (tmp_path / "s.toml").write_text(section)
    with pytest.raises(BadInput, match=says) as caught:
        spec.load(str(tmp_path / "s.toml"))
    assert "\n" not in str(caught.value)


def test_a_flow_shows_its_rates_and_reads_back():
    flow = hx.Flow({m: -a*m}, start={m: 1})
    assert r"\frac{d m}{dt} &= - a m" in flow.latex()
    assert flow.to_dict()["flow"] == {"m": "-a*m"}
    assert flow.subs(a=2).solve(t=1)["m"] == pytest.approx(np.exp(-2), rel=1e-9)


def test_an_average_that_cancels_where_the_flow_starts():
    """E[tanh(z1) tanh(u)] of independent z1, u: what rounding leaves of the inner averages was refined without end."""
    flow = hx.Flow({m: 1 - m + hx.E(tanh(z1)*tanh(m*z1 + sqrt(1 - m**2)*z2), z1, z2)}, domain={m: (-1, 1)})
    found = flow.solve(t=0.1, start={m: 0}, budget=30, tolerance=1e-8)
    assert found.origin["nodes"] == {"z1": 105, "z2": 105} and found["m"] == pytest.approx(0.0969006635, rel=1e-8)


def test_rates_come_without_the_sizes_of_their_terms():
    """They are for the error of a solution; at every step of a path they would be work for nothing."""
    equations = {"x": "1 - x + E(tanh(x*z)**2)"}
    assert "terms/x" in hx.System(equations).compile().source and "terms/x" not in hx.Flow(equations).compile().source


def test_progress_is_written_where_it_is_asked_for(capsys):
    """Two integrations, each up to its end; without the word nothing."""
    decay = hx.Flow({"m": "-m"}, start={"m": 1})
    decay.solve(t=1)
    assert not capsys.readouterr().err
    decay.solve(t=1, progress=True)
    said = capsys.readouterr().err
    assert all(f"flow, integration {k}: 100 of 100 percent" in said for k in (1, 2))


@pytest.mark.parametrize("times", [[0.0, 5.0], [5.0, 0.0], [0.0], [1.0, 5.0]])
def test_a_sweep_over_two_times_has_the_start_at_0(times):
    """Of two times alone a flow begins at the first: the row at 0 was that at the end."""
    found = hx.sweep(hx.Flow({"m": "-alpha*m"}, start={"m": 1.0}), {"t": times}, parameters={"alpha": 1.0})
    assert found["m"] == pytest.approx(np.exp(-np.array(times)), abs=1e-10) and np.all(found["converged"])
