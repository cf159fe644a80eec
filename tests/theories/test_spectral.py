"""Spectral estimators: overlaps against the sheet, other label maps, AMP, the edge of the bulk, samples, bad input."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm

import hermitex as hx
from hermitex.errors import BadInput, NoClosedForm, NoValue
from hermitex.experiments.spectral_experiment import simulate
from hermitex.theories import multi_index, spectral

# (target, channel): rows of alpha, squared overlap, eigenvalue, edge; theory sheet multi_index_2, B2
SHEET = {
    ("abs(z)", None): [(1, .23069704375053196, 1, .9580801131890092), (2, .6388812781129426, .5, .3395481145557959)],
    ("z**2", "gaussian:1"): [(1, .10806297045831247, 1, .9879469605203941), (2, .3854671219439372, .5, .43176127318854635)],
    ("z1*z2", None): [(1, .13880515870072, 1, .98122732339474), (2, .43253863277490, .5, .4132409188544046)],
    ("sign(z1*z2)", None): [(6, .6617525579459433, 1/6, .10400177160966359)]}
TWELFTH = 1e-10  # the label's law of z1*z2, a table, is known to this


@pytest.mark.parametrize("asked", SHEET)
def test_overlap_eigenvalue_and_edge_of_the_sheet(asked):
    for alpha, *row in SHEET[asked]:
        found = spectral(*asked).solve(alpha=alpha)
        assert [found[n] for n in ("squared_overlap", "eigenvalue", "edge")] == pytest.approx(row, abs=TWELFTH)


def test_the_curve_is_the_label_map_of_the_exponents():
    """A thin door to the same code, and 0 up to the threshold of AMP."""
    theory, alpha = spectral("abs(z)"), [.3, .55, .6, .75, 1.25, 1.5, 3, 5]
    curve = theory.curve(alpha=alpha)
    assert np.array_equal(curve["squared_overlap"], hx.exponents("abs(z)").label_map().squared_overlap(alpha))
    assert curve["squared_overlap"] == pytest.approx([0, .020643282454, .042327566570, .111203594528, .347865266311, .457076489055,
                                                      .845409773550, .956954572491], abs=1e-11)
    assert theory.alpha_c == pytest.approx(multi_index("abs(z)").transitions().weak_recovery, rel=1e-8)
    assert curve["eigenvalue"][0] == curve["edge"][0] and curve["eigenvalue"][1] > curve["edge"][1]


def test_several_directions_have_an_overlap_each():
    found = spectral("z1**2 + 2*z2**2").solve(alpha=[0.3, 3.0])
    assert found["overlaps"].shape == (2, 2) and np.array_equal(found["squared_overlap"], found["overlaps"].max(axis=1))
    assert not found["overlaps"][0].any() and found["overlaps"][1, 0] > found["overlaps"][1, 1] > 0.3


@pytest.mark.slow
def test_directions_that_share_one_overlap_by_symmetry():
    one, two, three = "abs(z1)", "abs(z1/2 + sqrt(3)/2*z2)", "abs(z1/2 - sqrt(3)/2*z2)"
    label = f"Heaviside({one} - {two})*Heaviside({one} - {three}) + 2*Heaviside({two} - {one})*Heaviside({two} - {three})"
    shared = spectral(label).solve(alpha=[2.5, 4])
    assert shared["squared_overlap"] == pytest.approx([.525663327605, .790800423844], abs=1e-9)
    assert shared["eigenvalue"] == pytest.approx([.4, .25]) and np.isnan(shared["edge"]).all()


@pytest.mark.parametrize("alpha, sheet", [(2.0, (.246906, 5.902671, 5.638899)), (4.0, (.474310, 4.304212, 3.729094))])
def test_a_map_of_ones_own(alpha, sheet):
    """T = min(y^2, 6) on |z|, against adaptive quadrature; the sheet's values are off by 2e-4, those of nodes across the kink."""
    c = np.sqrt(6)
    tail, second = 2*norm.sf(c), 2*(c*norm.pdf(c) + norm.sf(c))

    def mean(f, at_top):
        return 2*quad(lambda z: f(z*z)*norm.pdf(z), 0, c, epsabs=1e-13, epsrel=1e-12)[0] + at_top

    def rise(x):
        return 1/alpha - mean(lambda s: (s/(x - s))**2, tail*(6/(x - 6))**2)

    def psi(x):
        return x*(1/alpha + mean(lambda s: s/(x - s), tail*6/(x - 6)))

    bulk = brentq(rise, 6 + 1e-2, 100)
    x = brentq(lambda x: mean(lambda s: s*(s - 1)/(x - s), 6*(second - tail)/(x - 6)) - 1/alpha, bulk, 100, xtol=1e-13)
    R = rise(x)/(rise(x) + mean(lambda s: s*(s/(x - s))**2, second*(6/(x - 6))**2))
    solved = spectral("abs(z)", T="min(y**2, 6)").solve(alpha=alpha)
    found = [solved[n] for n in ("squared_overlap", "eigenvalue", "edge")]
    assert found == pytest.approx([R, psi(x), psi(bulk)], rel=1e-9) and found == pytest.approx(sheet, abs=3e-4)
    assert solved["squared_overlap"] < spectral("abs(z)").solve(alpha=alpha)["squared_overlap"]


