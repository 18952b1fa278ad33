"""Questions about the best attack on the worst learner of discrete records, and their monotonicity."""

from abc import abstractmethod
from types import MappingProxyType
from typing import Annotated

from privcore.constraint import AtLeast, AtMost
from privcore.distributions import record_notation as spelling
from privcore.distributions.record import RecordDistribution
from privcore.membership import params as membership_params
from privcore.membership.problem import MembershipProblem
from privcore.numerics.rounding import FEW_OPERATIONS
from privcore.problem import falls, grows, proved

_MARTINGALE = (
    "The relative counts of n + 1 records are the conditional means of those of n of them, and a positive "
    "part is convex (Jensen)."
)
_FEWER = proved(records=falls(_MARTINGALE))
_LEAST_ODDS, _MOST_ODDS = membership_params.ODDS.lower, membership_params.ODDS.upper
_NO_ODDS = (
    f"Expected nonmember_share / (member_weight (1 - nonmember_share)) in [{_LEAST_ODDS:g}, {_MOST_ODDS:g}], "
    "got {gamma:.6g}."
)


class DistributionProblem(MembershipProblem):
    """Base of the questions about one distribution of records."""

    law: Annotated[str, membership_params.LAW]

    @property
    def distribution(self) -> RecordDistribution:
        """The distribution of a record."""
        return spelling.law(self.law)


class WorstLearnerProblem(DistributionProblem):
    """Base of the questions whose answer follows from the largest advantage over all learners."""

    records: Annotated[int, membership_params.RECORDS]

    @property
    @abstractmethod
    def gamma(self) -> float:
        """Odds of the advantage that the question is about."""

    @abstractmethod
    def from_advantage(self, lower: float, upper: float) -> tuple[float, float]:
        """Return both ends of the answer, rounded outwards, for both ends of the advantage."""


class MembershipAdvantage(WorstLearnerProblem):
    r"""Largest advantage of an attack on any learner of n independent records with a discrete distribution.

    With P1 the joint distribution of a release and a training record, and P0 that of a release and a fresh
    record, it is the largest $P_1(B) - \gamma P_0(B)$ for $\gamma \ge 1$, and the largest
    $P_0(B) - P_1(B) / \gamma$ for $\gamma \le 1$. At odds 1 it is the largest difference of the true and
    false positive rates. A learner is any random function of the records; the worst learner releases the
    number of records with each value.
    """

    name = "membership-advantage"
    asks = "advantage"
    largest = 1.0
    monotone = _FEWER

    odds: Annotated[float, membership_params.ODDS] = 1.0

    @property
    def gamma(self) -> float:
        return self.odds

    def from_advantage(self, lower: float, upper: float) -> tuple[float, float]:
        return lower, upper


class MembershipSecurity(WorstLearnerProblem):
    """Least security of a learner of n discrete records: 1 minus the largest advantage of an attack."""

    name = "membership-security"
    asks = "security"
    largest = 1.0
    monotone = proved(records=grows(_MARTINGALE))

    odds: Annotated[float, membership_params.ODDS] = 1.0

    @property
    def gamma(self) -> float:
        return self.odds

    def from_advantage(self, lower: float, upper: float) -> tuple[float, float]:
        return max(0.0, 1.0 - upper - FEW_OPERATIONS), min(1.0, 1.0 - lower + FEW_OPERATIONS)


