"""Allocation by simulation: importance sampling, order statistics, and brackets of the sampled ratio."""

import math
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import scipy

from privcore import params
from privcore.allocation import params as allocation_params
from privcore.allocation.problems import Allocation, AllocationDelta
from privcore.allocation.sums import log_exceedances
from privcore.answer import Answer
from privcore.likelihood_ratio import profile
from privcore.method import Cost, Direction, Method
from privcore.numerics.bounded_mean import BETTING, MOST_GROUPS, SampledMean, width_note
from privcore.numerics.rounding import FEW_OPERATIONS, probability_at_most
from privcore.papers import CHUA_BALLS

MOST_EXACT = 256
"""Largest number of variables that are all drawn; of more, only the ranks of `kept_ranks` are."""

_SINGLE = 64
_SPARSE = 128


def kept_ranks(count: int) -> Any:
    """Return the drawn ranks: all ranks of few variables; of many, 1 to 64 and a geometric sequence.

    Args:
        count: Number of variables, >= 0.

    Returns:
        Rising ranks, 1 for the largest; the last is `count`. Shape (r,), r <= 256.

    Example:
        >>> len(kept_ranks(10**9)), kept_ranks(4).tolist()
        (192, [1, 2, 3, 4])
    """
    if count <= MOST_EXACT:
        return np.arange(1, count + 1)
    sparse = np.unique(np.rint(np.geomspace(_SINGLE + 1, count, _SPARSE)).astype(np.int64))
    return np.concatenate((np.arange(1, _SINGLE + 1), sparse))


def rank_weights(ranks: Any) -> tuple[Any, Any]:
    """Return the weights of the kept variables if all others are rounded down, or up, to kept ones.

    Args:
        ranks: Ranks from `kept_ranks`; shape (r,).

    Returns:
        Weights for a lower and an upper bound of a sum, each of shape (r,); each sums to the last rank.

    Example:
        >>> [weights.tolist() for weights in rank_weights(np.array([1, 2, 5]))]
        [[1, 1, 3], [1, 3, 1]]
    """
    return np.diff(ranks, prepend=0), np.diff(ranks, append=ranks[-1:] + 1)


def draw_exceedances(rng: np.random.Generator, count: int, ranks: Any, size: int) -> Any:
    r"""Return $-\ln U_{(k)}$ for the k-th largest of uniform variables, for all kept ranks k.

    $U_{(k)} / U_{(j)}$ is independent of the larger variables, and $\mathrm{Beta}(m - k + 1, k - j)$ for the
    next kept rank k after j (initially j = 0 and U = 1). For k = j + 1, its negative logarithm is an
    exponential variable divided by m - k + 1.

    Args:
        rng: Source of randomness.
        count: Number m of uniform variables.
        ranks: Ranks from `kept_ranks(count)`; shape (r,).
        size: Number of independent draws.

    Returns:
        Values that increase along each row; shape (size, r).
    """
    gaps, left = np.diff(ranks, prepend=0), count - ranks + 1.0
    steps = rng.standard_exponential((size, len(ranks)))
    steps /= left
    wide = gaps > 1
    if wide.any():
        ratio = rng.beta(gaps[wide], left[wide], (size, int(wide.sum())))
        steps[:, wide] = -np.log1p(-ratio)
    return np.cumsum(steps, axis=1, out=steps)


def normal_of_exceedance(exceedance: Any) -> Any:
    r"""Return the z with the given $-\ln \Phi(z)$, accurate in both tails.

    Args:
        exceedance: Numbers > 0, of any shape.

    Example:
        >>> normal_of_exceedance(np.array([np.log(2.0)])).round(12).tolist()
        [0.0]
    """
    upper = exceedance < 0.5
    p = np.where(upper, -np.expm1(-exceedance), np.exp(-exceedance))
    return np.where(upper, -1.0, 1.0) * scipy.special.ndtri(p)


_AT_ONCE = 1_000_000
"""Random numbers in one array."""


