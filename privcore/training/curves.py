"""Proved ends of membership tests on training runs, from the same distributions as epsilon."""

from dataclasses import dataclass, replace

from privcore.answer import Answer
from privcore.likelihood_ratio.questions import (
    AdvantageQuestion,
    MuQuestion,
    PowerQuestion,
    Question,
    RateQuestion,
    accuracy_bounds,
    accuracy_question,
)
from privcore.papers import DONG_ROTH
from privcore.training.certified import CONVEX, Certified
from privcore.training.curve_problems import (
    RunAccuracy,
    RunAdvantage,
    RunFalsePositiveRate,
    RunMu,
    RunTruePositiveRate,
)

Tested = RunTruePositiveRate | RunFalsePositiveRate | RunAdvantage | RunAccuracy | RunMu


@dataclass(frozen=True, kw_only=True)
class RunsCurves(Certified[Tested]):
    r"""Enclose points of the trade-off curve of a run, its advantage and accuracy, and mu with its range.

    The largest true positive rate at a rate a is $\inf_{\kappa \ge 0} (\kappa a + H_\kappa)$, which for a
    discrete distribution is a broken line through sums of masses. So the dominating distribution of the run
    gives the upper end, and a post-processing the lower end. A Gaussian curve is above a chord if it is above
    both of its ends, so mu is compared at the vertices.
    """

    name = "runs.curves"
    problems = (RunTruePositiveRate, RunFalsePositiveRate, RunAdvantage, RunAccuracy, RunMu)
    reference = f"{DONG_ROTH}, Proposition 2.12 (duality); {CONVEX}"
    version = 3
    shares = ("phases", "adjacency")

    def question(self, problem: Tested) -> Question:
        if isinstance(problem, RunTruePositiveRate):
            return PowerQuestion(at=problem.false_positive_rate, adjacency=problem.adjacency)
        if isinstance(problem, RunFalsePositiveRate):
            return RateQuestion(at=problem.true_positive_rate, adjacency=problem.adjacency)
        if isinstance(problem, RunMu):
            return MuQuestion(at=problem.smallest_false_positive_rate, adjacency=problem.adjacency)
        if isinstance(problem, RunAccuracy):
            return accuracy_question(problem.member_probability)
        return AdvantageQuestion()

    def answer(self, problem: Tested, seed: int) -> Answer:
        found = super().answer(problem, seed)
        if not isinstance(problem, RunAccuracy):
            return found
        lower, upper = accuracy_bounds(problem.member_probability, found.lower, found.upper)
        return replace(found, lower=lower, upper=upper)
