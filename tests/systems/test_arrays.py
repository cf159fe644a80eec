"""Sums over arrays that come with the numbers: sum_k f(eta_k, beta_k), one axis of the generated code.

The same quantity is computed three ways: by the compiled sum, by the sum written out in SymPy, and by NumPy of this file.
"""

from __future__ import annotations

import json
import pickle
import runpy
import subprocess
import sys
import tracemalloc

import mpmath
import numpy as np
import pytest
from sympy import Abs, Eq, Idx, IndexedBase, Max, Rational, Sum, Symbol, exp, log, oo, sqrt, symbols, tanh
from sympy.stats import Poisson

import hermitex as hx
from hermitex.errors import BadInput, HermitexError, NotConverged, UnknownName
from hermitex.symbolic.indexed_sums import read_sums, with_entries
from hermitex.symbols import z

eta, beta, mu, A = (IndexedBase(n) for n in ("eta", "beta", "mu", "A"))
N, M = symbols("N M", integer=True)
k, j = Idx("k", N), Idx("j", M)
n, lam, nu, q, x = symbols("n lam nu q x", positive=True)
ROOT = Sum(eta[k]/(eta[k] + nu), k)


def spectrum(size: int, power: float = 1.5) -> np.ndarray:
    return np.arange(1, size + 1.0)**-power


def equivalent() -> hx.System:
    """The deterministic equivalent of ridge regression with n samples: n = sum_k eta_k/(eta_k + nu) + lam/nu."""
    return hx.System({nu: (nu*ROOT + lam)/n}, observables={"df2": Sum((eta[k]/(eta[k] + nu))**2, k),
                                                           "bias": nu**2*Sum(eta[k]*beta[k]**2/(eta[k] + nu)**2, k)})


# -- three routes ------------------------------------------------------------------------------------------------------
def _draw(seed: int) -> tuple[object, dict[str, object]]:
    """A random summand over entries, places, lengths and averages, with its numbers."""
    rng = np.random.default_rng(seed)
    pieces = [eta[k]/(eta[k] + x), beta[k]**2*exp(-x*eta[k]), log(1 + x*eta[k]), (k + 1)*beta[k]/(x + k), tanh(beta[k]*x),
              hx.E(tanh(beta[k] + x*z)**2, z), eta[k]*hx.E(exp(-x*(z + beta[k])**2/5), z), sqrt(eta[k] + x), beta[k]*x]
    outer = [lambda s: s, lambda s: s/N, lambda s: exp(-s**2/100), lambda s: hx.E(tanh(z*s/9), z) + s]
    chosen = rng.choice(len(pieces), 2)
    body = pieces[chosen[0]]*rng.integers(1, 4) + pieces[chosen[1]]
    if rng.random() < 0.4:
        body = body*A[k, j]/(1 + eta[k] + A[k, j]*x)
        total = Sum(body, k, j) if rng.random() < 0.5 else Sum(Sum(body, k), j)
    else:
        total = Sum(body, k)
    expr = outer[rng.integers(len(outer))](total)
    size, width = (int(v) for v in rng.integers(1, 6, 2))
    numbers = {"eta": rng.uniform(0.2, 2, size).round(2).tolist(), "beta": rng.normal(size=size).round(2).tolist(),
               "A": rng.uniform(0, 1, (size, width)).round(2).tolist(), "x": round(float(rng.uniform(0.3, 1.5)), 2)}
    return expr, numbers


@pytest.mark.parametrize("seed", range(8))
def test_the_compiled_sum_is_the_sum_written_out(seed: int) -> None:
    expr, numbers = _draw(seed)
    kernel = hx.compile(expr)
    got = kernel(**{n: v for n, v in numbers.items() if n in kernel.parameters})
    written = with_entries(read_sums(expr), {n: v for n, v in numbers.items() if isinstance(v, list)})
    expected = hx.compile(written)(**({"x": numbers["x"]} if written.free_symbols else {}))
    assert got == pytest.approx(expected, rel=2e-12, abs=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 180))
