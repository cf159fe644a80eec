"""sum_k f(eta_k, beta_k, ...): sums over arrays that come with the numbers, read from SymPy's own `Sum` over `Indexed`.

    Sum(eta[k]/(eta[k] + nu), k)   ->   ArraySum(f(eta_k), k),   eta_k a symbol of its own, k its index

The node has what SymPy's `Sum` lacks here: its free symbols are those that need a number (the array stands among them, as the
symbol eta), its entries are real symbols (positive if the array is declared so), and it is differentiated under the sum.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise, product
from typing import Any

from mpmath.libmp import prec_to_dps
from sympy import (
    Add,
    Basic,
    Derivative,
    Expr,
    Float,
    Function,
    I,
    Idx,
    Indexed,
    IndexedBase,
    Integer,
    Limit,
    Mul,
    Poly,
    Product,
    Rational,
    S,
    Subs,
    Sum,
    Symbol,
    exp,
    expand,
    factorial,
    fraction,
    oo,
    together,
)
from sympy.concrete.expr_with_limits import ExprWithLimits
from sympy.core.facts import InconsistentAssumptions
from sympy.printing.precedence import PRECEDENCE

from hermitex import symbols as field
from hermitex.errors import BadInput, Divergent, HermitexError, NoClosedForm
from hermitex.symbolic import hooks
from hermitex.symbolic.series.polynomials import HermiteOfOrder
from hermitex.symbolic.special import LogFactorial

_WRITTEN = 1000  # terms of a sum of numbers that are added up; chosen by trial
_UNROLLED = 100  # the same of a sum that holds letters: beyond, code for each term takes seconds to make
_ADVICE = "write Sum(eta[k]/(eta[k] + nu), k) with eta = IndexedBase('eta') and k = Idx('k', Symbol('N', integer=True))"


class Index(Symbol):
    """The index of a sum: identity is its name and where it begins; as a number it is the place in the array.

    An `endless` one runs over 0, 1, 2, ... and has no array, as in an average over a countable law. One of a `count` has none
    either: it runs over that many numbers.
    """

    __slots__ = ("count", "endless", "first")
    first: int
    endless: bool
    count: int

    def __new__(cls, name: str, first: int = 0, endless: bool = False, count: int = 0) -> Index:
        obj = Symbol.__xnew__(cls, name, integer=True, **({"positive": True} if first > 0 else {"nonnegative": True}))
        obj.first, obj.endless, obj.count = first, endless, count
        return obj

    def __getnewargs_ex__(self) -> tuple[tuple, dict]:
        return (self.name, self.first, self.endless, self.count), {}

    def _hashable_content(self) -> tuple:
        return ("index", self.name, str(self.first), str(self.endless), str(self.count))


class Element(Symbol):
    """An entry of an array: eta[k], or A[i, j]. Its assumptions are those of the array."""

    __slots__ = ("array", "indices")
    array: Symbol
    indices: tuple[Index, ...]

    def __new__(cls, array: Symbol, *indices: Index) -> Element:
        name = f"{array.name}[{', '.join(i.name for i in indices)}]"
        obj = Symbol.__xnew__(cls, name, real=True, **said(array))
        obj.array, obj.indices = array, indices
        return obj

    def __getnewargs_ex__(self) -> tuple[tuple, dict]:
        return (self.array, *self.indices), {}

    def _hashable_content(self) -> tuple:
        return ("element", self.name, *sorted(said(self.array)), *(str(i.first) for i in self.indices))

    def _latex(self, printer: Any) -> str:
        return rf"{{{printer._print(self.array)}}}_{{{','.join(printer._print(i) for i in self.indices)}}}"


def said(array: Basic) -> dict[str, bool]:
    """The assumptions on an array, and so on its entries."""
    return {k: True for k in ("positive", "nonnegative", "negative", "integer", "nonzero") if array.assumptions0.get(k)}


HIDDEN = "its variables occur under a sum, an integral, a limit or a derivative"


def hidden(expr: Basic, variables: Iterable[Symbol], *within: type) -> bool:
    """Are there variables under a sum, an integral, a limit or a slope (that holds anything of the kinds `within`)?

    Its own variable is bound: no rule that looks for parts of an expression may take it for a letter.

    >>> from sympy import sign
    >>> x, k = Symbol("x"), Symbol("k", integer=True)
    >>> hidden(x*Sum(sign(x - k), (k, 1, 3)), [x]), hidden(x*Sum(k**2, (k, 1, 3)), [x])
    (True, False)
    """
    binding = expr.atoms(ArraySum, Derivative, ExprWithLimits, Limit, Subs)
    return any(not n.free_symbols.isdisjoint(variables) and (not within or n.has(*within)) for n in binding)


class ArraySum(Expr):
    """The node: `body` and its `index`; a sum over several indices is a sum of sums."""

    is_commutative = True
    precedence = PRECEDENCE["Atom"]

    def __new__(cls, body: Any, index: Index) -> Expr:
        return S.Zero if body == 0 else Expr.__new__(cls, body, index)

    @property
    def body(self) -> Expr:
        """The summand."""
        return self.args[0]

    @property
    def index(self) -> Index:
        """The indices of the sum."""
        return self.args[1]

    @property
    def free_symbols(self) -> set:
        """Those of the summand, without its index; an entry that is summed over leaves its array."""
        free, summed = self.body.free_symbols, {self.index}
        if any(isinstance(s, Element) and len(s.indices) > 1 for s in free):
            summed |= {inner.index for inner in self.body.atoms(ArraySum)}
        gone = {s for s in free if isinstance(s, Element) and set(s.indices) <= summed}
        return (free - gone - {self.index}) | {s.array for s in free if isinstance(s, Element)}

    def _eval_is_real(self) -> bool | None:
        return True if self.body.is_real else None

    def _eval_is_positive(self) -> bool | None:
        return True if self.body.is_positive else None

    def _eval_is_nonnegative(self) -> bool | None:
        return True if self.body.is_nonnegative else None

    @cached_property
    def _summands(self) -> dict[tuple[Expr, int], Expr] | None:
        """p for each b and k, of an endless sum of b^n p(n)/n!^k, p polynomials; None of another one."""
        n, found = self.index, dict[tuple[Expr, int], Expr]()
        for term in Add.make_args(expand(self.body)) if n.endless else ():
            rate, others, factorials = S.One, S.One, S.Zero
            for factor in Mul.make_args(term):
                b, k = factor.as_base_exp()
                fall = k.coeff(LogFactorial(n)) if b is S.Exp1 else S.Zero
                k -= fall*LogFactorial(n)
                if n in b.free_symbols or not k.is_polynomial(n):
                    others *= factor
                else:
                    rate, others, factorials = rate*b**k.diff(n), others*b**k.xreplace({n: S.Zero}), factorials - fall
            if not (factorials.is_Integer and others.is_polynomial(n)) or n in rate.free_symbols:
                return None
            key = rate, int(factorials)
            found[key] = found.get(key, S.Zero) + others
        return {key: p for key, p in ((key, expand(p)) for key, p in found.items()) if p != 0} if n.endless else None

    @property
    def diverges(self) -> bool:
        """Is it an endless sum of b^n p(n), p polynomials, with |b| >= 1 in one of them?

        >>> n = Index("n", endless=True)
        >>> [ArraySum(u, n).diverges for u in (2**n*n/2**(n + 3), (-2)**n/3**n)]
        [True, False]
        """
        found = self._summands or {}
        return all(b.is_number and not k for b, k in found) and any((abs(b) - 1).is_nonnegative for b, _ in found)

    def closed(self) -> Expr:
        """sum_n n (n-1) ... (n-j+1) b^n = j! b^j/(1 - b)^(j+1) for |b| < 1, and b^j exp(b) with n! below; else the sum.

        Raises
        ------
        Divergent : the terms do not fall.
        """
        if self.diverges:
            raise Divergent(self, "its terms do not fall")
        n, value = self.index, S.Zero
        for (b, k), p in (self._summands or {}).items():
            if k not in (0, 1) or not (k or (b.is_number and (1 - abs(b)).is_positive)):
                return self
            differences = [p.xreplace({n: Integer(i)}) for i in range(Poly(p, n).degree() + 1)]
            for j in range(len(differences)):
                value += differences[0]/factorial(j)*b**j*(exp(b) if k else factorial(j)/(1 - b)**(j + 1))
                differences = [y - x for x, y in pairwise(differences)]
        return self if self._summands is None else value

    def doit(self, **hints: Any) -> Expr:
        """The parts worked out, and a sum over a countable law where it has a closed form.

        >>> n = Index("n", endless=True)
        >>> ArraySum(n**2/2**n, n).doit()
        6

        Raises
        ------
        Divergent : the terms do not fall.
        """
        done = super().doit(**hints)
        return done.closed() if isinstance(done, ArraySum) else done

    def _eval_evalf(self, prec: int) -> Expr:
        """The digits of a sum over numbers; unevaluated if it holds letters, or if its tail is not known."""
        if self.free_symbols or not (self.index.endless or self.index.count):
            return self
        if self.index.count:
            return self._added_up(prec)
        digits = prec_to_dps(prec)
        if not (done := self.doit()).has(ArraySum):
            return done.evalf(digits)
        value = hooks.total(self, digits)
        return self if value is None else Float(value, digits)

    def _added_up(self, prec: int) -> Expr:
        """The digits of a sum of finitely many terms; unevaluated if they are too many, or have no numeric rule."""
        parts = self.body.as_real_imag() if self.body.has(I) else (self.body, S.Zero)
        if parts[1] != 0:
            real, imaginary = (ArraySum(part, self.index).evalf(prec_to_dps(prec)) for part in parts)
            return real + I*imaginary
        try:
            value, bits = hooks.evaluate(self, prec)
        except NoClosedForm:
            return self
        return Float._new(value._mpf_, max(bits, 1))

    def _eval_derivative(self, symbol: Symbol) -> Expr:
        return ArraySum(self.body.diff(symbol), self.index)

    def _eval_subs(self, old: Basic, new: Basic) -> Basic | None:
        return self if isinstance(old, Index) else None

    def _sympystr(self, printer: Any) -> str:
        k = self.index
        end = "oo" if k.endless else k.first + k.count - 1 if k.count else "N"
        where = f"({k.name}, {k.first}, {end})" if k.first or k.endless or k.count else k.name
        return f"Sum({printer._print(self.body)}, {where})"

    def _latex(self, printer: Any) -> str:
        k = self.index
        last = r"\infty" if k.endless else k.first + k.count - 1
        ends = rf"\sum_{{{k.name}={k.first}}}^{{{last}}}" if k.count or k.endless else rf"\sum_{{{printer._print(k)}}}"
        return rf"{ends} {printer.parenthesize(self.body, PRECEDENCE['Mul'])}"

    def _pretty(self, printer: Any) -> Any:
        from sympy.printing.pretty.stringpict import prettyForm

        return prettyForm(str(self))


def read_sums(expr: Any, *, part: bool = False, claim: bool = False) -> Any:
    """`expr` with every `Sum` over arrays as an `ArraySum`, and its length N, where it occurs by itself, as the sum of 1.

    part : it may be part of a sum, so that entries at an `Idx` need none around them
    claim : a sum without an array and without a value stays as it is, and is added up where its ends are numbers

    Raises
    ------
    BadInput : an entry that no sum is taken over, a range that is not the whole array, a place such as eta[k + 1].
    """
    if not isinstance(expr, Basic) or not expr.has(Sum, Indexed, Idx, IndexedBase):
        return expr
    lengths: dict[Symbol, Expr] = {}
    loose = {i: Index(_name(i), int(i.lower or 0)) for i in expr.atoms(Idx) if (i.lower or 0) in (0, 1)} if part else {}
    done = _read(expr, loose, lengths, claim)
    named = {n.name: e for n, e in lengths.items()}
    swap = {n: named[n.name] for n in done.free_symbols if n.name in named}
    return done.xreplace(swap) if swap else done


def _read(e: Basic, indices: dict[Basic, Index], lengths: dict[Symbol, Expr], claim: bool) -> Any:
    if isinstance(e, Sum):
        return _sum(e, indices, lengths, claim)
    if isinstance(e, Indexed):
        return _entry(e, indices)
    if isinstance(e, Idx):
        if e not in indices:
            raise BadInput(f"the index {e} occurs outside of every sum over it; {_ADVICE}")
        return indices[e]
    if e in indices:
        return indices[e]
    if not e.args or not (e.has(Sum, Indexed, Idx) or any(e.has(i) for i in indices)):
        return e
    return e.func(*(_read(a, indices, lengths, claim) for a in e.args))


def most_written(letters: Iterable[Symbol], *, averages: bool = False) -> int:
    """Of how many terms a sum that holds letters, or none, or averages is written out."""
    few = 12  # of averages, each with nodes of its own
    return few if averages else _UNROLLED if list(letters) else _WRITTEN


def _done(e: Sum) -> Expr | None:
    """Its value; of a sum of very many terms that of powers only, for SymPy would add up all others one by one."""
    many = any(most_written(e.free_symbols) < high - low < oo for _, low, high in e.limits
               if (high - low).is_number and (high - low).is_real)
    if _meets_pole(e):
        raise BadInput(f"a term of {e} is divided by zero")
    if many and not e.function.is_polynomial(*e.variables):
        return None
    value = e.doit()
    if (fails := _where_it_fails(e, value)) is not None:
        raise BadInput(f"SymPy's value of {e}, {value}, does not hold at {fails}; write what it is there")
    return value


def _where_it_fails(e: Sum, value: Expr) -> str | None:
    """Small numbers for the letters of the ends at which the terms add up to something else: Sum((-1)**k*binomial(M, k), (k, 0, M))
    is 1 at M = 0, and 0 for SymPy."""
    ends = sorted({s for _, *span in e.limits for end in span for s in end.free_symbols}, key=str)
    others = {s: v for s, v in field.fractions(e.free_symbols - set(ends), -1).items() if field.fits(s, v)}
    alike = Rational(1, 10**9)  # how near the value of a sum is to its formula
    tried = range(-1, 4)  # numbers for the end of a sum, at which its value is tried
    for shift, k in product(range(len(ends)), tried):
        point = {s: Integer(k + (i + shift) % len(ends)) for i, s in enumerate(ends)}
        backwards = any((high - low).xreplace(point) < -1 for _, low, high in e.limits)
        if backwards or not all(field.fits(s, v) for s, v in point.items()):
            continue
        try:
            terms, found = (u.xreplace({**others, **point}).doit() for u in (e, value))
        except (HermitexError, InconsistentAssumptions):  # a letter that is declared positive, and summed from 0
            continue
        gap = (terms - found).evalf(15)
        if gap.is_number and gap.is_finite and abs(gap) > alike*(1 + abs(terms)):
            return ", ".join(f"{s} = {v}" for s, v in point.items())
    return None


def _meets_pole(e: Sum) -> bool:
    """Is a term divided by zero? SymPy telescopes over it: Sum(1/((k - 2)*(k - 3)), (k, 1, M)) was M/(2*(M - 2))."""
    bottoms = {f.as_base_exp()[0] for f in Mul.make_args(fraction(together(e.function))[1])}
    return any(f.free_symbols == {k} and f.is_polynomial(k)
               and any((r - low).is_nonnegative is not False and r.is_integer and (high - r).is_negative is not True
                       for r in Poly(f, k).ground_roots())
               for k, low, high in e.limits for f in bottoms)


def _sum(e: Sum, indices: dict[Basic, Index], lengths: dict[Symbol, Expr], claim: bool) -> Expr:
    if not e.function.has(Indexed, IndexedBase, Idx) and not any(isinstance(s, Idx) for s in e.variables):
        if e.has(HermiteOfOrder):   # over orders: a claim that a check works out
            return e
        try:
            done = _done(e)
        except BadInput:
            if claim:
                return e
            raise
        if done is None or done.has(Sum, S.ComplexInfinity, S.NaN):  # 1/(k (k + x)) in two parts, both divergent
            if claim:
                return e
            done = over_numbers(e)
        if done.is_infinite and not claim:
            raise BadInput(f"{e} has no finite value: its terms add up to infinity")
        return _read(done, indices, lengths, claim)
    found = []
    for variable, low, high in e.limits:
        size = high - low + 1
        if low not in (0, 1) or size.is_number or not (size.is_Symbol or size.has(IndexedBase)):
            raise BadInput(f"the sum over {variable} runs from {low} to {high}: a sum runs over a whole array, whose length comes "
                           f"with the numbers; {_ADVICE}")
        index = Index(_name(variable), int(low))
        found.append((variable, index, size))
    inner = {**indices, **{v: i for v, i, _ in found}}
    body = _read(e.function, inner, lengths, claim)
    for _, index, size in found:
        body = ArraySum(body, index)
        if size.is_Symbol:
            lengths[size] = ArraySum(S.One, index)
    return body


def over_numbers(e: Sum) -> Expr:
    """A sum from a number to a number, or on and on, which has no closed form: kernels add up its terms.

    >>> from sympy.abc import k, q
    >>> read_sums(Sum(1/(1 + q*k)**2, (k, 1, 5000))), read_sums(Sum(1/(k**3 + q), (k, 2, oo)))
    (Sum((k*q + 1)**(-2), (k, 1, 5000)), Sum(1/(q + (k + 2)**3), (k, 0, oo)))
    """
    body = e.function
    for k, low, high in e.limits:
        if not low.is_Integer or not (high.is_Integer or high is S.Infinity):
            raise BadInput(f"{e} is neither a sum over an array nor between numbers, and has no closed form; {_ADVICE}")
        begin = int(low) if high.is_Integer and low >= 0 else 0
        index = Index(_name(k), begin, endless=high is S.Infinity, count=0 if high is S.Infinity else int(high - low + 1))
        body = ArraySum(body.xreplace({k: index + low - begin}), index)
    return body


def added_up(expr: Expr) -> Expr:
    """Sums and products of few terms between numbers, term by term.

    >>> from sympy import Product
    >>> from sympy.abc import i, k
    >>> added_up(Sum(Product(i, (i, 1, k)), (k, 1, 3)))
    9
    """
    return expr.replace(lambda e: isinstance(e, Sum | Product), _term_by_term) if expr.has(Sum, Product) else expr


def _term_by_term(e: Expr) -> Expr:
    """The outer range first: the ends of the inner ones may hold its letter."""
    *inner, (k, *ends) = e.limits
    if len(ends) != 2 or not all(end.is_Integer for end in ends) or not -1 <= ends[1] - ends[0] < _WRITTEN:
        return e
    body = e.func(e.function, *inner) if inner else e.function
    terms = (added_up(body.xreplace({k: Integer(i)})) for i in range(ends[0], ends[1] + 1))
    return (Add if isinstance(e, Sum) else Mul)(*terms)


def _name(variable: Basic) -> str:
    name = str(variable.label if isinstance(variable, Idx) else variable)
    if not name.isidentifier():
        raise BadInput(f"the index of a sum is a name such as k, not {name[:40]}")
    return name


def _entry(e: Indexed, indices: dict[Basic, Index]) -> Element:
    label = e.base.label
    if not isinstance(label, Symbol):
        raise BadInput(f"{e}: an array is IndexedBase('eta'), a name whose numbers come later")
    for place in e.indices:
        if place not in indices:
            if any(place.has(i) for i in indices):
                raise BadInput(f"{e}: an entry is taken at the index itself, as {label}[k]; shifted places are other arrays")
            if place.is_number:
                raise BadInput(f"{e}: one entry alone is a parameter of its own; give it a name, Symbol('{label}{place}')")
            raise BadInput(f"{e} occurs outside of every sum over {place}; {_ADVICE}")
    return Element(Symbol(str(label), real=True, **said(e.base)), *(indices[i] for i in e.indices))


def arrays(*exprs: Basic) -> dict[Symbol, int]:
    """{array: how many indices it has} of all entries that are summed over in the expressions.

    Raises
    ------
    BadInput : a name is an array here and a number there, or has one index here and two there.
    """
    found: dict[Symbol, int] = {}
    for e in elements(*exprs):
        if found.setdefault(e.array, len(e.indices)) != len(e.indices):
            raise BadInput(f"{e.array} has {found[e.array]} indices in one place and {len(e.indices)} in another")
    return found


def equally_long(given: Iterable[Basic | str], read: Iterable[Basic]) -> list[set[str]]:
    """The names of the indices in groups of one length: that of one array, or, in what was given, one letter.

    >>> one = [ArraySum(S.One, Index("i")), ArraySum(S.One, Index("j", 1))]
    >>> [sorted(g) for g in equally_long(["Sum(1, (i, 0, N - 1))*Sum(1, (j, 1, N))"], one)]
    [['i', 'j']]

    >>> eta, xi = Symbol("eta"), Symbol("xi")
    >>> i, j, k = map(Index, "ijk")
    >>> two = [ArraySum(Element(eta, i), i) + ArraySum(Element(eta, j), j), ArraySum(Element(xi, k), k)]
    >>> [sorted(g) for g in equally_long([], two)]
    [['i', 'j'], ['k']]
    """
    found: dict[Any, set[str]] = {}
    for e in elements(*read):
        for place, i in enumerate(e.indices):
            found.setdefault((e.array, place), set()).add(i.name)
    for side in given:
        for name, length in _in_text(side) if isinstance(side, str) else (
                (str(v), str(high - low + 1)) for e in side.atoms(Sum) for v, low, high in e.limits):
            found.setdefault(length, set()).add(name)
    groups = [{i.name} for i in set().union(*(side.atoms(Index) for side in read))]
    for names in found.values():
        joined = [g for g in groups if g & names]
        groups = [g for g in groups if g not in joined] + [set().union(*joined)]*bool(joined)
    return sorted(groups, key=min)


def _in_text(text: str) -> Iterator[tuple[str, str]]:
    """The indices of a text with the names of their lengths, which no node keeps: (k, 0, N - 1), or (k, 1, N)."""
    try:
        tree = ast.parse(f"({text})", mode="eval")
    except SyntaxError:  # of another character for a minus, or a name
        return
    for t in ast.walk(tree):
        if isinstance(t, ast.Tuple) and len(t.elts) == 3:
            name, first, last = map(ast.unparse, t.elts)
            yield name, last if first == "1" else last.removesuffix(" - 1")


def elements(*exprs: Basic) -> list[Element]:
    """All entries of arrays in the expressions, in a fixed order."""
    found = {e for expr in exprs for e in expr.atoms(Element)}
    return sorted(found, key=lambda e: e.name)


def unsummed(expr: Basic) -> list[Symbol]:
    """The entries and indices in an expression over which no sum is taken."""
    return sorted((s for s in expr.free_symbols if isinstance(s, Element | Index)), key=lambda s: s.name)


def written_out(expr: Any, lengths: Mapping[str, int], values: Mapping[str, Any] | None = None,
                at: Mapping[Basic, int] | None = None) -> Any:
    """The expression with each sum as its terms; one over an index of no length, of a countable law, stays a sum.

    lengths : by the name of the index
    values : numbers by the name of the array, values["eta"][j]; without them the entries are symbols eta_0, eta_1, ...

    >>> eta, nu, k = Symbol("eta"), Symbol("nu"), Index("k")
    >>> written_out(ArraySum(Element(eta, k)/nu, k), {"k": 2})
    eta_0/nu + eta_1/nu
    """
    at = at or {}
    if isinstance(expr, ArraySum) and (length := expr.index.count or lengths.get(expr.index.name)):
        rows = (written_out(expr.body, lengths, values, {**at, expr.index: j}) for j in range(length))
        return Add(*rows)
    if isinstance(expr, Index):
        return Integer(at[expr] + expr.first) if expr in at else expr
    if isinstance(expr, Element):
        return _entry_at(expr, [at[i] for i in expr.indices], values) if all(i in at for i in expr.indices) else expr
    if not expr.args or not (expr.has(ArraySum) or any(isinstance(s, Element | Index) for s in expr.free_symbols)):
        return expr
    if isinstance(expr, Function) and not expr.has(ArraySum, Element):
        return _at_places(expr, tuple((i, at[i]) for i in at if expr.has(i)))
    return expr.func(*(written_out(a, lengths, values, at) for a in expr.args))


@lru_cache(maxsize=4096)
def _at_places(expr: Expr, places: tuple[tuple[Basic, int], ...]) -> Expr:
    """A function of indices at their numbers: every sum over a law holds its probabilities, on both sides of a claim."""
    return expr.func(*(written_out(a, {}, None, dict(places)) for a in expr.args))


def with_entries(expr: Expr, values: Mapping[str, Any], beside: Iterable[Expr] = ()) -> Expr:
    """The expression with numbers, lists of exact or floating-point ones, for its arrays.

    beside : expressions whose arrays give the range of an index that has no array here, as in Sum(1/(k + nu)**2, k)

    >>> eta, nu, k = Symbol("eta"), Symbol("nu"), Index("k")
    >>> with_entries(ArraySum(Element(eta, k)/nu, k), {"eta": [1, 0.5]})
    3/(2*nu)
    """
    lengths: dict[str, int] = {}
    for e in elements(expr, *beside):
        row = values[e.array.name]
        for index in e.indices:
            lengths[index.name], row = len(row), row[0]
    return written_out(expr, lengths, values) if lengths else expr


def _entry_at(e: Element, places: Sequence[int], values: Mapping[str, Any] | None) -> Any:
    if values is not None and e.array.name in values:
        found = values[e.array.name]
        for p in places:
            found = found[p]
        return Rational(str(found)) if isinstance(found, float) else found
    return Symbol("_".join([e.array.name, *map(str, places)]), real=True, **said(e))
