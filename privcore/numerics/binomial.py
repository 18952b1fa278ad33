"""Tails of binomial distributions with small relative errors, from a window around the mode."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_WIDTH = 38.0
"""Half-width of the window in standard deviations; all beyond it is below 1e-300, or bounded so."""


@dataclass(frozen=True)
class Window:
    """Counts that are not negligible, with their probabilities.

    Attributes:
        first: Smallest count.
        law: Probabilities of the counts, from `first` on.
    """

    first: int
    law: Array

    def at_least(self, count: int) -> float:
        """Return the probability of at least `count` successes."""
        return float(self.law[max(0, count - self.first) :].sum())

    @property
    def counts(self) -> Array:
        """Counts of the window."""
        return self.first + np.arange(float(self.law.size))


def window(trials: int, p: float) -> Window:
    """Return the binomial distribution around its mode.

    Args:
        trials: Number of trials, >= 0.
        p: Probability of success in [0, 1].

    Example:
        >>> window(2, 0.5).law.tolist()
        [0.25, 0.5, 0.25]
    """
    if p <= 0.0 or p >= 1.0:
        return Window(0 if p <= 0.0 else trials, np.ones(1))
    mode = min(trials, math.floor((trials + 1) * p))
    reach = math.ceil(_WIDTH * math.sqrt(trials * p * (1.0 - p)) + 2.0 * _WIDTH**2)
    low, high = max(0, mode - reach), min(trials, mode + reach)
    s = np.arange(low, high)
    up = (trials - s) / (s + 1.0) * (p / (1.0 - p))
    place = mode - low
    law = np.empty(high - low + 1)
    with np.errstate(under="ignore"):
        law[place] = 1.0
        law[place + 1 :] = np.cumprod(up[place:])
        law[:place] = np.cumprod(1.0 / up[:place][::-1])[::-1]
    return Window(low, law / law.sum())
