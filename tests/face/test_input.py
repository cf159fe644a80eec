"""What a user hands over: functions of Python and SymPy, lists of targets, texts with letters; what is misspelt is answered."""

import csv
import inspect
import math
import random

import numpy as np
import pytest
import sympy
from sympy import Lambda, Symbol, symbols, tanh

import hermitex as hx
from hermitex.errors import BadInput
from hermitex.symbols import kappa, z

a, b = symbols("a b")


def drawn(seed):
    """A polynomial in one or two variables: as text, as a function of Python, as a Lambda."""
    draw = random.Random(seed)
    count = draw.choice([1, 2])
    terms = [(draw.randint(-3, 3) or 1, *(draw.randint(1, 3) for _ in range(count))) for _ in range(2)]

    def value(*x):
        return sum(c*math.prod(v**p for v, p in zip(x, powers, strict=True)) for c, *powers in terms)

    names = ["z"] if count == 1 else ["z1", "z2"]
    python = (lambda u: value(u)) if count == 1 else (lambda u, v: value(u, v))
    return str(value(*symbols(names))), python, Lambda(tuple((a, b)[:count]), value(*(a, b)[:count]))


@pytest.mark.parametrize("seed", range(12))
def test_a_function_is_the_formula_that_it_computes(seed):
    text, python, node = drawn(seed)
    assert hx.parse(text) == hx.symbolic.parsing.expression(python) == hx.symbolic.parsing.expression(node)


def test_every_front_door_takes_a_function():
    cube = "z**3 - 3*z"
    assert hx.exponents(lambda x: x**3 - 3*x).to_dict() == hx.exponents(cube).to_dict()
    assert hx.exponents(Lambda((a, b), a*b)).leap_exponent == hx.exponents(lambda z2, z1: z1*z2).leap_exponent == 2
    theory = hx.theories.one_step(lambda x: tanh(x), Lambda(a, sympy.sin(a)))
    assert theory.sigma.expr == tanh(z) and theory.g.expr == sympy.sin(z)
    assert hx.E(lambda x: x**4).doit() == 3 and hx.coefficient(lambda x: x**3, 3) == 6
    assert hx.expand(lambda x: x**3, order=3, basis="monic").coefficients == hx.expand("z**3", order=3, basis="monic").coefficients
    assert hx.mu(lambda x: x**3, 3)(kappa=0.0, r=1, c=1) == pytest.approx(6)
    assert hx.theories.multi_index(lambda u, v: sympy.sign(u*v)).g == hx.parse("sign(z1*z2)")


@pytest.mark.parametrize("function", [np.tanh, math.tanh, lambda x: np.tanh(x), lambda x: math.exp(x), np.vectorize(abs),
                                      lambda x: np.where(x > 0, x, 0), lambda x: x if x > 0 else 0, lambda x: x.nonsense,
                                      lambda x: None, lambda x: [x], print])
@pytest.mark.parametrize("ask", [hx.exponents, lambda f: hx.theories.one_step(f, "sin"), hx.E, lambda f: hx.mu(f, 1)])
def test_what_computes_numbers_gets_one_line(function, ask):
    with pytest.raises(BadInput) as caught:
        ask(function)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


def test_a_list_of_targets_is_a_table(tmp_path):
    table = hx.exponents(["He3(z)", lambda x: x**2, "exp(z**2)", "sign(z1*z2)", "3"])
    assert len(table) == 5 and table[1].information_exponent == 2 and "\n" not in repr(table)
    lines = str(table).splitlines()
    assert len(lines) == 6 and lines[3].split()[1:4] == ["-", "-", "2"]
    latex = table.to_latex()
    assert latex.count(r"\\") == 6 and r"\infty" not in latex and "$d\\log d$" in latex
    with open(table.to_csv(tmp_path/"table.csv"), newline="") as file:
        rows = list(csv.DictReader(file))
    assert [r["information_exponent"] for r in rows] == ["3", "2", "", "2", ""] and rows[0]["one_pass_sgd"] == "d^2"
    assert table._repr_html_().count("<tr>") == 6 and len(table[:2]) == 2
    with pytest.raises(BadInput):
        hx.exponents([["z"]])


def test_undetermined_is_not_what_does_not_exist():
    nothing, late = hx.exponents("3"), inspect.unwrap(hx.exponents).__globals__["report"].undecided("z**2", why="no time")
    assert nothing.table_row()[1:6] == ("-",)*5 and late.table_row()[1:6] == ("?",)*5
    assert "does not exist" in nothing._html() and "undetermined" in late._html()
    growing = hx.exponents("exp(z**2)")
    assert growing.word("information_exponent", None) == "-" and growing.absent("amp") == "?"


