"""Base classes of the questions about membership inference."""

from dataclasses import dataclass

from privcore.problem import Problem


@dataclass(frozen=True, kw_only=True)
class MembershipProblem(Problem):
    """Base of all questions about membership inference."""

    topic = "membership"


@dataclass(frozen=True, kw_only=True)
class AdvantageProblem(MembershipProblem):
    """Base of the questions about the largest advantage of an attack: 0 is blind guessing, 1 is certainty."""

    asks = "advantage"
    largest = 1.0
