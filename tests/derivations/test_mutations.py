"""A formula of a theory that is changed in one place makes a derivation fail."""

import ast
import importlib.util
import json
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
spec = importlib.util.spec_from_file_location("mutations", HERE/"mutations.py")
mutations = importlib.util.module_from_spec(spec)
sys.modules["mutations"] = mutations   # its dataclass looks its module up
spec.loader.exec_module(mutations)

#: (module, formula, what becomes of it)
HANDFUL = [
    ("spike.py", "self.R_2/alpha0", "product"),
    ("one_step.py", "c*zetatilde**2 + s_c*chitilde**2", "sign"),
    ("vocabulary.py", "2*B*h", "factor"),
    ("features/gradient_bulk.py", "M[2, 0]**2", "exponent"),
    ("glm.py", "rho*mhat**2", "product"),
    ("features/equations.py", "self.alpha/self.beta", "product"),
]


def test_changes_are_single_and_inside_of_formulas():
    drawn = mutations.drawn(seed=3, count=25)
    assert len(set(drawn)) == 25 and drawn == mutations.drawn(seed=3, count=25)
    for m in drawn:
        raw = (mutations.THEORIES/m.file).read_bytes()
        assert " ".join(raw[m.start:m.end].decode().split()) == m.old
        changed = raw[:m.start] + f"({m.new})".encode() + raw[m.end:]
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(raw))


def test_what_is_no_change_is_left_out():
    node = ast.parse("x*1", mode="eval").body
    assert mutations._same_numbers(node, node.left) and mutations._same_numbers(node, ast.BinOp(node.left, ast.Div(), node.right))
    node = ast.parse("2*x", mode="eval").body
    assert not mutations._same_numbers(node, node.right)
    alone = ast.parse("def f(c):\n    return E(sigma(m + sqrt(c)*z), z)").body[0]
    twice = ast.parse("def f(c):\n    return E(z*sigma(m + sqrt(c)*z), z)").body[0]
    for around, reflected in ((alone, True), (twice, False)):
        node = next(n for n in ast.walk(around) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Add))
        assert mutations._reflected(node, around) is reflected


def test_the_table_of_forty():
    rows = json.loads(mutations.TABLE.read_text())["mutants"]
    assert len(rows) == 40
    # A root at large beta in Newton's unknowns: where the iteration fails for it, the equations are solved as a System.
    assert [r["file"] for r in rows if not r["caught"]] == ["losses/newton.py"]


@pytest.mark.slow
@pytest.mark.parametrize(("file", "old", "kind"), HANDFUL, ids=[f"{f}: {o}" for f, o, _ in HANDFUL])
def test_a_changed_formula_is_noticed(file, old, kind):
    found = [m for m in mutations.mutants_of(mutations.THEORIES/file) if m.old == old and m.kind == kind]
    assert found, f"{file} has no {old} any more; choose another formula"
    with mutations.Bench() as bench:
        row = bench.judge(found[0])
    assert row["caught"].endswith(".py"), row
