"""Questions about utility: the error of a mean estimated from private sums over the steps of an epoch."""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated

from privcore import params
from privcore.allocation import params as allocation_params
from privcore.allocation.problems import AllocationProblem
from privcore.problem import falls, grows, proved

_LESS_NOISE = (
    "Noise that meets the smaller budget also meets the larger one, so the least noise does not grow; the "
    "error is a part without noise plus a multiple of the noise variance."
)
_MORE_EXAMPLES = "The least noise does not depend on n, and every term is a constant divided by n or n^2."
_MORE_COORDINATES = "The least noise does not depend on d, and d is a factor of the noise term."

# No claim about steps: t sigma^2 is proved to grow only from t to its multiples, because sums of neighbouring
# outputs are the outputs of fewer steps. No claim about proportion: p (1 - p) is not monotone.
_MONOTONE = proved(
    epsilon=falls(_LESS_NOISE),
    delta=falls(_LESS_NOISE),
    examples=falls(_MORE_EXAMPLES),
    dimension=grows(_MORE_COORDINATES),
)


@dataclass(frozen=True, kw_only=True)
class MeanError(AllocationProblem):
    """Base of the questions about the error of a proportion estimated from noisy sums."""

    asks = "error"
    monotone = _MONOTONE
    stated = MappingProxyType(
        {"dimension": "the number of coordinates of an example; the error of each coordinate grows with it"}
    )

    epsilon: Annotated[float, allocation_params.TARGET_EPSILON]
    delta: Annotated[float, params.DELTA]
    steps: Annotated[int, params.STEPS]
    examples: Annotated[int, params.EXAMPLES]
    proportion: Annotated[float, allocation_params.PROPORTION]
    dimension: Annotated[int, allocation_params.DIMENSION] = 1


@dataclass(frozen=True, kw_only=True)
class AllocationError(MeanError):
    r"""Mean squared error of a proportion estimated from t noisy sums, with each example in one random step.

    The examples are n independent vectors of $\{0, 1\}^d$ whose coordinates are 1 with probability p. Every
    step releases the sum of its examples with Gaussian noise. Its multiplier $\sigma$ is the least that makes
    all t outputs ($\varepsilon$, $\delta$)-private for adding or removing an example. The estimate is the sum
    of the outputs divided by n. The error is the expected squared error of one coordinate, which is 1/d of
    that of the vector.
    """

    name = "allocation-error"


@dataclass(frozen=True, kw_only=True)
class PoissonError(MeanError):
    r"""Mean squared error of a proportion estimated from t noisy sums, with Poisson sampling at rate 1/t.

    As `allocation-error`, but every step includes every example independently with probability 1/t, so an
    example is counted once on average, and possibly never or several times; and $\sigma$ is the least noise
    multiplier for Poisson sampling.
    """

    name = "poisson-error"


ErrorOfMean = AllocationError | PoissonError
