"""Accuracy of the best guess, and the advantage of an attacker who ignores the features of the others."""

import math
from typing import get_args

import numpy as np

from privcore.answer import Answer, intersect
from privcore.distributions.prior import Prior
from privcore.distributions.prior_density import Density
from privcore.labels.bounds.reach import LabelsUnchanged
from privcore.labels.bounds.response import accuracy
from privcore.labels.bounds.root import LabelsBernstein, LabelsChernoff, LabelsRoot
from privcore.labels.bounds.tails import PARTITION, is_constant
from privcore.labels.bounds.variation import LabelsDominated, LabelsVariation
from privcore.labels.problems import SINGLE, Featured, LabelAdvantage, LabelAttackAccuracy
from privcore.labels.sums.poisson_binomial import SMALLEST, Array, binomial
from privcore.labels.sums.rows import likelihoods, overturned_ends
from privcore.method import Cost, Direction, Method
from privcore.numerics.rounding import LABEL_BOUND
from privcore.papers import BUSA_FEKETE

_CHUNK = 2**13
"""Number of outputs that are processed at a time."""
_NEGLIGIBLE = 1e20 * SMALLEST
_MOST_ERROR = 0.01
"""Relative error of a likelihood above which no advantage is claimed."""


class LabelsBlind(Method[Featured]):
    r"""Without the features of the other k - 1 examples, the sum of their labels has a binomial distribution.

    The advantage is convex in the distribution q of the sum of the other labels, and the mean of q over their
    features is the binomial distribution with probability p, the mean of eta. By Jensen's inequality, the
    overturned mass of the likelihoods $b(s - 1)$ and $b(s)$, with geometric noise added for `llp-geometric`,
    is a lower bound. It is exact if eta is constant.
    """

    name = "labels.blind"
    problems = get_args(Featured)
    direction = Direction.LOWER
    reference = f"{BUSA_FEKETE}, Lemma A.1 for an attacker with less information; the bound is ours"

    def applies(self, problem: Featured) -> str | None:
        if problem.mechanism not in ("llp", "llp-geometric"):
            return "The bound is for mechanisms that release a whole number: llp and llp-geometric."
        if problem.is_partition:
            return PARTITION
        return None

    def cost(self, problem: Featured) -> Cost:
        k, outputs = problem.bag_size, _outputs(problem)
        own = problem.attacked
        atoms = 0 if own.atoms is None else own.atoms[0].size
        each = 3e-6 if isinstance(own, Density) else 1e-7 + 3e-8 * atoms + (1e-5 if atoms > 64 else 0.0)
        return Cost(seconds=0.03 + 1e-7 * k + each * outputs, bytes=3e6 + 60.0 * k + 100.0 * atoms)

    def answer(self, problem: Featured, seed: int) -> Answer:
        own = problem.attacked
        lower = blind_advantage(own, problem.distribution, problem.bag_size, problem.label_epsilon)
        detail = f"sum of {problem.bag_size - 1} labels of rate p"
        return Answer.enclosure(min(problem.largest, lower), problem.largest, detail=detail)


def blind_advantage(own: Prior, others: Prior, bag_size: int, epsilon: float) -> float:
    r"""Return a lower bound of the advantage: that of an attacker without the features of the other examples.

    $$\sum_u E_\eta (\eta g_1(u) - (1 - \eta) g_0(u))_+ 1\{\eta \le 1/2\} + \dots, \qquad
      g_y(u) = \sum_s b_{k - 1, p}(s) K(u | s + y)$$

    Args:
        own: Distribution of eta of the attacked example.
        others: Distribution of eta of the other members; only its mean p matters.
        bag_size: Number k of examples in the bag, >= 1.
        epsilon: Label differential privacy of the geometric noise, > 0; infinity for the exact sum.

    Returns:
        Lower bound in [0, 1/2], rounded down.

    Example:
        >>> from privcore.distributions.prior_finite import FinitePrior
        >>> round(blind_advantage(FinitePrior.point(0.5), FinitePrior.point(0.5), 8, math.inf), 10)
        0.13671875
    """
    law = binomial(bag_size - 1, others.mean)
    ones, zeros, error = likelihoods(law[None, :], epsilon)
    error += _error_of_rate(others, law)
    if error > _MOST_ERROR:
        return 0.0
    seen = np.maximum(ones[0], zeros[0]) > _NEGLIGIBLE
    # A likelihood that rounds to 0 is at most SMALLEST, and the overturned mass falls with the smaller one.
    one, zero = ones[0][seen] + SMALLEST, zeros[0][seen] + SMALLEST
    parts = [
        float(overturned_ends(own, one[i : i + _CHUNK], zero[i : i + _CHUNK], error)[0].sum())
        for i in range(0, one.size, _CHUNK)
    ]
    return max(0.0, math.fsum(parts) * (1.0 - LABEL_BOUND))


