"""Random bags of a prior: their seed depends on prior and bag size only, so all problems share the bags."""

import hashlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray

from privcore.distributions.prior_finite import FinitePrior
from privcore.distributions.prior_notation import prior
from privcore.labels.bounds.reach import decided
from privcore.labels.problems import AtEta, LabelAdvantageTail, LabelProblem
from privcore.labels.sums.poisson_binomial import Array, pmf
from privcore.labels.sums.rows import members, one_by_one
from privcore.numerics.bounded_mean import betting_lower, betting_upper
from privcore.numerics.clopper_pearson import rate_at_most
from privcore.numerics.rounding import PARTS_OF_BAGS

CHUNK = 2**18
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
        alike: Whether all bags have the same quantity.
    """

    lower: Array
    upper: Array
    usual: Array | float = 1.0
    largest: float = 1.0
    unusual: float = 0.0
    error: float = 0.0
    alike: bool = False

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
    rows = max(1, CHUNK // bag_size)
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


def rows_of_others(problem: LabelProblem) -> tuple[Array, NDArray[np.int64]]:
    """Return the values of a partition, and the numbers of rows that may be among the others of a bag."""
    law = problem.distribution
    assert isinstance(law, FinitePrior)
    assert law.counts is not None
    own = law.values == problem.eta if isinstance(problem, AtEta) else 0
    return law.values, np.asarray(law.counts - own)


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
    law = FinitePrior(law.text, *law.atoms, counts=rows_of_others(problem)[1])
    more = min(_ATTACKED, total - others) if own is None else 0
    rng = np.random.default_rng(seed_of(problem.prior, problem.bag_size))
    rows = max(1, CHUNK // problem.bag_size)
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
        low += ends[0] > threshold
        high += (ends[1] > threshold) & ~decided(etas, epsilon)
    return low / attacked.shape[1], high / attacked.shape[1]


def seed_of(text: str, bag_size: int) -> int:
    """Return the seed of the bags of a prior."""
    return int.from_bytes(hashlib.blake2b(f"{text} {bag_size}".encode(), digest_size=8).digest())


def advantages_of_bags(problem: LabelAdvantageTail, samples: int, seed: int) -> tuple[Array, Array]:
    """Return bounds of `samples` draws of the mean advantage over the bags of the problem."""
    rng = np.random.default_rng(seed)
    law, epsilon = problem.distribution, problem.label_epsilon
    if problem.mechanism == "rr":
        flipped = float(scipy.special.expit(-epsilon))
        rows = max(1, CHUNK // problem.bags)
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


_PILOT = 0.5
_MOST_PARTS = 64
_FEWER = 20_000
"""Largest number of bags that are drawn for more than two parts."""
_WIDE = 3.0
"""Spread of the bags, times the root of their number and relative to the range, above which cutting the range
costs more than it saves."""


@dataclass(frozen=True, kw_only=True)
class Rung:
    """Bound of a tail: the advantage exceeds any value above the threshold with at most this probability."""

    threshold: float
    probability: float


def rungs(
    others: int, samples: int, error: float, slack: float, drawn: Callable[[int, int], Array]
) -> list[Rung]:
    r"""Return bounds of the tail of the advantage X in random bags, which hold together.

    An attacker has the features of all examples, so adding examples to a bag is post-processing. So X is at
    most the advantage in each of J disjoint parts of the bag, and these are independent: with a threshold t
    that a part exceeds with probability at most q, $\Pr[X > t] \le q^J$. The threshold is the largest
    advantage in one half of the simulated parts, and q a Clopper-Pearson bound from the other half.

    Args:
        others: Number of other examples in a bag, >= 1.
        samples: Number of simulated parts for J = 2; fewer for more parts.
        error: Probability in (0, 1) that any of the bounds fails.
        slack: Relative error of the simulated advantages.
        drawn: Returns advantages in random bags with a number of other examples, and the number of bags.

    Returns:
        Thresholds, rising, with their probabilities.
    """
    parts = [2**j for j in range(1, int(math.log2(_MOST_PARTS)) + 1) if 2**j <= others]
    found = []
    for number in parts:
        advantages = drawn(others // number, samples if number == 2 else min(samples, _FEWER))
        pilot = int(_PILOT * advantages.size)
        if pilot == 0:
            continue
        threshold = float(advantages[:pilot].max())
        above = int((advantages[pilot:] > threshold).sum())
        rate = rate_at_most(advantages.size - pilot, above, error / len(parts))
        found.append(Rung(threshold=threshold * (1.0 + 4.0 * slack), probability=rate**number))
    return sorted(found, key=lambda rung: rung.threshold)


def excess(cap: float, largest: float, tails: list[Rung]) -> float:
    r"""Return an upper bound of $E (\min(X, b) - c)_+ = \int_c^b \Pr[X > t] \, dt$.

    Args:
        cap: The value c >= 0.
        largest: The value b.
        tails: Bounds of the tail.

    Example:
        >>> tails = [Rung(threshold=1.0, probability=0.5), Rung(threshold=3.0, probability=0.25)]
        >>> round(excess(1.0, 4.0, tails), 9)
        1.25
    """
    total, start, probability = 0.0, cap, 1.0
    for rung in sorted(tails, key=lambda rung: rung.threshold):
        if start < min(rung.threshold, largest):
            total += probability * (min(rung.threshold, largest) - start)
            start = rung.threshold
        probability = min(probability, rung.probability)
    return total * (1.0 + PARTS_OF_BAGS) + probability * max(0.0, largest - start) * (1.0 + PARTS_OF_BAGS)


def ends(
    samples: Array,
    largest: float,
    others: int,
    error: float,
    slack: float,
    drawn: Callable[[int, int], Array],
) -> tuple[float, float]:
    """Return confidence bounds of the mean of advantages, by bets about the whole range or a part of it.

    The first twentieth of the bags decides whether the range is cut, and is not used again. Given these bags,
    the others are independent of the decision, and each of the two pairs of bounds fails with at most the
    error; so does the pair that is chosen. If the same bags chose and bounded, only twice the error would be
    proved; to compute both pairs with half of the error each is wider, by a fifth at confidence 0.5.

    Args:
        samples: Advantages in independent random bags, in [0, largest], shape (n,), n >= 2.
        largest: Upper bound of all advantages, > 0.
        others: Number of other examples in a bag, >= 0; with fewer than two, nothing is chosen.
        error: Probability in (0, 1) with which either bound fails.
        slack: Relative error of the advantages.
        drawn: As for `rungs`.

    Returns:
        Lower and upper confidence bounds of the mean, in [0, largest].
    """
    chosen = max(1, samples.size // 20) if others >= 2 else 0
    pilot, rest = samples[:chosen], samples[chosen:]
    if chosen and float(pilot.std()) * math.sqrt(samples.size) <= _WIDE * largest:
        return _cut_ends(pilot, rest, largest, others, error, slack, drawn)
    shares = np.minimum(1.0, rest / largest)
    return largest * betting_lower(shares, error), largest * betting_upper(shares, error)


def _cut_ends(
    pilot: Array,
    rest: Array,
    largest: float,
    others: int,
    error: float,
    slack: float,
    drawn: Callable[[int, int], Array],
) -> tuple[float, float]:
    """Return confidence bounds of the mean of advantages whose range is much larger than their spread.

    Most of the range is cut off at a cap, and the mean excess over the cap is bounded by its tail. The cap
    is a little above the largest advantage in the pilot, or a threshold of the tail, whichever is expected to
    cost less; both are independent of the other bags.
    """
    part = 0.02 * error
    tails = rungs(others, pilot.size + rest.size, part, slack, drawn)
    highest = float(pilot.max())
    first = min(largest, highest + 0.5 * (highest - float(pilot.mean())))  # so that few bags are above it
    second = min((rung.threshold for rung in tails if rung.threshold > first), default=largest)
    beyond = rest.size * excess(second, largest, tails)
    dear = (second - first) * -math.log(part) > -second * math.log(error) + beyond
    cap = min(largest, second if dear or first == 0.0 else first)
    above = rate_at_most(rest.size, int((rest > cap).sum()), part)
    tails.append(Rung(threshold=cap, probability=above))
    cut = np.minimum(1.0, rest / cap)
    most = cap * betting_upper(cut, error - 2.0 * part) + excess(cap, largest, tails)
    return cap * betting_lower(cut, error) * (1.0 - PARTS_OF_BAGS), min(largest, most * (1.0 + PARTS_OF_BAGS))
