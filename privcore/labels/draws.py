"""Random bags of a prior: their seed depends on prior and bag size only, so all problems share the bags."""

import hashlib
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import scipy

from privcore.distributions.prior_notation import prior
from privcore.labels import geometric, laplace
from privcore.labels.poisson_binomial import Array, leave_one_out, pmf
from privcore.labels.problems import LabelAdvantageTail
from privcore.labels.rows import discrete, exact_at

_CHUNK = 2**18
"""Number of probabilities that are held in memory at a time."""
_KEPT = 2**23
"""Number of probabilities that are kept for the next problem with the same bags."""


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


def advantages_of_bags(problem: LabelAdvantageTail, samples: int, seed: int) -> Array:
    """Return `samples` draws of the mean advantage over the bags of the problem, given their features."""
    rng = np.random.default_rng(seed)
    law, epsilon = problem.distribution, problem.label_epsilon
    if problem.mechanism == "rr":
        flipped = float(scipy.special.expit(-epsilon))
        rows = max(1, _CHUNK // problem.bags)
        parts = []
        for start in range(0, samples, rows):
            etas = law.draw(rng, (min(rows, samples - start), problem.bags))
            parts.append(np.maximum(0.0, np.minimum(etas, 1.0 - etas) - flipped).mean(axis=1))
        return np.concatenate(parts)
    means = np.empty(samples)
    for i in range(samples):
        total = 0.0
        for _ in range(problem.bags):
            total += float(_of_members(law.draw(rng, (problem.bag_size,)), problem.mechanism, epsilon).mean())
        means[i] = total / problem.bags
    return means


def _of_members(etas: Array, mechanism: str, epsilon: float) -> Array:
    """Return the advantages of the members of one bag."""
    laws = leave_one_out(etas)
    if discrete(mechanism):
        return exact_at(etas, *geometric.released(laws, epsilon))
    return laplace.advantages(laws, epsilon, etas)
