"""Random bags of the prior: the features of the others are sampled, everything else is integrated."""

import math
from collections.abc import Iterator
from functools import partial
from typing import Annotated, get_args

import numpy as np

from privcore import params
from privcore.answer import Answer
from privcore.labels.bounds.response import accuracy, response_advantage
from privcore.labels.bounds.tails import cap
from privcore.labels.draws import (
    BagDraws,
    advantages_of_bags,
    bags_of_rows,
    ends,
    laws_of_others,
    shares_of_rows,
    with_attacked,
)
from privcore.labels.learning.release import Releases, releases
from privcore.labels.partitions import attacked_members, draws_of_partition
from privcore.labels.problems import (
    SINGLE,
    Featured,
    LabelAdvantageShare,
    LabelAdvantageTail,
    LabelAttackAccuracy,
    LabelProblem,
    LabelRatioQuantile,
    LabelRatioTail,
    OfBag,
)
from privcore.labels.ratio import SEARCHED, row_tail_ends, sampled_quantile, too_rare
from privcore.labels.sums import noisy_sums
from privcore.labels.sums.poisson_binomial import Array
from privcore.labels.sums.rows import discrete, nodes_needed, quick_ends
from privcore.method import Cost, Direction, Method
from privcore.numerics.bounded_mean import BETTING, betting_lower, betting_upper, width_note
from privcore.papers import BUSA_FEKETE
from privcore.point import Point

_OfEvent = LabelAdvantageTail | LabelAdvantageShare | LabelRatioTail
"""Problems whose truth is the probability of an event."""
_TRIED = 64
"""Bags for choosing the quadrature over Laplace noise."""


