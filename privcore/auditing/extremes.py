"""Mean number of correct guesses about a fixed number of canaries: those with the most extreme scores."""

import numpy as np
import scipy

from privcore.numerics.binomial import Array
from privcore.numerics.sums import dot

NODES = 1500
"""Number of thresholds; the bounds differ by about the inverse square of it."""
_TAIL = 1e-15


def shares(canaries: int, chosen: int) -> tuple[float, float]:
    """Return two shares between which that of the canaries beyond a canary's own threshold almost always is.

    Args:
        canaries: Number m of canaries.
        chosen: Number h of canaries with the most extreme scores, with 0 < h < m.
    """
    a, b = float(chosen), float(canaries - chosen)
    least, rest = scipy.special.betaincinv(a, b, _TAIL), scipy.special.betaincinv(b, a, _TAIL)
    return max(float(least), 1e-300), 1.0 - float(rest)


def mean_right(
    canaries: int, chosen: int, share: Array, right: Array, steepest: float
) -> tuple[float, float]:
    r"""Return bounds of the probability that a canary is among the most extreme ones and guessed correctly.

    A canary is among the h most extreme of m if its score is beyond the h-th most extreme score of the other
    m - 1. The share U of scores beyond that one is $\mathrm{Beta}(h, m - h)$, and the canary is right beyond
    it with a probability r(U). Since r is concave, it is above its chords, and in each cell below the chords
    of the neighbouring cells, extended.

    Args:
        canaries: Number m of independent canaries.
        chosen: Number h of canaries with a guess, with 0 < h < m.
        share: Shares of scores beyond thresholds, rising.
        right: Probabilities r of a right guess beyond the same thresholds; concave in the share.
        steepest: Bound of the slope of r, so that r(u) is at most this multiple of u.

    Returns:
        Bounds without the roundings of the shares and the probabilities.

    Reference:
        David and Nagaraja (2003), Order Statistics, Sections 2.1 and 2.5.

    Example:
        >>> u = np.linspace(1e-9, 1.0, 1500)
        >>> [round(end, 9) for end in mean_right(2, 1, u, u * (1.5 - 0.5 * u), 1.5)]
        [0.583333296, 0.583333519]
    """
    a, b = float(chosen), float(canaries - chosen)
    kept = np.concatenate([[True], np.diff(share) > 0.0])
    u, r = share[kept], right[kept]
    below = scipy.special.betainc(a, b, u)
    moment = chosen / canaries * scipy.special.betainc(a + 1.0, b, u)  # mean of U where it is below u
    mass, first = np.diff(below), np.diff(moment)
    slopes = np.clip(np.diff(r) / np.diff(u), 0.0, steepest)
    beyond = float(scipy.special.betaincc(a, b, u[-1]))
    lower = float(dot(mass, r[:-1])) + float(dot(slopes, first - u[:-1] * mass)) + float(r[-1]) * beyond
    before, after = np.append(steepest, slopes[:-1]), np.append(slopes[1:], 0.0)
    cells = np.minimum(
        r[:-1] * mass + before * (first - u[:-1] * mass), r[1:] * mass - after * (u[1:] * mass - first)
    )
    outside = moment[0] + chosen / canaries * float(scipy.special.betaincc(a + 1.0, b, u[-1]))
    return lower, float(cells.sum()) + steepest * float(outside)
