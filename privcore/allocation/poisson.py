"""Poisson sampling: proved bounds in convex order, by Renyi divergences, and estimates by dp-accounting."""

import math
from functools import lru_cache
from typing import Annotated, Any, NamedTuple

import numpy as np
import scipy

from privcore import params
from privcore.allocation.moments import FRACTIONS, SPREAD_ORDERS, gaussian_moments, log_mean
from privcore.allocation.problems import NO_REPLACEMENT, POISSON, Poisson
from privcore.answer import Answer, Status
from privcore.likelihood_ratio.batches import SignedSample
from privcore.likelihood_ratio.distribution import RatioBracket, Resolution, mixed, product_of
from privcore.likelihood_ratio.fourier import cost_of_sums, epsilon_by_sums
from privcore.likelihood_ratio.profile import DIRECTIONS
from privcore.likelihood_ratio.questions import cost, enclose, powering, question_of, requested
from privcore.likelihood_ratio.ratios import Composed, Gaussian, Ratio, Sampled, beyond
from privcore.likelihood_ratio.steps import lognormal
from privcore.method import Cost, Direction, Method
from privcore.numerics.gaussian import gaussian_bounds
from privcore.numerics.renyi import Floats, from_moments, reflected_delta
from privcore.numerics.rounding import EXPRESSION, FEW_FUNCTIONS
from privcore.papers import DOROSHENKO, MIRONOV, ZHU

EASE = 1.6
"""Factor on the width of cells that only the lower end needs, which errs by a third of the whole width."""


class PoissonCertified(Method[Poisson]):
    r"""Enclose epsilon or delta of Poisson-subsampled steps.

    The likelihood ratio of one step is $1 - \lambda + \lambda Y$ with $Y$ lognormal; that of all steps is the
    product of i.i.d. copies. Epsilon has ends from Fourier transforms on a lattice of losses. If these are
    too far apart, the product is built by binary powering. After every product, its distribution is rounded
    to a grid: by a mean-preserving spread for the upper end, and to conditional means for the lower end.

    If ratios exceed the range of doubles, both ends are those of sums of losses.

    If one example is replaced, a step is a pair of mixtures with opposite means: half-spaces are the best
    tests, for every threshold, so this pair is the worst one (docs/training-runs.md).
    """

    name = "poisson.certified"
    problems = POISSON
    direction = Direction.ENCLOSURE
    reference = f"{ZHU}, Theorem 11 (dominating pair); convex order: docs/certified.md"
    version = 5
    shares = ("sigma", "steps", "sampling_probability", "epochs")

    tolerance: Annotated[float, params.TOLERANCE] = params.WIDTH

    def cost(self, problem: Poisson) -> Cost:
        question, times = question_of(problem), problem.steps * problem.epochs
        found = cost(question, 1.0 / problem.sigma, requested(question.asks, self.tolerance), powering(times))
        if not (self.tolerance <= params.WIDTH and _has_sums(problem)):
            return found
        sums = cost_of_sums(1.0 / problem.sigma, problem.sampling_probability, times)
        return Cost(seconds=found.seconds + sums.seconds, bytes=max(found.bytes, sums.bytes))

    def answer(self, problem: Poisson, seed: int) -> Answer:
        times, outer, ease = problem.steps * problem.epochs, _closed_form(problem), 1.0
        if self.tolerance <= params.WIDTH and _has_sums(problem):
            least, most = epsilon_by_sums(
                1.0 / problem.sigma, problem.sampling_probability, times, problem.at, problem.adjacency
            )
            outer = max(outer[0], least), min(outer[1], most)
            if outer[1] <= outer[0] * (1.0 + self.tolerance):
                return Answer.enclosure(*outer, detail="Fourier transforms on a lattice of losses")
            ease = EASE if most < math.inf else 1.0
        ratio, question = _ratio(problem), question_of(problem)
        tolerance = requested(problem.asks, self.tolerance)
        found = enclose(
            ratio.bracket,
            question,
            tolerance,
            copies=times,
            outer=outer,
            combinations=powering(times),
            ease=ease,
        )
        lower, upper, detail = beyond(ratio, question, tolerance, found)
        if ease > 1.0 and upper == outer[1]:
            detail = f"upper end by Fourier transforms; {detail}"
        return Answer.enclosure(lower, upper, detail=detail)


