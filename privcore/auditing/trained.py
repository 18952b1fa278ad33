"""Audit from end to end: train once with canaries, guess their inclusion, refute an epsilon."""

import math
from functools import cache
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from privcore.answer import Answer, Status
from privcore.auditing.planned import audit_of
from privcore.auditing.problems import AuditTraining
from privcore.auditing.tightest import AuditingTightest, mu_cost, refuted_by
from privcore.method import Cost, Direction, Method
from privcore.papers import MAHLOUJIFAR

_IMAGES, _WEIGHTS = 1797, 650
_MOST_CANARIES = 20_000
_MOST_NUMBERS = 5e10
"""Largest total size of all gradients, in numbers: about forty seconds, enough for a point of a sweep."""


class AuditingTrained(Method[AuditTraining]):
    r"""Train a classifier of digits by DP-SGD, with canaries included by coin flips, and audit the result.

    Every canary has a separate coordinate, and its score is the movement of this coordinate by training. The
    canaries with the c'/2 highest scores are guessed to be in, those with the c'/2 lowest scores to be out,
    with ties in random order. The lower end is the epsilon that the count of correct guesses refutes, with c'
    fixed beforehand, for every mechanism, as by `auditing.tightest`; `audit-power` with `guessing=halves` and
    `refutation=programmed` plans for it. The value is the epsilon that is refuted if the mechanism is
    Gaussian, as by `auditing.tightestmu`: an estimate that depends on this assumption.
    """

    name = "auditing.trained"
    problems = (AuditTraining,)
    direction = Direction.LOWER
    reference = f"{MAHLOUJIFAR}, Algorithm 1, Theorem 9 and Section 5 (white box)"
    version = 3
    shares = ("canaries",)

    def applies(self, problem: AuditTraining) -> str | None:
        if not _can_learn():
            return "Training needs JAX and scikit-learn: pip install 'privsweep[learn]'."
        if problem.canaries > _MOST_CANARIES:
            return f"A training can have at most {_MOST_CANARIES} canaries."
        if _numbers(problem) > _MOST_NUMBERS:
            return f"The gradients of this training have more than {_MOST_NUMBERS:.0e} numbers in all."
        return None

    def cost(self, problem: AuditTraining) -> Cost:
        if self.applies(problem) is not None:
            return Cost(seconds=1e-4, bytes=1e4)
        # Compilation, shared by all points with as many canaries; then the gradients, a batch and its noise.
        drawn = _IMAGES + 2 * problem.canaries + _WEIGHTS
        seconds = 0.12 + 8e-10 * _numbers(problem) + problem.steps * (1e-4 + 1e-8 * drawn)
        audit = audit_of(problem, problem.guesses)
        free, gaussian = AuditingTightest().cost(audit), mu_cost(audit)
        return Cost(
            seconds=seconds + free.seconds + gaussian.seconds,
            bytes=5e6 + 1500.0 * (drawn + problem.guesses) + free.bytes + gaussian.bytes,
        )

    def answer(self, problem: AuditTraining, seed: int) -> Answer:
        # The import takes half a second, and the package is optional.
        from privcore.auditing.canary_training import recipe, train

        rng = np.random.default_rng(seed)
        included = rng.random(problem.canaries) < 0.5
        how = recipe(problem.sigma, problem.sampling_probability, problem.bug)
        trained = train(included, how, problem.steps, int(rng.integers(2**63)))
        scores = trained.moved[: problem.canaries]
        if not np.isfinite(trained.moved).all():
            return Answer.without(Status.FAILED, "Training diverged: its weights exceed single precision.")
        correct = count_correct(scores, included, problem.guesses, rng)
        counts = audit_of(problem, correct)
        refuted, gaussian = (refuted_by(counts, family) for family in ("approximate", "gaussian"))
        detail = (
            f"{correct} of {problem.guesses} guesses correct; {gaussian:.4g} if the mechanism is Gaussian; "
            f"training accuracy {trained.accuracy:.3f}"
        )
        return Answer.enclosure(
            refuted, math.inf, value=gaussian, confidence=problem.audit_confidence, detail=detail
        )


def count_correct(
    scores: NDArray[np.float64], included: NDArray[np.bool_], guesses: int, rng: np.random.Generator
) -> int:
    """Return the number of correct guesses: highest scores are in, as many of the lowest scores are out.

    Args:
        scores: Scores of the canaries, shape (m,).
        included: Whether each canary was in the data, shape (m,).
        guesses: Number c' of guesses in 0, ..., m; if it is odd, there is one more guess of "in".
        rng: Source of the order among equal scores.

    Returns:
        Number of correct guesses in 0, ..., c'.

    Reference:
        arXiv:2410.22235v1, Algorithm 1 and Section 5.

    Example:
        >>> truth = np.array([True, False, True, False])
        >>> count_correct(np.array([3.0, 2.0, 1.0, 0.0]), truth, 2, np.random.default_rng(0))
        2
    """
    shuffled = rng.permutation(len(scores))
    rising = shuffled[np.argsort(scores[shuffled], kind="stable")]
    out, inside = rising[: guesses // 2], rising[len(rising) - (guesses - guesses // 2) :]
    return int(np.count_nonzero(included[inside]) + np.count_nonzero(~included[out]))


def _numbers(problem: AuditTraining) -> float:
    """Return the total size of the gradients of all steps, in numbers; a step has at least one chunk."""
    rate = problem.sampling_probability * (2.0 if problem.bug == "rate-doubled" else 1.0)
    batch = 64.0 + min(1.0, rate) * (_IMAGES + 0.5 * problem.canaries)
    return problem.steps * batch * (_WEIGHTS + problem.canaries + 512.0)


@cache
def _can_learn() -> bool:
    """Return whether the packages of the extra `learn` are installed."""
    return all(find_spec(package) for package in ("jax", "sklearn"))
