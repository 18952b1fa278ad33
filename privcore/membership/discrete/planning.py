"""Number of records that limits the advantage of every attack: a search over the exact advantage."""

import math

from privcore.answer import Answer
from privcore.distributions.record import RecordDistribution
from privcore.membership.discrete.diversity import diversity
from privcore.membership.discrete.problems import MembershipRecords
from privcore.membership.discrete.worst_case import worst_advantage, worst_cost
from privcore.membership.params import RECORDS
from privcore.method import Cost, Direction, Method
from privcore.numerics.least_count import least_count
from privcore.papers import AUBINAIS


class MembershipPlanning(Method[MembershipRecords]):
    """Double the number of records until the advantage is small enough, then bisect.

    The advantage falls with the number of records. Both ends are proved: at the upper end, the upper bound of
    the advantage is at most the tolerated advantage; with one record less than the lower end, the lower bound
    of the advantage exceeds it. The ends differ if the advantage at some number of records agrees with the
    tolerated advantage to all digits.
    """

    name = "membership.planning"
    problems = (MembershipRecords,)
    direction = Direction.ENCLOSURE
    reference = f"{AUBINAIS}, Theorem 14, with our own proof that the advantage falls"

    def cost(self, problem: MembershipRecords) -> Cost:
        law, target = problem.distribution, problem.target_advantage
        records = _expected(law, target)
        once = worst_cost(law, int(records), problem.odds)
        return Cost(seconds=0.01 + 2.0 * math.log2(records) * once.seconds, bytes=once.bytes)

    def answer(self, problem: MembershipRecords, seed: int) -> Answer:
        law, target = problem.distribution, problem.target_advantage
        if law.continuous > target:
            detail = "records of the continuous part are identified at any number of records"
            return Answer.enclosure(math.inf, math.inf, detail=detail)
        lower, upper = least_count(
            lambda records: worst_advantage(law, records, problem.odds), target, RECORDS.upper
        )
        return Answer.enclosure(lower, upper, detail="search over the exact advantage")


def _expected(law: RecordDistribution, target: float) -> float:
    """Return a rough estimate, rather too high, of the number of records needed, for the cost."""
    records = 1.0
    while records < RECORDS.upper and law.tail_sum(1.0, law.reach(1.0 / records)) > 0.2 * target:
        records *= 2.0
    least, _ = diversity(law)
    seen = 4.0 * records if math.isinf(least) else (0.5 * least / target) ** 2
    return max(2.0, min(RECORDS.upper, max(records, seen)))