def _ratio(problem: Poisson) -> Ratio:
    """Return the likelihood ratio of all steps."""
    s, rate = 1.0 / problem.sigma, problem.sampling_probability
    step = SignedSample(rate, s) if problem.adjacency == "replace-one" else Sampled(Gaussian(s), rate)
    return Composed(step, problem.steps * problem.epochs)


def _has_sums(problem: Poisson) -> bool:
    """Return whether the sums of losses on a lattice give an upper end."""
    sampled = problem.adjacency != "replace-one" and problem.sampling_probability < 1.0
    return problem.asks == "epsilon" and sampled


def _closed_form(problem: Poisson) -> tuple[float, float]:
    """Return the bracket between participation in no step and in every step; exact for probability 1.

    In direction add, the privacy loss of a step is also at most -ln(1 - lambda), for every noise.
    """
    sigma = problem.sigma / math.sqrt(problem.steps * problem.epochs)
    if problem.adjacency == "replace-one":  # opposite gradients have twice the distance
        sigma *= 0.5
    lower, upper = gaussian_bounds(problem.asks, sigma, problem.at)
    if problem.sampling_probability == 1.0:
        return lower, upper
    if problem.adjacency == "add":  # the likelihood ratio of a step is at least 1 - lambda
        times = problem.steps * problem.epochs
        most = -times * math.log1p(-problem.sampling_probability) * (1.0 + FEW_FUNCTIONS)
        if problem.asks == "epsilon":
            upper = min(upper, most)
        elif problem.at >= most:
            upper = 0.0
    return question_of(problem).trivial, upper  # P and Q may be the same


@lru_cache(maxsize=32)
def poisson(s: float, probability: float, times: int, res: Resolution) -> RatioBracket:
    """Return the bracket of the product of `times` subsampled steps; the cached result is shared."""
    return product_of(mixed(lognormal(s, res), probability, res), times, res)


_TAIL = 10.0
"""Standard deviations of noise beyond which outcomes count as perfectly distinguishing: probability 1e-23."""

_TRUNCATION = 1e-18
"""Mass that dp-accounting may move to infinity when it chooses the window of the composition."""

_STEPS_PER_DEVIATION = 25.0
_COARSEST = 10.0
"""Largest loss step, as a multiple of the wanted one, that is used to limit the size of the arrays."""

_FEWEST_POINTS = 1e5
_POINTS = 1e6
_COMPOSED_POINTS = 4e6
_LARGEST_LOSS = 600.0


class _Grid(NamedTuple):
    """Loss step, its multiple of the wanted one, and the numbers of points before and after composition."""

    step: float
    coarseness: float
    points: float
    composed_points: float


def _loss(z: Any, shift: float, rate: float) -> Any:
    """Return ln(1 - rate + rate X), with X = exp(shift z - shift^2 / 2) the ratio of the Gaussian pair."""
    base = math.log1p(-rate) if rate < 1.0 else -math.inf
    return np.logaddexp(base, math.log(rate) + shift * z - 0.5 * shift * shift)


def _cut(loss: Any, shift: float, rate: float) -> Any:
    """Return the z at which the loss is reached, -inf if it is always exceeded."""
    absent = np.minimum(1.0, (1.0 - rate) * np.exp(-loss))
    with np.errstate(divide="ignore"):
        far = loss + np.log1p(-absent) - math.log(rate)
        near = np.log1p(np.maximum(-1.0, np.expm1(np.minimum(loss, 1.0)) / rate))
    return (np.where((rate < 0.5) & (loss < 1.0), near, far) + 0.5 * shift * shift) / shift


def _interval(z: Any) -> Any:
    """Return the normal probabilities between neighbours of a rising array, without cancellation."""
    below, above = np.diff(scipy.special.ndtr(z)), -np.diff(scipy.special.ndtr(-z))
    return np.where(z[:-1] < 0.0, below, above)


