"""What stands in `hermitex` and `hermitex.theories`: counted, each with an example that runs as its doctest."""

import inspect
import types

import pytest

import hermitex as hx

_NAMES = [("hermitex", n) for n in hx.__all__] + [("theories", n) for n in hx.theories.__all__]


@pytest.mark.parametrize("room, name", _NAMES)
def test_every_public_name_has_an_example(room, name):
    made = getattr(hx if room == "hermitex" else hx.theories, name)
    if isinstance(made, types.ModuleType) or name == "THEORIES":
        return
    said = type(made).__doc__ if room == "hermitex" and name in ("Phi", *hx._ACTIVATIONS) else made.__doc__
    assert said and ">>> " in said, f"{name} has no example in its docstring"


def test_the_public_names_are_counted():
    """A new one is a decision, not an accident."""
    assert len(set(hx.__all__)) == len(hx.__all__) <= 62 and len(hx.theories.__all__) <= 36


@pytest.mark.parametrize("room, name", [n for n in _NAMES if n[1] != "Derivative"])  # that is SymPy's, with its arguments
def test_parameters_of_public_functions_say_what_they_take(room, name):
    made = getattr(hx if room == "hermitex" else hx.theories, name)
    if inspect.isfunction(made):
        said = inspect.signature(made)
        named = [p for p in said.parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        plain = [p.name for p in named if p.annotation in ("Any", p.empty)]
        assert set(plain) <= {"system", "executor"} and said.return_annotation not in ("Any", said.empty)
