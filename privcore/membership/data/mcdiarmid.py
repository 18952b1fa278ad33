"""Upper confidence bound for the advantage on any learner, from a sample of an unknown distribution."""

import math

import numpy as np
import scipy
from numpy.typing import NDArray

from privcore.answer import Answer
from privcore.distributions.columns import sample_counts
from privcore.membership.data.problems import MembershipSampleAdvantage
from privcore.method import Cost, Direction, Method
from privcore.numerics.rounding import FEW_OPERATIONS, SPLIT_SAMPLE, probability_at_most
from privcore.papers import AUBINAIS

Array = NDArray[np.float64]

_MOST_TERMS = 20_000
"""Most terms of a tail; leaving out the rest makes the bound larger."""


class MembershipMcDiarmid(Method[MembershipSampleAdvantage]):
    r"""Split the sample into n records and the rest in all ways, and average the distance of the two parts.

    The expectation of the average is at least the advantage, by Jensen's inequality. A record of a sample of
    N moves the average by at most (1 + g) / N with $g = \max\{\gamma, 1 / \gamma\}$, which is less than it
    may move the distance of a single split. The average therefore falls short of its expectation by more than
    $(1 + g) \sqrt{\ln(1 / \beta) / 2N}$ with probability at most $\beta$. For odds other than 1 the answer is
    the smaller of the bound for these odds and the bound for odds 1, each with half the error probability.
    """

    name = "membership.mcdiarmid"
    problems = (MembershipSampleAdvantage,)
    direction = Direction.UPPER
    reference = f"McDiarmid (1989), Lemma 1.2, with our own proof; compare {AUBINAIS}, Theorem 14"

    def applies(self, problem: MembershipSampleAdvantage) -> str | None:
        size = int(sample_counts(problem.sample).sum())
        if size <= problem.records:
            return f"The sample has {size} records; the bound needs more than records={problem.records}."
        return None

    def cost(self, problem: MembershipSampleAdvantage) -> Cost:
        distinct = np.unique(sample_counts(problem.sample)).size
        terms = 1.0 if problem.odds == 1.0 else min(_MOST_TERMS, 10.0 + 10.0 * problem.records**0.5)
        return Cost(seconds=2e-3 + (1e-5 + 2e-8 * distinct) * terms, bytes=1e5 + 500.0 * distinct)

    def answer(self, problem: MembershipSampleAdvantage, seed: int) -> Answer:
        counts, tried = sample_counts(problem.sample), {problem.odds, 1.0}
        size, error = int(counts.sum()), (1.0 - problem.confidence_level) / len(tried)
        bounds = []
        for odds in sorted(tried):
            g = max(odds, 1.0 / odds)
            margin = (1.0 + g) * math.sqrt(-math.log(error) / (2.0 * size))
            bounds.append(
                (mean_distance(counts, problem.records, odds) * (1.0 + SPLIT_SAMPLE) + margin, margin)
            )
        bound, margin = min(bounds)
        return Answer.enclosure(
            0.0,
            probability_at_most(bound, FEW_OPERATIONS),
            confidence=problem.confidence_level,
            detail=f"{size} records in the sample; {margin:.3g} of the bound is the margin for confidence",
        )


def mean_distance(counts: NDArray[np.int64], records: int, odds: float) -> float:
    r"""Return the distance between n records of a sample and the rest, averaged over all splits.

    It is $\mathrm E \sum_k (H_k / n - \gamma (N_k - H_k) / m)_+$ for $\gamma \ge 1$, and
    $\frac1\gamma \mathrm E \sum_k (\gamma (N_k - H_k) / m - H_k / n)_+$ for $\gamma < 1$, with $H_k$
    hypergeometric and m = N - n.

    Args:
        counts: Number of records of every category, shape (K,), all positive.
        records: Number n of records in the first part, in [1, N).
        odds: Odds gamma of a non-member against a member, > 0.

    Returns:
        Mean distance in [0, 1]; slightly more if a tail has too many terms.

    Example:
        >>> round(mean_distance(np.array([1, 1]), 1, 1.0), 12)
        1.0
    """
    distinct, times = np.unique(counts, return_counts=True)
    k, size, n = distinct.astype(np.float64), float(counts.sum()), float(records)
    rest = size - n
    scale = 1.0 / n + odds / rest
    threshold = odds * k * n / (rest + odds * n)
    mean = k * (n / size)
    if odds == 1.0:
        threshold = mean
    whole = np.floor(threshold)
    # j (N - K - n + j) p_j / N sums (i - mean) p_i over i >= j, and (mean - i) p_i below.
    j = whole + 1.0
    probability = _probability(j, size, k, n)
    excess = j * (size - k - n + j) * probability / size
    if odds != 1.0:
        tail = _tail(whole, size, k, n, above=odds > 1.0)
        excess = np.maximum(0.0, excess - np.abs(threshold - mean) * tail)
    return float((times * excess).sum()) * scale / min(1.0, odds)


def _probability(j: Array, size: float, k: Array, n: float) -> Array:
    """Return hypergeometric probabilities of j of k among n of all, from three binomial probabilities."""
    p = n / size
    at = (j >= 0.0) & (j <= np.minimum(k, n)) & (n - j <= size - k)
    j = np.where(at, j, np.maximum(0.0, n - (size - k)))
    found = (
        scipy.stats.binom.pmf(j, k, p)
        * scipy.stats.binom.pmf(n - j, size - k, p)
        / scipy.stats.binom.pmf(n, size, p)
    )
    return np.where(at, found, 0.0)


def _tail(whole: Array, size: float, k: Array, n: float, *, above: bool) -> Array:
    """Return the probability of more than `whole`, or of at most `whole`, summed from the nearest term on."""
    j = whole + 1.0 if above else whole
    term = _probability(j, size, k, n)
    total = term.copy()
    for _ in range(_MOST_TERMS):
        if above:
            term = term * np.maximum(0.0, (k - j) * (n - j)) / ((j + 1.0) * (size - k - n + j + 1.0))
            j = j + 1.0
        else:
            below = np.maximum((k - j + 1.0) * (n - j + 1.0), 1.0)
            term = term * np.maximum(0.0, j * (size - k - n + j)) / below
            j = j - 1.0
        if not (term > 1e-17 * total).any():
            break
        total += term
    return total
