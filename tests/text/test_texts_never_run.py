"""Every text that a user gives, whatever it is called: read by the grammar, taken for a name, or prose; never evaluated."""

import ast
import contextlib
from pathlib import Path

import pytest
from hostile import assert_nothing_ran, texts
from sympy import Idx, IndexedBase, Sum, Symbol, tanh

import hermitex as hx
from hermitex.errors import BadInput
from hermitex.kernels.arrays import lambdify
from hermitex.symbols import alpha, kappa, z, z1, z2

V = Symbol("V", positive=True)
NODE = hx.E(tanh(kappa*z), z)
RIDGE = hx.System({V: 1/(alpha + V)})
MU = hx.mu("tanh", 1)
_eta, _k = IndexedBase("eta"), Idx("k", Symbol("N", integer=True))
ARRAY = hx.System({V: 1/(1 + Sum(_eta[_k]*V, _k))})
HOLES = {  # what is called with a text where a formula, a name or a number stands
    "parse": hx.parse, "a declared name": lambda t: hx.parse("a", symbols={t: "real"}),
    "an assumption": lambda t: hx.parse("a", symbols={"a": t}), "E": lambda t: hx.E(t, z),
    "a variable": lambda t: hx.E("tanh(z)", t), "a covariance": lambda t: hx.E(z1*z2, z1, z2, cov={(z1, z2): t}),
    "evalf": lambda t: NODE.evalf(9, subs={kappa: t}), "n": lambda t: NODE.n(subs={t: 1}),
    "subs": lambda t: NODE.subs(kappa, t), "subs, a mapping": lambda t: NODE.subs({"kappa": t}),
    "subs, pairs": lambda t: NODE.subs([(kappa, t)]), "diff": NODE.diff, "He": lambda t: hx.He(3, t),
    "expand": lambda t: hx.expand(t, order=3, basis="monic"), "basis": lambda t: hx.expand("tanh", order=3, basis=t),
    "stein": lambda t: hx.stein(t, z), "check": lambda t: hx.check(t, "z"), "mu": lambda t: hx.mu(t, 1),
    "kappa": lambda t: MU(kappa=t, r=1, c=1), "r": lambda t: MU(kappa=kappa, r=t, c=1),
    "c": lambda t: MU(kappa=kappa, r=1, c=t), "bias": lambda t: MU(kappa=kappa, r=1, c=1, bias=t), "compile": hx.compile,
    "a parameter": lambda t: hx.compile("tanh(z)", t), "a value": lambda t: hx.compile("tanh(z)")(z=t),
    "exponents": hx.exponents, "channel": lambda t: hx.exponents("z", channel=t),
    "of a channel": lambda t: hx.exponents("z", channel=f"gaussian:{t}"), "a law": lambda t: hx.Channel(t, "y"),
    "a label": lambda t: hx.Channel("exp(-(y - z)**2/2)/sqrt(2*pi)", t),
    "a support": lambda t: hx.Channel("1/2", "y", support=[t, 1]), "closed form": hx.closed_form,
    "an unknown": lambda t: hx.System({t: 1}), "an equation": lambda t: hx.System({V: t}),
    "where": lambda t: hx.System({V: 1}, where={"a": t}), "a where name": lambda t: hx.System({V: 1}, where={t: 1}),
    "parameters": lambda t: hx.System({V: 1}, parameters=[t]).compile(),
    "an observable": lambda t: hx.System({V: 1}, observables={"o": t}), "positive": lambda t: hx.System({V: 1}, positive=[t]),
    "a substitution": lambda t: RIDGE.subs(alpha=t), "a number": lambda t: RIDGE.solve(alpha=t),
    "a start": lambda t: RIDGE.solve(alpha=1, start={"V": t}), "an unknown's name": lambda t: RIDGE.solve(alpha=1)[t],
    "free energy": lambda t: hx.free_energy(t, pairs={"V": "Vhat"}),
    "a pair": lambda t: hx.free_energy("V*Vhat + Vhat**2 + V**2", pairs={t: "Vhat"}), "Prox": lambda t: hx.Prox(t, "f", 1, 1),
    "a domain": lambda t: hx.Prox("f**2", "f", 1, 1, domain=(t, 1)),
    "an activation": lambda t: hx.theories.one_step(t, "sin"),
    "a target": lambda t: hx.theories.one_step("tanh", t), "a loss": lambda t: hx.theories.one_step("tanh", "sin", loss=t),
    "a network": lambda t: hx.theories.one_step("tanh", "sin", network=t),
    "rows": lambda t: hx.theories.one_step("tanh", "sin", rows=t),
    "features": lambda t: hx.theories.random_features(t, "sin"), "a grid": lambda t: hx.sweep(RIDGE, {"alpha": [t]}),
    "a system's domain": lambda t: hx.System({V: 1/(alpha + V)}, domain={V: t}),
    "a domain's name": lambda t: hx.System({V: 1/(alpha + V)}, domain={t: (0, 1)}),
    "a system's start": lambda t: hx.System({V: 1/(alpha + V)}, start={V: t}),
    "along": lambda t: RIDGE.follow(t, (1, 2)), "an end": lambda t: RIDGE.follow("alpha", (1, t)),
    "over": lambda t: RIDGE.minimise("V", over=t, bounds=(1, 2)),
    "what is least": lambda t: RIDGE.minimise(t, over="alpha", bounds=(1, 2)),
    "method": lambda t: RIDGE.solve(alpha=1, method=t), "a flow": lambda t: hx.Flow({V: t}),
    "a flow's unknown": lambda t: hx.Flow({t: -V}), "a time": lambda t: hx.Flow({V: -V}).solve(t=t, start={"V": 1}),
    "a flow's start": lambda t: hx.Flow({V: -V}).solve(t=[0, 1], start={"V": t}),
    "an array": lambda t: ARRAY.solve(eta=t), "a student": lambda t: hx.theories.committee(t, students=1, teachers=1),
    "a committee's size": lambda t: hx.theories.committee("erf(z)", students=t, teachers=1),
    "a kernel": lambda t: hx.theories.kernel_limit(t), "an exponent": lambda t: hx.theories.source_capacity(t, "1/2"),
    "a kernel's target": lambda t: hx.theories.kernel_ridge("relu", t),
    "a kernel's function": lambda t: hx.theories.kernel_ridge(t, "z"),
    "a measured name": lambda t: hx.experiment(RIDGE, lambda seed, **_: {t: 1.0}, seeds=1, alpha=1),
    "what is measured": lambda t: hx.experiment(RIDGE, lambda seed, **_: {"V": t}, seeds=1, alpha=1),
    "where it is measured": lambda t: hx.experiment(RIDGE, lambda seed, **_: {"V": 1.0}, seeds=1, alpha=1, at=t),
    "a page's text": lambda t: hx.Result("a", "b").text(t), "a page's step": lambda t: hx.Result("a", "b").step(t, t, t),
    "an assumption of a page": lambda t: hx.Result("a", "b").assume(t, quoted=t),
    "a name of a page": lambda t: hx.Result("a", "b").name(t, t),
    "an axis": lambda t: hx.sweep(RIDGE, {t: [1.0]}), "cite": lambda t: hx.Result("a", "b", source=t).bibtex(),
}
CODE = [t for t in texts(5, 0) if "hermitex_canary" in t]


