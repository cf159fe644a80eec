"""Equations -> blocks: the order, the kinds, the tearing, and the proof of linearity."""

import numpy as np
import pytest
from one_step import one_step
from sympy import Eq, Max, Symbol, exp, symbols, tanh

from hermitex import E, System
from hermitex.symbols import z, z1, z2
from hermitex.systems.blocks import Equation, linear_form

a, b, c, d = symbols("a b c d", real=True)
p = Symbol("p", positive=True)


def test_the_one_step_system_is_five_blocks_without_being_told():
    assert [str(block) for block in one_step("tanh", "sin").blocks] == [
        "(Vhat1, Vhat2, V1, V2): nonlinear, torn to (Vhat1, V2)",
        "(m, zeta, zetatilde): linear",
        "(psitilde): explicit",
        "(psi): explicit",
        "(qhat1, qhat2, q1, q2): linear",
    ]


@pytest.mark.parametrize("equations, kinds", [
    ({a: p + 1}, ["explicit"]),
    ({a: a/2 + p}, ["linear"]),
    ({a: Eq(p*a, 3)}, ["linear"]),
    ({a: exp(-a)}, ["root"]),
    ({a: b + 1, b: p}, ["explicit", "explicit"]),
    ({a: b/2 + 1, b: a/3}, ["linear"]),
    ({a: exp(-b), b: a}, ["nonlinear"]),
    ({a: E(z**2*b, z), b: p*a + 1}, ["linear"]),  # linear under the expectation, and proved so
    ({a: (b + 1)**2 - b**2, b: a/3}, ["linear"]),  # after expansion only
])
def test_kinds(equations, kinds):
    assert [block.kind for block in System(equations).blocks] == kinds


def test_blocks_come_in_an_order_in_which_everything_is_known():
    found = System({d: c + a, c: b**2 + exp(-c), b: a/2 + p, a: b/3}).blocks
    seen = set()
    for block in found:
        seen |= set(block.unknowns)
        for u in block.unknowns:
            written = System({d: c + a, c: b**2 + exp(-c), b: a/2 + p, a: b/3}).written[u]
            assert not ({a, b, c, d} & written.rhs.free_symbols) - seen
    assert [[u.name for u in block.unknowns] for block in found] == [["b", "a"], ["c"], ["d"]]


def test_as_many_members_as_possible_are_torn_out():
    ring = {a: exp(-d), b: a + 1, c: b*p, d: c**2}
    (block,) = System(ring).blocks
    assert len(block.torn) == 1 and len(block.members) == 3


def test_an_implicit_unknown_is_never_torn_out():
    (block,) = System({a: Eq(a**3 + b, p), b: exp(-a)}).blocks
    assert block.torn == (a,) and block.members == (b,)


def test_the_linear_form_is_the_equations():
    unknowns = [a, b]
    equations = [Equation(a, 2*b + p), Equation(b, a*p - b - 3, implicit=True)]
    matrix, constant = linear_form(equations, unknowns)
    for e, row, k in zip(equations, matrix, constant, strict=True):
        assert (e.residual - sum(r*u for r, u in zip(row, unknowns, strict=True)) - k).expand() == 0


def test_tooth_a_product_of_unknowns_is_not_linear():
    assert linear_form([Equation(a, a*b), Equation(b, a + 1)], [a, b]) is None


def test_large_rings_are_torn_greedily():
    # two layers of 12, each of which reads the whole of the other: 12 of 24 have to go, too many to try all subsets
    x, y = symbols("x0:12", real=True), symbols("y0:12", real=True)
    layers = {**{u: sum(y)/p for u in x}, **{v: exp(-sum(x)) for v in y}}
    (block,) = System(layers).blocks
    assert len(block.torn) == 12 and len(block.members) == 12
    assert set(block.torn) in (set(x), set(y))


def test_a_block_asks_for_the_break_points_of_its_own_averages():
    """Those of a later block move with what is not solved yet: an arc-cosine kernel of two layers, and two scales that move."""
    first, second, width = symbols("first second width", real=True)
    norm = Symbol("norm", positive=True)
    c = Symbol("c", real=True)
    layers = System({first: 2*E(Max(0, z1)*Max(0, z2), z1, z2, cov={(z1, z2): c}), norm: 1 + c**2,
                     second: 2*E(Max(0, norm*z1)*Max(0, z2), z1, z2, cov={(z1, z2): first/norm}),
                     width: 1 + E(1/(1 + (width + 5*z)**2), z)/2, "last": E(z*tanh(c + 4*width*z), z)})
    found = layers.solve(c=0.3)

    def arc(t):
        return (np.sqrt(1 - t*t) + t*(np.pi - np.arccos(t)))/np.pi

    assert found["first"] == pytest.approx(arc(0.3), rel=1e-10)
    assert found["second"] == pytest.approx(1.09*arc(arc(0.3)/1.09), rel=1e-10)
