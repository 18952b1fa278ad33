"""Base of the record distributions: atoms by falling probability, and sums over those that come after."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Atoms:
    """Distinct probabilities of atoms, falling.

    Attributes:
        p: Probabilities, in (0, 1].
        q: What they lack to 1, with the same relative error, which `1 - p` would not have for large p.
        number: How many atoms have this probability.
    """

    p: Array
    q: Array
    number: Array


class RecordDistribution(ABC):
    """Distribution of a record.

    Attributes:
        error: Bound for the relative errors of the probabilities p, of 1 - p, and of sums of their powers.
        continuous: Probability of the part without atoms, in [0, 1).
    """

    error: float = 4e-16
    continuous: float = 0.0

    @property
    @abstractmethod
    def text(self) -> str:
        """The canonical spelling."""

    @property
    @abstractmethod
    def finite(self) -> bool:
        """Whether there are finitely many atoms."""

    @abstractmethod
    def reach(self, least: float) -> float:
        """Return how many distinct atoms there are; for infinitely many, how many have p >= least > 0."""

    @abstractmethod
    def atoms(self, start: int, stop: int) -> Atoms:
        """Return the distinct atoms at places start + 1, ..., stop by falling probability."""

    @abstractmethod
    def at(self, places: Array) -> tuple[Array, Array]:
        """Return p and 1 - p of the distinct atoms at these places, from 1."""

    @abstractmethod
    def tail(self, power: float, after: Array) -> Array:
        r"""Return $\sum_{k > T} p_k^a$ for the power a and places T; infinite where it diverges."""

    def tail_sum(self, power: float, after: float) -> float:
        """Return `tail` for one place."""
        return float(self.tail(power, np.array([float(after)]))[0])
