# ruff: noqa: B905 - of equal length throughout, and a line of an exported file has room for less
"""x = f(x) block by block: Newton's method with the exact Jacobian; then one step on finer nodes, which gives the error."""

import time
from collections import namedtuple

import numpy as np

EVERYWHERE = (-np.inf, np.inf)
SECONDS = time.process_time
Block = namedtuple("Block", "kind torn explicit members", defaults=[()])
Equations = namedtuple("Equations", "functions parameters unknowns blocks roots axes chunk ends start arrays lay_out notes",
                       defaults=[(), None, (), None, {}, {}, (), None, ()])


def nothing(s, quad):
    """A function that was left out, as it returns nothing."""
    return {}


class NotSolved(ArithmeticError):
    """Some points did not converge; `.values` holds the last state, `.converged` says which points are good."""


def inside(x, ends):
    """The coordinate of x on the whole line: a logarithm of its distance to the ends of its interval."""
    lo, hi = ends
    return x if ends == EVERYWHERE else (np.log(x - lo) if lo > -np.inf else 0.0) - (np.log(hi - x) if hi < np.inf else 0.0)


def outside(y, ends):
    """x of its coordinate, and dx/dy."""
    (lo, hi), near = ends, np.exp(-np.abs(y))
    if np.isfinite(lo + hi):
        return np.where(y < 0, lo + (hi - lo)*near/(1 + near), hi - (hi - lo)*near/(1 + near)), (hi - lo)*near/(1 + near)**2
    e = np.exp(np.clip(y if hi == np.inf else -y, -700, 700))
    return (y, np.ones_like(y)) if ends == EVERYWHERE else (lo + e, e) if hi == np.inf else (hi - e, e)


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

    def __init__(self, code, numbers, guess, points, until):
        self.code, self.points, self.guess, self.until, self.why = code, points, guess, until, np.full(points, "", dtype=object)
        self.ndim = 1 + max([len(code.axes), *(p for e in code.arrays for p in e[2])])
        self.numbers = {n: self.column(numbers[n]) if np.ndim(numbers[n]) else numbers[n] for n in code.parameters}
        self.numbers |= code.lay_out(code, numbers, self.ndim) if code.arrays else {}

    def row(self, out, label, names):
        """Some entries of what a function returned, (names, points)."""
        return np.array([np.broadcast_to(np.ravel(out[label + n]), self.points) for n in names]).reshape(-1, self.points)

    def column(self, v):
        """A vector over the points as an array with every axis."""
        return np.reshape(np.broadcast_to(np.ravel(v), self.points), (-1,) + (1,)*(self.ndim - 1))

    def put(self, s, names, x):
        """A state with other unknowns."""
        return s | {u: self.column(v) for u, v in zip(names, x)}

    def begin(self, other=False, real=float):
        """The numbers with what no unknown enters, and the nodes: finer ones if `other`."""
        quad, s = self.nodes(other, real), {n: np.asarray(v, real)[()] for n, v in self.numbers.items()}
        return s | self.code.functions.get("tables", nothing)(s, quad), quad

    def nodes(self, other, real):
        """Nothing is averaged."""
        return {"": {}}

    def follow(self, state, level):
        """Whether there are new nodes for the integrands at a state: none."""
        return False

    def first(self, u):
        """Where an unknown begins: as it is given, else inside its interval."""
        lo, hi = self.code.ends.get(u, EVERYWHERE)
        middle = (lo + hi)/2 if np.isfinite(lo + hi) else lo + 1 if lo > -np.inf else hi - 1 if hi < np.inf else 0.0
        start = self.column(self.guess.get(u, middle))
        return np.where((start > lo) & (start < hi), start, middle)


def ends_of(c, k):
    """The intervals of the torn unknowns of a block."""
    return [c.code.ends.get(u, EVERYWHERE) for u in c.code.blocks[k].torn]


