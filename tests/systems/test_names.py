"""One name, one meaning; one number, one spelling; one function, its own number of arguments: else one line."""

import random

import pytest
import sympy
from sympy import Function, Matrix, Symbol, symbols

from hermitex import Solution, System, free_energy, parse, sweep, theories
from hermitex.errors import BadInput, HermitexError
from hermitex.symbols import V, Vhat, alpha, lamda, z
from hermitex.systems.names import DIAGNOSTICS

x, k, a = symbols("x k a", real=True)


def one_line(error):
    return "\n" not in str(error.value) and len(str(error.value)) < 300


def build(groups):
    """A system in which each group has the names given it."""
    of = {n: Symbol(n, real=True) for names in groups.values() for n in names}
    return System({of[n]: a/(1 + a) for n in groups["unknown"]}, where={of[n]: a**2 for n in groups["where"]},
                  observables={n: a**3 for n in groups["observable"]}, parameters=["a", *groups["parameter"]])


@pytest.mark.parametrize("seed", range(30))
def test_a_name_with_two_meanings_is_refused(seed):
    draw = random.Random(seed)
    groups = {g: [f"{g[0]}{i}" for i in range(draw.randint(1, 3))] for g in ("unknown", "where", "observable", "parameter")}
    build(groups)  # as it stands it is a system
    one, other = draw.sample(list(groups), 2)
    name = draw.choice(groups[one])
    groups[other].insert(draw.randint(0, len(groups[other])), name)
    with pytest.raises(BadInput, match=name) as error:
        build(groups)
    assert one_line(error)


@pytest.mark.parametrize("group", ["unknown", "where", "observable", "parameter"])
@pytest.mark.parametrize("name", ["z", "z3", "residual", "converged", "reason"])
def test_a_name_that_is_taken_is_refused(group, name):
    groups = {"unknown": ["u"], "where": [], "observable": [], "parameter": []}
    groups[group].append(name)
    with pytest.raises(BadInput, match=name) as error:
        build(groups)
    assert one_line(error)


def test_what_a_table_says_of_a_solution_is_no_name_of_a_system():
    assert set(Solution({}, 0.0, True).table()) <= set(DIAGNOSTICS)


def test_two_symbols_of_one_name_are_one_entry():
    for groups in ({"observables": {"e": a, Symbol("e"): 2*a}}, {"where": {"e": a, Symbol("e"): 2*a}}, {"parameters": ["a", "a"]}):
        with pytest.raises(BadInput, match="is used twice"):
            System({x: a}, **groups)


@pytest.mark.parametrize("call", [
    lambda s: s.solve(lam=1, lamda=2), lambda s: s.solve({"lamda": 1}, lamda=2), lambda s: s.solve({"lamda": 1, lamda: 2}),
    lambda s: s.solve({"lam": 1, lamda: 2}), lambda s: s.subs(lam=1, lamda=2), lambda s: s.subs({lamda: 2}, lam=2),
    lambda s: s.accepted({"lam": 1, "lamda": 1}), lambda s: s.solve(lam=1, start={"V": 1, V: 2}),
    lambda s: System([(Matrix([[V]]), Matrix([[1/(1 + lamda)]]))]).solve(lam=1, start={Matrix([[V]]).as_immutable(): [[1]], V: 2}),
    lambda s: sweep(s, {"lam": [1, 2], "lamda": [1, 2]}), lambda s: sweep(s, {"lam": [1]}, parameters={"lamda": 1}),
    lambda s: sweep(s, {lamda: [1], "lamda": [2]}),
])
def test_a_number_that_is_given_twice_is_refused(call):
    with pytest.raises(BadInput, match="give it once") as error:
        call(System({V: 1/(1 + lamda)}))
    assert one_line(error)


def test_lam_is_itself_where_it_is_a_parameter():
    both = System({V: 1/(1 + lamda + 10*Symbol("lam", positive=True))})
    assert both.solve(lam=1, lamda=2)["V"] == pytest.approx(1/13)
    assert System({V: 1/(1 + lamda)}).subs(lam=3).solve()["V"] == 0.25


def test_names_in_kept_and_start_are_known():
    with pytest.raises(HermitexError, match="foo"):
        System({V: 1/(1 + lamda)}, kept=["foo"])
    with pytest.raises(HermitexError, match="foo"):
        System({V: 1/(1 + lamda)}).solve(lam=1, start={"foo": 1})


def test_an_observable_of_a_free_energy_is_no_unknown():
    phi = V*Vhat/2 - sympy.log(lamda + Vhat)/2 - alpha*sympy.log(1 + V)/2
    with pytest.raises(BadInput, match="Vhat is both an unknown and an observable"):
        free_energy(phi, {V: Vhat}, observables={"Vhat": alpha})


@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("put", ["tanh", "z**2", sympy.erf, "relu", "He3"])
def test_a_function_of_one_variable_takes_one_argument(put, count):
    f = Function("f")
    with pytest.raises(BadInput, match=f"{count} arguments"):
        System({x: f(*range(1, count + 1)) + a}).substitute(f=put)
    assert System({x: f(a) + a}).substitute(f="tanh").solve(a=0.0)["x"] == 0


@pytest.mark.parametrize("function", [sympy.Max, sympy.besselj, sympy.atan2, sympy.Lambda((x, a), x*a), lambda u, v: u, lambda: 1,
                                      lambda u: u > 0, "Max", "atan2", "z1*z2", "tanh(z, 2)", "tanh()", "leaky_relu(z, 1, 2)"])
def test_an_activation_is_a_function_of_one_variable(function):
    target = [] if function == "z1*z2" else [lambda f: theories.one_step("tanh", f)]  # a step learns several directions, too
    for make in (lambda f: theories.one_step(f, "sin"), theories.mu_star, *target):
        with pytest.raises(BadInput) as error:
            make(function)
        assert one_line(error)


@pytest.mark.parametrize("text", ["tanh(z, 1)", "erf()", "besselj(z)", "atan2(z)", "He3(z, 1)", "He(3)", "relu(z, z)", "f(1, 2)",
                                  "OwenT(z)", "sqrt(z, 2)", "exp(1, 2)", "DiracDelta(z, 1, 2)", "Rational(1, 2, 3)", "floor(z, 2)"])
def test_a_call_with_a_wrong_number_of_arguments_is_refused(text):
    with pytest.raises(BadInput) as error:
        parse(text)
    assert one_line(error)


def test_a_parameter_is_declared_once():
    with pytest.raises(BadInput, match="mu is declared twice"):
        parse("mu*z", symbols="mu, mu>0")
    with pytest.raises(BadInput, match="mu is declared twice"):
        parse("mu*z", symbols=[Symbol("mu"), Symbol("mu", positive=True)])
    assert parse("mu*z", symbols="mu, mu").has(z)
