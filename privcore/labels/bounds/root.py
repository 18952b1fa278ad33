"""Explicit bounds for bags: of labels without features, of Fourier transforms, and in most bags."""

import math
from collections.abc import Callable
from typing import Annotated, get_args

from privcore.answer import Answer
from privcore.distributions.prior import Prior
from privcore.labels import params as label_params
from privcore.labels.bounds.tails import (
    AGGREGATED,
    PARTITION,
    at_most,
    closed_form,
    largest_probability,
    own_variance,
    uncovered,
    without_features,
)
from privcore.labels.problems import Featured, LabelAdvantage, LabelAdvantageTail, LabelProblem
from privcore.method import Cost, Direction, Method
from privcore.numerics.rounding import LABEL_BOUND
from privcore.papers import BUSA_FEKETE
from privcore.published import published


def _featureless(bound: Callable[[float, int], float], detail: str) -> Callable[[Featured], Answer]:
    """Return the formula of a bound that depends on the rate of label 1 and the bag size alone."""
    return lambda problem: at_most(problem, bound(problem.distribution.mean, problem.bag_size), detail)


def _with_features(problem: Featured) -> str | None:
    """Return the reason if labels depend on features, or the mechanism has no bags."""
    if not without_features(problem):
        return "The theorem needs labels that are independent of the features: one eta for all examples."
    return uncovered(problem, AGGREGATED)


def root_bound(p: float, bag_size: int) -> float:
    r"""Return the standard deviation of the proportion of labels 1 in a bag.

    $$\min(p, 1 - p) - E \min(\alpha, 1 - \alpha) \le E|\alpha - p| \le \sqrt{p (1 - p) / k}$$

    Args:
        p: Probability of label 1 in [0, 1].
        bag_size: Number k of examples in a bag, >= 1.

    Returns:
        Upper bound of the additive advantage in [0, 1/2], exact up to rounding.

    Reference:
        arXiv:2406.02797v1, Theorem 3.2, first case.

    Example:
        >>> root_bound(p=0.5, bag_size=64)
        0.0625
    """
    return math.sqrt(p * (1.0 - p) / bag_size)


LabelsRoot = published(
    "labels.root",
    get_args(Featured),
    Direction.UPPER,
    r"""The advantage is at most $\sqrt{p (1 - p) / k}$ if eta is constant.

    Adding noise is a post-processing of the sum, so it lowers the advantage. At p = 1/2 the exact sum attains
    $\sqrt{2 / \pi}$ of the bound in large bags.""",
    _featureless(root_bound, "sqrt(p (1 - p) / k)"),
    reference=f"{BUSA_FEKETE}, Theorem 3.2, for all p",
    unless=_with_features,
    cost=closed_form,
)


def bernstein_bound(p: float, bag_size: int) -> float:
    r"""Return Bernstein's bound for the probability that more than half of a bag has the rarer label.

    $$\exp\left(-\frac{k (1/2 - p)^2}{2 p (1 - p) + (1 - 2 p) / 3}\right)$$

    for $p \le 1/2$; for $p > 1/2$, p is replaced by 1 - p.

    Args:
        p: Probability of label 1 in [0, 1].
        bag_size: Number k of examples in a bag, >= 1.

    Returns:
        Upper bound of the additive advantage in [0, 1], exact up to rounding.

    Reference:
        arXiv:2406.02797v1, Theorem 3.2, second case, with the constants of its proof.

    Example:
        >>> round(bernstein_bound(p=0.3, bag_size=8), 4)
        0.5608
    """
    rare = min(p, 1.0 - p)
    gap = 0.5 - rare
    return math.exp(-bag_size * gap * gap / (2.0 * rare * (1.0 - rare) + gap / 1.5))


LabelsBernstein = published(
    "labels.bernstein",
    get_args(Featured),
    Direction.UPPER,
    """An attack on labels without features gains only in bags in which the rarer label has the majority.

    The advantage is the mean of 2 alpha - 1 over these bags, at most their probability, which falls
    exponentially with the bag size unless p = 1/2. Noise lowers the advantage. `labels.chernoff` is better
    unless p is small.""",
    _featureless(bernstein_bound, "Bernstein's inequality"),
    reference=f"{BUSA_FEKETE}, Theorem 3.2 and its proof; Bernstein's inequality",
    unless=_with_features,
    cost=closed_form,
)


