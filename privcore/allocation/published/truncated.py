"""Random allocation from truncated Poisson sampling, with the tail of the posterior by Doob and Chernoff.

The tail is the probability that the posterior of the chosen step exceeds a sampling probability.
"""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Annotated

import numpy as np
import scipy

from privcore import params
from privcore.allocation.poisson import poisson
from privcore.allocation.problems import ALLOCATION, Allocation
from privcore.answer import Answer
from privcore.likelihood_ratio import profile
from privcore.likelihood_ratio.distribution import LikelihoodRangeError, Resolution
from privcore.likelihood_ratio.grid import Array
from privcore.likelihood_ratio.questions import (
    SHARE,
    SMALLEST_DELTA,
    Question,
    cost,
    enclose,
    first_fineness,
    powering,
    question_of,
    tier,
)
from privcore.likelihood_ratio.steps import lognormal_cells
from privcore.method import Cost, Direction, Method
from privcore.numerics.gaussian import gaussian_bounds, gaussian_epsilon_bounds
from privcore.numerics.rounding import EXPONENTIAL_REST, TRUNCATED_RATE
from privcore.papers import FELDMAN_SHENFELD

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
        if problem.asks == "epsilon":
            upper, detail = _epsilon(problem, direction, part, tolerance, shares)
            holds = upper <= largest
        else:
            holds = problem.at <= largest
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
    return gaussian_bounds(problem.asks, sigma, problem.at)[1]


def cost_of(problem: Allocation, tolerance: float) -> Cost:
    """Return a conservative estimate of the cost of `bounded`.

    Args:
        problem: The question.
        tolerance: Relative width of the bracket of Poisson sampling.
    """
    steps, copies = block(problem)
    directions = len(profile.DIRECTIONS[problem.adjacency])
    question = question_of(problem)
    s, combinations = 1.0 / problem.sigma, powering(steps * copies)
    if problem.asks == "epsilon":
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
    problem: Allocation,
    direction: str,
    rate: Callable[[float], float | None],
    tolerance: float,
    shares: Sequence[float],
) -> tuple[float, str]:
    """Return the bound of epsilon with the best split of delta, or infinity and no detail."""
    best: tuple[float, float, float] | None = None
    for share in shares:
        eta = rate(share * problem.at)
        if eta is None:
            continue
        left = problem.at * (1.0 - share)
        # The central limit theorem selects the share.
        guess = gaussian_epsilon_bounds(1.0 / _spread(problem, eta), left)[1]
        if best is None or guess < best[0]:
            best = guess, eta, left * (1.0 - TRUNCATED_RATE)
    if best is None:
        return math.inf, ""
    return _sampled(problem, "epsilon", best[2], direction, best[1], tolerance)


