"""117 true identities of the Gaussian calculus, as they stand in papers and in the derivations: what `check` should prove.

Texts, as a user types them: f, g are undefined functions, rho a correlation of z1 and z2, s, r, a > 0, the other letters real.
"""

from __future__ import annotations

import hermitex as hx
from hermitex.symbols import rho, z1, z2

SYMBOLS = "f: function, g: function, mu, w, b, rho, r>0, s>0, a>0, p>0"
_PHI = "(1 + erf({}/sqrt(2)))/2"
_CORRELATED = "#"  # marks an average over z1, z2 with correlation rho

STEIN = [
    ("E(z*f(z))", "E(Derivative(f)(z))"), ("E(z*f(mu + s*z))", "s*E(Derivative(f)(mu + s*z))"),
    ("E((z**2 - 1)*f(z))", "E(Derivative(f, 2)(z))"),
    ("E((z**3 - 3*z)*f(mu + s*z))", "s**3*E(Derivative(f, 3)(mu + s*z))"), ("E(z**2*f(z))", "E(f(z)) + E(Derivative(f, 2)(z))"),
    ("E(z*tanh(z))", "1 - E(tanh(z)**2)"), ("E(z*sin(mu + s*z))", "s*E(cos(mu + s*z))"),
    ("E(z*tanh(b*z))", "b - b*E(tanh(b*z)**2)"),
    ("E(z*exp(sin(z)))", "E(cos(z)*exp(sin(z)))"), ("E(z**3*tanh(z))", "2*E(z*tanh(z)) + 1 - E(z**2*tanh(z)**2)"),
    ("E(z*f(z)*g(z))", "E(Derivative(f)(z)*g(z)) + E(f(z)*Derivative(g)(z))"), ("E(z*f(z)**2)", "2*E(f(z)*Derivative(f)(z))"),
    ("E(z1*f(z1)*g(z2))", "E(Derivative(f)(z1))*E(g(z2))"), ("E(z1*f(z1 + z2))", "E(Derivative(f)(z1 + z2))"),
    ("E(z1*f(z1 - z2))", "-E(z2*f(z1 - z2))"),
    ("E(f(mu + s*z))", "E(f(mu - s*z))"), ("E(f(z1)*g(z2))", "E(f(z))*E(g(z))"), ("E(f(r*z1 + s*z2))", "E(f(sqrt(r**2 + s**2)*z))"),
    ("E((f(z) - E(f(z)))**2)", "E(f(z)**2) - E(f(z))**2"), ("E(f(z)*Heaviside(z)) + E(f(z)*Heaviside(-z))", "E(f(z))"),
    ("E((f(z) - E(f(z)))*(g(z) - E(g(z))))", "E(f(z)*g(z)) - E(f(z))*E(g(z))"), ("E(z*(f(z) - f(-z)))", "2*E(z*f(z))"),
]
SEVERAL = [
    ("#z1*f(z2)", "rho*E(Derivative(f)(z))"), ("#z1*z2", "rho"), ("#z1**2*z2**2", "1 + 2*rho**2"), ("#z1**3*z2", "3*rho"),
    ("#z1**3*z2**3", "9*rho + 6*rho**3"), ("#z1**4*z2**2", "3 + 12*rho**2"), ("#(z1**2 - 1)*(z2**2 - 1)", "2*rho**2"),
    ("#(z1**3 - 3*z1)*(z2**3 - 3*z2)", "6*rho**3"), ("#(z1**2 - 1)*(z2**3 - 3*z2)", "0"), ("#exp(z1)*exp(z2)", "exp(1 + rho)"),
    ("#sign(z1)*sign(z2)", "2*asin(rho)/pi"), ("#Heaviside(z1)*Heaviside(z2)", "1/4 + asin(rho)/(2*pi)"),
    ("#erf(z1)*erf(z2)", "2*asin(2*rho/3)/pi"), ("#sin(z1)*sin(z2)", "exp(-1)*sinh(rho)"),
    ("#cos(z1)*cos(z2)", "exp(-1)*cosh(rho)"),
    ("#Abs(z1)*Abs(z2)", "2*(rho*asin(rho) + sqrt(1 - rho**2))/pi"),
    ("#Max(0, z1)*Max(0, z2)", "(rho*asin(rho) + sqrt(1 - rho**2))/(2*pi) + rho/4"),
    ("#Max(0, z1)*Heaviside(z2)", "(1 + rho)/(2*sqrt(2*pi))"),
    ("#f(z1)*(z2**2 - 1)", "rho**2*E(Derivative(f, 2)(z))"), ("#z2*f(z1)", "rho*E(z*f(z))"),
    ("#f(z1) + g(z2)", "E(f(z)) + E(g(z))"),
    ("#f(z1)*g(z2)", "E(f(z1)*g(rho*z1 + sqrt(1 - rho**2)*z2))"), ("#(z1 - z2)**2", "2 - 2*rho"),
    ("#Abs(z1 - z2)", "2*sqrt((1 - rho)/pi)"),
    ("#Max(z1, z2)", "sqrt((1 - rho)/pi)"), ("#sign(z1)*z2", "rho*sqrt(2/pi)"), ("#erf(z1)*z2", "2*rho/sqrt(3*pi)"),
    ("E(sign(z1)*sign(z1 + z2))", "1/2"), ("E(Heaviside(z1)*Heaviside(z2)*Heaviside(z3))", "1/8"),
    ("E(exp(-(z1**2 + z2**2)/2))", "1/2"), ("E(1/(1 + z1**2 + z2**2))", "E(Abs(z)/(1 + z**2))*sqrt(pi/2)"),
    ("E(Max(z1, z2))", "1/sqrt(pi)"),
    ("E(cos(b*z1)*cos(b*z2))", "exp(-b**2)"), ("E((z1 + z2)**4)", "12"), ("E((z1*z2 + z3)**2)", "2"),
    ("E(tanh(z1 + z2)**2)", "E(tanh(sqrt(2)*z)**2)"),
]
CLOSED = [
    ("E(erf(mu + s*z))", "erf(mu/sqrt(1 + 2*s**2))"), ("E(exp(mu*z))", "exp(mu**2/2)"),
    ("E(exp(mu*z)*z**2)", "(1 + mu**2)*exp(mu**2/2)"),
    ("E(cos(mu + s*z))", "cos(mu)*exp(-s**2/2)"), ("E(sin(mu + s*z))", "sin(mu)*exp(-s**2/2)"),
    ("E(sin(s*z)**2)", "(1 - exp(-2*s**2))/2"),
    ("E(Max(0, mu + s*z))", "mu*(1 + erf(mu/(s*sqrt(2))))/2 + s*exp(-mu**2/(2*s**2))/sqrt(2*pi)"), ("E(Max(0, z))", "1/sqrt(2*pi)"),
    ("E(Max(0, z)**2)", "1/2"), ("E(Max(0, s*z)**4)", "3*s**4/2"), ("E(z*Max(0, z))", "1/2"), ("E(z**2*Max(0, z))", "2/sqrt(2*pi)"),
    ("E(Abs(z))", "sqrt(2/pi)"), ("E(Abs(z)**3)", "2*sqrt(2/pi)"), ("E(Abs(z)**p)", "2**(p/2)*gamma((p + 1)/2)/sqrt(pi)"),
    ("E(Abs(mu + s*z))", "mu*erf(mu/(s*sqrt(2))) + s*sqrt(2/pi)*exp(-mu**2/(2*s**2))"),
    ("E(sign(mu + s*z))", "erf(mu/(s*sqrt(2)))"),
    ("E(Heaviside(z - mu))", "(1 - erf(mu/sqrt(2)))/2"), ("E(exp(-s*z**2))", "1/sqrt(1 + 2*s)"),
    ("E(z**2*exp(-s*z**2))", "(1 + 2*s)**(-3/2)"),
    ("E(z*erf(s*z))", "2*s/sqrt(pi*(1 + 2*s**2))"), ("E(erf(z)**2)", "2*asin(2/3)/pi"),
    ("E(erf(s*z)**2)", "2*asin(2*s**2/(1 + 2*s**2))/pi"),
    (f"E({_PHI.format('z')})", "1/2"), (f"E(({_PHI.format('z')})**2)", "1/3"), (f"E(({_PHI.format('z')})**3)", "1/4"),
    (f"E(({_PHI.format('z')})**6)", "1/7"), (f"E({_PHI.format('(mu + s*z)')})", "(1 + erf(mu/sqrt(2*(1 + s**2))))/2"),
    (f"E(z*{_PHI.format('z')})", "1/(2*sqrt(pi))"), (f"E(z*{_PHI.format('z')}*z)", "1/2"),
    ("E(log(Abs(z)))", "-(EulerGamma + log(2))/2"),
    ("E(1/(1 + z**2))", "sqrt(pi/2)*exp(1/2)*erfc(1/sqrt(2))"), ("E(a/(a + z**2)) + E(z**2/(a + z**2))", "1"),
    ("E(cosh(s*z))", "exp(s**2/2)"), ("E(sinh(z)**2)", "(exp(2) - 1)/2"), ("E(exp(-Abs(z)))", "exp(1/2)*erfc(1/sqrt(2))"),
    ("E(z**10)", "945"),
    ("E(tanh(z))", "0"), ("E(1/(1 + exp(-z)))", "1/2"), ("E(z*sign(z)*z**2)", "2*sqrt(2/pi)"),
    ("E(Max(0, z - b)) - E(Max(0, b - z))", "-b"),
    ("E(Max(z, b)) + E(Min(z, b))", "b"), ("E(Max(0, exp(mu + s*z) - a)) - E(Max(0, a - exp(mu + s*z)))", "exp(mu + s**2/2) - a"),
]
PARAMETERS = [
    ("Abs(mu - 3)", "Max(mu - 3, 3 - mu)"), ("Max(mu, 5)", "(mu + 5 + Abs(mu - 5))/2"), ("sqrt((w - 2)**2)", "Abs(w - 2)"),
    ("sin(mu)**2", "(1 - cos(2*mu))/2"),
    ("tanh(2*mu)", "2*tanh(mu)/(1 + tanh(mu)**2)"), ("log(s**2*(1 + a))", "2*log(s) + log(1 + a)"),
    ("E(Max(0, mu - 2)*z**2)", "Max(0, mu - 2)"),
    ("(f(0) + g(mu))**2", "f(0)**2 + 2*f(0)*g(mu) + g(mu)**2"), ("Abs(f(mu))**2", "f(mu)**2"),
    ("E((z - mu)**2*exp(mu*z - mu**2/2))", "1"), ("E(f(z + mu))", "E(f(z)*exp(mu*z - mu**2/2))"),
    ("1/(1 + exp(-mu))", "(1 + tanh(mu/2))/2"),
    ("E(1/(1 + exp(-z - mu))) + E(1/(1 + exp(mu - z)))", "1"), ("E(exp(tanh(z))) + E(exp(-tanh(z)))", "2*E(cosh(tanh(z)))"),
    ("E(tanh(z)**2) + E(1/cosh(z)**2)", "1"), ("E(Heaviside(exp(z) - a))", "(1 - erf(log(a)/sqrt(2)))/2"),
]
TEXTS = STEIN + SEVERAL + CLOSED + PARAMETERS


def identity(pair: tuple[str, str]):
    """Both sides as expressions."""
    return tuple(_read(text) for text in pair)


def _read(text: str):
    if text.startswith(_CORRELATED):
        body = hx.parse(text[1:], symbols=SYMBOLS)
        return hx.E(body, z1, z2, cov={(z1, z2): rho})
    return hx.parse(text, symbols=SYMBOLS)
