"""Confidence bounds on the mean of a bounded variable by bets against it, nearly as narrow as normal ones."""

import math

import numpy as np
import scipy
from numpy.typing import NDArray

from privcore.numerics.rounding import BETTED_WEALTH

Array = NDArray[np.float64]

BETTING = "Waudby-Smith and Ramdas (2024), Journal of the Royal Statistical Society B 86, Theorem 3"
"""Reference of the bounds."""

_FIRST, _GROWTH = 64, 2.0
_MOST_SHARE = 0.9
_HALVINGS = 60
_LEAST, _PRECISION = 1e-12, 1e-13


def width_note(width: float, standard_error: float, confidence: float) -> str:
    """Return `, N normal widths` for an interval that is more than three times as wide as a normal one.

    Args:
        width: Width of the interval.
        standard_error: Estimated standard error of its middle, >= 0.
        confidence: Confidence of the interval, in (0, 1).

    Example:
        >>> width_note(0.5, 0.001, 0.95), width_note(0.004, 0.001, 0.95)
        (', 130 normal widths', '')
    """
    normal = 2.0 * standard_error * float(scipy.special.ndtri(0.5 + 0.5 * confidence))
    if not 0.0 < normal < width / 3.0:
        return ""
    return f", {float(f'{width / normal:.2g}'):.10g} normal widths"


def betting_lower(samples: Array, error: float) -> float:
    r"""Return a lower bound that exceeds the true mean with probability at most `error`.

    A player who doubts that the mean is m bets $\lambda_i (x_i - m)$ on sample i. The wealth
    $\prod_i (1 + \lambda_i (x_i - m))$ has mean 1 if the mean is m, since the stake $\lambda_i$ depends on
    earlier samples only, so by Markov's inequality it reaches 1 / error with probability at most `error`. It
    falls with m, and the bound is the least m at which it stays below 1 / error. Stakes follow the variance
    of the earlier samples, in blocks that double.

    Args:
        samples: Independent samples in [0, 1] in the order of drawing, shape (n,), n >= 1.
        error: Probability in (0, 1) that the bound fails.

    Returns:
        Lower confidence bound in [0, 1), rounded down.

    Reference:
        Waudby-Smith and Ramdas (2024), Estimating means of bounded random variables by betting, JRSS B 86,
        Theorem 3, at a fixed number of samples.

    Example:
        >>> betting_lower(np.ones(100), 0.05) > 0.95, betting_lower(np.zeros(100), 0.05)
        (True, 0.0)
    """
    needed = -math.log(error)
    stakes = _stakes(samples, needed)

    def refuted(mean: float) -> bool:
        wealth = sum(log_wealth(samples[start:stop], stake, mean) for start, stop, stake in stakes)
        return wealth >= needed * (1.0 + BETTED_WEALTH) + BETTED_WEALTH

    if not refuted(_LEAST):
        return 0.0
    low, high = _LEAST, 1.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high) if high > 4.0 * low else math.sqrt(low * high)
        low, high = (middle, high) if refuted(middle) else (low, middle)
        if high - low <= _PRECISION * high:
            break
    return low


def betting_upper(samples: Array, error: float) -> float:
    """Return the upper confidence bound that mirrors `betting_lower`, rounded up."""
    return min(1.0, (1.0 - betting_lower(1.0 - samples, error)) * (1.0 + 2.0**-52) + 2.0**-52)


def _stakes(samples: Array, needed: float) -> list[tuple[int, int, float]]:
    """Return blocks of samples with their stakes, each from the samples before the block."""
    blocks = []
    start, size = 0, _FIRST
    total = squares = 0.0
    while start < samples.size:
        stop = min(samples.size, start + size)
        mean = (total + 0.5) / (start + 1.0)
        variance = (max(0.0, squares - 2.0 * mean * total + start * mean * mean) + 0.25) / (start + 1.0)
        blocks.append((start, stop, math.sqrt(2.0 * needed / (samples.size * variance))))
        block = samples[start:stop]
        total, squares = total + float(block.sum()), squares + float((block * block).sum())
        start, size = stop, int(_GROWTH * size)
    return blocks


def log_wealth(samples: Array, stake: float, mean: float) -> float:
    """Return the logarithm of the wealth after bets with one stake; no bet risks more than a share of it."""
    return float(np.log1p(min(stake, _MOST_SHARE / mean) * (samples - mean)).sum())
