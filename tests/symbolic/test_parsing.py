"""A text means what it says, exactly; whatever else is typed gets one line, soon, and never runs."""

from __future__ import annotations

import pytest
import sympy as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hermitex as hx
from hermitex import E, Expectation, parse
from hermitex.errors import BadInput, BudgetExceeded, HermitexError, ParseError, UnknownName
from hermitex.symbolic.parsing import expression, to_text
from hermitex.symbols import z, z1, z2

mu, s = sp.Symbol("mu", real=True), sp.Symbol("s", positive=True)
HARMLESS = settings(suppress_health_check=[HealthCheck.too_slow])

MEANS = {
    "z**3 - 3*z": z**3 - 3*z,
    "0.1": sp.Rational(1, 10),
    "beta(z**2 + 1, 2)": sp.beta(z**2 + 1, 2),
    "1e-3*z": z/1000,
    "1/3": sp.Rational(1, 3),
    "-z**2": -z**2,
    "2**-1": sp.Rational(1, 2),
    "Rational(4,5)*sign(z)": sp.Rational(4, 5)*sp.sign(z),
    "1/(1 + exp(-z))": 1/(1 + sp.exp(-z)),
    "Max(0, z)": sp.Max(0, z),
    "Piecewise((1, z > 0), (0, True))": sp.Piecewise((1, z > 0), (0, True)),
    "Piecewise((1, (abs(z) > 1) & (abs(z) < 2)), (0, True))":
        sp.Piecewise((1, sp.And(abs(z) > 1, abs(z) < 2)), (0, True)),
    "Piecewise((1, -1 < z <= 2), (0, True))": sp.Piecewise((1, sp.And(z > -1, z <= 2)), (0, True)),
    "Piecewise((1, not (z > 1 or z < -1)), (0, True))": sp.Piecewise((1, sp.And(z <= 1, z >= -1)), (0, True)),
    "tanh(z) - z*E(z*tanh(z))": sp.tanh(z) - z*E(z*sp.tanh(z), z),
    "E(z1*z2, z1, z2, cov={(z1, z2): 1/2})": E(z1*z2, z1, z2, cov={(z1, z2): sp.Rational(1, 2)}),
    "E(z1*z2, z1)": E(z1*z2, z1),
    "erf(z1*z2/sqrt(2))": sp.erf(z1*z2/sp.sqrt(2)),
    "Piecewise((1, z² ≤ 2), (0, True))": sp.Piecewise((1, z**2 <= 2), (0, True)),
    "π*z": sp.pi*z,
    "  z\n + 1 ": z + 1,
    "exp(1)": sp.E,
    "CRootOf(x**5 - x - 1, 0)": sp.CRootOf(sp.Symbol("x")**5 - sp.Symbol("x") - 1, 0),
    "zeta(3) - EulerGamma/2 + gamma(1/4)": sp.zeta(3) - sp.EulerGamma/2 + sp.gamma(sp.Rational(1, 4)),
    "He3(z)": z**3 - 3*z,
    "log(z**2)*sqrt(abs(z))": sp.log(z**2)*sp.sqrt(abs(z)),
    "(z+1)**400": (z + 1)**400,
    "Piecewise((sqrt(z), z > 0), (0, True))": sp.Piecewise((sp.sqrt(z), z > 0), (0, True)),
}


@pytest.mark.parametrize("text", list(MEANS))
def test_a_text_is_the_expression_it_writes(text):
    assert parse(text) == MEANS[text]


def test_decimals_are_exact_and_not_the_nearest_binary_number():
    assert parse("0.1 + 0.2") == sp.Rational(3, 10)
    assert expression(0.1) == sp.Rational(1, 10) and expression(0.1*z) == z/10
    assert sp.Rational(0.1) != parse("0.1")  # the tooth: what a float would have given


def test_parameters_carry_their_assumptions():
    assert parse("mu + s*z", symbols="mu, s>0") == mu + s*z
    assert parse("mu + s*z", symbols={"mu": "real", "s": "positive"}) == parse("mu + s*z", symbols=[mu, s])
    assert parse("f(z)", symbols={"f": "function"}) == sp.Function("f")(z)
    assert parse("sqrt(1 - rho**2)*z1 + rho*z2", symbols="rho").free_symbols >= {z1, z2}
    for text in ("mu + z", "Sum(n, (n, 1, Q))"):
        with pytest.raises(UnknownName, match="declare it"):
            parse(text)
    for bad in ("z", "2x", "s>1", "pi", "s:positiv"):
        with pytest.raises(BadInput):
            parse("z", symbols=bad)


