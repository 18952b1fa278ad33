"""Published bounds for bags of examples with features, by the Fourier transform of a sum of labels."""

import math
from dataclasses import dataclass
from typing import get_args

from privcore.answer import Answer
from privcore.distributions.prior import Prior
from privcore.labels.problems import Featured, LabelAdvantage
from privcore.labels.tails import AGGREGATED, PARTITION, at_most, closed_form, own_variance, uncovered
from privcore.method import Cost, Direction, Method
from privcore.papers import BUSA_FEKETE

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


@dataclass(frozen=True, kw_only=True)
class LabelsFourier(Method[Featured]):
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
    $k = 1, \dots, 5$, less than the first term $1 / k$, and 0 for larger k.
    """

    name = "labels.fourier"
    problems = get_args(Featured)
    direction = Direction.UPPER
    reference = f"{BUSA_FEKETE}, Lemmas A.2 and A.3, explicit forms of Theorems 3.3 and 3.4"

    def applies(self, problem: Featured) -> str | None:
        if problem.mechanism in AGGREGATED and problem.bag_size == 1:
            return "The lemmas need bags of at least two examples."
        if problem.is_partition:
            return PARTITION
        return uncovered(problem, AGGREGATED)

    def cost(self, problem: Featured) -> Cost:
        return closed_form(problem)

    def answer(self, problem: Featured, seed: int) -> Answer:
        law, others, own = problem.distribution, problem.bag_size - 1, own_variance(problem)
        if isinstance(problem, LabelAdvantage):
            return at_most(problem, advantage_bound(others, _unconditional(law), own), "Lemma A.2")
        least = law.label_variance * (1.0 - law.error)
        bound = own * difference_bound(others, _unconditional(law), least) if own > 0.0 else 0.0
        return at_most(problem, bound, "Lemma A.3")


def _unconditional(law: Prior) -> float:
    """Return p (1 - p), rounded up."""
    p, error = law.mean, law.error
    return min(0.25, p * (1.0 + error) * (1.0 - p * (1.0 - error)))
