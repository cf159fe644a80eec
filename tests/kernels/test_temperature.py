"""T log sum exp(u/T) at T = 0 is the largest u, inside averages and before them; at T > 0 it is what it was."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import logsumexp
from sympy import Integer, Symbol, cosh, exp, log, sqrt, tanh

import hermitex as hx
from hermitex.symbols import z

T, h, q = Symbol("T", positive=True), Symbol("h", real=True), Symbol("q", positive=True)
H = 0.3


def mean(f, *kinks):
    edges = sorted({-12.0, 12.0, *(k for k in kinks if abs(k) < 12)})
    return sum(quad(lambda t: f(t)*np.exp(-t*t/2)/np.sqrt(2*np.pi), a, b, epsabs=1e-13)[0]
               for a, b in pairwise(edges))


def drawn(seed):
    """Lines u = s z + b of a log-sum, weights log w of its terms, and its spelling."""
    draw = np.random.default_rng(seed)
    slopes = draw.choice([-2, -1, 0, 1, 3], 2 + seed % 2, replace=False)
    lines = [(int(s), int(b)) for s, b in zip(slopes, draw.integers(-1, 2, len(slopes)), strict=True)]
    weights = [int(w) for w in draw.integers(1, 4, len(lines))]
    body = log(sum(w*exp((s*z + b*h)/T) for w, (s, b) in zip(weights, lines, strict=True)))
    front = [Integer(1), z**2, -tanh(z), Integer(3)/2][seed % 4]
    return front*body, lines, weights, [lambda t: 1, lambda t: t*t, lambda t: -np.tanh(t), lambda t: 1.5][seed % 4]


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(k, marks=pytest.mark.slow) for k in range(6, 40))])
def test_drawn_sums_of_exponentials(seed):
    outside = seed % 3 == 0
    body, lines, weights, front = drawn(seed)
    kernel = hx.compile(T*hx.E(body, z) if outside else hx.E(T*body, z))
    given = {"h": H} if "h" in kernel.parameters else {}
    kinks = [-(b - d)*H/(s - r) for s, b in lines for r, d in lines if s != r]
    for t in (0.0, 0.7):
        def largest(x, t=t):
            u = np.array([s*x + b*H for s, b in lines])
            return front(x)*(u.max() if t == 0 else t*logsumexp(u/t, b=weights))
        assert kernel(T=t, **given) == pytest.approx(mean(largest, *kinks), rel=1e-11, abs=1e-12)


@pytest.mark.parametrize("field", [-0.18999884347304175, 1.3093261855260092, -0.7, 0.05])
def test_a_kink_at_zero_temperature_is_the_end_of_a_panel_wherever_it_stands(field):
    """The exponents are equal where no one of them has a turn: a rule with none of its ends there claimed 4e-15 and had 1e-8."""
    kernel = hx.compile(hx.E(T*log(exp((h - z)/T) + 2*exp(-h/T)), z))
    assert kernel(T=0.0, h=field) == pytest.approx(mean(lambda t: max(field - t, -field), 2*field), rel=1e-12)
    three = hx.compile(hx.E(T*z**2*log(exp(h/T) + 3*exp((3*z - h)/T) + exp((h + z)/T)), z))
    known = mean(lambda t: t*t*max(field, 3*t - field, field + t), 0, field, 2*field/3)
    assert three(T=0.0, h=field) == pytest.approx(known, rel=1e-12)


def test_a_free_energy_at_zero_temperature_in_a_batch_with_others():
    field = (z*sqrt(q) + h)/T
    system = hx.System({q: hx.E(tanh(field)**2, z)}, observables={"f": -T*(1 + hx.E(log(2*cosh(field)), z))})
    found = system.solve(h=H, T=np.array([0.0, 1e-6, 1.0]))
    assert found["f"][0] == pytest.approx(-mean(lambda t: abs(t + H), -H), rel=1e-12)
    assert found["f"][1] == pytest.approx(found["f"][0], abs=3e-6)
    m = found["q"][2]
    assert found["f"][2] == pytest.approx(-1 - mean(lambda t: np.log(2*np.cosh(t*np.sqrt(m) + H))), rel=1e-11)


@pytest.mark.parametrize("body", [log(2*cosh((z*sqrt(q) + h)/T)), log(1 + exp((z*sqrt(q) + h)/T))])
def test_an_unknown_in_it_is_solved_for(body):
    found = hx.System({q: 1 + hx.E(T*body, z)/3}).solve(h=H, T=0.0)
    s = np.sqrt(found["q"])
    u = (lambda t: abs(s*t + H)) if body.has(cosh) else (lambda t: max(s*t + H, 0.0))
    assert found["q"] == pytest.approx(1 + mean(u, -H/s)/3, rel=1e-10)
