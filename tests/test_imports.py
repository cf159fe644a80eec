"""Imports run one way, at any depth of a file: errors, symbols -> show -> (solvers | symbolic) -> kernels ... face."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import hermitex

ROOT = Path(hermitex.__file__).parent
ORDER = {"errors": 0, "symbols": 0, "show": 1, "solvers": 2, "symbolic": 2, "kernels": 3, "systems": 4,
         "exponents": 5, "theories": 6, "experiments": 7, "face": 8,
         "__main__": 9}
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
                                             and {layer, rest[0]} != {"errors", "symbols"}):
            bad.append(name)
    return bad


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


def loaded_after(code):
    """The modules that a fresh interpreter holds after running `code`."""
    code += "\nimport sys; print('\\n' + ' '.join(sorted(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    return set(run.stdout.splitlines()[-1].split())


def test_importing_the_package_computes_nothing():
    assert not {"sympy", "numpy", "scipy", "mpmath"} & loaded_after("import hermitex")


@pytest.mark.parametrize("target", ["z1*z2*z3", "sign(z1*z2)", "He3(z1) + z1*z2"])
def test_what_needs_no_scipy_does_not_pay_for_it(target):
    assert "scipy" not in loaded_after(f"from hermitex.face.cli import main; assert main(['exponents', {target!r}]) == 0")


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


@pytest.mark.parametrize("before", ["", "import hermitex.exponents.report", "from hermitex.exponents import channels"])
def test_the_function_exponents_is_not_hidden_by_its_folder(before):
    loaded = loaded_after(f"{before}\nimport hermitex as hx; assert hx.exponents('z**2').information_exponent == 2")
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
