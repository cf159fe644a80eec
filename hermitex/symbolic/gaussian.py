"""E[f(z)] = int f(z) exp(-z.C^-1.z/2) / sqrt((2 pi)^n det C) dz: the expectation as an unevaluated SymPy node.

A node binds its variables. At construction they become reserved symbols numbered by nesting depth (an inner node
has the lower number), so two nodes are equal exactly when they are equal up to the names of what they bind, and no
substitution can capture anything. The reserved symbols print under the names the user gave.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

from sympy import Add, Basic, Dummy, Expr, Float, ImmutableDenseMatrix, Integer, Mod, Piecewise, Symbol, Tuple, eye, floor, sympify
from sympy.core.evalf import evalf_table
from sympy.core.relational import Relational
from sympy.logic.boolalg import And, BooleanAtom, BooleanFunction
from sympy.printing.precedence import PRECEDENCE

from hermitex import symbols as field
from hermitex.errors import BadInput, HermitexError
from hermitex.hints import Covariance, Formula, Letters
from hermitex.symbolic import hooks
from hermitex.symbolic.covariance import by_pairs, matrix_of, require_law
from hermitex.symbolic.deadline import deadline
from hermitex.symbolic.law_constraints import Condition, apart, lawful
from hermitex.symbolic.laws import averaged, is_random, joint_normals, random_variables, required
from hermitex.symbolic.subexpressions import swapped
from hermitex.symbolic.tails import as_erf


class Bound(Symbol):
    """The reserved symbol of a bound variable: identity is (level, position), the name only prints."""

    __slots__ = ("level", "position")
    level: int
    position: int

    def __new__(cls, name: str, level: int, position: int) -> Bound:
        obj = Symbol.__xnew__(cls, name, real=True)
        obj.level, obj.position = level, position
        return obj

    def __getnewargs_ex__(self) -> tuple[tuple, dict]:
        return (self.name, self.level, self.position), {}

    def _hashable_content(self) -> tuple:
        return ("bound", self.level, self.position)

    def _sympystr(self, printer: Any) -> str:
        # SymPy tells one Subs from another by the texts of their points, for which it numbers dummies: f'(z + 1) of a bound z
        # was equal to that of a free one, and its cache put the one for the other.
        inside = type(printer).__qualname__.startswith("Subs.")
        return f"{self.name}_{self.level}_{self.position}" if inside else self.name


class Expectation(Expr):
    """The node: `body`, the bound variables, and their covariance (None: independent and standard).

    Guarantee: two nodes are equal exactly if they are equal up to the names of what they bind, and no substitution captures a
    variable. See docs/promise.md.

    >>> from hermitex.symbols import z
    >>> node = E(z**4, z)
    >>> node, node.doit()
    (E(z**4, z), 3)
    """

    is_commutative = True
    precedence = PRECEDENCE["Atom"]

    def __new__(cls, body: Expr, bound: Tuple, cov: Basic | None = None) -> Expr:
        return bind(sympify(body, strict=True), tuple(bound), cov, keep=True)

    # -- reading ---------------------------------------------------------------------------------------------------
    @property
    def body(self) -> Expr:
        """The integrand, in the reserved symbols."""
        return self.args[0]

    @property
    def bound(self) -> tuple[Bound, ...]:
        """The reserved symbols it binds."""
        return tuple(self.args[1])

    @property
    def covariance(self) -> ImmutableDenseMatrix:
        """The covariance matrix of the bound variables."""
        return self.args[2] if len(self.args) > 2 else ImmutableDenseMatrix(eye(len(self.bound)))

    @property
    def independent(self) -> bool:
        """True if the variables are independent and standard."""
        return len(self.args) == 2

    @property
    def level(self) -> int:
        """Nesting depth: 0 for a node that holds no node."""
        return self.bound[0].level

    @property
    def free_symbols(self) -> set:
        return set(self._free)

    @cached_property
    def _free(self) -> frozenset:  # asked at every step of a walk, and SymPy would look through the whole of it each time
        free = frozenset(self.body.free_symbols - set(self.bound))
        return free.union(*(a.free_symbols for a in self.args[2:]))

    def open(self) -> tuple[Expr, tuple[Symbol, ...]]:
        """The integrand over fresh symbols (real, of the same names), safe to manipulate: (body, variables)."""
        fresh = tuple(Dummy(b.name, real=True) for b in self.bound)
        return swapped(self.body, dict(zip(self.bound, fresh, strict=True))), fresh

    def opened(self) -> tuple[Expr, tuple[Symbol, ...]]:
        """`open` with the same symbols at every call, so that what is found of the integrand is found again in the caches.

        For reading one node only: two nodes opened in this way would share their variables.
        """
        return _opened(self, tuple(b.name for b in self.bound))

    def within(self) -> tuple[Expr, tuple[Symbol, ...]]:
        """`open` if there are nodes inside; else nothing can be captured, and the integrand stays as it is, known to the caches."""
        return self.open() if self.body.has(Expectation) else (self.body, tuple(self.bound))

    def with_body(self, body: Any, variables: Sequence[Symbol], *, keep: bool = False) -> Expr:
        """The expectation of another integrand over the same law; `variables` are the result of `open`.

        A variable that does not occur is dropped, unless `keep` says that a name in the body may hold it.
        """
        return bind(sympify(body, strict=True), tuple(variables), None if self.independent else self.covariance, keep=keep)

    # -- SymPy's protocol ------------------------------------------------------------------------------------------
    # A text in a call is read by `hermitex.parse`, which runs nothing; SymPy would evaluate it as Python.
    def subs(self, *args: Any, **kwargs: Any) -> Any:
        return super().subs(*map(self._read, args), **kwargs)

    def evalf(self, n: int = 15, subs: Any = None, *args: Any, budget: float | None = None, **kwargs: Any) -> Any:
        """N digits; within a `budget` of seconds, if one is given.

        Guarantee: the n digits are meant relative to the value, for formulas whose narrow features show in the formula; else it
        raises. See docs/promise.md.
        """
        with deadline(budget):
            if subs:  # exactly: of exp(a*(z - b)) - 1 with rounded numbers the zero at b is lost
                values = {k: hooks.expression(v) for k, v in self._read(subs).items()}
                return self.subs(values).evalf(int(n), None, *args, **kwargs)
            return super().evalf(int(n), None, *args, **kwargs)

    n = evalf

    def diff(self, *symbols: Any, **assumptions: Any) -> Any:
        try:
            return super().diff(*map(self._read, symbols), **assumptions)
        except HermitexError:
            raise
        except ValueError as error:  # SymPy's, on a text that is not a letter
            raise BadInput(f"E(...).diff: {str(error).strip().rstrip('.')}; name a letter, or a letter and how often") from None

    def _read(self, given: Any) -> Any:
        """The arguments, with texts as symbols of this node or as expressions; symbols are identified by their names."""
        own = {s.name: s for s in self.free_symbols}
        if isinstance(given, str):
            known = {**field.LETTERS, **own}
            return known.get(given) or hooks.parse(given, symbols=known)
        if type(given) is Symbol and type(mine := own.get(given.name)) is Symbol and given != mine:
            field.one_name(given, mine)  # nothing opposite is assumed of the two
            return mine
        if isinstance(given, Mapping):
            return {self._read(k): self._read(v) for k, v in given.items()}
        return type(given)(map(self._read, given)) if type(given) in (list, tuple) else given

    def has(self, *patterns: Any) -> bool:
        """As of every expression; a Piecewise alone is not shown, for SymPy would fold its conditions out of the average."""
        return patterns != (Piecewise,) and super().has(*patterns)

    def _eval_is_real(self) -> bool | None:
        return True if self.body.is_real else None

    def _eval_is_nonnegative(self) -> bool | None:
        return True if self.body.is_nonnegative else None

    def _eval_is_positive(self) -> bool | None:
        return True if self.body.is_positive else None

    def _xreplace(self, rule: Any) -> tuple[Basic, bool]:
        if self in rule:
            return rule[self], True
        if isinstance(rule, Mapping):  # SymPy also passes filters on atoms, which name no symbol
            rule = {k: v for k, v in rule.items() if k not in self.bound}
            if not rule:
                return self, False
            if self.free_symbols.isdisjoint(rule) and all(isinstance(k, Symbol) for k in rule):
                return self, False
            if self._harmless(rule):
                args = tuple(swapped(a, rule) for a in self.args)
                if self._still_canonical(args[0]):
                    return _bind(*args), True
        body, fresh = self.open()
        new, changed = body._xreplace(rule)
        cov = self.args[2]._xreplace(rule) if len(self.args) > 2 else (None, False)
        if not (changed or cov[1]):
            return self, False
        return bind(new, fresh, cov[0], keep=True), True

    def _harmless(self, rule: Mapping) -> bool:
        """Nothing that is put in can be captured here or change a level: then the node need not be opened."""
        return all(isinstance(k, Symbol) or not k.has(Bound) for k in rule) and not any(
            v.has(Expectation) or any(b.level <= self.level for b in v.atoms(Bound))
            for v in rule.values() if isinstance(v, Basic))

    def _still_canonical(self, body: Expr) -> bool:
        """Would `bind` give this body the bound variables that the node has?"""
        inside = body.atoms(Expectation) if self.level else ()  # what is harmless puts none in
        return self.level == 1 + max((n.level for n in inside), default=-1) and set(self.bound) <= body.free_symbols

    def _eval_subs(self, old: Basic, new: Basic) -> Basic:
        if old in self.bound:
            return self
        old = self._read(old) if type(old) is Symbol else old
        body, fresh = self.open()
        cov = self.args[2]._subs(old, new) if len(self.args) > 2 else None
        return bind(body._subs(old, new), fresh, cov, keep=True)

    def _eval_derivative(self, symbol: Symbol) -> Expr:
        """d/ds E f = E df/ds with weak derivatives: sign' = 2 delta, and a jump is never lost."""
        return hooks.differentiate(self, symbol)

    def doit(self, **hints: Any) -> Expr:
        """The exact value where a rule of `integrals` applies; else the node with what is inside it done.

        ``budget=30`` bounds it to so many seconds.

        Guarantee: a returned closed form equals the average for all values that the assumptions allow. See docs/promise.md.
        """
        with deadline(hints.get("budget")):
            return hooks.integrate(self, deep=hints.get("deep", True))

    def why(self) -> str:
        """The reason why `doit` finds no exact value; "" if it finds one.

        Examples
        --------
        >>> from sympy import tanh
        >>> from hermitex.symbols import z
        >>> print(E(tanh(z + 1), z).why())
        tanh(z + 1): it is not a product of polynomials, exponentials and error functions (tried 9 rules)
        """
        return hooks.reason(self)

    def _eval_evalf(self, prec: int) -> Expr:
        """N digits by mpmath, split at the kinks of the expression."""
        if self.free_symbols:
            return self
        value, bits = hooks.evaluate(self, prec)
        return Float._new(value._mpf_, max(bits, 1))

    def _eval_simplify(self, **kwargs: Any) -> Expr:
        body, fresh = self.open()
        return self.with_body(body.simplify(**kwargs), fresh)

    def _eval_expand_func(self, **hints: Any) -> Expr:
        return self

    def _no_code(self, printer: Any) -> str:
        raise BadInput(f"{str(self)[:80]} is an average, which lambdify cannot print; hx.compile(expr) makes a function of arrays")

    _pythoncode = _numpycode = _mpmathcode = _lambdacode = _numexprcode = _tensorflowcode = _torchcode = _no_code
    _cupycode = _jaxcode = _sympycode = _no_code

    # -- printing --------------------------------------------------------------------------------------------------
    def named(self) -> tuple[Expr, list[Symbol], ImmutableDenseMatrix | None]:
        """Body and variables under printable names that no other symbol of the body bears."""
        taken = {s.name for s in self.body.free_symbols if s not in self.bound}
        names = []
        for b in self.bound:
            name, k = b.name, 0
            while name in taken:
                k += 1
                name = f"{b.name.rstrip('0123456789')}{k}"
            taken.add(name)
            names.append(Symbol(name, real=True))
        body = self.body.xreplace(dict(zip(self.bound, names, strict=True)))
        return body, names, None if self.independent else self.covariance

    def _sympystr(self, printer: Any) -> str:
        body, names, cov = self.named()
        inside = ", ".join([printer._print(body), *(n.name for n in names)])
        if cov is not None:
            inside += f", cov={{{', '.join(_cov_items(names, cov, printer._print))}}}"
        return f"E({inside})"

    def _latex(self, printer: Any) -> str:
        body, names, cov = self.named()
        subscript = ", ".join(printer._print(n) for n in names)
        if cov is not None:   # else one symbol would mean two laws
            subscript += r";\, " + ", ".join(rf"\langle {printer._print(names[i]*names[j])} \rangle = {printer._print(value)}"
                                            for (i, j), value in covariance_items(self).items())
        return rf"\mathbb{{E}}_{{{subscript}}}\left[{printer._print(body)}\right]"

    def _pretty(self, printer: Any) -> Any:
        from sympy.printing.pretty.stringpict import prettyForm

        body, names, _ = self.named()
        inside = prettyForm(*printer._print(body).parens("[", "]"))
        head = prettyForm("E_" + ",".join(n.name for n in names))
        return prettyForm(*head.right(inside))


