"""Releases that change no guess: the advantage is exactly zero if no likelihood ratio is large enough."""

import math
from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from privcore.answer import Answer
from privcore.labels.bag_problems import BagAdvantage, MemberAdvantage
from privcore.labels.poisson_binomial import Array
from privcore.labels.problems import (
    LabelAdvantage,
    LabelAdvantageAt,
    LabelAdvantageShare,
    LabelAdvantageTail,
    LabelProblem,
)
from privcore.method import Cost, Direction, Method
from privcore.papers import BUSA_FEKETE

_MARGIN = 1e-11
"""Relative distance from the edge, beyond all errors of the values of a prior."""

Answered = (
    LabelAdvantage
    | LabelAdvantageAt
    | LabelAdvantageTail
    | LabelAdvantageShare
    | BagAdvantage
    | MemberAdvantage
)


@dataclass(frozen=True, kw_only=True)
class LabelsUnchanged(Method[Answered]):
    r"""If $\min(\eta, 1 - \eta) \, e^\varepsilon \le \max(\eta, 1 - \eta)$ for all eta, the advantage is 0.

    Under label differential privacy the likelihoods of a release given the two labels differ by a factor of
    $e^\varepsilon$ at most. So the label that is more likely before the release is still at least as likely
    after it, and the best guess does not change. Without noise this holds only if every eta is 0 or 1.
    """

    name = "labels.unchanged"
    problems = get_args(Answered)
    direction = Direction.ENCLOSURE
    reference = f"{BUSA_FEKETE}, Section 3.1; the condition follows from the definition of privacy"

    def applies(self, problem: Answered) -> str | None:
        etas = _values(problem)
        if problem.label_epsilon == 0.0:
            return None
        if etas is None:
            return "The prior has infinitely many values of eta."
        return None if unchanged(etas, problem) else "Some releases change the best guess."

    def cost(self, problem: Answered) -> Cost:
        etas = _values(problem)
        size = 0 if etas is None else etas.size
        return Cost(seconds=1e-3 + 1e-8 * size, bytes=1e5 + 50.0 * size)

    def answer(self, problem: Answered, seed: int) -> Answer:
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


def _values(problem: Answered) -> Array | None:
    """Return the probabilities of label 1 that the attacked examples can have; None if infinitely many."""
    if isinstance(problem, BagAdvantage):
        return problem.etas
    if isinstance(problem, MemberAdvantage):
        return problem.etas[problem.member - 1 : problem.member]
    atoms = problem.attacked.atoms
    return None if atoms is None else atoms[0]
