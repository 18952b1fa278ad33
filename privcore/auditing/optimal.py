"""Optimal attack on independent Gaussian canaries: numbers of correct guesses, of halves, and their means."""

import math
from functools import cache

import numpy as np
import scipy

from privcore.numerics.beta_rule import beta_rule
from privcore.numerics.binomial import Array
from privcore.numerics.rounding import HALF_GUESSES
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


MOST_HALVES = 10_000
"""Largest number of guesses for which the power is computed."""
_CELLS, _NODES = 1000, 20
_WIDEST, _DEVIATIONS, _NEGLIGIBLE = 1.0, 7.5, 1e-14
"""Greatest width of a panel; normal deviations, and probability of a panel, that are left out."""


def one_sided_error_rates(mu: float, shares: Array) -> Array:
    r"""Return the probability that a canary whose score is among the highest is not in.

    Args:
        mu: Distance of the means of the scores with and without the canary, in standard deviations, >= 0.
        shares: Probabilities of higher scores than the threshold, in (0, 1]; half the canaries are in.

    Example:
        >>> one_sided_error_rates(0.0, np.ones(1)).tolist(), one_sided_error_rates(1.0, np.ones(1)).tolist()
        ([0.5], [0.5])
    """
    if mu == 0.0:
        return np.full(np.shape(shares), 0.5)
    t = _threshold(mu, shares)
    wrong, right = scipy.special.ndtr(-t), scipy.special.ndtr(mu - t)
    return np.asarray(wrong / (wrong + right))


def few_errors_of_halves_bounds(canaries: int, guesses: int, errors: int, mu: float) -> tuple[float, float]:
    r"""Return bounds of the probability of at most `errors` errors in guesses of half in and half out.

    Let $h = c' / 2$. The h highest scores are independent given the next one, and so are the h lowest. The
    probabilities $W_1$ and $W_2$ of scores beyond these two are Dirichlet with parameters
    $(h + 1, h + 1, m - 2h - 1)$, so $W_1$ and $W_2 / (1 - W_1)$ are independent beta variables. The numbers
    of errors are binomial with rates that grow with $W_1$ and $W_2$. So the probability lies between two
    sums over cells. If fewer than two scores are left out, the same holds with one beta variable.

    Args:
        canaries: Number m of independent Gaussian canaries.
        guesses: Number c' of guesses, even, from 2 to 10,000.
        errors: Number of wrong guesses.
        mu: As for `one_sided_error_rates`.

    Returns:
        Probabilities, rounded down and up; they differ by a few 1e-3 at most.

    Reference:
        David and Nagaraja (2003), Order Statistics, Section 2.5.

    Example:
        >>> low, high = few_errors_of_halves_bounds(50, 20, 5, 0.8)
        >>> 0.0 < high - low < 5e-3
        True
    """
    half, spare = guesses // 2, canaries - guesses
    if errors >= guesses:
        return 1.0, 1.0
    if mu == 0.0:
        lower = upper = float(scipy.special.betaincc(errors + 1.0, float(guesses - errors), 0.5))
    elif spare >= 2:
        lower, upper = _between(canaries, half, errors, mu)
    else:
        lower, upper = _adjacent(half, spare, errors, mu)
    return max(0.0, lower - HALF_GUESSES), min(1.0, upper + HALF_GUESSES)


def few_errors_of_halves(canaries: int, guesses: int, errors: int, mu: float) -> float:
    """Return the probability itself, to 1e-9; arguments as for the bounds.

    The integral is over the two thresholds and not over the shares beyond them: for a large mu the error rate
    has a kink where the share is 1/2, but it is a smooth function of the threshold. The panels are symmetric,
    so the error rates of the lowest scores are those of the highest scores in reverse order.
    """
    half, spare = guesses // 2, canaries - guesses
    if errors >= guesses or mu == 0.0:
        return few_errors_of_halves_bounds(canaries, guesses, errors, mu)[0]
    ends = _panels(half, spare, mu)
    x, w, basis = _legendre()
    lengths = np.diff(ends)[:, None]
    nodes = ends[:-1, None] + lengths * x
    steps = lengths * w * _density(mu, nodes)
    t = nodes.ravel()
    rates = 0.5 * scipy.special.ndtr(-t) / _beyond(mu, t)
    if spare < 2:
        weights = steps.ravel() * _law(half - 1 + spare, half, 0, mu, t, t)
        at = scipy.special.expit(mu * (0.5 * mu - t))
        tails = _adjacent_tails(half, spare, errors, rates, rates[::-1], at)
        return min(1.0, float(weights @ tails / weights.sum()))
    highest = few_error_masses(half, errors, rates)
    lowest = np.cumsum(highest, axis=1)[::-1, ::-1].copy()  # products of contiguous arrays are faster
    total = mass = 0.0
    for panel in range(len(nodes)):
        high, start = nodes[panel][:, None], panel * _NODES
        stop = start + _NODES
        # In the panel of the upper threshold the lower one ends there, and the tail is interpolated.
        low = ends[panel] + (high - ends[panel]) * x
        near = _law(half, half, spare - 2, mu, high, low) * _density(mu, low) * (high - ends[panel]) * w
        far = _law(half, half, spare - 2, mu, high, t[:start]) * steps.ravel()[:start]
        weights = steps[panel][:, None] * np.hstack([far, np.einsum("iq,iqj->ij", near, basis)])
        first = np.count_nonzero(np.cumsum(weights.sum(axis=0)) <= _NEGLIGIBLE)
        mass += float(weights.sum())
        total += float((weights[:, first:] * (highest[start:stop] @ lowest[first:stop].T)).sum())
    return min(1.0, total / mass)