def _delta(
    problem: Allocation,
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
    upper, detail = _sampled(problem, "delta", problem.at, direction, eta, wide)
    return min(1.0, (upper + budget) * (1.0 + TRUNCATED_RATE)), f"{detail}, correction {budget:.1e}"


def _probed_delta(problem: Allocation, direction: str, rate: float, size: float) -> float:
    """Return an upper bound of the delta of Poisson sampling, from a distribution that resolves its size."""
    steps, copies = block(problem)
    count = steps * copies
    fineness = first_fineness("delta", _COARSE, powering(count))
    tail = tier(SHARE * size) * tier(1.0 / count)
    try:
        law = poisson(1.0 / problem.sigma, rate, count, Resolution(fineness=fineness, tail=tail)).upper
    except LikelihoodRangeError:
        return 1.0
    return Question(asks="delta", at=problem.at, adjacency=direction).upper(law)


def _spread(problem: Allocation, rate: float) -> float:
    """Return the standard deviation of the sum of the sampled ratios, for the central limit theorem."""
    steps, copies = block(problem)
    variance = math.expm1(min(problem.sigma**-2.0, 50.0))
    return rate * math.sqrt(steps * copies * variance)


LARGEST_S = 20.0
"""Largest inverse noise multiplier for which tilts are tried; beyond, even means of e^400 ratios vary."""

_END = 37.0
_CELLS_PER_DEVIATION = 64
_TILTS_PER_OCTAVE = 8


class AllocationTruncated(Method[Allocation]):
    r"""Bound k-of-t allocation by Poisson sampling with a probability that the posterior rarely exceeds.

    With $X_j$ the likelihood ratios of the steps under Q, the posterior exceeds $\eta$ when some partial sum
    of the martingale $\sum_j (1 - X_j)$ exceeds $f - 1/\eta$. By Doob's inequality, for every $\theta > 0$,
    $$\beta_{add} \le e^{-\theta (f - 1/\eta)} \, E[e^{\theta (1 - X)}]^{f - 1}, \quad
      \beta_{remove} \le \beta_{add} / (f \eta).$$
    """

    name = "allocation.truncated"
    problems = ALLOCATION
    direction = Direction.UPPER
    reference = f"{FELDMAN_SHENFELD}, Lemma 4.3 and Lemma 3.2; tail: Doob, Chernoff"
    version = 2
    shares = ("sigma", "steps")

    tolerance: Annotated[float, params.TOLERANCE] = 0.01

    def cost(self, problem: Allocation) -> Cost:
        return cost_of(problem, self.tolerance)

    def answer(self, problem: Allocation, seed: int) -> Answer:
        steps, copies = block(problem)

        def rate(direction: str, budget: float) -> float | None:
            return posterior_bound(1.0 / problem.sigma, steps, budget / copies, direction)

        return bounded(problem, rate, self.tolerance)


def posterior_bound(s: float, steps: int, beta: float, direction: str) -> float | None:
    """Return a probability that the posterior of 1-of-`steps` exceeds with probability at most beta.

    Args:
        s: Inverse noise multiplier.
        steps: Number of steps f, >= 1.
        beta: Probability in (0, 1).
        direction: `add` for outputs without the example, `remove` for outputs with it.

    Returns:
        Smallest probability found, rounded up, in [1 / f, 1); None if no probability below 1 is found.

    Example:
        >>> round(1000.0 * posterior_bound(0.5, 1000, 1e-10, "add"), 3)
        1.12
    """
    found = [_posterior_bound(s, steps, beta)]
    if found[0] is None or direction == "add":
        return found[0]
    # If eta >= eta_1 and beta_add(eta) <= beta f eta_1, beta_remove(eta) <= beta_add(eta) / (f eta) <= beta.
    for _ in range(2):
        last = found[-1]
        if last is None:
            return None
        found.append(
            _posterior_bound(s, steps, min(0.5, beta * max(1.0, steps * last * (1.0 - TRUNCATED_RATE))))
        )
    return max(eta for eta in found[1:] if eta is not None) if None not in found else None


@lru_cache(maxsize=4096)
def _posterior_bound(s: float, steps: int, beta: float) -> float | None:
    """Return the probability for direction add: 1 / (f - a), a the excess that Chernoff allows."""
    if s > LARGEST_S or steps == 1 or beta < 1e-290:
        return None

    def excess(tilt: int) -> float:
        theta = math.exp2(tilt / _TILTS_PER_OCTAVE)
        return ((steps - 1) * math.log1p(tilted(s, theta)) - math.log(beta)) / theta

    # theta ~ sqrt(2 ln(1/beta) / f) / s in the central limit; the excess is quasi-convex in theta
    start = math.log2(math.sqrt(-2.0 * math.log(beta) / steps) / math.sqrt(math.expm1(min(s * s, 1.0))))
    tilt = round(_TILTS_PER_OCTAVE * start)
    best = excess(tilt)
    for way in (1, -1):
        while (new := excess(tilt + way)) < best:
            tilt, best = tilt + way, new
    best *= 1.0 + TRUNCATED_RATE
    if not best < steps - 1.0:
        return None
    return min(1.0, (1.0 + TRUNCATED_RATE) / (steps - best))


@lru_cache(maxsize=4096)
def tilted(s: float, theta: float) -> float:
    r"""Return an upper bound of $E[e^{\theta (1 - X)}] - 1 = E[\psi(\theta (1 - X))]$, X lognormal of mean 1.

    With $\psi(y) = e^y - 1 - y$, the integrand is convex in X and not negative. So it lies below its chord in
    every cell, and the sum over the cells has no cancellation.

    Args:
        s: Inverse noise multiplier, in (0, 20].
        theta: Tilt, > 0.

    Returns:
        Upper bound; infinity if it would exceed the range of doubles.

    Example:
        >>> round(tilted(0.1, 1.0) / (0.5 * 0.1**2), 2)
        1.0
    """
    edges, mass, right, slack = _cells(s)
    psi = _rest(theta, edges)
    if not math.isfinite(psi[1]):
        return math.inf
    inner = psi[1:-1] * (mass - right) + psi[2:] * right
    total = float(np.sum(inner + 3.0 * slack * np.maximum(psi[1:-1], psi[2:]) * mass))
    # Below the first cell psi <= e^y, with y <= theta and y <= -theta (s Z - s^2 / 2).
    low, high = _ends(s)
    tilt = 0.5 * theta * s * s * (1.0 + theta) + float(scipy.special.log_ndtr(low + theta * s))
    below = min(theta + float(scipy.special.log_ndtr(low)), tilt) + 1e-9
    # Above the last, psi rises with slope at most theta.
    above = float(psi[-1]) * float(scipy.special.ndtr(-high)) + theta * float(scipy.special.ndtr(s - high))
    if not math.isfinite(total) or below > 700.0:
        return math.inf
    return (total + math.exp(below) + above) * (1.0 + TRUNCATED_RATE)


def _rest(theta: float, edges: Array) -> Array:
    r"""Return $\psi(\theta (1 - x))$ at the edges x, rounded up."""
    y = theta * (1.0 - edges)
    with np.errstate(over="ignore", invalid="ignore"):
        series = 0.5 * y * y * (1.0 + y / 3.0 + y * y / 11.0)
        return np.asarray(np.where(np.abs(y) < 1e-3, series, np.expm1(y) - y) * (1.0 + EXPONENTIAL_REST))


def _ends(s: float) -> tuple[float, float]:
    """Return the ends of the cells in Z; X is a double at both, and the rest contributes next to nothing."""
    return -min(_END, 600.0 / s - 0.5 * s), s + min(_END, 400.0 / s)


@lru_cache(maxsize=16)
def _cells(s: float) -> tuple[Array, Array, Array, float]:
    """Return edges of X (the first is 0), masses, weights of right ends, and relative error of the cells."""
    low, high = _ends(s)
    z = np.linspace(low, high, math.ceil(_CELLS_PER_DEVIATION * (high - low)))
    edges = np.append(0.0, np.exp(s * z - 0.5 * s * s))
    mass, moment, error = lognormal_cells(s, edges)
    right = np.minimum(moment[1:-1] / np.diff(edges[1:]), mass[1:-1])
    return edges, mass[1:-1], right, error + TRUNCATED_RATE
