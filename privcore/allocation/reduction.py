"""Likelihood-ratio distributions of random allocation: upper by a reduction to k = 1, lower directly."""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import scipy

from privcore import params
from privcore.allocation import params as allocation_params
from privcore.allocation.problems import FEWER_THAN_STEPS
from privcore.likelihood_ratio.allocated.symmetric import chosen
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
from privcore.likelihood_ratio.grid import MOST_CELLS
from privcore.likelihood_ratio.pld import from_pld, to_pld
from privcore.likelihood_ratio.questions import SHARE, SMALLEST_DELTA, Question
from privcore.likelihood_ratio.steps import GaussianStep, Step

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

MOST_CHOSEN = 256
"""Largest k that lower distributions count; for more participations, this number is used (nesting)."""
MOST_STEPS = 10**6
"""Largest t for which the sums of the losses of k of t are affordable."""
FINENESS = (0.2, 0.14, 0.1, 0.07, 0.05)
"""Widths of cells of lower distributions, in local standard deviations; few, so that questions share them."""
COARSE = ((16, 0.1), (MOST_CHOSEN, 0.2))
"""Width of cells that is always affordable, by participations."""
AFFORDABLE = 1.5
"""Seconds that a finer distribution may take, as estimated by `below_seconds`."""
HOPELESS = 0.08
"""Relative width of a bracket, after the first distribution, that finer ones would not close."""


Blocks = list[tuple[int, int]]
"""Pairs (t', m) of a dominating composition: over all pairs, m copies of 1-of-t'."""


def blocks(steps: int, participations: int, epochs: int) -> Blocks:
    """Return the composition that dominates k-of-t over E epochs.

    It has (k - r) E copies of 1-of-f and r E copies of 1-of-(f + 1).

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
    """Return whether the reduction is the mechanism itself: k = 1 or k = t."""
    return participations in (1, steps)


def composed(
    step: Step, steps: int, participations: int, epochs: int, rate: float, res: Resolution
) -> RatioBracket:
    """Return the bracket of the composition to which k-of-t allocation over E epochs reduces.

    With t = f k + r, these are (k - r) E copies of 1-of-f and r E copies of 1-of-(f + 1). If every epoch
    includes the example only with some probability, the ratio of an epoch is mixed with 1.

    Args:
        step: Mechanism of one step.
        steps: Steps of an epoch, t.
        participations: Steps that use the example, k.
        epochs: Number of epochs, E.
        rate: Probability that an epoch includes the example.
        res: Resolution of all distributions.
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
    """Return the bracket of the likelihood ratio of 1-of-`steps` allocation; the cached result is shared."""
    return mean_of(step.ratio(res), steps, res)


def below(
    step: Step, steps: int, participations: int, epochs: int, rate: float, res: Resolution, most: float
) -> RatioDistribution | None:
    """Return a lower distribution of k-of-t allocation over E epochs; None beyond the range of doubles.

    With more than `MOST_CHOSEN` participations, the ratio dominates that of `MOST_CHOSEN` participations
    (Lemma D.1), whose distribution is returned.

    Args:
        step: Mechanism of one step.
        steps: Steps of an epoch, t.
        participations: Steps that use the example, k.
        epochs: Number of epochs, E.
        rate: Probability that an epoch includes the example.
        res: Resolution of all distributions.
        most: Largest epsilon at which the profile will be evaluated.
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
    """Return the lower distribution of one epoch; the cached result is shared."""
    return chosen(step.ratio(res).lower, participations, steps, res, most)


def below_by_poisson(
    step: Step, steps: int, participations: int, epochs: int, question: Question, scale: float
) -> float:
    r"""Return a lower bound of k-of-t allocation from Poisson sampling that rarely exceeds k participations.

    Poisson sampling is a mixture of allocations, and k of t dominates those with at most k participations
    (Lemmas D.1, D.2), so $\delta_P \le \delta_A + \Pr[\text{more than } k \text{ in some epoch}]$.

    Args:
        step: Mechanism of one step.
        steps: Steps of an epoch, t.
        participations: Steps that use the example, k < t.
        epochs: Number of epochs, E.
        question: The question.
        scale: The given delta, or an upper bound of the delta in question.
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
    """Return an estimate of the seconds that `below` takes for one epoch.

    Measured on 60 distributions: 59 took 0.05 to 0.9 times the estimate, and one 1.2 times.

    Args:
        participations: Steps that use the example, k.
        steps: Steps of an epoch, t.
        width: Largest logarithm of the ratio of one step.
        delta: Size of the delta in question; a small delta needs long tails.
        fineness: Width of a cell in local standard deviations.
    """
    counted = min(participations, MOST_CHOSEN)
    wide = math.sqrt(max(1.0, -math.log10(delta) / 10.0))
    several = 5.0 * width * math.exp(min(5.0, width * width / 8.0)) * counted / math.sqrt(steps)
    cells = min(wide * (15.0 + 1.8 * width * width + several) / fineness, MOST_CELLS)
    levels = steps.bit_length() + steps.bit_count()
    return levels * (1e-7 + 3e-9 * counted) * cells * cells


