"""Optimal attack on independent Gaussian canaries: number of correct guesses."""

import numpy as np
import scipy

from privcore.numerics.beta_rule import beta_rule
from privcore.numerics.binomial import Array
from privcore.numerics.sums import dot


def thresholds(mu: float, rates: Array) -> Array:
    r"""Return t with $Q(t) + Q(t - \mu) = \gamma$: a guess is made for scores above t and below $\mu - t$.

    Args:
        mu: Distance of the means of the scores with and without the canary, in standard deviations, > 0.
        rates: Shares gamma of the canaries with a guess, in (0, 1].
    """
    rates = np.asarray(rates, dtype=float)
    low, high = np.full(rates.shape, 0.5 * mu), -scipy.special.ndtri(0.25 * rates) + mu
    for _ in range(80):
        middle = 0.5 * (low + high)
        more = scipy.special.ndtr(-middle) + scipy.special.ndtr(mu - middle) > rates
        low, high = np.where(more, middle, low), np.where(more, high, middle)
    return np.asarray(0.5 * (low + high))


def error_rates(mu: float, rates: Array) -> Array:
    """Return the share of wrong guesses, for each share of canaries with a guess."""
    if mu == 0.0:
        return np.full(np.shape(rates), 0.5)
    t = thresholds(mu, rates)
    wrong, right = scipy.special.ndtr(-t), scipy.special.ndtr(mu - t)
    return np.asarray(wrong / (wrong + right))


def expected_correct(canaries: int, guesses: int, mu: float) -> float:
    r"""Return the expected number of correct guesses, $c' Q(t - \mu) / (Q(t - \mu) + Q(t))$.

    Args:
        canaries: Number m of canaries, each included with probability 1/2.
        guesses: Number c' of guesses: the canaries with the c'/2 highest scores are guessed to be in, those
            with the c'/2 lowest scores to be out.
        mu: As for `thresholds`, >= 0.

    Reference:
        arXiv:2410.22235v1, Section 5, idealised setting.

    Example:
        >>> round(expected_correct(100_000, 1500, 1.0), 5)
        1428.69499
    """
    return float(guesses * (1.0 - error_rates(mu, np.array([guesses / canaries]))[0])) if guesses else 0.0


def few_errors(canaries: int, guesses: int, errors: int, mu: float) -> float:
    r"""Return the probability of at most `errors` wrong guesses about the c' canaries with clearest scores.

    The threshold is the clearest score without a guess. The probability that a score is less clear is
    $W \sim \mathrm{Beta}(m - c', c' + 1)$, and given W the number of errors is binomial with the error rate
    beyond the threshold.

    Args:
        canaries: Number m of canaries.
        guesses: Number c' of guesses, >= 1.
        errors: Number of wrong guesses.
        mu: As for `thresholds`, >= 0.

    Returns:
        Probability, precise to 1e-9.

    Reference:
        Xiang, Wang, Xiao, Tian and Wang (2025), arXiv:2509.08704v1.
    """
    if guesses == canaries:
        return float(_at_most(errors, guesses, error_rates(mu, np.ones(1)))[0])
    beyond, weights = beta_rule(guesses + 1.0, float(canaries - guesses))
    return float(dot(weights, _at_most(errors, guesses, error_rates(mu, beyond))))


def _at_most(errors: int, guesses: int, rates: Array) -> Array:
    """Return binomial probabilities of at most `errors` errors."""
    if errors >= guesses:
        return np.ones(rates.shape)
    return np.asarray(scipy.special.betaincc(errors + 1.0, guesses - errors, rates))
