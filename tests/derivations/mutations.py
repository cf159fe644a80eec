"""One formula of a theory changed, in a copy of the package: which derivation or notebook notices?

    python tests/derivations/mutations.py --seed 1 --count 40

draws formulas of hermitex/theories at random, changes each in one place (a sign, a product, an exponent, an integer, a factor
dropped), and runs on the copy the derivations that reach the changed module, the cheapest first, until a check fails; then
the checked cells of the notebooks. A mutant that nothing notices survives: it shows a check that is missing.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import date
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
THEORIES, PAGES, NOTEBOOKS = ROOT/"hermitex"/"theories", ROOT/"derivations", ROOT/"notebooks"
TABLE = ROOT/"tests"/"reference"/"mutations.json"
SECONDS, OF_A_CHECK = 120, 25   # of CPU: for one mutant, and for one check, which takes less than 10 without a change

# -- what is a formula ---------------------------------------------------------------------------------------------------
#: the letters of the theory: an expression without any of them is no formula
LETTERS = re.compile(
    r"alpha|beta|gamma|Delta|lamda|kappa|eta|rho|tau|delta|omegainv|zeta|psi|chi|omega|nu|pi|xi|epsilon|psitilde|zetatilde|chitilde|"
    r"[bcersztumhqBDGJLMQRV]|z1|z2|z3|bar|tilt|spread|slope|batch|half|root|J_z|J_2|J_s|s_0|s_c2|d?k_1|Vhat|Mhat|qhat|"
    r"(d?K|P|F|M|N|T|V|Vhat|Mhat|q|qhat|mu|m|h|g|sigma|R|k|xi)_?(\d+|v|star)")
#: functions that show, read input or control an iteration, a grid or its slopes: what stands in them is no formula of the theory
ELSEWHERE = re.compile(
    r"plot|_?to_\w+|_rows|_html|latex|bibtex|_summary|described|given|complete|newton|_damped|solved?|_solve|_upper|edge|fold|rung|_flags|"
    r"_steepest|_separated|_unbounded|_usable|_by_jumps|of_signs|__post_init__|__repr__|__str__|\w*grid|refine|examine|least|_shanks|_closed_in|"
    r"_vanishes|_bottom|kappa_rule|_gram_schmidt|_solved|_extremes|_window|family|_levels|run|tabulated|at_nodes|_convolved|_mesh|"
    r"_to_series|_beyond|both|_moved|_verdict|between|normal|cuts|finer|followed|prox|_edges|_chunks|falls|unbounded|_polished|"
    r"series|iterated|_\w*nodes?|\w*_nodes|\w*panels?|_root|difference|parity")
NORMALS = ("z", "z1", "z2", "z3")
#: names of errors, sizes, grids and slopes for Newton on the left of an assignment
SIZES = re.compile(r"(d_[s2z]|error|size|scale|step|reach|quick|tolerance|wide|wider|margin|gap|window|height|grid|J|F\d\d|noisy?|"
                   r"many|regular)$")
SHAPING = {"range", "len", "zeros", "empty", "ones", "linspace", "geomspace", "arange", "reshape", "full", "clip", "where", "stack",
           "broadcast_to", "isfinite", "subs", "Symbol", "symbols", "evalf", "max", "min", "cache", "lru_cache", "int"}


@dataclass(frozen=True)
class Mutant:
    """One change: characters start..end of a file become `new`."""

    file: str
    line: int
    kind: str
    old: str
    new: str
    start: int
    end: int


@cache
def mutants_of(path: Path) -> list[Mutant]:
    """Every change of one formula of a module."""
    source = path.read_text()
    tree = ast.parse(source)
    starts = [0]
    for text in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(text.encode()))
    raw = source.encode()

    def place(node: ast.AST) -> tuple[int, int]:
        return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset

    found = []
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    for node in _formulas(tree):
        start, end = place(node)
        around = min((f for f in functions if f.lineno <= node.lineno <= f.end_lineno), key=lambda f: f.end_lineno - f.lineno,
                     default=tree)
        for kind, changed in _changes(node):
            old = raw[start:end].decode()
            new = f"({ast.unparse(ast.fix_missing_locations(changed))})"
            if not _same_numbers(node, changed) and not (kind == "sign" and _reflected(node, around)):
                file = path.relative_to(THEORIES).as_posix()
                found.append(Mutant(file, node.lineno, kind, " ".join(old.split()), new[1:-1], start, end))
    return found


def _formulas(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes of an expression with letters of the theory, outside of texts, shapes, comparisons, sizes and control."""
    def walk(node: ast.AST, inside: bool) -> Iterator[ast.AST]:
        if isinstance(node, ast.FunctionDef):
            if ELSEWHERE.fullmatch(node.name):
                return
            for child in node.body:
                yield from walk(child, True)
            return
        if isinstance(node, ast.ClassDef):
            for child in node.body:
                if isinstance(child, ast.FunctionDef):
                    yield from walk(child, False)
            return
        if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr | ast.Compare | ast.Slice):
            return
        if isinstance(node, ast.If | ast.For | ast.While):   # the body, not what decides
            for child in [*node.body, *node.orelse]:
                yield from walk(child, inside)
            return
        if isinstance(node, ast.Assign) and all(SIZES.fullmatch(n) for t in node.targets for n in _names(t)):
            return
        if isinstance(node, ast.Assign) and not inside and isinstance(node.targets[0], ast.Name) \
                and re.fullmatch(r"_?[A-Z_]{3,}", node.targets[0].id):
            return   # a constant of the module
        if isinstance(node, ast.Subscript):
            yield from walk(node.value, inside)
            return
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in SHAPING:
                return
            for child in node.args:
                yield from walk(child, inside)
            if isinstance(node.func, ast.Attribute):
                yield from walk(node.func.value, inside)
            return
        if isinstance(node, ast.BinOp | ast.UnaryOp) and any(LETTERS.fullmatch(n) for n in _names(node)):
            yield node
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.arguments | ast.keyword | ast.expr_context):
                yield from walk(child, inside)

    for child in tree.body:
        if isinstance(child, ast.FunctionDef | ast.ClassDef | ast.Assign):
            yield from walk(child, False)


