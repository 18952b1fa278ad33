"""Best number of guesses: a few guesses are more often correct, many guesses are stronger evidence."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from privcore.answer import Answer
from privcore.auditing.planned import planned_audit, refuted_by
from privcore.auditing.planning_problems import AuditBestGuesses
from privcore.auditing.steinke import AuditingSteinke
from privcore.method import Cost, Direction, Method
from privcore.papers import MAHLOUJIFAR

PER_DECADE = 8
"""Values of the number of guesses per decade that are tried first."""
_REFINEMENTS = 24


@dataclass(frozen=True, kw_only=True)
class AuditingBest(Method[AuditBestGuesses]):
    """Try even numbers of guesses, first eight in a decade and then more around the best of them.

    The refuted epsilon is not smooth in the number of guesses, since the number of correct guesses is a whole
    number. So the best number is an estimate, while the detail has the epsilon that an audit with this number
    refutes. The optimum is flat. The number must be fixed before the scores are known.
    """

    name = "auditing.best"
    problems = (AuditBestGuesses,)
    direction = Direction.ESTIMATE
    reference = f"{MAHLOUJIFAR}, Section 5 and Figure 1"

    def cost(self, problem: AuditBestGuesses) -> Cost:
        # Counts that are almost refutable need many steps of the recursion, about the root of their number.
        seconds, bytes_ = 0.1 + 4e-4 * problem.canaries**0.5, 2e6
        if problem.family == "approximate":
            audit = planned_audit(problem.canaries, problem.canaries, problem.mu, 0.5, 0.5)
            most = AuditingSteinke().cost(audit)
            # Costs are a geometric series in the number of guesses; a refinement costs at most the last term.
            decades = math.log10(problem.canaries)
            seconds += 0.03 * PER_DECADE * decades + (7.5 + _REFINEMENTS) * most.seconds
            bytes_ = most.bytes
        return Cost(seconds=seconds, bytes=bytes_)

    def answer(self, problem: AuditBestGuesses, seed: int) -> Answer:
        found = best_guesses(problem, first_tried(problem.canaries))
        if found[0] == 0.0:
            return Answer.about(0.0, detail="none of the numbers of guesses tried refutes an epsilon")
        ratio = 10.0 ** (1.0 / PER_DECADE)
        around = (_even(found[1] * ratio ** (2.0 * i / _REFINEMENTS - 1.0)) for i in range(_REFINEMENTS + 1))
        epsilon, guesses = max(found, best_guesses(problem, (n for n in around if n <= problem.canaries)))
        return Answer.about(
            float(guesses),
            detail=f"refutes epsilon {epsilon:.6g} with the expected counts, {problem.family} family",
        )


def first_tried(canaries: int) -> list[int]:
    """Return the even numbers of guesses that are tried first, up to the number of all canaries.

    Example:
        >>> first_tried(50)
        [2, 4, 6, 8, 10, 14, 18, 24, 32, 42, 50]
    """
    last = PER_DECADE * math.ceil(math.log10(canaries) + 1.0)
    tried = {_even(10.0 ** (j / PER_DECADE)) for j in range(last)} | {2 * (canaries // 2)}
    return sorted(n for n in tried if 2 <= n <= canaries)


def best_guesses(problem: AuditBestGuesses, tried: Iterable[int]) -> tuple[float, int]:
    """Return the largest epsilon that is refuted with one of these numbers of guesses, and the number."""

    def refuted(guesses: int) -> float:
        audit = planned_audit(problem.canaries, guesses, problem.mu, problem.delta, problem.audit_confidence)
        return refuted_by(audit, problem.family)

    return max(((refuted(n), n) for n in sorted(set(tried))), default=(0.0, 0))


def _even(x: float) -> int:
    return max(2, 2 * round(0.5 * x))
