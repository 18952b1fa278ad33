"""Random bags of a prior: their seed depends on prior and bag size only, so all problems share the bags."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy

from privcore.distributions.prior_finite import FinitePrior
from privcore.distributions.prior_notation import prior
from privcore.labels.poisson_binomial import Array, pmf
from privcore.labels.problems import AtEta, LabelAdvantageTail, LabelProblem
from privcore.labels.rows import members, one_by_one
from privcore.labels.unchanged import decided

_CHUNK = 2**18
"""Number of probabilities that are held in memory at a time."""
_ERROR = 2.0**-48
"""Relative error of the probabilities of randomized response."""
_ATTACKED = 8
"""Number of rows outside each bag whose labels are attacked."""
_KEPT = 2**23
"""Number of probabilities that are kept for the next problem with the same bags."""


@dataclass(frozen=True, kw_only=True)
class BagDraws:
    """Independent samples of the quantity in question, each between two bounds.

    Attributes:
        lower: Lower bounds of the samples.
        upper: Upper bounds of the samples; the same array if their error is relative.
        usual: 1 for each bag, or 0 for one with an unusually small variance.
        largest: Upper bound of the samples of usual bags.
        unusual: Upper bound of the contribution of the unusual bags to the mean.
        error: Relative error of the bounds.
    """

    lower: Array
    upper: Array
    usual: Array | float = 1.0
    largest: float = 1.0
    unusual: float = 0.0
    error: float = 0.0

    @property
    def samples(self) -> Array:
        """The middles of the bounds."""
        return 0.5 * (self.lower + self.upper)


def laws_of_others(text: str, bag_size: int, samples: int) -> Iterator[Array]:
    """Yield distributions of the sum of the other labels of random bags, in chunks of shape (rows, bag_size).

    The seed is a function of the prior and the bag size alone. So the estimated advantages of all mechanisms
    are means over the same bags, and if one mechanism is better in each bag, its estimate is better, too.

    Args:
        text: Canonical spelling of the prior.
        bag_size: Examples in a bag, the attacked one included.
        samples: Number of bags.
    """
    if samples * bag_size <= _KEPT:
        yield from _kept(text, bag_size, samples)
    else:
        yield from _drawn(text, bag_size, samples)


@lru_cache(maxsize=2)
def _kept(text: str, bag_size: int, samples: int) -> tuple[Array, ...]:
    return tuple(_drawn(text, bag_size, samples))


def _drawn(text: str, bag_size: int, samples: int) -> Iterator[Array]:
    rng = np.random.default_rng(seed_of(text, bag_size))
    law = prior(text)
    rows = max(1, _CHUNK // bag_size)
    for start in range(0, samples, rows):
        yield pmf(law.draw(rng, (min(rows, samples - start), bag_size - 1)))


@dataclass(frozen=True, kw_only=True)
class RowDraws:
    """Some random bags of different rows of a file, without one of their rows, and rows that are not in them.

    Attributes:
        others: Distributions of the sum of the labels of the others, shape (bags, bag_size).
        attacked: Etas of a few rows that are not among the others, shape (bags, rows).
        rates: Means of eta over all rows of the file that are not among the others, shape (bags,).
    """

    others: Array
    attacked: Array
    rates: Array


def bags_of_rows(problem: LabelProblem, samples: int) -> Iterator[RowDraws]:
    """Yield random bags of a partition of a file, in chunks, from the seed of its prior and bag size.

    Args:
        problem: The file and the bag size.
        samples: Number of bags; each is that of an independent partition.
    """
    law, others = problem.distribution, problem.bag_size - 1
    assert isinstance(law, FinitePrior)
    assert law.counts is not None
    total, mean = int(law.counts.sum()), law.mean
    own = problem.eta if isinstance(problem, AtEta) else None
    if own is not None:  # the attacked row is not among the others
        law = FinitePrior(law.text, *law.atoms, counts=law.counts - (law.values == own))
    more = min(_ATTACKED, total - others) if own is None else 0
    rng = np.random.default_rng(seed_of(problem.prior, problem.bag_size))
    rows = max(1, _CHUNK // problem.bag_size)
    for start in range(0, samples, rows):
        drawn = law.draw_rows(rng, min(rows, samples - start), others + more)
        attacked = drawn[:, others:] if own is None else np.full((drawn.shape[0], 1), own)
        left = (total * mean - drawn[:, :others].sum(axis=1)) / (total - others)
        rates = left if own is None else np.full(drawn.shape[0], own)
        yield RowDraws(others=pmf(drawn[:, :others]), attacked=attacked, rates=np.clip(rates, 0.0, 1.0))


def with_attacked(problem: LabelProblem, samples: int) -> Iterator[RowDraws]:
    """Yield the bags of independent examples, in chunks, each with a few examples that are attacked in turn.

    Args:
        problem: The prior and the bag size.
        samples: Number of bags.
    """
    law = problem.distribution
    rng = np.random.default_rng(seed_of(f"{problem.prior} attacked", problem.bag_size))
    for others in laws_of_others(problem.prior, problem.bag_size, samples):
        attacked = law.draw(rng, (others.shape[0], _ATTACKED))
        yield RowDraws(others=others, attacked=attacked, rates=np.full(others.shape[0], law.mean))


def advantages_of_rows(problem: LabelProblem, some: RowDraws) -> tuple[Array, Array]:
    """Return bounds of the mean advantage over the attacked rows of each bag, each of shape (bags,)."""
    each = [
        one_by_one(some.others, etas, problem.mechanism, problem.label_epsilon)
        for etas in np.ascontiguousarray(some.attacked.T)
    ]
    low, high = (sum(ends) / len(each) for ends in zip(*each, strict=True))
    return np.asarray(low) * (1.0 - _ERROR), np.asarray(high) * (1.0 + _ERROR)


def shares_of_rows(
    others: Array, attacked: Array, mechanism: str, epsilon: float, threshold: float
) -> tuple[Array, Array]:
    """Return bounds of the share of attacked examples of each bag whose advantage exceeds a threshold.

    Args:
        others: Distributions of the sum of the other labels, shape (bags, bag_size).
        attacked: Etas of several examples that are attacked in turn, shape (bags, examples).
        mechanism: A mechanism with bags.
        epsilon: Label differential privacy of its noise; infinity for `llp`.
        threshold: Threshold of the advantage.
    """
    low, high = np.zeros(attacked.shape[0]), np.zeros(attacked.shape[0])
    for etas in np.ascontiguousarray(attacked.T):
        ends = one_by_one(others, etas, mechanism, epsilon)
        low += (ends[0] > threshold) / attacked.shape[1]
        high += ((ends[1] > threshold) & ~decided(etas, epsilon)) / attacked.shape[1]
    return np.minimum(1.0, low), np.minimum(1.0, high)


def seed_of(text: str, bag_size: int) -> int:
    """Return the seed of the bags of a prior."""
    return int.from_bytes(hashlib.blake2b(f"{text} {bag_size}".encode(), digest_size=8).digest())


def advantages_of_bags(problem: LabelAdvantageTail, samples: int, seed: int) -> tuple[Array, Array]:
    """Return bounds of `samples` draws of the mean advantage over the bags of the problem."""
    rng = np.random.default_rng(seed)
    law, epsilon = problem.distribution, problem.label_epsilon
    if problem.mechanism == "rr":
        flipped = float(scipy.special.expit(-epsilon))
        rows = max(1, _CHUNK // problem.bags)
        lows: list[Array] = []
        highs: list[Array] = []
        for start in range(0, samples, rows):
            etas = law.draw(rng, (min(rows, samples - start), problem.bags))
            wrong = np.minimum(etas, 1.0 - etas)
            for ends, sign in ((lows, -_ERROR), (highs, _ERROR)):
                gains = np.maximum(0.0, wrong * (1.0 + sign) - flipped * (1.0 - sign))
                ends.append(gains.mean(axis=1))
        means = np.concatenate(lows), np.concatenate(highs)
    else:
        drawn = np.empty((samples, 2))
        shape = (problem.bags, problem.bag_size)
        for i in range(samples):
            if problem.is_partition and isinstance(law, FinitePrior):
                etas = law.draw_rows(rng, 1, problem.bags * problem.bag_size).reshape(shape)
            else:
                etas = law.draw(rng, shape)
            bags = (members(bag, problem.mechanism, epsilon) for bag in etas)
            drawn[i] = sum(np.array([low.mean(), high.mean()]) for low, high in bags)
        means = drawn[:, 0] / problem.bags, drawn[:, 1] / problem.bags
    error = (problem.bags + problem.bag_size + 8.0) * 2.0**-52  # of the means
    return means[0] * (1.0 - error), means[1] * (1.0 + error)
