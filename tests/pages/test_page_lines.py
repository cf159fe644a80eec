"""What a page shows is what was checked: unevaluated forms, names, matrices, kinds of line, misprints and variants."""

import random

import numpy as np
import pytest
from sympy import (
    Derivative,
    Determinant,
    Function,
    Integral,
    Inverse,
    Limit,
    MatMul,
    Matrix,
    Subs,
    Symbol,
    Trace,
    besselk,
    diff,
    exp,
    eye,
    ones,
    oo,
    sin,
    sqrt,
    symbols,
)

from hermitex import E, Result, System, check
from hermitex.errors import BadInput, UnknownName
from hermitex.symbols import V, alpha, q, z

x, y = symbols("x y", real=True)
a = Symbol("a", positive=True)
F = Function("F")(x, y)
f = Function("f")
Phi = Symbol("Phi")

BODIES = [sin(a*x)/(1 + x**2), exp(-a*x**2)*x, sqrt(1 + a*x**2), x**3/(1 + a*x), besselk(0, a + x**2)]


@pytest.mark.parametrize("seed", range(12))
def test_derivatives_and_what_is_put_in_are_worked_out(seed):
    chance = random.Random(seed)
    body, at = chance.choice(BODIES), chance.choice([0, 1, a])
    value = diff(body, x).subs(x, at)
    held = Subs(Derivative(body, x), x, at)
    assert check(held, value)
    wrong = chance.choice([2*value + 1, value + a, value - 1])
    assert check(held, wrong).status == "fails"


@pytest.mark.parametrize(("held", "value", "wrong"), [
    (Limit(sin(a*x)/x, x, 0), a, 2*a),
    (Limit((1 + a/x)**x, x, oo), exp(a), exp(a) - 1),
    (Integral(exp(-a*y), (y, 0, oo)), 1/a, 2/a),
    (Subs(Derivative(E(sin(x + a*z), z), x), x, 0), exp(-a**2/2), exp(-a**2)),
    (Derivative(f(x)**2, x), 2*f(x)*f(x).diff(x), f(x)*f(x).diff(x)),
], ids=["limit", "limit far out", "integral", "average", "any function"])
def test_limits_integrals_and_averages(held, value, wrong):
    assert check(held, value)
    assert check(held, wrong).status == "fails"


def test_what_cannot_be_worked_out_is_open():
    assert check(Limit(E(sin(a*x*z)/x*z, z), x, 0), a).status == "undetermined"


@pytest.mark.parametrize("place", [(i, j) for i in range(2) for j in range(2)])
def test_every_entry_of_a_matrix_is_checked(place):
    G = a*Matrix([[0, 1], [1, 0]])
    right = a**2*eye(2)
    assert check(MatMul(G, eye(2), G), right).status == "proved"
    wrong = right.copy()
    wrong[place] += a
    found = check(G*G, wrong)
    assert found.status == "fails" and f"entry ({place[0] + 1}, {place[1] + 1})" in repr(found)
    assert check(right, Matrix([[a**2, 0]])).status == "fails"


def test_a_step_that_says_nothing_fails_and_a_comparison_with_the_package_may_be_letter_by_letter():
    page = Result("Nothing", "claim")
    page.step("algebra", a + 1, 1 + a)
    page.let(Phi, a**2)
    page.step("by its name", Phi, a**2)
    page.step("a number", E(z**2, z).doit(), 1)
    assert [s.status for s in page.check().steps] == ["fails"]*3
    page = Result("Something", "claim")
    page.step("differentiation", Derivative(a**2, a), 2*a)
    page.same("the package's", 2*a, a + a, name=Symbol("m"))
    assert page.check().passed and "m &= 2 a" in page.latex()


def test_a_name_is_printed_for_what_it_stands_for():
    phi = alpha*q/(1 + V) - q*V
    page = Result("Names", "claim")
    page.name(Phi, phi)
    page.step("stationarity", Derivative(phi, q), alpha/(1 + V) - V)
    page.step("written out", phi, q*(alpha/(1 + V) - V))
    text = page.latex()
    assert r"\frac{\partial}{\partial q} \Phi &=" in text and r"\Phi &= q \left(" in text
    assert page.check().passed
    page.step("a wrong sign", Derivative(phi, V), -alpha*q/(1 + V)**2 + q)
    assert not page.check().passed


