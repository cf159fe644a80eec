"""Formulas -> statements: closed forms first, shared work once, names kept, radicals positive."""

from math import prod

import numpy as np
import pytest
from mpmath import mp
from sympy import Abs, Heaviside, Max, Piecewise, Rational, Symbol, erfc, exp, floor, frac, log, sign, sin, sqrt, symbols, tanh
from sympy.stats import Poisson

import hermitex as hx
from hermitex import E
from hermitex.errors import BadInput, Divergent, NotConverged
from hermitex.kernels.closed_form_choice import exact_or_none, may_have_closed_form
from hermitex.kernels.correlated_fields import correlated
from hermitex.kernels.lowering import lower
from hermitex.kernels.source import Writer, load
from hermitex.symbols import kappa, z, z1, z2, z3

a, b = symbols("a b", real=True)


def value(formula, **numbers):
    from hermitex import compile

    return compile(formula)(**numbers)


def test_closed_forms_leave_no_axis():
    assert lower([E(Abs(a*z + b), z)], taken=["a", "b"]).axes == ()


def test_equal_integrands_are_averaged_once():
    lowered = lower([E(tanh(a*z)**2, z), 3*E(tanh(a*z)**2, z) + E(tanh(a*z)**2*z, z)], taken=["a"])
    assert sum(bool(s.axes) for s in lowered.statements) == 2


def test_an_inner_expectation_is_a_table_of_its_own():
    lowered = lower([E(tanh(E(tanh(z + kappa), z))*a, kappa)], taken=["a"])
    inner = next(s for s in lowered.statements if s.axes and s.axes[0].name == "z")
    assert inner.target in lowered.along_axes() and {a.name for a in lowered.axes} == {"z", "kappa"}


def test_each_statement_reads_only_what_stands_before_it():
    lowered = lower([E(tanh(E(tanh(z + kappa), z))**2*a, kappa) + sqrt(a), E(kappa*tanh(kappa), kappa)], taken=["a"])
    done = {a, *(axis.symbol for axis in lowered.axes)}
    for s in lowered.statements:
        assert s.needs <= done
        done.add(s.target)


def test_a_radical_of_unknown_sign_lets_the_exact_engine_work():
    assert lower([E(Abs(a*kappa + sqrt(1 - a**2)*z), z)], taken=["a", "kappa"]).axes == ()


def test_divergence_is_let_through_and_what_is_hopeless_is_not_tried():
    with pytest.raises(Divergent):
        exact_or_none(E(exp(z**2), z))
    assert exact_or_none(E(tanh(z)**2, z)) is None
    assert not may_have_closed_form(tanh(z), {z}) and may_have_closed_form(tanh(a)*z, {z})
    quantile = log(erfc(z1)/2)
    assert may_have_closed_form(quantile*z2**2, {z1, z2}) and not may_have_closed_form(Max(0, z2 - quantile), {z1, z2})


def test_names_keep_their_place_in_the_source():
    Q = Symbol("Q", real=True)
    lowered = lower([E(tanh(kappa)**2/(1 + a*kappa**2), kappa)], names={Q: 1/(1 + a*kappa**2)}, taken=["a"])
    assert Q in {s.target for s in lowered.statements}
    writer = Writer(lowered, {a})
    writer.function("kernel", list(lowered.statements), {"value": lowered.outputs[0]})
    assert "Q = 1/(1 + " in writer.source() and "E(Q*tanh(kappa)**2, kappa)" in writer.source()
    assert callable(load(writer.source())["kernel"])


def test_correlated_variables_become_independent_ones():
    direct = value(E(tanh(z1)*tanh(z2), z1, z2, cov={(z1, z2): a}), a=0.6)
    by_hand = value(E(tanh(z1)*tanh(a*z1 + sqrt(1 - a**2)*z2), z1, z2), a=0.6)
    assert direct == pytest.approx(by_hand, rel=1e-12)


def test_a_product_of_numbers_is_not_taken_at_every_node():
    """Temporaries that vary along fewer axes stay where they are."""
    lowered = lower([E(tanh(a*b*kappa)*kappa, kappa)*a*b], taken=["a", "b"])
    writer = Writer(lowered, {a, b})
    writer.function("kernel", list(lowered.statements), {"value": lowered.outputs[0]})
    text = writer.source()
    code = "\n".join(line.split("#")[0] for line in text.splitlines())
    assert code.count("a*b") == 1 and np.isfinite(value(E(tanh(a*b*kappa)*kappa, kappa)*a*b, a=1.0, b=0.5))


ROOTS = [Piecewise((sqrt(a), a > 0), (0, True)), Piecewise((sqrt(a + 2), a > -2), (0, True))]


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize(("average", "truth"), [(E(z**2*sign(a*z**2 + z**4), z), 0.6025039138024018), (E(Max(a*Abs(z), 0), z), 0.0),
                                                (E(Piecewise((Abs(z), a > 0), (3*Abs(z), True)), z), 3*np.sqrt(2/np.pi))])
def test_a_root_elsewhere_tells_nothing_of_a_sign(root, average, truth):
    """A square root under a condition, or in another formula, does not make its radicand positive."""
    assert value(root + average, a=-1.0) == pytest.approx(truth + value(root, a=-1.0), abs=1e-12)


def test_a_root_that_drops_out_leaves_its_radicand_as_it_was():
    assert value(E(sqrt(a)*z + Abs(z)*sign(a), z), a=-1.0) != pytest.approx(np.sqrt(2/np.pi))