@pytest.mark.parametrize("hole", HOLES)
def test_a_text_is_read_or_refused_never_run(hole):
    for text in (CODE[0], CODE[-5], CODE[4], "(lambda: 0)()", "().__class__.__base__"):
        with contextlib.suppress(Exception):  # refused, in whatever words
            HOLES[hole](text)
        assert_nothing_ran()


def test_tooth_the_canary_is_heard():
    eval("setattr(__import__('builtins'), 'hermitex_canary', 1)")
    with pytest.raises(AssertionError):
        assert_nothing_ran()


def test_texts_in_a_node_are_read():
    assert NODE.subs("kappa", 2) == NODE.subs(kappa, 2) == NODE.subs({"kappa": "2"}) == NODE.subs([("kappa", 2)])
    assert NODE.evalf(9, subs={"kappa": "1/2"}) == NODE.evalf(9, subs={kappa: 0.5}) == 0 and NODE.diff("kappa") == NODE.diff(kappa)
    assert NODE.subs(kappa, "alpha + 1").has(alpha)


def test_a_function_of_arrays_knows_its_symbols_only():
    odd = Symbol("setattr(__import__('builtins'), 'hermitex_canary', 1)")
    assert lambdify([odd, Symbol("exp")], odd*tanh(Symbol("exp")), ["numpy"])(2.0, 0.0) == 0
    for wrong in (odd + kappa, __import__("sympy").Function("print")(kappa)):
        with pytest.raises(BadInput, match="has no value"):
            lambdify([kappa], wrong, ["numpy"])
    assert_nothing_ran()


# -- the package itself ------------------------------------------------------------------------------------------------
ALLOWED = {  # what runs text, and where it may stand
    "exec": {"kernels/source.py"}, "compile": {"kernels/whitelist.py"},
    "exec_module": {"face/userfile.py"}, "spec_from_file_location": {"face/userfile.py"}, "module_from_spec": {"face/userfile.py"},
    **{name: set() for name in (
        "eval", "__import__", "parse_expr", "parse_latex", "os.system", "os.popen", "run_path", "run_module", "pickle.loads",
        "pickle.load", "sympy.lambdify")},
}


def called(path):
    """(what is called, the call) for every call in a file, and the imports of lambdify."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    ours = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and str(n.module).startswith("hermitex")]
    own = {a.name for n in ours for a in n.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id not in own:
            yield node.func.id, node
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            whose = getattr(node.func.value, "id", "")
            yield node.func.attr if node.func.attr not in ("compile", "eval") else "", node
            yield f"{whose}.{node.func.attr}", node
        elif isinstance(node, ast.ImportFrom) and node.module == "sympy" and "lambdify" in [a.name for a in node.names]:
            yield "sympy.lambdify" if path.name != "arrays.py" else "", node


def test_nothing_else_in_the_package_evaluates_a_text():
    root = Path(hx.__file__).parent
    for path in sorted(root.rglob("*.py")):
        place = path.relative_to(root).as_posix()
        for name, node in called(path):
            if name in ("sympify", "_sympify"):
                strict = [k for k in node.keywords if k.arg == "strict" and getattr(k.value, "value", None) is True]
                assert strict, f"{place}:{node.lineno}: sympify evaluates a text unless it is strict"
            assert name not in ALLOWED or place in ALLOWED[name], f"{place}:{node.lineno}: {name}"
