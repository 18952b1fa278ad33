"""Problems about a release of labels of examples drawn from a prior, and their monotonicity."""

import math
from dataclasses import dataclass
from typing import Annotated

from privcore.constraint import Constraint, NoneOf, OneOf
from privcore.distributions.prior import Prior
from privcore.distributions.prior_finite import FinitePrior
from privcore.distributions.prior_notation import prior
from privcore.labels import params as label_params
from privcore.problem import Problem, falls, grows, proved

NOISELESS = ("none", "llp")
SINGLE = ("none", "rr")

MECHANISM: tuple[Constraint, ...] = (
    OneOf(
        "label_epsilon",
        (math.inf,),
        "Expected label_epsilon=inf for {mechanism}, which adds no noise, got {label_epsilon:g}.",
        where=OneOf("mechanism", NOISELESS),
    ),
    NoneOf(
        "label_epsilon",
        (math.inf,),
        "Expected a finite label_epsilon for mechanism {mechanism}, got inf.",
        where=NoneOf("mechanism", NOISELESS),
    ),
    OneOf(
        "bag_size",
        (1,),
        "Expected bag_size=1 for mechanism {mechanism}, which has no bags, got {bag_size}.",
        where=OneOf("mechanism", SINGLE),
    ),
)
"""Constraints on the noise and on the bag size of each mechanism."""

_LESS_NOISE = (
    "The release at a smaller epsilon is a post-processing of the release at a larger epsilon, for "
    "randomized response, geometric and Laplace noise, so an attacker does at least as well at the larger "
    "epsilon."
)
_LARGER_BAGS = (
    "An attacker can add a simulated label with known distribution to the sum of k labels, with the same "
    "noise, and obtains the release of a bag of k + 1."
)
_MONOTONE = proved(label_epsilon=grows(_LESS_NOISE), bag_size=falls(_LARGER_BAGS))


@dataclass(frozen=True, kw_only=True)
class ReleaseProblem(Problem):
    """Base of all problems about a release of labels."""

    topic = "labels"


@dataclass(frozen=True, kw_only=True)
class LabelProblem(ReleaseProblem):
    """Base of the problems about one mechanism and one prior."""

    constraints = MECHANISM

    mechanism: Annotated[str, label_params.MECHANISM]
    prior: Annotated[str, label_params.PRIOR]
    bag_size: Annotated[int, label_params.BAG_SIZE] = 1
    label_epsilon: Annotated[float, label_params.LABEL_EPSILON] = math.inf

    @property
    def distribution(self) -> Prior:
        """The prior of the examples."""
        return prior(self.prior)

    @property
    def attacked(self) -> Prior:
        """The prior of the example whose label is attacked."""
        return self.distribution


@dataclass(frozen=True, kw_only=True)
class LabelAdvantage(LabelProblem):
    r"""Expected additive advantage: increase of the accuracy of the best guess of a label by the release z.

    $E_x \sum_z \max(\eta g_1(z), (1 - \eta) g_0(z)) - E \max(\eta, 1 - \eta)$ over examples of the prior with
    known features, with the likelihoods $g_y$ of the release z given the label y.
    """

    name = "label-advantage"
    asks = "advantage"
    largest = 0.5
    monotone = _MONOTONE


@dataclass(frozen=True, kw_only=True)
class LabelAdvantageAt(LabelProblem):
    """Individual additive advantage: for examples with this eta, in bags with others drawn from the prior."""

    name = "label-advantage-at"
    asks = "advantage"
    largest = 0.5
    monotone = _MONOTONE

    eta: Annotated[float, label_params.ETA]

    @property
    def attacked(self) -> Prior:
        return FinitePrior.point(self.eta)


@dataclass(frozen=True, kw_only=True)
class LabelAdvantageTail(LabelProblem):
    """Probability that the mean advantage over m examples, given their features, exceeds a threshold.

    Here m is the number of examples in all bags: `bags` times `bag_size`.
    """

    name = "label-advantage-tail"
    asks = "probability"
    largest = 1.0
    monotone = proved(
        label_epsilon=grows(_LESS_NOISE + " This holds for all features x."),
        threshold=falls("The events are nested."),
    )

    threshold: Annotated[float, label_params.ADVANTAGE_THRESHOLD]
    bags: Annotated[int, label_params.BAGS] = 1


@dataclass(frozen=True, kw_only=True)
class LabelRatioTail(LabelProblem):
    r"""Probability that the multiplicative advantage $|\ln g_1(z) - \ln g_0(z)|$ exceeds a threshold."""

    name = "label-ratio-tail"
    asks = "probability"
    largest = 1.0
    monotone = proved(log_ratio=falls("The events are nested."))

    log_ratio: Annotated[float, label_params.LOG_RATIO]


@dataclass(frozen=True, kw_only=True)
class LabelRatioQuantile(LabelProblem):
    """Quantile of the multiplicative advantage in nats; infinite if enough releases reveal the label."""

    name = "label-ratio-quantile"
    asks = "log_ratio"
    monotone = proved(level=grows("A distribution function and its inverse are monotone."))

    level: Annotated[float, label_params.LEVEL]


@dataclass(frozen=True, kw_only=True)
class LabelRatioInfinite(LabelProblem):
    """Probability that the release reveals the label, since it is impossible under the other label."""

    name = "label-ratio-infinite"
    asks = "probability"
    largest = 1.0
    monotone = proved(bag_size=falls("Both terms of the closed form are powers of probabilities."))


@dataclass(frozen=True, kw_only=True)
class LabelAttackAccuracy(LabelProblem):
    """Expected attack utility: accuracy of the best guess of a label, given features and release."""

    name = "label-attack-accuracy"
    asks = "accuracy"
    largest = 1.0
    monotone = _MONOTONE


Featured = LabelAdvantage | LabelAdvantageAt
"""Problems about the advantage at one example with features."""
