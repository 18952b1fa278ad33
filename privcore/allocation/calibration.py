"""Bracket of the least noise multiplier that meets epsilon and delta, for allocation and Poisson sampling."""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from privcore import params
from privcore.allocation.certified import AllocationCertified
from privcore.allocation.params import TARGET_EPSILON
from privcore.allocation.poisson import PoissonCertified
from privcore.allocation.problems import AllocationEpsilon, Poisson, PoissonEpsilon
from privcore.answer import Answer
from privcore.method import Cost
from privcore.numerics.bracket_search import BracketSearch, Look
from privcore.numerics.gaussian import gaussian_delta_bounds
from privcore.numerics.rounding import NOISE_BRACKET

_LEAST, _MOST = 1e-6, 1e12
"""Ends of the search for the noise multiplier without amplification; only tiny deltas need more than 1e12."""


_BRACKETS = 20
"""Largest number of brackets of a search. Eight are typical; rounding can keep a search from ending."""

_FINENESS = 16.0
"""Relative width of the bracket of sigma over that of the narrowest bracket of epsilon. Narrower brackets of
epsilon cost more than they gain, since the relative change of epsilon is at least about that of sigma."""

_FINEST_A_STEP = 3e-11
"""Smallest relative width of a bracket of epsilon, per step: 0.03 at 1e9 steps."""


def smallest_noise(
    scheme: str, *, epsilon: float, delta: float, steps: int, precision: float = 0.005
) -> Answer:
    r"""Return proved ends of the least noise multiplier that makes one epoch (epsilon, delta)-private.

    $$\sigma^* = \inf\{\sigma : \varepsilon_\sigma(\delta) \le \varepsilon\}$$

    for adding or removing an example. Adding noise is post-processing, so every noise multiplier above the
    infimum suffices and no smaller one does. The result is cached, since the error of a mean needs the same
    noise multiplier at many sizes.

    Args:
        scheme: `allocation`: an example is in one of the steps, chosen at random; `poisson`: every step
            includes it with probability 1/steps.
        epsilon: Largest allowed epsilon, in [0.001, 10000].
        delta: Largest allowed delta, in (0, 1).
        steps: Number of steps, 1 to 1e9.
        precision: Requested relative distance of the ends, > 0. The ends may be further apart if the brackets
            of epsilon stay wide, or if the noise multiplier is outside [1e-3, 1e6].

    Returns:
        The enclosure: no noise multiplier below the lower end suffices, and the upper end does, so it is the
        safe one; 0 or infinity if that end is not proved.

    Raises:
        ValueError: The scheme is unknown.
        DomainError: A number is outside its domain.

    Reference:
        arXiv:2502.08202v3, Section 5.1, for the problem; `allocation.certified` and `poisson.certified` bound
        epsilon.

    Example:
        >>> found = smallest_noise("allocation", epsilon=1.0, delta=1e-10, steps=1000)
        >>> 0.88 < found.lower < 0.8898 < found.upper < 0.9
        True
    """
    if scheme not in ("allocation", "poisson"):
        raise ValueError(f"Expected scheme in {{allocation, poisson}}, got {scheme!r}.")
    epsilon = TARGET_EPSILON.check(epsilon)
    delta, steps = params.DELTA.check(delta), params.STEPS.check(steps)
    if not precision > 0.0:
        raise ValueError(f"Expected precision > 0, got {precision!r}.")
    return _smallest_noise(scheme, epsilon, delta, steps, float(precision))


@lru_cache(maxsize=256)
def _smallest_noise(scheme: str, epsilon: float, delta: float, steps: int, precision: float) -> Answer:
    outer = outer_noise(scheme, epsilon, delta, steps)
    domain = max(outer.lower, params.SIGMA.lower), min(outer.upper, params.SIGMA.upper)
    if steps == 1 or domain[0] >= domain[1]:
        return outer
    make = _allocation if scheme == "allocation" else _poisson
    search = BracketSearch(
        look=make(epsilon, delta, steps),
        target=epsilon,
        precision=min(precision, 1.0),
        domain=domain,
        finest=_finest(precision, steps),
        most=_BRACKETS,
    )
    enough, short = search.run()
    return Answer(
        lower=outer.lower if short is None else max(short.at, outer.lower),
        upper=outer.upper if enough is None else min(enough.at, outer.upper),
    )


def outer_noise(scheme: str, epsilon: float, delta: float, steps: int) -> Answer:
    r"""Return the ends that follow from the Gaussian mechanism alone.

    With $\sigma_1$ the least noise multiplier of a single step, allocation needs at most $\sigma_1$, even if
    the chosen step is public. It needs at least $\sigma_1 / \sqrt t$, as the test on the sum of all outputs
    shows, N(1, t sigma^2) against N(0, t sigma^2). Poisson sampling needs at most $\sigma_1 \sqrt t$, even if
    the example takes part in every step. For a single step both need $\sigma_1$.

    Args:
        scheme: `allocation` or `poisson`.
        epsilon: Largest allowed epsilon, > 0.
        delta: Largest allowed delta, in (0, 1).
        steps: Number of steps.
    """
    single = gaussian_noise(epsilon, delta)
    if steps == 1:
        return single
    root = math.sqrt(steps)
    if scheme == "allocation":
        return Answer(lower=single.lower / root * (1.0 - NOISE_BRACKET), upper=single.upper)
    return Answer.at_most(single.upper * root * (1.0 + NOISE_BRACKET))