def test_more_compiled_sums_are_the_sums_written_out(seed: int) -> None:
    test_the_compiled_sum_is_the_sum_written_out(seed)


def test_a_planted_error_in_the_summand_is_seen() -> None:
    for seed in range(4):
        expr, numbers = _draw(seed)
        numbers = {n: v for n, v in numbers.items() if n in hx.compile(expr).parameters}
        other = hx.compile(expr.xreplace({eta[k]: eta[k]*(1 + x/10**6), beta[k]: beta[k]*(1 + x/10**6)}))
        assert other(**numbers) != pytest.approx(hx.compile(expr)(**numbers), rel=2e-12, abs=1e-13)


def test_a_kink_that_moves_with_the_entry_is_resolved() -> None:
    kernel = hx.compile(Sum(eta[k]*hx.E(Abs(tanh(mu[k] + x*z)), z), k))
    from scipy.integrate import quad

    weights, shifts = np.array([0.3, 1.1, 0.7]), np.array([-0.4, 0.9, 0.2])

    def one(m: float, t: float) -> float:
        f = lambda u: abs(np.tanh(m + t*u))*np.exp(-u*u/2)/np.sqrt(2*np.pi)  # noqa: E731
        return quad(f, -12, 12, points=[-m/t], epsabs=1e-14, epsrel=1e-13)[0]

    points = np.array([0.5, 1.0, 2.0])
    expected = [sum(w*one(m, t) for w, m in zip(weights, shifts, strict=True)) for t in points]
    assert kernel(eta=weights, mu=shifts, x=points) == pytest.approx(expected, rel=1e-12)


def test_sums_stand_in_parameters_of_averages_and_vary_along_their_variables() -> None:
    e = np.array([1.0, 0.5, 0.2])
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights/weights.sum()
    kernel = hx.compile(hx.E(1/Sum(eta[k]/(eta[k] + x + z**2/20), k), z))
    expected = (1/(e/(e + 0.7 + nodes[:, None]**2/20)).sum(axis=1)) @ weights
    assert kernel(eta=e, x=0.7) == pytest.approx(expected, rel=1e-11)
    relu = hx.compile(hx.E(Max(0, sqrt(Sum(eta[k]*x, k))*z + Sum(eta[k], k)), z))
    m, s = e.sum(), np.sqrt(e.sum()*0.7)
    from scipy.stats import norm

    assert relu(eta=e, x=0.7) == pytest.approx(m*norm.cdf(m/s) + s*norm.pdf(m/s), rel=1e-12)


def test_places_count_from_where_the_sum_begins() -> None:
    i = Symbol("i", integer=True)
    assert hx.compile(Sum(eta[k]*k, k))(eta=[2.0, 3.0, 5.0]) == 13
    assert hx.compile(Sum(eta[i]*i, (i, 1, N)))(eta=[2.0, 3.0, 5.0]) == 23
    assert hx.compile(Sum(eta[k], (k, 0, N - 1))*N)(eta=[2.0, 3.0, 5.0]) == 30


def test_one_index_may_stand_twice() -> None:
    """A[k, k] is the diagonal; it was an array that did not fit."""
    a, b = np.arange(9.0).reshape(3, 3) + 1, np.array([1.0, -2.0, 3.0])
    assert hx.compile(Sum(A[k, k], k))(A=a) == a.trace()
    assert hx.compile(Sum(beta[k]*A[k, k]*A[k, j], k, j))(A=a, beta=b) == b @ (a.diagonal()[:, None]*a).sum(1)
    with pytest.raises(BadInput, match="2 and 3 entries"):
        hx.compile(Sum(A[k, k], k))(A=a[:2])


