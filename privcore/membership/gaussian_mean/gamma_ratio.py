"""Logarithms of ratios of gamma functions, without cancellation between large values."""

import math

_LARGE = 32.0


def log_half_ratio(x: float) -> float:
    r"""Return $\ln(\Gamma(x + 1/2) / \Gamma(x))$ to about 1e-14.

    Args:
        x: Positive.

    Reference:
        Tricomi and Erdelyi (1951), The asymptotic expansion of a ratio of gamma functions.

    Example:
        >>> round(math.exp(log_half_ratio(0.5)) * math.sqrt(math.pi), 12)
        1.0
    """
    if x < _LARGE:
        return math.lgamma(x + 0.5) - math.lgamma(x)
    t = 1.0 / x
    series = -1.0 / 8.0 + t**2 * (1.0 / 192.0 + t**2 * (-1.0 / 640.0 + t**2 * 17.0 / 14336.0))
    return 0.5 * math.log(x) + t * series


def stirling(x: float) -> float:
    r"""Return $\ln \Gamma(x) - (x - \tfrac12) \ln x + x - \tfrac12 \ln 2 \pi$ to about 1e-14.

    Args:
        x: Positive.

    Example:
        >>> round(stirling(1.0), 12)
        0.081061466795
    """
    if x < _LARGE:
        return math.lgamma(x) - (x - 0.5) * math.log(x) + x - 0.5 * math.log(2.0 * math.pi)
    t = 1.0 / x
    return t * (1.0 / 12.0 + t**2 * (-1.0 / 360.0 + t**2 * (1.0 / 1260.0 - t**2 / 1680.0)))


def mean_norm(dimension: int) -> float:
    r"""Return the mean norm of a standard normal vector, $\sqrt 2 \Gamma((d + 1) / 2) / \Gamma(d / 2)$.

    Example:
        >>> round(mean_norm(2), 12) == round(math.sqrt(math.pi / 2.0), 12)
        True
    """
    return math.sqrt(2.0) * math.exp(log_half_ratio(0.5 * dimension))