def _panels(half: int, spare: int, mu: float) -> Array:
    """Return ends of panels of thresholds, symmetric about mu / 2."""
    a, b = half + float(spare > 0), half + 1.0 + max(0, spare - 1)
    z = np.linspace(-_DEVIATIONS, _DEVIATIONS, 11 + math.ceil(0.7 * half / math.sqrt(half + spare)))
    small = scipy.special.betaincinv(a, b, scipy.special.ndtr(z))
    large = 1.0 - scipy.special.betaincinv(b, a, scipy.special.ndtr(-z))
    t = _threshold(mu, np.where(z < 0.0, small, large)) - 0.5 * mu
    # Between the two centres of the scores the share hardly changes, so the width has a limit as well.
    right = np.unique(np.concatenate([t[t > 0.0], np.arange(0.0, np.abs(t).max(), _WIDEST)]))
    return np.asarray(0.5 * mu + np.concatenate([-right[:0:-1], right]))


@cache
def _legendre() -> tuple[Array, Array, Array]:
    """Return nodes x and weights on [0, 1], and Lagrange polynomials at the products of two nodes."""
    x, w = np.polynomial.legendre.leggauss(_NODES)
    degrees = np.arange(_NODES)
    coefficients = (degrees + 0.5)[:, None] * np.polynomial.legendre.legvander(x, _NODES - 1).T * w
    x, w = 0.5 * (x + 1.0), 0.5 * w
    return x, w, np.polynomial.legendre.legvander(2.0 * np.outer(x, x) - 1.0, _NODES - 1) @ coefficients


def _beyond(mu: float, t: Array) -> Array:
    """Return the share of the scores above t."""
    return np.asarray(0.5 * (scipy.special.ndtr(-t) + scipy.special.ndtr(mu - t)))


def _density(mu: float, t: Array) -> Array:
    """Return the density of the scores, up to a constant factor."""
    return np.asarray(np.exp(-0.5 * t**2) + np.exp(-0.5 * (t - mu) ** 2))


def _law(above: int, below: int, between: int, mu: float, high: Array, low: Array) -> Array:
    """Return the density of shares with these numbers of scores above, below and between the thresholds."""
    first, second = _beyond(mu, high), _beyond(mu, mu - low)
    factor = math.lgamma(above + below + between + 3.0) - math.lgamma(above + 1.0)
    factor = factor - math.lgamma(below + 1.0) - math.lgamma(between + 1.0)
    ends = (factor + above * np.log(first)) + below * np.log(second)
    return np.asarray(np.exp(ends + scipy.special.xlogy(between, np.maximum(0.0, (1.0 - first) - second))))


def _between(canaries: int, half: int, errors: int, mu: float) -> tuple[float, float]:
    """Return sums over cells from below and above if at least two scores are left out."""
    spare = canaries - 2 * half
    shares, masses = _cells(half + 1.0, float(canaries - half))
    inner, inner_masses = _cells(half + 1.0, float(spare - 1))
    highest = few_error_masses(half, errors, one_sided_error_rates(mu, shares))
    tails = highest @ np.cumsum(highest, axis=1)[:, ::-1].T  # of both rates at the ends of cells
    # The share of the lowest scores is (1 - w) times an inner share; it is rounded to ends of cells.
    least = np.searchsorted(shares, (1.0 - shares[1:, None]) * inner[None, :-1], side="right") - 1
    most = np.searchsorted(shares, (1.0 - shares[:-1, None]) * inner[None, 1:], side="left")
    lower = np.take_along_axis(tails[1:], np.minimum(most, _CELLS), axis=1)
    upper = np.take_along_axis(tails[:-1], np.maximum(least, 0), axis=1)
    return float(masses @ lower @ inner_masses), float(masses @ upper @ inner_masses)


def _adjacent(half: int, spare: int, errors: int, mu: float) -> tuple[float, float]:
    """Return sums over cells from below and above if one score is left out, or none."""
    shares, masses = _cells(half + float(spare), half + 1.0)
    high, low = one_sided_error_rates(mu, shares), one_sided_error_rates(mu, 1.0 - shares)
    at = _at(mu, shares)
    lower = _adjacent_tails(half, spare, errors, high[1:], low[:-1], at[1:])
    upper = _adjacent_tails(half, spare, errors, high[:-1], low[1:], at[:-1])
    return float(masses @ lower), float(masses @ upper)