@pytest.mark.parametrize(("ask", "value"), [
    (lambda: hx.E("kappa*z**2").doit(), kappa),
    (lambda: hx.E("mu*z**2", symbols="mu").doit(), Symbol("mu", real=True)),
    (lambda: hx.check("E(s*z**2)", "s", symbols="s>0").status, "proved"),
    (lambda: hx.check("E(alpha*z**2)", "alpha").status, "proved"),
    (lambda: round(hx.System({"V": "1/(lamda + Vhat)", "Vhat": "alpha/(1 + V)"}).solve(alpha=2, lam=0.1)["V"], 6), 0.844289),
    (lambda: round(hx.System({"u": "k/(1 + u)"}, symbols="k>0").solve(k=2)["u"], 9), 1.0),
    (lambda: round(hx.System({"u": "E(tanh(k*z)**2)*w"}, where={"w": "1 - u"}, parameters="k").solve(k=1.0)["u"], 3), 0.283),
])
def test_a_text_has_letters(ask, value):
    assert ask() == value


def test_an_unknown_letter_names_the_keyword_that_declares_it():
    for ask in (lambda: hx.E("mu*z**2"), lambda: hx.check("E(mu*z**2)", "1"), lambda: hx.System({"u": "mu/(1 + u)"})):
        with pytest.raises(BadInput, match="symbols="):
            ask()


@pytest.mark.parametrize(("owner", "name", "meant"), [
    (hx, "exponant", "exponents"), (hx, "Systm", "System"), (hx.theories, "onestep", "one_step"),
    (hx.theories, "randomfeatures", "random_features"),
])
def test_a_misspelt_name_is_answered_with_the_one_meant(owner, name, meant):
    with pytest.raises(AttributeError, match=f"did you mean .*{meant}"):
        getattr(owner, name)


def test_what_completes_is_there_or_says_why():
    theory = hx.theories.sgd("erf", "sign")
    assert "system" not in dir(theory) and "flow" in dir(theory)
    with pytest.raises(AttributeError, match="flow"):
        theory.system  # noqa: B018


def test_lambdify_says_what_makes_a_function():
    node = hx.E(hx.tanh(kappa + z), z)
    for module in ("numpy", "mpmath", "math", "scipy"):
        with pytest.raises(BadInput, match=r"hx\.compile"):
            sympy.lambdify(kappa, 1 + node, module)
    assert float(hx.compile(node)(kappa=1.0)) == pytest.approx(0.5504004907933272, abs=1e-12)


def test_help_shows_the_function():
    import inspect

    assert inspect.isfunction(hx.exponents) and "Every exponent of a target" in inspect.getdoc(hx.exponents)
    assert list(inspect.signature(hx.exponents).parameters) == ["target", "channel", "variables", "covariance", "budget"]


@pytest.mark.parametrize(("text", "meant"), [("x**2", "z"), ("tanh(x1)*x2", "z1"), ("Z", "z"), ("gelu(u)", "z"), ("y3 + z1", "z3")])
def test_what_others_call_a_normal_is_z(text, meant):
    with pytest.raises(hx.errors.UnknownName) as error:
        hx.parse(text)
    assert error.value.close_matches == [meant] and f"did you mean {meant}?" in str(error.value)


@pytest.mark.parametrize("ask", [lambda m: m("x"), lambda m: m.plot(kappa="x"), lambda m: m([0, None, "a"]), lambda m: m(0, r="b")])
@pytest.mark.parametrize("sigma", ["tanh", "relu"])
def test_a_coefficient_at_what_is_no_number_is_one_line(ask, sigma):
    with pytest.raises(hx.errors.BadInput, match="is a number or an array of numbers") as error:
        ask(hx.mu(sigma, 1))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("call", "says"), [
    (lambda: hx.mu("tanh(w*z)", 1), "give hx.parse(text, symbols={'w': 'real'})"),
    (lambda: hx.theories.one_step("tanh(w*z)", "sin"), "give hx.parse(text, symbols={'w': 'real'})"),
    (lambda: hx.expand("w*z", order=2, basis="monic"), "give hx.parse(text, symbols={'w': 'real'})"),
    (lambda: hx.compile("E(tanh(w*z))"), "symbols={'w': 'real'}"),
    (lambda: hx.free_energy("w*q**2 - q*qhat", {"q": "qhat"}), "symbols={'w': 'real'}"),
    (lambda: hx.free_energy("q**2 - q*qhat", ["q"]), "pairs are {order parameter: its conjugate, or None}"),
    (lambda: hx.System(["q"]), "equations are {unknown: right side}"),
    (lambda: hx.Flow("m = 1"), "equations are {unknown: right side}"),
    (lambda: hx.mu("tanh", "a"), "the order k is an integer"),
    (lambda: hx.check(None, 1), "check compares texts, numbers and SymPy expressions, not None"),
    (lambda: hx.cite(5), "unknown reference '5'"),
])
def test_one_line_says_what_to_give(call, says):
    with pytest.raises(hx.errors.HermitexError) as caught:
        call()
    assert says in str(caught.value) and "\n" not in str(caught.value)


def test_what_the_lines_advise_works():
    text = hx.parse("tanh(w*z)", symbols={"w": "real"})
    assert hx.mu(text, 1)(kappa=0, r=1, c=1, w=1) == pytest.approx(float(hx.E("1 - tanh(z)**2").evalf(15)), rel=1e-12)
    assert hx.compile("E(tanh(w*z)**2)", symbols={"w": "real"})(w=0.0) == 0
    assert hx.free_energy("w*q**2/2 - q*qhat + qhat**2", {"q": "qhat"}, symbols={"w": "real"}).unknowns
