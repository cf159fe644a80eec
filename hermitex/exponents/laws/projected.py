"""E[m_a m_b] >= b_a G^-1 b_b, b_j = E[He_a(z) q_j(Y)], G = E[q_i q_j]: a bound by functions q of the label, from samples.

m_a(y) = E[He_a(z)|Y = y]. The q are polynomials on panels of the label, in its rank, so that only the order of the labels counts;
a panel is halved if that gains more than the scatter of the samples. Any q give a lower bound of the information: a
larger alpha_c, never a smaller one, but for the scatter. Several independent samples tell the scatter of first order, and take
off the mean of that of second order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

_DEGREE = 3  # of the polynomials in the cell's number that are fitted on each panel; chosen by trial


@dataclass(frozen=True, eq=False)
class Samples:
    """Masses of cells of the label, and the sums of He_a over them, of independent samples.

    mass : shape (samples, panels, cells);  moments : shape (samples, indices, panels, cells), cells a power of two
    """

    mass: np.ndarray
    moments: np.ndarray


@dataclass(frozen=True, eq=False)
class FittedCouplings:
    """E[m_a m_b] as far as it is seen, with the panels (panel, from cell, to cell) of the fit.

    error : absolute;  scatter : the part of it that other samples would have independently
    """

    couplings: np.ndarray
    error: float
    scatter: float
    leaves: np.ndarray


def projections(samples: Samples) -> FittedCouplings:
    """The couplings of all pairs of indices, shape (indices, indices)."""
    count = samples.mass.shape[2]
    depth = count.bit_length() - 1
    levels = [_Level(samples, count >> k) for k in range(depth + 1)]
    live, missing = np.arange(samples.mass.shape[1]), 0.0
    values, leaves = [], []
    deviations = 4.0  # by which a halved panel must show more: by chance one of 30,000 does
    for k, level in enumerate(levels):
        halved = np.zeros(len(live), dtype=bool)
        if k < depth:
            halves = np.stack([2*live, 2*live + 1])
            gain = levels[k + 1].score[halves].sum(axis=0) - level.score[live]
            sure = np.sqrt(np.sum(levels[k + 1].scatter[halves]**2, axis=0))
            halved = gain > deviations*sure + 1e-13
            left = ~halved
            # What the next halving would show of the panels that stay.
            missing += 2*(abs(gain[left].sum()) + np.sqrt(np.sum(sure[left]**2)))
        kept = live[~halved]
        size = count >> k
        # So few cells are fitted one by one: m jumps there, for all that is known.
        missing += 2*level.within(kept) if size > _DEGREE + 1 else levels[depth].between(
            (kept[:, None]*size + np.arange(size)).ravel(), count)
        values.append(level.couplings(kept))
        leaves.append(np.stack([kept >> k, (kept & ((1 << k) - 1))*size, ((kept & ((1 << k) - 1)) + 1)*size], axis=1))
        live = np.sort(np.concatenate([2*live[halved], 2*live[halved] + 1]))
    total, bias, each = (np.sum([v[n] for v in values], axis=0) for n in range(3))
    spread = each.std(axis=0, ddof=1)/np.sqrt(len(each))
    scatter = deviations*float(spread.max(initial=0.0))
    error = scatter + float(np.abs(bias).max(initial=0.0)) + float(missing)
    return FittedCouplings(total - bias, error, scatter, np.concatenate(leaves))


class _Level:
    """The fits on all panels of one size.

    score : the trace of what each panel shows, without its bias;  scatter : its standard deviation of second order
    """

    def __init__(self, samples: Samples, size: int) -> None:
        self.count, indices = samples.moments.shape[:2]
        self.mass = samples.mass.mean(axis=0).reshape(-1, size)
        degree = min(_DEGREE, size - 1)
        q = np.polynomial.legendre.legvander((2*np.arange(size) + 1)/size - 1, degree)
        both = (q[:, :, None]*q[:, None, :]).reshape(size, -1)
        self.gram = (samples.mass.reshape(self.count, -1, size) @ both).reshape(self.count, -1, degree + 1, degree + 1)
        self.b = samples.moments.reshape(self.count, indices, -1, size) @ q
        gram = self.gram.mean(axis=0)
        scale = np.sqrt(np.maximum(np.einsum("kii->ki", gram), 1e-300))
        scale = scale[:, :, None]*scale[:, None, :]
        singular = 1e-9  # relative: functions of the label that differ by less on the samples count as one
        self.inverse = np.linalg.pinv(gram/scale, rcond=singular, hermitian=True)/scale
        self.fit = np.einsum("kij,akj->aki", self.inverse, self.b.mean(axis=0))
        wrong = self.b - np.einsum("skij,akj->saki", self.gram, self.fit)
        self.wrong = wrong
        bias = np.einsum("saki,kij,sakj->k", wrong, self.inverse, wrong, optimize=True)/(self.count*(self.count - 1))
        self.score = np.einsum("aki,aki->k", self.b.mean(axis=0), self.fit) - bias
        self.scatter = bias*np.sqrt(2/((degree + 1)*indices))

    def within(self, panels: np.ndarray) -> float:
        """The trace of what the cells themselves hide, `panels` (k,): the variance of the fit inside them."""
        size, degree = self.mass.shape[1], self.fit.shape[2] - 1
        places = (2*np.arange(size) + 1)/size - 1
        slope = np.polynomial.legendre.legval(places, np.polynomial.legendre.legder(np.eye(degree + 1))).reshape(degree + 1, size) \
            if degree else np.zeros((1, size))
        return float(np.sum(self.mass[panels]*(self.fit[:, panels] @ slope)**2))*(2/size)**2/12

    def between(self, cells: np.ndarray, count: int) -> float:
        """The trace that single cells may hide, where m jumps: a jump from one neighbour to the other."""
        fit = np.where(self.mass[:, 0] > 0, self.fit[:, :, 0], np.nan).reshape(len(self.fit), -1, count)
        before, after = np.full_like(fit, np.nan), np.full_like(fit, np.nan)
        before[:, :, 1:], after[:, :, :-1] = fit[:, :, :-1], fit[:, :, 1:]
        jump = np.where(np.isnan(after), fit, after) - np.where(np.isnan(before), fit, before)
        return float(np.sum(self.mass[cells, 0]*np.nan_to_num(jump).reshape(len(fit), -1)[:, cells]**2))/4

    def couplings(self, panels: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sums over the panels: what is seen with its bias, the bias, and what each sample says of it to first order."""
        b, fit, gram, wrong = self.b[:, :, panels], self.fit[:, panels], self.gram[:, panels], self.wrong[:, :, panels]
        value = np.einsum("aki,bki->ab", b.mean(axis=0), fit)
        bias = np.einsum("saki,kij,sbkj->ab", wrong, self.inverse[panels], wrong, optimize=True)/(self.count*(self.count - 1))
        half = np.einsum("saki,bki->sab", b, fit)
        each = half + half.swapaxes(1, 2) - np.einsum("aki,skij,bkj->sab", fit, gram, fit, optimize=True)
        return value, bias, each


