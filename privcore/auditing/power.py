"""Power of an audit: the probability that it refutes a false claim."""

import math
from collections.abc import Callable

import numpy as np
import scipy

from privcore.answer import Answer
from privcore.auditing.counts import no_epsilon_of_family, revealed_tail
from privcore.auditing.exact import exact_tail
from privcore.auditing.optimal import (
    MOST_HALVES,
    error_rates,
    few_errors,
    few_errors_of_halves,
    few_errors_of_halves_bounds,
)
from privcore.auditing.problems import AuditMu, AuditPower
from privcore.auditing.recursion import APPROXIMATE, GAUSSIAN, NO_LINES, unlikely
from privcore.auditing.tightest import mu_cost, tightest_mu
from privcore.method import Cost, Direction, Method
from privcore.numerics.binomial import Array
from privcore.numerics.gaussian import last_true, log_gaussian_delta
from privcore.numerics.rounding import AUDIT_SEARCH, INCOMPLETE_BETA
from privcore.numerics.sums import dot
from privcore.papers import MAHLOUJIFAR, XIANG

_CELLS = 4000
_LEAST_MU, _MOST_MU = 1e-100, 60.0


class AuditingPower(Method[AuditPower]):
    r"""Find the least count that refutes the claim, and the probability of that many correct guesses.

    p-values fall with the count, so bisection finds the least count. The threshold is the clearest score
    without a guess. Let $W \sim \mathrm{Beta}(c' + 1, m - c')$ be the probability that a score is clearer.
    Given W, the number of errors is binomial with a rate that grows with W. So the probability lies between
    two sums over cells of W; the value is computed by Gauss quadrature, to 1e-9.
    """

    name = "auditing.power"
    problems = (AuditPower,)
    direction = Direction.ENCLOSURE
    reference = f"{MAHLOUJIFAR}, Theorem 10; {XIANG}"
    version = 4

    def applies(self, problem: AuditPower) -> str | None:
        if problem.guessing == "halves" and problem.guesses % 2:
            return "Guesses of half in and half out are an even number."
        if problem.guessing == "halves" and problem.guesses > MOST_HALVES:
            return f"Guesses of half in and half out are computed up to {MOST_HALVES} guesses."
        return no_epsilon_of_family(problem.family, problem.delta)

    def cost(self, problem: AuditPower) -> Cost:
        root = problem.guesses**0.5
        seconds, bytes_ = 0.08 + 1e-3 * root, 4e6 + 4e4 * root
        if problem.guessing == "halves" and self.applies(problem) is None:
            seconds, bytes_ = seconds + 0.7 + 2e-4 * problem.guesses, bytes_ + 1e8 + 3e4 * problem.guesses
        modelled = problem.family == "gaussian"
        if problem.refutation == "programmed" and modelled:
            audit = mu_cost(_counts(problem, problem.guesses))
            seconds, bytes_ = seconds + 3.0 * audit.seconds, bytes_ + audit.bytes
        return Cost(seconds=seconds, bytes=bytes_)

    def answer(self, problem: AuditPower, seed: int) -> Answer:
        correct = least_refuting(problem)
        if correct is None:
            return Answer.enclosure(0.0, 0.0, value=0.0, detail="no count refutes the claim")
        counts = problem.canaries, problem.guesses, problem.guesses - correct
        if problem.guessing == "halves":
            lower, upper = few_errors_of_halves_bounds(*counts, problem.mu)
            value = few_errors_of_halves(*counts, problem.mu)
        else:
            lower, upper = few_errors_bounds(*counts, problem.mu)
            value = few_errors(*counts, problem.mu)
        detail = f"the claim is refuted from {correct} of {problem.guesses} correct guesses"
        return Answer.enclosure(lower, upper, value=min(max(value, lower), upper), detail=detail)


