"""Common parts of the explicit bounds on label inference: rounding, applicability, variation distances."""

import math
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np
import scipy

from privcore.answer import Answer
from privcore.distributions.prior import Prior
from privcore.labels.bag_problems import Advantage, BagAdvantage
from privcore.labels.problems import Featured, LabelAdvantageAt, LabelProblem
from privcore.labels.sums.poisson_binomial import Array
from privcore.method import Cost
from privcore.numerics.bounded_mean import least_mean
from privcore.numerics.rounding import FEW_FUNCTIONS, LABEL_BOUND
from privcore.numerics.sums import dot
from privcore.parameter import SMALLEST_NORMAL
from privcore.problem import Problem

AGGREGATED = ("llp", "llp-laplace", "llp-geometric")
PRIVATE = ("rr", "llp-laplace", "llp-geometric")

PARTITION = "The members of a bag must be independent; the rows of a bag of a partition are not."
"""Reason why a method does not apply to the bags of a partition."""


def at_most(problem: Problem, bound: float, detail: str) -> Answer:
    """Return a bound as an answer, rounded up; the largest possible value of the problem, if that is less."""
    upper = bound * (1.0 + LABEL_BOUND) + SMALLEST_NORMAL
    if upper > problem.largest:
        return Answer.at_most(
            problem.largest, detail=f"{detail}, above the trivial bound {problem.largest:g}"
        )
    return Answer.at_most(upper, detail=detail)


def several(tail: tuple[float, float], bags: int, *, independent: bool = True) -> tuple[float, float]:
    r"""Return bounds of the probability that the mean of several advantages exceeds a threshold.

    The mean exceeds it if all do, and only if one does: $p^n \le P \le 1 - (1 - p)^n$ if they are
    independent, and $1 - n (1 - p) \le P \le n p$ otherwise.

    Args:
        tail: Bounds of the probability p that one advantage exceeds the threshold.
        bags: Number n of advantages, >= 1.
        independent: Whether the advantages are independent, as those of the bags of a partition are not.

    Returns:
        Bounds in [0, 1], rounded outwards; those of p for n = 1, and exact if p is 0 or 1.

    Example:
        >>> several((0.5, 0.5), 1), several((0.0, 0.0), 9), several((1.0, 1.0), 9)
        ((0.5, 0.5), (0.0, 0.0), (1.0, 1.0))
        >>> [round(end, 6) for end in several((0.2, 0.3), 2)]
        [0.04, 0.51]
    """
    low, high = max(0.0, tail[0]), min(1.0, tail[1])
    if bags == 1:
        return low, high
    if not independent:
        union = (1.0 - bags * (1.0 - low)) * (1.0 - FEW_FUNCTIONS) - FEW_FUNCTIONS * bags
        return (1.0 if low == 1.0 else max(0.0, union)), min(1.0, bags * high * (1.0 + FEW_FUNCTIONS))
    all_exceed = 1.0 if low == 1.0 else max(0.0, low**bags * (1.0 - FEW_FUNCTIONS) - SMALLEST_NORMAL)
    if high in (0.0, 1.0):
        return all_exceed, high
    one_exceeds = -math.expm1(bags * math.log1p(-high)) * (1.0 + FEW_FUNCTIONS) + SMALLEST_NORMAL
    return all_exceed, min(1.0, one_exceeds)


def closed_form(problem: LabelProblem | BagAdvantage) -> Cost:
    """Return the cost of a formula with a few moments of the prior, or with one term for each member."""
    if isinstance(problem, BagAdvantage):
        return Cost(seconds=2e-3 + 1e-6 * problem.etas.size, bytes=1e5 + 200.0 * problem.etas.size)
    atoms = problem.distribution.atoms
    size = 0 if atoms is None else atoms[0].size
    return Cost(seconds=0.02 + 5e-8 * size, bytes=1e6 + 50.0 * size)


def is_constant(law: Prior) -> bool:
    """Return whether eta is constant, so that the labels are independent of the features."""
    return law.atoms is not None and law.atoms[0].size == 1


def without_features(problem: Problem) -> TypeGuard[Featured]:
    """Return whether all labels of a bag, including the attacked one, are independent of the features."""
    if not isinstance(problem, Featured) or not is_constant(problem.distribution):
        return False
    return not isinstance(problem, LabelAdvantageAt) or problem.eta == problem.distribution.mean


def uncovered(problem: LabelProblem | BagAdvantage, mechanisms: tuple[str, ...]) -> str | None:
    """Return the reason why a bound does not apply to the mechanism, or None if it applies."""
    if problem.mechanism in mechanisms:
        return None
    if problem.mechanism == "none":
        return "The mechanism releases nothing, so no bound is needed."
    if mechanisms == PRIVATE:
        return "The bound needs label differential privacy, which the exact sum of labels does not have."
    return "The bound is for sums of labels in bags; labels.response is exact for randomized response."


def own_variance(problem: Advantage) -> float:
    r"""Return the mean of $\eta (1 - \eta)$ over the attacked examples, rounded up."""
    if isinstance(problem, LabelAdvantageAt):
        return problem.eta * (1.0 - problem.eta)
    if isinstance(problem, BagAdvantage):
        return float(np.mean(problem.etas * (1.0 - problem.etas)))
    return min(0.25, problem.distribution.label_variance * (1.0 + problem.distribution.error))