def test_a_name_stands_in_a_product_that_took_its_factors_in():
    """3*root is 6/(1 + q) to SymPy: the factors of the name are found among others, a product of plain letters is left alone."""
    root = 2/(1 + q)
    page = Result("Products", "claim")
    page.name(Phi, root)
    page.step("algebra", 3*V*root*(alpha + 1/(1 + V*root)), 3*V*root*alpha + 3*V*root/(1 + V*root))
    page.step("half of it", root/2, 1 - q/(1 + q))
    page.step("in a matrix", Matrix([[V*root, 1]]), Matrix([[V - V*(q - 1)/(1 + q), 1]]))
    text = page.latex()
    assert r"3 \Phi V \left(\alpha + \frac{1}{\Phi V + 1}\right)" in text and r"\frac{1}{q + 1} &= -" in text
    assert r"\Phi V & 1" in text and page.check().passed
    page.therefore(root*V, 2*V - 2*V*q/(1 + q), by=[Phi], package=None)
    assert r"\Phi V &= - \Phi V q + 2 V" in page.latex()   # a conclusion, too
    plain = Result("Letters", "claim")
    plain.name(Phi, 2*V)
    plain.step("algebra", 2*V*q + 4*V*alpha, 2*V*(q + 2*alpha))
    assert "Phi" not in plain.latex().split("algebra")[0].split("equiv")[1]


def test_every_line_says_of_which_kind_it_is():
    page = Result("Kinds", "claim", source="cui2024", assumptions=["replica symmetry"])
    page.assume("the equivalence", quoted="goldt2022", place="Theorem 2")
    page.let(Phi, a**2)
    page.step("differentiation", Derivative(a**2, a), 2*a)
    page.test("a fact", lambda: True)
    page.test("numbers", lambda: 9)
    page.misprint("a factor", Derivative(a**2, a), a)
    assert "[assumed]" in page.markdown() and "[quoted, Goldt et al. 2022, Theorem 2]" in page.markdown()
    assert r"\text{[defined]}" in page.markdown() and "proved" not in page.latex()   # before anything was checked
    for said in (r"\marginpar{\raggedright\scriptsize defined: \eqref{eq:kinds:2}}", r"\label{eq:kinds:2}"):
        assert said in page.latex()
    found = page.check()
    assert found.kinds == {"proved": 1, "agrees": 0, "tested": 2, "quoted": 1, "assumed": 1, "defined": 1, "refuted": 1}
    assert found.to_dict()["kinds"] == found.kinds
    for text in (page.latex(), page.markdown()):
        assert "[proved]" in text or "proved: \\eqref{eq:kinds:3}" in text
        assert "a fact (tested)" in text and "numbers (tested to 9 digits)" in text
    assert r"\cite{goldt2022}, Theorem 2]" in page.latex()


def test_a_misprint_has_a_source_a_place_and_a_mended_form_that_holds():
    page = Result("Misprints", "claim")
    page.misprint("the factor", Derivative(a**2, a), a, source="cui2024", place="Eq. (7)", mended=2*a, change=lambda right: right/2)
    page.misprint("of our own", Derivative(a**2, a), 3*a)
    assert page.check().passed
    text = page.latex()
    sources, variants = text.index("Misprints of the sources"), text.index("What would go wrong")
    assert sources < text.index("Eq. (7)") < text.index("mended") < variants < text.index("of our own")
    page.misprint("badly mended", Derivative(a**2, a), a, source="cui2024", place="Eq. (7)", mended=4*a)
    assert "mended formula does not hold" in page.check().steps[-1].example
    for printed, change, said in ((3*a, lambda right: right/2, "is not the change"), (a, None, "say how"),
                                  (a, lambda right: a, "does not depend")):
        page.misprint("tied", Derivative(a**2, a), printed, source="cui2024", place="Eq. (7)", mended=2*a, change=change)
        assert said in page.check().steps[-1].example


def test_a_slip_of_ones_own_is_a_variant_of_a_formula_or_of_a_system():
    page = Result("a slip", "claim")
    page.step("a moment", E((a*z)**2, z), a**2)
    page.variant("the root", E((a*z)**2, z), a)
    page.variant("the sign", System({V: a + 1}), System({V: a + 2}), at=[{"a": 1.0}])
    found = page.check()
    assert found.passed and [s.rule for s in found.steps] == ["a moment", "variant, the root", "variant, the sign"]
    assert "What would go wrong" in page.markdown() and "Misprints" not in page.markdown()
    page.variant("no slip", E((a*z)**2, z), a**2)
    assert not page.check().passed