def below_finenesses(participations: int, steps: int, width: float, delta: float) -> list[float]:
    """Return the widths of cells to try for `below`: a coarse width, and affordable finer widths.

    Args:
        participations: Steps that use the example, k.
        steps: Steps of an epoch, t.
        width: Largest logarithm of the ratio of one step.
        delta: Size of the delta in question.
    """
    coarse = next(f for most, f in COARSE if min(participations, MOST_CHOSEN) <= most)
    finer = (f for f in FINENESS if f < coarse)
    return [
        coarse,
        *(f for f in finer if below_seconds(participations, steps, width, delta, f) <= AFFORDABLE),
    ]


def below_enough(fineness: float, gap: float, tolerance: float) -> float:
    """Return the width of cells that should bring a bracket of relative width `gap` to a tolerance.

    The contribution of the cells to the width of the bracket grows with the square of their width. The upper
    end contributes the rest, about half of the tolerance.
    """
    return fineness * math.sqrt(0.45 * tolerance / (gap - 0.5 * tolerance))


LOSS_STEP = 1e-4
"""Default loss step of `dp-accounting`, which composes only distributions of equal loss steps."""
RESOLUTION = Resolution(fineness=1.0 / 30.0, tail=1e-30)


def allocation_pld(
    sigma: float,
    steps: int,
    participations: int = 1,
    epochs: int = 1,
    *,
    loss_step: float = LOSS_STEP,
    resolution: Resolution = RESOLUTION,
) -> "PrivacyLossDistribution":
    """Return a privacy loss distribution that dominates k-of-t random allocation of Gaussian noise.

    Both directions are upper bounds, rounding included. The distribution is that of `allocation.certified`,
    moved to multiples of the loss step by a mean-preserving spread.

    Args:
        sigma: Noise multiplier.
        steps: Steps of an epoch, t.
        participations: Steps that use the example, k.
        epochs: Number of epochs, E.
        loss_step: Distance between losses in nats; `dp-accounting` composes only equal loss steps.
        resolution: Resolution of the likelihood-ratio distributions from which the result is computed.

    Returns:
        A pessimistic distribution, with separate directions remove and add.

    Raises:
        DomainError: A number is outside its domain, more participations than steps, or too many losses.
        LikelihoodRangeError: The likelihood ratios exceed the range of doubles.

    Source:
        arXiv:2502.08202v3, Theorem 3.1 and Lemma 3.2; docs/certified.md.

    Example:
        >>> pld = allocation_pld(sigma=1.0, steps=1000)
        >>> round(pld.get_epsilon_for_delta(1e-8), 2)
        0.29
    """
    return _allocated(
        GaussianStep(params.SIGMA.check(sigma)), steps, participations, epochs, loss_step, resolution
    )


def allocated(
    pld: "PrivacyLossDistribution",
    steps: int,
    participations: int = 1,
    epochs: int = 1,
    *,
    loss_step: float = LOSS_STEP,
    resolution: Resolution = RESOLUTION,
) -> "PrivacyLossDistribution":
    """Return a privacy loss distribution that dominates random allocation of any mechanism.

    The result is an upper bound if the given distribution is. That may itself be a composition, for example
    of several releases of one step.

    Args:
        pld: Pessimistic distribution of a step that uses the example against a step that does not.
        steps: Steps of an epoch, t.
        participations: Steps that use the example, k.
        epochs: Number of epochs, E.
        loss_step: Distance between losses of the result in nats.
        resolution: Resolution of the intermediate likelihood-ratio distributions.

    Raises:
        DomainError: As for `allocation_pld`, or the given distribution is optimistic.
        LikelihoodRangeError: The likelihood ratios exceed the range of doubles.

    Source:
        arXiv:2502.08202v3, Theorem 3.1 and Lemma 3.2; docs/certified.md.
    """
    return _allocated(_GivenStep(from_pld(pld)), steps, participations, epochs, loss_step, resolution)


def _allocated(
    step: Step, steps: int, participations: int, epochs: int, loss_step: float, resolution: Resolution
) -> "PrivacyLossDistribution":
    """Check the numbers, and return the distribution of k-of-t allocation of a step."""
    t, k = params.STEPS.check(steps), params.PARTICIPATIONS.check(participations)
    FEWER_THAN_STEPS.check(SimpleNamespace(steps=t, participations=k))
    law = composed(step, t, k, params.EPOCHS.check(epochs), 1.0, resolution).upper
    return to_pld(law, allocation_params.LOSS_STEP.check(loss_step))


@dataclass(frozen=True, eq=False)
class _GivenStep(Step):
    """A mechanism given by a dominating likelihood-ratio distribution."""

    law: RatioDistribution

    def ratio(self, res: Resolution) -> RatioBracket:
        """Return the distribution on the cells of the resolution; the lower end only guides the grid."""
        one = RatioBracket(lower=_ONE, upper=_ONE)
        return combine(RatioBracket(lower=self.law, upper=self.law), one, res, product=True)

    def width(self) -> float:
        """Return the largest logarithm of the ratio."""
        return float(np.log(self.law.x[-1]))


_ONE = RatioDistribution(x=np.ones(1), p=np.ones(1))
