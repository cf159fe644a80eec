"""Numbers, formulas and calls of a sheet as the words of a page: $0.0678$, $d^{3/2}$, hx.curve(...), hermitex curve ..."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hermitex.exponents.result import Exponents, power_latex
from hermitex.exponents.stages import alpha_latex
from hermitex.face.sheet.sheet_page import Literal, Tabular
from hermitex.show.display import latex, number
from hermitex.symbolic.parsing import parse
from hermitex.symbols import is_normal_name

LONGEST = 160  # characters of LaTeX of an exact value that a cell still holds


def one_line(error: BaseException) -> str:
    """What an error says, in a line."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def name_with_argument(text: str) -> str:
    """The bare name of a function with its argument, which is what a target is written as: tanh(z) for tanh.

    >>> name_with_argument("tanh"), name_with_argument("z**2"), name_with_argument("z1")
    ('tanh(z)', 'z**2', 'z1')
    """
    return f"{text}(z)" if text.isidentifier() and not is_normal_name(text) else text


def formula(text: str) -> str:
    """A user's function as a formula; as its text where that would be long."""
    written = latex(parse(name_with_argument(text)))
    return f"${written}$" if len(written) <= LONGEST else Literal(text)


def value(v: Any, digits: int = 6) -> str:
    """A number as a formula; - where there is none.

    >>> value(0.06780000001), value(None), value(float("nan"))
    ('$0.0678$', '-', '-')
    """
    return "-" if v is None or v != v else f"${number(float(v), digits)}$"


def measured(experiment: Any, i: int) -> str:
    """The test error of an experiment at one of its points, with the standard error."""
    return rf"${number(float(experiment.test_error[i]), 6)} \pm {number(float(experiment.standard_error['test_error'][i]), 2)}$"


def exact(expr: Any, v: Any) -> str:
    """An exact value and its number, or the number alone."""
    if v is None:
        return "does not exist"
    written = "" if expr is None else latex(parse(expr) if isinstance(expr, str) else expr)
    said = number(float(v), 10)
    if not written or len(written) > LONGEST:
        return f"${said}$"
    return f"${written}$" if written == said else rf"${written} {'=' if len(said) < 10 else chr(92) + 'approx'} {said}$"


def rate(found: Exponents, key: str) -> str:
    """The samples that an algorithm asks for."""
    asked = found.complexity[key]
    return found.absent(key, long=True) if asked is None else asked if asked in ("none", "open") else f"${power_latex(asked)}$"


def threshold(found: Exponents) -> str:
    """alpha_c of every stage."""
    return f"${said}$" if (said := alpha_latex(found.threshold)) else found.absent("class", long=True)


def coefficients(columns: Mapping[str, Mapping[str, Any]]) -> Tabular:
    """Hermite coefficients, one row for each order; for several variables only the non-zero coefficients."""
    first = next(iter(columns.values()))
    orders = [c["order"] for c in first["coefficients"]]
    there = [k for k in range(len(orders)) if not isinstance(orders[k], list) or first["coefficients"][k]["exact"] != "0"]
    rows = []
    most = 12  # rows of a table of coefficients that fit on the page
    for k in there[:most]:
        order = ", ".join(map(str, orders[k])) if isinstance(orders[k], list) else str(orders[k])
        found = [e["coefficients"][k] for e in columns.values()]
        rows.append((f"${order}$", *(exact(c["exact"], c["value"]) for c in found)))
    return Tabular(("$k$", *columns), tuple(rows))


def keys(results: Iterable[Any]) -> list[str]:
    """The papers of results."""
    return list(dict.fromkeys(k for r in results for k in re.findall(r"^@\w+\{([^,\s]+),", r.bibtex(), re.MULTILINE)))


def pick_places(alpha: Sequence[float], most: int = 6) -> list[int]:
    """Some of the points, both ends among them."""
    n = len(alpha)
    return sorted({round(i*(n - 1)/(min(most, n) - 1)) for i in range(min(most, n))} if n > 1 else {0})


# -- calls -----------------------------------------------------------------------------------------------------------------
def keywords(given: Mapping[str, Any]) -> str:
    """beta=1, alpha0=inf"""
    return ", ".join(f"{k}={plain(v)}" for k, v in given.items())


def options(given: Mapping[str, Any]) -> str:
    """The same for a shell."""
    return "".join(f" --{k}" if v is True else f" --{k} {plain(v)}" for k, v in given.items())


def plain(v: Any) -> str:
    """A number as short as it can be typed.

    >>> plain(1.0), plain(0.1), plain(True), plain(float("inf"))
    ('1', '0.1', 'True', 'inf')
    """
    return repr(v) if isinstance(v, bool) else repr(int(v)) if v == v and abs(v) < 1e15 and v == int(v) else repr(float(v))


def line(alpha: Sequence[float], *, shell: bool = False) -> str:
    """The abscissa as it is typed: evenly spaced as its ends and count, else one by one."""
    first, last, count = alpha[0], alpha[-1], len(alpha)
    step = (last - first)/max(count - 1, 1)
    if count > 4 and all(abs(a - first - i*step) <= 1e-12*abs(last) for i, a in enumerate(alpha)):
        ends = (plain(first), plain(last), str(count))
        return ":".join(ends) if shell else f"np.linspace({', '.join(ends)})"
    listed = (",", ", ")[not shell].join(map(plain, alpha))
    return listed if shell else f"[{listed}]"


def command(verb: str, named: Mapping[str, str], given: Mapping[str, Any] | None = None) -> str:
    """A command line: texts quoted for the shell, then numbers."""
    quoted = "".join(f" --{k} {shlex.quote(v)}" if not v.startswith("-") else f" --{k}={shlex.quote(v)}" for k, v in named.items())
    return f"hermitex {verb}{quoted}{options(given or {})}"