# -- systems -----------------------------------------------------------------------------------------------------------
def test_the_equivalent_of_ridge_regression_holds_with_numbers_put_in() -> None:
    e, b = spectrum(1000), spectrum(1000, 0.4)
    found = equivalent().solve(n=np.array([5.0, 50.0, 400.0]), lam=0.01, eta=e, beta=b)
    v = found["nu"][:, None]
    assert (e/(e + v)).sum(1) + 0.01/v[:, 0] == pytest.approx([5, 50, 400], rel=1e-11)
    assert found["df2"] == pytest.approx(((e/(e + v))**2).sum(1), rel=1e-11)
    assert found["bias"] == pytest.approx(v[:, 0]**2*(e*b**2/(e + v)**2).sum(1), rel=1e-11)
    implicit = hx.System({nu: Eq(n, ROOT + lam/nu)}).solve(n=50, lam=0.01, eta=e, start={nu: 0.1})
    assert implicit["nu"] == pytest.approx(found["nu"][1], rel=1e-11)


def test_jacobians_go_through_sums_and_the_averages_in_them() -> None:
    """A gap equation with quenched fields: Newton's few steps need the exact derivative under the sum."""
    gap = hx.System({q: Sum(beta[k]*hx.E(tanh(mu[k] + sqrt(x*q)*z)**2, z), k)/N})
    found = gap.solve(x=1.3, mu=[0.2, -0.5, 1.0], beta=[1.0, 0.8, 0.9])
    assert found.converged and found.iterations < 12
    nodes, weights = np.polynomial.hermite_e.hermegauss(150)
    weights, v = weights/weights.sum(), found["q"]
    rows = np.tanh(np.array([0.2, -0.5, 1.0])[:, None] + np.sqrt(1.3*v)*nodes)**2 @ weights
    assert (rows*[1.0, 0.8, 0.9]).mean() == pytest.approx(v, rel=1e-9)
    written = with_entries(read_sums(gap.equations[q]), {"mu": [0.2, -0.5, 1.0], "beta": [1.0, 0.8, 0.9]})
    assert hx.System({q: written}).solve(x=1.3)["q"] == pytest.approx(v, rel=1e-11)


@pytest.mark.parametrize("seed", range(3))
def test_systems_with_sums_are_those_written_out(seed: int) -> None:
    """The summands of the generator around an unknown, with an observable of another one."""
    expr, numbers = _draw(seed)
    other = _draw(seed + 50)[0]
    rows = {n: v for n, v in numbers.items() if isinstance(v, list)}
    right = Rational(1, 2) + tanh(expr.xreplace({x: q*lam}))/20
    seen = other.xreplace({x: q + lam})
    named = hx.System({q: right}, observables={"seen": seen})
    put = lambda e: with_entries(read_sums(e), rows)  # noqa: E731
    plain = hx.System({q: put(right)}, observables={"seen": put(seen)}, parameters=[lam])
    used = {n: v for n, v in rows.items() if n in {a.name for a in named.arrays}}
    a, b = named.solve(lam=np.array([0.7, 1.2]), **used), plain.solve(lam=np.array([0.7, 1.2]))
    assert a["q"] == pytest.approx(b["q"], rel=1e-10) and a["seen"] == pytest.approx(b["seen"], rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(211, 225))
def test_more_systems_with_sums_are_those_written_out(seed: int) -> None:
    test_systems_with_sums_are_those_written_out(seed)


def test_where_names_may_speak_of_the_entry() -> None:
    g, h = symbols("g h", real=True)
    named = hx.System({nu: (nu*Sum(g, k) + lam)/n}, where={g: h/(h + nu), h: eta[k]*2},
                      observables={"mean": Sum(hx.E(tanh(h*z)**2, z)*g, k)/N})
    plain = hx.System({nu: (nu*Sum(2*eta[k]/(2*eta[k] + nu), k) + lam)/n},
                      observables={"mean": Sum(hx.E(tanh(2*eta[k]*z)**2, z)*2*eta[k]/(2*eta[k] + nu), k)/N})
    numbers = {"n": 2, "lam": 0.1, "eta": [1.0, 2.0, 0.5]}
    a, b = named.solve(numbers), plain.solve(numbers)
    assert [a["nu"], a["mean"]] == pytest.approx([b["nu"], b["mean"]], rel=1e-11)
    with pytest.raises(BadInput, match="outside of every sum"):
        hx.System({nu: g*nu}, where={g: eta[k]})
    with pytest.raises(BadInput, match=r"eta\[0\]: one entry alone is a parameter of its own; give it a name, Symbol\('eta0'\)"):
        hx.System({nu: nu*eta[0]})


