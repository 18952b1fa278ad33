"""What is averaged to find the advantage for least squares: the gain of the best attack, in [0, 1]."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from privcore.membership.gaussian_mean.problems import MembershipRegressionAdvantage
from privcore.membership.regression.likelihood_ratio import draw, log_ratio
from privcore.method import Cost

Array = NDArray[np.float64]

INTERPOLATES = "With no more records than features the regression interpolates, and the advantage is 1."
RATIO_ERROR = 1e-9
"""Error allowed for the logarithm of a likelihood ratio, hence for a gain."""
_CLEAR = 2.0**-40
"""Distance of uniform numbers from 0 and 1."""


def gains(problem: MembershipRegressionAdvantage, uniforms: Array) -> Array:
    r"""Return the gain of the best attack for draws whose mean is the advantage.

    It is $(1 - \gamma / L)_+$ of training records for $\gamma \ge 1$, and $(1 - L / \gamma)_+$ of fresh
    ones for $\gamma < 1$.

    Args:
        problem: With more records than features.
        uniforms: Uniform numbers, shape (6, draws).

    Returns:
        Numbers in [0, 1], shape (draws,).

    Reference:
        arXiv:2310.13786v6, equation 7.
    """
    n, d, odds = problem.records, problem.coordinates, problem.odds
    drawn = draw(np.clip(uniforms, _CLEAR, 1.0 - _CLEAR), n, d, member=odds >= 1.0)
    above = log_ratio(drawn, n, d) - np.log(odds)
    return np.asarray(-np.expm1(np.minimum(0.0, -above if odds >= 1.0 else above)))


def block_sizes(draws: int, block: int) -> Iterator[int]:
    """Yield sizes of blocks that are drawn one after the other."""
    for start in range(0, draws, block):
        yield min(block, draws - start)


def gain_cost(draws: int, block: int) -> Cost:
    """Return the cost of that many gains, drawn in blocks."""
    return Cost(seconds=0.005 + 4e-6 * draws, bytes=500.0 * min(draws, block))
