"""Random allocation from truncated Poisson sampling, with the tail of the posterior by Doob and Chernoff.

The tail is the probability that the posterior of the chosen step exceeds a sampling probability.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, get_args

import numpy as np
import scipy

from privcore import params
from privcore.allocation.problems import Allocation
from privcore.allocation.truncation import block, bounded, cost_of
from privcore.answer import Answer
from privcore.likelihood_ratio.grid import Array
from privcore.likelihood_ratio.steps import lognormal_cells
from privcore.method import Cost, Direction, Method
from privcore.numerics.rounding import EXPONENTIAL_REST, TRUNCATED_RATE
from privcore.papers import FELDMAN_SHENFELD

LARGEST_S = 20.0
"""Largest inverse noise multiplier for which tilts are tried; beyond, even means of e^400 ratios vary."""

_END = 37.0
_CELLS_PER_DEVIATION = 64
_TILTS_PER_OCTAVE = 8


@dataclass(frozen=True, kw_only=True)
class AllocationTruncated(Method[Allocation]):
    r"""Bound k-of-t allocation by Poisson sampling with a probability that the posterior rarely exceeds.

    With $X_j$ the likelihood ratios of the steps under Q, the posterior exceeds $\eta$ when some partial sum
    of the martingale $\sum_j (1 - X_j)$ exceeds $f - 1/\eta$. By Doob's inequality, for every $\theta > 0$,
    $$\beta_{add} \le e^{-\theta (f - 1/\eta)} \, E[e^{\theta (1 - X)}]^{f - 1}, \quad
      \beta_{remove} \le \beta_{add} / (f \eta).$$
    """

    name = "allocation.truncated"
    problems = get_args(Allocation)
    direction = Direction.UPPER
    reference = f"{FELDMAN_SHENFELD}, Lemma 4.3 and Lemma 3.2; tail: Doob, Chernoff"
    version = 2
    shares = ("sigma", "steps")

    tolerance: Annotated[float, params.TOLERANCE] = 0.01

    def cost(self, problem: Allocation) -> Cost:
        return cost_of(problem, self.tolerance)

    def answer(self, problem: Allocation, seed: int) -> Answer:
        steps, copies = block(problem)

        def rate(direction: str, budget: float) -> float | None:
            return posterior_bound(1.0 / problem.sigma, steps, budget / copies, direction)

        return bounded(problem, rate, self.tolerance)


def posterior_bound(s: float, steps: int, beta: float, direction: str) -> float | None:
    """Return a probability that the posterior of 1-of-`steps` exceeds with probability at most beta.

    Args:
        s: Inverse noise multiplier.
        steps: Number of steps f, >= 1.
        beta: Probability in (0, 1).
        direction: `add` for outputs without the example, `remove` for outputs with it.

    Returns:
        Smallest probability found, rounded up, in [1 / f, 1); None if no probability below 1 is found.

    Example:
        >>> round(1000.0 * posterior_bound(0.5, 1000, 1e-10, "add"), 3)
        1.12
    """
    found = [_posterior_bound(s, steps, beta)]
    if found[0] is None or direction == "add":
        return found[0]
    # If eta >= eta_1 and beta_add(eta) <= beta f eta_1, beta_remove(eta) <= beta_add(eta) / (f eta) <= beta.
    for _ in range(2):
        last = found[-1]
        if last is None:
            return None
        found.append(
            _posterior_bound(s, steps, min(0.5, beta * max(1.0, steps * last * (1.0 - TRUNCATED_RATE))))
        )
    return max(eta for eta in found[1:] if eta is not None) if None not in found else None


@lru_cache(maxsize=4096)
def _posterior_bound(s: float, steps: int, beta: float) -> float | None:
    """Return the probability for direction add: 1 / (f - a), a the excess that Chernoff allows."""
    if s > LARGEST_S or steps == 1 or beta < 1e-290:
        return None

    def excess(tilt: int) -> float:
        theta = math.exp2(tilt / _TILTS_PER_OCTAVE)
        return ((steps - 1) * math.log1p(tilted(s, theta)) - math.log(beta)) / theta

    # theta ~ sqrt(2 ln(1/beta) / f) / s in the central limit; the excess is quasi-convex in theta
    start = math.log2(math.sqrt(-2.0 * math.log(beta) / steps) / math.sqrt(math.expm1(min(s * s, 1.0))))
    tilt = round(_TILTS_PER_OCTAVE * start)
    best = excess(tilt)
    for way in (1, -1):
        while (new := excess(tilt + way)) < best:
            tilt, best = tilt + way, new
    best *= 1.0 + TRUNCATED_RATE
    if not best < steps - 1.0:
        return None
    return min(1.0, (1.0 + TRUNCATED_RATE) / (steps - best))


@lru_cache(maxsize=4096)
def tilted(s: float, theta: float) -> float:
    r"""Return an upper bound of $E[e^{\theta (1 - X)}] - 1 = E[\psi(\theta (1 - X))]$, X lognormal of mean 1.

    With $\psi(y) = e^y - 1 - y$, the integrand is convex in X and not negative. So it lies below its chord in
    every cell, and the sum over the cells has no cancellation.

    Args:
        s: Inverse noise multiplier, in (0, 20].
        theta: Tilt, > 0.

    Returns:
        Upper bound; infinity if it would exceed the range of doubles.

    Example:
        >>> round(tilted(0.1, 1.0) / (0.5 * 0.1**2), 2)
        1.0
    """
    edges, mass, right, slack = _cells(s)
    psi = _rest(theta, edges)
    if not math.isfinite(psi[1]):
        return math.inf
    inner = psi[1:-1] * (mass - right) + psi[2:] * right
    total = float(np.sum(inner + 3.0 * slack * np.maximum(psi[1:-1], psi[2:]) * mass))
    # Below the first cell psi <= e^y, with y <= theta and y <= -theta (s Z - s^2 / 2).
    low, high = _ends(s)
    tilt = 0.5 * theta * s * s * (1.0 + theta) + float(scipy.special.log_ndtr(low + theta * s))
    below = min(theta + float(scipy.special.log_ndtr(low)), tilt) + 1e-9
    # Above the last, psi rises with slope at most theta.
    above = float(psi[-1]) * float(scipy.special.ndtr(-high)) + theta * float(scipy.special.ndtr(s - high))
    if not math.isfinite(total) or below > 700.0:
        return math.inf
    return (total + math.exp(below) + above) * (1.0 + TRUNCATED_RATE)


def _rest(theta: float, edges: Array) -> Array:
    r"""Return $\psi(\theta (1 - x))$ at the edges x, rounded up."""
    y = theta * (1.0 - edges)
    with np.errstate(over="ignore", invalid="ignore"):
        series = 0.5 * y * y * (1.0 + y / 3.0 + y * y / 11.0)
        return np.asarray(np.where(np.abs(y) < 1e-3, series, np.expm1(y) - y) * (1.0 + EXPONENTIAL_REST))


def _ends(s: float) -> tuple[float, float]:
    """Return the ends of the cells in Z; X is a double at both, and the rest contributes next to nothing."""
    return -min(_END, 600.0 / s - 0.5 * s), s + min(_END, 400.0 / s)


@lru_cache(maxsize=16)
def _cells(s: float) -> tuple[Array, Array, Array, float]:
    """Return edges of X (the first is 0), masses, weights of right ends, and relative error of the cells."""
    low, high = _ends(s)
    z = np.linspace(low, high, math.ceil(_CELLS_PER_DEVIATION * (high - low)))
    edges = np.append(0.0, np.exp(s * z - 0.5 * s * s))
    mass, moment, error = lognormal_cells(s, edges)
    right = np.minimum(moment[1:-1] / np.diff(edges[1:]), mass[1:-1])
    return edges, mass[1:-1], right, error + TRUNCATED_RATE