def chernoff_bound(p: float, bag_size: int) -> float:
    r"""Return Chernoff's bound for the probability that at least half of a bag has the rarer label.

    $$\min_t E e^{t (S - k/2)} = (4 p (1 - p))^{k/2} = (1 - 4 \beta^2)^{k/2} \le e^{-2 \beta^2 k},
      \qquad \beta = |p - 1/2|$$

    Args:
        p: Probability of label 1 in [0, 1].
        bag_size: Number k of examples in a bag, >= 1.

    Returns:
        Upper bound of the additive advantage in [0, 1], exact up to rounding.

    Reference:
        Chernoff's inequality; an explicit form of arXiv:2406.02797v1, Theorem 3.2, second case.

    Example:
        >>> round(chernoff_bound(p=0.3, bag_size=8), 4)
        0.4979
    """
    if p in (0.0, 1.0):
        return 0.0
    # for p near 1/2 the product is near 1, so its distance from 1 needs the relative accuracy
    near = abs(1.0 - 2.0 * p) < 0.5
    log = math.log1p(-((1.0 - 2.0 * p) ** 2)) if near else math.log(4.0) + math.log(p) + math.log1p(-p)
    return math.exp(0.5 * bag_size * log)


LabelsChernoff = published(
    "labels.chernoff",
    get_args(Featured),
    Direction.UPPER,
    r"""The advantage is at most $(4 p (1 - p))^{k/2}$ if eta is constant.

    The argument is that of `labels.bernstein`, with the moment generating function itself instead of a bound
    of it. The exponential rate is exact: the advantage is $k^{-3/2}$ times this bound, up to a factor that
    depends on p.""",
    _featureless(chernoff_bound, "(4 p (1 - p))^(k/2)"),
    reference=f"{BUSA_FEKETE}, Theorem 3.2, made explicit by Chernoff's inequality",
    unless=_with_features,
    cost=closed_form,
)


_SMALL = 1e-150
"""Mean variance below which the bound for one example exceeds every possible advantage."""


def half_width(others: int, label_variance: float) -> float:
    r"""Return the half-width $c_k$, in units of $\sqrt k$, of the window in which k labels are compared.

    $$c_k = \frac{1}{\sqrt k}
      \left(\tfrac13 \ln 8k + \tfrac16 \sqrt{2 \ln 8k + 12 k p (1 - p) \ln 8k}\right)$$

    Args:
        others: Number k of the other examples in the bag, >= 1.
        label_variance: Variance p (1 - p) of a label without its features, in [0, 1/4].

    Returns:
        Half-width, > 0; exact up to rounding.

    Reference:
        arXiv:2406.02797v1, Lemma A.2.

    Example:
        >>> round(half_width(1, 0.25), 6)
        1.230559
    """
    log = math.log(8.0 * others)
    root = math.sqrt(2.0 * log + 12.0 * others * label_variance * log)
    return (log / 3.0 + root / 6.0) / math.sqrt(others)


def advantage_bound(others: int, label_variance: float, mean_variance: float) -> float:
    r"""Return the right-hand side of the lemma for the mean advantage in a bag of k + 1 examples.

    $$k^{1/4} \sqrt{2 c_k} \sqrt{(e^{-3/2} + \tfrac\pi4 + \tfrac\pi e) \, \mu^{1/2} k^{-3/2}} + \mu / k$$

    Args:
        others: Number k of the other examples in the bag, >= 1.
        label_variance: Variance p (1 - p) of a label without its features, in [0, 1/4].
        mean_variance: Mean $\mu \le p (1 - p)$ of the variance of a label given its features.

    Returns:
        Upper bound of the advantage, exact up to rounding; `LabelsFourier` has the proof.

    Reference:
        arXiv:2406.02797v1, Lemma A.2.

    Example:
        >>> round(advantage_bound(7, 0.25, 0.25), 6)
        0.622402
    """
    constant = math.exp(-1.5) + math.pi / 4.0 + math.pi / math.e
    window = math.sqrt(math.sqrt(others)) * math.sqrt(2.0 * half_width(others, label_variance))
    return (
        window * math.sqrt(constant * math.sqrt(mean_variance) / (others * math.sqrt(others)))
        + mean_variance / others
    )


