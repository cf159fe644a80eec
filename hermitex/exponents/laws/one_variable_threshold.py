"""The weak-recovery threshold 1/alpha_c = E[(E[z^2|Y] - 1)^2] = 2 lambda_2^2, at n = alpha d, of a label of one variable.

Source: Troiani et al. (2024). Exact where u is even and injective in |z|, or where E[z^2|Y] is a polynomial of a count;
else by level sets, with an error estimate.
"""

from __future__ import annotations

from sympy import Dummy, Expr, Poly, S, Symbol, exp, functions, gammasimp, powdenest, powsimp

from hermitex.errors import HermitexError
from hermitex.exponents.channels import Channel, NamedChannel
from hermitex.exponents.labels.monotone_labels import injective_in_modulus
from hermitex.exponents.laws.level_nodes import inverse_threshold
from hermitex.exponents.laws.value import Value, threshold_from_number
from hermitex.symbolic.arithmetic import mpf
from hermitex.symbolic.engine.rational_tidying import compact
from hermitex.symbolic.gaussian import E
from hermitex.symbolic.integrals import closed_form
from hermitex.symbolic.parity import parity
from hermitex.symbolic.pieces import pieces
from hermitex.symbolic.precise import evaluate
from hermitex.symbolic.series.polynomials import He


def one_variable(g: Expr, law: NamedChannel | Channel, x: Symbol) -> Value | None:
    """The threshold of a label of one standard normal, E[z|Y] = 0; None for noise that has no formula.

    Parameters: `g` as it is after what is injective was peeled off; it takes infinitely many values.
    """
    exact = None
    if law.name == "poisson":
        exact = _poisson(g, x)
    elif law.name == "deterministic":
        even = parity(g, x) == 1
        if not even or not injective_in_modulus(g, x):
            return threshold_from_number(*inverse_threshold(g, x, even=even))._replace(method="one variable: level sets")
        exact = S.Half
    return None if exact is None else Value(evaluate(exact, 25), exact, mpf(0), method="one variable: closed form")


def _poisson(g: Expr, x: Symbol) -> Expr | None:
    """E[z^2|y] - 1 = R(y), a polynomial of the count: then E[R(Y)^2] needs moments only, E[Y^n|z] = sum S(n, j) g^j."""
    # A count as a real number: |z|^(2y) is then a power that the engine integrates; the factorial cancels in the ratio.
    y, t = Dummy("y", positive=True), Dummy("t", positive=True)
    if parity(g, x) != 1 or any(p.expr == 0 for p in pieces(g, x)):  # 0^y is not 0 at the count 0
        return None
    half = g.xreplace({x: t})
    law = powsimp(powdenest((exp(-half) * half**y).expand(), force=True)).xreplace({t: functions.Abs(x)})
    try:
        ratio = gammasimp(closed_form(E(law * He(2, x), x)) / closed_form(E(law, x))).simplify()
        if not ratio.is_polynomial(y):
            return None
        square = Poly(ratio**2, y)
        moments = sum(c * sum(functions.combinatorial.numbers.stirling(n, j) * g**j for j in range(n + 1))
                      for (n,), c in square.terms())
        return compact(1 / closed_form(E(moments, x)))
    except HermitexError:
        return None
