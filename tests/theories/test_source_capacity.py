"""Rates of ridge regression under power laws: the table of slopes, the min-formula, continuity, the optimum, teeth."""

import json
from pathlib import Path

import numpy as np
import pytest
from sympy import Min, Rational, Symbol, oo, simplify, sympify

from hermitex.errors import BadInput
from hermitex.experiments.ridge_equivalent_experiment import simulate
from hermitex.experiments.statistics import agreement
from hermitex.face import cli
from hermitex.symbols import alpha, r
from hermitex.theories import source_capacity
from hermitex.theories.claims import Regimes

KNOWN = json.loads((Path(__file__).parents[1]/"reference"/"limits.json").read_text())["rates"]
HALF = Rational(1, 2)


def printed(a, s, ell, q):
    """The formula of the source: min{2 a m (r ^ 1), (2 a (r ^ 1/2) - 1) m + q} and 1 - m."""
    m = Min(ell/a, q, 1)
    return Min(2*a*m*Min(s, 1), (2*a*Min(s, HALF) - 1)*m + q), 1 - m


@pytest.mark.parametrize("row", KNOWN, ids=lambda r: f"{r['alpha']}, {r['r']}, {r['ell']}, {r['q']}")
def test_the_table(row):
    found = source_capacity(row["alpha"], row["r"]).rates(row["ell"], row["q"])
    assert abs(float(found["bias"]) - row["gammaB"]) < 1e-12 and abs(float(found["variance"]) - row["gammaV"]) < 1e-12
    slow = row["q"] == 0.35 or row["r"] == 1.3  # slopes at n = 1e8 that still move, as the sheet says
    assert abs(float(found["bias"]) - row["slopeB"]) < (0.03 if slow else 0.004)
    assert abs(float(found["variance"]) - row["slopeV"]) < 0.006


@pytest.mark.parametrize("seed", range(6))
def test_the_regimes_are_the_formula_of_the_source(seed):
    """Everywhere, and on the lines between the regimes."""
    rng = np.random.default_rng(seed)
    theory = source_capacity(Rational(int(rng.integers(11, 40)), 10), Rational(int(rng.integers(1, 20)), 10))
    for _ in range(25):
        ell, q = (Rational(int(v), 7) for v in rng.integers(1, 22, 2))
        found = theory.rates(ell, q)
        assert (found["bias"], found["variance"]) == printed(theory.capacity, theory.source, ell, q), (theory, ell, q)
    for border in theory.regimes.borders:
        (symbol, value), = border.line.items()
        other = Rational(int(rng.integers(1, 22)), 7)
        at = {"ell": other, "q": other}
        at[symbol.name] = sympify(value).subs(Symbol("ell", positive=True), other)
        assert (theory.rates(**at)["bias"], theory.rates(**at)["variance"]) == printed(theory.capacity, theory.source, **at)


def test_continuity_is_proved_and_a_planted_break_is_found():
    for theory in (source_capacity(), source_capacity(2, "1/3"), source_capacity(2, "3/2")):
        assert theory.regimes.continuous and all(v == 0 for gaps in theory.continuity().values() for v in gaps.values())
    good = source_capacity().regimes
    for k, cell in enumerate(good.regimes):
        wrong = type(cell)(cell.name, cell.inside, {**cell.values, "bias": cell.values["bias"]*2})
        assert not Regimes("", (*good.regimes[:k], wrong, *good.regimes[k + 1:]), good.borders).continuous


def test_the_optimum_balances_and_its_width_is_the_least():
    found = source_capacity().optimum()
    assert simplify(found["rate"] - 2*alpha*Min(r, 1)/(1 + 2*alpha*Min(r, 1))) == 0
    assert found.status == {"ell": "heuristic", "rate": "theorem", "q_min": "derived"}
    for a, s in ((2, Rational(3, 10)), (3, Rational(7, 10)), (Rational(3, 2), Rational(5, 4))):
        theory = source_capacity(a, s)
        best = theory.optimum()
        at = theory.rates(best["ell"], best["q_min"])
        assert at["bias"] == at["variance"] == best["rate"]
        less = theory.rates(best["ell"], best["q_min"] - Rational(1, 100))
        assert min(less["bias"], less["variance"]) < best["rate"]
        for ell in np.linspace(0.1, 4, 30):  # no other ridge does better
            there = theory.rates(float(ell), oo)
            assert min(there["bias"], there["variance"]) <= best["rate"]
    assert source_capacity(2, "1/4").optimum()["q_min"] == HALF and source_capacity(2, "3/4").optimum()["q_min"] == HALF


@pytest.mark.parametrize("row", KNOWN, ids=lambda r: f"{r['alpha']}, {r['r']}, {r['ell']}, {r['q']}")
def test_the_slopes_of_the_deterministic_equivalent(row):
    """The table's slopes near n = 1e8, which are those that the exponents say; other exponents they are not."""
    theory = source_capacity(row["alpha"], row["r"])
    found = theory.curve([1e8], ell=row["ell"], q=row["q"])
    assert abs(found["bias_rate"][-1] - row["slopeB"]) < 5e-3 and abs(found["variance_rate"][-1] - row["slopeV"]) < 5e-3
    goal = theory.rates(row["ell"], row["q"])
    for name in ("bias", "variance"):
        slow = row["q"] == 0.35 or row["r"] == 1.3
        assert abs(found[f"{name}_rate"][-1] - float(goal[name])) < (0.03 if slow else 0.006)
    wrong = theory.rates(row["ell"]*1.3, row["q"]*0.7)
    assert max(abs(found[f"{name}_rate"][-1] - float(wrong[name])) for name in ("bias", "variance")) > 0.03


