"""Guarantees of quantisation: the largest advantage, and the largest accuracy of a classifier."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privcore.answer import Answer
from privcore.distributions.record_finite import FiniteRecord
from privcore.membership.discrete.diversity import diversity_bound
from privcore.membership.discrete.worst_case import worst_advantage
from privcore.membership.experiments.digits import codes, counts, refusal
from privcore.membership.experiments.problems import MembershipQuantised, MembershipQuantisedAdvantage
from privcore.method import Cost, Direction, Method
from privcore.papers import AUBINAIS
from privcore.published import published


@dataclass(frozen=True, kw_only=True)
class MembershipGuarantee(Method[MembershipQuantisedAdvantage]):
    """Sum the exact terms of all atoms of the empirical distribution of the pool of images.

    The detail has the diversity C and the bound that follows from C alone. The paper's values are for
    clusters without labels, although its classifier is trained on labels.
    """

    name = "membership.guarantee"
    problems = (MembershipQuantisedAdvantage,)
    direction = Direction.ENCLOSURE
    reference = f"{AUBINAIS}, Theorem 14 and Table 1"
    shares = ("clusters",)

    def applies(self, problem: MembershipQuantisedAdvantage) -> str | None:
        return refusal()

    def cost(self, problem: MembershipQuantisedAdvantage) -> Cost:
        return Cost(seconds=0.15, bytes=5e6)

    def answer(self, problem: MembershipQuantisedAdvantage, seed: int) -> Answer:
        found = counts(problem.clusters, problem.attributes)
        law = FiniteRecord.weighted("counts of the pool", found.astype(np.float64))
        lower, upper = worst_advantage(law, problem.records, problem.odds)
        c = diversity(found)
        bound = diversity_bound(c, problem.records)
        return Answer.enclosure(lower, upper, detail=f"C = {c:.4f}, C / (2 sqrt n) = {bound:.4f}")


def diversity(number: NDArray[np.int64]) -> float:
    r"""Return $C = \sum_k \sqrt{p_k (1 - p_k)}$ of the distribution with these counts.

    Args:
        number: Counts, of any shape.

    Reference:
        arXiv:2310.13786v6, Section 5.2.

    Example:
        >>> diversity(np.array([5, 5]))
        1.0
    """
    p = number.ravel() / number.sum()
    return float(np.sqrt(p * (1.0 - p)).sum())


MembershipPurity = published(
    "membership.purity",
    MembershipQuantised,
    Direction.UPPER,
    """Count the test images that show the most frequent digit of their cluster.

    A classifier whose input is the cluster cannot be right more often on these images, regardless of its
    training. For raw images the bound is 1.
    """,
    lambda p: codes(p.clusters).purity(),
    reference=f"Counting; {AUBINAIS}, Table 1, claims accuracies above this bound",
    unless=lambda p: refusal(),
    detail="share of the most frequent digit of each cluster",
    cost=lambda p: Cost(seconds=0.15, bytes=5e6),
    shares=("clusters",),
)
