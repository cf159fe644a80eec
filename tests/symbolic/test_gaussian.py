"""E is a binder: equal up to the names it binds, and no substitution captures them."""

import copy
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import (
    Abs,
    Dummy,
    Function,
    Integer,
    Matrix,
    Piecewise,
    Poly,
    Rational,
    Symbol,
    cos,
    cse,
    exp,
    latex,
    pi,
    pretty,
    sign,
    simplify,
    sin,
    sqrt,
    symbols,
    tanh,
)

from hermitex import E, Expectation
from hermitex.errors import BadInput
from hermitex.symbolic.gaussian import covariance_items
from hermitex.symbols import c, kappa, m, r, rho, z, z1, z2, z3

f, g = Function("f"), Function("g")
w, x, y = symbols("w x y")


def moment(n):
    """E[z^n] by the double factorial: independent of the package's integrals."""
    value = 1
    for k in range(n - 1, 0, -2):
        value *= k
    return 0 if n % 2 else value


# -- equality ----------------------------------------------------------------------------------------------------------
def test_nodes_are_equal_up_to_the_names_they_bind():
    assert E(f(z), z) == E(f(w), w)
    assert hash(E(f(z), z)) == hash(E(f(w), w))
    assert E(f(z1)*g(z2), z1, z2) == E(f(z1)*g(z2), z2, z1)
    assert E(tanh(z)*E(sin(z*z1), z1), z) == E(tanh(z2)*E(sin(z2*w), w), z2)
    assert E(f(z), z) - E(f(w), w) == 0


def test_a_plain_symbol_of_a_field_name_is_the_field_symbol():
    assert E(Symbol("z")**2) == E(z**2, z)
    assert E(x**2, "x") == E(x**2, x) == E(z**2, z)


def test_nodes_that_differ_are_not_equal():
    assert E(f(z), z) != E(g(z), z)
    assert E(f(z1, z2), z1, z2) != E(f(z2, z1), z1, z2)
    assert E(z1*z2, z1, z2, cov={(z1, z2): rho}) != E(z1*z2, z1, z2)
    assert E(f(z + x), z) != E(f(z + y), z)


def test_what_does_not_occur_is_not_bound():
    assert E(Integer(5), z) == 5
    assert E(tanh(z1), z1, z2, cov={(z1, z2): rho}) == E(tanh(z1), z1)
    assert E(x, z).doit() == x  # kept as a node: x may be the name of a formula that holds z
    assert E(z1**2*x, z1, z2, cov={(z1, z2): rho}).doit() == x
    assert E(z1**2, z1, z2, cov={(z1, z1): 2, (z1, z2): 1}).covariance == Matrix([[2]])


# -- capture -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("substitute", [
    lambda e, old, new: e.subs(old, new),
    lambda e, old, new: e.xreplace({old: new}),
    lambda e, old, new: e.replace(old, new),
    lambda e, old, new: e.subs({old: new}, simultaneous=True),
])
@pytest.mark.parametrize("new", [z, z**2 + z1, E(f(z), z), z*E(g(z1*z), z1)])
def test_no_substitution_captures(substitute, new):
    node = E(f(z)*x + E(x*z*z1, z1), z)
    assert substitute(node, x, new) == E(f(w)*new + E(new*w*y, y), w)


def test_capture_would_be_seen():
    """The same check tells a captured variable from a free one."""
    assert E(f(z)*x, z).subs(x, z) != E(f(z)*z, z)
    assert z in E(f(z)*x, z).subs(x, z).free_symbols


def test_the_bound_variable_cannot_be_reached_from_outside():
    node = E(z*f(z), z)
    inside = node.bound[0]
    for changed in (node.subs(inside, 3), node.xreplace({inside: Integer(3)}), node.subs(z, 3)):
        assert changed == node
    assert node.free_symbols == set()
    # A leaked reserved symbol is a free variable like any other.
    assert E(inside*f(z), z) == E(y*f(z), z).subs(y, inside)


def test_functions_are_put_in_everywhere():
    node = E(f(kappa + z)*E(f(z*z1), z1), z)
    assert node.subs(f, sin) == E(sin(kappa + z)*E(sin(z*z1), z1), z)
    assert node.replace(f, sin) == node.subs(f, sin)