def test_variables():
    assert parse("z1", variables="z1, z2") == z1
    for text, variables in (("z3", "z1,z2"), ("z", ["z1"]), ("z*z1", "z,z1"), ("z1", ["x"])):
        with pytest.raises(BadInput):
            parse(text, variables=variables)


def test_a_plain_symbol_of_the_user_is_the_standard_normal():
    assert expression(sp.Symbol("z")**2) == z**2
    assert expression(sp.tanh) == sp.tanh(z) and expression(hx.tanh) == sp.tanh(z)
    for bad in (None, True, sp.oo, "", object(), [1], float("nan"), sp.Matrix([1])):
        with pytest.raises(BadInput):
            expression(bad)


# -- what is not in the grammar ---------------------------------------------------------------------------------------
REFUSED = [
    ("z^2", r"write \*\*"), ("2z", r"2\*z"), ("z z", "operator is missing"),
    ("(z", "never closed"), ("z)", "open here"),
    ("loggamma(z)", "not real"), ("LambertW(z)", "not real"), ("erfinv(z)", "not real"), ("besselk(0, z)", "not real"),
    ("0**z", "no definite"), ("e**z", r"exp\(1\)"), ("lambda*z", "lamda"), ("CRootOf(x**x, 0)", "polynomial"),
    ("CRootOf(x**2 + 1, 0)", "it has none"), ("CRootOf(x**5 - x - 1, 7)", "numbered from 0"),
    ("CRootOf(x**2 - 2, -1)", "numbered from 0"),
    ("E(log(z))", r"log\(z\) is not real at z"),
    ("E", r"exp\(1\)"), ("I*z", "imaginary"), ("tanh", r"write tanh\(z\)"), ("z(1)", "not a function"),
    ("sqrt(z)", r"sqrt\(abs\(z\)\)"), ("log(z)", r"log\(abs\(z\)\)"), ("z**(1/3)", "sign"), ("sqrt(-1)", "not a real"),
    ("log(-1)", "not a real"), ("asin(2)", "not a real"), ("1/0", "division by zero"),
    ("1/(z - z)", "division by zero"),
    ("0**0", "no value"), ("log(0)", "does not exist"), ("nan", "undefined"), ("inf", "infinite"), ("", "empty"),
    (" \t", "empty"), ("(z > 0)*1", "condition"), ("z > 0", "condition"),
    ("Piecewise((1, abs(z) > 1 & abs(z) < 2), (0, True))", "brackets"), ("Piecewise((1, z > 0))", "True"),
    ("Piecewise(1, 2)", "pairs"), ("tanh(z, z)", "one argument"), ("tanh()", "one argument"), ("tanh(z=1)", "keyword"),
    ("E(z1*z2, rho=1)", "cov="), ("E(z, 1)", "names"), ("E()", "needs"), ("E(z, cov={(z1, z3): 1})", "not among"),
    ("__import__('os').system('true')", "quotes"), ("z.real", "attributes"), ("z[0]", "brackets"),
    ("lambda: z", "lamda"),
    ("[z for z in z]", "brackets"), ("z if z > 0 else 0", "Piecewise"), ("import os", "word"), ("(z := 1)", "grammar"),
    ("ｚ", "write z"), ("z\u0301", "combining"), ("λ*z", "write lamda"), ("ﬁ", "write fi"), ("z\x00", "ASCII"),
    ("z\u202e1", "ASCII"), ("0x10", "operator"), ("007", "write 7"), ("1_000", "operator"), ("3j", "operator"),
    ("z,", "grammar"), ("*z", "missing"), ("z; z", "grammar"), ("z!", "factorial"), ("f'(z)", "quotes"),
    ("\\sigma", "LaTeX"),
    ("9**9**9**9", "digits"), ("z**10**9", "too large"), ("10**10**10", "digits"), ("2**-10**9", "digits"),
    ("sqrt(2)**10**9", "digits"), ("exp(10**9)", "digits"), ("floor(exp(10**9))", "digits"),
    ("exp(10**9*log(2))", "too large"),
    ("sign(exp(exp(exp(10))))", "digits"), ("gamma(10**9)", "up to"), ("digamma(10**9)", "up to"),
    ("((z**1000)**1000)**1000", "too large"),
    ("1e99999", "digits"), ("9"*2000, "digits"), ("z" + "+z"*30_000, "characters"), ("-"*40_000 + "z", "deep"),
    ("("*200 + "z" + ")"*200, "deep"), ("("*10_000, "deep"), ("**".join("z"*16_000), "deep"), ("1"*10**6, "characters"),
    ("gelu("*40 + "z" + ")"*40, "parts"), ("E(z*"*20 + "z" + ")"*20, "within each other"),
    ("Max(" + ",".join(f"sin({k}*z)" for k in range(200)) + ")", "at most"),
    ("+".join(f"1/(10**900 + {k})" for k in range(500)), "digits"),
]


