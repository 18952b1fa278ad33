"""Lower distribution of one shuffled epoch: the cell of its largest output, which composes over epochs."""

import math
from functools import lru_cache

import numpy as np

from privcore.allocation.largest import Outputs, log_exceedances
from privcore.likelihood_ratio.distribution import (
    LARGEST_RATIO,
    LikelihoodRangeError,
    RatioDistribution,
    Resolution,
)
from privcore.likelihood_ratio.grid import MOST_CELLS, Array
from privcore.numerics.rounding import UNIT

_LARGEST_ERROR = 1e-8
"""Cells whose masses have a larger relative error are left out."""
_SCOUTED = 512
"""Number of thresholds among which the lowest that matters is found."""


@lru_cache(maxsize=32)
def largest_output(s: float, steps: int, res: Resolution) -> RatioDistribution:
    r"""Return the distribution of the ratio of the largest output in cells, to be shared.

    The means are $2 e_j$ for a random step j under P, and $e_j$ under Q. Over a cell from c to d the largest
    output has probability $e^{-h(d)} (1 - e^{h(d) - h(c)})$ with h from `log_exceedances`, whose bounds are
    used for both sides. The cell of an outcome is post-processing, and a cell that is left out only lowers
    both directions.

    Args:
        s: Inverse noise multiplier, > 0.
        steps: Number t of steps.
        res: Width of the cells, and the mass beyond them.

    Raises:
        LikelihoodRangeError: The ratio of every cell exceeds the range of doubles.

    Reference:
        Chua et al. (2024), arXiv:2403.17673v2 and 2411.04205 (the largest coordinate).

    Example:
        >>> law = largest_output(1.0, 100, Resolution(fineness=0.1, tail=1e-10))
        >>> round(float(law.p @ law.x), 6)
        1.0
    """
    others: Outputs = ((steps - 1, 0.0),) if steps > 1 else ()
    nats = 1.0 - math.log(res.tail)
    reach = math.sqrt(2.0 * nats)
    cuts = np.linspace(-reach, max(2.0 * s, math.sqrt(2.0 * math.log(steps))) + reach, _SCOUTED)
    certain = log_exceedances(cuts, ((1, s), *others), -1) > math.log(nats)  # some output is above
    low = float(cuts[max(0, int(np.argmin(certain)) - 1)])
    width = res.fineness / max(2.0, s)
    cuts = np.linspace(low, cuts[-1], min(MOST_CELLS, math.ceil((cuts[-1] - low) / width) + 1))
    p_low, p_high = _cells(cuts, ((1, 2.0 * s), *others))
    q_low, q_high = _cells(cuts, ((1, s), *others))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        mass, value = np.sqrt(q_low) * np.sqrt(q_high), np.sqrt(p_low / q_high) * np.sqrt(p_high / q_low)
        error = np.maximum(p_high / p_low, q_high / q_low) - 1.0
    keep = (error < _LARGEST_ERROR) & (p_low > 1e-280) & (q_low > 1e-280) & (value < LARGEST_RATIO)
    if not keep.any():
        raise LikelihoodRangeError
    order = np.argsort(value[keep])
    worst = 2.0 * float(np.max(error[keep], initial=0.0)) + 16.0 * UNIT
    return RatioDistribution(
        x=value[keep][order], p=mass[keep][order], mass_error=worst, value_error=2.0 * worst
    )


def _cells(cuts: Array, outputs: Outputs) -> tuple[Array, Array]:
    """Return lower and upper bounds of the probabilities of the cells between cuts, and beyond the last."""
    with np.errstate(over="ignore", under="ignore"):
        most = np.append(np.exp(log_exceedances(cuts, outputs, 1)), 0.0)
        least = np.append(np.exp(log_exceedances(cuts, outputs, -1)), 0.0)
        low = np.exp(-most[1:]) * -np.expm1(-np.maximum(least[:-1] - most[1:], 0.0))
        high = np.exp(-least[1:]) * -np.expm1(least[1:] - most[:-1])
    slack = 16.0 * UNIT
    return low * (1.0 - slack), high * (1.0 + slack)