@dataclass(frozen=True, kw_only=True)
class Simulation:
    r"""Samples of the integrand of delta in one direction, for one of t steps in each of E epochs.

    With the likelihood ratio S of an epoch, $\delta = E_P[(1 - e^\varepsilon / \prod S)_+]$ for remove and
    $E_Q[(1 - e^\varepsilon \prod S)_+]$ for add. If only order statistics are drawn, every S is bracketed by
    rounding the other outputs down and up.

    Attributes:
        steps: Steps t of an epoch.
        epochs: Epochs E.
        shift: Inverse s of the noise multiplier.
        epsilon: Privacy loss threshold, >= 0.
        conditional: Whether to sample given an event without which the integrand is 0.
        sparse: Whether to draw only the order statistics of `kept_ranks`.
    """

    steps: int
    epochs: int
    shift: float
    epsilon: float
    conditional: bool
    sparse: bool

    def draws(self) -> float:
        """Return the approximate number of random numbers per sample."""
        return (len(self._ranks(self.steps)) if self.sparse else self.steps) * float(self.epochs)

    def event(self, direction: str) -> tuple[float, float]:
        r"""Return the event, given by $H = -\ln \Pr(\max_i Z_i < c)$ over all steps, and its probability.

        There are E t standard normal variables $Z_i$. For remove, if all $Z_i < c$ then
        $\prod S < (e^{sc} b)^E$ with $b = (e^{s^2/2} + (t - 1) e^{-s^2/2}) / t$. So the integrand is positive
        only if some $Z_i$ reaches the c at which this is $e^\varepsilon$. For add and one epoch,
        $S \ge e^{s \max_i Z_i - s^2/2} / t$, so no $Z_i$ may reach c.
        """
        s, t = self.shift, self.steps
        if not self.conditional or (direction == "add" and self.epochs > 1):
            return (math.inf if direction == "remove" else 0.0), 1.0
        if direction == "remove":
            log_b = float(np.logaddexp(0.5 * s * s, math.log(t - 1) - 0.5 * s * s)) if t > 1 else 0.5 * s * s
            cut = (self.epsilon / self.epochs - log_b + math.log(t)) / s
            cut -= 1e-9 * (1.0 + abs(cut))
        else:
            cut = (math.log(t) - self.epsilon) / s + 0.5 * s
            cut += 1e-9 * (1.0 + abs(cut))
        outputs = ((t * self.epochs, 0.0),)
        log_h = float(log_exceedances(np.array([cut]), outputs, 1 if direction == "remove" else -1)[0])
        h = math.exp(min(log_h, 700.0))
        return h, -math.expm1(-h) if direction == "remove" else math.exp(-h)

    def means(
        self, rng: np.random.Generator, direction: str, h: float, samples: int
    ) -> tuple[SampledMean, SampledMean]:
        """Return the means of the integrand from below and from above, given the event.

        Args:
            rng: Source of randomness.
            direction: `remove` or `add`.
            h: The event, as `event` returns it.
            samples: Number of samples.
        """
        means = SampledMean(samples), SampledMean(samples)
        group = means[0].group
        chunk = group * max(1, int(_AT_ONCE / min(group * self.draws(), _AT_ONCE)))
        for start in range(0, samples, chunk):
            size = min(chunk, samples - start)
            if direction == "add":
                log_low, log_high = self._absent(rng, h, size)
            else:
                log_low, log_high = self._present(rng, h, size)
            # The integrand increases with the ratio for remove, and decreases for add.
            ends = (log_low, log_high) if direction == "remove" else (-log_high, -log_low)
            for mean, end in zip(means, ends, strict=True):
                mean.add(-np.expm1(np.minimum(0.0, self.epsilon - end)))
        return means

    def _absent(self, rng: np.random.Generator, h: float, size: int) -> tuple[Any, Any]:
        """Return brackets of the logarithm of the ratio, without the example and with all outputs below c."""
        total = np.zeros((2, size))
        floor = np.full(size, h / self.steps)  # for add, only a single epoch is conditioned
        for _ in range(self.epochs):
            total += self._log_ratio(rng, floor, self.steps, np.empty((size, 0)))
        return total[0], total[1]

    def _present(self, rng: np.random.Generator, h: float, size: int) -> tuple[Any, Any]:
        """Return brackets of the logarithm of the ratio, with the example and some output above c.

        The largest of all E t standard normal variables is drawn first. With probability 1 / t it belongs to
        a step that uses the example. Given the largest, the other variables are independent and below it.
        """
        s, t = self.shift, self.steps
        uniform = rng.random(size)
        largest = -np.log1p(uniform * math.expm1(-h)) / (t * self.epochs)
        largest = np.maximum(largest, 1e-290)
        own = int(rng.binomial(size, 1.0 / t))
        top = s * normal_of_exceedance(largest)
        chosen = s * normal_of_exceedance(largest[own:] + rng.standard_exponential(size - own))
        first = np.concatenate(
            (
                self._log_ratio(rng, largest[:own], t - 1, top[:own, None] + 0.5 * s * s),
                self._log_ratio(
                    rng,
                    largest[own:],
                    t - 2,
                    np.column_stack((top[own:] - 0.5 * s * s, chosen + 0.5 * s * s)),
                ),
            ),
            axis=1,
        )
        for _ in range(self.epochs - 1):
            chosen = s * normal_of_exceedance(largest + rng.standard_exponential(size))
            first += self._log_ratio(rng, largest, t - 1, chosen[:, None] + 0.5 * s * s)
        # Bets need samples that are independent in their order, and the two cases are not in random order.
        first = rng.permutation(first, axis=1)
        return first[0], first[1]

    def _log_ratio(self, rng: np.random.Generator, floor: Any, count: int, given: Any) -> Any:
        """Return lower and upper bounds of ln S, for given logarithms and `count` variables below a bound.

        Args:
            rng: Source of randomness.
            floor: -ln Phi of the bound; shape (size,).
            count: Number of outputs without the example.
            given: Logarithms of the other one-step ratios; shape (size, any).

        Returns:
            Bounds, shape (2, size).
        """
        size, s = len(floor), self.shift
        if size == 0:
            return np.empty((2, 0))
        ranks = self._ranks(max(count, 0))
        logs = given
        if len(ranks):
            exceedances = draw_exceedances(rng, count, ranks, size)
            exceedances += floor[:, None]
            logs = np.column_stack((given, s * normal_of_exceedance(exceedances) - 0.5 * s * s))
        top = logs.max(axis=1)
        terms = np.exp(logs - top[:, None])
        sums = [terms @ np.concatenate((np.ones(given.shape[1]), w)) for w in rank_weights(ranks)]
        return top + np.log(sums) - math.log(self.steps)

    def _ranks(self, count: int) -> Any:
        return kept_ranks(count) if self.sparse else np.arange(1, count + 1)


