"""Hermite tensors: symmetric storage, rotation, contraction, Parseval, and the tensors given some directions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import (
    Abs,
    Matrix,
    Max,
    Piecewise,
    Rational,
    Symbol,
    cos,
    erf,
    exp,
    expand,
    eye,
    factorial,
    log,
    pi,
    sign,
    sin,
    sqrt,
    tanh,
)

import hermitex as hx
from hermitex import E, coefficient, tensor
from hermitex.errors import BadInput
from hermitex.symbolic.definite import definite, sign_of_integrand
from hermitex.symbolic.hermite_tensors import SymmetricTensor
from hermitex.symbolic.invariance import linear_forms, polynomial_parts, unseen
from hermitex.symbolic.parity import identically_zero
from hermitex.symbolic.partial_tensors import Given
from hermitex.symbolic.series.polynomials import multi_indices
from hermitex.symbolic.subspaces import complement, contains, echelon, frame, matrix, null_space, rank, span, spans_same
from hermitex.symbolic.summands import apart, split
from hermitex.symbolic.vanishing import vanishes
from hermitex.symbols import z1, z2, z3

small = st.integers(-3, 3)

@st.composite
def polynomials(draw):
    """A polynomial of degree at most 4 in z1, z2, z3."""
    terms = draw(st.lists(st.tuples(small, st.tuples(*[st.integers(0, 2)]*3)), min_size=1, max_size=4))
    return sum(c*z1**a*z2**b*z3**d for c, (a, b, d) in terms)

@st.composite
def rotated(draw):
    """A rational orthogonal matrix: Cayley's (1 - A)(1 + A)^-1 of an antisymmetric A."""
    a, b, c = (Rational(draw(small), 2) for _ in range(3))
    A = Matrix([[0, a, b], [-a, 0, c], [-b, -c, 0]])
    return (eye(3) - A)*(eye(3) + A).inv()

# -- identities --------------------------------------------------------------------------------------------------------
@settings(max_examples=12)
@given(polynomials(), rotated(), st.integers(1, 3))
def test_a_rotated_target_has_the_rotated_tensor(g, R, k):
    """C_k(g o R^T) = R.C_k(g)."""
    back = R.T*Matrix([z1, z2, z3])
    moved = expand(g.subs(dict(zip((z1, z2, z3), back, strict=True)), simultaneous=True))
    there = tensor(g, k, (z1, z2, z3)).rotated(R).entries
    assert there == tensor(moved, k, (z1, z2, z3)).entries

@settings(max_examples=12)
@given(polynomials())
def test_parseval(g):
    """E[g^2] = sum_k ||C_k||^2/k!."""
    parts = (tensor(g, k, (z1, z2, z3)).squared_norm()/factorial(k) for k in range(7))
    assert expand(sum(parts) - E(g**2, z1, z2, z3).doit()) == 0

def test_one_plane_of_rotation_with_roots():
    found = tensor(Max(z1, z2), 2).rotated(Matrix([[1, 1], [1, -1]])/sqrt(2))
    assert {a: expand(v) for a, v in found.entries.items()} == {(2, 0): 0, (1, 1): 0, (0, 2): 1/sqrt(pi)}

@pytest.mark.parametrize("g", [sign(z1*z2*z3) + z1**2, Max(z1, z2), Abs(z1 + 2*z2)*z3, sin(z1 - z2)*z3, exp(z1*z2/4),
                               Piecewise((z1, z2 > 0), (-z1, True)), erf(z1)*z2 + z1*z3, Abs(z1**2 - z2**2)])
def test_taking_a_target_apart_changes_nothing(g):
    """The summands add up to the target, and its tensors are those of the coefficients one by one."""
    variables = tuple(v for v in (z1, z2, z3) if v in g.free_symbols)
    whole = split(g, variables)
    total = whole.polynomial + sum(
        f.expr.xreplace({s: sum(c*v for c, v in zip(row, variables, strict=True))
                         for s, row in zip(f.names, f.rows.tolist(), strict=True)}) for f in whole.summands)
    for point in ((0.3, -1.2, 0.7), (-0.9, 0.4, 1.6), (1.1, 2.3, -0.2)):
        values = dict(zip(variables, point, strict=False))
        assert abs(float(total.subs(values)) - float(g.subs(values))) < 1e-12
    found = tensor(g, 2, variables)
    for a in multi_indices(len(variables), 2):
        assert abs(float((found.entries[a] - coefficient(g, a, variables)).evalf(20))) < 1e-15

