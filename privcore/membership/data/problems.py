"""Questions about attacks, answered from data: a sample of the records, or the counts of an attack."""

from dataclasses import dataclass
from typing import Annotated

from privcore.membership import params as membership_params
from privcore.membership.problem import AdvantageProblem
from privcore.problem import AtMost


@dataclass(frozen=True, kw_only=True)
class MembershipSampleAdvantage(AdvantageProblem):
    """Largest advantage of an attack on any learner from n records of a law of which only a sample is known.

    The sample is of independent records, and it is not the training set. The law is any on countably many
    categories; continuous parts of a record are not seen in a sample of categories.
    """

    name = "membership-sample-advantage"

    sample: Annotated[str, membership_params.SAMPLE]
    records: Annotated[int, membership_params.RECORDS]
    odds: Annotated[float, membership_params.ODDS] = 1.0
    confidence_level: Annotated[float, membership_params.CONFIDENCE_LEVEL] = 0.95


@dataclass(frozen=True, kw_only=True)
class MembershipAttackAdvantage(AdvantageProblem):
    """Largest advantage of an attack on a learner, of which one attack was tried.

    Every trial is of a training run of its own, independent of the others; how the attack decides was fixed
    before the trials that are counted.
    """

    name = "membership-attack-advantage"
    constraints = (AtMost("true_positives", "members"), AtMost("false_positives", "nonmembers"))

    true_positives: Annotated[int, membership_params.TRUE_POSITIVES]
    members: Annotated[int, membership_params.MEMBERS]
    false_positives: Annotated[int, membership_params.FALSE_POSITIVES]
    nonmembers: Annotated[int, membership_params.NONMEMBERS]
    odds: Annotated[float, membership_params.ODDS] = 1.0
    confidence_level: Annotated[float, membership_params.CONFIDENCE_LEVEL] = 0.95
