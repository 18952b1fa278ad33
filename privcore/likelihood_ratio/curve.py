r"""Trade-off curves of two hypotheses from likelihood-ratio distributions, with both ends proved.

A test of a null hypothesis N against an alternative M has a false positive rate a = N(A) and a true positive
rate M(A). By the lemma of Neyman and Pearson the largest true positive rate is

$$T(a) = \inf_{\kappa \ge 0} \big(\kappa a + H_\kappa(M \| N)\big),$$

so it rises with every privacy profile: a dominating distribution bounds it from above, a post-processing from
below. For a discrete distribution T is the broken line through the sums of the masses under N and M, in order
of falling likelihood ratio. The smallest false negative rate 1 - T is the broken line through the sums in the
opposite order; each of the two has the digits that the other loses to cancellation.
"""

from dataclasses import dataclass

import numpy as np

from privcore.likelihood_ratio.distribution import RatioDistribution
from privcore.likelihood_ratio.kernel import Array
from privcore.likelihood_ratio.profile import Direction
from privcore.numerics.rounding import UNIT

SMALLEST_RATE = 1e-250
"""Smallest rate at which curves are read, far above products of a mass and a ratio that underflow."""
NEGLIGIBLE = 1e-290
"""Outcomes with a smaller mass under the null hypothesis count as impossible under it."""
UNDERFLOW = 1e-280
"""More than the sum of all masses below `NEGLIGIBLE`, and of the errors of products that underflow."""


@dataclass(frozen=True, kw_only=True)
class Curve:
    r"""Trade-off curve of a discrete distribution in one order of the hypotheses, with all of its errors.

    With F the `factor`, B the broken line of `powers` and C that of `misses`, the errors of profiles give

    $$B(a) / F - d \le T(a) \le F B(a) + d, \quad C((r - d') / F) \le 1 - T(1 - r) \le C(F (r + d')).$$

    The first and the last inequality hold for a post-processing, the others for a dominating distribution.
    The sums err by the relative `error`. The methods below move the broken lines through the computed sums
    outward, and say why this suffices.

    Attributes:
        rates: Masses under the null hypothesis of the k outcomes with the largest ratios, k = 0, 1, ...
        powers: Masses of the same outcomes under the alternative.
        rests: Masses under the null hypothesis of the k outcomes with the smallest ratios, k = 0, 1, ...
        misses: Masses of the same outcomes under the alternative.
        slopes: Ratio of the next outcome, for every element of `rests`.
        error: Relative error of sums, interpolations and their inputs.
        factor: Factor by which masses and values together may err.
        drift: Error d of the profile of the alternative against the null hypothesis.
        other_drift: Error d' of the profile of the null hypothesis against the alternative.
    """

    rates: Array
    powers: Array
    rests: Array
    misses: Array
    slopes: Array
    error: float
    factor: float
    drift: float
    other_drift: float

    def power_upper(self, rates: Array) -> Array:
        """Return upper bounds of the true positive rates at false positive rates.

        Every piece of B, extended to a line, lies above B; at a computed sum it errs by the relative error.
        """
        if self.factor == np.inf:
            return np.ones_like(rates)
        found = np.interp(rates, self.rates, self.powers) * (1.0 + 4.0 * self.error)
        return np.minimum(self.factor * found + (self.drift + UNDERFLOW), 1.0)

    def power_lower(self, rates: Array) -> Array:
        """Return lower bounds of the true positive rates at false positive rates.

        B is concave, so the points (sum, B) moved to the right by the relative error have chords below B.
        """
        if self.factor == np.inf:
            return np.zeros_like(rates)
        inner = rates * (1.0 - 4.0 * self.error) - UNDERFLOW
        found = np.interp(inner, self.rates, self.powers, left=0.0) * (1.0 - 4.0 * self.error)
        return np.maximum(found / self.factor - (self.drift + UNDERFLOW), 0.0)

    def miss_lower(self, rests: Array) -> Array:
        """Return lower bounds of the false negative rates at false positive rates 1 - rests."""
        if self.factor == np.inf:
            return np.zeros_like(rests)
        found = np.interp((rests - self.other_drift) / self.factor, self.rests, self.lowered())
        return np.where(
            rests > self.other_drift, np.maximum(found * (1.0 - self.error) - UNDERFLOW, 0.0), 0.0
        )

    def miss_upper(self, rests: Array) -> Array:
        """Return upper bounds of the false negative rates at false positive rates 1 - rests.

        C is convex, so the points (sum, C) moved to the left by the relative error have chords above C.
        """
        if self.factor == np.inf:
            return np.ones_like(rests)
        outer = self.factor * (rests + self.other_drift) * (1.0 + 4.0 * self.error)
        found = np.interp(outer, self.rests, self.misses, right=np.inf)
        return np.minimum(found * (1.0 + 4.0 * self.error) + UNDERFLOW, 1.0)

    def lowered(self) -> Array:
        """Return the values of C at `rests`, lowered until chords between them are below C.

        Every piece of C, extended to a line, lies below C. At a computed sum r it errs by at most the
        relative error of C plus that of r times the slope.
        """
        return self.misses - self.error * (self.misses + 2.0 * self.slopes * self.rests)


def curve(distribution: RatioDistribution, direction: Direction) -> Curve:
    """Return the trade-off curve of a distribution in one order of the hypotheses.

    Args:
        distribution: Distribution of the ratio dP/dQ under Q.
        direction: "remove" for the null hypothesis Q (without the example) against P (with it), "add" for the
            null hypothesis P against Q.
    """
    product = distribution.p * distribution.x
    if direction == "remove":
        null, alternative, start = distribution.p[::-1], product[::-1], distribution.infinite
        drifts = distribution.drift_remove, distribution.drift_add
    else:  # the outcomes with infinite ratio come last; those with ratio 0 first, at no mass under P
        null = np.append(product, distribution.infinite)
        alternative, start = np.append(distribution.p, 0.0), 0.0
        drifts = distribution.drift_add, distribution.drift_remove
    keep = null > NEGLIGIBLE
    start += float(np.sum(alternative[~keep]))
    null, alternative = null[keep], alternative[keep]
    # a sum of n terms errs by n - 1 roundings, a product by one, and an interpolation by six
    error = 2.0 * (null.size + 16) * UNIT
    exponent = distribution.mass_error + distribution.value_error + 16.0 * UNIT
    slopes = (alternative / null)[::-1]
    return Curve(
        rates=np.append(0.0, np.cumsum(null)),
        powers=np.cumsum(np.append(start, alternative)),
        rests=np.append(0.0, np.cumsum(null[::-1])),
        misses=np.append(0.0, np.cumsum(alternative[::-1])),
        slopes=np.append(slopes, slopes[-1:]),
        error=error,
        factor=float(np.exp(exponent)) if exponent < 1.0 else np.inf,
        drift=drifts[0],
        other_drift=drifts[1],
    )
