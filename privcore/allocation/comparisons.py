"""The schemes with which random allocation is compared: Poisson sampling, shuffling, no amplification."""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated

from privcore import params
from privcore.allocation import params as allocation_params
from privcore.allocation import proofs
from privcore.allocation.problems import (
    AT_DELTA,
    AT_EPSILON,
    Allocated,
    AllocationProblem,
    AtDelta,
    AtEpsilon,
    GaussianNoise,
    GaussianSteps,
    ResponseSteps,
    SampledSteps,
)
from privcore.constraint import AtLeast, AtMost, NoneOf
from privcore.problem import falls, grows, product, proved

_POISSON = proved(
    sigma=falls(proofs.MORE_NOISE),
    steps=grows(proofs.COMPOSED),
    sampling_probability=grows(proofs.SAMPLED),
    epochs=grows(proofs.COMPOSED),
)
_POISSON_STEPS = (product("steps", "epochs", monotone=grows(proofs.STEPS_COMPOSED)),)
_CAPPED = proved(
    local_epsilon=grows(proofs.MORE_FLIPS),
    local_delta=grows(proofs.MORE_LEAKS),
    epochs=grows(proofs.COMPOSED),
)
_SHUFFLING = proved(sigma=falls(proofs.MORE_NOISE), epochs=grows(proofs.COMPOSED))
ORDER_OF_EPOCHS = NoneOf(
    "redraw",
    ("one-epoch",),
    "Expected redraw each-epoch (shuffled again) or once (order kept) with epochs={epochs}, got {redraw}.",
    where=AtLeast("epochs", 2),
)
_UNAMPLIFIED = proved(
    sigma=falls(proofs.MORE_NOISE),
    participations=grows(proofs.COMPOSED),
    epochs=grows(proofs.COMPOSED),
    steps=grows(proofs.PUBLIC),
)
NO_REPLACEMENT = "The method covers one example more or less (or set to zero), and not a replaced example."
_USES = (product("participations", "epochs", monotone=grows(proofs.USES_COMPOSED)),)
_UNUSED = MappingProxyType({"steps": proofs.PUBLIC})


@dataclass(frozen=True, kw_only=True)
class PublicSteps(AllocationProblem):
    """Base of the questions about examples whose steps are public; other steps make no difference."""

    steps: Annotated[int, params.STEPS] = 1


@dataclass(frozen=True, kw_only=True)
class PoissonEpsilon(AtDelta, SampledSteps):
    """Smallest epsilon of DP-SGD in which each step includes each example independently at random."""

    name = "poisson-epsilon"
    monotone = proved(**_POISSON, **AT_DELTA)
    products = _POISSON_STEPS

    epochs: Annotated[int, params.EPOCHS] = 1
    adjacency: Annotated[str, allocation_params.REPLACEABLE] = "add-remove"


@dataclass(frozen=True, kw_only=True)
class PoissonDelta(AtEpsilon, SampledSteps):
    """Delta, at a given epsilon, of DP-SGD whose steps include each example independently at random."""

    name = "poisson-delta"
    monotone = proved(**_POISSON, **AT_EPSILON)
    products = _POISSON_STEPS

    epochs: Annotated[int, params.EPOCHS] = 1
    adjacency: Annotated[str, allocation_params.REPLACEABLE] = "add-remove"


@dataclass(frozen=True, kw_only=True)
class Capped(AllocationProblem):
    """Base of the questions about Poisson sampling in which an example is in at most k steps of an epoch."""

    constraints = (AtMost("largest_participations", "steps"),)

    sampling_probability: Annotated[float, params.SAMPLING_PROBABILITY]
    largest_participations: Annotated[int, allocation_params.LARGEST_PARTICIPATIONS]
    epochs: Annotated[int, params.EPOCHS] = 1
    adjacency: Annotated[str, allocation_params.ADJACENCY] = "add-remove"


@dataclass(frozen=True, kw_only=True)
class CappedResponseEpsilon(Capped, AtDelta, ResponseSteps):
    """Smallest epsilon of Poisson-sampled private steps if at most k of an epoch use an example."""

    name = "capped-response-epsilon"
    monotone = proved(**_CAPPED, **AT_DELTA)


@dataclass(frozen=True, kw_only=True)
class CappedResponseDelta(Capped, AtEpsilon, ResponseSteps):
    """Delta of Poisson-sampled private steps if at most k of an epoch use an example."""

    name = "capped-response-delta"
    monotone = proved(**_CAPPED, **AT_EPSILON)


@dataclass(frozen=True, kw_only=True)
class Shuffled(AllocationProblem):
    """Base of the questions about shuffled batches.

    The examples are permuted at random and cut into `steps` batches of any equal size. Neighbours have the
    same number of examples.
    """

    constraints = (ORDER_OF_EPOCHS,)
    stated = MappingProxyType(
        {
            "adjacency": "zero-out (the gradient of one example is 0 in one of the data sets) or replace-one "
            "(it is another clipped gradient), for which epsilon and delta are larger"
        }
    )

    epochs: Annotated[int, params.EPOCHS] = 1
    redraw: Annotated[str, allocation_params.SHUFFLED] = "one-epoch"
    adjacency: Annotated[str, allocation_params.SHUFFLING_ADJACENCY] = "zero-out"


@dataclass(frozen=True, kw_only=True)
class ShufflingEpsilon(Shuffled, AtDelta, GaussianSteps):
    """Smallest epsilon of shuffled batches with clipped gradients, if all other examples are known."""

    name = "shuffling-epsilon"
    monotone = proved(**_SHUFFLING, **AT_DELTA)


@dataclass(frozen=True, kw_only=True)
class ShufflingDelta(Shuffled, AtEpsilon, GaussianSteps):
    """Delta of shuffled batches with clipped gradients, if all other examples are known."""

    name = "shuffling-delta"
    monotone = proved(**_SHUFFLING, **AT_EPSILON)


@dataclass(frozen=True, kw_only=True)
class UnamplifiedEpsilon(Allocated, PublicSteps, AtDelta, GaussianNoise):
    """Smallest epsilon without amplification: the k steps of each epoch that use an example are public."""

    name = "unamplified-epsilon"
    monotone = proved(**_UNAMPLIFIED, **AT_DELTA)
    products, irrelevant = _USES, _UNUSED

    adjacency: Annotated[str, allocation_params.REPLACEABLE] = "add-remove"


@dataclass(frozen=True, kw_only=True)
class UnamplifiedDelta(Allocated, PublicSteps, AtEpsilon, GaussianNoise):
    """Delta, at a given epsilon, without amplification: the k steps that use an example are public."""

    name = "unamplified-delta"
    monotone = proved(**_UNAMPLIFIED, **AT_EPSILON)
    products, irrelevant = _USES, _UNUSED

    adjacency: Annotated[str, allocation_params.REPLACEABLE] = "add-remove"


CappedResponse = CappedResponseEpsilon | CappedResponseDelta
Poisson = PoissonEpsilon | PoissonDelta
Shuffling = ShufflingEpsilon | ShufflingDelta