def choose_grid(sigma: float, rate: float, steps: int) -> _Grid:
    """Return the loss grid for `steps` compositions: always small enough, and fine enough if possible.

    Args:
        sigma: Noise multiplier, > 0.
        rate: Sampling probability in (0, 1].
        steps: Number of compositions, >= 1.

    Returns:
        Grid whose step is at most 1/25 of the standard deviation of one step's loss, unless the arrays would
        be too large.
    """
    shift = 1.0 / sigma
    z = np.linspace(-_TAIL, shift + _TAIL, 257)
    losses = _loss(z, shift, rate)
    extent = float(losses[-1] - losses[0])
    # dp-accounting chooses the window of the composition by the Chernoff bound at these orders.
    order = np.concatenate((np.arange(-20.0, 0.0), np.arange(1.0, 21.0)))
    moments_of = np.exp(np.outer(order, (losses - losses[0]) / extent))
    window = deviation = 0.0
    for centre in (shift, 0.0):
        weights = np.exp(-0.5 * (z - centre) ** 2)
        weights /= np.sum(weights)
        deviation = math.sqrt(weights @ (losses - weights @ losses) ** 2)
        moments = moments_of @ weights
        ends = extent * (steps * np.log(moments) + math.log(2.0 / _TRUNCATION)) / order
        window = max(window, float(np.min(ends[20:]) - np.max(ends[:20])))
    window = max(extent, min(window, steps * extent))
    # The last deviation is that without the example; for a large shift, that loss is nearly an atom at -rate.
    wanted = min(0.3 * shift, max(deviation, rate * min(1.0, shift))) / _STEPS_PER_DEVIATION
    wanted = min(wanted, window / _FEWEST_POINTS)
    step = max(wanted, extent / _POINTS, window / _COMPOSED_POINTS)
    return _Grid(step, step / wanted, extent / step, window / step)


def discretise(sigma: float, rate: float, step: float) -> tuple[int, Any, Any]:
    """Return the connect-the-dots pair of one Poisson-sampled Gaussian step on the loss grid.

    Every cell of losses is moved to its two ends such that its probabilities under both hypotheses stay the
    same, so the pair dominates the true one. dp-accounting itself computes the pair from differences of the
    profile, whose rounding errors dominate if the step is small: at sigma = 1, rate 1e-6, step 5e-8 they add
    mass 4e-4.

    Args:
        sigma: Noise multiplier, > 0.
        rate: Sampling probability in (0, 1].
        step: Distance between neighbouring losses.

    Returns:
        Index of the first loss; probabilities with the example; probabilities without it.

    Reference:
        Doroshenko et al. (2022), arXiv:2207.04380v1, Algorithm 1.
    """
    shift = 1.0 / sigma
    first = math.floor(float(_loss(-_TAIL, shift, rate)) / step)
    last = math.ceil(float(_loss(shift + _TAIL, shift, rate)) / step)
    losses = step * np.arange(first, last + 1)
    cuts = _cut(losses, shift, rate)
    absent = _interval(cuts)
    present = (1.0 - rate) * absent + rate * _interval(cuts - shift)
    right = np.clip((present * np.exp(-losses[:-1]) - absent) / math.expm1(step), 0.0, absent)
    without = np.append(absent - right, float(scipy.special.ndtr(-cuts[-1]))) + np.append(0.0, right)
    return first, without * np.exp(losses), without


@lru_cache(maxsize=1)
def _composed(sigma: float, rate: float, steps: int, adjacency: str) -> tuple[Any, ...]:
    """Return the composed distributions in the directions of the adjacency."""
    from dp_accounting.pld.pld_pmf import DensePLDPmf  # its import takes most of a second

    step = choose_grid(sigma, rate, steps).step
    first, present, absent = discretise(sigma, rate, step)
    last = first + len(absent) - 1
    pairs = {"remove": (first, present), "add": (-last, absent[::-1].copy())}
    return tuple(
        DensePLDPmf(step, lowest, mass, float(scipy.special.ndtr(-_TAIL)), True).self_compose(
            steps, _TRUNCATION
        )
        for direction, (lowest, mass) in pairs.items()
        if direction in DIRECTIONS[adjacency]
    )