def test_parameters_of_the_covariance_are_substituted():
    node = E(f(z1)*g(z2), z1, z2, cov={(z1, z2): rho, (z1, z1): c})
    assert node.subs({rho: 0, c: 1}) == E(f(z1)*g(z2), z1, z2)
    assert node.xreplace({rho: c/2}).covariance == Matrix([[c, c/2], [c/2, 1]])
    assert rho in node.free_symbols


def test_a_covariance_may_hold_an_outer_variable():
    inner = E(f(z1)*g(z2), z1, z2, cov={(z1, z2): tanh(z)})
    node = E(inner, z)
    assert node.free_symbols == set()
    assert node == E(E(f(z1)*g(z2), z1, z2, cov={(z1, z2): tanh(w)}), w)
    assert node.level == 1


@settings(max_examples=20)
@given(st.integers(0, 4), st.integers(0, 4), st.integers(-3, 3), st.booleans())
def test_substitution_commutes_with_integration(i, j, shift, nested):
    """E_w[(w + x)^i (w y)^j] at x = z, y = z + shift, by the node and by the moments of w."""
    body = (w + x)**i*(w*y)**j
    node = E(E(body*z1**2, z1), w) if nested else E(body, w)
    put = {x: z, y: z + shift}
    by_hand = sum(a*moment(n) for (n,), a in Poly(body.subs(put), w).terms())
    assert (node.subs(put, simultaneous=True).doit() - by_hand).expand() == 0


# -- levels ------------------------------------------------------------------------------------------------------------
def test_levels_number_the_nesting():
    one = E(f(z), z)
    two = E(g(z)*E(f(z*z1), z1), z)
    three = E(E(E(f(z*z1*z2), z2), z1), z)
    assert (one.level, two.level, three.level) == (0, 1, 2)
    # A node that holds no variable of the enclosing one is a constant there, and still lies below it.
    assert E(g(z)*E(f(z1), z1), z).level == 1


@settings(max_examples=10)
@given(st.permutations(["a", "b", "d"]), st.integers(1, 3), st.integers(1, 3))
def test_depth_does_not_depend_on_the_order_of_building(names, p, q):
    a, b, d = (Symbol(n) for n in names)
    inner = E(sin(a**p*b*d), a)
    from_outside = E(d**2*x, d).subs(x, E(b**q*y, b)).subs(y, E(f(a), a))
    assert from_outside == E(d**2*E(b**q*E(f(a), a), b), d)
    built = E(E(inner*b**q, b)*d, d)
    assert built == E(E(E(sin(z1**p*z2*z3), z1)*z2**q, z2)*z3, z3)
    assert built.func(*built.args) == built
    assert built.xreplace({}) == built


def test_rebuilding_from_the_inside_out_keeps_the_node():
    node = E(tanh(z)*E(sin(z*z1)*E(cos(z*z2 + z1), z2), z1), z)
    assert node.replace(sin, sin) == node
    assert node.replace(cos, exp) == E(tanh(z)*E(sin(z*z1)*E(exp(z*z2 + z1), z2), z1), z)


# -- pickling, copying, printing ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("node", [
    E(tanh(z), z),
    E(tanh(z)*E(sin(z*z1) + kappa, z1), z),
    E(Abs(z1)*sign(z2), z1, z2, cov={(z1, z2): rho}),
    E(z**2, z)/2 + sqrt(E(exp(z), z)),
])
def test_nodes_pickle_and_copy(node):
    assert pickle.loads(pickle.dumps(node)) == node
    assert copy.deepcopy(node) == node
    assert str(pickle.loads(pickle.dumps(node))) == str(node)


@pytest.mark.parametrize(("node", "text"), [
    (E(tanh(z), z), "E(tanh(z), z)"),
    (2*E(z**2*f(z), z)**2, "2*E(z**2*f(z), z)**2"),
    (E(f(z)*x, z).subs(x, z), "E(z*f(z1), z1)"),
    (E(f(z1)*g(z2), z1, z2, cov={(z1, z2): rho}), "E(f(z1)*g(z2), z1, z2, cov={(z1, z2): rho})"),
    (E(x*tanh(x), x), "E(x*tanh(x), x)"),
])
def test_printing_gives_the_names_back(node, text):
    assert str(node) == text


