"""Random true identities of the Gaussian calculus, and random errors planted in them: what `check` is tried on.

A family makes (left, right) from a `random.Random`; an error makes a false right side of a true one, or None where it has
nothing to change.
"""

from __future__ import annotations

from math import comb, factorial
from random import Random

from sympy import (
    Abs,
    Add,
    Function,
    Heaviside,
    Max,
    Min,
    Mul,
    Piecewise,
    Rational,
    S,
    Symbol,
    asin,
    cos,
    erf,
    exp,
    log,
    pi,
    sign,
    sin,
    sqrt,
    tanh,
)

import hermitex as hx
from hermitex.symbols import kappa, r, rho, z, z1, z2

f, g = Function("f"), Function("g")
mu, w = Symbol("mu", real=True), Symbol("w", real=True)
s = Symbol("s", positive=True)
n = Symbol("n", integer=True, positive=True)
E, He, D = hx.E, hx.He, hx.Derivative
PAIR = {(z1, z2): rho}
SMOOTH = (tanh, sin, lambda u: exp(u/2), lambda u: cos(u) + u, lambda u: u**3 - u)


def _number(random: Random) -> Rational:
    return Rational(random.choice([k for k in range(-30, 31) if k]), random.choice([2, 3, 5, 7, 10]))


def stein(random):
    k, a = random.randint(1, 3), random.choice([r, s, Rational(random.randint(2, 9), 4)])
    h = f if random.random() < 2/3 else random.choice(SMOOTH)
    slope = D(f, k)(mu + a*z) if h is f else h(w).diff(w, k).subs(w, mu + a*z)
    return E(He(k, z)*h(mu + a*z), z), a**k*E(slope, z)


def stein_with_covariance(random):
    h = random.choice([f, tanh, sin])
    slope = D(f)(z2) if h is f else h(w).diff(w).subs(w, z2)
    return E(z1*h(z2), z1, z2, cov=PAIR), rho*E(slope, z2)


def price(random):
    h, k = random.choice([(f, g), (f, f), (g, sin)])
    slope = D(k)(z2) if k is not sin else cos(z2)
    return E(h(z1)*k(z2), z1, z2, cov=PAIR).diff(rho), E(D(h)(z1)*slope, z1, z2, cov=PAIR)


def mehler(random):
    j = random.randint(1, 4)
    k = j if random.random() < 3/4 else random.randint(1, 4)
    return E(He(j, z1)*He(k, z2), z1, z2, cov=PAIR), factorial(j)*rho**j if j == k else S.Zero


def isserlis(random):
    a, b = random.choice([(1, 1), (2, 2), (1, 3), (3, 3), (2, 4)])
    c = random.choice([rho, Rational(1, 3), -Rational(2, 5)])
    value = sum(comb(a, k)*comb(b, k)*factorial(k)*c**k*_double(a - k)*_double(b - k) for k in range(min(a, b) + 1))
    return E(z1**a*z2**b, z1, z2, cov={(z1, z2): c}), value


def _double(k: int) -> int:
    """E z^k."""
    return 0 if k % 2 else factorial(k)//(2**(k//2)*factorial(k//2))


def tower(random):
    return (E(f(z1)*g(z2), z1, z2, cov=PAIR), E(f(z1)*E(g(rho*z1 + sqrt(1 - rho**2)*z2), z2), z1))


def scaling(random):
    a, b = random.choice([(r, s), (Rational(3, 5), s), (Rational(3, 5), Rational(7, 4))])
    h = random.choice([f, f, tanh, lambda u: Max(0, u)])
    return E(h(mu + a*z1 + b*z2), z1, z2), E(h(mu + sqrt(a**2 + b**2)*z), z)


def hermite_products(random):
    i, j, k = (random.randint(0, 3) for _ in range(3))
    half, odd = divmod(i + j + k, 2)
    value = 0 if odd or half < max(i, j, k) else (
        Rational(factorial(i)*factorial(j)*factorial(k), factorial(half - i)*factorial(half - j)*factorial(half - k)))
    return E(He(i, z)*He(j, z)*He(k, z)*mu + tanh(mu*z)**2, z), value*mu + E(tanh(mu*z)**2, z)


def closed(random):
    a = _number(random)
    return random.choice([
        (E(erf(mu + s*z), z), erf(mu/sqrt(1 + 2*s**2))),
        (E(exp(mu*z)*z**2, z), (1 + mu**2)*exp(mu**2/2)),
        (E(cos(mu*z + a), z), cos(a)*exp(-mu**2/2)),
        (E(Max(0, mu + s*z), z), mu*(1 + erf(mu/s/sqrt(2)))/2 + s*exp(-mu**2/s**2/2)/sqrt(2*pi)),
        (E(sign(mu + s*z), z), erf(mu/s/sqrt(2))),
        (E(sign(z1)*sign(z2), z1, z2, cov=PAIR), 2*asin(rho)/pi),
        (E(Abs(mu + s*z), z), mu*erf(mu/s/sqrt(2)) + s*sqrt(2/pi)*exp(-mu**2/s**2/2)),
        (E(exp(-s*z**2), z), 1/sqrt(1 + 2*s)),
        (E(Heaviside(z - mu), z), (1 - erf(mu/sqrt(2)))/2),
        (E(exp(mu*z1 + w*z2), z1, z2), exp((mu**2 + w**2)/2)),
    ])


