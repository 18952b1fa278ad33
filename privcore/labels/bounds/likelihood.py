"""Bounds of the likelihood ratio for labels without features, and certain disclosure for every prior."""

import math
from typing import get_args

from privcore.answer import Answer
from privcore.labels.bounds.tails import AGGREGATED, at_most, closed_form, is_constant, uncovered
from privcore.labels.problems import (
    AtEta,
    LabelRatioInfinite,
    LabelRatioQuantile,
    LabelRatioQuantileAt,
    LabelRatioTail,
    LabelRatioTailAt,
)
from privcore.labels.sums.partition import revealed_in_partition
from privcore.method import Cost, Direction, Method
from privcore.numerics.rounding import LABEL_BOUND
from privcore.papers import BUSA_FEKETE

_UNDERFLOW = 2.0**-1071
"""Above the absolute error of a sum of two products with powers that are not normal doubles."""
_BAG_FACTOR = 32.0
"""Bags have at least this times L / (p (1 - p)) examples."""


def ratio_bound(p: float, bag_size: int, log_failure: float) -> float:
    r"""Return a bound that the absolute log-likelihood ratio exceeds with probability at most $2 \delta$.

    $$\frac{2 B \ln 2}{p (1 - p)}, \qquad B = \sqrt{2 p (1 - p) L / k} + \frac{2 L}{3 k},
      \quad L = \ln(1 / \delta)$$

    Args:
        p: Probability of label 1 in (0, 1).
        bag_size: Number k of examples in a bag, at least $32 L / (p (1 - p))$.
        log_failure: L in nats, >= 0.

    Returns:
        Upper bound in nats, exact up to rounding.

    Reference:
        arXiv:2406.02797v1, Theorem 3.7 with the constants of its proof, which prints $\delta$ instead of
        $2 \delta$.

    Example:
        >>> import math
        >>> round(ratio_bound(p=0.5, bag_size=600, log_failure=math.log(100)), 6)
        0.37189
    """
    variance = p * (1.0 - p)
    deviation = math.sqrt(2.0 * variance * log_failure / bag_size) + log_failure / (1.5 * bag_size)
    return 2.0 * math.log(2.0) * deviation / variance


def largest_log_failure(p: float, bag_size: int, log_ratio: float) -> float:
    r"""Return the largest L for which `ratio_bound` applies to the bag size and is at most a given ratio.

    Args:
        p: Probability of label 1 in (0, 1).
        bag_size: Number k of examples in a bag, >= 1.
        log_ratio: Absolute log-likelihood ratio t in nats, >= 0.

    Returns:
        L >= 0, exact up to rounding; the ratio exceeds t with probability at most $2 e^{-L}$.

    Example:
        >>> round(largest_log_failure(p=0.5, bag_size=600, log_ratio=0.37189), 4)
        4.6052
    """
    variance = p * (1.0 - p)
    deviation = log_ratio * variance / (2.0 * math.log(2.0))
    linear = math.sqrt(2.0 * variance / bag_size)
    # the positive root of linear x + 2 x^2 / (3 k) = deviation, without cancellation
    root = 2.0 * deviation / (linear + math.sqrt(linear * linear + 8.0 * deviation / (3.0 * bag_size)))
    return min(root * root, bag_size * variance / _BAG_FACTOR)


Answered = LabelRatioTail | LabelRatioTailAt | LabelRatioQuantile | LabelRatioQuantileAt


