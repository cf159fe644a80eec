"""Cost of a committee's trajectory, as ratios in one run: to the same equations as loops over neurons, and of tanh to erf.

Three students learn from two teachers over t = 0 ... 20. The loops are the sheet of formulas as one would type it: I_3 and I_4 of
four neurons at a time, closed forms of erf(z/sqrt(2)), two calls of SciPy's integrator: the package holds two runs against each
other, too, of these tolerances.
"""

import sys
from math import asin, pi, sqrt
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import hermitex as hx

sys.path.insert(0, str(Path(__file__).parent))
from test_systems_bench import cpu

TOLERANCES = (4e-10, 2e-9)
TIMES, GAMMA, DELTA = np.linspace(0, 20, 21), 0.5, 0.01
Q, P = np.eye(3), np.eye(2)
M = np.array([[0.2, 0.1], [0.1, 0.2], [0.15, 0.05]])
START = {"Q": Q, "M": M, "P": P}


def loops():
    """The risk at the end, by the formulas of Saad and Solla over all pairs and quadruples of neurons."""
    p, k = M.shape
    n, s = p + k, [-1/3]*3 + [1/2]*2
    upper = [(i, j) for i in range(p) for j in range(i, p)]

    def joint(x):
        q = np.zeros((p, p))
        for v, (i, j) in zip(x, upper, strict=False):
            q[i, j] = q[j, i] = v
        m = x[len(upper):].reshape(p, k)
        return np.block([[q, m], [m.T, P]]).tolist()

    def i3(C, a, b, c):
        return 2*(C[b][c]*(1 + C[a][a]) - C[a][b]*C[a][c])/(
            pi*(1 + C[a][a])*sqrt((1 + C[a][a])*(1 + C[c][c]) - C[a][c]**2))

    def i4(C, a, b, c, d):
        l4 = (1 + C[a][a])*(1 + C[b][b]) - C[a][b]**2
        l0 = (l4*C[c][d] - C[b][c]*C[b][d]*(1 + C[a][a]) - C[a][c]*C[a][d]*(1 + C[b][b]) + C[a][b]*C[a][c]*C[b][d]
              + C[a][b]*C[a][d]*C[b][c])
        ends = [l4*(1 + C[e][e]) - C[b][e]**2*(1 + C[a][a]) - C[a][e]**2*(1 + C[b][b]) + 2*C[a][b]*C[a][e]*C[b][e] for e in (c, d)]
        return 4/pi**2/sqrt(l4)*asin(l0/sqrt(ends[0]*ends[1]))

    def rate(t, x):
        C = joint(x)
        own = [sum(s[a]*(i3(C, i, j, a) + i3(C, j, i, a)) for a in range(n))
               + GAMMA/p*(sum(s[a]*s[b]*i4(C, i, j, a, b) for a in range(n) for b in range(n))
                          + DELTA*2/pi/sqrt((1 + C[i][i])*(1 + C[j][j]) - C[i][j]**2)) for i, j in upper]
        return own + [sum(s[a]*i3(C, i, p + r, a) for a in range(n)) for i in range(p) for r in range(k)]

    start = [*(Q[i, j] for i, j in upper), *M.ravel()]
    ends = [solve_ivp(rate, (0, TIMES[-1]), start, rtol=rtol, atol=rtol).y[:, -1] for rtol in TOLERANCES]
    assert np.abs(ends[0] - ends[1]).max() < 1e-7
    C = joint(ends[0])
    return sum(s[a]*s[b]/pi*asin(C[a][b]/sqrt((1 + C[a][a])*(1 + C[b][b]))) for a in range(n) for b in range(n))


@pytest.fixture(scope="module")
def erf():
    return hx.theories.committee("erf(z/sqrt(2))", students=3, teachers=2)


def along(theory):
    return theory.curve(t=TIMES, gamma=GAMMA, Delta=DELTA, **START)


def test_closed_forms_beside_loops_over_neurons(erf, benchmark):
    found = along(erf)
    assert found.risk[-1] == pytest.approx(loops(), rel=1e-6) and bool(found.converged.all())
    ratio = cpu(loops, rounds=2)/cpu(lambda: along(erf), benchmark, 5)
    benchmark.extra_info["ratio"] = round(ratio, 1)
    assert ratio >= 2  # 4: 0.12 s on one core


def test_averages_by_quadrature_beside_closed_forms(erf, benchmark):
    tanh = hx.theories.committee("tanh", students=3, teachers=2)
    ratio = cpu(lambda: along(tanh), benchmark, 1)/cpu(lambda: along(erf), rounds=3)
    benchmark.extra_info["ratio"] = round(ratio, 1)
    assert ratio <= 80  # 41: 5 s on one core