def test_numbers_agree_or_the_one_that_is_off_is_named():
    x, w = Result.normal_grid()
    seen = {"kink": (w @ np.abs(x), np.sqrt(2/np.pi)), "moments": ([w @ x**k for k in (0, 2, 4)], [1, 1, 3])}
    assert Result.numbers(seen) >= 13 and Result.numbers([("a third", 0.33333, 1/3)], enough=1e-4) == 5
    with pytest.raises(AssertionError, match=r"moments: .* here, .* in the package"):
        Result.numbers({**seen, "moments": ([1, 1, 3.01], [1, 1, 3])})
    with pytest.raises(AssertionError, match="lost"):
        Result.numbers({"lost": (np.nan, 1.0)})


def test_formulas_in_words_are_checked_and_those_that_are_typed_are_counted():
    a = Symbol("a", positive=True)
    page = Result("A", "claim")
    page.text(r"First $#1$, then $#2$, with $z$ and $a = 1$.", (E((a*z)**2, z), a**2), (E(z**4, z), 3))
    found = page.check()
    assert [one.status for one in found.steps] == ["proved"] and found.unbound == ("1 formula in words",)
    assert r"\left[a^{2} z^{2}\right] = a^{2}$, then $" in page.markdown() and "#" not in page.latex().replace(r"\#", "")
    assert "not checked: 1 formula in words" in found.tally()
    page.text("Wrong: $#1$.", (E((a*z)**2, z), 2*a**2))
    assert [one.status for one in page.check().steps] == ["proved", "fails"]
    page.text("Empty: $#1$.", (a, a))
    assert page.check().steps[-1].status == "fails"
    for words, formulas in (("$#1$ and $#2$", [(a, a)]), ("$#2$", [(a, a), (a, 2*a)]), ("none", [(a, a)]), ("$#1$", [])):
        with pytest.raises(BadInput, match="in the paragraph"):
            page.text(words, *formulas)


def typed(page, words):
    """The page with these words as its last."""
    page.parts[-1] = type(page.parts[-1])(words)
    return page


def test_terms_in_words_stand_in_a_formula_of_the_page_or_it_fails():
    a, b = symbols("a b", positive=True)
    page = Result("A", "claim")
    page.step("a moment", E((sqrt(a)*b*z)**4, z), 3*a**2*b**4)
    page.text(r"$3a^2b^4$, $a^2b^4$, $a^{2}$ and $b$; $(a, -b)$ and $x \sim \mathcal{N}(0, I_d)$")
    assert not page.unbound and page.check().passed
    for wrong in ("3a", "3a^2", "a^3b^4", "-3a^2", "a + b", r"\frac{a}{b}", "a^2 - b", r"\|w\|^2/d", r"d\log d", "0.594"):
        found = typed(page, f"Now ${wrong}$ is typed.").check()
        assert not found and page.loose == [wrong] and f"${wrong}$" in repr(found) and found.unbound == found.refused
    page.assume("a bound of $a^3$")
    assert page.loose == ["0.594", "a^3"]   # a premise is read, too
    page.parts.pop()
    page.text("Its part $#1$.", a**2)
    assert "part $a^{2}$" in page.markdown()
    page.text("No part is $#1$.", a**3)
    assert page.loose == ["0.594", "a^{3}"]
    page.conclude(a, "So it is $a^5$.")
    assert page.loose == ["0.594", "a^5", "a^{3}"]


def test_a_sign_and_a_number_belong_to_the_whole_product_and_averages_are_read():
    a, b = symbols("a b", positive=True)
    page = Result("A", "claim")
    page.step("two averages", E(f(z)*a*z, z) - 2*a*b, E(f(z)*a*z, z)*(1 - 2*a*b/E(f(z)*a*z, z)))
    page.text("words")
    for right in (r"\mathbb{E}[azf]", r"\mathbb{E}_z\,azf(z)", "2ab", "ab", r"\mathbb{E}[azf] - 2ab", r"1/\mathbb{E}[afz]"):
        assert not typed(page, f"It is ${right}$.").loose, right
    for wrong in (r"\mathbb{E}[af]", r"2ab - \mathbb{E}[azf]", r"\mathbb{E}[az^2f]", "-2ab", "2a", r"2\mathbb{E}[azf]",
                  r"\min(a, b)"):
        assert typed(page, f"It is ${wrong}$.").loose == [wrong]


