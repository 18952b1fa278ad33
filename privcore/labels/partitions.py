"""Random bags of a partition of a file: the mean advantage in each over many rows, and a cap on it."""

import math
from functools import cache

import numpy as np

from privcore.distributions.prior_finite import FinitePrior
from privcore.labels.cells import coarser_and_spread
from privcore.labels.draws import CHUNK, BagDraws, rows_of_others, seed_of
from privcore.labels.problems import AtEta, LabelProblem
from privcore.labels.sums.left import FileRows, SumRelease, mean_of_members, parts_needed
from privcore.labels.sums.poisson_binomial import Array, binomial, pmf
from privcore.numerics.bounded_mean import least_mean
from privcore.numerics.rounding import FEW_FUNCTIONS
from privcore.numerics.sums import dot

_ATTACKED = 256
"""Number of members of a bag that are attacked in turn, if fewer rows than this are left."""
_WHOLE = 1024
"""Largest number of rows of a file that is a single bag whose members are all attacked."""
_TRIED = 16
"""Bags for choosing the parts of Laplace noise."""
_POINTS = tuple(sorted({2.0**-j for j in range(1, 10)} | {1.0 - 2.0**-j for j in range(1, 10)}))
_RARE = np.array([1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8, 1e-10, 1e-13])
"""Probabilities of the bags without a cap, and of few members at a point."""
_RATES = np.geomspace(0.02, 20.0, 32)
"""Parameters of Chernoff's bounds."""
_SPARE = 1e-9
"""Relative error of a mean over the bins of a file, with room to spare."""
_PRODUCTS = 1e-12
"""Relative error of the products of caps and shares, with room to spare."""
_COST = 6.0
"""Width of bets about the range, times the number of bags and relative to the range, for a choice of caps."""


