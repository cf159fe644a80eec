# ruff: noqa: B905 - of equal length throughout, and a line of an exported file has room for less
"""x = f(x) block by block: Newton's method with the exact Jacobian; then one step on finer nodes, which gives the error."""

import time
from collections import namedtuple

import numpy as np

from hermitex.systems.standalone.averaging import Axis

EVERYWHERE = (-np.inf, np.inf)
SECONDS = time.process_time
Block = namedtuple("Block", "kind torn members", defaults=[()])
Equations = namedtuple("Equations", "functions parameters unknowns blocks implicit signs axes ends start arrays",
                       defaults=[(), (), {}, (), {}, {}, ()])


class NotSolved(ArithmeticError):
    """Some points did not converge; `.values` holds the last state, `.converged` says which points are good."""


def nothing(*given):
    """A function that is not needed, as it returns nothing."""
    return {}


def inside(x, lo, hi):
    """The coordinate of x on the whole line: a logarithm of its distance to the ends of its interval."""
    below, above = (np.log(np.where(np.isfinite(gap), gap, 1.0)) for gap in (x - lo, hi - x))
    return np.where(np.isfinite(lo) | np.isfinite(hi), below - above, x)


def outside(y, lo, hi):
    """x of its coordinate, and dx/dy."""
    e, near = np.exp(np.clip(np.where(lo > -np.inf, y, -y), -700, 700)), np.exp(-np.abs(y))
    part, kinds = (hi - lo)*near/(1 + near), [np.isfinite(lo + hi), lo > -np.inf, hi < np.inf]
    x = np.select(kinds, [np.where(y < 0, lo + part, hi - part), lo + e, hi - e], y)
    return x, np.select(kinds, [part/(1 + near), e, e], 1.0)


def solved(A, b, singular_too=True):
    """A^-1 b at every point, (n, points); where A is singular of the least norm, or nan."""
    b, scale = b.T[..., None].astype(float), np.max(np.abs(A), 2, keepdims=True)
    finite = np.isfinite(A).all((1, 2), keepdims=True)
    scale = np.where(finite & (scale > 0), scale, 1.0)
    A, b = np.where(finite, A/scale, np.eye(len(A[0]))), np.where(finite, b/scale, np.nan)
    singular = ~(np.linalg.cond(A) < 1e14)[:, None, None]
    x = np.linalg.solve(np.where(singular, np.eye(len(A[0])), A), b)
    least = np.linalg.pinv(A, rcond=1e-14) @ np.nan_to_num(b) if singular.any() and singular_too else np.nan
    return np.where(singular, least, x)[..., 0].T


class Chunk:
    """Some points that are solved together."""

    def __init__(self, code, numbers, guess, at, many, until):
        self.code, self.points, self.until, self.why = code, len(at), until, np.full(len(at), "", dtype=object)
        numbers, self.guess = ({n: v[at] if v.shape == (many,) and n not in {e[1] for e in code.arrays} else v
                                for n, v in given.items()} for given in (numbers, guess))
        self.ndim = 1 + max([len(code.axes), *(p for e in code.arrays for p in e[2])])
        self.numbers = {n: self.column(numbers[n]) if numbers[n].ndim else numbers[n] for n in code.parameters}
        self.numbers |= lay_out(code, numbers, self.ndim)  # if arrays
        self.axes = []
        self.axes = [Axis(*a, place, self.ndim) for place, a in enumerate(code.axes, 1) if a[1] != "summed"]  # if axes

    def row(self, out, names, label=""):
        """Some entries of what a function returned, 0 where it returned none, (names, points)."""
        found = [np.broadcast_to(np.ravel(out.get(label + n, 0.0)), self.points) for n in names]
        return np.array(found).reshape(-1, self.points)

    def column(self, v):
        """A vector over the points as an array with every axis."""
        return np.reshape(np.broadcast_to(np.ravel(v), self.points), (-1,) + (1,)*(self.ndim - 1))

    def put(self, s, names, x):
        """A state with other unknowns."""
        return s | {u: self.column(v) for u, v in zip(names, x)}

    def begin(self, other=False, real=float):
        """The numbers with what no unknown enters, and the nodes: finer ones if `other`."""
        s = {n: np.asarray(v, real)[()] for n, v in self.numbers.items()}
        quad = {a.name: a.rule(other, real) for a in self.axes}
        quad[""] = {a.name: a.size() for a in self.axes}  # if arrays
        return s | self.code.functions.get("tables", nothing)(s, quad), quad

    def ends(self, names):
        """The lower and the upper ends of the intervals of some unknowns, (names, 1) each."""
        return np.array([self.code.ends.get(u, EVERYWHERE) for u in names]).reshape(-1, 2).T[..., None]

    def explicit(self, names):
        """Are the equations of some unknowns x = rhs, (names, 1)? Else they are rhs = 0."""
        return np.array([[u not in self.code.implicit] for u in names])

    def first(self, names):
        """The starts of unknowns: as given, else inside of their intervals."""
        lo, hi = self.ends(names)
        middle = np.select([np.isfinite(lo + hi), lo > -np.inf, hi < np.inf], [(lo + hi)/2, lo + 1, hi - 1], 0.0)
        start = np.array([np.broadcast_to(self.guess.get(u, np.nan), self.points) for u in names])
        return np.where((start > lo) & (start < hi), start, middle)


