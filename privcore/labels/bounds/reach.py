"""The largest advantages and ratios that a mechanism allows, and releases that change no guess."""

import math
from typing import get_args

import numpy as np
import scipy
from numpy.typing import NDArray

from privcore.answer import Answer
from privcore.labels.bag_problems import BagAdvantage, MemberAdvantage
from privcore.labels.bounds.tails import closed_form
from privcore.labels.problems import (
    LabelAdvantage,
    LabelAdvantageAt,
    LabelAdvantageShare,
    LabelAdvantageTail,
    LabelProblem,
    LabelRatioQuantile,
    LabelRatioQuantileAt,
    LabelRatioTail,
    LabelRatioTailAt,
    Thresholded,
)
from privcore.labels.sums.poisson_binomial import Array
from privcore.method import Cost, Direction, Method
from privcore.numerics.rounding import FEW_FUNCTIONS
from privcore.papers import BUSA_FEKETE

_MARGIN = 1e-11
"""Relative distance from the edge, beyond all errors of the values of a prior."""

Guessed = (
    LabelAdvantage
    | LabelAdvantageAt
    | LabelAdvantageTail
    | LabelAdvantageShare
    | BagAdvantage
    | MemberAdvantage
)


class LabelsUnchanged(Method[Guessed]):
    r"""If $\min(\eta, 1 - \eta) \, e^\varepsilon \le \max(\eta, 1 - \eta)$ for all eta, the advantage is 0.

    Under label differential privacy the likelihoods of a release given the two labels differ by a factor of
    $e^\varepsilon$ at most. So the label that is more likely before the release is still at least as likely
    after it, and the best guess does not change. Without noise this holds only if every eta is 0 or 1.
    """

    name = "labels.unchanged"
    problems = get_args(Guessed)
    direction = Direction.ENCLOSURE
    reference = f"{BUSA_FEKETE}, Section 3.1; the condition follows from the definition of privacy"

    def applies(self, problem: Guessed) -> str | None:
        etas = _values(problem)
        if problem.label_epsilon == 0.0:
            return None
        if etas is None:
            return "The prior has infinitely many values of eta."
        return None if unchanged(etas, problem) else "Some releases change the best guess."

    def cost(self, problem: Guessed) -> Cost:
        etas = _values(problem)
        size = 0 if etas is None else etas.size
        return Cost(seconds=1e-3 + 1e-8 * size, bytes=1e5 + 50.0 * size)

    def answer(self, problem: Guessed, seed: int) -> Answer:
        return Answer.enclosure(0.0, 0.0, detail="no release changes the best guess")


def changes_nothing(problem: LabelProblem) -> bool:
    """Return whether no release can change the best guess of an attacked example of the prior.

    Example:
        >>> problem = LabelAdvantage(mechanism="rr", prior="point(0.2)", label_epsilon=0.1)
        >>> changes_nothing(problem)
        True
    """
    if problem.mechanism == "none" or problem.label_epsilon == 0.0:
        return True
    atoms = problem.attacked.atoms
    return atoms is not None and unchanged(atoms[0], problem)


def unchanged(etas: Array, problem: LabelProblem | BagAdvantage | MemberAdvantage) -> bool:
    """Return whether no release can change the best guess of a label with one of these probabilities.

    Args:
        etas: Probabilities of label 1, shape (n,).
        problem: Problem with the mechanism and its epsilon.

    Returns:
        True only if it is certain, despite rounding.

    Example:
        >>> problem = BagAdvantage(mechanism="rr", bag="0.3", label_epsilon=0.5)
        >>> unchanged(np.array([0.3]), problem), unchanged(np.array([0.4]), problem)
        (True, False)
    """
    if problem.mechanism == "none" or problem.label_epsilon == 0.0:
        return True
    return bool(decided(etas, problem.label_epsilon).all())


def decided(etas: Array, epsilon: float) -> NDArray[np.bool_]:
    """Return whether no release with this epsilon changes the best guess, for each probability of label 1."""
    rare = np.minimum(etas, 1.0 - etas)
    if math.isinf(epsilon):
        return np.asarray(rare == 0.0)
    with np.errstate(divide="ignore"):
        logarithms = np.log(rare) - np.log1p(-rare)
    return np.asarray(logarithms + epsilon * (1.0 + _MARGIN) <= -_MARGIN)