def test_a_long_sum_is_read_or_refused():
    """Up to Python 3.12 the syntax tree of so many terms exhausts the stack."""
    try:
        assert hx.parse("z" + "+1"*9000) == z + 9000
    except BadInput as error:
        assert "deep" in str(error)


@pytest.mark.parametrize("text, advice", REFUSED, ids=lambda v: repr(v[:24]))
def test_what_is_not_in_the_grammar_gets_one_line(text, advice):
    with pytest.raises(BadInput, match=advice) as caught:
        parse(text)
    message = str(caught.value)
    assert "\n" not in message and len(message) < 400


@pytest.mark.parametrize("text, near", [("tnah(z)", "tanh"), ("Relu(z)", "ReLU"), ("piecewise((1, z > 0))", "Piecewise"),
                                        ("Pi*z", "pi"), ("os(z)", "cos"), ("He3z", "He3")])
def test_an_unknown_name_is_answered_with_the_closest_known_ones(text, near):
    with pytest.raises(UnknownName) as caught:
        parse(text)
    assert near in caught.value.close_matches and "position 1" in str(caught.value)


def test_no_name_of_python_can_be_called():
    for name in ("eval", "exec", "open", "getattr", "__import__", "print", "vars", "sympify", "Symbol", "lambdify"):
        with pytest.raises(UnknownName):
            parse(f"{name}(z)")


def test_a_budget_is_kept_while_reading():
    with hx.budget(0), pytest.raises(BudgetExceeded):
        parse("z + 1")


# -- hypothesis: round trips ------------------------------------------------------------------------------------------
numbers = st.one_of(st.integers(-50, 50).map(sp.Integer), st.fractions(-9, 9, max_denominator=99).map(sp.Rational),
                    st.sampled_from([sp.pi, sp.E, sp.EulerGamma, sp.Integer(10)**60, sp.sqrt(2)]))
atoms = st.one_of(numbers, st.sampled_from([z1, z2, mu, s]))


def _grow(inner):
    def safe(build):
        def made(*args):
            try:
                out = build(*args)
                return out if not out.has(sp.zoo, sp.nan, sp.oo, sp.I) else z1
            except (TypeError, ValueError, ZeroDivisionError):
                return z1
        return made

    return st.one_of(
        st.builds(safe(lambda a, b: a + b), inner, inner), st.builds(safe(lambda a, b: a*b), inner, inner),
        st.builds(safe(lambda a, k: a**k), inner, st.integers(-3, 5)),
        st.builds(safe(lambda f, a: f(a)), st.sampled_from([sp.tanh, sp.sin, sp.cos, sp.erf, sp.atan, sp.sign, sp.Abs,
                                                            sp.floor, sp.Heaviside, lambda u: sp.exp(sp.tanh(u)),
                                                            lambda u: sp.sqrt(1 + u**2), sp.asinh]), inner),
        st.builds(safe(sp.Max), inner, inner), st.builds(safe(sp.Min), inner, inner),
        st.builds(safe(lambda a, k, c: sp.Piecewise((a, sp.And(z1 > k, abs(z2) < 3)), (c, sp.Or(z1 <= mu, s*z2 > 1)),
                                                    (z1, True))), inner, st.integers(-3, 3), inner),
        st.builds(safe(lambda a: E(a, z1)), inner), st.builds(safe(lambda a: E(a, z1, z2, cov={(z1, z2): mu})), inner),
    )


expressions = st.recursive(atoms, _grow, max_leaves=8)


@settings(parent=HARMLESS, max_examples=60)
@given(expressions)
def test_a_text_gives_the_expression_back(expr):
    text = to_text(expr)
    try:
        again = parse(text, symbols=[mu, s])
    except BadInput as error:  # a constant beyond the bound on digits, or a value that is not real for some z
        assert any(w in str(error) for w in ("digits", "not real", "real number", "by zero", "within each other"))
        return
    # SymPy distributes 2*(x + y) when it builds: one more turn is then a fixed point.
    assert again == expr or parse(to_text(again), symbols=[mu, s]) == again
    assert again.free_symbols <= expr.free_symbols
    assert {n.level for n in again.atoms(Expectation)} <= {n.level for n in expr.atoms(Expectation)}


