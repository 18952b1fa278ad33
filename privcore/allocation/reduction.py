"""The laws of random allocation: the composition to which it reduces, from above, and itself, from below."""

import math
from dataclasses import replace
from functools import lru_cache

import scipy

from privcore.likelihood_ratio.distribution import (
    LikelihoodRangeError,
    RatioBracket,
    RatioDistribution,
    Resolution,
    combine,
    mean_of,
    mixed,
    product_of,
)
from privcore.likelihood_ratio.enclose import SHARE, SMALLEST_DELTA, Question
from privcore.likelihood_ratio.grid import MOST_CELLS
from privcore.likelihood_ratio.steps import Step
from privcore.likelihood_ratio.symmetric import chosen

MOST_CHOSEN = 256
"""Participations up to which the lower law is that of k of t; beyond, that of so many, which is nested."""
FINENESS = (0.2, 0.14, 0.1, 0.07, 0.05)
"""Widths of the cells of its laws, in local standard deviations; few, so that questions share laws."""
COARSE = ((16, 0.1), (MOST_CHOSEN, 0.2))
"""The width that is always affordable, by participations."""
AFFORDABLE = 1.5
"""Seconds that a finer law may take, as `below_seconds` declares them."""
HOPELESS = 0.08
"""Relative width of a bracket after the first law that no finer one would close."""


Blocks = list[tuple[int, int]]
"""Pairs (t', m): what dominates is the composition, over all pairs, of m copies of 1-of-t'."""


def blocks(steps: int, participations: int, epochs: int) -> Blocks:
    """Return what k-of-t over E epochs reduces to: (k - r) E copies of 1-of-f and r E of 1-of-(f + 1).

    Args:
        steps: Steps of an epoch, t = f k + r.
        participations: Steps that use the example, k.
        epochs: Number of epochs, E.

    Reference:
        arXiv:2502.08202v3, Lemma 3.2, whose proof covers blocks of unequal size.

    Example:
        >>> blocks(steps=10, participations=3, epochs=2)
        [(3, 4), (4, 2)]
    """
    block, rest = divmod(steps, participations)
    pairs = [(block, (participations - rest) * epochs), (block + 1, rest * epochs)]
    return [(size, copies) for size, copies in pairs if copies > 0]


def exact(steps: int, participations: int) -> bool:
    """Return whether the reduction is the mechanism itself: one of t, or all of t."""
    return participations in (1, steps)


def composed(
    step: Step, steps: int, participations: int, epochs: int, rate: float, res: Resolution
) -> RatioBracket:
    """Return the bracket of the composition to which k-of-t allocation over E epochs reduces.

    With t = f k + r, that is (k - r) E copies of 1-of-f and r E of 1-of-(f + 1); where every epoch includes
    the example only with some probability, the ratio of an epoch is mixed with 1.

    Args:
        step: Mechanism of one step.
        steps: Steps of an epoch, t.
        participations: Steps that use the example, k.
        epochs: Number of epochs, E.
        rate: Probability with which an epoch includes the example.
        res: Resolution of all laws.
    """
    together = epochs if rate == 1.0 else 1
    first, *others = [
        step.composed(copies, res) if size == 1 else product_of(one_of(step, size, res), copies, res)
        for size, copies in blocks(steps, participations, together)
    ]
    result = combine(first, others[0], res, product=True) if others else first
    return result if rate == 1.0 else product_of(mixed(result, rate, res), epochs, res)


@lru_cache(maxsize=32)
def one_of(step: Step, steps: int, res: Resolution) -> RatioBracket:
    """Return the bracket of the likelihood ratio of one step chosen out of `steps`; cached, it is shared."""
    return mean_of(step.ratio(res), steps, res)


def below(
    step: Step, steps: int, participations: int, epochs: int, rate: float, res: Resolution, most: float
) -> RatioDistribution | None:
    """Return a garbling of k-of-t allocation itself over E epochs; None beyond the range of doubles.

    Up to `MOST_CHOSEN` participations count; with more, the ratio dominates that of so many (Lemma D.1).

    Args:
        step: Mechanism of one step.
        steps: Steps of an epoch, t.
        participations: Steps that use the example, k.
        epochs: Number of epochs, E.
        rate: Probability with which an epoch includes the example.
        res: Resolution of all laws.
        most: Largest epsilon at which the profile will be read.
    """
    try:
        law = _chosen(
            step, min(participations, MOST_CHOSEN), steps, res, 4.0 * math.ceil(0.25 * max(0.0, most))
        )
        epoch = RatioBracket(lower=law, upper=law)
        return product_of(epoch if rate == 1.0 else mixed(epoch, rate, res), epochs, res).lower
    except LikelihoodRangeError:
        return None


