"""What is asked about random allocation: epsilon or delta, for several one-step mechanisms."""

from dataclasses import dataclass
from typing import Annotated

from privcore import params
from privcore.allocation import proofs
from privcore.problem import AtMost, Problem, Trend

_ALLOCATION = {
    "steps": (Trend.DECREASING, proofs.SPREAD),
    "participations": (Trend.INCREASING, proofs.NESTED),
    "epochs": (Trend.INCREASING, proofs.COMPOSED),
}
_GAUSSIAN = {"sigma": (Trend.DECREASING, proofs.MORE_NOISE)} | _ALLOCATION
_SAMPLED = {"sampling_probability": (Trend.INCREASING, proofs.SAMPLED)} | _GAUSSIAN
_LAPLACE = {"scale": (Trend.DECREASING, proofs.MORE_LAPLACE)} | _ALLOCATION
_RESPONSE = {"local_epsilon": (Trend.INCREASING, proofs.MORE_FLIPS)} | _ALLOCATION

FEWER_THAN_STEPS = AtMost("participations", "steps")


@dataclass(frozen=True, kw_only=True)
class AllocationProblem(Problem):
    """Base of the questions about random allocation, and about what it is compared with."""

    topic = "allocation"


@dataclass(frozen=True, kw_only=True)
class AllocationEpsilon(AllocationProblem):
    """Smallest epsilon of DP-SGD where every epoch uses an example in k steps chosen at random out of t."""

    name = "allocation-epsilon"
    asks = "epsilon"
    monotone = proofs.declare(_GAUSSIAN, "delta")
    constraints = (FEWER_THAN_STEPS,)

    sigma: Annotated[float, params.SIGMA]
    steps: Annotated[int, params.STEPS]
    delta: Annotated[float, params.DELTA]
    participations: Annotated[int, params.PARTICIPATIONS] = 1
    epochs: Annotated[int, params.EPOCHS] = 1
    adjacency: Annotated[str, params.ADJACENCY] = "add-remove"


@dataclass(frozen=True, kw_only=True)
class AllocationDelta(AllocationProblem):
    """Delta of DP-SGD at a given epsilon, where every epoch uses an example in k random steps out of t."""

    name = "allocation-delta"
    asks = "delta"
    largest = 1.0
    monotone = proofs.declare(_GAUSSIAN, "epsilon")
    constraints = (FEWER_THAN_STEPS,)

    sigma: Annotated[float, params.SIGMA]
    steps: Annotated[int, params.STEPS]
    epsilon: Annotated[float, params.EPSILON]
    participations: Annotated[int, params.PARTICIPATIONS] = 1
    epochs: Annotated[int, params.EPOCHS] = 1
    adjacency: Annotated[str, params.ADJACENCY] = "add-remove"


@dataclass(frozen=True, kw_only=True)
class SampledAllocationEpsilon(AllocationProblem):
    """Smallest epsilon where an epoch includes an example with a probability, and then in k random steps."""

    name = "sampled-allocation-epsilon"
    asks = "epsilon"
    monotone = proofs.declare(_SAMPLED, "delta")
    constraints = (FEWER_THAN_STEPS,)

    sigma: Annotated[float, params.SIGMA]
    steps: Annotated[int, params.STEPS]
    sampling_probability: Annotated[float, params.SAMPLING_PROBABILITY]
    delta: Annotated[float, params.DELTA]
    participations: Annotated[int, params.PARTICIPATIONS] = 1
    epochs: Annotated[int, params.EPOCHS] = 1
    adjacency: Annotated[str, params.ADJACENCY] = "add-remove"


@dataclass(frozen=True, kw_only=True)
class SampledAllocationDelta(AllocationProblem):
    """Delta where an epoch includes an example with a probability, and then in k of t random steps."""

    name = "sampled-allocation-delta"
    asks = "delta"
    largest = 1.0
    monotone = proofs.declare(_SAMPLED, "epsilon")
    constraints = (FEWER_THAN_STEPS,)

    sigma: Annotated[float, params.SIGMA]
    steps: Annotated[int, params.STEPS]
    sampling_probability: Annotated[float, params.SAMPLING_PROBABILITY]
    epsilon: Annotated[float, params.EPSILON]
    participations: Annotated[int, params.PARTICIPATIONS] = 1
    epochs: Annotated[int, params.EPOCHS] = 1
    adjacency: Annotated[str, params.ADJACENCY] = "add-remove"


@dataclass(frozen=True, kw_only=True)
class LaplaceAllocationEpsilon(AllocationProblem):
    """Smallest epsilon of random allocation where every step adds Laplace noise."""

    name = "laplace-allocation-epsilon"
    asks = "epsilon"
    monotone = proofs.declare(_LAPLACE, "delta")
    constraints = (FEWER_THAN_STEPS,)

    scale: Annotated[float, params.LAPLACE_SCALE]
    steps: Annotated[int, params.STEPS]
    delta: Annotated[float, params.DELTA]
    participations: Annotated[int, params.PARTICIPATIONS] = 1
    epochs: Annotated[int, params.EPOCHS] = 1
    adjacency: Annotated[str, params.ADJACENCY] = "add-remove"


@dataclass(frozen=True, kw_only=True)
class LaplaceAllocationDelta(AllocationProblem):
    """Delta of random allocation at a given epsilon, where every step adds Laplace noise."""

    name = "laplace-allocation-delta"
    asks = "delta"
    largest = 1.0
    monotone = proofs.declare(_LAPLACE, "epsilon")
    constraints = (FEWER_THAN_STEPS,)

    scale: Annotated[float, params.LAPLACE_SCALE]
    steps: Annotated[int, params.STEPS]
    epsilon: Annotated[float, params.EPSILON]
    participations: Annotated[int, params.PARTICIPATIONS] = 1
    epochs: Annotated[int, params.EPOCHS] = 1
    adjacency: Annotated[str, params.ADJACENCY] = "add-remove"


@dataclass(frozen=True, kw_only=True)
class ResponseAllocationEpsilon(AllocationProblem):
    """Smallest epsilon of allocating randomized responses, the worst among pure local randomizers."""

    name = "response-allocation-epsilon"
    asks = "epsilon"
    monotone = proofs.declare(_RESPONSE, "delta")
    constraints = (FEWER_THAN_STEPS,)

    local_epsilon: Annotated[float, params.LOCAL_EPSILON]
    steps: Annotated[int, params.STEPS]
    delta: Annotated[float, params.DELTA]
    participations: Annotated[int, params.PARTICIPATIONS] = 1
    epochs: Annotated[int, params.EPOCHS] = 1
    adjacency: Annotated[str, params.ADJACENCY] = "add-remove"


@dataclass(frozen=True, kw_only=True)
class ResponseAllocationDelta(AllocationProblem):
    """Delta of allocating randomized responses, the worst among pure local randomizers."""

    name = "response-allocation-delta"
    asks = "delta"
    largest = 1.0
    monotone = proofs.declare(_RESPONSE, "epsilon")
    constraints = (FEWER_THAN_STEPS,)

    local_epsilon: Annotated[float, params.LOCAL_EPSILON]
    steps: Annotated[int, params.STEPS]
    epsilon: Annotated[float, params.EPSILON]
    participations: Annotated[int, params.PARTICIPATIONS] = 1
    epochs: Annotated[int, params.EPOCHS] = 1
    adjacency: Annotated[str, params.ADJACENCY] = "add-remove"
