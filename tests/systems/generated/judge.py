"""Whether a number is a solution, asked of Newton's method at 30 digits that is begun at it; nothing here knows of the package."""

import numpy as np
from draws import MP


def wrong(d, point, values):
    """Why the numbers are no solution, or "": Newton's method at 30 digits, begun at them, must stay where it is."""
    x = [float(v) for v in values]
    if not all(map(np.isfinite, x)):
        return f"{x} is not finite"
    if out := [u for u, v in zip(d.unknowns, x, strict=True) if u in d.domain and not d.domain[u][0] <= v <= d.domain[u][1]]:
        return f"{x}: {out[0]} lies outside of {d.domain[out[0]]}"
    if d.never:
        return f"{x} solves what has no solution"
    if d.residuals is None:
        return ""
    if not d.smooth:
        return _wrong_by_differences(d, point, x)
    try:
        now = d.residuals(point, [MP.mpf(v) for v in x])
    except ZeroDivisionError:
        return f"the equations are not defined at {x}"
    if all(v == 0 for v in now):
        return ""
    try:
        with MP.workdps(30):
            y = _polished(lambda *v: d.residuals(point, list(v)), [MP.mpf(v) for v in x])
    except (ZeroDivisionError, ValueError, OverflowError) as error:
        return f"{x}: Newton's method at 30 digits fails ({error}); residuals {[MP.nstr(v, 3) for v in now]}"
    size = max(max(abs(v) for v in x), 1e-6)  # what is smaller counts as one of that size, in the package too
    off = max(abs(a - b) for a, b in zip(x, y, strict=True)) / size
    return (
        ""
        if off < 1e-6
        else f"{x} is {MP.nstr(off, 3)} away from {[MP.nstr(v, 8) for v in y]}; residuals {[MP.nstr(v, 3) for v in now]}"
    )


def unlike(d, point, found):
    """Which observables are not those of the root, polished at 30 digits from the unknowns that were found."""
    if d.observed is None:
        return ""
    with MP.workdps(40):
        root = _polished(lambda *v: d.residuals(point, list(v)), [MP.mpf(float(found[u])) for u in d.unknowns])
    true = d.observed(point, [str(v) for v in root])
    off = {n: abs(float(found[n]) - v)/max(abs(v), 1e-3) for n, v in true.items()}
    return "; ".join(f"{n} = {float(found[n])!r} is {MP.nstr(v, 3)} away from {MP.nstr(true[n], 12)}"
                     for n, v in off.items() if not v < 1e-6)


def slope(d, point, x):
    """d rhs/dx of x = rhs(x), by a difference quotient at 30 digits."""
    h = MP.mpf(max(abs(x), 1e-10)) * MP.mpf("1e-10")
    up, down = (d.residuals(point, [MP.mpf(x) + s * h])[0] for s in (1, -1))
    return float(MP.re(1 - (up - down) / (2 * h)))


def _polished(F, x):
    """Newton's method with difference quotients at 30 digits; it must settle."""
    n, last = len(x), None
    for _ in range(60):
        f = F(*x)
        if any(not MP.isfinite(v) or MP.im(v) != 0 for v in f):
            raise ValueError("not real")
        J = MP.matrix(n, n)
        for j in range(n):
            h = max(abs(x[j]), MP.mpf("1e-15")) * MP.mpf("1e-12")
            up, down = list(x), list(x)
            up[j] += h
            down[j] -= h
            for i, (a, b) in enumerate(zip(F(*up), F(*down), strict=True)):
                J[i, j] = MP.re(a - b) / (2 * h)  # below its root 0 the square root of x is imaginary
        step = MP.lu_solve(J, MP.matrix([-v for v in f]))
        while any(MP.im(v) != 0 for v in F(*(a + b for a, b in zip(x, step, strict=True)))):
            step /= 2  # the square root of x is real on one side of its root 0
        x = [a + b for a, b in zip(x, step, strict=True)]
        last = max(abs(v) for v in step) / max(max(abs(v) for v in x), MP.mpf("1e-15"))
        if last < 1e-14:
            return x
    raise ValueError(f"does not settle, last step {MP.nstr(last, 3)}")


def _wrong_by_differences(d, point, x):
    """The Newton step from x in floats, its slopes by differences; a slope below 1e-3 counts as that."""

    def F(v):
        return np.array([float(r) for r in d.residuals(point, list(v))])

    x = np.array(x)
    h = 1e-4 * np.maximum(np.abs(x), 1e-3)
    J = np.array([(F(x + h[j] * e) - F(x - h[j] * e)) / (2 * h[j]) for j, e in enumerate(np.eye(len(x)))]).T
    step = F(x) / max(abs(J[0, 0]), 1e-3) if len(x) == 1 else np.linalg.solve(J, F(x))
    off = float(np.max(np.abs(step) / np.maximum(np.abs(x), 1e-3)))
    return "" if off < 1e-6 else f"{x.tolist()}: off by {off:.1e}, relative"