class Solver(Chunk):
    """A solution of the equations at every point of a chunk."""

    def solve(self, tolerance, damping):
        """(values, error, stability) at every point, on finer nodes until the error is below the tolerance."""
        names, renew = self.code.unknowns, self.code.functions.get("follow", nothing)
        x, (lo, hi), settled, level, good, error = self.first(names), self.ends(names), True, 0, True, np.full(self.points, np.inf)
        if damping is not None:  # the map itself
            renew(self, x, level)
            s, self.quad = self.begin()
            x, settled = self.iterated(None, s, names, x, damping, 20000, tolerance, 1e-25)
        begin = x
        renew(self, x, level)
        while level == 0 or (level < 5 and np.any(good & (error > tolerance)) and renew(self, x, level)):
            for _ in range(3):  # nodes that follow the state
                s, self.quad = self.begin()
                good, self.s = self.solve_blocks(self.put(s, names, x))
                x = np.where(good, self.row(self.s, names), x)
                if not renew(self, x, level):
                    break
            new, error = self.verified(self.s)
            error, level = np.where(good & settled, error, np.inf), level + 1
        x = self.row(new, names)
        other = (np.abs(x - begin) > 1e-5*np.maximum(np.abs(begin), 1e-6)).any(0) & (damping is not None)
        beyond = ((x < lo) | (x > hi)).any(0)
        error, why = np.where(other | beyond, np.inf, error), np.where(beyond, "the solution lies outside of its domain", self.why)
        broken = violated({n: new.pop(n) for n in list(new) if n.startswith("law [")}, why)  # if late
        error, why = np.where(broken == "", error, np.inf), np.where(broken == "", why, broken)  # if late
        self.why = np.where((why == "") & ~(error <= tolerance), [f"its error is {e:.1e}" for e in error], why)
        return new, error, self.stability()

    def solve_blocks(self, s):
        """Block after block from a state; which points are solved, and their state."""
        good = np.ones(self.points, dtype=bool)
        for k, block in enumerate(self.code.blocks):
            if block.kind == "nonlinear":  # if nonlinear
                x, done = self.nonlinear(k, s)
                self.why = np.where(done, self.why, f"the residual of {', '.join(block.torn)} stayed above the tolerance")
                good, s = good & done, self.put(s, block.torn, x)
            for _ in range(2):
                s = self.put(s, *self.moved(k, s, self.quad)[:2])
            done = np.isfinite(self.row(s, block.torn + block.members)).all(0)
            good, self.why = good & done, np.where(good & ~done, f"{block.torn[0]} is not finite", self.why)
        return good, s

    def linearised(self, k, s, quad, full=False):
        """Unknowns of a block, its members last, their values, F = rhs - x, or what is to vanish, and its Jacobian.

        The members are what their formulas say, or if `full` what they are in s.
        """
        block = self.code.blocks[k]
        names, linear = block.torn + block.members, block.kind == "linear"
        s = s if full else {u: v for u, v in s.items() if u not in block.members}
        out = self.code.functions[f"block_{k + 1}"](s, quad)
        x = self.row({u: out[f"rhs/{u}"] for u in block.members} | s, names)
        J = np.array([self.row(out, names, f"{'matrix' if linear else 'd'}/{u}/") for u in names])
        F = -np.einsum("ijp,jp->ip", J, x) - self.row(out, names, "constant/") if linear else (
            self.row(out, names, "rhs/") - np.where(self.explicit(names), x, 0))
        J = J.transpose(2, 0, 1).astype(float)
        return names, x, F, -J if linear else J - np.diag(self.explicit(names)[:, 0])

    def iterated(self, k, s, names, x, damping, steps, tolerance, least, frozen=False):
        """x after steps x + damping (rhs(x) - x) inside of the intervals, but for what is frozen; and where it has settled.

        Of the torn unknowns of a block, or if that is None of all unknowns, at a full state.
        """
        lo, hi = self.ends(names)
        for _ in range(steps):
            here, found = self.put(s, names, x), {}
            for j in range(len(self.code.blocks)) if k is None else [k]:
                own, _, F, _ = self.linearised(j, here, self.quad, k is None)
                found |= zip(own, F)
            F = np.array([found[u] for u in names])
            good = (np.abs(F) <= tolerance*np.maximum(np.where(frozen, 0, np.abs(x)), least)).all(0)
            left = ~((x + damping*F > lo) & (x + damping*F < hi)) & ~np.array(frozen)
            if np.all(good | left.any(0)) or SECONDS() > self.until:
                break
            x = np.where(frozen | good | left, x, x + damping*F)
        return x, good

    def moved(self, k, s, quad):
        """The unknowns of a block after a step of Newton's method, and rhs - x; what is 0 by its equation stays."""
        names, x, F, J = self.linearised(k, s, quad)
        rest = ((x == 0) & (np.abs(F) <= 1e-25)).T
        J = np.where(rest[:, :, None] | rest[:, None, :], np.eye(len(names)), J)
        new = x - solved(J, np.where(rest.T, 0.0, F), self.code.blocks[k].kind == "linear")
        if self.code.blocks[k].kind == "linear":  # if linear: rows that contradict each other have no solution
            size = np.abs(F) + np.einsum("pij,jp->ip", np.abs(J), np.abs(new))
            left = np.abs(F + np.einsum("pij,jp->ip", J, new - x)) > 1e-9*size
            new = np.where(left.any(0), np.nan, new)
        return names, new, F if self.code.blocks[k].kind == "nonlinear" else 0*F

    def in_coordinates(self, k, y, s):  # if nonlinear
        """The residual in the coordinates of the torn unknowns, its Jacobian, and these unknowns.

        For x inside (lo, hi) x = rhs reads log(rhs - lo) - log(hi - rhs) = log(x - lo) - log(hi - x), with the
        logarithms continued by their tangents.
        """
        block, n = self.code.blocks[k], len(y)
        lo, hi = self.ends(block.torn)
        torn, slope = outside(y, lo, hi)
        _, x, r, J = self.linearised(k, self.put(s, block.torn, torn), self.quad)
        F, R, weight, own = r[:n], 0.0, 0.0, 0.0
        for gap, side in ((x[:n] - lo, 1), (hi - x[:n], -1)):  # an end at infinity adds nothing
            t = -side*F/gap
            R = R - side*(2*np.maximum(t - 0.5, 0) - np.log1p(-np.minimum(t, 0.5)))
            weight, own = weight + 1/np.maximum(1 - t, 0.5)/gap, own + t/np.maximum(1 - t, 0.5)/gap
        turned = (np.isfinite(lo) | np.isfinite(hi)) & self.explicit(block.torn)
        r = np.concatenate([np.where(turned, R, F), r[n:]])
        J[:, :n] *= np.where(turned, weight, 1.0).T[:, :, None]
        J[:, range(n), range(n)] += np.where(turned, own, 0.0).T
        J[:, :, :n] *= slope.T[:, None, :]
        return r, J, torn

    def nonlinear(self, k, s):  # if nonlinear
        """Newton's method from the start, from where the map leads, then from other sizes; 0 where that is a solution."""
        names, done = self.code.blocks[k].torn, np.zeros(self.points, dtype=bool)
        (lo, hi), explicit = self.ends(names), self.explicit(names).all()
        x = begin = self.row(s, names)
        if any(m in self.guess for m in self.code.blocks[k].members) and not any(u in self.guess for u in names):
            _, x, F, _ = self.linearised(k, s, self.quad, True)
            x = begin = (x + F)[:len(names)]
        free = (hi == np.inf) & [[u not in self.guess] for u in names]  # of these other sizes are tried, else of all
        for trial, size in enumerate((1, 1, 0.5, 0.1, 0.9, 2, 0.01, 10, -1, 30, 1e-3)):
            start = np.where(free, size, begin) if free.any() else begin*size
            start = begin if trial == 0 else self.iterated(k, s, names, begin, 0.5, 300, 1e-13, 1e-3)[0] if trial == 1 else start
            open_ = np.isfinite(start).all(0) & ~done
            new, good = self.newton(k, inside(np.where(open_, start, begin), lo, hi), s, open_)
            x, done = np.where(good & ~done, new, x), done | good
            low = (lo == 0) & (np.abs(new) < 1e-6) & ~done & explicit
            if low.any():  # what went to 0 at 0, and the rest iterated
                new, good = self.iterated(k, s, names, np.where(low, 0.0, new), 1.0, 300, 1e-13, np.where(low, 1e-12, 1e-3), low)
                x, done = np.where(good & low.any(0), new, x), done | good & low.any(0)
            if done.all() or SECONDS() > self.until:
                break
        return x, done

    def newton(self, k, y, s, todo):  # if nonlinear
        """Steps d, at most 4 in a logarithm, halved until the residual is smaller, or the next step; which points end."""
        (r, J, x), good, log = self.in_coordinates(k, y, s), 0*todo > 0, np.isfinite(self.ends(self.code.blocks[k].torn)).any(0)
        fine, d, t, scaled = np.array(True), 0*x, 1.0, log & self.explicit(self.code.blocks[k].torn)
        for trial in range(120):
            d = np.where(fine, -solved(J, r)[:len(y)], d)
            t = np.where(fine, np.minimum(1, 4/np.maximum(np.max(np.where(log, np.abs(d), 0), 0), 4)), t)
            size = np.einsum("pij,jp->ip", np.abs(J[:, :, :len(y)]), np.where(log, 1, np.abs(y) + 1e-3)) + 1e-300
            size[:len(y)] = np.where(scaled, 1, size[:len(y)])
            small = (np.max(np.abs(d)/np.where(log, 1, np.abs(y) + 1e-3), 0) < 1e-8) & (np.max(np.abs(r)/size, 0) < 1e-6) & todo
            move = np.where(todo, np.where(small, 1, t)*d, 0.0)
            r2, J2, x2 = self.in_coordinates(k, y + move, s)
            fine = (((r2/size)**2).sum(0) <= (1 - 1e-4*t)*((r/size)**2).sum(0)) | small
            fine |= np.max(np.abs(solved(J, r2)[:len(y)]), 0) <= (1 - t/4)*np.max(np.abs(d), 0) if trial < 25 else False
            fine &= todo & np.isfinite(r2).all(0) & np.isfinite(J2).all((1, 2))
            y, x, r = (np.where(fine, a, b) for a, b in ((y + move, y), (x2, x), (r2, r)))
            J = np.where(fine[:, None, None], J2, J)
            t, good, todo = t/2, good | (small & fine), todo & ~(small & fine) & (t > 1e-7)
            if not todo.any() or SECONDS() > self.until:
                break
        return x, good & np.isfinite(x).all(0)

    def verified(self, s):
        """The state after a step on finer nodes in extended precision, and how far that moves it: its error."""
        names, look = self.code.unknowns, self.code.functions.get("observables", nothing)
        new, quad = self.begin(True, np.longdouble)
        new = self.put(new, names, self.row(s, names).astype(np.longdouble))
        apart = np.zeros(self.points)
        for k in range(len(self.code.blocks)):
            block, x, F = self.moved(k, new, quad)
            new = self.put(new, block, x)
            apart = np.max([apart, *np.abs(F)*self.explicit(block)/np.maximum(np.abs(x), 1e-6)], axis=0)
        seen, again = look(s, self.quad), look(new, quad)
        a, b = (np.concatenate([self.row(v, names), self.row(w, seen)]) for v, w in ((s, seen), (new, again)))
        explicit, size = self.explicit(names), np.abs(b[:len(names)])
        rounding = size <= np.where(explicit & (self.ends(names)[0] != 0), 1e-6, 0)  # of what vanishes but for it: take 1
        size = np.where(rounding, 1, np.maximum(size, np.where(explicit, 0, 1e-6)))
        size = np.concatenate([size, np.maximum(np.abs(b[len(names):]), 1e-3)])
        off = np.max(np.nan_to_num(np.abs(a - b)/size, nan=np.inf), 0)
        off = np.where(apart > 1e-3, np.maximum(off, apart), off)  # an average without three digits, its slope however steep
        return dict(zip((*names, *seen), b.astype(float))), off

    def stability(self):
        """The spectral radius of the map x -> rhs(x), block by block; nan where an equation is implicit."""
        found = np.zeros(self.points)
        for k, block in enumerate(self.code.blocks):
            for nudge in (0.0, 1e-8, 1e-12):  # of what is 0, where a slope may be 0/0
                s = {n: np.where(v == 0, nudge, v) if n in block.torn else v for n, v in self.s.items()}
                J = self.linearised(k, s, self.quad)[3]
                if np.isfinite(J).all():
                    break
            known = np.isfinite(J).all((1, 2)) & self.explicit(block.torn).all()
            radius = np.max(np.abs(np.linalg.eigvals(np.nan_to_num(J) + np.eye(len(J[0])))), 1)
            found = np.maximum(found, np.where(known, radius, np.nan))
        return found


