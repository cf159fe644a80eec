"""What a certificate says of a symmetry is what its matrix does: z -> R z read from the words gives g back, up to the sign."""

import pytest
from sympy import Matrix, simplify

from hermitex import parse
from hermitex.exponents.directions.invariant_tensors import stabiliser, without_sign
from hermitex.exponents.directions.symmetry import symmetries
from hermitex.symbols import normals


def moved(g, words, variables):
    names = {str(v): v for v in variables}
    pairs = [pair.split(" -> ") for pair in words.split(", ")]
    return g.xreplace({names[old]: parse(new) for old, new in pairs})


@pytest.mark.parametrize("text", ["z1*z2", "z1*z2*z3", "z1**3*z2 - z1*z2**3", "tanh(z1) - tanh(z2) + z3**2",
                                  "z1*z2 + z2*z3 + z3*z4 + z4*z1"])
def test_words_are_what_the_matrix_does(text):
    g = parse(text)
    variables = normals(g)
    r = len(variables)
    generators = symmetries(g, variables)
    kept = [*generators, *without_sign(generators),
            *stabiliser(generators, Matrix([[1]*r])), *stabiliser(generators, Matrix.eye(r)[:1, :])]
    for s in kept:
        assert s.how == "identity" or simplify(moved(g, s.how, variables) - s.sign*g) == 0, s.how


def test_a_wrong_word_is_seen():
    g = parse("z1*z2")
    assert "z1 -> -z2, z2 -> -z1" in {s.how for s in without_sign(symmetries(g, normals(g)))}  # a product of three
    assert moved(g, "z2 -> -z2", normals(g)) + g == 0  # which is why "z2 -> -z2 with z1 -> z2, z2 -> z1" leaves nothing alone