def test_an_object_is_declared_by_a_notation_and_used():
    a = Symbol("a", positive=True)
    page = Result("A", "claim")
    page.step("a moment", E((a*z)**2, z), a**2)
    page.notation({r"\|w\|^2/d": "the square of the sample", "K^f": "a response", a: "a scale"})
    page.text(r"The limits of $\|w\|^2/d$ and of $K^{f}$.")
    assert not page.loose
    assert typed(page, r"The limit of $\|w\|^2/p$ and of $K^f$.").loose == [r"\|w\|^2/p", r"\|w\|^2/d"]   # and one is idle
    page.notation({a: r"the root of $\|w\|^2$"})
    assert r"\|w\|^2" in page.loose   # what a letter stands for is said in words


def test_a_letter_of_a_formula_that_nothing_introduces_is_named():
    b_1, b_2, c = symbols("b_1 b_2 c", positive=True)
    page = Result("letters", r"for any $f$")
    page.step("linearity", E((b_1*f(z) + b_2*z)/c, z), b_1*E(f(z), z)/c)   # f is in words; z is averaged over
    found = page.check()
    assert found.passed and set(found.unnamed) == {"b_1", "b_2", "c"} and "without a notation: " in found.tally()
    assert set(found.to_dict()["unnamed"]) == {"b_1", "b_2", "c"}
    page.notation({b_1: "one of two weights"})   # of a family one is enough
    assert page.check().unnamed == ("c",)
    page.let(c, b_1 + 1, "with")
    assert not page.check().unnamed and "without a notation" not in page.check().tally()


def test_a_misprint_in_a_system_is_the_change_of_the_mended_one():
    mended = System({V: alpha/(1 + q), q: 1/(1 + V)})
    source = {"at": [{"alpha": 2}], "source": "cui2024", "place": "Eq. (7)"}

    def refuted(printed, used=mended, **options):
        page = Result("A", "claim")
        page.misprint_in("a factor", System({V: printed, q: 1/(1 + V)}), used, **{**source, **options})
        return page.check().steps[0]

    assert refuted(alpha/(2*(1 + q)), change={V: lambda right: right/2})
    assert refuted((1 + V)*alpha/(1 + q)/(2 + 2*V), change={V: lambda right: right/2})   # compared as a formula
    assert refuted(alpha/(2*(1 + q)), source=None)                                      # a variant of our own
    half = {V: lambda right: right/2}
    for printed, options, said in (
            (alpha/(2*(1 + q)), {}, "say which right sides"), (alpha/(3*(1 + q)), {"change": half}, "not the change"),
            (alpha/(2*(1 + q)), {"change": {V: lambda right: alpha/(2*(1 + q))}}, "does not depend"),
            (alpha/(2*(1 + q)), {"change": {q: lambda right: right/2}}, "no change says"),
            (alpha/(2*(1 + q)), {"change": half | {"W": lambda right: right}}, "no letter W"),
            (alpha/(2*(1 + q)), {"used": System({V: alpha/(1 + q), q: 2/(1 + V)}), "change": half}, "no change")):
        assert said in refuted(printed, **options).example


def test_a_definition_stands_in_words_and_is_counted_where_nothing_prints_it():
    page = Result("A", "claim")
    with pytest.raises(BadInput, match="has no definition"):
        page.text("With $#1$.", Phi)
    page.let(Phi, a**2, shown=False)
    assert page.unbound == ("the definition of Phi",)
    page.text("With $#1$ and $#2$.", Phi, (E(a*Phi*z**2, z), a**3))
    assert page.unbound == () and [one.status for one in page.check().steps] == ["proved"]
    assert r"With $\Phi = a^{2}$ and $" in page.markdown() and r"\equiv" not in page.latex()


def test_a_letter_in_words_is_what_it_is_in_a_system_of_the_page():
    beta = Symbol("beta", positive=True)
    system = System({q: V/(1 + alpha*beta), V: 1/(1 + q)}, where={beta: 1/(1 + V)**2})
    page = Result("A", "claim")
    page.text("Here $#1$ and $#2$.", (beta, 1/(1 + 2*V + V**2)), (V, 1/(1 + q)))
    page.same("itself", system, system, shown=False)
    assert page.check().passed and page.check().steps[0].status == "proved"
    for wrong in (1/(1 + V), 2/(1 + V)**2, -1/(1 + V)**2, beta):
        other = Result("A", "claim")
        other.text("Here $#1$.", (beta, wrong))
        other.same("itself", system, system, shown=False)
        assert not other.check().steps[0]


