r"""The parts of generated source that are not formulas: names that shadow nothing, texts as literals, comments of one line.

    \hat{q} -> hatq,    a^b -> a_b,  a_b -> a_b  (whichever comes second is a_b_2),    "power" -> power_

Nothing that a user wrote is put into a source in any other way than by these functions and by the printers.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable
from unicodedata import normalize

from hermitex.errors import BadInput
from hermitex.kernels.helpers import HELPERS

#: Functions that generated source defines, besides `prox_1`, `fields_1`, `block_1`, `sum_1`, ...
FUNCTIONS = ("kernel", "tables", "right_hand_sides", "observables", "lawful", "minimise", "middle", "smoothed")
_NUMBERED = re.compile(r"((prox|fields|sum)_\d+|block_\d+)\Z")
_RESERVED = frozenset({*keyword.kwlist, *HELPERS, *FUNCTIONS, "np", "s", "quad",
                       "block_size"})
_DROPPED, _BLANKS = re.compile(r"[\\{}]"), re.compile(r"[\^,*+.() -]+")


def is_reserved(name: str) -> bool:
    """Whether a name means something in every generated source."""
    return name in _RESERVED or bool(_NUMBERED.match(name))


class Names:
    r"""symbol -> identifier, one to one; the same symbol always gets the same one.

    Parameters
    ----------
    taken : further identifiers that mean something where the names are used
    generated : whether that is a generated source, where `s`, `quad`, `np` and the helpers mean something
    first : names that keep their spelling if they can; names that are identifiers already come before the others

    Examples
    --------
    >>> names = Names(first=["a^b", "a_b", "lambda", "np"])
    >>> [names(n) for n in ("a^b", "a_b", "lambda", "np", r"\hat{q}", "q'")]
    ['a_b_2', 'a_b', 'lamda', 'np_', 'hatq', 'q_prime']
    """

    def __init__(self, taken: Iterable[str] = (), first: Iterable[str] = (), *, generated: bool = True) -> None:
        self._generated, self._reserved, self._found, self._taken = generated, frozenset(taken), dict[str, str](), set[str]()
        for name in sorted(first, key=lambda n: (n != _plain(n), n)):
            self(name)

    def __call__(self, symbol: object) -> str:
        """The identifier of a symbol, or of a name."""
        name = str(getattr(symbol, "name", symbol))
        if name not in self._found:
            self._found[name] = self.fresh(_plain(name))
        return self._found[name]

    def fresh(self, name: str) -> str:
        """An identifier like `name` that no symbol has."""
        if name == "lambda":
            name = "lamda"
        found = f"{name}_" if self._means(name) else name
        count = 1
        while found in self._taken or self._means(found):
            count += 1
            found = f"{name}_{count}"
        self._taken.add(found)
        return found

    def _means(self, name: str) -> bool:
        return name in self._reserved or keyword.iskeyword(name) or (self._generated and is_reserved(name))


def _plain(name: str) -> str:
    """The name without what only LaTeX needs; letters that Python takes for one another are one letter (NFKC).

    Raises BadInput if a text is not a name.
    """
    plain = normalize("NFKC", name)
    if not plain.isidentifier():
        plain = _BLANKS.sub("_", _DROPPED.sub("", plain).replace("'", "_prime")).strip("_")
        plain = f"_{plain}" if plain[:1].isdigit() else plain
    longest = 80  # characters of a name, so that a line of generated code holds it
    if not plain.isidentifier() or len(name) > longest:
        raise BadInput(f"{name[:60]!r} is not a name that a formula can be computed with; take letters, digits and _, "
                       "as in q, q_1 or \\hat{q}")
    return plain


def literal(text: str) -> str:
    r"""A text as a Python literal on one line.

    >>> print(literal("d/q/m"), literal('x"\n'))
    "d/q/m" 'x"\n'
    """
    return f'"{text}"' if re.fullmatch(r"[\w/]*", text, re.ASCII) else repr(text)


def docstring_text(text: str) -> str:
    r"""The inside of a docstring that reads `text`: lines stay lines, and nothing ends it or means something else in it.

    >>> print(docstring_text('Eq. (3) of \\usepackage'), docstring_text('\"\"\"'), docstring_text("a\0b"))
    Eq. (3) of \\usepackage \"\"\" a\x00b
    """
    escaped = "".join(c if c == "\n" or (c.isprintable() and c != "\\") else repr(c)[1:-1] for c in text)
    return re.sub(r'"(?="|\Z)|(?<=")"|\A"', r"\"", escaped)


def comment_text(text: str) -> str:
    r"""A text on one line, for a comment.

    >>> comment_text("a\nb")
    'a\\nb'
    """
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
