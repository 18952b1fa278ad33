"""Privacy loss distributions, for `dp-accounting`, of random allocation of Gaussian or given mechanisms."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np

from privcore import params
from privcore.allocation import params as allocation_params
from privcore.allocation.problems import FEWER_THAN_STEPS
from privcore.allocation.reduction import composed
from privcore.likelihood_ratio.distribution import RatioBracket, RatioDistribution, Resolution, combine
from privcore.likelihood_ratio.pld import from_pld, to_pld
from privcore.likelihood_ratio.steps import GaussianStep, Step

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

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