def test_latex_and_pretty():
    assert latex(E(z**2, z)) == r"\mathbb{E}_{z}\left[z^{2}\right]"
    assert latex(E(z1*z2 + kappa, z1, z2)) == r"\mathbb{E}_{z_{1}, z_{2}}\left[\kappa + z_{1} z_{2}\right]"
    assert pretty(E(z**2, z), use_unicode=False) == "   [ 2]\nE_z[z ]"
    nested = E(z*E(z*z1, z1), z)
    assert latex(nested) == r"\mathbb{E}_{z}\left[z \mathbb{E}_{z_{1}}\left[z z_{1}\right]\right]"


def test_text_reads_back():
    from hermitex import parse

    node = E(tanh(z)*(z - E(z1**2*tanh(z1), z1)), z)
    assert E("z**2*tanh(z)") == E(z**2*tanh(z), z)
    assert parse(str(E(z*tanh(z), z))) == E(z*tanh(z), z)
    assert node.subs(z, 3) == node


# -- the protocol of expressions ---------------------------------------------------------------------------------------
def test_nodes_behave_in_algebra():
    node = E(f(z), z)
    assert ((node + 1)**2).expand() == node**2 + 2*node + 1
    assert (x*node + x).factor() == x*(node + 1)
    assert E(z**2, z).equals(1)
    assert simplify(E(sin(z)**2 + cos(z)**2, z)) == 1


def test_assumptions_follow_the_body():
    assert E(exp(z), z).is_positive
    assert E(Abs(z), z).is_nonnegative
    assert E(tanh(z), z).is_real
    assert E(f(z), z).is_real is None


def test_what_cse_does_not_know_the_package_does():
    """cse pulls bound terms out, so nodes are to be replaced by symbols first; then nothing is lost."""
    expr = E(z**2*x + z**2, z) + x*E(sin(z**2), z)
    names = {n: Symbol(f"n{i}") for i, n in enumerate(sorted(expr.atoms(Expectation), key=str))}
    replaced, (reduced,) = cse(expr.xreplace(names))
    for name, value in reversed(replaced):
        reduced = reduced.subs(name, value)
    assert reduced.xreplace({v: k for k, v in names.items()}) == expr


def test_open_and_with_body_are_inverse():
    node = E(f(z1)*E(g(z1*z2*z3), z3)*kappa, z1, z2, cov={(z1, z2): rho})
    body, variables = node.open()
    assert node.with_body(body, variables) == node
    assert node.with_body(body*0 + 7, variables) == 7
    assert body.free_symbols >= {kappa, *variables}
    assert covariance_items(node) == {(0, 1): rho}


# -- derivatives -------------------------------------------------------------------------------------------------------
def test_derivative_of_smooth_kinked_and_jumping_integrands():
    assert E(sin(m + r*z), z).diff(m) == E(cos(m + r*z), z)
    assert E(sin(m + r*z), z).diff(r) - E(z*cos(m + r*z), z) == 0
    # d/dm E|m + z| = E sign(m + z), and d/dm E sign(m + z) = 2 phi(m): the jump is not lost.
    first = E(Abs(m + z), z).diff(m)
    assert first == E(sign(m + z), z)
    assert first.diff(m).doit() == sqrt(2)*exp(-m**2/2)/sqrt(pi)


def test_derivative_of_what_does_not_depend():
    assert E(tanh(z), z).diff(z) == 0
    assert E(tanh(z), z).diff(kappa) == 0
    assert (kappa*E(tanh(z), z)).diff(kappa) == E(tanh(z), z)


def test_derivative_goes_through_nested_nodes():
    node = E(f(kappa + z)*E(sin(kappa*z1 + z), z1), z)
    assert (node.diff(kappa).subs(f, sin).doit()
            - node.subs(f, sin).doit().diff(kappa)).subs(kappa, Rational(1, 3)).equals(0)


