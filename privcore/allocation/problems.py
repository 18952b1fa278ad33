"""Questions about random allocation and the schemes it is compared with, with the proofs of their trends."""

from types import MappingProxyType
from typing import Annotated

from privcore import params
from privcore.allocation import params as allocation_params
from privcore.constraint import AtLeast, AtMost, NoneOf
from privcore.problem import Problem, asked, falls, grows, product, proved

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


FEWER_THAN_STEPS = AtMost("participations", "steps")

# The fields of a problem are those of the noise, the last base, then that of the quantity, then all others.


class AllocationProblem(Problem):
    """Base of the questions about random allocation and the schemes it is compared with."""

    topic = "allocation"


class Noisy(AllocationProblem):
    """Base of the questions about Gaussian noise."""

    monotone = proved(sigma=falls(MORE_NOISE))

    sigma: Annotated[float, params.SIGMA]


class GaussianSteps(Noisy):
    """Base of the questions about steps with Gaussian noise."""

    steps: Annotated[int, params.STEPS]


class SampledSteps(GaussianSteps):
    """Base of the questions about steps with Gaussian noise that sample their examples."""

    monotone = proved(sampling_probability=grows(SAMPLED))

    sampling_probability: Annotated[float, params.SAMPLING_PROBABILITY]


class LaplaceSteps(AllocationProblem):
    """Base of the questions about steps with Laplace noise."""

    monotone = proved(scale=falls(MORE_LAPLACE))

    scale: Annotated[float, allocation_params.LAPLACE_SCALE]
    steps: Annotated[int, params.STEPS]


class ResponseSteps(AllocationProblem):
    """Base of the questions about steps of randomized response, which leaks the truth with a probability."""

    monotone = proved(local_epsilon=grows(MORE_FLIPS), local_delta=grows(MORE_LEAKS))

    local_epsilon: Annotated[float, allocation_params.LOCAL_EPSILON]
    steps: Annotated[int, params.STEPS]
    local_delta: Annotated[float, allocation_params.LOCAL_DELTA] = 0.0


class CurveSteps(AllocationProblem):
    """Base of the questions about the worst steps with given Renyi divergences."""

    renyi_curve: Annotated[str, allocation_params.RENYI_CURVE]
    steps: Annotated[int, params.STEPS]


class Chosen(AllocationProblem):
    """Base of the questions about examples that are in k steps of every epoch."""

    constraints = (FEWER_THAN_STEPS,)
    monotone = proved(steps=falls(SPREAD), participations=grows(NESTED), epochs=grows(COMPOSED))

    participations: Annotated[int, params.PARTICIPATIONS] = 1
    epochs: Annotated[int, params.EPOCHS] = 1


class Allocated(Chosen):
    """Base of these questions in a neighbouring relation, or in one of its directions."""

    adjacency: Annotated[str, allocation_params.ADJACENCY] = "add-remove"


class Allocation(Allocated, GaussianSteps):
    """Random allocation with Gaussian noise."""


class SampledAllocation(Allocated, SampledSteps):
    """Random allocation, with Gaussian noise, of a sample of the examples."""


class LaplaceAllocation(Allocated, LaplaceSteps):
    """Random allocation with Laplace noise."""


class ResponseAllocation(Allocated, ResponseSteps):
    """Random allocation of randomized response."""


class RenyiAllocation(Chosen, CurveSteps):
    """Random allocation of any steps with given Renyi divergences.

    The divergences are those of the outputs with the example from those without it, and so is the answer.
    """

    def relation(self) -> str:
        """Return the direction in which the answer holds."""
        return "remove"


ALLOCATION = AllocationEpsilon, AllocationDelta = asked(
    "allocation",
    Allocation,
    "of DP-SGD that uses each example in k of the t steps of an epoch, chosen at random.",
)
SAMPLED_ALLOCATION = SampledAllocationEpsilon, SampledAllocationDelta = asked(
    "sampled-allocation",
    SampledAllocation,
    "if a Poisson sample is drawn for each epoch, and allocated to k of t random steps.",
)
LAPLACE_ALLOCATION = LaplaceAllocationEpsilon, LaplaceAllocationDelta = asked(
    "laplace-allocation",
    LaplaceAllocation,
    "of random allocation in which every step adds Laplace noise.",
)
RESPONSE_ALLOCATION = ResponseAllocationEpsilon, ResponseAllocationDelta = asked(
    "response-allocation",
    ResponseAllocation,
    "of random allocation of randomized response, the worst of all private steps.",
)
RENYI_ALLOCATION = RenyiAllocationEpsilon, RenyiAllocationDelta = asked(
    "renyi-allocation",
    RenyiAllocation,
    "of random allocation of any steps with given Renyi divergences, direction remove.",
)


class AllocationRenyi(GaussianSteps):
    """Renyi divergence, in nats, of DP-SGD that uses each example in k of the t random steps of an epoch.

    Of the outputs with the example from those without it (remove), the reverse (add), or the larger of both.
    """

    name = "allocation-renyi"
    asks = "divergence"
    constraints = (FEWER_THAN_STEPS,)
    monotone = proved(**Chosen.monotone, renyi_order=grows(LARGER_ORDER), order_fraction=grows(LARGER_ORDER))
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


ORDER_OF_EPOCHS = NoneOf(
    "redraw",
    ("one-epoch",),
    "Expected redraw each-epoch (shuffled again) or once (order kept) with epochs={epochs}, got {redraw}.",
    where=AtLeast("epochs", 2),
)
NO_REPLACEMENT = "The method covers one example more or less (or set to zero), and not a replaced example."


class Poisson(SampledSteps):
    """Steps that include each example independently at random."""

    monotone = proved(steps=grows(COMPOSED), epochs=grows(COMPOSED))
    products = (product("steps", "epochs", monotone=grows(STEPS_COMPOSED)),)

    epochs: Annotated[int, params.EPOCHS] = 1
    adjacency: Annotated[str, allocation_params.REPLACEABLE] = "add-remove"


class CappedResponse(ResponseSteps):
    """Poisson sampling of randomized response in which an example is in at most k steps of an epoch."""

    constraints = (AtMost("largest_participations", "steps"),)
    monotone = proved(epochs=grows(COMPOSED))

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
    monotone = proved(epochs=grows(COMPOSED))
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

    constraints = (FEWER_THAN_STEPS,)
    monotone = proved(
        participations=grows(COMPOSED),
        epochs=grows(COMPOSED),
        steps=grows(PUBLIC),
    )
    products = (product("participations", "epochs", monotone=grows(USES_COMPOSED)),)
    irrelevant = MappingProxyType({"steps": PUBLIC})

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
