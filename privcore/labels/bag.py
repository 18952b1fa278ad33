"""Exact posterior of a member and exact mean advantage, for one bag with known etas."""

import math
from dataclasses import dataclass
from typing import get_args

import numpy as np
from scipy.special import expit

from privcore.answer import Answer
from privcore.distributions.prior_finite import FinitePrior
from privcore.labels import laplace
from privcore.labels.bag_problems import BagAdvantage, BagPosterior
from privcore.labels.poisson_binomial import FLOOR, LOSS, leave_one_out, relative_error
from privcore.labels.response import outputs, response_advantage
from privcore.labels.rows import advantage, likelihoods
from privcore.method import Cost, Direction, Method
from privcore.papers import BUSA_FEKETE

Answered = BagPosterior | BagAdvantage

_UNDERFLOW = 2.0**-1070
"""Multiple of the smallest double: products that are not normal have an absolute error of half of it."""


@dataclass(frozen=True, kw_only=True)
class LabelsBag(Method[Answered]):
    r"""Exact likelihoods from the distributions of the sum of all labels except one, by a tree of products.

    The posterior is $\sigma(\mathrm{logit}\, \eta + \ln g_1(z) - \ln g_0(z))$, and the advantage of a member
    is the overturned mass $\sum_z (\eta g_1 - (1 - \eta) g_0)_+$, or its mirror image if $\eta > 1/2$.
    """

    name = "labels.bag"
    version = 3
    problems = get_args(Answered)
    direction = Direction.ENCLOSURE
    reference = f"{BUSA_FEKETE}, Lemma A.1"
    shares = ("bag",)

    def applies(self, problem: Answered) -> str | None:
        return (problem.contradiction() or None) if isinstance(problem, BagPosterior) else None

    def cost(self, problem: Answered) -> Cost:
        k = problem.etas.size
        tree = 3e-9 * k * k * math.log2(k + 1.0)
        return Cost(seconds=0.01 + tree + 1.5e-7 * k * k + 3e-5 * k, bytes=1e6 + 100.0 * k * k)

    def answer(self, problem: Answered, seed: int) -> Answer:
        ends = _posterior(problem) if isinstance(problem, BagPosterior) else _advantage(problem)
        detail = f"member {problem.member}" if isinstance(problem, BagPosterior) else "mean over the bag"
        lower, upper = max(0.0, ends[0]), min(problem.largest, ends[1])
        return Answer.enclosure(lower, upper, detail=f"{detail}, bag of {problem.etas.size}")


def _advantage(problem: BagAdvantage) -> tuple[float, float]:
    """Return lower and upper bounds of the mean advantage."""
    if problem.mechanism == "none":
        return 0.0, 0.0
    if problem.mechanism == "rr":
        return response_advantage(FinitePrior.point(float(problem.etas[0])), problem.label_epsilon)
    laws = leave_one_out(problem.etas)
    ends = [
        advantage(laws[j : j + 1], problem.mechanism, problem.label_epsilon, FinitePrior.point(float(eta)))
        for j, eta in enumerate(problem.etas)
    ]
    k = problem.etas.size
    error = (k + 4.0) * 2.0**-52
    return (
        math.fsum(float(low[0]) for low, _ in ends) / k * (1.0 - error),
        math.fsum(float(high[0]) for _, high in ends) / k * (1.0 + error),
    )


def _posterior(problem: BagPosterior) -> tuple[float, float]:
    """Return lower and upper bounds of the posterior of a possible release."""
    eta = float(problem.etas[problem.member - 1])
    if (certain := _certain(problem, eta)) is not None:
        return certain, certain
    odds, (one, zero, error) = (eta, 1.0 - eta), member_likelihoods(problem)
    if problem.mechanism == "llp" and min(one, zero) < FLOOR:  # too small for a relative error
        odds, (one, zero, error) = tilted(problem)
    elif max(one, zero) < FLOOR:
        return _ends_by_privacy(eta, problem.label_epsilon)
    error += 2.0**-50
    largest = max(one, zero)  # as a unit, so that products with rare labels do not underflow
    yes, more_yes = _ends_of_product(odds[0], one / largest, error, LOSS / largest)
    no, more_no = _ends_of_product(odds[1], zero / largest, error, LOSS / largest)
    lower = yes / (yes + more_no) * (1.0 - 2.0**-51)
    upper = more_yes / (more_yes + no) * (1.0 + 2.0**-51) + FLOOR
    return lower if lower > FLOOR else 0.0, min(1.0, upper)