# -- refusals ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("wrong", [
    lambda: E(z1, z1, z1),
    lambda: E(z1*z2, z1, z2, cov={(z1, z3): rho}),
    lambda: E(z1*z2, z1, z2, cov={(z1, z2): 2}),
    lambda: E(z1*z2, z1, z2, cov={(z1, z1): -1}),
    lambda: E(z1*z2*z3, z1, z2, z3, cov={(z1, z2): 1, (z2, z3): 1, (z1, z3): 0}),
    lambda: E(z1*z2, z1, z2, cov={(z1, z2): rho}).subs(rho, 3),
    lambda: E(z > 0, z),
    lambda: E(Matrix([z]), z),
    lambda: E(None, z),
    lambda: E(z, 2),
    lambda: E(z, z + 1),
])
def test_refusals(wrong):
    with pytest.raises(BadInput, match="E: "):
        wrong()


def test_semi_definite_covariances_are_laws():
    node = E(z1*z2, z1, z2, cov={(z1, z2): 1})
    assert node.doit() == 1
    assert E(z1*z2, (z1, z2), cov={(z1, z2): Rational(-1)}).doit() == -1


def nested(depth):
    """E[z tanh(z + E[z tanh(z + ...)])], and E_z1[z1 z2 E_z2[z1 z2 ...]] whose inner nodes see the outer variables."""
    apart, through = z, tanh(z1 + z2)
    for k in range(depth):
        apart = E(z*tanh(kappa*z + apart), z)
        through = E(z1*z2*through + kappa, (z1, z2)[k % 2])
    return apart, through


def test_deep_nests_cost_little():
    for node in nested(20):  # opening every node at every step takes 3^20 steps: this would not come back
        assert node.func(*node.args) == node
        assert node.subs(kappa, 1) == node.xreplace({kappa: Integer(1)})
        assert node.level == 19


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_a_short_cut_in_nests_gives_the_same_node(depth):
    for node in nested(depth):
        for new in (Integer(0), z1, E(z1*tanh(z1), z1), rho):
            long = node.subs(kappa, new)  # opens every node
            assert node.xreplace({kappa: new}) == long
            assert long.func(*long.args) == long


@pytest.mark.parametrize("variables", [(z1, z2), (z2, z1)])
def test_a_covariance_may_be_a_matrix(variables):
    s = Symbol("s", positive=True)
    pairs = E(z1**2*z2, *variables, cov={(variables[0], variables[0]): s, (z1, z2): rho})
    for matrix in ([[s, rho], [rho, 1]], Matrix([[s, rho], [rho, 1]])):
        assert E(z1**2*z2, *variables, cov=matrix) == pairs


@pytest.mark.parametrize(("cov", "message"), [
    ([[1, rho]], "a row for each of z1, z2"), ([[1, rho], [0, 1]], "not symmetric"),
    (3, "a row for each"), ({z1: rho}, "pairs of variables"),
])
def test_a_covariance_that_is_none_is_told(cov, message):
    with pytest.raises(BadInput, match=message):
        E(z1*z2, cov=cov)


def test_a_covariance_is_printed():
    """Else one symbol would stand for two averages."""
    one, other = E(f(z1)*f(z2), z1, z2), E(f(z1)*f(z2), z1, z2, cov={(z1, z2): rho, (z2, z2): 3})
    assert latex(one).startswith(r"\mathbb{E}_{z_{1}, z_{2}}\left[")
    said = r"\langle z_{1} z_{2} \rangle = \rho, \langle z_{2}^{2} \rangle = 3"
    assert latex(other).startswith(rf"\mathbb{{E}}_{{z_{{1}}, z_{{2}};\, {said}}}\left[")


def test_what_goes_through_each_part_once_is_what_xreplace_gives():
    from hermitex.symbolic.subexpressions import parts, swapped

    a, d, f = Symbol("a", positive=True), Dummy("d"), Function("f")
    deep = f(kappa)
    for _ in range(40):  # 2^40 leaves
        deep = f(deep, deep)
    assert len(list(parts(deep))) == 42 and swapped(swapped(deep, {kappa: r}), {r: kappa}) == deep
    node = E(Piecewise((z*a, z > a), (E(tanh(kappa*z), kappa), True)), z)
    e = node**2 + node/(1 + a)
    for rule in ({a: Symbol("b", positive=True)}, {a: kappa}, {node: d}, {kappa: z, a: E(kappa**2*z, kappa)}, {}):
        assert swapped(e, rule) == e.xreplace(rule)