# -- the points ---------------------------------------------------------------------------------------------------------
# Of some hundred random multipliers the ones whose P_2 is within a factor of 2.3 of the least for all n = 2^10, ..., 2^18.
_MULTIPLIERS = {1: 1, 2: 840237, 3: 253077, 4: 97309, 5: 810261, 6: 384189, 7: 167437}
MOST = max(_MULTIPLIERS)


def points(r: int, n: int, shift: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(z, shape (r, m); weights, shape (m,)) in parts, of the lattice of n = 2^k points moved by `shift` in [0, 1)^r.

    Examples
    --------
    >>> z, w = next(points(2, 2**14, np.array([0.1, 0.7])))
    >>> bool(abs(np.sum(w*z[0]**4*z[1]**2) - 3) < 1e-6)
    True
    """
    from scipy.special import ndtri

    generator = [pow(_MULTIPLIERS[r], i, n) for i in range(r)]
    wide = 2.0  # standard deviation of the points: the tails, which moments weigh, get their share; no weight exceeds 2^r
    chunk = 1 << 16  # points at once: 0.5 MB an array stays in the cache
    for start in range(0, n, chunk):
        k = np.arange(start, min(n, start + chunk))
        x = np.array([(k*a % n)/n + d for a, d in zip(generator, shift, strict=True)]) % 1
        z = wide*ndtri(np.clip(x, 1e-300, 1 - 1e-16))
        yield z, wide**r/n*np.exp(-np.sum(z*z, axis=0)*(1 - wide**-2)/2)
