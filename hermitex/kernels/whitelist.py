"""source -> its tree, if it holds nothing but formulas: read before generated source is loaded or written.

A generated function reads numbers (`s["q"]`), nodes (`quad["z"]`) and names that it has set, does arithmetic, calls functions of
NumPy and SciPy that the printers know, and returns a dictionary. It contains the helpers letter by letter. Anything
else is refused: this is a list of what is allowed, not of what is forbidden.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from types import CodeType

from hermitex.errors import BadInput
from hermitex.kernels.generated_text import is_reserved
from hermitex.kernels.helpers import HELPERS
from hermitex.kernels.printers import CONSTANTS, NUMPY, SPECIAL
from hermitex.kernels.proximal import SOLVER

_ARITHMETIC = (ast.operator, ast.unaryop, ast.cmpop, ast.expr_context)
_RESULTS = ("kernel", "tables", "right_hand_sides", "observables", "lawful")
#: What generated modules may import of scipy.special: the functions of formulas, and the ones that the helpers need.
IMPORTED = SPECIAL | {n for needs, _ in HELPERS.values() for n in needs}
Docs = dict[str, str]  # function -> its docstring


@lru_cache(maxsize=16)
def check_source(source: str, rewritten: Callable[[ast.Module], ast.Module] | None = None) -> tuple[CodeType, Docs]:
    """The code of a generated module, and the docstrings of its functions.

    rewritten : makes the tree of the code out of the checked one

    Raises
    ------
    BadInput : it holds something other than formulas.

    Examples
    --------
    >>> sorted(check_source('def kernel(s, quad):\\n    x = s["x"]\\n    return {"value": x*x}')[1])
    ['kernel']
    >>> check_source('def kernel(s, quad):\\n    return {"value": open("f")}')  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    hermitex.errors.BadInput: this source was not written ... (line 2: open is no function of a formula); compile the formula again
    """
    tree = read(source)
    docs = check_functions(tree.body, check_imports(tree.body))
    return compile(rewritten(tree) if rewritten else tree, "<hermitex kernel>", "exec"), docs


def read(source: str) -> ast.Module:
    """The tree of a text."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError) as error:
        raise _refused(getattr(error, "lineno", None), str(getattr(error, "msg", error))) from None


def check_imports(nodes: Iterable[ast.stmt]) -> set[str]:
    """What the import lines of a generated module bring: NumPy as np and functions of scipy.special, nothing else."""
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            if [(a.name, a.asname) for a in node.names] != [("numpy", "np")]:
                raise _refused(node.lineno, f"it imports {node.names[0].name}")
        elif isinstance(node, ast.ImportFrom):
            found = {a.asname or a.name for a in node.names}
            if node.module != "scipy.special" or node.level or not found <= IMPORTED:
                raise _refused(node.lineno, f"it imports from {node.module}")
            names |= found
    return names


def check_functions(nodes: Iterable[ast.stmt], special: set[str]) -> Docs:
    """Check the functions among the statements of a module, and refuse other statements; their docstrings.

    special : the functions of scipy.special that are imported.
    """
    docs: Docs = {}
    known = set(special)
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            continue
        if not isinstance(node, ast.FunctionDef) or node.name in known | set(docs):
            raise _refused(node.lineno, f"a statement {type(node).__name__}")
        if node.name in _helpers():
            if ast.dump(node) != _helpers()[node.name]:
                raise _refused(node.lineno, f"{node.name} is another function than that of this version")
            known.add(node.name)
        elif node.name.startswith("prox_") and is_reserved(node.name):
            docs[node.name] = _Minimiser(node, known).doc
            known.add(node.name)
        elif node.name.startswith("fields_") and is_reserved(node.name):
            docs[node.name] = _FieldFunctions(node, known).doc
            known.add(node.name)
        elif node.name.startswith("sum_") and is_reserved(node.name):
            docs[node.name] = _BlockSums(node, known).doc
            known.add(node.name)
        elif node.name in _RESULTS or (node.name.startswith("block_") and is_reserved(node.name)):
            docs[node.name] = _Formulas(node, known).doc
        else:
            raise _refused(node.lineno, f"a function {node.name[:40]}")
    return docs


@lru_cache(maxsize=1)
def _helpers() -> Mapping[str, str]:
    """{name: tree} of the helpers in the only form that is allowed."""
    texts = [*(text for _, text in HELPERS.values()), SOLVER]
    return {n.name: ast.dump(n) for text in texts for n in ast.parse(text).body if isinstance(n, ast.FunctionDef)}


