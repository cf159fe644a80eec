"""A conclusion holds, follows from the premises that it names, needs each of them, and is the package's."""

import random

import pytest
from sympy import Function, Integral, Limit, Order, Subs, Symbol, cos, exp, oo, sin, sqrt, symbols, tanh

import hermitex as hx
from hermitex import Derivative, E, Result, System
from hermitex.errors import BadInput
from hermitex.pages.conclusion import _holds
from hermitex.symbols import V, Vhat, alpha, c, kappa, lamda, r, z

sigma = Function("sigma")
u = r*kappa + sqrt(c)*z
mean, slope, second = E(sigma(u), z), E(Derivative(sigma)(u), z), E(sigma(u)**2, z)
a = Symbol("a", positive=True)
mu_0, mu_1 = Symbol("mu_0", real=True), Symbol("mu_1", real=True)
OBJECTS = {"hx.mu_star(sigma).squared.node": hx.mu_star(sigma).squared.node}


def written():
    """A page, its premises, and the conclusion that they give."""
    page = Result("The residual", "claim")
    page.let(mu_0, mean)
    page.let(mu_1, slope)
    stein = page.step("Stein", E(z*sigma(u), z), sqrt(c)*slope)
    along = E(z*sigma(u), z)
    square = page.step("expanding the square", E((sigma(u) - mean - along*z)**2, z), second - mean**2 - along**2)
    return page, [mu_0, mu_1, stein, square], (square.lhs, second - mu_0**2 - c*mu_1**2)


def said(page):
    return page.check().steps[-1]


def test_it_follows_and_is_the_packages():
    page, by, pair = written()
    page.therefore(*pair, by=by, package=OBJECTS)
    assert page.check().passed and said(page).status == "proved"
    assert "In the package: `hx.mu" in page.markdown() and "proved: \\eqref" in page.latex()
    for given, words in (({}, False), ({"package": None}, True)):   # a page of one's own has nothing to say of the package
        page, by, pair = written()
        page.therefore(*pair, by=by, **given)
        assert said(page).status == "proved" and ("The package has no object for it." in page.markdown()) is words


@pytest.mark.parametrize("lost", range(4))
def test_a_missing_premise_is_noticed(lost):
    page, by, pair = written()
    page.therefore(*pair, by=by[:lost] + by[lost + 1:], package=OBJECTS)
    assert "does not follow" in said(page).example


def test_a_premise_that_is_not_used_is_noticed():
    page, by, pair = written()
    more = page.step("another", E(z**4, z), 3)
    page.therefore(*pair, by=[*by, more], package=OBJECTS)
    assert "3 is not used" in said(page).example


@pytest.mark.parametrize("seed", range(6))
def test_another_right_side_is_noticed(seed):
    page, by, (left, right) = written()
    chance = random.Random(seed)
    wrong = chance.choice([right + mu_0**2, right.subs(c, c**2), -right, right + c*mu_1, 2*right, right.subs(mu_1, mu_0)])
    page.therefore(left, wrong, by=by, package=None)
    assert "does not hold" in said(page).example


def test_another_object_of_the_package_is_noticed():
    page, by, pair = written()
    page.therefore(*pair, by=by, package={"hx.mu(sigma, 1).node": hx.mu(sigma, 1).node})
    assert "is not the right side" in said(page).example
    page, by, pair = written()
    fact = page.test("numbers", lambda: 9)
    page.therefore(*pair, by=[*by, fact], package=OBJECTS)
    assert "numbers is not used" in said(page).example


@pytest.mark.parametrize("thing", [object(), hx.theories.sgd, hx.theories.sgd("erf", "z"), "text", lambda: {}, 3.0])
def test_what_makes_an_object_is_none(thing):
    page, by, pair = written()
    page.therefore(*pair, by=by, package={"hx.theories.sgd": thing})
    assert said(page).status == "fails" and "function that returns numbers" in said(page).example


