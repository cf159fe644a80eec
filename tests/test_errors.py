"""An error reaches the user whole: its text, its parts, and its kind, also from another process."""

import copy
import pickle
import traceback

import pytest
from sympy import Symbol

import hermitex as hx
from hermitex import errors
from hermitex.errors import HermitexError, public
from hermitex.symbols import z

EXAMPLES = [
    errors.BadInput("no"), errors.ParseError("no"), errors.ConventionError("no"),
    errors.UnknownName("tann", ["tanh", "tan"]), errors.AssumptionNeeded("s", "positive"),
    errors.NoClosedForm(z**2, "it is hard"), errors.Divergent(z**2, "it grows"), errors.BudgetExceeded(3.0, "looking"),
    errors.WorkExceeded(9, "looking"), errors.NotConverged((1, 2), "not there yet"), errors.SelfTestFailed("off by 1"),
    errors.MissingExtra("matplotlib", "plot", "a picture"), errors.NoValue("ridge", "lam", "1"),
]


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("carried", [lambda e: pickle.loads(pickle.dumps(e)), copy.copy], ids=["pickle", "copy"])
def test_an_error_travels(error, carried):
    back = carried(error)
    assert type(back) is type(error)
    assert str(back) == str(error)
    assert vars(back) == vars(error)


def test_every_error_is_tried():
    kinds = {k for k in vars(errors).values() if isinstance(k, type) and issubclass(k, HermitexError)}
    assert kinds - {type(e) for e in EXAMPLES} == {HermitexError}


def test_a_name_is_answered_with_close_ones():
    assert errors.UnknownName("tann", ["tanh", "floor"]).close_matches == ["tanh"]
    assert "did you mean" not in str(errors.UnknownName("qqqqq", ["tanh", "floor"]))


V, alpha = Symbol("V", positive=True), Symbol("alpha", positive=True)
RIDGE = hx.System({V: 1/(alpha + V)})
FALL = hx.Flow({V: -V})
TAKES_A_NUMBER = {
    "a parameter": lambda n: RIDGE.solve(alpha=n), "parameters": lambda n: RIDGE.solve(alpha=[1.0, n]),
    "a start": lambda n: RIDGE.solve(alpha=1, start={"V": n}), "a kernel": lambda n: hx.compile("tanh(a)")(a=n),
    "a grid": lambda n: hx.sweep(RIDGE, {"alpha": [1, n]}), "bounds": lambda n: RIDGE.minimise("V", over="alpha", bounds=(1, n)),
    "an end": lambda n: RIDGE.follow("alpha", (1, n)), "times": lambda n: FALL.solve(t=[0, n], start={"V": 1}),
    "where a flow begins": lambda n: FALL.solve(t=[0, 1], start={"V": n}),
    "a domain": lambda n: hx.System({V: 1/(1 + V)}, domain={V: (0, n)}),
    "its start": lambda n: hx.System({V: 1/(1 + V)}, start={V: n}),
    "a theory": lambda n: hx.theories.one_step("tanh", "sin").solve(alpha=n, beta=1, lam=.1, r=1, c=1, gamma=.5),
    "seeds": lambda n: hx.experiment(RIDGE, lambda seed, **_: {"V": 1.0}, seeds=n, alpha=1),
    "an export": lambda n: RIDGE.export("never.py", reference={"alpha": 1}, start={"V": n}),
}


@pytest.mark.parametrize("what", TAKES_A_NUMBER)
def test_what_is_no_number_in_double_precision_is_told_in_a_line(what):
    for number in (10**400, 10**5000, -(10**309), 1j, "1 + ", [[1], [2, 3]], object):
        with pytest.raises(HermitexError) as error:
            TAKES_A_NUMBER[what](number)
        assert "\n" not in str(error.value) and len(str(error.value)) < 300


def test_a_message_does_not_quote_a_text_of_any_length():
    for ask in (lambda: hx.parse("a"*100_000), lambda: hx.mu("b"*100_000, 1), lambda: hx.exponents("He3(z) + "*20_000)):
        with pytest.raises(HermitexError) as caught:
            ask()
        assert len(str(caught.value)) < 2_100


def test_a_derivative_by_what_is_no_letter_gets_a_line():
    with pytest.raises(errors.BadInput, match=r"z\*\*2"):
        hx.E("tanh(a*z)", z, symbols={"a": "real"}).diff("z**2")


def _deep(n):
    if not n:
        raise KeyboardInterrupt
    _deep(n - 1)


@pytest.mark.parametrize("kept", [False, True])
def test_an_interrupt_is_few_lines_in_a_notebook(kept, monkeypatch):
    x = Symbol("x")
    system = hx.System({x: 1 - x/2})
    monkeypatch.setattr(hx.System, "_begin", lambda self, *given: _deep(40))
    monkeypatch.setenv("HERMITEX_TRACEBACK", "1" if kept else "")
    for way in (lambda: public(_deep, "hermitex", "deep")(40), system.solve):
        with pytest.raises(KeyboardInterrupt) as caught:
            way()
        frames = traceback.extract_tb(caught.value.__traceback__)
        assert len(frames) > 40 if kept else len(frames) < 5