def _error_of_rate(others: Prior, law: Array) -> float:
    """Return the relative error of binomial probabilities due to the error of the mean eta."""
    p = others.mean
    if is_constant(others):
        return 0.0
    if p == 1.0:
        return math.inf
    counts = np.nonzero(law > SMALLEST)[0]
    # d ln b(s) = (s - n p) / (p (1 - p)) dp, doubled
    farthest = float(np.abs(counts - (law.size - 1) * p).max())
    return 2.0 * others.error * (farthest + 1.0) / (1.0 - p)


def _outputs(problem: Featured) -> float:
    """Return the approximate number of outputs that are not negligible."""
    k, p = problem.bag_size, problem.distribution.mean
    reach = 40.0 * (1.0 + math.sqrt(k * p * (1.0 - p)))
    tails = 700.0 / problem.label_epsilon if 0.0 < problem.label_epsilon < math.inf else 0.0
    return min(k + 1.0, 2.0 * (reach + tails))


_BOUNDS: tuple[Method, ...] = (
    LabelsUnchanged(),
    LabelsBlind(),
    LabelsDominated(),
    LabelsVariation(),
    LabelsRoot(),
    LabelsBernstein(),
    LabelsChernoff(),
)
"""Explicit bounds of the advantage; those that are left out are never tighter than all of these."""


class LabelsGuess(Method[LabelAttackAccuracy]):
    """The best guess is right with the probability of a blind guess plus the additive advantage.

    The answer adds the intersection of the explicit bounds of `label-advantage`. Both ends are those of the
    advantage, shifted by the same number.
    """

    name = "labels.guess"
    problems = (LabelAttackAccuracy,)
    direction = Direction.ENCLOSURE
    reference = "the definition of the additive advantage, and the references of its bounds"

    def applies(self, problem: LabelAttackAccuracy) -> str | None:
        if problem.mechanism in SINGLE:
            return "The mechanism has no bags; labels.response has the closed forms."
        return problem.contradiction() or None

    def cost(self, problem: LabelAttackAccuracy) -> Cost:
        costs = [method.cost(_advantage(problem)) for method in _used(problem)]
        return Cost(seconds=sum(c.seconds for c in costs), bytes=sum(c.bytes for c in costs))

    def answer(self, problem: LabelAttackAccuracy, seed: int) -> Answer:
        about, used = _advantage(problem), _used(problem)
        found = intersect([m.answer(about, seed).said_by(m.name) for m in used], about.largest)
        low, high = accuracy(problem.distribution, (found.lower, found.upper))
        by = " and ".join(dict.fromkeys(name for name in (found.lower_by, found.upper_by) if name))
        return Answer.enclosure(max(0.0, low), min(problem.largest, high), detail=f"advantage by {by}")


def _advantage(problem: LabelAttackAccuracy) -> LabelAdvantage:
    return LabelAdvantage(**problem.as_fields())  # type: ignore[arg-type]  # the fields are the same


def _used(problem: LabelAttackAccuracy) -> list[Method]:
    about = _advantage(problem)
    return [method for method in _BOUNDS if method.applies(about) is None]
