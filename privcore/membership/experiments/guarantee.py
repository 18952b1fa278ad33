"""Guarantees of quantisation: the largest advantage, and the largest accuracy of a classifier."""

import numpy as np

from privcore.distributions.record_finite import FiniteRecord
from privcore.membership.discrete.diversity import diversity, diversity_bound
from privcore.membership.discrete.worst_case import worst_advantage
from privcore.membership.experiments.digits import codes, counts, refusal
from privcore.membership.experiments.problems import MembershipQuantised, MembershipQuantisedAdvantage
from privcore.method import Cost, Direction
from privcore.numerics.rounding import UNIT
from privcore.papers import AUBINAIS
from privcore.published import published


def pool(clusters: int, attributes: str) -> FiniteRecord:
    """Return the empirical distribution of these attributes of the images of the pool."""
    return FiniteRecord.weighted("counts of the pool", counts(clusters, attributes).astype(np.float64))


def _both_bounds(problem: MembershipQuantisedAdvantage) -> str:
    """Return the diversity and the bound that follows from it alone, in words."""
    c = diversity(pool(problem.clusters, problem.attributes))[1]
    return f"C = {c:.4f}, C / (2 sqrt n) = {diversity_bound(c, problem.records):.4f}"


MembershipGuarantee = published(
    "membership.guarantee",
    MembershipQuantisedAdvantage,
    Direction.ENCLOSURE,
    """Sum the exact terms of all atoms of the empirical distribution of the pool of images.

    The detail has the diversity C and the bound that follows from C alone. The paper's values are for
    clusters without labels, although its classifier is trained on labels.
    """,
    lambda p: worst_advantage(pool(p.clusters, p.attributes), p.records, p.odds),
    reference=f"{AUBINAIS}, Theorem 14 and Table 1",
    unless=lambda p: refusal(),
    detail=_both_bounds,
    cost=lambda p: Cost(seconds=0.15, bytes=5e6),
    shares=("clusters",),
)
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
    slack=2.0 * UNIT,  # a quotient, and the move itself
    detail="share of the most frequent digit of each cluster",
    cost=lambda p: Cost(seconds=0.15, bytes=5e6),
    shares=("clusters",),
    version=2,
)
