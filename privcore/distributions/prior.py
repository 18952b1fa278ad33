"""Base of the priors: the distribution of eta with the few functionals that advantages depend on."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Cells:
    """A partition of [0, 1] into intervals, with what the prior puts into each.

    Attributes:
        mass: Probabilities, positive; they sum to 1 but for rounding.
        mean: Conditional means.
        lower: Left ends of the intervals.
        upper: Right ends.
    """

    mass: Array
    mean: Array
    lower: Array
    upper: Array


class Prior(ABC):
    r"""Distribution D of eta on [0, 1].

    An optimal guess of a label, from outputs z of likelihoods $g_1(z)$, $g_0(z)$, gains over guessing blindly

    $$\sum_z E_\eta (\eta g_1 - (1 - \eta) g_0)_+ 1\{\eta \le 1/2\}
      + ((1 - \eta) g_0 - \eta g_1)_+ 1\{\eta > 1/2\} = \sum_z (g_0 + g_1) \Psi(g_0 / (g_0 + g_1))$$

    with $\Psi(t) = |\int_t^{1/2} (\eta - t) \, D(d\eta)|$: a sum of positive terms, in which the prior has
    one convex function. Everything else that a prior has to tell is a moment, a probability or a sample.

    Attributes:
        error: Bound for the relative error of overturned masses and probabilities.
        moment_error: Bound for the relative error of the moments.
    """

    error: float = 1e-11
    moment_error: float = 1e-15

    @property
    @abstractmethod
    def text(self) -> str:
        """The canonical spelling."""

    @property
    @abstractmethod
    def mean(self) -> float:
        """Mean of eta, the rate p of label 1."""

    @property
    @abstractmethod
    def label_variance(self) -> float:
        r"""Mean of $\eta (1 - \eta)$, the variance $\mu$ of a label given the features."""

    @property
    @abstractmethod
    def label_variance_square(self) -> float:
        r"""Mean of $\eta^2 (1 - \eta)^2$."""

    @property
    def atoms(self) -> tuple[Array, Array] | None:
        """Values and probabilities of a distribution with finite support, values rising; None for others."""
        return None

    @property
    def ends(self) -> tuple[float, float]:
        """Probabilities of eta = 0 and of eta = 1."""
        return 0.0, 0.0

    @abstractmethod
    def overturned(self, one: Array, zero: Array) -> Array:
        r"""Return $(g_0 + g_1) \Psi(g_0 / (g_0 + g_1))$ for likelihoods, to the relative error.

        Args:
            one: Likelihoods $g_1 \ge 0$ of outputs if the label is 1.
            zero: Likelihoods $g_0 \ge 0$ of the same outputs if it is 0, of the same shape.
        """

    def overturned_quickly(self, one: Array, zero: Array) -> Array:
        """Return about the same as `overturned`, to the relative error `quick_error`, for many samples."""
        return self.overturned(one, zero)

    @property
    def quick_error(self) -> float:
        """Bound for the relative error of quick values, measured where they come from a table."""
        return self.error

    @property
    def blind(self) -> float:
        r"""Mean of $\min(\eta, 1 - \eta)$: how often the best blind guess is wrong."""
        ones, zeros = np.array([1.0, 0.0]), np.array([0.0, 1.0])
        return float(self.overturned(ones, zeros).sum())

    @abstractmethod
    def between(self, lower: float, upper: float) -> float:
        """Return the probability of lower < eta < upper."""

    @abstractmethod
    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        """Return independent samples of eta."""

    @abstractmethod
    def cells(self, number: int) -> Cells | None:
        """Return at most so many cells, about equally important; None where none are known exactly."""