def test_a_million_modes_take_little_memory() -> None:
    e = spectrum(10**6)
    system = hx.System({nu: (nu*ROOT + lam)/n})
    tracemalloc.start()
    try:
        found = system.solve(n=np.geomspace(20, 500, 4), lam=0.01, eta=e)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 60e6  # 4 points times a million would be 32 MB for each of a dozen temporaries
    assert (e/(e + found["nu"][2])).sum() + 0.01/found["nu"][2] == pytest.approx(np.geomspace(20, 500, 4)[2], rel=1e-10)


def test_one_sum_costs_no_more_to_compile_for_more_entries() -> None:
    assert len(equivalent().compile().source) < 9000


def test_a_system_with_arrays_is_swept_pickled_and_branches() -> None:
    numbers = {"n": 2, "eta": spectrum(40), "beta": spectrum(40)}
    table = hx.sweep(equivalent(), {"lam": [0.1, 0.2]}, parameters=numbers)
    name = next(n for n, v in numbers.items() if np.ndim(v))
    with pytest.raises(BadInput, match="give it whole in parameters="):
        hx.sweep(equivalent(), {name: [0.1, 0.2]}, parameters={n: v for n, v in numbers.items() if n != name})
    alone = [equivalent().solve(lam=v, **numbers)["nu"] for v in (0.1, 0.2)]
    assert table["nu"] == pytest.approx(alone, rel=1e-11)
    (only,) = [s for s in equivalent().branches(lam=0.1, **numbers) if s["nu"] > 1e-8]
    assert only["nu"] == pytest.approx(alone[0], rel=1e-10)
    kernel = pickle.loads(pickle.dumps(hx.compile(ROOT)))
    assert kernel(nu=1.0, eta=[1.0, 3.0]) == 1.25


def test_numbers_for_arrays_reach_sums_without_one_and_leave_those_over_laws() -> None:
    """The check of a file ended where the array of an index stood in another equation, or a law had countably many values."""
    places, law = read_sums(Sum((k + x)**-2, k)), hx.E(exp(-x*Poisson("p", 2)**2))
    assert with_entries(places, {"eta": [1, 2]}, [read_sums(ROOT)]) == x**-2 + (1 + x)**-2
    assert with_entries(law + read_sums(Sum(eta[k], k)), {"eta": [1, 2]}) == law + 3


@pytest.mark.slow
def test_an_exported_file_takes_arrays(tmp_path) -> None:
    done = equivalent().export(tmp_path/"ridge.py")
    assert done.checked.startswith("mpmath") and "1 of 1" in done.checked
    np.save(tmp_path/"eta.npy", spectrum(500))
    np.save(tmp_path/"beta.npy", spectrum(500))
    told = subprocess.run([sys.executable, "-I", "ridge.py", "--n", "3,30", "--lam", "0.1", "--eta", "eta.npy", "--beta",
                              "beta.npy",
                           "--json"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    found = equivalent().solve(n=np.array([3.0, 30.0]), lam=0.1, eta=spectrum(500), beta=spectrum(500))
    for name in ("nu", "df2", "bias"):
        assert json.loads(told)[name] == pytest.approx(found[name].tolist(), rel=1e-12)


def test_a_file_is_not_written_for_arrays_that_do_not_fit(tmp_path) -> None:
    """Only their first entries stand in the self-test, and those of 99 and of 100 are as many."""
    numbers = {"n": 3.0, "lam": 0.1, "eta": spectrum(100), "beta": spectrum(99)}
    with pytest.raises(BadInput, match="export: the arrays"):
        equivalent().export(tmp_path/"ridge.py", reference=numbers)
    assert not list(tmp_path.iterdir())


def test_check_draws_short_arrays() -> None:
    entries = Sum(eta[k]/(eta[k] + nu), k)
    same = hx.check(entries, N - nu*Sum(1/(eta[k] + nu), k))
    assert same and same.status == "agrees" and "entries" in same.how
    other = hx.check(entries, Sum(eta[k]/(eta[k] + nu*(1 + nu/10**9)), k))
    assert not other and other.status == "fails"
    assert hx.check(hx.E(Sum(beta[k]*z, k)**2, z), Sum(beta[k], k)**2)
    assert not hx.check(hx.E(Sum(beta[k]*z, k)**2, z), Sum(beta[k]**2, k))  # right for one entry only


# -- texts -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("text", ["Sum(eta[k]/(eta[k] + nu), k)", "Sum(A[i, j]*Sum(b[k]*E(tanh(b[k]*z)**2, z), k), i, j)/Sum(1, k)",
                                  "E(tanh(z*Sum(eta[k]*k, (k, 1, N))))"])