def difference_bound(others: int, label_variance: float, mean_variance: float) -> float:
    r"""Return the right-hand side of the lemma for $E \sum_s |q(s) - q(s - 1)|$ of the sum of k labels.

    $$\frac1k + k^{1/4} \sqrt{2 c_k}
      \sqrt{(1 - 2 \mu)^k + \frac{\pi}{(4 \mu k)^{3/2}} + \frac{\pi}{e \mu k^2}}$$

    Args:
        others: Number k of the labels, >= 1.
        label_variance: Variance p (1 - p) of a label without its features, in [0, 1/4].
        mean_variance: Mean $\mu \le p (1 - p)$ of the variance of a label given its features.

    Returns:
        Upper bound of the sum, exact up to rounding, infinite if the variance is 0; `LabelsFourier` has the
        proof.

    Reference:
        arXiv:2406.02797v1, Lemma A.3.

    Example:
        >>> round(difference_bound(7, 0.25, 0.25), 6)
        1.408193
    """
    if mean_variance < _SMALL:
        return math.inf
    total = others * mean_variance
    squares = math.exp(others * math.log1p(-2.0 * mean_variance))
    squares += math.pi * (4.0 * total) ** -1.5 + math.pi / (math.e * total * others)
    window = math.sqrt(math.sqrt(others)) * math.sqrt(2.0 * half_width(others, label_variance))
    return 1.0 / others + window * math.sqrt(squares)


def _outside_lemmas(problem: Featured) -> str | None:
    """Return the reason if the lemmas do not cover the bags."""
    if problem.mechanism in AGGREGATED and problem.bag_size == 1:
        return "The lemmas need bags of at least two examples."
    if problem.is_partition:
        return PARTITION
    return uncovered(problem, AGGREGATED)


def _by_lemmas(problem: Featured) -> Answer:
    """Return the bound of Lemma A.2, or of Lemma A.3 for one example."""
    law, others, own = problem.distribution, problem.bag_size - 1, own_variance(problem)
    if isinstance(problem, LabelAdvantage):
        return at_most(problem, advantage_bound(others, _unconditional(law), own), "Lemma A.2")
    least = law.label_variance * (1.0 - law.error)
    bound = own * difference_bound(others, _unconditional(law), least) if own > 0.0 else 0.0
    return at_most(problem, bound, "Lemma A.3")


LabelsFourier = published(
    "labels.fourier",
    get_args(Featured),
    Direction.UPPER,
    r"""The bounds of Lemma A.2, and of Lemma A.3 times $\eta (1 - \eta)$ for one example, as printed.

    The printed proofs have gaps: the tail of the binomial distribution outside the window is larger than
    stated, a factor 2 is lost in the transform, and a minimum is bounded by half of itself. The bounds hold
    nevertheless, as follows. With k other examples and their mean variance $\mu$ the advantages are at most
    $2 \mu M$ and $2 \eta (1 - \eta) M$, where
    $M = e^{-k \mu} I_0(k \mu) \le \min(1, 0.46883 / \sqrt{k \mu})$; see `largest_probability`. As
    $\mu \le p (1 - p)$, $c_k \ge \sqrt{\mu \ln(8k) / 3}$. Write $a_k = (\ln(8k) / 3)^{1/4}$, which grows with
    k, from $a_1 > 0.912$.

    The first term of Lemma A.2 is at least
    $\sqrt{2 (e^{-3/2} + \pi / 4 + \pi / e)} \, a_k \sqrt{\mu / k} > 1.89 \sqrt{\mu / k} > 2 \mu M$.

    The second term of Lemma A.3 is at least $\sqrt{2 \pi} \, 4^{-3/4} a_k / \sqrt{k \mu}$, so at least
    $b_k = 0.886 \, a_k / \sqrt{k \mu}$. If $k \mu \le 0.16$ this is above $2 \ge 2 M$. Otherwise $2 M - b_k$
    is at most $2.5 \, (0.93766 - 0.886 \, a_k)_+$, that is 0.33, 0.18, 0.10, 0.05 and 0.02 for
    $k = 1, \dots, 5$, less than the first term $1 / k$, and 0 for larger k.""",
    _by_lemmas,
    reference=f"{BUSA_FEKETE}, Lemmas A.2 and A.3, explicit forms of Theorems 3.3 and 3.4",
    unless=_outside_lemmas,
    cost=closed_form,
)


def _unconditional(law: Prior) -> float:
    """Return p (1 - p), rounded up."""
    p, error = law.mean, law.error
    return min(0.25, p * (1.0 + error) * (1.0 - p * (1.0 - error)))


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
