"""Designs of audits: how canaries are included, and which neighbouring relation an audit can refute."""

import math

from privcore.numerics.rounding import SHORT_FORMULA

PAIRS = "pairs"
EXACTLY_HALF = "exactly-half"

STATED = (
    "independent (each canary in or out by its own fair coin: refutes add-remove), exactly-half (a uniformly "
    "random half of the canaries is in: add-remove, with larger p-values) or pairs (one record of each pair "
    "is in, by a fair coin: refutes replace-one only)"
)
"""The designs with two alternatives and their effect, for users, who state one."""


def relation(alternatives: int, design: str) -> str:
    """Return the neighbouring relation that an audit of this design refutes.

    Example:
        >>> [relation(k, design) for k, design in ((2, "independent"), (2, "pairs"), (5, "independent"))]
        ['add-remove', 'replace-one', 'replace-one']
    """
    return "add-remove" if alternatives == 2 and design != PAIRS else "replace-one"


def probability_of_half(canaries: int) -> float:
    r"""Return the probability that independent fair coins include exactly half of the canaries, rounded down.

    $$\binom{2n}{n} 4^{-n} \ge \frac{1}{\sqrt{\pi (n + 4 / \pi - 1)}}$$

    Independent coins, given that half of them are heads, are a uniformly random half. So an event whose
    probability under independent coins is p has at most the probability p divided by this number if exactly
    half of the canaries are included. For an odd number of canaries, half is rounded down or up.

    Args:
        canaries: Number m of canaries, >= 1; n is m / 2, rounded up.

    Returns:
        Probability in (0, 1/2], at most 0.3 % too small.

    Reference:
        Chen and Qi (2005), The best bounds in Wallis' inequality, Proc. Amer. Math. Soc. 133, 397-401.

    Example:
        >>> round(probability_of_half(10), 4), round(math.comb(10, 5) / 2**10, 4)
        (0.2457, 0.2461)
    """
    n = (canaries + 1) // 2
    return (1.0 - SHORT_FORMULA) / math.sqrt(math.pi * (n + 4.0 / math.pi - 1.0))
