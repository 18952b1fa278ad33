"""Questions about random allocation: epsilon or delta, for several one-step mechanisms."""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated

from privcore import params
from privcore.allocation import params as allocation_params
from privcore.allocation import proofs
from privcore.constraint import AtMost
from privcore.problem import Problem, falls, grows, proved

AT_DELTA = proved(delta=falls(proofs.PROFILE))
AT_EPSILON = proved(epsilon=falls(proofs.PROFILE))
_ALLOCATION = proved(
    steps=falls(proofs.SPREAD), participations=grows(proofs.NESTED), epochs=grows(proofs.COMPOSED)
)
_GAUSSIAN = proved(sigma=falls(proofs.MORE_NOISE), **_ALLOCATION)
_SAMPLED = proved(sampling_probability=grows(proofs.SAMPLED), **_GAUSSIAN)
_LAPLACE = proved(scale=falls(proofs.MORE_LAPLACE), **_ALLOCATION)
_RESPONSE = proved(
    local_epsilon=grows(proofs.MORE_FLIPS), local_delta=grows(proofs.MORE_LEAKS), **_ALLOCATION
)

FEWER_THAN_STEPS = AtMost("participations", "steps")

# A problem inherits from three bases: the choice of steps, the question, and the noise. Dataclasses collect
# fields from the last base to the first; stores and commands list the fields in this order.


@dataclass(frozen=True, kw_only=True)
class AllocationProblem(Problem):
    """Base of the questions about random allocation and the schemes it is compared with."""

    topic = "allocation"


@dataclass(frozen=True, kw_only=True)
class AtDelta(AllocationProblem):
    """Base of the questions about the smallest epsilon at a delta."""

    asks = "epsilon"
    exp_convex = MappingProxyType({"delta": proofs.CONVEX})

    delta: Annotated[float, params.DELTA]


@dataclass(frozen=True, kw_only=True)
class AtEpsilon(AllocationProblem):
    """Base of the questions about the delta at an epsilon."""

    asks = "delta"
    largest = 1.0

    epsilon: Annotated[float, params.EPSILON]


@dataclass(frozen=True, kw_only=True)
class GaussianNoise(AllocationProblem):
    """Base of the questions about Gaussian noise."""

    sigma: Annotated[float, params.SIGMA]


@dataclass(frozen=True, kw_only=True)
class GaussianSteps(GaussianNoise):
    """Base of the questions about steps with Gaussian noise."""

    steps: Annotated[int, params.STEPS]


@dataclass(frozen=True, kw_only=True)
class SampledSteps(GaussianSteps):
    """Base of the questions about steps with Gaussian noise that sample their examples."""

    sampling_probability: Annotated[float, params.SAMPLING_PROBABILITY]


@dataclass(frozen=True, kw_only=True)
class LaplaceSteps(AllocationProblem):
    """Base of the questions about steps with Laplace noise."""

    scale: Annotated[float, allocation_params.LAPLACE_SCALE]
    steps: Annotated[int, params.STEPS]


@dataclass(frozen=True, kw_only=True)
class ResponseSteps(AllocationProblem):
    """Base of the questions about steps of randomized response, which leaks the truth with a probability."""

    local_epsilon: Annotated[float, allocation_params.LOCAL_EPSILON]
    steps: Annotated[int, params.STEPS]
    local_delta: Annotated[float, allocation_params.LOCAL_DELTA] = 0.0


@dataclass(frozen=True, kw_only=True)
class CurveSteps(AllocationProblem):
    """Base of the questions about the worst steps with given Renyi divergences, in the direction remove.

    The divergences are those of the outputs with the example from those without it, and so is the answer.
    """

    constraints = (FEWER_THAN_STEPS,)

    renyi_curve: Annotated[str, allocation_params.RENYI_CURVE]
    steps: Annotated[int, params.STEPS]
    participations: Annotated[int, params.PARTICIPATIONS] = 1
    epochs: Annotated[int, params.EPOCHS] = 1

    def relation(self) -> str:
        """Return the direction in which the answer holds."""
        return "remove"


@dataclass(frozen=True, kw_only=True)
class Allocated(AllocationProblem):
    """Base of the questions about examples that are in k steps of every epoch."""

    constraints = (FEWER_THAN_STEPS,)

    participations: Annotated[int, params.PARTICIPATIONS] = 1
    epochs: Annotated[int, params.EPOCHS] = 1
    adjacency: Annotated[str, allocation_params.ADJACENCY] = "add-remove"


@dataclass(frozen=True, kw_only=True)
class AllocationEpsilon(Allocated, AtDelta, GaussianSteps):
    """Smallest epsilon of DP-SGD that uses each example in k of the t steps of an epoch, chosen at random."""

    name = "allocation-epsilon"
    monotone = proved(**_GAUSSIAN, **AT_DELTA)