def solve_chunk(c, tolerance, damping):
    """(values, error, stability) at every point, on finer nodes until the error is below the tolerance."""
    names, begin = c.code.unknowns, np.array([np.ravel(c.first(u)) for u in c.code.unknowns])
    last, settled = (begin, True) if damping is None else mapped(c, begin, tolerance, damping)
    x, level, good, error = last, 0, True, np.full(c.points, np.inf)
    c.follow(x, level)
    while level == 0 or (level < 5 and np.any(good & (error > tolerance)) and c.follow(x, level)):
        for _ in range(3):  # nodes that follow the state
            s, c.quad = c.begin()
            good, s = solve_blocks(c, c.put(s, names, x))
            x, c.s = np.where(good, c.row(s, "", names), x), s
            if not c.follow(x, level):
                break
        new, error = verified(c, s)
        error, level = np.where(good & settled, error, np.inf), level + 1
    away = np.abs(c.row(new, "", names) - last) > 1e-5*np.maximum(np.abs(last), 1e-6)
    error = np.where(away.any(0), np.inf, error) if damping is not None else error  # another solution than that of the map
    lo, hi = np.array([c.code.ends.get(u, EVERYWHERE) for u in names]).T[..., None]
    beyond = ((c.row(new, "", names) < lo) | (c.row(new, "", names) > hi)).any(0)
    error, c.why = np.where(beyond, np.inf, error), np.where(beyond, "the solution lies outside of its domain", c.why)
    c.why = np.where((c.why == "") & ~(error <= tolerance), [f"its error is {e:.1e}" for e in error], c.why)
    return new, error, stability(c)


def mapped(c, x, tolerance, damping):
    """The map itself, x + damping (rhs(x) - x), and which points it settles, all inside of their intervals."""
    c.follow(x, 0)
    (s, quad), names = c.begin(), c.code.unknowns
    ends = np.array([c.code.ends.get(u, EVERYWHERE) for u in names])[..., None]
    for _ in range(20000):
        new = c.row(c.code.functions["right_hand_sides"](c.put(s, names, x), quad), "rhs/", names)
        done = np.max(np.abs(new - x)/np.maximum(np.abs(x), 1e-25), 0) <= tolerance
        left = ~((x + damping*(new - x) > ends[:, 0]) & (x + damping*(new - x) < ends[:, 1])).all(0) & ~done
        if np.all(done | left) or SECONDS() > c.until:
            break
        x = np.where(done | left, x, x + damping*(new - x))
    return x, done


def solve_blocks(c, s):
    """Block after block from a state; which points are solved, and their state."""
    good = np.ones(c.points, dtype=bool)
    for k, block in enumerate(c.code.blocks):
        if block.kind == "nonlinear":
            x, done = c.code.roots(c, k, s)
            c.why = np.where(done, c.why, f"the residual of {', '.join(block.torn)} stayed above the tolerance")
            good, s = good & done, c.put(s, block.torn, x)
        for _ in range(2):
            s = c.put(s, *moved(c, k, s, c.quad))
        done = np.isfinite(c.row(s, "", block.torn + block.members)).all(0)
        good, c.why = good & done, np.where(good & ~done, f"{block.torn[0]} is not finite", c.why)
    return good, s


def linearised(c, k, s, quad):
    """Unknowns, values, F = rhs - x, or what is to vanish, and its Jacobian of a block, its members last."""
    block, out = c.code.blocks[k], c.code.functions[f"block_{k + 1}"](s, quad)
    names, x = block.torn + block.members, np.concatenate([c.row(s, "", block.torn), c.row(out, "", block.members)])
    if block.kind == "linear":
        A = np.array([c.row(out, f"matrix/{u}/", names) for u in names])
        return names, x, -np.einsum("ijp,jp->ip", A, x) - c.row(out, "constant/", names), -A.transpose(2, 0, 1).astype(float)
    J = [c.row({v: out.get(f"d/{u}/{v}", 0.0) for v in names}, "", names) for u in names]
    explicit = np.array([*block.explicit, *(True for _ in block.members)])
    F = 0*np.where(np.isfinite(x), x, 0)
    F[:len(block.torn)] = c.row(out, "rhs/", block.torn) - explicit[:len(block.torn), None]*x[:len(block.torn)]
    return names, x, F, np.array(J).transpose(2, 0, 1).astype(float) - np.diag(explicit)