@settings(parent=HARMLESS, max_examples=150)
@given(st.text(alphabet=st.sampled_from("z12390.e+-*/()<>=&|~,{}: EabsinMxPw^_'[]λ²"), max_size=40))
def test_fuzz_raises_nothing_but_our_errors(text):
    try:
        parse(text)
    except HermitexError as error:
        assert "\n" not in str(error)


words = st.sampled_from(["z", "z1", "0", "1", "10", "9**9", "E(", "exp(", "log(", "sqrt(", "Max(", "Piecewise((",
                         "floor(", ")", "(", ",", "+", "-", "*", "/", "**", ">", "<", "&", "|", "~", "True", "sign(",
                         "abs(", "gamma(", "tan(", "He5(", "silu(", "and", "not", "pi", "cov={", "}"])


@settings(parent=HARMLESS, max_examples=150)
@given(st.lists(words, max_size=14))
def test_fuzz_by_words(parts):
    try:
        parse(" ".join(parts))
    except HermitexError as error:
        assert "\n" not in str(error)


def test_reading_is_cheap():
    """SymPy (which loads flint by itself where it is installed), and neither SciPy nor NumPy."""
    import subprocess
    import sys

    code = "import sys; from hermitex.symbolic.parsing import parse; parse('tanh(z)'); print(sorted(m for m in " \
           "('scipy', 'numpy', 'matplotlib', 'pandas') if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_errors_are_of_the_tree():
    with pytest.raises(ParseError):
        parse("z +")
    assert issubclass(ParseError, BadInput) and issubclass(UnknownName, BadInput)


@pytest.mark.parametrize("end", ["(k, 0, 3)", "(k, 1, 3)", "(k, 0, N)", "(k, 1, N - 1)", "(k, 1, oo)", "(k, 1, M)"])
def test_a_sum_ends_where_its_array_ends(end):
    """The end was not read: sums to 3 and to 5 were proved to be the same."""
    with pytest.raises(ParseError):
        parse(f"Sum(eta[k], {end})", symbols="M>0")
    assert parse("Sum(eta[k], (k, 0, N - 1))") == parse("Sum(eta[k], k)")


SUMS = ["Sum(n, (n, 1, M)) = M*(M + 1)/2", "Sum(n, (n, 0, M - 1)) = M*(M - 1)/2", "Sum(i*j, (i, 1, j), (j, 1, 3)) = 25",
        "Sum(E(z**n), (n, 0, 4)) = 5", "Sum(1/n**2, (n, 1, oo)) = pi**2/6",
        "Sum(eta[k]**n, (n, 1, 2), k) = Sum(eta[k]**2 + eta[k], k)"]


@pytest.mark.parametrize("claim", SUMS)
def test_a_sum_without_arrays_has_ends(claim):
    """Whole numbers and letters declared as integers, which were taken for lengths of arrays, or refused."""
    left, right = claim.split(" = ")
    assert hx.check(left, right, symbols="M:integer").status == "proved"
    assert not hx.check(left, f"{right} + 1", symbols="M:integer")


@pytest.mark.parametrize("text", ["Sum(n, (n, 1, m))", "Sum(n, (n, 1, z))", "Sum(1/n, (n, 1, oo))", "Sum(10**10**n, (n, 9, M))",
                                  "Sum(n, n, n)", "Sum(1/((n - 2)*(n - 3)), (n, 1, M))", "Sum(1/(n - 2), (n, 1, 3))"])
def test_what_has_no_sum_is_refused(text):
    """SymPy telescopes over a pole, and adds up any number of terms of any size."""
    with pytest.raises(BadInput):
        parse(text, symbols="M:integer, m:real")


def test_an_average_holds_z_and_z1_and_a_target_does_not():
    assert hx.E("E(relu(z1)*z1*z**2)").doit() == hx.E("relu(z)*z").doit()
    assert hx.E("z*Heaviside(z, 1/2)").doit() == hx.E("z*Heaviside(z)").doit()
    for asked in (hx.exponents, hx.theories.multi_index):
        for target in ("z*z1", hx.symbols.z*hx.symbols.z1):
            with pytest.raises(BadInput, match="z is mixed with z1; write the target in z alone"):
                asked(target)
