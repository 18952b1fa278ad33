"""Ratios that bound a step or a run from above and below, by sampler and relation, and the counts they use.

The distance of a step is the largest change of its sum, in clipping norms, if the batch were public.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product as combinations_of
from itertools import zip_longest
from typing import Any

from privcore.likelihood_ratio.batches import (
    Aligned,
    Copies,
    Displaced,
    Opposed,
    Replaced,
    SignedSample,
    Zeroed,
)
from privcore.likelihood_ratio.ratios import Blend, Gaussian, Ratio, product, repeated, sampled
from privcore.numerics.binomial import window
from privcore.numerics.rounding import BINOMIAL_WINDOW, UNIT

MOST_COMBINATIONS = 4
"""Largest number of products of the ratios of different phases that are tried for one end."""
SLOW = 1000
"""Number of combinations from which a ratio is slow: it is tried where the others leave a wide bracket."""
MANY = 16
"""Number of phases from which only the first ratios of all phases are multiplied."""


@dataclass(frozen=True)
class Above:
    """A ratio that dominates every pair within a total variation distance.

    Attributes:
        ratio: The ratio.
        moved: Each of P and Q lies within this total variation distance of a pair that the ratio dominates.
        meant: Epsilon for which this approximation was chosen, if it depends on epsilon; it is not tried
            where another bound is below half of it.
    """

    ratio: Ratio
    moved: float = 0.0
    meant: float = 0.0


@dataclass(frozen=True)
class Bounds:
    """Ratios that bound a part of a run.

    Attributes:
        above: Each dominates the part; the best one counts.
        below: Each is the ratio of a data set, or of a post-processing of its outputs.
    """

    above: tuple[Above, ...]
    below: tuple[Ratio, ...]

    @classmethod
    def exact(cls, ratio: Ratio) -> "Bounds":
        """Return the bounds of a part with a worst pair for all thresholds."""
        return cls(above=(Above(ratio),), below=(ratio,))

    def repeated(self, times: int) -> "Bounds":
        """Return the bounds of independent repetitions."""
        above = (
            replace(each, ratio=repeated(each.ratio, times), moved=min(1.0, times * each.moved))
            for each in self.above
        )
        return Bounds(tuple(above), tuple(repeated(ratio, times) for ratio in self.below))

    @property
    def stages(self) -> tuple["Bounds", ...]:
        """The bounds in the order in which they are tried: all quick ratios, then pairs of slow ones."""
        quick = Bounds(
            tuple(each for each in self.above if each.ratio.combinations < SLOW),
            tuple(ratio for ratio in self.below if ratio.combinations < SLOW),
        )
        above = [(each,) for each in self.above if each not in quick.above]
        below = [(ratio,) for ratio in self.below if ratio not in quick.below]
        pairs = zip_longest(above, below, fillvalue=())
        return (*((quick,) if quick.above or quick.below else ()), *(Bounds(*pair) for pair in pairs))

    @property
    def tight(self) -> bool:
        """Whether one ratio is both the worst pair and the ratio of a data set."""
        return len(self.above) == 1 and self.above[0].moved == 0.0 and self.below == (self.above[0].ratio,)


def composed(parts: Sequence[Bounds]) -> Bounds:
    """Return the bounds of independent parts; the ratios of all parts are multiplied.

    If parts have several ratios, the first products are formed of the first ratios, then of the second ones,
    and so on, and then of all others, up to `MOST_COMBINATIONS`.
    """
    if len(parts) == 1:
        return parts[0]
    above = [
        Above(
            product(tuple(each.ratio for each in one)),
            moved=sum(each.moved for each in one),
            meant=max(each.meant for each in one),
        )
        for one in _chosen([part.above for part in parts])
    ]
    below = [product(one) for one in _chosen([part.below for part in parts])]
    return Bounds(above=tuple(dict.fromkeys(above)), below=tuple(dict.fromkeys(below)))


def _chosen(options: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return products of the options: of the k-th ones for every k, then of others."""
    if len(options) > MANY:
        return [tuple(each[0] for each in options)]
    most = max(len(each) for each in options)
    chosen = [tuple(each[min(k, len(each) - 1)] for each in options) for k in range(most)]
    for other in combinations_of(*options):
        if len(chosen) >= MOST_COMBINATIONS:
            break
        if other not in chosen:
            chosen.append(other)
    return chosen[: max(MOST_COMBINATIONS, most)]


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


