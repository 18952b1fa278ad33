"""Bounds of random allocation by Poisson sampling whose probability is that of a truncated posterior."""

import math
from collections.abc import Callable, Sequence
from functools import partial

from privcore.allocation.poisson_certified import poisson
from privcore.allocation.problems import Allocation, AllocationDelta, AllocationEpsilon
from privcore.answer import Answer
from privcore.likelihood_ratio import profile
from privcore.likelihood_ratio.distribution import LikelihoodRangeError, Resolution
from privcore.likelihood_ratio.questions import (
    SHARE,
    SMALLEST_DELTA,
    Question,
    cost,
    enclose,
    first_fineness,
    powering,
    tier,
)
from privcore.method import Cost
from privcore.numerics.gaussian import gaussian_delta_bounds, gaussian_epsilon_bounds
from privcore.numerics.rounding import TRUNCATED_RATE

Rate = Callable[[str, float], float | None]
"""Sampling probability that suffices in a direction for a budget; None if the theorem gives no bound."""


SHARES = (1e-3, 3e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 0.95, 0.98, 0.99, 0.995, 0.999)
"""Fractions of delta for the correction; any fraction is valid, the best is chosen."""

_COARSE = 0.3
"""Tolerance of the probes that precede a bound of delta."""

_STRIDES = (6.9, 2.3, 1.15, 0.6)
"""Strides of the search for the logarithm of the correction to delta."""

_MOST_PROBES = 20
"""Approximate largest number of probes of a search, for the cost."""

_DELTA_FACTOR = 5.0
"""Factor by which the tolerance of a delta is wider; delta varies many times more than epsilon."""


def block(problem: Allocation) -> tuple[int, int]:
    """Return the steps floor(t / k) of a block and the number k E of composed blocks (Lemma 3.2)."""
    return problem.steps // problem.participations, problem.participations * problem.epochs


def bounded(
    problem: Allocation,
    rate: Rate,
    tolerance: float,
    shares: Sequence[float] = SHARES,
    largest: float = math.inf,
) -> Answer:
    r"""Return the upper bound by truncated Poisson sampling, or the bound without amplification.

    In each step, 1-of-f allocation samples the example with the posterior probability that this step uses it,
    given the earlier outputs. If that probability is at most $\eta$ except in an event of probability
    $\beta$, then in each direction
    $$\delta_{A}(\varepsilon) \le \delta_{P_{f k E, \eta}}(\varepsilon) + k E \beta.$$

    Args:
        problem: The question.
        rate: Smallest known $\eta$ whose correction $k E \beta$ in a direction is within a budget.
        tolerance: Relative width of the bracket of Poisson sampling.
        shares: Fractions of delta, in (0, 1), that are tried for the correction; for epsilon.
        largest: Largest epsilon for which the theorem holds.

    Returns:
        Upper bound; the largest over the directions of the adjacency.

    Reference:
        Feldman and Shenfeld (2025), arXiv:2502.08202v3, Lemma 4.3, with Lemma 3.2 for several participations.
    """
    known = unamplified(problem)
    found = []
    for direction in profile.DIRECTIONS[problem.adjacency]:
        part = partial(rate, direction)
        if isinstance(problem, AllocationEpsilon):
            upper, detail = _epsilon(problem, direction, part, tolerance, shares)
            holds = upper <= largest
        else:
            holds = problem.epsilon <= largest
            upper, detail = 1.0, ""
            if holds:
                upper, detail = _delta(problem, direction, part, tolerance, known)
        if not holds or not detail:
            upper, detail = known, "no amplification, since the theorem gives no bound"
        elif upper >= known:
            upper, detail = known, "no amplification, since the theorem gives no smaller bound"
        found.append((upper, f"{direction}: {detail}"))
    return Answer.at_most(max(found)[0], detail="; ".join(detail for _, detail in found))


def unamplified(problem: Allocation) -> float:
    """Return the upper bound for public choices of the steps."""
    sigma = problem.sigma / math.sqrt(problem.participations * problem.epochs)
    if isinstance(problem, AllocationEpsilon):
        return gaussian_epsilon_bounds(sigma, problem.delta)[1]
    return gaussian_delta_bounds(sigma, problem.epsilon)[1]


