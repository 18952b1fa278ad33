"""Questions about discrete records if only some numbers about their distribution are known."""

import math
from abc import abstractmethod
from typing import Annotated

from privcore.membership import params as membership_params
from privcore.membership.problem import MembershipProblem
from privcore.problem import falls, grows, proved

_MORE = grows("The sets of distributions are nested.")
_FEWER = falls("The sets of distributions are nested.")
_WIDER = {
    "values": _MORE,
    "largest_atom": _FEWER,
    "gini_simpson": _MORE,
    "entropy": _MORE,
    "diversity": _MORE,
}


class SummaryProblem(MembershipProblem):
    """Base of the questions about all distributions with these properties."""

    values: Annotated[int, membership_params.VALUES] = membership_params.VALUES.upper
    largest_atom: Annotated[float, membership_params.LARGEST_ATOM] = 0.0
    gini_simpson: Annotated[float, membership_params.GINI_SIMPSON] = 1.0
    entropy: Annotated[float, membership_params.ENTROPY] = membership_params.ENTROPY.upper
    diversity: Annotated[float, membership_params.DIVERSITY] = membership_params.DIVERSITY.upper

    @abstractmethod
    def from_diversity(self, c: float) -> float:
        """Return the answer if C is the largest diversity, by the inequality of Cauchy and Schwarz."""


class MembershipSummaryAdvantage(SummaryProblem):
    """Largest advantage of an attack on any learner of n discrete records with these properties.

    It is the largest over all distributions with at most this number of values, diversity, entropy and
    Gini-Simpson index, and at least this largest probability. The odds are 1; at others it is not larger.
    """

    name = "membership-summary-advantage"
    asks = "advantage"
    largest = 1.0
    monotone = proved(
        records=falls("The advantage falls with the number of records for every distribution."), **_WIDER
    )

    records: Annotated[int, membership_params.RECORDS]

    def from_diversity(self, c: float) -> float:
        return 0.5 * c / math.sqrt(self.records)


class MembershipSummaryRecords(SummaryProblem):
    """Least number of records at which no attack exceeds the tolerated advantage, with these properties.

    It is sufficient for all distributions of `membership-summary-advantage`, all learners and all odds.
    """

    name = "membership-summary-records"
    asks = "records"
    whole = True
    monotone = proved(
        target_advantage=falls("The sets of sufficient numbers of records are nested."), **_WIDER
    )

    target_advantage: Annotated[float, membership_params.TARGET_ADVANTAGE]

    def from_diversity(self, c: float) -> float:
        return max(0.5, (0.5 * c / self.target_advantage) ** 2)


Summary = MembershipSummaryAdvantage | MembershipSummaryRecords