def noise_variation(mechanism: str, epsilon: float) -> float:
    r"""Return the largest total variation distance between the noisy releases for two labels.

    It is at most $\tanh(\varepsilon / 2)$ for every mechanism with label differential privacy epsilon,
    attained by randomized response, and $1 - e^{-\varepsilon / 2}$ for Laplace noise, whose distribution is
    shifted by one label.

    Args:
        mechanism: One of `rr`, `llp`, `llp-laplace`, `llp-geometric`.
        epsilon: Label differential privacy in nats, > 0; infinity for `llp`.

    Returns:
        Distance in [0, 1], exact up to rounding; 1 for `llp`.

    Example:
        >>> [round(noise_variation(name, 1.0), 4) for name in ("rr", "llp-laplace", "llp")]
        [0.4621, 0.3935, 1.0]
    """
    if mechanism == "llp":
        return 1.0
    return -math.expm1(-0.5 * epsilon) if mechanism == "llp-laplace" else math.tanh(0.5 * epsilon)


def largest_probability(variance: float | Array) -> Array:
    r"""Return a bound for the largest probability of a sum of independent labels with this variance.

    $$\max_s q(s) \le \frac{1}{2 \pi} \int_{-\pi}^{\pi} \prod_l |1 - \eta_l + \eta_l e^{it}| \, dt
      \le \frac{1}{2 \pi} \int_{-\pi}^{\pi} e^{-V (1 - \cos t)} dt = e^{-V} I_0(V), \qquad
      V = \sum_l \eta_l (1 - \eta_l),$$

    since $|1 - \eta + \eta e^{it}|^2 = 1 - 2 \eta (1 - \eta) (1 - \cos t)$ and $1 - x \le e^{-x}$. It is at
    most 1 and at most $0.46882 / \sqrt V$, the bound of Baillon, Cominetti and Vaisman, and asymptotically
    $1 / \sqrt{2 \pi V}$. Independent random $\eta_l$ may be replaced by their mean variance: the mean of
    $\prod_l |\cdot|$ is at most $\prod_l (1 - 2 \mu (1 - \cos t))^{1/2}$ by the concavity of the root, so the
    mean of $\max_s q(s)$ over n of them is at most $e^{-n \mu} I_0(n \mu)$.

    Args:
        variance: V, or its mean $n \mu$ over random members, >= 0.

    Returns:
        Upper bound in (0, 1], exact up to rounding.

    Reference:
        The inversion formula of characteristic functions; J.-B. Baillon, R. Cominetti and J. Vaisman, A sharp
        uniform bound for the distribution of sums of Bernoulli trials (2016), for the constant.

    Example:
        >>> round(float(largest_probability(16.0)), 6), round(float(largest_probability(0.0)), 6)
        (0.100544, 1.0)
    """
    return np.asarray(scipy.special.i0e(variance))


RARE = 1e-13
"""Probability of the bags without the cap."""
_LARGEST_BAG = 10_000
"""Largest bag size for which rounding of the probabilities is negligible in their variances."""
_MOVE = 1e-6
"""Error allowed for a computed variance, relative and absolute."""


@dataclass(frozen=True, kw_only=True)
class Cap:
    r"""Cap on the advantage in bags whose other labels have at least a certain variance.

    Given the features of the others, whose sum has the variance V, the advantage is at most
    $2 \mu \min(T, e^{-V} I_0(V))$ by `labels.variation`. V is a sum of independent variables in [0, 1/4], so
    $P(V \le E V - t) \le \exp(-t^2 / (2 \sum E \mu_l^2))$; Hoeffding's inequality is used instead if it is
    better.

    Attributes:
        variance: Least variance of the other labels for which the cap holds.
        rare: Upper bound of the probability of all other bags.
        advantage: Cap on the advantage in bags with at least this variance.
    """

    variance: float
    rare: float
    advantage: float

    def counts(self, laws: Array) -> Array:
        """Return a mask of the rows, distributions of the sum of the others, with at least this variance."""
        s = np.arange(float(laws.shape[1]))
        away = s - (dot(laws, s) / laws.sum(axis=1))[:, None]  # about the mean, which avoids cancellation
        variance = dot(laws, away * away)
        return np.asarray(variance >= self.variance)


def cap(own: Prior, others: Prior, bag_size: int, mechanism: str, epsilon: float, largest: float) -> Cap:
    """Return the cap for attacked examples and other members of two priors; it never exceeds `largest`.

    Args:
        own: Distribution of eta of the attacked example.
        others: Distribution of eta of the other members.
        bag_size: Number of examples in a bag.
        mechanism: A mechanism with bags.
        epsilon: Label differential privacy of its noise.
        largest: Upper bound of the advantage in every bag.

    Reference:
        A. Maurer (2003), A bound on the deviation probability for sums of non-negative random variables,
        Theorem 2.1.
    """
    n = bag_size - 1
    mean = others.label_variance * (1.0 - others.error)
    squares = others.label_variance_square * (1.0 + others.error)
    deviation = math.sqrt(-2.0 * n * squares * math.log(RARE))
    bounded = 0.25 * n * least_mean(4.0 * mean, n, RARE) if n > 0 else 0.0
    variance = (max(n * mean - deviation, bounded) - _MOVE) / (1.0 + _MOVE)
    if variance <= 0.0 or bag_size > _LARGEST_BAG:
        return Cap(variance=-math.inf, rare=0.0, advantage=largest)
    least = (variance - _MOVE) / (1.0 + _MOVE)
    mode = min(noise_variation(mechanism, epsilon), float(largest_probability(max(0.0, least))))
    advantage = 2.0 * own.label_variance * (1.0 + own.error) * mode * (1.0 + LABEL_BOUND)
    return Cap(variance=variance, rare=RARE, advantage=min(largest, advantage))
