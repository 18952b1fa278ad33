r"""Privacy losses with errors outwards: bounds of epsilon and delta without the range of doubles of ratios.

With the loss $L = \ln dP/dQ$ of the outputs under P, $\delta(\varepsilon) = E_P (1 - e^{\varepsilon - L})_+$,
and for the direction add the same with P and Q exchanged. The term grows with L. So losses that are nowhere
above L give a lower bound of the profile, and losses that are nowhere below L an upper one: no spread, and no
masses under Q, which leave the range of doubles together with the ratios. The loss of independent parts is
the sum of their losses, and both bounds hold for sums.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from privcore.likelihood_ratio.distribution import LikelihoodRangeError, RatioBracket, RatioDistribution
from privcore.likelihood_ratio.grid import Array
from privcore.likelihood_ratio.profile import Direction
from privcore.numerics.rounding import SUMMED, UNIT

LOST = 1e-130
"""Bound of the probability of all outputs that are not in any cell: those whose masses leave the range of
doubles, and those at which a part that is left out matters."""


@dataclass(frozen=True)
class PrivacyLoss:
    """Losses, with their masses under the first distribution of a pair, as one end of the true loss.

    Attributes:
        loss: The finite losses.
        mass: Their masses, with a relative error of at most e^`mass_error`.
        infinite: Upper bound of the mass of outputs with an infinite loss; 0 for a lower end.
        mass_error: Logarithm of the largest error of a mass.
        drift: Upper bound of the change of a profile by other rounding.
    """

    loss: Array
    mass: Array
    infinite: float = 0.0
    mass_error: float = 0.0
    drift: float = 0.0

    def weighted(self, weight: float) -> "PrivacyLoss":
        """Return the losses of outputs that occur with this probability."""
        return replace(
            self,
            mass=self.mass * weight,
            infinite=self.infinite * weight * (1.0 + SUMMED),
            mass_error=self.mass_error + 2.0 * UNIT,
            drift=self.drift * weight * (1.0 + SUMMED),
        )


@dataclass(frozen=True)
class LossEnds:
    """Privacy losses that bound the loss of a part from both sides."""

    below: PrivacyLoss
    above: PrivacyLoss

    @classmethod
    def of_cells(
        cls, low: Array, high: Array, mass: Array, mass_error: float, infinite: float = LOST
    ) -> "LossEnds":
        """Return the ends of losses that lie between two numbers in each of some cells of outputs.

        Args:
            low: Least loss of each cell, or -inf, which counts as no privacy loss.
            high: Largest loss of each cell, or inf.
            mass: Masses of the cells.
            mass_error: Logarithm of the largest error of a mass.
            infinite: Mass of outputs outside the cells.
        """
        finite, proved = np.isfinite(high), np.isfinite(low)
        rest = float(mass[~finite].sum()) * math.exp(mass_error + SUMMED) + infinite
        return cls(
            PrivacyLoss(low[proved], mass[proved], mass_error=mass_error, drift=LOST),
            PrivacyLoss(high[finite], mass[finite], rest, mass_error),
        )

    @property
    def gap(self) -> float:
        """The difference of both mean losses, about, as the width of the cells causes it."""
        means = (
            float(end.mass @ end.loss) / max(float(end.mass.sum()), UNIT) for end in (self.above, self.below)
        )
        return abs(next(means) - next(means))


def mixture(weights: Sequence[float], ends: Sequence[LossEnds]) -> LossEnds:
    """Return the ends for a part that follows one of several others, chosen at random and revealed.

    Args:
        weights: Probabilities; for an upper end their sum may exceed 1.
        ends: The ends of the parts.
    """
    return LossEnds(
        *(
            _union([getattr(each, side).weighted(weight) for weight, each in zip(weights, ends, strict=True)])
            for side in ("below", "above")
        )
    )


def _union(parts: Sequence[PrivacyLoss]) -> PrivacyLoss:
    return PrivacyLoss(
        np.concatenate([each.loss for each in parts]),
        np.concatenate([each.mass for each in parts]),
        math.fsum(each.infinite for each in parts),
        max(each.mass_error for each in parts),
        math.fsum(each.drift for each in parts),
    )


def from_ratios(bracket: RatioBracket, direction: Direction) -> LossEnds:
    """Return the ends of the loss whose ratio has this bracket.

    A loss of the upper distribution belongs to a pair that dominates the part, one of the lower distribution
    to a post-processing. A drift changes E(X R - kappa)_+ by at most its value for every independent factor
    R, so drifts add up over the factors of a product.

    Raises:
        LikelihoodRangeError: The errors exceed the masses, so that no bound is left.
    """
    return LossEnds(_loss_of(bracket.lower, direction, -1.0), _loss_of(bracket.upper, direction, 1.0))


def _loss_of(law: RatioDistribution, direction: Direction, side: float) -> PrivacyLoss:
    inside = law.x > 0.0
    x, p = law.x[inside], law.p[inside]
    sign = 1.0 if direction == "remove" else -1.0
    infinite = law.infinite if direction == "remove" else float(law.p[~inside].sum())
    error = law.mass_error + law.value_error + 8.0 * UNIT
    if not error < 1.0:
        raise LikelihoodRangeError
    loss = sign * np.log(x)
    return PrivacyLoss(
        loss + side * (law.value_error + 4.0 * UNIT * (1.0 + np.abs(loss))),
        p * x if direction == "remove" else p,
        infinite * math.exp(error) * (1.0 + SUMMED) + LOST if side > 0.0 else 0.0,
        error,
        law.drift_remove if direction == "remove" else law.drift_add,
    )
