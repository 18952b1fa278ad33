"""The schemes with which random allocation is compared: Poisson sampling, shuffling, no amplification."""

from dataclasses import dataclass
from typing import Annotated

from privcore import params
from privcore.allocation import params as allocation_params
from privcore.allocation import proofs
from privcore.allocation.problems import (
    Allocated,
    AllocationProblem,
    AtDelta,
    AtEpsilon,
    GaussianNoise,
    GaussianSteps,
    SampledSteps,
)
from privcore.problem import Trend

_POISSON = {
    "sigma": (Trend.DECREASING, proofs.MORE_NOISE),
    "steps": (Trend.INCREASING, proofs.COMPOSED),
    "sampling_probability": (Trend.INCREASING, proofs.SAMPLED),
    "epochs": (Trend.INCREASING, proofs.COMPOSED),
}
_SHUFFLING = {"sigma": (Trend.DECREASING, proofs.MORE_NOISE)}
_UNAMPLIFIED = {
    "sigma": (Trend.DECREASING, proofs.MORE_NOISE),
    "participations": (Trend.INCREASING, proofs.COMPOSED),
    "epochs": (Trend.INCREASING, proofs.COMPOSED),
    "steps": (Trend.INCREASING, proofs.PUBLIC),  # nor falling: rows at the least and most steps serve all
}


@dataclass(frozen=True, kw_only=True)
class PublicSteps(AllocationProblem):
    """Base of the questions about examples whose steps are known: others make no difference."""

    steps: Annotated[int, params.STEPS] = 1


@dataclass(frozen=True, kw_only=True)
class PoissonEpsilon(AtDelta, SampledSteps):
    """Smallest epsilon of DP-SGD where every step includes every example independently."""

    name = "poisson-epsilon"
    monotone = proofs.declare(_POISSON, "delta")

    epochs: Annotated[int, params.EPOCHS] = 1
    adjacency: Annotated[str, allocation_params.ADJACENCY] = "add-remove"


@dataclass(frozen=True, kw_only=True)
class PoissonDelta(AtEpsilon, SampledSteps):
    """Delta of DP-SGD at a given epsilon, where every step includes every example independently."""

    name = "poisson-delta"
    monotone = proofs.declare(_POISSON, "epsilon")

    epochs: Annotated[int, params.EPOCHS] = 1
    adjacency: Annotated[str, allocation_params.ADJACENCY] = "add-remove"


@dataclass(frozen=True, kw_only=True)
class ShufflingEpsilon(AtDelta, GaussianSteps):
    """Smallest epsilon of an epoch over shuffled examples with clipped gradients, all others known."""

    name = "shuffling-epsilon"
    monotone = proofs.declare(_SHUFFLING, "delta")

    adjacency: Annotated[str, allocation_params.ADJACENCY] = "add-remove"


@dataclass(frozen=True, kw_only=True)
class ShufflingDelta(AtEpsilon, GaussianSteps):
    """Delta of an epoch over shuffled examples with clipped gradients, all others known."""

    name = "shuffling-delta"
    monotone = proofs.declare(_SHUFFLING, "epsilon")

    adjacency: Annotated[str, allocation_params.ADJACENCY] = "add-remove"


@dataclass(frozen=True, kw_only=True)
class UnamplifiedEpsilon(Allocated, PublicSteps, AtDelta, GaussianNoise):
    """Smallest epsilon where the k steps that use an example are public, in every epoch: no amplification."""

    name = "unamplified-epsilon"
    monotone = proofs.declare(_UNAMPLIFIED, "delta")


@dataclass(frozen=True, kw_only=True)
class UnamplifiedDelta(Allocated, PublicSteps, AtEpsilon, GaussianNoise):
    """Delta at a given epsilon where the k steps that use an example are public: no amplification."""

    name = "unamplified-delta"
    monotone = proofs.declare(_UNAMPLIFIED, "epsilon")
