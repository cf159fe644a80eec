"""An error reaches the user whole: its text, its parts, and its kind, also from another process."""

import copy
import pickle

import pytest

from hermitex import errors
from hermitex.errors import HermitexError
from hermitex.symbols import z

EXAMPLES = [
    errors.BadInput("no"), errors.ParseError("no"), errors.ConventionError("no"),
    errors.UnknownName("tann", ["tanh", "tan"]), errors.AssumptionNeeded("s", "positive"),
    errors.NoClosedForm(z**2, "it is hard"), errors.Divergent(z**2, "it grows"), errors.BudgetExceeded(3.0, "looking"),
    errors.NotConverged((1, 2), "not there yet"), errors.SelfTestFailed("off by 1"),
    errors.MissingExtra("flint", "flint", "an enclosure"),
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
