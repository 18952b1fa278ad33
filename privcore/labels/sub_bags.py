"""Tails of the advantage over random bags, from the advantages of parts of the bags."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from privcore.labels.poisson_binomial import Array
from privcore.numerics.betting import betting_lower, betting_upper
from privcore.numerics.clopper_pearson import rate_at_most
from privcore.numerics.rounding import PARTS_OF_BAGS

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
