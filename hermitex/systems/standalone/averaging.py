# ruff: noqa: B905 - of equal length throughout, and a line of an exported file has room for less
"""E f = sum_j w_j f(x_j): Gauss-Legendre panels that end where the integrand breaks, halved until its last coefficients vanish."""

import numpy as np

WATCH: dict = {}  # while panels are adapted: the axis that looks at the terms of each average
MANY = 8192  # terms of a sum, by then nothing that falls like an exponential is left
IN_BLOCKS = 226, 28  # how many blocks of terms beyond, each twice as long as the one before, to 2^240; nodes of each
FARTHEST = 38.0  # half a window: beyond it exp(-x^2/2) underflows


def legendre(count, broken):
    """Nodes and weights on (-1, 1), crowded at the ends if `broken`, and the rows of the last two Legendre coefficients."""
    u, w = np.polynomial.legendre.leggauss(count)
    last = (np.polynomial.legendre.legvander(u, count - 1)*(np.arange(count) + 0.5))[:, -2:]
    return (u*(3 - u*u)/2, w*3*(1 - u*u)/2, last) if broken else (u, w, last)


def counted(terms):
    """0, 1, 2, ... and their weights."""
    return np.arange(terms), np.ones(terms)


def blocks(first):
    """The same to 2^240, some of each block [a, 2a) with weights that add up polynomials over it: for what falls like a power."""
    count, order = IN_BLOCKS
    (x, w), n = [[v] for v in counted(first)], np.arange(order)
    for terms in first*2.0**np.arange(count):
        places = np.round((terms - 1)*(1 - np.cos(np.pi*(n + 0.5)/order))/2)
        sums = np.where(n == 0, terms, (n % 2 - 1)*n*(n + 1)/terms/12)  # of Legendre polynomials
        w.append(np.linalg.solve(np.polynomial.legendre.legvander((2*places + 1)/terms - 1, order - 1).T, sums))
        x.append(terms + places)
    return np.concatenate(x), np.concatenate(w)


