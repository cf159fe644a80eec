"""Named sub-expressions are macros: their normals are those of the expectation around them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import Symbol, symbols, tanh

from hermitex import E
from hermitex.errors import BadInput
from hermitex.symbols import V, kappa, q, z, z1
from hermitex.systems.scope import depends_on, free_names, require_acyclic, written_out

Q, B, T = symbols("Q B T", real=True)
WHERE = {Q: 1/(1 + V*kappa**2), B: q*kappa*Q, T: E(tanh(kappa + z)*Q, z)}


def test_a_name_speaks_of_the_variable_that_is_bound_around_it():
    assert written_out(E(Q, kappa), WHERE) == E(1/(1 + V*kappa**2), kappa)
    assert written_out(E(B**2, kappa), WHERE) == E((q*kappa/(1 + V*kappa**2))**2, kappa)


def test_a_node_inside_a_name_keeps_its_own_variable():
    assert written_out(E(T, kappa), WHERE) == E(E(tanh(kappa + z)/(1 + V*kappa**2), z), kappa)


def test_what_is_free_after_writing_out():
    assert set(free_names(E(T*B, kappa), WHERE)) == {"V", "q"}
    assert set(free_names(E(T*B, z1), WHERE)) == {"V", "q", "kappa"}


def test_only_what_an_unknown_enters_is_written_out():
    assert set(depends_on(WHERE, {q})) == {B}
    assert set(depends_on(WHERE, {V})) == {Q, B, T}


def test_a_circle_is_named():
    for build in (lambda: require_acyclic({Q: B, B: Q + 1}), lambda: written_out(Q, {Q: B, B: Q + 1})):
        with pytest.raises(BadInput, match=r"Q -> B -> Q is a circle|B -> Q -> B is a circle"):
            build()


def test_a_covariance_survives_being_written_out():
    rho = Symbol("rho", positive=True)
    node = E(z*z1*Q, z, z1, cov={(z, z1): rho})
    assert written_out(node, {Q: V}) == E(z*z1*V, z, z1, cov={(z, z1): rho})


@settings(derandomize=True, max_examples=30)
@given(st.permutations([Q, B, T]))
def test_the_order_of_the_names_does_not_matter(order):
    shuffled = {k: WHERE[k] for k in order}
    assert written_out(E(T*B + Q, kappa), shuffled) == written_out(E(T*B + Q, kappa), WHERE)