def cost_of(problem: Allocation, tolerance: float) -> Cost:
    """Return a conservative estimate of the cost of `bounded`.

    Args:
        problem: The question.
        tolerance: Relative width of the bracket of Poisson sampling.
    """
    steps, copies = block(problem)
    directions = len(profile.DIRECTIONS[problem.adjacency])
    at = problem.delta if isinstance(problem, AllocationEpsilon) else problem.epsilon
    question = Question(asks=problem.asks, at=at, adjacency=problem.adjacency)
    s, combinations = 1.0 / problem.sigma, powering(steps * copies)
    if isinstance(problem, AllocationEpsilon):
        once, probing = cost(question, s, tolerance, combinations), 0.0
    else:  # a probe computes one distribution; a bound computes about six
        once = cost(question, s, min(1.0, _DELTA_FACTOR * tolerance), combinations)
        probing = _MOST_PROBES / 6.0 * cost(question, s, _COARSE, combinations).seconds
    return Cost(seconds=0.05 + directions * (once.seconds + probing), bytes=once.bytes)


def _sampled(
    problem: Allocation, asks: str, at: float, direction: str, rate: float, tolerance: float
) -> tuple[float, str]:
    """Return the upper bound of Poisson sampling, and its derivation in words."""
    steps, copies = block(problem)

    _, upper, detail = enclose(
        partial(poisson, 1.0 / problem.sigma, rate, steps * copies),
        Question(asks=asks, at=at, adjacency=direction),
        tolerance,
        copies=steps * copies,
        outer=(0.0, problem.largest),
        combinations=powering(steps * copies),
    )
    return upper, f"Poisson sampling with probability {rate:.4g}, {detail}"


def _epsilon(
    problem: AllocationEpsilon,
    direction: str,
    rate: Callable[[float], float | None],
    tolerance: float,
    shares: Sequence[float],
) -> tuple[float, str]:
    """Return the bound of epsilon with the best split of delta, or infinity and no detail."""
    best: tuple[float, float, float] | None = None
    for share in shares:
        eta = rate(share * problem.delta)
        if eta is None:
            continue
        left = problem.delta * (1.0 - share)
        # The central limit theorem selects the share.
        guess = gaussian_epsilon_bounds(1.0 / _spread(problem, eta), left)[1]
        if best is None or guess < best[0]:
            best = guess, eta, left * (1.0 - TRUNCATED_RATE)
    if best is None:
        return math.inf, ""
    return _sampled(problem, "epsilon", best[2], direction, best[1], tolerance)


def _delta(
    problem: AllocationDelta,
    direction: str,
    rate: Callable[[float], float | None],
    tolerance: float,
    known: float,
) -> tuple[float, str]:
    """Return the bound of delta with the best correction, or 1 and no detail.

    The correction is found by a search with shrinking strides, starting from the largest useful correction;
    every correction is valid.
    """
    tried: dict[float, tuple[float, float]] = {}

    def probe(log_budget: float) -> float:
        if log_budget not in tried:
            budget = math.exp(min(log_budget, 0.0))
            eta = rate(budget) if SMALLEST_DELTA < budget < known else None
            total = math.inf if eta is None else _probed_delta(problem, direction, eta, budget) + budget
            tried[log_budget] = total, 0.0 if eta is None else eta
        return tried[log_budget][0]

    at = math.log(max(0.3 * known, SMALLEST_DELTA))
    for stride in _STRIDES:
        for step in (-stride, stride):
            while probe(at + step) < probe(at):
                at += step
    if probe(at) == math.inf:
        return 1.0, ""
    budget, eta = math.exp(at), tried[at][1]
    wide = min(1.0, _DELTA_FACTOR * tolerance)
    upper, detail = _sampled(problem, "delta", problem.epsilon, direction, eta, wide)
    return min(1.0, (upper + budget) * (1.0 + TRUNCATED_RATE)), f"{detail}, correction {budget:.1e}"


def _probed_delta(problem: AllocationDelta, direction: str, rate: float, size: float) -> float:
    """Return an upper bound of the delta of Poisson sampling, from a distribution that resolves its size."""
    steps, copies = block(problem)
    count = steps * copies
    fineness = first_fineness("delta", _COARSE, powering(count))
    tail = tier(SHARE * size) * tier(1.0 / count)
    try:
        law = poisson(1.0 / problem.sigma, rate, count, Resolution(fineness=fineness, tail=tail)).upper
    except LikelihoodRangeError:
        return 1.0
    return Question(asks="delta", at=problem.epsilon, adjacency=direction).upper(law)


def _spread(problem: Allocation, rate: float) -> float:
    """Return the standard deviation of the sum of the sampled ratios, for the central limit theorem."""
    steps, copies = block(problem)
    variance = math.expm1(min(problem.sigma**-2.0, 50.0))
    return rate * math.sqrt(steps * copies * variance)
