"""Random bags of a prior: their seed depends on prior and bag size only, so all problems share the bags."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy

from privcore.distributions.prior_notation import prior
from privcore.labels.poisson_binomial import Array, pmf
from privcore.labels.problems import LabelAdvantageTail
from privcore.labels.rows import members

_CHUNK = 2**18
"""Number of probabilities that are held in memory at a time."""
_ERROR = 2.0**-48
"""Relative error of the probabilities of randomized response."""
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
        for i in range(samples):
            bags = (
                members(law.draw(rng, (problem.bag_size,)), problem.mechanism, epsilon)
                for _ in range(problem.bags)
            )
            drawn[i] = sum(np.array([low.mean(), high.mean()]) for low, high in bags)
        means = drawn[:, 0] / problem.bags, drawn[:, 1] / problem.bags
    error = (problem.bags + problem.bag_size + 8.0) * 2.0**-52  # of the means
    return means[0] * (1.0 - error), means[1] * (1.0 + error)
