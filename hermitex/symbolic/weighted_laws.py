"""Laws whose quantiles have no formula, as averages over a standard normal with a weight:  E f(x) = E_z[w(z) f(T(z))].

    w(z) = p(T(z)) T'(z)/phi(z),     t = -log(1 - Phi(z)),   b = -log Phi(z)

    Gamma(k)      T = c log(1 + exp(t - v(k) b)),  c = 1 + k/2,    v(a) ~ 1/a + 1/sqrt(a)
    Beta(a, b)    logit T = log(a/b) + v(b) t - v(a) b

T has the tails of the law or longer ones, so that w is bounded; its powers of 1 + exp(y) are written as exponentials, which do not
vanish before what is averaged overflows. Others are functions of these two: of StudentT(n), for one,
x = sqrt(n) sinh(y/2) with y the logit of a Beta(n/2, n/2). The error of the average is estimated as for every other integrand.
"""

from __future__ import annotations

from collections.abc import Callable

from sympy import Expr, Rational, S, erf, erfc, exp, gamma, log, loggamma, sinh, sqrt

Weighted = tuple[Expr, Expr]  # value and weight, as functions of z


def below(z: Expr) -> Expr:
    """Phi(z)."""
    return (1 + erf(z/sqrt(2)))/2


def survives(z: Expr) -> Expr:
    """-log(1 - Phi(z)), an exponential variable of rate 1."""
    return -log(erfc(z/sqrt(2))/2)  # 1/2 - erf/2 has no digit for large z


def _longer(a: Expr) -> Expr:
    """1/a, which a tail exp(a y) asks for, and about 1/sqrt(a), the width of the law; irrational where a is 1, 3/2, 2, ..."""
    return 1/a + 1/(1 + sqrt(a + Rational(1, 7)))


def _stretched(z: Expr, left: Expr, right: Expr) -> tuple[Expr, Expr]:
    """y = right t - left b, and dy/dz over the normal density."""
    return right*survives(z) - left*survives(-z), right/below(-z) + left/below(z)


def _gamma(z: Expr, k: Expr) -> Weighted:
    """The Gamma law of shape k and scale 1."""
    y, stretch = _stretched(z, _longer(k), S.One)
    c, x = 1 + k/2, log(1 + exp(y))
    return c*x, exp(k*log(c) - loggamma(k))*x**(k - 1)*exp(-c*log(1 + exp(y)))/(1 + exp(-y))*stretch


def _logit(z: Expr, a: Expr, b: Expr) -> Weighted:
    """y with 1/(1 + exp(-y)) of the Beta law."""
    y, stretch = _stretched(z, _longer(a), _longer(b))
    y += log(a/b)
    return y, exp(loggamma(a + b) - loggamma(a) - loggamma(b))*exp(-a*log(1 + exp(-y)) - b*log(1 + exp(y)))*stretch


def _of_gamma(z: Expr, k: Expr, f: Callable[[Expr], Expr]) -> Weighted:
    x, weight = _gamma(z, k)
    return f(x), weight


def _of_logit(z: Expr, a: Expr, b: Expr, f: Callable[[Expr], Expr]) -> Weighted:
    y, weight = _logit(z, a, b)
    return f(y), weight


#: law of sympy.stats -> value and weight; the arguments after z are those of the law there
WEIGHTED: dict[str, Callable[..., Weighted]] = {
    "GammaDistribution": lambda z, k, scale: _of_gamma(z, k, lambda x: scale*x),
    "ChiSquaredDistribution": lambda z, k: _of_gamma(z, k/2, lambda x: 2*x),
    "ChiDistribution": lambda z, k: _of_gamma(z, k/2, lambda x: sqrt(2*x)),
    "GammaInverseDistribution": lambda z, a, b: _of_gamma(z, a, lambda x: b/x),
    "BetaDistribution": lambda z, a, b: _of_logit(z, a, b, lambda y: 1/(1 + exp(-y))),
    "KumaraswamyDistribution": lambda z, a, b: _of_logit(z, S.One, b, lambda y: (1 + exp(-y))**(-1/a)),
    "StudentTDistribution": lambda z, n: _of_logit(z, n/2, n/2, lambda y: sqrt(n)*sinh(y/2)),
}


#: laws without moments -> the order from which on there are none
NONE_ABOVE: dict[str, Callable[..., Expr]] = {
    "StudentTDistribution": lambda n: n,
    "CauchyDistribution": lambda x, s: S.One,
    "GammaInverseDistribution": lambda a, b: a,
    "ParetoDistribution": lambda least, a: a,
    "FrechetDistribution": lambda a, s, m: a,
}
LARGEST = 60  # shape: beyond it the weight overflows
SHAPES = {"BetaDistribution": slice(2), "KumaraswamyDistribution": slice(1, 2)}  # their places, if not first


def moment_of_student(n: int, nu: Expr) -> Expr:
    """E x^n of Student's law, n < nu."""
    half = S(n)/2
    return S.Zero if n % 2 else nu**half*gamma(half + S.Half)*gamma(nu/2 - half)/gamma(nu/2)/sqrt(S.Pi)
