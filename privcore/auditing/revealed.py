"""The bound of Steinke, Nasr and Jagielski (2023): randomized responses, some of which are revealed."""

import math

import numpy as np

from privcore.numerics.binomial import ERROR, window


def revealed_tail(canaries: int, guesses: int, correct: int, epsilon: float, delta: float) -> float:
    r"""Return their bound of the probability of so many correct guesses under (epsilon, delta)-DP.

    $$\Pr[B \ge c] + 2 m \delta \max_{1 \le i \le c} \frac 1i \Pr[c > B \ge c - i], \qquad
      B \sim \mathrm{Bin}(c', 1 / (1 + e^{-\varepsilon}))$$

    Args:
        canaries: Number m of canaries.
        guesses: Number c' of guesses.
        correct: Number c of correct ones.
        epsilon: In nats, >= 0.
        delta: In [0, 1].

    Returns:
        Upper bound in [0, 1], rounded up.

    Reference:
        Steinke, Nasr and Jagielski (2023), arXiv:2305.08846v1, Theorem 5.2.

    Example:
        >>> round(revealed_tail(1000, 100, 90, 1.0, 0.0), 9)
        2.7358e-05
    """
    if correct == 0:
        return 1.0
    law = window(guesses, 1.0 / (1.0 + math.exp(-epsilon)))
    probability = law.at_least(correct)
    if delta > 0.0:
        below = law.law[: max(0, correct - law.first)][::-1]  # of c - 1, c - 2, ...
        nearest = correct - (law.first + below.size - 1)  # 1, or more where c is above the window
        distances = nearest + np.arange(below.size)
        share = float((np.cumsum(below) / distances).max(initial=0.0))
        # What lies below the window would count more the nearer it is to c.
        share = max(share, 1e-290)
        probability += 2.0 * canaries * delta * share
    return min(1.0, probability * (1.0 + ERROR) + 1e-290)
