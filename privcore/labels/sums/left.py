"""Mean advantages over the rows of a file that are not among the others of a bag, with proved ends."""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from privcore.labels.sums.noisy_sums import one_sided
from privcore.labels.sums.poisson_binomial import FLOOR, Array, leave_one_out, relative_error
from privcore.labels.sums.rows import discrete, likelihoods, one_by_one
from privcore.numerics.compiled import compiled
from privcore.numerics.rounding import UNIT

_PAIRS = 2**19
"""Number of likelihoods that are held in memory at a time."""
_MOST_PARTS = 64
_TIE = 2.0**-50
"""Distance from a value within which rounding may place a quotient of likelihoods on its wrong side."""
_NEAR = 5e-4
"""Relative distance of both ends for Laplace noise below which no more parts are tried."""


@dataclass(frozen=True, kw_only=True)
class SumRelease:
    """A release of the sum of labels.

    Attributes:
        mechanism: A mechanism with bags.
        epsilon: Label differential privacy of its noise; infinity for `llp`.
        parts: Number of parts between two counts for Laplace noise.
    """

    mechanism: str
    epsilon: float
    parts: int = 1


@dataclass(frozen=True, kw_only=True)
class FileRows:
    """Values of a file, with sums over all rows between 1/2 and each place.

    Attributes:
        values: Different values, rising.
        rows: Number of rows.
        sums: Sums of 1 - eta, and of eta, over the rows from each place to 1/2, then negative, shape
            (2, values + 1).
    """

    values: Array
    rows: int
    sums: Array

    @classmethod
    def of(cls, values: Array, counts: NDArray[np.int64]) -> "FileRows":
        """Return the sums for different values, rising, with their numbers of rows."""
        sums = np.zeros((2, values.size + 1))
        _outwards(values, counts, int(np.searchsorted(values, 0.5, side="right")), sums)
        return cls(values=values, rows=int(counts.sum()), sums=sums)

    def advantages(self, others: Array, members: Array, release: SumRelease) -> tuple[Array, Array]:
        r"""Return bounds of the mean advantage over the rows that are left, for each bag.

        A release with the likelihoods $g_1, g_0$ overturns $H(g_1, g_0)$, which is convex and homogeneous.
        For Laplace noise the likelihoods between two points of a lattice, a distance h apart, are positive
        combinations of those at both, whose coefficients have the integral
        $\tanh(\varepsilon h / 2) / \varepsilon$ each. So the integral of H over this part is at most this
        times the sum of both $H$, and at least this times the $H$ of the sum.

        Args:
            others: Distributions of the sum of the other labels, shape (bags, k).
            members: Values of rows of each bag that are not attacked, rising, shape (bags, number).
            release: The release.

        Returns:
            Lower and upper bounds, each of shape (bags,).

        Example:
            >>> rows = FileRows.of(np.array([0.25, 0.5]), np.array([1, 1]))
            >>> release = SumRelease(mechanism="llp", epsilon=math.inf)
            >>> low, high = rows.advantages(np.array([[1.0]]), np.zeros((1, 0)), release)
            >>> round(float(low[0]), 12), round(float(high[0]), 12)
            (0.375, 0.375)
        """
        if discrete(release.mechanism):
            one, zero, error = likelihoods(others, release.epsilon)
            return self._sums(one, zero, members, -error), self._sums(one, zero, members, error)
        error = (
            relative_error(others.shape[1]) + (8.0 * others.shape[1] + release.epsilon + 64.0) * 8.0 * UNIT
        )
        lows: list[Array] = []
        highs: list[Array] = []
        step = max(1, _PAIRS // (others.shape[1] * release.parts + 2))
        for start in range(0, others.shape[0], step):
            some = slice(start, start + step)
            for ends, fill, sign in ((lows, _fill_parts, -1.0), (highs, _fill_points, 1.0)):
                shape = (others[some].shape[0], others.shape[1] * release.parts + 2)
                one, zero = np.zeros(shape), np.zeros(shape)
                fill(np.ascontiguousarray(others[some]), release.epsilon, release.parts, one, zero)
                ends.append(self._sums(one, zero, members[some], sign * error))
        return np.concatenate(lows), np.concatenate(highs)

    def _sums(self, one: Array, zero: Array, members: Array, error: float) -> Array:
        out = np.zeros(one.shape[0])
        _left(one, zero, self.values, self.sums, np.ascontiguousarray(members), float(self.rows), error, out)
        lost = math.copysign((one.shape[1] + 16.0) * UNIT, error)
        floor = math.copysign((one.shape[1] + 1.0) * FLOOR, error)
        return np.maximum(0.0, out * (1.0 + lost) + floor)


def parts_needed(rows: FileRows, others: Array, members: Array, release: SumRelease) -> SumRelease:
    """Return the release with enough parts between two counts for Laplace noise, as some bags show.

    Args:
        rows: The file.
        others: As for `FileRows.advantages`.
        members: The same.
        release: The release with the fewest parts.
    """
    while not discrete(release.mechanism) and release.parts < _MOST_PARTS:
        low, high = rows.advantages(others, members, release)
        if float(high.sum() - low.sum()) <= _NEAR * float(high.sum()):
            break
        release = replace(release, parts=2 * release.parts)
    return release


def mean_of_members(etas: Array, outside: Array, release: SumRelease) -> tuple[float, float]:
    """Return bounds of the mean advantage over some members of a bag, each with all others.

    Args:
        etas: Probabilities of label 1 of these members, shape (m,).
        outside: Distribution of the sum of the labels of the other members.
        release: The release; the parts do not matter.

    Example:
        >>> release = SumRelease(mechanism="llp", epsilon=math.inf)
        >>> low, high = mean_of_members(np.array([0.5]), np.array([1.0]), release)
        >>> round(low, 12), round(high, 12)
        (0.5, 0.5)
    """
    laws = leave_one_out(etas, outside)
    if discrete(release.mechanism):
        one, zero, error = likelihoods(laws, release.epsilon)
        low, high = np.zeros(etas.size), np.zeros(etas.size)
        _gains(one, zero, etas, error + 8.0 * UNIT, low, high)
    else:
        low, high = one_by_one(laws, etas, release.mechanism, release.epsilon)
    lost, floor = (laws.shape[1] + etas.size + 16.0) * UNIT, (laws.shape[1] + 1.0) * FLOOR
    return max(0.0, float(low.mean()) * (1.0 - lost) - floor), float(high.mean()) * (1.0 + lost) + floor


@compiled()
def _gains(one: Array, zero: Array, etas: Array, error: float, low: Array, high: Array) -> None:
    """Fill the overturned masses at one eta for each line, for likelihoods moved down and up by an error."""
    for i in range(etas.size):
        x1, x0 = etas[i], 1.0 - etas[i]
        if x1 > 0.5:
            one, zero = zero, one
            x1, x0 = x0, x1
        for u in range(one.shape[1]):
            a, b = x1 * one[i, u], x0 * zero[i, u]
            low[i] += max(0.0, a * (1.0 - error) - b * (1.0 + error))
            high[i] += max(0.0, a * (1.0 + error) - b * (1.0 - error))
        if etas[i] > 0.5:
            one, zero = zero, one


@compiled()
def _outwards(values: Array, counts: NDArray[np.int64], middle: int, sums: Array) -> None:
    """Fill the sums of 1 - eta and of eta, compensated, so that each errs by a few roundings."""
    for row in range(2):
        for step in (-1, 1):
            total, lost = 0.0, 0.0
            j = middle - 1 if step < 0 else middle
            while 0 <= j < values.size:
                term = counts[j] * (values[j] if row else 1.0 - values[j])
                after = total + term
                lost += (total - after) + term if total >= term else (term - after) + total
                total = after
                sums[row, j if step < 0 else j + 1] = -step * (total + lost)
                j += step


@compiled()
def _fill_points(others: Array, epsilon: float, parts: int, one: Array, zero: Array) -> None:
    """Fill likelihoods at the points of a lattice, each with the mass that moves to it."""
    k = others.shape[1]
    a1, a0, b1, b0 = np.empty(k + 1), np.empty(k + 1), np.empty(k + 1), np.empty(k + 1)
    share = math.tanh(0.5 * epsilon / parts)
    ends = 0.5 * (1.0 + share)  # half of a part, and the tail
    for i in range(others.shape[0]):
        one_sided(others[i], math.exp(-epsilon), a1, a0, b1, b0)
        for part in range(parts):
            fall = share * math.exp(-epsilon * part / parts)
            rise = share * math.exp(-epsilon * (parts - part) / parts)
            for m in range(k):
                one[i, m * parts + part] = a1[m] * fall + b1[m + 1] * rise
                zero[i, m * parts + part] = a0[m] * fall + b0[m + 1] * rise
        one[i, 0], zero[i, 0] = ends * b1[0], ends * b0[0]
        one[i, k * parts], zero[i, k * parts] = ends * a1[k], ends * a0[k]


@compiled()
def _fill_parts(others: Array, epsilon: float, parts: int, one: Array, zero: Array) -> None:
    """Fill the probabilities of the parts between the points of a lattice, and of both tails."""
    k = others.shape[1]
    a1, a0, b1, b0 = np.empty(k + 1), np.empty(k + 1), np.empty(k + 1), np.empty(k + 1)
    cut = -0.5 * math.expm1(-epsilon / parts)
    for i in range(others.shape[0]):
        one_sided(others[i], math.exp(-epsilon), a1, a0, b1, b0)
        for part in range(parts):
            fall = cut * math.exp(-epsilon * part / parts)
            rise = cut * math.exp(-epsilon * (parts - part - 1) / parts)
            for m in range(k):
                one[i, m * parts + part] = a1[m] * fall + b1[m + 1] * rise
                zero[i, m * parts + part] = a0[m] * fall + b0[m + 1] * rise
        one[i, k * parts], zero[i, k * parts] = 0.5 * b1[0], 0.5 * b0[0]
        one[i, k * parts + 1], zero[i, k * parts + 1] = 0.5 * a1[k], 0.5 * a0[k]


@compiled()
def _overturned(
    one: float, zero: float, values: Array, sums: Array, members: Array, owns: Array, errors: Array
) -> float:
    """Return the overturned mass of one output over the rows that are left, moved by its error.

    Args:
        one: Likelihood for label 1.
        zero: Likelihood for label 0.
        values: As for `FileRows`.
        sums: The same.
        members: Values of the rows that are not left, rising.
        owns: Sums over them.
        errors: Relative errors of the sums of both kinds, and an absolute error for a row next to the place.
    """
    t = zero / (one + zero)
    at, own = np.searchsorted(values, t, side="right"), np.searchsorted(members, t, side="right")
    gain = one * (sums[1, at] - owns[1, own]) - zero * (sums[0, at] - owns[0, own])
    error = errors[0] * (one * abs(sums[1, at]) + zero * abs(sums[0, at]))
    error += errors[1] * (one * abs(owns[1, own]) + zero * abs(owns[0, own]))
    # rounding of t may count rows on the wrong side, all with gains of nearly 0
    if (at > 0 and t - values[at - 1] <= _TIE) or (at < values.size and values[at] - t <= _TIE):
        error += errors[2] * (one + zero)
    return float(max(0.0, gain + error))


@compiled()
def _left(
    one: Array,
    zero: Array,
    values: Array,
    sums: Array,
    members: Array,
    rows: float,
    error: float,
    out: Array,
) -> None:
    """Fill the mean overturned masses over the rows that are left, with likelihoods moved by an error."""
    number = members.shape[1]
    sign = 1.0 if error > 0.0 else -1.0
    errors = sign * np.array([16.0 * UNIT, 2.0 * (number + 8.0) * UNIT, 2.0 * _TIE * rows])
    owns = np.zeros((2, number + 1))
    for i in range(one.shape[0]):
        own = members[i]
        middle = np.searchsorted(own, 0.5, side="right")
        owns[:, middle] = 0.0
        for j in range(middle - 1, -1, -1):
            owns[0, j], owns[1, j] = owns[0, j + 1] + (1.0 - own[j]), owns[1, j + 1] + own[j]
        for j in range(middle, number):
            owns[0, j + 1], owns[1, j + 1] = owns[0, j] - (1.0 - own[j]), owns[1, j] - own[j]
        total = 0.0
        for u in range(one.shape[1]):
            a, b = one[i, u], zero[i, u]
            if a + b == 0.0:
                continue
            toward = error if a > b else -error
            near = abs(a - b) <= 4.0 * abs(error) * (a + b)
            if near and error < 0.0:
                continue
            gain = _overturned(a * (1.0 + toward), b * (1.0 - toward), values, sums, own, owns, errors)
            if near:
                less, more = a * (1.0 - toward), b * (1.0 + toward)
                gain = max(gain, _overturned(less, more, values, sums, own, owns, errors))
            total += gain
        out[i] = total / (rows - number)