class _Formulas:
    """One function of (s, quad): assignments of formulas, then a dictionary."""

    arguments: tuple[str, ...] = ("s", "quad")

    def __init__(self, node: ast.FunctionDef, callable_names: set[str]) -> None:
        self.functions, self.known = callable_names, set[str]()
        self.doc = ""
        self.begin(node)
        body = list(node.body)
        if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) and isinstance(body[0].value.value, str):
            self.doc = body.pop(0).value.value  # type: ignore[attr-defined]
        for statement in body[:-1]:
            self.statement(statement)
        self.last(body[-1] if body else node)

    def begin(self, node: ast.FunctionDef) -> None:
        if _arguments(node) != list(self.arguments):
            raise _refused(node.lineno, f"{node.name} takes other arguments")

    def statement(self, node: ast.stmt) -> None:
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            raise _refused(node.lineno, f"a statement {type(node).__name__}")
        self.formula(node.value)
        target = node.targets[0]
        for name in target.elts if isinstance(target, ast.Tuple) else [target]:
            if not isinstance(name, ast.Name) or is_reserved(name.id) or name.id in self.functions:
                raise _refused(node.lineno, "it assigns to something else than a name of its own")
            self.known.add(name.id)

    def last(self, node: ast.AST) -> None:
        if not isinstance(node, ast.Return) or not isinstance(node.value, ast.Dict):
            raise _refused(getattr(node, "lineno", None), "it does not end with its results")
        for key, value in zip(node.value.keys, node.value.values, strict=True):
            if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
                raise _refused(node.lineno, "a result without a name")
            self.formula(value)

    def formula(self, top: ast.expr) -> None:
        """Numbers, names that are set, arithmetic, and calls of known functions; without recursion, for long formulas."""
        left: list[ast.AST] = [top]
        while left:
            node = left.pop()
            if isinstance(node, ast.Name):
                if node.id not in self.known:
                    raise _refused(node.lineno, f"{node.id} is not set")
            elif isinstance(node, ast.Constant):
                if type(node.value) not in (int, float, complex, bool):
                    raise _refused(node.lineno, "a text or another constant that is no number")
            elif isinstance(node, ast.BinOp | ast.UnaryOp | ast.Compare | ast.Tuple):
                left += [c for c in ast.iter_child_nodes(node) if not isinstance(c, _ARITHMETIC)]
            elif isinstance(node, ast.Call):
                left += self.call(node)
            elif isinstance(node, ast.Attribute):
                self.constant(node)
            elif isinstance(node, ast.Subscript):
                self.read(node)
            else:
                raise _refused(getattr(node, "lineno", None), f"{type(node).__name__} is no part of a formula")

    def call(self, node: ast.Call) -> list[ast.AST]:
        f = node.func
        name = f.id if isinstance(f, ast.Name) else ""
        if isinstance(f, ast.Attribute) and isinstance(f.value, ast.Name) and f.value.id == "np":
            good, name = f.attr in NUMPY, f"np.{f.attr}"
        else:
            good = name in self.functions
        if not good or node.keywords:
            raise _refused(node.lineno, f"{name or type(f).__name__} is no function of a formula")
        if name == "summed":  # summed(sum_1, size, axis, others, names, quad, values ...)
            part, names, quad = (node.args[k] if len(node.args) > k else None for k in (0, 4, 5))
            if not (isinstance(part, ast.Name) and part.id.startswith("sum_") and part.id in self.functions
                    and isinstance(quad, ast.Name) and quad.id == "quad" and isinstance(names, ast.Tuple)
                    and all(isinstance(n, ast.Constant) and isinstance(n.value, str) for n in names.elts)):
                raise _refused(node.lineno, "a sum of something else than its own terms")
            return [*node.args[1:4], *node.args[6:]]
        return list(node.args)

    def constant(self, node: ast.Attribute) -> None:
        if not (isinstance(node.value, ast.Name) and node.value.id == "np" and node.attr in CONSTANTS):
            raise _refused(node.lineno, f"the attribute {node.attr}")

    def read(self, node: ast.Subscript) -> None:
        text = isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)
        if not (text and isinstance(node.value, ast.Name) and node.value.id in self.arguments):
            raise _refused(node.lineno, "it reads something else than s and quad")