class MembershipAccuracy(WorstLearnerProblem):
    r"""Largest accuracy of an attack on any learner of n discrete records.

    The accuracy is $\nu$ times the true negative rate plus $\lambda (1 - \nu)$ times the true positive rate,
    with the share $\nu$ of non-members among the tested records and the weight $\lambda$ of members. The odds
    are $\nu / (\lambda (1 - \nu))$.
    """

    name = "membership-accuracy"
    asks = "accuracy"
    monotone = _FEWER
    constraints = (AtLeast("gamma", _LEAST_ODDS, _NO_ODDS), AtMost("gamma", _MOST_ODDS, _NO_ODDS))
    stated = MappingProxyType(
        {
            "nonmember_share": "the probability that a tested record is a non-member, such as 0.5; a guess "
            "without an attack is right for the more frequent kind"
        }
    )

    nonmember_share: Annotated[float, membership_params.NONMEMBER_SHARE] = 0.5
    member_weight: Annotated[float, membership_params.MEMBER_WEIGHT] = 1.0

    @property
    def gamma(self) -> float:
        return self.nonmember_share / (self.member_weight * (1.0 - self.nonmember_share))

    def from_advantage(self, lower: float, upper: float) -> tuple[float, float]:
        fresh, member = self.nonmember_share, self.member_weight * (1.0 - self.nonmember_share)
        blind, gain = max(fresh, member), min(fresh, member)
        return (blind + gain * lower) * (1.0 - FEW_OPERATIONS), (blind + gain * upper) * (
            1.0 + FEW_OPERATIONS
        )


class MembershipRecordRisk(MembershipProblem):
    """Largest advantage of an attack on records that have one value of known probability, on any learner."""

    name = "membership-record-risk"
    asks = "risk"
    largest = 1.0
    monotone = proved(
        records=falls(_MARTINGALE),
        atom_probability=falls(
            "The count of a rarer value is a thinning of the count of a commoner value, so the relative "
            "count of the commoner value is a conditional mean of that of the rarer value (Jensen)."
        ),
    )

    atom_probability: Annotated[float, membership_params.ATOM_PROBABILITY]
    records: Annotated[int, membership_params.RECORDS]
    odds: Annotated[float, membership_params.ODDS] = 1.0


class MembershipRiskQuantile(DistributionProblem):
    """Quantile of the risk over the records: the least r such that this share has a risk of at most r.

    The advantage is the mean risk over the distribution of records. A share that misses the level by less
    than 1e-12 reaches it. Level 1 is the largest risk, which is 1 for infinitely many atoms.
    """

    name = "membership-risk-quantile"
    asks = "risk"
    largest = 1.0
    monotone = proved(
        records=_FEWER["records"], risk_level=grows("A distribution function and its inverse are monotone.")
    )

    records: Annotated[int, membership_params.RECORDS]
    risk_level: Annotated[float, membership_params.RISK_LEVEL]
    odds: Annotated[float, membership_params.ODDS] = 1.0


class MembershipDiversity(DistributionProblem):
    r"""Diversity of a distribution, $C = \sum_k \sqrt{p_k (1 - p_k)}$.

    It is infinite for heavy tails and continuous parts. The advantage at odds 1 falls like
    $C / \sqrt{2 \pi n}$ if C is finite, and more slowly otherwise.
    """

    name = "membership-diversity"
    asks = "diversity"


class MembershipRoc(DistributionProblem):
    """Largest true positive rate of an attack on any learner, at a given false positive rate.

    The attack may be randomised. The learner that releases the multiset of its records is the worst at every
    rate.
    """

    name = "membership-roc"
    asks = "true_positive_rate"
    largest = 1.0
    monotone = proved(
        records=falls(_MARTINGALE + " The rate is the infimum of lines that fall with these advantages."),
        false_positive_rate=grows("The sets of attacks are nested."),
    )

    records: Annotated[int, membership_params.RECORDS]
    false_positive_rate: Annotated[float, membership_params.FALSE_POSITIVE_RATE]


class MembershipRecords(DistributionProblem):
    """Least number of records at which no attack on any learner exceeds the tolerated advantage."""

    name = "membership-records"
    asks = "records"
    monotone = proved(target_advantage=falls("The sets of sufficient numbers of records are nested."))

    target_advantage: Annotated[float, membership_params.TARGET_ADVANTAGE]
    odds: Annotated[float, membership_params.ODDS] = 1.0


WorstLearner = MembershipAdvantage | MembershipSecurity | MembershipAccuracy