class PoissonPld(Method[Poisson]):
    """Connect-the-dots on a loss step that follows the sampling probability, composed by dp-accounting.

    The discretisation is pessimistic, but the Fourier transform that composes it has a rounding error of
    about 2^-52 per composition, of either sign; so the result is an estimate.
    """

    name = "poisson.pld"
    problems = POISSON
    direction = Direction.ESTIMATE
    reference = f"{DOROSHENKO}, Algorithm 1; dp-accounting 0.6"
    shares = ("sigma", "steps", "sampling_probability", "epochs", "adjacency")

    def applies(self, problem: Poisson) -> str | None:
        if problem.adjacency == "replace-one":
            return NO_REPLACEMENT
        shift = 1.0 / problem.sigma
        largest_loss = shift * (_TAIL + 0.5 * shift)
        if largest_loss > _LARGEST_LOSS:
            return (
                f"The loss of one step reaches {largest_loss:.3g} nats; above {_LARGEST_LOSS:g} it overflows."
            )
        noise = _noise(problem)
        smallest = problem.at if problem.asks == "epsilon" else 1e-3
        if smallest < noise:
            return f"Composition in double precision may change delta by {noise:.1e}, which is too much."
        grid = choose_grid(problem.sigma, problem.sampling_probability, problem.steps * problem.epochs)
        if grid.coarseness > _COARSEST:
            wanted = grid.composed_points * grid.coarseness
            return f"This sampling probability needs a loss grid of {wanted:.1e} points, which is too many."
        return None

    def cost(self, problem: Poisson) -> Cost:
        grid = choose_grid(problem.sigma, problem.sampling_probability, problem.steps * problem.epochs)
        directions = len(DIRECTIONS[problem.adjacency])
        points = directions * (grid.points + grid.composed_points)
        return Cost(seconds=0.005 + 5e-7 * points, bytes=1e6 + 150.0 * points)

    def answer(self, problem: Poisson, seed: int) -> Answer:
        rate, steps = problem.sampling_probability, problem.steps * problem.epochs
        composed = _composed(problem.sigma, rate, steps, problem.adjacency)
        if problem.asks == "epsilon":
            with np.errstate(over="ignore"):  # exp(epsilon) may overflow in intermediate results
                found = [float(pmf.get_epsilon_for_delta(problem.at)) for pmf in composed]
            value = max(0.0, *found)  # below 0 if delta exceeds that of epsilon 0
            if math.isinf(value):
                return Answer.without(
                    Status.FAILED, "The exponential of epsilon exceeds the range of doubles."
                )
        else:
            value = min(1.0, max(float(pmf.get_delta_for_epsilon(problem.at)) for pmf in composed))
            if value < (noise := _noise(problem)):
                return Answer.without(
                    Status.FAILED, f"Delta is below the rounding error of the composition, {noise:.1e}."
                )
        step = choose_grid(problem.sigma, rate, steps).step
        return Answer.about(value, detail=f"connect-the-dots with loss step {step:.2g}, composed by FFT")


def _noise(problem: Poisson) -> float:
    """Return the error of delta that composition by FFT may cause: 32 roundings of 1 for each step."""
    return problem.steps * problem.epochs * 2.0**-48


ORDERS: Floats = np.concatenate([FRACTIONS, SPREAD_ORDERS])


