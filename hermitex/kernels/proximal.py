"""f - omega + V l'(f) = 0 for arrays: a proximal operator without closed form as a function of the generated module.

The left side rises in f with slope 1 at least, so the root is within |g(f)| of any f: a bracket at no cost. Newton
inside the bracket, its middle where a step does not halve: monotone for the logistic loss from 0, and no start 2-cycles.
"""

from __future__ import annotations

from typing import Any

from sympy import Expr, oo

from hermitex.errors import NoClosedForm
from hermitex.kernels.generated_text import docstring_text
from hermitex.symbolic.losses import Loss

SOLVER = '''
def minimise(slope, curvature, omega, V, low=-np.inf, high=np.inf):
    """argmin_f (f - omega)**2/(2V) + l(f), l convex on (low, high): the root of f - omega + V l'(f), by Newton inside a bracket."""
    omega, V, low, high = (np.array(a, dtype=float) for a in np.broadcast_arrays(omega, V, low, high))
    shape = omega.shape
    omega, V, low, high = omega.ravel(), V.ravel(), low.ravel(), high.ravel()
    root = np.full(omega.shape, np.nan)
    f = np.where((low < 0) & (high > 0), 0.0, np.where((low < omega) & (omega < high), omega, middle(low, high)))
    for start in (f, np.where((low < omega) & (omega < high), omega, f)):  # both ends of the bracket from what rises
        g = start - omega + V*slope(start, slice(None))
        low = np.where(np.isfinite(g), np.maximum(low, np.where(g > 0, start - g, start)), low)
        high = np.where(np.isfinite(g), np.minimum(high, np.where(g > 0, start, start - g)), high)
    f = np.clip(f, low, high)
    k = np.flatnonzero(np.isfinite(omega + V))  # the points that are still open
    f, low, high, before = f[k], low[k], high[k], np.full(k.shape, np.inf)
    for _ in range(2200):
        if not k.size:
            break
        g = f - omega[k] + V[k]*slope(f, k)
        step = -g/(1 + V[k]*curvature(f, k))
        low, high = np.where(g > 0, low, np.maximum(low, f)), np.where(g > 0, np.minimum(high, f), high)
        trial = f + step
        good = (np.abs(step) <= before/2) & (trial >= low) & (trial <= high)
        trial = trial if good.all() else np.where(good, trial, middle(low, high))
        before = np.abs(trial - f)
        settled = np.abs(g) <= 4.4e-16*(np.abs(f) + np.abs(omega[k]))  # the rounding of g: no f is seen to be better
        done = settled | (before <= 4e-16*np.abs(trial)) | (high <= low) | (np.abs(step) <= 1e-300)
        root[k[done]] = np.where(settled, f, trial)[done]
        k, f, low, high, before = k[~done], trial[~done], low[~done], high[~done], before[~done]
    return root.reshape(shape)


def middle(low, high):
    """A point between two ends; an end may be infinite."""
    bounded = np.where(np.isinf(low), np.where(np.isinf(high), 0.0, high - 1 - np.abs(high)),
                       np.where(np.isinf(high), low + 1 + np.abs(low), 0.0))
    return np.where(np.isinf(low) | np.isinf(high), bounded, low + (high - low)/2)
'''


def function_source(name: str, loss: Loss, printed: Any, named: Any = str) -> str:
    """The source of `name(omega, V, p1, ...)`, the minimiser of one smooth loss; `printed` writes an expression, `named` a symbol.

    Raises NoClosedForm where the loss has a switch: such a loss is resolved into its branches first.
    """
    if not loss.smooth:
        raise NoClosedForm(loss, "a proximal operator with kinks reaches the printer unresolved", "Use .doit()")
    arguments = "".join(f", {named(p)}" for p in loss.parameters)
    lines = [f"def {name}(omega, V{arguments}):",
             f'    """argmin_f (f - omega)**2/(2V) + {docstring_text(_one_line(loss.expr))}."""']
    if loss.parameters:
        names = arguments[2:]
        lines.append(f"    omega, V, {names} = np.broadcast_arrays(omega, V, {names})")
    for label, form in (("slope", loss.slope), ("curvature", loss.curvature)):
        lines += [f"    def {label}({named(loss.f)}, k):"]
        used = [named(p) for p in loss.parameters if p in form.free_symbols]
        text = printed(form)
        for p in used:
            lines.append(f"        {p} = flat_{p}[k]")
        lines.append(f"        return {text}" + (f" + 0.0*{named(loss.f)}" if loss.f not in form.free_symbols else ""))
    flat = [f"    flat_{named(p)} = np.ravel({named(p)})" for p in loss.parameters]
    at = next(i for i, line in enumerate(lines) if line.startswith("    def "))
    lines[at:at] = flat
    ends = "".join(f", {label}={printed(e)}" for label, e in zip(("low", "high"), loss.domain, strict=True) if e not in (oo, -oo))
    lines.append(f"    return minimise(slope, curvature, omega, V{ends})")
    return "\n".join(lines)


def _one_line(expr: Expr) -> str:
    text = " ".join(str(expr).split())
    return text if len(text) <= 80 else text[:77] + "..."
