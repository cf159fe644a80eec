"""hx.compile(expr) -> Kernel: a formula with expectations as a fast function of arrays.

A kernel is its source: it pickles from it (no SymPy in the worker), shows it, and carries the quadrature error reached.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from sympy import Expr, Function, Rational, Symbol

from hermitex.errors import NO_NUMBER, BadInput, NotConverged, UnknownName, brief
from hermitex.hints import Formula, Letters
from hermitex.kernels.adaptive import Quadratures, require_room
from hermitex.kernels.array_sums import Arrays
from hermitex.kernels.axis_records import contracted
from hermitex.kernels.cancellation import sums_may_cancel
from hermitex.kernels.extended_precision import GOLDEN, load_extended, widened
from hermitex.kernels.lowering import lower
from hermitex.kernels.parameter_conditions import LAW, violated_conditions
from hermitex.kernels.sharp_places import find_marks
from hermitex.kernels.sign_conditions import signs
from hermitex.kernels.source import Writer, load
from hermitex.show.display import Shown, latex, letter
from hermitex.solvers.solve_limits import require_tolerance
from hermitex.solvers.sweep_grid import real_array
from hermitex.symbolic.breaks.switches import SWITCHES
from hermitex.symbolic.divergence import needed_far_out
from hermitex.symbolic.existence_check import may_have_pole, require_existence
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.indexed_sums import arrays, unsummed
from hermitex.symbolic.law_constraints import apart

_CHUNK = 2_000_000  # numbers in one array, about: 16 MB
_LOOKED_AT = 50  # points where a value is 0; each costs a second evaluation


@dataclass(frozen=True, eq=False)
class Kernel(Shown):
    """A compiled formula: call it with numbers or arrays by name; arguments broadcast.

    Attributes: `source` the generated NumPy text, `parameters` the names it takes, `error` the largest relative error of a value
    of the last call: inf if a value may have no digit (an average that all but cancels), 1 for a 0 that may be a value too
    small for doubles; `nodes` the number of quadrature nodes by variable; `integrated` the formula by quadrature alone, which takes
    over where a closed form loses the digits.

    Guarantee: each value is accurate to the tolerance, relative to itself, or the call raises NotConverged. `error` is the
    estimate of the last call. See docs/promise.md.

    >>> kernel = compile("E(tanh(kappa + z), z)")
    >>> kernel.parameters, kernel(kappa=[0.5, 1.0]).round(4)
    (('kappa',), array([0.2955, 0.5504]))
    """

    source: str
    parameters: tuple[str, ...]
    quadratures: Quadratures
    tolerance: float = 1e-12
    formula: str = ""
    integrated: Kernel | None = None  # without closed forms, for the points where theirs cancel
    arrays: Arrays | None = None  # that are summed over
    cancels: bool = False  # whether sums in it may lose digits
    nested: tuple[tuple[str, ...], ...] = ()  # the axes of averages over three variables and more
    _loaded: dict[str, Any] = field(default_factory=dict, repr=False)
    _last: dict[str, float] = field(default_factory=dict, repr=False)
    _untold: list[Callable[[], float]] = field(default_factory=list, repr=False)  # errors of the last call, not yet asked for

    @property
    def error(self) -> float:
        """Relative error of the values of the last call, by quadrature and by rounding (0 for what is exact)."""
        while self._untold:  # computed on first use, as it takes some time
            self._last["error"] = max(self._last["error"], self._untold.pop()())
        return self._last.get("error", np.nan if self.quadratures.axes else 0.0)

    @property
    def nodes(self) -> dict[str, int]:
        """Quadrature nodes by variable."""
        return self.quadratures.nodes

    def __call__(self, /, *args: Any, **numbers: Any) -> Any:
        """The value at the given numbers; positional arguments follow `parameters`.

        Raises BadInput for a missing or unknown name; NotConverged where the tolerance is not reached.
        """
        arrays, values = self._arguments(args, numbers)
        try:
            shape = np.broadcast_shapes(*(v.shape for v in values.values()))
        except ValueError:
            shapes = ", ".join(f"{n} {v.shape}" for n, v in values.items() if v.ndim)
            raise BadInput(f"kernel: the arguments do not broadcast: {shapes}") from None
        flat = {n: (np.broadcast_to(v, shape).ravel() if v.ndim else v) for n, v in values.items()}
        points = int(np.prod(shape))
        nodes = int(np.prod([len(r) for r in self.quadratures.rules.values()] or [1]))
        size = max(1, _CHUNK // nodes)
        parts: list[np.ndarray] = []
        self._last["error"] = 0.0
        self._untold.clear()
        for start in range(0, points, size):
            chunk = {n: (v[start:start + size] if v.ndim else v) for n, v in flat.items()}
            parts.append(np.broadcast_to(self._evaluate(chunk, arrays)[0], (min(size, points - start),)))
        result = np.concatenate(parts).reshape(shape) if parts else np.empty(shape)
        return result if shape else float(result)

    def _arguments(self, args: tuple, numbers: dict[str, Any]) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        if len(args) > len(self.parameters):
            raise BadInput(f"kernel: {len(args)} arguments given, it takes {', '.join(self.parameters) or 'none'}")
        given = {**dict(zip(self.parameters, args, strict=False)), **numbers}
        for name in given:
            if name not in self.parameters:
                raise UnknownName(name, self.parameters, "parameter of the kernel")
        missing = [n for n in self.parameters if n not in given]
        if missing:
            raise BadInput(f"kernel: {', '.join(missing)} has no value; it takes {', '.join(self.parameters)}")
        arrays, rest = ({}, given) if self.arrays is None else self.arrays.read(given, self.quadratures.ndim, "kernel")
        return arrays, {n: _number(n, v) for n, v in rest.items()}

    def _evaluate(self, values: dict[str, np.ndarray], arrays: dict[str, np.ndarray], *, alone: bool = True
                  ) -> tuple[np.ndarray, Callable[[], np.ndarray]]:
        """The values at one array of points, and what gives the relative error of each.

        Not `alone` where it takes over from a closed form, which says of 0 what it knows.
        """
        quad = self.quadratures
        s = {n: v.reshape(-1, *[1] * (quad.ndim - 1)) if v.ndim else np.float64(v) for n, v in values.items()}
        s |= arrays
        quad.forget()
        points = max((len(v) for v in values.values() if v.ndim), default=1)
        out: list[Any] = []

        def run(average: Any) -> None:
            require_room(self.nested, quad.arrays(), points)
            out.append(self._run(s, quad.arrays(), average))

        with np.errstate(all="ignore"):
            for _ in range(60):
                out.clear()
                if quad.examine(run, self.tolerance).all() and quad.verify(run, self.tolerance).all():
                    break
                if points > 1 and quad.largest > _CHUNK:  # the rules have become too fine for so many at once
                    halves = ({n: (v[part] if v.ndim else v) for n, v in values.items()}
                              for part in (slice(points // 2), slice(points // 2, None)))
                    found = [self._evaluate(half, arrays, alone=alone) for half in halves]
                    return np.concatenate([v for v, _ in found]), partial(_joined, [told for _, told in found])
        value = np.asarray(out[0]["value"])
        value = np.broadcast_to(value, np.broadcast_shapes(value.shape, *(np.shape(s[n]) for n in values))).ravel()
        if why := next(filter(None, violated_conditions(out[0], value.shape)), ""):
            raise BadInput(f"kernel: {why}")
        reached = np.broadcast_to(quad.error, value.shape)  # of the averages, relative to E|F|: that is what can be asked for
        rules = quad.arrays()
        error: Callable[[], np.ndarray] = partial(self._error_of, value, s, rules, reached)
        if self.integrated is not None:
            rounding = self._rounding(value, s, rules) if self.cancels else np.zeros(value.shape)
            both = np.maximum(self._relative(value, s, rules, reached), rounding)
            value, both, reached = self._uncancelled(value, both, np.maximum(reached, rounding), values, arrays)
            error = partial(np.asarray, both)
        hidden = (value == 0) & (np.broadcast_to(quad.unseen, value.shape) if quad.axes else True)
        if alone and quad.axes and np.any(hidden) and not quad.far:
            value, error, reached = self._far_out(value, error, reached, hidden, values, arrays)
            hidden = hidden & (value == 0)
        if alone and np.any(hidden):
            given = {n: np.broadcast_to(v, value.shape)[hidden] for n, v in values.items()}
            self._untold.append(partial(self._hidden, int(np.sum(hidden)), {n: v[:_LOOKED_AT] for n, v in given.items()}))
        if alone:
            self._untold.append(lambda: float(np.max(error(), initial=0.0)))
        self._verdict(value, reached, values)
        return value, error

    def _error_of(self, value: np.ndarray, s: dict[str, Any], rules: Mapping[str, Any], reached: np.ndarray) -> np.ndarray:
        """The relative error of each value, by quadrature and by rounding."""
        found = self._relative(value, s, rules, reached)
        return np.maximum(found, self._rounding(value, s, rules))

    def _relative(self, value: np.ndarray, s: dict[str, Any], rules: Mapping[str, Any], reached: np.ndarray) -> np.ndarray:
        """The relative error of each value that averages with an error relative to E|F| leave: they are moved, each by a part.

        The parts differ, so that no difference of two of them is constant; the rest of one is at most all of both.
        """
        if not self.quadratures.axes:
            return np.zeros(value.shape)
        moved, off_by = 0, 2.0**-40  # many times what rounding is, and so little that everything moves in proportion

        def average(values: np.ndarray, weights: np.ndarray, axis: int, floor: float = 1e-300) -> np.ndarray:
            nonlocal moved
            size = contracted(np.abs(values), weights, axis)
            part, moved = off_by*(1 + moved*GOLDEN % 1), moved + 1
            return contracted(values, weights, axis) + part*np.where(size > 0, np.maximum(size, floor), 0.0)

        safety = 4  # several averages may be off in other proportions than they were moved; and rounding is seen once, by chance
        with np.errstate(all="ignore"):
            off = np.ravel(self._run(s, rules, average)["value"])
            return _of_value(value, off, reached/off_by*safety)

    def _uncancelled(self, value: np.ndarray, error: np.ndarray, reached: np.ndarray, values: dict[str, np.ndarray],
                     arrays: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Value, its error and that of the averages, quadrature in place of closed forms that lose too many digits."""
        some = np.flatnonzero((reached > self.tolerance) | (value == 0) | ~np.isfinite(value))
        if not some.size or self.integrated is None:
            return value, error, reached
        value, error, reached = value.copy(), error.copy(), reached.copy()
        few = {n: v[some] if v.ndim else v for n, v in values.items()}
        value[some], told = self.integrated._evaluate(few, arrays, alone=False)
        error[some] = told()
        reached[some] = self.integrated.quadratures.error
        # nothing is left of the closed form, and what there is may be too small for the rule
        error[some] = np.where(value[some] == 0, 1.0, error[some])
        return value, error, reached

    def _far_out(self, value: np.ndarray, error: Callable[[], np.ndarray], reached: np.ndarray, hidden: np.ndarray,
                 values: dict[str, np.ndarray], arrays: dict[str, np.ndarray]
                 ) -> tuple[np.ndarray, Callable[[], np.ndarray], np.ndarray]:
        """The same, the values that are 0 at all nodes within the window from nodes out to where exp(-x^2/2) underflows."""
        far = replace(self, quadratures=self.quadratures.of(hidden).farther(), _loaded={}, _last={}, _untold=[])
        try:
            found, told = far._evaluate({n: v[hidden] if v.ndim else v for n, v in values.items()}, arrays, alone=False)
        except NotConverged:  # nothing is known of them, which their error says
            return value, error, reached
        value, reached = value.copy(), reached.copy()
        value[hidden] = found
        reached[hidden] = far.quadratures.error

        def both() -> np.ndarray:
            errors = np.array(np.broadcast_to(error(), value.shape))
            errors[hidden] = told()
            return errors

        return value, both, reached

    def _rounding(self, value: np.ndarray, s: dict[str, Any], rules: Mapping[str, Any]) -> np.ndarray:
        """The relative error of each value that rounding makes, by its evaluation in extended precision."""
        if "extended" not in self._loaded:
            self._loaded["extended"] = load_extended(self.source)
        with np.errstate(all="ignore"):
            off = np.ravel(self._loaded["extended"]["kernel"](widened(s), widened(rules))["value"])
            return np.where(off == value, 0.0, np.maximum(_of_value(value, off, 2.0), float(np.finfo(float).eps)))

    def _hidden(self, count: int, values: Mapping[str, np.ndarray]) -> float:
        """1 if a value of 0 at one of so many points may be one that is too small for doubles, 0 if the formula is 0 everywhere."""
        from hermitex.symbolic.parsing import parse

        if self.arrays is not None:
            return 1.0
        try:
            formula = parse(self.formula, symbols=dict.fromkeys(self.parameters, "real"))
        except BadInput:  # a proximal operator has no text that is read
            return 1.0
        if count > _LOOKED_AT:
            return float(bool(formula.atoms(Function, Expectation) - formula.atoms(*SWITCHES)))
        given = [(s, values[s.name]) for s in formula.free_symbols]
        at = (formula.xreplace({s: Rational(float(v[k])) for s, v in given}) for k in range(count))
        return float(any(e != 0 and e.doit() != 0 for e in at))

    def _verdict(self, value: np.ndarray, error: np.ndarray, values: dict[str, np.ndarray]) -> None:
        """Raise NotConverged at the first point that has no value, or not the digits asked for."""
        missing = ~np.isfinite(value) & (bool(self.quadratures.axes) | ~(error <= self.tolerance))
        short = ~(error <= max(self.tolerance, 1e-13) * 100)
        bad = np.flatnonzero(missing if missing.any() else short)
        if not bad.size:
            return
        at = ", ".join(f"{n} = {np.broadcast_to(v, value.shape)[bad[0]]:g}" for n, v in values.items())
        at = f" at {at}" if at else ""
        if missing.any():
            raise NotConverged(value, f"kernel: an expectation in {self.formula} has no finite value{at}; it seems to diverge, "
                               "or its parts overflow")
        raise NotConverged(value, f"kernel: the quadrature reached {error[bad[0]]:.1e}{at} and {self.tolerance:.0e} is required; "
                           "the integrand may diverge, or have a kink that was not found. Try hx.compile(expr, tolerance=...)")

    def _run(self, s: dict, quad: Mapping[str, Any], average: Any) -> dict[str, Any]:
        if "module" not in self._loaded:
            self._loaded["module"] = load(self.source)
        module = self._loaded["module"]
        module["average"] = average
        return module["kernel"](s, quad)

    def __getstate__(self) -> dict[str, Any]:
        self.error  # noqa: B018 - what is not yet told is told
        return {**self.__dict__, "_loaded": {}}

    def __repr__(self) -> str:
        poor = self.error > 100*max(self.tolerance, 1e-13)  # nan before the first call
        said = f"; one of its last values has a relative error of {self.error:.0e}, evalf(15) has more digits" if poor else ""
        return f"Kernel({', '.join(self.parameters)}) -> {self.formula}{said}"

    def latex(self) -> str:
        """(parameters) -> formula; the kernel keeps its formula as a text, which is read again."""
        from hermitex.symbolic.parsing import parse

        names = ", ".join(letter(n) for n in self.parameters)
        return rf"({names}) \mapsto {latex(parse(self.formula, symbols=dict.fromkeys(self.parameters, 'real')))}"

    def to_dict(self) -> dict[str, Any]:
        """Source, parameters, nodes and the error reached."""
        return {"formula": self.formula, "parameters": list(self.parameters), "nodes": self.nodes, "error": float(self.error),
                "source": self.source}


