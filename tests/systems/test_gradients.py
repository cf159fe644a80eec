"""All partial derivatives in one walk: those of SymPy, sparse, and with what they share named once."""

import numpy as np
import pytest
from sympy import Abs, Max, Piecewise, Rational, Symbol, atan, cos, diff, erf, exp, log, sin, sqrt, symbols, tanh

from hermitex import System
from hermitex.systems.blocks import _acyclic_rest, _evaluation_order
from hermitex.systems.gradients import Factors, gradient

x = symbols("x:6", real=True)
a = Symbol("a", positive=True)


def drawn(rng, depth):
    """A random smooth formula in x and a."""
    if depth == 0:
        return [*x, a, Rational(int(rng.integers(1, 9)), 3)][int(rng.integers(8))]
    inner = [drawn(rng, depth - 1) for _ in range(3)]
    kind = int(rng.integers(7))
    if kind == 0:
        return inner[0] + inner[1] + inner[2]
    if kind == 1:
        return inner[0]*inner[1]
    if kind == 2:
        return inner[0]/(2 + cos(inner[1]))
    if kind == 3:
        return sqrt(1 + inner[0]**2)
    return [tanh, sin, lambda e: exp(-e**2), atan, erf, lambda e: log(2 + e**2)][int(rng.integers(6))](inner[0]) + inner[1]


@pytest.mark.parametrize("seed", range(40))
def test_against_sympy(seed):
    rng = np.random.default_rng(seed)
    f = drawn(rng, int(rng.integers(1, 5)))
    found = gradient(f, set(x))
    point = {v: Rational(int(rng.integers(-9, 9)), 7) for v in x} | {a: Rational(5, 4)}
    assert set(found) <= f.free_symbols & set(x) and all(slope != 0 for slope in found.values())
    for v in x:
        assert float(found.get(v, f*0).subs(point)) == pytest.approx(float(diff(f, v).subs(point)), rel=1e-12, abs=1e-14)


def test_what_has_no_rule_is_left_to_others():
    for f in (Abs(x[0]), Max(x[0], 1), Piecewise((x[0], x[1] > 0), (0, True)), a**x[0], x[0] + x[1]*Abs(x[2])):
        assert gradient(f, set(x)) is None
    assert gradient(x[0]*Abs(a - 3) + Max(a, 1), set(x)) == {x[0]: Abs(a - 3)}


def test_shared_factors_stand_once():
    many = symbols("y:20", real=True)
    inside = sum((k + 1)*v for k, v in enumerate(many))
    share = Factors(["D1"])
    found = gradient(a*tanh(inside)/7, set(many), share)
    (name,) = share.definitions
    assert name.name != "D1" and share.definitions[name] == 1 - tanh(inside)**2
    assert found == {v: (k + 1)*a*name/7 for k, v in enumerate(many)}


def test_a_dense_block_is_written_in_few_lines_and_solved():
    n = 30
    v = symbols(f"v:{n}", real=True)
    system = System({v[i]: a*tanh(sum(v[j]*Rational(1, i + j + 1) for j in range(n)))/n + a/(i + 1) for i in range(n)})
    program = system.compile()
    block, verdict = program.source.split("def right_hand_sides")
    assert block.count("\n") < n*n/2
    assert verdict.count("\n") < 7*n  # of an equation: its sum, the function of it, itself and the sum of its terms
    found = system.solve(a=0.5)
    state = np.array([found[u.name] for u in v])
    weights = 1/(np.arange(n)[:, None] + np.arange(n) + 1)
    assert state == pytest.approx(0.5*np.tanh(weights @ state)/n + 0.5/(np.arange(n) + 1), rel=1e-10)
    slopes = 0.5/n*(1 - np.tanh(weights @ state)**2)[:, None]*weights
    assert found.stability == pytest.approx(np.abs(np.linalg.eigvals(slopes)).max(), rel=1e-8)
    assert found.iterations <= 6  # the Jacobian is exact


@pytest.mark.parametrize("seed", range(20))
def test_orders_of_random_graphs(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 25))
    depends = {u: [v for v in range(n) if v != u and rng.random() < rng.choice([0.05, 0.2])] for u in range(n)}
    order = _evaluation_order(range(n), depends)
    for k, u in enumerate(order):
        assert set(depends[u]) <= set(order[:k])
    stuck = set(range(n)) - set(order)
    assert all(set(depends[u]) & stuck for u in stuck)  # each waits for another that waits
    kept = _acyclic_rest(list(range(n)), depends)
    assert len(_evaluation_order(kept, depends)) == len(kept) and (len(kept) == n) == (not stuck)