@lru_cache(maxsize=64)
def poisson_moments(sigma: float, rate: float) -> Floats:
    r"""Return upper bounds of the log-moments of one Poisson-sampled step, in the direction remove.

    For integer orders n, at which the bounds are exact up to rounding up, with $X$ the likelihood ratio of
    the Gaussian mechanism,

    $$E_Q[(1 - \lambda + \lambda X)^n] - 1
      = \sum_{j=2}^n \binom nj \lambda^j (1-\lambda)^{n-j} (e^{j(j-1)/(2\sigma^2)} - 1)$$

    Args:
        sigma: Noise multiplier, > 0.
        rate: Sampling probability in (0, 1].

    Returns:
        Bounds of (alpha - 1) R at `ORDERS`; a cached, read-only array.

    Reference:
        Mironov, Talwar and Zhang (2019), arXiv:1908.10530v1, Section 3.3.
    """
    highest = int(SPREAD_ORDERS[-1])
    one = gaussian_moments(sigma, highest)
    if rate == 1.0:
        whole = one[SPREAD_ORDERS.astype(int)]
    else:
        log_factorial = scipy.special.gammaln(np.arange(highest + 1.0) + 1.0)
        log_rate, log_rest = math.log(rate), math.log1p(-rate)
        whole = np.zeros(len(SPREAD_ORDERS))
        for i, order in enumerate(SPREAD_ORDERS):
            n = int(order)
            j = np.arange(2.0, n + 1.0)
            powers = j * log_rate + (n - j) * log_rest
            falling = log_factorial[2 : n + 1] + log_factorial[n - 2 :: -1]
            sizes = log_factorial[n] + falling - powers
            whole[i] = log_mean(log_factorial[n] - falling + powers, sizes, one[2 : n + 1])
    result = np.concatenate([fraction_moments(sigma, rate, float(whole[0])), whole])
    result.flags.writeable = False
    return result


def fraction_moments(sigma: float, rate: float, second: float) -> Floats:
    r"""Return upper bounds of the log-moments of one Poisson-sampled step at the orders `FRACTIONS`.

    $x^b$ is subadditive for b = alpha - 1 < 1; so with $v = b / (2 \sigma^2)$ and $Y = 1-\lambda+\lambda X$

    $$E_Q[Y^{1+b}] \le (1-\lambda)^b + \lambda^b \bigl((1-\lambda) e^{-(1-b) v} + \lambda e^{(1+b) v}\bigr)$$

    This is exact for probability 1. If it exceeds the chord from order 1 to order 2, the chord is returned.

    Args:
        sigma: Noise multiplier, > 0.
        rate: Sampling probability in (0, 1].
        second: Log-moment of order 2.

    Returns:
        Upper bounds, shape of `FRACTIONS`.
    """
    b = FRACTIONS - 1.0
    v = 0.5 * b / sigma / sigma
    log_rate, log_rest = math.log(rate), math.log1p(-rate) if rate < 1.0 else -math.inf
    sampled = np.logaddexp(log_rest - (1.0 - b) * v, log_rate + (1.0 + b) * v)
    bound = np.logaddexp(b * log_rest, b * log_rate + sampled)
    bound = bound + EXPRESSION * (2.0 * v + np.abs(sampled) + np.abs(bound) + 100.0)
    return np.minimum(np.maximum(bound, 0.0), b * second * (1.0 + EXPRESSION))


class PoissonRenyi(Method[Poisson]):
    r"""Bound Poisson sampling by the Renyi divergence of one step, times the number of steps.

    The divergence of direction remove, $R_\alpha(P \Vert Q)$, is at least that of direction add at every
    order, so a single bound covers both directions.
    """

    name = "poisson.renyi"
    problems = POISSON
    direction = Direction.UPPER
    reference = f"{MIRONOV}, Theorems 4 and 5"
    shares = ("sigma", "sampling_probability")

    def applies(self, problem: Poisson) -> str | None:
        return NO_REPLACEMENT if problem.adjacency == "replace-one" else None

    def cost(self, problem: Poisson) -> Cost:
        return Cost(seconds=0.06, bytes=5e6)

    def answer(self, problem: Poisson, seed: int) -> Answer:
        one = poisson_moments(problem.sigma, problem.sampling_probability)
        moments = float(problem.steps * problem.epochs) * one * (1.0 + EXPRESSION)
        upper, order = from_moments(problem.asks, ORDERS, moments, abs(problem.at))
        if problem.at < 0.0:
            upper = reflected_delta(problem.at, upper)
        return Answer.at_most(upper, detail=f"Renyi order {order:.6g}")