def test_products_of_correlated_fields_are_conditioned():
    """Four fields of which two are one are three: the pivot that vanishes costs no digits; another covariance is another number."""
    fields = symbols("u1:5", real=True)
    C = {(i, j): Symbol(f"c{i}{j}", real=True, positive=i == j or None) for i in range(4) for j in range(i, 4)}

    def averaged(*functions):
        cov = {(fields[i], fields[j]): c for (i, j), c in C.items() if j < len(functions)}
        return hx.compile(E(prod(f(u) for f, u in zip(functions, fields, strict=False)), *fields[:len(functions)], cov=cov))

    def slope(u):
        return 1 - tanh(u)**2

    four, three = averaged(slope, slope, tanh, tanh), averaged(slope, slope, lambda u: tanh(u)**2)
    numbers = {"c00": 1.2, "c01": 0.5, "c02": 0.3, "c11": 0.8, "c12": 0.2, "c22": 1.0}
    expected = three(**numbers)
    assert four(**numbers, c03=0.3, c13=0.2, c23=1.0, c33=1.0) == pytest.approx(expected, rel=1e-11)
    assert abs(four(**numbers, c03=0.3, c13=0.2, c23=0.9, c33=1.0) - expected) > 0.01
    assert "conditioned(" in four.source and four.error < 1e-11


def test_fields_that_are_almost_one_and_what_is_no_covariance():
    """u, u + 1e-7 v and v: where the pivot was called 0, so was the average, b E[tanh (tanh^2)'] E[tanh'] at b = 1e-7."""
    body, (s, b) = tanh(z1)*tanh(z2)**2*tanh(z3), symbols("s b")
    kernel = hx.compile(E(body, z1, z2, z3, cov={(z1, z2): 1, (z2, z2): s, (z2, z3): b}), tolerance=1e-7)
    slope = 1 - tanh(z)**2
    expected = 1e-7*hx.compile(2*E(tanh(z)**2*slope, z)*E(slope, z))()
    assert kernel(s=1 + 1e-14, b=1e-7) == pytest.approx(expected, rel=1e-7)
    with pytest.raises(NotConverged, match="no finite value"):
        kernel(s=1, b=0.5)


def test_fields_of_a_function_that_jumps_are_not_conditioned():
    """All that the package knows as a switch: frac was taken for smooth."""
    law = {(z1, z2): Rational(1, 2), (z2, z3): Rational(1, 3)}
    assert correlated(E(sin(z1)*tanh(z2)*tanh(z3), z1, z2, z3, cov=law)) is not None
    for jump in (frac, floor, sign):
        assert correlated(E(jump(z1)*tanh(z2)*tanh(z3), z1, z2, z3, cov=law)) is None


def test_a_file_with_another_product_is_refused():
    text = """def fields_1(x, c1, c2, c3):
    def f1(u):
        return open(u)
    return conditioned((f1), (c1, c2, c3), x)
"""
    for source in (text, text.replace("open(u)", "np.tanh(u)").replace("(c1, c2, c3), x)", "(c1, c2, c3), x, open)")):
        with pytest.raises(BadInput, match="not written by this version"):
            load(source)


@pytest.mark.parametrize(("jump", "at_0"), [(sign(sqrt(b)*z)**2, 0.0), (Heaviside(sqrt(b)*z)**2, 0.25)])
def test_a_root_with_which_the_argument_of_a_jump_vanishes_is_not_positive(jump, at_0):
    """sign(sqrt(b) z)^2 was 1 at b = 0."""
    known = {0.0: at_0, 4.0: float(E(jump.subs(b, 1), z).evalf())}
    assert [value(E(jump, z), b=at) for at in known] == pytest.approx(list(known.values()), abs=1e-12)


def test_an_average_that_diverges_through_a_countable_law_is_no_kernel():
    """E exp(P z) is infinite in terms that no kernel would come to: it was 1.14."""
    with pytest.raises(Divergent):
        hx.compile(E(exp(z*Poisson("P", 2)/5)))
    with mp.workdps(30):
        known = mp.nsum(lambda n: mp.exp(-2)*mp.mpf(2)**n/mp.factorial(n)/mp.sqrt(1 + n/2), [0, mp.inf])
    assert value(E(exp(-z**2*Poisson("P", a)/4)), a=2.0) == pytest.approx(float(known), rel=1e-12)


@pytest.mark.parametrize(("text", "averages"), [
    ("(z1 + z2)*(tanh(z1) - erf(z2 + z3))", [["z1"]]),  # by three variables its 1e-12 were out of reach
    ("z1*(tanh(z1) - tanh(z1/2 + z2))", [["z1"], ["z1", "z2"]]),
    ("tanh(z1)*z1*(1 - tanh(z1 + z2)**2)", [["z1", "z2"]]),  # these three may cancel, or exist, as a whole only
    ("(tanh(z1) - tanh(z1/2 + z2))**2", [["z1", "z2"]]),
    ("(cos(z1/2) - cos(z1*z2))/z1**2", [["z1", "z2"]]),
], ids=["closed", "fewer", "small far out", "square", "pole"])
def test_a_sum_is_taken_term_by_term_where_a_term_needs_fewer_variables(text, averages):
    found = lower([hx.parse(f"E({text})")])
    assert sorted(sorted(x.name for x in s.axes) for s in found.needed(found.outputs) if s.axes) == averages


def test_terms_taken_by_themselves_add_up_to_the_average():
    known = mp.quad(lambda x: mp.npdf(x)*x*mp.tanh(x), [-mp.inf, 0, mp.inf]) - 2/mp.sqrt(5*mp.pi)
    assert value(hx.parse("E((z1 + z2)*(tanh(z1) - erf(z2 + z3)))")) == pytest.approx(float(known), abs=1e-13)