def test_the_package_is_solved_and_compared():
    x, w, other = symbols("x w y", positive=True)
    for wrong, why in (({}, ""), ({x: 2.00001}, "does not hold"), ({w: 11}, "does not hold"), ({other: 1}, "same letters: y")):
        page = Result("A", "claim")
        page.therefore(x**2 + a*x, w, by=[page.let(w, x**2 + a*x)],
                       package={"hx.He": lambda given, wrong=wrong: {x: given(1, 2), a: 3, w: 10} | wrong})
        assert why in said(page).example and bool(said(page)) is (why == "")


@pytest.mark.parametrize(("returned", "why"), [
    ({a: 2.0}, "nothing is compared"), (None, "returned None"), (({a: 2.0}, []), "with a number for each"),
    (({a: 2.0}, [4.1]), "does not hold"), (({a: 2.0}, [4]), ""), (({}, [4]), "same letters")])
def test_an_identity_is_compared_with_numbers(returned, why):
    page = Result("A", "claim")
    page.therefore(E((a*z)**2, z), a**2, by=[page.step("closed form", E((a*z)**2, z), a**2)], package={"hx.E": lambda _: returned})
    assert why in said(page).example and bool(said(page)) is (why == "")


def test_functions_are_put_in():
    page = Result("A", "claim")
    by = [page.step("Stein", E(z*sigma(u), z), sqrt(c)*slope)]
    for number, status in ((6, "tested"), (3, "fails")):   # sigma' = 2 u, sqrt(c) 2 r kappa = 6
        page.therefore(E(z*sigma(u), z), sqrt(c)*slope, by=by,
                       package={"hx.E": lambda _, n=number: ({sigma: lambda x: x**2, c: 4, r: 3, kappa: 0.5}, [n])})
        assert said(page).status == status


def test_systems(monkeypatch):
    ridge = System({Vhat: alpha/(1 + V), V: 1/(lamda + Vhat)})
    other = System({Vhat: alpha/(1 + V), V: 1/(2*lamda + Vhat)})
    for name, one in (("ridge", ridge), ("other", other)):
        monkeypatch.setattr(hx, name, one, raising=False)
    page = Result("Ridge", "claim")
    agreed = page.same("letters", ridge, System({Vhat: alpha/(1 + V), V: 1/(lamda + Vhat)}))
    own = {"hx.ridge": ridge}
    for value, by, package, holds in ((ridge, [agreed], own, True), (other, [agreed], own, False), (ridge, [], own, False),
                                      (ridge, [agreed], {"hx.other": other}, False), (ridge, [agreed], None, False),
                                      (ridge, [agreed], {"hx.other": ridge}, False),   # what is typed is another one
                                      ([(V, 1/(lamda + Vhat))], [agreed], own, True),
                                      ([(V, 1/(2*lamda + Vhat))], [agreed], own, False)):
        page.therefore(value, by=by, package=package)
        assert bool(said(page)) is holds, said(page)


def test_the_letters_of_a_system_are_those_of_the_package(monkeypatch):
    w, x = symbols("w x", real=True)
    used, other = System({x: 1 + w}, where={w: 2*a}), System({x: 1 + w}, where={w: 3*a})
    page = Result("A", "claim")
    agreed = page.same("letters", used, System({x: 1 + w}, where={w: 2*a}))
    for one, status in ((other, "fails"), (used, "proved")):
        monkeypatch.setattr(hx, "used", one, raising=False)
        page.therefore(used, by=[agreed], package={"hx.used": one})
        assert said(page).status == status


@pytest.mark.parametrize(("text", "why"), [
    ("hx.mu(sigma, 1).node", "another formula"), ("hx.mu(sigma, ...).node", "another formula"), ("hx.nobody", "cannot be typed"),
    ("a theory", "cannot be typed"), ("hx.mu(tau, 0).node", "cannot be typed")])
