"""Exact sums over the compositions of a bag, for priors with few values of eta."""

import math
from collections.abc import Iterator
from typing import get_args

import numpy as np

from privcore.answer import Answer
from privcore.distributions.prior_finite import FinitePrior
from privcore.labels.bounds.reach import beyond_reach, changes_nothing, decided
from privcore.labels.bounds.response import accuracy
from privcore.labels.bounds.tails import several
from privcore.labels.draws import rows_of_others
from privcore.labels.problems import (
    SINGLE,
    AtEta,
    LabelAdvantage,
    LabelAdvantageAt,
    LabelAdvantageShare,
    LabelAdvantageTail,
    LabelAttackAccuracy,
    LabelProblem,
    LabelRatioQuantile,
    LabelRatioTail,
    OfBag,
)
from privcore.labels.ratio import RatioLaw, ratio_quantile, ratio_tail, too_rare
from privcore.labels.sums import compositions
from privcore.labels.sums.compositions import Counts, Rows
from privcore.labels.sums.poisson_binomial import FLOOR, Array, relative_error
from privcore.labels.sums.rows import advantage
from privcore.method import Cost, Direction, Method
from privcore.numerics.sums import dot
from privcore.papers import BUSA_FEKETE

_MOST_WORK = 2e9
"""Largest number of products for which the sum over all compositions is computed."""
_MOST_ATOMS = 400
"""Largest number of different values of a file that is cut into bags."""


class LabelsComposition(Method[OfBag]):
    r"""Sum over the numbers of other examples with each value of eta, a multinomial vector.

    Given these numbers, the sum of the other labels is a convolution of binomial distributions. The advantage
    is a sum of positive terms if a count is released, and an integral split at one threshold for Laplace
    noise. A prior with two values takes $O(k^3)$ operations, a prior with a single value O(k). All
    probabilities have small relative errors, in both tails. If p is the probability that the mean advantage
    in one bag exceeds a threshold, that of n bags does with a probability between $p^n$ and $1 - (1 - p)^n$.

    In a partition, the numbers have a multivariate hypergeometric distribution, and the attacked example is
    one of the rows that are left: it has a value with probability $(N_b - m_b) / (N - k + 1)$ if $m_b$ of its
    $N_b$ rows are among the others.
    """

    name = "labels.composition"
    problems = get_args(OfBag)
    direction = Direction.ENCLOSURE
    reference = f"{BUSA_FEKETE}, Lemma A.1; the sum over compositions is ours"
    version = 4
    shares = ("prior", "bag_size")

    def applies(self, problem: OfBag) -> str | None:
        atoms = problem.distribution.atoms
        if problem.mechanism in SINGLE:
            return "The mechanism has no bags; labels.response has the closed forms."
        if atoms is None:
            return "The prior is continuous, so a bag has infinitely many compositions."
        if reason := problem.contradiction() or too_rare(problem):
            return reason
        if _work(problem) > _MOST_WORK:
            return f"All compositions take {_work(problem):.1e} products; the limit is {_MOST_WORK:.0e}."
        return None

    def cost(self, problem: OfBag) -> Cost:
        atoms = problem.distribution.atoms
        if atoms is None or _work(problem) > _MOST_WORK:
            return Cost(seconds=1e-3, bytes=1e5)
        number = compositions.number(atoms[0].size, problem.bag_size - 1, _rows_of_others(problem))
        entries = number * (problem.bag_size + 1.0)
        seconds = 0.01 + 1e-9 * _work(problem) + 2.5e-7 * entries * atoms[0].size
        laws = 250.0 * min(entries, 2.0**19 + problem.bag_size)
        if atoms[0].size > 1:  # the binomial distributions of all sizes
            laws += 40.0 * atoms[0].size * problem.bag_size**2
        if isinstance(problem, LabelRatioQuantile) and problem.mechanism == "llp-laplace":
            seconds += 160.0 * 4e-8 * entries  # a search
        kept = 0.0 if isinstance(problem, LabelAdvantage | LabelAdvantageAt) else 60.0 * entries
        return Cost(seconds=seconds, bytes=1e6 + laws + kept)

    def answer(self, problem: OfBag, seed: int) -> Answer:
        atoms = problem.distribution.atoms
        assert atoms is not None
        others, counts = problem.bag_size - 1, _rows_of_others(problem)
        rows = compositions.compositions(*atoms, others, counts)
        number = compositions.number(atoms[0].size, others, counts)
        detail = f"{number:.12g} compositions of {others} other examples"
        match problem:
            case LabelAdvantageTail():
                low, high = several(
                    _advantage_tail(problem, rows), problem.bags, independent=not problem.is_partition
                )
            case LabelAdvantageShare():
                low, high = _share(problem, rows)
            case LabelRatioTail():
                low, high = ratio_tail(_ratio_law(problem, rows), problem.log_ratio)
            case LabelRatioQuantile():
                low, high = ratio_quantile(_ratio_law(problem, rows), problem.level)
            case _:
                low, high = _mean_advantage(problem, rows)
                if isinstance(problem, LabelAttackAccuracy):
                    low, high = accuracy(problem.distribution, (low, high))
        return Answer.enclosure(max(0.0, low), min(problem.largest, high), detail=detail)