def _names(node: ast.AST) -> set[str]:
    """Letters in an expression: names, attributes of self, and texts in k["g_0"]."""
    found = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    found |= {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}
    return found | {n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)}


def _changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """(kind, the changed node)."""
    if isinstance(node, ast.UnaryOp):
        if isinstance(node.op, ast.USub):
            yield "sign", node.operand
        return
    op, left, right = node.op, node.left, node.right
    swapped = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}.get(type(op))
    if swapped is not None:
        kind = "sign" if isinstance(op, ast.Add | ast.Sub) else "product"
        yield kind, ast.BinOp(left, swapped(), right)
    if isinstance(op, ast.Mult | ast.Div):
        yield "factor", left
    if isinstance(op, ast.Mult):
        yield "factor", right
    if isinstance(op, ast.Pow) and _is_integer(right):
        yield "exponent", ast.BinOp(left, op, ast.Constant(right.value + 1))
    for side, other in ((left, "right"), (right, "left")):
        if _is_integer(side) and not isinstance(op, ast.Pow):
            changed = ast.BinOp(left, op, right)
            setattr(changed, "left" if other == "right" else "right", ast.Constant(side.value + 1))
            yield "integer", changed


def _is_integer(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int


def _same_numbers(node: ast.AST, changed: ast.AST) -> bool:
    """Is it no change at all? A factor 1 dropped, or multiplied instead of divided by."""
    def one(e: ast.AST) -> bool:
        return isinstance(e, ast.Constant) and e.value == 1

    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult | ast.Div):
        return False
    if isinstance(changed, ast.BinOp) and changed.left is node.left and changed.right is node.right:
        return one(node.right)
    return (changed is node.left and one(node.right)) or (changed is node.right and one(node.left))


def _reflected(node: ast.AST, around: ast.AST) -> bool:
    """Does the sign stand before a standard normal that occurs nowhere else in the function? Then its law does not change."""
    term = node.right if isinstance(node, ast.BinOp) else node
    while isinstance(term, ast.BinOp) and isinstance(term.op, ast.Mult | ast.Div):
        term = term.right if isinstance(term.right, ast.Name) and term.right.id in NORMALS else term.left
    if not isinstance(term, ast.Name) or term.id not in NORMALS:
        return False
    bound = {id(a) for c in ast.walk(around) if isinstance(c, ast.Call) and getattr(c.func, "id", "") == "E" for a in c.args[1:]}
    return sum(isinstance(n, ast.Name) and n.id == term.id and id(n) not in bound for n in ast.walk(around)) == 1


# -- who notices -----------------------------------------------------------------------------------------------------
def public() -> dict[str, str]:
    """Public name -> module of hermitex.theories."""
    text = (THEORIES/"__init__.py").read_text()
    return dict(re.findall(r'"(\w+)": \("([\w.]+)", "\w+"\)', text))


