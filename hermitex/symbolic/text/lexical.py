"""characters -> tokens: what a user's text may consist of, checked before Python's own parser sees it.

text = (number | name | operator | bracket | space)*, ASCII after a few natural characters (π, ≤, ·, ²) are spelled
out. Python would fold look-alike letters into names (NFKC) and may exhaust the stack on deep brackets; neither can
happen behind this stage.
"""

from __future__ import annotations

import re
import unicodedata
from keyword import iskeyword
from typing import NamedTuple, NoReturn

from hermitex.errors import ParseError

_SPELLED = {"−": "-", "–": "-", "×": "*", "·": "*", "÷": "/", "π": "pi", "≤": "<=", "≥": ">=", "≠": "!=",
            "²": "**2", "³": "**3"}
_NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_SIGNS = r"\*\*|<=|>=|==|!=|[-+*/()<>&|~,={}:\[\]]"
_TOKEN = re.compile(rf"\s+|(?P<name>[A-Za-z_]\w*)|(?P<number>{_NUMBER})|{_SIGNS}", re.ASCII)
_WORDS, _OPERATORS = ("and", "or", "not", "True", "False"), ("and", "or", "not")
_OPEN = {"(": ")", "{": "}", "[": "]"}
_ADVICE = {
    "^": "write ** for a power",
    "[": "write ( ) for brackets",
    "]": "write ( ) for brackets",
    "!": "factorials are not supported; write the number",
    "'": "write the expression without quotes inside",
    '"': "write the expression without quotes inside",
    "%": "remainders are not supported; write mod(a, b)",
    ".": "attributes are not supported; write the expression itself",
    "@": "write * for a product",
    "\\": "write the expression in plain text, not in LaTeX",
}


class Source(NamedTuple):
    """A clean text, the user's text, and where each clean character came from."""

    text: str
    original: str
    origin: list[int]

    def fail(self, start: int, message: str, what: str | None = None) -> NoReturn:
        """Refuse with one line that shows the user's text around the place."""
        place = self.origin[min(max(start, 0), len(self.origin) - 1)] if self.origin else 0
        shown = f"{what!r} at position {place + 1}" if what else f"at position {place + 1}"
        raise ParseError(f"cannot read {excerpt(self.original, place)}: {shown}: {message}")


