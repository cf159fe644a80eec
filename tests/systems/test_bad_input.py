"""What is wrong in a system of laws, arrays, matrices and flows is said in one line that names it."""

from itertools import combinations

import pytest
from sympy import Idx, ImmutableMatrix, IndexedBase, Sum, Symbol, eye, symbols, tanh
from sympy.stats import Bernoulli, Exponential, Poisson, Rademacher, Uniform

import hermitex as hx
from hermitex.errors import BadInput
from hermitex.face.spec import from_toml
from hermitex.symbols import z

a = symbols("a", real=True)
V = symbols("V", positive=True)
eta, beta = IndexedBase("eta"), IndexedBase("beta")
k = Idx("k", Symbol("N", integer=True))
MODES = hx.System({V: 1 + Sum(eta[k]*beta[k]/(eta[k] + V), k)})
Q11, Q12, Q22 = symbols("Q11 Q12 Q22", real=True)
Q = ImmutableMatrix([[Q11, Q12], [Q12, Q22]])
LAWS = {"Rademacher": lambda n: Rademacher(n), "Bernoulli": lambda n: Bernoulli(n, a), "Poisson": lambda n: Poisson(n, 2),
        "Exponential": lambda n: Exponential(n, 1), "Uniform": lambda n: Uniform(n, 0, 1)}


@pytest.mark.parametrize("one, other", list(combinations(LAWS, 2)))
def test_one_letter_has_one_law(one, other):
    """Two laws of one name are two variables to SymPy, and were averaged as such."""
    with pytest.raises(BadInput, match="x is the name of two laws") as caught:
        hx.E(tanh(LAWS[one]("x") + z)*LAWS[other]("x"))
    assert "\n" not in str(caught.value)
    for law in (one, other):
        with pytest.raises(BadInput, match="z is the name of a law"):
            hx.E(tanh(LAWS[law]("z") + z))
        with pytest.raises(BadInput, match="x is the name of a law"):
            hx.E(tanh(LAWS[law]("x") + Symbol("x", real=True)*z), z, LAWS[law]("x"))
        assert hx.E(LAWS[law]("x")) == hx.E(LAWS[law]("y"))


def spec(**sections):
    return from_toml("\n".join(f"[{name}]\n{lines}" for name, lines in sections.items()))


@pytest.mark.parametrize("wrong, says", [
    (lambda: MODES.solve(eta=[1.0], betta=[1.0]), "beta has no value.*is betta meant"),
    (lambda: MODES.follow("eta", (0, 1), beta=[1.0]), "eta is an array"),
    (lambda: hx.System({Q: a*Q + eye(2)}).solve(a=0.5, start={"Q": [[1, 2, 3]]}), "Q has no entry Q13"),
    (lambda: spec(equations='q = "1/(1 + q)"', domain="q = 1"), r"^spec: \[domain\] q: an open interval is a text"),
    (lambda: spec(flow='q = "q = -q"'), "rate dq/dt alone"),
])
def test_it_is_said_in_one_line(wrong, says):
    with pytest.raises(BadInput, match=says) as caught:
        wrong()
    assert "\n" not in str(caught.value)
