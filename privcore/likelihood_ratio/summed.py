r"""Lower distributions of the ratio of k steps out of t: the sum of the losses of Poisson sampling.

A step with the ratio X has the loss $a = \ln(1 - z + z X)$ if its example is sampled with the rate z. The
outputs of t steps, if k steps use the example, are reduced to the sum of these losses for one rate z. The
losses are rounded to multiples of a spacing, so the sum is an integer, whose distributions P and Q are
convolutions of those of one step. The reduction is a post-processing for every rate and every spacing, so
the result is a lower distribution. It is nearly tight if the rate is such that about k participations are
expected, given outputs at which the ratio is near the threshold in question.
"""

import math
from dataclasses import dataclass

import numpy as np

from privcore.likelihood_ratio.distribution import (
    UNDERFLOW,
    LikelihoodRangeError,
    RatioDistribution,
    lowest_value,
)
from privcore.likelihood_ratio.kernel import Array
from privcore.numerics.compiled import compiled
from privcore.numerics.rounding import UNIT

LARGEST_THRESHOLD = 500.0
"""Logarithm of the largest kappa for which the distributions give a bound."""
MOST_SUMS = 2**16
"""Largest number of sums in a distribution; a finer spacing than this allows is refused."""


ENDS = 256.0 * UNIT
"""Counted: relative error of the values of the first and last cell of a step, 2 (64 + 16) u. The drifts of a
step are relative to the masses of these cells, which sums merge with others."""


@dataclass(frozen=True, kw_only=True)
class _Sums:
    """Masses of consecutive sums from `least` on; `error` is their relative error."""

    least: int
    p: Array
    error: float


def summed(
    base: RatioDistribution,
    participations: int,
    steps: int,
    *,
    epochs: int = 1,
    rate: float,
    spacing: float,
    tail: float,
    most: float,
) -> RatioDistribution:
    r"""Return a lower distribution of the ratio of some steps chosen at random out of many, in each epoch.

    Masses of P and Q of at most $h = \text{tail}\, e^{-\text{most}}$ in total are left out. This raises
    $\sum (P - \kappa Q)_+$ and $\sum (Q - \kappa P)_+$ by at most $\kappa h$.

    Args:
        base: A lower distribution of the ratio of one step.
        participations: Number k of steps of an epoch that use the example, 1 <= k <= steps.
        steps: Number t of steps of an epoch, among which they are chosen.
        epochs: Number of epochs whose losses are summed.
        rate: Sampling rate z of the losses, in (0, 1].
        spacing: Distance of two values of a loss, in nats.
        tail: Largest change of both directions by the tails left out, for epsilons of at most `most`.
        most: Largest epsilon at which the profile will be used, at most `LARGEST_THRESHOLD`.

    Raises:
        LikelihoodRangeError: The distributions have too many sums, or exceed the range of doubles.

    Example:
        >>> base = RatioDistribution(x=np.array([0.5, 3.0]), p=np.array([0.8, 0.2]))
        >>> law = summed(base, 2, 3, rate=0.5, spacing=0.01, tail=1e-12, most=1.0)
        >>> [float(round(x, 9)) for x in law.x], round(float(law.p @ law.x), 9)
        ([0.25, 1.083333333, 4.0, 9.0], 1.0)
    """
    unused, used = _one_step(base, rate, spacing)
    # The steps are the leaves of a tree with two tails a node.
    cut = tail * math.exp(-most) / (4.0 * steps * epochs)
    others = _power(unused, steps - participations, cut)
    p, q = (_trimmed(_convolved(others, _power(one, participations, cut)), cut) for one in (used, unused))
    p, q = _power(p, epochs, cut), _power(q, epochs, cut)
    least, end = min(p.least, q.least), max(p.least + p.p.size, q.least + q.p.size)
    mass, mean = np.zeros(end - least), np.zeros(end - least)
    mass[q.least - least :][: q.p.size] = q.p
    mean[p.least - least :][: p.p.size] = p.p
    possible = mass > 0.0  # elsewhere Q has only tails that are left out
    with np.errstate(over="ignore"):
        x = mean[possible] / mass[possible]
    if not np.all(np.isfinite(x)):
        raise LikelihoodRangeError
    order = np.argsort(x, kind="stable")
    lost = math.exp(most) * UNDERFLOW * MOST_SUMS**3  # products of masses that became 0, in all convolutions
    return RatioDistribution(
        x=x[order],
        p=mass[possible][order],
        infinite=float(np.sum(mean[~possible])),
        mass_error=max(p.error, q.error) + UNIT * (end - least),
        value_error=p.error + q.error + 4.0 * UNIT,
        drift_remove=participations * epochs * base.drift_remove + tail + lost,
        drift_add=steps * epochs * base.drift_add + tail + lost,
    )


