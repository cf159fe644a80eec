r"""mhat = alpha E[y s], Vhat = alpha Delta E[-ds/domega], qhat = alpha Delta E[s^2], E[s] = 0: labels of +-1 on isotropic data.

Either the field decides, P(y = 1 | nu) = (1 + E g(nu + bias + sqrt(Delta) Z))/2 with g = sign, tanh(z/2) (logit) or 2 Phi - 1
(probit) [loureiro2021]; or the label decides, x = y v/sqrt(d) + sqrt(Delta) Z, a mixture of two Gaussians with a share `fraction`
of y = 1 [mignacco2020]. s = (f* - omega)/V is the force of the loss, b an intercept.
"""

from __future__ import annotations

from typing import Any

from sympy import Eq, Expr, S, erf, sign, sqrt, symbols, tanh

from hermitex.errors import BadInput
from hermitex.symbolic.activations import Activation, activation
from hermitex.symbolic.gaussian import E
from hermitex.symbols import Delta, V, Vhat, alpha, f, lamda, m, mhat, q, qhat, rho, z, z1
from hermitex.systems.system import System
from hermitex.theories.losses import loss_equations as sample
from hermitex.theories.losses.pointwise import HALF_SQUARE, Pointwise

#: word -> the mean label given the field, as a function of z
MEANS: dict[str, Expr] = {"sign": sign(z), "logit": tanh(z/2), "probit": erf(z/sqrt(2))}
b, bias, c_0, c_1, e = symbols("b bias c_0 c_1 e", real=True)
fraction, reach = symbols("fraction reach", positive=True)  # reach: Delta V, how far a sample's output may move
s_up, s_down, f_up, f_down, m_up, m_down = symbols("s_up s_down f_up f_down m_up m_down", real=True)


def word_of_link(theory: str, labels: str | None, link: Any) -> Any:
    """How the teacher's field makes labels: a word that may be given as `labels` or as `link`, in every theory.

    >>> word_of_link("glm", "sign", None), word_of_link("glm", None, "logit"), word_of_link("glm", None, None)
    ('sign', 'logit', 'linear')
    """
    if labels is not None and link is not None and labels != link:
        raise BadInput(f"{theory}: labels={labels!r} and link={link!r} say two things about the labels; give one of them")
    return next((said for said in (labels, link) if said is not None), "linear")


def mean_label(word: str) -> Activation:
    """The mean of a label of +-1 given its field: sign, logit or probit."""
    return activation(MEANS[word])


def of_field(loss: Pointwise, word: str, *, intercept: bool) -> System:
    """The equations of labels that a teacher's field decides, with noise; with an intercept the field may have a bias."""
    g, shift = mean_label(word), bias if intercept else S.Zero
    mirror = not intercept and loss.symmetric
    # a sample's first normal is nu/sqrt(rho); the teacher's bias takes the place of its spike
    here = {sample.psi: m/sqrt(rho), sample.q1: q, sample.rho: rho, sample.gamma: shift, sample.kappa: S.One,
            sample.B: b if intercept else S.Zero}
    where, shown = sample.without_spike(sample.Structure(g, g, loss, "labels", mirror=mirror), here)
    del shown["test_loss"]
    right: dict[Any, Any] = {Vhat: alpha*sample.J_s, qhat: alpha*sample.J_2, mhat: alpha*sample.J_z/sqrt(rho), **_prior()}
    if intercept:
        right[b] = Eq(sample.J, 0, evaluate=False)
    if loss == HALF_SQUARE:  # only E y and E y nu enter
        width, damped = sqrt(rho + Delta), 1/(1 + V)
        where = {n: where[n] for n in (sample.S_, sample.tau, sample.a, sample.s_0) if n in where} | {
            c_0: E(g(shift + width*z), z), c_1: sqrt(rho)*E(z*g(shift + width*z), z)/width,
            e: 1 - (c_0**2 if intercept else 0) - 2*c_1*m/sqrt(rho) + q,
            sample.J_s: damped, sample.J_2: e*damped**2, sample.J_z: c_1*damped}
        shown["train_error"] = e*damped**2/2
        if intercept:
            right[b] = c_0
    kept = [n for n in (sample.S_, sample.tau, sample.J_s, sample.J_2, sample.J_z) if n in where]
    parameters = [alpha, lamda, Delta, rho, *([bias] if intercept else [])]
    return _system(right, where, shown, parameters, kept, "loureiro2021", f"glm({loss}, {word})")


def of_mixture(loss: Pointwise, *, intercept: bool) -> System:
    """The equations of two Gaussian clusters of variance Delta around +-v/sqrt(d), |v|^2 = rho d."""
    where, shown = clusters(loss, m, Delta*q, Delta*V, b if intercept else S.Zero)
    right: dict[Any, Any] = {Vhat: alpha*Delta*sample.J_s, qhat: alpha*Delta*sample.J_2, mhat: alpha*sample.J_z, **_prior()}
    if intercept:
        right[b] = Eq(sample.J, 0, evaluate=False)
    return _system(right, where, shown, [alpha, lamda, Delta, rho, fraction],
                   [sample.S_, reach, m_up, m_down, sample.J_s, sample.J_2, sample.J_z], "mignacco2020", f"glm({loss}, mixture)")


def clusters(loss: Pointwise, mean: Expr, spread: Expr, far: Expr, shift: Expr) -> tuple[dict[Any, Any], dict[str, Expr]]:
    """Names for J = E s, J_z = E y s, J_2 = E s^2, J_s = -E ds/domega, and the errors, of two clusters.

    A sample's output is y mean + shift + sqrt(spread) z1, and moves by `far` times the force s.
    """
    width = sample.S_
    (up, at_up), (down, at_down) = (loss.force(y, at + width*z1, reach) for y, at in ((1, m_up), (-1, m_down)))

    def both(plus: Expr, minus: Expr) -> Expr:
        return fraction*E(plus, z1) + (1 - fraction)*E(minus, z1)

    where = {width: sqrt(spread), reach: far, m_up: mean + shift, m_down: shift - mean,
             s_up: up, s_down: down, f_up: at_up, f_down: at_down, **({sample.J: both(s_up, s_down)} if shift != 0 else {}),
             sample.J_z: both(s_up, -s_down), sample.J_2: both(s_up**2, s_down**2), sample.J_s: -both(z1*s_up, z1*s_down)/width}
    missed = (1 - fraction*erf((mean + shift)/(sqrt(2)*width)) - (1 - fraction)*erf((mean - shift)/(sqrt(2)*width)))/2
    train = both(loss.at(1).subs(f, f_up), loss.at(-1).subs(f, f_down))
    return where, {"test_error": missed, "train_error": train}


def _prior() -> dict[Any, Any]:
    """The weights' side: isotropic data, a ridge."""
    return {V: 1/(lamda + Vhat), q: (rho*mhat**2 + qhat)/(lamda + Vhat)**2, m: rho*mhat/(lamda + Vhat)}


def _system(right: dict[Any, Any], where: dict[Any, Any], observables: dict[str, Expr], parameters: list[Any], kept: list[Any],
            source: str, name: str) -> System:
    objective = {"train_objective": observables["train_error"] + lamda*q/(2*alpha)}
    return System(right, where=where, observables={**observables, **objective}, parameters=parameters, positive=[Vhat, qhat, V, q],
                  kept=kept, source=source, name=name)
