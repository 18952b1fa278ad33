"""Questions about attacks, answered from data: a sample of the records, or the counts of an attack."""

from typing import Annotated

from privcore.constraint import AtMost
from privcore.membership import params as membership_params
from privcore.membership.problem import AdvantageProblem


class MembershipSampleAdvantage(AdvantageProblem):
    """Largest advantage of an attack on any learner from n records, if only a sample of records is known.

    The records of the sample are independent and are not the training set. They may have any distribution on
    countably many categories; a sample of categories does not show continuous parts of a record.
    """

    name = "membership-sample-advantage"

    sample: Annotated[str, membership_params.SAMPLE]
    records: Annotated[int, membership_params.RECORDS]
    odds: Annotated[float, membership_params.ODDS] = 1.0
    confidence_level: Annotated[float, membership_params.CONFIDENCE_LEVEL] = 0.95


class MembershipAttackAdvantage(AdvantageProblem):
    """Largest advantage of an attack on a learner, given the counts of one attack.

    Every trial has a separate, independent training run, and the decision rule of the attack was fixed before
    the counted trials.
    """

    name = "membership-attack-advantage"
    constraints = (AtMost("true_positives", "members"), AtMost("false_positives", "nonmembers"))

    true_positives: Annotated[int, membership_params.TRUE_POSITIVES]
    members: Annotated[int, membership_params.MEMBERS]
    false_positives: Annotated[int, membership_params.FALSE_POSITIVES]
    nonmembers: Annotated[int, membership_params.NONMEMBERS]
    odds: Annotated[float, membership_params.ODDS] = 1.0
    confidence_level: Annotated[float, membership_params.CONFIDENCE_LEVEL] = 0.95