def _rows_of_others(problem: LabelProblem) -> Counts | None:
    """Return the numbers of rows of a file with each value, if the others are different rows; else None."""
    return rows_of_others(problem)[1] if problem.is_partition else None


def _work(problem: LabelProblem) -> float:
    """Return the approximate number of products; infinite if it is certainly too large."""
    atoms, counts = problem.distribution.atoms, _rows_of_others(problem)
    assert atoms is not None
    if counts is not None:
        if atoms[0].size > _MOST_ATOMS:
            return math.inf
        owns = 1.0 if isinstance(problem, AtEta) else float(atoms[0].size)
        return owns * compositions.work(atoms[0].size, problem.bag_size - 1, counts)
    if atoms[0].size > 64:
        return math.inf if problem.bag_size > 1 else 1.0
    return compositions.work(atoms[0].size, problem.bag_size - 1)


def _left(problem: LabelProblem, members: Counts) -> Array:
    """Return the probabilities of the values of the attacked example, given the numbers of the others."""
    atoms, counts = problem.distribution.atoms, problem.distribution.counts
    assert atoms is not None
    if counts is None or not problem.is_partition:
        return np.broadcast_to(atoms[1], members.shape)
    return np.asarray((counts - members) / (counts.sum() - problem.bag_size + 1.0))


def _error(problem: LabelProblem) -> float:
    """Return the relative error of the probabilities of the compositions, with those of the sums."""
    error = 2.0 * relative_error(problem.bag_size)
    atoms = problem.distribution.atoms
    assert atoms is not None
    return error * atoms[0].size if problem.is_partition else error


def _mean_advantage(problem: LabelProblem, rows: Iterator[Rows]) -> tuple[float, float]:
    """Return lower and upper bounds of the advantage, over examples of the prior or at one eta."""
    if changes_nothing(problem):  # rounding would leave an upper end of about 1e-260
        return 0.0, 0.0
    of_rows = problem.is_partition and not isinstance(problem, LabelAdvantageAt)
    ends = [
        (float(dot(some.weights, low)), float(dot(some.weights, high)))
        for some in rows
        for low, high in [_of_the_left(problem, some) if of_rows else _of_all(problem, some)]
    ]
    error = _error(problem)
    return (
        math.fsum(low for low, _ in ends) * (1.0 - error),
        math.fsum(high for _, high in ends) * (1.0 + error),
    )


def _of_all(problem: LabelProblem, some: Rows) -> tuple[Array, Array]:
    """Return bounds of the advantage for each composition of the others."""
    return advantage(some.laws, problem.mechanism, problem.label_epsilon, problem.attacked)


