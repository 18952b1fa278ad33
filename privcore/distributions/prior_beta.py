"""Beta and uniform priors."""

import numpy as np
import scipy

from privcore.distributions.notation import spelled
from privcore.distributions.prior import Array, Cells, Prior
from privcore.distributions.prior_density import Density
from privcore.errors import DomainError

_LEAST, _MOST = 0.05, 1000.0


class Beta(Density):
    r"""Beta(a, b) distribution: $\ln f(z) = a \ln \sigma(z) + b \ln \sigma(-z) - \ln B(a, b)$."""

    def __init__(self, a: float, b: float) -> None:
        for x in (a, b):
            if not _LEAST <= x <= _MOST:
                raise DomainError(f"Expected a, b of beta(a,b) in [{_LEAST:g}, {_MOST:g}], got {x:.12g}.")
        self.a, self.b = a, b

    @property
    def text(self) -> str:
        return "uniform" if self.a == self.b == 1.0 else f"beta({spelled(self.a)},{spelled(self.b)})"

    @property
    def mean(self) -> float:
        return self.a / (self.a + self.b)

    @property
    def label_variance(self) -> float:
        a, b = self.a, self.b
        return a * b / ((a + b) * (a + b + 1.0))

    @property
    def label_variance_square(self) -> float:
        a, b = self.a, self.b
        total = a + b
        return a * (a + 1.0) * b * (b + 1.0) / (total * (total + 1.0) * (total + 2.0) * (total + 3.0))

    def log_density(self, z: Array) -> Array:
        return np.asarray(
            self.a * scipy.special.log_expit(z)
            + self.b * scipy.special.log_expit(-z)
            - scipy.special.betaln(self.a, self.b)
        )

    @property
    def panel(self) -> float:
        return float(min(0.5, 4.0 / np.sqrt(self.a + self.b), 16.0 / max(self.a, self.b)))

    @property
    def reach(self) -> tuple[float, float]:
        # Besides the density, integrands have the factor eta on the left and 1 - eta on the right.
        return -60.0, 60.0

    def between(self, lower: float, upper: float) -> float:
        lower, upper = min(max(lower, 0.0), 1.0), min(max(upper, 0.0), 1.0)
        if lower >= upper:
            return 0.0
        if lower > self.mean:  # the smaller tail, so that nothing cancels
            return float(
                scipy.special.betaincc(self.a, self.b, lower) - scipy.special.betaincc(self.a, self.b, upper)
            )
        return float(
            scipy.special.betainc(self.a, self.b, upper) - scipy.special.betainc(self.a, self.b, lower)
        )

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        return rng.beta(self.a, self.b, shape)

    def cells(self, number: int) -> Cells:
        # Cells of equal probability under the normalised cube root of the density minimise the error.
        a, b = 1.0 + (self.a - 1.0) / 3.0, 1.0 + (self.b - 1.0) / 3.0
        edges = scipy.special.betaincinv(a, b, np.linspace(0.0, 1.0, number + 1))
        mass = self._differences(self.a, self.b, edges)
        first = self.mean * self._differences(self.a + 1.0, self.b, edges)
        keep = mass > 0.0
        mean = np.clip(first[keep] / mass[keep], edges[:-1][keep], edges[1:][keep])
        return Cells(mass=mass[keep], mean=mean, lower=edges[:-1][keep], upper=edges[1:][keep])

    @staticmethod
    def _differences(a: float, b: float, edges: Array) -> Array:
        """Return the probabilities of Beta(a, b) between neighbouring edges."""
        below, above = (
            np.diff(scipy.special.betainc(a, b, edges)),
            -np.diff(scipy.special.betaincc(a, b, edges)),
        )
        return np.asarray(np.where(edges[1:] <= a / (a + b), below, above))


class Uniform(Prior):
    r"""Uniform distribution; $\Psi(t) = (1/2 - t)^2 / 2$."""

    error = 1e-15

    @property
    def text(self) -> str:
        return "uniform"

    @property
    def mean(self) -> float:
        return 0.5

    @property
    def label_variance(self) -> float:
        return 1.0 / 6.0

    @property
    def label_variance_square(self) -> float:
        return 1.0 / 30.0

    def overturned(self, one: Array, zero: Array) -> Array:
        total = one + zero
        return np.divide((one - zero) ** 2, 8.0 * total, out=np.zeros_like(total), where=total > 0.0)

    def between(self, lower: float, upper: float) -> float:
        return max(0.0, min(upper, 1.0) - max(lower, 0.0))

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        return rng.random(shape)

    def cells(self, number: int) -> Cells:
        edges = np.linspace(0.0, 1.0, number + 1)
        return Cells(
            mass=np.diff(edges), mean=0.5 * (edges[1:] + edges[:-1]), lower=edges[:-1], upper=edges[1:]
        )
