"""The weak-recovery threshold 1/alpha_c = E[(E[z^2|Y] - 1)^2] = 2 lambda_2^2, at n = alpha d.

Source: Troiani et al. (2024). Trivial (alpha_c = 0) if E[z|Y] != 0, easy if alpha_c is finite, hard if E[z^2|Y] = 1.
Exact where the labels are finitely many, where u is even and injective in |z|, or where E[z^2|Y] is a polynomial of a
count; else numeric, with an error estimate.
"""

from __future__ import annotations

from sympy import Dummy, Expr, Poly, S, Symbol, exp, functions, gammasimp, powdenest, powsimp

from hermitex.errors import BudgetExceeded, HermitexError, NoClosedForm
from hermitex.exponents.channels import Channel, Named
from hermitex.exponents.channels import channel as read_channel
from hermitex.exponents.generative import indicator_moment
from hermitex.exponents.label import revealed
from hermitex.exponents.labels.levels import discrete
from hermitex.exponents.labels.rising import injective_in_modulus
from hermitex.exponents.stages import Threshold
from hermitex.symbolic.arithmetic import mpf
from hermitex.symbolic.engine.tidy import compact
from hermitex.symbolic.gaussian import E
from hermitex.symbolic.hermite import He
from hermitex.symbolic.integrals import closed_form
from hermitex.symbolic.parity import parity
from hermitex.symbolic.pieces import pieces
from hermitex.symbolic.precise import evaluate

_NOISES = ("gaussian", "poisson", "multiplicative")  # of which the label is a function of g and of what is drawn besides
_ROUNDING = mpf(10) ** -13
DETERMINISTIC = read_channel()


def weak_recovery(g: Expr, channel: Named | Channel, x: Symbol, exponent: int | None) -> Threshold:
    """The threshold of a one-variable target, given its generative exponent (None: undetermined)."""
    if exponent is None:
        return Threshold(None, notes=("weak recovery: undetermined with the generative exponent",))
    if exponent == 1:
        return Threshold("trivial", mpf(0), S.Zero, mpf(0), method="E[z|Y] is not zero")
    if exponent >= 3:
        return Threshold("hard")
    try:
        exact = _exact(g, channel, x)
        if exact is not None:
            value = evaluate(exact, 25)
            _loses_nothing_less(1 / value, mpf(0), g, channel, x)
            return Threshold("easy", value, exact, mpf(0), method="one variable: closed form")
        inverse, error = _numeric(g, channel, x)
        _loses_nothing_less(inverse, error, g, channel, x)
        if not 2*error <= inverse:
            raise NoClosedForm("alpha_c", f"1/alpha_c is {float(inverse):.1e} with an error of {float(error):.1e}",
                               "Give the target in another form, or less noise")
    except (BudgetExceeded, HermitexError) as err:
        return Threshold("easy", notes=(f"alpha_c: finite, its value was not reached: {' '.join(str(err).split())}",))
    alpha, relative = 1 / mpf(inverse), mpf(error) / mpf(inverse)
    notes = () if relative < mpf(10) ** -12 else (f"alpha_c: {float(relative):.1e} relative accuracy reached",)
    how = _how(channel, labels=bool(channel.labels(g).probabilities))
    return Threshold("easy", alpha, None, alpha * relative, notes, method=how)


# -- exact -------------------------------------------------------------------------------------------------------------
def _exact(g: Expr, channel: Named | Channel, x: Symbol) -> Expr | None:
    labels = channel.labels(g)
    if labels.levels is not None and channel.name in ("deterministic", "random_sign"):
        u = revealed(labels.levels, (x,))
        if parity(u, x) == 1 and injective_in_modulus(u, x):
            return S.Half
        classes = discrete(u, x)
        if classes is None:
            return None
        pairs = [(indicator_moment(v, 2), indicator_moment(v, 0)) for v in classes.values()]
        return compact(1 / sum(a**2 / b for a, b in pairs))
    if labels.probabilities and (isinstance(channel, Named) or channel.finite):
        try:
            pairs = [(closed_form(E(p * He(2, x), x)), closed_form(E(p, x))) for p in labels.probabilities]
        except HermitexError:
            return None
        return compact(1 / sum(a**2 / b for a, b in pairs))
    if channel.name == "poisson":
        return _poisson(g, x)
    return None


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


def _loses_nothing_less(inverse: mpf, error: mpf, g: Expr, channel: Named | Channel, x: Symbol) -> None:
    """Data processing: a noisy label tells no more than the label without noise, nor any label more than z itself.

    Raises
    ------
    NoClosedForm : a threshold below the one without noise, which is wrong.
    """
    from hermitex.exponents.labels import levelsets

    bound, slack = mpf(2), mpf(0)
    if channel.name in _NOISES:
        plain = _exact(g, DETERMINISTIC, x)
        u = revealed(g, (x,))
        bound, slack = (1 / evaluate(plain, 25), mpf(0)) if plain is not None else levelsets.inverse_threshold(
            u, x, even=parity(u, x) == 1)
    if inverse - error > (bound + slack) * (1 + mpf(10)**-9):
        raise NoClosedForm("alpha_c", f"{float(1 / inverse):.6g} came out, and without noise it is {float(1 / bound):.6g}: "
                           "no channel lowers it", "Give the target in another form")


# -- numeric -----------------------------------------------------------------------------------------------------------
def _numeric(g: Expr, channel: Named | Channel, x: Symbol) -> tuple[mpf, mpf]:
    from hermitex.exponents.labels import levelsets
    from hermitex.exponents.laws.noisy import noisy_second

    labels = channel.labels(g)
    if labels.probabilities and (isinstance(channel, Named) or channel.finite):
        return _finite_numeric(labels.probabilities, x)
    if isinstance(channel, Named) and channel.name not in _NOISES:
        u = revealed(labels.levels, (x,))
        return levelsets.inverse_threshold(u, x, even=parity(u, x) == 1)
    found = noisy_second(g, channel, (x,))
    inverse = mpf(found.couplings.get(((0, 0), (0, 0)), 0.0))
    return inverse, mpf(found.error) + _ROUNDING * inverse


def _how(channel: Named | Channel, *, labels: bool) -> str:
    """The route of `_numeric` in words."""
    drawn = isinstance(channel, Channel) or channel.name in _NOISES
    return f"one variable: {'a sum over the labels' if labels and not drawn else 'the noise integrated' if drawn else 'level sets'}"


def _finite_numeric(laws: tuple[Expr, ...], x: Symbol) -> tuple[mpf, mpf]:
    """The sum over finitely many labels by quadrature to 25 digits, where E[p_j He_2] has no closed form."""
    total = sum(evaluate(E(p * He(2, x), x), 25) ** 2 / evaluate(E(p, x), 25) for p in laws)
    return total, total * mpf(10) ** -20