@lru_cache(maxsize=256)
def gaussian_noise(epsilon: float, delta: float) -> Answer:
    """Return proved ends of the least noise multiplier of the Gaussian mechanism.

    Args:
        epsilon: Largest allowed epsilon, >= 0.
        delta: Largest allowed delta, in (0, 1).

    Returns:
        The ends, at a relative distance of 1e-12; (0, 1e-6) or (1e12, infinity) if the noise multiplier is
        outside [1e-6, 1e12].

    Example:
        >>> round(gaussian_noise(1.0, 1e-5).upper, 6)
        3.730632
    """

    def between(short: Callable[[float], bool]) -> tuple[float, float]:
        if not short(_LEAST):
            return 0.0, _LEAST
        if short(_MOST):
            return _MOST, math.inf
        low, high = _LEAST, _MOST
        while high > low * (1.0 + 1e-12):
            middle = math.sqrt(low) * math.sqrt(high)
            if not low < middle < high:
                break
            low, high = (middle, high) if short(middle) else (low, middle)
        return low, high

    upper = between(lambda sigma: gaussian_delta_bounds(sigma, epsilon)[1] > delta)[1]
    lower = between(lambda sigma: gaussian_delta_bounds(sigma, epsilon)[0] > delta)[0]
    return Answer(lower=lower, upper=upper)


def search_cost(scheme: str, epsilon: float, delta: float, steps: int, precision: float) -> Cost:
    """Return a conservative estimate of the cost of `smallest_noise`, without computing it."""
    if steps == 1:
        return Cost(seconds=0.005, bytes=1e6)
    # The root is near the noise multiplier at which the Gaussian loss of one step reaches epsilon + ln t.
    far = math.sqrt(-2.0 * math.log(delta))
    shift = math.sqrt(far * far + 2.0 * (epsilon + math.log(steps))) - far
    root = min(1.0 / shift, gaussian_noise(epsilon, delta).upper)
    sigma = min(max(root, params.SIGMA.lower), params.SIGMA.upper)
    narrow = 4.0 * _finest(precision, steps)
    coarse, fine = (_method_cost(scheme, sigma, delta, steps, width) for width in (0.125, narrow))
    looks = 1.0 if scheme == "allocation" else 1.5  # a rate between two doubles is evaluated at both
    looks *= 5.0 if steps > 10**7 else 1.0  # there, rounding keeps brackets wide
    return Cost(seconds=0.01 + looks * (2.0 * coarse.seconds + fine.seconds), bytes=fine.bytes)


def _method_cost(scheme: str, sigma: float, delta: float, steps: int, tolerance: float) -> Cost:
    if scheme == "allocation":
        problem = AllocationEpsilon.from_fields({"sigma": sigma, "steps": steps, "delta": delta})
        return AllocationCertified(tolerance=min(tolerance, 1.0)).cost(problem)
    poisson = _sampled(sigma, delta, steps, 1.0 / steps)
    return PoissonCertified(tolerance=min(tolerance, 1.0)).cost(poisson)


def _sampled(sigma: float, delta: float, steps: int, rate: float) -> Poisson:
    fields = {"sigma": sigma, "steps": steps, "delta": delta, "sampling_probability": rate}
    return PoissonEpsilon.from_fields(fields)


def _finest(precision: float, steps: int) -> float:
    return min(max(params.TOLERANCE.lower, precision / _FINENESS, _FINEST_A_STEP * steps), 0.125)


def _allocation(epsilon: float, delta: float, steps: int) -> Look:
    """Return a function that brackets the epsilon of allocation at a given sigma."""

    def look(sigma: float, tolerance: float) -> tuple[float, float]:
        problem = AllocationEpsilon.from_fields({"sigma": sigma, "steps": steps, "delta": delta})
        answer = AllocationCertified(tolerance=tolerance).answer(problem, seed=0)
        return answer.lower, answer.upper

    return look


def _poisson(epsilon: float, delta: float, steps: int) -> Look:
    """Return a function that brackets the epsilon of Poisson sampling at a given sigma and the rate 1/steps.

    That rate is rarely a double, and lies between the neighbouring doubles. Epsilon grows with the rate, so
    the larger double gives the upper end. The smaller double is only needed for a lower end above the target.
    """
    nearest = 1.0 / steps
    larger = nearest if Fraction(nearest) * steps >= 1 else math.nextafter(nearest, 1.0)
    smaller = nearest if Fraction(nearest) * steps <= 1 else math.nextafter(nearest, 0.0)

    def answer(sigma: float, tolerance: float, rate: float) -> Answer:
        return PoissonCertified(tolerance=tolerance).answer(_sampled(sigma, delta, steps, rate), seed=0)

    def look(sigma: float, tolerance: float) -> tuple[float, float]:
        found = answer(sigma, tolerance, larger)
        if found.lower <= epsilon or smaller == larger:
            return found.lower, found.upper
        return min(answer(sigma, tolerance, smaller).lower, found.upper), found.upper

    return look
