"""Estimate of Poisson sampling by privacy loss distributions, composed by dp-accounting."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, get_args

import numpy as np
import scipy

from privcore.allocation.comparisons import NO_REPLACEMENT, Poisson, PoissonEpsilon
from privcore.answer import Answer, Status
from privcore.likelihood_ratio.profile import DIRECTIONS
from privcore.method import Cost, Direction, Method
from privcore.papers import DOROSHENKO

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


@dataclass(frozen=True, kw_only=True)
class PoissonPld(Method[Poisson]):
    """Connect-the-dots on a loss step that follows the sampling probability, composed by dp-accounting.

    The discretisation is pessimistic, but the Fourier transform that composes it has a rounding error of
    about 2^-52 per composition, of either sign; so the result is an estimate.
    """

    name = "poisson.pld"
    problems = get_args(Poisson)
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
        smallest = problem.delta if isinstance(problem, PoissonEpsilon) else 1e-3
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
        if isinstance(problem, PoissonEpsilon):
            with np.errstate(over="ignore"):  # exp(epsilon) may overflow in intermediate results
                found = [float(pmf.get_epsilon_for_delta(problem.delta)) for pmf in composed]
            value = max(0.0, *found)  # below 0 if delta exceeds that of epsilon 0
            if math.isinf(value):
                return Answer.without(
                    Status.FAILED, "The exponential of epsilon exceeds the range of doubles."
                )
        else:
            value = min(1.0, max(float(pmf.get_delta_for_epsilon(problem.epsilon)) for pmf in composed))
            if value < (noise := _noise(problem)):
                return Answer.without(
                    Status.FAILED, f"Delta is below the rounding error of the composition, {noise:.1e}."
                )
        step = choose_grid(problem.sigma, rate, steps).step
        return Answer.about(value, detail=f"connect-the-dots with loss step {step:.2g}, composed by FFT")


def _noise(problem: Poisson) -> float:
    """Return the error of delta that composition by FFT may cause: 32 roundings of 1 for each step."""
    return problem.steps * problem.epochs * 2.0**-48
