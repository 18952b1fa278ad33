"""Ball arithmetic: numbers with proved error bounds, and reference values of functions of the product."""

import math
import random
from collections.abc import Callable, Iterator

from flint import acb, arb, ctx

PRECISION = 256
"""Bits of a ball; doubles enter exactly."""


def above(value: float, truth: arb) -> bool:
    """Return whether a double is proved to be at least the true value."""
    return bool(arb(value) >= truth)


def below(value: float, truth: arb) -> bool:
    """Return whether a double is proved to be at most the true value."""
    return bool(arb(value) <= truth)


def moved(value: float, slack: float, truth: arb) -> bool:
    """Return whether both ends of a value, moved outward by a relative slack, enclose the true value."""
    return below(value * (1.0 - slack), truth) and above(value * (1.0 + slack), truth)


def near(value: float, truth: arb, error: float) -> bool:
    """Return whether a double is proved to be within an absolute error of the true value."""
    return bool(abs(arb(value) - truth) <= arb(error))


def spread(seed: int, count: int, *ranges: tuple[float, float]) -> Iterator[tuple[float, ...]]:
    """Yield all corners of a box of positive numbers, then points drawn in it, logarithmically uniform."""
    rng = random.Random(seed)
    for corner in range(2 ** len(ranges)):
        yield tuple(ends[corner >> i & 1] for i, ends in enumerate(ranges))
    for _ in range(count):
        logs = (rng.uniform(math.log(low), math.log(high)) for low, high in ranges)
        yield tuple(min(max(math.exp(x), low), high) for x, (low, high) in zip(logs, ranges, strict=True))


def sharpened(value: Callable[[], arb], bits: int = 80) -> arb:
    """Return a value with a given number of known bits, at the first sufficient precision from 256 bits."""
    precision = PRECISION
    while precision <= 2**16:
        with ctx.workprec(precision):
            found = value()
        if found.rel_accuracy_bits() >= bits or found == 0:
            return found
        precision *= 2
    raise AssertionError(f"Expected {bits} bits of a value, got fewer at {precision} bits.")


def normal(x: arb) -> arb:
    """Return the probability that a standard normal variable is below x."""
    return (-x / arb(2).sqrt()).erfc() / 2


def quantile(y: arb) -> arb:
    """Return the normal quantile of a probability, known to many bits."""
    x = -arb(2).sqrt() * (2 * y.mid()).erfcinv()
    slope = (2 * arb.pi()).sqrt() * (x * x / 2).exp()  # it changes by far less than a factor of 2
    return x + y.rad() * slope * arb(0, 2)


def mills(x: arb) -> arb:
    """Return the ratio of the upper tail of the normal distribution to its density.

    Far out it lies between neighbouring partial sums of its asymptotic series, which alternate.
    """
    if not x > 2000:
        return normal(-x) * (x * x / 2).exp() * (2 * arb.pi()).sqrt()
    term, total = 1 / x, arb(0)
    for k in range(60):
        total += term
        term *= -(2 * k + 1) / (x * x)
    return total.union(total + term)


def binomial(trials: float, p: arb, count: float) -> arb:
    """Return a binomial probability."""
    n, k = arb(trials), arb(count)
    choices = (n + 1).lgamma() - (k + 1).lgamma() - (n - k + 1).lgamma()
    return (choices + k * p.log() + (n - k) * (1 - p).log()).exp()


def more_than(trials: float, p: arb, count: float) -> arb:
    """Return the probability of more successes than a count, itself in [0, trials)."""
    return beta_below(arb(count) + 1, arb(trials) - arb(count), p)


def at_most(trials: float, p: arb, count: float) -> arb:
    """Return the probability of at most a count of successes, the count in [0, trials)."""
    return beta_below(arb(trials) - arb(count), arb(count) + 1, 1 - p)


def beta_below(a: arb, b: arb, x: arb) -> arb:
    """Return the regularised incomplete beta function for whole a and b, of small relative error.

    The density is log-concave. It is integrated in panels from x on, away from its peak. The integral beyond
    the last panel is at most the density there divided by the derivative of its logarithm.
    """
    if a == 1:
        return -(b * (-x).log1p()).expm1()
    if x * (a + b - 2) > a - 1:
        return 1 - _tail(b, a, 1 - x)
    return _tail(a, b, x)


def _tail(a: arb, b: arb, x: arb) -> arb:
    """Return the integral of a Beta density from 0 to x, left of its peak."""
    constant = (a + b).lgamma() - a.lgamma() - b.lgamma()
    total, right = arb(0), x
    while True:
        slope = (a - 1) / right - (b - 1) / (1 - right)
        density = (constant + (a - 1) * right.log() + (b - 1) * (1 - right).log()).exp()
        rest = density * right
        if slope > 0:
            rest = rest.min(density / slope)
        if total > 0 and rest < total * arb(2) ** -70:
            return total.union(total + rest)
        width = ((a + 1) * (b + 1) / (a + b + 1)).sqrt() / (a + b)
        if slope > 0:
            width = width.min(8 / slope)
        width = width.min(right / 2).mid()
        total += density * _panel(a - 1, b - 1, right, slope, width)
        right -= width


def _panel(a: arb, b: arb, right: arb, slope: arb, width: arb) -> arb:
    """Return the integral of (t / right)^a ((1 - t) / (1 - right))^b from right - width to right."""

    def integrand(u: acb, analytic: bool) -> acb:
        first, second = _curved(u / right, analytic), _curved(-u / (1 - right), analytic)
        return (slope * u + a * first + b * second).exp()

    return acb.integral(integrand, acb(-width), acb(0), rel_tol=arb(2) ** -90).real


def _curved(z: acb, analytic: bool) -> acb:
    """Return log(1 + z) - z, without cancellation for a small z."""
    size = abs(z).upper()
    if not size < 0.1:
        return (1 + z).log(analytic=analytic) - z
    terms = 2 + math.ceil(110 / -math.log2(float(size) + 1e-30))
    total = acb(0)
    for k in range(terms, 1, -1):
        total = (total + acb((-1) ** (k + 1)) / k) * z
    rest = arb(size) ** (terms + 1)
    return total * z + acb(rest * arb(0, 1), rest * arb(0, 1))
