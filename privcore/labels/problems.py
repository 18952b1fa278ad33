"""Problems about a release of labels of examples drawn from a prior, and their monotonicity."""

import math
from collections.abc import Mapping
from typing import Annotated, Any, Self

from privcore.constraint import Constraint, NoneOf, OneOf
from privcore.distributions.prior import Prior
from privcore.distributions.prior_finite import FinitePrior
from privcore.distributions.prior_notation import prior
from privcore.errors import DomainError
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
    NoneOf(
        "label_epsilon",
        (0.0,),
        "Expected label_epsilon > 0 for {mechanism}, whose noise would be infinite, got 0; mechanism=rr "
        "accepts 0.",
        where=NoneOf("mechanism", ("rr",)),
    ),
    OneOf(
        "bag_size",
        (1,),
        "Expected bag_size=1 for mechanism {mechanism}, which has no bags, got {bag_size}.",
        where=OneOf("mechanism", SINGLE),
    ),
)
"""Constraints on the noise and on the bag size of each mechanism."""

BAGS_OF_A_FILE: tuple[Constraint, ...] = (
    OneOf(
        "is_column",
        (True,),
        "Expected draw=with-replacement for prior={prior}, since only rows of a file can be cut into bags.",
        where=OneOf("draw", ("partition",)),
    ),
    NoneOf(
        "mechanism",
        SINGLE,
        "Expected draw=with-replacement for mechanism {mechanism}, which has no bags, got partition.",
        where=OneOf("draw", ("partition",)),
    ),
)
"""Constraints on the draw of the bags."""

_LESS_NOISE = (
    "The release at a smaller epsilon is a post-processing of the release at a larger epsilon, for "
    "randomized response, geometric and Laplace noise, so an attacker does at least as well at the larger "
    "epsilon."
)
_LARGER_BAGS = (
    "An attacker can add a simulated label with known distribution to the sum of k labels, with the same "
    "noise, and obtains the release of a bag of k + 1; in a partition, of another row of the file."
)
_MONOTONE = proved(label_epsilon=grows(_LESS_NOISE), bag_size=falls(_LARGER_BAGS))


class ReleaseProblem(Problem):
    """Base of all problems about a release of labels."""

    topic = "labels"


class LabelProblem(ReleaseProblem):
    """Base of the problems about one mechanism and one prior."""

    constraints = (*MECHANISM, *BAGS_OF_A_FILE)

    mechanism: Annotated[str, label_params.MECHANISM]
    prior: Annotated[str, label_params.PRIOR]
    bag_size: Annotated[int, label_params.BAG_SIZE] = 1
    label_epsilon: Annotated[float, label_params.LABEL_EPSILON] = math.inf
    draw: Annotated[str, label_params.DRAW] = "with-replacement"

    @property
    def is_column(self) -> bool:
        """Whether the prior is a column of a file."""
        return self.prior.startswith("column(")

    @property
    def is_partition(self) -> bool:
        """Whether the bags are a random partition of the rows of a file."""
        return self.draw == "partition"

    @property
    def examples(self) -> int:
        """Number of examples in the bags that the question is about."""
        return self.bag_size

    def contradiction(self) -> str:
        """Return the reason if the file of a partition has too few rows, or no row of the attacked kind."""
        counts = self.distribution.counts if self.is_partition else None
        if counts is not None and counts.sum() < self.examples:
            return (
                f"Expected bags with at most {counts.sum()} examples, the number of rows of the file, got "
                f"{self.examples}; draw=with-replacement allows larger bags."
            )
        return ""

    @classmethod
    def asked(cls, given: Mapping[str, Any]) -> Self:
        """Return the problem for a question, in which bags of a column are a partition of its file.

        Raises:
            DomainError: As for all problems, or the bags are larger than the file.
        """
        problem = super().asked(given)
        if problem.is_column and problem.mechanism not in SINGLE and "draw" not in given:
            problem = cls.from_fields({**problem.as_fields(), "draw": "partition"})
        if reason := problem.contradiction():
            raise DomainError(reason)
        return problem

    @property
    def distribution(self) -> Prior:
        """The prior of the examples."""
        return prior(self.prior)

    @property
    def attacked(self) -> Prior:
        """The prior of the example whose label is attacked."""
        return self.distribution