class _BlockSums(_Formulas):
    """A function sum_k(quad, block_size, ...): formulas along a block of arrays, and their sums as a tuple."""

    arguments = ("quad",)

    def begin(self, node: ast.FunctionDef) -> None:
        names = _arguments(node)
        if names[:2] != ["quad", "block_size"] or any(map(is_reserved, names[2:])):
            raise _refused(node.lineno, f"{node.name} takes other arguments")
        self.known |= set(names[1:])

    def last(self, node: ast.AST) -> None:
        if not isinstance(node, ast.Return) or not isinstance(node.value, ast.Tuple):
            raise _refused(getattr(node, "lineno", None), "it does not end with its sums")
        self.formula(node.value)


class _Minimiser(_Formulas):
    """A function prox_k(omega, V, ...): two formulas, slope and curvature, for `minimise`."""

    def begin(self, node: ast.FunctionDef) -> None:
        names = _arguments(node)
        if names[:2] != ["omega", "V"] or any(map(is_reserved, names)):
            raise _refused(node.lineno, f"{node.name} takes other arguments")
        self.known |= set(names)

    def statement(self, node: ast.stmt) -> None:
        if not isinstance(node, ast.FunctionDef):
            super().statement(node)
            return
        names = _arguments(node)
        if node.name not in ("slope", "curvature") or len(names) != 2 or any(map(is_reserved, names)) or not node.body:
            raise _refused(node.lineno, f"a function {node.name[:40]}")
        inner = _Inside(self, {*self.known, names[0]}, names[1])
        for statement in node.body[:-1]:
            inner.statement(statement)
        inner.last(node.body[-1])

    def last(self, node: ast.AST) -> None:
        call = getattr(node, "value", None)
        if not (isinstance(node, ast.Return) and isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
                and call.func.id == "minimise" and {k.arg for k in call.keywords} <= {"low", "high"}
                and [a.id for a in call.args if isinstance(a, ast.Name)] == ["slope", "curvature", "omega", "V"]
                and len(call.args) == 4):
            raise _refused(getattr(node, "lineno", None), "it does not end with its minimiser")
        for k in call.keywords:
            self.formula(k.value)


class _FieldFunctions(_Formulas):
    """A function fields_k(x, c1, c2, ...): formulas f1(u), f2(u), ... for `conditioned`."""

    def begin(self, node: ast.FunctionDef) -> None:
        self.given, self.factors = _arguments(node), list[str]()
        if any(map(is_reserved, self.given)):
            raise _refused(node.lineno, f"{node.name} takes other arguments")

    def statement(self, node: ast.stmt) -> None:
        if not (isinstance(node, ast.FunctionDef) and re.fullmatch(r"f\d+", node.name) and _arguments(node) == ["u"]
                and len(node.body) == 1):
            raise _refused(node.lineno, f"a statement {type(node).__name__}")
        self.factors.append(node.name)
        self.known = {"u"}
        _Inside(self, self.known, "").last(node.body[0])

    def last(self, node: ast.AST) -> None:
        meant = f"return conditioned(({', '.join(self.factors)}), ({', '.join(self.given[1:])}), x)"
        if self.given[:1] != ["x"] or ast.dump(node) != ast.dump(ast.parse(meant).body[0]):
            raise _refused(getattr(node, "lineno", None), "it does not end with its average")


class _Inside(_Formulas):
    """A formula inside of a minimiser: it reads `flat_p[k]`, and returns a number."""

    def __init__(self, around: _Formulas, known: set[str], index: str) -> None:
        self.functions, self.known, self.index = around.functions, known, index

    def read(self, node: ast.Subscript) -> None:
        if not (isinstance(node.value, ast.Name) and node.value.id in self.known
                and isinstance(node.slice, ast.Name) and node.slice.id == self.index):
            raise _refused(node.lineno, "it reads something else than its parameters")

    def last(self, node: ast.AST) -> None:
        if not isinstance(node, ast.Return) or node.value is None:
            raise _refused(getattr(node, "lineno", None), "it does not end with its value")
        self.formula(node.value)


def _arguments(node: ast.FunctionDef) -> list[str]:
    """The plain arguments of a function that has nothing else: no defaults, stars, decorators or hints."""
    a = node.args
    if (a.posonlyargs or a.kwonlyargs or a.vararg or a.kwarg or a.defaults or node.decorator_list or node.returns
            or getattr(node, "type_params", None) or any(x.annotation for x in a.args)):
        raise _refused(node.lineno, f"{node.name[:40]} takes other arguments")
    return [x.arg for x in a.args]


def _refused(line: int | None, why: str) -> BadInput:
    place = f"line {line}: " if line else ""
    return BadInput(f"this source was not written by this version of hermitex ({place}{why[:120]}); compile the formula again")
