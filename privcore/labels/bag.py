"""Exact posteriors, ratios, advantages and probabilities of releases, for one bag with known etas."""

import math
from dataclasses import replace
from typing import get_args

import numpy as np
from scipy.special import expit

from privcore.answer import Answer
from privcore.distributions.prior_finite import FinitePrior
from privcore.labels.bag_problems import (
    BagAdvantage,
    BagPosterior,
    MemberAdvantage,
    ReleaseOfMember,
    ReleaseProbability,
    ReleaseRatio,
)
from privcore.labels.bounds.response import outputs, response_advantage
from privcore.labels.sums import noisy_sums
from privcore.labels.sums.poisson_binomial import FLOOR, LOSS, leave_one_out, pmf, relative_error
from privcore.labels.sums.rows import advantage, likelihoods
from privcore.method import Cost, Direction, Method
from privcore.papers import BUSA_FEKETE

Answered = BagPosterior | BagAdvantage | ReleaseRatio
AboutMember = MemberAdvantage | ReleaseProbability

_FEW = 2.0**-49
"""Relative error of a few products and sums."""
_UNDERFLOW = 2.0**-1070
"""Multiple of the smallest double: products that are not normal have an absolute error of half of it."""


class LabelsBag(Method[Answered]):
    r"""Exact likelihoods from the distributions of the sum of all labels except one, by a tree of products.

    The posterior is $\sigma(\mathrm{logit}\, \eta + \ln g_1(z) - \ln g_0(z))$, and the multiplicative
    advantage of a release is $|\ln g_1(z) - \ln g_0(z)|$, for every eta of the member. The advantage of a
    member is the overturned mass $\sum_z (\eta g_1 - (1 - \eta) g_0)_+$, or its mirror image if $\eta > 1/2$.
    """

    name = "labels.bag"
    version = 3
    problems = get_args(Answered)
    direction = Direction.ENCLOSURE
    reference = f"{BUSA_FEKETE}, Lemma A.1 and Definition 3.6"
    shares = ("bag",)

    def applies(self, problem: Answered) -> str | None:
        return (problem.contradiction() or None) if isinstance(problem, ReleaseOfMember) else None

    def cost(self, problem: Answered) -> Cost:
        k = problem.etas.size
        tree = 3e-9 * k * k * math.log2(k + 1.0)
        return Cost(seconds=0.01 + tree + 1.5e-7 * k * k + 3e-5 * k, bytes=1e6 + 100.0 * k * k)

    def answer(self, problem: Answered, seed: int) -> Answer:
        match problem:
            case BagPosterior():
                ends = _posterior(problem)
            case ReleaseRatio():
                ends = _ratio(problem)
            case _:
                ends = _advantage(problem)
        detail = f"member {problem.member}" if isinstance(problem, ReleaseOfMember) else "mean over the bag"
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


def _ratio(problem: ReleaseRatio) -> tuple[float, float]:
    """Return lower and upper bounds of the absolute log-likelihood ratio of a possible release."""
    epsilon = problem.label_epsilon
    if problem.mechanism in ("none", "rr"):
        exact = 0.0 if problem.mechanism == "none" else epsilon
        return exact, exact
    words = problem.bag.split(",")
    words[problem.member - 1] = "0.5"  # any eta of the member gives the same ratio
    fair = replace(problem, bag=",".join(words))
    if _certain(fair, 0.5) is not None:
        return math.inf, math.inf
    shift, (one, zero, error) = 0.0, member_likelihoods(fair)
    if problem.mechanism == "llp" and min(one, zero) < FLOOR:
        odds, (one, zero, error) = tilted(fair)
        shift = math.log(odds[0]) - math.log(odds[1])
    elif min(one, zero) < FLOOR:
        return 0.0, epsilon
    ratio = abs(shift + math.log(one) - math.log(zero))
    slack = 4.0 * error + (ratio + 4000.0) * 2.0**-50
    return min(ratio - slack, epsilon), min(ratio + slack, epsilon)


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


