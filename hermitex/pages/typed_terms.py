r"""Terms typed between the dollars of words: each is read back, and a formula of the page has to contain it.

A name ($\mu_1$, $g(z)$), a number and a law are not terms. A letter of a name must occur in a formula, in a notation, or in a law,
$x \sim$; otherwise it is strange. A term is bound if it is a sub-expression of a formula that the page checks or defines, some
factors of one of its products, or some summands of one of its sums; or if a notation of the page declares it
($\mathrm{tr}\,A/p$). Any other term is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import islice, product
from typing import Any

from sympy import Abs, Add, Basic, Expr, Function, Integer, Mul, Pow, Rational, Symbol, exp, factorial, pi, sqrt
from sympy import functions as known
from sympy.core.function import AppliedUndef

from hermitex.show.display import latex
from hermitex.symbolic.gaussian import Expectation

_DOLLARS = re.compile(r"\$([^$]*)\$")
_TOKEN = re.compile(r"He(?=\s*[_'^])|\\[A-Za-z]+|\\.|\d+(?:\.\d+)?|\S")
_SPACE = {r"\,", r"\;", r"\!", r"\:", r"\ ", r"\left", r"\right"}
_ACCENTS = {r"\hat", r"\tilde", r"\bar", r"\dot"}
_FUNCTIONS = {r"\min": "Min", r"\max": "Max", r"\log": "log", r"\exp": "exp", r"\tanh": "tanh", r"\sin": "sin", r"\cos": "cos"}
_LAW = re.compile(r"\s*\\mathcal\{?[NP]\}?|\s*P\(")
_RELATION = re.compile(r"\\(?:geq?|leq?|neq?|ll|gg|to|mapsto|leftarrow|in|sim|simeq|approx|propto|equiv|l?dots)(?![A-Za-z])|[<>=]")
_OBJECT = re.compile(r"\\(?:sum|int|math[a-z]+|langle|partial|nabla|binom|circ|operatorname|top|cdot|times|\|)(?![A-Za-z])")
_KNOWN = (r"\infty", r"\pi", "e", "i")   # and everybody's; an index follows its letter


class _Unread(Exception):
    """The grammar has no such formula."""


def terms(words: str) -> list[str]:
    r"""The terms between single dollars; a relation parts two.

    >>> terms(r"At $\mu_1 > 0$ the norm of $g(z)$ is $\sqrt{c}\,z$ or $-2z$, with $z \sim \mathcal{N}(0, 1)$ and $#1$")
    ['\\sqrt{c}\\,z', '-2z']
    """
    return [t.strip() for f in _typed(words) for t in _RELATION.split(f) if not _is_name(t)]


def letters(words: str) -> Iterator[str]:
    r"""The letters of the names between single dollars.

    >>> list(letters(r"$\hat q_1$ of $g(z)$, $x \sim \mathcal{N}(0, C)$, $a + b$"))
    ['\\hat q _ 1', 'g', 'z', 'x']
    """
    for name in (t for f in _typed(words) for t in _RELATION.split(f) if _is_name(t) and not _LAW.match(t)):
        yield from _read(name)


def drawn(words: str) -> Iterator[str]:
    r"""The letters that words introduce by a law, $x \sim ...$."""
    for f in _typed(words):
        for left in f.split(r"\sim")[:-1]:
            yield from _read(left)


def _read(text: str) -> list[str]:
    reader = _TermReader(_tokens(text), {}, {})
    with suppress(_Unread):
        reader.whole()
    return reader.read


def _typed(words: str) -> list[str]:
    """The text between single dollars, without the given formulas."""
    return [f for part in words.split("$$")[::2] for f in _DOLLARS.findall(part) if not f.startswith("#")]


class Content:
    """What the formulas of a page contain."""

    def __init__(self, formulas: Iterable[Basic]) -> None:
        formulas = tuple(formulas)
        every = [x for f in formulas for x in _parts(f)]
        self.free = {x for f in formulas for x in f.free_symbols}
        self.parts = set(every)
        self.products = [x.as_powers_dict() for x in self.parts if isinstance(x, Mul)]
        self.sums = [set(x.args) for x in self.parts if isinstance(x, Add)]
        self.averages = {x.body: x for x in self.parts if isinstance(x, Expectation)}
        self.letters: dict[str, list[Any]] = {}
        for x, name in dict.fromkeys((x, _name(x)) for x in every if isinstance(x, Symbol | AppliedUndef)):
            self.letters.setdefault(name, []).append(x)
        for name, base in [(n, n.rpartition(" ^ ")[0]) for n in self.letters if re.search(r" \^ \d$", n)]:
            self.letters[name] += [x**int(name[-1]) for x in self.letters.get(base, ())]   # a square that is one letter, or none

    def has(self, term: str) -> bool:
        """Is what is typed part of a formula, in one of the readings of its letters?"""
        first = _TermReader(_tokens(term), {k: some[0] for k, some in self.letters.items()}, self.averages)
        with suppress(_Unread):
            first.whole()
        names = {k: self.letters[k] for k in first.read if k in self.letters}
        readings = 64  # of one term, in letters that print alike
        for chosen in islice(product(*names.values()), readings):
            try:
                made = _TermReader(_tokens(term), dict(zip(names, chosen, strict=True)), self.averages).whole()
            except _Unread:   # perhaps the average of another letter
                continue
            if not isinstance(made, tuple) and self.contain(made):
                return True
        return False

    def refused(self, words: Sequence[str], declared: Iterable[str] = ()) -> list[str]:
        """The terms of `words` that no formula has and that are not `declared`, and what is declared and not used."""
        used = [term for some in words for term in terms(some)]
        objects = {_key(one): one for text in declared for one in terms(f"${text}$")}
        idle = [one for key, one in objects.items() if key not in map(_key, used)]
        return [term for term in used if _key(term) not in objects and not self.has(term)] + idle

    def strange(self, words: Sequence[str], declared: Iterable[str] = ()) -> list[str]:
        """The letters of names in `words` that occur in no formula, in no notation (`declared`) and in no law."""
        known = {*_KNOWN, *self.letters, *_heads(declared), *(x for some in words for x in drawn(some))}
        families = {_family(name)[0] for name in known}
        typed = dict.fromkeys(x.rstrip(" '") for some in words for x in letters(some))

        def introduced(x: str) -> bool:
            base, index = _family(x)
            member = base in (known if index.isdigit() else families if re.fullmatch(r"\\ell|[a-z]", index) else ())
            return x in known or member or x.removeprefix(r"\dot ") in known or base == "He"

        return [_spelled(x) for x in typed if not introduced(x)]

    def unnamed(self, words: Sequence[str], declared: Iterable[str] = ()) -> list[str]:
        """The letters of the formulas that are not `declared`, nor anywhere among `words`; of a family one is enough."""
        said = (*_heads(declared), *(x for some in words for f in _typed(some) for x in _read(f)))
        known = {_family(x.rstrip(" '"))[0] for x in said}
        free = dict.fromkeys(name.rstrip(" '") for name, some in self.letters.items()
                             if any(x in self.free or isinstance(x, AppliedUndef) for x in some))
        return [_spelled(x) for x in free if _family(x.removeprefix(r"\dot "))[0] not in known]

    def contain(self, expr: Expr) -> bool:
        """Is it part of a formula: a sub-expression, some factors, some summands?"""
        factors = isinstance(expr, Mul | Pow) and expr.as_coeff_Mul()[0] == 1   # a sign and a number belong to the whole product
        if expr in self.parts or (factors and 1/expr in self.parts):
            return True
        if isinstance(expr, Add):
            return any(set(expr.args) <= of or {-x for x in expr.args} < of for of in self.sums)   # what is subtracted, in part
        if factors:
            both = [one.as_powers_dict() for one in (expr, 1/expr)]
            return any(all(of.get(base) == power for base, power in one.items()) for of in self.products for one in both)
        return False


def _heads(declared: Iterable[str]) -> Iterator[str]:
    """The letters that are declared; M(w, V) tells of M."""
    return (x for text in declared for x in (_key(text), *_read(text)[:1]))


def _parts(formula: Basic) -> Iterator[Basic]:
    """The formula and its sub-expressions; a summand without its sign, which is that of the sum."""
    found = [formula]
    while found:
        yield (one := found.pop())
        unsigned = isinstance(one, Add)
        found += [-x if unsigned and x.could_extract_minus_sign() else x for x in one.args]


def _family(name: str) -> tuple[str, str]:
    """A letter and its index: of an entry of it, or of one of several."""
    base, _, index = name.partition(" _ ")
    return base, index


def _spelled(name: str) -> str:
    r"""As it is typed: \hat q_1, g_{out}."""
    return re.sub(r" ([_^]) (.+)", lambda f: f[1] + (f[2] if " " not in f[2] else f"{{{f[2].replace(' ', '')}}}"), name)


@cache
def _printed(x: Symbol, name: str) -> str:   # a variable of an average is equal to that of others, whatever its name
    return _key(latex(x))


def _name(x: Any) -> str:
    """The letter as it is typed; the letter of a function may denote its value."""
    if isinstance(x, Symbol):
        return _printed(x, x.name)
    name = x.func.__name__
    return _printed(Symbol(name.rstrip("'")), name.rstrip("'")) + " '"*(len(name) - len(name.rstrip("'")))


def _is_name(text: str) -> bool:
    """A letter with its scripts, a function of letters, a tuple of them, a number, each with its sign; a law."""
    tokens = _tokens(text)
    if all(re.fullmatch(r"\d+|[-+(),]|\\pm|\\infty|\\mathbb|\{|\}|\+", t) for t in tokens) or _LAW.match(text):
        return True
    try:
        return _named(_TermReader(tokens, {}, {}).whole())
    except _Unread:
        return False


def _named(expr: Any) -> bool:
    """A letter, or a function of letters and numbers; with a sign, or several."""
    if isinstance(expr, tuple):
        return all(map(_named, expr))
    expr = -expr if expr.could_extract_minus_sign() else expr
    return isinstance(expr, Symbol | Integer) or (isinstance(expr, AppliedUndef) and all(map(_named, expr.args)))


def _tokens(text: str) -> list[str]:
    return [t for t in _TOKEN.findall(text) if t not in _SPACE]


def _key(text: str) -> str:
    """A letter without the braces that print alike."""
    return " ".join(t for t in _tokens(text) if t not in "{}").replace("^ *", r"^ \star")


class _TermReader:
    r"""The grammar: sums, products, quotients, \frac, powers, \sqrt, n!, |x|, functions; letters as the page prints them."""

    def __init__(self, tokens: list[str], letters: Mapping[str, Any], averages: Mapping[Expr, Expr]) -> None:
        self.tokens, self.letters, self.averages = list(reversed(tokens)), letters, averages
        self.read: list[str] = []   # the letters

    def whole(self) -> Any:
        """All of it: an expression, or several with commas."""
        made = [self._sum()]
        while self._next == ",":
            self._take()
            made.append(self._sum())
        if self.tokens:
            raise _Unread
        return made[0] if len(made) == 1 else tuple(made)

    @property
    def _next(self) -> str:
        return self.tokens[-1] if self.tokens else ""

    def _take(self, token: str = "") -> str:
        if not self.tokens or (token and self._next != token):
            raise _Unread
        return self.tokens.pop()

    def _sum(self) -> Any:
        sign = -1 if self._next == "-" else 1
        if self._next in ("-", "+", r"\pm"):
            self._take()
        made = self._product()
        made = _single(made)*sign if sign < 0 else made
        while self._next in ("+", "-"):
            sign = -1 if self._take() == "-" else 1
            made = _single(made) + sign*_single(self._product())
        return made

    def _product(self) -> Any:
        made = self._power()
        while self._next and self._next not in "+-)}],|":
            inverse = self._next == "/" and bool(self._take())
            factor = _single(self._power())
            made = _single(made)/factor if inverse else _single(made)*factor
        return made

    def _power(self) -> Any:
        made = self._atom()
        while self._next in ("^", "!"):
            made = factorial(_single(made)) if self._take() == "!" else _single(made)**_single(self._group())
        return made

    def _group(self) -> Any:
        """The text between braces, or one token; of a number, its first digit."""
        if self._next == "{":
            return self._between("{", "}")
        if re.fullmatch(r"\d\d+", self._next):
            number = self._take()
            self.tokens += [number[1:], number[0]]
        return Integer(self._take()) if self._next.isdigit() else self._letter()

    def _between(self, opened: str, closed: str) -> Any:
        self._take(opened)
        made = [self._sum()]
        while self._next == "," and self._take():
            made.append(self._sum())
        self._take(closed)
        return made[0] if len(made) == 1 else tuple(made)

    def _atom(self) -> Any:
        token = self._next
        if token in ("{", "(", "|"):
            made = self._between(token, {"{": "}", "(": ")", "|": "|"}[token])
            return Abs(_single(made)) if token == "|" else made
        if token in (r"\frac", r"\tfrac"):
            self._take()
            above = _single(self._group())
            return above/_single(self._group())
        if token == r"\sqrt":
            self._take()
            return sqrt(_single(self._group()))
        if token[:1].isdigit():
            return Rational(self._take())
        if token == r"\mathbb" and self.tokens[-4:-1] == ["}", "E", "{"]:
            return self._average()
        if token in _FUNCTIONS:
            self._take()
            made = self._power()
            return getattr(known, _FUNCTIONS[token])(*(made if isinstance(made, tuple) else (made,)))
        return self._letter()

    def _average(self) -> Any:
        """The average of the page whose integrand is in the brackets, or is the following product; its variables may be named."""
        del self.tokens[-4:]
        if self._next == "_" and self._take():
            self._script()
        body = self._between("[", "]") if self._next == "[" else self._product()
        if _single(body) not in self.averages:
            raise _Unread
        return self.averages[body]

    def _letter(self) -> Any:
        """A letter with its accent, scripts and arguments."""
        if not re.fullmatch(r"\\?[A-Za-z]+", self._next) or _OBJECT.match(self._next):
            raise _Unread
        name = self._take()
        if name in _ACCENTS:
            name += " " + self._script()
        while self._next in ("_", "'") or (self._next == "^" and self.tokens[-2:-1] in ([r"\star"], ["*"])):
            script = self._take()
            name += f" {script} " + (self._script() if script != "'" else "")
        name = _key(name)
        if self._next == "^" and " ".join((name, *reversed(self.tokens[-2:]))) in self.letters:
            name += f" {self._take()} {self._take()}"
        self.read.append(name)
        if name not in self.letters and name == r"\pi":
            return pi
        if name not in self.letters and name == "e" and self._next == "^":
            return exp(1)
        found = self.letters.get(name, Symbol(name))
        if self._next != "(" or (name in self.letters and isinstance(found, Symbol)):
            return found
        arguments = self._between("(", ")")
        head = Function(name) if isinstance(found, Symbol) else found.func
        return head(*(arguments if isinstance(arguments, tuple) else (arguments,)))

    def _script(self) -> str:
        """The content of a script or under an accent, as it is typed."""
        found = [self._take()]
        while found.count("{") > found.count("}"):
            found.append(self._take())
        return " ".join(found)


def _single(made: Any) -> Any:
    if isinstance(made, tuple):
        raise _Unread
    return made
