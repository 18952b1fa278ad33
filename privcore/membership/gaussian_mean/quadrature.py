r"""Advantage for the mean of Gaussian records, as an integral over the squared norm of a record.

Given $V = |z|^2$, chi-squared with d degrees of freedom, the likelihood ratio is that of two normals, and
$$\Delta_\gamma = \mathrm E \int_c^\infty (1 - e^{-\rho (x - c) / 2}) \, N(dx; 0, 4V), \quad
  c = (2 \ln \gamma + d \ln(1 - \rho^2)) / \rho$$
for $\gamma \ge 1$, and for $\gamma < 1$ the mirror image $\frac1\gamma \int_{-\infty}^c (e^{\rho (c - x) / 2}
- 1)$. The inner integrals are privacy profiles of Gaussian noise. All integrands are positive.

The error of Gauss-Legendre panels in $y = \ln V$ is proved: for Re V > 0 the normal density satisfies
$|N(x; 0, 4V)| = (R / |V|)^{1/2} N(x; 0, 4R)$ with $1 / R = \mathrm{Re}(1 / V)$. So the integrand on an
ellipse around a panel has a bound M from its values on the real line, and n nodes have an error of at most
$\frac{64}{15} M \varrho^{2 - 2n} / (1 - \varrho^{-2})$ times half the width. The values or bounds grow in V.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privcore.answer import Answer
from privcore.membership.gaussian_mean.gamma_ratio import stirling
from privcore.membership.gaussian_mean.problems import MembershipMeanAdvantage
from privcore.membership.gaussian_mean.profile import log_profile
from privcore.method import Cost, Direction, Method
from privcore.papers import AUBINAIS

Array = NDArray[np.float64]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_ELLIPSE = 2.0 + math.sqrt(3.0)
"""Sum of the half-axes of the ellipse, 2 and sqrt(3), in half-widths of a panel."""
_GAUSS_ERROR = 64.0 / 15.0 * _ELLIPSE**-30 / (1.0 - _ELLIPSE**-2)
_CELLS = 8
"""Cells of a panel; the ellipse covers half of the cells of each neighbouring panel."""
_NEGLIGIBLE = 42.0
"""Tails begin where they are bounded by the peak times exp(-42)."""
_PRECISION = 1e-13
_MOST_PANELS = 2**12
_WIDEST = 0.6
"""Largest half-width of a panel, which keeps the ellipse in Re V > 0."""
LEAST_LOG = -690.0
"""Logarithm below which the advantage is not distinguished from 0."""


@dataclass(frozen=True, kw_only=True)
class MeanIntegral:
    """The integrand for one correlation and one threshold.

    Attributes:
        half: Half the number of coordinates.
        rho: Correlation in (0, 1).
        log_rest: Logarithm of 1 - rho^2.
        cut: The number c.
        below: Whether gamma is below 1; then V is in units of 1 - rho^2.
    """

    half: float
    rho: float
    log_rest: float
    cut: float
    below: bool

    def log_bounds(self) -> tuple[float, float]:
        """Return logarithms of bounds of the integral, up to the rounding of its terms."""
        peak, start = self._peak()
        if peak < LEAST_LOG - 30.0:
            return -math.inf, LEAST_LOG
        low, high = self._ends(peak, start)
        tails = math.exp(float(self._left(np.array([low]))[0]) - peak) + math.exp(self._right(high) - peak)
        panels = max(8, math.ceil((high - low) / (2.0 * _WIDEST)))
        while True:
            value, error = self._panels(low, high, panels, peak)
            if error <= _PRECISION * value or panels >= _MOST_PANELS:
                break
            panels *= 2
        least = value - error
        return (math.log(least) + peak if least > 0.0 else -math.inf), math.log(value + error + tails) + peak

    def _variance(self, y: Array) -> Array:
        """Return V at y, where y is the logarithm of V relative to its mean."""
        return 2.0 * self.half * np.exp(y - (self.log_rest if self.below else 0.0))

    def _log_profile(self, v: Array) -> Array:
        """Return the logarithm of the profile at V; for gamma below 1, of the profile that belongs to V'."""
        root = np.sqrt(v)
        a, shift = 0.5 * self.cut / root, self.rho * root
        return log_profile(-a - shift if self.below else a, shift)

    @property
    def _log_constant(self) -> float:
        """Logarithm of the density of y at 0."""
        return 0.5 * math.log(self.half / (2.0 * math.pi)) - stirling(self.half)

    def _log_density(self, y: Array) -> Array:
        return self._log_constant + self.half * (y - np.expm1(y))

    def _log_integrand(self, y: Array) -> Array:
        return self._log_density(y) + self._log_profile(self._variance(y))

    def _growing(self, y: Array, cosine: float) -> Array:
        """Return the logarithm of a bound, increasing in y, of the inner integral at R = V / cosine."""
        r = self._variance(y) / cosine
        if self.below:  # the profile times the change of measure from V' to V
            return self._log_profile(r) + 0.5 * self.rho**2 * r
        if self.cut >= 0.0:
            return self._log_profile(r)
        return np.minimum(0.0, np.log(0.5 * self.rho * (np.sqrt(r) - self.cut)))

    def _left(self, y: Array) -> Array:
        """Return the logarithm of a bound, increasing in y, of the integral up to y."""
        return self._log_constant + self.half * (1.0 + y) + self._growing(y, 1.0) - math.log(self.half)

    def _right(self, y: float) -> float:
        """Return the logarithm of a bound, decreasing in y, of the integral from y > 0 on."""
        density = float(self._log_density(np.array([y]))[0])
        return density - math.log(self.half * math.expm1(y))

    def _peak(self) -> tuple[float, float]:
        """Return the largest logarithm of the integrand, and its position."""
        low, high = -40.0, 12.0
        while True:
            y = np.linspace(low, high, 129)
            values = self._log_integrand(y)
            best = int(np.argmax(values))
            if high - low < 1e-3 / math.sqrt(self.half):
                return float(values[best]), float(y[best])
            low, high = float(y[max(0, best - 1)]), float(y[min(128, best + 1)])

    def _ends(self, peak: float, start: float) -> tuple[float, float]:
        """Return both ends of integration, beyond which the integral is negligible."""
        target = peak - _NEGLIGIBLE
        step = 1.0 / math.sqrt(self.half)
        low = start
        while float(self._left(np.array([low]))[0]) > target:
            low, step = low - step, 1.3 * step
        step = 1.0 / math.sqrt(self.half)
        high = max(start, 0.0) + step
        while self._right(high) > target:
            high, step = high + step, 1.1 * step
        return low, high

    def _panels(self, low: float, high: float, panels: int, peak: float) -> tuple[float, float]:
        """Return the sum over panels and a bound of its error, both divided by exp(peak)."""
        radius = 0.5 * (high - low) / panels
        centres = low + radius * (1.0 + 2.0 * np.arange(panels))
        y = (centres[:, None] + radius * _NODES).ravel()
        terms = np.exp(self._log_integrand(y) - peak).reshape(panels, -1)
        value = radius * float((terms * _WEIGHTS).sum())

        cosine = math.cos(math.sqrt(3.0) * radius)
        edges = low + 2.0 * radius / _CELLS * np.arange(-_CELLS / 2, panels * _CELLS + _CELLS / 2 + 1)
        rate = self.half * cosine / (math.exp(self.log_rest) if self.below else 1.0)
        top = np.clip(math.log(self.half / rate), edges[:-1], edges[1:])  # of half * y - rate * exp(y)
        cells = self.half * (1.0 + top) - rate * np.exp(top) + self._growing(edges[1:], cosine)
        cells += self._log_constant - 0.5 * math.log(cosine) - peak
        largest = np.lib.stride_tricks.sliding_window_view(cells, 2 * _CELLS)[::_CELLS].max(axis=1)
        return value, radius * _GAUSS_ERROR * float(np.exp(np.minimum(largest, 300.0)).sum())


