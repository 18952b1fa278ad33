"""Base classes of the questions about membership inference."""

from privcore.problem import Problem


class MembershipProblem(Problem):
    """Base of all questions about membership inference."""

    topic = "membership"


class AdvantageProblem(MembershipProblem):
    """Base of the questions about the largest advantage of an attack: 0 is blind guessing, 1 is certainty."""

    asks = "advantage"
    largest = 1.0