@dataclass(frozen=True, kw_only=True)
class AllocationDelta(Allocated, AtEpsilon, GaussianSteps):
    """Delta, at a given epsilon, of DP-SGD that uses each example in k random steps of the t in an epoch."""

    name = "allocation-delta"
    monotone = proved(**_GAUSSIAN, **AT_EPSILON)


@dataclass(frozen=True, kw_only=True)
class AllocationRenyi(GaussianSteps):
    """Renyi divergence, in nats, of DP-SGD that uses each example in k of the t random steps of an epoch.

    Of the outputs with the example from those without it (remove), the reverse (add), or the larger of both.
    """

    name = "allocation-renyi"
    asks = "divergence"
    constraints = (FEWER_THAN_STEPS,)
    monotone = proved(
        **_GAUSSIAN, renyi_order=grows(proofs.LARGER_ORDER), order_fraction=grows(proofs.LARGER_ORDER)
    )
    stated = MappingProxyType(
        {
            "adjacency": "add-remove (the larger divergence of both directions), remove (of the outputs with "
            "the example from those without it) or add (the reverse)"
        }
    )

    renyi_order: Annotated[int, allocation_params.RENYI_ORDER]
    epochs: Annotated[int, params.EPOCHS] = 1
    order_fraction: Annotated[float, allocation_params.ORDER_FRACTION] = 0.0
    participations: Annotated[int, params.PARTICIPATIONS] = 1
    adjacency: Annotated[str, allocation_params.ADJACENCY] = "remove"

    @property
    def order(self) -> float:
        """The order, which need not be whole."""
        return self.renyi_order + self.order_fraction


@dataclass(frozen=True, kw_only=True)
class SampledAllocationEpsilon(Allocated, AtDelta, SampledSteps):
    """Smallest epsilon if a Poisson sample is drawn for each epoch, and allocated to k of t random steps."""

    name = "sampled-allocation-epsilon"
    monotone = proved(**_SAMPLED, **AT_DELTA)


@dataclass(frozen=True, kw_only=True)
class SampledAllocationDelta(Allocated, AtEpsilon, SampledSteps):
    """Delta if a Poisson sample is drawn for each epoch, and allocated to k of t random steps."""

    name = "sampled-allocation-delta"
    monotone = proved(**_SAMPLED, **AT_EPSILON)


@dataclass(frozen=True, kw_only=True)
class LaplaceAllocationEpsilon(Allocated, AtDelta, LaplaceSteps):
    """Smallest epsilon of random allocation in which every step adds Laplace noise."""

    name = "laplace-allocation-epsilon"
    monotone = proved(**_LAPLACE, **AT_DELTA)


@dataclass(frozen=True, kw_only=True)
class LaplaceAllocationDelta(Allocated, AtEpsilon, LaplaceSteps):
    """Delta, at a given epsilon, of random allocation in which every step adds Laplace noise."""

    name = "laplace-allocation-delta"
    monotone = proved(**_LAPLACE, **AT_EPSILON)


@dataclass(frozen=True, kw_only=True)
class ResponseAllocationEpsilon(Allocated, AtDelta, ResponseSteps):
    """Smallest epsilon of random allocation of randomized response, the worst of all private steps."""

    name = "response-allocation-epsilon"
    monotone = proved(**_RESPONSE, **AT_DELTA)


@dataclass(frozen=True, kw_only=True)
class ResponseAllocationDelta(Allocated, AtEpsilon, ResponseSteps):
    """Delta of random allocation of randomized response, the worst of all private steps."""

    name = "response-allocation-delta"
    monotone = proved(**_RESPONSE, **AT_EPSILON)


@dataclass(frozen=True, kw_only=True)
class RenyiAllocationEpsilon(AtDelta, CurveSteps):
    """Smallest epsilon of random allocation of any steps with given Renyi divergences, direction remove."""

    name = "renyi-allocation-epsilon"
    monotone = proved(**_ALLOCATION, **AT_DELTA)


@dataclass(frozen=True, kw_only=True)
class RenyiAllocationDelta(AtEpsilon, CurveSteps):
    """Delta of random allocation of any steps with given Renyi divergences, direction remove."""

    name = "renyi-allocation-delta"
    monotone = proved(**_ALLOCATION, **AT_EPSILON)


CurveAllocation = RenyiAllocationEpsilon | RenyiAllocationDelta
"""Problems about random allocation of steps with given Renyi divergences."""
Allocation = AllocationEpsilon | AllocationDelta
"""Problems about random allocation with Gaussian noise."""