def least_refuting(problem: AuditPower) -> int | None:
    """Return the least number of correct guesses that refutes the claim, None if no number does.

    Example:
        >>> plan = {"canaries": 1000, "guesses": 100, "mu": 1.0, "claimed_epsilon": 1.0, "delta": 1e-5}
        >>> least_refuting(AuditPower(**plan)), least_refuting(AuditPower(**plan, family="gaussian"))
        (81, 75)
    """
    tau = 1.0 - problem.audit_confidence
    epsilon, delta, allowed = problem.claimed_epsilon, problem.delta, tau * (1.0 - AUDIT_SEARCH)
    modelled = problem.family == "gaussian"
    claim = (GAUSSIAN, claimed_mu(epsilon, delta), 0.0) if modelled else (APPROXIMATE, epsilon, delta)

    def refutes(correct: int) -> bool:
        counts = (float(problem.canaries), float(problem.guesses), float(correct), 2.0)
        if unlikely(claim, NO_LINES, counts, allowed):
            return True
        return (
            not modelled and revealed_tail(problem.canaries, problem.guesses, correct, epsilon, delta) < tau
        )

    def best_refutes(correct: int) -> bool:
        return exact_tail(problem.canaries, problem.guesses, correct, epsilon, delta)[1] <= allowed

    best = problem.refutation == "programmed"
    least = _least(best_refutes if best and not modelled else refutes, problem.guesses)
    if best and modelled:
        # The mu that `audit` refutes needs a few correct guesses fewer.
        while least > 1 and tightest_mu(_counts(problem, least - 1)) >= claim[1]:
            least -= 1
    return least if least <= problem.guesses else None


def _counts(problem: AuditPower, correct: int) -> AuditMu:
    """Return the audit with this many correct guesses."""
    return AuditMu(
        canaries=problem.canaries,
        guesses=problem.guesses,
        correct=correct,
        audit_confidence=problem.audit_confidence,
    )


def _least(refutes: Callable[[int], bool], guesses: int) -> int:
    """Return the least number of correct guesses that refutes, or one more than can be made."""
    low, high = 0, guesses + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if refutes(middle) else (middle, high)
    return high


def claimed_mu(epsilon: float, delta: float) -> float:
    """Return the mu of the Gaussian mechanism with this epsilon at delta, rounded up; at most 60.

    Args:
        epsilon: In nats, in [0, 700].
        delta: In (0, 1).

    Example:
        >>> round(claimed_mu(4.377178, 1e-5), 6)
        1.0
    """
    allowed = math.log(delta)
    mu = last_true(lambda x: log_gaussian_delta(1.0 / x, epsilon) <= allowed, _LEAST_MU, _MOST_MU)[1]
    return min(_MOST_MU, mu * (1.0 + AUDIT_SEARCH))


def few_errors_bounds(canaries: int, guesses: int, errors: int, mu: float) -> tuple[float, float]:
    r"""Return bounds of the probability of at most `errors` errors among the clearest guesses.

    Args:
        canaries: Number m of independent Gaussian canaries.
        guesses: Number c' of guesses, >= 1.
        errors: Number of wrong guesses.
        mu: Distance of the means of the scores with and without the canary, in standard deviations, >= 0.

    Returns:
        Probabilities, rounded down and up; they differ by a few 1e-4 at most.

    Reference:
        Xiang, Wang, Xiao, Tian and Wang (2025), arXiv:2509.08704v1.

    Example:
        >>> low, high = few_errors_bounds(1000, 100, 10, 1.0)
        >>> 0.0 < high - low < 5e-4, low <= few_errors(1000, 100, 10, 1.0) <= high
        (True, True)
    """
    if guesses == canaries:
        lower = upper = float(_at_most(errors, guesses, error_rates(mu, np.ones(1)))[0])
    else:
        shares, masses = _cells(canaries, guesses)
        tails = _at_most(errors, guesses, error_rates(mu, np.maximum(shares, 1e-300)))  # falls with the share
        lower, upper = float(dot(masses, tails[1:])), float(dot(masses, tails[:-1]))
    return max(0.0, lower - INCOMPLETE_BETA), min(1.0, upper + INCOMPLETE_BETA)


def _at_most(errors: int, guesses: int, rates: Array) -> Array:
    """Return the probabilities of at most `errors` errors; bdtr of scipy is wrong from 1e7 trials on."""
    if errors >= guesses:
        return np.ones(rates.shape)
    return np.asarray(scipy.special.betaincc(errors + 1.0, float(guesses - errors), rates))


def _cells(canaries: int, guesses: int) -> tuple[Array, Array]:
    """Return ends of cells of W and the probabilities of the cells; any choice of ends is valid."""
    a, b = guesses + 1.0, float(canaries - guesses)
    inner = scipy.special.betaincinv(a, b, np.linspace(0.0, 1.0, _CELLS + 1)[1:-1])
    shares = np.concatenate([[0.0], np.maximum.accumulate(inner), [1.0]])
    return shares, np.diff(scipy.special.betainc(a, b, shares))
