"""Cost of solving, as ratios in one run: to plain lambdify with damped iteration, and of many points to few.

Seconds of a machine are asserted nowhere: the yardstick is `damped_picard`, the 13 equations of one point as one would
write them down in a notebook, timed beside what it is compared with.
"""

import ast
import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from sympy import Symbol, cos, lambdify, tanh

import hermitex as hx

sys.path.insert(0, str(Path(__file__).parents[1] / "systems"))
from one_step import ALPHAS, NOTEBOOK, one_step

POINT = {**NOTEBOOK, "Delta": 0.1}


def cpu(run, benchmark=None, rounds=1):
    """The least CPU seconds of this thread in `rounds` runs: neither a busy machine nor a waiting BLAS thread lengthens them."""
    spent = []

    def timed():
        start = time.thread_time()
        run()
        spent.append(time.thread_time() - start)

    if benchmark is None:
        for _ in range(rounds):
            timed()
    else:
        benchmark.pedantic(timed, rounds=rounds, warmup_rounds=1)
        benchmark.extra_info["cpu_ms"] = round(1e3*min(spent), 3)
    return min(spent)


def one_point():
    """What one point costs by plain iteration."""
    return cpu(lambda: damped_picard({**POINT, "alpha": [1.0]}), rounds=3)


@pytest.fixture(scope="module")
def plain():
    return one_point()


@pytest.mark.parametrize("lam", [0.1, 1e-10])
def test_a_short_curve(lam, benchmark, plain):
    theory = hx.theories.one_step("tanh", "sin")
    numbers = {**NOTEBOOK, "lam": lam, "alpha": ALPHAS}
    ratio = len(ALPHAS)*plain/cpu(lambda: theory.solve(**numbers), benchmark, 20)
    benchmark.extra_info["ratio"] = round(ratio)
    assert ratio >= 12  # 45 to 82 at lam = 0.1, where plain iteration was timed; 24 to 67 at 1e-10, where it does not arrive


@pytest.mark.parametrize("sigma, g, gamma, times", [("tanh", "sin", 0.9, 300), ("relu", "abs", 0.9, 300),
                                                    ("sign", "sign", 1.0, 30), ("softplus", "sign", 1.0, 30)])
def test_a_curve_of_two_hundred_points(sigma, g, gamma, times, benchmark, plain):
    theory = hx.theories.one_step(sigma, g)
    numbers = {"lam": 0.01, "r": 1.0, "c": 1.0, "gamma": gamma, "Delta": 0.1}
    assert theory.curve(alpha=np.linspace(0.1, 4, 200), **numbers).all_converged
    ratio = 200*plain/cpu(lambda: theory.curve(alpha=np.linspace(0.1, 4, 200), **numbers), benchmark, 3)
    benchmark.extra_info["ratio"] = round(ratio)
    assert ratio >= times  # 665 to 1400 were measured, 71 to 120 with a kink in the outer variable


@pytest.mark.parametrize("loss, first, warm", [("hinge", 80, 0.4), ("logistic", 40, 0.5)])  # 31 and 0.12, 17 and 0.12
def test_a_loss_on_signs(loss, first, warm, benchmark, plain):
    """A free energy whose labels are signs: derived and compiled, and one point more, in points of plain iteration."""
    from hermitex.theories.glm import Glm
    from hermitex.theories.losses.pointwise import pointwise

    theory = Glm(pointwise(loss), "sign")
    cold = cpu(lambda: theory.solve(alpha=2, lam=0.1))
    plain = max(plain, one_point())  # a core may have slowed down since
    cold, point = cold/plain, cpu(lambda: theory.solve(alpha=2.5, lam=0.2, Delta=0.1), benchmark, 5)/plain
    benchmark.extra_info.update(first=round(cold, 1), point=round(point, 3))
    assert cold <= first and point <= warm


def test_a_loss_on_signs_with_features_that_are_not_odd(benchmark, plain):
    """No reflection halves the averages of softplus or relu: one point more, in points of plain iteration."""
    theory = hx.theories.one_step("softplus", "sign", loss="hinge")
    numbers = {"beta": 1.0, "lam": 0.1, "r": 1.0, "c": 1.0, "gamma": 0.9}
    first = cpu(lambda: theory.solve(alpha=1.5, **numbers))
    plain = max(plain, one_point())
    cold, point = first/plain, cpu(lambda: theory.solve(alpha=1.6, **numbers), benchmark, 3)/plain
    benchmark.extra_info.update(first=round(cold, 1), point=round(point, 2))
    assert cold <= 10 and point <= 2  # 3.2 and 0.8 were measured; 36 and 5.8 where the equations were written down and compiled


