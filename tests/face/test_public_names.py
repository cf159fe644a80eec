"""What stands in `hermitex` and `hermitex.theories`: counted, each with an example that runs as its doctest."""

import ast
import inspect
import pickle
import types

import pytest

import hermitex as hx

_NAMES = [("hermitex", n) for n in hx.__all__] + [("theories", n) for n in hx.theories.__all__]


@pytest.mark.every_case
@pytest.mark.parametrize("room, name", _NAMES)
def test_every_public_name_has_an_example(room, name):
    made = getattr(hx if room == "hermitex" else hx.theories, name)
    if isinstance(made, types.ModuleType) or name == "THEORIES":
        return
    said = type(made).__doc__ if room == "hermitex" and name in ("Phi", *hx._ACTIVATIONS) else made.__doc__
    assert said and ">>> " in said, f"{name} has no example in its docstring"


@pytest.mark.parametrize("room", [hx, hx.theories], ids=["hermitex", "theories"])
def test_a_type_checker_sees_what_there_is(room):
    """Both are imported when they are first used, which no editor follows: what it reads stands beside."""
    parsed = ast.parse(inspect.getsource(room)).body
    block = next(node for node in parsed if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    seen = {a.asname: f"{n.module}.{a.name}" for n in block.body if isinstance(n, ast.ImportFrom) for a in n.names if a.asname}
    table = {name: f"{room.__name__}.{module}.{attribute}" for name, (module, attribute) in vars(room)["_PUBLIC"].items()}
    modules = {name: f"hermitex.{name}" for name in vars(room).get("_MODULES", ())}
    named = {t.id for n in block.body if isinstance(n, ast.Assign) for t in n.targets}
    assert seen == table | modules and named == set(vars(room).get("_ACTIVATIONS", ()))


def test_the_public_names_are_counted():
    """A new one is a decision, not an accident."""
    assert len(set(hx.__all__)) == len(hx.__all__) <= 62 and len(hx.theories.__all__) <= 41


@pytest.mark.every_case
@pytest.mark.parametrize("room, name", [n for n in _NAMES if n[1] != "Derivative"])  # that is SymPy's, with its arguments
def test_parameters_of_public_functions_say_what_they_take(room, name):
    made = getattr(hx if room == "hermitex" else hx.theories, name)
    if inspect.isfunction(made):
        said = inspect.signature(made)
        named = [p for p in said.parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        plain = [p.name for p in named if p.annotation in ("Any", p.empty)]
        assert set(plain) <= {"system", "executor"} and said.return_annotation not in ("Any", said.empty)


# What a name, a shape or an arithmetic decides is Any, as in NumPy; so are parts of a System that are given in many forms.
_DECIDED = {"__getitem__", "__getattr__", "get", "value", "error", "evaluate", "__call__", "evalf", "n", "subs", "diff",
            "mpmath_value", "solved", "parameters", "positive", "kept", "support", "model", "m", "derivative", "escape_time",
            "samples"}


@pytest.mark.every_case
@pytest.mark.parametrize("room, name", _NAMES)
def test_attributes_of_public_classes_say_what_they_are(room, name):
    made = getattr(hx if room == "hermitex" else hx.theories, name)
    for kind in made.__mro__ if inspect.isclass(made) else ():
        if kind.__module__.startswith("hermitex"):
            parts = {n: inspect.unwrap(getattr(v, "fget", getattr(v, "func", v)) or v) for n, v in vars(kind).items()}
            said = {n: inspect.signature(f).return_annotation for n, f in parts.items() if n[0] != "_" and inspect.isfunction(f)}
            said |= vars(kind).get("__annotations__", {})
            plain = {n for n, a in said.items() if a in ("Any", inspect.Signature.empty)}
            assert plain <= _DECIDED, f"{kind.__name__} does not say what {sorted(plain - _DECIDED)} are"


@pytest.mark.every_case
@pytest.mark.parametrize("room, name", _NAMES)
def test_a_public_function_travels_under_its_public_name(room, name):
    made = getattr(hx if room == "hermitex" else hx.theories, name)
    if inspect.isfunction(made):
        assert pickle.loads(pickle.dumps(made)) is made and (name == "Derivative" or made.__name__ == name)


@pytest.mark.parametrize("call, words", [
    (lambda: hx.theories.one_step(sigma="tanh", target="sin"), "keyword of one_step 'target'; did you mean g?"),
    (lambda: hx.theories.one_step(activation="tanh", g="sin"), "keyword of one_step 'activation'; did you mean sigma?"),
    (lambda: hx.report("tanh", target="z"), "keyword of report 'target'; did you mean g?"),
    (lambda: hx.mu("tanh", order=1), "keyword of mu 'order'; did you mean k?"),
    (lambda: hx.System({"q": "1"}, observable={}), "keyword of System 'observable'; did you mean observables?"),
])
def test_a_keyword_that_is_not_there_suggests_the_one_that_is(call, words):
    with pytest.raises(hx.errors.UnknownName, match=words):
        call()


@pytest.mark.parametrize("call, words", [
    (lambda: hx.exponents(), r"exponents needs target: exponents\(target, ...\)"),
    (lambda: hx.load(), r"load needs path: load\(path\)"),
    (lambda: hx.theories.one_step(), r"one_step needs sigma and g: one_step\(sigma, g, ...\)"),
    (lambda: hx.System(), r"System needs equations: System\(equations, ...\)"),
    (lambda: hx.System({"q": "1"}).minimise("q"), r"minimise needs over: minimise\(objective, over, ...\)")])
def test_a_missing_argument_is_one_line(call, words):
    with pytest.raises(hx.errors.BadInput, match=words):
        call()


def test_an_error_from_within_a_function_stays_what_it_is():
    with pytest.raises(TypeError, match="unsupported operand"):
        hx.errors.public(lambda x: x + "1", "room", "name")(x=1)


@pytest.mark.parametrize("name", sorted(hx.theories.THEORIES))
def test_a_theory_has_the_name_that_the_command_line_knows(name):
    assert getattr(hx.theories, name.replace("-", "_")) is hx.theories.THEORIES[name]
