r"""Distributions of the number K of runs; only the best run is released.

With the generating function $f(x) = E x^K$, the best of K independent outcomes is at most as good as the
share x of all outcomes with probability f(x).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from privcore.distributions.notation import CALL, number, spelled
from privcore.errors import DomainError
from privcore.likelihood_ratio.grid import Array
from privcore.numerics.rounding import UNIT
from privcore.parameter import Text

MOST = 1e6
"""Largest number of repetitions, or mean of it."""
LEAST_STOP = 1e-6
"""Smallest probability to stop of a truncated negative binomial distribution."""


class Repeats(ABC):
    """Distribution of the number K of repetitions, which does not depend on the data."""

    @property
    @abstractmethod
    def mean(self) -> float:
        """Mean of K, the slope of the generating function at 1."""

    @property
    @abstractmethod
    def none(self) -> float:
        """Probability that nothing is run."""

    @property
    @abstractmethod
    def error(self) -> float:
        """Bound of the relative errors of `slope` and of `between`."""

    def growth(self, epsilon: Callable[[float], float]) -> float:
        r"""Return an upper bound of the logarithm of $f'(T(x)) / f'(x)$ for all x; it may be infinite.

        Args:
            epsilon: Function that returns an upper bound of epsilon of one run, at a delta.
        """
        return math.inf

    @abstractmethod
    def slope(self, x: Array) -> Array:
        r"""Return $f'(x)$, which does not fall, for x in [0, 1]."""

    @abstractmethod
    def between(self, x: Array, below: Array) -> Array:
        r"""Return $f(x) - f(x - d)$ for $0 \le d \le x \le 1$; it does not fall in x or d."""


@dataclass(frozen=True)
class BinomialRuns(Repeats):
    """Each of n planned runs is made with probability p: $f(x) = (1 - p + p x)^n$. With p = 1, K is fixed."""

    planned: int
    chance: float = 1.0

    @property
    def mean(self) -> float:
        return self.planned * self.chance

    @property
    def none(self) -> float:
        return (1.0 - self.chance) ** self.planned * (1.0 + self.error)

    @property
    def error(self) -> float:
        return 16.0 * (2.0 + self.planned) * UNIT

    def _share(self, x: Array) -> Array:
        return np.asarray((1.0 - self.chance) + self.chance * x)

    def slope(self, x: Array) -> Array:
        return np.asarray(self.mean * np.power(self._share(x), self.planned - 1.0))

    def between(self, x: Array, below: Array) -> Array:
        share = self._share(x)
        lost = np.divide(self.chance * below, share, out=np.zeros_like(share), where=share > 0.0)
        with np.errstate(divide="ignore"):
            part = np.expm1(self.planned * np.log1p(-np.minimum(lost, 1.0)))
        return np.asarray(-np.power(share, float(self.planned)) * part)


@dataclass(frozen=True)
class PoissonRuns(Repeats):
    r"""Poisson distribution with mean m: $f(x) = e^{m (x - 1)}$."""

    rate: float

    @property
    def mean(self) -> float:
        return self.rate

    @property
    def none(self) -> float:
        return math.exp(-self.rate) * (1.0 + self.error)

    @property
    def error(self) -> float:
        return 16.0 * (2.0 + self.rate) * UNIT

    def growth(self, epsilon: Callable[[float], float]) -> float:
        return self.rate

    def slope(self, x: Array) -> Array:
        return np.asarray(self.rate * np.exp(self.rate * (x - 1.0)))

    def between(self, x: Array, below: Array) -> Array:
        return np.asarray(-np.exp(self.rate * (x - 1.0)) * np.expm1(-self.rate * below))


