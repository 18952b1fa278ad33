"""Experiments with learners: what share of the records they fit, and what quantised images are worth."""

from dataclasses import dataclass
from typing import Annotated

from privcore.membership import params as membership_params
from privcore.membership.experiments import params as experiment_params
from privcore.membership.problem import AdvantageProblem, MembershipProblem
from privcore.problem import AtLeast, NoneOf, OneOf, falls, grows, proved

_OF_NETWORKS = ("width", "iterations", "stopping_loss")
_NO_NETWORK = (
    "Expected width=0, iterations=0 and stopping_loss=0 for learner={learner}, got "
    "width={width}, iterations={iterations}, stopping_loss={stopping_loss:g}."
)


@dataclass(frozen=True, kw_only=True)
class MembershipFit(MembershipProblem):
    r"""Probability that the squared loss of a record is at most a level, after training on n records.

    Features x are uniform on the unit sphere of d coordinates. The target is $\sin(\pi x_1)$, for the linear
    learner $\pi x_1$, plus Gaussian noise. The record is one of the training set, or a fresh one; the
    probability is over both, and over what the learner draws. Learners are a network with one hidden layer of
    rectified units, trained by Adam at rate 0.1 on all records at once; least squares of least norm without
    an offset; and the nearest neighbour.
    """

    name = "membership-overfitting"
    asks = "probability"
    largest = 1.0
    monotone = proved(loss_level=grows("The events are nested."))
    constraints = (
        AtLeast(
            "width",
            1,
            "Expected width >= 1 for learner=network, got width=0.",
            where=OneOf("learner", ("network",)),
        ),
        *(OneOf(name, (0,), _NO_NETWORK, where=NoneOf("learner", ("network",))) for name in _OF_NETWORKS),
        AtLeast("coordinates", 2, "Expected coordinates >= 2 for features on a sphere, got coordinates=1."),
    )

    learner: Annotated[str, experiment_params.LEARNER]
    coordinates: Annotated[int, membership_params.COORDINATES]
    records: Annotated[int, membership_params.RECORDS]
    loss_level: Annotated[float, membership_params.LOSS_LEVEL]
    tested: Annotated[str, experiment_params.TESTED]
    noise_deviation: Annotated[float, membership_params.NOISE_DEVIATION] = 0.1
    width: Annotated[int, experiment_params.WIDTH] = 0
    iterations: Annotated[int, experiment_params.ITERATIONS] = 0
    stopping_loss: Annotated[float, experiment_params.STOPPING_LOSS] = 0.0

    @property
    def interpolates(self) -> bool:
        """Whether every training record is fitted without error, almost surely."""
        return self.learner == "nearest" or (self.learner == "linear" and self.coordinates >= self.records)


@dataclass(frozen=True, kw_only=True)
class MembershipQuantised(MembershipProblem):
    """Expected accuracy on test images of a classifier of digits that knows each image by its cluster alone.

    The 1797 images of the UCI digits are split once: 397 for the clusters, by k-means, 1000 from which the
    training records are drawn with replacement, 400 to test. Every image is replaced by the centre of its
    cluster. The expectation is over the records and the first weights.
    """

    name = "membership-quantised"
    asks = "accuracy"
    largest = 1.0

    clusters: Annotated[int, experiment_params.CLUSTERS]
    records: Annotated[int, membership_params.RECORDS]


@dataclass(frozen=True, kw_only=True)
class MembershipQuantisedAdvantage(AdvantageProblem):
    """Largest advantage of an attack on any learner that is trained on quantised images of digits.

    A record is drawn from the 1000 images of the pool of `membership-quantised`, with replacement: the number
    of its cluster, or that and its label. A learner that sees labels is covered by the latter alone.
    """

    name = "membership-quantised-advantage"
    monotone = proved(records=falls("Relative counts are a reverse martingale (Jensen)."))
    # Raw images have no distribution with atoms.
    constraints = (AtLeast("clusters", 1, "Expected clusters >= 1 for quantised images, got clusters=0."),)

    clusters: Annotated[int, experiment_params.CLUSTERS]
    records: Annotated[int, membership_params.RECORDS]
    attributes: Annotated[str, experiment_params.ATTRIBUTES] = "cluster-and-label"
    odds: Annotated[float, membership_params.ODDS] = 1.0