def module_of(file: str) -> str:
    """overlaps/grid.py -> overlaps.grid."""
    return file.removesuffix(".py").replace("/", ".")


def modules() -> set[str]:
    """The modules of hermitex.theories."""
    return {module_of(p.relative_to(THEORIES).as_posix()) for p in THEORIES.rglob("*.py")}


def reach(text: str) -> set[str]:
    """The modules of hermitex.theories that a page can run, through imports."""
    made = public()
    used = set(re.findall(r"hx\.(\w+)", text))
    used |= set(re.findall(r"theories[. ](?:import )?(\w+)", text)) | set(re.findall(r"theories\.([\w.]+) import", text))
    for group in re.findall(r"from hermitex(?:\.theories)? import ([^\n]+)", text):
        used |= set(re.findall(r"\w+", group))
    if "hx.curve" in text or "hx.baselines" in text:
        used |= {"one_step"}
    used |= {"conditional"} if {"mu", "mu_star"} & used else set()
    todo = {made.get(n, n) for n in used} & modules()
    seen: set[str] = set()
    while todo:
        name = todo.pop()
        seen.add(name)
        body = (THEORIES/f"{name.replace('.', '/')}.py").read_text()
        near = set(re.findall(r"from hermitex\.theories\.([\w.]+) import", body))
        for folder, group in re.findall(r"from hermitex\.theories\.?(\w*) import ([^\n]+)", body):
            near |= {f"{folder}.{n}".strip(".") for n in re.findall(r"\w+", group)}
        todo |= ({made.get(n, n) for n in near} & modules()) - seen
    return seen


def measured() -> dict[str, dict]:
    """{page: its seconds and the modules that it imports}, as they were found when the table was made."""
    return json.loads(TABLE.read_text()).get("pages", {}) if TABLE.exists() else {}


def judges(module: str, known: dict[str, dict]) -> list[Path]:
    """The derivations that run a module, the cheapest first; then the notebooks."""
    def runs(p: Path, text: str) -> bool:
        return module in (known[p.name]["modules"] if p.name in known else reach(text))

    def cost(p: Path) -> float:
        return known[p.name]["seconds"] if p.name in known else 60.0

    pages = [p for p in PAGES.glob("*.py") if not p.name.startswith("_") and runs(p, p.read_text())]
    books = [p for p in NOTEBOOKS.glob("*.ipynb") if runs(p, _code(p))]
    return sorted(pages, key=cost) + sorted(books, key=cost)


def _code(book: Path) -> str:
    return "\n".join("".join(c["source"]) for c in json.loads(book.read_text())["cells"] if c["cell_type"] == "code")


RUNNER = r"""
import contextlib, io, json, signal, sys, time, warnings
from pathlib import Path
import matplotlib
matplotlib.use("Agg")
warnings.simplefilter("ignore")
from hermitex import Result
from hermitex.face.userfile import module_of


def late(*_):
    raise TimeoutError("a check takes too long")


signal.signal(signal.SIGPROF, late)


def page(path):
    for result in [v for v in vars(module_of(path)).values() if isinstance(v, Result)]:
        # what is compared with the package comes first
        parts = sorted((p for p in result.parts if hasattr(p, "checked")), key=lambda p: type(p).__name__ == "Equality")
        for part in parts:
            signal.setitimer(signal.ITIMER_PROF, OF_A_CHECK)
            found = part.checked(result.definitions)
            signal.setitimer(signal.ITIMER_PROF, 0)
            if not found:
                return f"{found.rule}: {found.status}, {(found.example or found.how)[:160]}"
    return ""


def notebook(path):
    names = {"__name__": "__main__"}
    for cell in json.loads(path.read_text())["cells"]:
        code = "\n".join(line for line in "".join(cell["source"]).splitlines() if not line.startswith(("%", "!")))
        if cell["cell_type"] != "code":
            continue
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(code, str(path), "exec"), names)
        if "NBVAL_CHECK_OUTPUT" in code:
            stored = "".join("".join(o["text"]) for o in cell["outputs"] if o.get("name") == "stdout")
            if stored.strip() != said.getvalue().strip():
                return f"a checked cell prints {said.getvalue().strip()[:120]!r}"
    return ""


for path in map(Path, sys.argv[1:]):
    began = time.process_time()
    try:
        why = (page if path.suffix == ".py" else notebook)(path)
    except BaseException as error:
        why = f"{type(error).__name__}: {str(error)[:160]}"
    print(json.dumps({"file": path.name, "seconds": round(time.process_time() - began, 1), "why": why,
                      "modules": sorted(m.split(".", 2)[2] for m in sys.modules if m.startswith("hermitex.theories."))}),
          flush=True)
    if why:
        break
"""


