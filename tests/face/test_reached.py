"""Where AMP reaches a stage that follows others, which it knows in part: other quadratures, and the map itself."""

import json
import time

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ndtr

import hermitex as hx
from hermitex.face import cli

COMMITTEE = "sign(z1) + sign(z2)"


def panels(low, high, count=60, order=20):
    x, w = np.polynomial.legendre.leggauss(order)
    edges = np.linspace(low, high, count + 1)
    half = np.diff(edges)[:, None]/2
    return (edges[:-1, None] + half*(1 + x)).ravel(), (half*w).ravel()


def crossing(parts):
    """(overlap, alpha) where alpha lambda = 1, alpha = m/((1 - m) F), from m -> (F, lambda)."""
    def alpha(m):
        return m/(1 - m)/parts(m)[0]

    m = brentq(lambda m: np.log(alpha(m)*parts(m)[1]), 0.02, 0.95, xtol=1e-12)
    return m, alpha(m)


def committee(m, slope=1.0):
    """sign(z1) + sign(z2) is 2 sign(u) where |w| < slope |u|, u and w along the sum and the difference, else 0; u known to m."""
    x = np.linspace(-8, 8, 81)
    weight = np.exp(-x*x/2)/np.exp(-x*x/2).sum()
    u, du = panels(0, 12, 40)
    w = slope*u
    inside, second = 2*ndtr(w) - 1, -2*w*np.exp(-w*w/2)/np.sqrt(2*np.pi)  # P(|w| < slope u), E[w^2 - 1; |w| < slope u]
    F = rate = 0.0
    for omega, p in zip(np.sqrt(m)*x, weight, strict=True):
        rows = []
        for s in (1, -1):
            density = np.exp(-(s*u - omega)**2/(2*(1 - m)))/np.sqrt(2*np.pi*(1 - m))*du
            rows.append((density @ inside, (density*(s*u - omega)/(1 - m)) @ inside, density @ second))
        rows.append((1 - rows[0][0] - rows[1][0], -rows[0][1] - rows[1][1], -rows[0][2] - rows[1][2]))
        rows = [row for row in rows if row[0] > 0]
        F += p*sum(a*a/z for z, a, _ in rows)
        rate += p*sum(b*b/z for z, _, b in rows)
    return F, rate


@pytest.mark.parametrize(("row", "other"), [((1, 0), ("3/5", "4/5")), (("4/5", "3/5"), ("0", "1")),
                                            (("12/13", "5/13"), ("16/65", "63/65"))])
def test_a_committee_of_neurons_that_are_not_orthogonal_in_any_frame(row, other):
    """One alpha in all of them: jumps of the label cross where no axis is, two of them in one step of what looks for them."""
    found = hx.exponents(" + ".join(f"sign({a}*z1 + {b}*z2)" for a, b in (row, other))).threshold.stages[1]
    exact = crossing(lambda m: committee(m, 2.0))[1]  # of correlation 3/5: tan of half of the angle is 1/2
    assert abs(found["reached"] - exact) < found["reached_error"] < 1e-6


def added(f):
    """y = z1 + f(z2), f even: Z is a function of t = y - omega alone."""
    w, dw = panels(0, 9)
    density = 2*np.exp(-w*w/2)/np.sqrt(2*np.pi)*dw
    t, dt = panels(-9, 9 + f(8.0), 250)

    def parts(m):
        away = t[:, None] - f(w)
        kernel = np.exp(-away**2/(2*(1 - m)))/np.sqrt(2*np.pi*(1 - m))*density
        z, a, b = kernel.sum(axis=1), (kernel*away).sum(axis=1)/(1 - m), kernel @ (w*w - 1)
        seen = z > 1e-200
        return float(dt[seen] @ (a[seen]**2/z[seen])), float(dt[seen] @ (b[seen]**2/z[seen]))

    return parts


def test_a_committee_by_direct_quadrature():
    m, alpha = crossing(committee)
    assert (m, alpha) == pytest.approx((0.710947927014675, 2.0523824297408), rel=1e-11)
    found = hx.exponents(COMMITTEE)
    first, second = found.weak_recovery["stages"]
    assert (first["reached"], first["bound"], second["bound"]) == (0, False, True)
    assert second["alpha_c"] == pytest.approx(1.43083366052, abs=1e-10)
    assert second["reached"] == pytest.approx(alpha, rel=5e-9)
    assert any("overlap 0.7109" in n for n in found.notes)


def test_told_in_every_form(capsys):
    found, told = hx.exponents(COMMITTEE), "reached at 2.0523824"
    assert told in repr(found) and all("reached at } 2.0523824" in said for said in (found._repr_html_(), found.threshold.latex()))
    assert "reached at alpha = 2.0523824" in found.explain() and told in found.table_row()[5]
    for option, part in (("--json", '"reached": 2.05238243'), ("--explain", "reached at alpha = 2.0523824")):
        assert cli.main(["exponents", COMMITTEE, option]) == 0
        assert part in capsys.readouterr().out
    assert cli.main(["exponents", "sign(z1*z2)", "--json"]) == 0
    stage = json.loads(capsys.readouterr().out)["weak_recovery"]["stages"][0]
    assert stage["reached"] == stage["alpha_c"] and stage["bound"] is False and stage["reached_error"] is None