def switches(random):
    a = _number(random)
    return random.choice([
        (Max(mu, a), (mu + a + Abs(mu - a))/2), (Min(mu, w), (mu + w - Abs(mu - w))/2),
        (Abs(mu*w - a), Piecewise((mu*w - a, mu*w > a), (a - mu*w, True))),
        (sqrt((mu - a)**2*(1 + w**2)), Abs(mu - a)*sqrt(1 + w**2)), (Max(0, mu - a) - Max(0, a - mu), mu - a),
        (sin(mu)**2, (1 - cos(2*mu))/2), (log(s**2*(1 + r)), 2*log(s) + log(1 + r)), (tanh(2*mu), 2*tanh(mu)/(1 + tanh(mu)**2)),
        (n*(n + 1)*(2*n + 1)/6, (2*n**3 + 3*n**2 + n)/6), (sign(mu - a)*(mu - a), Abs(a - mu)),
        (E(Max(0, mu - a)*z**2, z), Max(0, mu - a)), (E(Abs(kappa)*sign(kappa)*z**4, z), 3*kappa),
    ])


def of_functions(random):
    return random.choice([
        ((f(0) + g(mu))**2, f(0)**2 + 2*f(0)*g(mu) + g(mu)**2), (Max(f(0), g(0)), (f(0) + g(0) + Abs(f(0) - g(0)))/2),
        (E((f(z) - E(f(z), z))**2, z), E(f(z)**2, z) - E(f(z), z)**2), (E(f(mu + s*z), z), E(f(mu - s*z), z)),
        (E(f(mu + s*z), z).diff(mu), E(D(f)(mu + s*z), z)), (E(f(z), z)*E(g(z), z), E(f(z1)*g(z2), z1, z2)),
        (E(f(mu + s*z), z).diff(s), s*E(D(f, 2)(mu + s*z), z)), (Abs(f(mu))**2, f(mu)**2),
        (sqrt(f(mu)**2), Abs(f(mu))), (E(f(z)*Heaviside(z), z) + E(f(z)*Heaviside(-z), z), E(f(z), z)),
    ])


FAMILIES = (stein, stein_with_covariance, price, mehler, isserlis, tower, scaling, hermite_products, closed, switches, of_functions)


# -- errors ------------------------------------------------------------------------------------------------------------
def factor(right, random):
    return right*(1 + Rational(random.choice((1, -1)), 10**random.randint(0, 12)*2)) if right != 0 else None


def flipped(right, random):
    return -right if right != 0 else None


def dropped(right, random):
    parts = Add.make_args(right)
    return Add(*(p for i, p in enumerate(parts) if i != random.randrange(len(parts)))) if len(parts) > 1 else None


def jacobian(right, random):
    names = sorted(right.free_symbols, key=str)
    return right*random.choice(names)**random.choice((1, -1, 2)) if names and right != 0 else None


def parity(right, random):
    """An odd part where there is none, or the modulus where a sign is meant."""
    names = sorted((v for v in right.free_symbols if not v.is_positive), key=str)
    return right.xreplace({names[0]: Abs(names[0])}) + Mul(names[0], Rational(1, 10**4))*Heaviside(-names[0]) if names else None


def far_switch(right, random):
    """Right up to a place between 3 and 95, on one side of it."""
    names = sorted((v for v in right.free_symbols if v != rho and not v.is_integer), key=str)
    if not names:
        return None
    name, place = random.choice(names), Rational(round(3*10**random.uniform(0, 1.5)))
    side = 1 if name.is_positive or random.random() < 1/2 else -1
    switch = random.choice((Max(0, side*name - place), Heaviside(side*name - place)))
    return right + _seen(right)*switch*random.choice((1, Rational(1, 10**6)))


def window(right, random):
    """Right but for an interval of 0.1 that begins between 3 and 95: Heaviside(mu - 7)*Heaviside(7.1 - mu)."""
    names = sorted((v for v in right.free_symbols if v != rho and not v.is_integer), key=str)
    if not names:
        return None
    name, place = random.choice(names), Rational(round(3*10**random.uniform(0, 1.5)))
    between = Heaviside(name - place)*Heaviside(place + Rational(1, 10) - name)
    return right + _seen(right)*between*random.choice((1, Rational(1, 10**6)))


def _seen(right):
    """A side that grows as exp(mu**2) absorbs a term of order 1 to the last of 30 digits: its own factor shows."""
    return right if right.has(exp) else 1


def tiny_term(right, random):
    return right + Rational(1, 10**random.randint(6, 15))*random.choice((1, sum(right.free_symbols, S.One)))


ERRORS = (factor, flipped, dropped, jacobian, parity, far_switch, window, tiny_term)


def true_identity(seed: int):
    """(family, left, right), the sides either way round."""
    random = Random(seed)
    family = FAMILIES[seed % len(FAMILIES)]
    left, right = family(random)
    return family.__name__, left, right


def false_identity(seed: int):
    """(family, error, left, wrong right)."""
    random = Random(10**6 + seed)
    name, left, right = true_identity(seed)
    while True:
        error = random.choice(ERRORS)
        wrong = error(right, random)
        if wrong is not None and wrong != right:
            return name, error.__name__, left, wrong