def draws_of_partition(problem: LabelProblem, samples: int) -> BagDraws:
    r"""Return independent samples whose mean is the advantage in a random partition of a file.

    Given the others of a bag, the attacked row is a random one of those that are left. If enough of them are
    left, a sample is the mean advantage over all of them. Otherwise it is the mean over some members of a
    bag, each with all others. Both are unbiased, as all rows of a bag are in random order.

    The samples have caps, except in rare bags. With a number c, an eta of another member is spread to 0, c
    and 1 with its mean kept, to c with probability $w = \min(\eta / c, (1 - \eta) / (1 - c))$. By convexity
    the advantage does not fall, and it depends only on the number M of others at c: it is f(M), with the sum
    of M labels of mean c as the only other one, and falls with M. Given the sum W of the weights, M is at
    most m with a probability bounded by Hoeffding's inequality, so a lower bound of W gives a cap. In random
    bags of different rows, $E e^{-\lambda W}$ is at most that of independent draws (Hoeffding, 1963, Theorem
    4), which bounds the probability of a smaller W. The bets are about the advantage up to one cap, and its
    mean excess is bounded by those probabilities, times the next caps.

    Args:
        problem: The file, the bag size, and the mechanism.
        samples: Number of bags; each is that of an independent partition.
    """
    law, others = _rows_that_may_be_drawn(problem), problem.bag_size - 1
    assert law.counts is not None
    release = SumRelease(mechanism=problem.mechanism, epsilon=problem.label_epsilon)
    rows, left = FileRows.of(law.values, law.counts), int(law.counts.sum()) - others
    if isinstance(problem, AtEta):
        rows, left = FileRows.of(np.array([problem.eta]), np.array([1])), 1
    members = attacked_members(problem)
    drawn = others + 1 if members else others
    caps = _caps(rows, law, release, others, drawn, members or left)
    largest, unusual = min(caps, key=lambda each: _COST / samples * each[0] + each[1])

    total = int(law.counts.sum())
    alike = drawn == 0 or (drawn == total and members in {0, drawn})
    number = 1 if alike else samples
    rng = np.random.default_rng(seed_of(problem.prior, problem.bag_size))
    step = max(1, CHUNK // problem.bag_size)
    lows: list[Array] = []
    highs: list[Array] = []
    for start in range(0, number, step):
        bags = law.draw_rows(rng, min(step, number - start), drawn)
        if members:
            each = [mean_of_members(bag[:members], pmf(bag[members:]), release) for bag in bags]
            low, high = (np.array(ends) for ends in zip(*each, strict=True))
        else:
            bags.sort(axis=1)
            laws, known = pmf(bags), bags[:, :0] if isinstance(problem, AtEta) else bags
            if not lows:
                release = parts_needed(rows, laws[:_TRIED], known[:_TRIED], release)
            low, high = rows.advantages(laws, known, release)
        lows.append(low)
        highs.append(high)
    return BagDraws(
        lower=np.concatenate(lows),
        upper=np.concatenate(highs),
        largest=largest,
        unusual=unusual,
        error=_PRODUCTS,
        alike=alike,
    )


def attacked_members(problem: LabelProblem) -> int:
    """Return the number of members of each bag that are attacked in turn; 0 for the rows that are left.

    Args:
        problem: The file and the bag size.
    """
    counts, k = problem.distribution.counts, problem.bag_size
    assert counts is not None
    left = int(counts.sum()) - k + 1
    if isinstance(problem, AtEta) or left >= min(k, _ATTACKED):
        return 0
    return k if left == 1 and k <= _WHOLE else min(k, _ATTACKED)


def _rows_that_may_be_drawn(problem: LabelProblem) -> FinitePrior:
    """Return the values of the rows that may be among the others of a bag."""
    law = problem.distribution
    assert isinstance(law, FinitePrior)
    if not isinstance(problem, AtEta):
        return law
    values, counts = rows_of_others(problem)
    some = counts > 0
    return FinitePrior(problem.prior, values[some], counts[some] / counts.sum(), 1e-12, counts[some])


def _caps(
    rows: FileRows, file: FinitePrior, release: SumRelease, others: int, drawn: int, attacked: int
) -> list[tuple[float, float]]:
    """Return caps on the mean advantage over attacked rows of a bag, each with the mean excess over it.

    Args:
        rows: The rows that may be attacked.
        file: The rows that may be drawn.
        release: The release.
        others: Number of other members of a bag.
        drawn: Number of drawn rows; one more if the attacked ones are among them.
        attacked: Number of attacked rows of a bag.
    """
    none = np.zeros((1, 0))
    half = FileRows.of(np.array([0.5]), np.ones(1, dtype=np.int64))

    @cache
    def most(number: int, point: float) -> float:
        """Return the largest mean advantage over attacked rows with this number of others at the point."""
        laws = binomial(number, point, 1.0 - point)[None, :]
        mean, clear = (float(some.advantages(laws, none, release)[1][0]) for some in (rows, half))
        return min(mean * rows.rows / attacked, clear) * (1.0 + FEW_FUNCTIONS)

    def cap(point: float, least: float) -> float:
        """Return the cap for bags with at least this sum of weights."""
        mean = max(0.0, least - (drawn - others)) / others
        numbers = [_least_number(mean, others, seldom) for seldom in _RARE]
        each = [most(number, point) for number in (*numbers, 0)]
        return math.fsum(x * y for x, y in zip((1.0, *_RARE), each, strict=True)) * (1.0 + FEW_FUNCTIONS)

    everything, spread = most(0, 0.5), coarser_and_spread(file)[1]
    caps = np.full(len(_RARE) + 1, everything)
    for point in _POINTS if others else ():
        leasts = _least_weights(*spread, point, drawn)
        caps[:-1] = np.minimum(caps[:-1], [cap(point, least) for least in leasts])
    caps = np.minimum.accumulate(caps[::-1])[::-1]  # a rarer exception allows no smaller cap
    rest = np.cumsum((_RARE * caps[1:])[::-1])[::-1] * (1.0 + FEW_FUNCTIONS)
    return list(zip(caps.tolist(), [*rest.tolist(), 0.0], strict=True))


def _least_weights(values: Array, shares: Array, point: float, drawn: int) -> list[float]:
    """Return numbers that the sum of the weights of random rows exceeds, except with each probability.

    The weight is a concave function of eta, so the bins of a file may be spread to their ends.
    """
    weights = np.minimum(values / point, (1.0 - values) / (1.0 - point))
    logs = np.log(dot(np.exp(-_RATES[:, None] * weights), shares) * (1.0 + _SPARE))
    return [max(0.0, float(np.max((math.log(rare) - drawn * logs) / _RATES))) for rare in _RARE]


def _least_number(mean: float, others: int, seldom: float) -> int:
    """Return a number that as many events with a mean probability reach, except with a probability."""
    least = least_mean(mean, others, seldom) * (1.0 - FEW_FUNCTIONS)
    return min(others, math.floor(others * least) + 1) if least > 0.0 else 0
