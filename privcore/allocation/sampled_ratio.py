"""Sampling of the likelihood ratio of random allocation, given that it can contribute to delta."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from privcore.allocation.largest import log_exceedances
from privcore.allocation.order_statistics import (
    draw_exceedances,
    kept_ranks,
    normal_of_exceedance,
    rank_weights,
)
from privcore.numerics.bounded_mean import SampledMean

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
