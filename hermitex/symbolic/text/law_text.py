"""[laws] x = "Rademacher()": a law of sympy.stats as a text, through a white list; nothing of the text is run.

law = Name(argument, ...)     FiniteRV({value: probability, ...}), DiscreteUniform(value, ...)
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from hermitex.errors import BadInput, HermitexError, UnknownName
from hermitex.symbolic.laws import checked
from hermitex.symbolic.parsing import parse

#: law -> how many arguments it may have
LAWS: dict[str, tuple[int, ...]] = {
    "Rademacher": (0,), "Bernoulli": (1, 3), "Binomial": (2, 4), "Die": (1,), "Coin": (), "FiniteRV": (1,),
    "DiscreteUniform": tuple(range(1, 200)), "Poisson": (1,), "NegativeBinomial": (2,), "Geometric": (1,), "Normal": (2,),
    "LogNormal": (2,),
    "Uniform": (2,), "Exponential": (1,), "Laplace": (2,), "Logistic": (2,), "Weibull": (2,), "Pareto": (2,), "Rayleigh": (1,),
    "Frechet": (2, 3), "Gumbel": (2,), "Arcsin": (2,), "Kumaraswamy": (2,), "Gamma": (2,), "ChiSquared": (1,), "Beta": (2,),
    "Cauchy": (2,), "StudentT": (1,), "Chi": (1,), "GammaInverse": (2,),
    "WignerSemicircle": (1,), "Maxwell": (1,), "Triangular": (3,), "Trapezoidal": (4,), "QuadraticU": (2,), "VonMises": (2,),
    "GaussianInverse": (2,), "Nakagami": (2,), "Lomax": (2,), "LogLogistic": (2,), "BetaPrime": (2,), "Levy": (2,), "Moyal": (2,),
    "Logarithmic": (1,), "Zeta": (1,),
}


def law(name: str, text: Any, symbols: Mapping[str, Any] | None = None) -> Any:
    """The random variable of sympy.stats that a text means; its parameters are formulas in the declared symbols.

    Raises BadInput, in one line, if the text is not a law.

    Examples
    --------
    >>> x = law("x", "Bernoulli(rho/2)", {"rho": "positive"})
    >>> from hermitex.symbolic.gaussian import E
    >>> E(x**2)
    rho/2
    """
    longest = 5_000  # characters, of a table of some hundred values
    if not isinstance(text, str) or len(text) > longest:
        raise BadInput('a law is a text, "Rademacher()" or "Poisson(c)"')
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise BadInput(f'{text[:40]!r} is not a law; write "Rademacher()" or "Poisson(c)"') from None
    kind = tree.func.id if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) else ""
    if not isinstance(tree, ast.Call) or not kind or tree.keywords:
        raise BadInput(f'{text[:40]!r} is not a law; write "Rademacher()" or "Poisson(c)"')
    if kind not in LAWS:
        raise UnknownName(kind[:40], LAWS, "law")
    if len(tree.args) not in (LAWS[kind] or (0,)):
        raise BadInput(f"{kind} takes {' or '.join(map(str, LAWS[kind][:3]))} argument{'s' if LAWS[kind] != (1,) else ''}, not "
                       f"{len(tree.args)}")

    def read(node: ast.expr | None) -> Any:
        if node is None or isinstance(node, ast.Starred):
            raise BadInput(f"an argument of {kind} is a formula")
        return parse(ast.get_source_segment(text.strip(), node) or "", symbols=symbols)

    return _made(kind, name, tree.args, read)


def _made(kind: str, name: str, args: list[ast.expr], read: Any) -> Any:
    from sympy import stats

    given: list[Any]
    if kind == "FiniteRV":
        if not isinstance(args[0], ast.Dict):
            raise BadInput("FiniteRV takes values with their probabilities: FiniteRV({-1: 1/4, 0: 1/2, 1: 1/4})")
        given = [{read(k): read(v) for k, v in zip(args[0].keys, args[0].values, strict=True)}]
    elif kind == "DiscreteUniform":
        given = [[read(a) for a in args]]
    else:
        given = [read(a) for a in args]
    try:
        return checked(getattr(stats, kind)(name, *given))
    except HermitexError:
        raise
    except (ValueError, TypeError, NotImplementedError, AttributeError) as error:
        why = str(error).splitlines()[0][:100] if str(error) else "its parameters are not those of a law"
        raise BadInput(f"{kind}: {why}") from None