class LabelsSampling(Method[OfBag]):
    r"""Draw the features of the others; integrate labels, noise and the attacked example (Rao-Blackwell).

    The samples of an advantage lie between 0 and the advantage for a clean label, for randomized response
    with the same epsilon, or a cap that holds except for bags of negligible probability. The value is their
    mean, and the ends are bounds by bets, for every distribution of bounded samples. If the range is much
    larger than the spread of the first twentieth of the bags, it is cut for the bounds, which are made from
    the other bags. For a quantile, the first twentieth chooses the stakes of bets on the probability that a
    threshold is exceeded, and the other bags decide between which thresholds the quantile lies.

    In a partition of a file, a sample is the mean advantage over all rows that are left, or over many members
    of the bag, which few attacked rows would leave ten times as noisy; see `draws_of_partition`.
    """

    name = "labels.sampling"
    problems = get_args(OfBag)
    direction = Direction.ENCLOSURE
    reference = f"{BUSA_FEKETE}, Lemma A.1; {BETTING}; Hoeffding (1963), Theorem 4, for a partition"
    version = 6
    shares = ("prior", "bag_size")

    samples: Annotated[int, params.SAMPLES] = 10_000
    confidence: Annotated[float, params.CONFIDENCE] = 0.999

    def applies(self, problem: OfBag) -> str | None:
        several = isinstance(problem, LabelAdvantageTail) and problem.bags > 1
        if problem.mechanism == "none" or (problem.mechanism in SINGLE and not several):
            return "The mechanism has no bags to draw; labels.response has the closed forms."
        return problem.contradiction() or too_rare(problem)

    def cost(self, problem: OfBag) -> Cost:
        n, k = float(self.samples), float(problem.bag_size)
        if isinstance(problem, LabelAdvantageTail):
            if problem.mechanism == "rr":
                return Cost(seconds=0.05 + 4e-8 * n * problem.bags, bytes=2e7 + 16.0 * n)
            bag = 5e-5 + 1e-7 * k + (4e-8 + 4e-10 * math.log2(k + 1.0)) * k * k
            return Cost(seconds=0.05 + n * problem.bags * bag, bytes=1e6 + 60.0 * k * k + 16.0 * n)
        nodes = 1 if discrete(problem.mechanism) else 6.0 + 60.0 / problem.bag_size
        atoms = problem.distribution.atoms
        few, width = 1.0 if atoms is None else min(8.0, float(atoms[0].size)), min(k, 60.0 * math.sqrt(k))
        seconds = 0.2 + 2.0 * n * k * (6e-8 + 6e-10 * width + 1.2e-8 * nodes * few) + 2e-6 * n
        size = 0.0 if atoms is None or not problem.is_partition else float(atoms[0].size)
        if size and isinstance(problem, Featured | LabelAttackAccuracy):
            seconds += 2e-8 * n * k * attacked_members(problem) + 3e-7 * size
        if isinstance(problem, LabelRatioQuantile):
            searched = 0.0 if discrete(problem.mechanism) else min(n * k, float(SEARCHED))
            seconds += 3e-7 * n * k + 1e-5 * searched
        kept = 8.0 * min(2.0**23, n * k) + (24.0 * n * k if isinstance(problem, LabelRatioQuantile) else 0.0)
        return Cost(seconds=seconds, bytes=4e7 + kept + 3e7 + 60.0 * k + 60.0 * size)

    def answer(self, problem: OfBag, seed: int) -> Answer:
        if isinstance(problem, LabelRatioQuantile):
            return self._quantile(problem)
        drawn = self._samples(problem, seed)
        low, high = self._ends(problem, drawn)
        samples = drawn.samples
        value = float(samples.mean())
        spread = float(samples.std()) / math.sqrt(max(1.0, samples.size - 1.0))
        if not isinstance(problem, _OfEvent):
            low, high = low * max(0.0, 1.0 - drawn.error), high * (1.0 + drawn.error)
        value = min(max(value, low), high)
        detail = "all bags are alike" if drawn.alike else f"{samples.size} bags, standard error {spread:.2g}"
        if spread > 1e-14 * value:  # else it is rounding; see docs/labels.md
            detail += width_note(high - low - 2.0 * drawn.error * value, spread, self.confidence)
        if isinstance(problem, LabelAttackAccuracy):
            blind = accuracy(problem.distribution, (0.0, 0.0))
            low, value, high = blind[0] + low, 0.5 * (blind[0] + blind[1]) + value, blind[1] + high
        return Answer.enclosure(
            max(0.0, low),
            min(problem.largest, high),
            value=min(problem.largest, value),
            confidence=self.confidence,
            detail=detail,
        )

    def _ends(self, problem: OfBag, drawn: BagDraws) -> tuple[float, float]:
        """Return confidence bounds of the mean, not counting the error of each sample."""
        atoms, error = problem.distribution.atoms, 0.5 * (1.0 - self.confidence)
        if drawn.alike:
            return float(drawn.lower.min()), float(drawn.upper.max())
        if atoms is not None and atoms[0].size == 1 and not isinstance(problem, LabelAdvantageTail):
            return float(drawn.lower.min()), float(drawn.upper.max())  # all bags are equal
        if drawn.largest <= 0.0:
            return 0.0, drawn.unusual
        if isinstance(problem, _OfEvent):
            return betting_lower(drawn.lower, error), betting_upper(drawn.upper, error)

        if problem.is_partition:  # the parts of a bag are not independent, but there are caps
            shares = [np.minimum(1.0, e * drawn.usual / drawn.largest) for e in (drawn.lower, drawn.upper)]
            most = drawn.largest * betting_upper(shares[1], error) + drawn.unusual
            return drawn.largest * betting_lower(shares[0], error), most

        def bounds(samples: Array) -> tuple[float, float]:
            parts = partial(self._of_parts, problem)
            others = problem.bag_size - 1
            return ends(samples * drawn.usual, drawn.largest, others, error, drawn.error, parts)

        low, high = bounds(drawn.lower)
        if drawn.upper is not drawn.lower:
            high = bounds(drawn.upper)[1]
        return low, high + drawn.unusual

    def _of_parts(self, problem: LabelProblem, others: int, number: int) -> Array:
        """Return advantages in random bags with fewer other examples."""
        mechanism, epsilon, law = problem.mechanism, problem.label_epsilon, problem.attacked
        parts: list[Array] = []
        nodes, error = noisy_sums.FEWEST, 0.0
        for laws in laws_of_others(problem.prior, others + 1, number):
            if not parts and not discrete(mechanism):
                nodes, error = nodes_needed(laws[:_TRIED], epsilon, law)
            parts.append(quick_ends(laws, mechanism, epsilon, law, nodes)[1])
        return np.concatenate(parts) * (1.0 + 4.0 * error)

    def releases(self, problem: LabelProblem, number: int) -> Releases:
        """Return simulated releases for figures, about one member of each of `number` independent bags."""
        return releases(problem, number, Point(problem=problem, method=self).seed)

    def _samples(self, problem: LabelProblem, seed: int) -> BagDraws:
        """Return independent samples whose mean is the answer."""
        match problem:
            case LabelAdvantageTail():
                means = advantages_of_bags(problem, self.samples, seed)
                low, high = ((each > problem.threshold).astype(float) for each in means)
                return BagDraws(lower=low, upper=high)
            case LabelAdvantageShare():
                asked_of = problem.mechanism, problem.label_epsilon, problem.threshold
                drawn = bags_of_rows if problem.is_partition else with_attacked
                shares = [
                    shares_of_rows(some.others, some.attacked, *asked_of)
                    for some in drawn(problem, self.samples)
                ]
                low, high = (np.concatenate(each) for each in zip(*shares, strict=True))
                return BagDraws(lower=low, upper=high)
            case LabelRatioTail():
                slack, asked = problem.attacked.moment_error, (problem.mechanism, problem.label_epsilon)
                tails = [
                    row_tail_ends(others, *asked, rates, slack, problem.log_ratio)
                    for others, rates in self._laws(problem)
                ]
                low, high = (np.concatenate(each) for each in zip(*tails, strict=True))
                return BagDraws(lower=low, upper=high)
        law = problem.attacked
        mechanism, epsilon = problem.mechanism, problem.label_epsilon
        largest = law.blind * (1.0 + 2.0 * law.error)
        if math.isfinite(epsilon):
            largest = min(largest, response_advantage(law, epsilon)[1])
        if problem.is_partition:
            return draws_of_partition(problem, self.samples)
        usual = cap(law, problem.distribution, problem.bag_size, mechanism, epsilon, largest)
        lows: list[Array] = []
        highs: list[Array] = []
        counts: list[Array] = []
        nodes, error = noisy_sums.FEWEST, 0.0
        for others, _ in self._laws(problem):
            if not lows and not discrete(mechanism):
                nodes, error = nodes_needed(others[:_TRIED], epsilon, law)
            low, high = quick_ends(others, mechanism, epsilon, law, nodes)
            lows.append(low)
            highs.append(high)
            counts.append(usual.counts(others))
        lower = np.concatenate(lows)
        return BagDraws(
            lower=lower,
            upper=lower if lows[0] is highs[0] else np.concatenate(highs),
            usual=np.concatenate(counts).astype(float),
            largest=usual.advantage,
            unusual=usual.rare * largest,
            error=4.0 * (error + law.quick_error) + 1e-9,
        )

    def _laws(self, problem: LabelProblem) -> Iterator[tuple[Array, Array]]:
        """Yield distributions of the sum of the other labels, with the mean eta of the attacked examples."""
        if problem.is_partition:
            for some in bags_of_rows(problem, self.samples):
                yield some.others, some.rates
        else:
            for laws in laws_of_others(problem.prior, problem.bag_size, self.samples):
                yield laws, np.full(laws.shape[0], problem.attacked.mean)

    def _quantile(self, problem: LabelRatioQuantile) -> Answer:
        """Return the quantile in the bags, between ends that are tested on the bags after the first ones."""
        laws, rates = (np.concatenate(each) for each in zip(*self._laws(problem), strict=True))
        low, value, high, note = sampled_quantile(problem, laws, rates, self.confidence)
        detail = f"{laws.shape[0]} bags{note}"
        return Answer.enclosure(low, high, value=value, confidence=self.confidence, detail=detail)