def test_the_text_of_an_object_gives_that_object(text, why):
    page, by, pair = written()
    page.therefore(*pair, by=by, package={text: OBJECTS["hx.mu_star(sigma).squared.node"]})
    assert not said(page) and why in f"{said(page).example}{said(page).how}"


def test_a_function_solves_what_its_text_gives():
    x = Symbol("x", positive=True)
    for order, status in ((2, "tested"), (3, "fails")):   # He_2(3) = 8
        page = Result("A", "claim")
        page.therefore(E((x*z)**2, z) - 1, x**2 - 1, by=[page.step("closed form", E((x*z)**2, z), x**2)],
                       package={f"hx.He({order}, ...)": lambda he: ({x: 3.0}, [he(3)])})
        assert said(page).status == status


def test_a_wrong_form_is_one_of_a_line():
    page = Result("A", "claim")
    page.misprint("the square", E(z**4, z), 1)
    assert "not a side of a line" in said(page).example
    page.step("closed form", E(z**4, z), 3)
    assert all(page.check().steps)
    page.misprint("another", E(z**6, z), 1, mended=15)
    assert all(page.check().steps)


@pytest.mark.parametrize(("formula", "status"), [(7*a, "fails"), (a, "tested")])
def test_formulas_are_compared_beside_numbers(formula, status):
    page = Result("A", "claim")
    by = [page.step("one", E(a*z**2, z), a)]
    page.therefore(E(a*z**2, z), a, by=by, package={f"{formula}": formula, "hx.E": lambda _: ({a: 2}, [2])})
    assert said(page).status == status


def test_it_holds_no_better_than_its_premises():
    m = Symbol("m", real=True)
    page = Result("A", "claim")
    wrong = page.same("pkg", 2*a, 3*a, name=m)
    page.therefore(m, 2*a, by=[wrong], package=None)
    assert said(page).status == "fails"
    assert "the premise pkg" in said(page).example


def test_premises_stand_on_the_page():
    page, by, pair = written()
    with pytest.raises(BadInput, match="of this page"):
        page.therefore(*pair, by=[*by[:3], Result("x", "y").step("s", E(z**4, z), 3)], package=None)
    with pytest.raises(BadInput, match="of this page"):
        page.therefore(*pair, by=[Symbol("nobody")], package=None)
    page.conclude(pair[1])
    assert page.check().unbound == ("the conclusion",)


@pytest.mark.parametrize("wrap", [lambda e: Derivative(e, a) + e, lambda e: Subs(e, a, 1), lambda e: Limit(e, a, 3)])
def test_an_integral_under_a_derivative_is_no_letter(wrap):
    x = Symbol("x", real=True)
    integral = Integral(exp(-x*a**2), (x, 1, 2))
    assert not _holds(wrap(integral), integral)


def test_each_line_of_a_chain_is_a_premise():
    page = Result("The slope of a Gaussian", "claim")
    f = exp(-z**2/2)
    stein = page.step("Stein", E(z**2*f, z), E((1 - z**2)*f, z))
    closed = page.then("closed form", sqrt(2)/4)
    page.therefore(E(z**2*f, z), sqrt(2)/4, by=[stein, closed], package=None)
    assert page.check()
    page = Result("The slope of a Gaussian", "claim")
    stein = page.step("Stein", E(z**2*f, z), E((1 - z**2)*f, z))
    page.then("closed form", sqrt(2)/4)
    page.therefore(E(z**2*f, z), sqrt(2)/4, by=[stein], package=None)
    assert not page.check() and "does not follow" in said(page).example


def test_each_step_of_a_derivation_is_a_premise():
    page = Result("The slope of a Gaussian", "claim")
    derived = hx.stein(z*tanh(z), z)
    steps = page.derivation(derived)
    assert [one.lhs for one in steps] == [one.before for one in derived.steps]
    page.therefore(2*derived.claim[0], 2*derived.result, by=steps, package=None)
    assert page.check() and said(page).status == "proved"
    page.therefore(2*derived.claim[0], 2*derived.result + 1, by=steps, package=None)
    assert said(page).status == "fails"