def moved(c, k, s, quad):
    """The unknowns of a block after a step of Newton's method; what is 0 by its equation stays."""
    names, x, F, J = linearised(c, k, s, quad)
    rest = ((x == 0) & (np.abs(F) <= 1e-25)).T
    J = np.where(rest[:, :, None] | rest[:, None, :], np.eye(len(names)), J)
    linear = c.code.blocks[k].kind == "linear"
    new = x - solved(J, np.where(rest.T, 0.0, F), linear)
    if linear:  # of rows that contradict each other there is no solution
        size = np.abs(F) + np.einsum("pij,jp->ip", np.abs(J), np.abs(new))
        left = np.abs(F + np.einsum("pij,jp->ip", J, new - x)) > 1e-9*size
        new = np.where(left.any(0), np.nan, new)
    return names, new


def in_coordinates(c, k, y, s):
    """The residual in the coordinates of the torn unknowns, its Jacobian, and these unknowns.

    Where x - rhs = 0 is asked of x inside (lo, hi) it reads log(rhs - lo) - log(hi - rhs) = log(x - lo) - log(hi - x), with the
    logarithms continued by their tangents.
    """
    torn, slope = (np.array(v) for v in zip(*map(outside, y, ends_of(c, k))))
    _, x, r, J = linearised(c, k, c.put(s, c.code.blocks[k].torn, torn), c.quad)
    for i, (lo, hi) in enumerate(ends_of(c, k)):
        F, R, own, weight = r[i].copy(), 0.0, 0.0, 0.0
        for gap, side in ((x[i] - lo, 1), (hi - x[i], -1)):
            if c.code.blocks[k].explicit[i] and np.isfinite(gap).all():
                t = -side*F/gap
                R = R - side*(2*np.maximum(t - 0.5, 0) - np.log1p(-np.minimum(t, 0.5)))
                weight, own = weight + 1/np.maximum(1 - t, 0.5)/gap, own + t/np.maximum(1 - t, 0.5)/gap
        if np.ndim(weight):
            r[i], J[:, i] = R, J[:, i]*weight[:, None]
            J[:, i, i] += own
    J[:, :, :len(y)] *= slope.T[:, None, :]
    return r, J, torn


def nonlinear(c, k, s):
    """Newton's method from the start, from where the map leads, and from other starts; 0 where that is a solution."""
    block, done = c.code.blocks[k], np.zeros(c.points, dtype=bool)
    low_ends = np.array([[lo == 0] for lo, _ in ends_of(c, k)])
    if any(m in c.guess for m in block.members) and not any(u in c.guess for u in block.torn):
        s = c.put(s, block.torn, c.row(c.code.functions["right_hand_sides"](s, c.quad), "rhs/", block.torn))
    x = begin = c.row(s, "", block.torn)
    for trial in range(11):
        start = begin if trial == 0 else iterated(c, k, begin, s)[0] if trial == 1 else another(c, k, begin, s, trial - 2)
        open_ = np.isfinite(start).all(0) & ~done
        new, good = newton(c, k, [inside(v, e) for v, e in zip(np.where(open_, start, begin), ends_of(c, k))], s, open_)
        x, done = np.where(good & ~done, new, x), done | good
        low = low_ends & (np.abs(new) < 1e-6) & ~done
        if low.any():  # what went to 0 at 0, and the rest iterated
            new, good = iterated(c, k, np.where(low, 0.0, new), s, 1.0, low)
            x, done = np.where(good & low.any(0), new, x), done | good & low.any(0)
        if done.all() or SECONDS() > c.until:
            break
    return x, done


