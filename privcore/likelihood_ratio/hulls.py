"""Distributions of a ratio R from bounds of the means of (R - kappa)_+ and (kappa - R)_+, calls and puts."""

import itertools
import math
from dataclasses import dataclass

import numpy as np

from privcore.likelihood_ratio.distribution import LikelihoodRangeError, RatioDistribution
from privcore.likelihood_ratio.kernel import Array
from privcore.numerics.rounding import UNIT

ROUNDED = 8.0
"""Counted: roundings for each atom of the sums that compare a distribution with its bounds."""


@dataclass(frozen=True)
class _Point:
    """Value at kappa of the mean of (R - kappa)_+, a call, or of (kappa - R)_+, a put."""

    kappa: float
    value: float
    call: bool

    def slope(self, other: "_Point") -> "_Slope":
        """Return the slope of the chord to the next point."""
        start = self.value + (1.0 - self.kappa) if other.call and not self.call else self.value
        return _Slope((other.value - start) / (other.kappa - self.kappa), other.call)


@dataclass(frozen=True)
class _Slope:
    """Slope of the puts, or of the calls, which is less by 1: each has the digits of its own tail."""

    value: float
    call: bool

    def rise(self, other: "_Slope") -> float:
        """Return by how much the other slope is larger."""
        return other.value - self.value if self.call == other.call else (1.0 + other.value) - self.value


@dataclass(frozen=True)
class _Line:
    """Line a - b kappa below the calls, or b kappa - a below the puts."""

    a: float
    b: float
    call: bool

    def atom(self, other: "_Line") -> tuple[float, float]:
        """Return the kappa at which the next line is met, and the mass there."""
        slopes = [_Slope(-line.b if line.call else line.b, line.call) for line in (self, other)]
        mass = slopes[0].rise(slopes[1])
        if self.call == other.call:
            moment = self.a - other.a if self.call else other.a - self.a
        else:
            moment = 1.0 - self.a - other.a
        return (moment / mass if mass > 0.0 else -math.inf), mass

    def at(self, kappa: float) -> float:
        """Return the value of the line."""
        return self.a - self.b * kappa if self.call else self.b * kappa - self.a


def upper_hull(puts: dict[float, float], calls: dict[float, float]) -> RatioDistribution:
    """Return the distribution of the lower convex hull of upper bounds, by kappa; both meet at kappa = 1."""
    points = [_Point(0.0, 0.0, False), *(_Point(x, puts[x], False) for x in sorted(puts) if x < 1.0)]
    points.append(_Point(1.0, min(puts[1.0], calls[1.0]), False))
    points += (_Point(x, calls[x], True) for x in sorted(calls) if x > 1.0)
    flat = _Slope(0.0, True)
    hull: list[_Point] = []
    for point in points:
        while len(hull) > 1 and hull[-2].slope(hull[-1]).rise(hull[-1].slope(point)) <= 0.0:
            hull.pop()
        hull.append(point)
    while len(hull) > 1 and hull[-2].slope(hull[-1]).rise(flat) <= 0.0:
        hull.pop()
    slopes = [_Slope(0.0, False), *(one.slope(other) for one, other in itertools.pairwise(hull)), flat]
    p = np.array([one.rise(other) for one, other in itertools.pairwise(slopes)])
    x, infinite = np.array([point.kappa for point in hull]), hull[-1].value
    if not float(p.min()) > 0.0:
        raise LikelihoodRangeError
    # The masses are differences of slopes: compare their means of hinges with the bounds.
    means = [_mean(x, p, infinite, point.kappa, point.call) for point in hull[1:]]
    if not min(means) > 0.0:
        raise LikelihoodRangeError
    ratios = [point.value / mean for point, mean in zip(hull[1:], means, strict=True)]
    factor = max(*ratios, 1.0 / float(p.sum()), 1.0 / (float(p @ x) + infinite), 1.0)
    return RatioDistribution(
        x=x, p=p, infinite=infinite, mass_error=math.log(factor) + ROUNDED * x.size * UNIT
    )


def lower_lines(left: list[tuple[float, float]], right: list[tuple[float, float]]) -> RatioDistribution:
    """Return the distribution of the largest of the lines below the puts and of those below the calls."""
    lines = [_Line(a, b, False) for a, b in sorted(left, key=lambda line: line[1])]
    lines += (_Line(a, b, True) for a, b in sorted(right, key=lambda line: -line[1]))
    kept: list[_Line] = []
    for line in lines:
        if kept and kept[-1].atom(line)[1] <= 0.0:
            continue
        while len(kept) > 1 and kept[-2].atom(kept[-1])[0] >= kept[-1].atom(line)[0]:
            kept.pop()
        kept.append(line)
    atoms = np.array([one.atom(other) for one, other in itertools.pairwise(kept)])
    x, p = atoms[:, 0], atoms[:, 1]
    if not (float(x.min()) >= 0.0 and np.all(np.diff(x) > 0.0)):
        raise LikelihoodRangeError
    between = x[:-1] + 0.5 * np.diff(x)
    pairs = [
        (_mean(x, p, 0.0, float(kappa), line.call), line.at(float(kappa)))
        for line, kappa in zip(kept[1:-1], between, strict=True)
    ]
    ratios = [mean / bound if bound > 0.0 else math.inf for mean, bound in pairs]
    factor = max(*ratios, float(p.sum()), float(p @ x), 1.0)
    return RatioDistribution(x=x, p=p, mass_error=math.log(factor) + ROUNDED * x.size * UNIT)


def _mean(x: Array, p: Array, infinite: float, kappa: float, call: bool) -> float:
    """Return the mean of (X - kappa)_+, or of (kappa - X)_+."""
    return float(p @ np.maximum(x - kappa, 0.0)) + infinite if call else float(p @ np.maximum(kappa - x, 0.0))
