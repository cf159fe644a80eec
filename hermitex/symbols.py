"""The field's symbols, with their assumptions and the LaTeX names that SymPy does not guess.

z, z1, ..., z9 are standard normals. A plain ``Symbol('z')`` made by a user is the same thing: `standard` maps
every free symbol that bears a field name to the field's own symbol.
"""

from __future__ import annotations

import re
from typing import Any

from sympy import Basic, Symbol, symbols

z = Symbol("z", real=True)
z1, z2, z3, z4, z5, z6, z7, z8, z9 = symbols("z1:10", real=True)
kappa, m, zeta, y, f, x = symbols("kappa m zeta y f x", real=True)
mhat, zetatilde, psitilde = symbols("mhat zetatilde psitilde", real=True)
alpha, beta, lamda, rho, r, c, eta = symbols("alpha beta lamda rho r c eta", positive=True)
gamma = Symbol("gamma", real=True)
Delta, alpha0 = Symbol("Delta", nonnegative=True), Symbol("alpha0", positive=True)
q, V, psi = symbols("q V psi", nonnegative=True)
qhat, Vhat = symbols("qhat Vhat", nonnegative=True)
mu_0, mu_1, mu_star = symbols("mu_0 mu_1 mu_star", real=True)

FIELD: dict[str, Symbol] = {name: value for name, value in list(globals().items()) if isinstance(value, Symbol)}

LATEX_NAMES: dict[Symbol, str] = {
    mu_star: r"\mu_\star",
    alpha0: r"\alpha_0",
    zetatilde: r"\tilde{\zeta}",
    psitilde: r"\tilde{\psi}",
}

# Names that are words, whatever is assumed of them.
LATEX_WORDS: dict[str, str] = {
    "test_error": r"\varepsilon_{\mathrm{test}}", "train_error": r"\varepsilon_{\mathrm{train}}", "bias": "b",
    "test_loss": r"\ell_{\mathrm{test}}", "train_loss": r"\ell_{\mathrm{train}}", "chitilde": r"\tilde{\chi}",
    "mu_22": r"\mu_\star^2", "s_c2": "s_c^2", "alpha0inv": r"\alpha_0^{-1}", "omegainv": r"\omega^{-1}", "dG": "G'", "dk_1": "k_1'",
    "test_error_noisy": r"\varepsilon_{\mathrm{test}}^{\mathrm{noisy}}", "train_objective": r"\mathcal{L}_{\mathrm{train}}",
    "Vs": "V_s", "Vw": "V_w", "qs": "q_s", "qw": "q_w", "ms": "m_s",
}

_NORMAL = re.compile(r"z\d*\Z")


def is_normal_name(name: str) -> bool:
    """True for z, z1, z2, ...: the names that always mean a standard normal."""
    return bool(_NORMAL.match(name))


def normal(name: str) -> Symbol:
    """The standard normal of that name (z, z1, z2, ...)."""
    return FIELD.get(name) or Symbol(name, real=True)


def natural(symbol: Symbol) -> tuple[str, int]:
    """Sort key: z2 before z10."""
    head = symbol.name.rstrip("0123456789")
    return head, int(symbol.name[len(head):] or -1)


def normals(expr: Basic) -> tuple[Symbol, ...]:
    """The standard normals (z, z1, ...) that occur free in `expr`, in natural order."""
    found = {s for s in expr.free_symbols if type(s) is Symbol and is_normal_name(s.name)}
    return tuple(sorted(found, key=natural))


def standard(expr: Any) -> Any:
    """Replace each free plain symbol that names a standard normal (z, z1, ...) by the field's own."""
    swap = {s: normal(s.name) for s in expr.free_symbols
            if type(s) is Symbol and is_normal_name(s.name) and s != normal(s.name)}
    return expr.xreplace(swap) if swap else expr