def excerpt(text: str, place: int = 0, width: int = 60) -> str:
    """The text around a place, quoted, on one line."""
    start = max(0, min(place - width // 2, len(text) - width))
    piece = "".join(c if c.isprintable() else " " for c in text[start:start + width])
    return repr(("..." if start else "") + piece + ("..." if start + width < len(text) else ""))


def clean(text: str) -> Source:
    """Check every token of `text`; return it spelled out, with all white space as blanks.

    >>> clean("z² ≤ 2").text
    'z**2 <= 2'
    """
    if not isinstance(text, str):
        raise ParseError(f"an expression must be a text, not {type(text).__name__}")
    most_characters = 50_000  # five for each of the 10,000 parts that `grammar` reads
    if len(text) > most_characters:
        raise ParseError(f"the expression has {len(text)} characters; at most {most_characters} are read")
    if not text.strip():
        raise ParseError("the expression is empty; write one in z, e.g. 'z**3 - 3*z'")
    letters, origin = [], []
    for i, character in enumerate(text):
        spelled = _SPELLED.get(character, character)
        letters.append(spelled)
        origin += [i] * len(spelled)
    source = Source("".join(" " if c.isspace() else c for c in letters), text, origin)
    _check_tokens(source)
    return source


def _check_tokens(source: Source) -> None:
    place, before = 0, ""  # `before`: the operand that ends just here, if one does
    open_at: list[int] = []
    heads: list[str] = []  # the text before each open bracket: Derivative(f) may be called as a function
    while place < len(source.text):
        match = _TOKEN.match(source.text, place)
        if match is None:
            _refuse_character(source, place)
        kind, token = match.lastgroup or "", match.group()
        if kind == "number":
            _check_number(source, place, token)
        if token == "lambda" and re.match(r"[\s\w,*=]*:", source.text[match.end():]):
            source.fail(place, "a formula is written, not a function (the parameter is spelled lamda)", token)
        if token == "lambda":
            source.fail(place, "write lamda, and declare it", token)
        if iskeyword(token) and token not in _WORDS:
            source.fail(place, "this word is not in the grammar; for a choice write Piecewise((1, z > 0), (0, True))",
                        token)
        if token == "[" and not (before.isidentifier() and before not in _WORDS):  # an entry of an array, eta[k]
            source.fail(place, _ADVICE["["], token)
        _explain_bars(source, place, token, before)
        operand = bool(kind) and token not in _OPERATORS
        if before and (operand or (token == "(" and not before.isidentifier())):
            source.fail(place, f"an operator is missing; write * for a product: {before}*{token}", token[:40])
        _match_bracket(source, open_at, place, token)
        if token in _OPEN:
            heads.append(before)
        if not token.isspace():
            closed = heads.pop() if token in _OPEN.values() else ""
            before = closed if closed == "Derivative" else token if operand or token in _OPEN.values() else ""
        place = match.end()
    if open_at:
        source.fail(open_at[-1], "this bracket is never closed", source.text[open_at[-1]])


def _explain_bars(source: Source, place: int, token: str, before: str) -> None:
    """Bars where no `or` can be, and braces after a number, mean something on paper."""
    after = source.text[place + 1:].lstrip()
    if token == "|" and (not before or not after or after[0] in ")|*/+,"):
        inside = after.partition("|")[0].strip() or "z"
        source.fail(place, f"write abs({inside[:40]}) for |{inside[:40]}|", token)
    if token == "{" and before == "1":
        source.fail(place, "write Heaviside(z) for the indicator of z > 0, or Piecewise((1, z > 0), (0, True))", "1{")


def _match_bracket(source: Source, open_at: list[int], place: int, token: str) -> None:
    most_open = 60  # Python's own parser stops at 200
    if token in _OPEN:
        open_at.append(place)
        if len(open_at) > most_open:
            source.fail(place, f"brackets are nested more than {most_open} deep")
    elif token in _OPEN.values() and (not open_at or _OPEN[source.text[open_at.pop()]] != token):
        source.fail(place, "no such bracket is open here", token)


def _check_number(source: Source, place: int, token: str) -> None:
    mantissa, _, exponent = token.lower().partition("e")
    most_literal = 1_000  # characters of one number, and the size of its decimal exponent
    if len(mantissa) > most_literal or (exponent and (len(exponent) > 6 or abs(int(exponent)) > most_literal)):
        source.fail(place, f"a number with more than {most_literal} digits", token[:12] + "...")
    if len(mantissa) > 1 and mantissa[0] == "0" and mantissa.isdigit() and mantissa.strip("0"):
        source.fail(place, f"write {mantissa.lstrip('0')}", token)


def _refuse_character(source: Source, place: int) -> NoReturn:
    character = source.text[place]
    if character in _ADVICE:
        source.fail(place, _ADVICE[character], character)
    if character.isascii() and character.isprintable():
        source.fail(place, "this character is not in the grammar", character)
    name = unicodedata.name(character, f"U+{ord(character):04X}").lower()
    greek = re.match(r"greek (?:small|capital) letter (\w+)$", name)
    advice = f"write {greek.group(1)} and declare it" if greek else "write it in plain ASCII"
    plain = unicodedata.normalize("NFKC", character)
    if plain != character and plain.isascii() and plain.isprintable() and plain.strip():
        advice = f"write {plain}"
    source.fail(place, advice, f"{character if character.isprintable() else '?'} ({name})")


def split_equation(text: str) -> tuple[str, str] | None:
    """The two sides of an implicit equation, `Eq(lhs, rhs)` or `lhs = rhs`; None for a right-hand side alone.

    Examples
    --------
    >>> split_equation("Eq(m + q, E(z**2, z))"), split_equation("a*b = c"), split_equation("z1 + E(z1, cov={})")
    (('m + q', 'E(z**2, z)'), ('a*b', 'c'), None)
    """
    depth, equals, commas = 0, [], []
    stripped = text.strip()
    closed_early = False
    for i, c in enumerate(stripped):
        depth += (c in "([{") - (c in ")]}")
        closed_early |= depth == 0 and c == ")" and i < len(stripped) - 1
        if c == "=" and depth == 0 and stripped[i - 1:i] not in ("<", ">", "!", "=") and stripped[i + 1:i + 2] != "=":
            equals.append(i)
        if c == "," and depth == 1:
            commas.append(i)
    if len(equals) == 1:
        return stripped[:equals[0]].strip(), stripped[equals[0] + 1:].strip()
    if stripped.startswith("Eq(") and stripped.endswith(")") and not closed_early and len(commas) == 1:
        return stripped[3:commas[0]].strip(), stripped[commas[0] + 1:-1].strip()
    return None
