"""Counts on which the privacy of a run depends: full batches, and examples of one owner in one step."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from privcore.numerics.binomial import window
from privcore.numerics.rounding import BINOMIAL_WINDOW, UNIT

SUMS = 10.0 * BINOMIAL_WINDOW
"""Slack of sums of binomial probabilities, each of relative error `BINOMIAL_WINDOW` or twice that."""
TINY = 1e-280
"""Quotients of smaller probabilities would lack digits."""
PARTITIONS = 1e-12
"""Counted: 9000 u. The weight of a partition takes one power and at most 3 operations for each of at most 30
examples."""


@dataclass(frozen=True)
class Truncation:
    """Poisson batches cut to a largest size, from the view of one example.

    Attributes:
        room: Upper bound of the probability that the other examples leave room in the batch.
        full: Upper bound of the probability that the other examples fill the batch.
        rate: Upper bound of the probability that the batch includes the example, if the others fill it.
        mean: Lower bound of the probability that the batch includes the example.
        cut: Upper bound of the probability that the batch is cut.
    """

    room: float
    full: float
    rate: float
    mean: float
    cut: float


@lru_cache(maxsize=256)
def truncation(examples: int, probability: float, largest: int) -> Truncation:
    r"""Return the probabilities of truncated batches.

    With $C \sim \mathrm{Bin}(n - 1, q)$ other examples in the sample, the batch includes the example with
    probability $q B / (C + 1)$ if $C \ge B$. Since $(C + 1) \Pr(C + 1 \text{ of } n) = n q \Pr(C)$, its mean
    given $C \ge B$ is $B \Pr(\mathrm{Bin}(n, q) > B) / (n \Pr(C \ge B))$.

    Args:
        examples: Size n of the data set.
        probability: Rate q of the Poisson sample.
        largest: Largest batch B.

    Source:
        arXiv:2411.04205, Theorem 3.3; arXiv:2508.15089.
    """
    others, everyone = window(examples - 1, probability), window(examples, probability)
    more, less = 1.0 + SUMS, 1.0 - SUMS
    full, cut = others.at_least(largest), everyone.at_least(largest + 1)
    room = float(others.law[: max(0, largest - others.first)].sum())
    # Both add up to 1, so the larger one has a small slack as the complement of the smaller one.
    filled = 1.0 - room * less if room < 0.5 else full * more
    left = room * more if room < 0.5 else 1.0 - full * less
    kept = everyone.law[: max(0, largest + 1 - everyone.first)]
    mean = (float(kept @ everyone.counts[: kept.size]) + largest * cut) / examples
    rate = largest * cut / (examples * full) if cut > TINY else probability  # which is never less
    return Truncation(
        room=min(1.0, left * (1.0 + 4.0 * UNIT)),
        full=min(1.0, filled * (1.0 + 4.0 * UNIT)),
        rate=min(probability, rate * more * more),
        mean=mean * less,
        cut=min(1.0, cut * more),
    )


@lru_cache(maxsize=64)
def occupancies(group: int, steps: int) -> dict[int, float]:
    r"""Return the distribution of $\sum_i c_i^2$ if m examples are assigned to t steps at random.

    A partition of m into r parts, $a_j$ of them equal to j, has the probability
    $t! / ((t - r)! \prod_j a_j!) \cdot m! / \prod_j (j!)^{a_j} / t^m$. Upper bounds of the probabilities.

    Args:
        group: Number of examples m.
        steps: Number of steps t.

    Example:
        >>> {v: round(p, 9) for v, p in occupancies(group=2, steps=4).items()}
        {4: 0.25, 2: 0.75}
    """
    found: dict[int, float] = {}
    for parts in _partitions(group, group):
        if len(parts) > steps:
            continue
        ways = math.factorial(group)
        for part in parts:
            ways //= math.factorial(part)
        for times in Counter(parts).values():
            ways //= math.factorial(times)
        probability = float(ways) / float(steps) ** group * math.prod(steps - r for r in range(len(parts)))
        size = sum(part * part for part in parts)
        found[size] = found.get(size, 0.0) + probability * (1.0 + PARTITIONS)
    return found


def _partitions(total: int, most: int) -> Iterator[tuple[int, ...]]:
    """Yield the partitions of a number into parts of at most `most`, descending."""
    if total == 0:
        yield ()
    for part in range(min(total, most), 0, -1):
        for rest in _partitions(total - part, part):
            yield (part, *rest)