@pytest.mark.parametrize("target", ["z**3", "He3(z)"])
def test_the_first_fixed_point_of_a_noisy_label(target, benchmark):
    """Some 48 F(q) to 1e-13, against one F by the sums that one would write down: P(y|z) as a table of all labels and all z."""
    theory = hx.theories.multi_index(target, channel="gaussian:1/4")
    _ = theory.evolution
    g = np.poly1d([1, 0, 0, 0] if target == "z**3" else [1, 0, -3, 0])
    ratio = cpu(lambda: theory.solve(alpha=2))/cpu(lambda: summed(g, 0.25, 0.5), rounds=3)
    benchmark.extra_info["F"] = round(ratio, 1)
    benchmark.pedantic(lambda: theory.solve(alpha=2.1), rounds=1)
    assert ratio <= 36  # 11 to 20 were measured, by the speed of BLAS; over 100 with a table that was made again for each F


def summed(g, D, q):
    """F(q) = int dy E A^2/Z by plain sums over labels y, z and fields."""
    z, x = np.linspace(-8.5, 8.5, 3000), np.linspace(-8, 8, 80)
    y = np.arange(g(-8.5) - 8*np.sqrt(D), g(8.5) + 8*np.sqrt(D), 0.45*np.sqrt(D))
    law = np.exp(-(y[:, None] - g(z))**2/(2*D))
    t = (z[:, None] - np.sqrt(q)*x)/np.sqrt(1 - q)
    p = np.exp(-t*t/2)
    Z, A = law @ p, law @ (p*t)
    return (A**2/np.maximum(Z, 1e-300)).sum(axis=0) @ np.exp(-x*x/2)


def test_writing_down_and_compiling_a_theory(benchmark, plain):
    from hermitex.theories.one_step import OneStep

    def fresh():
        theory = hx.theories.one_step("erf", "sin")
        OneStep(theory.sigma, theory.g).system.compile()

    points = cpu(fresh, benchmark, 2)/plain
    benchmark.extra_info["points"] = round(points, 1)
    assert points <= 12  # compiling pays from the third point of plain iteration on


def test_cost_grows_linearly_with_points(benchmark):
    system = one_step("erf", "erf")
    numbers = {points: {**POINT, "alpha": np.linspace(0.2, 3, points)} for points in (512, 2048)}
    system.solve(numbers[512])
    few = cpu(lambda: system.solve(numbers[512]), rounds=3)
    many = cpu(lambda: system.solve(numbers[2048]), benchmark, 3)
    benchmark.extra_info["ratio"] = round(many/few, 2)
    assert many <= 6*few


