"""The schemes with which random allocation is compared: Poisson sampling, shuffling, no amplification."""

from dataclasses import dataclass
from typing import Annotated

from privcore import params
from privcore.allocation import proofs
from privcore.allocation.problems import FEWER_THAN_STEPS, AllocationProblem
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
class PoissonEpsilon(AllocationProblem):
    """Smallest epsilon of DP-SGD where every step includes every example independently."""

    name = "poisson-epsilon"
    asks = "epsilon"
    monotone = proofs.declare(_POISSON, "delta")

    sigma: Annotated[float, params.SIGMA]
    steps: Annotated[int, params.STEPS]
    sampling_probability: Annotated[float, params.SAMPLING_PROBABILITY]
    delta: Annotated[float, params.DELTA]
    epochs: Annotated[int, params.EPOCHS] = 1
    adjacency: Annotated[str, params.ADJACENCY] = "add-remove"


@dataclass(frozen=True, kw_only=True)
class PoissonDelta(AllocationProblem):
    """Delta of DP-SGD at a given epsilon, where every step includes every example independently."""

    name = "poisson-delta"
    asks = "delta"
    largest = 1.0
    monotone = proofs.declare(_POISSON, "epsilon")

    sigma: Annotated[float, params.SIGMA]
    steps: Annotated[int, params.STEPS]
    sampling_probability: Annotated[float, params.SAMPLING_PROBABILITY]
    epsilon: Annotated[float, params.EPSILON]
    epochs: Annotated[int, params.EPOCHS] = 1
    adjacency: Annotated[str, params.ADJACENCY] = "add-remove"


@dataclass(frozen=True, kw_only=True)
class ShufflingEpsilon(AllocationProblem):
    """Smallest epsilon of an epoch over shuffled examples with clipped gradients, all others known."""

    name = "shuffling-epsilon"
    asks = "epsilon"
    monotone = proofs.declare(_SHUFFLING, "delta")

    sigma: Annotated[float, params.SIGMA]
    steps: Annotated[int, params.STEPS]
    delta: Annotated[float, params.DELTA]
    adjacency: Annotated[str, params.ADJACENCY] = "add-remove"


@dataclass(frozen=True, kw_only=True)
class ShufflingDelta(AllocationProblem):
    """Delta of an epoch over shuffled examples with clipped gradients, all others known."""

    name = "shuffling-delta"
    asks = "delta"
    largest = 1.0
    monotone = proofs.declare(_SHUFFLING, "epsilon")

    sigma: Annotated[float, params.SIGMA]
    steps: Annotated[int, params.STEPS]
    epsilon: Annotated[float, params.EPSILON]
    adjacency: Annotated[str, params.ADJACENCY] = "add-remove"


@dataclass(frozen=True, kw_only=True)
class UnamplifiedEpsilon(AllocationProblem):
    """Smallest epsilon where the k steps that use an example are public, in every epoch: no amplification."""

    name = "unamplified-epsilon"
    asks = "epsilon"
    monotone = proofs.declare(_UNAMPLIFIED, "delta")
    constraints = (FEWER_THAN_STEPS,)

    sigma: Annotated[float, params.SIGMA]
    delta: Annotated[float, params.DELTA]
    steps: Annotated[int, params.STEPS] = 1
    participations: Annotated[int, params.PARTICIPATIONS] = 1
    epochs: Annotated[int, params.EPOCHS] = 1
    adjacency: Annotated[str, params.ADJACENCY] = "add-remove"


@dataclass(frozen=True, kw_only=True)
class UnamplifiedDelta(AllocationProblem):
    """Delta at a given epsilon where the k steps that use an example are public: no amplification."""

    name = "unamplified-delta"
    asks = "delta"
    largest = 1.0
    monotone = proofs.declare(_UNAMPLIFIED, "epsilon")
    constraints = (FEWER_THAN_STEPS,)

    sigma: Annotated[float, params.SIGMA]
    epsilon: Annotated[float, params.EPSILON]
    steps: Annotated[int, params.STEPS] = 1
    participations: Annotated[int, params.PARTICIPATIONS] = 1
    epochs: Annotated[int, params.EPOCHS] = 1
    adjacency: Annotated[str, params.ADJACENCY] = "add-remove"