_LEAST_SURPLUS = 1e-200
"""Surplus below which the lower end is computed for a release with more noise."""
_WIDE = 1e-9
"""Relative width above which the integral over members is computed as well.

If the release is nearly the record, the integral over fresh records has no tight bound off the real line.
"""
_EPSILON = 2.0**-52


class MembershipQuadrature(Method[MembershipMeanAdvantage]):
    """Integrate the Gaussian privacy profile over the squared norm of a record, between proved ends.

    The threshold is rounded outwards, the error of the quadrature is proved, and a relative slack covers the
    rounding of its terms; a tenth of this slack was measured against arithmetic of 40 digits. One record
    without noise is identified with certainty.
    """

    name = "membership.quadrature"
    problems = (MembershipMeanAdvantage,)
    direction = Direction.ENCLOSURE
    reference = (
        f"{AUBINAIS}, equation 7 and Theorem 6, for Gaussian records; Trefethen (2013), Approximation "
        "Theory and Approximation Practice, Theorem 19.3"
    )

    def cost(self, problem: MembershipMeanAdvantage) -> Cost:
        return Cost(seconds=0.03, bytes=2e6)

    def answer(self, problem: MembershipMeanAdvantage, seed: int) -> Answer:
        if problem.records == 1 and problem.release_noise == 0.0:
            return Answer.enclosure(1.0, 1.0, detail="the release equals the record")
        surplus = max(problem.surplus, _LEAST_SURPLUS)
        below = problem.odds < 1.0
        lower, upper = mean_advantage(problem.coordinates, surplus, problem.odds, below=below)
        if upper - lower > _WIDE * upper and below:
            other = mean_advantage(problem.coordinates, surplus, problem.odds, below=False)
            lower, upper = max(lower, other[0]), min(upper, other[1])
        if problem.surplus < surplus:
            return Answer.enclosure(
                lower, 1.0, detail="the release is nearly the record; the lower end is for more noise"
            )
        return Answer.enclosure(lower, upper, detail=f"correlation {problem.correlation:.6g}")


