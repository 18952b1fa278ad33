"""Questions about the advantage of attacks, given a property of the learner alone."""

import math
from types import MappingProxyType
from typing import Annotated

from privcore import params
from privcore.membership import params as membership_params
from privcore.membership.problem import AdvantageProblem, MembershipProblem
from privcore.problem import falls, grows, proved

_WEAKER = grows("More learners satisfy the weaker condition.")


class MembershipPrivateAdvantage(AdvantageProblem):
    """Largest advantage of an attack on any differentially private learner.

    It is the largest over all distributions and numbers of records and all (epsilon, delta)-DP learners. A
    non-member is an independent draw from the distribution, not a worst-case neighbour.
    """

    name = "membership-private-advantage"
    monotone = proved(claimed_epsilon=_WEAKER, claimed_delta=_WEAKER)
    stated = MappingProxyType(
        {
            "neighbours": "substitution (one record is replaced by another) or add-remove (one record is "
            "added or removed); at the same epsilon, add-remove allows up to twice the advantage",
            "claimed_delta": "the delta of the claim, or 0 for pure differential privacy; the advantage "
            "grows with it",
        }
    )

    claimed_epsilon: Annotated[float, params.CLAIMED_EPSILON]
    claimed_delta: Annotated[float, membership_params.CLAIMED_DELTA] = 0.0
    odds: Annotated[float, membership_params.ODDS] = 1.0
    neighbours: Annotated[str, membership_params.NEIGHBOURS] = "substitution"


class MembershipInformationAdvantage(AdvantageProblem):
    """Largest advantage of an attack on any learner whose release has at most this information on a record.

    The information is the mutual information between the release and one training record.
    """

    name = "membership-information-advantage"
    monotone = proved(information=_WEAKER)

    information: Annotated[float, membership_params.INFORMATION]


class MembershipBitsAdvantage(AdvantageProblem):
    """Largest advantage of an attack on any learner that releases b bits about n independent records."""

    name = "membership-bits-advantage"
    monotone = proved(bits=_WEAKER)

    bits: Annotated[int, membership_params.BITS]
    records: Annotated[int, membership_params.RECORDS]

    @property
    def information(self) -> float:
        """Upper bound of the mutual information of the release and a record, in nats."""
        return self.bits / self.records * math.log(2.0)


class MembershipOverfittingSecurity(MembershipProblem):
    """Largest security of any learner that fits its records: 1 minus the advantage of the best attack.

    Two probabilities are given for one level: that the loss of a training record exceeds the level, and that
    the loss of a fresh record is at most the level.
    """

    name = "membership-overfitting-security"
    asks = "security"
    largest = 1.0

    unfitted_share: Annotated[float, membership_params.UNFITTED_SHARE]
    fresh_share: Annotated[float, membership_params.FRESH_SHARE]
    odds: Annotated[float, membership_params.ODDS] = 1.0


class MembershipInterpolationCap(MembershipProblem):
    """Largest probability that the squared loss of a fresh record is at most a level, over all regressors.

    The target is any function of the features plus Gaussian noise. If this probability is small, a regressor
    that fits nearly all training records to the level leaks their membership, by Theorem 11.
    """

    name = "membership-interpolation-cap"
    asks = "probability"
    largest = 1.0
    monotone = proved(
        loss_level=grows("The events are nested."),
        noise_deviation=falls("The probability grows with loss_level / noise_deviation^2."),
    )

    loss_level: Annotated[float, membership_params.LOSS_LEVEL]
    noise_deviation: Annotated[float, membership_params.NOISE_DEVIATION]


class MembershipStoppingSecurity(MembershipProblem):
    """Largest security of any learner that trains until the mean training loss is at most a value.

    Losses are not negative. For a level, the probability is given that the loss of a fresh record is at most
    the level.
    """

    name = "membership-stopping-security"
    asks = "security"
    largest = 1.0
    monotone = proved(mean_loss=grows("The sets of learners are nested."))

    mean_loss: Annotated[float, membership_params.MEAN_LOSS]
    loss_level: Annotated[float, membership_params.LOSS_LEVEL]
    fresh_share: Annotated[float, membership_params.FRESH_SHARE]
    odds: Annotated[float, membership_params.ODDS] = 1.0


class MembershipSphereSecurity(MembershipProblem):
    """Largest security of a classifier that gradient flow trains on features that are uniform on a sphere.

    It is a network with one hidden layer of rectified linear units, at least as many as records, with two
    labels, and exponential or logistic loss. Training starts from some weights that classify all records
    correctly, and never stops: the release is the direction to which the weights converge.
    """

    name = "membership-sphere-security"
    asks = "security"
    largest = 1.0

    sphere_dimension: Annotated[int, membership_params.SPHERE_DIMENSION]
    records: Annotated[int, membership_params.RECORDS]
    odds: Annotated[float, membership_params.ODDS] = 1.0