def test_entries_are_shared_by_their_multi_index():
    found = tensor("sign(z1*z2*z3)", 3)
    assert isinstance(found, SymmetricTensor) and len(found.entries) == 10
    assert found[0, 1, 2] == found[2, 0, 1] == (2/pi)**Rational(3, 2)
    assert [a for a, c in found.entries.items() if c != 0] == [(1, 1, 1)]
    assert found.charged() == Matrix(eye(3)) and found.fibres().rows == 3
    assert hx.tensor("tanh(z1 + 2*z2)", 1).charged() == Matrix([[1, 2]])

def test_six_variables():
    found = hx.tensor("z1*z2*z3*z4*z5*z6 + sign(z1*z2)", 6)
    assert found.dimension == 6 and found[0, 1, 2, 3, 4, 5] == 1 and sum(c != 0 for c in found.entries.values()) == 4

def test_bad_input():
    with pytest.raises(BadInput, match="at most 6"):
        hx.tensor("z1*z2*z3*z4*z5*z6*z7", 2)
    with pytest.raises(BadInput, match="columns"):
        tensor(z1*z2, 2).rotated(eye(3))

def test_a_lost_factorial_is_seen():
    """The weight k!/a! of an entry in <C, y^k>: without it the rotated tensor is another one."""
    y = (Symbol("y1", real=True), Symbol("y2", real=True))
    C = tensor(z1*z2 + z1**2, 2)
    wrong = sum(c*y[0]**a*y[1]**b for (a, b), c in C.entries.items())
    assert SymmetricTensor.of_polynomial(C.polynomial(y), y, 2).entries == C.entries
    assert SymmetricTensor.of_polynomial(wrong, y, 2).entries != C.entries

# -- given some directions ---------------------------------------------------------------------------------------------
@settings(max_examples=8)
@given(polynomials())
def test_the_tower_rule(g):
    """E_u[c_b(u) He_a(u)] = c_(a, b): the tensors given z1, averaged, are the whole ones."""
    found = Given(split(g, (z1, z2, z3)), Matrix([[1, 0, 0]]))
    (u,) = found.u
    for b, entry in found.entries(2).items():
        for a in (0, 1, 2):
            assert expand(E(entry.value*hx.He(a, u), u).doit() - coefficient(g, (a, *b), (z1, z2, z3))) == 0

def test_given_a_direction_that_is_no_coordinate():
    """relu(z1) + relu(z2) given u = (z1 + z2)/sqrt(2): order 1 vanishes, order 2 is exp(-u^2/2)/sqrt(pi)."""
    found = Given(split(Max(z1, 0) + Max(z2, 0), (z1, z2)), frame(Matrix([[1, 1]])))
    (u,) = found.u
    assert found.entries(1)[1,].value == 0
    assert identically_zero(found.entries(2)[2,].value - exp(-u**2/2)/sqrt(pi), (u,))

@pytest.mark.parametrize("g, known", [
    (sign(z1)*Max(z2, 0) + Max(z1, z2), [[1, 0, 0]]), (Abs(z1 - z2) + sign(z1 + z2), [[1, 2, 0]]),
    (sign(z1*z2*z3) + Abs(z1)*z2, [[1, 1, 0]]), (erf(z1 + z2)*z1, [[1, 0, 0]]), (sin(z1*z2)*z3 + exp(z1/2), [[0, 1, 1]]),
    (Piecewise((z1, z1 > z2), (z2**2, True)), [[1, 0, 0]])])
def test_entries_against_quadrature(g, known):
    """c_b(u) in closed form at two points, kinks on both sides of them, and the integral over w with u put in."""
    found = Given(split(g, (z1, z2, z3)), frame(Matrix(known)))
    names = dict(zip((*found.u, *found.w), (z1, z2, z3), strict=True))
    back = {z: sum(found.known[i, j]*u for i, u in enumerate(found.u))
            + sum(found.frame[i, j]*w for i, w in enumerate(found.w)) for j, z in enumerate((z1, z2, z3))}
    nodes = np.linspace(-7, 7, 700)  # the trapezoid rule loses a step at each jump, no more
    w1, w2 = np.meshgrid(nodes, nodes, indexing="ij")
    measure = np.exp(-(w1**2 + w2**2)/2)/(2*np.pi)*(nodes[1] - nodes[0])**2
    moved = g.xreplace(back).xreplace(names)
    kernel, held = hx.compile(moved), {s.name for s in moved.free_symbols}
    for point in (Rational(-4, 5), Rational(7, 10)):
        shifted = {"z1": np.full_like(w1, float(point)), "z2": w1, "z3": w2}
        values = np.broadcast_to(kernel(**{k: v for k, v in shifted.items() if k in held}), w1.shape)
        for b, entry in (*found.entries(1).items(), *found.entries(2).items()):
            weight = np.ones_like(w1)
            for n, w in zip(b, (w1, w2), strict=True):
                weight = weight*(1, w, w**2 - 1)[n]
            exact = float(entry.value.subs(found.u[0], point).evalf(15))
            assert abs(exact - float((values*weight*measure).sum())) < 0.01