def mean_advantage(coordinates: int, surplus: float, odds: float, *, below: bool) -> tuple[float, float]:
    r"""Return proved ends of the advantage for Gaussian vectors of correlation $\rho = (1 + q)^{-1/2}$.

    Args:
        coordinates: Dimension d of release and record, >= 1.
        surplus: Number $q = \rho^{-2} - 1$, > 0; that of a mean is $n - 1 + n^2 \tau^2$.
        odds: Odds gamma of a non-member against a member, > 0.
        below: Whether to integrate over fresh records instead of members. Both are correct; the former has no
            cancellation for odds below 1, and the latter none for odds above 1.

    Returns:
        Lower end (rounded down) and upper end (rounded up) in [0, 1].

    Reference:
        arXiv:2310.13786v6, equation 7.

    Example:
        >>> [round(end, 10) for end in mean_advantage(5, 9.0, 1.0, below=False)]
        [0.2759952992, 0.2759952992]
    """
    rho = 1.0 / math.sqrt(1.0 + surplus)
    log_rest = -math.log1p(1.0 / surplus) if surplus >= 1.0 else math.log(surplus) - math.log1p(surplus)
    gain, loss = 2.0 * math.log(odds), coordinates * log_rest
    cut = (gain + loss) / rho
    moved = 4.0 * _EPSILON * (abs(gain) + abs(loss)) / rho + 8.0 * _EPSILON * abs(cut)
    ends = []
    for side, move in zip((0, 1), (-moved, moved) if below else (moved, -moved), strict=True):
        integral = MeanIntegral(
            half=0.5 * coordinates, rho=rho, log_rest=log_rest, cut=cut + move, below=below
        )
        log = integral.log_bounds()[side]
        slack = 2e-13 + 4e-15 * math.sqrt(coordinates) + 4e-15 * abs(max(log, 2.0 * LEAST_LOG))
        ends.append(math.exp(log + slack if side else log - slack))
    if odds < 1.0 and not below:  # the integral is the largest TPR - gamma FPR
        ends = [
            (end - (1.0 - odds)) / odds + side * 4.0 * _EPSILON / odds
            for side, end in zip((-1, 1), ends, strict=True)
        ]
    elif odds > 1.0 and below:  # the integral is the largest TNR - FNR / gamma
        ends = [
            odds * end - (odds - 1.0) + side * 4.0 * _EPSILON * odds
            for side, end in zip((-1, 1), ends, strict=True)
        ]
    return min(max(ends[0], 0.0), 1.0), min(max(ends[1], 0.0), 1.0)