def tilted(problem: BagPosterior) -> tuple[tuple[float, float], tuple[float, float, float]]:
    r"""Return the probabilities of both labels, and the likelihoods of a sum, for labels of other odds.

    Given the sum of a bag, the probabilities of its labels stay the same if the odds of all labels are
    multiplied by one factor. With the factor at which z is the expected sum, z is the most probable sum
    (Darroch 1964), so its probability is at least $1 / (k + 1)$ and underflows no longer.

    Args:
        problem: An exact sum strictly between the least and the largest possible one, about a member whose
            label is not certain.

    Returns:
        Probabilities of label 1 and 0 of the member, and both likelihoods of the sum with a relative error.

    Example:
        >>> bag = BagPosterior(mechanism="llp", bag=",".join(["0.01"] * 200), released=199.0)
        >>> (p, q), (one, zero, _) = tilted(bag)
        >>> round(p * one / (p * one + q * zero), 12)
        0.995
    """
    etas, z = problem.etas, int(problem.released) - int((problem.etas == 1.0).sum())
    open_ = (etas > 0.0) & (etas < 1.0)
    logs = np.log(etas[open_]) - np.log1p(-etas[open_])
    low, high = -logs.max() - 60.0, -logs.min() + 60.0
    for _ in range(80):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if expit(logs + middle).sum() < z else (low, middle)
    ones, zeros = expit(logs + low), expit(-logs - low)
    member = int(open_[: problem.member - 1].sum())
    law = np.zeros(logs.size)
    law[0] = 1.0
    with np.errstate(under="ignore"):
        for j in range(logs.size):
            if j != member:
                law[1:] = law[1:] * zeros[j] + law[:-1] * ones[j]
                law[0] *= zeros[j]
    # The error of a logarithm of odds is at most 4 roundings of its terms, below 1500 in all.
    error = relative_error(logs.size) + logs.size * 6000.0 * 2.0**-52
    return (float(ones[member]), float(zeros[member])), (float(law[z - 1]), float(law[z]), error)


def _ends_of_product(weight: float, mass: float, error: float, loss: float) -> tuple[float, float]:
    """Return bounds of a product with a mass that has a relative and an absolute error."""
    low, high = weight * max(0.0, mass * (1.0 - error) - loss), weight * (mass * (1.0 + error) + loss)
    return max(0.0, low - _UNDERFLOW), high + _UNDERFLOW


def _certain(problem: BagPosterior, eta: float) -> float | None:
    """Return the posterior if no likelihood is needed, or None.

    The largest possible sum means that every label that can be 1 is 1, and the smallest that every label that
    can be 0 is 0.
    """
    least, most = problem.possible
    if problem.mechanism != "llp":
        return eta if eta in (0.0, 1.0) else None
    if eta in (0.0, 1.0):
        return eta
    return {least: 0.0, most: 1.0}.get(int(problem.released))


def _ends_by_privacy(eta: float, epsilon: float) -> tuple[float, float]:
    """Return bounds of the posterior: label differential privacy changes the odds by e^epsilon at most."""
    ratio = math.exp(-epsilon)
    if ratio < FLOOR:  # also for no noise
        return 0.0, 1.0
    lower, upper = eta * ratio / (eta * ratio + 1.0 - eta), eta / (eta + (1.0 - eta) * ratio)
    return lower * (1.0 - 2.0**-48) if lower > FLOOR else 0.0, min(1.0, upper * (1.0 + 2.0**-48))


def member_likelihoods(problem: BagPosterior) -> tuple[float, float, float]:
    """Return the likelihoods of the released value for label 1 and label 0, up to a common factor.

    Returns:
        Both likelihoods and their relative error. Both are 0 if they underflow.
    """
    j, z, epsilon = problem.member - 1, problem.released, problem.label_epsilon
    if problem.mechanism == "none":
        return 1.0, 1.0, 0.0
    if problem.mechanism == "rr":
        one, zero = outputs(epsilon)
        place = 0 if z == 1.0 else 1
        return float(one[place]), float(zero[place]), 2.0**-50
    law = leave_one_out(problem.etas)[j]
    if problem.mechanism == "llp-laplace":
        one_at, zero_at = laplace.density_at(law, epsilon, z)
        k = problem.bag_size
        return one_at, zero_at, 2.0 * relative_error(k) + laplace.density_error(k, epsilon)
    ones, zeros, error = likelihoods(law[None, :], epsilon)
    place = int(z)
    return float(ones[0, place]), float(zeros[0, place]), error


def log_ratio(problem: BagPosterior) -> float:
    r"""Return the multiplicative advantage $\ln g_1(z) - \ln g_0(z)$ in nats, without bounds of its error.

    Infinite if the release is impossible under one label, NaN if it is impossible under both.

    Example:
        >>> log_ratio(BagPosterior(mechanism="rr", bag="0.3", label_epsilon=1.0, released=1.0))
        1.0
    """
    one, zero, _ = member_likelihoods(problem)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = float(np.log(one) - np.log(zero))
    return min(max(ratio, -problem.label_epsilon), problem.label_epsilon)
