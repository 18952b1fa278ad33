"""Questions about trade-off curves: rates, the advantage, the accuracy at a prior, and mu with its range."""

import math
from dataclasses import dataclass

import numpy as np

from privcore.likelihood_ratio import tradeoff
from privcore.likelihood_ratio.distribution import RatioDistribution
from privcore.likelihood_ratio.enclose import Question
from privcore.likelihood_ratio.profile import delta_lower, delta_upper
from privcore.numerics.gaussian import gaussian_rate_bounds
from privcore.numerics.rounding import FEW_FUNCTIONS, FEW_OPERATIONS, NOISE_BRACKET


@dataclass(frozen=True, kw_only=True)
class PowerQuestion(Question):
    """Largest true positive rate at a false positive rate; of both orders, if both directions are asked."""

    asks: str = "true_positive_rate"

    @property
    def scale(self) -> float:
        """The false positive rate."""
        return self.at

    @property
    def trivial(self) -> float:
        return self.at

    def gaussian(self, mu: float) -> tuple[float, float]:
        return gaussian_rate_bounds(self.at, mu)

    def upper(self, distribution: RatioDistribution) -> float:
        return float(tradeoff.powers_upper(distribution, np.array([self.at]), self.adjacency)[0])

    def lower(self, distribution: RatioDistribution) -> float:
        return float(tradeoff.powers_lower(distribution, np.array([self.at]), self.adjacency)[0])


@dataclass(frozen=True, kw_only=True)
class RateQuestion(Question):
    """Smallest false positive rate at a true positive rate; of both orders, if both directions are asked."""

    falls = True

    asks: str = "false_positive_rate"

    @property
    def scale(self) -> float:
        """The true positive rate."""
        return self.at

    @property
    def trivial(self) -> float:
        return self.at

    def gaussian(self, mu: float) -> tuple[float, float]:
        return gaussian_rate_bounds(self.at, -mu)

    def upper(self, distribution: RatioDistribution) -> float:
        return float(tradeoff.rates_lower(distribution, np.array([self.at]), self.adjacency)[0])

    def lower(self, distribution: RatioDistribution) -> float:
        return float(tradeoff.rates_upper(distribution, np.array([self.at]), self.adjacency)[0])


@dataclass(frozen=True, kw_only=True)
class MuQuestion(Question):
    """Largest mu of the Gaussian curves through the points of the trade-off curve, from a smallest rate on.

    It is the smallest mu such that the curve of the Gaussian mechanism is above the trade-off curve at all
    false positive rates from `at` to 1 - `at`.
    """

    asks: str = "mu"

    @property
    def scale(self) -> float:
        """A fraction of the smallest false positive rate; a small mu changes the rates only a little."""
        return 1e-3 * self.at

    @property
    def trivial(self) -> float:
        return 0.0

    def gaussian(self, mu: float) -> tuple[float, float]:
        return mu * (1.0 - NOISE_BRACKET), mu * (1.0 + NOISE_BRACKET)

    def upper(self, distribution: RatioDistribution) -> float:
        return tradeoff.mu_upper(distribution, self.at, self.adjacency)

    def lower(self, distribution: RatioDistribution) -> float:
        return tradeoff.mu_lower(distribution, self.at, self.adjacency)


@dataclass(frozen=True, kw_only=True)
class AdvantageQuestion(Question):
    """Largest difference of the true and the false positive rate, which is the same in both orders."""

    asks: str = "advantage"
    at: float = 0.0
    adjacency: str = "add-remove"

    def upper(self, distribution: RatioDistribution) -> float:
        return min(delta_upper(distribution, 0.0, direction) for direction in ("remove", "add"))

    def lower(self, distribution: RatioDistribution) -> float:
        return delta_lower(distribution, 0.0, "add-remove")


@dataclass(frozen=True, kw_only=True)
class AccuracyQuestion(Question):
    """Delta that gives the accuracy at a prior; a delta below the scale hardly changes the accuracy."""

    asks: str = "delta"

    @property
    def scale(self) -> float:
        return 1e-9


def accuracy_question(prior: float) -> Question:
    r"""Translate a prior into the delta that gives the Bayes accuracy; see `accuracy_bounds`.

    Example:
        >>> question = accuracy_question(0.25)
        >>> question.adjacency, round(question.at, 6)
        ('remove', 1.098612)
    """
    odds = math.log1p(-prior) - math.log(prior)
    return AccuracyQuestion(at=abs(odds), adjacency="remove" if prior < 0.5 else "add")


def accuracy_bounds(prior: float, lower: float, upper: float) -> tuple[float, float]:
    r"""Return the ends of the largest accuracy of a guess whether the example is in the data set.

    With the prior $\pi < 1/2$ of membership it is $1 - \pi + \pi H_{(1-\pi)/\pi}(P \| Q)$, and for a larger
    prior $\pi + (1 - \pi) H_{\pi/(1-\pi)}(Q \| P)$: the accuracy of the better constant guess, and the gain.
    An error of the logarithm of the odds changes the delta by at most as much.

    Args:
        prior: Probability that the example is in the data set, in (0, 1).
        lower: Lower end of the answer to `accuracy_question`.
        upper: Upper end of this answer.

    Example:
        >>> accuracy_bounds(0.5, 0.2, 0.2)
        (0.5999..., 0.6000...)
    """
    best, gain = max(prior, 1.0 - prior), min(prior, 1.0 - prior)
    least = (best + gain * lower) * (1.0 - FEW_FUNCTIONS)
    most = (best + gain * upper) * (1.0 + FEW_FUNCTIONS)
    return max(least, best * (1.0 - FEW_OPERATIONS)), min(most, 1.0)


def precision_bounds(prior: float, rate: float, lower: float, upper: float) -> tuple[float, float]:
    r"""Return the ends of the largest precision of an attack with a given false positive rate.

    Precision is the share of members among the examples that the attack calls members,
    $\pi T / (\pi T + (1 - \pi) a)$ for the prior $\pi$, the true positive rate T and the false positive rate
    a.

    Args:
        prior: Probability that the example is in the data set, in (0, 1).
        rate: False positive rate, > 0.
        lower: Lower end of the true positive rate, with the null hypothesis that the example is absent.
        upper: Upper end of this rate.

    Example:
        >>> precision_bounds(0.5, 0.1, 0.3, 0.3)
        (0.7499..., 0.7500...)
    """
    ends = [prior * power / (prior * power + (1.0 - prior) * rate) for power in (lower, upper)]
    return ends[0] * (1.0 - FEW_OPERATIONS), min(1.0, ends[1] * (1.0 + FEW_OPERATIONS))