def test_texts_read_back(text: str) -> None:
    from hermitex.symbolic.parsing import to_text

    expr = hx.parse(text, symbols="nu>0")
    assert hx.parse(to_text(expr), symbols="nu>0") == expr


@pytest.mark.parametrize("text", ["eta[k]", "Sum(eta[k])", "Sum(eta[k + 1], k)", "Sum(eta[k], 3)", "Sum(z[k], k)",
                                  "Sum(k[k], k)", "z[1]",
                                  "Sum(eta[0], k)", "Sum(tanh[k], k)", "Sum(eta[k], k, k)", "Sum(eta[k][k], k)", "[z]", "Sum",
                                  "Sum(eta[k], (k, 2, N))", "Sum(eta[__import__], k)", "Sum(eta[k], k, axis=0)"])
def test_what_is_no_sum_over_an_array_gets_one_line(text: str) -> None:
    with pytest.raises(HermitexError) as told:
        hx.parse(text)
    assert "\n" not in str(told.value)


# -- bad input ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("changed", "words"), [
    ({"eta": [1.0, 2.0]}, "2 and 3 entries"), ({"eta": None}, "eta has no value"), ({"eta": 2.0}, "1 index"), ({"eta": []},
    "empty"),
    ({"eta": [1.0, np.nan, 2.0]}, "finite"), ({"eta": ["a", "b", "c"]}, "not an array"), ({"eta": [[1.0, 2.0, 3.0]]},
    "1 dimension"),
    ({"eta": np.array([1 + 1j, 2.0, 3.0])}, "not an array"),
    ({"mu": [1.0]}, "unknown parameter"), ({"lam": None}, "lam has no value")])
def test_arrays_that_do_not_fit_get_one_line(changed: dict, words: str) -> None:
    numbers = {"n": 2, "lam": 0.1, "eta": [1.0, 2.0, 3.0], "beta": [1.0, 1.0, 1.0], **changed}
    with pytest.raises((BadInput, UnknownName), match=words) as told:
        equivalent().solve({key: v for key, v in numbers.items() if v is not None})
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("make", [
    lambda: hx.System({q: eta[k]}), lambda: hx.System({q: Sum(eta[k], k)*Symbol("eta")}), lambda: hx.System({q: Sum(eta[k + 1],
    k)}),
    lambda: hx.System({q: Sum(eta[k], (k, 0, 4))}), lambda: hx.System({q: Sum(eta[k]*eta[j], k)}), lambda: hx.compile(eta[k]),
    lambda: hx.System({q: Sum(eta[k], k) + Sum(eta[j]*A[j, k]*eta[k, j], j, k)}), lambda: equivalent().subs(eta=3),
    lambda: hx.compile(Sum(eta[k], k) + Sum(eta[Idx("k", (1, N))], Idx("k", (1, N))))])