def test_an_inequality_is_a_premise_of_inequalities():
    page = Result("A", "claim")
    small, large = E(z*tanh(z), z), E(z**2, z)
    bound = page.less("a slope below one", small, large)
    page.therefore(3*small - 1 < 3*large, by=[bound], package=None)
    assert page.check() and "< 3" in page.latex()
    for claim, by, why in ((3*small < 2*large, [bound], "does not follow"), (2*large < small, [bound], "does not hold"),
                           (small < large + 1, [bound, page.less("another", 1, E(z**4, z))], "another is not used")):
        page.therefore(claim, by=by, package=None)
        assert why in said(page).example, said(page)
    page.therefore(E(a*z**2, z), a, by=[bound, page.step("closed form", E(a*z**2, z), a)], package=None)
    assert "a slope below one is not used" in said(page).example


x = Symbol("x", positive=True)
COSINE, SQUARE = E(cos(x*z), z), E(sin(x*z)**2, z)


@pytest.mark.parametrize(("pair", "to", "why"), [
    ((3*SQUARE, 3*x**2), {x: 0}, ""), ((3*SQUARE, 2*x**2), {x: 0}, "does not hold"), ((SQUARE/x, x), {x: 0}, ""),
    ((1 + SQUARE/x**2 - x, 2), {x: 0}, ""), ((1 + (SQUARE - x**2)/x**3, 1), {x: 0}, "does not follow"),
    ((1 + SQUARE, 1 + x**2 + Order(x**3)), None, "does not follow"), ((1 + SQUARE, 1 + Order(x)), None, ""),
    ((COSINE, 1 + Order(x**2)), None, "does not follow")])
def test_an_asymptotic_claim_follows_from_one(pair, to, why):
    page = Result("Small", "claim")
    small = page.step("expanding", SQUARE, x**2, to={x: 0})
    page.therefore(*pair, by=[small], to=to, package=None)
    assert why in said(page).example and bool(said(page)) is (why == ""), said(page)
    assert to is None or r"\underset{x \to 0}{\simeq}" in page.markdown().rpartition("Conclusion")[2]


@pytest.mark.parametrize(("pair", "why"), [
    ((2*COSINE, 2 - x**2 + Order(x**4)), ""), ((2*COSINE, 2 - x**2 + Order(x**3)), ""), ((2*COSINE, 2 + Order(x**2)), ""),
    ((2*COSINE, 2 - x**2 + x**4/4 + Order(x**6)), "does not follow"), ((2*COSINE, 2 + x**2 + Order(x**4)), "does not hold")])
def test_a_series_follows_from_a_series(pair, why):
    page = Result("Small", "claim")
    small = page.step("Taylor", COSINE, 1 - x**2/2 + Order(x**4))
    page.therefore(*pair, by=[small], package=None)
    assert why in said(page).example and bool(said(page)) is (why == ""), said(page)


def test_an_asymptotic_claim_is_compared_with_a_formula_of_the_package():
    page = Result("Small", "claim")
    small = page.step("expanding", SQUARE, x**2, to={x: 0})
    for text, one, why in (("hx.E(sin(x*z)**2, z)", SQUARE, "cannot be typed"), ("x**2", x**2, ""),
                           ("2*x**2", 2*x**2, "not the right"),
                           ("hx.He", lambda _: ({x: 1}, [1]), "not an equality at a point")):
        page.therefore(SQUARE, x**2, by=[small], to={x: 0}, package={text: one})
        assert why in f"{said(page).example}{said(page).how}", said(page)
    far = page.step("far out", E(z**2/(1 + z**2/x), z), 1, to={x: oo})
    page.therefore(2*far.lhs, 2, by=[far], to={x: oo}, package=None)
    assert said(page)