class Bench:
    """A copy of the package in which one formula is changed at a time."""

    def __init__(self) -> None:
        self.known = measured()
        self.folder = Path(tempfile.mkdtemp(prefix="mutations-"))
        shutil.copytree(ROOT/"hermitex", self.folder/"hermitex", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(PAGES, self.folder/"derivations", ignore=shutil.ignore_patterns("__pycache__"))
        (self.folder/"run.py").write_text(f"OF_A_CHECK = {OF_A_CHECK}\n{RUNNER}")

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *exc: object) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, files: list[Path], seconds: int = SECONDS) -> list[dict]:
        """What each file said, up to the first that noticed something."""
        env = {**os.environ, "PYTHONPATH": str(self.folder), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
               "PYTHONDONTWRITEBYTECODE": "1", "MPLBACKEND": "Agg"}
        done = subprocess.run([sys.executable, str(self.folder/"run.py"), *map(str, files)], env=env, cwd=self.folder, text=True,
                              capture_output=True, check=False,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds)))
        said = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode and not (said and said[-1]["why"]):
            at = files[len(said)].name if len(said) < len(files) else "the start"
            last = (done.stderr.strip().splitlines() or ["no answer in time"])[-1]
            said.append({"file": at, "seconds": seconds, "why": f"no answer: {last[:120]}"})
        return said

    def judge(self, m: Mutant) -> dict:
        """The mutant and what caught it ("" if it survives)."""
        path = self.folder/"hermitex"/"theories"/m.file
        raw = path.read_bytes()
        path.write_bytes(raw[:m.start] + f"({m.new})".encode() + raw[m.end:])
        try:
            said = self.run(judges(module_of(m.file), self.known))
        finally:
            path.write_bytes(raw)
        last = said[-1] if said else {"file": "", "why": ""}
        return {**{k: v for k, v in asdict(m).items() if k not in ("start", "end")},
                "caught": last["file"] if last["why"] else "", "why": re.sub(r"/\S*/", "", last["why"])[:160],
                "seconds": round(sum(s["seconds"] for s in said), 1)}


def drawn(seed: int, count: int) -> list[Mutant]:
    """`count` different mutants: every formula has the same chance, then every change of it."""
    chance = random.Random(seed)
    formulas: dict[tuple, list[Mutant]] = {}
    for path in sorted(THEORIES.rglob("*.py")):
        for m in mutants_of(path):
            formulas.setdefault((m.file, m.start, m.end), []).append(m)
    return [chance.choice(formulas[k]) for k in chance.sample(sorted(formulas), min(count, len(formulas)))]


def main() -> None:
    """Draw, judge, print, and write the table if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--only", help="mutate this module alone")
    parser.add_argument("--list", action="store_true", help="show what would be changed and stop")
    parser.add_argument("--costs", action="store_true", help="measure the derivations without any change first")
    parser.add_argument("--write", metavar="FILE.json", help="write the table")
    args = parser.parse_args()
    chosen = drawn(args.seed, 10**6 if args.only else args.count)
    chosen = [m for m in chosen if args.only in (None, module_of(m.file))][:args.count]
    if args.list:
        for m in chosen:
            print(f"{m.file}:{m.line} {m.kind}: {m.old}  ->  {m.new}")
        return
    rows = []
    with Bench() as bench:
        if args.costs:
            files = [p for p in PAGES.glob("*.py") if not p.name.startswith("_")]
            for p in files:
                (said,) = bench.run([p])
                print(f"{p.name}: {said['seconds']} s {said['why']}", flush=True)
                bench.known[p.name] = {"seconds": said["seconds"], "modules": said["modules"]}
        for m in chosen:
            row = bench.judge(m)
            rows.append(row)
            what = f"{m.file}:{m.line} {m.kind}: {m.old[:60]} -> {m.new[:60]}"
            print(f"{what} | {row['caught'] or 'SURVIVES'} | {row['seconds']} s", flush=True)
            if args.write:
                table = {"seed": args.seed, "date": date.today().isoformat(), "pages": bench.known, "mutants": rows}
                Path(args.write).write_text(json.dumps(table, indent=1) + "\n")
    print(f"{sum(bool(r['caught']) for r in rows)} of {len(rows)} caught")


if __name__ == "__main__":
    main()
