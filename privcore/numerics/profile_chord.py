r"""Bounds of epsilon between two deltas, by the convexity of the privacy profile in $e^\varepsilon$.

For a mechanism with any set of neighbouring pairs $(P, Q)$ and $\gamma \ge 1$, let

$$D(\gamma) = \sup_{(P, Q)} \sup_S\, P(S) - \gamma Q(S),$$

so that the mechanism is $(\varepsilon, \delta)$-private exactly if $D(e^\varepsilon) \le \delta$. $D$ is a
supremum of affine functions of $\gamma$ that do not grow, so it is convex and does not grow, and the set
of all $(\gamma, \delta)$ with $\gamma \ge 1$ and $D(\gamma) \le \delta$ is convex. Its least $\gamma$ at
a $\delta$ is $g(\delta) = e^{\varepsilon(\delta)}$, with the smallest $\varepsilon \ge 0$; so $g$ is convex,
too: it lies below its chords, and above their extensions.

The profile is *not* convex in $\varepsilon$ itself: that of randomized response is concave on $[0,
\varepsilon_0]$. At half of its delta at 0, epsilon is $\log((1 + e^{\varepsilon_0}) / 2)$, which exceeds
$\varepsilon_0 / 2$.

Only sums, products and quotients are used, which have the same bits in every language: the page and SQL have
the same functions (`flows/page/static/chord.js`, `storage/sql/macros.py`).
"""

from privcore.numerics.rounding import PROFILE_CHORD, SHORT_FORMULA

TERMS = 40
"""Terms of both power series; all of them are positive, so fewer terms give lower bounds."""
LARGEST_FALL = 60.0
"""Falls of epsilon are reduced to this before their exponential is taken, which only lowers it."""
LARGEST_RISE = 2.0
"""Rise of epsilon up to which 40 terms give its exponential to all digits; above, no lower end is given."""
LARGEST_LOSS = 0.75
"""Argument of a logarithm, subtracted from 1, up to which 40 terms give it to all digits."""
LARGEST_RATIO = 1e15
"""Ratios of distances are reduced to this, which only lowers the bound."""

Place = tuple[float, float]
"""A delta, and an end of a proved bracket of epsilon there."""


def epsilon_above(delta: float, left: Place, right: Place) -> float:
    r"""Return an upper bound of epsilon at a delta between two others: the chord of $e^\varepsilon$.

    Args:
        delta: Delta, between those of the places.
        left: Smaller delta, and a finite upper end of epsilon there.
        right: Larger delta, and a finite upper end of epsilon there.

    Returns:
        At most the upper end at the left place; rounded up.

    Example:
        >>> epsilon_above(2e-6, (1e-6, 2.0), (1e-5, 1.0))
        1.92717592275692...
    """
    (left_delta, most), (right_delta, least) = left, right
    if not least < most:
        return most
    share = (delta - left_delta) / (right_delta - left_delta)
    fallen = _grown(min(most - least, LARGEST_FALL))
    part = share * (fallen / (1.0 + fallen)) * (1.0 - PROFILE_CHORD)
    gain = _logarithm(part / (2.0 - part)) * (1.0 - PROFILE_CHORD)
    return min(most, (most - gain) + most * SHORT_FORMULA)


def epsilon_below(delta: float, near: Place, far: Place) -> float:
    r"""Return a lower bound of epsilon at a delta: a chord of $e^\varepsilon$, extended.

    Args:
        delta: Delta, on the other side of the near place than the far place.
        near: A delta, and a lower end of epsilon there.
        far: A delta, and a finite upper end of epsilon there.

    Returns:
        At least 0; rounded down.

    Example:
        >>> epsilon_below(9e-6, (1e-5, 2.0), (1e-4, 1.0))
        2.00699901144158...
        >>> epsilon_below(1.2e-5, (1e-5, 2.0), (1e-6, 2.5))
        1.84432783385816...
    """
    (near_delta, least), (far_delta, most) = near, far
    ratio = (near_delta - delta) / (far_delta - near_delta)
    if near_delta > delta:  # a smaller delta than both: epsilon rises at least as fast as before
        if not most < least:
            return least
        fallen = _grown(min(least - most, LARGEST_FALL))
        part = min(ratio, LARGEST_RATIO) * (fallen / (1.0 + fallen)) * (1.0 - PROFILE_CHORD)
        gain = _logarithm(part / (2.0 + part)) * (1.0 - PROFILE_CHORD)
        return max(least, (least + gain) - (least + gain) * SHORT_FORMULA)
    rise = max(most - least, 0.0)  # a larger delta than both: epsilon falls at most as fast as before
    if not rise <= LARGEST_RISE:
        return 0.0
    part = ratio * _grown(rise) * (1.0 + PROFILE_CHORD)
    if not part <= LARGEST_LOSS:
        return 0.0
    loss = _logarithm(part / (2.0 - part)) * (1.0 + PROFILE_CHORD)
    return max(0.0, (least - loss) - least * SHORT_FORMULA)


def _grown(x: float) -> float:
    """Return the first terms of e^x - 1, for x >= 0, by Horner's rule."""
    total = 1.0
    for k in range(TERMS, 1, -1):
        total = 1.0 + x * total / k
    return x * total


def _logarithm(u: float) -> float:
    """Return the first terms of log((1 + u) / (1 - u)), for u in [0, 1), by Horner's rule."""
    total = 0.0
    for k in range(2 * TERMS - 1, 0, -2):
        total = 1.0 / k + u * u * total
    return 2.0 * (u * total)