@dataclass(frozen=True)
class NegativeBinomialRuns(Repeats):
    r"""Negative binomial distribution without 0, with $w(x) = 1 - (1 - \gamma) x$.

    $f(x) = (w(x)^{-a} - 1) / (\gamma^{-a} - 1)$. For a = 0 the limit, the logarithmic
    distribution; for a = 1 the geometric one.

    Attributes:
        shape: The shape a, in (-1, 10].
        stop: The probability gamma, in (0, 1).
    """

    shape: float
    stop: float

    @property
    def mean(self) -> float:
        return float(self.slope(np.ones(1))[0]) * (1.0 + self.error)

    @property
    def none(self) -> float:
        return 0.0

    @property
    def error(self) -> float:
        return 64.0 * (4.0 + abs(self.shape) * (1.0 - math.log(self.stop))) * UNIT

    def _rest(self, x: Array) -> Array:
        """Return w, as a sum of positive terms."""
        return np.asarray(self.stop + (1.0 - self.stop) * (1.0 - x))

    @property
    def _whole(self) -> float:
        """The denominator of f over the shape; its limit is minus the logarithm of gamma."""
        length = -math.log(self.stop)
        return length if self.shape == 0.0 else math.expm1(self.shape * length) / self.shape

    def growth(self, epsilon: Callable[[float], float]) -> float:
        return (1.0 + self.shape) * max(math.log(2.0), epsilon(self.stop)) * (1.0 + 8.0 * UNIT)

    def slope(self, x: Array) -> Array:
        return np.asarray(np.power(self._rest(x), -1.0 - self.shape) * ((1.0 - self.stop) / self._whole))

    def between(self, x: Array, below: Array) -> Array:
        rest, a = self._rest(x), self.shape
        length = np.log1p((1.0 - self.stop) * below / rest)
        part = length if a == 0.0 else -np.expm1(-a * length) / a
        return np.asarray(np.power(rest, -a) * part / self._whole)


def _binomial(planned: float, chance: float = 1.0) -> Repeats:
    if not (planned == int(planned) and 1.0 <= planned <= MOST):
        raise DomainError(f"Expected a whole number of runs in [1, {MOST:g}], got {spelled(planned)}.")
    if not 1e-6 <= chance <= 1.0:
        raise DomainError(f"Expected a probability of a run in [1e-06, 1], got {spelled(chance)}.")
    return BinomialRuns(int(planned), chance)


def _poisson(mean: float) -> Repeats:
    if not 1e-3 <= mean <= MOST:
        raise DomainError(
            f"Expected a mean number of runs in [0.001, {MOST:g}], got poisson({spelled(mean)})."
        )
    return PoissonRuns(mean)


def _geometric(mean: float) -> Repeats:
    if not 1.0 < mean <= MOST:
        raise DomainError(f"Expected a mean number of runs in (1, {MOST:g}], got geometric({spelled(mean)}).")
    return NegativeBinomialRuns(1.0, 1.0 / mean)


def _negative_binomial(shape: float, stop: float) -> Repeats:
    if not (-0.99 <= shape <= 10.0 and LEAST_STOP <= stop <= 0.999):
        raise DomainError(
            f"Expected a shape in [-0.99, 10] and a probability in [{LEAST_STOP:g}, 0.999], got "
            f"negative-binomial({spelled(shape)},{spelled(stop)})."
        )
    return NegativeBinomialRuns(shape, stop)


_KINDS: dict[str, tuple[int, Callable[..., Repeats]]] = {
    "binomial": (2, _binomial),
    "fixed": (1, _binomial),
    "geometric": (1, _geometric),
    "poisson": (1, _poisson),
    "negative-binomial": (2, _negative_binomial),
}


@lru_cache(maxsize=64)
def _read(text: str) -> tuple[str, Repeats] | None:
    """Return the canonical spelling of a text and its distribution, or None for a text of another grammar."""
    call = CALL.fullmatch(text.strip())
    if call is None or call[1] not in _KINDS:
        return None
    count, kind = _KINDS[call[1]]
    values = [value for word in call[2].split(",") if (value := number(word)) is not None]
    if not len(values) == count == call[2].count(",") + 1:
        return None
    return f"{call[1]}({','.join(map(spelled, values))})", kind(*values)


def repeats(text: str) -> Repeats:
    """Return the distribution that a canonical text names.

    Example:
        >>> round(repeats("negative-binomial(0,0.01)").mean, 3)
        21.498
    """
    found = _read(text)
    assert found is not None
    return found[1]


def canonical(text: str) -> str | None:
    """Return the canonical spelling, or None for a text of another grammar.

    Raises:
        DomainError: A number is outside its domain.

    Example:
        >>> canonical("geometric( 1e1 )")
        'geometric(10)'
    """
    found = _read(text)
    return found and found[0]


REPEATS = Text(
    name="repeats",
    symbol="K",
    grammar="{fixed(RUNS), binomial(RUNS,CHANCE), poisson(MEAN), geometric(MEAN), "
    "negative-binomial(SHAPE,STOP)}",
    canonical=canonical,
    typical=("fixed(10)", "geometric(10)", "poisson(20)", "negative-binomial(0,0.01)"),
    meaning=(
        "Number of runs; only the best one is released. It is fixed, or drawn at random and not released "
        "(geometric from 1 on; each of some runs with a chance; negative-binomial without 0, with its shape "
        "and its probability to stop, where shape 0 is the logarithmic distribution)"
    ),
)