class LabelsLikelihood(Method[Answered]):
    r"""For constant eta, the ratio exceeds the bound of Theorem 3.7 with probability at most $2 \delta$.

    The posterior of a label is the proportion $\alpha$ of its bag, $|\alpha - p| > B$ has probability at most
    $2 \delta$ by Bernstein's inequality, and $32 L \le k p (1 - p)$ makes $b = B / (p (1 - p))$ at most 1/2.
    Then the ratio $|\mathrm{logit}\,\alpha - \mathrm{logit}\,p|$ is at most $-\ln(1 - b) \le 2 b \ln 2$, by
    convexity. This replaces a false step of the printed proof. With noise the posterior is the conditional
    mean of $\alpha$ given the release. By Jensen's inequality its moment generating function about p is no
    larger, so Bernstein's inequality and the theorem also hold with noise.
    """

    name = "labels.likelihood"
    problems = get_args(Answered)
    direction = Direction.UPPER
    reference = f"{BUSA_FEKETE}, Theorem 3.7 with the constants of its proof"

    def applies(self, problem: Answered) -> str | None:
        if not is_constant(problem.distribution):
            return "The theorem needs labels that are independent of the features: one eta for all examples."
        if isinstance(problem, AtEta) and problem.eta != problem.distribution.mean:
            return "The theorem needs an attacked example with the eta of all others."
        p = problem.distribution.mean
        if p in (0.0, 1.0):
            return "The theorem needs a probability of label 1 strictly between 0 and 1."
        if isinstance(problem, LabelRatioQuantile):
            least = _BAG_FACTOR * _log_failure(problem) / (p * (1.0 - p))
            if problem.bag_size < least * (1.0 + LABEL_BOUND):
                return f"The theorem needs bags of at least {least:.4g} examples at this level."
        return uncovered(problem, AGGREGATED)

    def cost(self, problem: Answered) -> Cost:
        return closed_form(problem)

    def answer(self, problem: Answered, seed: int) -> Answer:
        p, k = problem.distribution.mean, problem.bag_size
        if isinstance(problem, LabelRatioQuantile):
            return at_most(
                problem, ratio_bound(p, k, _log_failure(problem)), f"delta {0.5 * (1.0 - problem.level):.6g}"
            )
        failure = largest_log_failure(p, k, problem.log_ratio) * (1.0 - LABEL_BOUND)
        return at_most(problem, 2.0 * math.exp(-failure), f"ln(1 / delta) {failure:.6g}")


def _log_failure(problem: LabelRatioQuantile) -> float:
    r"""Return the L for which $2 \delta$ is the probability of exceeding the quantile."""
    return math.log(2.0 / (1.0 - problem.level))


class LabelsInfinite(Method[LabelRatioInfinite]):
    r"""For constant eta, the sum of a bag determines a label with probability $p^k + (1 - p)^k$.

    It does if the released sum is impossible under the other label, that is if this label and all uncertain
    labels of the others are 1, or all are 0. Examples are independent, so the probability is
    $p (p + w_0)^{k-1} + (1 - p) (1 - p + w_1)^{k-1}$ with the probabilities $w_0, w_1$ of eta = 0 and 1.
    Noise makes every release possible under both labels.

    In a partition of N rows, the others are different rows. With $z$ rows of eta = 0, whose labels determine
    nothing about the others, and the elementary symmetric polynomials $e_j$ of the other rows, the term for
    label 1 is $\sum_j j e_j \binom{z}{k - j} / (k \binom Nk)$, and the term for label 0 its mirror image.
    """

    name = "labels.infinite"
    problems = (LabelRatioInfinite,)
    direction = Direction.ENCLOSURE
    reference = f"{BUSA_FEKETE}, Section 4; the closed form is ours"
    version = 2

    def cost(self, problem: LabelRatioInfinite) -> Cost:
        atoms = problem.distribution.atoms
        size = 0 if atoms is None else atoms[0].size
        if problem.is_partition and problem.mechanism == "llp":
            products = 2.0 * min(size, 512) * (problem.bag_size + 1.0) ** 2
            return Cost(seconds=0.05 + 1e-7 * size + 1e-9 * products, bytes=2e6 + 200.0 * size)
        return Cost(seconds=0.01, bytes=1e6 + 100.0 * size)

    def applies(self, problem: LabelRatioInfinite) -> str | None:
        return problem.contradiction() or None

    def answer(self, problem: LabelRatioInfinite, seed: int) -> Answer:
        if problem.mechanism != "llp":
            return Answer.enclosure(0.0, 0.0, detail="every output is possible under both labels")
        if problem.is_partition:
            low, high = revealed_in_partition(problem.distribution, problem.bag_size)
            return Answer.enclosure(low, high, detail="elementary symmetric polynomials")
        p = problem.distribution.mean
        zeros, ones = problem.distribution.ends
        others = problem.bag_size - 1
        truth = p * min(1.0, p + zeros) ** others + (1.0 - p) * min(1.0, 1.0 - p + ones) ** others
        error = problem.bag_size * (2.0 * problem.distribution.moment_error + 2.0**-51)  # in the exponent
        lower = max(0.0, truth * math.exp(-error) - _UNDERFLOW)
        return Answer.enclosure(lower, min(1.0, truth * math.exp(error) + 1e-290), detail="closed form")
