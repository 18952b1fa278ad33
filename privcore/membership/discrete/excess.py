r"""Mean excess of a binomial count over its expectation, which determines the risk under the worst learner.

For $B \sim \mathrm{Bin}(n, p)$, an atom of probability p adds to the largest advantage at odds $\gamma$

$$e(p) = E(B / n - \gamma p)_+ \text{ for } \gamma \ge 1, \qquad
  e(p) = E(\gamma p - B / n)_+ / \gamma \text{ for } \gamma \le 1,$$

and $e(p) / p$ is the risk of its records. Since $\sum_{b > m} (b - n p) b_n(b) = n p q \, b_{n-1}(m)$ (de
Moivre), with $m = \lfloor \gamma n p \rfloor$ and the tail probability t beyond m on the side away from the
mean,

$$n \min(1, \gamma) \, e(p) = n p q \, b_{n-1}(m) - |\gamma - 1| \, n p \, t.$$
"""

import math

import numpy as np
import scipy
from numpy.typing import NDArray

from privcore.numerics.compiled import compiled
from privcore.numerics.rounding import BINOMIAL_TERM

Array = NDArray[np.float64]

_UNIT = 2.0**-52
_SMALL_FACTORIALS = np.array(
    [
        math.log(math.factorial(k)) - (k + 0.5) * math.log(max(k, 1)) + k - 0.5 * math.log(2.0 * math.pi)
        for k in range(16)
    ]
)
_FEW = 200
"""Number of terms up to which a sum is faster and more accurate than the incomplete beta function."""
_DIGITS = 40.0
_BETA_TRIALS = 5000
"""Trials beyond which the incomplete beta function errs by more than 1e-13 if the mean is small: by up to
2e-12 of its value at 1e5 trials, and 3e-8 beyond."""


def excess(n: int, p: Array, q: Array, odds: float, error: float) -> tuple[Array, Array]:
    r"""Return e(p) with bounds of its errors, including the error of p.

    The relative error $\delta$ of p counts as follows. A count at a smaller p is a thinning of a count at a
    larger p, so B / (n p) at the larger p is a conditional mean of B / (n p) at the smaller p, and
    $e(p) / p$ falls in p (Jensen). At $\gamma = 1$ the same holds for q, and together $e$ moves by at most a
    factor of $1 + \delta$. Otherwise $p (1 \pm \delta)$ moves the threshold by at most $\gamma \delta n p$
    and the mean by $\delta n p / q$. The mean of a positive part moves by that times the probability of being
    beyond m, up to a factor of 3 as long as $\delta n \le 1/10$; for $\gamma < 1$ one more count reduces the
    positive part by at most its value, $\gamma n p$.

    Args:
        n: Records, >= 1.
        p: Probabilities in (0, 1].
        q: 1 - p, accurate even if it is small.
        odds: $\gamma$ > 0.
        error: Relative error of p and of q.

    Returns:
        Values and absolute errors, of the shape of p.

    Example:
        >>> values, errors = excess(3, np.array([0.5]), np.array([0.5]), 1.0, 0.0)
        >>> values.round(12).tolist(), bool(errors[0] < 1e-12)
        ([0.125], True)
    """
    error += 8.0 * _UNIT
    mean = n * p
    threshold = odds * mean
    m = np.floor(threshold)
    if odds == 1.0:
        values = p * q * modes(n - 1.0, p, q, np.minimum(m, n - 1.0))
        return values, values * (BINOMIAL_TERM + error)
    values, errors = np.zeros_like(p), np.zeros_like(p)
    inside = (m < n) & (q > 0.0)
    if odds > 1.0:  # a threshold that rounds to n may be below n
        near = ~inside & (q > 0.0) & (threshold * (1.0 - 3.0 * error) < n)
        errors[near] = 3.0 * error * p[near]
    p, q, m, mean, threshold = (x[inside] for x in (p, q, m, mean, threshold))
    law = modes(n - 1.0, p, q, m)
    relative = BINOMIAL_TERM + 4.0 * _UNIT * np.abs(m - mean)
    total, tail = _term_by_term(float(n), p, q, m, threshold, law, odds > 1.0)
    off = 3.0 * relative * total
    many = np.isnan(total)
    first = mean[many] * q[many] * law[many]
    tail[many] = _tail(n, p[many], m[many], q[many], odds > 1.0)
    second = abs(odds - 1.0) * mean[many] * tail[many]
    wrong = BINOMIAL_TERM + _tail_error(n, p[many], q[many], m[many])
    total[many], off[many] = np.maximum(0.0, first - second), relative[many] * first + wrong * second
    # A threshold that moves across an integer has one more probability beyond it.
    if odds > 1.0:
        beyond = tail + np.where(threshold * (1.0 - 3.0 * error) <= m, n * q / (n - m) * law, 0.0)
    else:
        beyond = tail + np.where(threshold * (1.0 + 3.0 * error) >= m + 1.0, mean / (m + 1.0) * law, 0.0)
    off += 3.0 * np.maximum(odds, np.minimum(1.0, threshold)) * mean * error * beyond
    scale = 1.0 / (n * min(1.0, odds))
    values[inside] = total * scale
    errors[inside] = off * scale + error * values[inside]
    return values, errors


