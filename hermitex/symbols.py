"""The field's symbols, with their assumptions and the LaTeX names that SymPy does not guess.

z, z1, ..., z9 are standard normals. A plain ``Symbol('z')`` made by a user is the same thing: `standard` maps
every free symbol that bears a field name to the field's own symbol.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import cycle
from typing import Any

from sympy import Basic, Rational, Symbol, symbols
from sympy.core.facts import InconsistentAssumptions

from hermitex.errors import BadInput

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

# What a text may call by name: the field's letters, but for the normals, the arguments of functions, and what is a function too.
LETTERS: dict[str, Symbol] = {n: s for n, s in FIELD.items() if not re.match(r"z\d*\Z", n) and n not in ("x", "y", "f", "zeta")}

LATEX_NAMES: dict[Symbol, str] = {
    mu_star: r"\mu_\star",
    alpha0: r"\alpha_0",
    zetatilde: r"\tilde{\zeta}",
    psitilde: r"\tilde{\psi}",
}

# Names that are words, whatever is assumed of them.
LATEX_WORDS: dict[str, str] = {
    "lam": r"\lambda", "test_error": r"\varepsilon_{\mathrm{test}}", "train_error": r"\varepsilon_{\mathrm{train}}", "bias": "b",
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


def one_naming(used: Iterable[Symbol]) -> None:
    """Refuse z together with z1, z2, ... in a target: over which of them its directions are written is not said.

    >>> one_naming([z1, z2])
    >>> one_naming([z, z1])
    Traceback (most recent call last):
    ...
    hermitex.errors.BadInput: z is mixed with z1; write the target in z alone, or in z1, z2, ... alone
    """
    others = sorted({*used} - {z}, key=natural)
    if z in used and others:
        raise BadInput(f"z is mixed with {others[0]}; write the target in z alone, or in z1, z2, ... alone")


def standard(expr: Any) -> Any:
    """One name is one symbol: each standard normal is the field's own, and symbols that share a name become one.

    >>> standard(Symbol("z") + kappa + Symbol("kappa")) == z + 2*kappa
    True
    """
    swap = {old: new for old, new in one_name(expr).items() if is_normal_name(old.name) or _shared(old, expr)}
    return expr.xreplace(swap) if swap else expr


def one_name(*exprs: Any) -> dict[Symbol, Symbol]:
    """{symbol: the one that its name means} for the free symbols that are to be replaced so that one name is one symbol.

    A plain symbol (nothing is assumed of it) that bears a field name is the field's; of several symbols of one name the one
    is meant of which all is assumed that is assumed of any.

    Raises
    ------
    BadInput : two symbols of one name of which opposite things are assumed.

    Examples
    --------
    >>> one_name(Symbol("Vhat") + 1)[Symbol("Vhat")] == Vhat
    True
    >>> one_name(Symbol("mu", positive=True) + Symbol("mu", negative=True))
    Traceback (most recent call last):
    ...
    hermitex.errors.BadInput: mu names two symbols with different assumptions (negative; positive); use one
    """
    groups: dict[str, set[Symbol]] = {}
    for expr in exprs:
        for s in expr.free_symbols:
            if type(s) is Symbol:
                groups.setdefault(s.name, set()).add(s)
    return {s: one for name, group in groups.items() if (one := _one(name, group)) is not None for s in group if s != one}


def fits(symbol: Basic, value: Basic) -> bool:
    """May the symbol have that value, by what is assumed of it?

    >>> from sympy import Integer
    >>> fits(alpha, Integer(2)), fits(alpha, Integer(-2))
    (True, False)
    """
    return all(getattr(value, f"is_{k}", None) in (v, None) for k, v in symbol.assumptions0.items())


def fractions(letters: Iterable[Basic], *signs: int) -> dict[Basic, Rational]:
    """7/10, 1, 13/10, ... for letters, with these signs in turn, or the other one where a letter may not have it.

    >>> fractions((alpha, Symbol("a", real=True)), -1)
    {a: -7/10, alpha: 1}
    """
    drawn = {}
    for i, (s, sign) in enumerate(zip(sorted(letters, key=str), cycle(signs), strict=False)):
        value = sign*Rational(7 + 3*i, 10)
        drawn[s] = value if fits(s, value) else -value
    return drawn


def _shared(symbol: Symbol, expr: Basic) -> bool:
    return any(type(s) is Symbol and s.name == symbol.name and s != symbol for s in expr.free_symbols)


def _one(name: str, group: set[Symbol]) -> Symbol | None:
    """The symbol for all of a name; None for a name of the user's own that stands for one symbol."""
    if is_normal_name(name):
        return normal(name)
    known = {FIELD[name]} if name in FIELD and any(not _said(s) for s in group) else set()
    if len(group | known) == 1:
        return None
    said = {k: v for s in group | known for k, v in _said(s).items()}
    try:
        if any(said[k] != v for s in group | known for k, v in _said(s).items()):
            raise InconsistentAssumptions
        return Symbol(name, **said)
    except InconsistentAssumptions:
        each = sorted({", ".join(k if v else f"not {k}" for k, v in _said(s).items()) for s in group | known})
        raise BadInput(f"{name} names two symbols with different assumptions ({'; '.join(each)}); "
                       "use one") from None


def _said(symbol: Symbol) -> dict[str, bool]:
    """What was assumed of a symbol when it was made."""
    return {k: v for k, v in symbol._assumptions_orig.items() if k != "commutative" and v is not None}