@lru_cache(maxsize=512)
def _opened(node: Expectation, names: tuple[str, ...]) -> tuple[Expr, tuple[Symbol, ...]]:
    return node.open()  # by their names, too: nodes are equal up to them


def _of_joint_normals(body: Expr, chosen: list[Any], means: dict[Expr, Expr], joint: dict[tuple[Symbol, Symbol], Expr],
                      cov: Covariance | None) -> Expr:
    """E of a body with components of multivariate normals, over normals of the same covariance."""
    body = body.xreplace(means)
    conditions = [v.xreplace(means) for v in chosen if isinstance(v, Relational | BooleanFunction)]
    named = [v for v in chosen if not isinstance(v, Relational | BooleanFunction | BooleanAtom)]
    whole = {x.args[0] for x in means}
    others = [v for v in named if v not in means and v not in whole]
    if not named:
        others = [*field.normals(Add(body, *(a for c in conditions for a in c.atoms(Expr)))), *random_variables(body)]
    given = {} if cov is None else by_pairs(cov, [v for v in others if not is_random(v)])
    return E(body, *others, *sorted({v for pair in joint for v in pair}, key=str), *conditions, cov={**given, **joint})


def E(expr: Formula, *variables: Any, cov: Covariance | None = None, symbols: Letters | None = None) -> Expr:
    """The Gaussian expectation of `expr` over `variables`, unevaluated.

    E[f] = int f(z) phi(z) dz for independent standard normals, or with the declared covariance.

    Parameters
    ----------
    expr : expression, text, or function of SymPy symbols (``lambda x: x**2``)
    variables : Symbols (or their names); a Symbol is recognised by its name. None given: every z, z1, z2, ... in expr, and every
        random variable of sympy.stats; these may be given too, and are independent of each other and of the normals, except
        the components of a MultivariateNormal. A condition may be given among them, as in sympy.stats: E(f, Eq(Y, y)) is
        E[f | Y = y], E(f, z > 0) its mean where z > 0.
    cov : {(z1, z2): rho, (z1, z1): s2}: covariances that are not those of independent standard normals;
        numbers or symbols; or the whole matrix, a row for each variable. Means are zero.
    symbols : the letters of a text besides the package's own: ``"mu, s>0"`` or ``{"mu": "real"}``

    Returns
    -------
    An `Expectation` (or `expr` itself if it is a number). ``.doit()`` is exact, ``.evalf(30)`` numeric, ``.evalf(30, budget=4)``
    within four seconds. A sum of nodes, or a number, is SymPy's own: it has its budget around it, ``with hx.budget(4): ...``.

    Raises
    ------
    BadInput : no scalar integrand, a covariance over a variable that is not bound, or a numeric one (also when numbers
        are put in later) that is not positive semi-definite.

    Guarantee
    ---------
    `.doit()` equals the average for all values that the assumptions allow. `.evalf(n)` returns n digits relative to the value,
    or refuses. An average that does not exist is refused. See docs/promise.md.

    Examples
    --------
    >>> from hermitex.symbols import z, z1, z2, rho
    >>> E(z**4, z)
    E(z**4, z)
    >>> E(z**4, z).doit()
    3
    >>> E(z1*z2, z1, z2, cov={(z1, z2): rho}).doit()
    rho
    >>> from sympy.stats import Bernoulli
    >>> E(z**2*Bernoulli("b", rho))
    rho*E(z**2, z)
    """
    if isinstance(expr, str):
        expr = hooks.parse(expr, symbols=symbols, letters=True)
    elif callable(expr) and not isinstance(expr, Basic):
        expr = hooks.formula(expr)
    body = as_erf(field.standard(_scalar(expr))).rewrite(Mod, floor)
    chosen = [v for given in variables for v in (given if isinstance(given, (tuple, list)) else (given,))]
    means, joint = joint_normals(body, *chosen)
    if means:
        return _of_joint_normals(body, chosen, means, joint, cov)
    if conditions := [v for v in chosen if isinstance(v, Relational | BooleanFunction | BooleanAtom)]:
        return hooks.conditional(body, [v for v in chosen if v not in conditions], And(*conditions), cov)
    cov = None if cov is None else by_pairs(cov, chosen or list(field.normals(body)))
    if random := [v for v in chosen if is_random(v)] if chosen else random_variables(body):
        normals = [v for v in chosen if not is_random(v)] or ([] if chosen else list(field.normals(body)))
        if cov and any(str(v) in {str(x) for x in random} for pair in cov for v in pair):
            raise BadInput("E: only normals are correlated; cov names a variable of another law")
        body, needed = apart(body)
        terms = averaged(body, random)
        drawn = {str(v) for v in normals}   # a probability that one of them enters is averaged with the rest
        split = ((Integer(1), p*b, more) if drawn & set(map(str, p.free_symbols)) else (p, b, more) for p, b, more in terms)
        value = Add(*(p*(E(b, *normals, *more, cov=cov) if (*normals, *more) else b) for p, b, more in split))
        return _among(value, (*needed, *required(random)), (*random, *normals))
    body, needed = apart(body)
    if needed:
        return _among(E(body, *chosen, cov=cov), needed, chosen or field.normals(body))
    chosen = chosen or list(field.normals(body))
    names = [v.name if isinstance(v, Symbol) else str(v) for v in chosen]
    for v, name in zip(chosen, names, strict=True):
        if not isinstance(v, Symbol) and not (isinstance(v, str) and name.isidentifier()):
            raise BadInput(f"E: the variables are symbols or their names, not {name}")
    if len(set(names)) != len(names):
        raise BadInput(f"E: a variable is bound twice in {', '.join(names)}")
    # A variable is itself where it occurs; otherwise the plain symbol of its name is meant.
    by_name = {s.name: s for s in body.free_symbols if type(s) is Symbol}
    found = [v if v in body.free_symbols else by_name.get(str(v), Symbol(str(v), real=True)) for v in chosen]
    order = sorted(range(len(names)), key=lambda i: field.natural(Symbol(names[i])))
    names, unbound = [names[i] for i in order], [found[i] for i in order]
    matrix = matrix_of(names, cov) if cov else None
    fresh = tuple(map(_letter, names))
    return bind(swapped(body, dict(zip(unbound, fresh, strict=True))), fresh, matrix, keep=True)


