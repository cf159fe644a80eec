# ruff: noqa: B905 - of equal length throughout, and a line of an exported file has room for less
"""dx/dt = f(t, x) by extrapolation of the midpoint rule, twice: with smaller steps on finer nodes for its error."""

import numpy as np

from hermitex.systems.standalone.solving import SECONDS, Chunk, answered, nothing, read_points, violated

SUBSTEPS = np.array([2, 4, 6, 8, 10, 12, 14, 16])  # of the midpoint rule: order 16 in the step


def extrapolated(f, t, x, h):
    """x after a step of length h, (n, points), and how far the last two columns of the extrapolation are apart."""
    first, table = f(t, x), []
    for n in SUBSTEPS:
        a, b = x, x + h/n*first
        for k in range(1, n):
            a, b = b, a + 2*h/n*f(t + k*h/n, b)
        row = [(a + b + h/n*f(t + h, b))/2]  # Gragg's smoothing
        for before, m in zip(table, SUBSTEPS[len(table) - 1::-1] if table else ()):
            row.append(row[-1] + (row[-1] - before)/((n/m)**2 - 1))
        table = row
    return table[-1], table[-1] - table[-2]


def integrated(f, times, x, ends, tolerance, until):
    """The states at the times, (times, n, points), and why the flow ended before the last of them."""
    t, h, size, out, why = times[0], (times[-1] - times[0])/8, np.abs(x) + 1e-6, [x], ""
    for end in times[1:]:
        while t != end and not why:
            h = end - t if np.abs(h) >= np.abs(end - t)*0.999 else h
            new, off = extrapolated(f, t, x, h)
            off = np.max(np.abs(off)/np.maximum(np.abs(new), 1e-2*size))
            if off <= tolerance:
                t, x = t + h if h != end - t else end, new
                left = ~((x >= ends[:, :1]) & (x <= ends[:, 1:]))
                why = f"it leaves its domain at t = {t:g}" if left.any() else ""
            h *= min(4.0, 0.9*(tolerance/max(off, 1e-300))**(1/15)) if np.isfinite(off) and off > 0 else 4.0 if off == 0 else 0.1
            why = why or ("the time is up" if SECONDS() > until else f"its steps vanish at t = {t:g}" if np.abs(h) < 1e-12*np.abs(
                times[-1] - times[0]) else "")
        out.append(x if not why else np.full_like(x, np.nan))
    return np.array(out), why


def flow_points(code, numbers, start, t, tolerance, budget=None):
    """Every variable and observable over time, the times along the last axis; NotSolved where a trajectory is not found."""
    times, names = np.ravel(np.asarray(t, dtype=float)), [u for u in code.unknowns if u != "t"]
    alone, times = times.size == 1, np.concatenate([[0.0], times])[-max(times.size, 2):]
    ordered = alone or np.all(np.diff(times) > 0) or np.all(np.diff(times) < 0)
    if np.ndim(t) > 1 or not np.isfinite(times).all() or not ordered or not 0 < tolerance < 1:
        raise ValueError("solve: the times in t increase, or decrease, from where the flow starts; tolerance is between 0 and 1")
    if missing := [u for u in names if u not in start]:
        raise ValueError(f"solve: where does {', '.join(missing)} start? Give --start {missing[0]}=NUMBER")
    numbers, guess, why, shape = read_points(code, numbers, start)
    until, found, error = SECONDS() + (np.inf if budget is None else budget), {}, np.full(len(why), np.inf)
    look, renew = (code.functions.get(name, nothing) for name in ("observables", "follow"))
    for i in np.flatnonzero(why == ""):
        with np.errstate(all="ignore"):
            c = Chunk(code, numbers, guess, [i], len(why), until)
            begin, ends, level, runs = c.first(names), np.concatenate(c.ends(names), 1), 0, []
            path = np.array([begin])
            while level < 5 and not error[i] <= tolerance:
                for x, s in zip(path[[0, -1]], times[[0, -1]]):  # the nodes suit where the flow starts and where it ends
                    renew(c, np.array([x[names.index(u)] if u in names else [s] for u in code.unknowns]), level)
                for other in (False, True):
                    s, quad = c.begin(other)

                    def rate(t, x, c=c, s=s, quad=quad, ends=ends):
                        state = c.put(s, (*names, "t"), [*np.clip(x, ends[:, :1], ends[:, 1:]), [t]])
                        return c.row(code.functions["right_hand_sides"](state, quad), names, "rhs/")

                    path, why[i] = integrated(rate, times, begin, ends, max(tolerance/(300 if other else 30), 1e-15), until)
                    seen = [look(c.put(s, (*names, "t"), [*x, [t]]), quad) for t, x in zip(times, path)]
                    runs.append(path[..., 0].T)
                values = dict(zip(names, runs[-1])) | {n: np.ravel([np.ravel(o[n])[0] for o in seen]) for n in seen[0]}
                size = np.maximum(np.abs(runs[-1]), 1e-6)
                error[i], level = np.max(np.nan_to_num(np.abs(runs[-1] - runs[-2])/size, nan=np.inf)), level + 1
        laws = violated({n: values.pop(n) for n in list(values) if n.startswith("law [")}, times)  # if late
        if np.any(laws != ""):  # if late
            error[i], why[i] = np.inf, laws[laws != ""][0]
        for n, v in values.items():
            found.setdefault(n, np.full((len(why), len(times)), np.nan))[i] = v
    why = np.where((why == "") & ~(error <= tolerance), [f"its error is {e:.1e}" for e in error], why)
    found = {n: (v[:, -1] if alone else v).reshape((*shape, *(() if alone else times.shape))) for n, v in found.items()}
    good = error <= tolerance
    values = {"t": times[-1] if alone else times, **found, "error": error.reshape(shape), "converged": good.reshape(shape)}
    return answered(code, numbers, values, good, why, "a shorter time, or a looser tolerance")