def test_what_the_note_advises_is_enough_and_the_error_stands_beside(capsys):
    """A small budget is not; no bound is."""
    target = "He3(z1) + z2**2"
    for budget, enough in (("2", False), ("inf", True)):
        assert cli.main(["exponents", target, "--json", "--budget", budget]) == 0
        stage = json.loads(capsys.readouterr().out)["weak_recovery"]["stages"][1]
        assert (stage["reached"] is not None) == (stage["reached_error"] is not None) == enough
    assert abs(stage["reached"] - 0.85170172) < stage["reached_error"] < 1e-5


def test_what_the_machine_does_besides_does_not_decide(monkeypatch):
    """Its work is counted: a processor four times slower, whose time bounds the exponents alone, finds the same."""
    real = time.process_time
    monkeypatch.setattr(time, "process_time", lambda: 4*real())
    assert hx.exponents(COMMITTEE, budget=40).weak_recovery["stages"][1]["reached"] == pytest.approx(2.0523824297408, rel=5e-9)


def test_a_larger_budget_allows_more_work():
    target = "z1 + 4/5*abs(z2)"
    told = [n for n in hx.exponents(target, budget=5).notes if "more work than this budget allows" in n]
    assert len(told) == 1 and "--budget 50 (budget=), all that it takes with --budget inf (budget=None)" in told[0]
    larger, all_of_it = (hx.exponents(target, budget=b).weak_recovery["stages"][1] for b in (50, None))
    assert larger == all_of_it
    assert abs(larger["reached"] - crossing(added(lambda w: 0.8*np.abs(w)))[1]) < larger["reached_error"] < 3e-5


def test_a_stage_of_order_one_is_reached_with_what_it_waits_for():
    first, second = hx.exponents("sign(z1)*z2*z3").weak_recovery["stages"]
    assert (second["alpha_c"], second["reached"]) == (0, first["alpha_c"])


@pytest.mark.parametrize(("target", "why"), [("sign(z1) + sign(z2) + sign(z3) + sign(z4)", "depends on 4 directions"),
                                             (f"({COMMITTEE})*(2 + z3*0)", None)])
def test_what_is_not_solved_says_why(target, why):
    found = hx.exponents(target)
    last = found.weak_recovery["stages"][-1]
    assert (last["reached"] is None) == (why is not None) and last["bound"]
    assert why is None or any(why in n for n in found.notes if "where it is reached was not found" in n)


def drawn(seed):
    rng = np.random.default_rng(seed)
    c = round(float(rng.uniform(0.5, 1.5)), 2)
    return [(f"z1 + {c}*abs(z2)", lambda w: c*np.abs(w)), (f"{c}*z2**2 - z1", lambda w: c*w**2)][seed % 2]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_a_function_beside_a_known_direction(seed):
    target, f = drawn(seed)
    expected = crossing(added(f))[1]
    found = hx.exponents(target).threshold.stages[-1]
    assert float(found["alpha_c"]) < found["reached"]
    assert abs(found["reached"] - expected) < found["reached_error"] < 3e-5


@pytest.mark.slow
def test_labels_next_to_the_ends_of_a_cubic():
    """He3(z1) + z2^2: the roots of He3 = y are ends of panels in z1, labels are graded towards -2 and 2."""
    last = hx.exponents("He3(z1) + z2**2", budget=150).weak_recovery["stages"][-1]
    assert (last["alpha_c"], last["bound"]) == (0.5, True) and last["reached"] == pytest.approx(0.8517017, rel=1e-6)


@pytest.mark.slow
def test_the_map_itself_leaves_the_branch_there():
    """Below it what separates the directions of relu(z1) + relu(z2) shrinks, above it grows."""
    theory = hx.theories.multi_index("relu(z1) + relu(z2)")
    reached = hx.exponents("relu(z1) + relu(z2)").weak_recovery["stages"][1]["reached"]
    for factor, grows in ((0.99, False), (1.01, True)):
        x = np.array([0.35, 0.35])
        for _ in range(14):
            x = theory.evolution.step(np.array([x.mean(), x.mean()]), factor*reached)
        x, gaps = x.mean() + np.array([1e-4, -1e-4]), [2e-4]
        for _ in range(3):
            x = theory.evolution.step(x, factor*reached)
            gaps.append(x[0] - x[1])
        assert (gaps[3] > gaps[2]) == grows


@pytest.mark.slow
def test_where_the_directions_before_are_known_perfectly_the_threshold_is_reached():
    found = hx.exponents("z1**2 + sign(z1*z2*z3)")
    last = found.weak_recovery["stages"][-1]
    assert (last["bound"], last["reached"]) == (False, last["alpha_c"]) and found.threshold.exact is not None
    assert any("perfectly there" in n for n in found.notes)
