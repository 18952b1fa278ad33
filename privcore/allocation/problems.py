"""Questions about random allocation, and proofs that their answers are monotone, in a sentence each."""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated

from privcore import params
from privcore.allocation import params as allocation_params
from privcore.constraint import AtMost
from privcore.problem import Problem, falls, grows, proved

PROFILE = "The privacy profile is non-increasing in epsilon; its inverse is non-increasing in delta."
CONVEX = (
    "The profile is the supremum of P(S) - e^epsilon Q(S) over neighbours and events, so it is convex in "
    "e^epsilon; so e^epsilon is convex in delta, below its chords and above their extensions."
)
MORE_NOISE = (
    "Adding independent Gaussian noise to the outputs is post-processing, so no divergence grows with the "
    "noise."
)
MORE_LAPLACE = (
    "Laplace noise of scale b' > b is Laplace noise of scale b plus an independent variable: 0 with "
    "probability (b/b')^2, otherwise Laplace of scale b', as the characteristic functions show. So "
    "adding noise is post-processing, and epsilon and delta never grow with the scale."
)
MORE_FLIPS = "Flipping the answer once more gives the randomized response of any smaller epsilon."
MORE_LEAKS = (
    "Hiding the truth where it leaks, with a probability, gives the randomized response of any smaller "
    "local_delta: its pair has all pairs of this epsilon and local_delta as post-processings."
)
SPREAD = (
    "The likelihood ratio is a U-statistic of t i.i.d. one-step ratios (arXiv:2502.08202v3, Theorem 3.1), a "
    "reverse martingale in t (Berk 1966), so it decreases in convex order as t grows; products of "
    "independent ratios preserve the order."
)
NESTED = (
    "In every epoch, allocation to k of t steps is dominated by allocation to k' of t steps for k <= k' "
    "(arXiv:2502.08202v3, Lemma D.1)."
)
LARGER_ORDER = (
    "The Renyi divergence never falls as the order grows (van Erven and Harremoes 2014, arXiv:1206.2459, "
    "Theorem 3)."
)
PUBLIC = "The steps that use an example are public, so the number of other steps makes no difference."
COMPOSED = "Leaving out the outputs of an epoch is post-processing."
STEPS_COMPOSED = (
    "All steps of all epochs are independent and alike, so only their number matters; leaving out the output "
    "of a step is post-processing."
)
USES_COMPOSED = (
    "All steps that use the example are Gaussian steps of the same noise, so only their number in all epochs "
    "matters; leaving out the output of a step is post-processing."
)
SAMPLED = (
    "Sampling with a smaller probability is a subsample of sampling with a larger one; every factor of the "
    "likelihood ratio becomes more private in both directions."
)


AT_DELTA = proved(delta=falls(PROFILE))
AT_EPSILON = proved(epsilon=falls(PROFILE))
_ALLOCATION = proved(steps=falls(SPREAD), participations=grows(NESTED), epochs=grows(COMPOSED))
_GAUSSIAN = proved(sigma=falls(MORE_NOISE), **_ALLOCATION)
_SAMPLED = proved(sampling_probability=grows(SAMPLED), **_GAUSSIAN)
_LAPLACE = proved(scale=falls(MORE_LAPLACE), **_ALLOCATION)
_RESPONSE = proved(local_epsilon=grows(MORE_FLIPS), local_delta=grows(MORE_LEAKS), **_ALLOCATION)

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
    exp_convex = MappingProxyType({"delta": CONVEX})

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
    monotone = proved(**_GAUSSIAN, renyi_order=grows(LARGER_ORDER), order_fraction=grows(LARGER_ORDER))
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