def newton(c, k, y, s, todo):
    """Steps d, at most 4 in a logarithm, halved until the residual is smaller, or the next step; which points end."""
    (r, J, x), good, log = in_coordinates(c, k, y, s), 0*todo > 0, np.array([[e != EVERYWHERE] for e in ends_of(c, k)])
    y, fine, d, t = np.array(y), np.array(True), 0*x, 1.0
    scaled = log & np.array(c.code.blocks[k].explicit)[:, None]
    for trial in range(120):
        d = np.where(fine, -solved(J, r)[:len(y)], d)
        t = np.where(fine, np.minimum(1, 4/np.maximum(np.max(np.where(log, np.abs(d), 0), 0), 4)), t)
        size = np.einsum("pij,jp->ip", np.abs(J[:, :, :len(y)]), np.where(log, 1, np.abs(y) + 1e-3)) + 1e-300
        size[:len(y)] = np.where(scaled, 1, size[:len(y)])
        small = (np.max(np.abs(d)/np.where(log, 1, np.abs(y) + 1e-3), 0) < 1e-8) & (np.max(np.abs(r)/size, 0) < 1e-6) & todo
        move = np.where(todo, np.where(small, 1, t)*d, 0.0)
        r2, J2, x2 = in_coordinates(c, k, y + move, s)
        fine = (((r2/size)**2).sum(0) <= (1 - 1e-4*t)*((r/size)**2).sum(0)) | small
        fine |= np.max(np.abs(solved(J, r2)[:len(y)]), 0) <= (1 - t/4)*np.max(np.abs(d), 0) if trial < 25 else False
        fine &= todo & np.isfinite(r2).all(0) & np.isfinite(J2).all((1, 2))
        y, x, r = (np.where(fine, a, b) for a, b in ((y + move, y), (x2, x), (r2, r)))
        J = np.where(fine[:, None, None], J2, J)
        t, good, todo = t/2, good | (small & fine), todo & ~(small & fine) & (t > 1e-7)
        if not todo.any() or SECONDS() > c.until:
            break
    return x, good & np.isfinite(x).all(0)


def iterated(c, k, x, s, damping=0.5, zero=False):
    """The state after damped steps of the map, inside of the intervals, and where it rests; what is 0 stays."""
    ends, explicit = np.array(ends_of(c, k))[..., None], all(c.code.blocks[k].explicit)
    for _ in range(300 if explicit else 1):
        F = linearised(c, k, c.put(s, c.code.blocks[k].torn, x), c.quad)[2][:len(x)]
        good = np.max(np.abs(F)/np.where(zero, 1e-12, np.maximum(np.abs(x), 1e-3)), 0) <= 1e-13
        new = x + damping*F
        x = np.where(zero | good | ~((new > ends[:, 0]) & (new < ends[:, 1])), x, new)
        if good.all() or SECONDS() > c.until:
            break
    return x, good & explicit


def another(c, k, x, s, trial):
    """A further start: where the residual of one unknown changes its sign, then other sizes of what was given no start."""
    ends = ends_of(c, k)[0]
    free = [u not in c.guess and hi == np.inf for u, (_, hi) in zip(c.code.blocks[k].torn, ends_of(c, k))]
    if trial > 1 or len(x) > 1:
        size = (0.5, 0.1, 0.9, 2.0, 0.01, 10.0, -1.0, 30.0, 1e-3)[trial]
        return np.array([v*size if not any(free) else np.full(c.points, size) if f else v for v, f in zip(x, free)])
    place = np.arange(146) - 72.5
    far = np.sign(place)*10.0**(np.abs(place)/4 - 9) if ends == EVERYWHERE else place*0.4
    grid = inside(x, ends) + far[:, None]
    r = np.array([in_coordinates(c, k, v[None], s)[0][0] for v in grid])
    change = np.isfinite(r[:-1] + r[1:]) & ((r[:-1] > 0) != (r[1:] > 0))
    rank = np.abs(np.arange(145) - 72)[:, None] + np.where(r[:-1] > 0, 0, 1e3)
    at, each = np.argsort(np.where(change, rank, np.inf), axis=0)[trial], np.arange(c.points)
    low, high, sign = grid[at, each], grid[at + 1, each], r[at, each] > 0
    for _ in range(40):
        middle = (low + high)/2
        left = (in_coordinates(c, k, middle[None], s)[0][0] > 0) == sign
        low, high = np.where(left, middle, low), np.where(left, high, middle)
    return np.where(change[at, each], outside(middle, ends)[0], np.nan)[None]


def verified(c, s):
    """The state after a step on finer nodes in extended precision, and how far that moves it: its error."""
    names, seen = c.code.unknowns, c.code.functions.get("observables", nothing)(s, c.quad)
    new, quad = c.begin(True, np.longdouble)
    new = c.put(new, names, c.row(s, "", names).astype(np.longdouble))
    for k in range(len(c.code.blocks)):
        new = c.put(new, *moved(c, k, new, quad))
    again = c.code.functions.get("observables", nothing)(new, quad)
    a, b = (np.concatenate([c.row(v, "", names), c.row(w, "", seen)]) for v, w in ((s, seen), (new, again)))
    implicit = {u for block in c.code.blocks for u, e in zip(block.torn, block.explicit) if not e}
    lows = np.array([[0 if u in implicit or c.code.ends.get(u, EVERYWHERE)[0] == 0 else 1e-6] for u in names])
    size = np.abs(b)  # what vanishes but for rounding needs an absolute accuracy
    size[:len(names)] = np.where((size[:len(names)] <= lows), 1.0, size[:len(names)])
    floor = [[1e-6 if n in implicit else 1e-300] for n in names] + [[1e-3]]*len(seen)
    error = np.max(np.nan_to_num(np.abs(a - b)/np.maximum(size, floor), nan=np.inf), 0)
    return dict(zip((*names, *seen), b.astype(float))), error


