"""Rates of ridge regression under power laws: the table of slopes, the min-formula, continuity, the optimum, teeth."""

import json
from pathlib import Path

import numpy as np
import pytest
from sympy import Min, Rational, Symbol, oo, simplify, sympify

from hermitex.errors import BadInput
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


@pytest.mark.slow
@pytest.mark.parametrize("a, s, ell", [(1.5, 0.3, 0.8), (2.0, 0.7, 0.6), (2.0, 1.4, 1.0)])
def test_the_slopes_of_the_deterministic_equivalent_of_a_kernel(a, s, ell):
    """n - lam/nu = Tr S (S + nu)^-1 at two n a decade apart, without the package."""
    from scipy.optimize import brentq

    k = np.arange(1, 2_000_001, dtype=float)
    eta, beta = k**-a, k**(-a*s - 0.5)

    def errors(n):
        lam = n**(1 - ell)
        nu = brentq(lambda v: np.log(n) - np.log(lam/v + (eta/(eta + v)).sum()), 1e-12, 10)
        T2 = (eta**2/(eta + nu)**2).sum()/n
        return np.log([nu**2*(beta**2/(eta + nu)**2).sum()/(1 - T2), T2/(1 - T2)])

    slopes = -(errors(3e5) - errors(3e4))/np.log(10)
    found = source_capacity(a, s).rates(ell, oo)
    assert abs(slopes[0] - float(found["bias"])) < 0.06 and abs(slopes[1] - float(found["variance"])) < 0.03


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
    (lambda: source_capacity(2, True), "source"), (lambda: source_capacity(2, 1).rates(1, 0), "q")])
def test_bad_input_is_one_line(ask, word):
    with pytest.raises(BadInput) as caught:
        ask()
    assert word in str(caught.value) and "\n" not in str(caught.value)
