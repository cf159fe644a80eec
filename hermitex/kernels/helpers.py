'''average(F, w) = sum_j w_j F_j: the few functions that generated source calls besides those of NumPy and SciPy.

Each is a text of its own that needs no other; a module gets only the ones it uses.
'''

from __future__ import annotations

import re

#: name -> (what it needs of scipy.special, its text)
HELPERS: dict[str, tuple[tuple[str, ...], str]] = {
    "average": ((), '''
def average(values, weights, axis, table=None):
    """E over one integration variable: the weighted sum over its axis, which stays with length 1; of values*table, if given."""
    if table is not None and getattr(table, "shape", ()) == weights.shape:  # the same at all points: one sum for each, no product
        weights = weights*table
    elif table is not None:
        values = values*table
    if isinstance(values, np.ndarray) and values.shape[axis] == weights.shape[axis] == weights.size:
        return (values.swapaxes(axis, -1) @ weights.reshape(-1, 1)).swapaxes(axis, -1)
    return (values*weights).sum(axis=axis, keepdims=True)  # constant, or moving nodes
'''),
    "summed": ((), '''
def summed(part, size, axis, others, names, quad, *values):
    """What `part` sums along an axis of `size` entries, in blocks that fit into the cache, however long it is.

    `others` are the axes of the points and of blocks around this one, `names` the integration variables along which it varies.
    """
    size, nodes = int(size), [quad[""][name] for name in names]
    each = [max([v.shape[k] for v in values if np.ndim(v)] or [1]) for k in others]
    step, done = max(1, 32768//max(int(np.prod(each + nodes)), 1)), None
    for first in range(0, size, step):
        last = min(first + step, size)
        cut = (slice(None),)*axis + (slice(first, last),)
        found = part(quad, last - first, *(v[cut] if np.ndim(v) and v.shape[axis] == size else v for v in values))
        done = found if done is None else [a + b for a, b in zip(done, found)]
    return done
'''),
    "total": ((), '''
def total(values, axis, size):
    """The sum over an axis of `size` entries, which stays with length 1."""
    if np.ndim(values) == 0 or values.shape[axis] != size:
        return values*size
    return values.sum(axis=axis, keepdims=True)
'''),
    "conditioned": ((), '''
def conditioned(functions, covariance, x):
    """f_1(u_1) E[f_2(u_2) ... f_n(u_n) | u_1] at u_1 = sqrt(C_11) x, u ~ N(0, C), C by rows to its diagonal; x equally spaced.

    The fields are taken in the order of a pivoted Cholesky factor: what of a covariance is rounding stands last.
    """
    shape, x, last = np.shape(x), np.ravel(x), len(functions) - 1
    w = np.exp(-x*x/2)/np.exp(-x*x/2).sum()
    signs = [next((s for s in (1, -1) if np.array_equal(g(-x), s*g(x))), 0) for g in functions]
    half = x.size//2 if all(signs) and np.array_equal(x, -x[::-1]) else 0  # what lies below 0 is what lies above
    laws = np.stack(np.broadcast_arrays(*(np.ravel(c) for c in covariance)), axis=-1)
    out = np.empty((len(laws), x.size))
    for row, law in enumerate(laws):
        C, L, order = np.zeros((last + 1, last + 1)), np.zeros((last + 1, last + 1)), np.arange(last + 1)
        C[np.tril_indices(last + 1)] = law
        C += np.tril(C, -1).T
        size = np.sqrt(np.diag(C))
        unit = np.where(size > 0, size, 1.0)
        C = C/unit/unit[:, None]
        for j in range(last + 1):  # next the field that those before settle least
            rest = C - L @ L.T
            k = j + np.argmax(np.diag(rest)[j:])
            for rows in (C, C.T, rest, rest.T, L, order):
                rows[[j, k]] = rows[[k, j]]
            if rest[j, j] > 1e-13:
                L[j:, j] = rest[j:, j]/np.sqrt(rest[j, j])
            elif not np.max(np.abs(rest[j:, j:])) <= 1e-12:  # more than rounding is left beside a variance of 0: no covariance
                L[j, j] = np.nan
        L *= size[order, None]
        own = [functions[k] for k in order]
        parts = []
        for part in np.array_split(x[half:], 1 + x.size**last//4000000):
            fields = [L[:, 0, None]*part]  # the k-th and all later ones, along x_1, ..., x_k
            for k in range(1, last):
                fields.append(fields[-1][1:, ..., None] + L[k:, k].reshape((-1,) + (1,)*(k + 1))*x)
            values = smoothed(own[last], fields[-1][1], L[last, last], x, w)
            for k in range(last - 1, 0, -1):
                values = (own[k](fields[k][0])*values) @ w
            parts.append(own[0](fields[0][0])*values)
        out[row, half:] = np.concatenate(parts)
        out[row, :half] = np.prod(signs)*out[row, -1:-1 - half:-1]
    return out.reshape((-1,) + shape[1:])


def smoothed(f, mean, spread, x, w):
    """E f(mean + spread X) by the nodes x; of many means read off a table that tells its own values at half the step."""
    shape, mean = np.shape(mean), np.ravel(mean)
    reach, step, eight = np.max(np.abs(mean)), 0.04, np.arange(-3.0, 5.0)
    through = np.linalg.inv(np.vander(eight, increasing=True))  # eight values to their polynomial
    while 2*(2*reach/step + 18) < min(mean.size, 200000):
        places = step*np.arange(-np.ceil(reach/step) - 8, np.ceil(reach/step) + 10)
        table = f(places[:, None] + spread*x) @ w
        coarse = np.lib.stride_tricks.sliding_window_view(table[::2], 8) @ (0.5**np.arange(8) @ through)
        off = np.max(np.abs(coarse - table[7:7 + 2*coarse.size:2]))  # 256 times as much as between the places of the table itself
        if not off > 2e-10*np.max(np.abs(table)):
            cells = np.lib.stride_tricks.sliding_window_view(table, 8) @ through.T
            place = (mean - places[0])/step
            cell = place.astype(int)
            place, cell, found = place - cell, cell - 3, 0.0
            for column in cells.T[::-1]:
                found = found*place + np.ascontiguousarray(column).take(cell)
            return found.reshape(shape)
        step /= 2
    if mean.size*x.size > 500000000:  # beside a pole there is no table, and at every mean it is too much: no value
        return np.full(shape, np.nan)
    parts = np.array_split(mean, 1 + mean.size*x.size//2000000)
    return np.concatenate([f(part[:, None] + spread*x) @ w for part in parts]).reshape(shape)
'''),
    "spread": ((), '''
def spread(rule, kinks, narrow, fast):
    """Nodes and weights of N(0, 1) between break points that move (nan: there is none), and 4**j/k about each c.

    `rule` holds nodes and weights, the window and how many grades; below 0 the nodes are used as they are. Nodes of [0, 1] stand
    from the nearer end, those beyond 1/2 as t - 1: next to a break point at 0 they keep their digits; next to others they stay
    some digits away. They are stirred by some such part of themselves, each otherwise, and so are the break points, which are
    rounded, too: what stands between two that are close feels it in its weight. Between two break points in one place there
    is nothing to see, and the integrand may be 0/0 in it: the nodes, of weight 0, stand elsewhere. Each interval is seen to where
    the density has fallen as far below its largest value there as it does from 0 to the window: E[f; z > b] has its digits at
    b = 30, too. Break points where it underflows are none. What is narrow (k, c) and how fast it oscillates is noted in its last
    entry, if that is a list.
    """
    x, w, window, grades, stir, notes = rule
    if notes is not None:
        notes.append(([k for k, _ in narrow], fast))
    if grades < 0:
        return x, w
    marks = list(kinks) or [0.0]
    if grades > 0:
        marks += [-4.791287847, -2.414213562, 0.0, 2.414213562, 4.791287847]  # halves and quarters of which nobody types
        marks += [c + np.divide(end, k) for k, c in narrow for j in range(grades) for end in (-4.0**j, 4.0**j)]
        marks += [c for _, c in narrow]
    axis = x.shape.index(x.size) if x.size > 1 else x.ndim - 1
    widest = max(window, 38.6)
    ends = np.broadcast_arrays(*(np.where(np.abs(m) < widest, m, 0.0) + 0.0*x.take([0], axis) for m in marks))
    inner = np.sort(np.concatenate(ends, axis=axis), axis=axis)
    last = np.full_like(inner.take([0], axis), widest)
    edges = np.concatenate([-last, inner, last], axis=axis)
    nodes, weights = [], []
    for k in range(edges.shape[axis] - 1):
        low, high = edges.take([k], axis), edges.take([k + 1], axis)
        reach = np.hypot(window, np.maximum(np.maximum(low, -high), 0.0))
        low, high = np.maximum(low, -reach), np.minimum(high, reach)
        z = np.where(x < 0, high, low) + (high - low)*x
        z = z*(1 + stir*np.cos((np.arange(z.size).reshape(z.shape) + 2.0**49*stir)**2)) if stir else z
        z = np.where(low < high, np.clip(z, low + 1e-15*np.abs(low), high - 1e-15*np.abs(high)), 0.786151377757423*x)
        nodes.append(z)
        width = high - low
        if stir and kinks:
            width = np.where(low < high, width + stir*((3*k + 3)%7/3 - 1)*high - stir*(3*k%7/3 - 1)*low, 0.0)
        weights.append(width*w*np.exp(-z*z/2)/np.sqrt(2*np.pi))
    return np.concatenate(nodes, axis=axis), np.concatenate(weights, axis=axis)
'''),
    "nonzero": ((), '''
def nonzero(x, over):
    """x, or where x is 0 and over is not, a number so small that over/x stands for its limit from above."""
    over = np.asarray(over)
    there = np.any(over != 0, axis=tuple(range(1, over.ndim)), keepdims=True)
    return np.where(x == 0, np.where(there, 1e-100, np.nan), x)
'''),
    "power": ((), '''
def power(x, n):
    """x**n for a whole number n >= 1, by repeated squaring."""
    result = None
    while n:
        if n % 2:
            result = x if result is None else result*x
        x, n = x*x, n//2
    return result
'''),
    "not_negative": ((), '''
def not_negative(x, size):
    """x, and 0 where it is 0 but for rounding of terms of that size; what was said not to be negative and is has no value."""
    return np.where(x > 9e-16*size, x, np.where(x >= -1e-11*size, 0.0, np.nan))
'''),
    "exp_erfc": (("erfc", "erfcx"), '''
def exp_erfc(a, b):
    """exp(a) erfc(b); for b > 0 it is exp(a - b^2) erfcx(b), which does not overflow; nan if a - b^2 has no digit left."""
    tail = np.maximum(b, 0.0)
    rounding = 4*np.spacing(tail*tail)
    exponent = np.where((rounding > 0.1) & (a - tail*tail > -750 - rounding), np.nan, a - tail*tail)
    return np.where(b > 0, np.exp(exponent)*erfcx(tail), np.exp(np.where(b > 0, 0.0, a))*erfc(b))
'''),
    "logaddexp_at": ((), '''
def logaddexp_at(a, b, T):
    """T log(exp(a/T) + exp(b/T)); at T = 0 the larger of a and b."""
    top = np.where(T < 0, np.minimum(a, b), np.maximum(a, b))
    return top + T*np.log1p(np.exp(-np.abs(a - b)/np.where(T == 0, 1.0, np.abs(T))))
'''),
    "tame_erfc": (("erfc", "erfcx"), '''
def tame_erfc(b):
    """erfc(b) exp(max(b, 0)^2): between 0 and 2, and never as small as erfc."""
    return np.where(b > 0, erfcx(np.maximum(b, 0.0)), erfc(np.minimum(b, 0.0)))
'''),
    "tame_expm1": ((), '''
def tame_expm1(a):
    """(exp(a) - 1) exp(-max(a, 0)): between -1 and 1."""
    return np.sign(a)*-np.expm1(-np.abs(a))
'''),
    "exp_erfi": (("dawsn",), '''
def exp_erfi(a, b):
    """exp(a) erfi(b) by Dawson's integral, which does not overflow."""
    return 2/np.sqrt(np.pi)*np.exp(a + b*b)*dawsn(b)
'''),
    "exp_erf": (("erf", "wofz"), '''
def exp_erf(a, z):
    """exp(a) erf(z) for complex z: exp(a) - exp(a - z^2) w(i z) in the right half plane, where both are tame."""
    side = np.where(np.real(z) < 0, -1.0, 1.0)
    far = np.abs(z) > 1
    right = np.where(far, side*z, 1.0)
    return np.where(far, side*(np.exp(a) - np.exp(a - right*right)*wofz(1j*right)), np.exp(a)*erf(np.where(far, 0.0, z)))
'''),
    "far_mode": ((), '''
def far_mode(slope, *terms):
    """argmin_z z^2/2 - slope z + sum_k n_k log sum_j exp(b_j z + c_j), by halving; of each term k, n, b and c."""
    slope, *terms = np.broadcast_arrays(slope, *terms)
    sums = {}
    for k, n, b, c in zip(terms[::4], terms[1::4], terms[2::4], terms[3::4]):
        sums.setdefault(float(np.ravel(k)[0]), []).append((n, b, c))
    sums = [(rows[0][0], np.array([b for _, b, _ in rows]), np.array([c for _, _, c in rows])) for rows in sums.values()]
    low = slope - sum(n*b.max(axis=0) for n, b, _ in sums)
    high = slope - sum(n*b.min(axis=0) for n, b, _ in sums)
    for _ in range(24):  # the value of an average does not depend on it
        z, pull = (low + high)/2, 0
        for n, b, c in sums:
            w = np.exp(b*z + c - np.max(b*z + c, axis=0))
            pull = pull + n*(w*b).sum(axis=0)/w.sum(axis=0)
        low, high = np.where(z - slope + pull < 0, z, low), np.where(z - slope + pull < 0, high, z)
    return np.nan_to_num((low + high)/2, posinf=0.0, neginf=0.0)
'''),
    "sign_correlation": (("owens_t",), '''
def sign_correlation(h, k, rho):
    """E[sign(X + h) sign(Y + k)], X and Y standard normal with correlation rho, by Owen's T."""
    side = np.sqrt(np.maximum(1 - rho*rho, 1e-300))
    value = 2*np.arcsin(rho)/np.pi
    for u, v in ((h, k), (k, h)):
        slope = (v - rho*u)/np.where(u == 0, 1.0, u*side)
        value = value + np.where(u == 0, 0.0, 2*np.arctan(slope)/np.pi - 4*owens_t(u, slope))
    return value
'''),
}


def used_helpers(text: str) -> list[str]:
    """The names of the helpers that a source calls.

    >>> used_helpers("q = average(power(x, 5), w_x, 1)")
    ['average', 'power']
    """
    return [name for name in HELPERS if re.search(rf"(?<![\w.]){name}\(", text)]