@pytest.mark.parametrize("T, close", [("1 - 1/y**2 + 0*y", 1e-9), ("1 - 1/(y**2 + 1/10)", None), ("y**2/(1 + y**2)", None)])
def test_no_other_map_is_better(T, close):
    """The general equations at T* give the overlap of the optimal one; at others they give less."""
    best = spectral("abs(z)").solve(alpha=[.75, 1, 2, 5])["squared_overlap"]
    own = spectral("abs(z)", T=T)
    if close:
        from hermitex.theories.spectral import _outlier

        labels, p, m = own._broken
        near = labels > 1e-6  # T* falls to -inf at y = 0, where s m stays finite and the mass is 1e-6
        found = [_outlier(1 - 1/m[near], m[near], p[near], a)[0] for a in (.75, 1, 2, 5)]
        assert found == pytest.approx(best, abs=2e-6)
    else:
        found = own.solve(alpha=[.75, 1, 2, 5])["squared_overlap"]
        assert np.all(found < best) and found[-1] > 0.4


def test_amp_is_never_worse_and_stands_beside_it_in_the_picture():
    theory, alpha = spectral("z**2", "gaussian:1"), [0.6, 1.0, 2.0, 4.0]
    found = theory.solve(alpha=alpha)["squared_overlap"]
    assert np.all(theory.amp(alpha) > found - 1e-9)
    ax = theory.plot(alpha=alpha)
    assert [t.get_text() for t in ax.get_legend().get_texts()][:2] == ["spectral, $T^*$", "Bayes-AMP"]
    assert ax.lines[1].get_ydata() == pytest.approx(multi_index("z**2", "gaussian:1").curve(alpha)["M11"], abs=1e-12)


def test_labels_that_say_nothing():
    for target in ("sign(z)", "sign(z1*z2*z3)"):
        found = spectral(target).solve(alpha=9)
        assert found["squared_overlap"] == found["eigenvalue"] == 0


@pytest.mark.parametrize("ask, kind, word", [
    (lambda: spectral("z1*z2", T="y"), BadInput, "one direction"), (lambda: spectral("abs(z)", T="1"), BadInput, "constant"),
    (lambda: spectral("abs(z)", T="-y").solve(alpha=2), BadInput, "positive at some"),
    (lambda: spectral("abs(z)").solve(alpha=-1), BadInput, "alpha"), (lambda: spectral("abs(z)").solve(), NoValue, "alpha"),
    (lambda: spectral("2").solve(alpha=1), BadInput, "does not depend"),
    (lambda: spectral("sin(z1*z2 + z1 + z2**3)").solve(alpha=1), NoClosedForm, "no closed form")])
def test_bad_input_is_one_line(ask, kind, word):
    with pytest.raises(kind, match=word):
        ask()


@pytest.mark.slow
@pytest.mark.parametrize("asked, T, alpha", [
    (("abs(z)",), None, 2), (("z**2", "gaussian:1"), None, 3), (("sign(z1*z2)",), None, 6), (("z**2 - 1", "random_sign"), None, 3),
    (("abs(z)",), "min(y**2, 6)", 4)])
def test_estimators_in_many_dimensions(asked, T, alpha):
    theory = spectral(*asked, T=T)
    found, wanted = simulate(theory, [alpha], dimension=500, seeds=range(40, 56)), theory.solve(alpha=alpha)
    for name in ("squared_overlap", "eigenvalue"):
        assert abs(found[name][0] - wanted[name]) < 3*found.standard_error[name][0]
    away = spectral(*asked).solve(alpha=alpha/2)["squared_overlap"]
    assert abs(found["squared_overlap"][0] - away) > 5*found.standard_error["squared_overlap"][0]
