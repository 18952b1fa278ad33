"""Normal distribution function and its inverse for compiled loops, to a few units of rounding."""

import math

from privcore.numerics.compiled import compiled

_TAIL = 0.02425
_ROOT = math.sqrt(2.0 * math.pi)


@compiled()
def below(x: float) -> float:
    """Return the probability that a standard normal variable lies below x.

    Example:
        >>> below(0.0)
        0.5
    """
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


@compiled()
def quantile(p: float) -> float:
    """Return the x below which a standard normal variable lies with probability p.

    P. Acklam's rational approximation, with relative error 1.2e-9, is refined by one step of Halley's method.

    Args:
        p: Probability; values <= 0 return -infinity, values >= 1 return infinity.

    Example:
        >>> round(quantile(0.975), 12), quantile(0.0)
        (1.95996398454, -inf)
    """
    if p <= 0.0:
        return -math.inf
    if p >= 1.0:
        return math.inf
    if p > 0.5:
        return -_lower(1.0 - p)
    return _lower(p)


@compiled()
def _lower(p: float) -> float:
    """Return the quantile of a probability in (0, 1/2]."""
    if p < _TAIL:
        q = math.sqrt(-2.0 * math.log(p))
        top = -7.784894002430293e-3
        for c in (
            -3.223964580411365e-1,
            -2.400758277161838,
            -2.549732539343734,
            4.374664141464968,
            2.938163982698783,
        ):
            top = top * q + c
        bottom = 7.784695709041462e-3
        for d in (3.224671290700398e-1, 2.445134137142996, 3.754408661907416, 1.0):
            bottom = bottom * q + d
        x = top / bottom
    else:
        q = p - 0.5
        r = q * q
        top = -3.969683028665376e1
        for a in (
            2.209460984245205e2,
            -2.759285104469687e2,
            1.383577518672690e2,
            -3.066479806614716e1,
            2.506628277459239,
        ):
            top = top * r + a
        bottom = -5.447609879822406e1
        for b in (1.615858368580409e2, -1.556989798598866e2, 6.680131188771972e1, -1.328068155288572e1, 1.0):
            bottom = bottom * r + b
        x = top * q / bottom
    wrong = (below(x) - p) * _ROOT * math.exp(0.5 * x * x)
    return x - wrong / (1.0 + 0.5 * x * wrong)
