"""Ratios of steps without Gaussian noise: finitely many ratios, and Laplace noise."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache
from itertools import pairwise

import numpy as np

from privcore.likelihood_ratio.distribution import (
    LARGEST_RATIO,
    LikelihoodRangeError,
    RatioBracket,
    RatioDistribution,
    Resolution,
)
from privcore.likelihood_ratio.grid import Array
from privcore.likelihood_ratio.ratios import Ratio
from privcore.likelihood_ratio.steps import LaplaceStep
from privcore.numerics.rounding import UNIT

LARGEST_LOSS = math.log(LARGEST_RATIO)
SMALLEST_FINITE_MASS = 1e-290
"""Smaller masses would lose digits to underflow."""
_RATES = np.concatenate([np.geomspace(1e-15, 1e-2, 160), np.linspace(1e-2, 0.5, 90)[1:]])
"""False positive rates of the tests whose bounds become a privacy profile."""
_LARGEST_LOG = 1e6
"""Logarithm of the largest moment of a ratio that bounds a profile."""


@dataclass(frozen=True)
class Finite(Ratio):
    r"""Ratio with finitely many values $e^{\ell}$.

    Attributes:
        losses: Logarithms $\ell$ of the values, ascending; minus infinity for the value 0. Each errs by at
            most eight roundings of itself, and 8 u.
        masses: Probabilities of the values under Q, positive. Each errs by at most four roundings of the
            largest loss, and 16 u, relatively.
        infinite: Probability under P of the outputs that are impossible under Q.
    """

    losses: tuple[float, ...]
    masses: tuple[float, ...]
    infinite: float = 0.0

    def build(self, res: Resolution) -> RatioBracket:
        if self.largest_loss > LARGEST_LOSS or min(self.masses) < SMALLEST_FINITE_MASS:
            raise LikelihoodRangeError
        ratio = RatioDistribution(
            x=np.exp(np.array(self.losses)),
            p=np.array(self.masses),
            infinite=self.infinite,
            mass_error=(16.0 + 4.0 * self.largest_loss) * UNIT,
            value_error=(12.0 + 8.0 * self.largest_loss) * UNIT,
        )
        return RatioBracket(lower=ratio, upper=ratio)

    @property
    def largest_loss(self) -> float:
        """Largest size of a finite loss."""
        return max((abs(loss) for loss in self.losses if loss > -math.inf), default=0.0)

    @property
    def width(self) -> float:
        return self.largest_loss


@dataclass(frozen=True)
class Laplace(Ratio):
    """Ratio of Laplace noise of a scale at sensitivity 1."""

    scale: float

    def build(self, res: Resolution) -> RatioBracket:
        if 1.0 / self.scale > LARGEST_LOSS:
            raise LikelihoodRangeError
        return LaplaceStep(self.scale).ratio(res)

    @property
    def width(self) -> float:
        return 1.0 / self.scale


def approximate(epsilon: float, delta: float) -> Finite:
    r"""Return the distribution of a step that dominates all $(\varepsilon, \delta)$-private steps.

    P has mass $\delta$ where Q has none, Q has mass $\delta$ where P has none, and the rest is the randomized
    response of $\varepsilon$. The profile $H_\kappa$ of a pair is convex in $\kappa$, and the definition
    bounds it by 1, $1 - e^{-\varepsilon}(1 - \delta)$ and $\delta$ at $0$, $e^{-\varepsilon}$ and
    $e^{\varepsilon}$. The profile of this distribution consists of the chords between these values.

    Example:
        >>> approximate(epsilon=1.0, delta=0.25).infinite
        0.25
    """
    low = math.exp(-epsilon)
    rest = (1.0 - delta) / (1.0 + low)
    losses: tuple[float, ...] = (-epsilon, epsilon)
    masses: tuple[float, ...] = (rest, rest * low)
    if epsilon == 0.0:
        losses, masses = (0.0,), (1.0 - delta,)
    if delta > 0.0:
        losses, masses = (-math.inf, *losses), (delta, *masses)
    return Finite(losses, masses, infinite=delta)


def covering(pairs: Sequence[tuple[float, float]]) -> Finite:
    r"""Return the distribution that dominates all steps with several $(\varepsilon_i, \delta_i)$ guarantees.

    Each pair bounds the profile as in `approximate`. The profile is convex, so it is at most the largest
    convex function below all of these points, which is the profile of this distribution: its masses are the
    changes of the slope, computed with 60 digits more than cancel. All numbers are first raised by one
    rounding, since the decimals that they come from may be larger.

    Args:
        pairs: Epsilon in [0, 700] and delta in [0, 1] of each guarantee; the step has all of them.

    Example:
        >>> covering([(1.0, 0.25)]).losses == (-math.inf, -1.0000000000000002, 1.0000000000000002)
        True
        >>> len(covering([(0.5, 0.1), (1.0, 0.01), (2.0, 1e-3)]).losses)
        7
    """
    far = max(epsilon for epsilon, _ in pairs)
    small = min((delta for _, delta in pairs if delta > 0.0), default=1.0)
    with localcontext() as context:
        context.prec = 60 + math.ceil(
            (far - math.log(small)) / math.log(10.0)
        )  # of 1 - (1 - delta) / e^epsilon
        rise, least = 1 + Decimal(2.0 * UNIT), Decimal(1)
        points = {Decimal(0): (Decimal(1), -math.inf)}
        for epsilon, delta in sorted(pairs):
            loss = Decimal(epsilon) * rise
            least = min(least, Decimal(delta) * rise)
            ratio = loss.exp()
            points[1 / ratio] = (1 - (1 - least) / ratio, -float(loss))
            points[ratio] = (least, float(loss))
        hull: list[tuple[Decimal, Decimal, float]] = []
        for x, (y, log) in sorted(points.items()):
            while len(hull) > 1 and _slope(hull[-2], hull[-1]) >= _slope(hull[-1], (x, y, log)):
                hull.pop()
            hull.append((x, y, log))
        slopes = [Decimal(-1), *(_slope(*two) for two in pairwise(hull)), Decimal(0)]
        changes = [float(after - before) for before, after in pairwise(slopes)]
        kept = [(point[2], mass) for point, mass in zip(hull, changes, strict=True) if mass > 0.0]
    return Finite(tuple(log for log, _ in kept), tuple(mass for _, mass in kept), infinite=float(least))


def _slope(first: tuple[Decimal, Decimal, float], second: tuple[Decimal, Decimal, float]) -> Decimal:
    return (second[1] - first[1]) / (second[0] - first[0])


@lru_cache(maxsize=64)
def renyi_private(orders: tuple[tuple[Decimal, Decimal], ...]) -> Finite:
    r"""Return a distribution that dominates all steps whose Renyi divergences have these bounds.

    A bound $\varepsilon_\alpha$ of the divergences of both directions bounds $E_Q X^s$ by
    $c = e^{(\alpha - 1) \varepsilon_\alpha}$, for the ratio X and $s = \alpha$ or $1 - \alpha$. If
    $A + B x + C x^s \ge (x - \kappa)_+$ for all $x > 0$, then $H_\kappa \le A + B + C c$, since $E_Q X = 1$.
    For every B, and C > 0, the least A is explicit. The best B and C belong to the line that touches the
    convex set of the error rates that data processing allows, where a test is a step with two outputs: its
    likelihood ratios are the points at which the inequality is an equality. Other B and C give larger bounds,
    so the search for the lines needs no error analysis; the bounds are computed with 60 digits.

    Args:
        orders: Orders above 1, and positive bounds of the divergences of both directions.

    Example:
        >>> guarantee = renyi_private(((Decimal(2), Decimal("0.5")),))
        >>> round(guarantee.infinite, 7), round(math.fsum(guarantee.masses), 7)
        (0.0, 1.0)
    """
    alpha, bound = np.array(orders, dtype=float).T
    s = np.concatenate([alpha, 1.0 - alpha])[:, None]
    most = np.tile((alpha - 1.0) * bound, 2)[:, None]
    odds = np.log(_RATES) - np.log1p(-_RATES)
    low, high = np.zeros((s.size, odds.size)), np.full((s.size, odds.size), 800.0)
    for _ in range(60):
        middle = 0.5 * (low + high)
        x, y = _log_ratios(odds, middle)
        inside = np.logaddexp(s * x + np.log(_RATES), s * y + np.log1p(-_RATES)) <= most
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    best = np.argmin(low, axis=0)
    s = s[best, 0]
    x, y = _log_ratios(odds, np.min(low, axis=0))
    with np.errstate(all="ignore"):
        u, v = (s - 1.0) * x, (s - 1.0) * y
        height = -np.log(np.abs(s) * -np.expm1(-np.abs(u - v))) - np.maximum(u, v)
        slope = -s * np.exp(height + v)
        epsilon = np.log((1.0 - 1.0 / s) * (slope * np.exp(y) - (slope - 1.0) * np.exp(x)))
    used = np.flatnonzero(np.isfinite(height + epsilon) & (np.abs(epsilon) <= LARGEST_LOSS))
    if used.size:
        epsilon[used[np.argmin(np.abs(epsilon[used]))]] = 0.0
    pairs = [(0.0, 1.0)]
    for i in used[epsilon[used] >= 0.0].tolist():
        at, loss = orders[best[i] % alpha.size], float(epsilon[i])
        touching = float(slope[i]), float(height[i])
        pairs.append((loss, _touching(loss, at, *touching, swapped=best[i] >= alpha.size)))
    return covering(pairs)


def _log_ratios(odds: Array, more: Array) -> tuple[Array, Array]:
    """Return the logarithms of the likelihood ratios of a test from the log-odds of its rates."""
    x = np.logaddexp(0.0, -odds) - np.logaddexp(0.0, -odds - more)
    return x, np.logaddexp(0.0, odds) - np.logaddexp(0.0, odds + more)


def _touching(
    epsilon: float, at: tuple[Decimal, Decimal], slope: float, height: float, *, swapped: bool
) -> float:
    """Return the bound A + B + C c of the profile for B = slope and C = exp(height), or 1."""
    order, bound = at
    with localcontext() as context:
        context.prec = 60
        s = 1 - order if swapped else order
        b, c, log = Decimal(slope), Decimal(height).exp(), (order - 1) * bound
        if log > _LARGEST_LOG or b * s >= 0 or (b - 1) * s >= 0:
            return 1.0
        least = [each * (-each / (s * c)) ** (1 / (s - 1)) * (1 - 1 / s) for each in (b, b - 1)]
        return min(1.0, float(max(-least[0], -least[1] - Decimal(epsilon).exp()) + b + c * log.exp()))


def response(noise: float, buckets: int, special: bool) -> Finite:
    r"""Return the distribution of randomized response over k buckets: uniform with probability p.

    If a record is replaced, the ratios are $r$, $1$ and $1/r$ with $r = (k (1 - p) + p) / p$. A special
    record has the uniform distribution; the ratios against it are $k (1 - p) + p$ and $p$.

    Args:
        noise: Probability p of a uniform output, in (0, 1).
        buckets: Number of buckets k, at least 2.
        special: Whether the record is replaced by the special one.

    Example:
        >>> response(noise=0.5, buckets=2, special=True).masses
        (0.5, 0.5)
    """
    share = 1.0 / buckets
    kept = buckets * (1.0 - noise) + noise
    if special:
        return Finite((math.log(noise), math.log(kept)), (1.0 - share, share))
    loss = math.log(kept / noise)
    truth, lie = kept * share, noise * share
    if buckets == 2:
        return Finite((-loss, loss), (truth, lie))
    return Finite((-loss, 0.0, loss), (truth, (buckets - 2) * lie, lie))


def discrete_laplace(noise: float, sensitivity: int) -> Finite:
    r"""Return the distribution of discrete Laplace noise, $e^{-a |x|}$, shifted by an integer.

    Between 0 and the shift, the loss of the output j is $a (2 j - \Delta)$; beyond, it is $\mp a \Delta$. A
    half-line attains the largest change of a probability under each shift by 1, in every coordinate, so the
    shift of one coordinate by the whole sensitivity dominates.

    Args:
        noise: Parameter a, > 0.
        sensitivity: L1 sensitivity, a positive integer.

    Example:
        >>> discrete_laplace(noise=1.0, sensitivity=2).losses
        (-2.0, 0.0, 2.0)
    """
    low = math.exp(-noise)
    losses = tuple(noise * (2 * j - sensitivity) for j in range(sensitivity + 1))
    inner = -math.expm1(-noise) / (1.0 + low)
    masses = [inner * math.exp(-noise * j) for j in range(sensitivity + 1)]
    masses[0] = 1.0 / (1.0 + low)
    masses[-1] = math.exp(-noise * sensitivity) / (1.0 + low)
    return Finite(losses, tuple(masses))
