"""Questions about utility: the error of a mean that private sums over the steps of an epoch give."""

from dataclasses import dataclass
from typing import Annotated

from privcore import params
from privcore.allocation import params as allocation_params
from privcore.allocation.problems import AllocationProblem
from privcore.problem import AtLeast, falls, grows, proved

# Below this, noise is a question of total variation, to which the brackets of epsilon are blind.
TARGET = AtLeast("epsilon", 1e-3, "Expected a target epsilon >= {bound}, got epsilon={epsilon}.")

_LESS_NOISE = (
    "Noise that meets the smaller budget also meets the larger one, so the least noise does not grow; the "
    "error is a part without noise plus a multiple of the noise variance."
)
_MORE_EXAMPLES = "The least noise does not depend on n, and every term is a constant divided by n or n^2."
_MORE_COORDINATES = "The least noise does not depend on d, and d is a factor of the noise term."

# No claim about steps: t sigma^2 is proved to grow along multiples of t only, where sums of neighbouring
# outputs are the outputs of fewer steps. No claim about proportion: p (1 - p) turns round.
_MONOTONE = proved(
    epsilon=falls(_LESS_NOISE),
    delta=falls(_LESS_NOISE),
    examples=falls(_MORE_EXAMPLES),
    dimension=grows(_MORE_COORDINATES),
)


@dataclass(frozen=True, kw_only=True)
class MeanError(AllocationProblem):
    """Base of the questions about the error of a proportion that noisy sums give."""

    asks = "error"
    monotone = _MONOTONE
    constraints = (TARGET,)

    epsilon: Annotated[float, params.EPSILON]
    delta: Annotated[float, params.DELTA]
    steps: Annotated[int, params.STEPS]
    examples: Annotated[int, params.EXAMPLES]
    proportion: Annotated[float, allocation_params.PROPORTION]
    dimension: Annotated[int, allocation_params.DIMENSION] = 1


@dataclass(frozen=True, kw_only=True)
class AllocationError(MeanError):
    r"""Mean squared error of a proportion that t noisy sums give, each example being in one random step.

    The examples are n independent vectors of $\{0, 1\}^d$ whose coordinates are 1 with probability p. Every
    step releases the sum of its examples with Gaussian noise of multiplier $\sigma$, the least that makes all
    t outputs ($\varepsilon$, $\delta$)-private for adding or removing an example; the estimate is the sum of
    the outputs over n. Asked is the expected squared error of one coordinate: 1/d of that of the vector.
    """

    name = "allocation-error"


@dataclass(frozen=True, kw_only=True)
class PoissonError(MeanError):
    r"""Mean squared error of a proportion that t noisy sums give, each example being in a step at rate 1/t.

    As `allocation-error`, but every step includes every example independently with probability 1/t, so that
    an example is counted once on average, by chance not at all or several times; and $\sigma$ is the least
    noise that Poisson sampling needs.
    """

    name = "poisson-error"


ErrorOfMean = AllocationError | PoissonError