class LabelAdvantage(LabelProblem):
    r"""Expected additive advantage: increase of the accuracy of the best guess of a label by the release z.

    $E_x \sum_z \max(\eta g_1(z), (1 - \eta) g_0(z)) - E \max(\eta, 1 - \eta)$ over examples of the prior with
    known features, with the likelihoods $g_y$ of the release z given the label y.
    """

    name = "label-advantage"
    asks = "advantage"
    largest = 0.5
    monotone = _MONOTONE


class AtEta(LabelProblem):
    """Base of the problems about examples with one eta, in bags with others drawn from the prior.

    In a partition, the example is a row of the file, and the others are rows except that one.
    """

    eta: Annotated[float, label_params.ETA]

    @property
    def attacked(self) -> Prior:
        return FinitePrior.point(self.eta)

    def contradiction(self) -> str:
        atoms = self.distribution.atoms if self.is_partition else None
        if atoms is not None and self.eta not in atoms[0]:
            return f"Expected eta of a row of the file for draw=partition, got eta={self.eta:g} of no row."
        return super().contradiction()


class LabelAdvantageAt(AtEta):
    """Individual additive advantage: for examples with this eta, in bags with others drawn from the prior.

    In a partition, the example is a row of the file, and the others are rows except that one.
    """

    name = "label-advantage-at"
    asks = "advantage"
    largest = 0.5
    monotone = _MONOTONE


class LabelAdvantageShare(LabelProblem):
    """Share of the examples whose additive advantage, given all features, exceeds a threshold."""

    name = "label-advantage-share"
    asks = "probability"
    largest = 1.0
    monotone = proved(
        label_epsilon=grows(_LESS_NOISE + " This holds for all features x."),
        threshold=falls("The events are nested."),
    )

    threshold: Annotated[float, label_params.ADVANTAGE_THRESHOLD]


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

    @property
    def examples(self) -> int:
        return self.bags * self.bag_size


class LabelRatioTail(LabelProblem):
    r"""Probability that the multiplicative advantage $|\ln g_1(z) - \ln g_0(z)|$ exceeds a threshold."""

    name = "label-ratio-tail"
    asks = "probability"
    largest = 1.0
    monotone = proved(log_ratio=falls("The events are nested."))

    log_ratio: Annotated[float, label_params.LOG_RATIO]


class LabelRatioQuantile(LabelProblem):
    """Quantile of the multiplicative advantage in nats; infinite if enough releases reveal the label."""

    name = "label-ratio-quantile"
    asks = "log_ratio"
    monotone = proved(level=grows("A distribution function and its inverse are monotone."))

    level: Annotated[float, label_params.LEVEL]


class LabelRatioTailAt(AtEta, LabelRatioTail):
    """Probability that the multiplicative advantage exceeds a threshold, for examples with this eta."""

    name = "label-ratio-tail-at"


class LabelRatioQuantileAt(AtEta, LabelRatioQuantile):
    """Quantile of the multiplicative advantage in nats, for examples with this eta."""

    name = "label-ratio-quantile-at"


class LabelRatioInfinite(LabelProblem):
    """Probability that the release reveals the label, since it is impossible under the other label."""

    name = "label-ratio-infinite"
    asks = "probability"
    largest = 1.0
    monotone = proved(
        bag_size=falls(
            "Both terms of the closed form are powers of probabilities; the events of a partition are nested."
        )
    )


class LabelAttackAccuracy(LabelProblem):
    """Expected attack utility: accuracy of the best guess of a label, given features and release."""

    name = "label-attack-accuracy"
    asks = "accuracy"
    largest = 1.0
    monotone = _MONOTONE


Thresholded = LabelAdvantageTail | LabelAdvantageShare
"""Problems about the probability of an advantage above a threshold."""
Featured = LabelAdvantage | LabelAdvantageAt
"""Problems about the advantage at one example with features."""
OfBag = (
    LabelAdvantage
    | LabelAdvantageAt
    | LabelAdvantageTail
    | LabelAdvantageShare
    | LabelRatioTail
    | LabelRatioTailAt
    | LabelRatioQuantile
    | LabelRatioQuantileAt
    | LabelAttackAccuracy
)
"""Problems about a bag that are answered by sums over the features of the others, or by samples."""
