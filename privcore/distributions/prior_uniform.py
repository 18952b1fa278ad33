"""The uniform prior on [0, 1]."""

import numpy as np

from privcore.distributions.prior import Array, Cells, Prior


class Uniform(Prior):
    r"""Uniform law; $\Psi(t) = (1/2 - t)^2 / 2$."""

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