def test_sums_that_mean_nothing_get_one_line(make) -> None:
    with pytest.raises(BadInput) as told:
        make()
    assert "\n" not in str(told.value)


def test_a_source_that_sums_something_else_is_not_loaded() -> None:
    from hermitex.kernels.whitelist import check_source

    source = hx.compile(ROOT).source
    assert check_source(source)
    for old, new in (("summed(sum_1", "summed(open"), (", quad, eta_k", ", s, eta_k"),
                     ("def sum_1(quad, block_size", "def sum_1(s, block_size"),
                     ("return (E1,)", "return open(E1)"), ("step, done = max(1", "step, done = max(2")):
        assert old in source
        with pytest.raises(BadInput):
            check_source(source.replace(old, new, 1))


def test_a_sum_over_given_numbers_is_one_over_an_array():
    """Sum(.., (n, 1, 10000)), as SymPy's or as a text, is added up in one array: the numbers of mpmath, and of the array."""
    V, lamda, n = Symbol("V", positive=True), Symbol("lamda", positive=True), Symbol("n", integer=True)
    system = hx.System({V: lamda + Sum(1/(n*V + 1)**2, (n, 1, 10000))/10000}, observables={"tail": Sum(V/(n + V)**2, (n, 3, 2000))})
    found = system.solve(lamda=[0.1, 0.2])
    i, numbers = Idx("i", N), np.arange(1, 10001)
    given = hx.System({V: lamda + Sum((V*eta[i] + 1)**(-2), i)/10000}).solve(lamda=[0.1, 0.2], eta=numbers)["V"]
    text = hx.System({"V": "lamda + Sum(1/(n*V + 1)**2, (n, 1, 10000))/10000"}).solve(lamda=[0.1, 0.2])["V"]
    np.testing.assert_allclose(found["V"], given, rtol=1e-14)
    np.testing.assert_allclose(text, given, rtol=1e-14)
    v = found["V"][0]
    assert found["tail"][0] == pytest.approx(float(mpmath.fsum(v/(k + mpmath.mpf(v))**2 for k in range(3, 2001))), rel=1e-13)


def test_decimal_numbers_in_the_terms_of_a_sum():
    x, k = Symbol("x", positive=True), Symbol("k", integer=True)
    found = hx.System({x: Sum(0.5/(k**2 + 1.5*x), (k, 1, 100))}).solve()["x"]
    assert found == pytest.approx(sum(0.5/(j**2 + 1.5*found) for j in range(1, 101)), rel=1e-13)


def test_sums_that_python_adds_up_are_sums():
    """The numbers of the terms are formulas of one; a first and a last term that look otherwise are among them."""
    x, w, n = Symbol("x", real=True), Symbol("w", real=True), Symbol("n", integer=True, nonnegative=True)

    def read(total):
        return hx.System({x: total}).equations[x]

    for term, ends in ((lambda k: hx.E(tanh(x*z*k/30)**2, z), (1, 30)), (lambda k: hx.E(tanh(w + x*z*k), z)/k**2, (1, 12)),
                       (lambda k: w**k*hx.E(tanh(x + z*k), z), (1, 9)), (lambda k: (-1)**k*hx.E(tanh(x + z*k), z)/3, (1, 9))):
        assert read(sum(term(k) for k in range(ends[0], ends[1] + 1))) == read(Sum(term(n), (n, *ends)))
    apart = sum(w**k*hx.E(tanh(x + z*(k**3 % 11)), z) for k in range(9))
    assert not read(apart).has(Sum) and read(apart) == apart


