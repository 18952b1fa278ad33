"""Questions about experiments: the share of records that a learner fits, and the use of quantised images."""

from types import MappingProxyType
from typing import Annotated

from privcore.constraint import AtLeast, NoneOf, OneOf
from privcore.membership import params as membership_params
from privcore.membership.experiments import params as experiment_params
from privcore.membership.problem import AdvantageProblem, MembershipProblem
from privcore.problem import falls, grows, proved

_OF_NETWORKS = ("width", "iterations", "stopping_loss")
_NO_NETWORK = (
    "Expected width=0, iterations=0 and stopping_loss=0 for learner={learner}, got "
    "width={width}, iterations={iterations}, stopping_loss={stopping_loss:g}."
)


class MembershipFit(MembershipProblem):
    r"""Probability that the squared loss of a record is at most a level, after training on n records.

    Features x are uniform on the unit sphere in d dimensions. The target is $\sin(\pi x_1)$, or $\pi x_1$ for
    the linear learner, plus Gaussian noise. The record is one of the training set, or a fresh one; the
    probability is over the training set, the record and the randomness of the learner. Learners are a network
    with one hidden layer of rectified linear units, trained by full-batch Adam at rate 0.1; least squares of
    minimum norm without an offset; and the nearest neighbour.
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

    stated = MappingProxyType(
        {
            "noise_deviation": "the standard deviation of the noise of the target, such as 0.1; all losses "
            "depend on it",
            "iterations": "the number of training iterations of the network; with 0 it is not trained",
        }
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


class MembershipQuantised(MembershipProblem):
    """Expected test accuracy of a classifier of digits whose input is the cluster of an image.

    The 1797 images of the UCI digits are split once: 397 for the clusters, by k-means; 1000 from which the
    training records are drawn with replacement; and 400 for testing. Every image is replaced by the centre of
    its cluster. The expectation is over the training records and the initial weights.
    """

    name = "membership-quantised"
    asks = "accuracy"
    largest = 1.0

    clusters: Annotated[int, experiment_params.CLUSTERS]
    records: Annotated[int, membership_params.RECORDS]


class MembershipQuantisedAdvantage(AdvantageProblem):
    """Largest advantage of an attack on any learner that is trained on quantised images of digits.

    A record is drawn with replacement from the 1000 images of the pool of `membership-quantised`. It is the
    number of the cluster, or this number and the label; only the latter covers learners that use labels.
    """

    name = "membership-quantised-advantage"
    monotone = proved(records=falls("Relative counts are a reverse martingale (Jensen)."))
    # Raw images have no distribution with atoms.
    constraints = (AtLeast("clusters", 1, "Expected clusters >= 1 for quantised images, got clusters=0."),)

    clusters: Annotated[int, experiment_params.CLUSTERS]
    records: Annotated[int, membership_params.RECORDS]
    attributes: Annotated[str, experiment_params.ATTRIBUTES] = "cluster-and-label"
    odds: Annotated[float, membership_params.ODDS] = 1.0