def stability(c):
    """The spectral radius of the map x -> rhs(x), block by block; nan where an equation is implicit."""
    found = np.zeros(c.points)
    for k, block in enumerate(c.code.blocks):
        for nudge in (0.0, 1e-8, 1e-12):  # of what is 0, where a slope may be 0/0
            s = {n: np.where(v == 0, nudge, v) if n in block.torn else v for n, v in c.s.items()}
            J = linearised(c, k, s, c.quad)[3]
            if np.isfinite(J).all():
                break
        radius = np.max(np.abs(np.linalg.eigvals(np.nan_to_num(J) + np.eye(len(J[0])))), 1)
        found = np.maximum(found, np.where(np.isfinite(J).all((1, 2)) & all(block.explicit), radius, np.nan))
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


def read_points(code, numbers, start):
    """The parameters and first guesses as vectors over the points, why some points are refused, and their shape."""
    given = {}
    for name, value in (numbers | {f"start {u}": v for u, v in start.items()}).items():
        try:
            v = np.asarray(value)
            v = v.astype(float) if v.dtype.kind in "fiu" else np.array(value if v.dtype.kind == "O" else "x", dtype=float)
        except (TypeError, ValueError):
            raise ValueError(f"solve: {name} is not a number or an array of numbers") from None
        if not v.size or not np.isfinite(v).all():
            what = v[~np.isfinite(v)][0] if v.size else "nothing"
            raise ValueError(f"solve: {name} holds {what}; every parameter must be finite")
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
    for law, value in code.functions.get("lawful", nothing)(given, {}).items():  # "law [0.0, inf] words"
        low, high, words = law[4:].split(" ", 2)
        x, a, b = np.broadcast_to(np.ravel(value), len(why)), float(low[1:-1]), float(high[:-1])
        bad = (x < a) | (x > b) | ((x == a) & (low[0] == "(")) | ((x == b) & (high[-1] == ")"))
        why = np.where(bad & (why == ""), [f"{words}, not {v:.6g}" for v in x], why)
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
    found = {"error": np.full(points, np.inf), "stability": np.full(points, np.nan)}
    most = 256 if len(code.axes) < 2 else 64  # so that a grid of two axes at every point fits into memory
    for size in (most, *[8]*(points > 8), *[1]*(points > 1)):  # points whose nodes suit them together, then with fewer others
        left = np.flatnonzero(lawful & ~(found["error"] <= tolerance))
        for at in np.split(left, range(size, len(left), size)) if len(left) and SECONDS() < until else ():
            some = [{n: v[at] if v.shape == (points,) and n not in {e[1] for e in code.arrays} else v for n, v in given.items()}
                    for given in (numbers, guess)]
            with np.errstate(all="ignore"):
                chunk = (code.chunk or Chunk)(code, *some, len(at), until)
                values, error, stability = solve_chunk(chunk, tolerance, damping if method == "iterate" else None)
            why[at] = chunk.why
            for n, v in (values | {"error": error, "stability": stability}).items():
                found.setdefault(n, np.full(points, np.nan))[at] = v
    good = found["error"] <= tolerance
    if SECONDS() >= until:
        why = np.where(lawful & ~good, f"the budget of {budget:g} CPU seconds ran out", why)
    found = {u: np.full(points, np.nan) for u in code.unknowns} | found
    found |= {"converged": good} | {n: found.pop(n) for n in ("error", "stability")}
    values = {n: v.reshape(shape) if shape else v[0] for n, v in found.items()}
    return answered(code, numbers, values, good, why, "damping=0.5 or smaller" if method == "iterate" else
                    "another start (start=, --start), from a neighbouring point")