def _of_the_left(problem: LabelProblem, some: Rows) -> tuple[Array, Array]:
    """Return the same for an attacked example among the rows that are left."""
    atoms, left = problem.distribution.atoms, _left(problem, some.members)
    assert atoms is not None
    lows, highs = np.zeros(some.weights.size), np.zeros(some.weights.size)
    for column, eta in enumerate(atoms[0]):
        own = FinitePrior.point(float(eta))
        low, high = advantage(some.laws, problem.mechanism, problem.label_epsilon, own)
        lows += left[:, column] * low
        highs += left[:, column] * high
    return lows, highs


def _ratio_law(problem: LabelProblem, rows: Iterator[Rows]) -> RatioLaw:
    """Return the distribution of the multiplicative advantage."""
    law = problem.attacked
    if problem.is_partition and not isinstance(problem, AtEta):
        assert law.atoms is not None
        values = law.atoms[0]
        each = ((r.weights, r.laws, dot(_left(problem, r.members), values)) for r in rows)
    else:
        each = ((r.weights, r.laws, np.full(r.weights.size, law.mean)) for r in rows)
    slack = law.moment_error + (_error(problem) if problem.is_partition else 0.0)
    return RatioLaw.of(problem.mechanism, problem.label_epsilon, slack, each)


def _share(problem: LabelAdvantageShare, rows: Iterator[Rows]) -> tuple[float, float]:
    """Return bounds of the probability that the advantage on one member of a bag exceeds the threshold."""
    if changes_nothing(problem) or beyond_reach(problem):
        return 0.0, 0.0
    atoms = problem.distribution.atoms
    assert atoms is not None
    sure: list[float] = []
    possible: list[float] = []
    reached = False
    for some in rows:
        owns = some.weights[:, None] * _left(problem, some.members)
        for eta, weights in zip(atoms[0], owns.T, strict=True):
            own = FinitePrior.point(float(eta))
            low, high = advantage(some.laws, problem.mechanism, problem.label_epsilon, own)
            sure.append(float(weights[low > problem.threshold].sum()))
            if not decided(own.values, problem.label_epsilon).all():
                above = high > problem.threshold
                possible.append(float(weights[above].sum()))
                reached = reached or bool(above.any())
    error = _error(problem) + problem.distribution.error
    lost = FLOOR if reached else 0.0  # probabilities of compositions may underflow
    return math.fsum(sure) * (1.0 - error) - lost, math.fsum(possible) * (1.0 + error) + lost


def _advantage_tail(problem: LabelAdvantageTail, rows: Iterator[Rows]) -> tuple[float, float]:
    """Return bounds of the probability that the mean advantage of a bag's members exceeds the threshold."""
    if changes_nothing(problem) or beyond_reach(problem):
        return 0.0, 0.0
    atoms = problem.distribution.atoms
    assert atoms is not None
    lows: dict[tuple[int, ...], Array] = {}
    highs: dict[tuple[int, ...], Array] = {}
    for some in rows:
        ends = [
            advantage(some.laws, problem.mechanism, problem.label_epsilon, FinitePrior.point(float(v)))
            for v in atoms[0]
        ]
        for row, counts in enumerate(map(tuple, some.members)):
            lows[counts] = np.array([low[row] for low, _ in ends])
            highs[counts] = np.array([high[row] for _, high in ends])
    sure, possible = 0.0, 0.0
    error = _error(problem)
    for some in compositions.compositions(*atoms, problem.bag_size, _rows_of_others(problem)):
        for counts, weight in zip(some.members, some.weights, strict=True):
            members = [(a, tuple(counts - np.eye(counts.size, dtype=int)[a])) for a in np.nonzero(counts)[0]]
            low = math.fsum(counts[a] * lows[rest][a] for a, rest in members) / problem.bag_size
            high = math.fsum(counts[a] * highs[rest][a] for a, rest in members) / problem.bag_size
            sure += float(weight) * (low * (1.0 - error) > problem.threshold)
            possible += float(weight) * (high * (1.0 + error) > problem.threshold)
    return sure * (1.0 - error), possible * (1.0 + error)
