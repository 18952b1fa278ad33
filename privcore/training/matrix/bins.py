"""Bounds of balls-in-bins sampling with correlated noise, by tractable covariances: docs/matrix.md."""

from privcore.likelihood_ratio.correlated.chains import shortest
from privcore.likelihood_ratio.correlated.majorants import blocks, cyclic
from privcore.likelihood_ratio.correlated.minorants import ultrametric
from privcore.likelihood_ratio.distribution import LikelihoodRangeError, Resolution
from privcore.likelihood_ratio.grid import Array
from privcore.likelihood_ratio.questions import SHARE, SMALLEST_DELTA, Question, tier
from privcore.training.samplers import Above, Bounds

FINENESS = 0.05
"""Width of the cells of the product with the factor of all bins, in local standard deviations."""


def bins(gram: Array) -> Bounds:
    """Return ratios that bound a run whose examples are each in one bin of every epoch.

    Args:
        gram: Gram matrix of the means of the bins, over the variance of the noise.

    Example:
        >>> import numpy as np
        >>> bins(np.eye(4)).below
        (OneOfSteps(ratio=Gaussian(mu=0.99...), steps=4),)
    """
    below = ultrametric(gram)
    above = dict.fromkeys(Above(each.ratio) for each in blocks(cyclic(gram)))
    return Bounds(above=tuple(above), below=() if below is None else (below,))


def along_chain(gram: Array, question: Question, lower: float, upper: float) -> float:
    """Return the upper end in direction remove that follows from a chain, if it is smaller than a known one.

    Args:
        gram: As for `bins`.
        question: Epsilon or delta in direction remove.
        lower: Lower end of the answer.
        upper: Known upper end.
    """
    path = shortest(cyclic(gram))
    scale = question.scale if question.scale is not None else max(lower, 1e-3 * upper)
    if path is None or scale < SMALLEST_DELTA:
        return upper
    try:
        bracket = path.ratio.bracket(Resolution(fineness=FINENESS, tail=tier(SHARE * scale)))
    except LikelihoodRangeError:
        return upper
    return min(upper, question.upper(bracket.upper))