def lay_out(code, numbers, ndim):
    """Arrays that are summed over as generated code reads them, each along the axes of its indices, and the indices themselves."""
    lengths, laid = {}, {}
    for _, name, places, indices, *_ in code.arrays:
        if name and np.ndim(numbers[name]) != len(places):
            raise ValueError(f"solve: {name} has the shape {np.shape(numbers[name])}; it is an array of {len(places)} dimensions")
        for index, n in zip(indices, np.shape(numbers[name]) if name else ()):
            if lengths.setdefault(index, n) != n:
                raise ValueError(f"solve: the arrays that are summed over {index} have {lengths[index]} and {n} entries")
    for letter, name, places, indices, first, count in code.arrays:
        v = (np.einsum(numbers[name], places, sorted(set(places))) if name
             else first + np.arange(count or lengths[indices[0]], dtype=float))
        sizes = dict(zip(sorted(set(places)), v.shape))
        laid[letter] = v.reshape([sizes.get(k, 1) for k in range(ndim)])
        laid |= {} if name else {f"{letter}_length": np.float64(v.size)}
    return laid


def violated(laws, points):
    """For each point a law that does not hold there, in words; laws: {"law [0.0, inf] words": the value, in the interval}."""
    why = np.full(len(points), "", dtype=object)
    for law, value in laws.items():
        low, high, words = law[4:].split(" ", 2)
        x, a, b = np.broadcast_to(np.ravel(value), len(why)), float(low[1:-1]), float(high[:-1])
        bad = (x < a) | (x > b) | ((x == a) & (low[0] == "(")) | ((x == b) & (high[-1] == ")"))
        why = np.where(bad & (why == ""), [f"{words}, not {v:.6g}" for v in x], why)
    return why