@lru_cache(maxsize=256)
def _letter(name: str) -> Symbol:
    """Of a variable on its way to be bound: one to a name, so that caches know what is bound a second time."""
    return Dummy(name, real=True)


def _among(value: Expr, needed: Sequence[Condition], variables: Sequence[Any]) -> Expr:
    """The value with the conditions that hold no variable that was averaged over: such a variable has no value."""
    names = {str(v) for v in variables}
    return lawful(value, [c for c in needed if names.isdisjoint(str(s) for s in c.value.free_symbols)])


def covariance_items(node: Expectation) -> dict[tuple[int, int], Expr]:
    """The entries of the covariance that differ from the identity: {(i, j): value}, i <= j."""
    cov = node.covariance
    return {(i, j): cov[i, j] for i in range(cov.rows) for j in range(i, cov.rows) if cov[i, j] != int(i == j)}


def _scalar(expr: Any) -> Expr:
    body = None if expr is None else sympify(expr, strict=True)
    if isinstance(body, Expr) and not getattr(body, "is_Matrix", False):
        return body
    if getattr(body, "is_Relational", False) or getattr(body, "is_Boolean", False):
        raise BadInput(f"E: {body} is a condition; its probability is E(Piecewise((1, {body}), (0, True)))")
    raise BadInput(f"E: the integrand is a scalar expression or a text, not {type(expr).__name__}")