class Axis:
    """An integration variable: the edges of its panels, or the number of its terms."""

    def __init__(self, name, kind, place, ndim):
        self.name, self.kind, self.place, self.ndim, self.terms, self.step = name, kind, place, ndim, 64, 0.25
        counts = (24, 17) if kind == "broken" else (16, 11)  # of a panel, and of each of its two parts in verification
        self.nodes = [legendre(count, kind == "broken") for count in counts]
        self.restart()

    def restart(self):
        """Wide panels; as far as doubles reach where a break may be anywhere."""
        out = np.array([2.25, 4.5, 6.75, 9.0] + [12.0, 17.0, 25.0, FARTHEST]*(self.kind == "broken"))
        self.base, self.held = np.concatenate([-out[::-1], [0.0], out]), slice(None)

    def size(self):  # if arrays
        """The number of its nodes, without further break points."""
        other = {"counting": self.terms + IN_BLOCKS[0]*IN_BLOCKS[1]*(self.terms == MANY), "fields": int(16/self.step)}
        return other.get(self.kind, (len(self.base) - 1)*len(self.nodes[False][0]))

    def along(self, values):
        """A vector laid along its axis."""
        return np.reshape(values, [-1 if k == self.place else 1 for k in range(self.ndim)])

    def rule(self, other, real):
        """Its entry in `quad`; `other`: nodes of a finer rule on a wider window, to verify with."""
        if self.kind == "counting":  # if counting
            first = self.terms*3//2 if other else self.terms
            return [self.along(v.astype(real)) for v in (counted if self.terms < MANY else blocks)(first)]
        if self.kind == "fields":  # if fields: equally spaced, as what is taken along them asks for
            step, reach = self.step*(0.79 if other else 1), 9 if other else 8
            x = step*np.arange(-int(reach/step), int(reach/step) + 1).astype(real)
            return self.along(x), self.along(step*np.exp(-x*x/2)/np.sqrt(2*np.pi))
        rule = self, other, real
        return spread(rule, (), (), ()) if self.kind == "plain" else rule

    def watch(self, terms):
        """Note of each panel how large in the terms of an average its last coefficients are, and its mass."""
        terms = np.moveaxis(terms, self.place, -1)
        total, last = np.abs(terms).sum(-1, keepdims=True), self.nodes[False][2]
        if self.kind == "counting":  # if counting
            tail = np.abs(terms[..., 3*terms.shape[-1]//4:]).sum(-1, keepdims=True)/total
            self.found = max(np.max(np.nan_to_num(tail, posinf=0.0)), self.found or 0.0)
            return
        terms, middle = terms.reshape(*terms.shape[:-1], -1, len(last)), (self.edges[..., 1:] + self.edges[..., :-1])/2
        index = np.clip(np.searchsorted(self.base, middle) - 1, 0, len(self.base) - 2).astype(int)
        self.found = np.zeros((2, len(self.base) - 1)) if self.found is None else self.found
        for row, size in zip(self.found, (np.abs(terms @ last).max(-1)/total, np.abs(terms).sum(-1)/total)):
            np.maximum.at(row, np.broadcast_to(index, size.shape), np.nan_to_num(size, posinf=0.0))

    def refined(self, share, most):
        """Halve the panels that do not resolve what was noted, and go further out where there is mass; whether it did."""
        self.held = slice(None)  # the panels that hold something
        if self.found is None:
            return False
        if self.kind == "counting":  # if counting
            more = self.found > 1e-17 and self.terms < MANY
            self.terms *= 1 + more
            return more
        (tail, mass), base = self.found, self.base
        beyond = [end for end, m in ((base[0] - 3, mass[0]), (base[-1] + 3, mass[-1])) if m > 1e-18 and abs(end) < FARTHEST + 2]
        more = np.concatenate([(base[1:] + base[:-1])[tail > share]/2, np.clip(beyond, -FARTHEST, FARTHEST)])
        held = np.flatnonzero(mass > 1e-20)
        if more.size and len(base) < most:
            self.base = np.sort(np.concatenate([base, more]))
            return True
        self.held = slice(held[0], held[-1] + 2) if held.size else slice(None)
        return False


def spread(rule, kinks, narrow, fast):
    """Nodes and weights of N(0, 1) between break points that move (nan: there is none), and about what is narrow, 1/k about c."""
    axis, other, real = rule
    base = np.concatenate([axis.base[:1] - 1.5, axis.base, axis.base[-1:] + 1.5]) if other else axis.base
    edges, (u, w, _) = axis.along(base.astype(real)), axis.nodes[other]
    marks = list(kinks)  # if marks
    for k, c in narrow:  # if marks
        steep = np.abs(k) + 0.0*c
        most = np.max(steep, where=np.isfinite(steep), initial=0.0)
        grades = 6.0**np.arange(int(np.ceil(np.log(12*min(most, 1e12))/np.log(6)))) if most > 2 else []
        marks += [c + t/k for grade in grades for t in (-grade, grade)]
    if marks:  # if marks
        ends = [np.where(np.isnan(m), base[0], np.clip(m, base[0], base[-1])) for m in marks]
        ends = np.broadcast_arrays(*ends, np.zeros((1,)*axis.ndim))[:-1]
        shape = [1 if k == axis.place else n for k, n in enumerate(ends[0].shape)]
        whole = np.broadcast_to(edges, [len(base) if k == axis.place else n for k, n in enumerate(shape)])
        edges = np.sort(np.concatenate([whole, *ends], axis.place), axis.place)
    edges = np.moveaxis(edges, axis.place, -1)
    if other:
        edges = np.sort(np.concatenate([edges, edges[..., :-1] + 0.381966*np.diff(edges)], -1), -1)
    axis.edges, low, high = edges, edges[..., :-1, None], edges[..., 1:, None]
    x = (low + high)/2 + (high - low)/2*u
    x = np.where(low < high, np.clip(x, low + 1e-15*np.abs(low), high - 1e-15*np.abs(high)), 0.786151*u)  # if marks
    w = (high - low)/2*w*np.exp(-x*x/2)/np.sqrt(2*np.pi)
    return tuple(np.moveaxis(v.reshape(*v.shape[:-2], -1), -1, axis.place) for v in (x, w))


def average(values, weights, axis, table=None):
    """E over one integration variable: the weighted sum over its axis, which stays with length 1; of values*table, if given."""
    terms = (values if table is None else values*table)*weights
    if axis in WATCH:
        WATCH[axis].watch(terms)
    return terms.sum(axis=axis, keepdims=True)


def follow(c, state, level):
    """Nodes for the integrands at a state, looked at in some of the points; False if they are the same as before."""
    some, numbers, points = np.unique(np.linspace(0, c.points - 1, 8).astype(int)), c.numbers, c.points
    named = {"right_hand_sides", "observables", *(f"block_{k + 1}" for k in range(len(c.code.blocks)))}
    before = [(a.terms, a.step, *a.base) for a in c.axes]
    share, most = 10.0**(-8 - 1.5*level), 400 if len(c.axes) == 1 else 30*2**level  # panels: some averages are rounding alone
    c.numbers = {n: v[some] if np.ndim(v) and len(v) == points > 1 else v for n, v in numbers.items()}
    c.points = len(some)
    for axis in c.axes:
        axis.restart()
        axis.step = 0.25*0.7**level
    try:
        WATCH.update({a.place: a for a in c.axes if a.kind != "fields"})
        for _ in range(14):  # 2.25/2^14: a feature of width 1e-4
            for axis in c.axes:
                axis.found = None
            s, quad = c.begin()
            s = c.put(s, c.code.unknowns, state[:, some])
            for name in named & set(c.code.functions):
                c.code.functions[name](s, quad)
            if not any([a.refined(share, most) for a in c.axes]):
                break
    finally:
        WATCH.clear()
        c.numbers, c.points = numbers, points
    for axis in c.axes:
        axis.base = axis.base[axis.held]
    return before != [(a.terms, a.step, *a.base) for a in c.axes]


def extended(function):
    """A function of doubles for extended precision: its value off by some roundings, so that what amplifies them shows itself."""
    phase = sum(map(ord, function.__name__))  # other parts than of any other function: a difference of two shows, too

    def of(*values):
        found = function(*(np.asarray(v, complex if np.iscomplexobj(v) else float) for v in values))
        if not any(np.asarray(v).dtype == np.longdouble for v in values):
            return found
        return found*(1 + np.longdouble(2)**-52*np.cos(phase + 1e3*np.arange(np.size(found)).reshape(np.shape(found))))

    return of