_MOST_DRAWS = 1e10
_SECONDS_PER_DRAW, _SECONDS_PER_BET = 1.5e-7, 6e-7
_SMALLEST_EVENT = 1e-280


class AllocationMonteCarlo(Method[Allocation]):
    r"""Estimate delta of 1-of-t over E epochs, with a confidence interval for the true value.

    The integrand lies in [0, 1], and its mean is bounded by bets. The error probability is split equally
    among the two ends, and that of the lower end among the directions (union bound): an upper end fails only
    if that of the direction with the larger delta does. Unless samples are conditioned on a rare event, the
    interval with n samples is at least about $5 / n$ wide.
    """

    name = "allocation.montecarlo"
    problems = (AllocationDelta,)
    direction = Direction.ENCLOSURE
    reference = f"{CHUA_BALLS} (importance sampling, order statistics); {BETTING}"
    version = 3

    samples: Annotated[int, params.SAMPLES] = 10_000
    sampling: Annotated[str, allocation_params.SAMPLING] = "order"
    confidence: Annotated[float, params.CONFIDENCE] = 0.99

    def applies(self, problem: Allocation) -> str | None:
        if problem.participations > 1:
            return (
                "The simulation covers participations=1 only: for more, the likelihood ratio is not a mean "
                "of independent ratios."
            )
        if self._draws(problem) > _MOST_DRAWS:
            return (
                f"The samples would take more than {_MOST_DRAWS:.0e} random numbers; reduce samples, steps "
                "or epochs."
            )
        return None

    def cost(self, problem: Allocation) -> Cost:
        if self.applies(problem) is not None:
            return Cost(seconds=1e-3, bytes=1e5)
        per_sample = self._draws(problem) / self.samples
        betting = (
            _SECONDS_PER_BET * min(self.samples, MOST_GROUPS) * len(profile.DIRECTIONS[problem.adjacency])
        )
        seconds = 0.01 + _SECONDS_PER_DRAW * self._draws(problem) + betting
        return Cost(seconds=seconds, bytes=1e8 + 100.0 * per_sample)

    def answer(self, problem: Allocation, seed: int) -> Answer:
        rng = np.random.default_rng(seed)
        directions = profile.DIRECTIONS[problem.adjacency]
        error = 0.5 * (1.0 - self.confidence)
        errors = error / len(directions), error
        found = [self._one(problem, direction, rng, errors) for direction in directions]
        lower, upper, value, spread, apart = (max(column) for column in zip(*found, strict=True))
        # An estimate is given if it is known to about a factor of 2.
        shown = value if upper <= 2.0 * value and value <= 2.0 * lower else None
        detail = f"{self.samples} samples in {' and '.join(directions)}, {self.sampling} sampling"
        if note := width_note(upper - lower, spread, self.confidence):
            detail += note
            if apart > 0.5 * (upper - lower):
                detail += ", for order statistics bracket each sample; sampling=importance draws all outputs"
        return Answer.enclosure(lower, upper, value=shown, confidence=self.confidence, detail=detail)

    def _draws(self, problem: Allocation) -> float:
        """Return the number of random numbers that all samples take."""
        directions = len(profile.DIRECTIONS[problem.adjacency])
        return (self._simulation(problem).draws() + 4.0 * problem.epochs) * self.samples * directions

    def _simulation(self, problem: Allocation) -> Simulation:
        return Simulation(
            steps=problem.steps,
            epochs=problem.epochs,
            shift=1.0 / problem.sigma,
            epsilon=abs(problem.at),
            conditional=self.sampling != "plain",
            sparse=self.sampling == "order",
        )

    def _one(
        self, problem: Allocation, direction: str, rng: np.random.Generator, errors: tuple[float, float]
    ) -> tuple[float, float, float, float, float]:
        """Return confidence bounds of one direction, with these error probabilities, and the estimate.

        Its standard error, and the distance of the means from below and from above, come last.
        """
        reflected = problem.at < 0.0
        if reflected:  # delta(x) = 1 - e^x + e^x delta'(-x), delta' that of the other direction
            direction = "add" if direction == "remove" else "remove"
        simulation = self._simulation(problem)
        h, probability = simulation.event(direction)
        if probability < _SMALLEST_EVENT:
            lower, upper, value, spread, apart = 0.0, _SMALLEST_EVENT, 0.0, 0.0, 0.0
        else:
            low, high = simulation.means(rng, direction, h, self.samples)
            ends = low.lower(errors[0]), high.upper(errors[1]), 0.5 * (low.mean + high.mean)
            spreads = high.standard_error, high.mean - low.mean
            lower, upper, value, spread, apart = (probability * each for each in (*ends, *spreads))
        if not reflected:
            return lower, upper, value, spread, apart
        base, scale = -math.expm1(problem.at), math.exp(problem.at)
        lower, upper = base + scale * lower, base + scale * upper
        return (
            lower * (1.0 - FEW_OPERATIONS),
            probability_at_most(upper, FEW_OPERATIONS),
            min(1.0, base + scale * value),
            scale * spread,
            scale * apart,
        )
