"""Closed forms for randomized response, and for no release at all, for every prior."""

from typing import get_args

import numpy as np
import scipy

from privcore.answer import Answer
from privcore.distributions.prior import Prior
from privcore.labels.bounds.reach import beyond_reach, changes_nothing
from privcore.labels.bounds.tails import several
from privcore.labels.problems import (
    SINGLE,
    LabelAdvantageTail,
    LabelAttackAccuracy,
    LabelProblem,
    LabelRatioInfinite,
    LabelRatioQuantile,
    LabelRatioTail,
    OfBag,
    Thresholded,
)
from privcore.labels.sums.poisson_binomial import Array
from privcore.labels.sums.rows import overturned_ends
from privcore.method import Cost, Direction, Method
from privcore.numerics.rounding import RESPONSE
from privcore.papers import BUSA_FEKETE


def outputs(epsilon: float) -> tuple[Array, Array]:
    """Return the likelihoods of the noisy labels 1 and 0, given label 1 and given label 0.

    Example:
        >>> [g.round(6).tolist() for g in outputs(1.0)]
        [[0.731059, 0.268941], [0.268941, 0.731059]]
    """
    kept, flipped = float(scipy.special.expit(epsilon)), float(scipy.special.expit(-epsilon))
    return np.array([kept, flipped]), np.array([flipped, kept])


def response_advantage(law: Prior, epsilon: float) -> tuple[float, float]:
    r"""Return bounds of the advantage $E(\min(\eta, 1 - \eta) - \pi)_+$ with $\pi = 1 / (1 + e^\varepsilon)$.

    Args:
        law: Distribution of eta.
        epsilon: Label differential privacy of the randomized response, > 0.

    Example:
        >>> from privcore.distributions.prior_density import Uniform
        >>> low, high = response_advantage(Uniform(), 1.0)
        >>> low <= 0.0533880667585181 <= high
        True
    """
    low, high = overturned_ends(law, *outputs(epsilon), RESPONSE)
    return float(low.sum()), float(high.sum())


Answered = OfBag | LabelRatioInfinite


class LabelsResponse(Method[Answered]):
    r"""Randomized response has the advantage $E(\min(\eta, 1 - \eta) - \pi)_+$ and the ratio epsilon.

    There are only two outputs, so every answer is a functional of the prior: the advantages are its
    overturned mass at $\pi$ and $1 - \pi$, and the high-probability advantage of one example is the
    probability of $\pi + \theta < \eta < 1 - \pi - \theta$. If p is that probability, the mean advantage of n
    examples exceeds the threshold with a probability between $p^n$ and $1 - (1 - p)^n$.
    """

    name = "labels.response"
    problems = get_args(Answered)
    direction = Direction.ENCLOSURE
    reference = f"{BUSA_FEKETE}, Theorem 3.5 and Section 3.2"
    version = 3

    def applies(self, problem: Answered) -> str | None:
        if problem.mechanism not in SINGLE:
            return "The closed forms are for randomized response and for no release: rr and none."
        return None

    def cost(self, problem: Answered) -> Cost:
        atoms = problem.distribution.atoms
        size = 0 if atoms is None else atoms[0].size
        return Cost(seconds=0.02 + 2e-7 * size, bytes=2e6 + 200.0 * size)

    def answer(self, problem: Answered, seed: int) -> Answer:
        detail = "closed form" if problem.mechanism == "rr" else "nothing is released"
        if isinstance(problem, LabelAdvantageTail) and problem.bags > 1:
            detail += ", of a single example"
        low, high = self._ends(problem)
        return Answer.enclosure(max(0.0, low), min(problem.largest, high), detail=detail)

    def _ends(self, problem: LabelProblem) -> tuple[float, float]:
        silent, epsilon = problem.mechanism == "none", problem.label_epsilon
        match problem:
            case LabelRatioInfinite():
                return 0.0, 0.0
            case LabelRatioQuantile():
                return (0.0, 0.0) if silent else (epsilon, epsilon)
            case LabelRatioTail():
                exceeds = float(not silent and epsilon > problem.log_ratio)
                return exceeds, exceeds
        useless = changes_nothing(problem)  # rounding would leave an upper end of about 1e-260
        if isinstance(problem, Thresholded):
            if useless or beyond_reach(problem):
                return 0.0, 0.0
            bags = problem.bags if isinstance(problem, LabelAdvantageTail) else 1
            return several(_tail(problem.distribution, epsilon, problem.threshold), bags)
        law = problem.attacked
        ends = (0.0, 0.0) if useless else response_advantage(law, epsilon)
        return accuracy(law, ends) if isinstance(problem, LabelAttackAccuracy) else ends


def accuracy(law: Prior, advantage: tuple[float, float]) -> tuple[float, float]:
    """Return bounds of the expected attack utility: the accuracy of a blind guess, plus the advantage."""
    slack = law.error + 2.0**-51
    return (
        1.0 - law.blind * (1.0 + slack) + advantage[0] - 2.0**-52,
        1.0 - law.blind * (1.0 - slack) + advantage[1] + 2.0**-52,
    )


def _tail(law: Prior, epsilon: float, threshold: float) -> tuple[float, float]:
    r"""Return bounds of the probability of $\pi + \theta < \eta < 1 - \pi - \theta$."""
    edge = float(scipy.special.expit(-epsilon)) + threshold
    move = 4.0 * 2.0**-53  # an atom this close to an edge counts for the upper bound only
    narrow = law.between(edge * (1.0 + move), 1.0 - edge * (1.0 + move) - move)
    wide = law.between(edge * (1.0 - move), 1.0 - edge * (1.0 - move) + move)
    beyond = 1e-13 * law.between(edge * (1.0 - move), 1.0)  # `between` is a difference
    return narrow * (1.0 - law.error) - beyond, wide * (1.0 + law.error) + beyond