@lru_cache(maxsize=32)
def _chosen(step: Step, participations: int, steps: int, res: Resolution, most: float) -> RatioDistribution:
    """Return the garbling of one epoch; cached, it is shared."""
    return chosen(step.ratio(res).lower, participations, steps, res, most)


def below_by_poisson(
    step: Step, steps: int, participations: int, epochs: int, question: Question, scale: float
) -> float:
    r"""Return a lower bound of k-of-t allocation from Poisson sampling that seldom takes part more often.

    Poisson sampling is a mixture of allocations, each dominated by k of t where it takes part at most k times
    (Lemmas D.1, D.2), so $\delta_P \le \delta_A + \Pr[\text{more than } k \text{ in some epoch}]$.

    Args:
        step: Mechanism of one step.
        steps: Steps of an epoch, t.
        participations: Steps that use the example, k < t.
        epochs: Number of epochs, E.
        question: What is asked.
        scale: The delta that is asked about, or an upper bound of the one that is asked for.
    """
    wanted = 0.05 * scale / epochs
    rate = float(scipy.special.betaincinv(participations + 1, steps - participations, wanted))
    more = 1.01 * epochs * float(scipy.special.betainc(participations + 1, steps - participations, rate))
    if not 0.0 < rate < 1.0 or not 0.0 < more < scale:
        return 0.0
    res = Resolution(fineness=0.1, tail=max(SHARE * wanted / steps, SMALLEST_DELTA))
    try:
        law = product_of(mixed(step.ratio(res), rate, res), steps * epochs, res).lower
    except LikelihoodRangeError:
        return 0.0
    if question.asks == "epsilon":
        return replace(question, at=question.at + more).lower(law)
    return question.lower(law) - more


def below_seconds(participations: int, steps: int, width: float, delta: float, fineness: float) -> float:
    """Return how long `below` takes for one epoch, about; 59 of 60 laws took 0.05 to 0.9 of it, one 1.2.

    Args:
        participations: Steps that use the example, k.
        steps: Steps of an epoch, t.
        width: How far the logarithm of the ratio of one step reaches.
        delta: Size of the delta in question; a small one needs long tails.
        fineness: Width of a cell in local standard deviations.
    """
    counted = min(participations, MOST_CHOSEN)
    wide = math.sqrt(max(1.0, -math.log10(delta) / 10.0))
    several = 5.0 * width * math.exp(min(5.0, width * width / 8.0)) * counted / math.sqrt(steps)
    cells = min(wide * (15.0 + 1.8 * width * width + several) / fineness, MOST_CELLS)
    levels = steps.bit_length() + steps.bit_count()
    return levels * (1e-7 + 3e-9 * counted) * cells * cells


def below_finenesses(participations: int, steps: int, width: float, delta: float) -> list[float]:
    """Return the widths of cells that may be tried for `below`: a coarse one, and those that are affordable.

    Args:
        participations: Steps that use the example, k.
        steps: Steps of an epoch, t.
        width: How far the logarithm of the ratio of one step reaches.
        delta: Size of the delta in question.
    """
    coarse = next(f for most, f in COARSE if min(participations, MOST_CHOSEN) <= most)
    finer = (f for f in FINENESS if f < coarse)
    return [
        coarse,
        *(f for f in finer if below_seconds(participations, steps, width, delta, f) <= AFFORDABLE),
    ]


def below_enough(fineness: float, gap: float, tolerance: float) -> float:
    """Return the width of cells that should bring a bracket to a tolerance, from one of width `gap`.

    What cells add to it grows with their square; the rest, which is the upper end's, is about half of what
    may be.
    """
    return fineness * math.sqrt(0.45 * tolerance / (gap - 0.5 * tolerance))