def _joined(parts: Sequence[Callable[[], np.ndarray]]) -> np.ndarray:
    return np.concatenate([part() for part in parts])


def _of_value(value: np.ndarray, off: np.ndarray, times: Any) -> np.ndarray:
    """|off - value| `times` a factor, relative to `value`: 1 if the value is 0, inf if it has no digit left."""
    gap = np.abs(np.broadcast_to(off, value.shape) - value)*times/np.abs(value)
    gap = np.where(gap < 1, gap/(1 - gap), np.inf)
    return np.where(np.equal(off, value) & np.isfinite(value), 0.0, np.where(value == 0, 1.0, gap))


def _number(name: str, value: Any) -> np.ndarray:
    try:
        number = real_array(value)
    except NO_NUMBER:
        raise BadInput(f"kernel: {name} = {brief(value)} is not a real number or an array of them") from None
    if np.ma.is_masked(value):
        raise BadInput(f"kernel: {name} is masked in places; give {name}.compressed(), the values that count")
    if np.isnan(number).any():
        raise BadInput(f"kernel: {name} holds nan")
    return number


def compile(expr: Formula, *parameters: str | Symbol, tolerance: float = 1e-12, symbols: Letters | None = None) -> Kernel:
    """Compile a formula to a Kernel.

    Parameters
    ----------
    expr : expression or text, with E(...) nodes
    parameters : the order of positional arguments (default: the free symbols by name)
    tolerance : relative to E|F| for every expectation; it is verified at each call
    symbols : further letters of a text, besides the usual ones of the field, {"w": "real"}

    Guarantee
    ---------
    Each value of the kernel is accurate to `tolerance`, relative to itself, or the call raises NotConverged. Features that are
    narrower than a millionth of the integration range and do not show in the formula are not promised. See docs/promise.md.

    Examples
    --------
    >>> from hermitex.symbolic.gaussian import E
    >>> from hermitex.symbols import z, kappa
    >>> from sympy import tanh
    >>> kernel = compile(E(z*tanh(kappa*z), z))
    >>> round(kernel(kappa=1.0), 12)
    0.605705509602
    """
    from hermitex.symbolic.parsing import expression, parse_with_letters

    require_tolerance(tolerance)
    given: Expr = parse_with_letters(expr, symbols) if isinstance(expr, str) else expression(expr)
    formula, needed = apart(given)
    if loose := unsummed(formula):
        raise BadInput(f"compile: {loose[0]} occurs outside of every sum over its index")
    arrays(formula)  # one name is one array
    for node in formula.atoms(Expectation):
        # (a - cos z)/z^2 has an average at a = 1; that over a variable beside a pole may hide it
        if not node.free_symbols or (len(node.bound) > 1 and may_have_pole(node.body, node.bound)):
            require_existence(node)
    free = sorted(given.free_symbols, key=lambda s: s.name)
    names = [str(p) for p in parameters] or [s.name for s in free]
    unknown = [s.name for s in free if s.name not in names]
    if unknown:
        raise BadInput(f"compile: {', '.join(unknown)} occurs in the formula but not among the parameters {', '.join(names)}")
    needed = (*needed, *needed_far_out(formula))
    conditions = {**{c.key: c.value for c in needed}, **signs((s for s in free if s not in arrays(formula)), [formula])}
    return _compiled(formula, names, tolerance, {LAW + k: v for k, v in conditions.items()}, exact=True)


def _compiled(formula: Expr, names: list[str], tolerance: float, laws: dict[str, Expr], *, exact: bool) -> Kernel:
    lowered = lower([formula, *laws.values()], taken=names, exact=exact)
    places = find_marks(lowered)
    writer = Writer(lowered, set().union(*(e.free_symbols for e in (formula, *laws.values()))) | set(lowered.entries), places)
    results = dict(zip(("value", *laws), lowered.outputs, strict=True))
    writer.function("kernel", lowered.needed(results.values()), results, doc=str(formula)[:200])
    rules = Quadratures(lowered.axes, {a: len(m.kinks) for a, m in places.items()})
    rules = rules if exact else rules.finer()
    other = _compiled(formula, names, tolerance, laws, exact=False) if lowered.closed or lowered.divided else None
    return Kernel(writer.source(), tuple(names), rules, tolerance, str(formula), other, lowered.arrays(), sums_may_cancel(lowered),
                  lowered.nested)