def test_equal_integrals_cancel():
    """tanh(z1) + tanh(z2) given its mean direction: two nodes without closed form, equal and opposite."""
    found = Given(split(tanh(z1) + tanh(z2), (z1, z2)), frame(Matrix([[1, 1]])))
    assert found.entries(1)[1,].value == 0 and found.entries(2)[2,].value != 0

# -- exact linear algebra ----------------------------------------------------------------------------------------------
def test_subspaces():
    assert rank(Matrix([[sqrt(2), 2], [1, sqrt(2)]])) == 1
    assert spans_same(Matrix([[1, 1, 0], [0, 0, 2]]), Matrix([[1, 1, 1], [1, 1, -1]]))
    assert complement(Matrix([[1, 1, 1]])).rows == 2 and contains(Matrix([[1, 0], [0, 1]]), Matrix([[3, 4]]))
    assert null_space(matrix([], 2)) == Matrix(eye(2)) and span(Matrix([[2, 4]])) == Matrix([[1, 2]])
    tau = E(z1*tanh(z1), z1)
    assert echelon(Matrix([[tau, 2*tau]]))[0] == Matrix([[1, 2]])
    orthonormal = frame(Matrix([[1, 2, 3], [1, 0, 1]]))
    assert (orthonormal*orthonormal.T).applyfunc(expand) == Matrix(eye(2))

# -- invariance --------------------------------------------------------------------------------------------------------
def test_directions_that_are_not_seen():
    assert spans_same(unseen(tanh(z1 + 2*z2), (z1, z2)), Matrix([[2, -1]]))
    assert spans_same(unseen(z1**2 + 2*z1*z2 + z2**2 + sign(z1 + z2), (z1, z2)), Matrix([[1, -1]]))
    assert spans_same(unseen(exp(z1)/(exp(z1) + exp(z2)), (z1, z2)), Matrix([[1, 1]]))  # a weight that cancels
    # an identity that no part shows by itself: found by values, proved by translation
    for hidden in (sin(z1)*cos(z2) + cos(z1)*sin(z2), (tanh(z1) + tanh(z2))/(1 + tanh(z1)*tanh(z2))):
        assert spans_same(unseen(hidden, (z1, z2)), Matrix([[1, -1]]))
    assert unseen(sign(z1)*z2, (z1, z2)).rows == unseen(Max(z1, z2), (z1, z2)).rows == 0

def test_parts_and_forms():
    assert linear_forms(sign(z1**2 - z2**2)*z3, (z1, z2, z3)) == [[0, 0, 1], [1, -1, 0], [1, 1, 0]]
    assert len(polynomial_parts(tanh(z1*z2) + z1*sign(z2), (z1, z2))) == 3
    assert apart(Max(z1, z2), (z1, z2)) == z1/2 + z2/2 + Abs(z1 - z2)/2
    assert apart(log(Abs(z1*z2)), (z1, z2)) == log(Abs(z1)) + log(Abs(z2))

# -- whether a function vanishes ---------------------------------------------------------------------------------------
def test_functions_that_vanish_and_that_do_not():
    x, y = Symbol("x", real=True), Symbol("y", real=True)
    assert vanishes(sin(x)**2 + cos(x)**2 - 1, (x,)).status == "zero"
    assert vanishes(Abs(x*y) - Abs(x)*Abs(y), (x, y)).status == "zero"
    assert vanishes(E(tanh(z1 + x)*z1, z1), (x,)).status == "nonzero"
    assert vanishes(sign(x) - sign(x - Rational(1, 100)), (x,)).status != "zero"  # a strip that no point tried meets

def test_integrands_of_one_sign():
    assert definite(E(z1*z2*tanh(z1*z2), z1, z2)) and definite(-3*E(Abs(z1)*z2**2, z1, z2))
    assert definite(E(z1*tanh(z2), z1, z2)) is None and definite(E(z1*z2*tanh(z1 + z2), z1, z2)) is None
    assert sign_of_integrand(-z1*erf(z1), (z1,)) == -1 and sign_of_integrand(z1**3*sign(z1), (z1,)) == 1
