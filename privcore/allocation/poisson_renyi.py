"""Poisson sampling by Renyi divergences: the moments accountant, accurate to rounding."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import get_args

import numpy as np
import scipy

from privcore.allocation.comparisons import NO_REPLACEMENT, Poisson, PoissonEpsilon
from privcore.allocation.moments import FRACTIONS, SPREAD_ORDERS, gaussian_moments, log_mean
from privcore.answer import Answer
from privcore.method import Cost, Direction, Method
from privcore.numerics.renyi import Floats, delta_from_moments, epsilon_from_moments, reflected_delta
from privcore.numerics.rounding import EXPRESSION
from privcore.papers import MIRONOV

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


@dataclass(frozen=True, kw_only=True)
class PoissonRenyi(Method[Poisson]):
    r"""Bound Poisson sampling by the Renyi divergence of one step, times the number of steps.

    The divergence of direction remove, $R_\alpha(P \Vert Q)$, is at least that of direction add at every
    order, so a single bound covers both directions.
    """

    name = "poisson.renyi"
    problems = get_args(Poisson)
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
        if isinstance(problem, PoissonEpsilon):
            upper, order = epsilon_from_moments(ORDERS, moments, problem.delta)
        else:
            upper, order = delta_from_moments(ORDERS, moments, abs(problem.epsilon))
            if problem.epsilon < 0.0:
                upper = reflected_delta(problem.epsilon, upper)
        return Answer.at_most(upper, detail=f"Renyi order {order:.6g}")
