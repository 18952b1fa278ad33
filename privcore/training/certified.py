"""Proved lower and upper bounds of training runs: one method, with the stored names of its parts as rows."""

from collections.abc import Sequence
from itertools import chain
from typing import Annotated, cast

from privcore import params
from privcore.answer import Answer
from privcore.likelihood_ratio.questions import FIRST_DELTA, Question, accuracy_bounds, question_of, requested
from privcore.method import Cost, Direction, Method
from privcore.papers import BALLE_BARTHE, CHUA_BALLS, CHUA_SCALABLE, DONG_ROTH, FELDMAN_SHENFELD, ZHU
from privcore.problem import Problem
from privcore.training.brackets import enclosed_run, estimated
from privcore.training.own_problem import cost_of_proofs, own_problem, proved
from privcore.training.problems import ONE_PHASE, RUN, RUN_CURVE, TrainingProblem
from privcore.training.samplers import Bounds

CONVEX = "convex order: docs/certified.md; docs/training-runs.md"


class Certified(Method[TrainingProblem]):
    """Enclose a quantity of a run: the likelihood ratio of the run is the product of those of its phases.

    The noise and the sampling of all phases are fixed in advance, and every phase may use the example.
    """

    problems = (*RUN, *RUN_CURVE, *chain(*ONE_PHASE.values()))
    direction = Direction.ENCLOSURE

    tolerance: Annotated[float, params.TOLERANCE] = params.WIDTH

    def applies(self, problem: TrainingProblem) -> str | None:
        return problem.reason()

    def own(self, problem: TrainingProblem) -> Problem | None:
        """Return the problem of a sampler whose answer is that of this problem, at the default tolerance."""
        return own_problem(problem) if self.tolerance == params.WIDTH else None

    def cost(self, problem: TrainingProblem) -> Cost:
        if self.applies(problem) is not None:
            return Cost(seconds=1e-3, bytes=1e5)
        if (own := self.own(problem)) is not None:
            return cost_of_proofs(own)
        question = question_of(problem)
        tolerance = requested(question.asks, self.tolerance)
        return estimated(_bounds(problem, question), question, tolerance)

    def answer(self, problem: TrainingProblem, seed: int) -> Answer:
        if (own := self.own(problem)) is not None:
            return proved(own)
        question, mu = question_of(problem), problem.unamplified()
        tolerance = requested(question.asks, self.tolerance)
        lower, upper, detail = enclosed_run(_bounds(problem, question), question, tolerance, mu)
        if problem.asks == "accuracy":
            lower, upper = accuracy_bounds(problem.at, lower, upper)
        return Answer.enclosure(lower, upper, detail=detail)


def _bounds(problem: TrainingProblem, question: Question) -> Bounds:
    return problem.bounds(FIRST_DELTA if question.scale is None else question.scale)


def _stored(
    name: str,
    version: int,
    problems: Sequence[type[TrainingProblem]],
    shares: str,
    reference: str,
    states: str = Certified.__doc__ or "",
) -> type[Certified]:
    """Return the method for some of its problems, under a stored name.

    Args:
        name: The stored name.
        version: Its version.
        problems: The problems whose answers are stored under this name.
        shares: Names of the fields that share distributions.
        reference: Theorems for these problems; convex order is common to all.
        states: Documentation about these problems.
    """
    said = {
        "__doc__": states,
        "__module__": __name__,
        "name": name,
        "problems": tuple(problems),
        "reference": f"{reference}; {CONVEX}",
        "version": version,
        "shares": tuple(shares.split()),
    }
    kind = type("".join(part.capitalize() for part in name.split(".")), (Certified,), said)
    return cast(type[Certified], kind)


_left = dict(ONE_PHASE)  # samplers without a row of their own have that of runs
BinsCertified = _stored(
    "bins.certified",
    4,
    _left.pop("balls-in-bins"),
    "sigma steps",
    f"{FELDMAN_SHENFELD}, Theorem 3.1 (dominating pair); {CHUA_BALLS} (bins)",
    "Enclose balls-in-bins sampling; bins drawn once equal one epoch of allocation at sigma / sqrt(E).",
)
BatchesCertified = _stored(
    "batches.certified",
    5,
    (*_left.pop("fixed-size"), *_left.pop("with-replacement")),
    "sigma sampling_probability steps examples batch_size epochs",
    f"{ZHU}, Theorem 10 (composition), Theorem 11 (replace-one); {BALLE_BARTHE}, Theorem 9",
    """Enclose batches of fixed size, drawn for each step without or with replacement.

    With one example more or less, a step without replacement is one of Poisson sampling with half of the
    noise. For zero-out and replace-one, the largest profile over all data sets belongs to a ratio; composing
    it gives the upper end. For zero-out without replacement, only the last steps need this ratio, and the
    others a smaller one (docs/notes/fixed-size-batches.md). The lower end is that of the best data set that
    is the same in all steps.
    """,
)
TruncatedCertified = _stored(
    "truncated.certified",
    3,
    _left.pop("truncated-poisson"),
    "sigma sampling_probability steps examples largest_batch epochs",
    f"{CHUA_SCALABLE}, Theorem 3.3; {ZHU}, Theorem 11",
    """Enclose Poisson sampling with truncated batches, as a mixture over whether the others fill the batch.

    The lower end is Poisson sampling at the marginal rate of the example, with all other gradients zero.
    """,
)
RunsCertified = _stored(
    "runs.certified",
    7,
    (*RUN, *chain(*_left.values())),
    "phases adjacency",
    f"{FELDMAN_SHENFELD}, Theorem 3.1; {ZHU}, Theorems 10 and 11",
)
RunsCurves = _stored(
    "runs.curves",
    6,
    RUN_CURVE,
    "phases adjacency",
    f"{DONG_ROTH}, Proposition 2.12 (duality)",
    r"""Enclose points of the trade-off curve of a run, its advantage and accuracy, and mu with its range.

    The largest true positive rate at a rate a is $\inf_{\kappa \ge 0} (\kappa a + H_\kappa)$, which for a
    discrete distribution is a broken line through sums of masses. So the dominating distribution of the run
    gives the upper end, and a post-processing the lower end. A Gaussian curve is above a chord if it is above
    both of its ends, so mu is compared at the vertices.
    """,
)