def _cov_items(names: Sequence[Symbol], cov: Any, show: Any) -> list[str]:
    return [f"({names[i].name}, {names[j].name}): {show(cov[i, j])}"
            for i in range(len(names)) for j in range(i, len(names)) if cov[i, j] != int(i == j)]


def _relevel(expr: Expr) -> Expr:
    """Give every node in `expr` its lowest level, outermost first so that nothing enclosing is in the way."""
    if isinstance(expr, Expectation):
        body, fresh = expr.open()
        return expr.with_body(_relevel(body), fresh)
    if not expr.args or not expr.has(Expectation):
        return expr
    return expr.func(*(_relevel(a) for a in expr.args))


def bind(body: Expr, variables: tuple[Symbol, ...], cov: Any, *, keep: bool = False) -> Expr:
    """Bind `variables` in `body` at the lowest level that no node inside uses; drop those that do not occur.

    With `keep` they stay where a plain symbol of the body may be the name of a formula that holds them: Q, Q(kappa).
    """
    if cov is not None and cov == eye(len(variables)):
        cov = None
    free = body.free_symbols
    named = keep and any(type(s) is Symbol for s in free)
    kept = [i for i, v in enumerate(variables) if named or v in free]
    if len(kept) < len(variables):
        variables = tuple(variables[i] for i in kept)
        cov = None if cov is None else ImmutableDenseMatrix(cov.extract(kept, kept))
        if cov is not None and cov == eye(len(kept)):
            cov = None
    if not variables:
        return body
    if isinstance(variables[0], Bound) and body.has(Expectation):
        # A generic SymPy traversal rebuilds from the inside out; only here is it known what encloses what.
        fresh = tuple(Dummy(v.name, real=True) for v in variables)
        body, variables = _relevel(body.xreplace(dict(zip(variables, fresh, strict=True)))), fresh
    # Above every node inside; and below the enclosing nodes, whose reserved symbols may be free in the body.
    level = 1 + max((node.level for node in body.atoms(Expectation)), default=-1)
    outer = {v.level for v in body.free_symbols if isinstance(v, Bound) and v not in variables}
    if outer and level >= min(outer):
        level = 1 + max(outer)
    reserved = tuple(Bound(v.name, level, i) for i, v in enumerate(variables))
    if reserved != variables:
        body = swapped(body, dict(zip(variables, reserved, strict=True)))
    return _bind(body, Tuple(*reserved), *(() if cov is None else (ImmutableDenseMatrix(cov),)))


def _bind(body: Expr, bound: Tuple, *cov: ImmutableDenseMatrix) -> Expr:
    """The node itself, from what is canonical; a covariance that is the identity is not kept."""
    if cov and cov[0] == eye(len(bound)):
        cov = ()
    for matrix in cov:
        require_law(matrix)
    return Expr.__new__(Expectation, body, bound, *cov)


def _with_accuracy(node: Expectation, prec: int, options: Any) -> tuple[Any, ...]:
    """The answer of a node to SymPy's evalf: its value, and the bits of it that hold, so that noise shows no digit."""
    if node.free_symbols:
        raise KeyError("symbols without values: SymPy puts in those it was given, and asks again")
    value, bits = hooks.evaluate(node, prec)
    return (value._mpf_, None, bits, None) if value else (None,)*4


evalf_table[Expectation] = _with_accuracy