def test_a_sum_over_given_numbers_in_a_file(tmp_path):
    """The file adds them up, too, and passes its test; so does a sum on and on whose terms fall fast."""
    q, a, k = Symbol("q", positive=True), Symbol("a", positive=True), Symbol("k", integer=True)
    system = hx.System({q: a*Sum(1/(k**2*(1 + q*k)), (k, 1, 5000))/2 + Sum(exp(-k*q)/(k**3 + 1), (k, 1, oo))})
    system.export(tmp_path/"added.py", a=1)
    made = runpy.run_path(str(tmp_path/"added.py"))
    assert made["solve"](2.0)["q"] == pytest.approx(system.solve(a=2)["q"], rel=1e-13)
    with mpmath.workdps(20):
        at = mpmath.findroot(lambda x: x - mpmath.fsum(1/(j**2*(1 + x*j)) for j in map(mpmath.mpf, range(1, 5001)))
                             - mpmath.nsum(lambda j: mpmath.exp(-j*x)/(j**3 + 1), [1, mpmath.inf]), 0.8)
    assert system.solve(a=2)["q"] == pytest.approx(float(at), rel=1e-12)


def test_a_sum_that_cannot_be_added_up_is_refused():
    """1/(k + q) has no sum, and what falls as 1/(k log(k)^2) has no digits after 2^240 terms."""
    q, k = Symbol("q", positive=True), Symbol("k", integer=True)
    with pytest.raises((BadInput, NotConverged)):
        hx.System({"x": Sum(1/(k + q), (k, 1, oo))}).solve(q=1)
    with pytest.raises(NotConverged, match="error"):
        hx.System({"x": Sum(1/((k + q)*log(k + q)**2), (k, 1, oo))}).solve(q=1)
    found = hx.System({"x": Sum(1/(k + q)**Rational(3, 2)/(1 + log(k + q)), (k, 1, oo))}).solve(q=1)
    with mpmath.workdps(20):
        half = mpmath.mpf(3)/2
        rest = mpmath.quad(lambda u: mpmath.exp(-u/2)/(1 + u), [mpmath.log(10_000 + mpmath.mpf(1)/2), 12, 20, 40, 80, 160])
        total = mpmath.fsum(1/(j**half*(1 + mpmath.log(j))) for j in map(mpmath.mpf, range(2, 10_001))) + rest
    assert found["x"] == pytest.approx(float(total), rel=1e-12)


def test_a_sum_of_numbers_comes_back_as_text():
    k, q = Symbol("k", integer=True), Symbol("q", positive=True)
    system = hx.System({q: Sum(1/(k + q)**2, (k, 2, 1500))})
    again = hx.System(system.to_dict()["equations"], symbols="q>0")
    assert again.equations[q] == system.equations[q] and str(system.equations[q]) == "Sum((k + q)**(-2), (k, 2, 1500))"


@pytest.mark.parametrize(("term", "exact"), [
    (lambda k, q: 1/(k**2 + q), lambda q: (mpmath.pi*mpmath.sqrt(q)*mpmath.coth(mpmath.pi*mpmath.sqrt(q)) - 1)/(2*q)),
    (lambda k, q: 1/(k**2*(1 + q/k)), lambda q: mpmath.harmonic(q)/q),
    (lambda k, q: k**Rational(-13, 10)/(1 + q), lambda q: mpmath.zeta("1.3")/(1 + q)),
    (lambda k, q: log(1 + q/k**2), lambda q: mpmath.log(mpmath.sinh(mpmath.pi*mpmath.sqrt(q))/(mpmath.pi*mpmath.sqrt(q)))),
])
def test_an_endless_power_law_sum(term, exact):
    """To the digits of doubles in a session, by mpmath's closed forms; what falls more slowly says how far it is off."""
    q, k = Symbol("q", positive=True), Symbol("k", integer=True, positive=True)
    found = hx.System({q: Rational(1, 2) + Sum(term(k, q), (k, 1, oo))/10}).solve()
    left = 0.5 + exact(mpmath.mpf(found["q"]))/10 - found["q"]
    assert abs(left) < 1e-14 and found.error < 1e-12


def test_an_endless_power_law_sum_in_a_file(tmp_path):
    k, a = Symbol("k", integer=True, positive=True), Symbol("a", positive=True)
    done = hx.System({q: a + Sum(1/(k**2 + q), (k, 1, oo))/10}).export(tmp_path/"sum.py")
    assert done.deviation < 1e-13
