"""Leap = max_t k_t, k_t = min{k >= 1 : C_k^{U_t} != 0}: the leap of E[Y|z], by subspaces and by coordinates.

By subspaces (rotation invariant): U_0 = 0, U_{t+1} = U_t + what C_k^{U_t}(u) = E[g He_k(P z) | P_U z = u] charges. By
coordinates: K <- K + the variables outside K of every multi-index a with c_a != 0 and least weight outside K. Sources:
Abbe, Boix-Adsera, Misiakiewicz (2023); Dandi et al. (2023).

A zero is proved by reflections, by exact integrals or by algebra; a non-zero by an exact value or an enclosure. What a
tensor charges is bounded from above by its decomposition into functions of u and from below by its values; a stage is
decided where the two meet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sympy import Add, Expr, Mul, Poly, S, Symbol, expand

from hermitex.errors import BudgetExceeded, HermitexError
from hermitex.exponents.certificate import Certificate
from hermitex.exponents.information import Found, information_exponent
from hermitex.exponents.relevant import Relevant, relevant
from hermitex.exponents.staircase import MAX_ORDER, Evidence, Staircase, staircase
from hermitex.exponents.symmetry import Symmetry, symmetries
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.invariance import unseen
from hermitex.symbolic.partial_tensors import Given, MultiIndex
from hermitex.symbolic.series.polynomials import multi_indices
from hermitex.symbolic.subspaces import Matrix, complement, contains, echelon, matrix, orthonormal, rank, span
from hermitex.symbolic.summands import split
from hermitex.symbolic.vanishing import Verdict, vanishes

_SAMPLES = ((1, 2), (-2, 3), (5, 4), (-7, 5), (1, 9), (8, 7), (-1, 3))


@dataclass(frozen=True)
class Leap:
    """The leap by subspaces with its staircase, the leap by coordinates, proofs and notes."""

    staircase: Staircase
    coordinate: int | None
    notes: tuple[str, ...] = field(default=())

    @property
    def order(self) -> int | None:
        """The rotation-invariant leap."""
        return self.staircase.leap

    @property
    def first(self) -> int | None:
        """The information exponent: the order of the first stage."""
        return self.staircase.first


def leap(g: Expr, variables: Sequence[Symbol], *, max_order: int = MAX_ORDER) -> Leap:
    """The leaps of a regression function in several variables.

    Parameters
    ----------
    g : E[Y|z], square integrable and not constant
    variables : the standard normals over which directions are written; g may not depend on some
    max_order : orders that are tried at a stage (a polynomial is followed to its degree)

    Examples
    --------
    >>> from sympy import sign
    >>> from hermitex.symbols import z1, z2
    >>> found = leap(sign(z1) + sign(z2), (z1, z2))
    >>> found.coordinate, found.order, [(s["order"], s["directions"]) for s in found.staircase.stages]
    (1, 2, [(1, Matrix([[1, 1]])), (2, Matrix([[1, -1]]))])
    """
    variables = tuple(variables)
    seen = relevant(g, variables)
    if seen.dimension == 0:
        return Leap(Staircase((), notes=("leap: E[Y|z] does not depend on z",)), None)
    if seen.dimension == 1:
        return _of_one(information_exponent(seen.inner, seen.names[0]), seen)
    last = _last_order(g, variables, max_order)
    steps = staircase(Regression(seen.inner, seen.names), seen.dimension, last, name="leap").carried(seen.outside)
    coordinate, proofs, notes = _by_coordinates(g if not _coordinate(seen.basis) else seen.inner,
                                                variables if not _coordinate(seen.basis) else seen.names, last)
    known = {(c.quantity, c.order) for c in steps.certificates}
    more = tuple(c for c in proofs if (c.quantity, c.order) not in known) if coordinate != steps.leap else ()
    steps = Staircase(steps.stages, (*steps.certificates, *more), steps.notes, steps.complete)
    return Leap(_told(steps, seen), coordinate, (*steps.notes, *notes))


def _of_one(found: Found, seen: Relevant) -> Leap:
    """One relevant direction: the information exponent is every leap, whatever the coordinates."""
    stages = () if found.order is None else ({"order": found.order, "directions": seen.outside(Matrix([[1]]))},)
    steps = Staircase(stages, found.certificates, found.notes, complete=found.order is not None)
    return Leap(steps, found.order, found.notes)


def _told(steps: Staircase, seen: Relevant) -> Staircase:
    """Say over which coordinates the proofs are written, where these are not the variables."""
    if _coordinate(seen.basis) or not steps.certificates:
        return steps
    from hermitex.symbolic.parsing import to_text

    forms = [Add(*(x*v for x, v in zip(row, seen.variables, strict=True))) for row in seen.basis.tolist()]
    words = ", ".join(f"{n} stands for {to_text(f)}" for n, f in zip(seen.names, forms, strict=True) if n != f)
    return Staircase(steps.stages, steps.certificates, (*steps.notes, f"in the certificates {words}"), steps.complete)


def _last_order(g: Expr, variables: tuple[Symbol, ...], max_order: int) -> int:
    if not g.is_polynomial(*variables):
        return max_order
    from hermitex.symbolic.series.polynomials import poly_of

    return max(int(poly_of(g, *variables).total_degree()), 1)


def _coordinate(rows: Matrix) -> bool:
    return all(sum(1 for x in row if x != 0) == 1 for row in rows.tolist())


# -- the oracle of the regression function -----------------------------------------------------------------------------
class Regression:
    """C_k^U of a regression function: the oracle of the subspace staircase, and the entries for the coordinate leap."""

    def __init__(self, g: Expr, variables: Sequence[Symbol]) -> None:
        self.g, self.variables = g, tuple(variables)
        self.whole = split(g, self.variables)
        self._given: dict[Matrix, Given] = {}
        self._group: tuple[Symmetry, ...] | None = None

    def given(self, known: Matrix) -> Given:
        """The tensors given the span of the rows `known`."""
        if known not in self._given:
            self._given[known] = Given(self.whole, orthonormal(known))
        return self._given[known]

    def tensor(self, known: Matrix, k: int) -> Evidence:
        """Whether C_k^U vanishes, and what it charges."""
        if known.has(Expectation):
            return self._by_blocks(known, k)
        given = self.given(known)
        entries = {b: self._reduced(e.value, given) for b, e in given.entries(k).items()}
        left = {b: h for b, h in entries.items() if h != 0}
        if not left:
            ways = "; ".join(dict.fromkeys(w for e in given.entries(k).values() for w in e.how.split("; ")
                                           if w != "no summand depends on it")) or "no summand charges it"
            return Evidence("zero", certificates=(Certificate.zero(self._tensor_name(known, k), k, ways),))
        return self._charged(given, k, left, known)

    def _reduced(self, h: Expr, given: Given) -> Expr:
        """h, or 0 where algebra proves that it vanishes."""
        from hermitex.symbolic.parity import identically_zero

        if h == 0 or h.is_Rational:
            return h
        inside = tuple(v for v in given.u if v in h.free_symbols)
        if inside:
            return S.Zero if identically_zero(h, inside) else h
        return S.Zero if not h.has(Expectation) and h.is_number and vanishes(h, ()).status == "zero" else h

    def _charged(self, given: Given, k: int, left: dict[MultiIndex, Expr], known: Matrix) -> Evidence:
        """The span of the fibres: what the functions of u allow, and what the values show."""
        for fixed in (False, True):
            upper, pivots = echelon(_allowed(left, given, k, nodes_are_constants=fixed))
            shown, proofs, why = self._shown(given, k, left, upper, pivots)
            if shown == upper.rows:
                return Evidence("nonzero", Matrix(upper*given.frame), proofs)
        checked, why = self._without_zeros(given, k, left, why)
        if len(checked) < len(left):
            return self._charged(given, k, checked, known) if checked else Evidence(
                "zero", certificates=(Certificate.zero(self._tensor_name(known, k), k, why),))
        if not given.u:
            try:
                rows = span(_fibres(left, given, k))
                return Evidence("nonzero", Matrix(rows*given.frame), proofs or self._some(given, left))
            except HermitexError as err:
                why = " ".join(str(err).split())
        name = self._tensor_name(known, k)
        return Evidence("undetermined", certificates=(*proofs, Certificate(name, k, "undetermined", why)),
                        note=f"what {name} charges: {why}")

    def _by_blocks(self, known: Matrix, k: int) -> Evidence:
        """A subspace known through integrals only: blocks of C_n, n >= k, k slots outside U; they prove non-zeros."""
        from hermitex.symbolic.tensors import tensor

        outside = complement(known)
        x = tuple(Symbol(f"x_{i + 1}", real=True) for i in range(known.rows))
        y = tuple(Symbol(f"y_{i + 1}", real=True) for i in range(outside.rows))
        swap = {v: Add(*(known[i, j]*a for i, a in enumerate(x)), *(outside[i, j]*a for i, a in enumerate(y)))
                for j, v in enumerate(self.variables)}
        rows: list[list[Expr]] = []
        for n in range(k, k + 3):
            form = tensor(self.g, n, self.variables).polynomial(self.variables).xreplace(swap)
            block = Poly(expand(form), *x, *y)
            slots = [Poly({m: c for m, c in block.terms() if sum(m[len(x):]) == k} or {(0,)*(len(x) + len(y)): 0},
                          *x, *y).diff(v) for v in y]
            tables = [dict(p.terms()) for p in slots]
            rows += [[S(t.get(m, 0)) for t in tables] for m in dict.fromkeys(m for t in tables for m in t)]
            found = span(matrix([r for r in rows if any(c != 0 for c in r)], len(y)))
            if found.rows == len(y):
                how = f"a block of C_{n} with {k} of its slots outside what is known, by enclosure"
                return Evidence("nonzero", outside, (Certificate(self._tensor_name(known, k), k, "nonzero", how),))
        return Evidence("undetermined", note=f"{self._tensor_name(known, k)}: the directions known are integrals "
                        "without closed form, and no block of its tensors decides it")

    def _some(self, given: Given, left: dict[MultiIndex, Expr]) -> tuple[Certificate, ...]:
        """The proof of one entry that is not zero."""
        for b, h in left.items():
            verdict = vanishes(h, given.u)
            if verdict.status == "nonzero":
                return (self._certificate(given, b, h, verdict),)
        return ()

    # -- from below
    def _shown(self, given: Given, k: int, left: dict[MultiIndex, Expr], upper: Matrix,
               pivots: tuple[int, ...]) -> tuple[int, tuple[Certificate, ...], str]:
        """How many independent fibres values prove, the proofs, and what stood in the way."""
        found: list[list[Expr]] = []
        proofs: dict[MultiIndex, Certificate] = {}
        why = "its values leave some directions open"
        for fibre in sorted(_fibre_functions(left, len(given.w), k, pivots), key=_difficulty):
            for point in _points(given.u) if any(h.free_symbols & set(given.u) for _, h in fibre) else [{}]:
                if len(found) == len(pivots):
                    break
                values = [h.xreplace(point) for _, h in fibre]
                if not _new(found, values):
                    continue
                verdicts = {b: vanishes(h, given.u) for b, h in fibre if h != 0}
                sure = {b: v for b, v in verdicts.items() if v.status == "nonzero"}
                if not sure:
                    why = next((v.how for v in verdicts.values() if v.status == "undetermined"), why)
                    continue
                row = _at_verdict(fibre, next(iter(sure.values()))) if not found else values
                try:
                    if rank(matrix([*found, row], len(pivots))) == len(found):
                        continue
                except HermitexError as err:
                    why = " ".join(str(err).split())
                    continue
                found.append(row)
                b, verdict = next(iter(sure.items()))
                proofs.setdefault(b, self._certificate(given, b, left[b], verdict))
        return len(found), tuple(proofs.values()), why

    # -- zeros that symmetry alone proves
    def _without_zeros(self, given: Given, k: int, left: dict[MultiIndex, Expr], why: str) -> tuple[dict, str]:
        """The entries that the symmetries of the target do not forbid."""
        if self._group is None:
            self._group = symmetries(self.g, self.variables)
        for s in self._group:
            moved = (given.known*s.matrix.T - given.known) if given.known.rows else Matrix.zeros(1, 1)
            if any(not x.equals(0) for x in moved):
                continue
            inside = Matrix((given.frame*s.matrix*given.frame.T).applyfunc(expand))
            diagonal = [inside[i, i] for i in range(inside.rows)]
            if Matrix.diag(*diagonal) != inside:
                continue
            kept = {b: h for b, h in left.items()
                    if s.sign*Mul(*(x**n for x, n in zip(diagonal, b, strict=True))) == 1}
            if len(kept) < len(left):
                return kept, f"symmetry: the target is {'even' if s.sign == 1 else 'odd'} under {s.how}"
        return left, why

    # -- words
    def _tensor_name(self, known: Matrix, k: int) -> str:
        return f"C_{k}" + (f" given {', '.join(self._form(row) for row in known.tolist())}" if known.rows else "")

    def _form(self, row: Sequence[Expr]) -> str:
        from hermitex.symbolic.parsing import to_text

        return to_text(Add(*(x*v for x, v in zip(row, self.variables, strict=True))))

    def _certificate(self, given: Given, b: MultiIndex, h: Expr, verdict: Verdict) -> Certificate:
        """One entry that is not zero: as a coefficient c_a where the coordinates allow it, else at the point it was found."""
        plain = _coordinate(given.frame) and _coordinate(given.known)
        if plain:
            over_w = [_place(row) for row in given.frame.tolist()]
            a = [0]*len(self.variables)
            for i, n in zip(over_w, b, strict=True):
                a[i] = n
            block = _block(h, given.u) if verdict.at else (tuple([0]*len(given.u)), verdict.value)
            if block is not None:
                for row, n in zip(given.known.tolist(), block[0], strict=True):
                    a[_place(row)] = n
                how = verdict.how if not verdict.at else "exact value"
                return Certificate(f"c_({','.join(map(str, a))})", tuple(a), "nonzero", how, block[1],
                                   verdict.enclosure if not verdict.at else None)
        what = ", ".join(f"He_{n}({self._form(row)})" for row, n in zip(given.frame.tolist(), b, strict=True) if n)
        there = {v: x for v, x in verdict.at}
        where = ", ".join(f"{self._form(row)} = {there[v]}" for v, row in zip(given.u, given.known.tolist(), strict=True)
                          if v in there)
        name = f"c[{what}{' | ' + where if where else ''}]"
        return Certificate(name, b, "nonzero", verdict.how, verdict.value, verdict.enclosure)


def _place(row: Sequence[Expr]) -> int:
    return next(i for i, x in enumerate(row) if x != 0)


def _block(h: Expr, u: tuple[Symbol, ...]) -> tuple[MultiIndex, Expr] | None:
    """(a, E[h He_a(u)]) for the first small a whose exact value is not zero, or None."""
    from hermitex.symbolic.budget import budget
    from hermitex.symbolic.gaussian import E
    from hermitex.symbolic.hermite import He
    from hermitex.symbolic.integrals import closed_form
    from hermitex.symbolic.zero import decide

    if h.has(Expectation):
        return None
    for n in range(3):
        for a in multi_indices(len(u), n):
            try:
                with budget(2):
                    value = expand(closed_form(E(h*He(a, u), *u)))
                    if value != 0 and decide(value).status == "nonzero":
                        return a, value
            except (BudgetExceeded, HermitexError):
                checkpoint("looking for a coefficient")
                return None
    return None


# -- fibres ------------------------------------------------------------------------------------------------------------
def _up(b: MultiIndex, i: int) -> MultiIndex:
    return (*b[:i], b[i] + 1, *b[i + 1:])


def _fibres(entries: dict[MultiIndex, Expr], given: Given, k: int) -> Matrix:
    """The fibres of a constant tensor as rows."""
    q = len(given.w)
    rows = [[entries.get(_up(b, i), S.Zero) for i in range(q)] for b in multi_indices(q, k - 1)]
    return matrix([row for row in rows if any(x != 0 for x in row)], q)


def _fibre_functions(entries: dict[MultiIndex, Expr], q: int, k: int,
                     pivots: tuple[int, ...]) -> Iterator[list[tuple[MultiIndex, Expr]]]:
    """Each fibre at the pivot columns: its coordinates in the basis of what is allowed."""
    for b in multi_indices(q, k - 1):
        fibre = [(_up(b, i), entries.get(_up(b, i), S.Zero)) for i in pivots]
        if any(h != 0 for _, h in fibre):
            yield fibre


def _difficulty(fibre: list[tuple[MultiIndex, Expr]]) -> tuple[int, int]:
    return sum(h.has(Expectation) for _, h in fibre), sum(h.count_ops() + 5*(h != 0) for _, h in fibre)


def _allowed(entries: dict[MultiIndex, Expr], given: Given, k: int, *, nodes_are_constants: bool) -> Matrix:
    """Rows that span every fibre for every u: c_b(u) = sum_l phi_l(u) x_{b,l}, a row for each function phi_l."""
    q = len(given.w)
    parts = {b: _functions(h, given.u, nodes_are_constants) for b, h in entries.items()}
    rows: dict[tuple[Expr, ...], None] = {}
    for b in multi_indices(q, k - 1):
        mine = [parts.get(_up(b, i), {}) for i in range(q)]
        for phi in dict.fromkeys(f for p in mine for f in p):
            rows[tuple(p.get(phi, S.Zero) for p in mine)] = None
    return matrix([list(r) for r in rows if any(x != 0 for x in r)], q)


def _functions(h: Expr, u: tuple[Symbol, ...], nodes_are_constants: bool) -> dict[Expr, Expr]:
    """h = sum of constant * function of u: {function: constant}."""
    def moves(e: Expr) -> bool:
        return bool(e.free_symbols & set(u)) or (not nodes_are_constants and e.has(Expectation))

    found: dict[Expr, Expr] = {}
    grown = expand(h) if h.count_ops() < 400 else h
    for term in Add.make_args(grown):
        factors = Mul.make_args(term)
        phi = Mul(*(f for f in factors if moves(f)))
        found[phi] = found.get(phi, S.Zero) + Mul(*(f for f in factors if not moves(f)))
    return {phi: c for phi, c in found.items() if c != 0}


def _points(u: tuple[Symbol, ...]) -> Iterator[dict[Symbol, Expr]]:
    for k in range(5):
        yield {v: S(_SAMPLES[(i + k) % len(_SAMPLES)][0])/_SAMPLES[(i + k) % len(_SAMPLES)][1] for i, v in enumerate(u)}


def _at_verdict(fibre: list[tuple[MultiIndex, Expr]], verdict: Verdict) -> list[Expr]:
    """The fibre at the point where one of its entries was proved not to vanish."""
    return [h.xreplace(dict(verdict.at)) for _, h in fibre]


def _new(found: list[list[Expr]], values: list[Expr]) -> bool:
    """Is this row plainly independent of those found, by its digits? A row that is not is not worth a proof."""
    if not found or any(all(row[i] == 0 for row in found) and x != 0 for i, x in enumerate(values)):
        return True
    from mpmath import mp, mpf

    from hermitex.symbolic.precise import evaluate

    with mp.workdps(20):
        try:
            rows = [[evaluate(x, 15) for x in row] for row in (*found, values)]
        except (HermitexError, ArithmeticError, ValueError, TypeError):
            return True
        size = 0
        for c in range(len(values)):
            best = max(rows, key=lambda row: abs(row[c]), default=None)
            if best is None or abs(best[c]) < mpf(10)**-10:
                continue
            rows.remove(best)
            rows = [[a - row[c]/best[c]*b for a, b in zip(row, best, strict=True)] for row in rows]
            size += 1
        return size == len(found) + 1


# -- coordinates -------------------------------------------------------------------------------------------------------
def _by_coordinates(g: Expr, variables: Sequence[Symbol], last: int) -> tuple[int | None, tuple[Certificate, ...], tuple[str, ...]]:
    """The coordinate leap: greedy is optimal, since the closure at a threshold grows with it."""
    leap_order = 0
    known: list[int] = []
    proofs: list[Certificate] = []
    try:
        wanted = _relevant_coordinates(g, variables)
        oracle = Regression(g, variables)
    except (BudgetExceeded, HermitexError) as err:
        return None, (), (f"coordinate leap: undetermined, {' '.join(str(err).split())}",)
    while set(known) < wanted:
        try:
            order, fresh, found = _coordinate_step(oracle, sorted(known), last)
        except (BudgetExceeded, HermitexError) as err:
            return None, tuple(proofs), (f"coordinate leap: undetermined, {' '.join(str(err).split())}",)
        if order is None:
            return None, tuple(proofs), (f"coordinate leap: undetermined, {found}",)
        leap_order = max(leap_order, order)
        known += fresh
        proofs += found
    return leap_order, tuple(proofs), ()


def _relevant_coordinates(g: Expr, variables: Sequence[Symbol]) -> set[int]:
    null, r = unseen(g, variables), len(variables)
    return {i for i in range(r) if not contains(null, Matrix(1, r, [int(i == j) for j in range(r)]))}


def _coordinate_step(oracle: Regression, known: list[int], last: int) -> tuple:
    """(k, the variables charged at the least order k, proofs), or (None, [], why)."""
    r = len(oracle.variables)
    given = oracle.given(matrix([[S(int(i == j)) for j in range(r)] for i in known], r))
    places = [_place(row) for row in given.frame.tolist()]
    for k in range(1, last + 1):
        checkpoint(f"coordinate leap, order {k}")
        fresh: list[int] = []
        proofs: list[Certificate] = []
        open_: list[tuple[MultiIndex, str]] = []
        left = {b: h for b, e in given.entries(k).items() if (h := oracle._reduced(e.value, given)) != 0}
        for b, h in sorted(left.items(), key=lambda item: (item[1].has(Expectation), item[1].count_ops())):
            inside = [places[i] for i, n in enumerate(b) if n]
            if set(inside) <= set(fresh):
                continue
            verdict = vanishes(h, given.u)
            if verdict.status == "nonzero":
                fresh += [i for i in inside if i not in fresh]
                proofs.append(oracle._certificate(given, b, h, verdict))
            elif verdict.status == "undetermined":
                open_.append((b, verdict.how))
        kept, _ = oracle._without_zeros(given, k, dict.fromkeys((b for b, _ in open_), S.One), "")
        for b, how in open_:
            if b in kept and not {places[i] for i, n in enumerate(b) if n} <= set(fresh):
                return None, [], how
        if fresh:
            return k, fresh, proofs
    return None, [], f"all coefficients of orders 1 to {last} are zero"
