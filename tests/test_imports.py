"""Imports run one way, at any depth of a file: errors, symbols -> show -> (solvers | symbolic) -> kernels ... face.

The same inside symbolic, floor by floor; and no circle between files anywhere.
"""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import hermitex

ROOT = Path(hermitex.__file__).parent
ORDER = {"errors": 0, "symbols": 0, "hints": 0, "processor": 0, "show": 1, "solvers": 2, "symbolic": 2, "numbers": 2, "check": 2,
         "kernels": 3, "systems": 4, "pages": 5, "exponents": 6, "theories": 7, "experiments": 8, "face": 9, "__main__": 10}
# Rooms of one height that use one another file by file, never in a circle.
TOGETHER = {room: group for group in ({"errors", "symbols"}, {"symbolic", "numbers", "check"}) for room in group}
# The floors of symbolic: the longest name that fits tells a file's floor, which may use any before it, and its own.
FLOORS = (
    ("hooks", "budget", "deadline", "interrupts", "arithmetic", "special", "subexpressions"),
    ("gaussian", "covariance", "law_constraints", "laws", "weighted_laws", "densities", "density_pieces", "terms",
     "tails", "conditioning", "conditional_expectation", "formula_size", "indexed_sums", "integral_averages", "series.polynomials",
     "engine.rational_tidying"),
    ("breaks", "pieces", "square_roots", "surfaces", "weak", "undefined", "named_functions", "parity", "scales"),
    ("bounds", "growth"),
    ("engine", "integrals", "divergence", "existence_check", "dimension_reduction", "radial"),
    ("digits", "precise", "zero", "definite", "vanishing"),
    ("losses", "moreau", "text", "parsing"),
    ("series", "activations", "derivation", "invariance", "partial_tensors",
     "stein", "subspaces", "summands", "hermite_tensors"),
    ("",),  # the package itself, which fills the hooks
)
FOREIGN = {"symbolic": {"numpy", "scipy", "pandas", "matplotlib"}, "solvers": {"sympy", "mpmath", "flint"},
           "show": {"scipy"}}
FILES = sorted(p for p in ROOT.rglob("*.py") if p != ROOT / "__init__.py")