def _values(problem: Guessed) -> Array | None:
    """Return the probabilities of label 1 that the attacked examples can have; None if infinitely many."""
    if isinstance(problem, BagAdvantage):
        return problem.etas
    if isinstance(problem, MemberAdvantage):
        return problem.etas[problem.member - 1 : problem.member]
    atoms = problem.attacked.atoms
    return None if atoms is None else atoms[0]


Answered = (
    LabelAdvantageTail
    | LabelAdvantageShare
    | LabelRatioTail
    | LabelRatioTailAt
    | LabelRatioQuantile
    | LabelRatioQuantileAt
)


class LabelsReach(Method[Answered]):
    r"""No advantage exceeds that of randomized response, and no log-likelihood ratio exceeds epsilon.

    Under label differential privacy the two likelihoods of a release differ by a factor of $e^\varepsilon$ at
    most, so their ratio exceeds no threshold from epsilon on, and the advantage about a label is at most
    $(\min(\eta, 1 - \eta) - 1 / (1 + e^\varepsilon))_+$, that of randomized response. Without noise it is at
    most $\min(\eta, 1 - \eta)$, that of a label without noise. A mean of advantages is at most the largest.
    """

    name = "labels.reach"
    problems = get_args(Answered)
    direction = Direction.UPPER
    reference = f"{BUSA_FEKETE}, Section 2 and Theorem 3.5; the thresholds follow from them"

    def applies(self, problem: Answered) -> str | None:
        match problem:
            case LabelAdvantageTail() | LabelAdvantageShare():
                return None if beyond_reach(problem) else "The bound of the advantage is above the threshold."
            case LabelRatioTail():
                reached = problem.log_ratio < largest_ratio(problem)
                return "The bound of the ratio is above the threshold." if reached else None
            case LabelRatioQuantile():
                unbounded = math.isinf(largest_ratio(problem))
                return "The exact sum of labels can reveal a label." if unbounded else None

    def cost(self, problem: Answered) -> Cost:
        return closed_form(problem)

    def answer(self, problem: Answered, seed: int) -> Answer:
        if isinstance(problem, LabelRatioQuantile):
            return Answer.at_most(largest_ratio(problem), detail="no ratio exceeds epsilon")
        largest = "advantage" if isinstance(problem, Thresholded) else "ratio"
        return Answer.at_most(0.0, detail=f"the mechanism allows no larger {largest}")


def beyond_reach(problem: Thresholded) -> bool:
    """Return whether no advantage, and so no mean advantage, exceeds the threshold, for all features.

    Example:
        >>> fields = {"mechanism": "rr", "prior": "uniform", "label_epsilon": 1.0}
        >>> [beyond_reach(LabelAdvantageTail(**fields, threshold=t)) for t in (0.231, 0.232)]
        [False, True]
    """
    return problem.threshold >= largest_advantage(problem)


def largest_advantage(problem: LabelProblem) -> float:
    r"""Return a bound of the advantage about a label of an example of the prior, for all features.

    $$\max_\eta \left(\min(\eta, 1 - \eta) - \tfrac12 + \tfrac12 \tanh(\varepsilon / 2)\right)_+$$

    over the values of the prior; over all probabilities for a prior with infinitely many values.

    Args:
        problem: Mechanism and prior.

    Returns:
        Upper bound in [0, 1/2], rounded up; exact without noise.

    Reference:
        arXiv:2406.02797v1, Theorem 3.5, for randomized response, which dominates every mechanism with label
        differential privacy.

    Example:
        >>> round(largest_advantage(LabelProblem(mechanism="rr", prior="point(0.7)", label_epsilon=1.0)), 6)
        0.031059
    """
    if problem.mechanism == "none":
        return 0.0
    atoms = problem.distribution.atoms
    rare = 0.5 if atoms is None else float(np.minimum(atoms[0], 1.0 - atoms[0]).max())
    if math.isinf(problem.label_epsilon):
        return rare
    clear, even = 0.5 * math.tanh(0.5 * problem.label_epsilon), 0.5 - rare
    flipped = float(scipy.special.expit(-problem.label_epsilon))
    differences = ((clear, even), (rare, flipped))  # equal; the first is accurate for much noise
    return max(0.0, min(a - b + FEW_FUNCTIONS * (a + b) for a, b in differences))


def largest_ratio(problem: LabelProblem) -> float:
    """Return the largest absolute log-likelihood ratio in nats: epsilon, or 0 if nothing is released."""
    return 0.0 if problem.mechanism == "none" else problem.label_epsilon
