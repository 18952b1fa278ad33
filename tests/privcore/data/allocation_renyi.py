"""Write `allocation_renyi.csv`: moments of 1-of-t allocation by the sum over integer partitions itself.

    python tests/privcore/data/allocation_renyi.py > tests/privcore/data/allocation_renyi.csv

The sum is that of arXiv:2502.08202v3, Theorem 4.8: over the partitions of the order into at most t parts,
here with exact integer coefficients, collected by the number of parts and by the exponent, and 60 digits. It
takes half a minute, for the 966467 partitions of 60.
"""

import math
import sys
from collections import defaultdict

import mpmath as mp

ORDERS = (2, 3, 7, 20, 60)
STEPS = (1, 3, 50, 1000, 10**9)
SIGMAS = ("0.01", "0.2", "0.5", "1", "2", "20", "1000")

Coefficients = dict[tuple[int, int], int]


def coefficients(order: int) -> Coefficients:
    """Return how many partitions of a set have l blocks and the sum q of p (p - 1) over their sizes p."""
    found: Coefficients = defaultdict(int)

    def choose(rest: int, largest: int, parts: int, exponent: int, ways: int) -> None:
        if rest == 0:
            found[parts, exponent] += ways
            return
        if largest == 1:
            found[parts + rest, exponent] += ways
            return
        for count in range(rest // largest + 1):
            left = rest - count * largest
            chosen = math.factorial(rest) // (
                math.factorial(left) * math.factorial(largest) ** count * math.factorial(count)
            )
            grown = exponent + count * largest * (largest - 1)
            choose(left, largest - 1, parts + count, grown, ways * chosen)

    choose(order, order, 0, 0, 1)
    return found


def log_moment(found: Coefficients, order: int, steps: int, sigma: str) -> mp.mpf:
    """Return the logarithm of the moment of that order of the mean of t lognormal ratios."""
    half = 1 / (2 * mp.mpf(sigma) ** 2)
    total = mp.mpf(0)
    for (parts, exponent), ways in found.items():
        if parts <= steps:
            total += ways * math.perm(steps, parts) * mp.exp(exponent * half)
    return mp.log(total / mp.mpf(steps) ** order)


def main() -> None:
    """Print the table."""
    sys.stdout.write("sigma,steps,order,log_moment\n")
    with mp.workdps(60):
        for order in ORDERS:
            found = coefficients(order)
            for steps in STEPS:
                for sigma in SIGMAS:
                    value = mp.nstr(log_moment(found, order, steps, sigma), 20)
                    sys.stdout.write(f"{sigma},{steps},{order},{value}\n")


if __name__ == "__main__":
    main()