def test_a_page_opens_with_its_notation_and_closes_with_what_it_does_not_show():
    page = Result("A", "It is $#1$.", assumptions=["$z$ is normal"])
    moment = page.step("closed form", E((a*z)**2, z), a**2)
    page.not_shown("the limit.")
    page.notation({a: "a scale", (x, r"\hat w"): r"$a^2$ of two"})
    page.therefore(2*E((a*z)**2, z), 2*a**2, by=[moment], package=None)
    found = page.check()
    assert found.passed and found.given["defined"] == 2 and not found.unbound
    for text in (page.markdown(), page.latex()):
        places = [text.index(k) for k in ("= 2 a^{2}$.", "is normal", r"$a$: a scale; $x$, $\hat w$: $", "Conclusion", "the limit")]
        assert places == sorted(places)
    assert Result("A", "It is $2 = 1$.").unbound == ("1 formula in words",)   # a claim is read, and so is the name of a rule
    page.step("at $a = 1$", Derivative(a**2, a), 2*a)
    assert page.unbound == ("1 formula in words",)


def test_determinants_traces_and_products_of_matrices_are_worked_out():
    page = Result("Rank one", "claim")
    page.let(x, a + 1)
    b, unit = Symbol("b", positive=True), eye(2)
    page.step("product", MatMul(b*unit, Inverse(b*unit)), unit)   # with a name on the page products are carried out before
    page.step("determinant", Determinant(a*unit + b*ones(2, 2)), a*(a + 2*b))
    page.step("trace", Trace(Inverse(a*unit + b*ones(2, 2))), 2*(a + b)/(a*(a + 2*b)))
    page.step("wrong", Determinant(a*unit + b*ones(2, 2)), a*(a + b))
    page.step("empty", b*unit, b*unit)
    assert [one.status for one in page.check().steps] == ["proved", "proved", "proved", "fails", "fails"]


@pytest.mark.parametrize(("left", "right", "status"), [
    (Derivative(a*F/x, x), a*F.diff(x)/x - a*F/x**2, "proved"), (Derivative(F, x), F.diff(y), "fails"),
    (2*Derivative(F/a, x), 2*F.diff(x), "fails"), (E(z**2*Derivative(F, x), z), F.diff(y), "fails"),
    (Integral(F.diff(x), (y, 0, a)), F.diff(x), "fails")])
def test_derivatives_of_undefined_functions_are_letters(left, right, status):
    assert check(left, right).status == status


def test_a_limit_holds_averages_and_functions_as_numbers():
    g = Function("g")
    held = E(g(z)**2, z) + g(a)*x
    assert check(Limit(Subs((y*held + 1)/(y + g(a)), y, 2*V), V, oo), held).status == "proved"
    assert not check(Limit((y*held + 1)/y, y, oo), held + 1)


def test_what_is_mended_is_another_formula():
    page = Result("Misprints", "claim")
    page.misprint("the factor", Derivative(a**2, a), a, mended=Derivative(a**2, a))
    found = page.check().steps[0]
    assert found.status == "fails" and "left side itself" in found.example


def test_a_limit_may_go_wrong():
    page = Result("Limits", "claim")
    slope = page.step("limit", Limit((sqrt(1 + a*x) - 1)/x, x, 0), a/2)
    page.misprint("the half", slope.lhs, a)
    assert page.check().passed


def test_a_sentence_that_several_texts_share_is_one_paragraph():
    page = Result("A", "claim")
    page.text("A whole sentence.")
    page.text("The mean square,")
    page.text("that of a normal, is")
    page.let(Phi, a**2, "by its name")
    page.step("closed form", E((a*z)**2, z), Phi)
    said = page.markdown()
    assert "A whole sentence.\n\nThe mean square, that of a normal, is by its name\n\n$$" in said
    assert "The mean square, that of a normal, is by its name" in page.latex()


def test_a_text_in_a_step_holds_letters():
    page = Result("the slope of tanh", "Stein's lemma.")
    first = page.step("stein", "E(z*tanh(r*z))", "r*E(1 - tanh(r*z)**2)")
    page.step("a letter of one's own", "E((w + z)**2)", "1 + w**2", symbols="w")
    page.then("written out", "w**2 + 1", symbols="w")
    assert first.lhs == check("E(z*tanh(r*z))", 0).lhs
    assert [one.status for one in page.check().steps[:2]] == ["proved", "proved"]
    with pytest.raises(UnknownName, match="declare it, symbols="):
        page.step("no such letter", "E(w*z)", "0")
    with pytest.raises(BadInput, match="a covariance belongs to its average"):
        check("E(z1*z2)", "0", cov={("z1", "z2"): 1})