def test_the_curve_is_the_sum_over_the_power_laws():
    """Without the package: two million modes one by one and the sum of the others, n - lam/nu = Tr S/(S + nu)."""
    from scipy.optimize import brentq
    from scipy.special import zeta

    k = np.arange(1, 2_000_001, dtype=float)
    tail, rest = zeta(1.5, k.size + 1), zeta(1.9, k.size + 1)
    eta, beta, n, lam = k**-1.5, k**-0.95, 300.0, 300.0**0.2
    nu = brentq(lambda v: n - (lam + tail)/v - (eta/(eta + v)).sum(), 1e-4, 1, xtol=1e-14)
    T2 = (eta**2/(eta + nu)**2).sum()/n
    found = source_capacity(1.5, 0.3).curve([n], ell=0.8, noise=0.5)
    assert found["bias"][0] == pytest.approx((nu**2*(beta**2/(eta + nu)**2).sum() + rest)/(1 - T2), rel=1e-6)
    assert found["variance"][0] == pytest.approx(0.5*T2/(1 - T2), rel=1e-5) and found.parameters["source"] == 0.3


def test_the_kernel_begins_at_one_sample():
    found = source_capacity("3/2", "3/10").curve([1.0, 10], ell="1/2", noise=0.1)
    wide = source_capacity("3/2", "3/10").curve([10.0], ell="1/2", noise=0.1, q=12)
    assert found.all_converged and np.isfinite(found["bias_rate"]).all()
    assert [found[k][1] for k in ("bias", "bias_rate")] == pytest.approx([wide[k][0] for k in ("bias", "bias_rate")], rel=1e-6)
    assert found.title != source_capacity(2, "3/10").curve([10], ell="1/2").title


def test_text_and_pictures():
    theory = source_capacity(2, 0.7)
    assert theory.regime(0.6, 0.9) == "ridge, wide" and theory.regime(0.6, 0.35) == "ridge, width felt"
    assert theory.to_dict()["continuous"] is True and theory.rates(0.6, 0.9).to_dict()["bias"]["value"] == "21/25"
    ax = theory.plot()
    assert len(ax.get_legend().get_texts()) == 5 and "ell" in ax.get_xlabel()
    assert theory.bibtex().count("@") == 3


@pytest.mark.parametrize("ask, word", [
    (lambda: source_capacity(1, 0.5), "capacity"), (lambda: source_capacity(2, 0), "source"),
    (lambda: source_capacity("2 +", 1), "capacity"), (lambda: source_capacity(2, 1).rates(-1, 1), "ell"),
    (lambda: source_capacity(2, 1).rates(oo, 1), "ell"), (lambda: source_capacity().plot(), "alpha, r"),
    (lambda: source_capacity(2, 1).curve([1e30], ell=2), "smaller n"),
    (lambda: source_capacity(2, 1).curve([-1], ell=2), "n must be"),
    (lambda: source_capacity().curve([10], ell=1), "alpha, r"),
    (lambda: source_capacity(2, True), "source"), (lambda: source_capacity(2, 1).rates(1, 0), "q")])
def test_bad_input_is_one_line(ask, word):
    with pytest.raises(BadInput) as caught:
        ask()
    assert word in str(caught.value) and "\n" not in str(caught.value)


def test_the_command_line_and_an_experiment(capsys):
    words = ["curve", "source-capacity", "--capacity", "9/5", "--source", "2/5", "--ell", "3/5", "--q", "0.9", "--noise", "0.2"]
    assert cli.main([*words, "--n", "30,120", "--simulate", "--seeds", "30", "--json"]) == 0
    found, theory = json.loads(capsys.readouterr().out), source_capacity("9/5", "2/5")
    own = theory.curve([30, 120], ell="3/5", q="9/10", noise=0.2)
    solved = theory.solve(n=[30, 120], ell=0.6, q=0.9, noise=0.2)
    assert found["test_error"] == own.test_error.tolist() == solved["test_error"].tolist()
    assert found["parameters"]["bias_exponent"] == float(theory.rates("3/5", "9/10")["bias"])
    measured = simulate(theory, [60, 240], ell=0.6, q=0.9, noise=0.2, seeds=24)
    assert agreement(theory.curve([60, 240], ell=0.6, q=0.9, noise=0.2), measured).worst("bias", "variance", "train_error") < 3
    assert agreement(theory.curve([60, 240], ell=0.8, q=0.9, noise=0.2), measured).worst("bias", "variance", "train_error") > 3
    assert cli.main(["curve", "source-capacity", "--capacity", "2", "--source", "2/5", "--n", "10", "--optimise", "ell"]) == 2
    assert "--optimise lam" in capsys.readouterr().err
    assert cli.main(["curve", "source-capacity", "--source", "2/5", "--ell", "1", "--n", "10"]) == 2
    assert "capacity = 2" in capsys.readouterr().err


def test_powers_of_n_are_drawn_on_logarithmic_axes_and_told_apart_by_what_was_given():
    theory = source_capacity("3/2", "3/10")
    ax = theory.curve(n=[100, 1000, 10000], ell=0.5).plot()
    theory.curve(n=[100, 1000, 10000], ell=1.0).plot(ax)
    assert ax.get_xscale() == ax.get_yscale() == "log"
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert len(set(texts)) == 2 and not any("exponent" in text for text in texts)
    assert theory.curve(n=[100, 110], ell=0.5).plot().get_yscale() == "linear"
