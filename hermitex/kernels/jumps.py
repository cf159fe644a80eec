r"""{z2: g(x, z2) jumps}: a function of two variables that takes few values, line by line.

The jumps on each line z1 = const are found to rounding; the nodes in z1 are graded towards the lines at which jumps appear, vanish
or meet, where they move like square roots or have a kink.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from hermitex.kernels.panel_rules import distinct_sorted, near_knots

Array = np.ndarray


def jump_lines(of: Callable[[Sequence[Array]], Array], labels: Array, panel: float,
            cuts: Array) -> list[tuple[float, float, Array, Array]]:
    """(z1, its weight, the jumps in z2, the level between them): between the cuts in z1, lines of another word and crossings."""
    reach = 8.0  # P(|z| > 8) = 1e-15
    scanned = 1601  # points of a line, 0.01 apart; chosen by trial
    scan = np.linspace(-reach - 0.011, reach + 0.013, scanned)  # not on the jumps of everyday targets

    order = np.argsort(labels)
    between = (labels[order][1:] + labels[order][:-1])/2

    def kind(x: Array, t: Array) -> Array:
        return np.asarray(order[np.searchsorted(between, of([x, t]))])

    def word(x: float) -> tuple[int, ...]:
        row = kind(np.full(scanned, x), scan)
        return tuple(row[np.concatenate([[True], np.diff(row) != 0])])

    count = 321  # lines that are scanned for another word, 0.05 apart; chosen by trial
    lines = np.linspace(-reach - 0.007, reach + 0.003, count)
    words = [word(x) for x in lines]
    turns = list(cuts)  # floor(z1) + floor(z2): the same labels in the same order on both sides
    for (a, b), (wa, wb) in zip(pairwise(lines), pairwise(words), strict=True):
        if wa == wb:
            continue
        for _ in range(46):
            middle = (a + b)/2
            a, b = (middle, b) if word(middle) == wa else (a, middle)
        turns.append((a + b)/2)
    turns += _crossings(kind, lines, words, scan)
    ends = distinct_sorted(np.clip([-reach, *turns, reach], -reach, reach))
    nodes = 10  # points of a panel
    xs, ws = near_knots(ends, panel, (9, 4), panel, nodes)
    xs, ws = xs[ws > 0], ws[ws > 0]
    return [(float(x), float(c), *found) for x, c, found in zip(xs, ws, _jumps(kind, xs, scan), strict=True)]


def _crossings(kind: Callable[[Array, Array], Array], lines: Array, words: Sequence[tuple[int, ...]], scan: Array, *,
               meet: float = 1e-3) -> list[float]:
    """Where two jumps meet and part again, with the same labels in the same order on both sides: the label between has a kink.

    From either side their distance is followed down to a line on which the scan still tells them apart, and on to zero.
    """
    found: list[float] = []
    if max(map(len, words)) < 3:
        return found
    apart = [np.diff(jumps) for jumps, _ in _jumps(kind, lines, scan)]
    # meet: of two jumps, as they are followed from both sides
    for k in range(1, len(lines) - 2):
        if len(words[k]) < 3 or len({words[k + i] for i in (-1, 0, 1, 2)}) > 1 or len({len(g) for g in apart[k - 1:k + 3]}) > 1:
            continue
        gaps = np.array(apart[k - 1:k + 3]).T
        for n in np.flatnonzero((gaps[:, 0] > gaps[:, 1]) & (gaps[:, 3] > gaps[:, 2])):
            meets = [_meeting_point(kind, scan, int(n), words[k], *lines[[k + i, k + i + side]], *gaps[n, [1 + i, 1 + i + side]])
                     for i, side in ((0, -1), (1, 1))]
            if all(lines[k] <= x <= lines[k + 1] for x in meets) and abs(meets[0] - meets[1]) < meet:
                found.append(round(sum(meets)/2, 9))
    return found


def _meeting_point(kind: Callable[[Array, Array], Array], scan: Array, n: int, word: tuple[int, ...], x: float, before: float,
                   gap: float,
         wider: float) -> float:
    """Where the n-th distance comes to zero, on from `gap` at x and `wider` at the line before."""
    for _ in range(4):
        zero = x - gap*(x - before)/(gap - wider)
        part = max(0.25, 3*(scan[1] - scan[0])/gap)  # of the way that is left
        if part > 0.5:
            break
        (jumps, which), = _jumps(kind, np.array([closer := zero + (x - zero)*part]), scan)
        if tuple(which) != word:
            break
        before, wider, x, gap = x, gap, closer, float(np.diff(jumps)[n])
    return float(zero)


def _jumps(kind: Callable[[Array, Array], Array], x: Array, scan: Array) -> list[tuple[Array, Array]]:
    """(where the label jumps on the line z1 = x, the label between) for each x; two jumps in one step of the scan are separated."""
    x = np.asarray(x, dtype=float)
    rows = kind(*np.broadcast_arrays(x[:, None], scan))
    line, at = np.nonzero(np.diff(rows, axis=1))
    a, end, left, right = scan[at], scan[at + 1], rows[line, at], rows[line, at + 1]
    lines, jumps, then = [np.arange(len(x))], [np.full(len(x), -np.inf)], [rows[:, 0]]
    most = 4  # jumps that are looked for in one step of the scan
    for _ in range(most):
        b = end
        for _ in range(50):
            middle = (a + b)/2
            same = kind(x[line], middle) == left
            a, b = np.where(same, middle, a), np.where(same, b, middle)
        new = kind(x[line], b)
        lines.append(line)
        jumps.append((a + b)/2)
        then.append(new)
        if not (more := new != right).any():
            break
        line, a, end, left, right = line[more], b[more], end[more], new[more], right[more]
    of, where, label = map(np.concatenate, (lines, jumps, then))
    order = np.lexsort((where, of))
    ends = np.searchsorted(of[order], np.arange(len(x) + 1))
    return [(where[order[p + 1:q]], label[order[p:q]]) for p, q in pairwise(ends)]