def read_points(code, numbers, start):
    """The parameters and first guesses as vectors over the points, why some points are refused, and their shape."""
    given = {}
    for name, value in (numbers | {f"start {u}": v for u, v in start.items()}).items():
        try:
            v = np.array(value if np.asarray(value).dtype.kind in "fiuO" else "x", dtype=float)
        except (TypeError, ValueError):
            raise ValueError(f"solve: {name} is not a number or an array of numbers") from None
        if not v.size or not np.isfinite(v).all():
            raise ValueError(f"solve: {name} holds {v[~np.isfinite(v)][0] if v.size else None}; every parameter must be finite")
        given[name] = v
    for u, v in start.items():
        lo, hi = code.ends.get(u, EVERYWHERE)
        if u not in code.unknowns:
            raise ValueError(f"solve: unknown name in start {u!r}; there is {', '.join(code.unknowns)}")
        if not np.all((given[f"start {u}"] >= lo) & (given[f"start {u}"] <= hi)):
            raise ValueError(f"solve: start {u} = {np.ravel(v)[0]:g} is outside its domain {lo:g} < {u} < {hi:g}")
    try:
        shape = np.broadcast_shapes(*(given[n].shape for n in code.parameters))
        wide = [n for n in given if given[n].ndim and n not in {e[1] for e in code.arrays}]
        given |= {n: np.broadcast_to(given[n], shape).ravel() for n in wide}
    except ValueError:
        raise ValueError("solve: the parameters, or the starts, do not broadcast") from None
    why = np.full(int(np.prod(shape)), "", dtype=object)
    for n, sign in code.signs.items():  # if signs
        words = f"{n} stands for a {'positive' if sign > 0 else 'negative'} number"
        x = np.broadcast_to(given[n], len(why))
        why = np.where((sign*x < 0) & (why == ""), [f"{words}, not {v:.6g}" for v in x], why)
    why = np.where(why == "", violated(code.functions["lawful"](given, {}), why), why)  # if laws
    if np.all(why != ""):
        raise ValueError(f"solve: {why[0]}")
    return {n: given[n] for n in numbers}, {u: given[f"start {u}"] for u in start}, why, shape