def test_memory_of_two_thousand_points(benchmark):
    system = one_step("erf", "erf")
    numbers = {**POINT, "alpha": np.linspace(0.2, 3, 2000)}
    system.solve(numbers)
    tracemalloc.start()
    benchmark.pedantic(lambda: system.solve(numbers), rounds=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    benchmark.extra_info["peak_MB"] = round(peak/1e6)
    assert peak < 300e6


def damped_picard(numbers, nodes=100, tolerance=1e-10, damping=0.5):
    """The 13 equations by plain NumPy functions from lambdify, one point at a time, iterated with damping to `tolerance`."""
    from scipy.special import erf
    from sympy import symbols

    u = symbols("Vhat1 Vhat2 V1 V2 m zeta zetatilde psi psitilde qhat1 qhat2 q1 q2")
    Vh1, Vh2, V1, V2, m, zeta, zt, psi, pt, qh1, qh2, q1, q2 = u
    al, be, la, _, c, _, _, k, m0, m1, m22, h, h1, h2 = p = symbols("al be la r c ga De k m0 m1 m22 h h1 h2")
    L, v = la + Vh2, 1/(1 + c*be*Vh1*V2)
    Q = 1/(1 + m1**2*V1 + m22*V2)
    T0 = V2**2/(1 - be*(c*Vh1*v*V2)**2)
    T1 = c*v**2*T0
    T2 = c*v**2*T1 + be*V1**2
    B = m0*m + k*m1*zeta
    e = h2 - 2*B*h + B**2 - 2*m1*psi*h1 + m1**2*q1 + m22*q2
    inside = [lambdify((*u, *p), f) for f in (m1**2*Q, m22*Q, m0*(h - k*m1*zeta)*Q, m0**2*Q, k*m1*(h - B)*Q, m1*h1*Q,
                                              m1**2*e*Q**2, m22*e*Q**2)]
    x, w = np.polynomial.hermite_e.hermegauss(nodes)
    w = w/w.sum()
    steps = 0
    for alpha in numbers["alpha"]:
        b_, l_, r_, c_, g_, D_ = (numbers[n] for n in ("beta", "lam", "r", "c", "gamma", "Delta"))
        state = np.full(13, 0.1)
        outer = lambdify((*u, *p[:7]), [c*V2*v, 1/(L + c*Vh1*v), al*c*V2*zt, al*V1*pt,
                                        al**2/be*(c*zt**2*T1 + pt**2*T2) + qh1*T2 + qh2*T1,
                                        al**2/be*(c*zt**2*T0 + pt**2*T1) + qh1*T1 + qh2*T0])
        for _ in range(5000):
            steps += 1  # lambdify does not know that the inner expectations stay the same: they stand in the formulas
            S, G = erf(r_*x[:, None] + np.sqrt(c_)*x), erf(g_*x[:, None] + np.sqrt(1 - g_**2)*x)
            mu0, mu1 = S@w, S@(w*x)/np.sqrt(c_)
            tables = (x, mu0, mu1, S**2@w - mu0**2 - c_*mu1**2, G@w, G@(w*x), G**2@w + D_)
            a = [f(*state, alpha, b_, l_, r_, c_, g_, D_, *tables)@w for f in inside]
            o = outer(*state, alpha, b_, l_, r_, c_, g_, D_)
            new = np.array([alpha/b_*a[0], alpha/b_*a[1], o[0], o[1], a[2]/a[3], o[2], a[4], o[3], a[5], alpha/b_*a[6],
                            alpha/b_*a[7], o[4], o[5]])
            gap = np.max(np.abs(new - state)/(np.abs(state) + 1e-6))
            state = damping*state + (1 - damping)*new
            if gap < tolerance:
                break
    return state, steps


def test_against_plain_lambdify_with_damped_iteration(benchmark):
    system = one_step("erf", "erf")
    alphas = np.linspace(0.2, 3, 500)
    numbers = {**POINT, "alpha": alphas}
    few = {**POINT, "alpha": alphas[::125]}
    slow = cpu(lambda: damped_picard(few))*125
    system.solve(numbers, raise_on_failure=False)
    ours = cpu(lambda: system.solve(numbers, raise_on_failure=False), benchmark, 3)
    slow = max(slow, cpu(lambda: damped_picard(few))*125)  # a core may have slowed down since
    benchmark.extra_info.update(ratio=round(slow/ours))
    assert slow/ours >= 350  # 680 to 1245 were measured on shared cores, 100 x 100 nodes and 1e-10 on the other side


def by_hand(alpha, beta, lam, r, c, gamma, Delta):
    """(test error, training error) of tanh and sin at all points of alpha: the same quadrature and blocks, nothing verified."""
    x, z = np.arange(-100, 101)*0.1, np.arange(-68, 69)*0.15
    w, wz = (np.exp(-v*v/2)/np.exp(-v*v/2).sum() for v in (x, z))
    S = np.tanh(r*x[:, None] + np.sqrt(c)*z)
    m0, m1 = S @ wz, S @ (wz*z)/np.sqrt(c)
    m22 = np.square(S - m0[:, None] - np.sqrt(c)*m1[:, None]*z) @ wz
    rho, k = 1 - gamma**2, alpha/beta
    h, h1 = np.exp(-rho/2)*np.sin(gamma*x), np.exp(-rho/2)*np.sqrt(rho)*np.cos(gamma*x)
    h2 = 0.5 + Delta - np.cos(2*gamma*x)*np.exp(-2*rho)/2
    once, twice = np.stack([w*m1**2, w*m22], 1), np.stack([w*m1**4, w*m1**2*m22, w*m22**2], 1)
    Vh1, V2 = np.ones((2, len(alpha)))
    for _ in range(50):  # Newton's method in the logarithms of Vhat1 and V2
        u = 1/(1 + c*beta*Vh1*V2)
        V1 = c*V2*u
        Q = 1/(1 + V1[:, None]*m1**2 + V2[:, None]*m22)
        (I1, I2), (D11, D12, D22) = (Q @ once).T, -((Q*Q) @ twice).T
        G1, G2 = k*I1, 1/(lam + k*I2 + c*Vh1*u)
        dV1 = -c*c*beta*V2**2*u*u, c*u*u  # by Vhat1 and V2
        J = np.array([[1 - k*D11*dV1[0]*Vh1/G1, -k*(D11*dV1[1] + D12)*V2/G1],
                      [G2*(k*D12*dV1[0] + c*u*u)*Vh1, 1 + G2*(k*(D12*dV1[1] + D22) - c*c*beta*(Vh1*u)**2)*V2]])
        F, det = (np.log(Vh1/G1), np.log(V2/G2)), J[0, 0]*J[1, 1] - J[0, 1]*J[1, 0]
        d = np.stack([J[0, 1]*F[1] - F[0]*J[1, 1], J[1, 0]*F[0] - J[0, 0]*F[1]])/det
        d *= np.minimum(1, 4/np.maximum(np.abs(d).max(axis=0), 1e-300))
        Vh1, V2 = Vh1*np.exp(d[0]), V2*np.exp(d[1])
        if np.abs(d).max() < 1e-11:
            break
    a, b, ab, p, q = (Q @ np.stack([w*m0**2, w*h*m0, w*x*m0*m1, w*h*x*m1, w*(x*m1)**2], 1)).T
    g, det = alpha*c*V2, a*(1 + alpha*c*V2*q) - alpha*c*V2*ab**2
    m, zeta, psih = (b*(1 + g*q) - ab*g*p)/det, g*(a*p - ab*b)/det, Q @ (w*m1*h1)
    B, psi, Q2 = m[:, None]*m0 + zeta[:, None]*(x*m1), alpha*V1*psih, Q*Q
    e = h2 - 2*B*h + B*B - 2*psi[:, None]*(m1*h1)
    T0 = V2**2/(1 - beta*(c*Vh1*u*V2)**2)
    T1, A = c*u*u*T0, np.zeros((len(alpha), 4, 4)) + np.eye(4)
    T2 = c*u*u*T1 + beta*V1**2
    A[:, 0, 2], A[:, 0, 3], A[:, 1, 3] = -k*(Q2 @ twice).T
    A[:, 1, 2], A[:, 2, 0], A[:, 2, 1], A[:, 3, 0], A[:, 3, 1] = A[:, 0, 3], -T2, -T1, -T1, -T0
    right = [*(k*((e*Q2) @ once).T), *(alpha**2/beta*(c*(zeta/g)**2*s + psih**2*t) for s, t in ((T1, T2), (T0, T1)))]
    q1, q2 = np.linalg.solve(A, np.stack(right, 1)[:, :, None])[:, 2:, 0].T
    e = e + q1[:, None]*m1**2 + q2[:, None]*m22
    return e @ w - Delta, (e*Q2) @ w


@pytest.mark.parametrize("points, times", [(5, 20), (500, 11)])
def test_a_curve_by_hand(points, times, benchmark):
    """13 and 10 times were measured: beside the solution all is taken once more on other nodes, off by its rounding, and the
    solution moved with it.
    """
    theory = hx.theories.one_step("tanh", "sin")
    numbers = {**NOTEBOOK, "alpha": np.linspace(0.2, 3, points)}
    found, plain = theory.solve(**numbers), by_hand(**numbers)
    assert np.allclose([found["test_error"], found["train_error"]], plain, rtol=1e-11)
    rounds = 40 if points < 100 else 5
    ratio = cpu(lambda: theory.solve(**numbers), benchmark, rounds)/cpu(lambda: by_hand(**numbers), rounds=rounds)
    benchmark.extra_info["ratio"] = round(ratio, 1)
    assert ratio <= times


def independent(n, letter):
    a = Symbol("a", positive=True)
    return {x: a*cos(x)/(2 + k % 7) for k in range(n) for x in [Symbol(f"{letter}{k}", real=True)]}


def chain(n, letter):
    x, a = [Symbol(f"{letter}{k}", real=True) for k in range(n)], Symbol("a", positive=True)
    return {x[0]: a*cos(x[0]), **{x[k]: tanh(x[k - 1]) + a/2*cos(x[k])/(k % 5 + 2) for k in range(1, n)}}


def mixture(n, letter):
    """A chain of pairs that are solved together, with explicit and linear ones between them."""
    before = a = Symbol("a", positive=True)
    equations = {}
    for k in range(n//4):
        u, v, w, y = (Symbol(f"{letter}{unknown}{k}", real=True) for unknown in "uvwy")
        equations |= {u: tanh(v)/2 + a/(k % 5 + 2), v: cos(u)/3 + before/10, w: u + v*w/10 + w/3, y: u*w + v}
        before = y
    return equations


@pytest.mark.parametrize("equations", [independent, chain, mixture])
def test_many_equations(equations, benchmark):
    """Time and statements are linear in the size where the blocks are small; lines break sooner where names are longer.

    Each system has letters of its own: SymPy remembers what it did with those of the one before, which a small one gains more from.
    """
    statements, letters = {}, iter("pqrst")

    def made(n):
        system = hx.System(equations(n, next(letters)), parameters=["a"])
        assert system.solve(a=0.5).converged
        statements[n] = ast.unparse(ast.parse(system.compile().source)).count("\n")

    few = cpu(lambda: made(100), benchmark)
    ratio = cpu(lambda: made(400))/few  # of what is quadratic 16
    benchmark.extra_info["ratio"] = round(ratio, 2)
    assert ratio <= 8 and statements[400] <= 4.1*statements[100]
