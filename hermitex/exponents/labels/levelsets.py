"""1/alpha_c = int A(y)^2 / B(y) dy over labels y = u(z), A = sum He_2 phi/|u'|, B = sum phi/|u'| over the preimages.

The line is cut into branches on which u is monotone. Between two consecutive critical labels the same branches are
active; the integral runs along one of them, s = a + (b - a) sin(theta)^2, which makes the square-root singularities
at critical labels analytic. Plateaus are atoms. Everything at the working precision of mpmath.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from sympy import Expr, Float, Symbol, diff, horner

from hermitex.exponents.labels.label_levels import polynomial
from hermitex.kernels.arrays import lambdify
from hermitex.symbolic.arithmetic import mp, mpf
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.pieces import breakpoints, pieces
from hermitex.symbolic.precise import evaluate

# 28, of which 22 are claimed; up to 200 where cancellation has cost digits
_DIGITS, _MOST_DIGITS = 28, 200
_GUARD = 6  # of _DIGITS, which are not claimed: sums and slopes near a turning point lose them; chosen by trial


@dataclass(frozen=True)
class LevelBranch:
    """A maximal interval [lo, hi] on which u is smooth and monotone, with the labels at its ends."""

    lo: mpf
    hi: mpf
    u: Callable
    slope: Callable
    at_lo: mpf
    at_hi: mpf

    def covers(self, low: mpf, high: mpf) -> bool:
        """True if every label between low and high has a preimage here."""
        bottom, top = min(self.at_lo, self.at_hi), max(self.at_lo, self.at_hi)
        return bottom <= low and high <= top

    def preimage(self, label: mpf, start: mpf | None = None) -> mpf:
        """The point of the branch with that label: Newton, kept inside a shrinking bracket; `start`: that of a label near by."""
        a, b = self.lo, self.hi
        rising = self.at_hi > self.at_lo
        if label == self.at_lo:
            return a
        if label == self.at_hi:
            return b
        s = (a + b) / 2 if start is None else start
        tiny, last = mpf(10) ** (2 - mp.dps), mpf(10) ** (4 - mp.dps / 2)
        for _ in range(4 * mp.prec):
            value = self.u(s) - label
            if value == 0:
                return s
            if (value > 0) == rising:
                b = s
            else:
                a = s
            slope = self.slope(s)
            new = s - value / slope if slope else a
            newton = a < new < b
            if not newton:
                new = (a + b) / 2
            size = max(1, abs(s))
            if abs(new - s) <= tiny * size or b - a <= tiny * size:
                return new
            # The last step against the distance to the end of the branch: the error left is step^2 u''/(2 u'), and u''/u'
            # is about 1/(distance to the nearest critical point).
            if newton and abs(new - s) <= last * min(s - self.lo, self.hi - s):
                return new
            s = new
        return s


def inverse_threshold(u: Expr, x: Symbol, *, even: bool) -> tuple[mpf, mpf]:
    """(1/alpha_c, error) of the deterministic label u(z), by its level sets.

    Parameters: `even`: u is even, so that the half line is enough. Raises NoClosedForm if the kinks are not found.
    """
    digits = _DIGITS
    while True:
        checkpoint("integrating over the labels")
        with mp.workdps(digits):
            value, error = _at_precision(u, x, even)
            # What cancels is of the size of 1, A of that of sqrt(value): A carries digits - lost digits.
            lost = int(max(0, mp.ceil(-mp.log10(value) / 2))) if value else digits
            slack = mpf(10) ** (_GUARD - digits)
            error += 2 * slack * (mp.sqrt(2 * value) + slack)
        if lost <= 4 or digits >= min(_MOST_DIGITS, _DIGITS + lost):
            return value, error
        digits = min(_MOST_DIGITS, _DIGITS + lost)


def _at_precision(u: Expr, x: Symbol, even: bool) -> tuple[mpf, mpf]:
    """The same at the working precision, without what rounding adds to the error."""
    branches, atoms = monotone_branches(u, x, even=even)
    total = sum((a * a / b for a, b in atoms.values()), mpf(0))
    error = mpf(0)
    knots = _distinct([v for b in branches for v in (b.at_lo, b.at_hi)])
    # Labels that are equal but for rounding (the maxima of a cosine) are one knot, or a branch would be missed.
    branches = [replace(b, at_lo=_nearest(b.at_lo, knots), at_hi=_nearest(b.at_hi, knots)) for b in branches]
    for low, high in pairwise(knots):
        checkpoint("integrating over the labels")
        active = [b for b in branches if b.covers(low, high)]
        if active:
            value, err = _between(active, low, high)
            total, error = total + value, error + err
    scale = 2 if even else 1
    return scale * total, scale * error


def _window() -> int:
    """W with P(|z| > W) below the digits that are claimed: 10 at 28 digits, where it is 2e-23."""
    return int(mp.sqrt(2 * mp.log(10) * (mp.dps - _GUARD)))


def _tolerance() -> mpf:
    """Of one integral over labels, absolute: more than the first digits are asked for where something cancels."""
    return mpf(10) ** (-16 - 2 * (mp.dps - _DIGITS) + (4 if mp.dps > _DIGITS else 0))


def monotone_branches(u: Expr, x: Symbol, *, even: bool) -> tuple[list[LevelBranch], dict[mpf, tuple[mpf, mpf]]]:
    """Monotone branches, and atoms {label: (E[He_2 1], P)} of the plateaus, on the window."""
    window = _window()
    low = 0 if even else -window
    u = u.xreplace({node: Float(evaluate(node, mp.dps + 5), mp.dps + 5) for node in u.atoms(Expectation)})
    branches: list[LevelBranch] = []
    atoms: dict[mpf, tuple[mpf, mpf]] = {}
    for piece in pieces(u, x, low, window):
        checkpoint("cutting the target into branches")
        lo, hi = _number(piece.lo), _number(piece.hi)
        if not piece.expr.has(x):
            label = _merge_label(_number(piece.expr), atoms)
            old = atoms.get(label, (mpf(0), mpf(0)))
            atoms[label] = (old[0] + _he2_mass(lo, hi), old[1] + _mass(lo, hi))
            continue
        inner = [_number(p) for p in breakpoints(piece.expr, x, (piece.lo, piece.hi))]
        ends = [lo, *[p for p in inner if lo < p < hi], hi]
        for a, b in pairwise(ends):
            branches += _monotone_branches(piece.expr, x, a, b)
    return branches, atoms


def _number(point: Expr) -> mpf:
    return evaluate(point, mp.dps + 5)


def _merge_label(label: mpf, atoms: dict) -> mpf:
    return next((v for v in atoms if abs(v - label) < mpf(10) ** (5 - mp.dps) * max(1, abs(v))), label)


def _phi(s: mpf) -> mpf:
    return mp.exp(-s * s / 2) / mp.sqrt(2 * mp.pi)


def _mass(a: mpf, b: mpf) -> mpf:
    root = mp.sqrt(2)
    return (mp.erfc(a / root) - mp.erfc(b / root)) / 2


def _he2_mass(a: mpf, b: mpf) -> mpf:
    return a * _phi(a) - b * _phi(b)


def _monotone_branches(expr: Expr, x: Symbol, lo: mpf, hi: mpf) -> list[LevelBranch]:
    """Cut (lo, hi) at the critical points of a smooth expression, by a scan that is refined until it is stable."""
    u, slope, bend = (_function(e, x) for e in (expr, diff(expr, x), diff(expr, x, 2)))
    ends = [lo, *_critical(slope, bend, (lo, hi)), hi]
    found = []
    for a, b in pairwise(ends):
        at = [_at_end(u, end, inward) for end, inward in ((a, b), (b, a))]
        found.append(LevelBranch(a, b, u, slope, at[0], at[1]))
    return found


def _function(expr: Expr, x: Symbol) -> Callable:
    poly = polynomial(expr, x) if expr.has(x) else None
    compiled = lambdify(x, expr if poly is None else horner(poly), modules=[mp.functions(), "mpmath"])

    def value(s: mpf) -> mpf:
        return mp.re(compiled(s))

    return value


def _at_end(u: Callable, end: mpf, inward: mpf) -> mpf:
    """The one-sided limit of u at an end, +-inf at a pole."""
    try:
        value = u(end)
        if mp.isfinite(value):
            return value
    except (ZeroDivisionError, ValueError, OverflowError):
        pass
    near = u(end + (inward - end) * mpf(10) ** (-mp.dps // 2))
    nearer = u(end + (inward - end) * mpf(10) ** (-mp.dps))
    if abs(nearer - near) < mpf(10) ** (-mp.dps // 3) * max(1, abs(near)):
        return nearer
    return mp.inf if nearer > near else -mp.inf


def _critical(slope: Callable, bend: Callable, ends: tuple[mpf, mpf]) -> list[mpf]:
    least_cells = 512  # to begin with: doubled, up to 32 times as many, until the number of turning points stays
    counts, roots, cells = -1, [], least_cells
    while True:
        checkpoint("looking for critical points")
        roots = _scan(slope, bend, ends, cells)
        if len(roots) == counts or cells > 16 * least_cells:
            return roots
        counts, cells = len(roots), 2 * cells


def _scan(slope: Callable, bend: Callable, ends: tuple[mpf, mpf], cells: int) -> list[mpf]:
    lo, hi = ends
    with mp.workdps(15):
        grid = [lo + (hi - lo) * (k + mpf(1) / 3) / cells for k in range(cells)]
        values = [slope(s) for s in grid]
    roots = []
    for k in range(cells - 1):
        a, b, fa, fb = grid[k], grid[k + 1], values[k], values[k + 1]
        if fa == 0:
            roots.append(a)
        elif (fa > 0) != (fb > 0):
            roots.append(_bisect(slope, bend, a, b))
        elif k > 0 and abs(fa) < abs(fb) and abs(fa) <= abs(values[k - 1]):
            touching = _inflection_point(slope, bend, grid[k - 1], b)
            if touching is not None:
                roots.append(touching)
    return roots


def _bisect(f: Callable, df: Callable, a: mpf, b: mpf) -> mpf:
    rising = f(b) > f(a)
    return LevelBranch(a, b, f, df, -mp.inf if rising else mp.inf,
                  mp.inf if rising else -mp.inf).preimage(mpf(0))


def _inflection_point(slope: Callable, bend: Callable, a: mpf, b: mpf) -> mpf | None:
    """A point where u' touches zero without changing sign (an inflection with a horizontal tangent)."""
    if (bend(a) > 0) == (bend(b) > 0):
        return None
    point = mp.findroot(bend, (a, b), solver="anderson", verify=False)
    if not a < point < b:
        return None
    return point if abs(slope(point)) < mpf(10) ** (-mp.dps // 2) * max(abs(slope(a)), abs(slope(b))) else None


def _distinct(values: list[mpf]) -> list[mpf]:
    kept: list[mpf] = []
    for v in sorted(values):
        if not kept or v - kept[-1] > mpf(10) ** (6 - mp.dps) * max(1, abs(v)):
            kept.append(v)
    return kept


def _nearest(value: mpf, knots: list[mpf]) -> mpf:
    return value if mp.isinf(value) else min((k for k in knots if mp.isfinite(k)), key=lambda k: abs(k - value))


def _between(active: list[LevelBranch], low: mpf, high: mpf) -> tuple[mpf, mpf]:
    """The integral over the labels in (low, high), along the branch on which it converges best.

    Next to the label of a branch that runs off to infinity, z^4 exp(-z^2) at 0, only that branch is a smooth variable.
    """
    best: tuple[mpf, mpf] | None = None
    guides = 4  # branches along which the integral is tried, those of most mass first; chosen by trial
    for guide in sorted(active, key=lambda b: -_phi(min(abs(b.lo), abs(b.hi))))[:guides]:
        found = _along(guide, [b for b in active if b is not guide], (low, high))
        if found[1] <= _tolerance():
            return found
        if best is None or found[1] < best[1]:
            best = found
    assert best is not None
    return best


def _along(guide: LevelBranch, others: list[LevelBranch], labels: tuple[mpf, mpf]) -> tuple[mpf, mpf]:
    a, b = (guide.preimage(label) for label in labels)
    last: list[mpf | None] = [None]*len(others)

    def integrand(theta: mpf) -> mpf:
        s = a + (b - a) * mp.sin(theta) ** 2
        label, steep = guide.u(s), abs(guide.slope(s))
        top, bottom = (s * s - 1) * _phi(s), _phi(s)
        for n, branch in enumerate(others):
            t = last[n] = branch.preimage(label, last[n])
            weight = _phi(t) * steep / abs(branch.slope(t))
            top, bottom = top + (t * t - 1) * weight, bottom + weight
        return top * top / bottom * abs(b - a) * mp.sin(2 * theta) if bottom else mpf(0)

    return adaptive(integrand, mpf(0), mp.pi / 2, depth=6)


def adaptive(f: Callable, a: mpf, b: mpf, *, tolerance: mpf | None = None, depth: int = 12) -> tuple[mpf, mpf]:
    """Gauss-Legendre with 12, 24 and 48 nodes, halving the interval where two orders disagree: (value, error)."""
    tolerance = _tolerance() / 10 if tolerance is None else tolerance
    coarse = None
    for degree in (3, 4, 5):
        checkpoint("integrating over the labels")
        fine = sum((w * f(s) for s, w in _legendre(a, b, degree)), mpf(0))
        if coarse is not None and abs(fine - coarse) <= tolerance:
            return fine, abs(fine - coarse)
        difference = abs(fine - coarse) if coarse is not None else mp.inf
        coarse = fine
    if depth == 0:
        return fine, difference
    middle = (a + b) / 2
    left = adaptive(f, a, middle, tolerance=tolerance / 2, depth=depth - 1)
    right = adaptive(f, middle, b, tolerance=tolerance / 2, depth=depth - 1)
    return left[0] + right[0], left[1] + right[1]


def _legendre(a: mpf, b: mpf, degree: int) -> list[tuple[mpf, mpf]]:
    from mpmath.calculus.quadrature import GaussLegendre

    rule = _RULES.setdefault("rule", GaussLegendre(mp))
    return sorted(rule.get_nodes(a, b, degree, mp.prec))


_RULES: dict[str, Any] = {}