def losses(base: RatioDistribution, rate: float) -> Array:
    """Return the loss of every atom; a value that became 0 has the loss of the smallest positive value."""
    x = np.maximum(base.x, lowest_value(base))
    loss: Array = np.log((1.0 - rate) + rate * x) if rate < 1.0 else np.log(x)
    return loss


def _one_step(base: RatioDistribution, rate: float, spacing: float) -> tuple[_Sums, _Sums]:
    """Return the masses of the rounded losses of a step without and with the example."""
    place = np.rint(losses(base, rate) / spacing).astype(np.int64)
    least, count = int(place.min()), int(np.ptp(place)) + 1
    if count > MOST_SUMS:
        raise LikelihoodRangeError
    added = (base.x.size + 2) * UNIT
    unused = np.bincount(place - least, weights=base.p, minlength=count).astype(np.float64)
    used = np.bincount(place - least, weights=base.p * base.x, minlength=count).astype(np.float64)
    return (
        _Sums(least=least, p=unused, error=base.mass_error + added),
        _Sums(least=least, p=used, error=base.mass_error + base.value_error + added + ENDS),
    )


def _power(one: _Sums, times: int, cut: float) -> _Sums:
    """Return the sum of several independent copies, by binary powering; 0 copies have the sum 0."""
    if times == 0:
        return _Sums(least=0, p=np.ones(1), error=0.0)
    result = one
    for bit in bin(times)[3:]:
        result = _trimmed(_convolved(result, result), cut)
        if bit == "1":
            result = _trimmed(_convolved(result, one), cut)
    return result


def _convolved(one: _Sums, other: _Sums) -> _Sums:
    """Return the sum of two independent sums."""
    if one.p.size + other.p.size > MOST_SUMS:
        raise LikelihoodRangeError
    short, long = sorted((one.p, other.p), key=len)
    rounding = (short.size + 2) * UNIT  # all terms are positive
    return _Sums(
        least=one.least + other.least,
        p=_products(short, long),
        error=one.error + other.error + rounding,
    )


def _trimmed(sums: _Sums, cut: float) -> _Sums:
    """Return the sums without a tail at either end whose mass is at most half of `cut`."""
    below, above = np.cumsum(sums.p), np.cumsum(sums.p[::-1])  # half, since both have rounding errors
    first = int(np.searchsorted(below, 0.5 * cut, side="right"))
    last = sums.p.size - int(np.searchsorted(above, 0.5 * cut, side="right"))
    if first >= last:
        raise LikelihoodRangeError
    return _Sums(least=sums.least + first, p=sums.p[first:last], error=sums.error)


@compiled()
def _products(short: Array, long: Array) -> Array:
    """Return the convolution of two sequences of non-negative numbers, in a fixed order of the terms."""
    result = np.zeros(short.size + long.size - 1)
    for i in range(short.size):
        weight = short[i]
        if weight > 0.0:
            for j in range(long.size):
                result[i + j] += weight * long[j]
    return result