@compiled()
def modes(n: float, p: Array, q: Array, m: Array) -> Array:
    r"""Return binomial probabilities $b_n(m)$, to a relative error of about $10^{-12} + 2^{-52} |m - n p|$.

    By Loader's method: with Stirling's formula and its corrections for factorials, two deviances remain.

    Args:
        n: Trials, a whole number >= 0.
        p: Probabilities of success, shape (K,).
        q: Probabilities of failure, accurate even if they are small.
        m: Whole numbers in [0, n], shape (K,).
    """
    out = np.empty(p.size)
    for k in range(p.size):
        low, high = m[k], n - m[k]
        if n == 0.0 or q[k] == 0.0:
            out[k] = 1.0 if high == 0.0 else 0.0
        elif low == 0.0:
            out[k] = math.exp(n * (math.log1p(-p[k]) if p[k] < 0.5 else math.log(q[k])))
        elif high == 0.0:
            out[k] = math.exp(n * (math.log1p(-q[k]) if q[k] < 0.5 else math.log(p[k])))
        else:
            exponent = _stirling(n) - _stirling(low) - _stirling(high)
            exponent -= _deviance(low, n * p[k]) + _deviance(high, n * q[k])
            out[k] = math.sqrt(n / (2.0 * math.pi * low * high)) * math.exp(exponent)
    return out


@compiled()
def _stirling(x: float) -> float:
    """Return ln x! minus Stirling's formula."""
    if x < 16.0:
        return float(_SMALL_FACTORIALS[int(x)])
    y = 1.0 / (x * x)
    return (1 / 12 - y * (1 / 360 - y * (1 / 1260 - y * (1 / 1680 - y / 1188)))) / x


@compiled()
def _deviance(x: float, mean: float) -> float:
    """Return x ln(x / mean) + mean - x, by a series of positive terms if x is near the mean."""
    difference = x - mean
    v = difference / (x + mean)
    if abs(v) > 0.5:
        return x * math.log(x / mean) - difference
    total = difference * v
    term = 2.0 * x * v
    j = 3.0
    while True:
        term *= v * v
        added = total + term / j
        if added == total:
            return total
        total = added
        j += 2.0


@compiled()
def _term_by_term(
    n: float, p: Array, q: Array, m: Array, threshold: Array, law: Array, upper: bool
) -> tuple[Array, Array]:
    """Return sums of |b - threshold| b_n(b) and of b_n(b) beyond m; NaN if they have many terms."""
    sums, tails = np.empty(p.size), np.empty(p.size)
    for k in range(p.size):
        if upper:
            term, step, rate = n * p[k] * law[k] / (m[k] + 1.0), m[k] + 1.0 - threshold[k], p[k] / q[k]
            above, below = n - m[k] - 1.0, m[k] + 2.0
        else:
            term, step, rate = n * q[k] / (n - m[k]) * law[k], threshold[k] - m[k], q[k] / p[k]
            above, below = m[k], n - m[k] + 1.0
        total = tail = math.nan
        ratio = above / below * rate
        if min(_DIGITS / (1.0 - ratio) if ratio < 1.0 else math.inf, 9.0 * math.sqrt(n * p[k] * q[k])) < _FEW:
            total = tail = 0.0
            for i in range(4 * _FEW):
                total += step * term
                tail += term
                # Ratios of terms fall, so the remainder is less than a geometric series.
                ratio = (above - i) / (below + i) * rate
                term *= ratio
                step += 1.0
                if ratio <= 0.0 or (ratio < 0.9 and term * step <= 1e-17 * total):
                    break
            else:
                total = tail = math.nan
        sums[k], tails[k] = total, tail
    return sums, tails


def at_least(n: int, p: Array, q: Array, count: Array) -> tuple[Array, Array]:
    """Return bounds of the probability of at least `count` successes in n trials.

    Args:
        n: Trials, >= 0.
        p: Probabilities of success in (0, 1).
        q: 1 - p, accurate even if it is small.
        count: Any whole numbers.
    """
    law = (count <= 0.0).astype(np.float64)
    inside = (count > 0.0) & (count <= n) & (q > 0.0)
    law[(count <= n) & (q == 0.0)] = 1.0
    law[inside] = _tail(n, p[inside], count[inside] - 1.0, q[inside], upper=True)
    if n > _BETA_TRIALS:
        p1, q1, m = p[inside], q[inside], count[inside] - 1.0
        _, tails = _term_by_term(float(n), p1, q1, m, m + 1.0, modes(n - 1.0, p1, q1, m), True)
        law[inside] = np.where(np.isnan(tails), law[inside], np.minimum(tails, 1.0))
    error = np.where(inside, BINOMIAL_TERM + _tail_error(n, p, q, count), 0.0)
    return law * (1.0 - error), np.minimum(1.0, law * (1.0 + error))


def _tail_error(n: int, p: Array, q: Array, m: Array) -> Array:
    """Return the relative error of a tail due to rounding of n p; tests found a quarter of it at most."""
    return np.asarray(6.0 * _UNIT * (np.abs(m - n * p) + np.sqrt(n * p * q)))


def _tail(n: int, p: Array, m: Array, q: Array, upper: bool) -> Array:
    """Return P(B > m), or P(B <= m)."""
    with np.errstate(under="ignore"):
        large = p > 0.5  # q has 1 - p without cancellation
        above = np.where(large, 0.0, scipy.special.betainc(m + 1.0, n - m, p))
        above[large] = scipy.special.betaincc(n - m[large], m[large] + 1.0, q[large])
        if upper:
            return above
        below = 1.0 - above
        small = below < 0.1
        below[small] = scipy.special.betaincc(m[small] + 1.0, n - m[small], p[small])
        small &= large
        below[small] = scipy.special.betainc(n - m[small], m[small] + 1.0, q[small])
        return np.asarray(below)
