"""Probability of a large advantage in one bag: explicit form of the high-probability bound."""

import math
from dataclasses import dataclass
from typing import Annotated

from privcore.answer import Answer
from privcore.distributions.prior import Prior
from privcore.labels import params as label_params
from privcore.labels.problems import LabelAdvantageTail, LabelProblem
from privcore.labels.tails import AGGREGATED, at_most, closed_form, largest_probability, uncovered
from privcore.method import Cost, Direction, Method
from privcore.numerics.rounding import LABEL_BOUND
from privcore.papers import BUSA_FEKETE

_HALVINGS = 100


def published_threshold(beta: float, bag_size: int, variance: float) -> float:
    r"""Return the threshold that the mean advantage exceeds with at most the probability `published_tail`.

    $$\frac{9 (k \mu + \beta)}{k \sqrt{(k - 1) \mu - \beta}}$$

    Args:
        beta: Deviation $\beta$ in [0, (k - 1) mu) of a sum of variances from its mean.
        bag_size: Number k of examples in the bag.
        variance: Mean $\mu$ of $\eta (1 - \eta)$ in (0, 1/4].

    Returns:
        Threshold > 0, exact up to rounding.

    Reference:
        arXiv:2406.02797v1, proof of Theorem A.9, eq. (13).

    Example:
        >>> round(published_threshold(51.1, bag_size=512, variance=0.2), 6)
        0.37746
    """
    return 9.0 * (bag_size * variance + beta) / (bag_size * math.sqrt((bag_size - 1) * variance - beta))


def published_tail(beta: float, bag_size: int, variance: float) -> float:
    r"""Return $(k + 1) \exp(-\beta^2 / (2 k \mu + \beta / 6))$, which may exceed 1.

    Args:
        beta: Deviation $\beta$, >= 0.
        bag_size: Number k of examples in the bag.
        variance: Mean $\mu$ of $\eta (1 - \eta)$ in [0, 1/4].

    Reference:
        arXiv:2406.02797v1, proof of Theorem A.9, eq. (13).

    Example:
        >>> round(published_tail(51.1, bag_size=512, variance=0.2), 6)
        0.002477
    """
    return _bernstein(beta, bag_size, bag_size * variance)


@dataclass(frozen=True, kw_only=True)
class LabelsTranslated(Method[LabelAdvantageTail]):
    r"""Bernstein's inequality for the variances in a bag, and a bound of the advantage given these variances.

    Given the features, the mean advantage is at most $\frac1k \sum_i 2 \mu_i M(V_i)$ with
    $\mu_i = \eta_i (1 - \eta_i)$, $V_i = \sum_{l \ne i} \mu_l$ and $M(V) = e^{-V} I_0(V)$, see
    `largest_probability`. This is at most $\frac2k (k \mu + \beta) M((k - 1) \mu - \beta)$, unless one of k +
    1 sums of the $\mu_l$ deviates by more than $\beta$ from its mean. The $\mu_l$ are in [0, 1/4], so each
    sum deviates with probability at most $\exp(-\beta^2 / (2 k w + \beta / 6))$, where w is the variance of
    $\mu_l$. The bound of the probability is smallest for the largest $\beta$ for which the bound of the
    advantage does not exceed the threshold.

    The published form has $9 / \sqrt V$ instead of $2 M(V) \le 0.93766 / \sqrt V$, has $\mu$ instead of w,
    and needs $(k - 1) \mu \ge 1 + \beta$. It follows from the tight form, although not by its printed proof.
    Adding noise is a post-processing of the sum for all features, so both forms hold with noise. Sums over
    different rows of a file have smaller exponential moments than those over independent draws (Hoeffding
    1963, Theorem 4), so both forms hold for a partition.
    """

    name = "labels.translated"
    problems = (LabelAdvantageTail,)
    direction = Direction.UPPER
    reference = f"{BUSA_FEKETE}, Theorem A.9 with the constants of its proof, eq. (13)"

    form: Annotated[str, label_params.FORM] = "tight"

    def applies(self, problem: LabelAdvantageTail) -> str | None:
        if (reason := uncovered(problem, AGGREGATED)) is not None:
            return reason
        if problem.bags > 1:
            return "The theorem is for the mean advantage in a single bag."
        if problem.bag_size == 1:
            return "The theorem needs bags of at least two examples."
        if self.form == "published" and _least_sum(problem) < 1.0:
            return (
                "The published form needs bags in which the sum of the other labels has variance 1 or more."
            )
        return None

    def cost(self, problem: LabelAdvantageTail) -> Cost:
        return closed_form(problem)

    def answer(self, problem: LabelAdvantageTail, seed: int) -> Answer:
        k, law = problem.bag_size, problem.distribution
        beta = self._largest_beta(problem)
        if beta is None:
            return at_most(problem, 1.0, "the threshold is below the bound on the mean")
        if self.form == "published":
            tail = published_tail(beta, k, _most(law))
        else:
            tail = _bernstein(beta, k, k * _variance_of_variances(law))
        return at_most(problem, tail, f"beta {beta:.6g}")

    def _largest_beta(self, problem: LabelAdvantageTail) -> float | None:
        """Return the largest deviation at which the bound of the advantage keeps the threshold, or None."""

        def suffices(beta: float) -> bool:
            return self._advantage(problem, beta) * (1.0 + LABEL_BOUND) <= problem.threshold

        low, high = 0.0, _least_sum(problem) - (1.0 if self.form == "published" else 0.0)
        if not suffices(low):
            return None
        if suffices(high):
            return high
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if suffices(middle) else (low, middle)
        return low

    def _advantage(self, problem: LabelAdvantageTail, beta: float) -> float:
        """Return the bound of the advantage if no sum deviates by more than beta."""
        k, most, rest = problem.bag_size, _most(problem.distribution), _least_sum(problem) - beta
        factor = (
            2.0 * float(largest_probability(max(0.0, rest)))
            if self.form == "tight"
            else 9.0 / math.sqrt(rest)
        )
        return factor * (k * most + beta) / k


def _bernstein(beta: float, bag_size: int, variance: float) -> float:
    """Return k + 1 times Bernstein's bound for a sum of terms in [0, 1/4] with at most this variance."""
    spread = 2.0 * variance + beta / 6.0
    return (bag_size + 1.0) * math.exp(-beta * (beta / spread) if spread > 0.0 else 0.0)


def _most(law: Prior) -> float:
    """Return the mean variance of a label, rounded up."""
    return law.label_variance * (1.0 + law.error)


def _least_sum(problem: LabelProblem) -> float:
    """Return the mean of the sum of the variances of the other labels, rounded down."""
    law = problem.distribution
    return (problem.bag_size - 1) * law.label_variance * (1.0 - law.error) * (1.0 - LABEL_BOUND)


def _variance_of_variances(law: Prior) -> float:
    """Return the variance of eta (1 - eta), rounded up."""
    square = law.label_variance_square * (1.0 + law.error)
    return max(0.0, square * (1.0 + LABEL_BOUND) - (law.label_variance * (1.0 - law.error)) ** 2)
