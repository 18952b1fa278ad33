"""What the methods for audit counts share: the answer of an audit, and the cost of a recursion."""

from privcore.answer import Answer
from privcore.auditing.problems import AuditEpsilon, Counts
from privcore.method import Cost

SLACK = 2e-10
"""Relative move to the safe side, for searches of precision 1e-13 and the rounding of their steps."""
MOST = 700.0
"""Largest epsilon that an audit is asked about."""


def refuted(problem: AuditEpsilon, epsilon: float, detail: str) -> Answer:
    """Return the answer of an audit: at least this epsilon, at the confidence of the problem."""
    if epsilon > MOST:
        return Answer.at_least(
            MOST, confidence=problem.audit_confidence, detail=f"{detail}; every epsilon is refuted"
        )
    return Answer.at_least(epsilon * (1.0 - SLACK), confidence=problem.audit_confidence, detail=detail)


def unlikely_at_most(probability: float, detail: str) -> Answer:
    """Return an upper bound of a p-value, rounded up."""
    return Answer.at_most(min(1.0, probability * (1.0 + SLACK) + 1e-300), detail=detail)


def recursion_cost(problem: Counts) -> Cost:
    """Return the cost of a search with Algorithm 3, whose steps are few beside the correct guesses."""
    steps = min(problem.correct, 2000) + 10.0 * problem.canaries**0.5  # the latter where it is a near thing
    return Cost(seconds=0.01 + 1e-5 * steps, bytes=1e6)