def answered(code, numbers, values, good, why, advice):
    """The values; NotSolved, with the first point and its reason, where one is not good."""
    if np.all(good):
        return values
    bad = np.flatnonzero(~good)
    where = ", ".join(f"{n} = {np.broadcast_to(np.ravel(numbers[n]), len(why))[bad[0]]:g}" for n in code.parameters)
    failure = NotSolved(f"{bad.size} of {len(why)} points did not converge, the first at {where}: {why[bad[0]]}; try {advice}")
    failure.values, failure.converged = values, values["converged"]
    raise failure


def solve_points(code, numbers, start, tolerance, budget=None, method="newton", damping=1.0):
    """Every unknown and observable in the common shape of the parameters; NotSolved where one is not found."""
    if not 0 < tolerance < 1 or method not in ("newton", "iterate"):
        raise ValueError(f"solve: tolerance = {tolerance} is not a number between 0 and 1, or {method!r} not newton or iterate")
    if budget is not None and not budget >= 0:
        raise ValueError(f"solve: budget = {budget} is not a number of seconds")
    numbers, guess, why, shape = read_points(code, numbers, {**code.start, **start})
    points, until, lawful = len(why), SECONDS() + (np.inf if budget is None else budget), why == ""
    found = {u: np.full(points, np.nan) for u in code.unknowns}
    error, radius = np.full(points, np.inf), np.full(points, np.nan)
    most = 256 if len(code.axes) < 2 else 64  # so that a grid of two axes at every point fits into memory
    for size in (most, *[8]*(points > 8), *[1]*(points > 1)):  # points whose nodes suit them together, then with fewer others
        left = np.flatnonzero(lawful & ~(error <= tolerance))
        for at in np.split(left, range(size, len(left), size)) if len(left) and SECONDS() < until else ():
            with np.errstate(all="ignore"):
                chunk = Solver(code, numbers, guess, at, points, until)
                values, error[at], radius[at] = chunk.solve(tolerance, damping if method == "iterate" else None)
            why[at] = chunk.why
            for n, v in values.items():
                found.setdefault(n, np.full(points, np.nan))[at] = v
    good = error <= tolerance
    if SECONDS() >= until:
        why = np.where(lawful & ~good, f"the budget of {budget:g} CPU seconds ran out", why)
    found |= {"error": error, "stability": radius, "converged": good}
    values = {n: v.reshape(shape) if shape else v[0] for n, v in found.items()}
    return answered(code, numbers, values, good, why, "damping=0.5 or smaller" if method == "iterate" else
                    "another start (start=, --start), from a neighbouring point")
