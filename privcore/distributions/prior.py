"""Base of the priors: the distribution of eta, and its functionals that determine advantages."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Cells:
    """Partition of [0, 1] into intervals, with the probability and conditional mean of each.

    Attributes:
        mass: Probabilities, positive; they sum to 1 up to rounding.
        mean: Conditional means.
        lower: Left ends of the intervals.
        upper: Right ends of the intervals.
    """

    mass: Array
    mean: Array
    lower: Array
    upper: Array


class Prior(ABC):
    r"""Distribution D of eta on [0, 1].

    The gain of an optimal guess of a label, from outputs z with likelihoods $g_1(z)$ and $g_0(z)$, over a
    blind guess is

    $$\sum_z E_\eta (\eta g_1 - (1 - \eta) g_0)_+ 1\{\eta \le 1/2\}
      + ((1 - \eta) g_0 - \eta g_1)_+ 1\{\eta > 1/2\} = \sum_z (g_0 + g_1) \Psi(g_0 / (g_0 + g_1))$$

    with $\Psi(t) = |\int_t^{1/2} (\eta - t) \, D(d\eta)|$. This is a sum of positive terms, which depends on
    the prior only through $\Psi$. The other properties of a prior are moments, probabilities and samples.

    Attributes:
        error: Bound on the relative error of overturned masses and probabilities.
        moment_error: Bound on the relative error of the moments.
        counts: Numbers of rows of a file with each of the `atoms`; None if the prior is not a column.
    """

    error: float = 1e-11
    moment_error: float = 1e-15
    counts: NDArray[np.int64] | None = None

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
        """Rising values and their probabilities if the support is finite; None otherwise."""
        return None

    @property
    def ends(self) -> tuple[float, float]:
        """Probabilities of eta = 0 and of eta = 1."""
        return 0.0, 0.0

    @abstractmethod
    def overturned(self, one: Array, zero: Array) -> Array:
        r"""Return $(g_0 + g_1) \Psi(g_0 / (g_0 + g_1))$ for likelihoods, with relative error at most `error`.

        Args:
            one: Likelihoods $g_1 \ge 0$ of outputs if the label is 1.
            zero: Likelihoods $g_0 \ge 0$ of the same outputs if the label is 0, of the same shape.
        """

    def overturned_quickly(self, one: Array, zero: Array) -> Array:
        """Return `overturned` with relative error at most `quick_error`, quickly for many samples."""
        return self.overturned(one, zero)

    @property
    def quick_error(self) -> float:
        """Bound on the relative error of `overturned_quickly`; measured if its values come from a table."""
        return self.error

    @property
    def blind(self) -> float:
        r"""Mean of $\min(\eta, 1 - \eta)$: the error rate of the best guess from the features alone."""
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
        """Return at most `number` cells of similar importance; None if they are not known exactly."""