def poisson(relation: str, s: float, rate: float, group: int = 1) -> Bounds:
    """Return the bounds of a step whose batch includes each example independently with a probability.

    Args:
        relation: `add-remove`, `zero-out` or `replace-one`, which may bring the opposite gradient.
        s: Inverse noise multiplier, > 0.
        rate: Sampling probability, in (0, 1].
        group: Number of examples that are added or removed together; 1 for replace-one.

    Raises:
        ValueError: Several examples are to be replaced.

    Source:
        arXiv:2106.08567, Theorem 11; for replace-one and groups, docs/training-runs.md.
    """
    if relation == "replace-one" and group > 1:
        raise ValueError("Expected one example for replace-one.")
    if rate == 1.0:
        return Bounds.exact(Gaussian((2.0 if relation == "replace-one" else float(group)) * s))
    if group > 1:
        return Bounds.exact(Copies(group, rate, s))
    return Bounds.exact(_one(relation, s, rate))


def _one(relation: str, s: float, rate: float) -> Ratio:
    """Return the ratio of a Poisson sample for one example."""
    return SignedSample(rate, s) if relation == "replace-one" else sampled(Gaussian(s), rate)


def fixed_size(relation: str, s: float, rate: float) -> Bounds:
    """Return the bounds of a step whose batch is a uniform subset of a fixed size.

    For zero-out, the lower ends are those of two data sets: all other gradients opposed, or all equal.

    Args:
        relation: `add-remove`, `zero-out` or `replace-one`.
        s: Inverse noise multiplier, > 0.
        rate: Batch size over number of examples, in (0, 1].

    Source:
        docs/training-runs.md.
    """
    if rate == 1.0:
        return Bounds.exact(Gaussian((1.0 if relation == "zero-out" else 2.0) * s))
    return Bounds(above=(Above(_fixed_above(relation, s, rate)),), below=_fixed_below(relation, s, rate))


def _fixed_above(relation: str, s: float, rate: float) -> Ratio:
    if relation == "add-remove":
        return sampled(Gaussian(2.0 * s), rate)
    return Replaced(rate, s) if relation == "replace-one" else Zeroed(rate, s)


def _fixed_below(relation: str, s: float, rate: float) -> tuple[Ratio, ...]:
    if relation == "zero-out":
        return Opposed(rate, s), Aligned(rate, s)
    return (sampled(Gaussian(2.0 * s), rate),)


def with_replacement(relation: str, s: float, examples: int, draws: int) -> Bounds:
    """Return the bounds of a step whose batch consists of independent uniform draws.

    For zero-out, the lower ends are those of two data sets: all other gradients opposed, or all equal.

    Args:
        relation: `add-remove`, `zero-out` or `replace-one`.
        s: Inverse noise multiplier, > 0.
        examples: Number of examples, at least 1; for add-remove, including the removed example.
        draws: Number of draws, at least 1.

    Source:
        docs/training-runs.md.
    """
    rate = 1.0 / examples
    far = Copies(draws, rate, 2.0 * s)
    if relation == "add-remove":
        return Bounds.exact(far)
    if draws == 1:
        return fixed_size(relation, s, rate)
    below = (
        (far,)
        if relation == "replace-one"
        else (Copies(draws, rate, 2.0 * s, s), Copies(draws, rate, 0.0, -s))
    )
    return Bounds(above=(Above(Displaced(draws, rate, s, relation)),), below=below)


def truncated(relation: str, s: float, rate: float, examples: int, largest: int) -> Bounds:
    """Return the bounds of a step whose batch is a Poisson sample, or a uniform part if it is too large.

    If the other examples do not fill the batch, the step is a Poisson sample; otherwise it is a subset of
    fixed size, which contains the example with a rate q'. The first upper ratio reveals which case holds. The
    second one is that of steps that are never cut, unless cuts are negligible. The lower ratio is a Poisson
    sample at the marginal rate, which holds if all other gradients are 0.

    Args:
        relation: `add-remove`, `zero-out` or `replace-one`.
        s: Inverse noise multiplier, > 0.
        rate: Sampling probability before the cut, in (0, 1].
        examples: Number of examples, at least 1.
        largest: Largest batch size, at least 1.

    Source:
        arXiv:2411.04205, Theorem 3.3; docs/training-runs.md.
    """
    if largest >= examples:
        return poisson(relation, s, rate)
    cut = truncation(examples, rate, largest)
    if rate == 1.0:  # every batch is full: batches of fixed size
        below = _fixed_below(relation, s, cut.mean)
        return Bounds(above=(Above(_fixed_above(relation, s, cut.rate)),), below=below)
    sample = _one(relation, s, rate)
    full = max(cut.full, TINY)  # also bounds a probability that underflows
    above = [Above(Blend((cut.room, full), (sample, _fixed_above(relation, s, cut.rate))))]
    if full > TINY:
        above.append(Above(sample, moved=max(cut.cut, TINY)))
    return Bounds(above=tuple(above), below=(_one(relation, s, cut.mean),))
