"""Logit-normal priors: the logistic function of a Gaussian variable."""

import math
from functools import cached_property

import numpy as np
import scipy

from privcore.distributions.notation import spelled
from privcore.distributions.prior import Array
from privcore.distributions.prior_density import Density
from privcore.errors import DomainError


class LogitNormal(Density):
    """Distribution of sigma(m + s g) for standard Gaussian g: a logistic model with Gaussian features."""

    moment_error = 1e-12

    def __init__(self, m: float, s: float) -> None:
        if not -30.0 <= m <= 30.0:
            raise DomainError(f"Expected m of logit-normal(m,s) in [-30, 30], got {m:.12g}.")
        if not 0.05 <= s <= 10.0:
            raise DomainError(f"Expected s of logit-normal(m,s) in [0.05, 10], got {s:.12g}.")
        self.m, self.s = m, s

    @property
    def text(self) -> str:
        return f"logit-normal({spelled(self.m)},{spelled(self.s)})"

    @cached_property
    def mean(self) -> float:
        return self.mean_of(scipy.special.expit(self.nodes))

    @cached_property
    def label_variance(self) -> float:
        return self.mean_of(scipy.special.expit(self.nodes) * scipy.special.expit(-self.nodes))

    @cached_property
    def label_variance_square(self) -> float:
        return self.mean_of((scipy.special.expit(self.nodes) * scipy.special.expit(-self.nodes)) ** 2)

    def log_density(self, z: Array) -> Array:
        return np.asarray(-0.5 * ((z - self.m) / self.s) ** 2 - math.log(self.s * math.sqrt(2.0 * math.pi)))

    @property
    def panel(self) -> float:
        return min(0.5, 0.4 * self.s)

    @property
    def reach(self) -> tuple[float, float]:
        # At a distance of 39 s from m, the density is below 1e-320 times its largest value.
        return min(self.m - 39.0 * self.s, 0.0), max(self.m + 39.0 * self.s, 0.0)

    def between(self, lower: float, upper: float) -> float:
        if lower >= upper:
            return 0.0
        a, b = ((float(scipy.special.logit(min(max(x, 0.0), 1.0))) - self.m) / self.s for x in (lower, upper))
        return (
            float(scipy.special.ndtr(b) - scipy.special.ndtr(a))
            if a < 0.0
            else float(scipy.special.ndtr(-a) - scipy.special.ndtr(-b))
        )

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        return np.asarray(scipy.special.expit(self.m + self.s * rng.standard_normal(shape)))

    def cells(self, number: int) -> None:
        return None
