"""Problems near allocation: Poisson sampling, shuffling, no amplification, and errors of a mean."""

from types import MappingProxyType
from typing import Annotated

from privcore import params
from privcore.allocation import params as allocation_params
from privcore.allocation import problems
from privcore.allocation.problems import (
    AllocationProblem,
    GaussianSteps,
    Noisy,
    ResponseSteps,
    SampledSteps,
)
from privcore.constraint import AtLeast, AtMost, NoneOf
from privcore.problem import asked, falls, grows, product, proved

ORDER_OF_EPOCHS = NoneOf(
    "redraw",
    ("one-epoch",),
    "Expected redraw each-epoch (shuffled again) or once (order kept) with epochs={epochs}, got {redraw}.",
    where=AtLeast("epochs", 2),
)
NO_REPLACEMENT = "The method covers one example more or less (or set to zero), and not a replaced example."


class Poisson(SampledSteps):
    """Steps that include each example independently at random."""

    monotone = proved(steps=grows(problems.COMPOSED), epochs=grows(problems.COMPOSED))
    products = (product("steps", "epochs", monotone=grows(problems.STEPS_COMPOSED)),)

    epochs: Annotated[int, params.EPOCHS] = 1
    adjacency: Annotated[str, allocation_params.REPLACEABLE] = "add-remove"


class CappedResponse(ResponseSteps):
    """Poisson sampling of randomized response in which an example is in at most k steps of an epoch."""

    constraints = (AtMost("largest_participations", "steps"),)
    monotone = proved(epochs=grows(problems.COMPOSED))

    sampling_probability: Annotated[float, params.SAMPLING_PROBABILITY]
    largest_participations: Annotated[int, allocation_params.LARGEST_PARTICIPATIONS]
    epochs: Annotated[int, params.EPOCHS] = 1
    adjacency: Annotated[str, allocation_params.ADJACENCY] = "add-remove"


class Shuffling(GaussianSteps):
    """Shuffled batches.

    The examples are permuted at random and cut into `steps` batches of any equal size. Neighbours have the
    same number of examples.
    """

    constraints = (ORDER_OF_EPOCHS,)
    monotone = proved(epochs=grows(problems.COMPOSED))
    stated = MappingProxyType(
        {
            "adjacency": "zero-out (the gradient of one example is 0 in one of the data sets) or replace-one "
            "(it is another clipped gradient), for which epsilon and delta are larger"
        }
    )

    epochs: Annotated[int, params.EPOCHS] = 1
    redraw: Annotated[str, allocation_params.SHUFFLED] = "one-epoch"
    adjacency: Annotated[str, allocation_params.SHUFFLING_ADJACENCY] = "zero-out"


class Unamplified(Noisy):
    """Examples whose steps are public; other steps make no difference."""

    constraints = (problems.FEWER_THAN_STEPS,)
    monotone = proved(
        participations=grows(problems.COMPOSED),
        epochs=grows(problems.COMPOSED),
        steps=grows(problems.PUBLIC),
    )
    products = (product("participations", "epochs", monotone=grows(problems.USES_COMPOSED)),)
    irrelevant = MappingProxyType({"steps": problems.PUBLIC})

    steps: Annotated[int, params.STEPS] = 1
    participations: Annotated[int, params.PARTICIPATIONS] = 1
    epochs: Annotated[int, params.EPOCHS] = 1
    adjacency: Annotated[str, allocation_params.REPLACEABLE] = "add-remove"


POISSON = PoissonEpsilon, PoissonDelta = asked(
    "poisson", Poisson, "of DP-SGD in which each step includes each example independently at random."
)
CAPPED_RESPONSE = CappedResponseEpsilon, CappedResponseDelta = asked(
    "capped-response",
    CappedResponse,
    "of Poisson-sampled private steps if at most k of an epoch use an example.",
)
SHUFFLING = ShufflingEpsilon, ShufflingDelta = asked(
    "shuffling",
    Shuffling,
    "of shuffled batches with clipped gradients, if all other examples are known.",
)
UNAMPLIFIED = UnamplifiedEpsilon, UnamplifiedDelta = asked(
    "unamplified",
    Unamplified,
    "without amplification: the k steps of each epoch that use an example are public.",
)

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


class AllocationError(MeanError):
    r"""Mean squared error of a proportion estimated from t noisy sums, with each example in one random step.

    The examples are n independent vectors of $\{0, 1\}^d$ whose coordinates are 1 with probability p. Every
    step releases the sum of its examples with Gaussian noise. Its multiplier $\sigma$ is the least that makes
    all t outputs ($\varepsilon$, $\delta$)-private for adding or removing an example. The estimate is the sum
    of the outputs divided by n. The error is the expected squared error of one coordinate, which is 1/d of
    that of the vector.
    """

    name = "allocation-error"


class PoissonError(MeanError):
    r"""Mean squared error of a proportion estimated from t noisy sums, with Poisson sampling at rate 1/t.

    As `allocation-error`, but every step includes every example independently with probability 1/t, so an
    example is counted once on average, and possibly never or several times; and $\sigma$ is the least noise
    multiplier for Poisson sampling.
    """

    name = "poisson-error"


ErrorOfMean = AllocationError | PoissonError