def _adjacent_tails(half: int, spare: int, errors: int, high: Array, low: Array, at: Array) -> Array:
    """Return tails given the share beyond the score left out, or beyond the lowest score of a guess of in."""
    lowest = np.cumsum(few_error_masses(half, errors, low), axis=1)
    if spare == 1:
        return np.asarray((few_error_masses(half, errors, high) * lowest[:, ::-1]).sum(axis=1))
    highest = few_error_masses(half - 1, errors, high)
    right = (highest * lowest[:, ::-1]).sum(axis=1)
    wrong = (highest[:, :-1] * lowest[:, -2::-1]).sum(axis=1)
    return np.asarray((1.0 - at) * right + at * wrong)


def _at(mu: float, shares: Array) -> Array:
    """Return the probability that a canary with the score at the threshold is not in."""
    return np.asarray(scipy.special.expit(mu * (0.5 * mu - _threshold(mu, shares))))


def _threshold(mu: float, shares: Array) -> Array:
    """Return the score that a share of the canaries exceeds; means are 0 without and mu with the canary."""
    share = np.clip(np.asarray(shares, dtype=float), 1e-300, 1.0)
    small = thresholds(mu, 2.0 * np.minimum(share, 0.5))
    large = mu - thresholds(mu, np.maximum(2.0 * np.minimum(1.0 - share, 0.5), 1e-300))
    return np.where(share <= 0.5, small, large)


def _cells(a: float, b: float) -> tuple[Array, Array]:
    """Return ends of cells of a beta variable and the probabilities of the cells."""
    inner = scipy.special.betaincinv(a, b, np.linspace(0.0, 1.0, _CELLS + 1)[1:-1])
    ends = np.concatenate([[0.0], np.maximum.accumulate(inner), [1.0]])
    return ends, np.diff(scipy.special.betainc(a, b, ends))


def few_error_masses(trials: int, errors: int, rates: Array) -> Array:
    """Return the binomial probabilities of 0, ..., `errors` errors.

    Args:
        trials: Number of guesses, >= 0.
        errors: Largest number of errors, >= 0.
        rates: Probabilities of an error, in (0, 1), shape (n,).

    Returns:
        Probabilities with an error of 1e-11 at most, shape (n, errors + 1).

    Example:
        >>> few_error_masses(2, 3, np.array([0.5])).round(9).tolist()
        [[0.25, 0.5, 0.25, 0.0]]
    """
    counts = np.arange(errors + 1.0)
    inside = np.minimum(counts, trials)
    whole = math.lgamma(trials + 1.0) - scipy.special.gammaln(inside + 1.0)
    whole = whole - scipy.special.gammaln(trials - inside + 1.0)
    rate = rates[:, None]
    logarithm = whole + scipy.special.xlogy(inside, rate) + scipy.special.xlog1py(trials - inside, -rate)
    with np.errstate(under="ignore"):
        return np.asarray(np.where(counts <= trials, np.exp(logarithm), 0.0))


def mean_correct(canaries: int, guesses: int, mu: float) -> float:
    """Return the mean number of correct guesses about exactly c' canaries, those with the clearest scores.

    It is c' times the mean of one minus the error rate beyond the clearest score without a guess, whose share
    of clearer scores is a beta variable, as in `few_errors`. It is a little below `expected_correct`, in
    which c' is the mean of a random number of guesses.

    Args:
        canaries: Number m of canaries.
        guesses: Number c' of guesses, >= 1.
        mu: As for `thresholds`, >= 0.

    Example:
        >>> round(mean_correct(100, 24, 1.0), 3), round(expected_correct(100, 24, 1.0), 3)
        (20.531, 20.572)
    """
    if guesses == canaries:
        return expected_correct(canaries, guesses, mu)
    beyond, weights = beta_rule(guesses + 1.0, float(canaries - guesses))
    return guesses * (1.0 - float(dot(weights, error_rates(mu, beyond))))


def mean_correct_of_halves(canaries: int, guesses: int, mu: float) -> float:
    """Return the mean number of correct guesses if half of them are in and half out.

    Given the highest score without a guess of in, the c'/2 higher ones are independent, and the share of
    higher scores is a beta variable. The guesses of out are symmetric. The mean is precise to 1e-3: for a
    large mu the error rate has a kink where the share is 1/2.

    Args:
        canaries: Number m of independent Gaussian canaries.
        guesses: Number c' of guesses, even, from 2 to m.
        mu: As for `one_sided_error_rates`.

    Example:
        >>> round(mean_correct_of_halves(100, 24, 1.0), 3)
        20.476
    """
    half = guesses // 2
    shares, weights = beta_rule(half + 1.0, float(canaries - half))
    return guesses * (1.0 - float(dot(weights, one_sided_error_rates(mu, shares))))