def imported(source, package):
    """Every module that a source text imports, inside functions too; relative names resolved in `package`."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join([*package.split(".")[:len(package.split(".")) - node.level + 1], *filter(None, [base])])
            found |= {f"{base}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "import_module":
            found |= {a.value for a in node.args[:1] if isinstance(a, ast.Constant)}
    return found


def breaches(source, path):
    """What a file at `path` (below the package) imports against the arrow."""
    layer = path.parts[0].removesuffix(".py")
    package = ".".join(["hermitex", *path.parts[:-1]])
    bad = []
    for name in imported(source, package):
        top, *rest = name.split(".")
        if top in FOREIGN.get(layer, ()):
            bad.append(name)
        if top != "hermitex" or not rest or rest[0] not in ORDER:
            continue
        if ORDER[rest[0]] > ORDER[layer] or (ORDER[rest[0]] == ORDER[layer] and rest[0] != layer
                                             and not {layer, rest[0]} <= TOGETHER.get(layer, set())):
            bad.append(name)
    return bad


def test_a_file_name_appears_once():
    """`scales.py` in two rooms is one name too many: each file is named by its own noun."""
    names = [path.name for path in FILES if path.name != "__init__.py"]
    assert not {name for name in names if names.count(name) > 1}


@pytest.mark.every_case
@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_layer_order(path):
    assert not breaches(path.read_text(encoding="utf-8"), path.relative_to(ROOT))


def test_every_folder_has_its_place():
    folders = {p.name for p in ROOT.iterdir() if p.is_dir() and p.name != "__pycache__"}
    assert folders <= set(ORDER)


@pytest.mark.parametrize("source", [
    "from hermitex.kernels.averages import averages",
    "def f():\n    from hermitex.theories import conditional",
    "def f():\n    import hermitex.face.cli",
    "from hermitex import solvers",
    "from ..solvers import newton",
    "import numpy as np",
    "class A:\n    def f(self):\n        if 1:\n            from scipy import special",
    "from importlib import import_module\nimport_module('hermitex.kernels.averages')",
])
def test_a_breach_is_found(source):
    assert breaches(source, Path("symbolic/planted.py"))


@pytest.mark.parametrize("source", [
    "from hermitex.symbolic.gaussian import E", "from hermitex import symbols", "from .gaussian import E",
    "from hermitex.show.display import Shown", "import sympy, mpmath",
])
def test_what_is_allowed_is_not_a_breach(source):
    assert not breaches(source, Path("symbolic/planted.py"))


# -- the floors of symbolic --------------------------------------------------------------------------------------------------
def floor_of(name):
    """The floor of a module of symbolic, named from there: "engine.rational_tidying"."""
    known = {n: k for k, names in enumerate(FLOORS) for n in names}
    fitting = [n for n in known if name == n or (n and name.startswith(n + "."))]
    return known[max(fitting, key=len)] if fitting else None


def climbs(source, name):
    """What a module of symbolic imports from a higher floor."""
    own = floor_of(name)
    inside = {m.removeprefix("hermitex.symbolic.") for m in imported(source, "") if m.startswith("hermitex.symbolic.")}
    return sorted(m for m in inside if floor_of(m) is not None and floor_of(m) > own)


SYMBOLIC = {dotted.removeprefix("symbolic").lstrip("."): p for p in FILES
            if (dotted := ".".join(p.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")).startswith("symbolic")}


def test_every_file_of_symbolic_has_its_floor():
    assert not [name for name in SYMBOLIC if floor_of(name) is None]


@pytest.mark.every_case
@pytest.mark.parametrize("name", SYMBOLIC)
def test_floors_of_symbolic(name):
    assert not climbs(SYMBOLIC[name].read_text(encoding="utf-8"), name)


@pytest.mark.parametrize(("source", "name"), [
    ("from hermitex.symbolic.parsing import parse", "gaussian"),
    ("def f():\n    from hermitex.symbolic.precise import evaluate", "engine.several_variables"),
    ("from hermitex.symbolic import zero", "breaks.roots"),
])
def test_a_breach_of_the_floors_is_found(source, name):
    assert climbs(source, name)


# -- circles -----------------------------------------------------------------------------------------------------------------
def arrows(sources):
    """{module: the modules of the package that it imports}, at any depth of the file, also for type checkers only."""
    found = {}
    for name, source in sources.items():
        targets = set()
        for there in imported(source, name if name in {n.rpartition(".")[0] for n in sources} else name.rpartition(".")[0]):
            while there and there not in sources:
                there = there.rpartition(".")[0]
            targets.add(there)
        found[name] = targets - {name, "", "hermitex"}
    return found


def circles(graph):
    """What is left when all that imports nothing left, or is imported by nothing left, is taken away."""
    left = dict(graph)
    while True:
        used = set().union(*left.values()) if left else set()
        ends = [n for n, to in left.items() if not (to & set(left)) or n not in used]
        if not ends:
            return sorted(left)
        for n in ends:
            del left[n]


def test_there_is_no_circle_between_files():
    sources = {".".join(("hermitex", *p.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__"):
               p.read_text(encoding="utf-8") for p in FILES}
    assert not circles(arrows(sources))


def test_a_circle_is_found():
    """Of two files, of three; deferred, relative, for type checkers only, through a folder."""
    a, b, c = "hermitex.x.a", "hermitex.x.b", "hermitex.y.c"
    assert circles(arrows({a: "from hermitex.x.b import f", b: "def f():\n    from hermitex.x.a import g"})) == [a, b]
    assert circles(arrows({a: "from .b import f", b: "from hermitex.y import c", c: "import hermitex.x.a"})) == [a, b, c]
    assert circles(arrows({a: "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from hermitex.x import b",
                           b: "from . import a", c: ""})) == [a, b]
    assert not circles(arrows({a: "from hermitex.x.b import f", b: "from hermitex.y.c import g", c: "import sympy"}))


# -- the hooks of symbolic ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("code", [
    "from hermitex.symbolic.gaussian import E; assert E('z**4').doit() == 3",
    "from hermitex.symbolic.gaussian import E, Expectation; assert abs(E('z*tanh(z)').evalf(20) - 0.6057) < 1e-4",
    "from hermitex.symbolic import gaussian; from hermitex.symbols import kappa, z; "
    "assert gaussian.E((kappa + z)**2, z).diff(kappa).doit() == 2*kappa",
    "import pickle, hermitex as hx; node = hx.E('z**4'); text = pickle.dumps(node); import subprocess, sys; "
    "run = subprocess.run([sys.executable, '-c', 'import pickle, sys; print(pickle.loads(sys.stdin.buffer.read()).doit())'], "
    "input=text, capture_output=True, check=True); assert run.stdout.strip() == b'3'",
])
def test_a_node_finds_its_floors_however_it_was_reached(code):
    assert "hermitex.symbolic.gaussian" in loaded_after(code)


def test_a_node_alone_loads_nothing_above_it():
    above = {"parsing", "stein", "integrals", "precise"}
    assert not {f"hermitex.symbolic.{n}" for n in above} & loaded_after("import hermitex.symbolic.gaussian")


def loaded_after(code):
    """The modules that a fresh interpreter holds after running `code`."""
    code += "\nimport sys; print('\\n' + ' '.join(sorted(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    return set(run.stdout.splitlines()[-1].split())


def test_importing_the_package_computes_nothing():
    assert not {"sympy", "numpy", "scipy", "mpmath"} & loaded_after("import hermitex")


@pytest.mark.parametrize("argv", [
    ["exponents", "z1*z2*z3"], ["exponents", "sign(z1*z2)"], ["exponents", "He3(z1) + z1*z2"],
    ["check", "E(z*tanh(z))", "E(1 - tanh(z)**2)"],
    ["curve", "glm", "--alpha", "1", "--lam", "0.1"]], ids=lambda argv: " ".join(argv[:2]))
def test_what_needs_no_scipy_does_not_pay_for_it(argv):
    """The start of a verb from an installation that nobody may write to, and so without bytecode, is most of its time."""
    assert "scipy" not in loaded_after(f"from hermitex.face.cli import main; assert main({argv!r}) == 0")


@pytest.mark.parametrize("argv", [["--help"], ["--version"], ["exponents", "--help"], ["mu", "--help"]])
def test_help_is_instant(argv):
    loaded = loaded_after(f"from hermitex.face.cli import main; assert main({argv!r}) == 0")
    assert not {"sympy", "numpy", "scipy", "mpmath", "flint", "matplotlib"} & loaded


@pytest.mark.parametrize("argv", [["exponents", "z**3 - 3*z", "--json"], ["expect", "z**4"],
                                  ["hermite", "z**3", "--order", "3", "--basis", "monic"], ["mu", "z**3"]])
def test_an_exact_answer_imports_no_scipy(argv):
    loaded = loaded_after(f"from hermitex.face.cli import main; assert main({argv!r}) == 0")
    assert not {"scipy", "numpy", "matplotlib", "pandas"} & loaded


def test_every_public_name_is_there():
    missing = []
    for name in hermitex.__all__:
        try:
            getattr(hermitex, name)
        except (ImportError, AttributeError, KeyError) as error:
            missing.append(f"{name}: {error}")
    assert not missing
    assert set(hermitex.__all__) <= set(dir(hermitex))


@pytest.mark.parametrize("before", ["", "import hermitex.exponents.report", "from hermitex.exponents import channels",
                                    "import hermitex; hermitex.exponents; import hermitex.exponents"])
def test_the_function_exponents_is_not_hidden_by_its_folder(before):
    loaded = loaded_after(f"{before}\nimport inspect, hermitex as hx; assert inspect.isfunction(hx.exponents); "
                          "assert hx.exponents('z**2').information_exponent == 2")
    assert "hermitex.exponents.report" in loaded


def test_an_unknown_public_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nonsense"):
        hermitex.nonsense  # noqa: B018


def test_a_breach_of_the_precision_of_the_library_is_found():
    """A number of mpmath's own context rounds what it meets to the precision that the user has set there."""
    allowed = ("mpmath.libmp", "mpmath.calculus.quadrature")
    for path in sorted(ROOT.rglob("*.py")):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        names = {a.name for n in nodes if isinstance(n, ast.Import) for a in n.names}
        names |= {n.module or "" for n in nodes if isinstance(n, ast.ImportFrom)}
        plain = {n for n in names if n.split(".")[0] == "mpmath" and n not in allowed}
        assert not plain or path.name in ("arithmetic.py", "reality.py"), f"{path}: take {plain} from hermitex.symbolic.arithmetic"
