"""The 13 naive equations of one gradient step against published numbers; what a System shows, refuses and changes."""

import re

import numpy as np
import pytest
from one_step import ALPHAS, CURVE, NAMES, NOTEBOOK, PARAMETERS, REFERENCE, one_step, plain

ROWS = REFERENCE["rows"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['sigma']}/{row['g']} {row['alpha']:.3g} {row['lam']:g}")
def test_the_naive_equations_give_every_published_row(row):
    system = one_step(row["sigma"], row["g"])
    found = system.solve({p: row[p] for p in PARAMETERS})
    for name, value in row["out"].items():
        assert found[NAMES.get(name, name)] == pytest.approx(value, rel=1e-10, abs=1e-12), name
    assert found.residual < 1e-9
    assert found.origin["quadrature_error"] < 1e-10


@pytest.mark.parametrize("row", REFERENCE["high_precision"], ids=lambda row: row["case"])
def test_thirty_digits(row):
    system = one_step(*row["case"].split()[0].split("/"))
    found = system.solve(dict(zip(PARAMETERS, map(float, row["args"]), strict=True)))
    for name, value in row["hp"].items():
        assert found[NAMES.get(name, name)] == pytest.approx(float(value), rel=1e-10), name


def test_the_learning_curve():
    found = one_step("tanh", "sin").solve(alpha=ALPHAS, **NOTEBOOK)
    assert found["test_error"] == pytest.approx(CURVE, rel=1e-11)
    assert found.all_converged


def test_a_plain_solver_agrees():
    found = one_step("tanh", "sin").solve(alpha=ALPHAS, **NOTEBOOK)
    for k, alpha in enumerate(ALPHAS):
        # started one per cent away, so that it must find the solution itself
        near = np.array([found["Vhat1"][k], found["Vhat2"][k]])*[1.01, 0.99]
        for name, value in plain(np.tanh, np.sin, alpha=alpha, **NOTEBOOK, near=near).items():
            assert found[name][k] == pytest.approx(value, rel=1e-9), (name, alpha)


def test_the_curve_almost_without_ridge():
    found = one_step("tanh", "sin").solve(alpha=ALPHAS, **{**NOTEBOOK, "lam": 1e-10})
    for k, alpha in enumerate(ALPHAS):
        for name, value in REFERENCE["small_ridge"]["points"][str(float(alpha))].items():
            # below the interpolation threshold m and the training error are small differences of large numbers
            floor = 1e-9 if name in ("m", "train_error") else 0.0
            assert found[name][k] == pytest.approx(float(value), rel=1e-9, abs=floor), (name, alpha)


def test_tooth_a_lost_c_is_seen():
    row = ROWS[3]
    wrong = {**{p: row[p] for p in PARAMETERS}, "c": row["c"]**2}
    assert abs(one_step(row["sigma"], row["g"]).solve(wrong)["test_error"] - row["out"]["test"]) > 1e-4


# -- what a System shows and changes -----------------------------------------------------------------------------------
def test_a_system_shows_itself_as_its_author_wrote_it():
    system = one_step("tanh", "sin")
    text = system.latex()
    assert text.startswith(r"\begin{align}") and len(system.rows()) == 13 + 15 + 2
    assert system._repr_html_().count("<tr") == 30 and "System(" in repr(system) and "\n" not in repr(system)
    table = system.to_dict()
    assert table["where"]["rho"] == "1 - gamma**2" and len(table["blocks"]) == 5 and "m" in table["equations"]


def test_subs_diff_and_substitute():
    from sympy import Function, Symbol

    from hermitex import E, System
    from hermitex.symbols import z

    a, b = Symbol("a", real=True), Symbol("b", real=True)
    written = System({a: E(Function("sigma")(z + b), z)})
    put = written.substitute(sigma="tanh")
    assert put.diff(put) == {} and list(put.diff(written)) == ["a"]
    fixed = put.subs(b=1)
    assert fixed.parameters == () and fixed.solve()["a"] == pytest.approx(put.solve(b=1)["a"], rel=1e-12)


def test_narrow_factors_come_first_and_averages_share_a_sum():
    """Beside a sum with an unknown at every node, 2*B*h is two products of all points and nodes, 2*h*B one."""
    from sympy import Symbol, cos, tanh

    from hermitex import E, System

    assert "- 2*h*B -" in one_step("tanh", "sin").compile().source
    k, q, m = (Symbol(name, real=True) for name in ("kappa", "q", "m"))
    terms = tanh(k*q), cos(k*q)*tanh(k + q)
    source = System({q: E(terms[0] + terms[1], k)/3, m: E(k*terms[0] + k*terms[1], k)}).compile().source
    assert re.search(r"average\(kappa\*t\d+, w_kappa, 1\)", source)


def test_a_factor_without_unknowns_weighs_the_nodes_of_an_average():
    system, spikes = one_step("tanh", "sin"), [0.5, 1.0, 2.0]  # with many of these it is a table with a row for each point
    assert "average(Q, w_kappa, 1, mu_22)" in (program := system.compile()).source and len(repr(program)) < 300
    found = system.solve(alpha=1.0, **{**NOTEBOOK, "r": spikes})
    assert found["q2"] == pytest.approx([system.solve(alpha=1.0, **{**NOTEBOOK, "r": r})["q2"] for r in spikes], rel=1e-12)


@pytest.mark.parametrize("text", ["x**3 - b = 0", "Eq(x**3, b)", "b = x**3"])
def test_a_text_may_have_two_sides(text):
    from hermitex import System

    assert System({"x": text}, symbols={"b": "real"}).solve(b=8, start={"x": 1}).x == pytest.approx(2, rel=1e-10)
