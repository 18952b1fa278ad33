"""Base of the record distributions: atoms by falling probability, and sums over their tails."""

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
        q: Complements 1 - p, with the same relative error as p, which a computed `1 - p` lacks for large p.
        number: Numbers of atoms with these probabilities.
    """

    p: Array
    q: Array
    number: Array


class RecordDistribution(ABC):
    """Distribution of a record.

    Attributes:
        error: Bound on the relative errors of the probabilities p, of 1 - p, and of sums of their powers.
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
        """Return the number of distinct atoms; if infinite, the number of those with p >= least > 0."""

    @abstractmethod
    def atoms(self, start: int, stop: int) -> Atoms:
        """Return the distinct atoms at places start + 1, ..., stop in the order of falling probability."""

    @abstractmethod
    def at(self, places: Array) -> tuple[Array, Array]:
        """Return p and 1 - p of the distinct atoms at these places, counted from 1."""

    @abstractmethod
    def tail(self, power: float, after: Array) -> Array:
        r"""Return $\sum_{k > T} p_k^a$ for the power a and places T; infinite if it diverges."""

    def tail_sum(self, power: float, after: float) -> float:
        """Return `tail` for a single place."""
        return float(self.tail(power, np.array([float(after)]))[0])
