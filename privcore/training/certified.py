"""Proved lower and upper bounds of training runs: products of ratios, bracketed in convex order."""

from dataclasses import dataclass, replace
from typing import Annotated, TypeVar

from privcore import params
from privcore.answer import Answer
from privcore.likelihood_ratio.questions import (
    FIRST_DELTA,
    AdvantageQuestion,
    MuQuestion,
    PowerQuestion,
    Question,
    RateQuestion,
    accuracy_bounds,
    accuracy_question,
    requested,
)
from privcore.method import Cost, Direction, Method
from privcore.papers import BALLE_BARTHE, CHUA_BALLS, CHUA_SCALABLE, DONG_ROTH, FELDMAN_SHENFELD, ZHU
from privcore.problem import Problem
from privcore.training.brackets import enclosed_run, estimated
from privcore.training.curve_problems import (
    RunAccuracy,
    RunAdvantage,
    RunFalsePositiveRate,
    RunMu,
    RunTruePositiveRate,
)
from privcore.training.own_problem import cost_of_proofs, own_problem, proved
from privcore.training.phase import RELATIONS, unamplified
from privcore.training.problems import (
    BallsInBinsDelta,
    BallsInBinsEpsilon,
    FixedSizeDelta,
    FixedSizeEpsilon,
    RunDelta,
    RunEpsilon,
    TrainingProblem,
    TruncatedPoissonDelta,
    TruncatedPoissonEpsilon,
    WithReplacementDelta,
    WithReplacementEpsilon,
)
from privcore.training.samplers import Bounds, composed

P = TypeVar("P", bound=TrainingProblem)
CONVEX = "convex order: docs/certified.md; docs/training-runs.md"


@dataclass(frozen=True, kw_only=True)
class Certified(Method[P]):
    """Base of the methods that multiply the ratios of the phases of a run."""

    direction = Direction.ENCLOSURE

    tolerance: Annotated[float, params.TOLERANCE] = params.WIDTH

    def question(self, problem: P) -> Question:
        """Return the quantity to compute from the ratios of the run."""
        at = getattr(problem, "delta" if problem.asks == "epsilon" else "epsilon")
        return Question(asks=problem.asks, at=at, adjacency=problem.adjacency)

    def applies(self, problem: P) -> str | None:
        relation = RELATIONS[problem.adjacency]
        return next((why for phase in problem.run() if (why := phase.reason(relation))), None)

    def own(self, problem: P) -> Problem | None:
        """Return the problem of a sampler whose answer is that of this problem, at the default tolerance."""
        return own_problem(problem) if self.tolerance == params.WIDTH else None

    def cost(self, problem: P) -> Cost:
        if self.applies(problem) is not None:
            return Cost(seconds=1e-3, bytes=1e5)
        if (own := self.own(problem)) is not None:
            return cost_of_proofs(own)
        question = self.question(problem)
        tolerance = requested(question.asks, self.tolerance)
        return estimated(_bounds(problem, question), question, tolerance)

    def answer(self, problem: P, seed: int) -> Answer:
        if (own := self.own(problem)) is not None:
            return proved(own)
        relation, question = RELATIONS[problem.adjacency], self.question(problem)
        mu, tolerance = unamplified(problem.run(), relation), requested(question.asks, self.tolerance)
        lower, upper, detail = enclosed_run(_bounds(problem, question), question, tolerance, mu)
        return Answer.enclosure(lower, upper, detail=detail)


def _bounds(problem: TrainingProblem, question: Question) -> Bounds:
    relation = RELATIONS[problem.adjacency]
    scale = FIRST_DELTA if question.scale is None else question.scale
    return composed([phase.bounds(relation, scale) for phase in problem.run()])


@dataclass(frozen=True, kw_only=True)
class BinsCertified(Certified[BallsInBinsEpsilon | BallsInBinsDelta]):
    """Enclose balls-in-bins sampling; bins drawn once equal one epoch of allocation at sigma / sqrt(E)."""

    name = "bins.certified"
    problems = (BallsInBinsEpsilon, BallsInBinsDelta)
    reference = f"{FELDMAN_SHENFELD}, Theorem 3.1 (dominating pair); {CHUA_BALLS} (bins); {CONVEX}"
    version = 4
    shares = ("sigma", "steps")


@dataclass(frozen=True, kw_only=True)
class BatchesCertified(
    Certified[FixedSizeEpsilon | FixedSizeDelta | WithReplacementEpsilon | WithReplacementDelta]
):
    r"""Enclose batches of fixed size, drawn for each step without or with replacement.

    With one example more or less, a step without replacement is one of Poisson sampling with half of the
    noise. For zero-out and replace-one, the largest profile over all data sets belongs to a ratio; composing
    it gives the upper end. The lower end is that of the best data set that is the same in all steps.
    """

    name = "batches.certified"
    problems = (FixedSizeEpsilon, FixedSizeDelta, WithReplacementEpsilon, WithReplacementDelta)
    reference = (
        f"{ZHU}, Theorem 10 (composition), Theorem 11 (replace-one); {BALLE_BARTHE}, Theorems 9 and 10; "
        f"{CONVEX}"
    )
    version = 2
    shares = ("sigma", "sampling_probability", "steps", "examples", "batch_size", "epochs")


@dataclass(frozen=True, kw_only=True)
class TruncatedCertified(Certified[TruncatedPoissonEpsilon | TruncatedPoissonDelta]):
    """Enclose Poisson sampling with truncated batches, as a mixture over whether the others fill the batch.

    The lower end is Poisson sampling at the marginal rate of the example, with all other gradients zero.
    """

    name = "truncated.certified"
    problems = (TruncatedPoissonEpsilon, TruncatedPoissonDelta)
    reference = f"{CHUA_SCALABLE}, Theorem 3.3; {ZHU}, Theorem 11; {CONVEX}"
    version = 2
    shares = ("sigma", "sampling_probability", "steps", "examples", "largest_batch", "epochs")


@dataclass(frozen=True, kw_only=True)
class RunsCertified(Certified[RunEpsilon | RunDelta]):
    """Enclose a run of phases: the likelihood ratio of the run is the product of those of its phases.

    The noise and the sampling of all phases are fixed in advance, and every phase may use the example.
    """

    name = "runs.certified"
    problems = (RunEpsilon, RunDelta)
    reference = f"{FELDMAN_SHENFELD}, Theorem 3.1; {ZHU}, Theorems 10 and 11; {CONVEX}"
    version = 4
    shares = ("phases", "adjacency")


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