def tilted(problem: ReleaseOfMember) -> tuple[tuple[float, float], tuple[float, float, float]]:
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


def _certain(problem: ReleaseOfMember, eta: float) -> float | None:
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


def member_likelihoods(problem: ReleaseOfMember) -> tuple[float, float, float]:
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
        one_at, zero_at = noisy_sums.density_at(law, epsilon, z)
        k = problem.bag_size
        return one_at, zero_at, 2.0 * relative_error(k) + noisy_sums.density_error(k, epsilon)
    ones, zeros, error = likelihoods(law[None, :], epsilon)
    place = int(z)
    return float(ones[0, place]), float(zeros[0, place]), error


class LabelsMember(Method[AboutMember]):
    r"""Exact likelihoods from the distribution of the sum of all labels except that of the member.

    The advantage is the overturned mass $\sum_z (\eta g_1 - (1 - \eta) g_0)_+$ of the member, or its mirror
    image if $\eta > 1/2$; the mean over the members is that of `labels.bag`. A release has the probability
    $\eta g_1(z) + (1 - \eta) g_0(z)$, the same for each member.
    """

    name = "labels.member"
    problems = get_args(AboutMember)
    direction = Direction.ENCLOSURE
    reference = f"{BUSA_FEKETE}, Lemma A.1"
    version = 2
    shares = ("bag",)

    def cost(self, problem: AboutMember) -> Cost:
        k = problem.bag_size
        return Cost(seconds=0.01 + 2e-7 * k * k, bytes=1e6 + 100.0 * k * k)

    def answer(self, problem: AboutMember, seed: int) -> Answer:
        if isinstance(problem, MemberAdvantage):
            ends, detail = _advantage_on_member(problem), f"member {problem.member}"
        else:
            ends, detail = _probability(problem), f"value {problem.released:g}"
        lower, upper = max(0.0, ends[0]), min(problem.largest, ends[1])
        return Answer.enclosure(lower, upper, detail=f"{detail}, bag of {problem.bag_size}")


def _advantage_on_member(problem: MemberAdvantage) -> tuple[float, float]:
    """Return lower and upper bounds of the advantage on the member."""
    etas, j = problem.etas, problem.member - 1
    prior = FinitePrior.point(float(etas[j]))
    if problem.mechanism == "none" or etas[j] in (0.0, 1.0):
        return 0.0, 0.0
    if problem.mechanism == "rr":
        return response_advantage(prior, problem.label_epsilon)
    others = leave_one_out(etas)[j : j + 1]
    low, high = advantage(others, problem.mechanism, problem.label_epsilon, prior)
    return float(low[0]), float(high[0])


def _probability(problem: ReleaseProbability) -> tuple[float, float]:
    """Return lower and upper bounds of the probability of the released value."""
    etas, z = problem.etas, int(problem.released)
    eta = float(etas[0])
    if problem.mechanism == "rr":
        one, zero = outputs(problem.label_epsilon)
        return _around(eta * float(one[1 - z]) + (1.0 - eta) * float(zero[1 - z]), _FEW)
    if problem.mechanism == "llp":
        if not int((etas == 1.0).sum()) <= z <= int((etas > 0.0).sum()):
            return 0.0, 0.0  # some labels are certain
        return _around(float(pmf(etas)[z]), relative_error(etas.size))
    ones, zeros, error = likelihoods(leave_one_out(etas)[:1], problem.label_epsilon)
    return _around(eta * float(ones[0, z]) + (1.0 - eta) * float(zeros[0, z]), error + _FEW)


def _around(value: float, error: float) -> tuple[float, float]:
    """Return bounds of a value with a relative error, above the floor of the tree of products."""
    return value * (1.0 - error) * (1.0 - _FEW) - FLOOR, value * (1.0 + error) * (1.0 + _FEW) + FLOOR
